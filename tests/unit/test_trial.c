/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial boot with GRUB and with systemd-boot: planned, set, booted, confirmed, forgotten; cut
 * short at each moment. The programs are stand-ins that are written from grub-reboot, grub-editenv
 * and grub-mkconfig of GRUB 2.06 and from bootctl of systemd 252; the boots are what GRUB's script
 * does with next_entry, and systemd-boot with LoaderEntryOneShot. tests/guest/system and
 * tests/guest/systemd-boot have the real ones.
 */
#include "base/alloc.h"
#include "base/err.h"
#include "base/source.h"
#include "base/text.h"
#include "build_machine.h"
#include "fix/boot_entries.h"
#include "fix/grub_menu.h"
#include "fix/make_plan.h"
#include "fix_rig.h"
#include "machine/efi_variable.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
/* With the sanitizers a run costs five times as much: every moment is tried without. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define STRIDE 4
#else
#define STRIDE 1
#endif

#define GRUB_CFG "boot/grub/grub.cfg"
#define CUSTOM   "boot/grub/custom.cfg"
#define GRUBENV  "boot/grub/grubenv"
#define DROP_IN  "etc/default/grub.d/99-onehop.cfg"
#define UNIT     "etc/systemd/system/onehop-trial.service"
#define LINE     "root=/dev/vda2 ro quiet"

/* What differs between the two; `loader` is the one of the test that runs. */
struct loader {
	enum boot_loader kind;
	const char *line;  /* how the kernel's command line begins */
	const char *entry; /* the file that a trial adds */
	void (*put)(struct rig *g);
	/* What starts next has these words more than the first boot, and what was for one boot is gone. The
	 * caller frees. */
	char *(*start)(struct rig *g);
	void (*choose)(struct rig *g,
		       const char *entry); /* a person, for the next boot; "": nothing */
	bool (*is_chosen)(struct rig *g, const char *entry);
};

static const struct loader *loader;

/* ---- GRUB's programs ---- */

/* As grub-editenv: the block is emptied first, then written. */
static int write_block(struct rig *g, const char *lines)
{
	char block[1025] = "# GRUB Environment Block\n";

	strncat(block, lines, sizeof(block) - strlen(block) - 1);
	memset(block + strlen(block), '#', sizeof(block) - 1 - strlen(block));
	rig_put(g, GRUBENV, "");
	if (rig_point(g) < 0)
		return 1;
	rig_put(g, GRUBENV, block);
	return 0;
}

static int run_reboot(void *context, const char *const *argv)
{
	AUTO_FREE char *line = xprintf("next_entry=%s\n", argv[1]);

	return write_block(context, line);
}

static int run_editenv(void *context, const char *const *argv)
{
	assert_string_equal(argv[1], "/" GRUBENV);
	assert_string_equal(argv[2], "unset");
	assert_string_equal(argv[3], "next_entry");
	return write_block(context, "");
}

static const char *abstraction, *failed_units; /* what grub-probe and systemctl print */

static int run_probe(void *context, const char *const *argv)
{
	(void)context;
	assert_string_equal(argv[1], "--target=abstraction");
	return 0;
}

#define HEADER                                                                                     \
	"if [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  load_env\nfi\n"               \
	"if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n"                      \
	"   set next_entry=\n   save_env next_entry\n   set boot_once=true\n"                      \
	"else\n   set default=\"0\"\nfi\n"
#define SOURCES                                                                                    \
	"if [ -f  ${config_directory}/custom.cfg ]; then\n"                                        \
	"  source ${config_directory}/custom.cfg\n"                                                \
	"elif [ -z \"${config_directory}\" -a -f  $prefix/custom.cfg ]; then\n"                    \
	"  source $prefix/custom.cfg\nfi\n"

/* The words that the drop-in adds, each behind a blank. */
static char *words_of_drop_in(struct rig *g)
{
	static const char start[] = "=\"$GRUB_CMDLINE_LINUX_DEFAULT";
	AUTO_FREE char *text = rig_get(g, DROP_IN);
	struct strbuf words = {0};

	for (const char *at = text; at && (at = strstr(at, start));) {
		at += strlen(start);
		strbuf_add(&words, at, strcspn(at, "\""));
	}
	return words.text ? words.text : xstrdup("");
}

static char *grub_cfg(struct rig *g)
{
	AUTO_FREE char *words = words_of_drop_in(g);

	return xprintf(HEADER
		       "menuentry 'Debian' --class debian $menuentry_id_option 'gnulinux-simple' "
		       "{\n\tsavedefault\n\techo 'Loading ...'\n"
		       "\tlinux /boot/vmlinuz " LINE "%s\n\tinitrd /boot/initrd\n}\n" SOURCES,
		       words);
}

static int run_mkconfig(void *context, const char *const *argv)
{
	AUTO_FREE char *text = grub_cfg(context);
	FILE *f = fopen(argv[2], "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return rig_point(context) < 0;
}

static int run_nothing(void *context, const char *const *argv)
{
	(void)argv;
	return rig_point(context) < 0;
}

static void put_link(struct rig *g, const char *path, const char *target)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path), *beside = xprintf("%s.x", path);

	rig_put(g, beside, ""); /* makes the folders */
	rig_remove(g, beside);
	unlink(whole);
	assert_int_equal(symlink(target, whole), 0);
}

static int run_systemctl(void *context, const char *const *argv)
{
	static const char link[] =
		"etc/systemd/system/multi-user.target.wants/onehop-trial.service";

	if (strcmp(argv[1], "enable") == 0)
		put_link(context, link, "../onehop-trial.service");
	if (strcmp(argv[1], "disable") == 0 && rig_exists(context, link))
		rig_remove(context, link);
	return rig_point(context) < 0;
}

/* ---- the machine that GRUB starts ---- */

static void put_boot(struct rig *g, unsigned boot, const char *words)
{
	AUTO_FREE char *id = xprintf("%08u-2222-3333-4444-555555555555\n", boot);
	AUTO_FREE char *line = xprintf("%s%s\n", loader->line, words);

	rig_put(g, "proc/sys/kernel/random/boot_id", id);
	rig_put(g, "proc/cmdline", line);
}

static void put_grub(struct rig *g)
{
	static const char *const programs[] = {"grub-reboot", "grub-editenv", "grub-probe",
					       "grub-script-check"};
	AUTO_FREE char *cfg = NULL;

	rig_put(g, "etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n");
	rig_put(g, "etc/default/grub.d/.keep", "");
	rig_put(g, "usr/sbin/grub-mkconfig",
		"for x in /etc/default/grub.d/*.cfg ; do . $x; done\n");
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		AUTO_FREE char *path = xprintf("usr/sbin/%s", programs[i]);

		rig_put(g, path, "");
	}
	cfg = grub_cfg(g);
	rig_put(g, GRUB_CFG, cfg);
	write_block(g, "");
	rig_put(g, "proc/self/mountinfo",
		"20 1 8:1 / / rw - ext4 /dev/vda1 rw\n"
		"21 20 8:2 / /boot rw shared:1 - ext4 /dev/vda2 rw\n");
	put_link(g, "sys/dev/block/8:2", "../../devices/pci0000:00/virtio1/block/vda/vda2");
}

/* ---- a boot, as GRUB's script has it ---- */

/* What follows the kernel in the first entry of `text`; "": there is none. */
static char *words_behind_kernel(const char *text)
{
	const char *at = text ? strstr(text, "linux /boot/vmlinuz " LINE) : NULL;

	if (!at)
		return xstrdup("");
	at += strlen("linux /boot/vmlinuz " LINE);
	return xstrndup(at, strcspn(at, "\n"));
}

static char *start_grub(struct rig *g)
{
	AUTO_FREE char *env = rig_get(g, GRUBENV), *custom = rig_get(g, CUSTOM);
	AUTO_FREE char *cfg = rig_get(g, GRUB_CFG);
	bool next = env && strstr(env, "\nnext_entry=onehop-trial\n");
	const char *entry = custom ? strstr(custom, "'onehop-trial' {") : NULL;

	entry = !entry && custom ? strstr(custom, "onehop-trial {") : entry;
	assert_true(cfg && strstr(cfg, "\n}\n"));
	if (next)
		write_block(g, "");
	if (next && custom && strstr(custom, "### END onehop") && entry)
		return words_behind_kernel(entry);
	return words_behind_kernel(cfg);
}

static void choose_in_grub(struct rig *g, const char *entry)
{
	AUTO_FREE char *line = *entry ? xprintf("next_entry=%s\n", entry) : xstrdup("");

	write_block(g, line);
}

static bool is_chosen_in_grub(struct rig *g, const char *entry)
{
	AUTO_FREE char *line = xprintf("\nnext_entry=%s\n", entry), *block = rig_get(g, GRUBENV);

	return strstr(block, line) != NULL;
}

static const struct loader grub = {
	.kind = BOOT_GRUB,
	.line = "BOOT_IMAGE=/boot/vmlinuz " LINE,
	.entry = CUSTOM,
	.put = put_grub,
	.start = start_grub,
	.choose = choose_in_grub,
	.is_chosen = is_chosen_in_grub,
};

/* ---- systemd-boot ---- */

#define ONE_SHOT EFI_LOADER_VARIABLE("LoaderEntryOneShot")
#define ENTRIES  "efi/loader/entries/"
#define SINCE    ENTRIES RIG_ID "-6.3.conf"

/* Texts as efivarfs has them: four bytes of attributes, UTF-16, a zero behind each. */
static void put_variable(struct rig *g, const char *path, const char *lines)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path);
	FILE *f;

	rig_put(g, path, "");
	f = fopen(whole, "we");
	assert_non_null(f);
	fwrite("\7\0\0\0", 1, EFI_ATTRIBUTES, f);
	for (; *lines; lines++) {
		fputc(*lines == '\n' ? '\0' : *lines, f);
		fputc('\0', f);
	}
	fclose(f);
}

/* Its first text, "" if it is not there; the caller frees. */
static char *get_variable(struct rig *g, const char *path)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, path), *lines = NULL;
	FILE *f = fopen(whole, "re");
	char bytes[512];
	size_t n;

	if (!f)
		return xstrdup("");
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	lines = efi_lines(bytes, n);
	return xstrndup(lines, strcspn(lines, "\n"));
}

static void choose_in_loader(struct rig *g, const char *entry)
{
	AUTO_FREE char *line = xprintf("%s\n", entry);

	if (*entry)
		put_variable(g, ONE_SHOT, line);
	else if (rig_exists(g, ONE_SHOT))
		rig_remove(g, ONE_SHOT);
}

static bool is_chosen_in_loader(struct rig *g, const char *entry)
{
	AUTO_FREE char *now = get_variable(g, ONE_SHOT);

	return strcmp(now, entry) == 0;
}

/* One write to the variable, which the firmware does whole or not at all. */
static int run_bootctl(void *context, const char *const *argv)
{
	assert_string_equal(argv[1], "set-oneshot");
	if (rig_point(context) < 0)
		return 1;
	choose_in_loader(context, argv[2]);
	return rig_point(context) < 0;
}

