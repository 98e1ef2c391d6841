/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of driver, PCIe, routing and NVLink: each with a machine where it is bad and its good twin.
 */
#include "base/alloc.h"

#include "build_machine.h"
#include "judged.h"
#include "support/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GIB ((int64_t)1 << 30)
#define MIB ((int64_t)1 << 20)

static const char here[] = "built by a test";

/* ---- healthy machines ---- */

static struct machine *with_driver(struct machine *m)
{
	m->driver.nvml = fact_str("12.580.159.04", here);
	m->driver.library_version = m->driver.installed_version = m->driver.module_version;
	m->driver.installed_license = fact_str("Dual MIT/GPL", here);
	m->kernel.cmdline = fact_str("BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro", here);
	m->kernel.cmdline_whole = fact_int(1, here);
	m->kernel.hypervisor = fact_str_absent(here);
	for (size_t i = 0; i < m->gpu_n; i++) {
		m->gpus[i].pci->driver = fact_str("nvidia", here);
		m->gpus[i].pci->power_state = fact_str("D0", here);
		m->gpus[i].excluded = fact_str("No", here);
		m->gpus[i].compute_mode = m->gpus[i].mig_enabled = fact_int(0, here);
		m->gpus[i].persistence = fact_int(1, here);
		m->gpus[i].nvml_index = fact_int((int64_t)i, here);
	}
	return m;
}

/* Two RTX 4090 below one switch, all well. */
static struct machine *switch_machine(void)
{
	return with_driver(build_switch());
}

/* The same two on root ports of one Zen. */
static struct machine *workstation(void)
{
	return with_driver(build_two_root_ports());
}

/* With edited modules, in the kernel and on disk. */
static struct machine *unlocked(void)
{
	struct machine *m = workstation();

	m->driver.bar1_p2p.loaded = m->driver.bar1_p2p.installed = fact_int(1, here);
	m->driver.registry_dwords = fact_str("ForceP2P=0x211;RMPcieP2PType=1", here);
	return m;
}

static void connect_by(struct machine *m, enum rm_connection connection)
{
	for (size_t i = 0; i < m->gpu_n * m->gpu_n; i++)
		m->pairs[i].rm.connection = fact_int(connection, here);
}

/* The driver's resource manager was asked. */
static struct machine *unlocked_bar1(void)
{
	struct machine *m = unlocked();

	connect_by(m, RM_CONNECTION_BAR1);
	return m;
}

static void through_mailbox(struct machine *m)
{
	connect_by(m, RM_CONNECTION_MAILBOX);
}

/* By somebody else's edit, of a release in which a console matters. */
static struct machine *unlocked_570(void)
{
	struct machine *m = unlocked_bar1();

	m->driver.module_version = fact_str("570.86.16", here);
	m->driver.bar1_p2p.mark = fact_str_absent(here);
	for (size_t i = 0; i < 2; i++)
		m->gpus[i].pci->boot_vga = fact_int(0, here);
	return m;
}

/* With today's edit. */
static struct machine *unlocked_gated(void)
{
	struct machine *m = unlocked_bar1();

	m->driver.bar1_p2p.mark = fact_str(EDIT_MARK, here);
	m->driver.uvm_gate.loaded = m->driver.uvm_gate.installed = fact_int(1, here);
	return m;
}

static void gate_missing(struct machine *m)
{
	m->driver.uvm_gate.loaded = m->driver.uvm_gate.installed = fact_int(0, here);
}

static void console_on_gpu1(struct machine *m)
{
	m->gpus[1].pci->boot_vga = fact_int(1, here);
}

static struct machine *professional(void)
{
	struct machine *m = workstation();

	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA RTX 6000 Ada Generation", 89);
	return m;
}

/* Two H200 of an NVSwitch board. */
static struct machine *hgx(void)
{
	struct machine *m = workstation();

	m->driver.switches = fact_int(4, here);
	m->driver.fabric_manager_version = m->driver.module_version;
	for (size_t i = 0; i < 2; i++) {
		struct gpu *g = &m->gpus[i];

		build_model(g, "NVIDIA H200", 90);
		g->pci->device = fact_int(0x2335, here);
		build_nvlinks(g, 18, NVLINK_REMOTE_SWITCH, "0000:00:00.0");
		g->fabric_state = fact_int(FABRIC_COMPLETED, here);
		g->fabric_status = fact_int(0, here);
	}
	return m;
}

/* Resizable BAR of 64 MiB to 32 GiB, and root ports with windows that hold it. */
static struct machine *rebar(void)
{
	struct machine *m = workstation();

	for (size_t i = 0; i < 2; i++) {
		struct pci_function *f = m->gpus[i].pci;

		f->rebar_sizes = fact_int(0xffc0, here);
		f->rebar_bar = fact_int(1, here);
		f->bars_known = true;
		f->bars[0] = (struct pci_bar){.start = 0xfa000000 + i * 32 * MIB,
					      .size = 16 * MIB,
					      .assigned = true};
		f->bars[1] = (struct pci_bar){.start = (uint64_t)0x28000000000 + i * 64 * GIB,
					      .size = 32 * GIB,
					      .is_64bit = true,
					      .prefetchable = true,
					      .assigned = true};
		f->bars[3] = (struct pci_bar){.start = f->bars[1].start + 32 * GIB,
					      .size = 32 * MIB,
					      .is_64bit = true,
					      .prefetchable = true,
					      .assigned = true};
		f->parent->windows_known = true;
		f->parent->prefetch_window = (struct pci_window){f->bars[1].start, 48 * GIB};
	}
	return m;
}

static void shrink(struct gpu *g)
{
	g->bar1_bytes = fact_int(256 * MIB, here);
	g->pci->bars[1].size = 256 * MIB;
}

/* ---- what is wrong ---- */

static struct pci_function *at(struct machine *m, const char *address)
{
	for (size_t i = 0; i < m->pci_n; i++)
		if (!strcmp(m->pci[i].name, address))
			return &m->pci[i];
	fail_msg("no %s", address);
	return NULL;
}

static void driver_gone(struct machine *m)
{
	m->driver.loaded = fact_int(0, here);
	m->gpus[0].pci->driver = m->gpus[1].pci->driver = fact_str_absent(here);
}

static struct machine *whole_modules(void)
{
	struct machine *m = workstation();

	m->driver.torn = fact_str("", here);
	return m;
}

static void torn_module(struct machine *m)
{
	m->driver.torn = fact_str("nvidia/550.90.07 lib/modules/6.1/extra/nvidia.ko\n", here);
}

static void nouveau(struct machine *m)
{
	m->gpus[1].pci->driver = fact_str("nouveau", here);
}

static void nova(struct machine *m)
{
	m->gpus[1].pci->driver = fact_str("nova_core", here);
}

