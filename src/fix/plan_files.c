/* SPDX-License-Identifier: Apache-2.0 */
/* What the host holds now, and the files that are to hold something else. */
#include "fix/make_plan_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what is there ---- */

static enum there exists(struct planner *p, const char *path)
{
	AUTO_FREE char *data = NULL;
	size_t size;
	int r = source_read_link(p->s, &data, "%s", path);

	if (r == -ENODATA) /* a recording may have been asked for the bytes only */
		r = source_read(p->s, &data, &size, "%s", path);
	if (r == 0 || r == -EINVAL)
		return THERE_YES;
	return r == -ENOENT || r == -ENOTDIR ? THERE_NO : THERE_UNKNOWN;
}

enum there plan_exists(struct planner *p, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return n < 0 || (size_t)n >= sizeof(path) ? THERE_UNKNOWN : exists(p, path);
}

enum there plan_has_program(struct planner *p, const char *name)
{
	static const char *const folders[] = {"usr/sbin", "usr/bin",        "sbin",
					      "bin",      "usr/local/sbin", "usr/local/bin"};
	enum there there = THERE_NO;

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		enum there here = plan_exists(p, "%s/%s", folders[i], name);

		if (here == THERE_YES)
			return here;
		if (here == THERE_UNKNOWN)
			there = here;
	}
	return there;
}

const char *plan_read(struct planner *p, enum there *ret_there, const char *path)
{
	AUTO_FREE char *data = NULL;
	size_t size;
	int r = source_read(p->s, &data, &size, "%s", path);

	*ret_there = r == 0 ? THERE_YES : r == -ENOENT || r == -ENOTDIR ? THERE_NO : THERE_UNKNOWN;
	return r == 0 ? arena_strndup(p->a, data, size) : NULL;
}

const char *plan_module_folder(struct planner *p, const char *module)
{
	char *path = arena_printf(p->a, "sys/module/%s", module);

	for (char *c = path; *c; c++)
		if (*c == '-')
			*c = '_';
	return path;
}

/* ---- distributions ---- */

enum distribution plan_distribution(struct planner *p)
{
	return distribution_of(&p->files->kernel);
}

bool plan_is_debian_like(struct planner *p)
{
	return plan_distribution(p) == DISTRIBUTION_DEBIAN;
}

bool plan_etc_is_generated(struct planner *p)
{
	return plan_distribution(p) == DISTRIBUTION_NIXOS;
}

bool plan_has_systemd(struct planner *p)
{
	enum there folder = plan_exists(p, "etc/systemd");
	enum there running = p->request->image ? THERE_NO : plan_exists(p, PLAN_SYSTEMD_RUNS);

	return folder != THERE_NO || running != THERE_NO;
}

static bool ends_in(const char *name, const char *a, const char *b)
{
	return text_ends_with(name, a) || text_ends_with(name, b);
}

/* "S20nv_peer_mem" in etc/rc3.d: a script of /etc/init.d. */
static enum there has_script_link(struct planner *p, const char *name)
{
	for (int level = '2'; level <= '5'; level++) {
		char **names = NULL;
		bool found = false;
		size_t n = 0;

		if (source_list(p->s, &names, &n, "etc/rc%c.d", level) == 0)
			for (size_t i = 0; i < n; i++)
				found |= names[i][0] == 'S' && strlen(names[i]) > 3 &&
					 strcmp(names[i] + 3, name) == 0;
		source_free_names(names, n);
		if (found)
			return THERE_YES;
	}
	return THERE_NO;
}

enum there plan_is_enabled(struct planner *p, const char *unit)
{
	static const char folder[] = "etc/systemd/system";
	enum there there = THERE_NO;
	char **names = NULL;
	size_t n = 0;
	int r = source_list(p->s, &names, &n, "%s", folder);

	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		return THERE_UNKNOWN;
	for (size_t i = 0; i < n; i++)
		if (ends_in(names[i], ".wants", ".requires") &&
		    plan_exists(p, "%s/%s/%s", folder, names[i], unit) == THERE_YES)
			there = THERE_YES;
	source_free_names(names, n);
	if (there == THERE_NO && text_ends_with(unit, ".service"))
		there = has_script_link(p, arena_strndup(p->a, unit,
							 strlen(unit) - strlen(".service")));
	return there;
}

/* ---- files that are to hold something else ---- */

struct unread {
	const char *path, *why;
};

static const char *why_unread(struct planner *p, int error)
{
	if (error == -ENODATA)
		return arena_printf(p->a, "not in %s", source_name(p->s));
	if (error == -EACCES || error == -EPERM)
		return "not readable without root";
	return arena_printf(p->a, "not readable (%s)", strerror(-error));
}

static void add_unread(struct planner *p, const char *path, int error)
{
	struct unread *u = ARENA_PUSH(p->a, p->unread, p->unread_n);

	u->path = path;
	u->why = why_unread(p, error);
}

/* Of all that have the first one's reason. */
static void note_unread(struct planner *p, size_t first)
{
	const char *why = p->unread[first].why;
	AUTO_STRBUF struct strbuf paths = {0};
	size_t n = 0;

	for (size_t i = 0; i < p->unread_n; i++) {
		bool same = strcmp(p->unread[i].why, why) == 0;

		if (same && i < first)
			return;
		if (same)
			strbuf_printf(&paths, "%s/%s", n++ ? ", " : "", p->unread[i].path);
	}
	plan_note(p, "%s; the plan assumes that %s not exist: %s", why,
		  text_plural(n, "this file does", "these files do"), paths.text);
}

