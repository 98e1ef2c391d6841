/* SPDX-License-Identifier: Apache-2.0 */
/* GRUB: a drop-in below /etc/default/grub.d, and grub.cfg made again from it. */
#include "fix/make_plan_impl.h"

#include "base/alloc.h"
#include "base/path.h"
#include "fix/grub_menu.h"

#include <limits.h>
#include <string.h>

#define ABOUT                                                                                      \
	"Kernel parameters for normal boots; the recovery entry does not have them. To remove them\n# without onehop: delete this file and run update-grub."

static const struct grub grubs[] = {
	{"grub-mkconfig", "grub-script-check", "boot/grub/grub.cfg", "grub-reboot", "grub-editenv",
	 "grub-probe"},
	{"grub2-mkconfig", "grub2-script-check", "boot/grub2/grub.cfg", "grub2-reboot",
	 "grub2-editenv", "grub2-probe"},
};

/* The text of the program, a shell script. */
static const char *mkconfig_text(struct planner *p, const struct grub *g, enum there *ret_there)
{
	static const char *const folders[] = {"usr/sbin", "usr/bin", "sbin"};
	bool unknown = false;

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		const char *path = arena_printf(p->a, "%s/%s", folders[i], g->mkconfig);
		const char *text = plan_read(p, ret_there, path);

		if (text)
			return text;
		unknown |= *ret_there == THERE_UNKNOWN;
	}
	*ret_there = unknown ? THERE_UNKNOWN : THERE_NO;
	return NULL;
}

/* The one whose program is there; if unknown, the one with the usual names. */
static const struct grub *find_grub(struct planner *p, const char **ret_text, enum there *ret_there)
{
	const struct grub *likely = NULL;

	for (size_t i = 0; i < ARRAY_LEN(grubs); i++) {
		*ret_text = mkconfig_text(p, &grubs[i], ret_there);
		if (*ret_text)
			return &grubs[i];
		if (*ret_there == THERE_UNKNOWN && !likely)
			likely = &grubs[i];
	}
	*ret_there = likely ? THERE_UNKNOWN : THERE_NO;
	return likely ? likely : &grubs[0];
}

const struct grub *plan_grub_here(struct planner *p)
{
	enum there there;
	const char *text;

	return find_grub(p, &text, &there);
}

bool plan_grub_reads_drop_ins(struct planner *p)
{
	enum there there;
	const char *text;

	if (!plan_is_grub(p))
		return false;
	find_grub(p, &text, &there);
	if (text)
		return strstr(text, "default/grub.d") != NULL;
	return there == THERE_UNKNOWN && plan_is_debian_like(p);
}

/* ---- the drop-in ---- */

static const char *quoted(struct planner *p, const char *word)
{
	AUTO_STRBUF struct strbuf b = {0};

	strbuf_shell_word(&b, word);
	return arena_strdup(p->a, b.text);
}

/* The word of one of our lines, as it is there; NULL: it is none. */
static const char *word_of_line(struct planner *p, const char *line, size_t n)
{
	size_t start = strlen(GRUB_LINE_START), end = strlen(GRUB_LINE_END);

	if (n <= start + end || memcmp(line, GRUB_LINE_START, start) != 0 ||
	    memcmp(line + n - end, GRUB_LINE_END, end) != 0)
		return NULL;
	return arena_strndup(p->a, line + start, n - start - end);
}

/* Whether `word` replaces what is there: of two only the last would count. */
static bool replaces(struct planner *p, const char *word, const char *stands)
{
	static const char *const lists[] = {"pci=disable_acs_redir=", "pci=config_acs="};
	char *plain = arena_strdup(p->a, stands + (*stands == '\''));

	plain[strcspn(plain, "'")] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (text_starts_with(word, lists[i]) && text_starts_with(plain, lists[i]))
			return true;
	return strcmp(plain, word) == 0 || plan_words_conflict(word, plain);
}

