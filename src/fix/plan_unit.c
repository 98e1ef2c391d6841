/* SPDX-License-Identifier: Apache-2.0 */
/* Systemd units: onehop's own, and the driver's. */
#include "fix/make_plan_impl.h"

#include <string.h>

#define ENABLED FOLDER_UNITS "multi-user.target.wants/"

/* ---- the program that units run ---- */

/* A path as systemd reads it in a command: quoted, its specifiers doubled. */
static const char *unit_path(struct planner *p, const char *path)
{
	AUTO_STRBUF struct strbuf text = {0};
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-";

	if (!path[strspn(path, plain)])
		return path;
	strbuf_putc(&text, '"');
	for (; *path; path++) {
		if (strchr("\"\\", *path))
			strbuf_putc(&text, '\\');
		if (strchr("%$", *path))
			strbuf_putc(&text, *path);
		strbuf_putc(&text, *path);
	}
	strbuf_putc(&text, '"');
	return arena_strdup(p->a, text.text);
}

/*
 * Where packages and "meson install" put programs, and where a unit finds them at the next boot too. A
 * build folder is none, nor is what lies on a disk that may not be mounted then.
 */
static bool is_installed(const char *program)
{
	static const char *const passing[] = {"/home/", "/root/",  "/tmp/", "/var/tmp/",
					      "/mnt/",  "/media/", "/run/", "/dev/"};
	AUTO_FREE char *folder = xstrndup(program, (size_t)(strrchr(program, '/') - program));

	for (size_t i = 0; i < ARRAY_LEN(passing); i++)
		if (text_starts_with(program, passing[i]))
			return false;
	return text_ends_with(folder, "/bin") || text_ends_with(folder, "/sbin");
}

const char *plan_own_program(struct planner *p)
{
	const char *program = p->request->program;

	return program && is_installed(program) ? unit_path(p, program) : NULL;
}

/* ---- a unit of onehop's own ---- */

/*
 * The program of a command, as a condition reads it: to the end of the line, without quotes; '%' is
 * special there too, '$' is not.
 */
static const char *program_of(struct planner *p, const char *command)
{
	AUTO_STRBUF struct strbuf text = {0};
	bool quoted = *command == '"';

	for (const char *c = command + quoted; *c && *c != (quoted ? '"' : ' '); c++) {
		if (quoted && (*c == '\\' || *c == '$'))
			c++;
		strbuf_putc(&text, *c);
	}
	return arena_strdup(p->a, text.text);
}

static void add_key(struct strbuf *text, const char *key, const char *value)
{
	if (value)
		strbuf_printf(text, "%s=%s\n", key, value);
}

/*
 * Before every service that does not ask to come as early; but its files can be read, and modules that
 * the system names are loaded. Pulled in by the same target as the others: a rescue system goes
 * without.
 */
static const char early[] =
	"DefaultDependencies=no\n"
	"After=local-fs.target systemd-modules-load.service systemd-udev-trigger.service\n"
	"Before=sysinit.target shutdown.target\n"
	"Conflicts=shutdown.target\n";

static const char *unit_text(struct planner *p, const struct unit *u)
{
	AUTO_STRBUF struct strbuf text = {0};

	strbuf_printf(&text, PLAN_HEADER "[Unit]\n");
	add_key(&text, "Description", u->about);
	add_key(&text, "ConditionPathExists", u->condition);
	/* Once a package is removed, its unit is skipped and does not fail. */
	add_key(&text, "ConditionFileIsExecutable", program_of(p, u->start));
	if (u->early)
		strbuf_puts(&text, early);
	add_key(&text, "After", u->after);
	strbuf_puts(&text, u->waits ? "\n[Service]\nType=exec\n"
				    : "\n[Service]\nType=oneshot\nRemainAfterExit=yes\n");
	add_key(&text, "ExecStartPre", u->first);
	add_key(&text, "ExecStart", u->start);
	add_key(&text, "ExecStop", u->stop);
	strbuf_puts(&text, "TimeoutStartSec=120\n\n[Install]\nWantedBy=multi-user.target\n");
	return arena_strdup(p->a, text.text);
}

static void image_unit(struct planner *p, const char *name, struct texts rules)
{
	const char *const argv[] = {"systemctl", arena_printf(p->a, "--root=%s", source_name(p->s)),
				    "enable", name, NULL};
	AUTO_STRBUF struct strbuf line = {0};

	step_command_line(argv, &line);
	plan_manual(p, rules, arena_printf(p->a, "enable %s in the system image", name), "`%s`",
		    line.text);
}

