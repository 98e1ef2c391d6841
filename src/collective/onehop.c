// SPDX-License-Identifier: Apache-2.0
/* The public functions (include/onehop/onehop.h). */
#include <onehop/onehop.h>

#include "base/err.h"
#include "collective/exchange.h"
#include "collective/group.h"
#include "collective/operation.h"
#include "device/rendezvous.h"

#include <errno.h>

#define LIMIT_MS 30000u

_Static_assert((int)ONEHOP_TYPE_N == ELEMENT_TYPE_N &&
		       (int)ONEHOP_FLOAT8_E5M2 == ELEMENT_FLOAT8_E5M2,
	       "element types");
_Static_assert((int)ONEHOP_OP_N == REDUCE_OP_N && (int)ONEHOP_AVG == REDUCE_AVG, "reductions");
_Static_assert(ONEHOP_RANKS_MAX == COLLECTIVE_RANKS_MAX, "ranks");
_Static_assert((int)ONEHOP_OPERATION_N == OPERATION_N &&
		       (int)ONEHOP_ALL_TO_ALL == OPERATION_ALL_TO_ALL,
	       "operations");

/* Where a damaged or missing table is an error, because the caller named it. */
static int options_of(const struct onehop_options *o, struct tuned *table, struct comm_options *ret)
{
	const unsigned ms = o && o->limit_ms ? o->limit_ms : LIMIT_MS;

	*ret = (struct comm_options){.limit_us = 1000ul * ms,
				     .no_p2p = o && o->no_p2p,
				     .forced = ALGORITHM_N};
	if (!o || !o->tune_file)
		return 0;
	ret->tuned = table;
	return tuned_read(o->tune_file, table);
}

static struct device_request request_of(const struct onehop_options *o, size_t n)
{
	struct device_request q = {.kind = o && o->simulated ? DEVICE_HOST : DEVICE_CUDA,
				   .collectives = true,
				   .n = n};

	for (size_t i = 0; o && o->contexts && i < n && i < ONEHOP_RANKS_MAX; i++)
		q.context[i] = (uint64_t)o->contexts[i];
	return q;
}

static int open_all(int n, const int *devices, const struct onehop_options *options,
		    struct onehop_comm **ret)
{
	struct device_request q;
	struct comm_options o;
	struct tuned table;
	int r;

	if (!ret)
		return err_set(EINVAL, "no place for communicators");
	if (n < 1 || n > ONEHOP_RANKS_MAX)
		return err_set(EINVAL, "the number of ranks must be 1 to %d, not %d",
			       ONEHOP_RANKS_MAX, n);
	q = request_of(options, (size_t)n);
	for (int i = 0; i < n; i++) {
		q.ordinal[i] = devices ? devices[i] : i;
		q.number[i] = i;
	}
	r = options_of(options, &table, &o);
	return r < 0 ? r : comm_open_all(&q, &o, ret);
}

static int open_rank(const char *key, int rank, int n, int device,
		     const struct onehop_options *options, struct onehop_comm **ret)
{
	struct device_request q = request_of(options, 1);
	struct comm_options o;
	struct tuned table;
	int r;

	if (!ret)
		return err_set(EINVAL, "no place for a communicator");
	q.ordinal[0] = device;
	q.number[0] = rank;
	r = options_of(options, &table, &o);
	return r < 0 ? r : comm_open_rank(&q, key, rank, n, &o, ret);
}

static int open_exchange(const struct onehop_exchange *exchange, int rank, int n, int device,
			 const struct onehop_options *options, struct onehop_comm **ret)
{
	char key[RENDEZVOUS_KEY_MAX + 1];
	int r;

	if (!exchange || !exchange->all_gather)
		return err_set(EINVAL, "no all_gather");
	if (ret)
		*ret = NULL;
	/*
	 * Also without a place for the communicator, or the others would wait for this rank in
	 * their all_gather.
	 */
	r = exchange_key(exchange->all_gather, exchange->context, rank, n, key);
	return r < 0 && ret ? r : open_rank(key, rank, n, device, options, ret);
}

/* The sentence of an error begins with the function that was called. */
static int named(int r, const char *function)
{
	return r < 0 ? err_wrap(r, "%s", function) : r;
}

int onehop_open_all(int n, const int *devices, const struct onehop_options *options,
		    struct onehop_comm **ret)
{
	return named(open_all(n, devices, options, ret), __func__);
}

int onehop_open_rank(const char *key, int rank, int n, int device,
		     const struct onehop_options *options, struct onehop_comm **ret)
{
	return named(open_rank(key, rank, n, device, options, ret), __func__);
}

int onehop_open_exchange(const struct onehop_exchange *exchange, int rank, int n, int device,
			 const struct onehop_options *options, struct onehop_comm **ret)
{
	return named(open_exchange(exchange, rank, n, device, options, ret), __func__);
}

