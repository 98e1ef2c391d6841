/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries opened at run time, by a table of the symbols that they must or may have. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * One row per function: the exported name, and where its pointer goes in the caller's struct.
 *
 *	#define NVML_SYMBOLS(X) X(init, "nvmlInit_v2", true, (void)) ...
 */
struct dl_symbol {
	const char *name;
	size_t offset; /* of the function pointer in the struct of pointers */
	bool required;
};

/*
 * Opens soname (RTLD_NOW | RTLD_LOCAL, never closed: the libraries meant here keep threads) and
 * fills the pointers at base. Optional symbols that are missing become NULL. 0, -ENOENT (no such
 * library) or -ENOSYS (a required symbol is missing), with a sentence.
 */
int dl_load(const char *soname, const struct dl_symbol *symbols, size_t n, void *base);
