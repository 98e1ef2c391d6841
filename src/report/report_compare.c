/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `onehop compare` prints: measurement by measurement, then who changed most, then the
 * verdict.
 */
#include "report/report_impl.h"
#include "report/report_json_impl.h"

#include "base/rate.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const enum style change_styles[TREND_N] = {
	[TREND_SAME] = STYLE_PLAIN,
	[TREND_BETTER] = STYLE_GOOD,
	[TREND_WORSE] = STYLE_BAD,
};

/* ---- words ---- */

/* Four digits, as the tools print them: 20.64, 919.1, 0. */
static const char *value_format(double v, char *buf, size_t size)
{
	snprintf(buf, size, v == floor(v) && v < 1e6 ? "%.0f" : v < 100 ? "%.2f" : "%.1f", v);
	return buf;
}

static const char *size_format(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t u = 0;

	while (u < 4 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, size, "%" PRIu64 " %s", bytes, units[u]);
	return buf;
}

/*
 * "1.43x, better", "same": after divided by before, as in the summary; without a ratio the word
 * alone.
 */
static const char *ratio_format(const struct compared_cell *cell, char *buf, size_t size)
{
	double ratio = cell->before->median > 0 ? cell->after->median / cell->before->median : 0;

	if (cell->change == TREND_SAME || ratio <= 0 || !isfinite(cell->gain))
		snprintf(buf, size, "%s", change_word(cell->change));
	else
		snprintf(buf, size, "%.2fx, %s", ratio, change_word(cell->change));
	return buf;
}

static void add_gpu_name(struct strbuf *b, const struct figures *f, int gpu)
{
	if (gpu < 0)
		strbuf_puts(b, "host");
	else if (f->gpus[gpu].pci)
		strbuf_printf(b, "GPU%d (%s)", gpu, f->gpus[gpu].pci);
	else
		strbuf_printf(b, "GPU%d", gpu);
}

/* "GPU1 -> GPU0", "GPU3", "128 MiB": what a row is about. */
static void add_subject(struct strbuf *b, const struct figures *f, const struct figure *row)
{
	const struct metric *m = row->metric;
	bool from_host = m->shape == SHAPE_HOST && m->read; /* the GPU fetches */
	char size[32];

	if (*row->peer) {
		strbuf_printf(b, "%s and %s%s", row->nic, row->peer,
			      row->bytes || row->queues ? ", " : "");
	} else if (*row->nic) {
		strbuf_printf(b, "%s and ", row->nic);
		add_gpu_name(b, f, row->target);
		if (row->target >= 0)
			strbuf_printf(b, " by %s", row->memory);
		strbuf_puts(b, row->bytes || row->queues ? ", " : "");
	} else if (row->initiator >= 0 || row->target >= 0) {
		add_gpu_name(b, f, from_host ? row->target : row->initiator);
		if (row->target != row->initiator) {
			strbuf_puts(b, " -> ");
			add_gpu_name(b, f, from_host ? row->initiator : row->target);
		}
		if (row->bytes)
			strbuf_puts(b, ", ");
	}
	if (row->queues)
		strbuf_printf(b, "%u queue pairs%s", row->queues, row->bytes ? ", " : "");
	if (row->bytes)
		strbuf_puts(b, size_format(row->bytes, size, sizeof(size)));
}

static void add_title(struct document *out, const struct compared *k, const char *more)
{
	document_cell(out, STYLE_PLAIN, "%s%s%s", k->metric->title,
		      k->metric->staged ? ", P2P off" : "", more);
}

/* ---- the table ---- */

static bool is_yes_or_no(const struct compared *k)
{
	return k->metric->shape == SHAPE_YES_NO;
}

