/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `test` as figures: checks, and the times that a test measures on the way. */
#pragma once

#include "bench/test_run.h"

struct figures;

/* The kind of a GPU that could not be opened, at all or again: nothing of it is known. */
#define TEST_NOT_OPENED "not-opened"

/*
 * `names` and `pci`: of the devices; pci is NULL for simulated devices, whose results no machine is
 * judged by.
 */
struct figures *test_figures(const struct test_result *r, const char *const *names,
			     const char *const *pci);

struct test_counts {
	size_t pairs, right, wrong, incomplete, not_tested; /* ordered */
	size_t locals_wrong, locals_not_tested, arms_wrong, arms_incomplete;
};

void test_count(const struct test_result *r, struct test_counts *ret); /* NULL: all 0 */
