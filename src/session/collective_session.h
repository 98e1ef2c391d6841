/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of bench nccl or bench collective: this process's ranks, with P2P and without, NCCL's log
 * read, the results kept.
 */
#pragma once

#include "base/strbuf.h"
#include "bench/collective_figures.h"
#include "session/session.h"
#include "session/tune_session.h"

struct nccl_log;

/*
 * What libonehop is measured against, a batch of each in turn, as the command's words are numbered.
 */
enum collective_against {
	AGAINST_NOTHING,
	AGAINST_NCCL,
	AGAINST_SYMMETRIC /* NCCL with its buffers in symmetric windows */
};

/* The options as a person writes them; 0: the default. Choices are numbered from 1. */
struct collective_choice {
	struct device_options devices;
	const char *from, *library;
	const char *shim; /* drop-in/libnccl.so.2, for ENGINE_SHIM */
	const char *min, *max, *step, *root;
	enum collective_engine engine;
	int against; /* enum collective_against */
	bool with_shim;
	int op, type, redop;
	int count, factor, iterations, warmup, graph, budget_s, deadline_s;
	bool once, no_verify, processes, p2p_off, alone;
	bool simulate;            /* --simulate: a model, nothing runs */
	bool one_place, in_place; /* one_place: only in place, or only out of place */
};

/* One arm: with P2P as NCCL finds it, or without. */
struct collective_arm {
	struct collective_result result;
	size_t process_gpus;           /* devices of each process */
	const char *device;            /* "CUDA", or SIMULATED_TEXT */
	const struct machine *machine; /* with the GPUs; NULL: none, or GPUs of several hosts */
	const struct tune_use *choice; /* of libonehop's algorithms; NULL: it is not used */
	struct nccl_log *log;          /* NULL: not kept */
	bool several_logs;             /* other processes have others */
	bool off;                      /* without P2P */
};

/* Of rank 0's process only, as it comes. */
struct collective_view {
	void *context;
	void (*start)(void *context, const struct collective_arm *arm);
	void (*row)(void *context, const struct collective_arm *arm,
		    const struct collective_row *row);
	void (*end)(void *context, const struct collective_arm *arm);
};

struct collective_session {
	const struct collective_choice *o;
	const struct session_ear *ear;
	struct session_pace pace;
	unsigned places; /* sizes, in place and out of place, that a run times */
	const struct collective_view *view;
	struct devices devices;
	struct collective_run run;
	struct collective_arm arms[2]; /* with P2P, without */
	struct tune_use choice;        /* of libonehop's algorithms */
	struct figures *figures; /* of both; NULL: nothing was run, or another process has them */

	/* ---- while it runs ---- */
	struct collective_arm *arm;
	bool quiet;        /* another process reports */
	bool keeps_log;    /* the user did not ask NCCL for one of their own */
	struct strbuf log; /* NCCL's, of the arm that runs */
};

/* small: for simulated devices, which are slow. 0, or -EINVAL with a sentence. */
int collective_choice_plan(const struct collective_choice *o, bool small, uint64_t memory_bytes,
			   struct collective_plan *ret);
/*
 * 0 or a negative errno with a sentence: refused. No device may be left. collective_session_done
 * whatever the answer.
 */
int collective_session_begin(struct collective_session *s, const struct collective_choice *o,
			     const struct session_ear *ear, const struct collective_view *view);
/* 0, or as collective_run. What there is by then is in the arms, and kept. */
int collective_session_run(struct collective_session *s);
void collective_session_done(struct collective_session *s);
