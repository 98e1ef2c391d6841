/* SPDX-License-Identifier: Apache-2.0 */
/* One document model for everything that people read: headings, paragraphs, lists, tables. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/* How a piece of text is meant; a writer decides what that looks like. */
enum style {
	STYLE_PLAIN,
	STYLE_STRONG,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
	STYLE_DIM,
	STYLE_CODE,
	STYLE_N
};

/*
 * An opaque list of blocks; text is copied. Control characters, those that reorder text and broken UTF-8
 * become '?', so that no recording can steer a terminal; a newline is a hard line break.
 */
struct document;

struct document *document_new(void);
void document_free(struct document *d);

void document_heading(struct document *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Wrapped at the writer's width; indent in columns, for all lines. */
void document_paragraph(struct document *d, enum style style, unsigned indent, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* "label  text", the text wrapped with a hanging indent behind the label's column. */
void document_item(struct document *d, enum style label_style, unsigned indent, const char *label,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The same with a style for the text too. */
void document_styled_item(struct document *d, enum style label_style, enum style style,
			  unsigned indent, const char *label, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
/* Text as it is, not wrapped (commands, matrices). */
void document_verbatim(struct document *d, unsigned indent, const char *text);
/* An empty line; two in a row, or one at the very start, count as one or none. */
void document_blank(struct document *d);

/* A table: columns are as wide as their widest cell, `gap` apart; the last column may wrap. */
void document_table(struct document *d, unsigned indent, size_t columns, unsigned gap);
/* A table whose first column names the rows. Where it is too wide, groups of columns follow each other. */
void document_matrix(struct document *d, size_t columns, unsigned gap);
/* Starts a row; then one cell after the other. Missing cells are empty. */
void document_row(struct document *d);
void document_cell(struct document *d, enum style style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What every text goes through when it is added, in place. A tab becomes a blank. */
void text_clean(char *text);

#define TEXT_DEFAULT_WIDTH 80

struct text_format {
	unsigned width; /* columns to wrap at; 0: 80 */
	bool colour;
};

void document_write_text(const struct document *d, const struct text_format *format,
			 struct strbuf *out);
