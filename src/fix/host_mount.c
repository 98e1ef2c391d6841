/* SPDX-License-Identifier: Apache-2.0 */
/* File systems that a system mounts by its etc/fstab, and that may not be mounted where it is changed. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "fix/host_impl.h"

#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
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

static bool is_mount_at(const char *path)
{
	AUTO_CLOSE int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return folder >= 0 && is_mount(folder);
}

/* "/boot/grub" of "/boot/grub/grub.cfg"; "/" at the end. */
static void path_parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		slash[slash == path] = '\0';
}

void host_mount_of(const char *path, char ret[static PATH_MAX])
{
	AUTO_FREE char *real = NULL;

	snprintf(ret, PATH_MAX, "%s", path);
	do
		path_parent(ret);
	while (!(real = realpath(ret, NULL)) && ret[1]);
	if (real)
		snprintf(ret, PATH_MAX, "%s", real);
	while (ret[1] && !is_mount_at(ret))
		path_parent(ret);
}

bool host_is_empty(struct fix_host *h, const char *path)
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
	return is_mount(h->root_fd) || host_is_empty(h, mount);
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

/* Takes the last component off. */
static void climb(struct strbuf *path)
{
	const char *slash = strrchr(strbuf_str(path), '/');

	path->len = slash ? (size_t)(slash - path->text) : 0;
	if (path->text)
		path->text[path->len] = '\0';
}

/* The path with the links on the way followed, as far as there is something; the caller frees. */
static char *behind_links(struct fix_host *h, const char *path)
{
	enum { LINKS = 40 }; /* as many as the kernel follows */
	AUTO_FREE char *rest = xstrdup(path);
	AUTO_STRBUF struct strbuf way = {0};
	unsigned links = 0;

	for (char *at = rest; *(at += strspn(at, "/"));) {
		const size_t n = strcspn(at, "/");
		AUTO_FREE char *next =
			xprintf("%s%s%.*s", strbuf_str(&way), way.len ? "/" : "", (int)n, at);
		AUTO_FREE char *link = NULL;

		if (n == 2 && at[0] == '.' && at[1] == '.') {
			climb(&way);
		} else if (links < LINKS && host_read_link(h, next, &link) == 0) {
			char *further = xprintf("%s/%s", link, at + n);

			links++;
			while (*link == '/' && way.len)
				climb(&way);
			free(rest);
			at = rest = further;
			continue;
		} else if (n != 1 || *at != '.') {
			strbuf_printf(&way, "%s%.*s", way.len ? "/" : "", (int)n, at);
		}
		at += n;
	}
	return xstrdup(strbuf_str(&way));
}

static int not_mounted(struct fix_host *h, const char *mount, const char *device)
{
	AUTO_FREE char *folder = host_shown(h, mount), *fstab = host_shown(h, FSTAB);

	return err_set(ENOMEDIUM, "%s is not mounted, and %s has %s there: mount it first", folder,
		       fstab, device);
}

int host_check_mounted(struct fix_host *h, const char *path)
{
	AUTO_FREE char *text = NULL, *real = NULL;
	AUTO_FCLOSE FILE *f = NULL;
	char words[4096];
	struct mntent m;
	size_t size;

	if (host_read(h, FSTAB, &text, &size) < 0 || !size)
		return 0;
	real = behind_links(h, path);
	f = fmemopen(text, size, "r");
	while (f && getmntent_r(f, &m, words, sizeof(words))) {
		AUTO_FREE char *mount = behind_links(h, mount_path(m.mnt_dir));

		if (is_below(real, mount) && is_missing(h, mount))
			return not_mounted(h, mount, m.mnt_fsname);
	}
	return 0;
}
