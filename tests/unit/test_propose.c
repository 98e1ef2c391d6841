/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose/propose.c and what each rule proposes, on the recorded machines. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/diagnose.h"
#include "open_recording.h"
#include "recording/recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MACHINES  "tests/machines"
#define REDIRECTS (PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)

static const char here[] = "built by a test";

/* ---- a machine, its diagnosis and what it leads to ---- */

struct judged {
	struct machine *m;
	struct topology *t;
	struct diagnosis *d;
	struct change_set set;
};

static struct machine *recorded(const char *name)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};
	AUTO_FREE char *path = xprintf(MACHINES "/%s", name);
	struct source *s = NULL;
	struct machine *m;

	assert_int_equal(open_recording(path, &s), 0);
	m = machine_read(s, &all);
	source_free(s);
	return m;
}

static struct judged judge(struct machine *m, const struct propose_options *o)
{
	struct judged j = {.m = m, .t = topology_new(m), .set = {.arena = arena_new()}};

	j.d = diagnose(j.t);
	diagnosis_propose(j.d, o, &j.set);
	return j;
}

/* Of this rule alone, NULL: of all. */
static struct judged judge_rule(struct machine *m, const char *rule)
{
	struct propose_options o = {.rules = &rule, .rule_n = rule != NULL};

	return judge(m, &o);
}

static void done(struct judged *j)
{
	arena_free(j->set.arena);
	diagnosis_free(j->d);
	topology_free(j->t);
	machine_free(j->m);
}

/*
 * "acs 0000:22:00.0 001d>0011 now kept apart [acs-redirect]"; work for a person: kind and target.
 */
static void describe(const struct change *c, struct strbuf *b)
{
	strbuf_puts(b, change_kind_word(c->kind));
	if (c->target)
		strbuf_printf(b, " %s", c->target);
	if (c->kind != CHANGE_BY_HAND) {
		if (c->name)
			strbuf_printf(b, " %s", c->name);
		if (c->kind == CHANGE_ACS)
			strbuf_printf(b, " %04x>%04x", c->value.old, c->value.new);
		if (c->kind == CHANGE_BAR_SIZE)
			strbuf_printf(b, " %u %u>%u", c->bar, c->value.old, c->value.new);
		if (c->new)
			strbuf_printf(b, "=%s", c->new);
		strbuf_puts(b, c->lifetime & CHANGE_NOW ? " now" : "");
		strbuf_puts(b, c->lifetime & CHANGE_KEPT ? " kept" : "");
		strbuf_puts(b, c->opt_in ? " apart" : "");
	}
	strbuf_puts(b, " [");
	texts_join(&c->rules, ", ", b);
	strbuf_puts(b, "]\n");
}

static void assert_set(const struct change_set *set, const char *wanted)
{
	struct strbuf b AUTO_STRBUF = {0};

	for (size_t i = 0; i < set->n; i++)
		describe(&set->items[i], &b);
	assert_string_equal(strbuf_str(&b), wanted);
}

/* What the rule proposes when it is asked for by name. Frees the machine. */
static void assert_proposes(struct machine *m, const char *rule, const char *wanted)
{
	struct judged j = judge_rule(m, rule);

	assert_set(&j.set, wanted);
	done(&j);
}

/* What of all proposals are this rule's, when none is named. Frees the machine. */
static void assert_unasked(struct machine *m, const char *rule, const char *wanted)
{
	struct judged j = judge_rule(m, NULL);
	struct change_set some = {.arena = j.set.arena};

	for (size_t i = 0; i < j.set.n; i++)
		if (texts_same(&j.set.items[i].rules, &TEXTS(rule)))
			change_add(&some, &j.set.items[i]);
	assert_set(&some, wanted);
	done(&j);
}

/* How a person is told to do the n-th change of the rule. Frees the machine. */
static void assert_told(struct machine *m, const char *rule, size_t n, const char *wanted)
{
	struct judged j = judge_rule(m, rule);

	assert_true(n < j.set.n);
	assert_int_equal(j.set.items[n].kind, CHANGE_BY_HAND);
	if (!strstr(j.set.items[n].new, wanted))
		fail_msg("\"%s\" does not say \"%s\"", j.set.items[n].new, wanted);
	done(&j);
}

/* ---- ACS ---- */

static void just_the_redirecting_ports(void **state)
{
	static const char ports[] = "acs 0000:22:00.0 001d>0011 now kept [acs-redirect]\n"
				    "acs 0000:22:01.0 001d>0011 now kept [acs-redirect]\n";

	(void)state;
	assert_proposes(recorded("guest-switch2-intel"), "acs-redirect", ports);
	assert_proposes(recorded("guest-switch2-amd"), "acs-redirect", ports);
	assert_proposes(recorded("guest-switch2-intel-pt"), "acs-redirect", ports);
	assert_proposes(recorded("guest-switch2-cleared"), "acs-redirect", "");
	assert_proposes(recorded("guest-switch2-none"), "acs-redirect", "");
	assert_proposes(recorded("guest-switch2-user"), "acs-redirect", ""); /* nobody could look */
}

static void answers_alone_are_another_rule(void **state)
{
	(void)state;
	assert_proposes(recorded("made-up-acs-completions"), "acs-redirect", "");
	assert_proposes(recorded("made-up-acs-completions"), "acs-completion-redirect",
			"acs 0000:22:01.0 0009>0001 now kept [acs-completion-redirect]\n");
}

