/* SPDX-License-Identifier: Apache-2.0 */
/* Taking back: what is in force, what was interrupted, what failed. */
#include "base/alloc.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "fix/fix_impl.h"
#include "fix/step_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the journal under the lock ---- */

/* The boot loader reads it, so its old content keeps a second name. */
static bool keeps_old(const struct step *s)
{
	return s->kind == STEP_GENERATED || s->kind == STEP_OPTIONS ||
	       ((s->kind == STEP_FILE || s->kind == STEP_BLOCK) && s->for_boot);
}

static bool replaces(const struct journal_entry *e, const char *target)
{
	for (size_t i = 0; i < e->plan->step_n; i++)
		if (keeps_old(&e->plan->steps[i]) && strcmp(e->plan->steps[i].target, target) == 0)
			return true;
	return false;
}

/* Whether this boot changed the file: the boot loader may then still see its old folder. */
static bool of_this_boot(const struct fix_session *s, const char *target, const char *boot_id)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->entries[i].last_boot_id, boot_id) == 0 &&
		    replaces(&s->entries[i], target))
			return true;
	return false;
}

/*
 * Second names of what a boot loader reads, once another boot has been seen. They do no harm: that
 * one cannot be removed (a /boot that is read-only) does not prevent the rest.
 */
static void forget_old_names(const struct fix_run *run, const struct fix_session *session)
{
	char boot_id[40];

	journal_boot_id(run->host, boot_id);
	/* What a damaged one made in this boot is unknown. */
	for (size_t i = 0; i < session->n; i++)
		if (session->entries[i].damage)
			return;
	for (size_t i = 0; *boot_id && i < session->n; i++) {
		const struct plan *p = session->entries[i].plan;

		for (size_t k = 0; k < p->step_n; k++)
			if (keeps_old(&p->steps[k]) &&
			    !of_this_boot(session, p->steps[k].target, boot_id))
				host_forget_old(run->host, p->steps[k].target);
	}
}

int fix_session_open(const struct fix_run *run, struct fix_session *ret)
{
	int r = journal_lock(run->host, run->wait_s, &ret->lock);

	if (r == 0)
		r = journal_sweep(run->host);
	if (r == 0)
		r = journal_read(run->host, &ret->entries, &ret->n);
	if (r == 0)
		forget_old_names(run, ret);
	return r;
}

void fix_session_done(struct fix_session *s)
{
	journal_free(s->entries, s->n);
	journal_unlock(s->lock);
}

/* ---- undoing one step ---- */

struct undoing {
	const struct fix_run *run;
	struct journal_entry *e;
	bool other_boot; /* than the one in which it was made */
	bool touched;    /* something that was undone, or made, after the step that is looked at */
	size_t failed;
	bool *restored; /* a rehearsal: steps that were undone, of which nothing shows; NULL: it is for real */
	const bool *lost; /* steps that are left alone, and reported; NULL: none */
	/* What somebody else made of the step's file, and where it is kept; NULL: nothing was. */
	struct bytes found;
	char *kept;
	bool kept_now; /* by this try */
};

static bool is_other_boot(struct fix_host *h, const struct journal_entry *e)
{
	char boot_id[40];

	journal_boot_id(h, boot_id);
	return strcmp(boot_id, e->boot_id) != 0;
}

static void undone(struct undoing *u, size_t i, const char *output)
{
	const struct step *s = &u->e->plan->steps[i];
	/* It was made from something that is not undone yet: the next try makes it once more. */
	bool early = u->failed && step_is_program(s) && !s->argv && s->undo_argv;

	/* If it cannot be written down, the next run looks, and finds it undone. */
	journal_mark(u->run->host, u->e, i, early ? MARK_UNDO_FAILED : MARK_UNDONE,
		     early ? "to be done once more when the steps behind it are undone" : NULL,
		     output);
}

static void skipped(struct undoing *u, size_t i, const char *why)
{
	undone(u, i, NULL);
	fix_tell(u->run, FIX_UNDO_SKIPPED, u->e, &u->e->plan->steps[i], why);
}

static void stuck(struct undoing *u, size_t i, const char *why, const char *output)
{
	AUTO_FREE char *text = xstrdup(why);

	u->failed++;
	journal_mark(u->run->host, u->e, i, MARK_UNDO_FAILED, text, output);
	fix_tell(u->run, FIX_UNDO_FAILED, u->e, &u->e->plan->steps[i], text);
}

