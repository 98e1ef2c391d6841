// SPDX-License-Identifier: Apache-2.0
/* Large all-reduces in two levels: within each group of ranks, and between the groups. */
#include "kernels/collective_steps.h"

/*
 * As in collective_piped, with one more stage: chunk i - 1 is reduced within the group, and chunk i - 2 across the groups. What the
 * other groups have sent for that is in the second slots, and this rank's own part in its output. One rank only ever sends another either
 * such a part or a sum, so both have room in the second slots.
 */
INLINE void take_levels(const struct collective_levels_args *a, u32 step, u64 i)
{
	const struct piped across = piped_of(&a->level[1], step);

	ROLLED for (u32 k = 0; k < 2; k++) if (i > k && i - 1 - k < across.chunks)
	{
		const struct piped p = piped_of(&a->level[k], step);

		reduce_chunk(&p, i - 1 - k);
	}
	if (i >= 3)
		place_chunk(&across, &across.ways->second, PIPED_SECOND_SLOTS, across.s->pull2,
			    i - 3);
}

KERNEL(collective_levels)
{
	const u64 place = a.level[0].s.state + block_id() * sizeof(struct collective_state);
	struct collective_state state = AT(struct collective_state, place);
	struct piped p = piped_of(&a.level[0], state.epoch);

	for (u64 i = 0; i < p.chunks + 3 && state.end <= WAIT_DONE; i++) {
		if (i < p.chunks)
			send_chunk(&p, i);
		state.end = wait_for_step(&p);
		if (state.end != WAIT_DONE)
			break;
		take_levels(&a, p.step, i);
		p.step++;
		tell_step(&p);
	}
	keep_state(&p, place, state);
}
