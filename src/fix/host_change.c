/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that other programs write too: a package's scripts, a person's editor. What is replaced is looked
 * at after it came out of its place, not before: the complete new file is next to the old one, the two change
 * names at once (RENAME_EXCHANGE), and what came out is compared. If it is not what was seen, they change
 * back. So there is no moment in which a file that is put there could be lost.
 *
 * A program that writes in place may have opened the old file already. A lease on it (F_SETLEASE) is
 * refused while one has, and keeps those that come from going on until it is known which file they get.
 *
 * A file that comes out is named ".NAME.onehop-swap" for that moment: a run that is killed there leaves it, and
 * host_settle judges it by what it holds. Whoever knows of no killed run leaves a file of that name alone.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/text.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A file of another size is read no further than that. */
#define CONTENT_MAX ((size_t)512 << 20)

/*
 * More than one replacement between two boots: each of the files keeps its blocks, because the folder
 * that the boot loader sees may still name any of them.
 */
#define OLD_MAX 16

struct changing {
	struct fix_host *h;
	const struct host_change *c;
	struct place place;
	int old;                 /* what is there; -1: nothing */
	bool leased;             /* `old`, see above */
	char swap[NAME_MAX + 1]; /* next to it: what is put, later what came out */
	bool swap_there;
	char kept[NAME_MAX + 1]; /* the second name that `swap` had before; "": it is a new file */
	char second[NAME_MAX + 1]; /* the name that the old file gets */
	struct stat put;           /* of what is put */
};

static void changing_done(struct changing *x)
{
	place_done(&x->place);
	if (x->old >= 0)
		close(x->old); /* with its lease */
}

static int changed(const struct changing *x)
{
	return err_set(
		EBUSY,
		"another program has changed %s in the meantime: it is left as that program wrote "
		"it",
		x->place.shown);
}

/* ---- contents ---- */

/* 1: the open file holds just that. */
static int holds(int fd, const struct bytes *content)
{
	AUTO_FREE char *data = NULL;
	struct stat st;
	size_t size;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!content->data || (size_t)st.st_size != content->size)
		return 0;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = fd_read_all(fd, CONTENT_MAX, &data, &size);
	return r < 0 ? r : size == content->size && memcmp(data, content->data, size) == 0;
}

