/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict chain of an ordered pair: each link of the way judged for itself, then together. */
#include "topology/topology_impl.h"

#include "machine/card.h"

#include <string.h>

/* One pair under judgement. */
struct pair {
	const struct survey *s;
	const struct path *p;
	const struct endpoint *initiator, *target;
	const struct gpu *gpu, *target_gpu; /* NULL: a NIC */
};

static struct chain_link link_of(enum chain_state state, enum chain_reason reason)
{
	return (struct chain_link){.state = state, .reason = reason};
}

static struct chain_link link_at(enum chain_state state, enum chain_reason reason,
				 const struct pci_function *at, int64_t value, int64_t value2)
{
	return (struct chain_link){state, reason, at, value, value2, NULL};
}

static struct chain_link not_applicable(void)
{
	return link_of(CHAIN_NA, REASON_NONE);
}

static bool between_gpus(const struct pair *pr)
{
	return pr->gpu && pr->target_gpu;
}

/* Whichever end is a GPU; of two, the target: its memory is to be reached. */
static const struct gpu *the_gpu(const struct pair *pr)
{
	return pr->target_gpu ? pr->target_gpu : pr->gpu;
}

static bool tree_unknown(const struct path *p)
{
	return !p->common && p->tree_class == PATH_UNKNOWN;
}

/* ---- path ---- */

static bool status_ok(const struct pair *pr, enum p2p_cap cap)
{
	const struct machine *m = pr->s->m;

	return m->pairs &&
	       fact_is(m->pairs[pr->gpu->index * m->gpu_n + pr->target_gpu->index].p2p[cap],
		       P2P_OK);
}

/*
 * Cards with links but without a bridge are in order. Where NVSwitches are meant to join the GPUs
 * and do not, PCIe is left only if the driver offers it.
 */
static bool nvlink_missing(const struct pair *pr)
{
	const struct gpu_links *links = pr->s->links;

	return between_gpus(pr) && pr->s->nvswitch && links[pr->gpu->index].exist &&
	       links[pr->target_gpu->index].exist;
}

static struct chain_link judge_path(const struct pair *pr)
{
	const struct path *p = pr->p;

	if (p->nvlinks)
		return link_at(CHAIN_OK, REASON_NVLINK_UP, NULL, p->nvlinks, 0);
	if (nvlink_missing(pr))
		return link_of(status_ok(pr, P2P_PCI) ? CHAIN_POSSIBLE : CHAIN_BAD,
			       REASON_NVLINK_DOWN);
	if (p->common)
		return link_at(CHAIN_OK, REASON_COMMON_BRIDGE, p->common, 0, 0);
	if (p->class == PATH_UNKNOWN)
		return link_of(CHAIN_UNKNOWN, REASON_PATH_UNKNOWN);
	return link_of(CHAIN_OK, REASON_THROUGH_HOST);
}

/* ---- switch ---- */

/*
 * PCIe 6.0, 6.12: RR sends a peer's requests up, EC may (its vector is not read). SV only checks
 * who sends, UF only concerns what is redirected already, TB and DT only translated requests.
 */
bool acs_redirects_requests(struct fact_int acs_ctl)
{
	return fact_known(acs_ctl) && acs_ctl.value & (PCI_ACS_RR | PCI_ACS_EC);
}

bool acs_redirects_completions(struct fact_int acs_ctl)
{
	return fact_known(acs_ctl) && acs_ctl.value & PCI_ACS_CR;
}

static bool same_device(const struct pci_function *a, const struct pci_function *b)
{
	return a->address.domain == b->address.domain && a->address.bus == b->address.bus &&
	       a->address.device == b->address.device;
}

/* Endpoints take part in ACS only as functions of one device, where packets turn inside it. */
static struct fact_int acs_between(const struct pci_function *port,
				   const struct pci_function *other)
{
	if (!pci_is_bridge(port) && !same_device(port, other))
		return fact_int_absent("an endpoint routes nothing");
	return port->acs_ctl;
}

/* Below a common bridge a redirect is a fact; between root ports the chipset decides what follows.
 */
