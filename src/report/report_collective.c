/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_collective.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "bench/nccl_api.h"
#include "report/document.h"
#include "report/nccl_table.h"
#include "report/report_impl.h"
#include "report/report_nccl.h"

#include <math.h>
#include <stdio.h>

static enum collective_place place_of(const struct collective_plan *p)
{
	return p->skip[OUT_OF_PLACE] ? IN_PLACE : OUT_OF_PLACE;
}

static bool is_shim(const struct collective_plan *p)
{
	return p->engine == ENGINE_SHIM;
}

/* ---- the table ---- */

void report_simulated_devices(struct strbuf *out, int n)
{
	strbuf_printf(out, "# " SIMULATED_NOTICE "\n", (size_t)n);
}

/* Of libonehop; the log says it of the shim. */
static const char *way_text(const struct collective_result *r)
{
	if (is_shim(&r->plan))
		return "";
	if (r->start.ranks < 2)
		return ", no data goes to another device";
	return r->start.direct  ? ", directly into the memory of the other devices"
	       : r->start.mixed ? ", directly where pairs have P2P, else through the host's memory"
				: ", through the host's memory";
}

static void add_columns(struct strbuf *out, const struct collective_plan *p)
{
	static const char columns[] = "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s";
	static const char algorithm[] = "  %9s";
	static const char against[] = "  %7s  %6s  %6s  %5s  %13s";

	strbuf_printf(out, columns, "size", "count", "type", "redop", "root", "time", "algbw",
		      "busbw", "#wrong");
	if (!is_shim(p))
		strbuf_printf(out, algorithm, "algorithm");
	if (p->against)
		strbuf_printf(out, against, "NCCL", "busbw", "#wrong", "ratio", "95 % interval");
	strbuf_putc(out, '\n');
	strbuf_printf(out, columns, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)",
		      "");
	if (!is_shim(p))
		strbuf_printf(out, algorithm, "");
	if (p->against)
		strbuf_printf(out, against, "(us)", "(GB/s)", "", "", "");
	strbuf_putc(out, '\n');
}

static void add_head(struct strbuf *out, const struct collective_arm *arm)
{
	const struct collective_result *r = &arm->result;
	const struct collective_plan *p = &r->plan;
	char nccl[96] = "", version[32];

	nccl_version_text(r->start.version, version, sizeof(version));
	if (p->against)
		snprintf(nccl, sizeof(nccl), ", in turn with NCCL %s%s", version,
			 collective_plan_windows(p));
	strbuf_printf(out, "# %s by %s%s%s%s\n", nccl_op_words[p->op],
		      is_shim(p) ? collective_engine_names[p->engine] : "libonehop",
		      p->op == NCCL_BARRIER     ? ""
		      : place_of(p) == IN_PLACE ? ", in place"
						: ", out of place",
		      p->graph ? ", in a CUDA graph" : "", nccl);
	strbuf_printf(out, "# %d %s%s\n", r->start.ranks,
		      text_plural((size_t)r->start.ranks, "rank", "ranks"), way_text(r));
	for (size_t i = 0; i < r->rank_n; i++)
		strbuf_printf(out, "# rank %d: %s%s%s (device %d on %s)\n", r->ranks[i].rank,
			      r->ranks[i].pci, *r->ranks[i].pci ? " " : "", r->ranks[i].name,
			      r->ranks[i].ordinal, r->ranks[i].host);
	add_columns(out, p);
}

static void add_against(struct strbuf *out, const struct collective_cell *other,
			const struct collective_ratio *ratio)
{
	char time[32], busbw[32];

	nccl_table_number(other->time_us, 7, time, sizeof(time));
	nccl_table_number(other->busbw_gbps, 6, busbw, sizeof(busbw));
	strbuf_printf(out, "  %7s  %6s", time, busbw);
	if (other->wrong < 0)
		strbuf_printf(out, "  %6s", "N/A");
	else
		strbuf_printf(out, "  %6lld", (long long)other->wrong);
	strbuf_printf(out, "  %5.2f", ratio->median);
	if (isfinite(ratio->low) && isfinite(ratio->high))
		strbuf_printf(out, "  %5.3f - %5.3f", ratio->low, ratio->high);
}

