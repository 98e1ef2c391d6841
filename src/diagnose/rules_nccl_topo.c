/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules about the topology that NCCL plans with: links of a virtual machine, and a file that it is
 * given.
 */
#include "base/text.h"
#include "diagnose/rules.h"
#include "machine/nccl_topology.h"

#include <inttypes.h>
#include <string.h>

#define FOR_EACH_LISTED(d, run)                                                                    \
	FOR_EACH_IN(struct nccl_topology_device, d, (run)->m->nccl.topology.devices,               \
		    (run)->m->nccl.topology.n)

/* A GPU or a NIC whose link NCCL plans with; bridges of a file may not exist in the machine. */
static bool is_endpoint(const struct nccl_topology_device *d)
{
	return nccl_device_is_gpu(d) || nccl_device_is_nic(d);
}

static const char *device_word(const struct nccl_topology_device *d)
{
	return nccl_device_is_gpu(d) ? "GPU" : "NIC";
}

static const struct pci_function *function_at(const struct rule_run *run, const char *address)
{
	FOR_EACH_PCI (f, run)
		if (strcmp(f->name, address) == 0)
			return f;
	return NULL;
}

/* ---- links ---- */

/*
 * The slowest that a GPU or a NIC of a server can have: 2.5 GT/s x16, about 3 GB/s as NCCL counts.
 */
#define SLOWEST_GBPS 3.0

static const char *gbps_text(struct rule_run *run, double gbps)
{
	return run_text(run, "%.*f GB/s", gbps < 1 ? 2 : 1, gbps);
}

static struct finding *link_finding(struct rule_run *run, enum confidence c, const char *sentence)
{
	struct finding *f = finding_add(run, c, SUBJECT(NCCL, "NCCL"), "%s", sentence);

	if (fact_known(run->m->kernel.hypervisor))
		evidence_str(run, f, "hypervisor", run->m->kernel.hypervisor);
	return f;
}

/* What a guest shows of a link is the hypervisor's; of a machine without one it is the link. */
static bool link_may_be_emulated(const struct rule_run *run)
{
	return !fact_absent(run->m->kernel.hypervisor);
}

static enum confidence emulated_confidence(const struct rule_run *run)
{
	return fact_known(run->m->kernel.hypervisor) ? CONFIDENCE_LIKELY : CONFIDENCE_POSSIBLE;
}

static bool guesses(const struct nccl_topology_device *d)
{
	return d->used && is_endpoint(d) && d->speed && !nccl_knows_speed(d->speed);
}

static bool is_slow(const struct nccl_topology_device *d)
{
	return d->used && is_endpoint(d) && d->speed && nccl_knows_speed(d->speed) &&
	       nccl_link_gbps(d->speed, d->width) < SLOWEST_GBPS;
}

/* The devices of the dump that are so, in one finding. */
static void report_listed(struct rule_run *run, bool (*wanted)(const struct nccl_topology_device *),
			  enum confidence c, const char *sentence)
{
	struct finding *f = NULL;

	FOR_EACH_LISTED(d, run)
	{
		if (!wanted(d))
			continue;
		f = f ? f : link_finding(run, c, sentence);
		finding_evidence(run, f, run->m->nccl.topology.from,
				 run_text(run, "%s %s", device_word(d), d->address),
				 "link_speed=\"%s\", link_width=%d: NCCL plans with %s", d->speed,
				 d->width, gbps_text(run, nccl_link_gbps(d->speed, d->width)));
	}
}

#define GUESSED                                                                                    \
	"NCCL knows no speed of the PCIe links and plans with 8 GT/s for each (12.0 GB/s at "      \
	"x16), whatever they are"

#define TOO_SLOW                                                                                   \
	"NCCL plans with less than 3 GB/s for the PCIe link of a GPU or NIC, which is the figure " \
	"of an emulated port"

/* Lines of NCCL's log. */
static void report_logged(struct rule_run *run, enum tool_message message, enum confidence c,
			  const char *sentence)
{
	struct finding *f = NULL;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind != OBSERVED_MESSAGE || o->message != message)
			continue;
		f = f ? f : link_finding(run, c, sentence);
		evidence_text(run, f, o->from, o->text);
	}
}

/* Over NVLink the links of PCIe only matter for NICs. */
static void soften(struct rule_run *run, struct finding *f)
{
	if (all_pairs_nvlink(run) && !run->m->rdma_n)
		f->severity = SEVERITY_INFO;
}

/* The speed as the kernel writes it, from MT/s. */
static const char *speed_text(struct rule_run *run, int64_t mtps)
{
	return run_text(run, "%.1f GT/s PCIe", (double)mtps / 1000);
}

static bool port_figures_known(const struct gpu *g)
{
	const struct pci_function *card = g->pci, *port = card->parent;

	return port && fact_known(card->link_speed_max) && fact_known(card->link_width_max) &&
	       fact_known(port->link_speed_max) && fact_known(port->link_width_max);
}

