/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/pasted.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/source.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/texts.h"
#include "ingest/claims.h"
#include "ingest/figures_open.h"
#include "ingest/host_lines.h"
#include "ingest/issue_json.h"
#include "ingest/kept_text.h"
#include "ingest/nccl_log.h"
#include "ingest/observe.h"
#include "ingest/part.h"
#include "ingest/part_hosts.h"
#include "machine/machine.h"
#include "result/figures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A page of GitHub has at most 100 comments of 64 KiB. */
enum { MOST_JSON = 16 << 20 };

/* One text. */
struct page {
	const char *name;
	const char *host; /* its name was in front of all lines; NULL: there was none */
	struct part *parts;
	size_t part_n, line_n;
	const struct text_line *lines;
	/* Logs and measurements in it; NULL: none, or unreadable. */
	struct nccl_log *log;
	struct figures **figures; /* one for each tool */
	size_t figures_n;
	const char *log_trouble; /* why; NULL: there is none */
	struct texts figures_troubles;
	const struct text_reducer *reducer;
	struct text_time time; /* of the file */
};

struct pasted {
	struct arena *arena;
	struct claims *claims;
	struct page *pages;
	size_t page_n;
	struct pasted_text *begun;
	struct trouble *troubles; /* of files as a whole */
	size_t trouble_n;
	const char *host;   /* the one that is read; NULL: all parts are of one */
	const char *author; /* of the page of GitHub that was given first; NULL: none was */
};

struct pasted *pasted_new(const char *name)
{
	struct pasted *t = xcalloc(1, sizeof(*t));

	t->arena = arena_new();
	t->claims = claims_new(name);
	return t;
}

static void free_figures(struct page *page)
{
	for (size_t i = 0; i < page->figures_n; i++)
		figures_free(page->figures[i]);
	page->figures_n = 0;
}

void pasted_free(struct pasted *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->page_n; i++) {
		nccl_log_free(t->pages[i].log);
		free_figures(&t->pages[i]);
	}
	for (struct pasted_text *x = t->begun; x; x = x->next)
		text_reduce_free(&x->lines);
	claims_free(t->claims);
	arena_free(t->arena);
	free(t);
}

bool pasted_recognise(const char *text, size_t size)
{
	struct arena *a = arena_new();
	struct text_line *lines;
	size_t n, line_n;

	lines = text_lines(a, text, size, &line_n);
	parts_find(a, "", lines, line_n, &n);
	arena_free(a);
	return n > 0;
}

/* ---- what was measured and logged ---- */

static bool is_wanted(const struct part *p, bool (*wanted)(const struct part *p))
{
	return !p->elsewhere && wanted(p);
}

static bool is_log(const struct part *p)
{
	return p->kind->observed == PART_LOG;
}

static bool is_figures(const struct part *p)
{
	return p->kind->observed == PART_FIGURES;
}

/*
 * The lines of a page's results of one tool as the splitter sees them, so that line numbers stay
 * the same.
 */
static void add_figure_lines(struct strbuf *out, const struct page *page,
			     const struct part_kind *kind)
{
	size_t line = 1;

	for (size_t i = 0; i < page->part_n; i++) {
		const struct part *p = &page->parts[i];

		if (!is_wanted(p, is_figures) || p->kind != kind)
			continue;
		for (size_t k = 0; k < p->n; k++) {
			for (; line < p->lines[k].number; line++)
				strbuf_putc(out, '\n');
			strbuf_puts(out, p->lines[k].text);
		}
	}
	strbuf_putc(out, '\n');
}

static struct text_line *log_lines(const struct page *page, struct arena *a, size_t *ret_n)
{
	struct text_line *lines = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < page->part_n; i++)
		for (size_t k = 0; is_wanted(&page->parts[i], is_log) && k < page->parts[i].n; k++)
			*ARENA_PUSH(a, lines, *ret_n) = page->parts[i].lines[k];
	return lines;
}