static void root_ports_are_offered_apart(void **state)
{
	(void)state;
	assert_unasked(recorded("guest-switch2-amd"), "acs-root-port",
		       "acs 0000:20:00.0 001d>0011 now kept apart [acs-root-port]\n"
		       "acs 0000:60:00.0 001d>0011 now kept apart [acs-root-port]\n");
	assert_proposes(recorded("guest-switch2-amd"), "acs-root-port",
			"acs 0000:20:00.0 001d>0011 now kept [acs-root-port]\n"
			"acs 0000:60:00.0 001d>0011 now kept [acs-root-port]\n");
}

static void isolation_is_the_price(void **state)
{
	struct judged j = judge_rule(recorded("guest-switch2-intel"), "acs-redirect");

	(void)state;
	assert_int_equal(j.set.n, 2);
	assert_non_null(strstr(j.set.items[0].cost.items[0], "VFIO"));
	assert_non_null(strstr(j.set.items[0].reason.items[0], "inside the switch"));
	done(&j);
}

/* ---- IOMMU ---- */

static void pass_through_unless_off_is_wanted(void **state)
{
	static const struct {
		const char *machine;
		enum cpu_vendor vendor;
		const char *pass, *off;
	} cases[] = {
		{"guest-switch2-intel", CPU_INTEL, "iommu=pt", "intel_iommu=off"},
		{"guest-switch2-amd", CPU_AMD, "iommu=pt", "amd_iommu=off"},
		{"guest-switch2-intel", CPU_ARM, "iommu.passthrough=1", NULL},
		{"guest-switch2-intel", CPU_OTHER, NULL, NULL},
	};
	const char *rule = "iommu-translating";

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct propose_options o = {.rules = &rule, .rule_n = 1, .iommu_off = i % 2};
		struct machine *m = recorded(cases[i / 2].machine);
		const char *wanted = i % 2 ? cases[i / 2].off : cases[i / 2].pass;
		struct judged j;

		m->cpu.vendor = fact_int(cases[i / 2].vendor, here);
		j = judge(m, &o);
		assert_int_equal(j.set.n, 1);
		assert_int_equal(j.set.items[0].kind,
				 wanted ? CHANGE_KERNEL_PARAMETER : CHANGE_BY_HAND);
		if (wanted) {
			assert_string_equal(j.set.items[0].target, wanted);
			assert_int_equal(j.set.items[0].lifetime, CHANGE_KEPT);
			assert_non_null(strstr(j.set.items[0].cost.items[0], "VFIO"));
		}
		done(&j);
	}
}

/* Bound now, or from the next boot on: a guest has no use of a device without an IOMMU. */
static void off_is_refused_for_guests(void **state)
{
	static const struct {
		const char *driver, *line, *options;
		bool refused;
	} rows[] = {
		{"nvidia", "ro", NULL, false},
		{"vfio-pci", "ro", NULL, true},
		{"nvidia", "ro vfio-pci.ids=10de:2330,10de:2684", NULL, true},
		{"nvidia", "ro vfio-pci.ids=10de:ffff", NULL, false},
		{"nvidia", "ro xvfio-pci.ids=10de:2684", NULL, false},
		{"nvidia", "ro", "disable_vga=1 ids=8086:1,10de:2684", true},
		{"nvidia", "ro", "ids=10de:2684:1:2", false},
		{"nvidia", "ro rd.driver.pre=vfio-pci", NULL, true},
		{"nvidia", "ro", "noids=10de:2684", false},
	};
	const char *rule = "iommu-translating";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct propose_options o = {.rules = &rule, .rule_n = 1, .iommu_off = true};
		struct machine *m = recorded("guest-switch2-intel");
		struct modprobe_line line = {.kind = MODPROBE_OPTIONS,
					     .module = "vfio_pci",
					     .text = rows[i].options,
					     .file = "/etc/modprobe.d/vfio.conf"};
		struct judged j;

		m->cpu.vendor = fact_int(CPU_INTEL, here);
		m->gpus[0].pci->driver = fact_str(rows[i].driver, here);
		m->gpus[0].pci->vendor = fact_int(0x10de, here);
		m->gpus[0].pci->device = fact_int(0x2684, here);
		m->kernel.cmdline = fact_str(rows[i].line, here);
		if (rows[i].options) {
			m->modprobe = &line;
			m->modprobe_n = 1;
		}
		j = judge(m, &o);
		assert_int_equal(j.set.n, 1);
		assert_int_equal(j.set.items[0].kind == CHANGE_BY_HAND, rows[i].refused);
		done(&j);
	}
}

/* The files of a host, as a recording spells them, that say what the next boot does. */
static struct machine *host_with(const char *files)
{
	static const struct machine_request request = {.parts = MACHINE_GUESTS | MACHINE_HOST};
	struct source *map = source_new_map("host");
	struct strbuf text AUTO_STRBUF = {0};
	struct machine *m;

	strbuf_printf(&text, "onehop recording 1\n%s", files);
	assert_int_equal(recording_parse(text.text, text.len, "host", map), 0);
	m = machine_read(map, &request);
	source_free(map);
	return m;
}

/* "options vfio-pci ids=..." in a file of modprobe's. */
#define IDS(ids, says)                                                                             \
	{                                                                                          \
		"[etc/modprobe.d]\n* v.conf\nv.conf = options vfio-pci ids=" ids "\n", says        \
	}

