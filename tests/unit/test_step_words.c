/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fix/step_words.c: words for the next boot, by rpm-ostree, grubby and kernelstub, none of which
 * Debian has (bookworm, trixie, sid). The three here are stand-ins, and what they change was
 * compared with the source:
 *  - rpm-ostree: ostree_kernel_args_delete() of libostree 2019.3 and later deletes the first copy of a word;
 *  - kernelstub: kernelstub/application.py (commit ba89ab74): adds what is not there; -d deletes all copies, and
 *    leaves the rest in no order, which the one here keeps;
 *  - grubby: grubby(8), which promises all copies. `loose` is the script of 2018 (update_args() of grubby-bls, upstream's
 *    commit fdb5c761, Fedora's 9a80bb6 and before): it looks for "iommu=" to add and "iommu=pt" to remove anywhere in
 *    the line, and changes the first place up to the next blank. Later ones (608e31c and after) anchor the word.
 * What else the real ones do is not here.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "fix_rig.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define STAGED  "run/stand-in/staged" /* what the staged deployment of rpm-ostree would boot with */
#define ENTRY_1 "boot/loader/entries/1.conf"
#define ENTRY_2 "boot/loader/entries/2.conf"
#define STUB    "etc/kernelstub/configuration"

struct world {
	struct rig rig;
	bool idle;  /* the programs say that all is well, and do nothing */
	bool loose; /* grubby: as in 2018 */
	bool fails; /* rpm-ostree: at its end, with all of it done */
	size_t changes;
};

/* ---- lines of words ---- */

static bool has(const char *line, const char *word, size_t n)
{
	return text_list_has(line, " ", word, n);
}

/* The line with the word, or without its first `most` copies; to free. */
static char *edited(const char *line, const char *word, size_t n, bool add, size_t most)
{
	AUTO_STRBUF struct strbuf out = {0};
	AUTO_FREE char *copy = xstrdup(line);
	char *rest = copy, *item;

	while ((item = strsep(&rest, " \n"))) {
		if (!add && most && strlen(item) == n && memcmp(item, word, n) == 0)
			most--;
		else if (*item)
			strbuf_printf(&out, "%s%s", out.len ? " " : "", item);
	}
	if (add && !has(line, word, n))
		strbuf_printf(&out, "%s%.*s", out.len ? " " : "", (int)n, word);
	return xstrdup(strbuf_str(&out));
}

/* Each of "a b". */
static char *edited_all(const char *line, const char *words, bool add)
{
	char *now = xstrdup(line);

	for (size_t n; *words; words += n + (words[n] == ' ')) {
		char *next;

		n = strcspn(words, " ");
		next = edited(now, words, n, add, SIZE_MAX);
		free(now);
		now = next;
	}
	return now;
}

/* ---- the stand-ins ---- */

static const char *value_of(const char *word, const char *option)
{
	return text_starts_with(word, option) ? word + strlen(option) : NULL;
}

static int rpm_ostree(struct world *w, const char *const *argv, struct strbuf *output)
{
	char *line = rig_get(&w->rig, STAGED);

	assert_string_equal(argv[1], "kargs");
	for (argv += 2; *argv && !w->idle; argv++) {
		const char *add = value_of(*argv, "--append-if-missing=");
		const char *word = add ? add : value_of(*argv, "--delete-if-present=");
		char *next;

		assert_non_null(word);
		next = edited(line, word, strlen(word), add != NULL, 1);
		free(line);
		line = next;
		w->changes++;
	}
	rig_put(&w->rig, STAGED, line);
	strbuf_printf(output, "%s\n", line);
	free(line);
	return w->changes && w->fails ? 1 : 0;
}

/* One word, by the script of 2018. */
static char *edited_loosely(const char *line, const char *word, bool add)
{
	const size_t key = (size_t)(strrchr(word, '=') + 1 - word);
	AUTO_FREE char *found = xstrndup(word, add ? key : strlen(word));
	const char *at = strstr(line, found);

	if (!at)
		return add ? xprintf("%s %s", line, word) : xstrdup(line);
	return xprintf("%.*s%s%s", (int)(at - line), line, add ? word : "", at + strcspn(at, " "));
}

static char *edited_all_loosely(const char *line, const char *words, bool add)
{
	AUTO_FREE char *copy = xstrdup(words);
	char *now = xstrndup(line, strcspn(line, "\n")), *rest = copy, *word;

	while ((word = strsep(&rest, " "))) {
		char *next = edited_loosely(now, word, add);

		free(now);
		now = next;
	}
	return now;
}

static void edit_entry(struct world *w, const char *path, const char *words, bool add)
{
	AUTO_FREE char *text = rig_get(&w->rig, path);
	const char *options = text + strlen("options ");
	AUTO_FREE char *line = w->loose ? edited_all_loosely(options, words, add)
					: edited_all(options, words, add);
	AUTO_FREE char *next = xprintf("options %s\n", line);

	rig_put(&w->rig, path, next);
}

static int grubby(struct world *w, const char *const *argv, struct strbuf *output)
{
	const char *add = value_of(argv[2], "--args=");
	const char *words = add ? add : value_of(argv[2], "--remove-args=");

	(void)output;
	assert_string_equal(argv[1], "--update-kernel=ALL");
	assert_non_null(words);
	if (w->idle)
		return 0;
	edit_entry(w, ENTRY_1, words, add != NULL);
	edit_entry(w, ENTRY_2, words, add != NULL);
	w->changes++;
	return 0;
}

static void put_stub(struct world *w, const char *line)
{
	AUTO_STRBUF struct strbuf out = {0};
	AUTO_FREE char *copy = xstrdup(line);
	char *rest = copy, *item;
	size_t n = 0;

	strbuf_puts(
		&out,
		"{\"default\": {\"kernel_options\": [\"quiet\"]}, \"user\": {\"kernel_options\": [");
	while ((item = strsep(&rest, " ")))
		strbuf_printf(&out, "%s\"%s\"", n++ ? ", " : "", item);
	strbuf_puts(&out, "], \"config_rev\": 3}}\n");
	rig_put(&w->rig, STUB, out.text);
}

/* The options between the last pair of brackets, as a line. */
static char *get_stub(struct world *w)
{
	AUTO_FREE char *text = rig_get(&w->rig, STUB);
	AUTO_STRBUF struct strbuf out = {0};
	const char *at = strrchr(text, '[');

	for (at++; *at != ']'; at++)
		if (!strchr("\",", *at))
			strbuf_putc(&out, *at);
	return xstrdup(strbuf_str(&out));
}

static int kernelstub(struct world *w, const char *const *argv, struct strbuf *output)
{
	AUTO_FREE char *line = get_stub(w), *next = NULL;

	(void)output;
	assert_null(argv[3]);
	if (w->idle)
		return 0;
	next = edited_all(line, argv[2], strcmp(argv[1], "-a") == 0);
	put_stub(w, next);
	w->changes++;
	return 0;
}

static int runner(void *context, const char *const *argv, unsigned deadline_s,
		  struct strbuf *output, int *ret_status)
{
	struct world *w = context;

	(void)deadline_s;
	*ret_status = strcmp(argv[0], "rpm-ostree") == 0 ? rpm_ostree(w, argv, output)
		      : strcmp(argv[0], "grubby") == 0   ? grubby(w, argv, output)
							 : kernelstub(w, argv, output);
	return 0;
}

/* ---- the three, alike ---- */

static void set_ostree(struct world *w, const char *line)
{
	rig_put(&w->rig, STAGED, line);
}

static char *get_ostree(struct world *w)
{
	return rig_get(&w->rig, STAGED);
}

static void set_grubby(struct world *w, const char *line)
{
	AUTO_FREE char *text = xprintf("options %s\n", line);

	rig_put(&w->rig, ENTRY_1, text);
	rig_put(&w->rig, ENTRY_2, text);
}

static char *get_grubby(struct world *w)
{
	AUTO_FREE char *one = rig_get(&w->rig, ENTRY_1), *two = rig_get(&w->rig, ENTRY_2);

	assert_string_equal(one, two);
	return xstrndup(one + strlen("options "), strcspn(one + strlen("options "), "\n"));
}

static const struct keeper {
	const char *name;
	void (*set)(struct world *w, const char *line);
	char *(*get)(struct world *w);
} keepers[] = {
	{"rpm-ostree", set_ostree, get_ostree},
	{"grubby", set_grubby, get_grubby},
	{"kernelstub", put_stub, get_stub},
};

static void world_open(struct world *w, const struct keeper *k, const char *line)
{
	*w = (struct world){0};
	rig_open(&w->rig, 1);
	w->rig.host.run = runner;
	w->rig.host.run_context = w;
	k->set(w, line);
}

static void assert_line(struct world *w, const struct keeper *k, const char *expected)
{
	AUTO_FREE char *line = k->get(w);

	assert_string_equal(line, expected);
}

static struct plan *plan_of(const struct keeper *k)
{
	static const char *const words[] = {"iommu=pt", "pci=realloc"};
	struct plan *p = plan_new();

	p->steps = arena_alloc(p->arena, 1, sizeof(*p->steps));
	p->step_n = 1;
	p->steps[0] = (struct step){.kind = STEP_WORDS, .what = ""};
	step_words_set(p->arena, &p->steps[0], k->name, words, 2);
	return p;
}

static enum fix_result apply(struct world *w, const struct keeper *k)
{
	struct plan *p = plan_of(k);
	enum fix_result result;
	unsigned number;

	rig_listen(&w->rig);
	assert_int_equal(fix_apply(&w->rig.run, p, &result, &number), 0);
	plan_free(p);
	return result;
}

static enum fix_result undo(struct world *w)
{
	enum fix_result result;
	unsigned number;

	rig_listen(&w->rig);
	w->changes = 0;
	assert_int_equal(fix_undo(&w->rig.run, 0, &result, &number), 0);
	return result;
}

#define FOR_EACH_KEEPER(k) for (const struct keeper *k = keepers; k < keepers + 3; k++)

/* ---- what has to hold ---- */

/* A word that a person has wait for the next boot is none of the fix's. */
static void words_of_a_person_stay(void **state)
{
	(void)state;
	FOR_EACH_KEEPER(k)
	{
		struct world w;

		world_open(&w, k, "ro iommu=pt quiet");
		assert_int_equal(apply(&w, k), FIX_DONE);
		assert_line(&w, k, "ro iommu=pt quiet pci=realloc");
		assert_int_equal(undo(&w), FIX_DONE);
		assert_line(&w, k, "ro iommu=pt quiet");
		rig_close(&w.rig);
	}
}

static void nothing_to_add(void **state)
{
	(void)state;
	FOR_EACH_KEEPER(k)
	{
		struct world w;

		world_open(&w, k, "ro pci=realloc iommu=pt");
		assert_int_equal(apply(&w, k), FIX_NOTHING);
		assert_int_equal(w.changes, 0);
		rig_close(&w.rig);
	}
}

/* A program that ends well and does nothing has not done it. */
static void idle_programs_are_noticed(void **state)
{
	(void)state;
	FOR_EACH_KEEPER(k)
	{
		struct world w;

		world_open(&w, k, "ro");
		w.idle = true;
		assert_int_equal(apply(&w, k), FIX_ROLLED_BACK);
		assert_non_null(strstr(w.rig.texts.text,
				       "of the words iommu=pt pci=realloc the next boot has none"));
		w.idle = false;
		assert_int_equal(apply(&w, k), FIX_DONE);
		w.idle = true;
		assert_int_equal(undo(&w), FIX_NOT_ROLLED_BACK);
		assert_line(&w, k, "ro iommu=pt pci=realloc");
		w.idle = false;
		assert_int_equal(undo(&w), FIX_DONE);
		assert_line(&w, k, "ro");
		rig_close(&w.rig);
	}
}

/* Taken away by other means: the fix counts as undone, and no program is run for it. */
static void gone_words_are_undone(void **state)
{
	(void)state;
	FOR_EACH_KEEPER(k)
	{
		struct journal_entry *entries;
		struct world w;
		size_t n;

		world_open(&w, k, "ro");
		assert_int_equal(apply(&w, k), FIX_DONE);
		k->set(&w, "ro quiet");
		assert_int_equal(undo(&w), FIX_DONE);
		assert_int_equal(w.changes, 0);
		assert_line(&w, k, "ro quiet");
		assert_int_equal(journal_read(&w.rig.host, &entries, &n), 0);
		assert_int_equal(entries[0].state, FIX_UNDONE);
		journal_free(entries, n);
		rig_close(&w.rig);
	}
}

static void some_words_are_gone(void **state)
{
	(void)state;
	FOR_EACH_KEEPER(k)
	{
		struct world w;

		world_open(&w, k, "ro");
		assert_int_equal(apply(&w, k), FIX_DONE);
		k->set(&w, "ro pci=realloc debug");
		assert_int_equal(undo(&w), FIX_DONE);
		assert_line(&w, k, "ro debug");
		rig_close(&w.rig);
	}
}

/*
 * The fix's copy goes, and the person's stays: in one try or more, of which the first may have done
 * it.
 */
static void second_copy_stays(void **state)
{
	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		struct world w;

		world_open(&w, &keepers[0], "ro");
		assert_int_equal(apply(&w, &keepers[0]), FIX_DONE);
		set_ostree(&w, "ro iommu=pt pci=realloc iommu=pt");
		w.fails = fails;
		assert_int_equal(undo(&w), fails ? FIX_NOT_ROLLED_BACK : FIX_DONE);
		assert_line(&w, &keepers[0], "ro iommu=pt");
		w.fails = false;
		if (fails)
			assert_int_equal(undo(&w), FIX_DONE);
		assert_int_equal(w.changes, fails ? 0 : 2);
		assert_line(&w, &keepers[0], "ro iommu=pt");
		rig_close(&w.rig);
	}
}