/* A log that shows how its run ended need not go on where its text ends. */
static void mark_cut(struct page *page)
{
	for (size_t i = 0; i < page->part_n; i++) {
		const struct part *p = &page->parts[i];

		if (is_wanted(p, is_log) && p->cut_at &&
		    (page->log->open_end || !p->lines[p->n - 1].open))
			nccl_log_mark_cut(page->log, p->cut_at);
	}
}

static void read_log(struct pasted *t, struct page *page)
{
	struct arena *scratch = arena_new();
	size_t n;
	const struct text_line *lines = log_lines(page, scratch, &n);

	/* NCCL's version alone is not a log. */
	if (nccl_log_recognise_lines(lines, n) &&
	    nccl_log_parse_lines(lines, n, page->name, &page->log) < 0)
		page->log_trouble = arena_strdup(t->arena, err_msg());
	else if (page->log && text_reduce_lost(page->reducer))
		nccl_log_mark_lost(page->log);
	else if (page->log)
		mark_cut(page);
	arena_free(scratch);
}

/* Parts of one tool are one result: its matrices may be apart. */
static void read_figures_of(struct pasted *t, struct page *page, const struct part_kind *kind)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct figures *f;
	int r;

	add_figure_lines(&text, page, kind);
	/* The heading of a test that was cut before its first result: nothing is unreadable. */
	if (!figures_recognise(text.text, text.len))
		return;
	r = figures_parse_each(text.text, text.len, page->name, &f);
	if (r == -ENODATA) /* a run that hung or failed before its first result */
		return;
	if (r < 0)
		texts_add(t->arena, &page->figures_troubles, err_msg());
	else
		*ARENA_PUSH(t->arena, page->figures, page->figures_n) = f;
}

static bool is_first_of_kind(const struct page *page, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (page->parts[i].kind == page->parts[at].kind &&
		    is_wanted(&page->parts[i], is_figures))
			return false;
	return true;
}

static void read_figures(struct pasted *t, struct page *page)
{
	for (size_t i = 0; i < page->part_n; i++)
		if (is_wanted(&page->parts[i], is_figures) && is_first_of_kind(page, i))
			read_figures_of(t, page, page->parts[i].kind);
}

/* ---- GPUs that only a log or a result names ---- */

static struct claim_at line_of(const struct page *page, bool (*wanted)(const struct part *p))
{
	for (size_t i = 0; i < page->part_n; i++)
		if (is_wanted(&page->parts[i], wanted))
			return CLAIM_AT(&page->parts[i], &page->parts[i].lines[0]);
	return (struct claim_at){.file = page->name, .line = 1};
}

static void claim_logged(struct pasted *t, const struct page *page)
{
	struct claim_at at = line_of(page, is_log);
	const struct nccl_log *l = page->log;
	char name[PCI_ADDRESS_LEN];

	for (size_t i = 0; i < l->device_n; i++) {
		const struct nccl_device *d = &l->devices[i];

		if (!nccl_log_is_of(l, i, t->host))
			continue;
		if (d->pci && d->nvml_index >= 0)
			claim_gpu_at(t->claims, at, (unsigned)d->nvml_index, d->pci);
		else if (d->pci && claim_function(t->claims, at, d->pci, name))
			claim_nvidia(t->claims, at, name);
		else if (!d->pci && d->nvml_index >= 0)
			claim_gpu(t->claims, at, (unsigned)d->nvml_index);
	}
}

static bool gives_addresses(const struct figures *f)
{
	for (size_t i = 0; i < f->gpu_n; i++)
		if (f->gpus[i].pci)
			return true;
	return false;
}

/*
 * Tests that give no addresses count GPUs as CUDA does. If no text names a GPU in another way,
 * those numbers serve as names. Of a test whose list of addresses is cut, nothing shows where the
 * others are.
 */
