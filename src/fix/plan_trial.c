/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel parameters for one boot before they stay: who wants it, which loader can, what it takes. */
#include "fix/make_plan_impl.h"

#include "base/path.h"
#include "fix/grub_menu.h"
#include "machine/boot_entry.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* ---- whether one is wanted ---- */

/* A screen at which somebody could choose another entry. In /sys: what the firmware drives is not. */
static enum there has_display(struct planner *p)
{
	char **names = NULL;
	size_t n = 0;
	bool found = false;
	int r = source_list(p->s, &names, &n, "sys/class/drm");

	if (r < 0)
		return r == -ENOENT ? THERE_NO : THERE_UNKNOWN;
	for (size_t i = 0; i < n; i++) {
		enum there there;
		const char *status =
			plan_read(p, &there,
				  arena_printf(p->a, "sys/class/drm/%s/status", names[i]));

		found |= status && strcmp(status, "connected\n") == 0;
	}
	source_free_names(names, n);
	return found ? THERE_YES : THERE_NO;
}

static bool is_wanted(struct planner *p)
{
	switch (p->request->trial) {
	case TRIAL_ALWAYS:
		return true;
	case TRIAL_WITHOUT_DISPLAY:
		return has_display(p) == THERE_NO;
	default:
		return false;
	}
}

/* ---- what a healthy boot has ---- */

static void add_baseline(struct planner *p, const char *kind, const char *value)
{
	struct plan_wanted *row = ARENA_PUSH(p->a, p->plan->baseline, p->plan->baseline_n);

	row->kind = kind;
	row->value = value;
}

/* Storage, network cards and GPUs: what a machine cannot be reached or used without. */
static bool must_have_driver(const struct pci_function *f)
{
	static const unsigned classes[] = {0x01, 0x02, 0x03, 0x12};

	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (fact_known(f->class_code) &&
		    (unsigned)(f->class_code.value >> 16) == classes[i])
			return fact_known(f->driver);
	return false;
}

static void note_links(struct planner *p)
{
	char **names = NULL;
	size_t n = 0;

	if (source_list(p->s, &names, &n, "sys/class/net") < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		enum there there;
		const char *state =
			plan_read(p, &there,
				  arena_printf(p->a, "sys/class/net/%s/operstate", names[i]));

		if (state && strcmp(state, "up\n") == 0 &&
		    plan_exists(p, "sys/class/net/%s/device", names[i]) == THERE_YES)
			add_baseline(p, "link", arena_strdup(p->a, names[i]));
	}
	source_free_names(names, n);
}

static void note_baseline(struct planner *p)
{
	for (size_t i = 0; i < p->m->pci_n; i++) {
		const struct pci_function *f = &p->m->pci[i];

		if (must_have_driver(f))
			add_baseline(p, "driver",
				     arena_printf(p->a, "%s %s", f->name, f->driver.value));
	}
	note_links(p);
}

/* ---- what confirms it ---- */

/* NULL: it can. */
static const char *why_unconfirmed(struct planner *p, const char *program)
{
	if (!plan_has_systemd(p))
		return "there is no systemd here";
	if (program)
		return NULL;
	return p->request->program
		       ? arena_printf(p->a, "%s is not installed in a folder of programs",
				      p->request->program)
		       : "users other than root can replace this program";
}

static void plan_confirming(struct planner *p)
{
	const struct purpose purpose = {
		.why = TEXTS("it confirms the parameters after a healthy boot")};
	const char *program = plan_own_program(p);
	struct steps *list = &p->phases[PHASE_UNITS];
	const size_t first = list->n;
	const struct unit unit = {
		.name = UNIT_TRIAL,
		.about = "confirms the kernel parameters that onehop tries, after a healthy boot",
		.after = "multi-user.target",
		.start = program ? arena_printf(p->a, "%s fix --confirm --when-healthy", program)
				 : NULL,
		.waits = true,
	};

	p->plan->unconfirmed = why_unconfirmed(p, program);
	if (p->plan->unconfirmed)
		return;
	plan_unit(p, &unit, &purpose);
	for (size_t i = first; i < list->n; i++)
		list->items[i].trial = true;
}

/* ---- GRUB ---- */