static struct chain_link judge_below_bridge(const struct path *p, struct fact_int near,
					    struct fact_int far)
{
	if (acs_redirects_requests(near))
		return link_at(CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT, p->initiator_port,
			       near.value, 0);
	if (acs_redirects_completions(far))
		return link_at(CHAIN_BAD, REASON_ACS_COMPLETION_REDIRECT, p->target_port, far.value,
			       0);
	return link_of(CHAIN_OK, REASON_ACS_CLEAR);
}

static struct chain_link judge_root_ports(const struct path *p, struct fact_int near,
					  struct fact_int far)
{
	if (acs_redirects_requests(near) || acs_redirects_completions(near))
		return link_at(CHAIN_POSSIBLE, REASON_ACS_ROOT_PORT, p->initiator_port, near.value,
			       0);
	if (acs_redirects_requests(far) || acs_redirects_completions(far))
		return link_at(CHAIN_POSSIBLE, REASON_ACS_ROOT_PORT, p->target_port, far.value, 0);
	return link_of(CHAIN_OK, REASON_ACS_CLEAR);
}

static struct chain_link judge_switch(const struct pair *pr)
{
	const struct path *p = pr->p;
	struct fact_int near = acs_between(p->initiator_port, p->target_port);
	struct fact_int far = acs_between(p->target_port, p->initiator_port);
	struct chain_link l;

	if (p->nvlinks)
		return not_applicable();
	if (tree_unknown(p))
		return link_of(CHAIN_UNKNOWN, REASON_PATH_UNKNOWN);
	l = p->common ? judge_below_bridge(p, near, far) : judge_root_ports(p, near, far);
	if (l.state == CHAIN_OK && (fact_unknown(near) || fact_unknown(far)))
		return link_at(CHAIN_UNKNOWN, REASON_ACS_UNREADABLE,
			       fact_unknown(near) ? p->initiator_port : p->target_port, 0, 0);
	return l;
}

/* ---- driver ---- */

/* Cards without mailboxes need the driver to have BAR1 P2P: only GB20x does, from 590 on. */
static bool bar1_in_driver(const struct pair *pr)
{
	return pr->s->driver_major >= 590 && fact_or(pr->target_gpu->compute_capability, 0) >= 120;
}

static bool bar1_covers_vram(const struct gpu *g)
{
	return fact_known(g->bar1_bytes) && fact_known(g->vram_bytes) &&
	       g->bar1_bytes.value >= g->vram_bytes.value;
}

/*
 * ForceP2P makes the driver say yes and gives it nothing to do it with. Only an edited open module
 * has the mechanism, which its functions tell, not its version.
 */
static struct chain_link judge_forced(const struct pair *pr)
{
	const struct nvidia_driver *d = &pr->s->m->driver;
	bool edited = fact_is_not(d->flavor, DRIVER_PROPRIETARY) && !fact_is(d->bar1_p2p.loaded, 0);

	if (fact_is(d->bar1_p2p.loaded, 1) && bar1_covers_vram(pr->target_gpu))
		return link_of(CHAIN_OK, REASON_DRIVER_OK);
	return link_of(edited && bar1_covers_vram(pr->target_gpu) ? CHAIN_POSSIBLE : CHAIN_BAD,
		       REASON_DRIVER_FORCED);
}

/* Either GPU's key counts for the pair. */
static bool p2p_is_forced(const struct pair *pr)
{
	return pr->s->forced[pr->gpu->index].p2p || pr->s->forced[pr->target_gpu->index].p2p;
}

static bool is_forced(const struct pair *pr)
{
	return p2p_is_forced(pr) && pr->s->cards[pr->target_gpu->index] == CARD_BAR1_ONLY &&
	       !pr->p->nvlinks && !bar1_in_driver(pr);
}

/* Whatever code the driver gives for two such cards: it has no P2P over PCIe for them. */
static bool is_geforce_refusal(const struct pair *pr, int64_t status)
{
	const enum card_kind *cards = pr->s->cards;

	return (status == P2P_CHIPSET_NOT_SUPPORTED || status == P2P_GPU_NOT_SUPPORTED ||
		status == P2P_NOT_SUPPORTED) &&
	       cards[pr->gpu->index] == CARD_BAR1_ONLY &&
	       cards[pr->target_gpu->index] == CARD_BAR1_ONLY;
}

