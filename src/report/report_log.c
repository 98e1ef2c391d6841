/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop log` prints: how NCCL's ranks reach each other, why not by P2P, and what to do. */
#include "report/report_json_impl.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "diagnose/run_failure.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Columns of the matrix that fit into 80. */
#define BLOCK_COLUMNS 8
/* Lines of a kind without --verbose. */
#define MAX_SHOWN 4

static const enum style way_styles[NCCL_WAY_N] = {
	[NCCL_WAY_NONE] = STYLE_DIM,     [NCCL_WAY_DIRECT] = STYLE_GOOD,
	[NCCL_WAY_PEER] = STYLE_GOOD,    [NCCL_WAY_RELAYED] = STYLE_WARN,
	[NCCL_WAY_HOST] = STYLE_BAD,     [NCCL_WAY_NIC_GDR] = STYLE_WARN,
	[NCCL_WAY_NIC_HOST] = STYLE_BAD,
};

static const char *const way_meanings[NCCL_WAY_N] = {
	[NCCL_WAY_DIRECT] = "direct: P2P within one process",
	[NCCL_WAY_PEER] = "peer: P2P between processes",
	[NCCL_WAY_RELAYED] = "relayed: P2P through a third GPU",
	[NCCL_WAY_HOST] = "host: through host memory (SHM)",
	[NCCL_WAY_NIC_GDR] = "nic-gdr: through a NIC that reads and writes GPU memory",
	[NCCL_WAY_NIC_HOST] = "nic-host: through host memory and a NIC or socket",
};

/* What each reason means and what to do; IDs are those of `onehop check`. */
static const struct {
	const char *why, *todo;
} reasons[NCCL_REASON_N] = {
	[NCCL_REASON_ENVIRONMENT] =
		{"A variable disables P2P in NCCL.",
		 "Unset it where it is set: the environment, ~/.nccl.conf, /etc/nccl.conf or "
		 "the container's image (onehop check --explain nccl-p2p-disabled, "
		 "nccl-level)."},
	[NCCL_REASON_LEVEL] =
		{"The driver allows P2P, but the pair is beyond NCCL's distance limit: from "
		 "2.23 on that is PCIe switches (PXB).",
		 "Set NCCL_P2P_LEVEL=SYS and measure with and without it (onehop check --explain "
		 "nccl-level)."},
	[NCCL_REASON_DRIVER] =
		{"The driver does not offer P2P.",
		 "Run onehop check on the machine: p2p-geforce, p2p-chipset, p2p-gpu, "
		 "p2p-topology and p2p-regkey explain why."},
	[NCCL_REASON_CONTAINER] =
		{"The ranks use a network device within one host: they do not share /dev/shm, "
		 "or see different hosts.",
		 "Put the ranks into one container, or give the containers one IPC namespace and "
		 "/dev/shm (--ipc=host; onehop check --explain container, shm-size)."},
	[NCCL_REASON_UNKNOWN] =
		{"The log does not show whether the driver or NCCL's distance limit (level) "
		 "refuses; NCCL 2.28.7 and later show it.",
		 "Run onehop check on the machine: it checks both. If it shows the pairs as "
		 "direct, set NCCL_P2P_LEVEL=SYS (nccl-level)."},
};

/* ---- devices ---- */

/* Hosts are looked at one by one: devices are sorted by them. */
static size_t host_end(const struct nccl_log *l, size_t first)
{
	size_t i = first;

	while (i < l->device_n && strcmp(l->devices[i].host, l->devices[first].host) == 0)
		i++;
	return i;
}

/* As nvidia-smi numbers them; without its number the rank. */
static void add_name(struct strbuf *b, const struct nccl_device *d)
{
	if (d->nvml_index >= 0)
		strbuf_printf(b, "GPU%d", d->nvml_index);
	else
		strbuf_printf(b, "rank%d", d->rank);
}

static void add_name_cell(struct document *out, enum style style, const struct nccl_device *d)
{
	struct strbuf b AUTO_STRBUF = {0};

	add_name(&b, d);
	document_cell(out, style, "%s", strbuf_str(&b));
}

static void add_number_cell(struct document *out, int n)
{
	if (n < 0)
		document_cell(out, STYLE_DIM, "?");
	else
		document_cell(out, STYLE_PLAIN, "%d", n);
}

static void add_devices(struct document *out, const struct nccl_log *l, size_t first, size_t last)
{
	static const char *const header[] = {"", "PCI address", "rank", "CUDA", "process"};

	document_table(out, 0, 5, 2);
	document_titles(out, header);
	for (size_t i = first; i < last; i++) {
		const struct nccl_device *d = &l->devices[i];

		document_row(out);
		add_name_cell(out, STYLE_STRONG, d);
		document_cell(out, STYLE_PLAIN, "%s", d->pci ? d->pci : "?");
		add_number_cell(out, d->rank);
		add_number_cell(out, d->cuda_ordinal);
		add_number_cell(out, d->pid);
	}
}

/* ---- the matrix ---- */

/* More than one kind of way between the two. */
static bool is_mixed(const struct nccl_pair *p)
{
	unsigned kinds = 0;

	for (int way = 0; way < NCCL_WAY_N; way++)
		kinds += p->connections[way] != 0;
	return kinds > 1;
}

static void add_pair_cell(struct document *out, const struct nccl_log *l, size_t i, size_t j)
{
	const struct nccl_pair *p = nccl_log_pair(l, i, j);
	enum nccl_way way = nccl_pair_way(p);

	if (i == j)
		document_cell(out, STYLE_DIM, "X");
	else if (way == NCCL_WAY_NONE)
		document_cell(out, STYLE_DIM, "-");
	else
		document_cell(out, way_styles[way], "%s%s", nccl_way_word(way),
			      is_mixed(p) ? "*" : "");
}

static void add_matrix_block(struct document *out, const struct nccl_log *l, size_t first,
			     size_t last, size_t from, size_t to)
{
	document_matrix(out, 1 + to - from, 1);
	document_row(out);
	document_cell(out, STYLE_DIM, "%s", "");
	for (size_t j = from; j < to; j++)
		add_name_cell(out, STYLE_DIM, &l->devices[j]);
	for (size_t i = first; i < last; i++) {
		document_row(out);
		add_name_cell(out, STYLE_PLAIN, &l->devices[i]);
		for (size_t j = from; j < to; j++)
			add_pair_cell(out, l, i, j);
	}
}

static void add_legend(struct document *out, const struct nccl_log *l)
{
	struct strbuf b AUTO_STRBUF = {0};
	bool mixed = false, seen[NCCL_WAY_N] = {0};

	for (size_t i = 0; i < l->device_n * l->device_n; i++) {
		seen[nccl_pair_way(&l->pairs[i])] = true;
		mixed = mixed || is_mixed(&l->pairs[i]);
	}
	strbuf_puts(&b, "Row sends to column.");
	for (int way = NCCL_WAY_NONE + 1; way < NCCL_WAY_N; way++) {
		if (seen[way])
			strbuf_printf(&b, " %s.", way_meanings[way]);
	}
	strbuf_puts(&b, mixed ? " *: some connections are better. -: not in the log."
			      : " -: not in the log.");
	document_paragraph(out, STYLE_DIM, 0, "%s", strbuf_str(&b));
}

static void add_host(struct document *out, const struct nccl_log *l, size_t first, size_t last)
{
	document_blank(out);
	if (*l->devices[first].host)
		document_paragraph(out, STYLE_STRONG, 0, "%s", l->devices[first].host);
	add_devices(out, l, first, last);
	for (size_t from = first; from < last; from += BLOCK_COLUMNS) {
		document_blank(out);
		add_matrix_block(out, l, first, last, from,
				 last - from > BLOCK_COLUMNS ? from + BLOCK_COLUMNS : last);
	}
}

static void add_hosts(struct document *out, const struct nccl_log *l)
{
	for (size_t first = 0; first < l->device_n; first = host_end(l, first))
		add_host(out, l, first, host_end(l, first));
	if (l->device_n) {
		document_blank(out);
		add_legend(out, l);
	}
}

/* ---- why not ---- */

/* "nodeB: GPU0 -> GPU1 by SHM/direct/direct (line 41)"; the host where there are several */
static void add_example(struct strbuf *b, const struct nccl_log *l, size_t pair)
{
	const struct nccl_pair *p = &l->pairs[pair];

	if (host_end(l, 0) < l->device_n)
		strbuf_printf(b, "%s: ", l->devices[pair / l->device_n].host);
	add_name(b, &l->devices[pair / l->device_n]);
	strbuf_puts(b, " -> ");
	add_name(b, &l->devices[pair % l->device_n]);
	strbuf_printf(b, " by %s (line %u)", p->transports, p->line);
}

static void add_evidence(struct strbuf *b, const struct nccl_pair *p)
{
	for (size_t i = 0; i < 4 && p->evidence[i]; i++)
		strbuf_printf(b, "%s%u",
			      i                ? ", "
			      : p->evidence[1] ? "lines "
					       : "line ",
			      p->evidence[i]);
}

static void add_reason(struct document *out, const struct nccl_log *l, enum nccl_reason reason,
		       size_t count)
{
	struct strbuf example AUTO_STRBUF = {0}, evidence AUTO_STRBUF = {0};
	const struct nccl_pair *p = l->pairs;

	while (p->reason != reason) /* `count` of them have it */
		p++;
	add_example(&example, l, (size_t)(p - l->pairs));
	add_evidence(&evidence, p);
	document_blank(out);
	document_item(out, STYLE_BAD, 0, "not P2P:", "%s", strbuf_str(&example));
	if (count > 1)
		document_paragraph(out, STYLE_PLAIN, 10, "and %zu more ordered %s", count - 1,
				   text_plural(count - 1, "pair", "pairs"));
	document_item(out, STYLE_STRONG, 2, p->certain ? "why:  " : "likely:", "%s (%s)",
		      reasons[reason].why, strbuf_str(&evidence));
	document_item(out, STYLE_STRONG, 2, p->certain ? "do:   " : "do:    ", "%s",
		      reasons[reason].todo);
}

static void add_reasons(struct document *out, const struct nccl_log *l,
			const struct nccl_log_counts *counts)
{
	for (int r = NCCL_REASON_NONE + 1; r < NCCL_REASON_N; r++) {
		if (counts->reasons[r])
			add_reason(out, l, (enum nccl_reason)r, counts->reasons[r]);
	}
}

/* ---- how it ended ---- */

/* But for the rank. */
static bool same_failure(const struct run_failure *a, const struct run_failure *b)
{
	return a->kind == b->kind && a->code == b->code && a->sequence == b->sequence &&
	       strcmp(a->what, b->what) == 0;
}

/* Whether an earlier line says it of another rank. */
static bool is_reported(const struct nccl_log *l, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (same_failure(&l->failures[k].failure, &l->failures[i].failure))
			return true;
	return false;
}

/* ", ranks 0, 3 (line 41)": of all that say the same; the line is the first's. */
static void add_ranks(struct strbuf *b, const struct nccl_log *l, size_t i)
{
	const struct nccl_log_failure *first = &l->failures[i];
	struct strbuf ranks AUTO_STRBUF = {0};
	size_t n = 0;

	for (size_t k = i; k < l->failure_n; k++) {
		const struct run_failure *f = &l->failures[k].failure;

		if (same_failure(f, &first->failure) && f->rank >= 0)
			strbuf_printf(&ranks, "%s%d", n++ ? ", " : "", f->rank);
	}
	if (n)
		strbuf_printf(b, ", %s %s", text_plural(n, "rank", "ranks"), strbuf_str(&ranks));
	strbuf_printf(b, " (line %u)", first->line);
}

static void add_failure(struct document *out, const struct nccl_log *l, size_t i)
{
	struct strbuf b AUTO_STRBUF = {0};
	char text[512];

	strbuf_puts(&b, run_failure_text(&l->failures[i].failure, text, sizeof(text)));
	add_ranks(&b, l, i);
	document_item(out, STYLE_BAD, 0, "failed:", "%s", strbuf_str(&b));
}

static bool is_p2p_off(const struct nccl_log *l)
{
	for (size_t i = 0; i < l->setting_n; i++)
		if (strcmp(l->settings[i].name, "NCCL_P2P_DISABLE") == 0)
			return strtol(l->settings[i].value, NULL, 0) == 1;
	return false;
}

/* What failures of one kind mean, once behind them. */
static void add_meaning(struct document *out, const struct nccl_log *l,
			const struct run_failure_meaning *m)
{
	const struct run_failure_facts known = {.p2p_off = is_p2p_off(l)};

	if (!m)
		return;
	document_item(out, STYLE_STRONG, 2, "means:", "%s.", m->meaning);
	document_item(out, STYLE_STRONG, 2, "do:   ", "%s.", run_failure_todo(m, known));
}

/* Before all else: what was slow or went another way matters once the run ends well. */
static void add_failures(struct document *out, const struct nccl_log *l, bool verbose)
{
	const struct run_failure_meaning *last = NULL;
	size_t shown = 0, more = 0;

	for (size_t i = 0; i < l->failure_n; i++) {
		const struct run_failure_meaning *m = run_failure_find(&l->failures[i].failure);

		if (is_reported(l, i))
			continue;
		if (!verbose && shown == MAX_SHOWN) {
			more++;
			continue;
		}
		if (m != last)
			add_meaning(out, l, last);
		last = m;
		add_failure(out, l, i);
		shown++;
	}
	add_meaning(out, l, last);
	if (more)
		document_paragraph(out, STYLE_DIM, 0, "%zu more (-v)", more);
	if (shown)
		document_blank(out);
}

/* ---- what else ---- */

static void add_notes(struct document *out, const char *title, const struct nccl_log_notes *notes,
		      bool verbose)
{
	size_t shown = verbose || notes->n <= MAX_SHOWN ? notes->n : MAX_SHOWN;

	if (!notes->n)
		return;
	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "%s", title);
	for (size_t i = 0; i < shown; i++)
		document_paragraph(out, STYLE_PLAIN, 2, "line %u: %s", notes->items[i].line,
				   notes->items[i].text);
	if (shown < notes->n)
		document_paragraph(out, STYLE_DIM, 2, "%zu more (-v)", notes->n - shown);
}

/* Of each rank, because a collective is one call on each of them. */
static void add_shim(struct document *out, const struct nccl_log *l, bool verbose)
{
	const struct nccl_log_shim_calls *c = &l->shim_calls;
	char range[64];

	if (!l->shim.n)
		return;
	add_notes(out, "onehop's NCCL shim", &l->shim, verbose);
	if (c->ended && c->least == c->most)
		snprintf(range, sizeof(range), "%" PRId64, c->least);
	else
		snprintf(range, sizeof(range), "%" PRId64 " to %" PRId64, c->least, c->most);
	if (c->ended)
		document_paragraph(
			out, STYLE_PLAIN, 2,
			"line %u: took over %s %s in each rank of a communicator, %" PRId64
			" in %zu %s; passed on %" PRId64,
			c->line, range, text_plural((size_t)c->most, "call", "calls"), c->taken,
			c->ended, text_plural(c->ended, "rank", "ranks"), c->passed);
	if (c->ended < c->begun)
		document_paragraph(
			out, STYLE_PLAIN, 2,
			"%zu of %zu ranks wrote no count, which they do when a communicator is destroyed",
			c->begun - c->ended, c->begun);
}

static void add_settings(struct document *out, const struct nccl_log *l)
{
	if (!l->setting_n)
		return;
	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "Set for NCCL");
	for (size_t i = 0; i < l->setting_n; i++)
		document_paragraph(out, STYLE_PLAIN, 2, "line %u: %s=%s", l->settings[i].line,
				   l->settings[i].name, l->settings[i].value);
}

static void add_head(struct document *out, const struct nccl_log *l)
{
	document_paragraph(out, STYLE_PLAIN, 0, "%s: NCCL %s; %zu %s, %zu %s, %zu %s of NCCL%s",
			   l->name, *l->version ? l->version : "of unknown version",
			   l->communicators,
			   text_plural(l->communicators, "communicator", "communicators"),
			   l->device_n, text_plural(l->device_n, "GPU", "GPUs"), l->lines,
			   text_plural(l->lines, "line", "lines"), l->reduced ? " kept" : "");
}

/* Without a connection in the log, what NCCL found before connecting. */
static void add_unconnected(struct document *out, const struct nccl_log *l)
{
	if (l->check.direct == 1)
		document_paragraph(
			out, STYLE_GOOD, 0,
			"No connection was made, but NCCL found P2P possible for all pairs (line %u).",
			l->check.line);
	else if (l->check.direct == 0)
		document_paragraph(
			out, STYLE_BAD, 0,
			"No connection was made, but NCCL found pairs without P2P (line %u)%s",
			l->check.line,
			l->check.cuda == 1
				? "; the driver allows it for all, but NCCL's level does not (nccl-level)."
			: l->check.cuda == 0 ? "; the driver does not allow it for all."
					     : ".");
	else
		document_paragraph(out, STYLE_BAD, 0,
				   "The log shows no connection between GPUs. NCCL logs them with "
				   "NCCL_DEBUG=INFO, from 2.22 on when a collective first runs.");
}

static void add_verdict(struct document *out, const struct nccl_log *l,
			const struct nccl_log_counts *c)
{
	document_blank(out);
	if (!c->pairs && !c->across)
		add_unconnected(out, l);
	if (c->pairs)
		document_paragraph(out, c->p2p == c->pairs ? STYLE_GOOD : STYLE_BAD, 0,
				   "%zu of %zu connected pairs within a host use P2P.", c->p2p,
				   c->pairs);
	if (c->across)
		document_paragraph(out, STYLE_PLAIN, 0,
				   "%zu of %zu connected pairs between hosts use GPUDirect RDMA.",
				   c->gdr, c->across);
}

static void add_limits(struct document *out, const struct nccl_log *l)
{
	if (l->left_out)
		document_paragraph(out, STYLE_WARN, 0,
				   "It has more different errors or messages than are kept: %zu "
				   "%s left out.",
				   l->left_out, text_plural(l->left_out, "line is", "lines are"));
	if (l->lost)
		document_paragraph(out, STYLE_WARN, 0,
				   "It has more lines that differ than are kept; what the others "
				   "say is unknown.");
}

void report_log(struct document *out, const struct nccl_log *l, bool verbose)
{
	struct nccl_log_counts counts;

	nccl_log_count(l, &counts);
	add_failures(out, l, verbose);
	add_head(out, l);
	add_limits(out, l);
	add_hosts(out, l);
	add_reasons(out, l, &counts);
	add_settings(out, l);
	add_notes(out, "The driver refused", &l->refusals, verbose);
	add_notes(out, "Warnings", &l->warnings, verbose);
	add_notes(out, "Network", &l->network, verbose);
	add_shim(out, l, verbose);
	if (verbose) {
		add_notes(out, "GPUDirect RDMA", &l->gdr, true);
		add_notes(out, "NVLink multicast", &l->nvls, true);
		add_notes(out, "Channels", &l->channels, true);
		add_notes(out, "Choices", &l->choices, true);
	}
	add_verdict(out, l, &counts);
}

/* ---- JSON ---- */

static json_t *index_json(int i)
{
	return i < 0 ? json_null() : json_integer(i);
}

static json_t *flag_json(int i)
{
	return i < 0 ? json_null() : json_boolean(i);
}

static json_t *device_json(const struct nccl_device *d)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "host", json_known_text(d->host), "pci",
			 json_text(d->pci), "rank", index_json(d->rank), "nvml_index",
			 index_json(d->nvml_index), "cuda_ordinal", index_json(d->cuda_ordinal),
			 "pid", index_json(d->pid));
}

static json_t *pair_json(const struct nccl_log *l, size_t i, size_t j)
{
	const struct nccl_pair *p = nccl_log_pair(l, i, j);
	json_t *evidence = json_array(), *connections = json_object();

	for (size_t k = 0; k < 4 && p->evidence[k]; k++)
		json_array_append_new(evidence, json_integer(p->evidence[k]));
	for (int way = NCCL_WAY_NONE + 1; way < NCCL_WAY_N; way++)
		json_object_set_new(connections, nccl_way_word((enum nccl_way)way),
				    json_integer(p->connections[way]));
	return json_pack("{s:I, s:I, s:b, s:s, s:o, s:o, s:i, s:o, s:b, s:o}", "from",
			 (json_int_t)i, "to", (json_int_t)j, "same_host",
			 (int)nccl_log_same_host(l, i, j), "way", nccl_way_word(nccl_pair_way(p)),
			 "connections", connections, "transports", json_text(p->transports), "line",
			 (int)p->line, "why_not_p2p",
			 p->reason ? json_text(nccl_reason_word(p->reason)) : json_null(),
			 "certain", (int)p->certain, "evidence", evidence);
}

static json_t *notes_json(const struct nccl_log_notes *notes)
{
	json_t *array = json_array();

	for (size_t i = 0; i < notes->n; i++)
		json_array_append_new(array, json_pack("{s:o, s:i, s:i}", "text",
						       json_text(notes->items[i].text), "line",
						       (int)notes->items[i].line, "count",
						       (int)notes->items[i].count));
	return array;
}

static json_t *shim_calls_json(const struct nccl_log_shim_calls *c)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "ranks_begun", (json_int_t)c->begun,
			 "ranks_counted", (json_int_t)c->ended, "taken", (json_int_t)c->taken,
			 "passed", (json_int_t)c->passed, "taken_least", (json_int_t)c->least,
			 "taken_most", (json_int_t)c->most);
}

static json_t *failures_json(const struct nccl_log *l)
{
	json_t *array = json_array();

	for (size_t i = 0; i < l->failure_n; i++) {
		const struct nccl_log_failure *x = &l->failures[i];
		json_t *o = run_failure_json(&x->failure);

		json_object_set_new(o, "device", index_json(x->device));
		json_object_set_new(o, "line", json_integer(x->line));
		json_object_set_new(o, "count", json_integer(x->count));
		json_array_append_new(array, o);
	}
	return array;
}

static json_t *settings_json(const struct nccl_log *l)
{
	json_t *array = json_array();

	for (size_t i = 0; i < l->setting_n; i++)
		json_array_append_new(array, json_pack("{s:o, s:o, s:i}", "name",
						       json_text(l->settings[i].name), "value",
						       json_text(l->settings[i].value), "line",
						       (int)l->settings[i].line));
	return array;
}

static json_t *counts_json(const struct nccl_log *l)
{
	struct nccl_log_counts c;

	nccl_log_count(l, &c);
	return json_pack("{s:I, s:I, s:I, s:I}", "pairs_in_host", (json_int_t)c.pairs, "p2p",
			 (json_int_t)c.p2p, "pairs_across", (json_int_t)c.across, "gdr",
			 (json_int_t)c.gdr);
}

static void set_notes(json_t *o, const struct nccl_log *l)
{
	json_object_set_new(o, "refusals", notes_json(&l->refusals));
	json_object_set_new(o, "warnings", notes_json(&l->warnings));
	json_object_set_new(o, "network", notes_json(&l->network));
	json_object_set_new(o, "gdr", notes_json(&l->gdr));
	json_object_set_new(o, "nvls", notes_json(&l->nvls));
	json_object_set_new(o, "shim", notes_json(&l->shim));
	json_object_set_new(o, "shim_calls", shim_calls_json(&l->shim_calls));
	json_object_set_new(o, "channels", notes_json(&l->channels));
	json_object_set_new(o, "choices", notes_json(&l->choices));
}

json_t *report_log_json(const struct nccl_log *l)
{
	json_t *o = json_head("log"), *devices = json_array(), *pairs = json_array();

	for (size_t i = 0; i < l->device_n; i++) {
		json_array_append_new(devices, device_json(&l->devices[i]));
		for (size_t j = 0; j < l->device_n; j++) {
			if (nccl_pair_way(nccl_log_pair(l, i, j)) != NCCL_WAY_NONE)
				json_array_append_new(pairs, pair_json(l, i, j));
		}
	}
	json_object_set_new(o, "name", json_text(l->name));
	json_object_set_new(o, "nccl", json_known_text(l->version));
	json_object_set_new(o, "communicators", json_integer((json_int_t)l->communicators));
	json_object_set_new(o, "devices", devices);
	json_object_set_new(o, "pairs", pairs);
	json_object_set_new(o, "failures", failures_json(l));
	json_object_set_new(o, "counts", counts_json(l));
	json_object_set_new(o, "all_direct_p2p", flag_json(l->check.direct));
	json_object_set_new(o, "all_cuda_p2p", flag_json(l->check.cuda));
	json_object_set_new(o, "settings", settings_json(l));
	set_notes(o, l);
	return o;
}
