/* SPDX-License-Identifier: Apache-2.0 */
/* cli/: the option parser, exit codes and messages of whole command lines, completions, manuals. */
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "check_text.h"
#include "cli/command.h"
#include "cli/words.h"
#include "device/device.h"
#include "diagnose/diagnose.h"
#include "json_schema.h"
#include "result/metric.h"
#include "run_command.h"
#include "skip.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BEFORE   "tests/machines/rtx4090x8-before"
#define EXAMPLE  "tests/machines/made-up-bar1-set"
#define MACHINES "tests/machines/"

/* ---- running a command line inside the test ---- */

/* One line on stderr, nothing on stdout, that code. */
static void assert_refused(const char *line, int code, const char *message)
{
	struct result r CLEANUP(result_done) = run_command(line);

	assert_string_equal(r.out, "");
	assert_string_equal(r.err, message);
	assert_int_equal(r.code, code);
}

static void assert_runs(const char *line, int code, const char *part)
{
	struct result r CLEANUP(result_done) = run_command(line);

	assert_string_equal(r.err, "");
	if (!strstr(r.out, part))
		fail_msg("onehop %s: no \"%s\" in:\n%s", line, part, r.out);
	assert_int_equal(r.code, code);
}

/* ---- the parser ---- */

struct values {
	struct common_options common;
	const char *text;
	int number, choice, p2p, list;
	struct texts many;
};

static const char *const colours[] = {"red", "green", NULL};
#define AT(member) offsetof(struct values, member)
static const struct option table[] = {
	{"verbose", 'v', OPTION_FLAG, AT(common.verbose), NULL, "", NULL, 0, 0, 0},
	{"json", 'j', OPTION_FLAG, AT(common.json), NULL, "", NULL, 0, 0, 0},
	{"text", 't', OPTION_TEXT, AT(text), "TEXT", "", NULL, 0, 0, 0},
	{"number", 0, OPTION_NUMBER, AT(number), "N", "", NULL, 0, 0, 0},
	{"colour", 0, OPTION_CHOICE, AT(choice), "C", "", colours, 0, 0, 0},
	{"p2p", 0, OPTION_CHOICE, AT(p2p), "C", "", colours, true, 0, 0},
	{"list", 0, OPTION_CHOICE, AT(list), "C", "", colours, 0, true, 0},
	{"many", 0, OPTION_LIST, AT(many), "ID", "", NULL, 0, 0, 0},
	OPTIONS_END,
};

struct parsed {
	struct values v;
	const char *args[3];
	int n;
};

static struct parsed parse(const char *const *words)
{
	struct parsed p = {0};
	size_t n = 0;

	while (words[n])
		n++;
	p.n = options_parse(table, (char *const *)words, n, &p.v, p.args, 2);
	return p;
}

static void parsed_done(struct parsed *p)
{
	options_done(table, &p->v);
}

#define PARSE(...)                                                                                 \
	CLEANUP(parsed_done) struct parsed p = parse((const char *const[]){__VA_ARGS__, NULL})

static void forms_of_an_option(void **state)
{
	PARSE("--text=a=b", "--number", "0x10", "-vj", "--colour", "green", "-p2p", "red", "FILE");

	(void)state;
	assert_int_equal(p.n, 1);
	assert_string_equal(p.v.text, "a=b");
	assert_int_equal(p.v.number, 16);
	assert_true(p.v.common.verbose && p.v.common.json);
	assert_int_equal(p.v.choice, 2);
	assert_int_equal(p.v.p2p, 1);
	assert_string_equal(p.args[0], "FILE");
}

static void optional_value_needs_equals(void **state)
{
	PARSE("--list", "green");

	(void)state;
	assert_int_equal(p.v.list, 1);
	assert_int_equal(p.n, 1);
}

static void optional_value_is_taken(void **state)
{
	PARSE("--list=green");

	(void)state;
	assert_int_equal(p.v.list, 2);
	assert_int_equal(p.n, 0);
}

static void lists_repeat(void **state)
{
	PARSE("--many", "a", "--many=b");

	(void)state;
	assert_int_equal(p.v.many.n, 2);
	assert_string_equal(p.v.many.items[1], "b");
}

static void two_dashes_end_options(void **state)
{
	PARSE("--", "--text", "-");

	(void)state;
	assert_int_equal(p.n, 2);
	assert_string_equal(p.args[0], "--text");
	assert_null(p.v.text);
}

static void letter_takes_next_word(void **state)
{
	PARSE("-vt", "x");

	(void)state;
	assert_int_equal(p.n, 0);
	assert_string_equal(p.v.text, "x");
}

static void assert_parse_fails(const char *const *words, const char *message)
{
	struct parsed p CLEANUP(parsed_done) = parse(words);
	const bool too_many = text_starts_with(message, "unexpected argument");

	assert_int_equal(p.n, too_many ? -E2BIG : -EINVAL);
	assert_string_equal(err_msg(), message);
	if (too_many)
		assert_string_equal(p.args[2], "c");
}

