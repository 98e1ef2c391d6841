/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units of data that signal their own arrival (struct collective_flagged_args), and the number of a
 * block's launch.
 */
#pragma once

#include "kernels/collective.h"

/* Masks of ranks for which a kernel is compiled. */
#define TWO_RANKS  3u
#define FOUR_RANKS 15u
#define ALL_RANKS  0xffu

/* For arrays that have to stay in registers. */
#define EVERY_RANK(r) _Pragma("GCC unroll 8") for (u32 r = 0; r < COLLECTIVE_RANKS_MAX; r++)

INLINE u32 least(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* Bytes from `offset` on. */
INLINE u32 left_of(u32 size, u32 offset)
{
	return offset < size ? size - offset : 0;
}

/* part_of() with 32 bits, not cut to a unit: what is left of a piece from `offset` on. */
INLINE u32 left_of_part(u32 all, u32 begin, u32 piece, u32 offset)
{
	return left_of(least(left_of(all, begin), piece), offset);
}

/* ---- units: see struct collective_flagged_args ---- */

/* The fourth word of the data is 0. */
INLINE void store_unit(u64 address, vector16 data, u32 epoch)
{
	const vector16 v = {data[0], (data[1] & 0xffff) | epoch << 16, data[2],
			    data[1] >> 16 | epoch << 16};

	store_halves(address, v);
}

INLINE vector16 data_of_unit(vector16 unit)
{
	const vector16 v = {unit[0], (unit[1] & 0xffff) | unit[3] << 16, unit[2], 0};

	return v;
}

INLINE u32 has_come(vector16 unit, u32 epoch)
{
	return unit[1] >> 16 == epoch && unit[3] >> 16 == epoch;
}

INLINE u32 is_in_words(u64 address, u64 n)
{
	return (address | n) % 4 == 0;
}

/* Up to three words, of n bytes. */
INLINE vector16 load_unit_words(u64 address, u64 n)
{
	vector16 v = vector_of(0, 0);

	if (n)
		v[0] = AT(const u32, address);
	if (n > 4)
		v[1] = AT(const u32, address + 4);
	if (n > 8)
		v[2] = AT(const u32, address + 8);
	return v;
}

INLINE void store_unit_words(u64 address, vector16 v, u64 n)
{
	if (n)
		AT(u32, address) = v[0];
	if (n > 4)
		AT(u32, address + 4) = v[1];
	if (n > 8)
		AT(u32, address + 8) = v[2];
}

/*
 * The caller's data of a unit, at any address: n bytes, at most 12. (load_part is for the 16 of a
 * vector.) In words, if that is possible: little code is in the way of small operations then.
 */
INLINE vector16 load_unit_data(u64 address, u64 n)
{
	vector16 v = vector_of(0, 0);
	u64 low = 0;

	if (is_in_words(address, n))
		return load_unit_words(address, n);
	ROLLED for (u64 k = 0; k < n && k < 8; k++) low |= (u64)AT(const unsigned char, address + k)
							   << 8 * k;
	ROLLED for (u64 k = 8; k < n; k++) v[2] |= (u32)AT(const unsigned char, address + k)
						   << 8 * (k - 8);
	v[0] = (u32)low;
	v[1] = (u32)(low >> 32);
	return v;
}

INLINE void store_unit_data(u64 address, vector16 v, u64 n)
{
	const u64 low = v[0] | (u64)v[1] << 32;

	if (is_in_words(address, n)) {
		store_unit_words(address, v, n);
		return;
	}
	ROLLED for (u64 k = 0; k < n; k++) AT(unsigned char, address + k) =
		(unsigned char)(k < 8 ? low >> 8 * k : v[2] >> 8 * (k - 8));
}

/*
 * Of the `left` bytes at `address`, of which there may be more, those of a unit of `most`. words: a
 * constant, is_in_words() and units of FLAGGED_DATA_BYTES(0), at which load_unit_words() stops.
 */
INLINE vector16 load_unit(u64 address, u32 left, u32 most, u32 words)
{
	return words ? load_unit_words(address, left) : load_unit_data(address, least(left, most));
}

INLINE void store_unit_of(u64 address, vector16 v, u32 left, u32 most, u32 words)
{
	if (words)
		store_unit_words(address, v, left);
	else
		store_unit_data(address, v, least(left, most));
}

/* ---- the number of a round; most launches have one ---- */

/* A stale flag would have to be older than all rounds between two cleanings. */
#define CLEAN_EVERY (1u << 14)
#define LAST_EPOCH  0xffffu

/* Odd and even alternate; 0 is the value of memory that was never written. */
INLINE u32 epoch_after(u32 epoch)
{
	return epoch == LAST_EPOCH ? 2 : epoch + 1;
}

INLINE u64 block_state(u64 states)
{
	return states + block_id() * sizeof(struct collective_state);
}

/* Of the first round of this launch; 0: an earlier launch gave up. */
INLINE u32 block_epoch(u64 states)
{
	const u64 state = AT(const u64, block_state(states)); /* one load */

	return (u32)(state >> 32) > WAIT_DONE ? 0 : epoch_after((u32)state);
}

/* ---- sums and averages (collective_sums_fast()) of one unit's elements ---- */

/* Of a type that the compiler knows. The ranks of the mask, in ascending order. */
INLINE vector16 sum_words_of(u32 type, u32 op, u32 n, u64 scale, const vector16 *words, u32 mask)
{
	const u64 none = 0x8000000080000000ul; /* -0.0f twice: the neutral element of addition */
	struct total t = {{none, none, none, none}};

	EVERY_RANK(r)
	if (mask >> r & 1)
		t = total_add(type, REDUCE_SUM, t, total_of(type, words[r]));
	return total_end(type, op, n, scale, t);
}

INLINE vector16 sum_words(u32 type, u32 op, u32 n, u64 scale, const vector16 *words, u32 mask)
{
	if (type == ELEMENT_FLOAT32)
		return sum_words_of(ELEMENT_FLOAT32, op, n, scale, words, mask);
	if (type == ELEMENT_BFLOAT16)
		return sum_words_of(ELEMENT_BFLOAT16, op, n, scale, words, mask);
	return sum_words_of(ELEMENT_FLOAT16, op, n, scale, words, mask);
}

/* For the next round. Called after sending, when the block waits for others anyway. */
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

INLINE void clean_place(u64 place, u32 bytes)
{
	ROLLED for (u32 at = thread_id() * 16; at < bytes; at += thread_count() * 16)
		store_halves(place + at, vector_of(0, 0));
}
