/* SPDX-License-Identifier: Apache-2.0 */
/* Fixes of earlier releases that are undone in a better way than they say. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "fix/boot_entries.h"
#include "fix/journal_parts.h"

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

/* One that was cut short within the program has to run it again: a kernel may be torn. */
static bool was_cut_short(const struct journal_entry *e)
{
	for (size_t i = 0; i < e->plan->step_n; i++)
		if (runs_kernel_install(&e->plan->steps[i]) && e->marks[i] != MARK_DONE &&
		    e->marks[i] != MARK_UNDONE)
			return true;
	return !e->was_applied;
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

void journal_amend(struct journal_entry *e)
{
	static const char *const none_known[] = {"", NULL};
	struct plan *p = e->plan;
	const char *words = NULL;
	bool here = false;

	for (size_t i = 0; i < p->step_n; i++)
		here |= runs_kernel_install(&p->steps[i]);
	for (size_t i = 0; here && i < p->step_n && !was_cut_short(e); i++) {
		struct step *s = &p->steps[i];

		if (s->kind != STEP_FILE || strcmp(s->target, KERNEL_LINE) != 0 || !s->new.data)
			continue;
		words = added_words(p, s);
		if (!words)
			continue;
		s->kind = STEP_OPTIONS;
		s->at = words;
		s->known = none_known;
	}
	for (size_t i = 0; words && i < p->step_n; i++)
		if (runs_kernel_install(&p->steps[i]))
			p->steps[i].argv = p->steps[i].undo_argv = NULL;
}
