/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/link.h"

#include "rdma/initiator.h"
#include "rdma/ping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct link {
	struct link_job job;
	struct pulse *pulse;
	struct nic nic;
	struct end end;
	struct verbs_cq *cq;
	struct link_address peer;
	uint64_t places;
	struct rdma_failure *failure; /* of the present action */
};

/* ---- opening ---- */

static int open_memory(struct link *l)
{
	return end_open_memory(&l->nic, &l->end, l->places * l->job.load.bytes, l->job.way,
			       l->job.relaxed, l->job.owner_limit_us, l->failure);
}

static int open_what_fits(struct link *l)
{
	int r = open_memory(l);

	while (r < 0 && l->failure->code == ENOMEM && end_can_halve(l->places, &l->job.load)) {
		end_close_memory(&l->nic, &l->end);
		*l->failure = (struct rdma_failure){0};
		l->places /= 2;
		r = open_memory(l);
	}
	return r;
}

static unsigned queue_n(const struct link *l)
{
	return rdma_queue_n(&l->job.load);
}

static int open_queues(struct link *l)
{
	const struct rdma_load *w = &l->job.load;
	int r = nic_open_queue(&l->nic, queue_n(l) * w->depth + QUEUE_RECEIVES, &l->cq, l->failure);

	for (unsigned i = 0; r == 0 && i < queue_n(l); i++)
		r = queue_pair_open(&l->nic, l->cq, w->depth, (unsigned)w->latency_bytes,
				    &l->end.queues[i], l->failure);
	return r;
}

static void say_address(const struct link *l, struct link_address *ret)
{
	*ret = (struct link_address){
		.queue = l->end.queues[0].address,
		.n = queue_n(l),
		.out = end_place(&l->end, END_OUT, true),
		.in = end_place(&l->end, END_IN, true),
		.places = l->places,
	};
	for (unsigned i = 0; i < queue_n(l); i++)
		ret->numbers[i] = l->end.queues[i].address.number;
}

static int open_owner(struct link *l)
{
	int r;

	if (region_is_host(l->job.way))
		return end_open_host(&l->end, l->places * l->job.load.bytes, l->failure);
	pulse_warn(l->pulse, PULSE_GPU_S);
	r = end_open_gpu(&l->end, &l->job.gpu, l->failure);
	pulse_warn(l->pulse, PULSE_QUIET_S);
	return r;
}

static int act_open(struct link *l, const struct verbs *v, const struct link_order *o,
		    struct link_answer *ret)
{
	int r = nic_open(v, l->pulse, l->job.device, l->job.port, &l->nic, l->failure);

	if (r < 0)
		return r;
	l->nic.port.gid = l->job.gid;
	l->places = l->job.places;
	r = open_owner(l);
	if (r == 0)
		r = open_what_fits(l);
	if (r == 0)
		r = open_queues(l);
	(void)o;
	if (r == 0)
		say_address(l, &ret->address);
	return r;
}

/* ---- connecting ---- */

/* Both windows are of one size. */
static int shrink(struct link *l, uint64_t places)
{
	if (places >= l->places)
		return 0;
	end_close_memory(&l->nic, &l->end);
	l->places = places;
	return open_memory(l);
}

static int act_connect(struct link *l, const struct verbs *v, const struct link_order *o,
		       struct link_answer *ret)
{
	int r = shrink(l, o->peer.places);

	(void)v, (void)ret;
	l->peer = o->peer;
	for (unsigned i = 0; r == 0 && i < queue_n(l); i++) {
		struct queue_address to = o->peer.queue;

		to.number = o->peer.numbers[i];
		r = queue_pair_connect(&l->nic, &l->end.queues[i], &to, l->failure);
	}
	if (r < 0 || !region_is_host(l->job.way))
		return r;
	ping_clear(&l->end, l->job.load.latency_bytes);
	return ping_expect(&l->nic, &l->end, l->job.load.latency_bytes, l->failure);
}

/* ---- data ---- */

static struct initiator initiator_of(const struct link *l)
{
	return (struct initiator){
		.nic = &l->nic,
		.cq = l->cq,
		.near = &l->end,
		.far_out = l->peer.out,
		.far_in = l->peer.in,
		.load = &l->job.load,
		.places = l->places,
		.failure = l->failure,
	};
}

static struct end_round round_of(const struct link *l, const struct link_order *o, bool read)
{
	return (struct end_round){l->job.load.pair, o->round, read};
}

/*
 * One side's part: it poisons where `in` data will arrive, and fills what goes out the other way.
 */
static int prepare(struct link *l, const struct link_order *o, bool writes_out)
{
	bool out = writes_out ? rdma_has_writes(o->measure) : rdma_has_reads(o->measure);
	bool in = writes_out ? rdma_has_reads(o->measure) : rdma_has_writes(o->measure);
	const struct end_round sent = round_of(l, o, !writes_out);
	const struct end_round received = round_of(l, o, writes_out);
	int r = out ? end_fill(&l->end, &sent, l->failure) : 0;

	return r == 0 && in ? end_poison(&l->end, &received, l->failure) : r;
}

static int act_prepare(struct link *l, const struct verbs *v, const struct link_order *o,
		       struct link_answer *ret)
{
	(void)v, (void)ret;
	return prepare(l, o, false);
}

