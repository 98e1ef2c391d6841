/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of the boot partitions start this system. */
#include "fix/boot_entries.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/markup.h"
#include "base/source.h"
#include "base/text.h"
#include "fix/host.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>

enum { MACHINE_ID = 32 };

/* "root=UUID=... rootflags=subvol=@": what differs where two systems share a disk. */
struct root {
	const char *device; /* as it is spelled; NULL: there is no root= */
	const char *node;   /* "nvme0n1p2", which it names; NULL: unknown */
	const char *flags;  /* "" for none */
};

/* What is known of the system, and the arena for it. */
struct system {
	struct source *s;
	struct arena *a;
	const char *machine_id;     /* NULL: none */
	const char *token;          /* kernel-install's start of names; NULL: none was set */
	const char *const *earlier; /* IDs and tokens that it had; NULL: none */
	const char *id, *title;     /* of os-release; NULL */
	struct root running;
	struct root *roots; /* of entries that are known to be its own, and the running one's */
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

const char *const *boot_own_names(struct source *s, struct arena *a)
{
	struct system y = {.s = s, .a = a};
	const char *const all[] = {boot_machine_id(s, a),
				   value_of(&y, "etc/kernel/entry-token", "")};
	const char **names = NULL;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i])
			*ARENA_PUSH(a, names, n) = all[i];
	if (n)
		*ARENA_PUSH(a, names, n) = NULL;
	return names;
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

/* The value of the last word with that key; NULL: none. */
static const char *last_value(struct system *y, const char *words, const char *key)
{
	AUTO_FREE char *copy = xstrdup(words);
	char *rest = copy, *word;
	const char *last = NULL;

	while ((word = strsep(&rest, " ")))
		if (text_starts_with(word, key))
			last = word + strlen(key);
	return last ? arena_strdup(y->a, last) : NULL;
}

/* "nvme0n1p2" of a link among udev's; NULL: there is none. */
static const char *node_of_link(struct system *y, const char *link)
{
	AUTO_FREE char *target = NULL;
	const char *slash;

	if (source_read_link(y->s, &target, "%s", link) < 0)
		return NULL;
	slash = strrchr(target, '/');
	return arena_strdup(y->a, slash ? slash + 1 : target);
}

/* udev writes what it reads from disks as it is there, and partitions' IDs in small letters. */
static const char *node_of_tag(struct system *y, const char *folder, const char *value)
{
	AUTO_FREE char *link = xprintf("dev/disk/%s/%s", folder, value);
	const char *node = node_of_link(y, link);

	if (node)
		return node;
	for (char *s = strrchr(link, '/'); *s; s++)
		*s = *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
	return node_of_link(y, link);
}

static const char *node_of(struct system *y, const char *device)
{
	static const struct {
		const char *tag, *folder;
	} tags[] = {
		{"UUID=", "by-uuid"},
		{"PARTUUID=", "by-partuuid"},
		{"LABEL=", "by-label"},
		{"PARTLABEL=", "by-partlabel"},
	};
	const char *node;

	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		if (text_starts_with(device, tags[i].tag))
			return node_of_tag(y, tags[i].folder, device + strlen(tags[i].tag));
	if (!text_starts_with(device, "/dev/"))
		return NULL;
	node = node_of_link(y, device + 1);
	return node || strchr(device + strlen("/dev/"), '/') ? node : device + strlen("/dev/");
}

static struct root root_of(struct system *y, const char *words)
{
	struct root root = {.device = last_value(y, words, "root=")};
	const char *flags = last_value(y, words, "rootflags=");

	root.flags = flags ? flags : "";
	root.node = root.device ? node_of(y, root.device) : NULL;
	return root;
}

enum same { SAME, DIFFERENT, NOT_KNOWN };

/* Two names of the same kind name two devices, but for those that a disk may get at another boot. */
static enum same same_device(const struct root *a, const struct root *b)
{
	const size_t tag = strcspn(a->device, "=") + 1;

	if (strcmp(a->device, b->device) == 0)
		return SAME;
	if (a->node && b->node)
		return strcmp(a->node, b->node) == 0 ? SAME : DIFFERENT;
	return strchr(a->device, '=') && strncasecmp(a->device, b->device, tag) == 0 &&
			       strcasecmp(a->device, b->device) != 0
		       ? DIFFERENT
		       : NOT_KNOWN;
}

