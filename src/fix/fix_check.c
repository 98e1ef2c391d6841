/* SPDX-License-Identifier: Apache-2.0 */
/* What may be undone: what was interrupted, what a later fix covers, what is damaged. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "fix/fix_impl.h"

#include <errno.h>
#include <string.h>

/* ---- what was interrupted ---- */

bool fix_is_interrupted(const struct journal_entry *e)
{
	bool left = false, tried = false;

	if (e->damage)
		return false;
	for (size_t i = 0; i < e->plan->step_n; i++) {
		enum step_mark mark = e->marks[i];

		tried |= mark == MARK_UNDO_FAILED;
		left |= mark != MARK_NONE && mark != MARK_UNDONE && mark != MARK_UNDO_FAILED;
	}
	return e->state == FIX_APPLYING || e->trial == TRIAL_OVER ||
	       (e->state == FIX_UNDOING && (left || !tried));
}

/* ---- what may be undone ---- */

int fix_check_damage(const struct journal_entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (entries[i].damage && !journal_is_over(&entries[i]))
			return err_set(-entries[i].damage, "%s", entries[i].damaged);
	return 0;
}

static bool is_begun(enum step_mark mark)
{
	return mark != MARK_NONE && mark != MARK_UNDONE;
}

/* Programs' files need no order: they are made again from what is there. */
static const struct step *shared_step(const struct journal_entry *e,
				      const struct journal_entry *later)
{
	for (size_t i = 0; i < e->plan->step_n; i++)
		for (size_t k = 0; k < later->plan->step_n; k++)
			if ((is_begun(e->marks[i]) || e->no_log) &&
			    (is_begun(later->marks[k]) || later->no_log) &&
			    !step_is_program(&e->plan->steps[i]) &&
			    step_same_target(&e->plan->steps[i], &later->plan->steps[k]))
				return &e->plan->steps[i];
	return NULL;
}

/* What the later one took as it was, because this one had changed it. */
static const char *shared_base(const struct journal_entry *e, const struct journal_entry *later)
{
	for (size_t i = 0; i < e->plan->step_n; i++)
		for (size_t k = 0; k < later->plan->builds_on_n; k++)
			if ((is_begun(e->marks[i]) || e->no_log) &&
			    e->plan->steps[i].kind == STEP_FILE &&
			    strcmp(e->plan->steps[i].target, later->plan->builds_on[k]) == 0)
				return later->plan->builds_on[k];
	return NULL;
}

/* The file that kernels' entries are made from: once a later one has edited it, nobody takes it away again. */
static const struct step *made_for_later(const struct journal_entry *e,
					 const struct journal_entry *later)
{
	for (size_t i = 0; i < e->plan->step_n; i++)
		for (size_t k = 0; k < later->plan->step_n; k++) {
			const struct step *s = &e->plan->steps[i], *other = &later->plan->steps[k];

			if (s->kind == STEP_OPTIONS && other->kind == STEP_OPTIONS &&
			    !s->old.data && strcmp(s->target, other->target) == 0 &&
			    is_begun(e->marks[i]) && is_begun(later->marks[k]))
				return s;
		}
	return NULL;
}

static int check_one_later(const struct journal_entry *e, const struct journal_entry *later)
{
	const struct step *s;
	const char *base;

	/* What was interrupted is undone first. */
	if (journal_is_over(later) || fix_is_interrupted(later))
		return 0;
	if (later->damage && !later->no_log)
		return err_set(EBUSY, "fix %u may have changed the same after fix %u, and %s",
			       later->number, e->number, later->damaged);
	base = shared_base(e, later);
	if (base)
		return err_set(EBUSY, "fix %u builds on /%s, which fix %u made: undo %u first",
			       later->number, base, e->number, later->number);
	s = made_for_later(e, later);
	if (s)
		return err_set(EBUSY, "fix %u changed /%s, which fix %u made: undo %u first",
			       later->number, s->target, e->number, later->number);
	s = shared_step(e, later);
	if (!s)
		return 0;
	return err_set(EBUSY, "fix %u changed %s%s%s%s after it: undo %u first", later->number,
		       step_has_content(s) || s->kind == STEP_ATTRIBUTE ? "/" : "", s->target,
		       s->at ? " " : "", s->at ? s->at : "", later->number);
}

int fix_check_later(const struct journal_entry *entries, size_t n, size_t at)
{
	int r = 0;

	for (size_t i = n; r == 0 && --i > at;)
		r = check_one_later(&entries[at], &entries[i]);
	return r;
}

static int is_empty(struct fix_host *h, const char *folder)
{
	if (!host_is_empty(h, folder))
		return 0;
	if (h->image)
		return err_set(
			ENOMEDIUM,
			"/%s of the system in %s is empty: mount the file system that belongs "
			"there first",
			folder, h->root);
	return err_set(
		ENOMEDIUM,
		"/%s is empty, where this fix wrote: mount the file system that belongs there first",
		folder);
}