static void claim_measured(struct pasted *t, const struct page *page, struct figures *f)
{
	struct claim_at at = line_of(page, is_figures);
	const bool by_address = gives_addresses(f) || claims_has_addresses(t->claims);
	char name[PCI_ADDRESS_LEN];

	for (size_t i = 0; i < f->gpu_n; i++) {
		struct figure_gpu *g = &f->gpus[i];

		if (g->pci && claim_function(t->claims, at, g->pci, name)) {
			claim_nvidia(t->claims, at, name);
			if (g->name)
				claim(t->claims, at, g->name, "gpu/%s/model", name);
		} else if (!by_address) {
			g->nvml_index = (int)i;
			claim_gpu(t->claims, at, (unsigned)i);
		}
	}
}

/* ---- reading ---- */

struct pasted_text *pasted_begin(struct pasted *t)
{
	struct pasted_text *x = arena_alloc(t->arena, 1, sizeof(*x));

	x->lines = text_reducer(t->arena);
	x->lines.by_host = true;
	x->next = t->begun;
	t->begun = x;
	return x;
}

static bool is_blank(const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr(" \t\r\n", data[i]) || !data[i])
			return false;
	return true;
}

/* It is not read as JSON after all. */
static void read_as_text(struct pasted_text *x)
{
	text_reduce_add(&x->lines, strbuf_str(&x->json), x->json.len);
	strbuf_done(&x->json);
	x->json = (struct strbuf){0};
	x->form = FORM_TEXT;
}

void pasted_feed(void *to, const char *data, size_t n)
{
	struct pasted_text *x = to;

	if (x->head.len < PASTED_HEAD)
		strbuf_add(&x->head, data, n < PASTED_HEAD ? n : PASTED_HEAD);
	if (x->form == FORM_UNKNOWN && !is_blank(data, n))
		x->form = issue_json_begins(data, n) ? FORM_JSON : FORM_TEXT;
	if (x->form != FORM_JSON) {
		text_reduce_add(&x->lines, data, n);
		return;
	}
	strbuf_add(&x->json, data, n);
	if (x->json.len > MOST_JSON)
		read_as_text(x);
}

void pasted_drop(struct pasted_text *x)
{
	strbuf_done(&x->head);
	strbuf_done(&x->json);
}

void pasted_add_trouble(struct pasted *t, const char *file, const char *what)
{
	*ARENA_PUSH(t->arena, t->troubles, t->trouble_n) =
		(struct trouble){.where = arena_strdup(t->arena, file),
				 .what = arena_strdup(t->arena, what)};
}

/* What a log lacks here may have been in its lines that were not kept. */
static void mark_lost(struct page *page)
{
	const struct text_reducer *r = page->reducer;

	for (size_t i = 0; i < page->part_n; i++) {
		struct part *p = &page->parts[i];

		p->cut |= r->left_out || (r->lost && p->kind->keeps_some);
		if (r->left_out && !p->cut_at && p->kind->missing[0])
			p->cut_at = r->first_left_out;
	}
}

/* The lines of one host, or all of a text. */
static size_t add_page(struct pasted *t, const char *name, const struct pasted_text *x,
		       const struct text_reducer *reducer, const struct host_lines *h)
{
	struct page *page = ARENA_PUSH(t->arena, t->pages, t->page_n);

	page->name = name;
	page->host = h->host;
	page->reducer = reducer;
	page->time = x->time;
	page->lines = h->lines;
	page->line_n = h->n;
	page->parts = parts_find(t->arena, name, h->lines, h->n, &page->part_n);
	mark_lost(page);
	for (size_t i = 0; i < page->part_n; i++)
		if (!page->parts[i].time.s)
			page->parts[i].time = x->time;
	read_log(t, page);
	read_figures(t, page);
	return page->part_n;
}

/* ---- pages of GitHub ---- */

/* "2 comments by others have outputs of tools": those are of other machines. */
static void report_others(struct pasted *t, const char *file, size_t others, size_t issues)
{
	AUTO_FREE char *what = xprintf(
		"%zu %s by others %s outputs of tools, probably of other machines; not used",
		others, text_plural(others, "comment", "comments"),
		text_plural(others, "has", "have"));

	if (others)
		pasted_add_trouble(t, file, what);
	if (issues > 1)
		pasted_add_trouble(t, file, "has several issues, of which only the first is read");
}

