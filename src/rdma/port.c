/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/port.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names and states ---- */

void port_name(const struct nic_port *p, char buf[static PORT_NAME])
{
	if (p->number > 1)
		snprintf(buf, PORT_NAME, "%s/%u", p->device, p->number);
	else
		snprintf(buf, PORT_NAME, "%s", p->device);
}

const char *port_state_text(int state)
{
	static const char *const texts[] = {
		[VERBS_PORT_DOWN] = "DOWN",
		[VERBS_PORT_INIT] = "INIT",
		[VERBS_PORT_ARMED] = "ARMED",
		[VERBS_PORT_ACTIVE] = "ACTIVE",
		[VERBS_PORT_DEFER] = "ACTIVE_DEFER (the link is being restored)",
	};

	return state > 0 && state <= VERBS_PORT_DEFER ? texts[state] : "not known";
}

int nic_not_opened(const char *device, const char *file, struct rdma_failure *f)
{
	int error = errno;

	return rdma_fail(f, RDMA_STEP_OPEN, error, "%s%s%s cannot be opened: %s", device,
			 *file ? ", /dev/infiniband/" : "", file, strerror(error));
}

bool port_is_usable(const struct nic_port *p, struct rdma_failure *ret_why)
{
	*ret_why = p->failure;
	if (ret_why->step != RDMA_STEP_NONE)
		return false;
	if (p->state != VERBS_PORT_ACTIVE)
		rdma_fail(ret_why, RDMA_STEP_PORT, p->state, "port %u of %s is %s", p->number,
			  p->device, port_state_text(p->state));
	else if (!p->has_gid)
		rdma_fail(ret_why, RDMA_STEP_GID, ENODATA, "port %u of %s has no address (GID)",
			  p->number, p->device);
	return ret_why->step == RDMA_STEP_NONE;
}

/* ---- rates ---- */

/*
 * Lanes and gigabits per lane, by the bit that is set; on InfiniBand the first three speeds lose a
 * fifth to line coding, on Ethernet they are data rates.
 */
static const struct {
	uint8_t bit;
	double gbps, infiniband;
} speeds[] = {{1, 2.5, 2},          {2, 5, 4},    {4, 10, 8},   {8, 10, 10},
	      {16, 14.0625, 13.64}, {32, 25, 25}, {64, 50, 50}, {128, 100, 100}};
static const struct {
	uint8_t bit;
	unsigned lanes;
} widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};

static double line_gbps(const struct verbs_port_attr *a)
{
	double lane = 0;

	for (size_t i = 0; i < ARRAY_LEN(speeds); i++)
		if (speeds[i].bit == a->active_speed)
			lane = a->link_layer == VERBS_LINK_ETHERNET ? speeds[i].gbps
								    : speeds[i].infiniband;
	for (size_t i = 0; i < ARRAY_LEN(widths); i++)
		if (widths[i].bit == a->active_width)
			return lane * widths[i].lanes;
	return 0;
}

/* Bytes around the data of a packet: LRH, BTH, ICRC, VCRC; or Ethernet with preamble, FCS and gap, IP, UDP,
 * BTH, ICRC. */
enum { AROUND_INFINIBAND = 26, AROUND_ROCE_IPV4 = 82, AROUND_ROCE_IPV6 = 102 };

double port_payload_gbps(const struct nic_port *p)
{
	unsigned around = p->link_layer == VERBS_LINK_INFINIBAND ? AROUND_INFINIBAND
			  : p->has_gid && gid_family(&p->gid.entry.gid) == GID_FAMILY_IPV4
				  ? AROUND_ROCE_IPV4
				  : AROUND_ROCE_IPV6;

	if (p->line_gbps <= 0 || !p->mtu)
		return 0;
	return p->line_gbps / 8 * p->mtu / (p->mtu + around);
}

/* ---- one port ---- */

/* Of all ports; the kernel is given the length of the table in 16 bits. */
#define TABLE_MAX 1024

static void read_gids(const struct verbs *v, struct verbs_context *c, struct nic_port *p)
{
	struct verbs_gid_entry all[TABLE_MAX];
	ssize_t n = v->query_gid_table(c, all, ARRAY_LEN(all), 0, sizeof(all[0]));

	for (ssize_t i = 0; i < n && p->gid_n < GIDS_MAX; i++)
		if (all[i].port_num == p->number)
			p->gids[p->gid_n++] = all[i];
}

