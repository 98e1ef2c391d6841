/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session/paths_of.h: links, figures and reasons of recorded machines, and the rounds that follow.
 */
#include "session/paths_of.h"

#include "base/err.h"
#include "base/source.h"
#include "bench/rounds.h"
#include "build_machine.h"
#include "recording/recording.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char from[] = "test";

static struct machine *read_machine(const char *name)
{
	struct machine_request request = {.parts = MACHINE_ALL};
	struct source *s = NULL;
	struct machine *m;
	char path[256];

	snprintf(path, sizeof(path), "tests/machines/%s", name);
	if (recording_open(path, &s) < 0)
		fail_msg("%s", err_msg());
	m = machine_read(s, &request);
	source_free(s);
	return m;
}

static struct paths *all_paths(const struct machine *m)
{
	size_t gpus[64];
	struct topology *t = topology_new(m);
	struct paths *p = NULL;

	for (size_t i = 0; i < m->gpu_n; i++)
		gpus[i] = i;
	assert_int_equal(paths_of(t, gpus, m->gpu_n, &p), 0);
	assert_int_equal(paths_check(p), 0);
	topology_free(t);
	return p;
}

static void assert_rounds(const char *name, const struct paths *p, size_t rounds, size_t least)
{
	struct pair *pairs;
	struct rounds r;
	size_t n;

	assert_int_equal(pairs_all(p->device_n, &pairs, &n), 0);
	assert_int_equal(rounds_plan(p, pairs, n, &r), 0);
	if (r.round_n != rounds || r.least != least)
		fail_msg("%s: %u GPUs take %zu rounds, at least %zu", name, p->device_n, r.round_n,
			 r.least);
	rounds_done(&r);
	free(pairs);
}

static bool share(const struct link_list *a, const struct link_list *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (a->ids[i] == b->ids[k])
				return true;
	return false;
}

static bool pairs_share(const struct paths *p, unsigned i, unsigned j, unsigned k, unsigned l)
{
	return share(&paths_pair(p, i, j)->links, &paths_pair(p, k, l)->links);
}

/* ---- rounds of machines ---- */

