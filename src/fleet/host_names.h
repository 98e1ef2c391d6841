/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of host names in the form that clusters use: gpu-[01-63,70]. */
#pragma once

#include <stddef.h>

struct arena;
struct strbuf;
struct texts;

/* The most hosts that a list may name. */
#define HOST_NAMES_MAX 65536

/*
 * Appends the names of "n[01-64,70],login1"; commas separate names and, inside brackets, numbers
 * and ranges. Names keep the digits of the range's first number. -EINVAL or -E2BIG with a sentence.
 */
int host_names_parse(const char *list, struct arena *a, struct texts *ret);
/*
 * "gpu-[01-03,05], login1": sorts the names, and folds those that differ in their last number
 * alone.
 */
void host_names_fold(const char **names, size_t n, struct strbuf *out);
/* The order of names: numbers inside them count as numbers. */
int host_names_compare(const char *a, const char *b);
