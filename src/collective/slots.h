/* SPDX-License-Identifier: Apache-2.0 */
/* Where ranks put data for each other: in each other's memory, or in shared host memory. */
#pragma once

#include "collective/choose.h"

/*
 * Direct: every rank has an inbox with a row for each sender. Otherwise host memory has a row for
 * each ordered pair, and data that is the same for all goes into the rank's row to itself, where
 * all read it.
 */
enum slots_area {
	AREA_FLAGGED_FIRST,
	AREA_FLAGGED_SECOND,
	AREA_FLAGS,      /* piped */
	AREA_PAIR_FLAGS, /* of sends and receives */
	AREA_FIRST,
	AREA_SECOND,
	AREA_PAIRS,
	AREA_N
};

struct slots {
	u64 offset[AREA_N], row[AREA_N]; /* bytes; from a row to the next */
	u64 zeroed;                      /* this much must be 0 before the first operation */
	u64 size;
};

void slots_make(const struct comm_facts *f, struct slots *ret);

/* From one set of flagged slots to the other. */
u64 slots_set_bytes(const struct comm_facts *f);

/*
 * The routes of rank `me`. seen: the addresses of all ranks' inboxes as it sees them; if not
 * direct, seen[0] is the shared memory. shared: a rank sends the same data to all.
 */
void slots_ways(const struct comm_facts *f, const struct slots *s, enum slots_area area,
		bool shared, u32 me, const u64 *seen, struct collective_ways *ret);