static int act_move(struct link *l, const struct verbs *v, const struct link_order *o,
		    struct link_answer *ret)
{
	const struct initiator i = initiator_of(l);
	const struct end_round reads = round_of(l, o, true);
	int r = prepare(l, o, true);

	(void)v;
	if (r == 0)
		r = initiator_move(&i, o->measure);
	if (r == 0 && rdma_has_writes(o->measure))
		r = initiator_flush(&i);
	if (r < 0 || !rdma_has_reads(o->measure))
		return r;
	return rdma_is_latency(o->measure)
		       ? end_check_message(&l->end, &reads, l->job.load.latency_bytes, &ret->cell,
					   l->failure)
		       : end_check(&l->end, &reads, &ret->cell, l->failure);
}

static int act_check(struct link *l, const struct verbs *v, const struct link_order *o,
		     struct link_answer *ret)
{
	const struct end_round writes = round_of(l, o, false);

	(void)v;
	return rdma_has_writes(o->measure) ? end_check(&l->end, &writes, &ret->cell, l->failure)
					   : 0;
}

/* ---- latency ---- */

static int one_read(void *context, unsigned n, struct timed *ret)
{
	const struct initiator i = initiator_of(context);

	(void)n;
	return initiator_one_read(&i, ret);
}

static void begin_ping(struct link *l, enum rdma_measure m, const struct rdma_load *load,
		       struct ping *ret)
{
	ping_begin(ret, m, &l->nic, l->cq, &l->end, l->peer.in, load, l->failure);
}

/* Between onehops 0 ends the other end's answers. */
static int time_round_trips(struct link *l, enum rdma_measure m, struct rdma_cell *cell)
{
	const struct initiator i = initiator_of(l);
	struct ping p;
	int r;

	begin_ping(l, m, &l->job.load, &p);
	r = ping_check(&p, cell);
	if (r == 0)
		r = initiator_time_latency(&i, ping_trip, &p, cell);
	return r < 0 || l->job.load.like_perftest ? r : ping_last(&p, 0);
}

/*
 * The other end's first message comes before any of this one, and its last trip has no answer here.
 */
static int time_answers(struct link *l, enum rdma_measure m, struct rdma_cell *cell)
{
	struct rdma_load load = l->job.load;
	struct initiator i = initiator_of(l);
	struct ping p;
	int r;

	load.trips--;
	i.load = &load;
	begin_ping(l, m, &load, &p);
	r = ping_await_first(&p);
	if (r == 0)
		r = initiator_time_latency(&i, ping_trip, &p, cell);
	return r < 0 ? r : ping_last(&p, ping_flag(&load, load.trips + 1));
}

static int act_pong(struct link *l, const struct verbs *v, const struct link_order *o,
		    struct link_answer *ret)
{
	struct ping p;

	(void)v, (void)ret;
	begin_ping(l, o->measure, &l->job.load, &p);
	return ping_answer(&p);
}

static int act_time(struct link *l, const struct verbs *v, const struct link_order *o,
		    struct link_answer *ret)
{
	const struct initiator i = initiator_of(l);
	struct rdma_cell *cell = &ret->cell;

	(void)v;
	return o->measure == RDMA_LATENCY_READ ? initiator_time_latency(&i, one_read, l, cell)
	       : !rdma_is_latency(o->measure)  ? initiator_time_bandwidth(&i, o->measure, cell)
	       : l->job.load.answers           ? time_answers(l, o->measure, cell)
					       : time_round_trips(l, o->measure, cell);
}

/* ---- all of it ---- */

static int (*const actions[LINK_ACTION_N])(struct link *l, const struct verbs *v,
					   const struct link_order *o, struct link_answer *ret) = {
	[LINK_OPEN] = act_open, [LINK_CONNECT] = act_connect, [LINK_PREPARE] = act_prepare,
	[LINK_MOVE] = act_move, [LINK_CHECK] = act_check,     [LINK_TIME] = act_time,
	[LINK_PONG] = act_pong,
};

void link_act(const struct verbs *v, struct pulse *pulse, struct link **l,
	      const struct link_order *o, struct link_answer *ret)
{
	*ret = (struct link_answer){0};
	if (o->action == LINK_OPEN) {
		link_close(l);
		*l = calloc(1, sizeof(**l));
	}
	if (o->action == LINK_CLOSE) {
		link_close(l);
		return;
	}
	if (!*l) {
		rdma_fail(&ret->failure, RDMA_STEP_WORKER, o->action == LINK_OPEN ? ENOMEM : EPROTO,
			  "no connection is open");
		return;
	}
	if (o->action == LINK_OPEN)
		(*l)->job = o->job;
	(*l)->failure = &ret->failure;
	(*l)->pulse = pulse;
	pulse_warn(pulse, PULSE_QUIET_S);
	actions[o->action](*l, v, o, ret);
}

void link_close(struct link **l)
{
	if (!*l)
		return;
	end_close_queues(&(*l)->nic, &(*l)->end);
	if ((*l)->cq)
		(*l)->nic.v->destroy_cq((*l)->cq);
	end_close(&(*l)->nic, &(*l)->end);
	nic_close(&(*l)->nic);
	free(*l);
	*l = NULL;
}
