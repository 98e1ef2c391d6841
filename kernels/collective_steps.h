/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a block does with a chunk of a large operation in one step: send it, reduce it, place what
 * others reduced.
 */
#pragma once

#include "kernels/collective_copy.h"

/* State of a block. */
struct piped {
	const struct collective_shape *s;
	const struct collective_routes *ways;
	u64 first_slots, second_slots, slot_bytes;
	u64 turn_bytes;
	u64 chunk, chunks;
	u32 step; /* of all launches */
};

INLINE struct piped piped_of(const struct collective_piped_args *a, u32 step)
{
	return (struct piped){&a->s,         &a->routes,    PIPED_FIRST_SLOTS, PIPED_SECOND_SLOTS,
			      a->slot_bytes, a->turn_bytes, a->chunk,          a->chunks,
			      step};
}

/*
 * Of this block, in each place. The slots of a sender, a power of two, take turns by steps. Those
 * of all blocks that are filled in one step are side by side, which is up to 1 % faster than those
 * of one block.
 */
INLINE u64 slot_at(const struct piped *p, u64 slots, u32 step)
{
	return (step & (slots - 1)) * p->turn_bytes + block_id() * p->slot_bytes;
}

INLINE u64 offset_of(const struct piped *p, u64 chunk)
{
	return (chunk * block_count() + block_id()) * p->chunk;
}

/* ---- flags ---- */

/* before: how many steps less than the last one are enough. */
INLINE u32 wait_for_step(const struct piped *p, u32 before)
{
	struct patience patience = patience_of(p->s->limit_ns, p->s->abort);
	u32 end = WAIT_DONE, all;

	for (u32 r = thread_id(); r < p->s->n && end == WAIT_DONE; r += thread_count()) {
		if (r == p->s->me)
			continue;
		end = wait_for(p->ways->flags.from[r] + block_id() * PIPED_FLAG_BYTES,
			       p->step - before, &patience);
		if (end != WAIT_DONE)
			report_end(p->s->report, p->s->abort, p->s->number, end, r);
	}
	all = block_end(end);
	return all;
}

INLINE void tell_step(const struct piped *p)
{
	block_barrier();
	for (u32 r = teller_id(); r < p->s->n; r += thread_count())
		if (p->s->tokens >> r & 1)
			store_release(p->ways->flags.to[r] + block_id() * PIPED_FLAG_BYTES,
				      p->step);
}

/* The next launch goes on where this one ended. */
INLINE void keep_state(const struct piped *p, u64 place, struct collective_state state)
{
	state.epoch = p->step;
	block_barrier(); /* all have read the state */
	if (thread_id() == 0)
		AT(struct collective_state, place) = state;
}

/* ---- reducing ---- */

/* A chunk as its owner sees it. */
struct reduced_chunk {
	u64 in, out;     /* of the chunk's first byte */
	u64 slot, slot2; /* where it comes from, where the result goes */
	u32 bytes;
};

/*
 * The k-th rank to store for. At any time ranks store for different ones, and blocks too, so that
 * not all data goes to one rank, while the links of others are idle.
 */
INLINE u32 rank_in_turn(const struct collective_shape *s, u32 k)
{
	return (s->me + block_id() + k) % s->n;
}

INLINE void spread_vector(const struct piped *p, const struct reduced_chunk *c, u64 at, vector16 v)
{
	ROLLED for (u32 r = 0; r < p->s->n; r++) if (p->s->push2 >> r & 1)
		store_vector(p->ways->second.to[r] + c->slot2 + at, v);
}

/*
 * The vectors of a thread, all for one rank before those for the next one. `batch`: how many, a
 * constant.
 */
INLINE void spread_batch(const struct piped *p, const struct reduced_chunk *c, u32 batch, u32 whole,
			 u32 at, const vector16 *v)
{
	const u32 each = thread_count() * 16;

	ROLLED for (u32 i = 0; i < p->s->n; i++)
	{
		const u32 r = rank_in_turn(p->s, i);

		if (!(p->s->push2 >> r & 1))
			continue;
		EVERY_VECTOR(k)
		if (k < batch && at + k * each < whole)
			store_vector(p->ways->second.to[r] + c->slot2 + (at + k * each), v[k]);
	}
}

