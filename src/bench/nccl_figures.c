/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/nccl_figures.h"

#include "base/alloc.h"
#include "base/text.h"
#include "bench/nccl_api.h"
#include "result/figures.h"

#include <math.h>

int64_t nccl_wrong(const struct nccl_result *r)
{
	int64_t wrong = 0;

	for (size_t i = 0; i < r->row_n; i++)
		for (int k = 0; k < 2; k++)
			if (r->rows[i].cell[k].wrong > 0)
				wrong += r->rows[i].cell[k].wrong;
	return wrong;
}

const struct nccl_cell *nccl_faster(const struct nccl_row *row)
{
	return &row->cell[row->cell[1].time_us < row->cell[0].time_us];
}

static void add_figure(struct figures *f, const struct metric *m, uint64_t bytes, double median,
		       double low, double high, unsigned samples)
{
	struct figure *row = figures_add(f, m->name, -1, -1, median);

	row->bytes = bytes;
	row->samples = samples;
	if (isfinite(low) && isfinite(high)) {
		row->low = low;
		row->high = high;
	}
}

static void add_arm(struct figures *f, const struct nccl_result *r, bool staged)
{
	const char *op = nccl_op_words[r->plan.op];
	const struct metric *time = metric_of_collective(op, false, staged);
	const struct metric *bus = metric_of_collective(op, true, staged);

	for (size_t i = 0; i < r->row_n; i++) {
		const struct nccl_cell *c = nccl_faster(&r->rows[i]);
		double scale = c->busbw_gbps * c->time_us; /* a rate is this over a time */

		if (r->rows[i].bytes == 0)
			continue;
		add_figure(f, time, r->rows[i].bytes, c->time_us, c->low_us, c->high_us,
			   c->batches);
		add_figure(f, bus, r->rows[i].bytes, c->busbw_gbps, scale / c->high_us,
			   scale / c->low_us, c->batches);
	}
}

/* A test of all ranks' GPUs at once. */
static void add_check(struct figures *f, const struct nccl_result *on)
{
	struct figure *row = figures_add(f, METRIC_ALL_VERIFIED, -1, -1, nccl_wrong(on) == 0);
	int *among = arena_alloc(f->arena, f->gpu_n + 1, sizeof(*among));

	for (size_t i = 0; i < f->gpu_n; i++)
		among[i] = (int)i;
	row->among = among;
	row->among_n = f->gpu_n;
}

struct figures *nccl_figures(const struct nccl_result *on, const struct nccl_result *off,
			     const char *device)
{
	struct figures *f = figures_new("", "onehop bench nccl");
	char version[32];

	nccl_version_text(on->start.version, version, sizeof(version));
	f->note = arena_printf(f->arena, "%s, %d %s, NCCL %s, %s %s", device, on->start.ranks,
			       text_plural((size_t)on->start.ranks, "rank", "ranks"), version,
			       nccl_type_words[on->plan.type],
			       nccl_op_reduces(on->plan.op) ? nccl_reduce_op_words[on->plan.redop]
							    : "");
	for (size_t i = 0; i < on->rank_n && i < FIGURES_MAX_GPUS; i++)
		figures_add_gpu(f, on->ranks[i].pci, on->ranks[i].name, on->ranks[i].ordinal);
	if (on->plan.check && on->row_n)
		add_check(f, on);
	add_arm(f, on, false);
	if (off)
		add_arm(f, off, true);
	if (nccl_wrong(on) > 0)
		figures_trouble(f, "%lld elements are wrong", (long long)nccl_wrong(on));
	return f;
}
