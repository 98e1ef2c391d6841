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
	BLOCK_KIND_N,
};

struct cell {
	enum style style;
	const char *text;
};

struct block {
	enum block_kind kind;
	enum style style, label_style;
	unsigned indent;
	const char *label, *text; /* never NULL */
	size_t columns;           /* tables, from here on */
	unsigned gap;
	struct cell *cells; /* row after row */
	size_t cell_n;
	/* wider than the page: written in parts, each with the first column */
	bool is_matrix;
};

struct document {
	struct arena *arena;
	struct block *blocks;
	size_t block_n;
};