#define FAILS(message, ...) assert_parse_fails((const char *const[]){__VA_ARGS__, NULL}, message)

static void mistakes_are_named(void **state)
{
	(void)state;
	FAILS("--text needs a value: --text TEXT", "--text");
	FAILS("--verbose takes no value", "--verbose=1");
	FAILS("unknown option '--nmber'; did you mean --number?", "--nmber=3");
	FAILS("unknown option '--p3p'; did you mean -p2p?", "--p3p");
	FAILS("unknown option '--zzzzzzzz'", "--zzzzzzzz");
	FAILS("unknown option '-tv'", "-tv");
	FAILS("--number must be a whole number from 1 to 2147483647, not '0'", "--number", "0");
	FAILS("--number must be a whole number from 1 to 2147483647, not '99999999999'", "--number",
	      "99999999999");
	FAILS("--colour must be one of red, green, not 'blue'", "--colour", "blue");
	FAILS("unexpected argument 'c'", "a", "b", "c");
}

static void nearest_is_near(void **state)
{
	static const char *const names[] = {"check", NULL, "topo", "record"};

	(void)state;
	assert_string_equal(nearest_name("chekc", names, 4), "check");
	assert_string_equal(nearest_name("rec", names, 4), "record");
	assert_string_equal(nearest_name("tpoo", names, 4), "topo");
	assert_null(nearest_name("fooo", names, 4));
	assert_null(nearest_name("xyzzy", names, 4));
	assert_null(nearest_name("", names, 4));
}

/* ---- whole command lines ---- */

static void usage_errors_are_one_line(void **state)
{
	(void)state;
	assert_refused("chekc", 2,
		       "onehop: unknown command 'chekc'; did you mean check? (see: onehop help)\n");
	assert_refused("check --explain acs-re", 2,
		       "onehop: --explain: no rule 'acs-re'; did you mean acs-redirect?\n");
	assert_refused("check --explain nvlink", 2,
		       "onehop: --explain: no rule 'nvlink'; did you mean nvlink-up?\n");
	assert_refused(
		"check --explain bar1", 2,
		"onehop: --explain: no rule 'bar1'; rules that begin so: bar1-windows, "
		"bar1-vbios, bar1-firmware, bar1-window, bar1-small, bar1-resize, bar1-high\n");
	assert_refused("check --fron x", 2,
		       "onehop: unknown option '--fron'; did you mean --from? (see: onehop check "
		       "--help)\n");
	assert_refused("record", 2,
		       "onehop: record needs 1 argument: onehop record FILE (see: onehop record "
		       "--help)\n");
	assert_refused(
		"compare one", 2,
		"onehop: compare needs 2 arguments: onehop compare BEFORE AFTER (see: onehop "
		"compare --help)\n");
	assert_refused("check extra", 2,
		       "onehop: unexpected argument 'extra' (to read a recording or text: --from "
		       "FILE) (see: onehop check --help)\n");
	assert_refused("bench collective extra", 2,
		       "onehop: unexpected argument 'extra' (to read a recording or text: "
		       "--simulate --from FILE) (see: onehop bench collective --help)\n");
	assert_refused("bench p2p extra", 2,
		       "onehop: unexpected argument 'extra' (to read a recording or text: --device "
		       "host --from FILE) (see: onehop bench p2p --help)\n");
	assert_refused(
		"check tests/figures/failed/log-ib-status.txt", 2,
		"onehop: unexpected argument 'tests/figures/failed/log-ib-status.txt' (to read a "
		"log: onehop log tests/figures/failed/log-ib-status.txt)\n");
	/* Standard input is not read to guess what it is. */
	assert_refused("check -", 2,
		       "onehop: unexpected argument '-' (to read a recording or text: --from "
		       "FILE) (see: onehop check --help)\n");
	assert_refused("topo -m --json", 2,
		       "onehop: topo prints one thing at a time: -m, -p2p, --svg, "
		       "--json, --format, or --html and --markdown\n");
	assert_refused("check --ignore acs-redirekt", 2,
		       "onehop: --ignore: no rule 'acs-redirekt'; did you mean acs-redirect?\n");
	assert_refused("check --explain zzzzzz", 2,
		       "onehop: --explain: no rule 'zzzzzz' (see: onehop check --list)\n");
}

/* COLUMNS is a width as --width is, which goes before; less than 40 is 40. */
static void columns_are_a_width(void **state)
{
	static const char *const lines[] = {"check --from " EXAMPLE,
					    "check --width 40 --from " EXAMPLE,
					    "check --width 7 --from " EXAMPLE};
	static const char *const columns[] = {"9", "100", "3"};
	struct result wide CLEANUP(result_done) = run_command("check --from " EXAMPLE);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct result narrow CLEANUP(result_done) = {0}, other CLEANUP(result_done) = {0};

		setenv("COLUMNS", "40", 1);
		narrow = run_command(lines[0]);
		setenv("COLUMNS", columns[i], 1);
		other = run_command(lines[i]);
		unsetenv("COLUMNS");
		assert_string_equal(narrow.out, other.out);
		assert_string_not_equal(narrow.out, wide.out);
	}
}

