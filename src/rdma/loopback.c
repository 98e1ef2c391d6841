/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/loopback.h"

#include "rdma/initiator.h"
#include "rdma/ping.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* rounds of checked data, so that data left over from the first shows in the second */
#define ROUNDS 2

/* The two ends of a connection; both are in this process. */
struct loop {
	const struct loopback_job *job;
	struct nic nic;
	struct end near, far;         /* near: the host; far: the GPU */
	struct verbs_cq *cq, *far_cq; /* the far end's thread polls its own */
	bool relaxed;                 /* the memory, by now */
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
	int r = end_open_memory(&l->nic, &l->near, bytes, region_of_host(j->way), j->relaxed,
				j->gpu_limit_us, l->failure);

	l->relaxed = j->relaxed;
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
		r = queue_pair_open(&l->nic, l->far_cq, w->depth, inline_bytes, far, l->failure);
	if (r == 0)
		r = queue_pair_connect(&l->nic, near, &far->address, l->failure);
	if (r == 0)
		r = queue_pair_connect(&l->nic, far, &near->address, l->failure);
	return r;
}

static int expect_pings(const struct loop *l)
{
	uint64_t bytes = l->job->load.latency_bytes;
	int r = ping_expect(&l->nic, &l->near, bytes, l->failure);

	return r < 0 ? r : ping_expect(&l->nic, &l->far, bytes, l->failure);
}

static int open_queues(struct loop *l)
{
	unsigned n = 2 * l->job->load.queues;
	int r = nic_open_queue(&l->nic, n * l->job->load.depth + QUEUE_RECEIVES, &l->cq,
			       l->failure);

	if (r == 0)
		r = nic_open_queue(&l->nic, n * l->job->load.depth + QUEUE_RECEIVES, &l->far_cq,
				   l->failure);

	for (unsigned i = 0; r == 0 && i < n; i++)
		r = connect_lane(l, i);
	return r < 0 || !region_is_host(l->job->way) ? r : expect_pings(l);
}

static int loop_open(struct loop *l, const struct verbs *v, struct pulse *pulse)
{
	int r = nic_open(v, pulse, l->job->device, l->job->port, &l->nic, l->failure);

	if (*l->job->gid.reason)
		l->nic.port.gid = l->job->gid;
	l->places = end_places(l->job->window, &l->job->load);
	pulse_warn(pulse, PULSE_GPU_S);
	if (r == 0)
		r = open_sets(l);
	if (r == 0)
		r = open_what_fits(l);
	pulse_warn(pulse, PULSE_QUIET_S);
	return r < 0 ? r : open_queues(l);
}

