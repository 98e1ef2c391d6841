/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a document in the dialect of GitHub and GitLab, for an issue's page. Pictures are left
 * out; their figures are in the tables. What an issue cannot hold is cut from the end, where the
 * details are.
 */
#include "report/document_impl.h"

#include "base/alloc.h"
#include "base/markup.h"
#include "base/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Room for what is said of parts that were left out, and for the last line. */
#define TAIL_ROOM 600
/* The longest title, escaped: names in a recording may be of any length. */
#define TITLE_ROOM 2000
/* A wider matrix does not fit a page of an issue. */
#define MAX_COLUMNS 24

struct sheet {
	const struct page_format *format;
	struct strbuf *out;
};

/* ---- text ---- */

/* Behind the @ of what would be a mention of somebody. */
#define PARTED "<!-- -->"

/* What Markdown could take for markup anywhere in a line. */
static void put_character(struct strbuf *out, char c)
{
	if (strchr("\\*_[]#~|!`$", c))
		strbuf_putc(out, '\\');
	if (c == '\n') /* ends bold, a summary and a heading: put_rich has breaks */
		strbuf_putc(out, ' ');
	else if (c == '@')
		strbuf_puts(out, "@" PARTED);
	else
		strbuf_putc(out, c);
}

/* Where a backslash keeps a line's beginning from being a list or the underline of a heading. */
static size_t mark_at(const char *line)
{
	size_t digits = strspn(line, "0123456789");

	return strchr("+-=", *line) || (digits && line[digits] && strchr(".)", line[digits]))
		       ? digits
		       : SIZE_MAX;
}

/* Escaped for HTML, which Markdown passes through. */
static void put_html(const struct page_format *format, const char *text, struct strbuf *out)
{
	AUTO_STRBUF struct strbuf filtered = {0};

	if (format->filter)
		format->filter(format->filter_arg, text, &filtered);
	markup_puts(out, format->filter ? strbuf_str(&filtered) : text);
}

/* Escaped for HTML first, and then for Markdown. */
static void put_plain(struct sheet *m, const char *s, size_t n, bool line_start)
{
	AUTO_FREE char *text = xstrndup(s, n);
	AUTO_STRBUF struct strbuf safe = {0};
	size_t mark;

	put_html(m->format, text, &safe);
	mark = line_start && safe.len ? mark_at(safe.text) : SIZE_MAX;
	for (size_t i = 0; i < safe.len;) {
		/* A reference of markup.c stays whole. */
		size_t k = safe.text[i] == '&' ? strcspn(safe.text + i, ";") + 1 : 1;

		if (i == mark)
			strbuf_putc(m->out, '\\');
		if (k == 1)
			put_character(m->out, safe.text[i]);
		else
			strbuf_add(m->out, safe.text + i, k);
		i += k;
	}
}

static size_t longest_run(const char *s, size_t n, char c)
{
	size_t most = 0, run = 0;

	for (size_t i = 0; i < n; i++) {
		run = s[i] == c ? run + 1 : 0;
		most = run > most ? run : most;
	}
	return most;
}

/* Code keeps its text as it is; in a table a bar has to be escaped even there. */
static void put_code(struct sheet *m, const char *s, size_t n, bool in_table)
{
	AUTO_FREE char *text = xstrndup(s, n);
	AUTO_STRBUF struct strbuf filtered = {0};
	const char *code = text;

	if (m->format->filter) {
		m->format->filter(m->format->filter_arg, text, &filtered);
		code = strbuf_str(&filtered);
	}
	strbuf_putc(m->out, '`');
	for (; *code; code++) {
		if (*code == '|' && in_table)
			strbuf_putc(m->out, '\\');
		strbuf_putc(m->out, *code == '`' ? '\'' : *code);
	}
	strbuf_putc(m->out, '`');
}

static void put_rich(struct sheet *m, const char *s, bool line_start, bool in_table)
{
	while (*s) {
		size_t code = command_length(s), n = code ? code : strcspn(s, "`\n");

		if (code) {
			put_code(m, s + 1, n - 2, in_table);
		} else if (n) {
			put_plain(m, s, n, line_start);
		} else {
			strbuf_puts(m->out, *s == '\n' ? (s[1] ? "<br>" : "") : "\\`");
			n = 1;
		}
		line_start = false;
		s += n;
	}
}

