/* SPDX-License-Identifier: Apache-2.0 */
/* C source as tokens that tile it: nothing is dropped, so what is printed from them is the source. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
	TOKEN_SPACE,   /* blanks, newlines, a backslash before a newline */
	TOKEN_COMMENT, /* either kind, without the newline that ends it */
	/* a whole # line with its continuations, without the newline that ends it */
	TOKEN_DIRECTIVE,
	TOKEN_NAME, /* identifiers and keywords; `$` counts as a letter */
	TOKEN_NUMBER,
	TOKEN_STRING,
	TOKEN_CHAR,
	TOKEN_MARK,  /* operators and punctuation, the longest that fits */
	TOKEN_OTHER, /* a byte that begins no token of C */
	TOKEN_KIND_N
};

struct token {
	uint32_t at, size; /* bytes of the text */
	enum token_kind kind;
};

#define NO_PARTNER UINT32_MAX

/*
 * `code` numbers the tokens that a compiler sees: all but space, comments and # lines. partner[i] is
 * the index in `code` of the bracket that code[i] opens or closes with, else NO_PARTNER. Branches of
 * an #if begin with the brackets that were open before it; behind #endif those of its first branch count.
 */
struct lexed {
	const char *text; /* the caller's */
	size_t size;
	struct token *tokens;
	size_t n;
	uint32_t *code, *partner;
	size_t code_n;
	const char *trouble; /* NULL, or what is wrong with the text: "a comment does not end" */
	uint32_t trouble_at;
};

/* Any bytes, at most LEX_MAX; the text must outlive ret. -EFBIG with a sentence; troubles do not make it fail. */
int lex(const char *text, size_t size, struct lexed *ret);
void lexed_done(struct lexed *x);
#define LEX_MAX (16u << 20)

const struct token *lexed_code(const struct lexed *x, size_t i);
bool lexed_is(const struct lexed *x, size_t i, const char *word);
/* Of a byte, counted from 1. */
unsigned line_of(const char *text, size_t at);
