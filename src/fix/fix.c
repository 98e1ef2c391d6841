/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "fix/fix_impl.h"

#include <assert.h>
#include <string.h>

void fix_tell(const struct fix_run *run, enum fix_event event, const struct journal_entry *e,
	      const struct step *s, const char *text)
{
	if (run->report)
		run->report(run->context, event, e, s, text);
}

/* ---- what is there, before anything is written ---- */

/* A step and what becomes of it. */
struct prospect {
	bool skip;
	/* by itself: a file that changes twice is OTHER to one of its steps */
	enum step_state state;
	char *now;
};

struct prospects {
	struct prospect *items;
	size_t n, to_do; /* to_do: not counting programs */
	bool only_programs;
};

static void prospects_done(struct prospects *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->items[i].now);
	free(x->items);
}

/* The next step about the same target; n: none. */
static size_t next_of(const struct plan *p, size_t i)
{
	size_t k = i + 1;

	while (k < p->step_n && !step_same_target(&p->steps[i], &p->steps[k]))
		k++;
	return k;
}

static bool is_first_of(const struct plan *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (step_same_target(&p->steps[k], &p->steps[i]))
			return false;
	return true;
}

static bool same_bytes(const struct bytes *a, const struct bytes *b)
{
	if (!a->data || !b->data)
		return a->data == b->data;
	return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* The steps of one target lead from one content to the next. */
static int check_chain(const struct plan *p, size_t first)
{
	size_t next;

	for (size_t i = first; (next = next_of(p, i)) < p->step_n; i = next)
		if (!same_bytes(&p->steps[i].new, &p->steps[next].old) ||
		    p->steps[i].value.new != p->steps[next].value.old)
			return err_set(
				EINVAL,
				"the plan contradicts itself: step %zu leaves %s other than step "
				"%zu expects it",
				i + 1, p->steps[i].target, next + 1);
	return 0;
}

/* All up to the last that is new are done; the first of the others must be old. -1: none is wrong. */
static long judge_chain(const struct plan *p, size_t first, struct prospects *x)
{
	size_t begin = first;

	for (size_t i = first; i < p->step_n; i = next_of(p, i)) {
		if (x->items[i].state != STEP_IS_NEW)
			continue;
		for (size_t k = first; k <= i; k = next_of(p, k))
			x->items[k].skip = true;
		begin = next_of(p, i);
	}
	for (size_t i = begin; i < p->step_n; i = next_of(p, i))
		x->to_do++;
	if (begin < p->step_n && x->items[begin].state != STEP_IS_OLD)
		return (long)begin;
	return -1;
}

/* 1: drift at *ret_at. */
static int judge(const struct plan *p, struct prospects *x, size_t *ret_at)
{
	for (size_t i = 0; i < p->step_n; i++) {
		long wrong;
		int r;

		if (step_is_program(&p->steps[i]) || !is_first_of(p, i))
			continue;
		r = check_chain(p, i);
		if (r < 0)
			return r;
		wrong = judge_chain(p, i, x);
		if (wrong >= 0) {
			*ret_at = (size_t)wrong;
			return 1;
		}
	}
	for (size_t i = 0; i < p->step_n && x->to_do; i++)
		if (p->steps[i].kind == STEP_GENERATED && x->items[i].state == STEP_IS_OTHER) {
			*ret_at = i;
			return 1;
		}
	return 0;
}

static int check_image(const struct fix_run *run, const struct plan *p)
{
	for (size_t i = 0; run->host->image && i < p->step_n; i++)
		if (!step_in_image(&p->steps[i]))
			return err_set(EINVAL, "step %zu cannot be done in a system image: %s",
				       i + 1,
				       p->steps[i].what ? p->steps[i].what : "it needs the system");
	return 0;
}

/* 1: drift at *ret_at. */
static int look_ahead(const struct fix_run *run, const struct plan *p, struct prospects *x,
		      size_t *ret_at)
{
	int r = check_image(run, p);

	x->items = xcalloc(p->step_n, sizeof(*x->items));
	x->n = p->step_n;
	x->only_programs = p->step_n > 0;
	if (r == 0)
		r = fix_check_mounted(run->host, p);
	for (size_t i = 0; r == 0 && i < p->step_n; i++) {
		r = step_read_state(run->host, &p->steps[i], &x->items[i].state, &x->items[i].now);
		/* step_prepare leaves out the words that are there. */
		if (r == 0 && p->steps[i].kind == STEP_WORDS && x->items[i].state == STEP_IS_OTHER)
			x->items[i].state = STEP_IS_OLD;
		if (r == 0 && x->items[i].state == STEP_IS_OLD)
			r = step_allowed(run->host, &p->steps[i]);
		x->only_programs &= step_is_program(&p->steps[i]);
	}
	return r < 0 ? r : judge(p, x, ret_at);
}

static void tell_drift(const struct fix_run *run, const struct step *s, const char *now)
{
	AUTO_STRBUF struct strbuf text = {0};

	step_difference(s, STEP_OLD_SIDE, now, &text);
	strbuf_puts(&text, ": it was changed since the plan was made");
	fix_tell(run, FIX_STEP_FAILED, NULL, s, strbuf_str(&text));
}

/* ---- doing it ---- */

static int do_step(const struct fix_run *run, struct journal_entry *e, size_t i,
		   struct strbuf *output)
{
	struct step *s = &e->plan->steps[i];
	int r = step_make(run->host, e->plan->arena, s, output);

	if (r == 0 && s->kind == STEP_GENERATED && s->new.data)
		r = journal_new_content(run->host, e, i);
	return r < 0 ? r : step_apply(run->host, s, output);
}

static int failed(const struct fix_run *run, struct journal_entry *e, size_t i,
		  const struct strbuf *output, int r)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	journal_mark(run->host, e, i, MARK_FAILED, why, strbuf_str(output));
	/* What is there is another program's: of this step there is nothing to undo. */
	if (r == -EBUSY && step_has_content(&e->plan->steps[i]))
		journal_mark(run->host, e, i, MARK_UNDONE, NULL, NULL);
	fix_tell(run, FIX_STEP_FAILED, e, &e->plan->steps[i], why);
	return r;
}

