/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `onehop bench rdma` tells people of two hosts: which NIC reaches which, rates of the rails,
 * and why not.
 */
#include "report/report_rdma_hosts.h"

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "report/report_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAMED 6

static const char *own_name(const struct rdma_hosts *h, size_t i, char buf[static PORT_NAME])
{
	port_name(&h->s->listing->ports[i], buf);
	return buf;
}

static const char *far_name(const struct rdma_hosts *h, size_t i, char buf[static PORT_NAME])
{
	port_name(&h->far[i].port, buf);
	return buf;
}

static size_t pair_n(const struct rdma_hosts *h)
{
	return h->pairs ? h->s->listing->n * h->far_n : 0;
}

static bool is_tried(const struct rdma_hosts *h, size_t i, bool own)
{
	size_t others = own ? h->far_n : h->s->listing->n;

	for (size_t k = 0; k < others; k++)
		if (rdma_hosts_pair(h, own ? i : k, own ? k : i)->reach != REACH_UNTRIED)
			return true;
	return false;
}

/* ---- who reaches whom ---- */

static void add_reach_cell(struct document *out, const struct host_pair *p)
{
	static const struct {
		enum style style;
		const char *text;
	} cells[] = {
		[REACH_UNTRIED] = {STYLE_DIM, "-"},
		[REACH_YES] = {STYLE_GOOD, "yes"},
		[REACH_NO] = {STYLE_BAD, "NO"},
	};

	document_cell(out, cells[p->reach].style, "%7s", cells[p->reach].text);
}

static void add_reach(struct document *out, const struct rdma_hosts *h)
{
	size_t columns = 0;
	char name[PORT_NAME];

	for (size_t k = 0; k < h->far_n; k++)
		columns += is_tried(h, k, false);
	document_blank(out);
	document_heading(out, "NIC reaches NIC (nic-reaches): rows %s, columns %s", "this host",
			 h->peer_name);
	document_matrix(out, columns + 1, 1);
	document_row(out);
	document_cell(out, STYLE_DIM, "%s", "NIC");
	for (size_t k = 0; k < h->far_n; k++)
		if (is_tried(h, k, false))
			document_cell(out, STYLE_DIM, "%7s", far_name(h, k, name));
	for (size_t i = 0; i < h->s->listing->n; i++) {
		if (!is_tried(h, i, true))
			continue;
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s", own_name(h, i, name));
		for (size_t k = 0; k < h->far_n; k++)
			if (is_tried(h, k, false))
				add_reach_cell(out, rdma_hosts_pair(h, i, k));
	}
}

/* ---- the networks of the ports ---- */

static void add_networks(struct document *out, const struct rdma_hosts *h)
{
	if (rdma_hosts_are_rails(h))
		document_item(
			out, STYLE_STRONG, 0, "note",
			"Ports reach each other exactly where their addresses are in one network: these are separate rails without a route between them. With NCCL, set NCCL_CROSS_NIC=0.");
}

/* ---- rails ---- */

static bool is_short(const struct host_pair *p, const struct rdma_cell *c, int m)
{
	return c && rdma_is_short(c, rdma_hosts_expected(p, (enum rdma_measure)m));
}

static void add_rate(struct document *out, const struct host_pair *p, const struct rdma_cell *c,
		     enum rdma_measure m)
{
	if (c && c->data == RDMA_DATA_WRONG)
		document_cell(out, STYLE_BAD, "%7s", "WRONG");
	else if (c && c->failure.step != RDMA_STEP_NONE)
		document_cell(out, STYLE_BAD, "%7s", "failed");
	else if (!c || !c->value.n)
		document_cell(out, STYLE_DIM, "%7s", "-");
	else
		report_rdma_value(out, is_short(p, c, (int)m) ? STYLE_WARN : STYLE_PLAIN,
				  c->value.median);
}

