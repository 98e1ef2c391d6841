/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/pattern*: each fault that copies do not meet is found by one pattern alone, in one
 * direction.
 */
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "bench/pattern.h"
#include "bench/test_run.h"
#include "ingest/text.h"

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICES  3
#define MEMORY   (4ul << 20)
#define LIMIT_US 60000000 /* nothing here hangs */

static struct device_request *request_of(size_t n, struct fault fault)
{
	struct device_request *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	*q = (struct device_request){.kind = DEVICE_HOST,
				     .n = n,
				     .host.memory_bytes = MEMORY,
				     .host.fault = fault};
	for (size_t i = 0; i < n; i++) {
		q->number[i] = (int)i;
		for (size_t j = 0; j < n; j++)
			q->host.link_gbps[i][j] = 2;
	}
	return q;
}

/* ---- one pattern at a time ---- */

/* Each device in a set of its own, as `onehop test` has them. */
struct devices {
	struct bench_device devices[DEVICES];
	struct memory_export third;
	struct pair_result results[2];
	struct pattern_pair pair;
};

static void open_devices(struct devices *d, struct fault fault)
{
	struct device_request *q = request_of(DEVICES, fault);

	memset(d, 0, sizeof(*d));
	q->n = 1;
	for (int i = 0; i < DEVICES; i++) {
		struct device_set *set;

		q->number[0] = i;
		assert_int_equal(device_open(q, &set), 0);
		assert_int_equal(bench_device_open(set, 0, 0, LIMIT_US, &d->devices[i]), 0);
	}
	free(q);
	assert_int_equal(d->devices[2].set->ops->export(d->devices[2].set,
							&d->devices[2].flags.memory, EXPORT_FD,
							&d->third),
			 0);
	d->results[0].state = d->results[1].state = PAIR_RIGHT;
	d->pair = (struct pattern_pair){.ends = {&d->devices[0], &d->devices[1]},
					.results = {&d->results[0], &d->results[1]},
					.third = &d->third,
					.third_at = 4096};
}

static void close_devices(struct devices *d)
{
	close(d->third.fd);
	for (int i = 0; i < DEVICES; i++) {
		struct device_set *set = d->devices[i].set;

		bench_device_close(&d->devices[i]);
		device_close(set);
	}
}

static void run_row(struct devices *d, enum pattern k)
{
	for (unsigned from = 0; from < (pattern_rows[k].one_way ? 2 : 1); from++)
		if (pattern_rows[k].run(&d->pair, from) < 0)
			fail_msg("%s: %s", pattern_rows[k].name, err_msg());
}

/* clang-format off */
static const struct {
	enum fault_kind fault;
	unsigned found_by; /* BIT(pattern) */
	enum wrong_kind kind;
} flaws[] = {
	{FAULT_NONE,       0,                                                         WRONG_NOTHING},
	{FAULT_CACHED,     PATTERN_BIT(PATTERN_PULL) | PATTERN_BIT(PATTERN_SUSTAINED), WRONG_OLD},
	{FAULT_REPLAY,     PATTERN_BIT(PATTERN_GRAPH),                                 WRONG_SHIFTED},
	{FAULT_OVERTAKE,   PATTERN_BIT(PATTERN_FLAGS),                                 WRONG_OLD},
	{FAULT_LATE,       PATTERN_BIT(PATTERN_FLAGS),                                 WRONG_OLD},
	{FAULT_REREAD,     PATTERN_BIT(PATTERN_REREAD),                                WRONG_OLD},
	{FAULT_REMAP,      PATTERN_BIT(PATTERN_REMAP),                                 WRONG_OLD},
	{FAULT_HOST_SHIFT, PATTERN_BIT(PATTERN_HOST_MEMORY),                           WRONG_SHIFTED},
	{FAULT_COMPTAG,    PATTERN_BIT(PATTERN_COMPRESSIBLE),                          WRONG_ZEROS},
	{FAULT_PACKED,     PATTERN_BIT(PATTERN_COMPRESSIBLE),                          WRONG_GARBAGE},
	{FAULT_LOSSY,      PATTERN_BIT(PATTERN_ATOMICS),                               WRONG_LOST},
};
/* clang-format on */

