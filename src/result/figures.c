/* SPDX-License-Identifier: Apache-2.0 */
#include "result/figures.h"

#include "base/arena.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

struct figures *figures_new_in(struct arena *arena, const char *name, const char *tool)
{
	struct figures *f = arena_alloc(arena, 1, sizeof(*f));

	f->arena = arena;
	f->name = arena_strdup(arena, name);
	f->tool = arena_strdup(arena, tool);
	f->when = f->note = f->program = "";
	for (int c = 0; c < CONDITION_TEXTS; c++)
		f->conditions[c] = "";
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
		.kind = "",
		.pattern = "",
		.when = "",
		.nic = "",
		.peer = "",
		.memory = "",
		.path = "",
		.algorithm = "",
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

bool figures_are_predicted(const struct figures *f)
{
	return text_ends_with(f->tool, " --simulate");
}

bool figure_has_interval(const struct figure *row)
{
	return row->samples >= FIGURE_INTERVAL_SAMPLES && row->low < row->high;
}

const char *figure_place(const struct figures *f, const struct figure *row, const char *list,
			 size_t index)
{
	const char *kind = row->kind, *pattern = *kind ? row->pattern : "";

	return arena_printf(f->arena, "%s: %s[%zu]%s%s%s%s", f->name, list, index,
			    *kind ? ": " : "", kind, *pattern ? ", pattern " : "", pattern);
}

bool figure_contradicts(const struct figure *row)
{
	return row->metric && row->metric->must_hold && row->low >= 1 && *row->kind &&
	       strcmp(row->kind, FIGURE_SLOW) != 0;
}

bool figure_measured(const struct figure *row)
{
	return !row->metric || row->metric->shape == SHAPE_YES_NO || row->median > 0;
}

/* ---- looking up ---- */

bool figure_same_way(const struct figure *a, const struct figure *b)
{
	return strcmp(a->nic, b->nic) == 0 && strcmp(a->peer, b->peer) == 0 &&
	       strcmp(a->memory, b->memory) == 0 && a->queues == b->queues && a->depth == b->depth;
}

static bool same_measurement(const struct figure *a, const struct figure *b)
{
	return a->initiator == b->initiator && a->target == b->target && a->bytes == b->bytes &&
	       figure_same_way(a, b) && strcmp(a->what, b->what) == 0;
}

const struct figure *figures_find(const struct figures *f, const char *what, int initiator,
				  int target, uint64_t bytes)
{
	const struct figure wanted = {.what = what,
				      .initiator = initiator,
				      .target = target,
				      .bytes = bytes,
				      .nic = "",
				      .peer = "",
				      .memory = ""};

	for (size_t i = 0; i < f->row_n; i++) {
		if (same_measurement(&f->rows[i], &wanted))
			return &f->rows[i];
	}
	return NULL;
}

int figures_gpu_at(const struct figures *f, const char *pci)
{
	for (size_t i = 0; pci && i < f->gpu_n; i++)
		if (f->gpus[i].pci && strcmp(f->gpus[i].pci, pci) == 0)
			return (int)i;
	return -1;
}

/* ---- several runs in one file ---- */

static int compare_ints(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

int figure_order(const struct figure *x, const struct figure *y)
{
	int r = strcmp(x->what, y->what);

	r = r ? r : compare_ints(x->initiator, y->initiator);
	r = r ? r : compare_ints(x->target, y->target);
	r = r ? r : strcmp(x->nic, y->nic);
	r = r ? r : strcmp(x->peer, y->peer);
	r = r ? r : strcmp(x->memory, y->memory);
	r = r ? r : compare_ints(x->queues, y->queues);
	r = r ? r : compare_ints(x->depth, y->depth);
	return r ? r : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Equal measurements side by side, in the order of their values; ties in that of the file. */
static int compare_rows(const void *a, const void *b)
{
	const struct figure *x = *(const struct figure *const *)a;
	const struct figure *y = *(const struct figure *const *)b;
	int r = figure_order(x, y);

	r = r ? r : (x->median > y->median) - (x->median < y->median);
	return r ? r : (x > y) - (x < y);
}

/* Decided by the unit, which metrics of later versions have too. */
static bool is_yes_or_no(const struct figure *row)
{
	return strcmp(row->unit, "pairs") == 0 || strcmp(row->unit, "checks") == 0;
}

/* The median of sorted values. Of yes-or-no values the lowest: one "no" decides. */
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
		merged.low = rows[i]->low < merged.low ? rows[i]->low : merged.low;
		merged.high = rows[i]->high > merged.high ? rows[i]->high : merged.high;
	}
	return merged;
}

/* Merges n rows into the first one of the file; the others are marked by an empty word. */
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
	struct figure **sorted = arena_alloc(f->arena, f->row_n + 1, sizeof(struct figure *));
	size_t kept = 0;

