/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about how packets are routed: ACS, IOMMU, host bridges, sockets. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/rate_groups.h"
#include "diagnose/rules.h"
#include "machine/acs_parameter.h"
#include "machine/line_keeper.h"
#include "machine/usable.h"

#include <inttypes.h>
#include <string.h>

/* ---- ACS ---- */

static const char *cmdline(struct rule_run *run)
{
	return fact_str_or(run->m->kernel.cmdline, "");
}

/* Which packets of a pair a rule is about. */
enum redirected { REDIRECTED_COMPLETIONS, REDIRECTED_REQUESTS };

/* What one port does to the paths of a machine. */
struct port_hits {
	struct pair_set pairs; /* GPU pairs that it redirects */
	size_t nic_paths;      /* GPU-NIC paths, both directions counted */
	bool hit, requests;    /* requests: not only completions */
	bool certain;          /* one of these paths goes over PCIe for certain */
};

static const char *bits_text(struct rule_run *run, int64_t bits)
{
	AUTO_STRBUF struct strbuf b = {0};

	pci_acs_text(bits, &b);
	return b.len ? run_text(run, "%s", b.text) : "none";
}

static void hit_port(struct rule_run *run, struct port_hits *h, size_t i, size_t j, bool request)
{
	bool gpus = run->t->endpoints[i].kind == ENDPOINT_GPU &&
		    run->t->endpoints[j].kind == ENDPOINT_GPU;

	if (!h->hit)
		h->pairs = pair_set_new(run);
	h->hit = true;
	h->requests |= request;
	h->certain |= fact_known(topology_path(run->t, i, j)->nvlinks);
	if (gpus)
		pair_set_add(&h->pairs, run->t->endpoints[i].index, run->t->endpoints[j].index);
	else
		h->nic_paths++;
}

/* The two ends are a GPU and something that could reach it, over PCIe. */
static bool is_wanted_path(const struct topology *t, size_t i, size_t j)
{
	const struct path *p = topology_path(t, i, j);

	return i != j && p->chain[CHAIN_SWITCH].state != CHAIN_NA &&
	       (t->endpoints[i].kind == ENDPOINT_GPU || t->endpoints[j].kind == ENDPOINT_GPU);
}

/* Ports below a common bridge that send a path's requests or completions up instead of across. */
static struct port_hits *switch_hits(struct rule_run *run)
{
	const struct topology *t = run->t;
	struct port_hits *hits = arena_alloc(run->d->arena, run->m->pci_n + 1, sizeof(*hits));

	for (size_t i = 0; i < t->endpoint_n; i++) {
		for (size_t j = 0; j < t->endpoint_n; j++) {
			const struct path *p = topology_path(t, i, j);
			struct redirection r;

			if (!is_wanted_path(t, i, j) || !p->common)
				continue;
			r = topology_redirection(p);
			if (r.requests)
				hit_port(run, &hits[r.requests->index], i, j, true);
			if (r.completions)
				hit_port(run, &hits[r.completions->index], i, j, false);
		}
	}
	return hits;
}

static const char *setpci_line(struct rule_run *run, const char *address,
			       const struct pci_function *f)
{
	return run_text(run, "setpci -s %s ECAP_ACS+6.w=%04x", address,
			(unsigned)(f->acs_ctl.value & ~PCI_ACS_REDIRECTS));
}

/* In the order in which the kernel parameter names them, each once. */
struct ports {
	const struct pci_function **items;
	size_t n;
};

static void add_port(struct rule_run *run, struct ports *l, const struct pci_function *p)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i] == p)
			return;
	*ARENA_PUSH(run->d->arena, l->items, l->n) = p;
}

/* Adds the ports of some rule of ACS, but for those that have to stay as they are. */
static void add_ports(struct rule_run *run, const struct port_hits *hits, struct ports *l)
{
	FOR_EACH_PCI (f, run)
		if (hits[f->index].hit && !acs_kept(run->m, f).by)
			add_port(run, l, f);
}

static const char *ports_text(struct rule_run *run, const struct ports *l)
{
	AUTO_STRBUF struct strbuf b = {0};

	for (size_t i = 0; i < l->n; i++)
		strbuf_printf(&b, "%s%s", i ? ";" : "", l->items[i]->name);
	return run_text(run, "%s", strbuf_str(&b));
}

static const char *lockdown_caveat(struct rule_run *run)
{
	return fact_or(run->m->kernel.lockdown, LOCKDOWN_NONE) != LOCKDOWN_NONE
		       ? "; this kernel is locked down: setpci reports \"write failed\", changes "
			 "nothing and still exits with 0, so only the kernel parameter works"
		       : "";
}

static struct line_host line_of(const struct rule_run *run)
{
	return (struct line_host){&run->m->kernel, &run->m->boot, false};
}

/* How a person adds the word to the command line here. */
static const char *parameter_remedy(struct rule_run *run, const char *word)
{
	const struct line_host line = line_of(run);
	const char *lead = line_advice_lead(line_keeper(&line));
	AUTO_STRBUF struct strbuf how = {0};

	line_advice(&line, &word, 1, &how);
	return run_text(run, "%s%s%s", *lead ? "the kernel parameter" : "", lead, strbuf_str(&how));
}

static const char *to_stay(struct rule_run *run, const char *word)
{
	const struct line_host line = line_of(run);
	AUTO_STRBUF struct strbuf why = {0};

	line_why_not(&line, word, &why);
	return why.len ? run_text(
				 run,
				 "`onehop fix %s`, which uses a systemd unit if possible, because %s",
				 run->rule->id, strbuf_str(&why))
		       : parameter_remedy(run, word);
}

/* What the running command line says about ACS; either is NULL where it says nothing. */
struct acs_said {
	char *disable, *config;
};

static void acs_said_done(struct acs_said *s)
{
	free(s->disable);
	free(s->config);
}

static bool clears_all(const struct acs_said *said, const struct ports *ports)
{
	for (size_t i = 0; i < ports->n; i++)
		if (!acs_parameters_clear(said->disable, said->config, ports->items[i]))
			return false;
	return ports->n > 0;
}

/* The first of the ports that config_acs= has a say over; NULL: none. */
static const struct pci_function *outranked(const struct acs_said *said, const struct ports *ports)
{
	struct acs_bits bits;

	for (size_t i = 0; said->config && i < ports->n; i++)
		if (acs_config_names(said->config, ports->items[i], &bits))
			return ports->items[i];
	return NULL;
}

/*
 * `ports`: those of this finding; `all`: those that need the parameter, of which the last alone
 * counts.
 */
