/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop check` prints for people. */
#include "report/report_impl.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/ask.h"
#include "report/report_fix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Devices listed for one rule before "and N more"; --verbose lists all. */
#define MAX_SUBJECTS 8
/* Unknown facts, likewise. */
#define MAX_UNSEEN  6
#define TEXT_COLUMN 9 /* behind "warning  " */

static const enum style severity_styles[SEVERITY_N] = {
	[SEVERITY_INFO] = STYLE_STRONG,
	[SEVERITY_WARNING] = STYLE_WARN,
	[SEVERITY_ERROR] = STYLE_BAD,
};

/* ---- pairs ---- */

static void add_pairs(struct document *out, const struct topology *t)
{
	if (t->gpu_n < 2)
		return;
	document_blank(out);
	if (t->gpu_n <= MATRIX_MAX_CHECK) {
		add_matrix(out, t, t->gpu_n, 0, t->gpu_n, true);
		add_matrix_legend(out, t, t->gpu_n);
	} else {
		add_class_summary(out, t);
		add_page_matrix(out, t);
	}
}

/* ---- without GPUs: what else can be said ---- */

static size_t count_bridges(const struct machine *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->pci_n; i++)
		n += pci_is_bridge(&m->pci[i]);
	return n;
}

/* "0000:00:01.1 (001d), 0000:00:03.1 (001d) and 2 more" */
static size_t add_redirecting(struct strbuf *b, const struct machine *m, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < m->pci_n; i++) {
		const struct pci_function *f = &m->pci[i];

		if (!pci_is_bridge(f) ||
		    !(acs_redirects_requests(f->acs_ctl) || acs_redirects_completions(f->acs_ctl)))
			continue;
		if (n++ < max)
			strbuf_printf(b, "%s%s (%04x)", n > 1 ? ", " : "", f->name,
				      (unsigned)f->acs_ctl.value);
	}
	if (n > max)
		strbuf_printf(b, " and %zu more", n - max);
	return n;
}

static void add_acs_line(struct document *out, const struct machine *m, bool verbose)
{
	struct strbuf b AUTO_STRBUF = {0};
	size_t able = 0, unread = 0, bridges = count_bridges(m), redirecting = 0;
	size_t max = verbose ? bridges : MAX_SUBJECTS;

	for (size_t i = 0; i < m->pci_n; i++) {
		able += pci_is_bridge(&m->pci[i]) && fact_known(m->pci[i].acs_ctl);
		unread += pci_is_bridge(&m->pci[i]) && fact_unknown(m->pci[i].acs_ctl);
	}
	if (bridges && unread < bridges) {
		strbuf_printf(&b, "%zu of %zu bridges support it; redirecting (ACSCtl): ", able,
			      bridges);
		redirecting = add_redirecting(&b, m, max);
		if (!redirecting)
			strbuf_puts(&b, "none");
	}
	if (unread)
		strbuf_printf(&b, "%sunknown on %zu of %zu bridges%s", b.len ? "; " : "", unread,
			      bridges, fact_is(m->root, 0) ? " (needs root)" : "");
	document_item(out, STYLE_PLAIN, 0, "ACS:  ", "%s",
		      bridges                     ? strbuf_str(&b)
		      : fact_known(m->pci_listed) ? "no bridges"
						  : "unknown (no bridge is shown)");
	if (redirecting > max)
		document_hint(out, "-v shows all");
}

/* ", groups of type DMA-FQ: 40 devices, identity: 2 devices" */
static void add_group_types(struct strbuf *b, const struct machine *m)
{
	static const char *const types[] = {"identity", "DMA", "DMA-FQ"};

	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
		size_t n = 0;

		for (size_t i = 0; i < m->pci_n; i++)
			n += fact_str_is(m->pci[i].iommu_type, types[k]);
		if (n)
			strbuf_printf(b, "; %zu PCI functions in groups of type %s%s", n, types[k],
				      k ? " (translating)" : " (passed through)");
	}
}

static void add_iommu_line(struct document *out, const struct machine *m)
{
	struct fact_int iommus = m->kernel.iommus;
	struct strbuf b AUTO_STRBUF = {0};

	if (!fact_known(iommus)) {
		strbuf_printf(&b, "unknown (%s)", iommus.from ? iommus.from : "not collected");
	} else if (!iommus.value) {
		strbuf_puts(&b, "none active");
	} else {
		strbuf_printf(&b, "on (%s)", fact_str_or(m->kernel.iommu_names, "name unknown"));
		add_group_types(&b, m);
	}
	document_item(out, STYLE_PLAIN, 0, "IOMMU:", "%s", strbuf_str(&b));
}

/* Not collected is another thing than none. */
static void add_not_listed(struct document *out, const char *label, struct fact_int listed)
{
	document_item(out, STYLE_PLAIN, 0, label, "unknown (%s)",
		      listed.from ? listed.from : "not collected");
}

static void add_platform(struct document *out, const struct machine *m, bool verbose)
{
	size_t bridges = count_bridges(m);

	document_blank(out);
	if (m->pci_n || fact_known(m->pci_listed))
		document_item(out, STYLE_PLAIN, 0, "PCI:  ", "%zu %s%s, %zu of them %s", m->pci_n,
			      text_plural(m->pci_n, "function", "functions"),
			      fact_known(m->pci_listed) ? "" : " shown", bridges,
			      text_plural(bridges, "a bridge", "bridges"));
	else
		add_not_listed(out, "PCI:  ", m->pci_listed);
	if (m->pci_n)
		add_acs_line(out, m, verbose);
	add_iommu_line(out, m);
	if (!m->rdma_n && fact_unknown(m->rdma_listed))
		add_not_listed(out, "RDMA: ", m->rdma_listed);
	else if (m->rdma_n || verbose)
		document_item(out, STYLE_PLAIN, 0, "RDMA: ", "%zu %s%s", m->rdma_n,
			      text_plural(m->rdma_n, "device", "devices"),
			      fact_unknown(m->rdma_listed) ? " shown" : "");
}

/* ---- findings ---- */

/* Findings of one rule, as severe and as sure: shown as one. */
struct group {
	const struct finding **items;
	size_t n;
};

static bool same_group(const struct finding *a, const struct finding *b)
{
	return a->rule == b->rule && a->severity == b->severity && a->confidence == b->confidence;
}

/* Moves all findings of the first one's group to the front; diagnosis' order holds among them. */
static struct group take_group(const struct finding **left, size_t n)
{
	struct group g = {left, 1};

	for (size_t i = 1; i < n; i++) {
		const struct finding *f = left[i];

		if (!same_group(left[0], f))
			continue;
		memmove(&left[g.n + 1], &left[g.n], (i - g.n) * sizeof(left[0]));
		left[g.n++] = f;
	}
	return g;
}

/* ---- a group ---- */

/* How many items from `first` on differ only in the device. */
static size_t count_alike(struct group g, size_t first)
{
	size_t n = 1;

	while (first + n < g.n &&
	       strcmp(g.items[first + n]->sentence_form, g.items[first]->sentence_form) == 0)
		n++;
	return n;
}

/* "likewise GPU1 0000:41:00.0, GPU2 0000:61:00.0" */
static void add_likewise(struct document *out, struct group g, size_t first, size_t end)
{
	struct strbuf b AUTO_STRBUF = {0};

	for (size_t i = first; i < end; i++)
		strbuf_printf(&b, "%s%s", i > first ? ", " : "", g.items[i]->subject);
	if (b.len)
		document_paragraph(out, STYLE_PLAIN, TEXT_COLUMN, "likewise %s", strbuf_str(&b));
}

static void add_head(struct document *out, const struct finding *f)
{
	struct strbuf b AUTO_STRBUF = {0};
	char label[16];

	finding_statement(f, &b);
	if (f->confidence != CONFIDENCE_CERTAIN)
		strbuf_printf(&b, " (%s)", confidence_word(f->confidence));
	strbuf_printf(&b, " [%s]", f->rule->id);
	snprintf(label, sizeof(label), "%-7s", severity_word(f->severity));
	document_item(out, severity_styles[f->severity], 0, label, "%s", strbuf_str(&b));
}

static void add_others(struct document *out, struct group g, size_t max)
{
	size_t n = g.n < max ? g.n : max;

	for (size_t i = 0, alike; i < n; i += alike) {
		struct strbuf b AUTO_STRBUF = {0};

		alike = count_alike(g, i);
		finding_statement(g.items[i], &b);
		if (i)
			document_paragraph(out, STYLE_PLAIN, TEXT_COLUMN, "%s", strbuf_str(&b));
		add_likewise(out, g, i + 1, i + alike < n ? i + alike : n);
	}
	if (n == g.n)
		return;
	document_paragraph(out, STYLE_PLAIN, TEXT_COLUMN, "and %zu more", g.n - n);
	document_hint(out, "-v shows all");
}

static bool remedy_shown(struct group g, size_t n, bool verbose)
{
	for (size_t i = 0; i < n; i++)
		if (verbose ? strcmp(g.items[i]->remedy, g.items[n]->remedy) == 0
			    : strcmp(g.items[i]->remedy_form, g.items[n]->remedy_form) == 0)
			return true;
	return false;
}

/* Then each says what it is for. */
static bool several_remedies(struct group g, bool verbose)
{
	size_t n = 0;

	for (size_t i = 0; i < g.n; i++)
		n += !g.items[i]->nothing_to_do && !remedy_shown(g, i, verbose);
	return n > 1;
}

/* Each different remedy once, in order. */
static void add_remedies(struct document *out, struct group g, bool verbose)
{
	bool more = false, several = several_remedies(g, verbose);

	for (size_t i = 0; i < g.n; i++) {
		if (g.items[i]->nothing_to_do)
			continue;
		if (!remedy_shown(g, i, verbose))
			document_item(out, STYLE_STRONG, TEXT_COLUMN, "do  ", "%s%s%s",
				      several ? g.items[i]->subject : "", several ? ": " : "",
				      g.items[i]->remedy);
		else if (strcmp(g.items[i]->remedy, g.items[0]->remedy) != 0)
			more = true;
	}
	if (!more || verbose)
		return;
	document_paragraph(out, STYLE_PLAIN, TEXT_COLUMN + 6, "likewise for the others");
	document_hint(out, "-v shows them");
}

void report_evidence(struct strbuf *b, const struct evidence *e)
{
	strbuf_puts(b, e->what);
	if (e->value)
		strbuf_printf(b, ": %s", e->value);
	if (e->expected)
		strbuf_printf(b, ", expected %s", e->expected);
	if (e->from)
		strbuf_printf(b, " (%s)", e->from);
}

static void add_seen_item(struct document *out, const char *text)
{
	document_styled_item(out, STYLE_DIM, STYLE_DIM, TEXT_COLUMN, "seen", "%s", text);
}

/* The first line is the value that decided. */
static void add_evidence(struct document *out, const struct finding *f, bool verbose)
{
	for (size_t i = 0; i < f->evidence_n && (verbose || !i); i++) {
		AUTO_STRBUF struct strbuf b = {0};

		report_evidence(&b, &f->evidence[i]);
		add_seen_item(out, strbuf_str(&b));
	}
}

/* What the card does not show, each once: of several findings, many rest on the same. */
static void list_more_evidence(struct group g, bool verbose, struct arena *a, struct texts *ret)
{
	struct texts shown = {0};

	for (size_t i = 0; i < g.n; i++)
		for (size_t k = 0; k < g.items[i]->evidence_n; k++) {
			AUTO_STRBUF struct strbuf b = {0};

			report_evidence(&b, &g.items[i]->evidence[k]);
			if (verbose || (!i && !k))
				texts_add(a, &shown, arena_strdup(a, strbuf_str(&b)));
			else if (!texts_have(&shown, strbuf_str(&b)))
				texts_add(a, ret, arena_strdup(a, strbuf_str(&b)));
		}
}

/* To the device's box, if it is drawn. */
/* NULL: it is neither a GPU nor a NIC. */
static const struct endpoint *endpoint_at(const struct topology *t, const struct pci_function *f)
{
	for (size_t i = 0; i < t->endpoint_n; i++)
		if (t->endpoints[i].pci == f)
			return &t->endpoints[i];
	return NULL;
}

static void add_box_link(struct document *out, const struct topology *t,
			 const struct pci_function *f, size_t *n)
{
	const struct endpoint *e;
	AUTO_STRBUF struct strbuf box = {0};

	if (!f || ++*n > MAX_SUBJECTS)
		return;
	strbuf_printf(&box, DRAWING_ID "%s", f->name);
	e = endpoint_at(t, f);
	document_link(out, strbuf_str(&box), "%s%s%s in the drawing", e ? e->name : "",
		      e ? " " : "", f->name);
}

/* The rest that the group rests on, and where its devices are drawn: for pages. */
static void add_group_evidence(struct document *out, const struct topology *t, struct group g,
			       bool verbose)
{
	const char *reference = g.items[0]->rule->reference;
	AUTO_STRBUF struct strbuf anchor = {0};
	struct arena *a = arena_new();
	struct texts more = {0};
	size_t links = 0;

	list_more_evidence(g, verbose, a, &more);
	strbuf_printf(&anchor, "%s-evidence", g.items[0]->rule->id);
	if (more.n || reference) {
		document_begin(out, GROUP_FOLD, STYLE_PLAIN, strbuf_str(&anchor), "%s",
			       more.n && reference ? "More evidence, and the reference"
			       : more.n            ? "More evidence"
						   : "Reference");
		for (size_t i = 0; i < more.n; i++)
			add_seen_item(out, more.items[i]);
		if (reference)
			document_item(out, STYLE_DIM, TEXT_COLUMN, "see ", "%s", reference);
		document_end(out);
	}
	arena_free(a);
	for (size_t i = 0; i < g.n; i++) {
		add_box_link(out, t, g.items[i]->pci, &links);
		for (size_t k = 0; k < g.items[i]->named_n; k++)
			add_box_link(out, t, g.items[i]->named[k], &links);
	}
}

static void add_group(struct document *out, const struct topology *t, struct group g, bool verbose)
{
	document_blank(out);
	document_begin(out, GROUP_CARD, severity_styles[g.items[0]->severity], g.items[0]->rule->id,
		       "%s", "");
	add_head(out, g.items[0]);
	add_others(out, g, verbose ? g.n : MAX_SUBJECTS);
	add_remedies(out, g, verbose);
	document_item(out, STYLE_STRONG, TEXT_COLUMN, "why ", "%s", g.items[0]->rule->why);
	for (size_t i = 0; i < (verbose ? g.n : 1); i++)
		add_evidence(out, g.items[i], verbose);
	if (document_is_page(out))
		add_group_evidence(out, t, g, verbose);
	document_end(out);
}

/* Pages have what text shows with -v, folded. */
static void add_folded_notes(struct document *out, const struct diagnosis *d)
{
	const struct finding **left AUTO_FREE = xcalloc(d->finding_n + 1, sizeof(*left));
	size_t n = 0, shown = 0;

	for (size_t i = 0; i < d->finding_n; i++)
		if (d->findings[i].severity == SEVERITY_INFO)
			left[n++] = &d->findings[i];
	if (!n || !document_is_page(out))
		return;
	document_begin(out, GROUP_FOLD, STYLE_PLAIN, "notes", "Notes (%zu)", n);
	while (shown < n) {
		struct group g = take_group(&left[shown], n - shown);

		add_group(out, d->topology, g, true);
		shown += g.n;
	}
	document_end(out);
}

/* "3 notes: cross-socket, nic-far, gdr-geforce (-v shows them)" */
static void add_notes_line(struct document *out, const char *ids, size_t n)
{
	if (!n)
		return;
	document_begin(out, GROUP_TEXT, STYLE_PLAIN, NULL, "%s", "");
	document_blank(out);
	document_paragraph(out, STYLE_DIM, 0, "%zu %s: %s (-v shows %s)", n,
			   text_plural(n, "note", "notes"), ids, n == 1 ? "it" : "them");
	document_end(out);
}

/* Those that are only good to know are counted, and shown with -v. */
static void add_findings(struct document *out, const struct diagnosis *d, bool verbose)
{
	const struct finding **left AUTO_FREE = xcalloc(d->finding_n + 1, sizeof(*left));
	struct strbuf notes AUTO_STRBUF = {0};
	/* The only answer to a text is not hidden. */
	const bool lone = d->finding_n == 1 && d->topology->machine->text_part_n;
	size_t note_n = 0;

	for (size_t i = 0; i < d->finding_n; i++)
		left[i] = &d->findings[i];
	for (size_t i = 0; i < d->finding_n;) {
		struct group g = take_group(&left[i], d->finding_n - i);

		i += g.n;
		if (verbose || lone || g.items[0]->severity > SEVERITY_INFO)
			add_group(out, d->topology, g, verbose);
		else
			strbuf_printf(&notes, "%s%s", note_n++ ? ", " : "", g.items[0]->rule->id);
	}
	add_notes_line(out, strbuf_str(&notes), note_n);
	if (!verbose && !lone)
		add_folded_notes(out, d);
}

void add_page_findings(struct document *out, const struct diagnosis *d)
{
	document_begin(out, GROUP_PAGE, STYLE_PLAIN, NULL, "%s", "");
	document_section(out, "findings", d->finding_n ? "Findings" : "No findings");
	if (document_is_page(out))
		add_findings(out, d, false);
	document_end(out);
}

/* ---- the verdict, what results showed, what could not be seen ---- */

static enum style verdict_style(const struct diagnosis *d, enum endpoint_kind with)
{
	static const enum style nics[VERDICT_N] = {
		[VERDICT_NA] = STYLE_PLAIN,
		[VERDICT_OK] = STYLE_GOOD,
		[VERDICT_UNKNOWN] = STYLE_WARN,
		[VERDICT_BAD] = STYLE_BAD,
	};
	struct pair_counts counts;

	if (with == ENDPOINT_NIC)
		return nics[diagnosis_nic_verdict(d)];

	topology_count(d->topology, &counts);
	if (!counts.pairs)
		return STYLE_STRONG;
	if (counts.by_verdict[PAIR_BLOCKED])
		return STYLE_BAD;
	for (size_t i = 0; i < d->finding_n; i++)
		if (finding_contradicts(&d->findings[i]))
			return STYLE_WARN;
	return counts.by_verdict[PAIR_DIRECT] == counts.pairs ? STYLE_GOOD : STYLE_WARN;
}

static bool same_unseen(const struct outcome *a, const struct outcome *b, bool whole)
{
	return whole ? strcmp(a->why, b->why) == 0 : strcmp(a->what, b->what) == 0;
}

/* What is unknown, by what a person can do about it. */
enum unseen {
	UNSEEN_WITHOUT_ROOT,
	UNSEEN_CUT_OFF,
	UNSEEN_OTHERS,
};

static enum unseen unseen_of(const struct outcome *o)
{
	return o->root_would_tell ? UNSEEN_WITHOUT_ROOT
	       : o->cut_off       ? UNSEEN_CUT_OFF
				  : UNSEEN_OTHERS;
}

/* In the short form, what root could read is listed there only, and likewise what is cut off. */
static bool said_already(const struct diagnosis *d, size_t n, bool whole)
{
	const struct outcome *o = &d->outcomes[n];

	for (size_t i = 0; i < d->outcome_n; i++) {
		const struct outcome *p = &d->outcomes[i];
		bool first = unseen_of(p) == unseen_of(o) ? i < n
							  : unseen_of(p) < unseen_of(o) && !whole;

		if (p->verdict == VERDICT_UNKNOWN && first && same_unseen(o, p, whole))
			return true;
	}
	return false;
}

/* What is unknown, each thing once; the reasons, a line each, when verbose. Returns how many. */
static size_t list_unseen(struct strbuf *b, const struct diagnosis *d, enum unseen kind,
			  bool verbose)
{
	size_t n = 0;

	for (size_t i = 0; i < d->outcome_n; i++) {
		const struct outcome *o = &d->outcomes[i];

		if (o->verdict != VERDICT_UNKNOWN || unseen_of(o) != kind ||
		    said_already(d, i, verbose))
			continue;
		n++;
		if (verbose)
			strbuf_printf(b, "%s\n", o->why);
		else if (n <= MAX_UNSEEN)
			strbuf_printf(b, "%s%s", b->len ? "; " : "", o->what);
	}
	if (n > MAX_UNSEEN && !verbose)
		strbuf_printf(b, "; and %zu more", n - MAX_UNSEEN);
	return n;
}

/* A reason a line; its continuation lines are indented. */
static void add_reasons(struct document *out, const char *head, const char *lines)
{
	const char *line = NULL;
	size_t n;

	document_paragraph(out, STYLE_PLAIN, 0, "%s", head);
	while (text_next_line(&line, &n, lines))
		if (n)
			document_item(out, STYLE_PLAIN, 0, "-", "%.*s", (int)n, line);
}

/* A page lists them. */
static void add_unseen_line(struct document *out, size_t n, size_t named_n)
{
	document_begin(out, GROUP_TEXT, STYLE_PLAIN, NULL, "%s", "");
	document_paragraph(out, STYLE_DIM, 0, "%zu %s%s unknown (-v lists %s)", n,
			   named_n ? "other " : "", text_plural(n, "fact is", "facts are"),
			   n == 1 ? "it" : "them");
	document_end(out);
}

/*
 * What root could read, and what is cut off, is named, because a person can do something about it;
 * the rest is counted.
 */
static void add_unseen(struct document *out, const struct diagnosis *d, bool verbose)
{
	static const char *const heads[] = {
		[UNSEEN_WITHOUT_ROOT] = "Unknown without root:",
		[UNSEEN_CUT_OFF] = "Unknown because a text is cut off:",
	};
	struct strbuf others AUTO_STRBUF = {0};
	size_t n = list_unseen(&others, d, UNSEEN_OTHERS, verbose), named_n = 0;

	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		struct strbuf named AUTO_STRBUF = {0};
		size_t k = list_unseen(&named, d, (enum unseen)i, verbose);

		named_n += k;
		if (k && verbose)
			add_reasons(out, heads[i], strbuf_str(&named));
		else if (k)
			document_paragraph(out, STYLE_PLAIN, 0, "%s %s", heads[i],
					   strbuf_str(&named));
	}
	if (n && verbose)
		add_reasons(out, "Unknown:", strbuf_str(&others));
	else if (n)
		add_unseen_line(out, n, named_n);
}

static size_t count_nvml(const struct machine *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->gpu_n; i++)
		n += fact_known(m->gpus[i].nvml_index);
	return n;
}

/* Only where somebody sees fewer than are on the bus. */
static void add_gpus_seen(struct document *out, const struct machine *m)
{
	struct strbuf b AUTO_STRBUF = {0};
	size_t nvml = count_nvml(m);
	bool driven = fact_known(m->driver.gpus_in_proc), asked = fact_known(m->driver.nvml);

	if (!m->gpu_n || m->text_part_n ||
	    ((!driven || m->driver.gpus_in_proc.value == (int64_t)m->gpu_n) &&
	     (!asked || nvml == m->gpu_n)))
		return;
	strbuf_printf(&b, "%zu on the PCI bus", m->gpu_n);
	if (driven)
		strbuf_printf(&b, ", %" PRId64 " bound to the nvidia module",
			      m->driver.gpus_in_proc.value);
	if (asked)
		strbuf_printf(&b, ", %zu visible to NVML", nvml);
	document_item(out, STYLE_WARN, 0, "GPUs:    ", "%s", strbuf_str(&b));
}

static const struct {
	const char *what;
	bool yes_or_no;
	const char *one, *many; /* NULL: "time", "times" */
} observed_kinds[OBSERVED_KIND_N] = {
	[OBSERVED_PEER_COPY] = {"correct data", true},
	[OBSERVED_PEER_ACCESS] = {"peer access", true},
	[OBSERVED_BANDWIDTH] = {"bandwidth", false},
	[OBSERVED_BOTH_WAYS] = {"bandwidth both ways", false},
	[OBSERVED_RATE] = {"copies much slower than expected", false},
	[OBSERVED_LATENCY] = {"latency", false},
	[OBSERVED_NCCL_TRANSPORT] = {"NCCL used P2P for", true, "connection", "connections"},
	[OBSERVED_RUN_FAILURE] = {"failures of a run", false},
	[OBSERVED_NCCL_WARNING] = {"NCCL warnings", false},
	[OBSERVED_NCCL_GDR_OFF] = {"lines of NCCL without GPUDirect RDMA", false},
	[OBSERVED_NCCL_GDR_HALF] = {"hosts that use GPUDirect RDMA at the other end only", false},
	[OBSERVED_MESSAGE] = {"messages of tools", false},
};

/* "peer access 56 of 56 times", "NCCL used P2P for 0 of 4 connections" */
static void add_seen_kind(struct strbuf *b, const struct machine *m, enum observed_kind kind)
{
	size_t n = 0, ok = 0;

	for (size_t i = 0; i < m->observed_n; i++) {
		n += m->observed[i].kind == kind;
		ok += m->observed[i].kind == kind && m->observed[i].ok;
	}
	if (!n)
		return;
	strbuf_printf(b, "%s%s ", b->len ? ", " : "", observed_kinds[kind].what);
	if (observed_kinds[kind].yes_or_no)
		strbuf_printf(b, "%zu of ", ok);
	strbuf_printf(b, "%zu %s", n,
		      observed_kinds[kind].one
			      ? text_plural(n, observed_kinds[kind].one, observed_kinds[kind].many)
			      : text_plural(n, "time", "times"));
}

/* Its own answer, not what is to be thought of its yes. */
static bool driver_says_no(const struct path *p)
{
	enum chain_reason r = p->chain[CHAIN_DRIVER].reason;

	return p->chain[CHAIN_DRIVER].state == CHAIN_BAD &&
	       (r == REASON_DRIVER_STATUS || r == REASON_DRIVER_GEFORCE ||
		r == REASON_DRIVER_ABSENT);
}

/* What went well although the driver says that it cannot. */
static size_t count_contradicted(const struct topology *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->machine->observed_n; i++) {
		const struct observed *o = &t->machine->observed[i];

		n += observed_kinds[o->kind].yes_or_no && o->ok && o->initiator >= 0 &&
		     o->target >= 0 &&
		     driver_says_no(topology_path(t, (size_t)o->initiator, (size_t)o->target));
	}
	return n;
}

/* The lines on results below say where all of it is from. */
static bool names_runs(const struct machine *m)
{
	for (size_t i = 0; i < m->observed_n; i++)
		if (!*m->observed[i].run.when)
			return false;
	for (size_t i = 0; i < m->weighed_n; i++)
		if (m->weighed[i].kept && m->weighed[i].observed_n)
			return true;
	return false;
}

/* What was weighed, so that nobody takes results that change nothing for results not read. */
static void add_seen(struct document *out, const struct topology *t)
{
	const struct machine *m = t->machine;
	size_t contradicted = count_contradicted(t);
	struct strbuf b AUTO_STRBUF = {0};

	if (!m->observed_n)
		return;
	for (size_t k = 0; k < sizeof(observed_kinds) / sizeof(observed_kinds[0]); k++)
		add_seen_kind(&b, m, (enum observed_kind)k);
	if (contradicted)
		strbuf_printf(&b, "; the driver's answer contradicts %zu of these", contradicted);
	if (!names_runs(m))
		strbuf_printf(&b, " (from %s)", m->observed[0].from);
	document_item(out, contradicted ? STYLE_WARN : STYLE_DIM, 0, "Seen:    ", "%s",
		      strbuf_str(&b));
}

/*
 * Copies that used their paths. What is refused or staged goes through host memory and tells
 * nothing.
 */
static void add_measured(struct document *out, const struct topology *t)
{
	double least = 0, most = 0, share = 0;
	bool checked = true;
	char rates[64];
	size_t n = 0;

	for (size_t i = 0; i < t->machine->observed_n; i++) {
		const struct observed *o = &t->machine->observed[i];
		const struct path *p;

		if (o->kind != OBSERVED_BANDWIDTH || o->initiator < 0 || o->target < 0 ||
		    o->gain == OBSERVED_GAINS_NOTHING)
			continue;
		p = topology_path(t, (size_t)o->initiator, (size_t)o->target);
		if (path_is_refused(p))
			continue;
		checked = checked && p->chain[CHAIN_OBSERVED].reason == REASON_OBSERVED_WORKS;
		p = topology_data_path(t, o);
		if (p->expected_gbps <= 0)
			continue;
		least = !n || o->value < least ? o->value : least;
		most = o->value > most ? o->value : most;
		share = !n || o->value / p->expected_gbps < share ? o->value / p->expected_gbps
								  : share;
		n++;
	}
	if (!n)
		return;
	snprintf(rates, sizeof(rates), least < most ? "%.3g to %.3g" : "%.3g", least, most);
	document_item(out, STYLE_DIM, 0, "Measured:",
		      "%zu %s between GPUs, %s GB/s, at least %.0f %% of the expected rate%s", n,
		      text_plural(n, "copy", "copies"), rates, 100 * share,
		      checked ? "" : "; their data was not checked (run onehop test)");
}

/* BEGIN onehop fix WORDS RULES END */
static const struct {
	const char *begin, *words, *end;
} answer_texts[PLAN_ANSWER_N] = {
	[PLAN_ANSWERS_STEPS] = {"", "shows what it can change for ",
				"; nothing is changed without --apply."},
	[PLAN_ANSWERS_ON_REQUEST] = {"Optional (may not help): ", "", "."},
	[PLAN_ANSWERS_LEFT_OUT] = {"", "shows what prevents it from changing ", "."},
	[PLAN_ANSWERS_SET] = {"Nothing is left to ", "for ",
			      ": it is already set and waits for a reboot or a new session."},
};

/* What fix itself answers; by-hand work is in the findings already. */
static void add_fixes(struct document *out, const struct diagnosis *d, const struct check_fixes *f)
{
	for (int a = 0; a < PLAN_ANSWER_N; a++) {
		struct strbuf ids AUTO_STRBUF = {0};
		const char *between = a == PLAN_ANSWERS_ON_REQUEST ? " " : ", ";

		for (size_t i = 0; answer_texts[a].begin && i < d->finding_n; i++) {
			const char *id = d->findings[i].rule->id;

			if (finding_is_first_of_rule(d, i) &&
			    (int)plan_answer(f->plan, f->changes, id) == a &&
			    (a == PLAN_ANSWERS_STEPS || d->findings[i].severity > SEVERITY_INFO))
				strbuf_printf(&ids, "%s%s", ids.len ? between : "", id);
		}
		if (ids.len)
			document_paragraph(out, STYLE_PLAIN, 0, "%sonehop fix %s%s%s%s%s",
					   answer_texts[a].begin,
					   f->no_store ? "--no-observed " : "",
					   f->observed ? "--observed FILE " : "",
					   answer_texts[a].words, strbuf_str(&ids),
					   answer_texts[a].end);
	}
}

void report_verdict(struct document *out, const struct diagnosis *d)
{
	char sentence[1024];

	for (enum endpoint_kind with = ENDPOINT_GPU; with <= ENDPOINT_NIC; with++)
		if (*diagnosis_verdict_with(d, with, sentence, sizeof(sentence)))
			document_paragraph(out, verdict_style(d, with), 0, "%s.", sentence);
	if (diagnosis_unexplained(d))
		document_paragraph(
			out, STYLE_BAD, 0,
			"No finding here explains the blocked pairs; run onehop topo to see what "
			"blocks each.");
}

/* ---- all rules, for --verbose ---- */

static const enum style outcome_styles[VERDICT_N] = {
	[VERDICT_NA] = STYLE_DIM,
	[VERDICT_OK] = STYLE_GOOD,
	[VERDICT_UNKNOWN] = STYLE_WARN,
	[VERDICT_BAD] = STYLE_BAD,
};

static void add_not_applicable(struct document *out, const struct diagnosis *d)
{
	struct strbuf b AUTO_STRBUF = {0};

	for (size_t i = 0; i < d->outcome_n; i++)
		if (d->outcomes[i].verdict == VERDICT_NA)
			strbuf_printf(&b, "%s%s", b.len ? ", " : "", d->outcomes[i].rule->id);
	if (b.len)
		document_item(out, STYLE_DIM, 0, "Not applicable:", "%s", strbuf_str(&b));
}

static void add_outcomes(struct document *out, const struct diagnosis *d)
{
	document_blank(out);
	document_heading(out, "Rules, by the good state that they check");
	document_table(out, 0, 3, 2);
	for (size_t i = 0; i < d->outcome_n; i++) {
		const struct outcome *o = &d->outcomes[i];

		if (o->verdict == VERDICT_NA)
			continue;
		document_row(out);
		document_cell(out, outcome_styles[o->verdict], "%s",
			      o->verdict == VERDICT_BAD ? "found" : verdict_word(o->verdict));
		document_cell(out, STYLE_PLAIN, "%s", o->rule->id);
		document_cell(out, STYLE_DIM, "%s", o->rule->title);
	}
	add_not_applicable(out, d);
}

/* Where registers leave pairs open, transfers decide; without a GPU, the bus and the slot. */
static void add_next(struct document *out, const struct diagnosis *d)
{
	const struct machine *m = d->topology->machine;
	struct pair_counts counts;

	topology_count(d->topology, &counts);
	if (counts.by_verdict[PAIR_UNDECIDED] || counts.by_verdict[PAIR_SUSPECT])
		document_item(out, STYLE_STRONG, 0, "Next:    ", "%s",
			      m->recorded ? "on that machine, onehop test copies data and checks it"
					  : "onehop test transfers data and checks what arrives");
	else if (!m->gpu_n && !m->recorded)
		document_item(
			out, STYLE_STRONG, 0, "Next:    ",
			"if a GPU is installed, see whether `lspci -d 10de:` lists it; if "
			"not, check its slot and power. To check another machine: onehop check "
			"--from FILE");
}

void report_questions(struct document *out, const struct diagnosis *d)
{
	struct question q[QUESTIONS_MAX];
	size_t n = diagnosis_ask(d, q);
	AUTO_STRBUF struct strbuf lines = {0};

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&lines, "%s  # %s\n", q[i].command, q[i].tells);
	if (!n)
		strbuf_printf(&lines, "# %s\n",
			      d->topology->gpu_n || d->topology->machine->text_part_n
				      ? "no command would decide more"
				      : "no NVIDIA GPU found: there is nothing to ask");
	document_verbatim(out, 0, strbuf_str(&lines));
}

/* Of a machine that texts describe: it is another one, and its owner can send more of them. */
static void add_questions(struct document *out, const struct diagnosis *d)
{
	struct question q[QUESTIONS_MAX];
	size_t n = d->topology->machine->text_part_n ? diagnosis_ask(d, q) : 0;

	if (!n)
		return;
	document_blank(out);
	document_paragraph(out, STYLE_PLAIN, 0, "The output of %s would tell more:",
			   text_plural(n, "this command", "these commands"));
	for (size_t i = 0; i < n; i++)
		document_item(out, STYLE_STRONG, 2, "ask", "%s: `%s`", q[i].tells, q[i].command);
}

/* The answer of a page, in front of the machine. */
static void add_lead(struct document *out, const struct diagnosis *d)
{
	char sentence[1024];

	add_machine_head(out, d->topology->machine, "GPU peer-to-peer");
	for (enum endpoint_kind with = ENDPOINT_GPU; with <= ENDPOINT_NIC; with++)
		if (*diagnosis_verdict_with(d, with, sentence, sizeof(sentence)))
			document_lead(out, verdict_style(d, with), "%s.", sentence);
}

/* What text shows with -v, folded behind the rest. */
void report_check_details(struct document *out, const struct diagnosis *d, bool verbose)
{
	if (!document_is_page(out))
		return;
	add_drawing(out, d);
	document_section(out, "details", "Details");
	document_begin(out, GROUP_FOLD, STYLE_PLAIN, "unknown", "What is unknown, and why");
	add_unseen(out, d, true);
	document_end(out);
	if (!verbose) {
		document_begin(out, GROUP_FOLD, STYLE_PLAIN, "rules", "All rules");
		add_outcomes(out, d);
		document_end(out);
	}
	document_begin(out, GROUP_FOLD, STYLE_PLAIN, "platform", "Platform");
	add_recording_note(out, d->topology->machine);
	add_platform(out, d->topology->machine, true);
	document_end(out);
}

void report_check(struct document *out, const struct diagnosis *d, const struct check_fixes *fixes,
		  bool verbose)
{
	report_check_body(out, d, fixes, verbose);
	report_check_details(out, d, verbose);
}

void report_check_body(struct document *out, const struct diagnosis *d,
		       const struct check_fixes *fixes, bool verbose)
{
	const struct topology *t = d->topology;

	add_lead(out, d);
	add_recorded(out, t->machine);
	if (verbose)
		add_recording_note(out, t->machine);
	add_texts_read(out, t->machine, verbose);
	add_machine_line(out, t->machine);
	add_numbering(out, t->machine);
	if (!t->gpu_n || verbose)
		add_platform(out, t->machine, verbose);
	document_section(out, "pairs", "Pairs");
	add_pairs(out, t);
	document_blank(out);
	document_begin(out, GROUP_TEXT, STYLE_PLAIN, NULL, "%s", "");
	report_verdict(out, d);
	document_end(out);
	add_gpus_seen(out, t->machine);
	add_seen(out, t);
	report_weighed(out, t->machine);
	add_measured(out, t);
	document_section(out, "findings", d->finding_n ? "Findings" : "No findings");
	add_findings(out, d, verbose);
	if (verbose)
		add_outcomes(out, d);
	document_blank(out);
	if (fixes)
		add_fixes(out, d, fixes);
	add_unseen(out, d, verbose);
	add_next(out, d);
	add_questions(out, d);
}
