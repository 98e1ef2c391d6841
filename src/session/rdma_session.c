/* SPDX-License-Identifier: Apache-2.0 */
#include "session/rdma_session_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "result/figures.h"
#include "session/paths_of.h"
#include "session/stop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define GPU_WINDOW   (256ull << 20) /* more than any GPU's cache holds */
#define HOST_WINDOW  (64ull << 20)
#define SMALL_WINDOW (4ull << 20) /* of simulated devices */
#define SAMPLE_US    20000
#define LIMIT_US     5000000 /* without a completion; retries of the NIC end sooner */
#define GPU_LIMIT_US 7000000 /* less than PULSE_QUIET_S, so that it is named */

int rdma_session_begin(struct rdma_session *s, const struct rdma_request *o,
		       const struct session_ear *ear)
{
	int r;

	*s = (struct rdma_session){.o = o, .ear = ear, .devices = DEVICES_NONE};
	s->listing = xcalloc(1, sizeof(*s->listing));
	r = rdma_choose_work(s);
	if (r == 0)
		r = session_begin(&o->devices, o->from, MACHINE_RDMA, &s->devices);
	if (o->listen)
		devices_unlock(&s->devices);
	return r;
}

/* ---- looking ---- */

static int no_library(const struct rdma_failure *f)
{
	const struct rdma_cause *c = rdma_cause_of(f);

	return c ? err_set(ENOENT, "%s (%s); %s", c->cause, f->text, c->remedy)
		 : err_set(ENOENT, "%s", f->text);
}

static int list_ports(struct rdma_session *s)
{
	struct rdma_worker w = RDMA_WORKER_NONE;
	double start = clock_s();
	int r = rdma_worker_list(&w, NULL, s->listing);

	rdma_worker_end(&w);
	s->list_s = clock_s() - start;
	s->skips = xcalloc(s->listing->n + 1, sizeof(*s->skips));
	if (r < 0)
		return r;
	return s->listing->failure.step == RDMA_STEP_NONE ? 0 : no_library(&s->listing->failure);
}

static const struct nic_port *port_in(const struct port_listing *l, const struct nic_port *like)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->ports[i].number == like->number &&
		    strcmp(l->ports[i].device, like->device) == 0)
			return &l->ports[i];
	return NULL;
}

static struct nic_port gone(const struct nic_port *p)
{
	struct nic_port ret = {.number = p->number, .takes_dmabuf = -1};

	memcpy(ret.device, p->device, sizeof(ret.device));
	rdma_fail(&ret.failure, RDMA_STEP_OPEN, ENODEV, "%s is no longer there", p->device);
	return ret;
}

void rdma_look_again(struct rdma_session *s)
{
	AUTO_FREE struct port_listing *now = xcalloc(1, sizeof(*now));
	struct rdma_worker w = RDMA_WORKER_NONE;
	int r = rdma_worker_list(&w, NULL, now);

	rdma_worker_end(&w);
	if (r < 0 || now->failure.step != RDMA_STEP_NONE)
		return; /* what was known is still the best */
	for (size_t i = 0; i < s->listing->n; i++) {
		struct nic_port *p = &s->listing->ports[i];
		const struct nic_port *new = port_in(now, p);

		*p = new ? *new : gone(p);
	}
	rdma_force_gid(s); /* where no port has it any more, each says so itself */
	for (size_t i = 0; i < s->listing->n; i++)
		rdma_judge_port(s, i);
}

/* Traffic between host and GPU through a NIC also uses the NIC's path to the host. */
static int add_host_links(struct rdma_session *s, unsigned nic, unsigned other)
{
	const struct host_path *h = &s->paths->hosts[nic];
	struct link_list *links = &paths_pair(s->paths, nic, other)->links;
	const struct link_list *more[] = {&h->to_host, &h->from_host,
					  &paths_pair(s->paths, other, nic)->links};
	int r = 0;

	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; r == 0 && i < more[k]->n; i++)
			r = link_list_add(links, more[k]->ids[i]);
	return r;
}

static int find_paths(struct rdma_session *s)
{
	size_t gpus = s->devices.request.n, n = gpus + s->listing->n + 1;
	AUTO_FREE size_t *endpoints = xcalloc(n, sizeof(*endpoints));
	int r;

	if (!s->devices.topology)
		return paths_new((unsigned)n, &s->paths);
	for (size_t k = 0; k < gpus; k++)
		endpoints[k] = (size_t)s->devices.request.number[k];
	for (size_t i = 0; i < s->listing->n; i++)
		endpoints[gpus + i] = rdma_endpoint(s, i);
	endpoints[n - 1] = PATHS_NOWHERE;
	r = paths_of(s->devices.topology, endpoints, n, &s->paths);
	for (unsigned i = (unsigned)gpus; r == 0 && i < n - 1; i++)
		for (unsigned k = 0; r == 0 && k < n; k++)
			if (k < gpus || k == n - 1)
				r = add_host_links(s, i, k);
	return r;
}

