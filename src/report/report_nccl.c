/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_nccl.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "bench/collective_figures.h"
#include "bench/nccl_api.h"
#include "report/document.h"
#include "report/nccl_table.h"
#include "report/report_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The version of nccl-tests whose layout this is. */
#define NCCL_TESTS_VERSION "2.19.6"

/* ---- nccl-tests' table ---- */

void nccl_table_number(double value, int width, char *buf, size_t size)
{
	for (int decimals = 2; decimals >= 0; decimals--)
		if (snprintf(buf, size, "%*.*f", width, decimals, value) <= width)
			return;
	snprintf(buf, size, "%*.*e", width, width >= 7 ? 1 : 0, value);
}

static void add_rank(struct strbuf *out, const struct collective_rank *r)
{
	unsigned domain = 0, bus = 0, device = 0;

	if (sscanf(r->pci, "%4x:%2x:%2x", &domain, &bus, &device) < 3)
		domain = bus = device = 0;
	strbuf_printf(out, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %s\n",
		      r->rank, 0, r->pid, r->host, r->ordinal, domain, bus, device, r->name);
}

static void add_columns(struct strbuf *out)
{
	static const char row[] =
		"# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s \n";

	strbuf_printf(
		out,
		"# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place "
		"         \n",
		"", "", "", "", "");
	strbuf_printf(out, row, "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
		      "#wrong", "time", "algbw", "busbw", "#wrong");
	strbuf_printf(out, row, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "",
		      "(us)", "(GB/s)", "(GB/s)", "");
}

static void add_head(struct strbuf *out, const struct collective_arm *arm)
{
	const struct collective_result *r = &arm->result;
	const struct collective_plan *p = &r->plan;
	bool by_factor = p->factor > 1;

	strbuf_printf(out, "# nccl-tests version %s nccl-headers=%d nccl-library=%d\n",
		      NCCL_TESTS_VERSION, r->start.version, r->start.version);
	strbuf_printf(out, "# Collective test starting: %s_perf\n", nccl_tests_name(p->op));
	strbuf_printf(
		out,
		"# nThread %d nGpus %zu minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: "
		"%u iters: %u agg iters: %d validation: %d graph: %u unalign: %d\n#\n",
		1, arm->process_gpus, (unsigned long long)p->min_bytes,
		(unsigned long long)r->start.max_bytes,
		(unsigned long long)(by_factor ? p->factor : p->step),
		by_factor ? "factor" : "bytes", p->warmup, p->iterations, 1, p->check, p->graph, 0);
	strbuf_puts(out, "# Using devices\n");
	for (size_t i = 0; i < r->rank_n; i++)
		add_rank(out, &r->ranks[i]);
	strbuf_puts(out, "#\n");
	add_columns(out);
}

void nccl_table_times(struct strbuf *out, const struct collective_cell *c)
{
	char time[32], algbw[32], busbw[32];

	nccl_table_number(c->time_us, 7, time, sizeof(time));
	nccl_table_number(c->algbw_gbps, 6, algbw, sizeof(algbw));
	nccl_table_number(c->busbw_gbps, 6, busbw, sizeof(busbw));
	strbuf_printf(out, "  %7s  %6s  %6s", time, algbw, busbw);
}

void nccl_table_cell(struct strbuf *out, const struct collective_cell *c)
{
	nccl_table_times(out, c);
	if (c->wrong < 0)
		strbuf_puts(out, "    N/A");
	else
		strbuf_printf(out, "  %6g", (double)c->wrong);
}

void nccl_table_row(struct strbuf *out, const struct collective_plan *p,
		    const struct collective_row *row)
{
	bool reduces = nccl_op_reduces(p->op) || p->op == NCCL_SEND_RECV;

	strbuf_printf(out, "%12lu  %12lu  %8s  %6s  %6d", row->bytes, row->count,
		      p->op == NCCL_BARRIER ? "none" : nccl_type_words[p->type],
		      reduces ? nccl_reduce_op_words[p->redop] : "none",
		      nccl_op_has_root(p->op) ? p->root : -1);
}

