/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers of the kernel that modules are built for say. */
#pragma once

/*
 * How many arguments pci_resize_resource has, 3 or 4; 0: it is not declared. `dir` is the kernel's build
 * folder (/lib/modules/RELEASE/build), its sources, or a headers package's. A negative errno with a
 * sentence if it holds no include/linux/pci.h.
 */
int headers_resize_arguments(const char *dir, int *ret);
