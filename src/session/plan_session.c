/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "machine/machine.h"

#include <errno.h>

static enum ending refuse_trial(const struct plan *p)
{
	if (p->trial_unseen)
		return ended_refused("whether a trial boot is possible is unknown: %s",
				     p->no_trial);
	return ended_refused(
		"a trial boot is not possible: %s (to set the kernel parameters permanently, omit --trial)",
		p->no_trial);
}

/* What is on trial is decided first, because until then it is unknown what the machine needs. */
static enum ending check_trial(const struct change_session *fix)
{
	AUTO_FREE char *why = NULL;

	if (fix_check_trial(fix->journal, fix->journal_n) == 0)
		return ENDED_WELL;
	why = xstrdup(err_msg());
	return ended_refused("%s; nothing was changed", why);
}

/* Where nothing can be written, the steps say that what their programs would make is unknown. */
static enum ending look_ahead(struct plan_session *s, struct change_session *fix, bool applies)
{
	struct fix_run run;

	if (!fix || !change_session_may_write(fix))
		return ENDED_WELL;
	run = change_session_run(fix);
	return fix_foresee(&run, s->planned.plan) < 0 && applies ? ENDED_REFUSED : ENDED_WELL;
}

/* So that it is planned for the same files as when it is applied. */
static struct source *foresee_undone(struct change_session *fix)
{
	struct source *would;
	struct fix_run run;

	if (!change_session_may_write(fix))
		return NULL;
	would = source_new_map("undone");
	run = change_session_run(fix);
	if (fix_rehearse_recover(&run, fix->journal, fix->journal_n, would))
		return would;
	source_free(would);
	return NULL;
}

/* The files that are planned for, where they are not those that are there. *ret NULL: they are. */
static int open_undone(const struct plan_session *s, const struct change_session *fix,
		       struct source **ret)
{
	int r;

	if (!fix || !s->undone)
		return 0;
	r = source_open_root(fix->root ? fix->root : "/", NULL, NULL, ret);
	if (r == 0)
		*ret = source_new_over(*ret, s->undone);
	return r;
}

enum ending plan_session_begin(struct plan_session *s, const struct plan_choice *o,
			       const struct machine_choice *from, struct change_session *fix,
			       bool applies)
{
	struct machine_choice choice = *from;
	struct planning how = {
		.from = &choice,
		.root = fix ? fix->root : NULL,
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
	int r;

	*s = (struct plan_session){.o = o};
	if (fix && applies && check_trial(fix) != ENDED_WELL)
		return ENDED_REFUSED;
	s->undone = fix && !applies ? foresee_undone(fix) : NULL;
	choice.ahead = fix && fix->root ? NULL : s->undone;
	if (machine_choice_read(&choice, MACHINE_TO_JUDGE, &s->machine) < 0)
		return ENDED_UNDECIDED;
	s->topology = topology_new(s->machine);
	s->diagnosis = diagnose(s->topology);
	if (open_undone(s, fix, &how.source) < 0)
		return ENDED_UNDECIDED;
	r = planned_make(&how, s->diagnosis, &s->planned);
	source_free(how.source);
	if (r < 0)
		return ENDED_UNDECIDED;
	if (o->trial && s->planned.plan->no_trial)
		return refuse_trial(s->planned.plan);
	return look_ahead(s, fix, applies);
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

int plan_session_check(const struct plan_session *s, bool may_lose)
{
	const struct step *failing = plan_failing_step(s->planned.plan);

	if (failing)
		return err_set(EPERM, "%s; nothing was changed", failing->fails);
	if (may_lose || !plan_drops_lines(s->planned.plan))
		return 0;
	return err_set(
		EPERM,
		"regenerating a file would lose lines; nothing was changed (to continue anyway: --yes)");
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
	source_free(s->undone);
}
