/* SPDX-License-Identifier: Apache-2.0 */
/* Files below a tree: read whole, staged, renamed. */
#include "unlock/tree.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDERS_MAX 16 /* below each other */

int tree_open(const char *dir, struct tree *ret)
{
	*ret = (struct tree){.dir = dir, .fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	return ret->fd < 0 ? err_sys(errno, "%s", dir) : 0;
}

void tree_close(struct tree *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

static int at_point(const struct tree *t, const char *path)
{
	return t->before ? t->before(t->context, path) : 0;
}

/* ---- folders ---- */

/*
 * The folder that holds the last component, which ret_name gets. Folders that are missing are made if
 * `make`. A negative errno: ELOOP for a link, ENOTDIR too.
 */
static int open_folder(const struct tree *t, const char *path, bool make, const char **ret_name)
{
	AUTO_CLOSE int fd = openat(t->fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[256];
	const char *slash;

	*ret_name = path;
	while (fd >= 0 && (slash = strchr(path, '/'))) {
		size_t n = (size_t)(slash - path);
		int next;

		if (n >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, path, n);
		name[n] = '\0';
		if (make && mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(fd);
		fd = next;
		*ret_name = path = slash + 1;
	}
	return fd < 0 ? -errno : TAKE_FD(fd);
}

static int sync_folder(const struct tree *t, const char *path)
{
	const char *name;
	AUTO_CLOSE int folder = open_folder(t, path, false, &name);
	AUTO_CLOSE int fd = -1;

	if (folder >= 0)
		fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return err_sys(folder < 0 ? -folder : errno, "%s/%s: its folder", t->dir, path);
	return 0;
}

/* ---- reading ---- */

/* Opens a regular file without waiting for one that is none. */
static int open_file(const struct tree *t, const char *path, struct stat *ret)
{
	const char *name;
	AUTO_CLOSE int folder = open_folder(t, path, false, &name);
	AUTO_CLOSE int fd = -1;

	if (folder < 0)
		return folder;
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) ? TAKE_FD(fd) : -EINVAL;
}

static int read_all(int fd, char *data, size_t size, size_t *ret_size)
{
	size_t n = 0;
	ssize_t r;

	while (n < size && (r = read(fd, data + n, size - n)) != 0) {
		if (r > 0)
			n += (size_t)r;
		else if (errno != EINTR)
			return -errno;
	}
	*ret_size = n;
	return 0;
}

static int failed_to_read(const struct tree *t, const char *path, int r)
{
	if (r == -ENOENT)
		return r;
	if (r == -ELOOP || r == -ENOTDIR)
		return err_set(ELOOP,
			       "%s/%s: it, or a folder in its path, is a link or not a folder",
			       t->dir, path);
	if (r == -EINVAL)
		return err_set(EINVAL, "%s/%s is not a regular file", t->dir, path);
	return err_sys(-r, "%s/%s", t->dir, path);
}

int tree_read(const struct tree *t, const char *path, size_t max, struct tree_file *ret)
{
	struct stat st = {0};
	AUTO_CLOSE int fd = open_file(t, path, &st);
	AUTO_FREE char *data = NULL;
	size_t n = 0;
	int r;

	if (fd < 0)
		return failed_to_read(t, path, fd);
	if ((uintmax_t)st.st_size > max)
		return err_set(EFBIG, "%s/%s: %jd bytes are too many", t->dir, path,
			       (intmax_t)st.st_size);
	data = xmalloc((size_t)st.st_size + 1);
	r = read_all(fd, data, (size_t)st.st_size, &n);
	if (r < 0)
		return err_sys(-r, "%s/%s", t->dir, path);
	data[n] = '\0';
	*ret = (struct tree_file){TAKE_PTR(data), n, st.st_mode & 07777, st.st_uid, st.st_gid};
	return 0;
}

bool tree_has(const struct tree *t, const char *path)
{
	const char *name;
	AUTO_CLOSE int folder = open_folder(t, path, false, &name);
	struct stat st;

	return folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- writing ---- */

int tree_stage(const struct tree *t, const char *path, const struct tree_file *file)
{
	const char *name;
	AUTO_CLOSE int folder = -1;
	AUTO_CLOSE int fd = -1;
	int r = at_point(t, path);

	if (r < 0)
		return r;
	folder = open_folder(t, path, true, &name);
	if (folder < 0)
		return err_sys(-folder, "%s/%s", t->dir, path);
	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return err_sys(errno, "%s/%s", t->dir, path);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fd_write_all(fd, file->data, file->size);
	if (r == 0 && geteuid() == 0 && fchown(fd, file->uid, file->gid) < 0)
		r = -errno;
	if (r == 0 && fchmod(fd, file->mode) < 0)
		r = -errno;
	return r < 0 ? err_sys(-r, "%s/%s", t->dir, path) : 0;
}

int tree_renew(const struct tree *t, const char *path, const struct tree_file *like)
{
	struct stat st = {0};
	AUTO_CLOSE int fd = -1;
	int r = at_point(t, path);

	if (r < 0)
		return r;
	fd = open_file(t, path, &st);
	if (fd < 0)
		return err_sys(-fd, "%s/%s", t->dir, path);
	if (st.st_nlink > 1)
		return -EMLINK;
	if (geteuid() == 0 && fchown(fd, like->uid, like->gid) < 0)
		r = -errno;
	if (r == 0 && (fchmod(fd, like->mode) < 0 || futimens(fd, NULL) < 0))
		r = -errno;
	return r < 0 ? err_sys(-r, "%s/%s", t->dir, path) : 0;
}

static int sync_file(const struct tree *t, const char *path)
{
	struct stat st;
	AUTO_CLOSE int fd = open_file(t, path, &st);

	if (fd < 0 || fsync(fd) < 0)
		return err_sys(fd < 0 ? -fd : errno, "%s/%s", t->dir, path);
	return 0;
}

int tree_sync(const struct tree *t, const char *const *paths, size_t n, bool folders)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = sync_file(t, paths[i]);
	for (size_t i = 0; i < n && r == 0 && folders; i++)
		r = sync_folder(t, paths[i]);
	return r;
}

int tree_rename(const struct tree *t, const char *from, const char *to)
{
	const char *from_name, *to_name;
	AUTO_CLOSE int from_folder = -1;
	AUTO_CLOSE int to_folder = -1;
	int r = at_point(t, to);

	if (r < 0)
		return r;
	from_folder = open_folder(t, from, false, &from_name);
	to_folder = open_folder(t, to, false, &to_name);
	if (from_folder < 0 || to_folder < 0)
		return err_sys(from_folder < 0 ? -from_folder : -to_folder, "%s/%s", t->dir, to);
	if (renameat(from_folder, from_name, to_folder, to_name) < 0)
		return err_sys(errno, "%s/%s", t->dir, to);
	return sync_folder(t, to);
}

/* What is in a folder of ours, and the folder: 0 or a negative errno. */
static int remove_below(int parent, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char **names = NULL;
	size_t n = 0;
	int r = fd < 0 ? -errno : fd_list(fd, &names, &n);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (unlinkat(fd, names[i], 0) < 0)
			r = depth && errno == EISDIR ? remove_below(fd, names[i], depth - 1)
						     : -errno;
	source_free_names(names, n);
	return r < 0 || unlinkat(parent, name, AT_REMOVEDIR) == 0 ? r : -errno;
}

int tree_remove(const struct tree *t, const char *path)
{
	const char *name = NULL;
	AUTO_CLOSE int folder = open_folder(t, path, false, &name);
	struct stat st;
	int r;

	/* Not tried then: on a read-only file system that fails too. */
	if (folder == -ENOENT ||
	    (folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT))
		return 0;
	if (folder < 0)
		return err_sys(-folder, "%s/%s", t->dir, path);
	r = at_point(t, path);
	if (r < 0)
		return r;
	if (unlinkat(folder, name, 0) < 0)
		r = errno == EISDIR ? remove_below(folder, name, FOLDERS_MAX) : -errno;
	return r < 0 && r != -ENOENT ? err_sys(-r, "%s/%s", t->dir, path) : 0;
}

int tree_lock(const struct tree *t)
{
	if (file_lock(t->fd) < 0)
		return err_set(EBUSY, "%s: another onehop is working on it", t->dir);
	return 0;
}
