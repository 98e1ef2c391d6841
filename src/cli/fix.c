/* SPDX-License-Identifier: Apache-2.0 */
/* onehop fix: the plan that would resolve what check finds; --apply carries it out. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "cli/ask.h"
#include "cli/confirm.h"
#include "cli/fix_context.h"
#include "cli/planning.h"
#include "diagnose/diagnose.h"
#include "machine/machine.h"

#include <limits.h>
#include <string.h>

struct fix_options {
	struct common_options common;
	const char *root;
	struct observed_options observed;
	int iommu;
	bool apply, yes, dry_run, now, kept, at_boot, trial, no_trial, confirm, when_healthy;
};

static const char *const iommu_words[] = {"pt", "off", NULL};
#define IOMMU_OFF 2

/* clang-format off */
#define AT(member) offsetof(struct fix_options, member)
static const struct option fix_table[] = {
	{"apply", 0, OPTION_FLAG, AT(apply), NULL,
		"make the planned changes; without it nothing is changed", NULL, 0, 0, 0},
	{"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL,
		"print the plan and change nothing; this is the default",
		NULL, 0, 0, 0},
	{"yes", 'y', OPTION_FLAG, AT(yes), NULL,
		"continue even if regenerating a file loses manual edits",
		NULL, 0, 0, 0},
	COMMON_FROM(struct fix_options),
	COMMON_ROOT(struct fix_options),
	COMMON_OBSERVED(struct fix_options),
	{"iommu", 0, OPTION_CHOICE, AT(iommu), "HOW",
		"how to change an IOMMU that translates: pt (pass-through, the default) or off", iommu_words, 0, 0, 0},
	{"now", 0, OPTION_FLAG, AT(now), NULL,
		"only changes that take effect now and last until the next boot", NULL, 0, 0, 0},
	{"kept", 0, OPTION_FLAG, AT(kept), NULL,
		"only permanent changes", NULL, 0, 0, 0},
	{"trial", 0, OPTION_FLAG, AT(trial), NULL,
		"try kernel parameters for one boot, until they are confirmed; the default where "
		"no display is connected", NULL, 0, 0, 0},
	{"no-trial", 0, OPTION_FLAG, AT(no_trial), NULL,
		"set kernel parameters permanently, without a trial boot", NULL, 0, 0, 0},
	{"confirm", 0, OPTION_FLAG, AT(confirm), NULL,
		"keep the kernel parameters that this boot tries", NULL, 0, 0, 0},
	{"when-healthy", 0, OPTION_FLAG, AT(when_healthy), NULL,
		"for onehop's own unit: confirm once the system is up and as healthy as before",
		NULL, 0, 0, true},
	{"at-boot", 0, OPTION_FLAG, AT(at_boot), NULL,
		"for onehop's own unit: write the registers of fixes in force again",
		NULL, 0, 0, true},
	COMMON_JSON(struct fix_options),
	COMMON_COLOR(struct fix_options),
	COMMON_WIDTH(struct fix_options),
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"show whole files and how each step is undone",
		NULL, 0, 0, 0},
	COMMON_HELP(struct fix_options),
	OPTIONS_END,
};
/* clang-format on */

/* ---- making the plan ---- */

struct job {
	const struct fix_options *o;
	const char *const *rules;
	size_t rule_n;
	struct machine *machine;
	struct topology *topology;
	struct diagnosis *diagnosis;
	struct planned planned;
};

static void job_done(struct job *p)
{
	if (p->planned.plan)
		planned_done(&p->planned);
	if (p->diagnosis)
		diagnosis_free(p->diagnosis);
	if (p->topology)
		topology_free(p->topology);
	if (p->machine)
		machine_free(p->machine);
}

static unsigned lifetime(const struct fix_options *o)
{
	return o->now ? CHANGE_NOW : o->kept ? CHANGE_KEPT : CHANGE_LASTING;
}

