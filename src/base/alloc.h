/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the program: allocations that do not fail, and an arena that frees all at once. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/*
 * The program has nothing better to do without memory than to say so and stop, so these end it
 * with one line and exit status 3. libonehop lives in other people's processes and does not use them.
 */
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size); /* zeroed */
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Everything that a struct machine points at comes from one arena and dies with it. */
struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *a);                          /* NULL is fine */
void *arena_alloc(struct arena *a, size_t n, size_t size); /* zeroed, aligned for any type */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

/* Appends a zeroed element to an arena array of *n elements; grows by doubling. Returns it. */
#define ARENA_PUSH(arena, array, n)                                                                \
	((array) = arena_grow((arena), (array), (n), sizeof(*(array))), (n)++, &(array)[(n)-1])
void *arena_grow(struct arena *a, void *array, size_t n, size_t size);
