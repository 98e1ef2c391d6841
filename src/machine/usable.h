/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a GPU or NIC can be used at all, independent of its paths. */
#pragma once

#include "machine/machine.h"

/* What prevents a device from being used, in the order in which it must be fixed. */
enum device_fault {
	DEVICE_OFF_BUS,          /* every configuration read answers all ones; or NVML: lost */
	DEVICE_ASLEEP,           /* D3cold: wakes when it is used, until then nothing can be read */
	DEVICE_SET_ASIDE,        /* bound to vfio-pci or the like: it belongs to a guest */
	DEVICE_OTHER_DRIVER,     /* GPUs: nouveau, nova, ... */
	DEVICE_NO_DRIVER,        /* none is bound, although the machine's driver is loaded */
	DEVICE_EXCLUDED,         /* NVreg_ExcludedGpus */
	DEVICE_PROHIBITED,       /* compute mode: no process gets a context */
	DEVICE_FABRIC_NOT_READY, /* CUDA does not start before the NVSwitch fabric admits the GPU */
	DEVICE_MIG,              /* instances have GPUDirect RDMA but no P2P */
	DEVICE_FAULT_N,
};

/*
 * The known faults of a device, 1 << enum device_fault each. `g`: its GPU, NULL for a NIC. An
 * unknown fact is not a fault: then it counts whether the driver answers for the device.
 */
unsigned device_faults(const struct machine *m, const struct pci_function *f, const struct gpu *g);
bool gpu_has_fault(const struct machine *m, const struct gpu *g, enum device_fault fault);

/* Who may use a GPU that is not in the default mode. */
struct compute_mode {
	const char *word; /* "exclusive-process" */
	const char *who;  /* "one process may use it" */
};

/* NULL: the default mode, or unknown. */
const struct compute_mode *gpu_compute_mode(const struct gpu *g);

/* ---- devices of guests ---- */

/* A driver that holds devices for guests: vfio-pci and the like. */
bool driver_is_for_guests(const char *driver);
/* "vfio-pci" as files spell it. */
bool module_is_vfio(const char *module);
/*
 * A kernel's command line, or a line of what it is made from, loads vfio-pci, for whatever devices.
 */
bool line_loads_vfio(const char *line);
/* A device that belongs to a virtual machine, or will from the next boot on. */
struct guest_use {
	const struct pci_function *device; /* NULL: vfio-pci is loaded for unknown devices */
	const char *by;                    /* the evidence: a driver, a file; NULL: none */
};

/*
 * By the driver that is bound, vfio-pci's ids= on the running command line and in modprobe.d of
 * both, and the guest_claims of `files`: the system that boots next, which may be an image; or
 * NULL.
 */
struct guest_use guest_use(const struct machine *m, const struct machine *files);
/*
 * The device for which ACS at a port must not change. A guest's, or one that can become one: below
 * the same switch, or the same root port, it is kept from other devices. The DMA function of a
 * ConnectX-8: on the ports of its segment exact bits let it and its GPU reach each other through
 * the IOMMU's translations (ATS), and rdma_topo of rdma-core sets them.
 */
enum acs_reason { ACS_FREE, ACS_FOR_GUEST, ACS_FOR_DIRECT_NIC };

struct acs_kept {
	enum acs_reason reason;
	const struct pci_function *by; /* NULL: the bits may be changed, as far as is known */
};

/* The DMA function of a Direct NIC: the ConnectX-8 itself may be elsewhere. */
bool pci_is_direct_nic(const struct pci_function *f);
struct acs_kept acs_kept(const struct machine *m, const struct pci_function *port);

/* ---- kernel log ---- */

/* What a line of the kernel log proves. The GPU may have recovered since; NVML shows that. */
enum log_proof {
	PROOF_NONE,
	PROOF_GPU_LOST,        /* it fell off the bus */
	PROOF_GPU_NOT_STARTED, /* the driver could not start it */
	PROOF_GPU_NO_BAR,      /* the driver found a BAR without an address */
	PROOF_PEER_MISALIGNED, /* the driver could not map a peer */
	PROOF_PEER_KIND, /* entries that lead to a peer are of a kind that the hardware refuses */
};

enum log_proof log_line_proof(const struct log_line *l);

/* ---- ports ---- */

/* 1: a port of the NIC is active; 0: none is. */
struct fact_int nic_active(const struct rdma_device *d);

/* The machine joins its GPUs by NVSwitches: a GPU without links is a fault then, not a missing
 * bridge. */
bool machine_has_nvswitch(const struct machine *m);
