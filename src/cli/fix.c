/* SPDX-License-Identifier: Apache-2.0 */
/* onehop fix: the plan that would resolve what check finds; --apply carries it out. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/ask.h"
#include "cli/fix_context.h"
#include "cli/progress.h"
#include "diagnose/diagnose.h"
#include "machine/machine.h"
#include "session/confirm_session.h"
#include "session/plan_session.h"

#include <limits.h>
#include <string.h>

struct fix_options {
	struct common_options common;
	const char *root;
	struct plan_choice request;
	bool apply, yes, dry_run, at_boot, confirm, when_healthy;
};

static const char *const iommu_words[] = {"pt", "off", NULL};

/* clang-format off */
#define AT(member) offsetof(struct fix_options, member)
static const struct option fix_table[] = {
	OPT_FLAG("apply", apply, "make the planned changes; without it nothing is changed"),
	OPT_FLAG("dry-run", dry_run, "print the plan and change nothing; this is the default"),
	OPT_FLAG("yes", yes,
		"continue even if regenerating a file loses manual edits", .letter = 'y'),
	COMMON_FROM(struct fix_options),
	COMMON_HOST(struct fix_options),
	COMMON_ROOT(struct fix_options),
	COMMON_OBSERVED(struct fix_options),
	OPT_CHOICE("iommu", request.iommu, "HOW", iommu_words,
		"how to change an IOMMU that translates: pt (pass-through, the default) or off"),
	OPT_FLAG("now", request.now,
		"only changes that take effect now and last until the next boot"),
	OPT_FLAG("kept", request.kept, "only permanent changes"),
	OPT_FLAG("trial", request.trial,
		"try kernel parameters for one boot, until they are confirmed; the default where "
		"no display is connected"),
	OPT_FLAG("no-trial", request.no_trial,
		"set kernel parameters permanently, without a trial boot"),
	OPT_FLAG("confirm", confirm, "keep the kernel parameters that this boot tries"),
	OPT_FLAG("when-healthy", when_healthy,
		"for onehop's own unit: confirm once the system is up and as healthy as before",
		.hidden = true),
	OPT_FLAG("at-boot", at_boot,
		"for onehop's own unit: write the registers of fixes in force again", .hidden = true),
	COMMON_JSON(struct fix_options),
	COMMON_COLOR(struct fix_options),
	COMMON_WIDTH(struct fix_options),
	OPT_FLAG("verbose", common.verbose,
		"show whole files and how each step is undone", .letter = 'v'),
	COMMON_HELP(struct fix_options),
	OPTIONS_END,
};
/* clang-format on */

/* The plan was made before the trial boot. */
#define KEEPS_TRIAL ": it keeps the kernel parameters that this boot tries"

static const struct option_rule fix_rules[] = {
	{"confirm", .not_with = "apply dry-run trial no-trial now kept iommu observed root from",
	 .why = KEEPS_TRIAL},
	{"now", .not_with = "kept"},
	{"trial", .not_with = "no-trial"},
	{"trial", .not_with = "root", .why = ": it sets the next boot of this machine"},
	{"apply", .not_with = "dry-run"},
	{"apply", .not_with = "from", .why = ": run it on the machine itself"},
	{0},
};

/* A run: what it prints with, and what it is about. */
struct job {
	const struct fix_options *o;
	struct plan_session plan;
};

/* ---- printing it ---- */

/* "onehop fix acs-redirect --iommu off --apply": the command that applies this plan. */
static void add_words(const struct fix_options *o, struct strbuf *b)
{
	strbuf_puts(b, "onehop fix");
	for (size_t i = 0; i < o->request.rule_n; i++)
		strbuf_printf(b, " %s", o->request.rules[i]);
	options_given(fix_table, o, "iommu observed no-observed now kept trial no-trial root", b);
	strbuf_puts(b, " --apply");
}

static struct plan_report report_of(const struct job *p, const struct fix_context *s)
{
	struct plan_report r =
		plan_report_of(p->plan.planned.plan, p->plan.machine, s ? &s->session : NULL);

