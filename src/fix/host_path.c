/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a path leads below the root. It is walked folder by folder with descriptors, since openat2
 * (Linux 5.6) is not in every kernel that this runs on, and since each folder's owner is looked at:
 * who can change a folder on the way can change what is written.
 */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as many as the kernel follows */
#define DEPTH_MAX 64

struct walk {
	struct fix_host *h;
	const char *shown; /* where it goes, for sentences */
	enum missing missing;
	char *rest;             /* what is still to be walked */
	int folders[DEPTH_MAX]; /* from the root to where it is; no links among them */
	size_t n;
	unsigned links;          /* followed so far */
	char link[NAME_MAX + 1]; /* the outermost one whose target is still being walked */
	size_t behind;           /* how much of the rest is behind that target */
	bool sysfs;
};

/* ---- sentences ---- */

char *host_shown(const struct fix_host *h, const char *path)
{
	size_t n = strlen(h->root);

	while (n && h->root[n - 1] == '/')
		n--;
	while (*path == '/' || (path[0] == '.' && path[1] == '/'))
		path++;
	return xprintf("%.*s/%s", (int)n, h->root, path);
}

static bool is_only_roots(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & S_IWOTH) &&
	       (!(st->st_mode & S_IWGRP) || st->st_gid == 0);
}

/* `folder`: the one on the way to `shown` that is meant; NULL: `shown` itself. */
static int check_owner(const struct stat *st, const char *folder, const char *shown)
{
	AUTO_FREE char *what = NULL;

	if (is_only_roots(st))
		return 0;
	what = folder ? xprintf("folder %s on the way to %s", folder, shown) : xstrdup(shown);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(EPERM, "%s belongs to user %u, not to root: not changed", what,
			       st->st_uid);
	if (st->st_mode & S_IWOTH)
		return err_set(EPERM, "every user can write to %s: not changed", what);
	return err_set(EPERM, "group %u can write to %s: not changed", st->st_gid, what);
}

/* ---- folders on the way ---- */

static void walk_done(struct walk *w)
{
	while (w->n)
		close(w->folders[--w->n]);
	free(w->rest);
	w->rest = NULL;
}

static int here(const struct walk *w)
{
	return w->folders[w->n - 1];
}

/* Takes the next component off the rest. 1, 0 at the end, or a negative errno. */
static int next_component(struct walk *w, char ret[NAME_MAX + 1])
{
	const char *s = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(s, "/");

	if (n == 0)
		return 0;
	if (n > NAME_MAX)
		return err_set(ENAMETOOLONG, "%s: a name in it is too long", w->shown);
	memcpy(ret, s, n);
	ret[n] = '\0';
	memmove(w->rest, s + n, strlen(s + n) + 1);
	return 1;
}

static int check_folder(const struct walk *w, int fd, const char *name)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(errno, "folder %s on the way to %s", name, w->shown);
	return check_owner(&st, name, w->shown);
}

/* Takes the descriptor. */
static int push(struct walk *w, int fd, const char *name)
{
	AUTO_CLOSE int folder = fd;
	int r = check_folder(w, folder, name);

	if (r < 0)
		return r;
	if (w->n == DEPTH_MAX)
		return err_set(ENAMETOOLONG, "%s: more than %d folders deep", w->shown, DEPTH_MAX);
	w->folders[w->n++] = TAKE_FD(folder);
	return 0;
}

/* The root has no parent: ".." there stays there. */
static void leave(struct walk *w)
{
	if (w->n > 1)
		close(w->folders[--w->n]);
}

static bool is_in_link(const struct walk *w)
{
	return w->links && strlen(w->rest) >= w->behind;
}

/* Once a component was taken off the rest: of a link in another's target, that other one counts. */
static void note_link(struct walk *w, const char *name)
{
	if (w->links > 1 && is_in_link(w))
		return;
	snprintf(w->link, sizeof(w->link), "%s", name);
	w->behind = strlen(w->rest) + 1;
}

/*
 * What a link leads to may be there in another place, or not be mounted: that is not the same as no file. A device that
 * is taken out takes its links in sysfs along.
 */
static int missing(const struct walk *w)
{
	return is_in_link(w) && !w->sysfs
		       ? err_set(ENOLINK,
				 "%s: link %s on the way leads to nothing: repair or remove it",
				 w->shown, w->link)
		       : -ENOENT;
}

