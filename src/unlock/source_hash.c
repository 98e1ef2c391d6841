/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/source_hash.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "base/strbuf.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

bool source_path_is_plain(const char *path)
{
	unsigned slashes = 0;

	if (strlen(path) >= PATH_MAX / 2 || !path_is_clean(path))
		return false;
	for (const char *p = path; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
		slashes += *p == '/';
	}
	return slashes < SOURCE_DEPTH_MAX;
}

/* ---- the files ---- */

struct files {
	const struct tree *tree;
	struct arena *arena;
	char **paths;
	size_t n;
};

static int add_folder(struct files *f, int parent, const char *name, const char *path);

static int add_entry(struct files *f, int folder, const char *name, const char *path)
{
	struct stat st;

	if (!source_path_is_plain(path))
		return err_set(EINVAL, "%s: a file name that is not plain text", f->tree->dir);
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(errno, "%s/%s", f->tree->dir, path);
	if (S_ISDIR(st.st_mode))
		return add_folder(f, folder, name, path);
	if (!S_ISREG(st.st_mode))
		return err_set(EINVAL, "%s/%s is not a regular file", f->tree->dir, path);
	if (f->n == SOURCE_FILES_MAX)
		return err_set(EINVAL, "%s has more than %d files", f->tree->dir, SOURCE_FILES_MAX);
	*ARENA_PUSH(f->arena, f->paths, f->n) = arena_strdup(f->arena, path);
	return 0;
}

/* `path` is "" for the tree itself. */
static int add_folder(struct files *f, int parent, const char *name, const char *path)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d) {
		r = err_sys(errno, "%s/%s", f->tree->dir, path);
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (e = readdir(d))) {
		AUTO_FREE char *below = NULL;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		below = *path ? xprintf("%s/%s", path, e->d_name) : xstrdup(e->d_name);
		r = add_entry(f, fd, e->d_name, below);
	}
	closedir(d);
	return r;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- the hash ---- */

static int add_line(const struct tree *t, const char *path, struct strbuf *lines)
{
	struct tree_file file;
	char hash[SHA256_TEXT];
	int r = tree_read(t, path, SOURCE_FILE_MAX, &file);

	if (r == -ENOENT)
		return err_sys(ENOENT, "%s/%s", t->dir, path);
	if (r < 0)
		return r;
	sha256(file.data, file.size, hash);
	free(file.data);
	strbuf_printf(lines, "%s  %s\n", hash, path);
	return 0;
}

int source_hash(const struct tree *t, char ret[static SHA256_TEXT])
{
	AUTO_STRBUF struct strbuf lines = {0};
	struct files f = {.tree = t, .arena = arena_new()};
	int r = add_folder(&f, t->fd, ".", "");

	if (r == 0 && f.n)
		qsort(f.paths, f.n, sizeof(*f.paths), by_bytes);
	for (size_t i = 0; i < f.n && r == 0; i++)
		r = add_line(t, f.paths[i], &lines);
	if (r == 0)
		sha256(strbuf_str(&lines), lines.len, ret);
	arena_free(f.arena);
	return r;
}
