/* SPDX-License-Identifier: Apache-2.0 */
/* EFI variables as Linux shows them: a file each, with four bytes of attributes before the value. */
#pragma once

#include <stddef.h>

#define EFI_VARIABLES "sys/firmware/efi/efivars"
/* Of systemd's boot loader interface: what the boot loader says, and what it is told. */
#define EFI_LOADER                "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
#define EFI_LOADER_VARIABLE(name) EFI_VARIABLES "/" name "-" EFI_LOADER

enum { EFI_ATTRIBUTES = 4 };

/*
 * The texts in the bytes of such a file (UTF-16, a zero behind each), each as a line; characters that are
 * not ASCII are "?". The caller frees.
 */
char *efi_lines(const char *file, size_t size);
