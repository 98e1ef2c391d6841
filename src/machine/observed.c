/* SPDX-License-Identifier: Apache-2.0 */
/* What results say of a machine, and what `onehop test` found on it since it was started (observed.json). */
#include "machine/observed.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/rate.h"
#include "machine/read.h"
#include "result/comparison.h"
#include "result/figures_json.h"

#include <string.h>

#define DOCUMENT "observed.json"

/* ---- adding ---- */

struct observed *observed_add(struct machine *m, enum observed_kind kind, int initiator, int target,
			      const char *from)
{
	struct observed *o = ARENA_PUSH(m->arena, m->observed, m->observed_n);

	*o = (struct observed){.kind = kind,
			       .initiator = initiator,
			       .target = target,
			       .text = "",
			       .run = {.tool = "", .when = ""},
			       .from = arena_strdup(m->arena, from)};
	return o;
}

static void add_failed_test(struct machine *m, int initiator, int target, const char *what,
			    const char *from)
{
	struct observed *o = observed_add(m, OBSERVED_RUN_FAILURE, initiator, target, from);

	o->failure = (struct run_failure){.kind = RUN_TEST_FAILED,
					  .rank = -1,
					  .code = -1,
					  .sequence = -1,
					  .what = arena_strdup(m->arena, what)};
}

void observed_add_failed_test(struct machine *m, const int *gpus, size_t n, const char *what,
			      const char *from)
{
	if (n >= m->gpu_n && n != 1) {
		add_failed_test(m, -1, -1, what, from);
		return;
	}
	if (n == 1)
		add_failed_test(m, gpus[0], -1, what, from);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (i != j)
				add_failed_test(m, gpus[i], gpus[j], what, from);
}

bool observed_is_failed_test(const struct observed *o)
{
	return o->kind == OBSERVED_RUN_FAILURE && o->failure.kind == RUN_TEST_FAILED;
}

void figures_number_gpus(struct figures *f, const struct machine *m)
{
	for (size_t i = 0; i < f->gpu_n; i++) {
		const struct gpu *g = f->gpus[i].pci ? machine_gpu_at(m, f->gpus[i].pci) : NULL;

		if (g)
			f->gpus[i].nvml_index = (int)fact_or(g->nvml_index, -1);
	}
}

/* ---- figures ---- */

struct taking {
	struct machine *m;
	const struct figures *f;
	const struct figure_index *x;
	const int *gpus;
	bool kept;
};

static const char *when_of(const struct taking *t, const struct figure *row)
{
	return *row->when ? row->when : t->f->when;
}

/* "onehop test of 2026-01-31T10:20:30Z: shifted, pattern reread" */
static const char *place_of(const struct taking *t, const struct figure *row)
{
	const char *when = when_of(t, row);

	if (!t->kept)
		return row->from;
	return arena_printf(t->m->arena, "%s%s%s%s%s%s%s", t->f->tool, *when ? " of " : "", when,
			    *row->kind ? ": " : "", row->kind,
			    *row->kind && *row->pattern ? ", pattern " : "",
			    *row->kind ? row->pattern : "");
}

static struct observed_run run_of(const struct taking *t, const struct figure *row)
{
	return (struct observed_run){.tool = arena_strdup(t->m->arena, t->f->tool),
				     .when = arena_strdup(t->m->arena, when_of(t, row))};
}

/* -1: all, or a GPU that is gone. */
static int gpu_of(const struct taking *t, int index)
{
	return index < 0 ? -1 : t->gpus[index];
}

/* Of several samples the worst: what works sometimes does not work. */
static void set_value(const struct taking *t, const struct figure *row, struct observed *ret)
{
	bool yes_or_no = row->metric->shape == SHAPE_YES_NO;
	struct p2p_gain gain;

	ret->ok = !yes_or_no || row->low >= 1;
	ret->value = yes_or_no ? 0 : row->median;
	ret->low = yes_or_no ? 0 : row->low;
	ret->high = yes_or_no ? 0 : row->high;
	ret->samples = row->samples;
	ret->bytes = row->bytes;
	ret->pulled = row->metric->read;
	ret->text = *row->kind ? arena_strdup(t->m->arena, row->kind) : row->metric->name;
	ret->run = run_of(t, row);
	if (ret->kind != OBSERVED_BANDWIDTH)
		return;
	gain = p2p_gain_of(t->x, row);
	ret->gain = p2p_gain_verdict(gain);
	ret->off = gain.off ? gain.off->median : 0;
}