/* Once it was made again. Only what it lost is worth keeping. */
static bool has_lost_lines(struct undoing *u, const struct step *s)
{
	AUTO_FREE char *now = NULL;
	struct bytes after;

	if (host_read(u->run->host, s->target, &now, &after.size) < 0)
		return true;
	after.data = now;
	if (fix_lost_lines(u->e->plan, s, &u->found, &after, true))
		return true;
	if (u->kept_now)
		host_remove(u->run->host, u->kept);
	return false;
}

/* What the step itself says, as opposed to what a program printed; NULL: nothing. The caller frees. */
static char *remark(struct undoing *u, const struct step *s, const struct strbuf *output)
{
	if (u->kept && has_lost_lines(u, s))
		return xprintf(
			"its program does not write the lines that somebody else added; the file with them is kept as /%s",
			u->kept);
	return s->kind == STEP_OPTIONS && output->len ? xstrdup(strbuf_str(output)) : NULL;
}

/* -EBUSY: another program changed the file meanwhile; that is the caller's to tell. */
static int try_undo(struct undoing *u, size_t i)
{
	AUTO_STRBUF struct strbuf output = {0};
	struct step *s = &u->e->plan->steps[i];
	AUTO_FREE char *said = NULL;
	int r = step_prepare_undo(u->run->host, u->e->plan->arena, s);

	if (r < 0) {
		stuck(u, i, err_msg(), NULL);
		return 0;
	}
	journal_mark(u->run->host, u->e, i, MARK_UNDO_STARTED, NULL, NULL);
	fix_tell(u->run, FIX_UNDO_START, u->e, s, NULL);
	u->touched = true;
	r = step_undo(u->run->host, s, &output);
	if (r == -EBUSY && step_has_content(s))
		return r;
	if (r == 0)
		r = step_tidy(u->run->host, s);
	if (r < 0) {
		stuck(u, i, err_msg(), strbuf_str(&output));
		return 0;
	}
	undone(u, i, strbuf_str(&output));
	said = remark(u, s, &output);
	fix_tell(u->run, FIX_UNDO_DONE, u->e, s, said);
	return 0;
}

static void undo(struct undoing *u, size_t i)
{
	if (try_undo(u, i) < 0)
		stuck(u, i, err_msg(), NULL);
}

/* An earlier step that makes the same file again. */
static bool is_made_again(const struct plan *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (p->steps[k].undo_argv && step_same_target(&p->steps[k], &p->steps[i]))
			return true;
	return false;
}

/* Programs of a system that does not run are not started: the step stays for an undo in that system. */
static void leave_program(struct undoing *u, size_t i)
{
	AUTO_STRBUF struct strbuf text = {0};
	const struct step *s = &u->e->plan->steps[i];

	strbuf_printf(
		&text,
		"%sstart that system, or chroot into it, and run onehop undo %u there, which runs: ",
		s->kind == STEP_GENERATED ? "it was regenerated since: " : "", u->e->number);
	step_command(s, s->undo_argv, &text);
	stuck(u, i, strbuf_str(&text), NULL);
}

/* False: there is none, or it leads elsewhere, so that a person has to run the program. */
static bool undo_by_link(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];

	if (!s->link || host_remove_link(u->run->host, s->link) < 0)
		return false;
	undone(u, i, NULL);
	fix_tell(u->run, FIX_UNDO_START, u->e, s, NULL);
	fix_tell(u->run, FIX_UNDO_DONE, u->e, s, NULL);
	return true;
}

/* A TOOL, or a GENERATED that is not what was installed. */
static void undo_by_program(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];
	struct stat st;

	if (!u->run->host->image) {
		undo(u, i);
		if (s->link && u->e->marks[i] == MARK_UNDONE)
			host_would_unlink(u->run->host, s->link);
	} else if (s->undo_if && host_stat(u->run->host, s->undo_if, &st) == -ENOENT)
		skipped(u, i, "what it would be run on is not there");
	else if (!undo_by_link(u, i))
		leave_program(u, i);
}

static void undo_tool(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];

	if (u->other_boot && s->passing && !s->undo_if)
		skipped(u, i, "it lasted until the reboot");
	else if (s->undo_argv && (s->argv || u->touched))
		undo_by_program(u, i);
	else
		undone(u, i, NULL);
	u->touched |= s->argv != NULL;
}

