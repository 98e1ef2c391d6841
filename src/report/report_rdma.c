/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench rdma` tells people: NICs by GPUs, each direction by itself, and why not. */
#include "report/report_rdma.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "report/report_impl.h"
#include "result/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Columns that fit into 80 with the name. */
#define COLUMNS_MAX 9

/* What one matrix shows. */
struct block {
	const struct rdma_session *s;
	enum rdma_measure measure;
	enum region_way way; /* of the GPUs' memory; the host's is next to it in all */
	struct rdma_size size;
};

static const char *const headings[RDMA_MEASURE_N] = {
	[RDMA_WRITE] = "NIC writes into it",
	[RDMA_READ] = "NIC reads from it",
	[RDMA_BOTH] = "both at once",
	[RDMA_LATENCY_WRITE] = "write and back, half",
	[RDMA_LATENCY_IMMEDIATE] = "write with immediate and back, half",
	[RDMA_LATENCY_SEND] = "send and back, half",
	[RDMA_LATENCY_READ] = "read",
};

static bool is_rate(enum rdma_measure m)
{
	return m < RDMA_LATENCY_WRITE;
}

static const char *gpu_name(const struct rdma_session *s, int gpu)
{
	return gpu < 0 ? "host" : s->devices.chosen.names[gpu];
}

static const struct rdma_run *run_at(const struct block *b, const struct rdma_pair *p)
{
	enum region_way way = p && p->gpu < 0 ? region_of_host(b->way) : b->way;

	for (size_t k = 0; p && k < p->run_n; k++)
		if (p->runs[k].way == way && p->runs[k].size.of_rates == b->size.of_rates)
			return &p->runs[k];
	return NULL;
}

/* ---- a matrix ---- */

void report_rdma_value(struct document *out, enum style style, double value)
{
	document_cell(out, style, value < 0.1 ? "%7.3g" : "%7.2f", value);
}

static bool is_short(const struct block *b, const struct rdma_pair *p, const struct rdma_run *r)
{
	return rdma_is_largest(p, r) &&
	       rdma_is_short(&r->result.cells[b->measure], rdma_expected(p, b->measure));
}

static void add_value(struct document *out, const struct block *b, const struct rdma_pair *p)
{
	const struct rdma_run *r = run_at(b, p);
	const struct rdma_cell *c = r ? &r->result.cells[b->measure] : NULL;

	if (!r)
		document_cell(out, STYLE_DIM, "%7s", "");
	else if (c->data == RDMA_DATA_WRONG)
		document_cell(out, STYLE_BAD, "%7s", "WRONG");
	else if (r->ran && (c->failure.step || r->result.failure.step))
		document_cell(out, STYLE_BAD, "%7s", "failed");
	else if (!r->ran && r->foresight == RDMA_CANNOT)
		document_cell(out, STYLE_DIM, "%7s", "no");
	else if (!c->value.n)
		document_cell(out, STYLE_DIM, "%7s", "-");
	else
		report_rdma_value(out,
				  is_rate(b->measure) && is_short(b, p, r) ? STYLE_WARN
									   : STYLE_PLAIN,
				  c->value.median);
}

static bool has_pairs(const struct rdma_session *s, size_t port)
{
	for (size_t i = 0; i < s->pair_n; i++)
		if (s->pairs[i].port == port)
			return true;
	return false;
}

static void add_block(struct document *out, const struct block *b, int first, int last)
{
	const struct rdma_session *s = b->s;

	document_matrix(out, (size_t)(last - first) + 1, 1);
	document_row(out);
	document_cell(out, STYLE_DIM, "%s", "NIC");
	for (int gpu = first; gpu < last; gpu++)
		document_cell(out, STYLE_DIM, "%7.*s", gpu < 0 ? 4 : short_length(gpu_name(s, gpu)),
			      gpu_name(s, gpu));
	for (size_t port = 0; port < s->listing->n; port++) {
		char name[PORT_NAME];

		if (!has_pairs(s, port))
			continue;
		port_name(&s->listing->ports[port], name);
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s", name);
		for (int gpu = first; gpu < last; gpu++)
			add_value(out, b, rdma_session_pair(s, port, gpu));
	}
}

/* Whether there is a run that it would show; of GPUs, where there are any. */
static bool is_needed(const struct block *b)
{
	bool gpus = !region_is_host(b->way);

	for (size_t i = 0; i < b->s->pair_n; i++) {
		const struct rdma_pair *p = &b->s->pairs[i];
		const struct rdma_run *r = (p->gpu >= 0) == gpus ? run_at(b, p) : NULL;

		if (r && (r->ran || r->foresight == RDMA_CANNOT) &&
		    !(gpus && rdma_is_round_trip(b->measure)))
			return true;
	}
	return false;
}

static bool has_gpu_runs(const struct rdma_session *s)
{
	for (size_t i = 0; i < s->pair_n; i++)
		if (s->pairs[i].gpu >= 0)
			return true;
	return false;
}

static void add_matrix_of(struct document *out, const struct block *b)
{
	char size[BYTES_TEXT_SIZE], of[64] = "", by[48] = "", many[32] = "";
	int gpus = (int)b->s->devices.request.n;

	if (b->s->o->queues > 1 && is_rate(b->measure))
		snprintf(many, sizeof(many), ", %d queue pairs", b->s->o->queues);
	snprintf(of, sizeof(of), ", %s each%s", bytes_text(rdma_bytes(b->size, b->measure), size),
		 many);
	if (b->way != REGION_HOST)
		snprintf(by, sizeof(by), ", %s", region_way_word(b->way));
	document_blank(out);
	document_heading(out, "%s (%s), %s%s%s", headings[b->measure], rdma_metric(b->measure),
			 is_rate(b->measure) ? "GB/s" : "us", by, of);
	for (int first = -1; first < gpus; first += COLUMNS_MAX)
		add_block(out, b, first, first + COLUMNS_MAX < gpus ? first + COLUMNS_MAX : gpus);
}

/* Of the host's memory next to that of GPUs; by itself only what is measured of nothing else. */
static bool belongs(const struct block *b, bool gpus)
{
	return b->s->measures >> b->measure & 1 && is_needed(b) &&
	       (b->way != REGION_HOST || !gpus || rdma_is_round_trip(b->measure));
}

static void add_matrices(struct document *out, const struct rdma_session *s)
{
	static const enum region_way order[] = {REGION_DMABUF, REGION_PEER, REGION_HOST,
						REGION_ON_DEMAND};
	bool gpus = has_gpu_runs(s);

	for (size_t k = 0; k < s->size_n; k++)
		for (size_t way = 0; way < ARRAY_LEN(order); way++)
			for (int m = 0; m < RDMA_MEASURE_N; m++) {
				const struct block b = {s, (enum rdma_measure)m, order[way],
							s->sizes[k]};

				if (belongs(&b, gpus))
					add_matrix_of(out, &b);
			}
}

/* ---- what is expected ---- */

static void add_expected(struct document *out, const struct rdma_session *s)
{
	double least = INFINITY, most = 0, low = INFINITY, high = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->pair_n; i++)
		for (size_t k = 0; k < s->pairs[i].run_n; k++)
			for (int m = 0; m < RDMA_LATENCY_WRITE; m++) {
				const struct summary *v =
					&s->pairs[i].runs[k].result.cells[m].value;
				double e = rdma_expected(&s->pairs[i], (enum rdma_measure)m);

				if (!v->n || e <= 0)
					continue;
				n++;
				least = fmin(least, e);
				most = fmax(most, e);
				low = fmin(low, v->median / e);
				high = fmax(high, v->median / e);
			}
	if (n)
		document_paragraph(out, STYLE_DIM, 0,
				   "Expected %.4g to %.4g GB/s; measured %.0f to %.0f %% of it.",
				   least, most, 100 * low, 100 * high);
}

/* "mlx5_0, GPU3 by dma-buf" */
static void add_subject(struct strbuf *b, const struct rdma_session *s, const struct rdma_pair *p,
			const struct rdma_run *r)
{
	const char *gpu = gpu_name(s, p->gpu);
	char name[PORT_NAME];

	port_name(&s->listing->ports[p->port], name);
	strbuf_printf(b, "%s and %.*s", name, p->gpu < 0 ? 4 : short_length(gpu), gpu);
	if (r->way != REGION_HOST)
		strbuf_printf(b, p->gpu < 0 ? " %s" : " by %s", region_way_word(r->way));
}

/* Why a run is worth a line; false: it is not. `detail` follows its name. */
typedef bool remark_fn(const struct rdma_session *s, const struct rdma_pair *p,
		       const struct rdma_run *r, struct strbuf *why, struct strbuf *detail);

static bool falls_short(const struct rdma_session *s, const struct rdma_pair *p,
			const struct rdma_run *r, struct strbuf *why, struct strbuf *detail)
{
	for (int m = 0; m < RDMA_LATENCY_WRITE; m++) {
		const struct block b = {s, (enum rdma_measure)m, r->way, r->size};

		if (r->result.cells[m].value.n && is_short(&b, p, r))
			strbuf_printf(detail, ", %s %.4g of %.4g", rdma_metric(b.measure),
				      r->result.cells[m].value.median, rdma_expected(p, b.measure));
	}
	strbuf_printf(why, "the limit is %s%s", p->limit,
		      devices_are_simulated(&s->devices) ? "; limited by host memory bandwidth"
							 : "");
	return detail->len > 0;
}

static bool is_impossible(const struct rdma_session *s, const struct rdma_pair *p,
			  const struct rdma_run *r, struct strbuf *why, struct strbuf *detail)
{
	(void)s, (void)p, (void)detail;
	strbuf_printf(why, "not tried: %s", r->why);
	return !r->ran && r->foresight == RDMA_CANNOT;
}

#define MAX_NAMED 6

/* Whether a run has this remark; adds its name. */
static bool add_name(struct strbuf *names, size_t n, const struct rdma_session *s,
		     const struct rdma_pair *p, const struct rdma_run *r, remark_fn *remark,
		     const char *text)
{
	AUTO_STRBUF struct strbuf why = {0}, detail = {0};

	if (!remark(s, p, r, &why, &detail) || strcmp(strbuf_str(&why), text) != 0)
		return false;
	if (n < MAX_NAMED) {
		strbuf_puts(names, n ? "; " : "");
		add_subject(names, s, p, r);
		strbuf_puts(names, strbuf_str(&detail));
	}
	return true;
}

/* One line for all runs with this remark; nothing if an earlier one than `first` has it. */
static void add_remark(struct document *out, const struct rdma_session *s, remark_fn *remark,
		       const char *label, const struct rdma_run *first, const char *text)
{
	AUTO_STRBUF struct strbuf names = {0};
	size_t n = 0;

	for (size_t i = 0; i < s->pair_n; i++)
		for (size_t k = 0; k < s->pairs[i].run_n; k++) {
			const struct rdma_run *r = &s->pairs[i].runs[k];

			if (!add_name(&names, n, s, &s->pairs[i], r, remark, text))
				continue;
			if (n++ == 0 && r != first)
				return;
		}
	if (n > MAX_NAMED)
		strbuf_printf(&names, "; and %zu more", n - MAX_NAMED);
	document_styled_item(out, STYLE_WARN, STYLE_PLAIN, 0, label, "%s: %s.", strbuf_str(&names),
			     text);
}

/* Each reason once, with those that it is for. */
static void add_remarks(struct document *out, const struct rdma_session *s, remark_fn *remark,
			const char *label)
{
	for (size_t i = 0; i < s->pair_n; i++)
		for (size_t k = 0; k < s->pairs[i].run_n; k++) {
			AUTO_STRBUF struct strbuf why = {0}, detail = {0};
			const struct rdma_run *r = &s->pairs[i].runs[k];

			if (remark(s, &s->pairs[i], r, &why, &detail))
				add_remark(out, s, remark, label, r, strbuf_str(&why));
		}
}

/* ---- what failed ---- */

struct failed {
	const struct rdma_failure *failure;
	const struct rdma_pair *pair;
	const struct rdma_run *run;
	int measure; /* -1: all of the run */
};

static size_t list_failed(const struct rdma_session *s, struct failed *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s->pair_n; i++)
		for (size_t k = 0; k < s->pairs[i].run_n; k++) {
			const struct rdma_run *r = &s->pairs[i].runs[k];

			for (int m = -1; r->ran && m < RDMA_MEASURE_N; m++) {
				const struct rdma_failure *f =
					m < 0 ? &r->result.failure : &r->result.cells[m].failure;

				if (f->step != RDMA_STEP_NONE)
					ret[n++] = (struct failed){f, &s->pairs[i], r, m};
			}
		}
	return n;
}

/* Whom it befell: each once, with the measurements. */
static void add_victims(struct strbuf *b, const struct rdma_session *s, const struct failed *all,
			size_t n, size_t like)
{
	const struct rdma_run *last = NULL;
	size_t named = 0;

	for (size_t i = like; i < n; i++) {
		if (!rdma_is_alike(all[i].failure, all[like].failure))
			continue;
		if (all[i].run != last && named++ < MAX_NAMED) {
			strbuf_puts(b, last ? "; " : "");
			add_subject(b, s, all[i].pair, all[i].run);
		}
		last = all[i].run;
		if (all[i].measure >= 0 && named <= MAX_NAMED)
			strbuf_printf(b, ", %s", rdma_metric((enum rdma_measure)all[i].measure));
	}
	if (named > MAX_NAMED)
		strbuf_printf(b, "; and %zu more", named - MAX_NAMED);
}

bool add_rdma_cause(struct document *out, const struct rdma_failure *f)
{
	const struct rdma_cause *c = rdma_cause_of(f);

	document_item(out, STYLE_STRONG, 2, "what", "%s", f->text);
	if (!c) {
		document_item(out, STYLE_STRONG, 2, "look", "%s", RDMA_DRIVER_LOG);
		return false;
	}
	document_item(out, STYLE_STRONG, 2, "do  ", "%s.", c->remedy);
	document_item(out, STYLE_STRONG, 2, "why ", "%s.", c->cause);
	document_item(out, STYLE_STRONG, 2, "look", "%s", c->evidence);
	return true;
}

static void add_failure(struct document *out, const struct rdma_session *s,
			const struct failed *all, size_t n, size_t i)
{
	const struct rdma_failure *f = all[i].failure;
	AUTO_STRBUF struct strbuf who = {0};

	add_victims(&who, s, all, n, i);
	document_blank(out);
	document_paragraph(out, STYLE_BAD, 0, "%s failed: %s.", rdma_step_text(f->step),
			   strbuf_str(&who));
	if (!add_rdma_cause(out, f))
		return;
	if (all[i].run->foresight == RDMA_CANNOT)
		document_item(out, STYLE_STRONG, 2, "note", "This was expected: %s.",
			      all[i].run->why);
	if (all[i].run->foresight == RDMA_CAN && all[i].measure < 0)
		document_item(out, STYLE_STRONG, 2, "note",
			      "No problem was known before the attempt: %s.", all[i].run->why);
}

static void add_failures(struct document *out, const struct rdma_session *s)
{
	AUTO_FREE struct failed *all = NULL;
	size_t n = 0, room = 1;

	for (size_t i = 0; i < s->pair_n; i++)
		room += s->pairs[i].run_n * (RDMA_MEASURE_N + 1);
	all = xcalloc(room, sizeof(*all));
	n = list_failed(s, all);
	for (size_t i = 0; i < n; i++) {
		bool said = false;

		for (size_t k = 0; k < i && !said; k++)
			said = rdma_is_alike(all[k].failure, all[i].failure);
		if (!said)
			add_failure(out, s, all, n, i);
	}
}

/* ---- what was left out ---- */

void report_rdma_skips(struct document *out, const struct rdma_session *s)
{
	for (size_t i = 0; i < s->listing->n; i++) {
		const struct rdma_failure *f = &s->skips[i];
		const struct rdma_cause *c = rdma_cause_of(f);
		char name[PORT_NAME];

		if (f->step == RDMA_STEP_NONE)
			continue;
		port_name(&s->listing->ports[i], name);
		document_paragraph(out, STYLE_DIM, 0, "%s is skipped: %s%s%s.", name,
				   c ? c->cause : f->text, c ? ". To use it: " : "",
				   c ? c->remedy : "");
		if (c && f->step == RDMA_STEP_OPEN) /* which file that is */
			document_paragraph(out, STYLE_DIM, 2, "%s.", f->text);
	}
}

/* ---- head and end ---- */

static void add_head(struct document *out, const struct rdma_session *s)
{
	const struct machine *m = s->devices.machine;

	if (devices_are_simulated(&s->devices))
		add_simulated(out, s->devices.request.n);
	if (m && (!devices_are_simulated(&s->devices) || m->recorded)) {
		add_recorded(out, m);
		add_machine_line(out, m);
	}
	add_skips(out, s->devices.chosen.skips, s->devices.chosen.skip_n);
	report_rdma_skips(out, s);
}

static void add_rounds(struct document *out, const struct rdma_session *s)
{
	size_t cells = 0, narrow = 0;
	uint64_t window = 0;
	char size[BYTES_TEXT_SIZE];

	for (size_t i = 0; i < s->pair_n; i++)
		for (size_t k = 0; k < s->pairs[i].run_n; k++)
			for (int m = 0; m < RDMA_MEASURE_N; m++) {
				const struct loopback_result *r = &s->pairs[i].runs[k].result;

				cells += r->cells[m].value.n > 0;
				narrow += r->cells[m].value.n && r->cells[m].stop == STOP_NARROW;
				if (r->cells[m].value.n && (!window || r->window < window))
					window = r->window;
			}
	if (!s->pair_n)
		return;
	document_blank(out);
	document_paragraph(
		out, STYLE_DIM, 0,
		"%zu %s in %zu %s (at least %zu needed), %.1f s after %.1f s to list the NICs%s%s.",
		s->pair_n, text_plural(s->pair_n, "pair", "pairs"), s->rounds.round_n,
		text_plural(s->rounds.round_n, "round", "rounds"), s->rounds.least, s->run_s,
		s->list_s, window ? "; messages go round in at least " : "",
		window ? bytes_text(window, size) : "");
	report_rdma_wide(out, cells - narrow, cells);
}

void report_rdma_wide(struct document *out, size_t wide, size_t all)
{
	if (wide)
		document_paragraph(
			out, STYLE_DIM, 0,
			"%zu of %zu medians stopped at the time limit before the interval narrowed.",
			wide, all);
}

const char *report_rdma_told(const struct rdma_session *s, char buf[static RDMA_TOLD])
{
	if (s->expect_gbps <= 0)
		return NULL;
	snprintf(buf, RDMA_TOLD, "%.4g GB/s in each direction, as --expect says", s->expect_gbps);
	return buf;
}

void report_rdma_rates(struct document *out, const char *told, size_t rated, size_t slow)
{
	const char *by = told ? told : "the rate of the slowest known link";

	if (slow)
		document_paragraph(out, STYLE_WARN, 0,
				   "Rates below what is expected, %s: %zu of %zu are less than "
				   "%.0f %% of it.",
				   by, slow, rated, RDMA_SHORT_OF * 100);
	else if (rated)
		document_paragraph(out, STYLE_GOOD, 0, "Rates as expected, %s: %zu of %zu.", by,
				   rated, rated);
}

static void add_verdict(struct document *out, const struct rdma_session *s)
{
	struct rdma_counts n = rdma_count(s->pairs, s->pair_n);
	char all[TEXT_ALL_SIZE], told[RDMA_TOLD];

	document_blank(out);
	if (s->stopped)
		document_paragraph(out, STYLE_WARN, 0, "Stopped: the results are incomplete.");
	if (n.wrong)
		document_paragraph(
			out, STYLE_BAD, 0,
			"Data WRONG at the owner in %zu of %zu measurements that were checked.",
			n.wrong, n.checked);
	else if (n.checked)
		document_paragraph(out, STYLE_GOOD, 0,
				   "Data checked at the owner: correct in %s %s.",
				   text_all(n.checked, all),
				   text_plural(n.checked, "measurement", "measurements"));
	else if (n.measured)
		document_paragraph(out, STYLE_DIM, 0, "No data was checked.");
	report_rdma_rates(out, report_rdma_told(s, told), n.rated, n.slow);
	if (n.working < n.pairs)
		document_paragraph(out, STYLE_BAD, 0,
				   "%zu of %zu pairs of NIC and memory do not work.",
				   n.pairs - n.working, n.pairs);
	if (!s->pair_n)
		document_paragraph(out, STYLE_WARN, 0, "Nothing to measure.");
}

static void add_run(struct document *out, const struct rdma_session *s, const struct rdma_pair *p,
		    const struct rdma_run *r)
{
	for (int m = 0; m < RDMA_MEASURE_N; m++) {
		const struct rdma_cell *c = &r->result.cells[m];
		AUTO_STRBUF struct strbuf name = {0};
		char size[BYTES_TEXT_SIZE];

		if (!c->value.n)
			continue;
		add_subject(&name, s, p, r);
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s %s, %s", rdma_metric((enum rdma_measure)m),
			      bytes_text(rdma_bytes(r->size, (enum rdma_measure)m), size),
			      strbuf_str(&name));
		add_summary_cells(out, &c->value);
		document_cell(out, STYLE_PLAIN, "%s", p->class);
	}
}

static void add_cells(struct document *out, const struct rdma_session *s)
{
	static const char *const heads[] = {"",      "median", "low",     "high",
					    "least", "most",   "samples", "path"};

	document_blank(out);
	document_table(out, 2, 8, 2);
	document_titles(out, heads);
	for (size_t i = 0; i < s->pair_n; i++)
		for (size_t k = 0; k < s->pairs[i].run_n; k++)
			add_run(out, s, &s->pairs[i], &s->pairs[i].runs[k]);
}

void report_rdma_log(struct document *out, const struct rdma_log *l)
{
	if (!l->n)
		return;
	document_blank(out);
	document_paragraph(out, STYLE_PLAIN, 0, "New in this host's kernel log during the run:");
	for (size_t i = 0; i < l->n; i++)
		document_paragraph(out, STYLE_PLAIN, 2, "%s", l->lines[i]);
	if (l->more)
		document_paragraph(out, STYLE_PLAIN, 2, "and %zu more", l->more);
}

void report_rdma(struct document *out, const struct rdma_session *s, bool verbose)
{
	document_title(out, "GPUDirect RDMA");
	add_head(out, s);
	add_verdict(out, s);
	add_failures(out, s);
	report_rdma_log(out, &s->log);
	add_remarks(out, s, falls_short, "short");
	add_remarks(out, s, is_impossible, "no");
	add_matrices(out, s);
	add_rounds(out, s);
	add_expected(out, s);
	if (verbose)
		add_cells(out, s);
}

/* ---- without measuring ---- */

static const char *foresight_text(const struct rdma_run *r)
{
	static const char *const texts[] = {
		[RDMA_UNFORESEEN] = "unknown until tried",
		[RDMA_CAN] = "should work",
		[RDMA_CANNOT] = "cannot work",
	};

	return texts[r->foresight];
}

static void add_port(struct document *out, const struct nic_port *p)
{
	char name[PORT_NAME], gid[GID_TEXT] = "";

	port_name(p, name);
	document_heading(out, "%s: %s, %s, %.0f Gb/s", name, port_state_text(p->state),
			 p->link_layer == VERBS_LINK_INFINIBAND ? "InfiniBand" : "Ethernet",
			 p->line_gbps);
	if (p->has_gid) {
		gid_text(&p->gid.entry.gid, gid);
		document_item(out, STYLE_PLAIN, 2, "address", "%s, index %u: %s", gid,
			      p->gid.entry.gid_index, p->gid.reason);
	}
	document_item(out, STYLE_PLAIN, 2, "dma-buf", "%s",
		      p->takes_dmabuf == 1   ? "the driver registers it"
		      : p->takes_dmabuf == 0 ? "the driver, or its library, does not register it"
					     : "unknown");
	document_item(out, STYLE_PLAIN, 2, "paging", "%s",
		      p->pages == 1 ? "on demand, for all that is measured (--memory-by on-demand)"
		      : p->pages == 0 ? "not on demand: memory is pinned"
				      : "unknown");
}

void report_rdma_list(struct document *out, const struct rdma_session *s)
{
	add_head(out, s);
	for (size_t i = 0; i < s->listing->n; i++) {
		add_port(out, &s->listing->ports[i]);
		for (size_t k = 0; k < s->pair_n; k++) {
			const struct rdma_pair *p = &s->pairs[k];

			for (size_t r = 0; p->port == i && p->gpu >= 0 && r < p->run_n; r++)
				if (p->runs[r].size.of_rates == s->sizes[0].of_rates)
					document_item(out, STYLE_PLAIN, 2, "pair",
						      "%s%s%s by %s %s%s%s", gpu_name(s, p->gpu),
						      *p->class ? ", path " : "", p->class,
						      region_way_word(p->runs[r].way),
						      foresight_text(&p->runs[r]),
						      *p->runs[r].why ? ": " : "", p->runs[r].why);
		}
	}
	document_blank(out);
	document_paragraph(out, STYLE_DIM, 0, "%zu %s in %zu %s.", s->pair_n,
			   text_plural(s->pair_n, "pair", "pairs"), s->rounds.round_n,
			   text_plural(s->rounds.round_n, "round", "rounds"));
}
