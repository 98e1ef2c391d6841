/* SPDX-License-Identifier: Apache-2.0 */
/* machine/kernel_log.c: forms of the log, kinds of lines, the devices they name. */
#include "base/source.h"
#include "base/strbuf.h"
#include "machine/kernel_log.h"
#include "machine/machine.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

static const char *const functions = "0000:00:03.1\n0000:01:00.0\n0000:07:00.0\n0000:c1:00.0\n";

static struct machine *read_log(const char *text)
{
	static const struct machine_request request = {.parts = MACHINE_PCI | MACHINE_LOG};
	struct source *map = source_new_map("log");
	struct machine *m;

	source_put_list(map, "sys/bus/pci/devices", functions);
	source_put_file(map, "kernel-log.txt", text, strlen(text));
	m = machine_read(map, &request);
	source_free(map);
	return m;
}

static void lines_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum log_kind kind;
		const char *device; /* NULL: none */
		int64_t code;       /* -1: unknown */
		const char *severity;
	} rows[] = {
		{"NVRM: Xid (PCI:0000:01:00): 31, pid=21804, name=simpleP2P, Ch 00000013", LOG_XID,
		 "0000:01:00.0", 31, ""},
		{"NVRM: Xid (0000:07:00): 79, GPU has fallen off the bus.", LOG_XID, "0000:07:00.0",
		 79, ""},
		{"NVRM: Xid (PCI:0000:02:00): 13, Graphics Exception", LOG_XID, NULL, 13, ""},
		{"NVRM: Xid (PCI:0000:01:00): what", LOG_XID, "0000:01:00.0", -1, ""},
		{"NVRM: GPU at PCI:0000:01:00: GPU-00000000-0000-0000-0000-000000000000", LOG_NVRM,
		 "0000:01:00.0", -1, ""},
		{"NVRM: GPU 0000:07:00.0: RmInitAdapter failed! (0x24:0xffff:1234)", LOG_NVRM,
		 "0000:07:00.0", -1, ""},
		{"NVRM: nvAssertFailed: Assertion failed: 0 @ field_desc.h:272", LOG_NVRM, NULL, -1,
		 ""},
		{"NVRM: peer DMA address 0x1800400000 is not aligned at 0x20000000", LOG_NVRM, NULL,
		 -1, ""},
		{"NVRM: BAR1 is 0M @ 0x0 (PCI:0000:01:00.0)", LOG_BAR, "0000:01:00.0", -1, ""},
		{"pci 0000:01:00.0: BAR 1: no space for [mem size 0x800000000 64bit pref]", LOG_BAR,
		 "0000:01:00.0", -1, ""},
		{"pci 0000:01:00.0: BAR 1 [mem size 0x800000000 64bit pref]: can't assign; no space",
		 LOG_BAR, "0000:01:00.0", -1, ""},
		{"pci 0000:01:00.0: BAR 1: failed to assign [mem size 0x10000000 64bit pref]",
		 LOG_BAR, "0000:01:00.0", -1, ""},
		{"pcieport 0000:00:03.1: bridge window [mem size 0xc00000000 64bit pref]: can't "
		 "assign; no space",
		 LOG_BAR, "0000:00:03.1", -1, ""},
		{"pcieport 0000:00:03.1: AER: Corrected error received: 0000:01:00.0", LOG_AER,
		 "0000:01:00.0", -1, "corrected"},
		{"pcieport 0000:00:03.1: AER: Multiple Uncorrected (Non-Fatal) error received: "
		 "0000:01:00.0",
		 LOG_AER, "0000:01:00.0", -1, "nonfatal"},
		{"pcieport 0000:00:03.1: AER: Uncorrectable (Fatal) error message received from "
		 "0000:07:00.0",
		 LOG_AER, "0000:07:00.0", -1, "fatal"},
		{"nvidia 0000:07:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, "
		 "(Receiver ID)",
		 LOG_AER, "0000:07:00.0", -1, "corrected"},
		{"pcieport 0000:00:03.1: AER: device recovery successful", LOG_OTHER,
		 "0000:00:03.1", -1, ""},
		{"DMAR: [DMA Read NO_PASID] Request device [01:00.0] fault addr 0x7f1234 [fault "
		 "reason 0x06] PTE Read access is not set",
		 LOG_IOMMU_FAULT, "0000:01:00.0", -1, ""},
		{"DMAR: IOMMU enabled", LOG_OTHER, NULL, -1, ""},
		{"AMD-Vi: Event logged [IO_PAGE_FAULT device=07:00.0 domain=0x0003 "
		 "address=0x80000040 flags=0x0020]",
		 LOG_IOMMU_FAULT, "0000:07:00.0", -1, ""},
		{"nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 "
		 "address=0x9e139068 flags=0x0020]",
		 LOG_IOMMU_FAULT, "0000:07:00.0", -1, ""},
		{"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32", LOG_FABRIC,
		 "0000:c1:00.0", 12028, ""},
		{"nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
		 LOG_PEERMEM, NULL, -1, ""},
		{"nv_mem_client_init -- error while registering client", LOG_PEERMEM, NULL, -1, ""},
		{"nvidia: disagrees about version of symbol module_layout", LOG_MODULE, NULL, -1,
		 ""},
		{"gdrcopy: Unknown symbol nvidia_p2p_get_pages (err -2)", LOG_MODULE, NULL, -1, ""},
		{"Lockdown: modprobe: unsigned module loading is restricted; see man "
		 "kernel_lockdown.7",
		 LOG_MODULE, NULL, -1, ""},
		{"pci 0000:00:03.1: cannot disable ACS redirect for this hardware as it does not "
		 "have ACS",
		 LOG_ACS, "0000:00:03.1", -1, ""},
		{"Unknown kernel command line parameters \"pcie_acs_override=downstream\", will be "
		 "passed to user space.",
		 LOG_ACS, NULL, -1, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct machine *m = read_log(rows[i].text);
		const struct log_line *l = m->log;

		if (m->log_n != 1 || l->kind != rows[i].kind)
			fail_msg("kind %d: %s", m->log_n ? (int)l->kind : -1, rows[i].text);
		if (strcmp(l->pci ? l->pci->name : "-", rows[i].device ? rows[i].device : "-") != 0)
			fail_msg("device %s: %s", l->pci ? l->pci->name : "-", rows[i].text);
		assert_int_equal(fact_or(l->code, -1), rows[i].code);
		assert_string_equal(l->severity, rows[i].severity);
		assert_string_equal(l->text, rows[i].text);
		assert_int_equal(l->time_us, -1);
		machine_free(m);
	}
}

