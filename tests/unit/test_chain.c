/* SPDX-License-Identifier: Apache-2.0 */
/* topology/chain.c: every reason of the verdict chain, with the twin for which it does not hold. */
#include "topology/topology.h"

#include "base/alloc.h"
#include "build_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char from[] = "test";

#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

/* ---- what a test expects of one pair ---- */

static struct path judge(struct machine *m, size_t i, size_t j)
{
	struct topology *t = topology_new(m);
	struct path p = *topology_path(t, i, j);

	topology_free(t);
	return p;
}

static void expect_step(const struct path *p, enum chain_step s, enum chain_state state,
			enum chain_reason reason)
{
	if (p->chain[s].state != state || p->chain[s].reason != reason)
		print_error("%s: %s %s instead of %s %s\n", chain_step_word(s),
			    chain_state_word(p->chain[s].state),
			    chain_reason_word(p->chain[s].reason), chain_state_word(state),
			    chain_reason_word(reason));
	assert_int_equal(p->chain[s].reason, reason);
	assert_int_equal(p->chain[s].state, state);
}

static void expect(struct machine *m, size_t i, size_t j, enum chain_step s, enum chain_state state,
		   enum chain_reason reason, enum pair_verdict verdict)
{
	struct path p = judge(m, i, j);

	expect_step(&p, s, state, reason);
	if (p.verdict != verdict)
		print_error("%s instead of %s\n", pair_verdict_word(p.verdict),
			    pair_verdict_word(verdict));
	assert_int_equal(p.verdict, verdict);
	if (state == CHAIN_BAD && verdict == PAIR_BLOCKED)
		assert_int_equal(p.first_bad, s);
	if (verdict != PAIR_BLOCKED)
		assert_int_equal(p.first_bad, CHAIN_STEP_N);
}

static void says(struct machine *m, size_t i, size_t j, enum chain_step s, const char *sentence)
{
	struct path p = judge(m, i, j);
	char buf[256];

	assert_string_equal(chain_explain(&p, &p.chain[s], buf, sizeof(buf)), sentence);
}

static void expect_device(struct machine *m, enum chain_reason reason)
{
	struct path p = judge(m, 0, 1);

	assert_int_equal(p.chain[CHAIN_DEVICE].reason, reason);
}

/* ---- device ---- */

static void off_bus(struct gpu *g)
{
	g->pci->config_size = 0;
	g->pci->config_trouble = "reads all ones";
}

static void asleep(struct gpu *g)
{
	off_bus(g);
	g->pci->power_state = fact_str("D3cold", from);
}

static void set_aside(struct gpu *g)
{
	g->pci->driver = fact_str("vfio-pci", from);
}

static void stubbed(struct gpu *g)
{
	g->pci->driver = fact_str("pci-stub", from);
}

static void other_driver(struct gpu *g)
{
	g->pci->driver = fact_str("nouveau", from);
}

static void no_driver(struct gpu *g)
{
	g->pci->driver = fact_str_absent(from);
}

static void unknown_driver(struct gpu *g)
{
	g->pci->driver = fact_str_unknown("not recorded");
}

static void excluded(struct gpu *g)
{
	g->excluded = fact_str("Yes", from);
}

static void prohibited(struct gpu *g)
{
	g->compute_mode = fact_int(2, from);
}

static void exclusive(struct gpu *g)
{
	g->compute_mode = fact_int(3, from);
}

static void fabric_in_progress(struct gpu *g)
{
	g->fabric_state = fact_int(FABRIC_IN_PROGRESS, from);
}

static void fabric_refused(struct gpu *g)
{
	g->fabric_state = fact_int(FABRIC_COMPLETED, from);
	g->fabric_status = fact_int(999, from);
}

static void split(struct gpu *g)
{
	g->mig_enabled = fact_int(1, from);
}

static void lost(struct gpu *g)
{
	g->lost = fact_int(1, from);
}

/* Chips that have no MIG and no fabric are not doubted. */
static void untold(struct gpu *g)
{
	g->fabric_state = g->mig_enabled = fact_int_unknown("refused");
}

/* Said of the GPU of a direct pair, at whichever end it is. */
static const struct {
	void (*spoil)(struct gpu *g);
	enum chain_state state;
	enum chain_reason reason;
	enum pair_verdict verdict;
	bool nic_too;
} device_faults[] = {
	{off_bus, CHAIN_BAD, REASON_DEVICE_OFF_BUS, PAIR_BLOCKED, true},
	{asleep, CHAIN_UNKNOWN, REASON_DEVICE_ASLEEP, PAIR_UNDECIDED, true},
	{set_aside, CHAIN_BAD, REASON_DEVICE_SET_ASIDE, PAIR_BLOCKED, true},
	{stubbed, CHAIN_BAD, REASON_DEVICE_SET_ASIDE, PAIR_BLOCKED, true},
	{other_driver, CHAIN_BAD, REASON_DEVICE_OTHER_DRIVER, PAIR_BLOCKED, true},
	{no_driver, CHAIN_BAD, REASON_DEVICE_NO_DRIVER, PAIR_BLOCKED, true},
	{unknown_driver, CHAIN_UNKNOWN, REASON_DEVICE_UNKNOWN, PAIR_UNDECIDED, true},
	{excluded, CHAIN_BAD, REASON_DEVICE_EXCLUDED, PAIR_BLOCKED, true},
	{prohibited, CHAIN_BAD, REASON_DEVICE_PROHIBITED, PAIR_BLOCKED, true},
	{exclusive, CHAIN_OK, REASON_DEVICES_USABLE, PAIR_DIRECT, true},
	{fabric_in_progress, CHAIN_BAD, REASON_DEVICE_FABRIC_NOT_READY, PAIR_BLOCKED, true},
	{fabric_refused, CHAIN_BAD, REASON_DEVICE_FABRIC_NOT_READY, PAIR_BLOCKED, true},
	{lost, CHAIN_BAD, REASON_DEVICE_OFF_BUS, PAIR_BLOCKED, true},
	{untold, CHAIN_OK, REASON_DEVICES_USABLE, PAIR_DIRECT, true},
	{split, CHAIN_BAD, REASON_DEVICE_MIG, PAIR_BLOCKED, false},
};

#define DEVICE_FAULTS (sizeof(device_faults) / sizeof(device_faults[0]))

static void device_of_gpu_pair(void **state)
{
	(void)state;
	for (size_t k = 0; k < DEVICE_FAULTS; k++) {
		struct machine *m = build_switch();

		device_faults[k].spoil(&m->gpus[1]);
		for (size_t i = 0; i < 2; i++)
			expect(m, i, 1 - i, CHAIN_DEVICE, device_faults[k].state,
			       device_faults[k].reason, device_faults[k].verdict);
		build_free(m);
	}
}

/* What NVML refuses to tell of a GPU decides nothing well. */
static void device_untold(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA H100 PCIe", 90);
	m->gpus[1].nvml_index = fact_int(1, from);
	m->gpus[1].mig_enabled = fact_int_unknown("nvmlDeviceGetMigMode: Unknown Error");
	expect(m, 0, 1, CHAIN_DEVICE, CHAIN_UNKNOWN, REASON_DEVICE_MIG_UNKNOWN, PAIR_UNDECIDED);
	m->gpus[1].mig_enabled = fact_int_absent(from);
	m->gpus[1].fabric_state = fact_int_unknown("nobody asked");
	assert_int_equal(judge(m, 0, 1).chain[CHAIN_DEVICE].state, CHAIN_OK);
	m->driver.switches = fact_int(4, from);
	assert_int_equal(judge(m, 0, 1).chain[CHAIN_DEVICE].reason, REASON_DEVICE_FABRIC_UNKNOWN);
	m->gpus[1].fabric_state = fact_int_absent(from);
	assert_int_equal(judge(m, 0, 1).chain[CHAIN_DEVICE].state, CHAIN_OK);
	build_free(m);
}

/* NVML answers for GPUs that are driven, so that the driver's link may stay unread. */
static void device_that_nvml_knows(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		unknown_driver(&m->gpus[i]);
		m->gpus[i].nvml_index = fact_int((int64_t)i, from);
	}
	expect(m, 0, 1, CHAIN_DEVICE, CHAIN_OK, REASON_DEVICES_USABLE, PAIR_DIRECT);
	build_free(m);
}

/* No module at all is the driver's link, for all GPUs alike. */
static void device_without_module(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	no_driver(&m->gpus[0]);
	no_driver(&m->gpus[1]);
	m->driver.loaded = fact_int(0, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_ABSENT, PAIR_BLOCKED);
	build_free(m);
}

/* ---- path ---- */

