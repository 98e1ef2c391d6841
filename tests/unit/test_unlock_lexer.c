/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlock/lexer.c and anchor.c: tokens tile any text, brackets find each other, patterns their
 * places.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "unlock/anchor.h"
#include "unlock/lexer.h"

#include <cmocka.h>
#include <string.h>

static struct lexed lexed_text(const char *text, size_t size)
{
	struct lexed x;

	assert_int_equal(lex(text, size, &x), 0);
	return x;
}

static void check_tiles(const char *text, size_t size)
{
	struct lexed x = lexed_text(text, size);
	size_t at = 0;

	for (size_t i = 0; i < x.n; i++) {
		assert_int_equal(x.tokens[i].at, at);
		assert_true(x.tokens[i].size > 0);
		at += x.tokens[i].size;
	}
	assert_int_equal(at, size);
	lexed_done(&x);
}

/* ---- tokens ---- */

static void kinds(void **state)
{
	static const struct {
		const char *text;
		enum token_kind kind;
	} rows[] = {
		{"\\\n", TOKEN_SPACE},
		{" \t\n", TOKEN_SPACE},
		{"/* * / ** */", TOKEN_COMMENT},
		{"// a \\\n b", TOKEN_COMMENT},
		{"#define A \\\n B", TOKEN_DIRECTIVE},
		{"#define x \"/*\"", TOKEN_DIRECTIVE},
		{"#error don't", TOKEN_DIRECTIVE},
		{"# define A /* a\n b */ 2", TOKEN_DIRECTIVE},
		{"a_$1", TOKEN_NAME},
		{"0x1fULL", TOKEN_NUMBER},
		{"1.5e-3", TOKEN_NUMBER},
		{".5", TOKEN_NUMBER},
		{"\"a\\\"b\\\\\"", TOKEN_STRING},
		{"'\\''", TOKEN_CHAR},
		{"'\"'", TOKEN_CHAR},
		{"\"/* no comment */\"", TOKEN_STRING},
		{"->", TOKEN_MARK},
		{"<<=", TOKEN_MARK},
		{"...", TOKEN_MARK},
		{"@", TOKEN_OTHER},
		{"\"a\\\nb\"", TOKEN_STRING},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lexed x = lexed_text(rows[i].text, strlen(rows[i].text));

		assert_null(x.trouble);
		assert_int_equal(x.n, 1);
		assert_int_equal(x.tokens[0].kind, rows[i].kind);
		lexed_done(&x);
	}
}

static void a_number_sign_in_a_line_is_no_directive(void **state)
{
	static const char text[] = "a # b\n/* c */ # d\n";
	struct lexed x = lexed_text(text, strlen(text));
	unsigned directives = 0;

	(void)state;
	for (size_t i = 0; i < x.n; i++)
		directives += x.tokens[i].kind == TOKEN_DIRECTIVE;
	assert_int_equal(directives, 1);
	assert_int_equal(x.code_n, 3); /* a # b */
	lexed_done(&x);
}

static void troubles(void **state)
{
	static const struct {
		const char *text, *what;
		unsigned line;
	} rows[] = {
		{"a\n/* b", "a comment does not end", 2},
		{"a\n\"b\nc\"", "a string does not end", 2},
		{"'b", "a character does not end", 1},
		{"{\n(\n}", "brackets do not match", 3},
		{"}", "a bracket is closed that was not opened", 1},
		{"{ {\n}", "a bracket is not closed", 1},
		{"#if A\n", "an #if has no #endif", 2},
		{"#else\n", "an #else or #endif has no #if", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lexed x = lexed_text(rows[i].text, strlen(rows[i].text));

		assert_non_null(x.trouble);
		assert_string_equal(x.trouble, rows[i].what);
		assert_int_equal(line_of(rows[i].text, x.trouble_at), rows[i].line);
		lexed_done(&x);
		check_tiles(rows[i].text, strlen(rows[i].text));
	}
}

/* Small numbers that are the same each time. */
static unsigned next_number(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % below;
}

static void any_soup_is_tiled(void **state)
{
	static const char *const pieces[] = {
		"a",   "if",   " ",    "\n",   "\t", "\\\n",    "\\",       "/*",  "*/",
		"//",  "\"",   "'",    "#if",  "#",  "#else\n", "#endif\n", "{",   "}",
		"(",   ")",    "[",    "]",    "->", "<<=",     "0x1f",     "1e+", ".",
		"...", "\r\n", "\x01", "\xff", "@",  "$6",
	};
	unsigned seed = 1;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		AUTO_STRBUF struct strbuf b = {0};

		for (unsigned i = next_number(&seed, 60); i > 0; i--)
			strbuf_puts(&b,
				    pieces[next_number(&seed, sizeof(pieces) / sizeof(*pieces))]);
		check_tiles(strbuf_str(&b), b.len);
	}
	check_tiles("a\0b", 3);
	check_tiles("\\\0\"\\", 4);
	check_tiles("", 0);
}

static void deep_nesting_ends(void **state)
{
	AUTO_STRBUF struct strbuf b = {0};
	struct lexed x;

	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		strbuf_puts(&b, "#if A\n{(");
	x = lexed_text(strbuf_str(&b), b.len);
	assert_non_null(x.trouble);
	lexed_done(&x);
}

/* ---- brackets and conditionals ---- */

