/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology/preflight.c: which way of registering GPU memory can work for a GPU and a NIC, and why.
 */
#include "base/alloc.h"
#include "build_machine.h"
#include "topology/nearest.h"
#include "topology/preflight.h"

#include <cmocka.h>
#include <string.h>

static const char from[] = "test";

enum { GPU = 0, NIC = 1 }; /* endpoints */

/* Both below one switch; dma-buf can work and nvidia-peermem is not loaded. */
static struct machine *switch_machine(void)
{
	struct machine *m = build_machine();
	struct pci_function *root = build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *up = build_port(m, "0000:21:00.0", root, PCI_PORT_UPSTREAM);
	struct pci_function *a = build_port(m, "0000:22:00.0", up, PCI_PORT_DOWNSTREAM);
	struct pci_function *b = build_port(m, "0000:22:01.0", up, PCI_PORT_DOWNSTREAM);

	build_model(build_gpu(m, "0000:23:00.0", a), "NVIDIA H100 PCIe", 90);
	build_nic(m, "0000:24:00.0", b, "mlx5_0");
	m->peermem.loaded = m->peermem.registered = fact_int(0, from);
	return m;
}

static struct preflight fly(const struct machine *m)
{
	struct topology *t = topology_new(m);
	struct preflight p = topology_preflight(t, GPU, NIC);

	/* The chain's link is the preflight's, in both directions. */
	assert_int_equal(topology_path(t, NIC, GPU)->chain[CHAIN_DRIVER].reason, p.pair.reason);
	assert_int_equal(topology_path(t, GPU, NIC)->chain[CHAIN_DRIVER].state, p.pair.state);
	topology_free(t);
	return p;
}

static void expect(const struct machine *m, enum chain_state dma_buf, enum chain_reason why_dma_buf,
		   enum chain_state peermem, enum chain_reason why_peermem)
{
	struct preflight p = fly(m);

	assert_string_equal(chain_reason_word(p.dma_buf.reason), chain_reason_word(why_dma_buf));
	assert_int_equal(p.dma_buf.state, dma_buf);
	assert_string_equal(chain_reason_word(p.peermem.reason), chain_reason_word(why_peermem));
	assert_int_equal(p.peermem.state, peermem);
}

