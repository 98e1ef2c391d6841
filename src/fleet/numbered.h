/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as numbers: hosts of a fleet repeat each other, so that each text is kept once. */
#pragma once

#include <stddef.h>

struct arena;

struct numbered {
	struct arena *arena; /* of the texts */
	const char **items;  /* by number, from 1; 0 stands for "none" */
	size_t n;
	unsigned *table; /* hash table of numbers, a power of two */
	size_t table_n;
};

/* The number of the text, which is copied if it is new. */
unsigned numbered_number(struct numbered *w, const char *text);
/* The number of a text that is there; 0: it is not. */
unsigned numbered_find(const struct numbered *w, const char *text);
/* "" for 0. */
const char *numbered_text(const struct numbered *w, unsigned number);
void numbered_done(struct numbered *w);
