/* SPDX-License-Identifier: Apache-2.0 */
/* Options of kernel modules, and modules that must not load: one file for modprobe, and the initramfs. */
#include "fix/make_plan_impl.h"

#include "machine/modules.h"

#include <string.h>

#define DWORDS   "NVreg_RegistryDwords"
#define REBUILDS "update-initramfs -u, dracut --force or mkinitcpio -P"
#define ABOUT                                                                                        \
	"Options and blocks for kernel modules. To undo them without onehop: delete this file and\n" \
	"# rebuild the initramfs (" REBUILDS ")."

/* What is in an options line without quotes; one with a ; is put in double ones. */
static bool is_plain(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:;=/@+-";

	return text && *text && !text[strspn(text, plain)];
}

/* ---- modules ---- */

static const char *underscored(struct planner *p, const char *module)
{
	char *name = arena_strdup(p->a, module);

	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
	return name;
}

static const struct module *find_module(struct planner *p, const char *module)
{
	return p->request->image ? NULL : machine_module(p->m, underscored(p, module));
}

static bool is_loaded(struct planner *p, const char *module)
{
	const struct module *m = find_module(p, module);

	if (strcmp(module, "nvidia") == 0 && fact_is(p->m->driver.loaded, 0))
		return false;
	return !m || !fact_is(m->loaded, 0);
}

/*
 * Debian's module files have other names, nvidia-current-open.ko, and modprobe looks options up by
 * those too. NULL: the file's name is the module's.
 */
static const char *name_of_file(struct planner *p, const char *module)
{
	const struct module *m = machine_module(p->files, underscored(p, module));
	const char *file = p->request->nvidia_file, *slash, *start, *dot;
	char *name;

	if (file && strcmp(module, "nvidia") == 0)
		return strcmp(file, module) == 0 ? NULL : file;
	if (!m || !fact_known(m->file))
		return NULL;
	slash = strrchr(m->file.value, '/');
	start = slash ? slash + 1 : m->file.value;
	dot = strstr(start, ".ko");
	name = arena_strndup(p->a, start, dot ? (size_t)(dot - start) : strlen(start));
	return strcmp(underscored(p, name), underscored(p, module)) == 0 ? NULL : name;
}

