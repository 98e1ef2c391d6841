/* SPDX-License-Identifier: Apache-2.0 */
/* systemd-boot: /etc/kernel/cmdline, and what makes boot entries of it. */
#include "fix/boot_entry.h"
#include "fix/make_plan_impl.h"

#include <string.h>

/* ---- who makes the entries ---- */

/* kernel-install names its entries after the kernel: MACHINE-ID-6.1.0-9-amd64.conf. */
static bool is_written_by_hand(struct planner *p, const char *release)
{
	static const char *const folders[] = {"boot/loader/entries", "efi/loader/entries",
					      "boot/efi/loader/entries"};
	size_t entries = 0;

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		char **names = NULL;
		size_t n = 0;
		bool found = false;

		if (source_list(p->s, &names, &n, "%s", folders[i]) < 0)
			continue;
		for (size_t k = 0; k < n; k++) {
			entries += text_ends_with(names[k], ".conf");
			found |= strstr(names[k], release) != NULL;
		}
		source_free_names(names, n);
		if (found)
			return false;
	}
	return entries > 0;
}

/* Below the root; NULL: there is none. */
static const char *kernel_image(struct planner *p, const char *release)
{
	const char *const paths[] = {
		arena_printf(p->a, "lib/modules/%s/vmlinuz", release),
		arena_printf(p->a, "boot/vmlinuz-%s", release),
	};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (plan_exists(p, "%s", paths[i]) == THERE_YES)
			return paths[i];
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (plan_exists(p, "%s", paths[i]) == THERE_UNKNOWN)
			return paths[i];
	return NULL;
}

bool plan_loader_has_kernel_install(struct planner *p)
{
	const struct fact_str *release = &p->m->kernel.release;

	if (!plan_is_systemd_boot(p) || plan_has_program(p, "kernel-install") == THERE_NO)
		return false;
	if (p->request->image)
		return true;
	return fact_known(*release) && kernel_image(p, release->value) &&
	       !is_written_by_hand(p, release->value);
}

/* ---- /etc/kernel/cmdline ---- */

/* The running line without what the boot loader put there. */
static const char *running_line(struct planner *p)
{
	static const char *const loader[] = {"BOOT_IMAGE=", "initrd="};
	AUTO_FREE char *copy = xstrdup(fact_str_or(p->m->kernel.cmdline, ""));
	AUTO_STRBUF struct strbuf line = {0};
	char *rest = copy, *word;

	while ((word = strsep(&rest, " \t\n"))) {
		bool skip = !*word;

		for (size_t i = 0; i < ARRAY_LEN(loader); i++)
			skip |= text_starts_with(word, loader[i]);
		if (!skip)
			strbuf_printf(&line, "%s%s", line.len ? " " : "", word);
	}
	if (fact_known(p->m->kernel.init_words))
		strbuf_printf(&line, " -- %s", p->m->kernel.init_words.value);
	return arena_strdup(p->a, strbuf_str(&line));
}

/* What kernel-install would take while /etc/kernel/cmdline is not there; NULL: nobody knows. */
static const char *line_without_file(struct planner *p)
{
	enum there there;
	const char *text = plan_read(p, &there, "usr/lib/kernel/cmdline");

	if (text)
		return text;
	if (p->request->image || !fact_known(p->m->kernel.cmdline))
		return NULL;
	return arena_printf(p->a, "%s\n", running_line(p));
}

/* The words, behind the last for the kernel. NULL: the text has a quote that is never closed. */
static const char *append_words(struct planner *p, const char *text)
{
	for (size_t i = 0; i < p->word_n; i++) {
		AUTO_STRBUF struct strbuf next = {0};

		if (!boot_text_add(text, BOOT_TEXT_LINE, p->words[i].word, &next))
			return NULL;
		text = arena_strdup(p->a, strbuf_str(&next));
	}
	return text;
}

static struct planned_file *write_line(struct planner *p)
{
	struct planned_file *f = plan_file(p, FILE_KERNEL_LINE, PHASE_BOOT);
	const char *text = f && f->there ? f->old : line_without_file(p);

