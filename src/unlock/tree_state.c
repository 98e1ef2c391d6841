/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a tree that the tables name, and whether they are as released or ours. */
#include "unlock/unlock_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/step.h"
#include "support/support.h"
#include "unlock/anchor.h"

#include <stdlib.h>
#include <string.h>

/* ---- one file ---- */

const char *name_in_tree(const struct tree *t, const char *path)
{
	return path +
	       (t->is_package && text_starts_with(path, KERNEL_OPEN) ? strlen(KERNEL_OPEN) : 0);
}

static int refuse_odd_text(const struct tree *t, const struct source_file *f)
{
	const char *crlf = memmem(f->before.data, f->before.size, "\r\n", 2);

	if (crlf)
		return err_set(
			EINVAL,
			"%s/%s: lines end in CR LF, not LF: unpack the release again without "
			"conversion",
			t->dir, name_in_tree(t, f->path));
	if (f->lexed.trouble)
		return err_set(EINVAL, "%s/%s:%u: %s: is the file whole?", t->dir,
			       name_in_tree(t, f->path),
			       line_of(f->before.data, f->lexed.trouble_at), f->lexed.trouble);
	return 0;
}

static int read_source(struct unlock *u, struct source_file *f)
{
	int r = tree_read(&u->tree, f->path, LEX_MAX, &f->now);

	f->missing = r == -ENOENT;
	return r == -ENOENT ? 0 : r;
}

static int lex_source(struct unlock *u, struct source_file *f)
{
	int r = lex(f->before.data, f->before.size, &f->lexed);

	return r < 0 ? r : refuse_odd_text(&u->tree, f);
}

/* ---- what the manifest says ---- */

static int changed_since(const struct unlock *u, const char *path)
{
	return err_set(
		EINVAL,
		"%s/%s was changed after onehop had edited it: put back what it was, or unpack the "
		"release again",
		u->tree.dir, path);
}

/* The file as released: what lies there, or what was kept. */
static int read_before(struct unlock *u, struct source_file *f, const struct manifest_file *m)
{
	AUTO_FREE char *kept = old_path(m->path);
	char hash[SHA256_TEXT];
	int r;

	if (f->missing)
		return changed_since(u, m->path);
	sha256(f->now.data, f->now.size, f->now_hash);
	if (strcmp(f->now_hash, m->before_hash) == 0)
		return 0;
	if (strcmp(f->now_hash, m->after_hash) != 0)
		return changed_since(u, m->path);
	f->is_after = true;
	r = tree_read(&u->tree, kept, LEX_MAX, &f->before);
	if (r == -ENOENT)
		return err_set(EINVAL, "%s/%s is missing: unpack the release again", u->tree.dir,
			       kept);
	if (r < 0)
		return r;
	sha256(f->before.data, f->before.size, hash);
	if (strcmp(hash, m->before_hash) != 0)
		return err_set(EINVAL, "%s/%s was changed: unpack the release again", u->tree.dir,
			       kept);
	return 0;
}

static int apply_manifest(struct unlock *u, struct sources *s, const struct manifest *m)
{
	size_t after = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct source_file *f = sources_get(s, m->files[i].path);
		int r = f ? read_before(u, f, &m->files[i]) : changed_since(u, m->files[i].path);

		if (r < 0)
			return r;
		after += f->is_after;
	}
	u->state = after == 0 ? UNLOCK_STOCK : after == m->n ? UNLOCK_PATCHED : UNLOCK_STARTED;
	return 0;
}

int sources_edit_number(const struct sources *s)
{
	static const char start[] = "MODULE_INFO(onehop, \"";
	const struct source_file *f = sources_get(s, MARKER_FILE);
	const char *at = f ? strstr(f->now.data, start) : NULL;

	return at ? edit_number(at + strlen(start)) : 0;
}

/* The edits are in the diff of the same release: whoever has that can take them out. The caller frees. */
static char *take_out_command(const struct unlock *u)
{
	const char *const dir[] = {u->tree.dir, NULL};
	AUTO_STRBUF struct strbuf b = {0};

	strbuf_puts(&b, "onehop unlock --tree NEW --diff | patch -R -p1 -d ");
	step_command_line(dir, &b);
	return xstrdup(strbuf_str(&b));
}

