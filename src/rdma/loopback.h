/* SPDX-License-Identifier: Apache-2.0 */
/* One port to itself: does data between this host's memory and a GPU's arrive through the NIC, and how fast? */
#pragma once

#include "bench/statistics.h"
#include "rdma/transfer.h"

enum loopback_measure {
	LOOPBACK_WRITE, /* the NIC writes into the GPU what it reads from the host */
	LOOPBACK_READ,  /* the NIC reads from the GPU and writes to the host */
	LOOPBACK_BOTH,  /* both at once */
	/* half the round trip of a flag; in host memory, which the CPU can poll */
	LOOPBACK_LATENCY_WRITE,
	LOOPBACK_LATENCY_READ, /* time of a small read until it completes */
	LOOPBACK_N
};

/* Plain data: it is sent to the worker process. */
struct loopback_job {
	char device[64];
	unsigned port;
	struct device_request gpu; /* one device; n 0: host memory on both sides */
	enum region_way way;       /* of the GPU's memory, or REGION_HOST */
	unsigned measures;         /* 1 << enum loopback_measure */
	bool relaxed, verify;
	uint64_t bytes, latency_bytes; /* of a message */
	uint64_t window;               /* of the window that messages cycle through, at most */
	unsigned depth, queues;
	struct stopping stopping; /* of a measurement */
	double sample_us;
	uint64_t limit_us;     /* without a completion */
	uint64_t gpu_limit_us; /* for the GPU's own work */
	unsigned pair;         /* part of the pattern, so that another pair's data is recognised */
};

enum loopback_data { LOOPBACK_NOT_CHECKED, LOOPBACK_RIGHT, LOOPBACK_WRONG };

struct loopback_cell {
	bool done; /* it was tried; else the set-up failed, or it was not requested */
	enum loopback_data data;
	uint64_t checked_bytes;
	struct wrong wrong;
	struct summary value;              /* GB/s or us; n 0: not measured, `failure` says why */
	double mean, deviation, p99, p999; /* of latencies, us: what perftest prints besides */
	uint64_t messages;                 /* that were timed */
	enum stop stop;
	struct rdma_failure failure;
};

struct loopback_result {
	struct rdma_failure failure; /* before anything was measured */
	struct nic_port port;        /* as it was */
	uint64_t window;             /* of each buffer, which may be smaller than requested */
	int gpu_ordinal;             /* of the GPU that was opened; -1: none */
	char gpu_pci[16];
	struct loopback_cell cells[LOOPBACK_N];
};

/* Runs in this process. The call never fails: failures are in the result. */
void loopback_run(const struct verbs *v, const struct loopback_job *job,
		  struct loopback_result *ret);
