/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver's source, which may be any bytes: tokens tile it, places lie in it, edits give what they
 * say.
 */
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "unlock/anchor.h"
#include "unlock/edit.h"
#include "unlock/eras.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* Tokens are the whole text, one behind the other. */
static void check_tokens(const struct lexed *x)
{
	size_t at = 0;

	for (size_t i = 0; i < x->n; i++) {
		check(x->tokens[i].at == at && x->tokens[i].size > 0);
		at += x->tokens[i].size;
	}
	check(at == x->size);
	for (size_t i = 0; i < x->code_n; i++)
		check(x->partner[i] == NO_PARTNER || x->partner[i] < x->code_n);
}

/* Taken out again, an edit leaves the text. */
static void check_edit(const struct lexed *x, const struct place *place)
{
	const struct edit edit = {place->from, place->to, "added\n"};
	AUTO_STRBUF struct strbuf b = {0};
	AUTO_STRBUF struct strbuf diff = {0};
	size_t behind = place->from + strlen(edit.text);

	edits_apply(x->text, x->size, &edit, 1, &b);
	edits_diff("a.c", x->text, x->size, &edit, 1, &diff);
	check(diff.len > 0);
	check(memcmp(b.text, x->text, place->from) == 0);
	check(memcmp(b.text + place->from, edit.text, strlen(edit.text)) == 0);
	check(b.len - behind == x->size - place->to &&
	      memcmp(b.text + behind, x->text + place->to, b.len - behind) == 0);
}

static void check_row(const struct lexed *x, const struct anchor *a)
{
	struct scope scope = scope_all(x);
	struct place place;
	struct pattern *p;

	if (a->function && function_find(x, a->function, &scope) == 0)
		return;
	check(scope.from <= scope.to && scope.to <= x->code_n);
	p = pattern_new(a->pattern);
	if (pattern_count(p, x, scope, &place) > 0) {
		check(place.match <= place.from && place.from <= place.to && place.to <= x->size);
		check_edit(x, &place);
	}
	pattern_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lexed x;

	if (lex((const char *)data, size, &x) < 0)
		return 0;
	check_tokens(&x);
	for (size_t i = 0; i < anchor_n; i++)
		check_row(&x, &anchors[i]);
	lexed_done(&x);
	return 0;
}
