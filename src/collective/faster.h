/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libonehop was measured to be faster than NCCL (docs/performance.md): what the NCCL shim
 * takes over.
 */
#pragma once

#include "collective/choose.h"

#include <stddef.h>

#define FASTER_RANKS_MAX 4u

#define FASTER_RANGES 4u

/* Sizes, from where the range before ends, in graphs. */
struct faster_range {
	uint64_t bytes;     /* up to this size */
	double least, most; /* time divided by NCCL's, over these sizes */
	double nccl_us;     /* NCCL's time for `bytes`; 0: not measured */
};

struct faster {
	enum operation operation;
	unsigned ranks;
	bool direct;    /* as struct comm_facts has it */
	uint64_t bytes; /* up to this size: above it, NCCL is faster or was not compared */
	double least,
		most; /* time divided by NCCL's, over these sizes, of graphs and eager calls */
	const char *machine; /* that it was measured on */
	const struct faster_range
		*ranges; /* FASTER_RANGES, of which the last one ends at `bytes` */
};

/*
 * The row that covers the call, else NULL. Only sums and averages of float32, float16 and bfloat16
 * are covered.
 */
const struct faster *faster_find(enum operation operation, unsigned ranks, bool direct,
				 uint64_t count, unsigned type, unsigned op);
/* The rows, one after the other; NULL behind the last. */
const struct faster *faster_at(size_t i);