/* By vendor and device; a module that is loaded without ids= is given devices by something else. */
static void off_is_refused_by_the_next_boot(void **state)
{
	static const struct {
		const char *files, *says; /* NULL: not refused */
	} rows[] = {
		{"", NULL},
		{"[etc/default]\ngrub = GRUB_CMDLINE_LINUX=\"vfio-pci.ids=10de:2684\"\n",
		 "(/etc/default/grub)"},
		{"[etc/default]\ngrub = GRUB_CMDLINE_LINUX='vfio-pci.ids=10de:ffff'\n", NULL},
		{"[etc/default]\ngrub = #GRUB_CMDLINE_LINUX=\"vfio-pci.ids=10de:2684\"\n", NULL},
		{"[etc/default/grub.d]\n* vfio.cfg\n"
		 "vfio.cfg = GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX "
		 "vfio_pci.ids=8086:1,10de:2684\"\n",
		 "(/etc/default/grub.d/vfio.cfg)"},
		{"[etc/kernel]\ncmdline = ro vfio-pci.ids=10de:2684\n", "(/etc/kernel/cmdline)"},
		{"[boot/efi/loader/entries]\n* a.conf\n"
		 "a.conf = options ro vfio-pci.ids=\"10de:2684\"\n",
		 "(/boot/efi/loader/entries/a.conf)"},
		{"[boot/loader/entries]\n* A.CONF\nA.CONF = options ro vfio-pci.ids=10de:2684\n",
		 "(/boot/loader/entries/A.CONF)"},
		{"[etc/cmdline.d]\n* A.CONF\nA.CONF = vfio-pci.ids=10de:2684\n", NULL},
		{"[etc/kernelstub]\nconfiguration = {\"user\": {\"kernel_options\": [\"ro\", "
		 "\"vfio-pci.ids=10de:2684\"]}}\n",
		 "(/etc/kernelstub/configuration)"},
		{"[etc/initramfs-tools]\nmodules = vfio-pci ids=10de:2684,10de:22ba\n",
		 "0000:23:00.0 is assigned to virtual machines (/etc/initramfs-tools/modules)"},
		{"[etc/initramfs-tools]\nmodules = vfio_pci ids=10de:22ba\n", NULL},
		{"[etc/initramfs-tools]\nmodules = vfio_pci\n",
		 "vfio-pci is loaded at each boot (/etc/initramfs-tools/modules)"},
		{"[etc/modules-load.d]\n* v.conf\nv.conf = vfio-pci\n",
		 "(/etc/modules-load.d/v.conf)"},
		{"[etc/modules-load.d]\n* v.conf\nv.conf = vfio\n", NULL},
		{"[etc/dracut.conf.d]\n* v.conf\nv.conf = force_drivers+=\" vfio_pci \"\n",
		 "(/etc/dracut.conf.d/v.conf)"},
		{"[etc/dracut.conf.d]\n* v.conf\nv.conf = add_drivers+=\" vfio_pci \"\n", NULL},
		{"[etc]\nmkinitcpio.conf = MODULES=(vfio_pci vfio)\n", "(/etc/mkinitcpio.conf)"},
		{"[etc]\nmkinitcpio.conf = MODULES=()\n", NULL},
		{"[etc/driverctl.d]\n* pci-0000:23:00.0\npci-0000:23:00.0 = vfio-pci\n",
		 "(/etc/driverctl.d/pci-0000:23:00.0)"},
		{"[etc/driverctl.d]\n* pci-0000:23:00.0\npci-0000:23:00.0 = nouveau\n", NULL},
		{"[etc/modprobe.d]\n* v.conf\nv.conf = options vfio-pci ids=10de:2684\n",
		 "(/etc/modprobe.d/v.conf)"},
		IDS("10de:ffffffff:ffffffff:ffffffff:030000:ff0000", "(/etc/modprobe.d/v.conf)"),
		IDS("ffffffff:ffffffff:ffffffff:ffffffff:030000:ff0000",
		    "0000:23:00.0 is assigned to virtual machines (/etc/modprobe.d/v.conf)"),
		IDS("8086:1,0x10de:0x2684", "(/etc/modprobe.d/v.conf)"),
		IDS("10de:2684:ffffffff:ffffffff", "(/etc/modprobe.d/v.conf)"),
		IDS("10de:ffffffff:ffffffff:ffffffff:040000:ff0000", NULL),
		IDS("10de:2684:1234:5678", NULL),
		IDS("10de", NULL),
		{"[etc]\nmkinitcpio.conf = # don't\\x0aMODULES=(\\x0a  # vfio\\x0a "
		 "vfio_pci\\x0a)\\x0a",
		 "(/etc/mkinitcpio.conf)"},
		{"[etc]\nmkinitcpio.conf = MODULES=(\\x0a # "
		 "vfio_pci\\x0a)\\x0aFILES=(vfio_pci)\\x0a",
		 NULL},
		{"[etc/dracut.conf.d]\n* v.conf\n"
		 "v.conf = force_drivers+=\" vfio \\\\\\x0a vfio-pci \"\\x0a\n",
		 "(/etc/dracut.conf.d/v.conf)"},
		{"[usr/lib/dracut/dracut.conf.d]\n* v.conf\nv.conf = force_drivers+=\" vfio-pci "
		 "\"\n",
		 "(/usr/lib/dracut/dracut.conf.d/v.conf)"},
		{"[etc]\ndracut.conf = kernel_cmdline+=\" rd.driver.pre=vfio-pci \"\n",
		 "(/etc/dracut.conf)"},
		{"[usr/lib/modules-load.d]\n* v.conf\nv.conf = vfio-pci\n",
		 "(/usr/lib/modules-load.d/v.conf)"},
		{"[usr/local/lib/modules-load.d]\n* v.conf\nv.conf = vfio-pci\n",
		 "(/usr/local/lib/modules-load.d/v.conf)"},
		{"[usr/lib/kernel]\ncmdline = ro vfio-pci.ids=10de:2684\n",
		 "(/usr/lib/kernel/cmdline)"},
		{"[etc/cmdline.d]\n* v.conf\nv.conf = vfio-pci.ids=10de:2684\n",
		 "(/etc/cmdline.d/v.conf)"},
		{"[etc/kernel]\ncmdline = ro modules_load=vfio,vfio-pci\n",
		 "vfio-pci is loaded at each boot (/etc/kernel/cmdline)"},
		{"[etc/kernel]\ncmdline = ro modules_load=vfio\n", NULL},
		{"[etc/default]\ngrub = GRUB_CMDLINE_LINUX=rd.driver.pre=vfio-pci\n",
		 "(/etc/default/grub)"},
		{"[etc/modprobe.d]\n* v.conf\nv.conf = options vfio-pci disable_vga=1\n", NULL},
		{"[etc/modprobe.d]\n* v.conf\nv.conf = install vfio-pci /sbin/vfio-choose.sh\n",
		 "(/etc/modprobe.d/v.conf)"},
		{"[etc/modprobe.d]\n* v.conf\nv.conf = install vfio-pci /bin/false\n", NULL},
	};
	const char *rule = "iommu-translating";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct machine *files = host_with(rows[i].files);
		struct propose_options o = {.rules = &rule,
					    .rule_n = 1,
					    .iommu_off = true,
					    .files = files};
		struct machine *m = recorded("guest-switch2-intel");
		const struct change *c;
		struct judged j;

		m->cpu.vendor = fact_int(CPU_INTEL, here);
		pci_find(m, m->gpus[0].pci->address)->vendor = fact_int(0x10de, here);
		pci_find(m, m->gpus[0].pci->address)->device = fact_int(0x2684, here);
		j = judge(m, &o);
		assert_int_equal(j.set.n, 1);
		c = &j.set.items[0];
		if (c->kind != (rows[i].says ? CHANGE_BY_HAND : CHANGE_KERNEL_PARAMETER))
			fail_msg("row %zu: \"%s\"", i, c->new);
		if (rows[i].says && !strstr(c->new, rows[i].says))
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, c->new, rows[i].says);
		done(&j);
		machine_free(files);
	}
}

