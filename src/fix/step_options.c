/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that add words to a kernel command line in a text: an entry of a boot partition, or
 * /etc/kernel/cmdline. The words are what is the fix's, not the text around them: kernels come and go,
 * boot counting renames entries, and persons edit them. So both directions go by what is there then.
 */
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/boot_entries.h"
#include "fix/boot_images.h"
#include "fix/step_impl.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

/* The file that a step is about, as it is now. */
struct now {
	enum boot_text form;
	char *path; /* of an entry, under the name that it has by now; NULL: it is not there */
	char *text; /* NULL: the same */
};

#define AUTO_NOW CLEANUP(now_done)
static void now_done(struct now *n)
{
	free(n->path);
	free(n->text);
}

/* ---- words ---- */

/* Copies the next of `words` to ret, which the caller frees; *words goes on behind it. */
static char *next_word(const char **words)
{
	const char *start = *words + strspn(*words, " ");
	size_t n = strcspn(start, " ");

	*words = start + n;
	return n ? xstrndup(start, n) : NULL;
}

/* How many of the step's words the text has; *ret_n: of how many. */
static size_t count(const struct step *s, const char *text, enum boot_text form, size_t *ret_n)
{
	const char *words = s->at;
	size_t found = 0;
	char *word;

	for (*ret_n = 0; (word = next_word(&words)); (*ret_n)++) {
		found += boot_text_has(text, form, word);
		free(word);
	}
	return found;
}

static bool has_any(const struct step *s, const char *text, enum boot_text form)
{
	size_t n;

	return count(s, text, form, &n) > 0;
}

/* A line without the words, so that kernel-install does not take them from the running kernel's. */
static bool holds_off(const struct step *s)
{
	return !s->old.data && s->new.data &&boot_text_of(s->target) == BOOT_TEXT_LINE &&
	       !has_any(s, s->new.data, BOOT_TEXT_LINE);
}

typedef bool edit(const char *text, enum boot_text form, const char *word, struct strbuf *ret);

/* Only what is not there. */
static bool add(const char *text, enum boot_text form, const char *word, struct strbuf *ret)
{
	if (!boot_text_has(text, form, word))
		return boot_text_add(text, form, word, ret);
	strbuf_puts(ret, text);
	return true;
}

/* Only what is there. */
static bool take(const char *text, enum boot_text form, const char *word, struct strbuf *ret)
{
	if (!boot_text_remove(text, form, word, ret))
		strbuf_puts(ret, text);
	return true;
}

/* The text after that edit for each word; the caller frees. NULL: one of them cannot be made. */
static char *edited(const struct step *s, const char *text, enum boot_text form, edit *how)
{
	char *now = xstrdup(text), *word;
	const char *words = s->at;

	while (now && (word = next_word(&words))) {
		AUTO_STRBUF struct strbuf next = {0};
		bool done = how(now, form, word, &next);

		free(word);
		free(now);
		now = done ? xstrdup(strbuf_str(&next)) : NULL;
	}
	return now;
}

/* What the file had before, in the form of the text that it is compared with; the caller frees. */
static char *before(const struct step *s, enum boot_text form)
{
	AUTO_FREE char *words = NULL;

	if (!s->old.data || form == boot_text_of(s->target))
		return s->old.data ? xstrdup(s->old.data) : NULL;
	words = boot_text_words(s->old.data, BOOT_TEXT_LINE);
	return xprintf("options %s\n", words);
}

static bool has_as_written(const char *text, enum boot_text form, const char *word)
{
	AUTO_STRBUF struct strbuf rest = {0};

	return boot_text_remove(text, form, word, &rest);
}

/*
 * What somebody has made since of a word of the step's; the caller frees. NULL: nothing. In addition to the word
 * as it was written such a one is another fix's, or a person's.
 */
static char *changed(const struct step *s, const char *text, enum boot_text form)
{
	AUTO_FREE char *old = before(s, form);
	const char *words = s->at;
	char *word, *now = NULL;

	while (!now && (word = next_word(&words))) {
		if (!has_as_written(text, form, word))
			now = boot_text_changed(text, form, word, old);
		free(word);
	}
	return now;
}