static void put_features(struct rig *g, const char *bytes)
{
	AUTO_FREE char *whole = xprintf("%s/%s", g->root, EFI_LOADER_VARIABLE("LoaderFeatures"));
	FILE *f;

	rig_put(g, EFI_LOADER_VARIABLE("LoaderFeatures"), "");
	f = fopen(whole, "we");
	assert_non_null(f);
	fwrite("\6\0\0\0", 1, EFI_ATTRIBUTES, f);
	fwrite(bytes, 1, 8, f);
	fclose(f);
}

/* The newer of two kernels is started by itself; its name has a counter, as after an update. */
static void put_systemd_boot(struct rig *g)
{
	rig_put(g, "usr/bin/bootctl", "");
	rig_put(g, "usr/bin/kernel-install", "");
	rig_put(g, RIG_COUNTED,
		"title Debian\nversion 6.2\nsort-key debian\nmachine-id " RIG_ID "\noptions " LINE
		"\nlinux /6.2/linux\n");
	rig_put(g, RIG_ENTRY,
		"title Debian\nversion 6.1\nsort-key debian\nmachine-id " RIG_ID "\noptions " LINE
		"\nlinux /6.1/linux\n");
	rig_put(g, ENTRIES "rescue.conf",
		"title Rescue\noptions " LINE " single\nlinux /6.1/linux\n");
	/* Another system's, that is not listed since there is no such kernel. */
	rig_put(g, ENTRIES "other.conf", "title Other\noptions root=b\nlinux /gone\n");
	rig_put(g, RIG_LINE, LINE "\n");
	rig_put(g, "efi/loader/loader.conf", "timeout 3\n");
	rig_put(g, "proc/self/mountinfo",
		"20 1 8:1 / / rw - ext4 /dev/vda1 rw\n"
		"21 20 8:2 / /efi rw shared:1 - vfat /dev/vda2 rw\n"
		"22 20 0:25 / /sys/firmware/efi/efivars rw,nosuid - efivarfs efivarfs rw\n");
	put_variable(g, EFI_LOADER_VARIABLE("LoaderInfo"), "systemd-boot 252.39-1~deb12u1\n");
	put_features(g, "\xff\x03\0\0\0\0\0\0");
	put_variable(g, EFI_LOADER_VARIABLE("LoaderEntries"),
		     RIG_ID "-6.2.conf\n" RIG_ID
			    "-6.1.conf\nrescue.conf\nauto-reboot-to-firmware-setup\n");
	put_variable(g, EFI_LOADER_VARIABLE("LoaderEntrySelected"), RIG_ID "-6.1.conf\n");
}

/* What follows on the line of the entry's options; NULL: no entry that it would list. */
static char *words_of_entry(struct rig *g, const char *path)
{
	AUTO_FREE char *text = rig_get(g, path);
	const char *at = text ? strstr(text, "\noptions " LINE) : NULL;

	if (!at || !strstr(text, "\nlinux "))
		return NULL;
	at += strlen("\noptions " LINE);
	return xstrndup(at, strcspn(at, "\n"));
}

/* The variable goes first. What it names and is not there is passed over. */
static char *start_systemd_boot(struct rig *g)
{
	AUTO_FREE char *next = get_variable(g, ONE_SHOT), *path = xprintf(ENTRIES "%s", next);
	char *words = *next ? words_of_entry(g, path) : NULL;

	choose_in_loader(g, "");
	if (!words)
		words = words_of_entry(g, RIG_COUNTED);
	assert_non_null(words);
	return words;
}

static const struct loader systemd_boot = {
	.kind = BOOT_SYSTEMD_BOOT,
	.line = LINE,
	.entry = ENTRIES BOOT_ENTRY_TRIAL,
	.put = put_systemd_boot,
	.start = start_systemd_boot,
	.choose = choose_in_loader,
	.is_chosen = is_chosen_in_loader,
};

static void without_line(struct rig *g)
{
	rig_remove(g, RIG_LINE);
	rig_remove(g, "etc/kernel");
}

static void put_no_line(struct rig *g)
{
	put_systemd_boot(g);
	without_line(g);
}

static const struct loader no_line = {
	.kind = BOOT_SYSTEMD_BOOT,
	.line = LINE,
	.entry = ENTRIES BOOT_ENTRY_TRIAL,
	.put = put_no_line,
	.start = start_systemd_boot,
	.choose = choose_in_loader,
	.is_chosen = is_chosen_in_loader,
};

/* ---- the machine ---- */

static int runner(void *context, const char *const *argv, unsigned deadline_s,
		  struct strbuf *output, int *ret_status)
{
	static const struct stand_in programs[] = {
		{"grub-reboot", run_reboot},        {"grub-editenv", run_editenv},
		{"grub-probe", run_probe},          {"grub-mkconfig", run_mkconfig},
		{"grub-script-check", run_nothing}, {"bootctl", run_bootctl},
		{"systemctl", run_systemctl},       {NULL},
	};
	struct strbuf said = {0};
	int r = rig_run(programs, context, argv, &said, ret_status);

	(void)deadline_s;
	strbuf_done(&said);
	if (strcmp(argv[0], "grub-probe") == 0 && abstraction)
		strbuf_puts(output, abstraction);
	if (strcmp(argv[0], "systemctl") == 0 && strcmp(argv[1], "list-units") == 0)
		strbuf_puts(output, failed_units ? failed_units : "");
	return r;
}

static void put_machine(struct rig *g)
{
	abstraction = failed_units = NULL;
	rig_reset(g);
	rig_put(g, "etc/os-release", "ID=debian\n");
	rig_put(g, "etc/systemd/system.conf", "");
	rig_put(g, "etc/systemd/system/multi-user.target.wants/.keep", "");
	rig_put(g, "usr/bin/onehop", "");
	loader->put(g);
	rig_put(g, "sys/class/drm/card0-HDMI-A-1/status", "disconnected\n");
	rig_put(g, "sys/class/net/eno1/operstate", "up\n");
	rig_put(g, "sys/class/net/eno1/device/vendor", "0x8086\n");
	put_boot(g, 1, "");
	rig_fail(g, -1, 0);
}

static int make_rig_with(void **state, const struct loader *with)
{
	struct rig *g;

	loader = with;
	rig_setup(state, 4);
	g = *state;
	g->host.run = runner;
	put_machine(g);
	return 0;
}

static int make_rig(void **state)
{
	return make_rig_with(state, &grub);
}

static int make_rig_systemd_boot(void **state)
{
	return make_rig_with(state, &systemd_boot);
}

static int make_rig_no_line(void **state)
{
	return make_rig_with(state, &no_line);
}

/* The boot partition on a file system with a journal. */
static int make_rig_extended(void **state)
{
	int r = make_rig_with(state, &systemd_boot);
	struct rig *g = *state;

	g->host.all_fat = false;
	return r;
}

static unsigned boot_number;

/* What runs afterwards has these words more than the first boot; the caller frees. */
static char *boot(struct rig *g)
{
	char *words;

	rig_fail(g, -1, 0);
	words = loader->start(g);
	put_boot(g, ++boot_number + 1, words);
	return words;
}

#define TRIED " iommu=pt panic=30"
#define KEPT  " iommu=pt"

static void assert_boots(struct rig *g, const char *words)
{
	AUTO_FREE char *now = boot(g);

	assert_string_equal(now, words);
}

/* ---- plans ---- */

struct planned {
	struct source *source;
	struct change_set set;
	struct plan *plan;
};

/* What answers before the files of the rig; NULL: nothing. */
static struct source *ahead;

/* Only what make_plan sets differs from plan to plan. */
static struct machine *hardware;

#define AUTO_PLANNED CLEANUP(planned_done)
static void planned_done(struct planned *p)
{
	plan_free(p->plan);
	arena_free(p->set.arena);
	source_free(p->source);
}

static void make_plan(struct rig *g, enum trial_wish trial, bool confirms, const char *word,
		      struct planned *ret)
{
	struct plan_request request = {.trial = trial,
				       .confirms = confirms,
				       .lifetime = CHANGE_LASTING,
				       .program = "/usr/bin/onehop"};
	const struct change parameter = {.kind = CHANGE_KERNEL_PARAMETER,
					 .target = word,
					 .rules = TEXTS("iommu-translating"),
					 .reason = TEXTS("addresses pass"),
					 .cost = TEXTS("less is kept apart"),
					 .lifetime = CHANGE_KEPT};
	const struct change option = {.kind = CHANGE_MODULE_OPTION,
				      .target = "nvidia-uvm",
				      .name = "uvm_disable_hmm",
				      .new = "1",
				      .rules = TEXTS("hmm-dma32"),
				      .reason = TEXTS("HMM"),
				      .lifetime = CHANGE_KEPT};
	AUTO_FREE char *line = rig_get(g, "proc/cmdline");

	*ret = (struct planned){.set.arena = arena_new()};
	hardware->kernel.cmdline = fact_str(arena_strdup(ret->set.arena, text_trim(line)), "test");
	hardware->kernel.boot_loader = fact_int(loader->kind, "test");
	hardware->kernel.release = fact_str("6.1.0", "test");
	hardware->kernel.distribution_id = fact_str("debian", "test");
	change_add(&ret->set, &parameter);
	if (!confirms)
		change_add(&ret->set, &option);
	assert_int_equal(source_open_root(g->root, NULL, NULL, &ret->source), 0);
	if (ahead)
		ret->source = source_new_over(ret->source, ahead);
	request.machine = hardware;
	request.source = ret->source;
	ret->plan = plan_make(&request, &ret->set);
}

static void plan_trial(struct rig *g, struct planned *ret)
{
	make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", ret);
	if (ret->plan->no_trial)
		fail_msg("no trial: %s", ret->plan->no_trial);
}

static void plan_confirmation(struct rig *g, struct planned *ret)
{
	make_plan(g, TRIAL_NEVER, true, "iommu=pt", ret);
}

static const struct step *find_step(const struct step *steps, size_t n, enum step_kind kind,
				    const char *target)
{
	for (size_t i = 0; i < n; i++)
		if (steps[i].kind == kind && steps[i].target &&
		    strcmp(steps[i].target, target) == 0)
			return &steps[i];
	return NULL;
}

