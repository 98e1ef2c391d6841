/* SPDX-License-Identifier: Apache-2.0 */
#include "result/comparison.h"

#include "base/arena.h"
#include "base/order.h"
#include "base/rate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two runs of onehop on an idle machine differ by less; noise for rows with an interval. */
#define REPEATABLE 0.02
/* A difference that noise hides is reported from here on. */
#define WORTH_A_WORD 0.10

const char *change_word(enum trend change)
{
	static const char *const words[TREND_N] = {
		[TREND_SAME] = "same",
		[TREND_BETTER] = "better",
		[TREND_WORSE] = "worse",
	};

	return words[change];
}

/* ---- GPUs ---- */

static bool all_have_pci(const struct figures *f)
{
	for (size_t i = 0; i < f->gpu_n; i++) {
		if (!f->gpus[i].pci)
			return false;
	}
	return f->gpu_n > 0;
}

static void match_gpus(struct comparison *c)
{
	size_t matched = 0;

	c->by_pci = all_have_pci(c->before) && all_have_pci(c->after);
	c->gpu_after = arena_alloc(c->arena, c->before->gpu_n + 1, sizeof(*c->gpu_after));
	for (size_t i = 0; i < c->before->gpu_n; i++) {
		c->gpu_after[i] = c->by_pci ? figures_gpu_at(c->after, c->before->gpus[i].pci)
				  : i < c->after->gpu_n ? (int)i
							: -1;
		matched += c->gpu_after[i] >= 0;
	}
	c->gpus_gone = c->before->gpu_n - matched;
	c->gpus_new = c->after->gpu_n - matched;
}

/* The index in `after`; -1 stays -1, a GPU that is gone is -2. */
static int after_index(const struct comparison *c, int before)
{
	if (before < 0)
		return -1;
	return c->gpu_after[before] >= 0 ? c->gpu_after[before] : -2;
}

static double larger(double a, double b)
{
	return a > b || isnan(b) ? a : b;
}

/* ---- looking figures up ---- */

static int compare_figures(const void *a, const void *b)
{
	return figure_order(*(const struct figure *const *)a, *(const struct figure *const *)b);
}

struct figure_index {
	size_t n;
	const struct figure *rows[];
};

struct figure_index *figure_index_new(struct arena *a, const struct figures *f)
{
	struct figure_index *x = arena_alloc(a, 1, sizeof(*x) + f->row_n * sizeof(x->rows[0]));

	x->n = f->row_n;
	for (size_t i = 0; i < f->row_n; i++)
		x->rows[i] = &f->rows[i];
	qsort(x->rows, x->n, sizeof(x->rows[0]), compare_figures);
	return x;
}

