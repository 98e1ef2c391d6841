// SPDX-License-Identifier: Apache-2.0
#include "nccl/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 1024

static bool wanted(enum say_level level)
{
	static const char *const words[] = {"WARN", "INFO", "ABORT", "TRACE"};
	const char *debug = getenv("NCCL_DEBUG");
	size_t i = 0;

	while (debug && i < 4 && strcasecmp(debug, words[i]) != 0)
		i++;
	return debug && i < 4 && i >= (size_t)level;
}

/* %h and %p as NCCL knows them. */
static void file_name(const char *pattern, const char *host, char *buf, size_t size)
{
	size_t at = 0;

	for (const char *s = pattern; *s && at + 1 < size; s++) {
		int n = 1;

		if (s[0] == '%' && s[1] == 'h')
			n = snprintf(buf + at, size - at, "%s", host);
		else if (s[0] == '%' && s[1] == 'p')
			n = snprintf(buf + at, size - at, "%d", (int)getpid());
		else
			buf[at] = *s;
		if (n < 0 || (size_t)n >= size - at)
			break;
		s += *s == '%' && (s[1] == 'h' || s[1] == 'p');
		at += (size_t)n;
	}
	buf[at] = '\0';
}

/* Where a descriptor would write next; -1: it cannot write to the file. */
static off_t place_of(int fd, const struct stat *file)
{
	const int flags = fcntl(fd, F_GETFL);
	struct stat other;
	off_t at;

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &other) < 0 ||
	    other.st_dev != file->st_dev || other.st_ino != file->st_ino)
		return -1;
	at = flags & O_APPEND ? other.st_size : lseek(fd, 0, SEEK_CUR);
	return at < 0 ? 0 : at;
}

/*
 * NCCL keeps the file open and does not append, so a line at the end could be overwritten by it. A
 * descriptor of the same file shares its place: NCCL's is the one that is furthest. Others may be
 * of whoever made the file, at its beginning.
 */
static int share_descriptor(const char *path)
{
	struct stat file;
	off_t furthest = -1;
	int found = -1;
	DIR *folder;

	if (stat(path, &file) < 0 || !(folder = opendir("/proc/self/fd")))
		return -1;
	for (struct dirent *e = readdir(folder); e; e = readdir(folder)) {
		const int fd = (int)strtol(e->d_name, NULL, 10);
		const off_t at = fd > 2 ? place_of(fd, &file) : -1;

		if (at > furthest) {
			furthest = at;
			found = fd;
		}
	}
	closedir(folder);
	if (found < 0 || (furthest == 0 && file.st_size > 0))
		return -1;
	return fcntl(found, F_DUPFD_CLOEXEC, 3);
}

static int open_output(const char *host)
{
	const char *pattern = getenv("NCCL_DEBUG_FILE");
	char path[PATH_MAX];
	int fd;

	if (!pattern || !*pattern)
		return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	file_name(pattern, host, path, sizeof(path));
	if (strcmp(path, "stderr") == 0 || strcmp(path, "/dev/stdout") == 0)
		return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	fd = share_descriptor(path);
	if (fd < 0)
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	return fd >= 0 ? fd : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

/*
 * Nobody may read any more: the signal of that ends a program that never writes there itself, and
 * is for none of its handlers.
 */
static void write_all(int fd, const char *line, size_t n)
{
	const struct timespec none = {0};
	sigset_t pipe, old, pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	sigpending(&pending);
	if (write(fd, line, n) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* In one write, so that lines of several processes do not mix. */
static void write_line(enum say_level level, const char *text)
{
	char host[256] = "", line[LINE + 512];
	int fd, n;

	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	n = snprintf(line, sizeof(line), "%s:%d:%ld %sNCCL %s onehop: %s\n", host, (int)getpid(),
		     syscall(SYS_gettid), level == SAY_WARN ? "onehop.c:0 " : "",
		     level == SAY_WARN ? "WARN" : "INFO", text);
	fd = open_output(host);
	if (fd < 0)
		return;
	if (n > 0)
		write_all(fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	close(fd);
}

void say(enum say_level level, const char *format, ...)
{
	const int saved = errno;
	char text[LINE] = "";
	va_list ap;

	va_start(ap, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is not seen where a file is analyzed again for another library */
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (wanted(level))
		write_line(level, text);
	errno = saved;
}
