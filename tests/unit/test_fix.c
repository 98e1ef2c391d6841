/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fix/: applied and undone is as before, failed anywhere is as before, and nothing is undone twice.
 */
#include "fix_rig.h"
#include "skip.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/child.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/fix_impl.h"
#include "fix/grub_menu.h"
#include "fix/journal_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
/* $ONEHOP_FIX_ROUNDS is another number. With the sanitizers a round costs ten times as much. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define ROUNDS 1000
#else
#define ROUNDS 3000
#endif
#define SEED   20261121
#define BOOT_2 "22222222-2222-3333-4444-555555555555\n"
#define FIX_1  JOURNAL_FOLDER "/fixes/1/"

static int make_rig(void **state)
{
	return rig_setup(state, SEED);
}

static void assert_tree(const struct rig *g, const char *expected)
{
	AUTO_FREE char *difference = rig_tree_differs(g, expected);

	if (difference)
		fail_msg("%s\nthe last run told:\n%s", difference, strbuf_str(&g->texts));
}

static void assert_get(const struct rig *g, const char *path, const char *expected)
{
	AUTO_FREE char *now = rig_get(g, path);

	if (expected)
		assert_string_equal(now, expected);
	else
		assert_null(now);
}

static void assert_told(const struct rig *g, const char *part)
{
	if (!strstr(strbuf_str(&g->texts), part))
		fail_msg("\"%s\" was not told, but:\n%s", part, strbuf_str(&g->texts));
}

static void assert_said(const char *part)
{
	if (!strstr(err_msg(), part))
		fail_msg("the sentence is not about \"%s\": %s", part, err_msg());
}

static enum fix_result apply(struct rig *g, struct plan *p)
{
	enum fix_result result;
	unsigned number;
	int r = fix_apply(&g->run, p, &result, &number);

	if (r < 0)
		fail_msg("apply: %s", err_msg());
	return result;
}

static enum fix_result undo(struct rig *g, unsigned number)
{
	enum fix_result result;
	unsigned undone;
	int r = fix_undo(&g->run, number, &result, &undone);

	if (r < 0)
		fail_msg("undo: %s", err_msg());
	return result;
}

static int try_undo(struct rig *g, unsigned number)
{
	enum fix_result result;
	unsigned undone;

	return fix_undo(&g->run, number, &result, &undone);
}

static int try_apply(struct rig *g, struct plan *p)
{
	enum fix_result result;
	unsigned number;

	return fix_apply(&g->run, p, &result, &number);
}

/* How many fixes there are; *ret_state: of the last. */
static size_t count_fixes(struct rig *g, enum fix_state *ret_state)
{
	struct journal_entry *entries;
	size_t n;

	if (journal_read(&g->host, &entries, &n) < 0)
		fail_msg("journal: %s", err_msg());
	if (n && ret_state)
		*ret_state = entries[n - 1].state;
	journal_free(entries, n);
	return n;
}

static void assert_last_state(struct rig *g, size_t n, enum fix_state state)
{
	enum fix_state last = FIX_STATE_N;

	assert_int_equal(count_fixes(g, &last), n);
	assert_string_equal(fix_state_word(last), fix_state_word(state));
}

/* ---- any plan ---- */

/* 1: it replaces what the boot loader reads, once in each direction. */
static size_t makes_grub(const struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].kind == STEP_GENERATED)
			return 1;
	return 0;
}

static void round_of_identity(struct rig *g)
{
	AUTO_PLAN struct plan *p = rig_random_plan(g);
	AUTO_FREE char *old = rig_tree(g), *new = NULL;
	enum fix_result result = apply(g, p);

	assert_true(result == FIX_DONE || result == FIX_NOTHING);
	assert_int_equal(rig_second_names(g, "boot/grub/grub.cfg"), makes_grub(p));
	new = rig_tree(g);
	if (!rig_only_programs(p)) {
		assert_int_equal(apply(g, p), FIX_NOTHING);
		assert_tree(g, new);
		assert_int_equal(count_fixes(g, NULL), result == FIX_DONE);
	}
	if (result != FIX_DONE)
		return;
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
	/* The two have changed places. */
	assert_int_equal(rig_second_names(g, "boot/grub/grub.cfg"), makes_grub(p));
	assert_int_equal(rig_second_names(g, "etc/a.conf"), 0);
	assert_int_equal(try_undo(g, 1), -EALREADY);
	assert_tree(g, old);
}

static int random_error(struct rig *g)
{
	static const int errors[] = {EIO, ENOSPC, EROFS, EDQUOT};

	return errors[rig_random(g, 4)];
}

static void round_of_failed_apply(struct rig *g)
{
	AUTO_PLAN struct plan *p = rig_random_plan(g);
	AUTO_FREE char *old = rig_tree(g);
	enum fix_result result = FIX_DONE;
	enum fix_state state = FIX_UNDONE;
	unsigned number;
	int r;

	rig_fail(g, rig_random(g, (unsigned)(30 + 14 * p->step_n)), random_error(g));
	r = fix_apply(&g->run, p, &result, &number);
	if (r == 0 && result == FIX_DONE && g->points <= g->fail_at) {
		rig_fail(g, -1, 0);
		assert_int_equal(undo(g, 0), FIX_DONE);
	} else if (r == 0 && result != FIX_NOTHING) {
		assert_int_equal(result, FIX_ROLLED_BACK);
	}
	assert_tree(g, old);
	rig_fail(g, -1, 0);
	count_fixes(g, &state);
	assert_string_equal(fix_state_word(state), "undone");
}

static void round_of_failed_undo(struct rig *g)
{
	AUTO_PLAN struct plan *p = rig_random_plan(g);
	AUTO_FREE char *old = rig_tree(g);
	int r;

	if (apply(g, p) == FIX_DONE) {
		rig_fail(g, rig_random(g, (unsigned)(20 + 10 * p->step_n)), random_error(g));
		try_undo(g, 0);
		rig_fail(g, -1, 0);
		rig_listen(g);
		r = try_undo(g, 1);
		assert_true(r == 0 || r == -EALREADY);
		assert_string_equal(g->events[FIX_UNDO_FAILED] ? strbuf_str(&g->texts) : "", "");
		assert_last_state(g, 1, FIX_UNDONE);
	}
	assert_tree(g, old);
}

static void end_clean(struct rig *g, const char *old)
{
	enum fix_state state = FIX_UNDONE;
	size_t n;
	int lock;

	rig_fail(g, -1, 0);
	rig_listen(g);
	count_fixes(g, &state); /* the journal can be read, whatever failed */
	assert_int_equal(journal_lock(&g->host, 0, &lock), 0);
	if (fix_recover(&g->run, &n) < 0)
		fail_msg("recover: %s", err_msg());
	journal_unlock(lock);
	if (count_fixes(g, &state) && state != FIX_UNDONE)
		assert_int_equal(undo(g, 0), FIX_DONE);
	assert_string_equal(g->events[FIX_UNDO_FAILED] ? strbuf_str(&g->texts) : "", "");
	assert_tree(g, old);
	if (count_fixes(g, &state))
		assert_string_equal(fix_state_word(state), "undone");
}

/* A disk that is full, or read-only, from some moment on: not even going back works. */
static void round_of_full_disk(struct rig *g)
{
	AUTO_PLAN struct plan *p = rig_random_plan(g);
	AUTO_FREE char *old = rig_tree(g), *torn = NULL;
	bool undoing = rig_random(g, 3) == 0;

	if (undoing && apply(g, p) != FIX_DONE)
		return;
	rig_fail_from(g, rig_random(g, (unsigned)(30 + (undoing ? 10 : 14) * p->step_n)),
		      random_error(g));
	if (undoing)
		try_undo(g, 0);
	else
		try_apply(g, p);
	torn = rig_torn(g, p);
	if (torn)
		fail_msg("%s", torn);
	end_clean(g, old);
}

static void test_any_plan(void **state)
{
	static void (*const rounds[])(struct rig *) = {round_of_identity, round_of_failed_apply,
						       round_of_failed_apply, round_of_failed_undo,
						       round_of_full_disk};
	unsigned n = rig_rounds("ONEHOP_FIX_ROUNDS", ROUNDS);
	struct rig *g = *state;

	for (unsigned i = 0; i < n; i++) {
		rounds[i % 5](g); /* ends with the tree that it began with */
		rig_forget(g);
	}
}

/* ---- lines between two marks ---- */

static void test_block_is_taken_out(void **state)
{
	static const char block[] = STEP_BLOCK_BEGIN ": a trial boot\nours\n" STEP_BLOCK_END;
	static const struct {
		const char *before, *after, *rest;
	} rows[] = {
		{"a\n", "\n", "a\n"},
		{"a\n", "\nb\n", "a\nb\n"},
		{"a\n", "\nb", "a\nb\n"},
		{"a\n", "", "a\n"},
		/* Added when the last line had no end. */
		{"a\n", "menuentry b {\n}\n", "a\nmenuentry b {\n}\n"},
		{"", "b", "b\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_FREE char *text = xprintf("%s%s%s", rows[i].before, block, rows[i].after);
		AUTO_STRBUF struct strbuf rest = {0};

		assert_true(step_block_remove(text, &rest));
		assert_string_equal(strbuf_str(&rest), rows[i].rest);
	}
}

/* ---- what an undo will come to ---- */

static int run_nothing(void *context, const char *const *argv, unsigned deadline_s,
		       struct strbuf *output, int *ret_status)
{
	(void)context;
	(void)argv;
	(void)deadline_s;
	(void)output;
	*ret_status = 0;
	return 0;
}

/* What somebody else does after the fix; one of the ways leaves all as it is. */
static void meddle(struct rig *g)
{
	AUTO_FREE char *grub = rig_get(g, "boot/grub/grub.cfg"), *entry = rig_get(g, RIG_ENTRY);
	AUTO_FREE char *more = xprintf("%sset by=hand\n", grub);

	switch (rig_random(g, 8)) {
	case 0:
		rig_put(g, "etc/a.conf", "mine\n");
		break;
	case 1:
		rig_put(g, "boot/grub/grub.cfg", more);
		break;
	case 2:
		rig_put(g, RIG_KNOB, "other");
		break;
	case 3:
		rig_put(g, "efi/loader/entries/mine.conf", entry);
		rig_remove(g, RIG_ENTRY);
		break;
	case 4:
		rig_put(g, "etc/default/gen.cfg", "other");
		break;
	case 5:
		rig_put(g, "proc/sys/kernel/random/boot_id", "another");
		break;
	case 6:
		rig_set_register(g, RIG_DEVICE, 0x7f);
		break;
	default:
		break;
	}
}

/*
 * What a program makes is known only if it makes it: the old bytes are put back, but for what it
 * made since.
 */
static bool is_made(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].kind == STEP_GENERATED && strcmp(p->steps[i].target, path) == 0)
			return true;
	return false;
}

/* The files are as was foreseen. */
static void assert_would(const struct rig *g, const struct plan *p, const struct source *would)
{
	AUTO_FREE struct source_entry *entries = NULL;
	struct source *files;
	size_t n;

	entries = source_entries(would, &n);
	assert_int_equal(source_open_root(g->root, NULL, NULL, &files), 0);
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *now = NULL;
		size_t size;

		if (entries[i].kind != SOURCE_FILE || is_made(p, entries[i].path) ||
		    text_starts_with(entries[i].path, JOURNAL_FOLDER))
			continue;
		assert_int_equal(source_read(files, &now, &size, "%s", entries[i].path),
				 -entries[i].error);
		if (!now)
			continue;
		assert_int_equal(size, entries[i].size);
		assert_memory_equal(now, entries[i].data, size);
	}
	source_free(files);
}

static void round_of_rehearsal(struct rig *g, size_t *stuck)
{
	struct source *would = source_new_map("would");
	AUTO_PLAN struct plan *p = rig_random_plan(g);
	AUTO_FREE char *before = NULL, *log = NULL, *after = NULL, *foreseen = NULL;
	const struct fix_run *run = &g->run;
	struct journal_entry *entries;
	enum fix_result result, after_result;
	size_t n, failing;

	if (apply(g, p) != FIX_DONE) {
		source_free(would);
		return;
	}
	meddle(g);
	before = rig_tree(g);
	log = rig_get(g, JOURNAL_FOLDER "/fixes/1/log.jsonl");
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	rig_listen(g);
	result = fix_rehearse_undo(run, &entries[0]);
	entries[0].state = FIX_APPLYING; /* as if it had been cut short */
	assert_int_equal(fix_rehearse_recover(run, entries, n, would), 1);
	failing = g->events[FIX_UNDO_FAILED];
	foreseen = xstrdup(strbuf_str(&g->texts));
	assert_tree(g, before);
	after = rig_get(g, JOURNAL_FOLDER "/fixes/1/log.jsonl");
	assert_string_equal(after, log);
	journal_free(entries, n);
	rig_listen(g);
	*stuck += failing;
	after_result = undo(g, 1);
	if (failing || g->events[FIX_UNDO_FAILED])
		assert_string_equal(strbuf_str(&g->texts), foreseen);
	assert_int_equal(after_result, result);
	assert_would(g, p, would);
	source_free(would);
}

/* It comes to what the undo then comes to, says the same, and changes nothing. */
static void test_rehearsal(void **state)
{
	struct rig *g = *state;
	size_t stuck = 0;

	for (unsigned i = 0; i < 300; i++) {
		g->run.rehearse = run_nothing;
		round_of_rehearsal(g, &stuck);
		rig_reset(g);
	}
	assert_true(stuck > 20);
}

/* Each point of a plan with all kinds, not only the random ones. */
static void test_each_point(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = rig_tree(g);
	long points = 1;

	for (long i = 0; i < points; i++) {
		AUTO_PLAN struct plan *p = NULL;
		enum fix_result result;
		unsigned number;
		int r;

		rig_reset(g);
		p = rig_rich_plan(g);
		rig_fail(g, i, ENOSPC);
		r = fix_apply(&g->run, p, &result, &number);
		assert_true(r == -ENOSPC || (r == 0 && result == FIX_ROLLED_BACK) ||
			    i >= g->points);
		if (r == 0 && result == FIX_DONE) {
			assert_true(i > 100); /* there are that many */
			return;
		}
		assert_tree(g, old);
		points = i + 2;
	}
	fail();
}

/* ---- one plan ---- */

static void test_rich_plan(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = rig_rich_plan(g);
	AUTO_FREE char *old = rig_tree(g);

	assert_int_equal(apply(g, p), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\nstill more\n");
	assert_get(g, "etc/b.conf", NULL);
	assert_get(g, "etc/new/deep/d.conf", "d\n");
	assert_get(g, "run/switch", "on");
	assert_get(g, RIG_KNOB, "1");
	assert_get(g, "boot/initrd", "generated\nlinux root=/dev/sda1 options x=2\nend\n");
	assert_get(g, "boot/grub/grub.cfg",
		   "generated\nlinux root=/dev/sda1 iommu=pt quiet\nend\n");
	assert_false(rig_exists(g, "boot/grub/grub.cfg.onehop-new"));
	/* Outside of the mask nothing changes. */
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0011);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

static void test_only_masked_bits(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011");
	rig_set_register(g, RIG_DEVICE, 0x005f); /* other bits are somebody else's */
	p->steps[0].mask = 0x000c;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0053);
	rig_set_register(g, RIG_DEVICE, 0x0013);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001f);
}

static void test_another_device(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *missing = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011")->identity = 0x15b31021;
	assert_int_equal(try_apply(g, p), -ENODEV);
	assert_said(RIG_DEVICE " is another device now: 10de:2201, not 15b3:1021");
	rig_acs(missing, "0000:99:00.0", "001d", "0011");
	assert_int_equal(try_apply(g, missing), -ENODEV);
	assert_said("0000:99:00.0 is not there any more");
	assert_int_equal(count_fixes(g, NULL), 0);
}

static void test_nothing_to_do(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *empty = plan_new();

	rig_put(g, "etc/a.conf", "new\n");
	rig_file(p, "etc/a.conf", "a\n", "new\n");
	rig_switch(p, "off", "on"); /* serves the file */
	assert_int_equal(apply(g, p), FIX_NOTHING);
	assert_get(g, "run/switch", "off");
	assert_int_equal(apply(g, empty), FIX_NOTHING);
	assert_int_equal(count_fixes(g, NULL), 0);
}

/* A program whose path is not there is not run, which is no failure; the journal has the paths. */
static void test_program_only_if(void **state)
{
	struct rig *g = *state;

	for (int there = 0; there < 2; there++) {
		AUTO_PLAN struct plan *p = plan_new();
		struct step *s;

		rig_file(p, "etc/a.conf", "a\n", "new\n");
		s = rig_switch(p, "off", "on");
		s->argv_if = "run/loaded";
		s->undo_if = "run/to-unload";
		if (there)
			rig_put(g, s->argv_if, "");
		assert_int_equal(apply(g, p), FIX_DONE);
		assert_get(g, "run/switch", there ? "on" : "off");
		rig_put(g, "run/switch", "by hand");
		if (there)
			rig_put(g, s->undo_if, "");
		assert_int_equal(undo(g, 0), FIX_DONE);
		assert_get(g, "run/switch", there ? "off" : "by hand");
		assert_get(g, "etc/a.conf", "a\n");
		rig_put(g, "run/switch", "off");
	}
}

/* What was so already is not the fix's, and stays. */
static void test_skipped_stays(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_put(g, "etc/a.conf", "new\n");
	rig_file(p, "etc/a.conf", "a\n", "new\n");
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", "new too\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(g->events[FIX_STEP_SKIPPED], 1);
	assert_int_equal(g->events[FIX_STEP_DONE], 1);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, "etc/a.conf", "new\n");
	assert_get(g, "etc/b.conf", "b 1\nb 2\n");
}

