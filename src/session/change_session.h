/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of fix, undo, history or unlock on a system: the host below its root, its journal, what
 * became of each step, and signals, none of which may stop a change half-way.
 */
#pragma once

#include "fix/fix.h"
#include "session/ending.h"
#include "unlock/delivery_kernels.h"

/* The last event of each step, in the order in which the steps began. */
struct step_event {
	unsigned fix; /* 0: none was begun */
	size_t step;
	enum fix_event event;
	const char *what, *text; /* text: why it failed or was skipped; NULL: neither */
};

struct fix_outcome {
	bool undo, dry_run, confirmed; /* confirmed: what was on trial stays */
	int error;                     /* 0, or what fix_apply or fix_undo returned */
	const char *sentence;          /* of the error */
	enum fix_result result;
	unsigned number;                   /* of the fix; 0: none */
	const struct journal_entry *entry; /* the fix as now in the journal; NULL: unknown */
	const struct step_event *events;
	size_t event_n;
	const char *root;   /* folder of a system image; NULL: the running system */
	bool reboot;        /* a reboot is due */
	bool only_now;      /* --now was given */
	bool was_signalled; /* a signal to stop came */
	/*
	 * What an undo leaves: builds in DKMS for other kernels, and the folder of downloaded
	 * sources, NULL: none.
	 */
	struct left_build *left_builds;
	size_t left_build_n;
	const char *left_sources;
	/* What a damaged fix that was closed may have left: files that are onehop's alone. */
	const char **left_files;
	size_t left_file_n;
	/*
	 * Of a rehearsal: the present state of each step, and its value if that is neither old nor
	 * new, else NULL.
	 */
	enum step_state *look;
	char **now;
};

/* What a listener hears of each event. */
struct fix_news {
	enum fix_event event;
	const struct journal_entry *entry; /* NULL: nothing was begun */
	const struct plan *plan;           /* that the step is of; NULL: of none, as FIX_RECOVER */
	size_t index;                      /* of the step in it */
	const char *text;                  /* why it failed or was skipped; NULL */
	/*
	 * Of a build that failed: where its log is, below the root, and the last lines of it; NULL.
	 */
	const char *log_path, *log;
};

struct fix_ear {
	void *context;
	void (*hear)(void *context, const struct fix_news *news);
};

struct change_session {
	struct fix_host host;
	const char *root; /* NULL: the running system */
	char *real_root;
	char boot_id[40]; /* of the running system; "" for an image */
	struct journal_entry *journal;
	size_t journal_n;
	char *journal_unread; /* why, NULL: it was read */
	struct arena *arena;
	struct fix_ear ear;
	const struct plan *plan; /* the one being applied; NULL: undoing */
	const char *build_log;   /* of its "dkms build", below the root; NULL: it has none */
	struct step_event *events;
	size_t event_n;
};

/*
 * `root` NULL or "/": the running system. 0 or a negative errno with a sentence: then nothing has
 * to be closed.
 */
int change_session_open(const char *root, const struct fix_ear *ear, struct change_session *ret);
void change_session_close(struct change_session *s);

/* Reads the journal again. On failure journal_unread says why. */
int change_session_read_journal(struct change_session *s);
/* The entry of that number; NULL: none. */
const struct journal_entry *change_session_entry(const struct change_session *s, unsigned number);
/* Root, or the owner of the image's folder. */
bool change_session_may_write(const struct change_session *s);
/* For the functions of fix/fix.h; what they report is heard and remembered. */
struct fix_run change_session_run(struct change_session *s);

/*
 * Undoes an interrupted fix, so that the plan is made from a clean state. *ret_recovered: there was
 * one.
 */
enum ending change_session_recover(struct change_session *s, bool *ret_recovered);
/* Each reads the journal again. Texts of the outcome are the session's. */
struct fix_outcome change_session_apply(struct change_session *s, struct plan *p);
struct fix_outcome change_session_undo(struct change_session *s, unsigned number);
/*
 * What the undo of it would come to, and which lines would be lost; nothing is changed. Its events
 * are what would fail; only root's, or the image's owner's. 0, or a negative errno with a sentence:
 * what would be lost is unknown.
 */
int change_session_rehearse_undo(struct change_session *s, const struct journal_entry *e,
				 struct fix_outcome *ret);
/* Closes fix `number`, as fix_forget; `dry_run`: only checks. `is_own`: as in struct fix_run. */
struct fix_outcome change_session_forget(struct change_session *s, unsigned number, bool is_own,
					 bool dry_run);
struct fix_outcome change_session_confirm(struct change_session *s, unsigned number,
					  struct plan *p);
enum ending fix_outcome_ending(const struct fix_outcome *o);
/* Events of a fix that is not what the session is about. */
void change_session_drop_events(struct change_session *s);

/*
 * From here on no signal from the terminal, hangup or closed pipe stops the change.
 * change_session_was_signalled reports whether one came.
 */
void change_session_hold_signals(void);
bool change_session_was_signalled(void);
