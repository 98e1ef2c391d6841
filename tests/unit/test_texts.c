/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest/part.c and the decoders of its table: what tools print, wherever in a text it stands, as
 * facts with their lines. The texts are made up in the tools' forms: pciutils 3.7 to 3.13,
 * nvidia-smi 470 to 580.
 */
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/ask.h"
#include "diagnose/diagnose.h"
#include "diagnose/run_failure.h"
#include "ingest/kept_text.h"
#include "ingest/part.h"
#include "ingest/pasted.h"
#include "pasted_machine.h"
#include "topology/topology.h"

#include <cmocka.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct machine *machine_of_one(const char *text)
{
	return machine_of_texts(&text, 1);
}

static void assert_fact(struct fact_int f, int64_t value, const char *from)
{
	if (!fact_is(f, value))
		fail_msg("%lld (state %d, %s) instead of %lld", (long long)f.value, (int)f.state,
			 FACT_WHY(f), (long long)value);
	assert_string_equal(f.from, from);
}

/* ---- the samples ---- */

#define TABLE                                                                                           \
	"| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |\n" \
	"|   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |\n" \
	"| 30%   35C    P8             20W /  450W |       1MiB /  24564MiB |      0%      Default |\n" \
	"+-----------------------------------------+------------------------+----------------------+\n" \
	"|   1  NVIDIA GeForce RTX 4090        Off |   00000000:25:00.0  On |                  Off |\n" \
	"| 30%   35C    P0             20W /  450W |       1MiB /  24564MiB |      0%      Default |\n" \
	"+-----------------------------------------+------------------------+----------------------+\n"

#define TOPO                                                                                       \
	"\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"                           \
	"GPU0\t X \tPHB\tSYS\t0-31\t0\t\tN/A\n"                                                    \
	"GPU1\tPHB\t X \tSYS\t0-31\t0\t\tN/A\n"                                                    \
	"NIC0\tSYS\tSYS\t X \t\t\t\t\n"                                                            \
	"\n"                                                                                       \
	"Legend:\n"                                                                                \
	"\n"                                                                                       \
	"  X    = Self\n"                                                                          \
	"  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge\n"

#define TOPO_OF_GPUS                                                                               \
	"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"                                              \
	"GPU0\t X \tPHB\t0-31\t0\n"                                                                \
	"GPU1\tPHB\t X \t0-31\t0\n"

#define P2P                                                                                        \
	" \tGPU0\tGPU1\t\n"                                                                        \
	" GPU0\tX\tCNS\t\n"                                                                        \
	" GPU1\tOK\tX\t\n"

#define QUERY                                                                                      \
	"==============NVSMI LOG==============\n"                                                  \
	"\n"                                                                                       \
	"Timestamp                                 : Sun Nov 22 09:40:35 2026\n"                   \
	"Driver Version                            : 550.90.07\n"                                  \
	"CUDA Version                              : 12.4\n"                                       \
	"\n"                                                                                       \
	"Attached GPUs                             : 1\n"                                          \
	"GPU 00000000:41:00.0\n"                                                                   \
	"    Product Name                          : NVIDIA A100-SXM4-40GB\n"                      \
	"    MIG Mode\n"                                                                           \
	"        Current                           : Enabled\n"                                    \
	"        Pending                           : Enabled\n"                                    \
	"    MIG Device\n"                                                                         \
	"        Index                             : 0\n"                                          \
	"        FB Memory Usage\n"                                                                \
	"            Total                         : 4864 MiB\n"                                   \
	"        BAR1 Memory Usage\n"                                                              \
	"            Total                         : 8191 MiB\n"                                   \
	"    PCI\n"                                                                                \
	"        Device Id                         : 0x20B010DE\n"                                 \
	"        GPU Link Info\n"                                                                  \
	"            PCIe Generation\n"                                                            \
	"                Max                       : 4\n"                                          \
	"                Current                   : 1\n"                                          \
	"            Link Width\n"                                                                 \
	"                Max                       : 16x\n"                                        \
	"                Current                   : 8x\n"                                         \
	"    Performance State                     : P8\n"                                         \
	"    FB Memory Usage\n"                                                                    \
	"        Total                             : 40960 MiB\n"                                  \
	"        Used                              : 19 MiB\n"                                     \
	"    BAR1 Memory Usage\n"                                                                  \
	"        Total                             : 65536 MiB\n"                                  \
	"        Used                              : 2 MiB\n"                                      \
	"    Fabric\n"                                                                             \
	"        State                             : N/A\n"                                        \
	"        Status                            : N/A\n"

/* The same GPU, as -x prints it. */
#define QUERY_XML                                                                                  \
	"<?xml version=\"1.0\" ?>\n"                                                               \
	"<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"                              \
	"<nvidia_smi_log>\n"                                                                       \
	"\t<timestamp>Sun Nov 22 09:40:35 2026</timestamp>\n"                                      \
	"\t<driver_version>550.90.07</driver_version>\n"                                           \
	"\t<cuda_version>12.4</cuda_version>\n"                                                    \
	"\t<attached_gpus>1</attached_gpus>\n"                                                     \
	"\t<gpu id=\"00000000:41:00.0\">\n"                                                        \
	"\t\t<product_name>NVIDIA A100-SXM4-40GB</product_name>\n"                                 \
	"\t\t<mig_mode>\n"                                                                         \
	"\t\t\t<current_mig>Enabled</current_mig>\n"                                               \
	"\t\t\t<pending_mig>Enabled</pending_mig>\n"                                               \
	"\t\t</mig_mode>\n"                                                                        \
	"\t\t<mig_devices>\n"                                                                      \
	"\t\t\t<mig_device>\n"                                                                     \
	"\t\t\t\t<index>0</index>\n"                                                               \
	"\t\t\t\t<fb_memory_usage>\n"                                                              \
	"\t\t\t\t\t<total>4864 MiB</total>\n"                                                      \
	"\t\t\t\t</fb_memory_usage>\n"                                                             \
	"\t\t\t\t<bar1_memory_usage>\n"                                                            \
	"\t\t\t\t\t<total>8191 MiB</total>\n"                                                      \
	"\t\t\t\t</bar1_memory_usage>\n"                                                           \
	"\t\t\t</mig_device>\n"                                                                    \
	"\t\t</mig_devices>\n"                                                                     \
	"\t\t<serial>1650522003820</serial>\n"                                                     \
	"\t\t<pci>\n"                                                                              \
	"\t\t\t<pci_device_id>20B010DE</pci_device_id>\n"                                          \
	"\t\t\t<pci_gpu_link_info>\n"                                                              \
	"\t\t\t\t<pcie_gen>\n"                                                                     \
	"\t\t\t\t\t<max_link_gen>4</max_link_gen>\n"                                               \
	"\t\t\t\t\t<current_link_gen>1</current_link_gen>\n"                                       \
	"\t\t\t\t</pcie_gen>\n"                                                                    \
	"\t\t\t\t<link_widths>\n"                                                                  \
	"\t\t\t\t\t<max_link_width>16x</max_link_width>\n"                                         \
	"\t\t\t\t\t<current_link_width>8x</current_link_width>\n"                                  \
	"\t\t\t\t</link_widths>\n"                                                                 \
	"\t\t\t</pci_gpu_link_info>\n"                                                             \
	"\t\t</pci>\n"                                                                             \
	"\t\t<performance_state>P8</performance_state>\n"                                          \
	"\t\t<fb_memory_usage>\n"                                                                  \
	"\t\t\t<total>40960 MiB</total>\n"                                                         \
	"\t\t</fb_memory_usage>\n"                                                                 \
	"\t\t<bar1_memory_usage>\n"                                                                \
	"\t\t\t<total>65536 MiB</total>\n"                                                         \
	"\t\t</bar1_memory_usage>\n"                                                               \
	"\t\t<retired_pagelist>\n"                                                                 \
	"\t\t</retired_pagelist>\n"                                                                \
	"\t\t<fabric>\n"                                                                           \
	"\t\t\t<state>N/A</state>\n"                                                               \
	"\t\t\t<status>N/A</status>\n"                                                             \
	"\t\t</fabric>\n"                                                                          \
	"\t</gpu>\n"                                                                               \
	"\n"                                                                                       \
	"</nvidia_smi_log>\n"

#define PORT                                                                                             \
	"00:01.1 PCI bridge [0604]: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge "     \
	"[1022:1483] (prog-if 00 [Normal decode])\n"                                                     \
	"\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR-\n"        \
	"\tNUMA node: 0\n"                                                                               \
	"\tIOMMU group: 15\n"                                                                            \
	"\tBus: primary=00, secondary=01, subordinate=01, sec-latency=0\n"                               \
	"\tMemory behind bridge: b2000000-b30fffff [size=17M] [32-bit]\n"                                \
	"\tPrefetchable memory behind bridge: 28400000000-28fffffffff [size=48G] [64-bit]\n"             \
	"\tCapabilities: [58] Express (v2) Root Port (Slot+), MSI 00\n"                                  \
	"\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0\n"                                               \
	"\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq+\n"                                       \
	"\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+\n"                                           \
	"\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes\n"                                             \
	"\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <64us\n"                \
	"\t\tLnkSta:\tSpeed 16GT/s, Width x16\n"                                                         \
	"\t\tLnkCtl2: Target Link Speed: 16GT/s, EnterCompliance- SpeedDis-\n"                           \
	"\tCapabilities: [2a0 v1] Access Control Services\n"                                             \
	"\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+\n" \
	"\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n" \
	"\tKernel driver in use: pcieport\n"

#define CARD                                                                                           \
	"01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] "       \
	"[10de:2684] (rev a1) (prog-if 00 [VGA controller])\n"                                         \
	"\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR-\n"      \
	"\tNUMA node: 0\n"                                                                             \
	"\tIOMMU group: 16\n"                                                                          \
	"\tRegion 0: Memory at b2000000 (32-bit, non-prefetchable) [size=16M]\n"                       \
	"\tRegion 1: Memory at 28800000000 (64-bit, prefetchable) [size=32G]\n"                        \
	"\tRegion 3: Memory at 28400000000 (64-bit, prefetchable) [size=32M]\n"                        \
	"\tRegion 5: I/O ports at 3000 [size=128]\n"                                                   \
	"\tCapabilities: [78] Express (v2) Legacy Endpoint, MSI 00\n"                                  \
	"\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <16us\n"              \
	"\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)\n"                             \
	"\tCapabilities: [bb0 v1] Physical Resizable BAR\n"                                            \
	"\t\tBAR 0: current size: 16MB, supported: 16MB\n"                                             \
	"\t\tBAR 1: current size: 32GB, supported: 64MB 128MB 256MB 512MB 1GB 2GB 4GB 8GB 16GB 32GB\n" \
	"\t\tBAR 3: current size: 32MB, supported: 32MB\n"                                             \
	"\tKernel driver in use: nvidia\n"

/* ---- lspci ---- */

static void lspci_verbose(void **state)
{
	struct machine *m = machine_of_one(PORT "\n" CARD);
	const struct pci_function *port = &m->pci[0], *card = &m->pci[1];

	(void)state;
	assert_int_equal(m->pci_n, 2);
	assert_int_equal(m->gpu_n, 1);
	assert_fact(port->device, 0x1483, "a:1");
	assert_fact(port->acs_ctl, PCI_ACS_SV | PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_UF, "a:18");
	assert_fact(port->acs_offset, 0x2a0, "a:16");
	assert_fact(port->port_type, PCI_PORT_ROOT, "a:8");
	assert_fact(port->payload, 256, "a:12");
	assert_fact(port->payload_max, 512, "a:9");
	assert_fact(port->iommu_group, 15, "a:4");
	assert_true(port->windows_known);
	assert_int_equal(port->prefetch_window.size, 48ULL << 30);
	assert_ptr_equal(card->parent, port);
	assert_string_equal(card->root, "pci0000:00");
	assert_fact(card->link_speed, 2500, "a:31");
	assert_fact(card->link_width, 8, "a:31");
	assert_fact(card->link_speed_cap, 16000, "a:30");
	assert_fact(card->rebar_sizes, 0xffc0, "a:34");
	assert_true(fact_absent(card->acs_ctl));
	assert_fact(m->gpus[0].bar1_bytes, 32LL << 30, "a:25");
	assert_string_equal(m->gpus[0].model.value, "NVIDIA GeForce RTX 4090");
	assert_string_equal(card->driver.value, "nvidia");
	machine_free(m);
}

/*
 * Cards with virtual functions have a second capability of the same form, about the BARs of those
 * (pciutils ls-ecaps.c, cap_rebar).
 */
static void lspci_virtual_bars(void **state)
{
	struct machine *m = machine_of_one(
		"3b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
		"\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR-\n"
		"\tRegion 0: Memory at 21c042000000 (64-bit, prefetchable) [size=16M]\n"
		"\tRegion 2: Memory at 218000000000 (64-bit, prefetchable) [size=128G]\n"
		"\tCapabilities: [134 v1] Physical Resizable BAR\n"
		"\t\tBAR 2: current size: 128GB, supported: 64MB 128MB 64GB 128GB\n"
		"\tCapabilities: [140 v1] Virtual Resizable BAR\n"
		"\t\tBAR 1: current size: 4GB, supported: 64MB 128MB 1GB 2GB 4GB\n"
		"\tKernel driver in use: nvidia\n");

	(void)state;
	assert_int_equal(m->trouble_n, 0);
	assert_fact(m->pci[0].rebar_sizes, 64 | 128 | 64 << 10 | 128 << 10, "a:6");
	assert_true(fact_is(m->gpus[0].bar1_bytes, 128LL << 30));
	machine_free(m);
}

/* Cards without a display are 3D controllers, whose class begins with a digit. */
static void lspci_names_data_centre_cards(void **state)
{
	static const char *const lines[] = {
		"01:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n",
		"01:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)\n",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct machine *m = machine_of_one(lines[i]);

		assert_int_equal(m->gpu_n, 1);
		assert_true(fact_known(m->gpus[0].model));
		machine_free(m);
	}
}

/* What is not printed is unknown: the list of a user, and one that the text cuts. */
static void lspci_says_less(void **state)
{
	static const char *const texts[] = {
		"01:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)\n"
		"\tFlags: bus master, fast devsel, latency 0, IRQ 377, IOMMU group 16\n"
		"\tMemory at b2000000 (32-bit, non-prefetchable) [size=16M]\n"
		"\tMemory at 28800000000 (64-bit, prefetchable) [size=256M]\n"
		"\tCapabilities: <access denied>\n"
		"\tKernel driver in use: nvidia\n",
		/* cut behind an extended capability: ACS may come after it */
		"01:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)\n"
		"\tFlags: bus master, fast devsel, latency 0, IRQ 377, IOMMU group 16\n"
		"\tMemory at b2000000 (32-bit, non-prefetchable) [size=16M]\n"
		"\tMemory at 28800000000 (64-bit, prefetchable) [size=256M]\n"
		"\tCapabilities: [bb0 v1] Physical Resizable BAR\n",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct machine *m = machine_of_one(texts[i]);

		assert_int_equal(m->gpu_n, 1);
		assert_true(fact_unknown(m->pci[0].acs_ctl));
		assert_true(fact_unknown(m->pci[0].device));
		assert_true(fact_unknown(m->pci[0].link_speed));
		assert_true(fact_unknown(m->pci[0].rebar_sizes));
		assert_true(fact_is(m->gpus[0].bar1_bytes, 256 << 20));
		assert_null(m->pci[0].root); /* the bridges above it are not in the text */
		machine_free(m);
	}
}

static void lspci_numbers(void **state)
{
	struct machine *m = machine_of_one("0000:01:00.0 0302: 10de:2330 (rev a1)\n"
					   "0000:0c:00.0 0207: 15b3:1021\n");

	(void)state;
	assert_int_equal(m->pci_n, 2);
	assert_int_equal(m->gpu_n, 1);
	assert_true(fact_is(m->pci[1].device, 0x1021));
	machine_free(m);
}

/* What the list of names of an older lspci lacks. */
static void lspci_without_a_name(void **state)
{
	struct machine *m =
		machine_of_one("19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n"
			       "1a:00.0 3D controller: NVIDIA Corporation Device 233 (rev a1)\n");

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_fact(m->pci[0].device, 0x2330, "a:1");
	assert_true(fact_unknown(m->pci[1].device));
	machine_free(m);
}

/* A row that is cut off, and those behind it, are not read: half a byte is another number. */
static void lspci_rows_that_are_cut(void **state)
{
#define NAME "01:00.0 VGA compatible controller: NVIDIA Corporation Device\n"
#define ROWS_OF(first)                                                                             \
	first "\n10: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"                            \
	      "20: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"                              \
	      "30: 00 00 00 00 60 00 00 00 00 00 00 00 00 00 00 00\n"
	struct machine *whole = machine_of_one(
			       NAME ROWS_OF("00: de 10 84 26 06 00 10 00 a1 00 00 03 00 00 00 00")),
		       *cut = machine_of_one(NAME ROWS_OF("00: de 10 84 2"));

	(void)state;
	assert_true(fact_is(whole->pci[0].device, 0x2684));
	assert_true(fact_unknown(cut->pci[0].device));
	machine_free(whole);
	machine_free(cut);
#undef NAME
#undef ROWS_OF
}

static void lspci_tree(void **state)
{
	struct machine *m =
		machine_of_one("-+-[0000:80]-+-00.0\n"
			       " |           \\-01.1-[81]----00.0\n"
			       " \\-[0000:00]-+-00.0\n"
			       "             +-01.1-[01-04]----00.0-[02-04]--+-00.0-[03]----00.0\n"
			       "             |                               \\-01.0-[04]--+-00.0\n"
			       "             |                                            \\-00.1\n"
			       "             \\-18.0\n");
	static const char *const below[][2] = {
		{"0000:81:00.0", "0000:80:01.1"}, {"0000:01:00.0", "0000:00:01.1"},
		{"0000:02:00.0", "0000:01:00.0"}, {"0000:02:01.0", "0000:01:00.0"},
		{"0000:03:00.0", "0000:02:00.0"}, {"0000:04:00.0", "0000:02:01.0"},
		{"0000:04:00.1", "0000:02:01.0"},
	};

	(void)state;
	assert_int_equal(m->pci_n, 12);
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		struct pci_address a;
		const struct pci_function *f;

		assert_int_equal(pci_address_parse(below[i][0], &a), 0);
		f = pci_find(m, a);
		assert_non_null(f);
		assert_non_null(f->parent);
		assert_string_equal(f->parent->name, below[i][1]);
	}
	assert_string_equal(m->pci[m->pci_n - 1].root, "pci0000:80");
	machine_free(m);
}

/* ---- nvidia-smi ---- */

static void smi_tables(void **state)
{
	struct machine *m = machine_of_one(TABLE "$ nvidia-smi topo -m\n" TOPO
						 "\n$ nvidia-smi topo -p2p r\n" P2P);
	const struct gpu *g = &m->gpus[1];

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_string_equal(g->pci->name, "0000:25:00.0");
	assert_string_equal(g->model.value, "NVIDIA GeForce RTX 4090");
	assert_fact(g->nvml_index, 1, "nvmlDeviceGetHandleByIndex");
	assert_fact(g->vram_bytes, 24564LL << 20, "a:6");
	assert_fact(g->performance_state, 0, "a:6");
	assert_fact(g->display_active, 1, "a:5");
	assert_true(fact_unknown(g->bar1_bytes));
	assert_fact(m->driver.cuda_version, 12040, "a:1");
	assert_string_equal(m->driver.module_version.value, "550.90.07");
	assert_fact(machine_pair(m, 0, 1)->common_ancestor, NVML_LEVEL_HOSTBRIDGE, "a:10");
	assert_fact(machine_pair(m, 0, 1)->nvlinks, 0, "a:10");
	assert_fact(machine_pair(m, 0, 1)->p2p[P2P_READ], P2P_CHIPSET_NOT_SUPPORTED, "a:21");
	assert_fact(machine_pair(m, 1, 0)->p2p[P2P_READ], P2P_OK, "a:22");
	assert_true(fact_unknown(machine_pair(m, 0, 1)->p2p[P2P_WRITE]));
	assert_fact(g->pci->numa_node, 0, "a:11");
	machine_free(m);
}

/* Slices have memory of their own under the same labels. */
static void smi_query(void **state)
{
	struct machine *m = machine_of_one(QUERY);
	const struct gpu *g = &m->gpus[0];

	(void)state;
	assert_int_equal(m->gpu_n, 1);
	assert_fact(g->vram_bytes, 40960LL << 20, "a:30");
	assert_fact(g->bar1_bytes, 65536LL << 20, "a:33");
	assert_fact(g->mig_enabled, 1, "a:11");
	assert_fact(g->pcie_gen, 1, "a:24");
	assert_fact(g->pcie_width, 8, "a:27");
	assert_fact(g->pci->device, 0x20b0, "a:20");
	assert_true(fact_absent(g->fabric_state));
	assert_fact(g->nvml_index, 0, "nvmlDeviceGetHandleByIndex");
	machine_free(m);
}

/* Of a page that is cut within it, the rest is unknown. */
static void smi_query_xml(void **state)
{
	struct machine *m = machine_of_one(QUERY_XML);
	const struct gpu *g = &m->gpus[0];
	AUTO_FREE char *cut =
		xstrndup(QUERY_XML,
			 (size_t)(strstr(QUERY_XML, "\n\t\t<bar1_memory_usage>") + 1 - QUERY_XML));
	AUTO_FREE char *page = xprintf("see\n```xml\n%s[...]\n```\n", cut);

	(void)state;
	assert_int_equal(m->gpu_n, 1);
	assert_fact(g->vram_bytes, 40960LL << 20, "a:41");
	assert_fact(g->bar1_bytes, 65536LL << 20, "a:44");
	assert_fact(g->mig_enabled, 1, "a:11");
	assert_fact(g->pcie_gen, 1, "a:31");
	assert_fact(g->pcie_width, 8, "a:35");
	assert_fact(g->pci->device, 0x20b0, "a:27");
	assert_true(fact_absent(g->fabric_state));
	assert_fact(g->nvml_index, 0, "nvmlDeviceGetHandleByIndex");
	assert_string_equal(m->driver.module_version.value, "550.90.07");
	machine_free(m);
	m = machine_of_one(page);
	assert_int_equal(m->gpu_n, 1);
	assert_fact(m->gpus[0].vram_bytes, 40960LL << 20, "a:43");
	assert_true(fact_unknown(m->gpus[0].bar1_bytes));
	assert_non_null(strstr(FACT_WHY(m->gpus[0].bar1_bytes), "cut off at a:44"));
	machine_free(m);
}

/* Both forms show their time, so that the newer one counts. */
static void smi_query_xml_and_text(void **state)
{
	static const char newer[] = "==============NVSMI LOG==============\n\n"
				    "Timestamp                    : Mon Nov 23 09:40:35 2026\n"
				    "Driver Version               : 570.10\n\n"
				    "Attached GPUs                : 1\n"
				    "GPU 00000000:41:00.0\n"
				    "    BAR1 Memory Usage\n"
				    "        Total                : 256 MiB\n";
	const char *const texts[] = {newer, QUERY_XML};
	struct machine *m = machine_of_texts(texts, 2);

	(void)state;
	assert_fact(m->gpus[0].bar1_bytes, 256LL << 20, "a:9");
	assert_string_equal(m->driver.module_version.value, "570.10");
	machine_free(m);
}

/* "nvidia-smi -q | grep -A3 BAR1" names no GPU: it is of all if there is one for each. */
static void smi_sections(void **state)
{
	static const char one[] = "    BAR1 Memory Usage\n        Total          : 256 MiB\n";
	AUTO_FREE char *both = xprintf("%s%s%s", TABLE, one, one);
	AUTO_FREE char *few = xprintf("%s%s", TABLE, one);
	struct machine *m = machine_of_one(both);

	(void)state;
	assert_fact(m->gpus[0].bar1_bytes, 256 << 20, "a:9");
	assert_fact(m->gpus[1].bar1_bytes, 256 << 20, "a:11");
	machine_free(m);
	m = machine_of_one(few);
	assert_true(fact_unknown(m->gpus[0].bar1_bytes));
	machine_free(m);
}

