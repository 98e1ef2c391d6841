/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of a measured quantity: median with its 95 % interval, percentiles, when to stop. Pure;
 * memory that runs out is -ENOMEM. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Start with `struct samples s = {0};`, end with samples_done. The functions below sort the values,
 * so that their order of arrival is lost. */
struct samples {
	double *values;
	size_t n, room;
	bool sorted;
};

/* 0, -EINVAL for what is not a finite number, or -ENOMEM. */
int samples_add(struct samples *s, double value);
void samples_done(struct samples *s);

/* All of these are NaN, never zero, where the samples do not tell. */
double samples_median(struct samples *s);
/* share: 0 the least, 1 the greatest; between two samples in proportion. */
double samples_percentile(struct samples *s, double share);

struct summary {
	size_t n;
	double median;
	double low, high; /* the median's 95 % interval; NaN with fewer than SAMPLES_INTERVAL_MIN */
	double min, max, p05, p95;
};

/* The interval of the median; of few samples the least and the greatest. */
double summary_low(const struct summary *v);
double summary_high(const struct summary *v);

/* Of fewer samples not even the least and the greatest enclose the median in 95 % of all cases. */
#define SAMPLES_INTERVAL_MIN 6

void samples_summary(struct samples *s, struct summary *ret);
/*
 * The interval of the median is from the k-th least to the k-th greatest of n samples; 0: there is
 * none. Holds for every continuous distribution: how many samples are below the median is binomial.
 * Here for tests.
 */
size_t interval_rank(size_t n);
/* The greater distance from the median to an end of its interval, as a share of the median: 0.01 is
 * within 1 %. NaN: not known. */
double relative_half_width(const struct summary *s);

/* ---- when to stop ---- */

struct stopping {
	double relative; /* half-width that is narrow enough */
	double budget_s; /* outweighs min_samples */
	/* looking after each sample finds a narrow interval by luck early on */
	unsigned min_samples;
	unsigned max_samples;
};

/* Within 1 %; of nine samples the interval leaves out the least and the greatest. */
#define STOPPING_RELATIVE    0.01
#define STOPPING_MIN_SAMPLES 9

enum stop { STOP_GO_ON, STOP_NARROW, STOP_BUDGET, STOP_MAX };

/* What to do after the samples so far, which took elapsed_s. */
enum stop stopping_decide(const struct stopping *rule, struct samples *s, double elapsed_s);
const char *stop_word(enum stop s); /* "narrow", "budget", "max", "go-on" */
