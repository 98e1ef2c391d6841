/* SPDX-License-Identifier: Apache-2.0 */
/* topology/: classes, divergence, NVLinks, rates, NCCL levels, counts. */
#include "topology/topology.h"

#include "build_machine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char from[] = "test";

static enum path_class class_of(struct machine *m, size_t i, size_t j)
{
	struct topology *t = topology_new(m);
	enum path_class c = topology_path(t, i, j)->class;

	topology_free(t);
	return c;
}

/* ---- classes ---- */

static void switch_is_pix(void **state)
{
	struct machine *m = build_switch();
	struct topology *t = topology_new(m);
	const struct path *p = topology_path(t, 0, 1);

	(void)state;
	assert_int_equal(p->class, PATH_PIX);
	assert_string_equal(p->common->name, "0000:21:00.0");
	assert_string_equal(p->initiator_port->name, "0000:22:00.0");
	assert_string_equal(p->target_port->name, "0000:22:01.0");
	assert_int_equal(topology_path(t, 0, 0)->class, PATH_SELF);
	topology_free(t);
	build_free(m);
}

/* A second switch level on one side is enough. */
static void two_levels_are_pxb(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *root = build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *up = build_port(m, "0000:21:00.0", root, PCI_PORT_UPSTREAM);
	struct pci_function *a = build_port(m, "0000:22:00.0", up, PCI_PORT_DOWNSTREAM);
	struct pci_function *b = build_port(m, "0000:22:01.0", up, PCI_PORT_DOWNSTREAM);
	struct pci_function *up2, *c;

	(void)state;
	build_gpu(m, "0000:23:00.0", a);
	up2 = build_port(m, "0000:24:00.0", b, PCI_PORT_UPSTREAM);
	c = build_port(m, "0000:25:00.0", up2, PCI_PORT_DOWNSTREAM);
	build_gpu(m, "0000:26:00.0", c);
	assert_int_equal(class_of(m, 0, 1), PATH_PXB);
	build_free(m);
}

static void root_ports(void **state)
{
	struct machine *m = build_two_root_ports();
	struct topology *t = topology_new(m);
	const struct path *p = topology_path(t, 1, 0);

	(void)state;
	assert_int_equal(p->class, PATH_PHB);
	assert_null(p->common);
	assert_string_equal(p->initiator_port->name, "0000:00:02.0");
	assert_string_equal(p->target_port->name, "0000:00:01.0");
	topology_free(t);
	build_free(m);
}

static void host_bridges(void **state)
{
	struct machine *m = build_root_ports(4, 2, 2);

	(void)state;
	assert_int_equal(class_of(m, 0, 1), PATH_NODE);
	assert_int_equal(class_of(m, 0, 2), PATH_SYS);
	/* The firmware names no node: of two nodes it may be either. */
	m->gpus[0].pci->numa_node = m->gpus[1].pci->numa_node = fact_int(-1, from);
	assert_int_equal(class_of(m, 0, 1), PATH_SYS);
	m->gpus[0].pci->numa_node = fact_int_unknown("not recorded");
	assert_int_equal(class_of(m, 0, 1), PATH_UNKNOWN);
	m->node_n = 1;
	assert_int_equal(class_of(m, 0, 1), PATH_NODE);
	m->gpus[0].pci->root = NULL;
	assert_int_equal(class_of(m, 0, 1), PATH_UNKNOWN);
	build_free(m);
}

static void functions_of_one_card(void **state)
{
	struct machine *m = build_two_root_ports();
	struct pci_function *port = build_port(m, "0000:c0:01.0", NULL, PCI_PORT_ROOT);
	struct topology *t;

	(void)state;
	build_nic(m, "0000:c1:00.0", port, "mlx5_0");
	build_nic(m, "0000:c1:00.1", port, "mlx5_1");
	t = topology_new(m);
	assert_int_equal(topology_path(t, 2, 3)->class, PATH_PIX);
	assert_ptr_equal(topology_path(t, 2, 3)->common, port);
	assert_int_equal(topology_path(t, 2, 3)->chain[CHAIN_SWITCH].state, CHAIN_NA);
	assert_string_equal(t->endpoints[3].name, "NIC1");
	topology_free(t);
	build_free(m);
}

static void nvml_wins(void **state)
{
	struct machine *m = build_two_root_ports();
	struct topology *t;

	(void)state;
	m->pairs[1].common_ancestor = fact_int(NVML_LEVEL_MULTIPLE, from);
	t = topology_new(m);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(topology_path(t, i, !i)->pci_class, PATH_PXB);
		assert_int_equal(topology_path(t, i, !i)->tree_class, PATH_PHB);
	}
	topology_free(t);
	build_free(m);
}