/* Pass-through makes DMA direct, which HMM must not meet on a card that reaches 47 bits alone. */
static void pass_through_switches_hmm_off(void **state)
{
	static const struct {
		int64_t disabled, placed, end; /* end: -1 not known */
		bool proposed, named;
	} cases[] = {
		{0, 1, INT64_C(0xfffffffffffff), true, false},
		{0, 1, INT64_C(0x3fffffffffff), false, false},
		{1, 1, INT64_C(0xfffffffffffff), false, false},
		{0, 1, -1, false, true},
		{0, 0, -1, false, true}, /* nothing used a GPU yet */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m = recorded("guest-switch2-intel");
		const struct texts *cost;
		struct judged j;
		bool named;

		m->driver.hmm_disabled = fact_int(cases[i].disabled, here);
		m->driver.hmm_placed = fact_int(cases[i].placed, here);
		m->driver.hmm_end = cases[i].end < 0 ? fact_int_unknown("needs root")
						     : fact_int(cases[i].end, here);
		j = judge_rule(m, "iommu-translating");
		assert_int_equal(j.set.n, 1 + cases[i].proposed);
		if (cases[i].proposed) {
			assert_int_equal(j.set.items[0].kind, CHANGE_MODULE_OPTION);
			assert_string_equal(j.set.items[0].target, "nvidia-uvm");
			assert_string_equal(j.set.items[0].name, "uvm_disable_hmm");
		}
		cost = &j.set.items[cases[i].proposed].cost;
		named = cost->n > 1 && strstr(cost->items[1], "hmm-dma32");
		assert_true(named == cases[i].named);
		done(&j);
	}
	assert_proposes(recorded("made-up-hmm"), "hmm-dma32",
			"module-option nvidia-uvm uvm_disable_hmm=1 kept [hmm-dma32]\n");
}

static void a_parameter_that_is_there_is_not_set_again(void **state)
{
	struct machine *m = recorded("guest-switch2-intel");

	(void)state;
	m->kernel.cmdline = fact_str("ro iommu=pt iommu.passthrough=0", here);
	assert_proposes(m, "iommu-translating",
			"by-hand iommu=pt is on the kernel command line [iommu-translating]\n");
}

static void parameters_are_named(void **state)
{
	struct judged j = judge_rule(recorded("guest-iommu-parameters"), "iommu-parameters");

	(void)state;
	assert_true(j.set.n > 0);
	for (size_t i = 0; i < j.set.n; i++) {
		assert_int_equal(j.set.items[i].kind, CHANGE_BY_HAND);
		assert_non_null(strstr(j.set.items[i].target, "iommu"));
	}
	done(&j);
}

/* ---- BAR1 ---- */

/* A guest that sees no such sizes has to ask its host, and is told nothing else. */
static void bar1_of_a_guest_is_the_hosts(void **state)
{
	struct machine *m = recorded("guest-workstation4");

	(void)state;
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].pci->rebar_sizes = fact_int_unknown("not read");
	assert_proposes(m, "bar1-small", "by-hand the host [bar1-small]\n");
	m = recorded("guest-workstation4");
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].pci->rebar_sizes = fact_int(1 << 8, here); /* the size that it has */
	assert_proposes(m, "bar1-small", "by-hand the host [bar1-small]\n");
}

