/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives as rows: how nccl-tests counts them, how they are called, what must come out. */
#include "bench/collective_impl.h"

#include "base/err.h"
#include "kernels/typed.h"
#include "result/metric.h"

#include <errno.h>

/* What a part of the output comes from. */
enum source { FROM_ALL_RANKS, FROM_PART, FROM_ROOT, FROM_PREVIOUS };

struct row {
	bool reduces, has_root;
	bool splits;                  /* the size is that of all parts, one per rank */
	bool sends_parts, recv_parts; /* a part per rank in that buffer */
	bool send_at, recv_at;        /* in place it is at the rank's own part */
	bool in_place;                /* can be checked in place */
	enum source source;
	double links, per_rank; /* busbw = algbw * (links * n - per_rank) / n */
	int (*call)(const struct nccl_api *api, const struct nccl_call *c);
	enum operation ours; /* libonehop's; OPERATION_N: none */
};

/* ---- calls ---- */

static int call_all_reduce(const struct nccl_api *api, const struct nccl_call *c)
{
	return api->AllReduce(c->send, c->recv, c->count, c->type, c->redop, c->comm, c->stream);
}

static int call_all_gather(const struct nccl_api *api, const struct nccl_call *c)
{
	return api->AllGather(c->send, c->recv, c->count, c->type, c->comm, c->stream);
}

static int call_reduce_scatter(const struct nccl_api *api, const struct nccl_call *c)
{
	return api->ReduceScatter(c->send, c->recv, c->count, c->type, c->redop, c->comm,
				  c->stream);
}

static int call_broadcast(const struct nccl_api *api, const struct nccl_call *c)
{
	return api->Broadcast(c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream);
}

static int call_reduce(const struct nccl_api *api, const struct nccl_call *c)
{
	return api->Reduce(c->send, c->recv, c->count, c->type, c->redop, c->root, c->comm,
			   c->stream);
}

/* Groups may be nested. */
static int exchange_parts(const struct nccl_api *api, const struct nccl_call *c)
{
	uint64_t part = c->count * nccl_type_size((enum element_type)c->type);
	int r = api->GroupStart(), end;

	for (int i = 0; r == NCCL_SUCCESS && i < c->ranks; i++) {
		r = api->Send(c->send + (uint64_t)i * part, c->count, c->type, i, c->comm,
			      c->stream);
		if (r == NCCL_SUCCESS)
			r = api->Recv(c->recv + (uint64_t)i * part, c->count, c->type, i, c->comm,
				      c->stream);
	}
	end = api->GroupEnd();
	return r == NCCL_SUCCESS ? end : r;
}

static int call_all_to_all(const struct nccl_api *api, const struct nccl_call *c)
{
	if (!api->AlltoAll)
		return exchange_parts(api, c);
	return api->AlltoAll(c->send, c->recv, c->count, c->type, c->comm, c->stream);
}

static int call_send_recv(const struct nccl_api *api, const struct nccl_call *c)
{
	int next = (c->rank + 1) % c->ranks, previous = (c->rank + c->ranks - 1) % c->ranks;
	int r = api->GroupStart(), end;

	if (r == NCCL_SUCCESS)
		r = api->Send(c->send, c->count, c->type, next, c->comm, c->stream);
	if (r == NCCL_SUCCESS)
		r = api->Recv(c->recv, c->count, c->type, previous, c->comm, c->stream);
	end = api->GroupEnd();
	return r == NCCL_SUCCESS ? end : r;
}

/* ---- the table ---- */

