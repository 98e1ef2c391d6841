/* SPDX-License-Identifier: Apache-2.0 */
/* The PCI tree: from sysfs with links, from bare config space, and from files that make no sense.
 */
#include "base/alloc.h"
#include "base/array.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "machine/machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define DEVICES "sys/bus/pci/devices/"

static const struct machine_request pci_only = {.parts = MACHINE_PCI | MACHINE_CONFIG_SPACE};

static void put(struct source *map, const char *address, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), DEVICES "%s/%s", address, file);
	source_put_file(map, path, text, strlen(text));
}

static struct source *two_ports(void)
{
	struct source *map = source_new_map("test");

	source_put_list(map, "sys/bus/pci/devices", "0000:20:01.0\n0000:21:00.0\n10000:01:00.0\n");
	source_put_link(map, DEVICES "0000:20:01.0", "../../../devices/pci0000:20/0000:20:01.0");
	source_put_link(map, DEVICES "0000:21:00.0",
			"../../../devices/pci0000:20/0000:20:01.0/0000:21:00.0");
	source_put_link(map, DEVICES "10000:01:00.0",
			"../../../devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:01:00.0");
	put(map, "0000:20:01.0", "class", "0x060400\n");
	put(map, "0000:21:00.0", "class", "0x030000\n");
	put(map, "0000:21:00.0", "vendor", "0x10de\n");
	return map;
}

static void links_give_parents(void **state)
{
	struct source *map = two_ports();
	struct machine *m = machine_read(map, &pci_only);
	struct pci_function *gpu = &m->pci[1];

	(void)state;
	assert_int_equal(m->pci_n, 3);
	assert_string_equal(gpu->name, "0000:21:00.0");
	assert_ptr_equal(gpu->parent, &m->pci[0]);
	assert_string_equal(gpu->root, "pci0000:20");
	assert_int_equal(gpu->depth, 1);
	assert_null(m->pci[0].parent);
	assert_true(pci_is_gpu(gpu));
	assert_true(pci_is_bridge(gpu->parent));
	assert_string_equal(m->pci[2].root, "pci10000:00");
	assert_null(m->pci[2].parent);
	assert_ptr_equal(pci_find(m, gpu->address), gpu);
	assert_null(pci_find(m, (struct pci_address){0, 0x21, 1, 0}));
	machine_free(m);
	source_free(map);
}

static void values_are_understood(void **state)
{
	struct source *map = two_ports();
	struct machine *m;
	const struct pci_function *gpu;

	(void)state;
	put(map, "0000:21:00.0", "current_link_speed", "2.5 GT/s PCIe\n");
	put(map, "0000:21:00.0", "max_link_speed", "Unknown\n");
	put(map, "0000:21:00.0", "current_link_width", "8\n");
	put(map, "0000:21:00.0", "max_link_width", "255\n");
	put(map, "0000:21:00.0", "numa_node", "-1\n");
	source_put_error(map, DEVICES "0000:21:00.0/driver", SOURCE_LINK, ENOENT);
	source_put_link(map, DEVICES "0000:21:00.0/iommu_group", "../../../kernel/iommu_groups/17");
	source_put_file(map, "sys/kernel/iommu_groups/17/type", "identity\n", 9);
	put(map, "0000:21:00.0", "resource",
	    "0x00000000b2000000 0x00000000b2ffffff 0x0000000000040200\n"
	    "0x0000028800000000 0x0000028fffffffff 0x000000000014220c\n"
	    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
	    "0x0000000000000000 0x0000000001ffffff 0x000000002014220c\n"
	    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
	    "0x0000000000003000 0x000000000000307f 0x0000000000040101\n"
	    "0x00000000b3000000 0x00000000b307ffff 0x0000000000046200\n");
	m = machine_read(map, &pci_only);
	gpu = &m->pci[1];
	assert_true(fact_is(gpu->link_speed, 2500));
	assert_true(fact_unknown(gpu->link_speed_max));
	assert_true(fact_is(gpu->link_width, 8));
	assert_true(fact_unknown(gpu->link_width_max));
	assert_true(fact_is(gpu->numa_node, -1));
	assert_true(fact_absent(gpu->driver));
	assert_true(fact_unknown(gpu->power_state)); /* not in the recording */
	assert_true(fact_is(gpu->iommu_group, 17));
	assert_string_equal(gpu->iommu_type.value, "identity");
	assert_true(gpu->bars_known);
	assert_int_equal(pci_gpu_bar1(gpu)->size, 32ull << 30);
	assert_true(pci_gpu_bar1(gpu)->assigned);
	assert_true(gpu->bars[3].size && !gpu->bars[3].assigned);
	assert_true(gpu->bars[5].io);
	machine_free(m);
	source_free(map);
}