static void drifted(struct undoing *u, size_t i, const char *now)
{
	AUTO_STRBUF struct strbuf text = {0}, left = {0};
	const struct step *s = &u->e->plan->steps[i];

	step_difference(s, STEP_NEW_SIDE, now, &text);
	strbuf_puts(&text, ": it was changed since, and is left as it is");
	step_remainder(s, now, &left);
	if (left.len)
		strbuf_printf(&text, "; %s", left.text);
	stuck(u, i, strbuf_str(&text), NULL);
}

/* Of an image only one file system may be mounted. It does not mean that the fix is undone. */
static void not_mounted(struct undoing *u, size_t i)
{
	AUTO_FREE char *text = xprintf("/%s is not there: mount its file system below %s",
				       u->e->plan->steps[i].target, u->run->host->root);

	stuck(u, i, text, NULL);
}

/* Read here: what a state's text shows ends at the first zero byte. */
static int keep_found(struct undoing *u, const struct step *s, size_t i)
{
	AUTO_FREE char *data = NULL;
	int r = host_read(u->run->host, s->target, &data, &u->found.size);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	u->found.data = TAKE_PTR(data);
	r = journal_found_content(u->run->host, u->e, i, &u->found, &u->kept);
	u->kept_now = r > 0;
	return r;
}

static void forget_found(struct undoing *u)
{
	free((char *)u->found.data);
	free(u->kept);
	u->found = (struct bytes){0};
	u->kept = NULL;
}

/* Its program makes it again without what a person may have added: that stays in the journal. */
static void make_anew(struct undoing *u, size_t i)
{
	if (!u->run->host->image && keep_found(u, &u->e->plan->steps[i], i) < 0)
		stuck(u, i, err_msg(), NULL);
	else
		undo_by_program(u, i);
	forget_found(u);
}

/* Nothing is left of it, but the running kernel may have it still. */
static void found_undone(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];
	AUTO_STRBUF struct strbuf warning = {0};

	if (step_tidy(u->run->host, s) < 0) {
		stuck(u, i, err_msg(), NULL);
		return;
	}
	if (s->kind == STEP_OPTIONS)
		step_options_warning(u->run->host, s, &warning);
	skipped(u, i, warning.len ? warning.text : "already restored");
}

/* A person has made it again in that system without them: no program is needed there any more. */
static bool lacks_parameters(const struct plan *p, const char *now)
{
	bool any = false;

	for (size_t i = 0; i < p->wanted_n; i++) {
		if (strcmp(p->wanted[i].kind, "kernel-parameter") != 0)
			continue;
		any = true;
		if (step_holds_word(now, p->wanted[i].value))
			return false;
	}
	return any;
}

/* Somebody else has made it again since: with what this fix changed, so it is made once more. */
static void undo_made_anew(struct undoing *u, size_t i, const char *now)
{
	const struct step *s = &u->e->plan->steps[i];

	if (u->run->host->image && !now) {
		not_mounted(u, i);
	} else if (u->run->host->image && s->undo_argv && lacks_parameters(u->e->plan, now)) {
		found_undone(u, i);
	} else if (s->undo_argv && (s->argv || u->touched)) {
		make_anew(u, i);
	} else if (s->undo_argv) {
		skipped(u, i, "nothing that it is made from was changed");
	} else if (is_made_again(u->e->plan, i)) {
		u->touched = true;
		skipped(u, i,
			u->run->host->image
				? "it was regenerated since"
				: "it was regenerated since; a later step regenerates it");
	} else {
		drifted(u, i, now);
	}
}

/* Of what stands between this step and the one that made the same file: what is still there. */
static const struct step *left_in_bracket(const struct undoing *u, size_t i)
{
	const struct plan *p = u->e->plan;

	if (p->steps[i].kind != STEP_GENERATED || p->steps[i].argv)
		return NULL;
	for (size_t k = i + 1; k < p->step_n && !step_same_target(&p->steps[i], &p->steps[k]); k++)
		if (p->steps[k].kind == STEP_FILE && u->e->marks[k] == MARK_UNDO_FAILED)
			return &p->steps[k];
	return NULL;
}

/*
 * The old bytes are back, so that the next boot is as before. They are not made again from a file that
 * could not be undone: that would bring back what this undo is for, maybe from a rescue shell.
 */