static int take_pair(const struct taking *t, const struct figure *row)
{
	int initiator = gpu_of(t, row->initiator), target = gpu_of(t, row->target);
	enum observed_kind kind = row->metric ? row->metric->observed : OBSERVED_NOTHING;

	if (kind == OBSERVED_NOTHING || initiator < 0 || target < 0 || initiator == target ||
	    !figure_measured(row) ||
	    (kind == OBSERVED_BANDWIDTH && row->bytes && row->bytes < RATE_MIN_BYTES))
		return 0;
	set_value(t, row, observed_add(t->m, kind, initiator, target, place_of(t, row)));
	return 1;
}

/* The GPUs that a test was of: one by itself, some, or all of the result. -1: one of them is gone. */
static int tested_gpus(const struct taking *t, const struct figure *row, int *ret)
{
	bool alone = row->initiator >= 0;
	size_t n = alone ? 1 : row->among_n ? row->among_n : t->f->gpu_n;

	for (size_t i = 0; i < n; i++) {
		ret[i] = gpu_of(t, alone ? row->initiator : row->among_n ? row->among[i] : (int)i);
		if (ret[i] < 0)
			return -1;
	}
	return (int)n;
}

/* A test of one GPU by itself, or of several at once. */
static bool is_of_gpus(const struct figure *row)
{
	return strcmp(row->what, row->initiator >= 0 ? METRIC_GPU_VERIFIED : METRIC_ALL_VERIFIED) ==
	       0;
}

/* What failed and is not one pair's. A collective of many sizes is one test: the first size counts. */
static int take_failed(const struct taking *t)
{
	AUTO_FREE int *gpus = xcalloc(t->f->gpu_n + 1, sizeof(*gpus));
	bool whole = false;
	int taken = 0;

	for (size_t i = 0; i < t->f->row_n; i++) {
		const struct figure *row = &t->f->rows[i];
		bool sizes = row->initiator < 0 && !*row->pattern;
		size_t first = t->m->observed_n;
		int n;

		if (!figure_is_failure(row) || !is_of_gpus(row) || (sizes && whole))
			continue;
		whole = whole || sizes;
		n = tested_gpus(t, row, gpus);
		if (n < 0)
			continue;
		observed_add_failed_test(t->m, gpus, (size_t)n, row->metric->title,
					 place_of(t, row));
		for (; first < t->m->observed_n; first++)
			t->m->observed[first].run = run_of(t, row);
		taken++;
	}
	return taken;
}

int observed_add_figures(struct machine *m, const struct figures *f, const int *gpus, bool kept)
{
	struct figure_index *x = figure_index_new(f);
	const struct taking t = {m, f, x, gpus, kept};
	int n = 0;

	for (size_t i = 0; i < f->row_n; i++)
		n += take_pair(&t, &f->rows[i]);
	n += take_failed(&t);
	figure_index_free(x);
	return n;
}

/* ---- what onehop test kept ---- */

/* Another driver or another start of the machine may route and map in other ways. */
static bool is_of_now(struct reader *r, const struct figures *f)
{
	struct fact_str boot = read_str(r, "proc/sys/kernel/random/boot_id");
	struct fact_str driver = r->m->driver.module_version;

	return fact_known(boot) && strcmp(boot.value, f->boot_id) == 0 && fact_known(driver) &&
	       strcmp(driver.value, f->driver) == 0;
}

static void take_kept(struct reader *r, const struct figures *f)
{
	AUTO_FREE int *gpus = xcalloc(f->gpu_n + 1, sizeof(*gpus));

	for (size_t i = 0; i < f->trouble_n; i++)
		read_trouble(r, DOCUMENT, "%s", arena_strdup(r->m->arena, f->troubles[i]));
	for (size_t i = 0; i < f->gpu_n; i++) {
		const struct gpu *g = f->gpus[i].pci ? machine_gpu_at(r->m, f->gpus[i].pci) : NULL;

		gpus[i] = g ? (int)g->index : -1;
	}
	observed_add_figures(r->m, f, gpus, true);
}

void observed_read(struct reader *r)
{
	struct fact_str text = read_text(r, DOCUMENT);
	struct figures *f = NULL;
	json_t *doc;

	if (!fact_known(text))
		return;
	doc = json_loads(text.value, JSON_REJECT_DUPLICATES, NULL);
	if (!figures_json_recognise(doc))
		read_trouble(r, DOCUMENT,
			     "is not what onehop test writes; remove it, or test again");
	else if (figures_from_json(doc, DOCUMENT, &f) < 0)
		read_trouble(r, DOCUMENT, "%s; remove it, or test again",
			     arena_strdup(r->m->arena, err_msg()));
	else if (is_of_now(r, f))
		take_kept(r, f);
	figures_free(f);
	json_decref(doc);
}