static void the_plan_is_a_trial(void **state)
{
	struct rig *g = *state;
	AUTO_PLANNED struct planned p;
	const struct step *s;

	rig_put(g, CUSTOM, "menuentry mine {\n}\n");
	plan_trial(g, &p);
	s = find_step(p.plan->steps, p.plan->step_n, STEP_BLOCK, CUSTOM);
	assert_non_null(s);
	assert_true(s->trial && s->for_boot);
	assert_int_equal(s->mode, 0600);
	assert_string_equal(
		s->new.data,
		"menuentry mine {\n}\n"
		"### BEGIN onehop: a trial boot; \"onehop undo\" removes it\n"
		"if [ \"${default}\" = onehop-trial ]; then\n\tset fallback=0\nfi\n"
		"menuentry 'Trial boot of onehop (Debian)' --class debian $menuentry_id_option "
		"onehop-trial {\n\techo 'Loading ...'\n"
		"\tlinux /boot/vmlinuz " LINE " iommu=pt panic=30\n\tinitrd /boot/initrd\n}\n"
		"### END onehop\n");
	s = find_step(p.plan->steps, p.plan->step_n, STEP_ONE_SHOT, GRUBENV);
	assert_non_null(s);
	assert_ptr_equal(s, &p.plan->steps[p.plan->step_n - 1]);
	assert_true(s->trial && s->reboot);
	assert_null(find_step(p.plan->steps, p.plan->step_n, STEP_FILE, DROP_IN));
	assert_null(find_step(p.plan->steps, p.plan->step_n, STEP_GENERATED, GRUB_CFG));
	assert_non_null(find_step(p.plan->on_confirm, p.plan->on_confirm_n, STEP_FILE, DROP_IN));
	assert_non_null(
		find_step(p.plan->on_confirm, p.plan->on_confirm_n, STEP_GENERATED, GRUB_CFG));
	s = find_step(p.plan->steps, p.plan->step_n, STEP_FILE, UNIT);
	assert_true(s && s->trial);
	assert_non_null(
		strstr(s->new.data, "ExecStart=/usr/bin/onehop fix --confirm --when-healthy\n"));
	assert_non_null(strstr(s->new.data, "Type=exec\n"));
	/* It does not fail once the package is removed. */
	assert_non_null(strstr(s->new.data, "ConditionFileIsExecutable=/usr/bin/onehop\n"));
	/* What is no kernel parameter is done at once. */
	s = find_step(p.plan->steps, p.plan->step_n, STEP_FILE, "etc/modprobe.d/onehop.conf");
	assert_true(s && !s->trial);
	assert_int_equal(p.plan->baseline_n, 1);
	assert_string_equal(p.plan->baseline[0].kind, "link");
	assert_string_equal(p.plan->baseline[0].value, "eno1");
}

/* What each machine has otherwise, and why it has no trial. */
static void refusals(void **state)
{
	static const struct {
		const char *path, *text, *why;
	} rows[] = {
		{"proc/self/mountinfo", "20 1 0:30 / / rw - btrfs /dev/vda1 rw\n", "is on btrfs"},
		{"proc/self/mountinfo", "20 1 0:30 / / rw - zfs rpool/ROOT rw\n", "is on zfs"},
		{"proc/self/mountinfo", "20 1 253:0 / / rw - ext4 /dev/mapper/a rw\n",
		 "is on dm-0 (LVM, RAID or encryption)"},
		{"proc/self/mountinfo", "20 1 9:1 / / rw - xfs /dev/md1p1 rw\n", "is on md1/md1p1"},
		{"proc/self/mountinfo", "20 1 7:7 / / rw - ext4 /dev/x rw\n",
		 "the device of /boot/grub/grubenv is unknown"},
		{"proc/self/mountinfo", "", "the file system of /boot/grub/grubenv is unknown"},
		{GRUBENV, "# GRUB Environment Block\nnext_entry=windows\n",
		 "is already set to start \"windows\" at the next boot"},
		{GRUBENV, "hi\n", "/boot/grub/grubenv is damaged"},
		{GRUBENV, "", "/boot/grub/grubenv is damaged"},
		{GRUB_CFG, HEADER "insmod blscfg\nblscfg\n" SOURCES, "blscfg"},
		{GRUB_CFG, HEADER "menuentry a --id a {\nlinux /v " LINE "\n}\n",
		 "does not read /boot/grub/custom.cfg"},
		{GRUB_CFG, "load_env\nset default=0\nmenuentry a {\nlinux /v " LINE "\n}\n" SOURCES,
		 "does not clear"},
		{GRUB_CFG,
		 "set default=\"${next_entry}\"\nsave_env next_entry\nset default=0\n"
		 "menuentry a {\nlinux /v " LINE "\n}\n" SOURCES,
		 "does not clear"},
		{GRUB_CFG, HEADER SOURCES "menuentry a {\nlinux /v " LINE "\n}\n",
		 "depends on what GRUB finds|comes after custom.cfg"},
		{GRUB_CFG, HEADER "menuentry a {\nchainloader +1\n}\n" SOURCES,
		 "does not start one Linux kernel"},
		{GRUB_CFG, HEADER "menuentry a {\nlinux /v " LINE "\nlinux /w\n}\n" SOURCES,
		 "does not start one Linux kernel"},
		{GRUB_CFG, HEADER "menuentry other {\nlinux /v root=UUID=9 ro\n}\n" SOURCES,
		 "default entry starts another system: \"other\""},
		{GRUB_CFG, HEADER "submenu more {\nmenuentry a {\nlinux /v\n}\n}\n" SOURCES,
		 "it names a submenu"},
		{GRUB_CFG, HEADER "if [ x = x ]; then\nmenuentry a {\nlinux /v\n}\nfi\n" SOURCES,
		 "depends on what GRUB finds"},
		{GRUB_CFG, HEADER "set default=1\nmenuentry a {\nlinux /v " LINE "\n}\n" SOURCES,
		 "could not be determined"},
		{GRUB_CFG, HEADER "menuentry 'a {\n" SOURCES, "cannot read"},
		{GRUB_CFG, HEADER "default=1\nmenuentry a {\nlinux /v " LINE "\n}\n" SOURCES,
		 "could not be determined"},
		{CUSTOM, "set default=\"My entry\"\n",
		 "/boot/grub/custom.cfg sets the default entry"},
		{CUSTOM, "if [ x = x ]; then default=mine; fi\n", "sets the default entry"},
		{CUSTOM, "menuentry mine {\n}\nif [ x ]; then\nreturn\nfi\n",
		 "ends before its last line"},
		{CUSTOM, "configfile /other.cfg\n", "ends before its last line"},
		{CUSTOM, "### BEGIN onehop: a trial boot\nmenuentry mine {\n}\n",
		 "\"### BEGIN onehop\" without \"### END onehop\" behind it"},
		{CUSTOM, "menuentry mine {\n", "onehop cannot read /boot/grub/custom.cfg"},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_PLANNED struct planned p;
		AUTO_FREE char *either = xstrdup(rows[i].why);
		char *rest = either, *why;
		bool found = false;

		put_machine(g);
		rig_put(g, rows[i].path, rows[i].text);
		put_link(g, "sys/dev/block/253:0", "../../devices/virtual/block/dm-0");
		put_link(g, "sys/dev/block/9:1", "../../devices/virtual/block/md1/md1p1");
		make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &p);
		while (p.plan->no_trial && (why = strsep(&rest, "|")))
			found |= strstr(p.plan->no_trial, why) != NULL;
		if (!found)
			fail_msg("row %zu: %s", i, p.plan->no_trial ? p.plan->no_trial : "-");
		/* What happens instead is planned as without a trial. */
		assert_non_null(find_step(p.plan->steps, p.plan->step_n, STEP_FILE, DROP_IN));
		assert_int_equal(p.plan->on_confirm_n, 0);
		assert_true(p.plan->way_back_n > 0);
		for (size_t k = 0; k < p.plan->step_n; k++)
			assert_false(p.plan->steps[k].trial);
	}
}

/* /boot/grub lies on another file system than /boot. */
static void links(void **state)
{
	static const char *const targets[] = {"/srv/b/grub", "../srv/b/grub", "../other/grub"};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
		AUTO_PLANNED struct planned p;
		AUTO_FREE char *from = NULL, *to = NULL;

		put_machine(g);
		rig_put(g, "srv/b/.keep", "");
		put_link(g, "other", "srv/b");
		from = xprintf("%s/boot/grub", g->root);
		to = xprintf("%s/srv/b/grub", g->root);
		assert_int_equal(rename(from, to), 0);
		put_link(g, "boot/grub", targets[i]);
		rig_put(g, "proc/self/mountinfo",
			"20 1 8:2 / / rw - ext4 /dev/vda1 rw\n"
			"21 20 0:30 / /srv/b rw - btrfs /dev/vdb rw\n");
		make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &p);
		assert_string_equal(
			p.plan->no_trial,
			"/srv/b/grub/grubenv is on btrfs, where GRUB cannot clear its entry for "
			"the next boot");
		unlink(from);
	}
}

/* onehop replaces no link, so that nothing but a refusal would come of it. */
static void linked_files(void **state)
{
	static const char *const files[] = {GRUBENV, CUSTOM};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		AUTO_PLANNED struct planned p;
		AUTO_FREE char *why = xprintf("/%s is a symbolic link", files[i]);

		put_machine(g);
		rig_put(g, "boot/grub/other", "# GRUB Environment Block\n");
		put_link(g, files[i], "other");
		make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &p);
		assert_non_null(p.plan->no_trial);
		assert_string_equal(p.plan->no_trial, why);
	}
}

static void programs_that_are_missing(void **state)
{
	struct rig *g = *state;
	AUTO_PLANNED struct planned p, q;

	rig_remove(g, "usr/sbin/grub-reboot");
	make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &p);
	assert_string_equal(p.plan->no_trial, "grub-reboot is not installed");
	put_machine(g);
	rig_remove(g, GRUBENV);
	make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &q);
	assert_string_equal(q.plan->no_trial, "there is no /" GRUBENV);
}

/* By itself only where nobody can choose in the boot menu. */
static void displays(void **state)
{
	static const struct {
		const char *status;
		bool trial;
	} rows[] = {{"disconnected\n", true}, {"connected\n", false}, {"unknown\n", true}};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_PLANNED struct planned p;

		put_machine(g);
		rig_put(g, "sys/class/drm/card0-HDMI-A-1/status", rows[i].status);
		make_plan(g, TRIAL_WITHOUT_DISPLAY, false, "iommu=pt", &p);
		assert_int_equal(plan_has_trial(p.plan), rows[i].trial);
		assert_null(p.plan->no_trial);
	}
}

/* A list in a parameter is quoted, and comes before what is for init. */
static void words_in_the_entry(void **state)
{
	struct rig *g = *state;
	AUTO_PLANNED struct planned p;
	const struct step *s;

	rig_put(g, GRUB_CFG,
		HEADER "menuentry a --unrestricted --id a {\n\tlinux /v " LINE
		       " panic=5 -- init\n}\n" SOURCES);
	make_plan(g, TRIAL_ALWAYS, false, "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0", &p);
	s = find_step(p.plan->steps, p.plan->step_n, STEP_BLOCK, CUSTOM);
	assert_non_null(s);
	assert_non_null(strstr(
		s->new.data,
		"menuentry 'Trial boot of onehop (a)' --unrestricted --id onehop-trial {\n\tlinux "
		"/v " LINE
		" panic=5 'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0' -- init\n}\n"));
}