static void comes_back(struct undoing *u, size_t i, const struct step *left)
{
	const struct step *s = &u->e->plan->steps[i];
	const struct fix_host *h = u->run->host;
	const char *root = h->image ? h->root : "";
	AUTO_STRBUF struct strbuf text = {0};

	strbuf_printf(
		&text,
		"%s/%s is restored, but only until it is regenerated, for example by the next kernel update, which reads %s/%s. %s that file, then: onehop undo %u",
		root, s->target, root, left->target,
		left->old.data ? "Restore the old content of" : "Delete", u->e->number);
	if (h->image) {
		strbuf_puts(&text, " --root ");
		step_command_line((const char *const[]){h->root, NULL}, &text);
	}
	stuck(u, i, strbuf_str(&text), NULL);
}

/* It was as the fix left it, until another program changed it at this very moment. */
static void undo_changed(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];
	AUTO_FREE char *why = xstrdup(err_msg()), *now = NULL;
	enum step_state state;

	if (step_read_state(u->run->host, s, &state, &now) < 0 || state != STEP_IS_OTHER)
		stuck(u, i, why, NULL);
	else if (s->kind == STEP_GENERATED)
		undo_made_anew(u, i, now);
	else
		drifted(u, i, now);
}

/* Whatever it is now, the fix has not set it in this boot. */
#define SET_SINCE                                                                                  \
	"what the fix set lasted until the reboot; the present value was set since, and stays"

static void undo_seen(struct undoing *u, size_t i, enum step_state state, const char *now)
{
	const struct step *s = &u->e->plan->steps[i], *left = left_in_bracket(u, i);

	/* Of several words some may be gone; the others are still the fix's. */
	if (state == STEP_IS_NEW || (state == STEP_IS_OTHER && step_by_parts(s))) {
		if (try_undo(u, i) < 0)
			undo_changed(u, i);
		if (u->restored && state == STEP_IS_NEW)
			u->restored[i] = u->e->marks[i] == MARK_UNDONE;
	} else if (state == STEP_IS_OLD && left) {
		comes_back(u, i, left);
	} else if (state == STEP_IS_OLD) {
		found_undone(u, i);
	} else if (s->kind == STEP_GENERATED) {
		undo_made_anew(u, i, now);
	} else if (s->kind == STEP_ONE_SHOT) {
		skipped(u, i, "the next boot was given another entry since, which stays");
	} else if (u->other_boot && step_is_volatile(s)) {
		skipped(u, i, SET_SINCE);
	} else {
		drifted(u, i, now);
	}
}

static bool reboot_took_back(const struct fix_host *h, bool other_boot, const struct step *s)
{
	if (h->image)
		return step_in_memory(s);
	return other_boot &&
	       (s->kind == STEP_BAR_SIZE || (s->kind == STEP_REGISTER && !s->again_at_boot));
}

bool fix_reboot_took_back(struct fix_host *h, const struct journal_entry *e, const struct step *s)
{
	return reboot_took_back(h, is_other_boot(h, e), s);
}

/* An earlier run was killed in it: this one leaves no step at such a mark. */
static bool was_killed_in(const struct undoing *u, size_t i)
{
	return u->e->marks[i] == MARK_STARTED || u->e->marks[i] == MARK_UNDO_STARTED;
}

/*
 * A rehearsal changes nothing: where a later step of the same target was undone in it, this is what that would have left.
 * The steps of one target lead from one content to the next; a program makes one file, in both directions.
 */
static bool restored_later(const struct undoing *u, size_t i, enum step_state *ret)
{
	const struct plan *p = u->e->plan;

	for (size_t k = i + 1; u->restored && k < p->step_n; k++)
		if (u->restored[k] && step_same_target(&p->steps[i], &p->steps[k])) {
			*ret = p->steps[i].kind == STEP_GENERATED ? STEP_IS_OLD : STEP_IS_NEW;
			return true;
		}
	return false;
}

static void past_reboot(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];
	enum step_state state;

	if (u->run->host->image)
		skipped(u, i, "it lasts only until that system restarts");
	else if (step_read_state(u->run->host, s, &state, NULL) < 0)
		skipped(u, i, "it lasted until the reboot");
	else
		skipped(u, i, state == STEP_IS_OLD ? "the reboot took it back" : SET_SINCE);
}

