/* SPDX-License-Identifier: Apache-2.0 */
/* Class of a pair: NVLinks, NVML's common ancestor, or the tree; and where its ways part. */
#include "topology/topology_impl.h"

#include <string.h>

/* Where the packets of a pair part: the functions below `common`, or the root ports. */
static void find_divergence(const struct pci_function *initiator, const struct pci_function *target,
			    const struct pci_function **ret_common,
			    const struct pci_function **ret_initiator_port,
			    const struct pci_function **ret_target_port)
{
	const struct pci_function *a = initiator, *b = target;

	while (a->depth > b->depth)
		a = a->parent;
	while (b->depth > a->depth)
		b = b->parent;
	while (a->parent != b->parent) {
		a = a->parent;
		b = b->parent;
	}
	*ret_common = a->parent;
	*ret_initiator_port = a;
	*ret_target_port = b;
}

/* Different host bridges: the firmware's node numbers tell whether the CPU interconnect lies
 * between. */
static enum path_class class_across(const struct machine *m, const struct pci_function *a,
				    const struct pci_function *b)
{
	if (m->node_n == 1 || (fact_absent(a->numa_node) && fact_absent(b->numa_node)))
		return PATH_NODE;
	if (!fact_known(a->numa_node) || !fact_known(b->numa_node))
		return PATH_UNKNOWN;
	if (a->numa_node.value == b->numa_node.value && a->numa_node.value >= 0)
		return PATH_NODE;
	return PATH_SYS;
}

/* PIX: at most one switch, so at most one bridge between the common one and either end. */
static enum path_class class_in_tree(const struct machine *m, const struct pci_function *a,
				     const struct pci_function *b,
				     const struct pci_function *common)
{
	if (common)
		return a->depth - common->depth <= 2 && b->depth - common->depth <= 2 ? PATH_PIX
										      : PATH_PXB;
	if (!a->root || !b->root)
		return PATH_UNKNOWN;
	return strcmp(a->root, b->root) == 0 ? PATH_PHB : class_across(m, a, b);
}

static enum path_class class_of_level(int64_t level)
{
	static const struct {
		int64_t level;
		enum path_class class;
	} table[] = {
		{NVML_LEVEL_INTERNAL, PATH_PIX}, {NVML_LEVEL_SINGLE, PATH_PIX},
		{NVML_LEVEL_MULTIPLE, PATH_PXB}, {NVML_LEVEL_HOSTBRIDGE, PATH_PHB},
		{NVML_LEVEL_NODE, PATH_NODE},    {NVML_LEVEL_SYSTEM, PATH_SYS},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].level == level)
			return table[i].class;
	return PATH_UNKNOWN;
}

/* NVML's answer for the pair, asked in either order: distance has no direction. */
static enum path_class class_of_nvml(const struct machine *m, size_t i, size_t j)
{
	size_t low = i < j ? i : j, high = i < j ? j : i;
	struct fact_int level = m->pairs[low * m->gpu_n + high].common_ancestor;

	if (!fact_known(level))
		level = m->pairs[high * m->gpu_n + low].common_ancestor;
	return fact_known(level) ? class_of_level(level.value) : PATH_UNKNOWN;
}

/* What texts say of the distance of a GPU and a NIC. */
static enum path_class class_of_text(const struct machine *m, const struct endpoint *a,
				     const struct endpoint *b)
{
	const struct endpoint *gpu = a->kind == ENDPOINT_GPU ? a : b, *nic = gpu == a ? b : a;
	const struct fact_int *levels = gpu->kind == nic->kind ? NULL : m->rdma[nic->index].levels;

	return levels && fact_known(levels[gpu->index]) ? class_of_level(levels[gpu->index].value)
							: PATH_UNKNOWN;
}

static int links_between(const struct gpu_links *from, const struct gpu *to)
{
	int n = 0;

	for (unsigned i = 0; i < from->peer_n; i++)
		n += from->peer[i] == to->pci;
	return n;
}

/* What the driver answers for the pair; it knows about links whose other end NVML does not name. */
static struct fact_int nvlink_status(const struct machine *m, size_t i, size_t j)
{
	struct fact_int there = m->pairs[i * m->gpu_n + j].p2p[P2P_NVLINK];
	struct fact_int back = m->pairs[j * m->gpu_n + i].p2p[P2P_NVLINK];

	return fact_is(there, P2P_OK) || !fact_known(back) ? there : back;
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

/*
 * Direct links, else those that both have to the switches. Where NVML names no remote end at all
 * (in virtual machines it answers FFFFFFFF:FF:FF.0) its P2P status says whether the links join the
 * two.
 */
static int bonded_links(const struct path_facts *s, size_t i, size_t j)
{
	const struct gpu_links *a = &s->links[i], *b = &s->links[j];
	int direct = links_between(a, &s->m->gpus[j]), back = links_between(b, &s->m->gpus[i]);

	if (direct || back)
		return direct > back ? direct : back;
	if (a->to_switch && b->to_switch)
		return smaller(a->to_switch, b->to_switch);
	if (a->unnamed && b->unnamed && fact_is(nvlink_status(s->m, i, j), P2P_OK))
		return smaller(a->unnamed, b->unnamed);
	return 0;
}

/* No link that was seen is none only where links could be seen, or the driver rules them out. */
static struct fact_int nvlinks_of_pair(const struct path_facts *s, size_t i, size_t j)
{
	struct fact_int a = s->links[i].up, b = s->links[j].up, status = nvlink_status(s->m, i, j);
	struct fact_int rm = s->m->pairs[i * s->m->gpu_n + j].rm.connection;
	struct fact_int stated = s->m->pairs[i * s->m->gpu_n + j].nvlinks;
	int n = bonded_links(s, i, j);

	if (n)
		return fact_int(n, "NVML");
	if (fact_known(stated))
		return stated;
	if (fact_is(a, 0) || fact_is(b, 0) || (fact_known(a) && fact_known(b)))
		return fact_int(0, fact_is(a, 0) ? a.from : b.from);
	if (fact_is_not(status, P2P_OK) && status.value != P2P_STATUS_UNKNOWN)
		return fact_int(0, status.from);
	if (fact_is_not(rm, RM_CONNECTION_NVLINK))
		return fact_int(0, rm.from);
	return fact_int_unknown(FACT_WHY(fact_unknown(a) ? a : b));
}

void path_classify(const struct path_facts *s, const struct endpoint *a, const struct endpoint *b,
		   struct path *p)
{
	enum path_class stated;

	find_divergence(a->pci, b->pci, &p->common, &p->initiator_port, &p->target_port);
	p->tree_class = class_in_tree(s->m, a->pci, b->pci, p->common);
	if (a->kind == ENDPOINT_GPU && b->kind == ENDPOINT_GPU && s->m->pairs) {
		stated = class_of_nvml(s->m, a->index, b->index);
		p->nvlinks = nvlinks_of_pair(s, a->index, b->index);
	} else {
		stated = class_of_text(s->m, a, b);
		p->nvlinks = fact_int(0, "a NIC has no NVLink");
	}
	p->pci_class = stated != PATH_UNKNOWN ? stated : p->tree_class;
	p->class = fact_or(p->nvlinks, 0) ? PATH_NVLINK : p->pci_class;
}
