/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host that measures: it asks the listener for memory, posts all the work, and tells it the
 * results.
 */
#include "session/rdma_hosts_impl.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "rdma/end.h"
#include "session/stop.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_US   3000000
#define REACH_BYTES  64
#define REACH_PLACES 16
#define REACH_US     1000000
#define WINDOW       (64ull << 20)
#define GPU_WINDOW   HOSTS_GPU_WINDOW /* more than any GPU's cache holds */
#define SMALL_WINDOW (4ull << 20)     /* of simulated devices */
#define LEAST_WINDOW (1ull << 20)
#define MOVE_S       4
#define MESSAGE_S    2.0 /* of HOSTS_LIMIT_US: the rate is only as last measured */
#define SAMPLE_US    20000

/* ---- what is done with a pair ---- */

enum step_kind {
	STEP_END,
	STEP_LOCAL, /* an action of this host's worker */
	STEP_ASK,   /* a request, and its answer */
	STEP_TELL,  /* a request whose answer comes later */
	STEP_AWAIT, /* ... here */
};

struct step {
	enum step_kind kind;
	enum link_action action;
	enum peer_word word;
	unsigned char round;
	bool checks; /* left out with --no-verify */
};

/* clang-format off */
#define CONNECTED \
	{STEP_LOCAL, .action = LINK_OPEN}, {STEP_ASK, .word = PEER_OPEN}, {STEP_LOCAL, .action = LINK_CONNECT}
#define CHECKED(n) \
	{STEP_ASK, .word = PEER_PREPARE, .round = n, .checks = true}, \
	{STEP_LOCAL, .action = LINK_MOVE, .round = n, .checks = true}, \
	{STEP_ASK, .word = PEER_CHECK, .round = n, .checks = true}
static const struct step reach_steps[] = {
	CONNECTED,
	{STEP_ASK, .word = PEER_PREPARE, .round = 1},
	{STEP_LOCAL, .action = LINK_MOVE, .round = 1},
	{STEP_ASK, .word = PEER_CHECK, .round = 1},
	{STEP_END},
};
/* Two rounds, so that data left over from the first shows in the second. */
static const struct step rate_steps[] = {
	CONNECTED, CHECKED(1), CHECKED(2), {STEP_LOCAL, .action = LINK_TIME}, {STEP_END},
};
/* Their own messages say whether they are right. */
static const struct step round_trip_steps[] = {
	CONNECTED, {STEP_TELL, .word = PEER_PONG}, {STEP_LOCAL, .action = LINK_TIME},
	{STEP_AWAIT, .word = PEER_PONG}, {STEP_END},
};
/* After whatever became of it. */
static const struct step closing_steps[] = {
	{STEP_LOCAL, .action = LINK_CLOSE}, {STEP_ASK, .word = PEER_CLOSE}, {STEP_END},
};
/* clang-format on */

static const struct step *const measure_steps[RDMA_MEASURE_N] = {
	[RDMA_WRITE] = rate_steps,
	[RDMA_READ] = rate_steps,
	[RDMA_BOTH] = rate_steps,
	[RDMA_LATENCY_WRITE] = round_trip_steps,
	[RDMA_LATENCY_IMMEDIATE] = round_trip_steps,
	[RDMA_LATENCY_SEND] = round_trip_steps,
	[RDMA_LATENCY_READ] = rate_steps,
};

/* A pair at work. */
struct turn {
	struct host_pair *pair;
	int measure; /* -1: is it reached? */
	size_t kind; /* of its messages */
	const struct step *step;
	bool closing;
	bool told, answered; /* a request of STEP_TELL is out; its answer is there */
	bool waits_worker, waits_peer;
	double deadline_s; /* of the peer's answer */
	struct link_job job;
	struct link_address far;
	struct rdma_cell cell; /* of this measurement */
};

struct client {
	struct rdma_hosts *h;
	struct turn turns[PORTS_MAX];
	size_t n;
	size_t left; /* of what is planned: a measurement of a kind in a round each */
	bool broken; /* the connection to the peer, or a signal */
};

/* ---- jobs ---- */

static enum rdma_measure measure_of(const struct turn *t)
{
	return t->measure < 0 ? RDMA_WRITE : (enum rdma_measure)t->measure;
}

/* Reachability is a matter of the hosts' own memory. */
static const struct hosts_kind *kind_of(const struct rdma_hosts *h, const struct turn *t)
{
	static const struct hosts_kind reach = {REGION_HOST, {REACH_BYTES, REACH_BYTES}};

	return t->measure < 0 ? &reach : &h->kinds[t->kind];
}

