/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine/acs_parameter.c: which ports a command line names, as Linux's next_arg and
 * pci_dev_str_match.
 */
#include "machine/acs_parameter.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "build_machine.h"

#include <cmocka.h>
#include <string.h>

#define A "0000:22:00.0"
#define B "0000:22:01.0"

static void the_value_that_counts(void **state)
{
	static const struct {
		const char *line, *value;
	} cases[] = {
		{"ro quiet", NULL},
		{"ro pci=" A, NULL},
		{"ro disable_acs_redir=" A, NULL},
		{"ro xpci=disable_acs_redir=" A, NULL},
		{"ro pci=no_disable_acs_redir=" A, NULL},
		{"ro pci=disable_acs_redir=", ""},
		{"ro pci=disable_acs_redir=" A ";" B " quiet\n", A ";" B},
		{"pci=noaer,disable_acs_redir=" A ",realloc", A},
		{"pci=disable_acs_redir=" A " pci=noaer pci=disable_acs_redir=" B, B},
		{"pci=disable_acs_redir=" A ",disable_acs_redir=" B, B},
		{"ro -- pci=disable_acs_redir=" A, NULL},
		{"pci=disable_acs_redir=" A " -- pci=disable_acs_redir=" B, A},
		{"ro \"pci=disable_acs_redir=" A ";" B "\" quiet", A ";" B},
		{"ro pci=\"disable_acs_redir=" A ";" B "\" quiet", A ";" B},
		{"ro pci=disable_acs_redir=\"" A ";" B "\"", "\"" A ";" B "\""},
		{"ro 'pci=disable_acs_redir=" A "'", NULL},
		{"init=\"/bin/x pci=disable_acs_redir=" A "\"", NULL},
		{"ro\v\f\r pci=disable_acs_redir=" A "\r\n", A},
		{"", NULL},
		{"\"", NULL},
		{"pci=\"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_FREE char *value = acs_parameter_of_line(cases[i].line);

		if (!cases[i].value)
			assert_null(value);
		else
			assert_string_equal(value ? value : "(none)", cases[i].value);
	}
}

static void the_ports_that_it_names(void **state)
{
	static const struct {
		const char *value;
		bool named;
	} cases[] = {
		{"0000:22:01.0", true},
		{"22:01.0", true},
		{"0:22:1.0", true},
		{"22:01.1", false},
		{"1:22:01.0", false},
		{"22:00.0;22:01.0", true},
		{"nonsense;22:01.0", false},
		{"22:01.0;nonsense", true},
		{"\"22:01.0\"", false},
		{"", false},
		{"pci:1000:c030", true},
		{"pci:1000:0", true},
		{"pci:1000:c031", false},
		{"pci:1000:c030:1000:1", true},
		{"pci:1000:c030:1000:2", false},
		{"pci:1000", false},
		{"21:00.0/01.0", true},
		{"20:01.0/00.0/01.0", true},
		{"20:02.0/00.0/01.0", false},
		{"21:00.0/00.0", false},
		{"22:00.0;pci:1000:c030", true},
	};
	struct machine *m = build_machine();
	struct pci_function *root = build_port(m, "0000:20:01.0", NULL, PCI_PORT_ROOT);
	struct pci_function *up = build_port(m, "0000:21:00.0", root, PCI_PORT_UPSTREAM);
	struct pci_function *port = build_port(m, B, up, PCI_PORT_DOWNSTREAM);

	(void)state;
	port->vendor = fact_int(0x1000, "test");
	port->device = fact_int(0xc030, "test");
	port->subsystem_vendor = fact_int(0x1000, "test");
	port->subsystem_device = fact_int(1, "test");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (acs_parameter_names(cases[i].value, port) != cases[i].named)
			fail_msg("%s", cases[i].value);
	build_free(m);
}

static void lists_join(void **state)
{
	AUTO_STRBUF struct strbuf list = {0};

	(void)state;
	acs_list_add(&list, NULL);
	acs_list_add(&list, "");
	acs_list_add(&list, "22:00.0;$(x);pci:1000:c030;pci:1000:c030`x`;nonsense");
	acs_list_add(&list, "0000:22:00.0;22:01.0");
	assert_string_equal(list.text, A ";pci:1000:c030;" B);
}

/* Linux 6.15, __pci_config_acs: the first item that fits; the list ends where it cannot be read. */
static void config_by_port(void **state)
{
	static const struct {
		const char *value;
		bool named;
		uint16_t mask, set;
	} cases[] = {
		{"1111011@22:01.0", true, 0x7f, 0x7b},
		{"xx110x1@" B, true, 0x1d, 0x19},
		{"Xx0@22:01.0", true, 0x01, 0x00},
		{"@22:01.0", true, 0, 0},
		{"xxxxxxxxxx1@22:01.0", true, 1, 1},
		{"1xxxxxxx@22:01.0", false, 0, 0}, /* no such bit */
		{"0@22:00.0;1@22:01.0;0@22:01.0", true, 1, 1},
		{"0@pci:0:0", true, 1, 0},
		{"0@pci:1000:c030", true, 1, 0},
		{"0@pci:1000:c031;1@21:00.0/01.0", true, 1, 1},
		{"2@22:00.0;1@22:01.0", false, 0, 0},
		{"22:00.0;1@22:01.0", false, 0, 0},
		{"1@nonsense;1@22:01.0", false, 0, 0},
		{"1@22:00.0", false, 0, 0},
		{"", false, 0, 0},
		{"@", false, 0, 0},
	};
	struct machine *m = build_machine();
	struct pci_function *up = build_port(m, "0000:21:00.0", NULL, PCI_PORT_UPSTREAM);
	struct pci_function *port = build_port(m, B, up, PCI_PORT_DOWNSTREAM);

	(void)state;
	port->vendor = fact_int(0x1000, "test");
	port->device = fact_int(0xc030, "test");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct acs_bits bits;
		bool named = acs_config_names(cases[i].value, port, &bits);

		if (named != cases[i].named)
			fail_msg("%s", cases[i].value);
		if (named) {
			assert_int_equal(bits.mask, cases[i].mask);
			assert_int_equal(bits.set, cases[i].set);
		}
	}
	build_free(m);
}

