/* SPDX-License-Identifier: Apache-2.0 */
/* Texts given by the user: read, cleaned, and recognised. */
#pragma once

#include "base/strbuf.h"
#include "ingest/log_fields.h"
#include "ingest/log_json.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct figures;
struct source;

/* What of a text may be held; a larger file was probably given by mistake. */
#define INGEST_MAX_LOG (256u << 20)
/* A text that is read in pieces, and what archives hold. */
#define INGEST_MAX_TEXT ((size_t)2 << 30)

/* Takes the next piece of a text. */
typedef void (*text_sink)(void *to, const char *data, size_t n);
/*
 * Reads to the end, at most `max` bytes; "-" is standard input. 0 or a negative errno with a
 * sentence.
 */
int text_read_pieces(const char *path, size_t max, text_sink sink, void *to);
int text_read_file(const char *path, size_t max, struct strbuf *ret);
/* Its name in messages: the path, or "standard input". */
const char *text_file_name(const char *path);

/* One line, terminated, without colours and trailing white space. */
struct text_line {
	char *text;
	unsigned number; /* from 1 */
	unsigned alike;  /* later lines that say the same and are not kept */
	bool open;       /* the text ends within it, or behind it without a line's end */
};

/*
 * A text that arrives in pieces, as lines: each is cleaned and copied, so that the pieces need not
 * be kept. A run of encoded dumps, which make up most of a bug report, becomes one line with the
 * number of its last.
 */
struct text_splitter {
	struct arena *arena; /* of the lines and their texts */
	bool drop_encoded;
	bool squeeze; /* runs of empty lines become two */
	struct text_line *lines;
	size_t n;
	unsigned number; /* of the last line */
	char *encoded;   /* the text of all runs; NULL: there is none yet */
	struct strbuf partial, scratch;
	/* A log as JSON or as fields becomes the lines of one. */
	struct log_json log;
	struct log_fields fields;
	struct strbuf logged;
};

void text_split_add(struct text_splitter *s, const char *data, size_t n);
/* Ends the last line, and frees what only splitting needed. */
void text_split_end(struct text_splitter *s);

/*
 * A copy of the text as lines: terminal colours, carriage returns and NULs are gone, tabs are
 * blanks. Both arrays are allocated in the arena.
 */
struct text_line *text_lines(struct arena *arena, const char *text, size_t size, size_t *ret_n);

/* A kind of text (with a NUL after its size bytes), and what it can be converted to. */
struct text_kind {
	const char *what; /* "the output of p2pBandwidthLatencyTest" */
	const char *use;  /* "onehop compare": the command that reads it */
	bool (*recognise)(const char *text, size_t size);
	int (*to_figures)(const char *text, size_t size, const char *file, struct figures **ret);
};

/*
 * Ends with a NULL `what`. The first kind that recognises a text and supports the requested
 * conversion reads it.
 */
extern const struct text_kind text_kinds[];

/* -EINVAL and a sentence that says what the text is and what was expected. */
int text_refuse(const char *text, size_t size, const char *path, const char *wanted);
