/* SPDX-License-Identifier: Apache-2.0 */
/* observed.json: whatever lies in its place, on a machine with three GPUs for it to name. */
#include "base/alloc.h"
#include "base/source.h"
#include "machine/observed.h"
#include "machine/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GPUS 3

static void put_gpus(struct machine *m)
{
	m->pci = arena_alloc(m->arena, GPUS, sizeof(*m->pci));
	m->gpus = arena_alloc(m->arena, GPUS, sizeof(*m->gpus));
	m->pci_n = m->gpu_n = GPUS;
	for (uint8_t i = 0; i < GPUS; i++) {
		char name[PCI_ADDRESS_LEN];

		m->pci[i].address = (struct pci_address){.bus = (uint8_t)(0x41 + i)};
		m->pci[i].name =
			arena_strdup(m->arena, pci_address_format(m->pci[i].address, name));
		m->gpus[i].pci = &m->pci[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct machine_request request = {.parts = MACHINE_ALL};
	struct machine m = {.arena = arena_new()};
	struct reader r = {.m = &m, .s = source_new_map("fuzz"), .request = &request};

	for (size_t i = 0; i < KEPT_RUN_N; i++)
		source_put_file(r.s, kept_runs[i].file, (const char *)data, size);
	m.kernel.boot_id = fact_str("b", "fuzz");
	m.driver.module_version = fact_str("1", "fuzz");
	put_gpus(&m);
	observed_read(&r);
	source_free(r.s);
	arena_free(m.arena);
	return 0;
}
