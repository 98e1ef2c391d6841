/* SPDX-License-Identifier: Apache-2.0 */
/* bench/: every fault between two devices is caught, named, and laid to the pair that has it. */
#include "base/array.h"
#include "base/err.h"
#include "base/rate.h"
#include "base/strbuf.h"
#include "bench/pattern.h"
#include "bench/test_figures.h"
#include "fake_device.h"
#include "json_schema.h"
#include "kernels/pattern.h"
#include "report/report_test.h"
#include "result/figures_json.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 3
#define MEMORY  (2ul << 20)

/* Until something that should end is given up. */
#define LIMIT_US 60000000
/* The pair hangs, or its flags get lost and all devices' sum waits for them. */
#define FAULT_LIMIT_US 5000000

/* ---- classify: counts of the check kernel into a kind ---- */

#define WORDS 1000

static struct range_check right(void)
{
	struct range_check c = {.words = {WORDS, WORDS, WORDS},
				.data_tag = pattern_tag_make(2, 1, 5, 0)};

	for (size_t i = 0; i < PART_N; i++)
		c.reports[i].first_wrong = CHECK_NONE;
	return c;
}

static struct range_check wrong_words(u64 n, u64 first)
{
	struct range_check c = right();

	c.reports[PART_RANGE].wrong = n;
	c.reports[PART_RANGE].first_wrong = first;
	c.reports[PART_RANGE].last_wrong = first + n - 1;
	return c;
}

static void test_kinds(void **state)
{
	struct range_check c = right();

	(void)state;
	assert_int_equal(classify(&c).kind, WRONG_NOTHING);
	c = wrong_words(WORDS, 0);
	c.reports[PART_RANGE].zero = WORDS;
	assert_int_equal(classify(&c).kind, WRONG_ZEROS);
	c = wrong_words(WORDS, 0);
	c.reports[PART_RANGE].other = WORDS;
	assert_int_equal(classify(&c).kind, WRONG_GARBAGE);
	c = wrong_words(WORDS, 0);
	c.reports[PART_RANGE].foreign = WORDS;
	assert_int_equal(classify(&c).kind, WRONG_FOREIGN);
	c = wrong_words(WORDS, 0);
	c.reports[PART_RANGE].old = c.reports[PART_RANGE].poison = WORDS;
	assert_int_equal(classify(&c).kind, WRONG_LOST);
}

static void test_old_data_tell_their_round(void **state)
{
	struct range_check c = wrong_words(WORDS, 0);

	(void)state;
	c.reports[PART_RANGE].old = WORDS;
	c.reports[PART_RANGE].any_old_tag = pattern_tag_make(2, 1, 3, 0);
	assert_int_equal(classify(&c).kind, WRONG_OLD);
	assert_int_equal(classify(&c).rounds_ago, 2);
}

static void test_shift_has_its_sign(void **state)
{
	struct range_check c = wrong_words(WORDS, 0);

	(void)state;
	c.reports[PART_RANGE].displaced = WORDS;
	c.reports[PART_RANGE].any_shift = -512; /* words that belong 512 further back are here */
	assert_int_equal(classify(&c).kind, WRONG_SHIFTED);
	assert_int_equal(classify(&c).shift_bytes, 4096);
}

/* A short transfer that landed behind its range, or before it. */
static void test_found_beside(void **state)
{
	struct range_check c = wrong_words(WORDS, 0);

	(void)state;
	c.reports[PART_RANGE].old = c.reports[PART_RANGE].poison = WORDS;
	c.reports[PART_BEHIND].wrong = WORDS;
	c.reports[PART_BEHIND].first_wrong = 24;
	c.reports[PART_BEHIND].any_old_tag = c.data_tag;
	assert_int_equal(classify(&c).kind, WRONG_SHIFTED);
	assert_int_equal(classify(&c).shift_bytes, (WORDS + 24) * 8);
	c.reports[PART_BEFORE] = c.reports[PART_BEHIND];
	c.reports[PART_BEFORE].first_wrong = 0;
	assert_int_equal(classify(&c).shift_bytes, -WORDS * 8);
}