/* Of two words the first try took one: of that a person's copy is left, of the other the fix's. */
static void second_copy_stays_on_retry(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, &keepers[0], "ro");
	assert_int_equal(apply(&w, &keepers[0]), FIX_DONE);
	set_ostree(&w, "ro iommu=pt iommu=pt pci=realloc");
	w.idle = true;
	assert_int_equal(undo(&w), FIX_NOT_ROLLED_BACK);
	w.idle = false;
	set_ostree(&w, "ro iommu=pt pci=realloc");
	assert_int_equal(undo(&w), FIX_DONE);
	assert_int_equal(w.changes, 1);
	assert_line(&w, &keepers[0], "ro iommu=pt");
	rig_close(&w.rig);
}

/* A copy that a person adds between two tries is not the fix's either. */
static void copy_of_later_stays(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, &keepers[0], "ro");
	assert_int_equal(apply(&w, &keepers[0]), FIX_DONE);
	w.idle = true;
	assert_int_equal(undo(&w), FIX_NOT_ROLLED_BACK);
	w.idle = false;
	set_ostree(&w, "ro iommu=pt pci=realloc iommu=pt");
	assert_int_equal(undo(&w), FIX_DONE);
	assert_line(&w, &keepers[0], "ro iommu=pt");
	rig_close(&w.rig);
}

