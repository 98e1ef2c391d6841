/* SPDX-License-Identifier: Apache-2.0 */
/* rm.json: whatever a recording holds in its place. The machine has three GPUs for it to name. */
#include "three_gpus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct machine_request request = {.parts = MACHINE_ALL};
	struct machine m = {.arena = arena_new()};
	struct reader r = {.m = &m, .s = source_new_map("fuzz"), .request = &request};

	source_put_file(r.s, "rm.json", (const char *)data, size);
	put_gpus(&m);
	gpu_read(&r);
	source_free(r.s);
	arena_free(m.arena);
	return 0;
}