static struct chain_link judge_status(const struct pair *pr)
{
	static const enum p2p_cap caps[] = {P2P_READ, P2P_WRITE};
	const struct machine *m = pr->s->m;
	struct chain_link unknown = link_of(CHAIN_UNKNOWN, REASON_DRIVER_UNKNOWN);
	const struct gpu_pair *gp;
	bool known = true;

	if (!m->pairs)
		return unknown;
	gp = &m->pairs[pr->gpu->index * m->gpu_n + pr->target_gpu->index];
	for (size_t i = 0; i < sizeof(caps) / sizeof(*caps); i++) {
		struct fact_int status = gp->p2p[caps[i]];

		if (!fact_known(status) || status.value == P2P_STATUS_UNKNOWN)
			known = false;
		else if (status.value != P2P_OK)
			return link_at(CHAIN_BAD,
				       is_geforce_refusal(pr, status.value) ? REASON_DRIVER_GEFORCE
									    : REASON_DRIVER_STATUS,
				       NULL, status.value, caps[i]);
	}
	return known ? link_of(CHAIN_OK, REASON_DRIVER_OK) : unknown;
}

/* nvidia-peermem, or dma-buf: open modules (or CUDA's own word) on a kernel with dma-buf MRs. */
static struct chain_link judge_rdma(const struct pair *pr)
{
	const struct machine *m = pr->s->m;
	const struct gpu *g = the_gpu(pr);
	struct fact_int geforce = card_is_geforce(g);
	bool exports = fact_is(m->driver.flavor, DRIVER_OPEN) || fact_is(g->dma_buf, 1);
	bool exports_unknown = !fact_known(m->driver.flavor) && !fact_known(g->dma_buf);

	if (fact_is(geforce, 1))
		return link_at(CHAIN_BAD, REASON_GPU_UNSUPPORTED, g->pci, 0, 0);
	if (!fact_known(geforce))
		return link_of(CHAIN_UNKNOWN, REASON_DRIVER_UNKNOWN);
	if (fact_is(m->peermem.registered, 1) || (exports && fact_is(m->kernel.dma_buf, 1)))
		return link_of(CHAIN_OK, REASON_RDMA_READY);
	/* Some OFED releases register without the directory that shows it. */
	if (fact_is(m->peermem.loaded, 1))
		return link_of(CHAIN_POSSIBLE, REASON_RDMA_NO_PEERMEM);
	if (fact_unknown(m->peermem.loaded) || fact_unknown(m->kernel.dma_buf) ||
	    (exports_unknown && fact_is(m->kernel.dma_buf, 1)))
		return link_of(CHAIN_UNKNOWN, REASON_DRIVER_UNKNOWN);
	return link_of(CHAIN_BAD, REASON_RDMA_NO_PEERMEM);
}

/* What the driver's resource manager says of the way; it knows whether the mechanism is there. */
static struct chain_link judge_connection(const struct pair *pr, struct chain_link status)
{
	const struct machine *m = pr->s->m;
	const struct gpu_pair *gp = &m->pairs[pr->gpu->index * m->gpu_n + pr->target_gpu->index];

	if (!pr->p->nvlinks && pr->s->cards[pr->target_gpu->index] == CARD_BAR1_ONLY &&
	    fact_is(gp->rm.connection, RM_CONNECTION_MAILBOX))
		return link_of(CHAIN_BAD, REASON_DRIVER_MAILBOX);
	if (!is_forced(pr) || (driver_means_bar1(m, pr->gpu->index, pr->target_gpu->index) &&
			       bar1_covers_vram(pr->target_gpu)))
		return status;
	return judge_forced(pr);
}

static struct chain_link judge_driver(const struct pair *pr)
{
	struct chain_link status;

	if (fact_is(pr->s->m->driver.loaded, 0))
		return link_of(CHAIN_BAD, REASON_DRIVER_ABSENT);
	if (!between_gpus(pr))
		return judge_rdma(pr);
	status = judge_status(pr);
	return status.state == CHAIN_OK ? judge_connection(pr, status) : status;
}

/* ---- host bridge ---- */

enum known { KNOWN_NO, KNOWN_YES, KNOWN_NOTHING };

