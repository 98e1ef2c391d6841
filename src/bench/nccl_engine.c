/* SPDX-License-Identifier: Apache-2.0 */
/* What runs the operations of the benchmark: NCCL, or libonehop. */
#include "bench/nccl_impl.h"

#include "base/err.h"

#include <errno.h>

/* ---- NCCL ---- */

static int nccl_error(const struct bench *b, const char *call, int result)
{
	const char *last = b->api.GetLastError ? b->api.GetLastError(NULL) : "";

	return err_set(EIO, "%s: %s%s%s", call, b->api.GetErrorString(result),
		       last && *last ? "; " : "", last && *last ? last : "");
}

static int share_id(struct bench *b, struct nccl_unique_id *id)
{
	int r = NCCL_SUCCESS;

	if (b->order.ranks.rank == 0)
		r = b->api.GetUniqueId(id);
	if (r != NCCL_SUCCESS)
		return nccl_error(b, "ncclGetUniqueId", r);
	return b->meeting ? rendezvous_broadcast(b->meeting, id, sizeof(*id)) : 0;
}

static int init_lanes(struct bench *b, struct nccl_unique_id id)
{
	int r = b->api.GroupStart(), end, e;

	for (size_t i = 0; r == NCCL_SUCCESS && i < b->set->n; i++) {
		e = b->set->ops->make_current(b->set, (int)i);
		if (e < 0)
			return e;
		r = b->api.CommInitRank(&b->lanes[i].comm, b->ranks, id, b->lanes[i].rank);
	}
	end = b->api.GroupEnd();
	r = r == NCCL_SUCCESS ? end : r;
	return r == NCCL_SUCCESS ? 0 : nccl_error(b, "ncclCommInitRank", r);
}

static int nccl_open(struct bench *b)
{
	struct nccl_unique_id id = {{0}};
	int r = share_id(b, &id);

	if (r == 0)
		r = bench_say_step(b, "ncclCommInitRank");
	return r < 0 ? r : init_lanes(b, id);
}

static int nccl_start_lane(struct bench *b, struct lane *l, const struct engine_call *e)
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
		.comm = l->comm,
		.stream = l->native,
	};

	return nccl_call(&b->api, &c);
}

static int nccl_start(struct bench *b, const struct engine_call *c)
{
	bool grouped = b->set->n > 1;
	int r = grouped ? b->api.GroupStart() : NCCL_SUCCESS, end = NCCL_SUCCESS;

	for (size_t i = 0; r == NCCL_SUCCESS && i < b->set->n; i++)
		r = nccl_start_lane(b, &b->lanes[i], c);
	if (grouped)
		end = b->api.GroupEnd();
	r = r == NCCL_SUCCESS ? end : r;
	return r == NCCL_SUCCESS ? 0 : nccl_error(b, nccl_op_words[b->plan->op], r);
}

static int nccl_check(struct bench *b, struct lane *l)
{
	int result = NCCL_SUCCESS;

	if (l->comm)
		b->api.CommGetAsyncError(l->comm, &result);
	if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
		return 0;
	return nccl_error(b, "ncclCommGetAsyncError", result);
}

static void nccl_close(struct bench *b, bool failed)
{
	for (size_t i = 0; b->set && i < b->set->n; i++)
		if (b->lanes[i].comm && b->set->ops->make_current(b->set, (int)i) == 0)
			(failed ? b->api.CommAbort : b->api.CommDestroy)(b->lanes[i].comm);
}

/* ---- libonehop ---- */

static int check_ranks(const struct bench *b)
{
	if (b->ranks > COLLECTIVE_RANKS_MAX)
		return err_set(ENOTSUP, "libonehop has at most %d ranks, not %d",
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
	/* So that the kernels end, and name the rank that is missing, before the process is killed. */
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
	[ENGINE_ONEHOP] = {onehop_open, onehop_start, onehop_check_lane, onehop_close_all},
};
