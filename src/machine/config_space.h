/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes config space bytes into the facts of a struct pci_function. Bytes may be anything. */
#pragma once

#include "machine/pci.h"

/*
 * Fills the facts of f that live in config space from its first `size` bytes; those beyond the end
 * become unknown with the reason `why_short` (kept by pointer). Identity, class and bridge bus
 * numbers are filled too if still unknown. A capability list that loops or leaves the space is cut
 * there and described in f->config_trouble.
 */
void config_space_decode(struct pci_function *f, const uint8_t *bytes, size_t size,
			 const char *why_short);
