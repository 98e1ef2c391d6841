/* SPDX-License-Identifier: Apache-2.0 */
/* machine/comparison.c and its report: matching GPUs, noise, whether P2P is used, JSON. */
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "ingest/figures_open.h"
#include "json_schema.h"
#include "report/report.h"
#include "result/comparison.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define CASE "tests/figures/rtx4090x8/"

static struct figures *opened(const char *path)
{
	struct figures *f = NULL;

	if (figures_open(path, &f) < 0)
		fail_msg("%s", err_msg());
	return f;
}

/* n GPUs, with an address each when `pci` says so. */
static struct figures *made(size_t n, const char *const *pci)
{
	struct figures *f = figures_new("made", "test");

	figures_need_gpus(f, n);
	for (size_t i = 0; pci && i < n; i++)
		f->gpus[i].pci = pci[i];
	return f;
}

static const struct compared *kind_of(const struct comparison *c, const char *word, bool staged)
{
	for (size_t i = 0; i < c->kind_n; i++) {
		if (strcmp(c->kinds[i].metric->word, word) == 0 &&
		    c->kinds[i].metric->staged == staged)
			return &c->kinds[i];
	}
	fail_msg("no %s", word);
	return NULL;
}

static void the_case(void **state)
{
	struct figures *before = opened(CASE "p2pBandwidthLatencyTest-before.txt");
	struct figures *after = opened(CASE "p2pBandwidthLatencyTest-after.txt");
	struct comparison *c = comparison_new(before, after);
	const struct compared *access = kind_of(c, "p2p-access", false);

	(void)state;
	assert_true(access->before == 0 && access->after == 56);
	assert_int_equal(c->use_before.no, 56);
	assert_int_equal(c->use_after.yes, 56);
	assert_int_equal(c->counts[TREND_WORSE], 0);
	assert_int_equal(kind_of(c, "both-ce", false)->counts[TREND_BETTER], 56);
	assert_int_equal(kind_of(c, "latency-write", false)->counts[TREND_BETTER], 56);
	assert_int_equal(kind_of(c, "latency-write", true)->counts[TREND_SAME], 56);
	assert_int_equal(c->only_before, 0);
	comparison_free(c);
	figures_free(before);
	figures_free(after);
}

static void the_same_twice_is_the_same(void **state)
{
	static const char *const names[] = {CASE "p2pBandwidthLatencyTest-before.txt",
					    CASE "nccl-all_reduce-after.txt"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct figures *f = opened(names[i]);
		struct comparison *c = comparison_new(f, f);

		assert_int_equal(c->counts[TREND_SAME], f->row_n);
		comparison_free(c);
		figures_free(f);
	}
}

/* One cell before and after: what is made of it. */
static enum trend judged(const char *what, struct figure before, struct figure after)
{
	struct figures *a = made(2, NULL), *b = made(2, NULL);
	struct comparison *c;
	enum trend change;

	for (int i = 0; i < 2; i++) {
		const struct figure *from = i ? &after : &before;
		struct figure *row = figures_add(i ? b : a, what, 0, 1, from->median);

		row->low = from->low > 0 ? from->low : from->median;
		row->high = from->high > 0 ? from->high : from->median;
		row->samples = from->samples ? from->samples : 1;
	}
	c = comparison_new(a, b);
	change = c->kinds[0].cells[0].change;
	comparison_free(c);
	figures_free(a);
	figures_free(b);
	return change;
}

