/* SPDX-License-Identifier: Apache-2.0 */
/* What is running and what is left, on stderr. */
#pragma once

#include "session/session.h"

#include <stdbool.h>

struct progress {
	double shown_s; /* when the last line was, or the beginning */
	bool open;      /* the terminal shows a line */
	bool quiet;     /* only notes and errors are printed */
};

void progress_begin(struct progress *p);
void progress_end(struct progress *p);

/*
 * Shows what runs as "onehop: ...": on a terminal (TERM is set and not "dumb") one line that is
 * written over; elsewhere a line a second at most, none in the first one. progress_end is due
 * before anything else is printed. Prints the session's notes as lines on stderr. Kept by pointer.
 */
struct session_ear progress_ear(struct progress *p);