static void bad_input_is_3(void **state)
{
	struct result r CLEANUP(result_done) = run_command("check --from tests/unit/test_cli.c");

	(void)state;
	assert_int_equal(r.code, 3);
	assert_string_equal(r.out, "");
	assert_true(text_starts_with(r.err, "onehop: tests/unit/test_cli.c"));
	assert_ptr_equal(strchr(r.err, '\n'), r.err + strlen(r.err) - 1);
	assert_refused("check --from /nonexistent", 3,
		       "onehop: cannot read /nonexistent: no such file or directory\n");
}

static void help_and_version(void **state)
{
	(void)state;
	assert_runs("--version", 0, "onehop " ONEHOP_VERSION "\n");
	assert_runs("--help", 0, "Exit codes:");
	assert_runs("help topo", 0, "-p2p r|w|n|a|p");
	assert_runs("help bench", 0, "bench nccl");
	assert_runs("bench --help", 0, "bench p2p");
	assert_refused(
		"bench", 2,
		"onehop: bench needs a second word: bench p2p, bench nccl, bench collective, "
		"bench rdma (see: onehop help)\n");
	assert_refused(
		"bench p2", 2,
		"onehop: unknown command 'bench p2'; did you mean bench p2p? (see: onehop help)\n");
	assert_refused(
		"help bench p2", 2,
		"onehop: unknown command 'bench p2'; did you mean bench p2p? (see: onehop help)\n");
	assert_refused("bench xyzzy", 2,
		       "onehop: unknown command 'bench xyzzy'; there are bench p2p, bench nccl, "
		       "bench collective, bench rdma (see: onehop help)\n");
	assert_runs("record --help", 0, "--keep-identifiers");
	assert_refused("help tpo", 2,
		       "onehop: unknown command 'tpo'; did you mean topo? (see: onehop help)\n");
}

static void recorded_machine_is_judged(void **state)
{
	(void)state;
	assert_runs("check --from " BEFORE, 1, "Recorded machine: " BEFORE " (origin: real)");
	assert_runs("check --json --from " BEFORE, 1, "\"schema\": " JSON_SCHEMA_TEXT);
	assert_runs("--from " BEFORE, 1,
		    "\nGPU P2P: 0 of 56 pairs direct. The driver blocks all 56");
	assert_runs("check -q --from " BEFORE, 1,
		    "GPU P2P: 0 of 56 pairs direct. The driver blocks all 56");
	assert_runs("topo --from " BEFORE, 0, "Obstacles between GPUs");
	assert_runs("topo -m --from " BEFORE, 0, "CPU Affinity");
	assert_runs("topo -p2p r --from " BEFORE, 0, "CNS");
	assert_runs("topo --svg - --from " BEFORE, 0, "<svg");
	assert_runs("topo --json --from " BEFORE, 0, "\"command\": \"topo\"");
}

/* Every pair is blocked there, so what remains of the findings decides. */
static void exit_code_follows_threshold(void **state)
{
	(void)state;
	assert_runs("check --fail-on error --from " BEFORE, 1, "GPU P2P");
	assert_runs("check --fail-on never --from " BEFORE, 0, "GPU P2P");
	/* Nothing found is not "all well" while pairs are undecided or all are doubtful. */
	assert_runs("check --from " MACHINES "rtx4090x8-after", 3, "24 undecided");
	assert_runs("check --from " MACHINES "made-up-acs-root-hang --ignore acs-root-port", 3,
		    " doubtful");
}

/* That it is JSON by its schema, and what the one requirement came to. */
static void assert_requirement(const char *line, json_t *holds)
{
	struct result r CLEANUP(result_done) = run_command(line);
	json_t *o = json_loads(r.out, 0, NULL);
	AUTO_STRBUF struct strbuf trouble = {0};

	assert_non_null(o);
	json_schema_check(o, "check.schema.json", &trouble);
	assert_string_equal(strbuf_str(&trouble), "");
	assert_true(
		json_equal(json_object_get(json_array_get(json_object_get(o, "requirements"), 0),
					   "holds"),
			   holds));
	json_decref(o);
}

