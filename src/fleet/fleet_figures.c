/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of hosts with the same hardware: the usual value of each, and how far each host is below.
 */
#include "fleet/fleet.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "base/rate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From the median absolute deviation to the standard deviation of a normal distribution. */
#define MAD_TO_SIGMA 1.4826
/*
 * n values lie closer to their own median than to that of all hosts that there could be. The median
 * of the deviations of many figures is that of all times about 1 - MAD_LOSS / n: 0.75 of it with 5
 * hosts, 0.92 with 16 (drawn normal values).
 */
#define MAD_LOSS 1.25
/*
 * So much of what the standard deviation of normal values knows of itself, their median absolute
 * deviation knows.
 */
#define MAD_EFFICIENCY 0.37
/* What deviates so much is named however little is known of the noise. */
#define MOST_SIGMAS 10

/* A reading of a host of the group. */
struct sample {
	unsigned key, host;
	double value;
	const struct fleet_reading *reading;
};

/* Hosts that measure about the same. */
struct cluster {
	const struct sample *samples; /* by value, rising */
	size_t n;
	double median, sigma; /* sigma: relative to the median */
};

/* All samples of one key. */
struct measured {
	const struct figure_key *key;
	struct cluster clusters[2];
	size_t cluster_n;
	double pooled; /* usual sigma of this metric */
	size_t alike;  /* figures that it is of */
};

/* ---- statistics ---- */

static double sigma_of(double deviation, size_t n)
{
	return MAD_TO_SIGMA * deviation / (1 - MAD_LOSS / (double)(n > 1 ? n : 2));
}

static void describe(struct cluster *c)
{
	AUTO_FREE double *v = xcalloc(c->n, sizeof(*v));

	for (size_t i = 0; i < c->n; i++)
		v[i] = c->samples[i].value;
	c->median = median_of_sorted(v, c->n);
	for (size_t i = 0; i < c->n; i++)
		v[i] = fabs(v[i] - c->median);
	sort_doubles(v, c->n);
	c->sigma = c->median > 0 ? sigma_of(median_of_sorted(v, c->n) / c->median, c->n) : 0;
}

static struct cluster cluster_of(const struct sample *s, size_t n)
{
	struct cluster c = {.samples = s, .n = n};

	describe(&c);
	return c;
}

/* Where the widest gap is that leaves enough hosts on both sides; 0: nowhere. */
static size_t widest_gap(const struct sample *s, size_t n)
{
	size_t least = (size_t)ceil(FLEET_SPLIT * (double)n), best = 0;
	double widest = 0;

	if (least < FLEET_SPLIT_LEAST)
		least = FLEET_SPLIT_LEAST;
	for (size_t i = least; i + least <= n; i++) {
		double gap = s[i].value - s[i - 1].value;

		if (gap > widest) {
			widest = gap;
			best = i;
		}
	}
	return best;
}

/* Two things are measured if the gap between both halves is far wider than each half. */
static void find_clusters(const struct sample *s, size_t n, struct measured *ret)
{
	size_t at = n >= FLEET_ENOUGH ? widest_gap(s, n) : 0;
	struct cluster low, high;
	double gap;

	ret->clusters[0] = cluster_of(s, n);
	ret->cluster_n = 1;
	if (!at)
		return;
	low = cluster_of(s, at);
	high = cluster_of(s + at, n - at);
	gap = (s[at].value - s[at - 1].value) / high.median;
	if (gap > FLEET_FLOOR && gap > 6 * low.sigma && gap > 6 * high.sigma) {
		ret->clusters[0] = high;
		ret->clusters[1] = low;
		ret->cluster_n = 2;
	}
}

/* ---- from samples to cells ---- */

static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->value < y->value || x->value > y->value)
		return x->value < y->value ? -1 : 1;
	return x->host < y->host ? -1 : x->host > y->host;
}

/* By what is measured, whatever the devices. */
static int compare_metrics(const struct figure_key *x, const struct figure_key *y)
{
	int r = strcmp(x->what, y->what);

	r = r ? r : (x->bytes > y->bytes) - (x->bytes < y->bytes);
	r = r ? r : (x->queues > y->queues) - (x->queues < y->queues);
	return r ? r : strcmp(x->memory, y->memory);
}

static int compare_measured(const void *a, const void *b)
{
	return compare_metrics((*(struct measured *const *)a)->key,
			       (*(struct measured *const *)b)->key);
}

/* The noise of one measurement is alike on different devices. */
static void pool_sigmas(struct measured *m, size_t n)
{
	AUTO_FREE struct measured **order = xcalloc(n + 1, sizeof(*order));
	AUTO_FREE double *v = xcalloc(n + 1, sizeof(*v));

	for (size_t i = 0; i < n; i++)
		order[i] = &m[i];
	if (n)
		qsort(order, n, sizeof(*order), compare_measured);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && compare_measured(&order[i], &order[end]) == 0; end++)
			v[end - i] = order[end]->clusters[0].sigma;
		sort_doubles(v, end - i);
		for (size_t k = i; k < end; k++) {
			order[k]->pooled = median_of_sorted(v, end - i);
			order[k]->alike = end - i;
		}
	}
}

