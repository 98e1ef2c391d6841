/* SPDX-License-Identifier: Apache-2.0 */
/* C source as tokens that tile it, and which bracket belongs to which. */
#include "unlock/lexer.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <string.h>

#define BRACKETS_MAX 256 /* open at a time */
#define IFS_MAX      64

/* ---- tokens ---- */

struct scanner {
	const char *s;
	uint32_t n, at;
	bool line_start; /* only space and comments since the newline: a # begins a directive */
	struct lexed *x;
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static char peek(const struct scanner *z, uint32_t ahead)
{
	return ahead < z->n - z->at ? z->s[z->at + ahead] : '\0';
}

/* Bytes of a backslash and a newline at `at`; 0: there is none. */
static uint32_t splice(const struct scanner *z, uint32_t at)
{
	if (at + 1 < z->n && z->s[at] == '\\') {
		if (z->s[at + 1] == '\n')
			return 2;
		if (at + 2 < z->n && z->s[at + 1] == '\r' && z->s[at + 2] == '\n')
			return 3;
	}
	return 0;
}

static void trouble(struct lexed *x, const char *what, uint32_t at)
{
	if (!x->trouble) {
		x->trouble = what;
		x->trouble_at = at;
	}
}

static uint32_t space_end(struct scanner *z)
{
	uint32_t i = z->at, n;

	while (i < z->n) {
		n = splice(z, i);
		if (!n && !is_space(z->s[i]))
			break;
		if (!n && z->s[i] == '\n')
			z->line_start = true;
		i += n ? n : 1;
	}
	return i;
}

static uint32_t line_comment_end(const struct scanner *z, uint32_t i)
{
	uint32_t n;

	while (i < z->n && z->s[i] != '\n') {
		n = splice(z, i);
		i += n ? n : 1;
	}
	return i;
}

static uint32_t block_comment_end(struct scanner *z, uint32_t start)
{
	const char *end =
		start + 2 <= z->n ? memmem(z->s + start + 2, z->n - start - 2, "*/", 2) : NULL;

	if (end)
		return (uint32_t)(end - z->s) + 2;
	trouble(z->x, "a comment does not end", start);
	return z->n;
}

static bool begins(const struct scanner *z, uint32_t i, const char *two)
{
	return i + 1 < z->n && z->s[i] == two[0] && z->s[i + 1] == two[1];
}

/* Behind the quote that ends it, or where its line ends. */
static uint32_t quoted_end(const struct scanner *z, uint32_t start, bool *ret_ended)
{
	uint32_t i = start + 1, n;

	while (i < z->n && z->s[i] != '\n') {
		n = splice(z, i);
		if (!n && z->s[i] == z->s[start]) {
			*ret_ended = true;
			return i + 1;
		}
		i += n ? n : z->s[i] == '\\' && i + 1 < z->n && z->s[i + 1] != '\n' ? 2 : 1;
	}
	*ret_ended = false;
	return i;
}

/* An apostrophe in a # line may be one of `#error don't`. */
static uint32_t directive_end(struct scanner *z)
{
	uint32_t i = z->at, n, end;
	bool ended;

	while (i < z->n && z->s[i] != '\n') {
		n = splice(z, i);
		if (n) {
			i += n;
		} else if (begins(z, i, "/*")) {
			i = block_comment_end(z, i);
		} else if (begins(z, i, "//")) {
			return line_comment_end(z, i);
		} else if (z->s[i] == '"') {
			end = quoted_end(z, i, &ended);
			i = ended ? end : i + 1;
		} else {
			i++;
		}
	}
	return i;
}

static uint32_t name_end(const struct scanner *z)
{
	uint32_t i = z->at;

	while (i < z->n && (is_letter(z->s[i]) || is_digit(z->s[i])))
		i++;
	return i;
}

/* A preprocessing number: 0x1f, 1e-3, .5, 12ULL. */
static uint32_t number_end(const struct scanner *z)
{
	uint32_t i = z->at;

	while (i < z->n) {
		char c = z->s[i];
		bool exponent = strchr("eEpP", c) && i + 1 < z->n &&
				(z->s[i + 1] == '+' || z->s[i + 1] == '-');

		if (c == '\0' || !(is_letter(c) || is_digit(c) || c == '.'))
			break;
		i += exponent ? 2 : 1;
	}
	return i;
}

static uint32_t mark_size(const struct scanner *z)
{
	static const char *const marks[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>",
					    "<=",  ">=",  "==",  "!=", "&&", "||", "+=", "-=",
					    "*=",  "/=",  "%=",  "&=", "|=", "^=", "##"};
	char c = z->s[z->at];

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		uint32_t n = (uint32_t)strlen(marks[i]);

		if (n <= z->n - z->at && memcmp(z->s + z->at, marks[i], n) == 0)
			return n;
	}
	return c != '\0' && strchr("{}()[];,.:?~!%^&*-+=|<>/#", c) ? 1 : 0;
}

