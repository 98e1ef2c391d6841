/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's settings: any text as environment, conf file and library answer. */
#include "base/source.h"
#include "machine/machine.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = {"environment.txt", "etc/nccl.conf", "nccl-library.txt",
					    "process-env.txt"};
	static const struct machine_request request = {.parts = MACHINE_HOST};

	/* Without and with the last, which hides the first. */
	for (size_t n = 3; n <= 4; n++) {
		struct source *map = source_new_map("fuzz");

		for (size_t i = 0; i < n; i++)
			source_put_file(map, files[i], (const char *)data, size);
		machine_free(machine_read(map, &request));
		source_free(map);
	}
	return 0;
}