/* On a slow link no more than is moved in a few seconds, once its rate is known. */
static uint64_t window_of(const struct rdma_session *s, const struct host_pair *p,
			  enum region_way way)
{
	uint64_t most = devices_are_simulated(&s->devices) ? SMALL_WINDOW
			: region_is_host(way)              ? WINDOW
							   : GPU_WINDOW;
	double moved = fmax(p->rate_gbps * 1e9 * MOVE_S, LEAST_WINDOW);

	return p->rate_gbps > 0 && moved < (double)most ? (uint64_t)moved : most;
}

static struct rdma_load load_of(const struct rdma_hosts *h, const struct turn *t)
{
	const struct rdma_session *s = h->s;
	bool reach = t->measure < 0;
	double sample = s->stopping.budget_s * 1e6 / STOPPING_MIN_SAMPLES;

	return (struct rdma_load){
		.bytes = kind_of(h, t)->size.of_rates,
		.latency_bytes = kind_of(h, t)->size.of_latencies,
		.verify = !s->o->no_verify,
		.depth = reach         ? REACH_PLACES
			 : s->o->depth ? (unsigned)s->o->depth
				       : RDMA_DEPTH,
		.queues = reach || !s->o->queues ? 1 : (unsigned)s->o->queues,
		.stopping = s->stopping,
		.sample_us = sample < SAMPLE_US ? sample : SAMPLE_US,
		.limit_us = reach ? REACH_US : HOSTS_LIMIT_US,
		.pair = (unsigned)(t->pair->own * 16 + t->pair->far) & 0xff,
	};
}

static bool make_job(const struct rdma_hosts *h, struct turn *t)
{
	const struct nic_port *p = &h->s->listing->ports[t->pair->own];

	t->job = (struct link_job){
		.port = p->number,
		.gid = t->pair->gid,
		.relaxed = hosts_relax(h, measure_of(t)),
		.load = load_of(h, t),
		.owner_limit_us = HOSTS_OWNER_US,
	};
	memcpy(t->job.device, p->device, sizeof(t->job.device));
	hosts_take_way(h, t->pair->own, kind_of(h, t)->way, &t->job);
	t->job.places = t->measure < 0
				? REACH_PLACES
				: end_places(window_of(h->s, t->pair, t->job.way), &t->job.load);
	return t->pair->meets;
}

/* ---- steps ---- */

static void send_request(struct client *c, const struct turn *t, enum peer_word w)
{
	const struct rdma_load *l = &t->job.load;
	struct peer_message m = {.word = w};

	if (w == PEER_OPEN)
		put_queue(&m, &t->far); /* here still this side's own */
	m.v[PEER_K_PORT] = t->pair->far;
	m.v[PEER_K_INDEX] = t->pair->far_gid.gid_index;
	m.v[PEER_K_BYTES] = l->bytes;
	m.v[PEER_K_LATENCY] = l->latency_bytes;
	m.v[PEER_K_DEPTH] = l->depth;
	m.v[PEER_K_PAIR] = l->pair;
	m.v[PEER_K_LIMIT] = l->limit_us / 1000;
	m.v[PEER_K_TIME] = (uint64_t)ceil(l->stopping.budget_s);
	m.v[PEER_K_WAY] = t->job.way;
	m.v[PEER_K_ROUND] = t->step->round;
	m.v[PEER_K_MEASURE] = measure_of(t);
	peer_send(&c->h->peer, &m);
}

static void fail_turn(struct turn *t, const struct rdma_failure *f)
{
	if (!t->closing && t->cell.failure.step == RDMA_STEP_NONE)
		t->cell.failure = *f;
}

static void begin_local(struct client *c, struct turn *t)
{
	struct rdma_worker *w = &c->h->workers[t->pair->own];
	const struct link_order o = {.action = t->step->action,
				     .job = t->job,
				     .peer = t->far,
				     .measure = measure_of(t),
				     .round = t->step->round};

	if (t->closing && w->pid <= 0) /* it died, and its connection with it */
		return;
	if (rdma_worker_begin_link(w, NULL, &o) == 0) {
		t->waits_worker = true;
		return;
	}
	rdma_fail(&t->cell.failure, RDMA_STEP_WORKER, ESRCH, "%s", err_msg());
}

static void begin_step(struct client *c, struct turn *t)
{
	switch (t->step->kind) {
	case STEP_LOCAL:
		begin_local(c, t);
		return;
	case STEP_TELL:
		send_request(c, t, t->step->word);
		t->told = true;
		return;
	case STEP_ASK:
		send_request(c, t, t->step->word);
		__attribute__((fallthrough));
	case STEP_AWAIT:
		t->waits_peer = !t->answered;
		t->answered = false;
		/* The listener gives up first, and says so. */
		t->deadline_s = clock_s() + HOSTS_ACTION_S + 2;
		return;
	default:
		return;
	}
}