static void healthy(void **state)
{
	struct machine *m = build_switch();
	struct path p = judge(m, 0, 1);

	(void)state;
	expect_step(&p, CHAIN_DEVICE, CHAIN_OK, REASON_DEVICES_USABLE);
	expect_step(&p, CHAIN_PATH, CHAIN_OK, REASON_COMMON_BRIDGE);
	expect_step(&p, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_CLEAR);
	expect_step(&p, CHAIN_HOST_BRIDGE, CHAIN_NA, REASON_NONE);
	expect_step(&p, CHAIN_IOMMU, CHAIN_OK, REASON_IOMMU_OFF);
	expect_step(&p, CHAIN_EXPOSURE, CHAIN_OK, REASON_EXPOSED_BAR1);
	expect_step(&p, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK);
	expect_step(&p, CHAIN_NCCL, CHAIN_OK, REASON_NCCL_USES);
	expect_step(&p, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE);
	assert_int_equal(p.verdict, PAIR_DIRECT);
	assert_int_equal(p.first_bad, CHAIN_STEP_N);
	build_free(m);
}

static struct machine *nvlink_machine(void)
{
	struct machine *m = build_two_root_ports();

	for (size_t i = 0; i < 2; i++) {
		build_model(&m->gpus[i], "NVIDIA H200", 90);
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_SWITCH, "");
	}
	build_status(m, P2P_PCI, P2P_NOT_SUPPORTED);
	return m;
}

static void nvlink_skips_pcie(void **state)
{
	struct machine *m = nvlink_machine();
	struct path p;

	(void)state;
	build_iommu(m, "DMA");
	m->pci[0].acs_ctl = fact_int(0x1d, from);
	p = judge(m, 0, 1);
	expect_step(&p, CHAIN_PATH, CHAIN_OK, REASON_NVLINK_UP);
	expect_step(&p, CHAIN_SWITCH, CHAIN_NA, REASON_NONE);
	expect_step(&p, CHAIN_HOST_BRIDGE, CHAIN_NA, REASON_NONE);
	expect_step(&p, CHAIN_IOMMU, CHAIN_NA, REASON_NONE);
	expect_step(&p, CHAIN_EXPOSURE, CHAIN_OK, REASON_EXPOSED_NVLINK);
	assert_int_equal(p.verdict, PAIR_DIRECT);
	build_free(m);
}

static void nvlink_down(void **state)
{
	struct machine *m = nvlink_machine();

	(void)state;
	for (size_t i = 0; i < 18; i++)
		m->gpus[1].nvlinks[i].active = fact_int(0, from);
	expect(m, 0, 1, CHAIN_PATH, CHAIN_BAD, REASON_NVLINK_DOWN, PAIR_BLOCKED);
	build_status(m, P2P_PCI, P2P_OK);
	expect(m, 0, 1, CHAIN_PATH, CHAIN_POSSIBLE, REASON_NVLINK_DOWN, PAIR_SUSPECT);
	build_free(m);
}

/* Links without a bridge on cards that no NVSwitch joins are in order. */
static void nvlink_bridge_missing(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		build_model(&m->gpus[i], "NVIDIA RTX A6000", 86);
		build_nvlinks(&m->gpus[i], 4, NVLINK_REMOTE_UNKNOWN, "");
		for (size_t k = 0; k < 4; k++)
			m->gpus[i].nvlinks[k].active = fact_int(0, from);
	}
	expect(m, 0, 1, CHAIN_PATH, CHAIN_OK, REASON_THROUGH_HOST, PAIR_DIRECT);
	build_free(m);
}

static void lspci_knows_no_nvlink(struct machine *m, int device)
{
	for (size_t k = 0; k < m->gpu_n * m->gpu_n; k++)
		m->pairs[k].p2p[P2P_NVLINK] = fact_int_unknown("not asked");
	for (size_t i = 0; i < 2; i++) {
		struct gpu *g = &m->gpus[i];

		g->pci->device = fact_int(device, from);
		g->model = fact_str_unknown("no driver");
		g->compute_capability = fact_int_unknown("no driver");
	}
}

/* Whether NVLink joins two H100 is not known without NVML: what PCIe lacks does not block them. */
static void nvlink_unknown(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->pci[2].acs_ctl = m->pci[3].acs_ctl = fact_int(0x1d, from);
	lspci_knows_no_nvlink(m, 0x2330);
	expect(m, 0, 1, CHAIN_PATH, CHAIN_UNKNOWN, REASON_NVLINK_UNKNOWN, PAIR_UNDECIDED);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_POSSIBLE, REASON_ACS_REQUEST_REDIRECT, PAIR_UNDECIDED);
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_UNKNOWN, REASON_NVLINK_UNKNOWN, PAIR_UNDECIDED);
	assert_true(fact_unknown(judge(m, 0, 1).nvlinks));
	/* The driver's answers of any kind settle it. */
	m->pairs[1].p2p[P2P_NVLINK] = fact_int(P2P_NOT_SUPPORTED, from);
	expect(m, 0, 1, CHAIN_PATH, CHAIN_OK, REASON_COMMON_BRIDGE, PAIR_BLOCKED);
	m->pairs[1].p2p[P2P_NVLINK] = fact_int_unknown("not asked");
	m->pairs[1].rm.connection = fact_int(RM_CONNECTION_MAILBOX, from);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT, PAIR_BLOCKED);
	m->pairs[1].rm.connection = fact_int_unknown("not asked");
	m->gpus[0].nvlink_active = fact_int_absent("NVML: no links");
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT, PAIR_BLOCKED);
	build_free(m);
}

/* Chips without NVLink need nobody to ask; of GA102 some cards have it. */
static void nvlink_by_chip(void **state)
{
	static const struct {
		int device;
		bool lacks;
	} chips[] = {{0x1b06, true},  {0x1e04, false}, {0x1f02, true},  {0x20b5, false},
		     {0x2204, false}, {0x2484, true},  {0x2684, true},  {0x26b1, true},
		     {0x2901, false}, {0x2b85, true},  {0x3182, false}, {0x9999, false}};
	struct machine *m = build_switch();

	(void)state;
	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		struct fact_int links;

		lspci_knows_no_nvlink(m, chips[i].device);
		links = judge(m, 0, 1).nvlinks;
		assert_int_equal(links.state, chips[i].lacks ? FACT_KNOWN : FACT_UNKNOWN);
		assert_int_equal(links.value, 0);
	}
	build_free(m);
}

static void path_unknown(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].root = NULL;
	expect(m, 0, 1, CHAIN_PATH, CHAIN_UNKNOWN, REASON_PATH_UNKNOWN, PAIR_UNDECIDED);
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_UNKNOWN, REASON_PATH_UNKNOWN, PAIR_UNDECIDED);
	build_free(m);
}

/* ---- ACS ---- */

enum { NEAR = 2, FAR = 3 }; /* the downstream ports of build_switch, seen from GPU0 */

/* One value at either port of a switch: what requests from GPU0 and from GPU1 meet. */
static void acs(int64_t near, int64_t far, enum chain_state state, enum chain_reason reason)
{
	struct machine *m = build_switch();

	m->pci[NEAR].acs_ctl = fact_int(near, from);
	m->pci[FAR].acs_ctl = fact_int(far, from);
	expect(m, 0, 1, CHAIN_SWITCH, state, reason,
	       state == CHAIN_BAD ? PAIR_BLOCKED : PAIR_DIRECT);
	build_free(m);
}

static void acs_bits(void **state)
{
	(void)state;
	acs(PCI_ACS_RR, 0, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT);
	acs(PCI_ACS_EC, 0, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT);
	acs(0, PCI_ACS_CR, CHAIN_BAD, REASON_ACS_COMPLETION_REDIRECT);
	acs(0x1d, 0x1d, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT);
	acs(PCI_ACS_CR, 0, CHAIN_OK, REASON_ACS_CLEAR);
	acs(0, PCI_ACS_RR | PCI_ACS_EC, CHAIN_OK, REASON_ACS_CLEAR);
	acs(PCI_ACS_SV | PCI_ACS_UF, PCI_ACS_SV | PCI_ACS_UF, CHAIN_OK, REASON_ACS_CLEAR);
	acs(PCI_ACS_TB | PCI_ACS_DT, PCI_ACS_TB | PCI_ACS_DT, CHAIN_OK, REASON_ACS_CLEAR);
}

static void acs_names_the_port(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->pci[NEAR].acs_ctl = m->pci[FAR].acs_ctl = fact_int(0x1d, from);
	says(m, 0, 1, CHAIN_SWITCH,
	     "ACSCtl of 0000:22:00.0 is 001d: request redirect (RR) sends peer requests "
	     "up to the root complex");
	says(m, 1, 0, CHAIN_SWITCH,
	     "ACSCtl of 0000:22:01.0 is 001d: request redirect (RR) sends peer requests "
	     "up to the root complex");
	m->pci[NEAR].acs_ctl = fact_int(0, from);
	says(m, 0, 1, CHAIN_SWITCH,
	     "ACSCtl of 0000:22:01.0 is 001d: completion redirect (CR) sends completions "
	     "of peer reads up to the root complex");
	build_free(m);
}

