/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of processes, and NCCL's system-wide file. */
#include "fix/make_plan_impl.h"

#include <string.h>

/* ---- memory that may be locked ---- */

static void drop_in(struct planner *p, const char *path, const struct purpose *purpose,
		    const char *text)
{
	struct planned_file *f = plan_file(p, path, PHASE_SETTINGS);

	if (!f)
		return;
	f->text = text;
	purpose_join(p, &f->purpose, purpose);
	plan_file_step(p, f);
}

static bool is_so(struct planner *p, const char *path, const char *text)
{
	enum there there;
	const char *now = plan_read(p, &there, path);

	return now && strcmp(now, text) == 0;
}

void plan_memlock(struct planner *p, const struct change *c)
{
	static const char limits[] = PLAN_HEADER "* soft memlock unlimited\n"
						 "* hard memlock unlimited\n"
						 "root soft memlock unlimited\n"
						 "root hard memlock unlimited\n";
	static const char manager[] = PLAN_HEADER "[Manager]\nDefaultLimitMEMLOCK=infinity\n";
	const struct purpose serves = {.why = TEXTS("services started from then on get the limit")};
	static const char what[] = "reload systemd's limits (services keep running)";
	const char *const *argv = plan_argv(p, "systemctl", "daemon-reexec", NULL);
	const struct tool undo = {.undo_argv = argv, .undo_if = PLAN_SYSTEMD_RUNS},
			  apply = {.argv = argv};
	struct purpose purpose = {0};

	purpose_add(p, &purpose, c);
	drop_in(p, FILE_LIMITS, &purpose, limits);
	if (plan_etc_is_generated(p)) {
		drop_in(p, FILE_MANAGER, &purpose, manager);
	} else if (plan_has_systemd(p) && !is_so(p, FILE_MANAGER, manager)) {
		plan_tool(p, PHASE_SETTINGS, &undo, &serves, "%s", what);
		drop_in(p, FILE_MANAGER, &purpose, manager);
		if (!p->request->image)
			plan_tool(p, PHASE_SETTINGS, &apply, &serves, "%s", what);
	}
	plan_note(
		p,
		"the limit of locked memory applies to new sessions and services: log in again. Containers get theirs from the runtime (--ulimit memlock=-1)");
}

/* ---- NCCL's file ---- */

/* What undo does is to put the whole file back, and only while nobody edited it since. */
#define BLOCK_KEY "# onehop begin"
#define BLOCK_START                                                                                \
	BLOCK_KEY ": \"onehop undo\" restores this file, unless it was edited since then"
#define BLOCK_END "# onehop end"

/* Where the block's lines start and end in the text; false: there is none. */
static bool find_block(const char *text, const char **ret_start, const char **ret_end)
{
	const char *line = NULL, *start = NULL;
	size_t n;

	while (text_next_line(&line, &n, text)) {
		if (!start && text_starts_with(line, BLOCK_KEY))
			start = line + n + (line[n] == '\n');
		else if (start && text_starts_with(line, BLOCK_END)) {
			*ret_start = start;
			*ret_end = line;
			return true;
		}
	}
	return false;
}

/* The number of the line that sets it outside the block, and its value; 0: none does. */
static unsigned set_by_person(struct planner *p, const char *text, const char *name,
			      const char **ret_value)
{
	const char *start = NULL, *end = NULL, *line = NULL;
	size_t n, length = strlen(name);
	unsigned number = 0;

	find_block(text, &start, &end);
	while (text_next_line(&line, &n, text)) {
		number++;
		if (n <= length || strncmp(line, name, length) != 0 || line[length] != '=' ||
		    (start && line >= start && line < end))
			continue;
		*ret_value = arena_strndup(p->a, line + length + 1, n - length - 1);
		return number;
	}
	return 0;
}

/* The block's lines with this one in its place. */
static void add_lines(struct strbuf *out, const char *start, const char *end, const char *name,
		      const char *value)
{
	size_t length = strlen(name);
	bool put = false;

	while (start < end) {
		size_t n = strcspn(start, "\n") + 1;

		if (strncmp(start, name, length) != 0 || start[length] != '=') {
			strbuf_add(out, start, n);
		} else if (!put) {
			strbuf_printf(out, "%s=%s\n", name, value);
			put = true;
		}
		start += n;
	}
	if (!put)
		strbuf_printf(out, "%s=%s\n", name, value);
}

static const char *with_setting(struct planner *p, const char *text, const char *name,
				const char *value)
{
	AUTO_STRBUF struct strbuf out = {0};
	const char *start, *end;

	if (find_block(text, &start, &end)) {
		strbuf_add(&out, text, (size_t)(start - text));
		add_lines(&out, start, end, name, value);
		strbuf_puts(&out, end);
	} else {
		strbuf_puts(&out, text);
		if (out.len && out.text[out.len - 1] != '\n')
			strbuf_putc(&out, '\n');
		strbuf_printf(&out, BLOCK_START "\n%s=%s\n" BLOCK_END "\n", name, value);
	}
	return arena_strdup(p->a, out.text);
}

static void note_stronger(struct planner *p, const char *name)
{
	for (size_t i = 0; !p->request->image && i < p->m->nccl.setting_n; i++) {
		const struct setting *s = &p->m->nccl.settings[i];

		if (s->origin != SETTING_SYSTEM_CONF && strcmp(s->name, name) == 0)
			plan_note(p, "%s is also set to %s by %s, which overrides /%s", name,
				  s->value, s->from, FILE_NCCL);
	}
}

void plan_nccl_setting(struct planner *p, const struct change *c)
{
	struct planned_file *f;
	const char *value;
	unsigned line;

	if (strpbrk(c->name, "=\n#") || strchr(c->new, '\n')) {
		plan_change_by_hand(p, c, "put it into /%s", FILE_NCCL);
		return;
	}
	f = plan_file(p, FILE_NCCL, PHASE_SETTINGS);
	if (!f)
		return;
	note_stronger(p, c->name);
	line = set_by_person(p, f->text, c->name, &value);
	if (line && strcmp(value, c->new) == 0) {
		plan_note(p, "/%s:%u sets %s=%s already", FILE_NCCL, line, c->name, c->new);
	} else if (line) {
		plan_change_by_hand(p, c, "/%s:%u sets %s=%s: make it %s=%s there", FILE_NCCL, line,
				    c->name, value, c->name, c->new);
	} else {
		if (!*f->text)
			f->text = PLAN_HEADER;
		f->text = with_setting(p, f->text, c->name, c->new);
		purpose_add(p, &f->purpose, c);
	}
}

void plan_settings_finish(struct planner *p)
{
	for (const struct planned_file *f = p->file_list; f; f = f->next)
		if (strcmp(f->path, FILE_NCCL) == 0)
			plan_file_step(p, f);
}
