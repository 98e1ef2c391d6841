/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fix_context.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/ask.h"
#include "report/report_unlock_delivery.h"

#include <limits.h>
#include <stdio.h>

/* Errors of standard output are ignored: they must not stop a change half-way. */
static void hear(void *context, const struct fix_news *n)
{
	struct fix_context *s = context;
	AUTO_STRBUF struct strbuf b = {0};
	struct document *d;

	if (s->common->json)
		return;
	report_fix_news(&s->lines, n, &b);
	fputs(strbuf_str(&b), stdout);
	fflush(stdout);
	if (n->plan && n->event == FIX_STEP_DONE) {
		d = document_new();
		report_generated(d, &n->plan->steps[n->index], s->common->verbose);
		show_document(d, s->common, EXIT_OK);
	}
}

int fix_context_open(const struct common_options *common, const char *root, struct fix_context *ret)
{
	const struct fix_ear ear = {ret, hear};

	*ret = (struct fix_context){.common = common};
	return change_session_open(root, &ear, &ret->session) < 0
		       ? fail(EXIT_REFUSED, "%s", err_msg())
		       : 0;
}

void fix_context_close(struct fix_context *s)
{
	change_session_close(&s->session);
}

/* ---- an interrupted fix ---- */

/* 0: continue. */
static int ask_to_lose_lines(struct fix_context *s, const struct journal_entry *e, bool yes)
{
	const struct fix_run run = change_session_run(&s->session);
	struct document *d;

	if (fix_foresee_undo(&run, e) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (!plan_drops_lines(e->plan))
		return 0;
	d = document_new();
	report_dropped(d, e->plan, true);
	show_document(d, s->common, EXIT_OK);
	return yes ? 0
		   : ask("Undo fix %u, which was interrupted, and lose these lines?", e->number);
}

/* As undo asks: only where somebody can answer. Elsewhere the file with these lines is kept, as there. */
static int ask_before_recovery(struct fix_context *s, bool yes)
{
	const struct change_session *c = &s->session;
	int r = 0;

	if (s->common->json || !can_ask() || !change_session_may_write(c))
		return 0;
	for (size_t i = c->journal_n; r == 0 && i-- > 0;)
		if (fix_is_interrupted(&c->journal[i]))
			r = ask_to_lose_lines(s, &c->journal[i], yes);
	return r;
}

int fix_context_recover(struct fix_context *s, bool yes)
{
	bool recovered;
	int r = ask_before_recovery(s, yes);
	enum ending end;

	if (r)
		return r;
	end = change_session_recover(&s->session, &recovered);
	if (end != ENDED_WELL)
		return fail(ending_code(end), "%s", err_msg());
	if (recovered && !s->common->json)
		printf("\n");
	return 0;
}

/* ---- words and ends ---- */

static int parse_number(const char *word, unsigned *ret)
{
	uint64_t n;

	*ret = 0;
	if (!word)
		return 0;
	if (text_to_u64(word, &n) < 0 || n < 1 || n > UINT_MAX)
		return fail(EXIT_REFUSED,
			    "'%s' is not the number of a fix (to list them: onehop history)", word);
	*ret = (unsigned)n;
	return 0;
}

int fix_context_with_number(const struct common_options *common, const char *root, const char *word,
			    int (*run)(struct fix_context *s, unsigned number, const void *options),
			    const void *options)
{
	struct fix_context s;
	unsigned number;
	int r = parse_number(word, &number);

	if (r == 0)
		r = fix_context_open(common, root, &s);
	if (r)
		return r;
	r = run(&s, number, options);
	fix_context_close(&s);
	return r;
}

/* A failure to print does not change the exit code. */
int finish_outcome(const struct fix_context *s, const struct fix_outcome *o)
{
	enum exit_code code = ending_code(fix_outcome_ending(o));
	struct document *d = document_new();

	report_fix_outcome(d, o);
	report_left_builds(d, o->left_builds, o->left_build_n);
	report_left_sources(d, o->left_sources);
	show_document(d, s->common, code);
	return o->error ? fail(code, "%s", o->sentence) : (int)code;
}

int finish_outcome_json(const struct fix_outcome *o, json_t *json)
{
	enum exit_code code = ending_code(fix_outcome_ending(o));
	int printed = print_json(json, code);

	return code ? (int)code : printed;
}
