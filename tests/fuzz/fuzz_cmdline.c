/* SPDX-License-Identifier: Apache-2.0 */
/* The host's small files: any text as command line, version, CPU list and the like. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "machine/acs_parameter.h"
#include "machine/machine.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is made of any line is a line that says the same of the port, and cleared. */
static void fuzz_acs(const uint8_t *data, size_t size)
{
	struct pci_function port = {.name = "0000:22:00.0", .address = {.bus = 0x22}};
	const struct pci_function *ports[] = {&port};
	AUTO_FREE char *line = xstrndup((const char *)data, size);
	AUTO_FREE char *disable = acs_parameter_of_line(line);
	AUTO_FREE char *config = acs_config_of_line(line);
	AUTO_FREE char *new_disable = NULL, *new_config = NULL;
	AUTO_STRBUF struct strbuf word = {0};

	acs_word(disable, config, ports, 1, &word);
	new_disable = acs_parameter_of_line(word.text);
	new_config = acs_config_of_line(word.text);
	if (!acs_parameters_clear(new_disable, new_config, &port))
		abort();
}

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
	fuzz_acs(data, size);
	return 0;
}
