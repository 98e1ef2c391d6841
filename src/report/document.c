/* SPDX-License-Identifier: Apache-2.0 */
/* Builds documents: every text is cleaned and copied when it is added. */
#include "report/document.h"
#include "report/document_impl.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdlib.h>

struct document *document_new(void)
{
	struct document *d = xcalloc(1, sizeof(*d));

	d->arena = arena_new();
	return d;
}

void document_free(struct document *d)
{
	if (!d)
		return;
	arena_free(d->arena);
	free(d);
}

/* Invisible, and what follows is shown in another order, or on another line. */
static bool reorders(unsigned code)
{
	return code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* The length of the UTF-8 sequence at s, 0 when it is broken, overlong or a control character. */
static size_t utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char mask, lead;
		unsigned least;
	} forms[] = {{0x80, 0x00, 0x20},
		     {0xe0, 0xc0, 0xa0},
		     {0xf0, 0xe0, 0x800},
		     {0xf8, 0xf0, 0x10000}};

	for (size_t n = 0; n < sizeof(forms) / sizeof(forms[0]); n++) {
		unsigned code = s[0] & (unsigned char)~forms[n].mask;

		if ((s[0] & forms[n].mask) != forms[n].lead)
			continue;
		for (size_t i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (s[i] & 0x3f);
		}
		if (code < forms[n].least || code == 0x7f || code > 0x10ffff ||
		    (code >= 0xd800 && code < 0xe000) || reorders(code))
			return 0;
		return n + 1;
	}
	return 0;
}

void text_clean(char *text)
{
	for (char *s = text; *s;) {
		size_t n = *s == '\n' ? 1 : utf8_length((const unsigned char *)s);

		if (!n) {
			*s = *s == '\t' ? ' ' : '?';
			n = 1;
		}
		s += n;
	}
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
