/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a plan in words: the old value, the new value, and the undo. */
#include "report/report_fix_impl.h"

#include "base/alloc.h"
#include "base/diff.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "machine/pci.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Lines of content shown of one file before "and N more"; --verbose shows all. */
#define MAX_LINES 12
/* Lines around those that change. */
#define CONTEXT 2
/* Where lines of a file begin. */
#define CONTENT_COLUMN (FIX_TEXT_COLUMN + 2)

/* ---- files ---- */

/* Whether a line is shown: it changes, or is near one that does. */
static bool is_near_change(const struct diff *d, size_t i)
{
	size_t first = i > CONTEXT ? i - CONTEXT : 0;

	for (size_t k = first; k < d->n && k <= i + CONTEXT; k++)
		if (d->lines[k].mark != DIFF_SAME)
			return true;
	return false;
}

struct shown {
	struct strbuf text;
	size_t lines, cut, max;
	bool starts; /* only what a boot entry starts: the rest of one is long, and the boot loader's own */
};

/* The lines of an entry that say what it starts, of GRUB and of the Boot Loader Specification. */
static bool says_what_starts(const struct diff_line *l)
{
	static const char *const keys[] = {"menuentry", "title", "linux", "options", "initrd"};
	size_t at = 0;

	while (at < l->n && isspace((unsigned char)l->text[at]))
		at++;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (l->n - at > strlen(keys[i]) &&
		    memcmp(l->text + at, keys[i], strlen(keys[i])) == 0)
			return true;
	return false;
}

/* "@@ line N @@" gives the place of the next part in the new file. */
static void show_difference(struct shown *to, const struct diff *d)
{
	size_t last = 0;

	for (size_t i = 0; i < d->n; i++) {
		const struct diff_line *l = &d->lines[i];

		if (!is_near_change(d, i))
			continue;
		if (to->lines >= to->max || (to->starts && !says_what_starts(l))) {
			to->cut++;
		} else {
			to->lines++;
			if (last && last != i && !to->starts)
				strbuf_printf(&to->text, "@@ line %zu @@\n", l->number);
			strbuf_printf(&to->text, "%c%s%.*s\n", l->mark, l->n ? " " : "", (int)l->n,
				      l->text);
		}
		last = i + 1;
	}
}

/* Not to be read by anybody. */
static bool is_binary(const struct bytes *b)
{
	return b->data && memchr(b->data, '\0', b->size);
}

static void add_lines_of(struct document *out, const struct step *s, bool verbose)
{
	struct shown to = {.max = verbose ? SIZE_MAX : MAX_LINES,
			   .starts = !verbose && (s->kind == STEP_BLOCK || s->kind == STEP_ENTRY)};
	struct diff d;

	diff_texts(s->old.data, s->old.size, s->new.data, s->new.size, &d);
	show_difference(&to, &d);
	if (to.text.len)
		document_verbatim(out, CONTENT_COLUMN, strbuf_str(&to.text));
	if (to.cut) {
		document_paragraph(out, STYLE_DIM, CONTENT_COLUMN, "and %zu more %s", to.cut,
				   text_plural(to.cut, "line", "lines"));
		document_hint(out, "-v shows all");
	}
	strbuf_done(&to.text);
	diff_done(&d);
}

static void add_content(struct document *out, const struct step *s, bool verbose)
{
	if (is_binary(&s->old) || is_binary(&s->new))
		document_paragraph(out, STYLE_DIM, CONTENT_COLUMN, "binary: %zu bytes",
				   s->new.data ? s->new.size : s->old.size);
	else
		add_lines_of(out, s, verbose);
}

/* " /etc/nccl.conf", unless the step's title has it. */
static void add_path(struct strbuf *b, const struct step *s)
{
	if (!strstr(s->what, s->target))
		strbuf_printf(b, " /%s", s->target);
}

static void add_file(struct document *out, const struct step *s, bool verbose)
{
	AUTO_STRBUF struct strbuf path = {0};

	add_path(&path, s);
	if (!s->old.data)
		document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN,
				   "new file%s, permissions %04o", strbuf_str(&path),
				   s->mode ? s->mode : 0644);
	else if (!s->new.data)
		document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN, "the removed file%s contains",
				   strbuf_str(&path));
	else if (path.len)
		document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN, "edit%s", strbuf_str(&path));
	add_content(out, s, verbose);
}

/* The title names the file and the words. */
static void add_options(struct document *out, const struct step *s, bool verbose)
{
	if (s->old.data)
		add_content(out, s, verbose);
	else
		add_file(out, s, verbose);
}

/* ---- registers ---- */

static void add_register(struct document *out, const struct step *s, bool verbose)
{
	const unsigned old = s->value.old, new = s->value.new;
	bool acs = text_starts_with(s->at, "ACS");
	AUTO_STRBUF struct strbuf off = {0}, on = {0};

	(void)verbose;
	if (acs) {
		pci_acs_text((int64_t)(old & ~new) & s->mask, &off);
		pci_acs_text((int64_t)(new & ~old) & s->mask, &on);
	}
	document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN,
			   "%s %04x -> %04x%s%s%s%s; other bits unchanged",
			   acs ? "ACS control" : s->at, old, new, off.len ? "; off: " : "",
			   strbuf_str(&off), on.len ? "; on: " : "", strbuf_str(&on));
}

