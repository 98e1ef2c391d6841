/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/module_torn.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define DKMS  "var/lib/dkms"
#define BLOCK 4096 /* a file system block, or a part of one: a power cut leaves whole blocks */

/* ---- one module ---- */

struct block {
	char bytes[BLOCK];
	size_t n;
};

/* Short only at the end of the file. */
static int read_block(int fd, struct block *b)
{
	for (b->n = 0; b->n < BLOCK;) {
		ssize_t n = read(fd, b->bytes + b->n, BLOCK - b->n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		b->n += (size_t)n;
	}
	return 0;
}

static bool is_zero(const struct block *b)
{
	return b->n && !b->bytes[0] && memcmp(b->bytes, b->bytes + 1, b->n - 1) == 0;
}

/* 1: the installed one is the built one with blocks missing; 0: it is the same, or another. */
static int is_torn(int installed, int built)
{
	struct block here = {.n = 0}, made = {.n = 0};
	bool torn = false;
	int r = 0;

	for (;;) {
		r = read_block(installed, &here);
		if (r == 0)
			r = read_block(built, &made);
		if (r < 0 || here.n > made.n)
			return r;
		if (!made.n)
			return torn;
		torn |= here.n < made.n;
		if (here.n && memcmp(here.bytes, made.bytes, here.n) == 0)
			continue;
		if (here.n && !is_zero(&here))
			return 0;
		torn = true;
	}
}

/* ---- all that DKMS installed ---- */

struct installed {
	int root;
	const char *kernel;
	const char *id;    /* "nvidia-current/550.90.07" */
	const char *build; /* var/lib/dkms/.../module */
	struct strbuf *out;
};

static int check_at(const struct installed *s, const char *folder, const char *file)
{
	AUTO_FREE char *path = xprintf("lib/modules/%s/%s/%s", s->kernel, folder, file);
	AUTO_FREE char *own = xprintf("%s/%s", s->build, file);
	AUTO_CLOSE int installed = openat(s->root, path, O_RDONLY | O_CLOEXEC), built = -1;
	int r;

	if (installed < 0)
		return errno == ENOENT ? 0 : -errno;
	built = openat(s->root, own, O_RDONLY | O_CLOEXEC);
	if (built < 0)
		return errno == ENOENT ? 0 : -errno;
	r = is_torn(installed, built);
	if (r > 0)
		strbuf_printf(s->out, "%s %s\n", s->id, path);
	return r < 0 ? r : 0;
}

static int check_module(const struct installed *s, const char *file)
{
	AUTO_FREE char *folders = xstrdup(DKMS_FOLDERS);
	int r = 0;

	for (char *rest = folders, *folder; r == 0 && (folder = strsep(&rest, " "));)
		r = check_at(s, folder, file);
	return r;
}

static DIR *open_folder(int root, const char *path)
{
	int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (!folder && fd >= 0)
		close(fd);
	return folder;
}

static void close_folder(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

#define AUTO_DIR CLEANUP(close_folder)

/* `leads`: where DKMS's link to what is installed leads, "VERSION/KERNEL/x86_64". */
static int check_name(struct installed *s, const char *name, const char *leads)
{
	AUTO_FREE char *build = xprintf(DKMS "/%s/%s/module", name, leads);
	AUTO_FREE char *id = xprintf("%s/%.*s", name, (int)strcspn(leads, "/"), leads);
	AUTO_DIR DIR *folder = open_folder(s->root, build);
	int r = 0;

	if (!folder)
		return errno == ENOENT ? 0 : -errno;
	s->id = id;
	s->build = build;
	for (struct dirent *e; r == 0 && (e = readdir(folder));)
		if (text_starts_with(e->d_name, "nvidia"))
			r = check_module(s, e->d_name);
	return r;
}

int module_torn_list(int root_fd, const char *kernel, const char *machine, struct strbuf *out)
{
	struct installed s = {.root = root_fd, .kernel = kernel, .out = out};
	AUTO_DIR DIR *folder = open_folder(root_fd, DKMS);
	int r = 0;

	if (!folder)
		return -errno;
	for (struct dirent *e; r == 0 && (e = readdir(folder));) {
		AUTO_FREE char *link = xprintf(DKMS "/%s/kernel-%s-%s", e->d_name, kernel, machine);
		char leads[PATH_MAX];
		ssize_t n = readlinkat(root_fd, link, leads, sizeof(leads) - 1);

		if (n <= 0)
			continue;
		leads[n] = '\0';
		r = check_name(&s, e->d_name, leads);
	}
	return r;
}
