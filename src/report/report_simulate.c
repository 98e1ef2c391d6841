// SPDX-License-Identifier: Apache-2.0
/*
 * What `onehop bench collective --simulate` prints: the same table, from a model, and what the
 * model rests on.
 */
#include "report/report_collective.h"

#include "base/strbuf.h"
#include "base/text.h"
#include "report/document.h"
#include "report/nccl_table.h"
#include "report/report_impl.h"

#include <math.h>

/*
 * Another algorithm counts as faster in the model below this share of the time of the chosen one.
 */
#define CLEARLY 0.9

static void add_columns(struct strbuf *out, bool nccl)
{
	static const char columns[] = "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %9s";
	static const char against[] = "  %7s  %6s  %5s";

	strbuf_printf(out, columns, "size", "count", "type", "redop", "root", "time", "algbw",
		      "busbw", "algorithm");
	if (nccl)
		strbuf_printf(out, against, "NCCL", "busbw", "ratio");
	strbuf_putc(out, '\n');
	strbuf_printf(out, columns, "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)",
		      "");
	if (nccl)
		strbuf_printf(out, against, "(us)", "(GB/s)", "");
	strbuf_putc(out, '\n');
}

static const char *way_text(const struct simulation *s)
{
	const struct simulated_paths p = simulated_paths(s);

	return p.direct  ? "directly into the memory of the other devices"
	       : p.mixed ? "directly where pairs have P2P, else through the host's memory"
			 : "through the host's memory";
}

static void add_head(struct strbuf *out, const struct simulate_session *s,
		     const struct simulated_arm *arm)
{
	const struct collective_plan *p = &arm->simulation.plan;

	strbuf_printf(out, "# MODEL, not a measurement: %s by libonehop%s%s\n",
		      nccl_op_words[p->op], p->against ? " and by NCCL's ring" : "",
		      p->graph ? ", in a CUDA graph" : ", all ranks started by one thread");
	strbuf_printf(out, "# %u %s, %s\n", s->paths->device_n,
		      text_plural(s->paths->device_n, "rank", "ranks"), way_text(&arm->simulation));
	for (unsigned i = 0; i < s->paths->device_n; i++) {
		const struct gpu *g = &s->machine->gpus[s->gpus[i]];

		strbuf_printf(out, "# rank %u: %s %s\n", i, g->pci->name,
			      fact_str_or(g->model, "unknown model"));
	}
	add_columns(out, p->against);
}

static void add_nccl(struct strbuf *out, const struct simulated_row *row)
{
	char time[32], busbw[32];

	if (row->nccl.time_us <= 0) {
		strbuf_printf(out, "  %7s  %6s  %5s", "-", "-", "-");
		return;
	}
	nccl_table_number(row->nccl.time_us, 7, time, sizeof(time));
	nccl_table_number(row->nccl.busbw_gbps, 6, busbw, sizeof(busbw));
	strbuf_printf(out, "  %7s  %6s  %5.2f", time, busbw, row->own.time_us / row->nccl.time_us);
}

static void add_models(struct strbuf *out, const struct simulated_row *row)
{
	strbuf_puts(out, "#   model: ");
	nccl_table_algorithms(out, row->us);
	strbuf_printf(out, "; estimated when choosing: %.1f us\n", row->choice.us);
}

void report_simulated_table(struct strbuf *out, const struct simulate_session *s,
			    const struct simulated_arm *arm, bool verbose)
{
	const struct collective_plan *p = &arm->simulation.plan;

	add_head(out, s, arm);
	for (size_t i = 0; i < arm->row_n; i++) {
		const struct simulated_row *row = &arm->rows[i];
		const struct collective_row shown = {.bytes = row->bytes, .count = row->count};

		nccl_table_row(out, p, &shown);
		nccl_table_times(out, &row->own);
		strbuf_printf(out, "  %9s", algorithm_word(row->choice.algorithm));
		if (p->against)
			add_nccl(out, row);
		strbuf_putc(out, '\n');
		if (verbose)
			add_models(out, row);
	}
}

/* ---- what it rests on ---- */

/* ALGORITHM_N: none is clearly faster than the chosen one. */
static enum algorithm faster_than_chosen(const struct simulated_row *row)
{
	enum algorithm best = row->choice.algorithm;

	for (int a = 0; a < ALGORITHM_N; a++)
		if (row->us[a] < row->us[best])
			best = (enum algorithm)a;
	return row->us[best] < CLEARLY * row->us[row->choice.algorithm] ? best : ALGORITHM_N;
}

static void add_choice(struct document *out, const struct simulated_arm *arm)
{
	const struct simulated_row *worst = NULL;
	char bytes[BYTES_TEXT_SIZE];
	double least = 1;
	size_t n = 0;

	for (size_t i = 0; i < arm->row_n; i++) {
		const struct simulated_row *row = &arm->rows[i];
		const enum algorithm a = faster_than_chosen(row);

		if (a == ALGORITHM_N)
			continue;
		n++;
		if (row->us[a] / row->us[row->choice.algorithm] < least) {
			least = row->us[a] / row->us[row->choice.algorithm];
			worst = row;
		}
	}
	if (!worst)
		return;
	document_item(
		out, STYLE_WARN, 0, "choice",
		"by libonehop's estimates. In the model another algorithm takes less than %.2f of "
		"the time at %zu of %zu sizes, least at %s: %s would take %.2f times as long as %s. On the machine "
		"itself onehop tune corrects the choice",
		CLEARLY, n, arm->row_n, bytes_text(worst->bytes, bytes),
		algorithm_word(faster_than_chosen(worst)), least,
		algorithm_word(worst->choice.algorithm));
}

static void add_p2p(struct document *out, const struct simulate_session *s)
{
	const struct gpu *g = s->machine->gpus;

	if (s->blocked)
		document_item(out, STYLE_WARN, 0, "P2P",
			      "blocked from %s to %s, so %s data goes through the host's memory "
			      "(onehop check says why)",
			      g[s->blocked_pair[0]].pci->name, g[s->blocked_pair[1]].pci->name,
			      simulated_paths(&s->arms[0].simulation).mixed ? "such a pair's"
									    : "all");
	else if (s->unsure)
		document_item(out, STYLE_WARN, 0, "P2P",
			      "%s from %s to %s; the model assumes that it works",
			      pair_verdict_text(s->unsure->verdict), g[s->unsure_pair[0]].pci->name,
			      g[s->unsure_pair[1]].pci->name);
}

void report_simulated_basis(struct document *out, const struct simulate_session *s)
{
	const unsigned n = s->paths->device_n;
	char rates[SIMULATED_RATES_SIZE];

	document_blank(out);
	document_item(out, STYLE_WARN, 0, "model",
		      "nothing ran: these are predictions. docs/performance.md lists how far the "
		      "model was from measured times");
	add_p2p(out, s);
	add_choice(out, &s->arms[0]);
	document_item(out, STYLE_PLAIN, 0, "rates", "%s", simulate_session_rates(s, rates));
	if (n > COLLECTIVE_RANKS_MAX)
		document_item(out, STYLE_WARN, 0, "ranks",
			      "libonehop has at most %d; the model runs its plans with %u",
			      COLLECTIVE_RANKS_MAX, n);
	if (s->arms[0].simulation.nccl && s->arms[0].row_n && s->arms[0].rows[0].nccl.time_us <= 0)
		document_item(out, STYLE_PLAIN, 0, "NCCL",
			      "not modelled here: only its ring over PCIe or through the host's "
			      "memory is");
}