static bool is_skipped(const struct client *c, const struct step *s)
{
	return s->checks && c->h->s->o->no_verify;
}

/* Goes on until something has to be waited for. */
static void advance(struct client *c, struct turn *t)
{
	while (t->step && !t->waits_worker && !t->waits_peer) {
		bool failed = t->cell.failure.step != RDMA_STEP_NONE;

		if (!t->closing && (failed || t->step->kind == STEP_END)) {
			t->closing = true;
			t->step = closing_steps;
		} else if (t->step->kind == STEP_END) {
			t->step = NULL;
			return;
		}
		if (t->closing && t->told) {
			/* What was asked is still to be answered: then the port is free. */
			t->waits_peer = !t->answered;
			t->told = t->answered = false;
			t->deadline_s = clock_s() + HOSTS_ACTION_S + 2;
			continue;
		}
		if (!is_skipped(c, t->step))
			begin_step(c, t);
		if (t->step->kind == STEP_AWAIT)
			t->told = false;
		t->step++;
	}
}

/* ---- answers ---- */

static void add_check(struct turn *t, const struct rdma_cell *c)
{
	if (c->data == RDMA_DATA_NOT_CHECKED)
		return;
	t->cell.checked_bytes += c->checked_bytes;
	if (t->cell.data != RDMA_DATA_WRONG) {
		t->cell.data = c->data;
		t->cell.wrong = c->wrong;
	}
}

static void take_value(struct turn *t, const struct rdma_cell *c)
{
	struct rdma_cell all = *c;

	all.data = t->cell.data;
	all.checked_bytes = t->cell.checked_bytes;
	all.wrong = t->cell.wrong;
	all.failure = t->cell.failure;
	t->cell = all;
}

static void take_worker(struct client *c, struct turn *t, const struct link_answer *a)
{
	const struct step *done = t->step - 1;

	t->waits_worker = false;
	if (done->action == LINK_OPEN)
		t->far = a->address; /* until the far one comes */
	if (done->action == LINK_MOVE || done->action == LINK_TIME)
		add_check(t, &a->cell);
	if (done->action == LINK_TIME && a->failure.step == RDMA_STEP_NONE)
		take_value(t, &a->cell);
	if (a->failure.step != RDMA_STEP_NONE)
		fail_turn(t, &a->failure);
	advance(c, t);
}

static struct rdma_failure failure_of(const struct rdma_hosts *h, const struct peer_message *m)
{
	struct rdma_failure f = {.step = (enum rdma_step)m->v[PEER_K_STEP],
				 .code = (int)m->v[PEER_K_CODE],
				 .vendor = (unsigned)m->v[PEER_K_VENDOR]};

	if (f.step == RDMA_STEP_NONE || f.step == RDMA_STEP_DATA)
		f.step = RDMA_STEP_WORKER;
	snprintf(f.text, sizeof(f.text), "%.63s: %.180s", h->peer_name, m->text);
	return f;
}

static void take_checked(struct turn *t, const struct peer_message *m)
{
	const struct rdma_cell c = {
		.data = (enum rdma_data)m->v[PEER_K_DATA],
		.checked_bytes = m->v[PEER_K_CHECKED],
		.wrong = {.kind = (enum wrong_kind)m->v[PEER_K_KIND],
			  .words = m->v[PEER_K_WORDS],
			  .wrong_words = m->v[PEER_K_WRONG],
			  .from_bytes = m->v[PEER_K_AT],
			  .shift_bytes = (int64_t)m->v[PEER_K_SHIFT],
			  .rounds_ago = m->v[PEER_K_AGO]},
	};
	struct rdma_failure f = {0};

	add_check(t, &c);
	if (c.data != RDMA_DATA_WRONG)
		return;
	end_say_wrong(&c, false, &f);
	fail_turn(t, &f);
}

/* The turn that has asked this of the far port. */
static struct turn *turn_at(struct client *c, uint64_t far)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->turns[i].step && c->turns[i].pair->far == far &&
		    (c->turns[i].waits_peer || c->turns[i].told))
			return &c->turns[i];
	return NULL;
}

