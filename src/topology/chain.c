/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict chain of an ordered pair: each link of the way judged for itself, then together. */
#include "topology/topology_impl.h"

#include "base/rate.h"
#include "machine/usable.h"
#include "support/card.h"
#include "support/nic.h"
#include "support/support.h"

#include <string.h>

/* One pair under judgement. */
struct pair {
	const struct path_facts *s;
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

/* ---- device ---- */

/* clang-format off */
static const struct {
	enum chain_state state;
	enum chain_reason reason;
	bool peers_only; /* does not keep a NIC from the GPU */
} faults[DEVICE_FAULT_N] = {
	[DEVICE_OFF_BUS] = {CHAIN_BAD, REASON_DEVICE_OFF_BUS, false},
	[DEVICE_ASLEEP] = {CHAIN_UNKNOWN, REASON_DEVICE_ASLEEP, false},
	[DEVICE_SET_ASIDE] = {CHAIN_BAD, REASON_DEVICE_SET_ASIDE, false},
	[DEVICE_OTHER_DRIVER] = {CHAIN_BAD, REASON_DEVICE_OTHER_DRIVER, false},
	[DEVICE_NO_DRIVER] = {CHAIN_BAD, REASON_DEVICE_NO_DRIVER, false},
	[DEVICE_EXCLUDED] = {CHAIN_BAD, REASON_DEVICE_EXCLUDED, false},
	[DEVICE_PROHIBITED] = {CHAIN_BAD, REASON_DEVICE_PROHIBITED, false},
	[DEVICE_FABRIC_NOT_READY] = {CHAIN_BAD, REASON_DEVICE_FABRIC_NOT_READY, false},
	[DEVICE_MIG] = {CHAIN_BAD, REASON_DEVICE_MIG, true},
};
/* clang-format on */

/* A GPU that NVML answers for is driven, whether or not its driver's link could be read. */
static bool driver_unknown(const struct endpoint *e, const struct gpu *g)
{
	return fact_unknown(e->pci->driver) && !(g && fact_known(g->nvml_index));
}

/* What keeps a GPU of its chip from peers, and NVML did not tell. */
static enum chain_reason unknown_state(const struct pair *pr, const struct gpu *g)
{
	const struct chip *chip = g ? card_chip(g) : NULL;

	if (!chip)
		return REASON_NONE;
	if (chip->fabric && pr->s->nvswitch && fact_unknown(g->fabric_state))
		return REASON_DEVICE_FABRIC_UNKNOWN;
	return chip->mig && between_gpus(pr) && fact_known(g->nvml_index) &&
			       fact_unknown(g->mig_enabled)
		       ? REASON_DEVICE_MIG_UNKNOWN
		       : REASON_NONE;
}

static struct chain_link judge_port(const struct endpoint *nic, struct fact_int active)
{
	if (fact_is(active, 1))
		return link_of(CHAIN_OK, REASON_DEVICES_USABLE);
	return fact_known(active)
		       ? link_at(CHAIN_BAD, REASON_DEVICE_NO_PORT, nic->pci, 0, 0)
		       : link_at(CHAIN_UNKNOWN, REASON_DEVICE_PORT_UNKNOWN, nic->pci, 0, 0);
}

/* What the kernel log reports about a GPU. A GPU that NVML answers for has recovered. */
static struct chain_link judge_failure(const struct pair *pr, const struct gpu *g)
{
	enum log_proof proof = g ? pr->s->failed[g->pci->index] : PROOF_NONE;

	if (!proof)
		return not_applicable();
	return link_at(fact_known(g->nvml_index) ? CHAIN_POSSIBLE : CHAIN_BAD, REASON_DEVICE_FAILED,
		       g->pci, proof, 0);
}

static struct chain_link judge_end(const struct pair *pr, const struct endpoint *e)
{
	const struct gpu *g = endpoint_gpu(pr->s->m, e);
	enum chain_reason untold = unknown_state(pr, g);
	struct chain_link failed = judge_failure(pr, g);
	unsigned known = pr->s->faults[e->pci->index];
	struct chain_link l;

