/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest link of a pair's PCIe way, and what a good copy should reach over the pair's path. */
#include "topology/topology_impl.h"

#include <limits.h>
#include <math.h>

static struct fact_int positive(struct fact_int f)
{
	return fact_known(f) && f.value <= 0 ? fact_int_unknown("the link is down") : f;
}

static struct fact_int first_known(struct fact_int a, struct fact_int b)
{
	return fact_known(a) ? a : b;
}

static struct fact_int smaller(struct fact_int a, struct fact_int b)
{
	if (!fact_known(a) || !fact_known(b))
		return first_known(a, b);
	return a.value < b.value ? a : b;
}

static struct fact_int speed_limit(const struct pci_function *f)
{
	return f ? positive(first_known(f->link_speed_max, f->link_speed_cap))
		 : fact_int_unknown(NULL);
}

static struct fact_int width_limit(const struct pci_function *f)
{
	return f ? positive(first_known(f->link_width_max, f->link_width_cap))
		 : fact_int_unknown(NULL);
}

struct fact_int wire_speed_limit(const struct pci_function *f)
{
	return smaller(speed_limit(f), speed_limit(f->parent));
}

struct fact_int wire_width_limit(const struct pci_function *f)
{
	return smaller(width_limit(f), width_limit(f->parent));
}

/*
 * GPUs lower the link's speed, never its width, when nothing runs on them: P0 to P2 are the states
 * under load. What such a link can do is what both its ends can.
 */
static bool may_idle(const struct gpu *g)
{
	return g && (!fact_known(g->performance_state) || g->performance_state.value > 2);
}

struct wire wire_above(const struct pci_function *f, const struct gpu *g)
{
	struct wire w = {.lower = f, .speed = positive(f->link_speed)};
	struct fact_int limit = wire_speed_limit(f);

	w.width = positive(f->link_width);
	if (!fact_known(w.speed) && f->parent)
		w.speed = positive(f->parent->link_speed);
	if (!fact_known(w.width) && f->parent)
		w.width = positive(f->parent->link_width);
	if (may_idle(g) && fact_known(w.speed) && fact_known(limit) &&
	    limit.value > w.speed.value) {
		w.speed = limit;
		w.idle = true;
	}
	if (fact_known(w.speed) && fact_known(w.width))
		w.gbps = pci_link_gbps(w.speed.value, w.width.value);
	return w;
}

/* A function without PCI Express (emulated, or on a root bus) has no link that could be slow. */
bool has_wire(const struct pci_function *f)
{
	return !pci_faces_down(f) && !(fact_absent(f->link_speed) && fact_absent(f->link_width));
}

static void slowest_on_side(const struct endpoint *e, const struct gpu *g,
			    const struct pci_function *stop, struct wire *slowest, bool *gap)
{
	for (const struct pci_function *f = e->pci; f && f != stop; f = f->parent) {
		struct wire w;

		if (!has_wire(f))
			continue;
		w = wire_above(f, f == e->pci ? g : NULL);
		if (w.gbps <= 0)
			*gap = true;
		else if (!slowest->lower || w.gbps < slowest->gbps)
			*slowest = w;
	}
}

static int64_t payload_on_side(const struct pci_function *f, const struct pci_function *stop,
			       int64_t payload)
{
	for (; f && f != stop; f = f->parent)
		if (fact_known(f->payload) && f->payload.value < payload)
			payload = f->payload.value;
	return payload;
}

/*
 * Share of a link that is data. Each packet of at most MPS bytes carries 28 bytes of framing,
 * sequence number, header and LCRC, and 9 % go to acknowledgements, flow control and bubbles. That
 * gives 25.8 GB/s for 4.0 x16 at MPS 256, where two RTX 4090 below one EPYC socket reach 25.6 to
 * 25.9, and 54.3 for 5.0 x16 at MPS 512, where an H200 reaches 55.
 */
static double pcie_efficiency(int64_t payload)
{
	return 0.91 * (double)payload / (double)(payload + 28);
}

static double pcie_expected(const struct endpoint *a, const struct endpoint *b,
			    const struct path *p)
{
	int64_t payload = payload_on_side(a->pci, p->common, INT_MAX);

	payload = payload_on_side(b->pci, p->common, payload);
	return p->link_gbps * pcie_efficiency(payload == INT_MAX ? 256 : payload);
}

static double nvlink_expected(const struct gpu *a, const struct gpu *b, int links)
{
	double one = card_nvlink_gbps(a), other = card_nvlink_gbps(b);

	return links * (one < other ? one : other);
}

