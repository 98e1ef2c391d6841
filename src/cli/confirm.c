/* SPDX-License-Identifier: Apache-2.0 */
/* onehop fix --confirm: makes the changes of a trial boot permanent. */
#include "cli/confirm.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "cli/fix_context.h"
#include "fix/make_plan.h"
#include "machine/machine.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* If the default target is not reached by then, something hangs. */
#define UP_S 900
/* Links and drivers may come up after the default target. */
#define SETTLE_TRIES 24
#define SETTLE_S     5

/* ---- the boot loader ---- */

/* Done first, before any wait: if this boot hangs, the next one must not try again. */
static void end_one_shot(struct fix_context *s, unsigned number)
{
	struct fix_run run = fix_context_run(s);

	if (fix_end_one_shot(&run, number) < 0)
		fail(EXIT_NOT_CHANGED, "%s", err_msg());
}

/* ---- health ---- */

/* "degraded" is up, too: fix_trial_units finds out which units failed. */
static bool is_up(struct fix_context *s, struct strbuf *out)
{
	static const char *const argv[] = {"systemctl", "is-system-running", "--wait", NULL};
	AUTO_STRBUF struct strbuf said = {0};
	char state[64];

	host_run(&s->host, argv, UP_S, &said); /* fails unless it is "running" */
	text_last_line(strbuf_str(&said), state, sizeof(state));
	if (strcmp(state, "running") == 0 || strcmp(state, "degraded") == 0)
		return true;
	strbuf_printf(out, "systemd says the system is \"%s\"\n", *state ? state : "unknown");
	return false;
}

static bool is_healthy(struct fix_context *s, const struct journal_entry *e, struct strbuf *out)
{
	const struct timespec pause = {.tv_sec = SETTLE_S};

	if (!is_up(s, out))
		return false;
	fix_trial_units(&s->host, e, out);
	for (unsigned i = 0; !out->len; i++) {
		AUTO_STRBUF struct strbuf devices = {0};

		fix_trial_devices(&s->host, e, &devices);
		if (!devices.len)
			return true;
		if (i == SETTLE_TRIES)
			strbuf_puts(out, devices.text);
		else
			nanosleep(&pause, NULL);
	}
	return false;
}

static int refuse_unhealthy(const struct journal_entry *e, const struct strbuf *why)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, strbuf_str(why)))
		fail(EXIT_NOT_CHANGED, "%.*s", (int)n, line);
	return fail(
		EXIT_NOT_CHANGED,
		"fix %u is not confirmed: this boot is less healthy than the one before. The next boot drops its kernel parameters. To keep them anyway: onehop fix --confirm",
		e->number);
}

/* ---- the plan ---- */

struct confirmation {
	struct machine *machine;
	struct source *source;
	struct change_set changes;
	struct plan *plan;
};

static void confirmation_done(struct confirmation *c)
{
	plan_free(c->plan);
	source_free(c->source);
	machine_free(c->machine);
	if (c->changes.arena)
		arena_free(c->changes.arena);
}

/* The step whose rules and reasons describe the trial. */
static const struct step *purpose_of(const struct journal_entry *e)
{
	const struct step *s = NULL;

	for (size_t i = 0; i < e->plan->step_n; i++)
		if (e->plan->steps[i].trial && (!s || e->plan->steps[i].reboot))
			s = &e->plan->steps[i];
	return s;
}

static void add_changes(const struct journal_entry *e, struct change_set *out)
{
	const struct step *s = purpose_of(e);

	for (size_t i = 0; s && i < e->plan->wanted_n; i++) {
		const struct change c = {.kind = CHANGE_KERNEL_PARAMETER,
					 .target = e->plan->wanted[i].value,
					 .rules = s->rules,
					 .reason = s->why,
					 .cost = s->cost,
					 .lifetime = CHANGE_KEPT};

		if (strcmp(e->plan->wanted[i].kind, "kernel-parameter") == 0)
			change_add(out, &c);
	}
}

