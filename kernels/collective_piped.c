// SPDX-License-Identifier: Apache-2.0
/* Large collective operations: chunks through slots, sent, reduced and placed in one pipeline. */
#include "kernels/collective_steps.h"

INLINE void take_chunk(const struct piped *p, u64 chunk)
{
	const struct collective_shape *s = p->s;

	if (s->op == REDUCE_OP_N)
		place_chunk(p, &p->ways->first, p->first_slots, s->pull, chunk);
	else if (s->keep || s->push2)
		reduce_chunk(p, s->me, chunk);
	if (s->copied)
		copy_chunk(p, chunk);
}

/* What others have written in their step i - 1. */
INLINE void take_step(const struct piped *p, u64 i)
{
	if (i >= 1 && i - 1 < p->chunks)
		take_chunk(p, i - 1);
	if (i >= 2 && i - 2 < p->chunks)
		place_chunk(p, &p->ways->second, PIPED_SECOND_SLOTS, p->s->pull2, i - 2);
}

KERNEL(collective_piped)
{
	const u64 place = a.s.state + block_id() * sizeof(struct collective_state);
	struct collective_state state = AT(struct collective_state, place);
	const u64 steps = a.chunks + 1 + ((a.s.push2 | a.s.pull2) != 0);
	struct piped p = piped_of(&a, state.epoch);

	for (u64 i = 0; i < steps && state.end <= WAIT_DONE; i++) {
		if (i < p.chunks)
			send_chunk(&p, i);
		state.end = wait_for_step(&p, a.s.ahead);
		if (state.end != WAIT_DONE)
			break;
		take_step(&p, i);
		p.step++;
		tell_step(&p);
	}
	keep_state(&p, place, state);
}
