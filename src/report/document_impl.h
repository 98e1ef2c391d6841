/* SPDX-License-Identifier: Apache-2.0 */
/* What a document is made of; for document*.c only. */
#pragma once

#include "report/document.h"

enum block_kind {
	BLOCK_HEADING,
	BLOCK_PARAGRAPH,
	BLOCK_ITEM,
	BLOCK_VERBATIM,
	BLOCK_BLANK,
	BLOCK_TABLE,
	BLOCK_LEAD, /* from here on for pages alone, but for the insides of a card */
	BLOCK_SECTION,
	BLOCK_LINK,
	BLOCK_BEGIN,
	BLOCK_END,
	BLOCK_CHART,
	BLOCK_DRAWING,
	BLOCK_KIND_N,
};

struct cell {
	enum style style;
	const char *text;
	const char *anchor; /* NULL: none */
	bool measured;      /* value holds a figure */
	double value, expected;
};

struct point {
	struct chart_point at;
	const char *label;
};

struct block {
	enum block_kind kind;
	enum style style, label_style;
	unsigned indent;
	const char *label, *text; /* never NULL */
	const char *hint;         /* of a paragraph or item; NULL: none */
	bool is_caption;          /* a paragraph of the table before it */
	size_t columns;           /* tables, from here on */
	unsigned gap;
	struct cell *cells; /* row after row */
	size_t cell_n;
	/* wider than the page: written in parts, each with the first column */
	bool is_matrix;
	const char *unit;   /* of a matrix of figures, of a chart; NULL: none */
	const char *anchor; /* of a section or group; of a link, its target; NULL: none */
	enum page_group group;
	enum chart chart;
	struct point *points;
	size_t point_n;
};

struct document {
	struct arena *arena;
	struct block *blocks;
	size_t block_n;
	bool is_page;
	const char *title; /* NULL: none */
};

/* The length of a command in backquotes at s, both included; 0: there is none. */
size_t command_length(const char *s);
/* The block at which the group that begins at block `at` ends. */
size_t end_of_group(const struct document *d, size_t at);
/* The first row names the columns. */
bool table_has_head(const struct block *b);
/* "!" and "x" for figures whose style says that they fall short or are wrong; "" for others. */
const char *cell_sign(const struct cell *c);
/* Whether any cell of the table holds a figure. */
bool table_has_figures(const struct block *b);
/* The document's title, or the program's name. */
const char *document_title_of(const struct document *d);