/* Pairs decide, and not findings, unless both are asked for. */
static void required_pairs_decide(void **state)
{
	static const char good[] = "check --from " MACHINES "made-up-switch --require direct";

	(void)state;
	assert_runs(good, 0, "Required:  both ordered pairs of GPUs are direct");
	assert_runs(
		"check --from " MACHINES "made-up-mig --require direct", 1,
		"Required:  of 2 ordered pairs of GPUs 0 are direct, 2 are not, 0 are undecided");
	assert_runs(
		"check --from " MACHINES "made-up-hgx-lspci --require direct", 3,
		"Required:  of 2 ordered pairs of GPUs 0 are direct, 0 are not, 2 are undecided");
	assert_runs("check --from " MACHINES "made-up-switch --require rdma", 3,
		    "Required:  there are no pairs of a GPU and a NIC");
	assert_runs("check --from " MACHINES "made-up-rdma --require rdma", 3,
		    "Required:  of 4 pairs of a GPU and a NIC 0 are direct, 0 are not, 4 are");
	assert_runs("check --from " MACHINES "made-up-irdma --require rdma", 1,
		    "Required:  of 2 pairs of a GPU and a NIC 0 are direct, 2 are not, 0 are");
	assert_runs("check --from " MACHINES "guest-peermem-not-loaded --require rdma", 1,
		    "Required:  of 3 pairs of a GPU and a NIC 0 are direct, 3 are not, 0 are");
	assert_runs("check --from " MACHINES "made-up-two-generations --require direct", 1,
		    "Required:  of 2 ordered pairs of GPUs 0 are direct, 2 are not, 0 are");
	assert_requirement("check --json --from " MACHINES "made-up-mig --require direct",
			   json_false());
	assert_requirement("check --json --from " MACHINES "made-up-hgx-lspci --require direct",
			   json_null());
	assert_requirement("check --json --from " MACHINES "made-up-switch --require direct",
			   json_true());
	/* Both must hold, in whatever order: these GPUs are direct, and there is no NIC. */
	assert_runs("check --from " MACHINES "made-up-switch --require direct --require rdma", 3,
		    "Required:  there are no pairs of a GPU and a NIC");
	assert_runs("check --from " MACHINES "made-up-switch --require rdma --require direct", 3,
		    "Required:  both ordered pairs of GPUs are direct");
	assert_runs("check --from " MACHINES "made-up-mig --require direct --require rdma", 1,
		    "Required:  there are no pairs of a GPU and a NIC");
	assert_refused(
		"check --from " BEFORE " --require fast", 2,
		"onehop: --require must be one of direct, rdma, not 'fast' (see: onehop check "
		"--help)\n");
	/* One warning, and every pair direct. */
	assert_runs("check --from " MACHINES "made-up-link-speed", 1, "warning");
	assert_runs("check --from " MACHINES "made-up-link-speed --require direct", 0, "warning");
	assert_runs("check --from " MACHINES
		    "made-up-link-speed --require direct --fail-on warning",
		    1, "are direct");
}

static void required_pairs_of_some_gpus(void **state)
{
	(void)state;
	assert_runs("check --from " MACHINES "made-up-48g-proven --require direct --gpus 0,GPU7", 0,
		    "Required:  both ordered pairs of GPUs are direct");
	assert_runs("check --from " MACHINES "made-up-48g-proven --require direct --gpus 3", 3,
		    "Required:  there are no ordered pairs of GPUs");
	assert_refused("check --from " BEFORE " --require direct --gpus 9", 2,
		       "onehop: --gpus: there is no device '9'; there are GPU0 to GPU7\n");
	assert_refused("check --from " BEFORE " --require direct --gpus 0x1", 2,
		       "onehop: --gpus: there is no device '0x1'; there are GPU0 to GPU7\n");
	assert_refused("check --from " BEFORE " --gpus 0", 2,
		       "onehop: --gpus needs --require, whose GPUs it selects\n");
	assert_refused("check --pair 0,1 --from tests/machines/made-up-switch", 2,
		       "onehop: --pair needs --symptom, which the pair shows\n");
	assert_refused("check --symptom hang --pair 0 --from tests/machines/made-up-switch", 2,
		       "onehop: --pair 0: a pair is two GPUs, and these are 1\n");
	assert_refused("check --symptom hang --pair 0,9 --from tests/machines/made-up-switch", 2,
		       "onehop: --pair: there is no device '9'; there are GPU0 to GPU1\n");
	assert_refused("check --symptom hang --ask --from tests/machines/made-up-switch", 2,
		       "onehop: --symptom cannot be used with --ask: it prints causes only\n");
}

/* The rule of the first finding: the name in brackets. */
static char *first_rule(const char *text)
{
	const char *open = strstr(text, " [");

	assert_non_null(open);
	return xstrndup(open + 2, strcspn(open + 2, "]"));
}

static void ignored_rules_are_left_out(void **state)
{
	struct result all CLEANUP(result_done) = run_command("check --from " BEFORE);
	AUTO_FREE char *rule = first_rule(all.out);
	AUTO_FREE char *line = xprintf("check --ignore %s --from " BEFORE, rule);
	AUTO_FREE char *mark = xprintf("[%s]", rule);
	struct result less CLEANUP(result_done) = run_command(line);

	(void)state;
	assert_string_equal(less.err, "");
	assert_null(strstr(less.out, mark));
}

