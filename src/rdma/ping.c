/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/ping.h"

#include "base/clock.h"
#include "kernels/pattern.h"
#include "rdma/message_data.h"

#include <errno.h>
#include <string.h>

#define WHOLE                                                                                      \
	2 /* messages whose data is checked, so that data left over from the first shows in the second */
#define TAIL 8
#define POLL 4
/*
 * At the flag, between two looks for completions and at the clock, in which a message would be
 * noticed late.
 */
#define LOOKS     65536
#define BEAT_EACH 256 /* answers between two signs of life */

static const int opcodes[RDMA_MEASURE_N] = {
	[RDMA_LATENCY_WRITE] = VERBS_WR_WRITE,
	[RDMA_LATENCY_IMMEDIATE] = VERBS_WR_WRITE_WITH_IMM,
	[RDMA_LATENCY_SEND] = VERBS_WR_SEND,
};

static size_t tail_of(uint64_t bytes)
{
	return bytes < TAIL ? bytes : TAIL;
}

static uint8_t *tail_at(const struct end *e, enum end_side side, uint64_t bytes)
{
	return (uint8_t *)(e->buffers[side].at + bytes - tail_of(bytes));
}

/* ---- receive requests ---- */

static int post_receives(const struct nic *n, struct verbs_qp *qp, struct verbs_sge into,
			 unsigned k, struct rdma_failure *f)
{
	struct verbs_recv_wr wr = {.wr_id = TRANSFER_RECEIVE, .sg_list = &into, .num_sge = 1};
	struct verbs_recv_wr *bad = NULL;

	for (unsigned i = 0; i < k; i++) {
		int r = n->context->ops.post_recv(qp, &wr, &bad);

		if (r)
			return rdma_fail(f, RDMA_STEP_POST, r,
					 "ibv_post_recv answers error %d (%s)", r, strerror(r));
	}
	return 0;
}

static struct verbs_sge into_of(const struct end *e, uint64_t bytes)
{
	const struct place in = end_place(e, END_IN, false);

	return (struct verbs_sge){in.at, (uint32_t)bytes, in.key};
}

/* Between arrival and answer: of 8 bytes one store, not a call. */
static void copy_tail(uint8_t *to, const uint8_t *from, size_t n)
{
	if (n == TAIL)
		memcpy(to, from, TAIL);
	else
		memcpy(to, from, n);
}

void ping_clear(const struct end *e, uint64_t bytes)
{
	memset(tail_at(e, END_IN, bytes), 0, tail_of(bytes));
}

int ping_expect(const struct nic *n, const struct end *e, uint64_t bytes, struct rdma_failure *f)
{
	return post_receives(n, e->queues[0].qp, into_of(e, bytes), QUEUE_RECEIVES, f);
}

/* ---- one message ---- */

/* Whether the next post has a completion: the last of so many, or this one. */
static void arm(struct ping *p, bool this_one)
{
	bool told = this_one || p->untold + 1 == p->each;

	p->send.send_flags = p->flags | (told ? VERBS_SIGNALED : 0);
}

void ping_begin(struct ping *p, enum rdma_measure m, const struct nic *n, struct verbs_cq *cq,
		const struct end *e, struct place to, const struct rdma_load *load,
		struct rdma_failure *f)
{
	const struct queue_pair *q = &e->queues[0];
	const struct place from = end_place(e, END_OUT, false);
	uint64_t bytes = load->latency_bytes;

	*p = (struct ping){
		.nic = n,
		.cq = cq,
		.qp = q->qp,
		.load = load,
		.failure = f,
		.out = (uint8_t *)e->buffers[END_OUT].at,
		.in = (uint8_t *)e->buffers[END_IN].at,
		.body = bytes - tail_of(bytes),
		.whole = load->like_perftest ? 0 : WHOLE,
		.leaves = tail_at(e, END_OUT, bytes),
		.arrives = tail_at(e, END_IN, bytes),
		.n = tail_of(bytes),
		.told = m != RDMA_LATENCY_WRITE,
		.each = load->depth < 4 ? 1 : load->depth / 4,
		.flags = bytes <= q->inline_max ? VERBS_INLINE : 0,
		.from = {from.at, (uint32_t)bytes, from.key},
		.into = into_of(e, bytes),
		.send = {.num_sge = 1, .opcode = opcodes[m], .rdma = {to.at, to.key}},
	};
	p->flag = p->arrives + p->n - 1;
	p->send.sg_list = &p->from;
	arm(p, false);
}

/* After a post: what the next one asks for. */
static void count_post(struct ping *p)
{
	bool told = p->send.send_flags & VERBS_SIGNALED;

	p->waits += told;
	p->untold = told ? 0 : p->untold + 1;
	arm(p, false);
}

static inline int post(struct ping *p)
{
	int r = p->nic->context->ops.post_send(p->qp, &p->send, &p->bad);

	if (r)
		return rdma_fail(p->failure, RDMA_STEP_POST, r,
				 "ibv_post_send answers error %d (%s)", r, strerror(r));
	count_post(p);
	return 0;
}

/* Takes what completions there are. */
static int look(struct ping *p)
{
	struct verbs_wc wcs[POLL];
	int got = transfer_poll(p->nic, p->cq, wcs, POLL, p->failure);

	for (int i = 0; i < got; i++)
		if (wcs[i].wr_id == TRANSFER_RECEIVE)
			p->arrived++;
		else
			p->waits--;
	return got < 0 ? got : 0;
}

/* Looks at the flag and nothing else, or for the completions that were there. */
static bool has_arrived(const struct ping *p, uint8_t old)
{
	const volatile uint8_t *flag = p->flag;

	if (p->told)
		return p->arrived;
	for (unsigned i = 0; i < LOOKS; i++)
		if (*flag != old)
			return true;
	return false;
}

