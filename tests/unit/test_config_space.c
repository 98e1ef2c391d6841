/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration space decoding: registers at their places, and lists that loop or lead astray. */
#include "machine/config_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint8_t space[4096];

static void put16(size_t at, uint16_t v)
{
	space[at] = (uint8_t)v;
	space[at + 1] = (uint8_t)(v >> 8);
}

static void put32(size_t at, uint32_t v)
{
	put16(at, (uint16_t)v);
	put16(at + 2, (uint16_t)(v >> 16));
}

/* A downstream port: Express at 40h, then AER at 100h, ACS at 148h. */
static void make_port(void)
{
	memset(space, 0, sizeof(space));
	put16(0x00, 0x1000);
	put16(0x02, 0xc030);
	put16(0x06, 0x0010); /* capability list */
	put32(0x08, 0x060400b0);
	space[0x0e] = 1;
	space[0x19] = 0x23;
	space[0x1a] = 0x25;
	put16(0x20, 0xf000); /* window f0000000-f01fffff */
	put16(0x22, 0xf010);
	put16(0x24, 0x0001); /* prefetchable, 64 bits: 38_00000000-38_0fffffff */
	put16(0x26, 0x0ff1);
	put32(0x28, 0x38);
	put32(0x2c, 0x38);
	space[0x34] = 0x40;
	put16(0x40, 0x0010);
	put16(0x42, 0x0062);             /* downstream port, version 2 */
	put32(0x44, 0x00000002);         /* MPS 512 */
	put16(0x48, 0x2030);             /* MPS set 256, relaxed ordering */
	put32(0x4c, 0x00000104 | 0x100); /* 16 GT/s x16 */
	put16(0x52, 0x0083);             /* 8 GT/s x8 */
	put32(0x64, 0x00000040);         /* AtomicOp routing */
	put16(0x70, 0x0004);             /* target 16 GT/s */
	put32(0x100, 0x14820001);
	put32(0x104, 0x00004000);
	put32(0x110, 0x00000001);
	put32(0x148, 0x0001000d);
	put16(0x14c, 0x005f);
	put16(0x14e, 0x001d);
}

static void decodes_a_port(void **state)
{
	struct pci_function f = {0};

	(void)state;
	make_port();
	config_space_decode(&f, space, sizeof(space), "unread");
	assert_null(f.config_trouble);
	assert_true(fact_is(f.vendor, 0x1000));
	assert_true(fact_is(f.class_code, 0x060400));
	assert_true(fact_is(f.secondary_bus, 0x23));
	assert_true(fact_is(f.port_type, PCI_PORT_DOWNSTREAM));
	assert_true(fact_is(f.payload_max, 512));
	assert_true(fact_is(f.payload, 256));
	assert_true(fact_is(f.relaxed_ordering, 1));
	assert_true(fact_is(f.link_speed_cap, 16000));
	assert_true(fact_is(f.link_width_cap, 16));
	assert_true(fact_is(f.link_speed, 8000));
	assert_true(fact_is(f.link_width, 8));
	assert_true(fact_is(f.link_speed_target, 16000));
	assert_true(fact_is(f.atomic_routing, 1));
	assert_true(fact_is(f.acs_cap, 0x5f));
	assert_true(fact_is(f.acs_ctl, PCI_ACS_SV | PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_UF));
	assert_true(fact_is(f.acs_offset, 0x148));
	assert_true(fact_is(f.aer_uncorrectable, 0x4000));
	assert_true(fact_is(f.aer_correctable, 1));
	assert_true(fact_absent(f.rebar_sizes));
	assert_true(f.windows_known);
	assert_int_equal(f.window.start, 0xf0000000);
	assert_int_equal(f.window.size, 2 << 20);
	assert_int_equal(f.prefetch_window.start, 0x3800000000);
	assert_int_equal(f.prefetch_window.size, 0x10000000);
}

