/* SPDX-License-Identifier: Apache-2.0 */
/* How a run failed, as its log shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cause comes before its consequences: reports keep this order. */
enum run_failure_kind {
	RUN_TEST_FAILED, /* a test that checks data got wrong data, or ended with an error */
	RUN_CUDA_ERROR,  /* a CUDA call failed, or a kernel did before it */
	RUN_RDMA_ERROR,  /* a NIC could not use memory */
	RUN_UNREACHED,   /* processes could not meet, before any GPU was used */
	RUN_CRASHED,     /* a process died of a signal */
	RUN_NCCL_ERROR,  /* NCCL gave up */
	RUN_TIMED_OUT,   /* PyTorch's watchdog: a collective did not end */
	RUN_GAVE_UP,     /* a process ended itself (SIGABRT), after one of those above */
	RUN_ABORTED,     /* a communicator was aborted */
	RUN_FAILURE_KIND_N,
};

/* Of collectives that timed out: in what the ranks of a run wait. */
enum run_waits {
	RUN_WAITS_UNKNOWN, /* one rank is shown, or the lines are of several groups of ranks */
	RUN_WAITS_SAME,
	RUN_WAITS_BEHIND, /* some in an earlier collective than others */
	RUN_WAITS_MIXED,  /* in the same place, but in different operations */
};

struct run_failure {
	enum run_failure_kind kind;
	int rank;         /* -1: not in the line */
	int code;         /* cudaError_t or ncclResult_t; -1: not in the line */
	int64_t sequence; /* of the collective that timed out; -1: none */
	bool of_group;    /* that sequence is of a group of some ranks, which counts by itself */
	enum run_waits waits;
	const char *where; /* in NCCL's source: "transport/nvls.cc:223"; NULL: not in the line */
	/*
	 * The GIDs of the two NICs of a connection that failed, as printed; NULL: not in the line
	 */
	const char *own_gid, *peer_gid;
	const char *what; /* "an illegal memory access was encountered", "ALLREDUCE"; "": nothing */
};

/* Sets `waits` of all of them that timed out; they are of one run. */
void run_failures_compare(struct run_failure *const *failures, size_t n);