static void bar1_grows_where_the_card_offers_it(void **state)
{
	struct machine *m = recorded("guest-workstation4");

	(void)state;
	assert_proposes(recorded("guest-workstation4"), "bar1-small",
			"bar-size 0000:01:00.0 1 256>32768 now [bar1-small]\n"
			"bar-size 0000:02:00.0 1 256>32768 now [bar1-small]\n");
	m->driver.loaded = fact_int(1, here);
	m->driver.resizable_bar = fact_int(0, here);
	assert_proposes(m, "bar1-small",
			"bar-size 0000:01:00.0 1 256>32768 now [bar1-small]\n"
			"bar-size 0000:02:00.0 1 256>32768 now [bar1-small]\n"
			"module-option nvidia NVreg_EnableResizableBar=1 kept [bar1-small]\n");
	m = recorded("guest-workstation4");
	m->gpus[0].vram_bytes = m->gpus[1].vram_bytes = fact_int(INT64_C(12) << 30, here);
	m->gpus[1].pci->rebar_sizes = fact_int(1 << 8 | 1 << 15, here); /* 256 MiB, 32 GiB */
	assert_proposes(m, "bar1-small",
			"bar-size 0000:01:00.0 1 256>16384 now [bar1-small]\n"
			"bar-size 0000:02:00.0 1 256>32768 now [bar1-small]\n");
}

/* Nobody read what the cards offer. */
static void bar1_by_hand_where_nothing_is_known(void **state)
{
	(void)state;
	assert_proposes(recorded("rtx4090x8-before"), "bar1-small", "by-hand BAR1 [bar1-small]\n");
	assert_told(recorded("rtx4090x8-before"), "bar1-small", 0, "NVreg_EnableResizableBar=1");
	assert_told(recorded("made-up-bar1-firmware"), "bar1-firmware", 0, "\"Above 4G Decoding\"");
}

static void windows_are_made_by_the_kernel(void **state)
{
	struct machine *m = recorded("guest-workstation4");

	(void)state;
	/* Some boards do not start with it, so it has to be asked for. */
	assert_unasked(recorded("guest-workstation4"), "bar1-window",
		       "by-hand the host [bar1-window]\n"
		       "kernel-parameter pci=realloc kept apart [bar1-window]\n");
	assert_proposes(recorded("guest-workstation4"), "bar1-window",
			"by-hand the host [bar1-window]\n"
			"kernel-parameter pci=realloc kept [bar1-window]\n");
	m->kernel.hypervisor = fact_str_absent(here);
	assert_proposes(m, "bar1-window",
			"kernel-parameter pci=realloc kept [bar1-window]\n"
			"by-hand firmware setup [bar1-window]\n");
	assert_proposes(recorded("made-up-bar1-realloc"), "bar1-window",
			"by-hand firmware setup [bar1-window]\n");
}

/* What is set already is not asked for again. */
static void the_next_cause_is_named(void **state)
{
	(void)state;
	assert_told(recorded("made-up-bar1-realloc"), "bar1-window", 0, "\"MMIO High Size\"");
	assert_told(recorded("made-up-bar1-guest"), "bar1-small", 0, "on the host");
}

/* ---- driver ---- */

static void other_drivers_are_kept_away(void **state)
{
	struct machine *m = recorded("made-up-nova");

	(void)state;
	assert_proposes(recorded("made-up-nova"), "driver-bound",
			"module-blacklist nova_core kept [driver-bound]\n");
	m->gpus[0].pci->driver = fact_str("nouveau", here);
	m->gpus[1].pci->driver = fact_str_absent(here);
	assert_proposes(m, "driver-bound",
			"module-blacklist nouveau kept [driver-bound]\n"
			"by-hand GPU1 0000:24:00.0 [driver-bound]\n");
}

static void registry_keys_are_found(void **state)
{
	static struct modprobe_line lines[] = {
		{MODPROBE_OPTIONS, "nvidia", "NVreg_EnableResizableBar=1", "/etc/modprobe.d/a.conf",
		 1},
		{MODPROBE_OPTIONS, "nvidia", "NVreg_RegistryDwords=\"ForceP2P=0x11\"",
		 "/etc/modprobe.d/b.conf", 7},
	};
	struct machine *m = recorded("made-up-forced");

	(void)state;
	assert_proposes(recorded("made-up-forced"), "p2p-forced",
			"by-hand NVreg_RegistryDwords of module nvidia [p2p-forced]\n");
	m->modprobe = lines;
	m->modprobe_n = 2;
	assert_proposes(m, "p2p-forced", "by-hand /etc/modprobe.d/b.conf:7 [p2p-forced]\n");
	m = recorded("made-up-dr");
	m->kernel.cmdline = fact_str("ro nvidia.NVreg_RegistryDwords=ForceP2P=0x1", here);
	assert_proposes(
		m, "p2p-regkey",
		"by-hand the kernel command line, nvidia.NVreg_RegistryDwords= [p2p-regkey]\n");
}

static void persistence_is_offered_unasked(void **state)
{
	(void)state;
	assert_unasked(recorded("made-up-persistence"), "gpu-persistence",
		       "persistence now kept [gpu-persistence]\n");
	assert_unasked(recorded("h200x4"), "gpu-persistence", "");
	assert_unasked(recorded("made-up-switch"), "gpu-persistence", "");
}

/* ---- RDMA ---- */

/* Neither kernel nor driver hand out dma-buf. */
static struct machine *without_dma_buf(const char *name)
{
	struct machine *m = recorded(name);

	m->driver.flavor = fact_int(DRIVER_PROPRIETARY, here);
	for (size_t i = 0; i < m->gpu_n; i++)
		m->gpus[i].dma_buf = fact_int(0, here);
	return m;
}