static void bridges_have_windows(void **state)
{
	struct source *map = two_ports();
	AUTO_STRBUF struct strbuf lines = {0};
	const struct pci_function *gpu;
	struct machine *m;

	(void)state;
	for (int i = 0; i < 13; i++)
		strbuf_puts(&lines, "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
	strbuf_puts(&lines, "0x0000000000003000 0x0000000000003fff 0x0000000000000101\n"
			    "0x00000000b2000000 0x00000000b30fffff 0x0000000000000200\n"
			    "0x0000028400000000 0x0000028fffffffff 0x0000000000102201\n"
			    "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
	put(map, "0000:20:01.0", "resource", lines.text);
	put(map, "0000:21:00.0", "resource", lines.text); /* SR-IOV: as many lines, no windows */
	m = machine_read(map, &pci_only);
	assert_true(m->pci[0].windows_known);
	assert_int_equal(m->pci[0].window.size, 0x1100000);
	assert_int_equal(m->pci[0].prefetch_window.start, 0x28400000000);
	assert_int_equal(m->pci[0].prefetch_window.size, 48ull << 30);
	gpu = &m->pci[1];
	assert_true(gpu->bars_known);
	assert_false(gpu->windows_known);
	assert_int_equal(gpu->window.size + gpu->prefetch_window.size, 0);
	machine_free(m);
	source_free(map);
}

static void nonsense_is_a_trouble(void **state)
{
	struct source *map = two_ports();
	struct machine *m;

	(void)state;
	source_put_list(map, "sys/bus/pci/devices",
			"0000:20:01.0\n0000:21:00.0\nnonsense\n21:00.0\n");
	put(map, "0000:21:00.0", "numa_node", "many\n");
	put(map, "0000:21:00.0", "resource", "zero one\n");
	source_put_error(map, DEVICES "0000:21:00.0/enable", SOURCE_FILE, EIO);
	/* A parent that is no bridge above: sysfs of a foreign machine may say anything. */
	source_put_link(map, DEVICES "0000:20:01.0",
			"../../../devices/pci0000:20/0000:21:00.0/0000:20:01.0");
	m = machine_read(map, &pci_only);
	assert_int_equal(m->pci_n, 2);
	assert_null(m->pci[0].parent);
	assert_true(fact_unknown(m->pci[1].numa_node));
	assert_false(m->pci[1].bars_known);
	assert_int_equal(m->trouble_n, 6);
	machine_free(m);
	source_free(map);
}

static void names_are_found(void **state)
{
	static const struct {
		int64_t vendor, device;
		const char *name;
	} cases[] = {
		{0x10de, 0x2684, "NVIDIA Corporation AD102 [GeForce RTX 4090]"},
		{0x10de, 0x0001, "NVIDIA Corporation Device 0001"},
		{0x8086, 0x29c0, "Intel Corporation 82G33/G31/P35/P31 Express DRAM Controller"},
		{0x0002, 0x0003, "Device 0002:0003"},
	};
	char name[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pci_function f = {.vendor = fact_int(cases[i].vendor, "vendor"),
					 .device = fact_int(cases[i].device, "device")};

		assert_string_equal(pci_device_name(&f, name, sizeof(name)), cases[i].name);
	}
}

static void no_permission_is_unknown(void **state)
{
	struct source *map = two_ports();
	struct machine *m;
	char config[64] = {(char)0xde, 0x10};

	(void)state;
	source_put_file(map, DEVICES "0000:21:00.0/config", config, sizeof(config));
	source_put_error(map, DEVICES "0000:20:01.0/config", SOURCE_FILE, EACCES);
	m = machine_read(map, &pci_only);
	assert_true(fact_is(m->root, 0));
	assert_true(fact_unknown(m->pci[0].acs_ctl));
	assert_non_null(strstr(m->pci[0].acs_ctl.from, "needs root"));
	assert_non_null(strstr(m->pci[1].acs_ctl.from, "needs root"));
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
	source_free(map);
}

/* A tree whose links were not copied says nothing about drivers; one link shows that links were. */
static void missing_links_are_unknown(void **state)
{
	(void)state;
	for (int linked = 0; linked < 2; linked++) {
		struct source *map = two_ports();
		struct machine *m;

		source_put_error(map, DEVICES "0000:21:00.0/driver", SOURCE_LINK, ENOENT);
		source_put_error(map, DEVICES "10000:01:00.0/driver", SOURCE_LINK, ENOENT);
		if (linked)
			source_put_link(map, DEVICES "0000:20:01.0/driver",
					"../../../bus/pci/drivers/pcieport");
		else
			source_put_error(map, DEVICES "0000:20:01.0/driver", SOURCE_LINK, ENOENT);
		m = machine_read(map, &pci_only);
		assert_int_equal(fact_absent(m->pci[1].driver), linked);
		assert_int_equal(fact_unknown(m->pci[1].driver), !linked);
		machine_free(m);
		source_free(map);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_give_parents),
		cmocka_unit_test(values_are_understood),
		cmocka_unit_test(bridges_have_windows),
		cmocka_unit_test(nonsense_is_a_trouble),
		cmocka_unit_test(no_permission_is_unknown),
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(missing_links_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