/* File systems that GRUB's driver writes back in place. */
static const char *const writable[] = {"ext2", "ext3", "ext4", "xfs", "vfat"};

/* Whether the mount point is the path or a folder above it. */
static bool is_above(const char *point, const char *path)
{
	size_t n = strlen(point);

	return strncmp(point, path, n) == 0 &&
	       (path[n] == '\0' || path[n] == '/' || (n && point[n - 1] == '/'));
}

static bool is_read_only(const char *options)
{
	return options && text_list_has(options, ",", "ro", 2);
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS" */
static bool read_mount(struct planner *p, const char *line, size_t n, const char **ret_point,
		       struct mount *ret)
{
	char *rest = arena_strndup(p->a, line, n), *word;
	const char *words[6] = {NULL};

	for (size_t i = 0; i < 6 && (words[i] = strsep(&rest, " ")); i++)
		;
	if (!words[5] || !rest)
		return false;
	while ((word = strsep(&rest, " ")) && strcmp(word, "-") != 0)
		;
	*ret = (struct mount){.device = words[2], .type = rest ? strsep(&rest, " ") : NULL};
	if (rest)
		strsep(&rest, " ");
	ret->read_only = is_read_only(words[5]) || is_read_only(rest);
	*ret_point = words[4];
	return ret->type != NULL;
}

bool plan_find_mount(struct planner *p, const char *path, struct mount *ret)
{
	enum there there;
	const char *text = plan_read(p, &there, "proc/self/mountinfo"), *line = NULL, *point;
	size_t n, deepest = 0;
	struct mount m;

	while (text && text_next_line(&line, &n, text))
		if (read_mount(p, line, n, &point, &m) && is_above(point, path) &&
		    strlen(point) >= deepest) {
			deepest = strlen(point);
			*ret = m;
		}
	return deepest > 0;
}

/* The path with the first link on it replaced by what it leads to; NULL: there is none. */
static const char *without_link(struct planner *p, const char *path)
{
	char clean[PATH_MAX + 3];

	for (const char *end = path; *end;) {
		AUTO_FREE char *target = NULL;
		const char *start = end + (*end == '/'), *whole;

		end = start + strcspn(start, "/");
		if (source_read_link(p->s, &target, "./%.*s", (int)(end - path), path) < 0)
			continue;
		whole = arena_printf(p->a, "%.*s%s%s", *target == '/' ? 0 : (int)(start - path),
				     path, target, end);
		if (strlen(whole) >= PATH_MAX)
			return NULL;
		path_clean(whole, clean);
		return arena_strdup(p->a, clean);
	}
	return NULL;
}

/* Where the file lies, links of folders followed: the table of mounts knows only such paths. */
static const char *real_path(struct planner *p, const char *path)
{
	enum { LINKS_MAX = 40 };
	const char *next;

	for (int i = 0; i < LINKS_MAX && (next = without_link(p, path)); i++)
		path = next;
	return path;
}

/* GRUB writes to disks and partitions alone. NULL: it can write there. */
static const char *why_not_written(struct planner *p, const char *file)
{
	const char *shown = arena_printf(p->a, "/%s", real_path(p, file)), *name;
	AUTO_FREE char *link = NULL;
	struct mount m;
	bool known = false;

	if (plan_exists(p, "%s", file) != THERE_YES)
		return arena_printf(p->a, "there is no /%s", file);
	if (!plan_find_mount(p, shown, &m))
		return arena_printf(p->a, "the file system of %s is unknown", shown);
	for (size_t i = 0; i < ARRAY_LEN(writable); i++)
		known |= strcmp(writable[i], m.type) == 0;
	if (!known)
		return arena_printf(
			p->a, "%s is on %s, where GRUB cannot clear its entry for the next boot",
			shown, m.type);
	if (source_read_link(p->s, &link, "sys/dev/block/%s", m.device) < 0)
		return arena_printf(p->a, "the device of %s is unknown", shown);
	name = strstr(link, "/virtual/block/");
	return name ? arena_printf(
			      p->a,
			      "%s is on %s (LVM, RAID or encryption), where GRUB cannot clear its "
			      "entry for the next boot",
			      shown, name + strlen("/virtual/block/"))
		    : NULL;
}

/* What GRUB's environment block, that file, has behind "NAME="; "": not set, or it cannot be read. */
static const char *block_value(struct planner *p, const char *path, const char *key)
{
	enum there there;
	const char *block = plan_read(p, &there, path), *value;
	size_t n;

	return block && text_after(block, key, &value, &n) ? arena_strndup(p->a, value, n) : "";
}

/* grub-reboot refuses a file that does not begin like this, and GRUB does not read it. */
static bool is_block(struct planner *p, const char *path)
{
	enum there there;
	const char *block = plan_read(p, &there, path);

	return !block || text_starts_with(block, "# GRUB Environment Block\n");
}

/* What is started has this system's root; the running line's word says which. */
static bool starts_this(struct planner *p, const char *line)
{
	const char *running = fact_str_or(p->m->kernel.cmdline, "");
	const char *root = strstr(running, "root=");

	if (!root || (root != running && root[-1] != ' '))
		return true;
	return text_has_word(line, arena_strndup(p->a, root, strcspn(root, " \t\n")));
}

struct grub_trial {
	const struct grub *g;
	const char *folder, *block; /* "boot/grub", and its grubenv */
	struct grub_menu menu;
	const struct grub_item *entry;
};

/* The entry that GRUB starts by itself. */
static const char *find_entry(struct planner *p, struct grub_trial *t)
{
	const char *choice = t->menu.choice, *why, *line;

	if (!choice)
		return "the default entry of grub.cfg could not be determined";
	if (strcmp(choice, "${saved_entry}") == 0)
		choice = block_value(p, t->block, "saved_entry=");
	t->entry = grub_menu_find(p->a, &t->menu, choice, &why);
	if (!t->entry)
		return arena_printf(p->a,
				    "GRUB's default entry (\"%s\") was not found in grub.cfg: %s",
				    choice, why);
	if (t->entry->begin > t->menu.custom)
		return "GRUB's default entry comes after custom.cfg";
	line = grub_item_line(p->a, &t->menu, t->entry);
	if (!line)
		return arena_printf(p->a, "the entry \"%s\" does not start one Linux kernel",
				    t->entry->title);
	if (!starts_this(p, line))
		return arena_printf(p->a, "GRUB's default entry starts another system: \"%s\"",
				    t->entry->title);
	return NULL;
}

/* Neither GRUB's tools nor onehop write through one. NULL: neither is one. */
static const char *why_linked(struct planner *p, const struct grub_trial *t)
{
	const char *const files[] = {t->block, arena_printf(p->a, "%s/custom.cfg", t->folder)};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_FREE char *target = NULL;

		if (source_read_link(p->s, &target, "%s", files[i]) == 0)
			return arena_printf(p->a, "/%s is a symbolic link", files[i]);
	}
	return NULL;
}

