/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines, run inside the test. */
#pragma once

#include <stdio.h>

struct result {
	int code;
	char *out, *err;
};

/* "check --from X": words are split at blanks. result_done frees what was printed. */
struct result run_command(const char *line);
/* The same without catching what is printed; returns the code. */
int run_line(const char *line);
void result_done(struct result *r);

/* Points a standard stream at a file; returns what it was, for restore_stream. */
int redirect_stream(FILE *stream, const char *path);
void restore_stream(FILE *stream, int saved);
/* What `show` writes to that standard stream while it is a terminal. */
void on_terminal(FILE *stream, void (*show)(void *context), void *context, char *buf, size_t size);