static int take_answer(struct client *c, const struct peer_message *m)
{
	struct turn *t = turn_at(c, m->v[PEER_K_PORT]);
	struct rdma_failure f;

	if (!t)
		return err_set(EPROTO, "%s sent an answer that belongs to no request",
			       c->h->peer.address);
	if (m->word == PEER_FAILED) {
		f = failure_of(c->h, m);
		fail_turn(t, &f);
	} else if (m->word == PEER_OPENED) {
		struct link_address far;

		if (take_queue(m, &far) < 0)
			return err_wrap(-EPROTO, "%s", c->h->peer.address);
		if (far.n != 2 * t->job.load.queues || far.places > t->job.places ||
		    far.places % t->job.load.queues)
			return err_set(EPROTO, "%s opened another connection than asked for",
				       c->h->peer.address);
		t->far = far;
	} else if (m->word == PEER_CHECKED) {
		take_checked(t, m);
	}
	/* The answer to a request of STEP_TELL may come before STEP_AWAIT. */
	t->answered = !t->waits_peer;
	t->waits_peer = false;
	if (!t->waits_worker)
		advance(c, t);
	return 0;
}

static int take_line(struct client *c, const struct peer_message *m)
{
	switch (m->word) {
	case PEER_OPENED:
	case PEER_DONE:
	case PEER_CHECKED:
	case PEER_FAILED:
		return take_answer(c, m);
	case PEER_ALIVE:
		return 0;
	case PEER_BYE:
	case PEER_REFUSED:
		return err_set(ECONNRESET, "%s says: %s", c->h->peer.address, m->text);
	default:
		return err_set(EPROTO, "%s sent a line that is not an answer", c->h->peer.address);
	}
}

/* ---- waiting ---- */

static int read_peer(struct client *c)
{
	struct peer_message m;
	int r = peer_pump(&c->h->peer);

	while (r == 0) {
		r = peer_next(&c->h->peer, &m);
		if (r <= 0)
			return r;
		r = take_line(c, &m);
	}
	return r;
}

static void break_off(struct client *c)
{
	snprintf(c->h->ended, sizeof(c->h->ended), "%s", err_msg());
	c->broken = true;
}

static void take_late(struct client *c, struct turn *t)
{
	struct rdma_failure f = {0};
	struct link_answer a;

	if (t->waits_worker) {
		rdma_worker_give_up_link(&c->h->workers[t->pair->own], &a);
		take_worker(c, t, &a);
		return;
	}
	rdma_fail(&f, RDMA_STEP_WORKER, ETIMEDOUT, "%s gives no answer", c->h->peer.address);
	fail_turn(t, &f);
	err_set(ETIMEDOUT, "%s gives no answer", c->h->peer.address);
	break_off(c);
}

/* When what is waited for is late. */
static double due_of(const struct client *c, const struct turn *t)
{
	return t->waits_worker ? c->h->workers[t->pair->own].until_s : t->deadline_s;
}

static void take_turns(struct client *c, const struct pollfd *fds)
{
	double now = clock_s();

	for (size_t i = 0; i < c->n && !c->broken; i++) {
		struct turn *t = &c->turns[i];
		struct link_answer a;

		if (t->waits_worker && fds[i].revents) {
			if (rdma_worker_finish_link(&c->h->workers[t->pair->own], &a))
				take_worker(c, t, &a);
		} else if ((t->waits_worker || t->waits_peer) && now >= due_of(c, t)) {
			take_late(c, t);
		}
	}
}

/* Waits for one event. False: no turn is left, or all has to end. */
static bool await(struct client *c)
{
	struct pollfd fds[PORTS_MAX + 2] = {0};
	struct rdma_session *s = c->h->s;
	int wait_ms = peer_due_ms(&c->h->peer);
	double now = clock_s();
	bool any = false;

	for (size_t i = 0; i < c->n; i++) {
		const struct turn *t = &c->turns[i];
		double left = (due_of(c, t) - now) * 1e3;

		fds[i] = (struct pollfd){t->waits_worker ? c->h->workers[t->pair->own].socket : -1,
					 POLLIN, 0};
		any = any || t->waits_worker || t->waits_peer;
		if ((t->waits_worker || t->waits_peer) && left < wait_ms)
			wait_ms = left > 0 ? (int)left + 1 : 0;
	}
	if (!any || c->broken)
		return false;
	fds[c->n] = (struct pollfd){s->devices.stop_fd, POLLIN, 0};
	fds[c->n + 1] = (struct pollfd){c->h->peer.fd, peer_events(&c->h->peer), 0};
	poll(fds, c->n + 2, wait_ms);
	s->stopped = stop_signals_seen(s->devices.stop_fd);
	c->broken = s->stopped;
	if (!c->broken && read_peer(c) < 0)
		break_off(c);
	take_turns(c, fds);
	return true;
}

