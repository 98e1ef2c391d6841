/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fix/step_options.c: words in boot entries, while kernels and persons come and go between fix and
 * undo.
 */
#include "fix_rig.h"
#include "skip.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fix/boot_entries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WORD    "iommu=pt"
#define ENTRIES "efi/loader/entries/"
#define SINCE   ENTRIES RIG_ID "-6.3.conf"
#define BOOTED  "root=a quiet " WORD "\n"

static int make_rig(void **state)
{
	return rig_setup(state, 1);
}

static void assert_get(const struct rig *g, const char *path, const char *expected)
{
	AUTO_FREE char *now = rig_get(g, path);

	if (expected)
		assert_string_equal(now, expected);
	else
		assert_null(now);
}

static void assert_has(const struct rig *g, const char *path, bool has)
{
	AUTO_FREE char *now = rig_get(g, path);

	assert_non_null(now);
	if (boot_text_has(now, boot_text_of(path), WORD) != has)
		fail_msg("%s: %s", path, now);
}

static void apply(struct rig *g, struct plan *p)
{
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	unsigned number;

	if (fix_apply(&g->run, p, &result, &number) < 0)
		fail_msg("apply: %s", err_msg());
	if (result != FIX_DONE)
		fail_msg("apply: %s", strbuf_str(&g->texts));
}

static enum fix_result undo(struct rig *g)
{
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	unsigned number;

	rig_listen(g);
	if (fix_undo(&g->run, 0, &result, &number) < 0)
		fail_msg("undo: %s", err_msg());
	return result;
}

static enum fix_state last_state(struct rig *g)
{
	struct journal_entry *entries;
	enum fix_state state;
	size_t n;

	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_true(n > 0);
	state = entries[n - 1].state;
	journal_free(entries, n);
	return state;
}

static void fix(struct rig *g)
{
	AUTO_PLAN struct plan *p = plan_new();

	rig_words(g, p, WORD);
	apply(g, p);
	assert_has(g, RIG_ENTRY, true);
	assert_has(g, RIG_COUNTED, true);
	assert_has(g, RIG_LINE, true);
}

/*
 * Made by kernel-install while the fix was in force, so with its word; a rescue entry, with a
 * person's.
 */
