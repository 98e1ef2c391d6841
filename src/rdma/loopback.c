/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/loopback.h"

#include "base/clock.h"
#include "base/err.h"
#include "kernels/pattern.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX   4096
#define WINDOW_LEAST (1ull << 20)
#define QUEUES_MAX   (STREAMS_MAX / 2)
/* rounds of checked data, so that data left over from the first shows in the second */
#define ROUNDS       2
#define FLUSH_BYTES  8
#define LOOK_EACH    256 /* latencies between checks of the interval's width */
#define MESSAGES_MAX (1ull << 22)

/* The two ends of a connection; both are in this process. */
struct lane {
	struct queue_pair near, far;
};

enum side { NEAR_OUT, NEAR_IN, FAR_OUT, FAR_IN, SIDE_N }; /* near: the host; far: the GPU */

struct loop {
	const struct loopback_job *job;
	struct nic nic;
	struct device_set *near, *far;
	struct buffer buffers[SIDE_N];
	struct region regions[SIDE_N];
	struct verbs_cq *cq;
	struct lane lanes[STREAMS_MAX]; /* of writes, then as many of reads */
	uint64_t places;
	u64 round;
	struct rdma_failure *failure; /* name of the current step */
};

/* ---- setting up ---- */

static int open_host(uint64_t window, struct device_set **ret, struct rdma_failure *f)
{
	struct device_request *r = calloc(1, sizeof(*r));
	int e = r ? 0 : err_set(ENOMEM, "no memory");

	if (r) {
		r->kind = DEVICE_HOST;
		r->n = 1;
		r->ordinal[0] = -1;
		r->host.fault.initiator = r->host.fault.target = -1;
		r->host.memory_bytes = 2 * (window + 4 * BUFFER_GUARD);
		e = device_open(r, ret);
		free(r);
	}
	return e < 0 ? rdma_fail(f, RDMA_STEP_GPU, -e, "%s", err_msg()) : 0;
}

static int open_devices(struct loop *l)
{
	int r = open_host(l->places * l->job->bytes, &l->near, l->failure);

	if (r < 0)
		return r;
	if (!l->job->gpu.n)
		return open_host(l->places * l->job->bytes, &l->far, l->failure);
	r = device_open(&l->job->gpu, &l->far);
	return r < 0 ? rdma_fail(l->failure, RDMA_STEP_GPU, -r, "%s", err_msg()) : 0;
}

static int open_memory(struct loop *l)
{
	uint64_t bytes = l->places * l->job->bytes;
	int r = 0;

	for (int i = 0; r == 0 && i < SIDE_N; i++) {
		bool near = i == NEAR_OUT || i == NEAR_IN;

		r = buffer_open(near ? l->near : l->far, bytes, l->job->gpu_limit_us,
				&l->buffers[i], l->failure);
		if (r == 0)
			r = region_open(&l->nic, &l->buffers[i], near ? REGION_HOST : l->job->way,
					l->job->relaxed, &l->regions[i], l->failure);
	}
	return r;
}

static void close_memory(struct loop *l)
{
	for (int i = 0; i < SIDE_N; i++) {
		region_close(&l->nic, &l->regions[i]);
		buffer_close(&l->buffers[i]);
	}
}

/* Every queue keeps places, and the window whole words of the pattern. */
static bool can_halve(const struct loop *l)
{
	uint64_t half = l->places / 2;

	return l->places % (2ull * l->job->queues) == 0 && half * l->job->bytes % 16 == 0 &&
	       half * l->job->bytes >= WINDOW_LEAST;
}

/* Less memory than requested may be available: locked pages, or the GPU's BAR1. */
static int open_what_fits(struct loop *l)
{
	int r = open_memory(l);

	while (r < 0 && l->failure->code == ENOMEM && can_halve(l)) {
		close_memory(l);
		*l->failure = (struct rdma_failure){0};
		l->places /= 2;
		r = open_memory(l);
	}
	return r;
}

