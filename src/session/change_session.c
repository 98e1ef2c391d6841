/* SPDX-License-Identifier: Apache-2.0 */
#include "session/change_session.h"

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "unlock/build.h"
#include "unlock/download.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUILD_LOG_LINES 20
/* Longer than most steps of another onehop that holds the lock. */
#define LOCK_WAIT_S 10

/* ---- the host ---- */

/* "onehop" in a plan means this program, wherever it is installed: another version may lack the command. */
static int run_program(void *context, const char *const *argv, unsigned deadline_s,
		       struct strbuf *output, int *ret_status)
{
	static const char self[] = "/proc/self/exe";

	if (strcmp(argv[0], "onehop") == 0 && access(self, X_OK) == 0)
		return child_run(self, argv, deadline_s, output, ret_status);
	return host_run_program(context, argv, deadline_s, output, ret_status);
}

int change_session_open(const char *root, const struct fix_ear *ear, struct change_session *ret)
{
	struct change_session s = {.ear = *ear};
	int r;

	s.real_root = realpath(root ? root : "/", NULL);
	if (!s.real_root)
		return err_set(errno, "--root %s: %s", root, strerror(errno));
	s.root = strcmp(s.real_root, "/") == 0 ? NULL : s.real_root;
	r = fix_host_open(s.real_root, &s.host);
	if (r < 0) {
		free(s.real_root);
		return r;
	}
	s.host.run = run_program;
	s.arena = arena_new();
	if (!s.root)
		journal_boot_id(&s.host, s.boot_id);
	*ret = s;
	return 0;
}

static void drop_journal(struct change_session *s)
{
	journal_free(s->journal, s->journal_n);
	free(s->journal_unread);
	s->journal = NULL;
	s->journal_n = 0;
	s->journal_unread = NULL;
}

void change_session_close(struct change_session *s)
{
	drop_journal(s);
	fix_host_close(&s->host);
	arena_free(s->arena);
	free(s->real_root);
}

/* ---- the journal ---- */

int change_session_read_journal(struct change_session *s)
{
	int r;

	drop_journal(s);
	r = journal_read(&s->host, &s->journal, &s->journal_n);
	if (r < 0) {
		s->journal = NULL;
		s->journal_n = 0;
		s->journal_unread = xstrdup(err_msg());
	}
	return r;
}

const struct journal_entry *change_session_entry(const struct change_session *s, unsigned number)
{
	for (size_t i = 0; i < s->journal_n; i++)
		if (s->journal[i].number == number)
			return &s->journal[i];
	return NULL;
}

static bool has_unfinished(const struct change_session *s)
{
	for (size_t i = 0; i < s->journal_n; i++)
		if (journal_is_unfinished(&s->journal[i]))
			return true;
	return false;
}

bool change_session_may_write(const struct change_session *s)
{
	struct stat st;

	if (geteuid() == 0)
		return true;
	return s->root && fstat(s->host.root_fd, &st) == 0 && st.st_uid == geteuid();
}

/* ---- events ---- */

static struct step_event *event_of(struct change_session *s, unsigned fix, size_t step)
{
	struct step_event *t;

	for (size_t i = 0; i < s->event_n; i++)
		if (s->events[i].fix == fix && s->events[i].step == step)
			return &s->events[i];
	t = ARENA_PUSH(s->arena, s->events, s->event_n);
	t->fix = fix;
	t->step = step;
	return t;
}

/* An undo without a text keeps the reason why the step failed. */
static void remember(struct change_session *s, const struct fix_news *n)
{
	struct step_event *t = event_of(s, n->entry ? n->entry->number : 0, n->index);
	const struct step *step = &n->plan->steps[n->index];

	t->event = n->event;
	t->what = arena_strdup(s->arena, step->what ? step->what : "");
	if (n->text)
		t->text = arena_strdup(s->arena, n->text);
}

/* The plan that the step belongs to: the journal's copy, or the one being applied. */
static void find_plan(const struct change_session *s, const struct step *step, struct fix_news *n)
{
	const struct plan *plans[] = {n->entry ? n->entry->plan : NULL, s->plan};

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; plans[i] && k < plans[i]->step_n; k++)
			if (step == &plans[i]->steps[k]) {
				n->plan = plans[i];
				n->index = k;
				return;
			}
}

