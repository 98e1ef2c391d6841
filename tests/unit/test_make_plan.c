/* SPDX-License-Identifier: Apache-2.0 */
/* fix/make_plan.c and plan_*.c: what each kind of change becomes on each kind of host. */
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/source.h"
#include "base/source_impl.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "build_machine.h"
#include "check_text.h"
#include "fix/make_plan.h"
#include "machine/efi_variable.h"
#include "open_recording.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

/* ---- a host in memory: what was not put is not there, unlike in a recording ---- */

struct whole {
	struct source base;
	struct source *map;
};

static int known(int r)
{
	return r == -ENODATA ? -ENOENT : r;
}

static int whole_read(struct source *s, const char *path, char **ret, size_t *ret_size)
{
	struct source *map = ((struct whole *)s)->map;

	return known(map->ops->read(map, path, ret, ret_size));
}

/* A file is no link, and a folder is there if something is in it. */
static int whole_link(struct source *s, const char *path, char **ret)
{
	struct source *map = ((struct whole *)s)->map;
	AUTO_FREE char *data = NULL, *folder = xprintf("%s/", path);
	AUTO_FREE struct source_entry *entries = NULL;
	int r = map->ops->link(map, path, ret);
	size_t size, n;

	if (r != -ENODATA)
		return r;
	if (map->ops->read(map, path, &data, &size) == 0)
		return -EINVAL;
	entries = source_entries(map, &n);
	for (size_t i = 0; i < n; i++)
		if (text_starts_with(entries[i].path, folder))
			return -EINVAL;
	return -ENOENT;
}

static int whole_list(struct source *s, const char *path, char ***ret_names, size_t *ret_n)
{
	AUTO_STRBUF struct strbuf names = {0};
	AUTO_FREE char *folder = xprintf("%s/", path), *last = NULL;
	AUTO_FREE struct source_entry *entries = NULL;
	size_t n, length = strlen(folder);

	entries = source_entries(((struct whole *)s)->map, &n);
	for (size_t i = 0; i < n; i++) {
		const char *name = entries[i].path + length;
		AUTO_FREE char *first = NULL;

		if (!text_starts_with(entries[i].path, folder))
			continue;
		first = xstrndup(name, strcspn(name, "/"));
		if (!last || strcmp(last, first) != 0)
			strbuf_printf(&names, "%s\n", first);
		free(last);
		last = TAKE_PTR(first);
	}
	if (!names.len)
		return -ENOENT;
	source_split_names(names.text, ret_names, ret_n);
	return 0;
}

static void whole_free(struct source *s)
{
	source_free(((struct whole *)s)->map);
}

static struct source *new_whole(struct source *map, const char *name)
{
	static const struct source_ops ops = {whole_read, whole_list, whole_link, whole_free};
	struct whole *w = xcalloc(1, sizeof(*w));

	w->base.ops = &ops;
	w->base.name = xstrdup(name);
	w->map = map;
	return &w->base;
}

/* ---- a world: host, machine, changes, plan ---- */

#define RELEASE "6.1.0-56-amd64"

struct world {
	struct source *map, *source;
	struct machine *m;
	struct arena *arena;
	struct change_set set;
	struct plan_request request;
	struct plan *plan;
};

/* A switch with two GPUs; `id` is the distribution, `line` the running command line. */
static void world_new(struct world *w, const char *id, enum boot_loader loader, const char *line)
{
	AUTO_FREE char *release = xprintf("ID=%s\n", id);

	memset(w, 0, sizeof(*w));
	w->map = source_new_map("host");
	w->source = new_whole(w->map, "/mnt/image");
	w->m = build_switch();
	w->arena = arena_new();
	w->set.arena = w->arena;
	w->m->kernel.release = fact_str(RELEASE, "test");
	w->m->kernel.cmdline = fact_str(line, "test");
	w->m->kernel.boot_loader = fact_int(loader, "test");
	w->m->kernel.lockdown = fact_int(LOCKDOWN_NONE, "test");
	w->m->kernel.distribution_id = fact_str(id, "test");
	source_put_file(w->map, "etc/os-release", release, strlen(release));
	source_put_file(w->map, "etc/systemd/system.conf", "", 0);
	w->request = (struct plan_request){.machine = w->m,
					   .source = w->source,
					   .lifetime = CHANGE_LASTING,
					   .program = "/usr/bin/onehop"};
}

static void world_free(struct world *w)
{
	plan_free(w->plan);
	arena_free(w->arena);
	build_free(w->m);
	source_free(w->source);
}

static void put(struct world *w, const char *path, const char *text)
{
	source_put_file(w->map, path, text, strlen(text));
}

#define GRUB_CFG   "boot/grub/grub.cfg"
#define DROP_IN    "etc/default/grub.d/99-onehop.cfg"
#define GRUB_LINE  "BOOT_IMAGE=/boot/vmlinuz-" RELEASE " root=UUID=1 ro quiet"
#define MODPROBE   "etc/modprobe.d/onehop.conf"
#define START_LINE "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT "

static void debian(struct world *w)
{
	world_new(w, "debian", BOOT_GRUB, GRUB_LINE);
	put(w, "usr/sbin/grub-mkconfig",
	    "#!/bin/sh\nfor x in ${sysconfdir}/default/grub.d/*.cfg ; do . \"${x}\"; done\n");
	put(w, "usr/bin/grub-script-check", "");
	put(w, GRUB_CFG, "menuentry old {}\n");
	put(w, "etc/default/grub", "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n");
	put(w, "usr/sbin/update-initramfs", "");
}

#define ENTRY "boot/loader/entries/1.conf"

static void fedora(struct world *w)
{
	world_new(w, "fedora", BOOT_GRUB, "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-" RELEASE " ro");
	w->m->kernel.grubby = fact_int(1, "test");
	put(w, "usr/bin/dracut", "");
	put(w, ENTRY, "title x\noptions root=a ro\n");
}

static void add(struct world *w, struct change c)
{
	c.rules = c.rules.n ? c.rules : TEXTS("some.rule");
	c.reason = c.reason.n ? c.reason : TEXTS("GPUs talk directly");
	if (!c.lifetime)
		c.lifetime = CHANGE_LASTING;
	change_add(&w->set, &c);
}

static void add_word(struct world *w, const char *word)
{
	add(w, (struct change){.kind = CHANGE_KERNEL_PARAMETER, .target = word});
}

static void add_acs(struct world *w, const char *port)
{
	add(w, (struct change){.kind = CHANGE_ACS, .target = port, .value = {0x1d, 0x11}});
}

static void assert_pasteable(const char *text)
{
	const char *bare = bare_command(text);

	if (bare)
		fail_msg("a command without backquotes: %s", bare);
}

/* Whatever a plan tells a person to run can be pasted. */
static struct plan *make(struct world *w)
{
	plan_free(w->plan);
	w->plan = plan_make(&w->request, &w->set);
	for (size_t i = 0; i < w->plan->manual_n; i++)
		assert_pasteable(w->plan->manual[i].how);
	for (size_t i = 0; i < w->plan->way_back_n; i++)
		assert_pasteable(w->plan->way_back[i]);
	return w->plan;
}

/* Everything that files would hold then. */
static void carry_out(struct world *w)
{
	for (size_t i = 0; i < w->plan->step_n; i++) {
		const struct step *s = &w->plan->steps[i];

		if (s->kind == STEP_FILE || s->kind == STEP_OPTIONS)
			source_put_file(w->map, s->target, s->new.data, s->new.size);
		if (s->kind == STEP_TOOL && s->argv && strcmp(s->argv[0], "systemctl") == 0 &&
		    strcmp(s->argv[1], "enable") == 0 && text_starts_with(s->argv[2], "onehop")) {
			AUTO_FREE char *link =
				xprintf("etc/systemd/system/multi-user.target.wants/%s",
					s->argv[2]);

			source_put_link(w->map, link, "x");
		}
	}
}

static const char *words(struct world *w, const char *const *argv)
{
	AUTO_STRBUF struct strbuf line = {0};

	if (!argv)
		return "-";
	step_command_line(argv, &line);
	return arena_strdup(w->arena, strbuf_str(&line));
}

static const struct step *file_step(const struct plan *p, const char *target)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].kind == STEP_FILE && strcmp(p->steps[i].target, target) == 0)
			return &p->steps[i];
	return NULL;
}

static const char *content(const struct plan *p, const char *target)
{
	const struct step *s = file_step(p, target);

	assert_non_null(s);
	return s->new.data;
}

static const struct step *tool_step(struct world *w, const char *line)
{
	for (size_t i = 0; i < w->plan->step_n; i++)
		if ((w->plan->steps[i].kind == STEP_TOOL || w->plan->steps[i].kind == STEP_WORDS) &&
		    (strcmp(words(w, w->plan->steps[i].argv), line) == 0))
			return &w->plan->steps[i];
	return NULL;
}

static bool has_note(const struct plan *p, const char *part)
{
	for (size_t i = 0; i < p->note_n; i++)
		if (strstr(p->notes[i], part))
			return true;
	return false;
}

static const char *manual(const struct plan *p, const char *part)
{
	for (size_t i = 0; i < p->manual_n; i++)
		if (strstr(p->manual[i].what, part) || strstr(p->manual[i].how, part))
			return p->manual[i].how;
	return NULL;
}

static bool wants(const struct plan *p, const char *kind, const char *value)
{
	for (size_t i = 0; i < p->wanted_n; i++)
		if (strcmp(p->wanted[i].kind, kind) == 0 && strcmp(p->wanted[i].value, value) == 0)
			return true;
	return false;
}

static size_t count(const struct plan *p, enum step_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < p->step_n; i++)
		n += p->steps[i].kind == kind;
	return n;
}

/* ---- GRUB with drop-ins ---- */

static void grub_bracket(void **state)
{
	struct world w;
	const struct step *s;

	(void)state;
	debian(&w);
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 3);
	s = w.plan->steps;
	assert_int_equal(s[0].kind, STEP_GENERATED);
	assert_string_equal(s[0].target, GRUB_CFG);
	assert_null(s[0].argv);
	assert_string_equal(words(&w, s[0].undo_argv), "grub-mkconfig -o '{output}'");
	assert_null(s[0].expect);
	assert_int_equal(s[1].kind, STEP_FILE);
	assert_string_equal(s[1].target, DROP_IN);
	assert_null(s[1].old.data);
	assert_int_equal(s[1].mode, 0644);
	assert_true(text_starts_with(s[1].new.data, "# Written by onehop. \"onehop undo\""));
	assert_has(s[1].new.data, "\n" START_LINE "iommu=pt\"\n");
	assert_int_equal(s[2].kind, STEP_GENERATED);
	assert_null(s[2].undo_argv);
	assert_string_equal(words(&w, s[2].argv), "grub-mkconfig -o '{output}'");
	assert_string_equal(words(&w, s[2].check_argv), "grub-script-check '{output}'");
	assert_string_equal(s[2].expect, "iommu=pt");
	assert_string_equal(s[2].old.data, "menuentry old {}\n");
	assert_int_equal(s[2].old.size, strlen("menuentry old {}\n"));
	assert_int_equal(s[2].deadline_s, 300);
	assert_false(s[0].reboot);
	assert_true(s[1].reboot);
	assert_true(texts_same(&s[1].rules, &TEXTS("some.rule")));
	assert_true(texts_same(&s[1].why, &TEXTS("GPUs talk directly")));
	assert_true(plan_needs_reboot(w.plan));
	assert_true(wants(w.plan, "kernel-parameter", "iommu=pt"));
	assert_int_equal(w.plan->way_back_n, 3);
	assert_has(w.plan->way_back[2], "rm /" DROP_IN " && update-grub");
	assert_int_equal(w.plan->manual_n, 0);
	world_free(&w);
}

/* GRUB_DISABLE_RECOVERY, and some distributions, leave that entry out. */
static void grub_recovery_entry(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_word(&w, "iommu=pt");
	make(&w);
	assert_true(text_starts_with(w.plan->way_back[0], "press e on the entry"));
	put(&w, GRUB_CFG, "menuentry 'Debian (recovery mode)' {}\n");
	make(&w);
	assert_has(w.plan->way_back[0], "\"(recovery mode)\", which does not have");
	w.request.image = true;
	put(&w, "usr/sbin/grub-mkconfig", "default/grub.d\n");
	source_drop(w.map, GRUB_CFG);
	make(&w);
	assert_has(w.plan->way_back[0], "if there is one");
	world_free(&w);
}

static void grub_several_words(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_word(&w, "iommu=pt");
	add_word(&w, "pci=realloc");
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_int_equal(count(w.plan, STEP_GENERATED), 2);
	assert_int_equal(count(w.plan, STEP_FILE), 1);
	assert_string_equal(w.plan->steps[w.plan->step_n - 1].expect,
			    "iommu=pt pci=realloc pci=disable_acs_redir=0000:22:00.0");
	world_free(&w);
}

