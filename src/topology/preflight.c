/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways in which a NIC gets at GPU memory: dma-buf and nvidia-peermem. */
#include "topology/preflight.h"

#include "base/array.h"
#include "base/text.h"
#include "machine/usable.h"
#include "topology/topology_impl.h"

static struct chain_link link_of(enum chain_state state, enum chain_reason reason)
{
	return (struct chain_link){.state = state, .reason = reason};
}

/* About a NIC, and the driver that it has. */
static struct chain_link link_nic(enum chain_state state, enum chain_reason reason,
				  const struct pci_function *nic)
{
	return (struct chain_link){
		.state = state,
		.reason = reason,
		.at = nic,
		.text = fact_str_or(nic->driver, NULL),
	};
}

static struct chain_link link_gpu(enum chain_state state, enum chain_reason reason,
				  const struct gpu *g)
{
	return (struct chain_link){.state = state, .reason = reason, .at = g->pci};
}

/*
 * The driver hands BAR1's own addresses to whoever imports a dma-buf, and an IOMMU that translates
 * for the NIC drops them (NVIDIA/open-gpu-kernel-modules#1324). nvidia-peermem has the kernel map
 * them.
 */
static bool is_translated(const struct pci_function *nic)
{
	return text_starts_with(fact_str_or(nic->iommu_type, ""), "DMA");
}

/*
 * The driver must export GPU memory, the kernel have memory regions of dma-buf, the NIC's driver
 * take it.
 */
static struct chain_link judge_dma_buf(const struct gdr_pair *p)
{
	struct fact_int kernel = p->m->kernel.dma_buf;

	if (fact_is(kernel, 0))
		return link_of(CHAIN_BAD, REASON_DMA_BUF_KERNEL);
	if (fact_is(p->gpu->exports, 0))
		return link_of(CHAIN_BAD, REASON_DMA_BUF_MODULES);
	if (fact_is(p->nic->dma_buf, 0))
		return link_nic(CHAIN_BAD, REASON_DMA_BUF_NIC, p->nic_pci);
	if (!fact_known(kernel))
		return link_of(CHAIN_UNKNOWN, REASON_DMA_BUF_UNKNOWN);
	if (!fact_known(p->nic->dma_buf))
		return link_nic(CHAIN_UNKNOWN, REASON_DMA_BUF_NIC_UNKNOWN, p->nic_pci);
	if (!fact_known(p->gpu->exports))
		return link_of(CHAIN_UNKNOWN, REASON_DMA_BUF_UNKNOWN);
	if (is_translated(p->nic_pci))
		return link_nic(CHAIN_POSSIBLE, REASON_DMA_BUF_IOMMU, p->nic_pci);
	return link_of(CHAIN_OK, REASON_DMA_BUF_READY);
}

/* The module must be a client of the RDMA core, and the NIC's driver ask that core. */
static struct chain_link judge_peermem(const struct gdr_pair *p)
{
	const struct peermem *peermem = &p->m->peermem;
	bool registered = fact_is(peermem->registered, 1);

	if (!registered && !fact_is(peermem->loaded, 1))
		return fact_unknown(peermem->loaded)
			       ? link_of(CHAIN_UNKNOWN, REASON_PEERMEM_UNKNOWN)
			       : link_of(CHAIN_BAD, REASON_PEERMEM_ABSENT);
	if (!fact_is(p->nic->peermem, 1))
		return link_nic(CHAIN_UNKNOWN, REASON_RDMA_PEERMEM_UNKNOWN, p->nic_pci);
	/* Some OFED releases register without the directory that shows it. */
	return registered ? link_of(CHAIN_OK, REASON_PEERMEM_READY)
			  : link_of(CHAIN_POSSIBLE, REASON_PEERMEM_UNREGISTERED);
}

/* What keeps the memory of this GPU from this NIC whatever the way. */
static struct chain_link judge_ends(const struct gdr_pair *p)
{
	if (fact_is(p->m->driver.loaded, 0))
		return link_of(CHAIN_BAD, REASON_DRIVER_ABSENT);
	if (fact_is(p->gpu->geforce, 1))
		return link_gpu(CHAIN_BAD, REASON_GPU_UNSUPPORTED, p->g);
	if (fact_is(p->gpu->supported, 0))
		return link_gpu(CHAIN_BAD, REASON_RDMA_GPU_OLD, p->g);
	if (nic_lacks_gdr(p->m, p->nic_pci))
		return link_nic(CHAIN_BAD, REASON_RDMA_NIC_OLD, p->nic_pci);
	if (!fact_known(p->gpu->geforce))
		return link_of(CHAIN_UNKNOWN, REASON_DRIVER_UNKNOWN);
	return link_of(CHAIN_OK, REASON_RDMA_READY);
}

/*
 * The driver's own look at the PCI tree comes last: it matters where something would be exported.
 */
static struct chain_link pass_gate(const struct gdr_pair *p, struct chain_link l)
{
	if (p->gate == GRDMA_ALLOWED || l.state == CHAIN_BAD)
		return l;
	return p->gate == GRDMA_UNKNOWN ? link_gpu(CHAIN_UNKNOWN, REASON_RDMA_GATE_UNKNOWN, p->g)
					: link_gpu(CHAIN_BAD, REASON_RDMA_GATE, p->g);
}

