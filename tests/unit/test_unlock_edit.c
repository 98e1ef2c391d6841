/* SPDX-License-Identifier: Apache-2.0 */
/* unlock/edit.c and fix/sha256.c: edits made and shown, hashes. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "fix/sha256.h"
#include "unlock/edit.h"

#include <cmocka.h>
#include <string.h>

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
	assert_string_equal(
		strbuf_str(&b),
		"0\n1\n2\n3\n4\n  FIVE x\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n");
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
	check_diff(
		&replace, 1,
		"--- a/a.c\n+++ b/a.c\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-  five x\n+  FIVE x\n 6\n 7\n "
		"8\n");
	check_diff(
		&behind, 1,
		"--- a/a.c\n+++ b/a.c\n@@ -3,6 +3,7 @@\n 3\n 4\n   five x\n+  more\n 6\n 7\n 8\n");
	check_diff(&first, 1, "--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n");
	check_diff(&last, 1,
		   "--- a/a.c\n+++ b/a.c\n@@ -14,4 +14,5 @@\n 14\n 15\n 16\n-17\n"
		   "\\ No newline at end of file\n+17\n+18\n");
	check_diff(
		near, 2,
		"--- a/a.c\n+++ b/a.c\n@@ -2,13 +2,14 @@\n 2\n 3\n 4\n-  five x\n+  FIVE x\n 6\n "
		"7\n 8\n 9\n"
		" 10\n 11\n+a\n 12\n 13\n 14\n");
	check_diff(
		far, 2,
		"--- a/a.c\n+++ b/a.c\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-  five x\n+  FIVE x\n 6\n 7\n "
		"8\n"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(applied),
		cmocka_unit_test(shown),
		cmocka_unit_test(hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
