/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What making a file again would drop: lines that are in it, and that its program does not make from the
 * files as they are now. A person wrote them, or what they are about is gone.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/diff.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/fix_impl.h"
#include "fix/step_impl.h"

#include <errno.h>
#include <string.h>

/* Not where the file itself is: nothing there is touched before it is asked for. */
#define FORESEEN    JOURNAL_FOLDER "/foreseen"
#define DROPPED_MAX 200 /* lines that are noted of one file */

/* Empty lines and comments are nobody's loss. */
static bool is_missed(const struct diff_line *l)
{
	size_t blank = 0;

	while (blank < l->n && (l->text[blank] == ' ' || l->text[blank] == '\t'))
		blank++;
	return blank < l->n && l->text[blank] != '#';
}

static bool is_moved(const struct diff *d, const struct diff_line *gone)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->lines[i].mark == DIFF_NEW && d->lines[i].n == gone->n &&
		    memcmp(d->lines[i].text, gone->text, gone->n) == 0)
			return true;
	return false;
}

/* The journal holds them as text, and they need not be UTF-8, nor without zero bytes. */
static const char *plain(struct arena *a, const struct diff_line *l)
{
	char *text = arena_alloc(a, l->n + 1, 1);

	for (size_t i = 0; i < l->n; i++) {
		const unsigned char c = (unsigned char)l->text[i];

		text[i] = (char)(c == '\t' ? ' ' : c >= ' ' && c < 0x80 ? c : '?');
	}
	return text;
}

/* What the fix itself had put there; `own` NULL: nothing. */
static bool is_own(const struct bytes *own, const struct diff_line *gone)
{
	const char *line = NULL;
	size_t n;

	while (own && own->data && text_next_line(&line, &n, own->data))
		if (n == gone->n && memcmp(line, gone->text, n) == 0)
			return true;
	return false;
}

/* `present`: what is in the file now; `own`: what the fix put there, NULL: not yet. */
static void note_dropped(struct arena *a, struct step *s, const struct bytes *present,
			 const struct bytes *own, const struct bytes *made)
{
	const char **dropped = arena_alloc(a, DROPPED_MAX + 1, sizeof(*dropped));
	struct diff d;
	size_t n = 0;

	diff_texts(present->data, present->size, made->data, made->size, &d);
	for (size_t i = 0; i < d.n && n < DROPPED_MAX; i++)
		if (d.lines[i].mark == DIFF_GONE && is_missed(&d.lines[i]) &&
		    !is_moved(&d, &d.lines[i]) && !is_own(own, &d.lines[i]))
			dropped[n++] = plain(a, &d.lines[i]);
	diff_done(&d);
	s->dropped = n ? dropped : NULL;
}

static int remove_foreseen(struct fix_host *h)
{
	int r = host_remove(h, FORESEEN);

	return r < 0 ? r : host_remove(h, FORESEEN ".new");
}

/* Why it cannot be made is reported by the step itself, which is undone then. */
static int foresee(struct fix_host *h, struct arena *a, struct step *s, const char *const *argv,
		   const struct bytes *present, const struct bytes *own)
{
	AUTO_STRBUF struct strbuf output = {0};
	AUTO_FREE char *data = NULL;
	struct bytes made;
	int r = remove_foreseen(h);

	if (r < 0)
		return r;
	if (step_run_filled(h, s, argv, FORESEEN, &output) == 0 &&
	    host_read(h, FORESEEN, &data, &made.size) == 0) {
		made.data = data;
		note_dropped(a, s, present, own, &made);
	}
	return remove_foreseen(h);
}

/* What is not as it was planned for is reported by fix_apply. */
static int foresee_step(struct fix_host *h, struct arena *a, struct step *s)
{
	enum step_state state;
	int r = step_read_state(h, s, &state, NULL);

	if (r < 0 || state != STEP_IS_OLD || !s->old.data)
		return r;
	return foresee(h, a, s, s->argv, &s->old, NULL);
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
			r = foresee_step(run->host, p->arena, &p->steps[i]);
	}
	journal_unlock(lock);
	return r;
}

/* ---- the same of an undo ---- */

/* What the step behind the changed files made; NULL: none did. */
static const struct bytes *made_by_fix(const struct plan *p, const struct step *s)
{
	for (size_t i = p->step_n; i-- > 0;)
		if (step_same_target(&p->steps[i], s) && p->steps[i].new.data)
			return &p->steps[i].new;
	return NULL;
}

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
	return foresee(h, p->arena, s, s->undo_argv, &present, made_by_fix(p, s));
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
