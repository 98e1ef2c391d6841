/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs below one switch that cannot reach each other there, and so share its link to the CPU. */
#include "diagnose/rules.h"

#include "base/alloc.h"

#include <inttypes.h>

/* The switch port that is nearest to the CPU; NULL: the GPU is below no switch. */
static const struct pci_function *uplink_of(const struct gpu *g)
{
	const struct pci_function *top = NULL;

	for (const struct pci_function *f = g->pci->parent; f; f = f->parent)
		if (fact_is(f->port_type, PCI_PORT_UPSTREAM))
			top = f;
	return top;
}

/*
 * A bridge above it that may be a switch's port, whose registers were not read; NULL: there is
 * none.
 */
static const struct pci_function *unread_above(const struct gpu *g)
{
	for (const struct pci_function *f = g->pci->parent; f; f = f->parent)
		if (fact_unknown(f->port_type))
			return f;
	return NULL;
}

/* The GPUs below one uplink, and the pairs of them that are not direct. */
struct uplink {
	const struct pci_function *port;
	const char *names;
	size_t gpus;
	struct pair_set blocked;
	bool undecided;
};

static void add_pair(struct uplink *u, const struct path *p, size_t i, size_t j)
{
	if (path_is_nvlink(p))
		return;
	if (p->verdict == PAIR_BLOCKED)
		pair_set_add(&u->blocked, i, j);
	u->undecided |= p->verdict == PAIR_UNDECIDED;
}

static struct uplink collect(struct rule_run *run, const struct pci_function *port)
{
	struct uplink u = {.port = port, .blocked = pair_set_new(run)};

	FOR_EACH_GPU (g, run) {
		if (uplink_of(g) != port)
			continue;
		u.names = run_list(run, u.names, run_text(run, "GPU%zu", g->index));
		u.gpus++;
	}
	FOR_EACH_GPU_PAIR (i, j, run)
		if (uplink_of(&run->m->gpus[i]) == port && uplink_of(&run->m->gpus[j]) == port)
			add_pair(&u, topology_path(run->t, i, j), i, j);
	return u;
}

static void report(struct rule_run *run, const struct uplink *u)
{
	struct finding *f = finding_add(
		run, CONFIDENCE_LIKELY, subject_device(run, SUBJECT_PORT, "port", u->port),
		"%s share this uplink; transfers without P2P (%s) pass it up to host memory and "
		"down again, so together they have the rate of one link",
		gpu_list_text(run, u->names, u->gpus), pair_set_text(run, &u->blocked));

	f->pci = u->port;
	finding_names_pairs(run, f, &u->blocked);
	f->pairs = u->blocked.n;
	if (fact_known(u->port->link_speed) && fact_known(u->port->link_width))
		finding_evidence(run, f, u->port->link_speed.from, "link of the uplink",
				 "%.1f GT/s x%" PRId64, (double)u->port->link_speed.value / 1000,
				 u->port->link_width.value);
	FOR_EACH_GPU (g, run)
		if (uplink_of(g) == u->port)
			finding_evidence(run, f, NULL, run_text(run, "GPU%zu", g->index),
					 "%s, below %s", g->pci->name, u->port->name);
}

/* The first GPU of each uplink stands for it. */
static bool is_first(struct rule_run *run, const struct gpu *gpu, const struct pci_function *port)
{
	FOR_EACH_GPU (g, run)
		if (uplink_of(g) == port)
			return g == gpu;
	return false;
}

static enum verdict probe_uplink(struct rule_run *run)
{
	const struct pci_function *unread = NULL;
	bool undecided = false;

	FOR_EACH_GPU (g, run) {
		const struct pci_function *port = uplink_of(g);
		struct uplink u;

		unread = unread ? unread : unread_above(g);
		if (!port || !is_first(run, g, port))
			continue;
		u = collect(run, port);
		undecided |= u.undecided;
		if (u.blocked.n)
			report(run, &u);
	}
	/* Without root all of a machine's are unread; a text may have lost the rows of one. */
	if (unread && !run->found && run->m->text_part_n)
		return rule_unknown(run, FACT_WHY(unread->port_type),
				    "whether %s is a switch's port", unread->name);
	return undecided ? rule_unknown(run, NULL, "P2P between GPUs that share an uplink")
			 : VERDICT_OK;
}

const struct rule rules_uplink[] = {
	{
		.id = "uplink-shared",
		.title = "GPUs that share a switch's uplink reach each other below the switch",
		.why = "Without P2P every transfer goes through host memory. GPUs below one "
		       "switch then share its one link to the CPU, in both directions.",
		.remedy = "make P2P work between them (see the finding that names what blocks "
			  "it), or spread the GPUs of a job over several switches "
			  "(CUDA_VISIBLE_DEVICES)",
		.reference = "PCIe 6.0, 1.3.3 (switches)",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS | NEEDS_TREE,
		.probe = probe_uplink,
	},
	{0},
};