/* The ranks in ascending order. */
INLINE vector16 reduce_vector(const struct piped *p, const struct reduced_chunk *c, u64 at)
{
	const struct collective_shape *s = p->s;
	const u32 mask = sources_of(s);
	struct total t = total_of(s->type, vector_of(0, 0));
	u32 first = 1;

	ROLLED for (u32 r = 0; r < s->n; r++)
	{
		struct total next;

		if (!(mask >> r & 1))
			continue;
		next = total_of(s->type, r == s->me ? load_part(c->in + at, c->bytes - at)
						    : load_vector_system(p->ways->first.from[r] +
									 c->slot + at));
		t = first ? next : total_add(s->type, s->op, t, next);
		first = 0;
	}
	return total_end(s->type, s->op, s->n, s->scale, t);
}

INLINE void reduce_any(const struct piped *p, const struct reduced_chunk *c, u32 begin)
{
	const u32 each = thread_count() * 16;

	ROLLED for (u32 at = begin + thread_id() * 16; at < c->bytes; at += each)
	{
		const vector16 v = reduce_vector(p, c, at);

		spread_vector(p, c, at, v);
		if (p->s->keep)
			store_part(c->out + at, v, c->bytes - at);
	}
}

/* A vector's elements as float: 4 or, of a half type, 8. */
INLINE u32 floats_of(u32 type)
{
	return is_half(type) ? 8 : 4;
}

INLINE float float_in(u32 type, vector16 v, u32 i)
{
	return is_half(type) ? widen(type, v[i / 2] >> 16 * (i % 2) & 0xffff)
			     : float_of_bits(v[i % 4]);
}

INLINE vector16 vector_of_floats(u32 type, const float *f)
{
	vector16 v;

#pragma GCC unroll 4
	for (u32 i = 0; i < 4; i++)
		v[i] = is_half(type) ? narrow(type, f[2 * i]) | narrow(type, f[2 * i + 1]) << 16
				     : bits_of_float(f[i]);
	return v;
}

#define EVERY_FLOAT(i, type)                                                                       \
	_Pragma("GCC unroll 8") for (u32 i = 0; i < 8; i++) if (i < floats_of(type))

/*
 * Several vectors of each rank at once, of a type that the compiler knows. `batch`: how many, a
 * constant; offsets of 32 bits save registers.
 */
INLINE void sum_batch(const struct piped *p, const struct reduced_chunk *c, u32 type, u32 batch,
		      u32 whole, u32 at)
{
	const struct collective_shape *s = p->s;
	const u32 each = thread_count() * 16;
	const float scale = s->op == REDUCE_AVG ? (float)double_of_bits(s->scale) : 1;
	float f[PIPED_UNROLL][8];
	vector16 sum[PIPED_UNROLL];

	EVERY_VECTOR(k)
	EVERY_FLOAT(i, type)
	f[k][i] = -0.0f; /* the neutral element of addition */
	ROLLED for (u32 r = 0; r < s->n; r++)
	{
		const u64 from = r == s->me ? c->in : p->ways->first.from[r] + c->slot;
		vector16 v[PIPED_UNROLL];

		if (!(sources_of(s) >> r & 1))
			continue;
		EVERY_VECTOR(k)
		if (k < batch && at + k * each < whole)
			v[k] = load_vector_system(from + (at + k * each));
		else
			v[k] = vector_of(0, 0);
		EVERY_VECTOR(k)
		EVERY_FLOAT(i, type)
		f[k][i] += float_in(type, v[k], i);
	}
	EVERY_VECTOR(k)
	if (k < batch) {
		EVERY_FLOAT(i, type)
		f[k][i] *= scale;
		sum[k] = vector_of_floats(type, f[k]);
	}
	spread_batch(p, c, batch, whole, at, sum);
	EVERY_VECTOR(k)
	if (k < batch && at + k * each < whole && s->keep)
		AT(vector16, c->out + (at + k * each)) = sum[k];
}

INLINE void sum_whole(const struct piped *p, const struct reduced_chunk *c, u32 type, u32 whole)
{
	const u32 batch = is_half(type) ? 1 : PIPED_UNROLL;
	const u32 each = thread_count() * 16 * batch;

	ROLLED for (u32 at = thread_id() * 16; at < whole; at += each)
		sum_batch(p, c, type, batch, whole, at);
}

