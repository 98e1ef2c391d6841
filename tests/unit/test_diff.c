/* SPDX-License-Identifier: Apache-2.0 */
/* base/diff.c: what differs between two texts, line by line. */
#include "base/alloc.h"
#include "base/diff.h"
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* All lines with their marks. */
static void assert_diff(const char *old, const char *new, const char *expected)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct diff d;

	diff_texts(old, old ? strlen(old) : 0, new, strlen(new), &d);
	for (size_t i = 0; i < d.n; i++)
		strbuf_printf(&b, "%c%.*s\n", d.lines[i].mark, (int)d.lines[i].n, d.lines[i].text);
	diff_done(&d);
	assert_string_equal(strbuf_str(&b), expected);
}

static void test_texts(void **state)
{
	(void)state;
	assert_diff("", "", "");
	assert_diff("a\n", "a\n", " a\n");
	assert_diff(NULL, "a\nb", "+a\n+b\n");
	assert_diff("a\nb\n", "", "-a\n-b\n");
	assert_diff("a\nb\nc\n", "a\nx\nc\n", " a\n-b\n+x\n c\n");
	assert_diff("a\nb\nc\nd\ne\n", "a\nB\nc\nD\ne\n", " a\n-b\n+B\n c\n-d\n+D\n e\n");
	assert_diff("a\na\n", "a\n", " a\n-a\n");
	assert_diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n",
		    "-a\n-b\n c\n+b\n a\n b\n-b\n a\n+c\n");
}

static void test_numbers(void **state)
{
	struct diff d;

	(void)state;
	diff_texts("a\nb\nc\n", 6, "a\nc\nd\n", 6, &d);
	assert_int_equal(d.n, 4);
	assert_int_equal(d.lines[1].mark, DIFF_GONE);
	assert_int_equal(d.lines[1].number, 2);
	assert_int_equal(d.lines[2].number, 2);
	assert_int_equal(d.lines[3].number, 3);
	diff_done(&d);
}

static char *random_text(uint64_t *random, unsigned lines)
{
	AUTO_STRBUF struct strbuf b = {0};

	while (lines--) {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		strbuf_printf(&b, "%u\n", (unsigned)(*random >> 33) % 5);
	}
	return xstrdup(strbuf_str(&b));
}

/* The lines that are not new make the old text, those that are not gone the new one. */
static void assert_both(const char *old, const char *new)
{
	AUTO_STRBUF struct strbuf a = {0}, b = {0};
	struct diff d;

	diff_texts(old, strlen(old), new, strlen(new), &d);
	for (size_t i = 0; i < d.n; i++) {
		const struct diff_line *l = &d.lines[i];

		if (l->mark != DIFF_NEW)
			strbuf_printf(&a, "%.*s\n", (int)l->n, l->text);
		if (l->mark != DIFF_GONE)
			strbuf_printf(&b, "%.*s\n", (int)l->n, l->text);
	}
	diff_done(&d);
	assert_string_equal(strbuf_str(&a), old);
	assert_string_equal(strbuf_str(&b), new);
}

static void test_any_texts(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		AUTO_FREE char *old = random_text(&random, i % 17);
		AUTO_FREE char *new = random_text(&random, i % 13);

		assert_both(old, new);
	}
}

/* More differs than is looked for: it is told as a whole. */
static void test_long_texts(void **state)
{
	AUTO_STRBUF struct strbuf old = {0}, new = {0};
	struct diff d;
	size_t same = 0;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		strbuf_printf(&old, "old %u\nboth %u\n", i, i);
		strbuf_printf(&new, "new %u\nboth %u\n", i, i);
	}
	assert_both(old.text, new.text);
	diff_texts(old.text, old.len, new.text, new.len, &d);
	for (size_t i = 0; i < d.n; i++)
		same += d.lines[i].mark == DIFF_SAME;
	assert_int_equal(same, 1); /* the end */
	diff_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_any_texts),
		cmocka_unit_test(test_long_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
