/* SPDX-License-Identifier: Apache-2.0 */
/* A topology of NCCL, and what it plans with for each link of it. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "machine/nccl_topology.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *xml = xstrndup((const char *)data, size);
	struct arena *a = arena_new();
	struct nccl_topology t = {0};

	nccl_topology_parse(a, xml, "fuzz", &t);
	for (size_t i = 0; i < t.n; i++) {
		const struct nccl_topology_device *d = &t.devices[i];

		if (d->speed && nccl_link_gbps(d->speed, d->width) <= 0)
			abort();
	}
	arena_free(a);
	return 0;
}
