/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `onehop fleet` prints: the verdict, then each group of equal hardware with what differs in
 * it.
 */
#include "report/report_fleet.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "fleet/fleet.h"
#include "fleet/host_names.h"
#include "report/report_json_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines of one kind before the rest is only counted; -v prints all. */
#define MOST_LINES 20
/* Slots that are named. */
#define MOST_SLOTS 3
/*
 * A page has this many lines in all, most of them folded: 1,000 hosts that all differ fit into 2
 * MB.
 */
#define MOST_PAGE_LINES 4000
/* Above so many hosts a share is counted, not named; -v names all. */
#define MOST_NAMES 8

struct writer {
	struct document *out;
	bool verbose;
	size_t page_lines; /* that the page may still have */
	unsigned indent;   /* of what is said of a group */
};

/* ---- names ---- */

static char *folded(const char *const *hosts, size_t n)
{
	AUTO_FREE const char **copy = xcalloc(n + 1, sizeof(*copy));
	AUTO_STRBUF struct strbuf b = {0};

	memcpy(copy, hosts, n * sizeof(*copy));
	host_names_fold(copy, n, &b);
	return xstrdup(strbuf_str(&b));
}

/* "60 hosts", or their names where they are few. */
static char *few_names(const struct writer *w, const char *const *hosts, size_t n)
{
	return n <= MOST_NAMES || w->verbose ? folded(hosts, n) : xprintf("%zu hosts", n);
}

/* Whether a slot is the name of a thing, whose row is only its kind. */
static bool slot_is_name(const struct fact_row *row)
{
	return row->place == PLACE_RULE || row->place == PLACE_WORD || row->place == PLACE_NCCL;
}

/*
 * "ACSCtl of 0000:41:01.0 (bridge 1 above GPU3)", "kernel parameter iommu", "verdict of GPU0 to
 * GPU1 and 11 others"
 */
static void add_what(struct strbuf *b, const struct fact_row *row, const char *const *slots,
		     size_t n, const char *address)
{
	strbuf_puts(b, row->title);
	if (slot_is_name(row))
		strbuf_printf(b, " %s", slots[0]);
	else if (n == 1 && address && *address)
		strbuf_printf(b, " of %s (%s)", address, slots[0]);
	else if (*slots[0])
		for (size_t i = 0; i < n && i < MOST_SLOTS; i++)
			strbuf_printf(b, "%s%s", i ? ", " : " of ", slots[i]);
	if (n > MOST_SLOTS)
		strbuf_printf(b, " and %zu more", n - MOST_SLOTS);
}

static const char *shown(const char *value)
{
	return *value ? value : "empty";
}

/* ---- facts ---- */

static const enum style rank_styles[RANK_N] = {
	[RANK_CITED] = STYLE_BAD,    [RANK_RULE] = STYLE_BAD,   [RANK_PAIR] = STYLE_BAD,
	[RANK_VERSION] = STYLE_WARN, [RANK_OTHER] = STYLE_WARN,
};

/* What shows it on that host, and what repairs it. */
static void write_advice(struct writer *w, const struct fleet_outlier *o)
{
	const struct rule *rule = o->rule ? rule_find(o->rule) : NULL;

	if (rule && rule->propose)
		document_paragraph(w->out, STYLE_DIM, w->indent + 2,
				   "fix, on that host: onehop fix %s", rule->id);
	else if (rule)
		document_paragraph(w->out, STYLE_DIM, w->indent + 2,
				   "why, and what to do: onehop check "
				   "--explain %s",
				   rule->id);
	else if (o->row->place == PLACE_PORT && *o->address)
		document_paragraph(w->out, STYLE_DIM, w->indent + 2, "shown by: lspci -vvv -s %s",
				   o->address);
}

