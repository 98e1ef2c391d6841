/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trial boot with systemd-boot: a copy of the entry that it starts by itself, with the words, which
 * the EFI variable LoaderEntryOneShot has it start once. It removes the variable before it starts anything.
 */
#include "fix/make_plan_impl.h"

#include "fix/boot_entries.h"
#include "machine/efi_variable.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdint.h>
#include <string.h>

#define ONE_SHOT "LoaderEntryOneShot"

/* Bits of LoaderFeatures, of systemd's boot loader interface. */
#define FEATURE_ONE_SHOT ((uint64_t)1 << 3)
/* Since this one (version 251) a one-shot boot is not remembered as the default, and the names of entries
 * that have no sort-key are in the order that BOOT_ENTRY_TRIAL goes by. */
#define FEATURE_SORT_KEY ((uint64_t)1 << 8)

/* ---- what the boot loader says ---- */

/* The texts of one of its variables, each as a line; "": it is not there, or cannot be read. */
static const char *loader_lines(struct planner *p, const char *name)
{
	AUTO_FREE char *file = NULL, *lines = NULL;
	size_t size;

	if (source_read(p->s, &file, &size, EFI_VARIABLES "/%s-" EFI_LOADER, name) < 0)
		return "";
	lines = efi_lines(file, size);
	return arena_strdup(p->a, lines);
}

static const char *loader_line(struct planner *p, const char *name)
{
	const char *lines = loader_lines(p, name);

	return arena_strndup(p->a, lines, strcspn(lines, "\n"));
}

static uint64_t loader_features(struct planner *p)
{
	AUTO_FREE char *file = NULL;
	uint64_t features = 0;
	size_t size;

	if (source_read(p->s, &file, &size, "%s", EFI_LOADER_VARIABLE("LoaderFeatures")) < 0 ||
	    size != EFI_ATTRIBUTES + sizeof(features))
		return 0;
	for (size_t i = 0; i < sizeof(features); i++)
		features |= (uint64_t)(unsigned char)file[EFI_ATTRIBUTES + i] << (8 * i);
	return features;
}

/* NULL: the variable can be written, and this boot loader heeds it. */
static const char *why_no_one_shot(struct planner *p)
{
	const char *info = loader_line(p, "LoaderInfo"), *next = loader_line(p, ONE_SHOT);
	const uint64_t features = loader_features(p);
	struct mount m;

	if (!plan_find_mount(p, "/" EFI_VARIABLES, &m) || strcmp(m.type, "efivarfs") != 0)
		return "the EFI variables (efivarfs) are not mounted at /" EFI_VARIABLES;
	if (m.read_only)
		return "the EFI variables (/" EFI_VARIABLES ") are mounted read-only";
	if (!text_starts_with(info, "systemd-boot "))
		return *info ? arena_printf(p->a, "the running boot loader is %s", info)
			     : "the running boot loader does not report itself as systemd-boot";
	if (!(features & FEATURE_ONE_SHOT))
		return arena_printf(p->a, "%s cannot start an entry for one boot only", info);
	if (!(features & FEATURE_SORT_KEY))
		return arena_printf(p->a,
				    "%s is older than 251 and may make the trial entry its default",
				    info);
	if (plan_has_program(p, "bootctl") != THERE_YES)
		return "bootctl is not installed";
	if (*next)
		return arena_printf(p->a,
				    "systemd-boot is already set to start \"%s\" at the next boot",
				    next);
	return NULL;
}

/* ---- the entry that it starts by itself ---- */

/* Two names of one entry: the boot loader's are in small letters, and without the counters. */
static bool is_same(const char *id, const char *name)
{
	const size_t n = boot_entry_id(id);

	return n && n == boot_entry_id(name) && strncasecmp(id, name, n) == 0;
}

static const struct boot_entry *entry_named(struct planner *p, const char *id)
{
	const struct boot_entries *b = plan_boot_entries(p);

	for (size_t i = 0; i < b->n; i++)
		if (is_same(id, b->items[i].name))
			return &b->items[i];
	return NULL;
}

