/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What making a file again would drop: lines that are in it, and that its program does not make from the
 * files as they are now (fix_lines.c).
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "fix/fix_impl.h"
#include "fix/step_impl.h"

#include <errno.h>
#include <string.h>

/* Not where the file itself is: nothing there is touched before it is asked for. */
#define FORESEEN JOURNAL_FOLDER "/foreseen"

static int remove_foreseen(struct fix_host *h)
{
	int r = host_remove(h, FORESEEN);

	return r < 0 ? r : host_remove(h, FORESEEN ".new");
}

/*
 * What the program makes of the files as they are. *ret NULL: it makes none, which the step itself reports when it is
 * carried out. The caller frees.
 */
static int make_foreseen(struct fix_host *h, const struct step *s, const char *const *argv,
			 char **ret, size_t *ret_size)
{
	AUTO_STRBUF struct strbuf output = {0};
	int r = remove_foreseen(h);

	if (r < 0)
		return r;
	if (step_run_filled(h, s, argv, FORESEEN, &output) == 0)
		host_read(h, FORESEEN, ret, ret_size);
	return remove_foreseen(h);
}

static int foresee(struct fix_host *h, const struct plan *p, struct step *s,
		   const char *const *argv, const struct bytes *present)
{
	AUTO_FREE char *data = NULL;
	struct bytes made = {0};
	int r = make_foreseen(h, s, argv, &data, &made.size);

	made.data = data;
	if (r == 0 && data)
		s->dropped = fix_lost_lines(p, s, present, &made, false);
	return r;
}

/* What is not as it was planned for is reported by fix_apply. */
static int foresee_step(struct fix_host *h, const struct plan *p, struct step *s)
{
	enum step_state state;
	int r = step_read_state(h, s, &state, NULL);

	if (r < 0 || state != STEP_IS_OLD || !s->old.data)
		return r;
	return foresee(h, p, s, s->argv, &s->old);
}

int fix_foresee(const struct fix_run *run, struct plan *p)
{
	int lock = -1, r = 0;

	for (size_t i = 0; r == 0 && !run->host->image && i < p->step_n; i++) {
		if (p->steps[i].kind != STEP_GENERATED || !p->steps[i].argv)
			continue;
		if (lock < 0)
			r = journal_lock(run->host, run->wait_s, &lock);
		if (r == 0)
			r = foresee_step(run->host, p, &p->steps[i]);
	}
	journal_unlock(lock);
	return r;
}

/* ---- the same of an undo ---- */

/*
 * The program reads the files as they are before the undo, so that what differs is not the fix's, but for what an
 * earlier try has undone.
 */
static int foresee_undo_step(struct fix_host *h, const struct plan *p, struct step *s)
{
	AUTO_FREE char *now = NULL;
	enum step_state state;
	struct bytes present;
	int r = step_read_state(h, s, &state, NULL);

	if (r < 0 || state != STEP_IS_OTHER)
		return r;
	r = host_read(h, s->target, &now, &present.size);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	present.data = now;
	return foresee(h, p, s, s->undo_argv, &present);
}

int fix_foresee_undo(const struct fix_run *run, const struct journal_entry *e)
{
	const struct plan *p = e->plan;
	int lock = -1, r = 0;

	for (size_t i = 0; i < p->step_n; i++)
		p->steps[i].dropped = NULL; /* those that the fix dropped */
	for (size_t i = 0; r == 0 && !run->host->image && i < p->step_n; i++) {
		if (p->steps[i].kind != STEP_GENERATED || !p->steps[i].undo_argv ||
		    e->marks[i] == MARK_NONE || e->marks[i] == MARK_UNDONE)
			continue;
		if (lock < 0)
			r = journal_lock(run->host, run->wait_s, &lock);
		if (r == 0)
			r = foresee_undo_step(run->host, p, &p->steps[i]);
	}
	journal_unlock(lock);
	return r;
}

/* ---- a file that nobody has made again ---- */

static int is_stale(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *now = NULL, *made = NULL;
	size_t size;
	int r = host_read(h, s->target, &now, &size);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!step_holds_word(now, s->expect))
		return 0;
	r = h->image ? 0 : make_foreseen(h, s, s->argv, &made, &size);
	return r < 0 ? r : !made || !step_holds_word(made, s->expect);
}

int fix_check_made_again(struct fix_host *h, const struct journal_entry *e)
{
	for (size_t i = 0; i < e->plan->step_n; i++) {
		const struct step *s = &e->plan->steps[i];
		int r = s->kind == STEP_GENERATED && s->argv && s->expect ? is_stale(h, s) : 0;

		if (r < 0)
			return r;
		if (r)
			return err_set(
				EBUSY,
				"fix %u is still applied: /%s still has %s. Make that file again (%s), or: onehop undo %u",
				e->number, s->target, s->expect, s->argv[0], e->number);
	}
	return 0;
}
