/* SPDX-License-Identifier: Apache-2.0 */
#include "unlock/build.h"

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/host.h"
#include "unlock/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEADLINE_S (2 * 3600) /* see build_minutes; a board computer takes its time */
#define LAST_LINES 20
#define TAIL_BYTES (64 << 10)
/* The largest translation units take more, but not all at once. */
#define JOB_BYTES ((uint64_t)512 << 20)

/* ---- how long it takes ---- */

int build_minutes(enum build_part part, int64_t cpus)
{
	static const int cpu_minutes[BUILD_PART_N] = {[BUILD_CORE] = 8, [BUILD_MODULES] = 6};
	int64_t n = cpus > 0 ? cpus : 1;

	return (int)((cpu_minutes[part] + n - 1) / n);
}

/* ---- how it goes ---- */

struct watch {
	const struct build_request *request;
	const char *part;
	int log;
	off_t read_to; /* lines before it are counted */
	unsigned files;
	double start_s;
};

/* NVIDIA's makefiles print " [ nvidia  ]  CC   src/file.c"; without a terminal each is a line. */
static bool is_compiled(const char *line, size_t n)
{
	static const char *const words[] = {"]  CC ", "]  CXX "};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(line, n, words[i], strlen(words[i])))
			return true;
	return false;
}

static unsigned count_compiled(const char *text)
{
	const char *line = NULL;
	unsigned n = 0;
	size_t length;

	while (text_next_line(&line, &length, text))
		n += is_compiled(line, length);
	return n;
}

/* Whole lines only: the rest is read next time. */
static void read_on(struct watch *w)
{
	char buf[16 << 10];

	for (;;) {
		ssize_t n = pread(w->log, buf, sizeof(buf) - 1, w->read_to);
		char *end = n > 0 ? memrchr(buf, '\n', (size_t)n) : NULL;

		if (!end && n == sizeof(buf) - 1)
			end = buf + n - 1; /* a line that does not fit: it is passed by parts */
		if (!end)
			return;
		end[1] = '\0';
		w->files += count_compiled(buf);
		w->read_to += end + 1 - buf;
	}
}

static bool tell(void *context)
{
	struct watch *w = context;
	struct build_progress p = {.part = w->part};

	if (!w->request->progress)
		return true;
	read_on(w);
	p.files = w->files;
	p.seconds = clock_s() - w->start_s;
	return w->request->progress(w->request->context, &p);
}

/* ---- running make ---- */

static unsigned default_jobs(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	long page = sysconf(_SC_PAGESIZE);
	uint64_t fits = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / JOB_BYTES : 1;

	if (cpus < 1 || fits < 1)
		return 1;
	return (uint64_t)cpus < fits ? (unsigned)cpus : (unsigned)fits;
}

static int run_make(const struct build_request *r, const char *part, int log)
{
	AUTO_FREE char *folder = xprintf("%s/%s", r->sources, part);
	AUTO_FREE char *jobs = xprintf("-j%u", r->jobs ? r->jobs : default_jobs());
	AUTO_FREE char *make = host_program("make");
	const char *argv[] = {"make", "-C", folder, jobs, NULL};
	struct watch w = {.request = r,
			  .part = part,
			  .log = log,
			  .start_s = clock_s(),
			  .read_to = lseek(log, 0, SEEK_END)};
	const struct child_watch watch = {.output = log,
					  .deadline_s = DEADLINE_S,
					  .tick = tell,
					  .context = &w};
	int status = 0, result;

	if (!make)
		return err_set(ENOENT, "there is no make on this system");
	result = child_run_watched(make, argv, &watch, &status);
	tell(&w);
	if (result < 0 || status == 0)
		return result;
	return err_set(EIO, "make -C %s failed with status %d; all it printed: %s/%s", folder,
		       status, r->sources, BUILD_LOG);
}

/* ---- the log ---- */

static int open_log(const char *sources)
{
	AUTO_FREE char *folder = xprintf("%s/.onehop", sources);
	AUTO_FREE char *path = xprintf("%s/%s", sources, BUILD_LOG);
	int fd;

	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return err_sys(errno, "%s", folder);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
	return fd < 0 ? err_sys(errno, "%s", path) : fd;
}

static void last_lines(int fd, size_t max, struct strbuf *out)
{
	AUTO_FREE char *text = xcalloc(TAIL_BYTES + 1, 1);
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n = pread(fd, text, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
	size_t lines = 0;
	char *at;

	if (n <= 0)
		return;
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = '?';
	for (at = text + n; at > text; at--)
		if (at[-1] == '\n' && at < text + n && ++lines == max)
			break;
	strbuf_puts(out, at);
}

void build_last_lines(int dir_fd, const char *path, size_t max, struct strbuf *out)
{
	AUTO_CLOSE int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0)
		last_lines(fd, max, out);
}

/* ---- what came of it ---- */

static int check_core(const struct build_request *r)
{
	struct probe p = {0};
	int result = probe_file(AT_FDCWD, r->core, r->arena, &p);

	if (result < 0 || p.every_chip)
		return result;
	return err_set(
		EUCLEAN,
		"%s has %u of 5 functions of P2P through BAR1 and %u stubs: it was not built from "
		"edited sources; remove %s/src/nvidia/_out and try again",
		r->core, p.real, p.stubs, r->sources);
}

static int check_modeset(const struct build_request *r)
{
	if (!r->modeset || access(r->modeset, R_OK) == 0)
		return 0;
	return err_sys(errno, "make went well, but %s is not there", r->modeset);
}

int build_core(const struct build_request *r, struct strbuf *last)
{
	AUTO_CLOSE int log = open_log(r->sources);
	int result;

	if (log < 0)
		return log;
	result = run_make(r, "src/nvidia", log);
	if (result == 0 && r->modeset)
		result = run_make(r, "src/nvidia-modeset", log);
	if (result < 0) {
		last_lines(log, LAST_LINES, last);
		return result;
	}
	result = check_core(r);
	return result < 0 ? result : check_modeset(r);
}
