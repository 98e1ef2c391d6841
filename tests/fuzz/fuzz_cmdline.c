/* SPDX-License-Identifier: Apache-2.0 */
/* The host's small files: any text as command line, version, CPU list and the like. */
#include "base/source.h"
#include "machine/machine.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = {
		"proc/cmdline",
		"proc/version",
		"proc/cpuinfo",
		"proc/modules",
		"proc/self/cgroup",
		"etc/os-release",
		"process.txt",
		"etc/modprobe.d/any.conf",
		"sys/kernel/security/lockdown",
		"sys/devices/system/cpu/online",
		"sys/devices/system/cpu/cpu0/topology/core_siblings_list",
		"sys/devices/system/node/node0/meminfo",
		"sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
	};
	static const struct machine_request request = {.parts = MACHINE_HOST};
	struct source *map = source_new_map("fuzz");

	source_put_list(map, "etc/modprobe.d", "any.conf\n");
	source_put_list(map, "sys/devices/system/node", "node0\n");
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		source_put_file(map, files[i], (const char *)data, size);
	machine_free(machine_read(map, &request));
	source_free(map);
	return 0;
}
