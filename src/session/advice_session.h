/* SPDX-License-Identifier: Apache-2.0 */
/* A run of env: the machine judged, and what to set on it for communication libraries. */
#pragma once

#include "diagnose/advice.h"
#include "ingest/shell_script.h"
#include "session/ending.h"
#include "session/machine_choice.h"

struct advice_session {
	struct machine *machine;
	struct topology *topology;
	struct diagnosis *diagnosis;
	struct advice *advice;
	struct script_setting *settings; /* of the script; the machine's */
	size_t setting_n;
};

/*
 * `script`: whose settings count instead of this shell's; NULL: none. advice_session_done whatever
 * the answer.
 */
enum ending advice_session_begin(struct advice_session *s, const struct machine_choice *from,
				 const char *script);
void advice_session_done(struct advice_session *s);
