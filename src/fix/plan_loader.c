/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd-boot. Its entries are plain text, and their option lines are edited one by one: making them again
 * by kernel-install writes kernels and initial RAM disks in place, of which there may be only one. What
 * kernel-install takes for the next kernel, /etc/kernel/cmdline, is kept in step.
 */
#include "fix/make_plan_impl.h"

#include "fix/boot_entries.h"
#include "fix/boot_images.h"
#include "machine/boot_entry.h"

#include <errno.h>
#include <string.h>

/* ---- its configuration ---- */

const char *plan_loader_setting(struct planner *p, const char *key)
{
	static const char *const partitions[] = {"efi", "boot/efi", "boot"};
	const char *text = NULL, *value;
	enum there there;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(partitions) && !text; i++)
		text = plan_read(p, &there,
				 arena_printf(p->a, "%s/loader/loader.conf", partitions[i]));
	return text && boot_entry_get(text, key, &value, &n) ? arena_strndup(p->a, value, n) : "";
}

/* ---- the entries ---- */

const struct boot_entries *plan_boot_entries(struct planner *p)
{
	struct boot_entries *b;

	if (p->entries)
		return p->entries;
	b = arena_alloc(p->a, 1, sizeof(*b));
	boot_entries_read(p->s, p->a,
			  p->request->image ? NULL : fact_str_or(p->m->kernel.cmdline, NULL), b);
	p->entries = b;
	return b;
}

/* "/boot/loader/entries/a.conf, ..." of that kind; "": none. */
static const char *names_of(struct planner *p, enum boot_entry_kind kind)
{
	const struct boot_entries *b = plan_boot_entries(p);
	AUTO_STRBUF struct strbuf names = {0};

	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].kind == kind)
			strbuf_printf(&names, "%s/%s", names.len ? ", " : "", b->items[i].path);
	return arena_strdup(p->a, strbuf_str(&names));
}

bool plan_loader_has_entries(struct planner *p)
{
	const struct boot_entries *b = plan_boot_entries(p);

	if (b->unread && (b->error == -EACCES || b->error == -EPERM))
		plan_note(
			p,
			"%s is not readable without root: as root, onehop may be able to change the entries",
			b->unread);
	else if (b->unread && b->error != -ENODATA) /* of a recording: not checked */
		plan_note(p, "%s could not be read (%s), so no entry is changed", b->unread,
			  strerror(-b->error));
	else if (!b->unread && !b->folder && line_keeper(&p->line) == KEEPER_ENTRIES)
		plan_note(
			p,
			"no folder loader/entries below /boot, /efi or /boot/efi: if the boot partition is not mounted, mount it, so that onehop fix can change its "
			"entries");
	return !b->unread && *names_of(p, ENTRY_OURS);
}

/* One that is made by kernel-install has the kernel's release in its name. */
static const struct boot_entry *entry_of(struct planner *p, const char *release)
{
	const struct boot_entries *b = plan_boot_entries(p);

	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].kind == ENTRY_OURS && strstr(b->items[i].name, release))
			return &b->items[i];
	return NULL;
}

/* An entry of a kernel that is installed, of the running one if it has one. NULL: all are a person's. */
static const struct boot_entry *made_entry(struct planner *p)
{
	const struct fact_str *running = &p->m->kernel.release;
	const struct boot_entry *e = NULL;
	char **names = NULL;
	size_t n = 0;

	if (!p->request->image && fact_known(*running))
		e = entry_of(p, running->value);
	if (!e && source_list(p->s, &names, &n, "lib/modules") == 0)
		for (size_t i = 0; i < n; i++) {
			const struct boot_entry *of = entry_of(p, names[i]);

			e = of ? of : e; /* the last: the newest, as a rule */
		}
	source_free_names(names, n);
	return e;
}

const char *plan_loader_line(struct planner *p)
{
	const struct boot_entries *b = plan_boot_entries(p);
	const struct boot_entry *e = made_entry(p);
	AUTO_FREE char *words = NULL;

	for (size_t i = 0; i < b->n && !e; i++)
		e = b->items[i].kind == ENTRY_OURS ? &b->items[i] : NULL;
	words = e ? boot_text_words(e->text, BOOT_TEXT_ENTRY) : NULL;
	return words ? arena_strdup(p->a, words) : NULL;
}

