/* SPDX-License-Identifier: Apache-2.0 */
/* unlock/edit.c, sha256.c and headers.c: edits made and shown, hashes, what kernel headers say. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "unlock/edit.h"
#include "unlock/headers.h"
#include "unlock/sha256.h"

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- edits ---- */

static const char text[] = "1\n2\n3\n4\n  five x\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17";

static void check_diff(const struct edit *edits, size_t n, const char *want)
{
	AUTO_STRBUF struct strbuf b = {0};

	edits_diff("a.c", text, strlen(text), edits, n, &b);
	assert_string_equal(strbuf_str(&b), want);
}

static size_t at(const char *what)
{
	return (size_t)(strstr(text, what) - text);
}

static void applied(void **state)
{
	const struct edit edits[] = {{0, 0, "0\n"},
				     {at("five"), at("five") + 4, "FIVE"},
				     {strlen(text), strlen(text), "\n18\n"}};
	AUTO_STRBUF struct strbuf b = {0};
	size_t n;

	(void)state;
	edits_apply(text, strlen(text), edits, 3, &b);
	assert_string_equal(strbuf_str(&b),
			    "0\n1\n2\n3\n4\n  FIVE x\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17"
			    "\n18\n");
	assert_memory_equal(indent_of(text, at("five"), &n), "  ", 2);
	assert_int_equal(n, 2);
	indent_of(text, at("6"), &n);
	assert_int_equal(n, 0);
}

static void shown(void **state)
{
	const struct edit insert = {at("five"), at("five"), "new\n  "};
	const struct edit replace = {at("five"), at("five") + 4, "FIVE"};
	const struct edit behind = {at(" x") + 2, at(" x") + 2, "\n  more"};
	const struct edit first = {0, 0, "0\n"};
	const struct edit last = {strlen(text), strlen(text), "\n18\n"};
	const struct edit near[] = {replace, {at("12"), at("12"), "a\n"}};
	const struct edit far[] = {replace, {at("13"), at("13"), "a\n"}};

	(void)state;
	check_diff(NULL, 0, "");
	check_diff(
		&insert, 1,
		"--- a/a.c\n+++ b/a.c\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+  new\n   five x\n 6\n 7\n");
	check_diff(&replace, 1,
		   "--- a/a.c\n+++ b/a.c\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-  five x\n+  FIVE x\n 6\n "
		   "7\n 8\n");
	check_diff(
		&behind, 1,
		"--- a/a.c\n+++ b/a.c\n@@ -3,6 +3,7 @@\n 3\n 4\n   five x\n+  more\n 6\n 7\n 8\n");
	check_diff(&first, 1, "--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n");
	check_diff(&last, 1,
		   "--- a/a.c\n+++ b/a.c\n@@ -14,4 +14,5 @@\n 14\n 15\n 16\n-17\n"
		   "\\ No newline at end of file\n+17\n+18\n");
	check_diff(near, 2,
		   "--- a/a.c\n+++ b/a.c\n@@ -2,13 +2,14 @@\n 2\n 3\n 4\n-  five x\n+  FIVE x\n "
		   "6\n 7\n 8\n 9\n"
		   " 10\n 11\n+a\n 12\n 13\n 14\n");
	check_diff(far, 2,
		   "--- a/a.c\n+++ b/a.c\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-  five x\n+  FIVE x\n 6\n "
		   "7\n 8\n"
		   "@@ -10,6 +10,7 @@\n 10\n 11\n 12\n+a\n 13\n 14\n 15\n");
}

/* ---- hashes: the examples of FIPS 180 ---- */

static void check_hash(const char *data, size_t size, const char *want)
{
	char got[SHA256_TEXT];

	sha256(data, size, got);
	assert_string_equal(got, want);
}

static void hashes(void **state)
{
	AUTO_FREE char *million = xmalloc(1000000);

	(void)state;
	memset(million, 'a', 1000000);
	check_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
		   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check_hash(million, 1000000,
		   "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* ---- headers ---- */

static void put(const char *dir, const char *path, const char *content)
{
	AUTO_FREE char *full = xprintf("%s/%s", dir, path);
	AUTO_FCLOSE FILE *f = NULL;

	for (char *s = full + strlen(dir) + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
		*s = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(content, 1, strlen(content), f), strlen(content));
}

static int arguments_of(const char *dir)
{
	int n = -1;

	assert_int_equal(headers_resize_arguments(dir, &n), 0);
	return n;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st;
	(void)type;
	(void)place;
	return remove(path);
}

#define PCI_H "include/linux/pci.h"

static void headers(void **state)
{
	char dir[] = "/tmp/onehop-headers-XXXXXX";
	AUTO_FREE char *build = NULL;
	AUTO_FREE char *makefile = NULL;
	int n = 7;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_true(headers_resize_arguments(dir, &n) < 0);
	assert_int_equal(n, 7);
	assert_non_null(strstr(err_msg(), PCI_H));
	put(dir, PCI_H, "/* pci_resize_resource(a, b, c, d) */\nint pci_other(int);\n");
	assert_int_equal(arguments_of(dir), 0);
	put(dir, PCI_H,
	    "int __must_check\npci_resize_resource(struct d *d,\n int i, int (*f)(int, int));\n");
	assert_int_equal(arguments_of(dir), 3);
	put(dir, PCI_H, "int pci_resize_resource(struct d *d, int i, int size, int exclude);\n");
	assert_int_equal(arguments_of(dir), 4);
	put(dir, PCI_H, "int pci_resize_resource(struct d *d);\n");
	assert_true(headers_resize_arguments(dir, &n) < 0);

	/* a build folder whose sources are beside it, or in a package that all flavours share */
	put(dir, "common/" PCI_H, "int pci_resize_resource(int, int, int, int);\n");
	put(dir, "6.1/source/" PCI_H, "int pci_resize_resource(int, int, int);\n");
	put(dir, "6.1/build/empty", "");
	build = xprintf("%s/6.1/build", dir);
	assert_int_equal(arguments_of(build), 3);
	free(build);
	build = xprintf("%s/flavour/x", dir);
	makefile = xprintf("ifdef A\nendif\ninclude %s/common/Makefile\n", dir);
	put(dir, "flavour/x/Makefile", makefile);
	assert_int_equal(arguments_of(build), 4);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(applied),
		cmocka_unit_test(shown),
		cmocka_unit_test(hashes),
		cmocka_unit_test(headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