static int carry_out(const struct fix_run *run, struct journal_entry *e, size_t i)
{
	AUTO_STRBUF struct strbuf output = {0};
	const struct step *s = &e->plan->steps[i];
	int r;

	/* For undoing only: from here on there is something to undo. */
	if (step_is_program(s) && !s->argv) {
		r = journal_mark(run->host, e, i, MARK_DONE, NULL, NULL);
		return r < 0 ? failed(run, e, i, &output, r) : 0;
	}
	r = journal_mark(run->host, e, i, MARK_STARTED, NULL, NULL);
	if (r < 0)
		return failed(run, e, i, &output, r);
	fix_tell(run, FIX_STEP_START, e, s, NULL);
	r = do_step(run, e, i, &output);
	if (r == 0)
		r = journal_mark(run->host, e, i, MARK_DONE, NULL, strbuf_str(&output));
	if (r < 0)
		return failed(run, e, i, &output, r);
	fix_tell(run, FIX_STEP_DONE, e, s, NULL);
	return 0;
}

/* Steps from `first` on, which `x` is of. */
static int carry_out_all(const struct fix_run *run, struct journal_entry *e, size_t first,
			 const struct prospects *x)
{
	int r = 0;

	assert(e->plan != NULL);
	for (size_t i = first; r == 0 && i < e->plan->step_n; i++) {
		if (x->items[i - first].skip)
			fix_tell(run, FIX_STEP_SKIPPED, e, &e->plan->steps[i], "it is set already");
		else
			r = carry_out(run, e, i);
	}
	return r;
}

/* The journal itself fails. */
static int tell_failed(const struct fix_run *run, const struct journal_entry *e, int r)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	fix_tell(run, FIX_STEP_FAILED, e, NULL, why);
	return r;
}

/* From it `check` says that this fix is not finished, should this run be killed. */
static int note_begun(const struct fix_run *run, const struct journal_entry *e)
{
	int r = journal_write_in_force(run->host);

	return r < 0 ? tell_failed(run, e, r) : 0;
}

static int came_through(const struct fix_run *run, struct journal_entry *e, enum fix_state state)
{
	int r = journal_state(run->host, e, state);

	if (r == 0)
		r = journal_write_in_force(run->host);
	return r < 0 ? tell_failed(run, e, r) : 0;
}

static int prepare(const struct fix_run *run, struct plan *p, const struct prospects *x)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->step_n; i++) {
		p->steps[i].to_do = !x->items[i].skip;
		r = x->items[i].skip ? 0 : step_prepare(run->host, p->arena, &p->steps[i]);
	}
	return r;
}

static int make(const struct fix_run *run, struct plan *p, const struct prospects *x,
		enum fix_result *ret_result, unsigned *ret_number)
{
	struct journal_entry e = {0};
	int r;