static void acs_remedy(struct rule_run *run, struct finding *f, const char *commands,
		       const struct ports *ports, const struct ports *all)
{
	CLEANUP(acs_said_done)
	struct acs_said said = {
		.disable = acs_parameter_of_line(cmdline(run)),
		.config =
			acs_config_known(&run->m->kernel) ? acs_config_of_line(cmdline(run)) : NULL,
	};
	const struct pci_function *by_config = outranked(&said, ports);
	AUTO_STRBUF struct strbuf word = {0};

	acs_word(said.disable, said.config, all->items, all->n, &word);
	if (clears_all(&said, ports))
		finding_remedy(
			run, f,
			"the kernel command line already has %s in %s=, so the bits were set again "
			"after boot by hotplug, a reset or firmware; clear them again: `%s`%s",
			ports_text(run, ports), by_config ? "config_acs" : "disable_acs_redir",
			commands, lockdown_caveat(run));
	else if (by_config)
		finding_remedy(
			run, f,
			"the kernel command line has config_acs=%s, which sets the bits of %s and "
			"overrides disable_acs_redir=; until the next reboot or hot-plug: `%s`; "
			"permanently, instead of it: %s%s",
			said.config, by_config->name, commands, to_stay(run, strbuf_str(&word)),
			lockdown_caveat(run));
	else if (said.disable && strpbrk(said.disable, "\"'"))
		finding_remedy(
			run, f,
			"the kernel command line has disable_acs_redir=%s, and the kernel treats "
			"these quotes as part of the address; until the next reboot or hot-plug: "
			"`%s`; permanently, instead of it: %s%s",
			said.disable, commands, to_stay(run, strbuf_str(&word)),
			lockdown_caveat(run));
	else
		finding_remedy(run, f, "until the next reboot or hot-plug: `%s`; permanently: %s%s",
			       commands, to_stay(run, strbuf_str(&word)), lockdown_caveat(run));
}

/* As onehop fix refuses it. */
static void kept_remedy(struct rule_run *run, struct finding *f, struct acs_kept kept)
{
	const struct pci_function *by = kept.by;

	if (kept.reason == ACS_FOR_GUEST) {
		finding_remedy(
			run, f,
			"leave it as it is: %s is bound to %s, so a virtual machine uses it or can "
			"use it, and ACS here isolates it from other devices; to change it, remove "
			"%s from the virtual machine and from %s first, then run `onehop fix`",
			by->name, by->driver.value, by->name, by->driver.value);
		return;
	}
	f->severity = SEVERITY_INFO;
	finding_remedy(
		run, f,
		"leave it as it is: %s is the DMA function of a ConnectX NIC next to its GPU "
		"(Direct NIC). Both need exact ACS bits on these ports, some of them set; "
		"`rdma_topo check` of rdma-core 61 and later checks them, and `rdma_topo "
		"write-grub-acs` writes them",
		by->name);
}

static void acs_evidence(struct rule_run *run, struct finding *f, const struct pci_function *p)
{
	finding_evidence(run, f, p->acs_ctl.from ? p->acs_ctl.from : "config space",
			 run_text(run, "ACSCtl of %s", p->name), "%04x = %s",
			 (unsigned)p->acs_ctl.value, bits_text(run, p->acs_ctl.value));
	if (f->severity > SEVERITY_INFO && !acs_kept(run->m, p).by)
		finding_expects(f, run_text(run, "%04x = %s",
					    (unsigned)(p->acs_ctl.value & ~PCI_ACS_REDIRECTS),
					    bits_text(run, p->acs_ctl.value & ~PCI_ACS_REDIRECTS)));
}

static const char *hits_text(struct rule_run *run, const struct port_hits *h)
{
	const char *pairs = h->pairs.n ? pair_set_text(run, &h->pairs) : NULL;
	const char *nics = h->nic_paths ? run_text(run, "%zu GPU-NIC paths", h->nic_paths) : NULL;

	return pairs && nics ? run_text(run, "%s and %s", pairs, nics) : pairs ? pairs : nics;
}

/* Nobody could look at these divergence ports; the rest was fine. */
static enum verdict unread_ports(struct rule_run *run, bool common)
{
	bool *seen = arena_alloc(run->d->arena, run->m->pci_n + 1, sizeof(*seen));
	const struct topology *t = run->t;
	size_t n = 0;

	for (size_t i = 0; i < t->endpoint_n; i++) {
		for (size_t j = 0; j < t->endpoint_n; j++) {
			const struct path *p = topology_path(t, i, j);
			const struct pci_function *f = topology_redirection(p).unread;

			if (!is_wanted_path(t, i, j) || !f || (p->common != NULL) != common ||
			    seen[f->index])
				continue;
			seen[f->index] = true;
			n++;
		}
	}
	if (!n)
		return VERDICT_OK;
	return rule_unknown(run, fact_is(run->m->root, 0) ? FACT_NEEDS_ROOT : NULL,
			    "ACS on %zu %s %s", n, common ? "switch" : "root",
			    text_plural(n, "port", "ports"));
}

/*
 * Of a text: a port that redirects, with no device known below it; what is below it is not shown.
 */
static bool is_unplaced(const struct rule_run *run, const struct pci_function *p)
{
	if (!acs_redirects_requests(p->acs_ctl))
		return false;
	FOR_EACH_PCI (f, run)
		if (f->parent == p)
			return false;
	return true;
}

static bool tree_is_whole(const struct rule_run *run)
{
	FOR_EACH_GPU (g, run)
		if (!g->pci->root)
			return false;
	return true;
}

/* Ports of a text that shows registers and not which port is above which GPU. */
static void add_unplaced(struct rule_run *run)
{
	struct ports all = {0};

	if (tree_is_whole(run))
		return;
	FOR_EACH_PCI (p, run)
		if (is_unplaced(run, p))
			add_port(run, &all, p);
	FOR_EACH_PCI (p, run) {
		struct finding *f;

		if (!is_unplaced(run, p))
			continue;
		f = finding_add(
			run, CONFIDENCE_POSSIBLE, subject_device(run, SUBJECT_PORT, "port", p),
			ABOUT
			" sends peer requests up to the CPU; ACSCtl %04x: %s; the text does not show "
			"whether a GPU is below it (lspci -t does)",
			(unsigned)p->acs_ctl.value,
			bits_text(run, p->acs_ctl.value & PCI_ACS_REDIRECTS));
		f->severity = SEVERITY_WARNING;
		acs_remedy(run, f, setpci_line(run, ABOUT_PCI, p), &(struct ports){&p, 1}, &all);
		acs_evidence(run, f, p);
	}
}

/*
 * One port, one finding: requests if any are redirected, else completions alone. number: enum
 * redirected.
 */
static enum verdict probe_redirect(struct rule_run *run)
{
	bool requests = run->rule->number == REDIRECTED_REQUESTS;
	struct port_hits *hits = switch_hits(run);
	struct ports all = {0};