/* Ports of one NIC share its slot, which the topology may not know. */
static int share_nics(struct rdma_session *s)
{
	int r = 0;

	for (size_t i = 0; i < s->pair_n && r == 0; i++) {
		unsigned port = rdma_place_of_port(s, s->pairs[i].port);
		size_t first = 0;

		while (strcmp(s->listing->ports[first].device,
			      s->listing->ports[s->pairs[i].port].device) != 0)
			first++;
		r = link_list_add(
			&paths_pair(s->paths, port, rdma_place_of_gpu(s, s->pairs[i].gpu))->links,
			(unsigned)(PATHS_LINKS_MAX - 1 - first));
	}
	return r;
}

static int plan_rounds(struct rdma_session *s)
{
	AUTO_FREE struct pair *pairs = xcalloc(s->pair_n + 1, sizeof(*pairs));
	int r = share_nics(s);

	for (size_t i = 0; i < s->pair_n; i++)
		pairs[i] = (struct pair){rdma_place_of_port(s, s->pairs[i].port),
					 rdma_place_of_gpu(s, s->pairs[i].gpu)};
	return r < 0 ? r : rounds_plan(s->paths, pairs, s->pair_n, &s->rounds);
}

int rdma_session_look(struct rdma_session *s)
{
	int r = list_ports(s);

	if (r == 0)
		r = rdma_force_gid(s);
	if (r == 0)
		r = find_paths(s);
	if (r == 0)
		r = rdma_choose_pairs(s);
	return r < 0 ? r : plan_rounds(s);
}

/* ---- running ---- */

/* A pair of a round, and which of its runs is at work. */
struct turn {
	struct rdma_pair *pair;
	struct rdma_worker *worker;
	size_t next; /* of its runs */
	bool busy;
};

static struct rdma_pair *pair_of(struct rdma_session *s, const struct pair *p)
{
	for (size_t i = 0; i < s->pair_n; i++)
		if (rdma_place_of_port(s, s->pairs[i].port) == p->initiator &&
		    rdma_place_of_gpu(s, s->pairs[i].gpu) == p->target)
			return &s->pairs[i];
	return NULL;
}

static uint64_t window_of(const struct rdma_session *s, const struct rdma_pair *p)
{
	uint64_t window = devices_are_simulated(&s->devices) ? SMALL_WINDOW
			  : p->gpu < 0                       ? HOST_WINDOW
							     : GPU_WINDOW;

	return s->devices.memory_bytes && s->devices.memory_bytes / 2 < window
		       ? s->devices.memory_bytes / 2
		       : window;
}

void rdma_request_gpu(const struct rdma_session *s, int gpu, struct device_request *ret)
{
	ret->kind = s->devices.request.kind;
	ret->n = 1;
	ret->ordinal[0] = s->devices.request.ordinal[gpu];
	ret->number[0] = s->devices.request.number[gpu];
	ret->host = s->devices.request.host;
}

static struct loopback_job *job_of(const struct rdma_session *s, const struct rdma_pair *p,
				   const struct rdma_run *r)
{
	const struct nic_port *port = &s->listing->ports[p->port];
	struct loopback_job *j = xcalloc(1, sizeof(*j));

	*j = (struct loopback_job){
		.port = port->number,
		.gid = port->gid,
		.way = r->way,
		.measures = s->measures,
		.relaxed = !s->o->no_relaxed,
		.window = window_of(s, p),
		.load = {.bytes = r->size.of_rates,
			 .latency_bytes = r->size.of_latencies,
			 .verify = !s->o->no_verify,
			 .depth = s->o->depth ? (unsigned)s->o->depth : RDMA_DEPTH,
			 .queues = s->o->queues ? (unsigned)s->o->queues : 1,
			 .stopping = s->stopping,
			 .sample_us = SAMPLE_US,
			 .limit_us = LIMIT_US,
			 .pair = (unsigned)(p - s->pairs)},
		.gpu_limit_us = GPU_LIMIT_US,
	};
	memcpy(j->device, port->device, sizeof(j->device));
	if (s->stopping.budget_s * 1e6 / STOPPING_MIN_SAMPLES < SAMPLE_US)
		j->load.sample_us = s->stopping.budget_s * 1e6 / STOPPING_MIN_SAMPLES;
	if (p->gpu >= 0)
		rdma_request_gpu(s, p->gpu, &j->gpu);
	return j;
}

/* CUDA's numbering is a guess until the GPU is open. */
static void check_gpu(const struct rdma_session *s, const struct rdma_pair *p,
		      struct loopback_result *r)
{
	if (p->gpu < 0 || r->gpu_ordinal < 0 || devices_are_simulated(&s->devices))
		return;
	if (devices_check(&s->devices, (size_t)p->gpu, r->gpu_ordinal, r->gpu_pci) < 0) {
		*r = (struct loopback_result){0};
		rdma_fail(&r->failure, RDMA_STEP_GPU, ENXIO, "%s", err_msg());
	}
}