/* A loss of 30 % that wide intervals hide is reported, one of 8 % is not. */
static void noise_does_not_hide(void **state)
{
	static const struct {
		double low, high, after;
		size_t hidden;
	} cases[] = {{12, 38, 17.5, 1}, {12, 38, 23, 0}, {24.9, 25.1, 17.5, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct figures *of[2];
		struct comparison *c;
		AUTO_STRBUF struct strbuf text = {0};
		struct document *out = document_new();

		for (int k = 0; k < 2; k++) {
			struct figure *row;

			of[k] = figures_new("", "x");
			figures_need_gpus(of[k], 2);
			row = figures_add(of[k], "write-ce", 0, 1, k ? cases[i].after : 25);
			row->low = k ? cases[i].after : cases[i].low;
			row->high = k ? cases[i].after : cases[i].high;
			row->samples = 31;
		}
		c = comparison_new(of[0], of[1]);
		assert_int_equal(c->hidden_n, cases[i].hidden);
		report_compare(out, c, NULL, false);
		document_write_text(out, &(const struct text_format){.width = 1000}, &text);
		assert_int_equal(strstr(strbuf_str(&text),
					"1 of these differs by 10 % or more, "
					"up to -30 % (write, CE, GPU0 -> GPU1)") != NULL,
				 cases[i].hidden);
		document_free(out);
		comparison_free(c);
		figures_free(of[0]);
		figures_free(of[1]);
	}
}

#define ONE(v)                 ((struct figure){.median = (v)})
#define MANY(v, l, h)          ((struct figure){.median = (v), .low = (l), .high = (h), .samples = 31})
#define JUDGED(what, a, b, to) assert_int_equal(judged(what, a, b), TREND_##to)

static void noise_decides(void **state)
{
	(void)state;
	JUDGED("write-ce", ONE(25), ONE(27), SAME); /* 8 %, no interval */
	JUDGED("write-ce", ONE(25), ONE(28), BETTER);
	JUDGED("write-ce", ONE(28), ONE(25), WORSE);
	JUDGED("write-ce", MANY(25, 24.9, 25.1), MANY(27, 26.9, 27.1), BETTER);
	JUDGED("write-ce", MANY(25, 24.9, 25.1), MANY(25.4, 25.3, 25.5), SAME); /* within 2 % */
	JUDGED("write-ce", MANY(25, 22, 28), MANY(27, 24, 30), SAME);           /* wide intervals */
	JUDGED("latency-write", ONE(1.2), ONE(1.7), WORSE);
	JUDGED("latency-write-staged", ONE(11.4), ONE(20.3), SAME);
	JUDGED("latency-write-staged", ONE(10), ONE(21), WORSE);
	JUDGED("pair-verified", ONE(1), ONE(0), WORSE);
	JUDGED("pair-verified", ONE(0), ONE(1), BETTER);
	JUDGED("pair-verified", ONE(1), ONE(1), SAME);
}

static void gpus_are_matched_by_address(void **state)
{
	static const char *const one[] = {"0000:01:00.0", "0000:02:00.0"};
	static const char *const two[] = {"0000:03:00.0", "0000:02:00.0", "0000:01:00.0"};
	struct figures *a = made(2, one), *b = made(3, two);
	struct comparison *c;

	(void)state;
	figures_add(a, "write-ce", 0, 1, 10);
	figures_add(b, "write-ce", 2, 1, 10);
	figures_add(b, "write-ce", 0, 1, 99);
	c = comparison_new(a, b);
	assert_true(c->by_pci);
	assert_int_equal(c->gpu_after[0], 2);
	assert_int_equal(c->gpus_gone, 0);
	assert_int_equal(c->gpus_new, 1);
	assert_int_equal(c->counts[TREND_SAME], 1);
	assert_int_equal(c->only_after, 1);
	comparison_free(c);
	a->gpus[0].pci = NULL; /* by index then */
	c = comparison_new(a, b);
	assert_false(c->by_pci);
	assert_int_equal(c->counts[TREND_BETTER], 1);
	comparison_free(c);
	figures_free(a);
	figures_free(b);
}

/* A narrow link copies as fast through the host; tiny writes still tell. */
static void use_is_concluded_only_if_sound(void **state)
{
	static const struct {
		double write, write_off, latency, latency_off; /* 0: not measured */
		size_t yes, no, open;
	} rows[] = {
		{25, 19, 1.2, 11, 1, 0, 0}, {12, 12, 1.2, 11, 1, 0, 0}, {12, 12, 11, 11.5, 0, 1, 0},
		{12, 12, 0, 0, 0, 0, 1},    {25, 0, 1.2, 0, 0, 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct figures *f = made(2, NULL);
		struct comparison *c;

		figures_add(f, "write-ce", 0, 1, rows[i].write);
		if (rows[i].write_off > 0)
			figures_add(f, "write-ce-staged", 0, 1, rows[i].write_off);
		if (rows[i].latency > 0)
			figures_add(f, "latency-write", 0, 1, rows[i].latency);
		if (rows[i].latency_off > 0)
			figures_add(f, "latency-write-staged", 0, 1, rows[i].latency_off);
		c = comparison_new(f, f);
		assert_int_equal(c->use_before.yes, rows[i].yes);
		assert_int_equal(c->use_before.no, rows[i].no);
		assert_int_equal(c->use_before.open, rows[i].open);
		comparison_free(c);
		figures_free(f);
	}
}

static char *text_of(const struct figures *a, const struct figures *b)
{
	struct comparison *c = comparison_new(a, b);
	struct document *out = document_new();
	struct strbuf text = {0};

	report_compare(out, c, NULL, false);
	document_write_text(out, &(struct text_format){.width = 200}, &text);
	document_free(out);
	comparison_free(c);
	return text.text;
}

/*
 * Where nothing was measured with P2P off, figures do not tell what is used, and say nothing of it.
 */
static void use_is_told_only_if_known(void **state)
{
	struct figures *plain = made(2, NULL), *both = made(2, NULL);
	AUTO_FREE char *neither = NULL, *one = NULL, *all = NULL;

	(void)state;
	figures_add(plain, "write-ce", 0, 1, 25);
	figures_add(both, "write-ce", 0, 1, 25);
	figures_add(both, "write-ce-staged", 0, 1, 12);
	neither = text_of(plain, plain);
	one = text_of(plain, both);
	all = text_of(both, both);
	assert_null(strstr(neither, "P2P in use"));
	assert_non_null(strstr(one, "unknown -> 1 of 1 pairs"));
	assert_non_null(strstr(all, "1 of 1 -> 1 of 1 pairs"));
	figures_free(plain);
	figures_free(both);
}

/* A file may hold any number; a factor that is none is not printed. */
static void absurd_figures_have_no_factor(void **state)
{
	struct figures *a = made(2, NULL), *b = made(2, NULL);
	AUTO_FREE char *text = NULL;

	(void)state;
	figures_add(a, "write-ce", 0, 1, 1e-300);
	figures_add(b, "write-ce", 0, 1, 1e300);
	text = text_of(a, b);
	assert_non_null(strstr(text, "write"));
	assert_null(strstr(text, "inf"));
	figures_free(a);
	figures_free(b);
}

static void nothing_in_common(void **state)
{
	struct figures *a = opened(CASE "p2pBandwidthLatencyTest-before.txt");
	struct figures *b = opened(CASE "nccl-all_reduce-before.txt");
	struct comparison *c = comparison_new(a, b);
	struct document *out = document_new();
	AUTO_STRBUF struct strbuf text = {0};

	(void)state;
	assert_int_equal(c->kind_n, 0);
	report_compare(out, c, NULL, true);
	document_write_text(out, &(struct text_format){0}, &text);
	assert_non_null(strstr(strbuf_str(&text), "Nothing to compare"));
	document_free(out);
	comparison_free(c);
	figures_free(a);
	figures_free(b);
}

/*
 * All pairs alike and no better than before: slow all the same, where the result knows its paths.
 */
static void slow_twice_is_slow(void **state)
{
	struct figures *f = figures_new("x", "onehop bench p2p");
	struct comparison *c;

	(void)state;
	figures_need_gpus(f, 3);
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			if (i != j)
				figures_add(f, "write-ce", i, j, 5.2);
	c = comparison_new(f, f);
	assert_int_equal(c->slow_after.rows, 6);
	assert_int_equal(c->slow_after.slow, 0); /* nobody says what they should reach */
	comparison_free(c);
	for (size_t i = 0; i < f->row_n; i++)
		f->rows[i].expected = 26;
	c = comparison_new(f, f);
	assert_int_equal(c->counts[TREND_SAME], 6);
	assert_int_equal(c->slow_before.slow, 6);
	assert_int_equal(c->slow_after.slow, 6);
	comparison_free(c);
	f->rows[3].expected = 0;
	f->rows[3].median = 0.4;
	c = comparison_new(f, f);
	assert_true(c->slow_after.slow == 6 && c->slow_after.least < 0.5);
	comparison_free(c);
	figures_free(f);
}

static char *report_of(const struct comparison *c, const int *pair)
{
	struct text_format format = {.width = 100};
	struct document *out = document_new();
	struct strbuf b = {0};

	report_compare(out, c, pair, false);
	document_write_text(out, &format, &b);
	document_free(out);
	return b.text;
}

static void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

/* A file that is compared with itself, or with a copy. */
static void the_same_run_is_told(void **state)
{
	struct figures *a = opened(CASE "p2pBandwidthLatencyTest-before.txt");
	struct figures *b = opened(CASE "p2pBandwidthLatencyTest-before.txt");
	struct figures *other = opened(CASE "p2pBandwidthLatencyTest-after.txt");
	struct comparison *c = comparison_new(a, b), *d = comparison_new(a, other);
	AUTO_FREE char *text = report_of(c, NULL);

	(void)state;
	assert_true(c->same_run);
	assert_false(d->same_run);
	assert_says(text, "Both files are the same run: all figures are identical.");
	comparison_free(c);
	comparison_free(d);
	figures_free(a);
	figures_free(b);
	figures_free(other);
}

#define HEADER "   D\\D     0      1\n"
#define WRITES "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n" HEADER
#define READS  "Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)\n" HEADER

static struct figures *of_text(const char *text)
{
	struct figures *f = NULL;

	if (figures_parse(text, strlen(text), "x", &f) < 0)
		fail_msg("%s", err_msg());
	return f;
}

static void two_runs_in_one_file_are_told(void **state)
{
	struct figures *a = of_text(WRITES "     0 900.00  20.00\n     1  20.00 900.00\n" WRITES
					   "     0 900.00  30.00\n     1  30.00 900.00\n");
	struct figures *b = of_text(WRITES "     0 900.00  25.00\n     1  25.00 900.00\n");
	struct comparison *c = comparison_new(a, b);
	AUTO_FREE char *text = report_of(c, NULL);

	(void)state;
	assert_int_equal(a->runs, 2);
	assert_int_equal(b->runs, 1);
	assert_says(text, "The file contains the same measurements 2 times: each figure is their "
			  "median, and a figure missing");
	comparison_free(c);
	figures_free(a);
	figures_free(b);
}

/* 0.00 is no rate, "-" is onehop's own mark; null in JSON. */
static void unmeasured_is_a_dash(void **state)
{
	struct figures *a = of_text(WRITES "     0 900.00   0.00\n     1  20.00 900.00\n" READS
					   "     0 900.00      - \n     1  21.00 900.00\n");
	struct figures *b = of_text(WRITES "     0 900.00  25.00\n     1  20.50 900.00\n");
	struct comparison *c = comparison_new(a, b);
	AUTO_FREE char *forth = report_of(c, (const int[]){0, 1});
	AUTO_FREE char *back = report_of(c, (const int[]){1, 0});
	json_t *json = report_compare_json(c), *alone = json_object_get(json, "alone");

	(void)state;
	assert_int_equal(a->row_n, 2);
	assert_int_equal(a->trouble_n, 0);
	assert_int_equal(kind_of(c, "write-ce", false)->cell_n, 1);
	assert_says(forth, "write, CE  GPU0 -> GPU1  -       25     GB/s  only after");
	assert_says(back, "GPU1 -> GPU0  21      -      GB/s  only before");
	assert_int_equal(json_array_size(alone), 2);
	assert_true(json_is_null(json_object_get(json_array_get(alone, 0), "before")));
	assert_true(json_is_null(json_object_get(json_array_get(alone, 1), "after")));
	json_decref(json);
	comparison_free(c);
	figures_free(a);
	figures_free(b);
}

static void json_fits_its_schema(void **state)
{
	static const char *const names[][2] = {
		{CASE "p2pBandwidthLatencyTest-before.txt",
		 CASE "p2pBandwidthLatencyTest-after.txt"},
		{CASE "nccl-all_reduce-before.txt", CASE "nccl-all_reduce-after.txt"},
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		AUTO_STRBUF struct strbuf trouble = {0};
		struct figures *a = opened(names[i][0]), *b = opened(names[i][1]);
		struct comparison *c = comparison_new(a, b);
		json_t *json = report_compare_json(c);

		json_schema_check(json, "compare.schema.json", &trouble);
		assert_string_equal(strbuf_str(&trouble), "");
		json_decref(json);
		comparison_free(c);
		figures_free(a);
		figures_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_case),
		cmocka_unit_test(the_same_twice_is_the_same),
		cmocka_unit_test(noise_decides),
		cmocka_unit_test(noise_does_not_hide),
		cmocka_unit_test(gpus_are_matched_by_address),
		cmocka_unit_test(use_is_concluded_only_if_sound),
		cmocka_unit_test(use_is_told_only_if_known),
		cmocka_unit_test(absurd_figures_have_no_factor),
		cmocka_unit_test(nothing_in_common),
		cmocka_unit_test(slow_twice_is_slow),
		cmocka_unit_test(the_same_run_is_told),
		cmocka_unit_test(two_runs_in_one_file_are_told),
		cmocka_unit_test(unmeasured_is_a_dash),
		cmocka_unit_test(json_fits_its_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
