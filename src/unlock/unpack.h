/* SPDX-License-Identifier: Apache-2.0 */
/* The sources in an archive, made into a tree. */
#pragma once

#include "unlock/tree.h"

/*
 * Writes what is in a tar file, compressed with gzip or not, below a tree that is empty, without the
 * folder that all paths of the archive begin with. The archive is not trusted: only regular files and
 * folders, with plain paths, and no more of them than source_hash.h allows. Not by tar: who reads the
 * entries decides what becomes of each, with the same code on every system. 0, or a negative errno
 * with a sentence; -EINVAL: this is not an archive that is taken. What was written so far stays.
 */
int archive_unpack(int fd, const char *name, const struct tree *into);
