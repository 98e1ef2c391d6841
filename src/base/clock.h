/* SPDX-License-Identifier: Apache-2.0 */
/* The clock that nobody sets: CLOCK_MONOTONIC. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * What one reading takes, as a rule: between two that follow each other lie the end of one and the
 * beginning of the other.
 */
uint64_t clock_cost_ns(void);

static inline uint64_t clock_us(void)
{
	return clock_ns() / 1000;
}

static inline double clock_s(void)
{
	return (double)clock_ns() / 1e9;
}
