/* SPDX-License-Identifier: Apache-2.0 */
/* What fix, undo, history and unlock share: a session that changes a system, and the lines that it prints meanwhile. */
#pragma once

#include "cli/command.h"
#include "report/report_fix.h"

/* clang-format off */
#define COMMON_ROOT(TYPE) {"root", 0, OPTION_FILE, offsetof(TYPE, root), "DIR", \
	"the mounted system image at DIR instead of the running system", \
	NULL, 0, 0, 0}
/* clang-format on */

struct fix_context {
	const struct common_options *common;
	struct change_session session;
	struct fix_lines lines;
};

/* `root` NULL or "/": the running system. 0, or a code after a message. Kept by pointer. */
int fix_context_open(const struct common_options *common, const char *root,
		     struct fix_context *ret);
void fix_context_close(struct fix_context *s);
/*
 * As change_session_recover; asks first on a terminal, but for `yes`, if that loses lines. 0, or an exit code after a
 * message.
 */
int fix_context_recover(struct fix_context *s, bool yes);

/*
 * The frame of "undo [N]" and "history [N]": `run` gets the open host, its journal unread, and N, 0
 * if none was given. The exit code.
 */
int fix_context_with_number(const struct common_options *common, const char *root, const char *word,
			    int (*run)(struct fix_context *s, unsigned number, const void *options),
			    const void *options);
/* Prints the last lines of the outcome, errors on stderr. Returns the exit code. */
int finish_outcome(const struct fix_context *s, const struct fix_outcome *o);
/* The same as JSON that holds the outcome; takes the reference. */
int finish_outcome_json(const struct fix_outcome *o, json_t *json);
