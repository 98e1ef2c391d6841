/* SPDX-License-Identifier: Apache-2.0 */
/* Machines built by hand for tests: healthy unless the test changes a fact. */
#pragma once

#include "machine/machine.h"

/* One Zen socket, one NUMA node, no IOMMU, open driver 580, NCCL 2.22; no devices. */
struct machine *build_machine(void);
void build_free(struct machine *m);

/*
 * Functions are added in ascending order of address (pci_find searches by it). They link at
 * 16 GT/s x16; ports have an ACS capability with all bits clear. Pointers stay valid. A parent of
 * NULL puts the function on the root bus that its address names.
 */
struct pci_function *build_port(struct machine *m, const char *address, struct pci_function *parent,
				enum pci_port_type type);
struct pci_function *build_endpoint(struct machine *m, const char *address,
				    struct pci_function *parent);
/* RTX 4090, 24 GiB, BAR1 32 GiB, P2P status OK with all others. Adding one resets all statuses. */
struct gpu *build_gpu(struct machine *m, const char *address, struct pci_function *parent);
struct rdma_device *build_nic(struct machine *m, const char *address, struct pci_function *parent,
			      const char *name);

/* n nodes of 8 CPUs each, spread evenly over the sockets. */
void build_nodes(struct machine *m, unsigned n, unsigned sockets);
void build_model(struct gpu *g, const char *model, int capability);
void build_nvlinks(struct gpu *g, unsigned n, enum nvlink_remote type, const char *remote);
/* An NVIDIA machine's status of every ordered pair for one capability. */
void build_status(struct machine *m, enum p2p_cap cap, enum p2p_status status);
void build_setting(struct machine *m, const char *name, const char *value);
void build_observed(struct machine *m, enum observed_kind kind, int initiator, int target, bool ok);
void build_log(struct machine *m, enum log_kind kind, struct pci_function *f);
/* An IOMMU whose groups have this type, for every function there is. */
void build_iommu(struct machine *m, const char *type);

/* Two GPUs: on two root ports of one host bridge; below one switch. */
struct machine *build_two_root_ports(void);
struct machine *build_switch(void);
/* n GPUs, each on its own root port of its own host bridge, spread over nodes and sockets. */
struct machine *build_root_ports(unsigned n, unsigned nodes, unsigned sockets);