/* If one of the two does not give its size, as texts of other tools: the largest. */
static const struct figure *look_up_largest(const struct figure_index *x,
					    const struct figure *wanted)
{
	struct figure largest = *wanted, same = *wanted;
	const struct figure *key = &largest, *row;
	size_t low = 0, high = x->n;

	largest.bytes = UINT64_MAX;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_figures(&x->rows[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	row = low ? x->rows[low - 1] : NULL;
	if (!row || (row->bytes && wanted->bytes))
		return NULL;
	same.bytes = row->bytes;
	key = &same;
	return compare_figures(&row, &key) == 0 ? row : NULL;
}

/* The measurement of `like`, between these two. */
static const struct figure *look_up_like(const struct figure_index *x, const struct figure *like,
					 int initiator, int target)
{
	struct figure wanted = *like;
	const struct figure *key = &wanted, *const * found;

	wanted.initiator = initiator;
	wanted.target = target;
	found = bsearch(&key, x->rows, x->n, sizeof(*x->rows), compare_figures);
	return found ? *found : look_up_largest(x, &wanted);
}

static const struct figure *look_up(const struct figure_index *x, const char *what, int initiator,
				    int target, uint64_t bytes)
{
	const struct figure wanted = {
		.what = what, .bytes = bytes, .nic = "", .peer = "", .memory = ""};

	return look_up_like(x, &wanted, initiator, target);
}

/* ---- noise ---- */

static double spread_of(const struct figure *r)
{
	return r->median > 0 ? (r->high - r->low) / r->median : 0;
}

static bool is_neighbour(const struct figure *a, const struct figure *b)
{
	return a->initiator == b->initiator && a->target == b->target && a->bytes <= b->bytes * 2 &&
	       b->bytes <= a->bytes * 2 && figure_same_way(a, b) && strcmp(a->what, b->what) == 0;
}

/*
 * The spread between out-of-place and in-place at this size and its neighbours: two values alone
 * are a poor estimate.
 */
static double placement_spread(const struct figure_index *x, const struct figure *r)
{
	const struct figure *const *at =
		bsearch(&r, x->rows, x->n, sizeof(*x->rows), compare_figures);
	double spread = spread_of(r);

	if (at > x->rows && is_neighbour(at[-1], r))
		spread = larger(spread, spread_of(at[-1]));
	if (at < x->rows + x->n - 1 && is_neighbour(at[1], r))
		spread = larger(spread, spread_of(at[1]));
	return spread;
}

/* Half the width of a row's own interval, relative. */
static double own_noise(const struct figure_index *x, const struct figure *r)
{
	if (r->samples >= FIGURE_INTERVAL_SAMPLES)
		return spread_of(r) / 2;
	return r->bytes ? placement_spread(x, r) : spread_of(r);
}

/* Where CUDA has no peer access, copies with P2P "on" are staged like those with P2P off. */
static bool no_access(const struct figure_index *x, const struct figure *r)
{
	const struct figure *access = look_up(x, METRIC_ACCESS, r->initiator, r->target, 0);

	return access && access->median == 0;
}

/* ---- cells ---- */

struct work {
	struct comparison *c;
	struct figure_index *before, *after;
	bool *matched; /* of `after`: it has a counterpart */
};

static double gain_of(const struct figure *before, const struct figure *after)
{
	double worse = before->higher_is_better ? before->median : after->median;
	double better = before->higher_is_better ? after->median : before->median;

	if (worse == better)
		return 1;
	return worse > 0 ? better / worse : INFINITY;
}

/* By which two runs of this kind differ when nothing changed. */
static double usual_noise(const struct work *w, const struct figure *before,
			  const struct figure *after)
{
	const struct metric *m = before->metric;
	bool hosted = m->staged || (no_access(w->before, before) && no_access(w->after, after));

	if (figure_has_interval(before) && figure_has_interval(after))
		return REPEATABLE;
	return hosted ? m->noise_hosted : m->noise;
}

/*
 * The value to compare: for a few values the middle between least and most, because a tool's own
 * figure (the faster of two placements) may be an outlier.
 */
static struct figure to_judge(const struct figure *r)
{
	struct figure f = *r;

	if (r->samples < FIGURE_INTERVAL_SAMPLES)
		f.median = (r->low + r->high) / 2;
	return f;
}

/* A factor of up to 1 + noise in either direction means no change. */
static enum trend change_of(double gain, double noise)
{
	if (gain > 1 + noise)
		return TREND_BETTER;
	return gain * (1 + noise) < 1 ? TREND_WORSE : TREND_SAME;
}

static void add_cell(struct work *w, struct compared *k, const struct figure *before,
		     const struct figure *after)
{
	struct compared_cell *cell = ARENA_PUSH(w->c->arena, k->cells, k->cell_n);
	struct figure from = to_judge(before), to = to_judge(after);
	double usual = usual_noise(w, before, after), gain = gain_of(&from, &to);

	cell->before = before;
	cell->after = after;
	cell->gain = gain_of(before, after);
	cell->noise = larger(usual, own_noise(w->before, before) + own_noise(w->after, after));
	cell->change = change_of(gain, cell->noise);
	cell->hidden = cell->change == TREND_SAME &&
		       change_of(gain, larger(usual, WORTH_A_WORD)) != TREND_SAME;
	k->counts[cell->change]++;
	w->c->counts[cell->change]++;
}

/* ---- a metric ---- */

static double median_of(double *values, size_t n)
{
	sort_doubles(values, n);
	return median_of_sorted(values, n);
}

static double sum_of(double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum;
}

static void sum_up(struct arena *a, struct compared *k)
{
	bool yes_or_no = k->metric->shape == SHAPE_YES_NO;
	double (*over)(double *, size_t) = yes_or_no ? sum_of : median_of;
	double *before = arena_alloc(a, k->cell_n, sizeof(*before));
	double *after = arena_alloc(a, k->cell_n, sizeof(*after));

	k->best = k->worst = &k->cells[0];
	for (size_t i = 0; i < k->cell_n; i++) {
		before[i] = k->cells[i].before->median;
		after[i] = k->cells[i].after->median;
		k->best = k->cells[i].gain > k->best->gain ? &k->cells[i] : k->best;
		k->worst = k->cells[i].gain < k->worst->gain ? &k->cells[i] : k->worst;
	}
	k->before = over(before, k->cell_n);
	k->after = over(after, k->cell_n);
}

static void add_lone_after(struct work *w, const struct metric *m)
{
	struct comparison *c = w->c;

	for (size_t i = 0; i < c->after->row_n; i++) {
		const struct figure *row = &c->after->rows[i];

		if (!w->matched[i] && row->metric == m)
			*ARENA_PUSH(c->arena, c->alone, c->alone_n) =
				(struct lone_figure){m, NULL, row};
	}
}

static void compare_metric(struct work *w, const struct metric *m)
{
	struct comparison *c = w->c;
	struct compared k = {.metric = m};

	for (size_t i = 0; i < c->before->row_n; i++) {
		const struct figure *row = &c->before->rows[i], *other;

		if (row->metric != m)
			continue;
		other = look_up_like(w->after, row, after_index(c, row->initiator),
				     after_index(c, row->target));
		if (other) {
			add_cell(w, &k, row, other);
			w->matched[other - c->after->rows] = true;
		} else {
			*ARENA_PUSH(c->arena, c->alone, c->alone_n) =
				(struct lone_figure){m, row, NULL};
		}
	}
	add_lone_after(w, m);
	if (!k.cell_n)
		return;
	sum_up(c->arena, &k);
	*ARENA_PUSH(c->arena, c->kinds, c->kind_n) = k;
}

/* ---- is P2P used? ---- */

/* Reads move data in the other direction; tools that read with P2P on still write with it off. */
static const struct figure *find_off(const struct figure_index *x, const struct figure *on)
{
	const struct metric *m = on->metric;
	int from = m->read ? on->target : on->initiator, to = m->read ? on->initiator : on->target;

	return m->off ? look_up(x, m->off, from, to, on->bytes) : NULL;
}

static enum trend on_against_off(const struct figure *on, const struct figure *off)
{
	return on && off ? change_of(gain_of(off, on), on->metric->noise_hosted) : TREND_N;
}

struct p2p_gain p2p_gain_of(const struct figure_index *x, const struct figure *on)
{
	const char *latency = on->metric->read ? METRIC_LATENCY_READ : METRIC_LATENCY_WRITE;
	const struct figure *tiny = look_up(x, latency, on->initiator, on->target, on->bytes);
	const struct figure *off = find_off(x, on);

	return (struct p2p_gain){
		.rate = on_against_off(on, off),
		.latency = on_against_off(tiny, tiny ? find_off(x, tiny) : NULL),
		.off = off,
	};
}

enum observed_gain p2p_gain_verdict(struct p2p_gain g)
{
	if (g.rate == TREND_BETTER || (g.rate != TREND_WORSE && g.latency == TREND_BETTER))
		return OBSERVED_GAINS;
	return g.rate == TREND_N ? OBSERVED_GAIN_UNKNOWN : OBSERVED_GAINS_NOTHING;
}

/*
 * With P2P on as with it off: staged through the host although it is on. One row may be equal by
 * chance (a narrow link), so the period of tiny writes must be equal too.
 */
static void judge_use(const struct figure_index *x, const struct figure *on, struct p2p_use *use)
{
	struct p2p_gain gain = p2p_gain_of(x, on);

	if (gain.rate == TREND_BETTER || gain.latency == TREND_BETTER)
		use->yes++;
	else if (gain.rate == TREND_SAME && gain.latency == TREND_SAME)
		use->no++;
	else
		use->open++;
}

static struct p2p_use count_use(const struct figures *f, const struct figure_index *x)
{
	struct p2p_use use = {0};

	for (size_t i = 0; i < f->row_n; i++) {
		const struct figure *row = &f->rows[i];

		if (strcmp(row->what, METRIC_WRITE_CE) == 0 && row->initiator >= 0 &&
		    row->target >= 0)
			judge_use(x, row, &use);
	}
	return use;
}

/* ---- what is slow? ---- */

/* Without access a copy goes through host memory, however fast it is. */
static bool is_rate(const struct figure_index *x, const struct figure *r, const char *word)
{
	return strcmp(r->what, word) == 0 && r->initiator >= 0 && r->target >= 0 &&
	       r->initiator != r->target && !no_access(x, r);
}

static double median_rate(struct arena *a, const struct figures *f, const struct figure_index *x,
			  const char *word)
{
	double *rates = arena_alloc(a, f->row_n + 1, sizeof(*rates));
	size_t n = 0;

	for (size_t i = 0; i < f->row_n; i++)
		if (is_rate(x, &f->rows[i], word))
			rates[n++] = f->rows[i].median;
	return rate_median(rates, n);
}

/* The tool that tested the pair knew its expected rate. */
static bool called_slow(const struct figure_index *x, const struct figure *r)
{
	const struct figure *rate = look_up(x, METRIC_PAIR_RATE, r->initiator, r->target, 0);

	return rate && rate->median == 0;
}

static void count_slow_of(struct arena *a, const struct figures *f, const struct figure_index *x,
			  const char *word, struct slow_pairs *ret)
{
	double median = median_rate(a, f, x, word);

	for (size_t i = 0; i < f->row_n; i++) {
		const struct figure *r = &f->rows[i];

		if (!is_rate(x, r, word))
			continue;
		ret->rows++;
		if (!called_slow(x, r) &&
		    !rate_is_slow(r->median, rate_yardstick(r->expected, median, r->bytes)))
			continue;
		ret->least = !ret->slow || r->median < ret->least ? r->median : ret->least;
		ret->most = r->median > ret->most ? r->median : ret->most;
		ret->slow++;
	}
}

static struct slow_pairs count_slow(struct arena *a, const struct figures *f,
				    const struct figure_index *x)
{
	struct slow_pairs slow = {0};

	count_slow_of(a, f, x, METRIC_WRITE_CE, &slow);
	count_slow_of(a, f, x, METRIC_READ_CE, &slow);
	return slow;
}

/* ---- the whole ---- */

static size_t count_failures(const struct figures *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->row_n; i++)
		n += figure_is_failure(&f->rows[i]);
	return n;
}

static double size_of_change(const struct compared_cell *cell)
{
	return cell->gain >= 1 ? cell->gain : 1 / cell->gain;
}

static void find_hidden(struct comparison *c)
{
	for (size_t i = 0; i < c->kind_n; i++)
		for (size_t j = 0; j < c->kinds[i].cell_n; j++) {
			const struct compared_cell *cell = &c->kinds[i].cells[j];

			if (!cell->hidden)
				continue;
			if (!c->hidden_n++ || size_of_change(cell) > size_of_change(c->most_hidden))
				c->most_hidden = cell;
		}
}

static size_t compared_cells(const struct comparison *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->kind_n; i++)
		n += c->kinds[i].cell_n;
	return n;
}

