// SPDX-License-Identifier: Apache-2.0
/*
 * The most common small all-reduces: sums and averages of float, half and bfloat16. The protocol,
 * the slots and the numbers of launches are those of collective_flagged.c, which does the rest.
 * Between H200 a third of the time for 8 bytes is instructions, so here there are few of them.
 */
#include "kernels/collective_units.h"

/*
 * small_run is compiled for two ranks, for up to four, and for any number: the compiler knows which
 * bits `all` can have, and `words`, and leaves out the rest.
 */
struct small {
	const struct collective_small_args *a;
	u32 all;          /* a bit for each rank */
	u32 words;        /* addresses and bytes are multiples of 4 */
	u32 bytes, piece; /* less than 4 GiB */
	u32 epoch;
	u64 slot;       /* of the block, in each place */
	vector16 first; /* in one step, what the thread sends first */
	struct patience patience;
};

/* The units of this thread, as in collective_flagged.c. */
#define SMALL_DATA  FLAGGED_DATA_BYTES(0)
#define SMALL_FIRST ((block_id() * thread_count() + thread_id()) * SMALL_DATA)
#define SMALL_UNITS(i, offset, size)                                                               \
	ROLLED for (u32 i = thread_id(), offset = SMALL_FIRST; offset < (size) || !i;              \
		    i += thread_count(), offset += block_count() * thread_count() * SMALL_DATA)

INLINE u64 unit_at(const struct small *f, u32 index)
{
	return f->slot + (u64)index * FLAGGED_UNIT_BYTES;
}

/* Of the `left` bytes at `address`, those of a unit. */
INLINE vector16 small_load(const struct small *f, u64 address, u32 left)
{
	return load_unit(address, left, SMALL_DATA, f->words);
}

INLINE void small_store(const struct small *f, u64 address, vector16 v, u32 left)
{
	store_unit_of(address, v, left, SMALL_DATA, f->words);
}

INLINE u32 others_of(const struct small *f)
{
	return f->all & ~(1u << f->a->me);
}

/* The k-th of all but me. */
INLINE u32 other_rank(const struct small *f, u32 k)
{
	return k + (k >= f->a->me);
}

/* Of to or to2. */
INLINE u32 places_of(const struct small *f, u32 places)
{
	return f->all == TWO_RANKS ? 1 : places;
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

/* As small_take, of the only other rank. */
INLINE u32 small_take_one(struct small *f, u64 from, u64 stride, u64 at, vector16 *words)
{
	const u32 other = 1 - f->a->me;
	vector16 unit;

	ROLLED for (u32 polls = 0;; polls++)
	{
		unit = load_halves(from + other * stride + at);
		if (has_come(unit, f->epoch))
			break;
		relax(polls);
		if (small_look(f, other))
			return 0;
	}
	words[0] = words[1] = data_of_unit(unit);
	return 1;
}

/*
 * Waits until the unit at `at` has come from every rank of the mask: all are loaded before any is
 * checked, so that their latencies overlap. 0: it gave up.
 */
INLINE u32 small_take(struct small *f, u64 from, u64 stride, u32 mask, u64 at, vector16 *words)
{
	if (f->all == TWO_RANKS)
		return !mask || small_take_one(f, from, stride, at, words);
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

INLINE vector16 small_reduce(const struct small *f, vector16 mine, vector16 *words)
{
	const struct collective_small_args *a = f->a;

	EVERY_RANK(r)
	words[r] = r == a->me ? mine : words[r];
	return sum_words(a->type, a->op, a->n, a->scale, words, f->all);
}

/* ---- one step ---- */

INLINE vector16 own_unit(const struct small *f, u32 offset)
{
	return small_load(f, f->a->in + offset, left_of(f->bytes, offset));
}

INLINE void small_one(struct small *f)
{
	const struct collective_small_args *a = f->a;

	SMALL_UNITS(i, offset, f->bytes)
	{
		const vector16 word = i == thread_id() ? f->first : own_unit(f, offset);

		ROLLED for (u32 k = 0; k < places_of(f, a->places); k++)
			store_unit(a->to[k] + unit_at(f, i), word, f->epoch);
	}
	block_set_epoch(a->state, f->epoch);
	SMALL_UNITS(i, offset, f->bytes)
	{
		const vector16 mine = own_unit(f, offset);
		vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)};

		if (!small_take(f, a->from, a->from_stride, others_of(f), unit_at(f, i), words))
			return;
		small_store(f, a->out + offset, small_reduce(f, mine, words),
			    left_of(f->bytes, offset));
	}
}