static int follow(struct walk *w, int link, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target));
	char *rest;

	if (n < 0)
		return err_sys(errno, "%s: %s on the way, which is not a folder", w->shown, name);
	if (n == 0 || n == (ssize_t)sizeof(target))
		return err_set(ENAMETOOLONG, "%s: link %s on the way is too long", w->shown, name);
	if (++w->links > LINKS_MAX)
		return err_set(
			ELOOP,
			"%s: more than %d symbolic links on the way, from %s on: repair or remove it",
			w->shown, LINKS_MAX, w->link);
	while (*target == '/' && w->n > 1)
		leave(w);
	note_link(w, name);
	rest = xprintf("%.*s/%s", (int)n, target, w->rest);
	free(w->rest);
	w->rest = rest;
	return 0;
}

/* Made 0755 whatever the umask is, and on disk with its name before anything is in it. */
static int make_folder(struct walk *w, const char *name)
{
	int r = host_point(w->h, POINT_OPEN, w->shown);

	if (r < 0)
		return r;
	if (mkdirat(here(w), name, 0755) < 0 && errno != EEXIST)
		return host_failed(errno, "make the folder of", w->shown);
	if (fchmodat(here(w), name, 0755, 0) < 0)
		return err_sys(errno, "make folder %s for %s", name, w->shown);
	return host_sync_folder(w->h, here(w), w->shown);
}

