/* SPDX-License-Identifier: Apache-2.0 */
/* What fix, undo and history share: the host below --root, its journal, and being told of steps. */
#pragma once

#include "cli/command.h"
#include "report/report_fix.h"
#include "unlock/delivery_kernels.h"

/* clang-format off */
#define COMMON_ROOT(TYPE) {"root", 0, OPTION_FILE, offsetof(TYPE, root), "DIR", \
	"the system whose files are below DIR, a mounted image, instead of the running one", \
	NULL, 0, 0, 0}
/* clang-format on */

struct fix_context {
	const struct common_options *common;
	struct fix_host host;
	const char *root; /* as reports want it: NULL for the running system */
	char *real_root;
	char boot_id[40]; /* of the running system; "" for an image */

	struct journal_entry *journal;
	size_t journal_n;
	char *journal_unread; /* why, NULL: it was read */

	/* ---- what steps told ---- */
	const struct plan *plan; /* that is being applied; NULL: undoing */
	bool quiet;              /* lines are not printed as it goes */
	bool started;            /* the line of a step stands without its end */
	struct arena *arena;
	struct step_event *events;
	size_t event_n;
	unsigned announced; /* the fix whose heading was printed */
	/* Of "dkms build", below the root: its last lines are printed when that fails. NULL: none. */
	const char *build_log;
};

/* `root` NULL or "/": the running system. 0, or a code after a message. */
int fix_context_open(const struct common_options *common, const char *root,
		     struct fix_context *ret);
void fix_context_close(struct fix_context *s);

/* Reads the journal again; what could not be read is in journal_unread. */
int fix_context_read_journal(struct fix_context *s);
/* The entry of that number; NULL: none. */
const struct journal_entry *fix_context_entry(const struct fix_context *s, unsigned number);

/* Root, or the owner of the image's folder. */
bool fix_context_may_write(const struct fix_context *s);

struct fix_run fix_context_run(struct fix_context *s);
/* What an interrupted run left is taken back before a plan is made, which would be of it. 0, or a code
 * after a message. */
int fix_context_recover(struct fix_context *s);
/* Carries the plan out, telling as it goes; the journal is read again. */
struct fix_outcome fix_context_carry_out(struct fix_context *s, struct plan *p);

/*
 * From here on no signal of a terminal, a session's end or a closed pipe stops what is being done.
 * fix_context_was_signalled tells whether one came.
 */
void fix_context_hold_signals(void);
bool fix_context_was_signalled(void);

/*
 * Whether none but root can put something else at this absolute path without links: it and each
 * folder on its way are root's, and neither a group nor others may write there.
 */
bool is_roots_alone(const char *path);

/*
 * The frame of "undo [N]" and "history [N]": `run` gets the open host, its journal unread, and N, 0
 * if none was given. The exit code.
 */
int fix_context_with_number(const struct common_options *common, const char *root, const char *word,
			    int (*run)(struct fix_context *s, unsigned number, const void *options),
			    const void *options);
/* What an undo left in DKMS for other kernels, in the arena of `s`. */
size_t fix_context_left_builds(struct fix_context *s, const struct fix_outcome *o,
			       struct left_build **ret);
/* Where sources that were fetched for what was undone lie still; NULL: nowhere. In the arena of `s`. */
const char *fix_context_left_sources(struct fix_context *s, const struct fix_outcome *o);
/* Prints the outcome's last lines (text) and gives the exit code; says on stderr what was refused. */
int finish_outcome(struct fix_context *s, const struct fix_outcome *o);
enum exit_code outcome_code(const struct fix_outcome *o);
