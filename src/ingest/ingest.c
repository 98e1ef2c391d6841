/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/ingest.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ingest/lspci.h"
#include "machine/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* One row per kind of text; the first that recognises it reads it. */
static const struct {
	bool (*recognise)(const char *text, size_t size);
	int (*parse)(const char *text, size_t size, const char *file, struct source *map);
} texts[] = {
	{lspci_recognise, lspci_parse},
};

/* Archives are larger than texts and begin with bytes that no text has, so a look at the start is
 * enough. */
static bool looks_like_text(int fd)
{
	unsigned char head[512];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	for (ssize_t i = 0; i < n; i++)
		if (head[i] < 0x20 && head[i] != '\n' && head[i] != '\t' && head[i] != '\r')
			return false;
	return n > 0;
}

static int read_text(int fd, const char *path, struct strbuf *ret)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		strbuf_add(ret, buf, (size_t)n);
		if (ret->len > SOURCE_MAX_FILE)
			return err_set(EFBIG, "%s: is larger than 16 MiB", path);
	}
	return n < 0 ? err_sys(errno, "%s", path) : 0;
}

static int open_text(int fd, const char *path, struct source **ret)
{
	AUTO_STRBUF struct strbuf text = {0};
	int r = read_text(fd, path, &text);

	for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(*texts); i++) {
		struct source *map;

		if (!texts[i].recognise(text.text, text.len))
			continue;
		map = source_new_map(path);
		r = texts[i].parse(text.text, text.len, path, map);
		if (r < 0)
			source_free(map);
		else
			*ret = map;
		return r;
	}
	return r < 0 ? r
		     : err_set(EINVAL,
			       "%s: is a text, but neither a recording nor the output of lspci "
			       "-xxxx",
			       path);
}

int ingest_open(const char *path, struct source **ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(errno, "%s", path);
	if (S_ISREG(st.st_mode) && looks_like_text(fd))
		return open_text(fd, path, ret);
	return recording_open(path, ret);
}
