/* SPDX-License-Identifier: Apache-2.0 */
/* machine/applied.c, and the rule that compares the list with the machine. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "judged.h"
#include "open_recording.h"
#include "recording/recording.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MACHINE  "tests/machines/guest-switch2-intel"
#define IN_FORCE "var/lib/onehop/in-force"
#define BOOT_ID  "proc/sys/kernel/random/boot_id"
#define BOOT     "0f6a1ad1-2222-3333-4444-555555555555"
#define OTHER    "9b3c7720-7777-8888-9999-aaaaaaaaaaaa"

static const char here[] = "built by a test";

/* A copy of a recorded machine that files can be put into. */
static int set_up(void **state)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};
	struct source *map = source_new_map(MACHINE), *recording, *tee;

	assert_int_equal(open_recording(MACHINE, &recording), 0);
	tee = source_new_tee(recording, map);
	machine_free(machine_read(tee, &all));
	source_free(tee);
	source_free(recording);
	source_put_file(map, BOOT_ID, BOOT "\n", strlen(BOOT) + 1);
	*state = map;
	return 0;
}

static int tear_down(void **state)
{
	source_free(*state);
	return 0;
}

static struct machine *read_map(struct source *map)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};

	return machine_read(map, &all);
}

static struct machine *read_list(struct source *map, const char *list)
{
	source_put_file(map, IN_FORCE, list, strlen(list));
	return read_map(map);
}

/* ---- the list ---- */

static void trials_are_read(void **state)
{
	struct machine *m = read_list(*state, "fix 3 " BOOT " trial iommu=pt\n");

	assert_int_equal(m->applied_n, 1);
	assert_int_equal(m->trouble_n, 0);
	assert_int_equal(m->applied[0].kind, APPLIED_TRIAL);
	assert_string_equal(m->applied[0].target, "iommu=pt");
	machine_free(m);
}

static void every_kind_is_read(void **state)
{
	struct machine *m = read_list(*state, "fix 3 " BOOT " kernel-parameter iommu=pt\n"
					      "\n"
					      "fix 4 " OTHER
					      " module-option nvidia NVreg_EnableResizableBar=1\n"
					      "fix 12 " BOOT " acs 0000:22:00.0 0011\n");
	const struct applied *a = m->applied;

	assert_true(fact_is(m->applied_listed, 1));
	assert_int_equal(m->applied_n, 3);
	assert_int_equal(m->trouble_n, 0);
	assert_int_equal(a[0].fix, 3);
	assert_int_equal(a[0].kind, APPLIED_KERNEL_PARAMETER);
	assert_string_equal(a[0].target, "iommu=pt");
	assert_string_equal(a[0].value, "");
	assert_true(fact_is(a[0].same_boot, 1));
	assert_int_equal(a[1].kind, APPLIED_MODULE_OPTION);
	assert_string_equal(a[1].target, "nvidia");
	assert_string_equal(a[1].value, "NVreg_EnableResizableBar=1");
	assert_true(fact_is(a[1].same_boot, 0));
	assert_int_equal(a[2].fix, 12);
	assert_int_equal(a[2].kind, APPLIED_ACS);
	assert_string_equal(a[2].target, "0000:22:00.0");
	assert_string_equal(a[2].value, "0011");
	assert_string_equal(a[2].from, IN_FORCE ":4");
	machine_free(m);
}

/* A register that nothing writes again is judged only in the boot in which it was written. */
static void of_this_boot_only(void **state)
{
	struct machine *m = read_list(*state, "fix 3 " BOOT " acs-now 0000:22:00.0 0011\n"
					      "fix 4 " OTHER " acs-now 0000:22:01.0 0011\n"
					      "fix 5 " OTHER " acs 0000:22:02.0 0011\n");

	assert_int_equal(m->trouble_n, 0);
	assert_int_equal(m->applied_n, 2);
	assert_int_equal(m->applied[0].kind, APPLIED_ACS);
	assert_string_equal(m->applied[0].target, "0000:22:00.0");
	assert_int_equal(m->applied[1].fix, 5);
	machine_free(m);
}

