/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory near a device: which node's that is, and how a thread gets it. */
#pragma once

#include <stdbool.h>

/* The node of the PCI device, read below `root` ("": this machine); -1: none is known. */
int numa_node(const char *root, const char *pci);

/*
 * Pages that this thread gets from the kernel come from that node while it has any. False where
 * nothing was changed: no node, the thread already has a policy (numactl), or the kernel does not
 * let it.
 */
bool numa_prefer(int node);
/* Takes back a numa_prefer that said true. */
void numa_prefer_none(void);