/* GPUs without an address are GPUs: what is said of them is known, where they are is not. */
static void smi_without_addresses(void **state)
{
	struct machine *m = machine_of_one(
		"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n"
		"\t Link 0: 26.562 GB/s\n"
		"\t Link 1: <inactive>\n"
		"GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-666666666666)\n"
		"\n"
		"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-51\nGPU1\tNV18\t X \t0-51\n");
	struct topology *t = topology_new(m);

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_string_equal(m->gpus[0].pci->name, "no-address-0");
	assert_string_equal(m->gpus[1].model.value, "NVIDIA H100 80GB HBM3");
	assert_fact(m->gpus[0].nvlinks[0].active, 1, "a:2");
	assert_fact(m->gpus[0].nvlinks[1].active, 0, "a:3");
	assert_fact(machine_pair(m, 0, 1)->nvlinks, 18, "a:7");
	assert_int_equal(topology_path(t, 0, 1)->class, PATH_NVLINK);
	topology_free(t);
	machine_free(m);
}

/* A matrix with less rows than columns was cut: the rest is unknown. */
static void smi_cut(void **state)
{
	struct machine *m = machine_of_one("\tGPU0\tGPU1\tGPU2\tCPU Affinity\n"
					   "GPU0\t X \tPIX\tSYS\t0-31\n"
					   "GPU1\tPIX\t X \n");

	(void)state;
	assert_int_equal(m->gpu_n, 3);
	assert_true(m->text_parts[0].cut);
	assert_fact(machine_pair(m, 0, 2)->common_ancestor, NVML_LEVEL_SYSTEM, "a:2");
	assert_true(fact_unknown(machine_pair(m, 1, 2)->common_ancestor));
	machine_free(m);
}

/* ---- the kernel's ---- */

static void log_forms(void **state)
{
	static const char *const stamps[] = {
		"[   12.345678] ",
		"[Sun Nov 22 09:40:35 2026] ",
		"[Nov22 09:40] ",
		"[  +0.000009] ",
		"[    0.425766 <    0.000009>] ",
		"kern  :info  : [    0.100000] ",
		"kern  :warn  : 2025-01-21T04:41:44,285060+00:00 ",
		"<6>[    0.100000] ",
		"2026-11-22T09:40:35,000000+00:00 ",
		"Nov 22 09:40:35 host kernel: ",
		"2026-11-22T09:40:35+00:00 host kernel: ",
		"6,3973,227996636,-;",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
		AUTO_FREE char *text = xprintf(
			"see\n\n    %sNVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n",
			stamps[i]);
		struct machine *m = machine_of_one(text);

		if (m->log_n != 1)
			fail_msg("'%s': %zu lines", stamps[i], m->log_n);
		assert_true(fact_is(m->log[0].code, 79));
		assert_true(fact_unknown(m->log_read)); /* what is missing proves nothing */
		machine_free(m);
	}
}

#define XID_LINE "NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus."
/* 2026-11-22 09:40:35 UTC */
#define STAMP "1795340435123456"

/*
 * dmesg -J and the forms of JSON of journalctl: lines of the log, at the line where a message ends.
 */
