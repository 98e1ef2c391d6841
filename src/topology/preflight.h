/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a NIC can register a GPU's memory, for each of the two ways and why: what is known before
 * anything is registered. */
#pragma once

#include "topology/topology.h"

/* What a RoCE port can be addressed by, from the best of its GIDs. */
enum port_address {
	PORT_ADDRESS_UNKNOWN,
	PORT_ADDRESS_NONE, /* no v2 GID that is routed: link-local or v1 only */
	PORT_ADDRESS_IPV6, /* no IPv4 address: NCCL from 2.21 on has to be told */
	PORT_ADDRESS_IPV4,
	PORT_ADDRESS_INFINIBAND, /* by LID; GIDs do not matter inside a subnet */
	PORT_ADDRESS_N
};

/*
 * CHAIN_OK: it can work, CHAIN_BAD: it cannot, CHAIN_POSSIBLE and CHAIN_UNKNOWN: nobody can tell
 * before it is tried. chain_explain says why, with the device that decides.
 */
struct preflight {
	struct chain_link dma_buf, peermem;
	struct chain_link pair; /* either way, as in the chain of the pair */
	/* The DMA function of a Direct NIC below a bridge of the GPU's, through which the data goes if this is
	 * its NIC (mlx5dv_reg_dmabuf_mr with DATA_DIRECT); NULL: none. */
	const struct pci_function *direct;
	enum port_address address; /* of the NIC's first active port */
};

/* Indexes of endpoints: a GPU and a NIC. */
struct preflight topology_preflight(const struct topology *t, size_t gpu, size_t nic);

const char *port_address_word(enum port_address a); /* "ipv6" */
