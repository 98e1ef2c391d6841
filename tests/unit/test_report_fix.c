/* SPDX-License-Identifier: Apache-2.0 */
/* report/: a plan, what became of it and the history, for people and as JSON. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "change/change.h"
#include "check_text.h"
#include "diagnose/diagnose.h"
#include "fix/make_plan.h"
#include "json_schema.h"
#include "machine/machine.h"
#include "open_recording.h"
#include "report/report_fix.h"

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define THIS_BOOT  "0b6f8f4e-1111-4222-8333-444455556666"
#define OTHER_BOOT "0b6f8f4e-9999-4222-8333-444455556666"

/* ---- helpers ---- */

/* Each of the parts, NULL-ended, behind the one before, however lines are broken. */
static void assert_order(const char *text, const char *const *parts)
{
	AUTO_FREE char *one_line = flat(text);
	const char *at = one_line;

	for (; *parts; parts++) {
		const char *found = strstr(at, *parts);

		if (!found)
			fail_msg("no \"%s\", or not in its place, in:\n%s", *parts, text);
		at = found + strlen(*parts);
	}
}

/* Takes the document; the caller frees. */
static char *written(struct document *d)
{
	const struct text_format format = {.width = 80};
	struct strbuf b = {0};

	document_write_text(d, &format, &b);
	document_free(d);
	return b.text ? b.text : xstrdup("");
}

static void assert_valid(json_t *json, const char *schema, const char *what)
{
	AUTO_STRBUF struct strbuf trouble = {0};

	assert_non_null(json);
	json_schema_check(json, schema, &trouble);
	if (trouble.len)
		fail_msg("%s against %s: %s", what, schema, strbuf_str(&trouble));
	json_decref(json);
}

/* ---- a plan with a step of every kind ---- */

#define BYTES(text) ((struct bytes){text, sizeof(text) - 1})

static const char *const make_initramfs[] = {"update-initramfs", "-u", NULL};
static const char *const make_grub[] = {"grub-mkconfig", "-o", STEP_OUTPUT, NULL};
static const char *const check_grub[] = {"grub-script-check", STEP_OUTPUT, NULL};
static const char *const way_back[] = {"choose the recovery entry of the boot menu"};

#define NCCL_OLD "A=1\nB=2\nC=3\nD=4\nE=5\nF=6\n"
#define NCCL_NEW "A=1\nB=2\nC=3\nX=9\nD=4\nE=5\nF=6\n"

static const struct step every_kind[] = {
	{.kind = STEP_REGISTER,
	 .target = "0000:22:00.0",
	 .at = "ACS+6",
	 .value = {0x001d, 0x0011},
	 .mask = 0x2c,
	 .what = "clear ACS redirection at port 0000:22:00.0",
	 .why = TEXTS("packets then go straight across"),
	 .rules = TEXTS("acs-redirect"),
	 .cost = TEXTS("devices are no longer kept apart"),
	 .again_at_boot = true},
	{.kind = STEP_BAR_SIZE,
	 .target = "0000:41:00.0",
	 .at = "1",
	 .value = {256, 32768},
	 .what = "enlarge BAR1 of 0000:41:00.0",
	 .why = TEXTS("BAR1 then covers the memory"),
	 .rules = TEXTS("bar1-small")},
	{.kind = STEP_ATTRIBUTE,
	 .target = "sys/x/y",
	 .old = BYTES("0"),
	 .new = BYTES("1"),
	 .what = "set /sys/x/y",
	 .why = TEXTS("so")},
	{.kind = STEP_FILE,
	 .target = "etc/nccl.conf",
	 .old = BYTES(NCCL_OLD),
	 .new = BYTES(NCCL_NEW),
	 .what = "change /etc/nccl.conf",
	 .why = TEXTS("NCCL then uses P2P"),
	 .rules = TEXTS("nccl-p2p-level", "other-rule")},
	{.kind = STEP_TOOL, .undo_argv = make_initramfs, .what = "rebuild the initramfs"},
	{.kind = STEP_FILE,
	 .target = "etc/modprobe.d/onehop.conf",
	 .new = BYTES("options nvidia X=1\n"),
	 .mode = 0644,
	 .what = "write /etc/modprobe.d/onehop.conf",
	 .why = TEXTS("the driver then does"),
	 .rules = TEXTS("bar1-small"),
	 .reboot = true},
	{.kind = STEP_TOOL,
	 .argv = make_initramfs,
	 .what = "rebuild the initramfs",
	 .why = TEXTS("it holds the options"),
	 .rules = TEXTS("bar1-small"),
	 .reboot = true},
	{.kind = STEP_GENERATED,
	 .target = "boot/grub/grub.cfg",
	 .old = BYTES("menuentry\n"),
	 .argv = make_grub,
	 .check_argv = check_grub,
	 .what = "regenerate /boot/grub/grub.cfg",
	 .why = TEXTS("it holds the command line"),
	 .reboot = true},
};

#define STEPS (sizeof(every_kind) / sizeof(every_kind[0]))

static struct plan *plan_of_every_kind(void)
{
	struct plan *p = plan_new();

	p->steps = arena_alloc(p->arena, STEPS, sizeof(*p->steps));
	memcpy(p->steps, every_kind, sizeof(every_kind));
	p->step_n = STEPS;
	p->way_back = (const char **)way_back;
	p->way_back_n = 1;
	p->way_back_line = "choose the recovery entry; then `onehop undo`";
	*ARENA_PUSH(p->arena, p->notes, p->note_n) = "/etc/default/grub:3 says otherwise";
	*ARENA_PUSH(p->arena, p->manual, p->manual_n) =
		(struct plan_manual){"the firmware setup", "switch Above 4G Decoding on", {0}};
	texts_add(p->arena, &p->manual[0].rules, "bar1-firmware");
	return p;
}

static const struct machine live_machine,
	recorded_machine = {.recorded = true, .source_name = "x", .note = ""};

static char *plan_text(struct plan_report r)
{
	struct document *d = document_new();

	if (!r.machine)
		r.machine = &live_machine;
	report_plan(d, &r);
	return written(d);
}

/* ---- plans for people ---- */

