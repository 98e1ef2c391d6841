/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was changed, on disk before the change: var/lib/onehop below the root. What files held, and what
 * programs and errors quote of them, may be a secret: fixes/ and all in it is its owner's (0700, 0600).
 *
 *   lock                  held while something is changed
 *   fixes/3/plan.json     the plan, whole, before the first write (schema "version")
 *   fixes/3/old-0         content of step 0's target before; new-0: after. Plain copies, so that a
 *   fixes/3/new-0         person without onehop can restore them. Their SHA-256 is in the
 *                         plan, but of a new file that a program made
 *   fixes/3/log.jsonl     one line an event: what is about to be done, what is done, what failed.
 *                         Its first line is there before the plan is, so that a plan without a log
 *                         has lost it. Each line has a sum of itself and the one before
 *   in-force              what `onehop check` looks for, a line each: "fix 3 BOOT-ID kernel-parameter
 *                         iommu=pt", "fix 3 BOOT-ID acs 0000:22:00.0 0011"; the boot is the one in
 *                         which the fix was made, "-" if not known (a mounted image).
 *                         Kernel parameters of a fix on trial are "trial iommu=pt". "unfinished
 *                         applying", "unfinished undoing": it is at work, was interrupted, or could
 *                         not be undone. "undone reboot": in that boot, which still has its changes.
 *                         What a later fix set otherwise is not there. "acs-now": a register that
 *                         nothing writes again in another boot. Lines of a fix that cannot be
 *                         read stay
 */
#pragma once

#include "fix/step.h"

#define JOURNAL_FOLDER        "var/lib/onehop"
#define JOURNAL_VERSION       2
#define JOURNAL_VERSION_PLAIN 1 /* of a fix without a trial boot, which older ones can read */
#define JOURNAL_CHAIN         17

enum fix_state {
	FIX_APPLYING, /* interrupted while it was applied, if nobody holds the lock */
	FIX_APPLIED,
	FIX_ON_TRIAL, /* all but the kernel parameters is in force; they are for one boot */
	FIX_UNDOING,  /* interrupted while it was undone, or some steps could not be undone */
	FIX_UNDONE,
	FIX_FORGOTTEN, /* taken back by a person, who says so */
	FIX_STATE_N
};

/* How far a fix in FIX_ON_TRIAL is. */
enum trial {
	TRIAL_NONE,  /* no such fix */
	TRIAL_WAITS, /* for its boot; and in an image, where it is unknown */
	TRIAL_RUNS,  /* this boot has its parameters */
	TRIAL_OVER,  /* a later boot went without them: they were not confirmed */
};

enum step_mark {
	MARK_NONE, /* never begun: what it is about was already set, or an earlier step failed */
	MARK_STARTED,
	MARK_DONE,
	MARK_FAILED,
	MARK_UNDO_STARTED,
	MARK_UNDONE,
	MARK_UNDO_FAILED,
	MARK_N
};

struct journal_entry {
	unsigned number;
	enum fix_state state;
	char date[32];         /* of the start, UTC, "2026-11-21T23:05:00Z" */
	char boot_id[40];      /* of the boot in which it was made; "": not known */
	char last_boot_id[40]; /* of the boot in which its state changed last */
	struct plan *plan;
	enum step_mark *marks; /* one a step: the last that was written of it */
	/* One a step: why it failed, also once it was taken back; why it could not be, until it could. NULL:
	 * neither. */
	const char **errors;
	/* it came to its end once; undone without that, it failed or was interrupted */
	bool was_applied;
	bool was_on_trial; /* once: it was confirmed if it is applied */
	enum trial trial;  /* by journal_read and journal_list */
	bool displaced; /* TRIAL_WAITS: somebody has set the next boot to something else; by the same */
	bool has_words; /* it was on trial, and this boot has its parameters; by the same */
	/* The first step that confirming it added, in the run that confirms; 0: none was. */
	size_t added_at;
	bool no_log; /* it is lost: the first line is on disk before the plan is */
	char chain
		[JOURNAL_CHAIN]; /* of the last line of its log, which the next one goes on from */
	bool has_chain;          /* a line of its log has one: all behind it need one */
	/*
	 * 0, or the negative errno and the sentence of why it is unknown what it did. Its plan has no
	 * steps then, unless only the log was lost; its state is what a log that can be read says.
	 */
	int damage;
	const char *damaged;
};