static void test_permissions_stay(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *path = xprintf("%s/etc/b.conf", g->root), *old = NULL;

	assert_int_equal(chmod(path, 0640), 0);
	old = rig_tree(g);
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", NULL);
	rig_file(p, "etc/b.conf", NULL, "again\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

static void test_contradicting_plan(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_file(p, "etc/a.conf", "a\n", "b\n");
	rig_file(p, "etc/a.conf", "c\n", "d\n");
	assert_int_equal(try_apply(g, p), -EINVAL);
	assert_said("contradicts itself");
	assert_get(g, "etc/a.conf", "a\n");
}

static void test_image(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *files = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	g->host.image = true;
	rig_file(p, "etc/a.conf", "a\n", "b\n");
	rig_switch(p, "off", "on");
	assert_int_equal(try_apply(g, p), -EINVAL);
	assert_tree(g, old);
	rig_file(files, "etc/a.conf", "a\n", "b\n");
	ARENA_PUSH(files->arena, files->wanted, files->wanted_n)
	[0] = (struct plan_wanted){"kernel-parameter", "iommu=pt"};
	assert_int_equal(apply(g, files), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force", "fix 1 - kernel-parameter iommu=pt\n");
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

/* ---- the disk of a system that does not run, with a fix that was made while it did ---- */

/* A reboot took back what is only in memory; from here on it is a mounted disk. */
static void become_image(struct rig *g)
{
	rig_set_register(g, RIG_DEVICE, 0x0004);
	rig_put(g, RIG_KNOB, "somebody else's");
	g->host.image = true;
	g->host.run = NULL;
	rig_listen(g);
}

static void become_system(struct rig *g, fix_runner *run)
{
	g->host.image = false;
	g->host.run = run;
	rig_listen(g);
}

#define RUNS_THERE "start that system, or chroot into it, and run onehop undo 1 there, which runs: "

/* What only a program undoes stays for an undo in the system itself. */
static void test_undo_in_image(void **state)
{
	struct rig *g = *state;
	fix_runner *run = g->host.run;
	AUTO_PLAN struct plan *p = rig_rich_plan(g);
	AUTO_FREE char *old = rig_tree(g);

	assert_int_equal(apply(g, p), FIX_DONE);
	become_image(g);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	assert_last_state(g, 1, FIX_UNDOING);
	assert_get(g, JOURNAL_FOLDER "/in-force",
		   "fix 1 11111111-2222-3333-4444-555555555555 unfinished undoing\n");
	assert_told(g, "register " RIG_DEVICE ": it lasts only until that system restarts\n");
	assert_told(g, "attribute " RIG_KNOB ": it lasts only until that system restarts\n");
	assert_told(g, "tool : " RUNS_THERE "switch off\n");
	assert_told(g, "tool : " RUNS_THERE "make-initrd\n");
	assert_int_equal(g->events[FIX_UNDO_FAILED], 2);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0004);
	assert_get(g, RIG_KNOB, "somebody else's");
	/* What the next boot brings, and the undo in it. */
	rig_set_register(g, RIG_DEVICE, 0x001d);
	rig_put(g, RIG_KNOB, "auto");
	become_system(g, run);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_last_state(g, 1, FIX_UNDONE);
	assert_tree(g, old);
}

static void test_made_anew_in_image(void **state)
{
	static const char anew[] = "generated\nby somebody iommu=pt\nend\n";
	struct rig *g = *state;
	fix_runner *run = g->host.run;
	AUTO_PLAN struct plan *p = plan_new();

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "boot/grub/grub.cfg", anew);
	become_image(g);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	assert_get(g, "etc/default/gen.cfg", "quiet");
	assert_get(g, "boot/grub/grub.cfg", anew);
	assert_told(g, "it was regenerated since: " RUNS_THERE "make-grub /boot/grub/grub.cfg\n");
	assert_int_equal(g->events[FIX_UNDO_SKIPPED], 1);
	assert_last_state(g, 1, FIX_UNDOING);
	become_system(g, run);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, "boot/grub/grub.cfg", "generated\nlinux root=/dev/sda1 quiet\nend\n");
	assert_last_state(g, 1, FIX_UNDONE);
}

/* A person made it again there, without the parameter: nothing of the fix remains. */
static void test_made_without_in_image(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_grub(g, p, "quiet", "iommu=pt");
	ARENA_PUSH(p->arena, p->wanted, p->wanted_n)
	[0] = (struct plan_wanted){"kernel-parameter", "iommu=pt"};
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "boot/grub/grub.cfg", "generated\nanother iommu=pt\nend\n");
	become_image(g);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	rig_put(g, "boot/grub/grub.cfg", "generated\nanother\nend\n");
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, "boot/grub/grub.cfg", "generated\nanother\nend\n");
	assert_last_state(g, 1, FIX_UNDONE);
}

static void test_boot_not_mounted_in_image(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *new = NULL;

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	new = rig_get(g, "boot/grub/grub.cfg");
	rig_remove(g, "boot/grub/grub.cfg");
	g->host.image = true;
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	assert_told(g, "/boot/grub/grub.cfg is not there: mount its file system below ");
	assert_get(g, "etc/default/gen.cfg", "quiet");
	assert_last_state(g, 1, FIX_UNDOING);
	rig_put(g, "boot/grub/grub.cfg", new);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, "boot/grub/grub.cfg", "generated\nlinux root=/dev/sda1 quiet\nend\n");
	assert_last_state(g, 1, FIX_UNDONE);
}

/* Of what has to be there for a program to be needed, an image shows only what is on the disk. */
static void test_condition_in_image(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_switch(p, "off", "on")->undo_if = "sys/module/gone";
	rig_switch(p, "on", "more")->undo_if = "etc/b.conf";
	assert_int_equal(apply(g, p), FIX_DONE);
	become_image(g);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	assert_told(g, "tool : " RUNS_THERE "switch on\n");
	assert_null(strstr(strbuf_str(&g->texts), "switch off"));
	assert_int_equal(g->events[FIX_UNDO_SKIPPED], 1);
}

#define UNIT_FILE "etc/systemd/system/x.service"
#define UNIT_LINK "etc/systemd/system/multi-user.target.wants/x.service"

static void make_link(const struct rig *g, const char *target, const char *path)
{
	AUTO_FREE char *at = xprintf("%s/%s", g->root, path);

	rig_put(g, "etc/systemd/system/multi-user.target.wants/other.service", "");
	unlink(at);
	assert_int_equal(symlink(target, at), 0);
}

/*
 * What `systemctl enable` made goes without systemctl; a link of that name to another file stays.
 */
static void test_unit_in_image(void **state)
{
	static const struct {
		const char *target;
		bool goes;
	} rows[] = {{"/" UNIT_FILE, true}, {"../x.service", true}, {"/opt/y.service", false}};
	struct rig *g = *state;
	fix_runner *run = g->host.run;

	for (unsigned by_program = 0; by_program < 2; by_program++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			AUTO_PLAN struct plan *p = plan_new();
			struct step *s = rig_file(p, UNIT_FILE, NULL, "[Unit]\n");
			const bool left = by_program && !rows[i].goes;

			if (by_program)
				s = rig_switch(p, "off", "on");
			s->link = UNIT_LINK;
			rig_reset(g);
			assert_int_equal(apply(g, p), FIX_DONE);
			make_link(g, rows[i].target, UNIT_LINK);
			become_image(g);
			assert_int_equal(undo(g, 0), left ? FIX_NOT_ROLLED_BACK : FIX_DONE);
			assert_false(rig_exists(g, UNIT_FILE));
			assert_int_equal(rig_exists(g, UNIT_LINK), !rows[i].goes);
			if (left)
				assert_told(g, RUNS_THERE "switch off\n");
			assert_last_state(g, 1, left ? FIX_UNDOING : FIX_UNDONE);
			g->host.image = false;
			g->host.run = run;
		}
}

/* What is to be run in the system itself is run with a file that only goes after that. */
static void test_needed_in_image(void **state)
{
	struct rig *g = *state;
	fix_runner *run = g->host.run;
	AUTO_PLAN struct plan *p = plan_new(), *alone = plan_new();

	rig_file(p, "etc/a.conf", "a\n", "new\n")->needed_by_undo = true;
	rig_switch(p, "off", "on");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_file(alone, "etc/new/c.conf", NULL, "1\n")->needed_by_undo = true;
	assert_int_equal(apply(g, alone), FIX_DONE);
	become_image(g);
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_false(rig_exists(g, "etc/new/c.conf"));
	assert_int_equal(undo(g, 1), FIX_NOT_ROLLED_BACK);
	assert_get(g, "etc/a.conf", "new\n");
	assert_told(g, "file etc/a.conf: it stays until the rest is undone\n");
	become_system(g, run);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
	assert_last_state(g, 2, FIX_UNDONE);
}

/* In another boot a register is not the fix's, even if it reads as the fix had it. */
static void test_look_back(void **state)
{
	static const enum step_state expected[2][3] = {{STEP_IS_NEW, STEP_IS_NEW, STEP_IS_NEW},
						       {STEP_IS_OTHER, STEP_IS_NEW, STEP_IS_NEW}};
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	struct journal_entry *entries;
	size_t n;

	rig_acs(p, RIG_DEVICE, "001d", "0011");
	rig_acs(p, RIG_OTHER, "001d", "0011")->again_at_boot = true;
	rig_file(p, "etc/a.conf", "a\n", "b\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	for (size_t boot = 0; boot < 2; boot++) {
		enum step_state states[3];
		char *now[3] = {NULL};

		assert_int_equal(journal_read(&g->host, &entries, &n), 0);
		fix_read_back(&g->host, &entries[0], states, now);
		for (size_t i = 0; i < 3; i++) {
			assert_int_equal(states[i], expected[boot][i]);
			free(now[i]);
		}
		journal_free(entries, n);
		rig_put(g, "proc/sys/kernel/random/boot_id", "another\n");
	}
}

/* ---- what somebody else changed ---- */

static void test_drift_on_apply(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = NULL;

	rig_put(g, "etc/b.conf", "b 1\nmine\n");
	old = rig_tree(g);
	rig_file(p, "etc/a.conf", "a\n", "new\n");
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", "new\n");
	assert_int_equal(apply(g, p), FIX_DRIFT);
	assert_tree(g, old);
	assert_told(g, "file etc/b.conf: /etc/b.conf line 2 is \"mine\", expected \"b 2\"");
	assert_int_equal(count_fixes(g, NULL), 0);
}

static void test_drift_of_other_kinds(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *acs = plan_new(), *knob = plan_new(), *grub = plan_new();
	AUTO_PLAN struct plan *appeared = plan_new();

	rig_acs(acs, RIG_DEVICE, "001d", "0011");
	rig_set_register(g, RIG_DEVICE, 0x0004);
	assert_int_equal(apply(g, acs), FIX_DRIFT);
	assert_told(g, RIG_DEVICE " ACS+6 is 0004, expected 001d");
	rig_attribute(knob, "0", "1");
	assert_int_equal(apply(g, knob), FIX_DRIFT);
	assert_told(g, "/sys/kernel/knob is auto, expected 0");
	rig_grub(g, grub, "quiet", "iommu=pt");
	rig_put(g, "boot/grub/grub.cfg", "mine\n");
	assert_int_equal(apply(g, grub), FIX_DRIFT);
	assert_told(g, "/boot/grub/grub.cfg line 1 is \"mine\"");
	rig_file(appeared, "etc/a.conf", NULL, "new\n");
	assert_int_equal(apply(g, appeared), FIX_DRIFT);
	assert_told(g, "/etc/a.conf is there, and was not expected");
	assert_int_equal(count_fixes(g, NULL), 0);
}

static void test_drift_on_undo(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_file(p, "etc/a.conf", "a\n", "new\n");
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", "new\n");
	rig_acs(p, RIG_DEVICE, "001d", "0011");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "etc/b.conf", "mine\n");
	rig_listen(g);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	assert_told(g, "/etc/b.conf line 1 is \"mine\", expected \"new\": it was changed since");
	assert_int_equal(g->events[FIX_UNDO_FAILED], 1);
	assert_int_equal(g->events[FIX_UNDO_DONE], 2);
	assert_get(g, "etc/b.conf", "mine\n");
	assert_get(g, "etc/a.conf", "a\n");
	assert_last_state(g, 1, FIX_UNDOING);
	/* Another try, when the person has put back what was there. */
	rig_put(g, "etc/b.conf", "b 1\nb 2\n");
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_tree(g, old);
	assert_last_state(g, 1, FIX_UNDONE);
}

/* A fix that cannot be undone does not keep another from being made, and is not tried each time. */
static void test_stuck_is_left_alone(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *other = plan_new();

	rig_file(p, "etc/b.conf", "b 1\nb 2\n", "new\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "etc/b.conf", "mine\n");
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	rig_listen(g);
	rig_file(other, "etc/a.conf", "a\n", "new\n");
	assert_int_equal(apply(g, other), FIX_DONE);
	assert_int_equal(g->events[FIX_RECOVER], 0);
	assert_get(g, "etc/b.conf", "mine\n");
}

static void test_undo_goes_on(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = rig_tree(g);

	/* Each point of undoing fails once. */
	for (long i = 0;; i++) {
		AUTO_PLAN struct plan *p = NULL;
		int r;

		rig_reset(g);
		p = rig_rich_plan(g);
		assert_int_equal(apply(g, p), FIX_DONE);
		rig_fail(g, i, EIO);
		r = try_undo(g, 1);
		if (g->points <= i)
			break;
		rig_fail(g, -1, 0);
		/* Two: of etc/a.conf, which two steps changed. */
		assert_true(g->events[FIX_UNDO_FAILED] <= 2);
		if (g->events[FIX_UNDO_FAILED])
			assert_true(g->events[FIX_UNDO_DONE] > 5);
		if (r < 0 || g->events[FIX_UNDO_FAILED])
			assert_int_equal(undo(g, 1), FIX_DONE);
		assert_tree(g, old);
	}
}

/* What others are undone with stays while one of them is not, however often it is tried. */
static void test_needed_by_undo(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_file(p, "etc/a.conf", "a\n", "new\n")->needed_by_undo = true;
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", "new\n");
	rig_switch(p, "off", "on")->needed_by_undo = true;
	rig_file(p, "etc/new/c.conf", NULL, "1\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "etc/new/c.conf", "mine\n");
	for (size_t i = 0; i < 2; i++) {
		rig_listen(g);
		assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
		assert_told(g, "file etc/a.conf: it stays until the rest is undone\n");
		assert_int_equal(g->events[FIX_UNDO_FAILED], 3);
		assert_get(g, "etc/a.conf", "new\n");
		assert_get(g, "etc/b.conf", "b 1\nb 2\n");
		assert_get(g, "run/switch", "on");
		assert_last_state(g, 1, FIX_UNDOING);
	}
	rig_put(g, "etc/new/c.conf", "1\n");
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

/* ---- two fixes ---- */

static void test_order_of_undoing(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = plan_new(), *second = plan_new(), *third = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_file(first, "etc/new/c.conf", NULL, "1\n");
	rig_acs(first, RIG_DEVICE, "001d", "0019");
	rig_file(second, "etc/new/c.conf", "1\n", "1\n2\n");
	rig_acs(third, RIG_DEVICE, "0019", "0011");
	assert_int_equal(apply(g, first), FIX_DONE);
	assert_int_equal(apply(g, second), FIX_DONE);
	assert_int_equal(apply(g, third), FIX_DONE);
	assert_int_equal(try_undo(g, 1), -EBUSY);
	assert_said("fix 3 changed " RIG_DEVICE " ACS+6 after it: undo 3 first");
	assert_int_equal(undo(g, 3), FIX_DONE);
	assert_int_equal(try_undo(g, 1), -EBUSY);
	assert_said("fix 2 changed /etc/new/c.conf after it: undo 2 first");
	assert_get(g, "etc/new/c.conf", "1\n2\n");
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, "etc/new/c.conf", "1\n");
	assert_int_equal(try_undo(g, 2), -EALREADY);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
	assert_int_equal(try_undo(g, 0), -ENOENT);
	assert_int_equal(try_undo(g, 7), -ENOENT);
	assert_said("no fix 7");
}

/* What a later fix found as it wanted it, since an earlier one had made it so. */
static void test_builds_on(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = plan_new(), *second = plan_new(), *other = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_file(first, "etc/a.conf", "a\n", "new\n");
	rig_file(other, "etc/new/c.conf", NULL, "1\n");
	rig_file(second, "etc/b.conf", "b 1\nb 2\n", "new\n");
	*ARENA_PUSH(second->arena, second->builds_on, second->builds_on_n) = "etc/none.conf";
	*ARENA_PUSH(second->arena, second->builds_on, second->builds_on_n) = "etc/a.conf";
	assert_int_equal(apply(g, first), FIX_DONE);
	assert_int_equal(apply(g, other), FIX_DONE);
	assert_int_equal(apply(g, second), FIX_DONE);
	assert_int_equal(try_undo(g, 1), -EBUSY);
	assert_said("fix 3 builds on /etc/a.conf, which fix 1 made: undo 3 first");
	assert_get(g, "etc/a.conf", "new\n");
	assert_int_equal(undo(g, 2), FIX_DONE); /* it has nothing to do with that */
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

/* Files of its own: the older one is undone first, and what is generated from both follows. */
static void test_generated_by_both(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = plan_new(), *second = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_grub(g, first, "quiet", "iommu=pt");
	assert_int_equal(apply(g, first), FIX_DONE);
	rig_grub(g, second, "iommu=pt", "iommu=pt pci=x");
	second->steps[1].target = "etc/b.conf"; /* its drop-in; what is made does not change */
	second->steps[1].old = (struct bytes){"b 1\nb 2\n", 8};
	assert_int_equal(apply(g, second), FIX_DONE);
	rig_put(g, "boot/grub/grub.cfg", "generated\nby somebody iommu=pt\nend\n");
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "boot/grub/grub.cfg", "generated\nlinux root=/dev/sda1 quiet\nend\n");
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_tree(g, old);
}

/* ---- generated files ---- */

static void test_generated_without_effect(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_grub(g, p, "quiet", "iommu=pt");
	p->steps[2].expect = "iommu";
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "/boot/grub/grub.cfg would not have iommu");
	assert_tree(g, old);
	p->steps[2].expect = NULL;
	p->steps[2].expect_not = "iommu=pt";
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "/boot/grub/grub.cfg would still have iommu=pt");
	assert_tree(g, old);
}

