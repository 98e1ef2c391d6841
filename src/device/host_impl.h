/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the host back end share. */
#pragma once

#include "device/host.h"
#include "kernels/native.h"

#include <pthread.h>

#define HOST_PAGE     4096u
#define HOST_ARGS_MAX 4096 /* bytes, as of CUDA */
_Static_assert(sizeof(struct collective_levels_args) <= HOST_ARGS_MAX, "the largest arguments");

/* What ids stand for: id is the index plus one, and is never given twice. */
struct host_table {
	void **items;
	size_t n;
};

/* Memory of one device, or (the last one of a set) pinned memory. */
struct host_arena {
	int fd;
	char *base;
	uint64_t mapped; /* bytes */
	uint64_t limit, used;
	struct host_block *blocks; /* in the order of their offsets */
};

/* The way of one device to another one's memory; faults show here. */
struct host_window {
	struct host_window *next;
	enum fault_kind fault;
	char *base; /* what the initiator sees */
	char *real; /* stale: what there is */
	/*
	 * stale: what will have come with the next operation; reread: what was read; late: what
	 * copies wrote; packed: what is kept
	 */
	char *late;
	struct host_delayed *delayed; /* late: what is still to come */
	unsigned char *was_read;      /* reread: of each page; NULL: of none yet */
	uint64_t size;
	double gbps;         /* 0: unlimited */
	uint64_t free_at_ns; /* when what is under way will have passed */
};

struct host_peer {
	struct host_window *window; /* NULL: never turned on */
	bool on;
};

struct host_block {
	struct memory m;
	struct host_block *next;    /* of its arena */
	int arena;                  /* index; -1: none (imported, caller's) */
	uint64_t offset;            /* in its arena; imported: in its owner's */
	char *base;                 /* none: where byte 0 is */
	struct host_window *window; /* imported through one, its own */
	uint64_t made_as;           /* imported: the id that its owner has for it */
};

enum host_op_kind { HOST_COPY, HOST_KERNEL, HOST_RECORD, HOST_AWAIT, HOST_CALL };

struct host_copy {
	char *to;
	const char *from;
	uint64_t bytes;
	bool staged; /* through host memory, because there is no peer access */
	double staged_gbps;
};

struct host_kernel {
	enum device_kernel kernel;
	unsigned blocks, threads;
	unsigned at_once; /* of the blocks */
	_Alignas(8) unsigned char args[HOST_ARGS_MAX];
};

struct host_op {
	struct host_op *next;
	enum host_op_kind kind;
	bool replayed; /* of a graph that was launched before */
	union {
		struct host_copy copy;
		struct host_kernel kernel;
		struct {
			uint64_t id;
			uint64_t nth; /* of the event's records */
		} event;
		struct {
			void (*work)(void *context);
			void *context;
		} call;
	};
};

struct host_queue {
	struct host_op *first, *last;
	bool launched; /* of a graph: before */
};

struct host_event {
	uint64_t asked, done; /* records enqueued, and executed */
	uint64_t time_ns;     /* of the last one executed */
};

struct host_set;

struct host_stream {
	struct host_native native; /* first: its address is the stream's */
	struct host_set *h;
	int device;
	uint64_t id; /* its own; wrapped, it has more */
	pthread_t thread;
	struct host_queue queue;
	uint64_t asked, done; /* operations */
	bool ending, ended;
	bool standard; /* what NULL stands for */
	bool capturing;
	struct host_queue captured;
	struct host_stream *next;
};

struct host_set {
	struct device_set set;
	struct device_request request;
	struct host_arena arenas[DEVICE_MAX + 1]; /* set.n is that of pinned memory */
	struct host_peer *peers;                  /* [initiator * n + target] */

	struct host_table blocks, handles, graphs; /* handles: of streams */
	double enqueue_us;                         /* of the last copy */

	pthread_mutex_t lock; /* of what streams' threads use too: all below */
	pthread_cond_t changed;
	u32 closing; /* also looked at by kernels, without the lock */
	struct host_window *windows;
	struct host_ghost *ghosts; /* (host_flaw.c) */
	struct host_stream *streams;
	struct host_table events;
};

static inline struct host_set *host_of(struct device_set *s)
{
	return (struct host_set *)s;
}

bool host_closing(const struct host_set *h);
/* With the lock held: until then, or closing. */
void host_sleep_until(struct host_set *h, uint64_t time_ns);
/* -EINVAL: no such device. */
int host_check_device(const struct host_set *h, int device);

int host_table_add(struct host_table *t, void *item, uint64_t *ret_id);
void *host_table_get(const struct host_table *t, uint64_t id); /* NULL: none */
void host_table_drop(struct host_table *t, uint64_t id);

/* ---- memory (host_memory.c) ---- */

int host_arena_open(struct host_arena *a, uint64_t limit);
void host_arena_close(struct host_arena *a);
int host_alloc(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
	       struct memory *ret);
int host_wrap(struct device_set *s, int device, uint64_t address, uint64_t size,
	      struct memory *ret);
int host_free(struct device_set *s, const struct memory *m);
int host_address(struct device_set *s, const struct memory *m, int device, uint64_t *ret);
int host_memory_at(struct device_set *s, int device, uint64_t address, uint64_t *ret_begin,
		   uint64_t *ret_end);
