/* SPDX-License-Identifier: Apache-2.0 */
/* A fix that a person took back by other means: it is closed, and nothing is changed. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "fix/fix_impl.h"

#include <errno.h>
#include <string.h>

static bool was_begun(const struct journal_entry *e, size_t i)
{
	return e->marks[i] != MARK_NONE && e->marks[i] != MARK_UNDONE;
}

/* A reboot took it, whoever set it again; nobody does an image's registers. */
static bool is_gone(const struct fix_host *h, const struct journal_entry *e, const char *boot_id,
		    const struct step *s)
{
	return step_in_memory(s) &&
	       (h->image || (strcmp(e->boot_id, boot_id) != 0 && !s->again_at_boot));
}

int fix_is_left(struct fix_host *h, const struct step *s)
{
	AUTO_STRBUF struct strbuf left = {0};
	AUTO_FREE char *now = NULL;
	enum step_state state;
	int r = step_read_state(h, s, &state, &now);

	if (r < 0) /* a device that was taken out took its registers along */
		return r == -ENODEV && step_is_volatile(s) ? 0 : r;
	if (state != STEP_IS_OTHER)
		return state == STEP_IS_NEW;
	step_remainder(s, now, &left);
	return left.len || step_by_parts(s);
}

/* What a person made of it since is not the fix's any more. */
static int is_as_written(struct fix_host *h, const struct step *s)
{
	int r = fix_is_left(h, s);

	return r > 0 ? step_holds_own(h, s) : r;
}

/* `lost`: its log has no line about the step. */
static int is_in_force(struct fix_host *h, unsigned number, const struct step *s, bool lost)
{
	int r = is_as_written(h, s);

	if (r < 0) {
		AUTO_FREE char *why = xstrdup(err_msg());

		return err_set(-r, "fix %u may still be applied (%s): %s", number, s->what, why);
	}
	if (r && lost)
		return err_set(
			EBUSY,
			"fix %u may still be applied (%s): it is as the fix leaves it, but the log has no line about it. `onehop undo %u` undoes it; if it is your own: onehop undo %u --forget --yes",
			number, s->what, number, number);
	return r ? err_set(EBUSY,
			   "fix %u is still applied (%s): `onehop undo %u` undoes it, and knows "
			   "what was there before",
			   number, s->what, number)
		 : 0;
}

static int check_in_force(const struct fix_run *run, const struct journal_entry *e)
{
	struct fix_host *h = run->host;
	AUTO_FREE bool *lost = NULL;
	char boot_id[40];
	int r = 0;

	fix_find_lost(h, e, &lost);
	journal_boot_id(h, boot_id);
	for (size_t i = 0; r == 0 && i < e->plan->step_n; i++) {
		const struct step *s = &e->plan->steps[i];

		if ((was_begun(e, i) || (lost[i] && !run->is_own)) && !is_gone(h, e, boot_id, s))
			r = is_in_force(h, e->number, s, lost[i]);
	}
	return r;
}

int fix_check_forget(const struct fix_run *run, const struct journal_entry *entries, size_t n,
		     unsigned number, size_t *ret)
{
	size_t i = 0;
	int r;

	while (i < n && entries[i].number != number)
		i++;
	if (i == n)
		return err_set(ENOENT, "there is no fix %u", number);
	if (journal_is_over(&entries[i]))
		return err_set(EALREADY, "fix %u is %s already", number,
			       entries[i].state == FIX_FORGOTTEN ? "forgotten" : "undone");
	r = entries[i].damage ? 0 : fix_check_mounted(run->host, entries[i].plan);
	if (r < 0)
		return r;
	r = check_in_force(run, &entries[i]);
	if (r < 0)
		return r;
	*ret = i;
	return 0;
}

int fix_forget(const struct fix_run *run, unsigned number)
{
	AUTO_SESSION struct fix_session session = {.lock = -1};
	size_t at = 0;
	int r = fix_session_open(run, &session);

	if (r == 0)
		r = fix_check_forget(run, session.entries, session.n, number, &at);
	if (r == 0 && !session.entries[at].damage)
		r = fix_check_made_again(run->host, &session.entries[at]);
	if (r == 0)
		r = journal_state(run->host, &session.entries[at], FIX_FORGOTTEN);
	return r < 0 ? r : journal_write_in_force(run->host);
}
