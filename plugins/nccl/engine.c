// SPDX-License-Identifier: Apache-2.0
#include "nccl/engine.h"

#include "base/err.h"
#include "collective/comm.h"
#include "collective/faster.h"
#include "collective/operation.h"
#include "collective/tuned.h"
#include "device/presence.h"
#include "device/rendezvous.h"
#include "kernels/typed.h"
#include "nccl/abi.h"
#include "nccl/engine_impl.h"
#include "nccl/say.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* All ranks that are to come are here, and on their way. */
#define MEET_US 10000000u
/* Without a rank that fails between two steps; what waits for it on a GPU gives up then too. */
#define OPEN_US   20000000u
#define ANSWER_US 90000000u
/* NCCL waits for a rank until it is aborted, and so do we. */
#define FOREVER_US 4000000000000u
#define TRIAL      3000u /* elements */

/* ---- meeting ---- */

/* What a rank without the same key comes to: it is nobody's to wait for. */
static int look(const struct engine_request *q)
{
	const struct engine_presence *p = &q->presence;
	int here;

	if (p->places == 0)
		return 0;
	if (p->announced < 0)
		return err_sys(-p->announced, "this rank cannot be announced");
	here = presence_count(q->key, p->places);
	if (here >= q->n)
		return 0;
	return err_set(
		ESRCH,
		"%d of %d ranks are elsewhere: on another host, in another network namespace, of another user, without the shim, or with another ONEHOP_SHIM",
		q->n - here, q->n);
}

/*
 * Ranks that have a shim with the same wishes stay connected until all are ready: who gives up is
 * missed at once.
 */
static int meet(const struct engine_request *q, struct rendezvous **ret)
{
	const struct rendezvous_request r = {.key = q->key,
					     .rank = q->rank,
					     .n = q->n,
					     .limit_us = engine_meet_us(MEET_US),
					     .later_us = ANSWER_US};
	int e = rendezvous_join(&r, ret);

	if (e == -ETIMEDOUT)
		return err_wrap(e, "after %g s", (double)r.limit_us / 1e6);
	return e;
}

static int all_gather(void *context, const void *mine, size_t size, void *all)
{
	return rendezvous_gather(context, mine, size, all);
}

/* How far all ranks have come. The sentence is this rank's reason, or names a rank. */
static int agree(struct rendezvous *meeting, const struct engine_request *q, int result)
{
	int32_t mine = result, all[ONEHOP_RANKS_MAX] = {0};
	char reason[512];
	int r;

	snprintf(reason, sizeof(reason), "%s", result < 0 ? err_msg() : "");
	r = rendezvous_gather(meeting, &mine, sizeof(mine), all);
	if (result < 0)
		return err_set(-result, "%s", reason);
	for (int i = 0; r == 0 && i < q->n; i++)
		if (all[i] < 0)
			r = err_set(-all[i], "rank %d cannot", i);
	return r;
}

/* ---- opening ---- */

/* A damaged table must not stop one rank while others go on. */
static const char *tune_file(void)
{
	const char *path = getenv("ONEHOP_TUNE_FILE");
	struct tuned table;

	if (!path || !*path)
		return NULL;
	if (tuned_read(path, &table) == 0)
		return path;
	say(SAY_WARN, "ONEHOP_TUNE_FILE: %s", err_msg());
	return NULL;
}

/* A setting of NCCL's, which reads its files into the environment. */
static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && strtol(value, NULL, 0) != 0;
}

/* What the user keeps NCCL from, as where P2P corrupts data. */
static bool may_not_use_p2p(void)
{
	const char *level = getenv("NCCL_P2P_LEVEL");

	return is_set("NCCL_P2P_DISABLE") ||
	       (level && (strcasecmp(level, "LOC") == 0 || strcmp(level, "0") == 0));
}

/* NCCL's setting, for programs that never run a graph next to something else. */
static bool may_mix_graphs(void)
{
	const char *value = getenv("NCCL_GRAPH_MIXING_SUPPORT");

	return !value || strtol(value, NULL, 0) != 0;
}

static int open_comm(struct engine *e, const struct engine_request *q, struct rendezvous *meeting)
{
	const struct onehop_exchange exchange = {all_gather, meeting};
	const struct onehop_options options = {.limit_ms =
						       (unsigned)(engine_meet_us(OPEN_US) / 1000),
					       .no_p2p = may_not_use_p2p(),
					       .tune_file = tune_file(),
					       .simulated = engine_simulated()};
	int r = onehop_open_exchange(&exchange, q->rank, q->n, q->device, &options, &e->comm);

	if (r == 0)
		r = engine_simulated() ? 0 : streams_open(q->device, may_mix_graphs(), &e->streams);
	return r;
}

/* What NCCL would do, but not libonehop. */
static int check_device(const struct engine *e)
{
	const struct device_info *info = &e->comm->shared->set->info[e->comm->device];

	if (strstr(info->name, "MIG"))
		return err_set(ENOTSUP, "%s is a part of a GPU (MIG)", info->name);
	if (info->ends_kernels)
		return err_set(ENOTSUP,
			       "%s shows a desktop, so its driver ends kernels that wait long",
			       info->name);
	if (!e->comm->facts.direct && is_set("NCCL_SHM_DISABLE"))
		return err_set(ENOTSUP, "there is no P2P, and NCCL_SHM_DISABLE is set");
	return 0;
}

