/* SPDX-License-Identifier: Apache-2.0 */
/* An lspci dump, from its text to the machine's PCI tree. */
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ingest/lspci.h"
#include "machine/machine.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct machine_request pci = {.parts = MACHINE_PCI | MACHINE_CONFIG_SPACE};
	AUTO_STRBUF struct strbuf text = {0};
	struct source *map = source_new_map("fuzz");

	strbuf_add(&text, (const char *)data, size);
	if (lspci_recognise(text.text, text.len) &&
	    lspci_parse(text.text, text.len, "fuzz", map) == 0)
		machine_free(machine_read(map, &pci));
	source_free(map);
	return 0;
}
