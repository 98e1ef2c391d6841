/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `--format csv`: results as one table each, a row per figure, pair, host or fix. The columns are
 * in docs/csv.md.
 */
#include "report/csv.h"
#include "report/report.h"
#include "report/report_fleet.h"

#include "base/alloc.h"
#include "fleet/fleet.h"

#include <math.h>
#include <stdio.h>

/* ---- figures ---- */

#define SUBJECT_COLUMNS                                                                            \
	"initiator", "initiator_pci", "target", "target_pci", "nic", "peer", "memory", "queues",   \
		"depth", "bytes"

/* "GPU3" and its address; the host, or all GPUs, have no number. */
static void put_gpu(struct csv *c, const struct figures *f, int gpu)
{
	char name[16] = "";

	if (gpu >= 0)
		snprintf(name, sizeof(name), "GPU%d", gpu);
	csv_text(c, name);
	csv_text(c, gpu >= 0 && (size_t)gpu < f->gpu_n ? f->gpus[gpu].pci : NULL);
}

static void put_subject(struct csv *c, const struct figures *f, const struct figure *row)
{
	put_gpu(c, f, row->initiator);
	put_gpu(c, f, row->target);
	csv_text(c, row->nic);
	csv_text(c, row->peer);
	csv_text(c, row->memory);
	csv_known(c, row->queues);
	csv_known(c, row->depth);
	csv_known(c, (double)row->bytes);
}

static void put_figure(struct csv *c, const struct figures *f, const struct figure *row)
{
	bool range = row->low < row->high;

	csv_text(c, f->tool);
	csv_text(c, *row->when ? row->when : f->when);
	csv_text(c, row->what);
	csv_text(c, row->metric ? row->metric->title : NULL);
	csv_text(c, row->unit);
	put_subject(c, f, row);
	csv_number(c, row->median);
	csv_number(c, range ? row->low : NAN);
	csv_number(c, range ? row->high : NAN);
	csv_text(c, !range ? "" : figure_has_interval(row) ? "95 percent" : "range");
	csv_known(c, row->samples);
	csv_known(c, row->expected);
	csv_text(c, row->pattern);
	csv_text(c, row->kind);
	csv_text(c, row->path);
	csv_text(c, f->note);
	csv_text(c, row->algorithm);
	csv_end(c);
}

void report_figures_csv(struct strbuf *out, const struct figures *f)
{
	static const char *const names[] = {"tool",     "when",      "metric",
					    "title",    "unit",      SUBJECT_COLUMNS,
					    "median",   "low",       "high",
					    "interval", "samples",   "expected",
					    "pattern",  "fault",     "path",
					    "note",     "algorithm", NULL};
	struct csv c = {out, false};

	csv_head(&c, names);
	for (size_t i = 0; i < f->row_n; i++)
		put_figure(&c, f, &f->rows[i]);
}

/* ---- a comparison ---- */

/* `row` NULL: this side has no such figure. */
static void put_side(struct csv *c, const struct figure *row)
{
	bool range = row && row->low < row->high;

	csv_number(c, row ? row->median : NAN);
	csv_number(c, range ? row->low : NAN);
	csv_number(c, range ? row->high : NAN);
}

static void put_change(struct csv *c, const struct comparison *all, const struct metric *m,
		       const struct figure *before, const struct figure *after, const char *change,
		       double noise)
{
	csv_text(c, m->name);
	csv_text(c, m->title);
	csv_text(c, m->unit);
	put_subject(c, before ? all->before : all->after, before ? before : after);
	put_side(c, before);
	put_side(c, after);
	csv_number(c, before && after ? after->median / before->median : NAN);
	csv_text(c, change);
	csv_text(c, before ? all->before->note : NULL);
	csv_text(c, after ? all->after->note : NULL);
	csv_number(c, noise);
	csv_end(c);
}

void report_compare_csv(struct strbuf *out, const struct comparison *all)
{
	static const char *const names[] = {
		"metric",      "title",      "unit",        SUBJECT_COLUMNS,
		"before",      "before_low", "before_high", "after",
		"after_low",   "after_high", "ratio",       "change",
		"before_note", "after_note", "noise",       NULL};
	struct csv c = {out, false};

	csv_head(&c, names);
	for (size_t i = 0; i < all->kind_n; i++)
		for (size_t k = 0; k < all->kinds[i].cell_n; k++) {
			const struct compared_cell *cell = &all->kinds[i].cells[k];

			put_change(&c, all, all->kinds[i].metric, cell->before, cell->after,
				   change_word(cell->change), cell->noise);
		}
	for (size_t i = 0; i < all->alone_n; i++) {
		const struct lone_figure *l = &all->alone[i];

		put_change(&c, all, l->metric, l->before, l->after,
			   l->before ? "only before" : "only after", NAN);
	}
}

/* ---- paths ---- */

static void put_pair(struct csv *c, const struct topology *t, size_t i, size_t j)
{
	const struct path *p = topology_path(t, i, j);
	bool judged = i < t->gpu_n || j < t->gpu_n;
	char class[16];

	csv_text(c, t->endpoints[i].name);
	csv_text(c, t->endpoints[i].pci->name);
	csv_text(c, t->endpoints[j].name);
	csv_text(c, t->endpoints[j].pci->name);
	csv_text(c, path_class_name(p, class, sizeof(class)));
	csv_text(c, judged ? pair_verdict_word(p->verdict) : NULL);
	csv_text(c, judged && p->first_bad < CHAIN_STEP_N ? chain_step_word(p->first_bad) : NULL);
	csv_known(c, p->expected_gbps);
	csv_text(c, p->bottleneck ? p->bottleneck->name : NULL);
	csv_end(c);
}

