/* SPDX-License-Identifier: Apache-2.0 */
#include "base/texts.h"

#include "base/alloc.h"
#include "base/strbuf.h"

#include <string.h>

bool texts_have(const struct texts *l, const char *text)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->items[i], text) == 0)
			return true;
	return false;
}

void texts_add(struct arena *a, struct texts *l, const char *text)
{
	if (text && !texts_have(l, text))
		*ARENA_PUSH(a, l->items, l->n) = arena_strdup(a, text);
}

void texts_add_all(struct arena *a, struct texts *l, const struct texts *from)
{
	for (size_t i = 0; i < from->n; i++)
		texts_add(a, l, from->items[i]);
}

bool texts_same(const struct texts *a, const struct texts *b)
{
	for (size_t i = 0; i < a->n && a->n == b->n; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return a->n == b->n;
}

void texts_join(const struct texts *l, const char *separator, struct strbuf *out)
{
	for (size_t i = 0; i < l->n; i++)
		strbuf_printf(out, "%s%s", i ? separator : "", l->items[i]);
}

struct texts texts_split(struct arena *a, const char *joined, const char *separator)
{
	const size_t gap = strlen(separator);
	struct texts l = {0};

	while (joined && *joined) {
		const char *end = strstr(joined, separator);
		const size_t n = end ? (size_t)(end - joined) : strlen(joined);

		texts_add(a, &l, arena_strndup(a, joined, n));
		joined += n + (end ? gap : 0);
	}
	return l;
}
