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

/* The chunk that has arrived in the last step. */
struct arrived {
	u32 place; /* on its piece's way; 0: none */
	u64 chunk; /* not below a.chunks: it has not come yet, or there are no more */
};

/* Of n pieces, the chunk that was at the last place arrives when the next one starts. */
INLINE struct arrived arrived_in(const struct collective_chain_args *a, struct chain_step t)
{
	if (a->place)
		return (struct arrived){a->place, t.chunk - a->place};
	if (t.turn)
		return (struct arrived){t.turn, t.chunk};
	return (struct arrived){a->period > 1 ? a->period : 0, t.chunk - 1};
}

/* What the rank before has written in the last step. */
INLINE void take_arrived(const struct collective_chain_args *a, u32 step, struct chain_step t)
{
	const struct arrived c = arrived_in(a, t);
	const u32 last = c.place + 1 == a->s[CHAIN_FIRST].n;
	const struct piped p = place_of(a, last ? CHAIN_LAST : CHAIN_MIDDLE, step);

	if (c.place && c.chunk < a->chunks)
		reduce_chunk(&p, piece_at(a, c.place), c.chunk);
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