/* How often the word is there as it was written. */
static size_t times(const char *text, enum boot_text form, const char *word)
{
	AUTO_FREE char *now = xstrdup(text);
	size_t n = 0;

	for (bool found = true; found; n += found) {
		AUTO_STRBUF struct strbuf rest = {0};

		found = boot_text_remove(now, form, word, &rest);
		if (found) {
			free(now);
			now = xstrdup(strbuf_str(&rest));
		}
	}
	return n;
}

/* The words of the step's that an entry has more often than the line that entries are made from; the caller
 * frees. NULL: none. `line` NULL: there is none. */
static char *surplus(const struct step *s, const char *entry, const char *line)
{
	AUTO_STRBUF struct strbuf more = {0};
	const char *words = s->at;
	char *word;

	while ((word = next_word(&words))) {
		if (times(entry, BOOT_TEXT_ENTRY, word) >
		    times(line ? line : "", BOOT_TEXT_LINE, word))
			strbuf_printf(&more, "%s%s", more.len ? " " : "", word);
		free(word);
	}
	return more.len ? xstrdup(more.text) : NULL;
}

/* ---- what undo finds ---- */

/* Sentences, "; " between. `said` (NULL: nobody listens) is for a person to know, `left` to be done. */
struct found {
	struct strbuf *said, left;
};

#define AUTO_FOUND CLEANUP(found_done)
static void found_done(struct found *f)
{
	strbuf_done(&f->left);
}

__attribute__((format(printf, 2, 3))) static void say(struct strbuf *to, const char *fmt, ...)
{
	va_list args;

	if (!to)
		return;
	if (to->len)
		strbuf_puts(to, "; ");
	va_start(args, fmt);
	strbuf_vprintf(to, fmt, args);
	va_end(args);
}

/* The text without `words` of the step's, as far as they are there as the fix wrote them; the caller frees. */
static char *without(const struct step *s, const char *words, const char *path, const char *text,
		     enum boot_text form, struct found *f)
{
	const struct step part = {.at = words};
	AUTO_FREE char *other = changed(s, text, form);
	char *now = edited(&part, text, form, take);

	if (other)
		say(&f->left, "/%s has %s, which was changed from %s: remove it there", path, other,
		    s->at);
	else if (has_any(&part, now, form))
		say(f->said, "/%s has %s once more, which is not of this fix: it stays", path,
		    words);
	return now;
}

/* ---- the file ---- */

int step_not_mounted(const char *folder)
{
	return err_set(ENXIO, "/%s is not there: mount its file system first", folder);
}

/* An entry that was renamed since: *ret NULL if there is none. */
static int find_renamed(struct fix_host *h, const struct step *s, char **ret)
{
	const char *name = strrchr(s->target, '/') + 1;
	AUTO_FREE char *folder = xstrndup(s->target, (size_t)(name - 1 - s->target));
	char **names = NULL;
	size_t n = 0;
	int r = host_list(h, folder, &names, &n);

	*ret = NULL;
	if (r == -ENOENT)
		return step_not_mounted(folder);
	for (size_t i = 0; r == 0 && i < n && !*ret; i++)
		if (boot_entry_same(names[i], name))
			*ret = xprintf("%s/%s", folder, names[i]);
	source_free_names(names, n);
	return r;
}

static int read_text(struct fix_host *h, struct now *n)
{
	size_t size = 0;
	int r = host_read(h, n->path, &n->text, &size);

	if (r == 0 && strlen(n->text) != size)
		return err_set(
			EILSEQ,
			"/%s has a zero byte, so it is not edited: remove that byte, or the file",
			n->path);
	return r;
}

static int read_now(struct fix_host *h, const struct step *s, struct now *ret)
{
	int r;

	ret->form = boot_text_of(s->target);
	ret->path = xstrdup(s->target);
	r = read_text(h, ret);
	if (r == -ENOENT && ret->form == BOOT_TEXT_ENTRY) {
		free(ret->path);
		r = find_renamed(h, s, &ret->path);
		if (r == 0 && ret->path)
			r = read_text(h, ret);
	}
	return r == -ENOENT ? 0 : r;
}

