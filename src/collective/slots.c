// SPDX-License-Identifier: Apache-2.0
#include "collective/slots.h"

u64 slots_set_bytes(const struct comm_facts *f)
{
	return (u64)f->flagged_blocks * FLAGGED_BLOCK_BYTES;
}

/* collective_small goes from one rank's row to the next, past the own one. */
static bool has_own_row(enum slots_area a)
{
	return a == AREA_FLAGGED_FIRST || a == AREA_FLAGGED_SECOND;
}

/* In a rank's memory for what others write there; in the host's, for each pair. */
static u64 rows_of(const struct comm_facts *f, enum slots_area a)
{
	if (!f->direct)
		return (u64)f->n * f->n;
	return has_own_row(a) || f->n == 1 ? f->n : f->n - 1;
}

/* Of what rank `from` writes to rank `to`. */
static u64 row_of(const struct comm_facts *f, enum slots_area a, u64 from, u64 to)
{
	if (!f->direct)
		return from * f->n + to;
	return !has_own_row(a) && from > to ? from - 1 : from;
}

void slots_make(const struct comm_facts *f, struct slots *ret)
{
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
			ret->size += rows_of(f, (enum slots_area)a) * row[a];
	}
}

void slots_ways(const struct comm_facts *f, const struct slots *s, enum slots_area area,
		bool shared, u32 me, const u64 *seen, struct collective_ways *ret)
{
	const u64 base = s->offset[area], row = s->row[area];

	*ret = (struct collective_ways){0};
	for (u32 r = 0; r < f->n; r++) {
		if (f->direct) {
			ret->to[r] = seen[r] + base + row_of(f, area, me, r) * row;
			ret->from[r] = seen[me] + base + row_of(f, area, r, me) * row;
		} else {
			ret->to[r] = seen[0] + base + row_of(f, area, me, shared ? me : r) * row;
			ret->from[r] = seen[0] + base + row_of(f, area, r, shared ? r : me) * row;
		}
	}
}
