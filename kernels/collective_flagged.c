// SPDX-License-Identifier: Apache-2.0
/*
 * Small collective operations: data that signals its own arrival, with nothing else to wait for.
 *
 * Most of the time they take goes into instructions, so flagged_run is compiled three times: for two
 * ranks and for up to four, both for simple operations alone, and for everything else. The compiler
 * knows `all` and `simple` then, and leaves out the rest.
 */
#include "kernels/collective_units.h"

/* State of one thread of a block. */
struct flagged {
	const struct collective_flagged_args *a;
	u32 all;              /* a bit for each rank that there can be: a constant */
	u32 simple;           /* is_simple(): a constant */
	u32 data;             /* bytes of a unit */
	u32 begin, end;       /* of the round, in each piece: bytes, less than 4 GiB */
	u32 epoch, how, late; /* how: enum wait_end */
	u64 slot;             /* of the block, in each place */
	struct patience patience;
};

/* Of arrays that stay in registers, the elements of the ranks that there can be. */
#define EVERY_MEMBER(f, r) EVERY_RANK(r) if ((f)->all >> r & 1)

INLINE u64 flagged_at(const struct flagged *f, u32 index)
{
	return f->slot + (u64)index * FLAGGED_UNIT_BYTES;
}

/*
 * All slots of this set that this rank ever writes, because the next operations may use others; no
 * rank reads them any more.
 */
INLINE void clean(const struct flagged *f)
{
	const struct collective_flagged_args *a = f->a;

	ROLLED for (u32 r = 0; r < a->s.n; r++) if (a->direct >> r & 1)
	{
		clean_place(a->first.to[r] + f->slot, a->block_bytes);
		clean_place(a->second.to[r] + f->slot, a->block_bytes);
	}
	ROLLED for (u32 k = 0; k < a->hosts; k++)
		clean_place(a->host_rows + 2ul * k * a->set_bytes + f->slot, a->block_bytes);
	fence_system();
	block_barrier();
}

/* ---- the caller's data ---- */

/*
 * Of a rank's piece, from `offset` on. 32 bits are enough for what has room in the slots of all
 * rounds: can() in src/collective/choose.c.
 */
INLINE u32 left_of_piece(const struct flagged *f, u64 bytes, u64 stride, u32 rank, u32 offset)
{
	const struct collective_shape *s = &f->a->s;

	return left_of_part((u32)bytes, piece_place(s, rank) * (u32)stride, (u32)s->piece, offset);
}

INLINE u32 left_in(const struct flagged *f, u32 rank, u32 offset)
{
	return left_of_piece(f, f->a->s.in_bytes, f->a->s.in_stride, rank, offset);
}

INLINE u32 left_out(const struct flagged *f, u32 rank, u32 offset)
{
	return left_of_piece(f, f->a->s.out_bytes, f->a->s.out_stride, rank, offset);
}

/* Of the `left` bytes. */
INLINE vector16 load_in(const struct flagged *f, u32 rank, u32 offset, u32 left)
{
	return load_unit(piece_in(&f->a->s, rank) + offset, left, f->data, f->simple);
}

INLINE void place_word(const struct flagged *f, u32 rank, u32 offset, vector16 v)
{
	store_unit_of(piece_out(&f->a->s, rank) + offset, v, left_out(f, rank, offset), f->data,
		      f->simple);
}

/* ---- sending ---- */

/* A block's first unit goes to every rank, even without data. */
INLINE u32 goes_to(const struct flagged *f, u32 rank, u32 index, u32 left)
{
	const struct collective_shape *s = &f->a->s;

	return (left && s->push >> rank & 1) || (!index && s->tokens >> rank & 1);
}

INLINE void send_to(const struct flagged *f, u32 rank, u32 index, vector16 word)
{
	store_unit(f->a->first.to[rank] + flagged_at(f, index), word, f->epoch);
}

/* What goes to each rank at `offset`; what is the same for all is loaded once. All words are set. */
INLINE void load_words(const struct flagged *f, u32 offset, vector16 *words)
{
	const struct collective_shape *s = &f->a->s;
	const u32 same = !s->in_stride;
	const vector16 first =
		load_in(f, s->me, offset, same && s->push ? left_in(f, s->me, offset) : 0);

	EVERY_RANK(r)
	{
		const u32 own = !same && f->all & s->push & 1u << r;

		words[r] = same ? first : load_in(f, r, offset, own ? left_in(f, r, offset) : 0);
	}
}

INLINE void send_words(const struct flagged *f, u32 index, u32 offset, const vector16 *words)
{
	EVERY_MEMBER(f, r)
	if (goes_to(f, r, index, left_in(f, r, offset)))
		send_to(f, r, index, words[r]);
}

/* One after the other, where the code for a rank is long. */
INLINE void send_each(const struct flagged *f, u32 index, u32 offset)
{
	ROLLED for (u32 r = 0; r < f->a->s.n; r++)
	{
		const u32 left = f->a->s.push >> r & 1 ? left_in(f, r, offset) : 0;

		if (goes_to(f, r, index, left))
			send_to(f, r, index, load_in(f, r, offset, left));
	}
}

