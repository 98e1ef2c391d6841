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
	{"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL,
		"show what would be done and change nothing", NULL, 0, 0, 0},
	{"forget", 0, OPTION_FLAG, AT(forget), NULL,
		"close fix N, which was undone by other means, and change nothing else", NULL, 0,
		0, 0},
	COMMON_YES(struct undo_options),
	COMMON_ROOT(struct undo_options),
	COMMON_JSON(struct undo_options),
	COMMON_COLOR(struct undo_options),
	COMMON_WIDTH(struct undo_options),
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"in the plan, also show the present content of what someone else changed", NULL, 0, 0, 0},
	COMMON_HELP(struct undo_options),
	OPTIONS_END,
};
/* clang-format on */

/* ---- the plan ---- */

static int print_plan(struct fix_context *s, const struct journal_entry *e, bool dry_run)
{
	AUTO_FREE enum step_state *states = xcalloc(e->plan->step_n + 1, sizeof(*states));
	AUTO_FREE char **now = xcalloc(e->plan->step_n + 1, sizeof(*now));
	struct document *d = document_new();
	int r;

	fix_read_back(&s->host, e, states, now);
	report_undo_plan(d, e, states, now, s->common->verbose);
	if (plan_drops_lines(e->plan)) {
		document_blank(d);
		report_dropped(d, e->plan, true);
	}
	if (dry_run)
		report_nothing_changed(d);
	r = print_document(d, s->common, EXIT_OK);
	document_free(d);
	for (size_t i = 0; i < e->plan->step_n; i++)
		free(now[i]);
	return r;
}

/* Runs the generators without installing their output, as `fix --apply` does. */
static int look_ahead(struct fix_context *s, const struct journal_entry *e)
{
	const struct fix_run run = fix_context_run(s);

	return fix_foresee_undo(&run, e);
}

static int dry_run(struct fix_context *s, const struct journal_entry *e)
{
	const struct fix_outcome o = {
		.undo = true, .dry_run = true, .entry = e, .number = e->number, .root = s->root};

	/* Where nothing can be written the plan is shown without. */
	if (fix_context_may_write(s))
		look_ahead(s, e);
	if (s->common->json)
		return print_json(report_undo_json(&o), EXIT_OK);
	return print_plan(s, e, true);
}

/* Scripts read what is done as it is done: they are shown no plan, and are not asked. */
static int show_and_ask(struct fix_context *s, const struct journal_entry *e, bool yes)
{
	int r;

	if (s->common->json || !can_ask())
		return 0;
	if (look_ahead(s, e) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	r = print_plan(s, e, false);
	return r || yes ? r
			: ask(plan_drops_lines(e->plan) ? "Undo fix %u and lose these lines?"
							: "Undo fix %u?",
			      e->number);
}

/* ---- doing it ---- */

/* Where a reboot is needed, what was applied in this very boot was not in force yet. */
static bool reboot_due(const struct fix_context *s, const struct journal_entry *e)
{
	return !s->root && e && journal_undo_needs_reboot(e) &&
	       (!*s->boot_id || strcmp(e->boot_id, s->boot_id) != 0);
}

static int undo(struct fix_context *s, unsigned number)
{
	struct fix_run run = fix_context_run(s);
	struct fix_outcome o = {.undo = true, .root = s->root};
	struct left_build *left;
	enum exit_code code;
	size_t left_n;
	int printed;

	fix_context_hold_signals();
	o.error = fix_undo(&run, number, &o.result, &o.number);
	if (o.error < 0)
		o.sentence = arena_strdup(s->arena, err_msg());
	o.was_signalled = fix_context_was_signalled();
	o.events = s->events;
	o.event_n = s->event_n;
	fix_context_read_journal(s);
	o.entry = fix_context_entry(s, o.number);
	o.reboot = !o.error && o.result == FIX_DONE && reboot_due(s, o.entry);
	if (!s->common->json)
		return finish_outcome(s, &o);
	code = outcome_code(&o);
	left_n = fix_context_left_builds(s, &o, &left);
	printed = print_json(report_left_json(left, left_n, fix_context_left_sources(s, &o),
					      report_undo_json(&o)),
			     code);
	return code ? (int)code : printed;
}

/* Before the lock: what is refused writes nothing. fix_undo looks again, under it. */
static int refuse(struct fix_context *s, int error, bool say)
{
	const struct fix_outcome o = {.undo = true,
				      .dry_run = say,
				      .error = error,
				      .sentence = err_msg(),
				      .root = s->root};

	if (s->common->json)
		return print_json(report_undo_json(&o), EXIT_REFUSED);
	return fail(EXIT_REFUSED, "%s%s", o.sentence,
		    error == -ENOENT ? " (see: onehop history)" : "");
}

static int forget(struct fix_context *s, const struct journal_entry *e, bool dry_run)
{
	const struct fix_run run = fix_context_run(s);
	struct fix_outcome o = {.undo = true, .dry_run = dry_run, .root = s->root};
	struct document *d;
	int r = dry_run ? 0 : fix_forget(&run, e->number);

	if (r < 0)
		return refuse(s, r, false);
	o.number = e->number;
	fix_context_read_journal(s);
	o.entry = fix_context_entry(s, o.number);
	if (s->common->json)
		return print_json(report_undo_json(&o), EXIT_OK);
	d = document_new();
	if (dry_run)
		report_nothing_changed(d);
	else
		report_forgotten(d, o.number);
	r = print_document(d, s->common, EXIT_OK);
	document_free(d);
	return r;
}

static int undo_or_say(struct fix_context *s, unsigned number, const void *options)
{
	const struct undo_options *o = options;
	size_t at;
	int r;

	if (!o->dry_run && !fix_context_may_write(s))
		return fail(EXIT_REFUSED, "undo needs root. Nothing was changed.");
	if (fix_context_read_journal(s) < 0)
		return fail(EXIT_REFUSED, "%s", s->journal_unread);
	if (o->forget) {
		r = fix_check_forget(&s->host, s->journal, s->journal_n, number, &at);
		return r < 0 ? refuse(s, r, o->dry_run) : forget(s, &s->journal[at], o->dry_run);
	}
	r = fix_check_undo(&s->host, s->journal, s->journal_n, number, &at);
	if (r < 0)
		return refuse(s, r, o->dry_run);
	if (o->dry_run)
		return dry_run(s, &s->journal[at]);
	r = show_and_ask(s, &s->journal[at], o->yes);
	/* The one that was shown, whatever came behind it while somebody thought. */
	return r ? r : undo(s, s->journal[at].number);
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
