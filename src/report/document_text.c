/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a document as text for a terminal or a file. */
#include "report/document_impl.h"

#include "base/alloc.h"
#include "base/strbuf.h"

#include <string.h>

/* Text that wraps keeps at least this many columns, however deep it is indented. */
#define MIN_TEXT_WIDTH 20
/* A last cell of several lines that has less than this gets lines of its own, with this indent. */
#define MIN_CELL_WIDTH 16
#define NARROW_INDENT  4

struct writer {
	struct strbuf *out;
	unsigned width;
	bool colour;
};

static const char *const sgr[STYLE_N] = {
	[STYLE_STRONG] = "1", [STYLE_GOOD] = "32", [STYLE_WARN] = "33",
	[STYLE_BAD] = "31",   [STYLE_DIM] = "2",   [STYLE_CODE] = "36",
};

static void style_on(struct writer *w, enum style s)
{
	if (w->colour && sgr[s])
		strbuf_printf(w->out, "\033[%sm", sgr[s]);
}

static void style_off(struct writer *w, enum style s)
{
	if (w->colour && sgr[s])
		strbuf_puts(w->out, "\033[0m");
}

static void pad(struct writer *w, size_t n)
{
	while (n--)
		strbuf_putc(w->out, ' ');
}

/* Columns that n bytes of clean UTF-8 take, one per character. */
static size_t columns_of(const char *s, size_t n)
{
	size_t columns = 0;

	for (size_t i = 0; i < n; i++)
		columns += ((unsigned char)s[i] & 0xc0) != 0x80;
	return columns;
}

/* The length of NAME="A B" at s; 0: there is none. */
static size_t setting_length(const char *s)
{
	const char *value = memmem(s, strcspn(s, " \n"), "=\"", 2), *end;

	if (!value)
		return 0;
	end = value + 2 + strcspn(value + 2, "\"\n");
	return *end == '"' ? (size_t)(end - s) + strcspn(end, " \n") : 0;
}

/* Up to a blank or line break; a command, and NAME="A B", is one word, so that it can be pasted. */
static size_t word_length(const char *s)
{
	size_t open = *s == '(', command = command_length(s + open), setting = setting_length(s);

	if (command)
		return open + command + strcspn(s + open + command, " \n");
	return setting ? setting : strcspn(s, " \n");
}

/*
 * `modprobe nvidia` stays in the sentence; what is longer is easier to copy from a line of its own.
 */
#define COMMAND_IN_SENTENCE 32

static void new_line(struct writer *w, size_t hang)
{
	strbuf_putc(w->out, '\n');
	pad(w, hang);
}

/*
 * A command as it is pasted: whole, and without its quotes and the comma behind. Returns how much
 * of s it was.
 */
static size_t write_command(struct writer *w, const char *s, size_t n)
{
	strbuf_add(w->out, s + 1, n - 2);
	n += strspn(s + n, ",;.:");
	return n + strspn(s + n, " \n");
}

/*
 * What is pasted and does not fit behind the indent starts in the first column, where a terminal
 * breaks it least.
 */
static size_t indent_of(size_t columns, size_t hang, size_t limit)
{
	return hang + columns > limit ? 0 : hang;
}

/*
 * Writes words from column `at` on; lines after the first start at column `hang`. Runs of blanks
 * become one, a newline in the text starts a line, and a long command gets one of its own.
 */
static void write_wrapped(struct writer *w, enum style style, size_t at, size_t hang,
			  const char *text)
{
	size_t limit = w->width > hang + MIN_TEXT_WIDTH ? w->width : hang + MIN_TEXT_WIDTH;
	bool fresh = true; /* nothing on this line yet that a blank would have to part */

	style_on(w, style);
	for (const char *s = text; *s;) {
		size_t n = word_length(s), columns = columns_of(s, n), command = command_length(s);

		if (command > COMMAND_IN_SENTENCE) {
			if (!fresh)
				new_line(w, indent_of(command - 2, hang, limit));
			s += write_command(w, s, command);
			if (*s)
				new_line(w, hang);
			at = hang;
			fresh = true;
			continue;
		}
		if (n && !fresh && at + 1 + columns > limit) {
			at = setting_length(s) ? indent_of(columns, hang, limit) : hang;
			new_line(w, at);
			fresh = true;
		}
		if (n && !fresh) {
			strbuf_putc(w->out, ' ');
			at++;
		}
		strbuf_add(w->out, s, n);
		at += columns;
		fresh = fresh && !n;
		s += n;
		if (*s == '\n' && s[1]) {
			new_line(w, hang);
			at = hang;
			fresh = true;
		}
		s += *s ? 1 : 0;
	}
	style_off(w, style);
	strbuf_putc(w->out, '\n');
}

static void write_text(struct writer *w, const struct block *b, size_t at)
{
	AUTO_STRBUF struct strbuf text = {0};

	strbuf_puts(&text, b->text);
	if (b->hint)
		strbuf_printf(&text, " (%s)", b->hint);
	write_wrapped(w, b->style, at, at, strbuf_str(&text));
}

static void write_paragraph(struct writer *w, const struct block *b)
{
	pad(w, b->indent);
	write_text(w, b, b->indent);
}