static void unbound(struct machine *m)
{
	m->gpus[1].pci->driver = fact_str_absent(here);
}

static void vfio(struct machine *m)
{
	m->gpus[1].pci->driver = fact_str("vfio-pci", here);
}

static void excluded(struct machine *m)
{
	m->gpus[1].excluded = fact_str("Yes", here);
}

static void off_the_bus(struct machine *m)
{
	m->gpus[1].pci->config_size = 0;
	m->gpus[1].pci->config_trouble = "reads all ones";
}

static void malformed(struct machine *m)
{
	at(m, "0000:22:00.0")->config_trouble = "its capability list loops at 0x40";
}

static void trouble(struct machine *m)
{
	*ARENA_PUSH(m->arena, m->troubles, m->trouble_n) =
		(struct trouble){"sys/class/infiniband/mlx5_0/ports/1/rate", "'fast' is no number"};
}

static void old_library(struct machine *m)
{
	m->driver.library_version = fact_str("570.211.01", here);
}

static void newer_on_disk(struct machine *m)
{
	m->driver.installed_version = fact_str("590.48.01", here);
}

static void other_flavour_on_disk(struct machine *m)
{
	m->driver.installed_license = fact_str("NVIDIA", here);
}

static void proprietary(struct machine *m)
{
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, here);
	m->driver.installed_license = fact_str("NVIDIA", here);
}

static void blackwell_proprietary(struct machine *m)
{
	proprietary(m);
	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA RTX PRO 6000 Blackwell", 120);
}

static void older_second(struct machine *m)
{
	build_model(&m->gpus[0], "NVIDIA GeForce RTX 4090", 89);
	build_model(&m->gpus[1], "NVIDIA GeForce RTX 3090", 86);
}

static void all_cns(struct machine *m)
{
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_CHIPSET_NOT_SUPPORTED);
}

static void read_cns(struct machine *m)
{
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
}

static void all_gns(struct machine *m)
{
	build_status(m, P2P_READ, P2P_GPU_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_GPU_NOT_SUPPORTED);
}

static void all_tns(struct machine *m)
{
	build_status(m, P2P_READ, P2P_TOPOLOGY_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_TOPOLOGY_NOT_SUPPORTED);
}

static void write_dr(struct machine *m)
{
	build_status(m, P2P_WRITE, P2P_DISABLED_BY_REGKEY);
}

static void all_ns(struct machine *m)
{
	build_status(m, P2P_READ, P2P_NOT_SUPPORTED);
	build_status(m, P2P_WRITE, P2P_NOT_SUPPORTED);
}

static void forced_proprietary(struct machine *m)
{
	proprietary(m);
	m->driver.registry_dwords = fact_str("PeerMappingOverride=1;ForceP2P=0x11", here);
}

static void forced_small_bar1(struct machine *m)
{
	m->gpus[1].bar1_bytes = fact_int(256 * MIB, here);
	m->driver.registry_dwords = fact_str("forcep2p=17", here);
}

static void forced_stock(struct machine *m)
{
	m->driver.bar1_p2p.loaded = fact_int(0, here);
}

/* By keys of one card, as in mixed machines. */
static void forced_stock_per_device(struct machine *m)
{
	m->driver.registry_dwords = fact_str("", here);
	m->driver.registry_dwords_per_device =
		fact_str("pci=0000:02:00.0;ForceP2P=0x21;RMForceP2PType=2", here);
	forced_stock(m);
}

static void unlock_lost_per_device(struct machine *m)
{
	m->driver.registry_dwords = fact_str("", here);
	m->driver.registry_dwords_per_device = fact_str("pci=02:00;ForceP2P=0x210", here);
	m->driver.bar1_p2p.installed = fact_int(0, here);
}

static void unlock_lost(struct machine *m)
{
	m->driver.bar1_p2p.installed = fact_int(0, here);
}

static void unlisted(struct machine *m)
{
	m->gpus[1].nvml_index = fact_int_unknown("NVML does not list 0000:02:00.0");
}

static void force_type(struct machine *m)
{
	m->driver.registry_dwords = fact_str("RMForceP2PType=2", here);
}

static void prohibited(struct machine *m)
{
	m->gpus[0].compute_mode = fact_int(2, here);
}

static void mig(struct machine *m)
{
	m->gpus[0].mig_enabled = fact_int(1, here);
}

static void not_persistent(struct machine *m)
{
	m->gpus[0].persistence = fact_int(0, here);
}

static void narrow(struct machine *m)
{
	m->gpus[1].pci->link_width = fact_int(4, here);
}

static void narrow_uplink(struct machine *m)
{
	at(m, "0000:21:00.0")->link_width = fact_int(8, here);
}

/* A slot of 8 lanes: the link is as wide as both its ends can. */
static void narrow_slot(struct machine *m)
{
	m->gpus[3].pci->link_width = fact_int(8, here);
	m->gpus[3].pci->parent->link_width = fact_int(8, here);
	m->gpus[3].pci->parent->link_width_max = fact_int(8, here);
}

static void slow_under_load(struct machine *m)
{
	m->gpus[1].pci->link_speed = fact_int(8000, here);
}

static void slow_by_order(struct machine *m)
{
	m->gpus[1].performance_state = fact_int(8, here);
	m->gpus[1].pci->link_speed = fact_int(2500, here);
	m->gpus[1].pci->parent->link_speed_target = fact_int(8000, here);
}

static void amd_chipset(struct machine *m)
{
	struct pci_function *f = at(m, "0000:22:01.0");

	f->vendor = fact_int(0x1022, here);
	f->device = fact_int(0x43f5, here);
}

static void intel_chipset(struct machine *m)
{
	struct pci_function *f = at(m, "0000:00:02.0");

	f->vendor = fact_int(0x8086, here);
	f->device = fact_int(0x7abc, here);
}

static void four_lanes(struct machine *m)
{
	struct pci_function *f = at(m, "0000:00:02.0");

	f->link_width = f->link_width_max = m->gpus[1].pci->link_width = fact_int(4, here);
}

static void no_address(struct machine *m)
{
	m->gpus[1].pci->bars[1].assigned = false;
}

/* As sysfs shows a BAR that the kernel gave up on. */
static void forgotten(struct machine *m)
{
	m->gpus[1].pci->bars[0] = (struct pci_bar){0};
}

static void old_vbios(struct machine *m)
{
	shrink(&m->gpus[1]);
	m->gpus[1].pci->rebar_sizes = fact_int(0x1c0, here); /* 64 to 256 MiB */
}

static void no_rebar(struct machine *m)
{
	shrink(&m->gpus[1]);
	m->gpus[1].pci->rebar_sizes = fact_int_absent(here);
}

static void firmware_off(struct machine *m)
{
	for (size_t i = 0; i < 2; i++) {
		shrink(&m->gpus[i]);
		m->gpus[i].pci->parent->prefetch_window.size = 288 * MIB;
	}
}

