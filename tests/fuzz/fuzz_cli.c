/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: one word a line, the first picks the command; parsed, never run. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "cli/command.h"

#include <stdint.h>
#include <string.h>

#define MAX_WORDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = xstrndup((const char *)data, size);
	AUTO_FREE void *values = NULL;
	const char *args[MAX_ARGS + 1] = {0};
	char *words[MAX_WORDS], *rest = text, *word;
	const struct command *c;
	size_t n = 0, used;

	while (n < MAX_WORDS && (word = strsep(&rest, "\n")))
		words[n++] = word;
	c = command_find((const char *const *)words, n, &used);
	if (!c) {
		c = &command_check;
		used = 1;
	}
	values = xcalloc(1, c->size);
	command_parse(c, words + used, n - used, values, args);
	options_done(c->options, values);
	return 0;
}