/* "55 better, 1 same", "all 56 better": how the cells came out. */
static void add_outcome(struct document *out, const struct compared *k)
{
	struct strbuf b AUTO_STRBUF = {0};
	enum style style = STYLE_PLAIN;
	char all[TEXT_ALL_SIZE];

	for (int change = TREND_N - 1; change >= 0; change--) {
		if (!k->counts[change])
			continue;
		style = change != TREND_SAME && style == STYLE_PLAIN ? change_styles[change]
								     : style;
		strbuf_puts(&b, b.len ? ", " : "");
		if (k->counts[change] == k->cell_n)
			strbuf_printf(&b, "%s%s%s", k->cell_n > 1 ? text_all(k->cell_n, all) : "",
				      k->cell_n > 1 ? " " : "", change_word((enum trend)change));
		else
			strbuf_printf(&b, "%zu %s", k->counts[change],
				      change_word((enum trend)change));
	}
	document_cell(out, style, "%s", strbuf_str(&b));
}

static void add_values(struct document *out, double before, double after, const char *unit)
{
	char a[32], b[32];

	document_cell(out, STYLE_PLAIN, "%s", value_format(before, a, sizeof(a)));
	document_cell(out, STYLE_STRONG, "%s", value_format(after, b, sizeof(b)));
	document_cell(out, STYLE_PLAIN, "%s", unit);
}

/*
 * A file may hold any number: what has no factor, or none that tells anything, has an empty cell.
 */
static void add_ratio(struct document *out, double before, double after)
{
	double ratio = before > 0 ? after / before : 0;

	if (ratio > 0 && ratio < 1e6)
		document_cell(out, STYLE_PLAIN, "%.2fx", ratio);
	else
		document_cell(out, STYLE_PLAIN, "%s", "");
}

/* Median against median, whether or not it is noise; the outcome says that. */
static void add_factor(struct document *out, const struct compared *k)
{
	if (is_yes_or_no(k))
		document_cell(out, STYLE_PLAIN, "%s", "");
	else
		add_ratio(out, k->before, k->after);
}

static void add_kind_row(struct document *out, const struct compared *k)
{
	document_row(out);
	add_title(out, k, "");
	add_values(out, k->before, k->after, k->metric->unit);
	add_factor(out, k);
	add_outcome(out, k);
}

/* A median over sizes says nothing, so a collective's row is that of one size. */
static void add_cell_row(struct document *out, const struct compared *k,
			 const struct compared_cell *cell)
{
	char size[48], more[64];

	snprintf(more, sizeof(more), ", %s", size_format(cell->before->bytes, size, sizeof(size)));
	document_row(out);
	add_title(out, k, more);
	add_values(out, cell->before->median, cell->after->median, k->metric->unit);
	add_ratio(out, cell->before->median, cell->after->median);
	add_outcome(out, k);
}

static bool is_collective(const struct compared *k)
{
	const struct figure *f = k->cells[0].before;

	return f->bytes && f->initiator < 0 && f->target < 0 && !*f->nic;
}

/* Bandwidth counts at the largest size, time at the smallest. */
static const struct compared_cell *telling_cell(const struct compared *k)
{
	const struct compared_cell *best = &k->cells[0];

	for (size_t i = 1; i < k->cell_n; i++) {
		uint64_t bytes = k->cells[i].before->bytes;

		if (k->metric->higher_is_better ? bytes > best->before->bytes
						: bytes < best->before->bytes)
			best = &k->cells[i];
	}
	return best;
}

static const struct figure *peak(const struct compared *k, bool after)
{
	const struct figure *best = NULL;

	for (size_t i = 0; i < k->cell_n; i++) {
		const struct figure *f = after ? k->cells[i].after : k->cells[i].before;

		best = !best || f->median > best->median ? f : best;
	}
	return best;
}

static void add_peak_row(struct document *out, const struct compared *k)
{
	const struct figure *before = peak(k, false), *after = peak(k, true);
	char a[32], b[32];

	document_row(out);
	add_title(out, k, ", peak");
	add_values(out, before->median, after->median, k->metric->unit);
	add_ratio(out, before->median, after->median);
	document_cell(out, STYLE_DIM, "at %s -> %s", size_format(before->bytes, a, sizeof(a)),
		      size_format(after->bytes, b, sizeof(b)));
}