/* What was recorded from a recording judges the same. */
static void record_round_trip(void **state)
{
	char folder[] = "/tmp/onehop-test-XXXXXX";
	AUTO_FREE char *file = NULL, *record = NULL, *check = NULL;

	(void)state;
	assert_non_null(mkdtemp(folder));
	file = xprintf("%s/machine.tar.gz", folder);
	record = xprintf("record --from " BEFORE " %s", file);
	check = xprintf("check --from %s", file);
	assert_runs(record, 0, "contents: ");
	{
		struct result again CLEANUP(result_done) = run_command(record);
		struct result copy CLEANUP(result_done) = run_command(check);
		struct result real CLEANUP(result_done) = run_command("check --from " BEFORE);

		assert_int_equal(again.code, 2); /* never overwrites */
		assert_int_equal(copy.code, real.code);
		assert_string_equal(strstr(copy.out, "GPU P2P"), strstr(real.out, "GPU P2P"));
	}
	unlink(file);
	rmdir(folder);
}

static void full_disk_is_no_success(void **state)
{
	char program[] = "onehop", command[] = "help", *argv[] = {program, command, NULL};
	int saved, code;

	(void)state;
	if (access("/dev/full", W_OK) < 0)
		SKIP("this system has no /dev/full");
	saved = redirect_stream(stdout, "/dev/full");
	code = cli_main(2, argv);
	clearerr(stdout);
	restore_stream(stdout, saved);
	assert_int_equal(code, 2);
}

/* ---- files made from the tables ---- */

static void assert_generated(const char *path, void (*make)(struct strbuf *out))
{
	AUTO_FREE char *text = file_text(path);
	AUTO_STRBUF struct strbuf b = {0};

	make(&b);
	if (strcmp(text, strbuf_str(&b)) != 0)
		fail_msg("%s is not what the tables give; run tools/generate", path);
}

static void completions_are_up_to_date(void **state)
{
	(void)state;
	assert_generated("completions/onehop.bash", completion_bash);
	assert_generated("completions/_onehop", completion_zsh);
}

static void assert_listed(const char *list, const char *word)
{
	AUTO_STRBUF struct strbuf b = {0};
	AUTO_FREE char *line = xprintf("%s\n", word), *described = xprintf("%s\t", word);

	word_list_find(list)->print(&b);
	for (const char *at = strbuf_str(&b); *at; at += strcspn(at, "\n") + 1)
		if (text_starts_with(at, line) || text_starts_with(at, described))
			return;
	fail_msg("'completion %s' lacks %s", list, word);
}

static const struct option *option_of(const struct command *c, const char *name)
{
	const struct option *o = c->options;

	while (o->name && strcmp(o->name, name) != 0)
		o++;
	assert_non_null(o->name);
	return o;
}

static void completions_list_what_the_tables_hold(void **state)
{
	static const char *const more[][2] = {
		{"variables", "NCCL_P2P_LEVEL"},
		{"p2p-metrics", "patterns"},
		{"rdma-metrics", "latency"},
		{"memory", "dma-buf"},
	};

	(void)state;
	FOR_EACH_RULE (r)
		assert_listed("rules", r->id);
	for (enum fault_kind f = FAULT_NONE + 1; f < FAULT_N; f++) {
		assert_listed("faults", fault_word(f));
		assert_non_null(strstr(option_of(&command_test, "inject")->help, fault_word(f)));
	}
	for (size_t i = 0; i < metric_n; i++)
		if (metrics[i].heading)
			assert_listed("p2p-metrics", metrics[i].name);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		assert_listed(more[i][0], more[i][1]);
}

/* ---- manuals ---- */

static bool is_without_manual(const struct command *c)
{
	return c == &command_help || c == &command_version || c == &command_completion;
}

static void each_manual(void (*assert_manual)(const struct command *c, const char *path,
					      const char *text))
{
	for (const struct command *const *c = commands; *c; c++) {
		AUTO_FREE char *path = xprintf("man/onehop-%s.1.scd", (*c)->name);
		AUTO_FREE char *text = NULL;
		char *blank = strchr(path, ' ');

		if (blank)
			*blank = '-';
		if ((*c)->hidden || is_without_manual(*c))
			continue;
		text = file_text(path);
		assert_manual(*c, path, text);
	}
}

/* onehop(1) lists every command that --help lists. */
static void manual_names_every_command(void **state)
{
	AUTO_FREE char *text = file_text("man/onehop.1.scd");

	(void)state;
	for (const struct command *const *c = commands; *c; c++) {
		AUTO_FREE char *row = xprintf("\n*%s*", (*c)->name);

		if (!(*c)->hidden && !strstr(text, row))
			fail_msg("onehop(1) does not name %s", (*c)->name);
	}
}