static void steps_are_told_in_order(void **state)
{
	static const char *const order[] = {
		"Plan: 7 changes (reboot needed) and 1 thing to do yourself. Nothing has been changed yet.",
		"1. ",
		"Clear ACS redirection at port 0000:22:00.0",
		"[acs-redirect]",
		"ACS control 001d -> 0011; off: request redirect (RR)",
		"completion redirect (CR)",
		"Cost:",
		"no longer kept apart",
		"now, and at each boot",
		"2. ",
		"BAR1 256 MiB -> 32768 MiB",
		"now, until the next reboot",
		"3. ",
		"/sys/x/y: 0 -> 1",
		"4. ",
		"[nccl-p2p-level, other-rule]",
		"+ X=9",
		"If the machine does not start after the reboot",
		"choose the recovery entry",
		"5. ",
		"new file, permissions 0644",
		"+ options nvidia X=1",
		"after a reboot",
		"6. ",
		"update-initramfs -u",
		"7. ",
		"grub-mkconfig -o",
		"checked by grub-script-check",
		"Do these yourself:",
		"the firmware setup [bar1-firmware]",
		"Do:",
		"switch Above 4G",
		"note:",
		"grub:3 says otherwise",
		"Apply:",
		"sudo onehop fix --apply",
		"Undo:",
		"sudo onehop undo",
		NULL};
	struct plan *p = plan_of_every_kind();
	AUTO_FREE char *text =
		plan_text((struct plan_report){.plan = p, .apply_words = "onehop fix --apply"});

	(void)state;
	assert_order(text, order);
	assert_lacks(text, "8. "); /* the step that only runs when undone */
	plan_free(p);
}

/* Two lines of what stays the same stand on each side; the rest is left out. */
/* What a step before says is not said again, in whatever order. */
static void what_was_said_leaves_nothing(void **state)
{
	struct plan *p = plan_of_every_kind();
	AUTO_FREE char *text = NULL, *at_fault = NULL;

	(void)state;
	p->steps[3].why = TEXTS("BAR1 then covers the memory", "packets then go straight across");
	p->steps[3].cost = TEXTS("devices are no longer kept apart");
	text = plan_text((struct plan_report){.plan = p});
	at_fault = leftover(text);
	if (at_fault)
		fail_msg("%s\nin:\n%s", at_fault, text);
	assert_has(text, "Change /etc/nccl.conf [nccl-p2p-level, other-rule]\n       ");
	assert_null(strstr(strstr(text, "Cost:") + 1, "Cost:"));
	plan_free(p);
}

/* A unit serves many ports, each for a reason of its own. */
static void many_reasons_are_counted(void **state)
{
	struct plan *p = plan_of_every_kind();
	AUTO_FREE char *text = NULL, *all = NULL;

	(void)state;
	p->steps[3].why = (struct texts){0};
	for (char c = 'a'; c <= 'z'; c++)
		texts_add(p->arena, &p->steps[3].why, arena_printf(p->arena, "reason %c", c));
	text = plan_text((struct plan_report){.plan = p});
	assert_has(text, "reason f; and 20\n           more like these\n");
	all = plan_text((struct plan_report){.plan = p, .verbose = true});
	assert_has(all, "reason z");
	plan_free(p);
}

static void leftovers_are_found(void **state)
{
	static const char *const bad[] = {"Cost:    ...\n",    "fix it () now\n",
					  "  Why:\n",          "Plan: 1  change.\n",
					  "3.  enable x ,y\n", "sets `` there\n"};
	static const char *const good[] = {"1.  enable x (both ways)\n",
					   "    costs: it draws power; ...x\n",
					   "             + a  = \n", "\n\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO_FREE char *found = leftover(bad[i]);

		if (!found)
			fail_msg("nothing found in: %s", bad[i]);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		AUTO_FREE char *found = leftover(good[i]);

		assert_null(found);
	}
}

static void only_the_difference_is_shown(void **state)
{
	struct plan *p = plan_of_every_kind();
	AUTO_FREE char *text = plan_text((struct plan_report){.plan = p});

	(void)state;
	assert_has(text, "        B=2\n        C=3\n      + X=9\n        D=4\n        E=5\n");
	assert_lacks(text, "A=1");
	assert_lacks(text, "F=6");
	plan_free(p);
}

static void long_files_are_cut(void **state)
{
	struct plan *p = plan_of_every_kind();
	AUTO_STRBUF struct strbuf lines = {0};
	AUTO_FREE char *brief = NULL, *whole = NULL;

	(void)state;
	for (int i = 1; i <= 40; i++)
		strbuf_printf(&lines, "line %d\n", i);
	p->steps[5].new = (struct bytes){lines.text, lines.len};
	brief = plan_text((struct plan_report){.plan = p});
	whole = plan_text((struct plan_report){.plan = p, .verbose = true});
	assert_has(brief, "+ line 12\n");
	assert_lacks(brief, "+ line 13\n");
	assert_has(brief, "and 28 more lines (-v shows all)");
	assert_has(whole, "+ line 40\n");
	assert_has(whole, "Undo:  restore /etc/nccl.conf\n");
	assert_has(whole, "Undo:  remove /etc/modprobe.d/onehop.conf\n");
	assert_lacks(brief, "restore /etc/nccl.conf");
	plan_free(p);
}

/* Of a trial's entry what it starts, with its parameters, not the twenty lines around that. */
static void of_a_trials_entry_what_starts_is_shown(void **state)
{
	struct plan *p = plan_of_every_kind();
	AUTO_FREE char *brief = NULL, *whole = NULL;

	(void)state;
	p->steps[5].kind = STEP_BLOCK;
	p->steps[5].new = (struct bytes)BYTES(
		"### BEGIN onehop\nmenuentry 'Trial' {\n\tinsmod gzio\n\tset root='hd0'\n"
		"\tlinux\t/boot/vmlinuz quiet iommu=pt\n\tinitrd /boot/initrd\n}\n### END onehop\n");
	brief = plan_text((struct plan_report){.plan = p});
	whole = plan_text((struct plan_report){.plan = p, .verbose = true});
	assert_order(brief,
		     (const char *const[]){"+ menuentry 'Trial' {", "+ linux",
					   "/boot/vmlinuz quiet iommu=pt", "+ initrd /boot/initrd",
					   "and 5 more lines (-v shows all)", NULL});
	assert_lacks(brief, "insmod gzio");
	assert_has(whole, "insmod gzio");
	plan_free(p);
}

