/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fix_context.h"

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "report/report_unlock_delivery.h"
#include "unlock/build.h"
#include "unlock/download.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Longer than most steps of another onehop that holds the lock. */
#define LOCK_WAIT_S     10
#define BUILD_LOG_LINES 20

/* ---- the host ---- */

/* Otherwise a file opened while standard output is closed would get descriptor 1, and all that is printed. */
static void keep_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR); /* no O_CLOEXEC: they stay open */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* "onehop" in a plan means this program, wherever it is installed: another version may lack the command. */
static int run_program(void *context, const char *const *argv, unsigned deadline_s,
		       struct strbuf *output, int *ret_status)
{
	static const char self[] = "/proc/self/exe";

	if (strcmp(argv[0], "onehop") == 0 && access(self, X_OK) == 0)
		return child_run(self, argv, deadline_s, output, ret_status);
	return host_run_program(context, argv, deadline_s, output, ret_status);
}

int fix_context_open(const struct common_options *common, const char *root, struct fix_context *ret)
{
	struct fix_context s = {.common = common, .quiet = common->json};

	keep_standard_files();
	s.real_root = realpath(root ? root : "/", NULL);
	if (!s.real_root)
		return fail(EXIT_REFUSED, "--root %s: %s", root, strerror(errno));
	s.root = strcmp(s.real_root, "/") == 0 ? NULL : s.real_root;
	if (fix_host_open(s.real_root, &s.host) < 0) {
		free(s.real_root);
		return fail(EXIT_REFUSED, "%s", err_msg());
	}
	s.host.run = run_program;
	s.arena = arena_new();
	if (!s.root)
		journal_boot_id(&s.host, s.boot_id);
	*ret = s;
	return 0;
}

static void drop_journal(struct fix_context *s)
{
	journal_free(s->journal, s->journal_n);
	free(s->journal_unread);
	s->journal = NULL;
	s->journal_n = 0;
	s->journal_unread = NULL;
}

void fix_context_close(struct fix_context *s)
{
	drop_journal(s);
	fix_host_close(&s->host);
	arena_free(s->arena);
	free(s->real_root);
}

/* ---- the journal ---- */

int fix_context_read_journal(struct fix_context *s)
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

const struct journal_entry *fix_context_entry(const struct fix_context *s, unsigned number)
{
	for (size_t i = 0; i < s->journal_n; i++)
		if (s->journal[i].number == number)
			return &s->journal[i];
	return NULL;
}

static bool has_unfinished(const struct fix_context *s)
{
	for (size_t i = 0; i < s->journal_n; i++)
		if (journal_is_unfinished(&s->journal[i]))
			return true;
	return false;
}

bool fix_context_may_write(const struct fix_context *s)
{
	struct stat st;

	if (geteuid() == 0)
		return true;
	return s->root && fstat(s->host.root_fd, &st) == 0 && st.st_uid == geteuid();
}

/* ---- messages ---- */

static struct step_event *event_of(struct fix_context *s, unsigned fix, size_t step)
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
static void remember(struct fix_context *s, enum fix_event event, unsigned fix, size_t index,
		     const struct step *step, const char *text)
{
	struct step_event *t = event_of(s, fix, index);

	t->event = event;
	t->what = arena_strdup(s->arena, step->what ? step->what : "");
	if (text)
		t->text = arena_strdup(s->arena, text);
}

static bool is_undo(enum fix_event event)
{
	return event >= FIX_UNDO_START && event <= FIX_UNDO_FAILED;
}

/* "2/4": counts only the steps that do something in this direction. */
static void add_position(struct strbuf *b, const struct plan *p, size_t index, bool undo)
{
	size_t at = 0, n = 0;

	for (size_t k = 0; k < p->step_n; k++) {
		size_t i = undo ? p->step_n - 1 - k : k;

		if (!(undo ? step_undoes(&p->steps[i]) : step_does(&p->steps[i])))
			continue;
		n++;
		at = i == index ? n : at;
	}
	strbuf_printf(b, "%zu/%zu ", at, n);
}

static void print_start(const struct plan *p, size_t index, bool undo)
{
	const struct step *step = &p->steps[index];
	AUTO_STRBUF struct strbuf b = {0};

	add_position(&b, p, index, undo);
	if (undo)
		step_undo_words(step, &b);
	else
		strbuf_puts(&b, step->what);
	text_clean(b.text);
	printf("%s ... ", strbuf_str(&b));
}

static const char *const end_texts[FIX_EVENT_N] = {
	[FIX_STEP_DONE] = "done",       [FIX_STEP_SKIPPED] = "already set",
	[FIX_STEP_FAILED] = "FAILED",   [FIX_UNDO_DONE] = "done",
	[FIX_UNDO_SKIPPED] = "skipped", [FIX_UNDO_FAILED] = "NOT UNDONE",
};