static const char *const headings[RDMA_MEASURE_N] = {
	[RDMA_WRITE] = "write",
	[RDMA_READ] = "read",
	[RDMA_BOTH] = "both",
	[RDMA_LATENCY_WRITE] = "us write",
	[RDMA_LATENCY_IMMEDIATE] = "us imm.",
	[RDMA_LATENCY_SEND] = "us send",
	[RDMA_LATENCY_READ] = "us read",
};

static bool is_measured(const struct rdma_hosts *h, size_t kind, int m)
{
	for (size_t i = 0; i < pair_n(h); i++) {
		const struct rdma_cell *c = rdma_hosts_cell(h, &h->pairs[i], kind, m);

		if (c && c->done)
			return true;
	}
	return false;
}

static void add_rail_row(struct document *out, const struct rdma_hosts *h,
			 const struct host_pair *p, size_t kind)
{
	char own[PORT_NAME], far[PORT_NAME];

	document_row(out);
	document_cell(out, STYLE_PLAIN, "%s", own_name(h, p->own, own));
	document_cell(out, STYLE_PLAIN, "%s", far_name(h, p->far, far));
	for (int m = 0; m < RDMA_MEASURE_N; m++)
		if (is_measured(h, kind, m))
			add_rate(out, p, rdma_hosts_cell(h, p, kind, m), (enum rdma_measure)m);
	if (p->write_gbps > 0)
		document_cell(out, STYLE_DIM, "%.4g", p->write_gbps);
	else
		document_cell(out, STYLE_DIM, "%s", "unknown");
}

/* "host memory", "GPU memory by dma-buf" */
static const char *memory_text(enum region_way way, char buf[static 48])
{
	if (region_is_host(way))
		return way == REGION_HOST ? "host memory" : "host memory on demand (not pinned)";
	snprintf(buf, 48, "memory of the nearest GPUs by %s", region_way_word(way));
	return buf;
}

static void add_rails_heading(struct document *out, const struct rdma_hosts *h, size_t kind,
			      size_t rates, size_t latencies)
{
	char size[BYTES_TEXT_SIZE], memory[48], of_rates[80] = "", many[32] = "",
						of_latencies[32] = "";

	if (h->queues)
		snprintf(many, sizeof(many), " over %u queue pairs", h->queues);
	if (rates)
		snprintf(of_rates, sizeof(of_rates), "GB/s in messages of %s%s",
			 bytes_text(h->kinds[kind].size.of_rates, size), many);
	if (latencies)
		snprintf(of_latencies, sizeof(of_latencies), "us of %s",
			 bytes_text(h->kinds[kind].size.of_latencies, size));
	document_blank(out);
	document_heading(out, "Rails: %s%s%s; %s on both sides", of_rates,
			 rates && latencies ? ", " : "", of_latencies,
			 memory_text(h->kinds[kind].way, memory));
}

static void add_rails_of(struct document *out, const struct rdma_hosts *h, size_t kind)
{
	size_t n[2] = {0}; /* rates, latencies */

	for (int m = 0; m < RDMA_MEASURE_N; m++)
		n[rdma_is_latency((enum rdma_measure)m)] += is_measured(h, kind, m);
	if (!n[0] && !n[1])
		return;
	add_rails_heading(out, h, kind, n[0], n[1]);
	document_table(out, 2, 3 + n[0] + n[1], 2);
	document_row(out);
	document_cell(out, STYLE_DIM, "%s", "this host");
	document_cell(out, STYLE_DIM, "%s", h->peer_name);
	for (int m = 0; m < RDMA_MEASURE_N; m++)
		if (is_measured(h, kind, m))
			document_cell(out, STYLE_DIM, "%7s", headings[m]);
	document_cell(out, STYLE_DIM, "%s", "expected");
	for (size_t i = 0; i < pair_n(h); i++)
		if (h->pairs[i].rail)
			add_rail_row(out, h, &h->pairs[i], kind);
}

static void add_rails(struct document *out, const struct rdma_hosts *h)
{
	for (size_t k = 0; k < h->kind_n; k++)
		add_rails_of(out, h, k);
}

