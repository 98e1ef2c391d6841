// SPDX-License-Identifier: Apache-2.0
#include "collective/slots.h"

u32 slots_block_bytes(const struct comm_facts *f)
{
	return f->flagged_units * (u32)FLAGGED_UNIT_BYTES;
}

u32 slots_set_bytes(const struct comm_facts *f)
{
	return slots_block_bytes(f) * f->flagged_blocks;
}

u64 slots_turn_bytes(const struct comm_facts *f)
{
	return (u64)f->piped_blocks * f->slot_bytes;
}

u32 slots_pair_set_bytes(const struct comm_facts *f)
{
	return f->pair_units * (u32)FLAGGED_UNIT_BYTES;
}

/* collective_small goes from one rank's row to the next, past the own one. */
static bool has_own_row(enum slots_area a)
{
	return a == AREA_FLAGGED_FIRST || a == AREA_FLAGGED_SECOND;
}

static u64 inbox_rows(const struct comm_facts *f, enum slots_area a)
{
	if (!has_direct(f))
		return 0;
	return has_own_row(a) || f->n == 1 ? f->n : f->n - 1;
}

static u64 inbox_row(enum slots_area a, u32 from, u32 to)
{
	return !has_own_row(a) && from > to ? from - 1 : from;
}

/*
 * All read the same of the second piped step, so it has a row for each rank. (Not the one for the
 * first step, which is written for the next operation while others still read in this one.)
 */
static u64 host_rows(const struct comm_facts *f, enum slots_area a)
{
	return a == AREA_SECOND && !f->direct ? f->n : host_row(f, f->n, 0);
}

static void add_area(struct slots_layout *l, enum slots_area a, u64 bytes)
{
	if (a == AREA_FIRST)
		l->zeroed = l->size;
	l->offset[a] = l->size;
	l->size += bytes;
}

/* Rows of pairs are for the first step, ranks' own rows for the second. */
static void share_area(struct slots_layout *l, enum slots_area a, enum slots_area first)
{
	l->offset[a] = l->offset[first];
}

void slots_make(const struct comm_facts *f, struct slots *ret)
{
	*ret = (struct slots){
		.row = {
			[AREA_FLAGGED_FIRST] = 2ul * slots_set_bytes(f),
			[AREA_FLAGGED_SECOND] = 2ul * slots_set_bytes(f),
			[AREA_FLAGS] = (u64)f->piped_blocks * PIPED_FLAG_BYTES,
			[AREA_PAIR_FLAGS] = (u64)f->pair_blocks * sizeof(struct pair_flags),
			[AREA_MESSAGES] = (u64)f->pair_blocks * PAIR_SETS * slots_pair_set_bytes(f),
			[AREA_PAIRS] = (u64)f->pair_blocks * PAIR_SLOTS * f->pair_slot_bytes,
			[AREA_FIRST] = PIPED_FIRST_SLOTS * slots_turn_bytes(f),
			[AREA_SECOND] = PIPED_SECOND_SLOTS * slots_turn_bytes(f),
		}};
	for (int a = 0; a < AREA_N; a++) {
		add_area(&ret->inbox, (enum slots_area)a,
			 inbox_rows(f, (enum slots_area)a) * ret->row[a]);
		if (a == AREA_FLAGGED_SECOND)
			share_area(&ret->host, AREA_FLAGGED_SECOND, AREA_FLAGGED_FIRST);
		else
			add_area(&ret->host, (enum slots_area)a,
				 host_rows(f, (enum slots_area)a) * ret->row[a]);
	}
}

/* Of what rank `from` writes to rank `to`, which only one of them may ask for. */
static u64 slot_of(const struct comm_facts *f, const struct slots *s, enum slots_area a,
		   bool shared, u32 from, u32 to, const struct slots_seen *seen)
{
	if (is_direct(f, from, to))
		return seen->inbox[to] + s->inbox.offset[a] + inbox_row(a, from, to) * s->row[a];
	return seen->host + s->host.offset[a] +
	       (a == AREA_SECOND ? from : host_row(f, from, shared ? from : to)) * s->row[a];
}

void slots_ways(const struct comm_facts *f, const struct slots *s, enum slots_area area,
		bool shared, u32 me, const struct slots_seen *seen, struct collective_ways *ret)
{
	*ret = (struct collective_ways){0};
	for (u32 r = 0; r < f->n; r++) {
		ret->to[r] = slot_of(f, s, area, shared, me, r, seen);
		ret->from[r] = slot_of(f, s, area, shared, r, me, seen);
	}
}

u32 slots_host_rows(const struct comm_facts *f, const struct slots *s, u32 me,
		    const struct slots_seen *seen, u64 *ret)
{
	const unsigned first = host_row(f, me, 0);

	*ret = seen->host + s->host.offset[AREA_FLAGGED_FIRST] + first * s->row[AREA_FLAGGED_FIRST];
	return host_row(f, me, f->n) - first;
}