static void print_end(enum fix_event event, const char *text)
{
	AUTO_FREE char *clean = text ? xstrdup(text) : NULL;

	if (clean)
		text_clean(clean);
	printf("%s%s%s\n", end_texts[event], clean ? ": " : "", clean ? clean : "");
}

/* Errors of standard output are ignored: they must not stop a change half-way. */
static void print_event(struct fix_context *s, enum fix_event event, const struct plan *p,
			size_t index, const char *text)
{
	const struct step *step = &p->steps[index];
	bool undo = is_undo(event), start = event == FIX_STEP_START || event == FIX_UNDO_START;

	if (!(undo ? step_undoes(step) : step_does(step)))
		return;
	if (start || !s->started)
		print_start(p, index, undo);
	if (!start)
		print_end(event, text);
	s->started = start;
	fflush(stdout);
}

static void heading(struct fix_context *s, enum fix_event event, const struct journal_entry *e)
{
	if (event == FIX_RECOVER && e->trial == TRIAL_OVER)
		printf("The trial boot of fix %u of %s was not confirmed. Undoing the rest of it first.\n",
		       e->number, e->date);
	else if (event == FIX_RECOVER)
		printf("Fix %u of %s was interrupted. Undoing it first.\n", e->number, e->date);
	else if (is_undo(event) && s->announced != e->number && e->state == FIX_ON_TRIAL)
		printf("The boot loader did not clear the trial entry of fix %u\n", e->number);
	else if (is_undo(event) && s->announced != e->number && e->state == FIX_APPLYING)
		printf("Ending the trial of fix %u\n", e->number);
	else if (is_undo(event) && s->announced != e->number)
		printf("Undoing fix %u of %s\n", e->number, e->date);
	else
		return;
	s->announced = e->number;
}

/* The plan that the step belongs to: the journal's copy, or the one being applied. */
static const struct plan *plan_of(const struct fix_context *s, const struct journal_entry *e,
				  const struct step *step)
{
	const struct plan *plans[] = {e ? e->plan : NULL, s->plan};

	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; plans[i] && k < plans[i]->step_n; k++)
			if (step == &plans[i]->steps[k])
				return plans[i];
	return NULL;
}

/* DKMS itself only prints that there is a log. */
static void print_build_log(const struct fix_context *s, enum fix_event event,
			    const struct step *step)
{
	AUTO_STRBUF struct strbuf lines = {0};

	if (event != FIX_STEP_FAILED || !s->build_log || step->kind != STEP_TOOL || !step->argv ||
	    strcmp(step->argv[0], "dkms") != 0 || strcmp(step->argv[1], "build") != 0)
		return;
	build_last_lines(s->host.root_fd, s->build_log, BUILD_LOG_LINES, &lines);
	if (!lines.len)
		return;
	printf("The last lines of /%s:\n", s->build_log);
	for (char *rest = lines.text, *line; (line = strsep(&rest, "\n"));) {
		text_clean(line);
		if (*line)
			printf("  %s\n", line);
	}
}

/* The difference is known only after the program ran. */
static void print_generated(const struct fix_context *s, enum fix_event event,
			    const struct step *step)
{
	struct document *d;

	if (event != FIX_STEP_DONE || step->kind != STEP_GENERATED || !step->new.data)
		return;
	d = document_new();
	report_generated(d, step, s->common->verbose);
	print_document(d, s->common, EXIT_OK);
	document_free(d);
}

static void on_event(void *context, enum fix_event event, const struct journal_entry *e,
		     const struct step *step, const char *text)
{
	struct fix_context *s = context;
	const struct plan *p = plan_of(s, e, step);

	if (!s->quiet && e)
		heading(s, event, e);
	if (!p && !s->quiet && text)
		print_end(event, text);
	if (!p)
		return;
	remember(s, event, e ? e->number : 0, (size_t)(step - p->steps), step, text);
	if (s->quiet)
		return;
	print_event(s, event, p, (size_t)(step - p->steps), text);
	print_build_log(s, event, step);
	print_generated(s, event, step);
}

struct fix_run fix_context_run(struct fix_context *s)
{
	return (struct fix_run){.host = &s->host,
				.report = on_event,
				.context = s,
				.wait_s = LOCK_WAIT_S};
}

/* ---- signals ---- */

static const int held[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE};

static void held_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		sigaddset(set, held[i]);
}

