/* SPDX-License-Identifier: Apache-2.0 */
/* File systems that a system mounts by its etc/fstab, and that may not be mounted where it is changed. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "fix/host_impl.h"

#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>

#define FSTAB "etc/fstab"

/* A bind mount is one too, which has its parent's device: only newer kernels tell. */
static bool is_mount(int folder)
{
	struct stat here, above;
#ifdef STATX_ATTR_MOUNT_ROOT
	struct statx st;

	if (statx(folder, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
	    st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT &&
	    st.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return true;
#endif
	return fstat(folder, &here) == 0 && fstatat(folder, "..", &above, 0) == 0 &&
	       here.st_dev != above.st_dev;
}

static bool is_empty(struct fix_host *h, const char *path)
{
	char **names = NULL;
	size_t n = 0;

	if (host_list(h, path, &names, &n) < 0)
		return false;
	source_free_names(names, n);
	return n == 0;
}

/*
 * A tree that was copied, or is being made, lies in one folder with a file system of its own for
 * nothing, whatever its fstab says: there only an empty folder tells that something is missing.
 */
static bool is_missing(struct fix_host *h, const char *mount)
{
	AUTO_CLOSE int fd = -1;

	int r = host_open_folder(h, mount, &fd);

	if (r < 0 || is_mount(fd))
		return r == -ENOENT;
	return is_mount(h->root_fd) || is_empty(h, mount);
}

static bool is_below(const char *path, const char *mount)
{
	size_t n = strlen(mount);

	return n && strncmp(path, mount, n) == 0 && (path[n] == '/' || !path[n]);
}

/* "var", as paths below the root are spelled; "" for the root itself, and for swap. */
static const char *mount_path(char *folder)
{
	size_t n = strlen(folder);

	if (*folder != '/')
		return "";
	while (n && folder[n - 1] == '/')
		folder[--n] = '\0';
	return folder + strspn(folder, "/");
}

static int not_mounted(struct fix_host *h, const char *mount, const char *device)
{
	AUTO_FREE char *folder = host_shown(h, mount), *fstab = host_shown(h, FSTAB);

	return err_set(ENOMEDIUM, "%s is not mounted, and %s has %s there: mount it first", folder,
		       fstab, device);
}

int host_check_mounted(struct fix_host *h, const char *path)
{
	AUTO_FREE char *text = NULL;
	AUTO_FCLOSE FILE *f = NULL;
	char words[4096];
	struct mntent m;
	size_t size;

	if (host_read(h, FSTAB, &text, &size) < 0 || !size)
		return 0;
	f = fmemopen(text, size, "r");
	while (f && getmntent_r(f, &m, words, sizeof(words))) {
		const char *mount = mount_path(m.mnt_dir);

		if (is_below(path, mount) && is_missing(h, mount))
			return not_mounted(h, mount, m.mnt_fsname);
	}
	return 0;
}