/* The same of a name next to the place; 0 also if nothing has that name, or what has it is not a file. */
static int name_holds(const struct place *p, const char *name, const struct bytes *content)
{
	AUTO_CLOSE int fd = openat(p->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	return S_ISREG(st.st_mode) ? holds(fd, content) : 0;
}

/* ---- second names ---- */

static int second_name(const struct place *p, unsigned i, char ret[static NAME_MAX + 1])
{
	char after[sizeof(HOST_OLD) + 12];

	snprintf(after, sizeof(after), i ? HOST_OLD "-%u" : HOST_OLD, i + 1);
	return host_name_beside(p, "", after, ret);
}

static bool is_second_name(const struct place *p, const char *name)
{
	size_t n = strlen(p->name), end = strlen(HOST_OLD);

	if (strncmp(name, p->name, n) != 0 || !text_starts_with(name + n, HOST_OLD))
		return false;
	name += n + end;
	return !*name || (*name == '-' && name[1] && !name[1 + strspn(name + 1, "0123456789")]);
}

/* source_free_names frees them. */
static int list_second_names(const struct place *p, char ***ret, size_t *ret_n)
{
	AUTO_CLOSE int fd = openat(p->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0;
	int r = fd < 0 ? -errno : fd_list(fd, ret, &n);

	if (r < 0)
		return err_sys(-r, "folder of %s", p->shown);
	for (size_t i = 0; i < n; i++) {
		if (is_second_name(p, (*ret)[i]))
			(*ret)[(*ret_n)++] = (*ret)[i];
		else
			free((*ret)[i]);
	}
	return 0;
}

/* One that nothing has. */
static int free_second_name(const struct place *p, char ret[static NAME_MAX + 1])
{
	struct stat st;

	for (unsigned i = 0;; i++) {
		int r = second_name(p, i, ret);

		if (r < 0)
			return r;
		if (fstatat(p->folder, ret, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : err_sys(errno, "%s", p->shown);
	}
}

/* The second name of a file that holds what is to be put, into x->kept; "" if none does. */
static int find_kept(struct changing *x)
{
	char **names = NULL;
	size_t n = 0;
	int r = list_second_names(&x->place, &names, &n), same = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && same == 0; i++) {
		same = name_holds(&x->place, names[i], &x->c->put);
		if (same > 0)
			snprintf(x->kept, sizeof(x->kept), "%s", names[i]);
	}
	source_free_names(names, n);
	if (same < 0)
		return err_sys(-same, "read what is kept of %s", x->place.shown);
	/* It changes places with the one that is there: no more names are needed. */
	if (!same && n >= OLD_MAX && !x->c->going_back)
		return err_set(
			EMLINK,
			"%s was replaced %d times since the last boot: boot once before it is "
			"replaced again",
			x->place.shown, OLD_MAX);
	return 0;
}

int host_forget_old(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	char **names = NULL;
	size_t n = 0, gone = 0;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (h->rehearsal)
		return 0;
	if (r >= 0)
		r = list_second_names(&p, &names, &n);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; r >= 0 && i < n; i++) {
		r = host_unlink_name(h, &p, names[i]);
		gone += r > 0;
	}
	source_free_names(names, n);
	return r >= 0 && gone ? host_sync_folder(h, p.folder, p.shown) : r < 0 ? r : 0;
}

/* ---- what is put, next to the file ---- */

static int swap_name(const struct place *p, char ret[static NAME_MAX + 1])
{
	return host_name_beside(p, ".", ".onehop-swap", ret);
}

/* Back as it was: what is there has not been touched, or is there again. */
static void drop_swap(struct changing *x)
{
	if (!x->swap_there)
		return;
	if (*x->kept)
		renameat(x->place.folder, x->swap, x->place.folder, x->kept);
	else
		unlinkat(x->place.folder, x->swap, 0);
	x->swap_there = false;
}

static int be_like_old(const struct changing *x)
{
	AUTO_CLOSE int fd =
		openat(x->place.folder, x->kept, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : host_be_like(x->old, fd);

	if (r >= 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? err_sys(-r, "owner, permissions and attributes of %s", x->place.shown) : 0;
}

static int make_swap(struct changing *x)
{
	char made[NAME_MAX + 1];
	const char *from = x->kept;
	int r;

	if (*x->kept) {
		r = be_like_old(x);
	} else {
		r = host_make_new(x->h, &x->place, x->old, x->c->mode, &x->c->put, made);
		from = made;
	}
	if (r < 0)
		return r;
	r = host_point(x->h, POINT_RENAME, x->place.shown);
	/* Whole before it has that name: what a killed run leaves there is all of something. */
	if (r >= 0 && renameat(x->place.folder, from, x->place.folder, x->swap) < 0)
		r = host_failed(errno, "make a new", x->place.shown);
	if (r < 0) {
		if (!*x->kept)
			unlinkat(x->place.folder, from, 0);
		return r;
	}
	x->swap_there = true;
	if (fstatat(x->place.folder, x->swap, &x->put, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(errno, "%s", x->place.shown);
	return 0;
}

/*
 * Whatever is only in the file system's journal yet, the new file's inode above all, gets to its place
 * before the name points at it: a boot loader that reads no journal would find an empty file
 * otherwise (ext4 without this: 271 of 1500 crash states). Linux 5.15 and later, ext4, root; elsewhere it
 * fails, and nothing can be done. It freezes nothing. Documentation/filesystems/ext4, EXT4_IOC_CHECKPOINT.
 */
static void write_journal_home(const struct changing *x)
{
#define EXT4_CHECKPOINT _IOW('f', 43, uint32_t)
	AUTO_CLOSE int fd = openat(x->place.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t flags = 0;

	if (fd >= 0)
		ioctl(fd, EXT4_CHECKPOINT, &flags);
}

/* ---- who else is at it ---- */

/* -EBUSY: another program has it open to write. Not every file system has leases: then unknown. */
static int hold_still(struct changing *x)
{
	/* The signal that reports another program is one that does nothing by default. */
	if (fcntl(x->old, F_SETSIG, SIGURG) < 0)
		return 0;
	x->leased = fcntl(x->old, F_SETLEASE, F_RDLCK) == 0;
	if (x->leased || errno != EAGAIN)
		return 0;
	return err_set(EBUSY, "another program has %s open to write: it is left as it is",
		       x->place.shown);
}

/* Somebody waits to write to the old file. */
static bool is_wanted(const struct changing *x)
{
	return x->leased && fcntl(x->old, F_GETLEASE) == F_UNLCK;
}

/* ---- the exchange ---- */

static bool cannot_exchange(int err)
{
	return err == EINVAL || err == ENOSYS || err == EOPNOTSUPP;
}

/* 1: what came out is what was seen, with the owner and the permissions that the new file got. */
static int is_as_seen(const struct changing *x)
{
	struct stat st;
	int r;

	if (fstatat(x->place.folder, x->swap, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(errno, "%s next to %s", x->swap, x->place.shown);
	if (is_wanted(x) || st.st_mode != x->put.st_mode || st.st_uid != x->put.st_uid ||
	    st.st_gid != x->put.st_gid)
		return 0;
	r = name_holds(&x->place, x->swap, &x->c->seen);
	return r < 0 ? err_sys(-r, "read %s next to %s", x->swap, x->place.shown) : r;
}

/*
 * The new file has been where somebody else's belongs, and may have been written to, or replaced: what comes
 * out has to be the new file, or it goes back once more. 0: it is as if nothing had been.
 */
static int change_back(struct changing *x)
{
	enum { TRIES = 8 };

	for (int i = 0; i < TRIES; i++) {
		if (renameat2(x->place.folder, x->swap, x->place.folder, x->place.name,
			      RENAME_EXCHANGE) < 0)
			break;
		if (name_holds(&x->place, x->swap, &x->c->put) > 0)
			return 0;
	}
	x->swap_there = false; /* it is not this run's to remove */
	return err_set(
		EBUSY,
		"%s could not be restored: its previous content is in %s, in the same folder",
		x->place.shown, x->swap);
}

/* After `r` and its sentence, which stay unless going back fails too. */
static int go_back(struct changing *x, int r)
{
	AUTO_FREE char *why = xstrdup(err_msg());
	int back = change_back(x);

	return back < 0 ? back : err_set(-r, "%s", why);
}

static int exchange(struct changing *x)
{
	int r;

	if (renameat2(x->place.folder, x->swap, x->place.folder, x->place.name, RENAME_EXCHANGE) <
	    0)
		return errno == ENOENT ? changed(x)
				       : host_failed(errno, "put in place", x->place.shown);
	r = host_point(x->h, POINT_COMPARE, x->place.shown);
	if (r >= 0)
		r = is_as_seen(x);
	if (r > 0)
		return 0;
	if (r == 0)
		r = changed(x);
	return go_back(x, r);
}

/* Compared right before: what comes between the two is lost. */
static int replace_at_once(struct changing *x)
{
	int same = name_holds(&x->place, x->place.name, &x->c->seen);

	if (same < 0)
		return err_sys(-same, "read %s", x->place.shown);
	if (!same)
		return changed(x);
	if (renameat(x->place.folder, x->swap, x->place.folder, x->place.name) < 0)
		return host_failed(errno, "put in place", x->place.shown);
	x->swap_there = false;
	return 1;
}

static int put_in_place(struct changing *x)
{
	int r = host_point(x->h, POINT_EXCHANGE, x->place.shown), still = hold_still(x);

	if (still < 0)
		return still;
	if (r >= 0)
		r = exchange(x);
	return cannot_exchange(-r) ? replace_at_once(x) : r;
}

/* What came out goes, or gets its second name; unless somebody still waits to write to it. */
static int put_away(struct changing *x)
{
	const bool keep = x->c->for_boot;
	const int folder = x->place.folder;
	int r = 0;

	if (!x->swap_there)
		return 0;
	if (*x->kept)
		memcpy(x->second, x->kept, sizeof(x->second));
	else if (keep)
		r = free_second_name(&x->place, x->second);
	if (r >= 0)
		r = host_point(x->h, keep ? POINT_LINK : POINT_UNLINK, x->place.shown);
	if (r >= 0 && is_wanted(x))
		r = changed(x);
	if (r >= 0 && (keep ? renameat(folder, x->swap, folder, x->second)
			    : unlinkat(folder, x->swap, 0)) < 0)
		r = host_failed(errno, "put away the old", x->place.shown);
	if (r < 0)
		return go_back(x, r);
	x->swap_there = false;
	return 0;
}

static int replace(struct changing *x)
{
	int r = x->c->for_boot ? find_kept(x) : 0, away;

	if (r >= 0)
		r = make_swap(x);
	if (r >= 0 && x->c->for_boot)
		write_journal_home(x);
	if (r >= 0)
		r = put_in_place(x);
	if (r < 0)
		return r;
	away = put_away(x);
	return away < 0 ? away : r;
}

/* ---- a file that appears ---- */

/* A name that is taken is not taken over. 1: without RENAME_NOREPLACE and second names it was only looked. */
static int take_name(const struct changing *x)
{
	const int folder = x->place.folder;
	struct stat st;

	if (renameat2(folder, x->swap, folder, x->place.name, RENAME_NOREPLACE) == 0)
		return 0;
	if (!cannot_exchange(errno))
		return -errno;
	if (linkat(folder, x->swap, folder, x->place.name, 0) == 0)
		return unlinkat(folder, x->swap, 0) < 0 ? -errno : 0;
	if (errno == EEXIST)
		return -EEXIST;
	if (fstatat(folder, x->place.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(folder, x->swap, folder, x->place.name) < 0 ? -errno : 1;
}

static int appear(struct changing *x)
{
	int r = make_swap(x);

	if (r >= 0)
		r = host_point(x->h, POINT_EXCHANGE, x->place.shown);
	if (r < 0 && !cannot_exchange(-r))
		return r;
	r = take_name(x);
	if (r == -EEXIST)
		return changed(x);
	if (r < 0)
		return host_failed(-r, "put in place", x->place.shown);
	x->swap_there = false;
	return r;
}

/* ---- a file that goes ---- */

/* Taken out of its place first, and looked at there. */
static int vanish(struct changing *x)
{
	const int folder = x->place.folder;
	int r = host_point(x->h, POINT_RENAME, x->place.shown);

	if (r >= 0)
		r = hold_still(x);
	if (r < 0)
		return r;
	if (renameat(folder, x->place.name, folder, x->swap) < 0)
		return errno == ENOENT ? changed(x) : err_sys(errno, "remove %s", x->place.shown);
	r = host_point(x->h, POINT_COMPARE, x->place.shown);
	if (r >= 0 && name_holds(&x->place, x->swap, &x->c->seen) <= 0)
		r = changed(x);
	if (r >= 0)
		r = host_point(x->h, POINT_UNLINK, x->place.shown);
	if (r >= 0 && is_wanted(x))
		r = changed(x);
	if (r >= 0 && unlinkat(folder, x->swap, 0) < 0)
		r = err_sys(errno, "remove %s", x->place.shown);
	if (r < 0 && take_name(x) < 0)
		return err_set(
			EBUSY,
			"%s could not be restored: its previous content is in %s, in the same folder",
			x->place.shown, x->swap);
	return r;
}

/* ---- what a killed run left ---- */

/* 1: it holds what this change, or the one back, has at its ends. */
static int is_own(const struct place *p, const char *name, const struct host_change *c)
{
	int same = name_holds(p, name, &c->seen);

	return same ? same : name_holds(p, name, &c->put);
}

static bool is_there(const struct place *p, const char *name)
{
	struct stat st;

	return fstatat(p->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* What came out was another program's, and the run was killed before it saw that. */
static int bring_back(struct changing *x)
{
	const int folder = x->place.folder;
	int r = host_point(x->h, POINT_EXCHANGE, x->place.shown);

	if (r < 0)
		return r;
	if (!is_there(&x->place, x->place.name)) {
		r = take_name(x);
		return r < 0 ? err_sys(-r, "put back %s", x->place.shown) : 0;
	}
	if (is_own(&x->place, x->place.name, x->c) <= 0)
		return err_set(
			EBUSY,
			"%s was changed by two programs while a run was killed; what the first of "
			"them wrote is in %s, in the same folder: move that file away",
			x->place.shown, x->swap);
	if (renameat2(folder, x->swap, folder, x->place.name, RENAME_EXCHANGE) < 0)
		return err_sys(errno, "put back %s", x->place.shown);
	return host_unlink_name(x->h, &x->place, x->swap);
}

static int refuse_swap(const struct changing *x)
{
	return err_set(EEXIST, "%s is next to %s, and onehop did not leave it there: move it away",
		       x->swap, x->place.shown);
}

static bool is_regular(const struct place *p, const char *name)
{
	struct stat st;

	return fstatat(p->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* `killed`: a run was killed in this change, or in the one that takes it back. */
static int clear_swap(struct changing *x, bool killed)
{
	int r = is_own(&x->place, x->swap, x->c);

	if (r < 0)
		return err_sys(-r, "read %s next to %s", x->swap, x->place.shown);
	if (r == 0)
		return killed && is_regular(&x->place, x->swap) ? bring_back(x) : refuse_swap(x);
	if (!x->c->for_boot)
		return host_unlink_name(x->h, &x->place, x->swap);
	/* The boot loader may still see it at its place. */
	r = free_second_name(&x->place, x->second);
	if (r >= 0)
		r = host_point(x->h, POINT_LINK, x->place.shown);
	if (r >= 0 && renameat(x->place.folder, x->swap, x->place.folder, x->second) < 0)
		r = err_sys(errno, "keep the old file of %s", x->place.shown);
	return r;
}

static int settle(struct changing *x, bool killed)
{
	char made[NAME_MAX + 1];
	bool left = is_there(&x->place, x->swap);
	int r = host_name_beside(&x->place, ".", ".onehop-new", made);

	if (r >= 0)
		r = host_unlink_name(x->h, &x->place, made);
	if (r >= 0 && left) {
		r = clear_swap(x, killed);
		r = r < 0 ? r : 1;
	}
	return r > 0 ? host_sync_folder(x->h, x->place.folder, x->place.shown) : r;
}

int host_settle(struct fix_host *h, const char *path, const struct host_change *c)
{
	if (h->rehearsal)
		return 0;
	CLEANUP(changing_done) struct changing x = {h, c, PLACE_NONE, .old = -1};
	int r = host_find(h, path, MISSING_FAILS, &x.place);

	if (r >= 0)
		r = swap_name(&x.place, x.swap);
	if (r >= 0)
		r = settle(&x, true);
	return r == -ENOENT ? 0 : r;
}

int host_read_left(struct fix_host *h, const char *path, char **ret, size_t *ret_size)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	char swap[NAME_MAX + 1];
	int r = host_find(h, path, MISSING_FAILS, &p);
	AUTO_CLOSE int fd = -1;

	if (r >= 0)
		r = swap_name(&p, swap);
	if (r < 0)
		return r;
	if (!is_regular(&p, swap))
		return -ENOENT;
	fd = openat(p.folder, swap, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	r = fd < 0 ? -errno : fd_read_all(fd, CONTENT_MAX, ret, ret_size);
	return r < 0 ? err_sys(-r, "read %s next to %s", swap, p.shown) : 0;
}

/* ---- all of it ---- */

static int open_old(struct changing *x)
{
	int r = place_open(&x->place, O_RDONLY, &x->old);

	if (r < 0 && r != -ENOENT)
		return r;
	if (x->old < 0)
		return x->c->seen.data ? changed(x) : 0;
	r = holds(x->old, &x->c->seen);
	if (r < 0)
		return err_sys(-r, "read %s", x->place.shown);
	return r ? 0 : changed(x);
}

static int change(struct changing *x)
{
	int r = swap_name(&x->place, x->swap), synced;

	if (r >= 0)
		r = settle(x, false);
	if (r >= 0)
		r = open_old(x);
	if (r < 0)
		return r;
	if (x->old < 0 && !x->c->put.data)
		return 0;
	r = x->old < 0 ? appear(x) : x->c->put.data ? replace(x) : vanish(x);
	if (r < 0) {
		drop_swap(x);
		return r;
	}
	synced = host_sync_folder(x->h, x->place.folder, x->place.shown);
	return synced < 0 ? synced : r;
}

int host_change(struct fix_host *h, const char *path, const struct host_change *c)
{
	CLEANUP(changing_done) struct changing x = {h, c, PLACE_NONE, .old = -1};
	const bool makes = c->put.data && !h->rehearsal;
	int r = host_find(h, path, makes ? MISSING_IS_MADE : MISSING_FAILS, &x.place);

	if (r >= 0)
		r = place_check_writable(&x.place);
	if (h->rehearsal && r >= 0)
		host_would_write(h, path, &c->put);
	if (h->rehearsal)
		return r == -ENOENT ? 0 : r;
	if (r == -ENOENT)
		return c->seen.data ? err_set(EBUSY, "/%s is not there any more", path) : 0;
	return r < 0 ? r : change(&x);
}
