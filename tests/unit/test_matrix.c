/* SPDX-License-Identifier: Apache-2.0 */
/* topology/matrix.c: the bytes of nvidia-smi. */
#include "topology/topology.h"

#include "base/strbuf.h"
#include "build_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char from[] = "test";

#define LEGEND                                                                                     \
	"\nLegend:\n\n  X    = Self\n"                                                             \
	"  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes "  \
	"(e.g., QPI/UPI)\n"                                                                        \
	"  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host "       \
	"Bridges within a NUMA node\n"                                                             \
	"  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"  \
	"  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host "  \
	"Bridge)\n"                                                                                \
	"  PIX  = Connection traversing at most a single PCIe bridge\n"                            \
	"  NV#  = Connection traversing a bonded set of # NVLinks\n"

#define P2P_LEGEND                                                                                 \
	"\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"         \
	"  GNS  = GPU not supported\n  TNS  = Topology not supported\n"                            \
	"  NS   = Not supported\n"

static void matrix_is(struct machine *m, const char *want)
{
	AUTO_STRBUF struct strbuf out = {0};
	struct topology *t = topology_new(m);

	topology_format_matrix(t, true, &out);
	assert_string_equal(strbuf_str(&out), want);
	topology_free(t);
	build_free(m);
}

/* What nvidia-smi 580.159.04 prints on two H200 of a virtual machine, whose firmware names no node.
 */
static void two_h200(void **state)
{
	struct machine *m = build_machine();

	(void)state;
	build_gpu(m, "0000:00:06.0", NULL);
	build_gpu(m, "0000:00:07.0", NULL);
	for (size_t i = 0; i < 2; i++) {
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_SWITCH, "FFFFFFFF:FF:FF.0");
		m->gpus[i].pci->numa_node = fact_int(-1, from);
		m->gpus[i].pci->local_cpus = fact_str("0-31", from);
	}
	matrix_is(m, "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
		     "GPU0\t X \tNV18\t0-31\t0\t\tN/A\n"
		     "GPU1\tNV18\t X \t0-31\t0\t\tN/A\n" LEGEND);
}

static void nic_rows(void **state)
{
	struct machine *m = build_root_ports(2, 2, 2);
	struct pci_function *port = build_port(m, "0000:c0:01.0", NULL, PCI_PORT_ROOT);

	(void)state;
	port->numa_node = fact_int(1, from);
	build_nic(m, "0000:c1:00.0", port, "mlx5_0");
	build_nic(m, "0000:c1:00.1", port, "mlx5_1");
	m->gpus[1].numa_id = fact_int(2, from);
	matrix_is(
		m,
		"\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
		"GPU0\t X \tSYS\tSYS\tSYS\t0-7\t0\t\tN/A\n"
		"GPU1\tSYS\t X \tNODE\tNODE\t8-15\t1\t\t2\n"
		"NIC0\tSYS\tNODE\t X \tPIX\t\t\t\t\n"
		"NIC1\tSYS\tNODE\tPIX\t X \t\t\t\t\n" LEGEND
		"\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n");
}

static void no_node(void **state)
{
	struct machine *m = build_machine();

	(void)state;
	build_gpu(m, "0000:01:00.0", NULL);
	m->gpus[0].pci->numa_node = fact_int(-1, from);
	m->node_n = 0;
	matrix_is(m, "\t\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
		     "GPU0\t X \t\tN/A\t\tN/A\n" LEGEND);
}

static void p2p_is(struct machine *m, enum p2p_cap cap, const char *want)
{
	AUTO_STRBUF struct strbuf out = {0};
	struct topology *t = topology_new(m);

	topology_format_p2p(t, cap, true, &out);
	assert_string_equal(strbuf_str(&out), want);
	topology_free(t);
}

static void p2p(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->pairs[1].p2p[P2P_READ] = fact_int(P2P_CHIPSET_NOT_SUPPORTED, from);
	m->pairs[2].p2p[P2P_READ] = fact_int_unknown("no NVML");
	p2p_is(m, P2P_READ,
	       " \t\x1b[4mGPU0\tGPU1\t\x1b[0m\n GPU0\tX\tCNS\t\n GPU1\tU\tX\t\n" P2P_LEGEND
	       "  U    = Unknown\n");
	m->driver.module_version = fact_str("610.10", from);
	p2p_is(m, P2P_NVLINK,
	       " \t\x1b[4mGPU0\tGPU1\t\x1b[0m\n GPU0\tX\tNS\t\n GPU1\tNS\tX\t\n" P2P_LEGEND
	       "  DR   = Disabled by regkey\n  U    = Unknown\n");
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_h200),
		cmocka_unit_test(nic_rows),
		cmocka_unit_test(no_node),
		cmocka_unit_test(p2p),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
