/* SPDX-License-Identifier: Apache-2.0 */
/* The releases whose sources are known, each with the hash of all of them. */
#pragma once

#include "unlock/source_hash.h"

#include <stdbool.h>
#include <stddef.h>

#define SOURCE_PART_TEXT                                                                           \
	17 /* of a part's hash, with the NUL: it tells releases apart, and proves nothing */

struct known_source {
	const char *release; /* "535.43.02" */
	const char *hash;    /* as source_hash gives it */
	const char *
		parts[SOURCE_PARTS]; /* the start of what source_hash_part gives; NULL: not known */
};

/* In the order of their numbers. */
const struct known_source *known_source_table(size_t *ret_n);
/* NULL: this release is not among them. */
const struct known_source *known_source_find(const char *release);
