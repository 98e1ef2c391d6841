/* SPDX-License-Identifier: Apache-2.0 */
/* onehop undo: takes a fix back. Looks at no GPU and no library: rescue shells have none. */
#include "cli/command.h"

#include "base/err.h"
#include "cli/ask.h"
#include "cli/fix_context.h"
#include "report/report_unlock_delivery.h"

#include <errno.h>

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

static int print_plan(const struct fix_context *s, const struct fix_outcome *o, enum exit_code code)
{
	struct document *d = document_new();

	report_undo_plan(d, o, s->common->verbose);
	return show_document(d, s->common, code);
}

/* The exit status is that with which the undo would end. */
static int dry_run(struct fix_context *s, const struct journal_entry *e)
{
	struct fix_outcome o;
	enum exit_code code;

	/* Where it is unknown what would be lost, the plan is shown without. */
	change_session_rehearse_undo(&s->session, e, &o);
	code = ending_code(fix_outcome_ending(&o));
	return s->common->json ? print_json(report_undo_json(&o), code) : print_plan(s, &o, code);
}

/* Scripts read what is done as it is done: they are shown no plan, and are not asked. */
static int show_and_ask(struct fix_context *s, const struct journal_entry *e, bool yes)
{
	struct fix_outcome o;
	int r;

	if (s->common->json || !can_ask())
		return 0;
	if (change_session_rehearse_undo(&s->session, e, &o) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	change_session_drop_events(&s->session);
	o.dry_run = false;
	r = print_plan(s, &o, EXIT_OK);
	return r || yes ? r
			: ask(plan_drops_lines(e->plan) ? "Undo fix %u and lose these lines?"
							: "Undo fix %u?",
			      e->number);
}

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

static int refuse(const struct fix_context *s, const struct fix_outcome *o)
{
	if (s->common->json)
		return print_json(report_undo_json(o), EXIT_REFUSED);
	return fail(EXIT_REFUSED, "%s%s", o->sentence,
		    o->error == -ENOENT ? " (see: onehop history)" : "");
}

static int forget(struct fix_context *s, unsigned number, const struct undo_options *options)
{
	const struct fix_outcome o =
		change_session_forget(&s->session, number, options->yes, options->dry_run);
	struct document *d;

	if (o.error)
		return refuse(s, &o);
	if (s->common->json)
		return print_json(report_undo_json(&o), EXIT_OK);
	d = document_new();
	report_forgotten(d, &o);
	return show_document(d, s->common, EXIT_OK);
}

static int undo_or_say(struct fix_context *s, unsigned number, const void *options)
{
	const struct undo_options *o = options;
	const struct change_session *c = &s->session;
	struct fix_outcome refused = {.undo = true, .dry_run = o->dry_run, .root = c->root};
	size_t at;
	int r;

	if (!o->dry_run && !change_session_may_write(c))
		return fail(EXIT_REFUSED,
			    "undo needs root (run: sudo onehop undo). Nothing was changed.");
	if (change_session_read_journal(&s->session) < 0)
		return fail(EXIT_REFUSED, "%s", c->journal_unread);
	if (o->forget)
		return forget(s, number, o);
	/* Before the lock: what is refused writes nothing. fix_undo looks again, under it. */
	refused.error = fix_check_undo(&s->session.host, c->journal, c->journal_n, number, &at);
	refused.sentence = err_msg();
	if (refused.error)
		return refuse(s, &refused);
	if (o->dry_run)
		return dry_run(s, &c->journal[at]);
	r = show_and_ask(s, &c->journal[at], o->yes);
	/* The one that was shown, whatever came behind it while somebody thought. */
	return r ? r : undo(s, c->journal[at].number);
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
