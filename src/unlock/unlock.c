/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of NVIDIA's open kernel modules: read, planned, edited, brought back. */
#include "unlock/unlock_impl.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/text.h"
#include "support/support.h"
#include "unlock/known_sources.h"
#include "unlock/source_hash.h"

#include <stdlib.h>
#include <string.h>

const char *unlock_state_word(enum unlock_state s)
{
	static const char *const words[UNLOCK_STATE_N] = {
		[UNLOCK_STOCK] = "stock",
		[UNLOCK_PATCHED] = "patched",
		[UNLOCK_STARTED] = "started",
	};

	return words[s];
}

/* ---- reading ---- */

/* What the edits belong to is what is built: a version.mk that was changed since is another release's. */
static int read_version(struct unlock *u, const struct manifest *m)
{
	int r = tree_release(&u->tree, u->arena, &u->version);

	if (u->has_manifest && m->release && (r == 0 || r == -EINVAL) &&
	    (!u->version || strcmp(u->version, m->release) != 0))
		return r < 0 ? r
			     : err_set(EINVAL,
				       "%s/version.mk says %s, and said %s when onehop edited the "
				       "tree: put that back, or unpack the release again",
				       u->tree.dir, u->version ? u->version : "nothing",
				       m->release);
	return r;
}

/* A folder that is something else gets a line of its own, not one about the first file that lacks. */
static int refuse_other_folders(const struct unlock *u)
{
	if (tree_has(&u->tree, SWITCH_FILE))
		return 0;
	if (tree_has(&u->tree, PREBUILT_CORE))
		return err_set(EINVAL,
			       "%s is the tree of a package: its core is prebuilt (" PREBUILT_CORE
			       "), so it can only be edited in the sources of the release",
			       u->tree.dir);
	return err_set(EINVAL,
		       "%s is not a tree of NVIDIA's open kernel modules: it has no " SWITCH_FILE,
		       u->tree.dir);
}

static void judge_edits(struct unlock *u, const struct sources *s, const struct manifest *m)
{
	u->other_edits = u->state != UNLOCK_STOCK && !manifest_is_of(m, u);
	u->newer_edits = u->other_edits && sources_edit_number(s) > edit_number(EDIT_MARK);
}

static int look(struct unlock *u)
{
	struct sources s = {0};
	struct manifest m;
	int r = refuse_other_folders(u);

	if (r == 0)
		r = source_check_kinds(&u->tree);
	if (r == 0)
		r = sources_read(u, &s, &m);
	if (r == 0)
		r = read_version(u, &m);
	u->tried = u->version && known_source_find(u->version);
	if (r == 0)
		r = tree_check_parts(&u->tree, u->version, u->arena, &u->changed);
	if (r == 0)
		r = unlock_plan(u, &s);
	if (r == 0)
		judge_edits(u, &s, &m);
	sources_done(&s);
	return r;
}

/* The files of the manifest, as they were released. */
static int look_back(struct unlock *u)
{
	struct sources s = {0};
	struct manifest m = {0};
	int r = refuse_other_folders(u);

	if (r == 0)
		r = sources_read(u, &s, &m);
	for (size_t i = 0; i < m.n && r == 0; i++) {
		struct source_file *f = sources_get(&s, m.files[i].path);
		struct unlock_file *e = ARENA_PUSH(u->arena, u->files, u->n);

		e->path = f->path;
		e->is_after = f->is_after;
		e->before = f->now; /* owner and permissions of today */
		e->before.data = arena_strndup(u->arena, f->before.data, f->before.size);
		e->before.size = f->before.size;
	}
	/* Every byte comes back, whatever version.mk says. */
	if (r == 0 && tree_release(&u->tree, u->arena, &u->version) < 0)
		u->version = NULL;
	sources_done(&s);
	return r;
}

static int open_tree(const char *dir, const struct unlock_options *o, struct unlock **ret)
{
	struct unlock *u = xcalloc(1, sizeof(*u));
	int r;

	u->arena = arena_new();
	r = tree_open(dir, &u->tree);
	u->tree.before = o->before;
	u->tree.context = o->context;
	*ret = u;
	return r;
}

static int opened(int r, struct unlock **u)
{
	if (r < 0) {
		unlock_close(*u);
		*u = NULL;
	}
	return r;
}

int unlock_open(const char *dir, const struct unlock_options *o, struct unlock **ret)
{
	int r = open_tree(dir, o, ret);

	if (r == 0)
		r = look(*ret);
	return opened(r, ret);
}

void unlock_close(struct unlock *u)
{
	if (!u)
		return;
	tree_close(&u->tree);
	arena_free(u->arena);
	free(u);
}

/* ---- writing ---- */

/* What belongs to the files that are as released: their copies, or what they become. */
static int stage(const struct unlock *u, char *(*name)(const char *), bool after)
{
	AUTO_FREE const char **paths = xcalloc(u->n, sizeof(*paths));
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < u->n && r == 0; i++) {
		const struct unlock_file *f = &u->files[i];

		if (f->is_after)
			continue;
		paths[n++] = name(f->path);
		r = tree_stage(&u->tree, paths[n - 1], after ? &f->after : &f->before);
	}
	if (r == 0)
		r = tree_sync(&u->tree, paths, n, name == old_path);
	for (size_t i = 0; i < n; i++)
		free((char *)paths[i]);
	return r;
}

