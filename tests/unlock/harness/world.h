/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three GPUs of one kind, as the driver's own objects: their function tables, page-table formats and
 * BAR1 mappings are made by the driver's code. What has no code here (memory, locks, the IOMMU, the
 * firmware) is in world.c.
 *
 * What differs between releases is told by defines that run.sh finds in the headers:
 *   DRIVER_ERA          535, 545, 565, 575, 580, 590: see src/unlock/eras.c
 *   CHILDREN_NAMED      OBJGPU has its engines in children.named
 *   STATIC_BAR1_BOOL    kbusIsStaticBar1Supported_TU102 has no sizes and returns NvBool
 *   MAP_FB_OFFSETS      kbusMapFbAperture_GM107 is told offset and length by address
 *   HEAP_IN_VTABLE      vaspaceGetHeap is found in a table: 1 of the object, 2 of its metadata
 *   WIDTH_SLOT, IS_KIND_SLOT, HW_KIND_SLOT, NEED_INVALIDATE_SLOT, MAILBOX_SLOT,
 *   USERD_SLOT, C2C_SLOT   functions that are found in tables
 *   CAPS_ATOMICS        p2pGetCapsStatus tells of atomics too
 *   HAVE_GB202          the release knows Blackwell's GB20x
 */
#pragma once

#define NVOC_KERN_GMMU_H_PRIVATE_ACCESS_ALLOWED
#define NVOC_KERN_MEM_SYS_H_PRIVATE_ACCESS_ALLOWED
#define NVOC_MEM_MGR_H_PRIVATE_ACCESS_ALLOWED

#include "containers/eheap_old.h"
#include "core/core.h"
#include "gpu/bif/kernel_bif.h"
#include "gpu/bus/kern_bus.h"
#include "gpu/bus/p2p_api.h"
#include "gpu/fifo/kernel_fifo.h"
#include "gpu/gpu.h"
#include "gpu/mem_mgr/mem_desc.h"
#include "gpu/mem_mgr/mem_mgr.h"
#include "gpu/mem_sys/kern_mem_sys.h"
#include "gpu/mmu/kern_gmmu.h"
#include "gpu_mgr/gpu_mgr.h"
#include "mem_mgr/gpu_vaspace.h"
#include "mem_mgr/io_vaspace.h"
#include "mmu/gmmu_fmt.h"
#include "nv_uvm_types.h"
#include "nvrm_registry.h"
#include "platform/p2p/p2p_caps.h"
#include "published/turing/tu102/dev_mmu.h"

enum { WORLD_GPUS = 3, ALL_GPUS = (1 << WORLD_GPUS) - 1 };

#define KiB 1024ull
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

struct chip {
	const char *name;
	NvU32 architecture, implementation; /* as in NV_PMC_BOOT_42 */
	int pte_version;                    /* page-table entries of version 2 or 3 */
	int blackwell;                      /* takes atomics from outside */
	int native;                         /* has BAR1 P2P without our edits */
	int has_512m;
};

struct world_setup {
	NvU64 fb_size, bar1_size;
	NvU64 console_size; /* of BAR1 and of memory, from their start on */
	NvU64 bar1_bus;     /* the first GPU's BAR1 on the bus; the others follow */
	NvU64 iova;       /* where the first GPU's BAR1 is for the others; 0: no IOMMU translates */
	unsigned options; /* a bit for each GPU that has those that `onehop unlock` writes */
};

/* One GPU, and what of its memory is where in its BAR1. */
struct card {
	OBJGPU *gpu;
	KernelBus *bus;
	KernelBif *bif;
	NvU64 bar1_bus;
	NvU64 iova;
	NvU64 mapped_memory, mapped_bar1, mapped_size;
};

struct world {
	const struct chip *chip;
	struct world_setup setup;
	struct card cards[WORLD_GPUS];
	const GMMU_FMT *format;
	int made_nvlink, made_mailbox, removed_nvlink, removed_mailbox;
	int asserts; /* of the driver's that failed */
};

extern struct world world;

void world_make(const struct chip *chip, const struct world_setup *setup);
/* What the driver does at start: the status, and whether memory is mapped in BAR1 then. */
NV_STATUS world_static_bar1(struct card *c);
/* The address that the peer gives to the bus, back to the owner's memory; NV_U64_MAX: not in its BAR1 */
NvU64 world_memory_at(const struct card *owner, NvU64 address);
struct card *world_card(const OBJGPU *gpu);
