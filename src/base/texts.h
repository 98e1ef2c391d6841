/* SPDX-License-Identifier: Apache-2.0 */
/* A list of texts, each once: the rules that want a step, what it is for, what it costs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct strbuf;

struct texts {
	const char **items;
	size_t n;
};

/*
 * The list of these texts, in the memory of the block around it: to be copied from, not added to.
 */
#define TEXTS(...)                                                                                 \
	(struct texts)                                                                             \
	{                                                                                          \
		(const char *[]){__VA_ARGS__},                                                     \
			sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)               \
	}

bool texts_have(const struct texts *l, const char *text);
/* Both copy into the arena; what is there already, and NULL, is left out. */
void texts_add(struct arena *a, struct texts *l, const char *text);
void texts_add_all(struct arena *a, struct texts *l, const struct texts *from);
bool texts_same(const struct texts *a, const struct texts *b);
void texts_join(const struct texts *l, const char *separator, struct strbuf *out);
/* What texts_join wrote, for a file that holds one text. */
struct texts texts_split(struct arena *a, const char *joined, const char *separator);
