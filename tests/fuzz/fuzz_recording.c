/* SPDX-License-Identifier: Apache-2.0 */
/* machine.txt: whatever is accepted is written again and read back the same; then read as a
 * machine. */
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "machine/machine.h"
#include "recording/recording.h"
#include "recording/recording_text.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(struct source *map)
{
	AUTO_FREE struct source_entry *entries = NULL;
	struct strbuf out = {0};
	size_t n;

	entries = source_entries(map, &n);
	recording_write(entries, n, &out);
	return out.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct machine_request everything = {.parts = MACHINE_ALL};
	AUTO_STRBUF struct strbuf text = {0};
	AUTO_FREE char *first = NULL, *second = NULL;
	struct source *map = source_new_map("fuzz"), *again = source_new_map("again");

	strbuf_puts(&text, "onehop recording 1\n");
	strbuf_add(&text, (const char *)data, size);
	if (recording_parse(text.text, text.len, "fuzz", map) == 0) {
		first = written(map);
		if (recording_parse(first, strlen(first), "again", again) < 0)
			abort();
		second = written(again);
		if (strcmp(first, second) != 0)
			abort();
		machine_free(machine_read(map, &everything));
	}
	source_free(map);
	source_free(again);
	return 0;
}