static void add_row(struct strbuf *out, const struct collective_arm *arm,
		    const struct collective_row *row, bool verbose)
{
	(void)verbose;
	nccl_table_row(out, &arm->result.plan, row);
	for (int k = 0; k < PLACE_N; k++)
		nccl_table_cell(out, &row->cell[k]);
	strbuf_putc(out, '\n');
}

/* nccl-tests counts the results that are wrong, not the elements. */
static int wrong_cells(const struct collective_result *r)
{
	int n = 0;

	for (size_t i = 0; i < r->row_n; i++)
		for (int k = 0; k < PLACE_N; k++)
			n += (r->rows[i].cell[k].wrong > 0) + (r->rows[i].other[k].wrong > 0);
	return n;
}

static void add_foot(struct strbuf *out, const struct collective_arm *arm)
{
	const struct collective_result *r = &arm->result;
	int wrong = wrong_cells(r);
	double sum = 0;

	for (size_t i = 0; i < r->row_n; i++)
		sum += r->rows[i].cell[0].busbw_gbps + r->rows[i].cell[1].busbw_gbps;
	strbuf_printf(out, "# %-20s : %d %s\n", "Out of bounds values", wrong,
		      wrong ? "FAILED" : "OK");
	strbuf_printf(out, "# %-20s : %g \n#\n", "Avg bus bandwidth",
		      r->row_n ? sum / (2.0 * (double)r->row_n) : 0);
	strbuf_printf(out, "# Collective test concluded: %s_perf\n#\n",
		      nccl_tests_name(r->plan.op));
}

/* ---- what it means ---- */

static const char *place_text(int k)
{
	return k ? "in place" : "out of place";
}

static void add_wrong_cell(struct document *out, const struct collective_result *r,
			   const struct collective_row *row, const struct collective_cell *c)
{
	const bool other = c >= row->other && c < row->other + PLACE_N;
	const struct collective_cell *first = other ? row->other : row->cell;
	const enum collective_engine e = other ? r->plan.rival : r->plan.engine;
	char bytes[BYTES_TEXT_SIZE];

	if (c->wrong <= 0)
		return;
	document_paragraph(out, STYLE_BAD, 2,
			   "%s%s%s, %s, %s: %lld wrong %s, the first on rank %d is element %llu",
			   r->plan.against ? collective_engine_names[e] : "",
			   r->plan.against ? ", " : "", nccl_op_words[r->plan.op],
			   bytes_text(row->bytes, bytes), place_text((int)(c - first)),
			   (long long)c->wrong,
			   text_plural((size_t)c->wrong, "element", "elements"), c->wrong_rank,
			   (unsigned long long)c->wrong_index);
}

static void add_wrong_cells(struct document *out, const struct collective_result *r)
{
	for (size_t i = 0; i < r->row_n; i++)
		for (int k = 0; k < PLACE_N; k++) {
			add_wrong_cell(out, r, &r->rows[i], &r->rows[i].cell[k]);
			add_wrong_cell(out, r, &r->rows[i], &r->rows[i].other[k]);
		}
}

/* "the one time", "both times", "all 3 times". */
#define EACH_TEXT_SIZE (TEXT_ALL_SIZE + 32)
static const char *each_text(size_t n, const char *one, const char *many,
			     char buf[static EACH_TEXT_SIZE])
{
	char all[TEXT_ALL_SIZE];

	snprintf(buf, EACH_TEXT_SIZE, "%s %s", n == 1 ? "the one" : text_all(n, all),
		 text_plural(n, one, many));
	return buf;
}

/* "the one time", "2 of 3 times". */
static const char *some_text(size_t part, size_t n, const char *one, const char *many,
			     char buf[static EACH_TEXT_SIZE])
{
	if (n == 1)
		return each_text(n, one, many, buf);
	snprintf(buf, EACH_TEXT_SIZE, "%zu of %zu %s", part, n, many);
	return buf;
}