static void logs_as_json(void **state)
{
	static const struct {
		const char *text;
		int64_t time_us;
	} pages[] = {
		{"see\n```\n{\n   \"dmesg\": [\n      {\n         \"pri\": 5,\n         \"time\":     0.000000,\n"
		 "         \"msg\": \"usb\"\n      },{\n         \"pri\": 3,\n"
		 "         \"time\":    12.345678,\n         \"msg\": \"" XID_LINE
		 "\"\n      }\n   ]\n}\n```\n",
		 12345678},
		{"{\n   \"dmesg\": [\n      {\n         \"fac\": \"kern\",\n         \"pri\": \"warn\",\n"
		 "         \"time\": \"Sun Nov 22 09:40:35 2026\",\n         \"caller\": \"T12\",\n"
		 "         \"msg\": \"" XID_LINE "\"\n      }\n   ]\n}\n",
		 -1},
		{"{\"__CURSOR\":\"s=1\",\"MESSAGE\":\"" XID_LINE
		 "\",\"_TRANSPORT\":\"kernel\",\"_HOSTNAME\":\"box\",\"__REALTIME_TIMESTAMP\":\"" STAMP
		 "\"}\n",
		 -1},
		{"data: {\"_TRANSPORT\":\"kernel\",\"MESSAGE\":\"" XID_LINE
		 "\",\"__REALTIME_TIMESTAMP\":\"" STAMP "\"}\n\n",
		 -1},
		{"{\n\t\"PRIORITY\" : \"3\",\n\t\"MESSAGE\" : \"" XID_LINE
		 "\",\n\t\"_TRANSPORT\" : \"kernel\",\n\t\"__REALTIME_TIMESTAMP\" : \"" STAMP
		 "\",\n\t\"_HOSTNAME\" : \"box\"\n}\n",
		 -1},
		/*
		 * As jq -c prints them: all messages on one line, or each on one; the last may be
		 * cut off.
		 */
		{"{\"dmesg\":[{\"pri\":5,\"time\":0.1,\"msg\":\"usb\"},{\"pri\":3,\"time\":12.345678,"
		 "\"msg\":\"" XID_LINE "\"}]}\n",
		 12345678},
		{"{\"dmesg\": [{\"pri\":3,\"time\":12.345678,\"msg\":\"" XID_LINE
		 "\"}, {\"pri\":3,\"ti",
		 12345678},
		{"{\"fac\":\"kern\",\"pri\":3,\"time\":12.345678,\"msg\":\"" XID_LINE "\"}\n",
		 12345678},
		{"[{\"_TRANSPORT\":\"kernel\",\"MESSAGE\":\"usb\"},{\"MESSAGE\":\"" XID_LINE
		 "\",\"_TRANSPORT\":\"kernel\",\"__REALTIME_TIMESTAMP\":\"" STAMP "\"}]\n",
		 -1},
		/* Bytes that are not UTF-8, "NVRM: Xid (PCI:0000:01:00): 79, \xff" */
		{"{\"_TRANSPORT\":\"kernel\",\"__REALTIME_TIMESTAMP\":\"" STAMP
		 "\",\"MESSAGE\":[78,86,82,77,58,32,88,105,100,32,40,80,67,73,58,48,48,48,48,58,48,49,58,48,"
		 "48,41,58,32,55,57,44,32,255]}\n",
		 -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		struct machine *m = machine_of_one(pages[i].text);

		if (m->log_n != 1)
			fail_msg("%zu: %zu lines", i, m->log_n);
		assert_true(fact_is(m->log[0].code, 79));
		assert_int_equal(m->log[0].time_us, pages[i].time_us);
		assert_int_equal(m->gpu_n, 1);
		assert_string_equal(m->gpus[0].pci->name, "0000:01:00.0");
		machine_free(m);
	}
}

#define VERBOSE "Sun 2026-11-22 10:40:35.123456 CET [s=0f2;i=1b;b=7;m=9;t=660da44e2ed00;x=a]\n"
#define EXPORT  "__CURSOR=s=0f2;i=1b\n__REALTIME_TIMESTAMP=" STAMP "\n_TRANSPORT=kernel\n"
#define OTHER   "__CURSOR=s=0f2;i=1a\n_TRANSPORT=kernel\nMESSAGE=usb\n_HOSTNAME=box\n\n"
#define LISTING "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"

/*
 * journalctl -o verbose and -o export: fields come in any order, so a message ends with the last of
 * them. A value with line breaks has a size of 8 bytes in front, which may contain line breaks
 * itself, and whose NULs a page loses.
 */
static void logs_as_fields(void **state)
{
	static const struct {
		const char *text;
		size_t size; /* 0: to its NUL */
	} pages[] = {
		{"$ journalctl -k -o verbose\n" VERBOSE
		 "    MESSAGE=usb\n    _TRANSPORT=kernel\n" VERBOSE
		 "    PRIORITY=3\n    MESSAGE=" XID_LINE
		 "\n            more\n    _TRANSPORT=kernel\n"
		 "    _HOSTNAME=box\n$ nvidia-smi -L\n" LISTING,
		 0},
		{"> " VERBOSE ">     MESSAGE=" XID_LINE "\n>     _TRANSPORT=kernel\n> \n> " LISTING,
		 0},
		/* A page has lost the indentation. */
		{VERBOSE "_TRANSPORT=kernel\nMESSAGE=" XID_LINE
			 "\n_HOSTNAME=box\nNCCL_DEBUG=INFO\n",
		 0},
		{OTHER EXPORT "MESSAGE=" XID_LINE "\n_HOSTNAME=box\n\n" LISTING, 0},
		/* Without the empty lines, and cut off behind the message. */
		{"__REALTIME_TIMESTAMP=1\nMESSAGE=usb\n" EXPORT "MESSAGE=" XID_LINE "\n", 0},
#define SIZED(TEXT) TEXT, sizeof(TEXT) - 1
		{SIZED(OTHER EXPORT "MESSAGE\n\x47\0\0\0\0\0\0\0" XID_LINE
				    "\nmore\n_HOSTNAME=box\n\n" LISTING)},
		{SIZED(EXPORT "NAME\n\n\0\0\0\0\0\0\0"
			      "0123\n56789\nMESSAGE=" XID_LINE "\n\n")},
		{SIZED(EXPORT "MESSAGE\n\x47" XID_LINE "\nmore\n_HOSTNAME=box\n\n")},
		{SIZED(EXPORT "MESSAGE\n\x0f" XID_LINE "\n_HOSTNAME=box\n\n")},
#undef SIZED
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		struct machine *m =
			machine_of_host(pages[i].text,
					pages[i].size ? pages[i].size : strlen(pages[i].text),
					NULL);

		if (m->log_n != 1)
			fail_msg("%zu: %zu lines", i, m->log_n);
		assert_true(fact_is(m->log[0].code, 79));
		assert_int_equal(m->gpu_n, 1);
		assert_string_equal(m->gpus[0].pci->name, "0000:01:00.0");
		machine_free(m);
	}
}

/*
 * The message of another program, one without a message, and other lines of NAME=VALUE, are no
 * kernel log.
 */
static void fields_that_are_no_log(void **state)
{
	static const char *const texts[] = {
		VERBOSE "    _TRANSPORT=stdout\n    SYSLOG_IDENTIFIER=python\n    MESSAGE=usb\n",
		VERBOSE "    _TRANSPORT=kernel\n    PRIORITY=3\n",
		VERBOSE "    _TRANSPORT=kernel\n    MESSAGE=[2.1M blob data]\n",
		"_TRANSPORT=kernel\nMESSAGE=" XID_LINE "\n",
		EXPORT "MESSAGE\n\xff",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (pasted_recognise(texts[i], strlen(texts[i]))) {
			struct machine *m = machine_of_host(texts[i], strlen(texts[i]), NULL);

			if (m->log_n)
				fail_msg("%zu is read", i);
			machine_free(m);
		}
}

/*
 * A message that is cut off, or of which only a part is given, and JSON of other programs, say
 * nothing.
 */
static void json_that_is_no_log(void **state)
{
	static const char *const texts[] = {
		"{\n\t\"PRIORITY\" : \"3\",\n\t\"MESSAGE\" : \"" XID_LINE "\",\n",
		"{\"MESSAGE\":\"" XID_LINE "\",\"_TRANSPORT\":\"ker",
		"{\"MESSAGE\":null,\"_TRANSPORT\":\"kernel\"}\n",
		"{\n  \"msg\": \"" XID_LINE "\"\n}\n",
		"{\n  \"dmesg\": [\n    {\n      \"text\": \"" XID_LINE "\"\n    }\n  ]\n}\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (pasted_recognise(texts[i], strlen(texts[i])))
			fail_msg("%zu is read", i);
}

/*
 * What collect_env of PyTorch and vLLM, and check_env of SGLang, print besides the outputs of other
 * tools.
 */
static void collected_environments(void **state)
{
	static const char *const texts[] = {
		"PyTorch version: 2.5.1+cu124\n"
		"Python platform: Linux-6.8.0-47-generic-x86_64-with-glibc2.35\n"
		"GPU models and configuration: \n"
		"GPU 0: NVIDIA H100 80GB HBM3\n"
		"GPU 1: NVIDIA H100 80GB HBM3\n"
		"\n"
		"Nvidia driver version: 550.90.12\n"
		"[pip3] numpy==1.26.4\n"
		"[pip3] nvidia-nccl-cu12==2.21.5\n",
		"Python: 3.11.5\n"
		"GPU 0,1: NVIDIA H100 80GB HBM3\n"
		"GPU 0,1 Compute Capability: 9.0\n"
		"CUDA Driver Version: 550.90.12\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct machine *m = machine_of_one(texts[i]);

		assert_int_equal(m->gpu_n, 2);
		assert_string_equal(m->gpus[1].model.value, "NVIDIA H100 80GB HBM3");
		assert_string_equal(m->driver.module_version.value, "550.90.12");
		if (i == 0) {
			assert_string_equal(m->kernel.release.value, "6.8.0-47-generic");
			assert_fact(m->nccl.version, 22105, "a:9");
		}
		machine_free(m);
	}
}

/* A page about GPUDirect RDMA: perftest with GPU memory fails, and with host memory works. */
static void perftest_pages(void **state)
{
	struct machine *m = machine_of_one(
		"initializing CUDA\n"
		"cuMemAlloc() of a 131072 bytes GPU buffer\n"
		"Couldn't allocate MR with error=14\n"
		"failed to create mr\n"
		"\n"
		"---------------------------------------------------------------------------------------\n"
		"                    RDMA_Write BW Test\n"
		" Dual-port       : OFF\t\tDevice         : mlx5_3\n"
		" Number of qps   : 1\t\tTransport type : IB\n"
		" Link type       : IB\n"
		"---------------------------------------------------------------------------------------\n"
		" local address: LID 0x04 QPN 0x01bf PSN 0x7eb6b7 RKey 0x00801f VAddr 0x007f1b3d600000\n"
		" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
		" 65536      5000             11673.25            11672.17            0.186755\n"
		"---------------------------------------------------------------------------------------\n");

	(void)state;
	assert_int_equal(m->observed_n, 2);
	assert_int_equal(m->observed[0].failure.kind, RUN_RDMA_ERROR);
	assert_string_equal(m->observed[0].from, "a:3");
	assert_int_equal(m->observed[1].message, MESSAGE_NIC_RATE_HOST);
	assert_string_equal(m->observed[1].from, "a:14");
	assert_true(m->observed[1].value > 12.23 && m->observed[1].value < 12.25); /* MiB/s */
	assert_int_equal(m->rdma_n, 1);
	assert_string_equal(m->rdma[0].name, "mlx5_3");
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

/* Forms of issues lose line breaks. */
static void gpus_in_one_line(void **state)
{
	struct machine *m = machine_of_one("GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1) "
					   "GPU 1: NVIDIA GeForce RTX 3090 (UUID: GPU-2)\n");

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_string_equal(m->text_parts[0].about, "2 GPUs");
	assert_string_equal(m->gpus[1].model.value, "NVIDIA GeForce RTX 3090");
	machine_free(m);
}

/* Lines that only look like a log of the kernel. */
static void no_log(void **state)
{
	static const char *const texts[] = {
		"kernel : 6.5.0-28-generic\n",
		"kernel=6.6.43\n",
		"kernel.yama.ptrace_scope = 0\n",
		"[1613602600.236562] [host1:2:0]  cuda_ipc_cache.c:114  UCX  WARN  something\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct machine *m = machine_of_one(texts[i]);

		assert_int_equal(m->text_part_n, 1);
		assert_null(m->text_parts[0].name); /* not used */
		machine_free(m);
	}
}

static void whole_log(void **state)
{
	struct machine *m = machine_of_one(
		"[    0.000000] Linux version 6.8.0-45-generic (buildd@x) (gcc-13 (Ubuntu) 13.2.0) #45\n"
		"[    0.000000] Kernel command line: BOOT_IMAGE=/vmlinuz ro iommu=pt\n"
		"[    0.400000] pci 0000:01:00.0: [10de:2684] type 00\n");

	(void)state;
	assert_true(fact_is(m->log_read, 1));
	assert_string_equal(m->kernel.release.value, "6.8.0-45-generic");
	assert_string_equal(m->kernel.release.from, "a:1");
	assert_string_equal(m->kernel.cmdline.value, "BOOT_IMAGE=/vmlinuz ro iommu=pt");
	machine_free(m);
}

static void modules(void **state)
{
	static const char few[] = "nvidia_peermem         16384  0\n";
	AUTO_STRBUF struct strbuf all = {0};
	struct machine *m = machine_of_one(few);

	(void)state;
	assert_fact(machine_module(m, "nvidia_peermem")->loaded, 1, "a:1");
	assert_true(fact_unknown(machine_module(m, "nv_peer_mem")->loaded));
	machine_free(m);
	strbuf_puts(&all, "Module                  Size  Used by\n");
	for (int i = 0; i < 20; i++)
		strbuf_printf(&all, "mod_%d                16384  0\n", i);
	strbuf_puts(&all, few);
	m = machine_of_one(strbuf_str(&all));
	assert_true(fact_is(machine_module(m, "nvidia_peermem")->loaded, 1));
	assert_true(fact_is(machine_module(m, "nv_peer_mem")->loaded, 0));
	machine_free(m);
}

/* ---- pages ---- */

/* Marks that mail, a page or a terminal puts around lines, and what each does to a text. */
static char *dressed(const char *text, const char *before, const char *after)
{
	AUTO_STRBUF struct strbuf out = {0};
	const char *line = text;

	while (*line) {
		size_t n = strcspn(line, "\n");

		strbuf_printf(&out, "%s%.*s%s\n", before, (int)n, line, after);
		line += n + (line[n] == '\n');
	}
	return xstrdup(strbuf_str(&out));
}

static char *without_tabs(const char *text)
{
	AUTO_STRBUF struct strbuf out = {0};

	for (; *text; text++)
		strbuf_puts(&out, *text == '\t' ? "        " : (const char[]){*text, '\0'});
	return xstrdup(strbuf_str(&out));
}

static void assert_same_facts(const char *text)
{
	struct machine *m = machine_of_one(text);

	assert_int_equal(m->gpu_n, 2);
	assert_true(fact_is(m->pci[0].acs_ctl, 0x1d));
	assert_true(fact_is(m->gpus[1].vram_bytes, 24564LL << 20));
	assert_true(fact_is(machine_pair(m, 0, 1)->common_ancestor, NVML_LEVEL_HOSTBRIDGE));
	assert_true(fact_is(m->gpus[0].pci->rebar_sizes, 0xffc0));
	machine_free(m);
}

static void quoted(void **state)
{
	static const char page[] = PORT CARD "\n" TABLE "\n" TOPO;
	static const struct {
		const char *before, *after;
	} dresses[] = {
		{"", ""},       {"> ", ""},   {">> ", ""},
		{"> > ", "\r"}, {"    ", ""}, {"\033[1m", "\033[0m"},
		{"", "\r"},     {"", "  "},   {"\xc2\xa0\xc2\xa0", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(dresses) / sizeof(dresses[0]); i++) {
		AUTO_FREE char *text = dressed(page, dresses[i].before, dresses[i].after);
		AUTO_FREE char *blanks = without_tabs(text);

		assert_same_facts(text);
		assert_same_facts(blanks);
	}
}

static void parts_of_a_page(void **state)
{
	static const char page[] = "It is slow.\n\n```\n$ nvidia-smi topo -m\n" TOPO "```\n"
				   "<details>\n" TABLE "</details>\nthanks\n";
	struct machine *m = machine_of_one(page);

	(void)state;
	assert_int_equal(m->text_part_n, 5);
	assert_null(m->text_parts[0].name);
	assert_string_equal(m->text_parts[1].name, "nvidia-smi topo -m");
	assert_string_equal(m->text_parts[1].about, "2 GPUs");
	assert_int_equal(m->text_parts[1].first, 5);
	assert_int_equal(m->text_parts[1].last, 13);
	assert_string_equal(m->text_parts[3].name, "nvidia-smi");
	assert_int_equal(m->text_parts[3].first, 16);
	assert_int_equal(m->text_parts[4].last, 24);
	machine_free(m);
}

/* ---- several texts ---- */

static void two_texts(void **state)
{
	const char *const texts[][2] = {{PORT CARD, TABLE}, {TABLE, PORT CARD}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct machine *m = machine_of_texts(texts[i], 2);

		assert_int_equal(m->gpu_n, 2);
		assert_int_equal(m->trouble_n, 0);
		assert_true(fact_is(m->gpus[0].vram_bytes, 24564LL << 20));
		assert_true(fact_is(m->gpus[0].pci->rebar_sizes, 0xffc0));
		machine_free(m);
	}
}

/* Neither is believed, and both lines are named. */
static void disagreement(void **state)
{
	const char *const texts[] = {
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31\n",
		"\n\nNVRM version: NVIDIA UNIX x86_64 Kernel Module  570.10.01  Fri May 31\n"};
	struct machine *m = machine_of_texts(texts, 2);

	(void)state;
	assert_true(fact_unknown(m->driver.module_version));
	assert_int_equal(m->trouble_n, 1);
	assert_string_equal(m->troubles[0].where, "a:1 and b:3");
	machine_free(m);
}

/* Neither value counts, and both lines are named. */
/* Tools that print less of the same do not contradict each other, in any order. */
static void shortened(void **state)
{
#define UNAME                                                                                      \
	"Linux box 6.8.0-45-generic #45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024 x86_64\n"
#define VERSION                                                                                    \
	"Linux version 6.8.0-45-generic (buildd@lcy02) (x86_64-linux-gnu-gcc-13 (Ubuntu "          \
	"13.2.0-23ubuntu4) 13.2.0) #45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024"
#define BOOT_LINE "[    0.000000] " VERSION " (Ubuntu 6.8.0-45.45-generic 6.8.12)\n"
#define MODULE    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.09  Release Build\n"
	static const struct {
		const char *text;
		size_t troubles;
	} rows[] = {
		{UNAME VERSION "\n" BOOT_LINE, 0},
		{BOOT_LINE "\n" VERSION "\n" UNAME, 0},
		{MODULE "\n" MODULE "GCC version:  gcc version 13.2.0\n", 0},
		{MODULE "GCC version:  gcc version 13.2.0\n\n" MODULE, 0},
		{"Linux box 6.8.0-4 #4 SMP\n" VERSION "\n", 1},
		{"Linux box 6.8.0-47-generic #47 SMP\n" VERSION "\n", 1},
		{"$ cat /proc/cmdline\nroot=/dev/sda1 ro\n$ cat /proc/cmdline\nroot=/dev/sda1 ro iommu=pt\n",
		 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine *m = machine_of_one(rows[i].text);

		if (m->trouble_n != rows[i].troubles)
			fail_msg("row %zu: %zu, %s", i, m->trouble_n,
				 m->trouble_n ? m->troubles[0].what : "");
		if (i < 2)
			assert_int_equal(fact_or(m->kernel.compiler_major, 0), 13);
		machine_free(m);
	}
#undef UNAME
#undef VERSION
#undef BOOT_LINE
#undef MODULE
}

static void variable_of_two_values(void **state)
{
	struct machine *m = machine_of_one("export NCCL_P2P_LEVEL=SYS\nexport NCCL_DEBUG=INFO\n\n"
					   "export NCCL_P2P_LEVEL=LOC\n");

	(void)state;
	assert_int_equal(m->nccl.setting_n, 1);
	assert_string_equal(m->nccl.settings[0].name, "NCCL_DEBUG");
	assert_int_equal(m->trouble_n, 1);
	assert_string_equal(m->troubles[0].where, "a:1 and a:4");
	assert_string_equal(m->troubles[0].what, "disagree about NCCL_P2P_LEVEL: 'SYS' and 'LOC'");
	machine_free(m);
}

static void assert_setting(const struct machine *m, size_t i, const char *name, const char *value)
{
	assert_true(i < m->nccl.setting_n);
	assert_string_equal(m->nccl.settings[i].name, name);
	assert_string_equal(m->nccl.settings[i].value, value);
}

/*
 * A shell's line goes on behind a value: with another variable, with the command, with a comment.
 */
static void variables_in_front_of_commands(void **state)
{
	struct machine *m =
		machine_of_one("NCCL_DEBUG=INFO NCCL_P2P_LEVEL=\"SYS\" torchrun --nnodes 1 a.py\n"
			       "export NCCL_IB_HCA==mlx5_0:1,mlx5_1:1  # only port 1\n"
			       "export NCCL_SOCKET_IFNAME=eth0, eth1\n");

	(void)state;
	assert_int_equal(m->trouble_n, 0);
	assert_int_equal(m->nccl.setting_n, 4);
	assert_setting(m, 0, "NCCL_DEBUG", "INFO");
	assert_setting(m, 1, "NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1");
	assert_setting(m, 2, "NCCL_P2P_LEVEL", "SYS");
	assert_setting(m, 3, "NCCL_SOCKET_IFNAME", "eth0, eth1");
	machine_free(m);
}

#define LAUNCH "[2024-09-08 23:02:49,632] [INFO] [launch.py:139:main] "

/* What DeepSpeed's launcher says of its environment; its other lines have no variables of it. */
static void variables_of_deepspeed(void **state)
{
	struct machine *m = machine_of_one(
		LAUNCH
		"0 NV_LIBNCCL_PACKAGE=libnccl2=2.15.5-1+cuda11.8\n" LAUNCH
		"0 NCCL_P2P_LEVEL=SYS\n" LAUNCH "0 NCCL_SOCKET_IFNAME=eth0, eth1\n"
		"[2024-09-08 23:02:49,632] [INFO] [launch.py:146:main] WORLD INFO DICT: {'localhost': [0, 1]}\n"
		"[2024-09-08 23:02:49,632] [INFO] [launch.py:168:main] Setting CUDA_VISIBLE_DEVICES=2,3\n"
		"[2024-09-08 23:02:49,633] [INFO] [launch.py:256:main] process 5 spawned with command: "
		"['python', 'NCCL_DEBUG=INFO']\n"
		"[INFO] [trainer.py:139:main] 0 NCCL_IB_DISABLE=1\n");

	(void)state;
	assert_int_equal(m->nccl.setting_n, 2);
	assert_setting(m, 0, "NCCL_P2P_LEVEL", "SYS");
	assert_setting(m, 1, "NCCL_SOCKET_IFNAME", "eth0, eth1");
	machine_free(m);
}

/* What two texts disagree about is named as their tools name it, not as onehop stores it. */
static void disagreements_in_words(void **state)
{
	static const char first[] = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n";
	static const char second[] = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n";
	static const char third[] = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n";
	static const char fourth[] = "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n";
	const char *const nvlinks[] = {first, second}, *const levels[] = {third, fourth};
	struct machine *m = machine_of_texts(nvlinks, 2);

	(void)state;
	assert_string_equal(m->troubles[0].what,
			    "disagree about NVLink between GPU0 and GPU1: 'NV4' and 'NV2'");
	machine_free(m);
	m = machine_of_texts(levels, 2);
	assert_string_equal(m->troubles[0].what,
			    "may be of different machines: they disagree about the distance "
			    "between GPU0 and GPU1: 'PIX' and 'SYS'; 1 other value differs");
	machine_free(m);
}

/*
 * An idle GPU's link is slower than a busy one's: that is no contradiction, and neither value
 * counts.
 */
static void values_of_two_moments(void **state)
{
	static const char format[] = "GPU 00000000:01:00.0\n"
				     "    Performance State                     : %s\n"
				     "    BAR1 Memory Usage\n"
				     "        Total                             : 256 MiB\n";
	char busy[256], idle[256];
	const char *const texts[] = {busy, idle};
	struct machine *m;

	(void)state;
	snprintf(busy, sizeof(busy), format, "P0");
	snprintf(idle, sizeof(idle), format, "P8");
	m = machine_of_texts(texts, 2);
	assert_int_equal(m->trouble_n, 0);
	assert_true(fact_is(m->gpus[0].bar1_bytes, 256LL << 20));
	assert_true(fact_unknown(m->gpus[0].performance_state));
	machine_free(m);
}

/* The version that NCCL prints even without a log is no log, and nothing that could not be read. */
static void version_of_nccl_alone(void **state)
{
	struct machine *m = machine_of_one("NCCL version 2.10.3+cuda11.3\n\n"
					   "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n");

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

/* ---- RDMA tools ---- */

static const struct rdma_device *nic_named(const struct machine *m, const char *name)
{
	for (size_t i = 0; i < m->rdma_n; i++)
		if (strcmp(m->rdma[i].name, name) == 0)
			return &m->rdma[i];
	return NULL;
}

#define IBSTAT                                                                                     \
	"CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.1002\n"   \
	"\tNode GUID: 0xa088c20300e1a258\n\tPort 1:\n\t\tState: Active\n"                          \
	"\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"                  \
	"CA 'mlx5_1'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Down\n"                             \
	"\t\tPhysical state: Disabled\n\t\tRate: 10\n\t\tLink layer: InfiniBand\n"

/*
 * Each tool states a part, and one that asks for all NICs is not told from one that asks for some.
 */
static void rdma_tools(void **state)
{
	struct machine *m = machine_of_one(
		"$ ibstat\n" IBSTAT "ibpanic: [22] main: stat of IB device 'mlx5_8' failed\n"
		"$ ibdev2netdev -v\n0000:18:00.0 mlx5_0 (MT4129 - MCX75310AAS-NEAT ) fw 28.39.1002 "
		"port 1 (ACTIVE) ==> ib0 (Up)\n$ rdma link\n"
		"link mlx5_1/1 state DOWN physical_state DISABLED\n$ ofed_info -s\n"
		"MLNX_OFED_LINUX-24.10-0.7.0.0:\n");
	const struct rdma_device *up = nic_named(m, "mlx5_0"), *down = nic_named(m, "mlx5_1");

	(void)state;
	assert_int_equal(m->rdma_n, 2);
	assert_true(fact_unknown(m->rdma_listed));
	assert_string_equal(up->ports[0].state.value, "ACTIVE");
	assert_true(fact_is(up->ports[0].rate_mbps, 400000));
	assert_int_equal(up->pci->address.bus, 0x18);
	assert_string_equal(down->ports[0].phys_state.value, "Disabled");
	assert_true(fact_unknown(down->firmware));
	assert_string_equal(m->peermem.ofed.value, "MLNX_OFED_LINUX-24.10-0.7.0.0");
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

#define LSCPU                                                                                      \
	"CPU(s):                  64\n  On-line CPU(s) list:   0-63\n"                             \
	"Vendor ID:               AuthenticAMD\n  Model name:            AMD EPYC 7302\n"          \
	"    CPU family:          23\n    Model:               49\n    Socket(s):           2\n"

static void cpu_lines(void **state)
{
	struct machine *bare = machine_of_one(LSCPU "    Flags:               fpu vme\n"
						    "Virtualization features:\n"),
		       *wrapped = machine_of_one(LSCPU "    Flags:               fpu vme\nhyper\n"),
		       *guest = machine_of_one(
			       LSCPU "Virtualization features:\n  Hypervisor vendor:     KVM\n"),
		       *cut = machine_of_one(LSCPU),
		       *other = machine_of_one("Model name: a bicycle\nVendor ID: 7\n"),
		       *two = machine_of_one(LSCPU "$ lscpu\nSocket(s): 1\nCPU(s): 64\n");

	(void)state;
	assert_fact(bare->cpu.family, 23, "a:3");
	assert_true(fact_is(bare->cpu.model, 49));
	assert_true(fact_is(bare->cpu.sockets, 2));
	assert_true(fact_is(bare->cpu.vendor, CPU_AMD));
	assert_string_equal(bare->cpu.name.value, "AMD EPYC 7302");
	assert_true(fact_absent(bare->kernel.hypervisor));
	assert_string_equal(guest->kernel.hypervisor.value, "kvm");
	assert_true(fact_unknown(cut->kernel.hypervisor));
	assert_true(fact_unknown(wrapped->kernel.hypervisor));
	assert_int_equal(other->text_part_n, 1);
	assert_null(other->text_parts[0].name);
	assert_true(fact_unknown(two->cpu.sockets));
	assert_int_equal(two->trouble_n, 1);
	machine_free(bare);
	machine_free(guest);
	machine_free(cut);
	machine_free(wrapped);
	machine_free(other);
	machine_free(two);
}

/* What vLLM found is a checked copy: of each ordered pair, and only of those that it names. */
static void vllm_cache(void **state)
{
	struct machine *m =
		machine_of_one("$ cat gpu_p2p_access_cache_for_0,1.json\n{\n    \"0->0\": true,\n"
			       "    \"0->1\": true,\n    \"1->0\": false\n}\n");
	struct machine *line = machine_of_one("{\"0->1\": true, \"1->0\": true}\n");
	struct machine *other = machine_of_one("{\"a->b\": true, \"1-0\": true}\n");
	struct machine *cut = machine_of_one("{\n    \"0->1\": true,\n    \"1->");
	struct machine *cut_line = machine_of_one("{\"0->1\": true, \"1->0\": fal");

	(void)state;
	assert_false(line->text_parts[0].cut);
	assert_true(cut->text_parts[1].cut);
	assert_true(cut_line->text_parts[0].cut);
	machine_free(cut);
	machine_free(cut_line);
	assert_int_equal(m->gpu_n, 2);
	assert_int_equal(m->observed_n, 2);
	assert_int_equal(m->observed[0].kind, OBSERVED_PEER_COPY);
	assert_true(m->observed[0].ok);
	assert_string_equal(m->observed[0].from, "a:4");
	assert_false(m->observed[1].ok);
	assert_int_equal(m->observed[1].initiator, 1);
	assert_int_equal(line->observed_n, 2);
	assert_int_equal(other->observed_n, 0);
	machine_free(m);
	machine_free(line);
	machine_free(other);
}

/* Two tools, and two forms of one, in a page: each is a result of its own. */
static void nvbandwidth(void **state)
{
	static const char text[] =
		"$ ./nvbandwidth\nnvbandwidth Version: v0.8\n\nDriver Version: 570.124.06\n\ngpu7\n"
		"Device 0: NVIDIA H200 (00000000:23:00)\nDevice 1: NVIDIA H200 (00000000:24:00)\n\n"
		"Running device_to_device_memcpy_read_ce.\n"
		"memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
		"           0         1\n 0       N/A     24.91\n 1     24.87       N/A\n\n"
		"SUM device_to_device_memcpy_read_ce 49.78\n\n"
		"Running device_to_device_memcpy_write_ce.\n"
		"memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n"
		"           0         1\n 0       N/A     24.91\n```\nand with -j\n```\n"
		"{\n\"nvbandwidth\": {\n\"GPU Device list\": [\"0: H (00000000:23:00)\", "
		"\"1: H (00000000:24:00)\"],\n\"testcases\": [{\"name\": "
		"\"device_to_device_memcpy_read_ce\", \"bandwidth_matrix\": "
		"[[\"N/A\", \"12\"], [\"13\", \"N/A\"]]}]\n}\n}\n```\n"
		"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
		"Device: 0, NVIDIA H200, pciBusID: 23, pciDeviceID: 0, pciDomainID:0\n"
		"Device: 1, NVIDIA H200, pciBusID: 24, pciDeviceID: 0, pciDomainID:0\n"
		"P2P Connectivity Matrix\n     D\\D     0     1\n     0       1     1\n     1       1     1\n";
	struct machine *m = machine_of_one(text);
	size_t rates = 0, access = 0;

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_string_equal(m->gpus[1].pci->name, "0000:24:00.0");
	for (size_t i = 0; i < m->observed_n; i++) {
		rates += m->observed[i].kind == OBSERVED_BANDWIDTH;
		access += m->observed[i].kind == OBSERVED_PEER_ACCESS;
	}
	assert_int_equal(rates, 4);
	assert_int_equal(access, 2);
	machine_free(m);
}

static void ibstatus_lines(void **state)
{
	struct machine *m = machine_of_one(
		"Infiniband device 'mlx5_0' port 1 status:\n"
		"\tdefault gid:\t fe80:0000:0000:0000:a088:c203:00e1:a258\n\tbase lid:\t 0x1\n"
		"\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n"
		"\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n\n"
		"Infiniband device 'mlx5_1' port 1 status:\n\tstate:\t\t 1: DOWN\n");

	(void)state;
	assert_int_equal(m->rdma_n, 2);
	assert_true(fact_is(m->rdma[0].ports[0].rate_mbps, 200000));
	assert_string_equal(m->rdma[1].ports[0].state.value, "DOWN");
	machine_free(m);
}

#define GIDS                                                                                       \
	"DEV     PORT    INDEX   GID        IPv4    VER     DEV\n"                                 \
	"---     ----    -----   ---        ----    ---     ---\n"                                 \
	"mlx5_2  1       0       fe80:0000:0000:0000:ee0d:9aff:fe2b:c4ce        v1      eth2\n"    \
	"mlx5_2  1       3       0000:0000:0000:0000:0000:ffff:0a01:0203 10.1.2.3 v2      eth2\n"

/* A table that is cut shows what it has, and not what the port lacks. */
static void gid_tables(void **state)
{
	static const char devinfo[] =
		"hca_id:\tmlx5_2\n\tvendor_part_id:\t\t\t4123\n\t\tport:\t1\n"
		"\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tactive_width:\t\t4X (2)\n"
		"\t\t\tactive_speed:\t\t25.0 Gbps (32)\n\t\t\tlink_layer:\t\tEthernet\n"
		"\t\t\tGID[  3]:\t\t::ffff:10.1.2.3, RoCE v2\n";
	struct machine *whole = machine_of_one(GIDS "n_gids_found=2\n"),
		       *cut = machine_of_one(GIDS), *of = machine_of_one(devinfo);
	const struct rdma_port *p = &whole->rdma[0].ports[0], *v = &of->rdma[0].ports[0];

	(void)state;
	assert_true(fact_is(p->gids_listed, 1));
	assert_int_equal(p->gid_n, 2);
	assert_int_equal(rdma_routed_gid(p)->index, 3);
	assert_true(fact_unknown(cut->rdma[0].ports[0].gids_listed));
	assert_int_equal(cut->rdma[0].ports[0].gid_n, 2);
	assert_true(fact_unknown(v->gids_listed));
	assert_true(fact_is(v->rate_mbps, 100000));
	assert_string_equal(v->gids[0].gid.value, p->gids[1].gid.value);
	assert_string_equal(of->rdma[0].hca_type.value, "MT4123");
	machine_free(whole);
	machine_free(cut);
	machine_free(of);
}

/* ---- less text, fewer facts ---- */

static size_t known_facts(const struct machine *m)
{
	size_t n = m->pci_n + m->log_n + fact_known(m->driver.module_version);

	for (size_t i = 0; i < m->pci_n; i++) {
		const struct pci_function *f = &m->pci[i];

		n += !fact_unknown(f->acs_ctl) + !fact_unknown(f->rebar_sizes) +
		     !fact_unknown(f->link_speed) + f->bars_known + fact_known(f->driver) +
		     fact_known(f->port_type) + !fact_unknown(f->numa_node);
	}
	for (size_t i = 0; i < m->gpu_n; i++)
		n += fact_known(m->gpus[i].model) + fact_known(m->gpus[i].vram_bytes) +
		     fact_known(m->gpus[i].bar1_bytes);
	for (size_t i = 0; i < m->gpu_n * m->gpu_n; i++)
		n += fact_known(m->pairs[i].common_ancestor) +
		     fact_known(m->pairs[i].p2p[P2P_READ]);
	return n;
}

static void cut_texts(void **state)
{
	static const char page[] =
		PORT CARD "\n" TABLE "\n" TOPO "\n$ topo -p2p r\n" P2P "\n" QUERY;
	struct machine *m = machine_of_one(page);
	size_t all = known_facts(m), size = strlen(page);

	(void)state;
	machine_free(m);
	for (size_t i = 1; i < 64; i++) {
		AUTO_FREE char *head = xstrndup(page, size * i / 64);
		const char *tail = page + size * i / 64;

		m = machine_of_one(head);
		assert_true(known_facts(m) <= all);
		machine_free(m);
		m = machine_of_one(tail);
		assert_true(known_facts(m) <= all);
		machine_free(m);
	}
}

/* ---- less text, no better verdict ---- */

static struct diagnosis *judge(const char *text, struct machine **m, struct topology **t)
{
	*m = machine_of_one(text);
	*t = topology_new(*m);
	return diagnose(*t);
}

static void release(struct diagnosis *d, struct topology *t, struct machine *m)
{
	diagnosis_free(d);
	topology_free(t);
	machine_free(m);
}

/* The text without its line `n`; NULL: it has no such line. */
static char *without_line(const char *text, size_t n)
{
	const char *from = text, *end;

	while (n-- && *from)
		from = strchr(from, '\n') + 1;
	if (!*from)
		return NULL;
	end = strchr(from, '\n') + 1;
	return xprintf("%.*s%s", (int)(from - text), text, end);
}

/* Texts that disagree may agree without one of the lines. */
static bool may_improve(const struct outcome *o)
{
	return strcmp(o->rule->id, "machine-readable") == 0;
}

/*
 * Whatever line is lost, no rule that was unknown becomes ok, as long as the GPUs are the same. The
 * line that shows a fault may be: then nothing shows it.
 */
static void lost_lines(void **state)
{
	static const char *const pages[] = {
		PORT CARD "\n" TABLE "\n" TOPO "\n$ topo -p2p r\n"
			  " \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n",
		TABLE QUERY,
		"[    0.000000] Linux version 6.8.0 (x) (gcc) #1 SMP\n"
		"[    0.000000] Kernel command line: root=/dev/sda1 iommu=pt\n"
		"[   12.345678] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n" CARD,
	};

	(void)state;
	for (size_t k = 0; k < sizeof(pages) / sizeof(pages[0]); k++) {
		struct topology *t, *less_t;
		struct machine *m, *less_m;
		struct diagnosis *d = judge(pages[k], &m, &t);
		char *less;

		for (size_t n = 0; (less = without_line(pages[k], n)); n++) {
			struct diagnosis *less_d = judge(less, &less_m, &less_t);

			for (size_t i = 0; i < d->outcome_n; i++) {
				const struct outcome *was = &d->outcomes[i],
						     *is = &less_d->outcomes[i];

				if (is->verdict == VERDICT_OK && was->verdict == VERDICT_UNKNOWN &&
				    less_m->gpu_n == m->gpu_n && !may_improve(is))
					fail_msg("page %zu without line %zu: %s is ok", k, n + 1,
						 is->rule->id);
			}
			release(less_d, less_t, less_m);
			free(less);
		}
		release(d, t, m);
	}
}

/* ---- what a text does not say ---- */

static enum verdict verdict_of(const struct diagnosis *d, const char *id)
{
	for (size_t i = 0; i < d->outcome_n; i++)
		if (strcmp(d->outcomes[i].rule->id, id) == 0)
			return d->outcomes[i].verdict;
	fail_msg("there is no rule %s", id);
	return VERDICT_NA;
}

static const struct finding *finding_of(const struct diagnosis *d, const char *id)
{
	for (size_t i = 0; i < d->finding_n; i++)
		if (strcmp(d->findings[i].rule->id, id) == 0)
			return &d->findings[i];
	fail_msg("there is no finding %s", id);
	return NULL;
}

/* Whether nvidia-smi ran before or after the GPU fell off the bus, nothing says. */
static void lost_gpu_and_table(void **state)
{
	struct machine *m;
	struct topology *t;
	struct diagnosis *d = judge(TABLE "[ 1012.345678] NVRM: Xid (PCI:0000:01:00): 79, pid=1, "
					  "GPU has fallen off the bus.\n",
				    &m, &t);
	const char *sentence = finding_of(d, "xid-bus")->sentence;

	(void)state;
	assert_null(strstr(sentence, "NVML"));
	assert_null(strstr(sentence, "again"));
	assert_non_null(strstr(sentence, "before or after this error is unknown"));
	release(d, t, m);
}

/* nvidia-smi lists what it lists only if the text shows all of it. */
static void tables_of_some_gpus(void **state)
{
#define THIRD                                                                                       \
	"41:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)\n" \
	"\tKernel driver in use: nvidia\n\n"
	static const struct {
		const char *text;
		enum verdict verdict;
	} rows[] = {
		{THIRD TABLE, VERDICT_BAD},
		{THIRD "$ nvidia-smi\n" TABLE, VERDICT_BAD},
		{THIRD "$ nvidia-smi -i 0,1\n" TABLE, VERDICT_UNKNOWN},
		{THIRD "$ nvidia-smi -i 0,1\nThu Sep  4 10:00:00 2025\n" TABLE, VERDICT_UNKNOWN},
		/* cut at its end, at its start, and in between */
		{THIRD TABLE "|   2  NVIDIA GeForce RTX 40", VERDICT_UNKNOWN},
		{THIRD
		 "|   1  NVIDIA GeForce RTX 4090        Off |   00000000:25:00.0  On |   Off |\n"
		 "+-------------------------+-------+\n",
		 VERDICT_UNKNOWN},
		{THIRD
		 "| NVIDIA-SMI 550.90.07     Driver Version: 550.90.07      CUDA Version: 12.4 |\n"
		 "|   1  NVIDIA GeForce RTX 4090        Off |   00000000:25:00.0  On |   Off |\n"
		 "+-------------------------+-------+\n",
		 VERDICT_UNKNOWN},
		/* the log of a program that used two */
		{THIRD
		 "box:1:9 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 "
		 "commId 0x5 - Init START\n"
		 "box:2:9 [1] NCCL INFO comm 0x2 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 25000 "
		 "commId 0x5 - Init START\n",
		 VERDICT_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(rows[i].text, &m, &t);

		if (verdict_of(d, "gpu-listed") != rows[i].verdict)
			fail_msg("row %zu: %d", i, (int)verdict_of(d, "gpu-listed"));
		if (rows[i].verdict == VERDICT_BAD)
			assert_int_equal(finding_of(d, "gpu-listed")->confidence,
					 CONFIDENCE_LIKELY);
		release(d, t, m);
	}
#undef THIRD
}

static void p2p_reads_alone(void **state)
{
	static const char matrix[] = " \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n";
	AUTO_FREE char *page = xprintf("$ nvidia-smi topo -p2p r\n%s", matrix);
	struct machine *m;
	struct topology *t;
	struct diagnosis *d = judge(page, &m, &t);

	(void)state;
	assert_null(strstr(finding_of(d, "p2p-chipset")->sentence, "writes are allowed"));
	assert_int_equal(verdict_of(d, "gpu-listed"), VERDICT_UNKNOWN);
	release(d, t, m);
	/* Without its command the matrix lists GPUs, and no answer. */
	d = judge(matrix, &m, &t);
	assert_int_equal(m->gpu_n, 2);
	assert_true(fact_unknown(machine_pair(m, 0, 1)->p2p[P2P_READ]));
	assert_int_equal(verdict_of(d, "p2p-chipset"), VERDICT_UNKNOWN);
	release(d, t, m);
}

/*
 * Of GeForce cards the driver says CNS on any board, so that the board is no certain cause while a
 * model is unknown.
 */
static void a_denial_without_models(void **state)
{
	static const struct {
		const char *models, *rule;
		enum confidence confidence;
		bool asks;
	} rows[] = {
		{"", "p2p-chipset", CONFIDENCE_POSSIBLE, true},
		{"GPU 1: NVIDIA GeForce RTX 4090 (UUID: GPU-2)\n", "p2p-chipset",
		 CONFIDENCE_POSSIBLE, true},
		{"GPU 1: NVIDIA RTX A6000 (UUID: GPU-2)\n", "p2p-chipset", CONFIDENCE_CERTAIN,
		 false},
		{"GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1)\n"
		 "GPU 1: NVIDIA GeForce RTX 4090 (UUID: GPU-2)\n",
		 "p2p-geforce", CONFIDENCE_CERTAIN, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *page = xprintf("$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n"
					       " GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n\n"
					       "$ nvidia-smi -L\n%s",
					       rows[i].models);
		struct question asked[QUESTIONS_MAX];
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(page, &m, &t);
		size_t n = diagnosis_ask(d, asked);
		bool asks = false;

		for (size_t k = 0; k < n; k++)
			asks |= strcmp(asked[k].command, "nvidia-smi -L") == 0;
		assert_int_equal(finding_of(d, rows[i].rule)->confidence, rows[i].confidence);
		assert_int_equal(asks, rows[i].asks);
		release(d, t, m);
	}
}

/*
 * vLLM's own words leave two causes open, which the driver's answer tells apart; a network that is
 * off has no part in them.
 */
static void an_engine_without_p2p(void **state)
{
#define SAYS                                                                                       \
	"WARNING 05-28 12:00:41 [custom_all_reduce.py:146] Custom allreduce is disabled because "  \
	"your platform lacks GPU P2P capability or P2P test failed. To silence this warning, "     \
	"specify disable_custom_all_reduce=True explicitly.\n"
#define PAIR_OF_L40S "GPU 0: NVIDIA L40S (UUID: GPU-1)\nGPU 1: NVIDIA L40S (UUID: GPU-2)\n\n"
	static const struct {
		const char *text, *first;
	} rows[] = {
		{PAIR_OF_L40S "NCCL_IB_DISABLE=1\n\n" SAYS, "nvidia-smi topo -p2p r"},
		{PAIR_OF_L40S "NCCL_IB_DISABLE=1\nNCCL_NET_GDR_LEVEL=PIX\n\n" SAYS,
		 "nvidia-smi topo -p2p r"},
		{PAIR_OF_L40S SAYS, "nvidia-smi topo -p2p r"},
		{SAYS, "nvidia-smi topo -p2p r"},
		{PAIR_OF_L40S "NCCL_IB_DISABLE=0\nNCCL_IB_HCA=mlx5\n\n",
		 "lsmod | grep -e peermem -e nv_peer_mem"},
		/* The driver allows it, so that something on the way is the cause. */
		{PAIR_OF_L40S
		 "NCCL_IB_DISABLE=1\n\n$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n "
		 "GPU1\tOK\tX\t\n\n" SAYS,
		 "cat /proc/cmdline; sudo dmesg | grep -i -e iommu -e DMAR -e AMD-Vi"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct question asked[QUESTIONS_MAX];
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(rows[i].text, &m, &t);

		if (!diagnosis_ask(d, asked) || strcmp(asked[0].command, rows[i].first) != 0)
			fail_msg("row %zu: %s", i, asked[0].command);
		release(d, t, m);
	}
}

/*
 * nvidia-smi's own errors are the answer: nothing on the way between GPUs matters before it works.
 */
static void a_driver_that_does_not_work(void **state)
{
	static const struct {
		const char *text, *rule;
		enum confidence confidence;
	} rows[] = {
		{"$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n"
		 "NVML library version: 570.124\n",
		 "driver-library-version", CONFIDENCE_CERTAIN},
		{"NVIDIA-SMI has failed because it couldn\xe2\x80\x99t communicate with the NVIDIA driver. "
		 "Make sure that the latest NVIDIA driver is installed and running.\n",
		 "driver-loaded", CONFIDENCE_LIKELY},
		{"$ lsmod | grep nvidia\n$ uname -r\n6.8.0-45-generic\n", "driver-loaded",
		 CONFIDENCE_CERTAIN},
		{"Failed to initialize NVML: Unknown Error\n", "driver-loaded", CONFIDENCE_LIKELY},
		{"$ nvidia-smi -L\nNo devices were found\n", "driver-bound", CONFIDENCE_LIKELY},
		{"Unable to determine the device handle for GPU0000:A1:00.0: Unknown Error\n",
		 "gpu-alive", CONFIDENCE_LIKELY},
	};
	static const char other[] = "$ rocm-smi\nNo devices were found\n";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct question asked[QUESTIONS_MAX];
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(rows[i].text, &m, &t);

		if (d->finding_n != 1 || !finding_of(d, rows[i].rule) ||
		    finding_of(d, rows[i].rule)->confidence != rows[i].confidence)
			fail_msg("row %zu: %zu findings", i, d->finding_n);
		assert_int_equal(diagnosis_ask(d, asked), 1);
		assert_non_null(strstr(asked[0].command, "NVRM"));
		release(d, t, m);
	}
	assert_false(pasted_recognise(other, strlen(other)));
}

/*
 * What a rank says last may follow from what the kernel log or another line says: the cause comes
 * first.
 */
static void causes_come_first(void **state)
{
#define TIME_OUT                                                                                   \
	"[rank3]:[E301 04:41:08.1 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective "  \
	"operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "       \
	"Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"
#define GAVE_UP                                                                                     \
	"[2024-07-02 10:13:31,337] [ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py', " \
	"'--local_rank=7'] exits with return code = -6\n"
#define ILLEGAL "RuntimeError: CUDA error: an illegal memory access was encountered\n"
	static const struct {
		const char *text, *rule, *word;
	} rows[] = {
		{"[ 12.3] " XID_LINE "\n\n" TIME_OUT, "xid-bus", "Xid 79"},
		{TIME_OUT "\n[ 12.3] " XID_LINE "\n", "xid-bus", "Xid 79"},
		{GAVE_UP "\n[ 12.3] " XID_LINE "\n", "xid-bus", "Xid 79"},
		{"[ 12.3] " XID_LINE "\n\n" ILLEGAL, "observed-run", "illegal memory access"},
		{"box:1:2 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Ux2aPd to "
		 "9637892 bytes\n\n" GAVE_UP,
		 "observed-run", "/dev/shm has no room"},
		{TIME_OUT GAVE_UP, "observed-run", "collective timed out"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(rows[i].text, &m, &t);

		if (!d->finding_n || strcmp(d->findings[0].rule->id, rows[i].rule) != 0 ||
		    !strstr(d->findings[0].sentence, rows[i].word))
			fail_msg("row %zu: %s", i, d->finding_n ? d->findings[0].sentence : "none");
		release(d, t, m);
	}
}

/*
 * The board that a kernel log names shows a guest; lscpu's word for its hypervisor counts before
 * it, and does not contradict it.
 */
static void guests_of_kernel_logs(void **state)
{
#define DMI_LINE(board) "[    0.000000] DMI: " board ", BIOS 1.16.2 04/01/2014\n"
	static const struct {
		const char *text, *name; /* NULL: nothing says that it is one */
	} rows[] = {
		{DMI_LINE("QEMU Standard PC (Q35 + ICH9, 2009)"), "qemu"},
		{DMI_LINE("Google Google Compute Engine/Google Compute Engine"), "kvm"},
		{DMI_LINE("Amazon EC2 p4d.24xlarge/"), "kvm"},
		{DMI_LINE("Amazon EC2 m5.metal/Not Specified"), NULL},
		{DMI_LINE("Supermicro SYS-421GE-TNRT/X13DEG-OA"), NULL},
		{DMI_LINE("QEMU Standard PC (Q35 + ICH9, 2009)") "\n$ lscpu\nModel name: x\n"
								 "Hypervisor vendor: KVM\n",
		 "kvm"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine *m = machine_of_one(rows[i].text);
		const char *name = fact_str_or(m->kernel.hypervisor, "");

		if (strcmp(name, rows[i].name ? rows[i].name : "") != 0 || m->trouble_n)
			fail_msg("row %zu: '%s'", i, name);
		machine_free(m);
	}
}

/* Why the fabric manager does not run, where the text says it: nothing is left to ask about it. */
static void causes_of_the_fabric_manager(void **state)
{
#define JOB                                                                                        \
	"Job for nvidia-fabricmanager.service failed because the control process exited with "     \
	"error code.\n"
#define ANOTHER_VERSION                                                                            \
	"Feb 24 09:28:28 box nv-fabricmanager[1507]: fabric manager NVIDIA GPU driver interface "  \
	"version 535.183.01 don't match with driver version 550.54.15. Please update with "        \
	"matching NVIDIA driver package.\n"
#define SWITCH                                                                                     \
	"c4:00.0 Bridge [0680]: NVIDIA Corporation GA100 [A100 NVSwitch] [10de:1af1] (rev a1)\n\n"
#define NO_UNIT "Unit nvidia-fabricmanager.service could not be found.\n"
	static const struct {
		const char *text, *rule;
		enum confidence confidence;
		bool asks;
	} rows[] = {
		{(JOB ANOTHER_VERSION), "fabric-manager-version", CONFIDENCE_CERTAIN, false},
		{(SWITCH NO_UNIT), "nvswitch-fabric", CONFIDENCE_CERTAIN, false},
		{NO_UNIT, "nvswitch-fabric", CONFIDENCE_POSSIBLE, false},
		{JOB, "nvswitch-fabric", CONFIDENCE_POSSIBLE, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct question asked[QUESTIONS_MAX];
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(rows[i].text, &m, &t);
		const size_t n = diagnosis_ask(d, asked);
		bool asks = false;

		for (size_t k = 0; k < n; k++)
			asks |= strstr(asked[k].command, "nvidia-fabricmanager") != NULL;
		if (d->finding_n != 1 || strcmp(d->findings[0].rule->id, rows[i].rule) != 0 ||
		    d->findings[0].confidence != rows[i].confidence || asks != rows[i].asks)
			fail_msg("row %zu: %zu findings, %s", i, d->finding_n,
				 d->finding_n ? d->findings[0].sentence : "");
		release(d, t, m);
	}
}

/* In a guest nobody can move a card to another slot of the board. */
static void a_denial_in_a_guest(void **state)
{
	static const char page[] = DMI_LINE(
		"QEMU Standard PC (Q35 + ICH9, 2009)") "\n$ nvidia-smi topo -p2p r\n"
						       " \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n\n$ lspci -tv\n"
						       "-[0000:00]-+-00.0  Intel Corporation 82G33/G31/P35/P31 Express DRAM Controller\n"
						       "           +-1c.0-[01]----00.0  NVIDIA Corporation GA102GL [RTX A5000]\n"
						       "           \\-1c.1-[02]----00.0  NVIDIA Corporation GA102GL [RTX A5000]\n";
	struct machine *m;
	struct topology *t;
	struct diagnosis *d = judge(page, &m, &t);

	(void)state;
	assert_non_null(strstr(finding_of(d, "p2p-chipset")->remedy, "of the virtual machine"));
	release(d, t, m);
}

/* The device that the IOMMU blocked may be a GPU if no text lists devices; another one is none. */
static void faults_of_unlisted_devices(void **state)
{
#define FAULT                                                                                      \
	"[  312.1] AMD-Vi: Event logged [IO_PAGE_FAULT device=07:00.0 domain=0x0003 "              \
	"address=0x80000040 flags=0x0020]\n"
	static const struct {
		const char *text;
		enum severity severity;
		enum confidence confidence;
	} rows[] = {
		{"$ dmesg\n" FAULT, SEVERITY_WARNING, CONFIDENCE_POSSIBLE},
		{"07:00.0 VGA compatible controller: NVIDIA Corporation Device\n\n" FAULT,
		 SEVERITY_ERROR, CONFIDENCE_LIKELY},
		{"07:00.0 USB controller: AMD Device\n\n" FAULT, SEVERITY_INFO, CONFIDENCE_CERTAIN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(rows[i].text, &m, &t);
		const struct finding *f = finding_of(d, "iommu-fault");

		assert_int_equal(f->severity, rows[i].severity);
		assert_int_equal(f->confidence, rows[i].confidence);
		release(d, t, m);
	}
#undef FAULT
}

/* The evidence is of a GPU that the finding is about. */
static void evidence_of_the_cards(void **state)
{
	struct machine *m;
	struct topology *t;
	struct diagnosis *d = judge("GPU 0: NVIDIA RTX A6000 (UUID: GPU-1)\n"
				    "GPU 1: NVIDIA GeForce RTX 4090 (UUID: GPU-2)\n"
				    "GPU 2: NVIDIA GeForce RTX 4090 (UUID: GPU-3)\n",
				    &m, &t);

	(void)state;
	assert_string_equal(finding_of(d, "p2p-geforce")->evidence[0].what, "GPU1");
	release(d, t, m);
}

/* What is not there is not fine; a BAR1 of unknown use is not large enough. */
static void rules_about_nothing(void **state)
{
	static const struct {
		const char *text, *rule;
		enum verdict verdict;
	} rows[] = {
		{"00:01.0 PCI bridge: Intel Corporation Device 1901 (rev 05)\n", "link-width",
		 VERDICT_NA},
		{"00:01.0 PCI bridge: Intel Corporation Device 1901 (rev 05)\n", "link-speed",
		 VERDICT_NA},
		{"01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n"
		 "\tCapabilities: [bb0 v1] Physical Resizable BAR\n"
		 "\t\tBAR 1: current size: 256MB, supported: 64MB 128MB 256MB\n",
		 "bar1-small", VERDICT_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(rows[i].text, &m, &t);

		if (verdict_of(d, rows[i].rule) != rows[i].verdict)
			fail_msg("%s: %d", rows[i].rule, (int)verdict_of(d, rows[i].rule));
		release(d, t, m);
	}
}

/* Rules on settings need the whole environment to be ok, and rules on PCI a GPU's bridges. */
static void rules_without_facts(void **state)
{
	static const char *const pages[] = {"Linux box 6.8.0 #1 SMP\n", TABLE,
					    TABLE "export NCCL_DEBUG=INFO\n"};
	static const char *const rules[] = {"nccl-number",       "nccl-level",
					    "nccl-p2p-disabled", "nccl-shm-disabled",
					    "nccl-default",      "library-default",
					    "link-width",        "link-speed",
					    "hmm-dma32",         "custom-all-reduce"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(pages[i], &m, &t);

		for (size_t k = 0; k < ARRAY_LEN(rules); k++)
			if (verdict_of(d, rules[k]) == VERDICT_OK)
				fail_msg("page %zu: %s is ok", i, rules[k]);
		release(d, t, m);
	}
}

static void wrong_setting(void **state)
{
	struct machine *m;
	struct topology *t;
	struct diagnosis *d = judge(TABLE "export NCCL_P2P_DISABLE=1\n", &m, &t);

	(void)state;
	assert_int_equal(verdict_of(d, "nccl-p2p-disabled"), VERDICT_BAD);
	release(d, t, m);
}

/* ---- three kinds of missing ---- */

struct missing {
	enum fact_state state;
	const char *why;
};

#define MISSING(f) ((struct missing){(f).state, FACT_WHY(f)})

static struct missing acs_of_card(const struct machine *m)
{
	const struct pci_address card = {.bus = 1};

	return MISSING(pci_find(m, card)->acs_ctl);
}

static struct missing bar1_of_last(const struct machine *m)
{
	return MISSING(m->gpus[m->gpu_n - 1].bar1_bytes);
}

static struct missing level_of_two(const struct machine *m)
{
	return MISSING(machine_pair(m, 1, 2)->common_ancestor);
}

static struct missing other_gpus(const struct machine *m)
{
	return MISSING(m->driver.nvml_lists_all);
}

static struct missing peer_module(const struct machine *m)
{
	return MISSING(m->peermem.loaded);
}

static struct missing rest_of_log(const struct machine *m)
{
	return MISSING(m->log_read);
}

static struct missing rate_of_port(const struct machine *m)
{
	return MISSING(m->rdma[m->rdma_n - 1].ports[0].rate_mbps);
}

static struct missing other_nics(const struct machine *m)
{
	return MISSING(m->rdma_listed);
}

static struct missing end_of_run(const struct machine *m)
{
	return MISSING(m->nccl.ended);
}

static struct missing registry_keys(const struct machine *m)
{
	return MISSING(m->driver.registry_dwords);
}

static struct missing driver_version(const struct machine *m)
{
	return MISSING(m->driver.module_version);
}

static struct missing license_of_module(const struct machine *m)
{
	return MISSING(machine_module(m, "nvidia_peermem")->license);
}

static struct missing bridge_of_last(const struct machine *m)
{
	const char *why = m->gpus[m->gpu_n - 1].pci->parent_unknown;

	return (struct missing){why ? FACT_UNKNOWN : FACT_ABSENT, why};
}

#define MODINFO                                                                                    \
	"filename:       /lib/modules/6.8.0/updates/dkms/nvidia-peermem.ko\n"                      \
	"version:        550.90.07\n"

#define PARAMS(registry)                                                                           \
	"ResmanDebugLevel: 4294967295\n"                                                           \
	"FillerA: 0\nFillerB: 0\nFillerC: 0\nFillerD: 0\nFillerE: 0\n"                             \
	"FillerF: 0\nFillerG: 0\nFillerH: 0\nFillerI: 0\nFillerJ: 0\n"                             \
	"FillerK: 0\nFillerL: 0\nFillerM: 0\nFillerN: 0\nFillerO: 0\n"                             \
	"FillerP: 0\nFillerQ: 0\nFillerR: 0\nFillerS: 0\nFillerT: 0\n"                             \
	"RegistryDwords: " registry "\n"

static struct missing parameters(const struct machine *m)
{
	return MISSING(m->kernel.cmdline_whole);
}

#define MODULES                                                                                    \
	"Module                  Size  Used by\n"                                                  \
	"a1 16384 0\na2 16384 0\na3 16384 0\na4 16384 0\na5 16384 0\na6 16384 0\n"                 \
	"a7 16384 0\na8 16384 0\na9 16384 0\na10 16384 0\na11 16384 0\na12 16384 0\n"

#define SHORT_CARD                                                                                 \
	"01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD102 [GeForce RTX 4090] "   \
	"[10de:2684] (rev a1)\n"                                                                   \
	"\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR-\n"  \
	"\tCapabilities: [78] Express (v2) Legacy Endpoint, MSI 00\n"                              \
	"\t\tLnkSta:\tSpeed 16GT/s, Width x16\n"

#define MATRIX "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tPIX\tSYS\t0-31\n"

#define IBSTAT_LINES "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n"

#define INIT                                                                                       \
	"box:1:9 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 "           \
	"commId 0x5 - Init START\n"                                                                \
	"box:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"

/* What a text does not show was not asked for, was cut off where it would be, or does not exist. */
static void three_kinds_of_missing(void **state)
{
	static const struct {
		const char *text;
		struct missing (*of)(const struct machine *m);
		enum { CUT_OFF, NOT_IN_THE_TEXT, THE_MACHINE_HAS_NONE } is;
		const char *at; /* where it is cut off */
	} rows[] = {
		{CARD, acs_of_card, THE_MACHINE_HAS_NONE, NULL},
		{SHORT_CARD "\tKernel driver in use: nvidia\n", acs_of_card, NOT_IN_THE_TEXT, NULL},
		{SHORT_CARD, acs_of_card, NOT_IN_THE_TEXT, NULL},
		{SHORT_CARD "\t\tLnkCtl2: Tar", acs_of_card, CUT_OFF, "a:5"},
		{SHORT_CARD "[...]\nSo what now?\n", acs_of_card, CUT_OFF, "a:4"},
		{SHORT_CARD "```\n\n(... 200 lines snipped ...)\n", acs_of_card, CUT_OFF, "a:4"},
		{SHORT_CARD "\t...\n\tKernel driver in use: nvidia\n", acs_of_card, CUT_OFF, "a:5"},
		{SHORT_CARD "...so what now?\n", acs_of_card, NOT_IN_THE_TEXT, NULL},
		/* the other card's list is whole, and this one's output is cut before it */
		{SHORT_CARD "\n" PORT "...\n", acs_of_card, NOT_IN_THE_TEXT, NULL},
		{PORT "...\n\n" TABLE, acs_of_card, CUT_OFF, "a:19"},
		{"GPU 00000000:41:00.0\n    Product Name    : NVIDIA A100\n", other_gpus,
		 NOT_IN_THE_TEXT, NULL},
		{"GPU 00000000:41:00.0\n    Product Name    : NVIDIA A100\n", bar1_of_last,
		 NOT_IN_THE_TEXT, NULL},
		{"GPU 00000000:41:00.0\n    Product Name    : NVIDIA A100\n    <snip>\n",
		 bar1_of_last, CUT_OFF, "a:3"},
		{"Attached GPUs                : 2\nGPU 00000000:41:00.0\n"
		 "    Product Name    : NVIDIA A100\nGPU 00000000:81:00.0\n"
		 "    Product Name    : NVIDIA A100\n    FB Mem",
		 bar1_of_last, CUT_OFF, "a:6"},
		{"==============NVSMI LOG==============\nAttached GPUs               : 2\n"
		 "GPU 00000000:41:00.0\n    Product Name    : NVIDIA A100\n",
		 other_gpus, NOT_IN_THE_TEXT, NULL}, /* as nvidia-smi -q -i 0 prints it */
		{"==============NVSMI LOG==============\nAttached GPUs               : 2\n"
		 "GPU 00000000:41:00.0\n    Product Name    : NVIDIA A100\n...\n",
		 other_gpus, CUT_OFF, "a:4"},
		{TABLE "|   2  NVIDIA GeForce RTX 40", other_gpus, CUT_OFF, "a:8"},
		{MATRIX, level_of_two, CUT_OFF, "a:2"},
		{MATRIX "GPU1\tPIX\t X \tSYS\t0-31\nGPU2\tSYS\tSYS\t X \t0-31\n\n$ nvidia-smi -L\n"
			"GPU 3: NVIDIA A40\n",
		 bar1_of_last, NOT_IN_THE_TEXT, NULL},
		/* broken by a terminal */
		{PARAMS("\"RmPmaNumaOnlineAutoOn=0;RMForceP2\nPType=1\""), registry_keys, CUT_OFF,
		 "a:22"},
		{PARAMS("\"\"") "...\n", registry_keys, CUT_OFF, "a:22"},
		{MODULES "...\n", peer_module, CUT_OFF, "a:13"},
		{"$ lsmod | grep ib_\nib_core 16384 0\n", peer_module, NOT_IN_THE_TEXT, NULL},
		{"[    9.1] NVRM: loading\n", rest_of_log, NOT_IN_THE_TEXT, NULL},
		{"[    9.100000] NVRM: loading\n[... more ...]\n", rest_of_log, CUT_OFF, "a:1"},
		{IBSTAT_LINES, rate_of_port, NOT_IN_THE_TEXT, NULL},
		{IBSTAT_LINES "\t\tRa", rate_of_port, CUT_OFF, "a:5"},
		{IBSTAT_LINES "--snip--\n", other_nics, CUT_OFF, "a:4"},
		{INIT, end_of_run, NOT_IN_THE_TEXT, NULL},
		{INIT "[truncated]\n", end_of_run, CUT_OFF, "a:2"},
		{"BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet io", parameters, CUT_OFF, "a:1"},
		{MODINFO "depends:        nvidia,ib_uverbs\n", license_of_module, NOT_IN_THE_TEXT,
		 NULL},
		{MODINFO "...\n", license_of_module, CUT_OFF, "a:2"},
		{MODINFO "license:        Dual MIT/G", license_of_module, CUT_OFF, "a:3"},
		{TABLE "\n-+-[0000:20]-+-00.0\n |           \\-01.0\n \\-[0000:00]-+-00.0\n"
		       "              \\-01.1-[01]----00.0\n",
		 bridge_of_last, NOT_IN_THE_TEXT, NULL},
		{TABLE "\n-+-[0000:40]-+-00.0\n |           +-01.0\n", bridge_of_last, CUT_OFF,
		 "a:10"},
		{TABLE "\n-[0000:00]-+-00.0\n            \\-01.1-[01]----00.0\n...\n",
		 bridge_of_last, NOT_IN_THE_TEXT, NULL}, /* the tree is whole */
		{"Python platform: Linux-6.8.0-47-generic-x86_64-with-glibc2.35\nIs CUDA available: True\n",
		 driver_version, NOT_IN_THE_TEXT, NULL},
		{"Python platform: Linux-6.8.0-47-generic-x86_64-with-glibc2.35\nIs CUDA available: True\n...\n",
		 driver_version, CUT_OFF, "a:2"},
		{"Python platform: Linux-6.8.0-47-generic-x86_64-with-glibc2.35\nIs CUDA avail",
		 driver_version, CUT_OFF, "a:2"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct machine *m = machine_of_one(rows[i].text);
		const struct missing f = rows[i].of(m);
		const bool cut = rows[i].is == CUT_OFF, none = rows[i].is == THE_MACHINE_HAS_NONE;
		AUTO_FREE char *why = xprintf(FACT_CUT "%s", cut ? rows[i].at : "");
		bool listed = !cut;

		if (f.state != (none ? FACT_ABSENT : FACT_UNKNOWN) || fact_why_cut(f.why) != cut ||
		    (cut &&
		     (!text_starts_with(f.why, why) || isdigit((unsigned char)f.why[strlen(why)]))))
			fail_msg("row %zu: state %d, %s", i, (int)f.state, f.why);
		for (size_t k = 0; k < m->text_part_n; k++)
			listed |= m->text_parts[k].cut_at && m->text_parts[k].cut;
		if (!listed)
			fail_msg("row %zu: no part is cut off", i);
		machine_free(m);
	}
}

/* The lines of modinfo that a text lacks are unknown, next to whatever else it shows. */
static void modinfo_without_license(void **state)
{
	struct machine *m;
	struct topology *t;
	struct diagnosis *d = judge(
		"$ lsmod\n" MODULES "$ modinfo nvidia\n"
		"filename:       /lib/modules/6.8.0/updates/dkms/nvidia.ko\nalias:          x\n"
		"$ cat /proc/driver/nvidia/version\n"
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build\n",
		&m, &t);

	(void)state;
	assert_true(fact_unknown(m->driver.installed_license));
	assert_true(fact_unknown(m->driver.installed_version));
	release(d, t, m);
}

/* ---- older and newer ---- */

static void times_of_lines(void **state)
{
	static const struct {
		const char *line;
		int64_t s;
		bool zoned;
	} rows[] = {
		{"Sun Nov 22 09:40:35 2026", 1795340435, false},
		{"Sun Nov 22 09:40:35 CET 2026", 1795340435, false},
		{"Sun Nov 22 09:40:35 PM UTC 2026", 1795383635, true},
		{"[Sun Nov 22 09:40:35 2026] NVRM: x", 1795340435, false},
		{"2026-11-22 09:40:35", 1795340435, false},
		{"2026-11-22T09:40:35,123456+01:00 x", 1795336835, true},
		{"2026-11-22 09:40:37.700000000 +0000 /proc/version", 1795340437, true},
		{"[2026-11-22 09:40:35] box:1:9 [0] NCCL INFO x", 1795340435, false},
		{"2026-11-22T09:40:35Z x", 1795340435, true},
		{"Nov 22 09:40:35 box kernel: x", 0, false},
		{"[    9.100000] x", 0, false},
		{"2026-11-22", 0, false},
		{"2026-13-22 09:40:35", 0, false},
		{"Sun Nov 22", 0, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct text_time t = text_time_at(rows[i].line, NULL);

		if (t.s != rows[i].s || (t.s && t.zoned != rows[i].zoned))
			fail_msg("%s: %lld", rows[i].line, (long long)t.s);
	}
}

#define VERSION(v) "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " v "  Release Build  (x)\n"
#define LISTED(t)  "*** ls: -r--r--r-- 1 root root 0 " t " /proc/driver/nvidia/version\n"
#define SMI(date, v)                                                                               \
	date "\n| NVIDIA-SMI " v "   Driver Version: " v "   CUDA Version: 12.4   |\n"             \
	     "|   0  NVIDIA GeForce RTX 4090     Off |   00000000:01:00.0 Off |     Off |\n"       \
	     "+-------------------------+-------+\n"
#define DATED(date, v)                                                                             \
	"==============NVSMI LOG==============\n\nTimestamp         : " date                       \
	"\nDriver Version    : " v "\nAttached GPUs     : 1\nGPU 00000000:01:00.0\n"               \
	"    Product Name  : NVIDIA GeForce RTX 4090\n"

/* The newer of two texts counts, in whatever order they are given; without times neither does. */
static void older_and_newer(void **state)
{
	static const struct {
		const char *texts[2];
		const char *driver; /* NULL: unknown */
	} rows[] = {
		{{SMI("Fri Nov 20 09:40:35 2026", "550.54.14"),
		  SMI("Sun Nov 22 09:40:35 2026", "570.86.15")},
		 "570.86.15"},
		{{SMI("Fri Nov 20 09:40:35 2026", "550.54.14"),
		  DATED("Fri Nov 20 09:41:00 2026", "570.86.15")},
		 "570.86.15"},
		{{SMI("Fri Nov 20 09:40:35 2026", "550.54.14"), SMI("", "570.86.15")}, NULL},
		/* The clock of one may be 14 hours ahead of the other's. */
		{{LISTED("2026-11-22 09:40:37.7 +0000") VERSION("550.54.14"),
		  LISTED("2026-11-22 20:40:37.7") VERSION("570.86.15")},
		 NULL},
		{{LISTED("2026-11-22 09:40:37.7 +0000") VERSION("550.54.14"),
		  LISTED("2026-11-24 20:40:37.7") VERSION("570.86.15")},
		 "570.86.15"},
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const bool reversed = i % 2;
		const char *texts[] = {rows[i / 2].texts[reversed], rows[i / 2].texts[!reversed]};
		struct machine *m = machine_of_texts(texts, 2);
		const struct fact_str f = m->driver.module_version;

		if (strcmp(fact_str_or(f, "none"),
			   rows[i / 2].driver ? rows[i / 2].driver : "none"))
			fail_msg("row %zu: %s", i, fact_str_or(f, FACT_WHY(f)));
		assert_int_equal(m->trouble_n, 1);
		assert_int_equal(m->troubles[0].settled, rows[i / 2].driver != NULL);
		machine_free(m);
	}
}

static void older_and_newer_in_words(void **state)
{
	static const char *const texts[] = {SMI("Sun Nov 22 09:40:35 2026", "570.86.15"),
					    SMI("Fri Nov 20 09:40:35 2026", "550.54.14")};
	struct machine *m = machine_of_texts(texts, 2);
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	const struct finding *f = finding_of(d, "machine-readable");

	(void)state;
	assert_int_equal(f->severity, SEVERITY_INFO);
	assert_string_equal(
		m->troubles[0].what,
		"show the driver's version at two times: '550.54.14' (b:2, 2026-11-20 "
		"09:40:35) and then '570.86.15' (a:2, 2026-11-22 09:40:35); the newer one "
		"counts");
	release(d, t, m);
}

/* A third text that does not show its time may be the newest. */
static void said_again_without_a_time(void **state)
{
	static const char *const texts[] = {SMI("Fri Nov 20 09:40:35 2026", "550.54.14"),
					    SMI("", "550.54.14"),
					    SMI("Sun Nov 22 09:40:35 2026", "570.86.15")};
	static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		const char *in_order[] = {texts[orders[i][0]], texts[orders[i][1]],
					  texts[orders[i][2]]};
		struct machine *m = machine_of_texts(in_order, 3);

		if (fact_known(m->driver.module_version))
			fail_msg("order %zu", i);
		machine_free(m);
	}
}

/*
 * A recording has the times that decide: of lines above an output, and of the file in an archive.
 */
static void times_in_a_recording(void **state)
{
	static const struct machine_request request = {.parts = MACHINE_ALL};
	static const char *const texts[] = {LISTED("2026-11-24 09:40:37.7") VERSION("550.54.14"),
					    VERSION("570.86.15")};
	AUTO_STRBUF struct strbuf kept = {0};
	struct pasted *t = pasted_new("paste"), *again = pasted_new("again");
	struct machine *m;
	struct source *s;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct pasted_text *x = pasted_begin(t);

		pasted_feed(x, texts[i], strlen(texts[i]));
		if (i)
			x->time = (struct text_time){1795340435 + 7 * 86400, true};
		pasted_end(t, i ? "b" : "a", x);
		pasted_drop(x);
	}
	pasted_keep(t, &kept);
	assert_int_equal(kept_texts_add(strbuf_str(&kept), "recording", again), 0);
	s = pasted_source(again);
	m = machine_read(s, &request);
	pasted_complete(again, m);
	assert_true(fact_str_is(m->driver.module_version, "570.86.15"));
	assert_true(m->troubles[0].settled);
	machine_free(m);
	source_free(s);
	pasted_free(t);
	pasted_free(again);
}

/* ---- which machine ---- */

static enum path_class class_between(const struct topology *t, size_t gpu, const char *nic)
{
	for (size_t i = t->gpu_n; i < t->endpoint_n; i++)
		if (strcmp(t->machine->rdma[t->endpoints[i].index].name, nic) == 0)
			return topology_path(t, gpu, i)->class;
	fail_msg("no %s", nic);
	return PATH_UNKNOWN;
}

/* The matrix with a legend, the older one with names, and one whose legend is in another text. */
static void nics_of_a_matrix(void **state)
{
#define ROWS                                                                                       \
	"GPU0\t X \tSYS\tPIX\tSYS\t0-31\t0\n"                                                      \
	"GPU1\tSYS\t X \tSYS\tPXB\t32-63\t1\n"
#define HEADER     "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
#define NIC_LEGEND "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_1\n"
	static const struct {
		const char *texts[2];
		const char *names[2];
	} cases[] = {
		{{HEADER ROWS NIC_LEGEND}, {"mlx5_0", "mlx5_bond_1"}},
		{{"\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity\n" ROWS}, {"mlx5_0", "mlx5_1"}},
		{{HEADER ROWS, HEADER ROWS NIC_LEGEND}, {"mlx5_0", "mlx5_bond_1"}},
		{{HEADER ROWS}, {"NIC0", "NIC1"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine *m = machine_of_texts(cases[i].texts, cases[i].texts[1] ? 2 : 1);
		struct topology *t = topology_new(m);

		assert_int_equal(m->rdma_n, 2);
		assert_string_equal(m->rdma[0].pci->name, "no-address-nic-0");
		assert_int_equal(class_between(t, 0, cases[i].names[0]), PATH_PIX);
		assert_int_equal(class_between(t, 0, cases[i].names[1]), PATH_SYS);
		assert_int_equal(class_between(t, 1, cases[i].names[1]), PATH_PXB);
		assert_int_equal(t->gpu_n, 2);
		/* Nothing but the distance is known. */
		for (size_t k = t->gpu_n; k < t->endpoint_n; k++)
			assert_int_equal(topology_path(t, 0, k)->verdict, PAIR_UNDECIDED);
		assert_int_equal(topology_path(t, 0, 2)->chain[CHAIN_HOST_BRIDGE].state, CHAIN_NA);
		topology_free(t);
		machine_free(m);
	}
}

/* Of two distances neither counts. */
static void nics_of_two_matrices(void **state)
{
	static const char *const texts[] = {
		HEADER ROWS NIC_LEGEND,
		"\tGPU0\tGPU1\tNIC0\tNIC1\n"
		"GPU0\t X \tSYS\tPHB\tSYS\nGPU1\tSYS\t X \tSYS\tPXB\n",
	};
	struct machine *m = machine_of_texts(texts, 2);
	struct topology *t = topology_new(m);

	(void)state;
	assert_int_equal(class_between(t, 0, "mlx5_0"), PATH_UNKNOWN);
	assert_int_equal(class_between(t, 1, "mlx5_bond_1"), PATH_PXB);
	assert_int_equal(m->trouble_n, 1);
	topology_free(t);
	machine_free(m);
}

#define LIST                                                                                       \
	"GPU 0: NVIDIA GeForce RTX 3090\n"                                                         \
	"GPU 1: NVIDIA GeForce RTX 3090\n"

#define CHIP(address, model, id)                                                                   \
	address " 3D controller [0302]: NVIDIA Corporation GA100 [" model "] [10de:" id            \
		"] (rev a1)\n"

#define FOUR                                                                                       \
	"\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"                                                 \
	"GPU0\t X \tPIX\tSYS\tSYS\t0-31\nGPU1\tPIX\t X \tSYS\tSYS\t0-31\n"                         \
	"GPU2\tSYS\tSYS\t X \tPIX\t32-63\nGPU3\tSYS\tSYS\tPIX\t X \t32-63\n"

#define TWO "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\t0-31\nGPU1\tPIX\t X \t0-31\n"

/* No output names a host: what a machine has only one of tells them apart. */
static void two_machines_without_names(void **state)
{
	static const struct {
		const char *texts[2];
		const char *says; /* NULL: they may be of one */
	} rows[] = {
		{{"GPU 0: NVIDIA A40 (UUID: GPU-aaaaaaaa)\n",
		  "GPU 0: NVIDIA H200 (UUID: GPU-bbbbbbbb)\n"},
		 "they disagree about the model of GPU0: 'NVIDIA A40' and 'NVIDIA H200'; 1 other value "
		 "differs"},
		{{"GPU 0: NVIDIA A40 (UUID: GPU-aaaaaaaa)\n",
		  "GPU 0: NVIDIA A40 (UUID: GPU-bbbbbbbb)\n"},
		 "they disagree about the UUID of GPU0"},
		{{FOUR, TWO}, "they disagree about the number of GPUs in a matrix: '4' and '2'"},
		{{TWO, "$ nvidia-smi topo -m\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-31\n"
		       "GPU1\tSYS\t X \t0-31\n"},
		 "they disagree about the distance between GPU0 and GPU1: 'PIX' and 'SYS'"},
		{{CHIP("01:00.0", "A100 PCIe 40GB", "20f1"), CHIP("01:00.0", "H100 PCIe", "2331")},
		 "they disagree about the device ID of 0000:01:00.0"},
		/* one has numbers, the other addresses */
		{{CHIP("01:00.0", "A100 PCIe 40GB", "20f1")
			  CHIP("41:00.0", "A100 PCIe 40GB", "20f1"),
		  LIST},
		 "they disagree about the models of the GPUs: 'NVIDIA GeForce RTX 3090' and 'NVIDIA "
		 "A100 PCIe 40GB'"},
		{{CHIP("01:00.0", "A100 PCIe 40GB", "20f1"), LIST},
		 "they disagree about the models of the GPUs"},
		{{CHIP("03:00.0", "GeForce RTX 4090", "2684")
			  CHIP("41:00.0", "GeForce RTX 4090", "2684"),
		  TABLE},
		 "they disagree about the addresses of the GPUs"},
		{{"BOOT_IMAGE=/vmlinuz root=UUID=1a ro\n", "BOOT_IMAGE=/vmlinuz root=UUID=2b ro\n"},
		 "they disagree about the root file system: 'root=UUID=1a' and 'root=UUID=2b'; 1 other "
		 "value differs"},
		{{"[    0.000000] DMI: Supermicro SYS-421GE-TNRT/X13DEG-OA, BIOS 2.1 10/30/2023\n",
		  "[    0.000000] DMI: Dell Inc. PowerEdge XE9680/0KRGX6, BIOS 1.3.2 03/28/2023\n"},
		 "they disagree about the board: 'Supermicro SYS-421GE-TNRT/X13DEG-OA' and 'Dell"},
		/* of one machine */
		{{CHIP("01:00.0", "A100 PCIe 40GB", "20f1"),
		  "GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-1)\n"},
		 NULL},
		{{CHIP("01:00.0", "Tesla V100 SXM2 32GB", "1db5"),
		  "GPU 0: GRID V100D-8Q (UUID: GPU-1)\n"},
		 NULL},
		{{CHIP("01:00.0", "H100 SXM5 80GB", "2330"), "GPU 0: NVIDIA H100 80GB HBM3\n"},
		 NULL},
		{{CHIP("03:00.0", "GeForce RTX 4090", "2684"), TABLE}, NULL}, /* fell off the bus */
		{{FOUR, FOUR}, NULL},
		{{"BOOT_IMAGE=/vmlinuz-1 root=UUID=1a ro\n",
		  "BOOT_IMAGE=/vmlinuz-2 root=UUID=1a ro\n"},
		 NULL},
		{{"[    0.000000] DMI: Dell Inc. PowerEdge XE9680/0KRGX6, BIOS 1.3.2 03/28/2023\n",
		  "[    0.000000] DMI: Dell Inc. PowerEdge XE9680/0KRGX6, BIOS 2.0 03/28/2025\n"},
		 NULL},
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const bool one_page = i % 2;
		AUTO_FREE char *page =
			xprintf("%s\nand\n\n%s", rows[i / 2].texts[0], rows[i / 2].texts[1]);
		const char *const *texts =
			one_page ? (const char *const[]){page} : rows[i / 2].texts;
		struct machine *m = machine_of_texts(texts, one_page ? 1 : 2);
		const char *what = m->trouble_n ? m->troubles[0].what : "";
		const bool two = text_starts_with(what, "may be of different machines: ");

		if (two != (rows[i / 2].says != NULL) ||
		    (two && (m->trouble_n != 1 || !strstr(what, rows[i / 2].says))))
			fail_msg("row %zu: %s", i / 2, what);
		machine_free(m);
	}
}

static struct pasted *paste(const char *const *texts, size_t n)
{
	struct pasted *t = pasted_new("paste");

	for (size_t i = 0; i < n; i++) {
		const char name[] = {(char)('a' + i), '\0'};

		pasted_add(t, name, texts[i], strlen(texts[i]));
	}
	return t;
}

static int choose(const char *const *texts, size_t n, const char *host)
{
	struct pasted *t = paste(texts, n);
	int r = pasted_choose(t, host);

	pasted_free(t);
	return r;
}

static void several_machines(void **state)
{
	static const char *const one[] = {
		"Linux gpu7.example.org 6.8.0 #1 SMP\n",
		"Nov 22 09:40:35 gpu7 kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1\n",
		"Linux 0123456789ab 6.8.0 #1 SMP\n", /* a container of it */
		"[   12.345678] NVRM: Xid (PCI:0000:01:00): 79, pid=1\n",
	};
	static const char *const two[] = {
		"Linux gpu7 6.8.0 #1 SMP\n",
		"\nNov 22 09:40:35 gpu8 kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1\n",
	};
	static const char *const open[] = {
		"Linux gpu7 6.8.0 #1 SMP\n",
		"Linux gpu8 6.8.0 #1 SMP\n",
		"root@vllm:/# cat /proc/cmdline\nroot=/dev/sda1 iommu=pt\n",
	};

	static const char *const prompts[] = {
		"root@gpu7:~# cat /proc/cmdline\nroot=/dev/sda1\n",
		"[root@gpu12 ~]# cat /proc/cmdline\nroot=/dev/sda1\n",
		/* a laptop, and a container */
		"alice@t14:~$ cat /proc/cmdline\nroot=/dev/sda1\n",
		"root@vllm-5d4f:/# cat /proc/cmdline\nroot=/dev/sda1\n",
		"Linux gpu8 6.8.0 #1 SMP\n",
	};

	(void)state;
	assert_int_equal(choose(prompts, 2, NULL), -EXDEV);
	assert_string_equal(err_msg(), "outputs of several machines: gpu7 (a:2), gpu12 (b:2); "
				       "choose one with --host NAME");
	assert_int_equal(choose(prompts, 2, "gpu12"), 0);
	assert_int_equal(choose(prompts + 1, 2, NULL), -EXDEV);
	assert_int_equal(choose(prompts + 1, 3, NULL), -EINVAL);
	assert_int_equal(choose(prompts + 2, 3, NULL), 0);
	assert_int_equal(choose(prompts + 1, 4, NULL), -EINVAL);
	assert_int_equal(choose(one, ARRAY_LEN(one), NULL), 0);
	assert_int_equal(choose(one, ARRAY_LEN(one), "gpu7"), 0);
	assert_int_equal(choose(two, ARRAY_LEN(two), NULL), -EXDEV);
	assert_string_equal(err_msg(), "outputs of several machines: gpu7 (a:1), gpu8 (b:2); "
				       "choose one with --host NAME");
	assert_int_equal(choose(two, ARRAY_LEN(two), "gpu9"), -EINVAL);
	assert_string_equal(err_msg(),
			    "no text is of host gpu9; they are of gpu7 (a:1), gpu8 (b:2)");
	assert_int_equal(choose(one + 3, 1, "gpu7"), -EINVAL);
	assert_string_equal(err_msg(), "no text is of host gpu7: no output names a host");
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(choose(open, ARRAY_LEN(open), i ? "gpu8" : NULL), -EINVAL);
		assert_string_equal(err_msg(), "outputs of several machines: gpu7 (a:1), gpu8 "
					       "(b:1); nothing shows which of them printed "
					       "/proc/cmdline (c:2); give the outputs of one");
	}
}

/*
 * Two names without numbers: of machines if people are at home on both, else perhaps of a
 * container.
 */
static void machines_in_prompts(void **state)
{
#define CMDLINE " cat /proc/cmdline\nroot=/dev/sda1\n"
	static const struct {
		const char *texts[2];
		int r;
	} rows[] = {
		{{"alice@mars:~$" CMDLINE, "bob@venus:/data$" CMDLINE}, -EXDEV},
		{{"(base) alice@mars:~/x$" CMDLINE, "(a) (b) alice@venus:~$" CMDLINE}, -EXDEV},
		{{"[alice@mars ~]$" CMDLINE, "root@venus:~#" CMDLINE}, -EXDEV},
		{{"[root@mars ~]#" CMDLINE, "root@venus:~#" CMDLINE}, -EXDEV},
		{{"alice@mars:~$" CMDLINE, "alice@mars.example.org:~$" CMDLINE}, 0},
		{{"alice@mars:~$" CMDLINE, "root@trainer:/workspace#" CMDLINE}, 0},
		{{"alice@mars:~$" CMDLINE, "(main) root@trainer:/#" CMDLINE}, 0},
		{{"alice@mars:~$" CMDLINE, "[root@trainer workspace]#" CMDLINE}, 0},
		{{"alice@mars:~$" CMDLINE, "alice@toolbox:~$" CMDLINE}, 0},
		{{"alice@mars:~$" CMDLINE, "me@0123456789ab:~$" CMDLINE}, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (choose(rows[i].texts, 2, NULL) != rows[i].r)
			fail_msg("row %zu", i);
	assert_int_equal(choose(rows[0].texts, 2, "venus"), 0);
#undef CMDLINE
}

/* The list of hosts is full: who prints the rest is known all the same. */
static void too_many_machines(void **state)
{
	AUTO_STRBUF struct strbuf page = {0};
	const char *text;

	(void)state;
	for (unsigned i = 0; i < MOST_TEXT_HOSTS + 1; i++)
		strbuf_printf(&page, "root@gpu%u:~# uname -a\nLinux gpu%u 6.8.0 #1 SMP\n", i, i);
	text = strbuf_str(&page);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(choose(&text, 1, i ? "gpu64" : NULL), -E2BIG);
		assert_string_equal(err_msg(),
				    "outputs of more than 64 machines: gpu0 (a:2), gpu1 "
				    "(a:4), gpu2 (a:6), gpu3 (a:8) and 60 more; give those "
				    "of fewer");
	}
}

/* pdsh and clush print the name of the host in front of each line, and mix the hosts. */
static void hosts_in_front_of_lines(void **state)
{
	static const char text[] = "$ pdsh -w gpu[7-8] 'dmesg | tail -1; nvidia-smi -L'\n"
				   "gpu7: GPU 0: NVIDIA H200 (UUID: GPU-1)\n"
				   "gpu8: GPU 0: NVIDIA A100 (UUID: GPU-2)\n"
				   "gpu8: GPU 1: NVIDIA A100 (UUID: GPU-3)\n"
				   "gpu7:\n"
				   "gpu7: [1.0] NVRM: Xid (PCI:0000:01:00): 79, pid=1\n"
				   "gpu8: [1.0] NVRM: Xid (PCI:0000:02:00): 79, pid=1\n";
	/* Not hosts: a log without times. */
	static const char kernel[] = "ata1: SATA link down\nata2: SATA link down\nata1: x\n"
				     "ata2: x\nNVRM: Xid (PCI:0000:02:00): 79, pid=1\n";
	struct machine *seven = machine_of_host(text, strlen(text), "gpu7"),
		       *eight = machine_of_host(text, strlen(text), "gpu8"),
		       *one = machine_of_one(kernel);

	(void)state;
	assert_string_equal(seven->gpus[0].model.value, "NVIDIA H200");
	assert_string_equal(eight->gpus[1].model.value, "NVIDIA A100");
	assert_int_equal(seven->log_n, 1);
	assert_int_equal(eight->log_n, 1);
	assert_int_equal(one->log_n, 1);
	machine_free(seven);
	machine_free(eight);
	machine_free(one);
}

/* clush -b and dshbak -c print once what several hosts printed, below their names. */
static void hosts_above_their_lines(void **state)
{
	static const char text[] = "$ clush -b -w gpu[07-09] nvidia-smi -L\n"
				   "---------------\n"
				   "gpu[07,09] (2)\n"
				   "---------------\n"
				   "GPU 0: NVIDIA H200 (UUID: GPU-1)\n"
				   "---------------\n"
				   "gpu08\n"
				   "---------------\n"
				   "GPU 0: NVIDIA A100 (UUID: GPU-2)\n"
				   "GPU 1: NVIDIA A100 (UUID: GPU-3)\n"
				   "---------------\n"
				   "gpu[07-09] (3)\n"
				   "---------------\n"
				   "nvidia_peermem         16384  0\n";
	/* Not hosts: a heading. */
	static const char page[] = "---------------\nResults\n---------------\n"
				   "GPU 0: NVIDIA A100 (UUID: GPU-2)\n";
	static const char *const names[] = {"gpu07", "gpu08", "gpu09"};
	struct machine *one = machine_of_one(page);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct machine *m = machine_of_host(text, strlen(text), names[i]);

		assert_string_equal(m->gpus[0].model.value, i == 1 ? "NVIDIA A100" : "NVIDIA H200");
		assert_true(fact_is(m->peermem.loaded, 1));
		machine_free(m);
	}
	assert_int_equal(one->gpu_n, 1);
	machine_free(one);
}

static void one_of_several(void **state)
{
	static const char text[] =
		"[root@gpu7 ~]# uname -a\n"
		"Linux gpu7 6.8.0 #1 SMP\n"
		"[root@gpu7 ~]# cat /proc/cmdline\n"
		"root=/dev/sda1 iommu=pt\n"
		"gpu8 | CHANGED | rc=0 >>\n"
		"BOOT_IMAGE=/vmlinuz root=/dev/sdb1\n"
		"\n"
		"Nov 22 09:40:35 gpu7 kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1\n"
		"Nov 22 09:40:35 gpu8 kernel: NVRM: Xid (PCI:0000:02:00): 79, pid=1\n";
	static const struct {
		const char *host, *cmdline, *gpu, *about;
	} cases[] = {
		{"gpu7", "root=/dev/sda1 iommu=pt", "0000:01:00.0", "of host gpu8, not used"},
		{"gpu8", "BOOT_IMAGE=/vmlinuz root=/dev/sdb1", "0000:02:00.0",
		 "of host gpu7, not used"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine *m = machine_of_host(text, strlen(text), cases[i].host);
		size_t others = 0;

		assert_string_equal(m->kernel.cmdline.value, cases[i].cmdline);
		assert_int_equal(m->gpu_n, 1);
		assert_string_equal(m->gpus[0].pci->name, cases[i].gpu);
		assert_int_equal(m->trouble_n, 0);
		for (size_t k = 0; k < m->text_part_n; k++)
			others += strcmp(m->text_parts[k].about, cases[i].about) == 0;
		assert_int_equal(others, i ? 3 : 2);
		machine_free(m);
	}
}

/* Alone it is read as a whole, and each host by itself. */
static void log_of_several(void **state)
{
	static const char log[] =
		"gpu7:10:11 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 4 cudaDev 0 "
		"nvmlDev 0 busId 1000 commId 0x1 - Init START\n"
		"gpu7:10:12 [1] NCCL INFO ncclCommInitRank comm 0x6 rank 1 nranks 4 cudaDev 1 "
		"nvmlDev 1 busId 2000 commId 0x1 - Init START\n"
		"gpu8:10:11 [0] NCCL INFO ncclCommInitRank comm 0x7 rank 2 nranks 4 cudaDev 0 "
		"nvmlDev 0 busId 3000 commId 0x1 - Init START\n"
		"gpu8:10:12 [1] NCCL INFO ncclCommInitRank comm 0x8 rank 3 nranks 4 cudaDev 1 "
		"nvmlDev 1 busId 4000 commId 0x1 - Init START\n"
		"gpu7:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
		"gpu7:10:12 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n"
		"gpu8:10:11 [0] NCCL INFO Channel 00/0 : 2[0] -> 3[1] via SHM/direct/direct\n";
	static const char *const hosts[] = {NULL, "gpu7", "gpu8"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct machine *m = machine_of_host(log, strlen(log), hosts[i]);

		assert_int_equal(m->gpu_n, hosts[i] ? 2 : 0);
		assert_int_equal(m->observed_n, hosts[i] ? 1 : 0);
		if (hosts[i]) {
			assert_string_equal(m->gpus[0].pci->name,
					    i == 1 ? "0000:01:00.0" : "0000:03:00.0");
			assert_int_equal(m->observed[0].kind, OBSERVED_NCCL_TRANSPORT);
			assert_int_equal(m->observed[0].ok, i == 1);
		}
		machine_free(m);
	}
}

/* Encoded dumps are one line of the list, and separate what is around them as before. */
static void encoded_dumps(void **state)
{
#define DUMP                                                                                       \
	"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3ODk=\n"
	static const char text[] =
		"[    1.000000] NVRM: Xid (PCI:0000:01:00): 79, pid=1\n" DUMP DUMP DUMP
		"[    2.000000] NVRM: Xid (PCI:0000:02:00): 79, pid=1\n" DUMP DUMP;
	struct machine *m = machine_of_one(text);

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_int_equal(m->text_part_n, 4);
	assert_int_equal(m->text_parts[1].first, 2);
	assert_int_equal(m->text_parts[1].last, 4);
	assert_int_equal(m->text_parts[2].first, 5);
	assert_int_equal(m->text_parts[3].first, 6);
	assert_int_equal(m->text_parts[3].last, 7);
	machine_free(m);
}

/*
 * Pages lose the first byte of a terminal's colours, or show it in another way: nvidia-smi
 * underlines the heading of its matrix.
 */
static void colours_of_pages(void **state)
{
	static const struct {
		const char *on, *off;
	} marks[] = {
		{"[4m", "[0m"},
		{"^[[4m", "^[[0m"},
		{"\xef\xbf\xbd[4m", "\xef\xbf\xbd[0m"},
		{"\\x1b[1;36m", "\\x1b[0;0m"},
		{"\\033[4m", "\\u001b[0m"},
		{"[[4m4m", "[0m"},
	};
	static const char *const kept[] = {"rate(x[5m])", "[15m ago", "[0] NCCL",
					   "[4 m",        "[m",       "[4;200m"};
	struct arena *a = arena_new();
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		AUTO_FREE char *page =
			xprintf("        %sGPU0    GPU1    CPU Affinity    NUMA Affinity%s\n"
				"GPU0     X      PIX     0-31    0\n"
				"GPU1    PIX      X      0-31    0\n",
				marks[i].on, marks[i].off);
		struct machine *m = machine_of_one(page);

		if (m->gpu_n != 2)
			fail_msg("'%s': %zu GPUs", marks[i].on, m->gpu_n);
		machine_free(m);
	}
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		assert_string_equal(text_lines(a, kept[i], strlen(kept[i]), &n)->text, kept[i]);
	arena_free(a);
}

/* Rows without their header do not say which columns they have: they are no matrix of one GPU. */
static void a_matrix_without_header(void **state)
{
	static const char *const texts[] = {
		"GPU0     X      PIX     0-31    0\nGPU1    PIX      X      0-31    0\n",
		"GPU1    NV18    X      0-31    0\nGPU2    NV18      NV18      0-31    0\n",
		" GPU0\tX\tCNS\n GPU1\tCNS\tX\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (pasted_recognise(texts[i], strlen(texts[i])))
			fail_msg("%zu is read", i);
}

/* A text that comes in pieces has the lines of the whole, wherever it is cut. */
static void pieces_of_a_text(void **state)
{
	static const char text[] = "\xef\xbb\xbf> a\r\n\n  \033[1mb\xc2\xa0"
				   "c\033[0m  \nlast";
	static const char *const lines[] = {"> a", "", "  b c", "last"};

	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		struct arena *a = arena_new();
		struct text_splitter s = {.arena = a};

		text_split_add(&s, text, cut);
		text_split_add(&s, text + cut, sizeof(text) - 1 > cut ? sizeof(text) - 1 - cut : 0);
		text_split_end(&s);
		assert_int_equal(s.n, ARRAY_LEN(lines));
		for (size_t i = 0; i < s.n; i++) {
			assert_string_equal(s.lines[i].text, lines[i]);
			assert_int_equal(s.lines[i].number, i + 1);
		}
		arena_free(a);
	}
}

#define BOOT(release, bar1)                                                                        \
	"Nov 20 09:40:35 gpu7 kernel: Linux version " release " (x) (gcc 13) #45-Ubuntu SMP\n"     \
	"Nov 20 09:40:35 gpu7 kernel: Kernel command line: root=/dev/sda1 boot=" release "\n"      \
	"Nov 20 09:40:36 gpu7 kernel: pci 0000:01:00.0: " bar1 "\n"                                \
	"Nov 20 09:40:41 gpu7 kernel: NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  "   \
	"570.86.15  Release Build  (x)\n"
#define OLD_BAR  "reg 0x14: [mem 0x380000000000-0x3807ffffffff 64bit pref]"
#define SAME_BAR "BAR 1 [mem 0x380000000000-0x3807ffffffff 64bit pref]"
#define NEW_BAR  "BAR 1 [mem 0xe0000000-0xefffffff 64bit pref]"

static void boots_of_a_log(void **state)
{
	static const struct {
		const char *text;
		size_t differences;
		const char *last; /* of them */
	} cases[] = {
		{BOOT("6.8.0-45", OLD_BAR) "-- Boot 1f0c --\n" BOOT("6.8.0-49", NEW_BAR), 3,
		 "BAR 1 of 0000:01:00.0: '32768 MiB' at line 3, '256 MiB' at line 8"},
		{BOOT("6.8.0-45", OLD_BAR) BOOT("6.8.0-45", SAME_BAR), 0, NULL},
		{BOOT("6.8.0-45", OLD_BAR), 0, NULL},
		/* The boot before the last one counts. */
		{BOOT("6.8.0-45", NEW_BAR) BOOT("6.8.0-49", SAME_BAR) BOOT("6.8.0-49", SAME_BAR), 0,
		 NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(cases[i].text, &m, &t);

		assert_int_equal(m->observed_n, cases[i].differences);
		assert_int_equal(verdict_of(d, "boots-differ"),
				 cases[i].differences ? VERDICT_BAD : VERDICT_NA);
		if (cases[i].last)
			assert_string_equal(m->observed[m->observed_n - 1].text, cases[i].last);
		/* What the last boot runs; the one before it is no contradiction. */
		assert_true(fact_known(m->kernel.cmdline));
		assert_int_equal(m->trouble_n, 0);
		release(d, t, m);
	}
}

static void command_lines(void **state)
{
	static const struct {
		const char *text, *cmdline; /* NULL: unknown */
	} cases[] = {
		{"[    0.000000] Command line: root=/dev/sda1 iommu=pt\n",
		 "root=/dev/sda1 iommu=pt"},
		{"[    0.000000] Command line: root=/dev/sda1\n"
		 "[    0.010000] Kernel command line: root=/dev/sda1 iommu=pt\n",
		 "root=/dev/sda1 iommu=pt"},
		{"[    9.000000] test[12]: Command line: foo iommu=pt\n", NULL},
		{"[    9.000000] Unknown kernel command line parameters \"iommu=pt\"\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine *m = machine_of_one(cases[i].text);

		if (cases[i].cmdline)
			assert_string_equal(m->kernel.cmdline.value, cases[i].cmdline);
		else
			assert_true(fact_unknown(m->kernel.cmdline));
		machine_free(m);
	}
}

/* A line that is cut or wrapped shows what is set, and not what is not. */
static void command_lines_that_are_cut(void **state)
{
#define SHORT "BOOT_IMAGE=/boot/vmlinuz-6.8.0-45-generic root=UUID=12 ro"
#define LONG  SHORT " quiet"
	static const struct {
		const char *text, *cmdline;
		bool whole;
	} cases[] = {
		{LONG " iommu=pt\n", LONG " iommu=pt", true},
		{LONG " iommu=pt", LONG, false},
		{LONG " iom\nmu=pt splash\n", LONG "\nsplash", false},
		{LONG " iommu=pt\npcie_aspm=off splash\n$ lsmod\n", LONG "\nsplash", false},
		{LONG "\nroot@x:~# uname\n", LONG, true},
		{LONG "\nModule                  Size  Used by\n", LONG, true},
		{LONG "\n\nand then it hangs\n", LONG, true},
		{"root=UUID=12 ro quiet\n", "root=UUID=12 ro quiet", false},
		{"$ cat /proc/cmdline\nroot=UUID=12 ro quiet\n", "root=UUID=12 ro quiet", true},
		{"[    0.000000] Kernel command line: " LONG "\n[    0.1] x\n", LONG, true},
		{"[    0.000000] Kernel command line: " LONG, SHORT, false},
		{"[    0.000000] Kernel command line: " LONG " iom\nmu=pt splash\n", LONG, false},
		{LONG " iom\nmu=pt splash\n\n[    0.0] Kernel command line: " LONG
		      " iommu=pt splash\n",
		 LONG " iommu=pt splash", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine *m = machine_of_one(cases[i].text);
		struct topology *t = topology_new(m);
		struct diagnosis *d = diagnose(t);

		if (!fact_str_is(m->kernel.cmdline, cases[i].cmdline) ||
		    fact_is(m->kernel.cmdline_whole, 1) != cases[i].whole)
			fail_msg("row %zu: '%s', %s", i, fact_str_or(m->kernel.cmdline, "unknown"),
				 FACT_WHY(m->kernel.cmdline_whole));
		assert_int_equal(verdict_of(d, "acs-override"),
				 cases[i].whole ? VERDICT_OK : VERDICT_UNKNOWN);
		assert_int_equal(m->trouble_n, 0);
		release(d, t, m);
	}
#undef LONG
#undef SHORT
}

#define DEVICES                                                                                    \
	"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"                                        \
	"Device: 0, NVIDIA GeForce RTX 5090, pciBusID: e, pciDeviceID: 0, pciDomainID:0\n"         \
	"Device: 1, NVIDIA A40, pciBusID: b, pciDeviceID: 0, pciDomainID:0\n"

static size_t count_access(const struct machine *m, bool ok)
{
	size_t n = 0;

	for (size_t i = 0; i < m->observed_n; i++)
		n += m->observed[i].kind == OBSERVED_PEER_ACCESS && m->observed[i].ok == ok;
	return n;
}

static void access_lines(void **state)
{
	struct machine *m = machine_of_one(DEVICES "Device=0 CANNOT Access Peer Device=1\n"
						   "Device=1 CAN Access Peer Device=0\n"
						   "Device=1 CAN Access Peer Device=1\n"
						   "Device=1 MAY Access Peer Device=0\n"
						   "Device=1 CAN Access Peer Device=\n");

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_int_equal(count_access(m, false), 1);
	assert_int_equal(count_access(m, true), 1);
	assert_string_equal(m->observed[0].from, "a:4");
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

#define PERFTEST(title, unit, row)                                                                 \
	"                    " title "\n"                                                          \
	" Dual-port       : OFF\t\tDevice         : mlx5_0\n"                                      \
	" #bytes     #iterations    BW peak[" unit "]    BW average[" unit                         \
	"]   MsgRate[Mpps]\n" row
#define PICKED_GPU                                                                                 \
	"initializing CUDA\n"                                                                      \
	"Listing all CUDA devices in system:\n"                                                    \
	"CUDA device 0: PCIe address is 17:00\n"                                                   \
	"CUDA device 1: PCIe address is 65:00\n"                                                   \
	"\n"                                                                                       \
	"Picking device No. 1\n"                                                                   \
	"[pid = 3669, dev = 1] device name = [NVIDIA A30]\n"                                       \
	"allocated GPU buffer address at 00007f3fa4000000 pointer=0x7f3fa4000000\n"
#define TWO_A30 "17:00.0 0302: 10de:20b7 (rev a1)\n65:00.0 0302: 10de:20b7 (rev a1)\n"
#define OF_400                                                                                     \
	"CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"

/* The rate of perftest: of which memory, in which unit, and what it is held against. */
static void rates_of_perftest(void **state)
{
	static const struct {
		const char *text;
		enum tool_message message;
		int gpu;
		double value;
		const char *finding; /* NULL: none */
	} pages[] = {
		{TWO_A30 OF_400 PICKED_GPU
			 PERFTEST("RDMA_Write BW Test", "Gb/sec",
				  " 65536      5000   92.51   92.50   0.176430\n"),
		 MESSAGE_NIC_RATE_GPU, 1, 11.5625,
		 "perftest moved memory of GPU1 with mlx5_0 at 11.6 GB/s: 23 % of the 50 GB/s of its port"},
		{TWO_A30 OF_400 PICKED_GPU PERFTEST("RDMA_Read BW Test", "Gb/sec",
						    " 65536      5000   392.51   392.50   0.76\n"),
		 MESSAGE_NIC_RATE_GPU, 1, 49.0625, NULL},
		{PERFTEST("RDMA_Write Bidirectional BW Test", "MiB/sec",
			  " 2  1000  10.0  9.0  1.0\n 65536  1000  2000.0  2000.0  0.1\n"),
		 MESSAGE_NIC_RATE_HOST, -1, 1.048576, NULL},
		{PERFTEST("RDMA_Write BW Test", "Gb/sec",
			  " 65536 5000 390 390 0.1\n") "\n" PICKED_GPU
			 PERFTEST("RDMA_Write BW Test", "Gb/sec", " 65536 5000 90 90 0.1\n"),
		 MESSAGE_NIC_RATE_HOST, -1, 48.75,
		 "perftest moved GPU memory with mlx5_0 at 11.2 GB/s: 23 % of the 48.8 GB/s of host memory"},
		/*
		 * Pages that begin within what is printed above the title, or have only the
		 * command.
		 */
		{OF_400 "[pid = 3669, dev = 1] device name = [NVIDIA A30]\n" PERFTEST(
			 "RDMA_Write BW Test", "Gb/sec", " 65536 5000 392 392 0.1\n"),
		 MESSAGE_NIC_RATE_GPU, -1, 49, NULL},
		{OF_400 "$ ib_write_bw -d mlx5_0 --use_cuda=0 10.0.0.1\n" PERFTEST(
			 "RDMA_Write BW Test", "Gb/sec", " 65536 5000 392 392 0.1\n"),
		 MESSAGE_NIC_RATE_GPU, -1, 49, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
		struct machine *m = machine_of_one(pages[i].text);
		struct topology *t = topology_new(m);
		struct diagnosis *d = diagnose(t);
		const struct finding *f = NULL;

		for (size_t k = 0; k < d->finding_n; k++)
			if (strcmp(d->findings[k].rule->id, "observed-slow") == 0)
				f = &d->findings[k];
		assert_int_equal(m->observed[0].message, pages[i].message);
		assert_int_equal(m->observed[0].initiator, pages[i].gpu);
		assert_true(fabs(m->observed[0].value - pages[i].value) < 1e-6);
		if (pages[i].finding)
			assert_string_equal(f ? f->sentence : "", pages[i].finding);
		else
			assert_null(f);
		diagnosis_free(d);
		topology_free(t);
		machine_free(m);
	}
}

#define LATENCY(title, row)                                                                         \
	"---------------------------------------------------------------------------------------\n" \
	"                    " title "\n"                                                           \
	" Dual-port       : OFF\t\tDevice         : mlx5_0\n"                                       \
	" Link type       : IB\n"                                                                   \
	" local address: LID 0x0c QPN 0x0126 PSN 0x1d9b6b RKey 0x1fd4ba VAddr 0x007f00\n"           \
	" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "     \
	"t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n" row
#define TIMES_OF(typical)                                                                          \
	" 2       1000          0.80           9.20         " typical                              \
	"     \t       0.91        \t0.05   \t\t1.00    \t\t3.20   \n"                             \
	" 4       1000          0.80           9.20         1.11     1.1 0.05 1.00 3.20\n"

/* The time of the smallest message of a latency test, and what it is held against. */
static void times_of_perftest(void **state)
{
	static const struct {
		const char *text;
		enum tool_message message;
		int gpu;
		double value;
		uint64_t bytes;
		const char *finding; /* NULL: none */
	} pages[] = {
		{LATENCY("RDMA_Write Latency Test", TIMES_OF("0.90")), MESSAGE_NIC_TIME_HOST, -1,
		 0.9, 2, NULL},
		{" Device         : mlx5_0\n                    Send Latency Test\n"
		 " Dual-port       : OFF\t\tDevice         : mlx5_0\n"
		 " #bytes        #iterations       t_avg[usec]    tps average\n"
		 " 64        1000        1.25       800000\n",
		 MESSAGE_NIC_TIME_HOST, -1, 1.25, 64, NULL},
		{TWO_A30 PICKED_GPU LATENCY("RDMA_Read Latency Test", TIMES_OF("11.90"))
			 LATENCY("RDMA_Read Latency Test", TIMES_OF("1.90")),
		 MESSAGE_NIC_TIME_GPU, 1, 11.9, 2,
		 "perftest needed 11.9 us with memory of GPU1 and mlx5_0, and 1.9 us with host memory"},
		{TWO_A30 PICKED_GPU LATENCY("RDMA_Read Latency Test", TIMES_OF("3.90"))
			 LATENCY("RDMA_Read Latency Test", TIMES_OF("1.90")),
		 MESSAGE_NIC_TIME_GPU, 1, 3.9, 2, NULL},
		/* A read crosses the network twice, a message once. */
		{TWO_A30 PICKED_GPU LATENCY("RDMA_Read Latency Test", TIMES_OF("11.90"))
			 LATENCY("Send Latency Test", TIMES_OF("1.90")),
		 MESSAGE_NIC_TIME_GPU, 1, 11.9, 2, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		struct machine *m = machine_of_one(pages[i].text);
		struct topology *t = topology_new(m);
		struct diagnosis *d = diagnose(t);
		const struct finding *f = NULL;

		for (size_t k = 0; k < d->finding_n; k++)
			if (strcmp(d->findings[k].rule->id, "observed-slow") == 0)
				f = &d->findings[k];
		if (!m->observed_n || m->observed[0].message != pages[i].message)
			fail_msg("%zu: %zu observations", i, m->observed_n);
		assert_int_equal(m->observed[0].initiator, pages[i].gpu);
		assert_int_equal(m->observed[0].bytes, pages[i].bytes);
		assert_true(fabs(m->observed[0].value - pages[i].value) < 1e-6);
		assert_string_equal(f ? f->sentence : "", pages[i].finding ? pages[i].finding : "");
		diagnosis_free(d);
		topology_free(t);
		machine_free(m);
	}
}

/* simpleP2P prints CUDA's answers before it copies, marked like a quotation. */
static void access_lines_of_simple_p2p(void **state)
{
	struct machine *m = machine_of_one(
		"[./simpleP2P] - Starting...\n"
		"Checking for multiple GPUs...\n"
		"CUDA-capable device count: 2\n"
		"\n"
		"Checking GPU(s) for support of peer to peer memory access...\n"
		"> Peer access from NVIDIA GeForce RTX 4090 (GPU0) -> NVIDIA GeForce RTX 4090 (GPU1) : Yes\n"
		"> Peer access from NVIDIA GeForce RTX 4090 (GPU1) -> NVIDIA GeForce RTX 4090 (GPU0) : No\n"
		"Enabling peer access between GPU0 and GPU1...\n"
		"Copy data back to host from GPU0 and verify results...\n"
		"Verification error @ element 1: val = 0.000000, ref = 4.000000\n"
		"Test failed!\n");

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_string_equal(m->text_parts[1].about, "peer access in simpleP2P");
	assert_int_equal(count_access(m, false), 1);
	assert_int_equal(count_access(m, true), 1);
	assert_int_equal(m->observed[0].initiator, 0);
	assert_string_equal(m->observed[0].from, "a:6");
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

/* A GID of RoCE v2 shows which kind of port it is, so the choice of NCCL's can be judged. */
static void gid_of_the_wrong_version(void **state)
{
	struct machine *m;
	struct topology *t;
	struct diagnosis *d = judge(
		"export NCCL_IB_GID_INDEX=4\n"
		"DEV     PORT    INDEX   GID                                     IPv4            VER     DEV\n"
		"---     ----    -----   ---                                     ------------    ---     ---\n"
		"mlx5_0  1       4       0000:0000:0000:0000:0000:ffff:0a0c:0015 10.12.0.21      v1      net1\n"
		"mlx5_0  1       5       0000:0000:0000:0000:0000:ffff:0a0c:0015 10.12.0.21      v2      net1\n"
		"mlx5_0  1       6  cut",
		&m, &t);

	(void)state;
	assert_non_null(finding_of(d, "nccl-gid-index"));
	release(d, t, m);
}

/*
 * A virtual function whose host keeps it down, or a network without a manager: no cable is at
 * fault.
 */
static void port_that_nobody_opened(void **state)
{
	struct machine *m;
	struct topology *t;
	struct diagnosis *d = judge("CA 'mlx5_7'\n"
				    "\tCA type: MT4124\n"
				    "\tNumber of ports: 1\n"
				    "\tPort 1:\n"
				    "\t\tState: Down\n"
				    "\t\tPhysical state: LinkUp\n"
				    "\t\tRate: 200\n"
				    "\t\tLink layer: InfiniBand\n",
				    &m, &t);
	const struct finding *f = finding_of(d, "rdma-port-down");

	(void)state;
	assert_non_null(f);
	assert_non_null(strstr(f->sentence, "nobody has opened"));
	release(d, t, m);
}

/* A run of nccl-tests that hangs prints its heading, and no more. */
static void run_without_results(void **state)
{
	struct machine *m = machine_of_one(
		"GPU 0: NVIDIA GeForce RTX 3090\nGPU 1: NVIDIA GeForce RTX 3090\n"
		"# nThread 1 nGpus 2 minBytes 8 maxBytes 16777216 step: 2(factor) warmup iters: 5\n"
		"#\n"
		"# Using devices\n"
		"#       size         count      type   redop    root     time   algbw   busbw #wrong\n");

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

/*
 * Only what an engine refuses is said: nothing shows how many GPUs there are, or that other pairs
 * have access.
 */
static void access_lines_of_engines(void **state)
{
	struct machine *m = machine_of_one(
		"[TensorRT-LLM][WARNING] Device 0 peer access Device 1 is not available.\n"
		"[TensorRT-LLM][INFO] Loaded engine size: 3568 MiB\n"
		"[FT][WARNING] Device 2 peer access Device 0 is not avaiable. This may lead to errors\n"
		"RuntimeError: Can't enable access between nodes 2 and 1\n"
		"Device 3 peer access Device 3 is not available.\n");
	struct machine *policy = machine_of_one(
		"(VllmWorkerProcess pid=487) WARNING 07-22 03:07:03 custom_all_reduce.py:134] Custom "
		"allreduce is disabled because it's not supported on more than two PCIe-only GPUs.\n");
	struct topology *t = topology_new(policy);
	struct diagnosis *d = diagnose(t);

	(void)state;
	assert_int_equal(m->gpu_n, 3);
	assert_int_equal(m->observed_n, 3);
	assert_int_equal(count_access(m, false), 3);
	assert_int_equal(m->observed[1].initiator, 2);
	assert_int_equal(m->observed[1].target, 0);
	assert_string_equal(m->observed[1].from, "a:3");
	assert_int_equal(policy->observed[0].message, MESSAGE_ENGINE_PCIE_ONLY);
	assert_int_equal(finding_of(d, "custom-all-reduce")->severity, SEVERITY_INFO);
	diagnosis_free(d);
	topology_free(t);
	machine_free(policy);
	machine_free(m);
}

/* A paste that ends before the first result: nothing is known, and nothing is unreadable. */
static void access_lines_cut(void **state)
{
	struct machine *m = machine_of_one(DEVICES);

	(void)state;
	assert_int_equal(m->observed_n, 0);
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

/* Devices 0 and 1 are not the two whose addresses are left. */
static void some_devices(void **state)
{
	struct machine *m = machine_of_one(
		"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
		"Device: 2, NVIDIA H200, pciBusID: 82, pciDeviceID: 0, pciDomainID:0\n"
		"Device: 3, NVIDIA H200, pciBusID: 83, pciDeviceID: 0, pciDomainID:0\n"
		"P2P Connectivity Matrix\n"
		"     D\\D     0     1     2     3\n"
		"     0       1     0     0     0\n"
		"     1       0     1     0     0\n"
		"     2       0     0     1     1\n"
		"     3       0     0     1     1\n");

	(void)state;
	assert_int_equal(m->observed_n, 0);
	assert_int_equal(m->trouble_n, 1);
	assert_non_null(strstr(m->troubles[0].what, "is of 4 GPUs and lacks PCI addresses"));
	machine_free(m);
}

/* ---- messages of tools ---- */

#define SIMPLE(result)                                                                             \
	"[./simpleP2P] - Starting...\n"                                                            \
	"Checking for multiple GPUs...\n"                                                          \
	"CUDA-capable device count: 2\n"                                                           \
	"\n"                                                                                       \
	"Enabling peer access between GPU0 and GPU1...\n"                                          \
	"Copy data back to host from GPU0 and verify results...\n" result                          \
	"Disabling peer access...\n"                                                               \
	"Shutting down...\n"

#define LINKS(speed, width)                                                                        \
	"<system version=\"1\">\n"                                                                 \
	"  <cpu host_hash=\"0x16fe256e956b115c\" numaid=\"0\" arch=\"x86_64\">\n"                  \
	"    <pci busid=\"0000:05:00.0\" class=\"0x030200\" vendor=\"0x10de\" "                    \
	"device=\"0x2330\" link_speed=\"" speed "\" link_width=\"" width "\">\n"                   \
	"      <gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"/>\n"                                  \
	"    </pci>\n"                                                                             \
	"  </cpu>\n"                                                                               \
	"</system>\n"

#define GRAPH(text)                                                                                \
	"n1:900:950 [0] NCCL INFO === System : maxBw 12.0 totalBw 12.0 ===\n"                      \
	"n1:900:950 [0] NCCL INFO " text "\n"

#define RESIZE                                                                                     \
	"[    5.210000] nvidia 0000:41:00.0: BAR 1 [mem 0x28000000000-0x2800fffffff 64bit "        \
	"pref]: releasing\n"

#define LINK(number) " Link " #number ": 14.062 GB/s\n"
#define COUNTED(link, replay, recovery)                                                            \
	"\t Link " #link ": Replay Errors: " #replay "\n\t Link " #link                            \
	": Recovery Errors: " #recovery "\n\t Link " #link ": CRC Errors: 0\n\n"
#define NONE_UP "NVML: Unable to retrieve NVLink information as all links are inActive\n"

static const struct {
	const char *text;
	const char *rule; /* that hears it; NULL: none does */
	enum severity severity;
} messages[] = {
	{LIST
	 "[Feb 27 2025 15:10:12] [ERROR] [tid 12727] failed to find the GPU handle 16 in the multicast "
	 "team request setup 7816392848190136371.\n",
	 "nvswitch-fabric", SEVERITY_ERROR},
	{LIST
	 "WARNING 07-22 03:07:03 custom_all_reduce.py:118] Custom allreduce is disabled because your "
	 "platform lacks GPU P2P capability or P2P test failed.\n",
	 "custom-all-reduce", SEVERITY_WARNING},
	{LIST "rmmod: ERROR: Module nvidia_drm is in use\n", "driver-module-current",
	 SEVERITY_WARNING},
	{LIST "rmmod: ERROR: Module snd_hda_intel is in use\n", NULL, 0},
	{"modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n",
	 "module-refused", SEVERITY_WARNING},
	{"modprobe: ERROR: could not insert 'nvidia': Unknown symbol in module, or unknown "
	 "parameter (see dmesg)\n",
	 "module-symbols", SEVERITY_WARNING},
	{"modprobe: FATAL: Module nvidia-peermem not found in directory /lib/modules/6.8.0\n", NULL,
	 0},
	{LIST "nv-fabricmanager[2211]: request to query NVSwitch device information from NVSwitch "
	      "driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]\n"
	      "systemd[1]: Failed to start NVIDIA fabric manager service.\n",
	 "nvswitch-fabric", SEVERITY_INFO},
	{LIST "systemd[1]: nvidia-fabricmanager.service: Failed to start nvidia-fabricmanager.\n",
	 "nvswitch-fabric", SEVERITY_ERROR},
	{"$ systemctl status nvidia-fabricmanager\n", NULL, 0},
	{LIST "Job for nvidia-fabricmanager.service failed because the control process exited with "
	      "error code.\n",
	 "nvswitch-fabric", SEVERITY_ERROR},
	{LIST
	 "[Feb 27 2025 15:10:01] [INFO] [tid 1808] multicast group 0 is freed.\n"
	 "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 on "
	 "fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61\n",
	 "nvswitch-fabric", SEVERITY_WARNING},
	{LIST
	 "[Feb 27 2025 15:10:02] [ERROR] [tid 1] detected NVSwitch fatal error 20034 on fid 0\n",
	 "nvswitch-fabric", SEVERITY_ERROR},
	{"GPU 0: NVIDIA A100 80GB PCIe\n"
	 "+---------------------------+\n"
	 "| Health Monitor Report     |\n"
	 "+===========================+\n"
	 "| GPU 0's NvLink link 0 is currently down |\n",
	 "nvlink-up", SEVERITY_INFO},
	{"GPU 0: NVIDIA A100-SXM4-80GB\n"
	 "+---------------------------+\n"
	 "| Health Monitor Report     |\n"
	 "+===========================+\n"
	 "| GPU 0's NvLink link 0 is currently down |\n",
	 "nvlink-up", SEVERITY_ERROR},
	/* Of nvlink -e: the worst link of each kind; of -c: what it cannot do. Zeros are well. */
	{"GPU 0: NVIDIA H800\n" COUNTED(0, 0, 0) COUNTED(1, 7, 3)
		 COUNTED(2, 9, 1) "GPU 1: NVIDIA H800\n" COUNTED(0, 0, 0),
	 "nvlink-up", SEVERITY_WARNING},
	{"GPU 0: NVIDIA H800\n" COUNTED(0, 0, 0) COUNTED(1, 7, 0), "nvlink-up", SEVERITY_INFO},
	{"GPU 0: NVIDIA H800\n" COUNTED(0, 0, 0) COUNTED(1, 0, 0), NULL, 0},
	{"GPU 0: Tesla V100-SXM2-32GB\n\t Link 0: 0 replay errors\n\t Link 0: 2 recovery errors\n",
	 "nvlink-up", SEVERITY_WARNING},
	{"GPU 0: NVIDIA H800\n\t Link 0, P2P is supported: true\n"
	 "\t Link 0, Link is supported: false\n",
	 NULL, 0},
	{"GPU 0: NVIDIA H800\n\t Link 0, P2P is supported: false\n"
	 "\t Link 0, Access to system memory supported: true\n",
	 "nvlink-up", SEVERITY_WARNING},
	/*
	 * Of nvlink -s: cards of a model have as many links up as each other; a list that is cut
	 * off shows nothing.
	 */
	{"GPU 0: NVIDIA RTX A6000\n" LINK(0) LINK(1) LINK(2) LINK(
		 3) "GPU 1: NVIDIA RTX A6000\n" LINK(0) LINK(1) LINK(2) " Link 3: <inactive>\n",
	 "nvlink-up", SEVERITY_ERROR},
	{"GPU 0: NVIDIA RTX A6000\n" LINK(0) LINK(1) LINK(2)
		 LINK(3) "GPU 1: NVIDIA RTX A6000\n" LINK(0) LINK(1) "...\n",
	 NULL, 0},
	{"GPU 0: NVIDIA RTX A6000\n" LINK(0) LINK(1) "GPU 1: NVIDIA RTX A6000\n" NONE_UP, NULL, 0},
	{"GPU 0: NVIDIA H800\n" LINK(0) LINK(1) "GPU 1: NVIDIA H800\n" NONE_UP, "nvlink-up",
	 SEVERITY_ERROR},
	{"GPU 0: NVIDIA H800\n" NONE_UP "GPU 1: NVIDIA H800\n" NONE_UP, "nvlink-up",
	 SEVERITY_WARNING},
	{"GPU 0: NVIDIA RTX A6000\n" NONE_UP "GPU 1: NVIDIA RTX A6000\n" NONE_UP, NULL, 0},
	{LIST "| Diagnostic                | Result                 |\n"
	      "+===========================+========================+\n"
	      "| NVML Library              | Pass                   |\n"
	      "| PCIe                      | Fail - All             |\n",
	 "observed-run", SEVERITY_ERROR},
	{LIST "| Diagnostic                | Result                 |\n"
	      "+===========================+========================+\n"
	      "| PCIe                      | Pass - All             |\n",
	 NULL, 0},
	{LIST SIMPLE("Verification error @ element 1: val = 0, ref = 4\n") "Test failed!\n",
	 "p2p-mailbox", SEVERITY_ERROR},
	{LIST SIMPLE("") "Test passed\n", NULL, 0},
	{"$ lsmod | grep nv_peer_mem\n$ modinfo nv_peer_mem\n"
	 "filename:       /lib/modules/4.15.0/updates/dkms/nv_peer_mem.ko\nversion:        1.0-8\n",
	 "peermem-not-loaded", SEVERITY_WARNING},
	{"$ lsmod | grep nv_peer_mem\nnv_peer_mem            16384  0\n$ modinfo nv_peer_mem\n"
	 "filename:       /lib/modules/4.15.0/updates/dkms/nv_peer_mem.ko\nversion:        1.0-8\n",
	 NULL, 0},
	{"$ lsmod | grep nv_peer_mem\n$ uname -r\n", NULL, 0},
	{"GPU 0: NVIDIA GeForce RTX 4090\nGPU 1: NVIDIA GeForce RTX 4090\n"
	 "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.60.11\n",
	 "p2p-geforce", SEVERITY_WARNING},
	{"GPU 0: NVIDIA GeForce RTX 4090\nGPU 1: NVIDIA GeForce RTX 4090\n"
	 "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14\n",
	 NULL, 0},
	{LIST
	 "[  100.000100] gdrdrv:__gdrdrv_pin_buffer:nvidia_p2p_get_pages(va=7f0000000000 len=65536 "
	 "p2p_token=0 va_space=0) failed [ret = -22]\n",
	 "gdr-geforce", SEVERITY_WARNING},
	{"GPU 0: NVIDIA A40\n[  100.000100] gdrdrv:__gdrdrv_pin_buffer:nvidia_p2p_get_pages("
	 "va=7f0000000000 len=65536 p2p_token=0 va_space=0) failed [ret = -22]\n",
	 NULL, 0},
	{"NCCL_TOPO_FILE=/a.xml\n", "nccl-topo-file", SEVERITY_WARNING},
	{LINKS("", "0"), "nccl-link-speed", SEVERITY_WARNING},
	{LINKS("2.5 GT/s PCIe", "1"), "nccl-link-speed", SEVERITY_WARNING},
	{LINKS("16.0 GT/s", "16"), "nccl-link-speed", SEVERITY_WARNING},
	{LINKS("2.5 GT/s PCIe", "16"), NULL, 0},
	{LINKS("32.0 GT/s PCIe", "16"), NULL, 0},
	{GRAPH("+ PCI[0.2] - GPU/0-1000 (0)"), "nccl-link-speed", SEVERITY_WARNING},
	{GRAPH("+ PCI[24.0] - GPU/0-1000 (0)"), NULL, 0},
	{GRAPH("KV Convert to int : could not find value of '' in dictionary, falling back to 60"),
	 "nccl-link-speed", SEVERITY_WARNING},
	{GRAPH("KV Convert to int : could not find value of 'arm' in dictionary, falling back to 0"),
	 NULL, 0},
	{"nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-80GB\n"
	 "0001:00:00.0 3D controller: NVIDIA Corporation GA100 (rev a1)\n"
	 "<system version=\"1\">\n  <cpu numaid=\"0\">\n"
	 "    <pci busid=\"0002:00:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\"/>\n"
	 "  </cpu>\n</system>\n",
	 "nccl-topo-contents", SEVERITY_WARNING},
	{RESIZE "[    5.220000] NVRM: BAR resizing failed with error `-2`.\n", "bar1-resize",
	 SEVERITY_WARNING},
	{"[    5.220000] NVRM: No address space to allocate resized BAR1.\n", "bar1-resize",
	 SEVERITY_WARNING},
	{RESIZE "[    5.220000] nvidia 0000:41:00.0: BAR 1 [mem 0x30000000000-0x307ffffffff 64bit "
		"pref]: assigned\n",
	 NULL, 0},
	/* Without a pair that CUDA offers it copies nothing. */
	{LIST "[./simpleP2P] - Starting...\nTest failed!\n", NULL, 0},
};

/* A fact by itself, and no cause that is concluded from it. */
static bool states_what_was_seen(const char *rule)
{
	return !strcmp(rule, "observed-run") || !strcmp(rule, "bar1-resize") ||
	       text_starts_with(rule, "nccl-");
}

static void tools_report(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(messages[i].text, &m, &t);
		const char *rule = messages[i].rule;
		const struct finding *f = rule ? finding_of(d, rule) : NULL;

		if (rule && !f)
			fail_msg("%zu: no finding of %s", i, rule);
		if (f && f->severity != messages[i].severity)
			fail_msg("%zu: severity %d", i, (int)f->severity);
		if (f && !states_what_was_seen(rule) && f->confidence == CONFIDENCE_CERTAIN)
			fail_msg("%zu: certain", i);
		if (!rule && d->finding_n)
			fail_msg("%zu: %s", i, d->findings[0].rule->id);
		release(d, t, m);
	}
}

#define DIAG(rows)                                                                                 \
	TWO_OF_NVML                                                                                \
	"+---------------------------+------------------------------------------------+\n"         \
	"| Diagnostic                | Result                                         |\n"         \
	"+===========================+================================================+\n" rows    \
	"+---------------------------+------------------------------------------------+\n"
#define TWO_OF_NVML "GPU 0: NVIDIA L40S (UUID: GPU-1)\nGPU 1: NVIDIA L40S (UUID: GPU-2)\n\n"

/* Which test of dcgmi diag failed, on which GPUs and why: DCGM 3 and 4. */
static void tests_of_dcgm(void **state)
{
	static const struct {
		const char *text;
		size_t observed;
		int gpu; /* of the first; -1: of none in particular */
		const char *what;
		bool slow_link;
	} tables[] = {
		{DIAG("| PCIe                      | Fail - All                                     |\n"),
		 1, -1, "dcgmi diag: PCIe"},
		{DIAG("| GPU Memory                | Pass - GPU: 1                                  |\n"
		      "|                           | Fail - GPU: 0                                  |\n"
		      "| Warning                   | GPU 0 Error using CUDA API cuCtxCreate Check   |\n"
		      "|                           | DCGM and system logs for errors.               |\n"),
		 1, 0,
		 "dcgmi diag: GPU Memory: GPU 0 Error using CUDA API cuCtxCreate Check DCGM and "
		 "system logs for errors."},
		{DIAG("| pcie                      | Fail                                           |\n"
		      "|                           | GPU0: Pass                                     |\n"
		      "|                           | GPU1: Fail                                     |\n"
		      "| Warning: GPU1             | GPU 1's PCIe link is running at 8 lanes.       |\n"
		      "| Info: GPU1                | GPU1: Fail                                     |\n"
		      "| memory                    | Pass                                           |\n"),
		 1, 1, "dcgmi diag: pcie: GPU 1's PCIe link is running at 8 lanes.", true},
		/* a cell that somebody made wider */
		{DIAG("| PCIe                      | Fail - GPU: 1                                  |\n"
		      "| Warning                   | GPU 1 bandwidth of 5.91 GB/s is below the minimum of 20 GB/s |\n"),
		 1, 1,
		 "dcgmi diag: PCIe: GPU 1 bandwidth of 5.91 GB/s is below the minimum of 20 GB/s",
		 true},
		{DIAG("| memory                    | Pass                                           |\n"
		      "| Failover                  | Skip                                           |\n"),
		 0, -1, NULL},
		/*
		 * Only links that are down: no failure of a test; the table begins with a group of
		 * tests.
		 */
		{TWO_OF_NVML
		 "+-----  Integration  -------+------------------------------------------------+\n"
		 "| PCIe                      | Fail - All                                     |\n"
		 "| Warning                   | GPU 0GPU 0's NvLink link 0 is currently down   |\n"
		 "|                           | Run a field diagnostic on the GPU., GPU 0GPU   |\n"
		 "|                           | 0's NvLink link 1 is currently down Run a fie  |\n"
		 "+---------------------------+------------------------------------------------+\n",
		 1, -1, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		struct machine *m = machine_of_one(tables[i].text);

		assert_int_equal(m->observed_n, tables[i].observed);
		if (m->observed_n)
			assert_int_equal(m->observed[0].initiator, tables[i].gpu);
		if (tables[i].what)
			assert_string_equal(m->observed[0].failure.what, tables[i].what);
		else if (m->observed_n)
			assert_int_equal(m->observed[0].message, MESSAGE_NVLINK_DOWN);
		if (tables[i].slow_link)
			assert_non_null(strstr(run_failure_find(&m->observed[0].failure)->meaning,
					       "is slower than the test expects"));
		machine_free(m);
	}
}

static void links_of_dcgm(void **state)
{
	struct machine *m =
		machine_of_one("GPUs:\n    gpuId 0:\n        D U X _\n    gpuId 1:\n"
			       "        U U U U\nNvSwitches:\n    No NvSwitches found.\n");

	(void)state;
	assert_int_equal(m->gpu_n, 2);
	assert_fact(m->gpus[0].nvlinks[0].active, 0, "a:3");
	assert_fact(m->gpus[0].nvlinks[1].active, 1, "a:3");
	assert_fact(m->gpus[0].nvlinks[2].active, 0, "a:3");
	assert_true(fact_unknown(m->gpus[0].nvlinks[3].active));
	assert_fact(m->gpus[1].nvlinks[3].active, 1, "a:5");
	machine_free(m);
}

/* The tree names GPUs, and not their other functions or NVSwitches. */
static void gpus_of_a_tree(void **state)
{
	struct machine *m = machine_of_one(
		"-[0000:00]-+-01.1-[01]--+-00.0  NVIDIA Corporation AD102 [GeForce RTX 4090]\n"
		"           |            \\-00.1  NVIDIA Corporation AD102 High Definition Audio Controller\n"
		"           +-02.1-[02]----00.0  NVIDIA Corporation GH100 [H100 NVSwitch]\n"
		"           \\-03.1-[03]----00.0  NVIDIA Corporation Device 2b85\n");

	(void)state;
	assert_int_equal(m->gpu_n, 1);
	assert_string_equal(m->gpus[0].pci->name, "0000:01:00.0");
	assert_string_equal(m->gpus[0].model.value, "NVIDIA GeForce RTX 4090");
	machine_free(m);
}

/* df and limits of a process, in the forms that people paste; other file systems are not read. */
static void shared_and_locked_memory(void **state)
{
	static const struct {
		const char *text;
		int64_t size, avail, memlock, hard; /* -2: unknown */
	} texts[] = {
		{"Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   12M   52M  19% "
		 "/dev/shm\n",
		 64 << 20, 52 << 20, -2, -2},
		{"Filesystem     1K-blocks   Used Available Use% Mounted on\n/dev/sda1 100 50 50 50% /\n"
		 "tmpfs              65536      0     65536   0% /dev/shm\n",
		 64 << 20, 64 << 20, -2, -2},
		{"shm  64M  64M  0 100% /dev/shm\n", 64 << 20, 0, -2, -2},
		{"shm  65536  0  65536 0% /dev/shm\n", -2, -2, -2, -2},
		{"Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda1 64M 12M 52M 19% /\n",
		 -2, -2, -2, -2},
		{"max locked memory           (kbytes, -l) 64\n", -2, -2, 65536, -2},
		{"max locked memory       (kbytes, -l) unlimited\n", -2, -2, -1, -2},
		{"Max locked memory         8388608              unlimited            bytes     \n",
		 -2, -2, 8388608, -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct machine *m = machine_of_one(texts[i].text);
		const struct limits *l = &m->limits;
		const struct fact_int facts[] = {l->shm_bytes, l->shm_free_bytes, l->memlock_bytes,
						 l->memlock_hard_bytes};
		const int64_t want[] = {texts[i].size, texts[i].avail, texts[i].memlock,
					texts[i].hard};

		for (size_t k = 0; k < ARRAY_LEN(want); k++)
			if (want[k] == -2 ? !fact_unknown(facts[k]) : !fact_is(facts[k], want[k]))
				fail_msg("%zu, %zu: %lld", i, k, (long long)facts[k].value);
		machine_free(m);
	}
}

/*
 * What is asked first: the driver's answer after a refusal, shared memory after a bus error, the
 * port of a rate.
 */
static void asks_what_decides(void **state)
{
	static const char *const texts[][2] = {
		{"RuntimeError: CUDART error: peer access is not supported between these two devices\n",
		 "nvidia-smi topo -p2p r"},
		{"RuntimeError: DataLoader worker (pid 12) is killed by signal: Bus error. It is\n",
		 "df -h /dev/shm"},
		{PERFTEST("RDMA_Write BW Test", "Gb/sec", " 65536 5000 90 90 0.1\n"), "ibstat"},
		{PERFTEST("RDMA_Write BW Test", "Gb/sec", " 65536 5000 90 90 0.1\n"),
		 "nvidia-smi topo -m"},
		{"[Feb 27 2025 15:10:12] [ERROR] [tid 1] failed to find the GPU handle 16 in the multicast "
		 "team request setup 7.\n",
		 "lspci -nn -d 10de:; systemctl status nvidia-fabricmanager --no-pager"},
		/* What the text has is not asked for again. */
		{"$ nvidia-smi topo -m\n" TOPO_OF_GPUS
		 "$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n",
		 "nvidia-smi topo -p2p w"},
		{"$ nvidia-smi topo -m\n" TOPO_OF_GPUS
		 "$ nvidia-smi topo -p2p w\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n",
		 "nvidia-smi topo -p2p r"},
		{"GPU 0: NVIDIA H800\n" LINK(0) LINK(1) "GPU 1: NVIDIA H800\n" LINK(0) LINK(1),
		 "nvidia-smi topo -m"},
		{"RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)\n",
		 "NCCL_DEBUG=INFO YOUR_COMMAND 2>&1 | grep NCCL"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct question asked[QUESTIONS_MAX];
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(texts[i][0], &m, &t);
		const size_t n = diagnosis_ask(d, asked);
		bool found = false;

		for (size_t k = 0; k < n; k++)
			found |= strcmp(asked[k].command, texts[i][1]) == 0;
		if (!found || n > QUESTIONS_MAX)
			fail_msg("%zu: not '%s'", i, texts[i][1]);
		release(d, t, m);
	}
}

/* What a module that is loaded cannot lack is not advised. */
static void advice_knows_the_module(void **state)
{
	static const struct {
		const char *text, *advice;
	} pages[] = {
		{"Couldn't allocate MR\n", "load nvidia_peermem"},
		{"nvidia_peermem         16384  0\nnvidia_uvm           4943872  0\n"
		 "nvidia              54566912  3 nvidia_uvm,nvidia_peermem\nCouldn't allocate MR\n",
		 "the module for peer memory is loaded"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(pages[i].text, &m, &t);
		const struct finding *f = NULL;

		for (size_t k = 0; k < d->finding_n; k++)
			if (strcmp(d->findings[k].rule->id, "observed-run") == 0)
				f = &d->findings[k];
		if (!f || !strstr(f->remedy, pages[i].advice))
			fail_msg("%zu: '%s'", i, f ? f->remedy : "no finding");
		release(d, t, m);
	}
}

/* kubectl describe node: labels lack blanks, and names of modules have hyphens. */
static void labels_of_a_node(void **state)
{
	static const struct {
		const char *product, *model;
	} products[] = {
		{"NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3"},
		{"NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"},
		{"Tesla-V100-PCIE-32GB", "Tesla V100-PCIE-32GB"},
		{"NVIDIA-A100-80GB-PCIe", "NVIDIA A100 80GB PCIe"},
		{"NVIDIA-GeForce-RTX-4090-SHARED", "NVIDIA GeForce RTX 4090"},
		{"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA A100-SXM4-40GB"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(products); i++) {
		AUTO_FREE char *text =
			xprintf("Name:               gpu-node-7\n"
				"Labels:             beta.kubernetes.io/arch=amd64\n"
				"                    nvidia.com/cuda.driver.major=550\n"
				"                    nvidia.com/cuda.driver.minor=54\n"
				"                    nvidia.com/cuda.driver.rev=15\n"
				"                    nvidia.com/gpu.count=8\n"
				"                    nvidia.com/gpu.product=%s\n"
				"System Info:\n"
				"  Kernel Version:             5.15.0-1063-azure\n",
				products[i].product);
		struct machine *m = machine_of_one(text);

		assert_int_equal(m->gpu_n, 8);
		assert_string_equal(m->gpus[7].model.value, products[i].model);
		assert_string_equal(m->gpus[7].model.from, "a:7");
		assert_string_equal(m->kernel.release.value, "5.15.0-1063-azure");
		assert_string_equal(m->driver.module_version.value, "550.54.15");
		assert_int_equal(m->trouble_n, 0);
		machine_free(m);
	}
}

/* iproute2 before 5.0 begins with the numbers of device and port. */
static void old_rdma_link(void **state)
{
	struct machine *m = machine_of_one(
		"1/1: mlx5_0/1: subnet_prefix fe80:0000:0000:0000 lid 13399 sm_lid 49151 lmc 0 state "
		"ACTIVE physical_state LINK_UP\n");

	(void)state;
	assert_int_equal(m->rdma_n, 1);
	assert_string_equal(m->rdma[0].ports[0].state.value, "ACTIVE");
	machine_free(m);
}

/* A dump states the GPUs and NICs that NCCL found; a recording of it holds no hash and no GUID. */
static void topology_of_nccl(void **state)
{
	static const char text[] = LINKS(
		"32.0 GT/s PCIe",
		"16") "$ cat nic.xml\n<system version=\"1\">\n"
		      "<pci busid=\"0000:08:00.0\" class=\"0x020000\" link_speed=\"\">\n"
		      "<nic>\n<net name=\"mlx5_0\" dev=\"0\" guid=\"0xa87cb10003e1a258\"/>\n</nic>\n"
		      "</pci>\n</system>\n";
	struct machine *m = machine_of_one(text);
	AUTO_STRBUF struct strbuf kept = {0};
	struct pasted *t = pasted_new("paste");

	(void)state;
	assert_int_equal(m->gpu_n, 1);
	assert_string_equal(m->gpus[0].pci->name, "0000:05:00.0");
	assert_true(fact_is(m->gpus[0].nvml_index, 0));
	assert_fact(m->gpus[0].pci->device, 0x2330, "a:3");
	assert_true(fact_unknown(m->gpus[0].pci->link_speed_max)); /* the lesser of both ends */
	assert_int_equal(m->nccl.topology.n, 2);
	assert_true(m->nccl.topology.devices[1].used);
	pasted_add(t, "a", text, strlen(text));
	pasted_keep(t, &kept);
	assert_non_null(strstr(strbuf_str(&kept), "0000:08:00.0"));
	assert_null(strstr(strbuf_str(&kept), "16fe256e"));
	assert_null(strstr(strbuf_str(&kept), "a87cb10003e1a258"));
	source_free(pasted_source(t));
	pasted_free(t);
	machine_free(m);
}

/* Only a failure in the set-up of multicast concerns the fabric. */
static void multicast_fails(void **state)
{
	static const char *const texts[] = {
		"n:900:950 [1] transport/nvls.cc:223 NCCL WARN Cuda failure 999 'unknown error'\n",
		"n:900:950 [1] transport/p2p.cc:223 NCCL WARN Cuda failure 999 'unknown error'\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct machine *m;
		struct topology *t;
		struct diagnosis *d = judge(texts[i], &m, &t);

		assert_non_null(finding_of(d, "observed-run"));
		assert_int_equal(verdict_of(d, "nvswitch-fabric") == VERDICT_BAD, i == 0);
		release(d, t, m);
	}
}

/* ---- variables of containers and jobs ---- */

static const char *value_of(const struct machine *m, const char *name)
{
	for (size_t i = 0; i < m->nccl.setting_n; i++)
		if (!strcmp(m->nccl.settings[i].name, name))
			return m->nccl.settings[i].value;
	return NULL;
}

static void launched_with(void **state)
{
	static const struct {
		const char *text, *value; /* of NCCL_P2P_LEVEL; NULL: it is not set */
	} cases[] = {
		{"$ docker run --gpus all -e NCCL_P2P_LEVEL=SYS image\n", "SYS"},
		{"root@box:~# docker run -it \\\n  --env=NCCL_P2P_LEVEL=SYS \\\n  image\n", "SYS"},
		{"sudo podman run -e \"NCCL_P2P_LEVEL=SYS\" image\n", "SYS"},
		{"mpirun -np 2 -x NCCL_P2P_LEVEL=SYS ./all_reduce_perf\n", "SYS"},
		{"srun --export=ALL,NCCL_DEBUG=INFO,NCCL_P2P_LEVEL=SYS ./a\n", "SYS"},
		{"      NCCL_P2P_LEVEL:  SYS\n", "SYS"},
		{"  - name: NCCL_P2P_LEVEL\n    value: \"SYS\"\n", "SYS"},
		{"docker run -v NCCL_P2P_LEVEL=SYS image\n", NULL},
		{"docker run -e NCCL_P2P_LEVEL=$LEVEL image\n", NULL},
		{"docker run -e NCCL_P2P_LEVEL image\n", NULL},
		{"NCCL_P2P_LEVEL: the distance up to which NCCL uses P2P\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine *m = machine_of_one(cases[i].text);
		const char *value = value_of(m, "NCCL_P2P_LEVEL");

		if (cases[i].value ? !value || strcmp(value, cases[i].value) : value != NULL)
			fail_msg("%zu: %s", i, value ? value : "not set");
		machine_free(m);
	}
}

/* A recording keeps the variables of such a command, and nothing else of it. */
static void launched_in_a_recording(void **state)
{
	const char *text = "$ docker run -v /home/alice:/data -e SECRET=1 \\\n"
			   "    -e NCCL_P2P_LEVEL=SYS alice/image\n";
	AUTO_STRBUF struct strbuf kept = {0};
	struct pasted *t = pasted_new("paste");

	(void)state;
	pasted_add(t, "a", text, strlen(text));
	pasted_keep(t, &kept);
	assert_null(strstr(strbuf_str(&kept), "alice"));
	assert_null(strstr(strbuf_str(&kept), "SECRET"));
	assert_non_null(strstr(strbuf_str(&kept), "NCCL_P2P_LEVEL=SYS"));
	source_free(pasted_source(t));
	pasted_free(t);
}

/* ---- pages of GitHub ---- */

#define FENCED "Before.\\r\\n```\\r\\nGPU 0: NVIDIA A40 (UUID: GPU-aaaaaaaa)\\r\\n```\\r\\n"
#define OTHERS "GPU 0: NVIDIA H200 (UUID: GPU-bbbbbbbb)"
#define LOADED "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Release Build"
#define POST(login, body)                                                                          \
	"{\"user\": {\"login\": \"" login "\"}, \"body\": \"" body "\", \"issue_url\": \"u\"}"

/* The author's texts are one machine's; other people have other machines. */
static void an_issue_as_json(void **state)
{
	static const char *const pages[] = {
		/* the API's issue, with its comments below it or as a page of its own */
		"{\"title\": \"No P2P\", \"number\": 7, \"comments\": 2, \"user\": {\"login\": \"ann\"}, "
		"\"body\": \"" FENCED "\"}\n[" POST("bob", OTHERS) ", " POST("ann", LOADED) "]",
		/* gh issue view --json title,author,body,comments */
		"{\"author\": {\"login\": \"ann\"}, \"title\": \"No P2P\", \"body\": \"" FENCED
		"\", \"comments\": [{\"author\": {\"login\": \"bob\"}, \"body\": \"" OTHERS
		"\"}, {\"author\": {\"login\": \"ann\"}, \"body\": \"" LOADED "\"}]}",
		/* GraphQL */
		" {\"data\": {\"repository\": {\"issue\": {\"author\": {\"login\": \"ann\"}, "
		"\"title\": \"No P2P\", \"body\": \"" FENCED
		"\", \"comments\": {\"nodes\": [{\"author\": {\"login\": \"bob\"}, \"body\": \"" OTHERS
		"\"}, {\"author\": {\"login\": \"ann\"}, \"body\": \"" LOADED "\"}]}}}}}",
		/* comments alone: of the first who shows an output */
		"[" POST("bob", "Which GPU?") ", " POST("ann", FENCED) ", " POST(
			"bob", OTHERS) ", " POST("ann", LOADED) "]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		struct machine *m = machine_of_one(pages[i]);

		assert_int_equal(m->gpu_n, 1);
		assert_string_equal(m->gpus[0].model.value, "NVIDIA A40");
		assert_string_equal(m->gpus[0].model.from, i < 3 ? "a:issue:3" : "a:comment 2:3");
		assert_true(fact_str_is(m->driver.module_version, "550.54.14"));
		assert_true(has_trouble(m, "1 comment by others has outputs of tools"));
		machine_free(m);
	}
}

/* The page may come in several files. */
static void comments_of_an_issue(void **state)
{
	static const char *const pages[] = {
		"{\"title\": \"No P2P\", \"user\": {\"login\": \"ann\"}, \"body\": null}",
		"[" POST("bob", OTHERS) ", " POST("ann", LOADED) "]",
	};
	struct machine *m = machine_of_texts(pages, 2);

	(void)state;
	assert_int_equal(m->gpu_n, 0);
	assert_true(fact_str_is(m->driver.module_version, "550.54.14"));
	machine_free(m);
}

/* Issues of several people, and JSON that is something else or cut off. */
static void other_json(void **state)
{
	static const char *const texts[] = {
		"[{\"title\": \"a\", \"user\": {\"login\": \"ann\"}, \"body\": \"" LOADED
		"\"}, {\"title\": \"b\", \"user\": {\"login\": \"bob\"}, \"body\": \"" OTHERS
		"\"}]",
		"{\"body\": 7}\n" LOADED "\n",
		"[   1.5] NVRM: loading\n" LOADED "\n",
		"{\"title\": \"No P2P\", \"body\": \"cut\n" LOADED "\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct machine *m = machine_of_one(texts[i]);

		assert_int_equal(m->gpu_n, 0);
		assert_true(fact_str_is(m->driver.module_version, "550.54.14"));
		assert_int_equal(has_trouble(m, "only the first is read"), i == 0);
		machine_free(m);
	}
}

/* ---- seeds of the fuzzer ---- */

static bool is_read(struct source *s, const char *name, size_t kind, const char *kind_name)
{
	AUTO_FREE char *data = NULL;
	struct arena *a = arena_new();
	size_t size, line_n, n = 0, named = strlen(kind_name);
	struct text_line *lines;

	assert_int_equal(source_read(s, &data, &size, "./%s", name), 0);
	if (text_starts_with(data, kind_name) && data[named] == '\n') {
		lines = text_lines(a, data + named + 1, size - named - 1, &line_n);
		parts_of_kind(a, kind, "a", lines, line_n, &n);
	}
	arena_free(a);
	return n != 0;
}

static void every_kind_has_a_seed(void **state)
{
	const char *kind, *gives;
	struct source *s = NULL;
	char **names = NULL;
	size_t n = 0;

	(void)state;
	assert_int_equal(source_open_root("tests/fuzz/corpus/decoders", NULL, NULL, &s), 0);
	assert_int_equal(source_list(s, &names, &n, "."), 0);
	for (size_t i = 0; part_kind_at(i, &kind, &gives); i++) {
		bool found = false;

		for (size_t k = 0; k < n; k++)
			found |= is_read(s, names[k], i, kind);
		if (!found)
			fail_msg("tests/fuzz/corpus/decoders has no %s", kind);
	}
	source_free_names(names, n);
	source_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lspci_verbose),
		cmocka_unit_test(lspci_virtual_bars),
		cmocka_unit_test(lspci_names_data_centre_cards),
		cmocka_unit_test(lspci_says_less),
		cmocka_unit_test(lspci_numbers),
		cmocka_unit_test(lspci_without_a_name),
		cmocka_unit_test(lspci_rows_that_are_cut),
		cmocka_unit_test(lspci_tree),
		cmocka_unit_test(smi_tables),
		cmocka_unit_test(smi_query),
		cmocka_unit_test(smi_query_xml),
		cmocka_unit_test(smi_query_xml_and_text),
		cmocka_unit_test(smi_sections),
		cmocka_unit_test(smi_without_addresses),
		cmocka_unit_test(smi_cut),
		cmocka_unit_test(log_forms),
		cmocka_unit_test(logs_as_json),
		cmocka_unit_test(json_that_is_no_log),
		cmocka_unit_test(logs_as_fields),
		cmocka_unit_test(fields_that_are_no_log),
		cmocka_unit_test(collected_environments),
		cmocka_unit_test(perftest_pages),
		cmocka_unit_test(rates_of_perftest),
		cmocka_unit_test(times_of_perftest),
		cmocka_unit_test(tests_of_dcgm),
		cmocka_unit_test(links_of_dcgm),
		cmocka_unit_test(gpus_of_a_tree),
		cmocka_unit_test(old_rdma_link),
		cmocka_unit_test(labels_of_a_node),
		cmocka_unit_test(shared_and_locked_memory),
		cmocka_unit_test(asks_what_decides),
		cmocka_unit_test(advice_knows_the_module),
		cmocka_unit_test(gpus_in_one_line),
		cmocka_unit_test(no_log),
		cmocka_unit_test(whole_log),
		cmocka_unit_test(modules),
		cmocka_unit_test(quoted),
		cmocka_unit_test(parts_of_a_page),
		cmocka_unit_test(two_texts),
		cmocka_unit_test(disagreement),
		cmocka_unit_test(shortened),
		cmocka_unit_test(variable_of_two_values),
		cmocka_unit_test(variables_in_front_of_commands),
		cmocka_unit_test(version_of_nccl_alone),
		cmocka_unit_test(rdma_tools),
		cmocka_unit_test(cpu_lines),
		cmocka_unit_test(vllm_cache),
		cmocka_unit_test(nvbandwidth),
		cmocka_unit_test(hosts_in_front_of_lines),
		cmocka_unit_test(ibstatus_lines),
		cmocka_unit_test(gid_tables),
		cmocka_unit_test(variables_of_deepspeed),
		cmocka_unit_test(disagreements_in_words),
		cmocka_unit_test(values_of_two_moments),
		cmocka_unit_test(cut_texts),
		cmocka_unit_test(lost_lines),
		cmocka_unit_test(lost_gpu_and_table),
		cmocka_unit_test(tables_of_some_gpus),
		cmocka_unit_test(p2p_reads_alone),
		cmocka_unit_test(a_denial_without_models),
		cmocka_unit_test(an_engine_without_p2p),
		cmocka_unit_test(guests_of_kernel_logs),
		cmocka_unit_test(a_denial_in_a_guest),
		cmocka_unit_test(causes_of_the_fabric_manager),
		cmocka_unit_test(causes_come_first),
		cmocka_unit_test(a_driver_that_does_not_work),
		cmocka_unit_test(faults_of_unlisted_devices),
		cmocka_unit_test(evidence_of_the_cards),
		cmocka_unit_test(rules_about_nothing),
		cmocka_unit_test(rules_without_facts),
		cmocka_unit_test(wrong_setting),
		cmocka_unit_test(three_kinds_of_missing),
		cmocka_unit_test(modinfo_without_license),
		cmocka_unit_test(two_machines_without_names),
		cmocka_unit_test(times_of_lines),
		cmocka_unit_test(older_and_newer),
		cmocka_unit_test(older_and_newer_in_words),
		cmocka_unit_test(said_again_without_a_time),
		cmocka_unit_test(times_in_a_recording),
		cmocka_unit_test(nics_of_a_matrix),
		cmocka_unit_test(nics_of_two_matrices),
		cmocka_unit_test(encoded_dumps),
		cmocka_unit_test(colours_of_pages),
		cmocka_unit_test(a_matrix_without_header),
		cmocka_unit_test(pieces_of_a_text),
		cmocka_unit_test(boots_of_a_log),
		cmocka_unit_test(several_machines),
		cmocka_unit_test(machines_in_prompts),
		cmocka_unit_test(too_many_machines),
		cmocka_unit_test(hosts_above_their_lines),
		cmocka_unit_test(one_of_several),
		cmocka_unit_test(log_of_several),
		cmocka_unit_test(command_lines),
		cmocka_unit_test(command_lines_that_are_cut),
		cmocka_unit_test(access_lines),
		cmocka_unit_test(access_lines_of_simple_p2p),
		cmocka_unit_test(access_lines_of_engines),
		cmocka_unit_test(access_lines_cut),
		cmocka_unit_test(run_without_results),
		cmocka_unit_test(gid_of_the_wrong_version),
		cmocka_unit_test(port_that_nobody_opened),
		cmocka_unit_test(some_devices),
		cmocka_unit_test(tools_report),
		cmocka_unit_test(topology_of_nccl),
		cmocka_unit_test(multicast_fails),
		cmocka_unit_test(launched_with),
		cmocka_unit_test(launched_in_a_recording),
		cmocka_unit_test(an_issue_as_json),
		cmocka_unit_test(comments_of_an_issue),
		cmocka_unit_test(other_json),
		cmocka_unit_test(every_kind_has_a_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
