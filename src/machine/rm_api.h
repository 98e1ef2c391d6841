/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's resource manager (RM) as onehop asks it through /dev/nvidiactl: own declarations of its
 * ioctl interface, and the names under which rm.json keeps its answers.
 *
 * Layouts and numbers are those of the public open-gpu-kernel-modules, the same in all 144 releases
 * from 535.43.02 to 595.45.04 but for what is said below: nv-ioctl-numbers.h and nv_escape.h (the
 * calls), nvos.h (NVOS21, NVOS54), cl0000.h, ctrl0000gpu.h, ctrl0000system.h, nvlimits.h,
 * nvstatuscodes.h. NV_ESC_CHECK_VERSION_STR, with which NVIDIA's libraries make sure of their own
 * version, is not required by any of these calls.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

struct source;

#define RM_DEVICE   "dev/nvidiactl"
#define RM_MAX_GPUS 32          /* NV_MAX_DEVICES, NV0000_CTRL_SYSTEM_MAX_ATTACHED_GPUS */
#define RM_NO_GPU   0xffffffffu /* NV0000_CTRL_GPU_INVALID_ID: the rest of a list is empty */

/* nvstatuscodes.h: those that onehop uses. */
enum rm_status {
	RM_OK = 0x00,
	RM_INSUFFICIENT_PERMISSIONS = 0x1b,
	/*
	 * Either, if the parameters have another size in this release; 580.159.04 says the first.
	 */
	RM_INVALID_ARGUMENT = 0x1f,
	RM_INVALID_PARAM_STRUCT = 0x3a,
	RM_NOT_SUPPORTED = 0x56,
};

/* NVOS21_PARAMETERS: an object is made; a client (NV01_ROOT_CLIENT) has no parent, and closing the
 * device ends it. */
struct rm_alloc {
	uint32_t root, parent, object, class;
	_Alignas(8) uint64_t parameters; /* a pointer */
	uint32_t parameters_size, status;
};

/* NVOS54_PARAMETERS: a command to an object. */
struct rm_control {
	uint32_t client, object, command, flags;
	_Alignas(8) uint64_t parameters; /* a pointer */
	uint32_t parameters_size, status;
};

_Static_assert(sizeof(struct rm_alloc) == 32, "NVOS21_PARAMETERS");
_Static_assert(sizeof(struct rm_control) == 32, "NVOS54_PARAMETERS");

#define RM_CLASS_CLIENT  0x41u                               /* NV01_ROOT_CLIENT */
#define RM_IOCTL_ALLOC   _IOWR('F', 0x2b, struct rm_alloc)   /* NV_ESC_RM_ALLOC */
#define RM_IOCTL_CONTROL _IOWR('F', 0x2a, struct rm_control) /* NV_ESC_RM_CONTROL */

/* Commands to a client that read and change nothing. */
enum rm_command {
	RM_GET_P2P_CAPS_V2 = 0x12b,  /* NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2 */
	RM_GET_ATTACHED_IDS = 0x201, /* NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS */
	RM_GET_PCI_INFO = 0x21b,     /* NV0000_CTRL_CMD_GPU_GET_PCI_INFO */
};

/* NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS: the GPUs that are started. */
struct rm_attached_ids {
	uint32_t gpus[RM_MAX_GPUS];
};

/* NV0000_CTRL_GPU_GET_PCI_INFO_PARAMS */
struct rm_pci_info {
	uint32_t gpu; /* in */
	uint32_t domain;
	uint16_t bus, slot;
};

/* NV0000_CTRL_P2P_CAPS_INDEX_...: places in rm_p2p_caps.status */
enum rm_p2p_index {
	RM_INDEX_READ = 0,
	RM_INDEX_WRITE = 1,
	RM_INDEX_NVLINK = 2,
	RM_INDEX_ATOMICS = 3,
	RM_INDEX_PCI = 6,
	RM_INDEX_N = 9
};

/*
 * NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS. The answer is for the set of GPUs; peer ids are rows
 * of gpu_n, not of RM_MAX_GPUS. The last member came with 550.40.07: before, the size is
 * RM_P2P_CAPS_SIZE_535, and RM takes no other.
 */
struct rm_p2p_caps {
	uint32_t gpus[RM_MAX_GPUS], gpu_n; /* in */
	uint32_t caps;                     /* enum rm_p2p_bit */
	uint32_t optimal_read_ces, optimal_write_ces;
	uint8_t status[RM_INDEX_N]; /* enum p2p_status has the same numbers */
	uint32_t peer_ids[RM_MAX_GPUS * RM_MAX_GPUS];
	uint32_t egm_peer_ids[RM_MAX_GPUS * RM_MAX_GPUS];
};

#define RM_P2P_CAPS_SIZE_535 offsetof(struct rm_p2p_caps, egm_peer_ids)
_Static_assert(RM_P2P_CAPS_SIZE_535 == 4252, "NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS of 535");
_Static_assert(sizeof(struct rm_p2p_caps) == 8348, "NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS");

/* NV0000_CTRL_SYSTEM_GET_P2P_CAPS_..._SUPPORTED. PROP is a mailbox, a window in BAR1 of a card that
 * has the hardware for it. */
enum rm_p2p_bit {
	RM_P2P_WRITES = 1 << 0,
	RM_P2P_READS = 1 << 1,
	RM_P2P_PROP = 1 << 2,
	RM_P2P_NVLINK = 1 << 3,
	RM_P2P_ATOMICS = 1 << 4,
	RM_P2P_PCI = 1 << 6,
	RM_P2P_INDIRECT_WRITES = 1 << 7,
	RM_P2P_INDIRECT_READS = 1 << 8,
	RM_P2P_INDIRECT_ATOMICS = 1 << 9,
	RM_P2P_INDIRECT_NVLINK = 1 << 10,
	RM_P2P_C2C = 1 << 12,
	RM_P2P_PCI_BAR1 = 1 << 13,
};