/* ---- words ---- */

/* The kernel that an entry starts, as far as it says so; else the running one. */
static struct kernel kernel_of(struct planner *p, const char *text, enum boot_text form)
{
	struct kernel kernel = p->m->kernel;
	const char *version;
	size_t n;

	if (form == BOOT_TEXT_ENTRY && boot_entry_get(text, "version", &version, &n))
		kernel.release = fact_str(arena_strndup(p->a, version, n), "version");
	return kernel;
}

/* As this line needs it; NULL: it does not. */
static const char *word_for(struct planner *p, struct wanted_word *w, const struct kernel *kernel,
			    const char *line)
{
	const char *word = w->acs ? plan_acs_word(p, kernel, line) : w->word;

	w->differs |= word && strcmp(word, w->word) != 0;
	return word;
}

/* Those of the plan that the text lacks, joined by blanks; *ret_text: the text with them. */
static const char *lacking(struct planner *p, const char *text, enum boot_text form,
			   const char **ret_text)
{
	AUTO_STRBUF struct strbuf words = {0};
	AUTO_FREE char *line = boot_text_words(text, form);
	const struct kernel kernel = kernel_of(p, text, form);

	*ret_text = text;
	for (size_t i = 0; i < p->word_n; i++) {
		const char *word = word_for(p, &p->words[i], &kernel, line);
		AUTO_STRBUF struct strbuf with = {0};

		if (!word || boot_text_has(*ret_text, form, word))
			continue;
		if (!boot_text_add(*ret_text, form, word, &with))
			return NULL;
		strbuf_printf(&words, "%s%s", words.len ? " " : "", word);
		*ret_text = arena_strdup(p->a, strbuf_str(&with));
	}
	return arena_strdup(p->a, strbuf_str(&words));
}

static struct step *add_step(struct planner *p, const char *path, const char *words,
			     const char *old, const char *new)
{
	const struct purpose purpose = plan_words_purpose(p);
	struct step *s =
		plan_step(p, PHASE_BOOT, STEP_OPTIONS, &purpose, "add %s to /%s", words, path);

	s->target = path;
	s->at = words;
	s->old = (struct bytes){old, old ? strlen(old) : 0};
	s->new = (struct bytes){new, strlen(new)};
	s->mode = 0644;
	return s;
}

/* What is behind that length the kernel cuts off. */
static bool fits(const char *text, enum boot_text form)
{
	AUTO_FREE char *words = boot_text_words(text, form);

	return strlen(words) <= COMMAND_LINE_MAX;
}

static void leave_out_long(struct planner *p, const char *path, const char *words)
{
	plan_left_out(p, plan_words_purpose(p).rules,
		      arena_printf(p->a, "add %s to /%s", words, path),
		      "the line would be longer than the %d bytes that the kernel reads",
		      COMMAND_LINE_MAX);
}

/* False: it does not get the words; the plan says so. */
static bool add_entry_step(struct planner *p, const struct boot_entry *e)
{
	const char *text, *words = lacking(p, e->text, BOOT_TEXT_ENTRY, &text);

	if (!words)
		plan_words_by_hand(
			p, "add to the options line of /%s, whose quotes are not closed, %s",
			e->path, plan_words(p));
	else if (!*words)
		return true;
	else if (e->why_not)
		plan_words_by_hand(p, "add to the options line of /%s, which %s, %s", e->path,
				   e->why_not, words);
	else if (!fits(text, BOOT_TEXT_ENTRY))
		leave_out_long(p, e->path, words);
	else if (add_step(p, e->path, words, e->text, text))
		return true;
	return false;
}

/* ---- /etc/kernel/cmdline ---- */

