/* SPDX-License-Identifier: Apache-2.0 */
/* onehop undo: takes a fix back. Looks at no GPU and no library: rescue shells have none. */
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/fixing.h"
#include "report/report_unlock_delivery.h"

#include <string.h>

struct undo_options {
	struct common_options common;
	const char *root;
	bool dry_run;
};

/* clang-format off */
#define AT(member) offsetof(struct undo_options, member)
static const struct option undo_table[] = {
	{"dry-run", 0, OPTION_FLAG, AT(dry_run), NULL,
		"say what would be done, and change nothing", NULL, 0, 0, 0},
	COMMON_ROOT(struct undo_options),
	COMMON_JSON(struct undo_options),
	COMMON_COLOR(struct undo_options),
	COMMON_WIDTH(struct undo_options),
	COMMON_VERBOSE(struct undo_options),
	COMMON_HELP(struct undo_options),
	OPTIONS_END,
};
/* clang-format on */

/* ---- only saying it ---- */

/* A later step of the same fix changed the same: what this one will find is not there yet. */
static bool is_changed_later(const struct plan *p, size_t i)
{
	for (size_t k = i + 1; k < p->step_n; k++)
		if (step_same_target(&p->steps[i], &p->steps[k]))
			return true;
	return false;
}

static void look(struct fixing *s, const struct journal_entry *e, enum step_state *states,
		 char **now)
{
	for (size_t i = 0; i < e->plan->step_n; i++) {
		const struct step *step = &e->plan->steps[i];

		states[i] = STEP_NOT_SEEN;
		/* Of a system that does not run: its end took that back. */
		if (s->host.image && step_is_volatile(step))
			states[i] = STEP_IS_OLD;
		else if (!is_changed_later(e->plan, i) &&
			 step_look(&s->host, step, &states[i], &now[i]) < 0)
			states[i] = STEP_NOT_SEEN;
	}
}

static int dry_run(struct fixing *s, const struct journal_entry *e)
{
	AUTO_FREE enum step_state *states = NULL;
	AUTO_FREE char **now = NULL;
	struct document *d;
	int r;

	if (s->common->json) {
		const struct fix_outcome o = {.undo = true,
					      .dry_run = true,
					      .entry = e,
					      .number = e->number,
					      .root = s->root};

		return print_json(report_undo_json(&o), EXIT_WELL);
	}
	states = xcalloc(e->plan->step_n + 1, sizeof(*states));
	now = xcalloc(e->plan->step_n + 1, sizeof(*now));
	look(s, e, states, now);
	d = document_new();
	report_undo_plan(d, e, states, now, s->common->verbose);
	r = print_document(d, s->common, EXIT_WELL);
	document_free(d);
	for (size_t i = 0; i < e->plan->step_n; i++)
		free(now[i]);
	return r;
}

/* ---- doing it ---- */

/* Where a reboot is needed, what was applied in this very boot was not in force yet. */
static bool reboot_due(const struct fixing *s, const struct journal_entry *e)
{
	return !s->root && e && plan_needs_reboot(e->plan) &&
	       (!*s->boot_id || strcmp(e->boot_id, s->boot_id) != 0);
}

static int undo(struct fixing *s, unsigned number)
{
	struct fix_run run = fixing_run(s);
	struct fix_outcome o = {.undo = true, .root = s->root};
	struct left_build *left;
	enum exit_code code;
	size_t left_n;
	int printed;

	fixing_hold_signals();
	o.error = fix_undo(&run, number, &o.result, &o.number);
	if (o.error < 0)
		o.sentence = arena_strdup(s->arena, err_msg());
	o.was_signalled = fixing_was_signalled();
	o.told = s->told;
	o.told_n = s->told_n;
	fixing_read_journal(s);
	o.entry = fixing_entry(s, o.number);
	o.reboot = !o.error && o.result == FIX_DONE && reboot_due(s, o.entry);
	if (!s->common->json)
		return finish_outcome(s, &o);
	code = outcome_code(&o);
	left_n = fixing_left_builds(s, &o, &left);
	printed = print_json(report_left_json(left, left_n, fixing_left_sources(s, &o),
					      report_undo_json(&o)),
			     code);
	return code ? (int)code : printed;
}

/* Before the lock: what is refused writes nothing. fix_undo looks again, under it. */
static int refuse(struct fixing *s, int error, bool say)
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

static int undo_or_say(struct fixing *s, unsigned number, const void *options)
{
	const bool say = ((const struct undo_options *)options)->dry_run;
	size_t at;
	int r;

	if (!say && !fixing_may_write(s))
		return fail(EXIT_REFUSED, "undo needs root; nothing was changed");
	if (fixing_read_journal(s) < 0)
		return fail(EXIT_REFUSED, "%s", s->journal_unread);
	r = fix_check_undo(&s->host, s->journal, s->journal_n, number, &at);
	if (r < 0)
		return refuse(s, r, say);
	return say ? dry_run(s, &s->journal[at]) : undo(s, number);
}

static int run_undo(const void *options, const char *const *args)
{
	const struct undo_options *o = options;

	return fixing_with_number(&o->common, o->root, args[0], undo_or_say, o);
}

const struct command command_undo = {
	.name = "undo",
	.args = "[N]",
	.summary = "take back the last fix, or fix N",
	.about = "Undoes the steps of a fix from the last to the first, past errors, each of which "
		 "is named. What somebody else changed since stays as it is. Needs no GPU, no "
		 "driver and no network: it works from a text console or a rescue shell.",
	.options = undo_table,
	.size = sizeof(struct undo_options),
	.max_args = 1,
	.run = run_undo,
};