/* ---- the other kinds ---- */

static void add_attribute(struct document *out, const struct step *s, bool verbose)
{
	(void)verbose;
	document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN, "/%s: %s -> %s", s->target,
			   s->old.data ? s->old.data : "nothing",
			   s->new.data ? s->new.data : "nothing");
}

static void add_bar_size(struct document *out, const struct step *s, bool verbose)
{
	(void)verbose;
	document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN, "BAR%s %u MiB -> %u MiB", s->at,
			   s->value.old, s->value.new);
}

/* `only_if`: runs only if this path exists; NULL: always. */
static void command_words(const struct step *s, const char *const *argv, const char *only_if,
			  struct strbuf *b)
{
	step_command(s, argv, b);
	if (only_if)
		strbuf_printf(b, " (if /%s exists)", only_if);
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
	add_command(out, "Runs:", s, s->argv, s->argv_if);
	if (verbose || !s->argv)
		add_command(out, "Undo:", s, s->undo_argv, s->undo_if);
}

static void add_dropped(struct document *out, const struct step *s)
{
	AUTO_STRBUF struct strbuf lines = {0};
	size_t n = 0;

	for (; s->dropped[n]; n++)
		if (n < MAX_LINES)
			strbuf_printf(&lines, "%s\n", s->dropped[n]);
	document_verbatim(out, FIX_TEXT_COLUMN, lines.text);
	if (n > MAX_LINES)
		document_paragraph(out, STYLE_DIM, FIX_TEXT_COLUMN, "and %zu more %s",
				   n - MAX_LINES, text_plural(n - MAX_LINES, "line", "lines"));
}

static void add_all_dropped(struct document *out, const struct step *steps, size_t n, bool undoing)
{
	for (size_t i = 0; i < n; i++) {
		const struct step *s = &steps[i];

		if (!s->dropped)
			continue;
		document_paragraph(
			out, STYLE_WARN, 0,
			"Lines of /%s will be lost when %s regenerates it, because its configuration does not contain them:",
			s->target, (undoing ? s->undo_argv : s->argv)[0]);
		add_dropped(out, s);
		document_paragraph(
			out, STYLE_PLAIN, 0,
			"To keep your own lines, first move them to /etc/grub.d/40_custom, or kernel parameters to /etc/default/grub. onehop keeps the present file%s",
			undoing ? " in its journal." : ", and undo restores it.");
	}
}

static bool is_unchanged(const struct step *s)
{
	return s->old.data &&
	       s->old.size == s->new.size &&memcmp(s->old.data, s->new.data, s->old.size) == 0;
}

/* As `fix --apply` shows it once it is made. */
static void add_foreseen(struct document *out, const struct step *s, bool verbose)
{
	struct step made = *s;

	made.new = s->foreseen;
	if (s->foreseen.data && is_unchanged(&made)) {
		document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN, "Nothing will change in /%s.",
				   s->target);
	} else if (s->foreseen.data) {
		document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN,
				   "What will change in /%s:", s->target);
		add_content(out, &made, verbose);
	} else if (s->unforeseen) {
		document_paragraph(out, STYLE_DIM, FIX_TEXT_COLUMN,
				   "What will change in /%s is only known once it is made: %s",
				   s->target, s->unforeseen);
	}
	if (s->fails)
		document_item(out, STYLE_BAD, FIX_TEXT_COLUMN, "Fails:", "%s", s->fails);
}

static void add_generated(struct document *out, const struct step *s, bool verbose)
{
	if (!s->argv) {
		add_command(out, "Undo:", s, s->undo_argv, NULL);
		return;
	}
	add_command(out, "Runs:", s, s->argv, NULL);
	document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN,
			   "replaces /%s atomically%s%s; the old file is kept for undo", s->target,
			   s->check_argv ? ", checked by " : "",
			   s->check_argv ? s->check_argv[0] : "");
	if (verbose && s->expect)
		document_item(out, STYLE_DIM, FIX_TEXT_COLUMN, "Must contain:", "%s", s->expect);
	if (!s->new.data) {
		add_foreseen(out, s, verbose);
		return;
	}
	/* It was made: this is history. */
	if (s->dropped) {
		document_paragraph(out, STYLE_WARN, FIX_TEXT_COLUMN, "Lines that were lost:");
		add_dropped(out, s);
	}
	add_content(out, s, verbose);
}

static bool is_as_foreseen(const struct step *s)
{
	return s->foreseen.data &&
	       s->foreseen.size ==
		       s->new.size &&memcmp(s->foreseen.data, s->new.data, s->new.size) == 0;
}