	add_ports(run, hits, &all);
	FOR_EACH_PCI (p, run) {
		const struct port_hits *h = &hits[p->index];
		struct acs_kept kept;
		struct finding *f;

		if (!h->hit || h->requests != requests)
			continue;
		f = finding_add(
			run, h->certain ? CONFIDENCE_CERTAIN : CONFIDENCE_POSSIBLE,
			subject_device(run, SUBJECT_PORT, "port", p),
			requests ? ABOUT
				" sends peer requests up to the CPU instead of across the switch: %s; ACSCtl "
				"%04x: %s%s"
				 : ABOUT
				" sends the completions of peer reads up to the CPU instead of across the "
				"switch: reads of %s; ACSCtl %04x: %s%s",
			hits_text(run, h), (unsigned)p->acs_ctl.value,
			bits_text(run, p->acs_ctl.value & PCI_ACS_REDIRECTS),
			h->certain
				? ""
				: "; GPUs connected by NVLink do not use this path, but whether they are is "
				  "unknown");
		if (!h->certain)
			f->severity = SEVERITY_WARNING;
		finding_names_pairs(run, f, &h->pairs);
		kept = acs_kept(run->m, p);
		if (kept.by)
			kept_remedy(run, f, kept);
		else
			acs_remedy(run, f, setpci_line(run, ABOUT_PCI, p), &(struct ports){&p, 1},
				   &all);
		acs_evidence(run, f, p);
	}
	if (requests)
		add_unplaced(run);
	return rule_verdict(run, unread_ports(run, true));
}

/* ---- ACS between root ports ---- */

struct root_hits {
	struct port_hits *ports;
	struct pair_set pairs; /* those that it costs the most */
	size_t port_n;
	enum acs_cost cost; /* the worst of all pairs' */
};

static void hit_root_port(struct rule_run *run, struct root_hits *h, const struct pci_function *f,
			  size_t i, size_t j)
{
	if (!f)
		return;
	h->port_n += !h->ports[f->index].hit;
	hit_port(run, &h->ports[f->index], i, j, true);
}

static struct root_hits root_port_hits(struct rule_run *run)
{
	struct root_hits h = {
		.ports = arena_alloc(run->d->arena, run->m->pci_n + 1, sizeof(*h.ports)),
		.pairs = pair_set_new(run),
	};

	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct path *p = topology_path(run->t, i, j);
		const struct chain_link *l = &p->chain[CHAIN_SWITCH];
		struct redirection r = topology_redirection(p);

		if (l->reason != REASON_ACS_ROOT_PORT)
			continue;
		hit_root_port(run, &h, r.requests, i, j);
		hit_root_port(run, &h, r.completions, i, j);
		if ((enum acs_cost)l->value2 > h.cost) {
			h.cost = (enum acs_cost)l->value2;
			h.pairs = pair_set_new(run);
		}
		if ((enum acs_cost)l->value2 == h.cost && (r.requests || r.completions))
			pair_set_add(&h.pairs, i, j);
	}
	return h;
}

static const struct {
	const char *says, *remedy; /* remedy NULL: how to clear the bits */
} acs_costs[] = {
	[ACS_COSTS_NOTHING] =
		{"which costs nothing because no IOMMU translates",
		 "no change is needed unless NCCL hangs: then onehop fix acs-root-port clears "
		 "them"},
	[ACS_COST_UNKNOWN] =
		{"which costs nothing or several GB/s, depending on the IOMMU, whose state is "
		 "unknown",
		 NULL},
	[ACS_COSTS_TRANSLATION] =
		{"which costs 3 to 9 GB/s while the IOMMU translates",
		 "set the IOMMU to pass-through (see iommu-translating), and they cost "
		 "nothing; onehop fix acs-root-port clears them"},
	[ACS_HUNG_ELSEWHERE] = {"on a chipset where NCCL has hung until they were cleared", NULL},
	[ACS_FAILED_HERE] = {"and peer access failed here", NULL},
};

/* The list has the ports of switches too: who follows both rules writes the parameter twice. */
static void root_remedy(struct rule_run *run, struct finding *f, const struct root_hits *h,
			const char *commands)
{
	struct ports ports = {0}, all = {0};

	add_ports(run, h->ports, &ports);
	add_ports(run, switch_hits(run), &all);
	for (size_t i = 0; i < ports.n; i++)
		add_port(run, &all, ports.items[i]);
	acs_remedy(run, f, commands, &ports, &all);
}

/* One finding for all: what the root ports do with these bits is the same chipset's affair. */
static enum verdict probe_acs_root_port(struct rule_run *run)
{
	struct root_hits h = root_port_hits(run);
	struct acs_kept kept = {ACS_FREE, NULL};
	const char *commands = NULL, *names = NULL;
	struct finding *f;

	if (!h.port_n)
		return unread_ports(run, false);
	FOR_EACH_PCI (p, run) {
		struct acs_kept k;

		if (!h.ports[p->index].hit)
			continue;
		k = acs_kept(run->m, p);
		kept = kept.by ? kept : k;
		names = names ? run_text(run, "%s, %s", names, p->name) : p->name;
		if (!k.by)
			commands = commands ? run_text(run, "%s; %s", commands,
						       setpci_line(run, p->name, p))
					    : setpci_line(run, p->name, p);
	}
	f = finding_add(
		run, h.cost ? CONFIDENCE_POSSIBLE : CONFIDENCE_CERTAIN, SUBJECT(HOST, "root ports"),
		"%zu root %s (%s) %s ACS redirect bits set, %s: %s %s through the CPU in any "
		"case",
		h.port_n, text_plural(h.port_n, "port", "ports"), names,
		text_plural(h.port_n, "has", "have"), acs_costs[h.cost].says,
		pair_set_text(run, &h.pairs), text_plural(h.pairs.n, "passes", "pass"));
	f->pairs = h.pairs.n;
	if (h.cost == ACS_COSTS_NOTHING)
		f->severity = SEVERITY_INFO;
	if (kept.by && !commands)
		kept_remedy(run, f, kept);
	else if (acs_costs[h.cost].remedy)
		f->remedy = acs_costs[h.cost].remedy;
	else
		root_remedy(run, f, &h, commands);
	if (kept.by && commands)
		finding_remedy(
			run, f,
			kept.reason == ACS_FOR_GUEST
				? "%s; except a port above %s, which is bound to %s and may be in use by a "
				  "virtual machine: fix skips it"
				: "%s; except a port above %s, the DMA function of a ConnectX NIC, which needs "
				  "its exact bits: fix skips it",
			f->remedy, kept.by->name, fact_str_or(kept.by->driver, ""));
	FOR_EACH_PCI (p, run) {
		if (!h.ports[p->index].hit)
			continue;
		f->pci = f->pci ? f->pci : p;
		finding_names(run, f, p);
		acs_evidence(run, f, p);
	}
	finding_names_pairs(run, f, &h.pairs);
	return VERDICT_BAD;
}