static void recorded(void **state)
{
	static const struct {
		const char *name;
		unsigned gpus;
		size_t rounds, least;
	} cases[] = {
		{"h200x1", 1, 0, 0},
		{"h200x2", 2, 2, 2},
		{"h200x4", 4, 6, 6},
		/* 16 of the 56 pairs cross from one socket to the other. */
		{"rtx4090x8-before", 8, 16, 16},
		{"rtx4090x8-after", 8, 16, 16},
		{"guest-two-level", 3, 6, 6},
		{"guest-switch2-intel", 3, 6, 6},
		{"guest-workstation4", 4, 6, 6},
		{"made-up-hgx", 2, 2, 2},
		{"guest-nogpu", 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct machine *m = read_machine(cases[i].name);
		struct paths *p = all_paths(m);

		assert_int_equal(p->device_n, cases[i].gpus);
		assert_rounds(cases[i].name, p, cases[i].rounds, cases[i].least);
		paths_free(p);
		machine_free(m);
	}
}

/* Two switches of two GPUs below a switch below a root port, in a PCI domain of their own. */
static void build_four(struct machine *m, unsigned domain)
{
	struct pci_function *above, *leaf, *down[2], *port[2];
	char address[PCI_ADDRESS_LEN];

#define AT(bus, device)                                                                            \
	(snprintf(address, sizeof(address), "%04x:%02x:%02x.0", domain, (unsigned)(bus),           \
		  (unsigned)(device)),                                                             \
	 address)
	above = build_port(m, AT(0, 1), NULL, PCI_PORT_ROOT);
	above->numa_node = fact_int(domain % 8, from);
	above = build_port(m, AT(1, 0), above, PCI_PORT_UPSTREAM);
	for (unsigned i = 0; i < 2; i++)
		down[i] = build_port(m, AT(2, i), above, PCI_PORT_DOWNSTREAM);
	for (unsigned i = 0; i < 2; i++) {
		leaf = build_port(m, AT(3 + 4 * i, 0), down[i], PCI_PORT_UPSTREAM);
		for (unsigned k = 0; k < 2; k++)
			port[k] = build_port(m, AT(4 + 4 * i, k), leaf, PCI_PORT_DOWNSTREAM);
		for (unsigned k = 0; k < 2; k++)
			build_gpu(m, AT(5 + 4 * i + k, 0), port[k]);
	}
#undef AT
}

static struct machine *build_64(void)
{
	struct machine *m = build_machine();

	build_nodes(m, 8, 2);
	for (unsigned domain = 0; domain < 16; domain++)
		build_four(m, domain);
	return m;
}

/*
 * Half of the 4,032 pairs cross the sockets, half of these each way: 32 * 32 one after the other.
 */
static void large_of_two_sockets(void **state)
{
	struct machine *m = build_64();
	struct paths *p = all_paths(m);

	(void)state;
	assert_int_equal(p->device_n, 64);
	assert_string_equal(paths_pair(p, 0, 1)->class, "PIX");
	assert_string_equal(paths_pair(p, 0, 2)->class, "PXB");
	assert_string_equal(paths_pair(p, 0, 4)->class, "SYS");
	assert_true(pairs_share(p, 0, 63, 4, 59));  /* both across the sockets */
	assert_false(pairs_share(p, 0, 63, 63, 0)); /* the other way */
	assert_true(pairs_share(p, 0, 2, 1, 3));    /* both leave their switch */
	assert_false(pairs_share(p, 0, 1, 2, 3));
	assert_rounds("64 GPUs on two sockets", p, 1024, 1024);
	paths_free(p);
	build_free(m);
}

/* Where sockets are not known, nodes have links of their own: 4 * 60 pairs leave each root port. */
static void large_of_nodes(void **state)
{
	struct machine *m = build_64();
	struct paths *p;

	(void)state;
	m->cpu.sockets = fact_int_unknown("not recorded");
	p = all_paths(m);
	assert_rounds("64 GPUs on eight nodes", p, 244, 240);
	paths_free(p);
	build_free(m);
}

/* The same GPUs with NVSwitches. */
static void large_with_nvlink(void **state)
{
	struct machine *m = build_64();
	struct paths *p;

	(void)state;
	for (size_t i = 0; i < m->gpu_n; i++)
		build_nvlinks(&m->gpus[i], 18, NVLINK_REMOTE_SWITCH, "0000:ff:00.0");
	p = all_paths(m);
	assert_string_equal(paths_pair(p, 0, 63)->class, "NV18");
	assert_rounds("64 GPUs with NVSwitches", p, 126, 126);
	paths_free(p);
	build_free(m);
}

/* ---- links ---- */

/* Two bonded links between the two: one number each way, and none of PCIe. */
static void direct_nvlink(void **state)
{
	struct machine *m = build_two_root_ports();
	struct paths *p;

	(void)state;
	build_nvlinks(&m->gpus[0], 2, NVLINK_REMOTE_GPU, "00000000:02:00.0");
	p = all_paths(m);
	assert_string_equal(paths_pair(p, 1, 0)->class, "NV2");
	assert_int_equal(paths_pair(p, 0, 1)->links.n, 1);
	assert_int_equal(paths_pair(p, 1, 0)->links.n, 1);
	assert_false(pairs_share(p, 0, 1, 1, 0));
	assert_false(share(&paths_pair(p, 0, 1)->links, &p->hosts[0].to_host));
	paths_free(p);
	build_free(m);
}

/* The way to the host is the beginning of the way to a peer, not its end. */
static void host_links(void **state)
{
	struct machine *m = build_two_root_ports();
	struct paths *p = all_paths(m);

	(void)state;
	assert_true(share(&paths_pair(p, 0, 1)->links, &p->hosts[0].to_host));
	assert_true(share(&paths_pair(p, 0, 1)->links, &p->hosts[1].from_host));
	assert_false(share(&paths_pair(p, 0, 1)->links, &p->hosts[0].from_host));
	assert_false(share(&paths_pair(p, 0, 1)->links, &p->hosts[1].to_host));
	assert_float_equal(p->hosts[0].expected_gbps, 25.8, 0.1);
	paths_free(p);
	build_free(m);
}

/* NVML tells of a switch that the tree of a virtual machine does not have. */
static void hidden_tree(void **state)
{
	struct machine *m = build_root_ports(4, 1, 1);
	struct paths *p = all_paths(m);

	(void)state;
	assert_false(pairs_share(p, 0, 1, 2, 3));
	paths_free(p);
	for (size_t i = 0; i < 16; i++)
		m->pairs[i].common_ancestor = fact_int(NVML_LEVEL_MULTIPLE, from);
	p = all_paths(m);
	assert_string_equal(paths_pair(p, 0, 1)->class, "PXB");
	assert_true(pairs_share(p, 0, 1, 2, 3));
	assert_rounds("a tree that is not shown", p, 12, 12);
	paths_free(p);
	build_free(m);
}

/* ---- figures and reasons ---- */

static void narrow_slot(void **state)
{
	struct machine *m = read_machine("guest-workstation2-x8");
	struct paths *p = all_paths(m);
	char want[64];

	(void)state;
	snprintf(want, sizeof(want), "x8 link at %s", m->gpus[0].pci->name);
	assert_string_equal(paths_pair(p, 0, 1)->reason, want);
	assert_string_equal(paths_pair(p, 1, 0)->reason, want);
	assert_string_equal(p->hosts[0].reason, want);
	/* 8 GT/s and 2.5 GT/s may be those of idle GPUs, a width never is. */
	assert_string_equal(p->hosts[1].reason, "");
	assert_true(p->hosts[0].expected_gbps < 14);
	assert_true(p->hosts[1].expected_gbps > 20);
	paths_free(p);
	machine_free(m);
}

static void part_of_a_link(void **state)
{
	struct machine *m = build_switch();
	struct paths *p;

	(void)state;
	m->gpus[1].pci->link_width = fact_int(8, from);
	p = all_paths(m);
	assert_string_equal(paths_pair(p, 0, 1)->reason, "x8 link at 0000:24:00.0");
	assert_string_equal(p->hosts[0].reason, "");
	paths_free(p);
	m->gpus[1].pci->link_speed = fact_int(8000, from);
	p = all_paths(m);
	assert_string_equal(paths_pair(p, 0, 1)->reason, "8.0 GT/s x8 link at 0000:24:00.0");
	paths_free(p);
	m->gpus[1].pci->link_width = fact_int(16, from);
	p = all_paths(m);
	assert_string_equal(paths_pair(p, 0, 1)->reason, "8.0 GT/s link at 0000:24:00.0");
	paths_free(p);
	m->gpus[1].pci->link_speed = fact_int_unknown("not recorded");
	m->gpus[1].pci->parent->link_speed = fact_int_unknown("not recorded");
	p = all_paths(m);
	assert_string_equal(paths_pair(p, 0, 1)->reason, "");
	assert_true(paths_pair(p, 0, 1)->expected_gbps == 0);
	assert_true(p->hosts[1].expected_gbps == 0);
	assert_true(p->hosts[0].expected_gbps > 20);
	paths_free(p);
	build_free(m);
}

static void nvlink_down(void **state)
{
	struct machine *m = read_machine("made-up-nvlink-down");
	struct paths *p = all_paths(m);

	(void)state;
	assert_string_equal(paths_pair(p, 0, 1)->class, "NV17");
	assert_string_equal(paths_pair(p, 0, 1)->reason, "17 of 18 NVLinks");
	paths_free(p);
	machine_free(m);
}

/* ---- the choice ---- */

static void chosen(void **state)
{
	static const size_t gpus[] = {7, 2, 3}, beyond[] = {0, 1000};
	struct machine *m = read_machine("rtx4090x8-after");
	struct topology *t = topology_new(m);
	struct paths *p = NULL, *all = all_paths(m);

	(void)state;
	assert_int_equal(paths_of(t, beyond, 2, &p), -EINVAL);
	assert_non_null(strstr(err_msg(), "no endpoint 1000 of "));
	assert_null(p);
	assert_int_equal(paths_of(t, gpus, 3, &p), 0);
	assert_int_equal(p->device_n, 3);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned j = 0; j < 3; j++)
			if (i != j)
				assert_string_equal(paths_pair(p, i, j)->class,
						    paths_pair(all, (unsigned)gpus[i],
							       (unsigned)gpus[j])
							    ->class);
	assert_rounds("three of eight", p, 6, 6);
	paths_free(p);
	paths_free(all);
	topology_free(t);
	machine_free(m);
}

