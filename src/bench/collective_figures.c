/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/collective_figures.h"

#include "base/alloc.h"
#include "base/text.h"
#include "bench/nccl_api.h"
#include "result/figures.h"

#include <math.h>
#include <stdio.h>

/* -1 is unknown. */
static int64_t above_zero(int64_t n)
{
	return n > 0 ? n : 0;
}

int64_t nccl_wrong(const struct collective_result *r)
{
	int64_t wrong = 0;

	for (size_t i = 0; i < r->row_n; i++)
		for (int k = 0; k < PLACE_N; k++) {
			wrong += above_zero(r->rows[i].cell[k].wrong);
			wrong += above_zero(r->rows[i].other[k].wrong);
		}
	return wrong;
}

size_t nccl_checked(const struct collective_result *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->row_n; i++)
		for (int k = 0; r->rows[i].count && k < PLACE_N; k++)
			n += (r->rows[i].cell[k].wrong >= 0) + (r->rows[i].other[k].wrong >= 0);
	return n;
}

const struct collective_cell *nccl_faster(const struct collective_row *row)
{
	const struct collective_cell *c = row->cell;

	if (!c[OUT_OF_PLACE].batches || c[IN_PLACE].time_us < c[OUT_OF_PLACE].time_us)
		return &c[IN_PLACE];
	return &c[OUT_OF_PLACE];
}

static struct figure *add_figure(struct figures *f, const struct metric *m, uint64_t bytes,
				 double median, double low, double high, unsigned samples)
{
	struct figure *row = figures_add(f, m->name, -1, -1, median);

	row->bytes = bytes;
	row->samples = samples;
	if (isfinite(low) && isfinite(high)) {
		row->low = low;
		row->high = high;
	}
	return row;
}

/* Of libonehop; "": another engine chose, and does not say what. */
static const char *chosen_word(const struct collective_plan *p, const struct collective_row *row)
{
	const enum algorithm a = row->chosen.algorithm;

	return p->engine == ENGINE_ONEHOP && a < ALGORITHM_N ? algorithm_word(a) : "";
}

/* NCCL's times and the ratio to them, of the place that the row is shown by. */
static void add_against(struct figures *f, const struct collective_row *row, const char *op,
			enum collective_place k, bool staged)
{
	const struct collective_cell *other = &row->other[k];
	const struct collective_ratio *ratio = &row->ratio[k];

	if (!ratio->samples)
		return;
	add_figure(f, metric_against_nccl(op, METRIC_AGAINST_TIME, staged), row->bytes,
		   other->time_us, other->low_us, other->high_us, other->batches);
	add_figure(f, metric_against_nccl(op, METRIC_AGAINST_RATIO, staged), row->bytes,
		   ratio->median, ratio->low, ratio->high, ratio->samples);
}

static void add_arm(struct figures *f, const struct collective_result *r, bool staged)
{
	const char *op = nccl_op_words[r->plan.op];
	const struct metric *time = metric_of_collective(op, false, staged);
	const struct metric *bus = metric_of_collective(op, true, staged);

	for (size_t i = 0; i < r->row_n; i++) {
		const struct collective_row *row = &r->rows[i];
		const struct collective_cell *c = nccl_faster(row);
		const char *algorithm = chosen_word(&r->plan, row);
		double scale = c->busbw_gbps * c->time_us; /* a rate is this over a time */

		if (row->bytes == 0 && r->plan.op != NCCL_BARRIER)
			continue;
		add_figure(f, time, row->bytes, c->time_us, c->low_us, c->high_us, c->batches)
			->algorithm = algorithm;
		if (!bus)
			continue;
		add_figure(f, bus, row->bytes, c->busbw_gbps, scale / c->high_us, scale / c->low_us,
			   c->batches)
			->algorithm = algorithm;
		add_against(f, row, op, c == &row->cell[IN_PLACE] ? IN_PLACE : OUT_OF_PLACE,
			    staged);
	}
}

/* A test of all ranks' GPUs at once. */
static void add_check(struct figures *f, const struct collective_result *on)
{
	struct figure *row = figures_add(f, METRIC_ALL_VERIFIED, -1, -1, nccl_wrong(on) == 0);
	int *among = arena_alloc(f->arena, f->gpu_n + 1, sizeof(*among));

	for (size_t i = 0; i < f->gpu_n; i++)
		among[i] = (int)i;
	row->among = among;
	row->among_n = f->gpu_n;
}

/* The commands that measure the engines. */
static const char *const tools[ENGINE_N] = {
	[ENGINE_NCCL] = "onehop bench nccl",
	[ENGINE_SHIM] = "onehop bench nccl --shim",
	[ENGINE_ONEHOP] = "onehop bench collective",
};

static void add_note(struct figures *f, const struct collective_result *on, const char *device)
{
	const struct collective_plan *p = &on->plan;
	const bool ours = p->engine == ENGINE_ONEHOP, reduces = nccl_op_reduces(p->op);
	char nccl[80] = "", version[32];

	nccl_version_text(on->start.version, version, sizeof(version));
	if (collective_plan_uses(p, ENGINE_NCCL))
		snprintf(nccl, sizeof(nccl), "%sNCCL %s%s, ", p->against ? "against " : "", version,
			 collective_plan_windows(p));
	f->note = arena_printf(f->arena, "%s, %d %s, %s%s%s%s%s%s", device, on->start.ranks,
			       text_plural((size_t)on->start.ranks, "rank", "ranks"), nccl,
			       p->op == NCCL_BARRIER ? "no data" : nccl_type_words[p->type],
			       reduces ? " " : "", reduces ? nccl_reduce_op_words[p->redop] : "",
			       ours && p->skip[OUT_OF_PLACE] ? ", in place" : "",
			       ours && p->graph ? ", in a graph" : "");
}

struct figures *collective_figures(const struct collective_result *on,
				   const struct collective_result *off, const char *device)
{
	struct figures *f = figures_new("", tools[on->plan.engine]);

	add_note(f, on, device);
	for (size_t i = 0; i < on->rank_n && i < FIGURES_MAX_GPUS; i++)
		figures_add_gpu(f, on->ranks[i].pci, on->ranks[i].name, on->ranks[i].ordinal);
	if (nccl_checked(on))
		add_check(f, on);
	add_arm(f, on, false);
	if (off)
		add_arm(f, off, true);
	if (nccl_wrong(on) > 0)
		figures_trouble(f, "%lld elements are wrong", (long long)nccl_wrong(on));
	return f;
}
