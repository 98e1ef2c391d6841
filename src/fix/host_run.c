/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the distribution, found in its own folders, never by a shell. */
#include "base/alloc.h"
#include "base/array.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/markup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Not /usr/local: what a person put there is not the distribution's. */
const char *const host_program_folders[] = {"usr/sbin", "usr/bin", "sbin", "bin", NULL};

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR);
}

char *host_program(const char *name)
{
	if (!*name || strchr(name, '/'))
		return NULL;
	for (size_t i = 0; host_program_folders[i]; i++) {
		AUTO_FREE char *path = xprintf("/%s/%s", host_program_folders[i], name);

		if (is_program(path))
			return TAKE_PTR(path);
	}
	return NULL;
}

/* The one that counts: behind "env", its options and variables. */
static const char *program_of(const char *const *argv)
{
	if (strcmp(*argv, HOST_ENV) != 0)
		return *argv;
	for (argv++; *argv && (**argv == '-' || strchr(*argv, '='));)
		argv += strcmp(*argv, "-u") == 0 && argv[1] ? 2 : 1;
	return *argv ? *argv : HOST_ENV;
}

/* Where programs of the distribution write; not all of them have a file system of their own. */
static const char *const written[] = {"/",    "/boot",        "/boot/efi", "/efi",
				      "/etc", "/lib/modules", "/usr",      "/var"};

#define WRITTEN (sizeof(written) / sizeof(written[0]))

static bool is_among(dev_t device, const dev_t *list, size_t n)
{
	while (n && list[n - 1] != device)
		n--;
	return n > 0;
}

/*
 * Programs copy files and do not wait until they are on the disk. The journal, which says next that the
 * program is done, is on the disk at once: a power cut would leave torn files that count as whole.
 */
static int bring_to_disk(const char *program)
{
	dev_t done[WRITTEN];
	size_t n = 0;

	for (size_t i = 0; i < WRITTEN; i++) {
		AUTO_CLOSE int fd = open(written[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0 || is_among(st.st_dev, done, n))
			continue;
		done[n++] = st.st_dev;
		if (syncfs(fd) < 0)
			return err_sys(errno, "what %s wrote did not reach the disk of %s", program,
				       written[i]);
	}
	return 0;
}

static int no_program(const char *name)
{
	return err_set(ENOENT, "there is no program %s on this system", name);
}

int host_rehearse_program(void *context, const char *const *argv, unsigned deadline_s,
			  struct strbuf *output, int *ret_status)
{
	AUTO_FREE char *path = host_program(argv[0]);

	(void)context;
	(void)deadline_s;
	(void)output;
	*ret_status = 0;
	return path ? 0 : no_program(argv[0]);
}

int host_run_program(void *context, const char *const *argv, unsigned deadline_s,
		     struct strbuf *output, int *ret_status)
{
	AUTO_FREE char *path = host_program(argv[0]);
	int r;

	(void)context;
	if (!path)
		return no_program(argv[0]);
	r = child_run(path, argv, deadline_s, output, ret_status);
	return r == 0 && *ret_status == 0 ? bring_to_disk(program_of(argv)) : r;
}

/* ---- what a failing program said last ---- */

#define LAST_LINE_MAX 200

/* Programs go on after a full disk and say something else last. With HOST_ENV they may say it in another language. */
static bool find_full_disk(const char *said, char *ret)
{
	static const char *const causes[] = {"No space left on device", "Disk quota exceeded"};
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, said))
		for (size_t i = 0; i < ARRAY_LEN(causes); i++)
			if (memmem(line, n, causes[i], strlen(causes[i]))) {
				snprintf(ret, LAST_LINE_MAX, "%.*s", (int)n, line);
				text_clean(ret);
				return true;
			}
	return false;
}

/* What it could not write is still there, in whatever language it said so. */
static void add_full_file_system(struct fix_host *h, struct strbuf *out)
{
	struct host_room room;

	for (size_t i = 0; i < WRITTEN; i++)
		if (host_find_room(h, written[i], &room) == 0 && room.full) {
			strbuf_printf(out, "; no space is left on %s: remove %s", room.mount,
				      room.remove);
			return;
		}
}

static int failed(struct fix_host *h, const char *program, int status, const char *said)
{
	AUTO_STRBUF struct strbuf full = {0};
	char last[LAST_LINE_MAX];
	bool names = find_full_disk(said, last);

	if (!names)
		text_last_line(said, last, sizeof(last));
	add_full_file_system(h, &full);
	return err_set(EIO, "%s failed with status %d%s%s%s%s", program, status,
		       names ? " because the disk is full" : "", *last ? ": " : "", last,
		       strbuf_str(&full));
}

int host_run(struct fix_host *h, const char *const *argv, unsigned deadline_s,
	     struct strbuf *output)
{
	const char *program = program_of(argv);
	AUTO_STRBUF struct strbuf own = {0};
	int status = 0, r;

	if (h->image)
		return err_set(EPERM, "%s: %s is not the running system", program, h->root);
	r = host_point(h, POINT_RUN, program);
	if (r >= 0)
		r = h->run(h->run_context, argv, deadline_s, &own, &status);
	if (output)
		strbuf_add(output, strbuf_str(&own), own.len);
	return r < 0 || status == 0 ? r : failed(h, program, status, strbuf_str(&own));
}