/* `seen` NULL: it is not there. What is not read back as it was written was not done. */
static int put_text(struct fix_host *h, const char *path, const char *seen, const char *text)
{
	const struct host_change c = {
		.seen = {seen, seen ? strlen(seen) : 0},
		.put = {text, strlen(text)},
		.mode = 0644,
	};
	AUTO_FREE char *now = NULL;
	size_t size = 0;
	int r = boot_text_of(path) == BOOT_TEXT_ENTRY
			? host_replace_entry(h, path, seen ? seen : "", text)
			: host_change(h, path, &c);

	if (r >= 0 && h->rehearsal)
		return 0;
	if (r >= 0)
		r = host_read(h, path, &now, &size);
	if (r < 0)
		return r;
	if (size != strlen(text) || memcmp(now, text, size) != 0)
		return err_set(EIO, "/%s is not what was written to it", path);
	return 0;
}

/* ---- what a power cut left of an entry ---- */

/*
 * FAT has no journal: what lies there after a cut may be empty, or gone, once the file system was
 * checked. The old entry is next to it then, under the name that host_replace_entry gave it.
 */
static bool is_torn(struct fix_host *h, const struct step *s, const struct now *n)
{
	AUTO_FREE char *kept = host_kept_entry(s->target);
	struct stat st;

	if (n->form != BOOT_TEXT_ENTRY || !s->old.data)
		return false;
	return n->text ? !*n->text : host_stat(h, kept, &st) == 0;
}

/* ---- the line that entries are made from ---- */

static char *running_line(struct fix_host *h)
{
	char *line = NULL;
	size_t size;

	return h->image || host_read(h, "proc/cmdline", &line, &size) < 0 ? NULL : line;
}

/*
 * A file that the fix made goes only while the running kernel has none of its words: kernel-install
 * would take them from /proc/cmdline otherwise, and make them permanent. It takes the distribution's
 * file first, where there is one; that one would be hidden for good.
 */
static bool can_go(struct fix_host *h, const struct step *s, const struct now *n)
{
	AUTO_FREE char *running = running_line(h);
	struct stat st;

	if (n->form != BOOT_TEXT_LINE || s->old.data || strcmp(n->text, s->new.data) != 0)
		return false;
	return host_stat(h, "usr/lib/kernel/cmdline", &st) == 0 ||
	       (running && !has_any(s, running, BOOT_TEXT_LINE));
}

/* The text as undo leaves it; the caller frees. */
static char *undone_text(const struct step *s, const struct now *n, struct found *f)
{
	if (holds_off(s))
		return xstrdup(n->text);
	if (s->old.data && strcmp(n->text, s->new.data) == 0)
		return xstrdup(s->old.data);
	return without(s, s->at, n->path, n->text, n->form, f);
}

/* What kernel-install takes once the step is undone; the caller frees. NULL: the running kernel's line. */
static char *line_after(struct fix_host *h, const struct step *s, const struct now *n)
{
	AUTO_FOUND struct found nobody = {0};
	char *line = NULL;
	size_t size;

	if (!s->known) /* nobody looks at entries that were made since */
		return NULL;
	if (n->text && !can_go(h, s, n))
		return undone_text(s, n, &nobody);
	return host_read(h, "usr/lib/kernel/cmdline", &line, &size) < 0 ? NULL : line;
}

/* ---- entries that were made since ---- */

struct since {
	struct arena *arena;
	struct boot_entries all;
	struct boot_image *images;
	size_t image_n;
	char *line; /* line_after */
};

#define AUTO_SINCE CLEANUP(since_done)
static void since_done(struct since *x)
{
	arena_free(x->arena);
	free(x->line);
}

static const struct boot_entry *find_entry(const struct boot_entries *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->items[i].name, name) == 0)
			return &all->items[i];
	return NULL;
}

