/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds observations from results to a machine, and decides which results in its store still hold.
 */
#include "machine/observed.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/date.h"
#include "base/err.h"
#include "base/rate.h"
#include "base/state.h"
#include "base/text.h"
#include "machine/read.h"
#include "result/comparison.h"
#include "result/figures_json.h"

#include <errno.h>
#include <string.h>

const struct kept_run kept_runs[KEPT_RUN_N] = {
	{"onehop test", "observed.json"},
	{"onehop bench p2p", "observed-p2p.json"},
	{"onehop bench nccl", "observed-nccl.json"},
};

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

/* ---- what a result was measured under ---- */

static const size_t texts[CONDITION_TEXTS] = {
	[CONDITION_DRIVER] = offsetof(struct machine, driver.module_version),
	[CONDITION_REGISTRY] = offsetof(struct machine, driver.registry_dwords),
	[CONDITION_KERNEL] = offsetof(struct machine, kernel.release),
	[CONDITION_BIOS] = offsetof(struct machine, kernel.bios),
	[CONDITION_BOOT] = offsetof(struct machine, kernel.boot_id),
};

/* "": unknown. An empty list of registry keys is a setting too. */
static const char *text_now(const struct machine *m, enum run_condition c)
{
	const struct fact_str *f = (const struct fact_str *)((const char *)m + texts[c]);

	return fact_known(*f) && !*f->value ? "none" : fact_str_or(*f, "");
}

static void note_ports(struct figures *f, struct figure_gpu *g, const struct pci_function *gpu)
{
	g->ports = NULL;
	g->port_n = 0;
	for (const struct pci_function *p = gpu->parent; p; p = p->parent)
		*ARENA_PUSH(f->arena, g->ports, g->port_n) =
			(struct figure_port){arena_strdup(f->arena, p->name),
					     (int)fact_or(p->acs_ctl, -1)};
}

void figures_note_machine(struct figures *f, const struct machine *m)
{
	for (int c = 0; c < CONDITION_TEXTS; c++)
		f->conditions[c] = arena_strdup(f->arena, text_now(m, (enum run_condition)c));
	for (size_t i = 0; i < f->gpu_n; i++) {
		struct figure_gpu *own = &f->gpus[i];
		const struct gpu *g = own->pci ? machine_gpu_at(m, own->pci) : NULL;

		if (!g)
			continue;
		own->nvml_index = (int)fact_or(g->nvml_index, -1);
		if (fact_known(g->model))
			own->name = arena_strdup(f->arena, g->model.value);
		note_ports(f, own, g->pci);
	}
}

struct figures *figures_of_machine(const struct machine *m)
{
	struct figures *f = figures_new("", "");

	for (size_t i = 0; i < m->gpu_n; i++)
		figures_add_gpu(f, m->gpus[i].pci->name, "", -1);
	figures_note_machine(f, m);
	return f;
}

static struct changed changed_since(struct machine *m, const struct figures *f, const int *gpus,
				    bool surely)
{
	struct figures *now = figures_of_machine(m);
	struct changed x = figures_changed(f, now, gpus, surely);

	x.was = arena_strdup(m->arena, x.was);
	x.is = arena_strdup(m->arena, x.is);
	figures_free(now);
	return x;
}

struct weighed *weighed_add(struct machine *m, const struct figures *f, const int *gpus, bool kept)
{
	AUTO_FREE char *folder = kept && !m->recorded ? state_folder() : NULL;
	struct weighed *w = ARENA_PUSH(m->arena, m->weighed, m->weighed_n);