/* Begins the next of the pair's runs that can be; false: there is none. */
static bool begin_next(struct rdma_session *s, struct turn *t)
{
	for (; t->next < t->pair->run_n; t->next++) {
		struct rdma_run *r = &t->pair->runs[t->next];
		AUTO_FREE struct loopback_job *job = NULL;

		if (r->foresight == RDMA_CANNOT && !s->o->ways)
			continue;
		job = job_of(s, t->pair, r);
		r->ran = true;
		if (rdma_worker_begin(t->worker, NULL, job) == 0) {
			t->busy = true;
			return true;
		}
		rdma_fail(&r->result.failure, RDMA_STEP_WORKER, ESRCH, "%s", err_msg());
	}
	return false;
}

static void tell(struct rdma_session *s, size_t round)
{
	const struct round *r = &s->rounds.rounds[round];

	session_tell_left(s->ear, &s->pace, (double)(s->rounds.round_n - round),
			  "round %zu of %zu, %zu %s", round + 1, s->rounds.round_n, r->pair_n,
			  text_plural(r->pair_n, "pair", "pairs"));
}

static void end_turn(struct rdma_session *s, struct turn *t, bool late)
{
	struct rdma_run *r = &t->pair->runs[t->next];

	if (late)
		rdma_worker_give_up(t->worker, &r->result);
	else if (!rdma_worker_finish(t->worker, &r->result))
		return;
	check_gpu(s, t->pair, &r->result);
	t->busy = false;
	t->next++;
	begin_next(s, t);
}

/* Ends the workers that run; their measurements count as not run. */
static void stop_turns(struct turn *turns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (turns[i].busy) {
			struct rdma_run *r = &turns[i].pair->runs[turns[i].next];

			rdma_worker_give_up(turns[i].worker, &r->result);
			r->ran = false;
			turns[i].busy = false;
		}
}

/* Waits for one answer or deadline. False: no worker runs. */
static bool await(struct rdma_session *s, struct turn *turns, size_t n)
{
	struct pollfd fds[PORTS_MAX + 1] = {0};
	double now = clock_s(), first = now + 3600;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){turns[i].busy ? turns[i].worker->socket : -1, POLLIN, 0};
		any = any || turns[i].busy;
		if (turns[i].busy && turns[i].worker->until_s < first)
			first = turns[i].worker->until_s;
	}
	fds[n] = (struct pollfd){s->devices.stop_fd, POLLIN, 0};
	if (!any)
		return false;
	poll(fds, n + 1, first > now ? (int)((first - now) * 1e3) + 1 : 0);
	s->stopped = stop_signals_seen(s->devices.stop_fd);
	now = clock_s();
	for (size_t i = 0; i < n && !s->stopped; i++)
		if (turns[i].busy && (fds[i].revents || now >= turns[i].worker->until_s))
			end_turn(s, &turns[i], !fds[i].revents);
	return !s->stopped;
}

static void run_round(struct rdma_session *s, const struct round *round)
{
	struct turn turns[PORTS_MAX] = {0};
	size_t n = 0;

	for (size_t i = 0; i < round->pair_n && n < PORTS_MAX; i++) {
		struct rdma_pair *p = pair_of(s, &round->pairs[i]);

		turns[n] = (struct turn){.pair = p, .worker = &s->workers[p->port]};
		begin_next(s, &turns[n++]);
	}
	while (await(s, turns, n))
		;
	stop_turns(turns, n);
}

static struct figures *figures_of(const struct rdma_session *s)
{
	struct figures *f = figures_new("", "onehop bench rdma");

	for (size_t k = 0; k < s->devices.request.n; k++) {
		const struct gpu *g = devices_gpu(&s->devices, k);

		figures_add_gpu(f, g && !devices_are_simulated(&s->devices) ? g->pci->name : "",
				s->devices.chosen.names[k], s->devices.request.ordinal[k]);
	}
	rdma_add_figures(f, s->listing->ports, s->pairs, s->pair_n);
	if (devices_are_simulated(&s->devices))
		f->note = SIMULATED_TEXT;
	return f;
}

int rdma_session_run(struct rdma_session *s)
{
	double start = clock_s();
	struct rdma_counts n;

	rdma_log_open(&s->log);
	s->workers = xcalloc(s->listing->n + 1, sizeof(*s->workers));
	for (size_t i = 0; i < s->listing->n; i++)
		s->workers[i] = RDMA_WORKER_NONE;
	for (size_t k = 0; k < s->rounds.round_n && !s->stopped; k++) {
		tell(s, k);
		run_round(s, &s->rounds.rounds[k]);
	}
	s->run_s = clock_s() - start;
	n = rdma_count(s->pairs, s->pair_n);
	if (n.wrong || n.failed || n.working < n.pairs)
		rdma_log_read(&s->log);
	s->figures = figures_of(s);
	session_keep(s->ear, &s->devices, s->devices.machine, s->figures);
	return 0;
}

void rdma_session_done(struct rdma_session *s)
{
	for (size_t i = 0; s->workers && i < s->listing->n; i++)
		rdma_worker_end(&s->workers[i]);
	for (size_t i = 0; i < s->pair_n; i++)
		free(s->pairs[i].runs);
	free(s->workers);
	free(s->pairs);
	free(s->skips);
	rdma_log_done(&s->log);
	free(s->listing);
	rounds_done(&s->rounds);
	paths_free(s->paths);
	figures_free(s->figures);
	devices_done(&s->devices);
}
