/* SPDX-License-Identifier: Apache-2.0 */
/* rm.json: whatever a recording holds in its place. The machine has three GPUs for it to name. */
#include "base/alloc.h"
#include "base/source.h"
#include "machine/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GPUS 3

static void put_gpus(struct machine *m)
{
	m->pci = arena_alloc(m->arena, GPUS, sizeof(*m->pci));
	m->pci_n = GPUS;
	for (uint8_t i = 0; i < GPUS; i++) {
		struct pci_function *f = &m->pci[i];
		char name[PCI_ADDRESS_LEN];

		f->address = (struct pci_address){.bus = (uint8_t)(0x41 + i)};
		f->name = arena_strdup(m->arena, pci_address_format(f->address, name));
		f->vendor = fact_int(0x10de, "fuzz");
		f->device = fact_int(0x2335, "fuzz");
		f->class_code = fact_int(0x030200, "fuzz");
		f->index = i;
	}
}

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