#define SECTION(name, words)                                                                       \
	"\n### BEGIN /etc/grub.d/" name " ###\nlinux /vmlinuz " words                              \
	"\n### END /etc/grub.d/" name " ###\n"

/*
 * A person's entry, or one of another system, neither has the words for ours nor keeps ours from
 * having them.
 */
static void test_entries_of_others(void **state)
{
	static const struct {
		const char *config;
		enum fix_result result;
	} rows[] = {
		{SECTION("10_linux", "quiet") SECTION("40_custom", "iommu=pt"), FIX_ROLLED_BACK},
		{SECTION("10_linux", "quiet") SECTION("30_os-prober", "iommu=pt"), FIX_ROLLED_BACK},
		{SECTION("10_linux", "iommu=pt") SECTION("40_custom", "quiet"), FIX_DONE},
		{SECTION("10_linux", "") SECTION("20_linux_xen", "iommu=pt"), FIX_DONE},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_PLAN struct plan *p = plan_new();

		rig_reset(g);
		rig_grub(g, p, "quiet", rows[i].config);
		p->steps[2].expect = "iommu=pt";
		assert_int_equal(apply(g, p), rows[i].result);
	}
}

/*
 * A log that ends early, at the end of a line: what its steps did is unknown, so nothing is called
 * undone.
 */
static void test_log_lost_lines(void **state)
{
	static const char log[] = JOURNAL_FOLDER "/fixes/1/log.jsonl";
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *text = NULL, *new = NULL;
	enum fix_result result;
	unsigned number;

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	text = rig_get(g, log);
	new = rig_get(g, "boot/grub/grub.cfg");
	strchr(text, '\n')[1] = '\0';
	rig_put(g, log, text);
	assert_int_equal(fix_undo(&g->run, 1, &result, &number), -EPROTO);
	assert_non_null(strstr(err_msg(), "log.jsonl has lost lines"));
	assert_get(g, "boot/grub/grub.cfg", new);
	assert_get(g, log, text);
}

/* Without any program, as from a rescue shell. */
static void test_generated_put_back(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	for (size_t i = 0; i < p->step_n; i++)
		assert_true(p->steps[i].kind == STEP_FILE || p->steps[i].kind == STEP_GENERATED);
	g->host.run = NULL;
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

static void want(struct plan *p, const char *kind, const char *value)
{
	*ARENA_PUSH(p->arena, p->wanted, p->wanted_n) = (struct plan_wanted){kind, value};
}

#define EDITED   "iommu=pt\nmine"
#define OLD_GRUB "generated\nlinux root=/dev/sda1 quiet\nend\n"

/* The file it is made from was edited, and stays: what is put back lasts until it is made anew. */
static void test_generated_from_edited(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "etc/default/gen.cfg", EDITED);
	rig_listen(g);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	assert_told(g, "left as it is; it still has \"iommu=pt\"\n");
	assert_told(g, "/boot/grub/grub.cfg is restored, but only until it is regenerated");
	assert_told(g, "Restore the old content of that file, then: onehop undo 1");
	assert_int_equal(g->events[FIX_UNDO_FAILED], 2);
	assert_get(g, "boot/grub/grub.cfg", OLD_GRUB);
	assert_get(g, "etc/default/gen.cfg", EDITED);
	/* As it says. */
	rig_put(g, "etc/default/gen.cfg", "quiet");
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_tree(g, old);
	assert_last_state(g, 1, FIX_UNDONE);
}

/* Whoever looks at a disk below another root has to edit, and to undo, there. */
static void test_generated_from_edited_in_image(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *file = NULL, *command = NULL;

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "etc/default/gen.cfg", EDITED);
	become_image(g);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	file = xprintf("which reads %s/etc/default/gen.cfg", g->root);
	command = xprintf("then: onehop undo 1 --root %s\n", g->root);
	assert_told(g, file);
	assert_told(g, command);
}

/* And if it was made anew before that, it is made from what is there then. */
static void test_generated_from_edited_anew(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "etc/default/gen.cfg", EDITED);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	rig_put(g, "boot/grub/grub.cfg", "generated\nby a kernel update iommu=pt\nend\n");
	rig_put(g, "etc/default/gen.cfg", "quiet");
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_tree(g, old);
}

/* A person's lines in what a program makes: it is made again without them, and they are kept. */
static void test_generated_was_edited(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g), *now = NULL, *edited = NULL;

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	now = rig_get(g, "boot/grub/grub.cfg");
	edited = xprintf("%smenuentry mine\n", now);
	rig_put(g, "boot/grub/grub.cfg", edited);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
	assert_get(g, JOURNAL_FOLDER "/fixes/1/found-0", edited);
	assert_told(g, "is kept as /" JOURNAL_FOLDER "/fixes/1/found-0");
}

/* Each try keeps what it finds: the second one of them finds what the first has made. */
static void test_generated_was_edited_and_undone_twice(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *now = NULL, *edited = NULL;

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	now = rig_get(g, "boot/grub/grub.cfg");
	edited = xprintf("%s# mine\nmenuentry mine\n", now);
	rig_put(g, "boot/grub/grub.cfg", edited);
	rig_put(g, "etc/default/gen.cfg", EDITED);
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	rig_put(g, "etc/default/gen.cfg", "iommu=pt");
	rig_put(g, "boot/grub/grub.cfg", "generated\nmenuentry other\nend\n");
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/fixes/1/found-0", edited);
	assert_get(g, JOURNAL_FOLDER "/fixes/1/found-0.2", "generated\nmenuentry other\nend\n");
	assert_told(g, "is kept as /" JOURNAL_FOLDER "/fixes/1/found-0.2");
}

/*
 * Nobody's lines are lost when a program has made it with the fix's parameters, as a kernel update
 * does.
 */
static void test_generated_since(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);
	struct journal_entry *entries;
	size_t n;

	want(p, "kernel-parameter", "iommu=pt");
	rig_grub(g, p, "quiet", "iommu=pt quiet");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "boot/grub/grub.cfg", "generated\nlinux root=/dev/sda1 quiet iommu=pt\n\nend\n");
	rig_put(g, "etc/default/gen.cfg", "quiet"); /* by an earlier try */
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(fix_foresee_undo(&g->run, &entries[0]), 0);
	assert_false(plan_drops_lines(entries[0].plan));
	journal_free(entries, n);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_null(strstr(strbuf_str(&g->texts), "is kept as"));
	assert_false(rig_exists(g, JOURNAL_FOLDER "/fixes/1/found-0"));
	assert_tree(g, old);
}

/* Whatever they wrote, also behind a zero byte. */
static void test_generated_has_zero_byte(void **state)
{
	static const char lines[] = "a\0b\nmenuentry mine\n";
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g), *found = NULL;
	struct journal_entry *entries;
	size_t n, size;

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(host_replace(&g->host, "boot/grub/grub.cfg", lines, sizeof(lines) - 1,
				      0600),
			 0);
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(fix_foresee_undo(&g->run, &entries[0]), 0);
	assert_string_equal(entries[0].plan->steps[0].dropped[0], "a?b");
	assert_string_equal(entries[0].plan->steps[0].dropped[1], "menuentry mine");
	journal_free(entries, n);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
	assert_int_equal(host_read(&g->host, JOURNAL_FOLDER "/fixes/1/found-0", &found, &size), 0);
	assert_int_equal(size, sizeof(lines) - 1);
	assert_memory_equal(found, lines, size);
}

static void test_program_fails(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);
	const char *argv[] = {"no-such-program", NULL};

	rig_initrd(p, "options x=1", "options x=2");
	p->steps[2].argv = argv;
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "no-such-program: no such program");
	assert_tree(g, old);
}

/* ---- other boots ---- */

static void test_second_names(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *other = plan_new();

	rig_grub(g, p, "quiet", "iommu=pt");
	rig_file(other, "etc/a.conf", "a\n", "b\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_true(rig_exists(g, "boot/grub/grub.cfg" HOST_OLD));
	assert_int_equal(apply(g, other), FIX_DONE);
	assert_true(rig_exists(g, "boot/grub/grub.cfg" HOST_OLD));
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_false(rig_exists(g, "boot/grub/grub.cfg" HOST_OLD));
	assert_int_equal(undo(g, 1), FIX_DONE);
	/* This boot replaced it once more. */
	assert_true(rig_exists(g, "boot/grub/grub.cfg" HOST_OLD));
	assert_int_equal(apply(g, other), FIX_DONE);
	assert_true(rig_exists(g, "boot/grub/grub.cfg" HOST_OLD));
}

static int read_only_boot(void *context, enum fix_point point, const char *path)
{
	const char *root = context;
	bool in_boot = strncmp(path, root, strlen(root)) == 0 &&
		       strncmp(path + strlen(root), "/boot/", 6) == 0;

	return in_boot && point != POINT_RUN ? -EROFS : 0;
}

/* Second names are no reason not to undo something else, nor to leave registers as they are. */
static void test_read_only_boot(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *other = plan_new();
	size_t n;

	rig_grub(g, p, "quiet", "iommu=pt");
	rig_file(other, "etc/a.conf", "a\n", "b\n");
	rig_acs(other, RIG_DEVICE, "001d", "0011")->again_at_boot = true;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(apply(g, other), FIX_DONE);
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	rig_set_register(g, RIG_DEVICE, 0x001d);
	g->host.before = read_only_boot;
	g->host.before_context = g->root;
	assert_int_equal(fix_at_boot(&g->run, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0011);
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
	assert_true(rig_exists(g, "boot/grub/grub.cfg" HOST_OLD));
}

/* In another boot, what reads as the fix left it is so for another reason. */
static void test_reboot_took_it_back(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011");
	rig_acs(p, RIG_OTHER, "001d", "0011")->again_at_boot = true;
	rig_switch(p, "off", "on")->passing = true;
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	rig_put(g, "run/switch", "by somebody");
	rig_listen(g);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(g->events[FIX_UNDO_SKIPPED], 2);
	assert_int_equal(g->events[FIX_UNDO_DONE], 1);
	assert_told(g, "tool : it lasted until the reboot");
	/* The register is read: it has the fix's value, which is somebody's own now. */
	assert_told(g,
		    "register " RIG_DEVICE
		    ": what the fix set lasted until the reboot; the present value was set since, "
		    "and stays");
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0011);
	assert_int_equal(rig_register(g, RIG_OTHER), 0x001d);
	assert_get(g, "run/switch", "by somebody");
}

/* In another boot with the old value it is what the reboot left. */
static void test_reboot_left_the_old_value(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	rig_set_register(g, RIG_DEVICE, 0x001d);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_told(g, "register " RIG_DEVICE ": the reboot took it back");
}

/* Of what stays over a reboot, or says itself when it is needed, undoing runs the program. */
static void test_programs_after_reboot(void **state)
{
	struct rig *g = *state;

	for (int passing = 0; passing < 2; passing++) {
		AUTO_PLAN struct plan *p = plan_new();
		struct step *s = rig_switch(p, "off", "on");

		rig_reset(g);
		s->passing = passing;
		s->undo_if = passing ? "etc/a.conf" : NULL;
		assert_int_equal(apply(g, p), FIX_DONE);
		rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
		assert_int_equal(undo(g, 0), FIX_DONE);
		assert_get(g, "run/switch", "off");
	}
}

static void test_registers_after_reboot(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	size_t n;

	rig_acs(p, RIG_DEVICE, "001d", "0011")->again_at_boot = true;
	rig_acs(p, RIG_OTHER, "001d", "0011");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	rig_set_register(g, RIG_DEVICE, 0x001d);
	rig_set_register(g, RIG_OTHER, 0x0004); /* neither of the two */
	assert_int_equal(fix_at_boot(&g->run, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x0011);
	assert_int_equal(rig_register(g, RIG_OTHER), 0x0004);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
	assert_int_equal(rig_register(g, RIG_OTHER), 0x0004);
	assert_told(g, "register " RIG_OTHER
		       ": what the fix set lasted until the reboot; the present");
	assert_int_equal(fix_at_boot(&g->run, &n), 0);
	assert_int_equal(n, 0);
}

static void test_device_gone(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	size_t n;

	rig_acs(p, RIG_DEVICE, "001d", "0011")->again_at_boot = true;
	rig_file(p, "etc/a.conf", "a\n", "b\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_remove(g, "sys/bus/pci/devices/" RIG_DEVICE "/config");
	assert_int_equal(fix_at_boot(&g->run, &n), -ENODEV);
	assert_said(RIG_DEVICE " is not there any more");
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_told(g, "register " RIG_DEVICE ": " RIG_DEVICE " is not there any more");
	assert_get(g, "etc/a.conf", "a\n");
}

static void test_in_force(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = plan_new(), *second = plan_new();

	rig_acs(first, RIG_DEVICE, "001d", "0011");
	rig_file(second, "etc/a.conf", "a\n", "b\n");
	ARENA_PUSH(second->arena, second->wanted, second->wanted_n)
	[0] = (struct plan_wanted){"kernel-parameter", "iommu=pt"};
	assert_int_equal(apply(g, first), FIX_DONE);
	assert_int_equal(apply(g, second), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force",
		   "fix 1 11111111-2222-3333-4444-555555555555 acs-now " RIG_DEVICE " 0011\n"
		   "fix 2 11111111-2222-3333-4444-555555555555 kernel-parameter iommu=pt\n");
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force",
		   "fix 2 11111111-2222-3333-4444-555555555555 kernel-parameter iommu=pt\n");
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force", "");
}

/* What a later fix sets otherwise is not the earlier one's any more; a port is named once. */
/* What is undone in another boot than its own is still there until the next one. */
static void test_undone_until_reboot(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_file(p, "etc/a.conf", "a\n", "b\n")->reboot = true;
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force",
		   "fix 1 22222222-2222-3333-4444-555555555555 undone reboot\n");
	rig_put(g, "proc/sys/kernel/random/boot_id", "33333333-2222-3333-4444-555555555555\n");
	assert_int_equal(journal_write_in_force(&g->host), 0);
	assert_get(g, JOURNAL_FOLDER "/in-force", "");
}

static void test_in_force_overruled(void **state)
{
#define THIS "11111111-2222-3333-4444-555555555555 "
	static const char whole[] = "fix 1 " THIS "kernel-parameter \"pci=disable_acs_redir=a\"\n"
				    "fix 1 " THIS "kernel-parameter intel_iommu=off\n"
				    "fix 1 " THIS "module-option nvidia NVreg_A=1\n"
				    "fix 1 " THIS "module-option nvidia NVreg_B=1\n"
				    "fix 1 " THIS "module-blacklist nouveau\n"
				    "fix 1 " THIS "acs " RIG_DEVICE " 0011\n";
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = plan_new(), *second = plan_new();

	rig_acs(first, RIG_DEVICE, "001d", "0011");
	want(first, "kernel-parameter", "\"pci=disable_acs_redir=a\"");
	want(first, "kernel-parameter", "intel_iommu=off");
	want(first, "module-option", "nvidia NVreg_A=1");
	want(first, "module-option", "nvidia NVreg_B=1");
	want(first, "module-blacklist", "nouveau");
	want(first, "acs", RIG_DEVICE " 0011");
	assert_int_equal(apply(g, first), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force", whole);
	rig_acs(second, RIG_DEVICE, "0011", "0001")->mask = 0x0010;
	rig_acs(second, RIG_OTHER, "001d", "0011")->again_at_boot = true;
	want(second, "kernel-parameter", "pci=disable_acs_redir=b");
	want(second, "kernel-parameter", "iommu=pt");
	want(second, "kernel-parameter", "intel_iommu=on");
	want(second, "module-option", "nvidia NVreg_B=2");
	want(second, "module-blacklist", "nova");
	assert_int_equal(apply(g, second), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force",
		   "fix 1 " THIS "module-option nvidia NVreg_A=1\n"
		   "fix 1 " THIS "module-blacklist nouveau\n"
		   "fix 1 " THIS "acs " RIG_DEVICE " 0011\n" /* fix 2 has it only now */
		   "fix 2 " THIS "kernel-parameter pci=disable_acs_redir=b\n"
		   "fix 2 " THIS "kernel-parameter iommu=pt\n"
		   "fix 2 " THIS "kernel-parameter intel_iommu=on\n"
		   "fix 2 " THIS "module-option nvidia NVreg_B=2\n"
		   "fix 2 " THIS "module-blacklist nova\n"
		   "fix 2 " THIS "acs-now " RIG_DEVICE " 0001\n"
		   "fix 2 " THIS "acs " RIG_OTHER " 0011\n");
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force", whole);
#undef THIS
}

/* ---- a device that is a virtual machine's, below the same switch ---- */

static void put_link(const struct rig *g, const char *path, const char *target)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path);

	assert_int_equal(symlink(target, whole), 0);
}