/* The measurements of a pair that fall short, in one line. */
static void add_short_pair(struct document *out, const struct rdma_hosts *h,
			   const struct host_pair *p, size_t kind)
{
	AUTO_STRBUF struct strbuf b = {0};
	char own[PORT_NAME], far[PORT_NAME];

	for (int m = 0; m < RDMA_LATENCY_WRITE; m++) {
		const struct rdma_cell *c = rdma_hosts_cell(h, p, kind, m);

		if (is_short(p, c, m))
			strbuf_printf(&b, ", %s %.4g of %.4g", rdma_metric((enum rdma_measure)m),
				      c->value.median,
				      rdma_hosts_expected(p, (enum rdma_measure)m));
	}
	document_styled_item(out, STYLE_WARN, STYLE_PLAIN, 0, "short", "%s to %s%s GB/s%s%s.",
			     own_name(h, p->own, own), far_name(h, p->far, far), strbuf_str(&b),
			     *p->limit ? "; the limit is " : "", p->limit);
}

static bool is_pair_short(const struct rdma_hosts *h, const struct host_pair *p, size_t kind)
{
	for (int m = 0; m < RDMA_LATENCY_WRITE; m++)
		if (is_short(p, rdma_hosts_cell(h, p, kind, m), m))
			return true;
	return false;
}

static void add_short(struct document *out, const struct rdma_hosts *h)
{
	size_t n = 0;

	for (int way = 0; way < REGION_WAY_N; way++) {
		size_t kind = rdma_hosts_largest(h, (enum region_way)way);

		for (size_t i = 0; kind < h->kind_n && i < pair_n(h); i++)
			if (is_pair_short(h, &h->pairs[i], kind) && ++n <= MAX_NAMED)
				add_short_pair(out, h, &h->pairs[i], kind);
	}
	if (n > MAX_NAMED)
		document_paragraph(out, STYLE_WARN, 0,
				   "%zu more pairs fall short of what is expected.", n - MAX_NAMED);
}

/* ---- what failed ---- */

struct host_fault {
	const struct rdma_failure *failure;
	const struct host_pair *pair;
	int measure; /* -1: reaching it */
	size_t kind;
};

/* Fault number j of a pair: reaching it, then each measurement of each kind. NULL: none. */
static const struct rdma_failure *failure_at(const struct rdma_hosts *h, const struct host_pair *p,
					     size_t j)
{
	const struct rdma_cell *c;

	if (!j)
		return &p->failure;
	c = rdma_hosts_cell(h, p, (j - 1) / RDMA_MEASURE_N, (int)((j - 1) % RDMA_MEASURE_N));
	return c ? &c->failure : NULL;
}

/* The n-th fault, in order; false: there are fewer. */
static bool fault_at(const struct rdma_hosts *h, size_t n, struct host_fault *ret)
{
	for (size_t i = 0; i < pair_n(h); i++)
		for (size_t j = 0; j <= h->kind_n * RDMA_MEASURE_N; j++) {
			const struct rdma_failure *f = failure_at(h, &h->pairs[i], j);

			if (!f || f->step == RDMA_STEP_NONE || n-- > 0)
				continue;
			*ret = (struct host_fault){f, &h->pairs[i],
						   j ? (int)((j - 1) % RDMA_MEASURE_N) : -1,
						   j ? (j - 1) / RDMA_MEASURE_N : 0};
			return true;
		}
	return false;
}

static bool is_said(const struct rdma_hosts *h, size_t n, const struct host_fault *f)
{
	struct host_fault before;

	for (size_t i = 0; i < n && fault_at(h, i, &before); i++)
		if (rdma_is_alike(before.failure, f->failure))
			return true;
	return false;
}