/*
 * The driver's list for reads over BAR1 (p2p_caps.c, cpu.c): every Zen, and Xeon of model 143
 * (Sapphire Rapids). Linux' list is for p2pdma, which NVIDIA's driver does not use.
 */
static enum known on_cpu_list(const struct cpu *cpu)
{
	if (!fact_known(cpu->vendor))
		return KNOWN_NOTHING;
	if (cpu->vendor.value == CPU_AMD && fact_known(cpu->family))
		return cpu->family.value >= 0x17 ? KNOWN_YES : KNOWN_NO;
	if (cpu->vendor.value == CPU_INTEL && fact_known(cpu->family) && fact_known(cpu->model))
		return cpu->family.value == 6 && cpu->model.value == 143 ? KNOWN_YES : KNOWN_NO;
	return cpu->vendor.value == CPU_AMD || cpu->vendor.value == CPU_INTEL ? KNOWN_NOTHING
									      : KNOWN_NO;
}

static bool uses_bar1(const struct pair *pr)
{
	return pr->s->cards[pr->target_gpu->index] == CARD_BAR1_ONLY ||
	       pr->s->forced[pr->target_gpu->index].bar1;
}

/* SYS also stands between the NUMA nodes of one socket, which share their host bridge. */
static bool crosses_sockets(const struct pair *pr)
{
	struct fact_int a = pr->initiator->pci->numa_node, b = pr->target->pci->numa_node;
	unsigned n = pr->s->nodes_per_socket;

	if (pr->p->pci_class != PATH_SYS)
		return false;
	if (n == 0 || !fact_known(a) || !fact_known(b) || a.value < 0 || b.value < 0)
		return true;
	return a.value / n != b.value / n;
}

static struct chain_link judge_forwarding(const struct pair *pr)
{
	enum known listed = on_cpu_list(&pr->s->m->cpu);

	if (listed == KNOWN_YES)
		return link_of(CHAIN_OK, REASON_HOST_BRIDGE_KNOWN);
	if (!between_gpus(pr))
		return link_of(CHAIN_UNKNOWN, REASON_HOST_BRIDGE_UNKNOWN);
	if (uses_bar1(pr))
		return listed == KNOWN_NO ? link_of(CHAIN_POSSIBLE, REASON_HOST_BRIDGE_WRITES_ONLY)
					  : link_of(CHAIN_UNKNOWN, REASON_HOST_BRIDGE_UNKNOWN);
	/* With mailboxes the driver goes by its table of chipsets and answers CNS for others. */
	if (!p2p_is_forced(pr) && judge_driver(pr).state == CHAIN_OK)
		return link_of(CHAIN_OK, REASON_HOST_BRIDGE_KNOWN);
	return link_of(CHAIN_UNKNOWN, REASON_HOST_BRIDGE_UNKNOWN);
}

static struct chain_link judge_host_bridge(const struct pair *pr)
{
	struct chain_link l;

	if (pr->p->nvlinks || pr->p->common)
		return not_applicable();
	if (pr->p->pci_class == PATH_UNKNOWN)
		return link_of(CHAIN_UNKNOWN, REASON_PATH_UNKNOWN);
	l = judge_forwarding(pr);
	if (l.state == CHAIN_OK && crosses_sockets(pr))
		return link_of(CHAIN_POSSIBLE, REASON_CROSS_SOCKET);
	return l;
}

/* ---- IOMMU ---- */

static struct observation seen_between(const struct pair *pr)
{
	return between_gpus(pr) ? survey_observation(pr->s, pr->gpu->index, pr->target_gpu->index)
				: (struct observation){0};
}

/* Possible until something shows it: logged faults, or a copy that the driver allowed and that came
 * out wrong. */
static struct chain_link judge_translation(const struct pair *pr)
{
	const struct pci_function *f = pr->initiator->pci;
	const struct observed *fails = seen_between(pr).fails;
	enum iommu_evidence evidence = IOMMU_NO_EVIDENCE;

	if (pr->s->iommu_faults[f->index])
		evidence = IOMMU_FAULT_LOGGED;
	else if (fails && fails->kind == OBSERVED_PEER_COPY && judge_driver(pr).state == CHAIN_OK)
		evidence = IOMMU_COPY_FAILED;
	return link_at(evidence ? CHAIN_BAD : CHAIN_POSSIBLE, REASON_IOMMU_TRANSLATING, f, evidence,
		       0);
}

