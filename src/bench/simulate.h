/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives on a machine that is only described: libonehop's own choice and plans, and NCCL's
 * ring, over a model of the links. Times are predictions (docs/collectives.md, "Simulation").
 */
#pragma once

#include "bench/collective_bench.h"
#include "bench/paths.h"

/* Plans hold a bit for each rank. libonehop itself has at most COLLECTIVE_RANKS_MAX. */
#define SIMULATED_RANKS_MAX 16

struct simulation {
	const struct paths
		*paths; /* device k is rank k; expected rates are the rates of the links */
	/*
	 * By rank: a bit for each other one whose memory it stores into; others' data goes through
	 * the host's.
	 */
	uint32_t reach[SIMULATED_RANKS_MAX];
	bool nccl;                 /* its ring too */
	const enum nearness *near; /* of every two ranks (collective/groups.h); NULL: no groups */
	struct collective_plan
		plan; /* the operation, its type and root, sizes, whether in a graph */
};

struct simulated_row {
	uint64_t bytes, count;  /* as in struct collective_row */
	struct choice choice;   /* of libonehop; choice.us is the estimate by which it was chosen */
	double us[ALGORITHM_N]; /* by the model; NaN: that algorithm cannot run it */
	struct collective_cell own;  /* of the choice; no batches: nothing was measured */
	struct collective_cell nccl; /* time 0: not modelled */
};

/* Whether ranks store into the memory of all others, or of some. */
struct simulated_paths {
	bool direct, mixed;
};

struct simulated_paths simulated_paths(const struct simulation *s);

/* Whether the model has NCCL's ring for the operation and the paths, and why not. */
enum simulated_ring {
	RING_MODELLED,
	RING_NO_OPERATION, /* NCCL has no ring for it */
	RING_NVLINK,       /* all paths are NVLink */
	RING_MIXED,        /* only some pairs have P2P */
	RING_N
};

enum simulated_ring simulated_ring(const struct simulation *s);

/*
 * Rows in order of size; the caller frees them. 0, -ENOMEM, or -EINVAL with a sentence: too few or
 * too many ranks, or a path whose rate is unknown.
 */
int simulate(const struct simulation *s, struct simulated_row **ret, size_t *ret_n);
