/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's command line: what runs, what the boot loader's files will say, what is against what. */
#include "fix/boot_entries.h"
#include "fix/make_plan_impl.h"

#include <string.h>

/* ---- boot loaders ---- */

bool plan_is_grub(struct planner *p)
{
	return line_is_grub(&p->line);
}

bool plan_is_systemd_boot(struct planner *p)
{
	return line_is_systemd_boot(&p->line);
}

bool plan_is_ostree(struct planner *p)
{
	return line_keeper(&p->line) == KEEPER_OSTREE;
}

/* ---- words and where they stand ---- */

struct place {
	struct planner *p;
	word_visitor *visit;
	void *context;
};

static bool is_gap(char c)
{
	return c == ' ' || c == '\t' || c == '"' || c == '\'' || c == '\n';
}

static void visit_line(const struct place *at, const char *line, size_t n, const char *file,
		       unsigned number)
{
	char word[2048];

	for (size_t i = 0; i < n;) {
		size_t start = i;

		while (i < n && !is_gap(line[i]))
			i++;
		if (i > start && i - start < sizeof(word)) {
			text_copy(word, sizeof(word), line + start, i - start);
			at->visit(at->context, word, file, number);
			if (strcmp(word, "--") == 0)
				return; /* the rest is for the first program */
		}
		i += i == start || i < n;
	}
}

/* Lines that start with `prefix`, or all; none that are comments. */
static void visit_text(const struct place *at, const char *text, const char *prefix,
		       const char *file)
{
	const char *line = NULL;
	unsigned number = 0;
	size_t n;

	while (text && text_next_line(&line, &n, text)) {
		size_t blank = strspn(line, " \t");
		const size_t name = blank + strcspn(line + blank, "= \t\n");
		const size_t start = prefix && name < n && line[name] == '=' ? name + 1 : 0;

		number++;
		if (blank < n && line[blank] != '#' &&
		    (!prefix || text_starts_with(line + blank, prefix)))
			visit_line(at, line + start, n - start, file, number);
	}
}

static void visit_file(const struct place *at, const char *path, const char *prefix)
{
	enum there there;
	const char *text = plan_read(at->p, &there, path);

	visit_text(at, text, prefix, arena_printf(at->p->a, "/%s", path));
}

void plan_each_grub_file(struct planner *p, void (*visit)(void *context, const char *path),
			 void *context)
{
	char **names = NULL;
	bool listed_ours = false;
	size_t n = 0;

	visit(context, "etc/default/grub");
	if (source_list(p->s, &names, &n, "etc/default/grub.d") == 0)
		for (size_t i = 0; i < n; i++) {
			const char *path = arena_printf(p->a, "etc/default/grub.d/%s", names[i]);

			listed_ours |= strcmp(path, FILE_GRUB) == 0;
			if (text_ends_with(path, ".cfg"))
				visit(context, path);
		}
	source_free_names(names, n);
	if (!listed_ours)
		visit(context, FILE_GRUB);
}

static void visit_grub_file(void *context, const char *path)
{
	visit_file(context, path, "GRUB_CMDLINE_LINUX");
}

static void visit_entries(const struct place *at)
{
	const struct boot_entries *b = plan_boot_entries(at->p);

	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].kind == ENTRY_OURS)
			visit_text(at, b->items[i].text, "options",
				   arena_printf(at->p->a, "/%s", b->items[i].path));
}

void plan_each_word(struct planner *p, word_visitor *visit, void *context)
{
	struct place at = {p, visit, context};

	if (plan_is_grub(p))
		plan_each_grub_file(p, visit_grub_file, &at);
	if (plan_is_systemd_boot(p)) {
		visit_entries(&at);
		visit_file(&at, FILE_KERNEL_LINE, NULL);
	}
	if (!p->request->image && fact_known(p->m->kernel.cmdline))
		visit_text(&at, p->m->kernel.cmdline.value, NULL, "/proc/cmdline");
}

