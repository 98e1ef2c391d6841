/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives by NCCL or by libonehop: verified, and timed as nccl-tests does, in processes that
 * can be killed.
 */
#pragma once

#include "bench/ranks.h"
#include "collective/tuned.h"
#include "device/device.h"

#include <limits.h>

enum nccl_op {
	NCCL_ALL_REDUCE,
	NCCL_ALL_GATHER,
	NCCL_REDUCE_SCATTER,
	NCCL_BROADCAST,
	NCCL_REDUCE,
	NCCL_ALL_TO_ALL,
	NCCL_SEND_RECV, /* to the next rank, from the one before */
	NCCL_BARRIER,   /* without data; NCCL has none */
	NCCL_OP_N
};

extern const char
	*const nccl_op_words[]; /* of metrics: "all-reduce"; NULL-ended, as are the others */
extern const char *const nccl_call_words[];   /* those of them that NCCL has, numbered alike */
extern const char *const nccl_own_op_words[]; /* those of them that libonehop has: nccl_own_op */
enum nccl_op nccl_own_op(unsigned word);
extern const char *const nccl_type_words[]; /* of enum element_type, as nccl-tests writes them */
extern const char *const nccl_reduce_op_words[]; /* "sum" */
const char *nccl_tests_name(enum nccl_op op);    /* "all_reduce", of all_reduce_perf */
bool nccl_op_reduces(enum nccl_op op);           /* whether it has a reduction */
bool nccl_op_has_root(enum nccl_op op);
unsigned nccl_type_size(enum element_type t); /* bytes of an element */

/* Whether libonehop has it. Also for tests. */
bool nccl_op_is_ours(enum nccl_op op);

enum { NCCL_SIZES_MAX = 4096 };

/* What runs the operations. */
enum collective_engine {
	ENGINE_NCCL,
	ENGINE_SHIM, /* NCCL below libonehop's shim, next to NCCL in the same process */
	ENGINE_ONEHOP,
	ENGINE_N
};

extern const char *const collective_engine_names[]; /* "NCCL" */

enum collective_place { OUT_OF_PLACE, IN_PLACE, PLACE_N };

/* What is measured. A value: it is sent to the process that measures. */
struct collective_plan {
	enum collective_engine engine;
	bool against; /* another engine is measured too: a batch of each in turn */
	enum collective_engine rival;
	bool skip[PLACE_N]; /* not measured */
	bool no_p2p;        /* libonehop: all data goes through the host's memory */
	bool symmetric; /* NCCL: the buffers are windows that all ranks register, as with nccl-tests' -R 2 */
	/*
	 * libonehop: every algorithm of all operations is timed at the sizes of a table instead, up
	 * to max_bytes of a buffer. budget_s is then for the whole run, with its start.
	 */
	bool tune;
	enum nccl_op op;
	enum element_type type;
	enum reduce_op redop;
	int root;
	uint64_t min_bytes, max_bytes;
	uint64_t factor, step; /* next size: times factor, or with factor below 2 plus step */
	unsigned iterations;   /* per batch: one sample is the time of a batch through this */
	unsigned warmup;       /* for each doubling of the size, before all */
	unsigned graph;        /* 0: none; else each batch is captured and launched so often */
	bool check;
	/*
	 * half-width of the median's 95 % interval that is narrow enough; 0: one batch, as
	 * nccl-tests
	 */
	double relative;
	double budget_s;       /* of all timed batches together */
	uint64_t memory_bytes; /* of each device, at most; 0: what is free */
};

/*
 * A ratio counts as known if its interval is at most 3 % wide: within 1.5 % on either side, from at
 * least 30 batches of each engine.
 */
#define NCCL_RATIO_RELATIVE 0.015
#define NCCL_RATIO_SAMPLES  30

/* 0, or -EINVAL with a sentence. */
int collective_plan_check(const struct collective_plan *p);
bool collective_plan_uses(const struct collective_plan *p, enum collective_engine e);
/* How many sizes there are up to max_bytes. */
/* What follows "NCCL 2.28.9", or "". */
const char *collective_plan_windows(const struct collective_plan *p);
size_t collective_plan_sizes(const struct collective_plan *p, uint64_t max_bytes);
uint64_t collective_plan_next(const struct collective_plan *p, uint64_t bytes);

/* ---- what comes back ---- */

/* One rank; its device as the process that ran it names it. */
struct collective_rank {
	int rank, pid, ordinal;
	char host[64], pci[16], name[96];
};

/* What runs from here on. */
struct collective_step {
	char text[64];  /* "ncclCommInitRank", "all-reduce, timing" */
	uint64_t bytes; /* 0: does not belong to a size */
	bool in_place;
	unsigned left; /* places of sizes to be timed and checked; 0: not a part of that */
};

