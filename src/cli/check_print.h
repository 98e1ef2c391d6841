/* SPDX-License-Identifier: Apache-2.0 */
/* What onehop check prints. */
#pragma once

#include "cli/command.h"
#include "session/check_session.h"

/* What is wanted instead of the whole report. */
struct check_view {
	bool quiet, ask;
	int symptom; /* 1 + index in symptom_words; 0: none */
	const char *pair;
};

/*
 * Reads the machine, or each of the hosts that texts are of, judges and prints it; returns the exit
 * code.
 */
int check_print(const struct check_choice *o, const struct common_options *common,
		const struct check_view *v);
