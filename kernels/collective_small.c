// SPDX-License-Identifier: Apache-2.0
/*
 * The most common small all-reduces: sums and averages of float, half and bfloat16. The protocol,
 * the slots and the numbers of launches are those of collective_flagged.c, which does the rest. A
 * trial kernel needs half the time of collective_flagged for 8 bytes; the difference is thought to
 * be arguments and instructions, so here there are few of them.
 */
#include "kernels/collective_units.h"

struct small {
	const struct collective_small_args *a;
	struct patience patience;
	u64 slot; /* of the block, in each place */
	u32 epoch;
};

/* The units of this thread, as in collective_flagged.c. */
#define SMALL_DATA FLAGGED_DATA_BYTES(0)
#define SMALL_UNITS(i, offset, size)                                                               \
	ROLLED for (u64 i = thread_id(),                                                           \
		    offset = ((u64)block_id() * thread_count() + thread_id()) * SMALL_DATA;        \
		    offset < (size) || !i;                                                         \
		    i += thread_count(),                                                           \
		    offset += (u64)block_count() * thread_count() * SMALL_DATA)

INLINE u64 unit_at(const struct small *f, u64 index)
{
	return f->slot + index * FLAGGED_UNIT_BYTES;
}

INLINE u64 unit_bytes(u64 all, u64 begin, u64 piece, u64 offset)
{
	return part_of(all, begin, piece, offset, SMALL_DATA);
}

INLINE u32 is_other(const struct collective_small_args *a, u32 rank)
{
	return rank < a->n && rank != a->me;
}

/* Of all but me, in order. */
INLINE u32 other_rank(const struct collective_small_args *a, u32 k)
{
	return k + (k >= a->me);
}

/* As in collective_flagged.c. */
INLINE void small_clean(const struct small *f)
{
	ROLLED for (u32 k = 0; k < f->a->directs; k++)
	{
		clean_place(f->a->to[k] + f->slot, f->a->block_bytes);
		clean_place(f->a->to2[k] + f->slot, f->a->block_bytes);
	}
	ROLLED for (u32 k = 0; k < f->a->hosts; k++)
		clean_place(f->a->host_rows + 2ul * k * f->a->set_bytes + f->slot,
			    f->a->block_bytes);
	fence_system();
	block_barrier();
}

/* ---- waiting ---- */

/* 0: continue. Otherwise the launch is over for this thread. */
INLINE u32 small_look(struct small *f, u32 late)
{
	const u32 look = patience_look(&f->patience);

	if (look == WAIT_RUNNING)
		return 0;
	report_end(f->a->report, f->a->abort, f->a->number, look, late);
	block_give_up(f->a->state, look);
	return 1;
}

/*
 * Waits until the unit at `at` has come from every rank of the mask: all are loaded before any is
 * checked, so that their latencies overlap. 0: it gave up.
 */
INLINE u32 small_take(struct small *f, u64 from, u64 stride, u32 mask, u64 at, vector16 *words)
{
	ROLLED for (u32 polls = 0;; polls++)
	{
		vector16 units[COLLECTIVE_RANKS_MAX];
		u32 late = 0;

		EVERY_RANK(r)
		units[r] = mask >> r & 1 ? load_halves(from + r * stride + at) : vector_of(0, 0);
		EVERY_RANK(r)
		if (mask >> r & 1) {
			words[r] = data_of_unit(units[r]);
			late = has_come(units[r], f->epoch) ? late : r + 1;
		}
		if (!late)
			return 1;
		relax(polls);
		if (small_look(f, late - 1))
			return 0;
	}
}

/* ---- reducing ---- */

INLINE vector16 small_reduce(const struct collective_small_args *a, vector16 mine, vector16 *words)
{
	EVERY_RANK(r)
	words[r] = r == a->me ? mine : words[r];
	return sum_words(a->type, a->op, a->n, a->scale, words, (1u << a->n) - 1);
}

/* ---- one step ---- */