static const char *not_read(struct planner *p, const char *path, enum there there)
{
	p->plan->trial_unseen = there == THERE_UNKNOWN;
	return arena_printf(p->a, "/%s cannot be read", path);
}

/* A person's lines, which the trial's entry is to follow. NULL: it can. */
static const char *why_not_behind(struct planner *p, const struct grub_trial *t)
{
	const char *path = arena_printf(p->a, "%s/custom.cfg", t->folder);
	enum there there;
	const char *text = plan_read(p, &there, path);
	AUTO_STRBUF struct strbuf others = {0};
	struct grub_menu menu;

	if (!text)
		return there == THERE_NO ? NULL : not_read(p, path, there);
	if (!step_block_remove(text, &others))
		return arena_printf(p->a,
				    "/%s has the line \"" STEP_BLOCK_BEGIN
				    "\" without \"" STEP_BLOCK_END "\" behind it",
				    path);
	if (!grub_menu_parse(p->a, strbuf_str(&others), &menu))
		return arena_printf(p->a, "onehop cannot read /%s", path);
	if (menu.sets_default)
		return arena_printf(p->a, "/%s sets the default entry", path);
	if (menu.leaves)
		return arena_printf(p->a, "/%s ends before its last line", path);
	return NULL;
}

static const char *look_at_grub(struct planner *p, struct grub_trial *t)
{
	const char *const tools[] = {t->g->reboot, t->g->editenv, t->g->probe};
	enum there there;
	const char *text = plan_read(p, &there, t->g->config), *why, *next;

	if (!text)
		return not_read(p, t->g->config, there);
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (plan_has_program(p, tools[i]) != THERE_YES)
			return arena_printf(p->a, "%s is not installed", tools[i]);
	if (!grub_menu_parse(p->a, text, &t->menu))
		return arena_printf(p->a, "onehop cannot read /%s", t->g->config);
	if (t->menu.blscfg)
		return PLAN_NO_TRIAL_BLS;
	if (!t->menu.clears_next)
		return "grub.cfg does not clear GRUB's entry for the next boot (next_entry)";
	if (!t->menu.custom)
		return arena_printf(p->a, "grub.cfg does not read /%s/custom.cfg", t->folder);
	why = why_linked(p, t);
	if (!why)
		why = why_not_written(p, t->block);
	if (!why)
		why = why_not_behind(p, t);
	if (why)
		return why;
	if (!is_block(p, t->block))
		return arena_printf(p->a, "/%s is damaged (to replace it: grub-editenv /%s create)",
				    t->block, t->block);
	next = block_value(p, t->block, "next_entry=");
	if (*next)
		return arena_printf(p->a, "GRUB is already set to start \"%s\" at the next boot",
				    next);
	return find_entry(p, t);
}

