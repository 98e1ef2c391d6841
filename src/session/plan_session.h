/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of fix up to its plan: the machine judged, and what would resolve what was found. Changes
 * nothing.
 */
#pragma once

#include "diagnose/diagnose.h"
#include "session/change_session.h"
#include "session/planning.h"

/* --iommu, from 1 on, as the choices of an option. */
enum { IOMMU_PASS_THROUGH = 1, IOMMU_OFF };

/* The options as a person writes them. */
struct plan_choice {
	const char *const *rules; /* only what these find */
	size_t rule_n;            /* 0: all rules */
	int iommu;                /* 0: not given */
	bool now, kept;           /* changes of one lifetime only */
	bool trial, no_trial;
};

struct plan_session {
	const struct plan_choice *o;
	struct machine *machine;
	struct topology *topology;
	struct diagnosis *diagnosis;
	struct planned planned;
	/*
	 * What --apply undoes first: what the files are then, which the plan is for. NULL: there is
	 * nothing.
	 */
	struct source *undone;
};

/*
 * `fix`: of the system that is planned for, its journal read; NULL: of a recording, which has none.
 * `applies`: the plan is to be carried out, so whatever forbids that is an error. plan_session_done
 * whatever the answer.
 */
enum ending plan_session_begin(struct plan_session *s, const struct plan_choice *o,
			       const struct machine_choice *from, struct change_session *fix,
			       bool applies);
/* BAD: there is something to do. `unseen`: rules that were named could not be judged. */
enum verdict plan_session_verdict(const struct plan_session *s, bool unseen);
/*
 * Before it is applied. 0 or -EPERM with a sentence: a step is known to fail, so that all would
 * only be undone, and a trial would end without what it was for; or lines would be lost, and may
 * not be.
 */
int plan_session_check(const struct plan_session *s, bool may_lose);
void plan_session_done(struct plan_session *s);