static void test_partial_from_where(void **state)
{
	struct range_check c = wrong_words(100, 900);

	(void)state;
	c.reports[PART_RANGE].old = c.reports[PART_RANGE].poison = 100;
	assert_int_equal(classify(&c).kind, WRONG_PARTIAL);
	assert_int_equal(classify(&c).from_bytes, 7200);
	c = wrong_words(100, 900);
	c.reports[PART_RANGE].zero = 100;
	assert_int_equal(classify(&c).kind, WRONG_PARTIAL);
}

static void test_outside(void **state)
{
	struct range_check c = right();

	(void)state;
	c.reports[PART_BEHIND].wrong = 3;
	c.reports[PART_BEHIND].first_wrong = 0;
	assert_int_equal(classify(&c).kind, WRONG_OUTSIDE);
	assert_int_equal(classify(&c).wrong_words, 3);
}

static void test_words_both_ways(void **state)
{
	(void)state;
	for (int k = 0; k < WRONG_N; k++)
		assert_int_equal(wrong_parse(wrong_word((enum wrong_kind)k)), k);
	assert_int_equal(wrong_parse("no such kind"), WRONG_N);
}

/* ---- whole runs on the host back end, in this process ---- */

static int open_here(void *context, const struct device_request *one, struct device_set **ret)
{
	(void)context;
	return device_open(one, ret);
}

static struct test_request *request_of(struct fault fault)
{
	struct test_request *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->open = open_here;
	q->limit_us = fault.kind == FAULT_NONE ? LIMIT_US : FAULT_LIMIT_US;
	q->devices.kind = DEVICE_HOST;
	q->devices.n = DEVICES;
	q->devices.host.memory_bytes = MEMORY;
	q->devices.host.fault = fault;
	for (int i = 0; i < DEVICES; i++) {
		q->devices.number[i] = i;
		for (int j = 0; j < DEVICES; j++)
			q->devices.host.link_gbps[i][j] = 2;
	}
	return q;
}

static const struct test_hooks no_hooks;

static void run(struct test_request *q, struct test_result *ret)
{
	if (test_run(q, &no_hooks, ret) < 0)
		fail_msg("test_run: %s", err_msg());
	free(q);
}

static void test_healthy(void **state)
{
	struct test_result r;

	(void)state;
	run(request_of((struct fault){FAULT_NONE, -1, -1}), &r);
	for (size_t i = 0; i < DEVICES * DEVICES; i++) {
		const struct pair_result *p = &r.pairs[i];

		if (i / DEVICES == i % DEVICES)
			continue;
		if (p->state != PAIR_RIGHT)
			fail_msg("pair %zu: %s: %s", i, wrong_word(p->kind), p->sentence);
		for (int w = 0; w < WAY_N; w++)
			assert_true(p->ways[w].done && p->ways[w].checks >= 10);
		assert_true(p->round_trip.n > 0 && p->copy_gbps > 0);
	}
	for (size_t i = 0; i < DEVICES; i++)
		assert_int_equal(r.devices[i].local.state, PAIR_RIGHT);
	for (int a = 0; a < ARM_N; a++)
		assert_int_equal(r.arms[a].state, PAIR_RIGHT);
	test_result_done(&r);
}

/* clang-format off */
static const struct {
	enum fault_kind fault;
	enum wrong_kind kind;
	const char *says;
	/* over all devices: not run where it would wait for flags that are lost */
	enum pair_state sum;
} faults[] = {
	{FAULT_MIRROR,   WRONG_MIRROR,  "the writer reads it back", PAIR_NOT_RUN},
	{FAULT_DISPLACE, WRONG_SHIFTED, "+4096 bytes",              PAIR_NOT_RUN},
	{FAULT_STALE,    WRONG_OLD,     "old data",                 PAIR_NOT_RUN},
	{FAULT_TORN,     WRONG_PARTIAL, "then not written",         PAIR_WRONG},
	{FAULT_LOST,     WRONG_LOST,    "nothing arrived",          PAIR_NOT_RUN},
	{FAULT_HANG,     WRONG_HANG,    "did not finish",           PAIR_NOT_RUN},
	{FAULT_REFUSE,   WRONG_REFUSED, "refused",                  PAIR_NOT_RUN},
	{FAULT_SLOW,     WRONG_SLOW,    "GB/s",                     PAIR_RIGHT},
};
/* clang-format on */