/* The text between a heading and the next one. */
static char *section_of(const char *path, const char *text, const char *heading)
{
	AUTO_FREE char *line = xprintf("\n# %s\n", heading);
	const char *begin = strstr(text, line), *end;

	if (!begin)
		fail_msg("%s has no %s", path, heading);
	begin += strlen(line);
	end = strstr(begin, "\n# ");
	return end ? xstrndup(begin, (size_t)(end - begin) + 1) : xstrdup(begin);
}

/* "\n*-b*, *--min* _SIZE_\n"; a choice may be spelled out instead: _a|b_. */
static bool has_row(const char *list, const struct option *o, const char *value)
{
	AUTO_STRBUF struct strbuf row = {0};

	strbuf_puts(&row, "\n");
	if (o->letter)
		strbuf_printf(&row, "*-%c*, ", o->letter);
	strbuf_printf(&row, "*%s%s*", o->one_dash ? "-" : "--", o->name);
	if (value)
		strbuf_printf(&row, o->optional ? "[=_%s_]" : " _%s_", value);
	strbuf_puts(&row, "\n");
	return strstr(list, strbuf_str(&row)) != NULL;
}

static void assert_rows(const struct command *c, const char *path, const char *text)
{
	AUTO_FREE char *list = section_of(path, text, "OPTIONS");

	for (const struct option *o = c->options; o->name; o++) {
		AUTO_STRBUF struct strbuf choices = {0};

		for (size_t i = 0; o->choices && o->choices[i]; i++)
			strbuf_printf(&choices, "%s%s", i ? "|" : "", o->choices[i]);
		if (!o->hidden && !has_row(list, o, o->arg) && !has_row(list, o, choices.text))
			fail_msg("%s: --%s is not a row of OPTIONS as --help has it", path,
				 o->name);
	}
}

static void manuals_name_every_option(void **state)
{
	(void)state;
	each_manual(assert_rows);
}

/*
 * The command's name, and each option and argument of its usage line: "--tree DIR" as --tree and
 * _DIR_.
 */
static void assert_synopsis(const struct command *c, const char *path, const char *text)
{
	static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	AUTO_FREE char *synopsis = section_of(path, text, "SYNOPSIS");
	AUTO_FREE char *name = xprintf("*onehop %s", c->name);

	if (!strstr(synopsis, name))
		fail_msg("%s: SYNOPSIS lacks %s", path, name);
	for (const char *at = c->args; *at; at++) {
		size_t word = strspn(at, capitals);
		AUTO_FREE char *shown = word ? xprintf("_%.*s_", (int)word, at)
					: text_starts_with(at, "--")
						? xstrndup(at, 2 + strcspn(at + 2, " |]"))
						: NULL;

		if (shown && !strcasestr(synopsis, shown))
			fail_msg("%s: SYNOPSIS lacks %s", path, shown);
		at += word ? word - 1 : 0;
	}
}

static void manuals_show_the_usage(void **state)
{
	(void)state;
	each_manual(assert_synopsis);
}

/* Success and wrong usage can be the end of every command; enum exit_code has no number above 4. */
static void assert_exit_status(const struct command *c, const char *path, const char *text)
{
	AUTO_FREE char *section = section_of(path, text, "EXIT STATUS");
	bool named[10] = {0};

	(void)c;
	for (const char *at = section; *at; at++) {
		bool alone = at == section || strchr(" *\n", at[-1]);

		if (alone && *at >= '0' && *at <= '9' && strchr(" *:;", at[1]))
			named[*at - '0'] = true;
	}
	if (!named[EXIT_OK] || !named[EXIT_REFUSED])
		fail_msg("%s: EXIT STATUS lacks 0 or 2", path);
	for (int i = EXIT_NOT_CHANGED + 1; i < 10; i++)
		if (named[i])
			fail_msg("%s: there is no exit status %d", path, i);
}

static void manuals_list_exit_codes(void **state)
{
	(void)state;
	each_manual(assert_exit_status);
}

static bool has_option(const struct command *c, const char *name, size_t length)
{
	for (const struct option *o = c->options; o->name; o++) {
		if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
			return true;
	}
	return false;
}

/* Fails if a --NAME between text and end is not an option of the command. */
static void assert_options_exist(const char *where, const struct command *c, const char *text,
				 const char *end)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz-0123456789";

	for (const char *dash = text; (dash = strstr(dash, "--")) && dash < end;) {
		const char *name = dash + 2;
		size_t length = strspn(name, letters);

		if (length > 0 && !strchr("-_", dash[-1]) && !has_option(c, name, length))
			fail_msg("%s: onehop %s has no --%.*s", where, c->name, (int)length, name);
		dash = name + length;
	}
}

