/* SPDX-License-Identifier: Apache-2.0 */
/* What `test` found as figures: what was checked, and the times that a test takes anyway. */
#pragma once

#include "bench/test_run.h"

struct figures;

/* The kind of a GPU that could not be opened, at all or again: nothing of it is known. */
#define TEST_NOT_OPENED "not-opened"

/*
 * `names` and `pci` of the devices; without addresses (NULL) they are stand-ins, of which no check of a
 * machine takes anything. figures_free.
 */
struct figures *test_figures(const struct test_result *r, const char *const *names,
			     const char *const *pci);