static void on_event(void *context, enum fix_event event, const struct journal_entry *e,
		     const struct step *step, const char *text)
{
	struct change_session *s = context;
	struct fix_news news = {.event = event, .entry = e, .text = text};
	AUTO_STRBUF struct strbuf log = {0};

	find_plan(s, step, &news);
	if (news.plan)
		remember(s, &news);
	/* DKMS itself only prints that there is a log. */
	if (news.plan && event == FIX_STEP_FAILED && s->build_log && delivery_is_build(step)) {
		build_last_lines(s->host.root_fd, s->build_log, BUILD_LOG_LINES, &log);
		news.log_path = s->build_log;
		news.log = log.text;
	}
	s->ear.hear(s->ear.context, &news);
}

void change_session_drop_events(struct change_session *s)
{
	s->events = NULL; /* the arena's */
	s->event_n = 0;
}

struct fix_run change_session_run(struct change_session *s)
{
	return (struct fix_run){.host = &s->host,
				.report = on_event,
				.context = s,
				.wait_s = LOCK_WAIT_S};
}

/* ---- signals ---- */

static const struct {
	int number;
	bool is_write; /* sent for a write that fails, which is reported itself */
} held[] = {
	{SIGINT, false},  {SIGTERM, false}, {SIGHUP, false}, {SIGQUIT, false},
	{SIGTSTP, false}, {SIGPIPE, true},  {SIGXFSZ, true},
};

static void held_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		sigaddset(set, held[i].number);
}