static void write_outlier(struct writer *w, const struct fleet_outlier *o)
{
	AUTO_FREE char *hosts = folded(o->hosts, o->host_n);
	AUTO_STRBUF struct strbuf what = {0};

	add_what(&what, o->row, o->slots, o->slot_n, o->host_n == 1 ? o->address : NULL);
	/* Behind the names of many, nobody would find the fact. */
	if (o->host_n > MOST_NAMES)
		document_paragraph(w->out, rank_styles[o->rank], w->indent,
				   "%s is %s on %zu hosts; %zu others %s: %s", strbuf_str(&what),
				   shown(o->value), o->host_n, o->usual_n, shown(o->usual), hosts);
	else
		document_paragraph(w->out, rank_styles[o->rank], w->indent,
				   "%s: %s is %s; %zu others %s", hosts, strbuf_str(&what),
				   shown(o->value), o->usual_n, shown(o->usual));
	write_advice(w, o);
}

static void write_split(struct writer *w, const struct fleet_split *s)
{
	AUTO_STRBUF struct strbuf what = {0}, values = {0};
	const char *slots[] = {s->slot};

	add_what(&what, s->row, slots, 1, NULL);
	if (s->more)
		strbuf_printf(&what, " and %zu more", s->more);
	for (size_t i = 0; i < s->share_n; i++) {
		AUTO_FREE char *names = few_names(w, s->shares[i].hosts, s->shares[i].host_n);

		strbuf_printf(&values, "%s%s on %s", i ? "; " : "", shown(s->shares[i].value),
			      names);
	}
	document_paragraph(w->out, STYLE_PLAIN, w->indent, "%s: %s", strbuf_str(&what),
			   strbuf_str(&values));
}

/* ---- figures ---- */

static void add_metrics(struct strbuf *b, const struct fleet_slow *s)
{
	for (size_t i = 0; i < s->figure_n; i++)
		strbuf_printf(b, "%s%s", i ? ", " : "", s->figures[i].what);
}

/* The part, and what the pattern means. */
static void add_cause(struct strbuf *b, const struct fleet_slow *s)
{
	switch (s->cause) {
	case CAUSE_HOST:
		strbuf_puts(b, "all figures");
		break;
	case CAUSE_GPU:
		strbuf_printf(b, "all pairs of GPU%d", s->a);
		break;
	case CAUSE_GPU_FROM:
		strbuf_printf(b, "all that GPU%d starts", s->a);
		break;
	case CAUSE_GPU_TO:
		strbuf_printf(b, "all that reaches GPU%d", s->a);
		break;
	case CAUSE_PAIR:
		strbuf_printf(b, "GPU%d and GPU%d, both ways", s->a, s->b);
		break;
	case CAUSE_WAY:
		strbuf_printf(b, "GPU%d to GPU%d", s->a, s->b);
		break;
	case CAUSE_FAILED:
	case CAUSE_N:
		break;
	}
}

static const char *const cause_means[CAUSE_N] = {
	[CAUSE_HOST] = "clocks, power or a setting of the host",
	[CAUSE_GPU] = "the GPU or its link",
	[CAUSE_GPU_FROM] = "the GPU, or one direction of its link",
	[CAUSE_GPU_TO] = "the GPU's memory, or one direction of its link",
	[CAUSE_PAIR] = "the path between them",
	[CAUSE_WAY] = "one direction of the path",
};

static const char *meaning_of(enum figure_cause cause)
{
	return cause < CAUSE_N ? cause_means[cause] : "unknown";
}

/* -1: none. */
static void add_gpus(struct strbuf *out, int from, int to)
{
	if (from >= 0 && to >= 0)
		strbuf_printf(out, " of GPU%d to GPU%d", from, to);
	else if (from >= 0 || to >= 0)
		strbuf_printf(out, " of GPU%d", from >= 0 ? from : to);
}

static void write_failure(struct writer *w, const struct fleet_slow *s)
{
	AUTO_STRBUF struct strbuf b = {0};

	add_metrics(&b, s);
	add_gpus(&b, s->a, s->b);
	document_paragraph(w->out, STYLE_BAD, w->indent, "%s: a check of data failed: %s%s%s",
			   s->host, strbuf_str(&b), s->kind && *s->kind ? ": " : "",
			   s->kind ? s->kind : "");
}

