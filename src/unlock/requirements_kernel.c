/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/requirements_kernel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Issues of the public repository. */
#define NVIDIA "see NVIDIA/open-gpu-kernel-modules"

/*
 * Which release of a branch was the first with a change is read from the trees of all public releases;
 * that it does not build without, from the reports that are named. Kernels' interfaces, not what cards
 * can do: so releases are compared here.
 */
#define SINCE(branch_, kernel_, first, what, see)                                                  \
	{                                                                                          \
		.branch = branch_, .kernel = kernel_, .before = first,                             \
		.sentence =                                                                        \
			"releases of " branch_ " before " first " do not build on Linux " kernel_  \
			" and later (" what "): use " first " or later, " see                      \
	}
/* No release of the branch has it; `last` is the newest that was looked at. */
#define NEVER(branch_, kernel_, last, instead, what, see)                                          \
	{                                                                                          \
		.branch = branch_, .kernel = kernel_, .upto = last,                                \
		.sentence = "no release of " branch_ " up to " last " builds on Linux " kernel_    \
			    " and later (" what "): use " instead                                  \
			    " or later, or an older kernel, " see                                  \
	}

#define OF_GPIO     "linux/of_gpio.h was removed"
#define OF_SEE      "see NixOS/nixpkgs#532695, void-linux/void-packages#61087"
#define VMA         "__is_vma_write_locked takes one argument"
#define VMA_SEE     NVIDIA "#1113"
#define ZONE        "zone_device_page_init takes three arguments"
#define ZONE_SEE    NVIDIA "#1015, #1021"
#define PAGEMAP     "get_dev_pagemap takes one argument"
#define PAGEMAP_SEE NVIDIA "#951"
#define FORMAT      "fb_create is given the format"
#define FORMAT_SEE  NVIDIA "#1143, Frogging-Family/nvidia-all#310"
#define TIMER       "del_timer_sync was removed"
#define TIMER_SEE   NVIDIA "#840, #1112"
#define IMPORT      "MODULE_IMPORT_NS takes a string, and make runs in the modules' folder"
#define IMPORT_SEE  NVIDIA "#747, #751"

/* Newest kernel first: the first row that holds names the release that does for all before it too. */
static const struct row {
	const char *branch, *kernel;
	const char *before; /* the first release that builds; NULL: */
	const char *upto;   /* the last that is known not to */
	const char *sentence;
} rows[] = {
	SINCE("580", "7.1", "580.159.04", OF_GPIO, OF_SEE),
	NEVER("595", "7.1", "595.45.04", "595.91.07", OF_GPIO, OF_SEE),
	SINCE("580", "7.0", "580.142", VMA, VMA_SEE),
	SINCE("595", "7.0", "595.58.03", VMA, VMA_SEE),
	SINCE("580", "6.19", "580.126.18", ZONE, ZONE_SEE),
	NEVER("590", "6.19", "590.48.01", "595.58.03", ZONE, ZONE_SEE),
	NEVER("575", "6.19", "575.64.05", "580.126.18", ZONE, ZONE_SEE),
	NEVER("570", "6.19", "570.211.01", "580.126.18", ZONE, ZONE_SEE),
	NEVER("535", "6.19", "535.288.01", "580.126.18", ZONE, ZONE_SEE),
	SINCE("580", "6.18", "580.119.02", PAGEMAP, PAGEMAP_SEE),
	SINCE("580", "6.17", "580.82.07", FORMAT, FORMAT_SEE),
	NEVER("575", "6.17", "575.64.05", "580.82.07", FORMAT, FORMAT_SEE),
	SINCE("570", "6.17", "570.190", FORMAT, FORMAT_SEE),
	SINCE("535", "6.17", "535.274.02", FORMAT, FORMAT_SEE),
	SINCE("575", "6.15", "575.57.08", TIMER, TIMER_SEE),
	SINCE("570", "6.15", "570.153.02", TIMER, TIMER_SEE),
	NEVER("550", "6.15", "550.163.01", "570.153.02", TIMER, TIMER_SEE),
	SINCE("535", "6.15", "535.261.03", TIMER, TIMER_SEE),
	NEVER("565", "6.13", "565.77", "570.86.16", IMPORT, IMPORT_SEE),
	NEVER("560", "6.13", "560.35.03", "570.86.16", IMPORT, IMPORT_SEE),
	NEVER("555", "6.13", "555.58.02", "570.86.16", IMPORT, IMPORT_SEE),
	SINCE("550", "6.13", "550.144.03", IMPORT, IMPORT_SEE),
	NEVER("545", "6.13", "545.29.06", "550.144.03", IMPORT, IMPORT_SEE),
	SINCE("535", "6.13", "535.247.01", IMPORT, IMPORT_SEE),
};

/* The next number of "580.126.18" or "6.13.0-35-generic"; 0 behind the last one. */
static unsigned long next_number(const char **s)
{
	char *end = (char *)*s;
	unsigned long n = **s >= '0' && **s <= '9' ? strtoul(*s, &end, 10) : 0;

	*s = *end == '.' ? end + 1 : "";
	return n;
}

static int compare(const char *a, const char *b, int numbers)
{
	while (numbers--) {
		unsigned long x = next_number(&a), y = next_number(&b);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/*
 * Lines for developers whose numbers do not tell what is in them: they run ahead of the branch they
 * are numbered after. Nothing is said of them.
 */
static bool runs_ahead(const char *driver_release)
{
	static const char *const lines[] = {"535.43", "550.40", "570.123", "580.94", "595.44"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (compare(driver_release, lines[i], 2) == 0)
			return true;
	return false;
}

static bool holds(const struct row *r, const char *driver_release, const char *kernel_release)
{
	return compare(driver_release, r->branch, 1) == 0 &&
	       compare(kernel_release, r->kernel, 2) >= 0 &&
	       (r->before ? compare(driver_release, r->before, 3) < 0
			  : compare(driver_release, r->upto, 3) <= 0);
}

const char *need_kernel_trouble(const char *driver_release, const char *kernel_release)
{
	if (runs_ahead(driver_release))
		return NULL;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (holds(&rows[i], driver_release, kernel_release))
			return rows[i].sentence;
	return NULL;
}