static int connect_lane(struct loop *l, struct lane *lane)
{
	const struct loopback_job *j = l->job;
	int r = queue_pair_open(&l->nic, l->cq, j->depth, (unsigned)j->latency_bytes, &lane->near,
				l->failure);

	if (r == 0)
		r = queue_pair_open(&l->nic, l->cq, j->depth, (unsigned)j->latency_bytes,
				    &lane->far, l->failure);
	if (r == 0)
		r = queue_pair_connect(&l->nic, &lane->near, &lane->far.address, l->failure);
	if (r == 0)
		r = queue_pair_connect(&l->nic, &lane->far, &lane->near.address, l->failure);
	return r;
}

static int open_queues(struct loop *l)
{
	unsigned n = 2 * l->job->queues;
	int r = 0;

	l->cq = l->nic.v->create_cq(l->nic.context, (int)(2 * n * l->job->depth), NULL, NULL, 0);
	if (!l->cq)
		return rdma_fail(l->failure, RDMA_STEP_QUEUE, errno, "ibv_create_cq fails: %s",
				 strerror(errno));
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = connect_lane(l, &l->lanes[i]);
	return r;
}

/* Multiples of 16 places, so that every window is whole words of the pattern. */
static uint64_t places_for(const struct loopback_job *j)
{
	uint64_t n = j->window / j->bytes, unit = 16ull * j->queues;

	n = n > PLACES_MAX ? PLACES_MAX : n;
	n -= n % unit;
	return n ? n : unit;
}

static int loop_open(struct loop *l, const struct verbs *v)
{
	int r = nic_open(v, l->job->device, l->job->port, &l->nic, l->failure);

	l->places = places_for(l->job);
	if (r == 0)
		r = open_devices(l);
	if (r == 0)
		r = open_what_fits(l);
	return r < 0 ? r : open_queues(l);
}

static void loop_close(struct loop *l)
{
	for (size_t i = 0; i < STREAMS_MAX; i++) {
		queue_pair_close(&l->nic, &l->lanes[i].near);
		queue_pair_close(&l->nic, &l->lanes[i].far);
	}
	if (l->cq)
		l->nic.v->destroy_cq(l->cq);
	close_memory(l);
	device_close(l->near);
	device_close(l->far);
	nic_close(&l->nic);
}

/* ---- streams ---- */

static struct place place_of(const struct loop *l, enum side s, uint64_t first, bool remote)
{
	const struct region *r = &l->regions[s];

	return (struct place){r->at + first * l->job->bytes, remote ? r->mr->rkey : r->mr->lkey};
}

/* Each queue has its own part of the window. */
static struct stream_work work_of(const struct loop *l, bool read, unsigned queue)
{
	const struct loopback_job *j = l->job;
	uint64_t places = l->places / j->queues, first = places * queue;

	return (struct stream_work){
		.queue = &l->lanes[queue + (read ? j->queues : 0)].near,
		.read = read,
		.local = place_of(l, read ? NEAR_IN : NEAR_OUT, first, false),
		.remote = place_of(l, read ? FAR_OUT : FAR_IN, first, true),
		.bytes = j->bytes,
		.places = places,
		.messages = places,
		.depth = j->depth,
	};
}

static bool has_writes(enum loopback_measure m)
{
	return m == LOOPBACK_WRITE || m == LOOPBACK_BOTH;
}

static bool has_reads(enum loopback_measure m)
{
	return m == LOOPBACK_READ || m == LOOPBACK_BOTH;
}

static size_t works_of(const struct loop *l, enum loopback_measure m, struct stream_work *ret)
{
	size_t n = 0;

	for (unsigned q = 0; q < l->job->queues; q++) {
		if (has_writes(m))
			ret[n++] = work_of(l, false, q);
		if (has_reads(m))
			ret[n++] = work_of(l, true, q);
	}
	return n;
}

/* ---- is it right? ---- */

static u64 tag_of(const struct loop *l, bool read, bool poison)
{
	return pattern_tag_make(l->job->pair, 0x80u | read, l->round, poison);
}