void report_topology_csv(struct strbuf *out, const struct topology *t)
{
	static const char *const names[] = {"initiator",  "initiator_pci", "target",
					    "target_pci", "path",          "verdict",
					    "blocked_at", "expected_gbps", "bottleneck_pci",
					    NULL};
	struct csv c = {out, false};

	csv_head(&c, names);
	for (size_t i = 0; i < t->endpoint_n; i++)
		for (size_t j = 0; j < t->endpoint_n; j++)
			if (i != j)
				put_pair(&c, t, i, j);
}

/* ---- a fleet ---- */

struct fleet_row {
	const char *kind, *host, *what;
	const char *slot, *address, *value, *usual, *rule;
	double change; /* NAN: none */
	size_t others;
};

static void put_fleet_row(struct csv *c, const struct fleet_group *g, const struct fleet_row *r)
{
	csv_text(c, r->host);
	csv_text(c, r->kind);
	csv_text(c, g ? g->hardware->name : NULL);
	csv_text(c, r->what);
	csv_text(c, r->slot);
	csv_text(c, r->address);
	csv_text(c, r->value);
	csv_text(c, r->usual);
	csv_number(c, r->change * 100);
	csv_known(c, (double)r->others);
	csv_text(c, r->rule);
	csv_end(c);
}

static void put_outlier(struct csv *c, const struct fleet_group *g, const struct fleet_outlier *o)
{
	for (size_t h = 0; h < o->host_n; h++)
		for (size_t s = 0; s < o->slot_n; s++) {
			const struct fleet_row row = {
				.kind = "differs",
				.host = o->hosts[h],
				.what = o->row->title,
				.slot = o->slots[s],
				.address = o->host_n == 1 && s == 0 ? o->address : NULL,
				.value = o->value,
				.usual = o->usual,
				.rule = o->rule,
				.change = NAN,
				.others = o->usual_n,
			};

			put_fleet_row(c, g, &row);
		}
}

static char *pair_text(int a, int b)
{
	if (a >= 0 && b >= 0)
		return xprintf("GPU%d to GPU%d", a, b);
	return a >= 0 || b >= 0 ? xprintf("GPU%d", a >= 0 ? a : b) : xstrdup("");
}

static void put_slow(struct csv *c, const struct fleet_group *g, const struct fleet_slow *s)
{
	AUTO_FREE char *pair = pair_text(s->a, s->b);
	bool failed = s->cause == CAUSE_FAILED;

	for (size_t i = 0; i < s->figure_n; i++) {
		const struct fleet_slow_figure *f = &s->figures[i];
		AUTO_FREE char *value = f->value > 0 ? xprintf("%.9g %s", f->value, f->unit) : NULL;
		AUTO_FREE char *usual = f->value > 0 ? xprintf("%.9g %s", f->usual, f->unit) : NULL;
		const struct fleet_row row = {
			.kind = failed ? "failed" : "slow",
			.host = s->host,
			.what = f->what,
			.slot = pair,
			.value = failed ? s->kind : value,
			.usual = usual,
			.change = failed ? NAN : f->change,
			.others = s->others,
		};

		put_fleet_row(c, g, &row);
	}
}

static void put_hosts(struct csv *c, const struct fleet_group *g, const char *const *hosts,
		      size_t n, struct fleet_row row)
{
	for (size_t i = 0; i < n; i++) {
		row.host = hosts[i];
		put_fleet_row(c, g, &row);
	}
}

static void put_group(struct csv *c, const struct fleet_group *g)
{
	for (size_t i = 0; i < g->host_n && g->like; i++) {
		const struct fleet_row row = {.kind = "hardware",
					      .host = g->hosts[i]->name,
					      .what = "number of devices",
					      .value = g->hardware->name,
					      .usual = g->like->hardware->name,
					      .change = NAN,
					      .others = g->like->host_n};

		put_fleet_row(c, g, &row);
	}
	for (size_t i = 0; i < g->slow_n; i++)
		put_slow(c, g, &g->slow[i]);
	for (size_t i = 0; i < g->outlier_n; i++)
		put_outlier(c, g, &g->outliers[i]);
	for (size_t i = 0; i < g->blind_n; i++) {
		const struct fleet_blind *b = &g->blind[i];

		put_hosts(c, g, b->hosts, b->host_n,
			  (struct fleet_row){.kind = "unknown",
					     .what = "facts that most others have",
					     .value = b->no_root ? "without root" : NULL,
					     .change = NAN});
	}
	for (size_t i = 0; i < g->split_n; i++)
		for (size_t s = 0; s < g->splits[i].share_n; s++) {
			const struct fleet_share *share = &g->splits[i].shares[s];

			put_hosts(c, g, share->hosts, share->host_n,
				  (struct fleet_row){.kind = "split",
						     .what = g->splits[i].row->title,
						     .slot = g->splits[i].slot,
						     .value = share->value,
						     .change = NAN});
		}
}

void report_fleet_csv(struct strbuf *out, const struct fleet *f)
{
	static const char *const names[] = {"host",           "kind",   "hardware", "what",
					    "slot",           "pci",    "value",    "usual",
					    "change_percent", "others", "rule",     NULL};
	struct csv c = {out, false};

	csv_head(&c, names);
	for (size_t i = 0; i < f->group_n; i++)
		put_group(&c, &f->groups[i]);
	put_hosts(&c, NULL, f->missing, f->missing_n,
		  (struct fleet_row){.kind = "missing", .change = NAN});
}
