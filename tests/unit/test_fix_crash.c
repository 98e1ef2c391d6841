/* SPDX-License-Identifier: Apache-2.0 */
/* fix/, killed at any point: files are old or new and whole, and the next run ends clean. */
#include "fix_rig.h"

#include "base/alloc.h"
#include "base/err.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
/* $ONEHOP_FIX_KILLS is another number. With the sanitizers a kill costs five times as much. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define KILLS 100
#else
#define KILLS 400
#endif
#define SEED 4

static int make_rig(void **state)
{
	return rig_setup(state, SEED);
}

static void apply_all(struct rig *g, struct plan *p)
{
	enum fix_result result;
	unsigned number;

	fix_apply(&g->run, p, &result, &number);
}

static void undo_last(struct rig *g, struct plan *p)
{
	enum fix_result result;
	unsigned number;

	(void)p;
	fix_undo(&g->run, 0, &result, &number);
}

/* ---- afterwards ---- */

/* Before anything is put right. */
static void assert_whole(struct rig *g, const struct plan *p)
{
	AUTO_FREE char *torn = rig_torn(g, p);

	if (torn)
		fail_msg("%s", torn);
}

/* The state of the only fix; FIX_UNDONE if none was begun. */
static enum fix_state state_of(struct rig *g)
{
	enum fix_state state = FIX_UNDONE;
	struct journal_entry *entries;
	size_t n;

	if (journal_read(&g->host, &entries, &n) < 0)
		fail_msg("journal: %s", err_msg());
	assert_true(n <= 1);
	if (n)
		state = entries[0].state;
	journal_free(entries, n);
	return state;
}

static void recover(struct rig *g)
{
	size_t n;
	int lock;

	assert_int_equal(journal_lock(&g->host, 0, &lock), 0);
	if (fix_recover(&g->run, &n) < 0)
		fail_msg("recover: %s", err_msg());
	close(lock);
	if (g->events[FIX_UNDO_FAILED])
		fail_msg("recover: %s", strbuf_str(&g->texts));
}

static void undo(struct rig *g)
{
	enum fix_result result;
	unsigned number;

	if (fix_undo(&g->run, 0, &result, &number) < 0)
		fail_msg("undo: %s", err_msg());
	assert_int_equal(result, FIX_DONE);
}

static void assert_tree(const struct rig *g, const char *expected)
{
	AUTO_FREE char *difference = rig_tree_differs(g, expected);

	if (difference)
		fail_msg("%s\nthe last run told:\n%s", difference, strbuf_str(&g->texts));
}

/* What the next run does. */
static void assert_recovers(struct rig *g, const struct plan *p, const char *old, const char *new)
{
	assert_whole(g, p);
	state_of(g);
	recover(g);
	if (state_of(g) == FIX_APPLIED) {
		assert_tree(g, new);
		undo(g);
	}
	assert_tree(g, old);
	assert_int_equal(state_of(g), FIX_UNDONE);
}

/* And then everything works as if there had been no kill. */
static void assert_ends_clean(struct rig *g, struct plan *p, const char *old, const char *new)
{
	enum fix_result result;
	unsigned number;

	assert_recovers(g, p, old, new);
	if (fix_apply(&g->run, p, &result, &number) < 0)
		fail_msg("apply: %s", err_msg());
	assert_true(result == FIX_DONE || result == FIX_NOTHING);
	assert_tree(g, new);
	if (result == FIX_DONE)
		undo(g);
	assert_tree(g, old);
}

/* The next fix costs as much as the kill: one after every third of the points. */
static void assert_ends_clean_at(struct rig *g, struct plan *p, const char *old, const char *new,
				 long n)
{
	if (n % 3 == 0)
		assert_ends_clean(g, p, old, new);
	else
		assert_recovers(g, p, old, new);
}

/* What is changed is in the list from which `check` names it, whoever runs that. */
static void assert_named(struct rig *g, const char *old, const char *word)
{
	AUTO_FREE char *difference = rig_tree_differs(g, old);
	AUTO_FREE char *list = rig_get(g, JOURNAL_FOLDER "/in-force");

	if (difference && (!list || !strstr(list, word)))
		fail_msg("no \"%s\" in the list \"%s\" although this was changed:\n%s", word,
			 list ? list : "", difference);
}

/* ---- a plan with all there is, at each point ---- */

static char *tree_after(struct rig *g, struct plan *p)
{
	char *tree;

	apply_all(g, p);
	tree = rig_tree(g);
	rig_reset(g);
	return tree;
}

