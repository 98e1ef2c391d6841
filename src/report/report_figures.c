/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured results of any tool for pages: a matrix or a table per metric, with what was expected.
 */
#include "report/report_impl.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A figure below this share of what its path should give is marked. */
#define SHORT_OF 0.85
/* Bars of one chart: the worst first, then no more. */
#define MAX_BARS 16

static bool falls_short(const struct figure *row)
{
	if (row->expected <= 0)
		return false;
	return row->higher_is_better ? row->median < SHORT_OF * row->expected
				     : row->median * SHORT_OF > row->expected;
}

static enum style figure_style(const struct figure *row)
{
	if (figure_is_failure(row))
		return STYLE_BAD;
	return falls_short(row) ? STYLE_WARN : STYLE_PLAIN;
}

static bool is_yes_or_no(const struct figure *row)
{
	return row->metric && row->metric->shape == SHAPE_YES_NO;
}

static bool is_of(const struct figure *row, const struct metric *m, uint64_t bytes)
{
	return row->metric == m && row->bytes == bytes && row->initiator >= 0 && row->target >= 0 &&
	       !*row->nic && !*row->pattern;
}

/* "GPU0", the end of a pair. */
static void put_gpu(struct strbuf *b, int gpu)
{
	if (gpu < 0)
		strbuf_puts(b, "host");
	else
		strbuf_printf(b, "GPU%d", gpu);
}

static void put_subject(struct strbuf *b, const struct figure *row)
{
	char size[BYTES_TEXT_SIZE];
	bool pair = row->initiator >= 0 || row->target >= 0;

	if (*row->nic)
		strbuf_printf(b, "%s and %s", row->nic, *row->peer ? row->peer : "");
	if (*row->nic && !*row->peer)
		put_gpu(b, row->target);
	if (!*row->nic && pair)
		put_gpu(b, row->initiator);
	if (!*row->nic && pair && row->target != row->initiator) {
		strbuf_puts(b, " -> ");
		put_gpu(b, row->target);
	}
	if (*row->memory)
		strbuf_printf(b, " by %s", row->memory);
	if (row->queues)
		strbuf_printf(b, ", %u queue pairs", row->queues);
	if (row->bytes)
		strbuf_printf(b, "%s%s", b->len ? ", " : "", bytes_text(row->bytes, size));
	if (*row->pattern)
		strbuf_printf(b, "%s%s", b->len ? ", " : "", row->pattern);
}

static void add_value(struct document *out, const struct figure *row)
{
	if (is_yes_or_no(row))
		document_cell(out, row->median > 0 ? STYLE_GOOD : STYLE_BAD, "%s",
			      row->median > 0 ? "yes" : "no");
	else
		document_value(out, figure_style(row), row->median, row->expected, "%.4g",
			       row->median);
}

/* ---- pairs: a matrix ---- */

static size_t count_of(const struct figures *f, const struct metric *m, uint64_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < f->row_n; i++)
		n += is_of(&f->rows[i], m, bytes);
	return n;
}

static void add_matrix_of(struct document *out, const struct figures *f, const struct metric *m,
			  uint64_t bytes)
{
	const struct figure **cells AUTO_FREE = xcalloc(f->gpu_n * f->gpu_n + 1, sizeof(*cells));

	for (size_t i = 0; i < f->row_n; i++)
		if (is_of(&f->rows[i], m, bytes))
			cells[(size_t)f->rows[i].initiator * f->gpu_n + (size_t)f->rows[i].target] =
				&f->rows[i];
	document_matrix(out, 1 + f->gpu_n, 1);
	document_unit(out, m->unit);
	document_row(out);
	document_cell(out, STYLE_DIM, "%s", "");
	for (size_t j = 0; j < f->gpu_n; j++)
		document_cell(out, STYLE_DIM, "GPU%zu", j);
	for (size_t i = 0; i < f->gpu_n; i++) {
		document_row(out);
		document_cell(out, STYLE_PLAIN, "GPU%zu", i);
		for (size_t j = 0; j < f->gpu_n; j++) {
			if (cells[i * f->gpu_n + j])
				add_value(out, cells[i * f->gpu_n + j]);
			else
				document_cell(out, STYLE_DIM, i == j ? "X" : "-");
			document_cell_anchor(out, "%s-gpu%zu-gpu%zu", m->name, i, j);
		}
	}
}

/* ---- charts ---- */

static double share_of(const struct figure *row)
{
	if (row->expected <= 0)
		return 1e9;
	return row->higher_is_better ? row->median / row->expected : row->expected / row->median;
}