/*
 * Exactly the injected pair. The way back is incomplete, because patterns need both directions. The
 * control arm shows that the devices are well.
 */
static void assert_caught(const struct test_result *r, size_t a, size_t b, enum wrong_kind kind,
			  const char *says, enum pair_state sum)
{
	for (size_t i = 0; i < DEVICES * DEVICES; i++) {
		const struct pair_result *p = &r->pairs[i];
		bool injected = i == a * DEVICES + b, back = i == b * DEVICES + a;

		if (i / DEVICES == i % DEVICES)
			continue;
		if (p->kind != (injected ? kind : WRONG_NOTHING))
			fail_msg("%zu->%zu is '%s' (%s), injected '%s' into %zu->%zu", i / DEVICES,
				 i % DEVICES, wrong_word(p->kind), p->sentence, wrong_word(kind), a,
				 b);
		assert_int_equal(p->state, injected ? PAIR_WRONG
					   : back   ? PAIR_INCOMPLETE
						    : PAIR_RIGHT);
		if (back)
			assert_non_null(strstr(p->sentence, "the opposite direction fails"));
		if (injected && !strstr(p->sentence, says))
			fail_msg("\"%s\" does not say \"%s\"", p->sentence, says);
	}
	assert_int_equal(r->arms[ARM_STAGED].state, PAIR_RIGHT);
	assert_int_equal(r->arms[ARM_P2P].state, sum);
	if (sum == PAIR_NOT_RUN)
		assert_non_null(strstr(r->arms[ARM_P2P].sentence, wrong_word(kind)));
}

static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct test_result r;

		run(request_of((struct fault){faults[i].fault, 1, 2}), &r);
		assert_caught(&r, 1, 2, faults[i].kind, faults[i].says, faults[i].sum);
		test_result_done(&r);
	}
}

/*
 * Every pair at a fifth of what its path should give: compared with each other they are well.
 * (`check` calls that slow too: test_observe.c.)
 */
static void test_all_equally_slow(void **state)
{
	struct test_request *q = request_of((struct fault){FAULT_NONE, -1, -1});
	struct test_result r;
	struct paths *paths;

	(void)state;
	q->devices.n = 2;
	q->devices.host.memory_bytes = 5 * RATE_MIN_BYTES;
	q->memory_bytes = 4 * RATE_MIN_BYTES; /* a quarter is copied */
	q->all_reduce_suspect = true;
	assert_int_equal(paths_new(2, &paths), 0);
	for (unsigned i = 0; i < 2; i++)
		for (unsigned j = 0; j < 2; j++)
			if (i != j) {
				q->devices.host.link_gbps[i][j] = 0.5f;
				paths_pair(paths, i, j)->expected_gbps = 2.5;
			}
	q->paths = paths;
	run(q, &r);
	for (size_t i = 0; i < 2; i++) {
		const struct pair_result *p = test_pair(&r, i, !i);

		if (p->kind != WRONG_SLOW)
			fail_msg("%s, %.3g GB/s: %s", wrong_word(p->kind), p->copy_gbps,
				 p->sentence);
		assert_non_null(strstr(p->sentence, "where the path should give 2.5 GB/s"));
	}
	test_result_done(&r);
	paths_free(paths);
}

/* ---- calls that are bent on their way ---- */

/* A test has one of it at a time. */
static struct {
	const struct device_ops *inner;
	struct device_ops ops;
	uint64_t copied;
	int accesses; /* that are granted */
} bent;

static struct device_ops *bend(struct device_set *s)
{
	memset(&bent, 0, sizeof(bent));
	bent.inner = s->ops;
	bent.ops = *s->ops;
	s->ops = &bent.ops;
	return &bent.ops;
}