/* Two places that are far from each other, and where the second is. */
static void parts_that_differ_are_shown(void **state)
{
	static const char old[] = "1\n2\n3\n4\n5\n6\n7\n8\n9\nlinux quiet\n11\n",
			  new[] = "1\nlinux pt\n3\n4\n5\n6\n7\n8\n9\nlinux quiet pt\n11\n";
	const struct step s = {.kind = STEP_GENERATED,
			       .target = "boot/grub/grub.cfg",
			       .old = BYTES(old),
			       .new = BYTES(new)};
	struct document *d = document_new();
	AUTO_FREE char *text = NULL;

	(void)state;
	report_generated(d, &s, false);
	text = written(d);
	assert_has(text, "What changed in /boot/grub/grub.cfg:");
	assert_has(text, "        1\n      - 2\n      + linux pt\n"
			 "        3\n        4\n      @@ line 8 @@\n"
			 "        8\n        9\n      - linux quiet\n"
			 "      + linux quiet pt\n        11\n");
	assert_lacks(text, "6");
}

static void what_is_foreseen_is_shown(void **state)
{
	static const struct machine here = {.note = ""};
	struct plan *p = plan_of_every_kind();
	struct step *s = &p->steps[STEPS - 1];
	static const char *const dropped[] = {"set timeout=9", NULL};
	AUTO_FREE char *without = NULL, *with = NULL, *failed = NULL, *later = NULL, *fails = NULL;

	(void)state;
	without = plan_text((struct plan_report){.plan = p, .machine = &here});
	assert_order(without, (const char *const[]){"is shown to root: sudo onehop fix", NULL});
	s->foreseen = (struct bytes)BYTES("menuentry iommu=pt\n");
	s->dropped = dropped;
	with = plan_text((struct plan_report){.plan = p, .machine = &here, .is_root = true});
	assert_order(with, (const char *const[]){"What will change in /boot/grub/grub.cfg:",
						 "- menuentry + menuentry iommu=pt",
						 "Lines of /boot/grub/grub.cfg will be lost",
						 dropped[0], NULL});
	assert_lacks(with, "is shown to root");
	p->on_confirm = s;
	p->on_confirm_n = 1;
	p->step_n--;
	later = plan_text((struct plan_report){.plan = p, .machine = &here, .is_root = true});
	assert_order(later,
		     (const char *const[]){"When it is confirmed",
					   "- menuentry + menuentry iommu=pt", dropped[0], NULL});
	s->foreseen = (struct bytes){0};
	s->unforeseen = "no mounts";
	failed = plan_text((struct plan_report){.plan = p, .machine = &here, .is_root = true});
	assert_order(failed,
		     (const char *const[]){"is only known once it is made: no mounts", NULL});
	s->foreseen = s->old;
	s->fails = "/boot/grub/grub.cfg would not have iommu=pt";
	fails = plan_text((struct plan_report){.plan = p, .machine = &here, .is_root = true});
	assert_order(fails, (const char *const[]){"Nothing will change in /boot/grub/grub.cfg.",
						  "Fails: /boot/grub/grub.cfg would not", NULL});
	plan_free(p);
}

static void lost_lines_are_shown(void **state)
{
	static const char *const dropped[] = {"set timeout=9", "menuentry 'Mine' {", NULL};
	struct plan *p = plan_of_every_kind();
	const char *const *argv;
	static const char *const again[] = {"update-grub", NULL};
	struct document *d = document_new(), *empty = document_new(), *undone = document_new();
	AUTO_FREE char *text = NULL, *nothing = NULL, *undoing = NULL;

	(void)state;
	report_dropped(empty, p, false);
	nothing = written(empty);
	assert_string_equal(nothing, "");
	p->steps[STEPS - 1].dropped = dropped;
	report_dropped(d, p, false);
	text = written(d);
	assert_order(text,
		     (const char *const[]){"Lines of /boot/grub/grub.cfg will be lost", dropped[0],
					   dropped[1], "/etc/grub.d/40_custom", NULL});
	argv = p->steps[STEPS - 1].argv;
	/* The first of the two steps has no program of its own: it only makes the file again. */
	p->steps[STEPS - 1].argv = NULL;
	p->steps[STEPS - 1].undo_argv = again;
	report_dropped(undone, p, true);
	undoing = written(undone);
	assert_order(undoing, (const char *const[]){"will be lost when update-grub regenerates it",
						    dropped[1],
						    "keeps the present file in its journal", NULL});
	p->steps[STEPS - 1].argv = argv;
	assert_valid(report_plan_json(&(struct plan_report){.plan = p, .machine = &live_machine},
				      NULL),
		     "fix.schema.json", "lost lines");
	plan_free(p);
}

static void no_changes(struct rule_run *run, struct change_set *out)
{
	(void)run;
	(void)out;
}

static void end_says_how_to_go_on(void **state)
{
	struct plan *p = plan_of_every_kind(), *none = plan_new();
	AUTO_FREE char *root = plan_text((struct plan_report){.plan = p,
							      .apply_words = "onehop fix --apply",
							      .is_root = true});
	AUTO_FREE char *recorded =
		plan_text((struct plan_report){.plan = p, .machine = &recorded_machine});
	AUTO_FREE char *nothing = plan_text((struct plan_report){.plan = none, .judged = true});
	AUTO_FREE char *unjudged = plan_text((struct plan_report){.plan = none});

	(void)state;
	assert_has(root, "Apply:  onehop fix --apply\n");
	assert_lacks(root, "sudo");
	assert_has(recorded, "To apply a plan, run onehop fix on the machine itself.");
	assert_has(nothing, "There is nothing to fix.\n");
	assert_has(unjudged, "nothing could be judged");
	assert_true(plan_has_work(p));
	assert_false(plan_has_work(none));
	assert_int_equal(plan_doing_steps(p), 7);
	plan_free(p);
	plan_free(none);
}

