/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench nccl` prints: nccl-tests' table, and what it means. */
#pragma once

#include "bench/nccl_figures.h"

struct document;
struct machine;
struct nccl_log;
struct strbuf;

/* One arm: with P2P as NCCL finds it, or without. */
struct nccl_arm {
	struct nccl_result result;
	size_t process_gpus;           /* devices of each process */
	const char *device;            /* "CUDA", or STAND_INS_TEXT */
	const struct machine *machine; /* with the GPUs; NULL: none, or GPUs of several hosts */
	struct nccl_log *log;          /* NULL: not kept */
	bool several_logs;             /* other processes have others */
};

/* The lines of nccl-tests 2.19; head needs start and all ranks. */
void report_nccl_head(struct strbuf *out, const struct nccl_arm *arm);
void report_nccl_row(struct strbuf *out, const struct nccl_plan *plan, const struct nccl_row *row);
void report_nccl_foot(struct strbuf *out, const struct nccl_result *r);

/* Whether the data was right, how NCCL's ranks reach each other, what did not settle. */
void report_nccl_verdict(struct document *out, const struct nccl_arm *arm, bool verbose);
/* Size by size: with P2P, without, and the ratio. */
void report_nccl_p2p(struct document *out, const struct nccl_result *on,
		     const struct nccl_arm *off);
