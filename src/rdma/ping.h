/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small messages that go there and back, one at a time, in host memory. All that lies between the
 * arrival of one and the posting of the next is latency, so what can be prepared is prepared
 * before.
 */
#pragma once

#include "rdma/end.h"

#include <stdatomic.h>

struct ping {
	const struct nic *nic;
	struct verbs_cq *cq;
	struct verbs_qp *qp;
	const struct rdma_load *load;
	struct rdma_failure *failure;
	/*
	 * The last bytes of a message, at most 8, all of one value. The very last is the flag: it
	 * arrives last.
	 */
	uint8_t *leaves, *arrives;
	size_t n;
	const volatile uint8_t *flag;
	uint8_t *out, *in; /* whole messages; of which so many bytes come before those last ones */
	uint64_t body;
	unsigned
		whole; /* the first messages that the other end sends back whole; then its last bytes */
	bool told;     /* by a completion that it has arrived; else the flag changes */
	unsigned each;   /* of so many posts the last has a completion */
	unsigned untold; /* since the last that had one */
	unsigned flags;  /* of all posts */
	unsigned waits;  /* completions of posts that are still to come */
	unsigned
		arrived; /* messages that a completion has reported, and that nobody has taken yet */
	unsigned used;   /* receive requests, after the last posting of them */
	struct verbs_sge from, into;
	struct verbs_send_wr send, *bad;
	atomic_bool stop; /* set by another thread: nothing more will come */
};

/*
 * Both before the other end can send, in host memory: a flag of 0; receive requests, once a
 * connection.
 */
void ping_clear(const struct end *e, uint64_t bytes);
int ping_expect(const struct nic *n, const struct end *e, uint64_t bytes, struct rdma_failure *f);

/* Messages from this end, by its first queue pair, to `to` of the other. It may not be moved. */
void ping_begin(struct ping *p, enum rdma_measure m, const struct nic *n, struct verbs_cq *cq,
		const struct end *e, struct place to, const struct rdma_load *load,
		struct rdma_failure *f);

/* These return 0 or -EIO and the failure. */

/*
 * Between onehops, before the trips that are timed: whole messages, with other data in each, that
 * come back as they were sent. A flag that has arrived says that all of its message has, so memory
 * must not be registered with relaxed ordering.
 */
int ping_check(struct ping *p, struct rdma_cell *cell);
/*
 * One trip, the n-th from 1 on; the last bytes that came back are those sent. As an
 * initiator_one_fn.
 */
int ping_trip(void *ping, unsigned n, struct timed *ret);
/* The other end's first message. */
int ping_await_first(struct ping *p);
/* Sends that which has no answer, and waits until it is there. */
int ping_last(struct ping *p, uint8_t value);
/* Sends back what comes, until a flag of 0. */
int ping_answer(struct ping *p);

/* What round trip n sends, another value than the one before; between onehops 0 only for n = 0. */
static inline uint8_t ping_flag(const struct rdma_load *l, unsigned n)
{
	return l->like_perftest ? (uint8_t)n : n ? (uint8_t)((n - 1) % 255 + 1) : 0;
}
