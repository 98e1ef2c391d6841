/* SPDX-License-Identifier: Apache-2.0 */
/* Which files have results of hosts. */
#include "cli/fleet_files.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* "gpu-17" of "gpu-17.check.json" and "gpu-17.tar.gz": what is left without these endings. */
static const char *host_of(struct arena *a, const char *path)
{
	static const char *const endings[] = {".json", ".txt",   ".log",  ".gz",   ".xz",
					      ".zst",  ".tar",   ".tgz",  ".md",   ".check",
					      ".test", ".bench", ".topo", ".fleet"};
	const char *name = strrchr(path, '/');
	char *host = arena_strdup(a, name ? name + 1 : path);
	bool cut = true;

	while (cut) {
		cut = false;
		for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
			size_t n = strlen(host), end = strlen(endings[i]);

			if (n > end && text_ends_with(host, endings[i])) {
				host[n - end] = '\0';
				cut = true;
			}
		}
	}
	return host;
}

static bool exists_below(const char *folder, const char *name)
{
	AUTO_FREE char *path = xprintf("%s/%s", folder, name);
	struct stat st;

	return stat(path, &st) == 0;
}

/* A recorded machine or a copied tree, instead of a folder of results. */
static bool is_machine(const char *folder)
{
	return exists_below(folder, "sys") || exists_below(folder, "proc") ||
	       exists_below(folder, "machine.txt");
}

static void add_file(struct fleet_files *l, const char *path, const char *host,
		     const struct stat *st)
{
	*ARENA_PUSH(l->arena, l->items, l->n) =
		(struct fleet_file){arena_strdup(l->arena, path),
				    host ? host : host_of(l->arena, path), st->st_mtime};
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int add_path(struct fleet_files *l, const char *path, const char *host, int depth);

/* `host`: the folder's own name, below the folder that was named; else each file is a host. */
static int add_folder(struct fleet_files *l, const char *path, const char *host, int depth)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_visible, alphasort), r = 0;

	if (n < 0)
		return err_sys(errno, "cannot read the folder %s", path);
	for (int i = 0; i < n; i++) {
		AUTO_FREE char *below = xprintf("%s/%s", path, entries[i]->d_name);

		if (r == 0)
			r = add_path(l, below, host, depth + 1);
		free(entries[i]);
	}
	free(entries);
	return r;
}

/* depth 0: as the user named it. Folders below a host's folder are not results. */
static int add_path(struct fleet_files *l, const char *path, const char *host, int depth)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return file_unreadable(errno, path);
	if (!S_ISDIR(st.st_mode) || is_machine(path)) {
		add_file(l, path, host, &st);
		return 0;
	}
	return depth > 1 ? 0 : add_folder(l, path, depth ? host_of(l->arena, path) : NULL, depth);
}

/* Older results first, so that newer ones replace them. */
static int compare_files(const void *a, const void *b)
{
	const struct fleet_file *x = a, *y = b;

	if (x->changed != y->changed)
		return x->changed < y->changed ? -1 : 1;
	return strcmp(x->path, y->path);
}

int fleet_files_find(struct fleet_files *l, const char *const *paths)
{
	int r = 0;

	for (size_t i = 0; r == 0 && paths[i]; i++)
		r = add_path(l, paths[i], NULL, 0);
	if (l->n)
		qsort(l->items, l->n, sizeof(*l->items), compare_files);
	return r < 0 || l->n ? r : err_set(ENOENT, "%s: no results in this folder", paths[0]);
}