void nccl_report_data(struct document *out, const struct collective_result *r, const char *key)
{
	const size_t checked = nccl_checked(r), wrong = (size_t)wrong_cells(r);
	char results[EACH_TEXT_SIZE];

	if (wrong) {
		document_item(out, STYLE_BAD, 0, key, "WRONG in %s",
			      some_text(wrong, checked, "checked result", "checked results",
					results));
		add_wrong_cells(out, r);
	} else if (checked == 0) {
		document_item(out, STYLE_WARN, 0, key, "not checked");
	} else {
		document_item(out, STYLE_GOOD, 0, key,
			      "correct in %s (checked by the owner, outside the timed part)",
			      each_text(checked, "checked result", "checked results", results));
	}
}

const char *nccl_data_key(const struct collective_session *s)
{
	return s->arms[1].result.row_n ? NCCL_DATA_ON : "data";
}

/* The widest interval, as a share of its median. */
static double spread_of(const struct collective_cell *c)
{
	double below = c->time_us - c->low_us, above = c->high_us - c->time_us;

	return fmax(below, above) / c->time_us;
}

static void add_spread(struct document *out, const struct collective_result *r,
		       const struct collective_row *row, int k)
{
	const struct collective_cell *c = &row->cell[k];
	char bytes[BYTES_TEXT_SIZE], interval[96] = "too few batches for an interval";

	if (!c->batches)
		return;
	if (isfinite(c->low_us) && isfinite(c->high_us))
		snprintf(interval, sizeof(interval), "95 %% interval %.2f to %.2f (%.1f %%)",
			 c->low_us, c->high_us, spread_of(c) * 100);
	document_paragraph(out, STYLE_PLAIN, 2, "%s, %s: %.2f us, %s, %u %s of %u",
			   bytes_text(row->bytes, bytes), place_text(k), c->time_us, interval,
			   c->batches, text_plural(c->batches, "batch", "batches"),
			   r->plan.iterations);
}

void nccl_report_spread(struct document *out, const struct collective_result *r, bool verbose)
{
	char times[EACH_TEXT_SIZE];
	size_t settled = 0, measured = 0;

	for (size_t i = 0; i < r->row_n; i++)
		for (int k = 0; k < PLACE_N; k++) {
			settled += r->rows[i].cell[k].narrow;
			measured += r->rows[i].cell[k].batches > 0;
		}
	if (r->plan.relative <= 0 || measured == 0)
		return;
	if (settled < measured)
		document_item(out, STYLE_WARN, 0, "spread",
			      "not stable: %s (95 %% interval wider than %g %% of the median); "
			      "raise --budget",
			      some_text(measured - settled, measured, "time", "times", times),
			      r->plan.relative * 100);
	else
		document_item(out, STYLE_PLAIN, 0, "spread",
			      "stable: %s (95 %% interval within %g %% of the median)",
			      each_text(measured, "time", "times", times), r->plan.relative * 100);
	if (settled < measured && !verbose)
		document_hint(out, "-v lists them");
	for (size_t i = 0; verbose && i < r->row_n; i++)
		for (int k = 0; k < PLACE_N; k++)
			add_spread(out, r, &r->rows[i], k);
}

void nccl_report_sizes(struct document *out, const struct collective_result *r)
{
	char bytes[BYTES_TEXT_SIZE];

	if (r->start.max_bytes >= r->plan.max_bytes)
		return;
	document_item(out, STYLE_WARN, 0, "sizes",
		      "largest is %s: two larger buffers do not fit into the free memory of the "
		      "devices, or into --memory",
		      bytes_text(r->start.max_bytes, bytes));
}

static void add_arm(struct document *out, const struct collective_arm *arm, const char *data_key,
		    bool verbose)
{
	const struct collective_result *r = &arm->result;
	char version[32];

	nccl_version_text(r->start.version, version, sizeof(version));
	document_blank(out);
	document_item(out, STYLE_PLAIN, 0, "measured on", "%s, %d %s", arm->device, r->start.ranks,
		      text_plural((size_t)r->start.ranks, "rank", "ranks"));
	if (arm->machine)
		add_numbering(out, arm->machine);
	document_item(out, STYLE_PLAIN, 0, "NCCL", "%s, %s", version, r->start.library);
	nccl_report_data(out, r, data_key);
	nccl_report_spread(out, r, verbose);
	nccl_report_sizes(out, r);
	if (arm->log) {
		document_blank(out);
		document_heading(out, "How NCCL connected its ranks, from %s log",
				 arm->several_logs ? "rank 0's" : "its");
		report_log(out, arm->log, verbose);
	}
}

