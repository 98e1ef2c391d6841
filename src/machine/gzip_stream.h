/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gzip file of one member or more, damaged or not: libarchive compares no check sums, and gives
 * up where one is cut.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct gzip_stream;

/*
 * NULL: the file that is open as `fd`, which the stream does not close, is not gzip, or zlib is not
 * installed.
 */
struct gzip_stream *gzip_stream_new(int fd);
void gzip_stream_free(struct gzip_stream *s); /* NULL is fine */
/* The next bytes, valid until the next call. Returns how many; 0: there are no more. */
size_t gzip_stream_read(struct gzip_stream *s, const void **ret);
/* A clause about the first damage that was met; NULL: none. */
const char *gzip_stream_damage(const struct gzip_stream *s);