/* Ubuntu's script: a boot that failed is noted, and a first try without an initial RAM disk. */
static void ubuntu(void **state)
{
	static const char cfg[] =
		"if [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  load_env\nfi\n"
		"if [ \"${initrdfail}\" = 2 ]; then\n   set initrdfail=\n"
		"elif [ \"${initrdfail}\" = 1 ]; then\n   set next_entry=\"${prev_entry}\"\n"
		"   save_env prev_entry\n   if [ \"${next_entry}\" ]; then\n"
		"      set initrdfail=2\n   fi\nfi\n"
		"if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n"
		"   set next_entry=\n   save_env next_entry\n   set boot_once=true\n"
		"else\n   set default=\"${saved_entry}\"\nfi\n"
		"function recordfail {\n  set recordfail=1\n"
		"  if [ -n \"${have_grubenv}\" ]; then if [ -z \"${boot_once}\" ]; then save_env "
		"recordfail; fi; fi\n}\n"
		"menuentry 'Ubuntu' --class ubuntu $menuentry_id_option 'gnulinux-simple-1' {\n"
		"\trecordfail\n\tlinux\t/vmlinuz " LINE " splash $vt_handoff\n}\n"
		"submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-1' "
		"{\n"
		"\tmenuentry 'Ubuntu, with Linux 6.8' $menuentry_id_option 'gnulinux-6.8' {\n"
		"\t\trecordfail\n\t\tsavedefault\n\t\tlinux\t/vmlinuz-6.8 " LINE " \n\t}\n}\n"
		"if [ \"$grub_platform\" = \"efi\" ]; then\n"
		"\tmenuentry 'UEFI Firmware Settings' { fwsetup\n}\nfi\n" SOURCES;
	static const char saved[] = "# GRUB Environment Block\n"
				    "saved_entry=gnulinux-advanced-1>gnulinux-6.8\n###";
	struct rig *g = *state;
	AUTO_PLANNED struct planned p;
	const struct step *s;

	rig_put(g, GRUB_CFG, cfg);
	rig_put(g, GRUBENV, saved);
	plan_trial(g, &p);
	s = find_step(p.plan->steps, p.plan->step_n, STEP_BLOCK, CUSTOM);
	assert_non_null(s);
	assert_non_null(strstr(
		s->new.data,
		"\tset fallback=0\nfi\n"
		"menuentry 'Trial boot of onehop (Ubuntu, with Linux 6.8)' $menuentry_id_option "
		"onehop-trial {\n\t\trecordfail\n"
		"\t\tlinux\t/vmlinuz-6.8 " LINE " iommu=pt panic=30 \n\t}\n"
		"### END"));
}

/* ---- plans with systemd-boot ---- */

static void the_plan_with_systemd_boot(void **state)
{
	struct rig *g = *state;
	AUTO_PLANNED struct planned p;
	const struct step *s;

	plan_trial(g, &p);
	s = find_step(p.plan->steps, p.plan->step_n, STEP_ENTRY, loader->entry);
	assert_true(s && s->trial && !s->reboot);
	assert_string_equal(s->new.data,
			    "# Written by onehop. \"onehop undo\" removes it.\n"
			    "title Trial boot of onehop (Debian)\nversion 6.2\nmachine-id " RIG_ID
			    "\noptions " LINE " iommu=pt panic=30\nlinux /6.2/linux\n");
	s = find_step(p.plan->steps, p.plan->step_n, STEP_ONE_SHOT, ONE_SHOT);
	assert_ptr_equal(s, &p.plan->steps[p.plan->step_n - 1]);
	assert_true(s->trial && s->reboot);
	assert_null(find_step(p.plan->steps, p.plan->step_n, STEP_OPTIONS, RIG_ENTRY));
	assert_non_null(
		find_step(p.plan->on_confirm, p.plan->on_confirm_n, STEP_OPTIONS, RIG_ENTRY));
	assert_non_null(
		find_step(p.plan->on_confirm, p.plan->on_confirm_n, STEP_OPTIONS, RIG_COUNTED));
	assert_non_null(
		find_step(p.plan->on_confirm, p.plan->on_confirm_n, STEP_OPTIONS, RIG_LINE));
}

/* Which entry is started by itself, and so copied. */
static void systemd_boot_defaults(void **state)
{
	static const struct {
		const char *efi_default, *last, *conf, *version;
	} rows[] = {
		{NULL, NULL, "timeout 3\n", "6.2"},
		{NULL, NULL, "timeout 3\ndefault *-6.1.conf\n", "6.1"},
		{NULL, NULL, "default nothing-like-it\n", "6.2"},
		{RIG_ID "-6.1.conf\n", NULL, "default *-6.2.conf\n", "6.1"},
		{NULL, RIG_ID "-6.1.conf\n", "default @saved\n", "6.1"},
		{"@saved\n", RIG_ID "-6.1.conf\n", "default *-6.2.conf\n", "6.1"},
		{"@saved\n", NULL, "default *-6.2.conf\n", "6.2"},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_FREE char *line = xprintf("\nversion %s\n", rows[i].version);
		AUTO_PLANNED struct planned p;
		const struct step *s;

		put_machine(g);
		rig_put(g, "efi/loader/loader.conf", rows[i].conf);
		if (rows[i].efi_default)
			put_variable(g, EFI_LOADER_VARIABLE("LoaderEntryDefault"),
				     rows[i].efi_default);
		if (rows[i].last)
			put_variable(g, EFI_LOADER_VARIABLE("LoaderEntryLastBooted"), rows[i].last);
		plan_trial(g, &p);
		s = find_step(p.plan->steps, p.plan->step_n, STEP_ENTRY, loader->entry);
		if (!s || !strstr(s->new.data, line))
			fail_msg("row %zu: %s", i, s ? s->new.data : "no entry");
	}
}

/* A kernel came or went since the boot. Where a new one stands in the menu is not known. */
static void entries_come_and_go(void **state)
{
	struct rig *g = *state;
	AUTO_PLANNED struct planned p, q;

	rig_remove(g, RIG_COUNTED);
	plan_trial(g, &p);
	assert_non_null(strstr(
		find_step(p.plan->steps, p.plan->step_n, STEP_ENTRY, loader->entry)->new.data,
		"\nversion 6.1\n"));
	put_machine(g);
	rig_put(g, ENTRIES RIG_ID "-6.3.conf",
		"version 6.3\nsort-key debian\noptions " LINE "\nlinux /6.3/linux\n");
	plan_trial(g, &q);
	assert_non_null(strstr(
		find_step(q.plan->steps, q.plan->step_n, STEP_ENTRY, loader->entry)->new.data,
		"\nversion 6.1\n"));
}

#define EFIVARFS "22 20 0:25 / /sys/firmware/efi/efivars "

static void systemd_boot_refuses(void **state)
{
	static const struct {
		const char *path, *text, *why; /* a variable's text has to end in "\n" */
	} rows[] = {
		{"proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/vda1 rw\n", "not mounted"},
		{"proc/self/mountinfo", EFIVARFS "ro,nosuid - efivarfs efivarfs rw\n", "read-only"},
		{"proc/self/mountinfo", EFIVARFS "rw - efivarfs efivarfs ro\n", "read-only"},
		{EFI_LOADER_VARIABLE("LoaderInfo"), "", "does not report itself as"},
		{EFI_LOADER_VARIABLE("LoaderInfo"), "rEFInd 0.14\n",
		 "the running boot loader is rEFInd 0.14"},
		{ONE_SHOT, "windows.conf\n",
		 "is already set to start \"windows.conf\" at the next boot"},
		{EFI_LOADER_VARIABLE("LoaderEntries"),
		 RIG_ID "-6.2.efi\n" RIG_ID "-6.2.conf\n" RIG_ID "-6.1.conf\nrescue.conf\n",
		 "(" RIG_ID "-6.2.efi) has its command line inside the kernel image"},
		{EFI_LOADER_VARIABLE("LoaderEntryDefault"), "rescue.conf\n",
		 "(/" ENTRIES "rescue.conf) is not an ordinary entry"},
		{RIG_COUNTED, "options " LINE " a=\"b\nlinux /6.2/linux\nmachine-id " RIG_ID "\n",
		 "quotes in the options line"},
	};
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_PLANNED struct planned p;

		put_machine(g);
		if (text_starts_with(rows[i].path, EFI_VARIABLES))
			put_variable(g, rows[i].path, rows[i].text);
		else
			rig_put(g, rows[i].path, rows[i].text);
		make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &p);
		if (!p.plan->no_trial || !strstr(p.plan->no_trial, rows[i].why))
			fail_msg("row %zu: %s", i, p.plan->no_trial ? p.plan->no_trial : "-");
		/* What happens instead is planned as without a trial. */
		assert_non_null(find_step(p.plan->steps, p.plan->step_n, STEP_OPTIONS, RIG_ENTRY));
		assert_int_equal(p.plan->on_confirm_n, 0);
	}
}

static void systemd_boot_might_not_fall_back(void **state)
{
	static const struct {
		const char *features, *why;
	} rows[] = {
		{"\xf7\x03\0\0\0\0\0\0",
		 "252.39-1~deb12u1 cannot start an entry for one boot only"},
		{"\xff\0\0\0\0\0\0\0", "is older than 251"},
	};
	struct rig *g = *state;
	AUTO_PLANNED struct planned p, q;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		AUTO_PLANNED struct planned old;

		put_machine(g);
		put_features(g, rows[i].features);
		make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &old);
		assert_non_null(old.plan->no_trial);
		assert_non_null(strstr(old.plan->no_trial, rows[i].why));
	}
	put_machine(g);
	rig_remove(g, "usr/bin/bootctl");
	make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &p);
	assert_string_equal(p.plan->no_trial, "bootctl is not installed");
	/* Once its tries are used up, the only other entry would come behind the trial's. */
	put_machine(g);
	rig_remove(g, RIG_ENTRY);
	make_plan(g, TRIAL_ALWAYS, false, "iommu=pt", &q);
	assert_non_null(strstr(q.plan->no_trial, "each entry of this system has a boot counter"));
}

/* ---- from the plan to its end ---- */

static enum fix_state state_of(struct rig *g, enum trial *ret_trial)
{
	enum fix_state state = FIX_UNDONE;
	struct journal_entry *entries;
	size_t n;

	if (journal_read(&g->host, &entries, &n) < 0)
		fail_msg("journal: %s", err_msg());
	if (ret_trial)
		*ret_trial = n ? entries[n - 1].trial : TRIAL_NONE;
	if (n && entries[n - 1].damage)
		fail_msg("damaged: %s", entries[n - 1].damaged);
	if (n)
		state = entries[n - 1].state;
	journal_free(entries, n);
	return state;
}

static void assert_state(struct rig *g, enum fix_state expected, enum trial trial)
{
	enum trial now;

	assert_string_equal(fix_state_word(state_of(g, &now)), fix_state_word(expected));
	assert_int_equal(now, trial);
}

static void assert_in_force(struct rig *g, const char *line)
{
	AUTO_FREE char *text = rig_get(g, JOURNAL_FOLDER "/in-force");

	if (!strstr(text, line))
		fail_msg("no \"%s\" in\n%s", line, text);
}

static void apply_planned(struct rig *g, struct plan *p)
{
	enum fix_result result;
	unsigned number;

	fix_apply(&g->run, p, &result, &number);
}

static void apply(struct rig *g)
{
	AUTO_PLANNED struct planned p;
	enum fix_result result;
	unsigned number;

	plan_trial(g, &p);
	if (fix_apply(&g->run, p.plan, &result, &number) < 0)
		fail_msg("apply: %s", err_msg());
	if (result != FIX_DONE)
		fail_msg("apply: %d\n%s", result, strbuf_str(&g->texts));
}

static int confirm(struct rig *g, enum fix_result *ret_result)
{
	AUTO_PLANNED struct planned p;
	int r = fix_drop_trial_words(&g->run, 0);

	plan_confirmation(g, &p);
	return r < 0 ? r : fix_confirm(&g->run, 0, p.plan, ret_result);
}

static void assert_confirms(struct rig *g)
{
	enum fix_result result = FIX_NOTHING;

	if (confirm(g, &result) < 0)
		fail_msg("confirm: %s", err_msg());
	if (result != FIX_DONE)
		fail_msg("confirm: %d\n%s", result, strbuf_str(&g->texts));
}