/* Ports that are not where the ways part decide nothing. */
static void acs_elsewhere(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->pci[0].acs_ctl = m->pci[1].acs_ctl = fact_int(0x1d, from);
	m->gpus[0].pci->acs_ctl = m->gpus[1].pci->acs_ctl = fact_int(0x1d, from);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_CLEAR, PAIR_DIRECT);
	build_free(m);
}

static void acs_absent_or_unreadable(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->pci[FAR].acs_ctl = fact_int_absent("no capability");
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_CLEAR, PAIR_DIRECT);
	m->pci[FAR].acs_ctl = fact_int_unknown("needs root");
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_UNKNOWN, REASON_ACS_UNREADABLE, PAIR_UNDECIDED);
	says(m, 0, 1, CHAIN_SWITCH, "ACSCtl of 0000:22:01.0 is unknown (needs root)");
	m->pci[NEAR].acs_ctl = fact_int(PCI_ACS_RR, from);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT, PAIR_BLOCKED);
	build_free(m);
}

/* Two GPUs as functions of one device turn inside it, and its own ACS counts. */
static void acs_of_functions(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *port = build_port(m, "0000:00:01.0", NULL, PCI_PORT_ROOT);
	struct gpu *a = build_gpu(m, "0000:01:00.0", port);

	(void)state;
	build_gpu(m, "0000:01:00.1", port);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_CLEAR, PAIR_DIRECT);
	a->pci->acs_ctl = fact_int(PCI_ACS_RR, from);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT, PAIR_BLOCKED);
	build_free(m);
}

static void acs_on_root_ports(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_CLEAR, PAIR_DIRECT);
	m->pci[1].acs_ctl = fact_int(PCI_ACS_SV | PCI_ACS_UF, from);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_CLEAR, PAIR_DIRECT);
	m->pci[1].acs_ctl = fact_int(0x1d, from);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_ROOT_PORT, PAIR_DIRECT);
	says(m, 0, 1, CHAIN_SWITCH,
	     "ACSCtl of root port 0000:00:02.0 is 001d: request redirect (RR), completion "
	     "redirect (CR), which has no cost while no IOMMU translates");
	m->pci[1].acs_ctl = fact_int_unknown("needs root");
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_UNREADABLE, PAIR_DIRECT);
	build_free(m);
}

/*
 * Between root ports it is the IOMMU that makes a redirect expensive; on some chipsets they hang.
 */
static void cost_of_root_ports(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->pci[1].acs_ctl = fact_int(0x1d, from);
	build_iommu(m, "identity");
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_ROOT_PORT, PAIR_DIRECT);
	build_iommu(m, "DMA-FQ");
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_POSSIBLE, REASON_ACS_ROOT_PORT, PAIR_SUSPECT);
	says(m, 0, 1, CHAIN_SWITCH,
	     "ACSCtl of root port 0000:00:02.0 is 001d: request redirect (RR), completion "
	     "redirect (CR), which costs 3 to 9 GB/s while the IOMMU translates");
	m->pci[1].acs_ctl = fact_int_unknown("needs root");
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_UNKNOWN, REASON_ACS_UNREADABLE, PAIR_SUSPECT);
	m->pci[1].acs_ctl = fact_int(0x1d, from);
	build_iommu(m, "auto");
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_POSSIBLE, REASON_ACS_ROOT_PORT, PAIR_SUSPECT);
	build_iommu(m, "identity");
	m->pci[1].vendor = fact_int(0x1022, from);
	m->pci[1].device = fact_int(0x1483, from);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_POSSIBLE, REASON_ACS_ROOT_PORT, PAIR_SUSPECT);
	build_free(m);
}

/* ---- host bridge ---- */

static void cpu(enum cpu_vendor vendor, int family, int model, enum chain_state state,
		enum chain_reason reason, enum pair_verdict verdict)
{
	struct machine *m = build_two_root_ports();

	m->cpu.vendor = fact_int(vendor, from);
	m->cpu.family = fact_int(family, from);
	m->cpu.model = fact_int(model, from);
	expect(m, 0, 1, CHAIN_HOST_BRIDGE, state, reason, verdict);
	build_free(m);
}

static void cpu_list(void **state)
{
	(void)state;
	cpu(CPU_AMD, 0x1a, 2, CHAIN_OK, REASON_HOST_BRIDGE_KNOWN, PAIR_DIRECT);
	cpu(CPU_AMD, 0x15, 2, CHAIN_POSSIBLE, REASON_HOST_BRIDGE_WRITES_ONLY, PAIR_SUSPECT);
	cpu(CPU_INTEL, 6, 143, CHAIN_OK, REASON_HOST_BRIDGE_KNOWN, PAIR_DIRECT);
	cpu(CPU_INTEL, 6, 85, CHAIN_POSSIBLE, REASON_HOST_BRIDGE_WRITES_ONLY, PAIR_SUSPECT);
	cpu(CPU_ARM, 8, 0, CHAIN_POSSIBLE, REASON_HOST_BRIDGE_WRITES_ONLY, PAIR_SUSPECT);
}

static void cpu_unknown(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->cpu.vendor = fact_int_unknown("not recorded");
	expect(m, 0, 1, CHAIN_HOST_BRIDGE, CHAIN_UNKNOWN, REASON_HOST_BRIDGE_UNKNOWN,
	       PAIR_UNDECIDED);
	/* With mailboxes the driver's own answer shows that it knows the chipset. */
	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA RTX A6000", 86);
	expect(m, 0, 1, CHAIN_HOST_BRIDGE, CHAIN_OK, REASON_HOST_BRIDGE_KNOWN, PAIR_DIRECT);
	build_free(m);
}

static void sockets(void **state)
{
	struct machine *m = build_root_ports(4, 4, 2);

	(void)state;
	/* Nodes 0 and 1 share socket 0. */
	expect(m, 0, 1, CHAIN_HOST_BRIDGE, CHAIN_OK, REASON_HOST_BRIDGE_KNOWN, PAIR_DIRECT);
	expect(m, 0, 2, CHAIN_HOST_BRIDGE, CHAIN_POSSIBLE, REASON_CROSS_SOCKET, PAIR_SUSPECT);
	m->cpu.sockets = fact_int_unknown("not recorded");
	expect(m, 0, 1, CHAIN_HOST_BRIDGE, CHAIN_POSSIBLE, REASON_CROSS_SOCKET, PAIR_SUSPECT);
	build_free(m);
}

/* ---- IOMMU ---- */

static void iommu_types(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_iommu(m, "identity");
	expect(m, 0, 1, CHAIN_IOMMU, CHAIN_OK, REASON_IOMMU_IDENTITY, PAIR_DIRECT);
	build_iommu(m, "DMA");
	expect(m, 0, 1, CHAIN_IOMMU, CHAIN_POSSIBLE, REASON_IOMMU_TRANSLATING, PAIR_SUSPECT);
	build_iommu(m, "DMA-FQ");
	expect(m, 0, 1, CHAIN_IOMMU, CHAIN_POSSIBLE, REASON_IOMMU_TRANSLATING, PAIR_SUSPECT);
	build_iommu(m, "auto");
	expect(m, 0, 1, CHAIN_IOMMU, CHAIN_UNKNOWN, REASON_IOMMU_UNKNOWN, PAIR_UNDECIDED);
	build_free(m);
}

/* Only the initiator's addresses are translated. */
static void iommu_of_initiator(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_iommu(m, "identity");
	m->gpus[0].pci->iommu_type = fact_str("DMA", from);
	expect(m, 0, 1, CHAIN_IOMMU, CHAIN_POSSIBLE, REASON_IOMMU_TRANSLATING, PAIR_SUSPECT);
	expect(m, 1, 0, CHAIN_IOMMU, CHAIN_OK, REASON_IOMMU_IDENTITY, PAIR_DIRECT);
	build_free(m);
}

static void iommu_evidence(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_iommu(m, "DMA");
	build_log(m, LOG_IOMMU_FAULT, m->gpus[0].pci);
	build_log(m, LOG_AER, m->gpus[1].pci);
	expect(m, 0, 1, CHAIN_IOMMU, CHAIN_BAD, REASON_IOMMU_TRANSLATING, PAIR_BLOCKED);
	expect(m, 1, 0, CHAIN_IOMMU, CHAIN_POSSIBLE, REASON_IOMMU_TRANSLATING, PAIR_SUSPECT);
	says(m, 0, 1, CHAIN_IOMMU,
	     "the IOMMU translates the addresses that 0000:23:00.0 uses, and the kernel "
	     "log shows its faults");
	build_observed(m, OBSERVED_PEER_COPY, 1, 0, false);
	expect(m, 1, 0, CHAIN_IOMMU, CHAIN_BAD, REASON_IOMMU_TRANSLATING, PAIR_BLOCKED);
	build_free(m);
}