INLINE void send_unit(const struct flagged *f, u32 index, u32 offset, u32 loaded, vector16 *words)
{
	if (!f->simple) {
		send_each(f, index, offset);
		return;
	}
	if (!loaded)
		load_words(f, offset, words);
	send_words(f, index, offset, words);
}

/* ---- waiting ---- */

/*
 * Waits until the unit at `at` has come from every rank of the mask: all are loaded before any is
 * checked, so that their latencies overlap.
 */
INLINE void take_unit(struct flagged *f, const struct collective_ways *ways, u32 mask, u64 at,
		      vector16 *words)
{
	ROLLED for (u32 polls = 0; f->how == WAIT_DONE; polls++)
	{
		vector16 units[COLLECTIVE_RANKS_MAX];
		u32 late = 0, look;

		EVERY_MEMBER(f, r)
		units[r] = mask >> r & 1 ? load_halves(ways->from[r] + at) : vector_of(0, 0);
		EVERY_MEMBER(f, r)
		if (mask >> r & 1) {
			words[r] = data_of_unit(units[r]);
			late = has_come(units[r], f->epoch) ? late : r + 1;
		}
		if (!late)
			return;
		f->late = late - 1;
		relax(polls);
		look = patience_look(&f->patience);
		f->how = look == WAIT_RUNNING ? WAIT_DONE : look;
	}
}

/* ---- reducing ---- */

/* That of the mask's only rank, without an array in memory: a chain of selections. */
INLINE vector16 pick(const struct flagged *f, const vector16 *words, u32 mask)
{
	vector16 word = vector_of(0, 0);

	EVERY_MEMBER(f, r)
	word = mask >> r & 1 ? words[r] : word;
	return word;
}

/* The ranks of the mask, in ascending order. */
INLINE vector16 reduce_any_words(const struct flagged *f, const vector16 *words, u32 mask)
{
	const struct collective_shape *s = &f->a->s;
	struct total t = total_of(s->type, vector_of(0, 0));
	u32 first = 1;

	ROLLED for (u32 r = 0; r < s->n; r++)
	{
		struct total next;

		if (!(mask >> r & 1))
			continue;
		next = total_of(s->type, pick(f, words, 1u << r));
		t = first ? next : total_add(s->type, s->op, t, next);
		first = 0;
	}
	return total_end(s->type, s->op, s->n, s->scale, t);
}

INLINE vector16 reduce_words(const struct flagged *f, const vector16 *words, u32 mask)
{
	const struct collective_shape *s = &f->a->s;

	if (is_passed_on(s))
		return pick(f, words, mask);
	if (f->simple || collective_sums_fast(s->type, s->op))
		return sum_words(s->type, s->op, s->n, s->scale, words, mask);
	return reduce_any_words(f, words, mask);
}

/* Ranks of the mask that have something at `offset` for the output. */
INLINE u32 sending(const struct flagged *f, u32 mask, u32 offset)
{
	u32 those = 0;

	EVERY_MEMBER(f, r)
	those |= (u32)(left_out(f, r, offset) != 0) << r;
	return mask & those;
}

/*
 * Nothing is stored of a rank that has nothing at `offset`. As with sending: one after the other,
 * where the code for a rank is long.
 */
INLINE void place_words(const struct flagged *f, const vector16 *words, u32 mask, u32 offset)
{
	if (f->simple) {
		EVERY_MEMBER(f, r)
		if (mask >> r & 1)
			place_word(f, r, offset, words[r]);
		return;
	}
	ROLLED for (u32 r = 0; r < f->a->s.n; r++)
	{
		if (mask >> r & 1)
			place_word(f, r, offset, pick(f, words, 1u << r));
	}
}

/* The reduced elements go to the output and on to others. */
INLINE void reduce_unit(const struct flagged *f, vector16 *words, vector16 mine, u32 index,
			u32 offset)
{
	const struct collective_shape *s = &f->a->s;
	vector16 sum;

	EVERY_MEMBER(f, r)
	words[r] = r == s->me ? mine : words[r];
	sum = reduce_words(f, words, sources_of(s));
	EVERY_MEMBER(f, r)
	if (s->push2 >> r & 1)
		store_unit(f->a->second.to[r] + flagged_at(f, index), sum, f->epoch);
	if (s->keep)
		place_word(f, s->me, offset, sum);
}

/* ---- receiving ---- */

INLINE void copy_unit(const struct flagged *f, u32 offset)
{
	const struct collective_shape *s = &f->a->s;

	ROLLED for (u32 r = 0; r < s->n; r++)
	{
		if (s->copied >> r & 1 && piece_in(s, r) != piece_out(s, r))
			place_word(f, r, offset, load_in(f, r, offset, left_in(f, r, offset)));
	}
}

