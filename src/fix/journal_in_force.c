/* SPDX-License-Identifier: Apache-2.0 */
/* in-force: what `onehop check` looks for, of all fixes together. */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fix/journal_impl.h"

#include <string.h>

#define IN_FORCE JOURNAL_FOLDER "/in-force"

/* "acs-now": a register that nothing writes again after a reboot. */
static const char acs[] = "acs", acs_now[] = "acs-now";

/* ---- lines ---- */

struct line {
	const struct journal_entry *entry;
	const char *kind, *value;
};

struct lines {
	struct line *items;
	size_t n;
};

static void lines_done(struct lines *l)
{
	free(l->items);
}

static void add_line(struct lines *l, const struct journal_entry *e, const char *kind,
		     const char *value)
{
	l->items = xrealloc(l->items, l->n + 1, sizeof(*l->items));
	l->items[l->n++] = (struct line){e, kind, value};
}

/* ---- what a line is about ---- */

/* Parameters that set the same in different words; they are compared without the value. */
static const struct {
	const char *key, *is;
} same_keys[] = {
	{"intel_iommu=", "iommu="},
	{"amd_iommu=", "iommu="},
};

/* Up to its '='; the first word if there is none. Boot loaders' quotes do not count. */
static const char *add_name(const char *s, struct strbuf *ret)
{
	const char *equals = strchr(s, '='), *end = equals ? equals + 1 : s + strcspn(s, " ");

	for (; s < end; s++)
		if (*s != '"')
			strbuf_putc(ret, *s);
	return end;
}

/* "iommu=", "pci=disable_acs_redir=", "nvidia NVreg_EnableResizableBar=", "0000:22:00.0". */
static void key_of(const struct line *l, struct strbuf *ret)
{
	AUTO_STRBUF struct strbuf own = {0};
	const char *rest = add_name(l->value, &own), *key;

	if (strcmp(strbuf_str(&own), "pci=") == 0) /* each of its words is a parameter by itself */
		add_name(rest, &own);
	key = strbuf_str(&own);
	for (size_t i = 0; i < sizeof(same_keys) / sizeof(*same_keys); i++)
		if (strcmp(key, same_keys[i].key) == 0)
			key = same_keys[i].is;
	strbuf_puts(ret, key);
}

static bool is_acs(const struct line *l)
{
	return strcmp(l->kind, acs) == 0 || strcmp(l->kind, acs_now) == 0;
}

static bool same_key(const struct line *a, const struct line *b)
{
	AUTO_STRBUF struct strbuf x = {0}, y = {0};

	if (strcmp(a->kind, b->kind) != 0 && !(is_acs(a) && is_acs(b)))
		return false;
	key_of(a, &x);
	key_of(b, &y);
	return strcmp(strbuf_str(&x), strbuf_str(&y)) == 0;
}

/* By a later fix, which set the same otherwise, for at least as long. */
static bool is_overruled(const struct lines *l, size_t i)
{
	const struct line *line = &l->items[i];

	for (size_t k = i + 1; k < l->n; k++)
		if (l->items[k].entry != line->entry && same_key(line, &l->items[k]) &&
		    (strcmp(line->kind, acs) != 0 || strcmp(l->items[k].kind, acs) == 0))
			return true;
	return false;
}

/* ---- all of them ---- */

static bool is_listed(const struct lines *l, size_t first, const struct line *line)
{
	for (size_t i = first; i < l->n; i++)
		if (same_key(&l->items[i], line))
			return true;
	return false;
}

/* Of a fix on trial the parameters are for one boot, and with them what they do; NULL: no line. */
static const char *kind_now(const struct journal_entry *e, const char *kind)
{
	if (e->state != FIX_ON_TRIAL)
		return kind;
	return strcmp(kind, acs) == 0                  ? NULL
	       : strcmp(kind, "kernel-parameter") == 0 ? "trial"
						       : kind;
}

static void add_entry(struct lines *l, const struct journal_entry *e)
{
	const struct plan *p = e->plan;
	size_t first = l->n;

	for (size_t i = 0; i < p->wanted_n; i++) {
		const char *kind = kind_now(e, p->wanted[i].kind);

		if (kind)
			add_line(l, e, kind, p->wanted[i].value);
	}
	for (size_t i = 0; i < p->step_n; i++) {
		const struct step *s = &p->steps[i];
		struct line line = {e, s->again_at_boot ? acs : acs_now, NULL};

		if (s->kind != STEP_REGISTER || e->marks[i] != MARK_DONE ||
		    strcmp(s->at, "ACS+6") != 0)
			continue;
		line.value = arena_printf(p->arena, "%s %04x", s->target, s->value.new);
		if (!is_listed(l, first, &line))
			add_line(l, e, line.kind, line.value);
	}
}

static void print_lines(const struct lines *l, struct strbuf *out)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct line *line = &l->items[i];
		const char *boot_id = *line->entry->boot_id ? line->entry->boot_id : "-";

		if (!is_overruled(l, i))
			strbuf_printf(out, "fix %u %s %s %s\n", line->entry->number, boot_id,
				      line->kind, line->value);
	}
}

/* What is neither in force nor gone. */
static void print_open(const struct journal_entry *e, const char *boot_id, struct strbuf *out)
{
	if (e->state == FIX_APPLYING || e->state == FIX_UNDOING)
		strbuf_printf(out, "fix %u %s unfinished %s\n", e->number,
			      *e->boot_id ? e->boot_id : "-", fix_state_word(e->state));
	else if (journal_undo_is_pending(e, boot_id))
		strbuf_printf(out, "fix %u %s undone reboot\n", e->number, boot_id);
}

/* Of a fix that cannot be read nothing is known but the lines that are there. */
static void keep_lines(const struct journal_entry *e, const char *now, struct strbuf *out)
{
	AUTO_FREE char *start = xprintf("fix %u ", e->number);
	const char *line = NULL;
	size_t n;

	while (now && text_next_line(&line, &n, now))
		if (text_starts_with(line, start))
			strbuf_printf(out, "%.*s\n", (int)n, line);
}

static int in_force_text(struct fix_host *h, const char *now, struct strbuf *out)
{
	CLEANUP(lines_done) struct lines lines = {0};
	struct journal_entry *entries;
	char boot_id[40];
	size_t n;
	int r = journal_list(h, &entries, &n);

	if (r < 0)
		return r;
	journal_boot_id(h, boot_id);
	for (size_t i = 0; i < n; i++)
		if (!entries[i].damage &&
		    (entries[i].state == FIX_APPLIED || entries[i].state == FIX_ON_TRIAL))
			add_entry(&lines, &entries[i]);
	print_lines(&lines, out);
	for (size_t i = 0; i < n; i++)
		if (!entries[i].damage)
			print_open(&entries[i], boot_id, out);
	for (size_t i = 0; i < n; i++)
		if (entries[i].damage && !journal_is_over(&entries[i]))
			keep_lines(&entries[i], now, out);
	journal_free(entries, n);
	return 0;
}

int journal_write_in_force(struct fix_host *h)
{
	AUTO_STRBUF struct strbuf text = {0};
	AUTO_FREE char *now = NULL;
	size_t size = 0;
	int r = host_read(h, IN_FORCE, &now, &size);

	if (r < 0 && r != -ENOENT)
		return r;
	r = in_force_text(h, now, &text);
	if (r < 0)
		return r;
	if (size == text.len && (size == 0 || memcmp(now, text.text, size) == 0))
		return 0;
	return host_replace(h, IN_FORCE, strbuf_str(&text), text.len, 0644);
}
