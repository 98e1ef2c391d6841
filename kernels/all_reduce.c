// SPDX-License-Identifier: Apache-2.0
/* All-reduce by direct loads from and stores to all devices, between two barriers. */
#include "kernels/device.h"

/* Address of flag `sender` of the inbox of device `of`, for this block. */
static inline u64 flag_of(const struct all_reduce_args *a, u64 of, u64 sender, u32 phase)
{
	const u64 slot = ((u64)phase * block_count() + block_id()) * a->n + sender;

	return AT(const u64, a->flags + of * 8) + slot * 4;
}

/*
 * Waits until this block has come here on every device. Each writes into the others' inboxes and
 * reads its own. The flags' release and acquire at system scope, with the block's barriers around
 * them, order the data of all its threads.
 */
static inline u32 meet(const struct all_reduce_args *a, u32 phase, struct patience *p)
{
	u32 end = WAIT_DONE;

	fence_system();
	block_barrier();
	for (u64 d = thread_id(); d < a->n; d += thread_count())
		store_release(flag_of(a, d, a->me, phase), (u32)a->epoch);
	for (u64 d = thread_id(); d < a->n && end == WAIT_DONE; d += thread_count())
		end = wait_for(flag_of(a, a->me, d, phase), (u32)a->epoch, p);
	return block_end(end);
}

/* Where in u32[count] slice `index` of `n` begins; slices begin at a multiple of 16 bytes. */
static inline u64 slice_begin(u64 count, u64 index, u64 n)
{
	const u64 vectors = (count + 3) / 4, each = (vectors + n - 1) / n;
	const u64 begin = index * each * 4;

	return begin < count ? begin : count;
}

static inline void sum_elements(const struct all_reduce_args *a, u64 begin, u64 end)
{
	for (u64 i = begin + thread_id(); i < end; i += thread_count()) {
		u32 sum = 0;

		for (u64 d = 0; d < a->n; d++)
			sum += AT(const u32, AT(const u64, a->inputs + d * 8) + i * 4);
		for (u64 d = 0; d < a->n; d++)
			AT(u32, AT(const u64, a->outputs + d * 8) + i * 4) = sum;
	}
}

static inline void sum_vectors(const struct all_reduce_args *a, u64 begin, u64 end)
{
	for (u64 i = begin + 4ul * thread_id(); i < end; i += 4ul * thread_count()) {
		vector16 sum = {0, 0, 0, 0};

		for (u64 d = 0; d < a->n; d++)
			sum += load_vector(AT(const u64, a->inputs + d * 8) + i * 4);
		for (u64 d = 0; d < a->n; d++)
			store_vector(AT(const u64, a->outputs + d * 8) + i * 4, sum);
	}
}

static inline u32 all_aligned(const struct all_reduce_args *a)
{
	u64 bits = 0;

	for (u64 d = 0; d < a->n; d++)
		bits |= AT(const u64, a->inputs + d * 8) | AT(const u64, a->outputs + d * 8);
	return bits % 16 == 0;
}

/* This block's share of this device's slice. */
static inline void sum_share(const struct all_reduce_args *a)
{
	const u64 begin = slice_begin(a->count, a->me, a->n);
	const u64 count = slice_begin(a->count, a->me + 1, a->n) - begin;
	const u64 from = begin + slice_begin(count, block_id(), block_count());
	const u64 to = begin + slice_begin(count, block_id() + 1ul, block_count());
	const u64 middle = all_aligned(a) ? from + (to - from) / 4 * 4 : from;

	sum_vectors(a, from, middle);
	sum_elements(a, middle, to);
}

KERNEL(all_reduce)
{
	struct patience p = patience_of(a.limit_ns, a.abort);
	u32 end = meet(&a, 0, &p);

	if (end == WAIT_DONE) {
		sum_share(&a);
		end = meet(&a, 1, &p);
	}
	if (thread_id() == 0)
		store_release(a.report + block_id() * 4ul, end);
}
