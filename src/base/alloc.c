/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * EXIT_NOT_JUDGED of cli/command.h. What is buffered for standard output is half a report: dropped.
 */
#define OUT_OF_MEMORY 3

static void __attribute__((noreturn)) end(void *context)
{
	(void)context;
	fputs("onehop: out of memory\n", stderr);
	_exit(OUT_OF_MEMORY);
}

static void *checked(void *p)
{
	if (!p)
		end(NULL);
	return p;
}

void *xmalloc(size_t size)
{
	return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
	return checked(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return checked(strndup(s, n));
}

char *xprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&s, fmt, ap);
	va_end(ap);
	return checked(r < 0 ? NULL : s);
}

struct arena *arena_new(void)
{
	return checked(arena_new_with(end, NULL, 0));
}