static int compare_share(const void *a, const void *b)
{
	const struct figure *p = *(const struct figure *const *)a,
			    *q = *(const struct figure *const *)b;
	double x = share_of(p), y = share_of(q);

	return x != y ? (x < y ? -1 : 1) : (p > q) - (p < q);
}

static void add_point(struct document *out, const struct figure *row)
{
	AUTO_STRBUF struct strbuf label = {0};
	bool interval = figure_has_interval(row), range = !interval && row->low < row->high;
	const struct chart_point p = {.value = row->median,
				      .other = row->expected,
				      .low = interval ? row->low : NAN,
				      .high = interval ? row->high : NAN,
				      .least = range ? row->low : NAN,
				      .most = range ? row->high : NAN,
				      .style = figure_style(row)};

	put_subject(&label, row);
	document_point(out, &p, "%s", strbuf_str(&label));
}

/* The worst against what is expected; nothing where nothing is. */
static void add_expected_chart(struct document *out, const struct figures *f,
			       const struct metric *m, uint64_t bytes)
{
	const struct figure **rows AUTO_FREE = xcalloc(f->row_n + 1, sizeof(*rows));
	size_t n = 0;

	for (size_t i = 0; i < f->row_n; i++)
		if (f->rows[i].metric == m && f->rows[i].bytes == bytes && f->rows[i].expected > 0)
			rows[n++] = &f->rows[i];
	if (!n)
		return;
	qsort(rows, n, sizeof(*rows), compare_share);
	document_chart(out, CHART_EXPECTED, m->unit, "%s, measured and expected%s", m->title,
		       n > MAX_BARS ? "; the furthest below first" : "");
	for (size_t i = 0; i < n && i < MAX_BARS; i++)
		add_point(out, rows[i]);
}

/* Figures of a metric over sizes, or of few devices. */
static void add_list_chart(struct document *out, const struct figures *f, const struct metric *m)
{
	size_t n = 0;

	for (size_t i = 0; i < f->row_n; i++)
		n += f->rows[i].metric == m && !is_yes_or_no(&f->rows[i]);
	if (n < 2)
		return;
	document_chart(out, m->higher_is_better ? CHART_EXPECTED : CHART_SPREAD, m->unit, "%s",
		       m->title);
	for (size_t i = 0, k = 0; i < f->row_n && k < 2ul * MAX_BARS; i++)
		if (f->rows[i].metric == m) {
			add_point(out, &f->rows[i]);
			k++;
		}
}

/* ---- everything else: a list ---- */

/* mixed: others have the median's interval, which the column is named after. */
static void add_list_row(struct document *out, const struct figure *row, bool mixed)
{
	AUTO_STRBUF struct strbuf subject = {0};

	put_subject(&subject, row);
	document_row(out);
	document_cell(out, STYLE_PLAIN, "%s", strbuf_str(&subject));
	add_value(out, row);
	if (row->expected > 0)
		document_cell(out, STYLE_PLAIN, "%.4g", row->expected);
	else
		document_cell(out, STYLE_PLAIN, "%s", "");
	if (row->low < row->high)
		document_cell(out, STYLE_PLAIN, "%.4g to %.4g%s", row->low, row->high,
			      mixed && !figure_has_interval(row) ? ", least and greatest" : "");
	else
		document_cell(out, STYLE_PLAIN, "%s", "");
	document_cell(out, STYLE_PLAIN, "%s", row->kind);
}

static bool has_intervals(const struct figures *f, const struct metric *m)
{
	for (size_t i = 0; i < f->row_n; i++)
		if (f->rows[i].metric == m && figure_has_interval(&f->rows[i]))
			return true;
	return false;
}

static void add_list(struct document *out, const struct figures *f, const struct metric *m)
{
	bool intervals = has_intervals(f, m);
	const char *const heads[] = {"", figures_are_predicted(f) ? "predicted" : "measured",
				     "expected", intervals ? "95 % interval" : "least to greatest",
				     "fault"};

	document_table(out, 0, sizeof(heads) / sizeof(heads[0]), 2);
	document_titles(out, heads);
	for (size_t i = 0; i < f->row_n; i++)
		if (f->rows[i].metric == m)
			add_list_row(out, &f->rows[i], intervals);
}

/* ---- the verdict ---- */

#define FAILURES_NAMED 3

static bool is_check(const struct figure *row)
{
	return row->metric && row->metric->must_hold;
}

static bool is_tested_rate(const struct figure *row)
{
	return strcmp(row->what, METRIC_PAIR_RATE) == 0;
}

