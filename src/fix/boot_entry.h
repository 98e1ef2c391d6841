/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain-text entries of the Boot Loader Specification (type 1: loader/entries/NAME.conf on a boot
 * partition), read as systemd-boot reads them, and /etc/kernel/cmdline, from which kernel-install makes
 * new ones. Whose an entry is, and edits of its words: nobody else parses these files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct source;
struct strbuf;

/* ---- words of a kernel command line in a text ---- */

/*
 * Where a text keeps them. ENTRY: behind the keys "options", of which there may be several; LINE: in
 * every line that is no comment. Words after "--" are for init: they are neither found nor removed.
 */
enum boot_text { BOOT_TEXT_ENTRY, BOOT_TEXT_LINE };

/* An entry's if the path is that of a *.conf in loader/entries. */
enum boot_text boot_text_of(const char *path);

bool boot_text_has(const char *text, enum boot_text form, const char *word);
/*
 * The text with the word behind the last one, before a "--"; all else stays byte for byte. False, and
 * nothing added to `ret`: an entry without an options line, whose command line is the kernel image's
 * own, or one with a quote that is never closed.
 */
bool boot_text_add(const char *text, enum boot_text form, const char *word, struct strbuf *ret);
/* The text without the word, the last of several: what boot_text_add did is undone byte for byte.
 * False, and nothing added to `ret`: it is not there. */
bool boot_text_remove(const char *text, enum boot_text form, const char *word, struct strbuf *ret);
/* All its words, one blank between; to free. */
char *boot_text_words(const char *text, enum boot_text form);

/* ---- an entry ---- */

/* The end of the ID of a copy that onehop keeps while it replaces an entry: never one to be edited. */
#define BOOT_ENTRY_KEPT ".onehop-old"

/* The value of the first line with that key, without the quotes around it; false: there is none. */
bool boot_entry_get(const char *text, const char *key, const char **ret, size_t *ret_n);

/*
 * Boot counting renames a file: "6.1+3.conf", "6.1+2-1.conf" and "6.1.conf" are one entry, "6.1". The
 * length of that in a file name; 0: not the name of an entry.
 */
size_t boot_entry_id(const char *name);
/* Whether two file names are of one entry. */
bool boot_entry_same(const char *a, const char *b);

enum boot_entry_kind {
	ENTRY_OURS,   /* starts this system, and its command line can be edited */
	ENTRY_RESCUE, /* starts this system to repair it: stays as it is */
	ENTRY_SEALED, /* starts this system, or may; its command line is not in the entry */
	ENTRY_OTHERS, /* starts another system or program, or it is not known whose it is */
};

struct boot_entry {
	enum boot_entry_kind kind;
	const char *path; /* below the root, "boot/efi/loader/entries/6.1.conf" */
	const char *name; /* the file's own name, the end of path */
	const char *text;
	size_t size;
};

struct boot_entries {
	struct boot_entry *items;
	size_t n;
	bool folder; /* there is a folder of such entries */
	const char *
		unread; /* the first folder or file that could not be read, "/boot/efi/..."; NULL: none */
	int error; /* why: the negative errno */
};

/*
 * The entries of all boot partitions that are mounted (/boot, /efi, /boot/efi), in the arena. `running`
 * is the command line of the running kernel; NULL: the system in `s` does not run. An entry belongs to the
 * system by machine-id, else by its name or systemd.machine_id=, else by root=, else by sort-key.
 */
void boot_entries_read(struct source *s, struct arena *a, const char *running,
		       struct boot_entries *ret);
/* Its machine ID, as kernel-install takes it, in the arena; NULL: it has none. */
const char *boot_machine_id(struct source *s, struct arena *a);
