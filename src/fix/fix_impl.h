/* SPDX-License-Identifier: Apache-2.0 */
/* What fix*.c share. */
#pragma once

#include "fix/fix.h"

void fix_tell(const struct fix_run *run, enum fix_event event, const struct journal_entry *e,
	      const struct step *s, const char *text);

/* The lock, and the journal under it, swept; second names that are not needed any more are gone. */
struct fix_session {
	int lock;
	struct journal_entry *entries;
	size_t n;
};

#define AUTO_SESSION CLEANUP(fix_session_done)
int fix_session_open(const struct fix_run *run, struct fix_session *ret);
void fix_session_done(struct fix_session *s);

/* 0, or the first damage that is not over, as the caller's refusal. */
int fix_check_damage(const struct journal_entry *entries, size_t n);
/* Entry `at`: -EBUSY, with a sentence, if a later one changed the same or builds on it, or is damaged and may have. */
int fix_check_later(const struct journal_entry *entries, size_t n, size_t at);
/* -ENOMEDIUM, with a sentence, if what a step writes lies on a file system that is not mounted. */
int fix_check_mounted(struct fix_host *h, const struct plan *p);
/* Adds the units that failed already to the plan's baseline, as far as systemd says. */
void fix_note_failed_units(struct fix_host *h, struct plan *p);
/* Adds a note to the plan for each file system that has no room for what its steps write, as far as that is known. */
void fix_foresee_room(struct fix_host *h, struct plan *p);
/* 0, or -ENOSPC with a sentence: confirming the trial with these steps has no room, as far as that is known. */
int fix_check_room(struct fix_host *h, struct plan *p);
/* Of a plan with a trial: the lines that confirming it will lose were shown with the plan. */
void fix_note_shown(struct plan *p);
/* Undoes the steps of the trial alone, past errors; how many could not be undone. */
size_t fix_take_back_trial(const struct fix_run *run, struct journal_entry *e);
/* What reads as new in another boot than the fix's is somebody else's, unless onehop did it again. */
bool fix_reboot_took_back(struct fix_host *h, const struct journal_entry *e, const struct step *s);
/*
 * Whether something of the step is there, also where somebody changed it since: lines and words of the fix count.
 * Negative: it cannot be looked at, so it may be there.
 */
int fix_is_left(struct fix_host *h, const struct step *s);
/*
 * The steps that are, or may be, as the fix leaves them although the log has no line about them: how many, and (the
 * caller frees) which. Journals of before did not note which steps were to be done: none; nor has one that is damaged.
 */
size_t fix_find_lost(struct fix_host *h, const struct journal_entry *e, bool **ret);
/* If there is one, every step without a line counts as begun, so that it is undone by what it reads as. */
void fix_adopt_lost(struct fix_host *h, struct journal_entry *e);
/*
 * Undoes all of an entry that was begun, past errors, after its state was written; how many steps
 * could not be undone.
 */
size_t fix_take_back(const struct fix_run *run, struct journal_entry *e);
/* fix_recover for all but `except` (0: none) of what was read, and but what stands under a damaged one. */
int fix_recover_entries(const struct fix_run *run, struct journal_entry *entries, size_t n,
			unsigned except, size_t *ret_n);
/*
 * Lines of a GENERATED step's file that are gone from it: plain ones in the plan's arena, NULL-ended; NULL: none.
 * Empty ones do not count.
 */
const char *const *fix_lost_lines(const struct plan *p, const struct step *s,
				  const struct bytes *before, const struct bytes *after,
				  bool comments);
/*
 * -EBUSY, with a sentence, if a file that a program makes still has what the fix put there, and the program would not
 * write it any more. Runs the program, under the caller's lock.
 */
int fix_check_made_again(struct fix_host *h, const struct journal_entry *e);
