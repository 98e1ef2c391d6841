/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that say what a fix or an undo does while it does it. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/markup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "report/report_fix.h"

#include <string.h>

static bool is_undo(enum fix_event event)
{
	return event >= FIX_UNDO_START && event <= FIX_UNDO_FAILED;
}

static bool is_confirming(const struct journal_entry *e)
{
	return e && e->state == FIX_APPLYING && e->added_at;
}

/*
 * Whether a step is of what is done now: confirming does what it added, and undoes what was for the
 * trial.
 */
static bool counts(const struct fix_news *n, size_t i)
{
	const struct step *s = &n->plan->steps[i];
	const bool undo = is_undo(n->event);

	if (undo ? !step_undoes(s) : !step_does(s))
		return false;
	if (is_confirming(n->entry))
		return undo ? s->trial : i >= n->entry->added_at;
	/* Its unit clears what the boot loader did not. */
	return !undo || !n->entry || n->entry->state != FIX_ON_TRIAL || s->kind == STEP_ONE_SHOT;
}

/* "2/4" */
static void add_position(struct strbuf *b, const struct fix_news *news)
{
	const struct plan *p = news->plan;
	const bool undo = is_undo(news->event);
	size_t at = 0, n = 0;

	for (size_t k = 0; k < p->step_n; k++) {
		size_t i = undo ? p->step_n - 1 - k : k;

		if (!counts(news, i))
			continue;
		n++;
		at = i == news->index ? n : at;
	}
	strbuf_printf(b, "%zu/%zu ", at, n);
}

static void add_start(struct strbuf *b, const struct fix_news *n)
{
	const struct step *step = &n->plan->steps[n->index];
	bool undo = is_undo(n->event);

	add_position(b, n);
	if (undo)
		step_undo_words(step, b);
	else
		strbuf_puts(b, step->what);
	strbuf_puts(b, " ... ");
}

static const char *const end_texts[FIX_EVENT_N] = {
	[FIX_STEP_DONE] = "done",       [FIX_STEP_SKIPPED] = "already set",
	[FIX_STEP_FAILED] = "FAILED",   [FIX_UNDO_DONE] = "done",
	[FIX_UNDO_SKIPPED] = "skipped", [FIX_UNDO_FAILED] = "NOT UNDONE",
};

static void add_end(struct strbuf *b, const struct fix_news *n)
{
	strbuf_printf(b, "%s%s%s", end_texts[n->event], n->text ? ": " : "",
		      n->text ? n->text : "");
}

/*
 * Whether the fix was announced for this direction: confirming one does steps, and then undoes the
 * trial's.
 */
static bool is_announced(const struct fix_news *n, const struct fix_lines *l)
{
	return l->announced == n->entry->number && l->announced_undo == is_undo(n->event);
}

/* What begins with the first event of a fix. */
static bool add_heading(struct strbuf *b, const struct fix_news *n, const struct fix_lines *l)
{
	const struct journal_entry *e = n->entry;

	if (n->event == FIX_RECOVER && e->trial == TRIAL_OVER)
		strbuf_printf(
			b,
			"The trial boot of fix %u of %s was not confirmed. Undoing the rest of it first.",
			e->number, e->date);
	else if (n->event == FIX_RECOVER)
		strbuf_printf(b, "Fix %u of %s was interrupted. Undoing it first.", e->number,
			      e->date);
	else if (is_announced(n, l) || (!is_undo(n->event) && !is_confirming(e)))
		return false;
	else if (!is_undo(n->event))
		strbuf_printf(b, "Making the kernel parameters of fix %u permanent", e->number);
	else if (e->state == FIX_ON_TRIAL)
		strbuf_printf(b, "The boot loader did not clear the trial entry of fix %u",
			      e->number);
	else if (e->state == FIX_APPLYING)
		strbuf_printf(b, "Ending the trial of fix %u", e->number);
	else
		strbuf_printf(b, "Undoing fix %u of %s", e->number, e->date);
	return true;
}

/* Moves a piece to the end, without what a terminal may obey. */
static void flush_piece(struct strbuf *piece, struct strbuf *out, const char *after)
{
	if (piece->text)
		text_clean(piece->text);
	strbuf_printf(out, "%s%s", strbuf_str(piece), after);
	strbuf_done(piece);
}

static void add_log(const struct fix_news *n, struct strbuf *out)
{
	AUTO_FREE char *text = xstrdup(n->log ? n->log : "");

	if (*text)
		strbuf_printf(out, "The last lines of /%s:\n", n->log_path);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		text_clean(line);
		if (*line)
			strbuf_printf(out, "  %s\n", line);
	}
}

void report_fix_news(struct fix_lines *l, const struct fix_news *n, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf piece = {0};
	bool start = n->event == FIX_STEP_START || n->event == FIX_UNDO_START;

	if (n->entry && add_heading(&piece, n, l)) {
		flush_piece(&piece, out, "\n");
		l->announced = n->entry->number;
		l->announced_undo = n->event == FIX_RECOVER || is_undo(n->event);
	}
	if (!n->plan && !n->text)
		return;
	if (n->plan && !counts(n, n->index))
		return;
	if (n->plan && (start || !l->started)) {
		add_start(&piece, n);
		flush_piece(&piece, out, "");
	}
	if (!start) {
		add_end(&piece, n);
		flush_piece(&piece, out, "\n");
	}
	if (n->plan)
		l->started = start;
	add_log(n, out);
}