/* Named without its port: what is true of several is said once. */
static void propose_port(struct rule_run *run, struct change_set *out, const struct pci_function *p,
			 const char *reason, bool opt_in)
{
	unsigned ctl = (unsigned)p->acs_ctl.value;

	propose(run, out,
		(struct change){
			.kind = CHANGE_ACS,
			.lifetime = CHANGE_LASTING,
			.target = p->name,
			.value = {ctl, ctl & ~(unsigned)PCI_ACS_REDIRECTS},
			.reason = TEXTS(reason),
			.cost = TEXTS(
				"devices below the changed ports are no longer isolated: they can access "
				"each other's memory, so do not assign any of them to a virtual machine "
				"(VFIO)"),
			.opt_in = opt_in,
		});
}

static void propose_redirect(struct rule_run *run, struct change_set *out)
{
	bool requests = run->rule->number == REDIRECTED_REQUESTS;
	struct port_hits *hits = switch_hits(run);

	FOR_EACH_PCI (p, run)
		if (hits[p->index].hit && hits[p->index].requests == requests)
			propose_port(
				run, out, p,
				requests ? "peer requests then stay inside the switch"
					 : "completions of peer reads then stay inside the switch",
				false);
}

static void propose_acs_root_port(struct rule_run *run, struct change_set *out)
{
	struct root_hits h = root_port_hits(run);

	if (!propose_wanted(run)) {
		run->found = true; /* they cost nothing */
		return;
	}
	FOR_EACH_PCI (p, run)
		if (h.ports[p->index].hit)
			propose_port(run, out, p,
				     "some machines hung until no root port had a redirect bit set",
				     true);
}

/* ---- IOMMU ---- */

static bool translates(const struct gpu *g)
{
	return text_starts_with(fact_str_or(g->pci->iommu_type, ""), "DMA");
}

/* ---- HMM behind an IOMMU that passes addresses through ---- */

#define HMM_MODULE "nvidia-uvm"
#define HMM_OPTION "uvm_disable_hmm"
#define CPU_REACH  ((INT64_C(1) << 52) - 1) /* of any x86 */

/*
 * HMM gives GPU memory physical addresses at the top of what the CPU has. Where those are beyond
 * what a card's DMA reaches and DMA is direct, the driver takes host memory for the card from the
 * first 4 GiB alone (nv-vm.c nv_get_max_sysmem_address, nv_compute_gfp_mask).
 */
enum hmm { HMM_HARMLESS, HMM_MAY_NARROW, HMM_NARROWS };

/* The first GPU whose reach ends below `end`. */
static const struct gpu *narrower_gpu(struct rule_run *run, int64_t end)
{
	FOR_EACH_GPU (g, run)
		if (card_dma_bits(g) && end >> card_dma_bits(g))
			return g;
	return NULL;
}

/* With direct DMA. `ret_why`: what is unknown. */
static enum hmm judge_hmm(struct rule_run *run, const char **ret_why)
{
	const struct nvidia_driver *d = &run->m->driver;

	*ret_why = FACT_WHY(d->hmm_end);
	if (fact_is(d->flavor, DRIVER_PROPRIETARY) || fact_is(d->hmm_disabled, 1) ||
	    !narrower_gpu(run, CPU_REACH))
		return HMM_HARMLESS;
	if (fact_known(d->hmm_end))
		return narrower_gpu(run, d->hmm_end.value) ? HMM_NARROWS : HMM_HARMLESS;
	return fact_is(d->hmm_placed, 0) && fact_absent(d->hmm_disabled) ? HMM_HARMLESS
									 : HMM_MAY_NARROW;
}

#define HMM_COST                                                                                   \
	"GPUs can no longer access malloc memory (managed and pinned memory work as before)"

static void propose_hmm_off(struct rule_run *run, struct change_set *out)
{
	propose(run, out,
		(struct change){
			.kind = CHANGE_MODULE_OPTION,
			.lifetime = CHANGE_KEPT,
			.target = HMM_MODULE,
			.name = HMM_OPTION,
			.new = "1",
			.reason = TEXTS(
				"with direct DMA and HMM, host memory for the GPUs comes only from the first "
				"4 GiB"),
			.cost = TEXTS(HMM_COST)});
}

static void propose_hmm(struct rule_run *run, struct change_set *out)
{
	if (propose_wanted(run))
		propose_hmm_off(run, out);
}

/* Its addresses reach the host's memory as they are. */
static struct fact_int is_direct(struct rule_run *run, const struct gpu *g)
{
	struct fact_str type = g->pci->iommu_type;

	if (fact_is(run->m->kernel.iommus, 0))
		return fact_int(1, run->m->kernel.iommus.from);
	return fact_known(type) ? fact_int(!translates(g), type.from)
				: fact_int_unknown(FACT_WHY(type));
}

static void hmm_remedy(struct rule_run *run, struct finding *f)
{
	FOR_EACH_IN(struct modprobe_line, l, run->m->modprobe, run->m->modprobe_n)
	{
		if (l->kind == MODPROBE_OPTIONS && strstr(l->text, HMM_OPTION "=1"))
			finding_remedy(
				run, f,
				"%s:%u already sets " HMM_OPTION
				"=1, but the module was loaded without it: rebuild the initramfs and reboot",
				l->file, l->line);
	}
	if (fix_pending(run, APPLIED_MODULE_OPTION, HMM_MODULE))
		finding_remedy(run, f, "reboot: onehop fix has set " HMM_OPTION "=1 already");
}

static void report_hmm(struct rule_run *run, const struct gpu *g)
{
	const struct nvidia_driver *d = &run->m->driver;
	struct finding *f = finding_add(
		run, CONFIDENCE_CERTAIN, SUBJECT(DRIVER, "HMM"),
		ABOUT " has assigned physical addresses up to 0x%" PRIx64
		      " to GPU memory, beyond the %d address bits of GPU%zu, and DMA is direct: "
		      "for such a GPU the driver takes host memory only from the first 4 GiB, so "
		      "cuMemCreate on the host and NCCL 2.26.3 and later fail",
		(uint64_t)d->hmm_end.value, card_dma_bits(g), g->index);

	hmm_remedy(run, f);
	evidence_text(run, f, d->hmm_end.from,
		      run_text(run, "nvidia-uvm-hmm ends at 0x%" PRIx64 "",
			       (uint64_t)d->hmm_end.value));
	evidence_yes_no(run, f, HMM_OPTION, d->hmm_disabled);
	evidence_str(run, f, run_text(run, "IOMMU group type of %s", g->pci->name),
		     g->pci->iommu_type);
	evidence_str(run, f, "GPU", g->model);
}

static enum verdict probe_hmm(struct rule_run *run)
{
	const char *why;
	enum hmm hmm = judge_hmm(run, &why);
	const struct gpu *unknown = NULL;