/* config_acs= comes second, and begins at what firmware set. */
static void config_outranks(void **state)
{
	static const struct {
		const char *disable, *config;
		bool clear;
	} cases[] = {
		{NULL, NULL, false},
		{B, NULL, true},
		{A, NULL, false},
		{B, "1111111@" A, true},
		{B, "xxxxxx1@" B, false},
		{B, "x1011x1@" B, false},
		{NULL, "x0x00xx@" B, true},
		{NULL, "0000000@pci:0:0", true},
		{NULL, "x0x0xxx@" B, false},
	};
	struct machine *m = build_machine();
	struct pci_function *port = build_port(m, B, NULL, PCI_PORT_DOWNSTREAM);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (acs_parameters_clear(cases[i].disable, cases[i].config, port) != cases[i].clear)
			fail_msg("%s and %s", cases[i].disable, cases[i].config);
	build_free(m);
}

static void the_word(void **state)
{
	static const struct {
		const char *disable, *config, *word;
	} cases[] = {
		{NULL, NULL, ACS_PARAMETER A ";" B},
		{"pci:1:2", NULL, ACS_PARAMETER "pci:1:2;" A ";" B},
		{NULL, "1@0000:01:00.0", ACS_PARAMETER A ";" B},
		{"pci:1:2", "xx111x1@" A ";1@pci:3:4",
		 ACS_CONFIG "x0100x1@" A ";x0x00xx@" B ";xx111x1@" A ";1@pci:3:4"},
		{NULL, "1111111@pci:0:0", ACS_CONFIG "1010011@" A ";1010011@" B ";1111111@pci:0:0"},
		/* Once more is no change. */
		{NULL, "1010011@" A ";x0x00xx@" B, ACS_CONFIG "1010011@" A ";x0x00xx@" B},
		{NULL, "1@" A ";$(x)@" B ";0@" B, ACS_CONFIG "x0x00x1@" A ";x0x00xx@" B ";1@" A},
	};
	struct machine *m = build_machine();
	const struct pci_function *const ports[] = {
		build_port(m, A, NULL, PCI_PORT_DOWNSTREAM),
		build_port(m, B, NULL, PCI_PORT_DOWNSTREAM),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_STRBUF struct strbuf word = {0};

		acs_word(cases[i].disable, cases[i].config, ports, 2, &word);
		assert_string_equal(word.text, cases[i].word);
	}
	build_free(m);
}

static void kernels(void **state)
{
	static const struct {
		const char *release;
		bool parameter, config;
	} cases[] = {
		{"4.18.0-553.el8", false, false}, {"4.19.0", true, false},
		{"6.1.0-56-amd64", true, false},  {"6.10.14", true, false},
		{"6.11.0", true, true},           {"7.0.1", true, true},
		{"rolling", true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct kernel k = {.release = fact_str(cases[i].release, "test")};

		assert_int_equal(acs_parameter_known(&k), cases[i].parameter);
		assert_int_equal(acs_config_known(&k), cases[i].config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_value_that_counts),
		cmocka_unit_test(the_ports_that_it_names),
		cmocka_unit_test(lists_join),
		cmocka_unit_test(config_by_port),
		cmocka_unit_test(config_outranks),
		cmocka_unit_test(the_word),
		cmocka_unit_test(kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