/*
 * Of a boot partition no fstab may tell: systemd finds it by its type, and a person may have unmounted it. The
 * fix wrote below that folder, and nothing else would have emptied it.
 */
static int check_not_empty(struct fix_host *h, const struct step *s)
{
	const size_t n = strcspn(s->target, "/");
	AUTO_FREE char *folder = xstrndup(s->target, n);
	int r;

	if (s->made || !s->target[n])
		return 0;
	r = is_empty(h, folder);
	return r == 0 && text_starts_with(s->target, "boot/efi/") ? is_empty(h, "boot/efi") : r;
}

int fix_check_mounted(struct fix_host *h, const struct plan *p)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->step_n; i++) {
		const struct step *s = &p->steps[i];

		if (!s->target || step_in_memory(s))
			continue;
		r = host_check_mounted(h, s->target);
		if (r == 0)
			r = check_not_empty(h, s);
	}
	return r;
}

/* ---- what is on trial ---- */

int fix_check_trial(const struct journal_entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!entries[i].damage && entries[i].state == FIX_ON_TRIAL)
			return err_set(
				EBUSY,
				entries[i].trial == TRIAL_RUNS
					? "fix %u is on trial in this boot: confirm it first "
					  "(onehop fix --confirm), or undo it (onehop undo %u)"
				: entries[i].displaced
					? "fix %u is on trial, but no longer set for the next boot: undo it first (onehop undo %u)"
					: "fix %u is on trial: reboot to try it, or undo it (onehop undo %u)",
				entries[i].number, entries[i].number);
	return 0;
}

int fix_check_confirm(const struct journal_entry *entries, size_t n, unsigned number, size_t *ret)
{
	for (size_t i = n; i-- > 0;) {
		const struct journal_entry *e = &entries[i];

		if (e->damage || e->state != FIX_ON_TRIAL || (number && e->number != number))
			continue;
		*ret = i;
		if (e->trial == TRIAL_RUNS)
			return 0;
		if (e->displaced)
			return err_set(
				EAGAIN,
				"fix %u has not been tried yet, and is no longer set for the next boot: onehop undo %u, then onehop fix --apply sets it again",
				e->number, e->number);
		if (e->trial == TRIAL_WAITS)
			return err_set(EAGAIN,
				       "fix %u has not been tried yet: reboot, then confirm it",
				       e->number);
		return err_set(
			ESTALE,
			"the trial boot of fix %u is over, and this boot does not have its kernel "
			"parameters. To undo the rest of it: onehop undo %u. To try again: onehop fix "
			"--apply",
			e->number, e->number);
	}
	return number ? err_set(ENOENT, "fix %u is not on trial", number)
		      : err_set(ENOENT, "no fix is on trial: there is nothing to confirm");
}

/* Everything is as before, restored by a person, because the log is lost. */
static bool is_old(struct fix_host *h, const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++) {
		enum step_state state;
		bool first = true;

		for (size_t k = 0; k < i && first; k++)
			first = !step_same_target(&p->steps[k], &p->steps[i]);
		if (first && !step_is_program(&p->steps[i]) &&
		    (step_read_state(h, &p->steps[i], &state, NULL) < 0 || state != STEP_IS_OLD))
			return false;
	}
	return true;
}

/* `number` 0: the last that is not undone. */
static int find(const struct journal_entry *entries, size_t n, unsigned number, size_t *ret)
{
	for (size_t i = n; i-- > 0;)
		if (number ? entries[i].number == number : !journal_is_over(&entries[i])) {
			*ret = i;
			return 0;
		}
	return number ? err_set(ENOENT, "there is no fix %u", number)
		      : err_set(ENOENT, "no fix is applied: there is nothing to undo");
}

int fix_check_undo(struct fix_host *h, const struct journal_entry *entries, size_t n,
		   unsigned number, size_t *ret)
{
	const struct journal_entry *e;
	int r = find(entries, n, number, ret);

	if (r == -ENOENT && !n && h->image && host_is_empty(h, "var"))
		return err_set(
			ENOMEDIUM,
			"/var of the system in %s is empty, and what was changed is noted there: "
			"mount its file system first",
			h->root);
	if (r < 0)
		return r;
	e = &entries[*ret];
	if (journal_is_over(e))
		return err_set(
			EALREADY,
			e->state == FIX_FORGOTTEN
				? "fix %u was closed with undo --forget: onehop does not undo it any more"
				: "fix %u is undone already",
			e->number);
	if (e->damage && !(e->no_log && is_old(h, e->plan)))
		return err_set(-e->damage,
			       "fix %u cannot be undone: %s (what to do: onehop history %u)",
			       e->number, e->damaged, e->number);
	r = fix_check_mounted(h, e->plan);
	return r < 0 ? r : fix_check_later(entries, n, *ret);
}
