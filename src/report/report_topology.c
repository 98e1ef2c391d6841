/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop topo` tells people: the devices, the matrix, and why a pair is not direct. */
#include "report/report_impl.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns of the matrix that fit into 80. */
#define BLOCK_COLUMNS 10
/* Pairs named as examples of one reason. */
#define MAX_EXAMPLES 4
/* Devices named after the first for one reason. */
#define MAX_PLACES 7

/* ---- devices ---- */

static void add_fact_cell(struct document *out, struct fact_int f)
{
	if (fact_known(f))
		document_cell(out, STYLE_PLAIN, "%" PRId64, f.value);
	else
		document_cell(out, STYLE_DIM, fact_absent(f) ? "-" : "?");
}

/* "16.0 GT/s x8 of x16": what it runs at and, where that differs, what it could. */
static void add_link_cell(struct document *out, const struct pci_function *f)
{
	char now[32], best[32];
	bool less = fact_known(f->link_width) && fact_known(f->link_width_max) &&
		    f->link_width.value < f->link_width_max.value;

	if (!fact_known(f->link_speed) && !fact_known(f->link_width)) {
		document_cell(out, STYLE_DIM, "?");
		return;
	}
	pci_link_format(f->link_speed, f->link_width, now, sizeof(now));
	pci_link_format(f->link_speed_max, f->link_width_max, best, sizeof(best));
	if (strcmp(now, best) == 0)
		document_cell(out, STYLE_PLAIN, "%s", now);
	else
		document_cell(out, less ? STYLE_WARN : STYLE_PLAIN, "%s of %s", now, best);
}

static void add_numa_cell(struct document *out, const struct pci_function *f)
{
	if (fact_is(f->numa_node, -1))
		document_cell(out, STYLE_DIM, "-");
	else
		add_fact_cell(out, f->numa_node);
}

static void add_gpus(struct document *out, const struct machine *m)
{
	static const char *const header[] = {"",     "PCI address", "smi",  "CUDA",
					     "BAR1", "VRAM",        "NUMA", "link"};
	char text[64];

	if (!m->gpu_n)
		return;
	document_blank(out);
	document_table(out, 0, 8, 2);
	document_titles(out, header);
	for (size_t i = 0; i < m->gpu_n; i++) {
		const struct gpu *g = &m->gpus[i];

		document_row(out);
		document_cell(out, STYLE_STRONG, "GPU%zu", i);
		document_cell(out, STYLE_PLAIN, "%s", g->pci->name);
		add_fact_cell(out, g->nvml_index);
		add_fact_cell(out, g->cuda_ordinal);
		document_cell(out, STYLE_PLAIN, "%s",
			      bytes_format(g->bar1_bytes, text, sizeof(text)));
		document_cell(out, STYLE_PLAIN, "%s",
			      bytes_format(g->vram_bytes, text, sizeof(text)));
		add_numa_cell(out, g->pci);
		add_link_cell(out, g->pci);
	}
}

static void add_port_cell(struct document *out, const struct rdma_device *r)
{
	struct strbuf b AUTO_STRBUF = {0};

	for (size_t i = 0; i < r->port_n; i++) {
		const struct rdma_port *p = &r->ports[i];

		strbuf_puts(&b, i ? ", " : "");
		if (!fact_known(p->link_layer) && !fact_known(p->state))
			strbuf_putc(&b, '?');
		else
			strbuf_printf(&b, "%s %s", fact_str_or(p->link_layer, "?"),
				      fact_str_or(p->state, "?"));
		if (fact_known(p->rate_mbps))
			strbuf_printf(&b, " %" PRId64 " Gb/s", p->rate_mbps.value / 1000);
	}
	document_cell(out, STYLE_PLAIN, "%s", strbuf_str(&b));
}

static void add_nics(struct document *out, const struct topology *t)
{
	static const char *const header[] = {"", "PCI address", "device", "NUMA", "link", "port"};

	if (t->gpu_n == t->endpoint_n)
		return;
	document_blank(out);
	document_table(out, 0, 6, 2);
	document_titles(out, header);
	for (size_t i = t->gpu_n; i < t->endpoint_n; i++) {
		const struct endpoint *e = &t->endpoints[i];
		const struct rdma_device *r = &t->machine->rdma[e->index];

		document_row(out);
		document_cell(out, STYLE_STRONG, "%s", e->name);
		document_cell(out, STYLE_PLAIN, "%s", e->pci->name);
		document_cell(out, STYLE_PLAIN, "%s", r->name);
		add_numa_cell(out, e->pci);
		add_link_cell(out, e->pci);
		add_port_cell(out, r);
	}
}

/* ---- matrix ---- */

static void add_blocks(struct document *out, const struct topology *t)
{
	size_t n = t->endpoint_n;

	if (n < 2)
		return;
	if (n > MATRIX_MAX_TOPO) {
		document_blank(out);
		add_class_summary(out, t);
		add_page_matrix(out, t);
		return;
	}
	for (size_t first = 0; first < n;) {
		size_t end = first < t->gpu_n ? t->gpu_n : n; /* GPUs and NICs apart if need be */
		size_t last = n - first <= BLOCK_COLUMNS     ? n
			      : end - first <= BLOCK_COLUMNS ? end
							     : first + BLOCK_COLUMNS;

		document_blank(out);
		add_matrix(out, t, n, first, last, false);
		first = last;
	}
	add_matrix_legend(out, t, n);
}

/* ---- speed: pairs that expect the same ---- */

struct speed {
	const struct path *path;
	size_t initiator, target;
};

static int compare_speed(const void *a, const void *b)
{
	const struct path *p = ((const struct speed *)a)->path,
			  *q = ((const struct speed *)b)->path;

	if (p->class != q->class)
		return p->class < q->class ? -1 : 1;
	if (p->expected_gbps != q->expected_gbps)
		return p->expected_gbps > q->expected_gbps ? -1 : 1;
	return (p > q) - (p < q);
}

static bool same_speed(const struct speed *a, const struct speed *b)
{
	return a->path->class == b->path->class && a->path->expected_gbps == b->path->expected_gbps;
}

static struct speed *gpu_speeds(const struct topology *t, size_t *ret_n)
{
	struct speed *all = xcalloc(t->gpu_n * t->gpu_n + 1, sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; i < t->gpu_n; i++) {
		for (size_t j = 0; j < t->gpu_n; j++) {
			if (i != j)
				all[n++] = (struct speed){topology_path(t, i, j), i, j};
		}
	}
	qsort(all, n, sizeof(*all), compare_speed);
	*ret_n = n;
	return all;
}

/* " within a socket": what tells groups of one class apart; "" where that is unknown or differs. */
static const char *socket_words(const struct topology *t, const struct speed *s, size_t n)
{
	size_t known = 0, crossing = 0;

	for (size_t i = 0; i < n; i++) {
		int a = topology_socket(t->machine, t->endpoints[s[i].initiator].pci);
		int b = topology_socket(t->machine, t->endpoints[s[i].target].pci);

		known += a >= 0 && b >= 0;
		crossing += a >= 0 && b >= 0 && a != b;
	}
	if (s->path->class != PATH_SYS || known < n || (crossing && crossing < n))
		return "";
	return crossing ? " between sockets" : " within a socket";
}

static void add_speed_line(struct document *out, const struct topology *t, const struct speed *s,
			   size_t n)
{
	const struct path *p = s->path;
	struct strbuf b AUTO_STRBUF = {0};
	char class[16], link[32];

	if (p->expected_gbps > 0)
		strbuf_printf(&b, "expected copy rate %.1f GB/s one way", p->expected_gbps);
	else
		strbuf_puts(&b, "speed unknown");
	if (p->socket_bound)
		strbuf_printf(&b, "; limited by the link between the CPU sockets (GPU%zu->GPU%zu)",
			      s->initiator, s->target);
	else if (p->class != PATH_NVLINK && p->bottleneck)
		strbuf_printf(&b, "; slowest link: %s at %s",
			      pci_link_format(p->bottleneck_speed, p->bottleneck_width, link,
					      sizeof(link)),
			      p->bottleneck->name);
	document_item(out, STYLE_PLAIN, 0, path_class_name(p, class, sizeof(class)),
		      "%zu %s%s: %s.", n, text_plural(n, "pair", "pairs"), socket_words(t, s, n),
		      strbuf_str(&b));
}

static void add_speeds(struct document *out, const struct topology *t)
{
	size_t n;
	struct speed *all AUTO_FREE = gpu_speeds(t, &n);

	if (n)
		document_blank(out);
	for (size_t i = 0, k; i < n; i += k) {
		for (k = 1; i + k < n && same_speed(&all[i], &all[i + k]); k++)
			;
		add_speed_line(out, t, &all[i], k);
	}
}

/* ---- how the driver itself connects the GPUs ---- */

static bool same_connection(const struct rm_p2p *a, const struct rm_p2p *b)
{
	return fact_known(a->connection) && fact_known(b->connection) &&
	       a->connection.value == b->connection.value && a->reads.value == b->reads.value &&
	       a->writes.value == b->writes.value && a->atomics.value == b->atomics.value;
}

/* Pairs that are connected alike, and the first of them. */
struct connection {
	const struct rm_p2p *p;
	size_t n;
};

static struct connection *connections_of(const struct machine *m, size_t *ret_n)
{
	struct connection *all = NULL;
	size_t n = 0, i;

	for (size_t k = 0; m->pairs && k < m->gpu_n * m->gpu_n; k++) {
		const struct rm_p2p *p = &m->pairs[k].rm;

		if (!fact_known(p->connection))
			continue;
		for (i = 0; i < n && !same_connection(all[i].p, p); i++)
			;
		if (i == n) {
			all = xrealloc(all, n + 1, sizeof(*all));
			all[n++] = (struct connection){p, 0};
		}
		all[i].n++;
	}
	*ret_n = n;
	return all;
}

static void add_connection(struct document *out, enum style style, const char *label,
			   const struct rm_p2p *p, size_t n)
{
	struct strbuf b AUTO_STRBUF = {0};
	const struct {
		struct fact_int fact;
		const char *word;
	} can[] = {{p->reads, "reads"}, {p->writes, "writes"}, {p->atomics, "atomics"}};

	for (size_t i = 0; i < sizeof(can) / sizeof(can[0]); i++)
		if (fact_is(can[i].fact, 1))
			strbuf_printf(&b, "%s%s", b.len ? ", " : " for ", can[i].word);
	document_item(out, style, 0, label, "%zu %s: it uses %s%s.", n,
		      text_plural(n, "pair", "pairs"), rm_connection_word(p->connection.value),
		      strbuf_str(&b));
}

void add_connections(struct document *out, enum style style, const char *label,
		     const struct machine *m)
{
	size_t n;
	struct connection *all AUTO_FREE = connections_of(m, &n);

	for (size_t i = 0; i < n; i++)
		add_connection(out, style, label, all[i].p, all[i].n);
}

/* ---- why not direct ---- */

/* One link of one pair's chain that is not well. */
struct reason {
	const struct path *path;
	const struct chain_link *link;
	enum chain_step step;
	bool nic;
};

/*
 * What is shown as one: pairs of the same kind, step, cause and value, at whatever device. Bad
 * before unknown before possible.
 */
static int compare_cause(const struct reason *a, const struct reason *b)
{
	const int64_t keys[][2] = {
		{a->nic, b->nic},
		{b->link->state, a->link->state},
		{a->step, b->step},
		{a->link->reason, b->link->reason},
		{a->link->value, b->link->value},
		{a->link->value2, b->link->value2},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	}
	return 0;
}

static int64_t place_of(const struct reason *r)
{
	return r->link->at ? (int64_t)r->link->at->index : -1;
}

static int compare_reason(const void *a, const void *b)
{
	const struct reason *p = a, *q = b;
	int r = compare_cause(p, q);

	if (!r)
		r = (place_of(p) > place_of(q)) - (place_of(p) < place_of(q));
	return r ? r : (p->path > q->path) - (p->path < q->path);
}

static struct reason *collect_reasons(const struct topology *t, size_t *ret_n)
{
	size_t max = t->endpoint_n * t->endpoint_n * CHAIN_STEP_N, n = 0;
	struct reason *all = xcalloc(max + 1, sizeof(*all));

	for (size_t i = 0; i < t->endpoint_n; i++) {
		for (size_t j = 0; j < t->endpoint_n; j++) {
			const struct path *p = &t->paths[i * t->endpoint_n + j];

			if (i == j || (i >= t->gpu_n && j >= t->gpu_n) || p->verdict == PAIR_DIRECT)
				continue;
			for (int s = 0; s < CHAIN_STEP_N; s++)
				if (p->chain[s].state >= CHAIN_POSSIBLE)
					all[n++] =
						(struct reason){p, &p->chain[s], (enum chain_step)s,
								i >= t->gpu_n || j >= t->gpu_n};
		}
	}
	qsort(all, n, sizeof(*all), compare_reason);
	*ret_n = n;
	return all;
}

/* "; likewise at 0000:20:03.1, 0000:40:01.1": every device but the first, which the sentence names.
 */
static void add_places(struct strbuf *b, const struct reason *r, size_t n)
{
	size_t places = 1;

	for (size_t i = 1; i < n; i++) {
		if (place_of(&r[i]) == place_of(&r[i - 1]))
			continue;
		if (places <= MAX_PLACES)
			strbuf_printf(b, "%s%s", places == 1 ? "; likewise at " : ", ",
				      r[i].link->at->name);
		places++;
	}
	if (places > MAX_PLACES + 1)
		strbuf_printf(b, " and %zu more", places - MAX_PLACES - 1);
}

/* How many directions of that kind there are at all. */
static size_t pairs_of_kind(const struct topology *t, bool nic)
{
	size_t nics = t->endpoint_n - t->gpu_n;

	return nic ? 2 * t->gpu_n * nics : t->gpu_n * (t->gpu_n - 1);
}

/*
 * "all 56 pairs", "7 pairs: GPU0->GPU1, GPU0->GPU2 and 5 more"; a GPU and a NIC are one pair with
 * two directions.
 */
static void add_examples(struct strbuf *b, const struct topology *t, const struct reason *r,
			 size_t n)
{
	char all[TEXT_ALL_SIZE];

	if (n > 1 && n == pairs_of_kind(t, r->nic)) {
		strbuf_printf(b, "%s pairs%s", text_all(r->nic ? n / 2 : n, all),
			      r->nic ? ", both directions" : "");
		return;
	}
	strbuf_printf(b, "%zu %s: ", n,
		      r->nic ? text_plural(n, "direction", "directions")
			     : text_plural(n, "pair", "pairs"));
	for (size_t i = 0; i < n && i < MAX_EXAMPLES; i++) {
		size_t k = (size_t)(r[i].path - t->paths);

		strbuf_printf(b, "%s%s->%s", i ? ", " : "", t->endpoints[k / t->endpoint_n].name,
			      t->endpoints[k % t->endpoint_n].name);
	}
	if (n > MAX_EXAMPLES)
		strbuf_printf(b, " and %zu more", n - MAX_EXAMPLES);
}

/* What the step makes of the pair, in the words of the matrix. */
static const struct {
	const char *label;
	enum style style;
} states[] = {
	[CHAIN_POSSIBLE] = {"doubtful", STYLE_WARN},
	[CHAIN_UNKNOWN] = {"unknown ", STYLE_WARN},
	[CHAIN_BAD] = {"blocked ", STYLE_BAD},
};

/* Several steps of a chain may lack the same fact about the same pairs, which is said once. */
struct said {
	struct arena *arena;
	struct texts items;
};

static void add_reason(struct document *out, const struct topology *t, const struct reason *r,
		       size_t n, struct said *said)
{
	struct strbuf b AUTO_STRBUF = {0};
	char sentence[512];

	strbuf_puts(&b, chain_explain(r->path, r->link, sentence, sizeof(sentence)));
	add_places(&b, r, n);
	strbuf_puts(&b, " (");
	add_examples(&b, t, r, n);
	if (!texts_have(&said->items, strbuf_str(&b)))
		document_item(out, states[r->link->state].style, 0, states[r->link->state].label,
			      "%s)", strbuf_str(&b));
	texts_add(said->arena, &said->items, strbuf_str(&b));
}

static void add_reasons(struct document *out, const struct topology *t)
{
	size_t n;
	struct reason *all AUTO_FREE = collect_reasons(t, &n);
	struct said said = {.arena = arena_new()};

	for (size_t i = 0, k; i < n; i += k) {
		if (!i || all[i].nic != all[i - 1].nic) {
			said.items.n = 0;
			document_blank(out);
			document_heading(
				out,
				all[i].nic ? "Obstacles between GPUs and NICs, in either direction"
					   : "Obstacles between GPUs");
		}
		for (k = 1; i + k < n && compare_cause(&all[i], &all[i + k]) == 0; k++)
			;
		add_reason(out, t, &all[i], k, &said);
	}
	arena_free(said.arena);
}

void report_topology(struct document *out, const struct diagnosis *d)
{
	const struct topology *t = d->topology;

	add_machine_head(out, t->machine, "Topology");
	add_recorded(out, t->machine);
	add_machine_line(out, t->machine);
	document_blank(out);
	report_verdict(out, d);
	add_gpus(out, t->machine);
	add_nics(out, t);
	add_blocks(out, t);
	add_speeds(out, t);
	add_connections(out, STYLE_PLAIN, "driver", t->machine);
	add_reasons(out, t);
	add_drawing(out, d);
	add_page_findings(out, d);
}
