/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks tell each other what they call, before they enqueue it, and compare: of two ranks that
 * disagree the later one finds out, does not enqueue its operation, and stops what the others have
 * enqueued.
 */
#pragma once

#include "kernels/args.h"

#include <stdbool.h>
#include <stddef.h>

/* The same on all ranks, in the order of the calls. */
struct agree_call {
	u32 what; /* operation, type, reduction, root */
	u64 count;
};

/* A message between two ranks: the n-th send to a rank meets its n-th receive. */
struct agree_message {
	u32 peer;
	bool takes; /* receives; else sends */
	u64 bytes;
};

/*
 * Operations that are captured into a graph are compared among themselves: they may be captured at
 * any time.
 */
enum agree_order { AGREE_EAGER, AGREE_CAPTURED, AGREE_ORDERS };

/* What two ranks called, in the order of ranks. */
struct agree_finding {
	u32 rank[2];
	u32 number;            /* of the call or message in its order */
	unsigned char order;   /* enum agree_order */
	unsigned char message; /* not 0: rank[0] sends to rank[1]; count is bytes */
	struct agree_call call[2];
};

/* Memory of all ranks of a communicator. */
struct agree_board;
/* ret_fd: for other processes, the caller closes it; NULL: all ranks are in this one. */
int agree_board_make(unsigned n, int *ret_fd, struct agree_board **ret);
int agree_board_map(unsigned n, int fd, struct agree_board **ret); /* does not take over fd */
void agree_board_free(struct agree_board *b);

/* How far one rank is. */
struct agree {
	struct agree_board *board;
	unsigned n, me;
	/* Stored so far; and how many may be before the others are looked at again. */
	struct {
		u32 stored, room;
	} calls[AGREE_ORDERS], messages[AGREE_ORDERS][COLLECTIVE_RANKS_MAX][2];
};

void agree_start(struct agree *a, struct agree_board *b, unsigned me);

/*
 * 0: nobody is known to disagree, so it may be enqueued. -EAGAIN: this rank is too far ahead;
 * nothing was stored, and *ret_behind is the slowest rank. -EPROTO: two ranks disagree, see
 * agree_failed.
 */
int agree_call(struct agree *a, enum agree_order o, const struct agree_call *call, u32 *ret_behind);
int agree_messages(struct agree *a, enum agree_order o, const struct agree_message *m, size_t n,
		   u32 *ret_behind);
/* They were not enqueued after all, and may be stored again. */
void agree_undo_call(struct agree *a, enum agree_order o);
void agree_undo_messages(struct agree *a, enum agree_order o, const struct agree_message *m,
			 size_t n);

/* How many calls of that order a rank has made, also one that is gone. For any thread. */
u32 agree_calls_of(const struct agree *a, enum agree_order o, u32 rank);

/* Whether any rank found that two disagree: all ranks get the same finding. For any thread. */
bool agree_failed(const struct agree *a, struct agree_finding *ret);
