/* SPDX-License-Identifier: Apache-2.0 */
/* onehop check --watch: what changed since the last look. */
#pragma once

#include "session/check_session.h"

struct common_options;

/* Looks every so many seconds until a signal asks it to stop; returns the exit code. */
int check_watch(int seconds, const struct common_options *common,
		const struct check_choice *choice);