	r = prepare(run, p, x);
	if (r == 0 && plan_has_trial(p)) {
		fix_note_failed_units(run->host, p);
		fix_note_shown(p);
	}
	if (r == 0)
		r = journal_begin(run->host, p, &e);
	if (r < 0)
		return r;
	*ret_number = e.number;
	r = note_begun(run, &e);
	if (r == 0)
		r = carry_out_all(run, &e, 0, x);
	if (r == 0)
		r = came_through(run, &e, plan_has_trial(p) ? FIX_ON_TRIAL : FIX_APPLIED);
	if (r < 0)
		journal_state(run->host, &e, FIX_UNDOING);
	*ret_result = r == 0                        ? FIX_DONE
		      : fix_take_back(run, &e) == 0 ? FIX_ROLLED_BACK
						    : FIX_NOT_ROLLED_BACK;
	return 0;
}

/* A plan of programs only shows by nothing else that somebody did the same meanwhile. */
static bool is_outdated(const struct fix_run *run, const struct fix_session *session)
{
	unsigned last = session->n ? session->entries[session->n - 1].number : 0;

	return run->last_known && last != run->last;
}

int fix_apply(const struct fix_run *run, struct plan *p, enum fix_result *ret_result,
	      unsigned *ret_number)
{
	AUTO_SESSION struct fix_session session = {.lock = -1};
	CLEANUP(prospects_done) struct prospects x = {0};
	size_t recovered, at = 0;
	int r = fix_session_open(run, &session);

	if (r == 0)
		r = fix_check_damage(session.entries, session.n);
	if (r == 0)
		r = fix_recover_entries(run, session.entries, session.n, 0, &recovered);
	if (r == 0)
		r = fix_check_trial(session.entries, session.n);
	if (r < 0)
		return r;
	*ret_number = 0;
	if (is_outdated(run, &session)) {
		fix_tell(run, FIX_STEP_FAILED, NULL, NULL,
			 "another fix was made since the plan was made");
		*ret_result = FIX_DRIFT;
		return 0;
	}
	r = look_ahead(run, p, &x, &at);
	if (r < 0)
		return r;
	if (r > 0) {
		tell_drift(run, &p->steps[at], x.items[at].now);
		*ret_result = FIX_DRIFT;
		return 0;
	}
	if (!x.to_do && !x.only_programs) {
		*ret_result = FIX_NOTHING;
		return 0;
	}
	return make(run, p, &x, ret_result, ret_number);
}

/* ---- confirming ---- */

/* Its trial is over: what was only for that goes, the last first. */
static void end_trial(const struct fix_run *run, struct journal_entry *e)
{
	size_t left = fix_take_back_trial(run, e);

	if (left)
		fix_tell(
			run, FIX_UNDO_FAILED, e, NULL,
			"what the trial needed is still there, and has no effect; undo tries again "
			"to take it away");
}

static int confirm(const struct fix_run *run, struct journal_entry *e, struct plan *p,
		   const struct prospects *x, enum fix_result *ret_result)
{
	const size_t first = e->plan->step_n;
	int r = prepare(run, p, x);

	if (r == 0)
		r = journal_extend(run->host, e, p);
	if (r == 0)
		r = journal_state(run->host, e, FIX_APPLYING);
	if (r < 0)
		return r;
	journal_write_in_force(run->host); /* a trial does not end for that */
	r = carry_out_all(run, e, first, x);
	if (r == 0) {
		end_trial(run, e);
		r = came_through(run, e, FIX_APPLIED);
	}
	if (r < 0)
		journal_state(run->host, e, FIX_UNDOING);
	*ret_result = r == 0                       ? FIX_DONE
		      : fix_take_back(run, e) == 0 ? FIX_ROLLED_BACK
						   : FIX_NOT_ROLLED_BACK;
	return 0;
}

int fix_confirm(const struct fix_run *run, unsigned number, struct plan *p,
		enum fix_result *ret_result)
{
	AUTO_SESSION struct fix_session session = {.lock = -1};
	CLEANUP(prospects_done) struct prospects x = {0};
	size_t at = 0, wrong = 0;
	int r = fix_session_open(run, &session);

	if (r == 0)
		r = fix_check_damage(session.entries, session.n);
	if (r == 0)
		r = fix_check_confirm(session.entries, session.n, number, &at);
	if (r < 0)
		return r;
	r = look_ahead(run, p, &x, &wrong);
	if (r < 0)
		return r;
	if (r > 0) {
		tell_drift(run, &p->steps[wrong], x.items[wrong].now);
		*ret_result = FIX_DRIFT;
		return 0;
	}
	return confirm(run, &session.entries[at], p, &x, ret_result);
}