	if (fact_is(run->m->driver.flavor, DRIVER_PROPRIETARY))
		return VERDICT_NA;
	if (fact_is(run->m->driver.hmm_disabled, 1) || fact_is(run->m->driver.hmm_placed, 0))
		return VERDICT_OK;
	if (hmm == HMM_HARMLESS)
		return generations_known(run);
	FOR_EACH_GPU (g, run) {
		struct fact_int direct = is_direct(run, g);

		if (!fact_known(direct))
			unknown = g;
		else if (!direct.value || (hmm == HMM_NARROWS &&
					   !(run->m->driver.hmm_end.value >> card_dma_bits(g))))
			continue;
		else if (hmm == HMM_MAY_NARROW)
			return rule_unknown(run, why, "where HMM places GPU memory");
		else if (!run->found)
			report_hmm(run, g);
	}
	if (unknown && !run->found)
		return rule_unknown(run, FACT_WHY(unknown->pci->iommu_type),
				    "the IOMMU group type of GPU%zu", unknown->index);
	return rule_verdict(run, VERDICT_OK);
}

/* What pass-through sets off, as a sentence for a remedy. */
static const char *hmm_caveat(struct rule_run *run)
{
	const char *why;

	return judge_hmm(run, &why) == HMM_HARMLESS
		       ? ""
		       : " Set options " HMM_MODULE " " HMM_OPTION
			 "=1 with it (onehop fix does, where it is needed; see onehop check "
			 "--explain hmm-dma32).";
}

/* ---- what pass-through is asked for with ---- */

