/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host that listens: owns memory, lets one peer at a time move data through its NICs, and
 * checks what came. It authenticates nobody, so it does only what the lines of rdma/peer_text.h
 * ask, within their limits: it starts no program and opens no file for a peer.
 */
#include "session/rdma_hosts_impl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "session/stop.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of a port, in each direction, unless one message a queue pair is more. */
#define WINDOW_MAX    (64ull << 20)
#define TURNED_MAX    8
#define TURNED_S      1.0
#define PEER_MAX_S    3600.0
#define MEASURE_MAX_S 120    /* of one measurement, in which a peer asks for nothing */
#define IDLE_S        20.0   /* without a request, besides the time of what needs none: */
#define SLOWEST       0.25e6 /* bytes a second at which a window is filled whose data is checked */
#define LATENCY_MOST  (PEER_MAX_S * 1e6)

/* What a port's worker does for the peer. */
struct service {
	bool busy, open;
	bool failed; /* it can only be closed */
	enum link_action action;
	enum region_way way;
	struct link_address peer; /* of the connection that is being opened */
};

/* A peer that was turned away: it may not have read why. */
struct turned {
	int fd;
	double until_s;
};

struct listen {
	struct rdma_hosts *h;
	struct service services[PORTS_MAX];
	struct turned turned[TURNED_MAX];
	double since_s; /* the peer's connection */
	double asked_s; /* its last request, or an answer to it */
	double busy_s;  /* how long it may measure, or move data to be checked, without a request */
	bool greeted, ready;
};

int rdma_hosts_listen(struct rdma_hosts *h, const char *at)
{
	h->listens = true;
	return peer_listen(at, &peer_onehop, &h->listener, h->listens_at);
}

/* ---- work ---- */

static struct peer_message about(enum peer_word w, size_t port)
{
	struct peer_message m = {.word = w};

	m.v[PEER_K_PORT] = port;
	return m;
}

static void say_failed(struct listen *l, size_t port, const struct rdma_failure *f)
{
	struct peer_message m = about(PEER_FAILED, port);

	m.v[PEER_K_STEP] = f->step;
	m.v[PEER_K_CODE] = (uint64_t)(f->code < 0 ? 0 : f->code);
	m.v[PEER_K_VENDOR] = f->vendor;
	snprintf(m.text, sizeof(m.text), "%.*s", (int)sizeof(m.text) - 1, f->text);
	peer_send(&l->h->peer, &m);
}

static void begin(struct listen *l, size_t port, const struct link_order *o)
{
	struct service *s = &l->services[port];

	s->action = o->action;
	s->busy = true;
	l->asked_s = clock_s();
	if (rdma_worker_begin_link(&l->h->workers[port], NULL, o) < 0) {
		struct rdma_failure f = {0};

		rdma_fail(&f, RDMA_STEP_WORKER, ESRCH, "%s", err_msg());
		s->busy = s->open = false;
		say_failed(l, port, &f);
	}
}

static int refuse(const struct listen *l, const char *why)
{
	return err_set(EPROTO, "%s %s", l->h->peer.address, why);
}

static const struct verbs_gid_entry *own_gid(const struct nic_port *p, uint64_t index)
{
	for (size_t i = 0; i < p->gid_n; i++)
		if (p->gids[i].gid_index == index)
			return &p->gids[i];
	return NULL;
}

static uint64_t window_max(enum region_way way, uint64_t bytes, unsigned queues)
{
	uint64_t most = region_is_host(way) ? WINDOW_MAX : HOSTS_GPU_WINDOW;

	return bytes * queues > most ? bytes * queues : most;
}

