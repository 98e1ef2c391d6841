/* SPDX-License-Identifier: Apache-2.0 */
/* A question to the person at the terminal, before something is changed. */
#pragma once

#include "cli/option.h"

#include <stdbool.h>

/* clang-format off */
/* TYPE has a member `yes`. */
#define COMMON_YES(TYPE) {"yes", 'y', OPTION_FLAG, offsetof(TYPE, yes), NULL, \
	"do not ask; without a terminal nothing is asked anyway", NULL, 0, 0, 0}
/* clang-format on */

/* Standard input and output are a terminal: somebody sees the question and can answer it. */
bool can_ask(void);
/*
 * "QUESTION? [y/N] ". 0 for yes; for anything else EXIT_REFUSED, after a message that nothing was
 * changed.
 */
int ask(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