/* There is no port, and NCCL takes the card's own figures. */
static bool on_root_bus(struct rule_run *run, const struct gpu *g)
{
	return !g->pci->parent && fact_known(g->pci->link_speed_max) &&
	       fact_known(g->pci->link_width_max) && rule_needs_met(run, NEEDS_TREE) == VERDICT_OK;
}

/* In a guest NCCL takes the lesser of card and port, and the port is emulated. */
static void report_port(struct rule_run *run, const struct gpu *g)
{
	const struct pci_function *card = g->pci, *port = card->parent;
	double can, plan;
	struct finding *f;

	if (!port_figures_known(g))
		return;
	can = nccl_link_gbps(speed_text(run, card->link_speed_max.value),
			     (int)card->link_width_max.value);
	plan = nccl_link_gbps(speed_text(run,
					 port->link_speed_max.value < card->link_speed_max.value
						 ? port->link_speed_max.value
						 : card->link_speed_max.value),
			      (int)(port->link_width_max.value < card->link_width_max.value
					    ? port->link_width_max.value
					    : card->link_width_max.value));
	if (plan * 2 >= can)
		return;
	f = finding_add(run, CONFIDENCE_LIKELY, subject_gpu(run, g),
			"NCCL plans with %s for the link of " ABOUT
			", the figure of the emulated port above it; the card supports %s",
			gbps_text(run, plan), gbps_text(run, can));
	evidence_int(run, f, run_text(run, "largest speed of %s, MT/s", card->name),
		     card->link_speed_max);
	evidence_int(run, f, run_text(run, "largest speed of port %s, MT/s", port->name),
		     port->link_speed_max);
	evidence_int(run, f, run_text(run, "lanes of port %s", port->name), port->link_width_max);
	evidence_str(run, f, "hypervisor", run->m->kernel.hypervisor);
}

/* The kernel shows no link of the card: the hypervisor gives it no PCIe capability. */
static bool report_no_links(struct rule_run *run)
{
	struct finding *f = NULL;

	FOR_EACH_GPU (g, run) {
		if (!fact_absent(g->pci->link_speed_max))
			continue;
		f = f ? f : link_finding(run, CONFIDENCE_LIKELY, GUESSED);
		finding_evidence(run, f, NULL,
				 run_text(run, "max_link_speed of GPU%zu %s", g->index,
					  g->pci->name),
				 "absent");
	}
	if (f)
		soften(run, f);
	return f;
}

static enum verdict probe_ports(struct rule_run *run)
{
	if (!run->m->gpu_n)
		return VERDICT_NA;
	if (fact_unknown(run->m->kernel.hypervisor))
		return rule_unknown(run, FACT_WHY(run->m->kernel.hypervisor),
				    "whether this is a virtual machine");
	if (report_no_links(run))
		return VERDICT_OK;
	FOR_EACH_GPU (g, run) {
		report_port(run, g);
		if (!run->found && !port_figures_known(g) && !on_root_bus(run, g))
			return rule_unknown(run, NULL,
					    "the link of GPU%zu and of the port above it",
					    g->index);
	}
	return rule_verdict(run, VERDICT_OK);
}

static bool file_is_given(const struct rule_run *run)
{
	return run->m->nccl.topology.n && !run->m->nccl.topology.dumped;
}

static enum verdict probe_link_speed(struct rule_run *run)
{
	report_listed(run, guesses, CONFIDENCE_CERTAIN, GUESSED);
	if (!run->found)
		report_logged(run, MESSAGE_LINK_GUESSED, CONFIDENCE_CERTAIN, GUESSED);
	if (link_may_be_emulated(run)) {
		report_listed(run, is_slow, emulated_confidence(run), TOO_SLOW);
		report_logged(run, MESSAGE_LINK_PLANNED, emulated_confidence(run), TOO_SLOW);
	}
	if (!run->found && file_is_given(run) && run->m->text_part_n)
		return rule_unknown(run, "not in the text", "the rest of NCCL's topology");
	/* A file replaces what the ports show. */
	if (run->found || file_is_given(run) || fact_absent(run->m->kernel.hypervisor))
		return rule_verdict(run, VERDICT_OK);
	return probe_ports(run);
}

/* ---- a file ---- */

/* Only where every function is listed. */
static bool is_missing(struct rule_run *run, const struct nccl_topology_device *d)
{
	return nccl_device_is_gpu(d) && fact_known(run->m->pci_listed) &&
	       !function_at(run, d->address);
}

static bool file_lists(const struct rule_run *run, const struct pci_function *f)
{
	FOR_EACH_LISTED(d, run)
	if (strcmp(d->address, f->name) == 0)
		return true;
	return false;
}

static const char *file_name(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_TOPO_FILE");

	return s && *s->value ? s->value : run->m->nccl.topology.from;
}

static void report_absent(struct rule_run *run)
{
	const char *list = NULL;
	size_t n = 0;

	FOR_EACH_LISTED(d, run)
	if (is_missing(run, d) && n++ < 4)
		list = run_list(run, list, d->address);
	if (n)
		finding_evidence(run,
				 finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(NCCL, "NCCL"),
					     "the topology file lists %zu %s that the machine does "
					     "not have (%s%s): it is of another machine",
					     n, text_plural(n, "GPU", "GPUs"), list,
					     n > 4 ? ", ..." : ""),
				 NULL, "topology file", "%s", file_name(run));
}

