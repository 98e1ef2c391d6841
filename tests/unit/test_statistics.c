/* SPDX-License-Identifier: Apache-2.0 */
/* bench/statistics.h: order statistics, the median's interval, ratios, when to stop. */
#include "bench/statistics.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct samples samples_of(const double *values, size_t n)
{
	struct samples s = {0};

	for (size_t i = 0; i < n; i++)
		assert_int_equal(samples_add(&s, values[i]), 0);
	return s;
}

/* first, first + 1, ...: n of them, in an order that is not theirs. */
static struct samples shuffled(double first, size_t n)
{
	struct samples s = {0};

	for (size_t i = 0; i < n; i++)
		assert_int_equal(samples_add(&s, first + (double)(i * 7919 % n)), 0);
	return s;
}

/* Uniform in 0 .. 1, the same each run. */
static double next_uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / 9007199254740992.0;
}

/* ---- samples ---- */

static void few_samples(void **state)
{
	static const double values[] = {3, 1, 2, 5, 4};
	static const double medians[] = {NAN, 3, 2, 2, 2.5, 3};

	(void)state;
	for (size_t n = 0; n <= 5; n++) {
		struct samples s = samples_of(values, n);
		struct summary m;

		samples_summary(&s, &m);
		assert_int_equal(m.n, n);
		assert_true(isnan(m.low) && isnan(m.high));
		assert_true(isnan(relative_half_width(&m)));
		if (n == 0)
			assert_true(isnan(m.median) && isnan(m.min) && isnan(m.max) &&
				    isnan(m.p05) && isnan(m.p95));
		else
			assert_true(m.median == medians[n]);
		samples_done(&s);
	}
}

static void percentiles(void **state)
{
	struct samples s = shuffled(0, 101);

	(void)state;
	assert_true(samples_median(&s) == 50);
	assert_true(samples_percentile(&s, 0) == 0);
	assert_true(samples_percentile(&s, 1) == 100);
	assert_float_equal(samples_percentile(&s, 0.05), 5, 1e-9);
	assert_float_equal(samples_percentile(&s, 0.995), 99.5, 1e-9);
	assert_true(isnan(samples_percentile(&s, -0.1)));
	assert_true(isnan(samples_percentile(&s, NAN)));
	/* What is added after sorting counts too. */
	assert_int_equal(samples_add(&s, -1), 0);
	assert_true(samples_percentile(&s, 0) == -1);
	samples_done(&s);
	assert_int_equal(s.n, 0);
}

static void not_a_figure(void **state)
{
	struct samples s = {0};

	(void)state;
	assert_int_equal(samples_add(&s, NAN), -EINVAL);
	assert_int_equal(samples_add(&s, INFINITY), -EINVAL);
	assert_int_equal(s.n, 0);
	samples_done(&s);
}

/* ---- the interval ---- */

/* Chance that at most k of n fair coins fall on one side, by Pascal's triangle. */
static double binomial_below(size_t n, size_t k)
{
	double row[128] = {1};
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = i + 1; j > 0; j--)
			row[j] = (row[j] + row[j - 1]) / 2;
		row[0] /= 2;
	}
	for (size_t i = 0; i <= k; i++)
		sum += row[i];
	return sum;
}

static void rank_is_the_greatest(void **state)
{
	(void)state;
	for (size_t n = 0; n < 120; n++) {
		size_t k = interval_rank(n);

		if (k)
			assert_true(binomial_below(n, k - 1) <= 0.025);
		assert_true(binomial_below(n, k) > 0.025);
		assert_int_equal(k > 0, n >= SAMPLES_INTERVAL_MIN);
	}
}

