/* SPDX-License-Identifier: Apache-2.0 */
/* What onehop did to a tree, on disk: hashes of each file before and after. */
#include "unlock/unlock_impl.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/path.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MANIFEST_MAX  (1u << 20)
#define MANIFEST_NEW  MANIFEST ".new"
#define MANIFEST_FORM 1

char *old_path(const char *path)
{
	return xprintf(STATE_FOLDER "/old/%s", path);
}

char *new_path(const char *path)
{
	return xprintf(STATE_FOLDER "/new/%s", path);
}

static bool is_hash(const char *s)
{
	return s && strlen(s) == SHA256_TEXT - 1 &&
	       strspn(s, "0123456789abcdef") == SHA256_TEXT - 1;
}

static bool parse_file(json_t *o, struct arena *a, struct manifest_file *ret)
{
	const char *path = NULL, *before = NULL, *after = NULL;

	if (json_unpack(o, "{s:s, s:s, s:s}", "path", &path, "before", &before, "after", &after) <
		    0 ||
	    !is_hash(before) || !is_hash(after) || !path_is_clean(path))
		return false;
	ret->path = arena_strdup(a, path);
	memcpy(ret->before_hash, before, SHA256_TEXT);
	memcpy(ret->after_hash, after, SHA256_TEXT);
	return true;
}

static bool parse(json_t *o, struct arena *a, struct manifest *ret)
{
	json_t *files = NULL, *f;
	const char *release = NULL;
	int form;
	size_t i;

	if (json_unpack(o, "{s:i, s:o, s?s}", "manifest", &form, "files", &files, "release",
			&release) < 0 ||
	    form != MANIFEST_FORM)
		return false;
	ret->release = release ? arena_strdup(a, release) : NULL;
	json_array_foreach (files, i, f) {
		if (!parse_file(f, a, ARENA_PUSH(a, ret->files, ret->n)))
			return false;
	}
	return ret->n > 0;
}

int manifest_read(const struct tree *t, struct arena *a, struct manifest *ret)
{
	struct tree_file file;
	json_t *o;
	bool ok;
	int r = tree_read(t, MANIFEST, MANIFEST_MAX, &file);

	if (r < 0)
		return r;
	*ret = (struct manifest){0};
	o = json_loadb(file.data, file.size, 0, NULL);
	ok = o && parse(o, a, ret);
	json_decref(o);
	free(file.data);
	if (!ok)
		return err_set(EINVAL,
			       "%s/" MANIFEST " is not what onehop wrote: unpack the release again",
			       t->dir);
	return 0;
}

int manifest_write(const struct unlock *u)
{
	static const char *const staged = MANIFEST_NEW;
	json_t *files = json_array(), *o;
	struct tree_file file = {.mode = 0644,
				 .uid = u->n ? u->files[0].before.uid : 0,
				 .gid = u->n ? u->files[0].before.gid : 0};
	int r;

	for (size_t i = 0; i < u->n; i++)
		json_array_append_new(files, json_pack("{s:s, s:s, s:s}", "path", u->files[i].path,
						       "before", u->files[i].before_hash, "after",
						       u->files[i].after_hash));
	o = json_pack("{s:i, s:s, s:s, s:s*, s:o}", "manifest", MANIFEST_FORM, "made_by",
		      "onehop unlock; `onehop unlock --tree DIR --revert` takes it back", "era",
		      era_names[u->era].name, "release", u->version, "files", files);
	file.data = json_dumps(o, JSON_INDENT(1));
	file.size = strlen(file.data);
	json_decref(o);
	r = tree_stage(&u->tree, staged, &file);
	if (r == 0)
		r = tree_sync(&u->tree, &staged, 1, false);
	if (r == 0)
		r = tree_rename(&u->tree, MANIFEST_NEW, MANIFEST);
	free(file.data);
	return r;
}

static bool notes(const struct manifest *m, const struct unlock_file *f)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->files[i].path, f->path) == 0)
			return strcmp(m->files[i].before_hash, f->before_hash) == 0 &&
			       strcmp(m->files[i].after_hash, f->after_hash) == 0;
	return false;
}

bool manifest_is_of(const struct manifest *m, const struct unlock *u)
{
	size_t same = 0;

	for (size_t i = 0; i < u->n; i++)
		same += notes(m, &u->files[i]);
	return same == u->n && same == m->n;
}
