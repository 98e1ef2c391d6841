/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/p2p.h"

#include "base/clock.h"
#include "base/err.h"
#include "bench/p2p_impl.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t p2p_metrics(const struct metric **ret)
{
	size_t n = 0;

	for (int staged = 0; staged < 2; staged++)
		for (int shape = 0; shape < SHAPE_N; shape++)
			for (size_t i = 0; i < metric_n; i++)
				if (metrics[i].heading && metrics[i].staged == staged &&
				    metrics[i].shape == (enum metric_shape)shape)
					ret[n++] = &metrics[i];
	return n;
}

const struct metric *p2p_metric_find(const char *name)
{
	const struct metric *m = metric_find(name);

	return m && m->heading ? m : NULL;
}

void p2p_options_default(struct p2p_options *o)
{
	*o = (struct p2p_options){
		.stopping = {.relative = STOPPING_RELATIVE,
			     .budget_s = 0.3,
			     .min_samples = SAMPLES_INTERVAL_MIN,
			     .max_samples = 200},
		.sample_us = 10000, /* 7 copies of 512 MiB at 400 GB/s */
		.kernel_us = 14000, /* 10 of them */
		.limit_us = 10000000,
		.verify = true,
	};
}

/* ---- what kind of figure ---- */

static bool is_host_shape(const struct metric *m)
{
	return m->shape == SHAPE_HOST || m->shape == SHAPE_CHASE_HOST;
}

static bool is_chase(const struct metric *m)
{
	return m->shape == SHAPE_CHASE || m->shape == SHAPE_CHASE_HOST;
}

static bool is_two_way(const struct metric *m)
{
	return m->both_ways || m->shape == SHAPE_ROUND_TRIP;
}

/* ---- rounds ---- */

/* Pairs given as ordered, each unordered one once. */
static int unordered(const struct pair *pairs, size_t n, struct pair **ret, size_t *ret_n)
{
	struct pair *out = calloc(n ? n : 1, sizeof(*out));
	size_t out_n = 0;

	if (!out)
		return err_set(ENOMEM, "no memory for %zu pairs", n);
	for (size_t i = 0; i < n; i++) {
		struct pair p = pairs[i];
		bool seen = false;

		for (size_t k = 0; k < out_n && !seen; k++)
			seen = out[k].initiator == p.target && out[k].target == p.initiator;
		if (!seen)
			out[out_n++] = p;
	}
	*ret = out;
	*ret_n = out_n;
	return 0;
}

static int add_links(struct link_list *to, const struct link_list *from)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++)
		r = link_list_add(to, from->ids[i]);
	return r;
}

/* Traffic both ways uses the links of both directions. */
static int paths_both_ways(const struct paths *one, struct paths **ret)
{
	struct paths *both;
	int r = paths_new(one->device_n, &both);

	if (r < 0)
		return r;
	for (unsigned i = 0; r == 0 && i < one->device_n; i++)
		for (unsigned j = 0; r == 0 && j < one->device_n; j++) {
			if (i == j)
				continue;
			r = add_links(&paths_pair(both, i, j)->links,
				      &paths_pair(one, i, j)->links);
			if (r == 0)
				r = add_links(&paths_pair(both, i, j)->links,
					      &paths_pair(one, j, i)->links);
		}
	if (r < 0)
		paths_free(both);
	else
		*ret = both;
	return r;
}

static int plan_both_ways(const struct paths *paths, const struct pair *pairs, size_t n,
			  struct rounds *ret)
{
	struct paths *both;
	int r = paths_both_ways(paths, &both);

	if (r == 0) {
		r = rounds_plan(both, pairs, n, ret);
		paths_free(both);
	}
	return r;
}

/* A round for each pair, or one round of all of them. */
static int plan_sequence(const struct pair *pairs, size_t n, bool together, struct rounds *ret)
{
	size_t round_n = together ? 1 : n;
	struct rounds r = {.round_n = round_n, .least = round_n, .pair_n = n};

	r.rounds = calloc(round_n + 1, sizeof(*r.rounds));
	r.pairs = calloc(n + 1, sizeof(*r.pairs));
	if (!r.rounds || !r.pairs) {
		rounds_done(&r);
		return err_set(ENOMEM, "no memory for %zu rounds", round_n);
	}
	for (size_t i = 0; i < n; i++)
		r.pairs[i] = pairs[i];
	for (size_t i = 0; i < round_n; i++)
		r.rounds[i] = (struct round){.pairs = &r.pairs[i], .pair_n = together ? n : 1};
	*ret = r;
	return 0;
}