static void undo(struct rig *g)
{
	enum fix_result result;
	unsigned number;

	if (fix_undo(&g->run, 0, &result, &number) < 0)
		fail_msg("undo: %s", err_msg());
	if (result != FIX_DONE)
		fail_msg("undo: %d\n%s", result, strbuf_str(&g->texts));
}

static void recover(struct rig *g)
{
	size_t n;

	rig_listen(g);
	if (fix_recover(&g->run, &n) < 0)
		fail_msg("recover: %s", err_msg());
	if (g->events[FIX_UNDO_FAILED])
		fail_msg("recover: %s", strbuf_str(&g->texts));
}

/* What the boots change is no difference. */
static char *tree(struct rig *g)
{
	AUTO_FREE char *id = rig_get(g, "proc/sys/kernel/random/boot_id");
	AUTO_FREE char *line = rig_get(g, "proc/cmdline"), *env = rig_get(g, GRUBENV);
	const bool unset = env && !strstr(env, "next_entry");
	char *now;

	rig_put(g, "proc/sys/kernel/random/boot_id", "");
	rig_put(g, "proc/cmdline", "");
	if (unset) /* empty, as grub-editenv leaves it when it is cut short */
		rig_put(g, GRUBENV, "");
	now = rig_tree(g);
	rig_put(g, "proc/sys/kernel/random/boot_id", id);
	rig_put(g, "proc/cmdline", line);
	if (unset)
		rig_put(g, GRUBENV, env);
	return now;
}

static void assert_tree(struct rig *g, const char *expected)
{
	AUTO_FREE char *now = tree(g);
	size_t same = 0;

	while (now[same] && now[same] == expected[same])
		same++;
	while (same && now[same - 1] != '\n')
		same--;
	if (now[same] || expected[same])
		fail_msg("expected\n%.400s\nbut there is\n%.400s\nthe last run told:\n%s",
			 expected + same, now + same, strbuf_str(&g->texts));
}

/* The option of nvidia-uvm, which is in force once the module is loaded, is none that counts. */
static void assert_reboot(struct rig *g, bool needed)
{
	struct journal_entry *entries;
	size_t n;

	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	for (size_t i = 0; i < entries[n - 1].plan->step_n; i++)
		if (!entries[n - 1].plan->steps[i].trial)
			entries[n - 1].plan->steps[i].reboot = false;
	assert_int_equal(journal_undo_needs_reboot(&entries[n - 1]), needed);
	journal_free(entries, n);
}

/* The line that kernel-install makes an entry from: its file, else the running kernel's. */
static char *install_kernel(struct rig *g)
{
	AUTO_FREE char *file = rig_get(g, RIG_LINE), *running = rig_get(g, "proc/cmdline");
	AUTO_FREE char *entry = xprintf("version 6.3\nmachine-id " RIG_ID
					"\noptions %slinux /" RIG_ID "/6.3/linux\n",
					file ? file : running);

	rig_put(g, SINCE, entry);
	return rig_get(g, SINCE);
}

/* It is written without the parameters, so it has neither their reason nor their cost. */
static void the_line_before_the_trial(void **state)
{
	struct rig *g = *state;
	AUTO_PLANNED struct planned p;
	const struct step *s;

	plan_trial(g, &p);
	s = find_step(p.plan->steps, p.plan->step_n, STEP_OPTIONS, RIG_LINE);
	assert_non_null(s);
	assert_null(strstr(s->new.data, "iommu=pt"));
	assert_int_equal(s->why.n, 0);
	assert_int_equal(s->cost.n, 0);
	for (size_t i = 0; i < p.plan->note_n; i++)
		assert_null(strstr(p.plan->notes[i], "later kernels get the parameters"));
}

/* Without systemd no unit confirms; with it one does. */
static void nobody_confirms(void **state)
{
	struct rig *g = *state;
	AUTO_PLANNED struct planned with, without;

	plan_trial(g, &with);
	assert_null(with.plan->unconfirmed);
	assert_int_equal(renameat(g->host.root_fd, "etc/systemd", g->host.root_fd, "etc/other"), 0);
	plan_trial(g, &without);
	assert_string_equal(without.plan->unconfirmed, "there is no systemd here");
}

/* During the trial boot a kernel comes: it does not get what is for one boot. */
static void kernel_install_has_no_line(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *entry = NULL, *line = NULL, *since = NULL, *old = NULL;

	old = tree(g);
	apply(g);
	line = rig_get(g, RIG_LINE);
	assert_string_equal(line, LINE "\n");
	assert_boots(g, TRIED);
	entry = install_kernel(g);
	assert_null(strstr(entry, "iommu=pt"));
	assert_null(strstr(entry, "panic="));
	undo(g);
	assert_true(rig_exists(g, RIG_LINE)); /* the running kernel has the words still */
	since = install_kernel(g);
	assert_string_equal(since, entry);
	rig_remove(g, SINCE);
	without_line(g);
	assert_tree(g, old);
}

/*
 * Made from the running kernel's line although the file was there, as by a person who moved it
 * away.
 */
static void an_entry_has_the_trials_words(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *entry = NULL, *now = NULL;

	apply(g);
	assert_boots(g, TRIED);
	rig_remove(g, RIG_LINE);
	entry = install_kernel(g);
	assert_non_null(strstr(entry, "iommu=pt panic=30"));
	undo(g);
	now = rig_get(g, SINCE);
	assert_null(strstr(now, "iommu=pt"));
	assert_null(strstr(now, "panic="));
}

/* What only that boot was to have stays nowhere, what is confirmed does. */
static void an_entry_of_the_trial_is_confirmed(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *entry = NULL, *confirmed = NULL, *undone = NULL, *line = NULL;

	rig_put(g, "lib/modules/6.1/modules.dep", "");
	apply(g);
	assert_boots(g, TRIED);
	rig_remove(g, RIG_LINE);
	entry = install_kernel(g);
	assert_non_null(strstr(entry, TRIED));
	assert_confirms(g);
	confirmed = words_of_entry(g, SINCE);
	assert_string_equal(confirmed, KEPT);
	line = rig_get(g, RIG_LINE);
	assert_string_equal(line, LINE KEPT "\n");
	undo(g);
	undone = words_of_entry(g, SINCE);
	assert_string_equal(undone, "");
}

/* An entry whose name the journal cannot hold is left to the person; the others are changed. */
static void a_name_that_is_no_text(void **state)
{
	static const char path[] = ENTRIES RIG_ID "-Gro\xdf.conf";
	struct rig *g = *state;
	AUTO_PLANNED struct planned p;
	AUTO_FREE char *text = rig_get(g, RIG_ENTRY), *kept = NULL, *line = NULL;
	enum fix_result result;
	unsigned number;
	bool named = false;

	rig_put(g, path, text);
	make_plan(g, TRIAL_NEVER, false, "iommu=pt", &p);
	for (size_t i = 0; i < p.plan->manual_n; i++)
		named |= strstr(p.plan->manual[i].how, "-Gro?.conf, which has a name") != NULL;
	assert_true(named);
	if (fix_apply(&g->run, p.plan, &result, &number) < 0)
		fail_msg("apply: %s", err_msg());
	assert_int_equal(result, FIX_DONE);
	kept = rig_get(g, path);
	assert_string_equal(kept, text);
	line = rig_get(g, RIG_ENTRY);
	assert_non_null(strstr(line, "iommu=pt"));
	undo(g);
	assert_int_equal(number, 1);
}

/* A person wants it for good: an entry that took it from the person's line keeps it. */
static void a_persons_panic_stays(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *now = NULL;

	apply(g);
	assert_boots(g, TRIED);
	rig_put(g, RIG_LINE, LINE " panic=30\n");
	free(install_kernel(g));
	assert_confirms(g);
	undo(g);
	now = words_of_entry(g, SINCE);
	assert_string_equal(now, " panic=30");
}

static void line_of_trial_goes(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = NULL, *line = NULL;
	size_t n;

	old = tree(g);
	apply(g);
	undo(g);
	assert_tree(g, old);
	apply(g);
	assert_boots(g, TRIED);
	assert_boots(g, "");
	assert_int_equal(fix_recover(&g->run, &n), 0);
	assert_tree(g, old);
	apply(g);
	assert_boots(g, TRIED);
	assert_confirms(g);
	line = rig_get(g, RIG_LINE);
	assert_string_equal(line, LINE " iommu=pt\n");
	assert_boots(g, KEPT);
	undo(g);
	assert_boots(g, "");
}

/* Copies of the steps that a confirmation adds have a checksum too. */
static void confirmed_copies_have_sums(void **state)
{
	struct rig *g = *state;
	struct journal_entry *entries;
	size_t n, with = 0;

	apply(g);
	assert_boots(g, TRIED);
	assert_confirms(g);
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(n, 1);
	for (size_t i = 0; i < entries[0].plan->step_n; i++) {
		const struct step *s = &entries[0].plan->steps[i];

		if (!step_has_content(s) || !s->new.data || s->kind == STEP_GENERATED)
			continue;
		assert_non_null(s->new_sha256);
		with += !s->trial;
	}
	assert_true(with > 0);
	journal_free(entries, n);
}

static void confirmed(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	enum fix_result result;

	apply(g);
	assert_state(g, FIX_ON_TRIAL, TRIAL_WAITS);
	assert_in_force(g, "trial iommu=pt");
	assert_int_equal(confirm(g, &result), -EAGAIN);
	assert_boots(g, TRIED);
	assert_state(g, FIX_ON_TRIAL, TRIAL_RUNS);
	assert_confirms(g);
	assert_state(g, FIX_APPLIED, TRIAL_NONE);
	assert_in_force(g, "kernel-parameter iommu=pt");
	assert_false(rig_exists(g, loader->entry));
	assert_false(rig_exists(g, UNIT));
	assert_true(rig_exists(g, "etc/modprobe.d/onehop.conf"));
	assert_int_equal(confirm(g, &result), -ENOENT);
	assert_boots(g, KEPT);
	assert_boots(g, KEPT);
	undo(g);
	assert_tree(g, old);
	assert_boots(g, "");
}

static void add_line(struct rig *g, const char *line)
{
	AUTO_FREE char *old = rig_get(g, GRUB_CFG), *new = xprintf("%s%s\n", old, line);

	rig_put(g, GRUB_CFG, new);
}

/* The step that makes grub.cfg, not the one that does so when it is undone. */
static const struct step *step_that_makes(const struct step *steps, size_t n)
{
	while (n && !(steps[n - 1].kind == STEP_GENERATED && steps[n - 1].argv))
		n--;
	assert_true(n > 0);
	return &steps[n - 1];
}