/* The two ports below one upstream port, a GPU below the second, another one elsewhere. */
static void link_devices(struct rig *g, const char *driver, const char *other_driver)
{
	static const char *const ports[] = {RIG_DEVICE, RIG_OTHER};

	for (size_t i = 0; i < 2; i++) {
		AUTO_FREE char *to =
			xprintf("../../../devices/pci0000:20/0000:20:01.0/0000:21:00.0/%s",
				ports[i]);
		AUTO_FREE char *from = xprintf("%s/sys/bus/pci/devices/%s", g->root, ports[i]);
		AUTO_FREE char *folder = xprintf("%s/sys/bus/pci/devices/%s", g->root, to);

		rig_put(g, "sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/vendor", "");
		assert_int_equal(rename(from, folder), 0);
		assert_int_equal(symlink(to, from), 0);
	}
	rig_put(g,
		"sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/" RIG_OTHER
		"/0000:25:00.0/vendor",
		"");
	rig_put(g, "sys/devices/pci0000:20/0000:20:02.0/0000:26:00.0/vendor", "");
	put_link(g, "sys/bus/pci/devices/0000:25:00.0",
		 "../../../devices/pci0000:20/0000:20:01.0/0000:21:00.0/" RIG_OTHER
		 "/0000:25:00.0");
	put_link(g, "sys/bus/pci/devices/0000:26:00.0",
		 "../../../devices/pci0000:20/0000:20:02.0/0000:26:00.0");
	put_link(g, "sys/bus/pci/devices/0000:25:00.0/driver", driver);
	put_link(g, "sys/bus/pci/devices/0000:26:00.0/driver", other_driver);
}

static void set_driver(struct rig *g, const char *driver)
{
	rig_remove(g, "sys/bus/pci/devices/0000:25:00.0/driver");
	put_link(g, "sys/bus/pci/devices/0000:25:00.0/driver", driver);
}

static void test_guest_below_switch(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	size_t n;

	rig_file(p, "etc/a.conf", "a\n", "b\n");
	rig_acs(p, RIG_DEVICE, "001d", "0011")->again_at_boot = true;
	link_devices(g, "../../../bus/pci/drivers/nvgrace_gpu_vfio_pci", "x/vfio-pci");
	assert_int_equal(try_apply(g, p), -EBUSY);
	assert_said(RIG_DEVICE
		    ": ACS+6 stays as it is: 0000:25:00.0 below the same switch is bound to "
		    "nvgrace_gpu_vfio_pci");
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
	assert_get(g, "etc/a.conf", "a\n");
	assert_int_equal(count_fixes(g, NULL), 0);
	set_driver(g, "../../../bus/pci/drivers/nvidia"); /* the one elsewhere is no reason */
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_set_register(g, RIG_DEVICE, 0x001d);
	set_driver(g, "../../../bus/pci/drivers/pciback");
	assert_int_equal(fix_at_boot(&g->run, &n), -EBUSY);
	assert_said("is bound to pciback");
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
	/* Bits that are set keep devices apart: that is never refused. */
	rig_set_register(g, RIG_DEVICE, 0x0011);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
}

/* A root port has no upstream port: what counts is what is below itself. */
static void test_guest_below_root_port(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *from = xprintf("%s/sys/bus/pci/devices/" RIG_DEVICE, g->root);
	AUTO_FREE char *to = xprintf("%s/sys/devices/pci0000:20/" RIG_DEVICE, g->root);

	rig_put(g, "sys/devices/pci0000:20/0000:20:02.0/0000:26:00.0/vendor", "");
	assert_int_equal(rename(from, to), 0);
	put_link(g, "sys/bus/pci/devices/" RIG_DEVICE, "../../../devices/pci0000:20/" RIG_DEVICE);
	put_link(g, "sys/bus/pci/devices/0000:26:00.0",
		 "../../../devices/pci0000:20/0000:20:02.0/0000:26:00.0");
	put_link(g, "sys/bus/pci/devices/0000:26:00.0/driver", "x/vfio-pci");
	rig_acs(p, RIG_DEVICE, "001d", "0011");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(undo(g, 0), FIX_DONE);
	rig_put(g, "sys/devices/pci0000:20/" RIG_DEVICE "/0000:27:00.0/vendor", "");
	put_link(g, "sys/bus/pci/devices/0000:27:00.0",
		 "../../../devices/pci0000:20/" RIG_DEVICE "/0000:27:00.0");
	put_link(g, "sys/bus/pci/devices/0000:27:00.0/driver", "x/vfio-pci");
	assert_int_equal(try_apply(g, p), -EBUSY);
}

/* ---- registers and BARs that do not take what is written ---- */

/* A test's hook sees what is about to be written: it makes the machine answer otherwise. */
struct answer {
	struct rig *g;
	int (*before)(void *context, enum fix_point point, const char *path);
	const char *path, *text; /* this file becomes that */
	int r;
};

static int answer(void *context, enum fix_point point, const char *path)
{
	struct answer *a = context;

	(void)path;
	if (point != POINT_REGISTER)
		return 0;
	if (a->path)
		rig_put(a->g, a->path, a->text);
	return a->r;
}

static void test_lockdown(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	struct answer a = {.g = g, .r = -EPERM};

	rig_acs(p, RIG_DEVICE, "001d", "0011");
	rig_put(g, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	g->host.before = answer;
	g->host.before_context = &a;
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "the kernel is locked down (integrity)");
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
}

/* The register is another one by the time that it is written: no error, and nothing is changed. */
static int take_nothing(void *context, enum fix_point point, const char *path)
{
	struct rig *g = context;
	AUTO_FREE char *config = xprintf("%s/sys/bus/pci/devices/%s/config", g->root, path);
	AUTO_FREE char *aside = xprintf("%s/etc/aside", g->root);
	char bytes[4096];

	if (point != POINT_REGISTER)
		return 0;
	assert_int_equal(rename(config, aside), 0);
	{
		AUTO_FCLOSE FILE *from = fopen(aside, "r"), *to = fopen(config, "w");

		assert_int_equal(fread(bytes, sizeof(bytes), 1, from), 1);
		assert_int_equal(fwrite(bytes, sizeof(bytes), 1, to), 1);
	}
	assert_int_equal(remove(aside), 0);
	return 0;
}

static void test_silent_lockdown(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = NULL;

	rig_put(g, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	old = rig_tree(g);
	rig_file(p, "etc/a.conf", "a\n", "b\n");
	rig_acs(p, RIG_DEVICE, "001d", "0011");
	g->host.before = take_nothing;
	g->host.before_context = g;
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(
		g, RIG_DEVICE
		": ACS+6 cannot be written: the kernel is locked down (confidentiality), as it is "
		"with Secure Boot\n");
	assert_tree(g, old);
	assert_last_state(g, 1, FIX_UNDONE);
	rig_put(g, "sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	rig_listen(g);
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, RIG_DEVICE
		    ": ACS+6 does not take the value that is written to it, it reads 001d\n");
	assert_get(g, "etc/a.conf", "a\n");
	assert_last_state(g, 2, FIX_UNDONE);
}

/* On the way back too: what the register does not take is not held for undone. */
static void test_silent_lockdown_undoing(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011");
	assert_int_equal(apply(g, p), FIX_DONE);
	g->host.before = take_nothing;
	g->host.before_context = g;
	assert_int_equal(undo(g, 0), FIX_NOT_ROLLED_BACK);
	assert_told(g, "does not take the value that is written to it, it reads 0011\n");
	assert_last_state(g, 1, FIX_UNDOING);
	g->host.before = NULL;
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
}

#define BAR_FOLDER "sys/bus/pci/devices/" RIG_DEVICE "/"
#define BAR_SMALL  "0x0 0x0 0x0\n0x380000000000 0x38000fffffff 0x14220c\n"
#define BAR_LARGE  "0x0 0x0 0x0\n0x380000000000 0x3807ffffffff 0x14220c\n"

static struct plan *bar_plan(struct rig *g)
{
	struct plan *p = plan_new();
	struct step *s = rig_acs(p, RIG_DEVICE, "0", "0");

	s->kind = STEP_BAR_SIZE;
	s->value.old = 256;
	s->value.new = 32768;
	s->at = "1";
	rig_put(g, BAR_FOLDER "resource", BAR_SMALL);
	rig_put(g, BAR_FOLDER "resource1_resize", "000000000000ffc0\n");
	return p;
}

static void test_bar_size(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = bar_plan(g);
	struct answer a = {.g = g, .path = BAR_FOLDER "resource", .text = BAR_LARGE};

	g->host.before = answer;
	g->host.before_context = &a;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_get(g, BAR_FOLDER "resource1_resize", "15");
	assert_int_equal(apply(g, p), FIX_NOTHING);
	a.text = BAR_SMALL;
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, BAR_FOLDER "resource1_resize", "8");
	/* After a reboot there is nothing to undo, whatever size it has then. */
	a.text = BAR_LARGE;
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "proc/sys/kernel/random/boot_id", BOOT_2);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, BAR_FOLDER "resource1_resize", "15");
}

static void test_bar_size_refused(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = bar_plan(g);
	struct answer a = {.g = g, .r = -ENOSPC};

	g->host.before = answer;
	g->host.before_context = &a;
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "the window of a bridge above has no room");
	a.r = 0; /* written, but the size stays */
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "BAR 1 is 256 MiB, expected 32768, right after it was written");
	rig_put(g, BAR_FOLDER "driver", "");
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "cannot be resized while a driver is bound");
	p->steps[0].value.new = 300;
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "\"300\" is not a BAR size");
}

static void test_no_capability(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *unknown = plan_new();
	char config[4096] = {(char)0xde, 0x10, 0x01, 0x22};
	AUTO_FREE char *path = xprintf("%s/" BAR_FOLDER "config", g->root);
	AUTO_FCLOSE FILE *f = fopen(path, "w");

	/* A list that leads to itself. */
	config[0x100] = 0x01;
	config[0x102] = 0x02;
	config[0x103] = 0x10;
	assert_int_equal(fwrite(config, sizeof(config), 1, f), 1);
	assert_int_equal(fflush(f), 0);
	rig_acs(p, RIG_DEVICE, "001d", "0011");
	assert_int_equal(try_apply(g, p), -ENXIO);
	assert_said(RIG_DEVICE " has no ACS+6");
	rig_acs(unknown, RIG_OTHER, "001d", "0011")->at = "ATS+6";
	assert_int_equal(try_apply(g, unknown), -EINVAL);
	assert_said("\"ATS+6\" is no register that is known");
}

/* ---- the journal ---- */

static struct plan *one_file(void)
{
	struct plan *p = plan_new();

	rig_file(p, "etc/a.conf", "a\n", "b\n");
	return p;
}

static void assert_refused(struct rig *g, int error, const char *part)
{
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_file(p, "etc/b.conf", "b 1\nb 2\n", "c\n");
	assert_int_equal(try_apply(g, p), error);
	assert_said(part);
	assert_int_equal(try_undo(g, 0), error);
	assert_said(part);
	assert_tree(g, old);
}

/* One line of the plan replaced. */
static void edit_plan(struct rig *g, const char *from, const char *to)
{
	AUTO_FREE char *plan = rig_get(g, FIX_1 "plan.json"), *edited = NULL;
	char *at = strstr(plan, from);

	assert_non_null(at);
	edited = xprintf("%.*s%s%s", (int)(at - plan), plan, to, at + strlen(from));
	rig_put(g, FIX_1 "plan.json", edited);
}

static void test_newer_journal(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();

	assert_int_equal(apply(g, p), FIX_DONE);
	edit_plan(g, "\"version\": 1", "\"version\": 3");
	assert_refused(g, -EPROTO, "fixes/1/plan.json was written by a newer onehop");
}

static void test_bad_journal(void **state)
{
	static const struct {
		const char *from, *to, *sentence;
	} edits[] = {
		{"{", "", "fixes/1/plan.json is not valid JSON"},
		{"\"onehop-fix\"", "\"else\"", "does not say that this is a plan of onehop"},
		{"\"kind\": \"file\"", "\"kind\": \"song\"", "step 0: "},
		{"\"target\": \"etc/a.conf\"", "\"target\": \"../etc/a.conf\"",
		 "\"target\" is not a"},
		{"\"mode\": 420", "\"mode\": -1", "\"mode\" is not a number"},
		{"\"new_sha256\": \"", "\"new_sha256\": \"0", "\"new_sha256\" is not a SHA-256"},
		{"\"target\": \"etc/a.conf\"", "\"target\": \"etc/b.conf\"",
		 "\"plan_sha256\" is not that of this plan"},
		{"\"to_do\": true", "\"to_do\": false", "\"plan_sha256\" is not that of this plan"},
		{"\"to_do\": true", "\"to_do\": 1", "\"to_do\" is neither true nor false"},
		{"\"steps\": [", "\"stairs\": [", "\"steps\" is not a list"},
		{"\"builds_on\": []", "\"builds_on\": 1", "\"builds_on\" is not a list"},
		{"\"builds_on\": []", "\"builds_on\": [1]", "holds something that is not a string"},
		{"\"builds_on\": []", "\"builds_on\": [\"../a\"]",
		 "holds something that is not a path below the root"},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		AUTO_PLAN struct plan *p = one_file();

		rig_reset(g);
		assert_int_equal(apply(g, p), FIX_DONE);
		edit_plan(g, edits[i].from, edits[i].to);
		assert_refused(g, -EPROTO, edits[i].sentence);
		assert_said("fixes/1");
	}
}

/*
 * What a plan says of its folder is compared with it, also where nothing says whether it was
 * edited.
 */
static void test_plan_of_other_files(void **state)
{
	static const char *const edits[][3] = {
		{"\"number\": 1", "\"number\": 2", "fixes/1/plan.json is the plan of fix 2"},
		{"\"old\": 2", "\"old\": 3", "old-0 has another length"},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		AUTO_PLAN struct plan *p = one_file();

		rig_reset(g);
		assert_int_equal(apply(g, p), FIX_DONE);
		edit_plan(g, "\"plan_sha256\"", "\"unknown_sum\"");
		edit_plan(g, edits[i][0], edits[i][1]);
		assert_refused(g, -EPROTO, edits[i][2]);
	}
}

/* As written before plans said what they build on, and what they and their copies hold. */
static void test_journal_of_before(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();
	AUTO_FREE char *log = NULL, *plain = NULL;

	assert_int_equal(apply(g, p), FIX_DONE);
	edit_plan(g, "\"plan_sha256\"", "\"unknown_sum\"");
	edit_plan(g, "\"old_sha256\"", "\"unknown\"");
	edit_plan(g, "\"new_sha256\"", "\"unknown_too\"");
	edit_plan(g, "\"builds_on\"", "\"unknown\"");
	edit_plan(g, "\"needed_by_undo\"", "\"unknown_as_well\"");
	log = rig_get(g, FIX_1 "log.jsonl");
	plain = rig_unchained(log);
	rig_put(g, FIX_1 "log.jsonl", plain);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
}

static void test_missing_copy(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();

	assert_int_equal(apply(g, p), FIX_DONE);
	assert_get(g, FIX_1 "old-0", "a\n");
	assert_get(g, FIX_1 "new-0", "b\n");
	rig_remove(g, FIX_1 "old-0");
	assert_refused(g, -EPROTO, "the copy old-0 is missing");
}

/* Of the right length. Nothing is written from it; put back, it serves. */
static void test_damaged_copy(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();

	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, FIX_1 "old-0", "A\n");
	assert_refused(g, -EPROTO, "the copy old-0 is damaged");
	assert_get(g, "etc/a.conf", "b\n");
	rig_put(g, FIX_1 "old-0", "a\n");
	rig_put(g, FIX_1 "new-0", "B\n");
	assert_refused(g, -EPROTO, "the copy new-0 is damaged");
	rig_put(g, FIX_1 "new-0", "b\n");
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
}

static void flip_first(const struct rig *g, const char *path)
{
	AUTO_FREE char *text = rig_get(g, path);

	text[0] ^= 1;
	rig_put(g, path, text);
}

/*
 * Of every kind of step; but what a program made is not compared: undo makes it again if it is
 * another.
 */
static void test_every_copy_damaged(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = rig_rich_plan(g);
	AUTO_FREE char *old = rig_tree(g);
	enum fix_result result;
	unsigned number, n = 0;

	assert_int_equal(apply(g, p), FIX_DONE);
	for (size_t i = 0; i < 2 * p->step_n; i++) {
		AUTO_FREE char *path = xprintf(FIX_1 "%s-%zu", i % 2 ? "new" : "old", i / 2);

		if (!rig_exists(g, path) || (i % 2 && p->steps[i / 2].kind == STEP_GENERATED))
			continue;
		flip_first(g, path);
		assert_int_equal(fix_undo(&g->run, 1, &result, &number), -EPROTO);
		assert_said("is damaged");
		flip_first(g, path);
		n++;
	}
	assert_true(n > 10);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_tree(g, old);
}

static void test_bad_log(void **state)
{
	static const char *const logs[] = {"rubbish\n{}\n", "{\"step\": 1, \"mark\": \"done\"}\n",
					   "{\"step\": 0, \"mark\": \"eaten\"}\n",
					   "{\"state\": \"applied\"}\n", "[]\n"};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++) {
		AUTO_PLAN struct plan *p = one_file();

		rig_reset(g);
		assert_int_equal(apply(g, p), FIX_DONE);
		rig_put(g, FIX_1 "log.jsonl", logs[i]);
		assert_refused(g, -EPROTO, "fixes/1/log.jsonl: line 1 is none that onehop wrote");
	}
}

/* In the order of `lines`, which ends with a number that the log has no line of. */
static char *log_of(const char *log, const size_t *lines)
{
	AUTO_STRBUF struct strbuf text = {0};

	for (; *lines; lines++) {
		const char *line = log;

		for (size_t i = 1; i < *lines; i++)
			line = strchr(line, '\n') + 1;
		strbuf_add(&text, line, strcspn(line, "\n") + 1);
	}
	return xstrdup(strbuf_str(&text));
}