/* A copy that the driver refused says nothing of the IOMMU. */
static void iommu_not_blamed(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_iommu(m, "DMA");
	build_observed(m, OBSERVED_PEER_COPY, -1, -1, false);
	build_status(m, P2P_READ, P2P_GPU_NOT_SUPPORTED);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_GEFORCE, PAIR_BLOCKED);
	build_free(m);
}

/* ---- exposure ---- */

static void bar1(const char *model, int capability, int64_t bytes, enum chain_state state,
		 enum chain_reason reason, enum pair_verdict verdict)
{
	struct machine *m = build_switch();

	for (size_t i = 0; i < 2; i++) {
		build_model(&m->gpus[i], model, capability);
		m->gpus[i].nvml_index = fact_int((int64_t)i, from); /* it is driven */
		m->gpus[i].mig_enabled = fact_int(0, from);
	}
	m->gpus[1].bar1_bytes = fact_int(bytes, from);
	expect(m, 0, 1, CHAIN_EXPOSURE, state, reason, verdict);
	build_free(m);
}

static void bar1_and_mailbox(void **state)
{
	(void)state;
	bar1("NVIDIA GeForce RTX 3090", 86, 256 * MIB, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	bar1("NVIDIA GeForce RTX 3090", 86, 32 * GIB, CHAIN_OK, REASON_EXPOSED_BAR1, PAIR_DIRECT);
	bar1("NVIDIA GeForce RTX 5090", 120, 16 * GIB, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	bar1("NVIDIA RTX A6000", 86, 256 * MIB, CHAIN_OK, REASON_EXPOSED_MAILBOX, PAIR_DIRECT);
	bar1("NVIDIA A100 80GB PCIe", 80, 64 * GIB, CHAIN_OK, REASON_EXPOSED_MAILBOX, PAIR_DIRECT);
	bar1("NVIDIA GeForce GTX 1080 Ti", 61, 256 * MIB, CHAIN_OK, REASON_EXPOSED_MAILBOX,
	     PAIR_DIRECT);
	bar1("NVIDIA GeForce RTX 2080 Ti", 75, 256 * MIB, CHAIN_UNKNOWN, REASON_EXPOSURE_UNKNOWN,
	     PAIR_UNDECIDED);
}

/*
 * CUDA's library pairs one generation only; NVLink, and a copy that was seen to work, prove the
 * contrary.
 */
static void generations(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_model(&m->gpus[1], "NVIDIA GeForce RTX 3090", 86);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_GENERATION, PAIR_BLOCKED);
	expect(m, 1, 0, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_GENERATION, PAIR_BLOCKED);
	m->gpus[1].bar1_bytes = fact_int(256 * MIB, from);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_NA, REASON_NONE, PAIR_BLOCKED);
	build_model(&m->gpus[0], "NVIDIA GeForce RTX 3090", 86);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	build_free(m);
}

/* Modules of the wrong kind, unless NVML proves that they drive the card. */
static void undriven(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		build_model(&m->gpus[i], "Tesla V100-PCIE-32GB", 70);
		m->gpus[i].nvml_index = fact_int_unknown("no NVML");
	}
	expect(m, 0, 1, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_UNDRIVEN, PAIR_BLOCKED);
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, from);
	expect_device(m, REASON_DEVICES_USABLE);
	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA RTX PRO 6000 Blackwell", 120);
	expect_device(m, REASON_DEVICE_UNDRIVEN);
	for (size_t i = 0; i < 2; i++) {
		m->gpus[i].nvml_index = fact_int((int64_t)i, from);
		m->gpus[i].mig_enabled = fact_int(0, from);
	}
	expect_device(m, REASON_DEVICES_USABLE);
	build_free(m);
}

static void bar1_unknown(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->gpus[1].vram_bytes = fact_int_unknown("no NVML");
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_UNKNOWN, REASON_EXPOSURE_UNKNOWN, PAIR_UNDECIDED);
	m->gpus[1].bar1_bytes = fact_int(256 * MIB, from);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	says(m, 0, 1, CHAIN_EXPOSURE,
	     "BAR1 of 0000:24:00.0 is 256 MiB, and peers access its memory only through "
	     "BAR1");
	m->gpus[1].vram_bytes = fact_int(24564 * MIB, from);
	says(m, 0, 1, CHAIN_EXPOSURE,
	     "BAR1 of 0000:24:00.0 is 256 MiB for 24564 MiB of memory, and peers access "
	     "its memory only through BAR1");
	build_free(m);
}

/* A registry key makes a card with mailboxes use BAR1; the older key changed its numbers at 575. */
static void bar1_by_registry(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		build_model(&m->gpus[i], "NVIDIA RTX A6000", 86);
		m->gpus[i].bar1_bytes = fact_int(256 * MIB, from);
	}
	m->driver.registry_dwords = fact_str("RMForceP2PType=2", from);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_OK, REASON_EXPOSED_MAILBOX, PAIR_DIRECT);
	m->driver.module_version = fact_str("550.90.07", from);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	m->driver.registry_dwords = fact_str("PeerMappingOverride=1; RMPcieP2PType=1", from);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_OK, REASON_EXPOSED_MAILBOX, PAIR_DIRECT);
	m->driver.module_version = fact_str("575.64.05", from);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	m->driver.registry_dwords_per_device = fact_str("pci=24:00;RMPcieP2PType=0", from);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_OK, REASON_EXPOSED_MAILBOX, PAIR_DIRECT);
	expect(m, 1, 0, CHAIN_EXPOSURE, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	build_free(m);
}

/* ---- driver ---- */

static void driver_status(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_status(m, P2P_ATOMICS, P2P_NOT_SUPPORTED);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	m->pairs[1].p2p[P2P_WRITE] = fact_int(P2P_TOPOLOGY_NOT_SUPPORTED, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_STATUS, PAIR_BLOCKED);
	expect(m, 1, 0, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	says(m, 0, 1, CHAIN_DRIVER,
	     "the driver reports TNS for peer writes: the driver does not support the "
	     "path between the two");
	m->pairs[1].p2p[P2P_WRITE] = fact_int(P2P_STATUS_UNKNOWN, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_UNKNOWN, REASON_DRIVER_UNKNOWN, PAIR_UNDECIDED);
	m->pairs[1].p2p[P2P_READ] = fact_int(P2P_CHIPSET_NOT_SUPPORTED, from);
	m->pairs[1].p2p[P2P_WRITE] = fact_int_unknown("no NVML");
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_GEFORCE, PAIR_BLOCKED);
	m->driver.loaded = fact_int(0, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_ABSENT, PAIR_BLOCKED);
	build_free(m);
}

static void driver_forced(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->driver.registry_dwords = fact_str("ForceP2P=0x11", from);
	/* An open module may have been edited to have the mechanism. */
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_POSSIBLE, REASON_DRIVER_FORCED, PAIR_SUSPECT);
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_FORCED, PAIR_BLOCKED);
	m->driver.registry_dwords = fact_str("ForceP2P=0x22", from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	/* One card's own key is enough, either way. */
	m->driver.registry_dwords_per_device = fact_str("pci=24:00;ForceP2P=0x11", from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_FORCED, PAIR_BLOCKED);
	expect(m, 1, 0, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_FORCED, PAIR_BLOCKED);
	build_free(m);
}

static void driver_forced_with_mechanism(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->driver.registry_dwords = fact_str("ForceP2P=0x11;RMPcieP2PType=1", from);
	for (size_t i = 0; i < 2; i++)
		build_model(&m->gpus[i], "NVIDIA GeForce RTX 5090", 120);
	m->driver.module_version = fact_str("595.45.04", from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	m->driver.module_version = fact_str("580.105.08", from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_POSSIBLE, REASON_DRIVER_FORCED, PAIR_SUSPECT);
	m->driver.module_version = fact_str("570.86.16", from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_FORCED, PAIR_BLOCKED);
	build_free(m);
}

/*
 * CUDA's library works with a module of its own release; only the compatibility package with an
 * older.
 */
static void driver_library(void **state)
{
	struct machine *m = build_switch();
	struct observed *o = ARENA_PUSH(m->arena, m->observed, m->observed_n);

	(void)state;
	m->driver.library_version = m->driver.nvml_library = m->driver.module_version;
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	m->driver.library_version = fact_str("590.48.01", from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_POSSIBLE, REASON_DRIVER_LIBRARY, PAIR_SUSPECT);
	m->driver.nvml_library = m->driver.library_version;
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_LIBRARY, PAIR_BLOCKED);
	m->driver.nvml_library = m->driver.module_version;
	m->driver.library_version = fact_str("575.57.08", from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_LIBRARY, PAIR_BLOCKED);
	/* A copy of the time before. */
	*o = (struct observed){.kind = OBSERVED_PEER_COPY,
			       .initiator = 0,
			       .target = 1,
			       .ok = true,
			       .from = "test"};
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_LIBRARY, PAIR_BLOCKED);
	m->driver.loaded = fact_int(0, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_ABSENT, PAIR_BLOCKED);
	build_free(m);
}