static void below_four_gib(struct machine *m)
{
	shrink(&m->gpus[1]);
	m->gpus[1].pci->bars[1].start = 0xd0000000;
}

static void small_window(struct machine *m)
{
	shrink(&m->gpus[1]);
	m->gpus[1].pci->parent->prefetch_window.size = 2 * GIB;
}

static void nobody_resized(struct machine *m)
{
	shrink(&m->gpus[1]);
}

static struct machine *rebar_logged(void)
{
	struct machine *m = rebar();

	m->log_read = fact_int(1, here);
	return m;
}

static void resize_failed(struct machine *m)
{
	shrink(&m->gpus[1]);
	build_log(m, LOG_OTHER, m->gpus[1].pci);
	m->log[m->log_n - 1].text = "nvidia 0000:02:00.0: BAR 1 [mem size 0x10000000]: releasing";
	build_log(m, LOG_NVRM, NULL);
	m->log[m->log_n - 1].text = "NVRM: No address space to allocate resized BAR1.";
}

static void cause_unseen(struct machine *m)
{
	shrink(&m->gpus[1]);
	m->gpus[1].pci->rebar_sizes = fact_int_unknown("needs root");
	m->gpus[1].pci->parent->windows_known = false;
}

static void known_payloads(struct machine *m, int64_t can)
{
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].payload_max = fact_int(can, here);
}

static struct machine *payload_machine(void)
{
	struct machine *m = switch_machine();

	known_payloads(m, 256);
	return m;
}

static void small_payload(struct machine *m)
{
	known_payloads(m, 512);
}

static void payload_differs(struct machine *m)
{
	at(m, "0000:22:01.0")->payload = fact_int(128, here);
}

static void no_atomics(struct machine *m)
{
	at(m, "0000:22:00.0")->atomic_routing = fact_int(0, here);
}

static void acs_on(struct machine *m)
{
	at(m, "0000:22:00.0")->acs_ctl = fact_int(0x1d, here);
	at(m, "0000:22:01.0")->acs_ctl = fact_int(0x1d, here);
}

static void acs_egress(struct machine *m)
{
	at(m, "0000:22:01.0")->acs_ctl = fact_int(PCI_ACS_EC, here);
}

static void acs_completions(struct machine *m)
{
	at(m, "0000:22:01.0")->acs_ctl = fact_int(PCI_ACS_SV | PCI_ACS_CR, here);
}

static void acs_root_ports(struct machine *m)
{
	at(m, "0000:00:01.0")->acs_ctl = at(m, "0000:00:02.0")->acs_ctl = fact_int(0x1d, here);
}

static void translating(struct machine *m)
{
	build_iommu(m, "DMA-FQ");
}

static void acs_root_ports_translating(struct machine *m)
{
	acs_root_ports(m);
	translating(m);
}

static void acs_root_ports_of_hangs(struct machine *m)
{
	acs_root_ports(m);
	at(m, "0000:00:02.0")->vendor = fact_int(0x1022, here);
	at(m, "0000:00:02.0")->device = fact_int(0x1483, here);
}

static void cmdline_is(struct machine *m, const char *text)
{
	m->kernel.cmdline = fact_str(text, here);
}

static void intel_words_on_amd(struct machine *m)
{
	cmdline_is(m, "ro intel_iommu=on");
}

static void pt_for_nothing(struct machine *m)
{
	cmdline_is(m, "ro iommu=pt");
}

static void pt_and_off(struct machine *m)
{
	cmdline_is(m, "iommu=pt amd_iommu=off");
}

static void amd_on(struct machine *m)
{
	build_iommu(m, "identity");
	cmdline_is(m, "amd_iommu=on iommu=pt");
}

static void amd_words_on_intel(struct machine *m)
{
	m->cpu.vendor = fact_int(CPU_INTEL, here);
	cmdline_is(m, "amd_iommu=off");
}

static void amd_off_acs_on(struct machine *m)
{
	acs_on(m);
	cmdline_is(m, "amd_iommu=off");
}

static void keys_of_gpu0(struct machine *m)
{
	m->driver.registry_dwords = fact_str("", here);
	m->driver.registry_dwords_per_device =
		fact_str(arena_printf(m->arena, "pci=%s;ForceP2P=0x211;RMPcieP2PType=1",
				      m->gpus[0].pci->name),
			 here);
}

static void edited_modules(struct machine *m)
{
	m->driver.bar1_p2p.loaded = fact_int(1, here);
}

static struct machine *copies_arrived(void)
{
	struct machine *m = workstation();

	edited_modules(m);
	build_observed(m, OBSERVED_PEER_COPY, 0, 1, true);
	build_observed(m, OBSERVED_PEER_COPY, 1, 0, true);
	return m;
}

static void more_memory_than_bar1(struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].vram_bytes = fact_int(INT64_C(48) << 30, here);
}

static struct machine *stock_modules(void)
{
	struct machine *m = workstation();

	m->driver.bar1_p2p.loaded = fact_int(0, here);
	return m;
}

static struct machine *linux_6_12(void)
{
	struct machine *m = workstation();

	edited_modules(m);
	m->driver.module_version = fact_str("595.71.05", here);
	m->kernel.release = fact_str("6.12.88+deb13-amd64", here);
	return m;
}

static void linux_7_0(struct machine *m)
{
	m->kernel.release = fact_str("7.0.4+deb14-amd64", here);
}

static void linux_7_0_610(struct machine *m)
{
	linux_7_0(m);
	m->driver.module_version = fact_str("610.57.04", here);
}

static void put_bar1(struct machine *m, size_t gpu, uint64_t start)
{
	struct pci_bar *bar = (struct pci_bar *)pci_gpu_bar1(m->gpus[gpu].pci);

	bar->start = start;
	bar->size = UINT64_C(32) << 30;
}

static struct machine *bar1_at_8_tib(void)
{
	struct machine *m = workstation();

	put_bar1(m, 0, UINT64_C(8) << 40);
	put_bar1(m, 1, UINT64_C(9) << 40);
	return m;
}

static void bar1_at_128_tib(struct machine *m)
{
	put_bar1(m, 1, UINT64_C(128) << 40);
}

static struct machine *hmm_low(void)
{
	struct machine *m = workstation();

	build_iommu(m, "identity");
	m->driver.hmm_disabled = fact_int(0, here);
	m->driver.hmm_placed = fact_int(1, here);
	m->driver.hmm_end = fact_int(0x3fffffffffff, here); /* 46 bits: four levels of pages */
	return m;
}

static void hmm_high(struct machine *m)
{
	m->driver.hmm_end = fact_int(0xfffffffffffff, here);
}

static void old_xeon(struct machine *m)
{
	m->cpu.vendor = fact_int(CPU_INTEL, here);
	m->cpu.family = fact_int(6, here);
	m->cpu.model = fact_int(85, here);
}

