/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of a text. */
#include "unlock/edit.h"

#include <string.h>

#define CONTEXT 3 /* lines */

void edits_apply(const char *old, size_t size, const struct edit *edits, size_t n,
		 struct strbuf *out)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		strbuf_add(out, old + at, edits[i].from - at);
		strbuf_puts(out, edits[i].text);
		at = edits[i].to;
	}
	strbuf_add(out, old + at, size - at);
}

static size_t line_start(const char *text, size_t at)
{
	while (at > 0 && text[at - 1] != '\n')
		at--;
	return at;
}

const char *indent_of(const char *text, size_t at, size_t *ret_size)
{
	size_t start = line_start(text, at), n = 0;

	while (start + n < at && (text[start + n] == ' ' || text[start + n] == '\t'))
		n++;
	*ret_size = n;
	return text + start;
}

/* ---- the diff ---- */

/* Lines of the old text that differ, and what replaces it. */
struct change_lines {
	size_t from, to; /* bytes of the old text */
	struct strbuf now;
	size_t now_at, now_n; /* bytes of `now` */
	size_t end;           /* the first edit behind them */
};

struct hunk {
	const char *old;
	size_t size, from, to; /* bytes, with context */
	size_t old_line, new_line, old_n, new_n;
	struct strbuf body;
};

static size_t line_end(const char *text, size_t size, size_t at)
{
	const char *end = at < size ? memchr(text + at, '\n', size - at) : NULL;

	return end ? (size_t)(end - text) + 1 : size;
}

static size_t count_lines(const char *text, size_t n)
{
	size_t lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines + (n > 0 && text[n - 1] != '\n');
}

static size_t lines_before(const char *text, size_t at, unsigned n)
{
	at = line_start(text, at);
	for (; n > 0 && at > 0; n--)
		at = line_start(text, at - 1);
	return at;
}

static size_t lines_behind(const char *text, size_t size, size_t at, unsigned n)
{
	for (; n > 0 && at < size; n--)
		at = line_end(text, size, at);
	return at;
}

/* Each line of a text behind the sign; returns how many. */
static size_t add_lines(struct strbuf *out, char sign, const char *text, size_t size)
{
	for (size_t at = 0, end; at < size; at = end) {
		end = line_end(text, size, at);
		strbuf_putc(out, sign);
		strbuf_add(out, text + at, end - at);
	}
	if (size && text[size - 1] != '\n')
		strbuf_puts(out, "\n\\ No newline at end of file\n");
	return count_lines(text, size);
}

/* The lines that the edits from `first` on touch, as long as they share one. */
static struct change_lines touched_lines(const struct hunk *h, const struct edit *edits, size_t n,
					 size_t first)
{
	struct change_lines c = {.end = first};
	size_t at;

	at = c.from = c.to = line_start(h->old, edits[first].from);
	while (c.end < n && (c.end == first || line_start(h->old, edits[c.end].from) < c.to)) {
		const struct edit *e = &edits[c.end++];
		size_t end = line_end(h->old, h->size, e->to > e->from ? e->to - 1 : e->to);

		strbuf_add(&c.now, h->old + at, e->from - at);
		strbuf_puts(&c.now, e->text);
		at = e->to;
		c.to = end > c.to ? end : c.to;
	}
	strbuf_add(&c.now, h->old + at, c.to - at);
	c.now_n = c.now.len;
	return c;
}

/* Equal lines at the beginning are context. */
static void trim_head(const struct hunk *h, struct change_lines *c)
{
	while (c->from < c->to) {
		size_t n = line_end(h->old, c->to, c->from) - c->from;

		if (n > c->now_n || memcmp(h->old + c->from, c->now.text + c->now_at, n) != 0 ||
		    h->old[c->from + n - 1] != '\n')
			break;
		c->from += n;
		c->now_at += n;
		c->now_n -= n;
	}
}

/* And at the end. */
static void trim_tail(const struct hunk *h, struct change_lines *c)
{
	while (c->from < c->to) {
		size_t n = c->to - line_start(h->old, c->to - 1);
		const char *now = c->now.text + c->now_at;

		if (n > c->now_n || memcmp(h->old + c->to - n, now + c->now_n - n, n) != 0 ||
		    (n < c->now_n && now[c->now_n - n - 1] != '\n'))
			break;
		c->to -= n;
		c->now_n -= n;
	}
}

static struct change_lines change_at(const struct hunk *h, const struct edit *edits, size_t n,
				     size_t first)
{
	struct change_lines c = touched_lines(h, edits, n, first);

	trim_head(h, &c);
	trim_tail(h, &c);
	return c;
}

static void add_change(struct hunk *h, const struct change_lines *c)
{
	h->old_n += add_lines(&h->body, '-', h->old + c->from, c->to - c->from);
	h->new_n += add_lines(&h->body, '+', strbuf_str(&c->now) + c->now_at, c->now_n);
}

static void add_context(struct hunk *h, size_t from, size_t to)
{
	size_t n = add_lines(&h->body, ' ', h->old + from, to - from);

	h->old_n += n;
	h->new_n += n;
}

static void end_hunk(struct hunk *h, struct strbuf *out)
{
	strbuf_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n", h->old_line, h->old_n, h->new_line,
		      h->new_n);
	strbuf_add(out, strbuf_str(&h->body), h->body.len);
	strbuf_done(&h->body);
	h->body = (struct strbuf){0};
}

/* One hunk from the first edit on, as long as the next change begins within its context. */
static size_t add_hunk(struct hunk *h, const struct edit *edits, size_t n, size_t i,
		       struct strbuf *out)
{
	struct change_lines c = change_at(h, edits, n, i);
	size_t at = lines_before(h->old, c.from, CONTEXT), shift = h->new_line - h->old_line;

	h->old_line = 1 + count_lines(h->old, at);
	h->new_line = h->old_line + shift;
	h->old_n = h->new_n = 0;
	for (;;) {
		add_context(h, at, c.from);
		add_change(h, &c);
		strbuf_done(&c.now);
		at = c.to;
		i = c.end;
		if (i == n || lines_behind(h->old, h->size, at, 2 * CONTEXT) <
				      line_start(h->old, edits[i].from))
			break;
		c = change_at(h, edits, n, i);
	}
	add_context(h, at, lines_behind(h->old, h->size, at, CONTEXT));
	shift += h->new_n - h->old_n;
	end_hunk(h, out);
	h->new_line = h->old_line + shift;
	return i;
}

void edits_diff(const char *path, const char *old, size_t size, const struct edit *edits, size_t n,
		struct strbuf *out)
{
	struct hunk h = {.old = old, .size = size, .old_line = 1, .new_line = 1};

	if (n)
		strbuf_printf(out, "--- a/%s\n+++ b/%s\n", path, path);
	for (size_t i = 0; i < n;)
		i = add_hunk(&h, edits, n, i, out);
}