/* Keys of one card: BAR1 or a mailbox, by an order of the cards that nobody knows. */
static void driver_keys_of_one_card(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_model(&m->gpus[0], "NVIDIA GeForce RTX 4090", 89);
	build_model(&m->gpus[1], "NVIDIA RTX 6000 Ada Generation", 89);
	m->driver.bar1_p2p.loaded = fact_int(1, from);
	m->driver.registry_dwords_per_device =
		fact_str(arena_printf(m->arena, "pci=%s;ForceP2P=0x11;RMPcieP2PType=1",
				      m->gpus[0].pci->name),
			 from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_POSSIBLE, REASON_DRIVER_KEYS, PAIR_SUSPECT);
	expect(m, 1, 0, CHAIN_DRIVER, CHAIN_POSSIBLE, REASON_DRIVER_KEYS, PAIR_SUSPECT);
	m->pairs[1].rm.connection = fact_int(RM_CONNECTION_BAR1, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	m->pairs[1].rm.connection = fact_int(RM_CONNECTION_MAILBOX, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_MAILBOX, PAIR_BLOCKED);
	m->pairs[1].rm.connection = fact_int_unknown("test");
	m->driver.registry_dwords = fact_str("ForceP2P=0x11;RMPcieP2PType=1", from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	build_free(m);
}

/* What the module's functions say outweighs what could be. */
static void driver_forced_and_looked_into(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->driver.registry_dwords = fact_str("ForceP2P=0x11", from);
	m->driver.bar1_p2p.loaded = fact_int(1, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	m->driver.bar1_p2p.loaded = fact_int(0, from);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_FORCED, PAIR_BLOCKED);
	build_free(m);
}

/* ---- GPU and NIC ---- */

enum { GPU = 0, NIC = 1 }; /* endpoints of nic_machine */

static struct machine *nic_machine(void)
{
	struct machine *m = build_machine();
	struct pci_function *root = build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *up = build_port(m, "0000:21:00.0", root, PCI_PORT_UPSTREAM);
	struct pci_function *a = build_port(m, "0000:22:00.0", up, PCI_PORT_DOWNSTREAM);
	struct pci_function *b = build_port(m, "0000:22:01.0", up, PCI_PORT_DOWNSTREAM);

	build_model(build_gpu(m, "0000:23:00.0", a), "NVIDIA H100 PCIe", 90);
	build_nic(m, "0000:24:00.0", b, "mlx5_0");
	return m;
}

static void rdma_ways(void **state)
{
	struct machine *m = nic_machine();

	(void)state;
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT);
	expect(m, GPU, NIC, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT);
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_RDMA_NO_PEERMEM, PAIR_BLOCKED);
	m->peermem.loaded = fact_int(1, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_POSSIBLE, REASON_RDMA_NO_PEERMEM, PAIR_SUSPECT);
	m->peermem.registered = fact_int(1, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT);
	build_free(m);
}

/* In-kernel drivers differ in whether and since when they register dma-buf memory. */
static void rdma_nic_drivers(void **state)
{
	static const struct {
		const char *driver, *kernel;
		enum chain_state state;
		enum chain_reason reason;
		enum pair_verdict verdict;
	} rows[] = {
		{"mlx5_core", "6.1.0-41-amd64", CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT},
		{"mlx5_core", "5.12.0", CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT},
		{"ice", "6.1.0-41-amd64", CHAIN_BAD, REASON_RDMA_NIC_DRIVER, PAIR_BLOCKED},
		{"ice", "6.3.0", CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT},
		{"bnxt_en", "6.5.0", CHAIN_BAD, REASON_RDMA_NIC_DRIVER, PAIR_BLOCKED},
		{"bnxt_en", "6.12.9", CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT},
		{"efa", "5.15.0-1031-aws", CHAIN_BAD, REASON_RDMA_NIC_DRIVER, PAIR_BLOCKED},
		{"mana", "6.15.0", CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT},
		{"mlx4_core", "6.12.9", CHAIN_BAD, REASON_RDMA_NIC_DRIVER, PAIR_BLOCKED},
		/* A newer kernel, carried back, or not in the list: nobody knows. */
		{"mlx4_core", "7.2.0", CHAIN_UNKNOWN, REASON_RDMA_NIC_DRIVER_UNKNOWN,
		 PAIR_UNDECIDED},
		{"bnxt_en", "5.14.0-503.el9.x86_64", CHAIN_UNKNOWN, REASON_RDMA_NIC_DRIVER_UNKNOWN,
		 PAIR_UNDECIDED},
		{"xsc_eth", "6.12.9", CHAIN_UNKNOWN, REASON_RDMA_NIC_DRIVER_UNKNOWN,
		 PAIR_UNDECIDED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct machine *m = nic_machine();

		m->rdma[0].pci->driver = fact_str(rows[i].driver, from);
		m->kernel.release = fact_str(rows[i].kernel, from);
		expect(m, NIC, GPU, CHAIN_DRIVER, rows[i].state, rows[i].reason, rows[i].verdict);
		build_free(m);
	}
}

/* That nvidia-peermem is registered helps NICs whose driver asks for peer memory. */
static void rdma_nic_drivers_and_peermem(void **state)
{
	static const struct {
		const char *driver, *ofed;
		bool ready;
	} rows[] = {
		{"mlx5_core", NULL, true},     {"mlx5_core", "24.10-1.1.4", true},
		{"mlx4_core", NULL, false},    {"mlx4_core", "4.9-7.1.0", true},
		{"efa", "24.10-1.1.4", false}, {"virtio-pci", NULL, false},
		{"nvme", NULL, false},         {"foo;bar", "24.10-1.1.4", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct machine *m = nic_machine();
		bool ready = rows[i].ready;

		m->driver.flavor = fact_int(DRIVER_PROPRIETARY, from); /* no dma-buf */
		m->rdma[0].pci->driver = fact_str(rows[i].driver, from);
		m->peermem.ofed =
			rows[i].ofed ? fact_str(rows[i].ofed, from) : fact_str_absent(from);
		m->peermem.loaded = m->peermem.registered = fact_int(1, from);
		expect(m, NIC, GPU, CHAIN_DRIVER, ready ? CHAIN_OK : CHAIN_UNKNOWN,
		       ready ? REASON_RDMA_READY : REASON_RDMA_PEERMEM_UNKNOWN,
		       ready ? PAIR_DIRECT : PAIR_UNDECIDED);
		m->peermem.registered = fact_int(0, from);
		expect(m, NIC, GPU, CHAIN_DRIVER, ready ? CHAIN_POSSIBLE : CHAIN_UNKNOWN,
		       ready ? REASON_RDMA_NO_PEERMEM : REASON_RDMA_PEERMEM_UNKNOWN,
		       ready ? PAIR_SUSPECT : PAIR_UNDECIDED);
		build_free(m);
	}
}

/* An OFED's own irdma may be newer than the kernel. */
static void rdma_nic_driver_of_ofed(void **state)
{
	struct machine *m = nic_machine();

	(void)state;
	m->rdma[0].pci->driver = fact_str("ice", from);
	m->peermem.ofed = fact_str("24.10-1.1.4", from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_UNKNOWN, REASON_RDMA_NIC_DRIVER_UNKNOWN,
	       PAIR_UNDECIDED);
	says(m, NIC, GPU, CHAIN_DRIVER,
	     "unknown whether the driver of 0000:24:00.0 (ice) can register dma-buf "
	     "memory; nvidia-peermem is not registered");
	build_free(m);
}

/* rdma_rxe and siw name the PCI device that they stand on, whose driver has no part in it. */
static void rdma_by_software(void **state)
{
	static const char *const names[] = {"irdma", "mlx5_ib", "siw"};

	(void)state;
	for (int registered = 0; registered < 2; registered++) {
		struct machine *m = nic_machine();
		struct module modules[3] = {{0}};

		for (size_t i = 0; i < 3; i++) {
			modules[i].name = names[i];
			modules[i].loaded = fact_int(0, from);
		}
		m->modules = modules;
		m->module_n = 3;
		m->kernel.release = fact_str("6.12.9", from);
		m->rdma[0].pci->driver = fact_str(registered ? "mlx5_core" : "ice", from);
		m->peermem.loaded = m->peermem.registered = fact_int(registered, from);
		expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT);
		modules[2].loaded = fact_int(1, from);
		expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_UNKNOWN,
		       registered ? REASON_RDMA_PEERMEM_UNKNOWN : REASON_RDMA_NIC_DRIVER_UNKNOWN,
		       PAIR_UNDECIDED);
		modules[registered].loaded = fact_int(1, from);
		expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT);
		build_free(m);
	}
}