static void put_failure(struct strbuf *b, const struct figure *row)
{
	AUTO_STRBUF struct strbuf subject = {0};

	put_subject(&subject, row);
	if (is_check(row))
		strbuf_printf(b, "%s%s", row->metric->title, subject.len ? ", " : "");
	strbuf_puts(b, strbuf_str(&subject));
	if (*row->kind)
		strbuf_printf(b, " (%s)", row->kind);
}

/*
 * "Failed: 1 of 4 checks: data right at the owner, GPU0 -> GPU1, exchange (lost)". Returns how many
 * failed.
 */
static size_t add_failures(struct document *out, const struct figures *f, const char *label,
			   const char *things, bool (*is_asked)(const struct figure *row))
{
	AUTO_STRBUF struct strbuf names = {0};
	size_t failed = 0, asked = 0;

	for (size_t i = 0; i < f->row_n; i++) {
		const struct figure *row = &f->rows[i];

		asked += is_asked(row);
		if (!is_asked(row) || row->low >= 1 || failed++ >= FAILURES_NAMED)
			continue;
		strbuf_puts(&names, failed > 1 ? "; " : "");
		put_failure(&names, row);
	}
	if (failed > FAILURES_NAMED)
		strbuf_printf(&names, "; and %zu more", failed - FAILURES_NAMED);
	if (failed)
		document_item(out, STYLE_BAD, 0, label, "%zu of %zu %s: %s", failed, asked, things,
			      strbuf_str(&names));
	return failed;
}

static void add_verdict(struct document *out, const struct figures *f)
{
	size_t checks = 0;
	size_t failed = add_failures(out, f, "Failed:", "checks", is_check) +
			add_failures(out, f, "Slow:", "tested copies", is_tested_rate);

	for (size_t i = 0; i < f->row_n; i++)
		checks += is_check(&f->rows[i]);
	if (checks && !failed)
		document_item(out, STYLE_GOOD, 0, "Passed:", "%zu %s", checks,
			      text_plural(checks, "check", "checks"));
}

/* ---- the whole ---- */

static bool has_metric(const struct figures *f, const struct metric *m)
{
	for (size_t i = 0; i < f->row_n; i++)
		if (f->rows[i].metric == m)
			return true;
	return false;
}

/* The sizes of one metric, each once, in order of appearance. */
static bool is_first_of_size(const struct figures *f, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (f->rows[i].metric == f->rows[at].metric &&
		    f->rows[i].bytes == f->rows[at].bytes)
			return false;
	return true;
}

static void add_metric(struct document *out, const struct figures *f, const struct metric *m)
{
	bool any_matrix = false;
	char size[BYTES_TEXT_SIZE];

	for (size_t i = 0; i < f->row_n; i++) {
		const struct figure *row = &f->rows[i];

		if (row->metric != m || !is_first_of_size(f, i) || f->gpu_n < 2 ||
		    count_of(f, m, row->bytes) < 2)
			continue;
		any_matrix = true;
		document_heading(out, "%s (%s), %s%s%s", m->title, m->name,
				 is_yes_or_no(row) ? "yes or no" : m->unit,
				 row->bytes ? ", copies of " : "",
				 row->bytes ? bytes_text(row->bytes, size) : "");
		add_matrix_of(out, f, m, row->bytes);
		add_expected_chart(out, f, m, row->bytes);
	}
	if (any_matrix)
		return;
	document_heading(out, "%s (%s), %s", m->title, m->name, m->unit);
	add_list_chart(out, f, m);
	document_begin(out, GROUP_FOLD, STYLE_PLAIN, NULL, "All figures");
	add_list(out, f, m);
	document_end(out);
}

void report_figures(struct document *out, const struct figures *f)
{
	if (*f->when || *f->program)
		document_paragraph(out, STYLE_DIM, 0, "%s%s%s%s%s%s%s", f->tool,
				   *f->program ? ", onehop " : "", f->program, *f->when ? ", " : "",
				   f->when, *f->name ? ", " : "", f->name);
	else
		document_paragraph(out, STYLE_DIM, 0, "%s%s%s", f->tool, *f->name ? ", " : "",
				   f->name);
	add_verdict(out, f);
	for (size_t i = 0; i < metric_n; i++)
		if (has_metric(f, &metrics[i]))
			add_metric(out, f, &metrics[i]);
	for (size_t i = 0; i < f->trouble_n; i++)
		document_item(out, STYLE_WARN, 0, "ignored", "%s", f->troubles[i]);
}

void add_page_figures(struct document *out, const struct figures *f)
{
	if (!document_is_page(out) || !f)
		return;
	document_begin(out, GROUP_PAGE, STYLE_PLAIN, NULL, "%s", "");
	document_section(out, "figures", "Figures");
	report_figures(out, f);
	document_end(out);
}
