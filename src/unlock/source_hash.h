/* SPDX-License-Identifier: Apache-2.0 */
/* One hash of all files of a tree. */
#pragma once

#include "fix/sha256.h"
#include "unlock/tree.h"

#include <sys/types.h>

/*
 * The SHA-256 of lines "SHA-256  PATH", one for each file, in the order of the paths' bytes:
 *
 *	find . -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum | sha256sum
 *
 * Every file counts: make also takes one that was added, such as a GNUmakefile. Empty folders and
 * permissions do not count. 0, or a negative errno with a sentence; -EINVAL: something is neither a
 * regular file nor a folder, or has a name that such a line cannot hold.
 */
int source_hash(const struct tree *t, char ret[static SHA256_TEXT]);
/*
 * The same of a tree that onehop may have edited and built, as it was before: of the files that its manifest
 * names, what was kept of them; what onehop keeps and what make built does not count.
 */
int source_hash_before(const struct tree *t, char ret[static SHA256_TEXT]);

/*
 * What a driver is built from: folders of a tree. The first SOURCE_PARTS hold all of it; those after them lie in
 * these, and are the ones that onehop edits.
 */
#define SOURCE_PARTS   4
#define SOURCE_FOLDERS 13
extern const char *const source_parts[SOURCE_FOLDERS];
/*
 * The same of one folder of it, "src/nvidia", with paths from the tree on. What make leaves between the sources
 * does not count either. -ENOENT without a sentence: there is no such folder.
 */
int source_hash_part(const struct tree *t, const char *folder, char ret[static SHA256_TEXT]);

/*
 * -EINVAL with a sentence that names it: there is a pipe, a socket or a device in the tree. make and cp would wait
 * for it, or read from hardware.
 */
int source_check_kinds(const struct tree *t);

/* "a named pipe": what a program that reads it would wait for, or be changed by. NULL: a file, a folder or a link. */
const char *source_special_kind(mode_t mode);

/* Limits on a tree, several times what the largest release has (3,900 files, 4 MB, 130 MB, 11 deep). */
#define SOURCE_FILES_MAX 20000
#define SOURCE_FILE_MAX  ((size_t)64 << 20)
#define SOURCE_BYTES_MAX ((size_t)1 << 30)
#define SOURCE_DEPTH_MAX 32
/* Whether a path of a tree is plain: relative, no "." and "..", no control characters, not too deep. */
bool source_path_is_plain(const char *path);
