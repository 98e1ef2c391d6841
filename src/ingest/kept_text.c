/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format, a line each:
 *   = NAME   a text begins
 *   @ N      the time of its file, in seconds since 1970
 *   ! N LINE it is large: N lines that mattered are not kept, the first of them LINE; 0 0: some of the kernel log,
 *            0 N: N lines of it that repeat others
 *   |LINE    a line of it
 *   >LINE    the last one, in which the text ends
 *   * N      N lines that nothing was read from
 *   + N      N lines that the next one stands for too; -1: it is of the same line as the last
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Replaces a line that nothing was read from. It belongs to no output, so it separates parts as the
 * line did, and unlike the dots of an author it does not say that lines are missing.
 */
#define UNUSED   "???"
#define OMISSION "..."

/* ---- writing ---- */

static void put_unused(struct strbuf *out, size_t *n)
{
	if (*n)
		strbuf_printf(out, "* %zu\n", *n);
	*n = 0;
}

/* They do not end a part. */
static void put_empty(struct strbuf *out, unsigned n)
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
	static const char *const marks[] = {"-p2p",          "/proc/cmdline",   "grep",
					    "nvidia-smi -i", "nvidia-smi --id", "--use_cuda"};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strstr(command, marks[i]))
			return true;
	return false;
}

/*
 * The command that the splitter found above the next part counts; other lines only separate parts.
 */
static const char *gap_line(const struct text_line *l, const struct part *next, struct arena *a)
{
	char date[TEXT_TIME_SIZE];

	if (line_is_blank(l))
		return "";
	if (line_is_date(l)) /* behind the time may be the path of a file */
		return arena_printf(a, "%s", text_time_words(line_date(l), date));
	if (line_is_omission(l))
		return OMISSION;
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
	const char *text = gap_line(l, next, a);

	if (before && before->kind->prompt_below && l == before->lines + before->n)
		return arena_printf(a, "$ %s", text && *text ? text : ":");
	return text;
}

static void put_left_out(struct strbuf *out, const struct text_reducer *r)
{
	if (r->lost)
		strbuf_puts(out, "! 0 0\n");
	if (r->repeated)
		strbuf_printf(out, "! 0 %zu\n", r->repeated);
	if (r->left_out)
		strbuf_printf(out, "! %zu %u\n", r->left_out, r->first_left_out);
}