static void no_list_is_no_change(void **state)
{
	struct machine *m;

	source_put_error(*state, IN_FORCE, SOURCE_FILE, ENOENT);
	m = read_map(*state);
	assert_true(fact_absent(m->applied_listed));
	assert_int_equal(m->applied_n, 0);
	machine_free(m);
	source_put_error(*state, IN_FORCE, SOURCE_FILE, EACCES);
	m = read_map(*state);
	assert_true(fact_unknown(m->applied_listed));
	machine_free(m);
	m = read_list(*state, "");
	assert_true(fact_is(m->applied_listed, 1));
	assert_int_equal(m->applied_n, 0);
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
}

/* A newer onehop's kinds are not ours to judge; what is no list at all is told. */
static void other_lines(void **state)
{
	static const char *const bad[] = {"fix",
					  "fix 3",
					  "fix x " BOOT " kernel-parameter iommu=pt",
					  "fix -1 " BOOT " kernel-parameter iommu=pt",
					  "fix 99999999999 " BOOT " kernel-parameter iommu=pt",
					  "fix 3 " BOOT,
					  "fix 3 " BOOT " kernel-parameter",
					  "fix 3 " BOOT " acs 0000:22:00.0",
					  "fix 3 " BOOT " module-option nvidia  ",
					  "nonsense"};
	struct machine *m = read_list(*state, "fix 3 " BOOT " hyperdrive engaged\n");

	assert_int_equal(m->applied_n, 0);
	assert_int_equal(m->trouble_n, 0);
	machine_free(m);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m = read_list(*state, bad[i]);
		assert_int_equal(m->applied_n, 0);
		assert_int_equal(m->trouble_n, 1);
		assert_string_equal(m->troubles[0].where, IN_FORCE ":1");
		machine_free(m);
	}
}

static void unknown_boot(void **state)
{
	struct machine *m;

	source_drop(*state, BOOT_ID);
	m = read_list(*state, "fix 3 " BOOT " kernel-parameter iommu=pt\n");
	assert_int_equal(m->applied_n, 1);
	assert_true(fact_unknown(m->applied[0].same_boot));
	machine_free(m);
}

/* The boot's identifier is replaced, by the same one in both places. */
static void recordings_hide_the_boot(void **state)
{
	struct source *map = *state;
	struct source_entry *entries AUTO_FREE = NULL;
	struct machine *m = read_list(map, "fix 3 " BOOT " kernel-parameter iommu=pt\n"
					   "fix 4 " OTHER " kernel-parameter pci=realloc\n");
	size_t n;

	machine_free(m);
	recording_redact(map);
	entries = source_entries(map, &n);
	for (size_t i = 0; i < n; i++) {
		assert_true(entries[i].error ||
			    !memmem(entries[i].data, entries[i].size, BOOT, strlen(BOOT)));
		assert_true(entries[i].error ||
			    !memmem(entries[i].data, entries[i].size, OTHER, strlen(OTHER)));
	}
	m = read_map(map);
	assert_int_equal(m->applied_n, 2);
	assert_true(fact_is(m->applied[0].same_boot, 1));
	assert_true(fact_is(m->applied[1].same_boot, 0));
	machine_free(m);
}

/* ---- the rule ---- */

static enum verdict verdict_of(const struct diagnosis *d)
{
	for (size_t i = 0; i < d->outcome_n; i++)
		if (!strcmp(d->outcomes[i].rule->id, "fix-in-effect"))
			return d->outcomes[i].verdict;
	fail_msg("no rule fix-in-effect");
	return VERDICT_NA;
}

static const struct finding *finding_of(const struct diagnosis *d)
{
	for (size_t i = 0; i < d->finding_n; i++)
		if (!strcmp(d->findings[i].rule->id, "fix-in-effect"))
			return &d->findings[i];
	return NULL;
}

/* `says` NULL: it is fine. */
static void assert_says(struct machine *m, const char *says, const char *remedy)
{
	struct judged j = judge_read(m);
	const struct finding *f = finding_of(j.d);

	assert_int_equal(verdict_of(j.d), says ? VERDICT_BAD : VERDICT_OK);
	if (says) {
		assert_non_null(f);
		if (!strstr(f->sentence, says))
			fail_msg("\"%s\" does not say \"%s\"", f->sentence, says);
		if (!strstr(f->remedy, remedy))
			fail_msg("\"%s\" does not say \"%s\"", f->remedy, remedy);
		assert_int_equal(f->severity, SEVERITY_WARNING);
		assert_true(f->evidence_n >= 2);
	}
	judged_done(&j);
}

static void assert_verdict(struct machine *m, enum verdict wanted)
{
	struct judged j = judge_read(m);

	assert_int_equal(verdict_of(j.d), wanted);
	judged_done(&j);
}