static void peermem_is_loaded_where_it_is_needed(void **state)
{
	static const char load[] = "module-load nvidia-peermem now kept [peermem-not-loaded]\n";
	struct machine *m = without_dma_buf("guest-peermem-not-loaded");
	static struct module missing;

	(void)state;
	assert_unasked(recorded("guest-peermem-not-loaded"), "peermem-not-loaded", "");
	assert_proposes(recorded("guest-peermem-not-loaded"), "peermem-not-loaded", load);
	assert_unasked(m, "peermem-not-loaded", load);
	assert_unasked(without_dma_buf("guest-peermem-good"), "peermem-not-loaded", "");

	m = without_dma_buf("guest-peermem-not-loaded");
	missing = (struct module){.name = "nvidia_peermem", .file = fact_str_absent(here)};
	m->modules = &missing;
	m->module_n = 1;
	assert_unasked(m, "peermem-not-loaded", "by-hand nvidia-peermem [peermem-not-loaded]\n");

	m = without_dma_buf("guest-peermem-not-loaded");
	missing = (struct module){.name = "nvidia_current_peermem", .file = fact_str("x", here)};
	m->modules = &missing;
	m->module_n = 1;
	assert_unasked(m, "peermem-not-loaded",
		       "module-load nvidia-current-peermem now kept [peermem-not-loaded]\n");
	assert_proposes(recorded("made-up-gdr-driver-old"), "peermem-not-loaded", "");
	/* modprobe would answer EINVAL: the RDMA core has no interface for it */
	assert_proposes(recorded("made-up-irdma"), "peermem-not-loaded",
			"by-hand nvidia-peermem [peermem-not-loaded]\n");
}

static void the_old_module_makes_way(void **state)
{
	static const char swap[] = "module-unload nv_peer_mem now kept [peermem-conflict]\n"
				   "module-load nvidia-peermem now kept [peermem-conflict]\n"
				   "by-hand nv_peer_mem [peermem-conflict]\n";

	(void)state;
	assert_unasked(without_dma_buf("guest-peermem-conflict"), "peermem-conflict", swap);
	assert_unasked(recorded("guest-peermem-conflict"), "peermem-conflict", "");
	assert_proposes(recorded("guest-peermem-conflict"), "peermem-conflict", swap);
}