INLINE void small_one(struct small *f)
{
	const struct collective_small_args *a = f->a;
	const u32 others = ((1u << a->n) - 1) & ~(1u << a->me);

	SMALL_UNITS(i, offset, a->bytes)
	{
		const u64 n = unit_bytes(a->bytes, 0, a->bytes, offset);
		const vector16 word = load_unit_data(a->in + offset, n);

		ROLLED for (u32 k = 0; k < a->places; k++)
			store_unit(a->to[k] + unit_at(f, i), word, f->epoch);
	}
	block_set_epoch(a->state, f->epoch);
	SMALL_UNITS(i, offset, a->bytes)
	{
		const u64 n = unit_bytes(a->bytes, 0, a->bytes, offset);
		const vector16 mine = load_unit_data(a->in + offset, n);
		vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)};

		if (!small_take(f, a->from, a->from_stride, others, unit_at(f, i), words))
			return;
		if (n)
			store_unit_data(a->out + offset, small_reduce(a, mine, words), n);
	}
}

/* ---- two steps ---- */

INLINE u64 share_bytes(const struct collective_small_args *a, u32 rank, u64 offset)
{
	return unit_bytes(a->bytes, rank * a->piece, a->piece, offset);
}

/*
 * A block's first unit goes to every rank, even without data: see struct collective_flagged_args.
 */
INLINE void small_send_shares(const struct small *f, u64 i, u64 offset)
{
	const struct collective_small_args *a = f->a;

	ROLLED for (u32 k = 0; k < a->places; k++)
	{
		const u32 r = other_rank(a, k);
		const u64 n = share_bytes(a, r, offset);

		if (n || !i)
			store_unit(a->to[k] + unit_at(f, i),
				   load_unit_data(a->in + r * a->piece + offset, n), f->epoch);
	}
}

INLINE u32 small_reduce_share(struct small *f, u64 i, u64 offset)
{
	const struct collective_small_args *a = f->a;
	const u32 others = ((1u << a->n) - 1) & ~(1u << a->me);
	const u64 n = share_bytes(a, a->me, offset), at = a->me * a->piece + offset;
	const vector16 mine = load_unit_data(a->in + at, n);
	vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)}, sum;

	if (!n && i)
		return 1;
	if (!small_take(f, a->from, a->from_stride, others, unit_at(f, i), words))
		return 0;
	if (!n)
		return 1;
	sum = small_reduce(a, mine, words);
	ROLLED for (u32 k = 0; k < a->places2; k++)
		store_unit(a->to2[k] + unit_at(f, i), sum, f->epoch);
	store_unit_data(a->out + at, sum, n);
	return 1;
}

INLINE u32 small_place_shares(struct small *f, u64 i, u64 offset)
{
	const struct collective_small_args *a = f->a;
	vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)};
	u32 mask = 0;

	EVERY_RANK(r)
	if (is_other(a, r) && share_bytes(a, r, offset))
		mask |= 1u << r;
	if (!small_take(f, a->from2, a->from2_stride, mask, unit_at(f, i), words))
		return 0;
	EVERY_RANK(r)
	if (mask >> r & 1)
		store_unit_data(a->out + r * a->piece + offset, words[r],
				share_bytes(a, r, offset));
	return 1;
}

INLINE void small_two(struct small *f)
{
	const struct collective_small_args *a = f->a;

	SMALL_UNITS(i, offset, a->piece)
	small_send_shares(f, i, offset);
	block_set_epoch(a->state, f->epoch);
	SMALL_UNITS(i, offset, a->piece)
	if (!small_reduce_share(f, i, offset))
		return;
	SMALL_UNITS(i, offset, a->piece)
	if (!small_place_shares(f, i, offset))
		return;
}

KERNEL(collective_small)
{
	struct small f = {&a, patience_of(a.limit_ns, a.abort), 0, block_epoch(a.state)};

	if (!f.epoch)
		return;
	f.slot = (f.epoch & 1) * a.set_bytes + block_id() * a.block_bytes;
	if (must_clean(f.epoch))
		small_clean(&f);
	if (a.piece)
		small_two(&f);
	else
		small_one(&f);
}