/* ---- NVLink ---- */

static void nvlinks_between(struct machine *m, int n)
{
	struct topology *t = topology_new(m);
	char name[16];

	for (size_t i = 0; i < 2; i++) {
		const struct path *p = topology_path(t, i, !i);

		assert_true(fact_is(p->nvlinks, n));
		assert_int_equal(p->class, n ? PATH_NVLINK : PATH_PHB);
		assert_int_equal(p->pci_class, PATH_PHB);
	}
	if (n) {
		char want[16];

		snprintf(want, sizeof(want), "NV%d", n);
		assert_string_equal(path_class_name(topology_path(t, 0, 1), name, sizeof(name)),
				    want);
	}
	topology_free(t);
	build_free(m);
}

static void nvlink_switch(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	build_nvlinks(&m->gpus[0], 18, NVLINK_REMOTE_SWITCH, "0000:c5:00.0");
	build_nvlinks(&m->gpus[1], 18, NVLINK_REMOTE_SWITCH, "0000:c6:00.0");
	m->gpus[1].nvlinks[17].active = fact_int(0, from);
	nvlinks_between(m, 17);
}

static void nvlink_direct(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	build_nvlinks(&m->gpus[0], 4, NVLINK_REMOTE_GPU, "00000000:02:00.0");
	nvlinks_between(m, 4);
}

static void nvlink_elsewhere(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	build_nvlinks(&m->gpus[0], 4, NVLINK_REMOTE_GPU, "00000000:03:00.0");
	nvlinks_between(m, 0);
}

/* In a virtual machine NVML names no remote end. */
static void nvlink_unnamed(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	for (size_t i = 0; i < 2; i++)
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_UNKNOWN, "FFFFFFFF:FF:FF.0");
	build_status(m, P2P_NVLINK, P2P_OK);
	nvlinks_between(m, 18);
}

static void nvlink_unnamed_apart(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	for (size_t i = 0; i < 2; i++)
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_UNKNOWN, "FFFFFFFF:FF:FF.0");
	nvlinks_between(m, 0);
}

/* ---- rates ---- */

static void rates(struct machine *m, const char *bottleneck, double link, double expected)
{
	struct topology *t = topology_new(m);
	const struct path *p = topology_path(t, 0, 1);

	assert_string_equal(p->bottleneck ? p->bottleneck->name : "none", bottleneck);
	assert_float_equal(p->link_gbps, link, 0.02);
	assert_float_equal(p->expected_gbps, expected, 0.1);
	topology_free(t);
	build_free(m);
}

static void gen4_x16(void **state)
{
	(void)state;
	rates(build_two_root_ports(), "0000:01:00.0", 31.51, 25.8);
}

static void narrow_link(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->gpus[1].pci->link_width = fact_int(4, from);
	rates(m, "0000:24:00.0", 7.88, 6.46);
}

/* The uplink of a switch does not carry what turns below it. */
static void uplink_off_the_way(void **state)
{
	struct machine *m = build_switch();

	(void)state;
	m->pci[1].link_width = fact_int(1, from);
	rates(m, "0000:23:00.0", 31.51, 25.8);
}

static void uplink_on_the_way(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *r = build_port(m, "0000:10:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *r2 = build_port(m, "0000:10:02.0", NULL, PCI_PORT_ROOT);
	struct pci_function *u = build_port(m, "0000:11:00.0", r, PCI_PORT_UPSTREAM);
	struct pci_function *d = build_port(m, "0000:12:00.0", u, PCI_PORT_DOWNSTREAM);

	(void)state;
	build_gpu(m, "0000:13:00.0", d);
	build_gpu(m, "0000:14:00.0", r2);
	u->link_speed = u->link_speed_max = fact_int(8000, from);
	u->link_width = fact_int(8, from);
	rates(m, "0000:11:00.0", 7.88, 6.46);
}

static void idle_gpu(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	for (size_t i = 0; i < m->pci_n; i++)
		m->pci[i].link_speed = fact_int(2500, from);
	m->gpus[0].performance_state = m->gpus[1].performance_state = fact_int(8, from);
	rates(m, "0000:01:00.0", 31.51, 25.8);
}

/* Idle or not, it cannot be faster than its slot. */
static void idle_gpu_in_slow_slot(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->gpus[0].performance_state = fact_int(8, from);
	m->gpus[0].pci->link_speed = fact_int(2500, from);
	m->gpus[0].pci->parent->link_speed_max = fact_int(8000, from);
	rates(m, "0000:01:00.0", 15.75, 12.9);
}

static void busy_gpu_trained_slow(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->gpus[0].pci->link_speed = fact_int(2500, from);
	rates(m, "0000:01:00.0", 4.0, 3.28);
}

static void unknown_link(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	m->gpus[1].pci->link_speed = fact_int_unknown("not recorded");
	m->gpus[1].pci->parent->link_speed = fact_int_unknown("not recorded");
	rates(m, "0000:01:00.0", 0, 0);
}

static void nvlink_rate(void **state)
{
	struct machine *m = build_two_root_ports();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		build_model(&m->gpus[i], "NVIDIA H200", 90);
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_SWITCH, "");
	}
	rates(m, "0000:01:00.0", 31.51, 370.8);
}