/* What is for information only leaves the pair right. */
static void assert_found(const struct devices *d, enum pattern k, size_t flaw)
{
	bool found = flaws[flaw].found_by & PATTERN_BIT(k);
	bool fails = found && pattern_rows[k].when != PATTERN_INFORMATION;
	enum wrong_kind kind = found ? flaws[flaw].kind : WRONG_NOTHING;
	const struct pair_result *there = &d->results[0], *back = &d->results[1];

	if (there->patterns[k].kind != kind)
		fail_msg("%s, fault %s: %s (%s)", pattern_rows[k].name,
			 fault_word(flaws[flaw].fault), wrong_word(there->patterns[k].kind),
			 there->sentence);
	if (back->kind != WRONG_NOTHING || back->patterns[k].kind != WRONG_NOTHING)
		fail_msg("%s, fault %s, the other way: %s (%s)", pattern_rows[k].name,
			 fault_word(flaws[flaw].fault), wrong_word(back->kind), back->sentence);
	assert_int_equal(there->state, fails ? PAIR_WRONG : PAIR_RIGHT);
	assert_int_equal(there->kind, fails ? kind : WRONG_NOTHING);
	assert_int_equal(there->pattern, fails ? k : PATTERN_NONE);
	assert_true(there->patterns[k].rounds > 0 && back->patterns[k].rounds > 0);
	if (fails)
		assert_non_null(strstr(there->sentence, pattern_rows[k].title));
}

/* Whoever injects a fault relies on it: the first that finds it. */
static void test_finders(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(flaws); f++) {
		enum pattern finder = pattern_finding(flaws[f].fault);
		unsigned earlier = PATTERN_BIT(finder) - 1;

		assert_int_equal(finder != PATTERN_NONE, flaws[f].found_by != 0);
		if (!finder)
			continue;
		assert_true(flaws[f].found_by & PATTERN_BIT(finder));
		assert_false(flaws[f].found_by & earlier);
	}
	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++)
		assert_int_equal(pattern_rows[k].option != NULL,
				 pattern_rows[k].when != PATTERN_ALWAYS);
}

/* Every pattern with every fault. */
static void test_who_finds_what(void **state)
{
	(void)state;
	for (size_t f = 0; f < sizeof(flaws) / sizeof(flaws[0]); f++) {
		for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++) {
			struct devices d;

			if (k == PATTERN_LAST) /* these devices are too small to have any */
				continue;
			open_devices(&d, (struct fault){flaws[f].fault, 0, 1});
			run_row(&d, (enum pattern)k);
			assert_found(&d, (enum pattern)k, f);
			close_devices(&d);
		}
	}
}

/* ---- what is not the pair's fault ---- */

static int no_memory(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
		     struct memory *ret)
{
	(void)s;
	(void)device;
	(void)kind;
	(void)ret;
	return err_set(ENOMEM, "somebody else has the other %lu bytes", size);
}

/* Patterns that need more memory count as not run, the others go on, and the pair is right. */
static void test_out_of_memory(void **state)
{
	struct device_set *set;
	struct device_ops ops;
	struct devices d;

	(void)state;
	open_devices(&d, (struct fault){FAULT_NONE, -1, -1});
	set = d.devices[1].set;
	ops = *set->ops;
	ops.alloc = no_memory;
	set->ops = &ops;
	d.pair.wanted = pattern_bits(PATTERN_ALWAYS) | PATTERN_BIT(PATTERN_ATOMICS);
	pattern_run(&d.pair);
	assert_int_equal(d.results[0].state, PAIR_RIGHT);
	assert_non_null(strstr(d.results[0].sentence, "not run: somebody else has"));
	assert_false(d.results[0].patterns[PATTERN_REMAP].done);
	assert_true(d.results[1].patterns[PATTERN_REMAP].done);
	assert_true(d.results[0].patterns[PATTERN_FLAGS].done);
	assert_true(d.results[0].patterns[PATTERN_ATOMICS].done);
	close_devices(&d);
}

/* One launch of an exchange fails, after the other device's kernel already waits for it. */
static struct {
	const struct device_ops *inner;
	bool failed;
} flaky;

static int fail_one_launch(struct device_set *s, struct stream stream, const struct launch *l)
{
	if (l->kernel == KERNEL_exchange && !flaky.failed) {
		flaky.failed = true;
		return err_set(ENOMEM, "no memory for a launch");
	}
	return flaky.inner->launch(s, stream, l);
}

