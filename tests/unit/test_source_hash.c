/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a tree, the archives that trees come in, and the list of releases that are known. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "made_tree.h"
#include "support/release.h"
#include "unlock/eras.h"
#include "unlock/known_sources.h"
#include "unlock/source_hash.h"
#include "unlock/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* printf 'all:\n' >Makefile; printf x >src/a.c; printf y >src-b; then as source_hash.h says. */
#define KNOWN_HASH "a8973b8f24677ee6012c424033aea37c15e15dcfd534366919fc2bbc354870ea"

struct rig {
	char dir[64];
	char *tree; /* a folder in it, so that what gets out of the tree can be seen */
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int make_rig(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));

	snprintf(r->dir, sizeof(r->dir), "%s/onehop-hash-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(r->dir));
	r->tree = xprintf("%s/tree", r->dir);
	made_put(r->tree, "Makefile", "all:\n", 5);
	made_put(r->tree, "src/a.c", "x", 1);
	made_put(r->tree, "src-b", "y", 1);
	*state = r;
	return 0;
}

static int remove_rig(void **state)
{
	struct rig *r = *state;

	nftw(r->dir, remove_one, 64, FTW_DEPTH | FTW_PHYS);
	free(r->tree);
	free(r);
	return 0;
}

/* ---- the hash ---- */

static int hash_of(const struct rig *r, char ret[static SHA256_TEXT])
{
	struct tree t;
	int e;

	assert_int_equal(tree_open(r->tree, &t), 0);
	e = source_hash(&t, ret);
	tree_close(&t);
	return e;
}

static bool is_known(const struct rig *r)
{
	char hash[SHA256_TEXT];

	assert_int_equal(hash_of(r, hash), 0);
	return strcmp(hash, KNOWN_HASH) == 0;
}

static char *path_in(const struct rig *r, const char *path)
{
	return xprintf("%s/%s", r->tree, path);
}

static void it_is_what_sha256sum_gives(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *folder = path_in(r, "empty");
	AUTO_FREE char *file = path_in(r, "src/a.c");

	assert_true(is_known(r));
	assert_int_equal(mkdir(folder, 0755), 0);
	assert_int_equal(chmod(file, 0755), 0);
	assert_true(is_known(r));
}

static void every_file_counts(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *file = path_in(r, "src/a.c");
	AUTO_FREE char *other = path_in(r, "src/b.c");
	AUTO_FREE char *added = path_in(r, "GNUmakefile");

	made_put(r->tree, "GNUmakefile", "", 0);
	assert_false(is_known(r));
	assert_int_equal(unlink(added), 0);
	assert_true(is_known(r));
	made_put(r->tree, "src/a.c", "X", 1);
	assert_false(is_known(r));
	made_put(r->tree, "src/a.c", "x", 1);
	assert_true(is_known(r));
	assert_int_equal(rename(file, other), 0);
	assert_false(is_known(r));
	assert_int_equal(unlink(other), 0);
	assert_false(is_known(r));
}

static void what_is_no_file_is_refused(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *link = path_in(r, "src/link.c");
	AUTO_FREE char *pipe = path_in(r, "src/pipe");
	char hash[SHA256_TEXT];

	assert_int_equal(symlink("a.c", link), 0);
	assert_int_equal(hash_of(r, hash), -EINVAL);
	assert_non_null(strstr(err_msg(), "src/link.c is not a regular file"));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(hash_of(r, hash), -EINVAL);
	assert_int_equal(unlink(pipe), 0);
	/* Two lines in one name. */
	made_put(r->tree, "src\nx", "", 0);
	assert_int_equal(hash_of(r, hash), -EINVAL);
}

/* printf x >src/a.c; sha256sum src/a.c | sha256sum */
#define KNOWN_PART "a78911dd9f2e79b6061390b260a213b71af81765e2e84550f257c10987676179"

