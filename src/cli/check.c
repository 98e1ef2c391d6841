/* SPDX-License-Identifier: Apache-2.0 */
/* onehop check: what stands between the GPUs of this machine. */
#include "cli/command.h"
#include "cli/planning.h"
#include "cli/require.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/texts.h"
#include "diagnose/symptom.h"
#include "ingest/ingest.h"
#include "machine/machine.h"
#include "report/report.h"
#include "session/device_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct check_options {
	struct common_options common;
	int fail_on;
	struct observed_options observed;
	struct string_list ignore, require;
	const char *explain, *gpus, *pair;
	int list, symptom;
	bool quiet, ask;
};

/* enum severity in words, and one more. */
static const char *const fail_on_words[] = {"info", "warning", "error", "never", NULL};
static const char *const list_formats[] = {"text", "markdown", "scdoc", NULL};

/* clang-format off */
#define AT(member) offsetof(struct check_options, member)
static const struct option check_table[] = {
	COMMON_FROM(struct check_options),
	COMMON_HOST(struct check_options),
	COMMON_PID(struct check_options),
	COMMON_OBSERVED(struct check_options),
	{"fail-on", 0, OPTION_CHOICE, AT(fail_on), "SEVERITY",
		"exit 1 from this severity on: info, warning (the default), error, never",
		fail_on_words, 0, 0, 0},
	{"ignore", 0, OPTION_LIST, AT(ignore), "ID",
		"ignore the findings of this rule in text, JSON and exit code; the verdicts "
		"of pairs do not change; repeatable", NULL, 0, 0, 0, WORDS_RULES},
	{"require", 0, OPTION_LIST, AT(require), "WHAT",
		"exit 0 only if all pairs of GPUs are direct (direct), or all pairs of a GPU "
		"and a NIC (rdma); 1 if one is not, 3 if that is unknown; if given twice, "
		"both must hold",
		requirement_words, 0, 0, 0},
	{"gpus", 0, OPTION_TEXT, AT(gpus), "LIST",
		"with --require: only these GPUs, by number, PCI address, nvml:N or cuda:N",
		NULL, 0, 0, 0, WORDS_GPUS},
	{"ask", 0, OPTION_FLAG, AT(ask), NULL,
		"print only the commands, at most three, whose output would decide what the facts "
		"leave open, ready to paste", NULL, 0, 0, 0},
	{"symptom", 0, OPTION_CHOICE, AT(symptom), "WHAT",
		"print what could cause this symptom on this machine, the most likely first, and what "
		"decides: hang, wrong-data, slow, crash, refused",
		symptom_words, 0, 0, 0},
	{"pair", 0, OPTION_TEXT, AT(pair), "A,B",
		"with --symptom: the two GPUs that show it, named as for --gpus", NULL, 0, 0, 0,
		WORDS_GPUS},
	{"explain", 0, OPTION_TEXT, AT(explain), "ID",
		"explain what a rule checks, why, and what to do", NULL, 0, 0, 0, WORDS_RULES},
	{"list", 0, OPTION_CHOICE, AT(list), "FORMAT", "list all rules as text, markdown or scdoc", list_formats, 0, true, 0},
	COMMON_JSON(struct check_options),
	COMMON_COLOR(struct check_options),
	COMMON_WIDTH(struct check_options),
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL,
		"also print notes, every device, all evidence, unknown facts with reasons, "
		"and the result of each rule", NULL, 0, 0, 0},
	{"quiet", 'q', OPTION_FLAG, AT(quiet), NULL,
		"print only the verdict, and with --require its result", NULL, 0, 0, 0},
	COMMON_HELP(struct check_options),
	OPTIONS_END,
};
/* clang-format on */

/* ---- rules ---- */

/* "bar1-vbios, bar1-firmware": the rules that begin so. */
static size_t rules_that_begin(const char *start, struct strbuf *ret_names)
{
	size_t n = 0;

	FOR_EACH_RULE (r)
		if (text_starts_with(r->id, start))
			strbuf_printf(ret_names, "%s%s", n++ ? ", " : "", r->id);
	return n;
}