/* Undone or forgotten, as far as its log can be trusted: it is in nobody's way, damaged or not. */
bool journal_is_over(const struct journal_entry *e);
/* Neither in force nor undone: interrupted, unless another run is at it now, or not all of it could be
 * undone, or tried and not confirmed. What is damaged is neither. */
bool journal_is_unfinished(const struct journal_entry *e);
/* What undoing it in another boot than its own takes back only with a reboot. */
bool journal_undo_needs_reboot(const struct journal_entry *e);
/* It was undone in the boot `boot_id`, which still has what it changed. */
bool journal_undo_is_pending(const struct journal_entry *e, const char *boot_id);

/*
 * Waits `wait_s` seconds for another run, then -EBUSY with a sentence. The descriptor is the lock.
 * Programs that are run inherit it, so that the lock holds until they end, also if this process is
 * killed; journal_unlock (-1: nothing) gives it up for all.
 */
int journal_lock(struct fix_host *h, unsigned wait_s, int *ret_fd);
void journal_unlock(int fd);

/*
 * All entries, oldest first; no journal: none. One that is of a newer onehop, or cannot be read, is
 * there as damaged; -EACCES: it needs more privilege. A last line of a log that was torn by a power
 * cut is left out.
 */
int journal_read(struct fix_host *h, struct journal_entry **ret, size_t *ret_n);
/* The same without the contents of files, which only their owner may see: their data is "". */
int journal_list(struct fix_host *h, struct journal_entry **ret, size_t *ret_n);
void journal_free(struct journal_entry *entries, size_t n);
/* Removes what a run that was cut short left: fixes without a plan, torn last lines; takes away others' permissions
 * of journals of before. Under the lock. */
int journal_sweep(struct fix_host *h);

/* Writes the plan, durably, as the next number. The entry borrows the plan: no journal_free. */
int journal_begin(struct fix_host *h, struct plan *p, struct journal_entry *ret);
/* One line of the log, durably. `text`: an error; `output`: what a program printed; NULL: none. */
int journal_mark(struct fix_host *h, struct journal_entry *e, size_t step, enum step_mark mark,
		 const char *text, const char *output);
/* Adds the steps of `p`, which outlives the entry, behind those that it has; durably, none is begun. */
int journal_extend(struct fix_host *h, struct journal_entry *e, const struct plan *p);
int journal_state(struct fix_host *h, struct journal_entry *e, enum fix_state state);
/* Content that only became known now: new-STEP. */
int journal_new_content(struct fix_host *h, const struct journal_entry *e, size_t step);
/*
 * What somebody else made of a file, before undo makes it again: found-STEP, or found-STEP.2 and so on, because nothing
 * that was kept is replaced. The caller frees the path. 1: it is kept now; 0: it was kept already.
 */
int journal_found_content(struct fix_host *h, const struct journal_entry *e, size_t step,
			  const struct bytes *found, char **ret_path);
/* Rewrites in-force from all entries, if that changes it. */
int journal_write_in_force(struct fix_host *h);

const char *fix_state_word(enum fix_state s); /* "applying", "applied", "undoing", "undone", ... */
const char *step_mark_word(enum step_mark m); /* "started", "undo-failed", ... */

/* This boot's, "" if not known. */
void journal_boot_id(struct fix_host *h, char ret[static 40]);
/*
 * An entry from the bytes of its plan.json and log.jsonl, but for the contents of its files (their
 * data is "" then); `where` names it in sentences. Free with journal_free_entry.
 * Here for tests and fuzzers.
 */
int journal_parse(const char *plan, size_t plan_size, const char *log, size_t log_size,
		  const char *where, struct journal_entry *ret);
void journal_free_entry(struct journal_entry *e);