static int prepare(struct loop *l, bool read)
{
	int r = buffer_fill(&l->buffers[read ? FAR_OUT : NEAR_OUT], tag_of(l, read, false),
			    l->failure);

	return r < 0 ? r
		     : buffer_poison(&l->buffers[read ? NEAR_IN : FAR_IN], tag_of(l, read, true),
				     l->failure);
}

/*
 * A completion says that the other end has acknowledged, not that the GPU sees the data. A read
 * after the writes, on the same queue pair, flushes them.
 */
static int flush(struct loop *l)
{
	int r = 0;

	for (unsigned q = 0; r == 0 && q < l->job->queues; q++) {
		struct stream_work w = work_of(l, false, q);
		double us;

		w.read = true;
		w.remote.at += (w.places - 1) * w.bytes;
		w.local.at = l->regions[NEAR_OUT].at - BUFFER_GUARD;
		w.bytes = FLUSH_BYTES < w.bytes ? FLUSH_BYTES : w.bytes;
		w.places = w.messages = 1;
		r = transfer_run(&l->nic, l->cq, &w, 1, l->job->limit_us, &us, l->failure);
	}
	return r;
}

static int inspect(struct loop *l, bool read, struct loopback_cell *cell)
{
	const struct buffer *b = &l->buffers[read ? NEAR_IN : FAR_IN];
	struct wrong wrong = {0};
	char text[128];
	int r = buffer_check(b, tag_of(l, read, false), tag_of(l, read, true), &wrong, l->failure);

	if (r < 0)
		return r;
	cell->checked_bytes += b->bytes;
	cell->data = LOOPBACK_RIGHT;
	if (wrong.kind == WRONG_NOTHING)
		return 0;
	cell->data = LOOPBACK_WRONG;
	cell->wrong = wrong;
	wrong_say(&wrong, text, sizeof(text));
	return rdma_fail(l->failure, RDMA_STEP_DATA, (int)wrong.kind,
			 "every %s completed, but the data is wrong: %s (%llu of %llu words)",
			 read ? "read" : "write", text, (unsigned long long)wrong.wrong_words,
			 (unsigned long long)wrong.words);
}

static int verify_round(struct loop *l, enum loopback_measure m, struct loopback_cell *cell)
{
	struct stream_work works[STREAMS_MAX];
	size_t n = works_of(l, m, works);
	double us;
	int r = 0;

	if (has_writes(m))
		r = prepare(l, false);
	if (r == 0 && has_reads(m))
		r = prepare(l, true);
	if (r == 0)
		r = transfer_run(&l->nic, l->cq, works, n, l->job->limit_us, &us, l->failure);
	if (r == 0 && has_writes(m))
		r = flush(l);
	if (r == 0 && has_writes(m))
		r = inspect(l, false, cell);
	if (r == 0 && has_reads(m))
		r = inspect(l, true, cell);
	return r;
}

static int verify(struct loop *l, enum loopback_measure m, struct loopback_cell *cell)
{
	int r = 0;

	for (int i = 0; r == 0 && i < ROUNDS; i++) {
		l->round++;
		r = verify_round(l, m, cell);
	}
	return r;
}

/* ---- how fast? ---- */

static int add_sample(struct loop *l, struct samples *s, double value)
{
	return samples_add(s, value) < 0
		       ? rdma_fail(l->failure, RDMA_STEP_WORKER, ENOMEM, "%s", err_msg())
		       : 0;
}

static int run_messages(struct loop *l, struct stream_work *works, size_t n, uint64_t messages,
			double *ret_us)
{
	for (size_t i = 0; i < n; i++)
		works[i].messages = messages;
	return transfer_run(&l->nic, l->cq, works, n, l->job->limit_us, ret_us, l->failure);
}

