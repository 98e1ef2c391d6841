/* SPDX-License-Identifier: Apache-2.0 */
/* Builds documents: every text is cleaned and copied when it is added. */
#include "report/document.h"
#include "report/document_impl.h"

#include "base/alloc.h"
#include "base/markup.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct document *document_new(void)
{
	struct document *d = xcalloc(1, sizeof(*d));

	d->arena = arena_new();
	return d;
}

struct document *document_new_page(void)
{
	struct document *d = document_new();

	d->is_page = true;
	return d;
}

bool document_is_page(const struct document *d)
{
	return d->is_page;
}

void document_free(struct document *d)
{
	if (!d)
		return;
	arena_free(d->arena);
	free(d);
}

static struct block *add_block(struct document *d, enum block_kind kind, unsigned indent)
{
	struct block *b = ARENA_PUSH(d->arena, d->blocks, d->block_n);

	*b = (struct block){.kind = kind, .indent = indent, .label = "", .text = ""};
	return b;
}

__attribute__((format(printf, 2, 0))) static const char *format_text(struct document *d,
								     const char *fmt, va_list ap)
{
	char *text = arena_vprintf(d->arena, fmt, ap);

	text_clean(text);
	return text;
}

void document_heading(struct document *d, const char *fmt, ...)
{
	struct block *b = add_block(d, BLOCK_HEADING, 0);
	va_list ap;

	b->style = STYLE_STRONG;
	va_start(ap, fmt);
	b->text = format_text(d, fmt, ap);
	va_end(ap);
}

void document_paragraph(struct document *d, enum style style, unsigned indent, const char *fmt, ...)
{
	struct block *b = add_block(d, BLOCK_PARAGRAPH, indent);
	va_list ap;

	b->style = style;
	va_start(ap, fmt);
	b->text = format_text(d, fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 6, 0))) static void add_item(struct document *d,
							   enum style label_style, enum style style,
							   unsigned indent, const char *label,
							   const char *fmt, va_list ap)
{
	struct block *b = add_block(d, BLOCK_ITEM, indent);
	char *copy = arena_strdup(d->arena, label);

	text_clean(copy);
	b->label = copy;
	b->label_style = label_style;
	b->style = style;
	b->text = format_text(d, fmt, ap);
}

void document_item(struct document *d, enum style label_style, unsigned indent, const char *label,
		   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_item(d, label_style, STYLE_PLAIN, indent, label, fmt, ap);
	va_end(ap);
}

void document_styled_item(struct document *d, enum style label_style, enum style style,
			  unsigned indent, const char *label, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_item(d, label_style, style, indent, label, fmt, ap);
	va_end(ap);
}

void document_caption(struct document *d, const char *fmt, ...)
{
	struct block *b = add_block(d, BLOCK_PARAGRAPH, 0);
	va_list ap;

	b->style = STYLE_DIM;
	b->is_caption = d->block_n > 1 && b[-1].kind == BLOCK_TABLE;
	va_start(ap, fmt);
	b->text = format_text(d, fmt, ap);
	va_end(ap);
}

void document_hint(struct document *d, const char *hint)
{
	d->blocks[d->block_n - 1].hint = hint;
}

void document_verbatim(struct document *d, unsigned indent, const char *text)
{
	char *copy = arena_strdup(d->arena, text);

	text_clean(copy);
	add_block(d, BLOCK_VERBATIM, indent)->text = copy;
}

void document_blank(struct document *d)
{
	if (d->block_n && d->blocks[d->block_n - 1].kind != BLOCK_BLANK)
		add_block(d, BLOCK_BLANK, 0);
}

void document_table(struct document *d, unsigned indent, size_t columns, unsigned gap)
{
	struct block *b = add_block(d, BLOCK_TABLE, indent);

	b->columns = columns;
	b->gap = gap;
}

void document_matrix(struct document *d, size_t columns, unsigned gap)
{
	document_table(d, 0, columns, gap);
	d->blocks[d->block_n - 1].is_matrix = true;
}

static struct block *open_table(struct document *d)
{
	struct block *b = d->block_n ? &d->blocks[d->block_n - 1] : NULL;

	return b && b->kind == BLOCK_TABLE ? b : NULL;
}

void document_row(struct document *d)
{
	struct block *b = open_table(d);

	while (b && b->cell_n % b->columns)
		ARENA_PUSH(d->arena, b->cells, b->cell_n)->text = "";
}

void document_titles(struct document *d, const char *const *titles)
{
	const struct block *b = open_table(d);

	document_row(d);
	for (size_t i = 0; b && i < b->columns; i++)
		document_cell(d, STYLE_DIM, "%s", titles[i]);
}

void document_cell(struct document *d, enum style style, const char *fmt, ...)
{
	struct block *b = open_table(d);
	struct cell *c;
	va_list ap;

	if (!b)
		return;
	va_start(ap, fmt);
	c = ARENA_PUSH(d->arena, b->cells, b->cell_n);
	c->style = style;
	c->text = format_text(d, fmt, ap);
	va_end(ap);
}

/* ---- pages ---- */

void document_title(struct document *d, const char *fmt, ...)
{
	va_list ap;

	if (!d->is_page)
		return;
	va_start(ap, fmt);
	d->title = format_text(d, fmt, ap);
	va_end(ap);
}

