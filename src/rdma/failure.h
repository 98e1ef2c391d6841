/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of a transfer failed with: cause, evidence and remedy, as a table. */
#pragma once

#include <stddef.h>

/* In the order in which a transfer takes them: the first that fails is the one that is told. */
enum rdma_step {
	RDMA_STEP_NONE, /* nothing failed */
	RDMA_STEP_LIBRARY,
	RDMA_STEP_OPEN,
	RDMA_STEP_PORT,
	RDMA_STEP_GID,
	RDMA_STEP_GPU,    /* opening the GPU, allocating its memory */
	RDMA_STEP_EXPORT, /* its memory as a dma-buf */
	RDMA_STEP_REGISTER_HOST,
	RDMA_STEP_REGISTER_DMABUF,
	RDMA_STEP_REGISTER_PEER,
	RDMA_STEP_QUEUE, /* protection domain, completion queue, queue pair */
	RDMA_STEP_INIT,
	RDMA_STEP_RTR,
	RDMA_STEP_RTS,
	RDMA_STEP_POST,
	RDMA_STEP_COMPLETION, /* code: enum verbs_status */
	RDMA_STEP_WAIT,       /* our own deadline passed */
	RDMA_STEP_DATA,       /* code: enum wrong_kind */
	RDMA_STEP_WORKER,     /* the process that did it hung or died */
	RDMA_STEP_N
};

const char *rdma_step_word(enum rdma_step s); /* "register-dmabuf" */
const char *rdma_step_text(enum rdma_step s); /* "registering GPU memory as a dma-buf" */

/* A row: what this code means at this step. Texts are sentences, or parts of one, for people. */
struct rdma_cause {
	enum rdma_step step;
	int code;             /* errno, status or kind, as the step has it */
	const char *word;     /* "no-peer-memory": stable, for JSON and tests */
	const char *cause;    /* what it usually is */
	const char *evidence; /* what to look at to be sure */
	const char *remedy;   /* what to do */
};

/* For tests too. */
extern const struct rdma_cause rdma_causes[];
extern const size_t rdma_cause_n; /* for tests too */

/* NULL: nothing is known of that code. */
const struct rdma_cause *rdma_cause_find(enum rdma_step step, int code);

/* What ended a job. Functions of this folder fill it where they return a negative errno. */
struct rdma_failure {
	enum rdma_step step;
	int code;        /* as in struct rdma_cause */
	unsigned vendor; /* of a completion: vendor_err, what people search for; 0: none */
	char text[256];  /* what happened, a sentence's worth: the call, its answer, the numbers */
};

/* Fills it once: what failed first is what is told. Returns -EIO, for `return rdma_fail(...)`. */
int rdma_fail(struct rdma_failure *f, enum rdma_step step, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