struct wait {
	unsigned looks; /* since the last one at the clock */
	uint64_t deadline_us;
};

/* After so many looks: 0, or nothing will come, or the limit is over. */
static int look_at_clock(const struct ping *p, struct wait *w, unsigned looks)
{
	uint64_t now, limit_us = p->load->limit_us;

	w->looks += looks;
	if (w->looks < LOOKS)
		return 0;
	w->looks = 0;
	now = clock_us();
	pulse_beat(p->nic->pulse);
	if (atomic_load(&p->stop))
		return rdma_fail(p->failure, RDMA_STEP_WAIT, ECANCELED, "the other end has failed");
	if (!w->deadline_us)
		w->deadline_us = now + limit_us;
	if (now <= w->deadline_us)
		return 0;
	rdma_fail(p->failure, RDMA_STEP_WAIT, ETIMEDOUT,
		  "a message of %llu bytes did not arrive for %.1f s",
		  (unsigned long long)p->load->latency_bytes, (double)limit_us / 1e6);
	rdma_add_slowest(p->failure, 2 * p->load->latency_bytes, limit_us); /* there and back */
	nic_add_events(p->nic, p->failure);
	return -EIO;
}

/* A post that failed is seen here too. By itself, as await_message would save registers for it. */
__attribute__((noinline)) static int await_longer(struct ping *p, uint8_t old)
{
	struct wait w = {0};
	int r;

	do {
		r = look(p);
		if (r == 0)
			r = look_at_clock(p, &w, p->told ? 1 : LOOKS);
	} while (r == 0 && !has_arrived(p, old));
	return r;
}

/* Until a message is there. Its other bytes are read after the flag, not before. */
static inline int await_message(struct ping *p, uint8_t old)
{
	int r = has_arrived(p, old) ? 0 : await_longer(p, old);

	atomic_thread_fence(memory_order_acquire);
	return r;
}

static void take_message(struct ping *p)
{
	p->arrived -= p->told;
	p->used += p->told;
}

/*
 * What can wait until nobody waits: completions of posts, and receive requests for those used up,
 * many or all.
 */
static int settle(struct ping *p, bool all)
{
	struct wait w = {0};
	int r = 0;

	while (r == 0 && p->waits) {
		r = look(p);
		if (r == 0)
			r = look_at_clock(p, &w, 1);
	}
	if (r == 0 && p->used >= (all ? 1 : QUEUE_RECEIVES / 2)) {
		r = post_receives(p->nic, p->qp, p->into, p->used, p->failure);
		p->used = 0;
	}
	return r;
}

/* ---- there and back ---- */

static int check_tail(const struct ping *p, uint8_t sent)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->arrives[i] != sent)
			return rdma_fail(
				p->failure, RDMA_STEP_DATA, WRONG_GARBAGE,
				"a message came back with other data than it was sent with: %u instead of %u",
				p->arrives[i], sent);
	return 0;
}

static int trip(struct ping *p, unsigned n, struct timed *ret)
{
	const struct rdma_load *l = p->load;
	uint8_t sent = ping_flag(l, n), old = ping_flag(l, l->answers ? n : n - 1);
	uint64_t start;
	int r;

	memset(p->leaves, sent, p->n);
	start = clock_ns();
	r = post(p);
	if (r == 0)
		r = await_message(p, old);
	*ret = (struct timed){start, clock_ns(), 2};
	take_message(p);
	if (r == 0)
		r = settle(p, false);
	return r < 0 || l->like_perftest ? r : check_tail(p, sent);
}

int ping_trip(void *ping, unsigned n, struct timed *ret)
{
	struct ping *p = ping;

	return trip(p, p->whole + n, ret);
}

static u64 tag_of(const struct ping *p, u64 round, bool poison)
{
	return pattern_tag_make(p->load->pair, 0, round, poison);
}

int ping_check(struct ping *p, struct rdma_cell *cell)
{
	bool verify = p->load->verify;
	int r = 0;

	if (verify)
		message_fill(p->in, p->body, tag_of(p, 0, true));
	for (unsigned n = 1; r == 0 && n <= p->whole; n++) {
		struct timed t;

		message_fill(p->out, p->body, tag_of(p, n, false));
		r = trip(p, n, &t);
		if (r == 0 && verify) {
			cell->wrong = message_check(p->in, p->body, tag_of(p, n, false),
						    tag_of(p, 0, true));
			r = message_judge(cell, p->body + p->n, p->failure);
		}
	}
	if (r < 0 && p->failure->step == RDMA_STEP_DATA)
		cell->data = RDMA_DATA_WRONG;
	return r;
}

int ping_await_first(struct ping *p)
{
	int r = await_message(p, 0);

	take_message(p);
	return r;
}

int ping_last(struct ping *p, uint8_t value)
{
	int r;

	memset(p->leaves, value, p->n);
	arm(p, true);
	r = post(p);
	return r < 0 ? r : settle(p, true);
}

int ping_answer(struct ping *p)
{
	uint8_t got = 0;
	unsigned n = 0;
	int r;

	do {
		if (n++ % BEAT_EACH == 0)
			pulse_beat(p->nic->pulse);
		r = await_message(p, got);
		got = *p->flag;
		if (r == 0 && got) {
			if (n <= p->whole)
				memcpy(p->out, p->in, p->body);
			copy_tail(p->leaves, p->arrives, p->n);
			r = post(p);
		}
		take_message(p);
		if (r == 0)
			r = settle(p, !got);
	} while (r == 0 && got);
	return r;
}