static struct machine *one_socket(void)
{
	return with_driver(build_root_ports(4, 1, 1));
}

static void two_sockets(struct machine *m)
{
	build_nodes(m, 2, 2);
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].numa_node = fact_int(i >= m->pci_n / 2, here);
}

static struct machine *nvml_asked(void)
{
	struct machine *m = switch_machine();

	for (size_t i = 0; i < 4; i++)
		m->pairs[i].common_ancestor = fact_int(NVML_LEVEL_SINGLE, here);
	return m;
}

static void nvml_differs(struct machine *m)
{
	for (size_t i = 0; i < 4; i++)
		m->pairs[i].common_ancestor = fact_int(NVML_LEVEL_HOSTBRIDGE, here);
}

static void link_down(struct machine *m)
{
	m->gpus[1].nvlinks[3].active = fact_int(0, here);
}

static void all_links_down(struct machine *m)
{
	for (size_t i = 0; i < 2; i++)
		for (unsigned k = 0; k < 18; k++)
			m->gpus[i].nvlinks[k].active = fact_int(0, here);
}

static void fabric_waits(struct machine *m)
{
	m->gpus[0].fabric_state = m->gpus[1].fabric_state = fact_int(FABRIC_IN_PROGRESS, here);
}

static void fabric_refused(struct machine *m)
{
	m->gpus[1].fabric_status = fact_int(999, here);
}

static void two_links_less(struct machine *m)
{
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].nvlinks[3].active = m->gpus[i].nvlinks[7].active = fact_int(0, here);
}

static void manager_old(struct machine *m)
{
	m->driver.fabric_manager_version = fact_str("580.95.05", here);
}

/* ---- twins ---- */

/* `good` as built is fine by the rule; spoiled it is bad, and a finding's sentence holds `says`. */
static const struct twin {
	const char *rule;
	struct machine *(*good)(void);
	void (*spoil)(struct machine *m);
	const char *says;
} twins[] = {
	{"driver-loaded", workstation, driver_gone, "2 of 2 NVIDIA GPUs are not bound to a driver"},
	{"module-torn", whole_modules, torn_module,
	 "/lib/modules/6.1/extra/nvidia.ko is truncated"},
	{"driver-bound", workstation, nouveau, "GPU1 is bound to nouveau"},
	{"driver-bound", workstation, nova, "GPU1 is bound to nova_core"},
	{"driver-bound", workstation, unbound, "GPU1 is bound to no driver"},
	{"gpu-passed-through", workstation, vfio, "GPU1 is bound to vfio-pci"},
	{"gpu-excluded", workstation, excluded, "exclude GPU1"},
	{"gpu-alive", workstation, off_the_bus, "fallen off the bus"},
	{"machine-readable", switch_machine, malformed, "loops at 0x40"},
	{"machine-readable", switch_machine, trouble, "'fast' is no number"},
	{"driver-library-version", workstation, old_library, "570.211.01"},
	{"driver-module-current", workstation, newer_on_disk, "590.48.01"},
	{"driver-module-current", workstation, other_flavour_on_disk, "(proprietary)"},
	{"driver-open-modules", workstation, proprietary, "only from edited open modules"},
	{"driver-open-modules", professional, blackwell_proprietary, "Blackwell"},
	{"p2p-geforce", workstation, all_cns, "GeForce cards: CNS for GPU0 and GPU1"},
	{"p2p-geforce", workstation, all_gns, "GeForce cards: GNS for GPU0 and GPU1"},
	{"p2p-chipset", professional, all_cns, "refuses P2P reads and writes"},
	{"p2p-chipset", professional, read_cns, "not in the driver's list for peer reads"},
	{"p2p-gpu", professional, all_gns, "with GNS"},
	{"p2p-generation", workstation, older_second, "different generations"},
	{"p2p-topology", professional, all_tns, "I/O hubs"},
	{"p2p-regkey", workstation, write_dr, "refuses P2P writes"},
	{"p2p-not-supported", professional, all_ns, "with NS"},
	{"p2p-forced", workstation, forced_proprietary, "ForceP2P=0x11"},
	{"p2p-forced", workstation, forced_small_bar1, "BAR1 (256 MiB) does not cover"},
	{"p2p-forced", unlocked, forced_stock, "only stubs for"},
	{"p2p-forced", unlocked, forced_stock_per_device, "allow P2P for GPU1"},
	{"p2p-force-type", unlocked, forced_stock_per_device, "NVLink only"},
	{"unlock-kept", unlocked, unlock_lost_per_device, "after a reboot ForceP2P=0x210"},
	{"p2p-mailbox", unlocked_bar1, through_mailbox, "through a mailbox"},
	{"bar1-windows", copies_arrived, more_memory_than_bar1, "maps BAR1 in windows"},
	{"kernel-lockup", linux_6_12, linux_7_0, "locked up under NCCL"},
	{"kernel-lockup", linux_6_12, linux_7_0_610, "was reset under vLLM"},
	{"custom-all-reduce", stock_modules, edited_modules,
	 "does not prove that the edit is wrong"},
	{"bar1-high", bar1_at_8_tib, bar1_at_128_tib, "BAR1 of GPU1 ends at 0x8007ffffffff"},
	{"hmm-dma32", hmm_low, hmm_high, "beyond the 47 address bits of GPU0"},
	{"p2p-keys-one-side", unlocked, keys_of_gpu0, "for only one card of GPU0 and GPU1"},
	{"unlock-console", unlocked_570, console_on_gpu1, "start of BAR1 of GPU1"},
	{"uvm-managed", unlocked_gated, gate_missing, "no gate that keeps managed memory away"},
	{"unlock-kept", unlocked, unlock_lost, "after a reboot ForceP2P=0x211"},
	{"p2p-force-type", workstation, force_type, "NVLink only"},
	{"gpu-listed", workstation, unlisted, "GPU1 is bound to nvidia, but NVML does not list"},
	{"gpu-compute-mode", workstation, prohibited, "prohibited: no process may use it"},
	{"gpu-mig", workstation, mig, "GPU0 is in MIG mode"},
	{"gpu-persistence", workstation, not_persistent, "deinitializes GPU0 while no program"},
	{"link-width", workstation, narrow, "runs at x4, but both ends support x16"},
	{"link-width", switch_machine, narrow_uplink, "0000:21:00.0 runs at x8"},
	{"link-even", one_socket, narrow_slot, "every ring through GPU3 is limited to 12.9 GB/s"},
	{"link-speed", workstation, slow_under_load,
	 "runs at 8.0 GT/s, but both ends support 16.0 GT/s"},
	{"link-speed", workstation, slow_by_order, "limited to 8.0 GT/s"},
	{"gpu-behind-chipset", switch_machine, amd_chipset, "AMD 600 series"},
	{"gpu-behind-chipset", workstation, intel_chipset, "Intel 600 series"},
	{"gpu-behind-chipset", workstation, four_lanes, "has 4 lanes"},
	{"bar-assigned", rebar, no_address, "BAR 1 of GPU1 (32 GiB) has no address"},
	{"bar-assigned", rebar, forgotten, "BAR 0 of GPU1 (size unknown) has no address"},
	{"bar1-vbios", rebar, old_vbios, "offers 256 MiB at most"},
	{"bar1-vbios", rebar, no_rebar, "no Resizable BAR capability"},
	{"bar1-firmware", rebar, firmware_off, "just enough for the small BAR1"},
	{"bar1-firmware", rebar, below_four_gib, "Above 4G Decoding is disabled"},
	{"bar1-window", rebar, small_window, "window of bridge 0000:00:02.0 is 2 GiB"},
	{"bar1-small", rebar, nobody_resized, "it was not enlarged"},
	{"bar1-small", rebar, cause_unseen, "unknown whether"},
	{"bar1-resize", rebar_logged, resize_failed, "enlarge BAR1 found no room for it"},
	{"payload-size", payload_machine, small_payload, "packets of 256 bytes"},
	{"payload-size", payload_machine, payload_differs, "0000:22:01.0 above it is set to 128"},
	{"atomics-routed", switch_machine, no_atomics, "does not route AtomicOps"},
	{"acs-redirect", switch_machine, acs_on,
	 "ACSCtl 001d: request redirect (RR), completion redirect (CR)"},
	{"acs-redirect", switch_machine, acs_egress, "egress control (EC)"},
	{"acs-completion-redirect", switch_machine, acs_completions, "completions of peer reads"},
	{"acs-root-port", workstation, acs_root_ports, "0000:00:01.0, 0000:00:02.0"},
	{"acs-root-port", workstation, acs_root_ports, "costs nothing because no IOMMU translates"},
	{"acs-root-port", workstation, acs_root_ports_translating, "costs 3 to 9 GB/s"},
	{"acs-root-port", workstation, acs_root_ports_of_hangs,
	 "NCCL has hung until they were cleared"},
	{"uplink-shared", switch_machine, all_gns, "GPU0, GPU1 share this uplink"},
	{"iommu-translating", workstation, translating, "translates the addresses of GPU0, GPU1"},
	{"iommu-parameters", workstation, intel_words_on_amd, "AMD processor"},
	{"iommu-parameters", workstation, pt_for_nothing, "found no IOMMU"},
	{"iommu-parameters", workstation, pt_and_off, "disabled"},
	{"iommu-parameters", workstation, amd_on, "amd_iommu=on is not a value"},
	{"iommu-parameters", workstation, amd_words_on_intel, "Intel processor"},
	{"iommu-parameters", switch_machine, amd_off_acs_on, "leaves the ACS redirect bits"},
	{"host-bridge", workstation, old_xeon, "not on the driver's list for peer reads"},
	{"cross-socket", one_socket, two_sockets, "different CPU sockets"},
	{"topology-agrees", nvml_asked, nvml_differs, "NVML reports PHB"},
	{"nvlink-up", hgx, link_down, "17 of 18 NVLinks of GPU1"},
	{"nvlink-up", hgx, all_links_down, "no NVLink is active on any GPU"},
	{"nvlink-up", hgx, two_links_less, "boards of NVIDIA H200 have 18"},
	{"nvswitch-fabric", hgx, fabric_waits, "still registering"},
	{"nvswitch-fabric", hgx, fabric_refused, "status 999"},
	{"fabric-manager-version", hgx, manager_old, "580.95.05"},
};

