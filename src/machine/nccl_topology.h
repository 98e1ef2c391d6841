/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topology of a machine as NCCL writes and reads it (src/graph/xml.cc): a dump of
 * NCCL_TOPO_DUMP_FILE, or a file that is injected by NCCL_TOPO_FILE.
 */
#pragma once

#include "machine/machine.h"

struct reader;

/* The virtual file that holds what texts show of one. */
#define NCCL_TOPOLOGY_TEXT "nccl-topology.xml"

/*
 * Appends the devices of an XML text to those of `t`. What is not such XML is skipped; `from` names
 * the text and has to live as long as `t`.
 */
void nccl_topology_parse(struct arena *a, const char *xml, const char *from,
			 struct nccl_topology *t);
/* The file that NCCL would read, or what a text shows of it. */
void nccl_topology_read(struct reader *r);

/* By its class. */
bool nccl_device_is_gpu(const struct nccl_topology_device *d);
bool nccl_device_is_nic(const struct nccl_topology_device *d);

/*
 * The GB/s that NCCL plans with for a link of this speed, as sysfs or the file writes it, and of
 * this many lanes (src/graph/topo.cc, kvDictPciGen). A speed that it does not know counts as 8
 * GT/s, and 0 lanes as 16.
 */
double nccl_link_gbps(const char *speed, int width);
/* Whether it knows the speed. */
bool nccl_knows_speed(const char *speed);
