/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of source share; for source*.c only. */
#pragma once

#include "base/source.h"

struct source_ops {
	int (*read)(struct source *s, const char *path, char **ret, size_t *ret_size);
	int (*list)(struct source *s, const char *path, char ***ret_names, size_t *ret_n);
	int (*link)(struct source *s, const char *path, char **ret);
	void (*free)(struct source *s);
};

struct source {
	const struct source_ops *ops;
	char *name;
	const char *stated; /* of a map that is made from texts, see source_set_stated; else NULL */
};

/* Splits a text of one name a line; free with source_free_names. */
void source_split_names(const char *text, char ***ret_names, size_t *ret_n);