/* A queue pair is unusable after an error: later measurements get new ones. */
static void close_queues(struct loop *l)
{
	end_close_queues(&l->nic, &l->near);
	end_close_queues(&l->nic, &l->far);
	if (l->cq)
		l->nic.v->destroy_cq(l->cq);
	if (l->far_cq)
		l->nic.v->destroy_cq(l->far_cq);
	l->cq = l->far_cq = NULL;
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

static int inspect_reads(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	const struct end_round r = {l->job->load.pair, l->round, true};

	return rdma_is_latency(m) ? end_check_message(&l->near, &r, l->job->load.latency_bytes,
						      cell, l->failure)
				  : inspect(l, true, cell);
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
		r = inspect_reads(l, m, cell);
	return r;
}

static int verify(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	int r = 0;

	for (int i = 0; r == 0 && i < ROUNDS; i++) {
		l->round++;
		pulse_warn(l->nic.pulse, PULSE_QUIET_S);
		r = verify_round(l, m, cell);
	}
	return r;
}

/* ---- how soon? ---- */

static int one_read(void *context, unsigned n, struct timed *ret)
{
	const struct initiator i = initiator_of(context);

	(void)n;
	return initiator_one_read(&i, ret);
}

/*
 * The far end answers in a thread of its own, as another host would: a NIC in software does its
 * work in the thread that posts, so one thread for both ends would do the work of both in turn.
 */
struct echo {
	struct ping ping;
	struct rdma_failure failure;
};

static void *answer(void *context)
{
	struct echo *e = context;

	ping_answer(&e->ping);
	return NULL;
}

static void begin_pings(const struct loop *l, enum rdma_measure m, struct ping *near,
			struct echo *far)
{
	const struct rdma_load *w = &l->job->load;

	ping_clear(&l->near, w->latency_bytes);
	ping_clear(&l->far, w->latency_bytes);
	ping_begin(near, m, &l->nic, l->cq, &l->near, end_place(&l->far, END_IN, true), w,
		   l->failure);
	ping_begin(&far->ping, m, &l->nic, l->far_cq, &l->far, end_place(&l->near, END_IN, true), w,
		   &far->failure);
}

static int time_round_trips(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	const struct initiator i = initiator_of(l);
	struct echo far = {0};
	struct ping near;
	pthread_t thread;
	int r;

	begin_pings(l, m, &near, &far);
	r = pthread_create(&thread, NULL, answer, &far);
	if (r)
		return rdma_fail(l->failure, RDMA_STEP_WORKER, r, "no thread: %s", strerror(r));
	r = ping_check(&near, cell);
	if (r == 0)
		r = initiator_time_latency(&i, ping_trip, &near, cell);
	if (r == 0)
		r = ping_last(&near, 0);
	if (r < 0)
		atomic_store(&far.ping.stop, true); /* no message comes any more */
	pthread_join(thread, NULL);
	if (r == 0 && far.failure.step != RDMA_STEP_NONE) {
		*l->failure = far.failure;
		r = -EIO;
	}
	return r;
}

static int time_latency(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	const struct initiator i = initiator_of(l);

	return m == RDMA_LATENCY_READ ? initiator_time_latency(&i, one_read, l, cell)
				      : time_round_trips(l, m, cell);
}

/* ---- all of it ---- */

static int time_it(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	const struct initiator i = initiator_of(l);

	return rdma_is_latency(m) ? time_latency(l, m, cell)
				  : initiator_time_bandwidth(&i, m, cell);
}

/* Rates come first, with relaxed ordering; a round trip's last byte has to arrive last. */
static int order_strictly(struct loop *l)
{
	int r;

	close_queues(l); /* what they expect is registered, too */
	r = end_register(&l->nic, &l->near, region_of_host(l->job->way), false, l->failure);
	if (r == 0)
		r = end_register(&l->nic, &l->far, l->job->way, false, l->failure);
	l->relaxed = r < 0;
	return r;
}

static void measure(struct loop *l, enum rdma_measure m, struct rdma_cell *cell)
{
	int r = 0;

	cell->done = true;
	l->failure = &cell->failure;
	pulse_warn(l->nic.pulse, PULSE_QUIET_S);
	if (l->relaxed && rdma_is_latency(m))
		r = order_strictly(l);
	if (r == 0 && !l->cq)
		r = open_queues(l);
	if (r == 0 && l->job->load.verify && !rdma_is_round_trip(m))
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
	       (!rdma_is_round_trip((enum rdma_measure)m) ||
		(region_is_host(j->way) && so_far->cells[RDMA_WRITE].data != RDMA_DATA_WRONG));
}

/* What is known of its failures besides. */
static void mark(const struct loopback_job *job, struct loopback_result *ret)
{
	unsigned about = RDMA_ABOUT_SELF | (region_is_host(job->way) ? RDMA_ABOUT_HOST : 0);

	ret->failure.about |= about;
	for (int m = 0; m < RDMA_MEASURE_N; m++)
		ret->cells[m].failure.about |= about;
}

void loopback_run(const struct verbs *v, struct pulse *pulse, const struct loopback_job *job,
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
	pulse_warn(pulse, PULSE_QUIET_S);
	if (loop_open(l, v, pulse) == 0)
		for (int m = 0; m < RDMA_MEASURE_N; m++)
			if (can_be(job, ret, m))
				measure(l, (enum rdma_measure)m, &ret->cells[m]);
	mark(job, ret);
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