/* What says it on this CPU; NULL: nothing that is known here. */
static const char *iommu_word(const struct rule_run *run, bool off)
{
	static const struct {
		enum cpu_vendor vendor;
		const char *pass, *off;
	} words[] = {
		{CPU_INTEL, "iommu=pt", "intel_iommu=off"}, {CPU_AMD, "iommu=pt", "amd_iommu=off"},
		{CPU_HYGON, "iommu=pt", "amd_iommu=off"},   {CPU_ZHAOXIN, "iommu=pt", NULL},
		{CPU_ARM, "iommu.passthrough=1", NULL},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (fact_is(run->m->cpu.vendor, words[i].vendor))
			return off ? words[i].off : words[i].pass;
	return NULL;
}

#define FIND_OVERRIDE                                                                              \
	"find what overrides it: another IOMMU parameter there, or a group type that "             \
	"was set in /sys/kernel/iommu_groups/N/type"

static const char *iommu_remedy(struct rule_run *run)
{
	const char *caveat =
		fact_known(run->m->kernel.hypervisor)
			? " This is a virtual machine: its IOMMU is emulated, and the host's IOMMU, "
			  "which is not visible here, also translates."
			: "";
	bool amd = fact_is(run->m->cpu.vendor, CPU_AMD);
	const char *word = iommu_word(run, false);

	if (word && text_has_word(cmdline(run), word))
		return run_text(run, "%s is already on the kernel command line; " FIND_OVERRIDE,
				word);
	if (word && fix_pending(run, APPLIED_KERNEL_PARAMETER, word))
		return run_text(run, "reboot: onehop fix has already set %s", word);
	return run_text(run,
			"boot with %s: %s. Addresses then pass unchanged, and %s stays on for "
			"interrupt remapping.%s%s",
			word ? word : "iommu=pt", parameter_remedy(run, word ? word : "iommu=pt"),
			amd ? "AMD-Vi" : "VT-d", hmm_caveat(run), caveat);
}

#define COST_PASS                                                                                  \
	"the IOMMU no longer restricts device access to memory (drivers that request "             \
	"it, such as VFIO, still get it); interrupt remapping stays on"
#define COST_OFF                                                                                   \
	"the IOMMU restricts no device, no device can be assigned to a virtual "                   \
	"machine (VFIO), and interrupts are no longer remapped; with more than 255 "               \
	"CPU threads some may be lost"

/* ---- proposing pass-through ---- */

/*
 * Pass-through makes DMA direct: what that sets off is changed with it, or is a cost, which is
 * returned.
 */
static const char *with_hmm(struct rule_run *run, struct change_set *out)
{
	const char *why;
	enum hmm hmm = judge_hmm(run, &why);

	if (hmm == HMM_NARROWS)
		propose_hmm_off(run, out);
	return hmm == HMM_MAY_NARROW
		       ? "with HMM in use, host memory for GPUs may run short: check hmm-dma32 after "
			 "the reboot, as root"
		       : NULL;
}

/* Without an IOMMU no guest gets a device, and one that is started so has none. */
static bool refuse_off(struct rule_run *run, struct change_set *out)
{
	const struct guest_use use = guest_use(run->m, run->options->files);

	if (!use.by)
		return false;
	if (use.device)
		propose_by_hand(
			run, out, "the IOMMU stays on",
			"%s is assigned to virtual machines (%s), which need the IOMMU: remove it "
			"from them first, or run this with --iommu pt",
			use.device->name, use.by);
	else
		propose_by_hand(
			run, out, "the IOMMU stays on",
			"vfio-pci is loaded at each boot (%s), and without an IOMMU no virtual "
			"machine can have a device: remove that first, or run this with --iommu pt",
			use.by);
	return true;
}

static void propose_iommu(struct rule_run *run, struct change_set *out)
{
	bool off = run->options->iommu_off;
	const char *word = iommu_word(run, off);

	if (!propose_wanted(run) || (off && refuse_off(run, out)))
		return;
	if (!word)
		propose_by_hand(
			run, out, "the kernel's IOMMU parameter",
			"see Documentation/admin-guide/kernel-parameters.txt for how this CPU's "
			"IOMMU is %s",
			off ? "switched off" : "set to pass-through");
	else if (text_has_word(cmdline(run), word))
		propose_by_hand(run, out, run_text(run, "%s is on the kernel command line", word),
				FIND_OVERRIDE);
	else
		propose(run, out,
			(struct change){
				.kind = CHANGE_KERNEL_PARAMETER,
				.lifetime = CHANGE_KEPT,
				.target = word,
				.reason = TEXTS(
					off ? "the IOMMU is then off and does not affect peer packets"
					    : "the IOMMU then passes peer packets with unchanged addresses"),
				.cost = TEXTS(off ? COST_OFF : COST_PASS, with_hmm(run, out))});
}

/* Faults in the log or wrong data in tests show it. */
static bool iommu_is_proven(struct rule_run *run)
{
	FOR_EACH_GPU_PAIR (i, j, run)
		if (topology_path(run->t, i, j)->chain[CHAIN_IOMMU].state == CHAIN_BAD)
			return true;
	return false;
}

static enum verdict probe_iommu(struct rule_run *run)
{
	struct pair_set pairs = pair_set_new(run);
	const char *names = NULL;
	bool unknown = false;
	struct finding *f;

	if (fact_is(run->m->kernel.iommus, 0))
		return VERDICT_OK;
	FOR_EACH_GPU (g, run) {
		unknown |= fact_unknown(g->pci->iommu_type);
		if (translates(g))
			names = run_list(run, names, run_text(run, "GPU%zu", g->index));
	}
	if (!names)
		return unknown ? rule_unknown(run, FACT_WHY(run->m->gpus[0].pci->iommu_type),
					      "the IOMMU group types")
			       : VERDICT_OK;
	FOR_EACH_GPU_PAIR (i, j, run)
		if (translates(&run->m->gpus[i]) && !path_is_nvlink(topology_path(run->t, i, j)))
			pair_set_add(&pairs, i, j);
	f = finding_add(
		run, CONFIDENCE_LIKELY,
		SUBJECT(HOST,
			run_text(run, "IOMMU %s", fact_str_or(run->m->kernel.iommu_names, ""))),
		"it translates the addresses of %s, so peer packets go up to it instead of across: "
		"slow, or with faults and wrong data",
		names);
	f->pairs = pairs.n;
	if (iommu_is_proven(run)) {
		f->severity = SEVERITY_ERROR;
		f->confidence = CONFIDENCE_CERTAIN;
	} else if (!pairs.n) {
		f->severity = SEVERITY_INFO;
		f->confidence = CONFIDENCE_POSSIBLE;
	}
	finding_remedy(run, f, "%s", iommu_remedy(run));
	FOR_EACH_GPU (g, run) {
		if (translates(g))
			finding_names(run, f, g->pci);
		evidence_str(run, f, run_text(run, "IOMMU group type of %s", g->pci->name),
			     g->pci->iommu_type);
		finding_expects(f, "identity");
	}
	evidence_str(run, f, "kernel command line", run->m->kernel.cmdline);
	return VERDICT_BAD;
}

/* ---- IOMMU parameters ---- */

static bool has(struct rule_run *run, const char *word)
{
	return text_has_word(cmdline(run), word);
}

static bool is_intel(struct rule_run *run)
{
	return fact_is(run->m->cpu.vendor, CPU_INTEL);
}

static bool is_amd(struct rule_run *run)
{
	return fact_is(run->m->cpu.vendor, CPU_AMD);
}

static bool no_iommu(struct rule_run *run)
{
	return fact_is(run->m->kernel.iommus, 0);
}

static bool wants_pt(struct rule_run *run)
{
	return has(run, "iommu=pt") || has(run, "iommu.passthrough=1");
}

static bool is_off(struct rule_run *run)
{
	return has(run, "iommu=off") || has(run, "intel_iommu=off") || has(run, "amd_iommu=off");
}

static bool pt_without_iommu(struct rule_run *run)
{
	return wants_pt(run) && no_iommu(run) && !is_off(run);
}

static bool intel_on_amd(struct rule_run *run)
{
	return is_amd(run) && has(run, "intel_iommu=");
}

static bool amd_on_intel(struct rule_run *run)
{
	return is_intel(run) && has(run, "amd_iommu=");
}

static bool amd_iommu_on(struct rule_run *run)
{
	return is_amd(run) && has(run, "amd_iommu=on");
}

static bool pt_and_off(struct rule_run *run)
{
	return wants_pt(run) && is_off(run);
}

static bool on_and_off(struct rule_run *run)
{
	return (has(run, "intel_iommu=on") &&
		(has(run, "intel_iommu=off") || has(run, "iommu=off"))) ||
	       (wants_pt(run) && has(run, "iommu.passthrough=0"));
}

static bool off_yet_translating(struct rule_run *run)
{
	bool off = has(run, "iommu=off") || (is_intel(run) && has(run, "intel_iommu=off")) ||
		   (is_amd(run) && has(run, "amd_iommu=off"));

	return off && fact_is_not(run->m->kernel.iommus, 0);
}

/* Between root ports the bits cost nothing without an IOMMU; switches obey them in any case. */
static bool amd_off_leaves_acs(struct rule_run *run)
{
	const struct port_hits *hits;

	if (!is_amd(run) || !has(run, "amd_iommu=off"))
		return false;
	hits = switch_hits(run);
	FOR_EACH_PCI (f, run)
		if (hits[f->index].hit && !acs_kept(run->m, f).by)
			return true;
	return false;
}

/* What people write and what it does. */
static const struct parameter_trap {
	bool (*applies)(struct rule_run *run);
	const char *sentence, *remedy;
} parameter_traps[] = {
	{on_and_off, "the command line enables and disables the same feature; the last word wins",
	 "keep one of the two"},
	{pt_and_off, "pass-through is set but the IOMMU is disabled: pass-through has no effect",
	 "remove one of them; iommu=pt alone is enough for P2P and keeps interrupt "
	 "remapping"},
	{pt_without_iommu,
	 "iommu=pt has no effect: this kernel found no IOMMU (it is disabled in the "
	 "firmware setup, or missing)",
	 "leave it, or remove it; P2P needs neither"},
	{intel_on_amd, "intel_iommu= has no effect on an AMD processor",
	 "remove it; AMD-Vi is on by default, and iommu=pt sets it to pass-through"},
	{amd_on_intel, "amd_iommu= has no effect on an Intel processor",
	 "remove it; VT-d has intel_iommu=, and iommu=pt sets it to pass-through"},
	{amd_iommu_on,
	 "amd_iommu=on is not a value that the kernel supports: AMD-Vi is on by "
	 "default",
	 "remove it"},
	{off_yet_translating, "the IOMMU is disabled on the command line, but it is active",
	 "look for a later parameter or a built-in command line that enables it "
	 "(dmesg)"},
	{amd_off_leaves_acs, "amd_iommu=off leaves the ACS redirect bits of switch ports set",
	 "clear the bits, as the rules acs-redirect and acs-completion-redirect "
	 "describe for each port"},
};

static enum verdict probe_parameters(struct rule_run *run)
{
	if (!fact_known(run->m->kernel.cmdline))
		return rule_unknown(run, FACT_WHY(run->m->kernel.cmdline),
				    "the kernel's command line");
	for (size_t i = 0; i < sizeof(parameter_traps) / sizeof(parameter_traps[0]); i++) {
		struct finding *f;

		if (!parameter_traps[i].applies(run))
			continue;
		f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "kernel command line"), "%s",
				parameter_traps[i].sentence);
		finding_remedy(run, f, "%s", parameter_traps[i].remedy);
		evidence_str(run, f, "kernel command line", run->m->kernel.cmdline);
		evidence_int(run, f, "number of IOMMUs", run->m->kernel.iommus);
	}
	return rule_verdict(run, VERDICT_OK);
}

