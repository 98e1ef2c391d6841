/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations as rows of a table: who sends what to whom. */
#pragma once

#include "collective/comm.h"

const char *operation_word(enum operation o); /* "all_reduce", as its function in onehop.h */

struct operation_call {
	const void *in;
	void *out;
	uint64_t count; /* elements of a piece: the smaller of out and in */
	unsigned type, op;
	int root;
	void *stream; /* the device's own */
};

/* The cheapest way of each algorithm to run it (choose_each); what runs is the cheapest of them. */
void operation_estimate(const struct onehop_comm *c, enum operation o, uint64_t count,
			unsigned type, struct choice ret[ALGORITHM_N]);
int operation_enqueue(struct onehop_comm *c, enum operation o, const struct operation_call *call);
