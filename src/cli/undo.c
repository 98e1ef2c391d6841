/* SPDX-License-Identifier: Apache-2.0 */
/* onehop undo: takes a fix back. Looks at no GPU and no library: rescue shells have none. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask.h"
#include "cli/fix_context.h"
#include "report/report_unlock_delivery.h"

#include <string.h>

struct undo_options {
	struct common_options common;
	const char *root;
	bool dry_run, yes, forget;
};

/* clang-format off */
#define AT(member) offsetof(struct undo_options, member)
static const struct option undo_table[] = {
	OPT_FLAG("dry-run", dry_run, "show what would be done and change nothing"),
	OPT_FLAG("forget", forget,
		"close fix N, which was undone by other means, and change nothing else"),
	COMMON_YES(struct undo_options),
	COMMON_ROOT(struct undo_options),
	COMMON_JSON(struct undo_options),
	COMMON_COLOR(struct undo_options),
	COMMON_WIDTH(struct undo_options),
	OPT_FLAG("verbose", common.verbose,
		"in the plan, also show the present content of what someone else changed", .letter = 'v'),
	COMMON_HELP(struct undo_options),
	OPTIONS_END,
};
/* clang-format on */

/* ---- the plan ---- */

/* The exit status is that with which the undo would end. */
static int print_plan(struct fix_context *s, const struct fix_outcome *o, bool dry_run)
{
	const struct journal_entry *e = o->entry;
	AUTO_FREE enum step_state *states = xcalloc(e->plan->step_n + 1, sizeof(*states));
	AUTO_FREE char **now = xcalloc(e->plan->step_n + 1, sizeof(*now));
	enum exit_code code = dry_run ? ending_code(fix_outcome_ending(o)) : EXIT_OK;
	struct document *d = document_new();
	int r;

	fix_read_back(&s->session.host, e, states, now);
	report_undo_plan(d, o, states, now, s->common->verbose);
	if (plan_drops_lines(e->plan)) {
		document_blank(d);
		report_dropped(d, e->plan, true);
	}
	if (dry_run)
		report_nothing_changed(d);
	r = show_document(d, s->common, code);
	for (size_t i = 0; i < e->plan->step_n; i++)
		free(now[i]);
	return r;
}

/* Runs the generators without installing their output, as `fix --apply` does. */
static int look_ahead(struct fix_context *s, const struct journal_entry *e)
{
	const struct fix_run run = change_session_run(&s->session);

	return fix_foresee_undo(&run, e);
}

static int dry_run(struct fix_context *s, const struct journal_entry *e)
{
	struct fix_outcome o;

	/* Where nothing can be written the plan is shown without. */
	if (change_session_may_write(&s->session))
		look_ahead(s, e);
	o = change_session_rehearse_undo(&s->session, e);
	if (s->common->json)
		return print_json(report_undo_json(&o), ending_code(fix_outcome_ending(&o)));
	return print_plan(s, &o, true);
}

/* Scripts read what is done as it is done: they are shown no plan, and are not asked. */
static int show_and_ask(struct fix_context *s, const struct journal_entry *e, bool yes)
{
	struct fix_outcome o;
	int r;

	if (s->common->json || !can_ask())
		return 0;
	if (look_ahead(s, e) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	o = change_session_rehearse_undo(&s->session, e);
	change_session_drop_events(&s->session);
	r = print_plan(s, &o, false);
	return r || yes ? r
			: ask(plan_drops_lines(e->plan) ? "Undo fix %u and lose these lines?"
							: "Undo fix %u?",
			      e->number);
}

/* ---- doing it ---- */

static int undo(struct fix_context *s, unsigned number)
{
	struct fix_outcome o;

	change_session_hold_signals();
	o = change_session_undo(&s->session, number);
	if (!s->common->json)
		return finish_outcome(s, &o);
	return finish_outcome_json(&o, report_left_json(o.left_builds, o.left_build_n,
							o.left_sources, report_undo_json(&o)));
}

/* Before the lock: what is refused writes nothing. fix_undo looks again, under it. */
static int refuse(struct fix_context *s, int error, bool say)
{
	const struct fix_outcome o = {.undo = true,
				      .dry_run = say,
				      .error = error,
				      .sentence = err_msg(),
				      .root = s->session.root};

	if (s->common->json)
		return print_json(report_undo_json(&o), EXIT_REFUSED);
	return fail(EXIT_REFUSED, "%s%s", o.sentence,
		    error == -ENOENT ? " (see: onehop history)" : "");
}

static int forget(struct fix_context *s, const struct fix_run *run, const struct journal_entry *e,
		  bool dry_run)
{
	struct fix_outcome o = {.undo = true, .dry_run = dry_run, .root = s->session.root};
	struct document *d;
	int r = dry_run ? 0 : fix_forget(run, e->number);

	if (r < 0)
		return refuse(s, r, false);
	o.number = e->number;
	change_session_read_journal(&s->session);
	o.entry = change_session_entry(&s->session, o.number);
	if (s->common->json)
		return print_json(report_undo_json(&o), EXIT_OK);
	d = document_new();
	if (dry_run)
		report_nothing_changed(d);
	else
		report_forgotten(d, o.entry);
	return show_document(d, s->common, EXIT_OK);
}

static int forget_or_say(struct fix_context *s, unsigned number, const struct undo_options *o)
{
	struct fix_run run = change_session_run(&s->session);
	size_t at;
	int r;

	run.is_own = o->yes;
	r = fix_check_forget(&run, s->session.journal, s->session.journal_n, number, &at);
	return r < 0 ? refuse(s, r, o->dry_run)
		     : forget(s, &run, &s->session.journal[at], o->dry_run);
}

static int undo_or_say(struct fix_context *s, unsigned number, const void *options)
{
	const struct undo_options *o = options;
	size_t at;
	int r;

	if (!o->dry_run && !change_session_may_write(&s->session))
		return fail(EXIT_REFUSED, "undo needs root. Nothing was changed.");
	if (change_session_read_journal(&s->session) < 0)
		return fail(EXIT_REFUSED, "%s", s->session.journal_unread);
	if (o->forget)
		return forget_or_say(s, number, o);
	r = fix_check_undo(&s->session.host, s->session.journal, s->session.journal_n, number, &at);
	if (r < 0)
		return refuse(s, r, o->dry_run);
	if (o->dry_run)
		return dry_run(s, &s->session.journal[at]);
	r = show_and_ask(s, &s->session.journal[at], o->yes);
	/* The one that was shown, whatever came behind it while somebody thought. */
	return r ? r : undo(s, s->session.journal[at].number);
}

static int run_undo(const void *options, const char *const *args)
{
	const struct undo_options *o = options;

	if (o->forget && !args[0])
		return fail(EXIT_REFUSED,
			    "--forget needs the number of a fix (see: onehop history)");
	return fix_context_with_number(&o->common, o->root, args[0], undo_or_say, o);
}

const struct command command_undo = {
	.name = "undo",
	.args = "[N]",
	.words = WORDS_FIXES,
	.summary = "undo the last fix, or fix N",
	.about =
		"Undoes the steps of a fix from the last to the first. It continues after errors and "
		"reports each. It keeps what somebody else changed since. On a terminal it shows the steps first and asks. Needs no GPU, no driver and no network: it works from a text "
		"console or a rescue shell.",
	.options = undo_table,
	.size = sizeof(struct undo_options),
	.max_args = 1,
	.run = run_undo,
};