static const char *const *known_names(struct planner *p)
{
	const struct boot_entries *b = plan_boot_entries(p);
	const char **names = NULL;
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		if (boot_name_is_text(b->items[i].name))
			*ARENA_PUSH(p->a, names, n) = b->items[i].name;
	*ARENA_PUSH(p->a, names, n) = NULL;
	return names;
}

/* What undo has to know of the entries, to find those that are made from the file while the fix is in force. */
static void note_entries(struct planner *p, struct step *s)
{
	s->known = known_names(p);
	s->own_names = boot_own_names(p->s, p->a);
}

/* An entry's command line as that file would have it: kernel-install adds the machine's ID again. */
static const char *line_of_entry(struct planner *p, const struct boot_entry *e)
{
	AUTO_FREE char *words = boot_text_words(e->text, BOOT_TEXT_ENTRY);
	const char *id = boot_machine_id(p->s, p->a);
	AUTO_STRBUF struct strbuf without = {0};
	AUTO_FREE char *own = xprintf("systemd.machine_id=%s", id ? id : "");

	if (boot_text_remove(words, BOOT_TEXT_LINE, own, &without))
		return arena_printf(p->a, "%s\n", strbuf_str(&without));
	return arena_printf(p->a, "%s\n", words);
}

/*
 * Without the file kernel-install takes the running kernel's command line. That may be a rescue boot's, and
 * after a reboot it has the words, also when the fix has been undone. So the file is written, from an entry.
 */
static void write_line(struct planner *p, const struct boot_entry *e)
{
	enum there there;
	const char *base = plan_read(p, &there, "usr/lib/kernel/cmdline"), *text, *words;
	struct step *s;

	if (!base)
		base = line_of_entry(p, e);
	words = lacking(p, base, BOOT_TEXT_LINE, &text);
	if (!words || !*words || !fits(text, BOOT_TEXT_LINE))
		return;
	s = add_step(p, FILE_KERNEL_LINE, words, NULL, text);
	note_entries(p, s);
	s->what = arena_printf(p->a, "write the command line of /%s and %s to /" FILE_KERNEL_LINE,
			       e->path, words);
	p->line_note =
		"/" FILE_KERNEL_LINE
		" is written so that the entries of later kernels get the parameters too. Undo removes the parameters, but keeps the file if kernel-install would otherwise copy them from the running kernel";
}

/* What the trial boot's command line has more than that one. */
static const char *words_of_trial(struct planner *p, const char *line)
{
	const char *text, *words = lacking(p, line, BOOT_TEXT_LINE, &text);
	const bool panics = text_starts_with(line, "panic=") || strstr(line, " panic=");

	if (!words || panics)
		return words;
	return arena_printf(p->a, "%s%s" TRIAL_PANIC, words, *words ? " " : "");
}

/*
 * A kernel that is installed during the trial boot would get its words for good otherwise. They are the step's,
 * and not in its text: undo looks for them in the running kernel's line, and in entries made since.
 */
void plan_loader_trial_line(struct planner *p, const struct boot_entry *started)
{
	const struct boot_entry *made = made_entry(p), *e = made ? made : started;
	const char *line = line_of_entry(p, e), *words = words_of_trial(p, line);
	struct step *s;

	if (!words || !*words || plan_has_program(p, "kernel-install") == THERE_NO ||
	    plan_exists(p, FILE_KERNEL_LINE) != THERE_NO ||
	    plan_exists(p, "usr/lib/kernel/cmdline") == THERE_YES)
		return;
	s = add_step(p, FILE_KERNEL_LINE, words, NULL, line);
	note_entries(p, s);
	s->reboot = false;
	s->why = s->cost = (struct texts){0}; /* it does not have the words */
	s->what = arena_printf(
		p->a,
		"write /" FILE_KERNEL_LINE
		" with the line of /%s, so that a kernel installed during the trial boot does not inherit its parameters",
		e->path);
}