/* `link`: what enabling makes; NULL: it is there already. */
static void enable(struct planner *p, const struct unit *u, const char *link,
		   const struct purpose *purpose)
{
	const struct tool tool = {
		.argv = u->now ? plan_argv(p, "systemctl", "enable", "--now", u->name, NULL)
			       : plan_argv(p, "systemctl", "enable", u->name, NULL),
		.undo_argv = u->now ? plan_argv(p, "systemctl", "disable", "--now", u->name, NULL)
				    : plan_argv(p, "systemctl", "disable", u->name, NULL),
		.link = link,
		.deadline_s = 180,
	};

	if (p->request->image)
		image_unit(p, u->name, purpose->rules);
	else
		plan_tool(p, PHASE_UNITS, &tool, purpose, "enable %s%s", u->name,
			  u->now ? ", and start it" : "");
}

/* Enabling makes systemd read the file; it forgets the file only when told after it is gone. */
void plan_unit(struct planner *p, const struct unit *u, const struct purpose *purpose)
{
	const struct purpose serves = {.why = TEXTS("systemd then drops the unit")};
	const struct tool forget = {
		.undo_argv = plan_argv(p, "systemctl", "daemon-reload", NULL),
		.undo_if = PLAN_SYSTEMD_RUNS,
	};
	struct planned_file *f;
	const char *link = arena_printf(p->a, ENABLED "%s", u->name);
	bool enabled = plan_exists(p, "%s", link) == THERE_YES;

	if (plan_etc_is_generated(p)) {
		plan_manual(
			p, purpose->rules, u->about,
			"add to /etc/nixos/configuration.nix: %s; then `nixos-rebuild boot`, and "
			"reboot",
			u->nix);
		return;
	}
	f = plan_file(p, arena_printf(p->a, FOLDER_UNITS "%s", u->name), PHASE_UNITS);
	if (!f)
		return;
	f->text = unit_text(p, u);
	purpose_join(p, &f->purpose, purpose);
	if (plan_file_changes(f)) {
		plan_tool(p, PHASE_UNITS, &forget, &serves, "reload systemd");
		plan_file_step(p, f);
		/* A person enables it there, as the plan says. */
		if (p->request->image && !enabled)
			p->phases[PHASE_UNITS].items[p->phases[PHASE_UNITS].n - 1].link = link;
	} else {
		plan_note(p, "/%s is already correct%s", f->path, enabled ? " and enabled" : "");
		*ARENA_PUSH(p->a, p->plan->builds_on, p->plan->builds_on_n) = f->path;
	}
	if (plan_file_changes(f) || !enabled || u->now)
		enable(p, u, enabled ? NULL : link, purpose);
}

/* ---- nvidia-peermem ---- */

static bool is_loaded(const struct planner *p)
{
	return fact_is(p->m->peermem.loaded, 1);
}

/* Not by modprobe -r, which takes what the module needs along: the driver itself. */
static void load_now(struct planner *p, const char *module, const struct purpose *purpose)
{
	const struct tool load = {
		.argv = plan_argv(p, "modprobe", module, NULL),
		.undo_argv = plan_argv(p, "rmmod", module, NULL),
		.undo_if = plan_module_folder(p, module),
		.passing = true,
	};

	plan_tool(p, PHASE_START, &load, purpose, "load %s", module);
}

/* As modprobe is called, Debian's name too; NULL: it is none of these. */
static const char *peermem_name(struct planner *p, const char *module)
{
	static const char *const names[] = {"nvidia-peermem", "nvidia-current-peermem"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(plan_module_folder(p, module), plan_module_folder(p, names[i])) == 0)
			return names[i];
	return NULL;
}

void plan_module_load(struct planner *p, const struct change *c)
{
	const char *name = peermem_name(p, c->target);
	const struct unit unit = {
		.name = UNIT_PEERMEM,
		.about = "nvidia-peermem, after the driver and the RDMA stack",
		.after = "systemd-modules-load.service nvidia-persistenced.service openibd.service "
			 "rdma-load-modules@infiniband.service rdma-load-modules@rdma.service "
			 "rdma-load-modules@roce.service rdma-ndd.service",
		.start = arena_printf(p->a, "/sbin/modprobe %s", name ? name : ""),
		.nix = "boot.kernelModules = [ \"nvidia-peermem\" ];",
	};
	struct purpose purpose = {0};

	if (!name) {
		plan_change_by_hand(
			p, c, "modprobe %s, and a line \"%s\" in a file in /etc/modules-load.d",
			c->target, c->target);
		return;
	}
	purpose_add(p, &purpose, c);
	if ((plan_lifetime(p, c) & CHANGE_NOW) && !is_loaded(p))
		load_now(p, name, &purpose);
	if (!(plan_lifetime(p, c) & CHANGE_KEPT))
		return;
	if (plan_has_systemd(p))
		plan_unit(p, &unit, &purpose);
	else
		plan_manual(
			p, c->rules, arena_printf(p->a, "load %s at each boot", name),
			"run `modprobe %s` at each boot, after the driver and the RDMA stack (no systemd here)",
			name);
}

