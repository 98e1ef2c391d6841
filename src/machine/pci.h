/* SPDX-License-Identifier: Apache-2.0 */
/* PCI functions and their tree, from sysfs and config space. */
#pragma once

#include "machine/fact.h"

#include <stddef.h>

struct machine;

/* Domain, bus, device, function as one number that sorts like the text: dddddddd:bb:dd.f. */
struct pci_address {
	uint32_t domain;
	uint8_t bus, device, function;
};

/* "0000:41:00.0" and also "41:00.0", "00000000:41:00.0", VMD's "10000:e1:00.0". 0 or -EINVAL. */
int pci_address_parse(const char *s, struct pci_address *ret);
int pci_address_compare(struct pci_address a, struct pci_address b);

/* The domain of stand-ins for functions that a text lists without an address; the bus counts them, and
 * NICs have device 1. */
#define PCI_NO_ADDRESS 0xfffffffeu

#define PCI_ADDRESS_LEN 20 /* with the NUL */
/* Writes sysfs's form, "0000:41:00.0", and returns buf. */
const char *pci_address_format(struct pci_address a, char buf[static PCI_ADDRESS_LEN]);

/* Express port types, PCI Express Capabilities register bits 7:4 (PCIe 6.0, 7.5.3.2). */
enum pci_port_type {
	PCI_PORT_ENDPOINT = 0x0,
	PCI_PORT_LEGACY_ENDPOINT = 0x1,
	PCI_PORT_ROOT = 0x4,
	PCI_PORT_UPSTREAM = 0x5,
	PCI_PORT_DOWNSTREAM = 0x6,
	PCI_PORT_PCIE_TO_PCI = 0x7,
	PCI_PORT_PCI_TO_PCIE = 0x8,
	PCI_PORT_RC_ENDPOINT = 0x9,
	PCI_PORT_RC_EVENT_COLLECTOR = 0xa,
};

/* ACS capability and control bits (PCIe 6.0, 7.7.11). Only RR, CR and EC redirect untranslated peer
 * traffic. */
enum {
	PCI_ACS_SV = 0x01,
	PCI_ACS_TB = 0x02,
	PCI_ACS_RR = 0x04,
	PCI_ACS_CR = 0x08,
	PCI_ACS_UF = 0x10,
	PCI_ACS_EC = 0x20,
	PCI_ACS_DT = 0x40,
	PCI_ACS_REDIRECTS = PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC,
};

#define PCI_ACS_BIT_N 7
/* Their names, in the order of the register. */
extern const struct pci_acs_bit {
	unsigned bit;
	const char *code, *name; /* "RR", "request redirect" */
} pci_acs_bits[PCI_ACS_BIT_N];

struct strbuf;
/* "request redirect (RR), completion redirect (CR)"; nothing for none. */
void pci_acs_text(int64_t bits, struct strbuf *out);

struct pci_bar {
	uint64_t start, size; /* bytes; size 0: this BAR does not exist */
	bool is_64bit, prefetchable, io;
	bool assigned; /* false: size known, but no address was found for it */
};

/* A bridge's forwarding window; size 0: closed. */
struct pci_window {
	uint64_t start, size;
};

struct pci_function {
	struct pci_address address;
	const char *name; /* address as text, sysfs's form */
	/* the bridge right above, NULL below a root bus or if unknown */
	struct pci_function *parent;
	const char
		*parent_unknown; /* why a text does not show it; NULL: it does, or none was read */
	const char *root;        /* root bus as sysfs names it, "pci0000:40"; NULL if unknown */
	unsigned depth;          /* bridges above it */

	struct fact_int vendor, device, class_code, revision; /* class_code is 24 bits: 0x030200 */
	struct fact_int subsystem_vendor, subsystem_device;
	struct fact_str driver;     /* absent: none bound */
	struct fact_int numa_node;  /* known -1: the firmware does not say */
	struct fact_str local_cpus; /* cpulist, "0-15,32-47" */
	struct fact_int iommu_group;
	struct fact_str iommu_type; /* of the group: "identity", "DMA", "DMA-FQ", "auto" */
	struct fact_int enabled, boot_vga;
	struct fact_str power_state; /* "D0", "D3cold" */

