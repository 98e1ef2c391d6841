/* SPDX-License-Identifier: Apache-2.0 */
#include "session/confirm_session.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "change/change.h"
#include "fix/make_plan.h"
#include "machine/machine.h"
#include "session/machine_choice.h"

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
static void end_one_shot(const struct confirm_session *c, unsigned number)
{
	struct fix_run run = change_session_run(c->fix);

	if (fix_end_one_shot(&run, number) < 0)
		session_tell(c->ear, SESSION_NOTE, "%s", err_msg());
}

/* ---- health ---- */

/* "degraded" is up, too: fix_trial_units finds out which units failed. */
static bool is_up(struct change_session *s, struct strbuf *out)
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

static bool is_healthy(struct change_session *s, const struct journal_entry *e, struct strbuf *out)
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

static enum ending refuse_unhealthy(const struct confirm_session *c, const struct strbuf *why,
				    unsigned number)
{
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, strbuf_str(why)))
		session_tell(c->ear, SESSION_NOTE, "%.*s", (int)n, line);
	err_set(EPERM,
		"fix %u is not confirmed: this boot is less healthy than the one before. The next boot drops its kernel parameters. To keep them anyway: onehop fix --confirm",
		number);
	return ENDED_FAILED;
}

/* ---- the plan ---- */

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

static enum ending make_plan(struct confirm_session *c, const struct journal_entry *e)
{
	static const struct machine_choice live = {0};
	struct plan_request request = {.confirms = true, .lifetime = CHANGE_KEPT};

	c->changes.arena = arena_new();
	add_changes(e, &c->changes);
	if (machine_choice_read(&live, MACHINE_HOST, &c->machine) < 0 ||
	    source_open_root("/", NULL, NULL, &c->source) < 0)
		return ENDED_UNDECIDED;
	request.machine = c->machine;
	request.source = c->source;
	c->plan = plan_make(&request, &c->changes);
	if (c->plan->step_n || !c->plan->manual_n)
		return ENDED_WELL;
	err_set(EPERM, "fix %u cannot be confirmed: %s: %s", e->number, c->plan->manual[0].what,
		c->plan->manual[0].how);
	return ENDED_REFUSED;
}

/* ---- doing it ---- */

/* First, because the plan is made from the boot entries. */
static enum ending drop_trial_words(struct change_session *s, unsigned number)
{
	struct fix_run run = change_session_run(s);
	AUTO_FREE char *why = NULL;

	if (fix_drop_trial_words(&run, number) == 0)
		return ENDED_WELL;
	why = xstrdup(err_msg());
	err_set(EPERM, "fix %u is not confirmed: %s", number, why);
	return ENDED_REFUSED;
}

/* A person may have decided while the unit waited. The unit has not failed then. */
static bool was_decided(struct confirm_session *c, unsigned number)
{
	struct change_session *s = c->fix;
	size_t at;

	if (!c->when_healthy || change_session_read_journal(s) < 0 ||
	    fix_check_confirm(s->journal, s->journal_n, number, &at) != -ENOENT)
		return false;
	c->idle = arena_strdup(s->arena, err_msg());
	return true;
}

static enum ending carry_out(struct confirm_session *c, unsigned number)
{
	change_session_hold_signals();
	c->outcome = change_session_confirm(c->fix, number, c->plan);
	if (c->outcome.error < 0 && was_decided(c, number))
		return ENDED_WELL;
	c->ran = true;
	return fix_outcome_ending(&c->outcome);
}

static void tell_dropped(const struct confirm_session *c)
{
	for (size_t i = 0; i < c->plan->step_n; i++) {
		const struct step *s = &c->plan->steps[i];

		for (size_t k = 0; s->dropped && s->dropped[k]; k++)
			session_tell(c->ear, SESSION_NOTE, "/%s: %s", s->target, s->dropped[k]);
	}
}

static enum ending refuse_confirm(const struct confirm_session *c, unsigned number)
{
	AUTO_FREE char *why = xstrdup(err_msg());

	err_set(EPERM,
		"fix %u is not confirmed, and stays on trial: %s (then, in this boot: onehop fix --confirm)",
		number, why);
	return c->when_healthy ? ENDED_FAILED : ENDED_REFUSED;
}

/* What somebody wrote since the trial began is not given up without a question. */
static enum ending foresee(struct confirm_session *c, const struct journal_entry *e)
{
	struct fix_run run = change_session_run(c->fix);

	if (fix_foresee_confirm(&run, e, c->plan) < 0)
		return refuse_confirm(c, e->number);
	c->drops = !c->yes && plan_drops_lines(c->plan);
	if (!c->drops)
		return ENDED_WELL;
	if (c->when_healthy)
		tell_dropped(c);
	err_set(EPERM,
		"fix %u is not confirmed: regenerating a file would lose lines (to confirm it anyway: onehop fix --confirm --yes)",
		e->number);
	return c->when_healthy ? ENDED_FAILED : ENDED_REFUSED;
}

static enum ending confirm(struct confirm_session *c, const struct journal_entry *e)
{
	AUTO_STRBUF struct strbuf why = {0};
	const unsigned number = e->number;
	bool healthy = true;
	enum ending end;

	if (c->when_healthy) {
		end_one_shot(c, number);
		healthy = is_healthy(c->fix, e, &why);
	}
	if (was_decided(c, number))
		return ENDED_WELL;
	e = change_session_entry(c->fix, number);
	if (!e) {
		err_set(EIO, "%s", c->fix->journal_unread);
		return ENDED_REFUSED;
	}
	if (!healthy)
		return refuse_unhealthy(c, &why, number);
	end = drop_trial_words(c->fix, number);
	if (end == ENDED_WELL)
		end = make_plan(c, e);
	if (end == ENDED_WELL)
		end = foresee(c, e);
	return end == ENDED_WELL ? carry_out(c, number) : end;
}

enum ending confirm_session_run(struct confirm_session *c)
{
	struct change_session *s = c->fix;
	size_t at;

	if (!change_session_may_write(s)) {
		err_set(EPERM, "fix --confirm needs root; nothing was changed");
		return ENDED_REFUSED;
	}
	if (change_session_read_journal(s) < 0)
		return ENDED_REFUSED;
	if (fix_check_confirm(s->journal, s->journal_n, 0, &at) == 0)
		return confirm(c, &s->journal[at]);
	if (!c->when_healthy)
		return ENDED_REFUSED;
	/* In a boot without the parameters the unit has not failed. */
	c->idle = arena_strdup(s->arena, err_msg());
	return ENDED_WELL;
}

void confirm_session_done(struct confirm_session *c)
{
	plan_free(c->plan);
	source_free(c->source);
	machine_free(c->machine);
	if (c->changes.arena)
		arena_free(c->changes.arena);
}
