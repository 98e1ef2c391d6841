/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench rdma between two hosts: which NICs of one reach which of the other, and how fast. One host
 * listens and owns memory; the other asks for it over TCP and posts all the work.
 */
#pragma once

#include "rdma/peer.h"
#include "session/rdma_session.h"

/* A port of the other host, as its hello describes it. */
struct far_port {
	struct nic_port port;
	double writes_gbps, reads_gbps; /* what its host makes of it, GB/s; 0: unknown */
	char limit[96];                 /* what limits that */
	unsigned ways;                  /* 1 << enum region_way: memory that it offers */
	uint32_t links[PEER_LIST_MAX];  /* on the way to its memory; numbers of its host */
	size_t link_n;
};

enum reach { REACH_UNTRIED, REACH_YES, REACH_NO };

/* A port of this host and one of the other. */
struct host_pair {
	size_t own, far;
	bool meets;            /* they have addresses of one type and family: */
	struct gid_choice gid; /* these are used, and why */
	struct verbs_gid_entry far_gid;
	enum reach reach;
	struct rdma_failure failure; /* of reaching it */
	bool rail;                   /* its rates are measured */
	unsigned cut; /* 1 << enum region_way: in the middle, so the rest is left out */
	double write_gbps, read_gbps; /* expected, 0: unknown */
	char limit[128];              /* what limits them */
	double rate_gbps;             /* as last measured; 0: not yet */
	uint64_t paced_bytes; /* a message of which took so long when last measured; 0: none yet */
	double paced_s;
	struct hosts_run *runs; /* one a kind, of a rail; NULL: none */
};

/*
 * What kind of messages is measured: between which memories, the same at both ends, and of what
 * size.
 */
struct hosts_kind {
	enum region_way way;
	struct rdma_size size;
};

struct hosts_run {
	struct rdma_cell cells[RDMA_MEASURE_N];
};

#define HOSTS_KINDS ((size_t)REGION_WAY_N * RDMA_SIZES)

/*
 * In the state folder: what was measured so far, of the last run as the client, and as the
 * listener.
 */
#define RDMA_HOSTS_FILE    "rdma-hosts.json"
#define RDMA_LISTENER_FILE "rdma-listener.json"

struct rdma_hosts {
	struct rdma_session *s; /* own ports and options */
	bool listens;
	int listener; /* -1: none */
	char listens_at[PEER_PLACE_MAX];
	struct peer peer;
	char peer_address[PEER_ADDRESS_MAX], peer_name[PEER_NAME_MAX];
	struct far_port *far;
	size_t far_n;
	struct host_pair *pairs; /* own ports times far_n */
	struct hosts_kind kinds[HOSTS_KINDS];
	size_t kind_n;
	unsigned queues;             /* queue pairs of a rate in each direction; 0: one */
	unsigned depth;              /* messages in flight in each; 0: 128 */
	struct rdma_worker *workers; /* one an own port */
	size_t reach_rounds;
	struct rounds rounds; /* of the rails */
	bool whole;           /* all that was to be done is done */
	char ended[256];      /* else why not; "": stopped by a signal */
	double reach_s, run_s;
	bool unkept; /* the journal cannot be written, which was reported */
	struct figures *figures;
};

/* With the session's ports listed. rdma_hosts_done whatever comes next. */
void rdma_hosts_begin(struct rdma_hosts *h, struct rdma_session *s);
/*
 * Measures with the host that listens at `to`. 0 or a negative errno with a sentence: nothing was
 * measured.
 */
int rdma_hosts_run(struct rdma_hosts *h, const char *to);
/* Listens at this address. 0 or a negative errno with a sentence. */
int rdma_hosts_listen(struct rdma_hosts *h, const char *at);
/*
 * Serves the next peer to its end. 1: there was one, and something to report; 0: a signal stopped
 * the listener.
 */
int rdma_hosts_serve(struct rdma_hosts *h);
void rdma_hosts_done(struct rdma_hosts *h);

struct host_pair *rdma_hosts_pair(const struct rdma_hosts *h, size_t own, size_t far);

/* NULL: nothing of this kind was measured between the two. */
const struct rdma_cell *rdma_hosts_cell(const struct rdma_hosts *h, const struct host_pair *p,
					size_t kind, int m);

/*
 * The kind of the largest messages of that memory, as small ones are never at the rate of the link;
 * kind_n: there is none.
 */
size_t rdma_hosts_largest(const struct rdma_hosts *h, enum region_way way);

struct hosts_counts {
	size_t tried, reached;                   /* pairs of ports */
	size_t checked, wrong, failed, measured; /* measurements */
	size_t too_slow;                         /* measurements, left out */
	size_t rates,
		wide; /* of those measured: not latencies; stopped before the interval was narrow */
	size_t rated,
		slow; /* rates of the largest messages, whose expected rate is known; those that fall short */
};
struct hosts_counts rdma_hosts_count(const struct rdma_hosts *h);
/* Whether ports reach each other exactly where their addresses are in one network, and each reaches one: rails without a
 * route between them. */
bool rdma_hosts_are_rails(const struct rdma_hosts *h);
/* Whether the other host uses this port of its own. */
bool rdma_hosts_far_is_used(const struct rdma_hosts *h, size_t far);
/* Whether a port reaches no port of the other host. */
bool rdma_hosts_has_lonely(const struct rdma_hosts *h);
/* What is expected of a pair's measurement, GB/s; 0: unknown. */
double rdma_hosts_expected(const struct host_pair *p, enum rdma_measure m);
