/* SPDX-License-Identifier: Apache-2.0 */
/* Places in C source, named by function and token pattern: found by structure, never by line. */
#pragma once

#include "unlock/lexer.h"

/*
 * A pattern is C, compared token by token: space, comments and # lines between them do not matter.
 *   name_$6   `name_` and six lower-case hexadecimal digits, as generated names end
 *   $args     what stands between a bracket and its partner
 *   @         what is edited: one is a place, two are the tokens between them
 */
struct pattern;

struct pattern *pattern_new(const char *text); /* our own text: a bad one aborts */
void pattern_free(struct pattern *p);

struct place {
	size_t from, to; /* bytes; equal: an insertion */
	size_t match;    /* where the pattern's first token begins */
};

/* Part of a file, as indices in lexed.code. */
struct scope {
	size_t from, to;
};

/*
 * How often the pattern is in the scope (matches do not overlap). ret_place gets the first; it may be
 * NULL, and is the start of the match if the pattern has no @.
 */
size_t pattern_count(const struct pattern *p, const struct lexed *x, struct scope scope,
		     struct place *ret_place);

struct scope scope_all(const struct lexed *x);
/*
 * A function's definition, from its name to its closing brace. Returns how many there are; ret is
 * written if it is one.
 */
size_t function_find(const struct lexed *x, const char *name, struct scope *ret);
