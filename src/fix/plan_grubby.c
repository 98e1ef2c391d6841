/* SPDX-License-Identifier: Apache-2.0 */
/* grubby, where nothing of a person's would be lost by it. */
#include "fix/make_plan_impl.h"

#include <string.h>

#define ENTRIES "boot/loader/entries"
#define LOST    "and undo could not bring it back"

bool plan_grubby_here(struct planner *p)
{
	return plan_is_grub(p) && fact_is(p->files->kernel.grubby, 1);
}

/* ---- what the boot entries have ---- */

struct look {
	struct planner *p;
	const char *word;
	size_t entries, with;    /* with: those that have this very word */
	const char *other, *who; /* another argument of the same key, and the file that has it */
	const char *unread;      /* NULL: all of it could be read */
};

static bool same_key(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && memcmp(a, b, n) == 0;
}

/* "$kernelopts" of an entry; NULL: nobody knows. */
static const char *grub_variable(struct planner *p, const char *name)
{
	static const char *const files[] = {"boot/grub2/grubenv", "boot/grub/grubenv"};
	const char *key = arena_printf(p->a, "%s=", name);

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		enum there there;
		const char *text = plan_read(p, &there, files[i]), *line = NULL;
		size_t n;

		while (text && text_next_line(&line, &n, text))
			if (n > strlen(key) && text_starts_with(line, key))
				return arena_strndup(p->a, line + strlen(key), n - strlen(key));
	}
	return NULL;
}

static bool look_at_words(struct look *l, const char *words, const char *file)
{
	AUTO_FREE char *copy = xstrdup(words);
	char *rest = copy, *word;
	bool has = false;

	while ((word = strsep(&rest, " \t\"'"))) {
		if (strcmp(word, l->word) == 0) {
			has = true;
		} else if (*word && same_key(word, l->word) && !l->other) {
			l->other = arena_strdup(l->p->a, word);
			l->who = file;
		}
	}
	return has;
}

/* Words that stand in variables of GRUB's are the entry's too. */
static bool look_at_variables(struct look *l, const char *words, const char *file)
{
	bool has = false;

	for (const char *at = strchr(words, '$'); at; at = strchr(at + 1, '$')) {
		const char *name = arena_strndup(l->p->a, at + 1, strcspn(at + 1, " \t"));
		const char *value = grub_variable(l->p, name);

		if (value)
			has |= look_at_words(l, value, file);
		else if (strcmp(name, "kernelopts") == 0)
			l->unread = "$kernelopts";
	}
	return has;
}

static void look_at_entry(struct look *l, const char *name)
{
	const char *path = arena_printf(l->p->a, ENTRIES "/%s", name), *line = NULL;
	enum there there;
	const char *text = plan_read(l->p, &there, path);
	bool has = false;
	size_t n;

	path = arena_printf(l->p->a, "/%s", path);
	if (!text)
		l->unread = path;
	while (text && text_next_line(&line, &n, text)) {
		const char *words = arena_strndup(l->p->a, line, n);

		if (!text_starts_with(words, "options"))
			continue;
		words += strlen("options");
		has |= look_at_words(l, words, path);
		has |= look_at_variables(l, words, path);
	}
	l->entries++;
	l->with += has;
}

static struct look look_at_entries(struct planner *p, const char *word)
{
	struct look l = {.p = p, .word = word};
	char **names = NULL;
	size_t n = 0;

	if (source_list(p->s, &names, &n, ENTRIES) == 0)
		for (size_t i = 0; i < n; i++)
			if (text_ends_with(names[i], ".conf"))
				look_at_entry(&l, names[i]);
	source_free_names(names, n);
	if (!l.entries)
		l.unread = "/" ENTRIES;
	return l;
}

static bool is_in_all(const struct look *l)
{
	return !l->unread && l->with == l->entries;
}

/*
 * --args takes the place of what has the same key, and --remove-args takes a word also from an entry
 * that had it before.
 */
const char *plan_grubby_why_not(struct planner *p, const char *word)
{
	const struct look l = look_at_entries(p, word);

	if (is_in_all(&l))
		return NULL;
	if (l.unread)
		return arena_printf(p->a,
				    "%s could not be read: if an entry has another %.*s=, grubby "
				    "replaces it, " LOST,
				    l.unread, (int)strcspn(word, "="), word);
	if (l.other)
		return arena_printf(p->a, "grubby would put %s in the place of %s of %s, " LOST,
				    word, l.other, l.who);
	if (l.with)
		return arena_printf(p->a,
				    "some boot entries have %s and others do not: undo would take "
				    "it from all of them",
				    word);
	for (size_t i = 0; i < p->word_n; i++)
		if (strcmp(p->words[i].word, word) != 0 && same_key(p->words[i].word, word))
			return arena_printf(p->a, "grubby keeps only one of %s and %s", word,
					    p->words[i].word);
	return NULL;
}

/* ---- the plan ---- */

static void by_hand(struct planner *p, const struct wanted_word *w, const char *why)
{
	const char *const argv[] = {"grubby", "--update-kernel=ALL",
				    arena_printf(p->a, "--args=%s", w->word), NULL};
	AUTO_STRBUF struct strbuf line = {0};

	step_command_line(argv, &line);
	plan_manual(p, w->purpose.rules, arena_printf(p->a, "kernel parameter %s", w->word),
		    "`%s`; %s: look at `grubby --info=ALL` first, and reboot after it", line.text,
		    why);
}

/* Drops the words that are there already, and those that are a person's to add. */
static void settle_words(struct planner *p)
{
	for (size_t i = p->word_n; i-- > 0;) {
		const struct wanted_word w = p->words[i];
		const struct look l = look_at_entries(p, w.word);
		const char *why = plan_grubby_why_not(p, w.word);

		if (is_in_all(&l))
			plan_note(p, "%s is in all boot entries; a reboot is still due", w.word);
		else if (why)
			by_hand(p, &w, why);
		else
			continue;
		plan_word_drop(p, i);
	}
}

void plan_grubby(struct planner *p)
{
	const char *words;
	struct tool tool = {.deadline_s = 120};

	settle_words(p);
	if (!p->word_n)
		return;
	words = plan_words(p);
	tool.argv = plan_argv(p, "grubby", "--update-kernel=ALL",
			      arena_printf(p->a, "--args=%s", words), NULL);
	tool.undo_argv = plan_argv(p, "grubby", "--update-kernel=ALL",
				   arena_printf(p->a, "--remove-args=%s", words), NULL);
	plan_words_tool(p, &tool);
}