/* ---- NCCL ---- */

static void level_words(void **state)
{
	(void)state;
	assert_int_equal(nccl_level_parse("SYS"), NCCL_PATH_SYS);
	assert_int_equal(nccl_level_parse("NVL"), NCCL_PATH_NVL);
	assert_int_equal(nccl_level_parse("1"), NCCL_PATH_PIX);
	assert_int_equal(nccl_level_parse("3"), NCCL_PATH_PHB);
	assert_int_equal(nccl_level_parse("99999999999999999999"), NCCL_PATH_SYS);
	assert_int_equal(nccl_level_parse("sys"), -1);
	assert_int_equal(nccl_level_parse("NODE"), -1);
	assert_int_equal(nccl_level_parse(""), -1);
}

static void level_defaults(void **state)
{
	static const struct {
		enum cpu_vendor vendor;
		size_t gpus;
		int64_t version;
		enum nccl_path level;
	} cases[] = {
		{CPU_AMD, 8, 22203, NCCL_PATH_SYS},   {CPU_AMD, 8, 22304, NCCL_PATH_PXB},
		{CPU_AMD, 2, 22304, NCCL_PATH_SYS},   {CPU_INTEL, 2, 22304, NCCL_PATH_PXB},
		{CPU_INTEL, 8, 22203, NCCL_PATH_PXB}, {CPU_HYGON, 8, 22203, NCCL_PATH_SYS},
		{CPU_ARM, 2, 21805, NCCL_PATH_PXB},
	};
	bool sure;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct machine *m = build_machine();

		m->cpu.vendor = fact_int(cases[i].vendor, from);
		m->gpu_n = cases[i].gpus;
		m->nccl.version = fact_int(cases[i].version, from);
		assert_int_equal(nccl_p2p_level(m, &sure), cases[i].level);
		assert_true(sure);
		build_free(m);
	}
}

static void level_settings(void **state)
{
	struct machine *m = build_machine();
	bool sure;

	(void)state;
	m->gpu_n = 8;
	m->nccl.version = fact_int_unknown("no libnccl");
	assert_int_equal(nccl_p2p_level(m, &sure), NCCL_PATH_PXB);
	assert_false(sure);
	m->cpu.vendor = fact_int(CPU_INTEL, from);
	nccl_p2p_level(m, &sure);
	assert_true(sure);
	build_setting(m, "NCCL_P2P_DISABLE", "true");
	build_setting(m, "NCCL_P2P_LEVEL", "SYS");
	assert_int_equal(nccl_p2p_level(m, &sure), NCCL_PATH_SYS);
	m->nccl.settings[0].value = "1";
	assert_int_equal(nccl_p2p_level(m, &sure), NCCL_PATH_LOC);
	assert_int_equal(nccl_gdr_level(m), NCCL_PATH_PXB);
	build_setting(m, "NCCL_NET_GDR_LEVEL", "3");
	assert_int_equal(nccl_gdr_level(m), NCCL_PATH_PHB);
	m->gpu_n = 0;
	build_free(m);
}

/* ---- properties of all trees ---- */

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

struct growing_bus {
	unsigned number;
	struct pci_function *bridge;
};

/* Breadth first, so that addresses ascend: every bridge opens the next bus number. */
static struct machine *random_machine(uint32_t seed)
{
	struct machine *m = build_machine();
	struct growing_bus bus[64];
	unsigned bus_n = 0, roots = 1 + next_random(&seed) % 3;
	char address[PCI_ADDRESS_LEN];

