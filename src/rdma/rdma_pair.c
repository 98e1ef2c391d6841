/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/rdma_pair.h"

#include "base/alloc.h"
#include "result/figures.h"

#include <math.h>
#include <string.h>

static const struct {
	const char *value, *verified;
} names[RDMA_MEASURE_N] = {
	[RDMA_WRITE] = {METRIC_NIC_WRITE, METRIC_NIC_WRITE_VERIFIED},
	[RDMA_READ] = {METRIC_NIC_READ, METRIC_NIC_READ_VERIFIED},
	[RDMA_BOTH] = {METRIC_NIC_BOTH, METRIC_NIC_BOTH_VERIFIED},
	[RDMA_LATENCY_WRITE] = {METRIC_NIC_LATENCY_WRITE, NULL},
	[RDMA_LATENCY_IMMEDIATE] = {METRIC_NIC_LATENCY_IMMEDIATE, NULL},
	[RDMA_LATENCY_SEND] = {METRIC_NIC_LATENCY_SEND, NULL},
	[RDMA_LATENCY_READ] = {METRIC_NIC_LATENCY_READ, NULL},
};

const char *rdma_metric(enum rdma_measure m)
{
	return names[m].value;
}

const char *rdma_verified_metric(enum rdma_measure m)
{
	return names[m].verified;
}

double rdma_expected_of(double write_gbps, double read_gbps, enum rdma_measure m)
{
	bool both = write_gbps > 0 && read_gbps > 0;

	return m == RDMA_WRITE          ? write_gbps
	       : m == RDMA_READ         ? read_gbps
	       : m == RDMA_BOTH && both ? write_gbps + read_gbps
					: 0;
}

double rdma_expected(const struct rdma_pair *p, enum rdma_measure m)
{
	return rdma_expected_of(p->write_gbps, p->read_gbps, m);
}

/* ---- counting ---- */

bool rdma_is_largest(const struct rdma_pair *p, const struct rdma_run *r)
{
	for (size_t i = 0; i < p->run_n; i++)
		if (p->runs[i].size.of_rates > r->size.of_rates)
			return false;
	return true;
}

static void count_rates(const struct rdma_pair *p, const struct rdma_run *r, struct rdma_counts *n)
{
	for (int m = 0; r->ran && m < RDMA_LATENCY_WRITE && rdma_is_largest(p, r); m++) {
		const struct rdma_cell *c = &r->result.cells[m];
		double expected = rdma_expected(p, (enum rdma_measure)m);

		n->rated += expected > 0 && c->value.n;
		n->slow += rdma_is_short(c, expected);
	}
}

static void count_run(const struct rdma_run *r, struct rdma_counts *n, bool *works)
{
	n->impossible += !r->ran && r->foresight == RDMA_CANNOT;
	n->not_run += !r->ran && r->foresight != RDMA_CANNOT;
	for (int m = 0; r->ran && m < RDMA_MEASURE_N; m++) {
		const struct rdma_cell *c = &r->result.cells[m];

		n->checked += c->data != RDMA_DATA_NOT_CHECKED;
		n->wrong += c->data == RDMA_DATA_WRONG;
		n->failed += c->done && c->failure.step != RDMA_STEP_NONE &&
			     c->failure.step != RDMA_STEP_DATA;
		n->measured += c->value.n > 0;
		*works = *works || c->value.n > 0;
	}
}

struct rdma_counts rdma_count(const struct rdma_pair *pairs, size_t n)
{
	struct rdma_counts counts = {0};

	for (size_t i = 0; i < n; i++) {
		bool works = false, tried = false;

		for (size_t k = 0; k < pairs[i].run_n; k++) {
			tried = tried || pairs[i].runs[k].ran;
			count_run(&pairs[i].runs[k], &counts, &works);
			count_rates(&pairs[i], &pairs[i].runs[k], &counts);
		}
		counts.pairs += tried;
		counts.working += works;
	}
	return counts;
}

/* ---- figures ---- */

static struct figure *add(struct figures *f, const char *what, const struct nic_port *port,
			  const struct rdma_pair *p, const struct rdma_run *r, double value)
{
	struct figure *row = figures_add(f, what, -1, p->gpu, value);
	char name[PORT_NAME];

	port_name(port, name);
	row->nic = arena_strdup(f->arena, name);
	row->memory = region_way_word(r->way);
	row->path = arena_strdup(f->arena, p->class);
	return row;
}

/* The check of a direction; without one, its failure, unless only the registration failed. */
static void add_check(struct figures *f, const struct nic_port *port, const struct rdma_pair *p,
		      const struct rdma_run *r, enum rdma_measure m)
{
	const struct rdma_cell *c = &r->result.cells[m];
	struct figure *row;

	if (c->data == RDMA_DATA_NOT_CHECKED && c->failure.step == RDMA_STEP_NONE)
		return;
	row = add(f, names[m].verified, port, p, r, c->data == RDMA_DATA_RIGHT);
	if (c->data != RDMA_DATA_RIGHT)
		row->kind = rdma_failure_word(&c->failure);
}

static void add_value(struct figures *f, const struct nic_port *port, const struct rdma_pair *p,
		      const struct rdma_run *r, enum rdma_measure m)
{
	const struct summary *v = &r->result.cells[m].value;
	struct figure *row;

	if (!v->n)
		return;
	row = add(f, names[m].value, port, p, r, v->median);
	row->bytes = rdma_bytes(r->size, m);
	row->queues = rdma_is_latency(m) ? 0 : r->queues;
	row->depth = rdma_is_latency(m) ? 0 : r->depth;
	row->low = summary_low(v);
	row->high = summary_high(v);
	row->samples = (unsigned)v->n;
	row->expected = rdma_expected(p, m);
}

void rdma_add_figures(struct figures *f, const struct nic_port *ports,
		      const struct rdma_pair *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < pairs[i].run_n; k++)
			for (int m = 0; pairs[i].runs[k].ran && m < RDMA_MEASURE_N; m++) {
				const struct rdma_pair *p = &pairs[i];

				if (names[m].verified)
					add_check(f, &ports[p->port], p, &p->runs[k],
						  (enum rdma_measure)m);
				add_value(f, &ports[p->port], p, &p->runs[k], (enum rdma_measure)m);
			}
}
