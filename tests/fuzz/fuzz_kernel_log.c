/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel log: any text, with a few functions in the tree for its addresses to name. */
#include "base/source.h"
#include "machine/machine.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct machine_request request = {.parts = MACHINE_PCI | MACHINE_LOG};
	struct source *map = source_new_map("fuzz");

	source_put_list(map, "sys/bus/pci/devices", "0000:00:03.1\n0000:01:00.0\n0000:07:00.0\n");
	source_put_file(map, "kernel-log.txt", (const char *)data, size);
	machine_free(machine_read(map, &request));
	source_free(map);
	return 0;
}