static void add_victims(const struct rdma_hosts *h, const struct host_fault *like, struct strbuf *b)
{
	char own[PORT_NAME], far[PORT_NAME];
	struct host_fault f;
	size_t named = 0;

	for (size_t i = 0; fault_at(h, i, &f); i++) {
		if (!rdma_is_alike(f.failure, like->failure) || ++named > MAX_NAMED)
			continue;
		strbuf_printf(b, "%s%s to %s", named > 1 ? "; " : "", own_name(h, f.pair->own, own),
			      far_name(h, f.pair->far, far));
		if (f.measure >= 0)
			strbuf_printf(b, ", %s", rdma_metric((enum rdma_measure)f.measure));
		if (f.measure >= 0 && h->kinds[f.kind].way != REGION_HOST)
			strbuf_printf(b, " by %s", region_way_word(h->kinds[f.kind].way));
	}
	if (named > MAX_NAMED)
		strbuf_printf(b, "; and %zu more", named - MAX_NAMED);
}

static bool is_of_the_network(enum rdma_step s)
{
	return s == RDMA_STEP_RTR || s == RDMA_STEP_COMPLETION || s == RDMA_STEP_WAIT;
}

/* The addresses of a pair that is not reached, which often say why. */
static void add_addresses(struct document *out, const struct host_fault *f)
{
	const union verbs_gid *a = &f->pair->gid.entry.gid, *b = &f->pair->far_gid.gid;
	char own[GID_TEXT], far[GID_TEXT];

	if (f->measure >= 0 || !is_of_the_network(f->failure->step))
		return;
	gid_text(a, own);
	gid_text(b, far);
	if (gid_same_network(a, b))
		document_item(out, STYLE_STRONG, 2, "note",
			      "%s and %s are addresses of one network.", own, far);
	else
		document_item(
			out, STYLE_STRONG, 2, "note",
			"%s and %s are addresses of two networks%s: without a route between them these ports cannot meet.",
			own, far,
			gid_family(a) == GID_FAMILY_IPV4
				? " (unless their mask is shorter than /24)"
				: "");
}

static void add_fault(struct document *out, const struct rdma_hosts *h, const struct host_fault *f)
{
	AUTO_STRBUF struct strbuf who = {0};

	add_victims(h, f, &who);
	document_blank(out);
	document_paragraph(out, STYLE_BAD, 0, "%s failed: %s.", rdma_step_text(f->failure->step),
			   strbuf_str(&who));
	add_rdma_cause(out, f->failure);
	add_addresses(out, f);
}

static void add_faults(struct document *out, const struct rdma_hosts *h)
{
	char own[PORT_NAME], far[PORT_NAME];
	struct host_fault f;

	for (size_t i = 0; fault_at(h, i, &f); i++)
		if (!is_said(h, i, &f))
			add_fault(out, h, &f);
	for (size_t i = 0; i < pair_n(h); i++)
		if (h->pairs[i].cut)
			document_item(out, STYLE_STRONG, 2, "note",
				      "%s to %s: nothing more was measured after that.",
				      own_name(h, h->pairs[i].own, own),
				      far_name(h, h->pairs[i].far, far));
}

/* ---- what was left out ---- */

/* The least size of a measurement that was left out as too slow; 0: none was. */
static uint64_t too_slow_from(const struct rdma_hosts *h, const struct host_pair *p,
			      enum rdma_measure m)
{
	uint64_t least = 0;

	for (size_t k = 0; k < h->kind_n; k++) {
		const struct rdma_cell *c = rdma_hosts_cell(h, p, k, (int)m);
		uint64_t bytes = rdma_bytes(h->kinds[k].size, m);

		if (c && c->too_slow && (!least || bytes < least))
			least = bytes;
	}
	return least;
}

static void add_too_slow(struct document *out, const struct rdma_hosts *h,
			 const struct host_pair *p)
{
	AUTO_STRBUF struct strbuf b = {0};
	char own[PORT_NAME], far[PORT_NAME], size[BYTES_TEXT_SIZE];

	for (int m = 0; m < RDMA_MEASURE_N; m++) {
		uint64_t from = too_slow_from(h, p, (enum rdma_measure)m);

		if (from)
			strbuf_printf(&b, "%s %s from %s on", b.len ? "," : "",
				      rdma_metric((enum rdma_measure)m), bytes_text(from, size));
	}
	if (b.len)
		document_item(
			out, STYLE_STRONG, 0, "note",
			"%s to %s: left out, because at this rate a message takes longer than it is waited for:%s.",
			own_name(h, p->own, own), far_name(h, p->far, far), strbuf_str(&b));
}

