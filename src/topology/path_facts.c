/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for all pairs of a machine, looked up once before the pairs are judged. */
#include "topology/topology_impl.h"

#include "base/alloc.h"
#include "machine/observed.h"
#include "machine/usable.h"

#include <string.h>

/* ---- NVLink ---- */

static const struct pci_function *remote_gpu(const struct machine *m, const struct nvlink *l)
{
	struct pci_address a;

	if (!fact_known(l->remote) || pci_address_parse(l->remote.value, &a) < 0)
		return NULL;
	return pci_find(m, a);
}

static void collect_link(const struct machine *m, const struct nvlink *l, struct gpu_links *ret)
{
	const struct pci_function *remote;

	ret->exist |= fact_known(l->active);
	if (!fact_is(l->active, 1))
		return;
	if (fact_is(l->remote_type, NVLINK_REMOTE_SWITCH)) {
		ret->to_switch++;
		return;
	}
	remote = remote_gpu(m, l);
	if (remote)
		ret->peer[ret->peer_n++] = remote;
	else
		ret->unnamed++;
}

static void collect_links(const struct machine *m, const struct gpu *g, struct gpu_links *ret)
{
	unsigned n = g->nvlink_n < GPU_NVLINKS ? g->nvlink_n : GPU_NVLINKS;

	for (unsigned i = 0; i < n; i++)
		collect_link(m, &g->nvlinks[i], ret);
	ret->up = g->nvlink_active;
	if (fact_absent(ret->up) || (fact_unknown(ret->up) && card_lacks_nvlink(g)))
		ret->up = fact_int(0, "this chip has no NVLink");
}

/* ---- cards and driver ---- */

static struct forced forced_by_registry(const struct path_facts *s, const struct gpu *g)
{
	const struct nvidia_driver *d = &s->m->driver;

	return (struct forced){
		.p2p = driver_forced_p2p(d, g) != 0,
		.bar1 = registry_bar1_choice(d, g) == BAR1_CHOSEN,
	};
}

/* ---- host ---- */

/* Linux numbers the nodes of a socket one after the other; 0 when they do not divide evenly. */
unsigned nodes_per_socket(const struct machine *m)
{
	int64_t sockets = fact_or(m->cpu.sockets, 0);
	unsigned with_cpus = 0;

	for (size_t i = 0; i < m->node_n; i++)
		with_cpus += *fact_str_or(m->nodes[i].cpus, "") != '\0';
	if (sockets < 1 || with_cpus < sockets || with_cpus % sockets != 0)
		return 0;
	return with_cpus / (unsigned)sockets;
}

int topology_socket(const struct machine *m, const struct pci_function *f)
{
	unsigned n = nodes_per_socket(m);

	if (!n || !fact_known(f->numa_node) || f->numa_node.value < 0)
		return -1;
	return (int)(f->numa_node.value / n);
}

/* ---- what was seen ---- */

static struct observation *observation_at(const struct path_facts *s, long initiator, long target)
{
	return &s->observed[(size_t)(initiator + 1) * (s->m->gpu_n + 1) + (size_t)(target + 1)];
}

/* What is wrong with a GPU by itself is so of what it sends and of what it gets. */
static void collect_doubt(struct path_facts *s, const struct observed *o)
{
	observation_at(s, o->initiator, o->target)->doubts = o;
	if (o->target < 0)
		observation_at(s, -1, o->initiator)->doubts = o;
}

/*
 * Only a copy whose data its owner checked shows that a pair works. That CUDA grants access and a
 * transfer was fast shows that the driver uses the path; the data may not have arrived.
 */
static void collect_observed(struct path_facts *s, const struct observed *o)
{
	long n = (long)s->m->gpu_n;
	struct observation *at;

	if (o->initiator < -1 || o->initiator >= n || o->target < -1 || o->target >= n)
		return;
	at = observation_at(s, o->initiator, o->target);
	if (o->kind == OBSERVED_PEER_COPY && o->ok)
		at->works = o;
	if (o->kind == OBSERVED_PEER_ACCESS && o->ok)
		at->access = o;
	if (o->kind == OBSERVED_BANDWIDTH && (!at->rate || o->value > at->rate->value))
		at->rate = o;
	if ((o->kind == OBSERVED_PEER_COPY || o->kind == OBSERVED_PEER_ACCESS) && !o->ok)
		at->fails = o;
	if (o->kind == OBSERVED_RATE && !o->ok)
		at->slow = o;
	if (observed_is_failed_test(o))
		collect_doubt(s, o);
	if (o->kind == OBSERVED_NCCL_TRANSPORT && (!at->nccl || !o->ok))
		at->nccl = o;
}

