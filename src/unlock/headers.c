/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers of the kernel say: they are read, not compiled. */
#include "unlock/headers.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "unlock/lexer.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define PCI_H      "include/linux/pci.h"
#define HEADER_MAX (4u << 20)

static int read_file(const char *path, char **ret, size_t *ret_size)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO_FREE char *data = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(errno, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_size > HEADER_MAX)
		return err_set(EINVAL, "%s is no header", path);
	data = xmalloc((size_t)st.st_size + 1);
	n = read(fd, data, (size_t)st.st_size);
	if (n < 0)
		return err_sys(errno, "%s", path);
	data[n] = '\0';
	*ret = TAKE_PTR(data);
	*ret_size = (size_t)n;
	return 0;
}

/* The folder of an "include /usr/src/linux-headers-6.1.0-56-common/Makefile", as Debian's have. */
static char *common_folder(const char *dir)
{
	AUTO_FREE char *path = xprintf("%s/Makefile", dir);
	AUTO_FREE char *text = NULL;
	const char *line, *end;
	size_t size;

	if (read_file(path, &text, &size) < 0)
		return NULL;
	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "include /", 9) != 0)
			continue;
		end = line + strcspn(line, "\n");
		if (end - line > 17 && strncmp(end - 9, "/Makefile", 9) == 0)
			return xstrndup(line + 8, (size_t)(end - 9 - line - 8));
	}
	return NULL;
}

/* The build folder's own, its `source` beside or below it, or what its Makefile includes. */
static int read_pci_h(const char *dir, char **ret, size_t *ret_size)
{
	static const char *const places[] = {"", "source/", "../source/"};
	AUTO_FREE char *common = NULL;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		AUTO_FREE char *path = xprintf("%s/%s" PCI_H, dir, places[i]);

		if (read_file(path, ret, ret_size) == 0)
			return 0;
	}
	common = common_folder(dir);
	if (common) {
		AUTO_FREE char *path = xprintf("%s/" PCI_H, common);

		if (read_file(path, ret, ret_size) == 0)
			return 0;
	}
	return err_set(ENOENT, "%s holds no " PCI_H ": are these a kernel's headers?", dir);
}

/* Of the brackets that open at code[open]. */
static int count_arguments(const struct lexed *x, size_t open)
{
	int n = 1;

	for (size_t i = open + 1; i < x->partner[open]; i++) {
		if (x->partner[i] != NO_PARTNER && x->partner[i] > i)
			i = x->partner[i];
		else
			n += lexed_is(x, i, ",");
	}
	return n;
}

int headers_resize_arguments(const char *dir, int *ret)
{
	AUTO_FREE char *text = NULL;
	struct lexed x = {0};
	size_t size = 0;
	int n = 0, r = read_pci_h(dir, &text, &size);

	if (r < 0)
		return r;
	r = lex(text, size, &x);
	if (r < 0)
		return r;
	for (size_t i = 0; i + 1 < x.code_n; i++) {
		if (lexed_is(&x, i, "pci_resize_resource") && lexed_is(&x, i + 1, "(") &&
		    x.partner[i + 1] != NO_PARTNER)
			n = count_arguments(&x, i + 1);
	}
	lexed_done(&x);
	if (n != 0 && n != 3 && n != 4)
		return err_set(EINVAL, "%s: pci_resize_resource has %d arguments, not 3 or 4", dir,
			       n);
	*ret = n;
	return 0;
}
