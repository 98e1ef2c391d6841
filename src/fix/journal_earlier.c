/* SPDX-License-Identifier: Apache-2.0 */
/* Fixes of earlier releases that are undone in a better way than they say. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/boot_entries.h"
#include "fix/journal_impl.h"

#include <string.h>

#define KERNEL_LINE "etc/kernel/cmdline"

/*
 * On systemd-boot the first release wrote /etc/kernel/cmdline and had kernel-install make all entries of
 * it, in both directions. That writes kernels in place; and where the file was not there before, undo
 * removed it, so that kernel-install took the words from the running kernel. Now the words are taken out
 * of the file and of all entries: kernel-install has made every one.
 */

static bool is_kernel_install(const char *const *argv)
{
	return argv && strcmp(argv[0], "kernel-install") == 0;
}

static bool runs_kernel_install(const struct step *s)
{
	return s->kind == STEP_TOOL &&
	       (is_kernel_install(s->argv) || is_kernel_install(s->undo_argv));
}

/*
 * One that was cut short within the program has to run it again: a kernel may be torn. Undo that failed is
 * none: where the program was at work, it came to its end.
 */
static bool was_cut_short(const struct journal_entry *e)
{
	bool cut = !e->was_applied;

	for (size_t i = 0; i < e->plan->step_n; i++)
		cut |= runs_kernel_install(&e->plan->steps[i]) &&
		       (e->marks[i] == MARK_STARTED || e->marks[i] == MARK_UNDO_STARTED);
	return cut;
}

/* The parameters that the step added, joined by blanks; without contents, all of the fix. */
static const char *added_words(const struct plan *p, const struct step *s)
{
	AUTO_STRBUF struct strbuf words = {0};

	for (size_t i = 0; i < p->wanted_n; i++) {
		const char *word = p->wanted[i].value;

		if (strcmp(p->wanted[i].kind, "kernel-parameter") == 0 &&
		    (!s->new.size || boot_text_has(s->new.data, BOOT_TEXT_LINE, word)) &&
		    !(s->old.data && boot_text_has(s->old.data, BOOT_TEXT_LINE, word)))
			strbuf_printf(&words, "%s%s", words.len ? " " : "", word);
	}
	return words.len ? arena_strdup(p->arena, strbuf_str(&words)) : NULL;
}

/* The file as it was before, as far as the words go; but it is there, in any case. */
static struct bytes without_words(struct plan *p, const struct step *s)
{
	const char *text = s->new.data;

	for (size_t i = 0; i < p->wanted_n; i++) {
		AUTO_STRBUF struct strbuf rest = {0};

		if (text_has_word(s->at, p->wanted[i].value) &&
		    boot_text_remove(text, BOOT_TEXT_LINE, p->wanted[i].value, &rest))
			text = arena_strdup(p->arena, strbuf_str(&rest));
	}
	return (struct bytes){text, strlen(text)};
}

static bool amend_line(struct journal_entry *e, size_t i, bool cut)
{
	static const char *const none_known[] = {"", NULL};
	struct step *s = &e->plan->steps[i];
	const char *words;

	if (s->kind != STEP_FILE || strcmp(s->target, KERNEL_LINE) != 0 || !s->new.data)
		return false;
	words = added_words(e->plan, s);
	if (!words)
		return false;
	s->kind = STEP_OPTIONS;
	s->at = words;
	s->known = none_known;
	if (cut && !s->old.data)
		s->old = without_words(e->plan, s);
	if (cut && e->marks[i] == MARK_UNDONE)
		e->marks[i] = MARK_UNDO_FAILED; /* the entries were not looked at */
	return true;
}

/*
 * After a cut the program runs once more, and takes the file that is left for it: never the command line of
 * what runs, which may be a rescue boot.
 */
void journal_amend(struct journal_entry *e)
{
	struct plan *p = e->plan;
	bool here = false, line = false, cut;

	for (size_t i = 0; i < p->step_n; i++)
		here |= runs_kernel_install(&p->steps[i]);
	if (!here)
		return;
	cut = was_cut_short(e);
	for (size_t i = 0; i < p->step_n; i++)
		line |= amend_line(e, i, cut);
	for (size_t i = 0; line && i < p->step_n; i++) {
		struct step *s = &p->steps[i];

		if (!runs_kernel_install(s))
			continue;
		if (!cut)
			s->argv = s->undo_argv = NULL;
		s->undo_if = KERNEL_LINE;
	}
}