	for (int i = 0; i < DEVICE_FAULT_N; i++) {
		if (!(known & 1u << i) || (faults[i].peers_only && !between_gpus(pr)))
			continue;
		l = link_at(faults[i].state, faults[i].reason, e->pci,
			    i == DEVICE_FABRIC_NOT_READY ? g->fabric_state.value : 0, 0);
		if (i == DEVICE_SET_ASIDE || i == DEVICE_OTHER_DRIVER)
			l.text = e->pci->driver.value;
		return l;
	}
	if (g && pr->s->undriven[g->index])
		return link_at(CHAIN_BAD, REASON_DEVICE_UNDRIVEN, e->pci, 0, 0);
	if (failed.state == CHAIN_BAD)
		return failed;
	if (driver_unknown(e, g))
		return link_at(CHAIN_UNKNOWN, REASON_DEVICE_UNKNOWN, e->pci, 0, 0);
	if (untold != REASON_NONE)
		return link_at(CHAIN_UNKNOWN, untold, e->pci, 0, 0);
	if (failed.state != CHAIN_NA)
		return failed;
	return g ? link_of(CHAIN_OK, REASON_DEVICES_USABLE)
		 : judge_port(e, nic_active(&pr->s->m->rdma[e->index]));
}

/* The worse of both ends; of two alike the initiator. */
static struct chain_link judge_device(const struct pair *pr)
{
	struct chain_link near = judge_end(pr, pr->initiator), far = judge_end(pr, pr->target);

	return far.state > near.state ? far : near;
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

	if (path_is_nvlink(p))
		return link_at(CHAIN_OK, REASON_NVLINK_UP, NULL, p->nvlinks.value, 0);
	if (fact_unknown(p->nvlinks))
		return link_of(CHAIN_UNKNOWN, REASON_NVLINK_UNKNOWN);
	if (nvlink_missing(pr))
		return link_of(status_ok(pr, P2P_PCI) ? CHAIN_POSSIBLE : CHAIN_BAD,
			       REASON_NVLINK_DOWN);
	if (p->common)
		return link_at(CHAIN_OK, REASON_COMMON_BRIDGE, p->common, 0, 0);
	if (p->class == PATH_UNKNOWN)
		return link_of(CHAIN_UNKNOWN, REASON_PATH_UNKNOWN);
	return link_of(CHAIN_OK, REASON_THROUGH_HOST);
}

/* ---- ACS ---- */

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

struct redirection topology_redirection(const struct path *p)
{
	const struct pci_function *a = p->initiator_port, *b = p->target_port;
	struct fact_int near, far;

	if (!a || !b)
		return (struct redirection){0};
	near = acs_between(a, b);
	far = acs_between(b, a);
	return (struct redirection){
		.requests = acs_redirects_requests(near) ? a : NULL,
		.completions = acs_redirects_completions(far) ? b : NULL,
		.unread = fact_unknown(near)  ? a
			  : fact_unknown(far) ? b
					      : NULL,
	};
}

/* ---- driver ---- */

/* CUDA pairs no cards of two generations, whatever the driver says; NVLink joins none. */
static bool generations_differ(const struct pair *pr)
{
	return between_gpus(pr) && !path_is_nvlink(pr->p) &&
	       card_other_generation(pr->gpu, pr->target_gpu);
}

static const struct support *target_support(const struct pair *pr)
{
	return &pr->s->cards[pr->target_gpu->index];
}

static bool bar1_covers(const struct gpu *g)
{
	return support_bar1(g).cover == BAR1_COVERS;
}

/* ForceP2P makes the driver say yes and gives it nothing to do it with. */
static enum forcing forcing_target(const struct pair *pr)
{
	struct bar1_state bar1 = support_bar1(pr->target_gpu);