/* The texts of its author. */
static size_t add_posts(struct pasted *t, const char *file, const struct issue_posts *posts)
{
	size_t parts = 0, others = 0;

	if (!t->author)
		t->author = arena_strdup(t->arena, issue_author(posts, pasted_recognise));
	for (size_t i = 0; i < posts->n; i++) {
		const struct issue_post *p = &posts->items[i];
		AUTO_FREE char *name = xprintf("%s:%s", file, p->name);

		if (strcmp(p->author, t->author) == 0)
			parts += pasted_add(t, name, p->text, strlen(p->text));
		else
			others += pasted_recognise(p->text, strlen(p->text));
	}
	report_others(t, file, others, posts->issues);
	return parts;
}

/* False: it is another text. */
static bool end_issue(struct pasted *t, const char *name, struct pasted_text *x, size_t *ret_parts)
{
	struct arena *a = arena_new();
	struct issue_posts posts;

	x->issue = issue_json_read(strbuf_str(&x->json), x->json.len, a, &posts);
	if (x->issue)
		*ret_parts = add_posts(t, name, &posts);
	arena_free(a);
	return x->issue;
}

/* ---- all of a text ---- */

/* A large text, whose lines are kept by host. */
static size_t add_hosts(struct pasted *t, const char *name, const struct pasted_text *x)
{
	const struct host_stream *s = x->lines.stream;
	size_t parts = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct text_reducer *r = x->lines.hosts[i];

		if (r && r->n)
			parts += add_page(t, name, x, r,
					  &(struct host_lines){s->names[i], r->lines, r->n});
	}
	return parts;
}

size_t pasted_end(struct pasted *t, const char *name, struct pasted_text *x)
{
	struct host_lines whole, *hosts = &whole;
	size_t n, parts = 0;

	if (x->form == FORM_JSON && end_issue(t, name, x, &parts))
		return parts;
	if (x->form == FORM_JSON)
		read_as_text(x);

	text_reduce_end(&x->lines);
	name = arena_strdup(t->arena, name);
	if (x->lines.stream)
		return add_hosts(t, name, x);
	n = host_lines_split(t->arena, x->lines.lines, x->lines.n, &hosts);
	whole = (struct host_lines){.lines = x->lines.lines, .n = x->lines.n};
	for (size_t i = 0; i < (n ? n : 1); i++)
		parts += add_page(t, name, x, &x->lines, &hosts[i]);
	return parts;
}

size_t pasted_add(struct pasted *t, const char *name, const char *text, size_t size)
{
	struct pasted_text *x = pasted_begin(t);
	size_t n;

	pasted_feed(x, text, size);
	n = pasted_end(t, name, x);
	pasted_drop(x);
	return n;
}

/* ---- one machine ---- */

static bool is_of_logs(const struct pasted *t)
{
	for (size_t i = 0; i < t->page_n; i++)
		for (size_t k = 0; k < t->pages[i].part_n; k++)
			if (!is_log(&t->pages[i].parts[k]))
				return false;
	return true;
}

/* Its lines name hosts, and at least one of them is listed. */
static bool log_shows_hosts(const struct page *page, const struct text_hosts *hosts)
{
	const struct nccl_log *l = page->log;

	for (size_t i = 0; l && i < l->device_n; i++)
		if (text_hosts_find(hosts, l->devices[i].host))
			return true;
	return l && !l->device_n;
}

/*
 * The first part that no host can be found for. A log is of a run on several hosts: its lines tell
 * them apart, and what names no GPU happened to the run.
 */
static const struct part *find_unassigned(const struct pasted *t, const struct text_hosts *hosts)
{
	for (size_t i = 0; i < t->page_n; i++) {
		const struct page *page = &t->pages[i];

		for (size_t k = 0; k < page->part_n; k++) {
			const struct part *p = &page->parts[k];

			if (!p->host && !(is_log(p) && log_shows_hosts(page, hosts)))
				return p;
		}
	}
	return NULL;
}