/* applying, started, done, applied: each line was written behind the one before. */
static void test_mixed_log(void **state)
{
	static const size_t orders[][6] = {{1, 3, 4}, {1, 2, 2, 3, 4}, {1, 3, 2, 4},
					   {2, 3, 4}, {1, 2, 3, 3},    {1, 2, 4},
					   {2},       {1, 2, 3, 4, 1}};
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();
	AUTO_FREE char *log = NULL;

	assert_int_equal(apply(g, p), FIX_DONE);
	log = rig_get(g, FIX_1 "log.jsonl");
	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		AUTO_FREE char *mixed = log_of(log, orders[i]);

		rig_put(g, FIX_1 "log.jsonl", mixed);
		assert_refused(g, -EPROTO, "is none that onehop wrote");
	}
	rig_put(g, FIX_1 "log.jsonl", log);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
}

/*
 * By hand, by a program, from another fix: a line that says so undoes nothing. Without it, the fix
 * can be undone.
 */
static void test_undone_by_a_line(void **state)
{
	static const char plain[] =
		"{\"time\":\"2026-11-24T15:00:00Z\",\"state\":\"undone\",\"boot_id\":\"\"}";
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file(), *q = plan_new();
	AUTO_FREE char *log = NULL, *other = NULL, *with_plain = NULL, *with_other = NULL;

	rig_file(q, "etc/b.conf", "b 1\nb 2\n", "c\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(apply(g, q), FIX_DONE);
	assert_int_equal(undo(g, 2), FIX_DONE);
	log = rig_get(g, FIX_1 "log.jsonl");
	other = rig_get(g, JOURNAL_FOLDER "/fixes/2/log.jsonl");
	with_plain = xprintf("%s%s\n", log, plain);
	rig_put(g, FIX_1 "log.jsonl", with_plain);
	assert_refused(g, -EPROTO, "fixes/1/log.jsonl: line 5 is none that onehop wrote");
	*strrchr(other, '\n') = '\0';
	with_other = xprintf("%s%s\n", log, strrchr(other, '\n') + 1);
	rig_put(g, FIX_1 "log.jsonl", with_other);
	assert_refused(g, -EPROTO, "fixes/1/log.jsonl: line 5 is none that onehop wrote");
	/* A person can close it, and what is written then counts. */
	assert_int_equal(fix_forget(&g->run, 1), 0);
	assert_int_equal(try_undo(g, 1), -EALREADY);
	rig_put(g, FIX_1 "log.jsonl", log);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
}

/* An earlier version wrote its first lines, and this one goes on. */
static void test_log_of_before(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();
	AUTO_FREE char *log = NULL, *plain = NULL, *undone = NULL, *mixed = NULL;

	assert_int_equal(apply(g, p), FIX_DONE);
	log = rig_get(g, FIX_1 "log.jsonl");
	plain = rig_unchained(log);
	assert_string_not_equal(plain, log);
	rig_put(g, FIX_1 "log.jsonl", plain);
	assert_last_state(g, 1, FIX_APPLIED);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
	assert_last_state(g, 1, FIX_UNDONE);
	undone = rig_get(g, FIX_1 "log.jsonl");
	mixed = xprintf("%s%s", undone, plain);
	rig_put(g, FIX_1 "log.jsonl", mixed);
	assert_refused(g, -EPROTO, "fixes/1/log.jsonl: line 9 is none that onehop wrote");
}

/* ---- what the first release wrote ---- */

#define STEP_END                                                                                   \
	"\"mask\": 44, \"identity\": 282993153, \"mode\": 420, \"deadline_s\": 10, "               \
	"\"reboot\": false, \"again_at_boot\": true}"

/*
 * From its own program (tests/fuzz/corpus/journal/rich): no sums, no note of the steps that were to
 * be done.
 */
static const char first_plan[] =
	"{\"schema\": \"onehop-fix\", \"version\": 1, \"number\": 1, "
	"\"date\": \"2026-11-21T23:58:09Z\", \"boot_id\": \"11111111-2222-3333-4444-555555555555\", "
	"\"steps\": [{\"kind\": \"register\", \"target\": \"" RIG_DEVICE "\", \"at\": \"ACS+6\", "
	"\"what\": \"register\", \"why\": \"a test\", \"rules\": \"\", \"old\": \"001d\", "
	"\"new\": \"0011\", " STEP_END ", {\"kind\": \"file\", \"target\": \"etc/a.conf\", "
	"\"what\": \"file\", \"why\": \"a test\", \"rules\": \"\", \"old\": 2, \"new\": 7, " STEP_END
	", {\"kind\": \"file\", \"target\": \"etc/c.conf\", \"what\": \"file\", \"why\": \"a test\", "
	"\"rules\": \"\", \"new\": 2, " STEP_END
	"], \"manual\": [], \"wanted\": [], \"notes\": [], "
	"\"way_back\": []}";

#define TIME "{\"time\":\"2026-11-21T23:58:09Z\","
static const char *const first_log[] = {
	TIME "\"state\":\"applying\",\"boot_id\":\"11111111-2222-3333-4444-555555555555\"}\n",
	TIME "\"step\":0,\"mark\":\"started\"}\n",
	TIME "\"step\":0,\"mark\":\"done\"}\n",
	TIME "\"step\":1,\"mark\":\"started\"}\n",
	TIME "\"step\":1,\"mark\":\"done\"}\n",
	TIME "\"step\":2,\"mark\":\"started\"}\n",
	TIME "\"step\":2,\"mark\":\"done\"}\n",
	TIME "\"state\":\"applied\",\"boot_id\":\"11111111-2222-3333-4444-555555555555\"}\n",
};
#define FIRST_LINES (sizeof(first_log) / sizeof(*first_log))

/*
 * As a power cut left it behind `lines` lines and part of the next; `early`: before the step that
 * was begun was done.
 */
static void put_first_release(struct rig *g, size_t lines, bool early)
{
	AUTO_STRBUF struct strbuf log = {0};
	const size_t done = early ? lines / 2 - (lines % 2 == 0) : lines / 2;

	rig_reset(g);
	for (size_t i = 0; i < lines; i++)
		strbuf_puts(&log, first_log[i]);
	if (lines < FIRST_LINES)
		strbuf_add(&log, first_log[lines], strlen(first_log[lines]) / 2);
	rig_put(g, FIX_1 "plan.json", first_plan);
	rig_put(g, FIX_1 "log.jsonl", strbuf_str(&log));
	rig_put(g, FIX_1 "old-1", "a\n");
	rig_put(g, FIX_1 "new-1", "a\nmore\n");
	rig_put(g, FIX_1 "new-2", "c\n");
	if (done > 0)
		rig_set_register(g, RIG_DEVICE, 0x0011);
	if (done > 1)
		rig_put(g, "etc/a.conf", "a\nmore\n");
	if (done > 2)
		rig_put(g, "etc/c.conf", "c\n");
}

static void test_first_release(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = rig_tree(g);

	for (size_t lines = 1; lines <= FIRST_LINES; lines++)
		for (int early = 0; early < 2; early++) {
			put_first_release(g, lines, early && lines < FIRST_LINES);
			assert_int_equal(undo(g, 1), FIX_DONE);
			assert_tree(g, old);
			assert_last_state(g, 1, FIX_UNDONE);
		}
}

/* Nothing is undone by what is damaged; repaired, it is undone; and a person can close it. */
static void test_first_release_damaged(void **state)
{
	static const struct {
		const char *path, *text;
	} damages[] = {
		{FIX_1 "plan.json", "{\"schema\": \"onehop-fix\", \"version\": 1, \"num"},
		{FIX_1 "old-1", "longer than it was"},
		{FIX_1 "old-1", ""},
	};
	struct rig *g = *state;
	AUTO_FREE char *old = rig_tree(g);

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		AUTO_FREE char *was = NULL, *applied = NULL;

		put_first_release(g, FIRST_LINES, false);
		applied = rig_tree(g);
		was = rig_get(g, damages[i].path);
		rig_put(g, damages[i].path, damages[i].text);
		assert_int_equal(try_undo(g, 1), -EPROTO);
		assert_tree(g, applied);
		rig_put(g, damages[i].path, was);
		assert_int_equal(undo(g, 1), FIX_DONE);
		assert_tree(g, old);
	}
	put_first_release(g, FIRST_LINES, false);
	rig_put(g, damages[0].path, damages[0].text);
	assert_int_equal(fix_forget(&g->run, 1), 0);
	assert_int_equal(try_undo(g, 1), -EALREADY);
}

/* NULL: it cannot be read. The caller frees; the text has the sum of what was read. */
static char *read_plan(const char *plan, size_t size)
{
	struct journal_entry e = {0};
	char *text = NULL;

	if (journal_plan_parse(plan, size, "plan.json", &e) < 0)
		return NULL;
	assert_int_equal(journal_plan_text(&e, &text), 0);
	journal_free_entry(&e);
	return text;
}

/*
 * Of every byte of a plan one bit: it cannot be read, or says the same (between two words, in the
 * sum's own name).
 */
static void test_flipped_plan(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = rig_rich_plan(g);
	AUTO_FREE char *plan = NULL;
	size_t size, same = 0;

	assert_int_equal(apply(g, p), FIX_DONE);
	plan = rig_get(g, FIX_1 "plan.json");
	size = strlen(plan);
	for (size_t i = 0; i < size; i++) {
		const char bit = (char)(1 << i % 8);
		AUTO_FREE char *text = NULL;

		plan[i] ^= bit;
		text = read_plan(plan, size);
		plan[i] ^= bit;
		if (text)
			assert_string_equal(text, plan);
		same += text != NULL;
	}
	assert_true(same < size / 4); /* a plan is indented */
}

/*
 * The same of its log: it cannot be read, or its last line is taken for one that a power cut has
 * torn.
 */
static void test_flipped_log(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = rig_rich_plan(g);
	AUTO_FREE char *plan = NULL, *log = NULL;
	size_t size, last, plan_size;

	assert_int_equal(apply(g, p), FIX_DONE);
	plan = rig_get(g, FIX_1 "plan.json");
	plan_size = strlen(plan);
	log = rig_get(g, FIX_1 "log.jsonl");
	size = strlen(log);
	last = (size_t)((char *)memrchr(log, '\n', size - 1) - log);
	for (size_t i = 0; i < size; i++) {
		const char bit = (char)(1 << i % 8);
		struct journal_entry e = {0};
		int r;

		log[i] ^= bit;
		r = journal_parse(plan, plan_size, log, size, "1", &e);
		log[i] ^= bit;
		if (r < 0)
			continue;
		assert_true(i >= last); /* the end of the line before makes it part of the last */
		assert_int_equal(e.state, FIX_APPLYING);
		journal_free_entry(&e);
	}
}

static void test_torn_log(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file(), *other = plan_new();
	AUTO_FREE char *log = NULL, *torn = NULL, *zeros = NULL;

	assert_int_equal(apply(g, p), FIX_DONE);
	log = rig_get(g, FIX_1 "log.jsonl");
	torn = xprintf("%s{\"time\":\"20", log);
	rig_put(g, FIX_1 "log.jsonl", torn);
	assert_last_state(g, 1, FIX_APPLIED);
	/* What comes then starts on a line of its own. */
	rig_file(other, "etc/b.conf", "b 1\nb 2\n", "c\n");
	assert_int_equal(apply(g, other), FIX_DONE);
	assert_get(g, FIX_1 "log.jsonl", log);
	zeros = xprintf("%s{\"time\":\"20\x01\x01\x01\n", log);
	rig_put(g, FIX_1 "log.jsonl", zeros);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
	assert_last_state(g, 2, FIX_APPLIED);
	assert_int_equal(try_undo(g, 1), -EALREADY);
}

/*
 * Nothing in it is made by a program that leaves a copy in the journal, which would show that lines
 * are lost; and it does not end with a program, of which nobody can see whether it ran.
 */
static struct plan *plain_plan(struct rig *g)
{
	struct plan *p = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011")->again_at_boot = true;
	rig_file(p, "etc/a.conf", "a\n", "a\nmore\n");
	rig_file(p, "etc/new/deep/d.conf", NULL, "d\n");
	rig_initrd(p, "options x=1", "options x=2");
	rig_words(g, p, "iommu=pt pci=realloc");
	rig_file(p, "etc/a.conf", "a\nmore\n", "b\n");
	rig_file(p, "etc/a.conf", "b\n", "a\nstill more\n");
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", NULL);
	rig_switch(p, "off", "on");
	rig_attribute(p, "auto", "1");
	rig_attribute(p, "1", "1");
	return p;
}

/* The log up to its line `n`; NULL: it has no more lines than that. The caller frees. */
static char *first_lines(const char *log, size_t n)
{
	const char *end = log;

	while (n-- && *end)
		end = strchr(end, '\n') + 1;
	return *end ? xstrndup(log, (size_t)(end - log)) : NULL;
}

/* Cut between any two lines: all is undone, and not only what the log still tells of. */
static void test_cut_log(void **state)
{
	struct rig *g = *state;
	size_t n = 1;

	for (bool more = true; more; n++) {
		AUTO_PLAN struct plan *p = plain_plan(g);
		AUTO_FREE char *old = rig_tree(g), *log = NULL, *cut = NULL;

		assert_int_equal(apply(g, p), FIX_DONE);
		log = rig_get(g, FIX_1 "log.jsonl");
		cut = first_lines(log, n);
		more = cut != NULL;
		if (more)
			rig_put(g, FIX_1 "log.jsonl", cut);
		assert_int_equal(undo(g, 1), FIX_DONE);
		assert_tree(g, old);
		assert_last_state(g, 1, FIX_UNDONE);
		rig_reset(g);
	}
	assert_true(n > 10);
}

/*
 * Nobody asked to undo it, and a run that was killed before its first step left the same log: it
 * stays.
 */
static void test_cut_log_of_interrupted(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file(), *other = plan_new(), *third = plan_new();
	AUTO_FREE char *log = NULL, *cut = NULL;

	assert_int_equal(apply(g, p), FIX_DONE);
	log = rig_get(g, FIX_1 "log.jsonl");
	cut = first_lines(log, 1);
	rig_put(g, FIX_1 "log.jsonl", cut);
	assert_int_equal(fix_forget(&g->run, 1), -EBUSY);
	assert_said("if it is your own: onehop undo 1 --forget --yes");
	rig_file(other, "etc/b.conf", "b 1\nb 2\n", "c\n");
	assert_int_equal(apply(g, other), FIX_DONE);
	assert_told(
		g,
		"it is as the fix leaves it, but the log has no line about it: log.jsonl lost its end, or somebody else made the same change. To undo it: onehop undo 1");
	assert_get(g, "etc/a.conf", p->steps[0].new.data);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
	assert_get(g, "etc/b.conf", "c\n");
	/* It is reported once, and is in nobody's way. */
	rig_listen(g);
	rig_file(third, "etc/e.conf", NULL, "e\n");
	assert_int_equal(apply(g, third), FIX_DONE);
	assert_int_equal(g->events[FIX_RECOVER], 0);
}

/*
 * Somebody set himself what a killed run did not come to, and says so. What has a line is no one's
 * own.
 */
static void test_forget_own(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();
	AUTO_FREE char *log = NULL;
	struct fix_run run = g->run;

	run.is_own = true;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(fix_forget(&run, 1), -EBUSY);
	log = rig_get(g, FIX_1 "log.jsonl");
	*(strchr(log, '\n') + 1) = '\0';
	rig_put(g, FIX_1 "log.jsonl", log);
	assert_int_equal(fix_forget(&g->run, 1), -EBUSY);
	assert_int_equal(fix_forget(&run, 1), 0);
	assert_get(g, "etc/a.conf", "b\n");
	assert_last_state(g, 1, FIX_FORGOTTEN);
}

/*
 * A folder of the fix in whose place there is something else: what to do is said, and then it is
 * undone.
 */
static void test_no_folder(void **state)
{
	static const char *const said[] = {"is not a folder: make it one, or remove it",
					   "repair or remove it", "repair or remove it"};
	struct rig *g = *state;

	for (size_t i = 0; i < 3; i++) {
		AUTO_PLAN struct plan *p = plan_new();
		AUTO_FREE char *folder = NULL;

		rig_reset(g);
		folder = xprintf("%s/etc/new", g->root);
		rig_file(p, "etc/new/d.conf", NULL, "d\n");
		assert_int_equal(apply(g, p), FIX_DONE);
		rig_remove(g, "etc/new/d.conf");
		rig_remove(g, "etc/new");
		if (i)
			assert_int_equal(symlink(i == 1 ? "new" : "gone", folder), 0);
		else
			rig_put(g, "etc/new", "a file\n");
		assert_int_equal(undo(g, 1), FIX_NOT_ROLLED_BACK);
		assert_told(g, said[i]);
		assert_true(fix_forget(&g->run, 1) < 0);
		assert_said(said[i]);
		assert_int_equal(unlink(folder), 0);
		assert_int_equal(undo(g, 1), FIX_DONE);
		assert_last_state(g, 1, FIX_UNDONE);
	}
}

static void set_mode(const struct rig *g, const char *path, mode_t mode)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path);

	assert_int_equal(chmod(whole, mode), 0);
}

static void cut_log(const struct rig *g)
{
	AUTO_FREE char *log = rig_get(g, FIX_1 "log.jsonl"), *cut = first_lines(log, 1);

	rig_put(g, FIX_1 "log.jsonl", cut);
}

