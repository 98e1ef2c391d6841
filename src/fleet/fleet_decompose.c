/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a host explains its low figures: the host, a GPU, one direction of a GPU, or a
 * pair. Medians are taken out in that order, as in Tukey's median polish, so that the smallest part
 * that explains them is named.
 */
#include "fleet/fleet.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/order.h"

#include <string.h>

/*
 * So many of a part's figures are low when the part itself is the cause; low: by half of what makes
 * an outlier.
 */
#define COVERAGE 0.9
/* Fewer figures than this do not make a part. */
#define PART_LEAST 2

/* The cells of one metric on one host. */
struct table {
	struct fleet *fleet;
	struct fleet_group *group;
	const struct fleet_host *host;
	struct fleet_cell *cells;
	size_t n;
};

/* Whether a cell belongs to a part; gpu -1: every cell does. */
typedef bool (*part)(const struct figure_key *k, int gpu);

static bool part_all(const struct figure_key *k __attribute__((unused)),
		     int gpu __attribute__((unused)))
{
	return true;
}

static bool part_from(const struct figure_key *k, int gpu)
{
	return k->initiator == gpu;
}

static bool part_to(const struct figure_key *k, int gpu)
{
	return k->target == gpu;
}

static bool part_any(const struct figure_key *k, int gpu)
{
	return k->initiator == gpu || k->target == gpu;
}

/* Sorts; of an even number the upper one, so that a part is low only if more than half of it is. */
static double upper_median(double *v, size_t n)
{
	sort_doubles(v, n);
	return v[n / 2];
}

/* By how much a part is low, as a negative number; 0: it is not the cause. */
static double effect(const struct table *t, part belongs, int gpu)
{
	AUTO_FREE double *changes = xcalloc(t->n, sizeof(*changes));
	AUTO_FREE double *limits = xcalloc(t->n, sizeof(*limits));
	size_t n = 0, low = 0;
	double median, limit;

	for (size_t i = 0; i < t->n; i++) {
		const struct fleet_cell *c = &t->cells[i];

		if (!belongs(c->key, gpu))
			continue;
		low += c->change < -c->limit / 2;
		changes[n] = c->change;
		limits[n++] = c->limit;
	}
	if (n < PART_LEAST || (double)low < COVERAGE * (double)n)
		return 0;
	median = upper_median(changes, n);
	limit = upper_median(limits, n);
	return median < -limit ? median : 0;
}

static void take_out(struct table *t, part belongs, int gpu, double amount)
{
	for (size_t i = 0; i < t->n; i++)
		if (belongs(t->cells[i].key, gpu))
			t->cells[i].change -= amount;
}

/* ---- what is reported ---- */

static struct fleet_slow *slow_of(struct table *t, enum figure_cause cause, int a, int b)
{
	struct fleet_slow *s;

	for (size_t i = 0; i < t->group->slow_n; i++) {
		s = &t->group->slow[i];
		if (s->host == t->host->name && s->cause == cause && s->a == a && s->b == b)
			return s;
	}
	s = ARENA_PUSH(t->fleet->arena, t->group->slow, t->group->slow_n);
	*s = (struct fleet_slow){
		.cause = cause, .host = t->host->name, .a = a, .b = b, .unit = "", .kind = ""};
	return s;
}

/* "nic-write by mlx5_0" where there are several NICs. */
static const char *name_of(struct table *t, const struct figure_key *k)
{
	return *k->nic ? arena_printf(t->fleet->arena, "%s by %s", k->what, k->nic) : k->what;
}

static struct fleet_slow_figure *figure_of(struct table *t, struct fleet_slow *s, const char *what)
{
	struct fleet_slow_figure *f;

	for (size_t i = 0; i < s->figure_n; i++)
		if (strcmp(s->figures[i].what, what) == 0)
			return &s->figures[i];
	f = ARENA_PUSH(t->fleet->arena, s->figures, s->figure_n);
	*f = (struct fleet_slow_figure){.what = what, .unit = t->cells[0].key->unit};
	return f;
}

static struct fleet_slow *add_slow(struct table *t, enum figure_cause cause, int a, int b,
				   const struct fleet_slow_figure *figure)
{
	struct fleet_slow *s = slow_of(t, cause, a, b);
	struct fleet_slow_figure *f = figure_of(t, s, figure->what);

	s->others = t->cells[0].others;
	if (figure->change < f->change) {
		f->change = figure->change;
		f->value = figure->value;
		f->usual = figure->usual;
	}
	return s;
}

