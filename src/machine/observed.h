/* SPDX-License-Identifier: Apache-2.0 */
/* Adds observations to a machine. */
#pragma once

#include "machine/machine.h"

struct figures;

/* Runs that leave their result in the state folder, each in a file of its own. */
struct kept_run {
	const char *tool, *file; /* "onehop bench p2p", "observed-p2p.json" */
};
#define KEPT_RUN_N 3
extern const struct kept_run kept_runs[KEPT_RUN_N];

/*
 * Records in figures that were measured on this machine which GPUs it has and the conditions of the
 * measurement.
 */
void figures_note_machine(struct figures *f, const struct machine *m);
/*
 * All GPUs of the machine in its order, and the present conditions; no rows. Free with
 * figures_free.
 */
struct figures *figures_of_machine(const struct machine *m);
/*
 * Appends to m->weighed, with what has changed; `gpus` as below. `kept`: from this machine's store.
 */
struct weighed *weighed_add(struct machine *m, const struct figures *f, const int *gpus, bool kept);
/*
 * Adds what figures show about pairs of this machine, and the tests of one or several GPUs that
 * failed. Returns the number of observations. gpus[i] is the machine's GPU for GPU i of the
 * figures, -1 if it is gone; rows about such GPUs are skipped. `kept`: the figures are from this
 * machine's store, so an observation names the run; otherwise it names the place in the file.
 */
int observed_add_figures(struct machine *m, const struct figures *f, const int *gpus, bool kept);
/* `from` is copied. Valid until the next is added. */
struct observed *observed_add(struct machine *m, enum observed_kind kind, int initiator, int target,
			      const char *from);
/*
 * A test of n GPUs as a whole that failed: of all of the machine one observation, else one of each
 * ordered pair. n = 1: a test of one GPU by itself. Texts are copied.
 */
void observed_add_failed_test(struct machine *m, const int *gpus, size_t n, const char *what,
			      const char *from);
/* Whether it was added by observed_add_failed_test. */
bool observed_is_failed_test(const struct observed *o);
