/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts as a recording holds them: the lines that something was read from, each with its number in
 * the text and the name of the file. Read back, they state what the texts stated, and leave unknown
 * what those left unknown.
 */
#pragma once

#include "ingest/text_time.h"

#include <stddef.h>

struct part;
struct pasted;
struct strbuf;
struct text_line;
struct text_reducer;

/*
 * Appends the text `name` of line_n lines, which `reducer` kept; its parts are in the order of
 * their lines.
 */
void kept_text_write(const char *name, struct text_time time, const struct text_reducer *reducer,
		     const struct text_line *lines, size_t line_n, const struct part *parts,
		     size_t part_n, struct strbuf *out);
/* Adds every text in the content of RECORDING_TEXTS. 0 or a negative errno with a sentence. */
int kept_texts_add(const char *content, const char *file, struct pasted *t);
