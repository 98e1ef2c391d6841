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

/* Whether NCCL's times were asked for and are modelled. */
static bool shows_nccl(const struct simulation *s)
{
	return s->nccl && simulated_ring(s) == RING_MODELLED;
}

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
	const bool nccl = shows_nccl(&arm->simulation);

	strbuf_printf(out, "# MODEL, not a measurement: %s by libonehop%s%s\n",
		      nccl_op_words[p->op], nccl ? " and by NCCL's ring" : "",
		      p->graph ? ", in a CUDA graph" : ", all ranks started by one thread");
	strbuf_printf(out, "# %u %s, %s\n", s->paths->device_n,
		      text_plural(s->paths->device_n, "rank", "ranks"), way_text(&arm->simulation));
	for (unsigned i = 0; i < s->paths->device_n; i++) {
		const struct gpu *g = &s->machine->gpus[s->gpus[i]];

		strbuf_printf(out, "# rank %u: %s %s\n", i, g->pci->name,
			      fact_str_or(g->model, "unknown model"));
	}
	add_columns(out, nccl);
}

static void add_nccl(struct strbuf *out, const struct simulated_row *row)
{
	char time[32], busbw[32];

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
		if (shows_nccl(&arm->simulation))
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
	const size_t n = s->paths->device_n, pairs = n * (n - 1);

	if (s->blocked.n)
		document_item(
			out, STYLE_WARN, 0, "P2P",
			"blocked for %u of %zu ordered pairs (the first: from %s to %s), so %s data "
			"goes through the host's memory (onehop check says why)",
			s->blocked.n, pairs, g[s->blocked.from].pci->name,
			g[s->blocked.to].pci->name,
			simulated_paths(&s->arms[0].simulation).mixed ? "such a pair's" : "all");
	else if (s->unsure.n)
		document_item(
			out, STYLE_WARN, 0, "P2P",
			"not certain for %u of %zu ordered pairs (the first: %s from %s to %s); "
			"the model assumes that it works",
			s->unsure.n, pairs, pair_verdict_text(s->unsure.verdict),
			g[s->unsure.from].pci->name, g[s->unsure.to].pci->name);
}

/* Why there are no times of NCCL that were asked for. */
static void add_not_modelled(struct document *out, const struct simulate_session *s)
{
	static const char *const why[RING_N] = {
		[RING_NO_OPERATION] = "NCCL has no ring for this operation, and only its ring is "
				      "modelled",
		[RING_NVLINK] = "the GPUs are connected by NVLink, and its ring is modelled only "
				"over PCIe and through the host's memory",
		[RING_MIXED] = "only some pairs have P2P, and its ring is modelled only where all "
			       "pairs or none have it",
	};
	const struct simulation *on = &s->arms[0].simulation, *off = &s->arms[1].simulation;
	const enum simulated_ring ring = simulated_ring(on);
	const bool only_off = s->arms[1].row_n && simulated_ring(off) == RING_MODELLED;

	if (on->nccl && why[ring])
		document_item(out, STYLE_PLAIN, 0, "NCCL", "not modelled%s: %s",
			      only_off ? " with P2P" : "", why[ring]);
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
	add_not_modelled(out, s);
}

/* ---- with and without P2P ---- */

void report_simulated_p2p(struct document *out, const struct simulate_session *s)
{
	const struct simulated_arm *on = &s->arms[0], *off = &s->arms[1];

	if (!off->row_n) {
		document_item(
			out, STYLE_WARN, 0, "--p2p-off",
			"nothing to compare: no pair has P2P, so the table is already the one "
			"without it");
		return;
	}
	nccl_p2p_head(out);
	for (size_t i = 0; i < on->row_n && i < off->row_n; i++)
		nccl_p2p_row(out, on->rows[i].bytes, &on->rows[i].own, &off->rows[i].own);
}
