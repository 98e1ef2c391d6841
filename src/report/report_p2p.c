/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench p2p` tells people: a matrix per metric, how sure it is, what was expected. */
#include "report/report_p2p.h"

#include "base/alloc.h"
#include "base/rate.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "report/report_impl.h"
#include "result/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A figure below this share of what its path should give wants a reason. */
#define SHORT_OF 0.85
/* Pairs named for one reason. */
#define MAX_NAMED 4
/* Bars of one picture. */
#define MAX_BARS 64

/* The cells of one metric and size. */
struct block {
	const struct p2p_report *r;
	const struct p2p_plan *plan;
	const struct metric *metric;
	const struct figure_index *figures; /* of the whole result */
};

static bool is_in(const struct block *b, const struct p2p_cell *c)
{
	return c->metric == b->metric && c->bytes == b->plan->bytes;
}

#define FOR_EACH_CELL(c, b)                                                                        \
	for (const struct p2p_cell *c = (b)->r->result->cells;                                     \
	     c < (b)->r->result->cells + (b)->r->result->cell_n; c++)                              \
		if (is_in((b), c))

static const struct p2p_cell *cell_at(const struct block *b, int initiator, int target)
{
	bool either = b->metric->both_ways;

	FOR_EACH_CELL(c, b)
	{
		if ((c->initiator == initiator && c->target == target) ||
		    (either && c->initiator == target && c->target == initiator))
			return c;
	}
	return NULL;
}

/* ---- names ---- */

/* As the data goes, or who loads from whom. */
static void add_pair(struct strbuf *b, const struct p2p_report *r, const struct p2p_cell *c)
{
	bool from_host = c->metric->shape == SHAPE_HOST && c->metric->read;
	const char *initiator = r->names[c->initiator],
		   *target = c->target < 0 ? "host" : r->names[c->target];
	const char *from = from_host ? target : initiator, *to = from_host ? initiator : target;

	strbuf_printf(b, "%.*s", short_length(from), from);
	if (c->target != c->initiator)
		strbuf_printf(b, "%s%.*s", c->metric->both_ways ? " <-> " : " -> ",
			      short_length(to), to);
}

/* ---- what falls short ---- */

/* Kernels never go through the host: they reach the memory or fault. */
static bool gains_nothing(const struct block *b, const struct p2p_cell *c)
{
	bool pair = b->metric->shape == SHAPE_PAIR;
	struct figure on;

	if (!pair || b->metric->staged || b->metric->by_kernel || c->initiator == c->target ||
	    c->bytes < RATE_MIN_BYTES || b->r->simulated)
		return false;
	on = p2p_figure(b->r->result, b->r->paths, c);
	return p2p_gain_verdict(p2p_gain_of(b->figures, &on)) == OBSERVED_GAINS_NOTHING;
}

static void explain_link(const struct p2p_report *r, int device, struct strbuf *out)
{
	const struct link_seen *l = r->links && device >= 0 ? &r->links[device] : NULL;

	if (!out->len && l && l->speed_mtps && l->speed_mtps < l->speed_max_mtps)
		strbuf_printf(out, "link of %.*s at %.1f of %.1f GT/s while copying",
			      short_length(r->names[device]), r->names[device], l->speed_mtps / 1e3,
			      l->speed_max_mtps / 1e3);
}

/* What limits the rate that is expected of the path; "": nothing unusual. */
static const char *path_limit(const struct block *b, const struct p2p_cell *c)
{
	unsigned i = (unsigned)c->initiator;

	return c->target < 0 ? b->r->paths->hosts[i].reason
			     : paths_pair(b->r->paths, i, (unsigned)c->target)->reason;
}

/* The expected rate allows for the path's limits, so they explain nothing. */
static void say_unexplained(const char *limit, struct strbuf *out)
{
	if (*limit)
		strbuf_printf(out, "less than what the path allows (%s); no reason found", limit);
	else
		strbuf_puts(out, "no reason found");
}

/* True when the figure wants a reason; the first that is known. */
static bool falls_short(const struct block *b, const struct p2p_cell *c, struct strbuf *out)
{
	double expected = p2p_expected_gbps(b->r->result, b->r->paths, c);
	bool nothing = gains_nothing(b, c);

	if (!nothing && !(expected > 0 && c->value.median < SHORT_OF * expected))
		return false;
	if (nothing)
		strbuf_puts(out, "no faster than with P2P off");
	explain_link(b->r, c->initiator, out);
	explain_link(b->r, c->target, out);
	if (!out->len && b->r->simulated)
		strbuf_puts(out, "limited by host memory bandwidth");
	if (!out->len && b->metric->shape == SHAPE_TRAFFIC)
		strbuf_puts(out, "other pairs at the same time");
	if (!out->len)
		say_unexplained(path_limit(b, c), out);
	return true;
}

/* ---- one matrix ---- */

static int decimals(const struct block *b)
{
	double most = 0;

	FOR_EACH_CELL(c, b)
	{
		if (c->value.n && c->value.median > most)
			most = c->value.median;
	}
	return most >= 1000 ? 0 : most >= 100 ? 1 : most >= 10 ? 2 : 3;
}

static void add_value(struct document *out, const struct block *b, const struct p2p_cell *c,
		      int digits)
{
	AUTO_STRBUF struct strbuf why = {0};

	if (!c || !c->value.n)
		document_cell(out, STYLE_DIM, "%7s", "-");
	else
		document_value(out,
			       c->data == P2P_WRONG      ? STYLE_BAD
			       : falls_short(b, c, &why) ? STYLE_WARN
							 : STYLE_PLAIN,
			       c->value.median, p2p_expected_gbps(b->r->result, b->r->paths, c),
			       "%7.*f", digits, c->value.median);
}

static void add_columns(struct document *out, const struct p2p_report *r)
{
	document_matrix(out, 1 + r->n, 1);
	document_row(out);
	document_cell(out, STYLE_DIM, "%s", "");
	for (size_t j = 0; j < r->n; j++)
		document_cell(out, STYLE_DIM, "%7.*s", short_length(r->names[j]), r->names[j]);
}

static bool is_one_row(const struct metric *m)
{
	return m->shape == SHAPE_HOST || m->shape == SHAPE_LOCAL || m->shape == SHAPE_CHASE_HOST;
}

static void add_figures(struct document *out, const struct block *b)
{
	const struct p2p_report *r = b->r;
	int digits = decimals(b), n = (int)r->n;

	add_columns(out, r);
	document_unit(out, b->metric->unit);
	for (int i = 0; i < (is_one_row(b->metric) ? 1 : n); i++) {
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%.*s",
			      is_one_row(b->metric) ? 4 : short_length(r->names[i]),
			      !is_one_row(b->metric)            ? r->names[i]
			      : b->metric->shape == SHAPE_LOCAL ? "self"
								: "host");
		for (int j = 0; j < n; j++)
			add_value(out, b,
				  b->metric->shape == SHAPE_LOCAL ? cell_at(b, j, j)
				  : is_one_row(b->metric)         ? cell_at(b, j, -1)
								  : cell_at(b, i, j),
				  digits);
	}
}

/* Where a matrix would not fit. */
static void add_summary(struct document *out, const struct block *b)
{
	const struct p2p_cell *least = NULL, *most = NULL;
	AUTO_STRBUF struct strbuf text = {0};
	struct samples all = {0};

	FOR_EACH_CELL(c, b)
	{
		if (!c->value.n || samples_add(&all, c->value.median) < 0)
			continue;
		least = !least || c->value.median < least->value.median ? c : least;
		most = !most || c->value.median > most->value.median ? c : most;
	}
	if (least) {
		strbuf_printf(&text, "%zu cells: median %.4g, least %.4g (", all.n,
			      samples_median(&all), least->value.median);
		add_pair(&text, b->r, least);
		strbuf_printf(&text, "), most %.4g (", most->value.median);
		add_pair(&text, b->r, most);
		strbuf_puts(&text, ")");
	}
	samples_done(&all);
	document_paragraph(out, STYLE_PLAIN, 0, "%s", least ? strbuf_str(&text) : "no figures");
}

/* ---- below it ---- */

static void add_certainty(struct document *out, const struct block *b)
{
	size_t cells = 0, narrow = 0, few = 0, timeouts = 0;
	AUTO_STRBUF struct strbuf text = {0};
	double worst = 0;

	FOR_EACH_CELL(c, b)
	{
		double width = relative_half_width(&c->value);

		timeouts += c->gate_timeouts;
		if (!c->value.n)
			continue;
		cells++;
		narrow += c->stop == STOP_NARROW;
		few += isnan(width);
		worst = width > worst ? width : worst;
	}
	strbuf_printf(&text, "%zu %s (at least %zu needed), %.1f s", b->plan->rounds,
		      text_plural(b->plan->rounds, "round", "rounds"), b->plan->least,
		      b->plan->seconds);
	if (worst > 1)
		strbuf_puts(&text, "; not stable: a median varies by more than 100 %");
	else if (cells > few)
		strbuf_printf(&text, "; medians certain to %.1f %%", 100 * worst);
	if (few)
		strbuf_printf(&text, "; too few samples for an interval: %zu of %zu medians", few,
			      cells);
	if (narrow < cells)
		strbuf_printf(&text, "; stopped at the time limit: %zu of %zu (raise --time)",
			      cells - narrow, cells);
	if (timeouts)
		strbuf_printf(&text, "; %zu %s discarded because the host was slower than the gate",
			      timeouts, text_plural(timeouts, "sample", "samples"));
	document_paragraph(out, STYLE_DIM, 0, "%s", strbuf_str(&text));
}

/* "107 % of the expected 370.8", "expected 12.0 to 26.0; measured 50 to 98 % of it" */
static void say_expected(struct document *out, double least, double most, double low, double high)
{
	char expected[48], share[48];
	bool one = most - least < 0.05, same = round(100 * low) == round(100 * high);

	snprintf(expected, sizeof(expected), one ? "%.1f" : "%.1f to %.1f", one ? most : least,
		 most);
	snprintf(share, sizeof(share), same ? "%.0f %%" : "%.0f to %.0f %%", 100 * low, 100 * high);
	document_paragraph(out, STYLE_DIM, 0,
			   same ? "%s of the expected %s" : "expected %2$s; measured %1$s of it",
			   share, expected);
}

static void add_expected(struct document *out, const struct block *b)
{
	double least = INFINITY, most = 0, low = INFINITY, high = 0;

	FOR_EACH_CELL(c, b)
	{
		double e = c->value.n ? p2p_expected_gbps(b->r->result, b->r->paths, c) : 0, share;

		if (e <= 0)
			continue;
		share = c->value.median / e;
		least = fmin(least, e);
		most = fmax(most, e);
		low = fmin(low, share);
		high = fmax(high, share);
	}
	if (most > 0)
		say_expected(out, least, most, low, high);
}

/* Why a cell is worth a line; false: it is not. */
typedef bool remark_fn(const struct block *b, const struct p2p_cell *c, struct strbuf *out);

static bool not_measured(const struct block *b, const struct p2p_cell *c, struct strbuf *out)
{
	(void)b;
	if (c->value.n)
		return false;
	strbuf_puts(out, *c->why ? c->why : "stopped before");
	return true;
}

static bool has_remark(remark_fn *remark, const struct block *b, const struct p2p_cell *c,
		       const char *text)
{
	AUTO_STRBUF struct strbuf why = {0};

	return (c->value.n || remark == not_measured) && remark(b, c, &why) &&
	       (!text || strcmp(strbuf_str(&why), text) == 0);
}

/* "GPU0 -> GPU1 (11.0 of 22.1), ... and 3 more" */
static void add_remark(struct document *out, const struct block *b, remark_fn *remark,
		       enum style style, const char *label, const char *why)
{
	AUTO_STRBUF struct strbuf text = {0};
	size_t n = 0;

	FOR_EACH_CELL(c, b)
	{
		double e = p2p_expected_gbps(b->r->result, b->r->paths, c);

		if (!has_remark(remark, b, c, why) || n++ >= MAX_NAMED)
			continue;
		strbuf_puts(&text, n > 1 ? ", " : "");
		add_pair(&text, b->r, c);
		if (c->value.n && e > 0)
			strbuf_printf(&text, " (%.1f of %.1f)", c->value.median, e);
	}
	if (n > MAX_NAMED)
		strbuf_printf(&text, " and %zu more", n - MAX_NAMED);
	strbuf_printf(&text, ": %s", why);
	document_styled_item(out, style, STYLE_PLAIN, 0, label, "%s", strbuf_str(&text));
}

/* Each reason once, with the pairs that it is for. */
static void add_remarks(struct document *out, const struct block *b, remark_fn *remark,
			enum style style, const char *label)
{
	FOR_EACH_CELL(c, b)
	{
		AUTO_STRBUF struct strbuf why = {0};
		bool said = false;

		if (!has_remark(remark, b, c, NULL))
			continue;
		remark(b, c, &why);
		for (const struct p2p_cell *e = b->r->result->cells; e < c && !said; e++)
			said = is_in(b, e) && has_remark(remark, b, e, strbuf_str(&why));
		if (!said)
			add_remark(out, b, remark, style, label, strbuf_str(&why));
	}
}

static const char *data_word(enum p2p_data d)
{
	return d == P2P_WRONG ? "WRONG" : d == P2P_RIGHT ? "right" : "-";
}

static void add_cells(struct document *out, const struct block *b)
{
	static const char *const heads[] = {"",     "median",  "low",   "high", "least",
					    "most", "samples", "ended", "data"};

	document_table(out, 2, 9, 2);
	document_titles(out, heads);
	FOR_EACH_CELL(c, b)
	{
		AUTO_STRBUF struct strbuf name = {0};

		if (!c->value.n)
			continue;
		add_pair(&name, b->r, c);
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%s", strbuf_str(&name));
		add_summary_cells(out, &c->value);
		document_cell(out, STYLE_PLAIN, "%s", stop_word(c->stop));
		document_cell(out, c->data == P2P_WRONG ? STYLE_BAD : STYLE_PLAIN, "%s",
			      data_word(c->data));
	}
}

/* Rates against what their paths should give, times as distributions of their samples. */
static void add_charts(struct document *out, const struct block *b)
{
	bool rate = b->metric->higher_is_better;
	size_t n = 0;

	if (!document_is_page(out))
		return;
	document_chart(out, rate ? CHART_EXPECTED : CHART_SPREAD, b->metric->unit,
		       rate ? "%s, measured and expected" : "%s, distribution of the samples",
		       b->metric->title);
	FOR_EACH_CELL(c, b)
	{
		const struct chart_point p = {
			.value = c->value.median,
			.other = p2p_expected_gbps(b->r->result, b->r->paths, c),
			.low = c->value.low,
			.high = c->value.high,
			.least = c->value.min,
			.most = c->value.max,
			.style = c->data == P2P_WRONG ? STYLE_BAD : STYLE_PLAIN,
		};
		AUTO_STRBUF struct strbuf name = {0};

		if (!c->value.n || (rate && p.other <= 0) || ++n > MAX_BARS)
			continue;
		add_pair(&name, b->r, c);
		document_point(out, &p, "%s", strbuf_str(&name));
	}
}

static void add_block(struct document *out, const struct block *b)
{
	char size[BYTES_TEXT_SIZE], of[48] = "";

	if (b->plan->bytes)
		snprintf(of, sizeof(of), ", copies of %s", bytes_text(b->plan->bytes, size));
	document_blank(out);
	document_section(out, b->metric->name, "%s", b->metric->title);
	document_heading(out, "%s (%s), %s%s", b->metric->heading, b->metric->name, b->metric->unit,
			 of);
	if (b->r->n <= MATRIX_MAX_CHECK)
		add_figures(out, b);
	else
		add_summary(out, b);
	if (b->r->n > MATRIX_MAX_CHECK && document_is_page(out)) {
		document_begin(out, GROUP_PAGE, STYLE_PLAIN, NULL, "%s", "");
		add_figures(out, b);
		document_end(out);
	}
	add_charts(out, b);
	add_certainty(out, b);
	add_expected(out, b);
	add_remarks(out, b, falls_short, STYLE_WARN, "short");
	add_remarks(out, b, not_measured, STYLE_WARN, "not measured");
	if (b->r->verbose)
		add_cells(out, b);
}

/* ---- the whole ---- */

struct p2p_report p2p_report_of(const struct p2p_session *s, bool verbose)
{
	return (struct p2p_report){
		.simulated = devices_are_simulated(&s->devices),
		.machine = s->devices.machine,
		.names = s->devices.chosen.names,
		.devices = s->set->info,
		.n = s->set->n,
		.access = s->access,
		.paths = s->devices.paths,
		.result = &s->result,
		.figures = s->figures,
		.links = s->links,
		.skips = s->devices.chosen.skips,
		.skip_n = s->devices.chosen.skip_n,
		.ended = s->ended,
		.start_s = s->start_s,
		.run_s = s->run_s,
		.verbose = verbose,
	};
}

static void add_header(struct document *out, const struct p2p_report *r)
{
	if (r->simulated)
		add_simulated(out, r->n);
	if (r->machine && (!r->simulated || r->machine->recorded)) {
		add_recorded(out, r->machine);
		add_machine_line(out, r->machine);
		add_numbering(out, r->machine);
	}
	for (size_t i = 0; !r->simulated && i < r->n; i++)
		document_paragraph(out, STYLE_PLAIN, 2, "%s %s", r->names[i], r->devices[i].name);
	add_skips(out, r->skips, r->skip_n);
}

static void add_wrong(struct document *out, const struct p2p_report *r)
{
	for (size_t i = 0; i < r->result->cell_n; i++) {
		const struct p2p_cell *c = &r->result->cells[i];
		AUTO_STRBUF struct strbuf name = {0};

		if (c->data != P2P_WRONG)
			continue;
		add_pair(&name, r, c);
		document_styled_item(out, STYLE_BAD, STYLE_PLAIN, 2, c->metric->name,
				     "%s: %" PRIu64 " of %" PRIu64 " words of 8 bytes are wrong",
				     strbuf_str(&name), c->wrong_words, c->checked_words);
	}
}

/* Of the copies between two devices, one way, at the largest size. */
struct pairs_summary {
	size_t asked, measured, below; /* ordered pairs; below what is expected of them */
	double least, most;            /* GB/s */
};

static bool is_pair_rate(const struct p2p_cell *c)
{
	const struct metric *m = c->metric;

	return m->shape == SHAPE_PAIR && metric_is_rate(m) && !m->staged && !m->both_ways &&
	       c->initiator != c->target;
}

static uint64_t largest_size(const struct p2p_report *r)
{
	uint64_t most = 0;

	for (size_t i = 0; i < r->result->cell_n; i++)
		if (is_pair_rate(&r->result->cells[i]) && r->result->cells[i].bytes > most)
			most = r->result->cells[i].bytes;
	return most;
}

enum { PAIR_ASKED = 1, PAIR_MEASURED = 2, PAIR_BELOW = 4 };

static void add_up_cell(const struct p2p_report *r, const struct figure_index *figures,
			const struct p2p_cell *c, unsigned char *flags, struct pairs_summary *ret)
{
	const struct block b = {r, NULL, c->metric, figures};
	AUTO_STRBUF struct strbuf why = {0};

	*flags |= PAIR_ASKED;
	if (!c->value.n)
		return;
	*flags |= PAIR_MEASURED;
	if (falls_short(&b, c, &why))
		*flags |= PAIR_BELOW;
	ret->least = fmin(ret->least, c->value.median);
	ret->most = fmax(ret->most, c->value.median);
}

static void add_up_pairs(const struct p2p_report *r, const struct figure_index *figures,
			 struct pairs_summary *ret)
{
	AUTO_FREE unsigned char *pairs = xcalloc(r->n * r->n + 1, 1);
	uint64_t bytes = largest_size(r);

	*ret = (struct pairs_summary){.least = INFINITY};
	for (size_t i = 0; i < r->result->cell_n; i++) {
		const struct p2p_cell *c = &r->result->cells[i];

		if (is_pair_rate(c) && c->bytes == bytes)
			add_up_cell(r, figures, c, &pairs[(size_t)c->initiator * r->n + c->target],
				    ret);
	}
	for (size_t i = 0; i < r->n * r->n; i++) {
		ret->asked += (pairs[i] & PAIR_ASKED) != 0;
		ret->measured += (pairs[i] & PAIR_MEASURED) != 0;
		ret->below += (pairs[i] & PAIR_BELOW) != 0;
	}
}

/* "12 of 12 ordered pairs measured: 1.1 to 11.7 GB/s; 3 below what is expected." */
static void add_pairs_summary(struct document *out, const struct p2p_report *r,
			      const struct figure_index *figures)
{
	AUTO_STRBUF struct strbuf text = {0};
	struct pairs_summary p;

	add_up_pairs(r, figures, &p);
	if (!p.asked)
		return;
	strbuf_printf(&text, "%zu of %zu ordered %s measured", p.measured, p.asked,
		      text_plural(p.asked, "pair", "pairs"));
	if (p.measured)
		strbuf_printf(&text, p.most > p.least ? ": %.3g to %.3g GB/s" : ": %.3g GB/s",
			      p.least, p.most);
	if (p.below)
		strbuf_printf(&text, "; %zu below what is expected", p.below);
	document_paragraph(out, p.below || p.measured < p.asked ? STYLE_WARN : STYLE_GOOD, 0, "%s.",
			   strbuf_str(&text));
}

static void add_data(struct document *out, const struct p2p_report *r)
{
	struct p2p_counts n;

	p2p_count(r->result, &n);
	if (n.wrong) {
		document_paragraph(
			out, STYLE_BAD, 0,
			"Data WRONG at the owner in %zu of %zu checked cells (onehop test shows how):",
			n.wrong, n.checked);
		add_wrong(out, r);
	} else if (n.checked) {
		document_paragraph(out, STYLE_GOOD, 0,
				   "Data checked at the owner: correct in all %zu checked cells.",
				   n.checked);
	} else if (!r->result->cell_n) {
		document_paragraph(out, STYLE_WARN, 0, "Nothing to measure%s.",
				   r->n < 2 ? ": a single device has no pairs" : "");
	} else {
		document_paragraph(out, STYLE_DIM, 0, "No data was checked.");
	}
}

/* Before the tables: what they come to. */
static void add_verdict(struct document *out, const struct p2p_report *r,
			const struct figure_index *figures)
{
	document_blank(out);
	if (r->result->stopped)
		document_paragraph(out, STYLE_WARN, 0, "Stopped: the results are incomplete.");
	if (r->ended)
		document_paragraph(out, STYLE_BAD, 0, "Ended early: %s", r->ended);
	add_data(out, r);
	add_pairs_summary(out, r, figures);
}

static bool has_pair_matrix(const struct p2p_report *r)
{
	for (size_t i = 0; i < r->result->plan_n && r->n <= MATRIX_MAX_CHECK; i++)
		if (r->result->plans[i].rounds && !is_one_row(r->result->plans[i].metric))
			return true;
	return false;
}

static void add_time(struct document *out, const struct p2p_report *r)
{
	document_blank(out);
	document_paragraph(out, STYLE_DIM, 0, "%.1f s, after %.1f s to start %s.", r->run_s,
			   r->start_s, r->simulated ? "the simulated devices" : "the driver");
}

void report_p2p(struct document *out, const struct p2p_report *r)
{
	struct figure_index *figures = figure_index_new(r->figures->arena, r->figures);

	if (r->machine && !r->simulated)
		add_machine_head(out, r->machine, "GPU bandwidth and latency");
	else
		document_title(out, "Bandwidth and latency of %zu simulated devices", r->n);
	add_header(out, r);
	add_verdict(out, r, figures);
	if (has_pair_matrix(r))
		document_paragraph(out, STYLE_DIM, 0,
				   "Matrices of pairs: the row is the initiator, which copies or "
				   "loads; the column owns the memory.");
	for (size_t i = 0; i < r->result->plan_n; i++) {
		const struct p2p_plan *plan = &r->result->plans[i];
		const struct block b = {r, plan, plan->metric, figures};

		if (plan->rounds)
			add_block(out, &b);
	}
	add_time(out, r);
}
