/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a text of any size. A small text keeps all of its lines. Of a large one, whenever a piece of it has been
 * read, only the lines remain that a decoder may use; a run of others becomes one line, with the number of its last.
 */
#pragma once

#include "ingest/text.h"

#include <stdint.h>

enum {
	REDUCE_AT = 4 << 20, /* bytes of a piece */
	SEEN_SLOTS = 8192,
	MOST_ALIKE = 256, /* lines of the kernel log with one message that are kept, per boot */
	MOST_RELEVANT = 60000, /* lines of the kernel log that are kept */
};

struct seen_message {
	uint64_t hash; /* 0: free */
	unsigned count;
};

struct text_reducer {
	struct arena *arena; /* of the lines that are kept; the caller's */
	struct arena *piece; /* of the lines of the piece; NULL: it is `arena` */
	struct text_splitter split;
	size_t piece_bytes; /* read into the piece */
	size_t piece_limit; /* it is reduced when it has so many */
	size_t kept_bytes;
	size_t carried; /* lines of the piece that an earlier one began with */
	struct text_line *lines;
	size_t n;
	struct seen_message *seen;
	size_t seen_n, relevant_n;
	size_t repeated; /* lines of the kernel log that repeat others and are not kept */
	bool lost;       /* lines of the kernel log that mattered are not kept */
};

struct text_reducer text_reducer(struct arena *a);
void text_reduce_add(struct text_reducer *r, const char *data, size_t n);
/* Ends the text: its lines are r->lines, r->n of them, until text_reduce_free. */
void text_reduce_end(struct text_reducer *r);
void text_reduce_free(struct text_reducer *r);
/* Bytes that are held: what is kept, and the piece. */
size_t text_reduce_size(const struct text_reducer *r);
