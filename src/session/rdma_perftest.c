/* SPDX-License-Identifier: Apache-2.0 */
#include "session/rdma_perftest.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "device/message.h"
#include "rdma/end.h"
#include "result/figures.h"
#include "session/rdma_session_impl.h"
#include "session/stop.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_US  3000000
#define ANSWER_S    8.0   /* perftest sleeps 1 s, and allocates */
#define SERVED_S    120.0 /* a client measures for no longer, unless --time says so */
#define NO_CLIENT_S 3600.0
#define OWNER_US    5000000
#define LIMIT_US    3000000 /* without a completion */
#define SAMPLE_US   20000
#define TRIPS       1000 /* perftest's -n */
#define TRIP_BYTES  2    /* perftest's -s of latencies */
#define SERVED_MOST (8ull << 20)
#define PLACES      16
#define MIB         1048576.0

static const struct peer_service perftest_server = {
	PERFTEST_TCP_PORT,
	"ib_write_bw or the like",
};

const char *rdma_perftest_tool(enum rdma_measure m)
{
	static const char *const tools[RDMA_MEASURE_N] = {
		[RDMA_WRITE] = "ib_write_bw",
		[RDMA_READ] = "ib_read_bw",
		[RDMA_LATENCY_WRITE] = "ib_write_lat",
		[RDMA_LATENCY_SEND] = "ib_send_lat",
	};

	return tools[m];
}

/* ---- what to do, and where ---- */

/* --only as it was given; one of its tools. */
static int choose_measure(const struct rdma_session *s, enum rdma_measure *ret)
{
	static const struct {
		const char *only;
		enum rdma_measure measure;
	} rows[] = {{"write", RDMA_WRITE},
		    {"read", RDMA_READ},
		    {"latency", RDMA_LATENCY_WRITE},
		    {"send", RDMA_LATENCY_SEND}};
	const char *only = s->o->only ? s->o->only : "write";

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].only, only) == 0) {
			*ret = rows[i].measure;
			return 0;
		}
	return err_set(EINVAL,
		       "--as perftest measures one thing: --only write (ib_write_bw, the default), "
		       "read (ib_read_bw), latency (ib_write_lat) or send (ib_send_lat)");
}

static int choose_port(const struct rdma_session *s, size_t *ret)
{
	for (size_t i = 0; i < s->listing->n; i++)
		if (s->skips[i].step == RDMA_STEP_NONE) {
			*ret = i;
			return 0;
		}
	return err_set(ENODEV, "no port can be used: %s",
		       s->listing->n ? s->skips[0].text : "there is no NIC");
}

static void expect(struct rdma_perftest *p)
{
	for (size_t i = 0; i < p->s->pair_n; i++) {
		const struct rdma_pair *own = &p->s->pairs[i];

		if (own->port != p->port || own->gpu >= 0)
			continue;
		p->write_gbps = own->write_gbps;
		p->read_gbps = own->read_gbps;
		snprintf(p->limit, sizeof(p->limit), "%s", own->limit);
	}
}

int rdma_perftest_begin(struct rdma_perftest *p, struct rdma_session *s)
{
	int r;

	*p = (struct rdma_perftest){.s = s,
				    .listener = -1,
				    .peer = PEER_NONE,
				    .worker = RDMA_WORKER_NONE};
	r = choose_measure(s, &p->measure);
	if (r == 0)
		r = choose_port(s, &p->port);
	if (r == 0)
		expect(p);
	return r;
}

static bool has_gid(const struct rdma_perftest *p)
{
	return p->s->listing->ports[p->port].link_layer != VERBS_LINK_INFINIBAND;
}

static bool is_write_latency(const struct rdma_perftest *p)
{
	return p->measure == RDMA_LATENCY_WRITE;
}

static struct rdma_load load_of(const struct rdma_perftest *p)
{
	const struct rdma_session *s = p->s;
	bool latency = rdma_is_latency(p->measure);
	double sample = s->stopping.budget_s * 1e6 / STOPPING_MIN_SAMPLES;
	uint64_t bytes = s->o->size || !latency ? s->sizes[0].of_rates : TRIP_BYTES;
	int most = p->serves && !latency ? 1 : RDMA_DEPTH;