	r.changes = &p->plan.planned.changes;
	r.judged = diagnosis_judged_any(p->plan.diagnosis);
	r.diagnosis = p->plan.diagnosis;
	r.rules = p->o->request.rules;
	r.rule_n = p->o->request.rule_n;
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

static int show(const struct job *p, const struct fix_context *s)
{
	AUTO_STRBUF struct strbuf words = {0};
	struct plan_report r = report_of(p, s);

	add_words(p->o, &words);
	r.apply_words = strbuf_str(&words);
	if (p->o->common.json)
		return print_json(report_plan_json(&r, NULL), judge(p, &r));
	return print_report(p, &r, judge(p, &r));
}

/* ---- carrying it out ---- */

static int print_outcome_json(const struct job *p, const struct fix_context *s,
			      const struct fix_outcome *o)
{
	struct plan_report r = report_of(p, s);

	return finish_outcome_json(o, report_plan_json(&r, o));
}

/* Ids of those that only root could judge. */
static void add_unseen(const struct plan_report *r, struct strbuf *b)
{
	for (const struct outcome *o = NULL; (o = report_not_judged(r, o));)
		if (o->root_would_tell)
			strbuf_printf(b, "%s%s", b->len ? ", " : "", o->rule->id);
}

/* There is no step, but root might have found some. */
static int nothing_to_apply(const struct job *p, const struct fix_context *s)
{
	const struct plan_report r = report_of(p, s);
	AUTO_STRBUF struct strbuf unseen = {0};

	add_unseen(&r, &unseen);
	if (!unseen.len || geteuid() == 0)
		return show(p, s);
	return fail(EXIT_REFUSED,
		    "--apply needs root; nothing was changed. Not judged without root: %s",
		    unseen.text);
}

static int refuse_to_drop(const struct job *p, const struct fix_context *s)
{
	const struct fix_outcome o = {
		.error = -EPERM,
		.sentence =
			"regenerating a file would lose lines; nothing was changed (to continue anyway: --yes)",
		.root = s->session.root};

	if (p->o->common.json)
		return print_outcome_json(p, s, &o);
	return fail(EXIT_REFUSED, "%s", o.sentence);
}

/* Runs the generators without installing their output: what they would change, and which lines would be lost. */
static int look_ahead(struct job *p, struct fix_context *s)
{
	const struct fix_run run = change_session_run(&s->session);

	return fix_foresee(&run, p->plan.planned.plan);
}

/* 0: continue. */
static int ask_to_lose_lines(const struct job *p, const struct fix_context *s)
{
	if (p->o->yes || !plan_drops_lines(p->plan.planned.plan))
		return 0;
	return p->o->common.json || !can_ask() ? refuse_to_drop(p, s)
					       : ask("Continue and lose them?");
}

/* The plan is printed first. If that fails, nothing is changed. */
static int apply(struct job *p, struct fix_context *s)
{
	const struct step *first = plan_first_step(p->plan.planned.plan);
	struct fix_outcome o;
	int r;

	if (!first)
		return nothing_to_apply(p, s);
	if (!change_session_may_write(&s->session))
		return fail(EXIT_REFUSED, "--apply needs root; nothing was changed (step 1: %s)",
			    first->what);
	if (look_ahead(p, s) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (!p->o->common.json) {
		const struct plan_report report = report_of(p, s);

		r = print_report(p, &report, EXIT_OK);
		if (r)
			return r;
		printf("\n");
	}
	r = ask_to_lose_lines(p, s);
	if (r)
		return r;
	change_session_hold_signals();
	o = change_session_apply(&s->session, p->plan.planned.plan);
	o.only_now = p->o->request.now;
	if (p->o->common.json)
		return print_outcome_json(p, s, &o);
	printf("\n");
	return finish_outcome(s, &o);
}

/* ---- the command ---- */

/* One line in the system's log for each register that was written or failed. */
static void tell_at_boot(void *context, enum fix_event event, const struct journal_entry *e,
			 const struct step *s, const char *text)
{
	bool *failed = context;

	if (event == FIX_STEP_DONE)
		printf("fix %u: %s\n", e->number, s->what);
	fflush(stdout); /* in order with what goes to standard error */
	if (event != FIX_STEP_FAILED)
		return;
	fail(EXIT_NOT_CHANGED, "fix %u: %s", e->number, text);
	*failed = true;
}

/* Registers are reset at each boot; onehop-acs.service writes them again. */
static int at_boot(const struct fix_options *o)
{
	bool failed = false;
	struct fix_context s;
	struct fix_run run;
	size_t n;
	int r = fix_context_open(&o->common, o->root, &s);

	if (r)
		return r;
	run = change_session_run(&s.session);
	run.report = tell_at_boot;
	run.context = &failed;
	if (fix_at_boot(&run, &n) < 0)
		r = failed ? EXIT_NOT_CHANGED : fail(EXIT_NOT_CHANGED, "%s", err_msg());
	fix_context_close(&s);
	return r;
}

static int plan_and_go_on(struct job *p, struct fix_context *s)
{
	const bool apply_it = s && p->o->apply;
	enum ending end;

	if (apply_it && fix_check_trial(s->session.journal, s->session.journal_n) < 0)
		return fail(EXIT_REFUSED, "%s; nothing was changed", err_msg());
	end = plan_session_begin(&p->plan, &p->o->request, &p->o->common.machine,
				 s ? s->session.root : NULL);
	if (end != ENDED_WELL)
		return fail(ending_code(end), "%s", err_msg());
	if (apply_it)
		return apply(p, s);
	/* Where nothing can be written, the steps say that it is unknown. */
	if (s && change_session_may_write(&s->session))
		look_ahead(p, s);
	return show(p, s);
}

/* A recording has no journal, and this host's journal does not apply to it. */
static int fix_machine(struct job *p)
{
	struct fix_context s;
	bool host = !p->o->common.machine.from.n || p->o->root;
	int r = host ? fix_context_open(&p->o->common, p->o->root, &s) : 0;

	if (r)
		return r;
	if (host)
		change_session_read_journal(&s.session);
	r = host && p->o->apply ? fix_context_recover(&s, p->o->yes) : 0;
	if (r == 0)
		r = plan_and_go_on(p, host ? &s : NULL);
	if (host)
		fix_context_close(&s);
	return r;
}

static int print_confirmed(const struct fix_context *s, const struct confirm_session *c)
{
	const struct plan_report r = plan_report_of(c->plan, c->machine, &s->session);

	return s->common->json ? finish_outcome_json(&c->outcome, report_plan_json(&r, &c->outcome))
			       : finish_outcome(s, &c->outcome);
}

static int confirm_trial(const struct fix_options *o)
{
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	struct fix_context s;
	struct confirm_session c = {.fix = &s.session,
				    .ear = &ear,
				    .when_healthy = o->when_healthy};
	enum ending end;
	int r = fix_context_open(&o->common, NULL, &s);

	if (r)
		return r;
	end = confirm_session_run(&c);
	if (c.idle)
		printf("%s\n", c.idle);
	else if (c.ran)
		r = print_confirmed(&s, &c);
	else
		r = fail(ending_code(end), "%s", err_msg());
	confirm_session_done(&c);
	fix_context_close(&s);
	return r;
}

static int run_fix(const void *options, const char *const *args)
{
	struct fix_options o = *(const struct fix_options *)options;
	struct job p = {.o = &o};
	int r;

	if (o.at_boot)
		return at_boot(&o);
	if (o.confirm && *args)
		return fail(EXIT_REFUSED, "--confirm cannot be used with rules" KEEPS_TRIAL);
	if (o.confirm)
		return confirm_trial(&o);
	o.request.rules = args;
	for (; args[o.request.rule_n]; o.request.rule_n++)
		if (!rule_named(args[o.request.rule_n]))
			return fail(EXIT_REFUSED, "fix: %s", err_msg());
	r = fix_machine(&p);
	plan_session_done(&p.plan);
	return r;
}

const struct command command_fix = {
	.name = "fix",
	.args = "[RULE]...",
	.words = WORDS_RULES,
	.summary = "plan changes that resolve the findings; --apply makes them",
	.about =
		"Prints the steps that would resolve the findings of check, or only those of the named rules: each change, the old value, the reason and the cost. Without --apply nothing is changed. With --apply each step is journaled first and verified afterwards. If a step fails, all are undone. onehop undo reverts a fix.",
	.options = fix_table,
	.rules = fix_rules,
	.size = sizeof(struct fix_options),
	.max_args = MAX_ARGS,
	.run = run_fix,
};
