/* SPDX-License-Identifier: Apache-2.0 */
/* A machine for documents about GPUs to name. */
#pragma once

#include "base/alloc.h"
#include "base/source.h"
#include "machine/read.h"

#define GPUS 3

static inline void put_gpus(struct machine *m)
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

/* Those that put_gpus() has put there, as a machine that was read lists them. */
static inline void list_gpus(struct machine *m)
{
	m->gpus = arena_alloc(m->arena, GPUS, sizeof(*m->gpus));
	m->gpu_n = GPUS;
	for (size_t i = 0; i < GPUS; i++) {
		m->gpus[i].pci = &m->pci[i];
		m->gpus[i].index = i;
	}
}