/* The other's kernel gives up at once, not at the limit, and the patterns after it run. */
static void test_launch_fails(void **state)
{
	struct device_set *set;
	struct device_ops ops;
	struct devices d;

	(void)state;
	open_devices(&d, (struct fault){FAULT_NONE, -1, -1});
	set = d.devices[1].set;
	flaky.inner = set->ops;
	flaky.failed = false;
	ops = *set->ops;
	ops.launch = fail_one_launch;
	set->ops = &ops;
	d.pair.wanted = pattern_bits(PATTERN_ALWAYS);
	pattern_run(&d.pair);
	assert_true(flaky.failed);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(d.results[i].state, PAIR_RIGHT);
		assert_non_null(strstr(d.results[i].sentence, "not run: no memory for a launch"));
		assert_false(d.results[i].patterns[PATTERN_PULL].done);
		assert_true(d.results[i].patterns[PATTERN_GRAPH].done);
		assert_true(d.results[i].patterns[PATTERN_REMAP].done);
	}
	set->ops = flaky.inner;
	close_devices(&d);
}

static int hang_in_wait(struct device_set *s, struct stream stream, uint64_t limit_us)
{
	(void)s;
	(void)stream;
	(void)limit_us;
	return err_set(ETIMEDOUT, "worker of device 0 was killed because it hung");
}

static int killed_in_wait(struct device_set *s, struct stream stream, uint64_t limit_us)
{
	(void)s;
	(void)stream;
	(void)limit_us;
	return err_set(EOWNERDEAD, "worker of device 1 was killed from outside");
}

/*
 * One end waits in vain for the other, whose worker somebody killed: that says nothing of the pair.
 */
static void test_other_end_killed(void **state)
{
	const struct device_ops *inner[2];
	struct device_ops ops[2];
	struct devices d;

	(void)state;
	open_devices(&d, (struct fault){FAULT_NONE, -1, -1});
	for (int i = 0; i < 2; i++) {
		inner[i] = d.devices[i].set->ops;
		ops[i] = *inner[i];
		ops[i].wait = i ? killed_in_wait : hang_in_wait;
		d.devices[i].set->ops = &ops[i];
	}
	d.pair.wanted = PATTERN_BIT(PATTERN_FLAGS);
	pattern_run(&d.pair);
	assert_int_equal(d.results[0].state, PAIR_RIGHT);
	assert_true(d.results[0].sets_lost);
	assert_false(d.results[0].patterns[PATTERN_FLAGS].done);
	assert_non_null(strstr(d.results[0].sentence, "device 1 was killed from outside"));
	for (int i = 0; i < 2; i++)
		d.devices[i].set->ops = inner[i];
	close_devices(&d);
}

static int no_such_memory(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
			  struct memory *ret)
{
	(void)s;
	(void)device;
	(void)size;
	(void)ret;
	return err_set(ENOTSUP, "no memory of kind %d here", (int)kind);
}

/* Memory that a device does not offer is no failure, and what is known of it is said. */
static void test_not_offered(void **state)
{
	const unsigned kinds = PATTERN_BIT(PATTERN_HOST_MEMORY) | PATTERN_BIT(PATTERN_COMPRESSIBLE);
	struct device_set *set;
	struct device_ops ops;
	struct devices d;

	(void)state;
	open_devices(&d, (struct fault){FAULT_NONE, -1, -1});
	set = d.devices[1].set;
	ops = *set->ops;
	ops.alloc = no_such_memory;
	set->ops = &ops;
	d.pair.wanted = kinds | PATTERN_BIT(PATTERN_ATOMICS);
	pattern_run(&d.pair);
	for (int k = PATTERN_HOST_MEMORY; k <= PATTERN_COMPRESSIBLE; k++) {
		assert_string_equal(pattern_result_word(&d.results[0].patterns[k]), "not-offered");
		assert_string_equal(pattern_result_word(&d.results[1].patterns[k]), "ok");
	}
	assert_true(d.results[0].patterns[PATTERN_ATOMICS].done);
	assert_int_equal(d.results[0].state, PAIR_RIGHT);
	assert_true(pattern_all_done(&d.results[0], kinds));
	assert_non_null(strstr(d.results[0].sentence, "not offered: no memory of kind"));
	assert_string_equal(d.results[1].sentence, "");
	close_devices(&d);
}

