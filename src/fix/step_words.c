/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of the kernel's command line, by a program that keeps it for the next boot. What is there is
 * looked at first, so that only what the fix added is taken back, and again after the program, which
 * may have done nothing.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/step_impl.h"
#include "machine/line_keeper.h"

#include <errno.h>
#include <string.h>

enum { QUERY_S = 120 };

/* ---- the programs ---- */

static const struct keeper_program {
	const char *name;
	enum line_keeper keeper;
	const char *first; /* the word behind the name; NULL: none */
	const char *add, *remove;
	bool each; /* an option for each word, "--add=a --add=b"; else one for all, "-a 'a b'" */
	bool removes_all; /* every copy of a word; else the first */
	unsigned deadline_s;
} programs[] = {
	{"rpm-ostree", KEEPER_OSTREE, "kargs", "--append-if-missing=", "--delete-if-present=", true,
	 false, 600},
	{"grubby", KEEPER_GRUBBY, "--update-kernel=ALL", "--args=", "--remove-args=", false, true,
	 120},
	{"kernelstub", KEEPER_KERNELSTUB, NULL, "-a", "-d", false, true, 120},
};

static const struct keeper_program *find_program(const char *name)
{
	for (size_t i = 0; name && i < sizeof(programs) / sizeof(*programs); i++)
		if (strcmp(programs[i].name, name) == 0)
			return &programs[i];
	return NULL;
}

static const char *all_words(struct arena *a, const char *const *words, size_t n)
{
	AUTO_STRBUF struct strbuf all = {0};

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&all, "%s%s", i ? " " : "", words[i]);
	return arena_strdup(a, strbuf_str(&all));
}

static const char *const *make_argv(struct arena *a, const struct keeper_program *k,
				    const char *option, const char *const *words, size_t n)
{
	const char *all = all_words(a, words, n);
	const char **argv = NULL;
	size_t argc = 0;

	*ARENA_PUSH(a, argv, argc) = k->name;
	if (k->first)
		*ARENA_PUSH(a, argv, argc) = k->first;
	for (size_t i = 0; k->each && i < n; i++)
		*ARENA_PUSH(a, argv, argc) = arena_printf(a, "%s%s", option, words[i]);
	if (!k->each && text_ends_with(option, "=")) {
		*ARENA_PUSH(a, argv, argc) = arena_printf(a, "%s%s", option, all);
	} else if (!k->each) {
		*ARENA_PUSH(a, argv, argc) = option;
		*ARENA_PUSH(a, argv, argc) = all;
	}
	*ARENA_PUSH(a, argv, argc) = NULL;
	return argv;
}

/* "+a +b": each has to be there; "-a -b": none of them. */
static struct bytes signed_words(struct arena *a, char sign, const char *const *words, size_t n)
{
	AUTO_STRBUF struct strbuf all = {0};

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&all, "%s%c%s", i ? " " : "", sign, words[i]);
	return (struct bytes){arena_strdup(a, strbuf_str(&all)), all.len};
}

/* Fixes of different words are not in each other's way, so the words tell the targets apart. */
void step_words_set(struct arena *a, struct step *s, const char *program, const char *const *words,
		    size_t n)
{
	const struct keeper_program *k = find_program(program);

	s->target = k->name;
	s->at = all_words(a, words, n);
	s->argv = make_argv(a, k, k->add, words, n);
	s->undo_argv = make_argv(a, k, k->remove, words, n);
	s->old = signed_words(a, '-', words, n);
	s->new = signed_words(a, '+', words, n);
	s->deadline_s = k->deadline_s;
}

/* ---- what the next boot has ---- */

/* rpm-ostree alone knows: a deployment that is staged is nowhere else until the machine goes down. */
static int ask_ostree(struct fix_host *h, char **ret)
{
	static const char *const argv[] = {"rpm-ostree", "kargs", NULL};
	AUTO_STRBUF struct strbuf output = {0};
	int r = host_run(h, argv, QUERY_S, &output);

	if (r == 0)
		*ret = xstrdup(strbuf_str(&output));
	return r;
}

/* One text for each place that has to have the words. */
struct lines {
	char **items;
	size_t n;
	bool loose; /* the program may take other words for the step's */
};

static void lines_done(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
}

static void add_line(struct lines *l, char *text)
{
	l->items = xrealloc(l->items, l->n + 1, sizeof(*l->items));
	l->items[l->n++] = text;
}

