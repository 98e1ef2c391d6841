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

/* Drops the words that are there already, and those that are a person's to add. */
static void settle_words(struct planner *p)
{
	for (size_t i = p->word_n; i-- > 0;) {
		const struct wanted_word w = p->words[i];
		const char *why = plan_word_why_not(p, w.word);

		if (grubby_has(p->line.b, w.word))
			plan_note(p,
				  "all boot entries already have %s; reboot for it to take effect",
				  w.word);
		else if (why)
			by_hand(p, &w, why);
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