/*
 * A program that would take the person's copy too is not run: which of them goes is the person's to
 * say.
 */
static void second_copy_is_not_removed(void **state)
{
	(void)state;
	for (size_t i = 1; i < 3; i++) {
		const struct keeper *k = &keepers[i];
		struct world w;

		world_open(&w, k, "ro");
		assert_int_equal(apply(&w, k), FIX_DONE);
		k->set(&w, "ro iommu=pt iommu=pt");
		assert_int_equal(undo(&w), FIX_NOT_ROLLED_BACK);
		assert_int_equal(w.changes, 0);
		assert_line(&w, k, "ro iommu=pt iommu=pt");
		assert_non_null(strstr(w.rig.texts.text, "would remove every copy"));
		k->set(&w, "ro iommu=pt");
		assert_int_equal(undo(&w), FIX_DONE);
		assert_line(&w, k, "ro");
		rig_close(&w.rig);
	}
}

/* A grubby that takes other words for the fix's is not run where there are such. */
static void words_are_not_mistaken(void **state)
{
	static const char script[] = "#!/bin/bash\nupdate_args() { :; }\n";
	const struct keeper *k = &keepers[1];
	struct world w;

	(void)state;
	world_open(&w, k, "ro intel_iommu=on");
	rig_put(&w.rig, "usr/libexec/grubby/grubby-bls", script);
	w.loose = true;
	assert_int_equal(apply(&w, k), FIX_ROLLED_BACK);
	assert_line(&w, k, "ro intel_iommu=on");
	assert_non_null(
		strstr(w.rig.texts.text, "would change intel_iommu=on instead of iommu=pt"));

	k->set(&w, "ro");
	assert_int_equal(apply(&w, k), FIX_DONE);
	assert_line(&w, k, "ro iommu=pt pci=realloc");
	k->set(&w, "ro iommu=pt,strict iommu=pt pci=realloc");
	assert_int_equal(undo(&w), FIX_NOT_ROLLED_BACK);
	assert_line(&w, k, "ro iommu=pt,strict iommu=pt pci=realloc");
	k->set(&w, "ro intel_iommu=on iommu=pt pci=realloc");
	assert_int_equal(undo(&w), FIX_DONE);
	assert_int_equal(w.changes, 1);
	rig_close(&w.rig);
}

