/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* EXIT_NOT_JUDGED of cli/command.h. What is buffered for standard output is half a report: dropped. */
#define OUT_OF_MEMORY 3

#define ARENA_BLOCK ((size_t)64 << 10)

struct block {
	struct block *next;
	size_t used, size;
	_Alignas(max_align_t) char data[];
};

struct arena {
	struct block *blocks; /* the newest first */
};

static void *checked(void *p)
{
	if (!p) {
		fputs("onehop: out of memory\n", stderr);
		_exit(OUT_OF_MEMORY);
	}
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
	return xcalloc(1, sizeof(struct arena));
}

void arena_free(struct arena *a)
{
	struct block *b, *next;

	if (!a)
		return;
	for (b = a->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

static struct block *block_with_room(struct arena *a, size_t size)
{
	struct block *b = a->blocks;
	size_t block = size > ARENA_BLOCK ? size : ARENA_BLOCK;

	if (b && b->size - b->used >= size)
		return b;
	b = xmalloc(sizeof(*b) + block);
	b->used = 0;
	b->size = block;
	b->next = a->blocks;
	a->blocks = b;
	return b;
}

static void *take(struct arena *a, size_t bytes, size_t align)
{
	struct block *b;
	char *p;

	bytes = (bytes + align - 1) & ~(align - 1);
	if (a->blocks)
		a->blocks->used = (a->blocks->used + align - 1) & ~(align - 1);
	if (a->blocks && a->blocks->used > a->blocks->size)
		a->blocks->used = a->blocks->size;
	b = block_with_room(a, bytes);
	p = b->data + b->used;
	b->used += bytes;
	return p;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
		return checked(NULL);
	return memset(take(a, bytes ? bytes : 1, _Alignof(max_align_t)), 0, bytes);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = take(a, len + 1, 1);

	memcpy(p, s, len);
	p[len] = '\0';
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
	char small[256], *big, *s;
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n >= 0 && (size_t)n < sizeof(small)) {
		va_end(again);
		return arena_strndup(a, small, (size_t)n);
	}
	n = vasprintf(&big, fmt, again);
	va_end(again);
	checked(n < 0 ? NULL : big);
	s = arena_strdup(a, big);
	free(big);
	return s;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return s;
}

/* Capacity is implied: 4, 8, 16, ...; the old array stays in the arena, at most as large again. */
void *arena_grow(struct arena *a, void *array, size_t n, size_t size)
{
	void *bigger;

	if (n != 0 && (n < 4 || (n & (n - 1)) != 0)) {
		memset((char *)array + n * size, 0, size);
		return array;
	}
	bigger = arena_alloc(a, n ? 2 * n : 4, size);
	if (n)
		memcpy(bigger, array, n * size);
	return bigger;
}
