/* SPDX-License-Identifier: Apache-2.0 */
/* onehop unlock --sources, and --apply without a tree: an edited driver, or options, into the system. */
#pragma once

#include "cli/command.h"

struct unlock_requirements;

/* The pairs are judged as onehop check does. */
#define UNLOCK_PARTS (MACHINE_TO_JUDGE | MACHINE_MODULE_FILE)

struct deliver_options {
	const struct common_options *common;
	const struct observed_options *observed;
	const char *sources; /* NULL: options alone, or download */
	bool download;       /* fetch the sources, where they are needed */
	const char *mirror;  /* to fetch them from; NULL: NVIDIA's repository */
	const char *kernel;  /* NULL: the one that runs */
	bool image, apply;
};

int deliver(const struct deliver_options *o);

/* What the cards of a machine need, printed; the exit code. */
int show_requirements(const struct machine *m, const struct unlock_requirements *n,
		      const struct common_options *common, bool by_hand);
