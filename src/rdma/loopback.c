/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/loopback.h"

#include "base/clock.h"
#include "rdma/initiator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* rounds of checked data, so that data left over from the first shows in the second */
#define ROUNDS 2

/* The two ends of a connection; both are in this process. */
struct loop {
	const struct loopback_job *job;
	struct nic nic;
	struct end near, far; /* near: the host; far: the GPU */
	struct verbs_cq *cq;
	uint64_t places;
	u64 round;
	struct rdma_failure *failure; /* name of the current step */
};

/* ---- setting up ---- */

static int open_sets(struct loop *l)
{
	uint64_t window = l->places * l->job->load.bytes;
	int r = end_open_host(&l->near, window, l->failure);

	if (r < 0)
		return r;
	return l->job->gpu.n ? end_open_gpu(&l->far, &l->job->gpu, l->failure)
			     : end_open_host(&l->far, window, l->failure);
}

static int open_memory(struct loop *l)
{
	const struct loopback_job *j = l->job;
	uint64_t bytes = l->places * j->load.bytes;
	int r = end_open_memory(&l->nic, &l->near, bytes, REGION_HOST, j->relaxed, j->gpu_limit_us,
				l->failure);

	return r < 0 ? r
		     : end_open_memory(&l->nic, &l->far, bytes, j->way, j->relaxed, j->gpu_limit_us,
				       l->failure);
}

static int open_what_fits(struct loop *l)
{
	int r = open_memory(l);

	while (r < 0 && l->failure->code == ENOMEM && end_can_halve(l->places, &l->job->load)) {
		end_close_memory(&l->nic, &l->near);
		end_close_memory(&l->nic, &l->far);
		*l->failure = (struct rdma_failure){0};
		l->places /= 2;
		r = open_memory(l);
	}
	return r;
}

static int connect_lane(struct loop *l, unsigned i)
{
	const struct rdma_load *w = &l->job->load;
	struct queue_pair *near = &l->near.queues[i], *far = &l->far.queues[i];
	unsigned inline_bytes = (unsigned)w->latency_bytes;
	int r = queue_pair_open(&l->nic, l->cq, w->depth, inline_bytes, near, l->failure);

	if (r == 0)
		r = queue_pair_open(&l->nic, l->cq, w->depth, inline_bytes, far, l->failure);
	if (r == 0)
		r = queue_pair_connect(&l->nic, near, &far->address, l->failure);
	if (r == 0)
		r = queue_pair_connect(&l->nic, far, &near->address, l->failure);
	return r;
}

static int open_queues(struct loop *l)
{
	unsigned n = 2 * l->job->load.queues;
	int r = nic_open_queue(&l->nic, 2 * n * l->job->load.depth, &l->cq, l->failure);

	for (unsigned i = 0; r == 0 && i < n; i++)
		r = connect_lane(l, i);
	return r;
}

static int loop_open(struct loop *l, const struct verbs *v)
{
	int r = nic_open(v, l->job->device, l->job->port, &l->nic, l->failure);

	l->places = end_places(l->job->window, &l->job->load);
	if (r == 0)
		r = open_sets(l);
	if (r == 0)
		r = open_what_fits(l);
	return r < 0 ? r : open_queues(l);
}

/* A queue pair is unusable after an error: later measurements get new ones. */
static void close_queues(struct loop *l)
{
	end_close_queues(&l->nic, &l->near);
	end_close_queues(&l->nic, &l->far);
	if (l->cq)
		l->nic.v->destroy_cq(l->cq);
	l->cq = NULL;
}

static void loop_close(struct loop *l)
{
	close_queues(l);
	end_close(&l->nic, &l->near);
	end_close(&l->nic, &l->far);
	nic_close(&l->nic);
}

static struct initiator initiator_of(const struct loop *l)
{
	return (struct initiator){
		.nic = &l->nic,
		.cq = l->cq,
		.near = &l->near,
		.far_out = end_place(&l->far, END_OUT, true),
		.far_in = end_place(&l->far, END_IN, true),
		.load = &l->job->load,
		.places = l->places,
		.failure = l->failure,
	};
}

/* ---- is it right? ---- */

static int prepare(struct loop *l, bool read)
{
	const struct end_round r = {l->job->load.pair, l->round, read};
	int e = end_fill(read ? &l->far : &l->near, &r, l->failure);

	return e < 0 ? e : end_poison(read ? &l->near : &l->far, &r, l->failure);
}

static int inspect(struct loop *l, bool read, struct rdma_cell *cell)
{
	const struct end_round r = {l->job->load.pair, l->round, read};

	return end_check(read ? &l->near : &l->far, &r, cell, l->failure);
}