/* Ours without a manifest: made with patch(1) from --diff, or a copy that left the hidden folder out. */
static int refuse_lost_manifest(struct unlock *u, const struct sources *s)
{
	struct source_file *f = sources_get(s, MARKER_FILE);
	struct pattern *mark = pattern_new(MARKER_PATTERN);
	size_t n = f ? pattern_count(mark, &f->lexed, scope_all(&f->lexed), NULL) : 0;
	AUTO_FREE char *command = NULL;
	const char *release = NULL;

	pattern_free(mark);
	if (n == 0)
		return 0;
	if (tree_release(&u->tree, u->arena, &release) < 0)
		release = NULL;
	command = take_out_command(u);
	return err_set(EINVAL,
		       "%s has onehop's edits (its mark is in " MARKER_FILE "), but no " MANIFEST
		       ": they were made with --diff and patch, or the folder was not copied. "
		       "To remove them, unpack release %s into a folder NEW and run%s: %s",
		       u->tree.dir, release ? release : "of the tree",
		       sources_edit_number(s) == edit_number(EDIT_MARK)
			       ? ""
			       : ", with the onehop that made them",
		       command);
}

/* ---- all of them ---- */

static void add_source(struct unlock *u, struct sources *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->files[i].path, path) == 0)
			return;
	}
	ARENA_PUSH(u->arena, s->files, s->n)->path = path;
}

struct source_file *sources_get(const struct sources *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->files[i].path, path) == 0)
			return s->files[i].missing ? NULL : &s->files[i];
	}
	return NULL;
}

static int read_manifest(struct unlock *u, struct manifest *ret)
{
	int r = manifest_read(&u->tree, u->arena, ret);

	u->has_manifest = r == 0;
	return r == -ENOENT ? 0 : r;
}

static void name_sources(struct unlock *u, struct sources *s, const struct manifest *m)
{
	for (size_t i = 0; i < feature_n; i++)
		add_source(u, s, features[i].file);
	for (size_t i = 0; i < anchor_n; i++)
		add_source(u, s, anchors[i].file);
	for (size_t i = 0; i < m->n; i++)
		add_source(u, s, m->files[i].path);
}

static int lex_sources(struct unlock *u, struct sources *s)
{
	int r = 0;

	for (size_t i = 0; i < s->n && r == 0; i++) {
		struct source_file *f = &s->files[i];

		if (f->missing)
			continue;
		if (!f->is_after)
			f->before = f->now;
		r = lex_source(u, f);
	}
	return r;
}

int sources_read(struct unlock *u, struct sources *ret, struct manifest *ret_manifest)
{
	int r;

	*ret = (struct sources){0};
	*ret_manifest = (struct manifest){0};
	r = read_manifest(u, ret_manifest);
	if (r < 0)
		return r;
	name_sources(u, ret, ret_manifest);
	for (size_t i = 0; i < ret->n && r == 0; i++)
		r = read_source(u, &ret->files[i]);
	if (r == 0)
		r = apply_manifest(u, ret, ret_manifest);
	if (r == 0)
		r = lex_sources(u, ret);
	return r < 0 || u->has_manifest ? r : refuse_lost_manifest(u, ret);
}

void sources_name_kernel_open(struct unlock *u, struct sources *ret)
{
	for (size_t i = 0; i < anchor_n; i++) {
		if (text_starts_with(anchors[i].file, KERNEL_OPEN))
			add_source(u, ret, anchors[i].file);
	}
}

int sources_take(struct unlock *u, struct sources *s)
{
	int r = 0;

	for (size_t i = 0; i < s->n && r == 0; i++)
		r = lex_source(u, &s->files[i]);
	return r;
}

void sources_done(struct sources *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct source_file *f = &s->files[i];

		lexed_done(&f->lexed);
		if (f->before.data != f->now.data)
			free(f->before.data);
		free(f->now.data);
		f->before.data = f->now.data = NULL;
	}
}