int no_rule(const char *option, const char *id)
{
	AUTO_STRBUF struct strbuf begun = {0};
	const char *names[256] = {0};
	const char *nearest;
	size_t n = 0;

	if (strlen(id) > 2 && rules_that_begin(id, &begun) > 1)
		return fail(EXIT_REFUSED, "%s: no rule '%s'; rules that begin so: %s", option, id,
			    strbuf_str(&begun));
	FOR_EACH_RULE (r)
		if (n < 256)
			names[n++] = r->id;
	nearest = nearest_name(id, names, n);
	if (nearest)
		return fail(EXIT_REFUSED, "%s: no rule '%s'; did you mean %s?", option, id,
			    nearest);
	return fail(EXIT_REFUSED, "%s: no rule '%s' (see: onehop check --list)", option, id);
}

static int explain(const struct check_options *o)
{
	const struct rule *rule = rule_find(o->explain);
	struct document *d;
	int r;

	if (!rule)
		return no_rule("--explain", o->explain);
	if (o->common.json)
		return print_json(report_rules_json(rule), EXIT_OK);
	d = document_new();
	report_rule(d, rule);
	r = print_document(d, &o->common, EXIT_OK);
	document_free(d);
	return r;
}

static int list_text(const struct check_options *o)
{
	struct document *d = document_new();
	int r;

	report_rule_list(d);
	r = print_document(d, &o->common, EXIT_OK);
	document_free(d);
	return r;
}

static int list(const struct check_options *o)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (strcmp(list_formats[o->list - 1], "text") == 0)
		return o->common.json ? print_json(report_rules_json(NULL), EXIT_OK) : list_text(o);
	if (o->common.json)
		return fail(EXIT_REFUSED, "--list=%s prints no JSON; --list --json does",
			    list_formats[o->list - 1]);
	if (strcmp(list_formats[o->list - 1], "markdown") == 0)
		report_rules_markdown(&b);
	else
		report_rules_scdoc(&b);
	return print_text(&b, EXIT_OK);
}

/* ---- judging ---- */

static bool is_ignored(const struct check_options *o, const struct finding *f)
{
	for (size_t i = 0; i < o->ignore.n; i++) {
		if (strcmp(o->ignore.items[i], f->rule->id) == 0)
			return true;
	}
	return false;
}

static void drop_ignored(struct diagnosis *d, const struct check_options *o)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->finding_n; i++) {
		if (!is_ignored(o, &d->findings[i]))
			d->findings[kept++] = d->findings[i];
	}
	d->finding_n = kept;
}

static bool fails(const struct diagnosis *d, int threshold)
{
	for (size_t i = 0; i < d->finding_n; i++) {
		if ((int)d->findings[i].severity >= threshold)
			return true;
	}
	return false;
}

bool machine_was_judged(const struct diagnosis *d)
{
	struct pair_counts c;

	topology_count(d->topology, &c);
	if (c.pairs)
		return c.by_verdict[PAIR_UNDECIDED] < c.pairs;
	return d->topology->endpoint_n > 0;
}

/*
 * "All well" is only said of GPU pairs that are all decided, and not all of them doubtful: a script that
 * goes on after 0 would rely on paths that are unknown.
 */
static bool pairs_were_decided(const struct diagnosis *d)
{
	struct pair_counts c;

	topology_count(d->topology, &c);
	return !c.pairs || (!c.by_verdict[PAIR_UNDECIDED] && c.by_verdict[PAIR_SUSPECT] < c.pairs);
}

/*
 * `unexplained`: pairs are blocked and no rule said so. That must not pass for well at a threshold
 * that would have caught the finding.
 */
static enum exit_code judge(const struct diagnosis *d, const struct check_options *o,
			    bool unexplained)
{
	int threshold = o->fail_on ? o->fail_on - 1 : SEVERITY_WARNING;

	if (fails(d, threshold) || (unexplained && threshold <= SEVERITY_ERROR))
		return EXIT_FINDING;
	return machine_was_judged(d) && pairs_were_decided(d) ? EXIT_OK : EXIT_NOT_JUDGED;
}

/* What the exit status and the last line depend on besides the findings. */
struct outlook {
	bool required;
	struct requirements requirements;
	enum exit_code code;
};

/* A requirement decides alone, unless findings were asked for too. */
static enum exit_code weigh(const struct diagnosis *d, const struct check_options *o,
			    bool unexplained, const struct outlook *l)
{
	enum exit_code code = judge(d, o, unexplained);

	if (!l->required)
		return code;
	return o->fail_on && l->requirements.code == EXIT_OK && code == EXIT_FINDING
		       ? code
		       : l->requirements.code;
}

static int print_check_json(const struct diagnosis *d, const struct outlook *l)
{
	json_t *json = report_check_json(d);

	if (l->required)
		json_object_set_new(json, "requirements", requirements_json(&l->requirements));
	return print_json(json, l->code);
}

