/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of data that signal their own arrival (struct collective_flagged_args), and the number of a
 * block's launch.
 */
#pragma once

#include "kernels/collective.h"

/* For arrays that have to stay in registers. */
#define EVERY_RANK(r) _Pragma("GCC unroll 8") for (u32 r = 0; r < COLLECTIVE_RANKS_MAX; r++)

/* A stale flag would have to be older than all launches between two cleanings. */
#define CLEAN_EVERY (1u << 30)

/* Odd and even alternate; 0 is the value of memory that was never written. */
INLINE u32 epoch_after(u32 epoch)
{
	return epoch == ~0u ? 2 : epoch + 1;
}

INLINE u64 block_state(u64 states)
{
	return states + block_id() * sizeof(struct collective_state);
}

/* Of this launch; 0: an earlier one gave up. */
INLINE u32 block_epoch(u64 states)
{
	const u64 state = AT(const u64, block_state(states)); /* one load */

	return (u32)(state >> 32) > WAIT_DONE ? 0 : epoch_after((u32)state);
}

/* ---- sums and averages (collective_sums_fast()) of one unit's elements ---- */

/* Of a type that the compiler knows. The ranks of the mask, in ascending order. */
INLINE u64 sum_words_of(u32 type, u32 op, u32 n, u64 scale, const u64 *words, u32 mask)
{
	const u64 none = 0x8000000080000000ul; /* -0.0f twice: the neutral element of addition */
	struct total t = {{none, none, none, none}};
	vector16 v;

	EVERY_RANK(r)
	if (mask >> r & 1)
		t = total_add(type, REDUCE_SUM, t, total_of(type, vector_of(words[r], 0)));
	v = total_end(type, op, n, scale, t);
	return v[0] | (u64)v[1] << 32;
}

INLINE u64 sum_words(u32 type, u32 op, u32 n, u64 scale, const u64 *words, u32 mask)
{
	if (type == ELEMENT_FLOAT32)
		return sum_words_of(ELEMENT_FLOAT32, op, n, scale, words, mask);
	if (type == ELEMENT_BFLOAT16)
		return sum_words_of(ELEMENT_BFLOAT16, op, n, scale, words, mask);
	return sum_words_of(ELEMENT_FLOAT16, op, n, scale, words, mask);
}

/* ---- the number of a launch ---- */

/* For the next launch. Called after sending, when the block waits for others anyway. */
INLINE void block_set_epoch(u64 states, u32 epoch)
{
	block_barrier(); /* all threads have read the old one */
	if (thread_id() == 0)
		AT(u32, block_state(states) + __builtin_offsetof(struct collective_state, epoch)) =
			epoch;
}

/* Any thread that gave up: the next launches do nothing. */
INLINE void block_give_up(u64 states, u32 end)
{
	AT(u32, block_state(states) + __builtin_offsetof(struct collective_state, end)) = end;
}

INLINE u32 must_clean(u32 epoch)
{
	return epoch % CLEAN_EVERY < 4;
}

INLINE void clean_place(u64 place, u32 used)
{
	ROLLED for (u32 i = thread_id(); used && i < FLAGGED_UNITS; i += thread_count())
		store_unit(place + (u64)i * FLAGGED_UNIT_BYTES, 0, 0);
}
