/* SPDX-License-Identifier: Apache-2.0 */
/* onehop report: a machine and its results in one document. */
#include "cli/command.h"

#include "base/err.h"
#include "report/report.h"
#include "result/figures.h"
#include "session/report_session.h"

#include <string.h>

struct report_options {
	struct common_options common;
};

static const struct option report_table[] = {
	COMMON_FROM(struct report_options),
	COMMON_HOST(struct report_options),
	COMMON_PAGE(struct report_options),
	COMMON_COLOR(struct report_options),
	COMMON_WIDTH(struct report_options),
	COMMON_HELP(struct report_options),
	OPTIONS_END,
};

/* A check of data, or copies that the testing tool calls slow. */
static bool any_failed(const struct figures *f)
{
	for (size_t i = 0; i < f->row_n; i++) {
		const struct figure *row = &f->rows[i];

		if (figure_is_failure(row) ||
		    (strcmp(row->what, METRIC_PAIR_RATE) == 0 && row->low < 1))
			return true;
	}
	return false;
}

static enum exit_code code_of(const struct report_session *s)
{
	enum exit_code code = s->check.diagnosis ? verdict_code(s->check.verdict) : EXIT_OK;

	for (size_t i = 0; i < s->result_n; i++)
		if (report_session_newest(s, i) && any_failed(s->results[i]))
			code = EXIT_FINDING;
	return code;
}

static int print_report(const struct report_session *s, const struct common_options *common)
{
	struct document *out = new_document(common);
	struct planned planned = {0};
	struct check_fixes fixes = {0};
	int r;

	if (s->check.diagnosis && check_session_plan(&s->check, &planned) < 0) {
		document_free(out);
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	}
	fixes.plan = planned.plan;
	fixes.changes = &planned.changes;
	report_all(out, s->check.diagnosis, planned.plan ? &fixes : NULL, s->results, s->result_n,
		   &s->left_out);
	r = show_document(out, common, code_of(s));
	if (s->check.diagnosis)
		planned_done(&planned);
	return r;
}

static int run_report(const void *options, const char *const *args)
{
	const struct report_options *o = options;
	struct report_session s;
	size_t n = 0;
	int r;

	while (args[n])
		n++;
	if (report_session_read(&s, &o->common.machine, args, n) < 0)
		r = fail(EXIT_NOT_JUDGED, "%s", err_msg());
	else
		r = print_report(&s, &o->common);
	report_session_done(&s);
	return r;
}

const struct command command_report = {
	.name = "report",
	.args = "[RESULT]...",
	.words = WORDS_FILES,
	.summary = "put a machine and its results into one report to pass on",
	.about =
		"What the machine is, whether its pairs are direct, how fast they are, what "
		"changed, and what to do. RESULT is a result of onehop test or bench or of another "
		"tool, as for compare, or a recording or text of a machine. Without any, the report "
		"is about this machine and the results that it kept. The verdict weighs the "
		"newest result of each tool, as check --observed does. With several results of one "
		"tool, the oldest and the newest are compared.",
	.options = report_table,
	.size = sizeof(struct report_options),
	.max_args = MAX_ARGS,
	.run = run_report,
};
