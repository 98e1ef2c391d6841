/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two texts, line by line. */
#pragma once

#include <stddef.h>

enum diff_mark { DIFF_SAME = ' ', DIFF_GONE = '-', DIFF_NEW = '+' };

struct diff_line {
	enum diff_mark mark;
	const char *text; /* in the text that has it; not terminated */
	size_t n;         /* without the newline */
	/* in the new text, from 1 on; of a line that is gone: of the one that follows */
	size_t number;
};

struct diff {
	/* of both texts, those that are gone before what is in their place */
	struct diff_line *lines;
	size_t n;
};

/* `old` NULL: an empty text. Free with diff_done; the texts have to stay until then. */
void diff_texts(const char *old, size_t old_size, const char *new, size_t new_size,
		struct diff *ret);
void diff_done(struct diff *d);