/* Lines that confirming loses: those that were shown with the plan are no news, those since are. */
static void lost_lines(void **state)
{
	struct rig *g = *state;
	AUTO_PLANNED struct planned p, again;
	struct journal_entry *entries;
	const struct step *s;
	size_t n;

	add_line(g, "set old=edit");
	plan_trial(g, &p);
	assert_int_equal(fix_foresee(&g->run, p.plan), 0);
	s = step_that_makes(p.plan->on_confirm, p.plan->on_confirm_n);
	assert_string_equal(s->dropped[0], "set old=edit");
	apply_planned(g, p.plan);
	assert_boots(g, TRIED);
	for (unsigned edited = 0; edited < 2; edited++) {
		if (edited)
			add_line(g, "set new=edit");
		plan_confirmation(g, &again);
		assert_int_equal(journal_read(&g->host, &entries, &n), 0);
		assert_int_equal(fix_foresee_confirm(&g->run, &entries[0], again.plan), 0);
		assert_int_equal(plan_drops_lines(again.plan), edited);
		s = step_that_makes(again.plan->steps, again.plan->step_n);
		assert_null(s->foreseen.data);
		if (edited) {
			assert_string_equal(s->dropped[0], "set new=edit");
			assert_null(s->dropped[1]);
		}
		journal_free(entries, n);
		planned_done(&again);
	}
	plan_confirmation(g, &again);
	assert_confirms(g);
}

static int run_none(void *context, const char *const *argv, unsigned deadline_s,
		    struct strbuf *output, int *ret_status)
{
	(void)context;
	(void)argv;
	(void)deadline_s;
	(void)output;
	*ret_status = 0;
	return 0;
}

/* What each step of a plan does, and what it writes; the caller frees. */
static char *steps_of(const struct plan *p)
{
	struct strbuf b = {0};

	for (size_t i = 0; i < p->step_n; i++)
		strbuf_printf(&b, "%s\n%s\n", p->steps[i].what,
			      p->steps[i].new.data ? p->steps[i].new.data : "");
	return b.text;
}

static char *steps_planned(struct rig *g)
{
	AUTO_PLANNED struct planned p;

	plan_trial(g, &p);
	return steps_of(p.plan);
}

/*
 * The rest of the fix is there still, and --apply undoes it first: the plan that is shown is the
 * one that comes then.
 */
static void the_plan_past_an_unconfirmed_trial(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *shown = NULL, *now = NULL, *then = NULL;
	struct journal_entry *entries;
	size_t n;

	apply(g);
	assert_boots(g, TRIED);
	assert_boots(g, "");
	assert_state(g, FIX_ON_TRIAL, TRIAL_OVER);
	now = steps_planned(g);
	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	ahead = source_new_map("ahead");
	g->run.rehearse = run_none;
	assert_int_equal(fix_rehearse_recover(&g->run, entries, n, ahead), 1);
	shown = steps_planned(g);
	source_free(ahead);
	ahead = NULL;
	journal_free(entries, n);
	assert_state(g, FIX_ON_TRIAL, TRIAL_OVER);
	assert_int_equal(fix_recover(&g->run, &n), 0);
	then = steps_planned(g);
	assert_string_equal(shown, then);
	assert_true(strlen(now) <
		    strlen(then)); /* which is why it was not enough to plan for what is there */
}

static void not_confirmed(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	enum fix_result result;
	size_t n;

	apply(g);
	assert_boots(g, TRIED);
	assert_boots(g, "");
	assert_state(g, FIX_ON_TRIAL, TRIAL_OVER);
	assert_int_equal(confirm(g, &result), -ESTALE);
	assert_boots(g, "");
	assert_int_equal(fix_recover(&g->run, &n), 0);
	assert_int_equal(n, 1);
	assert_state(g, FIX_UNDONE, TRIAL_NONE);
	assert_reboot(g, false);
	assert_tree(g, old);
	apply(g);
	assert_boots(g, TRIED);
	assert_boots(g, "");
	assert_int_equal(fix_recover(&g->run, &n), 0);
	apply(g);
	assert_state(g, FIX_ON_TRIAL, TRIAL_WAITS);
	assert_boots(g, TRIED);
	assert_confirms(g);
	assert_boots(g, KEPT);
}

static void undone_before_its_boot(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);

	apply(g);
	undo(g);
	assert_tree(g, old);
	assert_boots(g, "");
}

static void undone_in_its_boot(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);

	apply(g);
	assert_boots(g, TRIED);
	undo(g);
	assert_reboot(g, true);
	assert_tree(g, old);
	assert_boots(g, "");
	assert_reboot(g, false);
}

static void no_other_fix_meanwhile(void **state)
{
	struct rig *g = *state;
	enum fix_result result;
	unsigned number;

	apply(g);
	for (int i = 0; i < 2; i++) {
		struct plan *p = plan_new();

		rig_file(p, "etc/a.conf", "a\n", "b\n");
		assert_int_equal(fix_apply(&g->run, p, &result, &number), -EBUSY);
		assert_non_null(strstr(err_msg(), i ? "onehop fix --confirm" : "onehop undo 1"));
		plan_free(p);
		free(boot(g));
	}
}

/* The entry of the later one has the words of the earlier one, and confirming keeps them. */
static void an_earlier_fix_stays_meanwhile(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	AUTO_PLANNED struct planned p;
	enum fix_result result;
	unsigned number;

	apply(g);
	assert_boots(g, TRIED);
	assert_confirms(g);
	assert_boots(g, KEPT);
	/* As if confirmed: without the option, a file that both would share. */
	make_plan(g, TRIAL_ALWAYS, true, "pci=realloc=on", &p);
	assert_int_equal(fix_apply(&g->run, p.plan, &result, &number), 0);
	assert_int_equal(number, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fix_undo(&g->run, 1, &result, &number), -EBUSY);
		assert_non_null(strstr(err_msg(), "fix 2 builds on /" DROP_IN));
		free(boot(g));
	}
	undo(g);
	undo(g);
	assert_tree(g, old);
	assert_boots(g, "");
}

/* The unit as earlier releases wrote it. */
static void drop_condition(struct plan *p)
{
	for (size_t i = 0; i < p->step_n; i++) {
		struct bytes *new = &p->steps[i].new;
		char *at = new->data ? strstr(new->data, "ConditionFileIsExecutable=") : NULL;
		size_t length;

		if (!at)
			continue;
		length = strcspn(at, "\n") + 1;
		memmove(at, at + length, strlen(at + length) + 1);
		new->size -= length;
	}
}

static void units_of_earlier_releases(void **state)
{
	struct rig *g = *state;

	for (int confirms = 0; confirms < 2; confirms++) {
		AUTO_FREE char *old = tree(g);
		AUTO_FREE char *unit = NULL;
		AUTO_PLANNED struct planned p;

		plan_trial(g, &p);
		drop_condition(p.plan);
		apply_planned(g, p.plan);
		unit = rig_get(g, UNIT);
		assert_non_null(strstr(unit, "ExecStart="));
		assert_null(strstr(unit, "ConditionFileIsExecutable="));
		if (confirms) {
			free(boot(g));
			assert_confirms(g);
			assert_false(rig_exists(g, UNIT));
		}
		undo(g);
		assert_tree(g, old);
	}
}

/* The trial boot hangs: the disk is in another machine, or a rescue system runs. */
static void undone_from_outside(void **state)
{
	struct rig *g = *state;

	apply(g);
	free(boot(g));
	g->host.image = true;
	undo(g);
	g->host.image = false;
	assert_false(rig_exists(g, loader->entry));
	assert_false(rig_exists(g, UNIT));
	assert_boots(g, "");
}

/*
 * Before its boot: what GRUB is to start is in a file of the disk, which no reboot has cleared yet.
 */
static void undone_from_outside_before_its_boot(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *block = NULL;

	apply(g);
	write_block(g, "saved_entry=0\nnext_entry=onehop-trial\nprev_entry=\n");
	g->host.image = true;
	undo(g);
	g->host.image = false;
	block = rig_get(g, GRUBENV);
	assert_int_equal(strlen(block), 1024);
	assert_true(text_starts_with(block,
				     "# GRUB Environment Block\nsaved_entry=0\nprev_entry=\n##"));
	assert_null(strstr(block, "next_entry"));
	assert_null(strstr(strbuf_str(&g->texts), "it lasts only until that system restarts"));
	assert_boots(g, "");
}

/* By kexec, or from a rescue medium: the entry for the next boot is still set. */
static void a_boot_past_the_loader(void **state)
{
	struct rig *g = *state;

	apply(g);
	put_boot(g, 77, "");
	assert_state(g, FIX_ON_TRIAL, TRIAL_WAITS);
	assert_boots(g, TRIED);
	assert_state(g, FIX_ON_TRIAL, TRIAL_RUNS);
}

/* It could not be written: the trial's boot must not be that of all boots. */
static void the_loader_has_not_cleared_it(void **state)
{
	struct rig *g = *state;

	for (int i = 0; i < 2; i++) {
		put_machine(g);
		apply(g);
		put_boot(g, 88, TRIED);
		assert_int_equal(fix_end_one_shot(&g->run, 1), 0);
		assert_state(g, FIX_ON_TRIAL, TRIAL_RUNS);
		if (i)
			assert_confirms(g);
		assert_boots(g, i ? KEPT : "");
		assert_state(g, i ? FIX_APPLIED : FIX_ON_TRIAL, i ? TRIAL_NONE : TRIAL_OVER);
		undo(g);
		assert_boots(g, "");
	}
}

/* A kernel update between the two: the plan for good is made of what is there then. */
static void grub_cfg_is_made_anew_meanwhile(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *cfg = NULL, *more = NULL, *now = NULL;

	apply(g);
	cfg = rig_get(g, GRUB_CFG);
	more = xprintf("# another kernel\n%s", cfg);
	rig_put(g, GRUB_CFG, more);
	assert_boots(g, TRIED);
	assert_confirms(g);
	assert_boots(g, KEPT);
	undo(g);
	now = rig_get(g, GRUB_CFG);
	assert_string_equal(now, more);
	assert_boots(g, "");
}

/* Somebody added an entry beside: it stays, and what is the trial's goes. */
static void custom_cfg_is_edited_meanwhile(void **state)
{
	struct rig *g = *state;

	for (int i = 0; i < 3; i++) { /* confirmed, undone in its boot, undone before it */
		AUTO_FREE char *custom = NULL, *more = NULL, *now = NULL;

		put_machine(g);
		apply(g);
		custom = rig_get(g, CUSTOM);
		more = xprintf("# mine\n%smenuentry mine {\n}\n", custom);
		rig_put(g, CUSTOM, more);
		if (i < 2)
			assert_boots(g, TRIED);
		if (i == 0)
			assert_confirms(g);
		else
			undo(g);
		assert_state(g, i ? FIX_UNDONE : FIX_APPLIED, TRIAL_NONE);
		assert_int_equal(g->events[FIX_UNDO_FAILED], 0);
		now = rig_get(g, CUSTOM);
		assert_string_equal(now, "# mine\nmenuentry mine {\n}\n");
		assert_boots(g, i ? "" : KEPT);
	}
}

static void assert_displaced(struct rig *g, bool displaced)
{
	struct journal_entry *entries;
	size_t n;

	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(entries[n - 1].trial, TRIAL_WAITS);
	assert_int_equal(entries[n - 1].displaced, displaced);
	journal_free(entries, n);
}

/*
 * Somebody chose the next boot after the trial was set: that is said and stays, and the trial goes.
 */
static void another_entry_is_chosen_meanwhile(void **state)
{
	struct rig *g = *state;
	enum fix_result result;

	apply(g);
	assert_displaced(g, false);
	loader->choose(g, "windows");
	assert_displaced(g, true);
	assert_int_equal(confirm(g, &result), -EAGAIN);
	assert_non_null(strstr(err_msg(), "no longer set for the next boot"));
	undo(g);
	assert_int_equal(state_of(g, NULL), FIX_UNDONE);
	assert_false(rig_exists(g, loader->entry));
	assert_true(loader->is_chosen(g, "windows"));
}

