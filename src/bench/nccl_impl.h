/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the NCCL benchmark share: operations as rows, and messages between processes. */
#pragma once

#include "bench/nccl_api.h"
#include "bench/nccl_bench.h"

/* ---- operations (nccl_ops.c) ---- */

/* One call of one rank. */
struct nccl_call {
	enum nccl_op op;
	const char *send;
	char *recv;
	uint64_t count;
	int type, redop, root, rank, ranks;
	struct ncclComm *comm;
	void *stream;
};

/* NCCL's result. */
int nccl_call(const struct nccl_api *api, const struct nccl_call *c);

/* What a message size means for an operation, counted as nccl-tests counts. */
struct nccl_shape {
	uint64_t count;                  /* elements per call and, where it is split, per part */
	uint64_t send_bytes, recv_bytes; /* used of each buffer */
	uint64_t bytes;                  /* the larger of them */
	/* In place both are in the receive buffer, these times rank from its start. */
	uint64_t send_offset, recv_offset;
};

void nccl_shape(enum nccl_op op, unsigned type_size, int ranks, uint64_t bytes,
		struct nccl_shape *ret);

/* GB/s of the operation's own size, and what of that a link carries (nccl-tests' PERFORMANCE.md). */
void nccl_rates(enum nccl_op op, const struct nccl_shape *s, unsigned type_size, int ranks,
		double time_us, struct nccl_cell *ret);

/* A stretch of a rank's output and where it comes from. */
struct nccl_segment {
	uint64_t first; /* index of its first element in the whole vector */
	int first_rank, ranks;
};

/* How many stretches, of `count` elements each, the output of `rank` has; 0: none to check. */
int nccl_segment_n(enum nccl_op op, int rank, int ranks, int root);
void nccl_segment(enum nccl_op op, uint64_t count, int rank, int ranks, int root, int i,
		  struct nccl_segment *ret);
/* The same of its input: index of its first element in the whole vector. */
uint64_t nccl_input_first(enum nccl_op op, uint64_t count, int rank);
/* In place the operation overwrites what it still has to read: runs, but cannot be checked. */
bool nccl_op_checks_in_place(enum nccl_op op);

/* ---- between the processes (SOCK_SEQPACKET) ---- */

/* To the worker, once. */
struct nccl_order {
	struct nccl_plan plan;
	struct device_request devices;
	struct ranks ranks;
	unsigned arm;
	uint64_t limit_us;
	bool has_library;
	char library[PATH_MAX];
};

enum nccl_message_kind {
	NCCL_SAYS_STEP,
	NCCL_SAYS_RANK,
	NCCL_SAYS_START,
	NCCL_SAYS_ROW,
	NCCL_SAYS_END
};

struct nccl_message {
	enum nccl_message_kind kind;
	union {
		struct nccl_step step;
		struct nccl_rank rank;
		struct nccl_start start;
		struct nccl_row row;
		struct {
			int result; /* 0 or a negative errno */
			char text[1024];
		} end;
	} u;
};
