/* SPDX-License-Identifier: Apache-2.0 */
/* A log as one text, however large it is: of a large one only the lines that are read, on the lines where they were. */
#pragma once

#include "base/strbuf.h"

#include <stdbool.h>

struct log_text {
	struct strbuf text;
	struct strbuf head; /* the start of the file, which shows what it seems to be */
	bool reduced;       /* not all of its lines are in `text` */
};

/* "-" is standard input; a gzip file is unpacked, and refused if it is damaged. 0, or a negative errno with a sentence. */
int log_text_read(const char *path, struct log_text *ret);
void log_text_done(struct log_text *t);