/*
 * The common types and operations have specialised code (collective_sums_fast()) for aligned data.
 */
INLINE u32 sum_fast(const struct piped *p, const struct reduced_chunk *c)
{
	const struct collective_shape *s = p->s;
	const u32 whole = whole_vectors(c->in | c->out, c->bytes);

	if (!collective_sums_fast(s->type, s->op) || !s->own || !s->pull)
		return 0;
	if (s->type == ELEMENT_FLOAT32)
		sum_whole(p, c, ELEMENT_FLOAT32, whole);
	else if (s->type == ELEMENT_BFLOAT16)
		sum_whole(p, c, ELEMENT_BFLOAT16, whole);
	else
		sum_whole(p, c, ELEMENT_FLOAT16, whole);
	return whole;
}

/* Where the data of a mask's only rank is. */
INLINE u64 only_source(const struct piped *p, const struct reduced_chunk *c)
{
	for (u32 r = 0; r < p->s->n; r++)
		if (p->s->pull >> r & 1)
			return p->ways->first.from[r] + c->slot;
	return c->in;
}

INLINE u32 pass_whole(const struct piped *p, const struct reduced_chunk *c)
{
	const u64 from = only_source(p, c);
	const u32 whole = whole_vectors(from | (p->s->keep ? c->out : 0), c->bytes);
	const u32 each = thread_count() * 16;

	ROLLED for (u32 at = thread_id() * 16; at < whole; at += each * PIPED_UNROLL)
	{
		vector16 v[PIPED_UNROLL];

		load_batch(from, at, whole, v);
		spread_batch(p, c, PIPED_UNROLL, whole, at, v);
		EVERY_VECTOR(k)
		if (at + k * each < whole && p->s->keep)
			AT(vector16, c->out + (at + k * each)) = v[k];
	}
	return whole;
}

/* ---- what is done in a step ---- */

/* A chunk of this rank's input. */
INLINE void send_piece(const struct piped *p, u32 to, u32 piece, u64 chunk)
{
	const u64 offset = offset_of(p, chunk);

	copy_out(p->ways->first.to[to] + slot_at(p, p->first_slots, p->step),
		 piece_in(p->s, piece) + offset, (u32)part_in(p->s, piece, offset, p->chunk));
}

INLINE void send_chunk(const struct piped *p, u64 chunk)
{
	for (u32 k = 0; k < p->s->n; k++) {
		const u32 r = rank_in_turn(p->s, k);

		if (p->s->push >> r & 1)
			send_piece(p, r, r, chunk);
	}
}

INLINE void reduce_chunk(const struct piped *p, u32 piece, u64 chunk)
{
	const struct collective_shape *s = p->s;
	const u64 offset = offset_of(p, chunk);
	const struct reduced_chunk c = {piece_in(s, piece) + offset, piece_out(s, piece) + offset,
					slot_at(p, p->first_slots, p->step - 1),
					slot_at(p, p->second_slots, p->step),
					(u32)part_in(s, piece, offset, p->chunk)};

	reduce_any(p, &c, is_passed_on(s) ? pass_whole(p, &c) : sum_fast(p, &c));
}

INLINE void place_chunk(const struct piped *p, const struct collective_ways *ways, u64 slots,
			u32 mask, u64 chunk)
{
	const struct collective_shape *s = p->s;
	const u64 offset = offset_of(p, chunk);

	for (u32 k = 1; k <= s->n; k++) {
		const u32 r = (s->me + k) % s->n;

		if (mask >> r & 1)
			copy_in(piece_out(s, r) + offset,
				ways->from[r] + slot_at(p, slots, p->step - 1),
				(u32)part_out(s, r, offset, p->chunk));
	}
}

INLINE void copy_chunk(const struct piped *p, u64 chunk)
{
	const struct collective_shape *s = p->s;
	const u64 offset = offset_of(p, chunk);

	ROLLED for (u32 r = 0; r < s->n; r++) if (s->copied >> r & 1)
		copy_own(piece_out(s, r) + offset, piece_in(s, r) + offset,
			 (u32)part_in(s, r, offset, p->chunk));
}