/* O_DIRECTORY, so that what is mounted when it is first looked at (/boot, /efi) is mounted. */
static int open_folder(const struct walk *w, const char *name)
{
	int fd = openat(here(w), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A component that is no folder: a link to one, or the end of the way. */
static int enter_other(struct walk *w, const char *name)
{
	AUTO_CLOSE int fd = openat(here(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? missing(w) : err_sys(errno, "%s", w->shown);
	if (fstat(fd, &st) < 0)
		return err_sys(errno, "%s", w->shown);
	if (!S_ISLNK(st.st_mode))
		return err_set(ENOTDIR,
			       "%s: %s on the way is not a folder: make it one, or remove it",
			       w->shown, name);
	return follow(w, fd, name);
}

static int enter(struct walk *w, const char *name)
{
	int fd, r;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0)
		return leave(w), 0;
	fd = open_folder(w, name);
	if (fd == -ENOENT && w->missing == MISSING_IS_MADE) {
		r = make_folder(w, name);
		if (r < 0)
			return r;
		fd = open_folder(w, name);
	}
	if (fd >= 0)
		return push(w, fd, name);
	if (fd == -ENOENT)
		return missing(w);
	if (fd == -ENOTDIR || fd == -ELOOP)
		return enter_other(w, name);
	return err_sys(-fd, "%s: folder %s on the way", w->shown, name);
}

static int walk_along(struct walk *w)
{
	char name[NAME_MAX + 1];
	int r, fd = fcntl(w->h->root_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return err_sys(errno, "%s", w->h->root);
	r = push(w, fd, w->h->root);
	while (r >= 0 && (r = next_component(w, name)) > 0)
		r = enter(w, name);
	return r;
}

/* *ret: the last folder; the caller closes it. */
static int walk_to(struct fix_host *h, const char *folders, const char *shown, enum missing missing,
		   int *ret)
{
	struct walk w = {.h = h,
			 .shown = shown,
			 .missing = missing,
			 .rest = xstrdup(folders),
			 .sysfs = text_starts_with(folders, "sys/")};
	int r = walk_along(&w);

	if (r >= 0)
		*ret = w.folders[--w.n];
	walk_done(&w);
	return r;
}

/* ---- the last component ---- */

/* Given paths are plain ones; only links say "..". */
static bool climbs(const char *path)
{
	for (const char *s = path; s; s = strchr(s, '/')) {
		s += strspn(s, "/");
		if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || s[2] == '\0'))
			return true;
	}
	return false;
}

void place_done(struct place *p)
{
	if (p->folder >= 0)
		close(p->folder);
	free(p->shown);
	p->folder = -1;
	p->shown = NULL;
}

int host_find(struct fix_host *h, const char *path, enum missing missing, struct place *ret)
{
	AUTO_FREE char *folders = xstrdup(path);
	AUTO_FREE char *shown = host_shown(h, path);
	char *slash = strrchr(folders, '/');
	const char *name = slash ? slash + 1 : folders;
	int r;

	if (!*name || strcmp(name, ".") == 0 || climbs(path))
		return err_set(EINVAL, "\"%s\" is not the path of a file below the root", path);
	if (strlen(name) > NAME_MAX)
		return err_set(ENAMETOOLONG, "%s: its name is too long", shown);
	memcpy(ret->name, name, strlen(name) + 1);
	if (slash)
		*slash = '\0';
	r = walk_to(h, slash ? folders : "", shown, missing, &ret->folder);
	if (r < 0)
		return r;
	ret->shown = TAKE_PTR(shown);
	return 0;
}

static int refuse_link(const struct place *p)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(p->folder, p->name, target, sizeof(target));

	return err_set(ELOOP, "%s is a symbolic link to %.*s: it is left alone", p->shown,
		       n < 0 ? 1 : (int)n, n < 0 ? "?" : target);
}

int place_stat(const struct place *p, struct stat *ret)
{
	struct stat st;
	int r;

	if (fstatat(p->folder, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ENOENT : err_sys(errno, "%s", p->shown);
	if (S_ISLNK(st.st_mode))
		return refuse_link(p);
	if (!S_ISREG(st.st_mode))
		return err_set(S_ISDIR(st.st_mode) ? EISDIR : EINVAL, "%s is not a regular file",
			       p->shown);
	r = check_owner(&st, NULL, p->shown);
	if (r < 0)
		return r;
	*ret = st;
	return 0;
}

int place_open(const struct place *p, int flags, int *ret_fd)
{
	struct stat before = {0}, now = {0};
	AUTO_CLOSE int fd = -1;
	int r = place_stat(p, &before);

	if (r < 0)
		return r;
	fd = openat(p->folder, p->name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return host_failed(errno, "open", p->shown);
	if (fstat(fd, &now) < 0)
		return err_sys(errno, "%s", p->shown);
	if (now.st_dev != before.st_dev || now.st_ino != before.st_ino)
		return err_set(EAGAIN, "%s was replaced while it was opened", p->shown);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int refuse_attribute(const struct place *p, const char *name, const char *what, char letter)
{
	AUTO_FREE char *folder = xstrdup(p->shown);
	char *slash = strrchr(folder, '/');

	if (slash)
		slash[slash == folder] = '\0';
	return err_set(EPERM, "%s cannot be replaced: its %s is %s: `chattr -%c %s` first",
		       p->shown, *name ? "present file" : "folder", what, letter,
		       *name ? p->shown : folder);
}

/* `name` of the folder, or the folder itself (""). */
static int check_attributes(const struct place *p, const char *name)
{
	struct statx st;
	uint64_t set;

	if (statx(p->folder, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_TYPE, &st) < 0)
		return 0; /* not there, or an old kernel: it will show */
	set = st.stx_attributes & st.stx_attributes_mask;
	if (set & STATX_ATTR_IMMUTABLE)
		return refuse_attribute(p, name, "immutable", 'i');
	return set & STATX_ATTR_APPEND ? refuse_attribute(p, name, "append-only", 'a') : 0;
}

int place_check_writable(const struct place *p)
{
	struct statvfs fs;
	int r;

	if (fstatvfs(p->folder, &fs) == 0 && fs.f_flag & ST_RDONLY)
		return host_failed(EROFS, "write", p->shown);
	r = check_attributes(p, "");
	return r < 0 ? r : check_attributes(p, p->name);
}

int host_check_writable(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	int r = host_find(h, path, MISSING_FAILS, &p);

	return r < 0 ? (r == -ENOENT ? 0 : r) : place_check_writable(&p);
}

int host_open_folder(struct fix_host *h, const char *path, int *ret_fd)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (r < 0)
		return r;
	if (fstatat(p.folder, p.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return refuse_link(&p);
	fd = openat(p.folder, p.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : err_sys(errno, "folder %s", p.shown);
	if (fstat(fd, &st) < 0)
		return err_sys(errno, "folder %s", p.shown);
	r = check_owner(&st, NULL, p.shown);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