static void change_line(struct planner *p, const char *old)
{
	const char *text, *words = lacking(p, old, BOOT_TEXT_LINE, &text);

	if (!words) {
		plan_words_by_hand(p,
				   "add to /" FILE_KERNEL_LINE ", whose quotes are not closed, %s",
				   plan_words(p));
		return;
	}
	if (*words && !fits(text, BOOT_TEXT_LINE))
		leave_out_long(p, FILE_KERNEL_LINE, words);
	else if (*words)
		note_entries(p, add_step(p, FILE_KERNEL_LINE, words, old, text));
}

/* The settings of kernel-install that have it make unified kernel images; NULL: it makes none. */
static const char *file_that_asks_for_images(struct planner *p)
{
	static const char *const files[] = {"etc/kernel/install.conf",
					    "usr/lib/kernel/install.conf"};
	enum there there;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		const char *text = plan_read(p, &there, files[i]), *value;
		size_t n;

		if (!text)
			continue;
		if (text_after(text, "layout=", &value, &n))
			return n >= 3 && memcmp(value, "uki", 3) == 0 ? files[i] : NULL;
		return text_after(text, "uki_generator=", &value, &n) ? files[i] : NULL;
	}
	return NULL;
}

/* Undo takes the words out of the line, and cannot take them out of images that were made of it. */
static void say_made_images(struct planner *p)
{
	const char *file = file_that_asks_for_images(p);

	if (file)
		plan_note(
			p,
			"kernel-install makes unified kernel images here (/%s). One that it makes while the fix is applied keeps the parameters inside: undo names that image, and you make it again",
			file);
}

/* Where entries, and unified kernel images, are made from it. */
static void keep_line(struct planner *p)
{
	const struct boot_entry *e = made_entry(p);
	enum there there;
	const char *old = plan_read(p, &there, FILE_KERNEL_LINE);

	if (plan_has_program(p, "kernel-install") == THERE_NO)
		return;
	say_made_images(p);
	if (old)
		change_line(p, old);
	else if (there == THERE_UNKNOWN)
		plan_note(p, "/" FILE_KERNEL_LINE
			     " could not be read: entries of later kernels may lack the "
			     "parameters");
	else if (e)
		write_line(p, e);
}

/* ---- the plan ---- */

static void way_back(struct planner *p)
{
	const char *rescue = names_of(p, ENTRY_RESCUE);
	const char *words = plan_words_differ(p) ? "what this fix added" : plan_words(p);

	if (*rescue)
		plan_way_boot(
			p,
			"choose an entry in the boot menu%s that does not have these parameters: %s",
			plan_menu_hint(p), rescue);
	plan_way_edit(p, "delete %s", words);
	plan_way_without(p, "delete %s from the lines \"options\" of %s%s", words,
			 names_of(p, ENTRY_OURS),
			 plan_has_program(p, "kernel-install") == THERE_NO
				 ? ""
				 : ", and from /" FILE_KERNEL_LINE);
}

/* Keys are in small letters: systemd-boot passes by another spelling. */
static bool has_ignored_options(struct planner *p)
{
	static const char *const keys[] = {"OPTIONS", "Options"};
	const struct boot_entries *b = plan_boot_entries(p);
	const char *value;
	size_t n;

	for (size_t i = 0; i < b->n; i++)
		for (size_t k = 0; k < ARRAY_LEN(keys); k++)
			if (b->items[i].kind == ENTRY_BARE &&
			    boot_entry_get(b->items[i].text, keys[k], &value, &n))
				return true;
	return false;
}

/* If its kernel is a unified image, a line in the entry would replace the image's own, with its root=. */
static void say_bare(struct planner *p)
{
	const char *bare = names_of(p, ENTRY_BARE);

	if (!*bare)
		return;
	plan_words_by_hand(
		p,
		"%s: no options line%s. If it starts a unified kernel image, add %s to the build of that image, because an options line would replace the image's own; otherwise add the line `options %s`",
		bare,
		has_ignored_options(p)
			? " (systemd-boot ignores OPTIONS: the key must be in lower case)"
			: "",
		plan_words(p), plan_words(p));
}

