/* SPDX-License-Identifier: Apache-2.0 */
/* The ports of the NICs, as libibverbs lists them. */
#pragma once

#include "rdma/failure.h"
#include "rdma/gid.h"

#define PORTS_MAX 64

/* Plain data: it is sent between processes. */
struct nic_port {
	char device[64]; /* "mlx5_0" */
	unsigned number; /* from 1 */
	/* enum verbs_port_state; 0: the device could not be opened, `failure` says why */
	int state;
	unsigned link_layer; /* enum verbs_link_layer */
	unsigned mtu;        /* active, bytes */
	unsigned lid;
	double line_gbps; /* gigabits a second of data; 0: unknown */
	int takes_dmabuf; /* 1, 0; -1: unknown */
	int pages;        /* the same: on-demand paging for all that is measured */
	struct verbs_gid_entry gids[GIDS_MAX];
	size_t gid_n;
	struct gid_choice gid; /* of these */
	bool has_gid;
	struct rdma_failure failure;
};

/* "mlx5_0", or "mlx5_0/2" for a port other than the first. */
#define PORT_NAME 80
void port_name(const struct nic_port *p, char buf[static PORT_NAME]);
const char *port_state_text(int state); /* "ACTIVE" */
/* With errno of ibv_open_device, and the name of the NIC's file, "uverbs0". -EIO, as rdma_fail. */
int nic_not_opened(const char *device, const char *file, struct rdma_failure *f);
/* Whether the port can carry traffic; if not, fills in why. */
bool port_is_usable(const struct nic_port *p, struct rdma_failure *ret_why);
/*
 * The data rate in packets of the port's MTU, GB/s one way, without headers and, on Ethernet,
 * preamble and gap. 0: unknown.
 */
double port_payload_gbps(const struct nic_port *p);

/* All ports of all devices, in natural order: mlx5_2 before mlx5_10. At most PORTS_MAX. */
size_t ports_list(const struct verbs *v, struct nic_port *ret);
/* Fills one port of an open device; number is set. */
void port_read(const struct verbs *v, struct verbs_context *c, struct nic_port *p);
