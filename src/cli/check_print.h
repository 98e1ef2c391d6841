/* SPDX-License-Identifier: Apache-2.0 */
/* What onehop check prints of one machine. */
#pragma once

#include "cli/command.h"
#include "session/check_session.h"

/* What is wanted instead of the whole report. */
struct check_view {
	bool quiet, ask;
	int symptom; /* 1 + index in symptom_words; 0: none */
	const char *pair;
};

/* Judges what was read and prints it; returns the exit code. */
int check_print(struct check_session *s, const struct common_options *common,
		const struct check_view *v);