/* Its end is gone: where the person's lines begin nobody can tell. */
static void custom_cfg_has_no_end(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *now = NULL;
	enum fix_result result;
	unsigned number;

	apply(g);
	rig_put(g, CUSTOM, "### BEGIN onehop\nmenuentry mine {\n}\n");
	assert_int_equal(fix_undo(&g->run, 0, &result, &number), 0);
	assert_int_equal(result, FIX_NOT_ROLLED_BACK);
	now = rig_get(g, CUSTOM);
	assert_string_equal(now, "### BEGIN onehop\nmenuentry mine {\n}\n");
	rig_put(g, CUSTOM, "menuentry mine {\n}\n");
	undo(g);
}

/* What GRUB cannot write is found by its own tool, before anything is written. */
static void grub_cannot_clear_it(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	AUTO_PLANNED struct planned p;
	enum fix_result result;
	unsigned number = 0;

	plan_trial(g, &p);
	abstraction = "grub-probe: warning: a device\nlvm\n";
	assert_int_equal(fix_apply(&g->run, p.plan, &result, &number), -EOPNOTSUPP);
	assert_non_null(strstr(err_msg(), "is on lvm"));
	assert_tree(g, old);
	assert_false(rig_exists(g, JOURNAL_FOLDER "/fixes/1"));
	abstraction = "grub-probe: warning: a device\n\n";
	assert_int_equal(fix_apply(&g->run, p.plan, &result, &number), 0);
	assert_int_equal(result, FIX_DONE);
}

static void the_partition_is_not_mounted(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *from = xprintf("%s/efi/loader", g->root), *old = tree(g);
	AUTO_FREE char *to = xprintf("%s/efi/away", g->root);
	enum fix_result result;
	unsigned number;

	apply(g);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(fix_undo(&g->run, 0, &result, &number), 0);
	assert_int_equal(result, FIX_NOT_ROLLED_BACK);
	assert_int_equal(rename(to, from), 0);
	undo(g);
	assert_tree(g, old);
}

/*
 * A check of FAT after a power cut left the entry empty, cut off, or gone: the boot goes without
 * it.
 */
static void the_entry_is_torn(void **state)
{
	static const char *const texts[] = {"", "title Trial boot of onehop\noptions x\n", NULL};
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);

	for (size_t i = 0; i < 2 * sizeof(texts) / sizeof(*texts); i++) {
		put_machine(g);
		apply(g);
		if (texts[i / 2])
			rig_put(g, loader->entry, texts[i / 2]);
		else
			rig_remove(g, loader->entry);
		if (i % 2) {
			assert_boots(g, "");
			assert_state(g, FIX_ON_TRIAL, TRIAL_OVER);
			recover(g);
		} else {
			undo(g);
		}
		assert_state(g, FIX_UNDONE, TRIAL_NONE);
		assert_tree(g, old);
		assert_boots(g, "");
	}
}

/* A kernel came in the trial boot: its entry gets the words, and undo takes them. */
static void a_kernel_comes_meanwhile(void **state)
{
	static const char text[] = "title Debian\nsort-key debian\nmachine-id " RIG_ID
				   "\noptions " LINE "\nlinux /6.3/linux\n";
	static const char path[] = ENTRIES RIG_ID "-6.3.conf";
	struct rig *g = *state;
	AUTO_FREE char *words = NULL, *now = NULL;

	apply(g);
	assert_boots(g, TRIED);
	rig_put(g, path, text);
	assert_confirms(g);
	words = words_of_entry(g, path);
	assert_string_equal(words, KEPT);
	assert_boots(g, KEPT);
	undo(g);
	now = rig_get(g, path);
	assert_string_equal(now, text);
	assert_boots(g, "");
}

/* ---- health ---- */

static char *health(struct rig *g)
{
	struct strbuf out = {0};
	struct journal_entry *entries;
	size_t n;

	assert_int_equal(journal_read(&g->host, &entries, &n), 0);
	assert_int_equal(n, 1);
	fix_trial_devices(&g->host, &entries[0], &out);
	fix_trial_units(&g->host, &entries[0], &out);
	journal_free(entries, n);
	return out.text ? out.text : xstrdup("");
}

static void assert_health(struct rig *g, const char *expected)
{
	AUTO_FREE char *now = health(g);

	assert_string_equal(now, expected);
}

static void healthy(void **state)
{
	static const char device[] = "sys/bus/pci/devices/0000:41:00.0/driver";
	struct rig *g = *state;
	AUTO_PLANNED struct planned p;
	enum fix_result result;
	struct plan_wanted *row;
	unsigned number;

	plan_trial(g, &p);
	row = ARENA_PUSH(p.plan->arena, p.plan->baseline, p.plan->baseline_n);
	*row = (struct plan_wanted){"driver", "0000:41:00.0 nvidia"};
	failed_units = "old.service loaded failed failed Something\n";
	assert_int_equal(fix_apply(&g->run, p.plan, &result, &number), 0);
	put_link(g, device, "../../../bus/pci/drivers/nvidia");
	assert_health(g, "");
	failed_units = "";
	assert_health(g, "");
	failed_units = "old.service loaded failed failed x\nold.service2 loaded failed failed y\n";
	assert_health(g, "old.service2 failed, and had not before the trial\n");
	failed_units = "";
	rig_put(g, "sys/class/net/eno1/operstate", "down\n");
	assert_health(g, "network link eno1 is down, and was up before the trial\n");
	rig_put(g, "sys/class/net/eno1/operstate", "up\n");
	put_link(g, device, "../../../bus/pci/drivers/nouveau");
	assert_health(g, "0000:41:00.0 has driver nouveau, and had nvidia before the trial\n");
	rig_remove(g, device);
	assert_health(g, "0000:41:00.0 has no driver, and had nvidia before the trial\n");
}

/* ---- cut short at each moment ---- */

static void confirm_planned(struct rig *g, struct plan *p)
{
	enum fix_result result;

	fix_confirm(&g->run, 0, p, &result);
}

static void undo_it(struct rig *g, struct plan *p)
{
	enum fix_result result;
	unsigned number;

	(void)p;
	fix_undo(&g->run, 0, &result, &number);
}

/* Nobody looks after the machine: after two boots it is the old one. */
static void apply_cut_short(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	long n = 0;
	bool killed = true;

	for (; killed; n += STRIDE) {
		AUTO_PLANNED struct planned p;
		AUTO_FREE char *first = NULL;
		enum trial trial;

		put_machine(g);
		plan_trial(g, &p);
		killed = rig_run_killed(g, p.plan, apply_planned, n);
		first = boot(g);
		assert_true(!*first || strcmp(first, TRIED) == 0);
		/* Wrong claims: on trial is only what had its boot. */
		if (state_of(g, &trial) == FIX_ON_TRIAL)
			assert_string_equal(first, TRIED);
		assert_boots(g, "");
		recover(g);
		assert_int_equal(state_of(g, NULL), FIX_UNDONE);
		assert_tree(g, old);
		assert_boots(g, "");
	}
	assert_true(n > 80);
}

/* The same, with the next run of onehop before any boot. */
static void apply_cut_short_and_recovered(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	bool killed = true;

	for (long n = 0; killed; n += STRIDE) {
		AUTO_PLANNED struct planned p;

		put_machine(g);
		plan_trial(g, &p);
		killed = rig_run_killed(g, p.plan, apply_planned, n);
		recover(g);
		if (state_of(g, NULL) == FIX_ON_TRIAL)
			undo(g);
		assert_int_equal(state_of(g, NULL), FIX_UNDONE);
		assert_tree(g, old);
		assert_boots(g, "");
	}
}

static void confirm_cut_short(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	bool killed = true;
	long n = 0;

	for (; killed; n += STRIDE) {
		AUTO_PLANNED struct planned p;
		AUTO_FREE char *first = NULL;
		enum trial trial;

		put_machine(g);
		apply(g);
		assert_boots(g, TRIED);
		plan_confirmation(g, &p);
		killed = rig_run_killed(g, p.plan, confirm_planned, n);
		first = boot(g);
		assert_true(!*first || strcmp(first, KEPT) == 0);
		switch (state_of(g, &trial)) {
		case FIX_ON_TRIAL: /* nothing of it was begun: the trial ended by itself */
			assert_string_equal(first, "");
			assert_int_equal(trial, TRIAL_OVER);
			break;
		case FIX_APPLIED:
			assert_string_equal(first, KEPT);
			undo(g);
			break;
		default:
			break;
		}
		recover(g);
		assert_int_equal(state_of(g, NULL), FIX_UNDONE);
		assert_tree(g, old);
		assert_boots(g, "");
	}
	assert_true(n > 60);
}

static void undo_cut_short(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);

	/* Before its boot, in it, after it, and once it is confirmed. */
	for (int stage = 0; stage < 4; stage++) {
		bool killed = true;

		for (long n = 0; killed; n += STRIDE) {
			AUTO_FREE char *first = NULL;

			put_machine(g);
			apply(g);
			if (stage)
				assert_boots(g, TRIED);
			if (stage == 2)
				assert_boots(g, "");
			if (stage == 3)
				assert_confirms(g);
			killed = rig_run_killed(g, NULL, undo_it, n);
			first = boot(g);
			if (stage < 3) /* if not the one that is due, none has the words */
				assert_boots(g, "");
			recover(g);
			if (state_of(g, NULL) != FIX_UNDONE)
				undo(g);
			assert_tree(g, old);
			assert_boots(g, "");
		}
	}
}

/* An error at each moment: what is said of the end is so. */
static void errors(void **state)
{
	static const int codes[] = {ENOSPC, EIO};
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	size_t failed = 0;

	for (size_t c = 0; c < 2; c++) {
		bool reached = true;

		for (long n = 0; reached; n += STRIDE) {
			AUTO_PLANNED struct planned p;
			enum fix_result result = FIX_NOTHING;
			unsigned number = 0;
			int r;

			put_machine(g);
			plan_trial(g, &p);
			rig_fail(g, n, codes[c]);
			r = fix_apply(&g->run, p.plan, &result, &number);
			reached = g->points > n;
			rig_fail(g, -1, 0);
			failed += r < 0 || result != FIX_DONE;
			if (r < 0 || result == FIX_ROLLED_BACK) {
				assert_tree(g, old);
				assert_boots(g, "");
			} else if (result == FIX_DONE) {
				assert_state(g, FIX_ON_TRIAL, TRIAL_WAITS);
				assert_boots(g, TRIED);
			}
		}
	}
	assert_true(failed > 50 / STRIDE);
}