/* ---- head and end ---- */

static void add_end(struct document *out, const struct rdma_hosts *h)
{
	if (h->whole)
		return;
	if (*h->ended)
		document_paragraph(out, STYLE_BAD, 0, "Incomplete: %s.", h->ended);
	else
		document_paragraph(out, STYLE_WARN, 0, "Stopped: the results are incomplete.");
}

static bool has_gpu_memory(const struct rdma_hosts *h)
{
	for (size_t k = 0; k < h->kind_n; k++)
		if (!region_is_host(h->kinds[k].way))
			return true;
	return false;
}

static void add_left_out(struct document *out, const struct rdma_hosts *h)
{
	char name[PORT_NAME];

	report_rdma_skips(out, h->s);
	for (size_t k = 0; k < h->far_n; k++)
		if (!rdma_hosts_far_is_used(h, k))
			document_paragraph(
				out, STYLE_DIM, 0,
				"%s of %s is not used there: onehop bench rdma --list says why.",
				far_name(h, k, name), h->peer_name);
}

static void add_verdict(struct document *out, const struct rdma_hosts *h)
{
	struct hosts_counts n = rdma_hosts_count(h);
	char all[TEXT_ALL_SIZE], told[RDMA_TOLD];

	document_paragraph(out, STYLE_PLAIN, 0, "Measured %s %s (%s)%s.",
			   h->listens ? "by" : "with", h->peer_name, h->peer_address,
			   h->listens ? ": it writes into this host's memory and reads from it"
				      : "");
	if (devices_are_simulated(&h->s->devices) && has_gpu_memory(h))
		document_paragraph(out, STYLE_WARN, 0,
				   "SIMULATED DEVICES instead of GPUs: memory of this host.");
	add_end(out, h);
	add_left_out(out, h);
	if (!n.tried && !n.measured)
		document_paragraph(out, STYLE_WARN, 0, "Nothing was measured.");
	else if (n.tried)
		document_paragraph(out,
				   n.reached == n.tried      ? STYLE_GOOD
				   : rdma_hosts_are_rails(h) ? STYLE_WARN
							     : STYLE_BAD,
				   0, "%s of NICs reach each other: %zu of %zu.",
				   n.reached == n.tried ? "All pairs" : "Not all pairs", n.reached,
				   n.tried);
	if (n.wrong)
		document_paragraph(out, STYLE_BAD, 0,
				   "Data WRONG at its owner in %zu of %zu measurements.", n.wrong,
				   n.checked);
	else if (n.checked)
		document_paragraph(out, STYLE_GOOD, 0,
				   "Data checked by its owner: correct in %s %s.",
				   text_all(n.checked, all),
				   text_plural(n.checked, "measurement", "measurements"));
	else if (n.rates)
		document_paragraph(out, STYLE_DIM, 0, "The data of the rates was not checked.");
	/* A listener has only the other host's figures of what is expected. */
	report_rdma_rates(out, h->listens ? "as the other host says" : report_rdma_told(h->s, told),
			  n.rated, n.slow);
}

static void add_rounds(struct document *out, const struct rdma_hosts *h)
{
	struct hosts_counts n = rdma_hosts_count(h);

	if (h->listens || !n.tried)
		return;
	document_blank(out);
	document_paragraph(
		out, STYLE_DIM, 0,
		"Reachability in %zu %s, %.1f s; rails in %zu %s (at least %zu needed), %.1f s in all.",
		h->reach_rounds, text_plural(h->reach_rounds, "round", "rounds"), h->reach_s,
		h->rounds.round_n, text_plural(h->rounds.round_n, "round", "rounds"),
		h->rounds.least, h->run_s);
	report_rdma_wide(out, n.wide, n.measured);
}