static bool is_known_part(const struct rig *r)
{
	char hash[SHA256_TEXT];
	struct tree t;

	assert_int_equal(tree_open(r->tree, &t), 0);
	assert_int_equal(source_hash_part(&t, "src", hash), 0);
	assert_int_equal(source_hash_part(&t, "other", hash), -ENOENT);
	assert_int_equal(source_hash_part(&t, "src", hash), 0);
	tree_close(&t);
	return strcmp(hash, KNOWN_PART) == 0;
}

static void a_part_is_hashed_alone(void **state)
{
	struct rig *r = *state;
	AUTO_FREE char *link = path_in(r, "src/nv-kernel.o_binary");

	assert_true(is_known_part(r));
	made_put(r->tree, "src-b", "z", 1);
	made_put(r->tree, "src/a.o", "made", 4);
	made_put(r->tree, "src/_out/a.c", "made", 4);
	assert_int_equal(symlink("a.o", link), 0);
	assert_true(is_known_part(r));
	made_put(r->tree, "src/b.c", "", 0);
	assert_false(is_known_part(r));
}

/* ---- archives ---- */

struct entry {
	const char *path;
	unsigned type;
	const char *link, *hard_link;
	const char *data;
	int perm;
};

static void add_entry(struct archive *a, const struct entry *e, size_t size)
{
	struct archive_entry *x = archive_entry_new();

	archive_entry_set_pathname(x, e->path);
	archive_entry_set_filetype(x, e->type);
	archive_entry_set_perm(x, e->perm ? (unsigned)e->perm : 0644);
	archive_entry_set_size(x, (la_int64_t)size);
	if (e->link)
		archive_entry_set_symlink(x, e->link);
	if (e->hard_link)
		archive_entry_set_hardlink(x, e->hard_link);
	assert_int_equal(archive_write_header(a, x), ARCHIVE_OK);
	archive_entry_free(x);
}

static struct archive *begin(const struct rig *r)
{
	AUTO_FREE char *path = xprintf("%s/archive", r->dir);
	struct archive *a = archive_write_new();

	archive_write_add_filter_gzip(a);
	archive_write_set_format_pax_restricted(a);
	assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
	return a;
}

static void end(struct archive *a)
{
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
}

static void pack(const struct rig *r, const struct entry *entries, size_t n)
{
	struct archive *a = begin(r);

	for (size_t i = 0; i < n; i++) {
		size_t size = entries[i].data ? strlen(entries[i].data) : 0;

		add_entry(a, &entries[i], size);
		if (size)
			assert_int_equal(archive_write_data(a, entries[i].data, size), size);
	}
	end(a);
}