/* What the log has lost cannot be looked at: that does not mean that it is undone. */
static void test_cut_log_unread(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();

	assert_int_equal(apply(g, p), FIX_DONE);
	cut_log(g);
	set_mode(g, "etc", 0777);
	assert_int_equal(undo(g, 1), FIX_NOT_ROLLED_BACK);
	assert_told(g, "every user can write to folder etc on the way to");
	set_mode(g, "etc", 0755);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
	assert_last_state(g, 1, FIX_UNDONE);
}

/* Nobody can tell whether the fix set what is neither its value nor the one before. */
static void test_cut_log_other_value(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_acs(p, RIG_DEVICE, "001d", "0011");
	assert_int_equal(apply(g, p), FIX_DONE);
	cut_log(g);
	rig_set_register(g, RIG_DEVICE, 0x0015);
	assert_int_equal(undo(g, 1), FIX_NOT_ROLLED_BACK);
	assert_told(g, "it was changed since, and is left as it is");
	rig_set_register(g, RIG_DEVICE, 0x0011);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_int_equal(rig_register(g, RIG_DEVICE), 0x001d);
}

/*
 * What was set before the fix began is not taken for a step that the log has lost, nor is anything
 * of earlier journals.
 */
static void test_cut_log_of_others(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *log = NULL, *cut = NULL, *plan = NULL;
	char *flag;

	rig_file(p, "etc/a.conf", "before\n", "a\n");
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", "c\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	log = rig_get(g, FIX_1 "log.jsonl");
	cut = first_lines(log, 1);
	rig_put(g, FIX_1 "log.jsonl", cut);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
	assert_get(g, "etc/b.conf", "b 1\nb 2\n");

	rig_put(g, "etc/b.conf", "c\n");
	rig_put(g, FIX_1 "log.jsonl", cut);
	plan = rig_get(g, FIX_1 "plan.json");
	while ((flag = strstr(plan, "\"to_do\"")))
		memcpy(flag, "\"older\"", 7);
	memcpy(strstr(plan, "\"plan_sha256\""), "\"plan_sha25x\"", 13);
	rig_put(g, FIX_1 "plan.json", plan);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/b.conf", "c\n");
}

/*
 * Somebody moved the folder that the fix made, and left a link to it: the file goes, and the link
 * stays.
 */
static void test_folder_became_a_link(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *folder = xprintf("%s/etc/new", g->root);
	AUTO_FREE char *moved = xprintf("%s/etc/moved", g->root);

	rig_file(p, "etc/new/deep/d.conf", NULL, "d\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(rename(folder, moved), 0);
	assert_int_equal(symlink("moved", folder), 0);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_false(rig_exists(g, "etc/moved/deep/d.conf"));
	assert_true(rig_exists(g, "etc/moved"));
	assert_true(rig_exists(g, "etc/new"));
}

static void test_half_made_fix(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();

	rig_put(g, FIX_1 "old-0", "stale");
	rig_put(g, FIX_1 "new-7", "stale");
	assert_int_equal(count_fixes(g, NULL), 0);
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_false(rig_exists(g, FIX_1 "new-7"));
	assert_get(g, FIX_1 "old-0", "a\n");
}

static void test_lost_log(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();

	assert_int_equal(apply(g, p), FIX_DONE);
	rig_remove(g, FIX_1 "log.jsonl");
	assert_int_equal(try_undo(g, 1), -EPROTO);
	assert_said("fixes/1 has lost its log");
	assert_get(g, "etc/a.conf", "b\n");
	rig_put(g, "etc/a.conf", "a\n");
	set_mode(g, "etc", 0777); /* as it was, but that cannot be seen */
	assert_int_equal(try_undo(g, 1), -EPROTO);
	set_mode(g, "etc", 0755);
	assert_int_equal(undo(g, 1), FIX_DONE);
}

/* It is in force, so it is not one that was interrupted before it began. */
static void test_lost_log_is_no_interruption(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = plan_new(), *second = plan_new(), *next = plan_new();
	AUTO_FREE char *applied = NULL, *in_force = NULL;
	size_t recovered;

	rig_file(first, "etc/b.conf", "b 1\nb 2\n", "b 3\n");
	/* The file twice: neither old nor new is what the second of the two finds. */
	rig_file(second, "etc/a.conf", "a\n", "b\n");
	rig_file(second, "etc/a.conf", "b\n", "c\n");
	want(second, "kernel-parameter", "iommu=pt");
	rig_file(next, "etc/e.conf", NULL, "e\n");
	assert_int_equal(apply(g, first), FIX_DONE);
	assert_int_equal(apply(g, second), FIX_DONE);
	applied = rig_tree(g);
	in_force = rig_get(g, JOURNAL_FOLDER "/in-force");
	rig_remove(g, JOURNAL_FOLDER "/fixes/2/log.jsonl");
	rig_listen(g);
	assert_int_equal(try_apply(g, next), -EPROTO);
	assert_said("fixes/2 has lost its log");
	assert_int_equal(fix_recover(&g->run, &recovered), -EPROTO);
	assert_int_equal(g->events[FIX_RECOVER], 0);
	assert_tree(g, applied);
	/* What it did not touch can be undone still, and what it stands on cannot. */
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/b.conf", "b 1\nb 2\n");
	assert_get(g, JOURNAL_FOLDER "/in-force", in_force);
	rig_put(g, "etc/a.conf", "a\n");
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_get(g, JOURNAL_FOLDER "/in-force", "");
	assert_int_equal(apply(g, next), FIX_DONE);
}

/* Killed between the log's first line and the plan: nothing was begun, and nothing is left. */
static void test_log_before_plan(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();

	rig_put(g, FIX_1 "old-0", "stale");
	rig_put(g, FIX_1 "log.jsonl",
		"{\"time\":\"2026\",\"state\":\"applying\",\"boot_id\":\"\"}\n");
	assert_int_equal(count_fixes(g, NULL), 0);
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_last_state(g, 1, FIX_APPLIED);
	assert_get(g, FIX_1 "old-0", "a\n");
}

/* ---- one that is damaged, among others ---- */

/*
 * Fixes 1 to 3, of a file each but that 3 changes 1's once more if `again`; plan 2 is rubbish then.
 */
static void make_damaged(struct rig *g, bool again, char **ret_plan)
{
	AUTO_PLAN struct plan *first = one_file(), *second = plan_new(), *third = plan_new();

	rig_file(second, "etc/b.conf", "b 1\nb 2\n", "b 3\n");
	want(second, "kernel-parameter", "iommu=pt");
	if (again)
		rig_file(third, "etc/a.conf", "b\n", "c\n");
	else
		rig_file(third, "etc/e.conf", NULL, "e\n");
	assert_int_equal(apply(g, first), FIX_DONE);
	assert_int_equal(apply(g, second), FIX_DONE);
	assert_int_equal(apply(g, third), FIX_DONE);
	*ret_plan = rig_get(g, JOURNAL_FOLDER "/fixes/2/plan.json");
	rig_put(g, JOURNAL_FOLDER "/fixes/2/plan.json", "{\"schema\": ");
}

static void test_damaged_among_others(void **state)
{
	static const char line[] =
		"fix 2 11111111-2222-3333-4444-555555555555 kernel-parameter iommu=pt\n";
	struct rig *g = *state;
	AUTO_PLAN struct plan *next = plan_new();
	AUTO_FREE char *old = rig_tree(g), *plan = NULL;
	struct journal_entry *entries;
	size_t n, redone;

	make_damaged(g, false, &plan);
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(entries[0].damage | entries[2].damage, 0);
	assert_int_equal(entries[1].damage, -EPROTO);
	assert_non_null(strstr(entries[1].damaged, "fixes/2/plan.json is not valid JSON"));
	assert_int_equal(entries[1].number, 2);
	assert_int_equal(entries[1].state, FIX_APPLIED);
	assert_int_equal(strlen(entries[1].date), 20);
	journal_free(entries, n);
	rig_file(next, "etc/new/c.conf", NULL, "c\n");
	assert_int_equal(try_apply(g, next), -EPROTO);
	assert_said("fixes/2/plan.json is not valid JSON");
	assert_int_equal(fix_at_boot(&g->run, &redone), -EPROTO);
	/* Before it: not known whether it changed the same. After it: it did not. */
	assert_int_equal(try_undo(g, 1), -EBUSY);
	assert_said("fix 2 may have changed the same after fix 1");
	assert_int_equal(try_undo(g, 2), -EPROTO);
	assert_get(g, JOURNAL_FOLDER "/in-force", line);
	assert_int_equal(undo(g, 3), FIX_DONE);
	assert_false(rig_exists(g, "etc/e.conf"));
	assert_get(g, JOURNAL_FOLDER "/in-force", line);
	rig_put(g, JOURNAL_FOLDER "/fixes/2/plan.json", plan);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_tree(g, old);
	assert_get(g, JOURNAL_FOLDER "/in-force", "");
}

/* What was undone before it was damaged is in nobody's way. */
static void test_damaged_and_over(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file(), *q = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_file(q, "etc/b.conf", "b 1\nb 2\n", "b 3\n");
	assert_int_equal(apply(g, q), FIX_DONE);
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(undo(g, 2), FIX_DONE);
	rig_put(g, JOURNAL_FOLDER "/fixes/2/plan.json", "");
	assert_int_equal(try_undo(g, 2), -EALREADY);
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

/* An interrupted fix is not taken back from under a damaged one. */
static void test_damaged_over_interrupted(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *plan = NULL;

	make_damaged(g, true, &plan);
	rig_put(g, FIX_1 "log.jsonl",
		"{\"state\":\"applying\",\"boot_id\":\"\"}\n{\"step\":0,\"mark\":\"started\"}\n");
	assert_int_equal(undo(g, 3), FIX_DONE);
	assert_int_equal(g->events[FIX_RECOVER], 0);
	assert_get(g, "etc/a.conf", "b\n");
	rig_put(g, JOURNAL_FOLDER "/fixes/2/plan.json", plan);
	assert_int_equal(undo(g, 2), FIX_DONE);
	assert_int_equal(g->events[FIX_RECOVER], 1);
	assert_get(g, "etc/a.conf", "a\n");
}

/* ---- how it ended ---- */

static void test_failed_and_undone(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *good = one_file();
	const char *argv[] = {"no-such-program", NULL};
	struct journal_entry *entries;
	size_t n;

	rig_file(p, "etc/a.conf", "a\n", "b\n");
	rig_switch(p, "off", "on")->argv = argv;
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_int_equal(apply(g, good), FIX_DONE);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(entries[0].state, FIX_UNDONE);
	assert_false(entries[0].was_applied);
	assert_null(entries[0].errors[0]);
	assert_non_null(strstr(entries[0].errors[1], "no such program"));
	assert_int_equal(entries[1].state, FIX_UNDONE);
	assert_true(entries[1].was_applied);
	journal_free(entries, n);
}

static void test_lost_plan(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();
	AUTO_FREE char *plan = NULL;

	assert_int_equal(apply(g, p), FIX_DONE);
	plan = rig_get(g, FIX_1 "plan.json");
	rig_remove(g, FIX_1 "plan.json");
	assert_refused(g, -EPROTO, "fixes/1 has a log but no plan");
	assert_get(g, FIX_1 "old-0", "a\n");
	rig_put(g, FIX_1 "plan.json", plan);
	assert_int_equal(undo(g, 1), FIX_DONE);
	assert_get(g, "etc/a.conf", "a\n");
}

static void test_journal_of_links(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();
	AUTO_FREE char *path = xprintf("%s/" FIX_1 "plan.json", g->root);

	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(rename(path, "/dev/null/x"), -1);
	rig_put(g, "etc/plan", "{}");
	rig_remove(g, FIX_1 "plan.json");
	assert_int_equal(symlink("../../../../../etc/plan", path), 0);
	assert_refused(g, -ELOOP, "plan.json is a symbolic link");
}

static void test_not_utf8(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_file(p, "etc/\xff.conf", NULL, "b\n");
	assert_int_equal(try_apply(g, p), -EINVAL);
	assert_said("not UTF-8");
	assert_tree(g, old);
	assert_int_equal(count_fixes(g, NULL), 0);
	/* Contents may be anything. */
	rig_file(p, "etc/b.conf", "b 1\nb 2\n", "\xff\xfe\n");
	p->steps++;
	p->step_n--;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

/* Everything of a plan comes back from the journal. */
static void test_plan_is_kept(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = rig_rich_plan(g);
	struct journal_entry *entries;
	size_t n;

	texts_add(p->arena, &p->steps[0].cost, "isolation");
	texts_add(p->arena, &p->steps[0].cost, "and more");
	texts_add(p->arena, &p->steps[0].rules, "acs-redirect");
	texts_add(p->arena, &p->steps[0].rules, "iommu");
	p->steps[0].reboot = true;
	ARENA_PUSH(p->arena, p->manual, p->manual_n)
	[0] = (struct plan_manual){"the firmware", "turn it on", TEXTS("rebar.off")};
	ARENA_PUSH(p->arena, p->notes, p->note_n)[0] = "a note";
	ARENA_PUSH(p->arena, p->way_back, p->way_back_n)[0] = "onehop undo";
	ARENA_PUSH(p->arena, p->builds_on, p->builds_on_n)[0] = "etc/none.conf";
	p->steps[p->step_n - 1].needed_by_undo = true;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(entries[0].plan->step_n, p->step_n);
	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *a = &p->steps[i], *b = &entries[0].plan->steps[i];
		AUTO_STRBUF struct strbuf x = {0}, y = {0};

		assert_int_equal(a->kind, b->kind);
		assert_string_equal(a->target ? a->target : "", b->target ? b->target : "");
		assert_string_equal(a->what, b->what);
		assert_true(!a->old.data == !b->old.data && !a->new.data == !b->new.data);
		assert_int_equal(a->old.size, b->old.size);
		assert_int_equal(a->new.size, b->new.size);
		if (a->new.data)
			assert_memory_equal(a->new.data, b->new.data, a->new.size);
		assert_int_equal(a->mask, b->mask);
		assert_int_equal(a->value.old, b->value.old);
		assert_int_equal(a->value.new, b->value.new);
		assert_int_equal(a->identity, b->identity);
		assert_int_equal(a->again_at_boot, b->again_at_boot);
		assert_int_equal(a->needed_by_undo, b->needed_by_undo);
		assert_int_equal(entries[0].marks[i], MARK_DONE);
		assert_true(!a->undo_argv == !b->undo_argv && !a->argv == !b->argv);
		if (a->argv)
			step_command_line(a->argv, &x), step_command_line(b->argv, &y);
		assert_string_equal(strbuf_str(&x), strbuf_str(&y));
	}
	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *a = &p->steps[i], *b = &entries[0].plan->steps[i];

		assert_true(texts_same(&a->why, &b->why));
		assert_true(texts_same(&a->rules, &b->rules));
		assert_true(texts_same(&a->cost, &b->cost));
	}
	assert_true(texts_same(&entries[0].plan->manual[0].rules, &p->manual[0].rules));
	assert_true(plan_needs_reboot(entries[0].plan));
	assert_string_equal(entries[0].plan->manual[0].how, "turn it on");
	assert_string_equal(entries[0].plan->notes[0], "a note");
	assert_string_equal(entries[0].plan->way_back[0], "onehop undo");
	assert_int_equal(entries[0].plan->builds_on_n, 1);
	assert_string_equal(entries[0].plan->builds_on[0], "etc/none.conf");
	assert_string_equal(entries[0].boot_id, "11111111-2222-3333-4444-555555555555");
	journal_free(entries, n);
}

static mode_t mode_of(const struct rig *g, const char *path)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path);
	struct stat st;

	if (lstat(whole, &st) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return st.st_mode & 07777;
}

static const char *const of_fix_1[] = {FIX_1 "plan.json", FIX_1 "log.jsonl", FIX_1 "old-0",
				       FIX_1 "new-0"};

static void assert_only_owners(const struct rig *g)
{
	for (size_t i = 0; i < sizeof(of_fix_1) / sizeof(*of_fix_1); i++)
		assert_int_equal(mode_of(g, of_fix_1[i]), 0600);
	assert_int_equal(mode_of(g, FIX_1), 0700);
	assert_int_equal(mode_of(g, JOURNAL_FOLDER "/fixes"), 0700);
}

/*
 * A line of a file that only root may read gets into what is said of it; check still tells
 * everybody.
 */
