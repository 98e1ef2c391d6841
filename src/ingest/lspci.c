/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/lspci.h"

#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/pci.h"
#include "recording/recording.h"

#include <string.h>

#define DEVICES "sys/bus/pci/devices"

/* An address starts some line, and a row of bytes follows: "00: de 10 ...". */
bool lspci_recognise(const char *text, size_t size)
{
	const char *line = NULL;
	bool device = false;
	size_t n;

	if (memchr(text, '\0', size))
		return false;
	while (text_next_line(&line, &n, text)) {
		char word[24];
		struct pci_address a;

		text_copy(word, sizeof(word), line,
			  n < strcspn(line, " \n") ? n : strcspn(line, " \n"));
		if (pci_address_parse(word, &a) == 0)
			device = true;
		else if (device && strcmp(word, "00:") == 0)
			return true;
	}
	return false;
}

/* The functions are those that have bytes; a dump lists a machine whole or says so to its author.
 */
static void list_functions(struct source *map)
{
	AUTO_STRBUF struct strbuf names = {0};
	AUTO_FREE struct source_entry *entries = NULL;
	size_t n;

	entries = source_entries(map, &n);
	for (size_t i = 0; i < n; i++) {
		const char *name = entries[i].path + strlen(DEVICES "/");

		strbuf_printf(&names, "%.*s\n", (int)strcspn(name, "/"), name);
	}
	source_put_list(map, DEVICES, strbuf_str(&names));
}

int lspci_parse(const char *text, size_t size, const char *file, struct source *map)
{
	int r = recording_parse_config_space(text, size, file, map);

	if (r == 0)
		list_functions(map);
	return r;
}
