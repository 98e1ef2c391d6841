/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What onehop fix does about this boot: registers that are written again, and a trial that is
 * confirmed.
 */
#include "cli/fix.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask.h"
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

static void show_dropped(const struct fix_context *s, const struct plan *p)
{
	struct document *d = document_new();

	report_dropped(d, p, false);
	show_document(d, s->common, EXIT_OK);
}

static int confirm(const struct fix_options *o, struct fix_context *s, bool yes)
{
	struct progress progress;
	const struct session_ear ear = progress_ear(&progress);
	CLEANUP(confirm_session_done)
	struct confirm_session c = {.fix = &s->session,
				    .ear = &ear,
				    .yes = yes,
				    .when_healthy = o->when_healthy};
	enum ending end = confirm_session_run(&c);
	const bool shows = c.drops && !s->common->json && !o->when_healthy;

	if (c.ran)
		return print_confirmed(s, &c);
	if (c.idle) {
		printf("%s\n", c.idle);
		return 0;
	}
	if (shows)
		show_dropped(s, c.plan);
	if (shows && can_ask()) {
		int r = ask("Confirm and lose them?");

		return r ? r : confirm(o, s, true);
	}
	return fail(ending_code(end), "%s", err_msg());
}

int fix_confirm_trial(const struct fix_options *o)
{
	struct fix_context s;
	int r = fix_context_open(&o->common, NULL, &s);

	if (r)
		return r;
	r = confirm(o, &s, o->yes);
	fix_context_close(&s);
	return r;
}