/* What the boot loader listed when it ran, in its menu's order. */
struct listed {
	const char **ids;
	size_t n;
};

/* What it makes up itself (other systems, the firmware's setup) is never started unasked. */
static void list_entries(struct planner *p, struct listed *ret)
{
	const char *lines = loader_lines(p, "LoaderEntries"), *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, lines)) {
		const char *id = arena_strndup(p->a, line, n);
		const bool gone = text_ends_with(id, ".conf") && !entry_named(p, id);

		if (*id && !gone && !text_starts_with(id, "auto-"))
			*ARENA_PUSH(p->a, ret->ids, ret->n) = id;
	}
}

/* A kernel that came since: its place in the menu is unknown. */
static bool has_new_entry(struct planner *p, const struct listed *l)
{
	const struct boot_entries *b = plan_boot_entries(p);

	for (size_t i = 0; i < b->n; i++) {
		bool found = false;

		for (size_t k = 0; k < l->n; k++)
			found |= is_same(l->ids[k], b->items[i].name);
		if (b->items[i].kind == ENTRY_OURS && !found)
			return true;
	}
	return false;
}

/* The first that matches; NULL: none. */
static const char *matching(struct planner *p, const struct listed *l, const char *pattern)
{
	if (strcmp(pattern, "@saved") == 0)
		pattern = loader_line(p, "LoaderEntryLastBooted");
	for (size_t i = 0; *pattern && i < l->n; i++)
		if (fnmatch(pattern, l->ids[i], FNM_CASEFOLD) == 0)
			return l->ids[i];
	return NULL;
}

const char *plan_loader_default(struct planner *p)
{
	struct listed l = {0};
	const char *id;

	list_entries(p, &l);
	if (has_new_entry(p, &l)) {
		id = loader_line(p, "LoaderEntrySelected");
		return *id ? id : NULL;
	}
	id = matching(p, &l, loader_line(p, "LoaderEntryDefault"));
	if (!id)
		id = matching(p, &l, plan_loader_setting(p, "default"));
	return id ? id : l.n ? l.ids[0] : NULL;
}

/*
 * Whether an entry of this system stays before the trial's in the menu, so that the trial's is never the
 * first. Those with no tries left (boot counting) come behind all others.
 */
static bool is_one_before(struct planner *p)
{
	const struct boot_entries *b = plan_boot_entries(p);

	for (size_t i = 0; i < b->n; i++) {
		const struct boot_entry *e = &b->items[i];
		const bool counted = e->name[boot_entry_id(e->name)] == '+';
		const char *value;
		size_t n;

		if (e->kind == ENTRY_OURS && !counted &&
		    (boot_entry_get(e->text, "sort-key", &value, &n) ||
		     isalnum((unsigned char)*e->name)))
			return true;
	}
	return false;
}

static const char *find_default(struct planner *p, const struct boot_entry **ret)
{
	const char *id = plan_loader_default(p);
	const struct boot_entry *e = id ? entry_named(p, id) : NULL;

	if (!id)
		return "systemd-boot does not report its default entry";
	if (!e || e->kind == ENTRY_SEALED)
		return arena_printf(
			p->a,
			"systemd-boot's default entry (%s) has its command line inside the kernel "
			"image",
			id);
	if (e->kind == ENTRY_BARE)
		return arena_printf(p->a, "systemd-boot's default entry (/%s) has no options line",
				    e->path);
	if (e->kind != ENTRY_OURS)
		return arena_printf(
			p->a,
			"systemd-boot's default entry (/%s) is not an ordinary entry of this system",
			e->path);
	if (!is_one_before(p))
		return "each entry of this system has a boot counter, or a name that sorts low: the trial entry might become the first of the boot menu";
	*ret = e;
	return NULL;
}

/* ---- the copy ---- */