static enum verdict verdict_of(const struct diagnosis *d, const char *rule)
{
	for (size_t i = 0; i < d->outcome_n; i++)
		if (!strcmp(d->outcomes[i].rule->id, rule))
			return d->outcomes[i].verdict;
	fail_msg("no rule %s", rule);
	return VERDICT_N;
}

static const struct finding *finding_of(const struct diagnosis *d, const char *rule,
					const char *says)
{
	for (size_t i = 0; i < d->finding_n; i++)
		if (!strcmp(d->findings[i].rule->id, rule) && strstr(d->findings[i].sentence, says))
			return &d->findings[i];
	return NULL;
}

static void show(const struct diagnosis *d)
{
	for (size_t i = 0; i < d->finding_n; i++)
		print_error("  %s: %s\n", d->findings[i].rule->id, d->findings[i].sentence);
}

static void every_twin(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]); i++) {
		const struct twin *w = &twins[i];
		struct judged good = judge_built(w->good()), bad;
		struct machine *m = w->good();
		const struct finding *f;

		if (verdict_of(good.d, w->rule) != VERDICT_OK) {
			show(good.d);
			fail_msg("%s is %s on the good twin of \"%s\"", w->rule,
				 verdict_word(verdict_of(good.d, w->rule)), w->says);
		}
		w->spoil(m);
		bad = judge_built(m);
		f = finding_of(bad.d, w->rule, w->says);
		if (verdict_of(bad.d, w->rule) != VERDICT_BAD || !f) {
			show(bad.d);
			fail_msg("%s does not say \"%s\"", w->rule, w->says);
		}
		assert_true(f->remedy && *f->remedy);
		assert_true(f->subject && *f->subject);
		judged_done(&good);
		judged_done(&bad);
	}
}

/* Every rule of these topics has a twin. */
static void every_rule_has_a_twin(void **state)
{
	bool other = false;

	(void)state;
	FOR_EACH_RULE (r) {
		bool found = false;

		for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]) && !found; i++)
			found = !strcmp(twins[i].rule, r->id);
		if (!found)
			fail_msg("%s has no twin", r->id);
		other = !strcmp(r->id, "fabric-manager-version"); /* the last of these topics */
		if (other)
			break;
	}
	assert_true(other);
}

/* ---- what must not be found, and what a finding must hold ---- */

static void assert_verdict(struct machine *m, const char *rule, enum verdict wanted)
{
	struct judged j = judge_built(m);

	if (verdict_of(j.d, rule) != wanted) {
		show(j.d);
		fail_msg("%s is %s", rule, verdict_word(verdict_of(j.d, rule)));
	}
	judged_done(&j);
}

static void source_validation_is_no_redirect(void **state)
{
	struct machine *m = switch_machine();

	(void)state;
	at(m, "0000:22:00.0")->acs_ctl = fact_int(PCI_ACS_SV | PCI_ACS_UF | PCI_ACS_DT, here);
	at(m, "0000:22:01.0")->acs_ctl = fact_int(PCI_ACS_SV | PCI_ACS_TB | PCI_ACS_UF, here);
	assert_verdict(m, "acs-redirect", VERDICT_OK);
	m = workstation();
	at(m, "0000:00:01.0")->acs_ctl = fact_int(PCI_ACS_SV | PCI_ACS_UF, here);
	assert_verdict(m, "acs-root-port", VERDICT_OK);
}

