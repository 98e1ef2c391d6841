/* SPDX-License-Identifier: Apache-2.0 */
#include "session/rdma_hosts_impl.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "result/figures.h"
#include "session/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void rdma_hosts_begin(struct rdma_hosts *h, struct rdma_session *s)
{
	*h = (struct rdma_hosts){.s = s, .listener = -1, .peer = PEER_NONE};
	h->workers = xcalloc(s->listing->n + 1, sizeof(*h->workers));
	for (size_t i = 0; i < s->listing->n; i++)
		h->workers[i] = RDMA_WORKER_NONE;
}

void hosts_reset(struct rdma_hosts *h)
{
	peer_close(&h->peer);
	for (size_t i = 0; h->pairs && i < h->s->listing->n * h->far_n; i++)
		free(h->pairs[i].runs);
	free(h->far);
	free(h->pairs);
	h->far = NULL;
	h->pairs = NULL;
	h->far_n = h->reach_rounds = h->kind_n = h->queues = h->depth = 0;
	rounds_done(&h->rounds);
	h->rounds = (struct rounds){0};
	figures_free(h->figures);
	h->figures = NULL;
	h->whole = false;
	*h->ended = *h->peer_name = *h->peer_address = '\0';
}

void rdma_hosts_done(struct rdma_hosts *h)
{
	if (!h->s)
		return;
	for (size_t i = 0; i < h->s->listing->n; i++)
		rdma_worker_end(&h->workers[i]);
	hosts_reset(h);
	free(h->workers);
	if (h->listener >= 0)
		close(h->listener);
}

/* ---- ports and pairs ---- */

bool hosts_uses(const struct rdma_hosts *h, size_t own)
{
	return own < h->s->listing->n && h->s->skips[own].step == RDMA_STEP_NONE;
}

bool hosts_relax(const struct rdma_hosts *h, enum rdma_measure m)
{
	return !h->s->o->no_relaxed && !rdma_is_latency(m);
}

bool rdma_hosts_far_is_used(const struct rdma_hosts *h, size_t far)
{
	const struct nic_port *p = far < h->far_n ? &h->far[far].port : NULL;

	return p && p->state == VERBS_PORT_ACTIVE && p->has_gid;
}

struct host_pair *rdma_hosts_pair(const struct rdma_hosts *h, size_t own, size_t far)
{
	return &h->pairs[own * h->far_n + far];
}

static struct host_pair new_pair(const struct rdma_hosts *h, size_t own, size_t far)
{
	const struct nic_port *a = &h->s->listing->ports[own], *b = &h->far[far].port;
	struct host_pair p = {.own = own, .far = far};

	p.meets = a->link_layer == b->link_layer &&
		  gid_choose_pair(a->gids, a->gid_n, b->gids, b->gid_n,
				  a->link_layer == VERBS_LINK_INFINIBAND, &p.gid, &p.far_gid);
	return p;
}

void hosts_pair_up(struct rdma_hosts *h)
{
	h->pairs = xcalloc(h->s->listing->n * h->far_n + 1, sizeof(*h->pairs));
	for (size_t i = 0; i < h->s->listing->n; i++)
		for (size_t k = 0; k < h->far_n; k++)
			*rdma_hosts_pair(h, i, k) = new_pair(h, i, k);
}

/* ---- kinds of messages ---- */

size_t hosts_kind_at(struct rdma_hosts *h, enum region_way way, struct rdma_size size)
{
	size_t k = 0;

	while (k < h->kind_n &&
	       (h->kinds[k].way != way || memcmp(&h->kinds[k].size, &size, sizeof(size)) != 0))
		k++;
	if (k == h->kind_n && k < HOSTS_KINDS)
		h->kinds[h->kind_n++] = (struct hosts_kind){way, size};
	return k;
}

void hosts_mark(struct rdma_failure *f, enum region_way way, bool reached)
{
	f->about |=
		(region_is_host(way) ? RDMA_ABOUT_HOST : 0) | (reached ? RDMA_ABOUT_REACHED : 0);
}

struct rdma_cell *hosts_make_cell(const struct rdma_hosts *h, struct host_pair *p, size_t kind,
				  int m)
{
	if (!p->runs)
		p->runs = xcalloc(HOSTS_KINDS, sizeof(*p->runs));
	(void)h;
	return &p->runs[kind].cells[m];
}

