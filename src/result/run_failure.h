/* SPDX-License-Identifier: Apache-2.0 */
/* How a run failed, as its log shows. */
#pragma once

#include <stdint.h>

/* A cause comes before its consequences: reports keep this order. */
enum run_failure_kind {
	RUN_TEST_FAILED, /* a test that checks data got wrong data, or ended with an error */
	RUN_CUDA_ERROR,  /* a CUDA call failed, or a kernel did before it */
	RUN_CRASHED,     /* a process died of a signal */
	RUN_NCCL_ERROR,  /* NCCL gave up */
	RUN_TIMED_OUT,   /* PyTorch's watchdog: a collective did not end */
	RUN_ABORTED,     /* a communicator was aborted */
	RUN_FAILURE_KIND_N,
};

struct run_failure {
	enum run_failure_kind kind;
	int rank;          /* -1: not in the line */
	int code;          /* cudaError_t or ncclResult_t; -1: not in the line */
	int64_t sequence;  /* of the collective that timed out; -1: none */
	const char *where; /* in NCCL's source: "transport/nvls.cc:223"; NULL: not in the line */
	/* The GIDs of the two NICs of a connection that failed, as printed; NULL: not in the line */
	const char *own_gid, *peer_gid;
	const char *what; /* "an illegal memory access was encountered", "ALLREDUCE"; "": nothing */
};