/* What still runs when all has to end. */
static void kill_turns(struct client *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct link_answer a;

		if (c->turns[i].waits_worker)
			rdma_worker_give_up_link(&c->h->workers[c->turns[i].pair->own], &a);
		c->turns[i].waits_worker = false;
	}
}

/* ---- how long a message takes ---- */

static uint64_t bytes_of(const struct rdma_hosts *h, size_t kind, enum rdma_measure m)
{
	return rdma_bytes(h->kinds[kind].size, m);
}

static void keep_pace(const struct rdma_hosts *h, const struct turn *t)
{
	enum rdma_measure m = measure_of(t);
	double value = t->cell.value.median;

	if (!t->cell.value.n)
		return;
	t->pair->paced_bytes = bytes_of(h, t->kind, m);
	t->pair->paced_s = rdma_is_latency(m) ? value / 1e6
					      : (m == RDMA_BOTH ? 2 : 1) *
							(double)t->pair->paced_bytes / value / 1e9;
}

/*
 * One after the other until something comes back; 0: unknown. What a message takes says nothing of
 * one that is far larger: a small one takes no time for its bytes.
 */
static double message_s(const struct rdma_hosts *h, const struct host_pair *p, size_t kind,
			enum rdma_measure m)
{
	double bytes = (double)bytes_of(h, kind, m);
	double each = 2 * (double)p->paced_bytes >= bytes
			      ? p->paced_s * bytes / (double)p->paced_bytes
		      : h->s->expect_gbps > 0 ? bytes / h->s->expect_gbps / 1e9
					      : 0;

	return each * (rdma_is_round_trip(m)              ? 2
		       : !rdma_is_latency(m) && h->queues ? h->queues
							  : 1);
}

/* ---- results ---- */

static void tell_result(struct client *c, const struct turn *t)
{
	const struct rdma_cell *cell = &t->cell;
	double expected = t->measure < 0 ? 0 : rdma_hosts_expected(t->pair, measure_of(t));
	bool narrow = !isnan(cell->value.low);
	struct peer_message m = {.word = t->measure < 0 ? PEER_REACHED : PEER_FIGURE};

	m.v[PEER_K_PORT] = t->pair->far;
	m.v[PEER_K_FROM] = t->pair->own;
	m.v[PEER_K_STEP] = cell->failure.step;
	m.v[PEER_K_CODE] = (uint64_t)(cell->failure.code < 0 ? 0 : cell->failure.code);
	m.v[PEER_K_MEASURE] = measure_of(t);
	m.v[PEER_K_DATA] = cell->data;
	m.v[PEER_K_CHECKED] = cell->checked_bytes;
	m.v[PEER_K_MEDIAN] = put_value(cell->value.median);
	m.v[PEER_K_LOW] = put_value(narrow ? cell->value.low : cell->value.min);
	m.v[PEER_K_HIGH] = put_value(narrow ? cell->value.high : cell->value.max);
	m.v[PEER_K_SAMPLES] = cell->value.n;
	m.v[PEER_K_EXPECTED] = put_value(expected);
	m.v[PEER_K_BYTES] = kind_of(c->h, t)->size.of_rates;
	m.v[PEER_K_LATENCY] = kind_of(c->h, t)->size.of_latencies;
	m.v[PEER_K_WAY] = kind_of(c->h, t)->way;
	snprintf(m.text, sizeof(m.text), "%.*s", (int)sizeof(m.text) - 1, cell->failure.text);
	peer_send(&c->h->peer, &m);
}

static void keep_result(struct client *c, struct turn *t)
{
	hosts_mark(&t->cell.failure, t->job.way, t->measure >= 0);
	if (t->measure < 0) {
		t->pair->failure = t->cell.failure;
		t->pair->reach = t->cell.failure.step == RDMA_STEP_NONE ? REACH_YES : REACH_NO;
	} else {
		t->cell.done = true;
		if (t->cell.value.n && !rdma_is_latency(measure_of(t)))
			t->pair->rate_gbps = t->cell.value.median;
		keep_pace(c->h, t);
		if (rdma_cuts(&t->cell.failure))
			t->pair->cut |= 1u << t->job.way;
		*hosts_make_cell(c->h, t->pair, t->kind, t->measure) = t->cell;
	}
	tell_result(c, t);
}

/* Turns that are not over when all has to end have no result. */
static void run_turns(struct client *c)
{
	for (size_t i = 0; i < c->n && !c->broken; i++) {
		struct turn *t = &c->turns[i];

		if (make_job(c->h, t)) {
			advance(c, t);
		} else {
			t->step = NULL;
			rdma_fail(&t->cell.failure, RDMA_STEP_GID, ENOTCONN,
				  "the two ports have no addresses of one type and family%s",
				  c->h->s->gid < 0 ? "" : ", and --gid leaves no other");
		}
	}
	while (await(c))
		;
	kill_turns(c);
	for (size_t i = 0; i < c->n; i++)
		if (!c->turns[i].step || c->turns[i].closing)
			keep_result(c, &c->turns[i]);
	hosts_keep(c->h);
}