/* A way's reason as the one of the pair, for which the other way is out of the question too. */
static struct chain_link as_pair(struct chain_link l)
{
	static const struct {
		enum chain_reason way, pair;
	} names[] = {
		{REASON_DMA_BUF_READY, REASON_RDMA_READY},
		{REASON_DMA_BUF_KERNEL, REASON_RDMA_NO_PEERMEM},
		{REASON_DMA_BUF_MODULES, REASON_RDMA_NO_PEERMEM},
		{REASON_DMA_BUF_NIC, REASON_RDMA_NIC_DRIVER},
		{REASON_DMA_BUF_NIC_UNKNOWN, REASON_RDMA_NIC_DRIVER_UNKNOWN},
		{REASON_DMA_BUF_UNKNOWN, REASON_DRIVER_UNKNOWN},
		{REASON_PEERMEM_READY, REASON_RDMA_READY},
		{REASON_PEERMEM_ABSENT, REASON_RDMA_NO_PEERMEM},
		{REASON_PEERMEM_UNREGISTERED, REASON_RDMA_NO_PEERMEM},
		{REASON_PEERMEM_UNKNOWN, REASON_DRIVER_UNKNOWN},
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (l.reason == names[i].way) {
			l.reason = names[i].pair;
			break;
		}
	return l;
}

/* Either way serves. The doubts of dma-buf matter where nvidia-peermem is out of the question. */
static struct chain_link choose(struct chain_link peermem, struct chain_link dma_buf)
{
	if (peermem.state == CHAIN_OK || dma_buf.state == CHAIN_OK)
		return peermem.state == CHAIN_OK ? peermem : dma_buf;
	if (peermem.reason == REASON_PEERMEM_UNKNOWN)
		return dma_buf.state == CHAIN_BAD ? peermem : dma_buf;
	return peermem.state == CHAIN_BAD ? dma_buf : peermem;
}

struct preflight preflight_judge(const struct gdr_pair *p)
{
	struct chain_link ends = judge_ends(p), dma_buf, peermem;

	if (ends.state != CHAIN_OK)
		return (struct preflight){.dma_buf = ends, .peermem = ends, .pair = ends};
	dma_buf = judge_dma_buf(p);
	peermem = judge_peermem(p);
	return (struct preflight){
		.dma_buf = pass_gate(p, dma_buf),
		.peermem = pass_gate(p, peermem),
		.pair = pass_gate(p, as_pair(choose(peermem, dma_buf))),
	};
}

/* ---- common bridges ---- */

static bool has_bridge_in_common(const struct pci_function *a, const struct pci_function *b)
{
	for (const struct pci_function *bridge = a->parent; bridge; bridge = bridge->parent)
		if (pci_is_below(b, bridge))
			return true;
	return false;
}

const struct pci_function *direct_nic_beside(const struct machine *m, const struct gpu *g,
					     const struct pci_function *nic)
{
	if (!nic_may_be_direct(nic))
		return NULL;
	for (size_t i = 0; i < m->pci_n; i++)
		if (pci_is_direct_nic(&m->pci[i]) && has_bridge_in_common(g->pci, &m->pci[i]))
			return &m->pci[i];
	return NULL;
}

static enum port_address address_of(const struct rdma_port *p)
{
	const struct rdma_gid *best = rdma_routed_gid(p);

	if (fact_str_is(p->link_layer, "InfiniBand"))
		return PORT_ADDRESS_INFINIBAND;
	if (!fact_known(p->link_layer) || !fact_is(p->gids_listed, 1))
		return PORT_ADDRESS_UNKNOWN;
	if (!best)
		return PORT_ADDRESS_NONE;
	return rdma_gid_scope(best) == GID_IPV4 ? PORT_ADDRESS_IPV4 : PORT_ADDRESS_IPV6;
}

static enum port_address first_address(const struct rdma_device *d)
{
	for (size_t i = 0; i < d->port_n; i++)
		if (fact_str_is(d->ports[i].state, "ACTIVE"))
			return address_of(&d->ports[i]);
	return PORT_ADDRESS_UNKNOWN;
}

const char *port_address_word(enum port_address a)
{
	static const char *const words[PORT_ADDRESS_N] = {"unknown", "none", "ipv6", "ipv4",
							  "infiniband"};

	return (unsigned)a < PORT_ADDRESS_N ? words[a] : "unknown";
}

struct preflight topology_preflight(const struct topology *t, size_t gpu, size_t nic)
{
	const struct machine *m = t->machine;
	const struct gpu *g = &m->gpus[t->endpoints[gpu].index];
	const struct rdma_device *d = &m->rdma[t->endpoints[nic].index];
	struct rdma_facts facts = rdma_facts_of(m, g);
	struct nic_facts nic_facts = nic_facts_of(m, d->pci);
	const struct pci_function *direct = direct_nic_beside(m, g, d->pci);
	bool below = topology_path(t, nic, gpu)->common || direct;
	struct gdr_pair p = {m,      g,          &facts,
			     d->pci, &nic_facts, below ? facts.below_bridge : facts.apart};
	struct preflight r = preflight_judge(&p);

	r.direct = direct;
	r.address = first_address(d);
	return r;
}