	return support_forcing(target_support(pr), &bar1);
}

static struct chain_link judge_forced(const struct pair *pr)
{
	static const struct chain_link links[] = {
		[FORCING_FINE] = {.state = CHAIN_OK, .reason = REASON_DRIVER_OK},
		[FORCING_DOUBTFUL] = {.state = CHAIN_POSSIBLE, .reason = REASON_DRIVER_FORCED},
		[FORCING_LOSES_DATA] = {.state = CHAIN_BAD, .reason = REASON_DRIVER_FORCED},
	};

	return links[forcing_target(pr)];
}

/* Either GPU's key counts for the pair. */
static bool p2p_is_forced(const struct pair *pr)
{
	return pr->s->forced[pr->gpu->index].p2p || pr->s->forced[pr->target_gpu->index].p2p;
}

/* A card without mailboxes is one of the two, whatever the other has. */
static bool needs_bar1(const struct pair *pr)
{
	return pr->s->cards[pr->gpu->index].way == MECHANISM_BAR1 ||
	       target_support(pr)->way == MECHANISM_BAR1;
}

/* Whatever code the driver gives for such a pair: it has no P2P over PCIe for it. */
static bool is_geforce_refusal(const struct pair *pr, int64_t status)
{
	return (status == P2P_CHIPSET_NOT_SUPPORTED || status == P2P_GPU_NOT_SUPPORTED ||
		status == P2P_NOT_SUPPORTED) &&
	       needs_bar1(pr);
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

static const struct endpoint *the_nic(const struct pair *pr)
{
	return pr->gpu ? pr->target : pr->initiator;
}

/* What the driver itself refuses, by either way of registration. */
static struct chain_link judge_rdma(const struct pair *pr)
{
	const struct gpu *g = the_gpu(pr);
	const struct pci_function *nic = the_nic(pr)->pci;
	const struct rdma_facts *rdma = &pr->s->rdma[g->index];
	bool below = pr->p->common || direct_nic_beside(pr->s->m, g, nic);
	struct gdr_pair p = {pr->s->m,
			     g,
			     rdma,
			     nic,
			     &pr->s->nics[nic->index],
			     below ? rdma->below_bridge : rdma->apart};

	return preflight_judge(&p).pair;
}

/* BAR1 or a mailbox that is not there, by the order in which the driver numbers the two. */
static bool keys_one_sided(const struct pair *pr)
{
	return needs_bar1(pr) &&
	       registry_keys_one_sided(&pr->s->m->driver, pr->gpu, pr->target_gpu);
}

/* What the driver's resource manager says of the way; it knows whether the mechanism is there. */
static struct chain_link judge_connection(const struct pair *pr, struct chain_link status)
{
	const struct machine *m = pr->s->m;
	const struct gpu_pair *gp = &m->pairs[pr->gpu->index * m->gpu_n + pr->target_gpu->index];
	bool bar1 = driver_means_bar1(m, pr->gpu->index, pr->target_gpu->index);
	struct chain_link l = status;

	if (path_is_nvlink(pr->p))
		return status;
	if (needs_bar1(pr) && fact_is(gp->rm.connection, RM_CONNECTION_MAILBOX))
		return link_of(CHAIN_BAD, REASON_DRIVER_MAILBOX);
	if (p2p_is_forced(pr) &&
	    !(bar1 && forcing_target(pr) != FORCING_LOSES_DATA && bar1_covers(pr->target_gpu)))
		l = judge_forced(pr);
	return l.state == CHAIN_OK && !bar1 && keys_one_sided(pr)
		       ? link_of(CHAIN_POSSIBLE, REASON_DRIVER_KEYS)
		       : l;
}

/* The log does not name the pair; modules that were exchanged since may do better. */
static bool mapping_in_doubt(const struct pair *pr)
{
	return pr->s->mapping_failed && !path_is_nvlink(pr->p);
}

/* What the module allows to programs that reach it. */
static struct chain_link judge_module(const struct pair *pr)
{
	struct chain_link status;

	if (!between_gpus(pr))
		return judge_rdma(pr);
	if (generations_differ(pr))
		return link_at(CHAIN_BAD, REASON_DRIVER_GENERATION, pr->target_gpu->pci, 0, 0);
	status = judge_status(pr);
	if (status.state == CHAIN_OK)
		status = judge_connection(pr, status);
	return status.state == CHAIN_OK && mapping_in_doubt(pr)
		       ? link_of(CHAIN_POSSIBLE, REASON_DRIVER_MAPPING)
		       : status;
}

static struct chain_link judge_driver(const struct pair *pr)
{
	struct chain_link l;

	if (fact_is(pr->s->m->driver.loaded, 0))
		return link_of(CHAIN_BAD, REASON_DRIVER_ABSENT);
	if (pr->s->library == LIBRARY_REFUSES)
		return link_of(CHAIN_BAD, REASON_DRIVER_LIBRARY);
	l = judge_module(pr);
	return l.state == CHAIN_OK && pr->s->library == LIBRARY_MAY_FIT
		       ? link_of(CHAIN_POSSIBLE, REASON_DRIVER_LIBRARY)
		       : l;
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
	return target_support(pr)->way == MECHANISM_BAR1 ||
	       pr->s->forced[pr->target_gpu->index].bar1;
}

/* SYS also stands between the NUMA nodes of one socket, which share their host bridge. */
static bool crosses_sockets(const struct pair *pr)
{
	int a = topology_socket(pr->s->m, pr->initiator->pci);
	int b = topology_socket(pr->s->m, pr->target->pci);

	return pr->p->pci_class == PATH_SYS && (a < 0 || b < 0 || a != b);
}

static struct chain_link judge_forwarding(const struct pair *pr)
{
	enum known listed = on_cpu_list(&pr->s->m->cpu);
	const char *chipset = between_gpus(pr) ? NULL : pr->s->rdma[the_gpu(pr)->index].chipset;
	struct chain_link l;

	if (chipset) {
		l = link_of(CHAIN_POSSIBLE, REASON_HOST_BRIDGE_NO_P2P);
		l.text = chipset;
		return l;
	}
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

/* As nvidia-smi and texts state it, also where the bridge itself is unknown. */
static bool is_below_bridge(enum path_class class)
{
	return class == PATH_PIX || class == PATH_PXB;
}

static struct chain_link judge_host_bridge(const struct pair *pr)
{
	struct chain_link l;

	if (path_is_nvlink(pr->p) || pr->p->common || is_below_bridge(pr->p->pci_class))
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
	return between_gpus(pr)
		       ? path_facts_observation(pr->s, pr->gpu->index, pr->target_gpu->index)
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

	if (path_is_nvlink(pr->p))
		return not_applicable();
	if (pr->s->iommu_faults[f->index] && strncmp(type, "DMA", 3) != 0)
		return link_at(CHAIN_POSSIBLE, REASON_IOMMU_FAULTS, f, 0, 0);
	if (fact_is(pr->s->m->kernel.iommus, 0) || fact_absent(f->iommu_group))
		return link_of(CHAIN_OK, REASON_IOMMU_OFF);
	if (strcmp(type, "identity") == 0)
		return link_of(CHAIN_OK, REASON_IOMMU_IDENTITY);
	if (strncmp(type, "DMA", 3) == 0)
		return judge_translation(pr);
	return link_at(CHAIN_UNKNOWN, REASON_IOMMU_UNKNOWN, f, 0, 0);
}

/* ---- ports with ACS; between root ports the IOMMU decides what a redirect costs ---- */

/* Root ports of machines on which NCCL hung until their redirects were cleared. */
static const struct {
	int64_t vendor, device;
} hung_ports[] = {
	{0x1022, 0x1483}, /* AMD Starship/Matisse GPP Bridge: NVIDIA/nccl#2079 */
};

static bool hung_elsewhere(const struct pci_function *port)
{
	for (size_t i = 0; i < sizeof(hung_ports) / sizeof(*hung_ports); i++)
		if (fact_is(port->vendor, hung_ports[i].vendor) &&
		    fact_is(port->device, hung_ports[i].device))
			return true;
	return false;
}

/*
 * Between root ports packets pass through the CPU with and without a redirect, so that by itself it
 * costs nothing: 26.3 GB/s of 26.4 on EPYC Genoa with an IOMMU in pass-through. With one that
 * translates it cost 3 to 9 GB/s.
 */
static enum acs_cost root_port_cost(const struct pair *pr, const struct pci_function *port)
{
	struct chain_link iommu = judge_iommu(pr);

	if (seen_between(pr).fails)
		return ACS_FAILED_HERE;
	if (hung_elsewhere(port))
		return ACS_HUNG_ELSEWHERE;
	if (iommu.state == CHAIN_OK)
		return ACS_COSTS_NOTHING;
	return iommu.state == CHAIN_UNKNOWN ? ACS_COST_UNKNOWN : ACS_COSTS_TRANSLATION;
}

static struct chain_link root_port_link(const struct pair *pr, const struct pci_function *port,
					enum chain_state state, enum chain_reason reason)
{
	enum acs_cost cost = root_port_cost(pr, port);

	return link_at(cost ? state : CHAIN_OK, reason, port, fact_or(port->acs_ctl, 0), cost);
}

static struct chain_link judge_root_ports(const struct pair *pr, const struct redirection *r)
{
	if (r->requests || r->completions)
		return root_port_link(pr, r->requests ? r->requests : r->completions,
				      CHAIN_POSSIBLE, REASON_ACS_ROOT_PORT);
	if (r->unread)
		return root_port_link(pr, r->unread, CHAIN_UNKNOWN, REASON_ACS_UNREADABLE);
	return link_of(CHAIN_OK, REASON_ACS_CLEAR);
}

/* Below a common bridge a redirect is a fact. */
static struct chain_link judge_below_bridge(const struct redirection *r)
{
	if (r->requests)
		return link_at(CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT, r->requests,
			       r->requests->acs_ctl.value, 0);
	if (r->completions)
		return link_at(CHAIN_BAD, REASON_ACS_COMPLETION_REDIRECT, r->completions,
			       r->completions->acs_ctl.value, 0);
	if (r->unread)
		return link_at(CHAIN_UNKNOWN, REASON_ACS_UNREADABLE, r->unread, 0, 0);
	return link_of(CHAIN_OK, REASON_ACS_CLEAR);
}

static struct chain_link judge_switch(const struct pair *pr)
{
	struct redirection r = topology_redirection(pr->p);

	if (path_is_nvlink(pr->p))
		return not_applicable();
	if (tree_unknown(pr->p))
		return link_of(CHAIN_UNKNOWN, REASON_PATH_UNKNOWN);
	return pr->p->common ? judge_below_bridge(&r) : judge_root_ports(pr, &r);
}

/* ---- exposure ---- */

static struct chain_link judge_bar1(const struct machine *m, const struct gpu *g)
{
	struct bar1_state b = support_bar1(g);
	struct fact_int shifts = support_console_shifts(&m->driver, g);

	if (b.cover == BAR1_TOO_SMALL)
		return link_at(CHAIN_BAD, REASON_BAR1_SMALL, g->pci, b.size,
			       fact_or(g->vram_bytes, 0));
	if (fact_is(shifts, 1))
		return link_at(CHAIN_POSSIBLE, REASON_BAR1_SHIFTED, g->pci, 0, 0);
	if (b.cover == BAR1_COVER_UNKNOWN)
		return link_at(CHAIN_UNKNOWN, REASON_EXPOSURE_UNKNOWN, g->pci, 0, 0);
	if (fact_unknown(shifts))
		return link_at(CHAIN_UNKNOWN, REASON_BAR1_SHIFT_UNKNOWN, g->pci, 0, 0);
	return link_at(CHAIN_OK, REASON_EXPOSED_BAR1, g->pci, 0, 0);
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

	if (path_is_nvlink(pr->p))
		return link_of(CHAIN_OK, REASON_EXPOSED_NVLINK);
	if (!between_gpus(pr))
		return judge_rdma_exposure(g);
	if (generations_differ(pr)) /* nothing is ever mapped */
		return not_applicable();
	if (uses_bar1(pr))
		return judge_bar1(pr->s->m, g);
	if (pr->s->cards[g->index].way == MECHANISM_MAILBOX)
		return link_at(CHAIN_OK, REASON_EXPOSED_MAILBOX, g->pci, 0, 0);
	if (bar1_covers(g))
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
		return link_of(CHAIN_UNKNOWN, fact_unknown(pr->p->nvlinks) ? REASON_NVLINK_UNKNOWN
									   : REASON_PATH_UNKNOWN);
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

/*
 * Access that CUDA grants does not tell whether a copy is staged through the host all the same, nor
 * does a rate that the links to the host bring as well.
 */
static bool uses_p2p(const struct pair *pr, const struct observed *rate)
{
	double host = staged_rate_limit(pr->s, pr->initiator, pr->target);

	return rate->gain == OBSERVED_GAIN_UNKNOWN
		       ? host > 0 && rate_is_implausible(rate->value, host)
		       : rate->gain == OBSERVED_GAINS;
}

/*
 * Copies at a rate that fits the path and that only P2P brings, with access that CUDA granted, use
 * the path. What goes nowhere is faster than any link (128 GB/s over PCIe were seen).
 */
static bool is_fast(const struct pair *pr, const struct observation *seen)
{
	double expected = pr->p->expected_gbps;

	return seen->access && seen->rate && uses_p2p(pr, seen->rate) && expected > 0 &&
	       !rate_is_slow(seen->rate->value, rate_yardstick(expected, 0, 0)) &&
	       !rate_is_implausible(seen->rate->value, expected);
}

/* A failure counts more than a success: what works sometimes does not work. */
static struct chain_link judge_observed(const struct pair *pr)
{
	struct observation seen = seen_between(pr);
	struct chain_link l = not_applicable();

	if (seen.fails)
		l = link_of(CHAIN_BAD, REASON_OBSERVED_FAILS);
	else if (seen.doubts)
		l = link_of(CHAIN_POSSIBLE, REASON_OBSERVED_DOUBTS);
	else if (seen.slow)
		l = link_of(CHAIN_POSSIBLE, REASON_OBSERVED_SLOW);
	else if (seen.works)
		l = link_of(CHAIN_OK, REASON_OBSERVED_WORKS);
	else if (is_fast(pr, &seen))
		l = link_at(CHAIN_OK, REASON_OBSERVED_FAST, NULL,
			    (int64_t)(seen.rate->value * 1000), 0);
	else if (seen.rate && seen.rate->gain == OBSERVED_GAINS_NOTHING)
		l = link_at(CHAIN_POSSIBLE, REASON_OBSERVED_NO_GAIN, NULL,
			    (int64_t)(seen.rate->value * 1000), 0);
	if (l.state != CHAIN_NA)
		l.from = (seen.fails    ? seen.fails
			  : seen.doubts ? seen.doubts
			  : seen.slow   ? seen.slow
			  : seen.works  ? seen.works
					: seen.rate)
				 ->from;
	return l;
}

/* ---- verdict ---- */

static struct chain_link (*const judges[CHAIN_STEP_N])(const struct pair *) = {
	[CHAIN_DEVICE] = judge_device,     [CHAIN_PATH] = judge_path,
	[CHAIN_SWITCH] = judge_switch,     [CHAIN_HOST_BRIDGE] = judge_host_bridge,
	[CHAIN_IOMMU] = judge_iommu,       [CHAIN_EXPOSURE] = judge_exposure,
	[CHAIN_DRIVER] = judge_driver,     [CHAIN_NCCL] = judge_nccl,
	[CHAIN_OBSERVED] = judge_observed,
};

/* What NVLink would pass by hurts only if there is none. */
static void doubt_pcie(struct path *p)
{
	static const enum chain_step steps[] = {CHAIN_SWITCH, CHAIN_HOST_BRIDGE, CHAIN_IOMMU,
						CHAIN_EXPOSURE};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (p->chain[steps[i]].state == CHAIN_BAD)
			p->chain[steps[i]].state = CHAIN_POSSIBLE;
}

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

	return c[CHAIN_DEVICE].state == CHAIN_UNKNOWN || c[CHAIN_PATH].state == CHAIN_UNKNOWN ||
	       c[CHAIN_EXPOSURE].state == CHAIN_UNKNOWN || c[CHAIN_DRIVER].state == CHAIN_UNKNOWN ||
	       (c[CHAIN_SWITCH].state == CHAIN_UNKNOWN && p->common);
}

bool path_nccl_contradicts_driver(const struct path *p)
{
	return p->chain[CHAIN_DRIVER].state == CHAIN_BAD &&
	       p->chain[CHAIN_NCCL].reason == REASON_NCCL_SEEN;
}

bool path_is_refused(const struct path *p)
{
	enum chain_reason seen = p->chain[CHAIN_OBSERVED].reason;

	return seen == REASON_OBSERVED_FAILS ||
	       (p->chain[CHAIN_DRIVER].state == CHAIN_BAD && seen != REASON_OBSERVED_WORKS &&
		seen != REASON_OBSERVED_FAST);
}

bool path_driver_is_out(const struct path *p)
{
	const struct chain_link *driver = &p->chain[CHAIN_DRIVER];

	return driver->state == CHAIN_BAD &&
	       (driver->reason == REASON_DRIVER_ABSENT || driver->reason == REASON_DRIVER_LIBRARY);
}

/* BAR1 is the driver's to map: what NCCL used shows that it did. */
static bool only_driver_refuses(const struct path *p)
{
	return p->first_bad >= CHAIN_EXPOSURE && p->chain[CHAIN_OBSERVED].state != CHAIN_BAD;
}

/*
 * What was seen outweighs what registers and the driver let one expect, as far as it goes: checked
 * data shows that the pair works, speed alone that it is not blocked, and P2P of NCCL that the
 * driver granted it. It shows nothing of a device that has become unusable since, or of a driver
 * that is no longer loaded, or that its library no longer fits.
 */
static enum pair_verdict weigh_observed(const struct path *p, enum pair_verdict judged)
{
	enum chain_reason seen = p->chain[CHAIN_OBSERVED].reason;

	if (p->chain[CHAIN_DEVICE].state == CHAIN_BAD || path_driver_is_out(p))
		return judged;
	if (seen == REASON_OBSERVED_WORKS)
		return PAIR_DIRECT;
	if (seen == REASON_OBSERVED_FAST && judged != PAIR_DIRECT)
		return PAIR_SUSPECT;
	return only_driver_refuses(p) && path_nccl_contradicts_driver(p) ? PAIR_SUSPECT : judged;
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

void path_chain(const struct path_facts *s, const struct endpoint *a, const struct endpoint *b,
		struct path *p)
{
	const struct pair pr = {s, p, a, b, endpoint_gpu(s->m, a), endpoint_gpu(s->m, b)};

	p->first_bad = CHAIN_STEP_N;
	p->verdict = PAIR_UNDECIDED;
	if (!pr.gpu && !pr.target_gpu)
		return; /* two NICs do not read each other's memory */
	for (int i = 0; i < CHAIN_STEP_N; i++)
		p->chain[i] = judges[i](&pr);
	if (fact_unknown(p->nvlinks))
		doubt_pcie(p);
	p->first_bad = first_bad(p);
	p->verdict = weigh_observed(p, verdict_of(p));
	if (p->verdict != PAIR_BLOCKED)
		p->first_bad = CHAIN_STEP_N;
}