/* Into an empty tree. */
static int unpack(const struct rig *r)
{
	AUTO_FREE char *path = xprintf("%s/archive", r->dir);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct tree t;
	int e;

	assert_true(fd >= 0);
	nftw(r->tree, remove_one, 64, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(mkdir(r->tree, 0755), 0);
	assert_int_equal(tree_open(r->tree, &t), 0);
	e = archive_unpack(fd, "archive", &t);
	tree_close(&t);
	return e;
}

static void a_release_is_unpacked(void **state)
{
	struct rig *r = *state;
	const struct entry entries[] = {
		{"release-1/", AE_IFDIR, NULL, NULL, NULL, 0755},
		{"release-1/Makefile", AE_IFREG, NULL, NULL, "all:\n", 0},
		{"release-1/src/a.c", AE_IFREG, NULL, NULL, "x", 0777},
		{"release-1/src-b", AE_IFREG, NULL, NULL, "y", 04640},
	};
	AUTO_FREE char *plain = path_in(r, "src-b");
	AUTO_FREE char *program = path_in(r, "src/a.c");
	struct stat st;

	pack(r, entries, 4);
	assert_int_equal(unpack(r), 0);
	assert_true(is_known(r));
	assert_int_equal(stat(plain, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(stat(program, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
}

static size_t count_in(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void nothing_gets_out_of_the_tree(void **state)
{
	struct rig *r = *state;
	static const struct entry evil[] = {
		{"../evil", AE_IFREG, NULL, NULL, "!", 0},
		{"x/../evil", AE_IFREG, NULL, NULL, "!", 0},
		{"x/../../evil", AE_IFREG, NULL, NULL, "!", 0},
		{"x/a/../../../evil", AE_IFREG, NULL, NULL, "!", 0},
		{"/tmp/onehop-evil", AE_IFREG, NULL, NULL, "!", 0},
		{"x//tmp/onehop-evil", AE_IFREG, NULL, NULL, "!", 0},
		{"evil", AE_IFREG, NULL, NULL, "!", 0},
		{"x/", AE_IFREG, NULL, NULL, "!", 0},
		{"x/a\nb", AE_IFREG, NULL, NULL, "!", 0},
		{"x/link", AE_IFLNK, "/etc", NULL, NULL, 0},
		{"x/link", AE_IFLNK, "..", NULL, NULL, 0},
		{"x/hard", AE_IFREG, NULL, "/etc/passwd", NULL, 0},
		{"x/pipe", AE_IFIFO, NULL, NULL, NULL, 0},
		{"x/disk", AE_IFBLK, NULL, NULL, NULL, 0},
	};

	for (size_t i = 0; i < sizeof(evil) / sizeof(evil[0]); i++) {
		pack(r, &evil[i], 1);
		if (unpack(r) != -EINVAL)
			fail_msg("row %zu, '%s', is taken", i, evil[i].path);
		assert_int_equal(count_in(r->tree), 2);
		assert_int_equal(count_in(r->dir), 4); /* ".", "..", archive, tree */
		assert_int_equal(access("/tmp/onehop-evil", F_OK), -1);
	}
}

/* A link that an earlier entry might have left would lead the next one out. */
static void links_on_the_way_are_not_followed(void **state)
{
	struct rig *r = *state;
	const struct entry file = {"x/out/evil", AE_IFREG, NULL, NULL, "!", 0};
	AUTO_FREE char *link = path_in(r, "out");
	AUTO_FREE char *path = xprintf("%s/archive", r->dir);
	AUTO_CLOSE int fd = -1;
	struct tree t;

	pack(r, &file, 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symlink("..", link), 0);
	assert_int_equal(tree_open(r->tree, &t), 0);
	assert_true(archive_unpack(fd, "archive", &t) < 0);
	tree_close(&t);
	assert_int_equal(count_in(r->dir), 4);
}

static void more_than_a_release_is_refused(void **state)
{
	struct rig *r = *state;
	const struct entry file = {"x/zeros", AE_IFREG, NULL, NULL, NULL, 0};
	const struct entry folder = {"x/y", AE_IFDIR, NULL, NULL, NULL, 0755};
	static const char zeros[1 << 20];
	struct archive *a = begin(r);

	add_entry(a, &file, SOURCE_FILE_MAX + sizeof(zeros));
	for (size_t i = 0; i <= SOURCE_FILE_MAX; i += sizeof(zeros))
		assert_int_equal(archive_write_data(a, zeros, sizeof(zeros)), sizeof(zeros));
	end(a);
	assert_int_equal(unpack(r), -EINVAL);
	assert_non_null(strstr(err_msg(), "is too large"));

	a = begin(r);
	for (size_t i = 0; i <= SOURCE_FILES_MAX; i++)
		add_entry(a, &folder, 0);
	end(a);
	assert_int_equal(unpack(r), -EINVAL);
	assert_non_null(strstr(err_msg(), "one entry too many"));
}

/* Such an archive never becomes a tree, so the next run must not go on with it. */
static void a_file_and_a_folder_of_one_name_are_refused(void **state)
{
	struct rig *r = *state;
	static const struct entry first[] = {
		{"x/a", AE_IFREG, NULL, NULL, "!", 0},
		{"x/a/b", AE_IFREG, NULL, NULL, "!", 0},
		{"x/a", AE_IFREG, NULL, NULL, "!", 0},
	};
	char name[300], path[310];
	const struct entry too_long = {path, AE_IFREG, NULL, NULL, "!", 0};

	for (size_t i = 0; i < 2; i++) {
		pack(r, first + i, 2);
		assert_int_equal(unpack(r), -EINVAL);
		assert_non_null(strstr(err_msg(), "conflicts with another path"));
	}
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(path, sizeof(path), "x/%s", name);
	pack(r, &too_long, 1);
	assert_int_equal(unpack(r), -EINVAL);
}

/* Gigabytes may be packed into the rest of such an entry. */
static void what_is_refused_is_not_read_to_its_end(void **state)
{
	struct rig *r = *state;
	const struct entry outside = {"x/../zeros", AE_IFREG, NULL, NULL, NULL, 0};
	const struct entry last = {"x/a.c", AE_IFREG, NULL, NULL, NULL, 0};
	static char noise[1 << 20]; /* which gzip leaves as large as it is */
	AUTO_FREE char *path = xprintf("%s/archive", r->dir);
	struct archive *a = begin(r);
	struct tree t;
	unsigned x = 1;
	int fd;

	for (size_t i = 0; i < sizeof(noise); i++) {
		x = x * 1103515245 + 12345;
		noise[i] = (char)(x >> 16);
	}
	add_entry(a, &outside, sizeof(noise));
	assert_int_equal(archive_write_data(a, noise, sizeof(noise)), sizeof(noise));
	add_entry(a, &last, 0);
	end(a);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(tree_open(r->tree, &t), 0);
	assert_int_equal(archive_unpack(fd, "archive", &t), -EINVAL);
	tree_close(&t);
	assert_true(lseek(fd, 0, SEEK_CUR) < (off_t)sizeof(noise) / 2);
	close(fd);
}

static void cut_off_it_is_refused(void **state)
{
	struct rig *r = *state;
	const struct entry file = {"x/a.c", AE_IFREG, NULL, NULL, "int x;", 0};
	AUTO_FREE char *path = xprintf("%s/archive", r->dir);
	struct stat st;

	pack(r, &file, 1);
	assert_int_equal(unpack(r), 0);
	assert_int_equal(stat(path, &st), 0);
	for (off_t n = 0; n < st.st_size - 8; n += 7) { /* 8: gzip's own check of what came */
		assert_int_equal(truncate(path, st.st_size - 8 - n), 0);
		assert_int_equal(unpack(r), -EINVAL);
	}
}

/* ---- the list ---- */

static void the_list_is_of_the_releases_that_are_known(void **state)
{
	size_t n;
	const struct known_source *known = known_source_table(&n);

	(void)state;
	assert_int_equal(n, 144);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(strlen(known[i].hash), SHA256_TEXT - 1);
		assert_int_equal(strspn(known[i].hash, "0123456789abcdef"), SHA256_TEXT - 1);
		assert_true(i == 0 || strverscmp(known[i - 1].release, known[i].release) < 0);
		assert_true(release_tried((int)strtol(known[i].release, NULL, 10)));
		assert_ptr_equal(known_source_find(known[i].release), &known[i]);
	}
	assert_null(known_source_find("610.43.02"));
	for (size_t i = 0; i < ERA_N; i++) {
		assert_non_null(known_source_find(era_names[i].first));
		assert_non_null(known_source_find(era_names[i].last));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_rig, remove_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_what_sha256sum_gives),
		TEST(every_file_counts),
		TEST(what_is_no_file_is_refused),
		TEST(a_part_is_hashed_alone),
		TEST(a_release_is_unpacked),
		TEST(nothing_gets_out_of_the_tree),
		TEST(links_on_the_way_are_not_followed),
		TEST(more_than_a_release_is_refused),
		TEST(a_file_and_a_folder_of_one_name_are_refused),
		TEST(what_is_refused_is_not_read_to_its_end),
		TEST(cut_off_it_is_refused),
		cmocka_unit_test(the_list_is_of_the_releases_that_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
