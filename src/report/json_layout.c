/* SPDX-License-Identifier: Apache-2.0 */
#include "report/json_layout.h"

#include <errno.h>
#include <stdbool.h>

#define FLAGS      (JSON_ENCODE_ANY | JSON_REAL_PRECISION(6))
#define LINE_WIDTH 200 /* bytes; a pair with its chain is less */

struct line {
	struct strbuf *out;
	size_t end; /* what does not fit before it goes on lines of its own */
	bool full;  /* jansson goes on behind a key that was refused */
};

static int add_until_full(const char *text, size_t n, void *to)
{
	struct line *line = to;

	line->full = line->full || line->out->len + n > line->end;
	if (line->full)
		return -1;
	strbuf_add(line->out, text, n);
	return 0;
}

static int add(const char *text, size_t n, void *to)
{
	strbuf_add(to, text, n);
	return 0;
}

static bool fits_a_line(struct strbuf *out, const json_t *value)
{
	size_t start = out->len;
	struct line line = {out, start + LINE_WIDTH, false};

	if (json_dump_callback(value, add_until_full, &line, FLAGS) == 0 && !line.full)
		return true;
	out->len = start;
	return false;
}

static int lay_out(struct strbuf *out, const json_t *value, int depth);

/* A separator where one is due, a new line, the key of a member. */
static int lay_out_item(struct strbuf *out, bool first, const char *key, const json_t *value,
			int depth)
{
	strbuf_printf(out, "%s\n%*s", first ? "" : ",", depth, "");
	if (key)
		strbuf_printf(out, "\"%s\": ", key);
	return lay_out(out, value, depth);
}

static int lay_out_object(struct strbuf *out, const json_t *object, int depth)
{
	json_t *o = (json_t *)object; /* an iterator could change it; this one does not */
	int r = 0;

	strbuf_putc(out, '{');
	for (void *first = json_object_iter(o), *i = first; i; i = json_object_iter_next(o, i))
		r |= lay_out_item(out, i == first, json_object_iter_key(i),
				  json_object_iter_value(i), depth + 1);
	strbuf_printf(out, "\n%*s}", depth, "");
	return r;
}

static int lay_out_array(struct strbuf *out, const json_t *array, int depth)
{
	size_t n = json_array_size(array);
	int r = 0;

	strbuf_putc(out, '[');
	for (size_t i = 0; i < n; i++)
		r |= lay_out_item(out, i == 0, NULL, json_array_get(array, i), depth + 1);
	strbuf_printf(out, "\n%*s]", depth, "");
	return r;
}

static int lay_out(struct strbuf *out, const json_t *value, int depth)
{
	if (fits_a_line(out, value))
		return 0;
	if (json_is_object(value))
		return lay_out_object(out, value, depth);
	if (json_is_array(value))
		return lay_out_array(out, value, depth);
	return json_dump_callback(value, add, out, FLAGS);
}

/*
 * What jansson leaves as it is and a terminal may obey: U+007F to U+009F, the last 32 as 0xc2 and
 * one.
 */
static void escape_controls(const struct strbuf *json, struct strbuf *out)
{
	const char *rest = strbuf_str(json), *end = rest + json->len;

	for (const char *s = rest; s < end; s++) {
		unsigned char c = (unsigned char)s[0], next = (unsigned char)s[1];
		bool c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;

		if (c != 0x7f && !c1)
			continue;
		strbuf_add(out, rest, (size_t)(s - rest));
		strbuf_printf(out, "\\u%04x", (unsigned)(c1 ? next : c));
		s += c1;
		rest = s + 1;
	}
	strbuf_add(out, rest, (size_t)(end - rest));
}

int json_lay_out(struct strbuf *out, const json_t *value)
{
	AUTO_STRBUF struct strbuf b = {0};
	int r = lay_out(&b, value, 0) ? -EINVAL : 0;

	escape_controls(&b, out);
	return r;
}

int json_line(struct strbuf *out, const json_t *value)
{
	AUTO_STRBUF struct strbuf b = {0};
	int r = json_dump_callback(value, add, &b, JSON_COMPACT) ? -EINVAL : 0;

	escape_controls(&b, out);
	return r;
}