static enum token_kind quoted(struct scanner *z, uint32_t *ret_end)
{
	enum token_kind kind = z->s[z->at] == '"' ? TOKEN_STRING : TOKEN_CHAR;
	bool ended;

	*ret_end = quoted_end(z, z->at, &ended);
	if (!ended)
		trouble(z->x,
			kind == TOKEN_STRING ? "a string does not end" : "a character does not end",
			z->at);
	return kind;
}

static enum token_kind scan(struct scanner *z, uint32_t *ret_end)
{
	char c = z->s[z->at];
	uint32_t n;

	if (is_space(c) || splice(z, z->at))
		return *ret_end = space_end(z), TOKEN_SPACE;
	if (begins(z, z->at, "/*"))
		return *ret_end = block_comment_end(z, z->at), TOKEN_COMMENT;
	if (begins(z, z->at, "//"))
		return *ret_end = line_comment_end(z, z->at), TOKEN_COMMENT;
	if (c == '#' && z->line_start)
		return *ret_end = directive_end(z), TOKEN_DIRECTIVE;
	z->line_start = false;
	if (is_letter(c))
		return *ret_end = name_end(z), TOKEN_NAME;
	if (is_digit(c) || (c == '.' && is_digit(peek(z, 1))))
		return *ret_end = number_end(z), TOKEN_NUMBER;
	if (c == '"' || c == '\'')
		return quoted(z, ret_end);
	n = mark_size(z);
	*ret_end = z->at + (n ? n : 1);
	return n ? TOKEN_MARK : TOKEN_OTHER;
}

static void scan_all(struct scanner *z)
{
	struct lexed *x = z->x;
	size_t size = 0;

	while (z->at < z->n) {
		uint32_t end = z->at;
		enum token_kind kind = scan(z, &end);

		if (x->n == size) {
			size = size ? size * 2 : 1024;
			x->tokens = xrealloc(x->tokens, size, sizeof(*x->tokens));
		}
		x->tokens[x->n++] = (struct token){z->at, end - z->at, kind};
		z->at = end;
	}
}

/* ---- brackets ---- */

struct open_brackets {
	uint32_t at[BRACKETS_MAX]; /* indices in code */
	size_t n;
};

struct conditional {
	struct open_brackets before, first;
	bool has_first; /* its first branch has ended */
};

struct matcher {
	struct lexed *x;
	struct open_brackets open;
	struct conditional ifs[IFS_MAX];
	size_t if_n;
	bool over; /* a trouble was found: no further partners */
};

static void give_up(struct matcher *m, const char *what, uint32_t at)
{
	trouble(m->x, what, at);
	m->over = true;
}