static void later_grubby_mistakes_nothing(void **state)
{
	const struct keeper *k = &keepers[1];
	struct world w;

	(void)state;
	world_open(&w, k, "ro intel_iommu=on");
	rig_put(&w.rig, "usr/libexec/grubby/grubby-bls",
		"#!/bin/bash\nupdate_args() { : \"([[:space:]])$arg\"; }\n");
	assert_int_equal(apply(&w, k), FIX_DONE);
	assert_line(&w, k, "ro intel_iommu=on iommu=pt pci=realloc");
	rig_close(&w.rig);
}

/* Logs of earlier versions have no counts, and a log with counts that cannot be is damaged. */
static void counts_in_the_log(void **state)
{
	static const char log[] = "var/lib/onehop/fixes/1/log.jsonl";
	static const struct {
		const char *keep;
		bool ok;
	} lines[] = {{"", true},
		     {", \"keep\": [0, 1]", true},
		     {", \"keep\": [0]", false},
		     {", \"keep\": [0, 1, 2]", false},
		     {", \"keep\": [0, -1]", false},
		     {", \"keep\": [0, 2147483647]", false},
		     {", \"keep\": [0, \"1\"]", false},
		     {", \"keep\": 1", false}};
	struct world w;

	(void)state;
	world_open(&w, &keepers[0], "ro");
	assert_int_equal(apply(&w, &keepers[0]), FIX_DONE);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		AUTO_FREE char *text = rig_get(&w.rig, log), *plain = rig_unchained(text);
		AUTO_FREE char *more = xprintf("%s{\"step\": 0, \"mark\": \"undo-started\"%s}\n",
					       plain, lines[i].keep);
		struct journal_entry *entries;
		size_t n;

		rig_put(&w.rig, log, more);
		assert_int_equal(journal_read(&w.rig.host, &entries, &n), 0);
		assert_int_equal(n, 1);
		assert_int_equal(entries[0].damage == 0, lines[i].ok);
		journal_free(entries, n);
		rig_put(&w.rig, log, text);
	}
	rig_close(&w.rig);
}