static bool lists(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

static bool was_there(const struct step *s, const char *name)
{
	return lists(s->known, name);
}

/* The first that has another counter than the one of that name, as find_renamed takes it. */
static const struct boot_entry *renamed(const struct step *s, const struct boot_entries *all,
					const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (boot_entry_same(all->items[i].name, name) && !was_there(s, all->items[i].name))
			return &all->items[i];
	return NULL;
}

/* It was there when the fix was made: by the same name, or by another counter in it. */
static bool is_known(const struct step *s, const struct boot_entries *all,
		     const struct boot_entry *e)
{
	if (was_there(s, e->name))
		return true;
	for (const char *const *name = s->known; *name; name++)
		if (boot_entry_same(*name, e->name) && !find_entry(all, *name) &&
		    renamed(s, all, *name) == e)
			return true;
	return false;
}

/* What the line has of them without the fix is a person's, and kernel-install took that over too. */
static bool has_words(const struct step *s, const struct since *x, const struct boot_entry *e)
{
	AUTO_FREE char *other = changed(s, e->text, BOOT_TEXT_ENTRY);
	AUTO_FREE char *more = surplus(s, e->text, x->line);

	return other || more;
}

/* Boot counting's name of an entry that was there. */
static bool is_counted(const struct step *s, const struct boot_entry *e)
{
	for (const char *const *name = s->known; *name; name++)
		if (boot_entry_same(*name, e->name))
			return true;
	return false;
}

enum maker {
	MAKER_NONE,
	MAKER_PERSON,
	MAKER_KERNEL_INSTALL, /* which took the words from its line */
	MAKER_OTHERS,         /* kernel-install of another root=, as of a copy of the disk */
	MAKER_NOT_KNOWN,      /* of an entry that a program or a cut has spoiled */
};

/* Who made an entry with words of the step since. */
static enum maker made_since(const struct step *s, const struct since *x,
			     const struct boot_entry *e)
{
	const bool own = e->kind == ENTRY_OURS || e->kind == ENTRY_RESCUE;

	if (!(own || e->made) || is_known(s, &x->all, e) || !has_words(s, x, e))
		return MAKER_NONE;
	if (!own)
		return MAKER_OTHERS;
	if (e->has_zero)
		return MAKER_NOT_KNOWN;
	return e->made || is_counted(s, e) ? MAKER_KERNEL_INSTALL : MAKER_PERSON;
}

/* The line that entries are made from, as it is now, or as the fix left it: its root= is this system's. */
static char *own_words(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *now = NULL;
	size_t size;

	if (host_read(h, s->target, &now, &size) < 0)
		return s->new.data ? boot_text_words(s->new.data, BOOT_TEXT_LINE) : NULL;
	return boot_text_words(now, BOOT_TEXT_LINE);
}

static int read_since(struct fix_host *h, const struct step *s, struct since *x)
{
	AUTO_FREE char *words = own_words(h, s);
	struct source *root = NULL;
	int r = source_open_root(h->root, NULL, NULL, &root);

	if (r < 0)
		return err_sys(-r, "%s", h->root);
	boot_entries_read_since(root, x->arena, words, s->own_names, &x->all);
	source_free(root);
	if (x->all.unread)
		return err_sys(-x->all.error, "read %s", x->all.unread);
	if (!x->all.folder)
		return err_set(ENXIO,
			       "there is no folder loader/entries of a boot partition: mount its "
			       "file system first");
	return s->known_images ? boot_images_read(h, x->arena, &x->images, &x->image_n) : 0;
}

/*
 * The words of the step inside an image that had none of them before; the caller frees. NULL: none. A signed
 * image cannot be edited: whoever made it has to make it again.
 */
static char *in_image(const struct step *s, const struct since *x, const struct boot_image *image)
{
	return lists(s->known_images, image->name) ? NULL : surplus(s, image->text, x->line);
}

static bool any_image_has(const struct step *s, const struct since *x)
{
	for (size_t i = 0; i < x->image_n; i++) {
		AUTO_FREE char *words = in_image(s, x, &x->images[i]);

		if (words)
			return true;
	}
	return false;
}

/* Of the entries that were made since: the words as they were written, and not only what somebody made of them. */
static int holds_own_since(struct fix_host *h, const struct step *s, const struct now *n)
{
	AUTO_SINCE struct since x = {.arena = arena_new(), .line = line_after(h, s, n)};
	int r = s->known ? read_since(h, s, &x) : 0;

	for (size_t i = 0; r == 0 && i < x.all.n; i++) {
		const struct boot_entry *e = &x.all.items[i];
		const enum maker maker = made_since(s, &x, e);
		AUTO_FREE char *more = surplus(s, e->text, x.line);

		r = more && (maker == MAKER_KERNEL_INSTALL || maker == MAKER_NOT_KNOWN);
	}
	return r == 0 ? any_image_has(s, &x) : r;
}

/* Whether undo has something to do there. */
static int look_since(struct fix_host *h, const struct step *s, const struct now *n, bool *ret)
{
	AUTO_SINCE struct since x = {.arena = arena_new(), .line = line_after(h, s, n)};
	int r = s->known ? read_since(h, s, &x) : 0;

	*ret = r == 0 && any_image_has(s, &x);
	for (size_t i = 0; r == 0 && i < x.all.n; i++) {
		const enum maker maker = made_since(s, &x, &x.all.items[i]);

		*ret |= maker == MAKER_KERNEL_INSTALL || maker == MAKER_NOT_KNOWN;
	}
	return r;
}

static void undo_entry(struct fix_host *h, const struct step *s, const struct since *x,
		       const struct boot_entry *e, struct found *f)
{
	AUTO_FREE char *words = surplus(s, e->text, x->line);
	AUTO_FREE char *text = NULL;

	if (e->why_not) {
		say(&f->left, "/%s has %s, and %s: take it out there", e->path, s->at, e->why_not);
		return;
	}
	text = without(s, words ? words : "", e->path, e->text, BOOT_TEXT_ENTRY, f);
	if (strcmp(text, e->text) == 0)
		return;
	if (put_text(h, e->path, e->text, text) < 0)
		say(&f->left, "%s", err_msg());
	else
		say(f->said, "/%s was made since: %s removed", e->path, words);
}

static void say_images(const struct step *s, const struct since *x, struct found *f)
{
	for (size_t i = 0; i < x->image_n; i++) {
		AUTO_FREE char *words = in_image(s, x, &x->images[i]);

		if (words)
			say(&f->left,
			    "/%s has %s in the command line inside the image: make that image again, now that /%s is without it",
			    x->images[i].path, words, s->target);
	}
}

static int undo_since(struct fix_host *h, const struct step *s, struct since *x, struct found *f)
{
	int r = s->known ? read_since(h, s, x) : 0;

	for (size_t i = 0; r == 0 && i < x->all.n; i++) {
		const struct boot_entry *e = &x->all.items[i];
		const enum maker maker = made_since(s, x, e);

		if (maker == MAKER_KERNEL_INSTALL || maker == MAKER_NOT_KNOWN)
			undo_entry(h, s, x, e, f);
		else if (maker == MAKER_PERSON)
			say(f->said, "/%s keeps %s: neither onehop nor kernel-install made it",
			    e->path, s->at);
		else if (maker == MAKER_OTHERS)
			say(f->said, "/%s keeps %s: its root= is not that of /%s", e->path, s->at,
			    s->target);
	}
	if (r == 0)
		say_images(s, x, f);
	return r;
}

/* ---- an entry that somebody gave another name ---- */

/* Both have the key with the same value, or none has it. */
static bool same_value(const char *a, const char *b, const char *key)
{
	const char *x, *y;
	size_t x_n, y_n;
	const bool in_a = boot_entry_get(a, key, &x, &x_n), in_b = boot_entry_get(b, key, &y, &y_n);

	return in_a == in_b && (!in_a || (x_n == y_n && memcmp(x, y, x_n) == 0));
}

/* The same kernel under the same title: its fallback entry differs in one of them. */
static bool starts_the_same(const char *a, const char *b)
{
	static const char *const keys[] = {"title", "version", "linux", "initrd"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!same_value(a, b, keys[i]))
			return false;
	return true;
}

static bool is_moved(struct fix_host *h, const struct step *s, const char *path)
{
	AUTO_FREE char *text = NULL;
	size_t size;

	return boot_text_of(path) == BOOT_TEXT_ENTRY && !text_ends_with(path, BOOT_ENTRY_TRIAL) &&
	       host_read(h, path, &text, &size) == 0 && starts_the_same(text, s->new.data) &&
	       has_any(s, text, BOOT_TEXT_ENTRY);
}

/* The entry that has the words while the step's is gone, *ret; NULL: there is none. The caller frees it. */
static int find_moved(struct fix_host *h, const struct step *s, const struct now *n, char **ret)
{
	const char *name = strrchr(s->target, '/');
	AUTO_FREE char *folder = NULL;
	char **names = NULL;
	size_t name_n = 0;
	int r;

	*ret = NULL;
	if (n->text || n->form != BOOT_TEXT_ENTRY || !name || !s->new.data)
		return 0;
	folder = xstrndup(s->target, (size_t)(name - s->target));
	r = host_list(h, folder, &names, &name_n);
	for (size_t i = 0; r == 0 && i < name_n && !*ret; i++) {
		AUTO_FREE char *path = xprintf("%s/%s", folder, names[i]);

		if (is_moved(h, s, path))
			*ret = TAKE_PTR(path);
	}
	source_free_names(names, name_n);
	return r;
}

/* ---- looking ---- */

/*
 * NEW: all of the words, or any text that holds them off; OLD: none of them, nor is there anything
 * to repair; OTHER: some, or changed.
 */
static int read_state_options(struct fix_host *h, const struct step *s, enum step_state *ret,
			      char **ret_now)
{
	AUTO_NOW struct now n = {0};
	AUTO_FREE char *other = NULL, *moved = NULL;
	size_t words, found = 0;
	bool since = false;
	int r = read_now(h, s, &n);

	if (r == 0)
		r = find_moved(h, s, &n, &moved);
	if (r < 0)
		return r;
	if (n.text) {
		found = count(s, n.text, n.form, &words);
		other = changed(s, n.text, n.form);
	}
	if (n.text && (found == words || holds_off(s))) {
		*ret = STEP_IS_NEW;
	} else {
		r = look_since(h, s, &n, &since);
		*ret = found || other || moved || since || is_torn(h, s, &n) ? STEP_IS_OTHER
									     : STEP_IS_OLD;
	}
	if (ret_now)
		*ret_now = TAKE_PTR(n.text);
	return r;
}

static int holds_own(struct fix_host *h, const struct step *s)
{
	AUTO_NOW struct now n = {0};
	AUTO_FREE char *moved = NULL;
	int r = read_now(h, s, &n);

	if (r == 0)
		r = find_moved(h, s, &n, &moved);
	if (r < 0)
		return r;
	if (moved || is_torn(h, s, &n) || (n.text && (holds_off(s) || has_any(s, n.text, n.form))))
		return 1;
	return holds_own_since(h, s, &n);
}

/*
 * Images that have words of the step already: those are a person's. Not noted where one cannot be read. A list that
 * is empty would be none in the journal.
 */
static void know_images(struct fix_host *h, struct arena *a, struct step *s)
{
	struct boot_image *images;
	const char **known = NULL;
	size_t image_n, n = 0;

	if (!s->known || boot_images_read(h, a, &images, &image_n) < 0)
		return;
	*ARENA_PUSH(a, known, n) = "";
	for (size_t i = 0; i < image_n; i++)
		if (has_any(s, images[i].text, BOOT_TEXT_ENTRY))
			*ARENA_PUSH(a, known, n) = images[i].name;
	*ARENA_PUSH(a, known, n) = NULL;
	s->known_images = known;
}

/* The old text is that of this moment: it is what the journal keeps. */
static int prepare_options(struct fix_host *h, struct arena *a, struct step *s)
{
	AUTO_NOW struct now n = {0};
	AUTO_FREE char *text = NULL;
	int r = read_now(h, s, &n);

	if (r < 0)
		return r;
	know_images(h, a, s);
	if (!n.text && s->old.data)
		return err_set(ESTALE, "/%s was removed since the plan was made", s->target);
	if (!n.text)
		return step_note_made(h, a, s);
	if (holds_off(s))
		return err_set(ESTALE, "/%s was made since the plan was made", s->target);
	text = edited(s, n.text, n.form, add);
	if (!text)
		return err_set(ESTALE, "/%s has no line to which a word can be added", s->target);
	s->old = (struct bytes){arena_strdup(a, n.text), strlen(n.text)};
	s->new = (struct bytes){arena_strdup(a, text), strlen(text)};
	return 0;
}

/* ---- doing ---- */

static int apply_options(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	AUTO_NOW struct now n = {0};
	AUTO_FREE char *text = NULL;
	int r = read_now(h, s, &n);

	(void)output;
	if (r < 0)
		return r;
	if (!n.text && !s->old.data)
		return put_text(h, s->target, NULL, s->new.data);
	text = n.text && !holds_off(s) ? edited(s, n.text, n.form, add) : NULL;
	if (!text)
		return err_set(ESTALE, "/%s was %s since the plan was made", s->target,
			       n.text ? "changed" : "removed");
	return put_text(h, n.path, n.text, text);
}

static int take_away(struct fix_host *h, const struct now *n)
{
	const struct host_change c = {.seen = {n->text, strlen(n->text)}};

	return host_change(h, n->path, &c);
}

static int undo_line(struct fix_host *h, const struct step *s, const struct now *n, struct found *f)
{
	AUTO_FREE char *text = NULL;
	int r;

	if (can_go(h, s, n)) {
		r = take_away(h, n);
		return r < 0 ? r : step_remove_made(h, s);
	}
	text = undone_text(s, n, f);
	if (!s->old.data && (holds_off(s) || strcmp(text, n->text) != 0))
		say(f->said,
		    "/%s stays, without %s: without that file kernel-install takes the running "
		    "kernel's command line",
		    n->path, s->at);
	if (strcmp(text, n->text) == 0)
		return 0;
	return put_text(h, n->path, n->text, text);
}

/* One that fails does not keep the others from being edited. */
static int undo_options(struct fix_host *h, const struct step *s, struct strbuf *output)
{
	AUTO_FOUND struct found f = {.said = output};
	AUTO_SINCE struct since x = {.arena = arena_new()};
	AUTO_NOW struct now n = {0};
	AUTO_FREE char *why = NULL, *moved = NULL;
	int r = read_now(h, s, &n), since;

	if (r == 0)
		r = find_moved(h, s, &n, &moved);
	if (moved)
		say(&f.left,
		    "/%s has %s, and is what /%s was, under another name: take it out there", moved,
		    s->at, s->target);
	x.line = line_after(h, s, &n);
	if (r == 0 && is_torn(h, s, &n))
		r = put_text(h, n.path ? n.path : s->target, n.text, s->old.data);
	else if (r == 0 && n.text)
		r = undo_line(h, s, &n, &f);
	why = r < 0 ? xstrdup(err_msg()) : NULL;
	since = undo_since(h, s, &x, &f);
	if (r < 0)
		return err_set(-r, "%s", why);
	if (since == 0 && f.left.len)
		return err_set(ESTALE, "%s (then `onehop undo` once more)", f.left.text);
	return since;
}

int step_options_take_since(struct fix_host *h, const struct step *s, const char *words,
			    struct strbuf *output)
{
	struct step part = *s;
	AUTO_FOUND struct found f = {.said = output};
	AUTO_SINCE struct since x = {.arena = arena_new()};
	AUTO_NOW struct now n = {0};
	int r;

	part.at = words;
	r = read_now(h, &part, &n);
	if (r < 0)
		return r;
	x.line = line_after(h, &part, &n);
	r = undo_since(h, &part, &x, &f);
	return r == 0 && f.left.len ? err_set(ESTALE, "%s", f.left.text) : r;
}

static char *rest_of_text(const struct step *s, const char *text)
{
	char *rest = edited(s, text, boot_text_of(s->target), take);

	return rest ? rest : xstrdup(text);
}

static int settle_options(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *kept = host_kept_entry(s->target);
	const struct host_change none = {.seen = s->old, .put = s->new};
	AUTO_NOW struct now n = {0};
	int r = read_now(h, s, &n);

	if (r == 0)
		r = step_settle_parts(h, s, n.path ? n.path : s->target, rest_of_text);
	return r < 0 || n.form != BOOT_TEXT_ENTRY ? r : host_settle(h, kept, &none);
}

static int tidy_options(struct fix_host *h, const struct step *s)
{
	AUTO_FREE char *kept = host_kept_entry(s->target);

	if (boot_text_of(s->target) == BOOT_TEXT_ENTRY)
		return host_remove(h, kept);
	return s->old.data ? 0 : step_remove_made(h, s);
}

void step_options_warning(struct fix_host *h, const struct step *s, struct strbuf *out)
{
	AUTO_FREE char *running = running_line(h);
	struct stat st;

	if (boot_text_of(s->target) == BOOT_TEXT_LINE && running &&
	    has_any(s, running, BOOT_TEXT_LINE) && host_stat(h, s->target, &st) == -ENOENT &&
	    host_stat(h, "usr/lib/kernel/cmdline", &st) == -ENOENT)
		strbuf_printf(
			out,
			"/%s is gone, and the running kernel has %s: install no kernel before the "
			"next reboot, or its entry gets that too",
			s->target, s->at);
}

const struct step_ops step_options_ops = {
	.word = "options",
	.by_parts = true,
	.reads_back = true,
	.in_image = true,
	.read_state = read_state_options,
	.prepare = prepare_options,
	.apply = apply_options,
	.undo = undo_options,
	.settle = settle_options,
	.tidy = tidy_options,
	.holds_own = holds_own,
};
