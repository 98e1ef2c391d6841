/* SPDX-License-Identifier: Apache-2.0 */
#include "support/nic.h"

#include "support/card.h"
#include "support/release.h"

#include <stdio.h>
#include <string.h>

struct fact_int gpu_exports_dma_buf(const struct machine *m, const struct gpu *g)
{
	struct fact_int flavor = m->driver.flavor;

	if (fact_known(g->dma_buf) || !fact_known(flavor))
		return fact_known(g->dma_buf) ? g->dma_buf : flavor;
	return fact_int(flavor.value == DRIVER_OPEN, flavor.from);
}

/* ---- drivers of NICs ---- */

/* A release of Linux as one number: 6.12 is 612. */
#define LINUX(major, minor) ((major)*100 + (minor))
/* Up to here the drivers were looked up, by the dates of their commits; newer ones are unknown. */
#define LINUX_READ LINUX(6, 18)

/* Which builds of a driver ask the RDMA core for peer memory (ib_umem_get_peer). */
enum peer_memory {
	PEERS_NOT_KNOWN, /* the kernel's own do not; of others nothing is known */
	PEERS_OF_OFED,
	PEERS_WITH_CORE, /* wherever the core has the interface: OFED's and Ubuntu's */
};

/*
 * In-kernel drivers by the PCI driver that they use, the module that has the verbs, since which
 * release that one has the operation reg_user_mr_dmabuf; 0: not up to LINUX_READ; and its peer memory.
 */
/* clang-format off */
static const struct nic_driver {
	const char *pci, *module;
	int since;
	enum peer_memory peers;
} nic_drivers[] = {
	{"mlx5_core",   "mlx5_ib",        LINUX(5, 12),  PEERS_WITH_CORE}, /* 90da7dc8206a */
	{"efa",         "efa",            LINUX(5, 16),  PEERS_NOT_KNOWN}, /* 66f4817b5712 */
	{"ice",         "irdma",          LINUX(6, 3),   PEERS_NOT_KNOWN}, /* d2225b838cca */
	{"i40e",        "irdma",          LINUX(6, 3),   PEERS_NOT_KNOWN},
	{"idpf",        "irdma",          LINUX(6, 3),   PEERS_NOT_KNOWN},
	{"iavf",        "irdma",          LINUX(6, 3),   PEERS_NOT_KNOWN},
	{"bnxt_en",     "bnxt_re",        LINUX(6, 6),   PEERS_NOT_KNOWN}, /* 0a30e59f22b2 */
	{"mana",        "mana_ib",        LINUX(6, 15),  PEERS_NOT_KNOWN}, /* "RDMA/mana_ib: implement reg_user_mr_dmabuf" */
	{"mlx4_core",   "mlx4_ib",        0,             PEERS_OF_OFED},
	{"cxgb4",       "iw_cxgb4",       0,             PEERS_NOT_KNOWN},
	{"qede",        "qedr",           0,             PEERS_NOT_KNOWN},
	{"be2net",      "ocrdma",         0,             PEERS_NOT_KNOWN},
	{"hfi1",        "hfi1",           0,             PEERS_NOT_KNOWN},
	{"ib_mthca",    "ib_mthca",       0,             PEERS_NOT_KNOWN},
	{"usnic_verbs", "usnic_verbs",    0,             PEERS_NOT_KNOWN},
	{"hns3",        "hns_roce_hw_v2", 0,             PEERS_NOT_KNOWN},
	{"erdma",       "erdma",          0,             PEERS_NOT_KNOWN},
	{"vmw_pvrdma",  "vmw_pvrdma",     0,             PEERS_NOT_KNOWN},
};
/* clang-format on */

static const struct nic_driver *find_driver(const char *pci)
{
	for (size_t i = 0; i < sizeof(nic_drivers) / sizeof(nic_drivers[0]); i++)
		if (strcmp(nic_drivers[i].pci, pci) == 0)
			return &nic_drivers[i];
	return NULL;
}

/* Red Hat's and SUSE's kernels carry newer drivers back; modules built aside name a version. */
static bool may_be_newer(const struct machine *m, const struct nic_driver *d)
{
	const char *release = m->kernel.release.value;
	const struct module *module = machine_module(m, d->module);

	return strstr(release, ".el") || strstr(release, "-default") ||
	       fact_known(m->peermem.ofed) || (module && fact_known(module->version));
}

static bool is_loaded(const struct machine *m, const char *name)
{
	const struct module *module = machine_module(m, name);

	return module && fact_is(module->loaded, 1);
}

/*
 * Software RDMA uses any network device, and its RDMA device names that one's PCI device too. What
 * is built into the kernel is in no list of modules, so that this leaves a doubt.
 */
static bool may_be_software(const struct machine *m, const struct nic_driver *d)
{
	return !is_loaded(m, d->module) && (is_loaded(m, "rdma_rxe") || is_loaded(m, "siw"));
}

#define MAY_BE_SOFTWARE "an RDMA device that may be of a software driver (rdma_rxe, siw)"

struct fact_int nic_takes_dma_buf(const struct machine *m, const struct pci_function *nic)
{
	const struct nic_driver *d;
	unsigned major, minor;