/* What nobody does and nobody could see is not called right. */
static void what_is_not_done_is_told(void **state)
{
	static const struct rule acs = {.id = "acs-redirect", .propose = no_changes},
				 log = {.id = "module-refused"};
	struct outcome outcomes[] = {{&acs, VERDICT_UNKNOWN, "2 ports", "2 ports: needs root",
				      true},
				     {&log, VERDICT_UNKNOWN, "the log", "the log: needs root",
				      true},
				     {&acs, VERDICT_OK, NULL, NULL, false}};
	const struct diagnosis d = {.outcomes = outcomes, .outcome_n = 3};
	const char *const names[] = {"acs-redirect"};
	struct plan *none = plan_new(), *left = plan_new();
	struct plan_report r = {.plan = none,
				.machine = &live_machine,
				.diagnosis = &d,
				.judged = true};
	AUTO_FREE char *all = plan_text(r), *named = NULL, *locked = NULL;

	(void)state;
	assert_has(all, "not judged without root: acs-redirect\n");
	assert_has(all, "Nothing to fix in what could be judged.");
	r.rules = names;
	r.rule_n = 1;
	named = plan_text(r);
	assert_has(named, "acs-redirect could not be judged: 2 ports: needs root\n");
	assert_has(named, "Nothing is planned: some of the named rules");
	*ARENA_PUSH(left->arena, left->left_out, left->left_out_n) =
		(struct plan_left_out){TEXTS("0000:22:00.0: ACS control 001d -> 0011"),
				       "locked down", TEXTS("acs-redirect")};
	r.plan = left;
	locked = plan_text(r);
	assert_has(
		locked,
		"Not done:\n  -  0000:22:00.0: ACS control 001d -> 0011 [acs-redirect]\n     Why:  "
		"locked down\n");
	assert_has(locked, "Nothing is changed: see the reasons below.");
	assert_lacks(locked, "Everything is already set");
	assert_valid(report_plan_json(&r, NULL), "fix.schema.json", "left out, not judged");
	plan_free(none);
	plan_free(left);
}

/* One entry for what is alike, with the devices that it is about. */
static void what_only_may_help_is_offered(void **state)
{
	struct plan *p = plan_new();
	struct change_set set = {.arena = p->arena};
	static const char *const ports[] = {"0000:00:01.1", "0000:00:03.1", "0000:00:05.1",
					    "0000:00:07.1", "0000:40:01.1"};
	AUTO_FREE char *text = NULL;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		change_add(&set, &(struct change){.kind = CHANGE_ACS,
						  .lifetime = CHANGE_LASTING,
						  .target = ports[i],
						  .value = {0x1d, 0x11},
						  .rules = TEXTS("acs-root-port"),
						  .reason = TEXTS("hangs were cured so"),
						  .opt_in = true});
	text = plan_text((struct plan_report){.plan = p, .changes = &set});
	assert_has(text, "onehop fix acs-root-port (0000:00:01.1, 0000:00:03.1,");
	assert_has(text, "and 1 more): hangs were cured");
	assert_null(strstr(strstr(text, "acs-root-port") + 1, "acs-root-port"));
	plan_free(p);
}

/* ---- fixes of the journal ---- */

static struct journal_entry entry_of(struct plan *p, unsigned number, enum fix_state state)
{
	struct journal_entry e = {.number = number,
				  .state = state,
				  .was_applied = state != FIX_APPLYING,
				  .date = "2026-11-21T23:05:00Z",
				  .boot_id = THIS_BOOT,
				  .last_boot_id = THIS_BOOT,
				  .plan = p};

	e.marks = arena_alloc(p->arena, p->step_n, sizeof(*e.marks));
	e.errors = arena_alloc(p->arena, p->step_n, sizeof(*e.errors));
	return e;
}

static void interrupted_fix_comes_first(void **state)
{
	static const char *const order[] = {"Fix 2 of 2026-11-21T23:05:00Z is not finished",
					    "onehop undo 2", "Plan: ", NULL};
	struct plan *p = plan_of_every_kind();
	const struct journal_entry journal[] = {entry_of(p, 1, FIX_APPLIED),
						entry_of(p, 2, FIX_APPLYING)};
	AUTO_FREE char *text =
		plan_text((struct plan_report){.plan = p, .journal = journal, .journal_n = 2});

	(void)state;
	assert_order(text, order);
	assert_lacks(text, "Fix 1 ");
	plan_free(p);
}

/*
 * What is read has the changes of the fix, and the next boot has not: "nothing to fix" would be
 * half the truth.
 */
static void an_undo_that_waits_for_the_reboot_comes_first(void **state)
{
	static const char *const order[] = {
		"Fix 2 is undone, but some of its changes stay in effect",
		"reboot, then run onehop fix again", "Plan: ", NULL};
	struct plan *p = plan_of_every_kind();
	struct journal_entry e = entry_of(p, 2, FIX_UNDONE);
	struct plan_report r = {.plan = p, .journal = &e, .journal_n = 1, .boot_id = THIS_BOOT};
	AUTO_FREE char *waits = NULL, *over = NULL;

	(void)state;
	snprintf(e.boot_id, sizeof(e.boot_id), "%s", OTHER_BOOT);
	waits = plan_text(r);
	assert_order(waits, order);
	r.boot_id = "0b6f8f4e-7777-4222-8333-444455556666"; /* the one after */
	over = plan_text(r);
	assert_lacks(over, "Fix 2 ");
	plan_free(p);
}

static void undo_goes_backwards(void **state)
{
	static const char *const order[] = {
		"Fix 3 of ",
		"[acs-redirect, bar1-small",
		"1. ",
		"Restore /boot/grub/grub.cfg (was changed since then: it is",
		"2. ",
		"Remove /etc/modprobe.d/onehop.conf",
		"3. ",
		"Rebuild the initramfs",
		"Runs: update-initramfs -u",
		"4. ",
		"Restore /etc/nccl.conf (was changed by something else",
		"5. ",
		"Write 0 to /sys/x/y",
		"6. ",
		"Set BAR1 of 0000:41:00.0 back to 256 MiB",
		"7. ",
		"Set ACS control of 0000:22:00.0 back to 001d",
		NULL};
	struct plan *p = plan_of_every_kind();
	const struct journal_entry e = entry_of(p, 3, FIX_APPLIED);
	enum step_state look[STEPS] = {STEP_IS_NEW};
	char *now[STEPS] = {0};
	struct document *d = document_new();
	AUTO_FREE char *text = NULL;

	(void)state;
	for (size_t i = 0; i < STEPS; i++)
		look[i] = p->steps[i].kind == STEP_GENERATED ? STEP_IS_OTHER : STEP_IS_NEW;
	look[3] = STEP_IS_OTHER;
	report_undo_plan(d, &(struct fix_outcome){.entry = &e, .look = look, .now = now}, false);
	text = written(d);
	assert_order(text, order);
	assert_lacks(text, "8. ");
	assert_lacks(text, "Nothing was changed"); /* a question may follow */
	plan_free(p);
}

