/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations as rows of a table: who sends what to whom. */
#pragma once

#include "collective/comm.h"

const char *operation_word(enum operation o); /* "all_reduce", as its function in onehop.h */
bool operation_has_root(enum operation o);
/* Whether there are devices on which the algorithm can run it. */
bool operation_can_use(enum operation o, enum algorithm a);

/* "all_reduce(100 float32, sum)": as ranks show each other. */
#define OPERATION_TEXT 96
const char *operation_text(const struct agree_call *call, char *buf, size_t size);
const char *element_word(unsigned type); /* "float32" */

struct operation_call {
	const void *in;
	void *out;
	uint64_t count; /* elements of a piece: the smaller of out and in */
	unsigned type, op;
	int root;
	void *stream; /* the device's own */
	bool barrier; /* for what people read: an all-reduce of nothing */
};

/* Whether there is such an operation. -EINVAL: its sentence names the operation. */
int operation_check(enum operation o, uint64_t count, unsigned type, unsigned op);
/* The part of it that all functions share. */
int operation_check_elements(const char *name, uint64_t count, unsigned type);
/*
 * What crosses links in each operation (f->crossing), of ranks that are where they are; before
 * anything is estimated.
 */
void operation_count(struct comm_facts *f);
/* The cheapest way of each algorithm to run it (choose_each). */
void operation_estimate(const struct comm_facts *f, enum operation o, uint64_t count, unsigned type,
			struct choice ret[ALGORITHM_N]);
/* What runs: the cheapest of them, or `forced` if that is possible (choose). */
void operation_choose(const struct comm_facts *f, enum operation o, uint64_t count, unsigned type,
		      enum algorithm forced, struct choice *ret);
struct operation_shape {
	struct collective_shape s;
	/* PIPED_LEVELS (else 0), as in struct collective_levels_args; level[0] is s. */
	unsigned stages, shares;
	struct collective_shape level[LEVELS_STAGES * GROUPS_RANKS_MAX / 2];
	/*
	 * PIPED_CHAIN, as in struct collective_chain_args (else pieces is 0); place[CHAIN_FIRST] is
	 * s. Chunk c starts in step c * period, and is in step c * period + i at the i-th rank
	 * behind the first one. Others: period is 1.
	 */
	struct collective_shape place[CHAIN_PLACES];
	u32 pieces, shift, period;
};

/*
 * What the kernel of rank `me` is to move, by this algorithm: pieces, and masks of ranks. Addresses
 * of the communicator are 0, so that no communicator is needed.
 */
void operation_shape(const struct comm_facts *f, unsigned me, enum operation o,
		     const struct operation_call *call, enum algorithm a,
		     struct operation_shape *ret);
/* What a kernel does with the pieces of a shape. */
struct operation_move {
	enum { MOVE_SEND, MOVE_TAKE, MOVE_SPREAD, MOVE_PLACE } what;
	/*
	 * 0: sent. Else what was sent or passed on one stage before is taken or passed on, or at
	 * last placed.
	 */
	unsigned stage;
	unsigned shares; /* only every share-th part of it */
	unsigned other;  /* the rank that it stores for, or that has stored what it loads */
	bool direct;     /* from GPU to GPU, not through the host's memory */
	u64 bytes;       /* of the whole piece */
};

/* Each of rank `me`, whose shape it is. */
void operation_moves(const struct comm_facts *f, unsigned me, const struct operation_shape *s,
		     void (*each)(void *context, const struct operation_move *m), void *context);
/* Whether it can be enqueued. -EINVAL: the sentence names rank, function and argument. */
int operation_verify(struct onehop_comm *c, enum operation o, const struct operation_call *call);
int operation_enqueue(struct onehop_comm *c, enum operation o, const struct operation_call *call);