static void test_secrets(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *other = plan_new();
	AUTO_FREE char *log = NULL;

	rig_put(g, "etc/a.conf", "password\n");
	set_mode(g, "etc/a.conf", 0600);
	rig_file(p, "etc/a.conf", "password\n", "password\nmore\n");
	rig_file(other, "etc/b.conf", "b 1\nb 2\n", "c\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(mode_of(g, "etc/a.conf"), 0600);
	assert_only_owners(g);
	assert_int_equal(mode_of(g, JOURNAL_FOLDER), 0755);

	/* As it was left by an onehop that did not do that. */
	for (size_t i = 0; i < sizeof(of_fix_1) / sizeof(*of_fix_1); i++)
		set_mode(g, of_fix_1[i], 0644);
	set_mode(g, FIX_1, 0755);
	set_mode(g, JOURNAL_FOLDER "/fixes", 0755);
	assert_int_equal(apply(g, other), FIX_DONE);
	assert_only_owners(g);

	rig_put(g, "etc/a.conf", "another secret\nmore\n");
	assert_int_equal(undo(g, 1), FIX_NOT_ROLLED_BACK);
	log = rig_get(g, FIX_1 "log.jsonl");
	assert_non_null(strstr(log, "another secret"));
	assert_only_owners(g);
}

/* What is made is nobody else's to read either, before it is like the old one. */
static mode_t made_mode;

static int note_mode(void *context, const char *const *argv)
{
	struct stat st;

	(void)context;
	if (stat(argv[1], &st) == 0)
		made_mode = st.st_mode & 07777;
	return 0;
}

static int make_and_note(void *context, const char *const *argv, unsigned deadline_s,
			 struct strbuf *output, int *ret_status)
{
	static const struct stand_in programs[] = {{"check-grub", note_mode}, {NULL}};

	(void)deadline_s;
	if (strcmp(argv[0], "check-grub") == 0)
		return rig_run(programs, context, argv, output, ret_status);
	/* One that leaves it to the umask. */
	{
		AUTO_FREE char *text = rig_grub_text(context);
		AUTO_FCLOSE FILE *f = fopen(argv[1], "we");

		assert_non_null(f);
		assert_true(fputs(text, f) >= 0);
	}
	*ret_status = 0;
	return 0;
}

static void test_generated_secrets(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	g->host.run = make_and_note;
	set_mode(g, "boot/grub/grub.cfg", 0600);
	rig_grub(g, p, "quiet", "iommu=pt");
	made_mode = 07777;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(made_mode, 0600);
	assert_int_equal(mode_of(g, "boot/grub/grub.cfg"), 0600);
}

#define SOMEBODY 65534

/* -1: it cannot be tried, as in a container with one user. */
static int read_as_somebody(struct rig *g)
{
	int status;
	pid_t child = geteuid() == 0 ? fork() : -1;

	if (child < 0)
		return -1;
	if (child == 0) {
		struct journal_entry *entries;
		size_t n;

		if (setgroups(0, NULL) < 0 || setgid(SOMEBODY) < 0 || setuid(SOMEBODY) < 0)
			_exit(2);
		_exit(journal_read(&g->host, &entries, &n) == -EACCES &&
				      strstr(err_msg(), "only root may read")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 2 ? -1 : WEXITSTATUS(status);
}

static void test_read_by_others(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();
	int wrong;

	rig_acs(p, RIG_DEVICE, "001d", "0011");
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(chmod(g->root, 0755), 0);
	wrong = read_as_somebody(g);
	if (wrong < 0)
		SKIP("another user cannot be played here");
	assert_int_equal(wrong, 0);
	assert_int_equal(mode_of(g, JOURNAL_FOLDER "/in-force") & 0444, 0444);
}

static void test_programs_output_is_kept(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *log = NULL;

	rig_initrd(p, "options x=1", "options x=2");
	assert_int_equal(apply(g, p), FIX_DONE);
	log = rig_get(g, FIX_1 "log.jsonl");
	assert_non_null(strstr(log, "\"output\":\"make-initrd ran\\n\""));
}

/* ---- a full file system ---- */

/* From the n-th write on there is no room below `folder`; names can still be given and taken. */
static struct {
	const struct rig *g;
	const char *folder;
	long left;
} full;

static int no_room(void *context, enum fix_point point, const char *path)
{
	const size_t n = strlen(full.g->root);
	bool here = strncmp(path, full.g->root, n) == 0 &&
		    strncmp(path + n, full.folder, strlen(full.folder)) == 0;

	(void)context;
	if (!here || (point != POINT_OPEN && point != POINT_WRITE && point != POINT_FSYNC))
		return 0;
	return full.left-- > 0 ? 0 : -ENOSPC;
}

static void fill(struct rig *g, const char *folder, long n)
{
	full.g = g;
	full.folder = folder;
	full.left = n;
	g->host.before = no_room;
}

static void make_room(struct rig *g, int (*before)(void *, enum fix_point, const char *))
{
	g->host.before = before;
}

/*
 * From each write on: nothing is half old and half new, the file system is named, and all comes
 * back.
 */
static void test_full_at_each_write(void **state)
{
	struct rig *g = *state;
	int (*before)(void *, enum fix_point, const char *) = g->host.before;
	AUTO_FREE char *old = rig_tree(g);

	for (int undoing = 0; undoing < 2; undoing++)
		for (long n = 0;; n++) {
			AUTO_PLAN struct plan *p = NULL;
			AUTO_FREE char *torn = NULL;
			int r;

			rig_reset(g);
			p = rig_rich_plan(g);
			if (undoing)
				assert_int_equal(apply(g, p), FIX_DONE);
			rig_listen(g);
			fill(g, "/", n);
			r = undoing ? try_undo(g, 0) : try_apply(g, p);
			make_room(g, before);
			torn = rig_torn(g, p);
			if (torn)
				fail_msg("%s", torn);
			if (full.left >= 0)
				break;
			if (r < 0)
				assert_said("no space is left on /");
			else if (!undoing)
				assert_told(g, "no space is left on /");
			end_clean(g, old);
		}
}

static void test_full_boot(void **state)
{
	struct rig *g = *state;
	int (*before)(void *, enum fix_point, const char *) = g->host.before;
	AUTO_PLAN struct plan *p = plan_new(), *again = plan_new();
	AUTO_FREE char *old = rig_tree(g);

	rig_grub(g, p, "quiet", "iommu=pt");
	fill(g, "/boot/", 0);
	assert_int_equal(apply(g, p), FIX_ROLLED_BACK);
	assert_told(g, "/boot/grub/grub.cfg: no space is left on /");
	assert_told(g, "KiB free): remove ");
	assert_tree(g, old);
	make_room(g, before);
	rig_grub(g, again, "quiet", "iommu=pt");
	assert_int_equal(apply(g, again), FIX_DONE);
	/* The old file has a second name: it takes no room to put it back. */
	fill(g, "/boot/", 0);
	assert_int_equal(undo(g, 0), FIX_DONE);
	make_room(g, before);
	assert_tree(g, old);
	assert_int_equal(rig_second_names(g, "boot/grub/grub.cfg"), 1);
}

/*
 * Before anything is written, of what is known to be written: the size, not the data, is looked at.
 */
static void test_room_is_foreseen(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *huge = plan_new();

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(fix_foresee(&g->run, p), 0);
	for (size_t i = 0; i < p->note_n; i++)
		assert_null(strstr(p->notes[i], "KiB free"));
	rig_grub(g, huge, "quiet", "iommu=pt");
	huge->steps[1].new.size = (size_t)1 << 60;
	fix_foresee_room(&g->host, huge);
	assert_true(huge->note_n > 0);
	assert_non_null(strstr(huge->notes[0], " KiB free, and this fix needs about "));
	assert_non_null(strstr(huge->notes[0], "remove what is not needed there first"));
}

/* ---- what a program that makes a file again drops ---- */

static void put_by_hand(struct rig *g, const char *lines)
{
	AUTO_FREE char *text = xprintf("generated\nlinux root=/dev/sda1 quiet%s\nend\n", lines);

	rig_put(g, "boot/grub/grub.cfg", text);
}

/* The one step that makes grub.cfg when it is applied. */
static struct step *making_step(struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].kind == STEP_GENERATED && p->steps[i].argv)
			return &p->steps[i];
	fail_msg("the plan makes no grub.cfg");
	return NULL;
}

static void test_dropped_lines(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = NULL;
	struct journal_entry *entries;
	const struct step *s;
	size_t n;

	put_by_hand(g, "\n# a comment\n\n  set by=hand\nm\xfcll");
	old = rig_tree(g);
	rig_grub(g, p, "quiet", "iommu=pt");
	s = making_step(p);
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_true(plan_drops_lines(p));
	assert_string_equal(s->dropped[0], "  set by=hand");
	assert_string_equal(s->dropped[1], "m?ll");
	assert_null(s->dropped[2]);
	assert_tree(g, old);
	assert_false(rig_exists(g, JOURNAL_FOLDER "/foreseen"));
	assert_int_equal(count_fixes(g, NULL), 0);

	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	s = making_step(entries[0].plan);
	assert_string_equal(s->dropped[1], "m?ll");
	assert_null(s->dropped[2]);
	journal_free(entries, n);
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_tree(g, old);
}

/* With the file that the step before it writes; that file itself stays as it is. */
/*
 * A file in somebody's language is made again in it: in another one its titles would differ, and
 * lines were lost.
 */
static void test_language(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = NULL;

	g->language = "de_DE.UTF-8";
	old = rig_grub_text(g);
	g->language = NULL;
	assert_non_null(strstr(old, "set lang=de_DE\n"));
	rig_put(g, "boot/grub/grub.cfg", old);
	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_null(p->steps[2].dropped);
	assert_non_null(strstr(p->steps[2].foreseen.data, "set lang=de_DE\n"));
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_get(g, "boot/grub/grub.cfg",
		   "generated\nlinux root=/dev/sda1 iommu=pt\n\tset lang=de_DE\nend\n");
	rig_put(g, "boot/grub/grub.cfg",
		"generated\nlinux root=/dev/sda1 iommu=pt more\n\tset lang=de_DE\nend\n");
	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, "boot/grub/grub.cfg", old);
}

static void test_locale(void **state)
{
	static const struct {
		const char *text, *locale;
	} rows[] = {
		{"if x; then\n  set lang=en_US\nfi\n", "en_US.UTF-8"},
		{"set lang=C", "C.UTF-8"},
		{"set lang=de_DE@euro\n", "de_DE@euro"},
		{"set lang=$other\n", NULL},
		{"set lang=\n", NULL},
		{"set langs=de\nreset lang=de\n", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *locale = grub_locale(rows[i].text);

		if (rows[i].locale)
			assert_string_equal(locale, rows[i].locale);
		else
			assert_null(locale);
	}
}

static void test_foreseen(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *old = NULL, *made = NULL;
	const struct step *s;

	put_by_hand(g, "\nset by=hand");
	old = rig_tree(g);
	rig_grub(g, p, "quiet", "iommu=pt");
	s = making_step(p);
	/* A run of more files was killed here. */
	rig_put(g, JOURNAL_FOLDER "/foreseen.d/file-12", "x");
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_tree(g, old);
	assert_false(rig_exists(g, JOURNAL_FOLDER "/foreseen"));
	assert_false(rig_exists(g, JOURNAL_FOLDER "/foreseen.d"));
	assert_null(s->unforeseen);
	assert_int_equal(apply(g, p), FIX_DONE);
	made = rig_get(g, "boot/grub/grub.cfg");
	assert_string_equal(s->foreseen.data, made);
}

/* What confirming a trial would make of it, too. */
/* False: this file system, or this user, has no such thing. */
static bool set_flag(struct rig *g, const char *path, int flag)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path);
	AUTO_CLOSE int fd = open(whole, O_RDONLY | O_CLOEXEC);
	int flags;

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return false;
	flags = (flags & ~(FS_APPEND_FL | FS_IMMUTABLE_FL)) | flag;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
}

/*
 * What chattr forbids is foreseen, nothing is left of the attempt, and the undo comes through
 * later.
 */
static void test_chattr(void **state)
{
	static const struct {
		const char *path;
		int flag;
		const char *said;
	} rows[] = {
		{"etc/a.conf", FS_IMMUTABLE_FL, "its present file is immutable: `chattr -i "},
		{"etc/a.conf", FS_APPEND_FL, "its present file is append-only: `chattr -a "},
		{"etc", FS_IMMUTABLE_FL, "its folder is immutable: `chattr -i "},
		{"etc", FS_APPEND_FL, "its folder is append-only: `chattr -a "},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_PLAN struct plan *p = plan_new();
		struct journal_entry *entries;
		enum fix_result foreseen, result;
		size_t n;

		rig_reset(g);
		rig_file(p, "etc/a.conf", "a\n", "new\n");
		assert_int_equal(apply(g, p), FIX_DONE);
		assert_int_equal(journal_read(&g->host, &entries, &n), 0);
		if (!set_flag(g, rows[i].path, rows[i].flag)) {
			journal_free(entries, n);
			SKIP("no file attributes here");
		}
		foreseen = fix_rehearse_undo(&g->run, &entries[0]);
		rig_listen(g);
		result = undo(g, 1);
		set_flag(g, rows[i].path, 0);
		assert_int_equal(foreseen, FIX_NOT_ROLLED_BACK);
		assert_int_equal(result, FIX_NOT_ROLLED_BACK);
		assert_told(g, rows[i].said);
		assert_false(rig_exists(g, "etc/.a.conf.onehop-new"));
		assert_int_equal(undo(g, 1), FIX_DONE);
		assert_get(g, "etc/a.conf", "a\n");
		journal_free(entries, n);
	}
}

/* A file that overrides what the fix writes shows before anything is done. */
static void test_failure_is_foreseen(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_null(plan_failing_step(p));
	p->steps[2].expect = "iommu=other";
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_ptr_equal(plan_failing_step(p), &p->steps[2]);
	assert_string_equal(
		p->steps[2].fails,
		"/boot/grub/grub.cfg would not have iommu=other: something overrides it");
	p->on_confirm = p->steps;
	p->on_confirm_n = p->step_n;
	p->steps = NULL;
	p->step_n = 0;
	assert_ptr_equal(plan_failing_step(p), &p->on_confirm[2]);
}

static void test_foreseen_of_confirming(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	put_by_hand(g, "\nset by=hand");
	rig_grub(g, p, "quiet", "iommu=pt");
	p->on_confirm = p->steps;
	p->on_confirm_n = p->step_n;
	p->steps = NULL;
	p->step_n = 0;
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_true(plan_drops_lines(p));
	assert_string_equal(p->on_confirm[2].dropped[0], "set by=hand");
	assert_non_null(strstr(p->on_confirm[2].foreseen.data, "iommu=pt"));
}

/* Real mounts, as far as this machine lets a test make them. */
static int run_real(void *context, const char *const *argv, unsigned deadline_s,
		    struct strbuf *output, int *ret_status)
{
	AUTO_FREE char *path = host_program(argv[0]);

	(void)context;
	return path ? child_run(path, argv, deadline_s, output, ret_status)
		    : err_set(ENOENT, "no %s", argv[0]);
}

static bool can_mount(void)
{
	static const char *const argv[] = {
		"unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt", NULL};
	AUTO_STRBUF struct strbuf output = {0};
	int status = 1;

	return run_real(NULL, argv, 10, &output, &status) == 0 && status == 0;
}

static void foresee_for_real(struct rig *g, const char *file)
{
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *script = xprintf("cat %s/%s >\"$0\"", g->root, file);
	const char *const argv[] = {"sh", "-c", script, STEP_OUTPUT, NULL};
	AUTO_FREE char *old = rig_tree(g);
	struct step *s;

	rig_grub(g, p, "quiet", "iommu=pt");
	p->steps[1].target = file;
	s = making_step(p);
	s->argv = argv;
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_tree(g, old);
	if (s->unforeseen)
		fail_msg("%s", s->unforeseen);
	assert_non_null(strstr(s->foreseen.data, "iommu=pt"));
}

static void test_foreseen_by_mounts(void **state)
{
	struct rig *g = *state;
	fix_runner *run = g->host.run;

	if (!can_mount())
		SKIP("no file system can be mounted here");
	g->host.run = run_real;
	foresee_for_real(g, "etc/default/gen.cfg");
	foresee_for_real(g, "etc/default/grub.d/more/new.cfg");
	g->host.run = run;
}

/*
 * Lines that somebody wrote since the fix, and only those: the fix's own are in the generated file
 * too.
 */
static void test_dropped_by_undo(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *new = NULL, *old = NULL;
	struct journal_entry *entries;
	size_t n;

	put_by_hand(g, "\nset before=fix");
	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(fix_foresee_undo(&g->run, &entries[0]), 0);
	assert_false(
		plan_drops_lines(entries[0].plan)); /* what it made is replaced by the old bytes */

	new = rig_get(g, "boot/grub/grub.cfg");
	old = xprintf("%s\n# a comment\nmenuentry mine\n", new);
	rig_put(g, "boot/grub/grub.cfg", old);
	assert_int_equal(fix_foresee_undo(&g->run, &entries[0]), 0);
	assert_string_equal(entries[0].plan->steps[0].dropped[0], "menuentry mine");
	assert_null(entries[0].plan->steps[0].dropped[1]);
	assert_get(g, "boot/grub/grub.cfg", old);
	assert_get(g, "etc/default/gen.cfg", "iommu=pt");
	assert_false(rig_exists(g, JOURNAL_FOLDER "/foreseen"));

	/*
	 * As an earlier try left it: what the fix made of the file that is undone already is no
	 * loss.
	 */
	rig_put(g, "etc/default/gen.cfg", "quiet");
	assert_int_equal(fix_foresee_undo(&g->run, &entries[0]), 0);
	assert_string_equal(entries[0].plan->steps[0].dropped[0], "menuentry mine");
	assert_null(entries[0].plan->steps[0].dropped[1]);
	rig_put(g, "etc/default/gen.cfg", "iommu=pt");

	assert_int_equal(undo(g, 0), FIX_DONE);
	assert_get(g, "boot/grub/grub.cfg", OLD_GRUB);
	journal_free(entries, n);
}

static void test_nothing_dropped(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *stale = plan_new(), *failing = plan_new();
	const char *const none[] = {"no-such-program", STEP_OUTPUT, NULL};

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(fix_foresee(&g->run, p), 0);
	assert_false(plan_drops_lines(p));
	/* It was changed since the plan was made: that is fix_apply's to say. */
	rig_grub(g, stale, "quiet", "iommu=pt");
	put_by_hand(g, "\nset by=hand");
	assert_int_equal(fix_foresee(&g->run, stale), 0);
	assert_false(plan_drops_lines(stale));
	assert_int_equal(apply(g, stale), FIX_DRIFT);
	/* Nor can it be known where the program fails. */
	rig_grub(g, failing, "quiet", "iommu=pt");
	making_step(failing)->argv = none;
	assert_int_equal(fix_foresee(&g->run, failing), 0);
	assert_false(plan_drops_lines(failing));
	assert_int_equal(apply(g, failing), FIX_ROLLED_BACK);
}

/* ---- other programs, at work at the same time ---- */