static int note_copy(struct device_set *s, struct stream stream, const struct memory *target,
		     uint64_t target_offset, const struct memory *origin, uint64_t origin_offset,
		     uint64_t bytes)
{
	bent.copied = bytes;
	return bent.inner->copy(s, stream, target, target_offset, origin, origin_offset, bytes);
}

static int a_millisecond(struct device_set *s, struct event from, struct event to, double *ret_us)
{
	int r = bent.inner->event_elapsed(s, from, to, ret_us);

	*ret_us = 1000;
	return r;
}

static int few_accesses(struct device_set *s, int initiator, int target, bool on)
{
	if (on && bent.accesses-- <= 0)
		return err_set(EACCES, "device %d has too many peers", initiator);
	return bent.inner->peer_access(s, initiator, target, on);
}

static struct device_set *open_two(struct bench_device *devices, uint64_t one, uint64_t other)
{
	struct test_request *q = request_of((struct fault){FAULT_NONE, -1, -1});
	struct device_set *set;

	assert_int_equal(device_open(&q->devices, &set), 0);
	assert_int_equal(bench_device_open(set, 0, one, 2000000, &devices[0]), 0);
	assert_int_equal(bench_device_open(set, 1, other, 2000000, &devices[1]), 0);
	free(q);
	return set;
}

static void close_two(struct device_set *set, struct bench_device *devices)
{
	set->ops = bent.inner;
	bench_device_close(&devices[0]);
	bench_device_close(&devices[1]);
	device_close(set);
}

/* Whichever of the two has less memory: the rate is that of what was copied. */
static void test_rate_of_unlike_devices(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct pair_result p = {0};
		struct bench_device devices[2];
		struct device_set *set = open_two(devices, MEMORY, MEMORY / 2);
		struct device_ops *ops = bend(set);

		ops->copy = note_copy;
		ops->event_elapsed = a_millisecond;
		verify_rate(&devices[i], &devices[!i], &p);
		assert_true(bent.copied > 0);
		assert_true(p.copy_gbps == (double)bent.copied / 1000 / 1e3);
		close_two(set, devices);
	}
}

/* Pairs are right one by one, and all of them at once are more than the driver allows. */
static void test_too_many_peers(void **state)
{
	struct bench_device devices[2];
	struct device_set *set = open_two(devices, MEMORY, MEMORY);
	const struct bench_device *both[] = {&devices[0], &devices[1]};
	struct arm_result a;

	(void)state;
	bend(set)->peer_access = few_accesses;
	bent.accesses = 1;
	all_reduce_check(both, 2, ARM_P2P, 0, &a);
	assert_int_equal(a.state, PAIR_NOT_TESTED);
	assert_int_equal(a.kind, WRONG_NOTHING);
	assert_non_null(strstr(a.sentence, "not run: "));
	assert_non_null(strstr(a.sentence, "too many peers"));
	close_two(set, devices);
}

