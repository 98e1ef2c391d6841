/* SPDX-License-Identifier: Apache-2.0 */
#include "result/run_failure.h"

#include <string.h>

static bool is_comparable(const struct run_failure *f)
{
	return f->kind == RUN_TIMED_OUT && f->rank >= 0 && f->sequence >= 0 && !f->of_group;
}

/* RUN_WAITS_UNKNOWN: both lines are of one rank. */
static enum run_waits compare(const struct run_failure *a, const struct run_failure *b)
{
	if (a->sequence != b->sequence)
		return RUN_WAITS_BEHIND;
	if (strcmp(a->what, b->what) != 0)
		return RUN_WAITS_MIXED;
	return a->rank == b->rank ? RUN_WAITS_UNKNOWN : RUN_WAITS_SAME;
}

/*
 * Each group of ranks counts its own collectives, and an older line does not say which group it is
 * of: a rank that waits in two is in several, and then nothing can be compared.
 */
static enum run_waits waits_of(struct run_failure *const *failures, size_t n)
{
	const struct run_failure *first = NULL;
	enum run_waits waits = RUN_WAITS_UNKNOWN;

	for (size_t i = 0; i < n; i++) {
		const struct run_failure *f = failures[i];

		if (f->kind == RUN_TIMED_OUT && f->of_group)
			return RUN_WAITS_UNKNOWN;
		if (!is_comparable(f))
			continue;
		for (size_t k = 0; k < i; k++)
			if (is_comparable(failures[k]) && failures[k]->rank == f->rank &&
			    compare(failures[k], f) != RUN_WAITS_UNKNOWN)
				return RUN_WAITS_UNKNOWN;
		first = first ? first : f;
		if (compare(first, f) > waits)
			waits = compare(first, f);
	}
	return waits;
}

void run_failures_compare(struct run_failure *const *failures, size_t n)
{
	const enum run_waits waits = waits_of(failures, n);

	for (size_t i = 0; i < n; i++)
		if (failures[i]->kind == RUN_TIMED_OUT)
			failures[i]->waits = waits;
}