static int plan_devices(size_t n, bool together, struct rounds *ret)
{
	struct pair *selves = calloc(n, sizeof(*selves));
	int r;

	if (!selves)
		return err_set(ENOMEM, "no memory for %zu rounds", n);
	for (unsigned i = 0; i < n; i++)
		selves[i] = (struct pair){i, i};
	r = plan_sequence(selves, n, together, ret);
	free(selves);
	return r;
}

/* All that is staged shares the host's memory. */
static int plan_pairs(const struct p2p *p, const struct metric *m, struct rounds *ret)
{
	const struct p2p_options *o = p->options;
	const struct pair *pairs = o->pairs;
	struct pair *once = NULL;
	size_t n = o->pair_n;
	int r = 0;

	if (m->both_ways) {
		r = unordered(o->pairs, o->pair_n, &once, &n);
		pairs = once;
	}
	if (r == 0)
		r = m->staged       ? plan_sequence(pairs, n, false, ret)
		    : is_two_way(m) ? plan_both_ways(o->paths, pairs, n, ret)
				    : rounds_plan(o->paths, pairs, n, ret);
	free(once);
	return r;
}

static int plan(const struct p2p *p, const struct metric *m, bool diagonal, struct rounds *ret)
{
	size_t n = p->set->n;

	if (diagonal || m->shape == SHAPE_LOCAL)
		return plan_devices(n, true, ret);
	if (is_host_shape(m))
		return plan_devices(n, false, ret);
	if (m->shape == SHAPE_TRAFFIC)
		return rounds_of_traffic(m->traffic, (unsigned)n, ret);
	return plan_pairs(p, m, ret);
}

/* ---- a round ---- */

struct sampled {
	struct p2p *p;
	const struct metric *metric;
	struct p2p_cell *cells; /* of the round, in the result */
	struct flow *flows;
	struct samples *samples;
	struct samples *enqueue; /* of SHAPE_TINY */
	double *values;          /* of one sample, per cell */
	double *forth;           /* of them, what the initiator moved */
	size_t cell_n, flow_n;
};

/* Traffic from several devices to one goes to a part of its buffer each. */
static uint64_t slot(const struct sampled *s, int sender)
{
	return s->metric->shape == SHAPE_TRAFFIC ? (uint64_t)sender * s->cells[0].bytes : 0;
}

/* `device` moves data between its own memory and that of `other`, or the host's. */
static int add_flow(struct sampled *s, size_t cell, int device, int other)
{
	const struct metric *m = s->metric;
	struct flow *f = &s->flows[s->flow_n];
	struct bench_device *devices = s->p->devices;
	int from = m->read ? other : device, to = m->read ? device : other;

	*f = (struct flow){
		.device = device,
		.origin =
			m->shape == SHAPE_HOST && m->read ? devices[from].host : devices[from].out,
		.target = m->shape == SHAPE_HOST && !m->read ? devices[to].host : devices[to].in,
		.bytes = s->cells[cell].bytes,
		.target_offset = slot(s, from),
		.times = 1,
		.lead_in = metric_is_rate(m),
		.ask_enqueue = m->shape == SHAPE_TINY,
		.cell = cell,
	};
	s->flow_n++;
	return m->by_kernel ? flow_use_kernel(s->p, f) : 0;
}

/* Two copies within one device: half of the buffers each. */
static void share_target(struct flow *two)
{
	two[0].bytes = two[1].bytes = two[0].bytes / 32 * 16;
	two[1].target_offset = two[0].bytes;
}

