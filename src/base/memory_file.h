/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that can be handed to other processes: a file without a name. */
#pragma once

#include <stdint.h>

/*
 * A descriptor of a new one, or a negative errno without a sentence. -EFBIG: it would be larger
 * than files of this process may be (RLIMIT_FSIZE); the signal of that, which ends a process, does
 * not come.
 */
int memory_file(uint64_t size);