static void add_logged_hosts(struct pasted *t, const struct page *page, struct text_hosts *ret)
{
	unsigned line = line_of(page, is_log).line;

	for (size_t i = 0; page->log && i < page->log->device_n; i++)
		text_hosts_add(t->arena, ret, page->log->devices[i].host, page->name, line);
}

void pasted_hosts(struct pasted *t, struct text_hosts *ret)
{
	struct prompt_hosts prompts = {0};

	*ret = (struct text_hosts){0};
	for (size_t i = 0; i < t->page_n; i++)
		if (t->pages[i].host)
			text_hosts_add(t->arena, ret, t->pages[i].host, t->pages[i].name,
				       t->pages[i].lines[0].number);
	for (size_t i = 0; i < t->page_n; i++) {
		text_hosts_of_parts(t->arena, ret, t->pages[i].parts, t->pages[i].part_n);
		text_hosts_in_prompts(t->arena, &prompts, t->pages[i].parts, t->pages[i].part_n);
	}
	text_hosts_add_prompts(t->arena, ret, &prompts);
	/* Next to other outputs a log of several hosts is one that the machine took part in. */
	if (!ret->n && is_of_logs(t))
		for (size_t i = 0; i < t->page_n; i++)
			add_logged_hosts(t, &t->pages[i], ret);
	for (size_t i = 0; i < t->page_n; i++)
		part_hosts_assign(ret, t->pages[i].host, t->pages[i].parts, t->pages[i].part_n);
}

/* "gpu7 (a.txt:1), gpu8 (b.txt:1) and 3 more" */
static void list_hosts(const struct text_hosts *hosts, struct strbuf *out)
{
	enum { SHOWN = 4 };

	for (size_t i = 0; i < hosts->n && i < SHOWN; i++)
		strbuf_printf(out, "%s%s (%s:%u)", i ? ", " : "", hosts->items[i].name,
			      hosts->items[i].file, hosts->items[i].line);
	if (hosts->n > SHOWN)
		strbuf_printf(out, " and %zu more", hosts->n - SHOWN);
}

static int refuse_many(const char *list)
{
	return err_set(E2BIG, "outputs of more than %d machines: %s; give those of fewer",
		       MOST_TEXT_HOSTS, list);
}

static int refuse_hosts(const struct pasted *t, const struct text_hosts *hosts)
{
	AUTO_STRBUF struct strbuf list = {0};
	const struct part *p = find_unassigned(t, hosts);

	list_hosts(hosts, &list);
	if (hosts->full)
		return refuse_many(strbuf_str(&list));
	return p ? err_set(EINVAL,
			   "outputs of several machines: %s; nothing shows which of them printed "
			   "%s (%s:%u); give the outputs of one",
			   strbuf_str(&list), p->kind->name, p->file, p->lines[0].number)
		 : err_set(EXDEV, "outputs of several machines: %s; choose one with --host NAME",
			   strbuf_str(&list));
}

static int refuse_unknown(const struct text_hosts *hosts, const char *host)
{
	AUTO_STRBUF struct strbuf list = {0};

	list_hosts(hosts, &list);
	if (hosts->full)
		return refuse_many(strbuf_str(&list));
	return hosts->n ? err_set(EINVAL, "no text is of host %s; they are of %s", host,
				  strbuf_str(&list))
			: err_set(EINVAL, "no text is of host %s: no output names a host", host);
}

/* What the page had of all hosts is read again if some of it is of another one. */
static void reread(struct pasted *t, struct page *page)
{
	nccl_log_free(page->log);
	free_figures(page);
	page->log = NULL;
	page->log_trouble = NULL;
	page->figures_troubles.n = 0;
	read_log(t, page);
	read_figures(t, page);
}

static void leave_out_others(struct pasted *t, const char *host)
{
	for (size_t i = 0; i < t->page_n; i++) {
		struct page *page = &t->pages[i];
		bool mixed = false;

		for (size_t k = 0; k < page->part_n; k++) {
			struct part *p = &page->parts[k];

			p->elsewhere = p->host && p->host != host;
			mixed |= p->elsewhere;
		}
		if (mixed)
			reread(t, page);
	}
	t->host = host;
}

