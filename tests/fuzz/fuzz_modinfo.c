/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel module's file, which may be any bytes, and what it says as text. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "machine/machine.h"
#include "machine/module_file.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_modules(const char *modinfo, const char *index, size_t size)
{
	static const struct machine_request request = {.parts = MACHINE_HOST};
	static const char version[] = "Linux version 6.1.0 (x) (gcc 12.2.0) #1\n";
	struct source *map = source_new_map("fuzz");

	source_put_file(map, "proc/version", version, strlen(version));
	source_put_file(map, "proc/modules", "", 0);
	source_put_file(map, "lib/modules/6.1.0/modules.dep", index, size);
	source_put_file(map, "modinfo-nvidia.txt", modinfo, strlen(modinfo));
	machine_free(machine_read(map, &request));
	source_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char installed[] = "updates/dkms/nvidia.ko:\n";
	AUTO_STRBUF struct strbuf out = {0}, functions = {0};
	AUTO_FREE char *copy = xmalloc(size + 1);

	/* Either may convert what it reads in place. */
	memcpy(copy, data, size);
	module_file_parse_p2p(copy, size, &functions);
	memcpy(copy, data, size);
	copy[size] = '\0';
	if (module_file_parse(copy, size, &out) == 0)
		read_modules(strbuf_str(&out), installed, strlen(installed));
	else
		read_modules(copy, copy, size);
	return 0;
}
