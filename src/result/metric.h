/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of metrics. bench, ingest, compare, the reports and JSON read everything about a metric
 * from its row, so a new metric is a new row.
 */
#pragma once

#include "result/observation.h"

#include <stdbool.h>
#include <stddef.h>

/* Suffix of a word: the same measurement with P2P off. */
#define METRIC_STAGED "-staged"

/* Suffixes of collectives that ran in turn with NCCL's: NCCL's time, and the time over it. */
#define METRIC_AGAINST_TIME  "-nccl-time"
#define METRIC_AGAINST_RATIO "-nccl-ratio"

/* Names that code looks up. Files hold the names of all metrics, so none may ever change. */
#define METRIC_ACCESS        "p2p-access"
#define METRIC_PAIR_VERIFIED "pair-verified"
#define METRIC_GPU_VERIFIED  "gpu-verified" /* initiator: a GPU tested by itself */
#define METRIC_ALL_VERIFIED  "all-verified" /* a test of several GPUs at once */
#define METRIC_PAIR_RATE     "pair-rate" /* whether the testing tool calls the pair's rate good */
#define METRIC_NCCL_P2P      "nccl-p2p"  /* kind: NCCL's path, as its log names it */
#define METRIC_WRITE_CE      "write-ce"
#define METRIC_READ_CE       "read-ce"
#define METRIC_LATENCY_WRITE "latency-write"
#define METRIC_LATENCY_READ  "latency-read"
#define METRIC_ROUND_TRIP    "round-trip"
#define METRIC_ROUND_TRIP_SINGLE                                                                   \
	"round-trip-single" /* of `onehop test`: the median of rounds timed one by one */
#define METRIC_LOCAL_COPY  "local-copy"
#define METRIC_NIC_REACHES "nic-reaches" /* kind: what failed */
#define METRIC_NIC_WRITE_VERIFIED                                                                  \
	"nic-write-verified" /* kind: how the data was wrong, or what failed */
#define METRIC_NIC_READ_VERIFIED     "nic-read-verified"
#define METRIC_NIC_BOTH_VERIFIED     "nic-both-verified"
#define METRIC_NIC_WRITE             "nic-write"
#define METRIC_NIC_READ              "nic-read"
#define METRIC_NIC_BOTH              "nic-both"
#define METRIC_NIC_LATENCY_WRITE     "nic-latency-write"
#define METRIC_NIC_LATENCY_IMMEDIATE "nic-latency-immediate"
#define METRIC_NIC_LATENCY_SEND      "nic-latency-send"
#define METRIC_NIC_LATENCY_READ      "nic-latency-read"

/* What a value belongs to. `bench p2p` measures in this order, staged metrics last. */
enum metric_shape {
	SHAPE_YES_NO,     /* 1 or 0; nothing is timed */
	SHAPE_PAIR,       /* a pair of devices */
	SHAPE_HOST,       /* a device and host memory; a read is host to device */
	SHAPE_LOCAL,      /* inside a device */
	SHAPE_CHASE,      /* a chain of loads in the target's memory */
	SHAPE_CHASE_HOST, /* a chain of loads in the host's memory */
	SHAPE_ROUND_TRIP, /* a flag back and forth between resident kernels */
	SHAPE_TINY,       /* the period of queued copies of 16 bytes */
	SHAPE_TRAFFIC,    /* many pairs at once; a value per pair */
	SHAPE_COLLECTIVE, /* all devices; a value per size */
	SHAPE_NIC,        /* host memory and the target's, through a NIC */
	SHAPE_N
};

/* Which pairs copy at the same time. */
enum traffic {
	TRAFFIC_PAIRS,      /* as many pairs at a time as there can be, all ordered pairs in turn */
	TRAFFIC_ALL_TO_ALL, /* one round of all ordered pairs */
	TRAFFIC_N_TO_1,     /* a round for each device: all others write to it */
	TRAFFIC_1_TO_N,     /* a round for each device: it writes to all others */
	TRAFFIC_N,
};

enum metric_peer { PEER_P2P_TEST, PEER_NVBANDWIDTH, PEER_NCCL_TESTS, PEER_N };

struct metric {
	const char *word;    /* "both-ce" */
	const char *name;    /* what its figures are called, unique: the word, and METRIC_STAGED */
	const char *title;   /* "both ways, CE"; the same with P2P on and off */
	const char *heading; /* of `bench p2p`, which says more; NULL: it does not measure this */
	const char *unit;    /* "GB/s" (1e9 bytes/s), "us", "ns", "pairs", "checks", "x" */
	bool higher_is_better;
	/*
	 * Relative difference of two runs that counts as noise, for figures without an interval;
	 * the second where copies go through host memory.
	 */
	double noise, noise_hosted;

	enum metric_shape shape;
	enum traffic traffic; /* of SHAPE_TRAFFIC */
	bool read;            /* the initiator fetches, otherwise it sends */
	bool both_ways;       /* of SHAPE_PAIR: both directions at once; the value is the sum */
	bool by_kernel;       /* loads and stores, otherwise the copy engine */
	bool staged;          /* with peer access off: through the host */
	bool standard;        /* `bench p2p` measures it by default */
	bool must_hold;       /* of SHAPE_YES_NO: no is a failure */
	enum observed_kind observed; /* the observation that check derives from it for a pair */
	const char *off;             /* name of its counterpart with P2P off, which always writes */
	const char *collective;      /* of SHAPE_COLLECTIVE, for bandwidth and time: "all-reduce" */

	struct {
		unsigned place;   /* in what the peer prints, from 1; 0: onehop does not print it */
		const char *name; /* heading, test or program; NULL: the peer has none */
		const char *more; /* an older heading, or a description; NULL: none */
		/* The metric of the matrix's diagonal; NULL: none. */
		const char *diagonal;
	} peers[PEER_N];
};

/* In the order of output. */
extern const struct metric metrics[];
extern const size_t metric_n;

const struct metric *metric_find(const char *name); /* NULL: unknown to this version */
/* The metric at this place of a peer's output; NULL: past its end. */
const struct metric *metric_at(enum metric_peer peer, unsigned place);
/*
 * The collective that a text names by nccl-tests' name, "all-reduce" for "x/all_reduce_perf", where
 * `behind` follows that name. NULL: none.
 */
const char *metric_collective(const char *text, const char *behind);
/* The bandwidth or the time of a collective; NULL: there is no such. */
const struct metric *metric_of_collective(const char *collective, bool rate, bool staged);
/* suffix: METRIC_AGAINST_TIME or METRIC_AGAINST_RATIO. NULL: there is no such. */
const struct metric *metric_against_nccl(const char *collective, const char *suffix, bool staged);

static inline bool metric_is_rate(const struct metric *m)
{
	return m->unit[0] == 'G';
}
