/* SPDX-License-Identifier: Apache-2.0 */
/* Names from pci.ids, which is read on the first question. */
#include "machine/pci.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ten times what it has grown to. */
#define FILE_MAX (16 << 20)

/* Where Debian, Fedora and SUSE, and pciutils by default put it. */
static const char *const places[] = {
	"/usr/share/misc/pci.ids",
	"/usr/share/hwdata/pci.ids",
	"/usr/share/pci.ids",
};

struct name {
	const char *text;
	int len; /* 0: unknown */
};

static char *read_file(void)
{
	char *text = NULL;

	for (size_t i = 0; !text && i < ARRAY_LEN(places); i++) {
		AUTO_CLOSE int fd = open(places[i], O_RDONLY | O_CLOEXEC);
		size_t size;

		if (fd >= 0)
			fd_read_all(fd, FILE_MAX, &text, &size);
	}
	return text;
}

/* NULL: there is none. Kept until the process ends. */
static const char *ids(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char *text;
	static bool tried;

	pthread_mutex_lock(&lock);
	if (!tried)
		text = read_file();
	tried = true;
	pthread_mutex_unlock(&lock);
	return text;
}

/* The rest of a line, without blanks around it. */
static struct name name_at(const char *s)
{
	size_t n;

	s += strspn(s, " \t");
	n = strcspn(s, "\n");
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	return (struct name){s, (int)n};
}

/* "\n10de  NVIDIA Corporation" */
static const char *find_vendor(const char *text, unsigned vendor)
{
	char key[16];
	const char *s;

	snprintf(key, sizeof(key), "\n%04x ", vendor);
	s = text ? strstr(text, key) : NULL;
	return s ? s + strlen(key) : NULL;
}

/*
 * "\t2684 AD102 [GeForce RTX 4090]" below its vendor; "\t\t" and "#" are lines about other things.
 */
static struct name find_device(const char *vendor, unsigned device)
{
	char key[16];
	size_t n = (size_t)snprintf(key, sizeof(key), "\t%04x ", device);

	for (const char *s = strchr(vendor, '\n'); s && strchr("\t#\n", s[1]) && s[1];
	     s = strchr(s + 1, '\n'))
		if (strncmp(s + 1, key, n) == 0)
			return name_at(s + 1 + n);
	return (struct name){0};
}

const char *pci_device_name(const struct pci_function *f, char *buf, size_t size)
{
	struct name vendor, device;
	const char *block;

	if (!fact_known(f->vendor) || !fact_known(f->device)) {
		snprintf(buf, size, "unknown device");
		return buf;
	}
	block = find_vendor(ids(), (unsigned)f->vendor.value);
	if (!block) {
		snprintf(buf, size, "Device %04x:%04x", (unsigned)f->vendor.value,
			 (unsigned)f->device.value);
		return buf;
	}
	vendor = name_at(block);
	device = find_device(block, (unsigned)f->device.value);
	if (device.len)
		snprintf(buf, size, "%.*s %.*s", vendor.len, vendor.text, device.len, device.text);
	else
		snprintf(buf, size, "%.*s Device %04x", vendor.len, vendor.text,
			 (unsigned)f->device.value);
	return buf;
}
