/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a machine inside markup and on terminals: the only code that decides what may pass. */
#pragma once

#include <stddef.h>

struct strbuf;

/*
 * Control characters, those that reorder text and broken UTF-8 become '?', in place, so that no
 * recording can steer a terminal or hide in a page. A tab becomes a blank; a newline stays.
 */
void text_clean(char *text);

/*
 * Adds n bytes of s so that they are text in HTML, SVG and XML, between tags and between double
 * quotes: cleaned as above, with the five special characters as references. Every text that onehop
 * did not write itself enters a page or a drawing through here.
 */
void markup_add(struct strbuf *out, const char *s, size_t n);
void markup_puts(struct strbuf *out, const char *s);
/* As an id or the target of a link: what is not a letter, a digit or one of "-._:" becomes '-'. */
void markup_put_id(struct strbuf *out, const char *s);