/* Requests carry the initiator's ID and are translated by its group; completions go by ID. */
static struct chain_link judge_iommu(const struct pair *pr)
{
	const struct pci_function *f = pr->initiator->pci;
	const char *type = fact_str_or(f->iommu_type, "");

	if (pr->p->nvlinks)
		return not_applicable();
	if (fact_is(pr->s->m->kernel.iommus, 0) || fact_absent(f->iommu_group))
		return link_of(CHAIN_OK, REASON_IOMMU_OFF);
	if (strcmp(type, "identity") == 0)
		return link_of(CHAIN_OK, REASON_IOMMU_IDENTITY);
	if (strncmp(type, "DMA", 3) == 0)
		return judge_translation(pr);
	return link_at(CHAIN_UNKNOWN, REASON_IOMMU_UNKNOWN, f, 0, 0);
}

/* ---- exposure ---- */

/* No card that depends on BAR1 has as little memory as the BAR1 that it starts with. */
#define BAR1_SMALLEST (256 << 20)

static struct chain_link judge_bar1(const struct gpu *g)
{
	bool small = fact_known(g->bar1_bytes) &&
		     (fact_known(g->vram_bytes) ? g->bar1_bytes.value < g->vram_bytes.value
						: g->bar1_bytes.value <= BAR1_SMALLEST);

	if (bar1_covers_vram(g))
		return link_at(CHAIN_OK, REASON_EXPOSED_BAR1, g->pci, 0, 0);
	if (small)
		return link_at(CHAIN_BAD, REASON_BAR1_SMALL, g->pci, g->bar1_bytes.value,
			       fact_or(g->vram_bytes, 0));
	return link_at(CHAIN_UNKNOWN, REASON_EXPOSURE_UNKNOWN, g->pci, 0, 0);
}

/* GPUDirect RDMA maps windows of BAR1: any size serves. Nothing of a NIC need be exposed to a GPU.
 */
static struct chain_link judge_rdma_exposure(const struct gpu *g)
{
	if (!g)
		return not_applicable();
	if (fact_known(g->bar1_bytes) && g->bar1_bytes.value > 0)
		return link_at(CHAIN_OK, REASON_EXPOSED_BAR1, g->pci, 0, 0);
	return link_at(CHAIN_UNKNOWN, REASON_EXPOSURE_UNKNOWN, g->pci, 0, 0);
}

static struct chain_link judge_exposure(const struct pair *pr)
{
	const struct gpu *g = pr->target_gpu;

	if (pr->p->nvlinks)
		return link_of(CHAIN_OK, REASON_EXPOSED_NVLINK);
	if (!between_gpus(pr))
		return judge_rdma_exposure(g);
	if (uses_bar1(pr))
		return judge_bar1(g);
	if (pr->s->cards[g->index] == CARD_MAILBOX)
		return link_at(CHAIN_OK, REASON_EXPOSED_MAILBOX, g->pci, 0, 0);
	if (bar1_covers_vram(g))
		return link_at(CHAIN_OK, REASON_EXPOSED_BAR1, g->pci, 0, 0);
	return link_at(CHAIN_UNKNOWN, REASON_EXPOSURE_UNKNOWN, g->pci, 0, 0);
}

/* ---- NCCL and what was seen ---- */

static struct chain_link judge_nccl_policy(const struct pair *pr)
{
	enum nccl_path path = nccl_path_of(pr->p);
	enum nccl_path limit = between_gpus(pr) ? pr->s->p2p_level : pr->s->gdr_level;
	bool sure = !between_gpus(pr) || pr->s->p2p_level_sure;

	if (between_gpus(pr) && pr->s->nccl_disabled)
		return link_of(CHAIN_BAD, REASON_NCCL_DISABLED);
	if (path == NCCL_PATH_N)
		return link_of(CHAIN_UNKNOWN, REASON_PATH_UNKNOWN);
	/* The defaults that differ are PXB and SYS, so up to PXB they agree. */
	if (!sure && path > NCCL_PATH_PXB)
		return link_at(CHAIN_POSSIBLE, REASON_NCCL_DEPENDS, NULL, path, limit);
	if (path > limit)
		return link_at(CHAIN_BAD, REASON_NCCL_LEVEL, NULL, path, limit);
	return link_at(CHAIN_OK, REASON_NCCL_USES, NULL, path, limit);
}