int pasted_choose(struct pasted *t, const char *host)
{
	struct text_hosts hosts;
	const char *name;

	pasted_hosts(t, &hosts);
	if (!host)
		return hosts.n < 2 || is_of_logs(t) ? 0 : refuse_hosts(t, &hosts);
	name = text_hosts_find(&hosts, host);
	if (!name)
		return refuse_unknown(&hosts, host);
	if (hosts.n > 1 && find_unassigned(t, &hosts))
		return refuse_hosts(t, &hosts);
	leave_out_others(t, name);
	return 0;
}

/* What a part lacks is cut off where the part is. */
static void claim_missing(struct claims *c, const struct part *p)
{
	const struct claim_at at = {.file = p->file, .line = part_cut_in(p, 0, p->n)};

	for (const char *const *path = p->kind->missing; at.line && *path; path++)
		claim_cut(c, at, "%s", *path);
}

static void decode(struct pasted *t, const struct page *page)
{
	for (size_t i = 0; i < page->part_n; i++) {
		const struct part *p = &page->parts[i];

		if (!p->kind->decode || p->elsewhere)
			continue;
		p->kind->decode(p, t->claims);
		claim_missing(t->claims, p);
	}
}

struct source *pasted_source(struct pasted *t)
{
	for (size_t i = 0; i < t->page_n; i++)
		decode(t, &t->pages[i]);
	for (size_t i = 0; i < t->page_n; i++)
		if (t->pages[i].log)
			claim_logged(t, &t->pages[i]);
	for (size_t i = 0; i < t->page_n; i++)
		for (size_t k = 0; k < t->pages[i].figures_n; k++)
			claim_measured(t, &t->pages[i], t->pages[i].figures[k]);
	return claims_source(t->claims);
}

void pasted_keep(const struct pasted *t, struct strbuf *out)
{
	for (size_t i = 0; i < t->page_n; i++) {
		const struct page *page = &t->pages[i];

		kept_text_write(page->name, page->time, page->reducer, page->lines, page->line_n,
				page->parts, page->part_n, out);
	}
}

/* ---- completing the machine ---- */

/* The sentence may begin with the place. */
static void add_trouble(struct machine *m, const char *where, const char *what)
{
	if (text_starts_with(what, where))
		what += strlen(where) + strspn(what + strlen(where), ": ");
	*ARENA_PUSH(m->arena, m->troubles, m->trouble_n) =
		(struct trouble){.where = arena_strdup(m->arena, where),
				 .what = arena_strdup(m->arena, what)};
}

static void observe(const struct page *page, const char *host, struct machine *m)
{
	m->log_lacks_some |= page->reducer->lost || page->reducer->repeated;
	if (page->reducer->lost)
		add_trouble(
			m, page->name,
			"has more lines about GPUs in its kernel log than are kept; what the rest says is unknown");
	if (page->reducer->left_out)
		add_trouble(m, page->name,
			    arena_printf(m->arena,
					 "says more than is kept; from line %u on %zu %s left out, "
					 "and what they say is unknown",
					 page->reducer->first_left_out, page->reducer->left_out,
					 text_plural(page->reducer->left_out, "line is",
						     "lines are")));
	if (page->log && page->log->left_out)
		add_trouble(m, page->name,
			    arena_printf(m->arena,
					 "has more different errors or warnings of a run than are "
					 "kept; %zu %s left out",
					 page->log->left_out,
					 text_plural(page->log->left_out, "line is", "lines are")));
	if (page->log_trouble)
		add_trouble(m, page->name, page->log_trouble);
	for (size_t i = 0; i < page->figures_troubles.n; i++)
		add_trouble(m, page->name, page->figures_troubles.items[i]);
	/* -EINVAL: it has no facts about pairs of one machine, which is not worth reporting. */
	if (page->log && nccl_log_observe_host(page->log, host, m) == -ENODEV)
		add_trouble(m, page->name, err_msg());
	for (size_t i = 0; i < page->figures_n; i++)
		if (figures_observe(page->figures[i], m) == -ENODEV)
			add_trouble(m, page->name, err_msg());
}