/* Runs `sh words...`; the exit status, with what it printed. */
static int run_sh(const char *option, const char *script, char *out, size_t size)
{
	const char *const argv[] = {"sh", option, script, NULL};
	posix_spawn_file_actions_t actions;
	int ends[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	assert_int_equal(posix_spawn(&pid, "/bin/sh", &actions, NULL, (char *const *)argv, environ),
			 0);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while ((got = read(ends[0], out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

/* A ; has to reach grub.cfg inside quotes, and the file has to be a shell script. */
static void grub_quotes(void **state)
{
	char path[] = "/tmp/onehop-drop-in-XXXXXX", out[256];
	AUTO_FREE char *script = NULL;
	const char *text;
	struct world w;
	int fd;

	(void)state;
	debian(&w);
	add_word(&w, "iommu=pt");
	add_acs(&w, "0000:22:00.0");
	add_acs(&w, "0000:22:01.0");
	make(&w);
	text = content(w.plan, DROP_IN);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(run_sh("-n", path, out, sizeof(out)), 0);
	script = xprintf(
		"GRUB_CMDLINE_LINUX_DEFAULT=quiet; . %s; printf %%s \"$GRUB_CMDLINE_LINUX_DEFAULT\"",
		path);
	assert_int_equal(run_sh("-c", script, out, sizeof(out)), 0);
	unlink(path);
	assert_string_equal(out,
			    "quiet iommu=pt 'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0'");
	assert_string_equal(w.plan->steps[w.plan->step_n - 1].expect, out + strlen("quiet "));
	world_free(&w);
}

/* The file is added to; the list of ports, of which only the last counts, grows in its place. */
static void grub_merges(void **state)
{
	static const char before[] =
		"# mine\n" START_LINE
		"'pci=disable_acs_redir=0000:09:00.0;pci:10b5:8747'\"\n" START_LINE
		"iommu=pt\"\n# a note\n";
	struct world w;
	const struct step *s;

	(void)state;
	debian(&w);
	put(&w, DROP_IN, before);
	add_acs(&w, "0000:22:00.0");
	add_word(&w, "pci=realloc");
	make(&w);
	s = file_step(w.plan, DROP_IN);
	assert_non_null(s);
	assert_string_equal(s->old.data, before);
	assert_string_equal(
		s->new.data,
		"# mine\n" START_LINE
		"'pci=disable_acs_redir=0000:09:00.0;pci:10b5:8747;0000:22:00.0'\"\n" START_LINE
		"iommu=pt\"\n# a note\n" START_LINE "pci=realloc\"\n");
	world_free(&w);
}

/* Ports that the command line names already stay named: a later list overrides an earlier one. */
static void grub_merges_running(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.m->kernel.cmdline =
		fact_str(GRUB_LINE " pci=noaer,disable_acs_redir=09:00.0;$(x),realloc pci=nomsi",
			 "test");
	add_acs(&w, "0000:22:00.0");
	/* The running line may be of a fix that was undone: GRUB's own file tells. */
	make(&w);
	assert_has(content(w.plan, DROP_IN), START_LINE "pci=disable_acs_redir=0000:22:00.0\"\n");
	put(&w, "etc/default/grub",
	    "GRUB_CMDLINE_LINUX=\"pci=noaer,disable_acs_redir=09:00.0;$(x)\"\n");
	make(&w);
	assert_has(content(w.plan, DROP_IN),
		   START_LINE "'pci=disable_acs_redir=0000:09:00.0;0000:22:00.0'\"\n");
	source_drop(w.map, "etc/default/grub");
	make(&w);
	assert_has(content(w.plan, DROP_IN),
		   START_LINE "'pci=disable_acs_redir=0000:09:00.0;0000:22:00.0'\"\n");
	world_free(&w);
}

/* Somebody's own line in our file may do anything, so only what comes behind it is expected. */
static void grub_foreign_line(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	put(&w, DROP_IN, START_LINE "pci=nomsi\"\nGRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_string_equal(w.plan->steps[2].expect, "iommu=pt");
	world_free(&w);
}

static void grub_replaces_own_opposite(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	put(&w, DROP_IN, START_LINE "iommu=off\"\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_string_equal(content(w.plan, DROP_IN), START_LINE "iommu=pt\"\n");
	world_free(&w);
}

static void grub_twice(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_word(&w, "iommu=pt");
	add_acs(&w, "0000:22:00.0");
	add_acs(&w, "0000:22:01.0");
	w.set.items[1].lifetime = w.set.items[2].lifetime = CHANGE_KEPT;
	assert_int_equal(make(&w)->step_n, 3);
	carry_out(&w);
	put(&w, GRUB_CFG,
	    "linux /vmlinuz quiet iommu=pt 'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0'\n");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_true(has_note(w.plan, "already has iommu=pt; reboot"));
	assert_true(has_note(w.plan, "has pci=disable_acs_redir=0000:22:00.0;0000:22:01.0"));
	/* And after that reboot. */
	w.m->kernel.cmdline =
		fact_str(GRUB_LINE " iommu=pt pci=disable_acs_redir=0000:22:00.0;0000:22:01.0",
			 "test");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_true(has_note(w.plan, "the running kernel already has iommu=pt"));
	assert_true(has_note(w.plan, "the running kernel already has pci=disable_acs_redir="));
	world_free(&w);
}

/*
 * An undo left a drop-in that a person had edited, and put back the old grub.cfg: no reboot helps.
 */
static void grub_behind_drop_in(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	put(&w, DROP_IN, START_LINE "iommu=pt\"\n# mine\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_false(has_note(w.plan, "reboot for it to take effect"));
	assert_int_equal(w.plan->step_n, 2);
	assert_int_equal(w.plan->steps[0].kind, STEP_GENERATED);
	assert_null(w.plan->steps[0].argv);
	assert_int_equal(w.plan->steps[1].kind, STEP_GENERATED);
	/* It is what makes the change: check does not say then that all is set. */
	assert_true(texts_same(&w.plan->steps[1].rules, &TEXTS("some.rule")));
	assert_string_equal(w.plan->steps[1].expect, "iommu=pt");
	/* Who cannot read it is told what is known. */
	source_put_error(w.map, GRUB_CFG, SOURCE_FILE, EACCES);
	source_put_error(w.map, GRUB_CFG, SOURCE_LINK, EINVAL);
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_true(has_note(w.plan, "reboot for it to take effect"));
	world_free(&w);
}

static void grub_link(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	source_put_link(w.map, GRUB_CFG, "../efi/./grub.cfg");
	source_put_link(w.map, "boot/efi/grub.cfg", "/boot/other/grub.cfg");
	put(&w, "boot/other/grub.cfg", "real\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_string_equal(w.plan->steps[0].target, "boot/other/grub.cfg");
	assert_string_equal(w.plan->steps[2].old.data, "real\n");
	world_free(&w);
}

static void grub_without_boot(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	source_drop(w.map, GRUB_CFG);
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_true(has_note(w.plan, "if /boot is not mounted, mount it"));
	assert_non_null(manual(w.plan, START_LINE "iommu=pt\""));
	world_free(&w);
}

static void grub_by_hand(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, "arch", BOOT_GRUB, "BOOT_IMAGE=/vmlinuz-linux ro");
	put(&w, "usr/bin/grub-mkconfig", ". ${sysconfdir}/default/grub\n");
	put(&w, "etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"loglevel=3 quiet\"\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_string_equal(manual(w.plan, "to the kernel command line"),
			    "as the last line of /etc/default/grub: `" START_LINE
			    "iommu=pt\"`, then `grub-mkconfig -o /boot/grub/grub.cfg`, and reboot");
	assert_int_equal(w.plan->wanted_n, 0);
	/* A person has done the first half of it. */
	put(&w, "etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet iommu=pt\"\n");
	make(&w);
	assert_null(manual(w.plan, "to the kernel command line"));
	assert_string_equal(
		manual(w.plan, "kernel parameter iommu=pt"),
		"/etc/default/grub, line 1, already has it: run `grub-mkconfig -o /boot/grub/grub.cfg`, and reboot");
	world_free(&w);
}

/* GRUB puts what is added behind all that stands there, and so behind a "--". */
static void grub_with_dashes(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	put(&w, "etc/default/grub", "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX=\"quiet -- 3 iommu=pt\"\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_has(
		manual(w.plan, "to the kernel command line"),
		"in /etc/default/grub, line 2, add before the --: iommu=pt (words after -- go to init)");
	assert_int_equal(w.plan->wanted_n, 0);
	world_free(&w);
}

static void grub_of_suse(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, "opensuse-leap", BOOT_GRUB, "BOOT_IMAGE=/boot/vmlinuz ro");
	put(&w, "etc/os-release", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n");
	put(&w, "usr/sbin/grub2-mkconfig", "#!/bin/sh\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_has(manual(w.plan, "to the kernel command line"),
		   "grub2-mkconfig -o /boot/grub2/grub.cfg");
	world_free(&w);
}

static void grub_of_proxmox(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	put(&w, "usr/sbin/proxmox-boot-tool", "");
	put(&w, "etc/kernel/proxmox-boot-uuids", "AAAA\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 3);
	assert_string_equal(words(&w, w.plan->steps[0].undo_argv), "proxmox-boot-tool refresh");
	assert_string_equal(words(&w, w.plan->steps[2].argv), "proxmox-boot-tool refresh");
	assert_null(w.plan->steps[2].undo_argv);
	world_free(&w);
}

/* Its boot partitions are not mounted: whether systemd-boot or GRUB reads them is not known. */
static void image_of_proxmox(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.request.image = true;
	put(&w, "usr/sbin/proxmox-boot-tool", "");
	put(&w, "etc/kernel/proxmox-boot-uuids", "AAAA\n");
	put(&w, "etc/kernel/cmdline", "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_has(manual(w.plan, "to the kernel command line"),
		   "in that system, `proxmox-boot-tool status` shows its boot loader: with "
		   "systemd-boot (uefi), add to /etc/kernel/cmdline, without quotes, iommu=pt; "
		   "with GRUB, as the last line of /etc/default/grub: `");
	world_free(&w);
}

/* ---- words that are against each other ---- */

static void conflicts_are_shown(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.m->cpu.vendor = fact_int_unknown("test");
	w.m->kernel.cmdline = fact_str(GRUB_LINE " intel_iommu=on", "test");
	put(&w, "etc/default/grub",
	    "# GRUB_CMDLINE_LINUX=\"iommu=off\"\n\nGRUB_CMDLINE_LINUX=\"quiet "
	    "iommu.passthrough=0\"\n");
	put(&w, "etc/default/grub.d/10-a.cfg", "\nGRUB_CMDLINE_LINUX='amd_iommu=off'\n");
	put(&w, "etc/default/grub.d/10-a.cfg.bak", "GRUB_CMDLINE_LINUX='iommu=off'\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 3);
	assert_true(has_note(w.plan, "/etc/default/grub:3 has iommu.passthrough=0"));
	assert_true(has_note(w.plan, "onehop's comes last"));
	assert_true(has_note(w.plan, "/etc/default/grub.d/10-a.cfg:2 has amd_iommu=off"));
	assert_true(has_note(w.plan, "the running kernel has intel_iommu=on, which fits"));
	assert_false(has_note(w.plan, "iommu=off, which turns the IOMMU"));
	assert_string_equal(manual(w.plan, "remove amd_iommu=off"),
			    "delete amd_iommu=off in /etc/default/grub.d/10-a.cfg, line 2");
	world_free(&w);
}

/*
 * On one line the kernel takes the last intel_iommu=; what is another maker's has no effect at all.
 */
static void words_without_effect(void **state)
{
	static const struct {
		enum cpu_vendor vendor;
		const char *line, *note; /* NULL: none */
		bool removed;
	} rows[] = {
		{CPU_INTEL, "intel_iommu=on intel_iommu=off", "has intel_iommu=off", true},
		{CPU_INTEL, "intel_iommu=off intel_iommu=on,sm_on", "has intel_iommu=on,sm_on",
		 false},
		{CPU_INTEL, "intel_iommu=off intel_iommu=sm_on", "has intel_iommu=off", true},
		{CPU_INTEL, "amd_iommu=off", NULL, false},
		{CPU_AMD, "intel_iommu=on intel_iommu=off", NULL, false},
		{CPU_AMD, "amd_iommu=off amd_iommu=pgtbl_v2", "has amd_iommu=off", true},
		{CPU_OTHER, "amd_iommu=off", "has amd_iommu=off", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *file = xprintf("GRUB_CMDLINE_LINUX=\"%s\"\n", rows[i].line);
		struct world w;

		debian(&w);
		w.m->cpu.vendor = rows[i].vendor == CPU_OTHER ? fact_int_unknown("test")
							      : fact_int(rows[i].vendor, "test");
		put(&w, "etc/default/grub", file);
		add_word(&w, "iommu=pt");
		make(&w);
		assert_int_equal(has_note(w.plan, "/etc/default/grub:1 has"), rows[i].note != NULL);
		if (rows[i].note)
			assert_true(has_note(w.plan, rows[i].note));
		assert_int_equal(w.plan->manual_n, rows[i].removed);
		world_free(&w);
	}
}

/* Of iommu=pt and a later iommu.passthrough=0 the later one counts, so it is not there already. */
static void later_word_wins(void **state)
{
	static const struct {
		const char *line;
		size_t steps;
	} rows[] = {
		{GRUB_LINE " iommu=pt iommu.passthrough=0", 3},
		{GRUB_LINE " iommu.passthrough=0 iommu=pt", 0},
		{GRUB_LINE " xiommu=pt iommu=pt2", 3},
		{GRUB_LINE " iommu=pt iommu=off", 0}, /* once more would not help */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;

		debian(&w);
		w.m->kernel.cmdline = fact_str(rows[i].line, "test");
		add_word(&w, "iommu=pt");
		assert_int_equal(make(&w)->step_n, rows[i].steps);
		world_free(&w);
	}
}

static void odd_words_are_refused(void **state)
{
	static const char *const odd[] = {"a b", "x=$(id)", "x=`id`", "x=\"",
					  "x='", "x=\\",    "x=a&b",  ""};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		struct world w;

		debian(&w);
		add_word(&w, odd[i]);
		make(&w);
		assert_int_equal(w.plan->step_n, 0);
		assert_int_equal(w.plan->manual_n, 1);
		world_free(&w);
	}
}

/* ---- other boot loaders ---- */

static void with_grubby(void **state)
{
	const struct step *s;
	struct world w;

	(void)state;
	fedora(&w);
	put(&w, ENTRY, "title x\noptions root=a ro pci=realloc\n");
	add_word(&w, "iommu=pt");
	add_word(&w, "pci=realloc");
	add_word(&w, "nosmt");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	s = w.plan->steps;
	assert_string_equal(words(&w, s->argv),
			    "grubby --update-kernel=ALL '--args=iommu=pt nosmt'");
	assert_string_equal(words(&w, s->undo_argv),
			    "grubby --update-kernel=ALL '--remove-args=iommu=pt nosmt'");
	assert_true(s->reboot);
	assert_true(has_note(w.plan, "all boot entries already have pci=realloc"));
	assert_false(wants(w.plan, "kernel-parameter", "pci=realloc"));
	assert_has(w.plan->way_back[2], "grubby --update-kernel=ALL '--remove-args=");
	world_free(&w);
}

/* Refused with the reason: which entry GRUB starts by itself depends on its version. */
static void no_trial_with_grubby(void **state)
{
	struct world w;

	(void)state;
	fedora(&w);
	w.request.trial = TRIAL_ALWAYS;
	add_word(&w, "iommu=pt");
	make(&w);
	assert_has(w.plan->no_trial, "might become GRUB's default");
	assert_int_equal(count(w.plan, STEP_WORDS), 1);
	assert_false(plan_has_trial(w.plan));
	world_free(&w);
}

/* What grubby would take away, and undo not bring back, is a person's to decide. */
static void grubby_loses_nothing(void **state)
{
	static const struct {
		const char *first, *second, *grubenv, *word, *why;
	} rows[] = {
		{"options root=a iommu=pt\n", "options root=a\n", NULL, "iommu=pt",
		 "others do not: undo would remove it from all"},
		{"options root=a\n", "options ro iommu=soft\n", NULL, "iommu=pt",
		 "grubby would replace iommu=soft of /boot/loader/entries/2.conf, and undo could not"},
		{"options root=a\n", "options pci=noaer\n", NULL, "pci=realloc",
		 "grubby would replace pci=noaer"},
		{"options $kernelopts\n", "options $kernelopts\n",
		 "# GRUB Environment Block\nkernelopts=root=a amd_iommu=fullflush \n####",
		 "amd_iommu=off", "grubby would replace amd_iommu=fullflush"},
		{"options $kernelopts\n", "options root=a\n", NULL, "iommu=pt",
		 "$kernelopts could not be read"},
		{"options root=a iommu=pt\n", "options iommu=pt\n", NULL, "iommu=pt", NULL},
		{"options root=a iommux=1\n", "options xiommu=2 $tuned_params\n", NULL, "iommu=pt",
		 NULL},
		{"options $kernelopts\n", "options root=a\n", "kernelopts=root=a ro\n", "iommu=pt",
		 NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;
		const char *how;

		fedora(&w);
		put(&w, "boot/loader/entries/1.conf", rows[i].first);
		put(&w, "boot/loader/entries/2.conf", rows[i].second);
		if (rows[i].grubenv)
			put(&w, "boot/grub2/grubenv", rows[i].grubenv);
		add_word(&w, rows[i].word);
		make(&w);
		how = manual(w.plan, "kernel parameter");
		if (rows[i].why) {
			assert_int_equal(w.plan->step_n, 0);
			assert_int_equal(w.plan->wanted_n, 0);
			assert_non_null(how);
			assert_has(how, rows[i].why);
			assert_true(
				text_starts_with(how,
						 "first check `grubby --info=ALL`; then `grubby "));
			assert_has(how, rows[i].word);
		} else {
			assert_null(how);
			assert_int_equal(w.plan->step_n + w.plan->note_n, 1);
		}
		world_free(&w);
	}
}

/* Since 2020 grubby edits these two files like the entries. */
static void grubby_loses_nothing_in_files(void **state)
{
	static const struct {
		const char *path, *text, *why;
	} rows[] = {
		{"etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet iommu=soft\"\n",
		 "grubby would replace iommu=soft of /etc/default/grub, and undo could not"},
		{"etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet iommu=pt\"\n",
		 "/etc/default/grub has iommu=pt and the boot entries do not: undo would remove it"},
		{"etc/kernel/cmdline", "root=a iommu=pt\n",
		 "/etc/kernel/cmdline has iommu=pt and the boot entries do not"},
		{"etc/default/grub",
		 "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"crashkernel=auto\"\n",
		 "would replace each line of /etc/default/grub that begins with GRUB_CMDLINE_LINUX"},
		/* Without the one, grubby leaves the file alone. */
		{"etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n", NULL},
		{"etc/default/grub",
		 "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n", NULL},
		{"etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet intel_iommu=on\"\n", NULL},
		{"etc/kernel/cmdline", "root=a ro\n", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;
		const char *how;

		fedora(&w);
		put(&w, rows[i].path, rows[i].text);
		add_word(&w, "iommu=pt");
		make(&w);
		how = manual(w.plan, "kernel parameter");
		assert_int_equal(w.plan->step_n, rows[i].why ? 0 : 1);
		assert_int_equal(how != NULL, rows[i].why != NULL);
		if (how)
			assert_has(how, rows[i].why);
		world_free(&w);
	}
}

/* The script of 2018 would make intel_iommu=pt of intel_iommu=on. */
static void grubby_of_2018_is_updated_first(void **state)
{
	(void)state;
	for (int loose = 0; loose < 2; loose++) {
		struct world w;
		const char *how;

		fedora(&w);
		put(&w, ENTRY, "options root=a intel_iommu=on\n");
		put(&w, "usr/libexec/grubby/grubby-bls",
		    loose ? "update_args() { :; }\n" : "update_args() { : '[[:space:]])$arg'; }\n");
		add_word(&w, "iommu=pt");
		make(&w);
		how = manual(w.plan, "kernel parameter");
		assert_int_equal(w.plan->step_n, loose ? 0 : 1);
		assert_int_equal(how != NULL, loose);
		if (how)
			assert_has(
				how,
				"update grubby, then run onehop fix again: the installed one, of 2018, would change intel_iommu=on of /" ENTRY);
		world_free(&w);
	}
}

static void grubby_without_entries(void **state)
{
	struct world w;

	(void)state;
	fedora(&w);
	source_drop(w.map, ENTRY);
	add_word(&w, "iommu=pt");
	assert_int_equal(make(&w)->step_n, 0);
	assert_has(manual(w.plan, "kernel parameter iommu=pt"),
		   "/boot/loader/entries could not be read");
	world_free(&w);
}

/* One key, two words of ours: grubby would keep one. */
static void grubby_and_two_of_a_key(void **state)
{
	struct world w;

	(void)state;
	fedora(&w);
	add_word(&w, "pci=nomsi");
	add_word(&w, "pci=realloc");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_non_null(tool_step(&w, "grubby --update-kernel=ALL --args=pci=nomsi"));
	assert_has(manual(w.plan, "kernel parameter pci=realloc"), "keeps only one of");
	world_free(&w);
}

/* The ports are kept by the unit where the parameter would cost somebody else's. */
static void grubby_and_pci(void **state)
{
	struct world w;

	(void)state;
	fedora(&w);
	put(&w, ENTRY, "options root=a pci=noaer\n");
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_null(
		tool_step(&w,
			  "grubby --update-kernel=ALL --args=pci=disable_acs_redir=0000:22:00.0"));
	assert_non_null(file_step(w.plan, "etc/systemd/system/onehop-acs.service"));
	assert_true(has_note(w.plan, "grubby would replace pci=noaer"));
	world_free(&w);
}

/* The ; between two ports is not known to survive there. */
static void grubby_and_ports(void **state)
{
	struct world w;

	(void)state;
	fedora(&w);
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_non_null(
		tool_step(&w,
			  "grubby --update-kernel=ALL --args=pci=disable_acs_redir=0000:22:00.0"));
	assert_false(w.plan->steps[0].again_at_boot);
	add_acs(&w, "0000:22:01.0");
	make(&w);
	assert_non_null(file_step(w.plan, "etc/systemd/system/onehop-acs.service"));
	assert_non_null(tool_step(&w, "systemctl enable onehop-acs.service"));
	assert_true(w.plan->steps[0].again_at_boot);
	assert_true(has_note(w.plan, "the ; between several ports"));
	world_free(&w);
}

#define LOADER_ENTRY "boot/loader/entries/abc-" RELEASE ".conf"
#define KERNEL_LINE  "etc/kernel/cmdline"

static void systemd_boot(struct world *w, const char *id)
{
	world_new(w, id, BOOT_SYSTEMD_BOOT, "initrd=\\x\\initrd root=UUID=1 rw  quiet");
	put(w, "usr/bin/kernel-install", "");
	put(w, "lib/modules/" RELEASE "/vmlinuz", "");
	put(w, LOADER_ENTRY, "linux /abc/linux\noptions root=UUID=1 rw quiet\n");
}

static const struct step *words_step(const struct plan *p, const char *path)
{
	for (size_t i = 0; i < p->step_n; i++)
		if (p->steps[i].kind == STEP_OPTIONS && strcmp(p->steps[i].target, path) == 0)
			return &p->steps[i];
	return NULL;
}

/* config_acs= of one entry is not another's, and disable_acs_redir= neither. */
static void loader_entries_differ(void **state)
{
	static const char old[] = "boot/loader/entries/abc-6.12.0.conf";
	static const char plain[] = "boot/loader/entries/abc-6.12.1.conf";
	static const char does[] = "boot/loader/entries/abc-6.12.2.conf";
	struct world w;

	(void)state;
	systemd_boot(&w, "debian");
	w.m->kernel.release = fact_str("6.12.3", "test");
	put(&w, "boot/loader/entries/abc-6.12.3.conf",
	    "linux /a\noptions root=UUID=1 pci=disable_acs_redir=0000:33:00.0\n");
	put(&w, old, "linux /b\noptions root=UUID=1 pci=config_acs=1xx@pci:0:0\n");
	put(&w, plain, "linux /c\noptions root=UUID=1\n");
	put(&w, does, "linux /d\noptions root=UUID=1 pci=config_acs=0000000@22:00.0\n");
	put(&w, KERNEL_LINE, "root=UUID=1\n");
	add_acs(&w, "0000:22:00.0");
	w.request.trial = TRIAL_ALWAYS;
	make(&w);
	assert_has(w.plan->no_trial, "the boot entries get different parameters");
	assert_string_equal(words_step(w.plan, "boot/loader/entries/abc-6.12.3.conf")->at,
			    "pci=disable_acs_redir=0000:33:00.0;0000:22:00.0");
	assert_string_equal(words_step(w.plan, old)->at,
			    "pci=config_acs=x0x00xx@0000:22:00.0;1xx@pci:0:0");
	assert_string_equal(words_step(w.plan, plain)->at, "pci=disable_acs_redir=0000:22:00.0");
	assert_string_equal(words_step(w.plan, KERNEL_LINE)->at,
			    "pci=disable_acs_redir=0000:22:00.0");
	assert_null(words_step(w.plan, does));
	assert_true(has_note(w.plan, "each gets its own pci="));
	/*
	 * Which of the words the next boot has depends on the entry; that the port is clear does
	 * not.
	 */
	assert_true(wants(w.plan, "acs", "0000:22:00.0 0011"));
	assert_false(wants(w.plan, "kernel-parameter",
			   "pci=disable_acs_redir=0000:33:00.0;0000:22:00.0"));
	carry_out(&w);
	make(&w);
	assert_int_equal(count(w.plan, STEP_OPTIONS), 0);
	world_free(&w);
}

/* Of two entries with config_acs= each keeps its own, and does not get the other's. */
static void loader_entries_keep_config(void **state)
{
	static const char a[] = "boot/loader/entries/abc-6.12.0.conf";
	static const char b[] = "boot/loader/entries/abc-6.12.1.conf";
	struct world w;

	(void)state;
	systemd_boot(&w, "debian");
	w.m->kernel.release = fact_str("6.12.1", "test");
	put(&w, a, "linux /a\noptions root=UUID=1 pci=config_acs=1xx@0000:00:01.1\n");
	put(&w, b, "linux /b\noptions root=UUID=1 pci=config_acs=x1x@0000:22:00.0\n");
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_string_equal(words_step(w.plan, a)->at, "pci=disable_acs_redir=0000:22:00.0");
	assert_string_equal(words_step(w.plan, b)->at,
			    "pci=config_acs=x0x001x@0000:22:00.0;x1x@0000:22:00.0");
	world_free(&w);
}

/* Kernels since 6.11 read config_acs=, and it outranks the other, whichever kernel runs now. */
static void loader_entries_of_other_kernels(void **state)
{
	static const char old[] = "boot/loader/entries/abc-6.8.0.conf";
	static const char new[] = "boot/loader/entries/abc-6.12.1.conf";
	static const char running[] = "boot/loader/entries/abc-other.conf";
	struct world w;

	(void)state;
	for (int newer = 0; newer < 2; newer++) {
		systemd_boot(&w, "debian");
		w.m->kernel.release = fact_str(newer ? "6.12.1" : "6.8.0", "test");
		put(&w, old,
		    "version 6.8.0\nlinux /a\noptions root=UUID=1 pci=config_acs=1xx@pci:0:0\n");
		put(&w, new,
		    "version 6.12.1\nlinux /b\noptions root=UUID=1 pci=config_acs=1xx@pci:0:0\n");
		put(&w, running, "linux /c\noptions root=UUID=1 pci=config_acs=1xx@pci:0:0\n");
		add_acs(&w, "0000:22:00.0");
		make(&w);
		assert_string_equal(words_step(w.plan, old)->at,
				    "pci=disable_acs_redir=0000:22:00.0");
		assert_string_equal(words_step(w.plan, new)->at,
				    "pci=config_acs=x0x00xx@0000:22:00.0;1xx@pci:0:0");
		assert_string_equal(words_step(w.plan, running)->at,
				    words_step(w.plan, newer ? new : old)->at);
		world_free(&w);
	}
}

/* The entries first, then what later ones are made from: undo begins with that. */
static void loader_entries(void **state)
{
	struct world w;
	const struct step *s;

	(void)state;
	systemd_boot(&w, "debian");
	put(&w, "efi/loader/entries/old+2-1.conf",
	    "linux /o\noptions root=UUID=1\noptions iommu=pt\n");
	put(&w, "boot/loader/entries/other.conf", "linux /b\noptions root=UUID=2\n");
	put(&w, "boot/loader/entries/rescue.conf", "linux /r\noptions root=UUID=1\n");
	put(&w, KERNEL_LINE, "root=UUID=1 quiet\n");
	put(&w, "etc/kernel/entry-token", "lab\n");
	put(&w, "etc/kernel/install.conf", "# ours\nlayout=uki\n");
	add_word(&w, "iommu=pt");
	add_acs(&w, "0000:22:00.0");
	add_acs(&w, "0000:22:01.0");
	make(&w);
	/* Registers, and then these three. */
	assert_int_equal(w.plan->step_n, 5);
	s = &w.plan->steps[2];
	assert_string_equal(s->target, LOADER_ENTRY);
	assert_string_equal(s->at, "iommu=pt pci=disable_acs_redir=0000:22:00.0;0000:22:01.0");
	assert_string_equal(s->new.data, "linux /abc/linux\noptions root=UUID=1 rw quiet iommu=pt "
					 "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0\n");
	assert_true(s->reboot);
	assert_null(s->known);
	s = &w.plan->steps[3];
	assert_string_equal(s->target, "efi/loader/entries/old+2-1.conf");
	assert_string_equal(s->at, "pci=disable_acs_redir=0000:22:00.0;0000:22:01.0");
	s = &w.plan->steps[4];
	assert_string_equal(s->target, KERNEL_LINE);
	assert_string_equal(
		s->new.data,
		"root=UUID=1 quiet iommu=pt pci=disable_acs_redir=0000:22:00.0;0000:22:01.0\n");
	assert_string_equal(s->known[0], "abc-" RELEASE ".conf");
	assert_string_equal(s->known[3], "old+2-1.conf");
	assert_null(s->known[4]);
	assert_string_equal(s->own_names[0], "lab");
	assert_null(s->own_names[1]);
	assert_true(has_note(w.plan, "unified kernel images here (/etc/kernel/install.conf)"));
	assert_null(tool_step(&w, "kernel-install"));
	assert_true(has_note(w.plan, "left alone: /boot/loader/entries/other.conf"));
	assert_has(w.plan->way_back[0], "/boot/loader/entries/rescue.conf");
	carry_out(&w);
	make(&w);
	assert_int_equal(w.plan->step_n, 2); /* the registers */
	assert_true(has_note(w.plan, "all boot entries already have"));
	world_free(&w);
}

/*
 * A menu is often hidden, and one whose editor is off edits no entry: what is printed has to be
 * possible.
 */
static void the_way_back_through_systemd_boots_menu(void **state)
{
	static const struct {
		const char *settings, *way;
	} rows[] = {
		{"timeout 3\n",
		 "press e on the entry in the boot menu (hold Space at power-on if it is "
		 "hidden) and delete iommu=pt, for that boot only; then `onehop undo`"},
		{"editor yes\n", "press e on the entry"},
		{"timeout 0\neditor no\n",
		 "start another system, such as a live medium, and mount this one"},
		{"editor off\n", "has its editor off); then `onehop undo --root /mnt`"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;

		systemd_boot(&w, "debian");
		put(&w, "boot/efi/loader/loader.conf", rows[i].settings);
		add_word(&w, "iommu=pt");
		make(&w);
		assert_has(w.plan->way_back_line, rows[i].way);
		/* An entry that stays as it is needs no editor. */
		put(&w, "boot/loader/entries/rescue.conf", "linux /r\noptions root=UUID=1\n");
		make(&w);
		assert_has(w.plan->way_back_line, "rescue.conf; then `onehop undo`");
		world_free(&w);
	}
}

/* What kernel-install would take from the running kernel: from the entry, not from there. */
static void kernel_line_is_written(void **state)
{
	static const char id[] = "0123456789abcdef0123456789abcdef";
	AUTO_FREE char *text = xprintf("linux /l\noptions root=UUID=1 rw systemd.machine_id=%s\n"
				       "options quiet\n",
				       id);
	struct world w;
	const struct step *s;

	(void)state;
	systemd_boot(&w, "debian");
	w.m->kernel.cmdline = fact_str("root=UUID=1 single", "test");
	put(&w, "etc/machine-id", id);
	put(&w, LOADER_ENTRY, text);
	add_word(&w, "iommu=pt");
	make(&w);
	s = words_step(w.plan, KERNEL_LINE);
	assert_null(s->old.data);
	assert_string_equal(s->new.data, "root=UUID=1 rw quiet iommu=pt\n");
	assert_true(has_note(w.plan, "is written so that the entries of later kernels"));
	world_free(&w);

	/* Where the distribution has a line, that is the one. */
	systemd_boot(&w, "debian");
	put(&w, "usr/lib/kernel/cmdline", "root=UUID=1 vendor\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_string_equal(words_step(w.plan, KERNEL_LINE)->new.data,
			    "root=UUID=1 vendor iommu=pt\n");
	world_free(&w);

	/* Nothing is made by kernel-install here. */
	systemd_boot(&w, "arch");
	source_drop(w.map, LOADER_ENTRY);
	put(&w, "boot/loader/entries/arch.conf", "linux /l\noptions root=UUID=1\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_non_null(words_step(w.plan, "boot/loader/entries/arch.conf"));
	world_free(&w);

	/* An entry that has the word already, in which a person put it. */
	systemd_boot(&w, "debian");
	put(&w, LOADER_ENTRY, "linux /l\noptions root=UUID=1 iommu=pt\n");
	put(&w, KERNEL_LINE, "root=UUID=1\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_string_equal(w.plan->steps[0].target, KERNEL_LINE);
	world_free(&w);
}

/* A person's file: only a few words at the end of its line. */
static void kernel_line_of_person(void **state)
{
	static const char *const rows[][2] = {
		{"root=a quiet\n", "root=a quiet iommu=pt\n"},
		{"root=a quiet", "root=a quiet iommu=pt"},
		{"# note\nroot=a  \t\n\n# end\n", "# note\nroot=a iommu=pt  \t\n\n# end\n"},
		{"# only a note\n", "# only a note\niommu=pt\n"},
		{"root=a\nquiet\n", "root=a\nquiet iommu=pt\n"},
		{"root=a -- iommu=pt\n", "root=a iommu=pt -- iommu=pt\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;

		systemd_boot(&w, "debian");
		put(&w, KERNEL_LINE, rows[i][0]);
		add_word(&w, "iommu=pt");
		make(&w);
		assert_string_equal(words_step(w.plan, KERNEL_LINE)->new.data, rows[i][1]);
		carry_out(&w);
		assert_int_equal(make(&w)->step_n, 0);
		assert_true(has_note(w.plan, "all boot entries already have"));
		world_free(&w);
	}
}

/* No entry of this system whose command line is in it, or that could be read. */
static void loader_entries_by_hand(void **state)
{
	static const char *const entries[] = {"linux /uki.efi\n",
					      "uki /uki.efi\noptions root=UUID=1\n",
					      "linux /b\noptions root=UUID=2\n",
					      "linux /r\noptions root=UUID=1 single\n"};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		systemd_boot(&w, "arch");
		put(&w, LOADER_ENTRY, entries[i]);
		add_word(&w, "iommu=pt");
		add_acs(&w, "0000:22:00.0");
		make(&w);
		assert_non_null(manual(w.plan, "options line of the entry"));
		assert_null(words_step(w.plan, KERNEL_LINE));
		/* ACS needs no boot loader. */
		assert_non_null(tool_step(&w, "systemctl enable onehop-acs.service"));
		world_free(&w);
	}
	systemd_boot(&w, "arch");
	source_drop(w.map, LOADER_ENTRY);
	add_word(&w, "iommu=pt");
	make(&w);
	assert_non_null(manual(w.plan, "options line of the entry"));
	assert_true(has_note(w.plan, "if the boot partition is not mounted, mount it"));
	world_free(&w);

	systemd_boot(&w, "arch");
	source_put_error(w.map, LOADER_ENTRY, SOURCE_FILE, EACCES);
	add_word(&w, "iommu=pt");
	make(&w);
	assert_non_null(manual(w.plan, "options line of the entry"));
	assert_true(has_note(w.plan, "/" LOADER_ENTRY " is not readable without root"));
	world_free(&w);
}

/* Each is this system's entry, and none can be changed: a person is told why. */
static void loader_entries_that_stay(void **state)
{
	AUTO_FREE char *long_name = xprintf("boot/loader/entries/%0*d.conf", 240, 1);
	AUTO_FREE char *long_line = xprintf("linux /l\noptions root=UUID=1 x=%0*d\n", 2030, 1);
	struct world w;

	(void)state;
	systemd_boot(&w, "arch");
	source_put_link(w.map, LOADER_ENTRY, "../elsewhere.conf");
	put(&w, long_name, "linux /n\noptions root=UUID=1\n");
	put(&w, "boot/loader/entries/long.conf", long_line);
	source_put_error(w.map, "boot/loader/entries/fifo.conf", SOURCE_FILE, EINVAL);
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 1); /* of /etc/kernel/cmdline */
	assert_non_null(manual(w.plan, LOADER_ENTRY ", which is a symbolic link, iommu=pt"));
	assert_non_null(manual(w.plan, "too long a name"));
	assert_int_equal(w.plan->left_out_n, 1);
	assert_has(w.plan->left_out[0].what.items[0],
		   "add iommu=pt to /boot/loader/entries/long.conf");
	assert_has(w.plan->left_out[0].why, "2047 bytes");
	assert_false(has_note(w.plan, "all boot entries already have"));
	world_free(&w);

	systemd_boot(&w, "arch"); /* whether its kernel has a command line of its own is unknown */
	put(&w, "boot/loader/entries/bare.conf", "linux /b\ntitle arch\nsort-key arch\n");
	put(&w, "boot/loader/entries/SHOUTED.CONF",
	    "linux /s\nsort-key arch\nOPTIONS root=UUID=1\n");
	put(&w, "boot/loader/entries/OTHER.CONF", "linux /o\noptions root=UUID=1\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_non_null(words_step(w.plan, "boot/loader/entries/OTHER.CONF"));
	assert_non_null(manual(
		w.plan,
		"/boot/loader/entries/SHOUTED.CONF, /boot/loader/entries/bare.conf: no options line "
		"(systemd-boot ignores OPTIONS: the key must be in lower case). If it starts a unified "
		"kernel image, add iommu=pt to the build of that image"));
	assert_null(manual(w.plan, "inside its kernel image"));
	world_free(&w);

	systemd_boot(&w, "arch");
	long_line[strlen(long_line) - 1] = '\0';
	put(&w, KERNEL_LINE, long_line);
	add_word(&w, "iommu=pt");
	make(&w);
	assert_null(words_step(w.plan, KERNEL_LINE));
	assert_has(w.plan->left_out[0].what.items[0], "add iommu=pt to /" KERNEL_LINE);
	world_free(&w);
}

/* A variable of the boot loader's: behind its attributes names in UTF-16, a zero behind each. */
static void put_loader_variable(struct world *w, const char *path, const char *names)
{
	char bytes[256] = {0};
	size_t n = EFI_ATTRIBUTES;

	for (; *names; names++, n += 2)
		bytes[n] = *names == ' ' ? '\0' : *names;
	source_put_file(w->map, path, bytes, n);
}

/* The boot menu has images too; what it starts by itself is what counts. */
static void loader_images(void **state)
{
	static const char *const starts[] = {NULL, "abc-" RELEASE ".conf ", "linux-6.1.efi "};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct world w;

		systemd_boot(&w, "arch");
		put(&w, "efi/EFI/Linux/linux-6.1.efi", "an image");
		if (starts[i]) {
			put_loader_variable(&w, EFI_LOADER_VARIABLE("LoaderEntries"),
					    "abc-" RELEASE ".conf linux-6.1.efi ");
			put_loader_variable(&w, EFI_LOADER_VARIABLE("LoaderEntryDefault"),
					    starts[i]);
		}
		add_word(&w, "iommu=pt");
		make(&w);
		assert_non_null(words_step(w.plan, LOADER_ENTRY));
		assert_int_equal(has_note(w.plan, "/efi/EFI/Linux/linux-6.1.efi: the command line"),
				 i == 0);
		assert_int_equal(manual(w.plan, "starts linux-6.1.efi by default") != NULL, i == 2);
		world_free(&w);
	}
}

static void loader_tools(void **state)
{
	struct world w;

	(void)state;
	systemd_boot(&w, "debian");
	put(&w, "usr/sbin/proxmox-boot-tool", "");
	put(&w, "etc/kernel/cmdline", "root=ZFS=rpool\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 3);
	assert_string_equal(words(&w, w.plan->steps[2].argv), "proxmox-boot-tool refresh");
	world_free(&w);

	systemd_boot(&w, "pop");
	put(&w, "usr/bin/kernelstub", "");
	add_word(&w, "iommu=pt");
	add_word(&w, "pci=realloc");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_string_equal(words(&w, w.plan->steps[0].argv),
			    "kernelstub -a 'iommu=pt pci=realloc'");
	assert_string_equal(words(&w, w.plan->steps[0].undo_argv),
			    "kernelstub -d 'iommu=pt pci=realloc'");
	assert_int_equal(w.plan->steps[0].kind, STEP_WORDS);

	/* What waits for the next boot is somebody's. */
	put(&w, "etc/kernelstub/configuration",
	    "{\"user\": {\"kernel_options\": [\"quiet\", \"iommu=pt\"]}}");
	make(&w);
	assert_true(has_note(w.plan, "kernelstub already has iommu=pt; reboot"));
	assert_string_equal(words(&w, w.plan->steps[0].argv), "kernelstub -a pci=realloc");
	world_free(&w);
}

static void with_ostree(void **state)
{
	struct world w;

	(void)state;
	fedora(&w);
	put(&w, "run/ostree-booted", "");
	add_word(&w, "iommu=pt");
	add_word(&w, "pci=realloc");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_string_equal(
		words(&w, w.plan->steps[0].argv),
		"rpm-ostree kargs --append-if-missing=iommu=pt --append-if-missing=pci=realloc");
	assert_string_equal(
		words(&w, w.plan->steps[0].undo_argv),
		"rpm-ostree kargs --delete-if-present=iommu=pt --delete-if-present=pci=realloc");
	/* The deployment that runs stays in the menu, without the words. */
	assert_has(w.plan->way_back_line, "choose the second entry of the boot menu");
	/* Its program works in no chroot, and GRUB's files do nothing there. */
	w.request.image = true;
	put(&w, "usr/sbin/grub2-mkconfig", "");
	put(&w, ENTRY, "title x\noptions root=a ostree=/ostree/boot.1/x\n");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_non_null(manual(w.plan, "in that system, once it runs: `rpm-ostree kargs"));
	world_free(&w);
}

/* Everything below /etc is made from configuration.nix: what runs is changed, the rest is told. */
static void nixos(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, "nixos", BOOT_SYSTEMD_BOOT, "init=/nix/store/x/init");
	add_word(&w, "iommu=pt");
	add_acs(&w, "0000:22:00.0");
	add(&w, (struct change){.kind = CHANGE_MODULE_OPTION,
				.target = "nvidia",
				.name = "NVreg_EnableResizableBar",
				.new = "1"});
	add(&w, (struct change){.kind = CHANGE_MODULE_LOAD, .target = "nvidia-peermem"});
	add(&w, (struct change){.kind = CHANGE_MEMLOCK});
	add(&w,
	    (struct change){.kind = CHANGE_NCCL_SETTING, .name = "NCCL_P2P_LEVEL", .new = "SYS"});
	make(&w);
	assert_int_equal(w.plan->step_n, 2);
	assert_int_equal(w.plan->steps[0].kind, STEP_REGISTER);
	assert_false(w.plan->steps[0].again_at_boot);
	assert_string_equal(words(&w, w.plan->steps[1].argv), "modprobe nvidia-peermem");
	assert_int_equal(w.plan->wanted_n, 0);
	assert_has(manual(w.plan, "to the kernel command line"),
		   "boot.kernelParams of the system's configuration");
	assert_has(manual(w.plan, "to the kernel command line"),
		   "\"pci=disable_acs_redir=0000:22:00.0\"");
	assert_has(manual(w.plan, "lines for /" MODPROBE),
		   "boot.extraModprobeConfig in /etc/nixos/configuration.nix to match these lines: "
		   "\"options nvidia NVreg_EnableResizableBar=1\"; then run `nixos-rebuild boot`");
	assert_has(manual(w.plan, "nvidia-peermem, after"),
		   "boot.kernelModules = [ \"nvidia-peermem\" ];");
	assert_has(manual(w.plan, "lines for /etc/security"), "security.pam.loginLimits");
	assert_has(manual(w.plan, "lines for /etc/systemd"), "DefaultLimitMEMLOCK=infinity");
	assert_has(manual(w.plan, "lines for /etc/nccl.conf"), "NCCL_P2P_LEVEL=SYS");
	world_free(&w);
}

/* /etc can be written; /boot and the initramfs are made in a new snapshot. */
static void microos(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, "opensuse-microos", BOOT_GRUB, "BOOT_IMAGE=/boot/vmlinuz ro");
	put(&w, "usr/sbin/transactional-update", "");
	put(&w, "usr/bin/dracut", "");
	put(&w, "usr/sbin/grub2-mkconfig", "");
	add_word(&w, "iommu=pt");
	add_acs(&w, "0000:22:00.0");
	add(&w, (struct change){.kind = CHANGE_MODULE_BLACKLIST, .target = "nouveau"});
	make(&w);
	assert_has(manual(w.plan, "to the kernel command line"),
		   "`transactional-update grub.cfg`, and reboot");
	assert_non_null(file_step(w.plan, MODPROBE));
	assert_non_null(tool_step(&w, "transactional-update initrd"));
	assert_null(tool_step(&w, "dracut --regenerate-all --force"));
	assert_non_null(file_step(w.plan, "etc/systemd/system/onehop-acs.service"));
	world_free(&w);
}

static void by_hand_only(void **state)
{
	static const struct {
		enum boot_loader loader;
		const char *says;
	} rows[] = {
		{BOOT_UKI, "inside the signed kernel image"},
		{BOOT_OTHER, "boot loader is unknown"},
		{BOOT_UNKNOWN, "boot loader is unknown"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;

		world_new(&w, "debian", rows[i].loader, "ro");
		add_word(&w, "iommu=pt");
		make(&w);
		assert_int_equal(w.plan->step_n, 0);
		assert_has(manual(w.plan, "to the kernel command line"), rows[i].says);
		assert_has(manual(w.plan, "to the kernel command line"), " iommu=pt");
		world_free(&w);
	}
}

/* What a container writes is not the host's. */
static void in_container(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.m->kernel.container = fact_str("docker", "test");
	add_word(&w, "iommu=pt");
	add_acs(&w, "0000:22:00.0");
	add(&w,
	    (struct change){.kind = CHANGE_NCCL_SETTING, .name = "NCCL_P2P_LEVEL", .new = "SYS"});
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_string_equal(w.plan->steps[0].target, "etc/nccl.conf");
	assert_int_equal(w.plan->manual_n, 2);
	assert_has(w.plan->manual[0].how, "on the host");

	/* A file that is left behind is no proof. */
	w.m->kernel.container = fact_str("docker", "./.dockerenv");
	make(&w);
	assert_int_equal(w.plan->manual_n, 0);
	assert_int_equal(count(w.plan, STEP_REGISTER), 1);
	assert_true(has_note(w.plan, "there is a file /.dockerenv"));
	world_free(&w);
}

/* ---- ACS ---- */

static void acs_registers(void **state)
{
	const struct step *s;
	struct world w;

	(void)state;
	debian(&w);
	add_acs(&w, "0000:22:00.0");
	make(&w);
	s = w.plan->steps;
	assert_int_equal(w.plan->step_n, 4);
	assert_int_equal(s->kind, STEP_REGISTER);
	assert_string_equal(s->target, "0000:22:00.0");
	assert_string_equal(s->at, "ACS+6");
	assert_int_equal(s->value.old, 0x001d);
	assert_int_equal(s->value.new, 0x0011);
	assert_int_equal(s->mask, 0x000c);
	assert_int_equal(s->identity, 0x1000c030);
	assert_false(s->reboot);
	assert_has(s->cost.items[0], "virtual machine (VFIO)");
	assert_true(wants(w.plan, "acs", "0000:22:00.0 0011"));
	assert_true(wants(w.plan, "kernel-parameter", "pci=disable_acs_redir=0000:22:00.0"));
	world_free(&w);
}

static void acs_lifetimes(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_acs(&w, "0000:22:00.0");
	w.request.lifetime = CHANGE_NOW;
	assert_int_equal(make(&w)->step_n, 1);
	assert_int_equal(w.plan->steps[0].kind, STEP_REGISTER);
	assert_int_equal(w.plan->wanted_n, 0);
	w.request.lifetime = CHANGE_KEPT;
	assert_int_equal(make(&w)->step_n, 3);
	assert_int_equal(count(w.plan, STEP_REGISTER), 0);
	world_free(&w);
}

/* It outranks the other, so the ports go before what it says; older kernels do not know it. */
static void acs_config(void **state)
{
	static const char others[] = "GRUB_CMDLINE_LINUX=\"pci=config_acs=1xx@pci:0:0\"\n";
	struct world w;

	(void)state;
	debian(&w);
	put(&w, "etc/default/grub", others);
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_true(wants(w.plan, "kernel-parameter", "pci=disable_acs_redir=0000:22:00.0"));
	w.m->kernel.release = fact_str("6.12.3", "test");
	make(&w);
	assert_true(wants(w.plan, "kernel-parameter",
			  "pci=config_acs=x0x00xx@0000:22:00.0;1xx@pci:0:0"));
	assert_true(has_note(w.plan, "overrides"));
	/* The line of an earlier fix is replaced. */
	carry_out(&w);
	add_acs(&w, "0000:22:01.0");
	make(&w);
	assert_has(content(w.plan, DROP_IN),
		   "'pci=config_acs=x0x00xx@0000:22:00.0;x0x00xx@0000:22:01.0;1xx@pci:0:0'");
	assert_null(strstr(content(w.plan, DROP_IN), "x0x00xx@0000:22:00.0;1xx"));
	world_free(&w);

	/* What runs already does it. */
	debian(&w);
	w.m->kernel.release = fact_str("6.12.3", "test");
	w.m->kernel.cmdline = fact_str(GRUB_LINE " pci=config_acs=0000000@22:00.0", "test");
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_true(has_note(w.plan, "already has pci=config_acs= for these ports"));
	assert_null(file_step(w.plan, DROP_IN));
	world_free(&w);
}

#define DEFAULTS "GRUB_CMDLINE_LINUX_DEFAULT"
#define CLOUD    "etc/default/grub.d/50-cloud.cfg"

/* config_acs= counts as the shell and the kernel would have it, not as it stands in some line. */
static void acs_config_of_grub(void **state)
{
	static const char hides[] = DEFAULTS "=\"quiet\"\n";
	static const struct {
		const char *file, *drop_in; /* NULL: none */
		const char *config; /* the part that is taken over; "": none; NULL: refused */
	} rows[] = {
		{DEFAULTS "='pci=config_acs=1xx@pci:0:0'\n", NULL, "1xx@pci:0:0"},
		{"export " DEFAULTS "=pci=config_acs=1xx@pci:0:0 # mine\n", NULL, "1xx@pci:0:0"},
		/* A later assignment takes its place, or goes on from it. */
		{DEFAULTS "=\"pci=config_acs=1xx@pci:0:0\"\n", hides, ""},
		{DEFAULTS "=\"pci=config_acs=1xx@pci:0:0\"\n", DEFAULTS "=\"$" DEFAULTS " a\"\n",
		 "1xx@pci:0:0"},
		{DEFAULTS "=\"pci=config_acs=1xx@pci:0:0\"\n",
		 DEFAULTS "=a\\ \"${" DEFAULTS "}\"' b'\n", "1xx@pci:0:0"},
		/* Of two the last on the line counts, in whatever order they are assigned. */
		{DEFAULTS
		 "=pci=config_acs=1xx@pci:0:0\nGRUB_CMDLINE_LINUX=pci=config_acs=x1x@pci:0:0\n",
		 NULL, "1xx@pci:0:0"},
		/* The recovery entry's, a comment, other variables. */
		{"GRUB_CMDLINE_LINUX_RECOVERY=pci=config_acs=1xx@pci:0:0\n", NULL, ""},
		{"# " DEFAULTS "=pci=config_acs=1xx@pci:0:0\n", NULL, ""},
		{"GRUB_DISTRIBUTOR=`lsb_release -i -s`\nif [ a ]; then\nGRUB_TIMEOUT=$(cat x)\nfi\n",
		 NULL, ""},
		/* For a shell alone. */
		{"if [ -e /x ]; then\n" DEFAULTS "=pci=config_acs=1xx@pci:0:0\nfi\n", NULL, NULL},
		{DEFAULTS "=pci=config_acs=1xx@pci:0:0\n", DEFAULTS "+=\" a\"\n", NULL},
		{DEFAULTS "=\"pci=config_acs=1xx@pci:0:0 $(cat /x)\"\n", NULL, NULL},
		{DEFAULTS "=\"pci=config_acs=1xx@pci:0:0 $OTHER\"\n", NULL, NULL},
		{DEFAULTS "=pci=config_acs=1xx@pci:0:0; echo\n", NULL, NULL},
		{DEFAULTS "=\"pci=config_acs=1xx@pci:0:0\n", NULL, NULL},
		/* And nothing of it is about ACS. */
		{DEFAULTS "=\"quiet $(cat /x)\"\n", NULL, ""},
	};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *config = rows[i].config;
		AUTO_FREE char *word =
			config && *config
				? xprintf("pci=config_acs=x0x00xx@0000:22:00.0;%s", config)
				: xstrdup("pci=disable_acs_redir=0000:22:00.0");

		debian(&w);
		w.m->kernel.release = fact_str("6.12.3", "test");
		put(&w, "etc/default/grub", rows[i].file);
		if (rows[i].drop_in)
			put(&w, CLOUD, rows[i].drop_in);
		add_acs(&w, "0000:22:00.0");
		make(&w);
		if (wants(w.plan, "kernel-parameter", word) != (config != NULL))
			fail_msg("row %zu: %s", i, rows[i].file);
		if (!config)
			assert_true(has_note(w.plan, "depends on shell code"));
		world_free(&w);
	}
}

/*
 * What a person wrote and has not made the menu of yet comes with it: a line of ours would say it
 * twice.
 */
static void words_of_a_person_that_wait(void **state)
{
	static const struct {
		const char *file, *menu;
		bool acs; /* another word is wanted too */
		size_t step_n;
		const char *manual, *note;
	} rows[] = {
		{DEFAULTS "=\"quiet iommu=pt\"\n", "linux /vmlinuz quiet\n", false, 0,
		 "/" CLOUD ", line 1, already has it: run `update-grub`, and reboot", NULL},
		{DEFAULTS "=\"quiet iommu=pt\"\n", "linux /vmlinuz quiet iommu=pt\n", false, 0,
		 NULL, "/" CLOUD ":1 already has iommu=pt; reboot for it to take effect"},
		{DEFAULTS "=\"quiet iommu=pt\"\n", "linux /vmlinuz quiet\n", true, 3, NULL,
		 "/" CLOUD ":1 already has iommu=pt: regenerating the boot menu brings it"},
		{DEFAULTS "=\"iommu=pt $(cat /x)\"\n", "linux /vmlinuz quiet\n", false, 3, NULL,
		 "/" CLOUD
		 ":1 has iommu=pt: if that takes effect, the command line will have it twice"},
		/* It does not count there, or is for another entry. */
		{DEFAULTS "=\"iommu=pt iommu=nopt\"\n", "linux /vmlinuz quiet\n", false, 3, NULL,
		 NULL},
		{"GRUB_CMDLINE_LINUX_RECOVERY=iommu=pt\n", "linux /vmlinuz quiet\n", false, 3, NULL,
		 NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;
		const char *how;

		debian(&w);
		put(&w, CLOUD, rows[i].file);
		put(&w, GRUB_CFG, rows[i].menu);
		add_word(&w, "iommu=pt");
		if (rows[i].acs)
			add_word(&w, "pci=realloc");
		make(&w);
		how = manual(w.plan, "kernel parameter");
		assert_int_equal(w.plan->step_n, rows[i].step_n);
		assert_int_equal(how != NULL, rows[i].manual != NULL);
		if (how)
			assert_string_equal(how, rows[i].manual);
		if (rows[i].note)
			assert_true(has_note(w.plan, rows[i].note));
		if (rows[i].acs)
			assert_null(strstr(content(w.plan, DROP_IN), "iommu=pt"));
		world_free(&w);
	}
}

/* grubby gives all entries one word, and GRUB's files are not what they are made from. */
static void acs_config_of_grubby(void **state)
{
	struct world w;

	(void)state;
	fedora(&w);
	w.m->kernel.release = fact_str("6.12.3", "test");
	put(&w, CLOUD, "GRUB_CMDLINE_LINUX=pci=config_acs=1xx@pci:0:0\n");
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_true(wants(w.plan, "kernel-parameter", "pci=disable_acs_redir=0000:22:00.0"));
	put(&w, "boot/loader/entries/2.conf",
	    "title y\noptions root=a pci=config_acs=1xx@pci:0:0\n");
	make(&w);
	assert_int_equal(count(w.plan, STEP_WORDS), 0);
	assert_true(has_note(w.plan, "the boot entries set ACS differently"));
	world_free(&w);
}

static void acs_unknown(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_acs(&w, "0000:77:00.0");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_non_null(manual(w.plan, "which device is at 0000:77:00.0 could not be read"));
	world_free(&w);
}

static void acs_lockdown(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.m->kernel.lockdown = fact_int(LOCKDOWN_INTEGRITY, "test");
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_int_equal(w.plan->step_n, 3);
	assert_int_equal(count(w.plan, STEP_REGISTER), 0);
	assert_true(has_note(w.plan, "locked down"));
	world_free(&w);

	/* A unit could not write either. */
	fedora(&w);
	w.m->kernel.lockdown = fact_int(LOCKDOWN_CONFIDENTIALITY, "test");
	add_acs(&w, "0000:22:00.0");
	add_acs(&w, "0000:22:01.0");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_has(manual(w.plan, "the ; between several ports"), "locked-down kernel");
	world_free(&w);
}

static const char *left_out(const struct plan *p, const char *what)
{
	for (size_t i = 0; i < p->left_out_n; i++) {
		AUTO_STRBUF struct strbuf all = {0};

		texts_join(&p->left_out[i].what, "; ", &all);
		if (strstr(strbuf_str(&all), what))
			return p->left_out[i].why;
	}
	return "";
}

/* What no step does, and what is not so already, is told. */
static void left_out_is_told(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_acs(&w, "0000:22:00.0");
	add_acs(&w, "0000:22:01.0");
	add_word(&w, "iommu=pt");
	w.request.lifetime = CHANGE_NOW;
	make(&w);
	assert_int_equal(count(w.plan, STEP_REGISTER), 2);
	assert_int_equal(w.plan->left_out_n, 1);
	assert_has(left_out(w.plan, "iommu=pt"), "--now");

	w.m->kernel.lockdown = fact_int(LOCKDOWN_INTEGRITY, "test");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_int_equal(w.plan->left_out_n, 2);
	assert_has(left_out(w.plan, "0000:22:00.0: ACS control 001d -> 0011; 0000:22:01.0: ACS"),
		   "locked down");
	w.request.lifetime = CHANGE_LASTING;
	make(&w);
	assert_int_equal(w.plan->left_out_n, 0);
	assert_true(has_note(w.plan, "locked down"));

	/* The running kernel has the parameter, and the register is not what it should be. */
	w.m->kernel.cmdline =
		fact_str("iommu=pt pci=disable_acs_redir=0000:22:00.0;0000:22:01.0", "test");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_has(left_out(w.plan, "0000:22:00.0"), "locked down");
	world_free(&w);
}

static void acs_guest(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.m->gpus[0].pci->driver = fact_str("vfio-pci", "test");
	add_acs(&w, w.m->gpus[0].pci->parent->name);
	add_acs(&w, w.m->gpus[1].pci->parent->name);
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_has(manual(w.plan, "is unchanged"), w.m->gpus[0].pci->name);
	assert_non_null(manual(w.plan, w.m->gpus[1].pci->parent->name));
	assert_true(has_note(w.plan, "is bound to vfio-pci"));
	world_free(&w);
}

static void acs_old_kernel(void **state)
{
	static const struct {
		const char *release;
		bool unit;
	} rows[] = {{"4.18.0-553.el8", true},
		    {"4.19.0", false},
		    {"3.10.0", true},
		    {"5.4.0", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct step *s;
		struct world w;

		debian(&w);
		w.m->kernel.release = fact_str(rows[i].release, "test");
		w.request.program = "/opt/one hop/100%/bin/onehop";
		add_acs(&w, "0000:22:00.0");
		make(&w);
		s = file_step(w.plan, "etc/systemd/system/onehop-acs.service");
		assert_int_equal(s != NULL, rows[i].unit);
		assert_int_equal(w.plan->steps[0].again_at_boot, rows[i].unit);
		if (s) {
			assert_has(s->new.data, "\nType=oneshot\nRemainAfterExit=yes\n"
						"ExecStartPre=-/bin/udevadm settle ");
			assert_has(s->new.data,
				   "\nExecStart=\"/opt/one hop/100%%/bin/onehop\" fix --at-boot\n");
			/* To the end of the line: no quotes. */
			assert_has(s->new.data, "\nConditionFileIsExecutable="
						"/opt/one hop/100%%/bin/onehop\n");
			assert_has(s->new.data,
				   "\nDefaultDependencies=no\n"
				   "After=local-fs.target systemd-modules-load.service "
				   "systemd-udev-trigger.service\n"
				   "Before=sysinit.target shutdown.target\n");
		}
		world_free(&w);
	}
}

static void acs_unit_twice(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, "debian", BOOT_OTHER, "ro");
	add_acs(&w, "0000:22:00.0");
	make(&w);
	assert_int_equal(w.plan->step_n, 4); /* register, reload when undone, file, enable */
	assert_string_equal(words(&w, w.plan->steps[1].undo_argv), "systemctl daemon-reload");
	assert_null(w.plan->steps[1].argv);
	assert_string_equal(words(&w, w.plan->steps[3].undo_argv),
			    "systemctl disable onehop-acs.service");
	assert_false(plan_needs_reboot(w.plan));
	assert_int_equal(w.plan->builds_on_n, 0);
	carry_out(&w);
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_true(w.plan->steps[0].again_at_boot);
	assert_int_equal(w.plan->builds_on_n, 1); /* without that file it would not be done again */
	assert_string_equal(w.plan->builds_on[0], "etc/systemd/system/onehop-acs.service");
	world_free(&w);
}

/* What root runs at each boot is nothing that a user could replace, or that may be gone by then. */
static void acs_from_a_program_that_goes(void **state)
{
	static const char unit[] = "etc/systemd/system/onehop-acs.service";
	static const char *const programs[] = {"/home/alice/bin/onehop",
					       "/tmp/build/onehop",
					       "/usr/src/onehop/build/onehop",
					       "/run/media/alice/stick/bin/onehop",
					       "/mnt/bin/onehop",
					       "/onehop",
					       NULL};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		struct world w;

		world_new(&w, "debian", BOOT_OTHER, "ro");
		w.request.program = programs[i];
		add_acs(&w, "0000:22:00.0");
		make(&w);
		assert_null(file_step(w.plan, unit));
		assert_int_equal(count(w.plan, STEP_TOOL), 0);
		assert_int_equal(count(w.plan, STEP_REGISTER), 1);
		assert_false(w.plan->steps[0].again_at_boot);
		assert_int_equal(w.plan->wanted_n, 0);
		assert_has(manual(w.plan, "set ACS at each boot with"),
			   "with an onehop installed where only root can write");
		/* What lies there may be another version, or lead to a user's file. */
		put(&w, "usr/bin/onehop", "");
		make(&w);
		assert_null(file_step(w.plan, unit));
		world_free(&w);
	}
}

static void many_ports(struct world *w, unsigned n)
{
	struct pci_function *root = build_port(w->m, "0001:00:00.0", NULL, PCI_PORT_ROOT);

	for (unsigned i = 0; i < n; i++) {
		AUTO_FREE char *name = xprintf("0001:%02x:%02x.%u", 1 + i / 256, i / 8 % 32, i % 8);

		add_acs(w, build_port(w->m, name, root, PCI_PORT_DOWNSTREAM)->name);
	}
}

/* A kernel's command line has 2048 bytes; what does not fit would be cut off somewhere. */
static void acs_many(void **state)
{
	static const struct {
		unsigned ports;
		bool unit;
	} rows[] = {{128, false}, {500, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;

		debian(&w);
		many_ports(&w, rows[i].ports);
		make(&w);
		assert_int_equal(count(w.plan, STEP_REGISTER), rows[i].ports);
		assert_int_equal(count(w.plan, STEP_FILE), 1);
		assert_int_equal(file_step(w.plan, DROP_IN) == NULL, rows[i].unit);
		assert_int_equal(has_note(w.plan, "does not fit"), rows[i].unit);
		world_free(&w);
	}
}

static void bar_size(void **state)
{
	const struct step *s;
	struct world w;

	(void)state;
	debian(&w);
	w.m->gpus[0].pci->driver = fact_str_absent("test");
	w.m->gpus[1].pci->driver = fact_str("nvidia", "test");
	for (size_t i = 0; i < 2; i++)
		add(&w, (struct change){.kind = CHANGE_BAR_SIZE,
					.target = w.m->gpus[i].pci->name,
					.bar = 1,
					.value = {256, 32768}});
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	s = w.plan->steps;
	assert_int_equal(s->kind, STEP_BAR_SIZE);
	assert_string_equal(s->target, w.m->gpus[0].pci->name);
	assert_string_equal(s->at, "1");
	assert_int_equal(s->value.old, 256);
	assert_int_equal(s->value.new, 32768);
	assert_int_equal(s->identity, 0x10de2684);
	assert_has(left_out(w.plan, "BAR1 256 MiB -> 32768 MiB"), "while nvidia is bound to it");
	world_free(&w);
}

/* ---- modules ---- */

static struct module *add_module(struct world *w, const char *name, int64_t loaded)
{
	struct module *m = ARENA_PUSH(w->m->arena, w->m->modules, w->m->module_n);

	m->name = name;
	m->loaded = fact_int(loaded, "test");
	m->users = fact_int(0, "test");
	m->used_by = fact_str("", "test");
	return m;
}

static void add_modprobe(struct world *w, enum modprobe_kind kind, const char *module,
			 const char *text, const char *file)
{
	struct modprobe_line *l = ARENA_PUSH(w->m->arena, w->m->modprobe, w->m->modprobe_n);

	*l = (struct modprobe_line){
		.kind = kind, .module = module, .text = text, .file = file, .line = 7};
}

static void add_option(struct world *w, const char *option, const char *value)
{
	add(w, (struct change){.kind = CHANGE_MODULE_OPTION,
			       .target = "nvidia",
			       .name = option,
			       .new = value});
}

static void add_dword(struct world *w, const char *key, const char *value)
{
	add(w, (struct change){.kind = CHANGE_REGISTRY_DWORD,
			       .target = "nvidia",
			       .name = key,
			       .new = value});
}

static void module_options(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_option(&w, "NVreg_EnableResizableBar", "1");
	add_dword(&w, "ForceP2P", "0x11");
	add_dword(&w, "RMPcieP2PType", "1");
	make(&w);
	assert_int_equal(w.plan->step_n, 3);
	assert_null(w.plan->steps[0].argv);
	assert_string_equal(words(&w, w.plan->steps[0].undo_argv), "update-initramfs -u -k all");
	assert_string_equal(words(&w, w.plan->steps[2].argv), "update-initramfs -u");
	assert_int_equal(w.plan->steps[2].deadline_s, 900);
	assert_has(content(w.plan, MODPROBE),
		   "\noptions nvidia NVreg_EnableResizableBar=1\n"
		   "options nvidia NVreg_RegistryDwords=\"ForceP2P=0x11;RMPcieP2PType=1\"\n");
	assert_true(w.plan->steps[1].reboot);
	assert_true(wants(w.plan, "module-option", "nvidia NVreg_EnableResizableBar=1"));
	assert_true(wants(w.plan, "registry-dword", "nvidia ForceP2P=0x11"));
	assert_true(wants(w.plan, "registry-dword", "nvidia RMPcieP2PType=1"));
	carry_out(&w);
	assert_int_equal(make(&w)->step_n, 0);
	assert_true(has_note(w.plan, "reboot for it to take effect"));
	/* Another one goes into the same option. */
	add_dword(&w, "forcep2p", "0x33");
	add_dword(&w, "Other", "2");
	make(&w);
	assert_has(content(w.plan, MODPROBE),
		   "NVreg_RegistryDwords=\"forcep2p=0x33;RMPcieP2PType=1;Other=2\"\n");
	world_free(&w);
}

/* modprobe looks options up by the file's name too. */
static void module_of_debian(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_module(&w, "nvidia", 1)->file =
		fact_str("updates/dkms/nvidia-current-open.ko.xz", "test");
	add_option(&w, "NVreg_EnableResizableBar", "1");
	make(&w);
	assert_has(content(w.plan, MODPROBE),
		   "options nvidia NVreg_EnableResizableBar=1\n"
		   "options nvidia-current-open NVreg_EnableResizableBar=1\n");
	world_free(&w);
}

static void module_not_loaded(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.m->driver.loaded = fact_int(0, "test");
	add_option(&w, "NVreg_EnableResizableBar", "1");
	make(&w);
	assert_int_equal(w.plan->step_n, 3);
	assert_false(plan_needs_reboot(w.plan));
	assert_int_equal(w.plan->way_back_n, 0);
	world_free(&w);
}

static void option_of_person(void **state)
{
	static const struct {
		const char *text, *file;
		size_t steps;
		const char *note, *how;
	} rows[] = {
		{"NVreg_EnableResizableBar=1", "/etc/modprobe.d/nvidia.conf", 0,
		 "/etc/modprobe.d/nvidia.conf:7 already sets NVreg_EnableResizableBar=1", NULL},
		{"a=1 NVreg_EnableResizableBar=0", "/etc/modprobe.d/nvidia.conf", 3,
		 "is read later and overrides it", NULL},
		{"NVreg_EnableResizableBar=0", "/etc/modprobe.d/zz.conf", 0, NULL,
		 "/etc/modprobe.d/zz.conf:7 sets NVreg_EnableResizableBar=0 and is read after"},
		{"xNVreg_EnableResizableBar=0", "/etc/modprobe.d/zz.conf", 3, NULL, NULL},
		{"NVreg_EnableResizableBar=0", "/" MODPROBE, 3, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;

		debian(&w);
		add_modprobe(&w, MODPROBE_OPTIONS, "nvidia", rows[i].text, rows[i].file);
		add_option(&w, "NVreg_EnableResizableBar", "1");
		assert_int_equal(make(&w)->step_n, rows[i].steps);
		if (rows[i].note)
			assert_true(has_note(w.plan, rows[i].note));
		if (rows[i].how)
			assert_non_null(manual(w.plan, rows[i].how));
		else
			assert_int_equal(w.plan->manual_n, 0);
		world_free(&w);
	}
}

/* Only one such option counts, so a person's is not ours to hide. */
static void dwords_of_person(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_modprobe(&w, MODPROBE_OPTIONS, "nvidia",
		     "NVreg_RegistryDwords=\"PeerMappingOverride=1;ForceP2P=0\"",
		     "/etc/modprobe.d/nvidia.conf");
	add_dword(&w, "ForceP2P", "0x11");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_has(manual(w.plan, "registry keys"),
		   "/etc/modprobe.d/nvidia.conf:7 sets NVreg_RegistryDwords");
	assert_has(manual(w.plan, "registry keys"),
		   "NVreg_RegistryDwords=\"PeerMappingOverride=1;ForceP2P=0x11\" there");
	world_free(&w);

	debian(&w);
	w.m->kernel.cmdline = fact_str(GRUB_LINE " nvidia.NVreg_RegistryDwords=A=1", "test");
	add_dword(&w, "ForceP2P", "0x11");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_has(manual(w.plan, "registry keys"), "NVreg_RegistryDwords=\"A=1;ForceP2P=0x11\"");
	world_free(&w);
}

static void odd_options_are_refused(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_option(&w, "NVreg_X", "1 y=2");
	add_option(&w, "NVreg_X\ninstall x y", "1");
	add_dword(&w, "A;B", "1");
	add_dword(&w, "A", "1\"");
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_int_equal(w.plan->manual_n, 4);
	world_free(&w);
}

static void initramfs_tools(void **state)
{
	static const struct {
		const char *program, *apply, *undo;
	} rows[] = {
		{"usr/sbin/update-initramfs", "update-initramfs -u", "update-initramfs -u -k all"},
		{"usr/bin/dracut", "dracut --regenerate-all --force",
		 "dracut --regenerate-all --force"},
		{"usr/bin/mkinitcpio", "mkinitcpio -P", "mkinitcpio -P"},
	};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		world_new(&w, "x", BOOT_OTHER, "ro");
		put(&w, rows[i].program, "");
		add_option(&w, "NVreg_EnableResizableBar", "1");
		make(&w);
		assert_string_equal(words(&w, w.plan->steps[2].argv), rows[i].apply);
		assert_string_equal(words(&w, w.plan->steps[0].undo_argv), rows[i].undo);
		world_free(&w);
	}
	world_new(&w, "x", BOOT_OTHER, "ro");
	add_option(&w, "NVreg_EnableResizableBar", "1");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_true(has_note(w.plan, "update-initramfs, dracut and mkinitcpio are all missing"));
	source_put_error(w.map, "usr/sbin/dracut", SOURCE_LINK, EACCES);
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_true(has_note(w.plan, "it is unknown which tool makes the initramfs"));
	put(&w, "run/ostree-booted", "");
	put(&w, "usr/bin/dracut", "");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_non_null(manual(w.plan, "rpm-ostree initramfs-etc --track=/" MODPROBE));
	world_free(&w);
}

static void blacklists(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_module(&w, "nouveau", 1);
	add_module(&w, "nova_core", 0);
	put(&w, MODPROBE, "# x\nblacklist nouveau_old\n");
	add(&w, (struct change){.kind = CHANGE_MODULE_BLACKLIST, .target = "nouveau"});
	add(&w, (struct change){.kind = CHANGE_MODULE_BLACKLIST, .target = "nova_core"});
	make(&w);
	assert_string_equal(content(w.plan, MODPROBE),
			    "# x\nblacklist nouveau_old\nblacklist nouveau\nblacklist nova_core\n");
	assert_int_equal(w.plan->step_n, 3);
	assert_true(w.plan->steps[1].reboot);
	assert_true(wants(w.plan, "module-blacklist", "nouveau"));
	add_modprobe(&w, MODPROBE_BLACKLIST, "nouveau", "", "/etc/modprobe.d/nv.conf");
	make(&w);
	assert_lacks(content(w.plan, MODPROBE), "blacklist nouveau\n");
	assert_true(
		has_note(w.plan, "/etc/modprobe.d/nv.conf:7 already keeps nouveau from loading"));
	assert_false(plan_needs_reboot(w.plan));
	world_free(&w);
}

/* Out with the old one, then in with the new one, whatever the order of the changes. */
static void peer_memory(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add_module(&w, "nv_peer_mem", 1);
	put(&w, "etc/init.d/nv_peer_mem", "");
	put(&w, "var/lib/dkms/nv_peer_mem/1.3/build", "");
	add(&w, (struct change){.kind = CHANGE_MODULE_LOAD, .target = "nvidia-peermem"});
	add(&w, (struct change){.kind = CHANGE_MODULE_UNLOAD, .target = "nv_peer_mem"});
	make(&w);
	assert_string_equal(words(&w, w.plan->steps[0].argv), "systemctl stop nv_peer_mem");
	assert_string_equal(words(&w, w.plan->steps[1].argv), "rmmod nv_peer_mem");
	assert_string_equal(w.plan->steps[1].argv_if, "sys/module/nv_peer_mem");
	assert_null(w.plan->steps[1].undo_if);
	assert_true(w.plan->steps[1].passing);
	assert_false(plan_needs_reboot(w.plan)); /* it is out already */
	assert_string_equal(words(&w, w.plan->steps[1].undo_argv), "modprobe nv_peer_mem");
	assert_string_equal(words(&w, w.plan->steps[2].argv), "modprobe nvidia-peermem");
	assert_string_equal(words(&w, w.plan->steps[2].undo_argv), "rmmod nvidia-peermem");
	assert_null(w.plan->steps[2].argv_if);
	assert_string_equal(w.plan->steps[2].undo_if, "sys/module/nvidia_peermem");
	assert_has(content(w.plan, MODPROBE),
		   "blacklist nv_peer_mem\ninstall nv_peer_mem /bin/false\n");
	assert_has(content(w.plan, "etc/systemd/system/onehop-peermem.service"),
		   "ExecStart=/sbin/modprobe nvidia-peermem\n");
	assert_has(content(w.plan, "etc/systemd/system/onehop-peermem.service"),
		   "\nConditionFileIsExecutable=/sbin/modprobe\n");
	assert_has(content(w.plan, "etc/systemd/system/onehop-peermem.service"),
		   " openibd.service rdma-load-modules@infiniband.service ");
	assert_non_null(tool_step(&w, "systemctl enable onehop-peermem.service"));
	assert_null(tool_step(&w, "update-initramfs -u")); /* it is in no initramfs */
	assert_has(manual(w.plan, "remove the package"), "nvidia-peer-memory-dkms");
	world_free(&w);
}

/* Undoing makes of the service what it was. */
static void service_of_peer_memory(void **state)
{
	static const struct {
		const char *file, *link;
		int64_t loaded;
		unsigned lifetime;
		const char *argv, *undo;
	} rows[] = {
		{"etc/init.d/nv_peer_mem", "etc/rc3.d/S20nv_peer_mem", 1, CHANGE_LASTING,
		 "systemctl disable --now nv_peer_mem", "systemctl enable --now nv_peer_mem"},
		{"lib/systemd/system/nv_peer_mem.service",
		 "etc/systemd/system/multi-user.target.wants/nv_peer_mem.service", 0,
		 CHANGE_LASTING, "systemctl disable nv_peer_mem", "systemctl enable nv_peer_mem"},
		{"lib/systemd/system/nv_peer_mem.service",
		 "etc/systemd/system/sysinit.target.wants/nv_peer_mem.service", 1, CHANGE_KEPT,
		 "systemctl disable nv_peer_mem", "systemctl enable nv_peer_mem"},
		{"lib/systemd/system/nv_peer_mem.service",
		 "etc/systemd/system/sysinit.target.wants/nv_peer_mem.service", 1, CHANGE_NOW,
		 "systemctl stop nv_peer_mem", "systemctl start nv_peer_mem"},
		{"etc/init.d/nv_peer_mem", NULL, 1, CHANGE_LASTING, "systemctl stop nv_peer_mem",
		 "systemctl start nv_peer_mem"},
		{"etc/init.d/nv_peer_mem", NULL, 0, CHANGE_LASTING, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;
		const struct step *s;

		debian(&w);
		add_module(&w, "nv_peer_mem", rows[i].loaded);
		put(&w, rows[i].file, "");
		if (rows[i].link)
			source_put_link(w.map, rows[i].link, "x");
		add(&w, (struct change){.kind = CHANGE_MODULE_UNLOAD, .target = "nv_peer_mem"});
		w.request.lifetime = rows[i].lifetime;
		make(&w);
		s = w.plan->steps;
		if (rows[i].argv) {
			assert_string_equal(words(&w, s->argv), rows[i].argv);
			assert_string_equal(words(&w, s->undo_argv), rows[i].undo);
			assert_string_equal(s->undo_if, rows[i].file);
		} else {
			for (size_t k = 0; k < w.plan->step_n; k++)
				assert_lacks(words(&w, s[k].argv), "systemctl");
		}
		world_free(&w);
	}
}

static void unload_in_use(void **state)
{
	struct module *m;
	struct world w;

	(void)state;
	debian(&w);
	m = add_module(&w, "nv_peer_mem", 1);
	m->users = fact_int(2, "test");
	m->used_by = fact_str("ib_core", "test");
	add(&w, (struct change){.kind = CHANGE_MODULE_UNLOAD, .target = "nv_peer_mem"});
	make(&w);
	assert_null(tool_step(&w, "rmmod nv_peer_mem"));
	assert_true(has_note(w.plan, "in use (ib_core)"));
	assert_true(plan_needs_reboot(w.plan));
	assert_string_equal(w.plan->way_back[0], "undo the fix: `onehop undo`");
	w.request.lifetime = CHANGE_NOW;
	assert_int_equal(make(&w)->step_n, 0);
	assert_has(left_out(w.plan, "unload nv_peer_mem"), "in use (ib_core)");
	world_free(&w);
}

static void peermem_variants(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.m->peermem.loaded = fact_int(1, "test");
	add(&w, (struct change){.kind = CHANGE_MODULE_LOAD, .target = "nvidia_peermem"});
	make(&w);
	assert_null(tool_step(&w, "modprobe nvidia-peermem"));
	assert_int_equal(w.plan->step_n, 3);
	assert_false(plan_needs_reboot(w.plan));
	carry_out(&w);
	assert_int_equal(make(&w)->step_n, 0);
	world_free(&w);

	/* Debian's name. */
	debian(&w);
	w.m->peermem.loaded = fact_int(0, "test");
	add(&w, (struct change){.kind = CHANGE_MODULE_LOAD, .target = "nvidia_current_peermem"});
	make(&w);
	assert_int_equal(w.plan->manual_n, 0);
	assert_non_null(tool_step(&w, "modprobe nvidia-current-peermem"));
	assert_string_equal(w.plan->steps[0].undo_if, "sys/module/nvidia_current_peermem");
	assert_has(content(w.plan, "etc/systemd/system/onehop-peermem.service"),
		   "ExecStart=/sbin/modprobe nvidia-current-peermem\n");
	world_free(&w);

	debian(&w);
	source_drop(w.map, "etc/systemd/system.conf");
	add(&w, (struct change){.kind = CHANGE_MODULE_LOAD, .target = "nvidia-peermem"});
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_non_null(manual(w.plan, "no systemd here"));
	world_free(&w);
}

/* ---- settings ---- */

static void memlock(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add(&w, (struct change){.kind = CHANGE_MEMLOCK});
	make(&w);
	assert_int_equal(w.plan->step_n, 4);
	assert_has(content(w.plan, "etc/security/limits.d/onehop.conf"),
		   "* soft memlock unlimited\n* hard memlock unlimited\nroot soft memlock "
		   "unlimited\nroot hard memlock unlimited\n");
	assert_has(content(w.plan, "etc/systemd/system.conf.d/onehop.conf"),
		   "[Manager]\nDefaultLimitMEMLOCK=infinity\n");
	assert_has(w.plan->steps[3].what, "services keep running");
	assert_string_equal(words(&w, w.plan->steps[1].undo_argv), "systemctl daemon-reexec");
	assert_string_equal(words(&w, w.plan->steps[3].argv), "systemctl daemon-reexec");
	assert_true(has_note(w.plan, "log in again"));
	carry_out(&w);
	assert_int_equal(make(&w)->step_n, 0);
	world_free(&w);
}

#define BEGIN                                                                                      \
	"# onehop begin: \"onehop undo\" restores this file, unless it was edited since then\n"
#define CLOSE "# onehop end\n"

static void nccl_settings(void **state)
{
	static const struct {
		const char *before, *after;
	} rows[] = {
		{NULL, "# Written by onehop. \"onehop undo\" removes it.\n" BEGIN
		       "NCCL_P2P_LEVEL=SYS\n" CLOSE},
		{"NCCL_DEBUG=INFO\n", "NCCL_DEBUG=INFO\n" BEGIN "NCCL_P2P_LEVEL=SYS\n" CLOSE},
		{"# mine\r\nNCCL_DEBUG=INFO",
		 "# mine\r\nNCCL_DEBUG=INFO\n" BEGIN "NCCL_P2P_LEVEL=SYS\n" CLOSE},
		{"A=1\n" BEGIN "NCCL_P2P_LEVEL=PHB\nNCCL_X=1\n" CLOSE "B=2",
		 "A=1\n" BEGIN "NCCL_P2P_LEVEL=SYS\nNCCL_X=1\n" CLOSE "B=2"},
		{BEGIN "NCCL_X=1\n" CLOSE, BEGIN "NCCL_X=1\nNCCL_P2P_LEVEL=SYS\n" CLOSE},
		{"NCCL_P2P_LEVEL =PHB\n",
		 "NCCL_P2P_LEVEL =PHB\n" BEGIN "NCCL_P2P_LEVEL=SYS\n" CLOSE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;

		debian(&w);
		if (rows[i].before)
			put(&w, "etc/nccl.conf", rows[i].before);
		add(&w, (struct change){.kind = CHANGE_NCCL_SETTING,
					.name = "NCCL_P2P_LEVEL",
					.new = "SYS"});
		make(&w);
		assert_string_equal(content(w.plan, "etc/nccl.conf"), rows[i].after);
		assert_int_equal(file_step(w.plan, "etc/nccl.conf")->old.data != NULL,
				 rows[i].before != NULL);
		carry_out(&w);
		assert_int_equal(make(&w)->step_n, 0);
		world_free(&w);
	}
}

static void nccl_of_person(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	put(&w, "etc/nccl.conf", "# x\nNCCL_P2P_LEVEL=PHB\n");
	build_setting(w.m, "NCCL_P2P_LEVEL", "NVL");
	add(&w,
	    (struct change){.kind = CHANGE_NCCL_SETTING, .name = "NCCL_P2P_LEVEL", .new = "SYS"});
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_non_null(manual(
		w.plan,
		"/etc/nccl.conf:2 sets NCCL_P2P_LEVEL=PHB: make it NCCL_P2P_LEVEL=SYS there"));
	assert_true(has_note(w.plan, "which overrides"));
	world_free(&w);

	debian(&w);
	source_put_file(w.map, "etc/nccl.conf", "a\0b", 3);
	add(&w,
	    (struct change){.kind = CHANGE_NCCL_SETTING, .name = "NCCL_P2P_LEVEL", .new = "SYS"});
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_has(left_out(w.plan, "/etc/nccl.conf"), "the file is binary");
	world_free(&w);
}

static void persistence(void **state)
{
	static const char own[] = "etc/systemd/system/onehop-persistence.service";
	const struct change change = {.kind = CHANGE_PERSISTENCE};
	struct world w;

	(void)state;
	debian(&w);
	add(&w, change);
	make(&w);
	assert_has(content(w.plan, own), "ExecStart=/usr/bin/nvidia-smi -pm 1\n"
					 "ExecStop=/usr/bin/nvidia-smi -pm 0\n");
	assert_has(content(w.plan, own), "\nConditionFileIsExecutable=/usr/bin/nvidia-smi\n");
	assert_non_null(tool_step(&w, "systemctl enable --now onehop-persistence.service"));
	/* Ubuntu's unit does not turn it on. */
	put(&w, "lib/systemd/system/nvidia-persistenced.service",
	    "ExecStart=/usr/bin/nvidia-persistenced --no-persistence-mode\n");
	make(&w);
	assert_non_null(file_step(w.plan, own));
	put(&w, "lib/systemd/system/nvidia-persistenced.service",
	    "ExecStart=/usr/bin/nvidia-persistenced --user nvpd\n");
	make(&w);
	assert_int_equal(w.plan->step_n, 1);
	assert_string_equal(words(&w, w.plan->steps[0].argv),
			    "systemctl enable --now nvidia-persistenced.service");
	assert_string_equal(words(&w, w.plan->steps[0].undo_argv),
			    "systemctl disable --now nvidia-persistenced.service");
	/* Not to be disabled by an undo when it was enabled before. */
	source_put_link(w.map,
			"etc/systemd/system/multi-user.target.wants/nvidia-persistenced.service",
			"x");
	make(&w);
	assert_string_equal(words(&w, w.plan->steps[0].undo_argv),
			    "systemctl stop nvidia-persistenced.service");
	world_free(&w);
}

/* Enabled or not, running or not: undoing takes back no more than was done. */
static void persistence_as_it_was(void **state)
{
	static const char unit[] = "lib/systemd/system/nvidia-persistenced.service";
	static const struct {
		bool enabled, runs, shows;
		unsigned lifetime;
		const char *argv, *undo;
	} rows[] = {
		{false, false, false, CHANGE_LASTING, "enable --now", "disable --now"},
		{false, true, false, CHANGE_LASTING, "enable", "disable"},
		{false, false, true, CHANGE_LASTING, "enable", "disable"},
		{false, false, false, CHANGE_KEPT, "enable", "disable"},
		{true, false, false, CHANGE_LASTING, "start", "stop"},
		{true, false, false, CHANGE_KEPT, NULL, NULL},
		{true, true, false, CHANGE_KEPT, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct world w;

		debian(&w);
		put(&w, unit, "ExecStart=/usr/bin/nvidia-persistenced --user nvpd\n");
		if (rows[i].enabled)
			source_put_link(
				w.map,
				"etc/systemd/system/graphical.target.wants/nvidia-persistenced.service",
				"x");
		if (rows[i].runs)
			put(&w, "run/nvidia-persistenced/socket", "");
		if (rows[i].shows)
			w.m->gpus[0].persistence = fact_int(1, "test");
		add(&w, (struct change){.kind = CHANGE_PERSISTENCE});
		w.request.lifetime = rows[i].lifetime;
		make(&w);
		if (rows[i].argv) {
			AUTO_FREE char *argv =
				xprintf("systemctl %s nvidia-persistenced.service", rows[i].argv);
			AUTO_FREE char *undo =
				xprintf("systemctl %s nvidia-persistenced.service", rows[i].undo);

			assert_string_equal(words(&w, w.plan->steps[0].argv), argv);
			assert_string_equal(words(&w, w.plan->steps[0].undo_argv), undo);
		} else {
			assert_int_equal(w.plan->step_n, 0);
			assert_true(has_note(w.plan, "is already enabled"));
		}
		world_free(&w);
	}
}

/* ---- what is not done ---- */

static void by_hand_and_apart(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	add(&w, (struct change){.kind = CHANGE_BY_HAND,
				.target = "Above 4G",
				.new = "turn it on in the BIOS"});
	for (const char *port = "0000:22:00.0"; port;
	     port = strcmp(port, "0000:22:00.0") ? NULL : "0000:22:01.0")
		add(&w, (struct change){.kind = CHANGE_ACS,
					.target = port,
					.value = {0x1d, 0x11},
					.rules = TEXTS("acs.root-port", "acs.other"),
					.opt_in = true});
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	assert_int_equal(w.plan->manual_n, 2);
	assert_string_equal(w.plan->manual[0].what, "Above 4G: GPUs talk directly");
	assert_string_equal(w.plan->manual[0].how, "turn it on in the BIOS");
	assert_string_equal(
		w.plan->manual[1].what,
		"0000:22:00.0: ACS control 001d -> 0011; 0000:22:01.0: ACS control 001d -> 0011");
	assert_string_equal(w.plan->manual[1].how, "`onehop fix acs.root-port acs.other --apply`");
	world_free(&w);
}

/* ---- a system image ---- */

static void add_all(struct world *w)
{
	add_word(w, "iommu=pt");
	add_acs(w, "0000:22:00.0");
	add_acs(w, "0000:22:01.0");
	add_option(w, "NVreg_EnableResizableBar", "1");
	add_dword(w, "ForceP2P", "0x11");
	add(w, (struct change){.kind = CHANGE_MODULE_BLACKLIST, .target = "nouveau"});
	add(w, (struct change){.kind = CHANGE_MODULE_UNLOAD, .target = "nv_peer_mem"});
	add(w, (struct change){.kind = CHANGE_MODULE_LOAD, .target = "nvidia-peermem"});
	add(w, (struct change){.kind = CHANGE_BAR_SIZE,
			       .target = w->m->gpus[0].pci->name,
			       .bar = 1,
			       .value = {256, 32768}});
	add(w, (struct change){.kind = CHANGE_MEMLOCK});
	add(w,
	    (struct change){.kind = CHANGE_NCCL_SETTING, .name = "NCCL_P2P_LEVEL", .new = "SYS"});
	add(w, (struct change){.kind = CHANGE_PERSISTENCE});
	add(w, (struct change){.kind = CHANGE_BY_HAND, .target = "x", .new = "y"});
}

static void image(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	w.request.image = true;
	/* Of the host that runs this, not of the image. */
	w.m->kernel.boot_loader = fact_int(BOOT_UKI, "test");
	w.m->kernel.cmdline = fact_str("iommu=pt", "test");
	add_modprobe(&w, MODPROBE_OPTIONS, "nvidia", "NVreg_EnableResizableBar=1",
		     "/etc/modprobe.d/a.conf");
	put(&w, "etc/modprobe.d/person.conf", "options nvidia NVreg_RegistryDwords=\"A=1\"\n");
	add_all(&w);
	make(&w);
	for (size_t i = 0; i < w.plan->step_n; i++)
		assert_int_equal(w.plan->steps[i].kind, STEP_FILE);
	assert_has(content(w.plan, DROP_IN), "iommu=pt");
	assert_has(content(w.plan, DROP_IN), "'pci=disable_acs_redir=0000:22:00.0;0000:22:01.0'");
	assert_has(content(w.plan, MODPROBE), "NVreg_EnableResizableBar=1\n");
	assert_lacks(content(w.plan, MODPROBE), "RegistryDwords");
	assert_has(manual(w.plan, "person.conf"), "\"A=1;ForceP2P=0x11\"");
	assert_string_equal(
		manual(w.plan, "grub-mkconfig"),
		"in the system image, e.g. by chroot: `chroot /mnt/image grub-mkconfig -o "
		"/boot/grub/grub.cfg`");
	assert_non_null(manual(w.plan, "chroot /mnt/image update-initramfs -u -k all"));
	assert_non_null(
		manual(w.plan, "systemctl --root=/mnt/image enable onehop-peermem.service"));
	assert_null(manual(w.plan, "modprobe -r"));
	carry_out(&w);
	make(&w);
	assert_int_equal(w.plan->step_n, 0);
	world_free(&w);
}

static void image_with_loader(void **state)
{
	struct world w;

	(void)state;
	world_new(&w, "fedora", BOOT_GRUB, "root=of-the-host ro");
	w.request.image = true;
	put(&w, "etc/machine-id", "0123456789abcdef0123456789abcdef\n");
	put(&w, "usr/bin/kernel-install", "");
	put(&w, "lib/modules/6.5.0/vmlinuz", "");
	put(&w, "boot/loader/entries/0123456789abcdef0123456789abcdef-6.5.0.conf",
	    "linux /l\noptions root=a\n");
	put(&w, "boot/loader/entries/of-the-host.conf", "linux /l\noptions root=of-the-host\n");
	add_word(&w, "iommu=pt");
	make(&w);
	assert_int_equal(w.plan->step_n, 2);
	assert_string_equal(
		words_step(w.plan,
			   "boot/loader/entries/0123456789abcdef0123456789abcdef-6.5.0.conf")
			->new.data,
		"linux /l\noptions root=a iommu=pt\n");
	assert_string_equal(words_step(w.plan, KERNEL_LINE)->new.data, "root=a iommu=pt\n");
	assert_int_equal(w.plan->manual_n, 0);
	world_free(&w);
}

/* ---- every kind on every host ---- */

static void check_argv(const char *const *argv)
{
	if (argv)
		assert_true(*argv[0] && argv[0][0] != '/' && !strchr(argv[0], ' '));
}

/* What a step needs to be done, undone and told. */
static void check_step(struct world *w, const struct step *s)
{
	AUTO_FREE char *data = NULL;
	size_t size = 0;

	assert_true(s->what && *s->what && s->why.n);
	assert_true(s->rules.n || step_is_program(s));
	check_argv(s->argv);
	check_argv(s->undo_argv);
	if (s->kind == STEP_TOOL || s->kind == STEP_GENERATED) {
		assert_true(s->argv || s->undo_argv);
		assert_true(s->deadline_s >= 60);
		return;
	}
	assert_non_null(s->target);
	assert_true(s->new.data || step_has_value(s));
	if (s->kind != STEP_FILE)
		return;
	assert_int_equal(strlen(s->new.data), s->new.size);
	assert_int_not_equal(*s->target, '/');
	if (source_read(w->source, &data, &size, "%s", s->target) == 0) {
		assert_int_equal(size, s->old.size);
		assert_memory_equal(data, s->old.data, size);
	} else {
		assert_null(s->old.data);
	}
}

/*
 * One step a file; what runs when undoing stands before the file, what runs when applying behind.
 */
static void check_plan(struct world *w)
{
	const struct plan *p = w->plan;

	for (size_t i = 0; i < p->step_n; i++) {
		check_step(w, &p->steps[i]);
		for (size_t k = 0; k < i && p->steps[i].kind == STEP_FILE; k++)
			assert_false(step_same_target(&p->steps[i], &p->steps[k]));
		if (p->steps[i].argv || !step_is_program(&p->steps[i]))
			continue;
		assert_true(i + 1 < p->step_n);
		assert_false(step_is_program(&p->steps[i + 1]));
	}
	for (size_t i = 0; i < p->manual_n; i++)
		assert_true(*p->manual[i].what && *p->manual[i].how);
	assert_int_equal(plan_needs_reboot(p), p->way_back_n > 0);
}

static void only_boot_loader(struct world *w)
{
	world_new(w, "debian", BOOT_OTHER, "ro");
}

static void with_systemd_boot(struct world *w)
{
	systemd_boot(w, "debian");
}

static void suse(struct world *w)
{
	world_new(w, "opensuse-leap", BOOT_GRUB, "BOOT_IMAGE=/boot/vmlinuz ro");
}

static void everything(void **state)
{
	static void (*const hosts[])(struct world * w) = {debian, fedora, only_boot_loader,
							  with_systemd_boot, suse};

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
		for (unsigned lifetime = CHANGE_NOW; lifetime <= CHANGE_LASTING; lifetime++) {
			struct world w;

			hosts[i](&w);
			add_all(&w);
			w.request.lifetime = lifetime;
			make(&w);
			assert_true(w.plan->step_n > 0);
			check_plan(&w);
			world_free(&w);
		}
}

static void nothing(void **state)
{
	struct world w;

	(void)state;
	debian(&w);
	make(&w);
	assert_int_equal(w.plan->step_n + w.plan->manual_n + w.plan->note_n, 0);
	world_free(&w);
}

/* ---- recorded machines ---- */

struct recorded {
	struct source *source;
	struct machine *machine;
	struct world w;
};

static void open_recorded(struct recorded *r, const char *name)
{
	static const struct machine_request all = {.parts = MACHINE_ALL};
	AUTO_FREE char *path = xprintf("tests/machines/%s", name);

	memset(r, 0, sizeof(*r));
	assert_int_equal(open_recording(path, &r->source), 0);
	r->machine = machine_read(r->source, &all);
	r->w.arena = r->w.set.arena = arena_new();
	r->w.request = (struct plan_request){.machine = r->machine,
					     .source = r->source,
					     .lifetime = CHANGE_LASTING};
}

static void close_recorded(struct recorded *r)
{
	plan_free(r->w.plan);
	arena_free(r->w.arena);
	machine_free(r->machine);
	source_free(r->source);
}

/* Each port that redirects; as many. */
static size_t add_redirecting(struct recorded *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->machine->pci_n; i++) {
		const struct pci_function *f = &r->machine->pci[i];
		int64_t now = fact_or(f->acs_ctl, 0), redirect = PCI_ACS_RR | PCI_ACS_CR;

		if (!(now & redirect))
			continue;
		add(&r->w, (struct change){.kind = CHANGE_ACS,
					   .target = f->name,
					   .value = {(unsigned)now, (unsigned)(now & ~redirect)}});
		n++;
	}
	return n;
}

static void recorded_switch(void **state)
{
	struct recorded r;
	size_t n;

	(void)state;
	open_recorded(&r, "guest-switch2-intel");
	n = add_redirecting(&r);
	assert_true(n > 2);
	make(&r.w);
	assert_int_equal(count(r.w.plan, STEP_REGISTER), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(r.w.plan->steps[i].mask & ~(PCI_ACS_RR | PCI_ACS_CR), 0);
	close_recorded(&r);
}

static void recorded_guest(void **state)
{
	struct recorded r;
	size_t n;

	(void)state;
	open_recorded(&r, "guest-vfio");
	n = add_redirecting(&r);
	make(&r.w);
	assert_true(count(r.w.plan, STEP_REGISTER) < n);
	assert_true(has_note(r.w.plan, "is bound to vfio-pci"));
	close_recorded(&r);
}

static void recorded_lockdown(void **state)
{
	struct recorded r;

	(void)state;
	open_recorded(&r, "guest-lockdown");
	for (size_t i = 0; i < r.machine->pci_n; i++)
		if (fact_known(r.machine->pci[i].acs_ctl))
			add_acs(&r.w, r.machine->pci[i].name);
	assert_true(r.w.set.n > 0);
	make(&r.w);
	assert_int_equal(count(r.w.plan, STEP_REGISTER), 0);
	assert_true(has_note(r.w.plan, "locked down"));
	close_recorded(&r);
}

/* Nobody asked that machine for these files. */
static void recorded_unknown(void **state)
{
	struct recorded r;

	(void)state;
	open_recorded(&r, "rtx4090x8-before");
	add_option(&r.w, "NVreg_EnableResizableBar", "1");
	add_word(&r.w, "iommu=pt");
	make(&r.w);
	assert_true(has_note(r.w.plan, "not in tests/machines/rtx4090x8-before"));
	assert_true(
		has_note(r.w.plan, "the plan assumes that this file does not exist: /" MODPROBE));
	assert_non_null(file_step(r.w.plan, MODPROBE));
	assert_null(file_step(r.w.plan, MODPROBE)->old.data);
	close_recorded(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grub_bracket),
		cmocka_unit_test(grub_recovery_entry),
		cmocka_unit_test(grub_several_words),
		cmocka_unit_test(grub_quotes),
		cmocka_unit_test(grub_merges),
		cmocka_unit_test(grub_merges_running),
		cmocka_unit_test(grub_foreign_line),
		cmocka_unit_test(grub_replaces_own_opposite),
		cmocka_unit_test(grub_twice),
		cmocka_unit_test(grub_behind_drop_in),
		cmocka_unit_test(grub_link),
		cmocka_unit_test(grub_without_boot),
		cmocka_unit_test(grub_by_hand),
		cmocka_unit_test(grub_with_dashes),
		cmocka_unit_test(grub_of_suse),
		cmocka_unit_test(grub_of_proxmox),
		cmocka_unit_test(image_of_proxmox),
		cmocka_unit_test(conflicts_are_shown),
		cmocka_unit_test(words_without_effect),
		cmocka_unit_test(later_word_wins),
		cmocka_unit_test(odd_words_are_refused),
		cmocka_unit_test(with_grubby),
		cmocka_unit_test(no_trial_with_grubby),
		cmocka_unit_test(grubby_loses_nothing),
		cmocka_unit_test(grubby_loses_nothing_in_files),
		cmocka_unit_test(grubby_of_2018_is_updated_first),
		cmocka_unit_test(grubby_without_entries),
		cmocka_unit_test(grubby_and_two_of_a_key),
		cmocka_unit_test(grubby_and_pci),
		cmocka_unit_test(grubby_and_ports),
		cmocka_unit_test(kernel_line_of_person),
		cmocka_unit_test(loader_entries),
		cmocka_unit_test(loader_entries_differ),
		cmocka_unit_test(loader_entries_keep_config),
		cmocka_unit_test(loader_entries_of_other_kernels),
		cmocka_unit_test(kernel_line_is_written),
		cmocka_unit_test(loader_entries_by_hand),
		cmocka_unit_test(loader_entries_that_stay),
		cmocka_unit_test(loader_images),
		cmocka_unit_test(loader_tools),
		cmocka_unit_test(the_way_back_through_systemd_boots_menu),
		cmocka_unit_test(with_ostree),
		cmocka_unit_test(nixos),
		cmocka_unit_test(microos),
		cmocka_unit_test(by_hand_only),
		cmocka_unit_test(in_container),
		cmocka_unit_test(acs_registers),
		cmocka_unit_test(acs_lifetimes),
		cmocka_unit_test(acs_config),
		cmocka_unit_test(acs_config_of_grub),
		cmocka_unit_test(words_of_a_person_that_wait),
		cmocka_unit_test(acs_config_of_grubby),
		cmocka_unit_test(acs_unknown),
		cmocka_unit_test(acs_lockdown),
		cmocka_unit_test(left_out_is_told),
		cmocka_unit_test(acs_guest),
		cmocka_unit_test(acs_old_kernel),
		cmocka_unit_test(acs_unit_twice),
		cmocka_unit_test(acs_from_a_program_that_goes),
		cmocka_unit_test(acs_many),
		cmocka_unit_test(bar_size),
		cmocka_unit_test(module_options),
		cmocka_unit_test(module_of_debian),
		cmocka_unit_test(module_not_loaded),
		cmocka_unit_test(option_of_person),
		cmocka_unit_test(dwords_of_person),
		cmocka_unit_test(odd_options_are_refused),
		cmocka_unit_test(initramfs_tools),
		cmocka_unit_test(blacklists),
		cmocka_unit_test(peer_memory),
		cmocka_unit_test(service_of_peer_memory),
		cmocka_unit_test(unload_in_use),
		cmocka_unit_test(peermem_variants),
		cmocka_unit_test(memlock),
		cmocka_unit_test(nccl_settings),
		cmocka_unit_test(nccl_of_person),
		cmocka_unit_test(persistence),
		cmocka_unit_test(persistence_as_it_was),
		cmocka_unit_test(by_hand_and_apart),
		cmocka_unit_test(image),
		cmocka_unit_test(image_with_loader),
		cmocka_unit_test(everything),
		cmocka_unit_test(nothing),
		cmocka_unit_test(recorded_switch),
		cmocka_unit_test(recorded_guest),
		cmocka_unit_test(recorded_lockdown),
		cmocka_unit_test(recorded_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
