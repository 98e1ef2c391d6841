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

static bool drops_lines(const struct step *steps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (steps[i].dropped)
			return true;
	return false;
}

bool plan_drops_lines(const struct plan *p)
{
	return drops_lines(p->steps, p->step_n) || drops_lines(p->on_confirm, p->on_confirm_n);
}

static const struct step *failing_step(const struct step *steps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (steps[i].fails)
			return &steps[i];
	return NULL;
}

const struct step *plan_failing_step(const struct plan *p)
{
	const struct step *s = failing_step(p->steps, p->step_n);

	return s ? s : failing_step(p->on_confirm, p->on_confirm_n);
}

bool step_does(const struct step *s)
{
	return (!step_is_program(s) && s->kind != STEP_WORDS) || s->argv;
}

bool step_undoes(const struct step *s)
{
	return s->kind == STEP_TOOL ? s->undo_argv != NULL : true;
}

size_t plan_doing_steps(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->step_n; i++)
		n += step_does(&p->steps[i]);
	return n;
}

bool plan_has_work(const struct plan *p)
{
	return plan_doing_steps(p) > 0 || p->manual_n > 0;
}

const struct step *plan_first_step(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (step_does(&p->steps[i]))
			return &p->steps[i];
	return NULL;
}
