/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal as NAME=VALUE (`journalctl -o verbose` and `-o export`), as the lines that it prints
 * without: what reads those needs no other form.
 */
#pragma once

#include "base/strbuf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { LOG_FIELD_SIZE = 64 }; /* the longest name that systemd allows */

/* The message that the lines so far began; starts as {0}. */
struct log_fields {
	enum { LOG_FIELDS_NONE, LOG_FIELDS_VERBOSE, LOG_FIELDS_EXPORT } in;
	json_t *entry; /* its fields */
	char last[LOG_FIELD_SIZE + 1];
	size_t indent; /* of its fields; the lines of one value are behind that */
	/* -o export gives a value with line breaks as a size of 8 bytes and the bytes. */
	enum { LOG_FIELDS_TEXT, LOG_FIELDS_BINARY, LOG_FIELDS_LOOSE /* without the size */ } value;
	struct strbuf binary;
};

/*
 * The next line of a text, as it is (`raw`) and cleaned (`plain`). True: it is of a message. `ret`
 * gets the message that ended above it, if one did.
 */
bool log_fields_line(struct log_fields *f, const char *raw, size_t raw_n, const char *plain,
		     size_t n, struct strbuf *ret);
/* The text ends, or goes on with something else. */
void log_fields_end(struct log_fields *f, struct strbuf *ret);
void log_fields_done(struct log_fields *f);
/* A file of -o export, which may contain any bytes. */
bool log_fields_begin(const char *text, size_t n);
