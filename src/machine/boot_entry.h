/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain-text entries of the Boot Loader Specification (type 1: loader/entries/NAME.conf on a boot
 * partition), read as systemd-boot reads them, and /etc/kernel/cmdline, from which kernel-install
 * makes new ones, as text: keys, and the words of the command line with edits of them. GRUB reads
 * such entries too (blscfg). No other file of onehop parses them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/*
 * The entry of a trial boot, which is never among those that are read. It must not become the
 * default by itself: systemd-boot lists entries without a sort-key last, and of these the name that
 * begins with "-" as the last one. It skips the "_", which spares a person's shell a name that
 * looks like an option.
 */
#define BOOT_ENTRY_TRIAL "_-onehop-trial.conf"
/* And in GRUB's menu. */
#define GRUB_ENTRY_TRIAL "onehop-trial"

/* Where boot partitions are mounted, below the root; NULL-ended. */
extern const char *const boot_partitions[];

/* ---- words of a kernel command line in a text ---- */

/*
 * Where a text has them. ENTRY: after the keys "options", of which there may be several; LINE: in
 * every line except comments. Words after "--" are for init: they are neither found nor removed.
 */
enum boot_text { BOOT_TEXT_ENTRY, BOOT_TEXT_LINE };

/* ENTRY if the path is a *.conf in loader/entries, in any case of letters. */
enum boot_text boot_text_of(const char *path);

bool boot_text_has(const char *text, enum boot_text form, const char *word);
/*
 * The text with the word added after the last one, before a "--"; everything else stays byte for
 * byte. False, and nothing added to `ret`: an entry without an options line, whose command line is
 * inside the kernel image, or one with an unclosed quote.
 */
bool boot_text_add(const char *text, enum boot_text form, const char *word, struct strbuf *ret);
/*
 * The text without the word, the last of several: undoes boot_text_add byte for byte. False, and
 * nothing added to `ret`, if the word is not there.
 */
bool boot_text_remove(const char *text, enum boot_text form, const char *word, struct strbuf *ret);
/*
 * The word as a user may have rewritten it: the same parameter and the same value, in quotes, or
 * among others ("iommu=pt,strict"); of a list of ports without ACS redirects any of them, anywhere.
 * One that `before` has too (NULL: none) does not count. The caller frees it; NULL if there is
 * none.
 */
char *boot_text_changed(const char *text, enum boot_text form, const char *word,
			const char *before);
/* All its words, separated by one blank; the caller frees them. */
char *boot_text_words(const char *text, enum boot_text form);

/* ---- an entry ---- */

/* The value of the first line with that key, without the quotes around it; false: there is none. */
bool boot_entry_get(const char *text, const char *key, const char **ret, size_t *ret_n);

/* The text without the lines of that key; everything else stays byte for byte. */
void boot_entry_drop(const char *text, const char *key, struct strbuf *ret);

/*
 * Boot counting renames a file: "6.1+3.conf", "6.1+2-1.conf" and "6.1.conf" are one entry, "6.1".
 * Returns the length of that part of a file name; 0 if it is not the name of an entry.
 */
size_t boot_entry_id(const char *name);
/* Whether two file names belong to the same entry. */
bool boot_entry_same(const char *a, const char *b);