static void say_others(struct planner *p)
{
	const char *sealed = names_of(p, ENTRY_SEALED), *others = names_of(p, ENTRY_OTHERS);

	say_bare(p);

	if (*sealed)
		plan_words_by_hand(
			p,
			"the command line of %s is inside its kernel image: add %s to its build, rebuild and sign it, and reboot",
			sealed, plan_words(p));
	if (*others)
		plan_note(p, "boot entries that may belong to another system are left alone: %s",
			  others);
}

/* "/efi/EFI/Linux/a.efi, ...": unified kernel images, which the boot menu has too; "": none. */
static const char *names_of_images(struct planner *p)
{
	AUTO_STRBUF struct strbuf all = {0};

	for (size_t i = 0; boot_partitions[i]; i++) {
		char **names = NULL;
		size_t n = 0;

		if (source_list(p->s, &names, &n, "%s/" BOOT_IMAGE_FOLDER, boot_partitions[i]) < 0)
			continue;
		for (size_t k = 0; k < n; k++)
			if (boot_image_is(names[k]))
				strbuf_printf(&all, "%s/%s/" BOOT_IMAGE_FOLDER "/%s",
					      all.len ? ", " : "", boot_partitions[i], names[k]);
		source_free_names(names, n);
	}
	return arena_strdup(p->a, strbuf_str(&all));
}

/* Images have a command line of their own: what is started by itself counts. */
static void say_images(struct planner *p)
{
	const char *images = names_of_images(p), *id = plan_loader_default(p);

	if (!*images)
		return;
	if (id && text_ends_with(id, ".efi"))
		plan_words_by_hand(
			p,
			"the boot menu starts %s by default, whose command line is inside the image: add %s to its build, or choose an entry with `bootctl set-default`; until then the changed entries are used only when they are "
			"chosen",
			id, plan_words(p));
	else if (!id)
		plan_note(
			p,
			"%s: the command line is inside the image and will not have %s; `bootctl list` shows the default of the boot menu",
			images, plan_words(p));
}

void plan_loader_entries(struct planner *p)
{
	const struct boot_entries *b = plan_boot_entries(p);
	const size_t before = p->phases[PHASE_BOOT].n;
	bool have = true;

	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].kind == ENTRY_OURS)
			have &= add_entry_step(p, &b->items[i]);
	keep_line(p);
	say_others(p);
	say_images(p);
	if (p->phases[PHASE_BOOT].n == before) {
		if (have)
			plan_note(p,
				  "all boot entries already have %s; reboot for it to take effect",
				  plan_words(p));
		return;
	}
	if (plan_words_differ(p))
		plan_note(p, "the boot entries set ACS differently, so each gets its own pci=");
	plan_words_want(p);
	way_back(p);
}

/* ---- Proxmox: its tool makes the entries, on several partitions that are not mounted ---- */

void plan_loader_proxmox(struct planner *p)
{
	const struct purpose serves = {.why = TEXTS("boot entries are generated from that file"),
				       .reboot = true};
	const char *const *argv = plan_argv(p, "proxmox-boot-tool", "refresh", NULL);
	const struct tool undo = {.undo_argv = argv, .deadline_s = 300};
	const struct tool apply = {.argv = argv, .deadline_s = 300};
	struct purpose undone = serves;
	enum there there;
	const char *old = plan_read(p, &there, FILE_KERNEL_LINE), *text, *words;

	words = old ? lacking(p, old, BOOT_TEXT_LINE, &text) : NULL;
	if (!words) {
		plan_boot_by_hand(p);
		return;
	}
	if (!*words) {
		plan_note(p, "/" FILE_KERNEL_LINE " already has %s; reboot for it to take effect",
			  plan_words(p));
		return;
	}
	undone.reboot = false;
	plan_tool(p, PHASE_BOOT, &undo, &undone, "regenerate the boot entries");
	add_step(p, FILE_KERNEL_LINE, words, old, text);
	plan_tool(p, PHASE_BOOT, &apply, &serves, "regenerate the boot entries");
	plan_words_want(p);
	plan_way_edit(p, "delete %s", words);
	plan_way_without(p,
			 "delete %s from /" FILE_KERNEL_LINE " and run `proxmox-boot-tool refresh`",
			 words);
}