static void assert_no_other_option(const struct command *c, const char *path, const char *text)
{
	AUTO_FREE char *list = section_of(path, text, "OPTIONS"),
		       *synopsis = section_of(path, text, "SYNOPSIS");

	for (const char *row = list; (row = strstr(row, "\n*-")); row++)
		assert_options_exist(path, c, row + 1, row + 1 + strcspn(row + 1, "\n"));
	assert_options_exist(path, c, synopsis, synopsis + strlen(synopsis));
}

/* Neither the list of options nor the synopsis has an option that the command does not have. */
static void manuals_name_no_other_option(void **state)
{
	(void)state;
	each_manual(assert_no_other_option);
}

/* The command that a line starts with: the longest name, so that "bench p2p" is not "bench". */
static const struct command *command_of(const char *line)
{
	const struct command *found = NULL;

	for (const struct command *const *c = commands; *c; c++) {
		size_t length = strlen((*c)->name);

		if (strncmp(line, (*c)->name, length) == 0 && strchr(" `\n", line[length]) &&
		    (!found || length > strlen(found->name)))
			found = *c;
	}
	return found;
}

/* Every command line `onehop COMMAND ...` in the documents has only options that exist. */
static void documents_name_only_real_options(void **state)
{
	static const char *const paths[] = {"README.md",           "docs/architecture.md",
					    "docs/fix.md",         "docs/json.md",
					    "docs/performance.md", "docs/recording.md",
					    "docs/testing.md",     "docs/unlock.md"};
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_FREE char *text = file_text(paths[i]);

		for (const char *p = text; (p = strstr(p, "onehop "));) {
			bool is_command = p == text || strchr("`\n", p[-1]) ||
					  (p - text >= 5 && strncmp(p - 5, "sudo ", 5) == 0);
			const struct command *c;

			p += strlen("onehop ");
			c = is_command ? command_of(p) : NULL;
			if (c) {
				assert_options_exist(paths[i], c, p, p + strcspn(p, "`\n#|;"));
				n++;
			}
		}
	}
	assert_true(n > 50); /* they were found */
}

/*
 * Each command that can change the host is named where the manual promises that the others do not.
 */
static void manual_names_what_changes_the_host(void **state)
{
	AUTO_FREE char *text = file_text("man/onehop.1.scd");
	char *section = strstr(text, "# COMMANDS THAT CHANGE THE HOST"), *end;
	size_t n = 0;

	(void)state;
	assert_non_null(section);
	end = strstr(section + 1, "\n# ");
	assert_non_null(end);
	*end = '\0';
	assert_non_null(strstr(section, "*onehop undo*"));
	for (const struct command *const *c = commands; *c; c++) {
		AUTO_FREE char *name = xprintf("*onehop %s --apply*", (*c)->name);

		for (const struct option *o = (*c)->options; o->name; o++) {
			if (strcmp(o->name, "apply") != 0)
				continue;
			if (!strstr(section, name))
				fail_msg("onehop(1) does not say that %s changes the host", name);
			n++;
		}
	}
	assert_int_equal(n, 2);
}

/* ---- terminals ---- */

static void show_line(void *line)
{
	run_line(line);
}

/* Whether an escape reaches a terminal of that kind. */
static bool escapes(const char *line, const char *term, const char *no_color)
{
	char buf[8192], *copy = xstrdup(line);

	setenv("TERM", term, 1);
	setenv("NO_COLOR", no_color, 1);
	on_terminal(stdout, show_line, copy, buf, sizeof(buf));
	unsetenv("NO_COLOR");
	free(copy);
	assert_true(*buf);
	return strchr(buf, '\033') != NULL;
}

static void dumb_terminals_get_no_escapes(void **state)
{
	static const char *const lines[] = {
		"topo -m --from tests/machines/h200x2",
		"topo -p2p r --from tests/machines/h200x2",
		"check --explain bar1-small",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		assert_true(escapes(lines[i], "xterm", ""));
		assert_false(escapes(lines[i], "dumb", ""));
		assert_false(escapes(lines[i], "xterm", "1"));
	}
	assert_false(escapes("topo -m --color=never --from tests/machines/h200x2", "xterm", ""));
	/* What is asked for outweighs the environment, and auto is the default. */
	assert_true(escapes("check --explain bar1-small --color always", "dumb", "1"));
	assert_false(escapes("check --explain bar1-small --color=auto", "xterm", "1"));
	assert_runs("check --explain bar1-small --color=always", EXIT_OK, "\033[");
	/* Scripts get nvidia-smi's own bytes; it does not ask TERM. */
	setenv("TERM", "dumb", 1);
	assert_runs("topo -m --from tests/machines/h200x2", EXIT_OK, "\t\033[4mGPU0\t");
}

