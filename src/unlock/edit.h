/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of a text: made, and shown as a unified diff. */
#pragma once

#include "base/strbuf.h"

#include <stddef.h>

struct edit {
	size_t from, to;  /* bytes of the old text; equal: an insertion */
	const char *text; /* what replaces it */
};

/* Sorted by place, not overlapping. */
void edits_apply(const char *old, size_t size, const struct edit *edits, size_t n,
		 struct strbuf *out);
/* Headers a/PATH and b/PATH, three lines of context; nothing if there are no edits. */
void edits_diff(const char *path, const char *old, size_t size, const struct edit *edits, size_t n,
		struct strbuf *out);
/* The white space that the line of a byte begins with. */
const char *indent_of(const char *text, size_t at, size_t *ret_size);