static void observe_parts(const struct page *page, struct machine *m)
{
	for (size_t i = 0; i < page->part_n; i++)
		if (page->parts[i].kind->observe && !page->parts[i].elsewhere)
			page->parts[i].kind->observe(&page->parts[i], m);
}

static void list_part(struct machine *m, const char *file, struct text_part p)
{
	p.file = arena_strdup(m->arena, file);
	p.about = arena_strdup(m->arena, p.about);
	*ARENA_PUSH(m->arena, m->text_parts, m->text_part_n) = p;
}

/* Lines that nothing was read from. */
static void list_unused(struct machine *m, const char *file, unsigned first, unsigned last)
{
	list_part(m, file, (struct text_part){.about = "", .first = first, .last = last});
}

static const char *about_part(const struct page *page, const struct machine *m,
			      const struct part *p)
{
	size_t alike = 0;

	if (p->elsewhere)
		return arena_printf(m->arena, "of host %s, not used", p->host);
	for (size_t i = 0; i < p->n; i++)
		alike += p->lines[i].alike;
	if (p->kind->keeps_some && page->reducer->repeated)
		return arena_printf(m->arena, "%s; %zu repeated lines of this file left out",
				    p->about, page->reducer->repeated);
	return alike ? arena_printf(m->arena, "%s%s%zu %s", p->about, *p->about ? "; " : "", alike,
				    text_plural(alike, "repetition", "repetitions"))
		     : p->about;
}

/* Repetitions of what the part says may be the last lines of it. */
static unsigned last_line(const struct page *page, const struct part *p)
{
	const struct text_line *below = p->lines + p->n;

	return below < page->lines + page->line_n && line_is_repeated(below) ? below->number
									     : below[-1].number;
}

static void list_parts(const struct page *page, struct machine *m)
{
	unsigned next = 1;

	for (size_t i = 0; i < page->part_n; i++) {
		const struct part *p = &page->parts[i];
		unsigned first = p->lines[0].number, last = last_line(page, p);

		if (first > next && !page->host) /* lines of other hosts are between */
			list_unused(m, page->name, next, first - 1);
		list_part(m, page->name,
			  (struct text_part){
				  .name = p->kind->name,
				  .about = about_part(page, m, p),
				  .first = first,
				  .last = last,
				  .cut = p->cut,
				  .cut_at = part_cut_in(p, 0, p->n),
			  });
		next = last + 1;
	}
	if (page->line_n && !page->host && next <= page->lines[page->line_n - 1].number)
		list_unused(m, page->name, next, page->lines[page->line_n - 1].number);
}

/* Not all failures are kept: another rank may wait elsewhere. */
static bool shows_some_failures(const struct pasted *t)
{
	for (size_t i = 0; i < t->page_n; i++)
		if (text_reduce_lost(t->pages[i].reducer) ||
		    (t->pages[i].log && t->pages[i].log->left_out))
			return true;
	return false;
}

/* The ranks of one run may have written several texts. */
static void compare_waits(const struct pasted *t, struct machine *m)
{
	struct run_failure **failures = arena_alloc(m->arena, m->observed_n + 1, sizeof(*failures));
	size_t n = 0;

	if (shows_some_failures(t))
		return;
	for (size_t i = 0; i < m->observed_n; i++)
		if (m->observed[i].kind == OBSERVED_RUN_FAILURE)
			failures[n++] = &m->observed[i].failure;
	run_failures_compare(failures, n);
}

void pasted_complete(struct pasted *t, struct machine *m)
{
	for (size_t i = 0; i < t->trouble_n; i++)
		add_trouble(m, t->troubles[i].where, t->troubles[i].what);
	for (size_t i = 0; i < t->page_n; i++) {
		observe(&t->pages[i], t->host, m);
		observe_parts(&t->pages[i], m);
		list_parts(&t->pages[i], m);
	}
	compare_waits(t, m);
	claims_add_disagreements(t->claims, m);
}