/* ACS of the root port above a common switch is not on the way. */
static void root_port_above_a_switch(void **state)
{
	struct machine *m = switch_machine();

	(void)state;
	at(m, "0000:20:01.0")->acs_ctl = fact_int(0x1d, here);
	assert_verdict(m, "acs-redirect", VERDICT_OK);
}

static void acs_names_port_value_and_cure(void **state)
{
	struct machine *m = switch_machine();
	struct judged j;
	const struct finding *f;

	(void)state;
	acs_on(m);
	j = judge_built(m);
	f = finding_of(j.d, "acs-redirect", "0000:22:00.0");
	assert_non_null(f);
	assert_string_equal(f->subject, "port 0000:22:00.0");
	assert_ptr_equal(f->pci, at(m, "0000:22:00.0"));
	/* Requests of GPU0, and the answers to reads that GPU1 does of it. */
	assert_int_equal(f->pairs, 2);
	assert_non_null(strstr(f->remedy, "setpci -s 0000:22:00.0 ECAP_ACS+6.w=0011"));
	assert_non_null(strstr(f->remedy, GRUB_LINE_START
			       "'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0'\""));
	assert_string_equal(f->evidence[0].what, "ACSCtl of 0000:22:00.0");
	assert_non_null(strstr(f->evidence[0].value, "001d"));
	assert_non_null(strstr(f->evidence[0].expected, "0011"));
	assert_int_equal(verdict_of(j.d, "acs-completion-redirect"), VERDICT_OK);
	judged_done(&j);
}

/* fix refuses to clear what keeps a guest's device from the others; so check does not advise it. */
static void acs_that_guards_a_guest_stays(void **state)
{
	static const char *const drivers[] = {"vfio-pci", "nvgrace_gpu_vfio_pci", "xen-pciback"};

	(void)state;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		struct machine *m = switch_machine();
		const char *remedy;
		struct judged j;

		acs_on(m);
		m->gpus[1].pci->driver = fact_str(drivers[i], here);
		j = judge_built(m);
		remedy = finding_of(j.d, "acs-redirect", "0000:22:00.0")->remedy;
		assert_non_null(strstr(remedy, "leave it as it is"));
		assert_non_null(strstr(remedy, drivers[i]));
		assert_null(strstr(remedy, "setpci"));
		assert_null(strstr(remedy, "disable_acs_redir"));
		judged_done(&j);
	}
}

/*
 * An upgrade put a new release beside modules that onehop had edited, and those are loaded still.
 */
static void edited_modules_outlive_an_upgrade(void **state)
{
	struct machine *m = workstation();
	struct judged j;

	(void)state;
	old_library(m);
	m->driver.bar1_p2p.mark = fact_str(EDIT_MARK, here);
	j = judge_built(m);
	assert_non_null(
		strstr(finding_of(j.d, "driver-library-version", "570.211.01")->remedy,
		       "`sudo onehop undo`, and reboot; then `onehop unlock` for 570.211.01"));
	judged_done(&j);
	m = workstation();
	old_library(m);
	m->driver.bar1_p2p.mark = fact_str_absent(here);
	j = judge_built(m);
	assert_null(
		strstr(finding_of(j.d, "driver-library-version", "570.211.01")->remedy, "undo"));
	judged_done(&j);
}

static void acs_of_a_nic(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *up, *down[2];
	struct judged j;
	const struct finding *f;

	(void)state;
	up = build_port(m, "0000:21:00.0", build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT),
			PCI_PORT_UPSTREAM);
	down[0] = build_port(m, "0000:22:00.0", up, PCI_PORT_DOWNSTREAM);
	down[1] = build_port(m, "0000:22:01.0", up, PCI_PORT_DOWNSTREAM);
	build_gpu(m, "0000:23:00.0", down[0]);
	build_nic(m, "0000:24:00.0", down[1], "mlx5_0");
	down[1]->acs_ctl = fact_int(PCI_ACS_RR, here);
	j = judge_built(m);
	f = finding_of(j.d, "acs-redirect", "1 GPU-NIC paths");
	assert_non_null(f);
	assert_int_equal(f->pairs, 0);
	judged_done(&j);
}

static void lockdown_is_told(void **state)
{
	struct machine *m = switch_machine();
	struct judged j;

	(void)state;
	acs_on(m);
	m->kernel.lockdown = fact_int(LOCKDOWN_INTEGRITY, here);
	j = judge_built(m);
	assert_non_null(
		strstr(finding_of(j.d, "acs-redirect", "0000:22:00.0")->remedy, "locked down"));
	judged_done(&j);
}

static void idle_link_is_not_judged(void **state)
{
	struct machine *m = workstation();

	(void)state;
	m->gpus[1].performance_state = fact_int(8, here);
	m->gpus[1].pci->link_speed = fact_int(2500, here);
	assert_verdict(m, "link-speed", VERDICT_UNKNOWN);
	m = workstation();
	m->gpus[1].performance_state = fact_int_unknown("no NVML");
	m->gpus[1].pci->link_speed = fact_int(2500, here);
	assert_verdict(m, "link-speed", VERDICT_UNKNOWN);
}

/* A card that can less than its slot is not a fault of the link. */
static void narrow_card_in_a_wide_slot(void **state)
{
	struct machine *m = workstation();

	(void)state;
	m->gpus[1].pci->link_width = m->gpus[1].pci->link_width_max = fact_int(8, here);
	m->gpus[1].pci->link_speed = m->gpus[1].pci->link_speed_max = fact_int(8000, here);
	assert_verdict(m, "link-width", VERDICT_OK);
	m = workstation();
	m->gpus[1].pci->link_speed = m->gpus[1].pci->link_speed_max = fact_int(8000, here);
	assert_verdict(m, "link-speed", VERDICT_OK);
}

static void link_in_a_guest_is_information(void **state)
{
	struct machine *m = workstation();
	struct judged j;

	(void)state;
	narrow(m);
	m->kernel.hypervisor = fact_str("kvm", here);
	j = judge_built(m);
	assert_int_equal(finding_of(j.d, "link-width", "x4")->severity, SEVERITY_INFO);
	judged_done(&j);
}

static void mailbox_cards_do_without_bar1(void **state)
{
	static const char *const ids[] = {"bar1-vbios", "bar1-firmware", "bar1-window",
					  "bar1-small"};

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct machine *m = rebar();

		firmware_off(m);
		for (size_t k = 0; k < 2; k++)
			build_model(&m->gpus[k], "NVIDIA RTX 6000 Ada Generation", 89);
		assert_verdict(m, ids[i], VERDICT_NA);
	}
}