static int start_open(struct listen *l, size_t port, const struct peer_message *m)
{
	const struct nic_port *p = &l->h->s->listing->ports[port];
	const struct verbs_gid_entry *gid = own_gid(p, m->v[PEER_K_INDEX]);
	struct service *s = &l->services[port];
	uint64_t bytes = m->v[PEER_K_BYTES], places = m->v[PEER_K_PLACES];
	uint64_t latency_bytes = m->v[PEER_K_LATENCY];
	enum region_way way = (enum region_way)m->v[PEER_K_WAY];
	struct link_order o = {.action = LINK_OPEN};
	int r = take_queue(m, &s->peer);

	if (r < 0)
		return r;
	if (!gid || s->open || bytes < 2 || latency_bytes < 2 || latency_bytes > bytes * places ||
	    places % (s->peer.n / 2) || bytes * places % 16 ||
	    bytes * places > window_max(way, bytes, s->peer.n / 2) ||
	    !(hosts_ways(l->h, port) >> way & 1) || !m->v[PEER_K_DEPTH] || !m->v[PEER_K_LIMIT])
		return refuse(l, "asks for a connection that is not allowed");
	if (m->v[PEER_K_TIME] > MEASURE_MAX_S)
		return err_set(EPROTO,
			       "%s asks for measurements of %llu s, and this host serves at most "
			       "%d s each: use a smaller --time",
			       l->h->peer.address, (unsigned long long)m->v[PEER_K_TIME],
			       MEASURE_MAX_S);
	o.job = (struct link_job){
		.port = p->number,
		.gid = {.entry = *gid},
		.places = places,
		.relaxed = hosts_relax(l->h, (enum rdma_measure)m->v[PEER_K_MEASURE]),
		.load = {.bytes = bytes,
			 .latency_bytes = latency_bytes,
			 .depth = (unsigned)m->v[PEER_K_DEPTH],
			 .queues = s->peer.n / 2,
			 .limit_us = m->v[PEER_K_LIMIT] * 1000,
			 .pair = (unsigned)m->v[PEER_K_PAIR]},
		.owner_limit_us = HOSTS_OWNER_US,
	};
	s->way = way;
	l->h->queues = o.job.load.queues > 1 ? o.job.load.queues : 0;
	l->h->depth = rdma_other_depth(o.job.load.depth);
	memcpy(o.job.device, p->device, sizeof(o.job.device));
	hosts_take_way(l->h, port, way, &o.job);
	l->busy_s = 2 * (double)m->v[PEER_K_TIME] + (double)(bytes * places) / SLOWEST;
	begin(l, port, &o);
	return 0;
}

/* Requests, and what a worker does for them. */
static const struct {
	enum peer_word word;
	enum link_action action;
} requests[] = {
	{PEER_OPEN, LINK_OPEN}, {PEER_PREPARE, LINK_PREPARE}, {PEER_CHECK, LINK_CHECK},
	{PEER_PONG, LINK_PONG}, {PEER_CLOSE, LINK_CLOSE},
};

static int take_request(struct listen *l, const struct peer_message *m, enum link_action action)
{
	size_t port = m->v[PEER_K_PORT];
	struct link_order o = {.action = action,
			       .measure = (enum rdma_measure)m->v[PEER_K_MEASURE],
			       .round = m->v[PEER_K_ROUND]};
	struct service *s;

	if (!hosts_uses(l->h, port))
		return refuse(l, "asks for a port that does not exist");
	s = &l->services[port];
	if (s->busy)
		return refuse(l, "asks for two things of one port at once");
	if (action == LINK_OPEN)
		return start_open(l, port, m);
	if (action == LINK_CLOSE && !s->open) {
		struct peer_message done = about(PEER_DONE, port);

		peer_send(&l->h->peer, &done);
		return 0;
	}
	if (!s->open || (s->failed && action != LINK_CLOSE))
		return refuse(l, "asks for data of a port that is not open");
	if (action == LINK_PONG && (!region_is_host(s->way) || !rdma_is_round_trip(o.measure)))
		return refuse(l, "asks for answers to what has none");
	begin(l, port, &o);
	return 0;
}

/* ---- answers ---- */

static void say_opened(struct listen *l, size_t port)
{
	struct peer_message m = about(PEER_OPENED, port);

	l->services[port].open = true;
	put_queue(&m, &l->services[port].peer);
	peer_send(&l->h->peer, &m);
}

static void say_checked(struct listen *l, size_t port, const struct rdma_cell *c)
{
	struct peer_message m = about(PEER_CHECKED, port);

	m.v[PEER_K_DATA] = c->data;
	m.v[PEER_K_CHECKED] = c->checked_bytes;
	m.v[PEER_K_KIND] = c->wrong.kind;
	m.v[PEER_K_WORDS] = c->wrong.words;
	m.v[PEER_K_WRONG] = c->wrong.wrong_words;
	m.v[PEER_K_AT] = c->wrong.from_bytes;
	m.v[PEER_K_SHIFT] = (uint64_t)c->wrong.shift_bytes;
	m.v[PEER_K_AGO] = c->wrong.rounds_ago;
	peer_send(&l->h->peer, &m);
}

