/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks between the caller's memory and slots, by all threads of a block. */
#pragma once

#include "kernels/collective.h"

/* Vectors that a thread has under way. */
#define PIPED_UNROLL    4
#define EVERY_VECTOR(k) _Pragma("GCC unroll 4") for (u32 k = 0; k < PIPED_UNROLL; k++)

/*
 * Counted from the block's last thread. Its warp tells others what is done, which takes 2 us, while
 * the first one already looks for what they tell; one warp would do both in turn.
 */
INLINE u32 teller_id(void)
{
	return thread_count() - 1 - thread_id();
}

/* ---- data: by all threads of the block; slots are aligned, and as long as 16 bytes more would need ---- */

/* The part that can be moved 16 bytes at a time; the rest is moved by element. */
INLINE u32 whole_vectors(u64 address, u32 bytes)
{
	return address % 16 ? 0 : bytes / 16 * 16;
}

/*
 * Several loads are under way at a time: one after the other each takes as long as a whole batch.
 */
INLINE void copy_whole(u64 to, u64 from, u32 whole)
{
	const u32 each = thread_count() * 16;

	ROLLED for (u32 at = thread_id() * 16; at < whole; at += each * PIPED_UNROLL)
	{
		vector16 v[PIPED_UNROLL];

		EVERY_VECTOR(k)
		if (at + k * each < whole)
			v[k] = AT(const vector16, from + (at + k * each));
		EVERY_VECTOR(k)
		if (at + k * each < whole)
			store_vector(to + (at + k * each), v[k]);
	}
}

INLINE void copy_out(u64 slot, u64 from, u32 bytes)
{
	const u32 each = thread_count() * 16, whole = whole_vectors(from, bytes);

	copy_whole(slot, from, whole);
	ROLLED for (u32 at = whole + thread_id() * 16; at < bytes; at += each)
		store_vector(slot + at, load_part(from + at, bytes - at));
}

/* What others wrote, from byte `at` on; nothing behind `whole`. */
INLINE void load_batch(u64 slot, u32 at, u32 whole, vector16 *ret)
{
	const u32 each = thread_count() * 16;

	EVERY_VECTOR(k)
	if (at + k * each < whole)
		ret[k] = load_vector_system(slot + (at + k * each));
	else
		ret[k] = vector_of(0, 0);
}

INLINE void copy_in(u64 to, u64 slot, u32 bytes)
{
	const u32 each = thread_count() * 16, whole = whole_vectors(to, bytes);

	ROLLED for (u32 at = thread_id() * 16; at < whole; at += each * PIPED_UNROLL)
	{
		vector16 v[PIPED_UNROLL];

		load_batch(slot, at, whole, v);
		EVERY_VECTOR(k)
		if (at + k * each < whole)
			AT(vector16, to + (at + k * each)) = v[k];
	}
	ROLLED for (u32 at = whole + thread_id() * 16; at < bytes; at += each)
		store_part(to + at, load_vector_system(slot + at), bytes - at);
}

INLINE void copy_own(u64 to, u64 from, u32 bytes)
{
	const u32 each = thread_count() * 16, whole = whole_vectors(to | from, bytes);

	if (to == from)
		return;
	copy_whole(to, from, whole);
	ROLLED for (u32 at = whole + thread_id() * 16; at < bytes; at += each)
		store_part(to + at, load_part(from + at, bytes - at), bytes - at);
}
