/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, and what is wrong with one that a person named. */
#pragma once

#include <stddef.h>

/*
 * All that is left to read of an open file, with a NUL behind it that is not counted; the caller
 * frees. Files of /sys and /proc have no size of their own, so it is read until its end. -EFBIG:
 * more than `max` bytes; else a negative errno of read(). Without a sentence.
 */
int fd_read_all(int fd, size_t max, char **ret, size_t *ret_size);

/* All of it, however often write() stops short. 0 or a negative errno, without a sentence. */
int fd_write_all(int fd, const char *data, size_t size);
/*
 * The names in a folder that was just opened, sorted; free with source_free_names. 0 or a negative
 * errno, without a sentence.
 */
int fd_list(int fd, char ***ret, size_t *ret_n);
/*
 * Replaces a file by one with this content, whole or not at all, through a new file, `staged`, in
 * the same folder. 0 or a negative errno, without a sentence.
 */
int file_replace(const char *path, const char *staged, const char *data, size_t size,
		 unsigned mode);

/*
 * Opens what a person named, for reading; does not wait until somebody writes to a
 * pipe, but waits for what its writer has not written yet. A descriptor, or a
 * negative errno with a sentence.
 */
int file_open(const char *path);
/* -err and "cannot read PATH: permission denied"; a folder is called one. */
int file_unreadable(int err, const char *path);

/*
 * Why the bytes that something begins with cannot be a text: "empty", "compressed (gzip)",
 * "binary"; NULL: they can.
 */
const char *content_fault(const void *data, size_t size);
/* What of such content could be read, "give its text (pdftotext)"; NULL: nothing by itself. */
const char *content_instead(const void *data, size_t size);
/* -EINVAL and "PATH: compressed (gzip), not WANTED". */
int content_refuse(const char *path, const void *data, size_t size, const char *wanted);
/* The same of an open file, which is read from its start. */
int file_refuse(int fd, const char *path, const char *wanted);

/*
 * Takes the lock of an open file, without waiting (flock). 0, -EBUSY, or another negative errno.
 * Without a sentence.
 */
int file_lock(int fd);
