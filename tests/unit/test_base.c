/* SPDX-License-Identifier: Apache-2.0 */
/* base/: arena, text, strbuf, sources, waiting for a child. */
#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/order.h"
#include "base/path.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>

static void arena_shows_overruns(void **state)
{
	struct arena *a = arena_new();
	char *first = arena_strdup(a, "123"), *array = arena_alloc(a, 3, 5);

	(void)state;
	arena_strdup(a, "a neighbour");
	assert_true(__asan_address_is_poisoned(first + 4));
	assert_true(__asan_address_is_poisoned(array + 15));
	assert_true(__asan_address_is_poisoned(array - 1));
	assert_false(__asan_address_is_poisoned(array + 14));
	arena_free(a);
}
#else
static void arena_shows_overruns(void **state)
{
	(void)state;
	SKIP("only AddressSanitizer sees overruns");
}
#endif

static void arena_grows(void **state)
{
	struct arena *a = arena_new();
	size_t *array = NULL, n = 0;

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		*ARENA_PUSH(a, array, n) = i;
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(array[i], i);
	assert_string_equal(arena_printf(a, "%0300d", 7) + 298, "07");
	arena_free(a);
}

static void numbers(void **state)
{
	uint64_t u;
	int64_t i;

	(void)state;
	assert_int_equal(text_to_u64(" 0x10\n", &u), 0);
	assert_int_equal(u, 16);
	assert_int_equal(text_to_u64("010", &u), 0);
	assert_int_equal(u, 10);
	assert_int_equal(text_to_i64("-1", &i), 0);
	assert_int_equal(i, -1);
	assert_int_equal(text_to_u64("-1", &u), -EINVAL);
	assert_int_equal(text_to_u64("", &u), -EINVAL);
	assert_int_equal(text_to_u64("12x", &u), -EINVAL);
	assert_int_equal(text_to_u64("99999999999999999999", &u), -ERANGE);
}

static void numbers_in_order(void **state)
{
	double values[] = {3, -1, 2, 10};

	(void)state;
	sort_doubles(values, 4);
	assert_true(values[0] == -1 && values[1] == 2 && values[2] == 3 && values[3] == 10);
	assert_true(median_of_sorted(values, 4) == 2.5);
	assert_true(median_of_sorted(values, 3) == 2);
	assert_true(median_of_sorted(values, 1) == -1);
}

static void paths_are_spelled_one_way(void **state)
{
	static const struct {
		const char *path, *clean;
	} cases[] = {
		{"a/b/c", "a/b/c"},
		{"nvml.json", "nvml.json"},
		{"a//b/", "a/b"},
		{"/a/./b", "a/b"},
		{"a/x/../b", "a/b"},
		{"../../a/b", "a/b"},
		{"./.env", "./.env"},
		{"/x", "./x"},
		{"x/", "./x"},
		{"a/../x", "./x"},
		{"./a/b", "a/b"},
		{"a/..", "."},
		{"", "."},
		{".", "."},
		{"a/...", "a/..."},
		{"a/.b/..c", "a/.b/..c"},
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		path_clean(cases[i].path, buf);
		assert_string_equal(buf, cases[i].clean);
		assert_true(path_is_clean(cases[i].clean));
		assert_int_equal(path_is_clean(cases[i].path),
				 strcmp(cases[i].path, cases[i].clean) == 0);
	}
}

static void a_root_has_one_slash(void **state)
{
	AUTO_FREE char *system = path_below("/", "var/cache");
	AUTO_FREE char *image = path_below("/mnt/image", "var/cache");

	(void)state;
	assert_string_equal(system, "/var/cache");
	assert_string_equal(image, "/mnt/image/var/cache");
}

static void lines_and_words(void **state)
{
	const char *text = "one\n\nthree", *l = NULL;
	size_t n, count = 0, total = 0;

	(void)state;
	while (text_next_line(&l, &n, text)) {
		count++;
		total += n;
	}
	assert_int_equal(count, 3);
	assert_int_equal(total, 8);
	assert_true(text_has_word("quiet iommu=pt", "iommu=pt"));
	assert_true(text_has_word("quiet iommu=pt", "iommu="));
	assert_false(text_has_word("quiet amd_iommu=off", "iommu="));
	assert_false(text_has_word("quietly", "quiet"));
}