/* A card is told by its device id when no driver tells its name. */
static void bar1_without_a_driver(void **state)
{
	struct machine *m = rebar();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct gpu *g = &m->gpus[i];

		g->model = fact_str_unknown("no driver");
		g->vram_bytes = g->compute_capability = fact_int_unknown("no driver");
	}
	shrink(&m->gpus[0]);
	shrink(&m->gpus[1]);
	assert_verdict(m, "bar1-small", VERDICT_BAD);
}

static void one_bar1_cause_one_row(void **state)
{
	static const char *const ids[] = {"bar1-vbios", "bar1-firmware", "bar1-window",
					  "bar1-small"};
	static void (*const spoils[])(struct machine *) = {old_vbios, firmware_off, small_window,
							   nobody_resized};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 4; k++) {
			struct machine *m = rebar();

			spoils[i](m);
			assert_verdict(m, ids[k], i == k ? VERDICT_BAD : VERDICT_OK);
		}
}

/* BAR1 is as large as the cards offer: only another video BIOS could make it cover more. */
static void largest_bar1_of_unknown_memory_is_open_for_the_vbios_alone(void **state)
{
	static const char *const ids[] = {"bar1-firmware", "bar1-window", "bar1-small"};
	struct machine *m;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		m = rebar();
		m->gpus[0].vram_bytes = m->gpus[1].vram_bytes = fact_int_unknown("no driver");
		assert_verdict(m, i < 3 ? ids[i] : "bar1-vbios",
			       i < 3 ? VERDICT_OK : VERDICT_UNKNOWN);
	}
}

static void alike_cards_are_one_finding(void **state)
{
	struct machine *m = rebar();
	struct judged j;

	(void)state;
	firmware_off(m);
	m->gpus[1].pci->parent = m->gpus[0].pci->parent;
	j = judge_built(m);
	assert_string_equal(finding_of(j.d, "bar1-firmware", "GPU0, GPU1")->subject, "BAR1");
	judged_done(&j);
}

static void missing_bridge_is_no_fault(void **state)
{
	struct machine *m = workstation();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		build_model(&m->gpus[i], "NVIDIA GeForce RTX 3090", 86);
		build_nvlinks(&m->gpus[i], 4, NVLINK_REMOTE_UNKNOWN, "FFFFFFFF:FF:FF.0");
		for (unsigned k = 0; k < 4; k++)
			m->gpus[i].nvlinks[k].active = fact_int(0, here);
	}
	assert_verdict(m, "nvlink-up", VERDICT_OK);
}

static void geforce_is_not_told_twice(void **state)
{
	struct machine *m = workstation();

	(void)state;
	all_cns(m);
	assert_verdict(m, "p2p-chipset", VERDICT_OK);
	m = professional();
	all_cns(m);
	assert_verdict(m, "p2p-geforce", VERDICT_OK);
}

static void reads_and_writes_are_told_apart(void **state)
{
	struct machine *m = professional();
	struct judged j;

	(void)state;
	m->pairs[1].p2p[P2P_READ] = fact_int(P2P_CHIPSET_NOT_SUPPORTED, here);
	j = judge_built(m);
	assert_int_equal(finding_of(j.d, "p2p-chipset",
				    "P2P reads between 1 of 2 pairs (GPU0->GPU1)")
				 ->pairs,
			 1);
	assert_null(finding_of(j.d, "p2p-chipset", "writes between"));
	judged_done(&j);
}

static void forced_is_fine_where_the_mechanism_is(void **state)
{
	struct machine *m = workstation();

	(void)state;
	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA GeForce RTX 5090", 120);
	m->driver.module_version = fact_str("595.45.04", here);
	m->driver.registry_dwords = fact_str("ForceP2P=0x211;RMPcieP2PType=1", here);
	assert_verdict(m, "p2p-forced", VERDICT_OK);
	m = workstation();
	m->driver.registry_dwords = fact_str("ForceP2P=0", here);
	assert_verdict(m, "p2p-forced", VERDICT_OK);
}

/* Others say why: the rule of containers, and of GPUs that another driver holds. */
static void unlisted_with_a_cause(void **state)
{
	struct machine *m = workstation();

	(void)state;
	unlisted(m);
	m->kernel.container = fact_str("docker", here);
	m->driver.device_nodes = fact_int(1, here);
	m->driver.gpus_in_proc = fact_int(2, here);
	assert_verdict(m, "gpu-listed", VERDICT_NA);
	m = workstation();
	unlisted(m);
	m->gpus[1].excluded = fact_str("Yes", here);
	assert_verdict(m, "gpu-listed", VERDICT_OK);
}

static void force_type_before_575(void **state)
{
	struct machine *m = workstation();

	(void)state;
	force_type(m);
	m->driver.module_version = fact_str("570.86.16", here);
	assert_verdict(m, "p2p-force-type", VERDICT_OK);
}

/*
 * Only BAR1 is asked for the key: where the driver has another way for every pair, nothing is lost.
 */
static void force_type_beside_mailboxes(void **state)
{
	static const struct {
		void (*spoil)(struct machine *m); /* NULL: nothing */
		enum severity severity;
	} rows[] = {{NULL, SEVERITY_INFO}, {all_ns, SEVERITY_WARNING}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct machine *m = professional();
		struct judged j;

		force_type(m);
		if (rows[i].spoil)
			rows[i].spoil(m);
		j = judge_built(m);
		assert_int_equal(finding_of(j.d, "p2p-force-type", "NVLink only")->severity,
				 rows[i].severity);
		judged_done(&j);
	}
}

static void identity_is_fine(void **state)
{
	struct machine *m = workstation();

	(void)state;
	build_iommu(m, "identity");
	assert_verdict(m, "iommu-translating", VERDICT_OK);
	m = workstation();
	m->kernel.iommus = fact_int_unknown("not in the recording");
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].iommu_type = fact_str_unknown("not in the recording");
	assert_verdict(m, "iommu-translating", VERDICT_UNKNOWN);
}

