/* SPDX-License-Identifier: Apache-2.0 */
/* Adding to what was seen to happen on a machine. */
#pragma once

#include "machine/machine.h"

struct figures;

/* What NVML of this machine calls the GPUs of figures that were made on it. */
void figures_number_gpus(struct figures *f, const struct machine *m);
/*
 * What figures say of pairs of this machine, and which tests of whole GPUs failed: how many observations.
 * `gpus`: the machine's of each of the figures, -1: gone, of which nothing is said. `kept`: by onehop
 * itself on this machine, so that what was seen is named by its run and not by a place in a file.
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
