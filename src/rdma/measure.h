/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured between two sides of a connection, and a measurement's result. */
#pragma once

#include "bench/statistics.h"
#include "bench/verify.h"
#include "rdma/failure.h"

/* "near" is the side that posts the work, "far" the other one. */
enum rdma_measure {
	RDMA_WRITE, /* the near NIC writes into the far memory what is in its own */
	RDMA_READ,  /* the near NIC reads from the far memory and writes to its own */
	RDMA_BOTH,  /* both at once */
	/* half the round trip of a flag; in host memory, which the CPU can poll */
	RDMA_LATENCY_WRITE,
	/* the same by writes with immediate, and by sends, whose arrival a completion reports */
	RDMA_LATENCY_IMMEDIATE,
	RDMA_LATENCY_SEND,
	RDMA_LATENCY_READ, /* time of a small read until it completes */
	RDMA_MEASURE_N
};

static inline bool rdma_is_latency(enum rdma_measure m)
{
	return m >= RDMA_LATENCY_WRITE;
}

/* There and back, which the CPU of the other end answers. */
static inline bool rdma_is_round_trip(enum rdma_measure m)
{
	return rdma_is_latency(m) && m != RDMA_LATENCY_READ;
}

static inline bool rdma_has_writes(enum rdma_measure m)
{
	return m == RDMA_WRITE || m == RDMA_BOTH;
}

static inline bool rdma_has_reads(enum rdma_measure m)
{
	return m == RDMA_READ || m == RDMA_BOTH || m == RDMA_LATENCY_READ;
}

/* GB/s, a hundred times what a port of today has: more is a mistake, or a lie. */
#define RDMA_RATE_MOST 1e4

/* Bytes of a message: rates and latencies are of sizes of their own. */
struct rdma_size {
	uint64_t of_rates, of_latencies;
};

static inline uint64_t rdma_bytes(struct rdma_size s, enum rdma_measure m)
{
	return rdma_is_latency(m) ? s.of_latencies : s.of_rates;
}

/* What was timed, by clock_ns; the readings of the clock at both ends are part of it. */
struct timed {
	uint64_t from_ns, to_ns;
	unsigned latencies; /* one after the other in that time */
};

/* How a connection is loaded. */
struct rdma_load {
	uint64_t bytes, latency_bytes; /* of a message */
	unsigned depth, queues;
	struct stopping stopping; /* of a measurement */
	double sample_us;
	uint64_t limit_us; /* without a completion */
	bool verify;       /* the owner of the memory checks the data, outside what is timed */
	unsigned pair;     /* part of the pattern, so that another pair's data is recognised */
	/* One queue pair for writes and reads, every message at one place, flags that count. */
	bool like_perftest;
	unsigned trips; /* round trips of a latency, exactly; 0: until the interval is narrow */
	bool answers;   /* the other end sends the first flag */
};

/* Queue pairs of each side. */
static inline unsigned rdma_queue_n(const struct rdma_load *l)
{
	return l->like_perftest ? 1 : 2 * l->queues;
}

/* That of the q-th stream of writes, or of reads. */
static inline unsigned rdma_queue_at(const struct rdma_load *l, bool read, unsigned q)
{
	return q + (read && !l->like_perftest ? l->queues : 0);
}

enum rdma_data { RDMA_DATA_NOT_CHECKED, RDMA_DATA_RIGHT, RDMA_DATA_WRONG };

struct rdma_cell {
	bool done; /* it was tried; else the set-up failed, or it was not requested */
	bool too_slow; /* it was left out: at the link's rate a message takes longer than it is waited for */
	enum rdma_data data;
	uint64_t checked_bytes;
	struct wrong wrong;
	struct summary value;              /* GB/s or us; n 0: not measured, `failure` says why */
	double mean, deviation, p99, p999; /* of latencies, us: what perftest prints besides */
	uint64_t messages;                 /* that were timed */
	enum stop stop;
	struct rdma_failure failure;
};

/* Whether a rate is clearly below what is expected; 0: unknown. */
#define RDMA_SHORT_OF 0.85
static inline bool rdma_is_short(const struct rdma_cell *c, double expected)
{
	return expected > 0 && c->value.n && c->value.median < RDMA_SHORT_OF * expected;
}
