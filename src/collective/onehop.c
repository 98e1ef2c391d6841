// SPDX-License-Identifier: Apache-2.0
/* The public functions (include/onehop/onehop.h). */
#include <onehop/onehop.h>

#include "base/err.h"
#include "collective/operation.h"

#include <errno.h>

#define LIMIT_MS 30000u

_Static_assert((int)ONEHOP_TYPE_N == ELEMENT_TYPE_N && (int)ONEHOP_BFLOAT16 == ELEMENT_BFLOAT16,
	       "element types");
_Static_assert((int)ONEHOP_OP_N == REDUCE_OP_N && (int)ONEHOP_AVG == REDUCE_AVG, "reductions");
_Static_assert(ONEHOP_RANKS_MAX == COLLECTIVE_RANKS_MAX, "ranks");

static struct comm_options options_of(const struct onehop_options *o)
{
	const unsigned ms = o && o->limit_ms ? o->limit_ms : LIMIT_MS;

	return (struct comm_options){.limit_us = 1000ul * ms,
				     .no_p2p = o && o->no_p2p,
				     .forced = ALGORITHM_N};
}

int onehop_open_all(int n, const int *devices, const struct onehop_options *options,
		    struct onehop_comm **ret)
{
	const struct comm_options o = options_of(options);
	struct device_request q = {.kind = DEVICE_CUDA,
				   .collectives = true,
				   .n = n < 0 ? 0 : (size_t)n};

	if (!ret)
		return err_set(EINVAL, "no place for communicators");
	for (int i = 0; i < n && i < ONEHOP_RANKS_MAX; i++) {
		q.ordinal[i] = devices ? devices[i] : i;
		q.number[i] = i;
	}
	return comm_open_all(&q, &o, ret);
}

int onehop_open_rank(const char *key, int rank, int n, int device,
		     const struct onehop_options *options, struct onehop_comm **ret)
{
	const struct comm_options o = options_of(options);
	const struct device_request q = {.kind = DEVICE_CUDA,
					 .n = 1,
					 .ordinal = {device},
					 .number = {rank}};

	if (!ret)
		return err_set(EINVAL, "no place for a communicator");
	return comm_open_rank(&q, key, rank, n, &o, ret);
}

void onehop_close(struct onehop_comm *comm)
{
	comm_close(comm);
}

static int enqueue(struct onehop_comm *comm, enum operation o, const void *in, void *out,
		   size_t count, enum onehop_type type, enum onehop_op op, int root, void *stream)
{
	const struct operation_call call = {.in = in,
					    .out = out,
					    .count = count,
					    .type = (unsigned)type,
					    .op = (unsigned)op,
					    .root = root,
					    .stream = stream};

	return operation_enqueue(comm, o, &call);
}

int onehop_all_reduce(struct onehop_comm *comm, const void *in, void *out, size_t count,
		      enum onehop_type type, enum onehop_op op, void *stream)
{
	return enqueue(comm, OPERATION_ALL_REDUCE, in, out, count, type, op, 0, stream);
}

int onehop_reduce(struct onehop_comm *comm, const void *in, void *out, size_t count,
		  enum onehop_type type, enum onehop_op op, int root, void *stream)
{
	return enqueue(comm, OPERATION_REDUCE, in, out, count, type, op, root, stream);
}

int onehop_reduce_scatter(struct onehop_comm *comm, const void *in, void *out, size_t count,
			  enum onehop_type type, enum onehop_op op, void *stream)
{
	return enqueue(comm, OPERATION_REDUCE_SCATTER, in, out, count, type, op, 0, stream);
}

int onehop_all_gather(struct onehop_comm *comm, const void *in, void *out, size_t count,
		      enum onehop_type type, void *stream)
{
	return enqueue(comm, OPERATION_ALL_GATHER, in, out, count, type, ONEHOP_SUM, 0, stream);
}

int onehop_broadcast(struct onehop_comm *comm, const void *in, void *out, size_t count,
		     enum onehop_type type, int root, void *stream)
{
	return enqueue(comm, OPERATION_BROADCAST, in, out, count, type, ONEHOP_SUM, root, stream);
}

int onehop_all_to_all(struct onehop_comm *comm, const void *in, void *out, size_t count,
		      enum onehop_type type, void *stream)
{
	return enqueue(comm, OPERATION_ALL_TO_ALL, in, out, count, type, ONEHOP_SUM, 0, stream);
}

int onehop_barrier(struct onehop_comm *comm, void *stream)
{
	return enqueue(comm, OPERATION_ALL_REDUCE, NULL, NULL, 0, ONEHOP_UINT8, ONEHOP_SUM, 0,
		       stream);
}

int onehop_check(struct onehop_comm *comm)
{
	return comm ? comm_check(comm) : err_set(EINVAL, "no communicator");
}

int onehop_rank(const struct onehop_comm *comm)
{
	return comm ? (int)comm->me : err_set(EINVAL, "no communicator");
}

int onehop_size(const struct onehop_comm *comm)
{
	return comm ? (int)comm->facts.n : err_set(EINVAL, "no communicator");
}

const char *onehop_error(void)
{
	return err_msg();
}
