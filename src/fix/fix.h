/* SPDX-License-Identifier: Apache-2.0 */
/* Carrying a plan out, and taking it back. */
#pragma once

#include "fix/journal.h"

struct source;

enum fix_event {
	FIX_STEP_START, /* about to be done */
	FIX_STEP_DONE,
	FIX_STEP_SKIPPED, /* it was already set */
	FIX_STEP_FAILED,
	FIX_UNDO_START,
	FIX_UNDO_DONE,
	FIX_UNDO_SKIPPED,
	FIX_UNDO_FAILED, /* left as it is; the others are still undone */
	FIX_RECOVER,     /* an interrupted fix is found; step is none */
	FIX_EVENT_N
};

/*
 * Tells the caller as it goes; `text` is the reason of a failure or a skip, else NULL. `e` is NULL
 * before anything was begun (FIX_DRIFT); `s` is NULL where the journal itself fails, or for the fix as
 * a whole (FIX_RECOVER).
 */
typedef void fix_reporter(void *context, enum fix_event event, const struct journal_entry *e,
			  const struct step *s, const char *text);

struct fix_run {
	struct fix_host *host;
	fix_reporter *report; /* NULL: nobody listens */
	void *context;
	unsigned wait_s; /* for another run's lock */
	/* fix_apply: the journal's last number when the plan was made, 0: it had none. Another one by
	 * then is drift. */
	bool last_known;
	unsigned last;
	fix_runner *rehearse; /* fix_rehearse_undo: in place of host_rehearse_program; for tests */
	/* fix_forget: what the log has no line about is somebody's own, who says so */
	bool is_own;
};

enum fix_result {
	FIX_DONE,
	FIX_NOTHING,         /* everything was already set */
	FIX_DRIFT,           /* something is neither old nor new: nothing was changed */
	FIX_ROLLED_BACK,     /* a step failed; all before it were undone */
	FIX_NOT_ROLLED_BACK, /* a step failed, and some could not be undone */
};

/*
 * Before fix_apply, which does not need it: runs the programs that make files, into a file of onehop's own, and notes
 * in their steps what they would make and which lines that drops; also of the steps that confirm a trial. Nothing is
 * changed.
 */
int fix_foresee(const struct fix_run *run, struct plan *p);
/*
 * The same before fix_confirm of the trial `e`. Lines that were shown before the trial began are not noted, nor what
 * the files will be. -ENOSPC: what it writes has no room; begun, it would be rolled back, and the trial with it.
 */
int fix_foresee_confirm(const struct fix_run *run, const struct journal_entry *e, struct plan *p);
/* The same before fix_undo: what the files that it makes again would lose. Steps of `e` note only that then. */
int fix_foresee_undo(const struct fix_run *run, const struct journal_entry *e);
/*
 * Refuses while a fix is damaged: what it changed is unknown. Finishes what an interrupted run left,
 * by undoing it. Then looks at each step; writes the
 * journal; does the steps; on failure undoes backwards. 0 with *ret_result, or a negative errno
 * with a sentence when not even that was possible. *ret_number: of the fix (0: none was begun).
 */
int fix_apply(const struct fix_run *run, struct plan *p, enum fix_result *ret_result,
	      unsigned *ret_number);
/*
 * Whether fix_undo would undo fix `number` (0: the last that is in force, or that was interrupted) of
 * what journal_read gave; *ret is its index. -ENOENT: no such fix; -EALREADY: it is undone; -EBUSY: a
 * later one changed the same thing or builds on it, or may have and is damaged; its own damage.
 */
int fix_check_undo(struct fix_host *h, const struct journal_entry *entries, size_t n,
		   unsigned number, size_t *ret);
/*
 * What fix_undo would find, for each step: STEP_IS_OTHER also of what was set again since a reboot took it back. `ret_now`: as of
 * step_read_state; the caller has it all NULL, and frees.
 */
void fix_read_back(struct fix_host *h, const struct journal_entry *e, enum step_state *ret,
		   char **ret_now);