/* A copy within a GPU is so much faster that no other bar would be seen next to its own. */
static bool share_scale(const struct compared *a, const struct compared *b)
{
	return !is_yes_or_no(a) && !is_yes_or_no(b) &&
	       strcmp(a->metric->unit, b->metric->unit) == 0 &&
	       (a->metric->shape == SHAPE_LOCAL) == (b->metric->shape == SHAPE_LOCAL);
}

/* Bars of one scale: those of all that share that of `first`. */
static void add_chart_of(struct document *out, const struct comparison *c,
			 const struct compared *first)
{
	document_chart(out, CHART_CHANGE, first->metric->unit, "Before and after%s, medians in %s",
		       first->metric->shape == SHAPE_LOCAL ? ", within a GPU" : "",
		       first->metric->unit);
	for (size_t i = 0; i < c->kind_n; i++) {
		const struct compared *k = &c->kinds[i];
		const struct compared_cell *cell = is_collective(k) ? telling_cell(k) : NULL;
		const struct chart_point p = {
			.value = cell ? cell->after->median : k->after,
			.other = cell ? cell->before->median : k->before,
			.style = k->counts[TREND_WORSE] ? STYLE_BAD : STYLE_PLAIN,
		};

		if (share_scale(k, first))
			document_point(out, &p, "%s%s", k->metric->title,
				       k->metric->staged ? ", P2P off" : "");
	}
}

static void add_charts(struct document *out, const struct comparison *c)
{
	for (size_t i = 0; i < c->kind_n; i++) {
		bool said = is_yes_or_no(&c->kinds[i]);

		for (size_t k = 0; k < i && !said; k++)
			said = share_scale(&c->kinds[k], &c->kinds[i]);
		if (!said)
			add_chart_of(out, c, &c->kinds[i]);
	}
}

static void add_summary(struct document *out, const struct comparison *c)
{
	static const char *const header[] = {"", "before",       "after",
					     "", "after/before", "beyond noise"};

	document_blank(out);
	document_table(out, 0, 6, 2);
	document_titles(out, header);
	for (size_t i = 0; i < c->kind_n; i++) {
		const struct compared *k = &c->kinds[i];

		if (!is_collective(k)) {
			add_kind_row(out, k);
			continue;
		}
		add_cell_row(out, k, telling_cell(k));
		if (k->metric->higher_is_better && k->cell_n > 1)
			add_peak_row(out, k);
	}
}

/* ---- cells ---- */

static void add_cell(struct document *out, const struct comparison *c, const struct compared *k,
		     const struct compared_cell *cell)
{
	struct strbuf subject AUTO_STRBUF = {0};
	char ratio[48];

	add_subject(&subject, c->before, cell->before);
	document_row(out);
	add_title(out, k, "");
	document_cell(out, STYLE_PLAIN, "%s", strbuf_str(&subject));
	add_values(out, cell->before->median, cell->after->median,
		   is_yes_or_no(k) ? "" : k->metric->unit);
	document_cell(out, change_styles[cell->change], "%s",
		      ratio_format(cell, ratio, sizeof(ratio)));
}

static void add_lone_value(struct document *out, enum style style, const struct figure *row)
{
	char value[32];

	document_cell(out, style, "%s",
		      row ? value_format(row->median, value, sizeof(value)) : "-");
}

/* What was not measured on the other side is "-". */
static void add_lone(struct document *out, const struct comparison *c, const struct lone_figure *l)
{
	const struct figure *row = l->before ? l->before : l->after;
	struct strbuf subject AUTO_STRBUF = {0};

	add_subject(&subject, l->before ? c->before : c->after, row);
	document_row(out);
	document_cell(out, STYLE_PLAIN, "%s%s", l->metric->title,
		      l->metric->staged ? ", P2P off" : "");
	document_cell(out, STYLE_PLAIN, "%s", strbuf_str(&subject));
	add_lone_value(out, STYLE_PLAIN, l->before);
	add_lone_value(out, STYLE_STRONG, l->after);
	document_cell(out, STYLE_PLAIN, "%s", l->metric->unit);
	document_cell(out, STYLE_DIM, "%s", l->before ? "only before" : "only after");
}

