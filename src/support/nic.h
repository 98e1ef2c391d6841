/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver of an RDMA NIC can do with GPU memory, and what NVIDIA's driver and the chipset make of
 * the path between the two. */
#pragma once

#include "machine/machine.h"

/* Whether NVIDIA's driver exports the GPU's memory as dma-buf: the open modules do; CUDA's own word
 * counts more. */
struct fact_int gpu_exports_dma_buf(const struct machine *m, const struct gpu *g);

/* Whether the NIC's kernel driver registers dma-buf memory: 1, 0, or unknown with the reason. */
struct fact_int nic_takes_dma_buf(const struct machine *m, const struct pci_function *nic);

/* Whether the NIC's driver registers what nvidia-peermem offers, where that is registered: 1, or unknown
 * with the reason. */
struct fact_int nic_takes_peermem(const struct machine *m, const struct pci_function *nic);

/* ConnectX-3 or older: nvidia-peermem needs a later one, its driver takes no dma-buf, and the old nv_peer_mem,
 * which serves it, is not loaded. */
bool nic_lacks_gdr(const struct machine *m, const struct pci_function *nic);

/* NCCL lets NICs read this card's memory when they send, unless set otherwise: Ampere and later. */
struct fact_int nccl_reads_card(const struct gpu *g);

/* A ConnectX-8, which may have a DMA function next to a GPU (Direct NIC). */
bool nic_may_be_direct(const struct pci_function *nic);

/* A chipset that does not forward peer traffic between its root ports, whatever the devices; by the
 * bridges above a device. NULL: none such is known. */
const char *chipset_without_p2p(const struct pci_function *f);

/* From 580.65.06 on NVIDIA's driver refuses to export GPU memory to a device with which the GPU has no
 * bridge in common, on such a chipset (or on all, or on none, by NVreg_GrdmaPciTopoCheckOverride): errno
 * 524 to dma-buf, and nvidia-peermem alike. */
enum grdma_gate { GRDMA_ALLOWED, GRDMA_REFUSED, GRDMA_UNKNOWN };

enum grdma_gate grdma_gate(const struct machine *m, const struct gpu *g, bool common_bridge);
