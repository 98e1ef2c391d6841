/* SPDX-License-Identifier: Apache-2.0 */
#include "result/figures.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- building ---- */

struct figures *figures_new(const char *name, const char *tool)
{
	struct arena *arena = arena_new();
	struct figures *f = arena_alloc(arena, 1, sizeof(*f));

	f->arena = arena;
	f->name = arena_strdup(arena, name);
	f->tool = arena_strdup(arena, tool);
	f->when = f->note = "";
	return f;
}

void figures_free(struct figures *f)
{
	if (f)
		arena_free(f->arena);
}

void figures_need_gpus(struct figures *f, size_t n)
{
	while (f->gpu_n < n)
		*ARENA_PUSH(f->arena, f->gpus, f->gpu_n) =
			(struct figure_gpu){.nvml_index = -1, .cuda_ordinal = -1};
}

void figures_add_gpu(struct figures *f, const char *pci, const char *name, int cuda_ordinal)
{
	*ARENA_PUSH(f->arena, f->gpus, f->gpu_n) = (struct figure_gpu){
		.pci = *pci ? arena_strdup(f->arena, pci) : NULL,
		.name = arena_strdup(f->arena, name),
		.nvml_index = -1,
		.cuda_ordinal = *pci ? cuda_ordinal : -1,
	};
}

struct figure *figures_add(struct figures *f, const char *what, int initiator, int target,
			   double value)
{
	struct figure *row = ARENA_PUSH(f->arena, f->rows, f->row_n);
	const struct metric *metric = metric_find(what);

	*row = (struct figure){
		.what = metric ? metric->name : arena_strdup(f->arena, what),
		.metric = metric,
		.unit = metric ? metric->unit : "",
		.higher_is_better = metric && metric->higher_is_better,
		.initiator = initiator,
		.target = target,
		.median = value,
		.low = value,
		.high = value,
		.samples = 1,
		.from = f->name,
	};
	return row;
}

void figures_trouble(struct figures *f, const char *fmt, ...)
{
	const char **trouble = ARENA_PUSH(f->arena, f->troubles, f->trouble_n);
	va_list ap;

	va_start(ap, fmt);
	*trouble = arena_vprintf(f->arena, fmt, ap);
	va_end(ap);
}

bool figure_is_failure(const struct figure *row)
{
	return row->metric && row->metric->must_hold && row->low < 1;
}

bool figure_measured(const struct figure *row)
{
	return !row->metric || row->metric->shape == SHAPE_YES_NO || row->median > 0;
}

/* ---- looking up ---- */

static bool same_measurement(const struct figure *a, const char *what, int initiator, int target,
			     uint64_t bytes)
{
	return a->initiator == initiator && a->target == target && a->bytes == bytes &&
	       strcmp(a->what, what) == 0;
}

const struct figure *figures_find(const struct figures *f, const char *what, int initiator,
				  int target, uint64_t bytes)
{
	for (size_t i = 0; i < f->row_n; i++) {
		if (same_measurement(&f->rows[i], what, initiator, target, bytes))
			return &f->rows[i];
	}
	return NULL;
}

/* ---- several runs in one file ---- */

static int compare_ints(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* Equal measurements side by side, in the order of their values; ties in that of the file. */
static int compare_rows(const void *a, const void *b)
{
	const struct figure *x = *(const struct figure *const *)a;
	const struct figure *y = *(const struct figure *const *)b;
	int r = strcmp(x->what, y->what);

	r = r ? r : compare_ints(x->initiator, y->initiator);
	r = r ? r : compare_ints(x->target, y->target);
	r = r ? r : (x->bytes > y->bytes) - (x->bytes < y->bytes);
	r = r ? r : (x->median > y->median) - (x->median < y->median);
	return r ? r : (x > y) - (x < y);
}

/* Going by the unit, which a later version's metrics have too. */
static bool is_yes_or_no(const struct figure *row)
{
	return strcmp(row->unit, "pairs") == 0 || strcmp(row->unit, "checks") == 0;
}

/* Of values in their order. What is yes or no is no where one run says no: there is no middle. */
static struct figure merged_figure(struct figure *const *rows, size_t n)
{
	struct figure merged = *rows[is_yes_or_no(rows[0]) ? 0 : n / 2];

	if (is_yes_or_no(rows[0]))
		return merged;
	merged.samples = 0;
	if (n % 2 == 0)
		merged.median = (rows[n / 2 - 1]->median + rows[n / 2]->median) / 2;
	for (size_t i = 0; i < n; i++) {
		merged.samples += rows[i]->samples;
		merged.low = fmin(merged.low, rows[i]->low);
		merged.high = fmax(merged.high, rows[i]->high);
	}
	return merged;
}

/* Makes the first of the file hold what all n say; the others are marked by an empty word. */
static void merge_rows(struct figure **rows, size_t n)
{
	struct figure merged = merged_figure(rows, n), *first = rows[0];

	for (size_t i = 0; i < n; i++)
		first = rows[i] < first ? rows[i] : first;
	if (!is_yes_or_no(first))
		merged.from = first->from;
	for (size_t i = 0; i < n; i++)
		rows[i]->what = "";
	*first = merged;
}

static void drop_unmeasured(struct figures *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->row_n; i++)
		if (figure_measured(&f->rows[i]))
			f->rows[kept++] = f->rows[i];
	f->row_n = kept;
}

void figures_merge(struct figures *f)
{
	AUTO_FREE struct figure **sorted = xcalloc(f->row_n + 1, sizeof(*sorted));
	size_t kept = 0;

	drop_unmeasured(f);
	f->runs = 1;
	for (size_t i = 0; i < f->row_n; i++)
		sorted[i] = &f->rows[i];
	qsort(sorted, f->row_n, sizeof(*sorted), compare_rows);
	for (size_t i = 0, n; i < f->row_n; i += n) {
		const struct figure *a = sorted[i];

		for (n = 1;
		     i + n < f->row_n &&
		     same_measurement(sorted[i + n], a->what, a->initiator, a->target, a->bytes);)
			n++;
		if (n > 1)
			merge_rows(sorted + i, n);
		if (n > f->runs && !is_yes_or_no(a)) /* checks repeat within one run */
			f->runs = (unsigned)n;
	}
	for (size_t i = 0; i < f->row_n; i++) {
		if (*f->rows[i].what)
			f->rows[kept++] = f->rows[i];
	}
	f->row_n = kept;
}