static void match_bracket(struct matcher *m, const struct token *t, uint32_t i)
{
	static const char closers[] = ")]}", openers[] = "([{";
	struct lexed *x = m->x;
	char c = x->text[t->at];
	const char *closer = strchr(closers, c);
	uint32_t opener;

	if (strchr(openers, c)) {
		if (m->open.n == BRACKETS_MAX)
			return give_up(m, "brackets are nested too deeply", t->at);
		m->open.at[m->open.n++] = i;
	} else if (closer) {
		if (m->open.n == 0)
			return give_up(m, "a bracket is closed that was not opened", t->at);
		opener = m->open.at[--m->open.n];
		if (x->text[lexed_code(x, opener)->at] != openers[closer - closers])
			return give_up(m, "brackets do not match", t->at);
		x->partner[i] = opener;
		if (x->partner[opener] == NO_PARTNER) /* else one of an earlier branch closed it */
			x->partner[opener] = i;
	}
}

static bool directive_is(const struct lexed *x, const struct token *t, const char *word)
{
	const char *s = x->text + t->at + 1, *end = x->text + t->at + t->size;
	size_t n = strlen(word);

	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	return (size_t)(end - s) >= n && memcmp(s, word, n) == 0;
}

static void match_conditional(struct matcher *m, const struct token *t)
{
	struct conditional *c = m->if_n ? &m->ifs[m->if_n - 1] : NULL;

	if (directive_is(m->x, t, "if")) { /* #ifdef and #ifndef too */
		if (m->if_n == IFS_MAX)
			return give_up(m, "#if are nested too deeply", t->at);
		m->ifs[m->if_n++] = (struct conditional){.before = m->open};
	} else if (directive_is(m->x, t, "el") || directive_is(m->x, t, "endif")) {
		if (!c)
			return give_up(m, "an #else or #endif has no #if", t->at);
		if (!c->has_first)
			c->first = m->open;
		c->has_first = true;
		m->open = directive_is(m->x, t, "el") ? c->before : c->first;
		if (directive_is(m->x, t, "endif"))
			m->if_n--;
	}
}

static void match_all(struct lexed *x)
{
	AUTO_FREE struct matcher *m = xcalloc(1, sizeof(*m));
	uint32_t code = 0;

	m->x = x;
	for (size_t i = 0; i < x->n && !m->over; i++) {
		const struct token *t = &x->tokens[i];

		if (t->kind == TOKEN_DIRECTIVE)
			match_conditional(m, t);
		else if (t->kind > TOKEN_DIRECTIVE) {
			if (t->kind == TOKEN_MARK && t->size == 1)
				match_bracket(m, t, code);
			code++;
		}
	}
	if (!m->over && m->open.n)
		trouble(x, "a bracket is not closed", lexed_code(x, m->open.at[m->open.n - 1])->at);
	if (!m->over && m->if_n)
		trouble(x, "an #if has no #endif", (uint32_t)x->size);
}

int lex(const char *text, size_t size, struct lexed *ret)
{
	struct scanner z = {.s = text, .n = (uint32_t)size, .line_start = true, .x = ret};

	if (size > LEX_MAX)
		return err_set(EFBIG, "%zu bytes of source are too many", size);
	*ret = (struct lexed){.text = text, .size = size};
	scan_all(&z);
	ret->code = xcalloc(ret->n ? ret->n : 1, sizeof(*ret->code));
	for (size_t i = 0; i < ret->n; i++) {
		if (ret->tokens[i].kind > TOKEN_DIRECTIVE)
			ret->code[ret->code_n++] = (uint32_t)i;
	}
	ret->partner = xmalloc((ret->code_n ? ret->code_n : 1) * sizeof(*ret->partner));
	memset(ret->partner, 0xff, ret->code_n * sizeof(*ret->partner));
	match_all(ret);
	return 0;
}

void lexed_done(struct lexed *x)
{
	free(x->tokens);
	free(x->code);
	free(x->partner);
	*x = (struct lexed){0};
}

const struct token *lexed_code(const struct lexed *x, size_t i)
{
	return &x->tokens[x->code[i]];
}

bool lexed_is(const struct lexed *x, size_t i, const char *word)
{
	const struct token *t = i < x->code_n ? lexed_code(x, i) : NULL;

	return t && strlen(word) == t->size && memcmp(x->text + t->at, word, t->size) == 0;
}

unsigned line_of(const char *text, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at; i++)
		line += text[i] == '\n';
	return line;
}