	if (fact_is(m->kernel.dma_buf, 0))
		return m->kernel.dma_buf;
	if (!fact_known(nic->driver))
		return fact_int_unknown("the NIC's driver is unknown");
	d = find_driver(nic->driver.value);
	if (!d)
		return fact_int_unknown("a NIC driver that is not in the list");
	if (may_be_software(m, d))
		return fact_int_unknown(MAY_BE_SOFTWARE);
	if (!fact_known(m->kernel.release) ||
	    sscanf(m->kernel.release.value, "%u.%u", &major, &minor) != 2 || major > 99 ||
	    minor > 99)
		return fact_int_unknown("the kernel's release is unknown");
	if (d->since && (int)LINUX(major, minor) >= d->since)
		return fact_int(1, "kernel release");
	if (may_be_newer(m, d) || (!d->since && (int)LINUX(major, minor) > LINUX_READ))
		return fact_int_unknown("a driver that may be newer than the kernel's release");
	return fact_int(0, "kernel release");
}

struct fact_int nic_takes_peermem(const struct machine *m, const struct pci_function *nic)
{
	const struct nic_driver *d;

	if (!fact_known(nic->driver))
		return fact_int_unknown("the NIC's driver is unknown");
	d = find_driver(nic->driver.value);
	if (d && may_be_software(m, d))
		return fact_int_unknown(MAY_BE_SOFTWARE);
	if (d && (d->peers == PEERS_WITH_CORE ||
		  (d->peers == PEERS_OF_OFED && fact_known(m->peermem.ofed))))
		return fact_int(1, nic->driver.from);
	return fact_int_unknown("a NIC driver that is not known to use peer memory");
}

/* ConnectX to ConnectX-3 Pro: the mlx4 driver. */
static bool is_mlx4(const struct pci_function *f)
{
	int64_t id = fact_or(f->device, 0);

	return fact_is(f->vendor, 0x15b3) &&
	       ((id >= 0x1002 && id <= 0x1010) || (id >= 0x6340 && id <= 0x67ff));
}

bool nic_lacks_gdr(const struct machine *m, const struct pci_function *nic)
{
	return is_mlx4(nic) && !fact_is(m->peermem.legacy_loaded, 1);
}

struct fact_int nccl_reads_card(const struct gpu *g)
{
	struct fact_int cc = card_compute_capability(g);

	return fact_known(cc) ? fact_int(cc.value >= 80, cc.from) : cc;
}

bool nic_may_be_direct(const struct pci_function *nic)
{
	return fact_is(nic->vendor, 0x15b3) && fact_is(nic->device, 0x1023);
}

/* ---- chipsets ---- */

/*
 * open-gpu-kernel-modules osinit.c _checkP2pChipsetSupport, 580.65.06 to 595.45.04 alike; ids as its
 * nvcst.h has them. The newer AmpereOne-192 is not among them.
 */
/* clang-format off */
static const struct {
	uint16_t vendor, first, last;
	const char *name;
} without_p2p[] = {
	{0x1def, 0xe000, 0xe000, "Ampere Altra"},
	{0x1def, 0xe00d, 0xe010, "Ampere Altra"},
	{0x1def, 0xe100, 0xe110, "Ampere Altra"},
	{0x1def, 0xe200, 0xe207, "AmpereOne"},
	{0x10de, 0x22b1, 0x22b4, "NVIDIA Grace"},
	{0x10de, 0x22b8, 0x22b9, "NVIDIA Grace"},
};
/* clang-format on */

const char *chipset_without_p2p(const struct pci_function *f)
{
	while (f->parent)
		f = f->parent;
	for (size_t i = 0; i < sizeof(without_p2p) / sizeof(without_p2p[0]); i++)
		if (fact_is(f->vendor, without_p2p[i].vendor) && fact_known(f->device) &&
		    f->device.value >= without_p2p[i].first &&
		    f->device.value <= without_p2p[i].last)
			return without_p2p[i].name;
	return NULL;
}

/* ---- the exporter's gate ---- */

/* nv-pci.c nv_grdma_pci_topology_supported, in its order. A guest does not see the chipset's own root
 * ports, so that one which is not known to be a guest is none. */
enum grdma_gate grdma_gate(const struct machine *m, const struct gpu *g, bool common_bridge)
{
	struct fact_int override = m->driver.grdma_topology_override;
	int release = driver_branch(m->driver.module_version);

	if (release >= 0 && !release_checks_grdma(release))
		return GRDMA_ALLOWED;
	if (fact_or(g->numa_id, -1) >= 0 || fact_is(override, 1)) /* coherent; allowed */
		return GRDMA_ALLOWED;
	if (fact_is(override, 2))
		return release < 0 ? GRDMA_UNKNOWN : GRDMA_REFUSED;
	if (common_bridge || fact_known(m->kernel.hypervisor) || !chipset_without_p2p(g->pci))
		return GRDMA_ALLOWED;
	return release < 0 || fact_unknown(override) ? GRDMA_UNKNOWN : GRDMA_REFUSED;
}
