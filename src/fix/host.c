/* SPDX-License-Identifier: Apache-2.0 */
#include "fix/host.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The largest file that is read whole: an initial RAM disk with everything in it is smaller. */
#define FILE_MAX ((size_t)512 << 20)

/* ---- the root ---- */

static bool is_running_system(const struct stat *st)
{
	struct stat own;

	return stat("/", &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino;
}

int fix_host_open(const char *root, struct fix_host *ret)
{
	AUTO_CLOSE int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_sys(errno, "root folder %s", root);
	if (fstat(fd, &st) < 0)
		return err_sys(errno, "root folder %s", root);
	*ret = (struct fix_host){.image = !is_running_system(&st), .run = host_run_program};
	ret->root = xstrdup(root);
	ret->root_fd = TAKE_FD(fd);
	return 0;
}

void fix_host_close(struct fix_host *h)
{
	if (h->root_fd >= 0)
		close(h->root_fd);
	free((char *)h->root);
	*h = (struct fix_host){.root_fd = -1};
}

/* ---- what failed ---- */

/* Of the file system of an absolute path. */
static int find_room(const char *shown, struct host_room *ret)
{
	struct statvfs st = {0};
	bool boot;

	host_mount_of(shown, ret->mount);
	boot = strcmp(ret->mount, "/boot") == 0 || strstr(ret->mount, "efi");
	ret->remove = boot ? "a kernel that is not needed any more, with the package manager"
			   : "what is not needed there";
	ret->free = ret->block = 0;
	ret->full = false;
	if (statvfs(ret->mount, &st) < 0)
		return -errno;
	ret->free = (uint64_t)st.f_bavail * st.f_frsize;
	ret->block = st.f_frsize;
	/* Images that are mounted read-only have no free block either. */
	ret->full = st.f_blocks && !st.f_bfree && !(st.f_flag & ST_RDONLY);
	return 0;
}

int host_find_room(struct fix_host *h, const char *path, struct host_room *ret)
{
	AUTO_FREE char *shown = host_shown(h, path);
	int r = find_room(shown, ret);

	return r < 0 ? r : ret->block ? 0 : -ENOTSUP;
}

int host_failed(int err, const char *doing, const char *shown)
{
	struct host_room room;

	if (err == EROFS && *shown == '/') {
		host_mount_of(shown, room.mount);
		return err_set(err, "%s %s: %s: `mount -o remount,rw %s` first", doing, shown,
			       strerror(err), room.mount);
	}
	/* Devices and programs are on no file system that could be full. */
	if ((err != ENOSPC && err != EDQUOT) || *shown != '/')
		return err_sys(err, "%s %s", doing, shown);
	find_room(shown, &room);
	return err_set(err, "%s %s: %s %s (%llu KiB free): remove %s", doing, shown,
		       err == EDQUOT ? "the disk quota is used up on" : "no space is left on",
		       room.mount, (unsigned long long)room.free / 1024, room.remove);
}

int host_point(struct fix_host *h, enum fix_point point, const char *shown)
{
	static const char *const doing[POINT_N] = {
		[POINT_OPEN] = "open",
		[POINT_WRITE] = "write",
		[POINT_FSYNC] = "bring to disk",
		[POINT_LINK] = "keep the old file of",
		[POINT_RENAME] = "put in place",
		[POINT_EXCHANGE] = "put in place",
		[POINT_COMPARE] = "look again at",
		[POINT_UNLINK] = "remove",
		[POINT_FSYNC_FOLDER] = "bring to disk the folder of",
		[POINT_REGISTER] = "set",
		[POINT_RUN] = "run",
	};
	int r = h->before ? h->before(h->before_context, point, shown) : 0;

	return r < 0 ? host_failed(-r, doing[point], shown) : 0;
}

/* ---- reading ---- */

int host_read(struct fix_host *h, const char *path, char **ret, size_t *ret_size)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	AUTO_CLOSE int fd = -1;
	int r = host_find(h, path, MISSING_FAILS, &p);

	if (r >= 0)
		r = place_open(&p, O_RDONLY, &fd);
	if (r < 0)
		return r;
	r = fd_read_all(fd, FILE_MAX, ret, ret_size);
	return r < 0 ? err_sys(-r, "read %s", p.shown) : 0;
}

int host_open_read(struct fix_host *h, const char *path, int *ret_fd)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	int r = host_find(h, path, MISSING_FAILS, &p);

	return r < 0 ? r : place_open(&p, O_RDONLY, ret_fd);
}

int host_list(struct fix_host *h, const char *path, char ***ret, size_t *ret_n)
{
	AUTO_CLOSE int fd = -1;
	int r = host_open_folder(h, path, &fd);

	if (r < 0)
		return r;
	r = fd_list(fd, ret, ret_n);
	return r < 0 ? err_sys(-r, "list %s", path) : 0;
}

/* ---- configuration space and attributes ---- */