static const struct row rows[NCCL_OP_N] = {
	[NCCL_ALL_REDUCE] = {.reduces = true,
			     .in_place = true,
			     .source = FROM_ALL_RANKS,
			     .links = 2,
			     .per_rank = 2,
			     .call = call_all_reduce,
			     .ours = OPERATION_ALL_REDUCE},
	[NCCL_ALL_GATHER] = {.splits = true,
			     .recv_parts = true,
			     .send_at = true,
			     .in_place = true,
			     .source = FROM_PART,
			     .links = 1,
			     .per_rank = 1,
			     .call = call_all_gather,
			     .ours = OPERATION_ALL_GATHER},
	[NCCL_REDUCE_SCATTER] = {.reduces = true,
				 .splits = true,
				 .sends_parts = true,
				 .recv_at = true,
				 .in_place = true,
				 .source = FROM_ALL_RANKS,
				 .links = 1,
				 .per_rank = 1,
				 .call = call_reduce_scatter,
				 .ours = OPERATION_REDUCE_SCATTER},
	[NCCL_BROADCAST] = {.has_root = true,
			    .in_place = true,
			    .source = FROM_ROOT,
			    .links = 1,
			    .call = call_broadcast,
			    .ours = OPERATION_BROADCAST},
	[NCCL_REDUCE] = {.reduces = true,
			 .has_root = true,
			 .in_place = true,
			 .source = FROM_ALL_RANKS,
			 .links = 1,
			 .call = call_reduce,
			 .ours = OPERATION_REDUCE},
	[NCCL_ALL_TO_ALL] = {.splits = true,
			     .sends_parts = true,
			     .recv_parts = true,
			     .source = FROM_PART,
			     .links = 1,
			     .per_rank = 1,
			     .call = call_all_to_all,
			     .ours = OPERATION_ALL_TO_ALL},
	[NCCL_SEND_RECV] = {.source = FROM_PREVIOUS,
			    .links = 1,
			    .call = call_send_recv,
			    .ours = OPERATION_N},
	[NCCL_BARRIER] = {.ours = OPERATION_ALL_REDUCE},
};

#define BOTH_HAVE "all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all"

const char *const nccl_op_words[] = {BOTH_HAVE, "send-recv", "barrier", NULL};

const char *const nccl_call_words[] = {BOTH_HAVE, "send-recv", NULL};

const char *const nccl_own_op_words[] = {BOTH_HAVE, "barrier", NULL};

enum nccl_op nccl_own_op(unsigned word)
{
	return word < NCCL_SEND_RECV ? (enum nccl_op)word : NCCL_BARRIER;
}

const char *const nccl_type_words[] = {"int8",   "uint8",  "int32", "uint32", "int64",
				       "uint64", "half",   "float", "double", "bfloat16",
				       "f8e4m3", "f8e5m2", NULL};

const char *const nccl_reduce_op_words[] = {"sum", "prod", "max", "min", "avg", NULL};

const char *const collective_engine_names[] = {"NCCL", "NCCL with the shim", "onehop", NULL};

_Static_assert(sizeof(nccl_op_words) / sizeof(*nccl_op_words) == NCCL_OP_N + 1 &&
		       sizeof(nccl_type_words) / sizeof(*nccl_type_words) == ELEMENT_TYPE_N + 1 &&
		       sizeof(nccl_reduce_op_words) / sizeof(*nccl_reduce_op_words) ==
			       REDUCE_OP_N + 1,
	       "a word for each");

const char *nccl_tests_name(enum nccl_op op)
{
	return metric_of_collective(nccl_op_words[op], true, false)->peers[PEER_NCCL_TESTS].name;
}

bool nccl_op_reduces(enum nccl_op op)
{
	return rows[op].reduces;
}

bool nccl_op_has_root(enum nccl_op op)
{
	return rows[op].has_root;
}

bool nccl_op_checks_in_place(enum nccl_op op)
{
	return rows[op].in_place;
}

enum operation nccl_op_ours(enum nccl_op op)
{
	return rows[op].ours;
}

bool nccl_op_is_ours(enum nccl_op op)
{
	return rows[op].ours != OPERATION_N;
}

unsigned nccl_type_size(enum element_type t)
{
	return (unsigned)typed_bytes(t);
}

int nccl_call(const struct nccl_api *api, const struct nccl_call *c)
{
	return rows[c->op].call(api, c);
}

/* ---- counting ---- */

/* Parts are multiples of 16 bytes, as in nccl-tests, so that all begin aligned. */
void nccl_shape(enum nccl_op op, unsigned type_size, int ranks, uint64_t bytes,
		struct nccl_shape *ret)
{
	const struct row *row = &rows[op];
	uint64_t n = (uint64_t)ranks, count = bytes / type_size;
	uint64_t part;

