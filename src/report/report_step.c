/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a plan in words: what is there, what will be, how it is taken back. */
#include "report/report_fix_impl.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/pci.h"

#include <stdlib.h>
#include <string.h>

/* Lines of content shown of one file before "and N more"; --verbose shows all. */
#define MAX_LINES 24
/* Lines around those that change. */
#define CONTEXT 2
/* "change:" and what stands behind it. */
#define LABEL 9

/* ---- files ---- */

struct lines {
	const char **at; /* not terminated: the next one, or the end of the text, follows */
	size_t n;
};

static struct lines split(const struct bytes *b)
{
	struct lines l = {0};
	const char *end = b->data + b->size;

	for (const char *s = b->data; s && s < end;) {
		const char *newline = memchr(s, '\n', (size_t)(end - s));

		l.at = xrealloc(l.at, l.n + 2, sizeof(*l.at));
		l.at[l.n++] = s;
		s = newline ? newline + 1 : end;
		l.at[l.n] = s;
	}
	return l;
}

static size_t length(const struct lines *l, size_t i)
{
	return (size_t)(l->at[i + 1] - l->at[i]);
}

static bool same_line(const struct lines *a, size_t i, const struct lines *b, size_t j)
{
	return length(a, i) == length(b, j) && memcmp(a->at[i], b->at[j], length(a, i)) == 0;
}

struct shown {
	struct strbuf text;
	size_t lines, max;
};

static void show_lines(struct shown *to, const char *mark, const struct lines *l, size_t from,
		       size_t end)
{
	for (size_t i = from; i < end; i++) {
		size_t n = length(l, i);

		if (n && l->at[i][n - 1] == '\n')
			n--;
		if (to->lines++ < to->max)
			strbuf_printf(&to->text, "%s%s%.*s\n", mark, n ? " " : "", (int)n,
				      l->at[i]);
	}
}

/* What is the same at both ends is left out, but for a few lines. */
static void show_difference(struct shown *to, const struct lines *old, const struct lines *new)
{
	size_t shorter = old->n < new->n ? old->n : new->n, head = 0, tail = 0;
	size_t first, last;

	while (head < shorter && same_line(old, head, new, head))
		head++;
	while (tail < shorter - head && same_line(old, old->n - 1 - tail, new, new->n - 1 - tail))
		tail++;
	first = head > CONTEXT ? head - CONTEXT : 0;
	last = tail > CONTEXT ? new->n - tail + CONTEXT : new->n;
	show_lines(to, " ", new, first, head);
	show_lines(to, "-", old, head, old->n - tail);
	show_lines(to, "+", new, head, new->n - tail);
	show_lines(to, " ", new, new->n - tail, last);
}

/* Not to be read by anybody. */
static bool is_binary(const struct bytes *b)
{
	return b->data && memchr(b->data, '\0', b->size);
}

static void add_lines_of(struct document *out, const struct step *s, bool verbose)
{
	struct lines old = split(&s->old), new = split(&s->new);
	struct shown to = {.max = verbose ? SIZE_MAX : MAX_LINES};

	show_difference(&to, &old, &new);
	if (to.text.len)
		document_verbatim(out, FIX_TEXT_COLUMN + LABEL, strbuf_str(&to.text));
	if (to.lines > to.max)
		document_paragraph(out, STYLE_DIM, FIX_TEXT_COLUMN + LABEL,
				   "and %zu more lines (-v shows all)", to.lines - to.max);
	strbuf_done(&to.text);
	free(old.at);
	free(new.at);
}

static void add_content(struct document *out, const struct step *s, bool verbose)
{
	if (is_binary(&s->old) || is_binary(&s->new))
		document_paragraph(out, STYLE_DIM, FIX_TEXT_COLUMN + LABEL, "no text: %zu bytes",
				   s->new.data ? s->new.size : s->old.size);
	else
		add_lines_of(out, s, verbose);
}

static void add_file(struct document *out, const struct step *s, bool verbose)
{
	if (!s->old.data)
		document_item(out, STYLE_DIM, FIX_TEXT_COLUMN,
			      "change:", "/%s, a new file (permissions %04o)", s->target,
			      s->mode ? s->mode : 0644);
	else if (!s->new.data)
		document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "change:", "/%s goes; it holds",
			      s->target);
	else
		document_item(out, STYLE_DIM, FIX_TEXT_COLUMN,
			      "change:", "/%s, which is there already", s->target);
	add_content(out, s, verbose);
}

/* ---- registers ---- */

static void add_register(struct document *out, const struct step *s, bool verbose)
{
	unsigned long old = s->old.data ? strtoul(s->old.data, NULL, 16) : 0;
	unsigned long new = s->new.data ? strtoul(s->new.data, NULL, 16) : 0;
	bool acs = text_starts_with(s->at, "ACS");
	AUTO_STRBUF struct strbuf off = {0}, on = {0};

	(void)verbose;
	if (acs) {
		pci_acs_text((int64_t)(old & ~new) & s->mask, &off);
		pci_acs_text((int64_t)(new & ~old) & s->mask, &on);
	}
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN,
		      "change:", "%s of %s: %s -> %s%s%s%s%s; its other bits stay",
		      acs ? "ACS control" : s->at, s->target, s->old.data ? s->old.data : "?",
		      s->new.data ? s->new.data : "?", off.len ? "; off: " : "", strbuf_str(&off),
		      on.len ? "; on: " : "", strbuf_str(&on));
}

/* ---- the other kinds ---- */

