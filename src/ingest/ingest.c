/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/ingest.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "capture/live.h"
#include "ingest/text.h"
#include "machine/machine.h"
#include "recording/recording.h"

#include <errno.h>
#include <sys/stat.h>

/* Archives are larger than texts and begin with bytes that no text has, so a look at the start is
 * enough. */
static bool looks_like_text(int fd)
{
	char head[512];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	return n > 0 && !content_fault(head, (size_t)n);
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
	AUTO_CLOSE int fd = file_open(path);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return file_unreadable(errno, path);
	if (S_ISREG(st.st_mode) && looks_like_text(fd))
		return open_text(fd, path, ret);
	return recording_open(path, ret);
}

/* ---- machines ---- */

/*
 * More than any machine has: the driver drives 32 GPUs (NV_MAX_DEVICES). A file that claims more
 * would only take time and memory, which grow with the square of the number of GPUs.
 */
enum { MOST_GPUS = 256, MOST_FUNCTIONS = 16384 };

static int check_size(const struct machine *m, const char *from)
{
	if (m->pci_n > MOST_FUNCTIONS)
		return err_set(E2BIG, "%s: has %zu PCI functions; onehop takes %d at most", from,
			       m->pci_n, (int)MOST_FUNCTIONS);
	if (m->gpu_n > MOST_GPUS)
		return err_set(E2BIG, "%s: has %zu GPUs; onehop takes %d at most", from, m->gpu_n,
			       (int)MOST_GPUS);
	return 0;
}

int ingest_machine(const char *from, int pid, unsigned parts, struct machine **ret)
{
	struct machine_request request = {.parts = parts, .pid = pid};
	struct machine *m;
	struct source *s = NULL;
	int r = from ? ingest_open(from, &s) : machine_open_live(&request, &s);

	if (r < 0)
		return r;
	m = machine_read(s, &request);
	source_free(s);
	r = from ? check_size(m, from) : 0;
	if (r < 0)
		machine_free(m);
	else
		*ret = m;
	return r;
}
