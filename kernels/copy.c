// SPDX-License-Identifier: Apache-2.0
/* Copies by loads and stores. */
#include "kernels/device.h"

/* 16-byte loads that a thread has in flight before its first store. */
#ifndef COPY_UNROLL
#define COPY_UNROLL 16
#endif

/* Of more than this a block, next to nothing is left in its multiprocessor's L1 (at most 256 KiB). */
#define L1_MAX (1ul << 20)

/* `n` elements of `type`, both addresses aligned to it. */
#define COPY_ELEMENTS(type, to, from, n)                                                           \
	do {                                                                                       \
		for (u64 i_ = grid_id(); i_ < (n); i_ += grid_count())                             \
			AT(type, (to) + i_ * sizeof(type)) =                                       \
				AT(const type, (from) + i_ * sizeof(type));                        \
	} while (0)

/*
 * A group of 32 threads moves a contiguous piece at a time: of the layouts tried over NVLink this one
 * is the fastest (docs/performance.md).
 */
static inline void copy_vectors(u64 to, u64 from, u64 n)
{
	const u32 lanes = thread_count() % 32 ? 1 : 32, lane = thread_id() % lanes;
	const u64 piece = (u64)COPY_UNROLL * lanes, pieces = n / piece;
	vector16 held[COPY_UNROLL];

	for (u64 i = grid_id() / lanes; i < pieces; i += grid_count() / lanes) {
		const u64 at = (i * piece + lane) * 16;

#pragma GCC unroll 16
		for (u32 k = 0; k < COPY_UNROLL; k++)
			held[k] = load_vector(from + at + k * lanes * 16);
#pragma GCC unroll 16
		for (u32 k = 0; k < COPY_UNROLL; k++)
			store_vector(to + at + k * lanes * 16, held[k]);
	}
	for (u64 i = pieces * piece + grid_id(); i < n; i += grid_count())
		store_vector(to + i * 16, load_vector(from + i * 16));
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
	u64 head = -a.target & ((1ul << shift) - 1), n, done, repeats = a.repeats ? a.repeats : 1;

	if (head > a.bytes)
		head = a.bytes;
	n = (a.bytes - head) >> shift;
	done = head + (n << shift);
	COPY_ELEMENTS(unsigned char, a.target, a.origin, head);
	if (shift == 4)
		for (u64 i = 0; i < repeats; i++) {
			if (i && a.bytes / block_count() < L1_MAX)
				fence_system(); /* else it is read from there and not over the link */
			copy_vectors(a.target + head, a.origin + head, n);
		}
	else if (shift == 3)
		COPY_ELEMENTS(u64, a.target + head, a.origin + head, n);
	else if (shift == 2)
		COPY_ELEMENTS(u32, a.target + head, a.origin + head, n);
	else
		COPY_ELEMENTS(unsigned char, a.target + head, a.origin + head, n);
	COPY_ELEMENTS(unsigned char, a.target + done, a.origin + done, a.bytes - done);
}
