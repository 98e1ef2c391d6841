/* SPDX-License-Identifier: Apache-2.0 */
/* Adds observations to a machine. */
#pragma once

#include "machine/machine.h"

struct figures;

/* Sets the NVML indexes of the GPUs in figures that were measured on this machine. */
void figures_number_gpus(struct figures *f, const struct machine *m);
/*
 * Adds what figures show about pairs of this machine, and the tests of one or several GPUs that failed.
 * Returns the number of observations. gpus[i] is the machine's GPU for GPU i of the figures, -1 if it is
 * gone; rows about such GPUs are skipped. `kept`: the figures are from this machine's store, so an
 * observation names the run; otherwise it names the place in the file.
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
/* Whether it is one of observed_add_failed_test's. */
bool observed_is_failed_test(const struct observed *o);