static void test_each_point_of_apply(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = rig_rich_plan(g);
	AUTO_FREE char *old = rig_tree(g), *new = tree_after(g, first);
	long n = 0;

	for (;; n++) {
		AUTO_PLAN struct plan *p = NULL;

		rig_reset(g);
		p = rig_rich_plan(g);
		if (!rig_run_killed(g, p, apply_all, n))
			break;
		assert_named(g, old, "fix 1 ");
		assert_ends_clean_at(g, p, old, new, n);
	}
	assert_true(n > 100);
	assert_tree(g, new);
}

static void test_each_point_of_undo(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = rig_rich_plan(g);
	AUTO_FREE char *old = rig_tree(g), *new = tree_after(g, first);
	long n = 0;

	for (;; n++) {
		AUTO_PLAN struct plan *p = NULL;

		rig_reset(g);
		p = rig_rich_plan(g);
		apply_all(g, p);
		if (!rig_run_killed(g, p, undo_last, n))
			break;
		assert_named(g, old, "fix 1 ");
		assert_ends_clean_at(g, p, old, new, n);
	}
	assert_true(n > 60);
	assert_tree(g, old);
}

/* The run that recovers is killed too, at each of its points. */
static void recover_too(struct rig *g, struct plan *p)
{
	size_t n;
	int lock;

	(void)p;
	if (journal_lock(&g->host, 0, &lock) == 0)
		fix_recover(&g->run, &n);
}

static void test_killed_twice(void **state)
{
	struct rig *g = *state;
	AUTO_PLAN struct plan *first = rig_rich_plan(g);
	AUTO_FREE char *old = rig_tree(g), *new = tree_after(g, first);
	bool killed = true;

	for (long n = 0; killed; n += 3) {
		AUTO_PLAN struct plan *p = NULL;

		rig_reset(g);
		p = rig_rich_plan(g);
		assert_true(rig_run_killed(g, p, apply_all, 130));
		assert_named(g, old, " unfinished applying\n");
		killed = rig_run_killed(g, p, recover_too, n);
		assert_ends_clean(g, p, old, new);
	}
}

/* The next run, or an undo, and what only a program of the system undoes stays. */
static void undo_in_image(struct rig *g)
{
	enum fix_result result;
	unsigned number;
	size_t n;
	int lock;

	g->host.image = true;
	assert_int_equal(journal_lock(&g->host, 0, &lock), 0);
	if (fix_recover(&g->run, &n) < 0)
		fail_msg("recover: %s", err_msg());
	close(lock);
	if (state_of(g) == FIX_APPLIED && fix_undo(&g->run, 0, &result, &number) < 0)
		fail_msg("undo: %s", err_msg());
	g->host.image = false;
}

/*
 * The machine does not come up any more: the next run is that of a rescue medium, and then it does.
 */
static void test_recovered_from_image(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = rig_tree(g), *initrd = rig_get(g, "boot/initrd");

	for (long n = 0;; n += 2) {
		AUTO_PLAN struct plan *p = NULL;
		AUTO_FREE char *made = NULL;

		rig_reset(g);
		p = rig_rich_plan(g);
		if (!rig_run_killed(g, p, apply_all, n))
			break;
		rig_set_register(g, RIG_DEVICE, 0x001d);
		rig_put(g, RIG_KNOB, "auto");
		rig_put(g, "run/switch", "off");
		undo_in_image(g);
		made = rig_get(g, "boot/initrd");
		if (strcmp(made, initrd) != 0)
			assert_int_equal(state_of(g), FIX_UNDOING);
		if (state_of(g) != FIX_UNDONE)
			undo(g);
		assert_int_equal(state_of(g), FIX_UNDONE);
		assert_tree(g, old);
	}
}

/* ---- any plan, at any point ---- */

static void test_any_plan(void **state)
{
	unsigned enough = rig_rounds("ONEHOP_FIX_KILLS", KILLS);
	struct rig *g = *state;

	for (unsigned kills = 0; kills < enough;) {
		AUTO_PLAN struct plan *p = NULL;
		AUTO_FREE char *old = NULL, *new = NULL;
		bool undoing = rig_random(g, 3) == 0;
		long n;

		rig_reset(g);
		p = rig_random_plan(g);
		n = rig_random(g, (unsigned)(40 + (undoing ? 9 : 14) * p->step_n));
		old = rig_tree(g);
		new = tree_after(g, p);
		if (undoing)
			apply_all(g, p);
		kills += rig_run_killed(g, p, undoing ? undo_last : apply_all, n);
		assert_ends_clean(g, p, old, new);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_rig, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_point_of_apply),
		TEST(test_each_point_of_undo),
		TEST(test_killed_twice),
		TEST(test_recovered_from_image),
		TEST(test_any_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
