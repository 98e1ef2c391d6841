/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the program: allocations that do not fail. */
#pragma once

#include "base/arena.h"

#include <stddef.h>

/*
 * The program has nothing better to do without memory than to say so and stop, so these end it
 * with one line and exit status 3. libonehop lives in other people's processes and does not use
 * them.
 */
void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size); /* zeroed */
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* An arena that ends the program likewise. */
struct arena *arena_new(void);