static void report_unlisted(struct rule_run *run)
{
	const char *list = NULL;
	size_t n = 0;

	FOR_EACH_GPU (g, run) {
		if (g->pci->address.domain == PCI_NO_ADDRESS || file_lists(run, g->pci))
			continue;
		list = run_list(run, list, run_text(run, "GPU%zu", g->index));
		n++;
	}
	if (n)
		finding_evidence(
			run,
			finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(NCCL, "NCCL"),
				    "the topology file does not list %s: NCCL places %s by "
				    "the PCI tree that the machine shows",
				    gpu_list_text(run, list, n), n > 1 ? "them" : "it"),
			NULL, "topology file", "%s", file_name(run));
}

/*
 * A card's own figures are its own in a guest, too; the port's are only real without a hypervisor.
 */
static double real_gbps(struct rule_run *run, const struct pci_function *f)
{
	int64_t speed = fact_or(f->link_speed_max, 0), width = fact_or(f->link_width_max, 0);
	const struct pci_function *port = fact_absent(run->m->kernel.hypervisor) ? f->parent : NULL;

	if (speed <= 0 || width <= 0)
		return 0;
	if (port && fact_or(port->link_speed_max, speed) < speed)
		speed = port->link_speed_max.value;
	if (port && fact_or(port->link_width_max, width) < width)
		width = port->link_width_max.value;
	return nccl_link_gbps(speed_text(run, speed), (int)width);
}

static void report_link(struct rule_run *run, const struct nccl_topology_device *d)
{
	const struct pci_function *f = function_at(run, d->address);
	double real = f && is_endpoint(d) ? real_gbps(run, f) : 0, plan;
	bool bare = fact_absent(run->m->kernel.hypervisor);
	struct finding *found;

	if (!f || !d->speed || real <= 0)
		return;
	plan = nccl_link_gbps(d->speed, d->width);
	if (plan <= real * 1.01 && (!bare || plan >= real * 0.99))
		return;
	found = finding_add(run, CONFIDENCE_CERTAIN,
			    subject_device(run, SUBJECT_DEVICE, device_word(d), f),
			    "the topology file gives the link of " ABOUT " %s, but it has %s%s",
			    gbps_text(run, plan), gbps_text(run, real), bare ? "" : " at most");
	finding_evidence(run, found, file_name(run), run_text(run, "link of %s", d->address),
			 "link_speed=\"%s\", link_width=%d", d->speed, d->width);
	evidence_int(run, found, run_text(run, "largest speed of %s, MT/s", f->name),
		     f->link_speed_max);
	evidence_int(run, found, run_text(run, "lanes of %s", f->name), f->link_width_max);
}

static enum verdict probe_contents(struct rule_run *run)
{
	const struct setting *s = machine_setting(run->m, "NCCL_TOPO_FILE");

	if (!file_is_given(run))
		return s && *s->value ? rule_unknown(run, NULL, "the content of %s", s->value)
				      : rule_needs_met(run, NEEDS_SETTINGS);
	report_absent(run);
	report_unlisted(run);
	FOR_EACH_LISTED(d, run)
	report_link(run, d);
	if (!run->found && !fact_known(run->m->pci_listed))
		return rule_unknown(run, FACT_WHY(run->m->pci_listed), "the PCI devices");
	return rule_verdict(run, VERDICT_OK);
}

/* ---- the table ---- */

#define NCCL_XML "NVIDIA/nccl src/graph/xml.cc, topo.cc"

const struct rule rules_nccl_topo[] = {
	{
		.id = "nccl-link-speed",
		.title = "NCCL plans with the real speed of every PCIe link",
		.why = "NCCL chooses rings, trees and the NIC of each GPU by the speeds that it reads. "
		       "In a virtual machine they are those of emulated ports, or missing.",
		.remedy =
			"give NCCL a file with the host's real topology (NCCL_TOPO_FILE; cloud "
			"images ship one for each type of machine), or have the hypervisor show the "
			"links (QEMU: pcie-root-port with x-speed=32,x-width=16)",
		.reference = NCCL_XML "; NVIDIA/nccl#428, NVIDIA/nccl#1843, NVIDIA/nccl-tests#182",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = 0,
		.probe = probe_link_speed,
	},
	{
		.id = "nccl-topo-contents",
		.title = "The topology file that NCCL is given matches the machine",
		.why = "NCCL trusts the file: devices that it lists wrongly or not at all get the "
		       "wrong distances, NICs and speeds.",
		.remedy =
			"unset NCCL_TOPO_FILE, or give it the file for exactly this type of machine; "
			"NCCL_TOPO_DUMP_FILE=FILE writes what NCCL finds by itself",
		.reference = NCCL_XML "; Azure/azurehpc-health-checks#142",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_GPU | NEEDS_SETTINGS,
		.probe = probe_contents,
	},
	{0},
};
