/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log as one text, however large it is: of a large one only the lines that are read, on the lines
 * where they were.
 */
#pragma once

#include "base/strbuf.h"

#include <stdbool.h>

struct arena;
struct text_line;
struct text_reducer;

struct log_text {
	struct strbuf text; /* all of it; "" if it is reduced */
	struct strbuf head; /* the start of the file, which shows what it seems to be */
	bool reduced;       /* the log is large: not all of its lines are kept */
	bool lost;          /* some that matter are not */
	struct arena *arena;
	struct text_reducer *reducer;
	const struct text_line *lines; /* of a reduced log: those that are kept */
	size_t n;
};

/*
 * "-" is standard input; a gzip file is unpacked, and refused if it is damaged. 0, or a negative
 * errno with a sentence.
 */
int log_text_read(const char *path, struct log_text *ret);
void log_text_done(struct log_text *t);
/* Puts the lines that are kept into `text`, where they were in the log. */
void log_text_join(struct log_text *t);