static void no_matrix_without_gpus(void **state)
{
	(void)state;
	assert_refused(
		"topo -m --from tests/machines/guest-nogpu", EXIT_NOT_JUDGED,
		"onehop: no NVIDIA GPU in tests/machines/guest-nogpu, so there is no matrix\n");
	assert_runs("topo --svg - --from tests/machines/guest-nogpu", EXIT_NOT_JUDGED, "<svg");
	/* What lspci's text alone tells is enough for the distances. */
	assert_runs("topo -m --from tests/machines/made-up-hgx-lspci", EXIT_OK, "GPU1\tPIX\t X ");
	assert_runs("topo -p2p r --from tests/machines/made-up-hgx-lspci", EXIT_OK,
		    " GPU0\tX\tU\t");
	assert_refused(
		"topo -p2p w --from tests/machines/guest-nogpu", EXIT_NOT_JUDGED,
		"onehop: no NVIDIA GPU in tests/machines/guest-nogpu, so there is no matrix\n");
}

/* ---- rules ---- */

/* What a command line prints fits the schema; returns how many rules are in it. */
static size_t rules_of(const char *line)
{
	struct result r CLEANUP(result_done) = run_command(line);
	AUTO_STRBUF struct strbuf trouble = {0};
	json_t *json = json_loads(r.out, 0, NULL);
	size_t n = json_array_size(json_object_get(json, "rules"));

	assert_string_equal(r.err, "");
	assert_int_equal(r.code, EXIT_OK);
	assert_non_null(json);
	json_schema_check(json, "rules.schema.json", &trouble);
	assert_string_equal(strbuf_str(&trouble), "");
	json_decref(json);
	return n;
}

static void rules_as_json(void **state)
{
	size_t n = 0;

	(void)state;
	FOR_EACH_RULE (r) {
		AUTO_FREE char *line = xprintf("check --json --explain %s", r->id);

		assert_int_equal(rules_of(line), 1);
		n++;
	}
	assert_int_equal(rules_of("check --list --json"), n);
	assert_runs("check --explain bar1-small --json", EXIT_OK, "\"id\": \"bar1-small\"");
	assert_refused("check --list=scdoc --json", EXIT_REFUSED,
		       "onehop: --list=scdoc prints no JSON; --list --json does\n");
}

/* The README shows what the program prints, between two marks. */
static void readme_shows_real_output(void **state)
{
	struct result r CLEANUP(result_done) = run_command("check --from " EXAMPLE);
	AUTO_FREE char *readme = file_text("README.md");

	(void)state;
	if (!strstr(readme, r.out))
		fail_msg("README.md does not show what onehop check --from " EXAMPLE
			 " prints; run tools/generate");
}

static void assert_options(const struct command *c, const char *names)
{
	for (const char *rest = names; rest && *rest; rest += strspn(rest, " ")) {
		size_t n = strcspn(rest, " ");

		if (!has_option(c, rest, n))
			fail_msg("%s has no option --%.*s", c->name, (int)n, rest);
		rest += n;
	}
}

/* A name that is misspelt in a rule would never be given. */
static void rules_name_options_that_exist(void **state)
{
	size_t n = 0;

	(void)state;
	for (const struct command *const *c = commands; *c; c++) {
		for (const struct option_rule *r = (*c)->rules; r && r->options; r++, n++) {
			assert_options(*c, r->options);
			assert_options(*c, r->not_with);
			assert_options(*c, r->needs);
		}
	}
	assert_true(n > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_of_an_option),
		cmocka_unit_test(optional_value_needs_equals),
		cmocka_unit_test(optional_value_is_taken),
		cmocka_unit_test(lists_repeat),
		cmocka_unit_test(two_dashes_end_options),
		cmocka_unit_test(letter_takes_next_word),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(nearest_is_near),
		cmocka_unit_test(usage_errors_are_one_line),
		cmocka_unit_test(columns_are_a_width),
		cmocka_unit_test(bad_input_is_3),
		cmocka_unit_test(help_and_version),
		cmocka_unit_test(recorded_machine_is_judged),
		cmocka_unit_test(exit_code_follows_threshold),
		cmocka_unit_test(required_pairs_decide),
		cmocka_unit_test(required_pairs_of_some_gpus),
		cmocka_unit_test(ignored_rules_are_left_out),
		cmocka_unit_test(record_round_trip),
		cmocka_unit_test(full_disk_is_no_success),
		cmocka_unit_test(completions_are_up_to_date),
		cmocka_unit_test(completions_list_what_the_tables_hold),
		cmocka_unit_test(manuals_name_every_option),
		cmocka_unit_test(manual_names_every_command),
		cmocka_unit_test(manuals_name_no_other_option),
		cmocka_unit_test(manuals_show_the_usage),
		cmocka_unit_test(manuals_list_exit_codes),
		cmocka_unit_test(documents_name_only_real_options),
		cmocka_unit_test(manual_names_what_changes_the_host),
		cmocka_unit_test(dumb_terminals_get_no_escapes),
		cmocka_unit_test(no_matrix_without_gpus),
		cmocka_unit_test(rules_as_json),
		cmocka_unit_test(readme_shows_real_output),
		cmocka_unit_test(rules_name_options_that_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
