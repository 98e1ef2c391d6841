/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of unlock/ share: the manifest, the plan. */
#pragma once

#include "unlock/lexer.h"
#include "unlock/unlock.h"

/* ---- manifest.c: what onehop did to a tree ---- */

struct manifest_file {
	const char *path;
	char before_hash[SHA256_TEXT], after_hash[SHA256_TEXT];
};

struct manifest {
	struct manifest_file *files;
	size_t n;
	const char *release; /* of version.mk when the tree was edited; NULL: it was not noted */
};

/* -ENOENT: the tree has none. In the arena. */
int manifest_read(const struct tree *t, struct arena *a, struct manifest *ret);
int manifest_write(const struct unlock *u);
/* It notes today's edits, and no others. */
bool manifest_is_of(const struct manifest *m, const struct unlock *u);

/* ---- tree_state.c: the files of a tree, and their state ---- */

/* A file that a row of the table names. */
struct source_file {
	const char *path;
	bool missing;
	/* before: as released; the same as now unless onehop edited it */
	struct tree_file now, before;
	char now_hash[SHA256_TEXT]; /* of those in the manifest */
	bool is_after;              /* the file is in the manifest, and as edited */
	struct lexed lexed;         /* of `before` */
};

struct sources {
	struct source_file *files;
	size_t n;
};

/* All files that the tables and the manifest name, with u->state. Refuses what is neither released nor ours. */
int sources_read(struct unlock *u, struct sources *ret, struct manifest *ret_manifest);
/* A file that the tables name, as this tree names it. */
const char *name_in_tree(const struct tree *t, const char *path);
/* Names the files below KERNEL_OPEN that the tables name. */
void sources_name_kernel_open(struct unlock *u, struct sources *ret);
/* As sources_read, for files whose text is in `before` already, of a tree without a manifest. */
int sources_take(struct unlock *u, struct sources *s);
void sources_done(struct sources *s);
/* Of the mark that an edit put into MARKER_FILE, "unlock 2"; 0: there is none. */
int sources_edit_number(const struct sources *s);
/* NULL: the tree has no such file. */
struct source_file *sources_get(const struct sources *s, const char *path);

/* ---- tree_release.c ---- */

/*
 * The release that version.mk names; NULL: it names none. -EINVAL with a sentence where the parts of the
 * tree are of two releases.
 */
int tree_release(const struct tree *t, struct arena *a, const char **ret);
/*
 * Whether its parts hold what was published as `release`, but for onehop's edits and what make left: ret_changed
 * names those that do not, "kernel-open, src/nvidia"; NULL: none, or the release is unknown. -EINVAL with a
 * sentence where one holds what was published as another release.
 */
int tree_check_parts(const struct tree *t, const char *release, struct arena *a,
		     const char **ret_changed);

/* ---- plan.c ---- */

/* Era, counts, edits; refuses if any differs. */
int unlock_plan(struct unlock *u, struct sources *s);
/*
 * Adds the diff of what is edited below KERNEL_OPEN alone, made from the text of another tree's own such
 * files: `read` gets their names below it, and what it returns is freed. `dir` stands for the tree in
 * messages. -EINVAL with a sentence as unlock_open.
 */
int unlock_diff_kernel_open(const char *dir, int (*read)(void *, const char *, struct tree_file *),
			    void *context, struct strbuf *out);

/* Names of what lies in STATE_FOLDER for a path of the tree; the caller frees. */
char *old_path(const char *path);
char *new_path(const char *path);