static void add_turn(struct client *c, struct host_pair *p, int measure, size_t kind)
{
	c->turns[c->n++] = (struct turn){
		.pair = p,
		.measure = measure,
		.kind = kind,
		.step = measure < 0 ? reach_steps : measure_steps[measure],
	};
}

/* ---- which NICs reach which ---- */

static size_t list_used(const struct rdma_hosts *h, bool own, size_t *ret)
{
	size_t n = 0, all = own ? h->s->listing->n : h->far_n;

	for (size_t i = 0; i < all; i++)
		if (own ? hosts_uses(h, i) : rdma_hosts_far_is_used(h, i))
			ret[n++] = i;
	return n;
}

/*
 * As many rounds as the host with more ports has: in round r, port i of it with port i + r of the
 * other.
 */
static void reach_all(struct client *c)
{
	size_t own[PORTS_MAX], far[PORTS_MAX];
	size_t own_n = list_used(c->h, true, own), far_n = list_used(c->h, false, far);
	size_t rounds = own_n > far_n ? own_n : far_n;

	if (!own_n || !far_n)
		return;
	c->h->reach_rounds = rounds;
	for (size_t r = 0; r < rounds && !c->broken; r++) {
		session_tell_left(c->h->s->ear, &c->h->s->pace, (double)(rounds - r),
				  "reachability, round %zu of %zu", r + 1, rounds);
		c->n = 0;
		for (size_t i = 0; i < own_n; i++)
			if ((i + r) % rounds < far_n)
				add_turn(c, rdma_hosts_pair(c->h, own[i], far[(i + r) % rounds]),
					 -1, 0);
		run_turns(c);
	}
}

/* ---- rails ---- */

/* Less is better: the far port that fewest use, in the same network, in the same position. */
static size_t cost_of(const struct host_pair *p, const size_t *taken)
{
	return taken[p->far] * 4 + (gid_same_network(&p->gid.entry.gid, &p->far_gid.gid) ? 0 : 2) +
	       (p->own != p->far);
}

static void choose_rails(struct rdma_hosts *h)
{
	size_t taken[PORTS_MAX] = {0};

	for (size_t i = 0; i < h->s->listing->n; i++) {
		struct host_pair *best = NULL;

		for (size_t k = 0; k < h->far_n; k++) {
			struct host_pair *p = rdma_hosts_pair(h, i, k);

			if (p->reach != REACH_YES)
				continue;
			p->rail = h->s->o->all;
			if (!best || cost_of(p, taken) < cost_of(best, taken))
				best = p;
		}
		if (!best)
			continue;
		best->rail = true;
		taken[best->far]++;
	}
}

/* ---- what is expected ---- */

static void limit_by(double *gbps, char *why, size_t size, double by, const char *where,
		     const char *text)
{
	/* The other host's comes in whole MB/s. */
	if (by <= 0 || (*gbps > 0 && *gbps <= by + 0.002))
		return;
	*gbps = by;
	snprintf(why, size, "%.24s: %.95s", where, text);
}

/* The slower of the two hosts' ends, as each knows its own. */
static void expect(const struct rdma_hosts *h, struct host_pair *p)
{
	const struct far_port *far = &h->far[p->far];

	for (size_t i = 0; i < h->s->pair_n; i++) {
		const struct rdma_pair *own = &h->s->pairs[i];

		if (own->port != p->own || own->gpu >= 0)
			continue;
		limit_by(&p->write_gbps, p->limit, sizeof(p->limit), own->write_gbps, "here",
			 own->limit);
		limit_by(&p->read_gbps, p->limit, sizeof(p->limit), own->read_gbps, "here",
			 own->limit);
	}
	limit_by(&p->write_gbps, p->limit, sizeof(p->limit), far->reads_gbps, h->peer_name,
		 far->limit);
	limit_by(&p->read_gbps, p->limit, sizeof(p->limit), far->writes_gbps, h->peer_name,
		 far->limit);
	rdma_expect_told(h->s, &p->write_gbps, &p->read_gbps, p->limit, sizeof(p->limit));
}

/* ---- rounds ---- */

/* Links of both hosts under numbers of their own. */
struct numbering {
	uint64_t of[2ul * PORTS_MAX * PEER_LIST_MAX];
	size_t n;
};

