/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/initiator.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <math.h>

#define FLUSH_BYTES 8
/*
 * Latencies between two looks at the interval's width, and signs of life: no fewer than perftest
 * makes in all, because the first ones take longer; or so long.
 */
#define LOOK_EACH    1024
#define LOOK_NS      100000000
#define LOOK_BYTES   (1ull << 20)
#define MESSAGES_MAX (1ull << 22)

/* ---- streams ---- */

static struct place from(struct place p, uint64_t offset)
{
	return (struct place){p.at + offset, p.key};
}

/* Each queue has its own part of the window. */
static struct stream_work work_of(const struct initiator *i, bool read, unsigned queue)
{
	uint64_t places = i->load->like_perftest ? 1 : i->places / i->load->queues;
	uint64_t offset = places * queue * i->load->bytes;

	return (struct stream_work){
		.queue = &i->near->queues[rdma_queue_at(i->load, read, queue)],
		.read = read,
		.local = from(end_place(i->near, read ? END_IN : END_OUT, false), offset),
		.remote = from(read ? i->far_out : i->far_in, offset),
		.bytes = i->load->bytes,
		.places = places,
		.messages = places,
		.depth = i->load->depth,
	};
}

static size_t works_of(const struct initiator *i, enum rdma_measure m, struct stream_work *ret)
{
	size_t n = 0;

	for (unsigned q = 0; q < i->load->queues; q++) {
		if (rdma_has_writes(m))
			ret[n++] = work_of(i, false, q);
		if (rdma_has_reads(m))
			ret[n++] = work_of(i, true, q);
	}
	return n;
}

/* A slow link carries a message of each stream before the first has completed. */
static int run(const struct initiator *i, const struct stream_work *works, size_t n, double *ret_us)
{
	int r = transfer_run(i->nic, i->cq, works, n, i->load->limit_us, ret_us, i->failure);

	if (r < 0)
		rdma_add_slowest(i->failure, n * i->load->bytes, i->load->limit_us);
	return r;
}

int initiator_move(const struct initiator *i, enum rdma_measure m)
{
	struct stream_work works[STREAMS_MAX];
	size_t n = works_of(i, m, works);
	struct timed t;
	double us;

	return rdma_is_latency(m) ? initiator_one_read(i, &t) : run(i, works, n, &us);
}

int initiator_flush(const struct initiator *i)
{
	int r = 0;

	for (unsigned q = 0; r == 0 && q < i->load->queues; q++) {
		struct stream_work w = work_of(i, false, q);
		double us;

		w.read = true;
		w.remote.at += (w.places - 1) * w.bytes;
		w.local.at = end_place(i->near, END_OUT, false).at - BUFFER_GUARD;
		w.bytes = FLUSH_BYTES < w.bytes ? FLUSH_BYTES : w.bytes;
		w.places = w.messages = 1;
		r = run(i, &w, 1, &us);
	}
	return r;
}

/* ---- how fast? ---- */

static int add_sample(const struct initiator *i, struct samples *s, double value)
{
	return samples_add(s, value) < 0
		       ? rdma_fail(i->failure, RDMA_STEP_WORKER, ENOMEM, "%s", err_msg())
		       : 0;
}

static int run_messages(const struct initiator *i, struct stream_work *works, size_t n,
			uint64_t messages, double *ret_us)
{
	for (size_t k = 0; k < n; k++)
		works[k].messages = messages;
	return run(i, works, n, ret_us);
}

/* Finds the number of messages that makes a sample long enough; this also warms up the path. */
static int calibrate(const struct initiator *i, struct stream_work *works, size_t n, uint64_t *ret)
{
	uint64_t messages = i->load->depth;
	double us = 0;
	int r;

	while ((r = run_messages(i, works, n, messages, &us)) == 0 && us < i->load->sample_us / 2 &&
	       messages < MESSAGES_MAX)
		messages *= 2;
	*ret = messages;
	return r;
}

int initiator_time_bandwidth(const struct initiator *i, enum rdma_measure m, struct rdma_cell *cell)
{
	struct stream_work works[STREAMS_MAX];
	size_t n = works_of(i, m, works);
	struct samples s = {0};
	uint64_t messages = 0;
	int r = calibrate(i, works, n, &messages);
	double start = clock_s();

	cell->stop = STOP_GO_ON;
	while (r == 0 && cell->stop == STOP_GO_ON) {
		double us;

		r = run_messages(i, works, n, messages, &us);
		if (r == 0)
			r = add_sample(i, &s, (double)(n * messages * i->load->bytes) / us / 1e3);
		if (r == 0)
			cell->stop = stopping_decide(&i->load->stopping, &s, clock_s() - start);
	}
	if (r == 0)
		samples_summary(&s, &cell->value);
	cell->messages = n * messages * cell->value.n;
	samples_done(&s);
	return r;
}

/* ---- how soon? ---- */

static struct stream_work small_read(const struct initiator *i)
{
	return (struct stream_work){
		.queue = &i->near->queues[rdma_queue_at(i->load, true, 0)],
		.read = true,
		.local = end_place(i->near, END_IN, false),
		.remote = i->far_out,
		.bytes = i->load->latency_bytes,
		.places = 1,
		.messages = 1,
		.depth = 1,
	};
}

int initiator_one_read(const struct initiator *i, struct timed *ret)
{
	const struct stream_work w = small_read(i);
	uint64_t start = clock_ns();
	int r = transfer_post_one(i->nic, &w, i->failure);

	if (r == 0)
		r = transfer_wait_one(i->nic, i->cq, i->load->limit_us, i->failure);
	*ret = (struct timed){start, clock_ns(), 1};
	if (r < 0)
		rdma_add_slowest(i->failure, w.bytes, i->load->limit_us);
	return r;
}

static double latency_us(const struct timed *t, uint64_t cost_ns)
{
	uint64_t ns = t->to_ns - t->from_ns;

	return ns > cost_ns ? (double)(ns - cost_ns) / 1e3 / t->latencies : 0;
}

static void describe(struct samples *s, struct rdma_cell *cell)
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

/* Large messages take longer, so that there are fewer between two looks. */
static unsigned look_each(const struct rdma_load *l)
{
	uint64_t n = LOOK_BYTES / l->latency_bytes;

	return n > LOOK_EACH ? LOOK_EACH : n ? (unsigned)n : 1;
}

int initiator_time_latency(const struct initiator *i, initiator_one_fn *one, void *context,
			   struct rdma_cell *cell)
{
	const unsigned each = look_each(i->load);
	uint64_t cost_ns = clock_cost_ns();
	struct samples s = {0};
	uint64_t looked_ns = clock_ns(), start_ns = looked_ns;
	int r = 0;

	cell->stop = STOP_GO_ON;
	for (unsigned n = 1; r == 0 && cell->stop == STOP_GO_ON; n++) {
		struct timed t = {0};

		r = one(context, n, &t);
		if (r == 0)
			r = add_sample(i, &s, latency_us(&t, cost_ns));
		if (n == i->load->trips)
			break;
		if (r < 0 || (n % each && t.to_ns - looked_ns < LOOK_NS))
			continue;
		looked_ns = t.to_ns;
		pulse_beat(i->nic->pulse);
		if (!i->load->trips)
			cell->stop = stopping_decide(&i->load->stopping, &s,
						     (double)(looked_ns - start_ns) / 1e9);
	}
	if (r == 0)
		describe(&s, cell);
	else if (i->failure->step == RDMA_STEP_DATA)
		cell->data = RDMA_DATA_WRONG;
	samples_done(&s);
	return r;
}
