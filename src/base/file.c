/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* So many bytes tell a text from anything else. */
#define HEAD 512
/* ELF of 64 bits, least byte first, of the type ET_CORE */
#define CORE_DUMP  "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\4\0"
#define SHOWN_TEXT "give the text that it shows"

int fd_read_all(int fd, size_t max, char **ret, size_t *ret_size)
{
	AUTO_FREE char *data = NULL;
	size_t size = 0, room = 0;

	for (;;) {
		ssize_t n;

		if (size + 1 >= room) {
			room = room ? 2 * room : 4096;
			data = xrealloc(data, room, 1);
		}
		n = read(fd, data + size, room - size - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
		if (size > max)
			return -EFBIG;
	}
	data[size] = '\0';
	*ret = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}

int file_open(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return file_unreadable(errno, path);
	if (S_ISFIFO(st.st_mode) && fcntl(fd, F_SETFL, 0) < 0)
		return file_unreadable(errno, path);
	return TAKE_FD(fd);
}

int file_unreadable(int err, const char *path)
{
	const char *why = strerror(err);

	if (err == EISDIR)
		return err_set(err, "%s: a folder, not a file", path);
	return err_set(err, "cannot read %s: %c%s", path, tolower((unsigned char)*why), why + 1);
}

/* ---- content ---- */

/*
 * What files of other kinds start with, and what of them onehop could read; NULL: nothing by
 * itself.
 */
static const struct magic {
	const char *what;
	size_t at, n;
	const char *bytes;
	const char *instead;
} magics[] = {
	{"compressed (gzip)", 0, 2, "\x1f\x8b", NULL},
	{"compressed (xz)", 0, 6,
	 "\xfd"
	 "7zXZ\0",
	 NULL},
	{"compressed (zstd)", 0, 4, "\x28\xb5\x2f\xfd", NULL},
	{"compressed (bzip2)", 4, 6, "1AY&SY", NULL},
	{"compressed (lz4)", 0, 4, "\x04\x22\x4d\x18", "unpack it first"},
	{"a zip archive", 0, 4, "PK\3\4", NULL},
	{"a 7z archive", 0, 6, "7z\xbc\xaf\x27\x1c", "unpack it first"},
	{"a tar archive", 257, 5, "ustar", NULL},
	{"a Debian package or another ar archive", 0, 8, "!<arch>\n", NULL},
	{"an RPM package", 0, 4, "\xed\xab\xee\xdb", NULL},
	{"a core dump", 0, 18, CORE_DUMP, "give the kernel log of that time (dmesg)"},
	{"an ELF file", 0, 4, "\177ELF", NULL},
	{"a PDF file", 0, 5, "%PDF-", "give its text (pdftotext)"},
	{"a picture", 0, 8, "\x89PNG\r\n\x1a\n", SHOWN_TEXT},
	{"a picture", 0, 3, "\xff\xd8\xff", SHOWN_TEXT},
	{"a picture", 0, 4, "GIF8", SHOWN_TEXT},
	{"a file of systemd's journal", 0, 8, "LPKSHHRH",
	 "give the output of journalctl --file=FILE -k"},
	{"a database (SQLite)", 0, 15, "SQLite format 3", NULL},
	{"a text in UTF-16", 0, 2, "\xff\xfe", NULL},
	{"a text in UTF-16", 0, 2, "\xfe\xff", NULL},
};

#define NO_JSON "give the output that the program prints without its option for JSON"

/* Texts that hold no output of a tool. The first that fits counts. */
static const struct {
	const char *begins, *has; /* has NULL: anything */
	const char *what, *instead;
} texts[] = {
	{"<?xml", NULL, "XML", NULL},
	{"<!DOCTYPE html", NULL, "a web page", SHOWN_TEXT},
	{"<html", NULL, "a web page", SHOWN_TEXT},
	{"#!", NULL, "a script", "give what it prints; onehop env --script reads its settings"},
	{"-----BEGIN ", NULL, "a key or a certificate", NULL},
	{"{", "\"onehop\"", "a report of onehop as JSON",
	 "onehop fleet reads it; onehop record writes what can be checked again"},
	{"{", "\"apiVersion\"", "JSON of Kubernetes",
	 "give the output of kubectl describe, or of get -o yaml"},
	{"[", "\"HostConfig\"", "the output of docker inspect",
	 "give the command that started the container"},
	{"{", "\"lscpu\"", "the output of lscpu -J", "give it without -J"},
	{"{", "DCGM ", "the output of dcgmi as JSON", "give it without -j"},
	{"[", "\"ifname\"", "the output of rdma or ip as JSON", "give it without -j"},
	{"{", NULL, "JSON of a program or a form that is not read", NO_JSON},
	{"[{", NULL, "JSON of a program or a form that is not read", NO_JSON},
	{"[\n", NULL, "JSON of a program or a form that is not read", NO_JSON},
};

static const struct magic *magic_of(const void *data, size_t size)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++)
		if (size >= magics[i].at + magics[i].n &&
		    memcmp((const char *)data + magics[i].at, magics[i].bytes, magics[i].n) == 0)
			return &magics[i];
	return NULL;
}

