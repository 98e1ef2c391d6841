/* SPDX-License-Identifier: Apache-2.0 */
/* machine/acs_parameter.c: which ports a command line names, as Linux's next_arg and pci_dev_str_match. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_value_that_counts),
		cmocka_unit_test(the_ports_that_it_names),
		cmocka_unit_test(lists_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