/* Blocked rather than ignored, so that a signal that came can be reported. */
void change_session_hold_signals(void)
{
	sigset_t set;

	held_set(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

bool change_session_was_signalled(void)
{
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		if (!held[i].is_write && sigismember(&pending, held[i].number) == 1)
			return true;
	return false;
}

/* ---- carrying out ---- */

enum ending change_session_recover(struct change_session *s, bool *ret_recovered)
{
	struct fix_run run = change_session_run(s);
	int lock, r;
	size_t n;

	*ret_recovered = false;
	if (!has_unfinished(s))
		return ENDED_WELL;
	if (!change_session_may_write(s))
		return ended_refused(
			"an interrupted fix must be undone first, which needs root; nothing was changed");
	change_session_hold_signals();
	if (journal_lock(&s->host, run.wait_s, &lock) < 0)
		return ENDED_REFUSED;
	r = fix_recover(&run, &n);
	journal_unlock(lock);
	if (r < 0)
		return ENDED_FAILED;
	change_session_read_journal(s);
	*ret_recovered = true;
	return ENDED_WELL;
}

/* `r`: what the function of fix/fix.h returned. */
static void finish(struct change_session *s, int r, struct fix_outcome *o)
{
	o->error = r;
	o->root = s->root;
	if (r < 0)
		o->sentence = arena_strdup(s->arena, err_msg());
	o->was_signalled = change_session_was_signalled();
	o->events = s->events;
	o->event_n = s->event_n;
	change_session_read_journal(s);
	o->entry = change_session_entry(s, o->number);
}

struct fix_outcome change_session_apply(struct change_session *s, struct plan *p)
{
	struct fix_run run = change_session_run(s);
	struct fix_outcome o = {0};

	s->plan = p;
	run.last_known = !s->journal_unread;
	run.last = s->journal_n ? s->journal[s->journal_n - 1].number : 0;
	finish(s, fix_apply(&run, p, &o.result, &o.number), &o);
	o.reboot = !o.error && o.result == FIX_DONE && !s->root && plan_needs_reboot(p);
	return o;
}

/* Where a reboot is needed, what was applied in this very boot was not in force yet. */
static bool reboot_due(const struct change_session *s, const struct journal_entry *e)
{
	return !s->root && e && journal_undo_needs_reboot(e) &&
	       (!*s->boot_id || strcmp(e->boot_id, s->boot_id) != 0);
}

struct fix_outcome change_session_undo(struct change_session *s, unsigned number)
{
	struct fix_run run = change_session_run(s);
	struct fix_outcome o = {.undo = true};

	finish(s, fix_undo(&run, number, &o.result, &o.number), &o);
	o.reboot = !o.error && o.result == FIX_DONE && reboot_due(s, o.entry);
	if (o.error || !o.entry)
		return o;
	o.left_build_n = delivery_left(&s->host, o.entry->plan, s->arena, &o.left_builds);
	if (delivery_brought(o.entry->plan))
		o.left_sources = download_left(&s->host, s->arena);
	return o;
}

/* What does not work out. The rest is in the plan. */
static void on_rehearsal(void *context, enum fix_event event, const struct journal_entry *e,
			 const struct step *step, const char *text)
{
	struct fix_news news = {.event = event, .entry = e, .text = text};

	find_plan(context, step, &news);
	if (news.plan && event == FIX_UNDO_FAILED)
		remember(context, &news);
}

/* The present state of each step. */
static void read_back(struct change_session *s, struct fix_outcome *o)
{
	const size_t n = o->entry->plan->step_n;

	o->look = arena_alloc(s->arena, n + 1, sizeof(*o->look));
	o->now = arena_alloc(s->arena, n + 1, sizeof(*o->now));
	fix_read_back(&s->host, o->entry, o->look, o->now);
	for (size_t i = 0; i < n; i++) {
		AUTO_FREE char *now = o->now[i];

		o->now[i] = now ? arena_strdup(s->arena, now) : NULL;
	}
}

int change_session_rehearse_undo(struct change_session *s, const struct journal_entry *e,
				 struct fix_outcome *ret)
{
	/* Who may not read everything would find failures that root does not have. */
	const bool may_write = change_session_may_write(s);
	struct fix_run run = change_session_run(s);
	struct fix_outcome o = {
		.undo = true, .dry_run = true, .entry = e, .number = e->number, .root = s->root};
	int r = may_write ? fix_foresee_undo(&run, e) : 0;
	const char *unforeseen = r < 0 ? arena_strdup(s->arena, err_msg()) : NULL;

	run.report = on_rehearsal;
	o.result = may_write ? fix_rehearse_undo(&run, e) : FIX_DONE;
	o.events = s->events;
	o.event_n = s->event_n;
	read_back(s, &o);
	*ret = o;
	return r < 0 ? err_set(-r, "%s", unforeseen) : 0;
}

struct fix_outcome change_session_forget(struct change_session *s, unsigned number, bool is_own,
					 bool dry_run)
{
	struct fix_outcome o = {.undo = true, .dry_run = dry_run};
	struct fix_run run = change_session_run(s);
	size_t at;
	int r;

	run.is_own = is_own;
	r = fix_check_forget(&run, s->journal, s->journal_n, number, &at);
	o.number = r < 0 ? 0 : s->journal[at].number;
	if (r == 0 && !dry_run)
		r = fix_forget(&run, o.number);
	finish(s, r, &o);
	if (!o.error && o.entry && o.entry->damage)
		o.left_file_n =
			fix_left_files(&s->host, s->journal, s->journal_n, s->arena, &o.left_files);
	return o;
}

struct fix_outcome change_session_confirm(struct change_session *s, unsigned number, struct plan *p)
{
	struct fix_run run = change_session_run(s);
	struct fix_outcome o = {.confirmed = true};
	int r = fix_confirm(&run, number, p, &o.result);

	o.number = number;
	finish(s, r, &o);
	if (r < 0)
		o.number = 0;
	return o;
}

enum ending fix_outcome_ending(const struct fix_outcome *o)
{
	static const enum ending endings[] = {[FIX_DONE] = ENDED_WELL,
					      [FIX_NOTHING] = ENDED_WELL,
					      [FIX_DRIFT] = ENDED_REFUSED,
					      [FIX_ROLLED_BACK] = ENDED_FAILED,
					      [FIX_NOT_ROLLED_BACK] = ENDED_FAILED};

	/* With a number: the fix was begun before it failed. */
	if (o->error)
		return o->number ? ENDED_FAILED : ENDED_REFUSED;
	return endings[o->result];
}