static void reboot_is_due_until_it_was_seen(void **state)
{
	struct plan *p = plan_of_every_kind();
	struct journal_entry e = entry_of(p, 1, FIX_APPLIED);

	(void)state;
	assert_true(fix_reboot_due(&e, THIS_BOOT));
	assert_false(fix_reboot_due(&e, OTHER_BOOT));
	assert_false(fix_reboot_due(&e, ""));
	/* Applied and taken back before anything was in force. */
	e.state = FIX_UNDONE;
	assert_false(fix_reboot_due(&e, THIS_BOOT));
	/* Taken back when it was. */
	snprintf(e.boot_id, sizeof(e.boot_id), "%s", OTHER_BOOT);
	assert_true(fix_reboot_due(&e, THIS_BOOT));
	p->step_n = 4; /* none of these needs one */
	e.state = FIX_APPLIED;
	assert_false(fix_reboot_due(&e, THIS_BOOT));
	plan_free(p);
}

static void history_is_a_table(void **state)
{
	struct plan *p = plan_of_every_kind();
	const struct journal_entry journal[] = {entry_of(p, 1, FIX_UNDONE),
						entry_of(p, 2, FIX_APPLIED),
						entry_of(p, 3, FIX_UNDOING)};
	const struct history_report r = {.entries = journal, .n = 3, .boot_id = THIS_BOOT};
	static const char *const order[] = {"fix",
					    "date",
					    "state",
					    "steps",
					    "for",
					    "1 ",
					    "2026-11-21T23:05:00Z",
					    "undone",
					    "7",
					    "acs-redirect, bar1-small",
					    "2 ",
					    "applied, reboot due",
					    "3 ",
					    "undoing, not finished",
					    NULL};
	struct document *d = document_new();
	AUTO_FREE char *text = NULL, *none = NULL;

	(void)state;
	report_history(d, &r);
	text = written(d);
	assert_order(text, order);
	d = document_new();
	report_history(d, &(struct history_report){.boot_id = ""});
	none = written(d);
	assert_string_equal(none, "onehop has not changed anything here.\n");
	plan_free(p);
}

static struct journal_entry damaged_of(struct plan *p, unsigned number)
{
	return (struct journal_entry){.number = number,
				      .plan = p,
				      .damage = -EPROTO,
				      .damaged = "fixes/2/plan.json is no JSON"};
}

/* One that failed is not one that was taken back on purpose; one that is damaged hides no other. */
static void history_tells_how_it_ended(void **state)
{
	static const char *const order[] = {"1 ",
					    "failed, undone",
					    "2 ",
					    "damaged",
					    "3 ",
					    "applied",
					    "The journal of fix 2 is damaged: fixes/2",
					    NULL};
	static const char *const whole[] = {"Fix 2: damaged", "fixes/2/plan.json is no JSON.",
					    "Until this is repaired, nothing is applied",
					    "in /var/lib/onehop/fixes/2 from a backup", NULL};
	struct plan *p = plan_of_every_kind(), *none = plan_new();
	struct journal_entry all[] = {entry_of(p, 1, FIX_UNDONE), damaged_of(none, 2),
				      entry_of(p, 3, FIX_APPLIED)};
	const struct history_report r = {.entries = all, .n = 3, .boot_id = OTHER_BOOT};
	struct document *d = document_new();
	AUTO_FREE char *text = NULL, *one = NULL, *plan = NULL;
	json_t *json, *fixes;

	(void)state;
	all[0].was_applied = false;
	json = report_history_json(&r);
	fixes = json_object_get(json, "fixes");
	report_history(d, &r);
	text = written(d);
	assert_order(text, order);
	d = document_new();
	report_history_entry(d, &r, 1);
	one = written(d);
	assert_order(one, whole);
	for (size_t i = 0; i < 3; i++) {
		static const char *const words[] = {"failed-undone", "damaged", "applied"};
		const json_t *fix = json_array_get(fixes, i);

		assert_string_equal(json_string_value(json_object_get(fix, "state")), words[i]);
		assert_int_equal(json_is_null(json_object_get(fix, "damage")), i != 1);
	}
	assert_valid(json, "history.schema.json", "damaged");
	plan = plan_text((struct plan_report){.plan = p, .journal = all, .journal_n = 3});
	assert_has(plan, "The journal of fix 2 is damaged: ");
	assert_lacks(plan, "Fix 1 ");
	plan_free(p);
	plan_free(none);
}

