/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of known releases of a program for scripted tests: one release, of "RELEASE HASH" in the
 * file that ONEHOP_MADE_LIST names. It stands in the place of src/unlock/known_sources.c.
 */
#include "unlock/known_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct known_source one = {"0", ""};

const struct known_source *known_source_table(size_t *ret_n)
{
	static char release[32], hash[65];
	const char *path = getenv("ONEHOP_MADE_LIST");
	FILE *f = path ? fopen(path, "re") : NULL;

	if (f && fscanf(f, "%31s %64s", release, hash) == 2)
		one = (struct known_source){release, hash};
	if (f)
		fclose(f);
	*ret_n = 1;
	return &one;
}

const struct known_source *known_source_find(const char *release)
{
	size_t n;
	const struct known_source *known = known_source_table(&n);

	return strcmp(known->release, release) == 0 ? known : NULL;
}
