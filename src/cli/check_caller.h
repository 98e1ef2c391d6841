/* SPDX-License-Identifier: Apache-2.0 */
/* onehop check for another program: --for, --deadline, --textfile. */
#pragma once

#include "session/check_session.h"

struct caller_options {
	int caller; /* 1 + index in callers; 0: a person */
	int deadline_s;
	const char *textfile;
};

/* Reads, judges and answers as the caller wants it; returns the exit code. */
int check_for_caller(const struct caller_options *o, const struct check_choice *choice,
		     const struct machine_choice *from);
