/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics of samples, and when there are enough of them. */
#include "bench/statistics.h"

#include "base/err.h"
#include "base/order.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- samples ---- */

static int samples_grow(struct samples *s)
{
	size_t room = s->room ? 2 * s->room : 64;
	double *values;

	if (room > SIZE_MAX / sizeof(*values))
		return err_set(ENOMEM, "no memory for %zu samples", room);
	values = realloc(s->values, room * sizeof(*values));
	if (!values)
		return err_set(ENOMEM, "no memory for %zu samples", room);
	s->values = values;
	s->room = room;
	return 0;
}

int samples_add(struct samples *s, double value)
{
	int r;

	if (!isfinite(value))
		return err_set(EINVAL, "sample %zu is not a finite number", s->n + 1);
	if (s->n == s->room) {
		r = samples_grow(s);
		if (r < 0)
			return r;
	}
	s->values[s->n++] = value;
	s->sorted = false;
	return 0;
}

void samples_done(struct samples *s)
{
	free(s->values);
	*s = (struct samples){0};
}

static void samples_sort(struct samples *s)
{
	if (!s->sorted && s->n)
		sort_doubles(s->values, s->n);
	s->sorted = true;
}

/* ---- order statistics ---- */

double samples_percentile(struct samples *s, double share)
{
	double at, below;
	size_t i;

	if (!s->n || !(share >= 0 && share <= 1))
		return NAN;
	samples_sort(s);
	at = share * (double)(s->n - 1);
	below = floor(at);
	i = (size_t)below;
	if (i + 1 >= s->n || at == below)
		return s->values[i];
	return s->values[i] + (at - below) * (s->values[i + 1] - s->values[i]);
}

double samples_median(struct samples *s)
{
	return samples_percentile(s, 0.5);
}

/*
 * Greatest k such that at most k - 1 of n samples are below the median in at most 2.5 % of cases.
 */
static size_t rank_exact(size_t n)
{
	double share = ldexp(1, -(int)n), sum = share;
	size_t k = 0;

	while (sum <= 0.025) {
		share *= (double)(n - k) / (double)(k + 1);
		sum += share;
		k++;
	}
	return k;
}

/* The same by the normal distribution with the correction for continuity. */
static size_t rank_normal(size_t n)
{
	return (size_t)floor(((double)n + 1) / 2 - 1.959964 / 2 * sqrt((double)n));
}

size_t interval_rank(size_t n)
{
	enum { EXACT_N = 1000 }; /* 2^-n is still a normal number */

	return n <= EXACT_N ? rank_exact(n) : rank_normal(n);
}

double summary_low(const struct summary *v)
{
	return isnan(v->low) ? v->min : v->low;
}

double summary_high(const struct summary *v)
{
	return isnan(v->high) ? v->max : v->high;
}

void samples_summary(struct samples *s, struct summary *ret)
{
	size_t k = interval_rank(s->n);

	samples_sort(s);
	*ret = (struct summary){
		.n = s->n,
		.median = samples_median(s),
		.low = k ? s->values[k - 1] : NAN,
		.high = k ? s->values[s->n - k] : NAN,
		.min = samples_percentile(s, 0),
		.max = samples_percentile(s, 1),
		.p05 = samples_percentile(s, 0.05),
		.p95 = samples_percentile(s, 0.95),
	};
}

double relative_half_width(const struct summary *s)
{
	double below = s->median - s->low, above = s->high - s->median;

	if (below == 0 && above == 0)
		return 0;
	if (s->median == 0 || isnan(below) || isnan(above))
		return NAN;
	return fmax(below, above) / fabs(s->median);
}

/* ---- when to stop ---- */

static bool narrow_enough(const struct stopping *rule, struct samples *s)
{
	struct summary now;

	if (s->n < rule->min_samples)
		return false;
	samples_summary(s, &now);
	return relative_half_width(&now) <= rule->relative;
}

enum stop stopping_decide(const struct stopping *rule, struct samples *s, double elapsed_s)
{
	if (narrow_enough(rule, s))
		return STOP_NARROW;
	if (s->n >= rule->max_samples)
		return STOP_MAX;
	return elapsed_s < rule->budget_s ? STOP_GO_ON : STOP_BUDGET;
}

const char *stop_word(enum stop s)
{
	static const char *const words[] = {"go-on", "narrow", "budget", "max"};

	return (size_t)s < sizeof(words) / sizeof(*words) ? words[s] : "?";
}