const struct rdma_cell *rdma_hosts_cell(const struct rdma_hosts *h, const struct host_pair *p,
					size_t kind, int m)
{
	return p->runs && kind < h->kind_n && m >= 0 ? &p->runs[kind].cells[m] : NULL;
}

unsigned hosts_ways(const struct rdma_hosts *h, size_t own)
{
	const struct rdma_pair *p = rdma_nearest_gpu(h->s, own);
	bool pages = h->s->listing->ports[own].pages == 1;
	unsigned ways = h->s->ways & (1u << REGION_HOST | (unsigned)pages << REGION_ON_DEMAND);

	for (size_t i = 0; p && i < p->run_n; i++)
		if (p->runs[i].foresight != RDMA_CANNOT)
			ways |= 1u << p->runs[i].way;
	return ways;
}

void hosts_take_way(const struct rdma_hosts *h, size_t own, enum region_way way, struct link_job *j)
{
	const struct rdma_pair *p = rdma_nearest_gpu(h->s, own);

	j->way = way;
	if (!region_is_host(way) && p)
		rdma_request_gpu(h->s, p->gpu, &j->gpu);
}

/* ---- what came of it ---- */

size_t rdma_hosts_largest(const struct rdma_hosts *h, enum region_way way)
{
	size_t best = h->kind_n;

	for (size_t k = 0; k < h->kind_n; k++)
		if (h->kinds[k].way == way &&
		    (best == h->kind_n || h->kinds[k].size.of_rates > h->kinds[best].size.of_rates))
			best = k;
	return best;
}

static void count_rates(const struct rdma_hosts *h, const struct host_pair *p,
			struct hosts_counts *n)
{
	for (int way = 0; way < REGION_WAY_N; way++)
		for (int m = 0; m < RDMA_LATENCY_WRITE; m++) {
			size_t kind = rdma_hosts_largest(h, (enum region_way)way);
			const struct rdma_cell *c = rdma_hosts_cell(h, p, kind, m);
			double expected = rdma_hosts_expected(p, (enum rdma_measure)m);

			n->rated += c && c->value.n && expected > 0;
			n->slow += c && rdma_is_short(c, expected);
		}
}

struct hosts_counts rdma_hosts_count(const struct rdma_hosts *h)
{
	struct hosts_counts n = {0};

	for (size_t i = 0; h->pairs && i < h->s->listing->n * h->far_n; i++) {
		const struct host_pair *p = &h->pairs[i];

		n.tried += p->reach != REACH_UNTRIED;
		n.reached += p->reach == REACH_YES;
		count_rates(h, p, &n);
		for (size_t j = 0; p->runs && j < h->kind_n * RDMA_MEASURE_N; j++) {
			const struct rdma_cell *c = rdma_hosts_cell(h, p, j / RDMA_MEASURE_N,
								    (int)(j % RDMA_MEASURE_N));

			n.checked += c->data != RDMA_DATA_NOT_CHECKED;
			n.wrong += c->data == RDMA_DATA_WRONG;
			n.failed += c->done && c->failure.step != RDMA_STEP_NONE &&
				    c->failure.step != RDMA_STEP_DATA;
			n.measured += c->value.n > 0;
			n.too_slow += c->too_slow;
			n.rates += c->value.n && j % RDMA_MEASURE_N < RDMA_LATENCY_WRITE;
			n.wide += c->value.n && c->stop != STOP_NARROW;
		}
	}
	return n;
}

void hosts_read_log(struct rdma_hosts *h)
{
	struct hosts_counts n = rdma_hosts_count(h);

	if (n.wrong || n.failed || n.reached < n.tried)
		rdma_log_read(&h->s->log);
}

/* Of one host's ports. */
static bool is_lonely(const struct rdma_hosts *h, size_t port, bool own)
{
	size_t others = own ? h->far_n : h->s->listing->n;
	bool tried = false;

	for (size_t k = 0; k < others; k++) {
		enum reach r = rdma_hosts_pair(h, own ? port : k, own ? k : port)->reach;

		tried = tried || r != REACH_UNTRIED;
		if (r == REACH_YES)
			return false;
	}
	return tried;
}

bool rdma_hosts_has_lonely(const struct rdma_hosts *h)
{
	size_t n = h->pairs ? h->s->listing->n : 0;

	for (size_t i = 0; i < n; i++)
		if (is_lonely(h, i, true))
			return true;
	for (size_t k = 0; n && k < h->far_n; k++)
		if (is_lonely(h, k, false))
			return true;
	return false;
}

