/* SPDX-License-Identifier: Apache-2.0 */
#include "base/waits.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Calls that wait for a file, and which argument names it. */
static const struct call {
	long number;
	int path, fd; /* -1: it has none */
} calls[] = {
	{SYS_read, -1, 0},       {SYS_pread64, -1, 0},  {SYS_write, -1, 0},
	{SYS_pwrite64, -1, 0},   {SYS_ioctl, -1, 0},    {SYS_fstat, -1, 0},
	{SYS_getdents64, -1, 0}, {SYS_close, -1, 0},    {SYS_openat, 1, -1},
	{SYS_newfstatat, 1, -1}, {SYS_statx, 1, -1},    {SYS_faccessat, 1, -1},
	{SYS_readlinkat, 1, -1},
#ifdef SYS_open
	{SYS_open, 0, -1},       {SYS_stat, 0, -1},     {SYS_lstat, 0, -1},
	{SYS_access, 0, -1},     {SYS_readlink, 0, -1},
#endif
};

/*
 * By the kernel, which refuses an address without memory: the thread may have gone on and freed it.
 */
static bool copy_text(uintptr_t from, char *ret, size_t size)
{
	struct iovec there = {.iov_base = (void *)from, .iov_len = size - 1}; /* NOLINT */
	struct iovec here = {.iov_base = ret, .iov_len = size - 1};
	ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

	/* Less is there where a page ends. */
	ret[n > 0 ? n : 0] = '\0';
	return n > 0 && *ret;
}

static bool name_descriptor(unsigned long fd, char *ret, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%lu", fd);
	n = readlink(link, ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* "257 0xffffff9c 0x7ffd...": the number of the call, and its arguments. */
static bool read_call(const char *text, char *ret, size_t size)
{
	unsigned long args[2];
	long number;

	if (sscanf(text, "%ld %lx %lx", &number, &args[0], &args[1]) != 3)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].number == number)
			return calls[i].path >= 0 ? copy_text(args[calls[i].path], ret, size)
						  : name_descriptor(args[calls[i].fd], ret, size);
	return false;
}

static bool thread_waits(const char *task, char *ret, size_t size)
{
	char path[64], text[256];
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/syscall", task);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return read_call(text, ret, size);
}

bool waits_for_file(char *ret, size_t size)
{
	DIR *tasks = opendir("/proc/self/task");
	const pid_t self = (pid_t)syscall(SYS_gettid);
	bool found = false;

	for (const struct dirent *e; tasks && !found && (e = readdir(tasks));)
		found = *e->d_name != '.' && strtol(e->d_name, NULL, 10) != self &&
			thread_waits(e->d_name, ret, size);
	if (tasks)
		closedir(tasks);
	return found;
}
