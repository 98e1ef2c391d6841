/* SPDX-License-Identifier: Apache-2.0 */
/* What runs the operations of the benchmark: NCCL, or libonehop. */
#include "bench/collective_impl.h"

#include "base/err.h"

#include <errno.h>

/* ---- NCCL, by itself or below the shim ---- */

/* One of the two libraries, and its communicators. */
struct nccl_side {
	const struct nccl_api *api;
	bool shim;
};

static struct nccl_side nccl_side(const struct bench *b)
{
	return (struct nccl_side){&b->api, false};
}

static struct nccl_side shim_side(const struct bench *b)
{
	return (struct nccl_side){&b->shim, true};
}

static struct ncclComm **comm_of(struct nccl_side n, struct lane *l)
{
	return n.shim ? &l->shimmed : &l->comm;
}

static int nccl_error(struct nccl_side n, const char *call, int result)
{
	const char *last = n.api->GetLastError ? n.api->GetLastError(NULL) : "";

	return err_set(EIO, "%s%s: %s%s%s", n.shim ? "with the shim: " : "", call,
		       n.api->GetErrorString(result), last && *last ? "; " : "",
		       last && *last ? last : "");
}

static int share_id(struct bench *b, struct nccl_side n, struct nccl_unique_id *id)
{
	int r = NCCL_SUCCESS;

	if (b->order.ranks.rank == 0)
		r = n.api->GetUniqueId(id);
	if (r != NCCL_SUCCESS)
		return nccl_error(n, "ncclGetUniqueId", r);
	return b->meeting ? rendezvous_broadcast(b->meeting, id, sizeof(*id)) : 0;
}

static int init_lanes(struct bench *b, struct nccl_side n, struct nccl_unique_id id)
{
	int r = n.api->GroupStart(), end, e;

	for (size_t i = 0; r == NCCL_SUCCESS && i < b->set->n; i++) {
		e = b->set->ops->make_current(b->set, (int)i);
		if (e < 0)
			return e;
		r = n.api->CommInitRank(comm_of(n, &b->lanes[i]), b->ranks, id, b->lanes[i].rank);
	}
	end = n.api->GroupEnd();
	r = r == NCCL_SUCCESS ? end : r;
	return r == NCCL_SUCCESS ? 0 : nccl_error(n, "ncclCommInitRank", r);
}

static int open_side(struct bench *b, struct nccl_side n)
{
	struct nccl_unique_id id = {{0}};
	int r = share_id(b, n, &id);

	if (r == 0)
		r = bench_say_step(b, n.shim ? "ncclCommInitRank of the shim" : "ncclCommInitRank");
	return r < 0 ? r : init_lanes(b, n, id);
}

static int start_lane(struct bench *b, struct nccl_side n, struct lane *l,
		      const struct engine_call *e)
{
	const struct nccl_shape *s = e->shape;
	struct nccl_call c = {
		.op = b->plan->op,
		.send = (const char *)(uintptr_t)(lane_input(l, s, e->in_place) + e->shift),
		.recv = (char *)(uintptr_t)(lane_output(l, s, e->in_place) + e->shift),
		.count = s->count,
		.type = b->plan->type,
		.redop = b->plan->redop,
		.root = b->plan->root,
		.rank = l->rank,
		.ranks = b->ranks,
		.comm = *comm_of(n, l),
		.stream = l->native,
	};

	return nccl_call(n.api, &c);
}

static int start_side(struct bench *b, struct nccl_side n, const struct engine_call *c)
{
	bool grouped = b->set->n > 1;
	int r = grouped ? n.api->GroupStart() : NCCL_SUCCESS, end = NCCL_SUCCESS;

	for (size_t i = 0; r == NCCL_SUCCESS && i < b->set->n; i++)
		r = start_lane(b, n, &b->lanes[i], c);
	if (grouped)
		end = n.api->GroupEnd();
	r = r == NCCL_SUCCESS ? end : r;
	return r == NCCL_SUCCESS ? 0 : nccl_error(n, nccl_op_words[b->plan->op], r);
}

static int check_side(struct nccl_side n, struct lane *l)
{
	int result = NCCL_SUCCESS;

	if (*comm_of(n, l))
		n.api->CommGetAsyncError(*comm_of(n, l), &result);
	if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
		return 0;
	return nccl_error(n, "ncclCommGetAsyncError", result);
}

static void close_side(struct bench *b, struct nccl_side n, bool failed)
{
	for (size_t i = 0; b->set && i < b->set->n; i++) {
		struct ncclComm *comm = *comm_of(n, &b->lanes[i]);

		if (comm && b->set->ops->make_current(b->set, (int)i) == 0)
			(failed ? n.api->CommAbort : n.api->CommDestroy)(comm);
	}
}