static void put_word(struct planner *p, struct planned_file *f, const char *word)
{
	AUTO_STRBUF struct strbuf text = {0};
	const char *line = NULL;
	bool put = false;
	size_t n;

	while (text_next_line(&line, &n, f->text)) {
		const char *stands = word_of_line(p, line, n);

		if (!stands || !replaces(p, word, stands)) {
			strbuf_add(&text, line, n);
			strbuf_putc(&text, '\n');
		} else if (!put) {
			strbuf_printf(&text, GRUB_LINE_START "%s" GRUB_LINE_END "\n",
				      quoted(p, word));
			put = true;
		}
	}
	if (!put)
		strbuf_printf(&text, GRUB_LINE_START "%s" GRUB_LINE_END "\n", quoted(p, word));
	f->text = arena_strdup(p->a, text.text);
}

/*
 * What is in grub.cfg then: our words in a row, because each line adds one behind the one before;
 * only those behind the last line that is somebody else's, which may do anything.
 */
static const char *words_in_row(struct planner *p, const struct planned_file *f)
{
	AUTO_STRBUF struct strbuf row = {0};
	const char *line = NULL;
	size_t n;

	while (text_next_line(&line, &n, f->text)) {
		const char *word = word_of_line(p, line, n);

		if (word)
			strbuf_printf(&row, "%s%s", row.len ? " " : "", word);
		else if (n && *line != '#')
			row.len = 0;
	}
	return row.len ? arena_strndup(p->a, row.text, row.len) : NULL;
}

/* What makes the menu of these files. */
struct made_by {
	const char *config; /* the menu; NULL: nobody can look */
	const char *update; /* a command */
};

static enum there is_in_menu(struct planner *p, const struct made_by *by, const char *word)
{
	enum there there = THERE_UNKNOWN;
	const char *text = by->config ? plan_read(p, &there, by->config) : NULL;
	AUTO_FREE char *own = text ? grub_own_entries(text) : NULL;

	if (!own)
		return THERE_UNKNOWN;
	return plan_text_has_word(p, own, word) ? THERE_YES : THERE_NO;
}

/* But not if the menu was put back as it was, while the file was kept: no reboot helps until it is made again. */
static void drop_ours(struct planner *p, const struct planned_file *f, const struct made_by *by)
{
	for (size_t i = p->word_n; f->there && i-- > 0;)
		if (plan_text_has_word(p, f->old, p->words[i].word) &&
		    is_in_menu(p, by, p->words[i].word) != THERE_NO) {
			plan_note(p, "/%s already has %s; reboot for it to take effect", FILE_GRUB,
				  p->words[i].word);
			plan_word_drop(p, i);
		}
}

/* ---- what a person's files have ---- */

struct stands {
	const char *word, *file;
	unsigned line;
};

static void find_theirs(void *context, const char *word, const char *file, unsigned line)
{
	struct stands *s = context;

	if (!s->file && strcmp(word, s->word) == 0 && strcmp(file, "/" FILE_GRUB) != 0 &&
	    strcmp(file, "/proc/cmdline") != 0)
		*s = (struct stands){s->word, file, line};
}

/* The menu has it once it is made again, so that another would be there twice. */
static bool is_theirs(struct planner *p, struct stands *s)
{
	const char *line = plan_grub_line(p);

	plan_each_word(p, find_theirs, s);
	if (!s->file || p->request->confirms)
		return false;
	if (!line)
		plan_note(
			p,
			"%s:%u has %s: if that takes effect, the command line will have it twice, which does no harm",
			s->file, s->line, s->word);
	return line && plan_word_counts(p, line, s->word);
}

/* `others`: the menu is made again for other words. */
static void say_theirs(struct planner *p, const struct made_by *by, const struct stands *s,
		       struct texts rules, bool others)
{
	if (is_in_menu(p, by, s->word) == THERE_YES)
		plan_note(p, "%s:%u already has %s; reboot for it to take effect", s->file, s->line,
			  s->word);
	else if (others)
		plan_note(p, "%s:%u already has %s: regenerating the boot menu brings it", s->file,
			  s->line, s->word);
	else
		plan_manual(p, rules, arena_printf(p->a, "kernel parameter %s", s->word),
			    "%s, line %u, already has it: %srun `%s`, and reboot", s->file, s->line,
			    p->request->image ? "in that system, " : "", by->update);
}