static void write_slow(struct writer *w, const struct fleet_slow *s)
{
	AUTO_STRBUF struct strbuf b = {0};

	if (s->cause == CAUSE_FAILED) {
		write_failure(w, s);
		return;
	}
	add_cause(&b, s);
	strbuf_printf(&b, ": %.0f %% worse than ", -s->change * 100);
	if (s->others)
		strbuf_printf(&b, "on %zu %s", s->others,
			      text_plural(s->others, "other", "others"));
	else
		strbuf_puts(&b, "the path should give");
	if (s->value > 0)
		strbuf_printf(&b, " (%.4g %s instead of %.4g)", s->value, s->unit, s->usual);
	strbuf_puts(&b, " in ");
	add_metrics(&b, s);
	document_paragraph(w->out, STYLE_BAD, w->indent, "%s: %s: %s", s->host, strbuf_str(&b),
			   meaning_of(s->cause));
}

static void write_figure_split(struct writer *w, const struct fleet_figure_split *s)
{
	AUTO_FREE char *better = few_names(w, s->hosts[0], s->host_n[0]);
	AUTO_FREE char *worse = few_names(w, s->hosts[1], s->host_n[1]);
	AUTO_STRBUF struct strbuf b = {0};

	strbuf_puts(&b, s->what);
	add_gpus(&b, s->initiator, s->target);
	if (s->more)
		strbuf_printf(&b, " and %zu more", s->more);
	document_paragraph(w->out, STYLE_PLAIN, w->indent, "%s: %.4g %s on %s; %.4g on %s",
			   strbuf_str(&b), s->values[0], s->unit, better, s->values[1], worse);
}

/* ---- groups ---- */

/* How many of n are written, and how many after them in a fold of a page. */
static size_t shown_of(const struct writer *w, size_t n)
{
	return w->verbose || n <= MOST_LINES ? n : MOST_LINES;
}

static size_t folded_of(struct writer *w, size_t n)
{
	size_t folded = document_is_page(w->out) ? n - shown_of(w, n) : 0;

	folded = folded < w->page_lines ? folded : w->page_lines;
	w->page_lines -= folded;
	return folded;
}

static void write_rest(const struct writer *w, size_t n, const char *word)
{
	document_begin(w->out, GROUP_TEXT, STYLE_PLAIN, NULL, "%s", "");
	document_paragraph(w->out, STYLE_DIM, w->indent, "%zu more %s: -v prints them", n, word);
	document_end(w->out);
}

/* Writes at most so many of n, and how many are left; a page has these in a fold. */
#define WRITE_SOME(w, write, items, n, one, many)                                                  \
	do {                                                                                       \
		size_t i_ = 0, most_ = shown_of(w, n), fold_ = folded_of(w, n);                    \
		for (; i_ < most_; i_++)                                                           \
			write(w, &(items)[i_]);                                                    \
		if (fold_)                                                                         \
			document_begin((w)->out, GROUP_FOLD, STYLE_PLAIN, NULL, "%zu more %s",     \
				       fold_, text_plural(fold_, one, many));                      \
		for (; i_ < most_ + fold_; i_++)                                                   \
			write(w, &(items)[i_]);                                                    \
		if (fold_)                                                                         \
			document_end((w)->out);                                                    \
		if (most_ < (n))                                                                   \
			write_rest(w, (n)-most_, text_plural((n)-most_, one, many));               \
	} while (0)

static void write_blind(struct writer *w, const struct fleet_blind *b)
{
	AUTO_FREE char *hosts = folded(b->hosts, b->host_n);

	document_paragraph(w->out, STYLE_WARN, w->indent,
			   "%s: up to %zu facts are unknown that most others have%s", hosts,
			   b->facts, b->no_root ? ": onehop ran without root" : "");
}

/* What was found in it. */
static void write_differences(struct writer *w, const struct fleet_group *g)
{
	WRITE_SOME(w, write_slow, g->slow, g->slow_n, "line", "lines");
	WRITE_SOME(w, write_outlier, g->outliers, g->outlier_n, "difference", "differences");
	WRITE_SOME(w, write_blind, g->blind, g->blind_n, "line", "lines");
	if (!g->split_n && !g->figure_split_n)
		return;
	document_blank(w->out);
	document_paragraph(w->out, STYLE_STRONG, w->indent, "Without a majority:");
	WRITE_SOME(w, write_figure_split, g->figure_splits, g->figure_split_n, "figure", "figures");
	WRITE_SOME(w, write_split, g->splits, g->split_n, "fact", "facts");
}