int nccl_open_windows(struct bench *b)
{
	const struct nccl_api *api = &b->api;
	int r = b->plan->symmetric ? bench_say_step(b, "ncclCommWindowRegister") : 0, end;

	if (r < 0 || !b->plan->symmetric)
		return r;
	r = api->GroupStart();
	for (size_t i = 0; r == NCCL_SUCCESS && i < b->set->n; i++) {
		struct lane *l = &b->lanes[i];

		if ((end = b->set->ops->make_current(b->set, (int)i)) < 0)
			return end;
		r = api->CommWindowRegister(l->comm, l->send_own, l->send.size, &l->window[0],
					    NCCL_SYMMETRIC_WINDOW);
		if (r == NCCL_SUCCESS)
			r = api->CommWindowRegister(l->comm, l->recv_own, l->recv.size,
						    &l->window[1], NCCL_SYMMETRIC_WINDOW);
	}
	end = api->GroupEnd();
	r = r == NCCL_SUCCESS ? end : r;
	return r == NCCL_SUCCESS ? 0 : nccl_error(nccl_side(b), "ncclCommWindowRegister", r);
}

/* NCCL gives none where a communicator cannot use one. */
void nccl_close_windows(struct bench *b)
{
	for (size_t i = 0; i < b->set->n; i++)
		for (size_t k = 0; k < 2; k++)
			if (b->lanes[i].window[k] && b->set->ops->make_current(b->set, (int)i) == 0)
				b->api.CommWindowDeregister(b->lanes[i].comm,
							    b->lanes[i].window[k]);
}

/* An engine of one of the two. */
#define SIDE(name)                                                                                 \
	static int name##_open(struct bench *b)                                                    \
	{                                                                                          \
		return open_side(b, name##_side(b));                                               \
	}                                                                                          \
	static int name##_start(struct bench *b, const struct engine_call *c)                      \
	{                                                                                          \
		return start_side(b, name##_side(b), c);                                           \
	}                                                                                          \
	static int name##_check(struct bench *b, struct lane *l)                                   \
	{                                                                                          \
		return check_side(name##_side(b), l);                                              \
	}                                                                                          \
	static void name##_close(struct bench *b, bool failed)                                     \
	{                                                                                          \
		close_side(b, name##_side(b), failed);                                             \
	}

SIDE(nccl)
SIDE(shim)

/* ---- libonehop ---- */

static int check_ranks(const struct bench *b)
{
	if (b->ranks > COLLECTIVE_RANKS_MAX)
		return err_set(EINVAL, "libonehop has at most %d ranks, not %d",
			       COLLECTIVE_RANKS_MAX, b->ranks);
	if (b->meeting && b->set->n > 1)
		return err_set(
			ENOTSUP,
			"libonehop has all ranks in one process or one rank in each, not %zu of "
			"%d in each",
			b->set->n, b->ranks);
	return 0;
}

/* The communicators own the set from here on, even if they cannot be opened. */
static int onehop_open(struct bench *b)
{
	/*
	 * So that the kernels end, and name the rank that is missing, before the process is killed.
	 */
	const struct comm_options o = {.limit_us = b->order.limit_us / 2,
				       .no_p2p = b->plan->no_p2p,
				       .forced = ALGORITHM_N,
				       .tuned = b->order.has_tuned ? &b->order.tuned : NULL};
	struct onehop_comm *comms[COLLECTIVE_RANKS_MAX] = {0};
	char key[RENDEZVOUS_KEY_MAX + 1];
	size_t n = b->set->n;
	int r = check_ranks(b);

	if (r == 0)
		r = bench_say_step(b, "opening libonehop's communicators");
	if (r < 0)
		return r;
	bench_key(b, "own", key);
	b->set_given = true;
	r = b->meeting ? comm_open_rank_set(b->set, key, b->lanes[0].rank, b->ranks, &o, comms)
		       : comm_open_set(b->set, &o, comms);
	if (r < 0)
		b->set = NULL;
	for (size_t i = 0; r == 0 && i < n; i++)
		b->lanes[i].own = comms[i];
	return r;
}

static int onehop_start(struct bench *b, const struct engine_call *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->set->n; i++) {
		const struct lane *l = &b->lanes[i];
		const struct operation_call c = {
			.in = (const void *)(uintptr_t)(lane_input(l, e->shape, e->in_place) +
							e->shift),
			.out = (void *)(uintptr_t)(lane_output(l, e->shape, e->in_place) +
						   e->shift),
			.count = e->shape->count,
			.type = b->plan->type,
			.op = b->plan->redop,
			.root = b->plan->root,
			.stream = l->native,
			.barrier = b->plan->op == NCCL_BARRIER,
		};

		r = operation_enqueue(l->own, nccl_op_ours(b->plan->op), &c);
	}
	return r;
}

static int onehop_check_lane(struct bench *b, struct lane *l)
{
	(void)b;
	return l->own ? comm_check(l->own) : 0;
}

static void onehop_close_all(struct bench *b, bool failed)
{
	size_t n = b->set ? b->set->n : 0;

	(void)failed;
	for (size_t i = 0; i < n; i++)
		comm_close(b->lanes[i].own);
}

const struct engine engines[ENGINE_N] = {
	[ENGINE_NCCL] = {nccl_open, nccl_start, nccl_check, nccl_close},
	[ENGINE_SHIM] = {shim_open, shim_start, shim_check, shim_close},
	[ENGINE_ONEHOP] = {onehop_open, onehop_start, onehop_check_lane, onehop_close_all},
};
