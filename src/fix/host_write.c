/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable writes. A new file is made next to the old one, with its owner, permissions and extended
 * attributes, brought to disk and renamed over it; how, where others may write too: host_change.c.
 * FIFREEZE is not used: it writes metadata in place, and a boot loader's driver, which does not replay
 * the journal, then finds an empty file.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- small parts ---- */

int host_sync_folder(struct fix_host *h, int folder, const char *shown)
{
	int r = host_point(h, POINT_FSYNC_FOLDER, shown);
	AUTO_CLOSE int fd = -1;

	if (r < 0)
		return r;
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return host_failed(errno, "bring to disk the folder of", shown);
	/* EINVAL: a file system that has nothing to do for that. */
	if (fsync(fd) < 0 && errno != EINVAL)
		return host_failed(errno, "bring to disk the folder of", shown);
	return 0;
}

static int sync_file(struct fix_host *h, int fd, const char *shown)
{
	int r = host_point(h, POINT_FSYNC, shown);

	if (r < 0)
		return r;
	return fsync(fd) < 0 ? host_failed(errno, "bring to disk", shown) : 0;
}

int host_unlink_name(struct fix_host *h, const struct place *p, const char *name)
{
	struct stat st;
	int r;

	if (fstatat(p->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	r = host_point(h, POINT_UNLINK, p->shown);
	if (r < 0)
		return r;
	if (unlinkat(p->folder, name, 0) < 0)
		return errno == ENOENT ? 0 : err_sys(errno, "remove %s next to %s", name, p->shown);
	return 1;
}

/* ---- extended attributes ---- */

/* Signatures over the old content and attributes: the kernel makes the new file's itself. */
static bool is_signature(const char *name)
{
	return strcmp(name, "security.ima") == 0 || strcmp(name, "security.evm") == 0;
}

/* NUL-separated; *ret NULL: none, or no such thing on this file system. */
static int list_attributes(int fd, char **ret, size_t *ret_size)
{
	AUTO_FREE char *names = NULL;
	ssize_t n = flistxattr(fd, NULL, 0);

	*ret = NULL;
	*ret_size = 0;
	if (n < 0)
		return errno == ENOTSUP || errno == ENOSYS ? 0 : -errno;
	if (n == 0)
		return 0;
	names = xcalloc((size_t)n + 1, 1);
	n = flistxattr(fd, names, (size_t)n);
	if (n < 0)
		return -errno;
	*ret = TAKE_PTR(names);
	*ret_size = (size_t)n;
	return 0;
}

static int copy_attribute(int from, int to, const char *name)
{
	AUTO_FREE char *value = NULL;
	ssize_t n = fgetxattr(from, name, NULL, 0);

	if (n >= 0) {
		value = xcalloc((size_t)n + 1, 1);
		n = fgetxattr(from, name, value, (size_t)n);
	}
	if (n < 0)
		return errno == ENODATA || errno == ENOTSUP ? 0 : -errno;
	if (fsetxattr(to, name, value, (size_t)n, 0) < 0 && errno != ENOTSUP)
		return -errno;
	return 0;
}

static int copy_attributes(int from, int to)
{
	AUTO_FREE char *names = NULL;
	size_t size;
	int r = list_attributes(from, &names, &size);

	for (size_t i = 0; r >= 0 && i < size; i += strlen(names + i) + 1)
		if (!is_signature(names + i))
			r = copy_attribute(from, to, names + i);
	return r;
}

/* What the folder gave it (a default ACL), and the old file may not have. */
static int drop_attributes(int fd)
{
	AUTO_FREE char *names = NULL;
	size_t size;
	int r = list_attributes(fd, &names, &size);

	for (size_t i = 0; r >= 0 && i < size; i += strlen(names + i) + 1)
		if (!text_starts_with(names + i, "security.") && fremovexattr(fd, names + i) < 0 &&
		    errno != ENODATA && errno != ENOTSUP)
			r = -errno;
	return r;
}

/* Only what differs is set: FAT has one owner and few permissions, and refuses others. */
static int copy_owner(const struct stat *old, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
	    fchown(fd, old->st_uid, old->st_gid) < 0)
		return -errno;
	if ((st.st_mode & 07777) != (old->st_mode & 07777) && fchmod(fd, old->st_mode & 07777) < 0)
		return -errno;
	return 0;
}

int host_be_like(int old, int fd)
{
	struct stat st;
	int r;

	if (fstat(old, &st) < 0)
		return -errno;
	r = drop_attributes(fd);
	if (r >= 0)
		r = copy_owner(&st, fd);
	return r < 0 ? r : copy_attributes(old, fd);
}

/* ---- a new file ---- */

int host_name_beside(const struct place *p, const char *before, const char *after,
		     char ret[static NAME_MAX + 1])
{
	if (snprintf(ret, NAME_MAX + 1, "%s%s%s", before, p->name, after) > NAME_MAX)
		return err_set(ENAMETOOLONG, "%s: its name is too long", p->shown);
	return 0;
}

/* Starts with a dot, so that what reads all files of a folder (*.conf, *.cfg) does not read it. */
static int new_name(const struct place *p, char ret[static NAME_MAX + 1])
{
	return host_name_beside(p, ".", ".onehop-new", ret);
}

/* The content and all that goes with it, on disk. `like` -1: nothing. */
static int fill(struct fix_host *h, const struct place *p, int fd, int like, unsigned mode,
		const struct bytes *content)
{
	struct stat st;
	int r = host_point(h, POINT_WRITE, p->shown);

	if (r < 0)
		return r;
	r = fd_write_all(fd, content->data, content->size);
	if (r < 0)
		return host_failed(-r, "write", p->shown);
	if (like >= 0)
		r = host_be_like(like, fd);
	else if (fstat(fd, &st) < 0 ||
		 ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0 && errno != EPERM))
		r = -errno;
	if (r < 0)
		return host_failed(-r, "set owner, permissions and attributes of", p->shown);
	return sync_file(h, fd, p->shown);
}