static int verify_round(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	const struct initiator i = initiator_of(l);
	int r = 0;

	if (rdma_has_writes(m))
		r = prepare(l, false);
	if (r == 0 && rdma_has_reads(m))
		r = prepare(l, true);
	if (r == 0)
		r = initiator_move(&i, m);
	if (r == 0 && rdma_has_writes(m))
		r = initiator_flush(&i);
	if (r == 0 && rdma_has_writes(m))
		r = inspect(l, false, cell);
	if (r == 0 && rdma_has_reads(m))
		r = inspect(l, true, cell);
	return r;
}

static int verify(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	int r = 0;

	for (int i = 0; r == 0 && i < ROUNDS; i++) {
		l->round++;
		r = verify_round(l, m, cell);
	}
	return r;
}

/* ---- how soon? ---- */

static int one_read(void *context, unsigned n, double *ret_us)
{
	const struct initiator i = initiator_of(context);

	(void)n;
	return initiator_one_read(&i, ret_us);
}

static int post_back(struct loop *l)
{
	const struct stream_work back = {
		.queue = &l->far.queues[0],
		.local = end_place(&l->far, END_OUT, false),
		.remote = end_place(&l->near, END_IN, true),
		.bytes = l->job->load.latency_bytes,
		.places = 1,
		.messages = 1,
		.depth = 1,
	};

	return transfer_post_one(&l->nic, &back, l->failure);
}

/* A round trip; both completions are polled outside the measured time. */
static int one_round_trip(void *context, unsigned n, double *ret_us)
{
	struct loop *l = context;
	const struct rdma_load *w = &l->job->load;
	const struct initiator i = initiator_of(l);
	const struct stream_work to = initiator_small(&i, false);
	uint8_t value = initiator_flag(n), old = initiator_flag(n - 1), got;
	uint64_t start;
	int r;

	*end_last_byte(&l->near, END_OUT, w->latency_bytes) = value;
	*end_last_byte(&l->far, END_OUT, w->latency_bytes) = value;
	start = clock_ns();
	r = transfer_post_one(&l->nic, &to, l->failure);
	if (r == 0)
		r = end_await_change(&l->far, w, old, &got, l->failure);
	if (r == 0)
		r = post_back(l);
	if (r == 0)
		r = end_await_change(&l->near, w, old, &got, l->failure);
	*ret_us = (double)(clock_ns() - start) / 2e3;
	for (int k = 0; r == 0 && k < 2; k++)
		r = transfer_wait_one(&l->nic, l->cq, w->limit_us, l->failure);
	return r;
}

static int time_latency(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	uint64_t bytes = l->job->load.latency_bytes;
	const struct initiator i = initiator_of(l);

	*end_last_byte(&l->near, END_IN, bytes) = 0;
	if (m == RDMA_LATENCY_WRITE)
		*end_last_byte(&l->far, END_IN, bytes) = 0;
	return initiator_time_latency(&i, m == RDMA_LATENCY_READ ? one_read : one_round_trip, l,
				      cell);
}

/* ---- all of it ---- */

static int time_it(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	const struct initiator i = initiator_of(l);

	return rdma_is_latency(m) ? time_latency(l, m, cell)
				  : initiator_time_bandwidth(&i, m, cell);
}

static void measure(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	int r = 0;

	cell->done = true;
	l->failure = &cell->failure;
	if (!l->cq)
		r = open_queues(l);
	if (r == 0 && l->job->verify && !rdma_is_latency(m))
		r = verify(l, m, cell);
	if (r == 0)
		r = time_it(l, m, cell);
	if (r < 0 && cell->failure.step != RDMA_STEP_DATA)
		close_queues(l);
}

/* The CPU polls the flag: only if both sides are host memory, and if writes arrive at all. */
static bool can_be(const struct loopback_job *j, const struct loopback_result *so_far, int m)
{
	return (j->measures >> m & 1) &&
	       (m != RDMA_LATENCY_WRITE ||
		(j->way == REGION_HOST && so_far->cells[RDMA_WRITE].data != RDMA_DATA_WRONG));
}

void loopback_run(const struct verbs *v, const struct loopback_job *job,
		  struct loopback_result *ret)
{
	struct loop *l = calloc(1, sizeof(*l));

	*ret = (struct loopback_result){0};
	if (!l) {
		rdma_fail(&ret->failure, RDMA_STEP_WORKER, ENOMEM, "no memory");
		return;
	}
	l->job = job;
	l->failure = &ret->failure;
	if (loop_open(l, v) == 0)
		for (int m = 0; m < RDMA_MEASURE_N; m++)
			if (can_be(job, ret, m))
				measure(l, (enum rdma_measure)m, &ret->cells[m]);
	ret->port = l->nic.port;
	ret->window = l->places * job->load.bytes;
	ret->gpu_ordinal = -1;
	if (l->far.set && job->gpu.n) {
		ret->gpu_ordinal = l->far.set->info[0].ordinal;
		memcpy(ret->gpu_pci, l->far.set->info[0].pci, sizeof(ret->gpu_pci));
	}
	loop_close(l);
	free(l);
}
