// SPDX-License-Identifier: Apache-2.0
#include "collective/slots.h"

u64 slots_set_bytes(const struct comm_facts *f)
{
	return (u64)f->flagged_blocks * FLAGGED_BLOCK_BYTES;
}

void slots_make(const struct comm_facts *f, struct slots *ret)
{
	const u64 rows = f->direct ? f->n : (u64)f->n * f->n;
	const u64 row[AREA_N] = {
		[AREA_FLAGGED_FIRST] = 2 * slots_set_bytes(f),
		[AREA_FLAGGED_SECOND] = 2 * slots_set_bytes(f),
		[AREA_FLAGS] = (u64)f->piped_blocks * PIPED_FLAG_BYTES,
		[AREA_PAIR_FLAGS] = (u64)f->pair_blocks * sizeof(struct pair_flags),
		[AREA_PAIRS] = (u64)f->pair_blocks * PAIR_SLOTS * f->pair_slot_bytes,
		[AREA_FIRST] = 2ul * f->piped_blocks * f->slot_bytes,
		[AREA_SECOND] = 2ul * f->piped_blocks * f->slot_bytes,
	};
	ret->size = 0;
	for (int a = 0; a < AREA_N; a++) {
		if (a == AREA_FIRST)
			ret->zeroed = ret->size;
		ret->row[a] = row[a];
		ret->offset[a] = ret->size;
		/* Rows of pairs are for the first step, ranks' own rows for the second. */
		if (!f->direct && a == AREA_FLAGGED_SECOND)
			ret->offset[a] = ret->offset[AREA_FLAGGED_FIRST];
		else if (!f->direct && a == AREA_SECOND)
			ret->offset[a] = ret->offset[AREA_FIRST];
		else
			ret->size += rows * row[a];
	}
}

void slots_ways(const struct comm_facts *f, const struct slots *s, enum slots_area area,
		bool shared, u32 me, const u64 *seen, struct collective_ways *ret)
{
	const u64 base = s->offset[area], row = s->row[area], n = f->n;

	*ret = (struct collective_ways){0};
	for (u64 r = 0; r < n; r++) {
		if (f->direct) {
			ret->to[r] = seen[r] + base + me * row;
			ret->from[r] = seen[me] + base + r * row;
		} else {
			ret->to[r] = seen[0] + base + (me * n + (shared ? me : r)) * row;
			ret->from[r] = seen[0] + base + (r * n + (shared ? r : me)) * row;
		}
	}
}
