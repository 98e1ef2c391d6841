/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. */
#pragma once

#include <stddef.h>

/*
 * All that is left to read of an open file, with a NUL behind it that is not counted; the caller frees.
 * Files of /sys and /proc have no size of their own, so it is read until its end. -EFBIG: more than
 * `max` bytes; else a negative errno of read(). Without a sentence.
 */
int fd_read_all(int fd, size_t max, char **ret, size_t *ret_size);
