/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One document model for everything that people read: headings, paragraphs, lists, tables,
 * pictures.
 */
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
 * An opaque list of blocks; text is copied. Control characters, those that reorder text and broken
 * UTF-8 become '?', so that no recording can steer a terminal; a newline is a hard line break.
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
/*
 * A paragraph that explains the table before it; a page that leaves that out leaves this out too.
 */
void document_caption(struct document *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * How text shows more than the last paragraph or item, "-v shows all"; a page, where no option can
 * be given, does not say it.
 */
void document_hint(struct document *d, const char *hint);
void document_verbatim(struct document *d, unsigned indent, const char *text);
/* An empty line; two in a row, or one at the very start, count as one or none. */
void document_blank(struct document *d);

/*
 * A table: columns are as wide as their widest cell, `gap` apart; the last column may wrap. A first
 * row of which every cell is STYLE_DIM names the columns.
 */
void document_table(struct document *d, unsigned indent, size_t columns, unsigned gap);
/*
 * A table whose first column names the rows. Where it is too wide, groups of columns follow each
 * other.
 */
void document_matrix(struct document *d, size_t columns, unsigned gap);
/* Starts a row; then one cell after the other. Missing cells are empty. */
void document_row(struct document *d);
void document_cell(struct document *d, enum style style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A row of titles, as many as the table has columns. */
void document_titles(struct document *d, const char *const *titles);

/* ---- pages: HTML and Markdown ---- */

/*
 * A document that can be written as a page too. What follows does nothing in any other document,
 * and none of it shows in text, so that reports add it without asking; what is costly to make asks
 * document_is_page.
 */
struct document *document_new_page(void);
bool document_is_page(const struct document *d);

/* The page's title. The last one counts; a page needs one. */
void document_title(struct document *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The answer, in front of everything else. */
void document_lead(struct document *d, enum style style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A heading that text does not need. */
void document_section(struct document *d, const char *anchor, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A link to another part; not written if nothing has that anchor. */
void document_link(struct document *d, const char *anchor, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What belongs together, up to document_end. */
enum page_group {
	GROUP_CARD, /* one finding; text shows what is in it */
	GROUP_PAGE, /* shown by pages only */
	GROUP_FOLD, /* the same, closed at first; fmt is its summary */
	GROUP_TEXT, /* shown by text only: a page says it elsewhere */
	GROUP_N
};
/* `anchor`: stable from run to run, so that tickets can link to it; NULL: none. */
void document_begin(struct document *d, enum page_group group, enum style style, const char *anchor,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void document_end(struct document *d);

/* What the cells of the open matrix measure: pages draw it as a heat map. */
void document_unit(struct document *d, const char *unit);
/*
 * A cell that holds a figure, and what it should be (0: unknown). Text shows fmt, as of any other
 * cell.
 */
void document_value(struct document *d, enum style style, double value, double expected,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The anchor of the cell that was added last. */
void document_cell_anchor(struct document *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

enum chart {
	CHART_EXPECTED, /* bars, with a line at what is expected */
	CHART_CHANGE,   /* two bars each: before, after */
	CHART_SPREAD, /* from the least to the greatest sample, the median's interval, the median */
	CHART_N
};

struct chart_point {
	double value;       /* measured, after, median */
	double other;       /* expected, before; 0: unknown */
	double low, high;   /* of the median's interval; NAN: unknown */
	double least, most; /* of the samples; NAN: unknown */
	enum style style;   /* STYLE_WARN, STYLE_BAD: falls short, regressed */
};

void document_chart(struct document *d, enum chart chart, const char *unit, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void document_point(struct document *d, const struct chart_point *p, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * An SVG whose texts are escaped (base/markup.h) and whose ids begin with DRAWING_ID; it is copied.
 */
#define DRAWING_ID "box-"
void document_drawing(struct document *d, const char *svg);

/* What a page says of itself, and what its texts pass through first. */
struct page_format {
	const char *made; /* how and when it was made: a sentence */
	void (*filter)(void *arg, const char *text, struct strbuf *out); /* NULL: none */
	void *filter_arg;
};

/* One file without scripts, links to elsewhere, or anything to load. */
void document_write_html(const struct document *d, const struct page_format *format,
			 struct strbuf *out);
/*
 * GitHub's and GitLab's dialect, at most MARKDOWN_MAX characters: what comes last is left out
 * first.
 */
#define MARKDOWN_MAX 60000
void document_write_markdown(const struct document *d, const struct page_format *format,
			     struct strbuf *out);

/* ---- text ---- */

#define TEXT_DEFAULT_WIDTH 80

struct text_format {
	unsigned width; /* columns to wrap at; 0: 80 */
	bool colour;
};

void document_write_text(const struct document *d, const struct text_format *format,
			 struct strbuf *out);