static int refuse_image(const struct fix_host *h, const char *what)
{
	return h->image ? err_set(EPERM, "%s: %s is not the running system", what, h->root) : 0;
}

static bool is_number(const char *s, size_t n)
{
	return strspn(s, "0123456789abcdef") >= n;
}

/* "0000:22:00.0"; domains of VMD and virtual machines have more digits. */
static bool is_device(const char *s)
{
	size_t domain = strcspn(s, ":");

	if (domain < 4 || domain > 8 || !is_number(s, domain) || strlen(s) != domain + 8)
		return false;
	s += domain;
	return is_number(s + 1, 2) && s[3] == ':' && is_number(s + 4, 2) && s[6] == '.' &&
	       s[7] >= '0' && s[7] <= '7';
}

/* The caller frees. */
static char *config_path(const char *device)
{
	return xprintf("sys/bus/pci/devices/%s/config", device);
}

static int open_config(struct fix_host *h, const char *device, unsigned offset, int flags,
		       int *ret_fd)
{
	AUTO_FREE char *path = NULL;
	AUTO_PLACE struct place p = PLACE_NONE;
	int r = refuse_image(h, device);

	if (r < 0)
		return r;
	if (!is_device(device))
		return err_set(EINVAL, "\"%s\" is not a PCI address", device);
	if (offset % 2 || offset > 4094)
		return err_set(EINVAL, "%s: no 16-bit register at 0x%x", device, offset);
	path = config_path(device);
	r = host_find(h, path, MISSING_FAILS, &p);
	if (r >= 0)
		r = place_open(&p, flags, ret_fd);
	return r == -ENOENT ? err_set(ENODEV, "%s: no such PCI device", device) : r;
}

int host_config_read(struct fix_host *h, const char *device, unsigned offset, unsigned *ret)
{
	AUTO_CLOSE int fd = -1;
	uint8_t b[2];
	ssize_t n;
	int r = open_config(h, device, offset, O_RDONLY, &fd);

	if (r < 0)
		return r;
	n = pread(fd, b, sizeof(b), offset);
	if (n < 0)
		return err_sys(errno, "%s: read register 0x%x", device, offset);
	if (n < (ssize_t)sizeof(b) && offset >= 64 && geteuid() != 0)
		return err_set(EACCES, "%s: only root can read register 0x%x", device, offset);
	if (n < (ssize_t)sizeof(b))
		return err_set(ENODATA, "%s: its configuration space ends before 0x%x", device,
			       offset);
	*ret = b[0] | (unsigned)b[1] << 8;
	return 0;
}

static int refused_register(int err, const char *device, unsigned offset)
{
	if (err == EPERM && geteuid() == 0)
		return err_set(
			EPERM,
			"%s: the kernel forbids writing register 0x%x, as it does while it is "
			"locked down (Secure Boot; see /sys/kernel/security/lockdown)",
			device, offset);
	return err_sys(err, "%s: write register 0x%x", device, offset);
}

int host_config_write(struct fix_host *h, const char *device, unsigned offset, unsigned value)
{
	const uint8_t b[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
	AUTO_CLOSE int fd = -1;
	ssize_t n;
	int r;

	if (h->rehearsal) {
		AUTO_FREE char *path = config_path(device);

		host_would_patch(h, path, offset, b, sizeof(b));
		return 0;
	}
	if (value > 0xffff)
		return err_set(EINVAL, "%s: 0x%x does not fit into 16 bits", device, value);
	r = open_config(h, device, offset, O_WRONLY, &fd);
	if (r >= 0)
		r = host_point(h, POINT_REGISTER, device);
	if (r < 0)
		return r;
	n = pwrite(fd, b, sizeof(b), offset);
	if (n < 0)
		return refused_register(errno, device, offset);
	if (n < (ssize_t)sizeof(b))
		return err_set(EIO, "%s: register 0x%x took %zd of 2 bytes", device, offset, n);
	return 0;
}

int host_attribute_write(struct fix_host *h, const char *path, const char *text)
{
	AUTO_PLACE struct place p = PLACE_NONE;
	AUTO_CLOSE int fd = -1;
	ssize_t n;
	int r = refuse_image(h, path);

	if (h->rehearsal)
		return 0;
	if (r >= 0)
		r = host_find(h, path, MISSING_FAILS, &p);
	/* Asked first: O_TRUNC empties a file that is none of sysfs. */
	if (r >= 0)
		r = host_point(h, POINT_REGISTER, p.shown);
	if (r >= 0)
		r = place_open(&p, O_WRONLY | O_TRUNC, &fd);
	if (r == -ENOENT)
		return err_set(ENOENT, "/%s: no such file", path);
	if (r < 0)
		return r;
	n = write(fd, text, strlen(text));
	if (n < 0)
		return err_sys(errno, "%s does not take \"%s\"", p.shown, text);
	if ((size_t)n < strlen(text))
		return err_set(EIO, "%s took only %zd bytes of \"%s\"", p.shown, n, text);
	return 0;
}
