/* SPDX-License-Identifier: Apache-2.0 */
/* Cleans and escapes text for terminals, HTML and SVG. */
#include "base/markup.h"

#include "base/strbuf.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Invisible, and what follows is shown in another order, or on another line. */
static bool reorders(unsigned code)
{
	return code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* No text may hold them: XML allows none of them, and HTML calls them an error. */
static bool is_noncharacter(unsigned code)
{
	return (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) == 0xfffe;
}

/* The length of the UTF-8 sequence at s, 0 when it is broken, overlong or a control character. */
static size_t utf8_length(const unsigned char *s, size_t max)
{
	static const struct {
		unsigned char mask, lead;
		unsigned least;
	} forms[] = {{0x80, 0x00, 0x20},
		     {0xe0, 0xc0, 0xa0},
		     {0xf0, 0xe0, 0x800},
		     {0xf8, 0xf0, 0x10000}};

	for (size_t n = 0; n < sizeof(forms) / sizeof(forms[0]) && n < max; n++) {
		unsigned code = s[0] & (unsigned char)~forms[n].mask;

		if ((s[0] & forms[n].mask) != forms[n].lead)
			continue;
		for (size_t i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (s[i] & 0x3f);
		}
		if (code < forms[n].least || code == 0x7f || code > 0x10ffff ||
		    (code >= 0xd800 && code < 0xe000) || reorders(code) || is_noncharacter(code))
			return 0;
		return n + 1;
	}
	return 0;
}

void text_clean(char *text)
{
	/* The NUL at the end ends a sequence that is cut off. */
	for (char *s = text; *s;) {
		size_t n = *s == '\n' ? 1 : utf8_length((const unsigned char *)s, 4);

		if (!n) {
			*s = *s == '\t' ? ' ' : '?';
			n = 1;
		}
		s += n;
	}
}

static const char *const references[] = {
	['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
};

static const char *reference_of(unsigned char c)
{
	return c < sizeof(references) / sizeof(*references) ? references[c] : NULL;
}

void markup_add(struct strbuf *out, const char *s, size_t n)
{
	for (size_t i = 0, k; i < n; i += k) {
		const char *reference = reference_of((unsigned char)s[i]);

		k = s[i] == '\n' ? 1 : utf8_length((const unsigned char *)s + i, n - i);
		if (reference)
			strbuf_puts(out, reference);
		else if (k)
			strbuf_add(out, s + i, k);
		else
			strbuf_putc(out, s[i] == '\t' ? ' ' : '?');
		k = k ? k : 1;
	}
}

void markup_puts(struct strbuf *out, const char *s)
{
	markup_add(out, s, strlen(s));
}

void markup_put_id(struct strbuf *out, const char *s)
{
	for (; *s; s++)
		strbuf_putc(out, isalnum((unsigned char)*s) || strchr("-._:", *s) ? *s : '-');
}