/* ---- with and without P2P ---- */

static const struct collective_row *row_of(const struct collective_result *r, uint64_t bytes)
{
	for (size_t i = 0; i < r->row_n; i++)
		if (r->rows[i].bytes == bytes)
			return &r->rows[i];
	return NULL;
}

void nccl_p2p_head(struct document *out)
{
	static const char *const columns[] = {"size",      "P2P us",     "GB/s busbw",
					      "no P2P us", "GB/s busbw", "speedup"};

	document_blank(out);
	document_heading(out, "What P2P gains");
	document_table(out, 2, ARRAY_LEN(columns), 2);
	document_row(out);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		document_cell(out, STYLE_STRONG, "%s", columns[i]);
}

void nccl_p2p_row(struct document *out, uint64_t bytes, const struct collective_cell *on,
		  const struct collective_cell *off)
{
	double ratio = off->time_us / on->time_us;
	char size[BYTES_TEXT_SIZE];

	document_row(out);
	document_cell(out, STYLE_PLAIN, "%s", bytes_text(bytes, size));
	document_cell(out, STYLE_PLAIN, "%.2f", on->time_us);
	document_cell(out, STYLE_PLAIN, "%.2f", on->busbw_gbps);
	document_cell(out, STYLE_PLAIN, "%.2f", off->time_us);
	document_cell(out, STYLE_PLAIN, "%.2f", off->busbw_gbps);
	document_cell(out, ratio > 1 ? STYLE_GOOD : STYLE_PLAIN, "%.2f", ratio);
}

/* Shows that the run without P2P used none. */
static void add_control(struct document *out, const struct collective_arm *off)
{
	struct nccl_log_counts c;

	if (off->log) {
		nccl_log_count(off->log, &c);
		document_item(out, STYLE_PLAIN, 2, "no P2P", "%zu of %zu connected pairs used P2P",
			      c.p2p, c.pairs);
	}
	nccl_report_data(out, &off->result, NCCL_DATA_OFF);
}

static const char *const no_p2p_texts[ENGINE_N] = {
	[ENGINE_NCCL] = ("Times of the faster placement. \"no P2P\" ran with "
			 "NCCL_P2P_DISABLE=1 in a separate process."),
	[ENGINE_SHIM] =
		("Times with the shim. \"no P2P\" ran with NCCL_P2P_DISABLE=1 in a separate "
		 "process."),
	[ENGINE_ONEHOP] = ("\"no P2P\" ran in a separate process, with all data through the "
			   "host's memory."),
};

void report_nccl_p2p(struct document *out, const struct collective_result *on,
		     const struct collective_arm *off)
{
	nccl_p2p_head(out);
	for (size_t i = 0; i < on->row_n; i++) {
		const struct collective_row *other = row_of(&off->result, on->rows[i].bytes);

		if (other)
			nccl_p2p_row(out, on->rows[i].bytes, nccl_faster(&on->rows[i]),
				     nccl_faster(other));
	}
	document_paragraph(out, STYLE_PLAIN, 2, "%s", no_p2p_texts[on->plan.engine]);
	add_control(out, off);
}

static void add_verdict(struct document *out, const struct collective_session *s, bool verbose)
{
	add_arm(out, &s->arms[0], nccl_data_key(s), verbose);
	if (s->arms[1].result.row_n)
		report_nccl_p2p(out, &s->arms[0].result, &s->arms[1]);
}

const struct collective_layout nccl_layout = {
	.head = add_head,
	.row = add_row,
	.foot = add_foot,
	.verdict = add_verdict,
};
