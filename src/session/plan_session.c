/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan_session.h"

#include "base/err.h"
#include "machine/machine.h"

#include <errno.h>

enum ending plan_session_begin(struct plan_session *s, const struct plan_choice *o,
			       const struct machine_choice *from, const char *root)
{
	const struct planning how = {
		.from = from,
		.root = root,
		.propose = {.rules = o->rules,
			    .rule_n = o->rule_n,
			    .iommu_off = o->iommu == IOMMU_OFF},
		.trial = o->no_trial ? TRIAL_NEVER
			 : o->trial  ? TRIAL_ALWAYS
				     : TRIAL_WITHOUT_DISPLAY,
		.lifetime = o->now    ? CHANGE_NOW
			    : o->kept ? CHANGE_KEPT
				      : CHANGE_LASTING,
	};

	*s = (struct plan_session){.o = o};
	if (machine_choice_read(from, MACHINE_TO_JUDGE, &s->machine) < 0)
		return ENDED_UNDECIDED;
	s->topology = topology_new(s->machine);
	s->diagnosis = diagnose(s->topology);
	if (planned_make(&how, s->diagnosis, &s->planned) < 0)
		return ENDED_UNDECIDED;
	if (!o->trial || !s->planned.plan->no_trial)
		return ENDED_WELL;
	if (s->planned.plan->trial_unseen)
		err_set(EPERM, "whether a trial boot is possible is unknown: %s",
			s->planned.plan->no_trial);
	else
		err_set(EPERM,
			"a trial boot is not possible: %s (to set the kernel parameters permanently, omit --trial)",
			s->planned.plan->no_trial);
	return ENDED_REFUSED;
}

enum verdict plan_session_verdict(const struct plan_session *s, bool unseen)
{
	if (plan_has_work(s->planned.plan) || s->planned.plan->left_out_n)
		return VERDICT_BAD;
	if (unseen)
		return VERDICT_UNKNOWN;
	if (s->planned.made.n) /* proposed, and already set */
		return VERDICT_OK;
	return diagnosis_judged_any(s->diagnosis) ? VERDICT_OK : VERDICT_UNKNOWN;
}

void plan_session_done(struct plan_session *s)
{
	if (s->planned.plan)
		planned_done(&s->planned);
	if (s->diagnosis)
		diagnosis_free(s->diagnosis);
	if (s->topology)
		topology_free(s->topology);
	machine_free(s->machine);
}