/*
 * Called with an invalid descriptor: a driver with the operation rejects the descriptor, one
 * without it reports that first. NCCL and UCX test the same way.
 */
static int takes_dmabuf(const struct verbs *v, struct verbs_context *c)
{
	struct verbs_pd *pd = v->reg_dmabuf_mr ? v->alloc_pd(c) : NULL;
	struct verbs_mr *mr;
	int error;

	if (!pd)
		return v->reg_dmabuf_mr ? -1 : 0;
	errno = 0;
	mr = v->reg_dmabuf_mr(pd, 0, 0, 0, -1, 0);
	error = errno;
	if (mr)
		v->dereg_mr(mr);
	v->dealloc_pd(pd);
	return mr || error == EBADF ? 1 : error == EOPNOTSUPP || error == EPROTONOSUPPORT ? 0 : -1;
}

#define PAGES_FOR (VERBS_ODP_SEND | VERBS_ODP_RECV | VERBS_ODP_WRITE | VERBS_ODP_READ)

/* No symbol: the headers call it through the table before the context, if the library has it. */
static int pages_on_demand(struct verbs_context *c)
{
	const struct verbs_extension *e =
		(const struct verbs_extension *)((const char *)c -
						 offsetof(struct verbs_extension, context));
	struct verbs_device_attr_ex a = {0};

	if (c->abi_compat != VERBS_IS_EXTENDED || e->sz < sizeof(*e) || !e->query_device_ex)
		return -1;
	if (e->query_device_ex(c, NULL, &a, sizeof(a)) != 0)
		return -1;
	return a.odp_caps.general_caps & VERBS_ODP &&
	       (a.odp_caps.per_transport_caps.rc_odp_caps & PAGES_FOR) == PAGES_FOR;
}

void port_read(const struct verbs *v, struct verbs_context *c, struct nic_port *p)
{
	struct verbs_port_attr a = {0};
	int r = v->query_port(c, (uint8_t)p->number, &a);

	if (r) {
		rdma_fail(&p->failure, RDMA_STEP_PORT, 0, "ibv_query_port of %s answers error %d",
			  p->device, r);
		return;
	}
	p->state = a.state;
	p->link_layer = a.link_layer;
	p->lid = a.lid;
	p->mtu = a.active_mtu > 0 && a.active_mtu <= 5 ? 128u << a.active_mtu : 0;
	p->line_gbps = line_gbps(&a);
	p->gid_n = 0;
	read_gids(v, c, p);
	p->has_gid = gid_choose(p->gids, p->gid_n, p->link_layer == VERBS_LINK_INFINIBAND, &p->gid);
	p->takes_dmabuf = takes_dmabuf(v, c);
	p->pages = pages_on_demand(c);
}

/* ---- all of them ---- */

static size_t list_device(const struct verbs *v, struct verbs_device *d, struct nic_port *ret,
			  size_t room)
{
	struct verbs_context *c;
	struct verbs_device_attr a = {0};
	size_t n = 0;

	errno = 0;
	c = v->open_device(d);
	if (!c || v->query_device(c, &a) != 0) {
		ret[0] = (struct nic_port){.number = 1, .takes_dmabuf = -1, .pages = -1};
		snprintf(ret[0].device, sizeof(ret[0].device), "%s", d->name);
		nic_not_opened(d->name, d->dev_name, &ret[0].failure);
		n = 1;
	}
	for (unsigned port = 1; c && port <= a.phys_port_cnt && n < room; port++) {
		struct nic_port *p = &ret[n++];

		*p = (struct nic_port){.number = port, .takes_dmabuf = -1, .pages = -1};
		snprintf(p->device, sizeof(p->device), "%s", d->name);
		port_read(v, c, p);
	}
	if (c)
		v->close_device(c);
	return n;
}

static int by_name(const void *a, const void *b)
{
	const struct nic_port *x = a, *y = b;
	int r = strverscmp(x->device, y->device);

	return r ? r : (x->number > y->number) - (x->number < y->number);
}

size_t ports_list(const struct verbs *v, struct nic_port *ret)
{
	int devices = 0;
	struct verbs_device **list = v->get_device_list(&devices);
	size_t n = 0;

	for (int i = 0; list && i < devices && n < PORTS_MAX; i++)
		n += list_device(v, list[i], ret + n, PORTS_MAX - n);
	if (list)
		v->free_device_list(list);
	qsort(ret, n, sizeof(*ret), by_name);
	return n;
}
