/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices: firmware, ports, rates and the GIDs in use. */
#include "base/alloc.h"
#include "base/text.h"
#include "machine/read.h"

#include <stdlib.h>
#include <string.h>

#define DEVICES "sys/class/infiniband"

enum {
	PORT_MAX = 254,
	GID_MAX = 1024,
	/*
	 * GIDs take the first free place, so after this many empty ones there are no more. Tables
	 * have up to 256 entries, a file each, and are mostly empty.
	 */
	GID_GAP = 16,
};

/* ---- GIDs ---- */

static const struct {
	const char *text;
	enum gid_type type;
} gid_types[] = {
	{"IB/RoCE v1", GID_ROCE_V1}, /* and InfiniBand's own: the link layer tells which */
	{"RoCE v2", GID_ROCE_V2},
};

static struct fact_int read_gid_type(struct reader *r, const char *port, unsigned index,
				     bool ethernet)
{
	struct fact_str text = read_str(r, "%s/gid_attrs/types/%u", port, index);

	if (!fact_known(text))
		return INT_LIKE(text);
	for (size_t i = 0; i < ARRAY_LEN(gid_types); i++)
		if (strcmp(text.value, gid_types[i].text) == 0)
			return fact_int(gid_types[i].type == GID_ROCE_V1 && !ethernet
						? GID_IB
						: gid_types[i].type,
					text.from);
	return fact_int_unknown("a GID type that onehop does not know");
}

/* A text that was cut has some GIDs of a table, and only the whole table shows what is missing. */
static struct fact_int gids_listed(struct reader *r, const char *path, struct fact_int listed)
{
	return source_stated(r->s) ? read_int(r, "%s/stated/gids", path) : listed;
}

static void read_gids(struct reader *r, const char *path, struct rdma_port *port)
{
	bool ethernet = strcmp(fact_str_or(port->link_layer, ""), "Ethernet") == 0;
	unsigned gap = 0;

	for (unsigned i = 0; i < GID_MAX && gap < GID_GAP; i++) {
		struct fact_str gid = read_str(r, "%s/gids/%u", path, i);
		struct rdma_gid *g;

		if (i == 0)
			port->gids_listed = gids_listed(r, path,
							fact_known(gid) ? fact_int(1, gid.from)
									: INT_LIKE(gid));
		if (fact_absent(gid))
			return;
		gap++;
		if (!fact_known(gid) || strspn(gid.value, "0:") == strlen(gid.value))
			continue;
		gap = 0;
		port->gids_listed = gids_listed(r, path, fact_int(1, gid.from));
		g = ARENA_PUSH(r->m->arena, port->gids, port->gid_n);
		g->index = i;
		g->gid = gid;
		g->type = read_gid_type(r, path, i, ethernet);
	}
}

/* The kernel writes all eight groups, four digits each. */
enum gid_scope rdma_gid_scope(const struct rdma_gid *g)
{
	static const char mapped[] = "0000:0000:0000:0000:0000:ffff:";
	const char *text = g->gid.value;

	if (text_starts_with(text, mapped))
		return text_starts_with(text + strlen(mapped), "a9fe:") ? GID_LINK_LOCAL : GID_IPV4;
	return (strtoul(text, NULL, 16) & 0xffc0) == 0xfe80 ? GID_LINK_LOCAL : GID_GLOBAL;
}

const struct rdma_gid *rdma_routed_gid(const struct rdma_port *p)
{
	const struct rdma_gid *best = NULL;

	for (size_t i = 0; i < p->gid_n; i++) {
		const struct rdma_gid *g = &p->gids[i];
		enum gid_scope scope = rdma_gid_scope(g);

		if (!fact_is(g->type, GID_ROCE_V2) || scope == GID_LINK_LOCAL)
			continue;
		if (!best || (scope == GID_IPV4 && rdma_gid_scope(best) == GID_GLOBAL))
			best = g;
	}
	return best;
}

/* ---- ports ---- */

/* "4: ACTIVE" */
static struct fact_str read_state(struct reader *r, const char *port, const char *file)
{
	struct fact_str text = read_str(r, "%s/%s", port, file);
	const char *colon = fact_known(text) ? strchr(text.value, ':') : NULL;