void report_generated(struct document *out, const struct step *s, bool verbose)
{
	if (s->kind != STEP_GENERATED || !s->new.data || is_as_foreseen(s))
		return;
	document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN, "What changed in /%s:", s->target);
	add_content(out, s, verbose);
}

static void add_one_shot(struct document *out, const struct step *s, bool verbose)
{
	(void)verbose;
	add_command(out, "Runs:", s, s->argv, NULL);
	document_paragraph(out, STYLE_PLAIN, FIX_TEXT_COLUMN,
			   "%s in /%s: start \"%s\" at the next boot only", s->at, s->target,
			   s->new.data);
}

void report_dropped(struct document *out, const struct plan *p, bool undoing)
{
	add_all_dropped(out, p->steps, p->step_n, undoing);
	if (!undoing)
		add_all_dropped(out, p->on_confirm, p->on_confirm_n, undoing);
}

static void (*const add_kind[STEP_KIND_N])(struct document *out, const struct step *s,
					   bool verbose) = {
	[STEP_FILE] = add_file,           [STEP_REGISTER] = add_register,
	[STEP_ATTRIBUTE] = add_attribute, [STEP_BAR_SIZE] = add_bar_size,
	[STEP_TOOL] = add_tool,           [STEP_GENERATED] = add_generated,
	[STEP_WORDS] = add_tool,          [STEP_ONE_SHOT] = add_one_shot,
	[STEP_OPTIONS] = add_options,     [STEP_BLOCK] = add_file,
	[STEP_ENTRY] = add_file,
};

void add_step_change(struct document *out, const struct step *s, bool verbose)
{
	add_kind[s->kind](out, s, verbose);
}

void add_step_made(struct document *out, const struct step *s, bool verbose)
{
	if (s->kind == STEP_GENERATED)
		add_foreseen(out, s, verbose);
	else if (s->kind == STEP_OPTIONS)
		add_options(out, s, verbose);
}

void add_step_undo(struct document *out, const struct step *s)
{
	add_command(out, "Runs:", s, s->undo_argv, s->undo_if);
}

/* ---- words ---- */

static bool is_program(const struct step *s)
{
	return s->kind == STEP_TOOL || s->kind == STEP_GENERATED || s->kind == STEP_WORDS;
}

const char *step_in_force(const struct step *s)
{
	if (s->kind == STEP_OPTIONS && !s->reboot)
		return "for kernels installed from now on";
	if (s->trial)
		return s->reboot ? "for one boot" : "until the trial is confirmed or undone";
	if (s->reboot)
		return "after a reboot";
	if (s->kind == STEP_FILE || (is_program(s) && !s->passing))
		return NULL;
	return s->again_at_boot ? "now, and at each boot" : "now, until the next reboot";
}

/*
 * "disable onehop-acs.service" for "enable onehop-acs.service"; where a program's undo may be
 * another, no more than that.
 */
static void tool_undo_words(const struct step *s, struct strbuf *out)
{
	static const char enables[] = "enable ", adds[] = "add ", to[] = " to the kernel's";
	const char *at = strstr(s->what, to);

	if (!step_does(s))
		strbuf_puts(out, s->what);
	else if (text_starts_with(s->what, enables) && !strchr(s->what, ','))
		strbuf_printf(out, "disable %s", s->what + strlen(enables));
	else if (s->kind == STEP_WORDS && text_starts_with(s->what, adds) && at)
		strbuf_printf(out, "remove %.*s from the kernel's%s",
			      (int)(at - s->what - (long)strlen(adds)), s->what + strlen(adds),
			      at + strlen(to));
	else
		strbuf_printf(out, "undo: %s", s->what);
}

static const char *register_word(const struct step *s)
{
	return text_starts_with(s->at, "ACS") ? "ACS control" : s->at;
}

void step_undo_words(const struct step *s, struct strbuf *out)
{
	const char *old = s->old.data ? s->old.data : "?";

	if (s->kind == STEP_TOOL || s->kind == STEP_WORDS)
		tool_undo_words(s, out);
	else if (s->kind == STEP_GENERATED)
		strbuf_printf(out, "restore /%s%s", s->target,
			      s->undo_argv ? ", or regenerate it" : "");
	else if (s->kind == STEP_OPTIONS)
		strbuf_printf(out, "remove %s from /%s%s", s->at, s->target,
			      s->known ? " and from entries made from it since then" : "");
	else if (s->kind == STEP_BLOCK)
		strbuf_printf(out, "remove onehop's lines from /%s", s->target);
	else if (s->kind == STEP_FILE || s->kind == STEP_ENTRY)
		strbuf_printf(out, s->old.data ? "restore /%s" : "remove /%s", s->target);
	else if (s->kind == STEP_REGISTER)
		strbuf_printf(out, "set %s of %s back to %04x", register_word(s), s->target,
			      s->value.old);
	else if (s->kind == STEP_BAR_SIZE)
		strbuf_printf(out, "set BAR%s of %s back to %u MiB", s->at, s->target,
			      s->value.old);
	else if (s->kind == STEP_ONE_SHOT)
		strbuf_printf(out, "start the default entry at the next boot");
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