/* A link that nobody could read may be slower still. */
static void set_bottleneck(const struct wire *slowest, bool gap, struct path *p)
{
	p->bottleneck = slowest->lower;
	p->bottleneck_speed = slowest->speed;
	p->bottleneck_width = slowest->width;
	p->link_gbps = gap ? 0 : slowest->gbps;
}

/* ---- between sockets ---- */

/* No less than the link to the GPU. */
#define ALL HUGE_VAL

/*
 * What CPUs pass between two sockets for a peer's copy, in GB/s: where eight RTX 4090 or 3090 on
 * PCIe 4.0 x16 were measured with P2P (WU-CVGL/cluster-setup, docs/05_GPU_P2P_GeForce_and_CMP.md;
 * the Xeon: Duanyll/open-gpu-kernel-modules, docs/48g-4090-p2p/test-results). `up` is from the
 * lower socket to the higher.
 */
static const struct interconnect {
	enum cpu_vendor vendor;
	int64_t family, model;
	double up, down;
} interconnects[] = {
	{CPU_AMD, 23, 49, 22, 22},     /* EPYC Rome, 7402: 21.5 to 22.7 */
	{CPU_AMD, 25, 1, 22, 10},      /* EPYC Milan, 7543 */
	{CPU_AMD, 25, 17, ALL, ALL},   /* EPYC Genoa, 9554: 26.3, as within a socket */
	{CPU_INTEL, 6, 143, ALL, ALL}, /* Xeon 4416+: 22.7, as within a socket */
};

/* Raw GB/s of PCIe 4.0 x16: nobody has published what faster links bring across. */
#define MEASURED_LINK_GBPS 31.6

static const struct interconnect *find_interconnect(const struct cpu *c)
{
	for (size_t i = 0; i < sizeof(interconnects) / sizeof(interconnects[0]); i++) {
		const struct interconnect *x = &interconnects[i];

		if (fact_is(c->vendor, x->vendor) && fact_is(c->family, x->family) &&
		    fact_is(c->model, x->model))
			return x;
	}
	return NULL;
}

/* An unknown CPU may be as slow one way as Milan, so that nothing is expected of it. */
static void bind_to_sockets(const struct machine *m, const struct endpoint *a,
			    const struct endpoint *b, struct path *p)
{
	int from = topology_socket(m, a->pci), to = topology_socket(m, b->pci);
	const struct interconnect *x = find_interconnect(&m->cpu);
	double limit;

	if (p->pci_class != PATH_SYS || (from >= 0 && from == to))
		return;
	if (!x || from < 0 || to < 0 || p->link_gbps > MEASURED_LINK_GBPS) {
		p->expected_gbps = 0;
		return;
	}
	limit = from < to ? x->up : x->down;
	p->socket_bound = limit < p->expected_gbps;
	p->expected_gbps = p->socket_bound ? limit : p->expected_gbps;
}

void path_rate(const struct path_facts *s, const struct endpoint *a, const struct endpoint *b,
	       struct path *p)
{
	const struct gpu *g = endpoint_gpu(s->m, a), *h = endpoint_gpu(s->m, b);
	struct wire slowest = {0};
	bool gap = false;

	slowest_on_side(a, g, p->common, &slowest, &gap);
	slowest_on_side(b, h, p->common, &slowest, &gap);
	set_bottleneck(&slowest, gap, p);
	p->expected_gbps = path_is_nvlink(p) ? nvlink_expected(g, h, (int)p->nvlinks.value)
					     : pcie_expected(a, b, p);
	if (!path_is_nvlink(p))
		bind_to_sockets(s->m, a, b, p);
}

static void host_rate(const struct machine *m, const struct endpoint *e, struct path *ret)
{
	struct wire slowest = {0};
	bool gap = false;

	*ret = (struct path){0};
	slowest_on_side(e, endpoint_gpu(m, e), NULL, &slowest, &gap);
	set_bottleneck(&slowest, gap, ret);
	ret->expected_gbps = pcie_expected(e, e, ret);
}

void topology_host_rate(const struct topology *t, size_t endpoint, struct path *ret)
{
	host_rate(t->machine, &t->endpoints[endpoint], ret);
}

double staged_rate_limit(const struct path_facts *s, const struct endpoint *a,
			 const struct endpoint *b)
{
	struct path near, far;

	host_rate(s->m, a, &near);
	host_rate(s->m, b, &far);
	return near.expected_gbps < far.expected_gbps ? near.expected_gbps : far.expected_gbps;
}
