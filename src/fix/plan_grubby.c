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

/* ---- files that grubby edits too, since 2020 ---- */

struct clash {
	const char *word, *other;
	bool same;
	struct planner *p;
};

static void find_clash(void *context, const char *word, const char *file, unsigned line)
{
	struct clash *c = context;

	(void)file;
	(void)line;
	c->same |= strcmp(word, c->word) == 0;
	if (!c->other && strcmp(word, c->word) != 0 && line_same_key(word, c->word))
		c->other = arena_strdup(c->p->a, word);
}

static const char *clash_in(struct planner *p, const char *path, const char *line, const char *word)
{
	struct clash c = {.word = word, .p = p};

	plan_each_word_of(p, line, find_clash, &c);
	if (c.other)
		return arena_printf(p->a,
				    "grubby would replace %s of /%s, and undo could not restore it",
				    c.other, path);
	return c.same ? arena_printf(
				p->a,
				"/%s has %s and the boot entries do not: undo would remove it there too",
				path, word)
		      : NULL;
}

/* Each line that begins with the name gets that of the first. */
static const char *clash_in_defaults(struct planner *p, const char *word)
{
	static const char path[] = "etc/default/grub", name[] = "GRUB_CMDLINE_LINUX";
	enum there there;
	const char *text = plan_read(p, &there, path), *line = NULL, *why = NULL;
	bool fills = false, others = false;
	size_t n;

	while (text && !why && text_next_line(&line, &n, text)) {
		const char *own = arena_strndup(p->a, line, n), *value = own + strlen(name);

		if (!text_starts_with(own, name))
			continue;
		if (*value == '=')
			why = clash_in(p, path, value + 1, word);
		fills |= *value == '=' && value[1 + strspn(value + 1, "\"' \t")];
		others |= *value != '=';
	}
	return why || !fills || !others
		       ? why
		       : "grubby would replace each line of /etc/default/grub that begins with GRUB_CMDLINE_LINUX, and undo could not restore them";
}

static const char *file_why_not(struct planner *p, const char *word)
{
	enum there there;
	const char *line = plan_read(p, &there, FILE_KERNEL_LINE);
	const char *why = line ? clash_in(p, FILE_KERNEL_LINE, line, word) : NULL;

	return why ? why : clash_in_defaults(p, word);
}

/* ---- the entries ---- */

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
		const char *why = plan_word_why_not(p, w.word), *file = NULL, *other;

		why = why ? why : file_why_not(p, w.word);
		other = why ? NULL : mistaken(p, w.word, &file);

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
