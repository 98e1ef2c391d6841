/* SPDX-License-Identifier: Apache-2.0 */
/* What onehop fix does about this boot: registers that are written again, and a trial that is confirmed. */
#include "cli/fix.h"

#include "base/err.h"
#include "cli/progress.h"
#include "session/confirm_session.h"

#include <stdio.h>

/* One line in the system's log for each register that was written or failed. */
static void tell_at_boot(void *context, enum fix_event event, const struct journal_entry *e,
			 const struct step *s, const char *text)
{
	bool *failed = context;

	if (event == FIX_STEP_DONE)
		printf("fix %u: %s\n", e->number, s->what);
	fflush(stdout); /* in order with what goes to standard error */
	if (event != FIX_STEP_FAILED)
		return;
	fail(EXIT_NOT_CHANGED, "fix %u: %s", e->number, text);
	*failed = true;
}

/* Registers are reset at each boot; onehop-acs.service writes them again. */
int fix_write_at_boot(const struct fix_options *o)
{
	bool failed = false;
	struct fix_context s;
	struct fix_run run;
	size_t n;
	int r = fix_context_open(&o->common, o->root, &s);

	if (r)
		return r;
	run = change_session_run(&s.session);
	run.report = tell_at_boot;
	run.context = &failed;
	if (fix_at_boot(&run, &n) < 0)
		r = failed ? EXIT_NOT_CHANGED : fail(EXIT_NOT_CHANGED, "%s", err_msg());
	fix_context_close(&s);
	return r;
}

static int print_confirmed(const struct fix_context *s, const struct confirm_session *c)
{
	const struct plan_report r = plan_report_of(c->plan, c->machine, &s->session);

	return s->common->json ? finish_outcome_json(&c->outcome, report_plan_json(&r, &c->outcome))
			       : finish_outcome(s, &c->outcome);
}

int fix_confirm_trial(const struct fix_options *o)
{
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	struct fix_context s;
	struct confirm_session c = {.fix = &s.session,
				    .ear = &ear,
				    .when_healthy = o->when_healthy};
	enum ending end;
	int r = fix_context_open(&o->common, NULL, &s);

	if (r)
		return r;
	end = confirm_session_run(&c);
	if (c.idle)
		printf("%s\n", c.idle);
	else if (c.ran)
		r = print_confirmed(&s, &c);
	else
		r = fail(ending_code(end), "%s", err_msg());
	confirm_session_done(&c);
	fix_context_close(&s);
	return r;
}