/* Adds it unless it is there. False: it cannot be added. */
static bool add_word(struct planner *p, const char **text, const char *word)
{
	AUTO_STRBUF struct strbuf with = {0};

	if (boot_text_has(*text, BOOT_TEXT_ENTRY, word))
		return true;
	if (!boot_text_add(*text, BOOT_TEXT_ENTRY, word, &with))
		return false;
	*text = arena_strdup(p->a, strbuf_str(&with));
	return true;
}

static bool has_panic(const char *text)
{
	AUTO_FREE char *words = boot_text_words(text, BOOT_TEXT_ENTRY);

	return text_starts_with(words, "panic=") || strstr(words, " panic=");
}

/* With a title of its own, and without what would sort it among the others. NULL: it takes no words. */
static const char *copy_of(struct planner *p, const struct boot_entry *e)
{
	AUTO_STRBUF struct strbuf untitled = {0}, copy = {0};
	const char *title = e->name, *text;
	size_t n = strlen(title);

	boot_entry_get(e->text, "title", &title, &n);
	strbuf_printf(&copy,
		      "# Written by onehop. \"onehop undo\" removes it.\n"
		      "title Trial boot of onehop (%.*s)\n",
		      (int)n, title);
	boot_entry_drop(e->text, "title", &untitled);
	boot_entry_drop(strbuf_str(&untitled), "sort-key", &copy);
	text = arena_strdup(p->a, strbuf_str(&copy));
	for (size_t i = 0; i < p->word_n; i++)
		if (!add_word(p, &text, p->words[i].word))
			return NULL;
	return has_panic(text) || add_word(p, &text, TRIAL_PANIC) ? text : NULL;
}

/* ---- the steps ---- */

static void write_copy(struct planner *p, const struct boot_entry *e, const char *path,
		       const char *text, const struct purpose *purpose)
{
	struct purpose now = *purpose;
	struct step *s;

	now.reboot = false;
	s = plan_step(p, PHASE_BOOT, STEP_ENTRY, &now, "write /%s, a copy of %s with %s", path,
		      e->name, plan_words(p));
	s->target = path;
	s->new = (struct bytes){text, strlen(text)};
	s->mode = 0644;
	s->for_boot = s->trial = true;
}

static void set_next(struct planner *p, const struct purpose *purpose)
{
	struct step *s = plan_step(p, PHASE_BOOT, STEP_ONE_SHOT, purpose,
				   "set systemd-boot to start that entry once, at the next boot");

	s->target = EFI_LOADER_VARIABLE(ONE_SHOT);
	s->at = ONE_SHOT;
	s->old = (struct bytes){"", 0};
	s->new = (struct bytes){BOOT_ENTRY_TRIAL, strlen(BOOT_ENTRY_TRIAL)};
	s->argv = plan_argv(p, "bootctl", "set-oneshot", BOOT_ENTRY_TRIAL, NULL);
	s->undo_argv = plan_argv(p, "bootctl", "set-oneshot", "", NULL);
	s->deadline_s = 60;
	s->trial = true;
}

const char *plan_trial_loader(struct planner *p)
{
	const struct purpose purpose = plan_words_purpose(p);
	const struct boot_entry *e = NULL;
	const char *why = why_no_one_shot(p), *path, *text;

	if (!why)
		why = find_default(p, &e);
	if (why || !e)
		return why;
	path = arena_printf(p->a, "%.*s%s", (int)(e->name - e->path), e->path, BOOT_ENTRY_TRIAL);
	text = copy_of(p, e);
	if (!text)
		return arena_printf(p->a, "the quotes in the options line of /%s are not closed",
				    e->path);
	plan_loader_trial_line(p, e);
	write_copy(p, e, path, text, &purpose);
	set_next(p, &purpose);
	plan_way_boot(
		p,
		"power-cycle or reset the machine: the boot after the trial boot does not have these parameters");
	plan_way_boot(p, "in the boot menu%s choose any entry but \"Trial boot of onehop\"",
		      plan_menu_hint(p));
	plan_way_without(p, "delete /%s", path);
	return NULL;
}
