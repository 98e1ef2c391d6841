/* SPDX-License-Identifier: Apache-2.0 */
/* What is in folders, and folders that go. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int host_stat(struct fix_host *h, const char *path, struct stat *ret)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (r < 0)
		return r;
	if (fstatat(p.folder, p.name, ret, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ENOENT : err_sys(errno, "%s", p.shown);
	return 0;
}

int host_read_link(struct fix_host *h, const char *path, char **ret)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	char target[PATH_MAX];
	ssize_t n;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (r < 0)
		return r;
	n = readlinkat(p.folder, p.name, target, sizeof(target));
	if (n < 0)
		return errno == ENOENT || errno == EINVAL ? -ENOENT : err_sys(errno, "%s", p.shown);
	*ret = xprintf("%.*s", (int)n, target);
	return 0;
}

int host_remove_link(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	AUTO_FREE char *target = NULL;
	struct stat st;
	int r = host_stat(h, path, &st);

	if (h->rehearsal) {
		host_would_unlink(h, path);
		return 0;
	}
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = host_read_link(h, path, &target);
	if (r < 0 && r != -ENOENT)
		return r;
	if (!target || !text_ends_with(target, strrchr(path, '/')))
		return err_set(EEXIST, "/%s is not a link to that file", path);
	r = host_find(h, path, MISSING_FAILS, &p);
	if (r >= 0)
		r = host_unlink_name(h, &p, p.name);
	if (r >= 0)
		r = host_sync_folder(h, p.folder, p.shown);
	return r == -ENOENT ? 0 : r;
}

int host_close_to_others(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	struct stat st;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (h->rehearsal)
		return 0;
	if (r < 0)
		return r;
	if (fstatat(p.folder, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ENOENT : err_sys(errno, "%s", p.shown);
	if (S_ISLNK(st.st_mode) || !(st.st_mode & 077))
		return 0;
	if (fchmodat(p.folder, p.name, st.st_mode & 0700, 0) < 0)
		return err_sys(errno, "permissions of %s", p.shown);
	return 0;
}

int host_remove_folder(struct fix_host *h, const char *path)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	struct stat st;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (h->rehearsal) {
		host_would_remove_folder(h, path);
		return 0;
	}
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (fstatat(p.folder, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(errno, "folder %s", p.shown);
	if (!S_ISDIR(st.st_mode)) /* a link that somebody put in its place */
		return 0;
	r = host_point(h, POINT_UNLINK, p.shown);
	if (r < 0)
		return r;
	if (unlinkat(p.folder, p.name, AT_REMOVEDIR) < 0)
		return errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST
			       ? 0
			       : err_sys(errno, "remove folder %s", p.shown);
	return host_sync_folder(h, p.folder, p.shown);
}
