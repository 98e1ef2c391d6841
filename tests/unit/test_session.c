/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/test_session, session/journal: what is refused before anything runs, and what an earlier
 * run left.
 */
#include "session/test_session.h"
#include "base/array.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "judged.h"
#include "recording/recording.h"
#include "session/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct judged judge_recorded(const char *name)
{
	const struct machine_request request = {.parts = MACHINE_TO_JUDGE};
	struct source *s = NULL;
	struct machine *m;
	char path[128];

	snprintf(path, sizeof(path), "tests/machines/%s", name);
	assert_int_equal(recording_open(path, &s), 0);
	m = machine_read(s, &request);
	source_free(s);
	return judge_read(m);
}

/*
 * Where the driver carries an edit that leads a peer astray there, or nobody could see whether it
 * does.
 */
static void compressible_memory_is_refused(void **state)
{
	static const struct {
		const char *machine;
		const char *says; /* NULL: it is not refused */
	} rows[] = {
		{"h200x2", NULL},
		{"rtx4090x8-before", NULL},
		{"made-up-unlock", NULL},
		{"made-up-unlock-managed", "the driver carries an old edit"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct judged j = judge_recorded(rows[i].machine);
		int r = test_check_compressible(j.d);

		if (r != (rows[i].says ? -EPERM : 0))
			fail_msg("%s: %d", rows[i].machine, r);
		if (rows[i].says && !strstr(err_msg(), rows[i].says))
			fail_msg("%s: \"%s\"", rows[i].machine, err_msg());
		judged_done(&j);
	}
}

/* The same where the modules could not be read. */
static void unknown_edits_are_refused(void **state)
{
	struct judged j = judge_recorded("made-up-unlock");

	(void)state;
	j.m->driver.uvm_gate.loaded = (struct fact_int){.state = FACT_UNKNOWN, .from = "not read"};
	diagnosis_free(j.d);
	j.d = diagnose(j.t);
	assert_int_equal(test_check_compressible(j.d), -EPERM);
	assert_non_null(strstr(err_msg(), "is unknown; with one"));
	judged_done(&j);
}

/* ---- faults that nothing would meet ---- */

static void nobody_hears(void *context, enum session_word w, const char *text)
{
	(void)context;
	(void)w;
	(void)text;
}

/* 0, or the error of a session with this choice of simulated devices. */
static int begin(struct test_choice o)
{
	const struct session_ear ear = {NULL, nobody_hears};
	struct test_session s;
	int r;

	o.devices.device = "host:2";
	r = test_session_begin(&s, &o, &ear);
	test_session_done(&s);
	return r;
}

static void invisible_faults_are_refused(void **state)
{
	static const struct {
		const char *fault, *option;
		struct test_choice visible; /* a choice with the option */
	} rows[] = {
		{"hole", "--long", {.long_s = 1}},
		{"lossy", "--atomics", {.atomics = true}},
		{"comptag:0->1", "--compressible", {.compressible = true}},
		{"packed", "--compressible", {.compressible = true}},
		{"host-shift", "--host-memory", {.host_memory = true}},
		{"cached", NULL, {.deadline_s = 1}},
		{"mirror", NULL, {.deadline_s = 1}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct test_choice visible = rows[i].visible;

		visible.inject = rows[i].fault;
		assert_int_equal(begin(visible), 0);
		if (!rows[i].option)
			continue;
		assert_int_equal(begin((struct test_choice){.inject = rows[i].fault}), -EINVAL);
		if (!strstr(err_msg(), rows[i].option))
			fail_msg("%s: \"%s\"", rows[i].fault, err_msg());
	}
}

/* ---- the journal ---- */

static const char *const names[] = {"host0", "host1", "host2"};

static struct test_identity identity_of(const char *boot_id)
{
	return (struct test_identity){.device = "host",
				      .driver = "",
				      .boot_id = boot_id,
				      .names = names,
				      .n = ARRAY_LEN(names),
				      .options = {"--long 100", "--atomics"},
				      .option_n = 2};
}

/* A new one after one that finished, or the present one continued. */
static struct test_journal open_journal(const struct test_identity *i, bool resume)
{
	const struct test_past finished = {.complete = true};
	struct test_journal j;
	char *kept = NULL;

	assert_int_equal(resume ? test_journal_resume(i, &j)
				: test_journal_start(i, &finished, &j, &kept),
			 0);
	assert_null(kept);
	return j;
}

/* host0 -> host1 has passed; the steps were running when the run ended. */
static void leave_journal(const char *boot_id, bool resume, const struct test_step *running,
			  size_t n)
{
	const struct test_identity i = identity_of(boot_id);
	const struct pair_result right = {.state = PAIR_RIGHT};
	struct test_step done = {.phase = TEST_COPIES, .target = 1};
	struct test_journal j = open_journal(&i, resume);

	assert_int_equal(test_journal_begins(&j, &done), 0);
	done.result = &right;
	test_journal_ended(&j, &done);
	for (size_t k = 0; k < n; k++)
		assert_int_equal(test_journal_begins(&j, &running[k]), 0);
	test_journal_close(&j, false);
}

static const struct pair_result *known(const struct test_past *past, size_t a, size_t b)
{
	return &past->known[a * ARRAY_LEN(names) + b];
}

static const struct test_step running[] = {
	{.phase = TEST_PATTERNS, .initiator = 0, .target = 1},
	{.phase = TEST_LOCAL, .initiator = 2, .target = 2},
	{.phase = TEST_ALL_REDUCE, .initiator = -1, .target = -1},
};

/* Whoever kills the program says nothing of what ran. */
static void what_was_killed_runs_again(void **state)
{
	const struct test_identity i = identity_of("this boot");
	AUTO_STRBUF struct strbuf ran = {0};
	struct test_past past;

	(void)state;
	leave_journal("this boot", false, running, ARRAY_LEN(running));
	assert_int_equal(test_past_read(&i, &past), 0);
	assert_true(past.found && !past.complete && !past.restarted && !past.suspect_n);
	assert_int_equal(known(&past, 0, 1)->state, PAIR_RIGHT);
	assert_int_equal(known(&past, 1, 0)->state, PAIR_NOT_RUN);
	assert_int_equal(known(&past, 2, 2)->state, PAIR_NOT_RUN);
	test_past_running(&past, &ran);
	assert_string_equal(strbuf_str(&ran), "host0 -> host1 (patterns), host2 (local), "
					      "all devices (all-reduce)");
	test_past_done(&past);
}

/* Of a run with these devices. */
static void assert_suspects(const struct test_past *past, const struct test_identity *i)
{
	static const size_t suspects[][2] = {{0, 1}, {1, 0}, {2, 2}};
	struct pair_result held[ARRAY_LEN(names) * ARRAY_LEN(names)] = {0};
	AUTO_STRBUF struct strbuf list = {0};
	bool all_reduce = false;

	test_past_hold(past, i, held, &all_reduce, &list);
	for (size_t k = 0; k < ARRAY_LEN(suspects); k++) {
		const struct pair_result *p =
			&held[suspects[k][0] * ARRAY_LEN(names) + suspects[k][1]];

		assert_int_equal(p->state, PAIR_WRONG);
		assert_int_equal(p->kind, WRONG_ENDED);
		assert_non_null(strstr(p->sentence, "the machine stopped during an earlier test"));
	}
	assert_int_equal(held[2].state, PAIR_NOT_RUN);
	assert_true(all_reduce);
}

/*
 * A pattern uses both directions. What ran in a later run does not clear the suspects of an earlier
 * one.
 */
static void what_ran_at_a_restart_is_suspect(void **state)
{
	const struct test_step later = {.phase = TEST_COPIES, .initiator = 0, .target = 2};
	const struct test_identity now = identity_of("this boot"), unknown = identity_of("");
	struct test_past past;

	(void)state;
	leave_journal("an earlier boot", false, running, ARRAY_LEN(running));
	assert_int_equal(test_past_read(&now, &past), 0);
	assert_true(past.restarted);
	assert_suspects(&past, &now);
	test_past_done(&past);
	assert_int_equal(test_past_read(&unknown, &past), 0);
	assert_suspects(&past, &now);
	test_past_done(&past);
	leave_journal("an earlier boot", false, running, ARRAY_LEN(running));
	{
		const struct test_identity i = identity_of("this boot");
		struct test_journal j = open_journal(&i, true);

		assert_int_equal(test_journal_begins(&j, &later), 0);
		test_journal_close(&j, false);
	}
	assert_int_equal(test_past_read(&now, &past), 0);
	assert_false(past.restarted);
	assert_int_equal(past.running_n, 1);
	assert_suspects(&past, &now);
	test_past_done(&past);
}

static size_t hold(const struct test_past *past, const struct test_identity *i)
{
	struct pair_result held[ARRAY_LEN(names) * ARRAY_LEN(names)] = {0};
	AUTO_STRBUF struct strbuf list = {0};
	bool all_reduce = false;
	size_t n = 0;

	test_past_hold(past, i, held, &all_reduce, &list);
	for (size_t k = 0; k < i->n * i->n; k++)
		n += held[k].kind == WRONG_ENDED;
	assert_int_equal(n || all_reduce, list.len > 0);
	return n;
}

/*
 * A run that tests everything holds suspects back and keeps them, until one that includes them has
 * ended the step.
 */
static void suspects_stay_on_record(void **state)
{
	static const struct test_step copies = {.phase = TEST_COPIES, .initiator = 1, .target = 2};
	struct test_identity now = identity_of("this boot"), others = identity_of("this boot");
	struct test_past past;
	struct test_journal j;
	char *kept = NULL;

	(void)state;
	leave_journal("an earlier boot", false, &copies, 1);
	others.n = 2; /* host2 is not in use, and the options differ */
	others.option_n = 0;
	assert_int_equal(test_past_review(&others, &past), 0);
	assert_int_equal(past.suspect_n, 1);
	assert_int_equal(hold(&past, &others), 0);
	assert_int_equal(test_journal_start(&others, &past, &j, &kept), 0);
	assert_non_null(strstr(kept, "test-run-host.previous.jsonl"));
	assert_int_equal(unlink(kept), 0);
	free(kept);
	test_journal_close(&j, true);
	test_past_done(&past);

	assert_int_equal(test_past_review(&now, &past), 0);
	assert_true(past.complete && past.suspect_n == 1);
	assert_int_equal(hold(&past, &now), 1);
	now.include_suspects = true;
	assert_int_equal(hold(&past, &now), 0);
	assert_int_equal(test_journal_start(&now, &past, &j, &kept), 0);
	assert_null(kept);
	test_journal_close(&j, false); /* before the step */
	test_past_done(&past);
	assert_int_equal(test_past_review(&now, &past), 0);
	assert_int_equal(past.suspect_n, 1);
	test_past_done(&past);
	j = open_journal(&now, true);
	assert_int_equal(test_journal_begins(&j, &copies), 0);
	test_journal_ended(&j, &copies);
	test_journal_close(&j, true);
	assert_int_equal(test_past_review(&now, &past), 0);
	assert_int_equal(past.suspect_n, 0);
	test_past_done(&past);
}

static void append(const char *text)
{
	AUTO_FREE char *path = NULL;
	AUTO_FCLOSE FILE *f = NULL;
	const struct test_identity i = identity_of("this boot");

	assert_int_equal(test_state_path(&i, false, ".jsonl", &path), 0);
	f = fopen(path, "ae");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

/*
 * A power cut leaves the last line incomplete, which is safe. Any other bad line may have hidden a
 * suspect.
 */
static void bad_lines_are_noticed(void **state)
{
	const struct test_identity i = identity_of("this boot");
	struct test_past past;
	struct test_journal j;

	(void)state;
	leave_journal("this boot", false, running, 1);
	append("{\"event\":\"be");
	assert_int_equal(test_past_read(&i, &past), 0);
	assert_true(past.torn && !past.damaged_line && past.running_n == 1);
	test_past_done(&past);
	j = open_journal(&i, true);
	test_journal_close(&j, false);
	assert_int_equal(test_past_read(&i, &past), 0);
	assert_true(past.torn && !past.damaged_line);
	test_past_done(&past);

	append("{\"event\":\"begin\",\"phase\":\"no such phase\"}\n");
	append("{\"event\":\"begin\",\"phase\":\"local\",\"initiator\":\"host0\",\"target\":\"host0\"}\n");
	assert_int_equal(test_past_read(&i, &past), -EINVAL);
	assert_non_null(strstr(err_msg(), "test-run-host.jsonl:7: the line cannot be read"));
	assert_int_equal(test_past_review(&i, &past), 0);
	assert_int_equal(past.damaged_line, 7);
	assert_int_equal(past.running_n, 1);
	test_past_done(&past);
}

static void other_options_are_named(void **state)
{
	static const struct {
		const char *options[TEST_OPTIONS_MAX];
		size_t n;
		const char *says; /* NULL: the run can be resumed */
	} rows[] = {
		{{"--atomics", "--long 100"}, 2, NULL},
		{{"--long 60", "--atomics"}, 2, "options: --long 60 instead of --long 100. "},
		{{"--long 100"}, 1, "options: --atomics is missing. "},
		{{"--long 100", "--atomics", "--host-memory"},
		 3,
		 "options: --host-memory is new. "},
		{{"--memory 1G"},
		 1,
		 "options: --memory 1G is new; --long 100 is missing; --atomics is missing. "},
	};
	struct test_identity i = identity_of("this boot");
	struct test_past past;

	(void)state;
	leave_journal("this boot", false, NULL, 0);
	for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
		memcpy(i.options, rows[k].options, sizeof(i.options));
		i.option_n = rows[k].n;
		assert_int_equal(test_past_read(&i, &past), rows[k].says ? -EINVAL : 0);
		if (rows[k].says && !strstr(err_msg(), rows[k].says))
			fail_msg("%s", err_msg());
		test_past_done(&past);
	}
	i = identity_of("this boot");
	i.n = 2;
	assert_int_equal(test_past_read(&i, &past), -EINVAL);
	assert_non_null(strstr(err_msg(), "other devices: host0, host1, host2. "));
	i = identity_of("this boot");
	i.driver = "580.95.05";
	assert_int_equal(test_past_read(&i, &past), -EINVAL);
	assert_non_null(strstr(err_msg(), "this one uses 580.95.05"));
}

static char state_home[] = "/tmp/onehop-session-XXXXXX";

static int make_home(void **state)
{
	(void)state;
	return mkdtemp(state_home) && setenv("XDG_STATE_HOME", state_home, 1) == 0 ? 0 : -1;
}

static int remove_home(void **state)
{
	AUTO_STRBUF struct strbuf path = {0};

	(void)state;
	strbuf_printf(&path, "%s/onehop/test-run-host.jsonl", state_home);
	if (unlink(strbuf_str(&path)) < 0)
		return -1;
	*strrchr(path.text, '/') = '\0';
	return rmdir(path.text) == 0 && rmdir(state_home) == 0 ? 0 : -1;
}

/* ---- how far a run is ---- */

static void assert_pace(double total, double left, double elapsed_s, const char *text)
{
	const struct session_pace p = {0, total, left};
	AUTO_STRBUF struct strbuf b = {0};

	session_pace_text(&p, elapsed_s, &b);
	assert_string_equal(strbuf_str(&b), text);
}

static void progress_has_percent_and_time_left(void **state)
{
	(void)state;
	assert_pace(0, 0, 5, "");
	assert_pace(8, 8, 5, ": 0 %"); /* nothing is done, so nothing tells how fast */
	assert_pace(8, 6, 0.5, ": 25 %");
	assert_pace(8, 6, 4, ": 25 %, about 12 s left");
	assert_pace(8, 1, 0.7 + 0.7 * 9, ": 87 %, about 1 s left");
	assert_pace(100, 50, 240, ": 50 %, about 4 min left");
	assert_pace(100, 50, 7200, ": 50 %, about 2 h left");
	assert_pace(100, 0, 7200, ": 100 %");
}

static void keep_text(void *context, enum session_word w, const char *text)
{
	assert_int_equal(w, SESSION_RUNS);
	snprintf(context, 64, "%s", text);
}

/* The work that is left shrinks; where it grows, the next part of the run has begun. */
static void another_part_starts_at_nothing(void **state)
{
	char text[64];
	const struct session_ear ear = {text, keep_text};
	struct session_pace pace = {0};

	(void)state;
	session_tell_left(&ear, &pace, 4, "pair %d", 1);
	assert_string_equal(text, "pair 1: 0 %");
	session_tell_left(&ear, &pace, 1, "pair %d", 4);
	assert_memory_equal(text, "pair 4: 75 %", strlen("pair 4: 75 %"));
	session_tell_left(&ear, &pace, 2, "all");
	assert_string_equal(text, "all: 0 %");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_has_percent_and_time_left),
		cmocka_unit_test(another_part_starts_at_nothing),
		cmocka_unit_test(compressible_memory_is_refused),
		cmocka_unit_test(unknown_edits_are_refused),
		cmocka_unit_test(invisible_faults_are_refused),
		cmocka_unit_test(what_was_killed_runs_again),
		cmocka_unit_test(what_ran_at_a_restart_is_suspect),
		cmocka_unit_test(suspects_stay_on_record),
		cmocka_unit_test(bad_lines_are_noticed),
		cmocka_unit_test(other_options_are_named),
	};

	return cmocka_run_group_tests(tests, make_home, remove_home);
}
