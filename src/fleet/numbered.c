/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/numbered.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, 32 bits. */
static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h;
}

/* The place of the text, or the free one where it belongs. */
static unsigned *place_of(const struct numbered *w, const char *text)
{
	size_t i = hash_of(text) & (w->table_n - 1);

	while (w->table[i] && strcmp(w->items[w->table[i] - 1], text) != 0)
		i = (i + 1) & (w->table_n - 1);
	return &w->table[i];
}

/* Keeps at least half of the table free. */
static void grow(struct numbered *w)
{
	if (w->n * 2 < w->table_n)
		return;
	free(w->table);
	w->table_n = w->table_n ? w->table_n * 2 : 1024;
	w->table = xcalloc(w->table_n, sizeof(*w->table));
	w->items = xrealloc(w->items, w->table_n / 2 + 1, sizeof(*w->items));
	for (size_t i = 0; i < w->n; i++)
		*place_of(w, w->items[i]) = (unsigned)i + 1;
}

unsigned numbered_number(struct numbered *w, const char *text)
{
	unsigned *place;

	grow(w);
	place = place_of(w, text);
	if (!*place) {
		w->items[w->n++] = arena_strdup(w->arena, text);
		*place = (unsigned)w->n;
	}
	return *place;
}

unsigned numbered_find(const struct numbered *w, const char *text)
{
	return w->table_n ? *place_of(w, text) : 0;
}

const char *numbered_text(const struct numbered *w, unsigned number)
{
	return number ? w->items[number - 1] : "";
}

void numbered_done(struct numbered *w)
{
	free(w->items);
	free(w->table);
}
