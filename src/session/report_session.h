/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop report` is about: a machine, judged, and any number of results. Changes nothing. */
#pragma once

#include "session/check_session.h"

struct figures;

struct report_session {
	struct arena *arena;
	struct check_choice choice;
	struct check_session check; /* its machine is NULL: the results are all there is */
	struct figures **results;   /* of one tool together, the oldest first */
	size_t result_n;
};

/*
 * Reads results and machines, each known by its content. Without any, the host and what it kept in its state
 * folder; a recorded machine brings what it kept. 0 or a negative errno with a sentence; report_session_done
 * whatever the answer.
 */
int report_session_read(struct report_session *s, const struct machine_choice *from,
			const char *const *paths, size_t n);
void report_session_done(struct report_session *s);