	if (colon)
		text.value = colon + 1 + strspn(colon + 1, " ");
	return text;
}

/* "400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)" */
static struct fact_int read_rate(struct reader *r, const char *port)
{
	struct fact_str text = read_str(r, "%s/rate", port);
	double gbps;
	char *end;

	if (!fact_known(text))
		return INT_LIKE(text);
	gbps = strtod(text.value, &end);
	if (end == text.value || !(gbps >= 0 && gbps < 1e6) || !text_starts_with(end, " Gb/sec")) {
		read_trouble(r, text.from, "holds '%s', which is not a rate", text.value);
		return fact_int_unknown("no rate in the port's file");
	}
	return fact_int((int64_t)(gbps * 1000 + 0.5), text.from);
}

static int by_number(const void *a, const void *b)
{
	const struct rdma_port *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static void read_ports(struct reader *r, struct rdma_device *d)
{
	struct arena *a = r->m->arena;
	char **names;
	size_t n;

	read_list(r, &names, &n, DEVICES "/%s/ports", d->name);
	for (size_t i = 0; i < n; i++) {
		struct rdma_port *port;
		const char *path;
		uint64_t number;

		if (text_to_u64(names[i], &number) < 0 || number > PORT_MAX)
			continue;
		path = arena_printf(a, DEVICES "/%s/ports/%s", d->name, names[i]);
		port = ARENA_PUSH(a, d->ports, d->port_n);
		port->number = (unsigned)number;
		port->state = read_state(r, path, "state");
		port->phys_state = read_state(r, path, "phys_state");
		port->link_layer = read_str(r, "%s/link_layer", path);
		port->rate_mbps = read_rate(r, path);
		read_gids(r, path, port);
	}
	source_free_names(names, n);
	if (d->port_n)
		qsort(d->ports, d->port_n, sizeof(*d->ports), by_number);
}

/* ---- devices ---- */

static void read_device(struct reader *r, struct rdma_device *d)
{
	struct fact_str link = read_link_name(r, DEVICES "/%s/device", d->name);
	struct pci_address address;

	d->firmware = read_str(r, DEVICES "/%s/fw_ver", d->name);
	d->hca_type = read_str(r, DEVICES "/%s/hca_type", d->name);
	d->board_id = read_str(r, DEVICES "/%s/board_id", d->name);
	d->node_guid = read_str(r, DEVICES "/%s/node_guid", d->name);
	d->driver = fact_str_absent("no PCI device");
	if (fact_known(link) && pci_address_parse(link.value, &address) == 0)
		d->pci = pci_find(r->m, address);
	if (d->pci)
		d->driver = d->pci->driver;
	else if (!fact_absent(link))
		d->driver = fact_str_unknown("its PCI device is unknown");
	read_ports(r, d);
}

/* Natural order: mlx5_2 before mlx5_10. */
static int by_name(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

void rdma_read(struct reader *r)
{
	struct machine *m = r->m;
	char **names;
	size_t n;

	m->rdma_listed = read_list(r, &names, &n, DEVICES);
	if (source_stated(r->s) && fact_is(read_int(r, "stated/some-nics"), 1)) {
		const char *gap = read_gap(r, "stated/all-nics");

		m->rdma_listed = fact_int_unknown(gap ? gap : "the texts need not name all NICs");
	}
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++) {
		struct rdma_device *d = ARENA_PUSH(m->arena, m->rdma, m->rdma_n);

		d->index = i;
		d->name = arena_strdup(m->arena, names[i]);
		read_device(r, d);
	}
	source_free_names(names, n);
}

/* Distances that nvidia-smi topo -m prints; the system itself has no file of them. */
void rdma_read_levels(struct reader *r)
{
	struct machine *m = r->m;

	if (!source_stated(r->s))
		return;
	for (size_t i = 0; i < m->rdma_n; i++) {
		struct rdma_device *d = &m->rdma[i];

		d->levels = arena_alloc(m->arena, m->gpu_n + 1, sizeof(*d->levels));
		for (size_t k = 0; k < m->gpu_n; k++) {
			char address[PCI_ADDRESS_LEN];

			pci_address_format(m->gpus[k].pci->address, address);
			d->levels[k] = read_int(r, DEVICES "/%s/stated/level/%s", d->name, address);
		}
	}
}