/* The index of what a text begins with; the number of texts: none. */
static size_t text_of(const char *data, size_t size)
{
	size_t i = 0;

	for (; i < sizeof(texts) / sizeof(*texts); i++)
		if (size >= strlen(texts[i].begins) &&
		    strncasecmp(data, texts[i].begins, strlen(texts[i].begins)) == 0 &&
		    (!texts[i].has || memmem(data, size, texts[i].has, strlen(texts[i].has))))
			break;
	return i;
}

const char *content_instead(const void *data, size_t size)
{
	const struct magic *m = magic_of(data, size);
	const size_t i = text_of(data, size);

	if (m)
		return m->instead;
	return i < sizeof(texts) / sizeof(*texts) ? texts[i].instead : NULL;
}

const char *content_fault(const void *data, size_t size)
{
	const unsigned char *head = data;

	if (!size)
		return "empty";
	if (magic_of(data, size))
		return magic_of(data, size)->what;
	for (size_t i = 0; i < size && i < HEAD; i++)
		if (head[i] < ' ' && (!head[i] || !strchr("\b\t\n\v\f\r\033", head[i])))
			return "binary";
	return NULL;
}

int content_refuse(const char *path, const void *data, size_t size, const char *wanted)
{
	const char *fault = content_fault(data, size);
	const size_t i = text_of(data, size);

	if (!size)
		return err_set(EINVAL, "%s: empty", path);
	if (!fault)
		fault = i < sizeof(texts) / sizeof(*texts) ? texts[i].what : "a text";
	return err_set(EINVAL, "%s: %s, not %s", path, fault, wanted);
}

int file_refuse(int fd, const char *path, const char *wanted)
{
	char head[HEAD];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	return n < 0 ? file_unreadable(errno, path) : content_refuse(path, head, (size_t)n, wanted);
}

int file_lock(int fd)
{
	while (flock(fd, LOCK_EX | LOCK_NB) < 0)
		if (errno != EINTR)
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

/* ---- writing ---- */

int fd_write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENOSPC;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

int file_replace(const char *path, const char *staged, const char *data, size_t size, unsigned mode)
{
	AUTO_CLOSE int fd = -1;
	int r;

	unlink(staged);
	fd = open(staged, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, size);
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(staged, path) < 0))
		r = -errno;
	if (r < 0)
		unlink(staged);
	return r;
}

/* ---- folders ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int fd_list(int fd, char ***ret, size_t *ret_n)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *folder = own < 0 ? NULL : fdopendir(own);
	char **names = NULL;
	struct dirent *e;
	size_t n = 0;

	if (!folder) {
		int r = -errno;

		if (own >= 0)
			close(own);
		return r;
	}
	while ((e = readdir(folder))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		names = xrealloc(names, n + 1, sizeof(*names));
		names[n++] = xstrdup(e->d_name);
	}
	closedir(folder);
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	*ret = names;
	*ret_n = n;
	return 0;
}
