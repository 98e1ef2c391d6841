// SPDX-License-Identifier: Apache-2.0
/* Large collective operations: chunks through slots, sent, reduced and placed in one pipeline. */
#include "kernels/collective.h"

#define PIPED_UNROLL 2

/* What a block needs. */
struct piped {
	const struct collective_shape *s;
	u64 first, second, flags; /* struct collective_ways */
	u64 slots, slot_bytes;    /* where those of this block begin in each place */
	u64 chunk, chunks;
	u32 step; /* of all launches */
};

INLINE u64 way_to(u64 ways, u32 rank)
{
	return AT(const u64, ways + rank * sizeof(u64));
}

INLINE u64 way_from(u64 ways, u32 rank)
{
	return AT(const u64,
		  ways + __builtin_offsetof(struct collective_ways, from) + rank * sizeof(u64));
}

/* Slots take turns by steps. */
INLINE u64 slot_at(const struct piped *p, u32 step)
{
	return p->slots + (step & 1) * p->slot_bytes;
}

INLINE u64 offset_of(const struct piped *p, u64 chunk)
{
	return (chunk * block_count() + block_id()) * p->chunk;
}

/* ---- flags ---- */

INLINE u32 wait_for_step(const struct piped *p)
{
	struct patience patience = patience_of(p->s->limit_ns, p->s->abort);
	u32 end = WAIT_DONE, all;

	for (u32 r = thread_id(); r < p->s->n && end == WAIT_DONE; r += thread_count()) {
		if (r == p->s->me)
			continue;
		end = wait_for(way_from(p->flags, r) + block_id() * PIPED_FLAG_BYTES, p->step,
			       &patience);
		if (end != WAIT_DONE)
			report_end(p->s, end, r);
	}
	all = block_end(end);
	return all;
}

INLINE void tell_step(const struct piped *p)
{
	block_barrier();
	for (u32 r = thread_id(); r < p->s->n; r += thread_count())
		if (p->s->tokens >> r & 1)
			store_release(way_to(p->flags, r) + block_id() * PIPED_FLAG_BYTES, p->step);
}

/* ---- data: by all threads of the block; slots are aligned, and as long as 16 bytes more would need ---- */

INLINE void copy_out(u64 slot, u64 from, u64 bytes)
{
	const u64 each = (u64)thread_count() * 16;

	for (u64 at = (u64)thread_id() * 16; at < bytes; at += each * PIPED_UNROLL) {
		vector16 v[PIPED_UNROLL];

#pragma GCC unroll 2
		for (u32 k = 0; k < PIPED_UNROLL; k++)
			v[k] = at + k * each < bytes
				       ? load_part(from + at + k * each, bytes - at - k * each)
				       : vector_of(0, 0);
#pragma GCC unroll 2
		for (u32 k = 0; k < PIPED_UNROLL; k++)
			if (at + k * each < bytes)
				store_vector(slot + at + k * each, v[k]);
	}
}

INLINE void copy_in(u64 to, u64 slot, u64 bytes)
{
	const u64 each = (u64)thread_count() * 16;

	for (u64 at = (u64)thread_id() * 16; at < bytes; at += each * PIPED_UNROLL) {
		vector16 v[PIPED_UNROLL];

#pragma GCC unroll 2
		for (u32 k = 0; k < PIPED_UNROLL; k++)
			v[k] = at + k * each < bytes ? load_vector_system(slot + at + k * each)
						     : vector_of(0, 0);
#pragma GCC unroll 2
		for (u32 k = 0; k < PIPED_UNROLL; k++)
			if (at + k * each < bytes)
				store_part(to + at + k * each, v[k], bytes - at - k * each);
	}
}

INLINE void copy_own(u64 to, u64 from, u64 bytes)
{
	const u64 each = (u64)thread_count() * 16;

	for (u64 at = (u64)thread_id() * 16; to != from && at < bytes; at += each)
		store_part(to + at, load_part(from + at, bytes - at), bytes - at);
}

/* The ranks in ascending order. */
INLINE vector16 reduce_vector(const struct piped *p, u64 in, u64 slot, u64 at, u64 left)
{
	const struct collective_shape *s = p->s;
	const u32 mask = s->pull | (s->own ? 1u << s->me : 0);
	struct total t = total_of(s->type, vector_of(0, 0));
	u32 first = 1;

#pragma GCC unroll 1
	for (u32 r = 0; r < s->n; r++) {
		struct total next;

		if (!(mask >> r & 1))
			continue;
		next = total_of(s->type,
				r == s->me ? load_part(in + at, left)
					   : load_vector_system(way_from(p->first, r) + slot + at));
		t = first ? next : total_add(s->type, s->op, t, next);
		first = 0;
	}
	return total_end(s, t);
}

