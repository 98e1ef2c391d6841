/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench rdma with a host that has perftest and no onehop: this host is the client, or the server,
 * of one ib_write_bw, ib_read_bw or ib_write_lat.
 */
#pragma once

#include "rdma/peer.h"
#include "rdma/perftest.h"
#include "session/rdma_session.h"

struct rdma_perftest {
	struct rdma_session *s;
	enum rdma_measure measure;
	bool serves;
	size_t port; /* of the listing */
	int listener;
	char listens_at[PEER_PLACE_MAX];
	struct peer peer; /* its socket and address; the lines of onehop are not used */
	char address[PEER_ADDRESS_MAX], release[PERFTEST_HELLO];
	struct rdma_worker worker;
	struct link_job job;
	struct link_address own, far;
	struct rdma_cell cell; /* what this host has measured: as the client, and latencies */
	struct perftest_report reported; /* by the client, where this host serves */
	bool has_report, whole;
	char ended[256]; /* not whole: why, unless a step of the cell failed; "": a signal */
	double write_gbps, read_gbps; /* expected of this host's end; 0: unknown */
	char limit[96];
	struct figures *figures;
};

/* "ib_write_bw" */
const char *rdma_perftest_tool(enum rdma_measure m);
/*
 * With the session's ports listed: takes the measurement and the port. 0 or -EINVAL with a
 * sentence. rdma_perftest_done whatever the answer.
 */
int rdma_perftest_begin(struct rdma_perftest *p, struct rdma_session *s);
/* To the perftest at `to`. 0, or a negative errno with a sentence: nothing was begun. */
int rdma_perftest_run(struct rdma_perftest *p, const char *to);
/* GB/s, of this host's end; 0: unknown, or a latency. */
double rdma_perftest_expected(const struct rdma_perftest *p);
int rdma_perftest_listen(struct rdma_perftest *p, const char *at);
/*
 * Serves one client of perftest; others, who say nothing, anything else, or are too old, are
 * reported to the listener's ear. 1: there was one, and something to report; 0: a signal came
 * first.
 */
int rdma_perftest_serve(struct rdma_perftest *p);
void rdma_perftest_done(struct rdma_perftest *p);