static bool may_be_in_initramfs(const char *module)
{
	static const char *const starts[] = {"nvidia", "nouveau", "nova"};

	if (strstr(module, "peermem"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (text_starts_with(module, starts[i]))
			return true;
	return false;
}

/* ---- the file ---- */

static struct planned_file *modprobe_file(struct planner *p)
{
	return plan_drop_in(p, FILE_MODPROBE, PHASE_MODULES, ABOUT);
}

/* Adds a line, or says that it is there; `key` as plan_file_set_line's. What is said of a module
 * that is `loaded` counts from the next boot on. */
static void set_line(struct planner *p, const struct purpose *purpose, const char *module,
		     bool loaded, const char *key, const char *line)
{
	struct planned_file *f = modprobe_file(p);
	struct purpose with = *purpose;
	const char *rest = f ? plan_file_line(p, f, key) : NULL;

	if (!f)
		return;
	if (rest && strcmp(arena_printf(p->a, "%s%s", key, rest), line) == 0) {
		if (loaded && f->there && strstr(f->old, line))
			plan_note(p, "/%s already has \"%s\"; reboot for it to take effect",
				  FILE_MODPROBE, line);
		return;
	}
	plan_file_set_line(p, f, key, line);
	with.reboot = loaded;
	purpose_join(p, &f->purpose, &with);
	p->initramfs |= may_be_in_initramfs(module);
}

/* ---- what a person's files say ---- */

/* The value behind "option=" as a word of the text, without quotes; NULL: it is not there. */
static const char *option_value(struct planner *p, const char *text, const char *option)
{
	size_t n = strlen(option);

	for (const char *at = text; (at = strstr(at, option)); at += n) {
		const char *value = at + n + 1;
		char quote = *at ? at[n] : '\0';

		if (quote != '=' || (at > text && !strchr(" \t\"", at[-1])))
			continue;
		if (*value == '"')
			return arena_strndup(p->a, value + 1, strcspn(value + 1, "\""));
		return arena_strndup(p->a, value, strcspn(value, " \t\""));
	}
	return NULL;
}

struct said {
	const char *value, *file;
	unsigned line;
};

/* The last options line that is not ours: of several, that one counts. */
static bool said_elsewhere(struct planner *p, const char *module, const char *option,
			   struct said *ret)
{
	bool found = false;

	for (size_t i = 0; i < p->files->modprobe_n; i++) {
		const struct modprobe_line *l = &p->files->modprobe[i];
		const char *value;

		if (l->kind != MODPROBE_OPTIONS || strcmp(l->module, underscored(p, module)) != 0 ||
		    strcmp(l->file, "/" FILE_MODPROBE) == 0)
			continue;
		value = option_value(p, l->text, option);
		if (!value)
			continue;
		*ret = (struct said){value, l->file, l->line};
		found = true;
	}
	return found;
}

/* Files are read in the order of their names, whatever their folder. */
static bool comes_after_ours(const char *file)
{
	return strcmp(strrchr(file, '/') + 1, strrchr(FILE_MODPROBE, '/') + 1) > 0;
}

/* True: nothing is left to do here. */
static bool settle_elsewhere(struct planner *p, const struct change *c)
{
	struct said said;

	if (!said_elsewhere(p, c->target, c->name, &said))
		return false;
	if (strcmp(said.value, c->new) == 0) {
		plan_note(
			p,
			"%s:%u already sets %s=%s; it takes effect when the module is next loaded",
			said.file, said.line, c->name, c->new);
		return true;
	}
	if (comes_after_ours(said.file)) {
		plan_change_by_hand(
			p, c,
			"%s:%u sets %s=%s and is read after onehop's file: make it %s=%s there, "
			"rebuild the initramfs and reboot",
			said.file, said.line, c->name, said.value, c->name, c->new);
		return true;
	}
	plan_note(p, "%s:%u sets %s=%s; onehop's file is read later and overrides it", said.file,
		  said.line, c->name, said.value);
	return false;
}

/* ---- options ---- */

static void set_option(struct planner *p, const struct purpose *purpose, const char *module,
		       const char *option, const char *value)
{
	const char *names[] = {module, name_of_file(p, module)};
	const char *quote = strchr(value, ';') ? "\"" : "";

	for (size_t i = 0; i < ARRAY_LEN(names) && names[i]; i++) {
		const char *key = arena_printf(p->a, "options %s %s=", names[i], option);

		set_line(p, purpose, module, is_loaded(p, module), key,
			 arena_printf(p->a, "%s%s%s%s", key, quote, value, quote));
	}
}

void plan_module_option(struct planner *p, const struct change *c)
{
	struct purpose purpose = {0};

	if (!is_plain(c->target) || !is_plain(c->name) || !is_plain(c->new)) {
		plan_change_by_hand(p, c, "put it into a file in /etc/modprobe.d");
		return;
	}
	if (settle_elsewhere(p, c))
		return;
	purpose_add(p, &purpose, c);
	set_option(p, &purpose, c->target, c->name, c->new);
	plan_want(p, "module-option", "%s %s=%s", c->target, c->name, c->new);
}

/* ---- registry keys: one option holds them all, and of several such options only the last counts ---- */

/* "A=1;B=2" with KEY=VALUE put where KEY stands, or at the end. */
static const char *with_dword(struct planner *p, const char *list, const char *key,
			      const char *value)
{
	AUTO_STRBUF struct strbuf text = {0};
	size_t n = strlen(key);
	bool put = false;

	while (*list) {
		size_t part = strcspn(list, ";");
		bool same = part > n && strncasecmp(list, key, n) == 0 && list[n] == '=';

		if (part && !(same && put)) {
			strbuf_puts(&text, text.len ? ";" : "");
			if (same)
				strbuf_printf(&text, "%s=%s", key, value);
			else
				strbuf_add(&text, list, part);
		}
		put |= same;
		list += part + (list[part] == ';');
	}
	if (!put)
		strbuf_printf(&text, "%s%s=%s", text.len ? ";" : "", key, value);
	return arena_strdup(p->a, text.text);
}

void plan_registry_dword(struct planner *p, const struct change *c)
{
	if (!is_plain(c->name) || !is_plain(c->new) || strpbrk(c->name, ";=") ||
	    strpbrk(c->new, ";=")) {
		plan_change_by_hand(p, c, "put it into " DWORDS " in /etc/modprobe.d");
		return;
	}
	p->dwords = with_dword(p, p->dwords ? p->dwords : "", c->name, c->new);
	purpose_add(p, &p->dword_purpose, c);
}

/* All that are wanted, put into what is there. */
static const char *with_wanted(struct planner *p, const char *list)
{
	AUTO_FREE char *wanted = xstrdup(p->dwords);
	char *rest = wanted, *item;

	while ((item = strsep(&rest, ";"))) {
		char *equals = strchr(item, '=');

		*equals = '\0';
		list = with_dword(p, list, item, equals + 1);
	}
	return list;
}

static void want_dwords(struct planner *p)
{
	AUTO_FREE char *wanted = xstrdup(p->dwords);
	char *rest = wanted, *item;

	while ((item = strsep(&rest, ";")))
		plan_want(p, "registry-dword", "nvidia %s", item);
}

static void dwords_by_hand(struct planner *p, const struct said *said)
{
	const char *value = with_wanted(p, said->value);

	if (strcmp(value, said->value) == 0) {
		plan_note(
			p,
			"%s:%u already sets these registry keys; they take effect when the module is next "
			"loaded again",
			said->file, said->line);
		return;
	}
	plan_manual(p, p->dword_purpose.rules,
		    arena_printf(p->a, "registry keys of the driver: %s", p->dwords),
		    "%s:%u sets " DWORDS ", and only one such option counts: make it " DWORDS
		    "=\"%s\" there, rebuild the initramfs and reboot",
		    said->file, said->line, value);
}

static void plan_dwords(struct planner *p)
{
	const char *on_cmdline = fact_str_or(p->m->kernel.cmdline, "");
	struct planned_file *f;
	struct said said;
	const char *line, *old;

	if (!p->dwords)
		return;
	if (said_elsewhere(p, "nvidia", DWORDS, &said)) {
		dwords_by_hand(p, &said);
		return;
	}
	old = p->request->image ? NULL : option_value(p, on_cmdline, "nvidia." DWORDS);
	if (old) {
		plan_manual(p, p->dword_purpose.rules, "registry keys of the driver",
			    "the kernel's command line has nvidia." DWORDS
			    ", and only one such option counts: make it nvidia." DWORDS
			    "=\"%s\" there and reboot",
			    with_wanted(p, old));
		return;
	}
	f = modprobe_file(p);
	line = f ? plan_file_line(p, f, "options nvidia " DWORDS "=") : NULL;
	old = line ? option_value(p, arena_printf(p->a, DWORDS "=%s", line), DWORDS) : "";
	set_option(p, &p->dword_purpose, "nvidia", DWORDS, with_wanted(p, old ? old : ""));
	want_dwords(p);
}

/* ---- modules that must not load ---- */

static bool is_blocked(struct planner *p, enum modprobe_kind kind, const char *module)
{
	for (size_t i = 0; i < p->files->modprobe_n; i++) {
		const struct modprobe_line *l = &p->files->modprobe[i];

		if (l->kind == kind && strcmp(l->module, underscored(p, module)) == 0 &&
		    strcmp(l->file, "/" FILE_MODPROBE) != 0 &&
		    (kind == MODPROBE_BLACKLIST || strstr(l->text, "/bin/false") ||
		     strstr(l->text, "/bin/true"))) {
			plan_note(
				p,
				"%s:%u already keeps %s from loading; it takes effect from the next boot "
				"on",
				l->file, l->line, module);
			return true;
		}
	}
	return false;
}

static void block(struct planner *p, const struct purpose *purpose, const char *command,
		  const char *module, bool loaded, const char *rest)
{
	const char *key = arena_printf(p->a, "%s %s", command, module);

	set_line(p, purpose, module, loaded, key, arena_printf(p->a, "%s%s", key, rest));
}

void plan_module_blacklist(struct planner *p, const struct change *c)
{
	struct purpose purpose = {0};

	if (is_blocked(p, MODPROBE_BLACKLIST, c->target))
		return;
	purpose_add(p, &purpose, c);
	block(p, &purpose, "blacklist", c->target, is_loaded(p, c->target), "");
	plan_want(p, "module-blacklist", "%s", c->target);
}

/* nv_peer_mem brings a service of its own that loads it. Its file; NULL: there is none. */
static const char *service_file(struct planner *p, const char *module)
{
	static const char *const paths[] = {"etc/init.d/%s", "etc/systemd/system/%s.service",
					    "usr/lib/systemd/system/%s.service",
					    "lib/systemd/system/%s.service"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_STRBUF struct strbuf path = {0};
		const char *gap = strchr(paths[i], '%');

		strbuf_add(&path, paths[i], (size_t)(gap - paths[i]));
		strbuf_printf(&path, "%s%s", module, gap + 2);
		if (plan_exists(p, "%s", path.text) == THERE_YES)
			return arena_strdup(p->a, path.text);
	}
	return NULL;
}

static void name_package(struct planner *p, const struct change *c)
{
	const char *remove = distribution_remove_old_peermem(plan_distribution(p));
	const bool packaged =
		plan_exists(p, "var/lib/dpkg/info/nvidia-peer-memory-dkms.list") == THERE_YES;

	if (strcmp(underscored(p, c->target), "nv_peer_mem") != 0 ||
	    (!packaged && plan_exists(p, "var/lib/dkms/nv_peer_mem") != THERE_YES))
		return;
	plan_manual(p, c->rules, "remove the package of nv_peer_mem", "%s%s%s%s", remove ? "`" : "",
		    remove ? remove : "", remove ? "`" : "",
		    packaged ? ""
		    : remove ? ", or, if no package has it: `dkms remove nv_peer_mem --all`"
			     : "`dkms remove nv_peer_mem --all`, if no package has it");
}

static void in_use(struct planner *p, const struct change *c, const struct module *m)
{
	const char *by =
		fact_known(m->used_by) && *m->used_by.value ? m->used_by.value : "by programs";

	if (plan_lifetime(p, c) & CHANGE_KEPT)
		plan_note(p,
			  "%s is in use (%s), so it cannot be unloaded now; the reboot unloads it",
			  c->target, by);
	else
		plan_left_out(p, c->rules, arena_printf(p->a, "unload %s", c->target),
			      "it is in use (%s)", by);
}

/* Not by modprobe -r, which takes what the module needs along: the driver itself. Its service may
 * have unloaded it already when it was stopped. False: it cannot be. */
static bool unload_now(struct planner *p, const struct change *c, const struct purpose *purpose)
{
	const struct module *m = find_module(p, c->target);
	const struct tool unload = {
		.argv = plan_argv(p, "rmmod", c->target, NULL),
		.argv_if = plan_module_folder(p, c->target),
		.undo_argv = plan_argv(p, "modprobe", c->target, NULL),
		.passing = true,
	};

	if (m && fact_known(m->users) && m->users.value > 0) {
		in_use(p, c, m);
		return false;
	}
	plan_tool(p, PHASE_STOP, &unload, purpose, "unload %s", c->target);
	return true;
}

/* "systemctl WORD [--now] SERVICE", or what --now alone stands for; NULL: nothing. */
static const char *const *systemctl(struct planner *p, const char *word, bool kept, bool now,
				    const char *alone, const char *service)
{
	if (kept && now)
		return plan_argv(p, "systemctl", word, "--now", service, NULL);
	if (kept || now)
		return plan_argv(p, "systemctl", kept ? word : alone, service, NULL);
	return NULL;
}

/*
 * Undoing makes it what it was: enabled or not, and running or not, which the module that it loads
 * tells; and it leaves a package alone that was removed since.
 */
static void stop_service(struct planner *p, const struct change *c, const struct purpose *purpose)
{
	const char *file = service_file(p, c->target);
	const char *unit = arena_printf(p->a, "%s.service", c->target);
	const unsigned lifetime = plan_lifetime(p, c);
	bool enabled = (lifetime & CHANGE_KEPT) && plan_is_enabled(p, unit) != THERE_NO;
	bool runs = (lifetime & CHANGE_NOW) && is_loaded(p, c->target);
	const struct tool stop = {
		.argv = systemctl(p, "disable", enabled, runs, "stop", c->target),
		.undo_argv = systemctl(p, "enable", enabled, runs, "start", c->target),
		.undo_if = file,
		.passing = !enabled,
	};

	if (file && stop.argv)
		plan_tool(p, PHASE_STOP, &stop, purpose,
			  enabled ? "stop and disable the service %s" : "stop the service %s",
			  c->target);
}

void plan_module_unload(struct planner *p, const struct change *c)
{
	struct change copy = *c;
	struct purpose purpose = {0};
	bool stays = is_loaded(p, c->target);

	copy.target = arena_strdup(p->a, c->target);
	purpose_add(p, &purpose, c);
	if (!is_plain(c->target)) {
		plan_change_by_hand(p, c, "rmmod %s", c->target);
		return;
	}
	stop_service(p, &copy, &purpose);
	if (stays && (plan_lifetime(p, c) & CHANGE_NOW))
		stays = !unload_now(p, &copy, &purpose);
	if (plan_lifetime(p, c) & CHANGE_KEPT) {
		if (!is_blocked(p, MODPROBE_BLACKLIST, c->target))
			block(p, &purpose, "blacklist", copy.target, stays, "");
		if (!is_blocked(p, MODPROBE_INSTALL, c->target))
			block(p, &purpose, "install", copy.target, stays, " /bin/false");
		plan_want(p, "module-blacklist", "%s", c->target);
	}
	name_package(p, c);
}

/* ---- the initramfs ---- */

static const struct initramfs_tool *find_initramfs(struct planner *p)
{
	for (size_t i = 0; i < initramfs_tool_n; i++)
		if (plan_has_program(p, initramfs_tools[i].program) == THERE_YES)
			return &initramfs_tools[i];
	for (size_t i = 0; i < initramfs_tool_n; i++)
		if (plan_has_program(p, initramfs_tools[i].program) == THERE_UNKNOWN &&
		    (initramfs_tools[i].distributions & 1u << plan_distribution(p)))
			return &initramfs_tools[i];
	return NULL;
}

static bool may_have_initramfs_tool(struct planner *p)
{
	for (size_t i = 0; i < initramfs_tool_n; i++)
		if (plan_has_program(p, initramfs_tools[i].program) == THERE_UNKNOWN)
			return true;
	return false;
}

static void note_no_initramfs(struct planner *p, const struct planned_file *f)
{
	if (plan_is_ostree(p) && f)
		plan_manual(p, f->purpose.rules, "add the file to the initramfs",
			    "`rpm-ostree initramfs-etc --track=/%s`", f->path);
	else if (!plan_etc_is_generated(p)) /* nixos-rebuild makes it */
		plan_note(
			p, "%s",
			may_have_initramfs_tool(p)
				? "it is unknown which tool makes the initramfs: if the initramfs contains the module, rebuild it (" REBUILDS
				  ")"
				: "update-initramfs, dracut and mkinitcpio are all missing: if the initramfs contains the module, rebuild it yourself");
}

static void way_without(struct planner *p, const struct planned_file *f,
			const struct initramfs_tool *i)
{
	const char *modules = p->request->modules_back;
	const char *path = f && f->purpose.reboot ? f->path : NULL;
	AUTO_STRBUF struct strbuf commands = {0};
	const char *by_hand = "";

	if (path && f->there)
		by_hand = arena_printf(p->a, "remove the added lines from /%s", path);
	else if (path)
		strbuf_printf(&commands, "rm /%s", path);
	if (modules)
		strbuf_printf(&commands, "%s%s", commands.len ? " && " : "", modules);
	if (i) {
		strbuf_puts(&commands, commands.len ? " && " : "");
		step_command_line(i->all, &commands);
	}
	if (!commands.len)
		plan_way_without(p, "%s", by_hand);
	else
		plan_way_without(p, "%s%s`%s`", by_hand, *by_hand ? ", then " : "", commands.text);
}

static void way_back(struct planner *p, const struct planned_file *f,
		     const struct initramfs_tool *i)
{
	if (!p->request->modules_back && !(f && f->purpose.reboot))
		return;
	if (p->initramfs)
		plan_way_edit(
			p,
			"add systemd.unit=multi-user.target modprobe.blacklist=nvidia to the line that "
			"starts with linux or options: NVIDIA's driver is not loaded then");
	way_without(p, f, i);
}

/* ---- modules of the caller, the file, and the initramfs around both ---- */

/* What modprobe's file is to hold, if that changes. The caller's modules need what is there already. */
static struct planned_file *changed_file(struct planner *p)
{
	struct planned_file *f = p->file_list;

	while (f && strcmp(f->path, FILE_MODPROBE) != 0)
		f = f->next;
	if (!f || plan_file_changes(f))
		return f;
	if (p->request->module_n && f->there)
		*ARENA_PUSH(p->a, p->plan->builds_on, p->plan->builds_on_n) = f->path;
	return NULL;
}

static bool add_modules(struct planner *p)
{
	struct steps *list = &p->phases[PHASE_MODULES];
	bool reboot = false;

	for (size_t i = 0; i < p->request->module_n; i++) {
		*ARENA_PUSH(p->a, list->items, list->n) = p->request->modules[i];
		reboot |= p->request->modules[i].reboot;
	}
	return reboot;
}

/* A driver's modules are for one kernel, which need not be the next one that boots. */
static const char *const *after(const struct planner *p, const struct initramfs_tool *i)
{
	return p->request->image || p->request->module_n ? i->all : i->next;
}

void plan_module_finish(struct planner *p)
{
	const struct purpose of_file = {
		.why = TEXTS("the initramfs contains a copy of modprobe's files")};
	const struct purpose of_modules = {
		.why = TEXTS(
			"the initramfs may contain the modules, and a copy of modprobe's files")};
	struct purpose serves = p->request->module_n ? of_modules : of_file;
	const struct initramfs_tool *i = NULL;
	struct planned_file *f;

	plan_dwords(p);
	f = changed_file(p);
	if (!f && !p->request->module_n)
		return;
	p->initramfs |= p->request->module_n > 0;
	if (p->initramfs && !plan_is_ostree(p))
		i = find_initramfs(p);
	if (i) {
		const struct tool undo = {.undo_argv = i->all, .deadline_s = 900};

		plan_tool(p, PHASE_MODULES, &undo, &serves, "rebuild the initramfs");
	}
	serves.reboot = add_modules(p);
	if (f) {
		plan_file_step(p, f);
		serves.reboot |= f->purpose.reboot;
	}
	if (i) {
		const struct tool apply = {.argv = after(p, i), .deadline_s = 900};

		plan_tool(p, PHASE_MODULES, &apply, &serves, "rebuild the initramfs");
	} else if (p->initramfs) {
		note_no_initramfs(p, f);
	}
	way_back(p, f, i);
}
