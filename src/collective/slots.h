/* SPDX-License-Identifier: Apache-2.0 */
/* Where ranks leave data for each other: in each other's memory, or in memory of the host that all share. */
#pragma once

#include "collective/choose.h"

/*
 * Direct: every rank has an inbox with a row for each sender. Else the host's memory has a row for each ordered pair, and
 * what is the same for all goes into the row of a rank to itself, where all read it.
 */
enum slots_area {
	AREA_FLAGGED_FIRST,
	AREA_FLAGGED_SECOND,
	AREA_FLAGS, /* piped */
	AREA_FIRST,
	AREA_SECOND,
	AREA_N
};

struct slots {
	u64 offset[AREA_N], row[AREA_N]; /* bytes; from a row to the next */
	u64 zeroed;                      /* so much has to be 0 before the first operation */
	u64 size;
};

void slots_make(const struct comm_facts *f, struct slots *ret);

/* From one set of flagged slots to the other. */
u64 slots_set_bytes(const struct comm_facts *f);

/*
 * The ways of rank me. seen: the addresses of all ranks' inboxes as it sees them; not direct: that of the shared memory
 * in seen[0]. shared: what a rank sends is the same for all.
 */
void slots_ways(const struct comm_facts *f, const struct slots *s, enum slots_area area,
		bool shared, u32 me, const u64 *seen, struct collective_ways *ret);