void nccl_table_algorithms(struct strbuf *out, const double *us)
{
	const char *between = "";

	for (int a = 0; a < ALGORITHM_N; a++) {
		if (isnan(us[a]))
			continue;
		strbuf_printf(out, "%s%s %.1f us", between, algorithm_word((enum algorithm)a),
			      us[a]);
		between = ", ";
	}
}

static void add_times(struct strbuf *out, const struct collective_chosen *c)
{
	strbuf_puts(out, c->measured ? "#   tuned: " : "#   estimated: ");
	nccl_table_algorithms(out, c->us);
	strbuf_putc(out, '\n');
}

static void add_row(struct strbuf *out, const struct collective_arm *arm,
		    const struct collective_row *row, bool verbose)
{
	const struct collective_plan *plan = &arm->result.plan;
	const enum collective_place k = place_of(plan);

	nccl_table_row(out, plan, row);
	nccl_table_cell(out, &row->cell[k]);
	if (!is_shim(plan))
		strbuf_printf(out, "  %9s", algorithm_word(row->chosen.algorithm));
	if (plan->against)
		add_against(out, &row->other[k], &row->ratio[k]);
	strbuf_putc(out, '\n');
	if (verbose && !is_shim(plan))
		add_times(out, &row->chosen);
}

/* ---- what it means ---- */

enum standing { FASTER, EQUAL, SLOWER, OPEN, STANDING_N };

static enum standing standing_of(const struct collective_ratio *r)
{
	if (!isfinite(r->low) || !isfinite(r->high))
		return OPEN;
	if (r->high < 1)
		return FASTER;
	return r->low > 1 ? SLOWER : EQUAL;
}

static void add_slower(struct document *out, const struct collective_result *r,
		       enum collective_place k)
{
	for (size_t i = 0; i < r->row_n; i++) {
		const struct collective_row *row = &r->rows[i];
		char bytes[BYTES_TEXT_SIZE];

		if (standing_of(&row->ratio[k]) == SLOWER)
			document_paragraph(out, STYLE_BAD, 2,
					   "slower at %s: %.2f us, NCCL %.2f us, ratio %.2f%s%s%s",
					   bytes_text(row->bytes, bytes), row->cell[k].time_us,
					   row->other[k].time_us, row->ratio[k].median,
					   is_shim(&r->plan) ? "" : " (",
					   is_shim(&r->plan)
						   ? ""
						   : algorithm_word(row->chosen.algorithm),
					   is_shim(&r->plan) ? "" : ")");
	}
}

static void add_standing(struct document *out, const struct collective_result *r, const char *key)
{
	const enum collective_place k = place_of(&r->plan);
	size_t n[STANDING_N] = {0}, narrow = 0;

	for (size_t i = 0; i < r->row_n; i++) {
		n[standing_of(&r->rows[i].ratio[k])]++;
		narrow += r->rows[i].ratio[k].narrow;
	}
	if (n[OPEN] == r->row_n) {
		document_item(out, STYLE_WARN, 0, key,
			      "not decided: too few batches for an interval");
		return;
	}
	document_item(
		out, n[SLOWER] ? STYLE_WARN : STYLE_GOOD, 0, key,
		"faster at %zu of %zu %s, equal at %zu (the interval of the ratio contains 1), "
		"slower at %zu%s",
		n[FASTER], r->row_n, text_plural(r->row_n, "size", "sizes"), n[EQUAL], n[SLOWER],
		n[OPEN] ? "; the rest has too few batches for an interval" : "");
	add_slower(out, r, k);
	document_item(
		out, STYLE_PLAIN, 0, "ratio",
		"time over NCCL's, median of batches that ran in turn; at %zu of %zu %s the 95 "
		"%% interval is within %g %% of it%s",
		narrow, r->row_n, text_plural(r->row_n, "size", "sizes"), NCCL_RATIO_RELATIVE * 100,
		narrow < r->row_n ? "; else the time limit was reached (--budget)" : "");
}

