/* SPDX-License-Identifier: Apache-2.0 */
/* What comes into the kernel log while something runs. */
#pragma once

#include "machine/machine.h"

struct log_tail {
	size_t seen;        /* lines that were there before */
	int64_t newest_us;  /* of them; -1: no line has a time */
	const char *unread; /* why the log could not be read; NULL: it was */
	struct arena *arena;
};

/*
 * Hears of each line that was not there before; NULL: nobody does, and they are old from here on.
 */
typedef void log_tail_hear(void *context, const struct log_line *line);

/* Nothing is read yet. */
void log_tail_open(struct log_tail *t);
/* The running host's log; once it could not be read, it is not tried again. */
void log_tail_read(struct log_tail *t, log_tail_hear *hear, void *context);
/* The same of a machine that was read: for tests too. */
void log_tail_take(struct log_tail *t, const struct machine *m, log_tail_hear *hear, void *context);
void log_tail_done(struct log_tail *t); /* also of one that was never opened */