static void errors_wrap(void **state)
{
	(void)state;
	assert_int_equal(err_wrap(err_set(EINVAL, "line %d: no number", 3), "file %s", "x"),
			 -EINVAL);
	assert_string_equal(err_msg(), "file x: line 3: no number");
	assert_int_equal(err_sys(ENOENT, "file %s", "x"), -ENOENT);
	assert_string_equal(err_msg(), "file x: No such file or directory");
	assert_int_equal(err_sys(99999, "file %s", "x"), -99999);
	assert_string_equal(err_msg(), "file x: Unknown error 99999");
}

/* Also of what says that it has no size. */
static void files_are_read_whole(void **state)
{
	AUTO_FREE char *big = xcalloc(9000, 1);
	char *text = NULL;
	size_t size = 0;
	int ends[2], fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fd_read_all(fd, 1 << 16, &text, &size), 0);
	assert_true(size > 10 && text[size - 1] == '\n' && text[size] == '\0');
	free(text);
	close(fd);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], big, 9000), 9000);
	assert_int_equal(fd_read_all(ends[0], 5000, &text, &size), -EFBIG);
	assert_int_equal(write(ends[1], big, 9000), 9000);
	close(ends[1]);
	assert_int_equal(fd_read_all(ends[0], 18000, &text, &size), 0);
	assert_true(size >= 9000);
	free(text);
	assert_int_equal(fd_read_all(ends[0], 0, &text, &size), 0); /* at its end */
	assert_int_equal(size, 0);
	free(text);
	close(ends[0]);
	assert_int_equal(fd_read_all(-1, 1, &text, &size), -EBADF);
}

static void map_answers(void **state)
{
	struct source *map = source_new_map("test");
	AUTO_FREE char *text = NULL, *link = NULL;
	struct source_entry *entries;
	char buf[8], **names;
	size_t n;

	(void)state;
	source_put_file(map, "a/b", " text\n", 6);
	source_put_link(map, "a/b", "../c");
	source_put_list(map, "a", "b\nd\n");
	source_put_error(map, "a/d", SOURCE_FILE, ENOENT);
	assert_int_equal(source_read(map, &text, &n, "a/%s", "b"), 0);
	assert_int_equal(n, 6);
	assert_int_equal(source_read_line(map, buf, 4, "a/b"), 0);
	assert_string_equal(buf, "tex");
	assert_int_equal(source_read_link(map, &link, "a/b"), 0);
	assert_string_equal(link, "../c");
	assert_int_equal(source_list(map, &names, &n, "a"), 0);
	assert_int_equal(n, 2);
	source_free_names(names, n);
	assert_int_equal(source_read_line(map, buf, 4, "a/d"), -ENOENT);
	assert_int_equal(source_read_line(map, buf, 4, "a/e"), -ENODATA);
	source_drop(map, "a/b");
	assert_int_equal(source_read_line(map, buf, 4, "a/b"), -ENODATA);
	entries = source_entries(map, &n);
	assert_int_equal(n, 2);
	free(entries);
	source_free(map);
}

static void tree_cannot_be_left(void **state)
{
	char dir[] = "/tmp/onehop-test-XXXXXX", path[64], buf[32], *link;
	struct source *s;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/proc", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/proc/version", dir);
	assert_int_equal(symlink("/proc/version", path), 0);
	assert_int_equal(source_open_root(dir, NULL, NULL, &s), 0);
	/* A loop, and a folder that was not copied, say nothing of the machine. */
	assert_int_equal(source_read_line(s, buf, sizeof(buf), "proc/version"), -ENODATA);
	assert_int_equal(source_read_line(s, buf, sizeof(buf), "sys/class/a/b"), -ENODATA);
	assert_int_equal(source_read_line(s, buf, sizeof(buf), "proc/cmdline"), -ENOENT);
	assert_int_equal(source_read_line(s, buf, sizeof(buf), "../etc/hostname"), -ENODATA);
	assert_int_equal(source_read_line(s, buf, sizeof(buf), "nvml.json"), -ENODATA);
	assert_int_equal(source_read_link(s, &link, "proc/version"), 0);
	assert_string_equal(link, "/proc/version");
	free(link);
	assert_int_equal(source_read_link(s, &link, "proc"), -EINVAL);
	assert_int_equal(source_read_link(s, &link, "sys"), -ENOENT);
	source_free(s);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(dir);
}