static struct machine *altra_machine(void)
{
	struct machine *m = build_machine();
	struct pci_function *a = build_port(m, "0000:00:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *b = build_port(m, "0000:00:02.0", NULL, PCI_PORT_ROOT);

	a->vendor = b->vendor = fact_int(0x1def, from);
	a->device = b->device = fact_int(0xe100, from);
	build_model(build_gpu(m, "0000:01:00.0", a), "NVIDIA H100 PCIe", 90);
	build_nic(m, "0000:02:00.0", b, "mlx5_0");
	m->cpu.vendor = fact_int(CPU_ARM, from);
	return m;
}

/* The exporter's own look at the PCI tree, in the order in which it looks; errno 524. */
static void rdma_gate(void **state)
{
	struct machine *m = altra_machine();

	(void)state;
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_RDMA_GATE, PAIR_BLOCKED);
	m->peermem.registered = fact_int(1, from); /* asks the same */
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_RDMA_GATE, PAIR_BLOCKED);
	m->driver.grdma_topology_override = fact_int_unknown("not recorded");
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_UNKNOWN, REASON_RDMA_GATE_UNKNOWN, PAIR_UNDECIDED);
	m->kernel.hypervisor = fact_str("kvm", from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_SUSPECT);
	m->kernel.hypervisor = fact_str_unknown("DMI names no hypervisor");
	m->driver.grdma_topology_override = fact_int(1, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_SUSPECT);
	expect(m, NIC, GPU, CHAIN_HOST_BRIDGE, CHAIN_POSSIBLE, REASON_HOST_BRIDGE_NO_P2P,
	       PAIR_SUSPECT);
	says(m, NIC, GPU, CHAIN_HOST_BRIDGE,
	     "Ampere Altra does not forward peer traffic between its root ports");
	m->driver.grdma_topology_override = fact_int(0, from);
	m->driver.module_version = fact_str("575.64.05", from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_SUSPECT);
	build_free(m);
	m = nic_machine(); /* below one switch, on any chipset */
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT);
	m->driver.grdma_topology_override = fact_int(2, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_RDMA_GATE, PAIR_BLOCKED);
	m->gpus[0].numa_id = fact_int(1, from); /* coherent: never asked */
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT);
	build_free(m);
}

static void device_of_nic_pair(void **state)
{
	(void)state;
	for (size_t k = 0; k < DEVICE_FAULTS; k++) {
		struct machine *m = nic_machine();
		bool nic_too = device_faults[k].nic_too;

		device_faults[k].spoil(&m->gpus[0]);
		expect(m, NIC, GPU, CHAIN_DEVICE, nic_too ? device_faults[k].state : CHAIN_OK,
		       nic_too ? device_faults[k].reason : REASON_DEVICES_USABLE,
		       nic_too ? device_faults[k].verdict : PAIR_DIRECT);
		build_free(m);
	}
}

static void log_says(struct machine *m, struct pci_function *f, enum log_kind kind, int64_t code,
		     const char *text)
{
	m->log = arena_alloc(m->arena, 1, sizeof(*m->log));
	m->log_n = 1;
	m->log[0] = (struct log_line){
		.kind = kind, .code = fact_int(code, from), .pci = f, .text = text, .severity = ""};
}

/* What the kernel log proves; a GPU for which NVML answers is back. */
static void log_proves(void **state)
{
	struct machine *m = build_switch();
	struct pci_function *f = m->gpus[0].pci;

	(void)state;
	m->gpus[0].nvml_index = fact_int_unknown("not listed");
	log_says(m, f, LOG_XID, 79, "NVRM: Xid (PCI:0000:23:00): 79, GPU has fallen off the bus.");
	expect(m, 0, 1, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_FAILED, PAIR_BLOCKED);
	expect(m, 1, 0, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_FAILED, PAIR_BLOCKED);
	log_says(m, f, LOG_NVRM, 0, "NVRM: GPU 0000:23:00.0: RmInitAdapter failed!");
	expect(m, 0, 1, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_FAILED, PAIR_BLOCKED);
	m->gpus[0].nvml_index = fact_int(0, from);
	expect(m, 0, 1, CHAIN_DEVICE, CHAIN_POSSIBLE, REASON_DEVICE_FAILED, PAIR_SUSPECT);
	log_says(m, NULL, LOG_NVRM, 0,
		 "NVRM: The peer DMA address 0x0 is not aligned at 0x20000000");
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_POSSIBLE, REASON_DRIVER_MAPPING, PAIR_SUSPECT);
	log_says(m, f, LOG_XID, 31, "MMU Fault: FAULT_INFO_TYPE_UNSUPPORTED_KIND");
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_POSSIBLE, REASON_DRIVER_MAPPING, PAIR_SUSPECT);
	log_says(m, f, LOG_XID, 31, "MMU Fault: FAULT_PDE");
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_OK, REASON_DRIVER_OK, PAIR_DIRECT);
	log_says(m, f, LOG_IOMMU_FAULT, 0, "AMD-Vi: Event logged [IO_PAGE_FAULT]");
	expect(m, 0, 1, CHAIN_IOMMU, CHAIN_POSSIBLE, REASON_IOMMU_FAULTS, PAIR_SUSPECT);
	build_free(m);
}

/* Nothing goes through a NIC without an active port. */
static void device_port(void **state)
{
	struct machine *m = nic_machine();
	struct rdma_port *port = &m->rdma[0].ports[0];

	(void)state;
	port->state = fact_str("DOWN", from);
	expect(m, NIC, GPU, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_NO_PORT, PAIR_BLOCKED);
	expect(m, GPU, NIC, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_NO_PORT, PAIR_BLOCKED);
	port->state = fact_str_unknown("refused");
	expect(m, NIC, GPU, CHAIN_DEVICE, CHAIN_UNKNOWN, REASON_DEVICE_PORT_UNKNOWN,
	       PAIR_UNDECIDED);
	m->rdma[0].port_n = 0;
	expect(m, NIC, GPU, CHAIN_DEVICE, CHAIN_UNKNOWN, REASON_DEVICE_PORT_UNKNOWN,
	       PAIR_UNDECIDED);
	build_free(m);
}

/* What is older than GPUDirect RDMA, at either end. */
static void rdma_too_old(void **state)
{
	struct machine *m = nic_machine();

	(void)state;
	m->rdma[0].pci->device = fact_int(0x1003, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_RDMA_NIC_OLD, PAIR_BLOCKED);
	m->peermem.registered = m->peermem.legacy_loaded = fact_int(1, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_OK, REASON_RDMA_READY, PAIR_DIRECT);
	build_model(&m->gpus[0], "NVIDIA Quadro K5000", 30);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_RDMA_GPU_OLD, PAIR_BLOCKED);
	build_free(m);
}

static void device_nic(void **state)
{
	struct machine *m = nic_machine();

	(void)state;
	m->rdma[0].pci->driver = fact_str("vfio-pci", from);
	expect(m, NIC, GPU, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_SET_ASIDE, PAIR_BLOCKED);
	says(m, NIC, GPU, CHAIN_DEVICE,
	     "0000:24:00.0 is bound to vfio-pci, which reserves it for a virtual machine");
	m->rdma[0].pci->driver = fact_str_absent(from);
	expect(m, GPU, NIC, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_NO_DRIVER, PAIR_BLOCKED);
	build_free(m);
}

static void rdma_refused(void **state)
{
	struct machine *m = nic_machine();

	(void)state;
	m->kernel.dma_buf = fact_int(0, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_RDMA_NO_PEERMEM, PAIR_BLOCKED);
	m->peermem.loaded = m->peermem.registered = fact_int_unknown("not recorded");
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_UNKNOWN, REASON_DRIVER_UNKNOWN, PAIR_UNDECIDED);
	build_model(&m->gpus[0], "NVIDIA GeForce RTX 4090", 89);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_GPU_UNSUPPORTED, PAIR_BLOCKED);
	m->gpus[0].model = fact_str_unknown("no driver"); /* its device id still tells */
	m->peermem.registered = fact_int(1, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_GPU_UNSUPPORTED, PAIR_BLOCKED);
	pci_find(m, m->gpus[0].pci->address)->device = fact_int_unknown("not recorded");
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_UNKNOWN, REASON_DRIVER_UNKNOWN, PAIR_UNDECIDED);
	m->driver.loaded = fact_int(0, from);
	expect(m, NIC, GPU, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_ABSENT, PAIR_BLOCKED);
	build_free(m);
}