/* How far a trial is, and what to do about it. */
static void a_trial_is_told(void **state)
{
	static const struct {
		enum trial trial;
		bool displaced;
		const char *history, *plan;
	} rows[] = {
		{TRIAL_WAITS, false, "on trial, starts at the next boot",
		 "The next boot tries the kernel parameters of fix 1"},
		{TRIAL_WAITS, true, "on trial, but no longer set for the next boot",
		 "Fix 1 is on trial, but the boot loader is no longer set"},
		{TRIAL_RUNS, false,
		 "on trial, in effect in this boot (to keep it: onehop fix --confirm)",
		 "This boot tries the kernel parameters of fix 1"},
		{TRIAL_OVER, false, "on trial, not confirmed", "The trial boot of fix 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct plan *p = plan_of_every_kind();
		struct journal_entry e = entry_of(p, 1, FIX_ON_TRIAL);
		const struct history_report r = {.entries = &e, .n = 1, .boot_id = OTHER_BOOT};
		struct document *d = document_new();
		AUTO_FREE char *text = NULL, *plan = NULL;
		json_t *json;

		e.trial = rows[i].trial;
		e.displaced = rows[i].displaced;
		report_history(d, &r);
		text = written(d);
		assert_has(text, rows[i].history);
		json = report_history_json(&r);
		assert_string_equal(json_string_value(json_object_get(
					    json_array_get(json_object_get(json, "fixes"), 0),
					    "state")),
				    "on-trial");
		assert_valid(json, "history.schema.json", "on trial");
		plan = plan_text((struct plan_report){.plan = p, .journal = &e, .journal_n = 1});
		assert_has(plan, rows[i].plan);
		json = report_plan_json(&(struct plan_report){.plan = p,
							      .machine = &live_machine,
							      .journal = &e,
							      .journal_n = 1},
					NULL);
		assert_true((json_array_size(json_object_get(json, "steps")) > 0) ==
			    (e.trial == TRIAL_OVER));
		assert_valid(json, "fix.schema.json", "on trial");
		/* One state, and no plan that contradicts it. */
		assert_true((strstr(plan, "Plan: ") != NULL) == (e.trial == TRIAL_OVER));
		plan_free(p);
	}
}

/* ---- while it is carried out ---- */

static void tell_news(struct fix_lines *l, enum fix_event event, const struct journal_entry *e,
		      size_t index, struct strbuf *out)
{
	const struct fix_news n = {
		.event = event, .entry = e, .plan = e->plan, .index = index, .text = NULL};

	report_fix_news(l, &n, out);
}

/* Two parts, each with its heading, and each counted from 1 to its own end. */
static void confirming_is_counted_by_itself(void **state)
{
	struct plan *p = plan_of_every_kind();
	struct journal_entry e = entry_of(p, 4, FIX_APPLYING);
	AUTO_STRBUF struct strbuf out = {0};
	struct fix_lines l = {0};

	(void)state;
	p->steps[0].trial = p->steps[3].trial = true;
	e.added_at = 5;
	for (size_t i = 5; i < STEPS; i++) {
		tell_news(&l, FIX_STEP_START, &e, i, &out);
		tell_news(&l, FIX_STEP_DONE, &e, i, &out);
	}
	for (size_t i = STEPS; i-- > 0;)
		if (p->steps[i].trial) {
			tell_news(&l, FIX_UNDO_START, &e, i, &out);
			tell_news(&l, FIX_UNDO_DONE, &e, i, &out);
		}
	assert_string_equal(strbuf_str(&out),
			    "Making the kernel parameters of fix 4 permanent\n"
			    "1/3 write /etc/modprobe.d/onehop.conf ... done\n"
			    "2/3 rebuild the initramfs ... done\n"
			    "3/3 regenerate /boot/grub/grub.cfg ... done\n"
			    "Ending the trial of fix 4\n"
			    "1/2 restore /etc/nccl.conf ... done\n"
			    "2/2 set ACS control of 0000:22:00.0 back to 001d ... done\n");
	plan_free(p);
}

/* A fix's own steps have no heading; its undo has, and says what it does, not "undo:". */
static void undoing_is_said_in_its_own_words(void **state)
{
	static const struct {
		enum step_kind kind;
		const char *what, *undo;
	} rows[] = {
		{STEP_TOOL, "enable onehop-acs.service", "disable onehop-acs.service"},
		{STEP_TOOL, "enable x.service, and start it",
		 "undo: enable x.service, and start it"},
		{STEP_WORDS, "add iommu=pt a=b to the kernel's command line with rpm-ostree",
		 "remove iommu=pt a=b from the kernel's command line with rpm-ostree"},
		{STEP_TOOL, "load nvidia-peermem", "undo: load nvidia-peermem"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct step s = {.kind = rows[i].kind,
				       .what = rows[i].what,
				       .argv = make_initramfs,
				       .undo_argv = make_initramfs};
		AUTO_STRBUF struct strbuf b = {0};

		step_undo_words(&s, &b);
		assert_string_equal(strbuf_str(&b), rows[i].undo);
	}
}

/* What is confirmed later is listed, and that there is no trial is said with its reason. */
static void a_plan_with_a_trial(void **state)
{
	struct plan *p = plan_of_every_kind();
	AUTO_FREE char *with = NULL, *without = NULL, *unseen = NULL, *by_hand = NULL;

	(void)state;
	p->no_trial = "grubenv is on btrfs";
	without = plan_text((struct plan_report){.plan = p});
	assert_has(without, "no trial boot: grubenv is on btrfs");
	p->trial_unseen = true; /* root may find that there can be one */
	unseen = plan_text((struct plan_report){.plan = p});
	assert_order(unseen, (const char *const[]){"whether a trial boot is possible is unknown",
						   "sudo onehop fix shows it", NULL});
	assert_lacks(unseen, "no trial boot");
	assert_lacks(unseen, "permanent from the next boot on");
	p->no_trial = NULL;
	p->on_confirm = p->steps;
	p->on_confirm_n = p->step_n;
	p->steps[0].trial = true;
	with = plan_text((struct plan_report){.plan = p});
	assert_has(with, "; the next boot tries the kernel");
	assert_has(with, "The next boot tries the kernel parameters.");
	assert_has(with, "automatically");
	assert_has(with, "Without confirmation the boot after it uses the old parameters.");
	p->unconfirmed = "systemd does not run here";
	by_hand = plan_text((struct plan_report){.plan = p});
	assert_lacks(by_hand, "automatically");
	assert_order(by_hand, (const char *const[]){"no systemd unit can do it",
						    "(systemd does not run here)", NULL});
	plan_free(p);
}

static void one_fix_is_shown_whole(void **state)
{
	static const char *const order[] = {"Fix 4 of",
					    "applying, not finished",
					    "1. ",
					    "State:",
					    "done",
					    "4. ",
					    "State: could not be undone",
					    "7. ",
					    "State: failed",
					    "Error:",
					    "no space left",
					    "Printed:",
					    "cannot write",
					    "8. ",
					    "onehop undo 4",
					    "/var/lib/onehop/fixes/4",
					    NULL};
	struct plan *p = plan_of_every_kind();
	struct journal_entry e = entry_of(p, 4, FIX_APPLYING);
	json_t *log = json_pack("[{s:i, s:s, s:s}]", "step", 6, "mark", "failed", "output",
				"cannot write\n");
	const struct history_report r = {.entries = &e, .n = 1, .boot_id = THIS_BOOT, .logs = &log};
	struct document *d = document_new();
	AUTO_FREE char *text = NULL;

	(void)state;
	e.marks[0] = e.marks[4] = MARK_DONE;
	e.marks[3] = MARK_UNDO_FAILED;
	e.marks[6] = MARK_FAILED;
	e.errors[6] = "no space left";
	report_history_entry(d, &r, 0);
	text = written(d);
	assert_order(text, order);
	/* "done" would be read as what undoing does. */
	assert_has(text, "When undone: rebuild the initramfs\n    Undo:");
	assert_valid(report_history_json(&r), "history.schema.json", "history");
	json_decref(log);
	plan_free(p);
}

static void what_was_interrupted_says_so(void **state)
{
	struct plan *p = plan_of_every_kind();
	struct journal_entry e = entry_of(p, 4, FIX_UNDONE);
	const struct history_report r = {.entries = &e, .n = 1, .boot_id = THIS_BOOT};
	struct document *d = document_new(), *other = document_new();
	AUTO_FREE char *text = NULL, *failed = NULL;

	(void)state;
	e.was_applied = false;
	report_history_entry(d, &r, 0);
	text = written(d);
	assert_has(text, "It was interrupted");
	e.errors[6] = "no space left";
	report_history_entry(other, &r, 0);
	failed = written(other);
	assert_lacks(failed, "interrupted");
	plan_free(p);
}

/* ---- the outcome ---- */

static char *outcome_text(const struct fix_outcome *o)
{
	struct document *d = document_new();

	report_fix_outcome(d, o);
	return written(d);
}

/* What a person may have done by hand comes behind what is due now. */
static void a_reboot_is_said_before_what_was_left(void **state)
{
	static const char *const order[] = {"Fix 3 is undone.", "Reboot to complete",
					    "The fix asked you to do this", NULL};
	struct plan *p = plan_of_every_kind();
	const struct journal_entry e = entry_of(p, 3, FIX_UNDONE);
	const struct fix_outcome o = {
		.result = FIX_DONE, .undo = true, .number = 3, .reboot = true, .entry = &e};
	AUTO_FREE char *text = NULL, *other = outcome_text(&o);

	(void)state;
	/* Of another rule than the steps: it was no part of what is undone. */
	assert_lacks(other, "asked you");
	p->manual[0].rules = (struct texts)TEXTS("bar1-small");
	text = outcome_text(&o);
	assert_order(text, order);
	plan_free(p);
}

/* --now is advised against only where it was given: NixOS is told by hand what lasts. */
static void what_passes_says_how_it_stays(void **state)
{
	static const struct {
		bool only_now, manual;
		const char *says;
	} rows[] = {
		{true, true,
		 "This lasts until the next reboot. To keep it: onehop undo 3, then fix again "
		 "without --now."},
		{false, true,
		 "This lasts until the next reboot. To keep it, do what \"Do these yourself\" lists above."},
		{false, false, "This lasts until the next reboot."},
	};
	struct step step = {.kind = STEP_ATTRIBUTE,
			    .target = "sys/x",
			    .what = "write",
			    .old = {"auto", 4},
			    .new = {"on", 2}};
	struct plan_manual manual = {"ACS after a reboot", "boot.kernelParams", {0}};
	struct arena *arena = arena_new();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct plan p = {.arena = arena,
				 .steps = &step,
				 .step_n = 1,
				 .manual = &manual,
				 .manual_n = rows[i].manual};
		const struct journal_entry e = entry_of(&p, 3, FIX_APPLIED);
		const struct fix_outcome o = {.result = FIX_DONE,
					      .number = 3,
					      .entry = &e,
					      .reboot = true,
					      .only_now = rows[i].only_now};
		AUTO_FREE char *text = outcome_text(&o), *one_line = flat(text);

		assert_has(one_line, rows[i].says);
	}
	arena_free(arena);
}

static void outcomes_say_what_holds(void **state)
{
	static const struct {
		struct fix_outcome outcome;
		const char *word, *part;
	} rows[] = {
		{{.result = FIX_DONE, .number = 3},
		 "done",
		 "Done as fix 3. To undo it: onehop undo 3"},
		{{.result = FIX_DONE, .number = 3, .root = "/mnt/a b"},
		 "done",
		 "onehop undo 3 --root '/mnt/a b'"},
		{{.result = FIX_DONE, .number = 3, .reboot = true}, "done", "Reboot for all"},
		{{.result = FIX_DONE, .undo = true, .number = 2}, "done", "Fix 2 is undone."},
		{{.result = FIX_NOTHING}, "nothing", "Nothing was changed"},
		{{.result = FIX_DRIFT}, "drift", "Nothing was changed"},
		{{.result = FIX_ROLLED_BACK, .number = 3}, "taken-back", "nothing remains changed"},
		{{.result = FIX_NOT_ROLLED_BACK, .number = 3}, "stuck", "then: onehop undo 3"},
		/* A trial is over then, whatever ended its confirmation. */
		{{.result = FIX_ROLLED_BACK, .confirmed = true, .number = 3},
		 "taken-back",
		 "Fix 3 is not confirmed: a step failed, and the whole fix was undone. Its trial is over: the next boot is without its kernel parameters."},
		{{.result = FIX_NOT_ROLLED_BACK, .confirmed = true, .number = 3},
		 "stuck",
		 "Fix 3 is not confirmed: a step failed, and its trial is over. Fix 3 could not be undone completely."},
		{{.result = FIX_DRIFT, .confirmed = true}, "drift", "onehop fix --confirm"},
		{{.error = -EBUSY, .sentence = "another onehop"}, "refused", ""},
		{{.result = FIX_DONE, .was_signalled = true}, "done", "A signal to stop came"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_FREE char *text = outcome_text(&rows[i].outcome), *one_line = flat(text);

		assert_string_equal(fix_outcome_word(&rows[i].outcome), rows[i].word);
		assert_has(one_line, rows[i].part);
	}
}

/* ---- JSON ---- */

static void json_fits_its_schema(void **state)
{
	struct plan *p = plan_of_every_kind();
	const struct journal_entry e = entry_of(p, 2, FIX_APPLYING);
	const struct step_event told[] = {{2, 0, FIX_STEP_DONE, "a", NULL},
					  {2, 1, FIX_STEP_FAILED, "b", "why"}};
	const struct fix_outcome o = {
		.result = FIX_ROLLED_BACK, .number = 2, .entry = &e, .events = told, .event_n = 2};
	const struct fix_outcome refused = {.error = -EBUSY, .sentence = "another onehop"};
	const struct plan_report r = {.plan = p,
				      .machine = &live_machine,
				      .journal = &e,
				      .journal_n = 1};
	json_t *json = report_plan_json(&r, &o),
	       *step = json_array_get(json_object_get(json, "steps"), 3);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(step, "old")), NCCL_OLD);
	assert_string_equal(json_string_value(json_object_get(step, "new")), NCCL_NEW);
	assert_int_equal(json_array_size(json_object_get(step, "rules")), 2);
	assert_int_equal(json_array_size(json_object_get(json, "steps")), STEPS);
	assert_valid(json, "fix.schema.json", "plan and result");
	assert_valid(report_plan_json(&r, NULL), "fix.schema.json", "plan");
	assert_valid(report_plan_json(&r, &refused), "fix.schema.json", "refused");
	assert_valid(report_undo_json(&o), "undo.schema.json", "undo");
	assert_valid(report_undo_json(&refused), "undo.schema.json", "undo refused");
	plan_free(p);
}

