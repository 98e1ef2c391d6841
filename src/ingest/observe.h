/* SPDX-License-Identifier: Apache-2.0 */
/* Adds measured or logged results to a machine as observations, which `check` evaluates. */
#pragma once

#include <stddef.h>

struct figures;
struct machine;
struct nccl_log;

/*
 * Each appends to m->observed what concerns pairs of the machine's own GPUs and copies what it
 * keeps. GPUs are found by PCI address, else by NVML's index, else, when there are as many as the
 * machine has, by CUDA's number. Returns how many were appended, or -EINVAL with a sentence:
 * results of other GPUs, of simulated devices, of several hosts, or without facts about pairs. Each
 * is for one kind of text; exported for tests.
 */
int figures_observe(const struct figures *f, struct machine *m);
int nccl_log_observe(const struct nccl_log *l, struct machine *m);
/* The same of a log of several hosts, of which the machine is this one; NULL: that is unknown. */
int nccl_log_observe_host(const struct nccl_log *l, const char *host, struct machine *m);
/*
 * Adds to figures of the same run the paths that NCCL used between their GPUs. Adds nothing if a
 * variable chose the path: then it says nothing about the machine.
 */
void nccl_log_add_figures(const struct nccl_log *l, struct figures *f);
/*
 * The same for files, recognised by content: results that figures_open reads, and NCCL's debug
 * logs, also both in one file. 0 or a negative errno with a sentence.
 */
int observe_files(const char *const *paths, size_t n, struct machine *m);