/* What a log shows outweighs what settings and version let one expect; it stays policy. */
static struct chain_link judge_nccl(const struct pair *pr)
{
	const struct observed *seen = seen_between(pr).nccl;
	struct chain_link l = judge_nccl_policy(pr);

	if (!seen)
		return l;
	l = link_at(seen->ok ? CHAIN_OK : CHAIN_BAD,
		    seen->ok ? REASON_NCCL_SEEN : REASON_NCCL_STAGED, NULL, nccl_path_of(pr->p),
		    pr->s->p2p_level);
	l.from = seen->from;
	l.text = seen->text;
	return l;
}

/* A failure counts more than a success: what works sometimes does not work. */
static struct chain_link judge_observed(const struct pair *pr)
{
	struct observation seen = seen_between(pr);
	struct chain_link l = not_applicable();

	if (seen.fails)
		l = link_of(CHAIN_BAD, REASON_OBSERVED_FAILS);
	else if (seen.works)
		l = link_of(CHAIN_OK, REASON_OBSERVED_WORKS);
	if (seen.fails || seen.works)
		l.from = seen.fails ? seen.fails->from : seen.works->from;
	return l;
}

/* ---- verdict ---- */

static struct chain_link (*const judges[CHAIN_STEP_N])(const struct pair *) = {
	[CHAIN_PATH] = judge_path,
	[CHAIN_SWITCH] = judge_switch,
	[CHAIN_HOST_BRIDGE] = judge_host_bridge,
	[CHAIN_IOMMU] = judge_iommu,
	[CHAIN_EXPOSURE] = judge_exposure,
	[CHAIN_DRIVER] = judge_driver,
	[CHAIN_NCCL] = judge_nccl,
	[CHAIN_OBSERVED] = judge_observed,
};

static enum chain_step first_bad(const struct path *p)
{
	for (int i = 0; i < CHAIN_STEP_N; i++)
		if (i != CHAIN_NCCL && p->chain[i].state == CHAIN_BAD)
			return (enum chain_step)i;
	return CHAIN_STEP_N;
}

static bool any(const struct path *p, enum chain_state state)
{
	for (int i = 0; i < CHAIN_STEP_N; i++)
		if (i != CHAIN_NCCL && p->chain[i].state == state)
			return true;
	return false;
}

/*
 * Could what is unknown turn out bad? A root port's ACS, a host bridge or a group could at worst be
 * possible.
 */
static bool unknown_decides(const struct path *p)
{
	const struct chain_link *c = p->chain;

	return c[CHAIN_PATH].state == CHAIN_UNKNOWN || c[CHAIN_EXPOSURE].state == CHAIN_UNKNOWN ||
	       c[CHAIN_DRIVER].state == CHAIN_UNKNOWN ||
	       (c[CHAIN_SWITCH].state == CHAIN_UNKNOWN && p->common);
}

static enum pair_verdict verdict_of(const struct path *p)
{
	if (p->first_bad != CHAIN_STEP_N)
		return PAIR_BLOCKED;
	if (unknown_decides(p))
		return PAIR_UNDECIDED;
	if (any(p, CHAIN_POSSIBLE))
		return PAIR_SUSPECT;
	return any(p, CHAIN_UNKNOWN) ? PAIR_UNDECIDED : PAIR_DIRECT;
}

void path_chain(const struct survey *s, const struct endpoint *a, const struct endpoint *b,
		struct path *p)
{
	const struct pair pr = {s, p, a, b, endpoint_gpu(s->m, a), endpoint_gpu(s->m, b)};

	p->first_bad = CHAIN_STEP_N;
	p->verdict = PAIR_UNDECIDED;
	if (!pr.gpu && !pr.target_gpu)
		return; /* two NICs do not read each other's memory */
	for (int i = 0; i < CHAIN_STEP_N; i++)
		p->chain[i] = judges[i](&pr);
	if (p->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS) {
		p->verdict = PAIR_DIRECT;
		return;
	}
	p->first_bad = first_bad(p);
	p->verdict = verdict_of(p);
}