/* Memory and queue pairs are there: now to the other end, whose address came with the request. */
static void connect_it(struct listen *l, size_t port, const struct link_address *own)
{
	struct service *s = &l->services[port];
	struct link_order o = {.action = LINK_CONNECT, .peer = s->peer};

	s->peer = *own; /* for the answer */
	if (own->places < o.peer.places)
		o.peer.places = own->places;
	begin(l, port, &o);
}

static void take_answer(struct listen *l, size_t port, const struct link_answer *a)
{
	struct service *s = &l->services[port];
	struct peer_message done = about(PEER_DONE, port);
	bool wrong_data = a->failure.step == RDMA_STEP_DATA;

	s->busy = false;
	l->asked_s = clock_s();
	if (a->failure.step != RDMA_STEP_NONE && !wrong_data) {
		/* A worker that was killed has closed all. */
		s->open = s->failed = l->h->workers[port].pid > 0;
		say_failed(l, port, &a->failure);
	} else if (s->action == LINK_OPEN) {
		connect_it(l, port, &a->address);
	} else if (s->action == LINK_CONNECT) {
		say_opened(l, port);
	} else if (s->action == LINK_CHECK) {
		say_checked(l, port, &a->cell);
	} else {
		s->open = s->action != LINK_CLOSE;
		s->failed = false;
		peer_send(&l->h->peer, &done);
	}
}

static void take_answers(struct listen *l, const struct pollfd *fds, double now)
{
	for (size_t i = 0; i < l->h->s->listing->n; i++) {
		struct service *s = &l->services[i];
		struct link_answer a;

		if (!s->busy || (!fds[i].revents && now < l->h->workers[i].until_s))
			continue;
		if (!fds[i].revents)
			rdma_worker_give_up_link(&l->h->workers[i], &a);
		else if (!rdma_worker_finish_link(&l->h->workers[i], &a))
			continue;
		take_answer(l, i, &a);
	}
}

/* ---- the peer's results ---- */

static struct host_pair *pair_in(struct listen *l, const struct peer_message *m)
{
	size_t own = m->v[PEER_K_PORT], far = m->v[PEER_K_FROM];

	return hosts_uses(l->h, own) && rdma_hosts_far_is_used(l->h, far)
		       ? rdma_hosts_pair(l->h, own, far)
		       : NULL;
}

static void take_failure(const struct peer_message *m, struct rdma_failure *f)
{
	*f = (struct rdma_failure){.step = (enum rdma_step)m->v[PEER_K_STEP],
				   .code = (int)m->v[PEER_K_CODE]};
	snprintf(f->text, sizeof(f->text), "%s", m->text);
}

/*
 * Figures of this world: only a stranger sends others, and they would go into this host's report.
 */
static bool is_plausible(const struct peer_message *m)
{
	bool latency = rdma_is_latency((enum rdma_measure)m->v[PEER_K_MEASURE]);

	return m->v[PEER_K_LOW] <= m->v[PEER_K_MEDIAN] &&
	       m->v[PEER_K_MEDIAN] <= m->v[PEER_K_HIGH] &&
	       m->v[PEER_K_HIGH] <= put_value(latency ? LATENCY_MOST : RDMA_RATE_MOST) &&
	       m->v[PEER_K_EXPECTED] <= put_value(RDMA_RATE_MOST);
}

static int take_result(struct listen *l, const struct peer_message *m)
{
	struct host_pair *p = pair_in(l, m);
	struct rdma_cell *c;
	size_t kind;

	if (!p)
		return refuse(l, "reports a port that does not exist");
	if (m->word == PEER_REACHED) {
		take_failure(m, &p->failure);
		hosts_mark(&p->failure, REGION_HOST, false);
		p->reach = p->failure.step == RDMA_STEP_NONE ? REACH_YES : REACH_NO;
		return 0;
	}
	if (!is_plausible(m))
		return refuse(l, "reports figures that no NIC has");
	kind = hosts_kind_at(l->h, (enum region_way)m->v[PEER_K_WAY],
			     (struct rdma_size){m->v[PEER_K_BYTES], m->v[PEER_K_LATENCY]});
	if (kind == HOSTS_KINDS)
		return refuse(l, "reports too many sizes of messages");
	p->rail = true;
	c = hosts_make_cell(l->h, p, kind, (int)m->v[PEER_K_MEASURE]);
	c->done = true;
	c->data = (enum rdma_data)m->v[PEER_K_DATA];
	c->checked_bytes = m->v[PEER_K_CHECKED];
	take_failure(m, &c->failure);
	hosts_mark(&c->failure, (enum region_way)m->v[PEER_K_WAY], true);
	c->value = (struct summary){.n = m->v[PEER_K_SAMPLES],
				    .median = (double)m->v[PEER_K_MEDIAN] / 1e6,
				    .low = (double)m->v[PEER_K_LOW] / 1e6,
				    .high = (double)m->v[PEER_K_HIGH] / 1e6};
	if (m->v[PEER_K_MEASURE] == RDMA_WRITE)
		p->write_gbps = (double)m->v[PEER_K_EXPECTED] / 1e6;
	if (m->v[PEER_K_MEASURE] == RDMA_READ)
		p->read_gbps = (double)m->v[PEER_K_EXPECTED] / 1e6;
	return 0;
}

