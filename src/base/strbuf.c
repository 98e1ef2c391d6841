/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include "base/alloc.h"

#include <string.h>

static void make_room(struct strbuf *b, size_t n)
{
	size_t need = b->len + n + 1;

	if (need <= b->size)
		return;
	b->size = need > 2 * b->size ? need : 2 * b->size;
	b->text = xrealloc(b->text, b->size, 1);
}

void strbuf_add(struct strbuf *b, const char *s, size_t n)
{
	make_room(b, n);
	if (n) /* else s may be NULL */
		memcpy(b->text + b->len, s, n);
	b->len += n;
	b->text[b->len] = '\0';
}

void strbuf_puts(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_putc(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	make_room(b, 64);
	va_copy(again, ap);
	n = vsnprintf(b->text + b->len, b->size - b->len, fmt, ap);
	if (n >= 0 && (size_t)n >= b->size - b->len) {
		make_room(b, (size_t)n);
		vsnprintf(b->text + b->len, b->size - b->len, fmt, again);
	}
	va_end(again);
	if (n > 0)
		b->len += (size_t)n;
	b->text[b->len] = '\0';
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(b, fmt, ap);
	va_end(ap);
}

void strbuf_shell_word(struct strbuf *b, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

	if (*word && !word[strspn(word, plain)]) {
		strbuf_puts(b, word);
		return;
	}
	strbuf_putc(b, '\'');
	for (; *word; word++)
		if (*word == '\'')
			strbuf_puts(b, "'\\''");
		else
			strbuf_putc(b, *word);
	strbuf_putc(b, '\'');
}

void strbuf_done(struct strbuf *b)
{
	free(b->text);
	*b = (struct strbuf){0};
}

const char *strbuf_str(const struct strbuf *b)
{
	return b->text ? b->text : "";
}
