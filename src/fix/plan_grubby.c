/* SPDX-License-Identifier: Apache-2.0 */
/* grubby, where nothing of a person's would be lost by it. */
#include "fix/make_plan_impl.h"

#include <string.h>

static void by_hand(struct planner *p, const struct wanted_word *w, const char *why)
{
	const char *const argv[] = {"grubby", "--update-kernel=ALL",
				    arena_printf(p->a, "--args=%s", w->word), NULL};
	AUTO_STRBUF struct strbuf line = {0};

	step_command_line(argv, &line);
	plan_manual(p, w->purpose.rules, arena_printf(p->a, "kernel parameter %s", w->word),
		    "first check `grubby --info=ALL`; then `%s`, and reboot (%s)", line.text, why);
}

/* The first word of a boot entry that the grubby here would change in place of this one; NULL: none. */
static const char *mistaken(struct planner *p, const char *word, const char **ret_file)
{
	const struct boot *b = p->line.b;

	for (size_t i = 0; i < b->entry_n && grubby_is_loose(p->s); i++) {
		AUTO_FREE char *other = grubby_mistaken(b->entries[i].options, word, false);

		*ret_file = b->entries[i].file;
		if (other)
			return arena_strdup(p->a, other);
	}
	return NULL;
}

static void after_update(struct planner *p, const struct wanted_word *w, const char *other,
			 const char *file)
{
	plan_manual(
		p, w->purpose.rules, arena_printf(p->a, "kernel parameter %s", w->word),
		"update grubby, then run onehop fix again: the installed one, of 2018, would change %s of %s instead of adding %s",
		other, file, w->word);
}

/* Drops the words that are there already, and those that are a person's to add. */
static void settle_words(struct planner *p)
{
	for (size_t i = p->word_n; i-- > 0;) {
		const struct wanted_word w = p->words[i];
		const char *why = plan_word_why_not(p, w.word), *file = NULL;
		const char *other = why ? NULL : mistaken(p, w.word, &file);

		if (grubby_has(p->line.b, w.word))
			plan_note(p,
				  "all boot entries already have %s; reboot for it to take effect",
				  w.word);
		else if (why)
			by_hand(p, &w, why);
		else if (other)
			after_update(p, &w, other, file);
		else
			continue;
		plan_word_drop(p, i);
	}
}

void plan_grubby(struct planner *p)
{
	settle_words(p);
	if (p->word_n)
		plan_words_by(p, "grubby");
}