/* Both devices in one set: peer access instead of import. */
static void test_one_set(void **state)
{
	for (int faulty = 0; faulty < 2; faulty++) {
		struct test_request *q =
			request_of((struct fault){faulty ? FAULT_DISPLACE : FAULT_NONE, 0, 1});
		struct bench_device devices[2];
		struct pair_result there, back;
		struct device_set *set;

		(void)state;
		assert_int_equal(device_open(&q->devices, &set), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(bench_device_open(set, i, 0, 2000000, &devices[i]), 0);
		verify_pair(&devices[0], &devices[1], &there);
		verify_pair(&devices[1], &devices[0], &back);
		assert_int_equal(there.kind, faulty ? WRONG_SHIFTED : WRONG_NOTHING);
		assert_int_equal(back.kind, WRONG_NOTHING);
		for (int i = 0; i < 2; i++)
			bench_device_close(&devices[i]);
		device_close(set);
		free(q);
	}
}

/* ---- JSON ---- */

static void assert_schema(const struct test_report *r)
{
	json_t *json = report_test_json(r);
	AUTO_STRBUF struct strbuf trouble = {0};

	json_schema_check(json, "test.schema.json", &trouble);
	assert_string_equal(strbuf_str(&trouble), "");
	json_decref(json);
}

/* What a test found stands in its result as well, and is the same when it was read from there. */
static void assert_kept(const struct figures *f)
{
	json_t *json = figures_to_json(f);
	const struct figure *wrong, *row;
	struct figures *again;

	assert_int_equal(figures_from_json(json, "again", &again), 0);
	assert_int_equal(again->row_n, f->row_n);
	wrong = figures_find(again, METRIC_PAIR_VERIFIED, 1, 2, 0);
	assert_true(figure_is_failure(wrong));
	assert_string_equal(wrong->kind, "partial");
	for (int i = 0; i < DEVICES; i++) {
		assert_false(figure_is_failure(figures_find(again, METRIC_GPU_VERIFIED, i, i, 0)));
		assert_null(again->gpus[i].pci);
	}
	assert_null(figures_find(again, METRIC_PAIR_VERIFIED, 2, 1, 0)); /* incomplete */
	assert_null(figures_find(again, METRIC_PAIR_RATE, 2, 1, 0));
	row = figures_find(again, METRIC_PAIR_VERIFIED, 2, 0, 0);
	assert_false(figure_is_failure(row));
	assert_string_equal(row->kind, "");
	row = figures_find(again, METRIC_ROUND_TRIP_SINGLE, 0, 1, 0);
	assert_true(row->median > 0 && row->samples > 1);
	json_decref(json);
	figures_free(again);
}

static void test_json(void **state)
{
	static const char *const names[DEVICES] = {"host0", "host1", "host2"};
	static const struct device_skip skip = {"GPU7 0000:41:00.0", "in use by 2 processes"};
	static const struct test_log_line line = {1, 2, "NVRM: Xid (PCI:0000:41:00): 31"};
	struct test_report report = {.device = "host", .names = names};
	struct test_request *q = request_of((struct fault){FAULT_TORN, 1, 2});
	struct test_result r;
	struct figures *f;
	char sentence[128];

	(void)state;
	assert_schema(&report);
	report.result = &r;
	report.inject = "torn:1->2";
	report.skips = &skip;
	report.log = &line;
	report.skip_n = report.log_n = 1;
	q->informs = pattern_bits(PATTERN_INFORMATION);
	run(q, &r);
	report.figures = f = test_figures(&r, names, NULL);
	assert_schema(&report);
	assert_string_equal(report_test_verdict(&report, sentence, sizeof(sentence)),
			    "1 of 6 ordered pairs fails (host1 -> host2), 1 incomplete.");
	assert_kept(f);
	figures_free(f);
	test_result_done(&r);
}

/*
 * A peer's access to compressible memory that goes astray leaves the pair as it is, but is not
 * passed over.
 */
static void test_danger(void **state)
{
	static const char *const names[DEVICES] = {"host0", "host1", "host2"};
	struct test_result r = {.n = DEVICES};
	const struct test_report report = {.device = "host", .names = names, .result = &r};
	char *danger;

	(void)state;
	r.pairs = calloc(DEVICES * DEVICES, sizeof(*r.pairs));
	r.devices = calloc(DEVICES, sizeof(*r.devices));
	assert_true(r.pairs && r.devices);
	assert_null(report_test_danger(&report));
	test_pair(&r, 0, 1)->patterns[PATTERN_COMPRESSIBLE].kind =
		WRONG_FAULT; /* stopped by the GPU */
	test_pair(&r, 1, 0)->patterns[PATTERN_ATOMICS].kind = WRONG_LOST;
	assert_null(report_test_danger(&report));
	test_pair(&r, 2, 1)->patterns[PATTERN_COMPRESSIBLE].kind = WRONG_ZEROS;
	danger = report_test_danger(&report);
	assert_non_null(strstr(danger, "DANGER"));
	assert_non_null(strstr(danger, "1 of 6 ordered pairs"));
	assert_non_null(strstr(danger, "Pairs: host2 -> host1."));
	assert_schema(&report);
	free(danger);
	test_result_done(&r);
}

/* ---- hooks ---- */

struct seen {
	unsigned begun, ended;
	bool refuse, stop;
	enum test_phase refuse_from;
};

static int begins(void *context, const struct test_step *step)
{
	struct seen *s = context;

	s->begun++;
	return s->refuse && step->phase >= s->refuse_from ? err_set(ENOSPC, "the disk is full") : 0;
}

static void ended(void *context, const struct test_step *step)
{
	(void)step;
	((struct seen *)context)->ended++;
}

/* Three steps are devices' own memory, so at least two pairs are copied. */
static bool stopped(void *context)
{
	const struct seen *s = context;

	return s->stop && s->begun >= 5;
}

/* What cannot be put on disk is not run: nobody could tell afterwards what it did. */
static void test_no_journal_no_run(void **state)
{
	struct seen seen = {.refuse = true};
	const struct test_hooks hooks = {&seen, begins, ended, NULL};
	struct test_request *q = request_of((struct fault){FAULT_NONE, -1, -1});
	struct test_result r;

	(void)state;
	assert_int_equal(test_run(q, &hooks, &r), 0);
	assert_int_equal(seen.ended, 0);
	assert_int_equal(r.pairs[1].state, PAIR_NOT_TESTED);
	assert_string_equal(r.pairs[1].sentence, "the disk is full");
	test_result_done(&r);
	free(q);
}

/* Pairs whose copies were right before the disk was full are incomplete, and so is the run. */
static void test_no_journal_later(void **state)
{
	static const enum test_phase phases[] = {TEST_ROUND_TRIP, TEST_PATTERNS, TEST_ALL_REDUCE};

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(phases); k++) {
		struct seen seen = {.refuse = true, .refuse_from = phases[k]};
		const struct test_hooks hooks = {&seen, begins, ended, NULL};
		struct test_request *q = request_of((struct fault){FAULT_NONE, -1, -1});
		struct test_counts c;
		struct test_result r;

		assert_int_equal(test_run(q, &hooks, &r), 0);
		test_count(&r, &c);
		assert_int_equal(c.wrong + c.not_tested + c.arms_wrong, 0);
		assert_int_equal(c.incomplete, phases[k] == TEST_ALL_REDUCE ? 0 : c.pairs);
		assert_int_equal(c.arms_incomplete, ARM_N);
		assert_int_equal(r.pairs[1].round_trip.n > 0, phases[k] != TEST_ROUND_TRIP);
		test_result_done(&r);
		free(q);
	}
}

