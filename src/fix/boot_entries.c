/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of the boot partitions start this system. */
#include "fix/boot_entries.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum { MACHINE_ID = 32 };

/* What is known of the system, and the arena for it. */
struct system {
	struct source *s;
	struct arena *a;
	const char *machine_id; /* NULL: none */
	const char *token;      /* kernel-install's start of names; NULL: none was set */
	const char *id, *title; /* of os-release; NULL */
	const char **roots;     /* of entries that are known to be its own, and the running one's */
	size_t root_n;
};

/* ---- the system ---- */

/* A line's value, without quotes. NULL: there is none. */
static const char *value_of(struct system *y, const char *path, const char *key)
{
	AUTO_FREE char *text = NULL;
	const char *value;
	size_t size;

	if (source_read(y->s, &text, &size, "%s", path) < 0 ||
	    !text_after(text, key, &value, &size))
		return NULL;
	if (size >= 2 && (*value == '"' || *value == '\'') && value[size - 1] == *value) {
		value++;
		size -= 2;
	}
	return size ? arena_strndup(y->a, value, size) : NULL;
}

static bool is_machine_id(const char *s)
{
	return strspn(s, "0123456789abcdef") >= MACHINE_ID;
}

const char *boot_machine_id(struct source *s, struct arena *a)
{
	struct system y = {.s = s, .a = a};
	const char *id = value_of(&y, "etc/machine-info", "KERNEL_INSTALL_MACHINE_ID=");

	if (!id)
		id = value_of(&y, "etc/machine-id", "");
	return id && is_machine_id(id) && strlen(id) == MACHINE_ID ? id : NULL;
}

static const char *os_release(struct system *y, const char *key)
{
	const char *value = value_of(y, "etc/os-release", key);

	return value ? value : value_of(y, "usr/lib/os-release", key);
}

static void know_system(struct system *y)
{
	y->machine_id = boot_machine_id(y->s, y->a);
	y->token = value_of(y, "etc/kernel/entry-token", "");
	y->id = os_release(y, "IMAGE_ID=");
	if (!y->id)
		y->id = os_release(y, "ID=");
	y->title = os_release(y, "PRETTY_NAME=");
}

/* ---- its root ---- */

/* "root=UUID=... rootflags=subvol=@": what differs where two systems share a disk. NULL: no root=. */
static const char *root_of(struct system *y, const char *words)
{
	static const char *const keys[] = {"root=", "rootflags="};
	const char *root = NULL;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		AUTO_FREE char *copy = xstrdup(words);
		char *rest = copy, *word;
		const char *last = NULL;

		while ((word = strsep(&rest, " ")))
			if (text_starts_with(word, keys[i]))
				last = word;
		if (!last && i == 0)
			return NULL;
		if (last)
			root = root ? arena_printf(y->a, "%s %s", root, last)
				    : arena_strdup(y->a, last);
	}
	return root;
}

static bool is_its_root(const struct system *y, const char *root)
{
	for (size_t i = 0; i < y->root_n; i++)
		if (strcmp(y->roots[i], root) == 0)
			return true;
	return false;
}

static void know_root(struct system *y, const char *words)
{
	const char *root = root_of(y, words);

	if (root && !is_its_root(y, root))
		*ARENA_PUSH(y->a, y->roots, y->root_n) = root;
}

/* ---- whose an entry is ---- */

enum whose { WHOSE_UNKNOWN, WHOSE_OURS, WHOSE_OTHERS };

static bool is(const char *a, const char *s, size_t n)
{
	return a && strlen(a) == n && memcmp(a, s, n) == 0;
}

/* NAME is "START-..." */
static bool begins(const char *name, const char *start)
{
	return start && text_starts_with(name, start) && name[strlen(start)] == '-';
}

/* By names that no two systems share. */
static enum whose whose_by_id(const struct system *y, const struct boot_entry *e, const char *words)
{
	const char *value = strstr(words, "systemd.machine_id=");
	size_t n;

	if (boot_entry_get(e->text, "machine-id", &value, &n))
		return is(y->machine_id, value, n) ? WHOSE_OURS : WHOSE_OTHERS;
	if (is_machine_id(e->name) && e->name[MACHINE_ID] == '-')
		return begins(e->name, y->machine_id) ? WHOSE_OURS : WHOSE_OTHERS;
	if (value) {
		value += strlen("systemd.machine_id=");
		return is(y->machine_id, value, strcspn(value, " ")) ? WHOSE_OURS : WHOSE_OTHERS;
	}
	return WHOSE_UNKNOWN;
}

/*
 * By what a second system on the same disk would hardly have too. A token counts only where no root= is known
 * to compare with: two systems may have the same one.
 */
static enum whose whose_by_root(struct system *y, const struct boot_entry *e, const char *words)
{
	const char *root = root_of(y, words), *value;
	size_t n;