static void dma_buf(void **state)
{
	struct machine *m = switch_machine();

	(void)state;
	expect(m, CHAIN_OK, REASON_DMA_BUF_READY, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	m->kernel.dma_buf = fact_int(0, from);
	expect(m, CHAIN_BAD, REASON_DMA_BUF_KERNEL, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	m->kernel.dma_buf = fact_int_unknown("not read");
	expect(m, CHAIN_UNKNOWN, REASON_DMA_BUF_UNKNOWN, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	m->kernel.dma_buf = fact_int(1, from);
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, from);
	expect(m, CHAIN_BAD, REASON_DMA_BUF_MODULES, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	m->gpus[0].dma_buf = fact_int(1, from); /* CUDA's own word counts more */
	expect(m, CHAIN_OK, REASON_DMA_BUF_READY, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	m->rdma[0].pci->iommu_type = fact_str("DMA-FQ", from); /* lost writes raise no error */
	expect(m, CHAIN_POSSIBLE, REASON_DMA_BUF_IOMMU, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	m->rdma[0].pci->iommu_type = fact_str("identity", from);
	expect(m, CHAIN_OK, REASON_DMA_BUF_READY, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	m->rdma[0].pci->driver = fact_str("cxgb4", from);
	expect(m, CHAIN_BAD, REASON_DMA_BUF_NIC, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	m->rdma[0].pci->driver = fact_str("one of tomorrow", from);
	expect(m, CHAIN_UNKNOWN, REASON_DMA_BUF_NIC_UNKNOWN, CHAIN_BAD, REASON_PEERMEM_ABSENT);
	build_free(m);
}

static void peermem(void **state)
{
	struct machine *m = switch_machine();

	(void)state;
	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, from);
	m->peermem.loaded = fact_int(1, from);
	expect(m, CHAIN_BAD, REASON_DMA_BUF_MODULES, CHAIN_POSSIBLE, REASON_PEERMEM_UNREGISTERED);
	m->peermem.registered = fact_int(1, from);
	expect(m, CHAIN_BAD, REASON_DMA_BUF_MODULES, CHAIN_OK, REASON_PEERMEM_READY);
	m->rdma[0].pci->driver = fact_str("ice", from);
	expect(m, CHAIN_BAD, REASON_DMA_BUF_MODULES, CHAIN_UNKNOWN, REASON_RDMA_PEERMEM_UNKNOWN);
	m->peermem.loaded = m->peermem.registered = fact_int_unknown("not read");
	expect(m, CHAIN_BAD, REASON_DMA_BUF_MODULES, CHAIN_UNKNOWN, REASON_PEERMEM_UNKNOWN);
	build_free(m);
}

/* What keeps either way, whatever the modules are. */
static void neither(void **state)
{
	struct machine *m = switch_machine();

	(void)state;
	m->peermem.loaded = m->peermem.registered = fact_int(1, from);
	m->driver.loaded = fact_int(0, from);
	expect(m, CHAIN_BAD, REASON_DRIVER_ABSENT, CHAIN_BAD, REASON_DRIVER_ABSENT);
	m->driver.loaded = fact_int(1, from);
	build_model(&m->gpus[0], "NVIDIA GeForce RTX 4090", 89);
	expect(m, CHAIN_BAD, REASON_GPU_UNSUPPORTED, CHAIN_BAD, REASON_GPU_UNSUPPORTED);
	build_free(m);
}

/* A chipset without peer traffic between root ports, and a NIC below one of its own. */
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
	m->peermem.loaded = m->peermem.registered = fact_int(1, from);
	return m;
}

static void gate(void **state)
{
	struct machine *m = altra_machine();

	(void)state;
	expect(m, CHAIN_BAD, REASON_RDMA_GATE, CHAIN_BAD, REASON_RDMA_GATE);
	m->driver.grdma_topology_override = fact_int_unknown("not read");
	expect(m, CHAIN_UNKNOWN, REASON_RDMA_GATE_UNKNOWN, CHAIN_UNKNOWN, REASON_RDMA_GATE_UNKNOWN);
	/* What cannot work anyway is said first. */
	m->kernel.dma_buf = fact_int(0, from);
	expect(m, CHAIN_BAD, REASON_DMA_BUF_KERNEL, CHAIN_UNKNOWN, REASON_RDMA_GATE_UNKNOWN);
	build_free(m);
}

/* The function that does the DMA is what the driver looks for in the tree. */
static void direct_nic(void **state)
{
	struct machine *m = altra_machine();
	struct pci_function *nic = m->rdma[0].pci, *f;
	struct preflight p;

	(void)state;
	assert_null(fly(m).direct);
	f = build_endpoint(m, "0000:03:00.0", m->gpus[0].pci->parent);
	f->vendor = fact_int(0x15b3, from);
	f->device = fact_int(0x2100, from);
	assert_null(fly(m).direct); /* it cannot be this NIC's */
	nic->vendor = fact_int(0x15b3, from);
	nic->device = fact_int(0x1023, from);
	p = fly(m);
	assert_ptr_equal(p.direct, f);
	assert_int_equal(p.dma_buf.state, CHAIN_OK);
	assert_int_equal(p.pair.state, CHAIN_OK);
	f->parent = nic->parent; /* beside another GPU */
	p = fly(m);
	assert_null(p.direct);
	assert_int_equal(p.pair.reason, REASON_RDMA_GATE);
	build_free(m);
}

static void addresses(void **state)
{
	static const struct {
		const char *gid;
		enum gid_type type;
		enum port_address address;
	} rows[] = {
		{"0000:0000:0000:0000:0000:ffff:0a00:0001", GID_ROCE_V2, PORT_ADDRESS_IPV4},
		{"2001:0db8:0000:0000:0000:0000:0000:0001", GID_ROCE_V2, PORT_ADDRESS_IPV6},
		{"fe80:0000:0000:0000:0000:0000:0000:0001", GID_ROCE_V2, PORT_ADDRESS_NONE},
		{"0000:0000:0000:0000:0000:ffff:0a00:0001", GID_ROCE_V1, PORT_ADDRESS_NONE},
	};
	struct machine *m = switch_machine();
	struct rdma_port *port = &m->rdma[0].ports[0];
	struct rdma_gid gid = {.index = 0};

	(void)state;
	port->link_layer = fact_str("Ethernet", from);
	port->state = fact_str("ACTIVE", from);
	port->gids = &gid;
	port->gid_n = 1;
	port->gids_listed = fact_int(1, from);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		gid.gid = fact_str(rows[i].gid, from);
		gid.type = fact_int(rows[i].type, from);
		assert_string_equal(port_address_word(fly(m).address),
				    port_address_word(rows[i].address));
	}
	port->gids_listed = fact_int_unknown("not read");
	assert_int_equal(fly(m).address, PORT_ADDRESS_UNKNOWN);
	port->link_layer = fact_str("InfiniBand", from);
	assert_int_equal(fly(m).address, PORT_ADDRESS_INFINIBAND);
	port->state = fact_str("DOWN", from);
	assert_int_equal(fly(m).address, PORT_ADDRESS_UNKNOWN);
	build_free(m);
}

/* ---- topology/nearest.c ---- */

/* Two GPUs and two NICs below one switch, a third NIC below another root port. */
static void assignment(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *root = build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *far = build_port(m, "0000:20:02.0", NULL, PCI_PORT_ROOT);
	struct pci_function *up = build_port(m, "0000:21:00.0", root, PCI_PORT_UPSTREAM);
	struct pci_function *ports[4];
	struct topology *t;
	size_t nics[2];

	(void)state;
	ports[0] = build_port(m, "0000:22:00.0", up, PCI_PORT_DOWNSTREAM);
	ports[1] = build_port(m, "0000:22:01.0", up, PCI_PORT_DOWNSTREAM);
	ports[2] = build_port(m, "0000:22:02.0", up, PCI_PORT_DOWNSTREAM);
	ports[3] = build_port(m, "0000:22:03.0", up, PCI_PORT_DOWNSTREAM);
	build_gpu(m, "0000:23:00.0", ports[0]);
	build_gpu(m, "0000:24:00.0", ports[1]);
	build_nic(m, "0000:25:00.0", ports[2], "mlx5_0");
	build_nic(m, "0000:26:00.0", ports[3], "mlx5_1");
	build_nic(m, "0000:27:00.0", far, "mlx5_2");

	t = topology_new(m);
	assert_int_equal(topology_nearest_class(t, 0, true), PATH_PIX);
	assert_true(topology_is_nearest(t, 0, 3, PATH_PIX, true));
	assert_false(topology_is_nearest(t, 0, 4, PATH_PIX, true));
	topology_assign_nics(t, nics);
	assert_int_equal(nics[0], 2); /* one each, not both the first */
	assert_int_equal(nics[1], 3);
	topology_free(t);

	m->rdma[0].ports[0].state = m->rdma[1].ports[0].state = fact_str("DOWN", from);
	t = topology_new(m);
	assert_int_equal(topology_nearest_class(t, 0, true), PATH_PHB);
	assert_int_equal(topology_nearest_class(t, 0, false), PATH_PIX);
	topology_assign_nics(t, nics);
	assert_int_equal(nics[0], 4); /* shared: there is no other */
	assert_int_equal(nics[1], 4);
	topology_free(t);

	m->rdma[2].ports[0].state = fact_str("DOWN", from);
	t = topology_new(m);
	assert_int_equal(topology_nearest_class(t, 0, true), PATH_UNKNOWN);
	topology_assign_nics(t, nics);
	assert_true(nics[0] == NO_NIC);
	topology_free(t);
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dma_buf),    cmocka_unit_test(peermem),
		cmocka_unit_test(neither),    cmocka_unit_test(gate),
		cmocka_unit_test(direct_nic), cmocka_unit_test(addresses),
		cmocka_unit_test(assignment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