	if (op == NCCL_BARRIER)
		count = 0;
	if (row->splits)
		count = count / n & ~(uint64_t)(16 / type_size - 1);
	part = count * type_size;
	*ret = (struct nccl_shape){
		.count = count,
		.send_bytes = row->sends_parts ? part * n : part,
		.recv_bytes = row->recv_parts ? part * n : part,
		.bytes = row->splits ? part * n : part,
		.send_offset = row->send_at ? part : 0,
		.recv_offset = row->recv_at ? part : 0,
	};
}

void nccl_rates(enum nccl_op op, const struct nccl_shape *s, unsigned type_size, int ranks,
		double time_us, struct collective_cell *ret)
{
	const struct row *row = &rows[op];
	double bytes = (double)s->count * type_size * (row->splits ? ranks : 1);

	ret->algbw_gbps = bytes / time_us / 1e3;
	ret->busbw_gbps = ret->algbw_gbps * (row->links * ranks - row->per_rank) / ranks;
}

/* ---- what must come out ---- */

int nccl_segment_n(enum nccl_op op, int rank, int ranks, int root)
{
	if (op == NCCL_REDUCE && rank != root)
		return 0;
	return rows[op].source == FROM_PART ? ranks : 1;
}

void nccl_segment(enum nccl_op op, uint64_t count, int rank, int ranks, int root, int i,
		  struct nccl_segment *ret)
{
	const struct nccl_segment of[] = {
		[FROM_ALL_RANKS] = {0, 0, ranks},
		[FROM_PART] = {0, i, 1},
		[FROM_ROOT] = {0, root, 1},
		[FROM_PREVIOUS] = {0, (rank + ranks - 1) % ranks, 1},
	};

	*ret = of[rows[op].source];
	if (op == NCCL_ALL_GATHER)
		ret->first = (uint64_t)i * count;
	else if (rows[op].sends_parts)
		ret->first = (uint64_t)rank * count;
}

/* Gathered parts are stretches of one vector, so that one in another's place shows. */
uint64_t nccl_input_first(enum nccl_op op, uint64_t count, int rank)
{
	return op == NCCL_ALL_GATHER ? (uint64_t)rank * count : 0;
}

/* ---- the plan ---- */

uint64_t collective_plan_next(const struct collective_plan *p, uint64_t bytes)
{
	uint64_t next;

	if (p->factor > 1 ? __builtin_mul_overflow(bytes, p->factor, &next)
			  : __builtin_add_overflow(bytes, p->step, &next))
		return UINT64_MAX;
	return next;
}

size_t collective_plan_sizes(const struct collective_plan *p, uint64_t max_bytes)
{
	size_t n = 0;

	for (uint64_t b = p->min_bytes; b <= max_bytes && n <= NCCL_SIZES_MAX;
	     b = collective_plan_next(p, b))
		n++;
	return n;
}

bool collective_plan_uses(const struct collective_plan *p, enum collective_engine e)
{
	return p->engine == e || (p->against && p->rival == e);
}

const char *collective_plan_windows(const struct collective_plan *p)
{
	return p->symmetric ? " and its symmetric windows" : "";
}

int collective_plan_check(const struct collective_plan *p)
{
	if (collective_plan_uses(p, ENGINE_ONEHOP) && !nccl_op_is_ours(p->op))
		return err_set(EINVAL, "libonehop has no %s", nccl_op_words[p->op]);
	if (p->op == NCCL_BARRIER &&
	    (collective_plan_uses(p, ENGINE_NCCL) || collective_plan_uses(p, ENGINE_SHIM)))
		return err_set(EINVAL, "NCCL has no barrier");
	if (p->skip[OUT_OF_PLACE] && p->skip[IN_PLACE])
		return err_set(EINVAL, "neither out of place nor in place is to be measured");
	if (p->min_bytes < 1 || p->min_bytes > p->max_bytes)
		return err_set(EINVAL, "there are no sizes from %llu to %llu bytes",
			       (unsigned long long)p->min_bytes, (unsigned long long)p->max_bytes);
	if (p->factor < 2 && p->step < 1)
		return err_set(EINVAL, "--factor must be larger than 1");
	if (collective_plan_sizes(p, p->max_bytes) > NCCL_SIZES_MAX)
		return err_set(EINVAL, "more than %d sizes", NCCL_SIZES_MAX);
	if (p->iterations < 1)
		return err_set(EINVAL, "without iterations there is nothing to time");
	return 0;
}
