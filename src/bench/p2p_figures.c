/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/p2p_figures.h"

#include <math.h>

/* ---- what is expected ---- */

static bool has_link(const struct link_list *l, unsigned id)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->ids[i] == id)
			return true;
	return false;
}

/* Whether another pair's copies run at the same time in this kind of traffic. */
static bool at_once(const struct p2p_cell *a, const struct p2p_cell *b)
{
	enum traffic t = a->metric->traffic;

	return t == TRAFFIC_ALL_TO_ALL || (t == TRAFFIC_N_TO_1 && a->target == b->target) ||
	       (t == TRAFFIC_1_TO_N && a->initiator == b->initiator);
}

/* How many pairs go at the same time over the busiest link of a pair; 1: it alone. */
static size_t sharers(const struct p2p_result *r, const struct paths *p,
		      const struct p2p_cell *cell)
{
	const struct link_list *links =
		&paths_pair(p, (unsigned)cell->initiator, (unsigned)cell->target)->links;
	size_t most = 1;

	for (size_t i = 0; cell->metric->shape == SHAPE_TRAFFIC && i < links->n; i++) {
		size_t n = 0;

		for (const struct p2p_cell *c = r->cells; c < r->cells + r->cell_n; c++)
			n += c->metric == cell->metric && c->bytes == cell->bytes &&
			     at_once(cell, c) &&
			     has_link(&paths_pair(p, (unsigned)c->initiator, (unsigned)c->target)
					       ->links,
				      links->ids[i]);
		most = n > most ? n : most;
	}
	return most;
}

double p2p_expected_gbps(const struct p2p_result *r, const struct paths *p,
			 const struct p2p_cell *c)
{
	const struct metric *m = c->metric;
	unsigned i = (unsigned)c->initiator, j = (unsigned)c->target;
	double forth, back;

	if (m->staged || !metric_is_rate(m) || c->target == c->initiator)
		return 0;
	if (c->target < 0)
		return p->hosts[i].expected_gbps;
	forth = paths_pair(p, i, j)->expected_gbps;
	back = paths_pair(p, j, i)->expected_gbps;
	if (m->both_ways)
		return forth > 0 && back > 0 ? forth + back : 0;
	return (m->read ? back : forth) / (double)sharers(r, p, c);
}

struct figure p2p_figure(const struct p2p_result *r, const struct paths *p,
			 const struct p2p_cell *c)
{
	const struct metric *m = c->metric;

	return (struct figure){
		.what = m->name,
		.metric = m,
		.unit = m->unit,
		.higher_is_better = m->higher_is_better,
		.initiator = c->initiator,
		.target = c->target,
		.bytes = m->shape == SHAPE_TINY ? 0 : c->bytes, /* its own size is in its name */
		.median = c->value.median,
		.low = summary_low(&c->value),
		.high = summary_high(&c->value),
		.samples = (unsigned)c->value.n,
		.nic = "",
		.memory = "",
		.expected =
			m->shape == SHAPE_PAIR && !m->both_ways ? p2p_expected_gbps(r, p, c) : 0,
	};
}

/* ---- all of them ---- */

static void add_figure(struct figures *f, struct figure figure, int initiator, int target)
{
	struct figure *row = figures_add(f, figure.what, initiator, target, figure.median);

	row->bytes = figure.bytes;
	row->low = figure.low;
	row->high = figure.high;
	row->samples = figure.samples;
	row->expected = figure.expected;
}

struct figures *p2p_figures(const struct p2p_result *r, const struct paths *paths,
			    const struct device_info *devices, size_t n)
{
	struct figures *f = figures_new("", "onehop bench p2p");

	for (size_t i = 0; i < n; i++)
		figures_add_gpu(f, devices[i].pci, devices[i].name, devices[i].ordinal);
	for (size_t i = 0; i < r->cell_n; i++) {
		const struct p2p_cell *c = &r->cells[i];
		struct figure figure = p2p_figure(r, paths, c);

		if (!c->value.n || c->data == P2P_WRONG)
			continue;
		add_figure(f, figure, c->initiator, c->target);
		if (c->metric->both_ways && c->initiator != c->target)
			add_figure(f, figure, c->target, c->initiator);
	}
	return f;
}

void p2p_count(const struct p2p_result *result, struct p2p_counts *ret)
{
	*ret = (struct p2p_counts){.cells = result->cell_n};
	for (size_t i = 0; i < result->cell_n; i++) {
		const struct p2p_cell *c = &result->cells[i];

		ret->measured += c->value.n > 0;
		ret->checked += c->data != P2P_NOT_CHECKED;
		ret->wrong += c->data == P2P_WRONG;
	}
}
