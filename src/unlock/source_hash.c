/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/source_hash.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "unlock/unlock_impl.h"

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

const char *const source_parts[SOURCE_FOLDERS] = {
	"kernel-open",
	"src/common",
	"src/nvidia",
	"src/nvidia-modeset",
	"kernel-open/nvidia",
	"kernel-open/nvidia-uvm",
	"src/nvidia/generated",
	"src/nvidia/src/kernel/gpu/bif",
	"src/nvidia/src/kernel/gpu/bus",
	"src/nvidia/src/kernel/mem_mgr",
	"src/nvidia/src/kernel/platform/p2p",
	"src/nvidia/src/kernel/rmapi",
	"src/nvidia/src/libraries/mmu",
};

/* ---- the files ---- */

struct files {
	const struct tree *tree;
	struct arena *arena;
	bool skips_built; /* what make leaves between the sources */
	/* files are not listed: only pipes, sockets and devices are looked for */
	bool only_specials;
	char **paths;
	size_t n;
};

static int add_folder(struct files *f, int parent, const char *name, const char *path);

/* By the name alone: no release has a file of such a name. */
static bool is_built(const char *name)
{
	static const char *const names[] = {"_out", "conftest", "Module.symvers", "modules.order"};
	static const char *const ends[] = {".o",   ".o_binary", ".ko",   ".cmd",
					   ".o.d", ".mod",      ".mod.c"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (text_ends_with(name, ends[i]))
			return true;
	return false;
}

const char *source_special_kind(mode_t mode)
{
	static const struct {
		mode_t type;
		const char *name;
	} kinds[] = {{S_IFIFO, "a named pipe"},
		     {S_IFSOCK, "a socket"},
		     {S_IFCHR, "a character device"},
		     {S_IFBLK, "a block device"}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((mode & S_IFMT) == kinds[i].type)
			return kinds[i].name;
	return NULL;
}

static int add_entry(struct files *f, int folder, const char *name, const char *path)
{
	struct stat st;

	if (f->skips_built && is_built(name))
		return 0;
	if (f->only_specials && !source_path_is_plain(path))
		return 0;
	if (!source_path_is_plain(path))
		return err_set(EINVAL, "%s: a file name that is not plain text", f->tree->dir);
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(errno, "%s/%s", f->tree->dir, path);
	if (S_ISDIR(st.st_mode))
		return add_folder(f, folder, name, path);
	if (source_special_kind(st.st_mode))
		return err_set(EINVAL, "%s/%s is %s, not a file: remove it", f->tree->dir, path,
			       source_special_kind(st.st_mode));
	if (f->only_specials)
		return 0;
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
	AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char **names = NULL;
	size_t n = 0;
	int r = fd < 0 ? -errno : fd_list(fd, &names, &n);

	if (r < 0)
		return err_sys(-r, "%s/%s", f->tree->dir, path);
	for (size_t i = 0; r == 0 && i < n; i++) {
		AUTO_FREE char *below =
			*path ? xprintf("%s/%s", path, names[i]) : xstrdup(names[i]);

		r = add_entry(f, fd, names[i], below);
	}
	source_free_names(names, n);
	return r;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- the hash ---- */

/* `path` is the file's in the release; what counts for it lies at `from`. */
static int add_line(const struct tree *t, const char *from, const char *path, struct strbuf *lines)
{
	struct tree_file file;
	char hash[SHA256_TEXT];
	int r = tree_read(t, from, SOURCE_FILE_MAX, &file);

	if (r == -ENOENT)
		return err_sys(ENOENT, "%s/%s", t->dir, from);
	if (r < 0)
		return r;
	sha256(file.data, file.size, hash);
	free(file.data);
	strbuf_printf(lines, "%s  %s\n", hash, path);
	return 0;
}

static bool is_ours(const char *path)
{
	static const char *const folders[] = {STATE_FOLDER "/", "src/nvidia/_out/",
					      "src/nvidia-modeset/_out/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (text_starts_with(path, folders[i]))
			return true;
	return false;
}

/* Whether a file of the manifest lies there as it was released. Its copy may be missing then, or incomplete. */
static bool is_as_released(const struct tree *t, const struct manifest_file *m)
{
	struct tree_file file;
	char hash[SHA256_TEXT];

	if (tree_read(t, m->path, SOURCE_FILE_MAX, &file) < 0)
		return false;
	sha256(file.data, file.size, hash);
	free(file.data);
	return strcmp(hash, m->before_hash) == 0;
}

/* Where the file lies as it was released; `m` NULL: in its place. The caller frees. */
static char *place_of(const struct tree *t, const char *path, const struct manifest *m)
{
	for (size_t i = 0; m && i < m->n; i++) {
		AUTO_FREE char *kept = old_path(path);

		if (strcmp(m->files[i].path, path) == 0 && tree_has(t, kept) &&
		    !is_as_released(t, &m->files[i]))
			return TAKE_PTR(kept);
	}
	return xstrdup(path);
}

/* Of the folder `below`, "": the tree. `m` NULL: every file counts, as it lies there. */
static int add_lines(struct files *f, const char *below, const struct manifest *m,
		     struct strbuf *lines)
{
	int r = add_folder(f, f->tree->fd, *below ? below : ".", below);

	if (r == 0 && f->n)
		qsort(f->paths, f->n, sizeof(*f->paths), by_bytes);
	for (size_t i = 0; i < f->n && r == 0; i++) {
		AUTO_FREE char *from = place_of(f->tree, f->paths[i], m);

		if (!m || !is_ours(f->paths[i]))
			r = add_line(f->tree, from, f->paths[i], lines);
	}
	return r;
}

static int hash_lines(struct files *f, const char *below, const struct manifest *m,
		      char ret[static SHA256_TEXT])
{
	AUTO_STRBUF struct strbuf lines = {0};
	int r = add_lines(f, below, m, &lines);

	if (r == 0)
		sha256(strbuf_str(&lines), lines.len, ret);
	return r;
}

int source_hash(const struct tree *t, char ret[static SHA256_TEXT])
{
	struct files f = {.tree = t, .arena = arena_new()};
	int r = hash_lines(&f, "", NULL, ret);

	arena_free(f.arena);
	return r;
}

/* As it was before onehop edited and built it. */
static int hash_before(struct files *f, const char *below, char ret[static SHA256_TEXT])
{
	struct manifest m = {0};
	int r = manifest_read(f->tree, f->arena, &m);

	return r == 0 || r == -ENOENT ? hash_lines(f, below, &m, ret) : r;
}

int source_hash_before(const struct tree *t, char ret[static SHA256_TEXT])
{
	struct files f = {.tree = t, .arena = arena_new()};
	int r = hash_before(&f, "", ret);

	arena_free(f.arena);
	return r;
}

int source_hash_part(const struct tree *t, const char *folder, char ret[static SHA256_TEXT])
{
	struct files f = {.tree = t, .arena = arena_new(), .skips_built = true};
	int r = tree_has(t, folder) ? hash_before(&f, folder, ret) : -ENOENT;

	arena_free(f.arena);
	return r;
}

int source_check_kinds(const struct tree *t)
{
	struct files f = {.tree = t, .arena = arena_new(), .only_specials = true};
	int r = add_folder(&f, t->fd, ".", "");

	arena_free(f.arena);
	return r;
}