/* ---- the three things of a step ---- */

INLINE void send_chunk(const struct piped *p, u64 chunk)
{
	const struct collective_shape *s = p->s;
	const u64 offset = offset_of(p, chunk);

	for (u32 k = 1; k <= s->n; k++) {
		const u32 r = (s->me + k) % s->n; /* so that not all begin with the same one */

		if (s->push >> r & 1)
			copy_out(way_to(p->first, r) + slot_at(p, p->step),
				 s->in + r * s->in_stride + offset,
				 part_in(s, r, offset, p->chunk));
	}
}

INLINE void reduce_chunk(const struct piped *p, u64 chunk)
{
	const struct collective_shape *s = p->s;
	const u64 offset = offset_of(p, chunk), bytes = part_in(s, s->me, offset, p->chunk);
	const u64 in = s->in + s->me * s->in_stride + offset,
		  out = s->out + s->me * s->out_stride + offset;

	for (u64 at = (u64)thread_id() * 16; at < bytes; at += (u64)thread_count() * 16) {
		const vector16 v = reduce_vector(p, in, slot_at(p, p->step - 1), at, bytes - at);

		for (u32 r = 0; r < s->n; r++)
			if (s->push2 >> r & 1)
				store_vector(way_to(p->second, r) + slot_at(p, p->step) + at, v);
		if (s->keep)
			store_part(out + at, v, bytes - at);
	}
}

INLINE void place_chunk(const struct piped *p, u64 ways, u32 mask, u64 chunk)
{
	const struct collective_shape *s = p->s;
	const u64 offset = offset_of(p, chunk);

	for (u32 k = 1; k <= s->n; k++) {
		const u32 r = (s->me + k) % s->n;

		if (mask >> r & 1)
			copy_in(s->out + r * s->out_stride + offset,
				way_from(ways, r) + slot_at(p, p->step - 1),
				part_out(s, r, offset, p->chunk));
	}
}

INLINE void take_chunk(const struct piped *p, u64 chunk)
{
	const struct collective_shape *s = p->s;
	const u64 offset = offset_of(p, chunk);

	if (s->op != REDUCE_OP_N) {
		if (s->keep || s->push2)
			reduce_chunk(p, chunk);
		return;
	}
	place_chunk(p, p->first, s->pull, chunk);
	if (s->own)
		copy_own(s->out + s->me * s->out_stride + offset,
			 s->in + s->me * s->in_stride + offset,
			 part_in(s, s->me, offset, p->chunk));
}

/*
 * What others wrote in their step i - 1 is read in step i, and only whoever has told that step i is done lets
 * them write there again, in step i + 1.
 */
INLINE void run_step(const struct piped *p, u64 i)
{
	if (i < p->chunks)
		send_chunk(p, i);
	if (i >= 1 && i - 1 < p->chunks)
		take_chunk(p, i - 1);
	if (i >= 2 && i - 2 < p->chunks)
		place_chunk(p, p->second, p->s->pull2, i - 2);
}

KERNEL(collective_piped)
{
	const u64 place = a.s.state + block_id() * sizeof(struct collective_state);
	struct collective_state state = AT(struct collective_state, place);
	const u64 steps = a.chunks + 1 + ((a.s.push2 | a.s.pull2) != 0);
	struct piped p = {&a.s,
			  a.routes + __builtin_offsetof(struct collective_routes, first),
			  a.routes + __builtin_offsetof(struct collective_routes, second),
			  a.routes + __builtin_offsetof(struct collective_routes, flags),
			  block_id() * 2ul * a.slot_bytes,
			  a.slot_bytes,
			  a.chunk,
			  a.chunks,
			  state.epoch};

	for (u64 i = 0; i < steps && state.end <= WAIT_DONE; i++) {
		state.end = wait_for_step(&p);
		if (state.end != WAIT_DONE)
			break;
		run_step(&p, i);
		p.step++;
		tell_step(&p);
	}
	state.epoch = p.step;
	block_barrier(); /* all have read the state */
	if (thread_id() == 0)
		AT(struct collective_state, place) = state;
}
