/* SPDX-License-Identifier: Apache-2.0 */
/* Token patterns and functions. */
#include "unlock/anchor.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

struct pattern {
	char *text;
	struct lexed lexed;
	size_t *items; /* indices in lexed.code, without the @ */
	size_t n;
	size_t marks[2]; /* before which item an @ stands */
	size_t mark_n;
};

struct pattern *pattern_new(const char *text)
{
	struct pattern *p = xcalloc(1, sizeof(*p));

	p->text = xstrdup(text);
	if (lex(p->text, strlen(text), &p->lexed) < 0)
		abort();
	p->items = xcalloc(p->lexed.code_n + 1, sizeof(*p->items));
	for (size_t i = 0; i < p->lexed.code_n; i++) {
		if (!lexed_is(&p->lexed, i, "@"))
			p->items[p->n++] = i;
		else if (p->mark_n < 2)
			p->marks[p->mark_n++] = p->n;
		else
			abort();
	}
	if (p->n == 0)
		abort();
	return p;
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	lexed_done(&p->lexed);
	free(p->items);
	free(p->text);
	free(p);
}

static bool ends_in_hex(const char *s, size_t n, size_t digits)
{
	for (size_t i = n - digits; i < n; i++) {
		if (!(s[i] >= '0' && s[i] <= '9') && !(s[i] >= 'a' && s[i] <= 'f'))
			return false;
	}
	return true;
}

/* `name_$6` against `name_395e98`. */
static bool item_matches(const struct pattern *p, size_t item, const struct lexed *x, size_t i)
{
	const struct token *want = lexed_code(&p->lexed, p->items[item]), *t = lexed_code(x, i);
	const char *w = p->text + want->at, *s = x->text + t->at;
	size_t n = want->size;

	if (want->kind == TOKEN_NAME && n > 2 && memcmp(w + n - 2, "$6", 2) == 0)
		return t->kind == TOKEN_NAME && t->size == n + 4 && memcmp(s, w, n - 2) == 0 &&
		       ends_in_hex(s, t->size, 6);
	return t->kind == want->kind && t->size == n && memcmp(s, w, n) == 0;
}

/* Where in code item k matched, for k in 0..n; at[n] is behind the match. False: no match at i. */
static bool match_at(const struct pattern *p, const struct lexed *x, size_t i, size_t end,
		     size_t *at)
{
	for (size_t k = 0; k < p->n; k++) {
		at[k] = i;
		if (lexed_is(&p->lexed, p->items[k], "$args")) {
			if (k == 0 || x->partner[i - 1] == NO_PARTNER || x->partner[i - 1] < i)
				return false;
			i = x->partner[i - 1];
		} else if (i >= end || !item_matches(p, k, x, i)) {
			return false;
		} else {
			i++;
		}
	}
	at[p->n] = i;
	return i <= end;
}

static size_t token_end(const struct lexed *x, size_t i)
{
	return (size_t)lexed_code(x, i)->at + lexed_code(x, i)->size;
}

/* An @ at the end is behind the last token; else before the next one, or behind the one before. */
static struct place place_of(const struct pattern *p, const struct lexed *x, const size_t *at)
{
	struct place r;
	size_t from = p->mark_n ? p->marks[0] : 0;

	r.from = from == p->n ? token_end(x, at[p->n] - 1) : lexed_code(x, at[from])->at;
	r.match = lexed_code(x, at[0])->at;
	r.to = p->mark_n == 2 ? token_end(x, at[p->marks[1]] - 1) : r.from;
	return r;
}

size_t pattern_count(const struct pattern *p, const struct lexed *x, struct scope scope,
		     struct place *ret_place)
{
	AUTO_FREE size_t *at = xcalloc(p->n + 1, sizeof(*at));
	size_t count = 0;

	for (size_t i = scope.from; i < scope.to;) {
		if (!match_at(p, x, i, scope.to, at)) {
			i++;
			continue;
		}
		if (count++ == 0 && ret_place)
			*ret_place = place_of(p, x, at);
		i = at[p->n];
	}
	return count;
}

struct scope scope_all(const struct lexed *x)
{
	return (struct scope){0, x->code_n};
}

/* The index of the brace that ends the definition whose name is code[i]; 0: it is none. */
static size_t definition_end(const struct lexed *x, size_t i)
{
	size_t close;

	if (!lexed_is(x, i + 1, "(") || x->partner[i + 1] == NO_PARTNER)
		return 0;
	close = x->partner[i + 1];
	if (!lexed_is(x, close + 1, "{") || x->partner[close + 1] == NO_PARTNER)
		return 0;
	return x->partner[close + 1];
}

size_t function_find(const struct lexed *x, const char *name, struct scope *ret)
{
	size_t found = 0, end;

	for (size_t i = 0; i < x->code_n; i++) {
		uint32_t partner = x->partner[i];

		if (lexed_is(x, i, name) && (end = definition_end(x, i)) != 0) {
			if (found++ == 0)
				*ret = (struct scope){i, end + 1};
			i = end;
		} else if (partner != NO_PARTNER && partner > i) {
			i = partner; /* only outside of all brackets */
		}
	}
	return found;
}
