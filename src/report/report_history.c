/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop history` prints. */
#include "report/csv.h"
#include "report/report_fix_impl.h"

#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

/* Undone because a step failed, or because it was interrupted. */
static bool never_applied(const struct journal_entry *e)
{
	return e->state == FIX_UNDONE && !e->was_applied;
}

/* One that a person has closed is settled, whatever its journal has lost. */
static bool is_damaged(const struct journal_entry *e)
{
	return e->damage && !journal_is_over(e);
}

/* No step gives a reason: the run ended in the middle of them. */
static bool was_interrupted(const struct journal_entry *e)
{
	bool failed = false;

	for (size_t i = 0; !e->damage && i < e->plan->step_n; i++)
		failed |= e->errors[i] != NULL;
	return !e->damage && never_applied(e) && !failed;
}

const char *fix_history_word(const struct journal_entry *e)
{
	if (is_damaged(e))
		return "damaged";
	return never_applied(e) ? "failed-undone" : fix_state_word(e->state);
}

static const char *state_text(const struct journal_entry *e)
{
	if (!e->damage && e->state == FIX_ON_TRIAL)
		return "on trial";
	return !e->damage && never_applied(e) ? "failed, undone" : fix_history_word(e);
}

static enum style state_style(const struct journal_entry *e)
{
	static const enum style styles[FIX_STATE_N] = {
		[FIX_APPLYING] = STYLE_BAD, [FIX_APPLIED] = STYLE_GOOD, [FIX_ON_TRIAL] = STYLE_WARN,
		[FIX_UNDOING] = STYLE_BAD,  [FIX_UNDONE] = STYLE_DIM,   [FIX_FORGOTTEN] = STYLE_DIM,
	};

	return is_damaged(e) ? STYLE_BAD : styles[e->state];
}

bool fix_reboot_due(const struct journal_entry *e, const char *boot_id)
{
	bool now = *boot_id && strcmp(e->last_boot_id, boot_id) == 0;

	/* A trial was confirmed in a boot that already had its parameters. */
	return journal_undo_is_pending(e, boot_id) ||
	       (now && !e->damage && e->state == FIX_APPLIED && !e->was_on_trial &&
		plan_needs_reboot(e->plan));
}

/* ---- all ---- */

/* "acs-redirect, iommu": each once, in the order of the steps. */
static void add_rules(struct strbuf *b, const struct plan *p)
{
	struct texts seen = {0};

	for (size_t i = 0; i < p->step_n; i++)
		texts_add_all(p->arena, &seen, &p->steps[i].rules);
	texts_join(&seen, ", ", b);
}

static const char *state_note(const struct journal_entry *e, const char *boot_id)
{
	static const char *const trials[] = {
		[TRIAL_WAITS] = ", starts at the next boot",
		[TRIAL_RUNS] = ", in effect in this boot (to keep it: onehop fix --confirm)",
		[TRIAL_OVER] = ", not confirmed",
	};

	if (e->displaced)
		return ", but no longer set for the next boot";
	if (e->trial != TRIAL_NONE)
		return trials[e->trial];
	if (fix_reboot_due(e, boot_id))
		return ", reboot due";
	return journal_is_unfinished(e) ? ", not finished" : "";
}

static void add_row(struct document *out, const struct history_report *r,
		    const struct journal_entry *e)
{
	AUTO_STRBUF struct strbuf rules = {0};

	add_rules(&rules, e->plan);
	document_row(out);
	document_cell(out, STYLE_STRONG, "%u", e->number);
	document_cell(out, STYLE_PLAIN, "%s", e->date);
	document_cell(out, state_style(e), "%s%s", state_text(e), state_note(e, r->boot_id));
	document_cell(out, STYLE_PLAIN, "%zu", plan_doing_steps(e->plan));
	document_cell(out, STYLE_PLAIN, "%s", strbuf_str(&rules));
}

static void add_damages(struct document *out, const struct history_report *r)
{
	for (size_t i = 0; i < r->n; i++) {
		if (!is_damaged(&r->entries[i]))
			continue;
		document_blank(out);
		document_paragraph(out, STYLE_BAD, 0, "The journal of fix %u is damaged: %s.",
				   r->entries[i].number, r->entries[i].damaged);
	}
}

void report_history(struct document *out, const struct history_report *r)
{
	static const char *const header[] = {"fix", "date", "state", "steps", "for"};

	document_title(out, "Fixes made by onehop");
	if (!r->n) {
		document_paragraph(out, STYLE_PLAIN, 0, "onehop has not changed anything here.");
		return;
	}
	document_table(out, 0, 5, 2);
	document_titles(out, header);
	for (size_t i = 0; i < r->n; i++)
		add_row(out, r, &r->entries[i]);
	add_damages(out, r);
}

void report_history_csv(struct strbuf *out, const struct history_report *r)
{
	static const char *const names[] = {"fix",   "date",   "state", "steps",
					    "rules", "damage", NULL};
	struct csv c = {out, false};

	csv_head(&c, names);
	for (size_t i = 0; i < r->n; i++) {
		const struct journal_entry *e = &r->entries[i];
		AUTO_STRBUF struct strbuf rules = {0};

		add_rules(&rules, e->plan);
		csv_count(&c, e->number);
		csv_text(&c, e->date);
		csv_text(&c, fix_history_word(e));
		csv_count(&c, plan_doing_steps(e->plan));
		csv_text(&c, strbuf_str(&rules));
		csv_text(&c, is_damaged(e) ? e->damaged : NULL);
		csv_end(&c);
	}
}

/* ---- one ---- */

static void add_outputs(struct document *out, const json_t *log, size_t step)
{
	json_t *line;
	size_t i;

	json_array_foreach (log, i, line) {
		const char *text = json_string_value(json_object_get(line, "output"));

		if (!text || json_integer_value(json_object_get(line, "step")) != (json_int_t)step)
			continue;
		document_paragraph(out, STYLE_DIM, FIX_TEXT_COLUMN, "Printed:");
		document_verbatim(out, FIX_TEXT_COLUMN + 2, text);
	}
}

static const char *const mark_texts[MARK_N] = {
	[MARK_NONE] = "not begun",
	[MARK_STARTED] = "begun, not finished",
	[MARK_DONE] = "done",
	[MARK_FAILED] = "failed",
	[MARK_UNDO_STARTED] = "undo begun, not finished",
	[MARK_UNDONE] = "undone",
	[MARK_UNDO_FAILED] = "could not be undone",
};

/* Also shows steps that only run when undone: their marks matter here. */
static void add_step(struct document *out, const struct history_report *r, size_t entry, size_t i)
{
	const struct journal_entry *e = &r->entries[entry];
	const struct step *s = &e->plan->steps[i];
	AUTO_STRBUF struct strbuf title = {0};

	strbuf_printf(&title, "%s%s", step_does(s) ? "" : "when undone: ", s->what);
	document_blank(out);
	add_step_title(out, i + 1, strbuf_str(&title));
	/* That its turn is still to come is in the title. */
	if (step_does(s) || (e->marks[i] != MARK_DONE && e->marks[i] != MARK_NONE))
		document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "State:", "%s",
			      mark_texts[e->marks[i]]);
	if (e->errors[i])
		document_item(out, STYLE_BAD, FIX_TEXT_COLUMN, "Error:", "%s", e->errors[i]);
	if (s->rules.n) {
		AUTO_STRBUF struct strbuf rules = {0};

		texts_join(&s->rules, ", ", &rules);
		document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "For:  ", "%s", strbuf_str(&rules));
	}
	add_step_change(out, s, r->verbose);
	if (r->logs)
		add_outputs(out, r->logs[entry], i);
}

static void add_ways_back(struct document *out, const struct history_report *r,
			  const struct journal_entry *e)
{
	AUTO_STRBUF struct strbuf root = {0};
	const char *folder = r->root ? r->root : "";

	add_root_words(&root, r->root);
	document_blank(out);
	if (e->damage)
		document_paragraph(
			out, STYLE_PLAIN, 0,
			"Until this is repaired, nothing is applied. Restore the damaged or missing files in %s/%s/fixes/%u from a backup. If there is none, undo yourself what the fix changed (the old files are in that folder: old-N, N counts from 0), then close it: onehop undo --forget %u%s.",
			folder, JOURNAL_FOLDER, e->number, e->number, strbuf_str(&root));
	else
		document_paragraph(
			out, STYLE_PLAIN, 0,
			"To undo it: onehop undo %u%s. The old files are in %s/%s/fixes/%u (old-N, N counts from 0).",
			e->number, strbuf_str(&root), folder, JOURNAL_FOLDER, e->number);
}

void report_history_entry(struct document *out, const struct history_report *r, size_t i)
{
	const struct journal_entry *e = &r->entries[i];

	document_paragraph(out, STYLE_STRONG, 0, "Fix %u%s%s: %s%s", e->number,
			   *e->date ? " of " : "", e->date, state_text(e),
			   state_note(e, r->boot_id));
	if (was_interrupted(e))
		document_paragraph(out, STYLE_PLAIN, 0,
				   "It was interrupted, not stopped by a step that failed.");
	if (e->damage)
		document_paragraph(out, is_damaged(e) ? STYLE_BAD : STYLE_DIM, 0, "%s.",
				   e->damaged);
	for (size_t k = 0; k < e->plan->step_n; k++)
		add_step(out, r, i, k);
	if (e->plan->manual_n) {
		document_blank(out);
		document_paragraph(out, STYLE_STRONG, 0, "To do yourself:");
	}
	for (size_t k = 0; k < e->plan->manual_n; k++)
		document_item(out, STYLE_PLAIN, 2, "-", "%s: %s", e->plan->manual[k].what,
			      e->plan->manual[k].how);
	if (!journal_is_over(e))
		add_ways_back(out, r, e);
}
