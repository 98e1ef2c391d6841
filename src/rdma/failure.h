/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of a transfer failed with: cause, evidence and remedy, as a table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of a transfer: the first step that fails is the one reported. */
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
	RDMA_STEP_WORKER,     /* the worker process hung or died */
	RDMA_STEP_N
};

const char *rdma_step_text(enum rdma_step s); /* "registering GPU memory as a dma-buf" */

/* Where more is said of what has no row. */
#define RDMA_DRIVER_LOG "the kernel log: lines of NVRM and of the NIC's driver"

/* One row: what this code means at this step. Texts are sentences or parts of one. */
struct rdma_cause {
	enum rdma_step step;
	int code;             /* errno, status or kind, depending on the step */
	const char *word;     /* "no-peer-memory": stable, for JSON and tests */
	const char *cause;    /* the usual cause */
	const char *evidence; /* what to check to be sure */
	const char *remedy;   /* what to do */
	bool cuts;            /* nothing passes between the two ends any more */
};

/* For tests too. */
extern const struct rdma_cause rdma_causes[];
extern const size_t rdma_cause_n; /* for tests too */

/* What is known of a failure besides: some have another cause, or another remedy, then. */
enum rdma_about {
	RDMA_ABOUT_HOST = 1 << 0,      /* it was memory of the host, not of a GPU */
	RDMA_ABOUT_SELF = 1 << 1,      /* the port sent to itself */
	RDMA_ABOUT_REACHED = 1 << 2,   /* small messages arrived before */
	RDMA_ABOUT_LINK = 1 << 3,      /* the NIC has reported that its port lost the link */
	RDMA_ABOUT_ON_DEMAND = 1 << 4, /* the memory was to be paged on demand */
};

/* Rows that go before those of rdma_causes where all of this is known. */
struct rdma_special {
	unsigned about;
	struct rdma_cause cause;
};
/* For tests too. */
extern const struct rdma_special rdma_specials[];
extern const size_t rdma_special_n;

/* Why a job failed. Functions of this folder fill it when they return a negative errno. */
struct rdma_failure {
	enum rdma_step step;
	int code;        /* as in struct rdma_cause */
	unsigned vendor; /* vendor_err of a completion, a useful search term; 0: none */
	unsigned about;  /* enum rdma_about */
	char text[256];  /* what happened, one sentence: the call, its result, the numbers */
};

/* NULL: unknown code. */
const struct rdma_cause *rdma_cause_of(const struct rdma_failure *f);
/* One word for programs: the cause's, or the step's. "": nothing failed. */
const char *rdma_failure_word(const struct rdma_failure *f);
/* Whether one sentence is right for both. */
bool rdma_is_alike(const struct rdma_failure *a, const struct rdma_failure *b);

bool rdma_cuts(const struct rdma_failure *f);

/*
 * Fills it once: the first failure is the one reported. Returns -EIO, for `return rdma_fail(...)`.
 */
int rdma_fail(struct rdma_failure *f, enum rdma_step step, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * Where it is a wait that was in vain: adds which links are too slow for so many bytes in that
 * time, if there are such.
 */
void rdma_add_slowest(struct rdma_failure *f, uint64_t bytes, uint64_t limit_us);
