/* SPDX-License-Identifier: Apache-2.0 */
/* Items that each need some resources, given as few colours as a fast search finds: no two items of
 * a colour need the same resource. Pure. */
#pragma once

#include <stddef.h>

struct needs {
	size_t item_n, resource_n;
	unsigned *ids; /* resources, each below resource_n: those of item 0, of item 1, ... */
	size_t *start; /* item_n + 1: where an item's begin in ids */
	size_t least;  /* colours that there must be; the search ends when it gets there */
};

/*
 * `first` is a division of the items into groups to start from, by any numbers; a division that
 * is a colouring is returned, or a better one. The same input gives the same colours, which are
 * numbers from 0. 0 or -ENOMEM.
 */
int colour_items(const struct needs *n, const unsigned *first, unsigned *ret_colour,
		 size_t *ret_colour_n);
