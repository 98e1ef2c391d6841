/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that were carried out although the log has no line about them: its end was lost. A step that was
 * never begun has no line either, so each is looked at.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "fix/fix_impl.h"

static bool has_no_line(const struct journal_entry *e, size_t i)
{
	return e->marks[i] == MARK_NONE && e->plan->steps[i].to_do;
}

/* The first step of its target without a line: what that one was to change is there if none of them was begun. */
static const struct step *first_of_target(const struct journal_entry *e, size_t i)
{
	size_t k = 0;

	while (k < i &&
	       !(has_no_line(e, k) && step_same_target(&e->plan->steps[k], &e->plan->steps[i])))
		k++;
	return &e->plan->steps[k];
}

static bool reads_as(struct fix_host *h, const struct step *s, enum step_state wanted)
{
	enum step_state state;

	return step_read_state(h, s, &state, NULL) == 0 && state == wanted;
}

/* As before the step; of a register only the bits of its mask count, which may be the same before and after. */
static bool reads_as_before(struct fix_host *h, const struct step *s)
{
	const struct step back = step_to_side(s, STEP_OLD_SIDE);

	if (step_by_parts(s))
		return reads_as(h, s, STEP_IS_OLD);
	return reads_as(h, &back, STEP_IS_NEW);
}

/* A value that is neither what the fix left nor what it found at any step: nobody can tell who set it. */
static bool is_unknown_value(struct fix_host *h, const struct journal_entry *e,
			     const struct step *s)
{
	bool known = !step_in_memory(s) || !reads_as(h, s, STEP_IS_OTHER);

	for (size_t i = 0; i < e->plan->step_n && !known; i++)
		known = step_same_target(&e->plan->steps[i], s) &&
			reads_as_before(h, &e->plan->steps[i]);
	return !known;
}

static bool is_lost(struct fix_host *h, const struct journal_entry *e, size_t i)
{
	const struct step *s = &e->plan->steps[i];

	return has_no_line(e, i) && !step_is_program(s) && !fix_reboot_took_back(h, e, s) &&
	       (fix_is_left(h, s) || is_unknown_value(h, e, s)) &&
	       !reads_as_before(h, first_of_target(e, i));
}

size_t fix_find_lost(struct fix_host *h, const struct journal_entry *e, bool **ret)
{
	bool *lost = xcalloc(e->plan->step_n + 1, sizeof(*lost));
	size_t n = 0;

	for (size_t i = 0; !e->damage && i < e->plan->step_n; i++) {
		lost[i] = is_lost(h, e, i);
		n += lost[i];
	}
	*ret = lost;
	return n;
}

/* Programs leave nothing to look at: they ran if anything did of which the log has lost the line. */
void fix_adopt_lost(struct fix_host *h, struct journal_entry *e)
{
	AUTO_FREE bool *lost = NULL;

	if (!fix_find_lost(h, e, &lost))
		return;
	for (size_t i = 0; i < e->plan->step_n; i++)
		if (has_no_line(e, i))
			e->marks[i] = MARK_STARTED;
}