/*
 * So many standard deviations that about one in a hundred healthy fleets of n figures has one
 * further away.
 */
static double sigmas_for(size_t n)
{
	double k = sqrt(2 * log(100.0 * (double)(n ? n : 1)));

	return k > FLEET_SIGMAS ? k : FLEET_SIGMAS;
}

/*
 * The same where the standard deviation is itself estimated, from `alike` figures of n hosts, and
 * so is the usual value: the quantile of Student's distribution (Wallace's approximation), and the
 * error of the median of n.
 */
static double sigmas_of_few(double k, size_t n, size_t alike)
{
	double freedom = MAD_EFFICIENCY * (double)(n - 1) * (double)alike;
	double z = k * (8 * freedom + 3) / (8 * freedom + 1);
	double t = sqrt(freedom * expm1(z * z / freedom)) * sqrt(1 + M_PI / 2 / (double)n);

	return t < MOST_SIGMAS ? t : MOST_SIGMAS;
}

/* Figures without an interval may differ by more. */
static double floor_of(const struct figure_key *key, const struct fleet_reading *r)
{
	double noise = key->metric && r->low >= r->high ? key->metric->noise : 0;

	return noise > FLEET_FLOOR ? noise : FLEET_FLOOR;
}

static double change_of(const struct figure_key *key, double value, double usual)
{
	return key->higher_is_better ? value / usual - 1 : 1 - value / usual;
}

/* Whether the better end of the host's own interval is worse than usual too. */
static bool is_sure(const struct figure_key *key, const struct fleet_reading *r, double usual)
{
	double best = key->higher_is_better ? r->high : r->low;

	return change_of(key, best, usual) < 0;
}

static struct fleet_cell cell_of(const struct measured *m, const struct cluster *c,
				 const struct sample *s, double sigmas)
{
	double sigma = c->sigma > m->pooled ? c->sigma : m->pooled;
	double limit = sigmas_of_few(sigmas, c->n, m->alike) * sigma,
	       least = floor_of(m->key, s->reading);

	return (struct fleet_cell){.key = m->key,
				   .change = change_of(m->key, s->value, c->median),
				   .limit = limit > least ? limit : least,
				   .value = s->value,
				   .usual = c->median,
				   .sure = is_sure(m->key, s->reading, c->median),
				   .others = c->n - 1};
}

/* Without enough hosts: against what the path should give. */
static bool cell_of_expected(const struct measured *m, const struct sample *s,
			     struct fleet_cell *ret)
{
	struct rate_yardstick y = rate_yardstick(s->reading->expected, 0, m->key->bytes);

	if (!m->key->metric || !metric_is_rate(m->key->metric) || m->key->metric->staged ||
	    m->key->metric->both_ways || y.by != RATE_BY_PATH)
		return false;
	*ret = (struct fleet_cell){.key = m->key,
				   .change = change_of(m->key, s->value, y.gbps),
				   .limit = 1 - rate_slow_share(y.by),
				   .value = s->value,
				   .usual = y.gbps,
				   .sure = true};
	return true;
}

/* ---- the cells of each host ---- */

struct cells {
	struct fleet_cell *items;
	size_t n;
};

static void add_cells(struct arena *scratch, const struct measured *m, double sigmas,
		      struct cells *by_host)
{
	for (size_t i = 0; i < m->cluster_n; i++) {
		const struct cluster *c = &m->clusters[i];

		for (size_t j = 0; j < c->n; j++) {
			const struct sample *s = &c->samples[j];
			struct cells *to = &by_host[s->host];
			struct fleet_cell cell;

			if (c->n >= FLEET_ENOUGH && c->median > 0)
				cell = cell_of(m, c, s, sigmas);
			else if (!cell_of_expected(m, s, &cell))
				continue;
			*ARENA_PUSH(scratch, to->items, to->n) = cell;
		}
	}
}

static int compare_cells(const void *a, const void *b)
{
	const struct figure_key *x = ((const struct fleet_cell *)a)->key;
	const struct figure_key *y = ((const struct fleet_cell *)b)->key;
	int r = compare_metrics(x, y);

	r = r ? r : x->initiator - y->initiator;
	r = r ? r : x->target - y->target;
	r = r ? r : strcmp(x->nic, y->nic);
	return r ? r : strcmp(x->peer, y->peer);
}

static void decompose_host(struct fleet *f, struct fleet_group *g, const struct fleet_host *h,
			   struct cells *c)
{
	size_t same;