	/* Link at this function; for a bridge the one below a root or downstream port, above an
	 * upstream port. */
	struct fact_int link_speed, link_speed_max; /* MT/s per lane: 2500 ... 64000 */
	struct fact_int link_width, link_width_max; /* lanes */

	struct pci_bar bars[6];
	bool bars_known;
	const char *bars_from;       /* where they are stated, or why they are unknown */
	struct fact_int rebar_sizes; /* bit n set: BAR1 can be 2^n MiB; absent: no capability */
	struct fact_int rebar_bar;   /* index of the BAR that the sizes are for */
	struct fact_int secondary_bus, subordinate_bus; /* bridges */
	struct pci_window window, prefetch_window;      /* bridges, valid with windows_known */
	bool windows_known;

	/* From config space; unknown beyond 64 bytes when not root. */
	size_t config_size;        /* bytes that could be read: 0, 64, 256, 4096 */
	struct fact_int port_type; /* enum pci_port_type; absent: no PCI Express */
	/* LnkCap: what this end can, MT/s and lanes */
	struct fact_int link_speed_cap, link_width_cap;
	struct fact_int link_speed_target; /* LnkCtl2, MT/s */
	/* PCI_ACS_*; absent: no capability, which redirects nothing */
	struct fact_int acs_cap, acs_ctl;
	struct fact_int acs_offset;           /* where in config space */
	struct fact_int payload_max, payload; /* MPS this end can, and is set to, bytes */
	struct fact_int relaxed_ordering;     /* DevCtl */
	struct fact_int atomic_routing, atomic_completer, atomic_requester_enabled,
		atomic_egress_blocked;
	struct fact_int ats_enabled;
	struct fact_int aer_uncorrectable, aer_correctable; /* status registers */
	struct fact_int is_multifunction;
	const char *config_trouble; /* a malformed capability list, as a sentence; NULL: none */

	bool listed_as_gpu; /* nvidia-smi lists it in a text that shows no class */

	size_t index; /* in machine.pci */
};

/* By address, in O(log n); NULL if there is none. */
struct pci_function *pci_find(const struct machine *m, struct pci_address a);

bool pci_is_bridge(const struct pci_function *f);
/* Below a bridge, or that bridge itself. */
bool pci_is_below(const struct pci_function *f, const struct pci_function *bridge);
/*
 * Root and downstream ports: their registers describe the link below them, which belongs to the
 * child.
 */
bool pci_faces_down(const struct pci_function *f);
bool pci_is_gpu(const struct pci_function *f); /* NVIDIA, class 0300 or 0302, or listed as a GPU */
/* What NVIDIA calls BAR1, the window to the VRAM: index 1, or 2 where BAR0 has 64 bits (Hopper). */
const struct pci_bar *pci_gpu_bar1(const struct pci_function *f);
/*
 * Known to have no address. The kernel drops the size too when it cannot place a BAR, so the GPU
 * seems to lack one of the two BARs that every GPU has: registers and BAR1.
 */
bool pci_bar_lacks_address(const struct pci_function *f, size_t i);
/* GB/s (1e9 bytes) that a link of that speed and width carries after line coding, before packet
 * headers. */
double pci_link_gbps(int64_t speed_mtps, int64_t width);
/* "16.0 GT/s x8"; "?" for what is unknown. */
const char *pci_link_format(struct fact_int speed, struct fact_int width, char *buf, size_t size);
/* The vendor's name and the device's from pci.ids, looked up on first use; falls back to
 * "Device 10de:2684". */
const char *pci_device_name(const struct pci_function *f, char *buf, size_t size);
