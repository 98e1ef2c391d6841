// SPDX-License-Identifier: Apache-2.0
/* Large operations from rank to rank. */
#include "kernels/collective_steps.h"

/* Which chunk is at which place of the ways that the pieces go. */
struct chain_step {
	u32 turn;  /* in the period */
	u64 chunk; /* that starts in turn 0 */
};

INLINE struct piped place_of(const struct collective_chain_args *a, enum chain_place place,
			     u32 step)
{
	return (struct piped){&a->s[place],      &a->routes,    PIPED_FIRST_SLOTS,
			      PIPED_FIRST_SLOTS, a->slot_bytes, a->turn_bytes,
			      a->chunk,          a->chunks,     step};
}

/* The piece of which this rank is that many ranks behind the first one. */
INLINE u32 piece_at(const struct collective_chain_args *a, u32 place)
{
	const struct collective_shape *s = &a->s[CHAIN_FIRST];

	return chain_distance(s->n, a->shift, s->me, place);
}

INLINE u32 starts(const struct collective_chain_args *a, struct chain_step t)
{
	return !a->place && !t.turn && t.chunk < a->chunks;
}

/*
 * Where on its way is the piece whose chunk has arrived in the last step; 0: none has. Of n pieces
 * the last place's chunk arrives when the next one starts.
 */
INLINE u32 arrived_at(const struct collective_chain_args *a, struct chain_step t)
{
	if (a->place)
		return a->place;
	return t.turn ? t.turn : a->period > 1 ? a->period : 0;
}

/* What the rank before has written in the last step. */
INLINE void take_arrived(const struct collective_chain_args *a, u32 step, struct chain_step t)
{
	const u32 place = arrived_at(a, t), last = place + 1 == a->s[CHAIN_FIRST].n;
	const u64 chunk = t.chunk - (a->place ? a->place : !t.turn);
	const struct piped p = place_of(a, last ? CHAIN_LAST : CHAIN_MIDDLE, step);

	if (place && chunk < a->chunks) /* or it has not come yet: below 0 */
		reduce_chunk(&p, piece_at(a, place), chunk);
}

KERNEL(collective_chain)
{
	const u64 at = a.s[CHAIN_FIRST].state + block_id() * sizeof(struct collective_state);
	struct collective_state state = AT(struct collective_state, at);
	struct piped p = place_of(&a, CHAIN_FIRST, state.epoch);
	const u64 steps = chain_steps(p.chunks, a.period, p.s->n);
	struct chain_step t = {0, 0};

	for (u64 i = 0; i < steps && state.end <= WAIT_DONE; i++) {
		if (starts(&a, t))
			send_piece(&p, (p.s->me + 1) % p.s->n, piece_at(&a, 0), t.chunk);
		state.end = wait_for_step(&p, 0);
		if (state.end != WAIT_DONE)
			break;
		take_arrived(&a, p.step, t);
		if (starts(&a, t) && p.s->copied)
			copy_chunk(&p, t.chunk);
		p.step++;
		tell_step(&p);
		if (++t.turn == a.period)
			t = (struct chain_step){0, t.chunk + 1};
	}
	keep_state(&p, at, state);
}