int host_export(struct device_set *s, const struct memory *m, enum export_kind kind,
		struct memory_export *ret);
int host_import(struct device_set *s, int device, const struct memory_export *e,
		struct memory *ret);
int host_memory_read(struct device_set *s, const struct memory *m, uint64_t offset, void *to,
		     size_t n);
int host_memory_write(struct device_set *s, const struct memory *m, uint64_t offset,
		      const void *from, size_t n);
struct host_block *host_block_of(struct host_set *h, const struct memory *m);
/* Whether offset and n lie in m. */
int host_check_range(const struct memory *m, uint64_t offset, uint64_t n);
/* Where byte 0 is as `device` sees it; NULL: only its owner may. */
char *host_seen(struct host_set *h, const struct host_block *b, int device);
/* Where byte 0 really is. */
char *host_real(struct host_set *h, const struct host_block *b);

/* ---- windows (host_window.c) ---- */

/* What fault the request shows between two numbered devices, and the rate of their link, 0: any. */
enum fault_kind host_fault(const struct host_set *h, int initiator, int target);
double host_gbps(const struct host_set *h, int initiator, int target);
/* `fault`: what it shows, as a rule host_fault of the two. */
int host_window_new(struct host_set *h, int fd, uint64_t size, int initiator, int target,
		    enum fault_kind fault, struct host_window **ret);
void host_window_free(struct host_set *h, struct host_window *w);

/* Memory that an operation touches. */
struct host_span {
	char *at;
	uint64_t bytes;
	bool writes;
	struct host_window *window; /* NULL: of its own device or host memory */
};

#define HOST_SPANS_MAX (3 * DEVICE_MAX)

/* What an operation of a device touches through windows, and how it fares there. */
struct host_passage {
	struct host_span spans[HOST_SPANS_MAX];
	size_t n;
	uint64_t begin_ns; /* when the links are free for it; 0: they are unlimited */
	uint64_t end_ns;   /* when all of it will have passed */
	struct native_flaw flaw;
};

/* Before the operation, which it may cut short (torn). false: closed while it hung. */
bool host_passage_begin(struct host_set *h, struct host_op *op, struct host_passage *p);
/* When `done` of `bytes` will have passed: sleeps until then. false: closing. */
bool host_passage_pace(struct host_set *h, const struct host_passage *p, uint64_t done,
		       uint64_t bytes);
void host_passage_end(struct host_passage *p);

/* ---- faults that only some ways of use meet (host_flaw.c) ---- */

/* What the operation's kernel suffers in the window. */
struct native_flaw host_flaw_of(const struct host_window *w, const struct host_op *op);
/* The operation reads what was read there before, if any. With the lock held. */
void host_flaw_reread(struct host_window *w, struct host_op *op, const struct host_span *span);
/* The operation reads the bytes that compressed memory is kept as. With the lock held. */
void host_flaw_pack(struct host_window *w, struct host_op *op, const struct host_span *span);
/*
 * The copy writes into what only the host's waiting brings to the window, if any. With the lock
 * held.
 */
void host_flaw_delay(struct host_window *w, struct host_op *op, const struct host_span *span);
/* What is still to come never does. */
void host_flaw_drop(struct host_window *w);
/* The host has waited for a stream: windows show what there is. */
void host_flaw_refresh(struct host_set *h);
/* Imported memory is about to be freed: what it holds may come back. */
void host_flaw_keep(struct host_set *h, const struct host_block *b);
/* Where byte 0 of memory that was just imported shows: `base`, or what was there before. */
char *host_flaw_recall(const struct host_set *h, const struct host_block *b, char *base);
void host_flaws_free(struct host_set *h);

/* ---- streams (host_stream.c, host_run.c) ---- */

/* Executes one operation in the stream's thread. */
void host_run_op(struct host_stream *s, struct host_op *op);
void host_queue_clear(struct host_queue *q);
/* Ends all threads. */
void host_streams_close(struct host_set *h);
int host_stream_new(struct device_set *s, int device, struct stream *ret);
int host_stream_wrap(struct device_set *s, int device, void *native, struct stream *ret);
int host_stream_free(struct device_set *s, struct stream stream);
int host_stream_native(struct device_set *s, struct stream stream, void **ret);
int host_wait(struct device_set *s, struct stream stream, uint64_t limit_us);
int host_event_new(struct device_set *s, int device, struct event *ret);
int host_event_free(struct device_set *s, struct event e);
int host_event_record(struct device_set *s, struct stream stream, struct event e);
int host_event_wait(struct device_set *s, struct stream stream, struct event e);
int host_event_elapsed(struct device_set *s, struct event from, struct event to, double *ret_us);
int host_copy(struct device_set *s, struct stream stream, const struct memory *target,
	      uint64_t target_offset, const struct memory *origin, uint64_t origin_offset,
	      uint64_t bytes);
int host_enqueue_time(struct device_set *s, double *ret_us);
int host_launch(struct device_set *s, struct stream stream, const struct launch *l);
int host_capturing(struct device_set *s, struct stream stream, bool *ret);
int host_capture_begin(struct device_set *s, struct stream stream);
int host_capture_end(struct device_set *s, struct stream stream, struct graph *ret);
int host_graph_launch(struct device_set *s, struct stream stream, struct graph g);
int host_graph_free(struct device_set *s, struct graph g);
