/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of driver sources made up from the table itself: what is looked for is there, and nothing
 * else.
 */
#pragma once

#include "base/strbuf.h"
#include "unlock/eras.h"

struct made_function {
	const char *file, *name; /* name NULL: whatever is looked for anywhere in the file */
	struct strbuf body;
};

struct made_tree {
	struct made_function functions[64];
	size_t n;
};

/* A release of the kind, ready to be changed; free with made_done. */
void made_up(struct made_tree *t, enum era era);
void made_done(struct made_tree *t);
/* Each kind is filled once and kept for the next: at the end of a test program. */
void made_forget(void);
/* The one of that name, or a new one. */
struct made_function *made_function_of(struct made_tree *t, const char *file, const char *name);
/* Adds C that a pattern of the table matches, with the brackets that it lacks. */
void made_instance(struct strbuf *out, const char *pattern);
/* A file of it. */
void made_render(const struct made_tree *t, const char *file, struct strbuf *out);
/* All of it, with a version.mk, below a folder. */
void made_write(const struct made_tree *t, const char *dir, const char *release);

/* Its part without the core's sources, below a folder: what packages have. */
void made_write_kernel_open(const struct made_tree *t, const char *dir);

/* A file below a folder, with the folders on the way. */
void made_put(const char *dir, const char *path, const char *content, size_t size);
