/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of NVIDIA's open kernel modules: what it is, what would be edited, and doing that. */
#pragma once

#include "fix/sha256.h"
#include "unlock/edit.h"
#include "unlock/eras.h"
#include "unlock/tree.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;

#define MANIFEST STATE_FOLDER "/manifest.json"

enum unlock_state {
	UNLOCK_STOCK,   /* none of onehop's edits is in it */
	UNLOCK_PATCHED, /* by onehop, all of it */
	UNLOCK_STARTED, /* a run was cut off: some files are as released, some are edited */
	UNLOCK_STATE_N
};

/* One edit: a row of the table, at its place. */
struct unlock_edit {
	const struct anchor *row;
	unsigned line; /* in the file as released */
};

struct unlock_file {
	const char *path; /* below the tree */
	struct tree_file before, after;
	char before_hash[SHA256_TEXT], after_hash[SHA256_TEXT];
	char now_hash[SHA256_TEXT]; /* of what lies in the tree */
	bool is_after;              /* and that is what onehop made of it */
	struct edit *edits;
	struct unlock_edit *rows; /* the same ones */
	size_t n;
};

/* A place that was looked for, in the order of the table. */
struct unlock_check {
	const struct anchor *row;
	unsigned found;
};

struct unlock {
	struct arena *arena;
	struct tree tree;
	enum unlock_state state;
	enum era era;
	const char *version; /* of version.mk, for people only; NULL: not there */
	bool tried; /* the edits, with this release; its sources are known, so `changed` is too */
	const char *changed; /* its parts that are not as published: see tree_check_parts */
	unsigned conditions; /* a bit for each enum condition that is met */
	bool asks_kernel; /* itself, what arguments pci_resize_resource has: the edit is not made */
	/* those that are edited, in the order in which they are replaced */
	struct unlock_file *files;
	size_t n, edit_n;
	struct unlock_check *checks;
	size_t check_n;
	bool has_manifest;
	bool other_edits; /* an onehop of another version edited it */
	bool newer_edits; /* and of a later one */
	bool taken_back;  /* unlock_apply: such edits were there, and were reverted first */
	size_t replaced;  /* files that this run replaced */
};

struct unlock_options {
	/* As struct tree's; for tests. */
	int (*before)(void *context, const char *path);
	void *context;
};

/*
 * Reads a tree and plans; writes nothing. A tree that is not as released, nor as onehop leaves it, is
 * refused: -EINVAL with a sentence that names the place, the file, what was expected and what found.
 * Other errors: it could not be read.
 */
int unlock_open(const char *dir, const struct unlock_options *options, struct unlock **ret);
void unlock_close(struct unlock *u);

/*
 * Edits the tree, or brings every byte back; what a run that was cut off left undone is done. Edits of an
 * earlier onehop are reverted by their manifest first, those of a later one refused. 0 too if
 * there is nothing to do: see `replaced`; `state` is what was found. -EINVAL, -EBUSY: refused, nothing
 * written. Other errors: a change failed. Looks at the tree again, under a lock. unlock_revert fills in
 * no era and no edits: the manifest is all that it goes by.
 */
int unlock_apply(const char *dir, const struct unlock_options *options, struct unlock **ret);
int unlock_revert(const char *dir, const struct unlock_options *options, struct unlock **ret);

/* A unified diff for `patch -p1`, behind lines that begin with # and hold the hashes. */
void unlock_diff(const struct unlock *u, struct strbuf *out);

const char *unlock_state_word(enum unlock_state s); /* "stock", "patched", "started" */