/* The words of the command line that are about the IOMMU. */
static const char *iommu_words(struct rule_run *run)
{
	static const char *const starts[] = {"iommu", "intel_iommu", "amd_iommu"};
	const char *list = NULL, *p = cmdline(run);

	for (size_t n; *p; p += n) {
		p += strspn(p, " \t\n");
		n = strcspn(p, " \t\n");
		for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
			if (text_starts_with(p, starts[i]))
				list = run_list(run, list, run_text(run, "%.*s", (int)n, p));
	}
	return list ? list : "none";
}

static void propose_parameters(struct rule_run *run, struct change_set *out)
{
	const char *what = run_text(run, "kernel command line (%s)", iommu_words(run));

	FOR_EACH_FINDING (f, run)
		if (f->rule == run->rule)
			propose_by_hand(run, out, what, "%s: %s", f->sentence, f->remedy);
}

/* ---- host bridge and sockets ---- */

/* GPU pairs whose host-bridge step has this reason; *ret_state is theirs (one reason, one state).
 */
static struct pair_set pairs_with(struct rule_run *run, enum chain_reason reason)
{
	struct pair_set set = pair_set_new(run);

	FOR_EACH_GPU_PAIR (i, j, run)
		if (topology_path(run->t, i, j)->chain[CHAIN_HOST_BRIDGE].reason == reason)
			pair_set_add(&set, i, j);
	return set;
}

static enum verdict probe_host_bridge(struct rule_run *run)
{
	struct pair_set writes = pairs_with(run, REASON_HOST_BRIDGE_WRITES_ONLY);
	struct pair_set unknown = pairs_with(run, REASON_HOST_BRIDGE_UNKNOWN);
	struct finding *f;

	if (!writes.n && !unknown.n)
		return VERDICT_OK;
	if (!writes.n)
		return rule_unknown(
			run,
			"it is on neither list, and the driver did not answer; only a copy with "
			"checked data shows it",
			"whether the host bridge of \"%s\" forwards peer traffic",
			fact_str_or(run->m->cpu.name, "this CPU"));
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(HOST, "host bridge"),
			"%s meet only in the CPU (%s), which is not on the driver's list for peer "
			"reads between root ports; writes are allowed",
			pair_set_text(run, &writes),
			fact_str_or(run->m->cpu.name, "of unknown name"));
	finding_names_pairs(run, f, &writes);
	evidence_str(run, f, "CPU", run->m->cpu.name);
	evidence_int(run, f, "CPU family", run->m->cpu.family);
	evidence_int(run, f, "CPU model", run->m->cpu.model);
	return VERDICT_BAD;
}

static enum verdict probe_sockets(struct rule_run *run)
{
	return !path_is_nvlink(run->path) &&
			       run->path->chain[CHAIN_HOST_BRIDGE].reason == REASON_CROSS_SOCKET
		       ? VERDICT_BAD
		       : VERDICT_OK;
}

static void report_sockets(struct rule_run *run)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(HOST, "CPU sockets"),
			    "%s are on different CPU sockets: their path crosses the link between "
			    "the sockets, which all traffic shares",
			    pair_set_text(run, run->pairs));

	f->pairs = run->pairs->n;
	FOR_EACH_GPU (g, run)
		evidence_int(run, f, run_text(run, "NUMA node of %s", g->pci->name),
			     g->pci->numa_node);
}

static const char *group_text(struct rule_run *run, const struct rate_groups *g, bool second)
{
	const char *names = NULL;
	size_t n = 0;

	FOR_EACH_GPU (gpu, run)
		if (g->second[gpu->index] == second) {
			names = run_list(run, names, run_text(run, "GPU%zu", gpu->index));
			n++;
		}
	return gpu_list_text(run, names, n);
}

/* Rates show what a text without PCI tree and NUMA nodes does not say. */
static void heard_sockets(struct rule_run *run)
{
	const int64_t sockets = fact_or(run->m->cpu.sockets, 0);
	struct rate_groups g;
	struct finding *f;

	FOR_EACH_GPU (gpu, run)
		if (fact_known(gpu->pci->numa_node))
			return;
	if (sockets != 2 || !rate_groups_find(run->m, run->d->arena, &g))
		return;
	f = finding_add(run, CONFIDENCE_POSSIBLE, SUBJECT(HOST, "CPU sockets"),
			"copies between %s and %s reach %.3g to %.3g GB/s%s, within each group at "
			"least %.3g: each group is probably on one of the %" PRId64 " sockets",
			group_text(run, &g, false), group_text(run, &g, true), g.least, g.most,
			g.both_ways ? " both ways" : "", g.within, sockets);
	evidence_int(run, f, "sockets", run->m->cpu.sockets);
	evidence_observed(run, f, g.first, "%.3g GB/s", g.first->value);
}

static enum verdict probe_class(struct rule_run *run)
{
	const size_t i = run->initiator, j = run->target;
	const struct path *p = run->path;
	struct fact_int level = run->m->pairs ? machine_pair(run->m, i, j)->common_ancestor
					      : fact_int_unknown(NULL);
	struct finding *f;

	if (j < i || p->tree_class == PATH_UNKNOWN || p->pci_class == PATH_UNKNOWN)
		return VERDICT_NA;
	if (p->tree_class == p->pci_class)
		return fact_known(level) ? VERDICT_OK : VERDICT_NA;
	f = finding_add(run, CONFIDENCE_CERTAIN,
			SUBJECT(PAIR, run_text(run, "GPU%zu and GPU%zu", i, j)),
			"NVML reports %s, the PCI tree shows %s; onehop uses NVML's answer",
			path_class_word(p->pci_class), path_class_word(p->tree_class));
	f->pairs = 2;
	evidence_int(run, f, "NVML common ancestor", level);
	finding_evidence(run, f, NULL, "common bridge in the tree", "%s",
			 p->common ? p->common->name : "none");
	evidence_int(run, f, run_text(run, "NUMA node of %s", run->m->gpus[i].pci->name),
		     run->m->gpus[i].pci->numa_node);
	evidence_int(run, f, run_text(run, "NUMA node of %s", run->m->gpus[j].pci->name),
		     run->m->gpus[j].pci->numa_node);
	return VERDICT_BAD;
}

#define ACS_REMEDY                                                                                 \
	"until the next reboot: `setpci -s PORT ECAP_ACS+6.w=VALUE`, where VALUE is "              \
	"ACSCtl with bits 2, 3 and 5 cleared; permanently: kernel parameter "                      \
	"pci=disable_acs_redir=PORT;PORT, which GRUB and shells cut at the ; unless "              \
	"the whole word is in quotes: in /etc/default/grub `" GRUB_LINE_START                      \
	"'pci=disable_acs_redir=PORT;PORT'" GRUB_LINE_END "`"
#define ACS "PCIe 6.0, 6.12 and 7.7.11 (ACS); drivers/pci/p2pdma.c"