/* The subvolume that the flags name, without its first slash; NULL: none. */
static const char *subvolume(const char *flags, size_t *ret_n)
{
	const char *at = strstr(flags, "subvol=");

	if (!at)
		return NULL;
	at += strlen("subvol=");
	at += *at == '/';
	*ret_n = strcspn(at, ",");
	return at;
}

/* Of the options only what tells two roots apart: no entry has the others. */
static const char *fstab_words(struct system *y, const struct mntent *m)
{
	size_t n = 0;
	const char *volume = subvolume(m->mnt_opts, &n);

	return volume ? arena_printf(y->a, "root=%s rootflags=subvol=%.*s", m->mnt_fsname, (int)n,
				     volume)
		      : arena_printf(y->a, "root=%s", m->mnt_fsname);
}

/* As its fstab has it, which counts where no command line says. */
static struct root root_of_fstab(struct system *y)
{
	AUTO_FREE char *text = NULL;
	AUTO_FCLOSE FILE *f = NULL;
	char words[4096];
	struct mntent m;
	size_t size;

	if (source_read(y->s, &text, &size, "etc/fstab") < 0 || !size)
		return (struct root){.flags = ""};
	f = fmemopen(text, size, "r");
	while (f && getmntent_r(f, &m, words, sizeof(words)))
		if (strcmp(m.mnt_dir, "/") == 0)
			return root_of(y, fstab_words(y, &m));
	return (struct root){.flags = ""};
}

/* NOT_KNOWN: one of them names none, so it may be either. */
static enum same same_subvolume(const struct root *a, const struct root *b)
{
	size_t an = 0, bn = 0;
	const char *x = subvolume(a->flags, &an), *z = subvolume(b->flags, &bn);

	if (strcmp(a->flags, b->flags) == 0)
		return SAME;
	if (!x || !z)
		return NOT_KNOWN;
	return an == bn && memcmp(x, z, an) == 0 ? SAME : DIFFERENT;
}

static bool is_same_root(const struct root *a, const struct root *b)
{
	return same_device(a, b) == SAME && same_subvolume(a, b) == SAME;
}

static bool is_other_root(const struct root *a, const struct root *b)
{
	return a->device && b->device &&
	       (same_device(a, b) == DIFFERENT || same_subvolume(a, b) == DIFFERENT);
}

static bool is_its_root(const struct system *y, const struct root *root)
{
	for (size_t i = 0; i < y->root_n; i++)
		if (is_same_root(&y->roots[i], root))
			return true;
	return false;
}

static void know_root(struct system *y, const struct root *root)
{
	if (root->device && !is_its_root(y, root))
		*ARENA_PUSH(y->a, y->roots, y->root_n) = *root;
}

/* ---- whose an entry is ---- */

enum whose { WHOSE_UNKNOWN, WHOSE_OURS, WHOSE_OTHERS };

static bool is_text(const char *a, size_t a_n, const char *s, size_t n)
{
	return a_n == n && memcmp(a, s, n) == 0;
}

static bool is(const char *a, const char *s, size_t n)
{
	return a && is_text(a, strlen(a), s, n);
}

/* NAME is "START-..." */
static bool begins(const char *name, const char *start)
{
	return start && text_starts_with(name, start) && name[strlen(start)] == '-';
}

/* NAME is "START-...", with an ID or a token that the system had. */
static bool begins_earlier(const struct system *y, const char *name)
{
	for (const char *const *start = y->earlier; start && *start; start++)
		if (begins(name, *start))
			return true;
	return false;
}

static bool begins_with_token(const struct system *y, const char *name)
{
	return begins(name, y->token) || begins_earlier(y, name);
}

static bool is_its_id(const struct system *y, const char *s, size_t n)
{
	for (const char *const *id = y->earlier; id && *id; id++)
		if (is(*id, s, n))
			return true;
	return is(y->machine_id, s, n);
}

/* By names that no two systems share. */
static enum whose whose_by_id(const struct system *y, const struct boot_entry *e, const char *words)
{
	const char *value = strstr(words, "systemd.machine_id=");
	size_t n;