/* ---- persistence ---- */

/* Ubuntu's unit starts the daemon without persistence: what it then keeps open is nothing. */
static bool is_useful(const char *unit)
{
	return unit && !strstr(unit, "--no-persistence-mode");
}

static const char *packaged_unit(struct planner *p)
{
	static const char *const folders[] = {FOLDER_UNITS, "usr/lib/systemd/system/",
					      "lib/systemd/system/"};

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		enum there there;
		const char *text =
			plan_read(p, &there,
				  arena_printf(p->a, "%snvidia-persistenced.service", folders[i]));

		if (text)
			return text;
	}
	return NULL;
}

static void turn_on(struct planner *p, const struct purpose *purpose)
{
	const struct tool now = {
		.argv = plan_argv(p, "nvidia-smi", "-pm", "1", NULL),
		.undo_argv = plan_argv(p, "nvidia-smi", "-pm", "0", NULL),
		.passing = true,
	};

	plan_tool(p, PHASE_START, &now, purpose, "turn persistence on");
}

/* The daemon's folder with its socket is gone when it ends; what it holds shows at the GPUs too. */
static bool daemon_runs(struct planner *p)
{
	bool runs = plan_exists(p, "run/nvidia-persistenced") == THERE_YES ||
		    plan_exists(p, "var/run/nvidia-persistenced") == THERE_YES;

	for (size_t i = 0; i < p->m->gpu_n; i++)
		runs |= fact_is(p->m->gpus[i].persistence, 1);
	return runs;
}

/* By whether it is wanted at boot and now, and was not so before: undoing takes back no more. */
static const struct {
	const char *on[2], *off[2], *what;
} packaged_ways[2][2] = {
	[0][1] = {{"start"}, {"stop"}, "start"},
	[1][0] = {{"enable"}, {"disable"}, "enable"},
	[1][1] = {{"enable", "--now"}, {"disable", "--now"}, "enable and start"},
};

static const char *const *systemctl(struct planner *p, const char *const words[2], const char *unit)
{
	return words[1] ? plan_argv(p, "systemctl", words[0], words[1], unit, NULL)
			: plan_argv(p, "systemctl", words[0], unit, NULL);
}

static void use_packaged(struct planner *p, const struct change *c, const struct purpose *purpose)
{
	static const char name[] = "nvidia-persistenced.service";
	bool now = plan_lifetime(p, c) & CHANGE_NOW, runs = daemon_runs(p);
	bool enable = plan_is_enabled(p, name) != THERE_YES, start = now && !runs;
	struct tool tool = {0};

	if (p->request->image && enable) {
		image_unit(p, name, purpose->rules);
		return;
	}
	if (p->request->image)
		return;
	if (enable || start) {
		tool.argv = systemctl(p, packaged_ways[enable][start].on, name);
		tool.undo_argv = systemctl(p, packaged_ways[enable][start].off, name);
		plan_tool(p, PHASE_START, &tool, purpose, "%s %s",
			  packaged_ways[enable][start].what, name);
	} else {
		plan_note(p, "%s is already enabled%s", name, runs ? " and running" : "");
	}
	if (now && runs)
		turn_on(p, purpose);
}

static void use_own(struct planner *p, const struct change *c, const struct purpose *purpose)
{
	const struct unit unit = {
		.name = UNIT_PERSISTENCE,
		.about = "GPUs stay initialized while no program uses them",
		.after = "systemd-modules-load.service nvidia-persistenced.service",
		.start = "/usr/bin/nvidia-smi -pm 1",
		.stop = "/usr/bin/nvidia-smi -pm 0",
		.nix = "hardware.nvidia.nvidiaPersistenced = true;",
		.now = plan_lifetime(p, c) & CHANGE_NOW,
	};

	plan_unit(p, &unit, purpose);
}

void plan_persistence(struct planner *p, const struct change *c)
{
	struct purpose purpose = {0};

	purpose_add(p, &purpose, c);
	if (!plan_has_systemd(p)) {
		plan_manual(p, c->rules, plan_change_words(p, c),
			    "run `nvidia-smi -pm 1` at each boot (no systemd here)");
		if (plan_lifetime(p, c) & CHANGE_NOW)
			turn_on(p, &purpose);
	} else if (!(plan_lifetime(p, c) & CHANGE_KEPT)) {
		turn_on(p, &purpose);
	} else if (is_useful(packaged_unit(p)) && !plan_etc_is_generated(p)) {
		use_packaged(p, c, &purpose);
	} else {
		use_own(p, c, &purpose);
	}
}
