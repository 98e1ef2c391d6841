/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable writes. A new file is made beside the old one, with its owner, permissions and extended
 * attributes, brought to disk and renamed over it. FIFREEZE is not used: it writes metadata in
 * place, and a boot loader's driver, which does not replay the journal, then finds an empty file.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- small parts ---- */

int host_write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOSPC;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

int host_sync_folder(struct fix_host *h, int folder, const char *shown)
{
	int r = host_point(h, POINT_FSYNC_FOLDER, shown);
	AUTO_CLOSE int fd = -1;

	if (r < 0)
		return r;
	fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(errno, "bring to disk the folder of %s", shown);
	/* EINVAL: a file system that has nothing to do for that. */
	if (fsync(fd) < 0 && errno != EINVAL)
		return err_sys(errno, "bring to disk the folder of %s", shown);
	return 0;
}

static int sync_file(struct fix_host *h, int fd, const char *shown)
{
	int r = host_point(h, POINT_FSYNC, shown);

	if (r < 0)
		return r;
	return fsync(fd) < 0 ? err_sys(errno, "bring %s to disk", shown) : 0;
}

/* 1: it was there. */
static int unlink_name(struct fix_host *h, const struct place *p, const char *name)
{
	struct stat st;
	int r;

	if (fstatat(p->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	r = host_point(h, POINT_UNLINK, p->shown);
	if (r < 0)
		return r;
	if (unlinkat(p->folder, name, 0) < 0)
		return errno == ENOENT ? 0 : err_sys(errno, "remove %s beside %s", name, p->shown);
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

static int be_like(int old, int fd)
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

/* ---- replacing ---- */

struct replacement {
	struct fix_host *h;
	struct place place;
	int old; /* -1: there is none */
	unsigned mode;
	const char *data;
	size_t size;
	char new_name[NAME_MAX + 1]; /* beside it, until it is in place */
	bool made;
	char second[NAME_MAX + 1]; /* name that was given to the old file; "": none */
};

static void replacement_done(struct replacement *r)
{
	place_done(&r->place);
	if (r->old >= 0)
		close(r->old);
}

/* A name made of the file's; -ENAMETOOLONG with a sentence. */
static int name_beside(const struct place *p, const char *before, const char *after,
		       char ret[NAME_MAX + 1])
{
	if (snprintf(ret, NAME_MAX + 1, "%s%s%s", before, p->name, after) > NAME_MAX)
		return err_set(ENAMETOOLONG, "%s: its name is too long", p->shown);
	return 0;
}

/* Starts with a dot, so that what reads all files of a folder (*.conf, *.cfg) does not read it. */
static int new_name(const struct place *p, char ret[NAME_MAX + 1])
{
	return name_beside(p, ".", ".onehop-new", ret);
}

/* The content and all that goes with it, on disk; not yet in place. */
static int fill(struct replacement *x, int fd)
{
	struct stat st;
	int r = host_point(x->h, POINT_WRITE, x->place.shown);

	if (r < 0)
		return r;
	r = host_write_all(fd, x->data, x->size);
	if (r < 0)
		return err_sys(-r, "write %s", x->place.shown);
	if (x->old >= 0)
		r = be_like(x->old, fd);
	else if (fstat(fd, &st) < 0 ||
		 ((st.st_mode & 07777) != x->mode && fchmod(fd, x->mode) < 0 && errno != EPERM))
		r = -errno;
	if (r < 0)
		return err_sys(-r, "owner, permissions and attributes of %s", x->place.shown);
	return sync_file(x->h, fd, x->place.shown);
}

static int make_new(struct replacement *x)
{
	AUTO_CLOSE int fd = -1;
	int r = new_name(&x->place, x->new_name);

	if (r >= 0)
		r = unlink_name(x->h, &x->place, x->new_name);
	if (r >= 0)
		r = host_point(x->h, POINT_OPEN, x->place.shown);
	if (r < 0)
		return r;
	/* Readable by nobody else until it is what the old file is. */
	fd = openat(x->place.folder, x->new_name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(errno, "make a new %s", x->place.shown);
	x->made = true;
	return fill(x, fd);
}

static int put_in_place(struct replacement *x)
{
	int r = host_point(x->h, POINT_RENAME, x->place.shown);

	if (r < 0)
		return r;
	if (renameat(x->place.folder, x->new_name, x->place.folder, x->place.name) < 0)
		return err_sys(errno, "put %s in place", x->place.shown);
	x->made = false;
	x->second[0] = '\0';
	return host_sync_folder(x->h, x->place.folder, x->place.shown);
}

/* As it was before: the old file has not been touched. */
static void take_back(struct replacement *x)
{
	if (x->made)
		unlinkat(x->place.folder, x->new_name, 0);
	if (x->second[0])
		unlinkat(x->place.folder, x->second, 0);
}

static int replacement_start(struct replacement *x, const char *path)
{
	int r = host_find(x->h, path, MISSING_IS_MADE, &x->place);

	if (r >= 0)
		r = place_open(&x->place, O_RDONLY, &x->old);
	return r == -ENOENT ? 0 : r;
}

/* ---- a second name for the old file ---- */

/*
 * More than one replacement between two boots: each of the files keeps its blocks, since the folder
 * that the boot loader sees may still name any of them.
 */
#define OLD_MAX 16

static int old_name(const struct place *p, unsigned i, char ret[NAME_MAX + 1])
{
	char after[sizeof(HOST_OLD) + 8];

	snprintf(after, sizeof(after), i ? HOST_OLD "-%u" : HOST_OLD, i + 1);
	return name_beside(p, "", after, ret);
}

/* 1: it has a second name already; 0: *ret is one that nothing has. */
static int free_old_name(const struct replacement *x, char ret[NAME_MAX + 1])
{
	struct stat old, st;
	int r;

	if (fstat(x->old, &old) < 0)
		return err_sys(errno, "%s", x->place.shown);
	for (unsigned i = 0; i < OLD_MAX; i++) {
		r = old_name(&x->place, i, ret);
		if (r < 0)
			return r;
		if (fstatat(x->place.folder, ret, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : err_sys(errno, "%s", x->place.shown);
		if (st.st_dev == old.st_dev && st.st_ino == old.st_ino)
			return 1;
	}
	return err_set(EMLINK,
		       "%s was replaced %d times since the last boot: boot once before it is "
		       "replaced again",
		       x->place.shown, OLD_MAX);
}

/* FAT has no second names; there the rename alone has to do. */
static bool has_no_links(int err)
{
	return err == EPERM || err == EOPNOTSUPP || err == ENOSYS || err == EMLINK;
}

static int keep_old(struct replacement *x)
{
	char name[NAME_MAX + 1];
	int r = free_old_name(x, name);

	if (r != 0)
		return r < 0 ? r : 0;
	r = host_point(x->h, POINT_LINK, x->place.shown);
	if (r < 0)
		return r;
	if (linkat(x->place.folder, x->place.name, x->place.folder, name, 0) < 0)
		return has_no_links(errno) ? 0 : err_sys(errno, "keep the old %s", x->place.shown);
	memcpy(x->second, name, sizeof(name));
	return host_sync_folder(x->h, x->place.folder, x->place.shown);
}

/*
 * Whatever is only in the file system's journal yet, the new file's inode above all, gets to its place
 * before the name points at it: a boot loader that reads no journal would find an empty file
 * otherwise (ext4 without this: 271 of 1500 crash states). Linux 5.15 and later, ext4, root; elsewhere it
 * fails, and nothing can be done. It freezes nothing. Documentation/filesystems/ext4, EXT4_IOC_CHECKPOINT.
 */
static void write_journal_home(const struct replacement *x)
{
#define EXT4_CHECKPOINT _IOW('f', 43, uint32_t)
	AUTO_CLOSE int fd = openat(x->place.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t flags = 0;

	if (fd >= 0)
		ioctl(fd, EXT4_CHECKPOINT, &flags);
}

static int replace(struct replacement *x, const char *path, bool for_boot)
{
	int r = replacement_start(x, path);

	if (r >= 0)
		r = make_new(x);
	if (r >= 0 && for_boot && x->old >= 0)
		r = keep_old(x);
	if (r >= 0 && for_boot)
		write_journal_home(x);
	if (r >= 0)
		r = put_in_place(x);
	if (r < 0)
		take_back(x);
	return r;
}

int host_replace(struct fix_host *h, const char *path, const char *data, size_t size, unsigned mode)
{
	CLEANUP(replacement_done)
	struct replacement x = {h, PLACE_NONE, .old = -1, mode, data, size};

	return replace(&x, path, false);
}

/* 0600 if there was none: what grub-mkconfig gives, since the file may hold passwords' hashes. */
int host_replace_for_boot(struct fix_host *h, const char *path, const char *data, size_t size)
{
	CLEANUP(replacement_done)
	struct replacement x = {h, PLACE_NONE, .old = -1, 0600, data, size};

	return replace(&x, path, true);
}

/* ---- removing ---- */

int host_forget_old(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	char name[NAME_MAX + 1];
	int gone = 0, r = host_find(h, path, MISSING_FAILS, &p);

	for (unsigned i = 0; r >= 0 && i < OLD_MAX; i++) {
		r = old_name(&p, i, name);
		if (r >= 0)
			r = unlink_name(h, &p, name);
		gone += r > 0;
	}
	if (r >= 0 && gone)
		r = host_sync_folder(h, p.folder, p.shown);
	return r == -ENOENT ? 0 : r;
}

int host_sweep(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	char name[NAME_MAX + 1];
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (r >= 0)
		r = new_name(&p, name);
	if (r >= 0)
		r = unlink_name(h, &p, name);
	if (r > 0)
		r = host_sync_folder(h, p.folder, p.shown);
	return r == -ENOENT ? 0 : r;
}

int host_remove(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	struct stat st;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (r >= 0)
		r = place_look(&p, &st);
	if (r >= 0)
		r = unlink_name(h, &p, p.name);
	if (r >= 0)
		r = host_sync_folder(h, p.folder, p.shown);
	return r == -ENOENT ? 0 : r;
}

/* ---- files of onehop's own ---- */

/* Opens it, or makes it with `mode`; *ret_made: its name is not on disk yet. */
static int open_own(struct fix_host *h, const struct place *p, int flags, mode_t mode, int *ret_fd,
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
		openat(p->folder, p->name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (*ret_fd < 0)
		return err_sys(errno, "make %s", p->shown);
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
	r = host_write_all(fd, data, size);
	r = r < 0 ? err_sys(-r, "write %s", shown) : sync_file(h, fd, shown);
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

	if (r >= 0)
		r = open_own(h, &p, O_WRONLY | O_APPEND, 0644, &fd, &made);
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

	return r < 0 ? r : open_own(h, &p, O_RDWR, 0600, ret_fd, &made);
}
