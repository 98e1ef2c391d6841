/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shell script that somebody names: any bytes; what comes out are names and values of its own
 * bytes.
 */
#include "base/alloc.h"
#include "ingest/shell_script.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool every_name(const char *name)
{
	return *name != '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	struct script_setting *settings;
	unsigned lines = 1;
	size_t n;

	shell_script_parse(arena, (const char *)data, size, every_name, &settings, &n);
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	for (size_t i = 0; i < n; i++) {
		const struct script_setting *s = &settings[i];

		if (!s->line || s->line > lines || strlen(s->name) > size ||
		    (s->value && strlen(s->value) > size))
			abort();
		for (size_t k = 0; k < i; k++)
			if (strcmp(settings[k].name, s->name) == 0)
				abort();
	}
	arena_free(arena);
	return 0;
}
