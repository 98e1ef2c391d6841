/* SPDX-License-Identifier: Apache-2.0 */
/* What to read next where facts are missing. Pure. */
#pragma once

#include "diagnose/diagnose.h"

struct question {
	const char *command; /* ready to paste; its output is a text that --from reads */
	const char *tells;
};

enum { QUESTIONS_MAX = 3 };

/* The commands whose output would decide most, the first first; returns how many. */
size_t diagnosis_ask(const struct diagnosis *d, struct question ret[static QUESTIONS_MAX]);