/* Memory that is read wrong may be anybody's: nothing is written to it. */
static void test_wrong_is_not_written(void **state)
{
	struct devices d;

	(void)state;
	open_devices(&d, (struct fault){FAULT_COMPTAG, 0, 1});
	run_row(&d, PATTERN_COMPRESSIBLE);
	assert_int_equal(d.results[0].patterns[PATTERN_COMPRESSIBLE].rounds, 1);
	assert_int_equal(d.results[1].patterns[PATTERN_COMPRESSIBLE].rounds, 3);
	assert_non_null(strstr(d.results[0].sentence, "zeros from byte 0"));
	close_devices(&d);
}

/* A GPU that is lost leaves nothing to go on with. */
static int no_wait(struct device_set *s, struct stream stream, uint64_t limit_us)
{
	(void)s;
	(void)stream;
	(void)limit_us;
	return err_set(EIO, "an illegal address");
}

static void test_fault(void **state)
{
	struct device_set *set;
	const struct device_ops *before;
	struct device_ops ops;
	struct devices d;

	(void)state;
	open_devices(&d, (struct fault){FAULT_NONE, -1, -1});
	set = d.devices[1].set;
	before = set->ops;
	ops = *set->ops;
	ops.wait = no_wait;
	set->ops = &ops;
	d.pair.wanted = pattern_bits(PATTERN_ALWAYS);
	pattern_run(&d.pair);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(d.results[i].state, PAIR_WRONG);
		assert_int_equal(d.results[i].kind, WRONG_FAULT);
		assert_int_equal(d.results[i].pattern, PATTERN_PULL);
		assert_true(d.results[i].sets_lost);
		assert_false(d.results[i].patterns[PATTERN_GRAPH].done);
	}
	set->ops = before;
	close_devices(&d);
}

/* ---- whole runs ---- */

static int open_here(void *context, const struct device_request *one, struct device_set **ret)
{
	(void)context;
	return device_open(one, ret);
}

static void run(size_t n, struct fault fault, double long_s, uint64_t memory,
		struct test_result *ret)
{
	static const struct test_hooks none;
	struct device_request *devices = request_of(n, fault);
	struct test_request *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->devices = *devices;
	q->open = open_here;
	q->limit_us = LIMIT_US;
	q->long_s = long_s;
	q->informs = long_s > 0 ? pattern_bits(PATTERN_INFORMATION) : 0;
	if (memory) {
		q->devices.host.memory_bytes = memory;
		q->memory_bytes = UINT64_MAX;
	}
	if (test_run(q, &none, ret) < 0)
		fail_msg("test_run: %s", err_msg());
	free(q);
	free(devices);
}

static void assert_all_right(const struct test_result *r, bool on_request)
{
	for (size_t i = 0; i < r->n * r->n; i++) {
		const struct pair_result *p = &r->pairs[i];

		if (i / r->n == i % r->n)
			continue;
		if (p->state != PAIR_RIGHT)
			fail_msg("pair %zu: %s: %s", i, wrong_word(p->kind), p->sentence);
		assert_true(pattern_all_done(p, pattern_bits(PATTERN_ALWAYS)));
		for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++)
			if (pattern_rows[k].when != PATTERN_ALWAYS)
				assert_int_equal(p->patterns[k].done, on_request);
	}
	assert_int_equal(r->arms[ARM_P2P].state, PAIR_RIGHT);
}

static void test_healthy(void **state)
{
	struct test_result r;

	(void)state;
	run(DEVICES, (struct fault){FAULT_NONE, -1, -1}, 0, 0, &r);
	assert_all_right(&r, false);
	test_result_done(&r);
}

static void test_long(void **state)
{
	struct test_result r;

	(void)state;
	run(DEVICES, (struct fault){FAULT_NONE, -1, -1}, 0.1, 16ul << 20, &r);
	assert_all_right(&r, true);
	test_result_done(&r);
}

/*
 * Two devices, of which the first has the fault on its way to the second: what it is called there,
 * and where else.
 */
static void assert_there_alone(const struct test_result *r, enum fault_kind fault,
			       enum pattern pattern)
{
	const struct pair_result *there = test_pair(r, 0, 1), *back = test_pair(r, 1, 0);

	if (there->state != PAIR_WRONG || there->pattern != pattern)
		fail_msg("%s: %s by '%s' (%s)", fault_word(fault), wrong_word(there->kind),
			 pattern_rows[there->pattern].name, there->sentence);
	if (back->state != PAIR_INCOMPLETE && !pattern_all_done(back, pattern_bits(PATTERN_ALWAYS)))
		fail_msg("%s, the other way: %s, though not all patterns ran", fault_word(fault),
			 pair_state_word(back->state));
	if (back->kind != WRONG_NOTHING || back->pattern != PATTERN_NONE)
		fail_msg("%s, the other way: %s (%s)", fault_word(fault), wrong_word(back->kind),
			 back->sentence);
}