static void drop_theirs(struct planner *p, const struct made_by *by)
{
	struct wanted_word *theirs = NULL;
	size_t n = 0;

	for (size_t i = p->word_n; i-- > 0;) {
		struct stands s = {.word = p->words[i].word};

		if (!is_theirs(p, &s))
			continue;
		*ARENA_PUSH(p->a, theirs, n) = p->words[i];
		plan_word_drop(p, i);
	}
	while (n-- > 0) {
		struct stands s = {.word = theirs[n].word};

		plan_each_word(p, find_theirs, &s);
		say_theirs(p, by, &s, theirs[n].purpose.rules, p->word_n > 0);
	}
}

static struct made_by made_by(struct planner *p, const struct grub *g)
{
	if (line_keeper(&p->line) == KEEPER_PROXMOX_GRUB)
		return (struct made_by){NULL, "proxmox-boot-tool refresh"};
	return (struct made_by){.config = p->request->image ? NULL : g->config,
				.update = plan_is_debian_like(p)
						  ? "update-grub"
						  : arena_printf(p->a, "%s -o /%s", g->mkconfig,
								 g->config)};
}

void plan_grub_drop_theirs(struct planner *p)
{
	const struct made_by by = made_by(p, plan_grub_here(p));

	drop_theirs(p, &by);
}

/* False: nothing to write, the files have all of them. */
static bool write_drop_in(struct planner *p, const struct made_by *by, struct planned_file **ret)
{
	struct planned_file *f = plan_drop_in(p, FILE_GRUB, PHASE_BOOT, ABOUT);

	if (f) {
		drop_ours(p, f, by);
		drop_theirs(p, by);
	}
	if (!f || !p->word_n)
		return false;
	for (size_t i = 0; i < p->word_n; i++)
		put_word(p, f, p->words[i].word);
	f->purpose = plan_words_purpose(p);
	*ret = f;
	return true;
}

/* GRUB_DISABLE_RECOVERY, and distributions of their own, leave the entry out. */
static enum there has_recovery(struct planner *p, const char *config)
{
	enum there there;
	const char *text = plan_read(p, &there, config);

	if (!text)
		return THERE_UNKNOWN;
	return strstr(text, "recovery mode") ? THERE_YES : THERE_NO;
}

static void way_back(struct planner *p, const struct planned_file *f, const char *config,
		     const char *update)
{
	const enum there menu = has_recovery(p, config);

	if (menu != THERE_NO)
		plan_way_boot(
			p,
			"in GRUB's menu (hold Shift or press Esc at power-on if it is hidden) choose \"Advanced options\", then the entry with \"(recovery mode)\"%s, which does not have these parameters",
			menu == THERE_UNKNOWN ? ", if there is one" : "");
	plan_way_boot(
		p,
		"press e on the entry, delete %s from the line that starts with linux, and press "
		"Ctrl-x, for that boot only",
		words_in_row(p, f));
	if (f->there)
		plan_way_without(p, "delete %s from /%s and run `%s`", plan_words(p), f->path,
				 update);
	else
		plan_way_without(p, "`rm /%s && %s`", f->path, update);
}

/* ---- grub.cfg ---- */

/* Where a link leads, so that the link stays and its target is replaced. */
static const char *resolve(struct planner *p, const char *path)
{
	enum { LINKS_MAX = 8 };
	char clean[PATH_MAX + 3];

	for (int i = 0; i < LINKS_MAX; i++) {
		AUTO_FREE char *target = NULL;
		const char *slash = strrchr(path, '/');
		const char *next;

		if (source_read_link(p->s, &target, "%s", path) < 0)
			break;
		next = *target == '/' || !slash
			       ? target
			       : arena_printf(p->a, "%.*s/%s", (int)(slash - path), path, target);
		if (strlen(next) >= PATH_MAX)
			break;
		path_clean(next, clean);
		path = arena_strdup(p->a, clean);
	}
	return path;
}