/*
 * What fix_undo of it would come to, as far as that shows before: FIX_DONE or FIX_NOT_ROLLED_BACK, and reported as if it were
 * done. Nothing is changed, and no program is run. A full disk does not show.
 */
enum fix_result fix_rehearse_undo(const struct fix_run *run, const struct journal_entry *e);
/*
 * The same of fix_recover, without a report: how many fixes it would undo. `would` (struct fix_host) gets what the files
 * are then, but for what only a program makes.
 */
size_t fix_rehearse_recover(const struct fix_run *run, const struct journal_entry *entries,
			    size_t n, struct source *would);
/* Undoes it, from its last step to its first, past errors. */
int fix_undo(const struct fix_run *run, unsigned number, enum fix_result *ret_result,
	     unsigned *ret_number);
/*
 * Closes fix `number`, which a person took back by other means: its entry stays, as forgotten, and
 * nothing else is changed. -ENOENT: no such fix; -EALREADY: it is over; -EBUSY: a step of it is in force.
 */
int fix_check_forget(const struct fix_run *run, const struct journal_entry *entries, size_t n,
		     unsigned number, size_t *ret);
int fix_forget(const struct fix_run *run, unsigned number);
/* Files that are onehop's alone and are there, though no fix that is open and can be read has them; in the arena. */
size_t fix_left_files(struct fix_host *h, const struct journal_entry *entries, size_t n,
		      struct arena *a, const char ***ret);
/* 0, or -EBUSY with a sentence: a fix is on trial, and no other is made before that is decided. */
int fix_check_trial(const struct journal_entry *entries, size_t n);
/*
 * Whether fix_confirm would: *ret is the index of the fix that is on trial, `number` or (0) the one
 * there is. -ENOENT: none is; -EAGAIN: its boot is still to come; -ESTALE: it is over.
 */
int fix_check_confirm(const struct journal_entry *entries, size_t n, unsigned number, size_t *ret);
/*
 * Makes what is on trial in this boot stay: carries `p` out as further steps of that fix, and takes
 * its trial away. If a step fails, or it is interrupted, all of the fix is taken back. `p` outlives
 * nothing of it. *ret_result is never FIX_NOTHING.
 */
int fix_confirm(const struct fix_run *run, unsigned number, struct plan *p,
		enum fix_result *ret_result);
/*
 * In a trial's boot: if the boot loader has not cleared its entry for the next boot, it is cleared here,
 * since without that all boots would be the trial's. The fix stays on trial.
 */
int fix_end_one_shot(const struct fix_run *run, unsigned number);
/*
 * Before a trial is confirmed, and before that is planned: entries of kernels that were installed during its boot
 * lose the words that only that boot was to have (panic=). `number` 0: of the fix that is on trial.
 */
int fix_drop_trial_words(const struct fix_run *run, unsigned number);
/*
 * Whether this boot is as healthy as the one before a trial was: a line for each unit that failed and had
 * not; for each device without its driver, and each network link that is not up.
 */
void fix_trial_units(struct fix_host *h, const struct journal_entry *e, struct strbuf *out);
void fix_trial_devices(struct fix_host *h, const struct journal_entry *e, struct strbuf *out);
/* Cut short or tried and not confirmed, as opposed to in force, undone, or tried to be undone as far as it can be. */
bool fix_is_interrupted(const struct journal_entry *e);
/* Undoes or finishes undoing what was interrupted; *ret_n fixes. Under the caller's lock. What could
 * not be undone is reported and stays in the journal: it does not keep others from being made. Refuses as
 * fix_apply does. */
int fix_recover(const struct fix_run *run, size_t *ret_n);
/* At boot: does the registers of all fixes in force again, those marked again_at_boot; *ret_n are
 * as they should be. All are tried; a negative errno is the first failure's, with its sentence; that a
 * fix is damaged is one. */
int fix_at_boot(const struct fix_run *run, size_t *ret_n);
