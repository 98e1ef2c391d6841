/* SPDX-License-Identifier: Apache-2.0 */
/* Words for the kernel's command line: who changes it here, in a table by boot loader. */
#include "fix/make_plan_impl.h"

#include <stdarg.h>
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
		if (!p->words[i].differs) /* the rows of what it is for are wanted too */
			plan_want(p, "kernel-parameter", "%s", p->words[i].word);
}

bool plan_words_differ(const struct planner *p)
{
	for (size_t i = 0; i < p->word_n; i++)
		if (p->words[i].differs)
			return true;
	return false;
}

void plan_word_drop(struct planner *p, size_t i)
{
	p->word_n--;
	memmove(&p->words[i], &p->words[i + 1], (p->word_n - i) * sizeof(*p->words));
}

struct wanted_word *plan_word_add(struct planner *p, const char *word,
				  const struct purpose *purpose)
{
	struct wanted_word *w = p->words;

	for (size_t i = 0; i < p->word_n; i++)
		if (strcmp(w[i].word, word) == 0) {
			purpose_join(p, &w[i].purpose, purpose);
			return &w[i];
		}
	w = ARENA_PUSH(p->a, p->words, p->word_n);
	w->word = arena_strdup(p->a, word);
	purpose_join(p, &w->purpose, purpose);
	return w;
}