static void a_parameter_waits_for_a_reboot(void **state)
{
	assert_says(read_list(*state, "fix 3 " BOOT " kernel-parameter iommu=pt\n"),
		    "iommu=pt (fix 3) is not in effect yet: a reboot is pending", "reboot");
	assert_says(read_list(*state, "fix 3 " OTHER " kernel-parameter iommu=pt\n"),
		    "iommu=pt (fix 3) is not in effect although the machine was rebooted",
		    "reboot once more");
}

#define GRUBENV  "boot/grub/grubenv"
#define ONE_SHOT "sys/firmware/efi/efivars/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"

static void set_efi(struct source *map, const char *entry)
{
	char file[128] = {7};
	size_t n = 4;

	for (; *entry; entry++, n += 2)
		file[n] = *entry;
	source_put_file(map, ONE_SHOT, file, n + 2);
}

/* What GRUB's and systemd-boot's places for the next boot hold. */
static void set_one_shots(struct source *map, const char *grub, const char *loader)
{
	source_put_error(map, "boot/grub2/grubenv", SOURCE_FILE, ENOENT);
	source_put_file(map, GRUBENV, grub, strlen(grub));
	set_efi(map, loader);
}

/* Before its boot, in it, and after it; each is a finding, since something is to be decided. */
static void a_trial_is_followed(void **state)
{
	static const char with[] = "ro iommu=pt panic=30\n", without[] = "ro quiet\n";

	source_put_file(*state, "proc/cmdline", without, strlen(without));
	assert_says(read_list(*state, "fix 3 " BOOT " trial iommu=pt\n"),
		    "iommu=pt is on trial: the next boot uses it once", "reboot to try it");
	set_one_shots(*state, "saved_entry=0\n", "");
	assert_says(read_list(*state, "fix 3 " OTHER " trial iommu=pt\n"),
		    "the trial boot was not confirmed: the machine runs without iommu=pt",
		    "onehop undo 3");
	/* Before its boot somebody has chosen another entry. */
	set_one_shots(*state, "next_entry=other\n", "windows.conf");
	assert_says(read_list(*state, "fix 3 " BOOT " trial iommu=pt\n"),
		    "iommu=pt is on trial, but the boot loader is no longer set to use it at the "
		    "next boot",
		    "`onehop undo 3`, then `onehop fix --apply`");
	set_one_shots(*state, "next_entry=onehop-trial\n", "");
	assert_says(read_list(*state, "fix 3 " BOOT " trial iommu=pt\n"),
		    "iommu=pt is on trial: the next boot uses it once", "reboot to try it");
	source_put_error(*state, GRUBENV, SOURCE_FILE, EACCES);
	assert_says(read_list(*state, "fix 3 " BOOT " trial iommu=pt\n"),
		    "iommu=pt is on trial: the next boot uses it once", "reboot to try it");
	/* A boot that bypassed the boot loader. */
	set_one_shots(*state, "next_entry=onehop-trial\n", "");
	assert_says(read_list(*state, "fix 3 " OTHER " trial iommu=pt\n"),
		    "iommu=pt is on trial: the next boot uses it once", "reboot to try it");
	set_one_shots(*state, "next_entry=onehop-trial-2\n", "_-onehop-trial.conf");
	assert_says(read_list(*state, "fix 3 " OTHER " trial iommu=pt\n"),
		    "iommu=pt is on trial: the next boot uses it once", "reboot to try it");
	source_put_error(*state, GRUBENV, SOURCE_FILE, EACCES);
	set_efi(*state, "");
	assert_says(read_list(*state, "fix 3 " OTHER " trial iommu=pt\n"),
		    "this boot is without it: the trial was not confirmed, or is still to come",
		    "sudo onehop history");
	set_one_shots(*state, "next_entry=\n", "");
	source_put_file(*state, "proc/cmdline", with, strlen(with));
	assert_says(read_list(*state, "fix 3 " OTHER " trial iommu=pt\n"),
		    "iommu=pt is on trial in this boot", "onehop fix --confirm");
	source_drop(*state, "proc/cmdline");
	assert_verdict(read_list(*state, "fix 3 " OTHER " trial iommu=pt\n"), VERDICT_UNKNOWN);
}

