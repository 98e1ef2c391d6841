/* SPDX-License-Identifier: Apache-2.0 */
/* Where ranks put data for each other: in each other's memory, or in shared host memory. */
#pragma once

#include "collective/choose.h"

/*
 * What a rank writes for one whose memory it reaches is in that one's inbox, which has a row for
 * each sender. For the others host memory has a row for each ordered pair, and data that is the
 * same for all of them goes into the rank's row to itself, where all read it.
 */
enum slots_area {
	AREA_FLAGGED_FIRST,
	AREA_FLAGGED_SECOND,
	AREA_FLAGS,      /* piped */
	AREA_PAIR_FLAGS, /* of sends and receives */
	AREA_MESSAGES,   /* their units */
	AREA_FIRST,
	AREA_SECOND,
	AREA_PAIRS,
	AREA_N
};

/* Of one memory. */
struct slots_layout {
	u64 offset[AREA_N];
	u64 zeroed; /* this much must be 0 before the first operation */
	u64 size;   /* 0: there is no such memory */
};

struct slots {
	u64 row[AREA_N]; /* bytes, from a row to the next */
	struct slots_layout inbox, host;
};

/* Addresses as a rank sees them. */
struct slots_seen {
	u64 inbox[COLLECTIVE_RANKS_MAX]; /* 0: not reached */
	u64 host;
};

void slots_make(const struct comm_facts *f, struct slots *ret);

/* Of the flagged slots of a block, and of all blocks in one set. */
u32 slots_block_bytes(const struct comm_facts *f);
u32 slots_set_bytes(const struct comm_facts *f);

/* Of the piped slots of all blocks that are filled in one step. */
u64 slots_turn_bytes(const struct comm_facts *f);

/* Of the units of a message in one block. */
u32 slots_pair_set_bytes(const struct comm_facts *f);

/*
 * Rows of flagged slots that rank `me` writes in the host's memory, each of two sets: how many, and
 * where the first one is.
 */
u32 slots_host_rows(const struct comm_facts *f, const struct slots *s, u32 me,
		    const struct slots_seen *seen, u64 *ret);

/* The routes of rank `me`. shared: a rank sends the same data to all. */
void slots_ways(const struct comm_facts *f, const struct slots *s, enum slots_area area,
		bool shared, u32 me, const struct slots_seen *seen, struct collective_ways *ret);