	if (root && (y->root_n || !begins(e->name, y->token)))
		return is_its_root(y, root) ? WHOSE_OURS : WHOSE_OTHERS;
	if (begins(e->name, y->token))
		return WHOSE_OURS;
	if (boot_entry_get(e->text, "sort-key", &value, &n))
		return is(y->id, value, n) ? WHOSE_OURS : WHOSE_OTHERS;
	if (boot_entry_get(e->text, "title", &value, &n) && is(y->title, value, n))
		return WHOSE_OURS;
	return begins(e->name, y->id) ? WHOSE_OURS : WHOSE_UNKNOWN;
}

/* ---- what it is for ---- */

static bool says_repair(const char *s, size_t n)
{
	static const char *const names[] = {"rescue", "recovery", "emergency",    "fallback",
					    "repair", "single",   BOOT_ENTRY_KEPT};
	AUTO_FREE char *copy = xstrndup(s, n);

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcasestr(copy, names[i]))
			return true;
	return false;
}

static bool is_rescue(const struct boot_entry *e, const char *words)
{
	static const char *const options[] = {"single",
					      "S",
					      "s",
					      "1",
					      "rescue",
					      "emergency",
					      "rd.break",
					      "systemd.unit=rescue.target",
					      "systemd.unit=emergency.target"};
	static const char *const keys[] = {"title", "version"};
	const char *value;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (text_has_word(words, options[i])) /* init's own too, behind a "--" */
			return true;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (boot_entry_get(e->text, keys[i], &value, &n) && says_repair(value, n))
			return true;
	return says_repair(e->name, boot_entry_id(e->name));
}

static bool has_key(const struct boot_entry *e, const char *key)
{
	const char *value;
	size_t n;

	return boot_entry_get(e->text, key, &value, &n);
}

/* The options of a file that is an image of its own (uki, efi) are none of a kernel's, or replace those
 * that were signed. */
static enum boot_entry_kind kind_of(const struct boot_entry *e, const char *words)
{
	if (!has_key(e, "linux") || !has_key(e, "options"))
		return ENTRY_SEALED;
	return is_rescue(e, words) ? ENTRY_RESCUE : ENTRY_OURS;
}

static void judge(struct system *y, struct boot_entry *e, bool by_root)
{
	AUTO_FREE char *words = boot_text_words(e->text, BOOT_TEXT_ENTRY);
	enum whose whose = whose_by_id(y, e, words);

	if (whose == WHOSE_UNKNOWN && by_root)
		whose = whose_by_root(y, e, words);
	if (whose == WHOSE_OURS)
		know_root(y, words);
	e->kind = whose == WHOSE_OURS ? kind_of(e, words) : ENTRY_OTHERS;
}

/* ---- reading them ---- */

static void could_not_read(struct boot_entries *b, struct arena *a, const char *path, int error)
{
	if (b->unread)
		return;
	b->unread = arena_printf(a, "/%s", path);
	b->error = error;
}

static void read_entry(struct system *y, const char *folder, const char *name,
		       struct boot_entries *b)
{
	const char *path = arena_printf(y->a, "%s/%s", folder, name);
	AUTO_FREE char *text = NULL;
	struct boot_entry *e;
	size_t size;
	int r = source_read(y->s, &text, &size, "%s", path);

	if (r == 0 && strlen(text) != size)
		r = -EILSEQ;
	if (r < 0) {
		could_not_read(b, y->a, path, r);
		return;
	}
	e = ARENA_PUSH(y->a, b->items, b->n);
	e->path = path;
	e->name = path + strlen(folder) + 1;
	e->text = arena_strndup(y->a, text, size);
	e->size = size;
}

/* A folder whose entries.srel says otherwise is of another specification. */
static bool is_type_1(struct source *s, const char *boot)
{
	char line[16];

	return source_read_line(s, line, sizeof(line), "%s/loader/entries.srel", boot) < 0 ||
	       strcmp(line, "type1") == 0;
}

static void read_folder(struct system *y, const char *boot, struct boot_entries *b)
{
	const char *folder = arena_printf(y->a, "%s/loader/entries", boot);
	char **names = NULL;
	size_t n = 0;
	int r = source_list(y->s, &names, &n, "%s", folder);

	if (r == -ENOENT || r == -ENOTDIR || (r == 0 && !is_type_1(y->s, boot))) {
		source_free_names(names, n);
		return;
	}
	if (r < 0) {
		could_not_read(b, y->a, folder, r);
		return;
	}
	b->folder = true;
	for (size_t i = 0; i < n; i++)
		if (boot_entry_id(names[i]))
			read_entry(y, folder, names[i], b);
	source_free_names(names, n);
}

void boot_entries_read(struct source *s, struct arena *a, const char *running,
		       struct boot_entries *ret)
{
	static const char *const partitions[] = {"boot", "efi", "boot/efi"};
	struct system y = {.s = s, .a = a};

	*ret = (struct boot_entries){0};
	know_system(&y);
	if (running)
		know_root(&y, running);
	for (size_t i = 0; i < ARRAY_LEN(partitions); i++)
		read_folder(&y, partitions[i], ret);
	/* First those that say whose they are: the others are compared with them. */
	for (int by_root = 0; by_root < 2; by_root++)
		for (size_t i = 0; i < ret->n; i++)
			judge(&y, &ret->items[i], by_root);
}