static void modules_are_built_again_by_hand(void **state)
{
	static const struct {
		const char *machine, *rule, *origin, *distribution, *says;
	} cases[] = {
		{"guest-peermem-no-api", "peermem-no-api", "dkms", "ubuntu",
		 "dkms build --force nvidia/1.2.3 && dkms install --force nvidia/1.2.3"},
		{"guest-peermem-no-api", "peermem-no-api", "dkms", "debian",
		 "dkms build --force nvidia-current/1.2.3"},
		{"guest-peermem-symbols", "peermem-symbols", "runfile", "debian",
		 "NVIDIA-Linux-$(uname -m)-1.2.3.run -K"},
		{"made-up-peermem-before-ofed", "peermem-before-ofed", "distribution", "fedora",
		 "dnf reinstall"},
		{"guest-peermem-inbox-core", "peermem-inbox-core", "dkms", "debian",
		 "reinstall DOCA-OFED for this kernel"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m = without_dma_buf(cases[i].machine);

		m->driver.installed_version = fact_str("1.2.3", here);
		m->driver.origin = fact_str(cases[i].origin, here);
		m->kernel.distribution_id = fact_str(cases[i].distribution, here);
		assert_told(m, cases[i].rule, 0, cases[i].says);
	}
}

static void the_initramfs_is_the_distributions(void **state)
{
	static const struct {
		const char *id, *says;
	} cases[] = {{"ubuntu", "`update-initramfs -u -k 6.1.0-56-amd64`,"},
		     {"rhel", "`dracut -f --kver 6.1.0-56-amd64`,"},
		     {"nixos", "rebuild the initramfs,"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m = without_dma_buf("guest-peermem-inbox-core");

		m->peermem.ofed = fact_str("24.10", here);
		m->peermem.ofed_modules = fact_int(1, here);
		m->kernel.distribution_id = fact_str(cases[i].id, here);
		assert_told(m, "peermem-inbox-core", 0, cases[i].says);
	}
}

static void ofed_is_built_for_the_kernel_that_runs(void **state)
{
	(void)state;
	assert_told(without_dma_buf("made-up-peermem-ofed-kernel"), "peermem-ofed-kernel", 0,
		    "dkms autoinstall -k 6.8.0-60-generic");
}

static void a_modprobe_line_is_named(void **state)
{
	struct judged j = judge_rule(without_dma_buf("guest-peermem-modprobe"), "peermem-modprobe");

	(void)state;
	assert_int_equal(j.set.n, 1);
	assert_int_equal(j.set.items[0].kind, CHANGE_BY_HAND);
	assert_true(text_starts_with(j.set.items[0].target, "/etc/modprobe.d/"));
	done(&j);
}

/* Root, who makes the change, is exempt from the limit and still told of it. */
static void memory_may_be_locked(void **state)
{
	struct machine *m = recorded("guest-rdma");

	(void)state;
	assert_unasked(recorded("guest-rdma"), "memlock", "memlock kept [memlock]\n");
	m->root = fact_int(1, here);
	assert_unasked(m, "memlock", "memlock kept apart [memlock]\n");
	m = recorded("guest-rdma");
	m->kernel.container = fact_str("docker", here);
	assert_unasked(m, "memlock", "by-hand memlock [memlock]\n");
	assert_unasked(recorded("made-up-rdma"), "memlock", "");
}

/* ---- NCCL ---- */

static struct machine *with_level(enum setting_origin origin, const char *from)
{
	struct machine *m = recorded("made-up-nccl-level");
	struct setting *s = ARENA_PUSH(m->arena, m->nccl.settings, m->nccl.setting_n);

	*s = (struct setting){"NCCL_P2P_LEVEL", "PIX", origin, from, true};
	return m;
}

static void the_level_is_that_of_the_pairs(void **state)
{
	struct machine *m = recorded("rtx4090x8-after");

	(void)state;
	m->nccl.version = fact_int(22809, here);
	assert_unasked(m, "nccl-level", "nccl-setting NCCL_P2P_LEVEL=SYS now kept [nccl-level]\n");
	m = recorded("rtx4090x8-after");
	m->nccl.version = fact_int(22809, here);
	for (size_t i = 0; i < m->gpu_n * m->gpu_n; i++)
		for (int cap = 0; cap < P2P_CAP_N; cap++)
			m->pairs[i].p2p[cap] = fact_int(P2P_CHIPSET_NOT_SUPPORTED, here);
	assert_unasked(m, "nccl-level", "");
	assert_unasked(recorded("rtx4090x8-after"), "nccl-level", ""); /* of an unknown version */
}

static void a_persons_setting_is_left_to_the_person(void **state)
{
	(void)state;
	assert_proposes(with_level(SETTING_ENVIRONMENT, "environment"), "nccl-level",
			"by-hand NCCL_P2P_LEVEL (environment) [nccl-level]\n");
	assert_proposes(with_level(SETTING_SYSTEM_CONF, "/etc/nccl.conf:3"), "nccl-level",
			"by-hand NCCL_P2P_LEVEL (/etc/nccl.conf:3) [nccl-level]\n");
	assert_proposes(recorded("guest-nccl-variables"), "nccl-p2p-disabled",
			"by-hand NCCL_P2P_DISABLE (environment) [nccl-p2p-disabled]\n");
}

/* ---- what onehop fix changed before ---- */

static void what_waits_for_a_reboot_is_told(void **state)
{
	struct judged j;

	(void)state;
	assert_proposes(recorded("made-up-fix-due"), "fix-in-effect",
			"by-hand fix 1 [fix-in-effect]\n");
	assert_unasked(recorded("made-up-fix-due"), "acs-redirect",
		       "acs 0000:22:00.0 001d>0011 now kept [acs-redirect]\n"
		       "acs 0000:22:01.0 001d>0011 now kept [acs-redirect]\n");
	assert_proposes(recorded("made-up-fix-in-effect"), "fix-in-effect", "");
	/* Its sentence names the fix. */
	j = judge_rule(recorded("made-up-fix-due"), "fix-in-effect");
	assert_true(j.set.items[0].stated);
	assert_string_equal(j.set.items[0].reason.items[0],
			    "iommu=pt (fix 1) is not in effect yet: a reboot is pending");
	done(&j);
}

/* ---- all that is proposed for a machine, in the order of its findings ---- */

static void the_whole_of_one_machine(void **state)
{
	struct judged j = judge_rule(recorded("guest-switch2-intel"), NULL);

	(void)state;
	assert_set(&j.set, "by-hand driver [driver-loaded]\n"
			   "kernel-parameter iommu=pt kept [iommu-translating]\n"
			   "acs 0000:22:00.0 001d>0011 now kept [acs-redirect]\n"
			   "acs 0000:22:01.0 001d>0011 now kept [acs-redirect]\n"
			   "acs 0000:20:00.0 001d>0011 now kept apart [acs-root-port]\n"
			   "acs 0000:60:00.0 001d>0011 now kept apart [acs-root-port]\n");
	done(&j);
}

/* ---- what holds on every machine ---- */

static bool is_bad(const struct diagnosis *d, const char *rule)
{
	for (size_t i = 0; i < d->outcome_n; i++)
		if (!strcmp(d->outcomes[i].rule->id, rule))
			return d->outcomes[i].verdict == VERDICT_BAD;
	return false;
}

static void check_acs(const struct machine *m, const struct change *c)
{
	struct pci_address a;
	const struct pci_function *f;

	assert_int_equal(pci_address_parse(c->target, &a), 0);
	f = pci_find(m, a);
	assert_non_null(f);
	assert_true(pci_is_bridge(f));
	assert_true(f->acs_ctl.value & REDIRECTS);
	assert_int_equal(c->value.old, f->acs_ctl.value);
	assert_int_equal(c->value.new, f->acs_ctl.value & ~REDIRECTS);
	assert_int_equal(c->cost.n, 1);
}

static void check_sentences(const struct texts *l)
{
	for (size_t i = 0; i < l->n; i++) {
		assert_true(*l->items[i] && !text_ends_with(l->items[i], "."));
		assert_null(strchr(l->items[i], '\n'));
	}
}

/* Which texts each kind has to have. */
static void check_texts(const struct change *c)
{
	static const struct {
		bool target, name, new;
	} has[CHANGE_KIND_N] = {
		[CHANGE_ACS] = {true, false, false},
		[CHANGE_KERNEL_PARAMETER] = {true, false, false},
		[CHANGE_MODULE_OPTION] = {true, true, true},
		[CHANGE_REGISTRY_DWORD] = {true, true, true},
		[CHANGE_MODULE_BLACKLIST] = {true, false, false},
		[CHANGE_MODULE_LOAD] = {true, false, false},
		[CHANGE_MODULE_UNLOAD] = {true, false, false},
		[CHANGE_BAR_SIZE] = {true, false, false},
		[CHANGE_MEMLOCK] = {false, false, false},
		[CHANGE_NCCL_SETTING] = {false, true, true},
		[CHANGE_PERSISTENCE] = {false, false, false},
		[CHANGE_BY_HAND] = {true, false, true},
	};

	assert_int_equal(has[c->kind].target, c->target && *c->target);
	assert_int_equal(has[c->kind].name, c->name && *c->name);
	assert_int_equal(has[c->kind].new, c->new && * c->new);
	assert_true(c->lifetime >= CHANGE_NOW && c->lifetime <= CHANGE_LASTING);
	assert_true(c->reason.n);
	check_sentences(&c->reason);
	check_sentences(&c->cost);
}

static void check_rules(const struct judged *j, const struct change *c)
{
	for (size_t i = 0; i < c->rules.n; i++) {
		const char *id = c->rules.items[i];

		if (!rule_find(id))
			fail_msg("there is no rule %s", id);
		if (!is_bad(j->d, id))
			fail_msg("%s is not bad on %s", id, j->m->source_name);
	}
}

/* Whoever finds a fault says what is to be done about it. */
static void check_findings(const struct judged *j)
{
	for (size_t i = 0; i < j->d->finding_n; i++) {
		const struct finding *f = &j->d->findings[i];
		bool there = f->severity == SEVERITY_INFO || f->nothing_to_do;

		for (size_t k = 0; k < j->set.n && !there; k++)
			there = texts_have(&j->set.items[k].rules, f->rule->id);
		/* Registers that were set again are proposed by the rules of ACS. */
		if (!there && strcmp(f->rule->id, "fix-in-effect") != 0)
			fail_msg("%s proposes nothing on %s", f->rule->id, j->m->source_name);
	}
}

static void check_machine(const char *name)
{
	struct judged j = judge_rule(recorded(name), NULL);
	size_t all = j.set.n;

	for (size_t i = 0; i < j.set.n; i++) {
		check_texts(&j.set.items[i]);
		check_rules(&j, &j.set.items[i]);
		if (j.set.items[i].kind == CHANGE_ACS)
			check_acs(j.m, &j.set.items[i]);
	}
	check_findings(&j);
	diagnosis_propose(j.d, &(struct propose_options){0}, &j.set);
	assert_int_equal(j.set.n, all); /* the same again, and nothing else */
	FOR_EACH_RULE (r) {
		struct change_set set = {.arena = j.set.arena};

		diagnosis_propose(j.d, &(struct propose_options){.rules = &r->id, .rule_n = 1},
				  &set);
		if (!is_bad(j.d, r->id))
			assert_int_equal(set.n, 0);
		for (size_t i = 0; i < set.n; i++) {
			check_texts(&set.items[i]);
			assert_true(texts_same(&set.items[i].rules, &TEXTS(r->id)));
			assert_false(set.items[i].opt_in);
		}
	}
	done(&j);
}

static void holds_on_every_machine(void **state)
{
	struct source *s = NULL;
	char **names = NULL;
	size_t n, machines = 0;

	(void)state;
	assert_int_equal(source_open_root("tests", NULL, NULL, &s), 0);
	assert_int_equal(source_list(s, &names, &n, "machines"), 0);
	for (size_t i = 0; i < n; i++) {
		char line[8];

		if (source_read_line(s, line, sizeof(line), "machines/%s/note.txt", names[i]) < 0)
			continue;
		check_machine(names[i]);
		machines++;
	}
	assert_true(machines > 80);
	source_free_names(names, n);
	source_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(just_the_redirecting_ports),
		cmocka_unit_test(answers_alone_are_another_rule),
		cmocka_unit_test(root_ports_are_offered_apart),
		cmocka_unit_test(isolation_is_the_price),
		cmocka_unit_test(pass_through_unless_off_is_wanted),
		cmocka_unit_test(off_is_refused_for_guests),
		cmocka_unit_test(off_is_refused_by_the_next_boot),
		cmocka_unit_test(pass_through_switches_hmm_off),
		cmocka_unit_test(a_parameter_that_is_there_is_not_set_again),
		cmocka_unit_test(parameters_are_named),
		cmocka_unit_test(bar1_of_a_guest_is_the_hosts),
		cmocka_unit_test(bar1_grows_where_the_card_offers_it),
		cmocka_unit_test(bar1_by_hand_where_nothing_is_known),
		cmocka_unit_test(windows_are_made_by_the_kernel),
		cmocka_unit_test(the_next_cause_is_named),
		cmocka_unit_test(other_drivers_are_kept_away),
		cmocka_unit_test(registry_keys_are_found),
		cmocka_unit_test(persistence_is_offered_unasked),
		cmocka_unit_test(peermem_is_loaded_where_it_is_needed),
		cmocka_unit_test(the_old_module_makes_way),
		cmocka_unit_test(modules_are_built_again_by_hand),
		cmocka_unit_test(the_initramfs_is_the_distributions),
		cmocka_unit_test(ofed_is_built_for_the_kernel_that_runs),
		cmocka_unit_test(a_modprobe_line_is_named),
		cmocka_unit_test(memory_may_be_locked),
		cmocka_unit_test(the_level_is_that_of_the_pairs),
		cmocka_unit_test(a_persons_setting_is_left_to_the_person),
		cmocka_unit_test(what_waits_for_a_reboot_is_told),
		cmocka_unit_test(the_whole_of_one_machine),
		cmocka_unit_test(holds_on_every_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
