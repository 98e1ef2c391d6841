/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel module's file says of itself: its .modinfo section. */
#pragma once

#include <stddef.h>

struct strbuf;

/*
 * Appends the "key=value" lines of interest (name, version, license, depends, vermagic, srcversion)
 * of a module in memory, which may be anything. 0 or -EINVAL. The bytes are not changed.
 */
int module_file_parse(void *image, size_t size, struct strbuf *out);
/*
 * The same of a file below the folder dir_fd: plain, or compressed with what libarchive reads.
 * -EFBIG: compressed, and larger than is worth the time.
 */
int module_file_read(int dir_fd, const char *path, struct strbuf *out);