static void read_state_and_undo(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];
	AUTO_FREE char *now = NULL;
	enum step_state state;
	int r;

	if (reboot_took_back(u->run->host, u->other_boot, s)) {
		past_reboot(u, i);
		return;
	}
	if (s->kind == STEP_WORDS && u->run->host->image) {
		leave_program(u, i);
		return;
	}
	r = was_killed_in(u, i) ? step_settle(u->run->host, s) : 0;
	if (r >= 0 && !restored_later(u, i, &state))
		r = step_read_state(u->run->host, s, &state, &now);
	/* A device that was taken out took its registers along. */
	if (r == -ENODEV && step_is_volatile(s)) {
		AUTO_FREE char *why = xstrdup(err_msg());

		skipped(u, i, why);
	} else if (r < 0) {
		stuck(u, i, err_msg(), NULL);
	} else {
		undo_seen(u, i, state, now);
	}
}

/* A later step changed the same, and is still there. */
static bool is_covered(const struct journal_entry *e, size_t i)
{
	for (size_t k = i + 1; k < e->plan->step_n; k++)
		if (e->marks[k] == MARK_UNDO_FAILED && !step_is_program(&e->plan->steps[k]) &&
		    step_same_target(&e->plan->steps[i], &e->plan->steps[k]))
			return true;
	return false;
}

/* What steps behind it have to be undone with. */
static bool is_needed(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];

	if (!s->needed_by_undo || !u->failed)
		return false;
	stuck(u, i, "it stays until the rest is undone", NULL);
	return true;
}

/* The caller frees. */
static char *looks_lost(struct fix_host *h, const struct step *s)
{
	enum step_state state;

	if (step_read_state(h, s, &state, NULL) < 0)
		return xprintf("it cannot be looked at (%s)", err_msg());
	return xstrdup(state == STEP_IS_NEW ? "it is as the fix leaves it"
		       : step_in_memory(s)  ? "it is neither as before nor as the fix leaves it"
					    : "some of it is as the fix leaves it");
}

/*
 * Nobody has asked for this undo, and a run that was killed before this step has left the same log. What is there may
 * be somebody's own then.
 */
static void leave_lost(struct undoing *u, size_t i)
{
	AUTO_FREE char *now = looks_lost(u->run->host, &u->e->plan->steps[i]);
	AUTO_FREE char *text = xprintf(
		"%s, but the log has no line about it: log.jsonl lost its end, or somebody else made the same change. To undo it: onehop undo %u",
		now, u->e->number);

	stuck(u, i, text, NULL);
}

static void undo_step(struct undoing *u, size_t i)
{
	const struct step *s = &u->e->plan->steps[i];

	if (u->lost && u->lost[i]) {
		leave_lost(u, i);
		return;
	}
	if (u->e->marks[i] == MARK_NONE)
		return;
	if (is_covered(u->e, i)) {
		stuck(u, i, "what a later step made of it could not be undone", NULL);
		return;
	}
	if (u->e->marks[i] == MARK_UNDONE) {
		u->touched = true; /* by an earlier run; what depends on it may not have been */
		return;
	}
	if (is_needed(u, i))
		return;
	if (s->kind == STEP_TOOL)
		undo_tool(u, i);
	else
		read_state_and_undo(u, i);
}

/* Going back matters more than writing down that it is done: no error ends this. */
static size_t undo_all(struct undoing *u)
{
	for (size_t i = u->e->plan->step_n; i-- > 0;)
		undo_step(u, i);
	return u->failed;
}

static size_t take_back(const struct fix_run *run, struct journal_entry *e, const bool *lost)
{
	struct undoing u = {.run = run,
			    .e = e,
			    .other_boot = is_other_boot(run->host, e),
			    .lost = lost};

	if (undo_all(&u) == 0)
		journal_state(run->host, e, FIX_UNDONE);
	journal_write_in_force(run->host);
	return u.failed;
}

size_t fix_take_back(const struct fix_run *run, struct journal_entry *e)
{
	return take_back(run, e, NULL);
}

static void recover(const struct fix_run *run, struct journal_entry *e)
{
	AUTO_FREE bool *lost = NULL;

	fix_tell(run, FIX_RECOVER, e, NULL, NULL);
	fix_find_lost(run->host, e, &lost);
	journal_state(run->host, e, FIX_UNDOING);
	take_back(run, e, lost);
}

size_t fix_take_back_trial(const struct fix_run *run, struct journal_entry *e)
{
	struct undoing u = {.run = run, .e = e, .other_boot = is_other_boot(run->host, e)};

	for (size_t i = e->plan->step_n; i-- > 0;)
		if (e->plan->steps[i].trial)
			undo_step(&u, i);
	return u.failed;
}

