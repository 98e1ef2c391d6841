/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in words, for people. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/step.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void step_command_line(const char *const *argv, struct strbuf *out)
{
	for (size_t i = 0; argv[i]; i++) {
		if (i)
			strbuf_putc(out, ' ');
		strbuf_shell_word(out, argv[i]);
	}
}

void step_command(const struct step *s, const char *const *argv, struct strbuf *out)
{
	for (size_t i = 0; argv[i]; i++) {
		bool output = strcmp(argv[i], STEP_OUTPUT) == 0;
		AUTO_FREE char *path = output ? xprintf("/%s", s->target) : NULL;

		if (i)
			strbuf_putc(out, ' ');
		strbuf_shell_word(out, path ? path : argv[i]);
	}
}

/* ---- what differs ---- */

static void add_line(struct strbuf *out, const char *line, size_t n)
{
	const size_t most = 80;

	strbuf_printf(out, "\"%.*s%s\"", (int)(n > most ? most : n), line, n > most ? "..." : "");
}

/* The first line that is another one. */
static void add_lines(const char *expected, const char *now, struct strbuf *out)
{
	const char *a = NULL, *b = NULL;
	size_t an = 0, bn = 0;

	for (unsigned line = 1;; line++) {
		bool has_a = text_next_line(&a, &an, expected);
		bool has_b = text_next_line(&b, &bn, now);

		if (!has_a && !has_b) {
			strbuf_puts(out, "ends otherwise than expected");
			return;
		}
		if (has_a && has_b && an == bn && memcmp(a, b, an) == 0)
			continue;
		strbuf_printf(out, "line %u %s ", line,
			      !has_a   ? "was added:"
			      : !has_b ? "is missing:"
				       : "is");
		add_line(out, has_b ? b : a, has_b ? bn : an);
		if (has_a && has_b) {
			strbuf_puts(out, ", expected ");
			add_line(out, a, an);
		}
		return;
	}
}

static void add_file(const struct step *s, const struct bytes *expected, const char *now,
		     struct strbuf *out)
{
	strbuf_printf(out, "/%s ", s->target);
	if (!now)
		strbuf_puts(out, "is not there");
	else if (!expected->data)
		strbuf_puts(out, "is there, and was not expected");
	else
		add_lines(expected->data, now, out);
}

static void add_words(const struct step *s, const char *now, struct strbuf *out)
{
	strbuf_printf(out, "of the words %s the next boot has %s, by %s", s->at, now ? now : "none",
		      s->target);
}

bool step_has_value(const struct step *s)
{
	return s->kind == STEP_REGISTER || s->kind == STEP_BAR_SIZE;
}

void step_value_text(const struct step *s, unsigned value, struct strbuf *out)
{
	strbuf_printf(out, s->kind == STEP_REGISTER ? "%04x" : "%u", value);
}

int step_value_parse(const struct step *s, const char *text, unsigned *ret)
{
	const bool is_register = s->kind == STEP_REGISTER;
	char *end;
	unsigned long value = strtoul(text, &end, is_register ? 16 : 10);

	if (!isxdigit((unsigned char)*text) || *end || value > (is_register ? 0xffff : UINT_MAX))
		return -EINVAL;
	*ret = (unsigned)value;
	return 0;
}

static void add_expected(const struct step *s, enum step_side side, struct strbuf *out)
{
	const struct bytes *b = side == STEP_NEW_SIDE ? &s->new : &s->old;

	if (step_has_value(s))
		step_value_text(s, side == STEP_NEW_SIDE ? s->value.new : s->value.old, out);
	else
		strbuf_puts(out, b->data ? b->data : "nothing");
}

static void add_value(const struct step *s, enum step_side expected, const char *now,
		      struct strbuf *out)
{
	static const struct {
		const char *before_at, *unit;
	} words[STEP_KIND_N] = {
		[STEP_REGISTER] = {" ", ""},
		[STEP_BAR_SIZE] = {" BAR ", " MiB"},
		[STEP_ATTRIBUTE] = {" ", ""},
		[STEP_ONE_SHOT] = {" ", ""},
	};

	strbuf_printf(out, "%s%s", s->kind == STEP_ATTRIBUTE || s->kind == STEP_ONE_SHOT ? "/" : "",
		      s->target);
	if (s->at)
		strbuf_printf(out, "%s%s", words[s->kind].before_at, s->at);
	strbuf_printf(out, " is %s%s, expected ", now ? now : "not there",
		      now && words[s->kind].unit ? words[s->kind].unit : "");
	add_expected(s, expected, out);
}

void step_difference(const struct step *s, enum step_side expected, const char *now,
		     struct strbuf *out)
{
	if (step_has_content(s))
		add_file(s, expected == STEP_NEW_SIDE ? &s->new : &s->old, now, out);
	else if (s->kind == STEP_WORDS)
		add_words(s, now, out);
	else
		add_value(s, expected, now, out);
}

/* ---- what is left of it ---- */

static bool has_line(const char *text, const char *line, size_t n)
{
	const char *other = NULL;
	size_t length;

	while (text && text_next_line(&other, &length, text))
		if (length == n && memcmp(other, line, n) == 0)
			return true;
	return false;
}

void step_remainder(const struct step *s, const char *now, struct strbuf *out)
{
	const char *line = NULL;
	size_t n, more = 0;

	while ((s->kind == STEP_FILE || s->kind == STEP_BLOCK || s->kind == STEP_ENTRY) &&
	       s->new.data && text_next_line(&line, &n, s->new.data)) {
		if (!n || *line == '#' || has_line(s->old.data, line, n) ||
		    !has_line(now, line, n) || more++)
			continue;
		strbuf_puts(out, "it still has ");
		add_line(out, line, n);
	}
	if (more > 1)
		strbuf_printf(out, " and %zu more %s of the fix", more - 1,
			      text_plural(more - 1, "line", "lines"));
}
