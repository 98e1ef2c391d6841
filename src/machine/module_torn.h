/* SPDX-License-Identifier: Apache-2.0 */
/* Modules installed by DKMS that a power cut left incomplete. */
#pragma once

struct strbuf;

/* Where DKMS puts modules, below lib/modules/KERNEL: by distribution. Words of a shell. */
#define DKMS_FOLDERS "updates/dkms updates extra"

/*
 * Appends a line for each of NVIDIA's modules that DKMS installed for the kernel and machine
 * ("x86_64") and that is torn: "NAME/VERSION lib/modules/KERNEL/updates/dkms/nvidia.ko". A module
 * is torn if it has zeros or ends where the file that DKMS built has data; another build is not
 * torn. Paths are below the folder root_fd. 0, or a negative errno: -ENOENT where there is no DKMS.
 */
int module_torn_list(int root_fd, const char *kernel, const char *machine, struct strbuf *out);