static size_t index_of(const struct lexed *x, const char *word, unsigned nth)
{
	for (size_t i = 0; i < x->code_n; i++) {
		if (lexed_is(x, i, word) && nth-- == 0)
			return i;
	}
	fail_msg("no %s", word);
	return 0;
}

static void branches_begin_alike(void **state)
{
	static const char text[] = "int f(void)\n{\n#if A\n if (a) {\n#elif B\n if (b) {\n#else\n"
				   " if (c) {\n#endif\n  d();\n }\n return 0;\n}\nint g;\n";
	struct lexed x = lexed_text(text, strlen(text));
	struct scope scope;

	(void)state;
	assert_null(x.trouble);
	assert_int_equal(function_find(&x, "f", &scope), 1);
	assert_true(lexed_is(&x, scope.to, "int") && lexed_is(&x, scope.to + 1, "g"));
	/* the } behind #endif closes what the first branch opened */
	assert_int_equal(x.partner[index_of(&x, "}", 0)], index_of(&x, "{", 1));
	lexed_done(&x);
}

static void an_if_without_else_counts_as_taken(void **state)
{
	static const char text[] =
		"#if A\nvoid f(void) {\n#endif\n x;\n#if A\n}\n#endif\nvoid g(void) {}\n";
	struct lexed x = lexed_text(text, strlen(text));
	struct scope scope;

	(void)state;
	assert_null(x.trouble);
	assert_int_equal(function_find(&x, "f", &scope), 1);
	assert_int_equal(function_find(&x, "g", &scope), 1);
	lexed_done(&x);
}

/* ---- functions and patterns ---- */

static const char functions[] = "static int other(int a);\n"
				"int f(void); /* int f(void) { */\n"
				"static NV_STATUS\n"
				"f // in lines of its own\n"
				"(\n"
				"    A *pA, // }\n"
				"    B (*pB)(int)\n"
				")\n"
				"{\n"
				"    char *s = \"f(x) { }\";\n"
				"    if (x) { f(1, (2), 3); f(); }\n"
				"    done:\n"
				"}\n"
				"int table[] = { f(1), };\n"
				"int twice(void) { }\n"
				"#if X\n"
				"int twice(void) { }\n"
				"#endif\n";

static void definitions_are_found(void **state)
{
	struct lexed x = lexed_text(functions, strlen(functions));
	struct scope scope = {0};

	(void)state;
	assert_int_equal(function_find(&x, "f", &scope), 1);
	assert_true(lexed_is(&x, scope.from, "f") && lexed_is(&x, scope.to - 1, "}"));
	assert_int_equal(line_of(functions, lexed_code(&x, scope.from)->at), 4);
	assert_int_equal(function_find(&x, "twice", &scope), 2);
	assert_int_equal(function_find(&x, "other", &scope), 0);
	assert_int_equal(function_find(&x, "x", &scope), 0);
	lexed_done(&x);
}

/* What an @ stands at, of the first match. */
static void check_pattern(const char *text, const char *pattern, size_t count, const char *replaced,
			  const char *before)
{
	struct lexed x = lexed_text(text, strlen(text));
	struct pattern *p = pattern_new(pattern);
	struct place place = {0};

	assert_int_equal(pattern_count(p, &x, scope_all(&x), &place), count);
	if (count) {
		assert_int_equal(place.to - place.from, strlen(replaced));
		assert_memory_equal(text + place.from, replaced, strlen(replaced));
		assert_int_equal(strncmp(text + place.to, before, strlen(before)), 0);
	}
	pattern_free(p);
	lexed_done(&x);
}

static void patterns(void **state)
{
	(void)state;
	check_pattern("a = b; a /* c */ =\n#if D\nb ;", "a = b;", 2, "", "a = b; a");
	check_pattern("x a = b; y", "a = @b@;", 1, "b", "; y");
	check_pattern("x a = b; y", "a = b;@", 1, "", " y");
	check_pattern("x; a", "@a", 1, "", "a");
	check_pattern("f(1, (g(2), 3)); z", "f($args);@", 1, "", " z");
	check_pattern("f(); z", "f($args)@;", 1, "", "; z");
	check_pattern("p = &n_395e98; q", "&@n_$6@;", 1, "n_395e98", "; q");
	check_pattern("p = &n_GH100;", "&n_$6;", 0, "", "");
	check_pattern("p = &n_39E98f;", "&n_$6;", 0, "", "");
	check_pattern("p = &nn_395e98;", "&n_$6;", 0, "", "");
	check_pattern("p = &n_395e981;", "&n_$6;", 0, "", "");
	check_pattern("\"a\" 'a' b", "a", 0, "", "");
	check_pattern("PCIE_BAR1 PCIE", "PCIE@", 1, "", "");
	check_pattern("a a a", "a a", 1, "", "");
	check_pattern("a->b", "a - > b", 0, "", "");
	check_pattern("f(1", "f($args", 0, "", ""); /* the bracket has no partner */
	check_pattern("", "a", 0, "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds),
		cmocka_unit_test(a_number_sign_in_a_line_is_no_directive),
		cmocka_unit_test(troubles),
		cmocka_unit_test(any_soup_is_tiled),
		cmocka_unit_test(deep_nesting_ends),
		cmocka_unit_test(branches_begin_alike),
		cmocka_unit_test(an_if_without_else_counts_as_taken),
		cmocka_unit_test(definitions_are_found),
		cmocka_unit_test(patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