/* What stands behind "--" is for the first program, and not set. */
static void words_behind_dashes(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, &keepers[0], "ro -- pci=realloc");
	w.idle = true;
	assert_int_equal(apply(&w, &keepers[0]), FIX_ROLLED_BACK);
	rig_close(&w.rig);
}

/* Some entries have the word, and others do not: none of them is left behind. */
static void entries_differ(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, &keepers[1], "ro");
	assert_int_equal(apply(&w, &keepers[1]), FIX_DONE);
	rig_put(&w.rig, ENTRY_2, "options ro\n");
	assert_int_equal(undo(&w), FIX_DONE);
	assert_line(&w, &keepers[1], "ro");
	rig_close(&w.rig);
}

static void unreadable_is_no_answer(void **state)
{
	enum fix_result result;
	unsigned number;
	struct plan *p;
	struct world w;

	(void)state;
	world_open(&w, &keepers[2], "ro");
	rig_put(&w.rig, STUB, "{\"user\": {}}\n");
	p = plan_of(&keepers[2]);
	assert_int_equal(fix_apply(&w.rig.run, p, &result, &number), -EIO);
	plan_free(p);
	rig_close(&w.rig);
}

/* Words of two fixes are not in each other's way. */
static void fixes_of_other_words(void **state)
{
	static const char *const other = "nosmt";
	enum fix_result result;
	unsigned number;
	struct plan *p;
	struct world w;

	(void)state;
	world_open(&w, &keepers[0], "ro");
	assert_int_equal(apply(&w, &keepers[0]), FIX_DONE);
	p = plan_of(&keepers[0]);
	step_words_set(p->arena, &p->steps[0], "rpm-ostree", &other, 1);
	assert_int_equal(fix_apply(&w.rig.run, p, &result, &number), 0);
	plan_free(p);
	assert_int_equal(fix_undo(&w.rig.run, 1, &result, &number), 0);
	assert_int_equal(result, FIX_DONE);
	assert_line(&w, &keepers[0], "ro nosmt");
	rig_close(&w.rig);
}