/* The trial `number`, 0: the one there is; the session holds it. */
static int open_trial(const struct fix_run *run, unsigned number, struct fix_session *session,
		      struct journal_entry **ret)
{
	size_t at = 0;
	int r = fix_session_open(run, session);

	if (r == 0)
		r = fix_check_confirm(session->entries, session->n, number, &at);
	if (r == 0)
		*ret = &session->entries[at];
	return r;
}

static void clear_one_shot(const struct fix_run *run, struct journal_entry *e)
{
	struct undoing u = {.run = run, .e = e, .other_boot = true};

	for (size_t i = 0; i < e->plan->step_n; i++) {
		const struct step *s = &e->plan->steps[i];
		enum step_state state;

		if (s->kind == STEP_ONE_SHOT && step_read_state(run->host, s, &state, NULL) == 0 &&
		    state == STEP_IS_NEW)
			undo_step(&u, i);
	}
}

int fix_end_one_shot(const struct fix_run *run, unsigned number)
{
	AUTO_SESSION struct fix_session session = {.lock = -1};
	struct journal_entry *e = NULL;
	int r = open_trial(run, number, &session, &e);

	if (r == 0)
		clear_one_shot(run, e);
	return r;
}

/* ---- what only the trial boot was to have ---- */

static bool is_kept(const struct plan *p, const char *word)
{
	for (size_t i = 0; i < p->wanted_n; i++)
		if (strcmp(p->wanted[i].kind, "kernel-parameter") == 0 &&
		    strcmp(p->wanted[i].value, word) == 0)
			return true;
	return false;
}

/* The caller frees; NULL: none. */
static char *words_of_one_boot(const struct plan *p, const struct step *s)
{
	AUTO_FREE char *copy = xstrdup(s->at);
	AUTO_STRBUF struct strbuf words = {0};
	char *rest = copy, *word;

	while ((word = strsep(&rest, " ")))
		if (*word && !is_kept(p, word))
			strbuf_printf(&words, "%s%s", words.len ? " " : "", word);
	return words.len ? xstrdup(words.text) : NULL;
}

static int drop_words_of_one_boot(const struct fix_run *run, const struct plan *p)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->step_n; i++) {
		const struct step *s = &p->steps[i];
		AUTO_FREE char *words =
			s->kind == STEP_OPTIONS && s->known ? words_of_one_boot(p, s) : NULL;

		if (words)
			r = step_options_take_since(run->host, s, words, NULL);
	}
	return r;
}

int fix_drop_trial_words(const struct fix_run *run, unsigned number)
{
	AUTO_SESSION struct fix_session session = {.lock = -1};
	struct journal_entry *e = NULL;
	int r = open_trial(run, number, &session, &e);

	return e ? drop_words_of_one_boot(run, e->plan) : r;
}

/* ---- what was interrupted ---- */

int fix_recover_entries(const struct fix_run *run, struct journal_entry *entries, size_t n,
			unsigned except, size_t *ret_n)
{
	*ret_n = 0;
	for (size_t i = n; i-- > 0;) {
		struct journal_entry *e = &entries[i];
		int r;

		if (e->number == except || !fix_is_interrupted(e) ||
		    fix_check_later(entries, n, i) < 0)
			continue;
		r = fix_check_mounted(run->host, e->plan);
		if (r < 0)
			return r;
		recover(run, e);
		(*ret_n)++;
	}
	/* Also what was cut short between the two. */
	return journal_write_in_force(run->host);
}

int fix_recover(const struct fix_run *run, size_t *ret_n)
{
	struct journal_entry *entries = NULL;
	size_t n = 0;
	int r = journal_sweep(run->host);

	if (r == 0)
		r = journal_read(run->host, &entries, &n);
	if (r < 0)
		return r;
	r = fix_check_damage(entries, n);
	if (r == 0)
		r = fix_recover_entries(run, entries, n, 0, ret_n);
	journal_free(entries, n);
	return r;
}

/* ---- undoing by number ---- */

/* What was interrupted goes first, and may leave something in the way. */
static int make_way(const struct fix_run *run, struct fix_session *s, unsigned number,
		    size_t *ret_at)
{
	size_t recovered;
	int r = fix_check_undo(run->host, s->entries, s->n, number, ret_at);

	if (r == 0)
		r = fix_recover_entries(run, s->entries, s->n, s->entries[*ret_at].number,
					&recovered);
	return r < 0 ? r : fix_check_later(s->entries, s->n, *ret_at);
}

