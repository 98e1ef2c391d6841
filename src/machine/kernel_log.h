/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of the kernel log matter. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether a line, in any of the forms that the kernel log is shown in, is about GPUs, PCI, IOMMU or
 * RDMA. */
bool kernel_log_is_relevant(const char *line, size_t n);

/* Whether a line has the prefix of one of the forms: a time, a priority, or "HOST kernel:". */
bool kernel_log_has_stamp(const char *line);

/* The message after the prefix. */
const char *kernel_log_message(const char *line);

enum { KERNEL_LOG_LINE_MAX = 512 }; /* bytes kept of a line */