static unsigned number_of(struct numbering *numbers, bool far, uint32_t link)
{
	uint64_t key = (uint64_t)far << 32 | link;
	size_t i = 0;

	while (i < numbers->n && numbers->of[i] != key)
		i++;
	if (i == numbers->n && i < ARRAY_LEN(numbers->of))
		numbers->of[numbers->n++] = key;
	return (unsigned)i;
}

static int add_links(const struct rdma_hosts *h, struct numbering *numbers, struct paths *paths,
		     const struct host_pair *p)
{
	const struct rdma_session *s = h->s;
	const struct link_list *own =
		&paths_pair(s->paths, rdma_place_of_port(s, p->own), rdma_place_of_gpu(s, -1))
			 ->links;
	const struct far_port *far = &h->far[p->far];
	struct link_list *all =
		&paths_pair(paths, (unsigned)p->own, (unsigned)(s->listing->n + p->far))->links;
	int r = 0;

	for (size_t i = 0; r == 0 && i < own->n; i++)
		r = link_list_add(all, number_of(numbers, false, own->ids[i]));
	for (size_t i = 0; r == 0 && i < far->link_n; i++)
		r = link_list_add(all, number_of(numbers, true, far->links[i]));
	return r;
}

static int plan_rails(struct rdma_hosts *h)
{
	size_t own_n = h->s->listing->n, n = 0;
	AUTO_FREE struct pair *pairs = xcalloc(own_n * h->far_n + 1, sizeof(*pairs));
	AUTO_FREE struct numbering *numbers = xcalloc(1, sizeof(*numbers));
	struct paths *paths = NULL;
	int r = paths_new((unsigned)(own_n + h->far_n), &paths);

	for (size_t i = 0; r == 0 && i < own_n * h->far_n; i++) {
		struct host_pair *p = &h->pairs[i];

		if (!p->rail)
			continue;
		expect(h, p);
		r = add_links(h, numbers, paths, p);
		pairs[n++] = (struct pair){(unsigned)p->own, (unsigned)(own_n + p->far)};
	}
	if (r == 0)
		r = rounds_plan(paths, pairs, n, &h->rounds);
	paths_free(paths);
	return r;
}

/* ---- which messages ---- */

/* Of the hosts' own memory, and of GPUs where both hosts have them for some pair. */
static void choose_kinds(struct rdma_hosts *h)
{
	unsigned ways = 0;

	for (size_t i = 0; i < h->s->listing->n * h->far_n; i++)
		if (h->pairs[i].rail)
			ways |= hosts_ways(h, h->pairs[i].own) & h->far[h->pairs[i].far].ways;
	for (int way = 0; way < REGION_WAY_N; way++)
		for (size_t k = 0; (ways >> way & 1) && k < h->s->size_n; k++)
			hosts_kind_at(h, (enum region_way)way, h->s->sizes[k]);
}

static bool has_way(const struct rdma_hosts *h, const struct host_pair *p, enum region_way way)
{
	return hosts_ways(h, p->own) & h->far[p->far].ways & 1u << way;
}

/* Round trips are answered by the CPU, in its own memory. */
static bool is_planned(const struct rdma_hosts *h, size_t kind, enum rdma_measure m)
{
	const struct hosts_kind *k = &h->kinds[kind];

	return h->s->measures >> m & 1 && !(rdma_is_round_trip(m) && !region_is_host(k->way));
}

static size_t count_planned(const struct rdma_hosts *h)
{
	size_t n = 0;

	for (size_t k = 0; k < h->kind_n; k++)
		for (int m = 0; m < RDMA_MEASURE_N; m++)
			n += is_planned(h, k, (enum rdma_measure)m);
	return n * h->rounds.round_n;
}

/*
 * What is planned can be between these two, where they still meet; round trips only where writes
 * arrive.
 */
static bool can_be(const struct rdma_hosts *h, const struct host_pair *p, size_t kind,
		   enum rdma_measure m)
{
	const struct rdma_cell *writes = rdma_hosts_cell(h, p, kind, RDMA_WRITE);
	enum region_way way = h->kinds[kind].way;

	if (!has_way(h, p, way) || p->cut & (1u << REGION_HOST | 1u << way))
		return false;
	return !rdma_is_round_trip(m) || !writes || writes->data != RDMA_DATA_WRONG;
}