/* Every rank adds a different number at each place. */
static int try_out(struct engine *e, int *data)
{
	int r;

	for (int i = 0; i < (int)TRIAL; i++)
		data[i] = (e->rank + 1) * (i + 1);
	r = onehop_all_reduce(e->comm, data, data, TRIAL, ONEHOP_INT32, ONEHOP_SUM, NULL);
	if (r == 0)
		r = onehop_wait(e->comm, NULL);
	for (int i = 0; r == 0 && i < (int)TRIAL; i++)
		if (data[i] != e->n * (e->n + 1) / 2 * (i + 1))
			r = err_set(EIO, "a trial sum is wrong at element %d", i);
	return r;
}

static void say_opened(const struct engine *e)
{
	struct onehop_memory m = {0};

	onehop_memory_used(e->comm, &m);
	say(SAY_INFO,
	    "comm %p rank %d nranks %d: takes over %s, %s; staging: %zu KiB of the GPU, %zu KiB of the host",
	    e->handle, e->rank, e->n, e->all ? "all that it can" : "what it is faster at",
	    e->comm->facts.direct ? "directly between GPUs" : "through the host's memory",
	    m.device_bytes >> 10, m.host_bytes >> 10);
}

static struct engine *engine_new(const struct engine_request *q)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->handle = q->handle;
	e->rank = q->rank;
	e->n = q->n;
	e->all = q->all;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	return e;
}

/* No rank waits for another one's trial before all have said that they take part. */
static int start(struct engine *e, const struct engine_request *q, struct rendezvous *meeting)
{
	int *data = NULL, r = open_comm(e, q, meeting);

	if (!e->comm)
		return r; /* on every rank */
	if (r == 0)
		r = check_device(e);
	if (r == 0)
		r = onehop_alloc(e->comm, TRIAL * sizeof(*data), (void **)&data);
	r = agree(meeting, q, r);
	return r == 0 && data ? agree(meeting, q, try_out(e, data)) : r;
}

static struct engine *open_engine(const struct engine_request *q)
{
	struct engine *e = engine_new(q);
	struct rendezvous *meeting = NULL;
	int r = e ? look(q) : err_set(ENOMEM, "no memory for a communicator");

	if (r == 0)
		r = meet(q, &meeting);
	if (r == 0)
		r = start(e, q, meeting);
	rendezvous_leave(meeting);
	if (r == 0) {
		e->comm->options.limit_us = FOREVER_US;
		e->opened = true;
		say_opened(e);
		return e;
	}
	say(SAY_INFO, "comm %p rank %d nranks %d: everything is left to NCCL: %s", q->handle,
	    q->rank, q->n, err_msg());
	engine_close(e);
	return NULL;
}

struct engine *engine_open(const struct engine_request *q)
{
	if (q->n > ONEHOP_RANKS_MAX) {
		say(SAY_INFO,
		    "comm %p rank %d nranks %d: everything is left to NCCL: more than %d ranks",
		    q->handle, q->rank, q->n, ONEHOP_RANKS_MAX);
		return NULL;
	}
	return open_engine(q);
}