void onehop_close(struct onehop_comm *comm)
{
	comm_group_forget(comm);
	comm_close(comm);
}

static int enqueue(struct onehop_comm *comm, enum operation o, const void *in, void *out,
		   size_t count, enum onehop_type type, enum onehop_op op, int root, void *stream)
{
	const struct group_call call = {.comm = comm,
					.o = o,
					.call = {.in = in,
						 .out = out,
						 .count = count,
						 .type = (unsigned)type,
						 .op = (unsigned)op,
						 .root = root,
						 .stream = stream}};

	return comm_group_add(&call);
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
	const struct group_call call = {.comm = comm,
					.o = OPERATION_ALL_REDUCE,
					.call = {.type = ELEMENT_UINT8,
						 .op = REDUCE_SUM,
						 .barrier = true,
						 .stream = stream}};

	return comm_group_add(&call);
}

/* ---- pairs and groups ---- */

static int exchange(struct onehop_comm *comm, enum group_kind kind, const void *in, void *out,
		    size_t count, enum onehop_type type, int peer, void *stream)
{
	const struct group_call call = {.comm = comm,
					.kind = kind,
					.call = {.in = in,
						 .out = out,
						 .count = count,
						 .type = (unsigned)type,
						 .root = peer,
						 .stream = stream}};

	return comm_group_add(&call);
}

int onehop_send(struct onehop_comm *comm, const void *in, size_t count, enum onehop_type type,
		int peer, void *stream)
{
	return exchange(comm, GROUP_SEND, in, NULL, count, type, peer, stream);
}

int onehop_recv(struct onehop_comm *comm, void *out, size_t count, enum onehop_type type, int peer,
		void *stream)
{
	return exchange(comm, GROUP_RECV, NULL, out, count, type, peer, stream);
}

int onehop_group_start(void)
{
	comm_group_start();
	return 0;
}

int onehop_group_end(void)
{
	return comm_group_end();
}

/* ---- what becomes of them ---- */

int onehop_check(struct onehop_comm *comm)
{
	int r = comm_check_open(comm, "onehop_check");

	return r < 0 ? r : comm_check(comm);
}

int onehop_abort(struct onehop_comm *comm)
{
	int r = comm_check_open(comm, "onehop_abort");

	if (r == 0)
		comm_abort(comm);
	return r;
}

int onehop_wait(struct onehop_comm *comm, void *stream)
{
	int r = comm_check_open(comm, "onehop_wait");

	if (r == 0)
		r = comm_wait(comm, stream, 2 * comm_limit_us(comm));
	return r < 0 ? r : comm_check(comm);
}

/* ---- what is known of a communicator ---- */

int onehop_expect(const struct onehop_comm *comm, enum onehop_operation operation, size_t count,
		  enum onehop_type type, enum onehop_op op, struct onehop_expected *ret)
{
	struct choice p;
	int r = comm_check_open(comm, "onehop_expect");

	if (r < 0)
		return r;
	if ((unsigned)operation >= ONEHOP_OPERATION_N || !ret)
		return err_set(EINVAL, "onehop_expect: %s",
			       ret ? "there is no such operation" : "no place for the answer");
	if (operation_check((enum operation)operation, count, (unsigned)type, (unsigned)op) < 0)
		return -ENOTSUP;
	operation_choose(&comm->facts, (enum operation)operation, count, (unsigned)type,
			 comm->options.forced, &p);
	*ret = (struct onehop_expected){.time_us = p.us,
					.measured = p.measured,
					.algorithm = algorithm_word(p.algorithm)};
	return 0;
}

int onehop_memory_used(const struct onehop_comm *comm, struct onehop_memory *ret)
{
	int r = comm_check_open(comm, "onehop_memory_used");

	if (r < 0)
		return r;
	if (!ret)
		return err_set(EINVAL, "onehop_memory_used: no place for the answer");
	*ret = (struct onehop_memory){comm->device_bytes, comm->host_bytes};
	return 0;
}

int onehop_alloc(struct onehop_comm *comm, size_t size, void **ret)
{
	int r = comm_check_open(comm, "onehop_alloc");

	if (r == 0 && (!ret || !size))
		r = err_set(EINVAL, "onehop_alloc: %s",
			    ret ? "0 bytes cannot be allocated" : "no place for the memory");
	return r < 0 ? r : comm_alloc(comm, size, ret);
}

int onehop_rank(const struct onehop_comm *comm)
{
	int r = comm_check_open(comm, "onehop_rank");

	return r < 0 ? r : (int)comm->me;
}

int onehop_size(const struct onehop_comm *comm)
{
	int r = comm_check_open(comm, "onehop_size");

	return r < 0 ? r : (int)comm->facts.n;
}

const char *onehop_error(void)
{
	return err_msg();
}
