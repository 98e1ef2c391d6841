/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/ingest.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "ingest/text.h"
#include "machine/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* Archives are larger than texts and begin with bytes that no text has, so a look at the start is
 * enough. */
static bool looks_like_text(int fd)
{
	unsigned char head[512];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	for (ssize_t i = 0; i < n; i++)
		if (head[i] < 0x20 && head[i] != '\n' && head[i] != '\t' && head[i] != '\r' &&
		    head[i] != '\033')
			return false;
	return n > 0;
}

static int open_text(int fd, const char *path, struct source **ret)
{
	AUTO_STRBUF struct strbuf text = {0};
	int r = text_read_fd(fd, path, SOURCE_MAX_FILE, &text);

	for (const struct text_kind *k = text_kinds; r == 0 && k->what; k++) {
		struct source *map;

		if (!k->to_source || !k->recognise(text.text, text.len))
			continue;
		map = source_new_map(path);
		r = k->to_source(text.text, text.len, path, map);
		if (r < 0)
			source_free(map);
		else
			*ret = map;
		return r;
	}
	return r < 0 ? r
		     : text_refuse(text.text, text.len, path,
				   "a recording or the output of lspci -xxxx");
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