static int put_edited(struct unlock *u, struct unlock_file *f)
{
	AUTO_FREE char *from = new_path(f->path);

	return tree_rename(&u->tree, from, f->path);
}

/* The kept original itself gets its place back, so that a full disk has room for it. A copy, if it has other names. */
static int put_original(struct unlock *u, struct unlock_file *f)
{
	AUTO_FREE char *kept = old_path(f->path), *copy = new_path(f->path);
	const char *staged = copy;
	int r = tree_renew(&u->tree, kept, &f->before);

	if (r == 0)
		return tree_rename(&u->tree, kept, f->path);
	if (r == -EMLINK) {
		r = tree_stage(&u->tree, copy, &f->before);
		if (r == 0)
			r = tree_sync(&u->tree, &staged, 1, false);
		if (r == 0)
			r = tree_rename(&u->tree, copy, f->path);
	}
	return r;
}

/* All files become as wanted, in order, or from the last to the first. */
static int put(struct unlock *u, bool after)
{
	for (size_t k = 0; k < u->n; k++) {
		struct unlock_file *f = &u->files[after ? k : u->n - 1 - k];
		int r;

		if (f->is_after == after)
			continue;
		r = after ? put_edited(u, f) : put_original(u, f);
		if (r < 0)
			return r;
		f->is_after = after;
		u->replaced++;
	}
	return 0;
}

/* The manifest is complete before the first file changes; `old` holds every edited file's original from then on. */
static int apply(struct unlock *u)
{
	int r = 0;

	if (u->state != UNLOCK_PATCHED)
		r = stage(u, old_path, false);
	if (r == 0 && u->state != UNLOCK_PATCHED)
		r = stage(u, new_path, true);
	if (r == 0 && u->state == UNLOCK_STOCK)
		r = manifest_write(u);
	if (r == 0)
		r = put(u, true);
	return r < 0 ? r : tree_remove(&u->tree, STATE_FOLDER "/new");
}

static int revert(struct unlock *u)
{
	int r = put(u, false);

	if (r == 0)
		r = tree_remove(&u->tree, MANIFEST); /* the rest is of no use without it */
	return r < 0 ? r : tree_remove(&u->tree, STATE_FOLDER);
}

/* Nothing that was found out holds any more. */
static void forget(struct unlock *u)
{
	const struct unlock empty = {.arena = u->arena, .tree = u->tree};

	*u = empty;
}

/* Edits of another onehop go by their manifest, as a revert does; then today's are made from what is stock. */
static int take_back_others(struct unlock *u)
{
	int r;

	if (u->newer_edits)
		return err_set(
			EINVAL,
			"%s was edited by a newer onehop: use that version, or --revert first",
			u->tree.dir);
	forget(u);
	r = look_back(u);
	if (r == 0)
		r = revert(u);
	if (r < 0)
		return r;
	forget(u);
	u->taken_back = true;
	return look(u);
}

/* The tree is no longer as it was found: the message says so, and what to do. */
static int changed_in_part(const struct unlock *u, int r)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	if (r == 0 || (!u->replaced && !u->taken_back))
		return r;
	return err_set(
		-r,
		"%s; the tree was changed: `onehop unlock --tree %s --revert` restores every "
		"file, --apply edits it again",
		why, u->tree.dir);
}

static int change(const char *dir, const struct unlock_options *o, bool after, struct unlock **ret)
{
	int r = open_tree(dir, o, ret);

	if (r == 0)
		r = tree_lock(&(*ret)->tree);
	if (r == 0)
		r = after ? look(*ret) : look_back(*ret);
	if (r == 0 && (*ret)->other_edits)
		r = take_back_others(*ret);
	if (r == 0)
		r = after ? apply(*ret) : revert(*ret);
	r = changed_in_part(*ret, r);
	return opened(r, ret);
}

int unlock_apply(const char *dir, const struct unlock_options *o, struct unlock **ret)
{
	return change(dir, o, true, ret);
}

int unlock_revert(const char *dir, const struct unlock_options *o, struct unlock **ret)
{
	return change(dir, o, false, ret);
}

/* ---- the diff ---- */

void unlock_diff(const struct unlock *u, struct strbuf *out)
{
	strbuf_printf(out, "# onehop unlock: %s, kind %s, %zu %s in %zu %s; apply with patch -p1\n",
		      u->version ? u->version : "a tree", era_names[u->era].name, u->edit_n,
		      text_plural(u->edit_n, "edit", "edits"), u->n,
		      text_plural(u->n, "file", "files"));
	strbuf_puts(out, "# sha256 before, after\n");
	for (size_t i = 0; i < u->n; i++)
		strbuf_printf(out, "# %s %s %s\n", u->files[i].before_hash, u->files[i].after_hash,
			      u->files[i].path);
	for (size_t i = 0; i < u->n; i++)
		edits_diff(u->files[i].path, u->files[i].before.data, u->files[i].before.size,
			   u->files[i].edits, u->files[i].n, out);
}
