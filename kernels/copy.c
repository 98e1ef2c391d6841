// SPDX-License-Identifier: Apache-2.0
/* Copies by loads and stores. */
#include "kernels/device.h"

/* 16-byte loads that a thread has in flight before its first store. */
#ifndef COPY_UNROLL
#define COPY_UNROLL 16
#endif

/*
 * A block that reads more than this leaves almost nothing reusable in its multiprocessor's L1 (at
 * most 256 KiB).
 */
#define L1_MAX (1ul << 20)

/* `n` elements of `type`, both addresses aligned to it. */
#define COPY_ELEMENTS(type, to, from, n)                                                           \
	do {                                                                                       \
		for (u64 i_ = grid_id(); i_ < (n); i_ += grid_count())                             \
			AT(type, (to) + i_ * sizeof(type)) =                                       \
				AT(const type, (from) + i_ * sizeof(type));                        \
	} while (0)

/* Threads that move a piece together. */
#define LANES (thread_count() % 32 ? 1u : 32u)

/* One piece of COPY_UNROLL vectors a thread, all of them loaded before the first is stored. */
static inline void copy_piece(u64 to, u64 from, u32 lanes)
{
	vector16 held[COPY_UNROLL];

#pragma GCC unroll 16
	for (u32 k = 0; k < COPY_UNROLL; k++)
		held[k] = load_vector(from + k * lanes * 16);
#pragma GCC unroll 16
	for (u32 k = 0; k < COPY_UNROLL; k++)
		store_vector(to + k * lanes * 16, held[k]);
}

/*
 * A group of 32 threads moves a contiguous piece at a time, and the pieces of all repetitions are
 * distributed as one sequence, so that the groups differ by at most one piece: of the layouts tried
 * over NVLink this one reads fastest (docs/performance.md). Groups beyond the number of pieces stay
 * idle, so that repetitions never overlap. `reread`: nothing is read from a cache that an earlier
 * one filled.
 */
static inline void copy_pieces(u64 to, u64 from, u64 pieces, u64 repeats, u32 reread)
{
	const u32 lanes = LANES, lane = thread_id() % lanes;
	const u64 all = grid_count() / lanes, groups = all < pieces ? all : pieces;
	const u64 first = grid_id() / lanes, end = first < groups ? pieces * repeats : 0;

	for (u64 i = first, piece = first; i < end; i += groups, piece += groups) {
		u64 at;

		if (piece >= pieces) {
			piece -= pieces;
			if (reread)
				fence_system();
		}
		at = (piece * COPY_UNROLL * lanes + lane) * 16;
		copy_piece(to + at, from + at, lanes);
	}
}

static inline void copy_vectors(u64 to, u64 from, u64 n, u64 repeats, u32 reread)
{
	const u64 size = (u64)COPY_UNROLL * LANES, rest = n / size * size;

	copy_pieces(to, from, n / size, repeats, reread);
	for (u64 k = 0; rest < n && k < repeats; k++) {
		if (k && reread)
			fence_system();
		for (u64 i = rest + grid_id(); i < n; i += grid_count())
			store_vector(to + i * 16, load_vector(from + i * 16));
	}
}

/* log2 of the widest element to which both addresses can be aligned at once. */
static inline u32 common_shift(u64 to, u64 from)
{
	const u64 differ = to ^ from;

	return differ % 16 == 0 ? 4 : differ % 8 == 0 ? 3 : differ % 4 == 0 ? 2 : 0;
}

KERNEL(copy)
{
	const u32 shift = common_shift(a.target, a.origin);
	u64 head = -a.target & ((1ul << shift) - 1), n, done;

	if (head > a.bytes)
		head = a.bytes;
	n = (a.bytes - head) >> shift;
	done = head + (n << shift);
	COPY_ELEMENTS(unsigned char, a.target, a.origin, head);
	if (shift == 4)
		copy_vectors(a.target + head, a.origin + head, n, a.repeats ? a.repeats : 1,
			     a.bytes / block_count() < L1_MAX);
	else if (shift == 3)
		COPY_ELEMENTS(u64, a.target + head, a.origin + head, n);
	else if (shift == 2)
		COPY_ELEMENTS(u32, a.target + head, a.origin + head, n);
	else
		COPY_ELEMENTS(unsigned char, a.target + head, a.origin + head, n);
	COPY_ELEMENTS(unsigned char, a.target + done, a.origin + done, a.bytes - done);
}