/* A NIC reaches a GPU through windows of BAR1, and a GPU needs nothing of the NIC exposed. */
static void rdma_exposure(void **state)
{
	struct machine *m = nic_machine();

	(void)state;
	m->gpus[0].bar1_bytes = fact_int(256 * MIB, from);
	expect(m, NIC, GPU, CHAIN_EXPOSURE, CHAIN_OK, REASON_EXPOSED_BAR1, PAIR_DIRECT);
	expect(m, GPU, NIC, CHAIN_EXPOSURE, CHAIN_NA, REASON_NONE, PAIR_DIRECT);
	m->gpus[0].bar1_bytes = fact_int_unknown("not recorded");
	expect(m, NIC, GPU, CHAIN_EXPOSURE, CHAIN_UNKNOWN, REASON_EXPOSURE_UNKNOWN, PAIR_UNDECIDED);
	build_free(m);
}

static void rdma_routing(void **state)
{
	struct machine *m = nic_machine();

	(void)state;
	m->pci[3].acs_ctl = fact_int(PCI_ACS_RR, from); /* above the NIC */
	expect(m, NIC, GPU, CHAIN_SWITCH, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT, PAIR_BLOCKED);
	expect(m, GPU, NIC, CHAIN_SWITCH, CHAIN_OK, REASON_ACS_CLEAR, PAIR_DIRECT);
	build_free(m);
}

static void rdma_through_host(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *a = build_port(m, "0000:00:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *b = build_port(m, "0000:00:02.0", NULL, PCI_PORT_ROOT);

	(void)state;
	build_model(build_gpu(m, "0000:01:00.0", a), "NVIDIA H100 PCIe", 90);
	build_nic(m, "0000:02:00.0", b, "mlx5_0");
	expect(m, NIC, GPU, CHAIN_HOST_BRIDGE, CHAIN_OK, REASON_HOST_BRIDGE_KNOWN, PAIR_DIRECT);
	m->cpu.vendor = fact_int(CPU_INTEL, from);
	expect(m, NIC, GPU, CHAIN_HOST_BRIDGE, CHAIN_UNKNOWN, REASON_HOST_BRIDGE_UNKNOWN,
	       PAIR_UNDECIDED);
	expect(m, NIC, GPU, CHAIN_NCCL, CHAIN_BAD, REASON_NCCL_LEVEL, PAIR_UNDECIDED);
	build_free(m);
}

/* ---- NCCL ---- */

static void nccl_is_policy(void **state)
{
	struct machine *m = build_root_ports(4, 1, 1);

	(void)state;
	m->nccl.version = fact_int(22304, from);
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_BAD, REASON_NCCL_LEVEL, PAIR_DIRECT);
	says(m, 0, 1, CHAIN_NCCL, "NCCL does not use this path: PHB is beyond its level PXB");
	m->nccl.version = fact_int_unknown("no libnccl");
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_POSSIBLE, REASON_NCCL_DEPENDS, PAIR_DIRECT);
	build_setting(m, "NCCL_P2P_LEVEL", "PHB");
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_OK, REASON_NCCL_USES, PAIR_DIRECT);
	build_setting(m, "NCCL_P2P_DISABLE", "1");
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_BAD, REASON_NCCL_DISABLED, PAIR_DIRECT);
	m->nccl.settings[1].in_force = false;
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_OK, REASON_NCCL_USES, PAIR_DIRECT);
	build_free(m);
}

static void see_transport(struct machine *m, bool ok, const char *text)
{
	build_observed(m, OBSERVED_NCCL_TRANSPORT, 0, 1, ok);
	m->observed[m->observed_n - 1].text = text;
}

/* Neither blocks a pair nor shows that it works. */
static void nccl_was_seen(void **state)
{
	struct machine *m = build_root_ports(4, 1, 1);

	(void)state;
	m->nccl.version = fact_int(22304, from);
	see_transport(m, true, "P2P/CUMEM");
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_OK, REASON_NCCL_SEEN, PAIR_DIRECT);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE, PAIR_DIRECT);
	says(m, 0, 1, CHAIN_NCCL, "an NCCL run used this path: P2P/CUMEM (seen in output.txt:7)");
	see_transport(m, false, "SHM/direct");
	see_transport(m, true, "P2P/CUMEM");
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_BAD, REASON_NCCL_STAGED, PAIR_DIRECT);
	expect(m, 1, 0, CHAIN_NCCL, CHAIN_BAD, REASON_NCCL_LEVEL, PAIR_DIRECT);
	build_free(m);
}

/*
 * The driver's no and P2P in a log cannot both be of this state of the machine; what else is bad
 * stays so.
 */
static void nccl_contradicts_the_driver(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	m->gpus[1].bar1_bytes = fact_int(256 * MIB, from);
	see_transport(m, true, "P2P/CUMEM");
	expect(m, 0, 1, CHAIN_NCCL, CHAIN_OK, REASON_NCCL_SEEN, PAIR_SUSPECT);
	expect(m, 1, 0, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_GEFORCE, PAIR_BLOCKED);
	m->pci[3].acs_ctl = m->pci[2].acs_ctl = fact_int(PCI_ACS_RR, from);
	expect(m, 0, 1, CHAIN_SWITCH, CHAIN_BAD, REASON_ACS_REQUEST_REDIRECT, PAIR_BLOCKED);
	m->pci[3].acs_ctl = m->pci[2].acs_ctl = fact_int(0, from);
	build_observed(m, OBSERVED_PEER_COPY, 0, 1, false);
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	build_free(m);
}

/* Where BAR1 alone is bad, P2P in a log does not tell where the data went. */
static void nccl_says_nothing_of_bar1(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->gpus[1].bar1_bytes = fact_int(256 * MIB, from);
	see_transport(m, true, "P2P/CUMEM");
	expect(m, 0, 1, CHAIN_EXPOSURE, CHAIN_BAD, REASON_BAR1_SMALL, PAIR_BLOCKED);
	build_free(m);
}

/* ---- what was seen ---- */

static void observed_outweighs(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_iommu(m, "DMA");
	build_observed(m, OBSERVED_PEER_COPY, 0, 1, true);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_OK, REASON_OBSERVED_WORKS, PAIR_DIRECT);
	expect(m, 0, 1, CHAIN_IOMMU, CHAIN_POSSIBLE, REASON_IOMMU_TRANSLATING, PAIR_DIRECT);
	expect(m, 1, 0, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE, PAIR_SUSPECT);
	says(m, 0, 1, CHAIN_OBSERVED,
	     "a test copy arrived with correct data (seen in output.txt:7)");
	build_free(m);
}

static void observed_failure(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_observed(m, OBSERVED_PEER_COPY, -1, -1, true);
	build_observed(m, OBSERVED_PEER_ACCESS, 1, -1, false);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_OK, REASON_OBSERVED_WORKS, PAIR_DIRECT);
	expect(m, 1, 0, CHAIN_OBSERVED, CHAIN_BAD, REASON_OBSERVED_FAILS, PAIR_BLOCKED);
	build_free(m);
}

/* A copy of earlier says nothing of a device that cannot be used now; one that sleeps wakes. */
static void observed_before_a_fault(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_observed(m, OBSERVED_PEER_COPY, -1, -1, true);
	m->gpus[1].mig_enabled = fact_int(1, "nvml");
	expect(m, 0, 1, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_MIG, PAIR_BLOCKED);
	assert_int_equal(judge(m, 0, 1).first_bad, CHAIN_DEVICE);
	m->gpus[1].mig_enabled = fact_int(0, "nvml");
	m->pci[m->gpus[1].pci->index].driver = fact_str("vfio-pci", "sysfs");
	expect(m, 1, 0, CHAIN_DEVICE, CHAIN_BAD, REASON_DEVICE_SET_ASIDE, PAIR_BLOCKED);
	m->pci[m->gpus[1].pci->index].driver = fact_str("nvidia", "sysfs");
	m->pci[m->gpus[1].pci->index].power_state = fact_str("D3cold", "sysfs");
	expect(m, 0, 1, CHAIN_DEVICE, CHAIN_UNKNOWN, REASON_DEVICE_ASLEEP, PAIR_DIRECT);
	m->pci[m->gpus[1].pci->index].power_state = fact_str("D0", "sysfs");
	m->driver.loaded = fact_int(0, "proc/modules");
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_ABSENT, PAIR_BLOCKED);
	build_free(m);
}

static void see_rate(struct machine *m, size_t i, size_t j, double share)
{
	build_observed(m, OBSERVED_BANDWIDTH, (int)i, (int)j, true);
	m->observed[m->observed_n - 1].value = share * judge(m, i, j).expected_gbps;
	m->observed[m->observed_n - 1].gain = OBSERVED_GAINS;
}

