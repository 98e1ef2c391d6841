/* SPDX-License-Identifier: Apache-2.0 */
#include "result/figures.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/*
 * Noise: p2pBandwidthLatencyTest repeats 5 times without warming up, and two of its runs differ by
 * 5 to 10 %; its latency of host-staged copies jumps between two levels that are a factor of 1.8
 * apart within one run (11.4 and 20.3 us on the same machine). Collectives: two runs of nccl-tests.
 */
#define NOISE_COPY       0.10, 0.10
#define NOISE_LATENCY    0.25, 1.00
#define NOISE_COLLECTIVE 0.03, 0.03
#define NOISE_NONE       0, 0

#define COLLECTIVE(word, title)                                                                    \
	{word "-bus", title ", bus bandwidth", "GB/s", true, NOISE_COLLECTIVE},                    \
	{                                                                                          \
		word "-time", title ", time", "us", false, NOISE_COLLECTIVE                        \
	}

const struct figure_kind figure_kinds[] = {
	{"p2p-access", "P2P possible", "pairs", true, NOISE_NONE},
	{FIGURE_PAIR_VERIFIED, "data right at the owner", "pairs", true, NOISE_NONE},
	{FIGURE_GPU_VERIFIED, "own memory of a GPU", "checks", true, NOISE_NONE},
	{FIGURE_ALL_VERIFIED, "all GPUs at once", "checks", true, NOISE_NONE},
	{FIGURE_PAIR_RATE, "rate of a tested copy", "pairs", true, NOISE_NONE},
	{"write-ce", "write, CE", "GB/s", true, NOISE_COPY},
	{"read-ce", "read, CE", "GB/s", true, NOISE_COPY},
	{"both-ce", "both ways, CE", "GB/s", true, NOISE_COPY},
	{"write-sm", "write, SM", "GB/s", true, NOISE_COPY},
	{"read-sm", "read, SM", "GB/s", true, NOISE_COPY},
	{"both-sm", "both ways, SM", "GB/s", true, NOISE_COPY},
	{"latency-write", "period of tiny writes", "us", false, NOISE_LATENCY},
	{"latency-read", "period of tiny reads", "us", false, NOISE_LATENCY},
	{"round-trip", "flag round trip", "us", false, NOISE_LATENCY},
	{"latency-chase", "pointer chase", "ns", false, NOISE_COPY},
	{"latency-host", "pointer chase, host memory", "ns", false, NOISE_COPY},
	{"h2d-ce", "host to device, CE", "GB/s", true, NOISE_COPY},
	{"d2h-ce", "device to host, CE", "GB/s", true, NOISE_COPY},
	{"h2d-sm", "host to device, SM", "GB/s", true, NOISE_COPY},
	{"d2h-sm", "device to host, SM", "GB/s", true, NOISE_COPY},
	{"local-copy", "copy within a GPU", "GB/s", true, NOISE_COPY},
	{"pairs-ce", "disjoint pairs at once, copy engine", "GB/s", true, NOISE_COPY},
	{"all-to-all-ce", "all to all, copy engine", "GB/s", true, NOISE_COPY},
	{"all-to-all-sm", "all to all, SM", "GB/s", true, NOISE_COPY},
	{"n-to-1-ce", "all others to one, copy engine", "GB/s", true, NOISE_COPY},
	{"1-to-n-ce", "one to all others, copy engine", "GB/s", true, NOISE_COPY},
	COLLECTIVE("all-reduce", "all-reduce"),
	COLLECTIVE("all-gather", "all-gather"),
	COLLECTIVE("reduce-scatter", "reduce-scatter"),
	COLLECTIVE("broadcast", "broadcast"),
	COLLECTIVE("reduce", "reduce"),
	COLLECTIVE("all-to-all", "all-to-all"),
	COLLECTIVE("all-to-all-v", "all-to-all, uneven"),
	COLLECTIVE("gather", "gather"),
	COLLECTIVE("scatter", "scatter"),
	COLLECTIVE("send-recv", "send and receive"),
	COLLECTIVE("hypercube", "hypercube"),
	{0},
};

const struct figure_kind *figure_kind_find(const char *what, bool *ret_staged)
{
	bool staged = text_ends_with(what, FIGURE_STAGED);
	size_t n = strlen(what) - (staged ? strlen(FIGURE_STAGED) : 0);

	for (const struct figure_kind *k = figure_kinds; k->word; k++) {
		if (strlen(k->word) == n && memcmp(k->word, what, n) == 0) {
			*ret_staged = staged;
			return k;
		}
	}
	return NULL;
}

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

struct figure *figures_add(struct figures *f, const char *what, int initiator, int target,
			   double value)
{
	struct figure *row = ARENA_PUSH(f->arena, f->rows, f->row_n);
	bool staged;
	const struct figure_kind *kind = figure_kind_find(what, &staged);

	*row = (struct figure){
		.what = arena_strdup(f->arena, what),
		.unit = kind ? kind->unit : "",
		.higher_is_better = kind && kind->higher_is_better,
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

bool figure_unit_is_yes_or_no(const char *unit)
{
	return strcmp(unit, "pairs") == 0 || strcmp(unit, "checks") == 0;
}

bool figure_is_failure(const struct figure *row)
{
	static const char *const verified[] = {FIGURE_PAIR_VERIFIED, FIGURE_GPU_VERIFIED,
					       FIGURE_ALL_VERIFIED};

	for (size_t i = 0; i < sizeof(verified) / sizeof(*verified); i++)
		if (strcmp(row->what, verified[i]) == 0)
			return row->low < 1;
	return false;
}

bool figure_measured(const struct figure *row)
{
	bool staged;
	const struct figure_kind *kind = figure_kind_find(row->what, &staged);

	return !kind || figure_unit_is_yes_or_no(kind->unit) || row->median > 0;
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

static bool is_yes_or_no(const struct figure *row)
{
	return figure_unit_is_yes_or_no(row->unit);
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
