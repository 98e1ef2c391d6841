// SPDX-License-Identifier: Apache-2.0
/* Small collective operations: data that signals its own arrival, with nothing else to wait for. */
#include "kernels/collective_units.h"

/* State of one thread of a block. */
struct flagged {
	struct patience patience;
	u64 slot;             /* of the block, in each place */
	u64 begin, end;       /* of the round, in each piece */
	u32 epoch, how, late; /* how: enum wait_end */
	u32 data;             /* bytes of a unit */
};

/*
 * All slots of this set that this rank ever writes, because the next operations may use others; no
 * rank reads them any more.
 */
INLINE void clean(const struct collective_flagged_args *a, const struct flagged *f)
{
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

/* Byte `offset` of all pieces, in slot `index` of the block. */
INLINE void send_unit(const struct collective_flagged_args *a, const struct flagged *f, u64 index,
		      u64 offset)
{
	const struct collective_shape *s = &a->s;
	const u64 at = f->slot + index * FLAGGED_UNIT_BYTES;
	vector16 words[COLLECTIVE_RANKS_MAX];
	u32 sent = 0, loaded = 0;

	EVERY_RANK(r)
	{
		const u64 n = s->push >> r & 1 ? part_in(s, r, offset, f->data) : 0;

		words[r] = r && !s->in_stride ? words[r - 1] : vector_of(0, 0);
		if (n && (s->in_stride || !loaded))
			words[r] = load_unit_data(piece_in(s, r) + offset, n);
		loaded |= n != 0;
		sent |= (u32)(n || (!index && s->tokens >> r & 1)) << r;
	}
	EVERY_RANK(r)
	if (sent >> r & 1)
		store_unit(a->first.to[r] + at, words[r], f->epoch);
}

/*
 * Waits until the unit at `at` has come from every rank of the mask: all are loaded before any is
 * checked, so that their latencies overlap.
 */
INLINE void take_unit(const struct collective_ways *ways, struct flagged *f, u32 mask, u64 at,
		      vector16 *words)
{
	u32 polls = 0, waiting = mask;

	while (waiting && f->how == WAIT_DONE) {
		vector16 units[COLLECTIVE_RANKS_MAX];

		EVERY_RANK(r)
		units[r] = mask >> r & 1 ? load_halves(ways->from[r] + at) : vector_of(0, 0);
		waiting = 0;
		EVERY_RANK(r)
		if (mask >> r & 1) {
			words[r] = data_of_unit(units[r]);
			if (!has_come(units[r], f->epoch)) {
				waiting |= 1u << r;
				f->late = r;
			}
		}
		if (!waiting)
			return;
		relax(polls++);
		const u32 look = patience_look(&f->patience);
		f->how = look == WAIT_RUNNING ? WAIT_DONE : look;
	}
}

/* Without an array in memory: a chain of selections. */
INLINE vector16 pick(const vector16 *words, u32 i)
{
	vector16 word = vector_of(0, 0);

	EVERY_RANK(r)
	word = r == i ? words[r] : word;
	return word;
}

/* The ranks of the mask, in ascending order. scale: as for total_end. */
INLINE vector16 reduce_any_words(u32 type, u32 op, u32 n, u64 scale, const vector16 *words,
				 u32 mask)
{
	struct total t = total_of(type, vector_of(0, 0));
	u32 first = 1;

	ROLLED for (u32 r = 0; r < n; r++)
	{
		struct total next;

		if (!(mask >> r & 1))
			continue;
		next = total_of(type, pick(words, r));
		t = first ? next : total_add(type, op, t, next);
		first = 0;
	}
	return total_end(type, op, n, scale, t);
}

INLINE vector16 reduce_words(u32 type, u32 op, u32 n, u64 scale, const vector16 *words, u32 mask)
{
	if (collective_sums_fast(type, op))
		return sum_words(type, op, n, scale, words, mask);
	return reduce_any_words(type, op, n, scale, words, mask);
}

INLINE void place_words(const struct collective_shape *s, const struct flagged *f,
			const vector16 *words, u32 mask, u64 offset)
{
	EVERY_RANK(r)
	if (mask >> r & 1) {
		const u64 n = part_out(s, r, offset, f->data);

		if (n)
			store_unit_data(piece_out(s, r) + offset, words[r], n);
	}
}

/* Ranks of the mask that have something at `offset` for the output. */
INLINE u32 sending(const struct collective_shape *s, u32 mask, u64 offset)
{
	u32 those = 0;

	EVERY_RANK(r)
	those |= (u32)(part_out(s, r, offset, 1) != 0) << r;
	return mask & those;
}

/* The reduced elements go to the output and on to others. mine: n bytes. */
INLINE void reduce_unit(const struct collective_flagged_args *a, const struct flagged *f,
			vector16 *words, vector16 mine, u64 n, u64 at, u64 offset)
{
	const struct collective_shape *s = &a->s;
	vector16 sum;

	if (!n)
		return;
	EVERY_RANK(r)
	words[r] = r == s->me ? mine : words[r];
	sum = reduce_words(s->type, s->op, s->n, s->scale, words, sources_of(s));
	EVERY_RANK(r)
	if (s->push2 >> r & 1)
		store_unit(a->second.to[r] + at, sum, f->epoch);
	if (s->keep)
		store_unit_data(piece_out(s, s->me) + offset, sum, n);
}

INLINE void copy_unit(const struct collective_shape *s, const struct flagged *f, u64 offset)
{
	ROLLED for (u32 r = 0; r < s->n; r++)
	{
		const u64 n = s->copied >> r & 1 ? part_in(s, r, offset, f->data) : 0;
		const u64 from = piece_in(s, r) + offset, to = piece_out(s, r) + offset;

		if (n && from != to)
			store_unit_data(to, load_unit_data(from, n), n);
	}
}

INLINE void receive_unit(const struct collective_flagged_args *a, struct flagged *f, u64 index,
			 u64 offset)
{
	const struct collective_shape *s = &a->s;
	const u32 others = ((1u << s->n) - 1) & ~(1u << s->me);
	const u32 reduced = s->op != REDUCE_OP_N;
	const u64 at = f->slot + index * FLAGGED_UNIT_BYTES;
	vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)};
	const u64 n = reduced ? part_in(s, s->me, offset, f->data) : 0;
	const u32 mask = reduced ? (n ? s->pull : 0) : sending(s, s->pull, offset);
	vector16 mine = vector_of(0, 0);

	if (n && s->own) /* before it waits */
		mine = load_unit_data(piece_in(s, s->me) + offset, n);
	take_unit(&a->first, f, index ? mask : others, at, words);
	if (f->how != WAIT_DONE)
		return;
	if (s->copied)
		copy_unit(s, f, offset);
	if (!reduced)
		place_words(s, f, words, s->pull, offset);
	else if (s->keep || s->push2)
		reduce_unit(a, f, words, mine, n, at, offset);
}

