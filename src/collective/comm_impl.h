/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by both ways to open a communicator (comm.c). */
#pragma once

#include "collective/comm.h"
#include "collective/slots.h"

/* A set of devices with its lock. Takes ownership of the set, even on failure. */
int comm_set_new(struct device_set *set, struct comm_set **ret);
void comm_set_leave(struct comm_set *shared);

/* Which ranks' memory rank `me` may store into. */
static inline uint32_t comm_may_reach(const struct comm_options *o, unsigned me)
{
	return o->no_p2p ? 0 : o->reach ? o->reach[me] : ~0u;
}

/* How near rank `me` on that device of the set is to the GPUs of all ranks. */
void comm_near(struct device_set *s, int device, unsigned n, const char (*pci)[16], unsigned me,
	       enum nearness *ret);

/* Of ranks some of which are direct. near: n squared, the same on all of them. */
void comm_place(struct comm_facts *f, const enum nearness *near, const struct comm_options *o);

int comm_new(struct comm_set *shared, int device, u32 me, const struct comm_facts *f,
	     const struct comm_options *o, struct onehop_comm **ret);
/*
 * Adds the memory with the slots to what the rank has allocated: its own, and rank 0 that of the
 * host.
 */
void comm_count_slots(struct onehop_comm *c, const struct slots *s);
/* Words of n ranks. */
static inline u64 comm_words_bytes(unsigned n)
{
	return n * sizeof(struct comm_words);
}

/* Zeroes memory. */
int comm_zero(struct device_set *set, const struct memory *m, u64 size);
/* words: of all ranks. */
int comm_connect(struct onehop_comm *c, const struct slots *s, const struct slots_seen *seen,
		 u64 words);
