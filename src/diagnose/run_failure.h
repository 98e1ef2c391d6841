/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed run of NCCL's says of peer traffic, and what to do. */
#pragma once

#include "result/run_failure.h"

#include <stdbool.h>
#include <stddef.h>

struct run_failure_meaning {
	enum run_failure_kind kind;
	int code;            /* of `kind`; -1: any */
	const char *meaning; /* a sentence without its full stop */
	const char *todo;
	const char *in_what;  /* only where the failure's `what` holds it; NULL: anywhere */
	enum run_waits waits; /* RUN_WAITS_UNKNOWN: any */
	/*
	 * Instead, where NCCL_P2P_DISABLE=1 is set: NCCL did not ask for peer access. NULL: the
	 * same
	 */
	const char *without_p2p;
	/* Instead, where a module for peer memory is loaded. NULL: the same */
	const char *with_peermem;
};

/* What is known besides the failure. */
struct run_failure_facts {
	bool p2p_off; /* NCCL_P2P_DISABLE=1 is set */
	bool peermem; /* nvidia_peermem or nv_peer_mem is loaded */
};

/* What to do. */
const char *run_failure_todo(const struct run_failure_meaning *m, struct run_failure_facts known);
/* Never NULL. */
const struct run_failure_meaning *run_failure_find(const struct run_failure *f);
/* It only says that something failed: another line of the same kind tells more. */
bool run_failure_is_vague(const struct run_failure *f);
/* A fault of the machine that a text shows would explain it. */
bool run_failure_follows(const struct run_failure *f);
/* "CUDA error 700, an illegal memory access was encountered", without the rank. */
const char *run_failure_text(const struct run_failure *f, char *buf, size_t size);
const char *run_failure_word(enum run_failure_kind kind); /* "cuda-error" */
