/* SPDX-License-Identifier: Apache-2.0 */
/* A run of fix up to its plan: the machine judged, and what would resolve what was found. Changes nothing. */
#pragma once

#include "diagnose/diagnose.h"
#include "session/ending.h"
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
};

/* `root`: of a system image, whose files are planned for; NULL: as machine_choice says. plan_session_done whatever the answer. */
enum ending plan_session_begin(struct plan_session *s, const struct plan_choice *o,
			       const struct machine_choice *from, const char *root);
/* BAD: there is something to do. `unseen`: rules that were named could not be judged. */
enum verdict plan_session_verdict(const struct plan_session *s, bool unseen);
void plan_session_done(struct plan_session *s);