/* Blocked rather than ignored, so that a signal that came can be reported. */
void fix_context_hold_signals(void)
{
	sigset_t set;

	held_set(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* SIGPIPE is not reported: the failed write is. */
bool fix_context_was_signalled(void)
{
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		if (held[i] != SIGPIPE && sigismember(&pending, held[i]) == 1)
			return true;
	return false;
}

/* ---- carrying out ---- */

int fix_context_recover(struct fix_context *s)
{
	struct fix_run run = fix_context_run(s);
	int lock, r;
	size_t n;

	if (!has_unfinished(s))
		return 0;
	if (!fix_context_may_write(s))
		return fail(
			EXIT_REFUSED,
			"an interrupted fix must be undone first, which needs root; nothing was changed");
	fix_context_hold_signals();
	if (journal_lock(&s->host, run.wait_s, &lock) < 0)
		return fail(EXIT_REFUSED, "%s", err_msg());
	r = fix_recover(&run, &n);
	journal_unlock(lock);
	if (r < 0)
		return fail(EXIT_NOT_CHANGED, "%s", err_msg());
	fix_context_read_journal(s);
	if (!s->quiet)
		printf("\n");
	return 0;
}

struct fix_outcome fix_context_carry_out(struct fix_context *s, struct plan *p)
{
	struct fix_run run = fix_context_run(s);
	struct fix_outcome o = {.root = s->root};

	s->plan = p;
	run.last_known = !s->journal_unread;
	run.last = s->journal_n ? s->journal[s->journal_n - 1].number : 0;
	o.error = fix_apply(&run, p, &o.result, &o.number);
	if (o.error < 0)
		o.sentence = arena_strdup(s->arena, err_msg());
	o.was_signalled = fix_context_was_signalled();
	o.reboot = !o.error && o.result == FIX_DONE && !s->root && plan_needs_reboot(p);
	o.events = s->events;
	o.event_n = s->event_n;
	fix_context_read_journal(s);
	o.entry = fix_context_entry(s, o.number);
	return o;
}

/* ---- the program ---- */

bool is_roots_alone(const char *path)
{
	AUTO_FREE char *at = xstrdup(path);
	struct stat st;

	for (;;) {
		char *slash = strrchr(at, '/');

		if (lstat(*at ? at : "/", &st) < 0 || S_ISLNK(st.st_mode) || st.st_uid != 0 ||
		    st.st_mode & (S_IWGRP | S_IWOTH))
			return false;
		if (!*at)
			return true;
		if (!slash)
			return false;
		*slash = '\0';
	}
}

/* ---- words and ends ---- */

static int parse_number(const char *word, unsigned *ret)
{
	uint64_t n;

	*ret = 0;
	if (!word)
		return 0;
	if (text_to_u64(word, &n) < 0 || n < 1 || n > UINT_MAX)
		return fail(EXIT_REFUSED,
			    "'%s' is not the number of a fix (to list them: onehop history)", word);
	*ret = (unsigned)n;
	return 0;
}

int fix_context_with_number(const struct common_options *common, const char *root, const char *word,
			    int (*run)(struct fix_context *s, unsigned number, const void *options),
			    const void *options)
{
	struct fix_context s;
	unsigned number;
	int r = parse_number(word, &number);

	if (r == 0)
		r = fix_context_open(common, root, &s);
	if (r)
		return r;
	r = run(&s, number, options);
	fix_context_close(&s);
	return r;
}

enum exit_code outcome_code(const struct fix_outcome *o)
{
	static const enum exit_code codes[] = {[FIX_DONE] = EXIT_OK,
					       [FIX_NOTHING] = EXIT_OK,
					       [FIX_DRIFT] = EXIT_REFUSED,
					       [FIX_ROLLED_BACK] = EXIT_NOT_CHANGED,
					       [FIX_NOT_ROLLED_BACK] = EXIT_NOT_CHANGED};

	/* With a number: the fix was begun before it failed. */
	if (o->error)
		return o->number ? EXIT_NOT_CHANGED : EXIT_REFUSED;
	return codes[o->result];
}

size_t fix_context_left_builds(struct fix_context *s, const struct fix_outcome *o,
			       struct left_build **ret)
{
	*ret = NULL;
	return o->undo && !o->error && o->entry
		       ? delivery_left(&s->host, o->entry->plan, s->arena, ret)
		       : 0;
}

const char *fix_context_left_sources(struct fix_context *s, const struct fix_outcome *o)
{
	return o->undo && !o->error && o->entry && delivery_brought(o->entry->plan)
		       ? download_left(&s->host, s->arena)
		       : NULL;
}

/* A failure to print does not change the exit code. */
int finish_outcome(struct fix_context *s, const struct fix_outcome *o)
{
	struct document *d = document_new();
	enum exit_code code = outcome_code(o);
	struct left_build *left;
	size_t n = fix_context_left_builds(s, o, &left);

	report_fix_outcome(d, o);
	report_left_builds(d, left, n);
	report_left_sources(d, fix_context_left_sources(s, o));
	print_document(d, s->common, code);
	document_free(d);
	return o->error ? fail(code, "%s", o->sentence) : (int)code;
}