static void test_entries_since(void **state)
{
	struct rig *g = *state;

	fix(g);
	rig_put(g, SINCE,
		"version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a quiet " WORD
		" systemd.machine_id=" RIG_ID "\n");
	rig_put(g, ENTRIES "rescue.conf", "linux /r\noptions root=a single " WORD "\n");
	rig_put(g, ENTRIES "other.conf", "linux /o\noptions root=b " WORD "\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, SINCE,
		   "version 6.3\nlinux /" RIG_ID
		   "/6.3/linux\noptions root=a quiet systemd.machine_id=" RIG_ID "\n");
	assert_has(g, ENTRIES "rescue.conf", true);
	assert_has(g, ENTRIES "other.conf", true);
	assert_has(g, RIG_ENTRY, false);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/*
 * kernel-install wrote kernel 6.1 once more while it counts boots, 6.2's counter went on before
 * another came, and dracut made a rescue entry of the same line.
 */
static void test_counted_since(void **state)
{
	static const char *const since[] = {ENTRIES RIG_ID "-6.1+3.conf",
					    ENTRIES RIG_ID "-6.2+3.conf",
					    ENTRIES RIG_ID "-0-rescue.conf"};
	struct rig *g = *state;
	AUTO_FREE char *counted = NULL;

	fix(g);
	counted = rig_get(g, RIG_COUNTED);
	rig_remove(g, RIG_COUNTED);
	rig_put(g, ENTRIES RIG_ID "-6.2+2-1.conf", counted);
	rig_put(g, since[0],
		"version 6.1\nlinux /" RIG_ID "/6.1/linux\noptions root=a quiet " WORD "\n");
	rig_put(g, since[1],
		"version 6.2\nlinux /" RIG_ID "/6.2/linux\noptions root=a quiet " WORD "\n");
	rig_put(g, since[2],
		"title Rescue Image\nversion 6.2\nlinux /" RIG_ID
		"/0-rescue/linux\noptions root=a " WORD " single\n");
	assert_int_equal(undo(g), FIX_DONE);
	for (size_t i = 0; i < 3; i++)
		assert_has(g, since[i], false);
	assert_has(g, RIG_ENTRY, false);
	assert_has(g, ENTRIES RIG_ID "-6.2+2-1.conf", false);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/* A copy that a person made of an entry is the person's: it keeps the word, and undo says so. */
static void test_copy_of_person(void **state)
{
	struct rig *g = *state;
	const char *copy = ENTRIES RIG_ID "-6.1-mine.conf";
	const char *text = "title Mine\nversion 6.1\nmachine-id " RIG_ID
			   "\nlinux /6.1/linux\noptions root=a " WORD "\n";

	fix(g);
	rig_put(g, copy, text);
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, copy, text);
	assert_non_null(strstr(strbuf_str(&g->texts), "-6.1-mine.conf keeps " WORD));
	assert_has(g, RIG_ENTRY, false);
}

/*
 * Named as kernel-install would, and the version in it edited: it starts the kernel of another
 * entry.
 */
static void test_copy_of_person_with_version(void **state)
{
	static const char *const copies[] = {ENTRIES RIG_ID "-6.1-mine.conf",
					     ENTRIES "debian-6.1-mine.conf"};
	static const char text[] = "title Mine\nversion 6.1-mine\nmachine-id " RIG_ID
				   "\nlinux /" RIG_ID "/6.1/linux\noptions root=a " WORD "\n";
	struct rig *g = *state;

	rig_put(g, "etc/os-release", "ID=debian\n");
	for (size_t i = 0; i < 2; i++) {
		rig_reset(g);
		fix(g);
		rig_put(g, copies[i], text);
		assert_int_equal(undo(g), FIX_DONE);
		assert_get(g, copies[i], text);
		assert_non_null(strstr(strbuf_str(&g->texts), "-6.1-mine.conf keeps " WORD));
		assert_has(g, RIG_ENTRY, false);
	}
}

/*
 * The person removed the fix's line, and has the word in the distribution's: entries that
 * kernel-install makes then have it from there.
 */
static void test_line_of_person(void **state)
{
	struct rig *g = *state;

	fix(g);
	rig_remove(g, RIG_LINE);
	rig_put(g, "usr/lib/kernel/cmdline", "root=a " WORD "\n");
	rig_put(g, SINCE,
		"version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a " WORD
		" systemd.machine_id=" RIG_ID "\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_has(g, SINCE, true);
	assert_has(g, RIG_ENTRY, false);
}

/*
 * Beside the fix's word the person has it in the line once more, and so has each entry made of it.
 */
static void test_word_of_person_in_line(void **state)
{
	struct rig *g = *state;

	fix(g);
	rig_put(g, RIG_LINE, "root=a " WORD " quiet " WORD "\n");
	rig_put(g, SINCE,
		"version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a " WORD " quiet " WORD
		"\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, RIG_LINE, "root=a " WORD " quiet\n");
	assert_get(g, SINCE,
		   "version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a " WORD " quiet\n");
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/* A copy of the disk has the same machine ID, and entries that its own kernel-install made. */
static void test_copy_of_disk(void **state)
{
	static const char text[] = "version 6.3\nmachine-id " RIG_ID "\nlinux /" RIG_ID
				   "/6.3/linux\noptions root=UUID=b " WORD "\n";
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_put(g, RIG_LINE, "root=UUID=a quiet\n");
	rig_words(g, p, WORD);
	apply(g, p);
	rig_put(g, SINCE, text);
	/* By a rescue medium's kernel, as in a chroot: what runs is not this system's. */
	rig_put(g, "proc/cmdline", "root=UUID=b\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, SINCE, text);
	assert_non_null(strstr(strbuf_str(&g->texts), "-6.3.conf keeps " WORD));
	assert_has(g, RIG_ENTRY, false);
}

/* A later fix names the same port and more: its word is no change of the first one's. */
static void test_longer_word_of_later_fix(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = plan_new(), *second = plan_new();
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	unsigned number;

	rig_words(g, first, "pci=disable_acs_redir=a");
	apply(g, first);
	rig_words(g, second, "pci=disable_acs_redir=a;b");
	apply(g, second);
	assert_int_equal(fix_undo(&g->run, 1, &result, &number), 0);
	assert_int_equal(result, FIX_DONE);
	assert_get(g, RIG_LINE, "root=a quiet pci=disable_acs_redir=a;b\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, RIG_LINE, "root=a quiet\n");
}

/* Quoted, or made longer: not what the fix wrote, and it is not undone while it is there. */
static void test_changed_word(void **state)
{
	static const char *const changed[] = {"\"" WORD "\"", WORD ",strict", "iommu=strict,pt"};
	static const char *const paths[] = {RIG_ENTRY, RIG_LINE};
	struct rig *g = *state;

	for (size_t i = 0; i < 6; i++) {
		const char *path = paths[i / 3], *start = i / 3 ? "" : "linux /a\noptions ";
		AUTO_FREE char *text = xprintf("%sroot=a %s quiet\n", start, changed[i % 3]);
		AUTO_FREE char *without = xprintf("%sroot=a quiet\n", start);

		rig_reset(g);
		fix(g);
		rig_put(g, path, text);
		assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
		assert_get(g, path, text);
		assert_non_null(strstr(strbuf_str(&g->texts), changed[i % 3]));
		assert_has(g, i / 3 ? RIG_ENTRY : RIG_LINE, false); /* the others are undone */
		assert_int_equal(last_state(g), FIX_UNDOING);
		rig_put(g, path, without);
		assert_int_equal(undo(g), FIX_DONE);
		assert_int_equal(last_state(g), FIX_UNDONE);
	}
}

/*
 * Who wants to keep what he made of the word closes the fix. Not while the word itself is anywhere.
 */
static void test_forget_changed_word(void **state)
{
	static const char changed[] = "linux /a\noptions root=a " WORD ",strict quiet\n";
	struct rig *g = *state;

	fix(g);
	rig_put(g, RIG_ENTRY, changed);
	assert_int_equal(fix_forget(&g->run, 1), -EBUSY);
	rig_put(g, RIG_LINE, "root=a quiet\n");
	rig_put(g, RIG_COUNTED, "linux /6.2/linux\noptions root=a quiet\n");
	rig_put(g, SINCE,
		"version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a quiet " WORD
		" systemd.machine_id=" RIG_ID "\n");
	assert_int_equal(fix_forget(&g->run, 1), -EBUSY);
	rig_remove(g, SINCE);
	assert_int_equal(fix_forget(&g->run, 1), 0);
	assert_get(g, RIG_ENTRY, changed);
	assert_int_equal(last_state(g), FIX_FORGOTTEN);
}

/* Such a word of a person's that was there before is none of the fix. */
static void test_longer_word_of_before(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_put(g, RIG_LINE, "root=a iommu=pt,strict\n");
	rig_words(g, p, WORD);
	apply(g, p);
	rig_put(g, SINCE,
		"version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a iommu=pt,strict " WORD
		"\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, RIG_LINE, "root=a iommu=pt,strict\n");
	assert_get(g, SINCE,
		   "version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a iommu=pt,strict\n");
}

/* Had the word before: the fix has no step for it. */
static void test_word_of_before(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_words(g, p, WORD);
	rig_put(g, RIG_COUNTED, "linux /6.2/linux\noptions root=a " WORD "\n");
	p->steps[1] = p->steps[2];
	p->step_n = 2;
	apply(g, p);
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, RIG_COUNTED, "linux /6.2/linux\noptions root=a " WORD "\n");
	assert_has(g, RIG_ENTRY, false);
}

/* Boot counting renamed one entry, the other kernel is gone, and a person edited the line. */
static void test_changed_since(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *counted = NULL;

	fix(g);
	counted = rig_get(g, RIG_COUNTED);
	rig_remove(g, RIG_COUNTED);
	rig_put(g, ENTRIES RIG_ID "-6.2.conf", counted);
	rig_remove(g, RIG_ENTRY);
	rig_put(g, RIG_LINE, "root=a " WORD " added=later\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, ENTRIES RIG_ID "-6.2.conf",
		   "title Two\nlinux /6.2/linux\noptions root=a\noptions quiet\n");
	assert_false(rig_exists(g, RIG_ENTRY));
	assert_false(rig_exists(g, RIG_COUNTED));
	assert_get(g, RIG_LINE, "root=a added=later\n");
}

/* The same word once more, by a person: one of the two stays. */
static void test_word_of_person(void **state)
{
	struct rig *g = *state;

	fix(g);
	rig_put(g, RIG_ENTRY, "linux /6.1/linux\noptions " WORD " root=a quiet " WORD "\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, RIG_ENTRY, "linux /6.1/linux\noptions " WORD " root=a quiet\n");
}

/*
 * What a person made of the fix's list of ports still clears one of them: it is named, and not
 * undone.
 */
static void test_ports_of_person(void **state)
{
	static const char word[] = "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0";
	static const char *const lists[] = {
		"pci=disable_acs_redir=0000:22:00.0",
		"pci=disable_acs_redir=0000:22:01.0;0000:22:00.0",
		"pci=disable_acs_redir=0000:00:01.1;0000:22:00.0",
		"pci=disable_acs_redir=0000:22:00.0;0000:00:01.1;0000:22:01.0",
		"\"pci=noaer,disable_acs_redir=0000:22:01.0\"",
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		AUTO_PLAN struct plan *p = plan_new();
		AUTO_FREE char *entry = xprintf("linux /6.1/linux\noptions a %s\n", lists[i]);

		rig_reset(g);
		rig_words(g, p, word);
		apply(g, p);
		rig_put(g, RIG_ENTRY, entry);
		assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
		if (!strstr(strbuf_str(&g->texts), lists[i]))
			fail_msg("%s", strbuf_str(&g->texts));
		assert_get(g, RIG_ENTRY, entry);
		assert_int_equal(last_state(g), FIX_UNDOING);
	}
}

/* ---- a line that was not there before ---- */

static void fix_without_line(struct rig *g)
{
	AUTO_PLAN struct plan *p = plan_new();

	rig_words(g, p, WORD);
	p->steps[2].old = (struct bytes){NULL, 0};
	rig_remove(g, RIG_LINE);
	rig_remove(g, "etc/kernel");
	apply(g, p);
	assert_get(g, RIG_LINE, BOOTED);
}

/*
 * Undone before a later fix that edited the file, this one could not take it away, and the later
 * one would not.
 */
static void test_line_edited_by_later(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *later = plan_new();
	enum fix_result result;
	unsigned number;

	fix_without_line(g);
	rig_words(g, later, "pci=realloc");
	apply(g, later);
	assert_int_equal(fix_undo(&g->run, 1, &result, &number), -EBUSY);
	assert_string_equal(err_msg(),
			    "fix 2 changed /etc/kernel/cmdline, which fix 1 made: undo 2 first");
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, RIG_LINE, BOOTED);
	assert_int_equal(undo(g), FIX_DONE);
	assert_false(rig_exists(g, "etc/kernel"));
}

static void test_line_goes(void **state)
{
	struct rig *g = *state;

	fix_without_line(g);
	assert_int_equal(undo(g), FIX_DONE);
	assert_false(rig_exists(g, "etc/kernel"));
}

/* kernel-install would take the word from /proc/cmdline, and make it permanent. */
static void test_line_stays_while_it_runs(void **state)
{
	struct rig *g = *state;

	fix_without_line(g);
	rig_put(g, "proc/cmdline", BOOTED);
	assert_int_equal(undo(g), FIX_DONE);
	assert_get(g, RIG_LINE, "root=a quiet\n");
}

/*
 * The distribution's own file, which kernel-install takes before /proc/cmdline, is not hidden for
 * good.
 */
static void test_line_of_distribution(void **state)
{
	struct rig *g = *state;

	for (int image = 0; image < 2; image++) {
		rig_reset(g);
		fix_without_line(g);
		rig_put(g, "proc/cmdline", BOOTED);
		rig_put(g, "usr/lib/kernel/cmdline", "root=a quiet\n");
		g->host.image = image;
		assert_int_equal(undo(g), FIX_DONE);
		assert_false(rig_exists(g, RIG_LINE));
		g->host.image = false;
	}
}

/* ---- an image, and partitions that are not mounted ---- */

static void test_image(void **state)
{
	struct rig *g = *state;

	fix_without_line(g);
	g->host.image = true;
	assert_int_equal(undo(g), FIX_DONE);
	assert_has(g, RIG_ENTRY, false);
	assert_has(g, RIG_COUNTED, false);
	assert_get(g, RIG_LINE, "root=a quiet\n");
	assert_int_equal(last_state(g), FIX_UNDONE);
}

static void test_not_mounted(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *from = NULL, *to = NULL;

	fix(g);
	from = xprintf("%s/efi/loader", g->root);
	to = xprintf("%s/efi/away", g->root);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
	assert_non_null(strstr(strbuf_str(&g->texts), "mount its file system first"));
	assert_int_equal(last_state(g), FIX_UNDOING);
	assert_int_equal(rename(to, from), 0);
	assert_int_equal(undo(g), FIX_DONE);
	assert_has(g, RIG_ENTRY, false);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/*
 * No fstab tells of it: systemd finds such a partition by its type. Neither undone nor forgotten.
 */
static void test_empty(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *from = NULL, *to = NULL;
	enum fix_result result;
	unsigned number;

	fix(g);
	from = xprintf("%s/efi", g->root);
	to = xprintf("%s/away", g->root);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(mkdir(from, 0755), 0);
	assert_int_equal(fix_undo(&g->run, 0, &result, &number), -ENOMEDIUM);
	assert_non_null(strstr(err_msg(), "/efi is empty"));
	assert_int_equal(fix_forget(&g->run, 1), -ENOMEDIUM);
	assert_int_equal(last_state(g), FIX_APPLIED);
	assert_has(g, RIG_LINE, true);
	assert_int_equal(rmdir(from), 0);
	assert_int_equal(rename(to, from), 0);
	assert_int_equal(undo(g), FIX_DONE);
}

/* ---- what cannot be looked at ---- */

/* An entry that leads elsewhere still has the word. */
static void test_forget_link(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *from = xprintf("%s/" RIG_ENTRY, g->root), *to = xprintf("%s/kept", g->root);

	fix(g);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(symlink("../../../kept", from), 0);
	rig_remove(g, RIG_COUNTED);
	rig_remove(g, RIG_LINE);
	assert_true(fix_forget(&g->run, 1) < 0);
	assert_non_null(strstr(err_msg(), "may still be applied"));
	assert_int_equal(last_state(g), FIX_APPLIED);
}

static void put_zero(const struct rig *g, const char *path, const char *text)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path);
	FILE *file = fopen(whole, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text) + 1, file), strlen(text) + 1);
	fclose(file);
}

/* Somebody's file with a zero byte is no reason to leave an entry with the word. */
static void test_no_text(void **state)
{
	struct rig *g = *state;

	fix(g);
	rig_put(g, SINCE,
		"version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a quiet " WORD
		" systemd.machine_id=" RIG_ID "\n");
	put_zero(g, ENTRIES "a.conf", "a");
	assert_true(fix_forget(&g->run, 1) < 0);
	assert_int_equal(undo(g), FIX_DONE);
	assert_has(g, SINCE, false);
	assert_has(g, RIG_LINE, false);
}

/*
 * A unified kernel image as far as its command line goes: headers, a section table with two
 * sections, and the line.
 */
static void put_image(const struct rig *g, const char *path, const char *line)
{
	enum { PE = 64, TABLE = PE + 24 + 16, TEXT = TABLE + 2 * 40 };
	unsigned char image[1024] = {'M', 'Z', [60] = PE};
	unsigned char *second = image + TABLE + 40;
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path);
	FILE *file;

	memcpy(image + PE, "PE\0\0", 4);
	image[PE + 6] = 2;
	image[PE + 20] = 16;
	memcpy(image + TABLE, ".osrel\0\0", 8);
	memcpy(second, ".cmdline", 8);
	second[8] = (unsigned char)strlen(line);
	second[17] = 2; /* 512 bytes in the file */
	second[20] = TEXT;
	memcpy(image + TEXT, line, strlen(line));
	rig_put(g, path, "");
	file = fopen(whole, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(image, 1, sizeof(image), file), sizeof(image));
	fclose(file);
}

#define IMAGE "efi/EFI/Linux/" RIG_ID "-6.9.efi"

/*
 * Made of the line while the fix was applied: it cannot be edited, so the fix stays open until it
 * is made again.
 */
static void test_unified_image_since(void **state)
{
	struct rig *g = *state;

	fix(g);
	put_image(g, IMAGE, "root=a quiet " WORD "\n");
	put_image(g, "efi/EFI/Linux/none.efi", "root=a quiet\n");
	rig_put(g, "efi/EFI/Linux/broken.efi", "MZ");
	assert_true(fix_forget(&g->run, 1) < 0);
	assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
	assert_non_null(strstr(strbuf_str(&g->texts), "/" IMAGE " has " WORD));
	assert_null(strstr(strbuf_str(&g->texts), "none.efi"));
	assert_has(g, RIG_LINE, false);
	assert_has(g, RIG_ENTRY, false);
	assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
	put_image(g, IMAGE, "root=a quiet\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/* An image that had the word before the fix is a person's. */
static void test_unified_image_of_before(void **state)
{
	struct rig *g = *state;

	put_image(g, IMAGE, "root=a quiet " WORD "\n");
	fix(g);
	assert_int_equal(undo(g), FIX_DONE);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

static void fix_as(struct rig *g, const char *const *names)
{
	AUTO_PLAN struct plan *p = plan_new();

	rig_words(g, p, WORD);
	for (size_t i = 0; i < p->step_n; i++)
		p->steps[i].own_names = p->steps[i].known ? names : NULL;
	apply(g, p);
}

/*
 * A kernel was installed, and then the disk got a new machine ID, as a clone does; or its token
 * went.
 */
static void test_earlier_names(void **state)
{
	static const char *const names[] = {RIG_ID, "lab", NULL};
	static const char *const since[] = {SINCE, ENTRIES "lab-6.3.conf"};
	static const char others[] = ENTRIES "0000456789abcdef0123456789abcdef-6.3.conf";
	struct rig *g = *state;

	fix_as(g, names);
	rig_put(g, since[0],
		"version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions root=a quiet " WORD "\n");
	rig_put(g, since[1],
		"version 6.3\nmachine-id " RIG_ID
		"\nlinux /lab/6.3/linux\noptions root=a quiet " WORD "\n");
	/* Of a machine that this one never was. */
	rig_put(g, others, "version 6.3\nlinux /a\noptions root=a " WORD "\n");
	rig_put(g, "etc/machine-id", "fedcba9876543210fedcba9876543210\n");
	assert_int_equal(undo(g), FIX_DONE);
	for (size_t i = 0; i < ARRAY_LEN(since); i++)
		assert_has(g, since[i], false);
	assert_has(g, others, true);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/* A person gave the entry another name: the fix stays open while that has the word. */
static void test_renamed_by_person(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *text = NULL;

	fix(g);
	text = rig_get(g, RIG_ENTRY);
	rig_remove(g, RIG_ENTRY);
	rig_put(g, ENTRIES "mine.conf", text);
	assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
	assert_non_null(strstr(strbuf_str(&g->texts), "/" ENTRIES "mine.conf has " WORD));
	rig_put(g, ENTRIES "mine.conf", "title One\nlinux /6.1/linux\noptions root=a quiet\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/* systemd-boot starts such an entry all the same: the fix stays open while it has the word. */
static void test_zero_byte(void **state)
{
	static const char text[] = "linux /6.1/linux\noptions root=a quiet " WORD "\n";
	struct rig *g = *state;

	fix(g);
	put_zero(g, ENTRIES "a.conf", text);
	assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
	assert_non_null(strstr(strbuf_str(&g->texts), ENTRIES "a.conf has " WORD));
	assert_has(g, RIG_ENTRY, false);
	assert_has(g, RIG_LINE, false);
	assert_int_equal(fix_forget(&g->run, 1), -EBUSY);
	assert_non_null(strstr(err_msg(), "fix 1 is still applied"));
	assert_int_equal(last_state(g), FIX_UNDOING);
	rig_remove(g, ENTRIES "a.conf");
	assert_int_equal(undo(g), FIX_DONE);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/*
 * In an entry that the fix edited: what to do is said, the rest is undone, and then it can be
 * closed.
 */
static void test_zero_byte_in_own_entry(void **state)
{
	static const char said[] =
		RIG_ENTRY " has a zero byte, so it is not edited: remove that byte, or the file";
	struct rig *g = *state;

	for (int i = 0; i < 2; i++) {
		rig_reset(g);
		fix(g);
		put_zero(g, RIG_ENTRY, "linux /6.1/linux\noptions root=a quiet " WORD "\n");
		assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
		assert_non_null(strstr(strbuf_str(&g->texts), said));
		assert_has(g, RIG_LINE, false);
		assert_true(fix_forget(&g->run, 1) < 0);
		assert_non_null(strstr(err_msg(), said));
		if (i)
			rig_remove(g, RIG_ENTRY);
		else
			rig_put(g, RIG_ENTRY, "linux /6.1/linux\noptions root=a quiet " WORD "\n");
		assert_int_equal(undo(g), FIX_DONE);
		assert_int_equal(last_state(g), FIX_UNDONE);
	}
}

/* Without the file kernel-install takes the running kernel's words. */
static void test_line_was_deleted(void **state)
{
	struct rig *g = *state;

	for (int booted = 0; booted < 2; booted++) {
		rig_reset(g);
		fix(g);
		rig_put(g, "proc/cmdline", booted ? BOOTED : "root=a quiet\n");
		rig_remove(g, RIG_LINE);
		assert_int_equal(undo(g), FIX_DONE);
		assert_int_equal(strstr(strbuf_str(&g->texts), "the running kernel has " WORD) !=
					 NULL,
				 booted);
	}
}

/* ---- what a power cut leaves on FAT ---- */

/* fsck.fat emptied it; or it is gone, and the copy is there. */
static void test_torn(void **state)
{
	static const char old[] = "title One\nlinux /6.1/linux\noptions root=a quiet\n";
	struct rig *g = *state;

	for (int gone = 0; gone < 2; gone++) {
		rig_reset(g);
		fix(g);
		rig_put(g, ENTRIES RIG_ID "-6.1.onehop-old.conf", old);
		rig_put(g, RIG_ENTRY, "");
		if (gone)
			rig_remove(g, RIG_ENTRY);
		assert_int_equal(undo(g), FIX_DONE);
		assert_get(g, RIG_ENTRY, old);
		assert_false(rig_exists(g, ENTRIES RIG_ID "-6.1.onehop-old.conf"));
	}
}

/* ---- a run that is killed, and a person who edits then ---- */

#define EDITED "edited-by-a-person"

static const char *const edited_files[] = {RIG_ENTRY, RIG_COUNTED, RIG_LINE};

static void edit_all(const struct rig *g)
{
	for (size_t i = 0; i < ARRAY_LEN(edited_files); i++) {
		AUTO_FREE char *now = rig_get(g, edited_files[i]), *with = NULL;
		const char *end;

		assert_non_null(now);
		end = strstr(now, "quiet");
		assert_non_null(end);
		with = xprintf("%.*s" EDITED " %s", (int)(end - now), now, end);
		rig_put(g, edited_files[i], with);
	}
}

/* What the person wrote is in its place; and if it is said to be undone, it is. */
static void assert_edit_stays(struct rig *g, long n)
{
	enum fix_result result = FIX_NOT_ROLLED_BACK;
	unsigned number;
	int r = fix_undo(&g->run, 0, &result, &number);

	for (size_t i = 0; i < ARRAY_LEN(edited_files); i++) {
		AUTO_FREE char *now = rig_get(g, edited_files[i]);

		if (!now || !strstr(now, EDITED))
			fail_msg("killed at point %ld, %s: the edit is lost: %s", n,
				 edited_files[i], now ? now : "(gone)");
		if (r == 0 && result == FIX_DONE &&
		    boot_text_has(now, boot_text_of(edited_files[i]), WORD))
			fail_msg("killed at point %ld, %s: not undone: %s", n, edited_files[i],
				 now);
	}
}

static void apply_words(struct rig *g, struct plan *p)
{
	apply(g, p);
}

static void undo_words(struct rig *g, struct plan *p)
{
	(void)p;
	undo(g);
}

static void test_edited_after_a_killed_fix(void **state)
{
	struct rig *g = *state;
	long n = 0;

	for (;; n++) {
		AUTO_PLAN struct plan *p = plan_new();

		rig_reset(g);
		rig_words(g, p, WORD);
		if (!rig_run_killed(g, p, apply_words, n))
			break;
		edit_all(g);
		assert_edit_stays(g, n);
	}
	assert_true(n > 20);
}

static void test_edited_after_a_killed_undo(void **state)
{
	struct rig *g = *state;
	long n = 0;

	for (;; n++) {
		rig_reset(g);
		fix(g);
		if (!rig_run_killed(g, NULL, undo_words, n))
			break;
		edit_all(g);
		assert_edit_stays(g, n);
	}
	assert_true(n > 20);
}

/* ---- a program that does nothing, or a file system that forgets, is not believed ---- */

static int forget(void *context, enum fix_point point, const char *path)
{
	struct rig *g = context;

	/* What came before this one is lost: the entry is the old one again. */
	if (point == POINT_UNLINK && strstr(path, ".onehop-old.conf"))
		rig_put(g, RIG_ENTRY, "title One\nlinux /6.1/linux\noptions root=a quiet\n");
	return 0;
}

static void test_read_back(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	enum fix_result result = FIX_DONE;
	unsigned number;

	rig_words(g, p, WORD);
	g->host.before = forget;
	assert_int_equal(fix_apply(&g->run, p, &result, &number), 0);
	assert_int_equal(result, FIX_ROLLED_BACK);
	assert_non_null(strstr(strbuf_str(&g->texts), "is not what was written to it"));
}

/* ---- the real kernel-install ---- */

/*
 * $ONEHOP_KERNEL_INSTALL: how it is run, words of sh; else this machine's own. NULL: there is none.
 */
static const char *program(void)
{
	static const char own[] = "/usr/bin/kernel-install";
	const char *given = getenv("ONEHOP_KERNEL_INSTALL");

	return given ? given : access(own, X_OK) == 0 ? own : NULL;
}

static void add_kernel(struct rig *g, const char *version)
{
	AUTO_FREE char *command = xprintf(
		"export KERNEL_INSTALL_CONF_ROOT=%s/etc/kernel BOOT_ROOT=%s/efi MACHINE_ID=" RIG_ID
		" KERNEL_INSTALL_PLUGINS=/usr/lib/kernel/install.d/90-loaderentry.install\n"
		"exec %s add %s %s/linux",
		g->root, g->root, program(), version, g->root);
	const char *const argv[] = {"sh", "-c", command, NULL};
	AUTO_STRBUF struct strbuf output = {0};
	int status = -1;

	if (child_run("/bin/sh", argv, 60, &output, &status) < 0 || status != 0)
		fail_msg("%s: status %d: %s", command, status, strbuf_str(&output));
}

/* Kernels come before the fix, while it is in force, and after it was undone. */
static void test_real_kernel_install(void **state)
{
	struct rig *g = *state;

	if (!program())
		SKIP("kernel-install is not installed");
	rig_put(g, "efi/" RIG_ID "/.keep", "");
	rig_put(g, "linux", "stands in for a kernel");
	rig_put(g, "etc/kernel/install.conf", "layout=bls\n");
	add_kernel(g, "6.7");
	assert_has(g, ENTRIES RIG_ID "-6.7.conf", false);
	fix(g);
	add_kernel(g, "6.8");
	assert_has(g, ENTRIES RIG_ID "-6.8.conf", true);
	add_kernel(g, "6.1"); /* it writes the entry again that the fix has edited */
	rig_put(g, "etc/kernel/tries", "3\n");
	add_kernel(
		g,
		"6.1"); /* counted: 252 writes that entry next to the other, newer ones replace it */
	assert_has(g, ENTRIES RIG_ID "-6.1+3.conf", true);
	assert_int_equal(undo(g), FIX_DONE);
	assert_has(g, ENTRIES RIG_ID "-6.1+3.conf", false);
	rig_remove(g, "etc/kernel/tries");
	assert_has(g, ENTRIES RIG_ID "-6.8.conf", false);
	if (rig_exists(g, RIG_ENTRY))
		assert_has(g, RIG_ENTRY, false);
	add_kernel(g, "6.9");
	assert_has(g, ENTRIES RIG_ID "-6.9.conf", false);
}

/* ---- a fix of the first release ---- */

static int kernel_install(void *context, const char *const *argv)
{
	struct rig *g = context;
	AUTO_FREE char *line = rig_get(g, RIG_LINE);
	AUTO_FREE char *text =
		xprintf("title One\nversion 6.1\nlinux /" RIG_ID "/6.1/linux\noptions %s",
			line ? line : BOOTED);

	g->random++; /* how often it ran */
	assert_string_equal(argv[1], "add");
	rig_put(g, RIG_ENTRY, text);
	return 0;
}

static int runner(void *context, const char *const *argv, unsigned deadline_s,
		  struct strbuf *output, int *ret_status)
{
	static const struct stand_in programs[] = {{"kernel-install", kernel_install}, {NULL}};

	(void)deadline_s;
	return rig_run(programs, context, argv, output, ret_status);
}

static struct step *add_tool(struct plan *p, bool undoing)
{
	static const char *const argv[] = {"kernel-install", "add", "6.1",
					   "/lib/modules/6.1/vmlinuz", NULL};
	struct step *s = rig_switch(p, "off", "on");

	s->argv = undoing ? NULL : argv;
	s->undo_argv = undoing ? argv : NULL;
	return s;
}

static void fix_by_first_release(struct rig *g)
{
	AUTO_PLAN struct plan *p = plan_new();
	struct plan_wanted *w = ARENA_PUSH(p->arena, p->wanted, p->wanted_n);

	*w = (struct plan_wanted){"kernel-parameter", WORD};
	g->host.run = runner;
	g->host.run_context = g;
	rig_remove(g, RIG_LINE);
	add_tool(p, true);
	rig_file(p, RIG_LINE, NULL, BOOTED);
	add_tool(p, false);
	g->random = 0;
	apply(g, p);
	assert_int_equal(g->random, 1);
	assert_has(g, RIG_ENTRY, true);
}

static void test_first_release(void **state)
{
	struct rig *g = *state;

	fix_by_first_release(g);
	/* The reboot, and a kernel that came. */
	rig_put(g, "proc/cmdline", BOOTED);
	rig_put(g, SINCE, "version 6.3\nlinux /" RIG_ID "/6.3/linux\noptions " BOOTED);
	assert_int_equal(undo(g), FIX_DONE);
	assert_int_equal(g->random, 1); /* not run again: it writes kernels in place */
	assert_has(g, RIG_ENTRY, false);
	assert_has(g, SINCE, false);
	assert_get(g, RIG_LINE, "root=a quiet\n");
	assert_int_equal(last_state(g), FIX_UNDONE);
}

/*
 * Undone in a rescue boot, first without the boot partition: what runs there is not made permanent.
 */
static void test_first_release_not_mounted(void **state)
{
	struct rig *g = *state;

	for (int image = 0; image < 2; image++) {
		AUTO_FREE char *from = NULL, *to = NULL;

		rig_reset(g);
		fix_by_first_release(g);
		from = xprintf("%s/efi/loader", g->root);
		to = xprintf("%s/efi/away", g->root);
		rig_put(g, "proc/cmdline", "root=a systemd.unit=rescue.target\n");
		g->host.image = image;
		assert_int_equal(rename(from, to), 0);
		assert_int_equal(undo(g), FIX_NOT_ROLLED_BACK);
		assert_int_equal(rename(to, from), 0);
		assert_int_equal(undo(g), FIX_DONE);
		assert_int_equal(g->random, 1); /* only when it was applied */
		assert_get(g, RIG_ENTRY,
			   "title One\nversion 6.1\nlinux /" RIG_ID
			   "/6.1/linux\noptions root=a quiet\n");
		assert_int_equal(last_state(g), FIX_UNDONE);
		g->host.image = false;
	}
}

/* Cut short within kernel-install, which may have torn a kernel: it runs again. */
static int kill_it(void *context, const char *const *argv)
{
	kernel_install(context, argv);
	return 1;
}

static int failing_runner(void *context, const char *const *argv, unsigned deadline_s,
			  struct strbuf *output, int *ret_status)
{
	static const struct stand_in programs[] = {{"kernel-install", kill_it}, {NULL}};

	(void)deadline_s;
	return rig_run(programs, context, argv, output, ret_status);
}

static void cut_short(struct rig *g, const char *line)
{
	AUTO_PLAN struct plan *p = plan_new();
	struct plan_wanted *w = ARENA_PUSH(p->arena, p->wanted, p->wanted_n);
	enum fix_result result = FIX_DONE;
	unsigned number;

	*w = (struct plan_wanted){"kernel-parameter", WORD};
	g->host.run = failing_runner;
	g->host.run_context = g;
	if (!line)
		rig_remove(g, RIG_LINE);
	add_tool(p, true);
	rig_file(p, RIG_LINE, line, BOOTED);
	add_tool(p, false);
	assert_int_equal(fix_apply(&g->run, p, &result, &number), 0);
	assert_int_equal(result, FIX_NOT_ROLLED_BACK);
	g->host.run = runner;
	g->random = 0;
}

static void test_first_release_cut_short(void **state)
{
	struct rig *g = *state;

	cut_short(g, "root=a quiet\n");
	assert_int_equal(undo(g), FIX_DONE);
	assert_int_equal(g->random, 1);
	assert_has(g, RIG_ENTRY, false);
	assert_get(g, RIG_LINE, "root=a quiet\n");
}

/* The file that the fix made is there when it runs: what a rescue boot has is not taken. */
static void test_first_release_cut_short_line(void **state)
{
	struct rig *g = *state;

	cut_short(g, NULL);
	rig_put(g, "proc/cmdline", "root=a systemd.unit=rescue.target\n");
	rig_put(g, RIG_LINE, BOOTED);
	assert_int_equal(undo(g), FIX_DONE);
	assert_int_equal(g->random, 1);
	assert_get(g, RIG_ENTRY,
		   "title One\nversion 6.1\nlinux /" RIG_ID "/6.1/linux\noptions root=a quiet\n");
	assert_get(g, RIG_LINE, "root=a quiet\n");
}

/* ---- Proxmox ---- */

/*
 * A stand-in for proxmox-boot-tool, which Debian does not have (bookworm, trixie, sid). What it
 * writes was compared with the source of "refresh" (zz-proxmox-boot of proxmox-kernel-helper
 * 8.1.0): each of its partitions gets the kernels and an entry of each, with the first line of
 * /etc/kernel/cmdline, which must have root=; a copy that fails ends it. What else the real one
 * does is not here: that it ends well where it passes over a partition that is not there, or cannot
 * be mounted.
 */
static const char *const proxmox_entries[] = {"run/esp/AAAA/loader/entries/proxmox-6.8.conf",
					      "run/esp/BBBB/loader/entries/proxmox-6.8.conf"};

static int refresh(void *context, const char *const *argv)
{
	struct rig *g = context;
	AUTO_FREE char *line = rig_get(g, RIG_LINE);
	AUTO_FREE char *text =
		xprintf("title    Proxmox Virtual Environment\nversion  6.8\noptions  %.*s\n"
			"linux    /EFI/proxmox/6.8/vmlinuz-6.8\n",
			(int)strcspn(line, "\n"), line);

	assert_string_equal(argv[1], "refresh");
	if (!strstr(line, "root="))
		return 1;
	for (size_t i = 0; i < 2; i++) {
		rig_put(g, proxmox_entries[i], text);
		if (g->random-- == 1) /* the second partition is full */
			return 1;
	}
	return 0;
}

static int proxmox_runner(void *context, const char *const *argv, unsigned deadline_s,
			  struct strbuf *output, int *ret_status)
{
	static const struct stand_in programs[] = {{"proxmox-boot-tool", refresh}, {NULL}};

	(void)deadline_s;
	return rig_run(programs, context, argv, output, ret_status);
}

/* As plan_loader_proxmox has it. */
static void plan_proxmox(struct rig *g, struct plan *p)
{
	static const char *const argv[] = {"proxmox-boot-tool", "refresh", NULL};
	struct step *undo = rig_switch(p, "off", "on"), *apply_all;

	undo->argv = NULL;
	undo->undo_argv = argv;
	rig_words(g, p, WORD);
	p->steps[1] = p->steps[p->step_n - 1]; /* the line alone */
	p->step_n = 2;
	apply_all = rig_switch(p, "off", "on");
	apply_all->argv = argv;
	apply_all->undo_argv = NULL;
	g->host.run = proxmox_runner;
	g->host.run_context = g;
}

static void assert_proxmox_has(const struct rig *g, bool has)
{
	for (size_t i = 0; i < 2; i++)
		assert_has(g, proxmox_entries[i], has);
	assert_has(g, RIG_LINE, has);
}

static void test_proxmox(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	plan_proxmox(g, p);
	g->random = 0;
	apply(g, p);
	assert_proxmox_has(g, true);
	assert_int_equal(undo(g), FIX_DONE);
	assert_proxmox_has(g, false);
	assert_get(g, RIG_LINE, "root=a quiet\n");
}

/*
 * One partition has the word already when the program fails: it is made once more from the old
 * line.
 */
static void test_proxmox_fails(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	enum fix_result result = FIX_DONE;
	unsigned number;

	plan_proxmox(g, p);
	g->random = 1;
	assert_int_equal(fix_apply(&g->run, p, &result, &number), 0);
	assert_int_equal(result, FIX_ROLLED_BACK);
	assert_proxmox_has(g, false);
	assert_int_equal(last_state(g), FIX_UNDONE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_rig, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_entries_since),
		TEST(test_counted_since),
		TEST(test_copy_of_person),
		TEST(test_copy_of_person_with_version),
		TEST(test_line_of_person),
		TEST(test_word_of_person_in_line),
		TEST(test_copy_of_disk),
		TEST(test_longer_word_of_later_fix),
		TEST(test_changed_word),
		TEST(test_forget_changed_word),
		TEST(test_longer_word_of_before),
		TEST(test_word_of_before),
		TEST(test_changed_since),
		TEST(test_word_of_person),
		TEST(test_ports_of_person),
		TEST(test_line_edited_by_later),
		TEST(test_line_goes),
		TEST(test_line_stays_while_it_runs),
		TEST(test_line_of_distribution),
		TEST(test_image),
		TEST(test_not_mounted),
		TEST(test_empty),
		TEST(test_forget_link),
		TEST(test_no_text),
		TEST(test_unified_image_since),
		TEST(test_unified_image_of_before),
		TEST(test_earlier_names),
		TEST(test_renamed_by_person),
		TEST(test_zero_byte),
		TEST(test_zero_byte_in_own_entry),
		TEST(test_line_was_deleted),
		TEST(test_torn),
		TEST(test_edited_after_a_killed_fix),
		TEST(test_edited_after_a_killed_undo),
		TEST(test_read_back),
		TEST(test_real_kernel_install),
		TEST(test_first_release),
		TEST(test_first_release_not_mounted),
		TEST(test_first_release_cut_short),
		TEST(test_first_release_cut_short_line),
		TEST(test_proxmox),
		TEST(test_proxmox_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