static void every_form_of_the_log(void **state)
{
	static const char xid[] = "NVRM: Xid (PCI:0000:01:00): 31, pid=1";
	static const struct {
		const char *prefix;
		int64_t time_us;
	} forms[] = {
		{"", -1},
		{"[ 3742.865956] ", 3742865956},
		{"[    0.000001] ", 1},
		{"[ 3742.865956][ T1234] ", 3742865956},
		{"[ 3742.865956][T21804] ", 3742865956},
		{"<4>[ 3742.865956] ", 3742865956},
		{"4,1234,567890,-;", 567890},
		{"4,1234,567890,-,caller=T12;", 567890},
		{"[Mon Jan  5 10:11:12 2026] ", -1},
		{"kern  :warn  : [ 3742.865956] ", 3742865956},
		{"Jan  5 10:11:12 gpu-box kernel: ", -1},
		{"[ 3742.865956] gpu-box kernel: ", 3742865956},
		{"Jan 05 10:11:12 gpu-box kernel: [ 3742.865956] ", 3742865956},
		{"2026-01-05T10:11:12.123456+00:00 gpu-box kernel: ", -1},
		{"Mon 2026-01-05 10:11:12.123456 UTC gpu-box kernel: ", -1},
		{"1767607872.123456 gpu-box kernel: ", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		AUTO_STRBUF struct strbuf line = {0};
		struct machine *m;

		strbuf_printf(&line, "%s%s", forms[i].prefix, xid);
		m = read_log(line.text);
		assert_int_equal(m->log_n, 1);
		assert_string_equal(m->log[0].text, xid);
		if (m->log[0].time_us != forms[i].time_us)
			fail_msg("'%s': %lld us", forms[i].prefix, (long long)m->log[0].time_us);
		machine_free(m);
	}
}

static void other_lines_are_left_out(void **state)
{
	static const char *const lines[] = {
		"[    0.000000] Command line: pcie_acs_override=downstream nvidia-drm.modeset=1",
		"[    1.000000] pcieport 0000:00:03.1: AER: enabled with IRQ 28",
		"[    0.400000] acpi PNP0A08:00: _OSC: OS now controls [PCIeHotplug PME AER]",
		"[    2.000000] usb 1-1: new high-speed USB device",
		" DEVICE=+pci:0000:01:00.0 nvidia",
		/* Written by programs that quote a message of the kernel. */
		"[   10.000000] python3[123]: NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
		"[   11.000000] systemd[1]: Started a check for AMD-Vi: Event logged [IO_PAGE_FAULT].",
		"[   12.000000] my-check: found \"NVRM: Xid (PCI:0000:01:00): 79\"",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (kernel_log_is_relevant(lines[i], strlen(lines[i])))
			fail_msg("relevant: %s", lines[i]);
}

/* The kernel spreads one error over several lines; only the first has the severity. */
static void an_aer_report_goes_on(void **state)
{
	struct machine *m = read_log(
		"[1.000000] nvidia 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), "
		"type=Transaction Layer, (Requester ID)\n"
		"[1.000001] nvidia 0000:01:00.0:   device [10de:2684] error "
		"status/mask=00100000/00000000\n"
		"[1.000002] nvidia 0000:07:00.0:   device [10de:2684] error "
		"status/mask=00001000/00002000\n");

	(void)state;
	assert_int_equal(m->log_n, 3);
	assert_int_equal(m->log[1].kind, LOG_AER);
	assert_string_equal(m->log[1].severity, "nonfatal");
	assert_int_equal(fact_or(m->log[1].code, 0), 0x100000);
	assert_int_equal(m->log[2].kind, LOG_OTHER);
	machine_free(m);
}

static void hostile_text(void **state)
{
	AUTO_STRBUF struct strbuf log = {0};
	struct machine *m;

	(void)state;
	strbuf_puts(&log, "NVRM: \033[31mred\n");
	for (int i = 0; i < 2000; i++)
		strbuf_puts(&log, "NVRM: x ");
	m = read_log(log.text);
	assert_int_equal(m->log_n, 2);
	assert_string_equal(m->log[0].text, "NVRM: ?[31mred");
	assert_int_equal(strlen(m->log[1].text), KERNEL_LOG_LINE_MAX - 1);
	machine_free(m);
}

static void only_the_newest_are_kept(void **state)
{
	AUTO_STRBUF struct strbuf log = {0};
	struct machine *m;

	(void)state;
	for (int i = 0; i < 5000; i++)
		strbuf_printf(&log, "[%5d.000000] NVRM: %d\n[%5d.000000] usb 1-1: reset\n", i, i,
			      i);
	m = read_log(log.text);
	assert_int_equal(m->log_n, 4000);
	assert_true(m->log_lacks_older);
	assert_string_equal(m->log[0].text, "NVRM: 1000");
	assert_string_equal(m->log[3999].text, "NVRM: 4999");
	machine_free(m);
}

static void no_log_is_unknown(void **state)
{
	static const struct machine_request request = {.parts = MACHINE_LOG};
	struct source *map = source_new_map("log");
	struct machine *m;

	(void)state;
	m = machine_read(map, &request);
	assert_true(fact_unknown(m->log_read));
	machine_free(m);
	source_put_error(map, "kernel-log.txt", SOURCE_FILE, EPERM);
	m = machine_read(map, &request);
	assert_true(fact_unknown(m->log_read));
	assert_non_null(strstr(m->log_read.from, "root"));
	machine_free(m);
	source_put_file(map, "kernel-log.txt", "", 0);
	m = machine_read(map, &request);
	assert_true(fact_is(m->log_read, 1));
	machine_free(m);
	source_free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_told_apart),
		cmocka_unit_test(every_form_of_the_log),
		cmocka_unit_test(other_lines_are_left_out),
		cmocka_unit_test(an_aer_report_goes_on),
		cmocka_unit_test(hostile_text),
		cmocka_unit_test(only_the_newest_are_kept),
		cmocka_unit_test(no_log_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
