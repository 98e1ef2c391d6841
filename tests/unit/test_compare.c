/* SPDX-License-Identifier: Apache-2.0 */
/* machine/comparison.c and its report: matching GPUs, noise, whether P2P is used, JSON. */
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "ingest/figures_open.h"
#include "json_schema.h"
#include "machine/comparison.h"
#include "report/report.h"

#include <cmocka.h>
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
		if (strcmp(c->kinds[i].kind->word, word) == 0 && c->kinds[i].staged == staged)
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

/* Where nothing was measured with P2P off, figures do not tell what is used, and say nothing of it. */
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
	assert_non_null(strstr(one, "not told -> 1 of 1 pairs"));
	assert_non_null(strstr(all, "1 of 1 -> 1 of 1 pairs"));
	figures_free(plain);
	figures_free(both);
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
	assert_non_null(strstr(strbuf_str(&text), "Nothing can be compared"));
	document_free(out);
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
		cmocka_unit_test(gpus_are_matched_by_address),
		cmocka_unit_test(use_is_concluded_only_if_sound),
		cmocka_unit_test(use_is_told_only_if_known),
		cmocka_unit_test(nothing_in_common),
		cmocka_unit_test(json_fits_its_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
