/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/transfer.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define CHAIN 64 /* work requests that are posted with one call, of small messages */
#define POLL  32
/*
 * From this size on each message has its own completion, and its own call: a NIC in software works
 * in the thread that calls.
 */
#define LARGE 8192
#define CLOCK_EACH                                                                                 \
	65536 /* empty polls between two readings of the clock, in which a completion would be noticed late */
#define EVENT_MS  100
#define BEAT_EACH 64 /* answers of the completion queue between two signs of life */

/* The progress of a stream. */
struct progress {
	uint64_t posted, done;
};

struct run {
	const struct nic *nic;
	struct verbs_cq *cq;
	const struct stream_work *works;
	size_t n;
	struct progress at[STREAMS_MAX];
	struct rdma_failure *failure;
};

/* ---- posting ---- */

static struct verbs_send_wr request_of(const struct stream_work *w, uint64_t place,
				       struct verbs_sge *sge)
{
	uint64_t offset = place * w->bytes;

	*sge = (struct verbs_sge){w->local.at + offset, (uint32_t)w->bytes, w->local.key};
	return (struct verbs_send_wr){
		.sg_list = sge,
		.num_sge = 1,
		.opcode = w->read ? VERBS_WR_READ : VERBS_WR_WRITE,
		.rdma = {w->remote.at + offset, w->remote.key},
	};
}

static int post(const struct nic *n, const struct stream_work *w, struct verbs_send_wr *wr,
		struct rdma_failure *f)
{
	struct verbs_send_wr *bad = NULL;
	int r = n->context->ops.post_send(w->queue->qp, wr, &bad);

	if (r)
		return rdma_fail(f, RDMA_STEP_POST, r, "ibv_post_send answers error %d (%s)", r,
				 strerror(r));
	return 0;
}

/* Whether message i has a completion, for itself and all before it. */
static bool is_told(const struct stream_work *w, uint64_t i)
{
	unsigned each = w->bytes > LARGE || w->depth < 4 ? 1 : w->depth / 4;

	return i + 1 == w->messages || (i + 1) % each == 0;
}

static uint64_t chain_of(const struct stream_work *w)
{
	return w->bytes > LARGE ? 1 : CHAIN;
}

/* Posts as many as there is room for, up to one chain; *ret_n is the number. */
static int post_some(struct run *u, size_t s, uint64_t *ret_n)
{
	const struct stream_work *w = &u->works[s];
	struct progress *p = &u->at[s];
	struct verbs_send_wr wrs[CHAIN];
	struct verbs_sge sges[CHAIN];
	uint64_t room = w->depth - (p->posted - p->done), left = w->messages - p->posted, n;

	n = room < left ? room : left;
	n = n < chain_of(w) ? n : chain_of(w);
	*ret_n = n;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t message = p->posted + i;

		wrs[i] = request_of(w, message % w->places, &sges[i]);
		wrs[i].wr_id = (uint64_t)s << 56 | (message + 1);
		wrs[i].send_flags = is_told(w, message) ? VERBS_SIGNALED : 0;
		wrs[i].next = i + 1 < n ? &wrs[i + 1] : NULL;
	}
	p->posted += n;
	return n ? post(u->nic, w, wrs, u->failure) : 0;
}

static int post_all(struct run *u)
{
	int r = 0;

	for (size_t s = 0; r == 0 && s < u->n; s++) {
		uint64_t n;

		do
			r = post_some(u, s, &n);
		while (r == 0 && n == chain_of(&u->works[s]));
	}
	return r;
}

/* ---- polling ---- */

static int failed(const struct nic *n, const struct verbs_wc *c, struct rdma_failure *f)
{
	int r = rdma_fail(f, RDMA_STEP_COMPLETION, c->status,
			  "%s completed with status %d (%s), vendor error 0x%x", n->port.device,
			  c->status, n->v->wc_status_str(c->status), c->vendor_err);

	f->vendor = c->vendor_err;
	nic_await_event(n, EVENT_MS);
	nic_add_events(n, f);
	return r;
}

int transfer_poll(const struct nic *n, struct verbs_cq *cq, struct verbs_wc *wcs, int room,
		  struct rdma_failure *f)
{
	int got = n->context->ops.poll_cq(cq, room, wcs), kept = 0;

	if (got < 0)
		return rdma_fail(f, RDMA_STEP_COMPLETION, 0, "ibv_poll_cq of %s fails",
				 n->port.device);
	for (int i = 0; i < got; i++) {
		bool flushed =
			wcs[i].wr_id == TRANSFER_RECEIVE && wcs[i].status == VERBS_WC_WR_FLUSH;

		if (wcs[i].status != VERBS_WC_SUCCESS && !flushed)
			return failed(n, &wcs[i], f);
		if (!flushed)
			wcs[kept++] = wcs[i];
	}
	return kept;
}

static int silence(const struct nic *n, uint64_t limit_us, struct rdma_failure *f)
{
	int r = rdma_fail(f, RDMA_STEP_WAIT, ETIMEDOUT, "no completion of %s for %.1f s",
			  n->port.device, (double)limit_us / 1e6);

	nic_add_events(n, f);
	return r;
}

/* Waits for at least one completion. */
static int poll_some(const struct nic *n, struct verbs_cq *cq, uint64_t limit_us,
		     struct verbs_wc *wcs, int room, struct rdma_failure *f)
{
	uint64_t since = 0;

	for (unsigned turn = 1;; turn++) {
		int got = transfer_poll(n, cq, wcs, room, f);

		if (got != 0)
			return got;
		if (turn % CLOCK_EACH)
			continue;
		pulse_beat(n->pulse);
		if (!since)
			since = clock_us();
		else if (clock_us() - since > limit_us)
			return silence(n, limit_us, f);
	}
}

static bool is_done(const struct run *u)
{
	for (size_t s = 0; s < u->n; s++)
		if (u->at[s].done < u->works[s].messages)
			return false;
	return true;
}

int transfer_run(const struct nic *n, struct verbs_cq *cq, const struct stream_work *works,
		 size_t k, uint64_t limit_us, double *ret_us, struct rdma_failure *f)
{
	struct run u = {.nic = n, .cq = cq, .works = works, .n = k, .failure = f};
	struct verbs_wc wcs[POLL];
	uint64_t start = clock_ns();
	unsigned turn = 0;

	while (!is_done(&u)) {
		int got, r = post_all(&u);

		if (r < 0)
			return r;
		if (turn++ % BEAT_EACH == 0)
			pulse_beat(n->pulse);
		got = poll_some(n, cq, limit_us, wcs, POLL, f);
		if (got < 0)
			return got;
		for (int i = 0; i < got; i++)
			u.at[wcs[i].wr_id >> 56].done = wcs[i].wr_id & ~(0xffull << 56);
	}
	*ret_us = (double)(clock_ns() - start) / 1e3;
	return 0;
}

/* ---- one at a time ---- */

int transfer_post_one(const struct nic *n, const struct stream_work *w, struct rdma_failure *f)
{
	struct verbs_sge sge;
	struct verbs_send_wr wr = request_of(w, 0, &sge);

	wr.send_flags = VERBS_SIGNALED;
	return post(n, w, &wr, f);
}

int transfer_wait_one(const struct nic *n, struct verbs_cq *cq, uint64_t limit_us,
		      struct rdma_failure *f)
{
	struct verbs_wc wc;
	int got = poll_some(n, cq, limit_us, &wc, 1, f);

	return got < 0 ? got : 0;
}
