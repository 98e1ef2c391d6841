/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of a live device's configuration space only the registers that config_space.c decodes. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "capture/capture_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

enum {
	HEADER_SIZE = 64,
	PCI_SIZE = 256,
	EXPRESS_SIZE = 4096,
};

/* How many bytes of each capability are decoded; of any other just the header, to walk on. */
static const struct {
	uint16_t id;
	bool extended;
	size_t size;
} wanted[] = {
	{0x10, false, 0x34},  /* PCI Express */
	{0x0001, true, 0x14}, /* AER */
	{0x000d, true, 0x08}, /* ACS */
	{0x000f, true, 0x08}, /* ATS */
	{0x0015, true, 0x34}, /* Resizable BAR: six entries */
};

struct space {
	int fd;
	uint8_t *bytes;
	size_t size; /* how much of it this process may read */
};

static int fetch(struct space *s, size_t at, size_t n)
{
	if (at + n > s->size)
		n = at < s->size ? s->size - at : 0;
	return n && pread(s->fd, s->bytes + at, n, (off_t)at) < 0 ? -errno : 0;
}

static size_t size_of(uint16_t id, bool extended)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		if (wanted[i].id == id && wanted[i].extended == extended)
			return wanted[i].size;
	return 0;
}

/* The walks stop after as many steps as there is room for capabilities: a broken list may loop. */
static int walk_capabilities(struct space *s)
{
	size_t at = s->bytes[0x34] & ~3u;
	int r = 0;

	for (unsigned n = 0; r == 0 && at >= HEADER_SIZE && n < PCI_SIZE / 4; n++) {
		size_t size;

		r = fetch(s, at, 4);
		size = size_of(s->bytes[at], false);
		if (r == 0 && size)
			r = fetch(s, at + 4, size - 4);
		at = s->bytes[at + 1] & ~3u;
	}
	return r;
}

static int walk_extended(struct space *s)
{
	size_t at = PCI_SIZE;
	int r = 0;

	for (unsigned n = 0; r == 0 && at >= PCI_SIZE && n < EXPRESS_SIZE / 4; n++) {
		uint32_t head;
		size_t size;

		r = fetch(s, at, 4);
		head = (uint32_t)s->bytes[at] | (uint32_t)s->bytes[at + 1] << 8 |
		       (uint32_t)s->bytes[at + 2] << 16 | (uint32_t)s->bytes[at + 3] << 24;
		size = size_of((uint16_t)head, true);
		if (r == 0 && size)
			r = fetch(s, at + 4, size - 4);
		at = head == 0xffffffff ? 0 : head >> 20 & ~3u;
	}
	return r;
}

/* sysfs gives 64 bytes to those without CAP_SYS_ADMIN, whatever the file's size says. */
static size_t readable_size(int fd)
{
	struct stat st;
	uint8_t byte;

	if (fstat(fd, &st) < 0 || st.st_size <= HEADER_SIZE)
		return HEADER_SIZE;
	if (pread(fd, &byte, 1, HEADER_SIZE) != 1)
		return HEADER_SIZE;
	return st.st_size >= EXPRESS_SIZE ? EXPRESS_SIZE : PCI_SIZE;
}

int live_read_config(int root_fd, const char *path, char **ret, size_t *ret_size)
{
	AUTO_CLOSE int fd = openat(root_fd, path, O_RDONLY | O_CLOEXEC);
	AUTO_FREE uint8_t *bytes = xcalloc(1, EXPRESS_SIZE + 1);
	struct space s = {fd, bytes, 0};
	int r;

	if (fd < 0)
		return -errno;
	s.size = readable_size(fd);
	r = fetch(&s, 0, HEADER_SIZE);
	if (r == 0 && s.size > HEADER_SIZE)
		r = walk_capabilities(&s);
	if (r == 0 && s.size > PCI_SIZE)
		r = walk_extended(&s);
	if (r < 0)
		return r;
	*ret_size = s.size;
	*ret = (char *)TAKE_PTR(bytes);
	return 0;
}