/* ---- recorded machines ---- */

static struct plan *plan_for(struct source *s, const struct machine *m, struct change_set *changes)
{
	const struct propose_options all = {0};
	const struct plan_request request = {.machine = m, .source = s, .lifetime = CHANGE_LASTING};
	struct topology *t = topology_new(m);
	struct diagnosis *d = diagnose(t);
	struct plan *p;

	diagnosis_propose(d, &all, changes);
	p = plan_make(&request, changes);
	diagnosis_free(d);
	topology_free(t);
	return p;
}

/* Whoever reads a plan wants to know what, why, and where to. */
static void assert_complete(const struct plan *p, const char *what)
{
	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *s = &p->steps[i];

		if (!s->what || !*s->what || (step_does(s) && !s->why.n))
			fail_msg("%s: step %zu does not say what or why", what, i);
		if (s->kind == STEP_FILE && (!s->target || s->target[0] == '/'))
			fail_msg("%s: step %zu has no path below the root", what, i);
		if (!s->argv && !s->undo_argv &&
		    (s->kind == STEP_TOOL || s->kind == STEP_GENERATED))
			fail_msg("%s: step %zu runs nothing", what, i);
	}
	for (size_t i = 0; i < p->manual_n; i++)
		if (!*p->manual[i].what || !*p->manual[i].how)
			fail_msg("%s: what to do by hand is not said", what);
	if (plan_needs_reboot(p) && !(p->way_back_n && p->way_back_line))
		fail_msg("%s: a reboot, and no way back", what);
}