/* As in printed tables of the sign test's two-sided 5 % points. */
static void rank_of_the_tables(void **state)
{
	static const size_t table[][2] = {{6, 1},  {8, 1},   {9, 2},   {12, 3},
					  {20, 6}, {30, 10}, {50, 18}, {100, 40}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		assert_int_equal(interval_rank(table[i][0]), table[i][1]);
}

/* From the exact ranks to the approximated ones there is no step. */
static void rank_of_many(void **state)
{
	size_t last = interval_rank(900);

	(void)state;
	for (size_t n = 901; n < 1200; n++) {
		size_t k = interval_rank(n);

		assert_in_range(k, last, last + 1);
		last = k;
	}
	assert_int_equal(interval_rank(1000), 469);
	assert_int_equal(interval_rank(1002), 470);
	assert_int_equal(interval_rank(1000000), 499020);
}

static void interval_ends(void **state)
{
	struct samples s = shuffled(1, 100);
	struct summary m;

	(void)state;
	samples_summary(&s, &m);
	assert_true(m.low == 40 && m.high == 61);
	assert_true(m.median == 50.5 && m.min == 1 && m.max == 100);
	assert_float_equal(relative_half_width(&m), 10.5 / 50.5, 1e-12);
	samples_done(&s);
}

/* Of a skewed quantity too the interval holds the true median in 95 of 100 trials. */
static void coverage(void **state)
{
	uint64_t random = 1;
	int held = 0;

	(void)state;
	for (int trial = 0; trial < 2000; trial++) {
		struct samples s = {0};
		struct summary m;

		for (int i = 0; i < 25; i++)
			assert_int_equal(samples_add(&s, exp(3 * next_uniform(&random))), 0);
		samples_summary(&s, &m);
		held += m.low <= exp(1.5) && exp(1.5) <= m.high;
		samples_done(&s);
	}
	assert_in_range(held, 1880, 1960); /* 25 samples: 95.7 % */
}

static void half_width_of_nothing(void **state)
{
	static const double zeros[8], around[8] = {-1, -1, -1, 0, 0, 1, 1, 1};
	struct samples s = samples_of(zeros, 8), t = samples_of(around, 8);
	struct summary m;

	(void)state;
	samples_summary(&s, &m);
	assert_true(relative_half_width(&m) == 0);
	samples_summary(&t, &m);
	assert_true(isnan(relative_half_width(&m)));
	samples_done(&s);
	samples_done(&t);
}

/* ---- when to stop ---- */

static const struct stopping rule = {STOPPING_RELATIVE, 2, STOPPING_MIN_SAMPLES, 20};

static void stops_when_narrow(void **state)
{
	struct samples s = {0};

	(void)state;
	for (unsigned i = 0; i + 1 < STOPPING_MIN_SAMPLES; i++) {
		assert_int_equal(samples_add(&s, 100 + 0.1 * (i % 3)), 0);
		assert_int_equal(stopping_decide(&rule, &s, 1), STOP_GO_ON);
	}
	assert_int_equal(samples_add(&s, 5000), 0); /* one outlier does not widen it */
	assert_int_equal(stopping_decide(&rule, &s, 1), STOP_NARROW);
	assert_int_equal(stopping_decide(&rule, &s, 3), STOP_NARROW);
	samples_done(&s);
}

static void stops_when_spent(void **state)
{
	struct samples s = {0};

	(void)state;
	assert_int_equal(stopping_decide(&rule, &s, 0), STOP_GO_ON);
	assert_int_equal(stopping_decide(&rule, &s, 2), STOP_BUDGET);
	assert_int_equal(stopping_decide(&rule, &s, NAN), STOP_BUDGET);
	for (unsigned i = 0; i < 19; i++)
		assert_int_equal(samples_add(&s, i % 2 ? 100 : 110), 0);
	assert_int_equal(stopping_decide(&rule, &s, 1), STOP_GO_ON);
	assert_int_equal(stopping_decide(&rule, &s, 2.5), STOP_BUDGET);
	assert_int_equal(samples_add(&s, 100), 0);
	assert_int_equal(stopping_decide(&rule, &s, 1), STOP_MAX);
	samples_done(&s);
}

static void stop_words(void **state)
{
	(void)state;
	assert_string_equal(stop_word(STOP_NARROW), "narrow");
	assert_string_equal(stop_word(STOP_MAX), "max");
	assert_string_equal(stop_word((enum stop)77), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_samples),           cmocka_unit_test(percentiles),
		cmocka_unit_test(not_a_figure),          cmocka_unit_test(rank_is_the_greatest),
		cmocka_unit_test(rank_of_the_tables),    cmocka_unit_test(rank_of_many),
		cmocka_unit_test(interval_ends),         cmocka_unit_test(coverage),
		cmocka_unit_test(half_width_of_nothing), cmocka_unit_test(stops_when_narrow),
		cmocka_unit_test(stops_when_spent),      cmocka_unit_test(stop_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
