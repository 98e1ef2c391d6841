/* SPDX-License-Identifier: Apache-2.0 */
/* The matrices of nvidia-smi, byte for byte. */
#include "topology/topology_impl.h"

#include "base/strbuf.h"

#include <stdlib.h>

#define UNDERLINE     "\x1b[4m"
#define UNDERLINE_OFF "\x1b[0m"

static const char class_legend[] =
	"\nLegend:\n\n"
	"  X    = Self\n"
	"  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes "
	"(e.g., QPI/UPI)\n"
	"  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges "
	"within a NUMA node\n"
	"  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
	"  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "
	"Bridge)\n"
	"  PIX  = Connection traversing at most a single PCIe bridge\n"
	"  NV#  = Connection traversing a bonded set of # NVLinks\n";

static const struct numa_node *node_of(const struct machine *m, const struct gpu *g)
{
	int64_t id = fact_or(g->pci->numa_node, -1);

	/* Firmware that names no node: with only one there is no doubt. */
	if (id < 0 && m->node_n == 1)
		return &m->nodes[0];
	for (size_t i = 0; i < m->node_n; i++)
		if (m->nodes[i].id == id)
			return &m->nodes[i];
	return NULL;
}

static const char *cpu_affinity(const struct gpu *g, const struct numa_node *node)
{
	return fact_str_or(g->pci->local_cpus, node ? fact_str_or(node->cpus, "") : "");
}

static void format_number(struct strbuf *out, bool known, int64_t n)
{
	if (known)
		strbuf_printf(out, "%lld", (long long)n);
	else
		strbuf_puts(out, "N/A");
}

static void format_affinity(const struct machine *m, const struct gpu *g, struct strbuf *out)
{
	const struct numa_node *node = node_of(m, g);

	strbuf_printf(out, "%s\t", cpu_affinity(g, node));
	format_number(out, node, node ? node->id : 0);
	strbuf_puts(out, "\t\t");
	format_number(out, fact_known(g->numa_id), g->numa_id.value);
	strbuf_putc(out, '\n');
}

static void format_row(const struct topology *t, size_t i, struct strbuf *out)
{
	const struct endpoint *e = &t->endpoints[i];
	char cell[16];

	strbuf_printf(out, "%s\t", e->name);
	for (size_t j = 0; j < t->endpoint_n; j++) {
		if (i == j)
			strbuf_puts(out, " X \t");
		else
			strbuf_printf(out, "%s\t",
				      path_class_name(topology_path(t, i, j), cell, sizeof(cell)));
	}
	if (e->kind == ENDPOINT_GPU)
		format_affinity(t->machine, &t->machine->gpus[e->index], out);
	else
		strbuf_puts(out, "\t\t\t\n");
}

static void format_nic_legend(const struct topology *t, struct strbuf *out)
{
	if (t->endpoint_n == t->gpu_n)
		return;
	strbuf_puts(out, "\nNIC Legend:\n\n");
	for (size_t i = t->gpu_n; i < t->endpoint_n; i++)
		strbuf_printf(out, "  %s: %s\n", t->endpoints[i].name,
			      t->machine->rdma[t->endpoints[i].index].name);
}

void topology_format_matrix(const struct topology *t, bool underline, struct strbuf *out)
{
	strbuf_printf(out, "\t%s", underline ? UNDERLINE : "");
	for (size_t i = 0; i < t->endpoint_n; i++)
		strbuf_printf(out, "%s\t", t->endpoints[i].name);
	strbuf_printf(out, "CPU Affinity\tNUMA Affinity\tGPU NUMA ID%s\n",
		      underline ? UNDERLINE_OFF : "");
	for (size_t i = 0; i < t->endpoint_n; i++)
		format_row(t, i, out);
	strbuf_puts(out, class_legend);
	format_nic_legend(t, out);
}

static bool explains_regkey(const struct machine *m)
{
	return release_explains_dr(driver_branch(m->driver.module_version));
}

void topology_format_p2p(const struct topology *t, enum p2p_cap cap, bool underline,
			 struct strbuf *out)
{
	const struct machine *m = t->machine;

	strbuf_printf(out, " \t%s", underline ? UNDERLINE : "");
	for (size_t i = 0; i < t->gpu_n; i++)
		strbuf_printf(out, "%s\t", t->endpoints[i].name);
	strbuf_printf(out, "%s\n", underline ? UNDERLINE_OFF : "");
	for (size_t i = 0; i < t->gpu_n; i++) {
		strbuf_printf(out, " %s\t", t->endpoints[i].name);
		for (size_t j = 0; j < t->gpu_n; j++) {
			struct fact_int status = m->pairs[i * m->gpu_n + j].p2p[cap];

			strbuf_printf(out, "%s\t",
				      i == j ? "X"
					     : p2p_status_code(
						       fact_or(status, P2P_STATUS_UNKNOWN)));
		}
		strbuf_putc(out, '\n');
	}
	strbuf_puts(out, "\nLegend:\n\n"
			 "  X    = Self\n"
			 "  OK   = Status Ok\n"
			 "  CNS  = Chipset not supported\n"
			 "  GNS  = GPU not supported\n"
			 "  TNS  = Topology not supported\n"
			 "  NS   = Not supported\n");
	if (explains_regkey(m))
		strbuf_puts(out, "  DR   = Disabled by regkey\n");
	strbuf_puts(out, "  U    = Unknown\n");
}