static void write_item(struct writer *w, const struct block *b)
{
	size_t hang = b->indent + columns_of(b->label, strlen(b->label)) + 2;

	pad(w, b->indent);
	style_on(w, b->label_style);
	strbuf_puts(w->out, b->label);
	style_off(w, b->label_style);
	pad(w, 2);
	write_text(w, b, hang);
}

static void write_verbatim(struct writer *w, const struct block *b)
{
	for (const char *s = b->text; *s;) {
		size_t n = strcspn(s, "\n");

		if (n)
			pad(w, b->indent);
		strbuf_add(w->out, s, n);
		strbuf_putc(w->out, '\n');
		s += n + (s[n] == '\n');
	}
}

static void write_blank(struct writer *w, const struct block *b)
{
	(void)b;
	strbuf_putc(w->out, '\n');
}

/* Cells behind the row's last one with text are not written, so that no line ends in blanks. */
static size_t cells_in_row(const struct cell *row, size_t n)
{
	while (n && !row[n - 1].text[0])
		n--;
	return n;
}

/*
 * The cells of a row that one part of its table shows: the first, and those from `first` on below
 * `end`.
 */
struct table_part {
	size_t first, end;
};

static void write_row(struct writer *w, const struct block *b, const struct cell *row,
		      struct table_part part, const size_t *widths)
{
	size_t at = b->indent, used = cells_in_row(row, part.end), blanks = b->indent;

	for (size_t i = 0; i < used; i = i ? i + 1 : part.first) {
		const char *text = row[i].text;
		size_t columns = columns_of(text, strlen(text));
		bool wraps = i + 1 == b->columns && !b->is_matrix;

		if (wraps && at + MIN_CELL_WIDTH > w->width && columns > 2ul * MIN_CELL_WIDTH) {
			at = b->indent + NARROW_INDENT;
			new_line(w, at);
		} else {
			pad(w, blanks);
		}
		if (wraps) {
			write_wrapped(w, row[i].style, at, at, text);
			return;
		}
		style_on(w, row[i].style);
		strbuf_puts(w->out, text);
		style_off(w, row[i].style);
		blanks = widths[i] - columns + b->gap;
		at += widths[i] + b->gap;
	}
	strbuf_putc(w->out, '\n');
}

/*
 * As many columns from `first` on as fit the width, at least one; all of a table that is not a
 * matrix.
 */
static struct table_part next_part(const struct writer *w, const struct block *b, size_t first,
				   const size_t *widths)
{
	size_t end = first, at = b->indent + widths[0];

	if (!b->is_matrix)
		return (struct table_part){first, b->columns};
	for (; end < b->columns; end++) {
		at += b->gap + widths[end];
		if (end > first && at > w->width)
			break;
	}
	return (struct table_part){first, end};
}

static void write_part(struct writer *w, const struct block *b, struct table_part part,
		       const size_t *widths)
{
	for (size_t i = 0; i < b->cell_n; i += b->columns) {
		struct table_part row = part;

		if (row.end > b->cell_n - i)
			row.end = b->cell_n - i;
		write_row(w, b, &b->cells[i], row, widths);
	}
}

static void write_table(struct writer *w, const struct block *b)
{
	size_t *widths AUTO_FREE = xcalloc(b->columns, sizeof(*widths));
	struct table_part part = {0};

	for (size_t i = 0; i < b->cell_n; i++) {
		size_t columns = columns_of(b->cells[i].text, strlen(b->cells[i].text));

		if (columns > widths[i % b->columns])
			widths[i % b->columns] = columns;
	}
	do {
		if (part.end)
			strbuf_putc(w->out, '\n');
		part = next_part(w, b, part.end ? part.end : 1, widths);
		write_part(w, b, part, widths);
	} while (part.end < b->columns);
}

static void (*const write_block[BLOCK_LEAD])(struct writer *w, const struct block *b) = {
	[BLOCK_HEADING] = write_paragraph, [BLOCK_PARAGRAPH] = write_paragraph,
	[BLOCK_ITEM] = write_item,         [BLOCK_VERBATIM] = write_verbatim,
	[BLOCK_BLANK] = write_blank,       [BLOCK_TABLE] = write_table,
};

void document_write_text(const struct document *d, const struct text_format *format,
			 struct strbuf *out)
{
	struct writer w = {
		.out = out,
		.width = format->width ? format->width : TEXT_DEFAULT_WIDTH,
		.colour = format->colour,
	};
	const struct block *blank = NULL;

	for (size_t i = 0; i < d->block_n; i++) {
		const struct block *b = &d->blocks[i];

		if (b->kind == BLOCK_BEGIN && (b->group == GROUP_PAGE || b->group == GROUP_FOLD))
			i = end_of_group(d, i);
		if (b->kind >= BLOCK_LEAD)
			continue;
		/* One between two others, however many, and whatever was only for pages there. */
		if (b->kind != BLOCK_BLANK && blank)
			write_block[BLOCK_BLANK](&w, blank);
		blank = b->kind == BLOCK_BLANK && out->len ? b : NULL;
		if (b->kind != BLOCK_BLANK)
			write_block[b->kind](&w, b);
	}
}