/* ---- the peer ---- */

static int take_hello(struct listen *l, const struct peer_message *m)
{
	int r = hello_take(l->h, m, !l->greeted);

	l->greeted = true;
	if (r <= 0)
		return r;
	l->ready = true;
	rdma_look_again(l->h->s);
	rdma_log_done(&l->h->s->log);
	rdma_log_open(&l->h->s->log);
	hosts_pair_up(l->h);
	hello_send(l->h);
	session_tell(l->h->s->ear, SESSION_NOTE, "%s (%s) measures", l->h->peer.address,
		     l->h->peer_name);
	return 0;
}

/* 1: it has said goodbye. */
static int take_line(struct listen *l, const struct peer_message *m)
{
	if (!l->ready)
		return take_hello(l, m);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (requests[i].word == m->word)
			return take_request(l, m, requests[i].action);
	if (m->word == PEER_REACHED || m->word == PEER_FIGURE)
		return take_result(l, m);
	if (m->word == PEER_BYE) {
		l->h->whole = !*m->text;
		snprintf(l->h->ended, sizeof(l->h->ended), "%s", m->text);
		return 1;
	}
	return m->word == PEER_ALIVE ? 0 : refuse(l, "sent an answer where nothing was asked");
}

static bool is_busy(const struct listen *l)
{
	for (size_t i = 0; i < l->h->s->listing->n; i++)
		if (l->services[i].busy)
			return true;
	return false;
}

/* 0, 1: the peer has left, or a negative errno with a sentence: it has to. */
static int serve_peer(struct listen *l, double now)
{
	struct peer_message m;
	int r = peer_pump(&l->h->peer);

	while (r == 0) {
		r = peer_next(&l->h->peer, &m);
		if (r <= 0)
			break;
		r = take_line(l, &m);
	}
	if (r == 0 && !l->ready && now - l->since_s > HELLO_LIMIT_S)
		return err_set(ETIMEDOUT, "%s said nothing that onehop says for %.0f s",
			       l->h->peer.address, HELLO_LIMIT_S);
	if (r == 0 && l->ready && !is_busy(l) && now - l->asked_s > IDLE_S + l->busy_s)
		return err_set(ETIMEDOUT, "%s has asked for nothing for %.0f s", l->h->peer.address,
			       IDLE_S + l->busy_s);
	if (r == 0 && now - l->since_s > PEER_MAX_S)
		return err_set(ETIMEDOUT, "%s has been served for an hour", l->h->peer.address);
	return r;
}

/* ---- connections ---- */

static void turn_away(struct listen *l, const char *why)
{
	struct turned *t = &l->turned[0];
	struct peer p;

	if (!peer_accept(l->h->listener, &p))
		return;
	peer_say(&p, PEER_BUSY, why);
	shutdown(p.fd, SHUT_WR);
	for (size_t i = 1; i < TURNED_MAX; i++)
		if (l->turned[i].until_s < t->until_s)
			t = &l->turned[i];
	if (t->until_s > 0)
		close(t->fd);
	*t = (struct turned){p.fd, clock_s() + TURNED_S};
	p.fd = -1;
	peer_close(&p);
}

static void forget_turned(struct listen *l, double now)
{
	for (size_t i = 0; i < TURNED_MAX; i++)
		if (l->turned[i].until_s > 0 && now >= l->turned[i].until_s) {
			close(l->turned[i].fd);
			l->turned[i] = (struct turned){0};
		}
}

