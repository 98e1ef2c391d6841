/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of this process wait for in the kernel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The file that another thread of this process waits for: the one that it opens or looks up, or
 * reads, writes or controls. A path, "pipe:[N]" or the like. False: no thread waits for a file, or
 * the kernel does not tell.
 */
bool waits_for_file(char *ret, size_t size);
