/* SPDX-License-Identifier: Apache-2.0 */
/* What onehop fix is asked for, and the files that do it. */
#pragma once

#include "cli/fix_context.h"
#include "session/plan_session.h"

struct fix_options {
	struct common_options common;
	const char *root;
	struct plan_choice request;
	bool apply, yes, dry_run, at_boot, confirm, when_healthy;
};

/*
 * Shows the plan, or carries it out; `apply_words` is the command that does. Each returns the exit
 * code.
 */
int fix_plan(const struct fix_options *o, const char *apply_words);
/* What onehop's own units run, and --confirm. */
int fix_write_at_boot(const struct fix_options *o);
int fix_confirm_trial(const struct fix_options *o);
