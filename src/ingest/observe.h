/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured or logged, as observed facts of a machine, which `check` weighs. */
#pragma once

#include <stddef.h>

struct figures;
struct machine;
struct nccl_log;

/*
 * Each appends to m->observed what concerns pairs of the machine's own GPUs and copies what it
 * keeps. GPUs are found by PCI address, else by NVML's index, else, when there are as many as the
 * machine has, by CUDA's number. Returns how many were appended, or -EINVAL with a sentence:
 * results of other GPUs, of stand-ins, of several hosts, or with nothing on pairs.
 * Each for one kind of text; here for tests.
 */
int figures_observe(const struct figures *f, struct machine *m);
int nccl_log_observe(const struct nccl_log *l, struct machine *m);
/*
 * Adds to figures of the same run which way NCCL took between their GPUs. Nothing if a variable told NCCL how
 * to go: that says nothing of the machine.
 */
void nccl_log_add_figures(const struct nccl_log *l, struct figures *f);
/*
 * The same of files, recognised by content: results that figures_open reads, and NCCL's debug logs,
 * also both in one file. 0 or a negative errno with a sentence.
 */
int observe_files(const char *const *paths, size_t n, struct machine *m);