	build_nodes(m, 2, 2);
	for (; bus_n < roots; bus_n++)
		bus[bus_n] = (struct growing_bus){bus_n, NULL};
	for (unsigned b = 0; b < bus_n; b++) {
		unsigned devices = 1 + next_random(&seed) % 4;

		for (unsigned d = 0; d < devices; d++) {
			struct pci_function *parent = bus[b].bridge;
			unsigned depth = parent ? parent->depth + 1 : 0;
			unsigned kind = next_random(&seed) % 8;

			snprintf(address, sizeof(address), "0000:%02x:%02x.0", bus[b].number, d);
			if (kind < 4 && bus_n < 64 && depth < 7) {
				struct pci_function *f =
					build_port(m, address, parent,
						   !parent     ? PCI_PORT_ROOT
						   : depth % 2 ? PCI_PORT_UPSTREAM
							       : PCI_PORT_DOWNSTREAM);

				if (!parent)
					f->numa_node = fact_int(bus[b].number % 2, from);
				f->acs_ctl = fact_int(next_random(&seed) % 128, from);
				bus[bus_n] = (struct growing_bus){bus_n, f};
				bus_n++;
			} else if (kind < 6 && m->gpu_n < 24) {
				build_gpu(m, address, parent);
			} else if (m->rdma_n < 24) {
				build_nic(m, address, parent, "mlx5");
			}
		}
	}
	return m;
}

static bool is_above(const struct pci_function *f, const struct pci_function *above)
{
	for (f = f->parent; f; f = f->parent)
		if (f == above)
			return true;
	return false;
}

static bool is_at_or_above(const struct pci_function *f, const struct pci_function *above)
{
	return f == above || is_above(f, above);
}

static void check_pair(const struct topology *t, size_t i, size_t j)
{
	const struct path *p = topology_path(t, i, j), *back = topology_path(t, j, i);
	const struct pci_function *a = t->endpoints[i].pci, *b = t->endpoints[j].pci;

	assert_int_equal(p->class, back->class);
	assert_ptr_equal(p->common, back->common);
	assert_ptr_equal(p->initiator_port, back->target_port);
	assert_ptr_equal(p->initiator_port->parent, p->common);
	assert_ptr_equal(p->target_port->parent, p->common);
	assert_ptr_not_equal(p->initiator_port, p->target_port);
	assert_true(is_at_or_above(a, p->initiator_port));
	assert_true(is_at_or_above(b, p->target_port));
	assert_true(!p->common || (is_above(a, p->common) && is_above(b, p->common)));
	assert_int_equal(p->common != NULL, p->class == PATH_PIX || p->class == PATH_PXB);
	assert_int_equal(p->verdict == PAIR_BLOCKED, p->first_bad != CHAIN_STEP_N);
	assert_true(p->link_gbps == back->link_gbps);
}

static void random_trees(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 300; seed++) {
		struct machine *m = random_machine(seed * 7919);
		struct topology *t = topology_new(m);

		assert_int_equal(t->endpoint_n, m->gpu_n + m->rdma_n);
		for (size_t i = 0; i < t->endpoint_n; i++) {
			assert_int_equal(topology_path(t, i, i)->class, PATH_SELF);
			for (size_t j = 0; j < t->endpoint_n; j++)
				if (i != j)
					check_pair(t, i, j);
		}
		topology_free(t);
		build_free(m);
	}
}

static void counts(void **state)
{
	struct machine *m = build_root_ports(4, 1, 1);
	struct topology *t;
	struct pair_counts c;

	(void)state;
	m->gpus[2].bar1_bytes = fact_int(256 << 20, from);
	t = topology_new(m);
	topology_count(t, &c);
	assert_int_equal(c.pairs, 12);
	assert_int_equal(c.by_verdict[PAIR_BLOCKED], 3);
	assert_int_equal(c.by_verdict[PAIR_DIRECT], 9);
	assert_int_equal(c.bad_at[CHAIN_EXPOSURE], 3);
	assert_int_equal(c.bad_at[CHAIN_DRIVER], 0);
	topology_free(t);
	build_free(m);
}

static void empty_machine(void **state)
{
	struct machine *m = build_machine();
	struct topology *t = topology_new(m);
	struct pair_counts c;

	(void)state;
	topology_count(t, &c);
	assert_int_equal(c.pairs, 0);
	topology_free(t);
	topology_free(NULL);
	build_free(m);
}

