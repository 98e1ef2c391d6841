// SPDX-License-Identifier: Apache-2.0
/* Large all-reduces in two levels: within each group of ranks, and between the groups. */
#include "kernels/collective_steps.h"

INLINE struct piped stage_of(const struct collective_levels_args *a, u32 stage, u32 share, u32 step)
{
	const struct collective_stage *t = &a->stage[stage];

	return (struct piped){&a->s[stage * a->shares + share],
			      &t->routes,
			      t->first_slots,
			      t->second_slots,
			      a->slot_bytes,
			      a->turn_bytes,
			      a->chunk,
			      a->chunks,
			      step};
}

/*
 * As in collective_piped, with more stages: chunk i - 1 is reduced within the group, chunk i - 2
 * across the groups. What the other groups have sent for that is in the first or second slots, and
 * this rank's own part in its output. In a step a rank sends another one at most one thing in the
 * first slots and one in the second.
 */
INLINE void take_levels(const struct collective_levels_args *a, u32 step, u64 i)
{
	const struct piped last = stage_of(a, a->stages - 1, 0, step);

	ROLLED for (u32 k = 0; k < a->stages; k++) if (i > k && i - 1 - k < a->chunks)
	{
		const u64 chunk = i - 1 - k;
		const u32 share = ((u32)chunk + block_id()) % a->shares;
		const struct piped p = stage_of(a, k, share, step);

		if (p.s->keep || p.s->push2)
			reduce_chunk(&p, p.s->me, chunk);
	}
	if (i > a->stages)
		place_chunk(&last, &last.ways->second, last.second_slots, last.s->pull2,
			    i - 1 - a->stages);
}

KERNEL(collective_levels)
{
	const u64 place = a.s[0].state + block_id() * sizeof(struct collective_state);
	struct collective_state state = AT(struct collective_state, place);
	struct piped p = stage_of(&a, 0, 0, state.epoch);

	for (u64 i = 0; i < p.chunks + 1 + a.stages && state.end <= WAIT_DONE; i++) {
		if (i < p.chunks)
			send_chunk(&p, i);
		state.end = wait_for_step(&p, 0);
		if (state.end != WAIT_DONE)
			break;
		take_levels(&a, p.step, i);
		p.step++;
		tell_step(&p);
	}
	keep_state(&p, place, state);
}