static size_t plan_recording(const char *path)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};
	struct change_set changes = {.arena = arena_new()};
	AUTO_FREE char *text = NULL;
	struct source *s;
	struct machine *m;
	struct plan *p;
	size_t n;

	assert_int_equal(open_recording(path, &s), 0);
	m = machine_read(s, &all);
	p = plan_for(s, m, &changes);
	assert_complete(p, path);
	n = p->step_n;
	text = plan_text((struct plan_report){.plan = p, .changes = &changes, .machine = m});
	assert_has(text, n ? "To apply a plan, run onehop fix on the machine itself." : ".\n");
	assert_valid(report_plan_json(
			     &(struct plan_report){.plan = p, .changes = &changes, .machine = m},
			     NULL),
		     "fix.schema.json", path);
	plan_free(p);
	arena_free(changes.arena);
	machine_free(m);
	source_free(s);
	return n;
}

static void recorded_machines_have_whole_plans(void **state)
{
	DIR *folder = opendir("tests/machines");
	struct dirent *e;
	size_t steps = 0;

	(void)state;
	assert_non_null(folder);
	while ((e = readdir(folder))) {
		AUTO_FREE char *path = xprintf("tests/machines/%s", e->d_name);
		struct stat st;

		if (e->d_name[0] != '.' && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			steps += plan_recording(path);
	}
	closedir(folder);
	assert_true(steps > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_told_in_order),
		cmocka_unit_test(what_was_said_leaves_nothing),
		cmocka_unit_test(many_reasons_are_counted),
		cmocka_unit_test(leftovers_are_found),
		cmocka_unit_test(only_the_difference_is_shown),
		cmocka_unit_test(long_files_are_cut),
		cmocka_unit_test(of_a_trials_entry_what_starts_is_shown),
		cmocka_unit_test(parts_that_differ_are_shown),
		cmocka_unit_test(what_was_interrupted_says_so),
		cmocka_unit_test(what_is_foreseen_is_shown),
		cmocka_unit_test(lost_lines_are_shown),
		cmocka_unit_test(end_says_how_to_go_on),
		cmocka_unit_test(what_is_not_done_is_told),
		cmocka_unit_test(what_only_may_help_is_offered),
		cmocka_unit_test(interrupted_fix_comes_first),
		cmocka_unit_test(an_undo_that_waits_for_the_reboot_comes_first),
		cmocka_unit_test(undo_goes_backwards),
		cmocka_unit_test(reboot_is_due_until_it_was_seen),
		cmocka_unit_test(history_is_a_table),
		cmocka_unit_test(history_tells_how_it_ended),
		cmocka_unit_test(a_trial_is_told),
		cmocka_unit_test(confirming_is_counted_by_itself),
		cmocka_unit_test(undoing_is_said_in_its_own_words),
		cmocka_unit_test(a_plan_with_a_trial),
		cmocka_unit_test(one_fix_is_shown_whole),
		cmocka_unit_test(a_reboot_is_said_before_what_was_left),
		cmocka_unit_test(what_passes_says_how_it_stays),
		cmocka_unit_test(outcomes_say_what_holds),
		cmocka_unit_test(json_fits_its_schema),
		cmocka_unit_test(recorded_machines_have_whole_plans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
