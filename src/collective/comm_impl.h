/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by both ways to open a communicator (comm.c). */
#pragma once

#include "collective/comm.h"
#include "collective/slots.h"

/* A set of devices with its lock. Takes ownership of the set, even on failure. */
int comm_set_new(struct device_set *set, struct comm_set **ret);
void comm_set_leave(struct comm_set *shared);

int comm_new(struct comm_set *shared, int device, u32 me, const struct comm_facts *f,
	     const struct comm_options *o, struct onehop_comm **ret);
/* Zeroes the part of slot memory that must start as zero. */
int comm_clear(struct device_set *set, const struct memory *m, const struct slots *s);
/* seen: as for slots_ways. */
int comm_connect(struct onehop_comm *c, const struct slots *s, const u64 *seen);
