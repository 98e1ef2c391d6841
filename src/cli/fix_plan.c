/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of onehop fix: shown, or carried out. */
#include "cli/fix.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/ask.h"

#include <stdio.h>
#include <unistd.h>

/* A run: what it prints with, and what it is about. */
struct job {
	const struct fix_options *o;
	const char *apply_words;
	struct fix_context
		*fix; /* NULL: a recording, which has no journal, and this host's is not its */
	struct plan_session plan;
};

/* ---- printing it ---- */

static struct plan_report report_of(const struct job *p)
{
	struct plan_report r = plan_report_of_session(&p->plan, p->fix ? &p->fix->session : NULL);

	r.verbose = p->o->common.verbose;
	return r;
}

/* --apply without a step that can be done is refused. */
static enum exit_code judge(const struct job *p, const struct plan_report *r)
{
	bool unseen = p->o->request.rule_n && report_not_judged(r, NULL);

	if (p->plan.planned.plan->left_out_n && p->o->apply)
		return EXIT_REFUSED;
	return verdict_code(plan_session_verdict(&p->plan, unseen));
}

static int print_report(const struct job *p, const struct plan_report *r, enum exit_code code)
{
	struct document *d = document_new();

	report_plan(d, r);
	return show_document(d, &p->o->common, code);
}

static int show(const struct job *p)
{
	struct plan_report r = report_of(p);

	r.apply_words = p->apply_words;
	if (p->o->common.json)
		return print_json(report_plan_json(&r, NULL), judge(p, &r));
	return print_report(p, &r, judge(p, &r));
}

static int print_outcome_json(const struct job *p, const struct fix_outcome *o)
{
	struct plan_report r = report_of(p);

	return finish_outcome_json(o, report_plan_json(&r, o));
}

/* ---- carrying it out ---- */

/* There is no step, but root might have found some. */
static int nothing_to_apply(const struct job *p)
{
	const struct plan_report r = report_of(p);
	AUTO_STRBUF struct strbuf unseen = {0};

	report_root_would_judge(&r, &unseen);
	if (!unseen.len || geteuid() == 0)
		return show(p);
	return fail(
		EXIT_REFUSED,
		"--apply needs root (use sudo); nothing was changed. Not judged without root: %s",
		unseen.text);
}

static int refuse(const struct job *p)
{
	AUTO_FREE char *sentence = xstrdup(err_msg());
	const struct fix_outcome o = {.error = -EPERM,
				      .sentence = sentence,
				      .root = p->fix->session.root};

	if (p->o->common.json)
		return print_outcome_json(p, &o);
	return fail(EXIT_REFUSED, "%s", o.sentence);
}

/* 0: continue. */
static int check(const struct job *p)
{
	const bool asks = !p->o->yes && !p->o->common.json && can_ask();

	if (plan_session_check(&p->plan, p->o->yes || asks) < 0)
		return refuse(p);
	return asks && plan_drops_lines(p->plan.planned.plan) ? ask("Continue and lose them?") : 0;
}

/* Before anything is done. If it cannot be printed, nothing is changed. */
static int show_first(const struct job *p)
{
	const struct plan_report report = report_of(p);
	int r = p->o->common.json ? 0 : print_report(p, &report, EXIT_OK);

	if (r == 0 && !p->o->common.json)
		printf("\n");
	return r;
}

static int apply(struct job *p)
{
	struct change_session *s = &p->fix->session;
	const struct step *first = plan_first_step(p->plan.planned.plan);
	struct fix_outcome o;
	int r;

	if (!first)
		return nothing_to_apply(p);
	if (!change_session_may_write(s))
		return fail(EXIT_REFUSED,
			    "--apply needs root (use sudo); nothing was changed (step 1: %s)",
			    first->what);
	r = show_first(p);
	if (r == 0)
		r = check(p);
	if (r)
		return r;
	change_session_hold_signals();
	o = change_session_apply(s, p->plan.planned.plan);
	o.only_now = p->o->request.now;
	if (p->o->common.json)
		return print_outcome_json(p, &o);
	printf("\n");
	return finish_outcome(p->fix, &o);
}

static int plan_and_go_on(struct job *p)
{
	const bool applies = p->fix && p->o->apply;
	enum ending end = plan_session_begin(&p->plan, &p->o->request, &p->o->common.machine,
					     p->fix ? &p->fix->session : NULL, applies);
	int r = end != ENDED_WELL ? fail(ending_code(end), "%s", err_msg())
		: applies         ? apply(p)
				  : show(p);

	plan_session_done(&p->plan);
	return r;
}

int fix_plan(const struct fix_options *o, const char *apply_words)
{
	struct job p = {.o = o, .apply_words = apply_words};
	struct fix_context fix;
	int r;

	if (o->common.machine.from.n && !o->root)
		return plan_and_go_on(&p);
	r = fix_context_open(&o->common, o->root, &fix);
	if (r)
		return r;
	p.fix = &fix;
	change_session_read_journal(&fix.session);
	r = o->apply ? fix_context_recover(&fix, o->yes) : 0;
	if (r == 0)
		r = plan_and_go_on(&p);
	fix_context_close(&fix);
	return r;
}