static int cell_flows(struct sampled *s, size_t i)
{
	struct p2p_cell *c = &s->cells[i];
	int other = c->target < 0 ? c->initiator : c->target, r;

	if (is_chase(s->metric)) {
		r = chase_flow(s->p, c, &s->flows[s->flow_n]);
		s->flows[s->flow_n].cell = i;
		s->flow_n += r == 0 && !*c->why;
		return r;
	}
	r = is_host_shape(s->metric) ? p2p_need_host(s->p, c->initiator) : 0;
	if (r == 0)
		r = add_flow(s, i, c->initiator, other);
	if (r == 0 && s->metric->both_ways)
		r = add_flow(s, i, other, c->initiator);
	if (r == 0 && s->metric->both_ways && other == c->initiator)
		share_target(&s->flows[s->flow_n - 2]);
	return r;
}

static void cell_fails(struct p2p_cell *c, const char *why)
{
	if (!*c->why)
		snprintf(c->why, sizeof(c->why), "%s", why);
}

/* NULL: nothing refuses it. */
static const char *no_access(const struct p2p *p, int initiator, int target)
{
	const struct reach *reach = p2p_reach(p, initiator, target);

	return reach->on ? NULL : reach->why ? reach->why : "no peer access";
}

static const char *refusal(const struct p2p *p, const struct metric *m, const struct p2p_cell *c)
{
	const char *why;

	if (c->target < 0 || c->target == c->initiator)
		return NULL;
	if (m->staged)
		return p2p_reach(p, c->initiator, c->target)->on
			       ? "peer access could not be turned off"
			       : NULL;
	why = no_access(p, c->initiator, c->target);
	return why || !is_two_way(m) ? why : no_access(p, c->target, c->initiator);
}

/* Kernels of one device run side by side only where each leaves room for the others. */
static void share_blocks(struct sampled *s)
{
	for (size_t i = 0; i < s->flow_n; i++) {
		struct flow *f = &s->flows[i];
		unsigned n = 0, blocks = s->p->set->info[f->device].blocks;

		for (size_t k = 0; k < s->flow_n; k++)
			n += s->flows[k].device == f->device;
		f->launch.blocks = blocks > n ? blocks / n : 1;
	}
}

/* Cells that cannot be measured say so and get no flow. */
static int make_flows(struct sampled *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->cell_n; i++) {
		const char *why = refusal(s->p, s->metric, &s->cells[i]);

		if (why)
			cell_fails(&s->cells[i], why);
		else if (s->metric->shape != SHAPE_ROUND_TRIP)
			r = cell_flows(s, i);
	}
	share_blocks(s);
	return r;
}

static bool is_copy(const struct metric *m)
{
	return !is_chase(m) && m->shape != SHAPE_ROUND_TRIP;
}

static double flow_value(const struct sampled *s, const struct flow *f)
{
	double rate = (double)f->bytes * f->times / f->us / 1e3;

	switch (s->metric->shape) {
	case SHAPE_CHASE:
	case SHAPE_CHASE_HOST:
		return f->us * 1e3 / f->times / P2P_CHASE_STEPS;
	case SHAPE_TINY:
		return f->us / f->times;
	case SHAPE_LOCAL:
		return 2 * rate;
	default:
		return s->cells[f->cell].initiator == s->cells[f->cell].target ? 2 * rate : rate;
	}
}

static void flow_values(struct sampled *s)
{
	for (size_t i = 0; i < s->cell_n; i++)
		s->values[i] = s->forth[i] = 0;
	for (size_t i = 0; i < s->flow_n; i++) {
		const struct flow *f = &s->flows[i];
		double value = flow_value(s, f);

		s->values[f->cell] += value;
		if (f->device == s->cells[f->cell].initiator)
			s->forth[f->cell] = value;
		s->cells[f->cell].enqueue_us = f->enqueue_us;
	}
}

static bool is_measured(const struct sampled *s, size_t i)
{
	return !*s->cells[i].why;
}

/* What is thrown away is a sample of every cell of the round. */
static void count_timeouts(struct sampled *s, unsigned n)
{
	for (size_t i = 0; i < s->cell_n; i++)
		if (is_measured(s, i))
			s->cells[i].gate_timeouts += n;
}

static int sample_flows(struct sampled *s, const struct round *under_load)
{
	unsigned timeouts = 0;
	int r = flows_sample(s->p, s->flows, s->flow_n, under_load, &timeouts);

	count_timeouts(s, timeouts);
	if (r == 0)
		flow_values(s);
	return r;
}

