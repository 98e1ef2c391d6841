/* SPDX-License-Identifier: Apache-2.0 */
#include "fix/step.h"

#include "base/alloc.h"

struct plan *plan_new(void)
{
	struct arena *arena = arena_new();
	struct plan *p = arena_alloc(arena, 1, sizeof(*p));

	p->arena = arena;
	return p;
}

void plan_free(struct plan *p)
{
	if (p)
		arena_free(p->arena); /* the plan itself is in it */
}

bool plan_has_trial(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].trial)
			return true;
	return false;
}

bool plan_needs_reboot(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].reboot)
			return true;
	return false;
}

bool plan_drops_lines(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].dropped)
			return true;
	return false;
}
