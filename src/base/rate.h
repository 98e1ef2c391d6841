/* SPDX-License-Identifier: Apache-2.0 */
/* When a measured rate is too low, or too high: the one rule of check, test and compare. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Smaller copies are slower by nature: how far below their path they stay says nothing of it. */
#define RATE_MIN_BYTES (16u << 20)

/* What a rate is held against. */
enum rate_by {
	RATE_BY_NOTHING, /* neither is known: no rate is too low */
	RATE_BY_PATH,    /* what the path should give in this direction */
	RATE_BY_OTHERS,  /* the median of all pairs of the run */
	RATE_BY_OWN,     /* copies within a device's own memory, where the path is that memory */
	RATE_BY_N,
};

struct rate_yardstick {
	enum rate_by by;
	double gbps;
};

/*
 * `expected`: GB/s of the path, 0: unknown. `median`: of the run, 0: unknown. `bytes`: of the copy,
 * 0: not told, which is a benchmark's own size and large.
 */
struct rate_yardstick rate_yardstick(double expected, double median, uint64_t bytes);
/* Of simulated devices, whose memories are the same memory; `own`: GB/s of the fastest. */
struct rate_yardstick rate_yardstick_own(double own);
bool rate_is_slow(double gbps, struct rate_yardstick y);
/* What is below this share is slow. */
double rate_slow_share(enum rate_by by);
/*
 * Faster than the links on the way, of which `expected` GB/s are expected: not on that path, or
 * nowhere.
 */
bool rate_is_implausible(double gbps, double expected);
/*
 * Sorts the values. Of fewer than three it is 0: two that differ do not tell which of them is
 * wrong.
 */
double rate_median(double *values, size_t n);
