/* SPDX-License-Identifier: Apache-2.0 */
/* At boot: registers that the last boot took back are written again. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fix/fix_parts.h"

/* Whatever the firmware and the kernel left there: only the bits of the mask are the fix's. */
static int again(const struct fix_run *run, const struct journal_entry *e, struct step *s)
{
	enum step_state state;
	int r = step_look(run->host, s, &state, NULL);

	if (r == 0 && state == STEP_IS_NEW) {
		fix_tell(run, FIX_STEP_SKIPPED, e, s, "it is so already");
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

/* The first failure's sentence goes into *first. */
static int again_all(const struct fix_run *run, const struct journal_entry *e, char **first,
		     size_t *ret_n)
{
	int result = 0;

	for (size_t i = 0; i < e->plan->step_n; i++) {
		struct step *s = &e->plan->steps[i];
		int r;

		if (!s->again_at_boot || e->marks[i] != MARK_DONE)
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
		if (session.entries[i].damage || session.entries[i].state != FIX_APPLIED)
			continue;
		r = again_all(run, &session.entries[i], &first, ret_n);
		if (r < 0)
			result = r;
	}
	if (result < 0)
		return err_set(-result, "%s", first);
	return fix_check_damage(session.entries, session.n);
}
