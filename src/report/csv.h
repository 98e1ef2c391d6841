/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for spreadsheets: quoted as RFC 4180 says, a line for each row. The only writer of CSV. */
#pragma once

#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

struct csv {
	struct strbuf *out;
	bool in_row; /* the row has a cell already */
};

/* The row that names the columns; NULL-ended. */
void csv_head(struct csv *c, const char *const *names);
/*
 * A text; NULL is an empty cell. A text that a spreadsheet would run as a formula gets an
 * apostrophe in front, which spreadsheets take for "this is text". Control characters are replaced
 * as everywhere.
 */
void csv_text(struct csv *c, const char *text);
void csv_count(struct csv *c, size_t n);
/* Exact to nine digits; NAN and infinity, which stand for unknown, are empty cells. */
void csv_number(struct csv *c, double value);
/* The same, where 0 stands for unknown. */
void csv_known(struct csv *c, double value);
/* Ends the row. */
void csv_end(struct csv *c);
