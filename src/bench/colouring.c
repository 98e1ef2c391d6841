/* SPDX-License-Identifier: Apache-2.0 */
/* Iterated greedy colouring (Culberson): first fit in the order of the colours that the last try
 * gave, which never needs more of them. */
#include "bench/colouring.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A thing to be sorted: greatest key first, then least index, so that every libc's qsort agrees. */
struct ranked {
	uint64_t key;
	size_t index;
};

struct search {
	const struct needs *needs;
	size_t words;          /* of a set of colours */
	uint64_t *taken;       /* per resource the set of colours that its items have */
	size_t *load;          /* per resource, items that need it */
	size_t *order;         /* items in the order in which they are coloured */
	size_t *size;          /* per colour, its items */
	size_t *at;            /* per colour, where its next item goes in the order */
	struct ranked *ranked; /* colours or items */
	unsigned *colour;      /* per item */
	size_t colour_n;
	uint64_t random;
};

static void search_done(struct search *s)
{
	free(s->taken);
	free(s->load);
	free(s->order);
	free(s->size);
	free(s->at);
	free(s->ranked);
	free(s->colour);
}

#define AUTO_SEARCH CLEANUP(search_done)

static int search_start(const struct needs *n, struct search *s)
{
	s->needs = n;
	s->words = n->item_n / 64 + 1;
	s->random = 0x9e3779b97f4a7c15; /* any seed but 0: the same each time */
	s->taken = calloc(n->resource_n * s->words + 1, sizeof(*s->taken));
	s->load = calloc(n->resource_n + 1, sizeof(*s->load));
	s->order = calloc(n->item_n + 1, sizeof(*s->order));
	s->size = calloc(n->item_n + 1, sizeof(*s->size));
	s->at = calloc(n->item_n + 1, sizeof(*s->at));
	s->ranked = calloc(n->item_n + 1, sizeof(*s->ranked));
	s->colour = calloc(n->item_n + 1, sizeof(*s->colour));
	if (!s->taken || !s->load || !s->order || !s->size || !s->at || !s->ranked || !s->colour)
		return err_set(ENOMEM, "no memory to colour %zu items", n->item_n);
	for (size_t i = 0; i < n->start[n->item_n]; i++)
		s->load[n->ids[i]]++;
	return 0;
}

/* ---- first fit ---- */

/* The least colour that none of the item's resources has yet. */
static unsigned free_colour(const struct search *s, size_t item)
{
	const struct needs *n = s->needs;
	uint64_t taken = ~(uint64_t)0;
	size_t w;

	/* There are more colours than items, so this ends before s->words. */
	for (w = 0; taken == ~(uint64_t)0; w++) {
		taken = 0;
		for (size_t k = n->start[item]; k < n->start[item + 1]; k++)
			taken |= s->taken[n->ids[k] * s->words + w];
	}
	return (unsigned)(64 * (w - 1)) + (unsigned)__builtin_ctzll(~taken);
}

/* Colours the items again, in s->order. */
static void first_fit(struct search *s)
{
	const struct needs *n = s->needs;

	memset(s->taken, 0, n->resource_n * s->words * sizeof(*s->taken));
	s->colour_n = 0;
	for (size_t i = 0; i < n->item_n; i++) {
		size_t item = s->order[i];
		unsigned c = free_colour(s, item);

		for (size_t k = n->start[item]; k < n->start[item + 1]; k++)
			s->taken[n->ids[k] * s->words + c / 64] |= (uint64_t)1 << c % 64;
		s->colour[item] = c;
		if (c >= s->colour_n)
			s->colour_n = c + 1;
	}
}

/* ---- orders ---- */

static int by_key(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static uint64_t next_random(struct search *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random;
}

static uint64_t last_first(struct search *s, size_t colour)
{
	(void)s;
	return colour;
}

static uint64_t largest_first(struct search *s, size_t colour)
{
	return (uint64_t)s->size[colour] << 32 | next_random(s) >> 32;
}

static uint64_t any_first(struct search *s, size_t colour)
{
	(void)colour;
	return next_random(s);
}

typedef uint64_t colour_key(struct search *s, size_t colour);

/* The items colour by colour, the colour with the greatest key first. */
static void order_by_colour(struct search *s, colour_key *key)
{
	size_t at = 0;

	memset(s->size, 0, s->colour_n * sizeof(*s->size));
	for (size_t i = 0; i < s->needs->item_n; i++)
		s->size[s->colour[i]]++;
	for (size_t c = 0; c < s->colour_n; c++)
		s->ranked[c] = (struct ranked){key(s, c), c};
	qsort(s->ranked, s->colour_n, sizeof(*s->ranked), by_key);
	for (size_t k = 0; k < s->colour_n; k++) {
		s->at[s->ranked[k].index] = at;
		at += s->size[s->ranked[k].index];
	}
	for (size_t i = 0; i < s->needs->item_n; i++)
		s->order[s->at[s->colour[i]]++] = i;
}

static void take_ranked(struct search *s)
{
	qsort(s->ranked, s->needs->item_n, sizeof(*s->ranked), by_key);
	for (size_t i = 0; i < s->needs->item_n; i++)
		s->order[i] = s->ranked[i].index;
}

static void order_by_groups(struct search *s, const unsigned *first)
{
	for (size_t i = 0; i < s->needs->item_n; i++)
		s->ranked[i] = (struct ranked){UINT64_MAX - first[i], i};
	take_ranked(s);
}

/* Items that need what most others need first. */
static void order_by_load(struct search *s)
{
	const struct needs *n = s->needs;

	for (size_t i = 0; i < n->item_n; i++) {
		uint64_t most = 0, sum = 0;

		for (size_t k = n->start[i]; k < n->start[i + 1]; k++) {
			uint64_t load = s->load[n->ids[k]];

			sum += load;
			most = load > most ? load : most;
		}
		s->ranked[i] = (struct ranked){most << 32 | sum, i};
	}
	take_ranked(s);
}

/* ---- the search ---- */

/* 200 tries take 0.04 s for the 4,032 pairs of 64 devices; more items get fewer. */
static size_t tries_for(const struct needs *n)
{
	enum { TRIES = 200, WORK = 8000000 };
	size_t tries = WORK / (n->start[n->item_n] + 1);

	return tries < TRIES ? tries : TRIES;
}

/* From s->order on; keeps the best in ret. */
static void improve(struct search *s, unsigned *ret_colour, size_t *ret_colour_n)
{
	static colour_key *const keys[] = {last_first, largest_first, any_first};
	size_t tries = tries_for(s->needs);

	first_fit(s);
	for (size_t i = 0; i < tries && s->colour_n > s->needs->least; i++) {
		order_by_colour(s, keys[i % (sizeof(keys) / sizeof(*keys))]);
		first_fit(s);
	}
	if (s->colour_n >= *ret_colour_n)
		return;
	memcpy(ret_colour, s->colour, s->needs->item_n * sizeof(*ret_colour));
	*ret_colour_n = s->colour_n;
}

int colour_items(const struct needs *n, const unsigned *first, unsigned *ret_colour,
		 size_t *ret_colour_n)
{
	AUTO_SEARCH struct search s = {0};
	size_t colour_n = SIZE_MAX;
	int r = search_start(n, &s);

	if (r < 0)
		return r;
	order_by_groups(&s, first);
	improve(&s, ret_colour, &colour_n);
	if (colour_n > n->least) {
		order_by_load(&s);
		improve(&s, ret_colour, &colour_n);
	}
	*ret_colour_n = colour_n;
	return 0;
}