/* The words as GRUB's script has them, and what ends a kernel that panics. */
static const char *trial_words(struct planner *p, const char *line)
{
	AUTO_STRBUF struct strbuf words = {0};

	for (size_t i = 0; i < p->word_n; i++) {
		strbuf_puts(&words, i ? " " : "");
		strbuf_shell_word(&words, p->words[i].word);
	}
	if (!strstr(line, " panic="))
		strbuf_puts(&words, " " TRIAL_PANIC);
	return arena_strdup(p->a, strbuf_str(&words));
}

/* A kernel that is gone by then must not leave the machine at the menu: the usual entry is next. */
static void add_block(struct planner *p, const struct grub_trial *t, struct strbuf *out)
{
	const char *title = arena_printf(p->a, "Trial boot of onehop (%s)", t->entry->title);
	const char *line = grub_item_line(p->a, &t->menu, t->entry);
	long other = grub_menu_fallback(&t->menu, t->entry);

	strbuf_puts(out, STEP_BLOCK_BEGIN ": a trial boot; \"onehop undo\" removes it\n");
	if (other >= 0)
		strbuf_printf(out,
			      "if [ \"${default}\" = " GRUB_ENTRY_TRIAL " ]; then\n"
			      "\tset fallback=%ld\nfi\n",
			      other);
	grub_item_copy(&t->menu, t->entry, title, GRUB_ENTRY_TRIAL, trial_words(p, line), out);
	strbuf_puts(out, STEP_BLOCK_END "\n");
}

static bool write_custom(struct planner *p, const struct grub_trial *t,
			 const struct purpose *purpose)
{
	struct planned_file *f =
		plan_file(p, arena_printf(p->a, "%s/custom.cfg", t->folder), PHASE_BOOT);
	AUTO_STRBUF struct strbuf text = {0};
	struct step *s;

	if (!f)
		return false;
	step_block_remove(f->text, &text); /* an earlier trial's, which somebody edited around */
	add_block(p, t, &text);
	f->text = arena_strdup(p->a, text.text);
	f->purpose = *purpose;
	f->purpose.reboot = false;
	if (!plan_file_changes(f)) /* an earlier trial's, kept by an edit around it */
		return true;
	plan_file_step(p, f);
	s = &p->phases[PHASE_BOOT].items[p->phases[PHASE_BOOT].n - 1];
	s->what = arena_printf(p->a, "add an entry with %s to GRUB's menu, in /%s", plan_words(p),
			       f->path);
	s->kind = STEP_BLOCK;
	s->mode = 0600; /* as grub.cfg may be: the entry may hold what only root may read */
	s->for_boot = s->trial = true;
	return true;
}