int host_make_new(struct fix_host *h, const struct place *p, int like, unsigned mode,
		  const struct bytes *content, char ret_name[static NAME_MAX + 1])
{
	AUTO_CLOSE int fd = -1;
	int r = new_name(p, ret_name);

	if (r >= 0)
		r = host_unlink_name(h, p, ret_name);
	if (r >= 0)
		r = host_point(h, POINT_OPEN, p->shown);
	if (r < 0)
		return r;
	/* Readable by nobody else until it is what the old file is. */
	fd = openat(p->folder, ret_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return host_failed(errno, "make a new", p->shown);
	r = fill(h, p, fd, like, mode, content);
	if (r < 0)
		unlinkat(p->folder, ret_name, 0);
	return r;
}

/* ---- replacing ---- */

static int put_in_place(struct fix_host *h, const struct place *p, const char *name)
{
	int r = host_point(h, POINT_RENAME, p->shown);

	if (r >= 0 && renameat(p->folder, name, p->folder, p->name) < 0)
		r = host_failed(errno, "put in place", p->shown);
	if (r < 0)
		unlinkat(p->folder, name, 0);
	return r < 0 ? r : host_sync_folder(h, p->folder, p->shown);
}

int host_replace(struct fix_host *h, const char *path, const char *data, size_t size, unsigned mode)
{
	const struct bytes content = {data, size};
	AUTO_PLACE struct place p = PLACE_NONE;
	char name[NAME_MAX + 1];
	AUTO_CLOSE int old = -1;
	int r;

	if (h->rehearsal)
		return 0;
	r = host_find(h, path, MISSING_IS_MADE, &p);
	if (r >= 0)
		r = place_check_writable(&p);
	if (r >= 0)
		r = place_open(&p, O_RDONLY, &old);
	if (r >= 0 || r == -ENOENT)
		r = host_make_new(h, &p, old, mode, &content, name);
	return r < 0 ? r : put_in_place(h, &p, name);
}

/* ---- removing ---- */

int host_remove(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	struct stat st;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (h->rehearsal) {
		host_would_write(h, path, &(struct bytes){0});
		return 0;
	}
	if (r >= 0)
		r = place_stat(&p, &st);
	if (r >= 0)
		r = host_unlink_name(h, &p, p.name);
	if (r >= 0)
		r = host_sync_folder(h, p.folder, p.shown);
	return r == -ENOENT ? 0 : r;
}

/* ---- files of onehop's own ---- */

/* Opens it, or makes it; *ret_made: its name is not on disk yet. */
static int open_own(struct fix_host *h, const struct place *p, int flags, int *ret_fd,
		    bool *ret_made)
{
	int r = host_point(h, POINT_OPEN, p->shown);

	*ret_made = false;
	if (r < 0)
		return r;
	r = place_open(p, flags, ret_fd);
	if (r != -ENOENT)
		return r;
	*ret_fd =
		openat(p->folder, p->name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*ret_fd < 0)
		return host_failed(errno, "make", p->shown);
	*ret_made = true;
	return 0;
}

/* On failure it is as long as it was. */
static int add(struct fix_host *h, int fd, const char *shown, const char *data, size_t size)
{
	struct stat st;
	int r = host_point(h, POINT_WRITE, shown);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return err_sys(errno, "%s", shown);
	r = fd_write_all(fd, data, size);
	r = r < 0 ? host_failed(-r, "write", shown) : sync_file(h, fd, shown);
	/* The sentence stays the first failure's. */
	if (r < 0 && ftruncate(fd, st.st_size) < 0)
		return r;
	return r;
}

int host_append(struct fix_host *h, const char *path, const char *data, size_t size)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	AUTO_CLOSE int fd = -1;
	bool made;
	int r = host_find(h, path, MISSING_IS_MADE, &p);

	if (h->rehearsal)
		return 0;
	if (r >= 0)
		r = open_own(h, &p, O_WRONLY | O_APPEND, &fd, &made);
	if (r < 0)
		return r;
	r = add(h, fd, p.shown, data, size);
	if (r >= 0 && made)
		r = host_sync_folder(h, p.folder, p.shown);
	if (r < 0 && made)
		unlinkat(p.folder, p.name, 0);
	return r;
}

int host_open_own(struct fix_host *h, const char *path, int *ret_fd)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	bool made;
	int r = host_find(h, path, MISSING_IS_MADE, &p);

	return r < 0 ? r : open_own(h, &p, O_RDWR, ret_fd, &made);
}