	*w = (struct weighed){
		.run = {arena_strdup(m->arena, f->tool), arena_strdup(m->arena, f->when)},
		.from = arena_strdup(m->arena, folder ? folder
					       : kept ? ""
						      : f->name),
		.kept = kept,
		.age_s = m->recorded ? -1 : date_age_s(f->when),
		.ahead = date_is_ahead(f->when),
		.changed = changed_since(m, f, gpus, kept),
	};
	return w;
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

/* The worst of several samples: what works only sometimes does not work. */
static void set_value(const struct taking *t, const struct figure *row, struct observed *ret)
{
	bool yes_or_no = row->metric->shape == SHAPE_YES_NO;
	struct p2p_gain gain;

	ret->ok = yes_or_no ? row->low >= 1 : figure_measured(row);
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

/* If the rate is given too, the rate decides. */
static bool is_doubt(const struct taking *t, const struct figure *row)
{
	return row->low < 1 && !figures_find(t->f, METRIC_WRITE_CE, row->initiator, row->target, 0);
}

static bool is_of_one_way(const struct taking *t, const struct figure *row)
{
	return figures_find(t->f, METRIC_WRITE_CE, row->initiator, row->target, 0) ||
	       figures_find(t->f, METRIC_READ_CE, row->initiator, row->target, 0);
}

static int take_pair(const struct taking *t, const struct figure *row)
{
	int initiator = gpu_of(t, row->initiator), target = gpu_of(t, row->target);
	enum observed_kind kind = row->metric ? row->metric->observed : OBSERVED_NOTHING;

	if (kind == OBSERVED_NOTHING || initiator < 0 || target < 0 || initiator == target)
		return 0;
	if (kind == OBSERVED_RATE && !is_doubt(t, row))
		return 0;
	if (kind == OBSERVED_BOTH_WAYS && (is_of_one_way(t, row) || !figure_measured(row)))
		return 0;
	/* p2pBandwidthLatencyTest prints 0.00 for what is slower than 5 MB/s. */
	if (kind == OBSERVED_BANDWIDTH && !figure_measured(row))
		kind = OBSERVED_RATE;
	if ((kind == OBSERVED_LATENCY && !figure_measured(row)) ||
	    (kind == OBSERVED_BANDWIDTH && row->bytes && row->bytes < RATE_MIN_BYTES))
		return 0;
	set_value(t, row, observed_add(t->m, kind, initiator, target, place_of(t, row)));
	return 1;
}

/*
 * The GPUs that a test was of: one by itself, some, or all of the result. -1: one of them is gone.
 */
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

/*
 * Failures that do not belong to one pair. A collective of many sizes is one test: the first size
 * counts.
 */
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
	struct figure_index *x = figure_index_new(f->arena, f);
	const struct taking t = {m, f, x, gpus, kept};
	int n = 0;

	for (size_t i = 0; i < f->row_n; i++)
		n += take_pair(&t, &f->rows[i]);
	n += take_failed(&t);
	return n;
}

/* ---- the store ---- */

static void take_kept(struct reader *r, const char *document, const struct figures *f)
{
	AUTO_FREE int *gpus = xcalloc(f->gpu_n + 1, sizeof(*gpus));
	struct weighed *w;

	for (size_t i = 0; i < f->gpu_n; i++) {
		const struct gpu *g = f->gpus[i].pci ? machine_gpu_at(r->m, f->gpus[i].pci) : NULL;

		gpus[i] = g ? (int)g->index : -1;
	}
	w = weighed_add(r->m, f, gpus, true);
	if (w->changed.what < CONDITION_N || w->ahead)
		return;
	for (size_t i = 0; i < f->trouble_n; i++)
		read_trouble(r, document, "%s", arena_strdup(r->m->arena, f->troubles[i]));
	w->observed_n = (size_t)observed_add_figures(r->m, f, gpus, true);
}

/* The path shown to the user: a recording has the file under its name. */
static const char *place_of_kept(const struct reader *r, const struct kept_run *run)
{
	AUTO_FREE char *folder = r->m->recorded ? NULL : state_folder();

	return folder ? arena_printf(r->m->arena, "%s/%s", folder, run->file) : run->file;
}

/* The last error without the path at its start; NULL if it is not about that file. */
static const char *said_of(struct reader *r, const char *path)
{
	const char *said = err_msg();
	size_t n = strlen(path);

	return strncmp(said, path, n) == 0 && text_starts_with(said + n, ": ")
		       ? arena_strdup(r->m->arena, said + n + 2)
		       : NULL;
}

static void take_document(struct reader *r, const struct kept_run *run, const char *path,
			  const char *text)
{
	json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct figures *f = NULL;
	const char *said;

	if (!figures_json_recognise(doc)) {
		read_trouble(r, path, "was not written by %s", run->tool);
	} else if (figures_from_json(doc, path, &f) < 0) {
		said = said_of(r, path);
		read_trouble(r, path, "%s", said ? said : "cannot be understood");
	} else {
		take_kept(r, path, f);
	}
	figures_free(f);
	json_decref(doc);
}

static void read_kept(struct reader *r, const struct kept_run *run)
{
	const char *path = place_of_kept(r, run), *said;
	size_t first = r->m->trouble_n, size;
	AUTO_FREE char *text = NULL;
	int e = source_read(r->s, &text, &size, "%s", run->file);

	if (e == 0)
		take_document(r, run, path, text);
	else if (e != -ENOENT && e != -ENODATA && e != -EACCES && e != -EPERM) {
		said = said_of(r, path);
		read_trouble(r, path, "%s%s",
			     said ? "" : "cannot be read: ", said ? said : strerror(-e));
	}
	for (; first < r->m->trouble_n; first++)
		r->m->troubles[first].remedy =
			arena_printf(r->m->arena, "remove it, or run %s again, which rewrites it",
				     run->tool);
}

void observed_read(struct reader *r)
{
	for (size_t i = 0; i < KEPT_RUN_N; i++)
		read_kept(r, &kept_runs[i]);
}