static char *group_names(const struct fleet_group *g)
{
	AUTO_FREE const char **names = xcalloc(g->host_n + 1, sizeof(*names));

	for (size_t i = 0; i < g->host_n; i++)
		names[i] = g->hosts[i]->name;
	return folded(names, g->host_n);
}

/* A heading of text and of a page, whose anchors are numbers in the order of the groups. */
static void write_heading(struct writer *w, size_t number, const char *text)
{
	AUTO_FREE char *anchor = xprintf("group-%zu", number);

	document_begin(w->out, GROUP_TEXT, STYLE_PLAIN, NULL, "%s", "");
	document_heading(w->out, "%s", text);
	document_end(w->out);
	document_section(w->out, anchor, "%s", text);
}

static void write_group(struct writer *w, const struct fleet_group *g, size_t number)
{
	AUTO_FREE char *hosts = group_names(g);
	AUTO_FREE char *head = xprintf("%zu %s: %s", g->host_n,
				       text_plural(g->host_n, "host", "hosts"), g->hardware->name);

	write_heading(w, number, head);
	document_paragraph(w->out, STYLE_DIM, w->indent, "%s", hosts);
	write_differences(w, g);
	document_blank(w->out);
}

/*
 * "1 NVIDIA H200 is missing (7; 15 others have 8)". False: they differ in more than one kind of
 * device.
 */
static bool put_device_difference(struct strbuf *b, const struct fleet_group *g)
{
	const struct fleet_devices *is = g->hardware->devices, *own = NULL, *usual = NULL;
	const size_t others = g->like->host_n;

	for (size_t i = 0; i < g->hardware->device_n; i++) {
		if (is[i].n == g->like->hardware->devices[i].n)
			continue;
		if (own)
			return false;
		own = &is[i];
		usual = &g->like->hardware->devices[i];
	}
	if (!own)
		return false;
	if (own->n < usual->n)
		strbuf_printf(b, "%u %s %s missing", usual->n - own->n, own->name,
			      usual->n - own->n > 1 ? "are" : "is");
	else
		strbuf_printf(b, "%u %s too many", own->n - usual->n, own->name);
	strbuf_printf(b, " (%u; %zu %s %u)", own->n, others,
		      others > 1 ? "others have" : "other has", usual->n);
	return true;
}

static void write_like(struct writer *w, const struct fleet_group *g, const char *hosts)
{
	AUTO_STRBUF struct strbuf difference = {0};

	if (put_device_difference(&difference, g))
		document_paragraph(w->out, STYLE_BAD, w->indent, "%s: %s", hosts,
				   strbuf_str(&difference));
	else
		document_paragraph(w->out, STYLE_BAD, w->indent,
				   "%s: the number of devices differs; %zu others have %s", hosts,
				   g->like->host_n, g->like->hardware->name);
}

/* One of a list, because such groups are many where each host is its own. */
static void write_small_group(struct writer *w, const struct fleet_group *g)
{
	AUTO_FREE char *hosts = group_names(g);

	document_paragraph(w->out, STYLE_PLAIN, w->indent, "%s: %s", hosts, g->hardware->name);
	w->indent += 2;
	if (g->like)
		write_like(w, g, hosts);
	write_differences(w, g);
	w->indent -= 2;
}

/* Groups come the largest first. */
static void write_small_groups(struct writer *w, const struct fleet *f, size_t first)
{
	AUTO_FREE char *head = xprintf("Fewer than %d hosts with the same hardware", FLEET_ENOUGH);

	write_heading(w, first + 1, head);
	document_paragraph(
		w->out, STYLE_DIM, w->indent,
		"There is no majority. Figures are compared with what the path should give.");
	for (size_t i = first; i < f->group_n; i++)
		write_small_group(w, &f->groups[i]);
	document_blank(w->out);
}

/* ---- the whole ---- */

static bool is_named(const char *host, const char *const *hosts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(hosts[i], host) == 0)
			return true;
	return false;
}