static int keep_sample(struct sampled *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->cell_n; i++) {
		double *share = &s->cells[i].share;

		if (!is_measured(s, i))
			continue;
		r = samples_add(&s->samples[i], s->values[i]);
		if (r == 0 && s->metric->shape == SHAPE_TINY)
			r = samples_add(&s->enqueue[i], s->cells[i].enqueue_us);
		*share += (s->forth[i] / s->values[i] - *share) / (double)s->samples[i].n;
	}
	return r;
}

/* Goes on until every cell of the round has enough. */
static bool enough(struct sampled *s, double elapsed_s)
{
	bool go_on = false;

	for (size_t i = 0; i < s->cell_n; i++) {
		if (!is_measured(s, i))
			continue;
		s->cells[i].stop =
			stopping_decide(&s->p->options->stopping, &s->samples[i], elapsed_s);
		go_on |= s->cells[i].stop == STOP_GO_ON;
	}
	return !go_on;
}

static bool is_stopped(struct p2p *p)
{
	const struct p2p_hooks *h = p->options->hooks;

	if (!p->result->stopped && h && h->stopped)
		p->result->stopped = h->stopped(h->context);
	return p->result->stopped;
}

static int sample_round(struct sampled *s, const struct round *round)
{
	const struct round *under_load = round;
	double start = clock_s();
	int r;

	do {
		r = s->metric->shape == SHAPE_ROUND_TRIP
			    ? round_trip_sample(s->p, s->cells, s->cell_n, s->values)
			    : sample_flows(s, under_load);
		if (r == 0)
			r = keep_sample(s);
		under_load = NULL;
	} while (r == 0 && !enough(s, clock_s() - start) && !is_stopped(s->p));
	return r;
}

/* Devices share the host's memory and take turns, and smaller copies fill a sample there. */
static double sample_us(const struct sampled *s)
{
	const struct p2p_options *o = s->p->options;

	return (s->metric->by_kernel ? o->kernel_us : o->sample_us) /
	       (is_host_shape(s->metric) ? 2 : 1);
}

static int prepare_round(struct sampled *s)
{
	unsigned timeouts = 0;
	int r = 0;

	if (is_copy(s->metric) && s->p->options->verify)
		r = flows_prepare(s->p, s->flows, s->flow_n);
	if (r < 0 || s->metric->shape == SHAPE_ROUND_TRIP)
		return r;
	r = flows_calibrate(s->p, s->flows, s->flow_n, sample_us(s), &timeouts);
	count_timeouts(s, timeouts);
	for (size_t i = 0; i < s->flow_n; i++) {
		if (s->metric->shape == SHAPE_TINY)
			s->flows[i].times = P2P_TINY_TIMES;
		if (!is_copy(s->metric))
			s->flows[i].times = P2P_CHASE_BLOCKS;
	}
	return r;
}

static int check_round(struct sampled *s)
{
	int r = 0;

	if (is_copy(s->metric) && s->p->options->verify)
		r = flows_check(s->p, s->flows, s->flow_n, s->cells);
	for (size_t i = 0; r == 0 && is_chase(s->metric) && i < s->flow_n; i++)
		r = chase_check(s->p, &s->flows[i], &s->cells[s->flows[i].cell]);
	return r;
}

static int switch_round(struct sampled *s, bool on)
{
	int r = 0;

	for (size_t i = 0; r == 0 && !s->metric->staged && i < s->cell_n; i++) {
		const struct p2p_cell *c = &s->cells[i];

		if (c->target < 0 || c->target == c->initiator)
			continue;
		r = p2p_round_access(s->p, c->initiator, c->target, on);
		if (r == 0 && is_two_way(s->metric))
			r = p2p_round_access(s->p, c->target, c->initiator, on);
	}
	return r;
}

static int measure_round(struct sampled *s, const struct round *round)
{
	int r = switch_round(s, true);
	bool any = false;

	if (r == 0)
		r = make_flows(s);
	for (size_t i = 0; i < s->cell_n; i++)
		any |= is_measured(s, i);
	if (r < 0 || !any)
		return r;
	r = prepare_round(s);
	if (r == 0)
		r = sample_round(s, round);
	return r < 0 ? r : check_round(s);
}

