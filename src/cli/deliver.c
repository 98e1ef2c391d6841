/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/deliver.h"

#include "base/err.h"
#include "cli/fix_context.h"
#include "cli/progress.h"
#include "cli/unlock_need.h"
#include "report/report_deliver.h"

#include <stdio.h>
#include <unistd.h>

/* A run: what it prints with, and what it is about. */
struct delivery_run {
	const struct deliver_choice *o;
	const struct common_options *common;
	struct fix_context s;
	struct progress progress;
	struct deliver_session d;
};

/* ---- printing the plan ---- */

static enum exit_code judge(const struct delivery_run *x)
{
	if (x->d.delivery->blocked)
		return x->o->apply ? EXIT_REFUSED : EXIT_FINDING;
	return plan_has_work(x->d.plan) ? EXIT_FINDING : EXIT_OK;
}

static int show(const struct delivery_run *x, enum exit_code code)
{
	struct document *out;

	if (x->common->json)
		return print_json(report_deliver_json(&x->d, NULL), code);
	out = document_new();
	report_deliver(out, &x->d, x->common->verbose);
	return show_document(out, x->common, code);
}

static int refuse(const struct delivery_run *x)
{
	int r = show(x, EXIT_REFUSED);

	return x->common->json ? r
			       : fail(EXIT_REFUSED,
				      "fix the checks marked BAD above first; nothing was changed");
}

/* ---- carrying it out ---- */

/* Runs a part of the session; 0, or an exit code after a message. */
static int go_on(struct delivery_run *x, enum ending (*part)(struct deliver_session *d))
{
	enum ending end;

	progress_begin(&x->progress);
	end = part(&x->d);
	progress_end(&x->progress);
	return end == ENDED_WELL ? 0 : fail(ending_code(end), "%s", err_msg());
}

static int carry_out(struct delivery_run *x)
{
	struct fix_outcome o;
	int r;

	change_session_hold_signals();
	r = go_on(x, deliver_session_build);
	if (r == 0)
		r = go_on(x, deliver_session_undo_earlier);
	if (r == 0 && x->d.delivery->blocked)
		r = refuse(x);
	if (r)
		return r;
	o = change_session_apply(&x->s.session, x->d.plan);
	if (x->common->json)
		return finish_outcome_json(&o, report_deliver_json(&x->d, &o));
	printf("\n");
	return finish_outcome(&x->s, &o);
}

static int check_root(const struct delivery_run *x)
{
	return change_session_may_write(&x->s.session)
		       ? 0
		       : fail(EXIT_REFUSED, "--apply needs root; nothing was changed");
}

/* Before anything is done. If it cannot be printed, nothing is changed. */
static int show_first(const struct delivery_run *x)
{
	int r = check_root(x);

	if (r == 0 && !x->common->json) {
		r = show(x, EXIT_OK);
		printf("\n");
	}
	return r;
}

static int apply(struct delivery_run *x)
{
	int r;

	if (x->d.delivery->blocked)
		return refuse(x);
	if (!deliver_session_has_steps(&x->d))
		return show(x, judge(x));
	r = show_first(x);
	return r ? r : carry_out(x);
}

/* Prints the plan before the download. Prints it again only if the sources changed it. */
static int download_and_apply(struct delivery_run *x)
{
	bool planned = deliver_session_has_steps(&x->d);
	int r = show_first(x);

	change_session_hold_signals();
	if (r == 0)
		r = go_on(x, deliver_session_fetch);
	if (r)
		return r;
	return planned && !x->d.delivery->blocked ? carry_out(x) : apply(x);
}

/* Recovery comes first, because it changes what is read. */
static int run_delivery(struct delivery_run *x)
{
	/* With --sources something is always written. Without, it depends on the machine. */
	int r = x->o->apply && x->o->sources ? check_root(x) : 0;

	if (r == 0 && x->o->apply)
		r = fix_context_recover(&x->s, false);
	if (r == 0)
		r = go_on(x, deliver_session_begin);
	if (r)
		return r;
	if (!x->d.delivery)
		return show_requirements(x->d.machine, x->d.requirements, x->common, false);
	if (!x->o->apply)
		return show(x, judge(x));
	return x->d.delivery->download && !x->d.delivery->blocked ? download_and_apply(x)
								  : apply(x);
}

int deliver(const struct deliver_choice *o, const struct common_options *common)
{
	struct delivery_run x = {.o = o, .common = common};
	const struct session_ear ear = progress_ear(&x.progress);
	int r = fix_context_open(common, NULL, &x.s);

	if (r)
		return r;
	x.progress.quiet = common->json;
	x.d = (struct deliver_session){.o = o,
				       .from = &common->machine,
				       .fix = &x.s.session,
				       .ear = &ear,
				       .to_log = !terminal_escapes(STDERR_FILENO)};
	change_session_read_journal(&x.s.session);
	r = run_delivery(&x);
	deliver_session_done(&x.d);
	fix_context_close(&x.s);
	return r;
}