void kept_text_write(const char *name, struct text_time time, const struct text_reducer *reducer,
		     const struct text_line *lines, size_t line_n, const struct part *parts,
		     size_t part_n, struct strbuf *out)
{
	const struct part *p = parts, *end = parts + part_n;
	struct arena *a = arena_new();
	size_t unused = 0;
	unsigned last = 0, before;

	strbuf_printf(out, "= %s\n", name);
	if (time.s)
		strbuf_printf(out, "@ %" PRId64 "\n", time.s);
	put_left_out(out, reducer);
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
		if (line_is_repeated(l)) {
			put_empty(out, l->number - before);
			continue;
		}
		if (!*l->text) /* the last of a run may stand for many */
			put_empty(out, l->number - before - 1);
		else if (l->number !=
			 before + 1) /* and so may one of a kernel log; a line may be two */
			strbuf_printf(out, "+ %" PRId64 "\n", (int64_t)l->number - before - 1);
		strbuf_printf(out, "%c%s\n", l->open ? '>' : '|', text);
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

/* Lines that the next one stands for; -1: it is of the same line as the last. */
struct skipped_lines {
	size_t at; /* in the text */
	int64_t n;
};

/* What is being read. */
struct kept_text {
	char *name; /* NULL: nothing yet */
	struct strbuf text;
	struct skipped_lines *skipped;
	size_t skipped_n;
	struct text_time time;
	struct { /* as in struct text_reducer */
		size_t left_out;
		unsigned first_left_out;
		bool lost;
		size_t repeated;
	} limits;
};

static void cleanup_text(struct kept_text *k)
{
	free(k->name);
	free(k->skipped);
	strbuf_done(&k->text);
}

/* Lines get the numbers that they had. */
static void feed_text(const struct kept_text *k, struct pasted_text *x)
{
	const char *text = strbuf_str(&k->text);
	size_t at = 0;

	x->form = FORM_TEXT; /* also if it begins like JSON */
	for (size_t i = 0; i < k->skipped_n; i++) {
		const struct skipped_lines *s = &k->skipped[i];

		pasted_feed(x, text + at, s->at - at);
		if (s->n >= 0 || x->lines.split.number)
			x->lines.split.number += (unsigned)s->n;
		at = s->at;
	}
	pasted_feed(x, text + at, k->text.len - at);
}

static void end_text(struct pasted *t, struct kept_text *k)
{
	if (k->name) {
		struct pasted_text *x = pasted_begin(t);

		feed_text(k, x);
		x->lines.left_out = k->limits.left_out;
		x->lines.first_left_out = k->limits.first_left_out;
		x->lines.lost = k->limits.lost;
		x->lines.repeated = k->limits.repeated;
		x->time = k->time;
		pasted_end(t, k->name, x);
		pasted_drop(x);
	}
	cleanup_text(k);
	*k = (struct kept_text){0};
}

static int read_limits(const char *s, const char *file, unsigned number, struct kept_text *k)
{
	unsigned long left_out, first;
	int n = 0;

	if (sscanf(s, "%9lu %9lu%n", &left_out, &first, &n) != 2 || s[n])
		return bad_line(file, number, "expected two numbers");
	k->limits.lost |= !left_out && !first;
	if (!left_out) {
		k->limits.repeated += first;
	} else {
		k->limits.left_out = left_out;
		k->limits.first_left_out = (unsigned)first;
	}
	return 0;
}

static int add_skipped(const char *count, const char *file, unsigned number, struct kept_text *k)
{
	int64_t n;

	if (text_to_i64(count, &n) < 0 || n < -1 || n > INT32_MAX)
		return bad_line(file, number, "expected a number of lines");
	k->skipped = xrealloc(k->skipped, k->skipped_n + 1, sizeof(*k->skipped));
	k->skipped[k->skipped_n++] = (struct skipped_lines){k->text.len, n};
	return 0;
}

/* Copies a line out of the content, so that it is terminated. */
static int add_line(const char *line, const char *file, unsigned number, struct kept_text *k)
{
	if (*line == '|' || *line == '>') {
		strbuf_printf(&k->text, "%s%s", line + 1, *line == '|' ? "\n" : "");
		return 0;
	}
	if (text_starts_with(line, "! "))
		return read_limits(line + 2, file, number, k);
	if (text_starts_with(line, "@ ") && text_to_i64(line + 2, &k->time.s) == 0) {
		k->time.zoned = true;
		return 0;
	}
	if (text_starts_with(line, "+ "))
		return add_skipped(line + 2, file, number, k);
	return text_starts_with(line, "* ")
		       ? add_unused(line + 2, file, number, &k->text)
		       : bad_line(
				 file, number,
				 "expected '= NAME', '@ N', '|LINE', '>LINE', '* N', '+ N' or '! N LINE'");
}

int kept_texts_add(const char *content, const char *file, struct pasted *t)
{
	CLEANUP(cleanup_text) struct kept_text k = {0};
	const char *line = NULL;
	unsigned number = 0;
	size_t n;
	int r = 0;

	while (r == 0 && text_next_line(&line, &n, content)) {
		AUTO_FREE char *copy = xstrndup(line, n);

		number++;
		if (text_starts_with(copy, "= ")) {
			end_text(t, &k);
			k.name = xstrdup(copy + 2);
		} else if (!k.name) {
			r = bad_line(file, number, "expected '= NAME'");
		} else {
			r = add_line(copy, file, number, &k);
		}
	}
	if (r == 0)
		end_text(t, &k);
	return r;
}