	return (struct rdma_load){
		/* A client before 6.28 does not say how large its messages are. */
		.bytes = p->serves        ? SERVED_MOST
			 : bytes < PLACES ? PLACES
					  : bytes,
		.latency_bytes = bytes,
		.depth = s->o->depth ? (unsigned)s->o->depth : (unsigned)most,
		.queues = 1,
		.stopping = s->stopping,
		.sample_us = sample < SAMPLE_US ? sample : SAMPLE_US,
		.limit_us = LIMIT_US,
		.like_perftest = true,
		/* The server of ib_write_lat begins, and the client of ib_send_lat. */
		.answers = latency && is_write_latency(p) != p->serves,
		.trips = !latency           ? 0
			 : s->o->iterations ? (unsigned)s->o->iterations
					    : TRIPS,
	};
}

static void make_job(struct rdma_perftest *p)
{
	const struct nic_port *port = &p->s->listing->ports[p->port];

	p->job = (struct link_job){
		.port = port->number,
		.gid = port->gid,
		.relaxed = !p->s->o->no_relaxed && !rdma_is_latency(p->measure),
		.load = load_of(p),
		.owner_limit_us = OWNER_US,
		.places = p->serves ? 1 : PLACES,
	};
	if (!p->serves && !rdma_is_latency(p->measure))
		p->job.load.bytes = p->s->sizes[0].of_rates;
	memcpy(p->job.device, port->device, sizeof(p->job.device));
}

/* ---- bytes ---- */

static int stopped(struct rdma_perftest *p)
{
	p->s->stopped = true;
	return err_set(EINTR, "stopped by a signal");
}

static int closed(const struct rdma_perftest *p)
{
	return err_set(ECONNRESET, "%s closed the connection", p->address);
}

/* Until fd is ready, a signal (-EINTR with a sentence), or then (-ETIMEDOUT without one). */
static int await(struct rdma_perftest *p, int fd, short events, double until_s)
{
	for (;;) {
		struct pollfd fds[] = {{fd, events, 0}, {p->s->devices.stop_fd, POLLIN, 0}};
		double left = until_s - clock_s();

		if (left <= 0)
			return -ETIMEDOUT;
		poll(fds, 2, (int)(left * 1e3) + 1);
		if (stop_signals_seen(p->s->devices.stop_fd))
			return stopped(p);
		if (fds[0].revents)
			return 0;
	}
}

static int send_all(struct rdma_perftest *p, const void *from, size_t n)
{
	double until_s = clock_s() + ANSWER_S;
	const char *at = from;

	while (n) {
		ssize_t k = send(p->peer.fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno == EAGAIN) {
			int r = await(p, p->peer.fd, POLLOUT, until_s);

			if (r < 0)
				return r == -ETIMEDOUT
					       ? err_set(ETIMEDOUT, "%s takes no data", p->address)
					       : r;
		} else if (k < 0) {
			return closed(p);
		} else {
			at += k;
			n -= (size_t)k;
		}
	}
	return 0;
}

static int late(const struct rdma_perftest *p, size_t got, size_t n, double limit_s)
{
	if (got)
		return err_set(ETIMEDOUT, "%s has sent %zu of %zu bytes in %.3g s", p->address, got,
			       n, limit_s);
	return err_set(ETIMEDOUT, "%s has said nothing for %.3g s", p->address, limit_s);
}

/* All of it within the limit: who sends a byte now and then is late too. */
static int receive_all(struct rdma_perftest *p, void *to, size_t n, double limit_s)
{
	double until_s = clock_s() + limit_s;
	char *at = to;
	size_t got = 0;

	while (got < n) {
		int r = await(p, p->peer.fd, POLLIN, until_s);
		ssize_t k = r < 0 ? 0 : recv(p->peer.fd, at + got, n - got, MSG_DONTWAIT);

		if (r < 0)
			return r == -ETIMEDOUT ? late(p, got, n, limit_s) : r;
		if (k < 0 && errno == EAGAIN)
			continue;
		if (k <= 0)
			return closed(p);
		got += (size_t)k;
	}
	return 0;
}

