/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EFI variables as Linux shows them: one file each, with four bytes of attributes before the value.
 */
#pragma once

#include <stddef.h>

#define EFI_VARIABLES "sys/firmware/efi/efivars"
/* The vendor GUID of systemd's boot loader interface. */
#define EFI_LOADER                "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
#define EFI_LOADER_VARIABLE(name) EFI_VARIABLES "/" name "-" EFI_LOADER

enum { EFI_ATTRIBUTES = 4 };

/*
 * The texts in such a file (UTF-16, each zero-terminated), one per line; non-ASCII characters
 * become "?". The caller frees.
 */
char *efi_lines(const char *file, size_t size);