static int read_files(struct fix_host *h, enum line_keeper keeper, struct lines *ret)
{
	static const struct machine_request request = {.parts = MACHINE_BOOT};
	struct machine *m;
	struct source *s;
	int r = source_open_root(h->root, NULL, NULL, &s);

	if (r < 0)
		return r;
	m = machine_read(s, &request);
	if (keeper == KEEPER_KERNELSTUB) {
		/* Without a file it has its own, and makes one. */
		if (fact_unknown(m->boot.kernelstub))
			r = err_set(EIO, "kernelstub's options: %s", FACT_WHY(m->boot.kernelstub));
		else
			add_line(ret, xstrdup(fact_str_or(m->boot.kernelstub, "")));
	}
	ret->loose = keeper == KEEPER_GRUBBY && grubby_is_loose(s);
	for (size_t i = 0; keeper == KEEPER_GRUBBY && r == 0 && i < m->boot.entry_n; i++) {
		const struct grub_entry *e = &m->boot.entries[i];

		if (e->unread)
			r = err_set(EIO, "%s cannot be read", e->unread);
		else
			add_line(ret, xstrdup(e->options));
	}
	if (r == 0 && !ret->n)
		r = err_set(EIO, "there is no boot entry below /boot/loader/entries");
	machine_free(m);
	source_free(s);
	return r;
}

static int read_lines(struct fix_host *h, const struct step *s, struct lines *ret)
{
	const struct keeper_program *k = find_program(s->target);
	char *text;
	int r;

	if (!k)
		return err_set(EINVAL, "%s keeps no command line that is known", s->target);
	if (k->keeper != KEEPER_OSTREE)
		return read_files(h, k->keeper, ret);
	r = ask_ostree(h, &text);
	if (r == 0)
		add_line(ret, text);
	return r;
}

static size_t lines_with(const struct lines *l, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += line_has_word(l->items[i], word);
	return n;
}

static size_t copies(const struct lines *l, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += line_word_copies(l->items[i], word);
	return n;
}

/* The step's words as a list; the caller frees both. */
struct words {
	char *text;
	const char **items;
	size_t n;
};

static void words_done(struct words *w)
{
	free(w->text);
	free(w->items);
}

static void split(const char *at, struct words *ret)
{
	char *rest = ret->text = xstrdup(at), *word;

	while ((word = strsep(&rest, " "))) {
		if (!*word)
			continue;
		ret->items = xrealloc(ret->items, ret->n + 1, sizeof(*ret->items));
		ret->items[ret->n++] = word;
	}
}

size_t step_word_count(const struct step *s)
{
	CLEANUP(words_done) struct words w = {0};

	split(s->at, &w);
	return w.n;
}

static size_t kept(const struct step *s, const char *word)
{
	CLEANUP(words_done) struct words w = {0};

	split(s->at, &w);
	for (size_t i = 0; s->keep && i < w.n; i++)
		if (strcmp(w.items[i], word) == 0)
			return s->keep[i];
	return 0;
}

/*
 * Whether all is as `signs` say, "+a -b"; `now` gets those of them that are there. What an undo has to
 * leave does not count.
 */
static bool is_so(const struct lines *l, const struct step *s, const struct bytes *signs,
		  struct strbuf *now)
{
	CLEANUP(words_done) struct words w = {0};
	bool so = true;

	split(signs->data ? signs->data : "", &w);
	for (size_t i = 0; i < w.n; i++) {
		const char *word = w.items[i] + 1;
		const bool more = copies(l, word) > kept(s, word);

		so &= *w.items[i] == '+' ? more && lines_with(l, word) == l->n : !more;
		if (more && now)
			strbuf_printf(now, "%s%s", now->len ? " " : "", word);
	}
	return so;
}

static int look(struct fix_host *h, const struct step *s, enum step_state *ret, char **ret_now)
{
	CLEANUP(lines_done) struct lines lines = {0};
	AUTO_STRBUF struct strbuf now = {0};
	int r = read_lines(h, s, &lines);

	if (r < 0)
		return r;
	*ret = is_so(&lines, s, &s->new, &now)   ? STEP_IS_NEW
	       : is_so(&lines, s, &s->old, NULL) ? STEP_IS_OLD
						 : STEP_IS_OTHER;
	if (ret_now)
		*ret_now = now.len ? xstrdup(now.text) : NULL;
	return 0;
}