static void start_cells(struct document *out, const char *heading)
{
	static const char *const header[] = {"", "", "before", "after", "", "after/before"};

	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "%s", heading);
	document_table(out, 0, 6, 2);
	document_titles(out, header);
}

static bool is_pair(const struct figure *row, const int *pair)
{
	return row->initiator == pair[0] && row->target == pair[1];
}

static void add_pair(struct document *out, const struct comparison *c, const int *pair)
{
	struct strbuf heading AUTO_STRBUF = {0};

	add_gpu_name(&heading, c->before, pair[0]);
	strbuf_puts(&heading, " -> ");
	add_gpu_name(&heading, c->before, pair[1]);
	start_cells(out, strbuf_str(&heading));
	for (size_t i = 0; i < c->kind_n; i++) {
		const struct compared *k = &c->kinds[i];

		for (size_t j = 0; j < k->cell_n; j++) {
			if (is_pair(k->cells[j].before, pair))
				add_cell(out, c, k, &k->cells[j]);
		}
	}
	for (size_t i = 0; i < c->alone_n; i++) {
		const struct lone_figure *l = &c->alone[i];
		int after[2] = {c->gpu_after[pair[0]], c->gpu_after[pair[1]]};

		if (l->before ? is_pair(l->before, pair) : is_pair(l->after, after))
			add_lone(out, c, l);
	}
}

static void add_all_cells(struct document *out, const struct comparison *c)
{
	start_cells(out, "All figures");
	for (size_t i = 0; i < c->kind_n; i++) {
		for (size_t j = 0; j < c->kinds[i].cell_n; j++)
			add_cell(out, c, &c->kinds[i], &c->kinds[i].cells[j]);
	}
	for (size_t i = 0; i < c->alone_n; i++)
		add_lone(out, c, &c->alone[i]);
}

/* Where not all cells are the same: the one that gained most and the one that gained least. */
static void add_extremes(struct document *out, const struct comparison *c)
{
	bool started = false;

	for (size_t i = 0; i < c->kind_n; i++) {
		const struct compared *k = &c->kinds[i];

		if (k->cell_n < 2 || is_yes_or_no(k) || k->counts[TREND_SAME] == k->cell_n)
			continue;
		if (!started)
			start_cells(out, "Largest and smallest gain");
		started = true;
		add_cell(out, c, k, k->best);
		if (k->worst != k->best)
			add_cell(out, c, k, k->worst);
	}
}

/* ---- around it ---- */

static void add_input(struct document *out, const char *label, const struct figures *f,
		      const struct figures *other)
{
	document_item(out, STYLE_STRONG, 0, label, "%s (%s, %zu %s%s%s)", f->name, f->tool,
		      f->gpu_n, text_plural(f->gpu_n, "GPU", "GPUs"), *f->when ? ", " : "",
		      f->when);
	/*
	 * A model, simulated devices, another type: a difference that no change of the machine
	 * made.
	 */
	if (*f->note && strcmp(f->note, other->note))
		document_paragraph(out, STYLE_WARN, 2, "%s", f->note);
	if (f->runs > 1)
		document_paragraph(
			out, STYLE_WARN, 2,
			"The file contains the same measurements %u times: each figure is their "
			"median, and a figure missing from one run counts as missing. To compare the "
			"runs with each other, put each into its own file.",
			f->runs);
	for (size_t i = 0; i < f->trouble_n; i++)
		document_paragraph(out, STYLE_WARN, 2, "skipped: %s", f->troubles[i]);
}

static size_t use_pairs(const struct p2p_use *u)
{
	return u->yes + u->no + u->open;
}

/* Only what was measured with P2P off as well tells. */
static bool is_known(const struct p2p_use *u)
{
	return u->yes || u->no;
}

static void add_use_side(struct strbuf *b, const struct p2p_use *u)
{
	if (!is_known(u)) {
		strbuf_puts(b, "unknown");
		return;
	}
	strbuf_printf(b, "%zu of %zu", u->yes, use_pairs(u));
	if (u->open)
		strbuf_printf(b, " (%zu undecided)", u->open);
}