static void unread_is_unknown(void **state)
{
	struct pci_function f = {0}, none = {0};

	(void)state;
	make_port();
	config_space_decode(&f, space, 64, "needs root");
	assert_true(fact_is(f.vendor, 0x1000));
	assert_true(fact_unknown(f.acs_ctl));
	assert_string_equal(f.acs_ctl.from, "needs root");
	assert_true(fact_unknown(f.port_type));
	config_space_decode(&f, space, 256, "old access");
	assert_true(fact_known(f.port_type));
	assert_true(fact_unknown(f.acs_ctl));
	config_space_decode(&none, NULL, 0, "gone");
	assert_true(fact_unknown(none.vendor));
}

static void decodes_resizable_bars(void **state)
{
	struct pci_function f = {0};

	(void)state;
	make_port();
	put32(0x148, 0x00010015);
	put32(0x14c, 0x0007f000); /* 256 MiB .. 16 GiB */
	put32(0x150, 0x00000e21); /* BAR1, one entry, 16 GiB */
	config_space_decode(&f, space, sizeof(space), "");
	assert_true(fact_is(f.rebar_bar, 1));
	assert_true(fact_is(f.rebar_sizes, 0x7f00));
	assert_true(fact_absent(f.acs_ctl));
}

static void names_loops(void **state)
{
	struct pci_function f = {0}, g = {0}, h = {0};

	(void)state;
	make_port();
	put16(0x40, 0x4001); /* the first capability points at itself */
	config_space_decode(&f, space, sizeof(space), "");
	assert_string_equal(f.config_trouble, "the capability list loops");
	make_port();
	put32(0x100, 0x14820001);
	put32(0x148, 0x10010003); /* 100h -> 148h -> 100h */
	config_space_decode(&g, space, sizeof(space), "");
	assert_string_equal(g.config_trouble, "the extended capability list loops");
	make_port();
	put16(0x40, 0x1001); /* leads to 10h */
	config_space_decode(&h, space, sizeof(space), "");
	assert_string_equal(h.config_trouble, "the capability list leads into the header");
}

static void all_ones_is_gone(void **state)
{
	struct pci_function f = {0};

	(void)state;
	memset(space, 0xff, sizeof(space));
	config_space_decode(&f, space, sizeof(space), "");
	assert_non_null(f.config_trouble);
	assert_true(fact_unknown(f.vendor));
}

static void links_carry(void **state)
{
	(void)state;
	assert_true(pci_link_gbps(16000, 16) > 31.4 && pci_link_gbps(16000, 16) < 31.6);
	assert_true(pci_link_gbps(2500, 1) == 0.25);
	assert_true(pci_link_gbps(64000, 16) > 120 && pci_link_gbps(64000, 16) < 122);
}

static void addresses(void **state)
{
	struct pci_address a;
	char buf[PCI_ADDRESS_LEN];

	(void)state;
	assert_int_equal(pci_address_parse("41:00.1", &a), 0);
	assert_string_equal(pci_address_format(a, buf), "0000:41:00.1");
	assert_int_equal(pci_address_parse("00000000:C1:1F.7", &a), 0);
	assert_string_equal(pci_address_format(a, buf), "0000:c1:1f.7");
	assert_int_equal(pci_address_parse("10000:e1:00.0", &a), 0);
	assert_string_equal(pci_address_format(a, buf), "10000:e1:00.0");
	assert_true(pci_address_parse("41:20.0", &a) < 0);
	assert_true(pci_address_parse("41:00.8", &a) < 0);
	assert_true(pci_address_parse("41:00", &a) < 0);
	assert_true(pci_address_parse("0000:41:00.0 ", &a) < 0);
	assert_true(pci_address_parse("", &a) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_a_port),
		cmocka_unit_test(unread_is_unknown),
		cmocka_unit_test(decodes_resizable_bars),
		cmocka_unit_test(names_loops),
		cmocka_unit_test(all_ones_is_gone),
		cmocka_unit_test(links_carry),
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