/* ---- undo --forget ---- */

static enum fix_state state_of(struct world *w, size_t i)
{
	struct journal_entry *entries;
	enum fix_state state;
	size_t n;

	assert_int_equal(journal_read(&w->rig.host, &entries, &n), 0);
	assert_true(i < n);
	state = entries[i].state;
	journal_free(entries, n);
	return state;
}

/*
 * What is in force is undone, not forgotten; what a person took back is closed, and stays listed.
 */
static void forgotten(void **state)
{
	enum fix_result result;
	unsigned number;
	struct world w;

	(void)state;
	world_open(&w, &keepers[0], "ro");
	assert_int_equal(fix_forget(&w.rig.run, 1), -ENOENT);
	assert_int_equal(apply(&w, &keepers[0]), FIX_DONE);
	assert_int_equal(fix_forget(&w.rig.run, 1), -EBUSY);
	assert_int_equal(state_of(&w, 0), FIX_APPLIED);
	w.idle = true;
	assert_int_equal(undo(&w), FIX_NOT_ROLLED_BACK);
	w.idle = false;
	assert_int_equal(fix_forget(&w.rig.run, 1), -EBUSY);
	set_ostree(&w, "ro");
	w.changes = 0;
	assert_int_equal(fix_forget(&w.rig.run, 1), 0);
	assert_int_equal(w.changes, 0);
	assert_int_equal(state_of(&w, 0), FIX_FORGOTTEN);
	assert_int_equal(fix_forget(&w.rig.run, 1), -EALREADY);
	assert_int_equal(fix_undo(&w.rig.run, 1, &result, &number), -EALREADY);
	assert_int_equal(fix_undo(&w.rig.run, 0, &result, &number), -ENOENT);
	assert_int_equal(apply(&w, &keepers[0]), FIX_DONE);
	assert_int_equal(undo(&w), FIX_DONE);
	rig_close(&w.rig);
}

/* A fix of which nobody can tell what it did stands in the way of all others until then. */
static void damaged_is_forgotten(void **state)
{
	enum fix_result result;
	unsigned number;
	struct plan *p;
	struct world w;

	(void)state;
	world_open(&w, &keepers[0], "ro");
	assert_int_equal(apply(&w, &keepers[0]), FIX_DONE);
	rig_put(&w.rig, "var/lib/onehop/fixes/1/plan.json", "{");
	set_ostree(&w, "ro");
	p = plan_of(&keepers[0]);
	assert_true(fix_apply(&w.rig.run, p, &result, &number) < 0);
	assert_int_equal(fix_forget(&w.rig.run, 1), 0);
	assert_int_equal(fix_apply(&w.rig.run, p, &result, &number), 0);
	assert_int_equal(result, FIX_DONE);
	assert_int_equal(number, 2);
	plan_free(p);
	rig_close(&w.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_a_person_stay),
		cmocka_unit_test(nothing_to_add),
		cmocka_unit_test(idle_programs_are_noticed),
		cmocka_unit_test(gone_words_are_undone),
		cmocka_unit_test(some_words_are_gone),
		cmocka_unit_test(second_copy_stays),
		cmocka_unit_test(second_copy_stays_on_retry),
		cmocka_unit_test(copy_of_later_stays),
		cmocka_unit_test(second_copy_is_not_removed),
		cmocka_unit_test(words_are_not_mistaken),
		cmocka_unit_test(later_grubby_mistakes_nothing),
		cmocka_unit_test(counts_in_the_log),
		cmocka_unit_test(words_behind_dashes),
		cmocka_unit_test(entries_differ),
		cmocka_unit_test(unreadable_is_no_answer),
		cmocka_unit_test(fixes_of_other_words),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(damaged_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