static void add_attribute(struct document *out, const struct step *s, bool verbose)
{
	(void)verbose;
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "change:", "/%s: %s -> %s", s->target,
		      s->old.data ? s->old.data : "nothing", s->new.data ? s->new.data : "nothing");
}

static void add_bar_size(struct document *out, const struct step *s, bool verbose)
{
	(void)verbose;
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "change:", "BAR%s of %s: %s MiB -> %s MiB",
		      s->at, s->target, s->old.data ? s->old.data : "?",
		      s->new.data ? s->new.data : "?");
}

/* `only_if`: the path without which it is not run; NULL: none. */
static void command_words(const struct step *s, const char *const *argv, const char *only_if,
			  struct strbuf *b)
{
	step_command(s, argv, b);
	if (only_if)
		strbuf_printf(b, " (if there is /%s)", only_if);
}

static void add_command(struct document *out, const char *label, const struct step *s,
			const char *const *argv, const char *only_if)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (!argv)
		return;
	command_words(s, argv, only_if, &b);
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, label, "%s", strbuf_str(&b));
}

static void add_tool(struct document *out, const struct step *s, bool verbose)
{
	add_command(out, "runs:  ", s, s->argv, s->argv_if);
	if (verbose || !s->argv)
		add_command(out, "undo:  ", s, s->undo_argv, s->undo_if);
}

static void add_generated(struct document *out, const struct step *s, bool verbose)
{
	if (!s->argv) {
		add_command(out, "undo:  ", s, s->undo_argv, NULL);
		return;
	}
	add_command(out, "runs:  ", s, s->argv, NULL);
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "change:",
		      "/%s: the new one is made beside it first%s%s, and put in its place whole; "
		      "the old one is kept for undo",
		      s->target, s->check_argv ? ", checked by " : "",
		      s->check_argv ? s->check_argv[0] : "");
	if (verbose && s->expect)
		document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "must hold:", "%s", s->expect);
}

static void add_one_shot(struct document *out, const struct step *s, bool verbose)
{
	(void)verbose;
	add_command(out, "runs:  ", s, s->argv, NULL);
	document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "change:",
		      "%s in /%s: the entry \"%s\" for the next boot only; the boot loader clears "
		      "it before it starts that entry",
		      s->at, s->target, s->new.data);
}

static void (*const add_kind[STEP_KIND_N])(struct document *out, const struct step *s,
					   bool verbose) = {
	[STEP_FILE] = add_file,           [STEP_REGISTER] = add_register,
	[STEP_ATTRIBUTE] = add_attribute, [STEP_BAR_SIZE] = add_bar_size,
	[STEP_TOOL] = add_tool,           [STEP_GENERATED] = add_generated,
	[STEP_WORDS] = add_tool,          [STEP_ONE_SHOT] = add_one_shot,
};

void add_step_change(struct document *out, const struct step *s, bool verbose)
{
	add_kind[s->kind](out, s, verbose);
}

void add_step_undo(struct document *out, const struct step *s)
{
	add_command(out, "runs:  ", s, s->undo_argv, s->undo_if);
}

/* ---- words ---- */

static bool is_program(const struct step *s)
{
	return s->kind == STEP_TOOL || s->kind == STEP_GENERATED || s->kind == STEP_WORDS;
}

bool step_does(const struct step *s)
{
	return !is_program(s) || s->argv;
}

bool step_undoes(const struct step *s)
{
	return s->kind == STEP_TOOL ? s->undo_argv != NULL : true;
}

const char *step_in_force(const struct step *s)
{
	if (s->trial)
		return s->reboot ? "for one boot" : "until the trial is confirmed or undone";
	if (s->reboot)
		return "after a reboot";
	if (s->kind == STEP_FILE || (is_program(s) && !s->passing))
		return "from now on, and after reboots";
	return s->again_at_boot ? "now, and again at each boot" : "now, until the next reboot";
}

/* How plans begin the words of a step that does nothing but when it is undone. */
#define WHEN_UNDONE "when undone: "

static void undo_tool(const struct step *s, struct strbuf *out)
{
	if (text_starts_with(s->what, WHEN_UNDONE))
		strbuf_puts(out, s->what + strlen(WHEN_UNDONE));
	else
		strbuf_printf(out, "take back: %s", s->what);
}

void step_undo_words(const struct step *s, struct strbuf *out)
{
	const char *old = s->old.data ? s->old.data : "?";

	if (s->kind == STEP_TOOL || s->kind == STEP_WORDS)
		undo_tool(s, out);
	else if (s->kind == STEP_GENERATED)
		strbuf_printf(out, "put /%s back%s", s->target,
			      s->undo_argv ? ", or make it anew" : "");
	else if (s->kind == STEP_FILE)
		strbuf_printf(out, s->old.data ? "put /%s back" : "remove /%s", s->target);
	else if (s->kind == STEP_REGISTER)
		strbuf_printf(out, "set %s of %s back to %s", s->at, s->target, old);
	else if (s->kind == STEP_BAR_SIZE)
		strbuf_printf(out, "set BAR%s of %s back to %s MiB", s->at, s->target, old);
	else if (s->kind == STEP_ONE_SHOT)
		strbuf_printf(out, "have the next boot take the usual entry");
	else
		strbuf_printf(out, "write %s to /%s", old, s->target);
}

void add_root_words(struct strbuf *b, const char *root)
{
	const char *argv[] = {root, NULL};

	if (!root)
		return;
	strbuf_puts(b, " --root ");
	step_command_line(argv, b);
}