	if (boot_entry_get(e->text, "machine-id", &value, &n))
		return is_its_id(y, value, n) ? WHOSE_OURS : WHOSE_OTHERS;
	if (is_machine_id(e->name) && e->name[MACHINE_ID] == '-')
		return is_its_id(y, e->name, MACHINE_ID) ? WHOSE_OURS : WHOSE_OTHERS;
	if (value) {
		value += strlen("systemd.machine_id=");
		return is_its_id(y, value, strcspn(value, " ")) ? WHOSE_OURS : WHOSE_OTHERS;
	}
	return WHOSE_UNKNOWN;
}

/*
 * By what a second system on the same disk would hardly have too. A token counts only where no root= is known
 * to compare with: two systems may have the same one.
 */
static enum whose whose_by_root(struct system *y, const struct boot_entry *e,
				const struct root *root)
{
	const char *value;
	size_t n;

	if (root->device && (y->root_n || !begins_with_token(y, e->name)))
		return is_its_root(y, root) ? WHOSE_OURS : WHOSE_OTHERS;
	if (begins_with_token(y, e->name))
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
	if (!has_key(e, "linux"))
		return ENTRY_SEALED;
	if (!has_key(e, "options"))
		return ENTRY_BARE;
	return is_rescue(e, words) ? ENTRY_RESCUE : ENTRY_OURS;
}

/* ---- who made it ---- */

/*
 * "START-VERSION", with the version that the entry has, or dracut's "START-0-rescue". What is
 * behind the START; NULL: another name.
 */
static const char *name_behind(struct system *y, const struct boot_entry *e, const char *start)
{
	const size_t n = boot_entry_id(e->name);
	const char *name, *version;
	size_t version_n;

	if (!begins(e->name, start))
		return NULL;
	name = arena_strndup(y->a, e->name, n) + strlen(start) + 1;
	return strcmp(name, "0-rescue") == 0 ||
			       (boot_entry_get(e->text, "version", &version, &version_n) &&
				is(name, version, version_n))
		       ? name
		       : NULL;
}

/* The kernel is in the folder START/NAME, or distributions' own plugins have left it next to others as vmlinuz-NAME. */
static bool starts_own(struct system *y, const struct boot_entry *e, const char *start,
		       const char *name)
{
	const char *folder = arena_printf(y->a, "/%s/%s/", start, name);
	const char *file = arena_printf(y->a, "/vmlinuz-%s", name), *value;
	size_t n;

	if (!boot_entry_get(e->text, "linux", &value, &n))
		return false;
	value = arena_strndup(y->a, value, n);
	return strstr(value, folder) || text_ends_with(value, file) ||
	       text_ends_with(value, arena_printf(y->a, "%s-%s", file, start)); /* of 0-rescue */
}

static bool is_made_as(struct system *y, const struct boot_entry *e, const char *start)
{
	const char *name = name_behind(y, e, start);

	return name && starts_own(y, e, start, name);
}

/* kernel-install's names begin with the machine ID, a token that was set, or the distribution's ID. */
static bool is_made(struct system *y, const struct boot_entry *e)
{
	for (const char *const *start = y->earlier; start && *start; start++)
		if (is_made_as(y, e, *start))
			return true;
	return is_made_as(y, e, y->machine_id) || is_made_as(y, e, y->token) ||
	       is_made_as(y, e, y->id);
}

static void judge(struct system *y, struct boot_entry *e, bool by_root)
{
	AUTO_FREE char *words = boot_text_words(e->text, BOOT_TEXT_ENTRY);
	const struct root root = root_of(y, words);
	enum whose whose = whose_by_id(y, e, words);
	const bool by_id = whose == WHOSE_OURS;

	if (whose == WHOSE_UNKNOWN && by_root)
		whose = whose_by_root(y, e, &root);
	e->made = whose == WHOSE_OURS && is_made(y, e);
	if (by_id && is_other_root(&y->running, &root))
		whose = WHOSE_OTHERS;
	if (whose == WHOSE_OURS)
		know_root(y, &root);
	e->kind = whose == WHOSE_OURS && *e->text ? kind_of(e, words) : ENTRY_OTHERS;
}