/* A single figure. */
static void add_slow_cell(struct table *t, enum figure_cause cause, int a, int b,
			  const struct fleet_cell *c)
{
	const struct fleet_slow_figure figure = {name_of(t, c->key), c->change, c->value, c->usual,
						 c->key->unit};
	struct fleet_slow *s = add_slow(t, cause, a, b, &figure);

	if (c->change < s->change) {
		s->change = c->change;
		s->value = c->value;
		s->usual = c->usual;
		s->unit = c->key->unit;
	}
}

/* The figures that belong to a part: their medians. */
static void add_slow_part(struct table *t, enum figure_cause cause, part belongs, int gpu,
			  double change)
{
	AUTO_FREE double *values = xcalloc(t->n, sizeof(*values));
	AUTO_FREE double *usuals = xcalloc(t->n, sizeof(*usuals));
	struct fleet_slow_figure figure = {.what = t->cells[0].key->what, .change = change};
	struct fleet_slow *s;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (belongs(t->cells[i].key, gpu)) {
			values[n] = t->cells[i].value;
			usuals[n++] = t->cells[i].usual;
		}
	figure.value = upper_median(values, n);
	figure.usual = upper_median(usuals, n);
	s = add_slow(t, cause, gpu, -1, &figure);
	if (change < s->change) {
		s->change = change;
		s->value = s->usual = 0;
		s->unit = t->cells[0].key->unit;
	}
}

/* ---- the parts ---- */

static void explain_host(struct table *t)
{
	double e = t->n > PART_LEAST ? effect(t, part_all, -1) : 0;

	if (e < 0) {
		add_slow_part(t, CAUSE_HOST, part_all, -1, e);
		take_out(t, part_all, -1, e);
	}
}

static const struct {
	enum figure_cause cause;
	part belongs;
} gpu_parts[] = {
	{CAUSE_GPU, part_any},
	{CAUSE_GPU_FROM, part_from},
	{CAUSE_GPU_TO, part_to},
};

static int most_gpu(const struct table *t)
{
	int most = -1;

	for (size_t i = 0; i < t->n; i++) {
		most = t->cells[i].key->initiator > most ? t->cells[i].key->initiator : most;
		most = t->cells[i].key->target > most ? t->cells[i].key->target : most;
	}
	return most;
}

/* With two GPUs, a GPU and a pair cannot be distinguished. */
static void explain_gpus(struct table *t)
{
	int most = most_gpu(t);

	for (size_t i = 0; most >= 2 && i < sizeof(gpu_parts) / sizeof(gpu_parts[0]); i++) {
		for (int gpu = 0; gpu <= most; gpu++) {
			double e = effect(t, gpu_parts[i].belongs, gpu);

			if (e < 0) {
				add_slow_part(t, gpu_parts[i].cause, gpu_parts[i].belongs, gpu, e);
				take_out(t, gpu_parts[i].belongs, gpu, e);
			}
		}
	}
}

static bool is_low(const struct fleet_cell *c)
{
	return c->change < -c->limit && c->sure;
}

/* The same measurement in the other direction. */
static const struct fleet_cell *reverse_of(const struct table *t, const struct fleet_cell *c)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->cells[i].key->initiator == c->key->target &&
		    t->cells[i].key->target == c->key->initiator)
			return &t->cells[i];
	return NULL;
}

static void explain_cell(struct table *t, const struct fleet_cell *c)
{
	int a = c->key->initiator, b = c->key->target;
	const struct fleet_cell *reverse = a >= 0 && b >= 0 ? reverse_of(t, c) : NULL;

	if (a < 0 && b < 0)
		add_slow_cell(t, CAUSE_HOST, -1, -1, c);
	else if (a < 0 || b < 0)
		add_slow_cell(t, CAUSE_GPU, a < 0 ? b : a, -1, c);
	else if (reverse && is_low(reverse))
		add_slow_cell(t, CAUSE_PAIR, a < b ? a : b, a < b ? b : a, c);
	else
		add_slow_cell(t, CAUSE_WAY, a, b, c);
}

void fleet_decompose(struct fleet *f, struct fleet_group *g, const struct fleet_host *h,
		     struct fleet_cell *cells, size_t n)
{
	struct table t = {f, g, h, cells, n};

	explain_host(&t);
	explain_gpus(&t);
	for (size_t i = 0; i < n; i++)
		if (is_low(&cells[i]))
			explain_cell(&t, &cells[i]);
}