	drop_unmeasured(f);
	f->runs = 1;
	for (size_t i = 0; i < f->row_n; i++)
		sorted[i] = &f->rows[i];
	qsort(sorted, f->row_n, sizeof(*sorted), compare_rows);
	for (size_t i = 0, n; i < f->row_n; i += n) {
		const struct figure *a = sorted[i];

		for (n = 1; i + n < f->row_n && same_measurement(sorted[i + n], a);)
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

/* ---- several runs in one store ---- */

static void adopt_gpu(struct figures *f, const struct figure_gpu *g)
{
	struct figure_gpu *own;

	figures_add_gpu(f, g->pci, g->name ? g->name : "", g->cuda_ordinal);
	own = &f->gpus[f->gpu_n - 1];
	own->nvml_index = g->nvml_index;
	for (size_t i = 0; i < g->port_n; i++)
		*ARENA_PUSH(f->arena, own->ports, own->port_n) =
			(struct figure_port){arena_strdup(f->arena, g->ports[i].pci),
					     g->ports[i].acs};
}

/* The GPU's index here, added if missing; -1: it was -1, or has no address. */
static int own_index(struct figures *f, const struct figures *of, int gpu)
{
	const char *pci = gpu >= 0 ? of->gpus[gpu].pci : NULL;

	int own = figures_gpu_at(f, pci);

	if (own >= 0 || !pci || f->gpu_n == FIGURES_MAX_GPUS)
		return own;
	adopt_gpu(f, &of->gpus[gpu]);
	return (int)f->gpu_n - 1;
}

static bool is_among(const struct figure *row, int gpu)
{
	for (size_t i = 0; i < row->among_n; i++)
		if (row->among[i] == gpu)
			return true;
	return false;
}

/* For a NIC each direction is checked separately. */
static bool same_direction(const struct figure *a, const struct figure *b)
{
	return !*a->nic || (a->metric && b->metric && a->metric->read == b->metric->read &&
			    a->metric->both_ways == b->metric->both_ways);
}

/*
 * For one pair or GPU. A check replaces all its measurements, and a measurement replaces an old
 * check.
 */
static bool replaces(const struct figure *row, const struct figure *old)
{
	return row->initiator == old->initiator && row->target == old->target &&
	       figure_same_way(row, old) && same_direction(row, old) &&
	       (is_yes_or_no(row) || is_yes_or_no(old) || row->metric == old->metric);
}

/* `rows`: those of this run, by which earlier ones may be superseded. */
static bool was_tested_again(const struct figures *f, size_t rows, const struct figure *old)
{
	for (size_t i = 0; i < rows; i++) {
		const struct figure *row = &f->rows[i];
		size_t k = 0;

		bool of_pair = old->initiator >= 0 || *old->nic;

		if (of_pair && replaces(row, old))
			return true;
		if (of_pair || row->metric != old->metric ||
		    strcmp(row->pattern, old->pattern) != 0)
			continue;
		while (k < old->among_n && is_among(row, old->among[k]))
			k++;
		if (k == old->among_n)
			return true;
	}
	return false;
}

/* Copies it with the GPU numbers of these figures, and with its own texts and lists. */
static struct figure adopted(struct figures *f, const struct figures *of, const struct figure *row)
{
	int *among = arena_alloc(f->arena, row->among_n + 1, sizeof(*among));
	struct figure own = *row;

	for (size_t i = 0; i < row->among_n; i++)
		among[i] = own_index(f, of, row->among[i]);
	own.among = among;
	own.initiator = own_index(f, of, row->initiator);
	own.target = own_index(f, of, row->target);
	own.what = row->metric ? row->metric->name : arena_strdup(f->arena, row->what);
	own.unit = row->metric ? row->metric->unit : arena_strdup(f->arena, row->unit);
	own.from = "";
	own.kind = arena_strdup(f->arena, row->kind);
	own.pattern = arena_strdup(f->arena, row->pattern);
	own.nic = arena_strdup(f->arena, row->nic);
	own.peer = arena_strdup(f->arena, row->peer);
	own.memory = arena_strdup(f->arena, row->memory);
	own.path = arena_strdup(f->arena, row->path);
	own.algorithm = arena_strdup(f->arena, row->algorithm);
	own.when = arena_strdup(f->arena, *row->when ? row->when : of->when);
	return own;
}

void figures_keep_earlier(struct figures *f, const struct figures *earlier)
{
	size_t rows = f->row_n;

	for (size_t i = 0; i < earlier->row_n; i++) {
		const struct figure *old = &earlier->rows[i];
		struct figure row = adopted(f, earlier, old);
		bool lost = (old->initiator >= 0 && row.initiator < 0) ||
			    (old->target >= 0 && row.target < 0);

		if (!lost && !was_tested_again(f, rows, &row))
			*ARENA_PUSH(f->arena, f->rows, f->row_n) = row;
	}
}