/* ---- blocks ---- */

static void put_bold(struct sheet *m, const char *s, size_t n)
{
	while (n && s[n - 1] == ' ')
		n--;
	if (!n)
		return;
	strbuf_puts(m->out, "**");
	put_plain(m, s, n, false);
	strbuf_puts(m->out, "**");
}

static void put_heading(struct sheet *m, const struct block *b)
{
	strbuf_puts(m->out, "#### ");
	put_rich(m, b->text, false, false);
	strbuf_puts(m->out, "\n\n");
}

static void put_section(struct sheet *m, const struct block *b)
{
	strbuf_puts(m->out, "### ");
	put_rich(m, b->text, false, false);
	strbuf_puts(m->out, "\n\n");
}

static bool table_fits(const struct block *b)
{
	return b->columns <= MAX_COLUMNS;
}

static void put_paragraph(struct sheet *m, const struct block *b)
{
	if (b->is_caption && !table_fits(&b[-1]))
		return;
	put_rich(m, b->text, true, false);
	strbuf_puts(m->out, "\n\n");
}

static void put_lead(struct sheet *m, const struct block *b)
{
	strbuf_puts(m->out, "> ");
	put_rich(m, b->text, true, false);
	strbuf_puts(m->out, "\n\n");
}

static void put_item(struct sheet *m, const struct block *b)
{
	put_bold(m, b->label, strlen(b->label));
	strbuf_puts(m->out, " ");
	put_rich(m, b->text, false, false);
	strbuf_puts(m->out, "\n\n");
}

