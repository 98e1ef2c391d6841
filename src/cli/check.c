/* SPDX-License-Identifier: Apache-2.0 */
/* onehop check: what stands between the GPUs of this machine. */
#include "cli/check_caller.h"
#include "cli/check_print.h"
#include "cli/check_rules.h"
#include "cli/check_watch.h"

#include "base/err.h"
#include "diagnose/symptom.h"
#include "report/report_caller.h"

struct check_options {
	struct common_options common;
	struct check_choice request;
	struct check_view view;
	const char *explain;
	int list;
	struct caller_options caller;
	int watch_s;
};

/* enum severity in words, and one more. */
static const char *const fail_on_words[] = {"info", "warning", "error", "never", NULL};

/* What --watch alone means. */
static const char *const watch_default[] = {"60", NULL};

/* clang-format off */
#define AT(member) offsetof(struct check_options, member)
static const struct option check_table[] = {
	COMMON_FROM(struct check_options),
	COMMON_HOST(struct check_options),
	COMMON_PID(struct check_options),
	COMMON_OBSERVED(struct check_options),
	OPT_CHOICE("fail-on", request.fail_on, "SEVERITY", fail_on_words,
		"exit 1 from this severity on: info, warning (the default), error, never"),
	OPT_LIST("ignore", request.ignore, "ID",
		"ignore the findings of this rule in text, JSON and exit code; the verdicts "
		"of pairs do not change; repeatable", .words = WORDS_RULES),
	OPT_LIST("require", request.require, "WHAT",
		"exit 0 only if all pairs of GPUs are direct (direct), or all pairs of a GPU "
		"and a NIC (rdma); 1 if one is not, 3 if that is unknown; if given twice, "
		"both must hold", .choices = requirement_words),
	OPT_TEXT("gpus", request.gpus, "LIST",
		"with --require: only these GPUs, by number, PCI address, nvml:N or cuda:N",
		.words = WORDS_GPUS),
	OPT_FLAG("ask", view.ask,
		"print only the commands, at most three, whose output would decide what the facts "
		"leave open, ready to paste"),
	OPT_CHOICE("symptom", view.symptom, "WHAT", symptom_words,
		"print what could cause this symptom on this machine, the most likely first, and what "
		"decides: hang, wrong-data, slow, crash, refused"),
	OPT_TEXT("pair", view.pair, "A,B",
		"with --symptom: the two GPUs that show it, named as for --gpus", .words = WORDS_GPUS),
	OPT_CHOICE("for", caller.caller, "CALLER", caller_words,
		"answer with the exit code that this program expects, and print nothing if all is well, else "
		"one line of at most 80 bytes that begins with the cause: slurm-prolog, slurm-health, nhc, npd, "
		"kubernetes; for prometheus print metrics"),
	OPT_NUMBER("deadline", caller.deadline_s, "SECONDS",
		"with --for: give up after this time, and answer that it is unknown"),
	OPT_FILE("textfile", caller.textfile, "FILE",
		"with --for prometheus: write the metrics to this file of node_exporter's folder, whole or not at all"),
	OPT_NUMBER("watch", watch_s, "SECONDS",
		"look again every so many seconds (60), and print a line with the time for each fact that changed and "
		"each new line of the kernel log; --json prints objects, one a line",
		.choices = watch_default, .optional = true),
	OPT_TEXT("explain", explain, "ID",
		"explain what a rule checks, why, and what to do", .words = WORDS_RULES),
	OPT_CHOICE("list", list, "FORMAT", rule_list_formats,
		"list all rules as text, markdown or scdoc", .optional = true),
	COMMON_JSON(struct check_options),
	COMMON_PAGE(struct check_options),
	COMMON_COLOR(struct check_options),
	COMMON_WIDTH(struct check_options),
	OPT_FLAG("verbose", common.verbose,
		"also print notes, every device, all evidence, unknown facts with reasons, "
		"and the result of each rule", .letter = 'v'),
	OPT_FLAG("quiet", view.quiet,
		"print only the verdict, and with --require its result", .letter = 'q'),
	COMMON_HELP(struct check_options),
	OPTIONS_END,
};
/* clang-format on */

/* Most print something else than the whole report. */
static const struct option_rule check_rules[] = {
	{"quiet", .not_with = "json"},
	{"ask", .not_with = "quiet json require", .why = ": it prints commands only"},
	{"gpus", .needs = "require", .why = ", whose GPUs it selects"},
	{"pair", .needs = "symptom", .why = ", which the pair shows"},
	{"html markdown", .not_with = "quiet ask symptom for watch",
	 .why = ": a page holds the whole check"},
	{"for", .not_with = "quiet ask json symptom", .why = ": it has an output of its own"},
	{"watch", .not_with = "for quiet ask symptom require", .why = ": it prints changes only"},
	{"deadline textfile", .needs = "for"},
	{"symptom", .not_with = "quiet ask require fail-on", .why = ": it prints causes only"},
	{0},
};

static int run_check(const void *options, const char *const *args)
{
	struct check_options o = *(const struct check_options *)options;

	(void)args;
	if (o.explain)
		return check_explain(o.explain, &o.common);
	if (o.list)
		return check_list(o.list, &o.common);
	for (size_t i = 0; i < o.request.ignore.n; i++)
		if (!rule_named(o.request.ignore.items[i]))
			return fail(EXIT_REFUSED, "--ignore: %s", err_msg());
	if (o.caller.caller)
		return check_for_caller(&o.caller, &o.request, &o.common.machine);
	if (o.watch_s)
		return check_watch(o.watch_s, &o.common, &o.request);
	o.request.whole = o.common.json || page_wanted(&o.common);
	return check_print(&o.request, &o.common, &o.view);
}

const struct command command_check = {
	.name = "check",
	.args = "",
	.summary = "show which GPU pairs are direct, what blocks the others, and what to do",
	.about = "Reads the machine, changes nothing, and shows for every ordered pair of "
		 "GPUs whether one can access the other's memory directly: a matrix, then the "
		 "verdict in one or two sentences. Errors and warnings follow, the most "
		 "important first, each with what to do, why it matters and the deciding "
		 "value. Without a command, onehop runs check.",
	.options = check_table,
	.rules = check_rules,
	.size = sizeof(struct check_options),
	.run = run_check,
};