/* What the figures themselves say, whatever the driver promised. */
static void add_use(struct document *out, const struct comparison *c)
{
	struct strbuf b AUTO_STRBUF = {0};

	if (!use_pairs(&c->use_before) || !use_pairs(&c->use_after) ||
	    (!is_known(&c->use_before) && !is_known(&c->use_after)))
		return;
	add_use_side(&b, &c->use_before);
	strbuf_puts(&b, " -> ");
	add_use_side(&b, &c->use_after);
	document_blank(out);
	document_item(out, STYLE_STRONG, 0, "P2P in use:",
		      "%s pairs, judged by the figures: a pair that is no faster with P2P on than "
		      "with P2P off does not use it",
		      strbuf_str(&b));
}

/* "3 of 12, 5.1 to 5.3 GB/s" */
static void add_slow_side(struct strbuf *b, const struct slow_pairs *s)
{
	strbuf_printf(b, "%zu of %zu", s->slow, s->rows);
	if (s->slow)
		strbuf_printf(b, s->least < s->most ? ", %.3g to %.3g GB/s" : ", %.3g GB/s",
			      s->least, s->most);
}

/* What is the same as before may still be slow, be it all pairs alike. */
static void add_slow(struct document *out, const struct comparison *c)
{
	struct strbuf b AUTO_STRBUF = {0};

	if (!c->slow_before.slow && !c->slow_after.slow)
		return;
	add_slow_side(&b, &c->slow_before);
	strbuf_puts(&b, " -> ");
	add_slow_side(&b, &c->slow_after);
	document_blank(out);
	document_item(out, c->slow_after.slow ? STYLE_BAD : STYLE_STRONG, 0, "Slow copies:",
		      "%s: below %.0f %% of the expected rate of the path, or, if the result does "
		      "not give one, below %.0f %% of the median of all pairs",
		      strbuf_str(&b), 100 * rate_slow_share(RATE_BY_PATH),
		      100 * rate_slow_share(RATE_BY_OTHERS));
}

static void add_failed(struct document *out, const struct comparison *c)
{
	if (!c->failed_before && !c->failed_after)
		return;
	document_blank(out);
	document_item(out, c->failed_after ? STYLE_BAD : STYLE_STRONG, 0, "Failed checks:",
		      "%zu -> %zu: wrong data, or a test that failed with an error",
		      c->failed_before, c->failed_after);
}

static void add_gpu_sets(struct document *out, const struct comparison *c)
{
	if (c->gpus_gone || c->gpus_new)
		document_paragraph(
			out, STYLE_WARN, 0,
			"The GPUs differ: %zu only before, %zu only after (matched by %s).",
			c->gpus_gone, c->gpus_new, c->by_pci ? "PCI address" : "index");
	if (c->kind_n && (c->only_before || c->only_after))
		document_paragraph(out, STYLE_DIM, 0,
				   "Without a counterpart: %zu %s before, %zu after.",
				   c->only_before, text_plural(c->only_before, "figure", "figures"),
				   c->only_after);
}

/* "Same" must not hide that a figure fell by a third. */
static void add_hidden(struct document *out, const struct comparison *c)
{
	const struct compared_cell *most = c->most_hidden;
	AUTO_STRBUF struct strbuf subject = {0};

	if (!most)
		return;
	add_subject(&subject, c->before, most->before);
	document_paragraph(
		out, STYLE_WARN, 0,
		"%zu of these %s by 10 %% or more, up to %+.0f %% (%s%s%s%s), but the values within "
		"a run scatter as much: up to %.0f %% counts as noise there. Measure again, or "
		"longer, to decide.",
		c->hidden_n, text_plural(c->hidden_n, "differs", "differ"),
		100 * (most->after->median / most->before->median - 1), most->before->metric->title,
		most->before->metric->staged ? ", P2P off" : "", subject.len ? ", " : "",
		strbuf_str(&subject), 100 * most->noise);
}

