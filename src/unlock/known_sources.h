/* SPDX-License-Identifier: Apache-2.0 */
/* The releases whose sources are known, each with the hash of all of them. */
#pragma once

#include "unlock/source_hash.h"

#include <stdbool.h>
#include <stddef.h>

struct known_source {
	const char *release; /* "535.43.02" */
	const char *hash;    /* as source_hash gives it */
	/* How what source_hash_part gives begins: enough to tell releases apart, and no proof. NULL: unknown. */
	const char *parts[SOURCE_FOLDERS];
};

/* In the order of their numbers. */
const struct known_source *known_source_table(size_t *ret_n);
/* NULL: this release is not among them. */
const struct known_source *known_source_find(const char *release);