static void test_stop(void **state)
{
	static const char *const names[DEVICES] = {"host0", "host1", "host2"};
	struct seen seen = {.stop = true};
	const struct test_hooks hooks = {&seen, begins, ended, stopped};
	struct test_request *q = request_of((struct fault){FAULT_NONE, -1, -1});
	struct test_result r;
	const struct test_report report = {.device = "host", .names = names, .result = &r};
	struct test_counts c;
	struct figures *f;
	char sentence[128];

	(void)state;
	assert_int_equal(test_run(q, &hooks, &r), 0);
	assert_true(r.stopped);
	assert_int_equal(seen.begun, seen.ended);
	assert_true(seen.begun < 12);
	test_count(&r, &c);
	assert_int_equal(c.right, 0); /* no pattern ran */
	assert_true(c.incomplete > 0 && c.not_tested > 0);
	assert_int_equal(c.incomplete + c.not_tested, c.pairs);
	f = test_figures(&r, names, NULL);
	for (size_t i = 0; i < f->row_n; i++)
		assert_string_not_equal(f->rows[i].what, METRIC_PAIR_VERIFIED);
	assert_schema(&report);
	assert_non_null(strstr(report_test_verdict(&report, sentence, sizeof(sentence)),
			       "0 of 6 ordered pairs correct, "));
	figures_free(f);
	test_result_done(&r);
	free(q);
}

