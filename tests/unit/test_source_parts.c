/* SPDX-License-Identifier: Apache-2.0 */
/* A tree whose parts are not what was published as its release: changed, or of two releases. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "made_tree.h"
#include "unlock/known_sources.h"
#include "unlock/unlock.h"

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RELEASE "999.01"
#define OTHER   "999.02"

/* ---- a list of releases in place of the program's ---- */

static char hashes[2][SOURCE_FOLDERS][SHA256_TEXT];
static struct known_source known[2] = {{.release = RELEASE, .hash = ""},
				       {.release = OTHER, .hash = ""}};

const struct known_source *known_source_table(size_t *ret_n)
{
	*ret_n = 2;
	return known;
}

const struct known_source *known_source_find(const char *release)
{
	for (size_t i = 0; i < 2; i++)
		if (strcmp(known[i].release, release) == 0)
			return &known[i];
	return NULL;
}

/* ---- trees ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/*
 * Two releases differ in a file of the core that no edit touches, and in one that says what they
 * are.
 */
static void write_release(const char *dir, const char *release)
{
	AUTO_FREE char *says = xprintf("#define NV_VERSION_STRING \"%s\"\n", release);
	struct made_tree t;

	made_up(&t, ERA_580);
	made_write(&t, dir, release);
	made_done(&t);
	made_put(dir, "src/common/inc/nvUnixVersion.h", says, strlen(says));
	made_put(dir, "src/nvidia/src/other.c", release, strlen(release));
	made_put(dir, "kernel-open/nvidia-uvm/other.c", release, strlen(release));
	made_put(dir, "kernel-open/other.c", release, strlen(release));
}

static void know(size_t i, const char *dir)
{
	struct tree t;

	assert_int_equal(tree_open(dir, &t), 0);
	for (size_t k = 0; k < SOURCE_FOLDERS; k++)
		if (source_hash_part(&t, source_parts[k], hashes[i][k]) == 0)
			known[i].parts[k] = hashes[i][k];
	tree_close(&t);
}

static int make_tree(void **state)
{
	char *dir = xprintf("%s/onehop-parts-XXXXXX",
			    access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");

	assert_non_null(mkdtemp(dir));
	write_release(dir, OTHER);
	know(1, dir);
	write_release(dir, RELEASE);
	know(0, dir);
	*state = dir;
	return 0;
}

static int remove_tree(void **state)
{
	nftw(*state, remove_one, 64, FTW_DEPTH | FTW_PHYS);
	free(*state);
	return 0;
}

/* NULL, or the parts that changed. */
static void expect_changed(const char *dir, const char *parts)
{
	struct unlock *u = NULL;

	if (unlock_open(dir, &(struct unlock_options){0}, &u) < 0)
		fail_msg("%s", err_msg());
	if (parts)
		assert_string_equal(u->changed, parts);
	else
		assert_null(u->changed);
	unlock_close(u);
}

/* ---- tests ---- */

static void as_published(void **state)
{
	expect_changed(*state, NULL);
}

static void a_change_is_named(void **state)
{
	made_put(*state, "src/nvidia/src/other.c", "changed", 7);
	expect_changed(*state, "src/nvidia");
	made_put(*state, "kernel-open/added.c", "", 0);
	expect_changed(*state, "kernel-open, src/nvidia");
	made_put(*state, "kernel-open/nvidia-uvm/added.c", "", 0);
	made_put(*state, "kernel-open/nvidia/added.c", "", 0);
	expect_changed(*state, "kernel-open (including nvidia, nvidia-uvm), src/nvidia");
}

/* No file that says of which release it is gives this away. */
static void a_part_of_another_release_is_refused(void **state)
{
	struct unlock *u = NULL;

	made_put(*state, "src/nvidia/src/other.c", OTHER, strlen(OTHER));
	assert_int_equal(unlock_open(*state, &(struct unlock_options){0}, &u), -EINVAL);
	assert_non_null(strstr(err_msg(), "mixes two releases: version.mk is of " RELEASE));
	assert_non_null(strstr(err_msg(), "the files in src/nvidia are those of " OTHER));
	assert_int_equal(unlock_apply(*state, &(struct unlock_options){0}, &u), -EINVAL);
}

/* The folder around it is of no release then; a person's change next to it does not hide it. */
static void a_folder_of_another_release_is_refused(void **state)
{
	struct unlock *u = NULL;

	made_put(*state, "kernel-open/nvidia-uvm/other.c", "changed", 7);
	expect_changed(*state, "kernel-open (including nvidia-uvm)");
	made_put(*state, "kernel-open/nvidia-uvm/other.c", OTHER, strlen(OTHER));
	made_put(*state, "kernel-open/added.c", "", 0);
	assert_int_equal(unlock_open(*state, &(struct unlock_options){0}, &u), -EINVAL);
	assert_non_null(strstr(err_msg(), "mixes two releases: version.mk is of " RELEASE));
	assert_non_null(
		strstr(err_msg(), "the files in kernel-open/nvidia-uvm are those of " OTHER));
}

static void a_part_that_two_releases_share_is_its_own(void **state)
{
	const char *was = known[0].parts[2];

	made_put(*state, "src/nvidia/src/other.c", OTHER, strlen(OTHER));
	known[0].parts[2] = known[1].parts[2];
	expect_changed(*state, NULL);
	known[0].parts[2] = was;
}

static void our_edits_are_no_change(void **state)
{
	struct unlock *u = NULL;

	assert_int_equal(unlock_apply(*state, &(struct unlock_options){0}, &u), 0);
	assert_null(u->changed);
	unlock_close(u);
	expect_changed(*state, NULL);
	made_put(*state, "src/nvidia/src/other.c", "changed", 7);
	expect_changed(*state, "src/nvidia");
}

static void what_git_and_make_leave_is_no_change(void **state)
{
	AUTO_FREE char *link = xprintf("%s/kernel-open/nvidia/nv-kernel.o_binary", (char *)*state);

	made_put(*state, ".git/HEAD", "ref", 3);
	made_put(*state, "kernel-open/nvidia/nv.o", "made", 4);
	made_put(*state, "kernel-open/conftest/headers.h", "made", 4);
	made_put(*state, "src/nvidia/_out/Linux_x86_64/nv-kernel.o", "made", 4);
	assert_int_equal(symlink("../../src/nvidia/_out/Linux_x86_64/nv-kernel.o", link), 0);
	expect_changed(*state, NULL);
}

static void of_an_unknown_release_nothing_is_said(void **state)
{
	write_release(*state, "999.03");
	expect_changed(*state, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_tree, remove_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(as_published),
		TEST(a_change_is_named),
		TEST(a_part_of_another_release_is_refused),
		TEST(a_folder_of_another_release_is_refused),
		TEST(a_part_that_two_releases_share_is_its_own),
		TEST(our_edits_are_no_change),
		TEST(what_git_and_make_leave_is_no_change),
		TEST(of_an_unknown_release_nothing_is_said),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	made_forget();
	return failed;
}
