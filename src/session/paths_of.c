/* SPDX-License-Identifier: Apache-2.0 */
/* Links, classes and expected figures of chosen GPUs and NICs as bench/ wants them. */
#include "session/paths_of.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <stdio.h>

enum link_kind {
	LINK_UP,         /* PCIe, above the function from */
	LINK_DOWN,       /* the other direction */
	LINK_SOCKETS,    /* between sockets from and to */
	LINK_NODES,      /* between NUMA nodes of one socket, or where sockets are unknown */
	LINK_HIDDEN,     /* what could not be read */
	LINK_NVLINK_OUT, /* all links of GPU from to its switches */
	LINK_NVLINK_IN,
	LINK_NVLINK, /* between GPUs from and to */
};

/* What a number stands for. */
struct link {
	enum link_kind kind;
	size_t from, to;
};

struct build {
	const struct topology *t;
	struct link *links;
	size_t link_n;
	struct link_list *list; /* that links are being added to */
};

static int add(struct build *b, enum link_kind kind, size_t from, size_t to)
{
	size_t i;

	for (i = 0; i < b->link_n; i++)
		if (b->links[i].kind == kind && b->links[i].from == from && b->links[i].to == to)
			return link_list_add(b->list, (unsigned)i);
	if ((b->link_n & (b->link_n - 1)) == 0)
		b->links = xrealloc(b->links, 2 * b->link_n + 1, sizeof(*b->links));
	b->links[b->link_n++] = (struct link){kind, from, to};
	return link_list_add(b->list, (unsigned)i);
}

/* ---- PCIe ---- */

/*
 * The links from f up to `stop`, which is NULL for the root. A link is named by the port above it,
 * because the functions of one device share it.
 */
static int add_way(struct build *b, enum link_kind kind, const struct pci_function *f,
		   const struct pci_function *stop)
{
	int r = 0;

	for (; r == 0 && f && f != stop; f = f->parent)
		if (!pci_faces_down(f))
			r = add(b, kind, f->parent ? f->parent->index : f->index, 0);
	return r;
}

static int add_across(struct build *b, const struct pci_function *a, const struct pci_function *z)
{
	int64_t from = fact_or(a->numa_node, -1), to = fact_or(z->numa_node, -1);
	int s = topology_socket(b->t->machine, a), other = topology_socket(b->t->machine, z);

	if (from < 0 || to < 0)
		return add(b, LINK_HIDDEN, 0, 0);
	if (s != other)
		return add(b, LINK_SOCKETS, (size_t)s, (size_t)other);
	return add(b, LINK_NODES, (size_t)from, (size_t)to);
}

static int add_pcie(struct build *b, const struct path *p, const struct pci_function *a,
		    const struct pci_function *z)
{
	int r = add_way(b, LINK_UP, a, p->common);

	if (r == 0 && p->pci_class == PATH_SYS)
		r = add_across(b, a, z);
	/* Where NVML sees another tree than we do (a virtual machine) ours is not the real one. */
	if (r == 0 && (p->pci_class == PATH_UNKNOWN || p->pci_class != p->tree_class))
		r = add(b, LINK_HIDDEN, 0, 0);
	return r < 0 ? r : add_way(b, LINK_DOWN, z, p->common);
}

/* ---- NVLink ---- */

static bool has_link_to(const struct gpu *g, const struct gpu *h)
{
	struct pci_address remote;

	for (unsigned i = 0; i < g->nvlink_n; i++)
		if (fact_is(g->nvlinks[i].active, 1) &&
		    fact_is(g->nvlinks[i].remote_type, NVLINK_REMOTE_GPU) &&
		    pci_address_parse(fact_str_or(g->nvlinks[i].remote, ""), &remote) == 0 &&
		    pci_address_compare(remote, h->pci->address) == 0)
			return true;
	return false;
}

static bool joined_directly(const struct gpu *g, const struct gpu *h)
{
	return has_link_to(g, h) || has_link_to(h, g);
}

static int add_nvlink(struct build *b, const struct gpu *g, const struct gpu *h)
{
	int r;

	if (joined_directly(g, h))
		return add(b, LINK_NVLINK, g->index, h->index);
	r = add(b, LINK_NVLINK_OUT, g->index, 0);
	return r < 0 ? r : add(b, LINK_NVLINK_IN, h->index, 0);
}

static int links_of(const struct gpu *g)
{
	int n = 0;

	for (unsigned i = 0; i < g->nvlink_n; i++)
		n += !fact_absent(g->nvlinks[i].active);
	return n;
}

/* ---- what is expected, and why no more ---- */

