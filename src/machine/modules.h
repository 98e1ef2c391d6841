/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel modules matter, and how file names map to module names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "machine/fact.h"

struct reader;

/*
 * The module's name for a path or file name: "updates/dkms/nvidia-current-peermem.ko.xz" is
 * "nvidia_peermem". Debian's renamed flavours count as what they are. Returns buf.
 */
const char *module_name_of(const char *path, size_t n, char *buf, size_t size);
bool module_is_of_interest(const char *name);
/*
 * The file of a module in the text of a modules.dep, relative to its folder; false: not installed.
 */
bool module_find_file(const char *modules_dep, const char *name, const char **ret, size_t *ret_n);
/*
 * The value behind "license=" in the lines of the module's .modinfo section. Absent where the file
 * lacks it; unknown where a text does, which may have only some of its lines.
 */
struct fact_str modinfo_field(struct reader *r, struct fact_str text, const char *module,
			      const char *key);