/* What failed later on has no figure. */
static void finish_round(struct sampled *s, int r)
{
	for (size_t i = 0; i < s->cell_n; i++) {
		if (r < 0)
			cell_fails(&s->cells[i], err_msg());
		if (!is_measured(s, i))
			samples_done(&s->samples[i]);
		samples_summary(&s->samples[i], &s->cells[i].value);
		s->cells[i].enqueue_us =
			s->cells[i].value.n && s->enqueue[i].n ? samples_median(&s->enqueue[i]) : 0;
		samples_done(&s->samples[i]);
		samples_done(&s->enqueue[i]);
	}
}

/* What leaves the set usable for other rounds. */
static bool is_survivable(int r)
{
	static const int errors[] = {0, -EACCES, -ENOTSUP, -EAGAIN, -E2BIG, -ENOMEM};

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (r == errors[i])
			return true;
	return false;
}

static struct p2p_cell *add_cells(struct p2p_result *result, size_t n)
{
	struct p2p_cell *cells =
		realloc(result->cells, (result->cell_n + n) * sizeof(*result->cells));

	if (!cells)
		return NULL;
	result->cells = cells;
	cells += result->cell_n;
	memset(cells, 0, n * sizeof(*cells));
	result->cell_n += n;
	return cells;
}

static int run_cells(struct sampled *s, uint64_t bytes, const struct round *round)
{
	int r;

	for (size_t i = 0; i < s->cell_n; i++)
		s->cells[i] = (struct p2p_cell){.metric = s->metric,
						.bytes = bytes,
						.initiator = (int)round->pairs[i].initiator,
						.target = is_host_shape(s->metric)
								  ? -1
								  : (int)round->pairs[i].target};
	r = measure_round(s, round);
	finish_round(s, r);
	return is_survivable(r) ? switch_round(s, false) : r;
}

static int run_round(struct p2p *p, const struct metric *m, uint64_t bytes,
		     const struct round *round)
{
	size_t n = round->pair_n;
	struct sampled s = {.p = p, .metric = m, .cell_n = n};
	int r;

	s.cells = add_cells(p->result, n);
	s.flows = calloc(2 * n, sizeof(*s.flows));
	s.samples = calloc(2 * n, sizeof(*s.samples));
	s.enqueue = s.samples + n;
	s.values = calloc(2 * n, sizeof(*s.values));
	s.forth = s.values + n;
	if (s.cells && s.flows && s.samples && s.values)
		r = run_cells(&s, bytes, round);
	else
		r = err_set(ENOMEM, "no memory for a round of %zu pairs", n);
	free(s.flows);
	free(s.samples);
	free(s.values);
	return r;
}

/* ---- a metric ---- */

static uint64_t copy_bytes(const struct p2p *p, const struct metric *m, uint64_t size)
{
	if (m->shape == SHAPE_TINY)
		return P2P_TINY_BYTES;
	if (!metric_is_rate(m))
		return 0;
	if (is_host_shape(m) && size > p->host_bytes)
		return p->host_bytes;
	if (m->staged && p->options->staged_bytes && size > p->options->staged_bytes)
		return p->options->staged_bytes;
	if (m->shape == SHAPE_TRAFFIC && size >= 16 * p->set->n)
		return size / p->set->n / 16 * 16;
	return size;
}

static void show_progress(const struct p2p *p, const struct metric *m, uint64_t bytes, size_t i,
			  size_t n)
{
	const struct p2p_hooks *h = p->options->hooks;

	if (h && h->progress)
		h->progress(h->context, m, bytes, i, n, p->rounds_left);
}

static int run_rounds(struct p2p *p, const struct metric *m, uint64_t bytes,
		      const struct rounds *rounds)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rounds->round_n && !is_stopped(p); i++) {
		show_progress(p, m, bytes, i, rounds->round_n);
		r = run_round(p, m, bytes, &rounds->rounds[i]);
		p->rounds_left--;
	}
	return r;
}