const struct rule rules_routing[] = {
	{
		.id = "acs-redirect",
		.title = "No switch port redirects peer requests up to the CPU (ACS)",
		.why = "Packets between two devices below one switch then go up to the CPU and back "
		       "down: slower, blocked by the IOMMU, or hanging.",
		.remedy = ACS_REMEDY,
		.reference = ACS
		"; Documentation/admin-guide/kernel-parameters.txt, pci=disable_acs_redir; "
		"NVIDIA/nccl-tests#252",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.reason = REASON_ACS_REQUEST_REDIRECT,
		.needs = NEEDS_GPU | NEEDS_TREE,
		.probe = probe_redirect,
		.propose = propose_redirect,
		.number = REDIRECTED_REQUESTS,
	},
	{
		.id = "acs-completion-redirect",
		.title = "No switch port redirects completions of peer reads up to the CPU (ACS)",
		.why = "Writes stay inside the switch, but reads go through the CPU: one direction "
		       "is slow or fails.",
		.remedy = ACS_REMEDY,
		.reference = ACS,
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.reason = REASON_ACS_COMPLETION_REDIRECT,
		.needs = NEEDS_GPU | NEEDS_TREE,
		.probe = probe_redirect,
		.propose = propose_redirect,
		.number = REDIRECTED_COMPLETIONS,
	},
	{
		.id = "acs-root-port",
		.turn = TURN_LAST,
		.title = "The root ports above the GPUs have no ACS redirect bits set",
		.why = "Without a common switch packets pass through the CPU in any case: the bits "
		       "cost nothing while the IOMMU is off or in pass-through mode, and 3 to 9 "
		       "GB/s while it translates. On some AMD machines NCCL hung until they were "
		       "cleared.",
		.remedy = ACS_REMEDY,
		.reference = ACS "; NVIDIA/nccl#2079",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.reason = REASON_ACS_ROOT_PORT,
		.needs = NEEDS_TWO_GPUS | NEEDS_TREE,
		.probe = probe_acs_root_port,
		.propose = propose_acs_root_port,
	},
	{
		.id = "iommu-translating",
		.title = "No IOMMU translates the addresses of peer traffic",
		.why = "With translation every peer packet goes up to the IOMMU; copies have hung, "
		       "faulted or produced wrong data.",
		.remedy = "boot with the kernel parameter iommu=pt (GRUB_CMDLINE_LINUX_DEFAULT in "
			  "/etc/default/grub, then update-grub)",
		.reference =
			"Documentation/admin-guide/kernel-parameters.txt, iommu=; "
			"Documentation/ABI/testing/sysfs-kernel-iommu_groups; NVIDIA/nccl#257, "
			"NVIDIA/cuda-samples#48, pytorch/pytorch#87363",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_GPU,
		.probe = probe_iommu,
		.propose = propose_iommu,
	},
	{
		.id = "hmm-dma32",
		.title = "HMM does not limit host memory for GPUs with direct DMA",
		.why = "HMM gives GPU memory physical addresses at the top of the CPU's address "
		       "range. If those exceed a card's address bits and the IOMMU is off or in "
		       "pass-through mode, the driver takes host memory for the card only from the "
		       "first 4 GiB: cuMemCreate on the host fails, and NCCL 2.26.3 and later fails "
		       "with \"Error while attaching to shared memory segment\" (size 0).",
		.remedy =
			"options " HMM_MODULE " " HMM_OPTION
			"=1 in /etc/modprobe.d, and reboot (onehop fix sets it; the addresses stay "
			"in use until then); GPUs can then no longer access memory from malloc; or, "
			"for one job, NCCL_CUMEM_HOST_ENABLE=0",
		.reference = "open-gpu-kernel-modules nv-vm.c nv_compute_gfp_mask (535 to 595), "
			     "NVIDIA/open-gpu-kernel-modules#1301; NVIDIA/nccl#2190; "
			     "WU-CVGL/cluster-setup docs/05_GPU_P2P_GeForce_and_CMP.md",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS | NEEDS_DRIVER,
		.probe = probe_hmm,
		.propose = propose_hmm,
	},
	{
		.id = "iommu-parameters",
		.title = "The IOMMU parameters on the kernel command line take effect",
		.why = "A parameter without effect hides that the intended change was never made.",
		.remedy = "keep iommu=pt alone",
		.reference =
			"Documentation/admin-guide/kernel-parameters.txt, iommu=, intel_iommu=, "
			"amd_iommu=",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_CMDLINE,
		.probe = probe_parameters,
		.propose = propose_parameters,
	},
	{
		.id = "host-bridge",
		.title = "The host bridge is known to forward peer traffic where pairs meet in it",
		.why = "Packets between two GPUs without a common switch pass through the CPU; the "
		       "driver refuses reads on CPUs that are not on its list.",
		.remedy =
			"move both GPUs below one PCIe switch; otherwise "
			"NVreg_RegistryDwords=\"ForceP2P=0x211\" (0x11 before driver 565) bypasses "
			"the list: run `onehop test` to check that the data arrives correctly, and "
			"remove the setting if it does not",
		.reference = "open-gpu-kernel-modules p2p_caps.c "
			     "_p2pCapsGetHostSystemStatusOverPcieBar1, cpu.c; drivers/pci/p2pdma.c "
			     "pci_p2pdma_whitelist",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.predicts = true,
		.needs = NEEDS_TWO_GPUS | NEEDS_TREE,
		.probe = probe_host_bridge,
	},
	{
		.id = "cross-socket",
		.title = "All GPU pairs are on one CPU socket or connected by NVLink",
		.why = "The link between sockets is slower than the GPUs' own links together, and "
		       "by default NCCL does not use P2P on such paths.",
		.remedy = "for jobs on some of the GPUs choose GPUs of one socket "
			  "(CUDA_VISIBLE_DEVICES); measure with `onehop bench nccl` before raising "
			  "NCCL_P2P_LEVEL to SYS",
		.reference = "NVIDIA/nccl-tests#74; NCCL documentation, NCCL_P2P_LEVEL",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS | NEEDS_TREE,
		.scope = SCOPE_PAIR,
		.probe = probe_sockets,
		.heard = heard_sockets,
		.report = report_sockets,
	},
	{
		.id = "topology-agrees",
		.title = "NVML and the PCI tree agree on the location of the GPUs",
		.why = "They differ in virtual machines and where the firmware reports wrong NUMA "
		       "nodes; then distances, and NCCL's choices based on them, are unreliable.",
		.remedy =
			"in a virtual machine check the host; otherwise check NUMA settings (NPS, "
			"SNC) and numa_node of the devices",
		.reference = "nvml.h nvmlDeviceGetTopologyCommonAncestor; "
			     "Documentation/ABI/testing/sysfs-bus-pci, numa_node",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.needs = NEEDS_TWO_GPUS,
		.scope = SCOPE_PAIR,
		.probe = probe_class,
	},
	{0},
};