/* A package brings a kernel, and makes grub.cfg again, in place as grub-mkconfig does. */
static void install_kernel(struct rig *g)
{
	AUTO_FREE char *text = NULL;

	rig_put(g, "etc/default/kernel", "6.9");
	text = rig_grub_text(g);
	rig_put(g, "boot/grub/grub.cfg", text);
}

static void write_in_place(struct rig *g)
{
	rig_put(g, "etc/a.conf", "somebody's\n");
}

static void write_and_rename(struct rig *g)
{
	AUTO_FREE char *from = xprintf("%s/etc/a.tmp", g->root), *to = NULL;

	to = xprintf("%s/etc/a.conf", g->root);
	rig_put(g, "etc/a.tmp", "somebody's\n");
	assert_int_equal(rename(from, to), 0);
}

static void add_a_line(struct rig *g)
{
	AUTO_FREE char *path = xprintf("%s/etc/a.conf", g->root);
	AUTO_FCLOSE FILE *f = fopen(path, "ae");

	assert_non_null(f);
	assert_true(fputs("somebody's\n", f) >= 0);
}

/* Of a file that the plan removes, and of one that it makes. */
static void write_what_goes(struct rig *g)
{
	rig_put(g, "etc/b.conf", "somebody's\n");
}

static void write_what_appears(struct rig *g)
{
	rig_put(g, "etc/new/deep/d.conf", "somebody's\n");
}

static void edit_what_is_generated(struct rig *g)
{
	AUTO_FREE char *path = xprintf("%s/boot/grub/grub.cfg", g->root);
	AUTO_FCLOSE FILE *f = fopen(path, "ae");

	assert_non_null(f);
	assert_true(fputs("# somebody's\n", f) >= 0);
}

#define WAYS 3

/* What a program writes at whatever moment, and where it must be found ever after. Those that write in several ways
 * take turns from moment to moment. */
static const struct other_program {
	void (*write[WAYS])(struct rig *g);
	const char *path, *text;
	bool or_found; /* the journal may have it instead: the file is generated, without it */
} other_programs[] = {
	{{install_kernel}, "boot/grub/grub.cfg", "\nkernel 6.9\n"},
	{{write_in_place, write_and_rename, add_a_line}, "etc/a.conf", "somebody's\n"},
	{{write_what_goes}, "etc/b.conf", "somebody's\n"},
	{{write_what_appears}, "etc/new/deep/d.conf", "somebody's\n"},
	{{edit_what_is_generated}, "boot/grub/grub.cfg", "# somebody's\n", true},
};

static void (*way_at(const struct other_program *o, long n))(struct rig *g)
{
	size_t ways = 1;

	while (ways < WAYS && o->write[ways])
		ways++;
	return o->write[(size_t)n % ways];
}

static bool is_in_journal(const struct rig *g, const char *text)
{
	enum { FIXES = 3, STEPS = 32 };

	for (int i = 0; i < FIXES * STEPS; i++) {
		AUTO_FREE char *path =
			xprintf(JOURNAL_FOLDER "/fixes/%d/found-%d", 1 + i / STEPS, i % STEPS);
		AUTO_FREE char *found = rig_get(g, path);

		if (found && strstr(found, text))
			return true;
	}
	return false;
}

static void assert_kept(const struct rig *g, const struct other_program *o, const char *when)
{
	AUTO_FREE char *now = rig_get(g, o->path);

	if (o->or_found && is_in_journal(g, o->text))
		return;
	if (!now || !strstr(now, o->text))
		fail_msg("written at point %ld %s, %s is lost: %s\n%s", g->write_at, when, o->path,
			 now ? now : "-", strbuf_str(&g->texts));
}

/* Its own file aside, everything is as it was. */
static void assert_others_as_before(struct rig *g, const struct other_program *o, const char *old)
{
	AUTO_FREE char *before = NULL;

	rig_remove(g, o->path);
	if (rig_exists(g, "etc/default/kernel"))
		rig_remove(g, "etc/default/kernel");
	if (strstr(o->path, "etc/new"))
		rig_remove(g, "etc/new/deep"), rig_remove(g, "etc/new");
	before = rig_tree(g);
	assert_string_equal(before, old);
}

static char *tree_without(struct rig *g, const char *path)
{
	rig_reset(g);
	if (rig_exists(g, path))
		rig_remove(g, path);
	return rig_tree(g);
}

/* At each call of the host that an apply makes. */
static void write_while_applied(struct rig *g, const struct other_program *o)
{
	AUTO_FREE char *old = tree_without(g, o->path);

	for (long n = 0;; n++) {
		AUTO_PLAN struct plan *p = NULL;
		enum fix_result result = FIX_DRIFT;
		unsigned number;

		rig_reset(g);
		p = rig_rich_plan(g);
		rig_write_at(g, n, way_at(o, n));
		assert_int_equal(fix_apply(&g->run, p, &result, &number), 0);
		if (!g->wrote)
			break;
		assert_kept(g, o, "of apply");
		g->write = NULL;
		if (result == FIX_DONE)
			undo(g, 0);
		else
			try_undo(g, 0);
		assert_kept(g, o, "of apply, after undo");
		assert_others_as_before(g, o, old);
	}
}

static void write_while_undone(struct rig *g, const struct other_program *o)
{
	AUTO_FREE char *old = tree_without(g, o->path);

	for (long n = 0;; n++) {
		AUTO_PLAN struct plan *p = NULL;

		rig_reset(g);
		p = rig_rich_plan(g);
		assert_int_equal(apply(g, p), FIX_DONE);
		rig_write_at(g, n, way_at(o, n));
		undo(g, 0);
		if (!g->wrote)
			break;
		assert_kept(g, o, "of undo");
		g->write = NULL;
		try_undo(g, 0);
		assert_kept(g, o, "of undo, after another");
		assert_others_as_before(g, o, old);
	}
}

static void test_other_programs(void **state)
{
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(other_programs) / sizeof(*other_programs); i++) {
		write_while_applied(g, &other_programs[i]);
		write_while_undone(g, &other_programs[i]);
	}
}

/* What is on a file system that is not mounted may still be there. */
static void test_forget_not_mounted(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_file(p, "esp/a.conf", NULL, "b=1\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_remove(g, "esp/a.conf");
	rig_put(g, "etc/fstab", "LABEL=ESP /esp vfat defaults 0 2\n");
	assert_int_equal(fix_forget(&g->run, 1), -ENOMEDIUM);
	assert_non_null(strstr(err_msg(), "LABEL=ESP"));
	assert_last_state(g, 1, FIX_APPLIED);
	rig_remove(g, "etc/fstab");
	assert_int_equal(fix_forget(&g->run, 1), 0);
	assert_last_state(g, 1, FIX_FORGOTTEN);
	assert_int_equal(try_undo(g, 1), -EALREADY);
	assert_non_null(strstr(err_msg(), "closed with undo --forget"));
}

/*
 * A file that was not made again has the fix's parameter still; one that somebody else asks for is
 * theirs.
 */
static void test_forget_not_made_again(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();
	AUTO_FREE char *now = NULL, *edited = NULL;

	rig_grub(g, p, "quiet", "iommu=pt");
	assert_int_equal(apply(g, p), FIX_DONE);
	now = rig_get(g, "boot/grub/grub.cfg");
	edited = xprintf("%smenuentry mine\n", now);
	rig_put(g, "boot/grub/grub.cfg", edited);
	rig_put(g, "etc/default/gen.cfg", "quiet");
	assert_int_equal(fix_forget(&g->run, 1), -EBUSY);
	assert_said("/boot/grub/grub.cfg still has iommu=pt");
	assert_get(g, "boot/grub/grub.cfg", edited);
	assert_last_state(g, 1, FIX_APPLIED);
	rig_put(g, "etc/default/gen.cfg", "debug iommu=pt");
	assert_int_equal(fix_forget(&g->run, 1), 0);
	assert_last_state(g, 1, FIX_FORGOTTEN);
}

/* A comment that is another one does not take a fix back. */
static void test_forget_changed(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_file(p, "etc/a.conf", "a\n", "# the fix\na\nb=1\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	rig_put(g, "etc/a.conf", "# mine\na\nb=1\nc=1\n");
	assert_int_equal(fix_forget(&g->run, 1), -EBUSY);
	assert_last_state(g, 1, FIX_APPLIED);
	rig_put(g, "etc/a.conf", "# mine\na\nc=1\n");
	assert_int_equal(fix_forget(&g->run, 1), 0);
	assert_last_state(g, 1, FIX_FORGOTTEN);
}

/* ---- two runs at once ---- */

static void test_lock(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = one_file();
	int ready[2], held, status;
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		bool ok = journal_lock(&g->host, 0, &held) == 0;

		_exit(write(ready[1], ok ? "1" : "0", 1) != 1 || pause() == 0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, '1');
	assert_refused(g, -EBUSY, "another onehop is changing this system");
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(apply(g, p), FIX_DONE);
}

/* What the program that was started wrote about itself; 0: it did not yet. */
static long program_id(struct rig *g)
{
	AUTO_FREE char *text = rig_get(g, "run/pid");

	return text && strchr(text, '\n') ? strtol(text, NULL, 10) : 0;
}

/* In a child, which runs a program under the lock until it is killed. */
static void run_under_lock(struct rig *g)
{
	AUTO_FREE char *script = xprintf("echo $$ >%s/run/pid; exec sleep 1000", g->root);
	const char *const argv[] = {"sh", "-c", script, NULL};
	AUTO_STRBUF struct strbuf output = {0};
	int lock, status;

	if (journal_lock(&g->host, 0, &lock) == 0)
		host_run_program(NULL, argv, 0, &output, &status);
	_exit(1);
}

/*
 * A run that is killed leaves its program behind: until that ends, nobody starts another beside it.
 */
static void test_lock_of_program(void **state)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	struct rig *g = *state;
	int status, lock;
	pid_t child = fork();
	long program;

	assert_true(child >= 0);
	if (child == 0)
		run_under_lock(g);
	while ((program = program_id(g)) == 0 && waitpid(child, &status, WNOHANG) == 0)
		nanosleep(&pause, NULL);
	assert_true(program > 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_refused(g, -EBUSY, "another onehop is changing this system");
	assert_int_equal(kill((pid_t)program, SIGKILL), 0);
	assert_int_equal(journal_lock(&g->host, 600, &lock), 0);
	journal_unlock(lock);
}

/* A daemon that a program leaves has the lock's descriptor too: giving it up is for all. */
static void test_unlock_for_all(void **state)
{
	struct rig *g = *state;
	int first, second, other;

	assert_int_equal(journal_lock(&g->host, 0, &first), 0);
	other = dup(first);
	journal_unlock(first);
	assert_int_equal(journal_lock(&g->host, 0, &second), 0);
	journal_unlock(second);
	journal_unlock(-1);
	close(other);
}

/* Two people make the same plan of programs only: it is carried out once. */
static void test_another_fix_meanwhile(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new(), *same = plan_new();

	rig_switch(p, "off", "on");
	rig_switch(same, "off", "on");
	g->run.last_known = true;
	assert_int_equal(apply(g, p), FIX_DONE);
	assert_int_equal(apply(g, same), FIX_DRIFT);
	assert_told(g, "-: another fix was made since the plan was made");
	assert_int_equal(count_fixes(g, NULL), 1);
	g->run.last = 1;
	assert_int_equal(apply(g, same), FIX_DONE);
	assert_int_equal(count_fixes(g, NULL), 2);
}

/* ---- words ---- */

static void test_command_line(void **state)
{
	const char *const argv[] = {"grubby", "--args=iommu=pt", "a b", "", "it's", "$x", NULL};
	AUTO_STRBUF struct strbuf b = {0};

	(void)state;
	step_command_line(argv, &b);
	assert_string_equal(strbuf_str(&b), "grubby --args=iommu=pt 'a b' '' 'it'\\''s' '$x'");
}

static void test_kind_words(void **state)
{
	enum step_kind k;

	(void)state;
	for (unsigned i = 0; i < STEP_KIND_N; i++) {
		assert_int_equal(step_kind_parse(step_kind_word(i), &k), 0);
		assert_int_equal(k, i);
	}
	assert_int_equal(step_kind_parse("song", &k), -EINVAL);
}

/* Two steps change the file: what either added counts, whatever a person did with the other's. */
static void test_forget_both_steps(void **state)
{
	static const char *const kept[] = {"first\n", "second\n", "a\nfirst\nmine\n", "a\nfirst\n"};
	struct rig *g = *state;
	AUTO_PLAN struct plan *p = plan_new();

	rig_file(p, "etc/a.conf", "a\n", "a\nfirst\n");
	rig_file(p, "etc/a.conf", "a\nfirst\n", "a\nfirst\nsecond\n");
	assert_int_equal(apply(g, p), FIX_DONE);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		rig_put(g, "etc/a.conf", kept[i]);
		assert_int_equal(fix_forget(&g->run, 1), -EBUSY);
		assert_last_state(g, 1, FIX_APPLIED);
	}
	rig_put(g, "etc/a.conf", "a\nmine\n");
	assert_int_equal(fix_forget(&g->run, 1), 0);
	assert_last_state(g, 1, FIX_FORGOTTEN);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_rig, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_any_plan),
		TEST(test_each_point),
		TEST(test_rich_plan),
		TEST(test_only_masked_bits),
		TEST(test_another_device),
		TEST(test_nothing_to_do),
		TEST(test_program_only_if),
		TEST(test_skipped_stays),
		TEST(test_permissions_stay),
		TEST(test_contradicting_plan),
		TEST(test_image),
		TEST(test_undo_in_image),
		TEST(test_made_anew_in_image),
		TEST(test_made_without_in_image),
		TEST(test_generated_was_edited),
		TEST(test_generated_was_edited_and_undone_twice),
		TEST(test_generated_since),
		TEST(test_generated_has_zero_byte),
		TEST(test_boot_not_mounted_in_image),
		TEST(test_condition_in_image),
		TEST(test_needed_in_image),
		TEST(test_unit_in_image),
		TEST(test_look_back),
		TEST(test_drift_on_apply),
		TEST(test_drift_of_other_kinds),
		TEST(test_drift_on_undo),
		TEST(test_entries_of_others),
		TEST(test_stuck_is_left_alone),
		TEST(test_undo_goes_on),
		TEST(test_needed_by_undo),
		TEST(test_order_of_undoing),
		TEST(test_builds_on),
		TEST(test_generated_by_both),
		TEST(test_generated_without_effect),
		TEST(test_generated_put_back),
		TEST(test_log_lost_lines),
		TEST(test_generated_from_edited),
		TEST(test_generated_from_edited_in_image),
		TEST(test_generated_from_edited_anew),
		TEST(test_program_fails),
		TEST(test_second_names),
		TEST(test_read_only_boot),
		TEST(test_reboot_took_it_back),
		TEST(test_reboot_left_the_old_value),
		TEST(test_programs_after_reboot),
		TEST(test_registers_after_reboot),
		TEST(test_device_gone),
		TEST(test_in_force),
		TEST(test_undone_until_reboot),
		TEST(test_in_force_overruled),
		TEST(test_guest_below_switch),
		TEST(test_guest_below_root_port),
		TEST(test_lockdown),
		TEST(test_silent_lockdown),
		TEST(test_silent_lockdown_undoing),
		TEST(test_bar_size),
		TEST(test_bar_size_refused),
		TEST(test_no_capability),
		TEST(test_newer_journal),
		TEST(test_bad_journal),
		TEST(test_plan_of_other_files),
		TEST(test_journal_of_before),
		TEST(test_missing_copy),
		TEST(test_damaged_copy),
		TEST(test_every_copy_damaged),
		TEST(test_bad_log),
		TEST(test_mixed_log),
		TEST(test_undone_by_a_line),
		TEST(test_log_of_before),
		TEST(test_first_release),
		TEST(test_first_release_damaged),
		TEST(test_flipped_plan),
		TEST(test_flipped_log),
		TEST(test_torn_log),
		TEST(test_cut_log),
		TEST(test_cut_log_of_interrupted),
		TEST(test_forget_own),
		TEST(test_no_folder),
		TEST(test_cut_log_unread),
		TEST(test_cut_log_other_value),
		TEST(test_cut_log_of_others),
		TEST(test_folder_became_a_link),
		TEST(test_half_made_fix),
		TEST(test_lost_log),
		TEST(test_lost_log_is_no_interruption),
		TEST(test_log_before_plan),
		TEST(test_damaged_among_others),
		TEST(test_damaged_and_over),
		TEST(test_damaged_over_interrupted),
		TEST(test_failed_and_undone),
		TEST(test_lost_plan),
		TEST(test_journal_of_links),
		TEST(test_not_utf8),
		TEST(test_plan_is_kept),
		TEST(test_secrets),
		TEST(test_generated_secrets),
		TEST(test_read_by_others),
		TEST(test_programs_output_is_kept),
		TEST(test_full_at_each_write),
		TEST(test_full_boot),
		TEST(test_room_is_foreseen),
		TEST(test_block_is_taken_out),
		TEST(test_rehearsal),
		TEST(test_foreseen),
		TEST(test_language),
		TEST(test_failure_is_foreseen),
		TEST(test_chattr),
		cmocka_unit_test(test_locale),
		TEST(test_foreseen_of_confirming),
		TEST(test_foreseen_by_mounts),
		TEST(test_dropped_lines),
		TEST(test_dropped_by_undo),
		TEST(test_nothing_dropped),
		TEST(test_other_programs),
		TEST(test_forget_changed),
		TEST(test_forget_not_made_again),
		TEST(test_forget_both_steps),
		TEST(test_forget_not_mounted),
		TEST(test_lock),
		TEST(test_lock_of_program),
		TEST(test_unlock_for_all),
		TEST(test_another_fix_meanwhile),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_kind_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