struct observation path_facts_observation(const struct path_facts *s, size_t initiator,
					  size_t target)
{
	long i = (long)initiator, j = (long)target;
	const struct observation *cells[] = {
		observation_at(s, i, j),
		observation_at(s, i, -1),
		observation_at(s, -1, j),
		observation_at(s, -1, -1),
	};
	struct observation seen = {0};

	for (size_t k = 0; k < sizeof(cells) / sizeof(*cells); k++) {
		if (!seen.works)
			seen.works = cells[k]->works;
		if (!seen.fails)
			seen.fails = cells[k]->fails;
		if (!seen.access)
			seen.access = cells[k]->access;
		if (!seen.rate)
			seen.rate = cells[k]->rate;
		if (!seen.nccl)
			seen.nccl = cells[k]->nccl;
		if (!seen.slow)
			seen.slow = cells[k]->slow;
		if (!seen.doubts)
			seen.doubts = cells[k]->doubts;
	}
	return seen;
}

static void collect_proof(struct path_facts *s, const struct log_line *l)
{
	enum log_proof proof = log_line_proof(l);

	if (proof >= PROOF_PEER_MISALIGNED)
		s->mapping_failed = true;
	else if (proof && l->pci)
		s->failed[l->pci->index] = proof;
}

static void collect_log(struct path_facts *s)
{
	for (size_t i = 0; i < s->m->log_n; i++) {
		const struct log_line *l = &s->m->log[i];

		if (l->kind == LOG_IOMMU_FAULT && l->pci)
			s->iommu_faults[l->pci->index] = true;
		collect_proof(s, l);
	}
}

struct rdma_facts rdma_facts_of(const struct machine *m, const struct gpu *g)
{
	return (struct rdma_facts){
		.geforce = card_is_geforce(g),
		.supported = card_has_gdr(g),
		.exports = gpu_exports_dma_buf(m, g),
		.below_bridge = grdma_gate(m, g, true),
		.apart = grdma_gate(m, g, false),
		.chipset = chipset_without_p2p(g->pci),
	};
}

struct nic_facts nic_facts_of(const struct machine *m, const struct pci_function *nic)
{
	return (struct nic_facts){nic_takes_dma_buf(m, nic), nic_takes_peermem(m, nic)};
}

void path_facts_collect(struct arena *arena, const struct machine *m, struct path_facts *ret)
{
	struct path_facts s = {.m = m};
	size_t side = m->gpu_n + 1;

	s.links = arena_alloc(arena, side, sizeof(*s.links));
	s.cards = arena_alloc(arena, side, sizeof(*s.cards));
	s.undriven = arena_alloc(arena, side, sizeof(*s.undriven));
	s.forced = arena_alloc(arena, side, sizeof(*s.forced));
	s.observed = arena_alloc(arena, side * side, sizeof(*s.observed));
	s.rdma = arena_alloc(arena, side, sizeof(*s.rdma));
	s.nics = arena_alloc(arena, m->pci_n + 1, sizeof(*s.nics));
	s.faults = arena_alloc(arena, m->pci_n + 1, sizeof(*s.faults));
	s.failed = arena_alloc(arena, m->pci_n + 1, sizeof(*s.failed));
	s.iommu_faults = arena_alloc(arena, m->pci_n + 1, sizeof(*s.iommu_faults));
	for (size_t i = 0; i < m->gpu_n; i++) {
		collect_links(m, &m->gpus[i], &s.links[i]);
		s.cards[i] = support_of(m, &m->gpus[i]);
		s.undriven[i] = support_undriven(m, &m->gpus[i]);
		s.faults[m->gpus[i].pci->index] = device_faults(m, m->gpus[i].pci, &m->gpus[i]);
	}
	for (size_t i = 0; i < m->rdma_n; i++) {
		const struct pci_function *f = m->rdma[i].pci;

		if (!f)
			continue;
		s.faults[f->index] = device_faults(m, f, NULL);
		s.nics[f->index] = nic_facts_of(m, f);
	}
	for (size_t i = 0; i < m->gpu_n && m->rdma_n; i++)
		s.rdma[i] = rdma_facts_of(m, &m->gpus[i]);
	for (size_t i = 0; i < m->observed_n; i++)
		collect_observed(&s, &m->observed[i]);
	collect_log(&s);
	s.library = driver_library_fit(&m->driver);
	s.nvswitch = machine_has_nvswitch(m);
	for (size_t i = 0; i < m->gpu_n; i++)
		s.forced[i] = forced_by_registry(&s, &m->gpus[i]);
	s.p2p_level = nccl_p2p_level(m, &s.p2p_level_sure);
	s.gdr_level = nccl_gdr_level(m);
	s.nccl_disabled = nccl_p2p_disabled(m);
	*ret = s;
}