/* A fix that was interrupted, in either direction, and one whose undo waits for a reboot. */
static void what_is_open_is_named(void **state)
{
	assert_says(read_list(*state, "fix 3 " OTHER " unfinished applying\n"),
		    "fix 3 was interrupted before it was complete, unless onehop is making it",
		    "`onehop undo 3`");
	assert_says(read_list(*state, "fix 4 - unfinished undoing\n"),
		    "fix 4 is undone only in part", "`onehop undo 4` tries again");
	assert_says(read_list(*state, "fix 5 " BOOT " undone reboot\n"),
		    "fix 5 is undone, but some of its changes stay in effect until the next reboot",
		    "reboot");
	assert_verdict(read_list(*state, "fix 5 " OTHER " undone reboot\n"), VERDICT_NA);
}

/* Boot loaders quote what holds a semicolon. */
static void a_parameter_is_found_in_quotes(void **state)
{
	static const char *const lines[] = {
		"ro pci=disable_acs_redir=0000:22:00.0;0000:22:01.0 quiet\n",
		"ro \"pci=disable_acs_redir=0000:22:00.0;0000:22:01.0\" quiet\n",
		"ro pci=\"disable_acs_redir=0000:22:00.0;0000:22:01.0\"\n",
	};
	static const char list[] =
		"fix 3 " OTHER
		" kernel-parameter pci=disable_acs_redir=0000:22:00.0;0000:22:01.0\n";
	static const char shorter[] = "ro pci=disable_acs_redir=0000:22:00.0\n";

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		source_put_file(*state, "proc/cmdline", lines[i], strlen(lines[i]));
		assert_says(read_list(*state, list), NULL, NULL);
	}
	source_put_file(*state, "proc/cmdline", shorter, strlen(shorter));
	assert_says(read_list(*state, list), "is not in effect", "boot entry");
}

static void an_unread_command_line_is_unknown(void **state)
{
	source_drop(*state, "proc/cmdline");
	assert_verdict(read_list(*state, "fix 3 " BOOT " kernel-parameter iommu=pt\n"),
		       VERDICT_UNKNOWN);
}

static void registers_are_set_again(void **state)
{
	struct machine *m;
	struct judged j;
	size_t told = 0;

	assert_says(read_list(*state, "fix 3 " BOOT " acs 0000:22:00.0 0011\n"),
		    "ACS of port 0000:22:00.0 redirects again, although fix 3 cleared it",
		    "onehop fix");
	/* Two fixes that cleared it: it is told once. */
	j = judge_read(read_list(*state, "fix 3 " BOOT " acs 0000:22:00.0 0011\n"
					 "fix 4 " BOOT " acs-now 0000:22:00.0 0011\n"));
	for (size_t i = 0; i < j.d->finding_n; i++)
		told += !strcmp(j.d->findings[i].rule->id, "fix-in-effect");
	assert_int_equal(told, 1);
	assert_non_null(strstr(finding_of(j.d)->sentence, "although fix 4 cleared it"));
	judged_done(&j);
	m = read_list(*state, "fix 3 " BOOT " acs 0000:22:00.0 0011\n");
	for (size_t i = 0; i < m->pci_n; i++)
		if (!strcmp(m->pci[i].name, "0000:22:00.0"))
			m->pci[i].acs_ctl.value = 0x51; /* other bits are nobody's concern */
	assert_says(m, NULL, NULL);
	assert_verdict(read_list(*state, "fix 3 " BOOT " acs 0000:77:00.0 0011\n"),
		       VERDICT_UNKNOWN);
	assert_verdict(read_list(*state, "fix 3 " BOOT " acs nonsense 0011\n"), VERDICT_UNKNOWN);
}

struct option_case {
	const char *line, *dwords;
	int resizable; /* -1: not known */
	enum verdict verdict;
};

