/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the PCI reader; for pci*.c and machine.c only. */
#pragma once

#include "machine/read.h"

/* pci_stated.c: for a machine that is read from texts. */
void pci_read_stated(struct reader *r, struct pci_function *f);
/* True: a text shows the bridge above it. Sets the root bus of one that is on such a bus. */
bool pci_stated_parent(struct reader *r, struct pci_function *f, struct pci_address *ret);
bool pci_stated_on_root_bus(const struct machine *m, const struct pci_function *f);
void pci_name_without_address(struct machine *m);