/* A NIC is a device like a GPU; of one that the topology does not know nothing is known. */
static void nics(void **state)
{
	struct machine *m = read_machine("rtx4090x8-after");
	struct topology *t = topology_new(m);
	const size_t nic = t->gpu_n, devices[] = {3, nic, PATHS_NOWHERE};
	struct paths *p = NULL;
	char class[16];

	(void)state;
	assert_true(t->endpoint_n > t->gpu_n);
	assert_int_equal(paths_of(t, devices, 3, &p), 0);
	path_class_name(topology_path(t, nic, 3), class, sizeof(class));
	assert_string_equal(paths_pair(p, 1, 0)->class, class);
	assert_true(paths_pair(p, 1, 0)->links.n > 0);
	assert_true(p->hosts[1].to_host.n > 0);
	assert_string_equal(paths_pair(p, 2, 0)->class, "?");
	assert_int_equal(paths_pair(p, 2, 0)->links.n, 0);
	assert_int_equal(p->hosts[2].to_host.n, 0);
	paths_free(p);
	topology_free(t);
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nics),
		cmocka_unit_test(recorded),
		cmocka_unit_test(large_of_two_sockets),
		cmocka_unit_test(large_of_nodes),
		cmocka_unit_test(large_with_nvlink),
		cmocka_unit_test(direct_nvlink),
		cmocka_unit_test(host_links),
		cmocka_unit_test(hidden_tree),
		cmocka_unit_test(narrow_slot),
		cmocka_unit_test(part_of_a_link),
		cmocka_unit_test(nvlink_down),
		cmocka_unit_test(chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