static double best_gbps(const struct pci_function *f)
{
	return pci_link_gbps(fact_or(f->link_speed_max, 0), fact_or(f->link_width_max, 0));
}

/* The slowest link, where `f` could use a faster one: what of it is less is what is named. */
static void explain_link(const struct path *p, const struct pci_function *f, char *ret)
{
	bool narrow = p->bottleneck_width.value < fact_or(f->link_width_max, 0);
	bool slow = p->bottleneck_speed.value < fact_or(f->link_speed_max, 0);
	char speed[32] = "", width[32] = "";

	if (p->link_gbps <= 0 || p->link_gbps >= best_gbps(f))
		return;
	if (slow)
		snprintf(speed, sizeof(speed), "%.1f GT/s ",
			 (double)p->bottleneck_speed.value / 1000);
	if (narrow)
		snprintf(width, sizeof(width), "x%d ", (int)p->bottleneck_width.value);
	snprintf(ret, PATH_REASON_SIZE, "%s%slink at %s", speed, width, p->bottleneck->name);
}

static void explain_nvlink(const struct path *p, const struct gpu *g, const struct gpu *h,
			   char *ret)
{
	int n = links_of(g) < links_of(h) ? links_of(g) : links_of(h);

	if (!joined_directly(g, h) && p->nvlinks.value < n)
		snprintf(ret, PATH_REASON_SIZE, "%d of %d NVLinks", (int)p->nvlinks.value, n);
}

/* Of NVLink; both are GPUs. */
static int fill_nvlink(struct build *b, const struct path *p, const struct endpoint *from,
		       const struct endpoint *to, struct pair_path *ret)
{
	const struct gpu *all = b->t->machine->gpus;

	explain_nvlink(p, &all[from->index], &all[to->index], ret->reason);
	return add_nvlink(b, &all[from->index], &all[to->index]);
}

static int fill_pair(struct build *b, size_t initiator, size_t target, struct pair_path *ret)
{
	const struct endpoint *from = &b->t->endpoints[initiator], *to = &b->t->endpoints[target];
	const struct path *p = topology_path(b->t, initiator, target);

	b->list = &ret->links;
	ret->expected_gbps = p->expected_gbps;
	path_class_name(p, ret->class, sizeof(ret->class));
	if (path_is_nvlink(p))
		return fill_nvlink(b, p, from, to, ret);
	if (p->socket_bound)
		snprintf(ret->reason, PATH_REASON_SIZE, "the CPUs' link between sockets");
	else
		explain_link(p, best_gbps(from->pci) < best_gbps(to->pci) ? from->pci : to->pci,
			     ret->reason);
	return add_pcie(b, p, from->pci, to->pci);
}

static int fill_host(struct build *b, size_t endpoint, struct host_path *ret)
{
	const struct pci_function *f = b->t->endpoints[endpoint].pci;
	struct path p;
	int r;

	topology_host_rate(b->t, endpoint, &p);
	ret->expected_gbps = p.expected_gbps;
	explain_link(&p, f, ret->reason);
	b->list = &ret->to_host;
	r = add_way(b, LINK_UP, f, NULL);
	b->list = &ret->from_host;
	return r < 0 ? r : add_way(b, LINK_DOWN, f, NULL);
}

static int fill(struct build *b, const size_t *endpoints, struct paths *p)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < p->device_n; i++) {
		if (endpoints[i] == PATHS_NOWHERE)
			continue;
		r = fill_host(b, endpoints[i], &p->hosts[i]);
		for (unsigned j = 0; r == 0 && j < p->device_n; j++)
			if (endpoints[j] != PATHS_NOWHERE && endpoints[i] != endpoints[j])
				r = fill_pair(b, endpoints[i], endpoints[j], paths_pair(p, i, j));
	}
	return r;
}

int paths_of(const struct topology *t, const size_t *endpoints, size_t n, struct paths **ret)
{
	struct build b = {.t = t};
	struct paths *p = NULL;
	int r;

	for (size_t i = 0; i < n; i++)
		if (endpoints[i] >= t->endpoint_n && endpoints[i] != PATHS_NOWHERE)
			return err_set(EINVAL, "no endpoint %zu of %zu", endpoints[i],
				       t->endpoint_n);
	r = paths_new(n > PATHS_DEVICES_MAX ? PATHS_DEVICES_MAX + 1 : (unsigned)n, &p);
	if (r < 0)
		return r;
	r = fill(&b, endpoints, p);
	free(b.links);
	if (r < 0) {
		paths_free(p);
		return r;
	}
	*ret = p;
	return 0;
}
