/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel log and the journal as JSON (`dmesg -J`, `journalctl -o json`, json-pretty and
 * json-sse), as the lines that both print without it: what reads those needs no other form.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct strbuf;

/* The message that the lines so far began; starts as {0}. */
struct log_json {
	enum { LOG_JSON_NONE, LOG_JSON_DMESG, LOG_JSON_JOURNAL } in;
	json_t *entry; /* its fields; NULL: none yet */
};

enum log_json_line {
	LOG_JSON_OTHER, /* it is of another text */
	LOG_JSON_EMPTY, /* it belongs to a message, and ends none */
	LOG_JSON_TEXT, /* *ret has the message that ends here, or all that one line has, on lines of their own */
};

/* The next line of a text, of n bytes. `ret` is empty before. */
enum log_json_line log_json_line(struct log_json *j, const char *line, size_t n,
				 struct strbuf *ret);
void log_json_done(struct log_json *j);