static void add_generated(struct planner *p, const struct grub *g, const struct bytes *old,
			  const char *expect, const struct purpose *purpose)
{
	const char *const *argv = plan_argv(p, g->mkconfig, "-o", STEP_OUTPUT, NULL);
	struct step *s = plan_step(p, PHASE_BOOT, STEP_GENERATED, purpose, "regenerate /%s with %s",
				   g->config, g->mkconfig);

	s->target = g->config;
	s->old = *old;
	if (expect)
		s->argv = argv;
	else
		s->undo_argv = argv;
	if (plan_has_program(p, g->check) != THERE_NO)
		s->check_argv = plan_argv(p, g->check, STEP_OUTPUT, NULL);
	s->expect = expect;
	s->deadline_s = 300;
}

static const struct purpose serves = {
	.why = TEXTS("the boot menu is generated from the changed files")};

static void add_bracket(struct planner *p, const struct grub *g, const struct planned_file *f)
{
	/* Where the file stays as it is, it is this step that makes the change. */
	struct purpose purpose = plan_file_changes(f) ? serves : f->purpose;
	struct bytes old = {0};
	AUTO_FREE char *data = NULL;

	if (source_read(p->s, &data, &old.size, "%s", g->config) == 0) {
		char *copy = arena_alloc(p->a, old.size + 1, 1);

		memcpy(copy, data, old.size);
		old.data = copy;
	}
	add_generated(p, g, &old, NULL, &serves);
	plan_file_step(p, f);
	purpose.reboot = true;
	add_generated(p, g, &old, words_in_row(p, f), &purpose);
}

static void add_image_tool(struct planner *p, const struct grub *g, const struct planned_file *f)
{
	const struct tool tool = {
		.argv = plan_argv(p, g->mkconfig, "-o", arena_printf(p->a, "/%s", g->config), NULL),
	};

	plan_file_step(p, f);
	plan_tool(p, PHASE_BOOT, &tool, &f->purpose, "regenerate /%s", g->config);
}

void plan_grub_drop_in(struct planner *p)
{
	enum there there;
	const char *text;
	struct grub g = *find_grub(p, &text, &there);
	struct planned_file *f;
	struct made_by by;

	g.config = resolve(p, g.config);
	if (!p->request->image && plan_exists(p, "%s", g.config) == THERE_NO) {
		plan_note(
			p,
			"/%s does not exist: if /boot is not mounted, mount it and run onehop fix "
			"again",
			g.config);
		plan_boot_by_hand(p);
		return;
	}
	by = made_by(p, &g);
	if (!write_drop_in(p, &by, &f))
		return;
	if (p->request->image)
		add_image_tool(p, &g, f);
	else
		add_bracket(p, &g, f);
	plan_words_want(p);
	way_back(p, f, g.config, by.update);
}

/* ---- Proxmox with GRUB on several EFI partitions, each with a grub.cfg of its own ---- */

void plan_grub_refresh(struct planner *p)
{
	const char *const *argv = plan_argv(p, "proxmox-boot-tool", "refresh", NULL);
	const struct tool undo = {.undo_argv = argv, .deadline_s = 300};
	const struct tool apply = {.argv = argv, .deadline_s = 300};
	const struct made_by by = made_by(p, &grubs[0]);
	struct purpose purpose = serves;
	struct planned_file *f;

	if (!write_drop_in(p, &by, &f))
		return;
	plan_tool(p, PHASE_BOOT, &undo, &purpose, "refresh the boot partitions");
	plan_file_step(p, f);
	purpose.reboot = true;
	plan_tool(p, PHASE_BOOT, &apply, &purpose, "refresh the boot partitions");
	plan_words_want(p);
	way_back(p, f, grubs[0].config, by.update);
}