/* `from`: what the machine was read from, so that texts are not read twice; NULL: the host. */
static int print_check(const struct diagnosis *d, const struct check_options *o,
		       const struct outlook *l, struct source *from)
{
	const struct planning how = {.from = &o->common.from,
				     .host = o->common.host,
				     .source = from,
				     .lifetime = CHANGE_LASTING};
	struct check_fixes fixes = {.observed = o->observed.files.n > 0,
				    .no_store = o->observed.no_store};
	struct planned planned = {0};
	struct document *out;
	int r;

	if (o->common.json)
		return print_check_json(d, l);
	if (planned_make(&how, d, &planned) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	fixes.plan = planned.plan;
	fixes.changes = &planned.changes;
	out = document_new();
	if (o->quiet) {
		report_verdict(out, d);
		report_weighed(out, d->topology->machine);
	} else {
		report_check(out, d, &fixes, o->common.verbose);
	}
	if (l->required)
		report_requirements(out, &l->requirements);
	r = print_document(out, &o->common, l->code);
	document_free(out);
	planned_done(&planned);
	return r;
}

static int check_machine(const struct machine *m, const struct check_options *o,
			 struct source *from)
{
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	bool unexplained = diagnosis_unexplained(d);
	struct outlook l = {.required = o->require.n > 0};
	int r = l.required ? judge_requirements(t, &o->require, o->gpus, &l.requirements) : 0;

	drop_ignored(d, o);
	l.code = weigh(d, o, unexplained, &l);
	r = r < 0 ? fail(EXIT_REFUSED, "%s", err_msg()) : print_check(d, o, &l, from);
	diagnosis_free(d);
	topology_free(t);
	return r;
}

static int ask(const struct machine *m, const struct check_options *o)
{
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	struct document *out = document_new();
	int r;

	report_questions(out, d);
	r = print_document(out, &o->common, EXIT_OK);
	document_free(out);
	diagnosis_free(d);
	topology_free(t);
	return r;
}

/* The numbers of the two GPUs of --pair; -1: it is not given. */
static int read_pair(const struct machine *m, const char *list, int ret[2])
{
	AUTO_FREE bool *wanted = xcalloc(m->gpu_n + 1, sizeof(*wanted));
	size_t n = 0;

	ret[0] = ret[1] = -1;
	if (!list)
		return 0;
	if (name_gpus(m, "--pair", list, wanted) < 0)
		return -EINVAL;
	for (size_t i = 0; i < m->gpu_n; i++)
		if (wanted[i] && n++ < 2)
			ret[n - 1] = (int)i;
	return n == 2 ? 0
		      : err_set(EINVAL, "--pair %s: a pair is two GPUs, and these are %zu", list,
				n);
}

static int print_symptom(const struct diagnosis *d, const struct check_options *o,
			 const int pair[2])
{
	int symptom = o->symptom - 1, r;
	struct document *out;

	if (o->common.json) {
		json_t *json = report_check_json(d);

		json_object_set_new(json, "symptom",
				    report_symptom_json(d, symptom, pair[0], pair[1]));
		return print_json(json, EXIT_OK);
	}
	out = document_new();
	report_symptom(out, d, symptom, pair[0], pair[1]);
	r = print_document(out, &o->common, EXIT_OK);
	document_free(out);
	return r;
}

static int judge_symptom(const struct machine *m, const struct check_options *o)
{
	struct topology *t;
	struct diagnosis *d;
	int pair[2], r;

	if (read_pair(m, o->pair, pair) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	t = topology_new(m);
	d = diagnose(t);
	drop_ignored(d, o);
	r = print_symptom(d, o, pair);
	diagnosis_free(d);
	topology_free(t);
	return r;
}

/* Options that print something else than the whole report. */
static int refuse_together(const struct check_options *o)
{
	if (o->quiet && o->common.json)
		return fail(EXIT_REFUSED, "--quiet and --json exclude each other");
	if (o->ask && (o->quiet || o->common.json || o->require.n))
		return fail(EXIT_REFUSED,
			    "--ask prints commands only: not with --quiet, --json or --require");
	if (o->gpus && !o->require.n)
		return fail(EXIT_REFUSED, "--gpus needs --require, whose GPUs it selects");
	if (o->common.host && !o->common.from.n)
		return fail(EXIT_REFUSED, "--host needs --from, whose texts it selects");
	if (o->pair && !o->symptom)
		return fail(EXIT_REFUSED, "--pair needs --symptom, which the pair shows");
	if (o->symptom && (o->quiet || o->ask || o->require.n || o->fail_on))
		return fail(EXIT_REFUSED, "--symptom prints causes only: not with --quiet, --ask, "
					  "--require or --fail-on");
	return EXIT_OK;
}

/* A machine, and what it was read from. */
struct loaded {
	struct machine *machine;
	struct source *source;
};

static int load(const struct check_options *o, struct loaded *ret)
{
	return load_observed_source(&o->common, &o->observed, MACHINE_TO_JUDGE, &ret->machine,
				    &ret->source);
}

static void unload(struct loaded *l)
{
	machine_free(l->machine);
	source_free(l->source);
}

static int check_one(const struct check_options *o, const struct loaded *l)
{
	/* The live host's own source keeps answers; the plan reads the files as they are now. */
	struct source *from = o->common.from.n ? l->source : NULL;

	if (o->ask)
		return ask(l->machine, o);
	return o->symptom ? judge_symptom(l->machine, o) : check_machine(l->machine, o, from);
}

/* A failure to print outweighs a finding, and a finding what could not be judged. */
static int worse(int a, int b)
{
	static const int order[] = {[EXIT_OK] = 0,
				    [EXIT_NOT_JUDGED] = 1,
				    [EXIT_FINDING] = 2,
				    [EXIT_REFUSED] = 3,
				    [EXIT_NOT_CHANGED] = 4};

	return order[a] >= order[b] ? a : b;
}

/* Texts of several hosts: each is a machine by itself. */
static int check_each(const struct check_options *o, const struct texts *hosts)
{
	int worst = EXIT_OK;

	for (size_t i = 0; i < hosts->n; i++) {
		struct check_options of = *o;
		struct loaded l;

		of.common.host = hosts->items[i];
		if (i)
			putchar('\n');
		/* The whole report begins with its name. */
		if (o->quiet || o->ask || o->symptom)
			printf("%s:\n", hosts->items[i]);
		if (load(&of, &l) < 0) {
			worst = worse(worst, fail(EXIT_NOT_JUDGED, "%s", err_msg()));
			continue;
		}
		worst = worse(worst, check_one(&of, &l));
		unload(&l);
	}
	return worst;
}

/* A log of several hosts is read as a whole, and then tells nothing about a machine. */
static bool is_bare(const struct machine *m)
{
	return m->text_part_n && !m->gpu_n && !m->pci_n;
}

/*
 * Loads the machine; texts of several hosts are listed in `ret_hosts` instead, if each can be printed by
 * itself.
 */
static int load_or_list(const struct check_options *o, struct arena *a, struct loaded *ret,
			struct texts *ret_hosts)
{
	int r = load(o, ret);
	AUTO_FREE char *why = r < 0 ? xstrdup(err_msg()) : NULL;

	if (o->common.host || (r < 0 ? r != -EXDEV : !is_bare(ret->machine)))
		return r;
	if (o->common.json)
		return r < 0 ? err_set(EINVAL, "%s, or choose one with --host NAME", why) : r;
	if (ingest_hosts(o->common.from.items, o->common.from.n, a, ret_hosts) < 0 ||
	    ret_hosts->n < 2) {
		*ret_hosts = (struct texts){0};
		return r < 0 ? err_set(-r, "%s", why) : r;
	}
	if (r == 0)
		unload(ret);
	return 0;
}

static int run_check(const void *options, const char *const *args)
{
	const struct check_options *o = options;
	struct texts hosts = {0};
	struct arena *a;
	struct loaded l;
	int r;

	(void)args;
	if (o->explain)
		return explain(o);
	if (o->list)
		return list(o);
	for (size_t i = 0; i < o->ignore.n; i++) {
		if (!rule_find(o->ignore.items[i]))
			return no_rule("--ignore", o->ignore.items[i]);
	}
	r = refuse_together(o);
	if (r != EXIT_OK)
		return r;
	a = arena_new();
	if (load_or_list(o, a, &l, &hosts) < 0) {
		r = fail(EXIT_NOT_JUDGED, "%s", err_msg());
	} else if (hosts.n) {
		r = check_each(o, &hosts);
	} else {
		r = check_one(o, &l);
		unload(&l);
	}
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
	.size = sizeof(struct check_options),
	.run = run_check,
};