/* The fence is longer than any in the text. */
static void put_verbatim(struct sheet *m, const struct block *b)
{
	AUTO_STRBUF struct strbuf filtered = {0};
	const char *text = b->text;
	size_t fence;

	if (m->format->filter) {
		m->format->filter(m->format->filter_arg, text, &filtered);
		text = strbuf_str(&filtered);
	}
	fence = longest_run(text, strlen(text), '`') + 1;
	fence = fence < 3 ? 3 : fence;
	for (size_t i = 0; i < fence; i++)
		strbuf_putc(m->out, '`');
	strbuf_printf(m->out, "text\n%s%s", text,
		      *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
	for (size_t i = 0; i < fence; i++)
		strbuf_putc(m->out, '`');
	strbuf_puts(m->out, "\n\n");
}

static void put_rule(struct sheet *m, const struct block *b)
{
	for (size_t i = 0; i < b->columns; i++)
		strbuf_puts(m->out, "|---");
	strbuf_puts(m->out, "|\n");
}

static void put_row(struct sheet *m, const struct block *b, size_t first)
{
	for (size_t i = first; i < first + b->columns; i++) {
		strbuf_puts(m->out, "| ");
		if (i < b->cell_n) {
			const char *text = b->cells[i].text + strspn(b->cells[i].text, " ");

			put_rich(m, text, false, true);
			strbuf_puts(m->out, strcmp(cell_sign(&b->cells[i]), " !") == 0
						    ? " \\!"
						    : cell_sign(&b->cells[i]));
		}
		strbuf_putc(m->out, ' ');
	}
	strbuf_puts(m->out, "|\n");
}

/* Markdown has no table without a head: an empty one then. */
static void put_table(struct sheet *m, const struct block *b)
{
	bool head = table_has_head(b);

	if (!table_fits(b)) {
		strbuf_printf(
			m->out,
			"A table of %zu columns does not fit here; the HTML report has it.\n\n",
			b->columns);
		return;
	}
	if (head) {
		put_row(m, b, 0);
	} else {
		for (size_t i = 0; i < b->columns; i++)
			strbuf_puts(m->out, "| ");
		strbuf_puts(m->out, "|\n");
	}
	put_rule(m, b);
	for (size_t i = head ? b->columns : 0; i < b->cell_n; i += b->columns)
		put_row(m, b, i);
	strbuf_puts(m->out, "\n");
}

/* A line of HTML, in which nothing is Markdown but that somebody is mentioned. */
static void put_summary(struct sheet *m, const char *text)
{
	AUTO_STRBUF struct strbuf safe = {0};

	put_html(m->format, text, &safe);
	for (size_t i = 0; i < safe.len; i++) {
		strbuf_putc(m->out, safe.text[i] == '\n' ? ' ' : safe.text[i]);
		if (safe.text[i] == '@')
			strbuf_puts(m->out, PARTED);
	}
}

static void put_begin(struct sheet *m, const struct block *b)
{
	if (b->group != GROUP_FOLD)
		return;
	strbuf_puts(m->out, "<details><summary>");
	put_summary(m, b->text);
	strbuf_puts(m->out, "</summary>\n\n");
}

static void (*const put_block[BLOCK_KIND_N])(struct sheet *m, const struct block *b) = {
	[BLOCK_HEADING] = put_heading,   [BLOCK_PARAGRAPH] = put_paragraph, [BLOCK_ITEM] = put_item,
	[BLOCK_VERBATIM] = put_verbatim, [BLOCK_TABLE] = put_table,         [BLOCK_LEAD] = put_lead,
	[BLOCK_SECTION] = put_section,   [BLOCK_BEGIN] = put_begin,
};

/* ---- the whole ---- */

/* A sheet with the folds that are open, so that each is closed whatever is left out. */
struct writing {
	struct sheet sheet;
	enum page_group open[16];
	size_t depth;
	size_t left_out;
};

static void put_end(struct writing *w)
{
	if (w->depth && w->open[--w->depth] == GROUP_FOLD)
		strbuf_puts(w->sheet.out, "</details>\n\n");
}

/* False: it does not fit any more. */
static bool put_if_it_fits(struct writing *w, const struct block *b)
{
	AUTO_STRBUF struct strbuf one = {0};
	struct sheet sheet = {w->sheet.format, &one};

	put_block[b->kind](&sheet, b);
	if (w->sheet.out->len + one.len + TAIL_ROOM > MARKDOWN_MAX)
		return false;
	strbuf_puts(w->sheet.out, strbuf_str(&one));
	return true;
}

/* A section of nothing but a drawing, which Markdown does not show. */
static bool is_drawn(const struct document *d, size_t i)
{
	return d->blocks[i].kind == BLOCK_SECTION && i + 1 < d->block_n &&
	       d->blocks[i + 1].kind == BLOCK_DRAWING;
}

static void put_one(struct writing *w, const struct block *b)
{
	if (b->kind == BLOCK_END) {
		put_end(w);
	} else if (put_block[b->kind] && (w->left_out || !put_if_it_fits(w, b))) {
		w->left_out++;
	}
	if (b->kind == BLOCK_BEGIN && w->depth < sizeof(w->open) / sizeof(*w->open))
		/* What was left out is not closed either. */
		w->open[w->depth++] = w->left_out ? GROUP_CARD : b->group;
}

static void put_title(struct sheet *m, const char *title)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct sheet sheet = {m->format, &text};

	put_rich(&sheet, title, false, false);
	strbuf_printf(m->out, "## %s\n\n", text.len <= TITLE_ROOM ? strbuf_str(&text) : "onehop");
}

void document_write_markdown(const struct document *d, const struct page_format *format,
			     struct strbuf *out)
{
	struct writing w = {.sheet = {format, out}};

	put_title(&w.sheet, document_title_of(d));
	for (size_t i = 0; i < d->block_n; i++) {
		const struct block *b = &d->blocks[i];

		if (b->kind == BLOCK_BEGIN && b->group == GROUP_TEXT)
			i = end_of_group(d, i);
		else if (!is_drawn(d, i))
			put_one(&w, b);
	}
	if (w.left_out)
		strbuf_printf(
			out,
			"%zu more parts do not fit into an issue; the HTML report has them.\n\n",
			w.left_out);
	if (format->made) {
		strbuf_puts(out, "<sub>");
		put_plain(&w.sheet, format->made, strlen(format->made), false);
		strbuf_puts(out, "</sub>\n");
	}
}
