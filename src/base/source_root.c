/* SPDX-License-Identifier: Apache-2.0 */
/* A source over files: the live machine, or a copy of its /sys and /proc in a folder. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/source_impl.h"
#include "base/syscalls.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

struct root {
	struct source base;
	int fd;
	bool live;
	const struct source_provider *providers;
	void *context;
};

/*
 * In a copied tree a link must not lead out of it: the tree may be anybody's. openat2 refuses flags
 * that O_PATH ignores.
 */
static int open_below(const struct root *t, const char *path, int flags)
{
	int quietly = flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY;
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | quietly),
		.resolve = t->live ? 0 : RESOLVE_IN_ROOT,
	};
	int fd;

	if (t->live)
		fd = openat(t->fd, path, (int)how.flags);
	else
		fd = (int)syscall(SYS_openat2, t->fd, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* Folders that each machine has: where one is missing, it was not copied. */
static bool has_folder_of(const struct root *t, const char *path)
{
	static const char *const folders[] = {"sys/class/",   "sys/bus/",      "sys/module/",
					      "sys/devices/", "sys/firmware/", "sys/kernel/",
					      "sys/",         "proc/",         "etc/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		AUTO_CLOSE int fd = -1;

		if (!text_starts_with(path, folders[i]))
			continue;
		fd = open_below(t, folders[i], O_PATH);
		return fd >= 0;
	}
	return true;
}

/*
 * What is wrong with a copy is not wrong with the machine: a pipe, a folder or a loop of links
 * where a file should be is a file that was not copied.
 */
static int of_machine(const struct root *t, const char *path, int error)
{
	static const int of_copies[] = {EINVAL, EISDIR, ELOOP, ENOTDIR, ENXIO, EXDEV};

	if (!t->live && error == -ENOENT && !has_folder_of(t, path))
		return -ENODATA;
	for (size_t i = 0; !t->live && i < sizeof(of_copies) / sizeof(*of_copies); i++)
		if (error == -of_copies[i])
			return -ENODATA;
	return error;
}

static const struct source_provider *find_provider(const struct root *t, const char *path)
{
	for (const struct source_provider *p = t->providers; p && p->name; p++)
		if (p->read ? text_ends_with(path, p->name + 1) : strcmp(p->name, path) == 0)
			return p;
	return NULL;
}

static int root_read(struct source *s, const char *path, char **ret, size_t *ret_size)
{
	struct root *t = (struct root *)s;
	const struct source_provider *p = find_provider(t, path);
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (p)
		return p->read ? p->read(t->fd, path, ret, ret_size)
			       : p->make(t->context, ret, ret_size);
	if (!strchr(path, '/'))
		return -ENODATA; /* a virtual file that this tree has nobody to make */
	fd = open_below(t, path, O_RDONLY);
	if (fd < 0)
		return of_machine(t, path, fd);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return of_machine(t, path, -EINVAL);
	return fd_read_all(fd, SOURCE_MAX_FILE, ret, ret_size);
}

static int root_list(struct source *s, const char *path, char ***ret_names, size_t *ret_n)
{
	struct root *t = (struct root *)s;
	AUTO_CLOSE int fd = open_below(t, path, O_RDONLY | O_DIRECTORY);

	return fd < 0 ? of_machine(t, path, fd) : fd_list(fd, ret_names, ret_n);
}

static int root_link(struct source *s, const char *path, char **ret)
{
	struct root *t = (struct root *)s;
	AUTO_CLOSE int fd = -1;
	char target[PATH_MAX];
	ssize_t n;

	fd = open_below(t, path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	n = readlinkat(fd, "", target, sizeof(target));
	if (n < 0)
		return errno == ENOENT ? -EINVAL : -errno; /* there, but no link */
	*ret = xstrndup(target, (size_t)n);
	return 0;
}

static void root_free(struct source *s)
{
	close(((struct root *)s)->fd);
}

int source_open_root(const char *folder, const struct source_provider *providers, void *context,
		     struct source **ret)
{
	static const struct source_ops ops = {root_read, root_list, root_link, root_free};
	struct root *t;
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(errno, "%s", folder);
	t = xcalloc(1, sizeof(*t));
	t->base.ops = &ops;
	t->base.name = xstrdup(folder);
	t->fd = fd;
	t->live = strcmp(folder, "/") == 0;
	t->providers = providers;
	t->context = context;
	*ret = &t->base;
	return 0;
}
