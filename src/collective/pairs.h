/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives: what a rank has to move in one launch. */
#pragma once

#include "collective/comm.h"

struct pair_call {
	bool takes; /* receives; else sends */
	int peer;   /* may be this rank itself */
	uint64_t address, bytes;
};

/*
 * In the order in which they are to meet the peers'. At most PAIR_ITEMS; those to this rank itself
 * have to match. All move at the same time, whatever their order.
 */
int pairs_enqueue(struct onehop_comm *c, void *stream, const struct pair_call *calls, size_t n);