static void set_next(struct planner *p, const struct grub_trial *t, const struct purpose *purpose)
{
	const char *block = arena_printf(p->a, "/%s", t->block);
	struct step *s = plan_step(p, PHASE_BOOT, STEP_ONE_SHOT, purpose,
				   "set GRUB to start that entry once, at the next boot");

	s->target = t->block;
	s->at = "next_entry";
	s->old = (struct bytes){"", 0};
	s->new = (struct bytes){GRUB_ENTRY_TRIAL, strlen(GRUB_ENTRY_TRIAL)};
	s->argv = plan_argv(p, t->g->reboot, GRUB_ENTRY_TRIAL, NULL);
	s->undo_argv = plan_argv(p, t->g->editenv, block, "unset", "next_entry", NULL);
	s->check_argv = plan_argv(p, t->g->probe, "--target=abstraction", block, NULL);
	s->deadline_s = 60;
	s->trial = true;
}

const char *plan_trial_grub(struct planner *p)
{
	struct grub_trial t = {.g = plan_grub_here(p)};
	const struct purpose purpose = plan_words_purpose(p);
	const char *slash = strrchr(t.g->config, '/'), *why;

	t.folder = arena_strndup(p->a, t.g->config, (size_t)(slash - t.g->config));
	t.block = arena_printf(p->a, "%s/grubenv", t.folder);
	why = look_at_grub(p, &t);
	if (why || !t.entry)
		return why;
	if (!write_custom(p, &t, &purpose))
		return arena_printf(p->a, "/%s/custom.cfg is binary", t.folder);
	set_next(p, &t, &purpose);
	plan_way_boot(
		p,
		"power-cycle or reset the machine: the boot after the trial boot does not have these parameters");
	plan_way_boot(
		p,
		"in GRUB's menu (hold Shift or press Esc at power-on if it is hidden) choose any entry but the last");
	plan_way_without(
		p,
		"delete the lines from \"### BEGIN onehop\" to \"### END onehop\" in /%s/custom.cfg",
		t.folder);
	return NULL;
}

/* ---- in place of what stays ---- */

struct trial_start plan_trial_start(const struct planner *p)
{
	return (struct trial_start){.step_n = p->phases[PHASE_BOOT].n,
				    .way_boot_n = p->way_boot_n,
				    .way_without_n = p->way_without_n};
}

/*
 * The steps that were planned since `start` are for confirmation. The trial builds on their files as
 * they are now: the entry has their words, and confirming keeps them.
 */
static void hold_back(struct planner *p, const struct trial_start *start, size_t end)
{
	struct steps *list = &p->phases[PHASE_BOOT];
	struct plan *plan = p->plan;

	for (size_t i = start->step_n; i < end; i++) {
		*ARENA_PUSH(p->a, plan->on_confirm, plan->on_confirm_n) = list->items[i];
		if (list->items[i].kind == STEP_FILE)
			*ARENA_PUSH(p->a, plan->builds_on, plan->builds_on_n) =
				list->items[i].target;
	}
	memmove(list->items + start->step_n, list->items + end,
		(list->n - end) * sizeof(*list->items));
	list->n -= end - start->step_n;
}

static const char *why_never(struct planner *p, const struct boot_way *way)
{
	return way->why_no_trial ? way->why_no_trial
				 : arena_printf(p->a, "onehop cannot try parameters with %s",
						line_keeper_word(way->keeper));
}

void plan_trial_finish(struct planner *p, const struct trial_start *start)
{
	const struct boot_way *way = plan_boot_way(p);
	const size_t end = p->phases[PHASE_BOOT].n;
	const size_t boot_n = p->way_boot_n, without_n = p->way_without_n;
	const char *why = NULL;

	if (p->request->image || end == start->step_n || !is_wanted(p))
		return;
	p->way_boot_n = start->way_boot_n;
	p->way_without_n = start->way_without_n;
	if (plan_words_differ(p)) /* it would say nothing of the entries that get others */
		why = "the boot entries get different parameters";
	else
		why = way->trial ? way->trial(p) : why_never(p, way);
	if (why) { /* and nothing is planned in its place */
		p->way_boot_n = boot_n;
		p->way_without_n = without_n;
		p->plan->no_trial = why;
		return;
	}
	plan_confirming(p);
	note_baseline(p);
	hold_back(p, start, end);
}