static void errors_of_confirm(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);
	size_t failed = 0;
	bool reached = true;

	for (long n = 0; reached; n += STRIDE) {
		AUTO_PLANNED struct planned p;
		enum fix_result result = FIX_NOTHING;
		int r;

		put_machine(g);
		apply(g);
		assert_boots(g, TRIED);
		plan_confirmation(g, &p);
		rig_fail(g, n, ENOSPC);
		r = fix_confirm(&g->run, 0, p.plan, &result);
		reached = g->points > n;
		rig_fail(g, -1, 0);
		failed += r < 0 || result != FIX_DONE;
		if (r < 0) {
			enum fix_state s = state_of(g, NULL);

			assert_true(s == FIX_ON_TRIAL || s == FIX_APPLYING);
			assert_boots(g, "");
		} else if (result == FIX_DONE) {
			assert_state(g, FIX_APPLIED, TRIAL_NONE);
			assert_boots(g, KEPT);
			undo(g);
		} else if (result == FIX_ROLLED_BACK) {
			assert_tree(g, old);
		}
		recover(g);
		if (state_of(g, NULL) != FIX_UNDONE)
			undo(g);
		assert_tree(g, old);
		assert_boots(g, "");
	}
	assert_true(failed > 30 / STRIDE);
}

static bool mount_small_boot(struct rig *g)
{
	AUTO_FREE char *path = xprintf("%s/boot", g->root);

	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("onehop", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0755") == 0;
}

static void fill_boot(struct rig *g)
{
	AUTO_FREE char *path = xprintf("%s/boot/full", g->root);
	const char block[4096] = {0};
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	while (fwrite(block, sizeof(block), 1, f) == 1 && fflush(f) == 0)
		;
	fclose(f);
}

/* A confirmation that is begun and fails ends the trial: where it has no room, it is not begun. */
static void no_room_to_confirm(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *boot_folder = xprintf("%s/boot", g->root);
	AUTO_PLANNED struct planned p;
	enum fix_result result;

	if (!mount_small_boot(g))
		SKIP("mounting is not allowed: a full /boot");
	/* The old descriptor is of the old namespace. */
	close(g->host.root_fd);
	g->host.root_fd = open(g->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(g->host.root_fd >= 0);
	loader->put(g);
	apply(g);
	assert_boots(g, TRIED);
	plan_confirmation(g, &p);
	fill_boot(g);
	rig_listen(g);
	for (int i = 0; i < 2; i++) {
		struct journal_entry *entries;
		size_t n;
		int r;

		assert_int_equal(journal_read(&g->host, &entries, &n), 0);
		r = fix_foresee_confirm(&g->run, &entries[n - 1], p.plan);
		journal_free(entries, n);
		assert_int_equal(r, i == 0 ? -ENOSPC : 0);
		assert_state(g, FIX_ON_TRIAL, TRIAL_RUNS);
		if (i)
			break;
		if (!strstr(err_msg(), "/boot has 0 KiB free, and confirming it needs about ") ||
		    !strstr(err_msg(), " KiB there: remove "))
			fail_msg("%s", err_msg());
		rig_remove(g, "boot/full");
	}
	assert_int_equal(fix_confirm(&g->run, 0, p.plan, &result), 0);
	assert_int_equal(result, FIX_DONE);
	assert_boots(g, KEPT);
	assert_int_equal(umount2(boot_folder, MNT_DETACH), 0);
}

/* The disk is full from some moment on, and later it is not. */
static void full_disks(void **state)
{
	struct rig *g = *state;
	AUTO_FREE char *old = tree(g);

	for (int stage = 0; stage < 3; stage++) {
		bool reached = true;

		for (long n = 0; reached; n += STRIDE * (1 + stage)) {
			AUTO_PLANNED struct planned p, c = {0};
			AUTO_FREE char *first = NULL;

			put_machine(g);
			plan_trial(g, &p);
			if (stage) {
				apply_planned(g, p.plan);
				free(boot(g));
			}
			plan_confirmation(g, &c);
			rig_fail_from(g, n, ENOSPC);
			if (stage == 0)
				apply_planned(g, p.plan);
			else if (stage == 1)
				confirm_planned(g, c.plan);
			else
				undo_it(g, NULL);
			reached = g->points > n;
			rig_fail(g, -1, 0);
			first = boot(g);
			if (state_of(g, NULL) == FIX_ON_TRIAL && !stage)
				assert_string_equal(first, TRIED);
			if (state_of(g, NULL) == FIX_APPLIED)
				assert_string_equal(first, KEPT);
			recover(g);
			if (state_of(g, NULL) != FIX_UNDONE)
				undo(g);
			assert_tree(g, old);
			assert_boots(g, "");
		}
	}
}

/* ---- the menu ---- */

static void menus(void **state)
{
	static const char text[] = HEADER
		"function savedefault {\n  save_env saved_entry\n}\n"
		"menuentry 'A > B' --class x $menuentry_id_option 'a' {\n linux /a\n}\n"
		"submenu \"More\" --id more {\n\tmenuentry 'A, 1' --id a1 {\n\tlinux /1\n\t}\n"
		"\tmenuentry 'A, 2' --hotkey=k {\n\t\tlinux /2; initrd /2\n\t}\n}\n"
		"if [ -e x ]; then menuentry Maybe { linux /m\n}\nfi\n" SOURCES
		"menuentry C {\n}\n";
	static const struct {
		const char *choice, *title;
	} rows[] = {
		{"0", "A > B"},        {"", "A > B"},       {"a", "A > B"},
		{"A >> B", "A > B"},   {"1", NULL},         {"1>0", "A, 1"},
		{"1>1", "A, 2"},       {"more>a1", "A, 1"}, {"1>2", NULL},
		{"More>A, 2", "A, 2"}, {"Maybe", NULL},     {"2", NULL},
		{"3", NULL},           {"C", "C"},          {"D", NULL},
		{"a1", NULL},
	};
	struct arena *a = arena_new();
	struct grub_menu m;

	(void)state;
	assert_true(grub_menu_parse(a, text, &m));
	assert_true(m.clears_next && m.custom && !m.blscfg);
	assert_string_equal(m.choice, "0");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *why = NULL;
		const struct grub_item *e = grub_menu_find(a, &m, rows[i].choice, &why);

		if (!rows[i].title != !e || (e && strcmp(e->title, rows[i].title) != 0))
			fail_msg("\"%s\": %s", rows[i].choice, e ? e->title : why);
	}
	arena_free(a);
}

/* Whatever stands there, it is read or refused. */
static void any_menu(void **state)
{
	static const char *const parts[] = {"menuentry ",
					    "submenu ",
					    "'a' ",
					    "{ ",
					    "}\n",
					    "\n",
					    "linux /a ",
					    "\"",
					    "'",
					    "if x; then ",
					    "fi\n",
					    "source ",
					    "/custom.cfg ",
					    "set default=0\n",
					    "\\",
					    "function f ",
					    "#",
					    "$",
					    "--id ",
					    "save_env next_entry"};
	struct rig *g = *state;

	for (unsigned i = 0; i < 20000; i++) {
		struct arena *a = arena_new();
		AUTO_STRBUF struct strbuf text = {0}, copy = {0};
		struct grub_menu m;

		for (unsigned n = rig_random(g, 24); n--;)
			strbuf_puts(&text, parts[rig_random(g, sizeof(parts) / sizeof(*parts))]);
		if (grub_menu_parse(a, strbuf_str(&text), &m))
			for (size_t k = 0; k < m.n; k++)
				if (grub_item_line(a, &m, &m.entries[k]))
					grub_item_copy(&m, &m.entries[k], "t", "i", "w", &copy);
		arena_free(a);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_rig, rig_teardown)
#define LOADER(f)                                                                                  \
	{                                                                                          \
		"systemd-boot: " #f, f, make_rig_systemd_boot, rig_teardown, NULL                  \
	}
#define EXTENDED(f)                                                                                \
	{                                                                                          \
		"systemd-boot, not on FAT: " #f, f, make_rig_extended, rig_teardown, NULL          \
	}

#define NO_LINE(f)                                                                                 \
	{                                                                                          \
		"systemd-boot, no line: " #f, f, make_rig_no_line, rig_teardown, NULL              \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(menus),
		TEST(any_menu),
		TEST(the_plan_is_a_trial),
		TEST(refusals),
		TEST(links),
		TEST(linked_files),
		TEST(programs_that_are_missing),
		TEST(displays),
		TEST(words_in_the_entry),
		TEST(ubuntu),
		TEST(confirmed),
		TEST(confirmed_copies_have_sums),
		TEST(lost_lines),
		TEST(the_plan_past_an_unconfirmed_trial),
		TEST(not_confirmed),
		TEST(undone_before_its_boot),
		TEST(undone_in_its_boot),
		TEST(no_other_fix_meanwhile),
		TEST(an_earlier_fix_stays_meanwhile),
		TEST(units_of_earlier_releases),
		TEST(undone_from_outside),
		TEST(undone_from_outside_before_its_boot),
		TEST(a_boot_past_the_loader),
		TEST(the_loader_has_not_cleared_it),
		TEST(grub_cfg_is_made_anew_meanwhile),
		TEST(custom_cfg_is_edited_meanwhile),
		TEST(another_entry_is_chosen_meanwhile),
		TEST(custom_cfg_has_no_end),
		TEST(grub_cannot_clear_it),
		TEST(healthy),
		TEST(apply_cut_short),
		TEST(apply_cut_short_and_recovered),
		TEST(confirm_cut_short),
		TEST(undo_cut_short),
		TEST(errors),
		TEST(errors_of_confirm),
		TEST(full_disks),
		LOADER(the_plan_with_systemd_boot),
		LOADER(systemd_boot_defaults),
		LOADER(entries_come_and_go),
		LOADER(systemd_boot_refuses),
		LOADER(systemd_boot_might_not_fall_back),
		LOADER(the_entry_is_torn),
		LOADER(the_partition_is_not_mounted),
		LOADER(a_kernel_comes_meanwhile),
		NO_LINE(the_line_before_the_trial),
		NO_LINE(kernel_install_has_no_line),
		LOADER(nobody_confirms),
		NO_LINE(an_entry_has_the_trials_words),
		NO_LINE(an_entry_of_the_trial_is_confirmed),
		NO_LINE(a_persons_panic_stays),
		NO_LINE(line_of_trial_goes),
		LOADER(displays),
		LOADER(confirmed),
		LOADER(confirmed_copies_have_sums),
		LOADER(the_plan_past_an_unconfirmed_trial),
		LOADER(not_confirmed),
		LOADER(undone_before_its_boot),
		LOADER(undone_in_its_boot),
		LOADER(no_other_fix_meanwhile),
		LOADER(units_of_earlier_releases),
		LOADER(undone_from_outside),
		LOADER(a_boot_past_the_loader),
		LOADER(the_loader_has_not_cleared_it),
		LOADER(another_entry_is_chosen_meanwhile),
		LOADER(healthy),
		LOADER(apply_cut_short),
		LOADER(apply_cut_short_and_recovered),
		LOADER(confirm_cut_short),
		LOADER(undo_cut_short),
		LOADER(errors),
		LOADER(errors_of_confirm),
		LOADER(a_name_that_is_no_text),
		LOADER(full_disks),
		EXTENDED(confirmed),
		EXTENDED(apply_cut_short),
		EXTENDED(confirm_cut_short),
		EXTENDED(undo_cut_short),
		EXTENDED(errors),
		NO_LINE(the_plan_past_an_unconfirmed_trial),
		NO_LINE(not_confirmed),
		NO_LINE(apply_cut_short),
		TEST(no_room_to_confirm), /* the last: from here on in another mount namespace */
	};
	int failed;

	hardware = build_switch();
	for (size_t i = 0; i < hardware->pci_n; i++)
		hardware->pci[i].driver = fact_str_absent("test");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	build_free(hardware);
	return failed;
}