/* ---- two steps ---- */

/* Of a rank's share, from `offset` on. */
INLINE u32 share_left(const struct small *f, u32 rank, u32 offset)
{
	return left_of_part(f->bytes, rank * f->piece, f->piece, offset);
}

struct share {
	u32 left;
	vector16 word;
};

/* What goes to the k-th other rank; to none behind the last one. */
INLINE struct share share_at(const struct small *f, u32 k, u32 offset)
{
	const u32 r = other_rank(f, k);
	const u32 left = k < places_of(f, f->a->places) ? share_left(f, r, offset) : 0;

	return (struct share){left, small_load(f, f->a->in + r * f->piece + offset, left)};
}

/*
 * A block's first unit goes to every rank, even without data: see struct collective_flagged_args.
 * The next one is loaded while one goes out.
 */
INLINE void small_send_shares(const struct small *f, u32 i, u32 offset)
{
	const struct collective_small_args *a = f->a;
	struct share now = share_at(f, 0, offset);

	ROLLED for (u32 k = 0; k < places_of(f, a->places); k++)
	{
		const struct share next = share_at(f, k + 1, offset);

		if (now.left || !i)
			store_unit(a->to[k] + unit_at(f, i), now.word, f->epoch);
		now = next;
	}
}

INLINE u32 small_reduce_share(struct small *f, u32 i, u32 offset)
{
	const struct collective_small_args *a = f->a;
	const u32 left = share_left(f, a->me, offset), at = a->me * f->piece + offset;
	const vector16 mine = small_load(f, a->in + at, left);
	vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)}, sum;

	if (!left && i)
		return 1;
	if (!small_take(f, a->from, a->from_stride, others_of(f), unit_at(f, i), words))
		return 0;
	if (!left)
		return 1;
	sum = small_reduce(f, mine, words);
	ROLLED for (u32 k = 0; k < places_of(f, a->places2); k++)
		store_unit(a->to2[k] + unit_at(f, i), sum, f->epoch);
	small_store(f, a->out + at, sum, left);
	return 1;
}

INLINE u32 small_place_shares(struct small *f, u32 i, u32 offset)
{
	const struct collective_small_args *a = f->a;
	vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)};
	u32 mask = 0;

	EVERY_RANK(r)
	if (others_of(f) >> r & 1 && share_left(f, r, offset))
		mask |= 1u << r;
	if (!small_take(f, a->from2, a->from2_stride, mask, unit_at(f, i), words))
		return 0;
	EVERY_RANK(r)
	if (mask >> r & 1)
		small_store(f, a->out + r * f->piece + offset, words[r], share_left(f, r, offset));
	return 1;
}

INLINE void small_two(struct small *f)
{
	SMALL_UNITS(i, offset, f->piece)
	small_send_shares(f, i, offset);
	block_set_epoch(f->a->state, f->epoch);
	SMALL_UNITS(i, offset, f->piece)
	if (!small_reduce_share(f, i, offset))
		return;
	SMALL_UNITS(i, offset, f->piece)
	if (!small_place_shares(f, i, offset))
		return;
}

INLINE void small_run(const struct collective_small_args *a, u32 all, u32 words)
{
	struct small f = {.a = a,
			  .all = all,
			  .words = words,
			  .bytes = (u32)a->bytes,
			  .piece = (u32)a->piece,
			  .patience = patience_of(a->limit_ns, a->abort)};

	/* Before the epoch, so that both take the time of one load. In two steps nothing is gained. */
	f.first = small_load(&f, a->in + SMALL_FIRST, f.piece ? 0 : left_of(f.bytes, SMALL_FIRST));
	f.epoch = block_epoch(a->state);
	if (!f.epoch)
		return;
	f.slot = (f.epoch & 1) * a->set_bytes + block_id() * a->block_bytes;
	if (must_clean(f.epoch))
		small_clean(&f);
	if (f.piece)
		small_two(&f);
	else
		small_one(&f);
}

KERNEL(collective_small)
{
	const u32 all = (1u << a.n) - 1;

	if (a.n > 4 || !is_in_words(a.in | a.out, a.bytes | a.piece))
		small_run(&a, all, 0);
	else if (a.n == 2)
		small_run(&a, TWO_RANKS, 1);
	else
		small_run(&a, all & FOUR_RANKS, 1);
}
