/* SPDX-License-Identifier: Apache-2.0 */
/* What the live source makes up; rows of the table in live.c. */
#pragma once

#include "base/source.h"

/* Configuration space with only the registers that are decoded; the rest reads as zero. */
int live_read_config(int root_fd, const char *path, char **ret, size_t *ret_size);