static void run_round(struct client *c, size_t r, size_t kind, enum rdma_measure m)
{
	struct rdma_hosts *h = c->h;
	const struct round *round = &h->rounds.rounds[r];
	char size[BYTES_TEXT_SIZE];

	session_tell_left(h->s->ear, &h->s->pace, (double)c->left--, "%s, %s, %s, round %zu of %zu",
			  rdma_metric(m), region_way_word(h->kinds[kind].way),
			  bytes_text(rdma_bytes(h->kinds[kind].size, m), size), r + 1,
			  h->rounds.round_n);
	c->n = 0;
	for (size_t i = 0; i < round->pair_n && c->n < PORTS_MAX; i++) {
		struct host_pair *p = rdma_hosts_pair(h, round->pairs[i].initiator,
						      round->pairs[i].target - h->s->listing->n);

		if (!can_be(h, p, kind, m))
			continue;
		if (message_s(h, p, kind, m) > MESSAGE_S)
			hosts_make_cell(h, p, kind, (int)m)->too_slow = true;
		else
			add_turn(c, p, (int)m, kind);
	}
	run_turns(c);
}

static void run_rails(struct client *c)
{
	struct rdma_hosts *h = c->h;

	c->left = count_planned(h);
	for (size_t r = 0; r < h->rounds.round_n; r++)
		for (size_t k = 0; k < h->kind_n; k++)
			for (int m = 0; m < RDMA_MEASURE_N && !c->broken; m++)
				if (is_planned(h, k, (enum rdma_measure)m))
					run_round(c, r, k, (enum rdma_measure)m);
}

/* ---- all of it ---- */

static int greet(struct client *c)
{
	struct rdma_hosts *h = c->h;
	double deadline = clock_s() + HELLO_LIMIT_S + 1;
	bool first = true;
	int r = 0;

	hello_send(h);
	while (r == 0) {
		struct pollfd fds[] = {{h->peer.fd, peer_events(&h->peer), 0},
				       {h->s->devices.stop_fd, POLLIN, 0}};
		struct peer_message m;

		poll(fds, 2, 100);
		if (stop_signals_seen(h->s->devices.stop_fd))
			return err_set(EINTR, "stopped by a signal");
		r = peer_pump(&h->peer);
		while (r == 0) {
			r = peer_next(&h->peer, &m);
			if (r <= 0)
				break;
			r = hello_take(h, &m, first);
			first = false;
		}
		if (r == 0 && clock_s() > deadline)
			return err_set(ETIMEDOUT,
				       "%s does not answer like onehop bench rdma --listen",
				       h->peer.address);
	}
	return r < 0 ? r : 0;
}

static void say_reached(const struct rdma_hosts *h)
{
	struct hosts_counts n = rdma_hosts_count(h);

	session_tell(h->s->ear, SESSION_NOTE,
		     "%zu of %zu pairs of NICs reach each other; measuring %zu of them", n.reached,
		     n.tried, h->rounds.pair_n);
}

static void measure(struct client *c)
{
	struct rdma_hosts *h = c->h;
	double start = clock_s();

	h->queues = rdma_many_queues(h->s);
	h->depth = rdma_other_depth((unsigned)h->s->o->depth);
	rdma_log_open(&h->s->log);
	hosts_pair_up(h);
	hosts_keep(h);
	reach_all(c);
	h->reach_s = clock_s() - start;
	if (!c->broken) {
		choose_rails(h);
		if (plan_rails(h) == 0) {
			choose_kinds(h);
			say_reached(h);
			run_rails(c);
		}
	}
	h->whole = !c->broken;
	hosts_read_log(h);
	if (h->whole || h->s->stopped)
		peer_say(&h->peer, PEER_BYE, h->whole ? "" : "it was stopped by a signal");
	h->run_s = clock_s() - start;
}

static int call(struct client *c, const char *to)
{
	struct rdma_hosts *h = c->h;
	int r = peer_connect(to, &peer_onehop, CONNECT_US, &h->peer);

	if (r < 0)
		return r;
	snprintf(h->peer_address, sizeof(h->peer_address), "%s", h->peer.address);
	return greet(c);
}

/* Until a signal comes, or that long. */
static void pause_for(const struct rdma_hosts *h, int ms)
{
	struct pollfd stop = {h->s->devices.stop_fd, POLLIN, 0};

	poll(&stop, 1, ms);
}

int rdma_hosts_run(struct rdma_hosts *h, const char *to)
{
	struct client *c = xcalloc(1, sizeof(*c));
	/*
	 * Who only knocks, as scanners of ports do, keeps the listener busy for as long as a hello
	 * may take.
	 */
	double until = clock_s() + HELLO_LIMIT_S + 1;
	int r;

	c->h = h;
	while ((r = call(c, to)) == -EBUSY && clock_s() < until) {
		peer_close(&h->peer);
		pause_for(h, 300);
	}
	if (r == 0)
		measure(c);
	peer_close(&h->peer);
	free(c);
	return r;
}