/* 64 GPUs and 64 NICs below a hundred buses: nothing may be quadratic in more than the pairs. */
static void large_machine(void **state)
{
	struct machine *m = build_machine();
	struct pci_function *up[16];
	char address[PCI_ADDRESS_LEN];
	struct topology *t;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		snprintf(address, sizeof(address), "%04x:00:01.0", i);
		up[i] = build_port(m, address, NULL, PCI_PORT_ROOT);
		snprintf(address, sizeof(address), "%04x:01:00.0", i);
		up[i] = build_port(m, address, up[i], PCI_PORT_UPSTREAM);
		for (unsigned j = 0; j < 8; j++) {
			snprintf(address, sizeof(address), "%04x:02:%02x.0", i, j);
			build_port(m, address, up[i], PCI_PORT_DOWNSTREAM);
		}
		for (unsigned j = 0; j < 8; j++) {
			snprintf(address, sizeof(address), "%04x:%02x:00.0", i, j + 3);
			if (j % 2)
				build_nic(m, address, up[i] + 1 + j, "mlx5");
			else
				build_gpu(m, address, up[i] + 1 + j);
		}
	}
	t = topology_new(m);
	assert_int_equal(t->endpoint_n, 128);
	assert_int_equal(topology_path(t, 0, 1)->class, PATH_PIX);
	assert_int_equal(topology_path(t, 0, 63)->class, PATH_NODE);
	topology_free(t);
	build_free(m);
}

/* ---- what is expected between sockets ---- */

/* GPU0 in socket 0 and GPU1 in socket 1, on PCIe 4.0 x16. */
static const struct {
	const char *cpu;
	enum cpu_vendor vendor;
	int family, model;
	double up, down; /* rounded GB/s; 0: nothing is expected */
} sockets[] = {
	{"Rome", CPU_AMD, 23, 49, 22, 22},        {"Milan", CPU_AMD, 25, 1, 22, 10},
	{"Genoa", CPU_AMD, 25, 17, 26, 26},       {"Xeon 4416+", CPU_INTEL, 6, 143, 26, 26},
	{"an unknown one", CPU_AMD, 26, 2, 0, 0},
};

static void rates_between_sockets(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		struct machine *m = build_root_ports(2, 2, 2);
		struct topology *t;

		m->cpu.vendor = fact_int(sockets[i].vendor, "test");
		m->cpu.family = fact_int(sockets[i].family, "test");
		m->cpu.model = fact_int(sockets[i].model, "test");
		t = topology_new(m);
		assert_int_equal(topology_path(t, 0, 1)->class, PATH_SYS);
		if (round(topology_path(t, 0, 1)->expected_gbps) != sockets[i].up ||
		    round(topology_path(t, 1, 0)->expected_gbps) != sockets[i].down)
			fail_msg("%s: %.1f and %.1f", sockets[i].cpu,
				 topology_path(t, 0, 1)->expected_gbps,
				 topology_path(t, 1, 0)->expected_gbps);
		topology_free(t);
		build_free(m);
	}
}

/* The nodes of one socket, which nvidia-smi calls SYS too. */
static void rates_within_a_socket(void **state)
{
	struct machine *m = build_root_ports(2, 2, 1);
	struct topology *t = topology_new(m);

	(void)state;
	assert_int_equal(topology_path(t, 0, 1)->class, PATH_SYS);
	assert_true(topology_path(t, 0, 1)->expected_gbps > 25);
	topology_free(t);
	build_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switch_is_pix),
		cmocka_unit_test(two_levels_are_pxb),
		cmocka_unit_test(root_ports),
		cmocka_unit_test(host_bridges),
		cmocka_unit_test(functions_of_one_card),
		cmocka_unit_test(nvml_wins),
		cmocka_unit_test(nvlink_switch),
		cmocka_unit_test(nvlink_direct),
		cmocka_unit_test(nvlink_elsewhere),
		cmocka_unit_test(nvlink_unnamed),
		cmocka_unit_test(nvlink_unnamed_apart),
		cmocka_unit_test(gen4_x16),
		cmocka_unit_test(narrow_link),
		cmocka_unit_test(uplink_off_the_way),
		cmocka_unit_test(uplink_on_the_way),
		cmocka_unit_test(idle_gpu),
		cmocka_unit_test(idle_gpu_in_slow_slot),
		cmocka_unit_test(busy_gpu_trained_slow),
		cmocka_unit_test(unknown_link),
		cmocka_unit_test(nvlink_rate),
		cmocka_unit_test(level_words),
		cmocka_unit_test(level_defaults),
		cmocka_unit_test(level_settings),
		cmocka_unit_test(random_trees),
		cmocka_unit_test(rates_between_sockets),
		cmocka_unit_test(rates_within_a_socket),
		cmocka_unit_test(counts),
		cmocka_unit_test(empty_machine),
		cmocka_unit_test(large_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