static int make_plan(struct fix_context *s, const struct journal_entry *e, struct confirmation *c)
{
	struct plan_request request = {.confirms = true, .lifetime = CHANGE_KEPT};

	c->changes.arena = arena_new();
	add_changes(e, &c->changes);
	if (load_machine(s->common, MACHINE_HOST, &c->machine) < 0 ||
	    source_open_root("/", NULL, NULL, &c->source) < 0)
		return fail(EXIT_NOT_JUDGED, "%s", err_msg());
	request.machine = c->machine;
	request.source = c->source;
	c->plan = plan_make(&request, &c->changes);
	if (c->plan->step_n || !c->plan->manual_n)
		return 0;
	return fail(EXIT_REFUSED, "fix %u cannot be confirmed: %s: %s", e->number,
		    c->plan->manual[0].what, c->plan->manual[0].how);
}

/* ---- doing it ---- */

/* First, because the plan is made from the boot entries. */
static int drop_trial_words(struct fix_context *s, unsigned number)
{
	struct fix_run run = fix_context_run(s);

	if (fix_drop_trial_words(&run, number) < 0)
		return fail(EXIT_REFUSED, "fix %u is not confirmed: %s", number, err_msg());
	return 0;
}

/* A person may have decided while the unit waited. The unit has not failed then. */
static bool was_decided(struct fix_context *s, unsigned number)
{
	size_t at;

	if (fix_context_read_journal(s) < 0 ||
	    fix_check_confirm(s->journal, s->journal_n, number, &at) != -ENOENT)
		return false;
	printf("%s\n", err_msg());
	return true;
}

static int carry_out(struct fix_context *s, unsigned number, bool when_healthy,
		     struct confirmation *c)
{
	struct fix_run run = fix_context_run(s);
	struct fix_outcome o = {.confirmed = true, .root = s->root};
	struct plan_report r = {.plan = c->plan, .machine = c->machine, .root = s->root};
	enum exit_code code;
	int printed;

	fix_context_hold_signals();
	o.error = fix_confirm(&run, number, c->plan, &o.result);
	if (o.error < 0)
		o.sentence = arena_strdup(s->arena, err_msg());
	else
		o.number = number;
	if (o.error < 0 && when_healthy && was_decided(s, number))
		return EXIT_OK;
	o.was_signalled = fix_context_was_signalled();
	o.events = s->events;
	o.event_n = s->event_n;
	fix_context_read_journal(s);
	o.entry = fix_context_entry(s, number);
	if (!s->common->json)
		return finish_outcome(s, &o);
	r.journal = s->journal;
	r.journal_n = s->journal_n;
	code = outcome_code(&o);
	printed = print_json(report_plan_json(&r, &o), code);
	return code ? (int)code : printed;
}

static int confirm(struct fix_context *s, const struct journal_entry *e, bool when_healthy)
{
	CLEANUP(confirmation_done) struct confirmation c = {0};
	AUTO_STRBUF struct strbuf why = {0};
	const unsigned number = e->number;
	bool healthy = true;
	int r;

	if (when_healthy) {
		end_one_shot(s, number);
		healthy = is_healthy(s, e, &why);
	}
	if (when_healthy && was_decided(s, number))
		return EXIT_OK;
	e = fix_context_entry(s, number);
	if (!e)
		return fail(EXIT_REFUSED, "%s", s->journal_unread);
	if (!healthy)
		return refuse_unhealthy(e, &why);
	r = drop_trial_words(s, number);
	if (r == 0)
		r = make_plan(s, e, &c);
	return r ? r : carry_out(s, number, when_healthy, &c);
}

static int confirm_or_say(struct fix_context *s, bool when_healthy)
{
	size_t at;
	int r;

	if (!fix_context_may_write(s))
		return fail(EXIT_REFUSED, "fix --confirm needs root; nothing was changed");
	if (fix_context_read_journal(s) < 0)
		return fail(EXIT_REFUSED, "%s", s->journal_unread);
	r = fix_check_confirm(s->journal, s->journal_n, 0, &at);
	if (r == 0)
		return confirm(s, &s->journal[at], when_healthy);
	/* In a boot without the parameters the unit has not failed. */
	if (!when_healthy)
		return fail(EXIT_REFUSED, "%s", err_msg());
	printf("%s\n", err_msg());
	return EXIT_OK;
}

int confirm_trial(const struct common_options *common, bool when_healthy)
{
	struct fix_context s;
	int r = fix_context_open(common, NULL, &s);

	if (r)
		return r;
	r = confirm_or_say(&s, when_healthy);
	fix_context_close(&s);
	return r;
}
