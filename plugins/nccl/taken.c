// SPDX-License-Identifier: Apache-2.0
/* The functions that are taken over. Each asks the real NCCL whenever it does not know better. */
#include "device/presence.h"
#include "nccl/functions.h"
#include "nccl/group.h"
#include "nccl/shim.h"

#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* `return` the real function's answer, if there is one. */
#define REAL(name, ...)                                                                            \
	({                                                                                         \
		name##_function *f_ = real_##name();                                               \
		if (!f_)                                                                           \
			real_missing(NCCL_##name);                                                 \
		f_ ? f_(__VA_ARGS__) : NCCL_INVALID_USAGE;                                         \
	})

static bool is_idle(const struct shim_thread *self)
{
	return self->inside || shim_mode() == SHIM_OFF;
}

static bool idle(void)
{
	return is_idle(shim_self());
}

/* ---- communicators ---- */

/*
 * Calls that return before they are done would have to be finished in somebody else's call: left to
 * NCCL.
 */
static bool blocks(const struct nccl_config *config)
{
	const char *value = getenv("NCCL_COMM_BLOCKING");

	if (value && *value && strtol(value, NULL, 0) == 0)
		return false;
	return !config || config->magic != NCCL_CONFIG_MAGIC || config->blocking != 0;
}

static const struct group_birth left_to_nccl = {.presence = {.announced = -1}};

/* This rank is announced, under its own number or its parent's. */
static struct group_birth expect(struct ncclComm **handle, const struct comms_key *key, int rank,
				 int places)
{
	return (struct group_birth){handle, *key, {presence_announce(key->text, rank), places}};
}

/* What came of a call that makes communicators. */
static int born(int status, const struct group_birth *births, size_t n)
{
	const bool ready = status == NCCL_SUCCESS && n && births[0].handle;

	if (ready && shim_self()->depth == 0) {
		births_raise(births, n);
		return status;
	}
	for (size_t i = 0; i < n; i++)
		if (!ready || !group_born(&births[i])) /* without memory it is passed on */
			birth_forget(&births[i]);
	return status;
}

struct init {
	struct ncclComm **comm;
	int ranks, rank;
	const struct nccl_id *ids;
	int ids_n;
	const struct nccl_config *config;
};

static struct group_birth expect_of(const struct init *i)
{
	const enum shim_mode mode = shim_mode();
	struct comms_key key;

	/* NCCL is to say what it thinks of wrong arguments. */
	if (idle() || !i->comm || i->rank < 0 || i->rank >= i->ranks || !i->ids || i->ids_n < 1 ||
	    i->ids_n > i->ranks || !blocks(i->config))
		return left_to_nccl;
	key = comms_key(NULL, i->ids, sizeof(*i->ids) * (size_t)i->ids_n);
	key = comms_key(&key, &mode, sizeof(mode)); /* who wants something else is not met */
	return expect(i->comm, &key, i->rank, i->ranks);
}

REAL_EXPORT int ncclCommInitRank(struct ncclComm **comm, int ranks, struct nccl_id id, int rank)
{
	const struct group_birth b = expect_of(&(struct init){comm, ranks, rank, &id, 1, NULL});

	return born(SHIM_REAL(REAL(CommInitRank, comm, ranks, id, rank)), &b, 1);
}

REAL_EXPORT int ncclCommInitRankConfig(struct ncclComm **comm, int ranks, struct nccl_id id,
				       int rank, struct nccl_config *config)
{
	const struct group_birth b = expect_of(&(struct init){comm, ranks, rank, &id, 1, config});

	return born(SHIM_REAL(REAL(CommInitRankConfig, comm, ranks, id, rank, config)), &b, 1);
}

REAL_EXPORT int ncclCommInitRankScalable(struct ncclComm **comm, int ranks, int rank, int ids_n,
					 struct nccl_id *ids, struct nccl_config *config)
{
	const struct group_birth b =
		expect_of(&(struct init){comm, ranks, rank, ids, ids_n, config});

	return born(SHIM_REAL(REAL(CommInitRankScalable, comm, ranks, rank, ids_n, ids, config)),
		    &b, 1);
}

/* All ranks are here, so the process and a count name them. */
static int all_born(int status, struct ncclComm **comms, int n)
{
	static atomic_uint made;
	const struct {
		long pid;
		unsigned number, mode;
	} name = {getpid(), atomic_fetch_add(&made, 1), (unsigned)shim_mode()};
	struct group_birth *births = calloc((size_t)n, sizeof(*births));

	for (int i = 0; births && i < n; i++)
		births[i] = (struct group_birth){&comms[i],
						 comms_key(NULL, &name, sizeof(name)),
						 {.announced = -1}};
	if (births)
		born(status, births, (size_t)n);
	free(births);
	return status;
}

REAL_EXPORT int ncclCommInitAll(struct ncclComm **comms, int n, const int *devices)
{
	int status = SHIM_REAL(REAL(CommInitAll, comms, n, devices));

	if (idle() || status != NCCL_SUCCESS || n < 1 || !blocks(NULL))
		return status;
	return all_born(status, comms, n);
}

/* Which rank of its parent has which number in the child is not known yet. */
static struct group_birth expect_child(const struct ncclComm *parent, struct ncclComm **child,
				       const struct comms_key *key)
{
	CommCount_function *count = real_CommCount();
	CommUserRank_function *rank = real_CommUserRank();
	int n, me;

	if (!count || !rank || count((struct ncclComm *)parent, &n) != NCCL_SUCCESS ||
	    rank((struct ncclComm *)parent, &me) != NCCL_SUCCESS)
		return left_to_nccl;
	return expect(child, key, me, n);
}

REAL_EXPORT int ncclCommSplit(struct ncclComm *comm, int color, int key, struct ncclComm **child,
			      struct nccl_config *config)
{
	struct group_birth b = left_to_nccl;
	struct comms_key name;

	/* All ranks count the split, whatever they want of it. */
	if (!idle() && comms_child_key(comm, color, &name) && color >= 0 && blocks(config))
		b = expect_child(comm, child, &name);
	return born(SHIM_REAL(REAL(CommSplit, comm, color, key, child, config)), &b, 1);
}

static void abort_engine(const struct ncclComm *comm)
{
	struct comm *c = idle() ? NULL : comms_get(comm);

	if (c && c->engine)
		engine_abort(c->engine);
	comms_put(c);
}

/* The parent may end during the call, and its ranks that are excluded do not call. */
REAL_EXPORT int ncclCommShrink(struct ncclComm *comm, int *excluded, int excluded_n,
			       struct ncclComm **child, struct nccl_config *config, int flags)
{
	struct group_birth b = left_to_nccl;
	struct comms_key name;

	if (!idle() && comms_shrunk_key(comm, excluded, excluded_n, &name) && blocks(config))
		b = expect_child(comm, child, &name);
	if (flags & NCCL_SHRINK_ABORT)
		abort_engine(comm);
	return born(SHIM_REAL(REAL(CommShrink, comm, excluded, excluded_n, child, config, flags)),
		    &b, 1);
}

REAL_EXPORT int ncclCommRevoke(struct ncclComm *comm, int flags)
{
	abort_engine(comm);
	return SHIM_REAL(REAL(CommRevoke, comm, flags));
}

static void finalize_engine(const struct ncclComm *comm)
{
	struct comm *c = idle() ? NULL : comms_get(comm);

	if (c && c->engine) {
		atomic_store(&c->finalized, true);
		engine_drain(c->engine);
	}
	comms_put(c);
}

REAL_EXPORT int ncclCommFinalize(struct ncclComm *comm)
{
	finalize_engine(comm);
	return SHIM_REAL(REAL(CommFinalize, comm));
}

/* The handle is forgotten first: NCCL may give it to another thread right away. */
REAL_EXPORT int ncclCommDestroy(struct ncclComm *comm)
{
	struct comm *c = idle() ? NULL : comms_remove(comm);
	int status;

	if (c && c->engine)
		engine_drain(c->engine);
	status = SHIM_REAL(REAL(CommDestroy, comm));
	comms_put(c);
	return status;
}

REAL_EXPORT int ncclCommAbort(struct ncclComm *comm)
{
	struct comm *c = idle() ? NULL : comms_remove(comm);
	int status;

	if (c && c->engine)
		engine_abort(c->engine);
	status = SHIM_REAL(REAL(CommAbort, comm));
	comms_put(c);
	return status;
}

/* ---- errors ---- */

static bool has_engines(void)
{
	return atomic_load_explicit(&comms_engines, memory_order_relaxed) != 0;
}

static struct comm *with_engine(const struct ncclComm *comm)
{
	struct comm *c;

	if (!has_engines() || idle())
		return NULL;
	c = comms_get(comm);
	if (c && c->engine)
		return c;
	comms_put(c);
	return NULL;
}

REAL_EXPORT int ncclCommGetAsyncError(struct ncclComm *comm, int *ret)
{
	int status = SHIM_REAL(REAL(CommGetAsyncError, comm, ret));
	struct comm *c = with_engine(comm);

	if (c && status == NCCL_SUCCESS && *ret == NCCL_SUCCESS)
		*ret = engine_check(c->engine);
	comms_put(c);
	return status;
}

REAL_EXPORT const char *ncclGetLastError(struct ncclComm *comm)
{
	GetLastError_function *f = real_GetLastError();
	struct comm *c = with_engine(comm);
	const char *reason = c ? engine_reason(c->engine) : NULL;

	comms_put(c);
	if (reason)
		return reason;
	if (!f)
		real_missing(NCCL_GetLastError);
	return f ? f(comm) : real_reason();
}

/* ---- groups ---- */

REAL_EXPORT int ncclGroupStart(void)
{
	struct shim_thread *self = shim_self();
	int status = SHIM_REAL_IN(self, REAL(GroupStart));

	if (!is_idle(self) && status == NCCL_SUCCESS)
		self->depth++;
	return status;
}

/* Whether this is the outermost one's end, and something waited for it. */
static bool end_group(struct shim_thread *self)
{
	return self->depth > 0 && --self->depth == 0 && self->queued;
}

/* What is taken over goes first: it only enqueues, while NCCL may wait here for other ranks. */
REAL_EXPORT int ncclGroupEnd(void)
{
	struct shim_thread *self = shim_self();
	int status, real;

	if (is_idle(self) || !end_group(self))
		return SHIM_REAL_IN(self, REAL(GroupEnd));
	status = group_run();
	real = SHIM_REAL_IN(self, REAL(GroupEnd));
	if (real == NCCL_SUCCESS)
		group_raise();
	else
		group_drop();
	return real == NCCL_SUCCESS ? status : real;
}

REAL_EXPORT int ncclGroupSimulateEnd(struct nccl_sim_info *info)
{
	if (!idle() && real_GroupSimulateEnd() && end_group(shim_self()))
		group_drop();
	return SHIM_REAL(REAL(GroupSimulateEnd, info));
}

/* ---- collectives ---- */

/* Whether the call was taken over; its status is in *ret then. */
static bool take(const struct ncclComm *comm, const struct engine_call *call, int *ret)
{
	struct comm *c = with_engine(comm);
	bool taken = c && !atomic_load(&c->finalized) && engine_takes(c->engine, call);

	if (c && !taken)
		engine_passed(c->engine, 1);
	if (taken && shim_self()->depth == 0)
		*ret = engine_run(c->engine, call);
	else if (taken)
		*ret = group_queue(c, call) ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
	comms_put(c);
	return taken;
}

/* Before the call is written down, which takes longer. */
static bool passes(const struct ncclComm *comm, enum onehop_operation operation, size_t count,
		   int type, int op, int root)
{
	return !has_engines() || shim_self()->inside ||
	       comms_leave(comm, operation, count, type, op, root);
}

#define CALL(kind, in_, out_, op_, root_)                                                          \
	int status;                                                                                \
                                                                                                   \
	if (!passes(comm, ONEHOP_##kind, count, type, op_, root_) &&                               \
	    take(comm,                                                                             \
		 &(struct engine_call){ONEHOP_##kind, in_, out_, count, type, op_, root_, stream}, \
		 &status))                                                                         \
	return status

REAL_EXPORT int ncclAllReduce(const void *in, void *out, size_t count, int type, int op,
			      struct ncclComm *comm, void *stream)
{
	CALL(ALL_REDUCE, in, out, op, 0);
	return REAL(AllReduce, in, out, count, type, op, comm, stream);
}

REAL_EXPORT int ncclReduce(const void *in, void *out, size_t count, int type, int op, int root,
			   struct ncclComm *comm, void *stream)
{
	CALL(REDUCE, in, out, op, root);
	return REAL(Reduce, in, out, count, type, op, root, comm, stream);
}

REAL_EXPORT int ncclBroadcast(const void *in, void *out, size_t count, int type, int root,
			      struct ncclComm *comm, void *stream)
{
	CALL(BROADCAST, in, out, 0, root);
	return REAL(Broadcast, in, out, count, type, root, comm, stream);
}

REAL_EXPORT int ncclBcast(void *data, size_t count, int type, int root, struct ncclComm *comm,
			  void *stream)
{
	CALL(BROADCAST, data, data, 0, root);
	return SHIM_REAL(REAL(Bcast, data, count, type, root, comm, stream));
}

REAL_EXPORT int ncclReduceScatter(const void *in, void *out, size_t count, int type, int op,
				  struct ncclComm *comm, void *stream)
{
	CALL(REDUCE_SCATTER, in, out, op, 0);
	return REAL(ReduceScatter, in, out, count, type, op, comm, stream);
}

REAL_EXPORT int ncclAllGather(const void *in, void *out, size_t count, int type,
			      struct ncclComm *comm, void *stream)
{
	CALL(ALL_GATHER, in, out, 0, 0);
	return REAL(AllGather, in, out, count, type, comm, stream);
}

REAL_EXPORT int ncclAlltoAll(const void *in, void *out, size_t count, int type,
			     struct ncclComm *comm, void *stream)
{
	CALL(ALL_TO_ALL, in, out, 0, 0);
	return SHIM_REAL(REAL(AlltoAll, in, out, count, type, comm, stream));
}