void plan_each_word_of(struct planner *p, const char *text, word_visitor *visit, void *context)
{
	const struct place at = {p, visit, context};

	visit_text(&at, text, NULL, NULL);
}

struct dashes {
	const char *file;
	unsigned line;
};

static void find_dashes(void *context, const char *word, const char *file, unsigned line)
{
	struct dashes *d = context;

	if (!d->file && strcmp(word, "--") == 0 && strcmp(file, "/proc/cmdline") != 0)
		*d = (struct dashes){file, line};
}

bool plan_boot_has_dashes(struct planner *p, const char **ret_file, unsigned *ret_line)
{
	struct dashes d = {0};

	plan_each_word(p, find_dashes, &d);
	*ret_file = d.file;
	*ret_line = d.line;
	return d.file;
}

bool plan_has_boot_files(struct planner *p)
{
	const char *path = plan_is_grub(p)           ? "etc/default/grub"
			   : plan_is_systemd_boot(p) ? FILE_KERNEL_LINE
						     : NULL;
	enum there there;

	if (plan_loader_has_entries(p))
		return true;

	return path && plan_read(p, &there, path);
}

/* ---- words that are against each other ---- */

#define LAST_COUNTS "the last one on the command line counts, and onehop's comes last"

static const struct {
	const char *word, *key, *item, *says;
	bool against;  /* false: worth knowing, and in nobody's way */
	bool stronger; /* counts wherever it stands */
} conflicts[] = {
	{"iommu=pt", "iommu", "off", "turns the IOMMU off, so iommu=pt has no effect", true, true},
	{"iommu=pt", "intel_iommu", "off", "turns Intel's IOMMU off, so iommu=pt has no effect",
	 true, true},
	{"iommu=pt", "amd_iommu", "off", "turns AMD's IOMMU off, so iommu=pt has no effect", true,
	 true},
	{"iommu=pt", "iommu.passthrough", "0", "asks for translation; " LAST_COUNTS, true, false},
	{"iommu=pt", "iommu", "nopt", "asks for translation; " LAST_COUNTS, true, false},
	{"iommu=pt", "intel_iommu", "on",
	 "fits iommu=pt: it turns the IOMMU on, and iommu=pt sets it to pass-through", false,
	 false},
	{"iommu=off", "iommu", "pt", "has no effect with iommu=off", true, false},
	{"iommu=off", "iommu", "force", "asks for the IOMMU; " LAST_COUNTS, true, false},
	{"iommu=off", "intel_iommu", "on", "has no effect with iommu=off", true, false},
	{"iommu=off", "iommu.passthrough", "1", "has no effect with iommu=off", true, false},
	{"intel_iommu=off", "intel_iommu", "on", "turns it on; " LAST_COUNTS, true, false},
	{"intel_iommu=off", "iommu", "pt", "has no effect without an IOMMU", true, false},
	{"amd_iommu=off", "amd_iommu", "on", "turns it on; " LAST_COUNTS, true, false},
	{"amd_iommu=off", "iommu", "pt", "has no effect without an IOMMU", true, false},
};

/* "iommu=force,pt" has the item "pt" of "iommu". */
static bool has_item(const char *word, const char *key, const char *item)
{
	size_t n = strlen(key);

	return strncmp(word, key, n) == 0 && word[n] == '=' &&
	       text_list_has(word + n + 1, ",", item, strlen(item));
}

static int find_conflict(const char *word, const char *other)
{
	for (size_t i = 0; i < ARRAY_LEN(conflicts); i++)
		if (strcmp(conflicts[i].word, word) == 0 &&
		    has_item(other, conflicts[i].key, conflicts[i].item))
			return (int)i;
	return -1;
}

bool plan_words_conflict(const char *word, const char *other)
{
	int i = find_conflict(word, other);

	return i >= 0 && conflicts[i].against;
}