/* A page that no transfer goes through: all that always runs passes, and so does load. */
static void test_hole(void **state)
{
	const struct fault fault = {FAULT_HOLE, 0, 1};
	struct test_result r;

	(void)state;
	run(2, fault, 0, 16ul << 20, &r);
	assert_all_right(&r, false);
	test_result_done(&r);
	run(2, fault, 0.1, 16ul << 20, &r);
	assert_there_alone(&r, FAULT_HOLE, PATTERN_LAST);
	test_result_done(&r);
}

/* clang-format off */
static const struct {
	enum fault_kind fault;
	enum pattern pattern;
	enum wrong_kind kind;
} found[] = {
	{FAULT_CACHED,     PATTERN_PULL,   WRONG_OLD},
	{FAULT_REPLAY,     PATTERN_GRAPH,  WRONG_SHIFTED},
	{FAULT_OVERTAKE,   PATTERN_FLAGS,  WRONG_OLD},
	{FAULT_LATE,       PATTERN_FLAGS,  WRONG_OLD},
	{FAULT_REREAD,     PATTERN_REREAD, WRONG_OLD},
	{FAULT_REMAP,      PATTERN_REMAP,  WRONG_OLD},
	{FAULT_IPC_OFFSET, PATTERN_PULL,   WRONG_ZEROS},
};
/* clang-format on */

/* Copies, round trips and sums pass; the pattern finds it. */
static void test_whole_runs(void **state)
{
	(void)state;
	for (size_t f = 0; f < sizeof(found) / sizeof(found[0]); f++) {
		struct test_result r;

		run(2, (struct fault){found[f].fault, 0, 1}, 0, 0, &r);
		assert_there_alone(&r, found[f].fault, found[f].pattern);
		assert_int_equal(test_pair(&r, 0, 1)->kind, found[f].kind);
		assert_int_equal(r.arms[ARM_P2P].state, PAIR_RIGHT);
		test_result_done(&r);
	}
}

static void test_rows(void **state)
{
	(void)state;
	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++) {
		assert_int_equal(pattern_parse(pattern_rows[k].name), k);
		assert_true(*pattern_rows[k].title);
		assert_non_null(pattern_rows[k].run);
	}
	assert_int_equal(pattern_parse(""), PATTERN_N);
}

/* As a word of its own. */
static bool has_word(const char *text, const char *word)
{
	static const char part[] = "abcdefghijklmnopqrstuvwxyz-";

	for (const char *at = text; (at = strstr(at, word)); at++)
		if (at > text && !strchr(part, at[-1]) && !strchr(part, at[strlen(word)]))
			return true;
	return false;
}

/* A reader finds every pattern, and every fault that can be shown. */
static void test_documented(void **state)
{
	static const struct {
		const char *path;
		char mark; /* around a pattern's name */
	} files[] = {{"docs/testing.md", '`'}, {"man/onehop-test.1.scd", '*'}};

	(void)state;
	for (size_t f = 0; f < ARRAY_LEN(files); f++) {
		AUTO_STRBUF struct strbuf text = {0};

		assert_int_equal(text_read_file(files[f].path, SOURCE_MAX_FILE, &text), 0);
		for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++) {
			AUTO_FREE char *name = xprintf("%c%s%c", files[f].mark,
						       pattern_rows[k].name, files[f].mark);

			if (!strstr(strbuf_str(&text), name))
				fail_msg("%s lacks pattern %s", files[f].path, name);
		}
		for (int k = FAULT_NONE + 1; k < FAULT_N; k++)
			if (!has_word(strbuf_str(&text), fault_word((enum fault_kind)k)))
				fail_msg("%s lacks fault %s", files[f].path,
					 fault_word((enum fault_kind)k));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finders),       cmocka_unit_test(test_who_finds_what),
		cmocka_unit_test(test_healthy),       cmocka_unit_test(test_long),
		cmocka_unit_test(test_hole),          cmocka_unit_test(test_whole_runs),
		cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_fault),
		cmocka_unit_test(test_rows),          cmocka_unit_test(test_documented),
		cmocka_unit_test(test_launch_fails),  cmocka_unit_test(test_other_end_killed),
		cmocka_unit_test(test_not_offered),   cmocka_unit_test(test_wrong_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
