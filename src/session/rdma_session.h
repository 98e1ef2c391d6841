/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of bench rdma on one host: NICs listed, pairs chosen, measured in rounds, the figures kept.
 */
#pragma once

#include "rdma/rdma_pair.h"
#include "rdma/rdma_worker.h"
#include "session/rdma_log.h"
#include "session/session.h"

/* The options as a person writes them. */
struct rdma_request {
	struct device_options devices;
	const char *from, *nics, *only, *ways, *size, *time, *gid, *expect;
	int queues, depth, iterations;
	bool all, sweep, no_verify, no_relaxed, list;
	bool listen; /* to measure with another host on its demand: holds no GPUs meanwhile */
};

#define RDMA_SIZES 24
#define RDMA_DEPTH 128 /* perftest's; figures of others say so */

struct rdma_session {
	const struct rdma_request *o;
	const struct session_ear *ear;
	struct session_pace pace;
	struct devices devices;
	struct port_listing *listing;
	struct rdma_failure *skips; /* of each port of the listing; step none: it is used */
	struct rdma_pair *pairs;
	size_t pair_n;
	struct rounds rounds;
	struct figures *figures; /* NULL: nothing was run */
	struct rdma_log log;     /* what came during the run, where something failed */
	bool stopped;
	double list_s, run_s;

	/* ---- what to measure ---- */
	unsigned measures, ways; /* 1 << enum rdma_measure, 1 << enum region_way */
	struct rdma_size sizes[RDMA_SIZES];
	size_t size_n;
	struct stopping stopping;
	double expect_gbps;          /* of each direction, as a person says; 0: as the paths say */
	int gid;                     /* index of the only address that is used; -1: as chosen */
	struct paths *paths;         /* devices, then the ports of the listing, then the host */
	struct rdma_worker *workers; /* one a port */
};

/* 0, or a negative errno with a sentence: refused. rdma_session_done whatever the answer. */
int rdma_session_begin(struct rdma_session *s, const struct rdma_request *o,
		       const struct session_ear *ear);
/* The ports and the pairs that a run would take. 0 or a negative errno with a sentence. */
int rdma_session_look(struct rdma_session *s);
int rdma_session_run(struct rdma_session *s);
void rdma_session_done(struct rdma_session *s);

/* What --only and --memory-by accept. The array is the caller's to free, the words are not. */
const char **rdma_only_words(size_t *ret_n);
const char **rdma_memory_words(size_t *ret_n);

/* Of a port and a GPU, -1: the host's memory; NULL: it is not run. */
const struct rdma_pair *rdma_session_pair(const struct rdma_session *s, size_t port, int gpu);
/* The machine's NIC of a port; NULL: the machine is unknown, or has none of that name. */
const struct rdma_device *rdma_session_nic(const struct rdma_session *s, size_t port);