/* Finds the number of messages that makes a sample long enough; this also warms up the path. */
static int calibrate(struct loop *l, struct stream_work *works, size_t n, uint64_t *ret)
{
	uint64_t messages = l->job->depth;
	double us = 0;
	int r;

	while ((r = run_messages(l, works, n, messages, &us)) == 0 && us < l->job->sample_us / 2 &&
	       messages < MESSAGES_MAX)
		messages *= 2;
	*ret = messages;
	return r;
}

static int time_bandwidth(struct loop *l, enum loopback_measure m, struct loopback_cell *cell)
{
	struct stream_work works[STREAMS_MAX];
	size_t n = works_of(l, m, works);
	struct samples s = {0};
	uint64_t messages = 0;
	int r = calibrate(l, works, n, &messages);
	double start = clock_s();

	cell->stop = STOP_GO_ON;
	while (r == 0 && cell->stop == STOP_GO_ON) {
		double us;

		r = run_messages(l, works, n, messages, &us);
		if (r == 0)
			r = add_sample(l, &s, (double)(n * messages * l->job->bytes) / us / 1e3);
		if (r == 0)
			cell->stop = stopping_decide(&l->job->stopping, &s, clock_s() - start);
	}
	if (r == 0)
		samples_summary(&s, &cell->value);
	cell->messages = n * messages * cell->value.n;
	samples_done(&s);
	return r;
}

/* ---- how soon? ---- */

static struct stream_work small(const struct loop *l, bool read, bool back)
{
	const struct lane *lane = &l->lanes[read ? l->job->queues : 0];

	return (struct stream_work){
		.queue = back ? &lane->far : &lane->near,
		.read = read,
		.local = place_of(l,
				  back   ? FAR_OUT
				  : read ? NEAR_IN
					 : NEAR_OUT,
				  0, false),
		.remote = place_of(l,
				   back   ? NEAR_IN
				   : read ? FAR_OUT
					  : FAR_IN,
				   0, true),
		.bytes = l->job->latency_bytes,
		.places = 1,
		.messages = 1,
		.depth = 1,
	};
}

static int one_read(struct loop *l, double *ret_us)
{
	const struct stream_work w = small(l, true, false);
	uint64_t start = clock_ns();
	int r = transfer_post_one(&l->nic, &w, l->failure);

	if (r == 0)
		r = transfer_wait_one(&l->nic, l->cq, l->job->limit_us, l->failure);
	*ret_us = (double)(clock_ns() - start) / 1e3;
	return r;
}

/* The last byte of a message, which arrives last. */
static volatile uint8_t *last_byte(const struct loop *l, enum side s)
{
	return (volatile uint8_t *)(l->buffers[s].at + l->job->latency_bytes - 1);
}

static int await_byte(struct loop *l, enum side s, uint8_t value)
{
	volatile uint8_t *at = last_byte(l, s);
	uint64_t deadline = 0;

	for (unsigned turn = 1; *at != value; turn++) {
		if (turn % 1024)
			continue;
		if (!deadline)
			deadline = clock_us() + l->job->limit_us;
		else if (clock_us() > deadline)
			return rdma_fail(l->failure, RDMA_STEP_WAIT, ETIMEDOUT,
					 "a write of %llu bytes did not show for %.1f s",
					 (unsigned long long)l->job->latency_bytes,
					 (double)l->job->limit_us / 1e6);
	}
	return 0;
}

/* A round trip; both completions are polled outside the measured time. */
static int one_round_trip(struct loop *l, uint8_t value, double *ret_us)
{
	const struct stream_work to = small(l, false, false), back = small(l, false, true);
	uint64_t start;
	int r;

	*last_byte(l, NEAR_OUT) = *last_byte(l, FAR_OUT) = value;
	start = clock_ns();
	r = transfer_post_one(&l->nic, &to, l->failure);
	if (r == 0)
		r = await_byte(l, FAR_IN, value);
	if (r == 0)
		r = transfer_post_one(&l->nic, &back, l->failure);
	if (r == 0)
		r = await_byte(l, NEAR_IN, value);
	*ret_us = (double)(clock_ns() - start) / 2e3;
	for (int i = 0; r == 0 && i < 2; i++)
		r = transfer_wait_one(&l->nic, l->cq, l->job->limit_us, l->failure);
	return r;
}

