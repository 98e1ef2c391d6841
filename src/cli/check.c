/* SPDX-License-Identifier: Apache-2.0 */
/* onehop check: what stands between the GPUs of this machine. */
#include "cli/check_caller.h"
#include "cli/check_watch.h"
#include "cli/command.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/date.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "diagnose/symptom.h"
#include "report/report_caller.h"
#include "session/check_session.h"
#include "session/device_choice.h"

#include <limits.h>
#include <stdio.h>

struct check_options {
	struct common_options common;
	struct check_choice request;
	const char *explain, *pair;
	int list, symptom;
	bool quiet, ask;
	struct caller_options caller;
	int watch_s;
};

/* enum severity in words, and one more. */
static const char *const fail_on_words[] = {"info", "warning", "error", "never", NULL};
enum { LIST_TEXT = 1, LIST_MARKDOWN };
static const char *const list_formats[] = {"text", "markdown", "scdoc", NULL};

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
	OPT_FLAG("ask", ask,
		"print only the commands, at most three, whose output would decide what the facts "
		"leave open, ready to paste"),
	OPT_CHOICE("symptom", symptom, "WHAT", symptom_words,
		"print what could cause this symptom on this machine, the most likely first, and what "
		"decides: hang, wrong-data, slow, crash, refused"),
	OPT_TEXT("pair", pair, "A,B",
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
	OPT_CHOICE("list", list, "FORMAT", list_formats,
		"list all rules as text, markdown or scdoc", .optional = true),
	COMMON_JSON(struct check_options),
	COMMON_PAGE(struct check_options),
	COMMON_COLOR(struct check_options),
	COMMON_WIDTH(struct check_options),
	OPT_FLAG("verbose", common.verbose,
		"also print notes, every device, all evidence, unknown facts with reasons, "
		"and the result of each rule", .letter = 'v'),
	OPT_FLAG("quiet", quiet,
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

/* ---- rules ---- */

static int explain(const struct check_options *o)
{
	const struct rule *rule = rule_named(o->explain);
	struct document *d;

	if (!rule)
		return fail(EXIT_REFUSED, "--explain: %s", err_msg());
	if (o->common.json)
		return print_json(report_rules_json(rule), EXIT_OK);
	d = new_document(&o->common);
	report_rule(d, rule);
	return show_document(d, &o->common, EXIT_OK);
}

static int list_text(const struct check_options *o)
{
	struct document *d = new_document(&o->common);

	report_rule_list(d);
	return show_document(d, &o->common, EXIT_OK);
}

static int list(const struct check_options *o)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (o->list == LIST_TEXT)
		return o->common.json ? print_json(report_rules_json(NULL), EXIT_OK) : list_text(o);
	if (o->common.json)
		return fail(EXIT_REFUSED, "--list=%s prints no JSON; --list --json does",
			    list_formats[o->list - 1]);
	if (o->list == LIST_MARKDOWN)
		report_rules_markdown(&b);
	else
		report_rules_scdoc(&b);
	return print_text(&b, EXIT_OK);
}

/* ---- the machine ---- */

/* A recording does not state whose it is and when it was made, so that only the host itself has a name and a time. */
static json_t *check_json(const struct check_session *s)
{
	json_t *json = report_check_json(s->diagnosis);
	char host[HOST_NAME_MAX + 1] = "", when[DATE_SIZE];

	if (s->machine->recorded)
		return json;
	this_host(host, sizeof(host));
	date_now(when);
	json_object_set_new(json, "host", json_string(host));
	json_object_set_new(json, "when", json_string(when));
	return json;
}

static int print_check_json(const struct check_session *s)
{
	json_t *json = check_json(s);

	if (s->o->require.n)
		json_object_set_new(json, "requirements",
				    report_requirements_json(&s->requirements));
	return print_json(json, verdict_code(s->verdict));
}

static void add_report(struct document *out, const struct check_session *s,
		       const struct planned *planned, const struct check_options *o)
{
	const struct check_fixes fixes = {.plan = planned->plan,
					  .changes = &planned->changes,
					  .observed = s->from.observed.n > 0,
					  .no_store = s->from.no_store};

	if (o->quiet) {
		report_verdict(out, s->diagnosis);
		report_weighed(out, s->machine);
	} else {
		report_check(out, s->diagnosis, &fixes, o->common.verbose);
	}
	report_requirements(out, &s->requirements);
}

static int print_check(const struct check_session *s, const struct check_options *o)
{
	struct planned planned = {0};
	struct document *out;
	int r;

	if (o->common.json)
		return print_check_json(s);
	if (check_session_plan(s, &planned) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	out = new_document(&o->common);
	add_report(out, s, &planned, o);
	r = show_document(out, &o->common, verdict_code(s->verdict));
	planned_done(&planned);
	return r;
}

static int print_questions(const struct check_session *s, const struct check_options *o)
{
	struct document *out = new_document(&o->common);

	report_questions(out, s->diagnosis);
	return show_document(out, &o->common, EXIT_OK);
}

static int print_symptom(const struct check_session *s, const struct check_options *o)
{
	int symptom = o->symptom - 1, pair[2] = {-1, -1};
	struct document *out;
	json_t *json;

	if (o->pair && name_pair(s->machine, "--pair", o->pair, pair) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (o->common.json) {
		json = check_json(s);
		json_object_set_new(json, "symptom",
				    report_symptom_json(s->diagnosis, symptom, pair[0], pair[1]));
		return print_json(json, EXIT_OK);
	}
	out = new_document(&o->common);
	report_symptom(out, s->diagnosis, symptom, pair[0], pair[1]);
	return show_document(out, &o->common, EXIT_OK);
}

static int check_one(struct check_session *s, const struct check_options *o)
{
	if (check_session_judge(s) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	if (o->ask)
		return print_questions(s, o);
	return o->symptom ? print_symptom(s, o) : print_check(s, o);
}

static int check_from(const struct check_options *o, const struct machine_choice *from,
		      struct arena *a, struct texts *ret_hosts)
{
	struct check_session s;
	int r = check_session_read(&s, &o->request, from, a, ret_hosts);

	r = r < 0          ? fail(EXIT_NOT_JUDGED, "%s", err_msg())
	    : ret_hosts->n ? EXIT_OK
			   : check_one(&s, o);
	check_session_done(&s);
	return r;
}

/* Texts of several hosts: each is a machine by itself. */
static int check_each(const struct check_options *o, struct arena *a, const struct texts *hosts)
{
	struct machine_choice from = o->common.machine;
	int worst = EXIT_OK;
	struct texts none;

	for (size_t i = 0; i < hosts->n; i++) {
		from.host = hosts->items[i];
		if (i)
			putchar('\n');
		/* The whole report begins with its name. */
		if (o->quiet || o->ask || o->symptom)
			printf("%s:\n", hosts->items[i]);
		worst = worse_code(worst, check_from(o, &from, a, &none));
	}
	return worst;
}

static int run_check(const void *options, const char *const *args)
{
	struct check_options o = *(const struct check_options *)options;
	struct texts hosts = {0};
	struct arena *a;
	int r;

	(void)args;
	if (o.explain)
		return explain(&o);
	if (o.list)
		return list(&o);
	for (size_t i = 0; i < o.request.ignore.n; i++)
		if (!rule_named(o.request.ignore.items[i]))
			return fail(EXIT_REFUSED, "--ignore: %s", err_msg());
	if (o.caller.caller)
		return check_for_caller(&o.caller, &o.request, &o.common.machine);
	if (o.watch_s)
		return check_watch(o.watch_s, &o.common, &o.request);
	o.request.whole = o.common.json || page_wanted(&o.common);
	a = arena_new();
	r = check_from(&o, &o.common.machine, a, &hosts);
	if (hosts.n)
		r = check_each(&o, a, &hosts);
	arena_free(a);
	return r;
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
