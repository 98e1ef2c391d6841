/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the benchmark of collectives share: operations as rows, engines, and messages
 * between processes.
 */
#pragma once

#include "bench/collective_bench.h"
#include "bench/nccl_api.h"
#include "collective/operation.h"
#include "device/rendezvous.h"

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

/* libonehop's; OPERATION_N: it has none. */
enum operation nccl_op_ours(enum nccl_op op);
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

/*
 * GB/s of the operation's own size, and what of that a link carries (nccl-tests' PERFORMANCE.md).
 */
void nccl_rates(enum nccl_op op, const struct nccl_shape *s, unsigned type_size, int ranks,
		double time_us, struct collective_cell *ret);

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
	struct collective_plan plan;
	struct device_request devices;
	struct ranks ranks;
	unsigned arm;
	uint64_t limit_us;
	bool has_library, has_tuned;
	struct tuned tuned;
	char library[PATH_MAX], shim[PATH_MAX];
};

enum nccl_message_kind {
	NCCL_SAYS_STEP,
	NCCL_SAYS_RANK,
	NCCL_SAYS_START,
	NCCL_SAYS_ROW,
	NCCL_SAYS_TUNED,
	NCCL_SAYS_END
};

struct nccl_message {
	enum nccl_message_kind kind;
	union {
		struct collective_step step;
		struct collective_rank rank;
		struct collective_start start;
		struct collective_row row;
		struct collective_tuned tuned;
		struct {
			int result; /* 0 or a negative errno */
			char text[1024];
		} end;
	} u;
};

/* ---- the process that measures (collective_bench.c) ---- */

/* A device of this process: one rank. */
struct lane {
	int rank;
	struct ncclComm *comm, *shimmed; /* NULL: NCCL, or the shim, is not used */
	struct onehop_comm *own;         /* NULL: libonehop is not used */
	struct stream stream;
	void *native;                     /* the stream, as CUDA knows it */
	struct memory send, recv, report; /* report: one struct typed_report per rank */
	void *send_own, *recv_own;        /* where they are NCCL's memory */
	struct nccl_window *window[2];    /* of NCCL, over both; NULL: not registered */
	uint64_t send_at, recv_at, report_at;
	struct graph graph[ENGINE_N];
};

struct bench {
	int fd;
	struct nccl_order order;
	struct collective_plan *plan;
	struct nccl_api api, shim;
	struct device_set *set;
	bool set_given;             /* the communicators close the set */
	struct rendezvous *meeting; /* NULL: this process has all ranks */
	int processes, ranks;
	unsigned type_size;
	uint64_t max_bytes;
	struct lane *lanes; /* set->n */
	double spent_s;     /* in batches so far, as rank 0 sees it */
	double said_s;      /* when the parent last heard of this process */
	double began_s;     /* this process */
	size_t cells_left;
	struct nccl_message message;
};

/* The same for all processes of the run, and for no other run; `kind` is that of the meeting. */
void bench_key(const struct bench *b, const char *kind, char ret[static RENDEZVOUS_KEY_MAX + 1]);
int bench_say_step(struct bench *b, const char *text);
int bench_say_tuned(struct bench *b, const struct collective_tuned *t);
/* Times and checks one size of plan->op. */
int bench_run_place(struct bench *b, const struct nccl_shape *s, bool in_place,
		    struct collective_row *row);

/* ---- the table of libonehop's choice (collective_tune.c) ---- */

int bench_tune(struct bench *b);
/* 0, or -EIO with a sentence: the data was wrong, or was not checked. Here for tests. */
int bench_tuned_check(const struct collective_tuned *t, bool no_p2p,
		      const struct collective_cell *cell);

/* ---- engines (collective_engine.c) ---- */

/* Operations of one batch position: input and output of each lane are `shift` bytes further. */
struct engine_call {
	const struct nccl_shape *shape;
	bool in_place;
	uint64_t shift;
};

struct engine {
	int (*open)(struct bench *b); /* the communicators of all lanes */
	int (*start)(struct bench *b,
		     const struct engine_call *c); /* on all lanes; only enqueues */
	/* What went wrong with the operations of a lane so far. */
	int (*check)(struct bench *b, struct lane *l);
	void (*close)(struct bench *b, bool failed);
};

extern const struct engine engines[ENGINE_N];

/*
 * Registers the buffers of all lanes as windows of NCCL, if the plan asks for that. All ranks
 * together.
 */
int nccl_open_windows(struct bench *b);
void nccl_close_windows(struct bench *b);

/* Where the lane's input and output are. */
uint64_t lane_input(const struct lane *l, const struct nccl_shape *s, bool in_place);
uint64_t lane_output(const struct lane *l, const struct nccl_shape *s, bool in_place);