struct collective_start {
	int version; /* of NCCL: 22809; 0: it is not used */
	int ranks;
	bool direct; /* libonehop: every rank stores into the memory of all others */
	bool mixed;  /* libonehop: some pairs do */
	bool older_table; /* libonehop: it was not used, because it lacks the times of levels or of the chain */
	uint64_t max_bytes; /* of the sizes; less than planned when memory does not hold more */
	char library[PATH_MAX];
};

/* One half of a row of the table. */
struct collective_cell {
	/* median of the batches, each the mean of its iterations and of all ranks */
	double time_us;
	double low_us, high_us;        /* 95 % interval of the median; NaN: too few batches */
	unsigned batches;              /* 0: not measured */
	bool narrow;                   /* false: the budget ended it */
	double algbw_gbps, busbw_gbps; /* GB/s */
	int64_t wrong;                 /* elements, of all ranks; -1: not checked */
	int wrong_rank;                /* one that has wrong ones; -1: none */
	uint64_t wrong_index;          /* the first there, in elements of its output */
};

/* Time of the engine over that of the other, of batches that ran one after the other. */
struct collective_ratio {
	double median, low, high; /* 95 % interval of the median; NaN: unknown */
	unsigned samples;         /* 0: not measured */
	bool narrow;
};

/* What libonehop chose, and the times that it compared; NaN: it did not compare that algorithm. */
struct collective_chosen {
	enum algorithm algorithm;
	double us[ALGORITHM_N];
	bool measured; /* the times are those of a table, and not estimates */
};

/* A measured time of a table; the data was right. */
struct collective_tuned {
	enum operation operation;
	enum algorithm algorithm;
	unsigned size; /* index in the table */
	double us;
	unsigned done, total; /* measurements, with this one */
};

struct collective_row {
	uint64_t bytes, count; /* as nccl-tests has them: the larger buffer; elements per call */
	struct collective_cell cell[PLACE_N];
	struct collective_cell other[PLACE_N]; /* of the other engine */
	struct collective_ratio ratio[PLACE_N];
	struct collective_chosen chosen; /* by libonehop */
};

/* All that came of one run. Arrays are the caller's. */
struct collective_result {
	struct collective_plan plan;
	struct collective_start start;
	struct collective_rank *ranks;
	size_t rank_n;
	struct collective_row *rows;
	size_t row_n;
};

/* Called as things come, by the thread that runs; each may be NULL. */
struct nccl_listener {
	void *context;
	void (*rank)(void *context,
		     const struct collective_rank *r); /* ranks in order, before start */
	void (*start)(void *context, const struct collective_start *s);
	void (*step)(void *context, const struct collective_step *s);
	void (*row)(void *context, const struct collective_row *row);
	/* What NCCL wrote to NCCL_LOG_FILE, of each process, when all have ended. */
	void (*log)(void *context, const char *text, size_t n);
	void (*tuned)(void *context, const struct collective_tuned *t); /* only with plan.tune */
};

/* A file of each process's own, without a name, for NCCL_DEBUG_FILE. */
#define NCCL_LOG_FILE "/dev/fd/4"

/* ---- running ---- */

struct collective_run {
	struct collective_plan plan;
	struct device_request devices; /* of this process; with `processes` one each */
	bool processes;                /* a process per device; ranks.size is 1 then */
	struct ranks ranks;
	unsigned arm;              /* runs of one job are numbered, so that they do not meet */
	const char *library;       /* NULL: look for it */
	const char *shim;          /* drop-in/libnccl.so.2; NULL: it is not used */
	const struct tuned *tuned; /* libonehop's choice; NULL: by estimates */
	const char *program;       /* that has the worker's command; NULL: this one */
	char *const *variables;    /* NAME=VALUE or NAME (unset) for its environment; NULL-ended */
	double limit_s;            /* a step that takes longer hangs */
	int stop_fd;               /* when it can be read everything is killed: -EINTR; -1: none */
};

/*
 * Starts the process or processes, listens until they end. Rows come from rank 0 only: in other
 * processes of a job the listener hears steps. 0, or what the process failed with and its sentence;
 * -ETIMEDOUT: killed, the sentence says what was running; -ESRCH: it died.
 */
int collective_run(const struct collective_run *run, const struct nccl_listener *listener);

/*
 * What the worker's command runs: serves the socket that it inherited. 0, also where something
 * failed and was said over the socket; or a negative errno: nothing was ordered.
 */
int nccl_serve(int fd);
#define NCCL_WORKER_COMMAND "nccl-worker" /* the socket is file descriptor 3 */