/* The client sends first. */
static int exchange(struct rdma_perftest *p, const void *out, void *in, size_t n, double limit_s)
{
	int r = p->serves ? 0 : send_all(p, out, n);

	if (r == 0)
		r = receive_all(p, in, n, limit_s);
	return r == 0 && p->serves ? send_all(p, out, n) : r;
}

/* ---- words ---- */

/* Its hello, or what its listener answers to perftest's. */
static bool is_onehop(const char in[static PERFTEST_HELLO])
{
	static const char *const begins[] = {"onehop-rdma", "refused text=", "busy text="};

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (memcmp(in, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static int exchange_hellos(struct rdma_perftest *p)
{
	char out[PERFTEST_HELLO], in[PERFTEST_HELLO];
	int r;

	perftest_put_hello(out);
	r = exchange(p, out, in, sizeof(in), ANSWER_S);
	if (r < 0)
		return r;
	if (!peer_is_perftest(in, sizeof(in), p->release))
		return err_set(EPROTO, "%s is not perftest%s", p->address,
			       is_onehop(in) ? ", but onehop: leave out --as perftest" : "");
	if (!perftest_is_spoken(p->release))
		return err_set(EPROTO,
			       "%s runs perftest %s; --as perftest needs 5.70 or newer there",
			       p->address, p->release);
	return 0;
}

/* Both take the smaller MTU. */
static int exchange_settings(struct rdma_perftest *p)
{
	uint8_t sizes[PERFTEST_SIZES_BYTES], far_sizes[PERFTEST_SIZES_BYTES];
	char mtu[PERFTEST_MTU_BYTES], far_mtu[PERFTEST_MTU_BYTES];
	int r;

	perftest_put_sizes(sizes);
	perftest_put_mtu(p->s->listing->ports[p->port].mtu, mtu);
	r = exchange(p, sizes, far_sizes, sizeof(sizes) / 2, ANSWER_S);
	if (r == 0)
		r = exchange(p, sizes + sizeof(sizes) / 2, far_sizes, sizeof(sizes) / 2, ANSWER_S);
	if (r == 0)
		r = exchange(p, mtu, far_mtu, sizeof(mtu), ANSWER_S);
	return r == 0 ? perftest_take_mtu(far_mtu, &p->far.queue.mtu) : r;
}

/* The keys of the queue pairs, which are also the barrier of every step. */
static int exchange_keys(struct rdma_perftest *p, double limit_s)
{
	const struct queue_address *q = &p->own.queue;
	const struct perftest_keys own = {
		.lid = q->lid,
		.reads_max = q->reads_max,
		.number = p->own.numbers[0],
		.packet = q->packet,
		.key = p->own.in.key,
		.at = p->own.in.at,
		.gid = q->gid,
	};
	struct perftest_keys far = {0};
	char out[PERFTEST_KEYS_BYTES], in[PERFTEST_KEYS_BYTES];
	int r;

	perftest_put_keys(&own, has_gid(p), out);
	r = exchange(p, out, in, perftest_keys_bytes(has_gid(p)), limit_s);
	if (r == 0)
		r = perftest_take_keys(in, has_gid(p), &far);
	if (r < 0)
		return r;
	p->far.queue.lid = far.lid;
	p->far.queue.reads_max = far.reads_max;
	p->far.queue.packet = far.packet;
	p->far.queue.gid = far.gid;
	p->far.numbers[0] = far.number;
	p->far.n = 1;
	p->far.in = p->far.out = (struct place){far.at, far.key};
	p->far.places = p->job.places;
	return 0;
}

static struct perftest_report report_of(const struct rdma_perftest *p)
{
	const struct rdma_cell *c = &p->cell;

	return (struct perftest_report){
		.bytes = p->job.load.bytes,
		.messages = c->messages,
		.peak_mib = c->value.max * 1e9 / MIB,
		.average_mib = c->value.median * 1e9 / MIB,
		.rate_mpps = c->value.median * 1e3 / (double)p->job.load.bytes,
	};
}

static int exchange_reports(struct rdma_perftest *p)
{
	uint8_t out[PERFTEST_REPORT_BYTES], in[PERFTEST_REPORT_BYTES];
	const struct perftest_report own = report_of(p);
	int r = 0;

	perftest_put_report(&own, out);
	for (size_t i = 0; r == 0 && i < sizeof(out); i += PERFTEST_REPORT_PART)
		r = exchange(p, out + i, in + i, PERFTEST_REPORT_PART, ANSWER_S);
	if (r < 0 || !p->serves)
		return r;
	r = perftest_take_report(in, &p->reported);
	p->has_report = r == 0;
	return r;
}

/* ---- work ---- */

/*
 * An action of the worker. 0, or a negative errno with a sentence; what a step failed with is in
 * the cell.
 */
static int act(struct rdma_perftest *p, enum link_action action, struct link_answer *ret)
{
	const struct link_order o = {.action = action,
				     .job = p->job,
				     .peer = p->far,
				     .measure = p->measure};
	int r = rdma_worker_begin_link(&p->worker, NULL, &o);

	if (r < 0)
		return r;
	do
		r = await(p, p->worker.socket, POLLIN, p->worker.until_s);
	while (r == 0 && !rdma_worker_finish_link(&p->worker, ret));
	if (r == -EINTR)
		return r;
	if (r < 0)
		rdma_worker_give_up_link(&p->worker, ret);
	p->cell.failure = ret->failure;
	return ret->failure.step == RDMA_STEP_NONE ? 0 : err_set(EIO, "%s", ret->failure.text);
}

/* Addresses of two families never meet. */
static int check_families(struct rdma_perftest *p)
{
	char own[GID_TEXT], far[GID_TEXT];

	if (!has_gid(p) || (gid_family(&p->own.queue.gid) == GID_FAMILY_IPV4) ==
				   (gid_family(&p->far.queue.gid) == GID_FAMILY_IPV4))
		return 0;
	gid_text(&p->own.queue.gid, own);
	gid_text(&p->far.queue.gid, far);
	return err_set(
		EPROTO,
		"this host uses address %s, perftest %s: start perftest with -x and the index of an address of the same kind",
		own, far);
}

/* The client says no more until it has measured. */
static int await_client(struct rdma_perftest *p)
{
	double limit_s = p->s->o->time ? p->s->stopping.budget_s : SERVED_S;
	int r = exchange_keys(p, limit_s);

	return r == -ETIMEDOUT
		       ? err_set(ETIMEDOUT,
				 "%s has reported no figures for %.3g s: it hangs, or measures for "
				 "longer than --time allows",
				 p->address, limit_s)
		       : r;
}

static int measure(struct rdma_perftest *p)
{
	struct link_answer a = {0};
	bool latency = rdma_is_latency(p->measure);
	int r = 0;

	/* Both ends of a latency measure. */
	if (!p->serves || latency) {
		r = act(p, LINK_TIME, &a);
		if (r == 0)
			p->cell = a.cell;
		p->cell.done = true;
	}
	if (r < 0 || latency) /* whose programs report nothing to each other */
		return r;
	r = p->serves ? await_client(p) : exchange_keys(p, ANSWER_S);
	return r == 0 ? exchange_reports(p) : r;
}

static int close_it(struct rdma_perftest *p)
{
	static const char done[] = "done";
	/* ib_write_lat ends without a word. */
	int r = is_write_latency(p) ? 0 : exchange_keys(p, ANSWER_S);

	/* The other end may have closed already: later releases send nothing more. */
	if (r == 0 && !is_write_latency(p))
		send(p->peer.fd, done, sizeof(done), MSG_NOSIGNAL | MSG_DONTWAIT);
	return r;
}

/* After the hellos. */
static int talk(struct rdma_perftest *p)
{
	struct link_answer a = {0};
	int r = exchange_settings(p);

	if (r == 0)
		r = act(p, LINK_OPEN, &a);
	p->own = a.address;
	/* Latencies have one exchange more. */
	for (int i = 0; r == 0 && i < 1 + rdma_is_latency(p->measure); i++)
		r = exchange_keys(p, ANSWER_S);
	if (r == 0)
		r = check_families(p);
	if (r == 0)
		r = act(p, LINK_CONNECT, &a);
	for (int i = 0; r == 0 && i < 2; i++)
		r = exchange_keys(p, ANSWER_S);
	if (r == 0)
		r = measure(p);
	return r == 0 ? close_it(p) : r;
}

/* A host that is switched off says no more: the kernel asks. */
static void watch(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{SOL_SOCKET, SO_KEEPALIVE, 1},  {IPPROTO_TCP, TCP_NODELAY, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 2}, {IPPROTO_TCP, TCP_KEEPINTVL, 1},
		{IPPROTO_TCP, TCP_KEEPCNT, 3},
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			   sizeof(options[i].value));
}

/* ---- figures ---- */

double rdma_perftest_expected(const struct rdma_perftest *p)
{
	return p->measure == RDMA_WRITE  ? p->write_gbps
	       : p->measure == RDMA_READ ? p->read_gbps
					 : 0;
}

static void keep(struct rdma_perftest *p)
{
	const struct summary *v = &p->cell.value;
	char name[PORT_NAME];
	struct figure *row;

	figures_free(p->figures);
	p->figures = figures_new("", "onehop bench rdma");
	if (!v->n)
		return;
	row = figures_add(p->figures, rdma_metric(p->measure), -1, -1, v->median);
	port_name(&p->s->listing->ports[p->port], name);
	row->nic = arena_strdup(p->figures->arena, name);
	row->peer = arena_printf(p->figures->arena, "%s:perftest-%s", p->address, p->release);
	row->memory = region_way_word(REGION_HOST);
	row->bytes = rdma_is_latency(p->measure) ? p->job.load.latency_bytes : p->job.load.bytes;
	row->depth = rdma_is_latency(p->measure) ? 0 : rdma_other_depth(p->job.load.depth);
	row->low = summary_low(v);
	row->high = summary_high(v);
	row->samples = (unsigned)v->n;
	row->expected = rdma_perftest_expected(p);
}

/* ---- all of it ---- */

/* The hellos. 0, or a negative errno with a sentence: it is not perftest, or an old one. */
static int greet(struct rdma_perftest *p)
{
	snprintf(p->address, sizeof(p->address), "%s", p->peer.address);
	*p->release = '\0';
	watch(p->peer.fd);
	return exchange_hellos(p);
}

/* What comes after them, and what is left of it; r: what they came to. */
static void run_one(struct rdma_perftest *p, int r)
{
	make_job(p);
	if (r == 0)
		r = talk(p);
	p->whole = r == 0;
	if (r < 0 && r != -EINTR && p->cell.failure.step == RDMA_STEP_NONE)
		snprintf(p->ended, sizeof(p->ended), "%s", err_msg());
	rdma_worker_end(&p->worker);
	peer_close(&p->peer);
	keep(p);
}

int rdma_perftest_run(struct rdma_perftest *p, const char *to)
{
	int r = peer_connect(to, &perftest_server, CONNECT_US, &p->peer);

	if (r == 0)
		run_one(p, greet(p));
	return r;
}

int rdma_perftest_listen(struct rdma_perftest *p, const char *at)
{
	p->serves = true;
	return peer_listen(at, &perftest_server, &p->listener, p->listens_at);
}

/* The next client. 0, or -EINTR. */
static int accept_client(struct rdma_perftest *p)
{
	int r;

	do
		r = await(p, p->listener, POLLIN, clock_s() + NO_CLIENT_S);
	while (r == -ETIMEDOUT || (r == 0 && !peer_accept(p->listener, &p->peer)));
	return r;
}

int rdma_perftest_serve(struct rdma_perftest *p)
{
	int r = accept_client(p);

	while (r == 0 && (r = greet(p)) < 0) {
		peer_close(&p->peer);
		if (r == -EINTR)
			break;
		session_tell(p->s->ear, SESSION_NOTE, "%s; still listening", err_msg());
		r = accept_client(p);
	}
	if (r == 0)
		run_one(p, 0);
	return r == 0;
}

void rdma_perftest_done(struct rdma_perftest *p)
{
	rdma_worker_end(&p->worker);
	peer_close(&p->peer);
	if (p->listener >= 0)
		close(p->listener);
	figures_free(p->figures);
}