static void add_values(struct document *out, const struct rdma_hosts *h, const struct host_pair *p,
		       size_t kind, int m)
{
	const struct rdma_cell *c = rdma_hosts_cell(h, p, kind, m);
	char own[PORT_NAME], far[PORT_NAME], size[BYTES_TEXT_SIZE];

	if (!c || !c->value.n)
		return;
	document_row(out);
	document_cell(out, STYLE_PLAIN, "%s, %s, %s, %s to %s", rdma_metric((enum rdma_measure)m),
		      region_way_word(h->kinds[kind].way),
		      bytes_text(rdma_bytes(h->kinds[kind].size, (enum rdma_measure)m), size),
		      own_name(h, p->own, own), far_name(h, p->far, far));
	for (size_t k = 0; k < 3; k++) {
		double v = (const double[]){c->value.median, c->value.low, c->value.high}[k];

		document_cell(out, STYLE_PLAIN, isnan(v) ? "-" : "%.4g", v);
	}
	document_cell(out, STYLE_PLAIN, "%zu", c->value.n);
}

static void add_cells(struct document *out, const struct rdma_hosts *h)
{
	static const char *const heads[] = {"", "median", "low", "high", "samples"};

	document_blank(out);
	document_table(out, 2, 5, 2);
	document_titles(out, heads);
	for (size_t i = 0; i < pair_n(h); i++)
		for (size_t k = 0; k < h->kind_n; k++)
			for (int m = 0; m < RDMA_MEASURE_N; m++)
				add_values(out, h, &h->pairs[i], k, m);
}

/* Which address each rail uses, and why. */
static void add_rail_addresses(struct document *out, const struct rdma_hosts *h)
{
	document_blank(out);
	for (size_t i = 0; i < pair_n(h); i++) {
		const struct host_pair *p = &h->pairs[i];
		char own[PORT_NAME], far[PORT_NAME], a[GID_TEXT], b[GID_TEXT];

		if (!p->rail || !p->meets)
			continue;
		gid_text(&p->gid.entry.gid, a);
		gid_text(&p->far_gid.gid, b);
		document_item(out, STYLE_PLAIN, 0, "address",
			      "%s to %s: %s (index %u) and %s (index %u): %s",
			      own_name(h, p->own, own), far_name(h, p->far, far), a,
			      p->gid.entry.gid_index, b, p->far_gid.gid_index, p->gid.reason);
	}
}

void report_rdma_hosts(struct document *out, const struct rdma_hosts *h, bool verbose)
{
	add_verdict(out, h);
	add_faults(out, h);
	report_rdma_log(out, &h->s->log);
	if (rdma_hosts_count(h).tried)
		add_reach(out, h);
	add_networks(out, h);
	add_rails(out, h);
	add_short(out, h);
	for (size_t i = 0; i < pair_n(h); i++)
		add_too_slow(out, h, &h->pairs[i]);
	add_rounds(out, h);
	if (verbose)
		add_rail_addresses(out, h);
	if (verbose && rdma_hosts_count(h).measured)
		add_cells(out, h);
}

void format_perftest_hosts(const struct rdma_hosts *h, enum perftest_release release,
			   struct strbuf *out)
{
	for (size_t i = 0; i < pair_n(h); i++)
		for (size_t j = 0; j < h->kind_n * RDMA_MEASURE_N; j++) {
			size_t kind = j / RDMA_MEASURE_N;
			enum rdma_measure m = (enum rdma_measure)(j % RDMA_MEASURE_N);
			const struct perftest_table t = {
				.measure = m,
				.device = h->s->listing->ports[h->pairs[i].own].device,
				.memory = region_is_host(h->kinds[kind].way) ? NULL : "nearest GPU",
				.way = h->kinds[kind].way,
				.bytes = rdma_bytes(h->kinds[kind].size, m),
				.cell = rdma_hosts_cell(h, &h->pairs[i], kind, (int)m),
			};

			if (t.cell)
				format_perftest_table(&t, release, out);
		}
}
