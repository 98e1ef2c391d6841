/* SPDX-License-Identifier: Apache-2.0 */
/* At boot: registers that the last boot took back are written again. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fix/fix_impl.h"

/* Whatever the firmware and the kernel left there: only the bits of the mask are the fix's. */
static int again(const struct fix_run *run, const struct journal_entry *e, struct step *s)
{
	enum step_state state;
	int r = step_read_state(run->host, s, &state, NULL);

	if (r == 0)
		r = step_check_again(run->host, s);
	if (r == 0 && state == STEP_IS_NEW) {
		fix_tell(run, FIX_STEP_SKIPPED, e, s, "it is set already");
		return 0;
	}
	if (r == 0) {
		fix_tell(run, FIX_STEP_START, e, s, NULL);
		r = step_apply(run->host, s, NULL);
	}
	if (r == 0)
		fix_tell(run, FIX_STEP_DONE, e, s, NULL);
	return r;
}

static bool is_in_force(const struct journal_entry *e)
{
	return !e->damage && (e->state == FIX_APPLIED || e->state == FIX_ON_TRIAL);
}

static bool is_due(const struct journal_entry *e, size_t i)
{
	return e->plan->steps[i].again_at_boot && e->marks[i] == MARK_DONE;
}

/* A later fix does it, as the machine was then. */
static bool is_later_ones(const struct journal_entry *e, const struct journal_entry *end,
			  const struct step *s)
{
	for (const struct journal_entry *later = e + 1; later < end; later++)
		for (size_t k = 0; is_in_force(later) && k < later->plan->step_n; k++)
			if (is_due(later, k) && step_same_target(s, &later->plan->steps[k]))
				return true;
	return false;
}

/* Of the entry `e` among those up to `end`. The first failure's sentence goes into *first. */
static int again_all(const struct fix_run *run, const struct journal_entry *e,
		     const struct journal_entry *end, char **first, size_t *ret_n)
{
	int result = 0;

	for (size_t i = 0; i < e->plan->step_n; i++) {
		struct step *s = &e->plan->steps[i];
		int r;

		if (!is_due(e, i) || is_later_ones(e, end, s))
			continue;
		r = again(run, e, s);
		if (r == 0) {
			(*ret_n)++;
			continue;
		}
		if (!*first) {
			*first = xstrdup(err_msg());
			result = r;
		}
		fix_tell(run, FIX_STEP_FAILED, e, s, err_msg());
	}
	return result;
}

int fix_at_boot(const struct fix_run *run, size_t *ret_n)
{
	AUTO_SESSION struct fix_session session = {.lock = -1};
	AUTO_FREE char *first = NULL;
	int result = 0, r = fix_session_open(run, &session);

	if (r < 0)
		return r;
	*ret_n = 0;
	for (size_t i = 0; i < session.n; i++) {
		if (!is_in_force(&session.entries[i]))
			continue;
		r = again_all(run, &session.entries[i], session.entries + session.n, &first, ret_n);
		if (r < 0)
			result = r;
	}
	if (result < 0)
		return err_set(-result, "%s", first);
	return fix_check_damage(session.entries, session.n);
}