/* Only a page has it. */
__attribute__((format(printf, 3, 0))) static void
add_page_block(struct document *d, const struct block *block, const char *fmt, va_list ap)
{
	struct block *b;

	if (!d->is_page)
		return;
	b = add_block(d, block->kind, 0);
	b->group = block->group;
	b->style = block->style;
	b->anchor = block->anchor ? arena_strdup(d->arena, block->anchor) : NULL;
	b->text = format_text(d, fmt, ap);
}

void document_lead(struct document *d, enum style style, const char *fmt, ...)
{
	const struct block block = {.kind = BLOCK_LEAD, .style = style};
	va_list ap;

	va_start(ap, fmt);
	add_page_block(d, &block, fmt, ap);
	va_end(ap);
}

void document_section(struct document *d, const char *anchor, const char *fmt, ...)
{
	const struct block block = {.kind = BLOCK_SECTION, .anchor = anchor};
	va_list ap;

	va_start(ap, fmt);
	add_page_block(d, &block, fmt, ap);
	va_end(ap);
}

void document_link(struct document *d, const char *anchor, const char *fmt, ...)
{
	const struct block block = {.kind = BLOCK_LINK, .anchor = anchor};
	va_list ap;

	va_start(ap, fmt);
	add_page_block(d, &block, fmt, ap);
	va_end(ap);
}

void document_begin(struct document *d, enum page_group group, enum style style, const char *anchor,
		    const char *fmt, ...)
{
	const struct block block = {.kind = BLOCK_BEGIN,
				    .group = group,
				    .style = style,
				    .anchor = anchor};
	va_list ap;

	va_start(ap, fmt);
	add_page_block(d, &block, fmt, ap);
	va_end(ap);
}

void document_end(struct document *d)
{
	if (d->is_page)
		add_block(d, BLOCK_END, 0);
}

void document_unit(struct document *d, const char *unit)
{
	struct block *b = open_table(d);

	if (b)
		b->unit = arena_strdup(d->arena, unit);
}

static struct cell *last_cell(struct document *d)
{
	struct block *b = open_table(d);

	return b && b->cell_n ? &b->cells[b->cell_n - 1] : NULL;
}

void document_value(struct document *d, enum style style, double value, double expected,
		    const char *fmt, ...)
{
	struct block *b = open_table(d);
	struct cell *c;
	va_list ap;

	if (!b)
		return;
	va_start(ap, fmt);
	c = ARENA_PUSH(d->arena, b->cells, b->cell_n);
	*c = (struct cell){.style = style, .measured = true, .value = value, .expected = expected};
	c->text = format_text(d, fmt, ap);
	va_end(ap);
}

void document_cell_anchor(struct document *d, const char *fmt, ...)
{
	struct cell *c = d->is_page ? last_cell(d) : NULL;
	va_list ap;

	if (!c)
		return;
	va_start(ap, fmt);
	c->anchor = arena_vprintf(d->arena, fmt, ap);
	va_end(ap);
}

void document_chart(struct document *d, enum chart chart, const char *unit, const char *fmt, ...)
{
	struct block *b;
	va_list ap;

	if (!d->is_page)
		return;
	b = add_block(d, BLOCK_CHART, 0);
	b->chart = chart;
	b->unit = arena_strdup(d->arena, unit);
	va_start(ap, fmt);
	b->text = format_text(d, fmt, ap);
	va_end(ap);
}

void document_point(struct document *d, const struct chart_point *p, const char *fmt, ...)
{
	struct block *b = d->block_n ? &d->blocks[d->block_n - 1] : NULL;
	struct point *new;
	va_list ap;

	if (!b || b->kind != BLOCK_CHART)
		return;
	new = ARENA_PUSH(d->arena, b->points, b->point_n);
	new->at = *p;
	va_start(ap, fmt);
	new->label = format_text(d, fmt, ap);
	va_end(ap);
}

void document_drawing(struct document *d, const char *svg)
{
	if (d->is_page)
		add_block(d, BLOCK_DRAWING, 0)->text = arena_strdup(d->arena, svg);
}

/* ---- for the writers ---- */

size_t command_length(const char *s)
{
	size_t n = *s == '`' ? strcspn(s + 1, "`\n") : 0;

	return n && s[n + 1] == '`' ? n + 2 : 0;
}

bool table_has_head(const struct block *b)
{
	size_t n = b->columns < b->cell_n ? b->columns : b->cell_n;

	for (size_t i = 0; i < n; i++)
		if (b->cells[i].style != STYLE_DIM)
			return false;
	return n > 0 && b->cell_n > b->columns;
}

const char *cell_sign(const struct cell *c)
{
	if (!c->measured)
		return "";
	return c->style == STYLE_BAD ? " x" : c->style == STYLE_WARN ? " !" : "";
}

bool table_has_figures(const struct block *b)
{
	for (size_t i = 0; i < b->cell_n; i++)
		if (b->cells[i].measured)
			return true;
	return false;
}

const char *document_title_of(const struct document *d)
{
	return d->title ? d->title : "onehop";
}

size_t end_of_group(const struct document *d, size_t at)
{
	size_t depth = 1;

	while (depth && ++at < d->block_n) {
		depth += d->blocks[at].kind == BLOCK_BEGIN;
		depth -= d->blocks[at].kind == BLOCK_END;
	}
	return at;
}