static void let_in(struct listen *l, double now)
{
	struct rdma_hosts *h = l->h;
	char why[PEER_TEXT_MAX];

	if (h->peer.fd >= 0) {
		snprintf(why, sizeof(why),
			 "this host %s %s, for %.0f s now; it serves one peer at a time",
			 l->ready ? "already measures with" : "is already connected with",
			 h->peer.address, now - l->since_s);
		turn_away(l, why);
		return;
	}
	if (devices_lock(&h->s->devices) < 0) {
		turn_away(l, err_msg());
		return;
	}
	if (!peer_accept(h->listener, &h->peer))
		return;
	snprintf(h->peer_address, sizeof(h->peer_address), "%s", h->peer.address);
	l->since_s = l->asked_s = now;
	l->busy_s = 0;
	l->greeted = l->ready = false;
}

/* The peer is gone, or has to go: nothing of it stays. */
static void let_go(struct listen *l, int r)
{
	struct rdma_hosts *h = l->h;

	if (r < 0) {
		snprintf(h->ended, sizeof(h->ended), "%s", err_msg());
		peer_say(&h->peer, PEER_REFUSED, err_msg());
	}
	for (size_t i = 0; i < h->s->listing->n; i++) {
		struct link_answer a;

		if (l->services[i].busy)
			rdma_worker_give_up_link(&h->workers[i], &a);
		rdma_worker_end(&h->workers[i]);
	}
	memset(l->services, 0, sizeof(l->services));
	peer_close(&h->peer);
	devices_unlock(&h->s->devices);
}

/* ---- waiting ---- */

static int least(int a, int b)
{
	return a < b ? a : b;
}

static void await(struct listen *l, struct pollfd *fds)
{
	const struct rdma_hosts *h = l->h;
	size_t n = h->s->listing->n;
	double now = clock_s();
	int wait_ms = h->peer.fd >= 0 ? peer_due_ms(&h->peer) : 3600000;

	for (size_t i = 0; i < n; i++) {
		const struct service *s = &l->services[i];
		double left = (h->workers[i].until_s - now) * 1e3;

		fds[i] = (struct pollfd){s->busy ? h->workers[i].socket : -1, POLLIN, 0};
		if (s->busy)
			wait_ms = least(wait_ms, left > 0 ? (int)left + 1 : 0);
	}
	for (size_t i = 0; i < TURNED_MAX; i++)
		if (l->turned[i].until_s > 0)
			wait_ms = least(wait_ms, (int)(TURNED_S * 1e3));
	if (h->peer.fd >= 0 && !l->ready)
		wait_ms = least(wait_ms, 500);
	fds[n] = (struct pollfd){h->s->devices.stop_fd, POLLIN, 0};
	fds[n + 1] = (struct pollfd){h->listener, POLLIN, 0};
	fds[n + 2] = (struct pollfd){h->peer.fd, peer_events(&h->peer), 0};
	poll(fds, n + 3, wait_ms);
}

/* One peer. 0: a signal came; 1: it is done, and was a onehop; -1: it was none. */
static int serve_one(struct listen *l)
{
	struct pollfd fds[PORTS_MAX + 3];
	struct rdma_hosts *h = l->h;
	int r = 0;

	while (r == 0) {
		double now;

		await(l, fds);
		now = clock_s();
		h->s->stopped = stop_signals_seen(h->s->devices.stop_fd);
		if (h->s->stopped) {
			peer_say(&h->peer, PEER_BYE, "it was stopped by a signal");
			break;
		}
		forget_turned(l, now);
		take_answers(l, fds, now);
		if (fds[h->s->listing->n + 1].revents)
			let_in(l, now);
		if (h->peer.fd >= 0)
			r = serve_peer(l, now);
	}
	let_go(l, r);
	return h->s->stopped ? 0 : l->ready ? 1 : -1;
}

int rdma_hosts_serve(struct rdma_hosts *h)
{
	struct listen *l = xcalloc(1, sizeof(*l));
	double start = clock_s();
	int r;

	l->h = h;
	do {
		if (*h->ended)
			session_tell(h->s->ear, SESSION_NOTE, "%s", h->ended);
		hosts_reset(h);
		r = serve_one(l);
	} while (r < 0);
	h->run_s = clock_s() - (l->since_s > 0 ? l->since_s : start);
	hosts_keep(h);
	hosts_read_log(h);
	r = r || l->ready;
	forget_turned(l, clock_s() + 2 * TURNED_S);
	free(l);
	return r;
}
