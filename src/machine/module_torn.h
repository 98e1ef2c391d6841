/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that DKMS copied to their place, and that a power cut left torn there. */
#pragma once

struct strbuf;

/* Where DKMS puts modules, below lib/modules/KERNEL: by distribution. Words of a shell. */
#define DKMS_FOLDERS "updates/dkms updates extra"

/*
 * Appends a line for each of NVIDIA's modules that DKMS installed for the kernel, "x86_64" being the
 * machine, and that is torn: "NAME/VERSION lib/modules/KERNEL/updates/dkms/nvidia.ko". Torn is what has
 * nothing, or zeros, where what DKMS built has something; another build is not. Paths are below the folder
 * root_fd. 0, or a negative errno: -ENOENT where there is no DKMS.
 */
int module_torn_list(int root_fd, const char *kernel, const char *machine, struct strbuf *out);
