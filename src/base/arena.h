/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: memory that is freed all at once. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* Everything that a struct machine points at comes from one arena and dies with it. */
struct arena;

/*
 * What an arena without memory calls; it does not return: it ends the program, or jumps out of what
 * asked for memory.
 */
typedef void arena_lacking(void *context);

/*
 * An arena that calls `lacking` if the system has no more memory, or once it would hold more than
 * `most` bytes (0: no limit). NULL: there is not even memory for it. Code that takes all of its
 * memory from one arena, as result/ does, leaks nothing when it is jumped out of: who jumps frees
 * the arena.
 */
struct arena *arena_new_with(arena_lacking *lacking, void *context, size_t most);
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