static void options_of_uvm(void **state)
{
	static const struct {
		const char *option;
		int disabled;
		enum verdict verdict;
	} cases[] = {
		{"uvm_disable_hmm=1", 1, VERDICT_OK},
		{"uvm_disable_hmm=1", 0, VERDICT_BAD},
		{"uvm_disable_hmm=1", -1, VERDICT_UNKNOWN},
		{"uvm_other=1", 1, VERDICT_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_FREE char *line =
			xprintf("fix 3 " BOOT " module-option nvidia-uvm %s\n", cases[i].option);
		struct machine *m = read_list(*state, line);

		m->driver.hmm_disabled = cases[i].disabled < 0 ? fact_int_unknown(here)
							       : fact_int(cases[i].disabled, here);
		assert_verdict(m, cases[i].verdict);
	}
}

static void options_are_asked_of_the_driver(void **state)
{
#define OPTION "fix 3 " BOOT " module-option "
#define DWORD  "fix 3 " BOOT " registry-dword "
	static const struct option_case cases[] = {
		{OPTION "nvidia NVreg_EnableResizableBar=1", "", 1, VERDICT_OK},
		{OPTION "nvidia NVreg_EnableResizableBar=1", "", 0, VERDICT_BAD},
		{OPTION "nvidia NVreg_EnableResizableBar=1", "", -1, VERDICT_UNKNOWN},
		{OPTION "nvidia NVreg_RegistryDwords=ForceP2P=0x11", "ForceP2P=17", 0, VERDICT_OK},
		{OPTION "nvidia NVreg_RegistryDwords=\"A=1;B=2\"", "B=2;A=1;C=3", 0, VERDICT_OK},
		{OPTION "nvidia NVreg_RegistryDwords=\"A=1;B=2\"", "A=1", 0, VERDICT_BAD},
		{OPTION "nvidia NVreg_RegistryDwords=A=1", "A=2", 0, VERDICT_BAD},
		{OPTION "nvidia NVreg_RegistryDwords=A=1", NULL, 0, VERDICT_UNKNOWN},
		{OPTION "nvidia NVreg_RegistryDwords=A", "A=1", 0, VERDICT_UNKNOWN},
		{DWORD "nvidia ForceP2P=0x11", "A=1;ForceP2P=17", 0, VERDICT_OK},
		{DWORD "nvidia ForceP2P=0x11", "", 0, VERDICT_BAD},
		{DWORD "nvidia ForceP2P=0x11", NULL, 0, VERDICT_UNKNOWN},
		{OPTION "nvidia NVreg_Other=1", "", 1, VERDICT_UNKNOWN},
		{OPTION "other NVreg_EnableResizableBar=1", "", 0, VERDICT_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct option_case *c = &cases[i];
		struct machine *m = read_list(*state, c->line);

		m->driver.resizable_bar =
			c->resizable < 0 ? fact_int_unknown(here) : fact_int(c->resizable, here);
		m->driver.registry_dwords =
			c->dwords ? fact_str(c->dwords, here) : fact_str_unknown(here);
		assert_verdict(m, c->verdict);
	}
}

static void a_module_stays_out(void **state)
{
	static const struct {
		const char *module, *bound; /* NULL: nobody knows */
		enum verdict verdict;
	} cases[] = {
		{"nouveau", "nouveau", VERDICT_BAD},
		{"nouveau", "nvidia", VERDICT_OK},
		{"nova_core", "NovaCore", VERDICT_BAD},
		{"nouveau", NULL, VERDICT_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_FREE char *list =
			xprintf("fix 3 " BOOT " module-blacklist %s\n", cases[i].module);
		struct machine *m = read_list(*state, list);

		m->gpus[1].pci->driver =
			cases[i].bound ? fact_str(cases[i].bound, here) : fact_str_unknown(here);
		assert_verdict(m, cases[i].verdict);
	}
}

static void nothing_changed_is_not_judged(void **state)
{
	struct machine *m;

	source_put_error(*state, IN_FORCE, SOURCE_FILE, ENOENT);
	assert_verdict(read_map(*state), VERDICT_NA);
	source_drop(*state, IN_FORCE);
	assert_verdict(read_map(*state), VERDICT_NA); /* a recording of before */
	source_put_error(*state, IN_FORCE, SOURCE_FILE, EACCES);
	m = read_map(*state);
	m->recorded = false;
	assert_verdict(m, VERDICT_UNKNOWN);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(every_kind_is_read),
		WITH(trials_are_read),
		WITH(a_trial_is_followed),
		WITH(what_is_open_is_named),
		WITH(of_this_boot_only),
		WITH(no_list_is_no_change),
		WITH(other_lines),
		WITH(unknown_boot),
		WITH(recordings_hide_the_boot),
		WITH(a_parameter_waits_for_a_reboot),
		WITH(a_parameter_is_found_in_quotes),
		WITH(an_unread_command_line_is_unknown),
		WITH(registers_are_set_again),
		WITH(options_of_uvm),
		WITH(options_are_asked_of_the_driver),
		WITH(a_module_stays_out),
		WITH(nothing_changed_is_not_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