/* As machine/usable.h says, only that mode keeps a GPU from its pairs. */
static void only_the_prohibited_mode_concerns_pairs(void **state)
{
	static const struct {
		int mode;
		enum severity severity;
		size_t pairs;
	} rows[] = {{1, SEVERITY_INFO, 0}, {2, SEVERITY_WARNING, 2}, {3, SEVERITY_INFO, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct machine *m = workstation();
		const struct finding *f;
		struct judged j;

		m->gpus[0].compute_mode = fact_int(rows[i].mode, here);
		j = judge_built(m);
		f = finding_of(j.d, "gpu-compute-mode", "compute mode");
		assert_int_equal(f->severity, rows[i].severity);
		assert_int_equal(f->pairs, rows[i].pairs);
		judged_done(&j);
	}
}

/*
 * The remedy says how this machine's boot loader takes a parameter: with grubby where it has its
 * own entries.
 */
static void parameters_fit_the_boot_loader(void **state)
{
	static const struct {
		int grubby;
		const char *remedy;
	} rows[] = {
		{1, "`grubby --update-kernel=ALL --args=iommu=pt`"},
		{0, "`GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt\"`"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct machine *m = workstation();
		struct judged j;

		translating(m);
		m->kernel.boot_loader = fact_int(BOOT_GRUB, here);
		m->kernel.grubby = fact_int(rows[i].grubby, here);
		j = judge_built(m);
		assert_non_null(strstr(finding_of(j.d, "iommu-translating", "translates")->remedy,
				       rows[i].remedy));
		judged_done(&j);
	}
}

/* Faults in the log lift it from likely to certain. */
static void iommu_with_faults(void **state)
{
	struct machine *m = workstation();
	struct judged j;
	const struct finding *f;

	(void)state;
	translating(m);
	j = judge_built(m);
	f = finding_of(j.d, "iommu-translating", "translates");
	assert_int_equal(f->severity, SEVERITY_WARNING);
	assert_int_equal(f->confidence, CONFIDENCE_LIKELY);
	judged_done(&j);
	m = workstation();
	translating(m);
	build_log(m, LOG_IOMMU_FAULT, m->gpus[0].pci);
	j = judge_built(m);
	f = finding_of(j.d, "iommu-translating", "translates");
	assert_int_equal(f->severity, SEVERITY_ERROR);
	assert_int_equal(f->confidence, CONFIDENCE_CERTAIN);
	judged_done(&j);
}

/* NVLink does not pass the IOMMU. */
static void iommu_beside_nvlink(void **state)
{
	struct machine *m = hgx();
	struct judged j;

	(void)state;
	translating(m);
	j = judge_built(m);
	assert_int_equal(finding_of(j.d, "iommu-translating", "translates")->severity,
			 SEVERITY_INFO);
	judged_done(&j);
}

static void all_bound_elsewhere(void **state)
{
	struct machine *m = workstation();

	(void)state;
	driver_gone(m);
	m->gpus[0].pci->driver = m->gpus[1].pci->driver = fact_str("vfio-pci", here);
	assert_verdict(m, "driver-loaded", VERDICT_NA);
}

/* Its driver is not a package. */
static void driver_of_nixos(void **state)
{
	struct machine *m = workstation();
	struct judged j;

	(void)state;
	driver_gone(m);
	m->driver.installed_version = m->driver.module_version = fact_str_absent(here);
	m->kernel.distribution_id = fact_str("nixos", here);
	j = judge_built(m);
	assert_non_null(strstr(finding_of(j.d, "driver-loaded", "not bound")->remedy,
			       "hardware.nvidia.open = true in the system's configuration"));
	judged_done(&j);
}

static void healthy_machines_have_no_findings(void **state)
{
	static struct machine *(*const makers[])(
		void) = {switch_machine, workstation,     professional, hgx,
			 rebar,          payload_machine, one_socket};

	(void)state;
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		struct judged j = judge_built(makers[i]());

		for (size_t k = 0; k < j.d->finding_n; k++)
			for (size_t n = 0; n < sizeof(twins) / sizeof(twins[0]); n++)
				if (!strcmp(j.d->findings[k].rule->id, twins[n].rule))
					fail_msg("%zu: %s", i, j.d->findings[k].sentence);
		judged_done(&j);
	}
}

/* What the fabric manager needs with NVLink 5 besides its package. */
static void fabric_of_nvlink_5(void **state)
{
	static const char *const remedies[] = {"modprobe ib_umad",
					       "and nvlsm, which NVLink 5 needs"};

	(void)state;
	for (size_t i = 0; i < sizeof(remedies) / sizeof(*remedies); i++) {
		struct machine *m = hgx();
		struct judged j;

		for (size_t k = 0; k < m->gpu_n; k++)
			build_model(&m->gpus[k], "NVIDIA B200", 100);
		fabric_waits(m);
		if (i)
			m->driver.fabric_manager_version = fact_str_absent(here);
		j = judge_built(m);
		assert_non_null(
			strstr(finding_of(j.d, "nvswitch-fabric", "still registering")->remedy,
			       remedies[i]));
		judged_done(&j);
	}
}

/* A list of links that is cut off is not a list of links that are down. */
static void cut_list_of_links(void **state)
{
	struct machine *m = hgx();
	struct judged j;

	(void)state;
	for (size_t k = 0; k < m->gpu_n; k++)
		m->gpus[k].nvlink_n = 10;
	j = judge_built(m);
	for (size_t i = 0; i < j.d->finding_n; i++)
		assert_string_not_equal(j.d->findings[i].rule->id, "nvlink-up");
	judged_done(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fabric_of_nvlink_5),
		cmocka_unit_test(cut_list_of_links),
		cmocka_unit_test(every_twin),
		cmocka_unit_test(every_rule_has_a_twin),
		cmocka_unit_test(source_validation_is_no_redirect),
		cmocka_unit_test(root_port_above_a_switch),
		cmocka_unit_test(acs_names_port_value_and_cure),
		cmocka_unit_test(acs_that_guards_a_guest_stays),
		cmocka_unit_test(acs_of_a_nic),
		cmocka_unit_test(lockdown_is_told),
		cmocka_unit_test(idle_link_is_not_judged),
		cmocka_unit_test(narrow_card_in_a_wide_slot),
		cmocka_unit_test(link_in_a_guest_is_information),
		cmocka_unit_test(mailbox_cards_do_without_bar1),
		cmocka_unit_test(bar1_without_a_driver),
		cmocka_unit_test(one_bar1_cause_one_row),
		cmocka_unit_test(largest_bar1_of_unknown_memory_is_open_for_the_vbios_alone),
		cmocka_unit_test(alike_cards_are_one_finding),
		cmocka_unit_test(missing_bridge_is_no_fault),
		cmocka_unit_test(geforce_is_not_told_twice),
		cmocka_unit_test(reads_and_writes_are_told_apart),
		cmocka_unit_test(forced_is_fine_where_the_mechanism_is),
		cmocka_unit_test(unlisted_with_a_cause),
		cmocka_unit_test(force_type_before_575),
		cmocka_unit_test(force_type_beside_mailboxes),
		cmocka_unit_test(identity_is_fine),
		cmocka_unit_test(only_the_prohibited_mode_concerns_pairs),
		cmocka_unit_test(parameters_fit_the_boot_loader),
		cmocka_unit_test(iommu_with_faults),
		cmocka_unit_test(iommu_beside_nvlink),
		cmocka_unit_test(all_bound_elsewhere),
		cmocka_unit_test(driver_of_nixos),
		cmocka_unit_test(edited_modules_outlive_an_upgrade),
		cmocka_unit_test(healthy_machines_have_no_findings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