/* With a table that is used: it may lack the operation, or some sizes. */
static void add_used(struct document *out, const struct tune_use *u,
		     const struct collective_result *r, const char *measure)
{
	size_t n = 0;

	for (size_t i = 0; i < r->row_n; i++)
		n += r->rows[i].chosen.measured;
	if (n == r->row_n)
		document_item(out, STYLE_PLAIN, 0, "choice", "by times measured %s (%s)",
			      u->table.date, u->path);
	else if (n)
		document_item(out, STYLE_PLAIN, 0, "choice",
			      "by times measured %s (%s) at %zu of %zu sizes, else by estimates. "
			      "To measure this machine again: %s",
			      u->table.date, u->path, n, r->row_n, measure);
	else
		document_item(out, STYLE_WARN, 0, "choice",
			      "by estimates: %s has no times of this operation at these sizes. To "
			      "measure this machine again: %s",
			      u->path, measure);
}

/* By what the algorithms were chosen. */
static void add_choice(struct document *out, const struct tune_use *u,
		       const struct collective_result *r)
{
	char measure[48] = "onehop tune";

	if (u->simulated)
		snprintf(measure, sizeof(measure), "onehop tune --device host:%u", u->simulated);
	if (u->found && r->start.older_table)
		document_item(
			out, STYLE_WARN, 0, "choice",
			"by estimates: %s is older than levels or the chain, which these GPUs can "
			"use. To measure this machine again: %s",
			u->path, measure);
	else if (u->found)
		add_used(out, u, r, measure);
	else if (*u->why)
		document_item(out, STYLE_WARN, 0, "choice",
			      "by estimates: %s. To measure this machine again: %s", u->why,
			      measure);
	else
		document_item(out, STYLE_PLAIN, 0, "choice",
			      "by estimates. To measure this machine: %s", measure);
}

/* Against NCCL: at which sizes it is faster; whether the data was right; what was measured. */
static void add_arm(struct document *out, const struct collective_arm *arm, const char *data_key,
		    bool verbose)
{
	const struct collective_result *r = &arm->result;
	char version[32];

	document_blank(out);
	if (r->plan.against && r->row_n)
		add_standing(out, r, is_shim(&r->plan) ? "with the shim" : "against NCCL");
	nccl_report_data(out, r, data_key);
	document_item(out, STYLE_PLAIN, 0, "measured on", "%s, %d %s%s", arm->device,
		      r->start.ranks, text_plural((size_t)r->start.ranks, "rank", "ranks"),
		      way_text(r));
	if (arm->machine)
		add_numbering(out, arm->machine);
	if (!r->plan.against || verbose)
		nccl_report_spread(out, r, verbose);
	nccl_report_sizes(out, r);
	if (verbose && arm->choice && r->row_n)
		add_choice(out, arm->choice, r);
	if (!r->plan.against)
		return;
	nccl_version_text(r->start.version, version, sizeof(version));
	document_item(out, STYLE_PLAIN, 0, "NCCL", "%s%s, %s", version,
		      collective_plan_windows(&r->plan), r->start.library);
	if (!arm->log)
		return;
	document_blank(out);
	document_heading(out, "How NCCL connected its ranks, from %s log",
			 arm->several_logs ? "rank 0's" : "its");
	report_log(out, arm->log, verbose);
}

static void add_no_p2p(struct document *out, const struct collective_arm *off)
{
	if (off->result.plan.against && off->result.row_n)
		add_standing(out, &off->result,
			     is_shim(&off->result.plan) ? "with the shim, both without P2P"
							: "against NCCL, both without P2P");
}

static void add_verdict(struct document *out, const struct collective_session *s, bool verbose)
{
	add_arm(out, &s->arms[0], nccl_data_key(s), verbose);
	if (!s->arms[1].result.row_n)
		return;
	report_nccl_p2p(out, &s->arms[0].result, &s->arms[1]);
	add_no_p2p(out, &s->arms[1]);
}

const struct collective_layout collective_layout = {
	.head = add_head,
	.row = add_row,
	.verdict = add_verdict,
};
