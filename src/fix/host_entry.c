/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacing an entry of a boot partition, most often on FAT. That has no journal, and no second names. A
 * rename writes two places of the folder: the name that stays gets the new file's blocks, and the name
 * that goes is marked as free. A power cut between the two leaves both names with the same blocks, which
 * the firmware and Linux can read; but fsck.fat then empties the one that it meets second. And fsync of
 * the folder writes neither of the two for certain (Linux 6.1, seen in a log of writes: the name that went
 * was there for long). So the whole file system is brought to disk, and fsync of the file tells the disk.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "fix/boot_entries.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

char *host_kept_entry(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return xprintf("%.*s%.*s" BOOT_ENTRY_KEPT ".conf", (int)(name - path), path,
		       (int)boot_entry_id(name), name);
}

/* The longest: that of a copy while it is written, and those that host_change gives. */
bool host_has_room_beside(const char *name)
{
	AUTO_FREE char *kept = host_kept_entry(name);
	const size_t most = strlen(HOST_OLD "-16");

	return strlen(kept) + most <= NAME_MAX && strlen(name) + most <= NAME_MAX;
}

static bool is_fat(const struct fix_host *h, const struct place *p)
{
	struct statfs fs;

	return h->all_fat || (fstatfs(p->folder, &fs) == 0 && fs.f_type == MSDOS_SUPER_MAGIC);
}

/* ---- a new file, on disk with its name ---- */

static int sync_disk(struct fix_host *h, int fd, const struct place *p)
{
	int r = host_point(h, POINT_FSYNC, p->shown);

	if (r < 0)
		return r;
	if (syncfs(fd) < 0 || fsync(fd) < 0)
		return err_sys(errno, "bring %s to disk", p->shown);
	return 0;
}

static int fill(struct fix_host *h, int fd, const struct place *p, const char *text)
{
	int r = host_point(h, POINT_WRITE, p->shown);

	if (r < 0)
		return r;
	r = fd_write_all(fd, text, strlen(text));
	return r < 0 ? err_sys(-r, "write %s", p->shown) : sync_disk(h, fd, p);
}

static int rename_new(struct fix_host *h, int fd, const struct place *p, const char *made)
{
	int r = host_point(h, POINT_RENAME, p->shown);

	if (r < 0)
		return r;
	if (renameat(p->folder, made, p->folder, p->name) < 0)
		return err_sys(errno, "put %s in place", p->shown);
	return sync_disk(h, fd, p);
}

/* Next to the place, then in it. Who has the old file open keeps its blocks from being freed. */
static int put(struct fix_host *h, const struct place *p, mode_t mode, const char *text)
{
	char made[NAME_MAX + 1];
	AUTO_CLOSE int fd = -1;
	int r = host_point(h, POINT_OPEN, p->shown);

	if (r < 0)
		return r;
	if (snprintf(made, sizeof(made), ".%s.onehop-new", p->name) >= (int)sizeof(made))
		return err_set(ENAMETOOLONG, "%s: its name is too long", p->shown);
	unlinkat(p->folder, made, 0); /* of a run that was killed */
	fd = openat(p->folder, made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return err_sys(errno, "make a new %s", p->shown);
	r = fill(h, fd, p, text);
	if (r == 0)
		r = rename_new(h, fd, p, made);
	if (r < 0)
		unlinkat(p->folder, made, 0);
	return r;
}

/* ---- with the old one next to it ---- */

static int drop(struct fix_host *h, const struct place *p)
{
	AUTO_CLOSE int folder = openat(p->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = host_point(h, POINT_UNLINK, p->shown);

	if (r < 0)
		return r;
	if (folder < 0 || (unlinkat(p->folder, p->name, 0) < 0 && errno != ENOENT))
		return err_sys(errno, "remove %s", p->shown);
	return sync_disk(h, folder, p);
}

/* Each on disk before the next begins: there is always a whole entry, of the old content or the new. */
static int replace_on_fat(struct fix_host *h, const struct place *p, const char *path, int old,
			  const char *seen, const char *text)
{
	AUTO_FREE char *kept = host_kept_entry(path), *why = NULL;
	AUTO_PLACE struct place copy = PLACE_NONE;
	struct stat st = {.st_mode = 0644};
	int r = host_find(h, kept, MISSING_FAILS, &copy);

	if (r == 0 && old >= 0 && fstat(old, &st) < 0)
		r = err_sys(errno, "%s", p->shown);
	if (r == 0 && *seen)
		r = put(h, &copy, st.st_mode & 07777, seen);
	if (r == 0)
		r = put(h, p, st.st_mode & 07777, text);
	if (r == 0)
		return *seen ? drop(h, &copy) : 0;
	why = xstrdup(err_msg());
	if (copy.folder >= 0)
		drop(h, &copy);
	return err_set(-r, "%s", why);
}

/* What is there is `seen`, where "" is a file that is empty, or not there. */
static int check_seen(struct fix_host *h, const char *path, const char *seen)
{
	AUTO_FREE char *now = NULL;
	size_t size = 0;
	int r = host_read(h, path, &now, &size);

	if (r < 0 && r != -ENOENT)
		return r;
	if (size == strlen(seen) && (!size || memcmp(now, seen, size) == 0))
		return 0;
	return err_set(EBUSY, "/%s was changed by another program in the meantime", path);
}

static bool is_there(struct fix_host *h, const char *path)
{
	struct stat st;

	return host_stat(h, path, &st) == 0;
}

int host_replace_entry(struct fix_host *h, const char *path, const char *seen, const char *text)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	AUTO_CLOSE int old = -1;
	const struct host_change c = {
		.seen = {*seen || is_there(h, path) ? seen : NULL, strlen(seen)},
		.put = {text, strlen(text)},
		.mode = 0644,
		.for_boot = true,
		.going_back = true,
	};
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (r == 0)
		r = place_check_writable(&p);
	if (h->rehearsal && r == 0)
		host_would_write(h, path, &c.put);
	if (h->rehearsal)
		return r == -ENOENT ? 0 : r;
	if (r == -ENOENT)
		return err_set(ENOENT, "/%s: its folder is not there", path);
	if (r == 0)
		r = place_open(&p, O_RDONLY, &old);
	if (r == 0 || r == -ENOENT)
		r = check_seen(h, path, seen);
	if (r < 0)
		return r;
	if (is_fat(h, &p))
		return replace_on_fat(h, &p, path, old, seen, text);
	r = host_change(h, path, &c);
	return r < 0 ? r : 0;
}

int host_remove_entry(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	struct stat st;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (r == 0)
		r = place_check_writable(&p);
	if (h->rehearsal && r == 0)
		host_would_write(h, path, &(struct bytes){0});
	if (h->rehearsal)
		return r == -ENOENT ? 0 : r;
	if (r == 0)
		r = place_stat(&p, &st);
	if (r == 0)
		r = drop(h, &p);
	return r == -ENOENT ? 0 : r;
}