/* ---- reading them ---- */

static void could_not_read(struct boot_entries *b, struct arena *a, const char *path, int error)
{
	if (b->unread)
		return;
	b->unread = arena_printf(a, "/%s", path);
	b->error = error;
}

bool boot_name_is_text(const char *name)
{
	AUTO_FREE char *clean = xstrdup(name);

	text_clean(clean);
	return strcmp(clean, name) == 0;
}

/* A clause: why the file cannot be replaced; NULL: it can. */
static const char *why_not(struct system *y, const char *path, const char *name, bool has_zero)
{
	AUTO_FREE char *target = NULL;

	if (source_read_link(y->s, &target, "%s", path) == 0)
		return "is a symbolic link";
	if (!boot_name_is_text(name))
		return "has a name that is not UTF-8, or with control characters";
	if (has_zero)
		return "has a zero byte in it";
	return host_has_room_beside(name) ? NULL
					  : "has too long a name for a copy in the same folder";
}

/* Boot loaders pass by what is not a regular file; what is as large as no entry is, is somebody's else. */
static void read_entry(struct system *y, const char *folder, const char *name,
		       struct boot_entries *b)
{
	const char *path = arena_printf(y->a, "%s/%s", folder, name);
	AUTO_FREE char *text = NULL;
	struct boot_entry *e;
	size_t size = 0;
	int r = source_read(y->s, &text, &size, "%s", path);

	if (r == -EINVAL)
		return;
	if (r < 0 && r != -EFBIG) {
		could_not_read(b, y->a, path, r);
		return;
	}
	e = ARENA_PUSH(y->a, b->items, b->n);
	e->path = path;
	e->name = path + strlen(folder) + 1;
	e->text = r == 0 ? arena_strndup(y->a, text, size) : "";
	e->has_zero = r == 0 && strlen(e->text) != size;
	e->why_not = why_not(y, path, name, e->has_zero);
}

/* A folder whose entries.srel says otherwise is of another specification. */
static bool is_type_1(struct source *s, const char *boot)
{
	char line[16];

	return source_read_line(s, line, sizeof(line), "%s/loader/entries.srel", boot) < 0 ||
	       strcmp(line, "type1") == 0;
}

/* Whether the entries from `first` on are those before it once more, name for name and byte for byte. */
static bool is_read_twice(const struct boot_entries *b, size_t first)
{
	const size_t n = b->n - first;
	bool same = n && n <= first;

	for (size_t i = 0; same && i < n; i++) {
		const struct boot_entry *x = &b->items[first - n + i], *z = &b->items[first + i];

		same = strcmp(x->name, z->name) == 0 && strcmp(x->text, z->text) == 0;
	}
	return same;
}

static void read_folder(struct system *y, const char *boot, struct boot_entries *b)
{
	const char *folder = arena_printf(y->a, "%s/loader/entries", boot);
	const size_t first = b->n;
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
		if (boot_entry_id(names[i]) && !boot_entry_same(names[i], BOOT_ENTRY_TRIAL))
			read_entry(y, folder, names[i], b);
	source_free_names(names, n);
	if (is_read_twice(b, first)) /* one partition, mounted at /boot and at /efi */
		b->n = first;
}

void boot_entries_read(struct source *s, struct arena *a, const char *running,
		       struct boot_entries *ret)
{
	boot_entries_read_since(s, a, running, NULL, ret);
}

void boot_entries_read_since(struct source *s, struct arena *a, const char *running,
			     const char *const *earlier, struct boot_entries *ret)
{
	struct system y = {.s = s, .a = a, .earlier = earlier};

	*ret = (struct boot_entries){0};
	know_system(&y);
	if (running)
		y.running = root_of(&y, running);
	if (!y.running.device)
		y.running = root_of_fstab(&y);
	know_root(&y, &y.running);
	for (size_t i = 0; boot_partitions[i]; i++)
		read_folder(&y, boot_partitions[i], ret);
	/* First those that say whose they are: the others are compared with them. */
	for (int by_root = 0; by_root < 2; by_root++)
		for (size_t i = 0; i < ret->n; i++)
			judge(&y, &ret->items[i], by_root);
}