INLINE void receive_sums(const struct collective_flagged_args *a, struct flagged *f, u64 index,
			 u64 offset)
{
	const u64 at = f->slot + index * FLAGGED_UNIT_BYTES;
	const u32 mask = sending(&a->s, a->s.pull2, offset);
	vector16 words[COLLECTIVE_RANKS_MAX] = {vector_of(0, 0)};

	take_unit(&a->second, f, mask, at, words);
	if (f->how == WAIT_DONE)
		place_words(&a->s, f, words, mask, offset);
}

/* The units of this thread in a round; the block's first one exists even without data. */
#define EVERY_UNIT(i, offset)                                                                      \
	for (u64 i = thread_id(),                                                                  \
		 offset = f->begin + ((u64)block_id() * thread_count() + thread_id()) * f->data;   \
	     offset < f->end || !i;                                                                \
	     i += thread_count(), offset += (u64)block_count() * thread_count() * f->data)

INLINE void send_round(const struct collective_flagged_args *a, struct flagged *f, u64 round)
{
	const u64 left = a->s.piece - round * a->round_bytes;

	f->slot = (f->epoch & 1) * a->set_bytes + block_id() * a->block_bytes;
	f->begin = round * a->round_bytes;
	f->end = f->begin + (left < a->round_bytes ? left : a->round_bytes);
	if (must_clean(f->epoch))
		clean(a, f);
	EVERY_UNIT(i, offset)
	send_unit(a, f, i, offset);
}

INLINE void take_round(const struct collective_flagged_args *a, struct flagged *f)
{
	f->patience = patience_of(a->s.limit_ns, a->s.abort);
	EVERY_UNIT(i, offset)
	receive_unit(a, f, i, offset);
	if (a->s.push2 | a->s.pull2)
		EVERY_UNIT(i, offset)
	receive_sums(a, f, i, offset);
	if (f->how == WAIT_DONE)
		return;
	report_end(a->s.report, a->s.abort, a->s.number, f->how, f->late);
	block_give_up(a->s.state, f->how);
}

/*
 * Past the barrier all threads have taken what the last round brought, as they have when a launch
 * ends.
 */
KERNEL(collective_flagged)
{
	struct flagged f = {.how = WAIT_DONE,
			    .epoch = block_epoch(a.s.state),
			    .data = FLAGGED_DATA_BYTES(collective_is_wide(a.s.type, a.s.op))};

	if (!f.epoch)
		return;
	for (u64 round = 0;; f.epoch = epoch_after(f.epoch)) {
		send_round(&a, &f, round);
		block_set_epoch(a.s.state, f.epoch);
		take_round(&a, &f);
		if (++round == a.rounds || block_end(f.how) != WAIT_DONE)
			return;
	}
}