/* A map keeps a listing as one name a line, where a name of two lines would become two names. */
static void tee_leaves_out_names_of_two_lines(void **state)
{
	char dir[] = "/tmp/onehop-test-XXXXXX", path[64], **names;
	struct source *from, *to = source_new_map("to"), *tee;
	size_t n;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a\nb", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(source_open_root(dir, NULL, NULL, &from), 0);
	tee = source_new_tee(from, to);
	assert_int_equal(source_list(tee, &names, &n, "."), 0);
	assert_int_equal(n, 1);
	assert_string_equal(names[0], "a\nb");
	source_free_names(names, n);
	assert_int_equal(source_list(to, &names, &n, "."), 0);
	assert_int_equal(n, 0);
	source_free_names(names, n);
	source_free(tee);
	source_free(from);
	source_free(to);
	rmdir(path);
	rmdir(dir);
}

static void tee_replays(void **state)
{
	struct source *from = source_new_map("from"), *to = source_new_map("to");
	struct source *tee = source_new_tee(from, to);
	char buf[16];

	(void)state;
	source_put_file(from, "x/y", "1\n", 2);
	assert_int_equal(source_read_line(tee, buf, sizeof(buf), "x/y"), 0);
	assert_int_equal(source_read_line(tee, buf, sizeof(buf), "x/z"), -ENODATA);
	assert_int_equal(source_read_line(to, buf, sizeof(buf), "x/y"), 0);
	assert_string_equal(buf, "1");
	assert_int_equal(source_read_line(to, buf, sizeof(buf), "x/z"), -ENODATA);
	source_free(tee);
	source_free(from);
	source_free(to);
}

/* The child ends once its pipe is closed. */
static void a_child_is_waited_for(void **state)
{
	int ends[2], status = 0;
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) == 0 ? 7 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(child_wait(pid, 0, &status), -ETIMEDOUT);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(child_wait(pid, 60000000, &status), 0);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(child_wait(pid, 0, &status), -ECHILD);
}

/* `onehop log <(command)`: its writer may need some time. */
static void what_a_pipe_does_not_have_yet_is_waited_for(void **state)
{
	char path[32], byte = 0;
	int ends[2], fd;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	fd = file_open(path);
	assert_true(fd >= 0);
	assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void nothing_is_added(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};

	(void)state;
	strbuf_add(&b, NULL, 0);
	assert_string_equal(strbuf_str(&b), "");
	strbuf_puts(&b, "a");
	strbuf_add(&b, NULL, 0);
	assert_string_equal(strbuf_str(&b), "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_added),
		cmocka_unit_test(arena_grows),
		cmocka_unit_test(arena_shows_overruns),
		cmocka_unit_test(numbers),
		cmocka_unit_test(numbers_in_order),
		cmocka_unit_test(what_a_pipe_does_not_have_yet_is_waited_for),
		cmocka_unit_test(paths_are_spelled_one_way),
		cmocka_unit_test(a_root_has_one_slash),
		cmocka_unit_test(lines_and_words),
		cmocka_unit_test(errors_wrap),
		cmocka_unit_test(files_are_read_whole),
		cmocka_unit_test(map_answers),
		cmocka_unit_test(tree_cannot_be_left),
		cmocka_unit_test(tee_leaves_out_names_of_two_lines),
		cmocka_unit_test(tee_replays),
		cmocka_unit_test(a_child_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
