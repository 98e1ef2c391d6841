/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the distribution, found in its own folders, never by a shell. */
#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/host_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Not /usr/local: what a person put there is not the distribution's. */
const char *const host_program_folders[] = {"usr/sbin", "usr/bin", "sbin", "bin", NULL};

static bool is_program(int root, const char *path)
{
	struct stat st;

	return fstatat(root, path, &st, 0) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR);
}

/* "usr/sbin/update-grub", below the root; NULL: none. The caller frees. */
static char *find_program(int root, const char *name)
{
	if (!*name || strchr(name, '/'))
		return NULL;
	for (size_t i = 0; host_program_folders[i]; i++) {
		AUTO_FREE char *path = xprintf("%s/%s", host_program_folders[i], name);

		if (is_program(root, path))
			return TAKE_PTR(path);
	}
	return NULL;
}

int host_run_program(void *context, const char *const *argv, unsigned deadline_s,
		     struct strbuf *output, int *ret_status)
{
	AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_FREE char *path = root < 0 ? NULL : find_program(root, argv[0]);
	AUTO_FREE char *whole = path ? xprintf("/%s", path) : NULL;

	(void)context;
	if (!whole)
		return err_set(ENOENT, "there is no program %s on this system", argv[0]);
	return child_run(whole, argv, deadline_s, output, ret_status);
}

/* ---- what a failing program said last ---- */

#define LAST_LINE_MAX 200

/* The last line with something in it, without white space around it. */
static void last_line(const char *text, char *buf, size_t size)
{
	const char *line = NULL;
	size_t n;

	buf[0] = '\0';
	while (text_next_line(&line, &n, text)) {
		size_t first = 0, end = n;

		while (end && strchr(" \t\r", line[end - 1]))
			end--;
		while (first < end && strchr(" \t\r", line[first]))
			first++;
		if (first < end)
			text_copy(buf, size, line + first, end - first);
	}
	for (; *buf; buf++)
		if ((unsigned char)*buf < ' ' || *buf == 0x7f)
			*buf = '?';
}

int host_run(struct fix_host *h, const char *const *argv, unsigned deadline_s,
	     struct strbuf *output)
{
	AUTO_STRBUF struct strbuf own = {0};
	char last[LAST_LINE_MAX];
	int status = 0, r;

	if (h->image)
		return err_set(EPERM, "%s: %s is not the running system", argv[0], h->root);
	r = host_point(h, POINT_RUN, argv[0]);
	if (r >= 0)
		r = h->run(h->run_context, argv, deadline_s, &own, &status);
	if (output)
		strbuf_add(output, strbuf_str(&own), own.len);
	if (r < 0 || status == 0)
		return r;
	last_line(strbuf_str(&own), last, sizeof(last));
	return err_set(EIO, "%s failed with status %d%s%s", argv[0], status, *last ? ": " : "",
		       last);
}