static int judge_machine(struct job *p)
{
	const struct fix_options *o = p->o;

	if (load_observed(&o->common, &o->observed, MACHINE_TO_JUDGE, &p->machine) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	p->topology = topology_new(p->machine);
	p->diagnosis = diagnose(p->topology);
	return 0;
}

static int make_plan(struct job *p, const char *root)
{
	const struct planning how = {
		.from = &p->o->common.from,
		.root = root,
		.propose = {.rules = p->rules,
			    .rule_n = p->rule_n,
			    .iommu_off = p->o->iommu == IOMMU_OFF},
		.trial = p->o->no_trial ? TRIAL_NEVER
			 : p->o->trial  ? TRIAL_ALWAYS
					: TRIAL_WITHOUT_DISPLAY,
		.lifetime = lifetime(p->o),
	};

	if (planned_make(&how, p->diagnosis, &p->planned) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	if (p->o->trial && p->planned.plan->no_trial)
		return fail(
			EXIT_REFUSED,
			"a trial boot is not possible: %s (to set the kernel parameters permanently, omit --trial)",
			p->planned.plan->no_trial);
	return 0;
}

/* ---- printing it ---- */

/* "onehop fix acs-redirect --iommu off --apply": the command that applies this plan. */
static void add_words(const struct job *p, const char *root, struct strbuf *b)
{
	const struct fix_options *o = p->o;

	strbuf_puts(b, "onehop fix");
	for (size_t i = 0; i < p->rule_n; i++)
		strbuf_printf(b, " %s", p->rules[i]);
	if (o->iommu)
		strbuf_printf(b, " --iommu %s", iommu_words[o->iommu - 1]);
	for (size_t i = 0; i < o->observed.files.n; i++) {
		strbuf_puts(b, " --observed ");
		strbuf_shell_word(b, o->observed.files.items[i]);
	}
	if (o->observed.no_store)
		strbuf_puts(b, " --no-observed");
	if (o->now || o->kept)
		strbuf_puts(b, o->now ? " --now" : " --kept");
	if (o->trial || o->no_trial)
		strbuf_puts(b, o->trial ? " --trial" : " --no-trial");
	if (root) {
		strbuf_puts(b, " --root ");
		strbuf_shell_word(b, root);
	}
	strbuf_puts(b, " --apply");
}

static struct plan_report report_of(const struct job *p, const struct fix_context *s)
{
	return (struct plan_report){
		.plan = p->planned.plan,
		.changes = &p->planned.changes,
		.machine = p->machine,
		.root = s ? s->root : NULL,
		.journal = s ? s->journal : NULL,
		.journal_n = s ? s->journal_n : 0,
		.journal_unread = s ? s->journal_unread : NULL,
		.judged = machine_was_judged(p->diagnosis),
		.diagnosis = p->diagnosis,
		.rules = p->rules,
		.rule_n = p->rule_n,
		.is_root = s && fix_context_may_write(s),
		.verbose = p->o->common.verbose,
	};
}

/* --apply without a step that can be done is refused. */
static enum exit_code judge(const struct job *p, const struct plan_report *r)
{
	if (p->planned.plan->left_out_n && p->o->apply)
		return EXIT_REFUSED;
	if (plan_has_work(p->planned.plan) || p->planned.plan->left_out_n)
		return EXIT_FINDING;
	if (p->rule_n && report_not_judged(r, NULL))
		return EXIT_NOT_JUDGED;
	if (p->planned.made.n) /* proposed, and already set */
		return EXIT_OK;
	return r->judged ? EXIT_OK : EXIT_NOT_JUDGED;
}

static int print_report(const struct job *p, const struct plan_report *r, enum exit_code code)
{
	struct document *d = document_new();

	report_plan(d, r);
	code = (enum exit_code)print_document(d, &p->o->common, code);
	document_free(d);
	return (int)code;
}

static int show(const struct job *p, const struct fix_context *s)
{
	AUTO_STRBUF struct strbuf words = {0};
	struct plan_report r = report_of(p, s);

	add_words(p, r.root, &words);
	r.apply_words = strbuf_str(&words);
	if (p->o->common.json)
		return print_json(report_plan_json(&r, NULL), judge(p, &r));
	return print_report(p, &r, judge(p, &r));
}

/* ---- carrying it out ---- */

static const struct step *first_step(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (step_does(&p->steps[i]))
			return &p->steps[i];
	return NULL;
}

static int print_outcome_json(const struct job *p, const struct fix_context *s,
			      const struct fix_outcome *o)
{
	struct plan_report r = report_of(p, s);
	enum exit_code code = outcome_code(o);
	int printed = print_json(report_plan_json(&r, o), code);

	return code ? (int)code : printed;
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
		.root = s->root};

	if (p->o->common.json)
		return print_outcome_json(p, s, &o);
	return fail(EXIT_REFUSED, "%s", o.sentence);
}

/* Runs the generators without installing their output, to see which lines would be lost. 0: continue. */
static int look_ahead(struct job *p, struct fix_context *s)
{
	const struct fix_run run = fix_context_run(s);
	struct document *d;

	if (fix_foresee(&run, p->planned.plan) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (!plan_drops_lines(p->planned.plan))
		return 0;
	if (!p->o->common.json) {
		d = document_new();
		report_dropped(d, p->planned.plan, false);
		print_document(d, &p->o->common, EXIT_OK);
		document_free(d);
	}
	if (p->o->yes)
		return 0;
	return p->o->common.json || !can_ask() ? refuse_to_drop(p, s)
					       : ask("Continue and lose them?");
}

/* The plan is printed first. If that fails, nothing is changed. */
static int apply(struct job *p, struct fix_context *s)
{
	const struct step *first = first_step(p->planned.plan);
	struct fix_outcome o;
	int r;

	if (!first)
		return nothing_to_apply(p, s);
	if (!fix_context_may_write(s))
		return fail(EXIT_REFUSED, "--apply needs root; nothing was changed (step 1: %s)",
			    first->what);
	if (!p->o->common.json) {
		const struct plan_report report = report_of(p, s);

		r = print_report(p, &report, EXIT_OK);
		if (r)
			return r;
		printf("\n");
	}
	r = look_ahead(p, s);
	if (r)
		return r;
	fix_context_hold_signals();
	o = fix_context_carry_out(s, p->planned.plan);
	o.only_now = lifetime(p->o) == CHANGE_NOW;
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
	run = fix_context_run(&s);
	run.report = tell_at_boot;
	run.context = &failed;
	if (fix_at_boot(&run, &n) < 0)
		r = failed ? EXIT_NOT_CHANGED : fail(EXIT_NOT_CHANGED, "%s", err_msg());
	fix_context_close(&s);
	return r;
}

static int plan_and_go_on(struct job *p, struct fix_context *s)
{
	int r = s && p->o->apply ? fix_context_recover(s) : 0;

	if (r == 0 && s && p->o->apply && fix_check_trial(s->journal, s->journal_n) < 0)
		return fail(EXIT_REFUSED, "%s; nothing was changed", err_msg());
	if (r == 0)
		r = judge_machine(p);
	if (r == 0)
		r = make_plan(p, s ? s->root : NULL);
	if (r)
		return r;
	return s && p->o->apply ? apply(p, s) : show(p, s);
}

/* A recording has no journal, and this host's journal does not apply to it. */
static int fix_machine(struct job *p)
{
	struct fix_context s;
	bool host = !p->o->common.from.n || p->o->root;
	int r = host ? fix_context_open(&p->o->common, p->o->root, &s) : 0;

	if (r)
		return r;
	if (host)
		fix_context_read_journal(&s);
	r = plan_and_go_on(p, host ? &s : NULL);
	if (host)
		fix_context_close(&s);
	return r;
}

/* The plan was made before the trial boot, so options that shape a plan are refused. */
static int confirm_or_refuse(const struct fix_options *o, const char *const *args)
{
	if (*args || o->apply || o->dry_run || o->trial || o->no_trial || o->now || o->kept ||
	    o->iommu || o->observed.files.n || o->root || o->common.from.n)
		return fail(
			EXIT_REFUSED,
			"--confirm cannot be combined with rules or other options: it keeps the kernel parameters that this boot tries");
	return confirm_trial(&o->common, o->when_healthy);
}

static int run_fix(const void *options, const char *const *args)
{
	const struct fix_options *o = options;
	struct job p = {.o = o, .rules = args};
	int r;

	if (o->at_boot)
		return at_boot(o);
	if (o->confirm)
		return confirm_or_refuse(o, args);
	if (o->now && o->kept)
		return fail(EXIT_REFUSED, "--now and --kept cannot be combined");
	if (o->trial && o->no_trial)
		return fail(EXIT_REFUSED, "--trial and --no-trial cannot be combined");
	if (o->trial && o->root)
		return fail(
			EXIT_REFUSED,
			"--trial cannot be used with --root: it sets the next boot of this machine");
	for (; args[p.rule_n]; p.rule_n++)
		if (!rule_find(args[p.rule_n]))
			return no_rule("fix", args[p.rule_n]);
	if (o->apply && o->dry_run)
		return fail(EXIT_REFUSED, "--apply and --dry-run cannot be combined");
	if (o->apply && o->common.from.n)
		return fail(EXIT_REFUSED,
			    "--apply cannot be used with --from: run it on the machine itself");
	r = fix_machine(&p);
	job_done(&p);
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
	.size = sizeof(struct fix_options),
	.max_args = MAX_ARGS,
	.run = run_fix,
};
