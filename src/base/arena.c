/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * An allocation may end next to another one, where AddressSanitizer sees no overrun. In its builds
 * a gap is behind each, and of a block only what was allocated may be touched.
 */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define ARENA_GAP 16
#else
#define ARENA_GAP                            0
#define ASAN_POISON_MEMORY_REGION(p, size)   ((void)(p), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(p, size) ((void)(p), (void)(size))
#endif

#define ARENA_BLOCK ((size_t)64 << 10)

struct block {
	struct block *next;
	size_t used, size;
	_Alignas(max_align_t) char data[];
};

struct arena {
	struct block *blocks; /* the newest first */
	size_t held, most;    /* bytes of them; most: 0: no limit */
	arena_lacking *lacking;
	void *context;
};

static void __attribute__((noreturn)) lack(struct arena *a)
{
	for (;;)
		a->lacking(a->context);
}

struct arena *arena_new_with(arena_lacking *lacking, void *context, size_t most)
{
	struct arena *a = calloc(1, sizeof(*a));

	if (a)
		*a = (struct arena){.most = most, .lacking = lacking, .context = context};
	return a;
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
	if (block > SIZE_MAX / 2 || (a->most && block > a->most - a->held))
		lack(a);
	b = malloc(sizeof(*b) + block);
	if (!b)
		lack(a);
	a->held += block;
	b->used = 0;
	b->size = block;
	b->next = a->blocks;
	a->blocks = b;
	ASAN_POISON_MEMORY_REGION(b->data, block);
	return b;
}

static void *take(struct arena *a, size_t bytes, size_t align)
{
	const size_t asked = bytes, least = ARENA_GAP ? ARENA_GAP : 1;
	struct block *b;
	char *p;

	if (align < least)
		align = least;
	bytes = ((bytes + align - 1) & ~(align - 1)) + ARENA_GAP;
	if (a->blocks)
		a->blocks->used = (a->blocks->used + align - 1) & ~(align - 1);
	if (a->blocks && a->blocks->used > a->blocks->size)
		a->blocks->used = a->blocks->size;
	b = block_with_room(a, bytes);
	p = b->data + b->used;
	b->used += bytes;
	ASAN_UNPOISON_MEMORY_REGION(p, asked);
	return p;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
		lack(a);
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
	char small[256], *s;
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n >= 0 && (size_t)n < sizeof(small)) {
		va_end(again);
		return arena_strndup(a, small, (size_t)n);
	}
	if (n < 0)
		lack(a);
	s = take(a, (size_t)n + 1, 1);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
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