static void test_known_pairs_are_kept(void **state)
{
	struct pair_result known[DEVICES * DEVICES] = {
		[1] = {.state = PAIR_WRONG, .kind = WRONG_ENDED}};
	struct test_request *q = request_of((struct fault){FAULT_NONE, -1, -1});
	struct test_result r;

	(void)state;
	q->known = known;
	run(q, &r);
	assert_int_equal(r.pairs[1].kind, WRONG_ENDED);
	assert_int_equal(test_pair(&r, 1, 0)->state, PAIR_INCOMPLETE);
	assert_int_equal(r.pairs[1].ways[0].checks, 0);
	assert_int_equal(r.pairs[2].state, PAIR_RIGHT);
	test_result_done(&r);
}

/* ---- every call fails once ---- */

static int open_fake(void *context, const struct device_request *one, struct device_set **ret)
{
	struct device_set *inner;
	int r = device_open(one, &inner);

	/* Only the first opening of device 1: what is started again is whole. */
	if (r < 0 || one->number[0] != 1 || !((struct fake_plan *)context)->nth) {
		if (r == 0)
			*ret = inner;
		return r;
	}
	return fake_open(inner, context, ret);
}

/* Failed calls leave a sentence, no leak and no crash; the pair of the other two is tested. */
static void fail_at(unsigned nth, const char *op, int error)
{
	struct fake_plan plan = {.op = op, .nth = nth, .error = error};
	struct test_request *q = request_of((struct fault){FAULT_NONE, -1, -1});
	struct test_result r;

	q->open = open_fake;
	q->open_context = &plan;
	q->limit_us = FAULT_LIMIT_US; /* a kernel whose other was not launched waits for it */
	run(q, &r);
	assert_int_equal(test_pair(&r, 0, 2)->state, PAIR_RIGHT);
	for (size_t i = 0; i < DEVICES * DEVICES; i++)
		if (r.pairs[i].state == PAIR_WRONG || r.pairs[i].state == PAIR_NOT_TESTED)
			assert_true(*r.pairs[i].sentence);
	test_result_done(&r);
}

static void test_call_n_fails(void **state)
{
	static const int errors[] = {-EIO, -ENOMEM, -ESRCH, -EACCES, -ENOTSUP};

	(void)state;
	for (unsigned n = 1; n < 36; n++)
		fail_at(n, NULL, errors[n % 5]);
	for (unsigned n = 36; n < 4000; n += 397)
		fail_at(n, NULL, errors[n % 5]);
}

static void test_each_op_fails(void **state)
{
	static const char *const ops[] = {"alloc", "export", "import", "copy",         "launch",
					  "wait",  "read",   "write",  "event_elapsed"};

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		for (unsigned n = 1; n < 3; n++)
			fail_at(n, ops[i], -EIO);
}

/* Somebody else took the memory. */
static void test_out_of_memory(void **state)
{
	struct fake_plan plan = {.op = "alloc", .nth = 3, .error = -ENOMEM, .lasting = true};
	struct test_request *q = request_of((struct fault){FAULT_NONE, -1, -1});
	struct test_result r;

	(void)state;
	q->open = open_fake;
	q->open_context = &plan;
	run(q, &r);
	assert_true(*r.devices[1].sentence);
	assert_int_equal(test_pair(&r, 0, 1)->state, PAIR_NOT_TESTED);
	assert_int_equal(test_pair(&r, 0, 2)->state, PAIR_RIGHT);
	test_result_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_old_data_tell_their_round),
		cmocka_unit_test(test_shift_has_its_sign),
		cmocka_unit_test(test_found_beside),
		cmocka_unit_test(test_partial_from_where),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_words_both_ways),
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_all_equally_slow),
		cmocka_unit_test(test_one_set),
		cmocka_unit_test(test_rate_of_unlike_devices),
		cmocka_unit_test(test_too_many_peers),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_danger),
		cmocka_unit_test(test_no_journal_no_run),
		cmocka_unit_test(test_no_journal_later),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_known_pairs_are_kept),
		cmocka_unit_test(test_call_n_fails),
		cmocka_unit_test(test_each_op_fails),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