	for (size_t i = p->word_n; f && f->there && i-- > 0;)
		if (plan_text_has_word(p, f->old, p->words[i].word)) {
			plan_note(p, "/%s has %s; a reboot is still due", FILE_KERNEL_LINE,
				  p->words[i].word);
			plan_word_drop(p, i);
		}
	if (!p->word_n)
		return NULL;
	text = f && text ? append_words(p, text) : NULL;
	if (!text) {
		plan_boot_by_hand(p);
		return NULL;
	}
	f->text = text;
	f->purpose = plan_words_purpose(p);
	return f;
}

/* ---- the file, between what makes the entries anew ---- */

static void way_back(struct planner *p, const struct planned_file *f, const char *command)
{
	const char *words = plan_words(p);

	plan_way_boot(p, "press e on the entry in the boot menu and delete %s, for that boot only",
		      words);
	if (f->there)
		plan_way_without(p, "delete %s from /%s and run `%s`", words, f->path, command);
	else
		plan_way_without(p, "`rm /%s && %s`", f->path, command);
}

/* One bracket a kernel; NULL-ended. */
static void add_bracket(struct planner *p, const char *const *const *commands)
{
	const struct purpose undone = {.why = "boot entries are made from that file", .rules = ""};
	const struct purpose done = {.why = undone.why, .rules = "", .reboot = true};
	AUTO_STRBUF struct strbuf line = {0};
	struct planned_file *f = write_line(p);

	if (!f)
		return;
	for (size_t i = 0; commands[i]; i++) {
		const struct tool undo = {.undo_argv = commands[i], .deadline_s = 300};

		plan_tool(p, PHASE_BOOT, &undo, &undone, "when undone: make the boot entries anew");
	}
	plan_file_step(p, f);
	for (size_t i = 0; commands[i]; i++) {
		const struct tool apply = {.argv = commands[i], .deadline_s = 300};

		plan_tool(p, PHASE_BOOT, &apply, &done, "make the boot entries anew");
	}
	plan_words_want(p);
	for (size_t i = 0; commands[i]; i++) {
		strbuf_puts(&line, i ? " && " : "");
		step_command_line(commands[i], &line);
	}
	way_back(p, f, strbuf_str(&line));
}

void plan_loader_proxmox(struct planner *p)
{
	const char *const *const commands[] = {plan_argv(p, "proxmox-boot-tool", "refresh", NULL),
					       NULL};

	add_bracket(p, commands);
}

/* A folder of modules may outlive its kernel. */
static bool has_image(struct planner *p, const char *release)
{
	const char *image = kernel_image(p, release);

	return image && plan_exists(p, "%s", image) == THERE_YES;
}

static const char *const *install_argv(struct planner *p, const char *release)
{
	const char *image = kernel_image(p, release);

	return plan_argv(p, "kernel-install", "add", release,
			 arena_printf(p->a, "/%s", image ? image : "lib/modules/"), NULL);
}

/* Each kernel that is here, and not the running one alone: it need not be the one that boots next. */
void plan_loader_kernel_install(struct planner *p)
{
	const char *runs = p->request->image ? NULL : p->m->kernel.release.value;
	const char *const **commands = NULL;
	char **names = NULL;
	size_t n = 0, command_n = 0;

	if (runs)
		*ARENA_PUSH(p->a, commands, command_n) = install_argv(p, arena_strdup(p->a, runs));
	if (source_list(p->s, &names, &n, "lib/modules") == 0)
		for (size_t i = 0; i < n; i++)
			if ((!runs || strcmp(names[i], runs) != 0) && has_image(p, names[i]))
				*ARENA_PUSH(p->a, commands, command_n) =
					install_argv(p, arena_strdup(p->a, names[i]));
	source_free_names(names, n);
	*ARENA_PUSH(p->a, commands, command_n) = NULL;
	add_bracket(p, (const char *const *const *)commands);
}
