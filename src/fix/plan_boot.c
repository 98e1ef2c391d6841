/* SPDX-License-Identifier: Apache-2.0 */
/* Words for the kernel's command line: who changes it here, in a table by boot loader. */
#include "fix/make_plan_impl.h"

#include <string.h>

/* ---- the words ---- */

const char *plan_words(struct planner *p)
{
	AUTO_STRBUF struct strbuf text = {0};

	for (size_t i = 0; i < p->word_n; i++)
		strbuf_printf(&text, "%s%s", i ? " " : "", p->words[i].word);
	return arena_strdup(p->a, strbuf_str(&text));
}

struct purpose plan_words_purpose(struct planner *p)
{
	struct purpose all = {.reboot = true};

	for (size_t i = 0; i < p->word_n; i++)
		purpose_join(p, &all, &p->words[i].purpose);
	return all;
}

void plan_words_want(struct planner *p)
{
	for (size_t i = 0; i < p->word_n; i++)
		plan_want(p, "kernel-parameter", "%s", p->words[i].word);
}

void plan_word_drop(struct planner *p, size_t i)
{
	p->word_n--;
	memmove(&p->words[i], &p->words[i + 1], (p->word_n - i) * sizeof(*p->words));
}

void plan_word_add(struct planner *p, const char *word, const struct purpose *purpose)
{
	struct wanted_word *w = p->words;

	for (size_t i = 0; i < p->word_n; i++)
		if (strcmp(w[i].word, word) == 0) {
			purpose_join(p, &w[i].purpose, purpose);
			return;
		}
	w = ARENA_PUSH(p->a, p->words, p->word_n);
	w->word = arena_strdup(p->a, word);
	purpose_join(p, &w->purpose, purpose);
}

/* No blank, and nothing that a shell, GRUB's script or systemd would take for something else. */
static bool is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.,:;=/@+-";

	return *word && !word[strspn(word, plain)];
}

void plan_parameter(struct planner *p, const struct change *c)
{
	struct purpose purpose = {0};

	if (!is_plain(c->target)) {
		plan_change_by_hand(p, c, "add this to the kernel's command line: %s", c->target);
		return;
	}
	purpose_add(p, &purpose, c);
	plan_word_add(p, c->target, &purpose);
}

/* ---- by a program that takes the words ---- */

static const char *const *ostree_argv(struct planner *p, const char *option)
{
	const char **argv = NULL;
	size_t n = 0;

	*ARENA_PUSH(p->a, argv, n) = "rpm-ostree";
	*ARENA_PUSH(p->a, argv, n) = "kargs";
	for (size_t i = 0; i < p->word_n; i++)
		*ARENA_PUSH(p->a, argv, n) = arena_printf(p->a, "%s=%s", option, p->words[i].word);
	*ARENA_PUSH(p->a, argv, n) = NULL;
	return argv;
}

static void way_back(struct planner *p, const char *const *undo_argv)
{
	AUTO_STRBUF struct strbuf line = {0};

	step_command_line(undo_argv, &line);
	plan_way_boot(p,
		      "press e on the entry in the boot menu and delete %s from the line that "
		      "starts with linux or options, for that boot only",
		      plan_words(p));
	plan_way_without(p, "`%s`", line.text);
}

void plan_words_tool(struct planner *p, const struct tool *t)
{
	const struct purpose purpose = plan_words_purpose(p);

	plan_tool(p, PHASE_BOOT, t, &purpose, "add %s to the kernel's command line with %s",
		  plan_words(p), t->argv[0]);
	plan_words_want(p);
	way_back(p, t->undo_argv);
}

static void plan_ostree(struct planner *p)
{
	const struct tool tool = {
		.argv = ostree_argv(p, "--append-if-missing"),
		.undo_argv = ostree_argv(p, "--delete-if-present"),
		.deadline_s = 600,
	};

	plan_words_tool(p, &tool);
}

/* ---- by hand ---- */

static bool is_uki(struct planner *p)
{
	return !p->request->image && fact_is(p->m->kernel.boot_loader, BOOT_UKI);
}

static void uki_by_hand(struct planner *p)
{
	plan_manual(
		p, plan_words_purpose(p).rules, "kernel parameters",
		"the command line is inside the signed kernel image (UKI): add to "
		"/etc/kernel/cmdline, without quotes, %s; build and sign the image again as it was "
		"built, and reboot",
		plan_words(p));
}

static bool is_any(struct planner *p)
{
	(void)p;
	return true;
}

static void any_by_hand(struct planner *p)
{
	const char *words = plan_words(p);

	plan_manual(
		p, plan_words_purpose(p).rules, "kernel parameters",
		"onehop does not know this boot loader: add to the kernel's command line in its "
		"configuration %s%s, and reboot",
		words, strchr(words, ';') ? " (in a script, in single quotes)" : "");
}

/* ---- which ---- */

/* The first that is here. A ; would end the command in entries that GRUB makes a script of. */
static const struct boot_way ways[] = {
	{"unified kernel image", is_uki, uki_by_hand, .by_hand = true},
	{"rpm-ostree", plan_is_ostree, plan_ostree},
	{"systemd-boot of Proxmox", plan_loader_has_proxmox, plan_loader_proxmox, .lists = true},
	{"kernelstub", plan_loader_has_kernelstub, plan_loader_kernelstub, .lists = true},
	{"systemd-boot", plan_loader_has_kernel_install, plan_loader_kernel_install, .lists = true},
	{"systemd-boot", plan_is_systemd_boot, plan_loader_by_hand, .by_hand = true},
	{"grubby", plan_grubby_here, plan_grubby, .why_not = plan_grubby_why_not},
	{"GRUB of Proxmox", plan_grub_has_refresh, plan_grub_refresh, .lists = true},
	{"GRUB", plan_grub_reads_drop_ins, plan_grub_drop_in, .lists = true},
	{"GRUB", plan_is_grub, plan_grub_by_hand, .by_hand = true},
	{"unknown", is_any, any_by_hand, .by_hand = true},
};

const struct boot_way *plan_boot_way(struct planner *p)
{
	for (const struct boot_way *w = ways; !p->way; w++)
		if (w->here(p))
			p->way = w;
	return p->way;
}

void plan_boot_finish(struct planner *p)
{
	for (size_t i = p->word_n; i-- > 0;) {
		const struct wanted_word *w = &p->words[i];

		plan_word_conflicts(p, w->word, w->purpose.rules);
		if (!plan_word_runs(p, w->word))
			continue;
		plan_note(p, "the running kernel has %s on its command line already", w->word);
		plan_word_drop(p, i);
	}
	if (p->word_n)
		plan_boot_way(p)->plan(p);
}