static const char *verdict_of(const struct comparison *c)
{
	if (!c->kind_n)
		return "nothing";
	if (c->counts[TREND_WORSE])
		return c->counts[TREND_BETTER] ? "mixed" : "worse";
	return c->counts[TREND_BETTER] ? "better" : "same";
}

static void add_verdict(struct document *out, const struct comparison *c)
{
	enum style style = c->counts[TREND_WORSE]    ? STYLE_BAD
			   : c->counts[TREND_BETTER] ? STYLE_GOOD
						     : STYLE_STRONG;

	document_blank(out);
	if (!c->kind_n)
		document_paragraph(out, STYLE_BAD, 0,
				   "Nothing to compare: the files have no measurement in common.");
	else if (c->same_run)
		document_paragraph(out, STYLE_WARN, 0,
				   "Both files are the same run: all figures are identical.");
	else
		document_paragraph(out, style, 0,
				   "%zu %s better, %zu worse, %zu the same within noise.",
				   c->counts[TREND_BETTER],
				   text_plural(c->counts[TREND_BETTER], "figure is", "figures are"),
				   c->counts[TREND_WORSE], c->counts[TREND_SAME]);
}

void report_comparison(struct document *out, const struct comparison *c)
{
	add_input(out, "before:", c->before, c->after);
	add_input(out, "after: ", c->after, c->before);
	add_verdict(out, c);
	add_hidden(out, c);
	if (!c->kind_n)
		return;
	add_failed(out, c);
	add_slow(out, c);
	add_summary(out, c);
	add_charts(out, c);
	add_extremes(out, c);
}

void report_compare(struct document *out, const struct comparison *c, const int *pair, bool verbose)
{
	document_title(out, "Before and after");
	add_input(out, "before:", c->before, c->after);
	add_input(out, "after: ", c->after, c->before);
	add_verdict(out, c);
	add_hidden(out, c);
	add_gpu_sets(out, c);
	if (c->kind_n) {
		add_use(out, c);
		add_failed(out, c);
		add_slow(out, c);
		add_summary(out, c);
		add_charts(out, c);
		if (pair)
			add_pair(out, c, pair);
		else
			add_extremes(out, c);
		if (verbose)
			add_all_cells(out, c);
	}
}

/* ---- JSON ---- */