int fix_undo(const struct fix_run *run, unsigned number, enum fix_result *ret_result,
	     unsigned *ret_number)
{
	AUTO_SESSION struct fix_session session = {.lock = -1};
	struct journal_entry *e;
	size_t at = 0, stuck_n;
	int r = fix_session_open(run, &session);

	if (r == 0)
		r = make_way(run, &session, number, &at);
	if (r < 0)
		return r;
	e = &session.entries[at];
	/* While nothing is touched yet, a full disk is a reason not to begin. */
	r = journal_state(run->host, e, FIX_UNDOING);
	if (r < 0)
		return r;
	journal_write_in_force(run->host); /* an undo does not wait for that */
	fix_adopt_lost(run->host, e);
	stuck_n = fix_take_back(run, e);
	*ret_number = e->number;
	*ret_result = stuck_n ? FIX_NOT_ROLLED_BACK : FIX_DONE;
	return 0;
}

/* ---- what it would come to ---- */

/* `asked`: a person asks for this undo, which then takes back what the log has lost too. */
static size_t rehearse(const struct fix_run *run, const struct journal_entry *e, bool asked,
		       struct source *would)
{
	struct arena *a = e->plan->arena;
	const size_t n = e->plan->step_n;
	AUTO_FREE bool *lost = NULL;
	struct fix_host host = *run->host;
	struct fix_run dry = *run;
	struct journal_entry copy = *e;
	struct undoing u = {.run = &dry, .e = &copy, .other_boot = is_other_boot(&host, e)};

	host.rehearsal = true;
	host.would = would;
	host.run = run->rehearse ? run->rehearse : host_rehearse_program;
	dry.host = &host;
	copy.marks = arena_alloc(a, n + 1, sizeof(*copy.marks));
	copy.errors = arena_alloc(a, n + 1, sizeof(*copy.errors));
	memcpy(copy.marks, e->marks, n * sizeof(*copy.marks));
	memcpy(copy.errors, e->errors, n * sizeof(*copy.errors));
	u.restored = arena_alloc(a, n + 1, sizeof(*u.restored));
	if (asked)
		fix_adopt_lost(&host, &copy);
	else
		fix_find_lost(&host, &copy, &lost);
	u.lost = lost;
	return undo_all(&u);
}

enum fix_result fix_rehearse_undo(const struct fix_run *run, const struct journal_entry *e)
{
	return rehearse(run, e, true, NULL) ? FIX_NOT_ROLLED_BACK : FIX_DONE;
}

size_t fix_rehearse_recover(const struct fix_run *run, const struct journal_entry *entries,
			    size_t n, struct source *would)
{
	struct fix_run silent = *run;
	size_t found = 0;

	silent.report = NULL;
	if (fix_check_damage(entries, n) < 0)
		return 0;
	for (size_t i = n; i-- > 0;) {
		const struct journal_entry *e = &entries[i];

		if (!fix_is_interrupted(e) || fix_check_later(entries, n, i) < 0)
			continue;
		if (fix_check_mounted(run->host, e->plan) < 0)
			break;
		rehearse(&silent, e, false, would);
		found++;
	}
	return found;
}

/* ---- what it would find ---- */

/* A later step of the same fix changed the same: what this one will find is not there yet. */
static bool is_changed_later(const struct plan *p, size_t i)
{
	for (size_t k = i + 1; k < p->step_n; k++)
		if (step_same_target(&p->steps[i], &p->steps[k]))
			return true;
	return false;
}

void fix_read_back(struct fix_host *h, const struct journal_entry *e, enum step_state *ret,
		   char **ret_now)
{
	const bool other_boot = is_other_boot(h, e);

	for (size_t i = 0; i < e->plan->step_n; i++) {
		const struct step *s = &e->plan->steps[i];
		const bool over = reboot_took_back(h, other_boot, s);

		ret[i] = STEP_NOT_SEEN;
		if ((over && h->image) || is_changed_later(e->plan, i))
			continue;
		if (step_read_state(h, s, &ret[i], &ret_now[i]) < 0)
			ret[i] = STEP_NOT_SEEN;
		else if (over && ret[i] == STEP_IS_NEW)
			ret[i] = STEP_IS_OTHER; /* set since the reboot */
	}
}
