/* SPDX-License-Identifier: Apache-2.0 */
/* A string that grows. */
#pragma once

#include "base/cleanup.h"

#include <stdarg.h>
#include <stddef.h>

/* Start with `struct strbuf b = {0};`; text is NULL until something is added, NUL-terminated after.
 */
struct strbuf {
	char *text;
	size_t len, size;
};

void strbuf_add(struct strbuf *b, const char *s, size_t n);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_putc(struct strbuf *b, char c);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
void strbuf_done(struct strbuf *b);
/*
 * Adds the word in single quotes where a shell would take it for something else without them.
 * GRUB's scripts read quotes in the same way, and end a command at a bare ';' too.
 */
void strbuf_shell_word(struct strbuf *b, const char *word);
/* The text, "" when empty; still owned by the buffer. */
const char *strbuf_str(const struct strbuf *b);

#define AUTO_STRBUF CLEANUP(strbuf_done)