bool rdma_hosts_are_rails(const struct rdma_hosts *h)
{
	bool apart = false;

	for (size_t i = 0; h->pairs && i < h->s->listing->n * h->far_n; i++) {
		const struct host_pair *p = &h->pairs[i];
		bool same = p->meets && gid_same_network(&p->gid.entry.gid, &p->far_gid.gid);

		if (p->reach == REACH_UNTRIED)
			continue;
		if (same != (p->reach == REACH_YES))
			return false;
		apart = apart || !same;
	}
	return apart && !rdma_hosts_has_lonely(h);
}

double rdma_hosts_expected(const struct host_pair *p, enum rdma_measure m)
{
	return rdma_expected_of(p->write_gbps, p->read_gbps, m);
}

/* ---- figures ---- */

static struct figure *add(const struct rdma_hosts *h, const struct host_pair *p,
			  enum region_way way, const char *what, double value)
{
	struct figure *row = figures_add(h->figures, what, -1, -1, value);
	char own[PORT_NAME], far[PORT_NAME];

	port_name(&h->s->listing->ports[p->own], own);
	port_name(&h->far[p->far].port, far);
	row->nic = arena_strdup(h->figures->arena, own);
	row->peer = arena_printf(h->figures->arena, "%s:%s", h->peer_name, far);
	row->memory = region_way_word(way);
	row->path = !region_is_host(way) && rdma_nearest_gpu(h->s, p->own)
			    ? arena_strdup(h->figures->arena, rdma_nearest_gpu(h->s, p->own)->class)
			    : "";
	return row;
}

static void add_reach(const struct rdma_hosts *h, const struct host_pair *p)
{
	struct figure *row;

	if (p->reach == REACH_UNTRIED)
		return;
	row = add(h, p, REGION_HOST, METRIC_NIC_REACHES, p->reach == REACH_YES);
	row->kind = rdma_failure_word(&p->failure);
}

static void add_cell(const struct rdma_hosts *h, const struct host_pair *p, size_t kind,
		     enum rdma_measure m)
{
	const struct rdma_cell *c = rdma_hosts_cell(h, p, kind, m);
	const char *verified = rdma_verified_metric(m);
	enum region_way way = h->kinds[kind].way;
	struct figure *row;

	if (!c)
		return;
	if (verified && (c->data != RDMA_DATA_NOT_CHECKED || c->failure.step != RDMA_STEP_NONE)) {
		row = add(h, p, way, verified, c->data == RDMA_DATA_RIGHT);
		if (c->data != RDMA_DATA_RIGHT)
			row->kind = rdma_failure_word(&c->failure);
	}
	if (!c->value.n)
		return;
	row = add(h, p, way, rdma_metric(m), c->value.median);
	row->bytes = rdma_bytes(h->kinds[kind].size, m);
	row->queues = rdma_is_latency(m) ? 0 : h->queues;
	row->depth = rdma_is_latency(m) ? 0 : h->depth;
	row->low = summary_low(&c->value);
	row->high = summary_high(&c->value);
	row->samples = (unsigned)c->value.n;
	row->expected = rdma_hosts_expected(p, m);
}

void hosts_keep(struct rdma_hosts *h)
{
	figures_free(h->figures);
	h->figures = figures_new("", "onehop bench rdma");
	if (devices_are_simulated(&h->s->devices))
		h->figures->note = SIMULATED_TEXT;
	for (size_t i = 0; h->pairs && i < h->s->listing->n * h->far_n; i++) {
		add_reach(h, &h->pairs[i]);
		for (size_t k = 0; k < h->kind_n; k++)
			for (int m = 0; m < RDMA_MEASURE_N; m++)
				add_cell(h, &h->pairs[i], k, (enum rdma_measure)m);
	}
	/* Of two hosts: the store is of one. */
	session_keep(h->s->ear, &h->s->devices, NULL, h->figures);
	if (h->figures->row_n && !h->unkept &&
	    store_write_figures(h->listens ? RDMA_LISTENER_FILE : RDMA_HOSTS_FILE, h->figures) <
		    0) {
		h->unkept = true;
		session_tell(h->s->ear, SESSION_NOTE, "the results so far could not be saved: %s",
			     err_msg());
	}
}
