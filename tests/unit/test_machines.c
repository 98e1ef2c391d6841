/* SPDX-License-Identifier: Apache-2.0 */
/* Every recorded machine: its note says where it comes from, and writing it is the inverse of
 * reading it. */
#include "recording/recording.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/text.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define MACHINES "tests/machines"

static struct source *open_recording(const char *path)
{
	struct source *s = NULL;

	if (recording_open(path, &s) < 0)
		fail_msg("%s: %s", path, err_msg());
	return s;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void save(struct source *s, const char *path)
{
	if (recording_save(s, path, NULL) < 0)
		fail_msg("%s: %s", path, err_msg());
}

static void assert_same_file(const char *machine, const char *a, const char *b)
{
	AUTO_FREE char *x = NULL, *y = NULL;
	struct source *root = NULL;
	size_t n, k;

	assert_int_equal(source_open_root("/", NULL, NULL, &root), 0);
	assert_int_equal(source_read(root, &x, &n, "%s", a + 1), 0);
	if (source_read(root, &y, &k, "%s", b + 1) < 0)
		fail_msg("%s: the second copy lacks %s", machine, a);
	source_free(root);
	if (n != k || (n && memcmp(x, y, n) != 0))
		fail_msg("%s: %s differs between first and second copy", machine, a);
}

static void assert_same_folder(const char *machine, const char *a, const char *b)
{
	struct source *x = NULL, *y = NULL;
	char **names, **others;
	size_t n, k;

	assert_int_equal(source_open_root(a, NULL, NULL, &x), 0);
	assert_int_equal(source_open_root(b, NULL, NULL, &y), 0);
	assert_int_equal(source_list(x, &names, &n, "."), 0);
	assert_int_equal(source_list(y, &others, &k, "."), 0);
	assert_int_equal(n, k);
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *p = xprintf("%s%s", a, names[i]), *q = xprintf("%s%s", b, names[i]);

		assert_same_file(machine, p, q);
	}
	source_free_names(names, n);
	source_free_names(others, k);
	source_free(x);
	source_free(y);
}

/* Entries of the map itself: nothing is lost and nothing is added on the way through the files. */
static void assert_same_entries(const char *machine, struct source *a, struct source *b)
{
	AUTO_FREE struct source_entry *x = NULL, *y = NULL;
	size_t n, k;

	x = source_entries(a, &n);
	y = source_entries(b, &k);
	if (n != k)
		fail_msg("%s: %zu entries became %zu", machine, n, k);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(x[i].path, y[i].path) != 0 || x[i].kind != y[i].kind)
			fail_msg("%s: %s became %s", machine, x[i].path, y[i].path);
		if (x[i].error != y[i].error || x[i].size != y[i].size ||
		    (x[i].size && memcmp(x[i].data, y[i].data, x[i].size) != 0))
			fail_msg("%s: %s changed", machine, x[i].path);
	}
}

static void round_trip(const char *machine, const char *tmp)
{
	AUTO_FREE char *path = xprintf(MACHINES "/%s", machine);
	AUTO_FREE char *first = xprintf("%s/first/", tmp), *second = xprintf("%s/second/", tmp);
	AUTO_FREE char *pack = xprintf("%s/first.tar.gz", tmp);
	AUTO_FREE char *again = xprintf("%s/second.tar.gz", tmp);
	struct source *s = open_recording(path), *copy, *packed;

	save(s, first);
	copy = open_recording(first);
	assert_same_entries(machine, s, copy);
	save(copy, second);
	assert_same_folder(machine, first, second);

	save(s, pack);
	packed = open_recording(pack);
	assert_same_entries(machine, s, packed);
	save(packed, again);
	assert_same_file(machine, pack, again);

	source_free(s);
	source_free(copy);
	source_free(packed);
	remove_tree(first);
	remove_tree(second);
	unlink(pack);
	unlink(again);
}

/* Calls do_one for each recorded machine; returns how many there are. */
static size_t for_each_machine(void (*do_one)(const char *machine, const char *tmp),
			       const char *tmp)
{
	struct source *root = NULL;
	char **names;
	size_t n, machines = 0;

	assert_int_equal(source_open_root(MACHINES, NULL, NULL, &root), 0);
	assert_int_equal(source_list(root, &names, &n, "."), 0);
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *path = xprintf(MACHINES "/%s", names[i]);
		struct stat st;

		if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		do_one(names[i], tmp);
		machines++;
	}
	source_free_names(names, n);
	source_free(root);
	return machines;
}

static void recordings_round_trip(void **state)
{
	char tmp[] = "/tmp/onehop-test-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(tmp));
	assert_true(for_each_machine(round_trip, tmp) > 0);
	remove_tree(tmp);
}

/* "origin: real (who published it)" and two or more lines on what it is. */
static void check_note(const char *machine, const char *tmp)
{
	static const char *const origins[] = {"real (", "guest (", "reconstructed (", "made-up ("};
	AUTO_FREE char *path = xprintf(MACHINES "/%s", machine);
	AUTO_FREE char *note = NULL;
	struct source *s = open_recording(path);
	size_t size, lines = 0;
	bool known = false;

	(void)tmp;
	if (source_read(s, &note, &size, "note.txt") < 0)
		fail_msg("%s has no note.txt", machine);
	if (!text_starts_with(note, "origin: "))
		fail_msg("%s/note.txt does not start with 'origin: '", machine);
	for (size_t i = 0; i < sizeof(origins) / sizeof(*origins); i++)
		known |= text_starts_with(note + strlen("origin: "), origins[i]);
	if (!known)
		fail_msg("%s/note.txt: the origin is real, guest, reconstructed or made-up, with "
			 "its source in brackets",
			 machine);
	for (const char *c = note; *c; c++)
		lines += *c == '\n';
	if (lines < 3)
		fail_msg("%s/note.txt has %zu lines instead of three", machine, lines);
	source_free(s);
}

static void notes_say_where_from(void **state)
{
	(void)state;
	for_each_machine(check_note, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recordings_round_trip),
		cmocka_unit_test(notes_say_where_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
