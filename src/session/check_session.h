/* SPDX-License-Identifier: Apache-2.0 */
/* A run of check: the machine read and judged, and what fix would do about it. Changes nothing. */
#pragma once

#include "diagnose/diagnose.h"
#include "session/machine_choice.h"
#include "session/planning.h"
#include "session/require.h"

/* The options as a person writes them. */
struct check_choice {
	/*
	 * 0: not given, findings count from a warning on; else 1 + enum severity, past the last:
	 * none counts
	 */
	int fail_on;
	struct texts ignore;  /* rules whose findings are left out */
	struct texts require; /* of requirement_words */
	const char *gpus;     /* of --require; NULL: all */
	bool whole;           /* one document is wanted: texts of several hosts are refused */
};

/* Findings of this severity and above count. */
int check_threshold(const struct check_choice *o);

struct check_session {
	const struct check_choice *o;
	struct machine_choice from;
	struct machine *machine;
	struct source *source;
	struct topology *topology;
	struct diagnosis *diagnosis; /* of rules that are not ignored */
	struct requirements requirements;
	enum verdict verdict; /* with the requirements: BAD, OK or UNKNOWN */
};

/*
 * Reads the machine. Of texts of several hosts nothing is read, and ret_hosts lists them, in `a`:
 * each can be read by itself, as host of the choice. 0 or a negative errno with a sentence.
 * check_session_done whatever the answer.
 */
int check_session_read(struct check_session *s, const struct check_choice *o,
		       const struct machine_choice *from, struct arena *a, struct texts *ret_hosts);
/* 0, or -EINVAL and a sentence: a GPU of the request is none of this machine. */
int check_session_judge(struct check_session *s);
/* What onehop fix would do, to be freed by planned_done. 0 or a negative errno with a sentence. */
int check_session_plan(const struct check_session *s, struct planned *ret);
void check_session_done(struct check_session *s);
