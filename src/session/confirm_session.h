/* SPDX-License-Identifier: Apache-2.0 */
/* A run of fix --confirm: what a trial boot has stays. */
#pragma once

#include "change/change.h"
#include "session/change_session.h"
#include "session/session.h"

struct confirm_session {
	struct change_session *fix; /* its journal need not be read */
	const struct session_ear *ear;
	bool yes; /* also if that drops lines which were not shown when the trial began */
	/* Wait until the system is up, and confirm only if it is as healthy as before the trial. */
	bool when_healthy;
	struct machine *machine;
	struct source *source;
	struct change_set changes;
	struct plan *plan; /* of the steps that make it permanent */
	bool drops; /* refused, because lines of its steps' files would be lost and `yes` is not set */
	bool ran; /* it came to the steps: */
	struct fix_outcome outcome;
	const char *idle; /* why there was nothing to do; NULL: there was */
};

/* Of the fix that is on trial in this boot. confirm_session_done whatever the answer. */
enum ending confirm_session_run(struct confirm_session *c);
void confirm_session_done(struct confirm_session *c);