	if (c->n)
		qsort(c->items, c->n, sizeof(*c->items), compare_cells);
	for (size_t i = 0; i < c->n; i += same) {
		for (same = 1; i + same < c->n &&
			       compare_metrics(c->items[i].key, c->items[i + same].key) == 0;)
			same++;
		fleet_decompose(f, g, h, &c->items[i], same);
	}
}

/* ---- two usual values ---- */

static void take_names(struct fleet *f, const struct fleet_group *g, const struct cluster *c,
		       const char ***names, size_t *n)
{
	for (size_t i = 0; i < c->n; i++)
		*ARENA_PUSH(f->arena, *names, *n) = g->hosts[c->samples[i].host]->name;
}

/* Pairs of the same metric that split into equally many hosts are reported once. */
static void add_figure_split(struct fleet *f, struct fleet_group *g, const struct measured *m)
{
	size_t better = m->key->higher_is_better ? 0 : 1;
	struct fleet_figure_split s = {.what = m->key->what,
				       .unit = m->key->unit,
				       .initiator = m->key->initiator,
				       .target = m->key->target};

	for (size_t i = 0; i < g->figure_split_n; i++) {
		struct fleet_figure_split *have = &g->figure_splits[i];

		if (strcmp(have->what, s.what) == 0 && have->host_n[0] == m->clusters[better].n &&
		    have->host_n[1] == m->clusters[1 - better].n) {
			have->more++;
			return;
		}
	}
	for (size_t i = 0; i < 2; i++) {
		const struct cluster *c = &m->clusters[i ? 1 - better : better];

		s.values[i] = c->median;
		take_names(f, g, c, &s.hosts[i], &s.host_n[i]);
	}
	*ARENA_PUSH(f->arena, g->figure_splits, g->figure_split_n) = s;
}

/* ---- a group ---- */

static void add_failures(struct fleet *f, struct fleet_group *g, const struct fleet_host *h)
{
	for (size_t i = 0; i < h->failure_n; i++) {
		const struct fleet_failure *x = &h->failures[i];
		struct fleet_slow *s = ARENA_PUSH(f->arena, g->slow, g->slow_n);

		*s = (struct fleet_slow){.cause = CAUSE_FAILED,
					 .host = h->name,
					 .a = x->initiator,
					 .b = x->target,
					 .unit = "",
					 .kind = x->kind};
		*ARENA_PUSH(f->arena, s->figures, s->figure_n) =
			(struct fleet_slow_figure){.what = x->what, .unit = ""};
	}
}

static struct sample *samples_of(const struct fleet_group *g, struct arena *scratch, size_t *ret_n)
{
	struct sample *s = NULL;
	size_t n = 0;

	for (unsigned h = 0; h < g->host_n; h++)
		for (size_t i = 0; i < g->hosts[h]->reading_n; i++)
			*ARENA_PUSH(scratch, s, n) =
				(struct sample){g->hosts[h]->readings[i].key, h,
						g->hosts[h]->readings[i].median,
						&g->hosts[h]->readings[i]};
	if (n)
		qsort(s, n, sizeof(*s), compare_samples);
	*ret_n = n;
	return s;
}

static int compare_slow(const void *a, const void *b)
{
	const struct fleet_slow *x = a, *y = b;

	if (x->cause != y->cause && (x->cause == CAUSE_FAILED || y->cause == CAUSE_FAILED))
		return x->cause == CAUSE_FAILED ? -1 : 1;
	if (x->change < y->change || x->change > y->change)
		return x->change < y->change ? -1 : 1;
	if (x->host != y->host)
		return strcmp(x->host, y->host);
	if (x->cause != y->cause)
		return (int)x->cause - (int)y->cause;
	return x->a != y->a ? x->a - y->a : x->b - y->b;
}

void fleet_compare_figures(struct fleet *f, struct fleet_group *g)
{
	struct arena *scratch = arena_new();
	struct cells *by_host = arena_alloc(scratch, g->host_n, sizeof(*by_host));
	struct measured *measured = NULL;
	size_t n, same, measured_n = 0;
	struct sample *s = samples_of(g, scratch, &n);

	for (size_t i = 0; i < n; i += same) {
		struct measured *m = ARENA_PUSH(scratch, measured, measured_n);

		for (same = 1; i + same < n && s[i + same].key == s[i].key;)
			same++;
		m->key = &f->figure_keys[s[i].key - 1];
		find_clusters(&s[i], same, m);
	}
	pool_sigmas(measured, measured_n);
	for (size_t i = 0; i < measured_n; i++) {
		if (measured[i].cluster_n == 2)
			add_figure_split(f, g, &measured[i]);
		add_cells(scratch, &measured[i], sigmas_for(n), by_host);
	}
	for (size_t h = 0; h < g->host_n; h++) {
		add_failures(f, g, g->hosts[h]);
		decompose_host(f, g, g->hosts[h], &by_host[h]);
	}
	if (g->slow_n)
		qsort(g->slow, g->slow_n, sizeof(*g->slow), compare_slow);
	arena_free(scratch);
}