INLINE void receive_unit(struct flagged *f, u32 index, u32 offset)
{
	const struct collective_shape *s = &f->a->s;
	const u32 reduced = s->op != REDUCE_OP_N;
	const u32 left = reduced ? left_in(f, s->me, offset) : 0;
	const u32 mask = reduced ? (left ? s->pull : 0) : sending(f, s->pull, offset);
	vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)};
	/* Loaded before it waits. */
	const vector16 mine = load_in(f, s->me, offset, s->own ? left : 0);

	take_unit(f, &f->a->first, index ? mask : ((1u << s->n) - 1) & ~(1u << s->me),
		  flagged_at(f, index), words);
	if (f->how != WAIT_DONE)
		return;
	if (s->copied)
		copy_unit(f, offset);
	if (!reduced)
		place_words(f, words, s->pull, offset);
	else if (left && (s->keep || s->push2))
		reduce_unit(f, words, mine, index, offset);
}

INLINE void receive_sums(struct flagged *f, u32 index, u32 offset)
{
	const u32 mask = sending(f, f->a->s.pull2, offset);
	vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)};

	take_unit(f, &f->a->second, mask, flagged_at(f, index), words);
	if (f->how == WAIT_DONE)
		place_words(f, words, f->a->s.pull2, offset);
}

/* ---- rounds ---- */

#define UNITS_STEP(f) (block_count() * thread_count() * (f)->data)

/* Of this thread, in a round. */
INLINE u32 first_unit(const struct flagged *f)
{
	return f->begin + (block_id() * thread_count() + thread_id()) * f->data;
}

/* The units of this thread in a round; the block's first one exists even without data. */
#define EVERY_UNIT(f, i, offset)                                                                   \
	ROLLED for (u32 i = thread_id(), offset = first_unit(f); offset < (f)->end || !i;          \
		    i += thread_count(), offset += UNITS_STEP(f))

INLINE void begin_round(struct flagged *f, u32 begin)
{
	const u32 left = left_of((u32)f->a->s.piece, begin);

	f->begin = begin;
	f->end = begin + least(left, (u32)f->a->round_bytes);
}

/* loaded: `words` are those of this thread's first unit. */
INLINE void send_round(struct flagged *f, u32 loaded, vector16 *words)
{
	f->slot = (f->epoch & 1) * f->a->set_bytes + block_id() * f->a->block_bytes;
	if (must_clean(f->epoch))
		clean(f);
	EVERY_UNIT(f, i, offset)
	send_unit(f, i, offset, loaded && i == thread_id(), words);
}

INLINE void take_round(struct flagged *f)
{
	const struct collective_shape *s = &f->a->s;

	f->patience = patience_of(s->limit_ns, s->abort);
	EVERY_UNIT(f, i, offset)
	receive_unit(f, i, offset);
	if (s->push2 | s->pull2)
		EVERY_UNIT(f, i, offset)
	receive_sums(f, i, offset);
	if (f->how == WAIT_DONE)
		return;
	report_end(s->report, s->abort, s->number, f->how, f->late);
	block_give_up(s->state, f->how);
}

/*
 * Past the barrier all threads have taken what the last round brought, as they have when a launch
 * ends.
 */
INLINE void flagged_run(const struct collective_flagged_args *a, u32 all, u32 simple)
{
	const u32 wide = !simple && collective_is_wide(a->s.type, a->s.op);
	struct flagged f = {.a = a,
			    .all = all,
			    .simple = simple,
			    .data = FLAGGED_DATA_BYTES(wide),
			    .how = WAIT_DONE};
	vector16 words[COLLECTIVE_RANKS_MAX];

	begin_round(&f, 0);
	if (simple) /* before the epoch, so that both take the time of one load */
		load_words(&f, first_unit(&f), words);
	f.epoch = block_epoch(a->s.state);
	if (!f.epoch)
		return;
	ROLLED for (u32 round = 0;; f.epoch = epoch_after(f.epoch))
	{
		send_round(&f, simple && !round, words);
		block_set_epoch(a->s.state, f.epoch);
		take_round(&f);
		if (++round == a->rounds || block_end(f.how) != WAIT_DONE)
			return;
		begin_round(&f, f.end);
	}
}

/*
 * Aligned data in units of FLAGGED_DATA_BYTES(0), of which sums are made at most. Strides are 0 or
 * the size of a piece.
 */
INLINE u32 is_simple(const struct collective_shape *s)
{
	if (!is_in_words(s->in | s->out, s->piece | s->in_bytes | s->out_bytes) ||
	    collective_is_wide(s->type, s->op))
		return 0;
	return s->op == REDUCE_OP_N || is_passed_on(s) || collective_sums_fast(s->type, s->op);
}

KERNEL(collective_flagged)
{
	if (a.s.n > 4 || !is_simple(&a.s))
		flagged_run(&a, ALL_RANKS, 0);
	else if (a.s.n == 2)
		flagged_run(&a, TWO_RANKS, 1);
	else
		flagged_run(&a, FOUR_RANKS, 1);
}