void engine_close(struct engine *e)
{
	if (!e)
		return;
	if (e->comm)
		engine_abort(e);
	engine_drain(e);
	if (e->opened)
		say(SAY_INFO, "comm %p rank %d: took over %lu call%s, passed on %lu", e->handle,
		    e->rank, e->taken, e->taken == 1 ? "" : "s", e->passed);
	onehop_close(e->comm);
	streams_close(e->streams);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* ---- calls ---- */

struct engine_facts engine_facts(const struct engine *e)
{
	const struct comm_facts *f = &e->comm->facts;

	return (struct engine_facts){e->all, f->direct, f->mixed, (unsigned char)e->n};
}

bool engine_leaves(struct engine_facts f, enum onehop_operation operation, size_t count, int type,
		   int op, int root)
{
	/* 8-bit floats are last, and libonehop's have not run on a GPU. */
	if (count == 0 || (unsigned)type >= ONEHOP_FLOAT8_E4M3 || (unsigned)op >= ONEHOP_OP_N ||
	    (unsigned)root >= f.n)
		return true;
	/* Where only some pairs are direct nothing was compared. */
	return !f.all && (f.mixed || !faster_find((enum operation)operation, f.n, f.direct, count,
						  (unsigned)type, (unsigned)op));
}

/* The table is looked at before the costs, which take longer. */
bool engine_takes(const struct engine *e, const struct engine_call *c)
{
	struct onehop_expected expected;

	return !engine_leaves(engine_facts(e), c->operation, c->count, c->type, c->op, c->root) &&
	       onehop_expect(e->comm, c->operation, c->count, (enum onehop_type)c->type,
			     (enum onehop_op)c->op, &expected) == 0;
}

void engine_passed(struct engine *e, unsigned long n)
{
	atomic_fetch_add_explicit(&e->passed, n, memory_order_relaxed);
}

/*
 * NCCL does not look at the type of what it only moves, so ranks may give other ones of the same
 * size.
 */
int engine_enqueue(struct engine *e, const struct engine_call *c, void *stream)
{
	const enum onehop_type type = (enum onehop_type)c->type, byte = ONEHOP_UINT8;
	const enum onehop_op op = (enum onehop_op)c->op;
	const size_t bytes = c->count * typed_bytes((unsigned)c->type);

	switch (c->operation) {
	case ONEHOP_ALL_REDUCE:
		return onehop_all_reduce(e->comm, c->in, c->out, c->count, type, op, stream);
	case ONEHOP_REDUCE:
		return onehop_reduce(e->comm, c->in, c->out, c->count, type, op, c->root, stream);
	case ONEHOP_REDUCE_SCATTER:
		return onehop_reduce_scatter(e->comm, c->in, c->out, c->count, type, op, stream);
	case ONEHOP_ALL_GATHER:
		return onehop_all_gather(e->comm, c->in, c->out, bytes, byte, stream);
	case ONEHOP_ALL_TO_ALL:
		return onehop_all_to_all(e->comm, c->in, c->out, bytes, byte, stream);
	default:
		return onehop_broadcast(e->comm, c->in, c->out, bytes, byte, c->root, stream);
	}
}

static int status_of(int r)
{
	static const struct {
		int error, status;
	} rows[] = {{-EINVAL, NCCL_INVALID_ARGUMENT}, {-ENOMEM, NCCL_SYSTEM_ERROR},
		    {-EPROTO, NCCL_INVALID_USAGE},    {-EEXIST, NCCL_INVALID_USAGE},
		    {-EIO, NCCL_CUDA_ERROR},          {-ETIMEDOUT, NCCL_REMOTE_ERROR}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].error == r)
			return rows[i].status;
	return r < 0 ? NCCL_INTERNAL_ERROR : NCCL_SUCCESS;
}

/* Wrong arguments are the call's only: nothing was enqueued. */
void engine_failed(struct engine *e, int r)
{
	int none = NCCL_SUCCESS;

	if (r == -EINVAL || atomic_load(&e->status) != NCCL_SUCCESS)
		return;
	pthread_mutex_lock(&e->lock);
	if (!e->reason[0])
		snprintf(e->reason, sizeof(e->reason), "onehop: %s", err_msg());
	pthread_mutex_unlock(&e->lock);
	if (atomic_compare_exchange_strong(&e->status, &none, status_of(r)))
		say(SAY_WARN, "comm %p rank %d: %s", e->handle, e->rank, err_msg());
}

static void say_taken(struct engine *e, const struct engine_call *c)
{
	static const char *const names[ONEHOP_OPERATION_N] = {"AllReduce",     "Reduce",
							      "ReduceScatter", "AllGather",
							      "Broadcast",     "AlltoAll"};

	e->taken++;
	if (e->said[c->operation])
		return;
	e->said[c->operation] = true;
	say(SAY_INFO, "comm %p rank %d: takes over %s, first with %zu %s", e->handle, e->rank,
	    names[c->operation], c->count, element_word((unsigned)c->type));
}

static int run_in_order(struct engine *e, const struct engine_call *c)
{
	int r = streams_before(e->streams, c->stream);

	if (r == 0)
		r = engine_enqueue(e, c, c->stream);
	return r < 0 ? r : streams_after(e->streams, c->stream);
}

int engine_run(struct engine *e, const struct engine_call *c)
{
	int r = atomic_load(&e->status);

	if (r != NCCL_SUCCESS)
		return r;
	pthread_mutex_lock(&e->lock);
	r = engine_simulated() ? engine_simulate(e, c) : run_in_order(e, c);
	if (r == 0)
		say_taken(e, c);
	pthread_mutex_unlock(&e->lock);
	if (r < 0)
		engine_failed(e, r);
	return status_of(r);
}

/* ---- what becomes of them ---- */

int engine_check(struct engine *e)
{
	int r = atomic_load(&e->aborted) ? 0 : onehop_check(e->comm);

	if (r < 0)
		engine_failed(e, r);
	return atomic_load(&e->status);
}

const char *engine_reason(struct engine *e)
{
	return engine_check(e) == NCCL_SUCCESS ? NULL : e->reason;
}

void engine_abort(struct engine *e)
{
	atomic_store(&e->aborted, true);
	onehop_abort(e->comm);
}

static bool is_done(struct engine *e)
{
	bool done;

	pthread_mutex_lock(&e->lock);
	done = engine_simulated() ? e->turn == e->issued : streams_are_done(e->streams);
	pthread_mutex_unlock(&e->lock);
	return done;
}

void engine_drain(struct engine *e)
{
	const struct timespec pause = {.tv_nsec = 50000};

	while ((e->streams || engine_simulated()) && !is_done(e))
		nanosleep(&pause, NULL);
}
