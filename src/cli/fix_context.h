/* SPDX-License-Identifier: Apache-2.0 */
/* What fix, undo and history share: the host below --root, its journal, and the progress of steps. */
#pragma once

#include "cli/command.h"
#include "report/report_fix.h"
#include "unlock/delivery_kernels.h"

/* clang-format off */
#define COMMON_ROOT(TYPE) {"root", 0, OPTION_FILE, offsetof(TYPE, root), "DIR", \
	"the mounted system image at DIR instead of the running system", \
	NULL, 0, 0, 0}
/* clang-format on */

struct fix_context {
	const struct common_options *common;
	struct fix_host host;
	const char *root; /* NULL: the running system */
	char *real_root;
	char boot_id[40]; /* of the running system; "" for an image */

	struct journal_entry *journal;
	size_t journal_n;
	char *journal_unread; /* why, NULL: it was read */

	/* ---- progress ---- */
	const struct plan *plan; /* the one being applied; NULL: undoing */
	bool quiet;              /* no progress lines */
	bool started;            /* "1/4 ... " was printed without its end */
	struct arena *arena;
	struct step_event *events;
	size_t event_n;
	unsigned announced; /* the fix whose heading was printed */
	/* Log of "dkms build", below the root; its last lines are printed if that fails. NULL: none. */
	const char *build_log;
};

/* `root` NULL or "/": the running system. 0, or a code after a message. */
int fix_context_open(const struct common_options *common, const char *root,
		     struct fix_context *ret);
void fix_context_close(struct fix_context *s);

/* Reads the journal again. On failure journal_unread says why. */
int fix_context_read_journal(struct fix_context *s);
/* The entry of that number; NULL: none. */
const struct journal_entry *fix_context_entry(const struct fix_context *s, unsigned number);

/* Root, or the owner of the image's folder. */
bool fix_context_may_write(const struct fix_context *s);

struct fix_run fix_context_run(struct fix_context *s);
/* Undoes an interrupted fix, so that the plan is made from a clean state. 0, or an exit code after a
 * message. */
int fix_context_recover(struct fix_context *s);
/* Applies the plan, prints progress, and reads the journal again. */
struct fix_outcome fix_context_carry_out(struct fix_context *s, struct plan *p);

/*
 * From here on no signal from the terminal, hangup or closed pipe stops the change.
 * fix_context_was_signalled reports whether one came.
 */
void fix_context_hold_signals(void);
bool fix_context_was_signalled(void);

/*
 * Whether only root can replace the file at this absolute path: it and each folder above it belong to
 * root, are not symbolic links, and are not writable by group or others.
 */
bool is_roots_alone(const char *path);

/*
 * The frame of "undo [N]" and "history [N]": `run` gets the open host, its journal unread, and N, 0
 * if none was given. The exit code.
 */
int fix_context_with_number(const struct common_options *common, const char *root, const char *word,
			    int (*run)(struct fix_context *s, unsigned number, const void *options),
			    const void *options);
/* Builds that an undo left in DKMS for other kernels, in the arena of `s`. */
size_t fix_context_left_builds(struct fix_context *s, const struct fix_outcome *o,
			       struct left_build **ret);
/* The folder of downloaded sources that an undo left; NULL: none. In the arena of `s`. */
const char *fix_context_left_sources(struct fix_context *s, const struct fix_outcome *o);
/* Prints the last lines of the outcome, errors on stderr. Returns the exit code. */
int finish_outcome(struct fix_context *s, const struct fix_outcome *o);
enum exit_code outcome_code(const struct fix_outcome *o);
