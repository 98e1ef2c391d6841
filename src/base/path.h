/* SPDX-License-Identifier: Apache-2.0 */
/* Paths below a source's root, spelled in one way only, so that equal files have equal paths. */
#pragma once

#include <stdbool.h>

/*
 * Writes the one spelling of `path` to ret, which has room for strlen(path) + 3 bytes: no empty,
 * "." and ".." components, no slash at either end; "./NAME" is a file right below the root, because
 * a name without any slash is a virtual file. Links are not looked at: "a/../b" is "b".
 */
void path_clean(const char *path, char *ret);
/* Whether it is spelled so. */
bool path_is_clean(const char *path);
/* ROOT/PATH, with one slash where the root is "/". The caller frees. */
char *path_below(const char *root, const char *path);