/* `r`: how its rounds ended, handed on. */
static int note_plan(struct p2p_result *result, const struct metric *m, uint64_t bytes,
		     const struct rounds *rounds, double seconds, int r)
{
	struct p2p_plan *plans =
		realloc(result->plans, (result->plan_n + 1) * sizeof(*result->plans));

	if (!plans)
		return err_set(ENOMEM, "no memory for the plan of %s", m->name);
	result->plans = plans;
	plans[result->plan_n++] = (struct p2p_plan){.metric = m,
						    .bytes = bytes,
						    .rounds = rounds->round_n,
						    .least = rounds->least,
						    .seconds = seconds};
	return r;
}

/* The diagonal is not measured where it is a metric of its own. */
static bool has_diagonal(const struct p2p *p, const struct metric *m)
{
	return p->options->diagonal && !m->by_kernel &&
	       (m->shape == SHAPE_PAIR || m->shape == SHAPE_TINY);
}

static int run_metric(struct p2p *p, const struct metric *m, uint64_t size)
{
	uint64_t bytes = copy_bytes(p, m, size);
	int r = p2p_set_staged(p, m->staged);

	for (int diagonal = has_diagonal(p, m); r == 0 && diagonal >= 0; diagonal--) {
		struct rounds rounds;
		double start = clock_s();

		r = plan(p, m, diagonal, &rounds);
		if (r < 0)
			break;
		r = run_rounds(p, m, bytes, &rounds);
		if (!diagonal)
			r = note_plan(p->result, m, bytes, &rounds, clock_s() - start, r);
		rounds_done(&rounds);
	}
	return r;
}

static size_t sizes_of(const struct p2p_options *o, const struct metric *m)
{
	return metric_is_rate(m) ? o->size_n : 1;
}

static int count_rounds(struct p2p *p)
{
	const struct p2p_options *o = p->options;

	for (size_t i = 0; i < o->metric_n; i++) {
		for (int diagonal = has_diagonal(p, o->metrics[i]); diagonal >= 0; diagonal--) {
			struct rounds rounds = {0};
			int r = plan(p, o->metrics[i], diagonal, &rounds);

			if (r < 0)
				return r;
			p->rounds_left += rounds.round_n * sizes_of(o, o->metrics[i]);
			rounds_done(&rounds);
		}
	}
	return 0;
}

static int run_all(struct p2p *p)
{
	const struct p2p_options *o = p->options;
	int r = count_rounds(p);

	for (size_t i = 0; i < o->metric_n; i++)
		for (size_t k = 0; k < sizes_of(o, o->metrics[i]); k++) {
			if (r < 0 || p->result->stopped)
				return r;
			r = run_metric(p, o->metrics[i], o->size_n ? o->sizes[k] : 0);
		}
	return r;
}

/* ---- all ---- */

static int check_options(const struct device_set *s, const struct p2p_options *o)
{
	if (!s->n || s->n != o->paths->device_n)
		return err_set(EINVAL, "the paths are of %u devices, not %zu", o->paths->device_n,
			       s->n);
	for (size_t i = 0; i < o->size_n; i++)
		if (o->sizes[i] < P2P_SIZE_MIN || o->sizes[i] % 16)
			return err_set(EINVAL,
				       "a size of %lu bytes: must be at least %d, a multiple of 16",
				       (unsigned long)o->sizes[i], P2P_SIZE_MIN);
	return 0;
}

int p2p_run(struct device_set *s, const struct p2p_options *options, struct p2p_result *ret)
{
	struct p2p_options o = *options;
	struct p2p p = {.set = s, .options = &o, .result = ret};
	struct pair *all = NULL;
	int r = check_options(s, options);

	*ret = (struct p2p_result){0};
	if (r == 0 && !o.pairs) {
		r = pairs_all((unsigned)s->n, &all, &o.pair_n);
		o.pairs = all;
	}
	if (r == 0)
		r = p2p_memory_open(&p);
	if (r == 0)
		r = run_all(&p);
	p2p_memory_close(&p);
	free(all);
	return r;
}

void p2p_result_done(struct p2p_result *r)
{
	free(r->cells);
	free(r->plans);
	*r = (struct p2p_result){0};
}
