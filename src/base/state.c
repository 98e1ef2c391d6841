/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The first that is an absolute path. The XDG base directory specification: relative ones are to be
 * ignored.
 */
static const struct place {
	const char *variable, *below;
} places[] = {{"XDG_STATE_HOME", "/onehop"}, {"HOME", "/.local/state/onehop"}};

static const struct place *find_place(void)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const char *value = getenv(places[i].variable);

		if (value && *value == '/')
			return &places[i];
	}
	return NULL;
}

char *state_folder(void)
{
	const struct place *p = find_place();

	return p ? xprintf("%s%s", getenv(p->variable), p->below) : NULL;
}

const char *state_variable(void)
{
	const struct place *p = find_place();

	return p ? p->variable : NULL;
}

int state_missing(void)
{
	return err_set(ENOENT,
		       "no place for results: neither XDG_STATE_HOME nor HOME is an absolute path");
}

int state_refuse(int err, const char *verb, const char *path)
{
	return err_set(err, "cannot %s %s (the folder comes from %s): %s", verb, path,
		       state_variable(), strerror(err));
}

int state_folder_make(char **ret)
{
	AUTO_FREE char *path = state_folder();

	if (!path)
		return state_missing();
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return state_refuse(errno, "make", path);
		*slash = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return state_refuse(errno, "make", path);
	*ret = TAKE_PTR(path);
	return 0;
}

int state_not_regular(const char *path)
{
	return err_set(EINVAL, "%s: is a link, a pipe, a folder or a device, not a file; remove it",
		       path);
}

static int check_owner(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return state_refuse(errno, "read", path);
	if (st.st_uid && st.st_uid != geteuid())
		return err_set(EINVAL, "%s: belongs to user %u, not to user %u, so it is not used",
			       path, (unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(
			EINVAL,
			"%s: users other than its owner can write to it (mode %04o), so it is not used",
			path, (unsigned)st.st_mode & 07777);
	return 0;
}

int state_open_regular(const char *path, int flags)
{
	AUTO_CLOSE int fd =
		open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	const char *verb = (flags & O_ACCMODE) == O_RDONLY ? "read" : "write";
	struct stat st;

	if (fd < 0) /* ELOOP: a link; ENXIO: a socket, or a pipe without a reader */
		return errno == ELOOP || errno == ENXIO ? state_not_regular(path)
							: state_refuse(errno, verb, path);
	if (fstat(fd, &st) < 0)
		return state_refuse(errno, "read", path);
	return S_ISREG(st.st_mode) ? TAKE_FD(fd) : state_not_regular(path);
}

int state_open(const char *path)
{
	AUTO_CLOSE int fd = state_open_regular(path, O_RDONLY);
	int r = fd < 0 ? fd : check_owner(fd, path);

	return r < 0 ? r : TAKE_FD(fd);
}
