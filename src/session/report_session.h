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
	struct texts left_out; /* why the machine is not judged by a given result */
};

/*
 * Reads results and machines, each known by its content. Without any, the host and what it kept in
 * its state folder; a recorded machine brings what it kept. 0 or a negative errno with a sentence;
 * report_session_done whatever the answer.
 */
int report_session_read(struct report_session *s, const struct machine_choice *from,
			const char *const *paths, size_t n);
/* Whether results[i] is the newest of its tool: that one counts. */
bool report_session_newest(const struct report_session *s, size_t i);
void report_session_done(struct report_session *s);