static void describe(struct samples *s, struct loopback_cell *cell)
{
	double sum = 0, squares = 0;

	samples_summary(s, &cell->value);
	for (size_t i = 0; i < s->n; i++)
		sum += s->values[i];
	cell->mean = sum / (double)s->n;
	for (size_t i = 0; i < s->n; i++)
		squares += (s->values[i] - cell->mean) * (s->values[i] - cell->mean);
	cell->deviation = sqrt(squares / (double)s->n);
	cell->p99 = samples_percentile(s, 0.99);
	cell->p999 = samples_percentile(s, 0.999);
	cell->messages = s->n;
}

static int time_latency(struct loop *l, enum loopback_measure m, struct loopback_cell *cell)
{
	struct samples s = {0};
	double start = clock_s();
	int r = 0;

	*last_byte(l, NEAR_IN) = 0;
	if (m == LOOPBACK_LATENCY_WRITE)
		*last_byte(l, FAR_IN) = 0;
	cell->stop = STOP_GO_ON;
	for (unsigned i = 1; r == 0 && cell->stop == STOP_GO_ON; i++) {
		double us = 0;

		r = m == LOOPBACK_LATENCY_READ ? one_read(l, &us)
					       : one_round_trip(l, (uint8_t)(i % 255 + 1), &us);
		if (r == 0)
			r = add_sample(l, &s, us);
		if (r == 0 && i % LOOK_EACH == 0)
			cell->stop = stopping_decide(&l->job->stopping, &s, clock_s() - start);
	}
	if (r == 0)
		describe(&s, cell);
	samples_done(&s);
	return r;
}

/* ---- all of it ---- */

static bool is_latency(enum loopback_measure m)
{
	return m == LOOPBACK_LATENCY_WRITE || m == LOOPBACK_LATENCY_READ;
}

/* A queue pair is unusable after an error: later measurements get new ones. */
static void renew_queues(struct loop *l)
{
	for (size_t i = 0; i < STREAMS_MAX; i++) {
		queue_pair_close(&l->nic, &l->lanes[i].near);
		queue_pair_close(&l->nic, &l->lanes[i].far);
	}
	if (l->cq)
		l->nic.v->destroy_cq(l->cq);
	l->cq = NULL;
}

static void measure(struct loop *l, enum loopback_measure m, struct loopback_cell *cell)
{
	int r = 0;

	cell->done = true;
	l->failure = &cell->failure;
	if (!l->cq)
		r = open_queues(l);
	if (r == 0 && l->job->verify && !is_latency(m))
		r = verify(l, m, cell);
	if (r == 0)
		r = is_latency(m) ? time_latency(l, m, cell) : time_bandwidth(l, m, cell);
	if (r < 0 && cell->failure.step != RDMA_STEP_DATA)
		renew_queues(l);
}

/* The CPU polls the flag: only if both sides are host memory, and if writes arrive at all. */
static bool can_be(const struct loopback_job *j, const struct loopback_result *so_far, int m)
{
	return (j->measures >> m & 1) &&
	       (m != LOOPBACK_LATENCY_WRITE ||
		(j->way == REGION_HOST && so_far->cells[LOOPBACK_WRITE].data != LOOPBACK_WRONG));
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
		for (int m = 0; m < LOOPBACK_N; m++)
			if (can_be(job, ret, m))
				measure(l, (enum loopback_measure)m, &ret->cells[m]);
	ret->port = l->nic.port;
	ret->window = l->places * job->bytes;
	ret->gpu_ordinal = -1;
	if (l->far && job->gpu.n) {
		ret->gpu_ordinal = l->far->info[0].ordinal;
		memcpy(ret->gpu_pci, l->far->info[0].pci, sizeof(ret->gpu_pci));
	}
	loop_close(l);
	free(l);
}
