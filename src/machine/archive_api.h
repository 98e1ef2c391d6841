/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libarchive, opened on the first archive: it loads libxml2 and ICU, which would add 2 ms to every
 * start.
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>
#include <stddef.h>

/* X(member, exported name) */
#define ARCHIVE_SYMBOLS(X)                                                                         \
	X(error_number, archive_errno)                                                             \
	X(error_string, archive_error_string)                                                      \
	X(entry_new, archive_entry_new)                                                            \
	X(entry_free, archive_entry_free)                                                          \
	X(entry_pathname, archive_entry_pathname)                                                  \
	X(entry_filetype, archive_entry_filetype)                                                  \
	X(entry_hardlink, archive_entry_hardlink)                                                  \
	X(entry_perm, archive_entry_perm)                                                          \
	X(entry_mtime, archive_entry_mtime)                                                        \
	X(entry_set_pathname, archive_entry_set_pathname)                                          \
	X(entry_set_size, archive_entry_set_size)                                                  \
	X(entry_set_filetype, archive_entry_set_filetype)                                          \
	X(entry_set_perm, archive_entry_set_perm)                                                  \
	X(read_new, archive_read_new)                                                              \
	X(read_free, archive_read_free)                                                            \
	X(read_filter_gzip, archive_read_support_filter_gzip)                                      \
	X(read_filter_bzip2, archive_read_support_filter_bzip2)                                    \
	X(read_filter_xz, archive_read_support_filter_xz)                                          \
	X(read_filter_zstd, archive_read_support_filter_zstd)                                      \
	X(read_format_tar, archive_read_support_format_tar)                                        \
	X(read_format_zip, archive_read_support_format_zip)                                        \
	X(read_format_raw, archive_read_support_format_raw)                                        \
	X(read_open, archive_read_open)                                                            \
	X(read_open_fd, archive_read_open_fd)                                                      \
	X(read_next_header, archive_read_next_header)                                              \
	X(read_data, archive_read_data)                                                            \
	X(read_data_block, archive_read_data_block)                                                \
	X(format, archive_format)                                                                  \
	X(write_new, archive_write_new)                                                            \
	X(write_free, archive_write_free)                                                          \
	X(write_filter_gzip, archive_write_add_filter_gzip)                                        \
	X(write_filter_xz, archive_write_add_filter_xz)                                            \
	X(write_filter_zstd, archive_write_add_filter_zstd)                                        \
	X(write_filter_none, archive_write_add_filter_none)                                        \
	X(write_format_pax, archive_write_set_format_pax_restricted)                               \
	X(write_set_options, archive_write_set_options)                                            \
	X(write_open_fd, archive_write_open_fd)                                                    \
	X(write_header, archive_write_header)                                                      \
	X(write_data, archive_write_data)                                                          \
	X(write_close, archive_write_close)

struct archive_api {
#define ARCHIVE_MEMBER(member, symbol) __typeof__(symbol) *member; /* NOLINT */
	ARCHIVE_SYMBOLS(ARCHIVE_MEMBER)
#undef ARCHIVE_MEMBER
};

/* 0, or a negative errno with a sentence: libarchive is not installed. */
int archive_api_load(struct archive_api *ret);

struct gzip_stream;

/*
 * Begins to read the tar or zip that is open as `fd`, packed in any way; other_too: what is neither
 * is one member. gzip goes through *ret_gzip, which sees damage (machine/gzip_stream.h); NULL:
 * libarchive reads the file itself. The answer is libarchive's. The caller frees both, whatever the
 * answer; the stream last.
 */
int archive_read_packed(const struct archive_api *api, int fd, bool other_too, struct archive **ret,
			struct gzip_stream **ret_gzip);

/* What may still be read of an archive, so that a small file cannot hold a machine up. */
struct archive_budget {
	const char *path;
	size_t total, left; /* bytes that are unpacked */
};

/* For the archive that is open as `fd`. */
struct archive_budget archive_budget(const char *path, int fd);
/* 0, or -EFBIG with a sentence: the next n bytes are more than may be read. */
int archive_budget_use(struct archive_budget *b, size_t n);
/*
 * Passes over the data of the member whose header was read last. In a tar that is compressed they
 * are unpacked, which libarchive does not limit. 0 or a negative errno with a sentence.
 */
int archive_skip(const struct archive_api *api, struct archive *a, struct archive_budget *b);
