/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format, a line each:
 *   = NAME   a text begins
 *   |LINE    a line of it
 *   * N      N lines that nothing was read from
 */
#include "ingest/kept_text.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "ingest/part.h"
#include "ingest/pasted.h"
#include "ingest/text_reduce.h"
#include "recording/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/*
 * Replaces a line that nothing was read from. It belongs to no output, so it separates parts as the
 * line did.
 */
#define UNUSED "..."

/* ---- writing ---- */

static void put_unused(struct strbuf *out, size_t *n)
{
	if (*n)
		strbuf_printf(out, "* %zu\n", *n);
	*n = 0;
}

/* An empty line does not end a part. */
static void put_repeated(struct strbuf *out, unsigned n)
{
	while (n--)
		strbuf_puts(out, "|\n");
}

/* "alice@box:~$ nvidia-smi" names a user and a host, which are not needed. */
static const char *behind_prompt(const char *command)
{
	const char *at = strchr(command, '@');
	const char *mark = strpbrk(at ? at : command, "$#");

	return at && mark && mark[1] == ' ' ? mark + 2 : command;
}

/* What decoders look for in the command above a part; anything else there may be private text. */
static bool command_matters(const char *command)
{
	static const char *const marks[] = {"-p2p", "/proc/cmdline", "grep", "nvidia-smi -i",
					    "nvidia-smi --id"};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strstr(command, marks[i]))
			return true;
	return false;
}

/* The command that the splitter found above the next part counts; other lines only separate parts. */
static const char *gap_line(const struct text_line *l, const struct part *next)
{
	if (line_is_blank(l) || line_is_date(l))
		return "";
	if (line_is_skipped(l))
		return "```";
	return next && l == next->command_line && command_matters(l->text)
		       ? behind_prompt(next->command)
		       : NULL;
}

/* Writes the lines of parts as they are, or as their kind keeps them. */
static const char *part_line(const struct part *p, const struct text_line *l, struct arena *a)
{
	return p->kind->keep ? p->kind->keep(p, l, a) : l->text;
}

/* A line between parts; a prompt without its command where the part above needs one below it. */
static const char *between(const struct text_line *l, const struct part *before,
			   const struct part *next, struct arena *a)
{
	const char *text = gap_line(l, next);

	if (before && before->kind->prompt_below && l == before->lines + before->n)
		return arena_printf(a, "$ %s", text && *text ? text : ":");
	return text;
}

void kept_text_write(const char *name, const struct text_line *lines, size_t line_n,
		     const struct part *parts, size_t part_n, struct strbuf *out)
{
	const struct part *p = parts, *end = parts + part_n;
	struct arena *a = arena_new();
	size_t unused = 0;
	unsigned last = 0, before;

	strbuf_printf(out, "= %s\n", name);
	for (const struct text_line *l = lines; l < lines + line_n; l++) {
		const char *text;

		while (p < end && (p->elsewhere || l >= p->lines + p->n))
			p++;
		text = p < end && l >= p->lines
			       ? part_line(p, l, a)
			       : between(l, p > parts ? p - 1 : NULL, p < end ? p : NULL, a);
		/* One of them may stand for many. */
		if (!text)
			unused += l->number - last;
		before = last;
		last = l->number;
		if (!text)
			continue;
		put_unused(out, &unused);
		if (line_is_repeated(l))
			put_repeated(out, l->number - before);
		else
			strbuf_printf(out, "|%s\n", text);
	}
	put_unused(out, &unused);
	arena_free(a);
}

/* ---- reading ---- */

static int bad_line(const char *file, unsigned number, const char *what)
{
	return err_set(EINVAL, "%s:" RECORDING_TEXTS ":%u: %s", file, number, what);
}

static int add_unused(const char *count, const char *file, unsigned number, struct strbuf *text)
{
	uint64_t n;

	if (text_to_u64(count, &n) < 0 || n > (INGEST_MAX_LOG - text->len) / sizeof(UNUSED))
		return bad_line(file, number, "expected a number of lines");
	while (n--)
		strbuf_puts(text, UNUSED "\n");
	return 0;
}

static void end_text(struct pasted *t, const char *name, struct strbuf *text)
{
	if (name)
		pasted_add(t, name, strbuf_str(text), text->len);
	text->len = 0;
}

/* Copies a line out of the content, so that it is terminated. */
static int add_line(const char *line, const char *file, unsigned number, struct strbuf *text)
{
	if (*line == '|') {
		strbuf_printf(text, "%s\n", line + 1);
		return 0;
	}
	return text_starts_with(line, "* ")
		       ? add_unused(line + 2, file, number, text)
		       : bad_line(file, number, "expected '= NAME', '|LINE' or '* N'");
}

int kept_texts_add(const char *content, const char *file, struct pasted *t)
{
	AUTO_STRBUF struct strbuf text = {0};
	AUTO_FREE char *name = NULL;
	const char *line = NULL;
	unsigned number = 0;
	size_t n;
	int r = 0;

	while (r == 0 && text_next_line(&line, &n, content)) {
		AUTO_FREE char *copy = xstrndup(line, n);

		number++;
		if (text_starts_with(copy, "= ")) {
			end_text(t, name, &text);
			free(name);
			name = xstrdup(copy + 2);
		} else if (!name) {
			r = bad_line(file, number, "expected '= NAME'");
		} else {
			r = add_line(copy, file, number, &text);
		}
	}
	if (r == 0)
		end_text(t, name, &text);
	return r;
}