void plan_files_finish(struct planner *p)
{
	for (size_t i = 0; i < p->unread_n; i++)
		note_unread(p, i);
}

static struct planned_file *read_planned(struct planner *p, const char *path, enum phase phase)
{
	AUTO_FREE char *data = NULL;
	struct planned_file *f;
	size_t size = 0;
	int r = source_read(p->s, &data, &size, "%s", path);

	if (r == 0 && strlen(data) != size) {
		plan_left_out(p, NO_RULES, arena_printf(p->a, "lines for /%s", path),
			      "the file is binary, so it is left alone");
		return NULL;
	}
	f = arena_alloc(p->a, 1, sizeof(*f));
	f->path = arena_strdup(p->a, path);
	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		add_unread(p, f->path, r);
	f->phase = phase;
	f->there = r == 0;
	f->old = f->text = f->there ? arena_strndup(p->a, data, size) : "";
	f->old_size = f->there ? size : 0;
	*p->file_end = f;
	p->file_end = &f->next;
	return f;
}

struct planned_file *plan_file(struct planner *p, const char *path, enum phase phase)
{
	for (struct planned_file *f = p->file_list; f; f = f->next)
		if (strcmp(f->path, path) == 0)
			return f;
	return read_planned(p, path, phase);
}

struct planned_file *plan_drop_in(struct planner *p, const char *path, enum phase phase,
				  const char *about)
{
	struct planned_file *f = plan_file(p, path, phase);

	if (f && !*f->text)
		f->text = arena_printf(p->a, PLAN_HEADER "# %s\n", about);
	return f;
}

/* "blacklist nova" differs from "blacklist nova_core"; "options nvidia X=" goes on with anything. */
static bool is_line_of(const char *line, size_t n, const char *key)
{
	size_t length = strlen(key);

	if (n < length || memcmp(line, key, length) != 0)
		return false;
	return n == length || key[length - 1] == '=' || line[length] == ' ' || line[length] == '\t';
}

void plan_file_set_line(struct planner *p, struct planned_file *f, const char *key,
			const char *line)
{
	AUTO_STRBUF struct strbuf text = {0};
	const char *l = NULL;
	size_t n;

	while (text_next_line(&l, &n, f->text)) {
		if (!is_line_of(l, n, key)) {
			strbuf_add(&text, l, n);
			strbuf_putc(&text, '\n');
		} else if (line) {
			strbuf_printf(&text, "%s\n", line);
			line = NULL;
		}
	}
	if (line)
		strbuf_printf(&text, "%s\n", line);
	f->text = arena_strdup(p->a, strbuf_str(&text));
}

const char *plan_file_line(struct planner *p, const struct planned_file *f, const char *key)
{
	const char *line = NULL;
	size_t n, length = strlen(key);

	while (text_next_line(&line, &n, f->text))
		if (is_line_of(line, n, key))
			return arena_strndup(p->a, line + length, n - length);
	return NULL;
}

bool plan_file_changes(const struct planned_file *f)
{
	return strcmp(f->old, f->text) != 0;
}

/* What of configuration.nix becomes the file. */
static const char *nix_option(const struct planned_file *f)
{
	static const struct {
		const char *path, *option;
	} options[] = {
		{FILE_MODPROBE, "boot.extraModprobeConfig"},
		{FILE_LIMITS, "security.pam.loginLimits"},
		{FILE_MANAGER, "systemd.extraConfig (systemd.settings.Manager since 25.11)"},
		{FILE_NCCL, "environment.etc.\"nccl.conf\".text"},
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strcmp(f->path, options[i].path) == 0)
			return options[i].option;
	return "environment.etc";
}

/* A file that is written there is gone with the next nixos-rebuild, if it can be written at all. */
static void configure_nix(struct planner *p, const struct planned_file *f)
{
	AUTO_STRBUF struct strbuf lines = {0};
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, f->text))
		if (n && *line != '#' && *line != '[')
			strbuf_printf(&lines, "%s\"%.*s\"", lines.len ? ", " : "", (int)n, line);
	plan_manual(
		p, f->purpose.rules, arena_printf(p->a, "lines for /%s", f->path),
		"set %s in /etc/nixos/configuration.nix to match these lines: %s; then run `nixos-rebuild boot`, and reboot",
		nix_option(f), strbuf_str(&lines));
}

void plan_file_step(struct planner *p, const struct planned_file *f)
{
	struct step *s;

	if (!plan_file_changes(f))
		return;
	if (plan_etc_is_generated(p)) {
		configure_nix(p, f);
		return;
	}
	s = plan_step(p, f->phase, STEP_FILE, &f->purpose, f->there ? "change /%s" : "write /%s",
		      f->path);
	s->target = f->path;
	s->old.data = f->there ? f->old : NULL;
	s->old.size = f->old_size;
	s->new.data = f->text;
	s->new.size = strlen(f->text);
	s->mode = 0644;
}