/* Speed with CUDA's access lifts what is blocked or undecided to doubtful, and no further. */
static void observed_speed(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	see_rate(m, 0, 1, 0.95);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE, PAIR_BLOCKED);
	build_observed(m, OBSERVED_PEER_ACCESS, -1, -1, true);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_OK, REASON_OBSERVED_FAST, PAIR_SUSPECT);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_GEFORCE, PAIR_SUSPECT);
	expect(m, 1, 0, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE, PAIR_BLOCKED);
	see_rate(m, 1, 0, 0.4); /* slower than the path */
	expect(m, 1, 0, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE, PAIR_BLOCKED);
	build_status(m, P2P_READ, P2P_STATUS_UNKNOWN);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_OK, REASON_OBSERVED_FAST, PAIR_SUSPECT);
	build_status(m, P2P_READ, P2P_OK);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_OK, REASON_OBSERVED_FAST, PAIR_DIRECT);
	/* A checked copy says more, whichever way. */
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_observed(m, OBSERVED_PEER_COPY, 0, 1, true);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_OK, REASON_OBSERVED_WORKS, PAIR_DIRECT);
	build_status(m, P2P_READ, P2P_OK);
	build_observed(m, OBSERVED_PEER_COPY, 0, 1, false);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_BAD, REASON_OBSERVED_FAILS, PAIR_BLOCKED);
	build_free(m);
}

/*
 * Copies that the host carries reach what its links give: only a gain over P2P off tells them
 * apart.
 */
static void observed_host_speed(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_observed(m, OBSERVED_PEER_ACCESS, -1, -1, true);
	see_rate(m, 0, 1, 0.95);
	m->observed[1].gain = OBSERVED_GAIN_UNKNOWN;
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE, PAIR_DIRECT);
	m->observed[1].gain = OBSERVED_GAINS_NOTHING;
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_POSSIBLE, REASON_OBSERVED_NO_GAIN, PAIR_SUSPECT);
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	expect(m, 0, 1, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_GEFORCE, PAIR_BLOCKED);
	build_free(m);
}

/* Over NVLink a copy is faster than the links to the host: no figure with P2P off is needed. */
static void observed_beyond_host(void **state)
{
	struct machine *m = nvlink_machine();

	(void)state;
	build_observed(m, OBSERVED_PEER_ACCESS, -1, -1, true);
	build_observed(m, OBSERVED_BANDWIDTH, 0, 1, true);
	m->observed[1].value = 0.9 * judge(m, 0, 1).expected_gbps;
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_OK, REASON_OBSERVED_FAST, PAIR_DIRECT);
	build_free(m);
}

/* Faster than any link: the copies went nowhere. */
static void observed_too_fast(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_status(m, P2P_READ, P2P_CHIPSET_NOT_SUPPORTED);
	build_observed(m, OBSERVED_PEER_ACCESS, 0, 1, true);
	see_rate(m, 0, 1, 5);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE, PAIR_BLOCKED);
	build_free(m);
}

/* That access was granted or that bytes moved fast does not show that they arrived. */
static void observed_nothing(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	build_observed(m, OBSERVED_PEER_ACCESS, -1, -1, true);
	build_observed(m, OBSERVED_BANDWIDTH, 0, 1, true);
	build_observed(m, OBSERVED_PEER_COPY, 0, 99, false);
	build_observed(m, OBSERVED_PEER_COPY, -7, 1, false);
	expect(m, 0, 1, CHAIN_OBSERVED, CHAIN_NA, REASON_NONE, PAIR_DIRECT);
	build_free(m);
}

/* ---- words ---- */

static void first_of_several(void **state)
{
	struct machine *m = build_switch();
	struct path p;

	(void)state;
	m->pci[NEAR].acs_ctl = fact_int(PCI_ACS_RR, from);
	m->gpus[1].bar1_bytes = fact_int(256 * MIB, from);
	build_status(m, P2P_READ, P2P_GPU_NOT_SUPPORTED);
	p = judge(m, 0, 1);
	assert_int_equal(p.first_bad, CHAIN_SWITCH);
	expect_step(&p, CHAIN_EXPOSURE, CHAIN_BAD, REASON_BAR1_SMALL);
	expect_step(&p, CHAIN_DRIVER, CHAIN_BAD, REASON_DRIVER_GEFORCE);
	build_free(m);
}

/* Every reason has a word of its own and a sentence without holes left open. */
static void every_reason_has_words(void **state)
{
	struct path p = {0};
	char buf[256], cut[8];

	(void)state;
	for (int r = 0; r < REASON_N; r++) {
		struct chain_link l = {.reason = (enum chain_reason)r};

		assert_non_null(chain_reason_word(l.reason));
		for (int other = 0; other < r; other++)
			assert_string_not_equal(chain_reason_word(l.reason),
						chain_reason_word((enum chain_reason)other));
		chain_explain(&p, &l, buf, sizeof(buf));
		assert_true(strlen(buf) > 10);
		assert_null(strpbrk(buf, "{}"));
		assert_true(strlen(chain_explain(&p, &l, cut, sizeof(cut))) < sizeof(cut));
	}
	assert_string_equal(chain_reason_word(REASON_ACS_REQUEST_REDIRECT), "acs-request-redirect");
	assert_string_equal(chain_step_word(CHAIN_SWITCH), "switch");
	assert_string_equal(chain_state_word(CHAIN_BAD), "bad");
	assert_string_equal(pair_verdict_word(PAIR_UNDECIDED), "undecided");
	assert_string_equal(chain_step_word(CHAIN_STEP_N), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy),
		cmocka_unit_test(device_of_gpu_pair),
		cmocka_unit_test(device_untold),
		cmocka_unit_test(device_that_nvml_knows),
		cmocka_unit_test(device_without_module),
		cmocka_unit_test(nvlink_skips_pcie),
		cmocka_unit_test(nvlink_down),
		cmocka_unit_test(nvlink_bridge_missing),
		cmocka_unit_test(nvlink_unknown),
		cmocka_unit_test(nvlink_by_chip),
		cmocka_unit_test(path_unknown),
		cmocka_unit_test(acs_bits),
		cmocka_unit_test(acs_names_the_port),
		cmocka_unit_test(acs_elsewhere),
		cmocka_unit_test(acs_absent_or_unreadable),
		cmocka_unit_test(acs_of_functions),
		cmocka_unit_test(acs_on_root_ports),
		cmocka_unit_test(cost_of_root_ports),
		cmocka_unit_test(cpu_list),
		cmocka_unit_test(cpu_unknown),
		cmocka_unit_test(sockets),
		cmocka_unit_test(iommu_types),
		cmocka_unit_test(iommu_of_initiator),
		cmocka_unit_test(iommu_evidence),
		cmocka_unit_test(iommu_not_blamed),
		cmocka_unit_test(bar1_and_mailbox),
		cmocka_unit_test(generations),
		cmocka_unit_test(undriven),
		cmocka_unit_test(log_proves),
		cmocka_unit_test(device_port),
		cmocka_unit_test(rdma_too_old),
		cmocka_unit_test(bar1_unknown),
		cmocka_unit_test(bar1_by_registry),
		cmocka_unit_test(driver_status),
		cmocka_unit_test(driver_forced),
		cmocka_unit_test(driver_forced_with_mechanism),
		cmocka_unit_test(driver_keys_of_one_card),
		cmocka_unit_test(driver_library),
		cmocka_unit_test(driver_forced_and_looked_into),
		cmocka_unit_test(rdma_ways),
		cmocka_unit_test(rdma_nic_drivers),
		cmocka_unit_test(rdma_nic_drivers_and_peermem),
		cmocka_unit_test(rdma_nic_driver_of_ofed),
		cmocka_unit_test(rdma_by_software),
		cmocka_unit_test(rdma_gate),
		cmocka_unit_test(device_of_nic_pair),
		cmocka_unit_test(device_nic),
		cmocka_unit_test(rdma_refused),
		cmocka_unit_test(rdma_exposure),
		cmocka_unit_test(rdma_routing),
		cmocka_unit_test(rdma_through_host),
		cmocka_unit_test(nccl_is_policy),
		cmocka_unit_test(nccl_was_seen),
		cmocka_unit_test(nccl_contradicts_the_driver),
		cmocka_unit_test(nccl_says_nothing_of_bar1),
		cmocka_unit_test(observed_outweighs),
		cmocka_unit_test(observed_before_a_fault),
		cmocka_unit_test(observed_failure),
		cmocka_unit_test(observed_speed),
		cmocka_unit_test(observed_host_speed),
		cmocka_unit_test(observed_beyond_host),
		cmocka_unit_test(observed_too_fast),
		cmocka_unit_test(observed_nothing),
		cmocka_unit_test(first_of_several),
		cmocka_unit_test(every_reason_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
