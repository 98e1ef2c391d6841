/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the pair measurements share. */
#pragma once

#include "bench/p2p.h"

/* A stream with the events around what is timed on it. */
struct lane {
	struct stream stream;
	struct event start, end;
};

/* What one stream does in a sample: the same copy, or the same kernel, several times. */
struct flow {
	int device; /* whose engine, or multiprocessors */
	struct memory target, origin;
	uint64_t target_offset, origin_offset, bytes;
	bool by_kernel;
	bool lead_in;     /* one more copy before the timed ones */
	bool ask_enqueue; /* how long enqueueing takes is asked, too */
	union {
		struct copy_args copy;
		struct chase_args chase;
	} args;
	struct launch launch; /* by_kernel */
	unsigned times;
	size_t cell;       /* whose figure it adds to, counted in the round */
	double us;         /* measured: of all of them */
	double enqueue_us; /* ask_enqueue: of the last of them */
};

enum gate_word { GATE_OPEN, GATE_ABORT, GATE_REPORTS };

/* Whether an initiator reaches a target's memory now. */
struct reach {
	bool on;
	char *why; /* it was refused; NULL: it was not */
};

/* What a device has for the run. */
struct bench_device {
	struct memory in, out; /* where data arrives, where it comes from */
	struct memory report;  /* what a kernel reports */
	struct memory host;    /* pinned, for traffic with the host; made when first needed */
	struct memory flag;    /* u32, of ping-pong */
	struct lane *lanes;
	size_t lane_n;
};

struct p2p {
	struct device_set *set;
	const struct p2p_options *options;
	struct bench_device *devices;
	struct memory gate; /* pinned u32, see enum gate_word */
	uint64_t bytes;     /* of in and out */
	uint64_t host_bytes;
	struct reach *reach; /* device_n squared, row initiator */
	bool staged;         /* peer access is off now */
	struct p2p_result *result;
	size_t rounds_left;
};

#define P2P_GATES        1024                   /* flows at once, at most */
#define P2P_GATE_NS      (300ull * 1000 * 1000) /* how long a gate stays closed, at most */
#define P2P_HOST_MAX     (128ull << 20)         /* pinning memory is slow */
#define P2P_ROUND_TRIPS  2000                   /* a sample */
#define P2P_CHASE_BYTES  (2ull << 20)
#define P2P_CHASE_STRIDE 128
#define P2P_CHASE_STEPS  800 /* a launch: by one multiprocessor */
#define P2P_CHASE_BLOCKS 16  /* launches a sample, by multiprocessors spread over the device */
#define P2P_PEERS_MAX    8   /* at once, of one device: CUDA's limit without NVSwitch */
#define P2P_PIECE        (64ul << 10) /* of a read or write: device/device.h */
#define P2P_TINY_BYTES   16
#define P2P_TINY_TIMES   100

/* p2p_memory.c */
int p2p_memory_open(struct p2p *p);
void p2p_memory_close(struct p2p *p);
int p2p_need_host(struct p2p *p, int device);
int p2p_need_lanes(struct p2p *p, int device, size_t n);
/* Peer access off (true) or on for all pairs that can have it, unless those are too many. */
int p2p_set_staged(struct p2p *p, bool staged);
/* Where they are too many: access of one pair for a round, on before it and off behind it. */
int p2p_round_access(struct p2p *p, int initiator, int target, bool on);
struct reach *p2p_reach(const struct p2p *p, int initiator, int target);

/* p2p_flow.c */
/* Sets launch and args of a flow that copies by loads and stores. */
int flow_use_kernel(struct p2p *p, struct flow *f);
/*
 * One sample: all start together; fills us and enqueue_us. Where a gate times out the sample is
 * thrown away, counted and tried again with fewer copies; -EAGAIN when that does not help.
 */
int flows_sample(struct p2p *p, struct flow *flows, size_t n, const struct round *under_load,
		 unsigned *timeouts);
/* Chooses `times` so that a sample takes sample_us; warms up by that. */
int flows_calibrate(struct p2p *p, struct flow *flows, size_t n, double sample_us,
		    unsigned *timeouts);
/* The owners fill what will be sent, and poison where it goes; the CPU is the host's memory's. */
int flows_prepare(struct p2p *p, const struct flow *flows, size_t n);
/* The owners compare what arrived; adds to the round's cells. */
int flows_check(struct p2p *p, const struct flow *flows, size_t n, struct p2p_cell *cells);
/* Runs one kernel on a device's first lane and waits. */
int p2p_kernel(struct p2p *p, int device, enum device_kernel kernel, unsigned blocks,
	       unsigned threads, const void *args, size_t args_size);

/* p2p_latency.c */
/*
 * The flow that follows a chain in the target's memory, or the host's; makes the chain. Where it
 * does not read back as it was made, the cell says why, and there is nothing to follow.
 */
int chase_flow(struct p2p *p, struct p2p_cell *cell, struct flow *f);
/* Whether it was followed to where it leads; otherwise the cell says why. */
int chase_check(struct p2p *p, const struct flow *f, struct p2p_cell *cell);
/* One sample of each cell that has no `why`, in us; a flag that does not come back becomes one. */
int round_trip_sample(struct p2p *p, struct p2p_cell *cells, size_t n, double *ret_values);