/* Two runs never agree in every rate and time; in yes-or-no figures they may. */
static bool is_same_run(const struct comparison *c)
{
	bool measured = false;

	if (c->only_before || c->only_after)
		return false;
	for (size_t i = 0; i < c->kind_n; i++) {
		const struct compared *k = &c->kinds[i];

		measured = measured || k->metric->shape != SHAPE_YES_NO;
		for (size_t j = 0; j < k->cell_n; j++) {
			const struct figure *b = k->cells[j].before, *a = k->cells[j].after;

			if (b->median != a->median || b->low != a->low || b->high != a->high)
				return false;
		}
	}
	return measured;
}

struct comparison *comparison_new_in(struct arena *arena, const struct figures *before,
				     const struct figures *after)
{
	struct comparison *c = arena_alloc(arena, 1, sizeof(*c));
	struct work w = {c, figure_index_new(arena, before), figure_index_new(arena, after), NULL};

	c->arena = arena;
	c->before = before;
	c->after = after;
	match_gpus(c);
	w.matched = arena_alloc(arena, after->row_n + 1, sizeof(*w.matched));
	for (size_t i = 0; i < metric_n; i++)
		compare_metric(&w, &metrics[i]);
	c->only_before = before->row_n - compared_cells(c);
	c->only_after = after->row_n - compared_cells(c);
	c->same_run = is_same_run(c);
	find_hidden(c);
	c->use_before = count_use(before, w.before);
	c->use_after = count_use(after, w.after);
	c->slow_before = count_slow(arena, before, w.before);
	c->slow_after = count_slow(arena, after, w.after);
	c->failed_before = count_failures(before);
	c->failed_after = count_failures(after);
	return c;
}

void comparison_free(struct comparison *c)
{
	if (c)
		arena_free(c->arena);
}