/* No blank, and nothing that a shell, GRUB's script or systemd would take for something else. */
static bool is_plain(const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:;=/@+-";

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

/* ---- in the boot menu ---- */

const char *plan_menu_hint(struct planner *p)
{
	return line_is_systemd_boot(&p->line) ? " (hold Space at power-on if it is hidden)"
	       : line_is_grub(&p->line) ? " (hold Shift or press Esc at power-on if it is hidden)"
					: "";
}

/* systemd-boot's words for it, of which one stops a person from editing. */
static bool editor_is_off(struct planner *p)
{
	static const char *const off[] = {"0", "no", "n", "false", "f", "off"};
	const char *value;

	if (!line_is_systemd_boot(&p->line))
		return false;
	value = plan_loader_setting(p, "editor");
	for (size_t i = 0; i < ARRAY_LEN(off); i++)
		if (strcasecmp(value, off[i]) == 0)
			return true;
	return false;
}

void plan_way_edit(struct planner *p, const char *fmt, ...)
{
	va_list args;

	if (editor_is_off(p)) {
		plan_way_from_medium(
			p, "the boot menu cannot edit an entry: loader.conf has its editor off");
		return;
	}
	va_start(args, fmt);
	plan_way_boot(p, "press e on the entry in the boot menu%s and %s, for that boot only",
		      plan_menu_hint(p), arena_vprintf(p->a, fmt, args));
	va_end(args);
}

/* ---- by a program that takes the words ---- */

static void way_back(struct planner *p, const char *const *undo_argv)
{
	AUTO_STRBUF struct strbuf line = {0};

	step_command_line(undo_argv, &line);
	if (plan_boot_way(p)->keeper == KEEPER_OSTREE)
		plan_way_boot(
			p,
			"choose the second entry of the boot menu%s: the system as it is now, without these parameters",
			plan_menu_hint(p));
	plan_way_edit(p, "delete %s from the line that starts with linux or options",
		      plan_words(p));
	plan_way_without(p, "`%s`", line.text);
}

void plan_words_by(struct planner *p, const char *program)
{
	const struct purpose purpose = plan_words_purpose(p);
	const char **words = arena_alloc(p->a, p->word_n + 1, sizeof(*words));
	struct step s = {0}, *step;

	for (size_t i = 0; i < p->word_n; i++)
		words[i] = p->words[i].word;
	step_words_set(p->a, &s, program, words, p->word_n);
	if (p->request->image) {
		const struct tool tool = {.argv = s.argv};

		plan_tool(p, PHASE_BOOT, &tool, &purpose,
			  "add %s to the kernel's command line with %s", plan_words(p), program);
	} else {
		step = plan_step(p, PHASE_BOOT, STEP_WORDS, &purpose,
				 "add %s to the kernel's command line with %s", plan_words(p),
				 program);
		step_words_set(p->a, step, program, words, p->word_n);
	}
	plan_words_want(p);
	way_back(p, s.undo_argv);
}

/* What is on file already waits for the next boot, or runs. */
static void plan_kernelstub(struct planner *p)
{
	for (size_t i = p->word_n; i-- > 0;) {
		const char *word = p->words[i].word;

		if (!line_has_word(fact_str_or(p->line.b->kernelstub, ""), word))
			continue;
		plan_note(p, "kernelstub already has %s; reboot for it to take effect", word);
		plan_word_drop(p, i);
	}
	if (p->word_n)
		plan_words_by(p, "kernelstub");
}

/* ---- for a person to do ---- */

static const char *advice(struct planner *p)
{
	const char **words = arena_alloc(p->a, p->word_n, sizeof(*words));
	AUTO_STRBUF struct strbuf how = {0};

	for (size_t i = 0; i < p->word_n; i++)
		words[i] = p->words[i].word;
	line_advice(&p->line, words, p->word_n, &how);
	return arena_strdup(p->a, strbuf_str(&how));
}

void plan_boot_by_hand(struct planner *p)
{
	plan_words_by_hand(p, "%s", advice(p));
}

/* It talks to its daemon, which runs in no chroot. */
static void plan_ostree(struct planner *p)
{
	if (p->request->image)
		plan_words_by_hand(p, "in that system, once it runs: %s", advice(p));
	else
		plan_words_by(p, "rpm-ostree");
}

/* What GRUB's files add goes after what is there. */
static bool grub_can(struct planner *p)
{
	const char *file;
	unsigned line;

	return !plan_boot_has_dashes(p, &file, &line);
}

static bool grub_drop_in_can(struct planner *p)
{
	return grub_can(p) && plan_grub_reads_drop_ins(p);
}

static void grub_by_hand(struct planner *p)
{
	const char *file;
	unsigned line;

	plan_grub_drop_theirs(p);
	if (!p->word_n)
		return;
	if (plan_boot_has_dashes(p, &file, &line))
		plan_words_by_hand(
			p,
			"in %s, line %u, add before the --: %s (words after -- go to init); then regenerate GRUB's menu, and reboot",
			file, line, plan_words(p));
	else
		plan_boot_by_hand(p);
}

/* ---- which ---- */

/* The first of the keeper's that can. */
static const struct boot_way ways[] = {
	{KEEPER_NIXOS, NULL, plan_boot_by_hand, .by_hand = true},
	{KEEPER_UKI, NULL, plan_boot_by_hand, .by_hand = true},
	{KEEPER_TRANSACTIONAL, NULL, plan_boot_by_hand, .by_hand = true},
	{KEEPER_OSTREE, NULL, plan_ostree},
	{KEEPER_PROXMOX_UNSEEN, NULL, plan_boot_by_hand, .by_hand = true},
	{KEEPER_PROXMOX_ENTRIES, NULL, plan_loader_proxmox},
	{KEEPER_KERNELSTUB, NULL, plan_kernelstub},
	{KEEPER_ENTRIES, plan_loader_has_entries, plan_loader_entries, .trial = plan_trial_loader},
	{KEEPER_ENTRIES, NULL, plan_boot_by_hand, .by_hand = true},
	{KEEPER_GRUBBY, NULL, plan_grubby, .why_no_trial = PLAN_NO_TRIAL_BLS},
	{KEEPER_PROXMOX_GRUB, grub_can, plan_grub_refresh},
	{KEEPER_PROXMOX_GRUB, NULL, grub_by_hand, .by_hand = true},
	{KEEPER_GRUB, grub_drop_in_can, plan_grub_drop_in, .trial = plan_trial_grub},
	{KEEPER_GRUB, NULL, grub_by_hand, .by_hand = true},
	{KEEPER_UNKNOWN, NULL, plan_boot_by_hand, .by_hand = true},
};

const struct boot_way *plan_boot_way(struct planner *p)
{
	const enum line_keeper keeper = line_keeper(&p->line);

	for (const struct boot_way *w = ways; !p->way; w++)
		if (w->keeper == keeper && (!w->can || w->can(p)))
			p->way = w;
	return p->way;
}

const char *plan_word_why_not(struct planner *p, const char *word)
{
	AUTO_STRBUF struct strbuf why = {0};

	line_why_not(&p->line, word, &why);
	for (size_t i = 0; plan_boot_way(p)->keeper == KEEPER_GRUBBY && i < p->word_n; i++) {
		const char *other = p->words[i].word;

		if (!why.len && strcmp(other, word) != 0 && line_same_key(other, word))
			strbuf_printf(&why, "grubby keeps only one of %s and %s", word, other);
	}
	return why.len ? arena_strdup(p->a, strbuf_str(&why)) : NULL;
}

void plan_boot_finish(struct planner *p)
{
	struct trial_start start;

	for (size_t i = p->word_n; i-- > 0;) {
		const struct wanted_word *w = &p->words[i];

		plan_word_conflicts(p, w->word, w->purpose.rules);
		if (p->request->confirms || !plan_word_runs(p, w->word))
			continue;
		plan_note(p, "the running kernel already has %s on its command line", w->word);
		plan_word_drop(p, i);
	}
	if (!p->word_n)
		return;
	start = plan_trial_start(p);
	plan_boot_way(p)->plan(p);
	plan_trial_finish(p, &start);
	if (p->line_note && !p->plan->on_confirm_n)
		plan_note(p, "%s", p->line_note);
}