static bool is_outlier(const struct fleet_group *g, const char *host)
{
	for (size_t i = 0; i < g->slow_n; i++)
		if (strcmp(g->slow[i].host, host) == 0)
			return true;
	if (g->like)
		return true;
	for (size_t i = 0; i < g->outlier_n; i++)
		if (is_named(host, g->outliers[i].hosts, g->outliers[i].host_n))
			return true;
	return false;
}

/* In front of everything else, in text and on a page. */
static void write_lead(const struct writer *w, enum style style, const char *text)
{
	document_begin(w->out, GROUP_TEXT, STYLE_PLAIN, NULL, "%s", "");
	document_paragraph(w->out, style, 0, "%s", text);
	document_end(w->out);
	document_lead(w->out, style, "%s", text);
}

static void write_verdict(struct writer *w, const struct fleet *f)
{
	AUTO_FREE const char **names = xcalloc(f->host_n + 1, sizeof(*names));
	AUTO_FREE char *hosts = NULL, *text = NULL;
	size_t n = 0;

	for (size_t i = 0; i < f->group_n; i++)
		for (size_t j = 0; j < f->groups[i].host_n; j++)
			if (is_outlier(&f->groups[i], f->groups[i].hosts[j]->name))
				names[n++] = f->groups[i].hosts[j]->name;
	if (n) {
		hosts = folded(names, n);
		text = xprintf("%zu of %zu hosts %s: %s", n, f->host_n,
			       n == 1 ? "differs from the others" : "differ from the others",
			       hosts);
		write_lead(w, STYLE_BAD, text);
	} else if (!f->group_n || f->groups[0].host_n < FLEET_ENOUGH) {
		text = xprintf("Nothing to judge by: fewer than %d hosts have the same hardware.",
			       FLEET_ENOUGH);
		write_lead(w, STYLE_WARN, text);
	} else {
		text = xprintf("No host differs from the others (%zu %s, %zu %s of hardware).",
			       f->host_n, text_plural(f->host_n, "host", "hosts"), f->group_n,
			       text_plural(f->group_n, "kind", "kinds"));
		write_lead(w, STYLE_GOOD, text);
	}
}

static void write_missing(struct writer *w, const struct fleet *f)
{
	AUTO_FREE char *hosts = f->missing_n ? folded(f->missing, f->missing_n) : NULL;

	if (hosts)
		document_paragraph(w->out, STYLE_BAD, 0, "No result from %zu %s: %s", f->missing_n,
				   text_plural(f->missing_n, "host", "hosts"), hosts);
	for (size_t i = 0; i < f->troubles.n; i++)
		document_paragraph(w->out, STYLE_WARN, 0, "Not read: %s", f->troubles.items[i]);
}

void report_fleet(struct document *out, const struct fleet *f, bool verbose)
{
	struct writer w = {out, verbose, MOST_PAGE_LINES, 2};
	size_t i = 0;

	document_title(out, "Fleet: %zu %s, %zu %s of hardware", f->host_n,
		       text_plural(f->host_n, "host", "hosts"), f->group_n,
		       text_plural(f->group_n, "kind", "kinds"));
	write_verdict(&w, f);
	write_missing(&w, f);
	document_blank(out);
	for (; i < f->group_n && f->groups[i].host_n >= FLEET_ENOUGH; i++)
		write_group(&w, &f->groups[i], i + 1);
	if (i < f->group_n)
		write_small_groups(&w, f, i);
}

json_t *report_fleet_json(const struct fleet *f)
{
	json_t *o = json_head("fleet");

	fleet_json(f, o);
	return o;
}

/* ---- one host at two times ---- */

void report_change(struct strbuf *out, const struct fleet_change *c)
{
	add_what(out, c->row, &c->slot, 1, c->address);
	strbuf_printf(out, ": %s, now %s", shown(c->was), shown(c->is));
}

json_t *report_change_json(const struct fleet_change *c)
{
	return json_pack("{s:s, s:s, s:o, s:s, s:s}", "fact", c->row->word, "slot", c->slot, "pci",
			 *c->address ? json_text(c->address) : json_null(), "was", c->was, "is",
			 c->is);
}