/* ---- writing ---- */

/* What is there already is somebody's, who may have it wait for the next boot. */
static int prepare(struct fix_host *h, struct arena *a, struct step *s)
{
	CLEANUP(lines_done) struct lines lines = {0};
	char *rest = arena_strdup(a, s->new.data), *word;
	const char **missing = NULL;
	size_t n = 0;
	int r = read_lines(h, s, &lines);

	while (r == 0 && (word = strsep(&rest, " ")))
		if (*word && lines_with(&lines, word + 1) < lines.n)
			*ARENA_PUSH(a, missing, n) = word + 1;
	if (r == 0)
		step_words_set(a, s, s->target, missing, n);
	return r;
}

/* Nor does what it would do to a person's word show in the step's words afterwards. */
static int check_mistakes(const struct step *s, const struct lines *l, const struct words *w,
			  bool removes)
{
	for (size_t i = 0; l->loose && i < w->n; i++)
		for (size_t k = 0; k < l->n; k++) {
			AUTO_FREE char *other = grubby_mistaken(l->items[k], w->items[i], removes);

			if (other)
				return err_set(
					EEXIST,
					"the installed %s, of 2018, would change %s instead of %s: update it first",
					s->target, other, w->items[i]);
		}
	return 0;
}

static int apply(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	CLEANUP(lines_done) struct lines lines = {0};
	CLEANUP(words_done) struct words w = {0};
	int r = find_program(s->target)->keeper == KEEPER_GRUBBY ? read_lines(h, s, &lines) : 0;

	split(s->at, &w);
	if (r == 0)
		r = check_mistakes(s, &lines, &w, false);
	return r < 0 ? r : host_run(h, s->argv, s->deadline_s, output);
}

/*
 * Each command line got one copy, unless it had the word: what is more than that is somebody's, also what came after an
 * earlier try. A program that removes every copy does not run while there is more, so nothing is noted for it.
 */
static int prepare_undo(struct fix_host *h, struct arena *a, struct step *s)
{
	const struct keeper_program *k = find_program(s->target);
	CLEANUP(lines_done) struct lines lines = {0};
	CLEANUP(words_done) struct words w = {0};
	unsigned *keep;
	int r = k->removes_all ? 0 : read_lines(h, s, &lines);

	if (k->removes_all || r < 0)
		return r;
	split(s->at, &w);
	keep = arena_alloc(a, w.n, sizeof(*keep));
	for (size_t i = 0; i < w.n; i++) {
		size_t more = copies(&lines, w.items[i]) - lines_with(&lines, w.items[i]);
		size_t noted = kept(s, w.items[i]);

		keep[i] = (unsigned)(more > noted ? more : noted);
	}
	s->keep = keep;
	return 0;
}

static int check_removes_one(const struct keeper_program *k, const struct lines *l,
			     const struct words *w)
{
	for (size_t i = 0; k->removes_all && i < w->n; i++)
		if (copies(l, w->items[i]) > lines_with(l, w->items[i]))
			return err_set(
				EEXIST,
				"%s is on a kernel command line more than once, and %s would remove every copy: leave one, run onehop undo again, then add your own again",
				w->items[i], k->name);
	return 0;
}

/* An earlier try may have taken some of the words, whose other copies are not the step's. */
static int undo(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	const struct keeper_program *k = find_program(s->target);
	CLEANUP(lines_done) struct lines lines = {0};
	CLEANUP(words_done) struct words w = {0};
	struct arena *a;
	size_t n = 0;
	int r = read_lines(h, s, &lines);

	if (r < 0)
		return r;
	split(s->at, &w);
	r = check_removes_one(k, &lines, &w);
	if (r == 0)
		r = check_mistakes(s, &lines, &w, true);
	for (size_t i = 0; r == 0 && i < w.n; i++)
		if (copies(&lines, w.items[i]) > kept(s, w.items[i]))
			w.items[n++] = w.items[i];
	if (r < 0 || !n)
		return r;
	a = arena_new();
	r = host_run(h, make_argv(a, k, k->remove, w.items, n), s->deadline_s, output);
	arena_free(a);
	return r;
}

const struct step_ops step_words_ops = {
	.word = "words",
	.by_parts = true,
	.read_state = look,
	.prepare = prepare,
	.prepare_undo = prepare_undo,
	.apply = apply,
	.undo = undo,
};