static json_t *input_json(const struct figures *f)
{
	json_t *gpus = json_array(), *troubles = json_array();

	for (size_t i = 0; i < f->gpu_n; i++)
		json_array_append_new(gpus,
				      json_pack("{s:o, s:o}", "pci", json_text(f->gpus[i].pci),
						"name", json_text(f->gpus[i].name)));
	for (size_t i = 0; i < f->trouble_n; i++)
		json_array_append_new(troubles, json_text(f->troubles[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:i, s:o}", "name", json_text(f->name), "tool",
			 json_text(f->tool), "note", json_text(f->note), "gpus", gpus, "runs",
			 (int)f->runs, "left_out", troubles);
}

static json_t *index_json(int i)
{
	return i < 0 ? json_null() : json_integer(i);
}

static json_t *number_json(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *ratio_json(double before, double after)
{
	return number_json(before > 0 ? after / before : INFINITY);
}

static json_t *cell_json(const struct compared_cell *cell)
{
	const struct figure *b = cell->before, *a = cell->after;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "initiator",
			 index_json(b->initiator), "target", index_json(b->target), "bytes",
			 b->bytes ? json_integer((json_int_t)b->bytes) : json_null(), "before",
			 number_json(b->median), "after", number_json(a->median), "ratio",
			 ratio_json(b->median, a->median), "noise", number_json(cell->noise),
			 "change", change_word(cell->change), "before_from", json_text(b->from),
			 "after_from", json_text(a->from));
}

static json_t *kind_json(const struct compared *k)
{
	json_t *cells = json_array(), *o;

	for (size_t i = 0; i < k->cell_n; i++)
		json_array_append_new(cells, cell_json(&k->cells[i]));
	o = json_pack("{s:s, s:s, s:b, s:s, s:b, s:o, s:o}", "what", k->metric->word, "title",
		      k->metric->title, "p2p_off", (int)k->metric->staged, "unit", k->metric->unit,
		      "higher_is_better", (int)k->metric->higher_is_better, "before",
		      number_json(k->before), "after", number_json(k->after));
	json_object_set_new(o, "ratio", ratio_json(k->before, k->after));
	json_object_set_new(o, "better", json_integer((json_int_t)k->counts[TREND_BETTER]));
	json_object_set_new(o, "worse", json_integer((json_int_t)k->counts[TREND_WORSE]));
	json_object_set_new(o, "same", json_integer((json_int_t)k->counts[TREND_SAME]));
	json_object_set_new(o, "best", cell_json(k->best));
	json_object_set_new(o, "worst", cell_json(k->worst));
	json_object_set_new(o, "cells", cells);
	return o;
}

static json_t *lone_json(const struct lone_figure *l)
{
	const struct figure *row = l->before ? l->before : l->after;

	return json_pack("{s:s, s:b, s:s, s:o, s:o, s:o, s:o, s:o}", "what", l->metric->word,
			 "p2p_off", (int)l->metric->staged, "unit", l->metric->unit, "initiator",
			 index_json(row->initiator), "target", index_json(row->target), "bytes",
			 row->bytes ? json_integer((json_int_t)row->bytes) : json_null(), "before",
			 l->before ? number_json(row->median) : json_null(), "after",
			 l->after ? number_json(row->median) : json_null());
}

static json_t *use_json(const struct p2p_use *u)
{
	return json_pack("{s:I, s:I, s:I}", "yes", (json_int_t)u->yes, "no", (json_int_t)u->no,
			 "undecided", (json_int_t)u->open);
}

static json_t *slow_json(const struct slow_pairs *s)
{
	return json_pack("{s:I, s:I, s:o, s:o}", "copies", (json_int_t)s->rows, "slow",
			 (json_int_t)s->slow, "least", s->slow ? json_real(s->least) : json_null(),
			 "most", s->slow ? json_real(s->most) : json_null());
}

json_t *report_compare_json(const struct comparison *c)
{
	json_t *o = json_head("compare"), *kinds = json_array(), *alone = json_array();

	for (size_t i = 0; i < c->kind_n; i++)
		json_array_append_new(kinds, kind_json(&c->kinds[i]));
	for (size_t i = 0; i < c->alone_n; i++)
		json_array_append_new(alone, lone_json(&c->alone[i]));
	json_object_set_new(o, "before", input_json(c->before));
	json_object_set_new(o, "after", input_json(c->after));
	json_object_set_new(o, "gpus_matched_by", json_string(c->by_pci ? "pci" : "index"));
	json_object_set_new(o, "gpus_only_before", json_integer((json_int_t)c->gpus_gone));
	json_object_set_new(o, "gpus_only_after", json_integer((json_int_t)c->gpus_new));
	json_object_set_new(o, "p2p_in_use_before", use_json(&c->use_before));
	json_object_set_new(o, "p2p_in_use_after", use_json(&c->use_after));
	json_object_set_new(o, "slow_before", slow_json(&c->slow_before));
	json_object_set_new(o, "slow_after", slow_json(&c->slow_after));
	json_object_set_new(o, "failed_before", json_integer((json_int_t)c->failed_before));
	json_object_set_new(o, "failed_after", json_integer((json_int_t)c->failed_after));
	json_object_set_new(o, "measurements", kinds);
	json_object_set_new(o, "figures_only_before", json_integer((json_int_t)c->only_before));
	json_object_set_new(o, "figures_only_after", json_integer((json_int_t)c->only_after));
	json_object_set_new(o, "alone", alone);
	json_object_set_new(o, "hidden_by_noise", json_integer((json_int_t)c->hidden_n));
	json_object_set_new(o, "same_run", json_boolean(c->same_run));
	json_object_set_new(o, "verdict", json_string(verdict_of(c)));
	return o;
}