struct found {
	const char *word, *file;
	unsigned line;
};

struct finds {
	struct arena *a;
	struct found *items;
	size_t n;
};

static void find_word(void *context, const char *word, const char *file, unsigned line)
{
	struct finds *f = context;

	*ARENA_PUSH(f->a, f->items, f->n) =
		(struct found){arena_strdup(f->a, word), arena_strdup(f->a, file), line};
}

/* Of another maker's IOMMU: this processor has none. */
static bool is_foreign(struct planner *p, const char *word)
{
	const struct fact_int vendor = p->m->cpu.vendor;

	return (fact_is(vendor, CPU_AMD) && text_starts_with(word, "intel_iommu=")) ||
	       (fact_is(vendor, CPU_INTEL) && text_starts_with(word, "amd_iommu="));
}

static bool switches_intel(const char *word)
{
	return has_item(word, "intel_iommu", "on") || has_item(word, "intel_iommu", "off");
}

/* On one line the kernel takes the last "on" or "off" of intel_iommu=; the other parameters have no way back. */
static bool is_overridden(const struct finds *f, size_t i)
{
	const struct found *x = &f->items[i];

	for (size_t k = i + 1; k < f->n && switches_intel(x->word); k++)
		if (f->items[k].line == x->line && strcmp(f->items[k].file, x->file) == 0 &&
		    switches_intel(f->items[k].word))
			return true;
	return false;
}

static void note_conflict(struct planner *p, const char *own, struct texts rules,
			  const struct found *x)
{
	int i = find_conflict(own, x->word);

	if (i < 0 || strcmp(x->file, "/" FILE_GRUB) == 0 || is_foreign(p, x->word))
		return;
	if (strcmp(x->file, "/proc/cmdline") == 0)
		plan_note(p, "the running kernel has %s, which %s", x->word, conflicts[i].says);
	else
		plan_note(p, "%s:%u has %s, which %s", x->file, x->line, x->word,
			  conflicts[i].says);
	if (conflicts[i].stronger && strcmp(x->file, "/proc/cmdline") != 0)
		plan_manual(p, rules, arena_printf(p->a, "remove %s", x->word),
			    "delete %s in %s, line %u", x->word, x->file, x->line);
}

void plan_word_conflicts(struct planner *p, const char *word, struct texts rules)
{
	struct finds f = {p->a, NULL, 0};

	plan_each_word(p, find_word, &f);
	for (size_t i = 0; i < f.n; i++)
		if (!is_overridden(&f, i))
			note_conflict(p, word, rules, &f.items[i]);
}

/* ---- what runs ---- */

struct running_search {
	const char *word;
	bool found;
};

/* The word is there, and nothing that counts more. */
static void look_at_running(void *context, const char *word, const char *file, unsigned line)
{
	struct running_search *s = context;

	(void)file;
	(void)line;
	if (strcmp(word, s->word) == 0)
		s->found = true;
	else if (plan_words_conflict(s->word, word) &&
		 !conflicts[find_conflict(s->word, word)].stronger)
		s->found = false; /* a stronger one is not helped by saying this once more */
}

static void look_for_word(void *context, const char *word, const char *file, unsigned line)
{
	struct running_search *s = context;

	(void)file;
	(void)line;
	s->found |= strcmp(word, s->word) == 0;
}

bool plan_word_counts(struct planner *p, const char *line, const char *word)
{
	struct running_search s = {.word = word};

	plan_each_word_of(p, line, look_at_running, &s);
	return s.found;
}

bool plan_word_runs(struct planner *p, const char *word)
{
	return !p->request->image && fact_known(p->m->kernel.cmdline) &&
	       plan_word_counts(p, p->m->kernel.cmdline.value, word);
}

bool plan_text_has_word(struct planner *p, const char *text, const char *word)
{
	struct running_search s = {.word = word};

	plan_each_word_of(p, text, look_for_word, &s);
	return s.found;
}
