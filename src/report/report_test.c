/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report_test.h"

#include "report/report_impl.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "bench/pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INDENT 2
/* Failed pairs that the verdict names. */
#define FAILED_NAMED 4

/* ---- findings of check about a pair ---- */

static bool lies_above(const struct pci_function *f, const struct pci_function *device)
{
	for (; device; device = device->parent)
		if (device == f)
			return true;
	return false;
}

/* The finding is about all pairs, or about a device on the path of this one. */
static bool concerns(const struct finding *f, const struct topology *t, size_t a, size_t b)
{
	const struct machine *m = t->machine;

	if (f->severity == SEVERITY_INFO || f->rule->blocks == BLOCKS_NOTHING)
		return false;
	if (f->pci)
		return lies_above(f->pci, m->gpus[a].pci) || lies_above(f->pci, m->gpus[b].pci);
	return f->pairs == t->gpu_n * (t->gpu_n - 1) || f->rule->blocks == BLOCKS_ALL;
}

static bool is_listed(const struct rule *const *rules, size_t n, const struct rule *rule)
{
	for (size_t i = 0; i < n; i++)
		if (rules[i] == rule)
			return true;
	return false;
}

const struct rule **report_test_explanations(const struct test_report *r, size_t initiator,
					     size_t target, size_t *ret_n)
{
	const struct diagnosis *d = r->diagnosis;
	const struct rule **rules;
	size_t n = 0;

	*ret_n = 0;
	if (!d || !r->gpus)
		return NULL;
	rules = xcalloc(d->finding_n + 1, sizeof(*rules));
	for (size_t i = 0; i < d->finding_n; i++)
		if (concerns(&d->findings[i], d->topology, (size_t)r->gpus[initiator],
			     (size_t)r->gpus[target]) &&
		    !is_listed(rules, n, d->findings[i].rule))
			rules[n++] = d->findings[i].rule;
	*ret_n = n;
	return rules;
}

/* ---- pieces ---- */

static void add_head(struct document *out, const struct test_report *r)
{
	size_t n = r->result ? r->result->n : 0;

	if (r->inject)
		document_paragraph(
			out, STYLE_WARN, 0,
			"INJECTED FAULT for demonstration: %s. The results below say nothing about "
			"real hardware.",
			r->inject);
	if (strcmp(r->device, "host") == 0)
		add_simulated(out, n);
	else if (r->diagnosis)
		add_machine_line(out, r->diagnosis->topology->machine);
	if (r->diagnosis)
		add_numbering(out, r->diagnosis->topology->machine);
	add_skips(out, r->skips, r->skip_n);
}

static void add_explanations(struct document *out, const struct test_report *r, size_t a, size_t b)
{
	struct strbuf list AUTO_STRBUF = {0};
	size_t n;
	const struct rule **rules AUTO_FREE = report_test_explanations(r, a, b, &n);

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&list, "%s%s", i ? ", " : "", rules[i]->id);
	if (n)
		document_item(out, STYLE_STRONG, INDENT, "check:", "%s", strbuf_str(&list));
	else if (r->diagnosis)
		document_item(out, STYLE_STRONG, INDENT, "check:", "no finding explains it");
}

static void add_log(struct document *out, const struct test_report *r, int a, int b)
{
	for (size_t i = 0; i < r->log_n; i++)
		if (r->log[i].initiator == a && r->log[i].target == b)
			document_item(out, STYLE_STRONG, INDENT, "kernel log:", "%s",
				      r->log[i].text);
}

static void add_ways(struct document *out, const struct pair_result *p)
{
	for (int w = 0; w < WAY_N; w++) {
		const struct way_result *x = &p->ways[w];

		if (!x->checks)
			continue;
		document_item(out, x->kind == WRONG_NOTHING ? STYLE_GOOD : STYLE_BAD, INDENT,
			      way_text((enum way)w), "%s, %u %s, %" PRIu64 " bytes",
			      x->kind == WRONG_NOTHING ? "ok" : wrong_word(x->kind), x->checks,
			      text_plural(x->checks, "check", "checks"), x->bytes);
	}
}

static void add_patterns(struct document *out, const struct pair_result *p)
{
	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++) {
		const struct pattern_result *x = &p->patterns[k];

		if (x->done || x->kind != WRONG_NOTHING)
			document_item(out, x->kind == WRONG_NOTHING ? STYLE_GOOD : STYLE_BAD,
				      INDENT, pattern_rows[k].name, "%s, %" PRIu64 " %s, %.1f ms%s",
				      pattern_result_word(x), x->rounds,
				      text_plural(x->rounds, "round", "rounds"), x->ms,
				      x->by_ipc ? ", memory by IPC" : "");
	}
}

static const enum style state_styles[PAIR_STATE_N] = {
	[PAIR_NOT_RUN] = STYLE_DIM,     [PAIR_RIGHT] = STYLE_GOOD,      [PAIR_WRONG] = STYLE_BAD,
	[PAIR_NOT_TESTED] = STYLE_WARN, [PAIR_INCOMPLETE] = STYLE_WARN,
};

static bool has_log(const struct test_report *r, size_t a, size_t b)
{
	for (size_t i = 0; i < r->log_n; i++)
		if (r->log[i].initiator == (int)a && r->log[i].target == (int)b)
			return true;
	return false;
}

/* One line for each pair that failed or caused lines in the kernel log. */
static void add_pair(struct document *out, const struct test_report *r, size_t a, size_t b)
{
	const struct pair_result *p = test_pair(r->result, a, b);
	bool bad = p->state == PAIR_WRONG || p->state == PAIR_INCOMPLETE ||
		   (p->state == PAIR_NOT_TESTED && *p->sentence);
	const char *label =
		p->state == PAIR_WRONG ? wrong_word(p->kind) : pair_state_word(p->state);

	if (!bad && !r->verbose && !has_log(r, a, b))
		return;
	document_item(out, state_styles[p->state], 0, label, "%s -> %s%s%s", r->names[a],
		      r->names[b], *p->sentence ? ": " : "", p->sentence);
	if (p->state == PAIR_WRONG)
		add_explanations(out, r, a, b);
	add_log(out, r, (int)a, (int)b);
	if (r->verbose) {
		add_ways(out, p);
		add_patterns(out, p);
	}
}

static void add_pairs(struct document *out, const struct test_report *r)
{
	size_t n = r->result->n;

	document_blank(out);
	for (size_t i = 0; i < n; i++) {
		const struct test_device *d = &r->result->devices[i];

		if (*d->sentence)
			document_item(out, STYLE_BAD, 0, "failed", "%s: %s", r->names[i],
				      d->sentence);
		if (d->local.state == PAIR_WRONG)
			document_item(out, STYLE_BAD, 0, wrong_word(d->local.kind),
				      "%s, its own memory: %s", r->names[i], d->local.sentence);
		else if (d->local.state == PAIR_NOT_TESTED && !*d->sentence)
			document_item(out, STYLE_WARN, 0, pair_state_word(d->local.state),
				      "%s, its own memory: %s", r->names[i], d->local.sentence);
	}
	for (size_t i = 0; i < n * n; i++)
		if (i / n != i % n)
			add_pair(out, r, i / n, i % n);
}

/* ---- matrices ---- */

typedef void cell_fn(struct document *out, const struct pair_result *p);

static void result_cell(struct document *out, const struct pair_result *p)
{
	document_cell(out, state_styles[p->state], "%s",
		      p->state == PAIR_WRONG     ? wrong_word(p->kind)
		      : p->state == PAIR_NOT_RUN ? "-"
						 : pair_state_word(p->state));
}

static void round_trip_cell(struct document *out, const struct pair_result *p)
{
	if (p->round_trip.n)
		document_value(out, STYLE_PLAIN, p->round_trip.median_ns / 1e3, 0, "%.2f",
			       p->round_trip.median_ns / 1e3);
	else
		document_cell(out, STYLE_DIM, "-");
}

static void worst_cell(struct document *out, const struct pair_result *p)
{
	if (p->round_trip.n)
		document_value(out, STYLE_PLAIN, p->round_trip.p99_ns / 1e3, 0, "%.1f",
			       p->round_trip.p99_ns / 1e3);
	else
		document_cell(out, STYLE_DIM, "-");
}

static void add_matrix_of(struct document *out, const struct test_report *r, const char *title,
			  cell_fn *cell)
{
	size_t n = r->result->n;

	document_blank(out);
	document_paragraph(out, STYLE_STRONG, 0, "%s", title);
	document_matrix(out, 1 + n, 2);
	document_unit(out, "us");
	document_row(out);
	document_cell(out, STYLE_DIM, "%s", "");
	for (size_t j = 0; j < n; j++)
		document_cell(out, STYLE_DIM, "%.*s", short_length(r->names[j]), r->names[j]);
	for (size_t i = 0; i < n; i++) {
		document_row(out);
		document_cell(out, STYLE_PLAIN, "%.*s", short_length(r->names[i]), r->names[i]);
		for (size_t j = 0; j < n; j++) {
			if (i == j)
				document_cell(out, STYLE_DIM, "X");
			else
				cell(out, test_pair(r->result, i, j));
		}
	}
}

static bool any_round_trip(const struct test_result *r)
{
	for (size_t i = 0; i < r->n * r->n; i++)
		if (r->pairs[i].round_trip.n)
			return true;
	return false;
}

static void add_matrices(struct document *out, const struct test_report *r)
{
	if (r->result->n < 2 || r->result->n > MATRIX_MAX_TOPO)
		return;
	add_matrix_of(out, r,
		      "Data, checked by the owner of the memory (row: initiator, column: memory)",
		      result_cell);
	if (!any_round_trip(r->result))
		return;
	add_matrix_of(out, r, "Round trip of a flag between running kernels, median, us",
		      round_trip_cell);
	if (r->verbose)
		add_matrix_of(out, r,
			      "Round trip of a flag between running kernels, 99th percentile, us",
			      worst_cell);
}

/* ---- patterns ---- */

static size_t count_right(const struct test_result *r, int pattern)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n * r->n; i++)
		n += r->pairs[i].patterns[pattern].done &&
		     r->pairs[i].patterns[pattern].kind == WRONG_NOTHING;
	return n;
}

/* The number of correct pairs of each pattern; nothing if none was run. */
static void add_pattern_counts(struct document *out, const struct test_report *r)
{
	struct strbuf list AUTO_STRBUF = {0};
	char label[64];
	size_t listed = 0, pairs = r->result->n * (r->result->n - 1);

	snprintf(label, sizeof(label), "Correct pairs by access pattern, of %zu:", pairs);
	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++) {
		size_t n = count_right(r->result, k);

		if (n && pattern_rows[k].when != PATTERN_INFORMATION)
			strbuf_printf(&list, "%s%s %zu", listed++ ? ", " : "", pattern_rows[k].name,
				      n);
	}
	if (listed)
		document_item(out, STYLE_PLAIN, 0, label, "%s", strbuf_str(&list));
}

/* ---- atomics ---- */

int report_test_offers_atomics(const struct test_report *r, size_t initiator, size_t target)
{
	const struct gpu_pair *p;

	if (!r->diagnosis || !r->gpus)
		return -1;
	p = machine_pair(r->diagnosis->topology->machine, (size_t)r->gpus[initiator],
			 (size_t)r->gpus[target]);
	return p && fact_known(p->rm.atomics) ? p->rm.atomics.value != 0 : -1;
}

/* ---- informative tests ---- */

static void inform_cell(struct document *out, const struct pattern_result *x)
{
	if (x->lost)
		document_cell(out, STYLE_WARN, "%" PRIu64 " lost", x->lost);
	else if (x->kind != WRONG_NOTHING)
		document_cell(out, STYLE_WARN, "%s", pattern_result_word(x));
	else
		document_cell(out, x->done ? STYLE_PLAIN : STYLE_DIM, "%s", pattern_result_word(x));
}

static void host_memory_cell(struct document *out, const struct pair_result *p)
{
	inform_cell(out, &p->patterns[PATTERN_HOST_MEMORY]);
}

static void compressible_cell(struct document *out, const struct pair_result *p)
{
	inform_cell(out, &p->patterns[PATTERN_COMPRESSIBLE]);
}

static void atomics_cell(struct document *out, const struct pair_result *p)
{
	inform_cell(out, &p->patterns[PATTERN_ATOMICS]);
}

static void add_offered_atomics(struct document *out, const struct test_report *r)
{
	size_t n = r->result->n, offered = 0;

	for (size_t i = 0; i < n * n; i++)
		offered += i / n != i % n && report_test_offers_atomics(r, i / n, i % n) > 0;
	if (r->diagnosis)
		document_paragraph(
			out, STYLE_PLAIN, 0,
			"The driver offers atomics on %zu of %zu pairs. On the others lost "
			"additions are not a failure.",
			offered, n * (n - 1));
}

static bool any_not_ok(const struct test_result *r, enum pattern k)
{
	for (size_t i = 0; i < r->n * r->n; i++)
		if (i / r->n != i % r->n && !r->pairs[i].patterns[k].done)
			return true;
	return false;
}

/* One table for each test that was requested. */
static void add_informs(struct document *out, const struct test_report *r)
{
	static const struct {
		enum pattern pattern;
		const char *title;
		cell_fn *cell;
	} tables[] = {
		{PATTERN_HOST_MEMORY,
		 "Host memory created for the column's device, used by both (informative)",
		 host_memory_cell},
		{PATTERN_COMPRESSIBLE,
		 "Compressible memory of the column's device, used by both (informative)",
		 compressible_cell},
		{PATTERN_ATOMICS, "Atomic additions to the column's memory (informative)",
		 atomics_cell},
	};

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		if (!(r->result->informs & PATTERN_BIT(tables[i].pattern)))
			continue;
		add_matrix_of(out, r, tables[i].title, tables[i].cell);
		if (tables[i].pattern == PATTERN_ATOMICS)
			add_offered_atomics(out, r);
		if (any_not_ok(r->result, tables[i].pattern) && !r->verbose)
			document_paragraph(out, STYLE_DIM, 0, "To see why a test did not run: -v");
	}
}

/* ---- danger ---- */

/* Data came from, or went to, other memory. The kinds before are errors, those after are delays. */
static bool is_astray(enum wrong_kind k)
{
	return k >= WRONG_MIRROR && k <= WRONG_GARBAGE;
}

char *report_test_danger(const struct test_report *r)
{
	struct strbuf pairs AUTO_STRBUF = {0};
	size_t n = r->result ? r->result->n : 0, found = 0;

	for (size_t i = 0; i < n * n; i++) {
		const struct pattern_result *x =
			&r->result->pairs[i].patterns[PATTERN_COMPRESSIBLE];

		if (i / n != i % n && is_astray(x->kind))
			strbuf_printf(&pairs, "%s%s -> %s", found++ ? ", " : "", r->names[i / n],
				      r->names[i % n]);
	}
	if (!found)
		return NULL;
	return xprintf(
		"DANGER: compressible memory of another GPU is wrong on %zu of %zu ordered pairs. "
		"A write to it may land in unrelated host memory. Until this is fixed, run nothing "
		"that allocates compressible memory (cuMemCreate with "
		"CU_MEM_ALLOCATION_COMP_GENERIC) and shares it between these GPUs. If onehop "
		"unlock or another edit of the driver made P2P possible, `onehop unlock --apply` "
		"installs the edit that keeps peers away from such memory. If the driver is "
		"NVIDIA's own, turn P2P off and report the pairs to NVIDIA. Pairs: %s.",
		found, n * (n - 1), strbuf_str(&pairs));
}

/* ---- all-reduce ---- */

static const char *const arm_labels[ARM_N] = {"Sum over all devices, P2P:        ",
					      "Sum over all devices, host memory:"};

static void add_arm(struct document *out, const struct test_report *r, enum arm arm)
{
	const struct arm_result *a = &r->result->arms[arm];
	/* A count of wrong sums says what is wrong by itself. */
	bool kind = a->state == PAIR_WRONG && !a->wrong;

	if (a->state == PAIR_RIGHT)
		document_styled_item(out, STYLE_PLAIN, STYLE_GOOD, 0, arm_labels[arm],
				     "correct, %" PRIu64 " values", a->values);
	else if (a->state != PAIR_NOT_RUN || *a->sentence)
		document_styled_item(out, STYLE_PLAIN, state_styles[a->state], 0, arm_labels[arm],
				     "%s%s%s", kind ? wrong_word(a->kind) : "", kind ? ": " : "",
				     a->sentence);
}

static void add_all_reduce(struct document *out, const struct test_report *r)
{
	const struct arm_result *p2p = &r->result->arms[ARM_P2P];

	document_blank(out);
	add_pattern_counts(out, r);
	for (int a = 0; a < ARM_N; a++)
		add_arm(out, r, (enum arm)a);
	add_log(out, r, -1, -1);
	if (p2p->state == PAIR_WRONG && r->result->arms[ARM_STAGED].state == PAIR_RIGHT)
		document_paragraph(
			out, STYLE_BAD, 0,
			"Wrong over P2P, correct through host memory: the fault is on the path "
			"between the devices, not in the devices.");
}

/* ---- the verdict ---- */

/* A single device is correct only if its memory was tested. */
static const char *lone_text(const struct test_device *d)
{
	if (*d->sentence)
		return "The only device could not be opened: nothing was tested.";
	return d->local.state == PAIR_RIGHT
		       ? "Only one device: no pair to test. Its own memory is correct."
		       : "Only one device: no pair to test. Its own memory was not tested.";
}

static const char *nothing_text(const struct test_report *r)
{
	return r->skip_n
		       ? "Nothing was tested: every GPU is skipped."
		       : "Nothing was tested: this machine has no NVIDIA GPU. To try onehop without "
			 "one, add --device host:4.";
}

/* " (host0 -> host1, host0 -> host2 and 3 more)" */
static void name_failed(const struct test_report *r, struct strbuf *b)
{
	size_t n = r->result->n, found = 0;

	for (size_t i = 0; i < n * n; i++) {
		const char *from = r->names[i / n], *to = r->names[i % n];

		if (i / n == i % n || r->result->pairs[i].state != PAIR_WRONG)
			continue;
		if (found++ < FAILED_NAMED)
			strbuf_printf(b, "%s%.*s -> %.*s", found > 1 ? ", " : " (",
				      short_length(from), from, short_length(to), to);
	}
	if (found > FAILED_NAMED)
		strbuf_printf(b, " and %zu more", found - FAILED_NAMED);
	strbuf_puts(b, found ? ")" : "");
}

static const char *sum_fault(const struct arm_result *p2p)
{
	if (p2p->state != PAIR_WRONG)
		return "through host memory";
	return p2p->wrong ? p2p->sentence : wrong_word(p2p->kind);
}

static void say_counts(const struct test_report *r, const struct test_counts *c, char *buf,
		       size_t size)
{
	struct strbuf b AUTO_STRBUF = {0};

	strbuf_printf(&b, "%zu of %zu ordered pairs %s", c->wrong ? c->wrong : c->right, c->pairs,
		      !c->wrong ? "correct" : text_plural(c->wrong, "fails", "fail"));
	if (c->wrong)
		name_failed(r, &b);
	if (c->incomplete)
		strbuf_printf(&b, ", %zu incomplete", c->incomplete);
	if (c->not_tested)
		strbuf_printf(&b, ", %zu not tested", c->not_tested);
	if (c->locals_not_tested)
		strbuf_printf(&b, ", own memory of %zu %s not tested", c->locals_not_tested,
			      text_plural(c->locals_not_tested, "device", "devices"));
	if (c->arms_wrong && !c->wrong)
		strbuf_puts(&b, ", and the sum over all devices fails");
	else if (c->arms_incomplete)
		strbuf_puts(&b, ", and the sum over all devices is incomplete");
	snprintf(buf, size, "%s.", strbuf_str(&b));
}

const char *report_test_verdict(const struct test_report *r, char *buf, size_t size)
{
	const struct arm_result *p2p = r->result ? &r->result->arms[ARM_P2P] : NULL;
	struct test_counts c;
	char all[TEXT_ALL_SIZE];

	test_count(r->result, &c);
	if (!r->result)
		snprintf(buf, size, "%s", nothing_text(r));
	else if (c.locals_wrong)
		snprintf(buf, size, "%zu %s own memory, before any path is used.", c.locals_wrong,
			 text_plural(c.locals_wrong, "device fails on its",
				     "devices fail on their"));
	else if (!c.pairs)
		snprintf(buf, size, "%s", lone_text(&r->result->devices[0]));
	else if (c.wrong || c.incomplete || c.not_tested || c.locals_not_tested ||
		 c.arms_incomplete)
		say_counts(r, &c, buf, size);
	else if (c.arms_wrong)
		snprintf(
			buf, size,
			"Over %s ordered pairs the data is correct, but the sum over all devices fails: %s.",
			text_all(c.pairs, all), sum_fault(p2p));
	else
		snprintf(
			buf, size,
			"Correct data over %s ordered pairs: written and read by copy engine and by "
			"kernel, checked by the owner, in all access patterns%s.",
			text_all(c.pairs, all),
			p2p->state == PAIR_RIGHT ? ", and all at once" : "");
	return buf;
}

static void add_duration(struct document *out, const struct test_result *r,
			 const struct test_counts *c)
{
	size_t tested = c->pairs - c->not_tested;
	struct strbuf b AUTO_STRBUF = {0};

	if (c->pairs)
		strbuf_printf(&b, "Tested %zu of %zu pairs", tested, c->pairs);
	else
		strbuf_printf(&b, "Tested %zu of 1 device",
			      (size_t)(r->devices[0].local.state == PAIR_RIGHT ||
				       r->devices[0].local.state == PAIR_WRONG));
	if (tested && r->rounds)
		strbuf_printf(&b, " in %zu %s", r->rounds,
			      text_plural(r->rounds, "round", "rounds"));
	document_paragraph(out, STYLE_DIM, 0, "%s, %.1f s (start of driver and workers: %.1f s).",
			   strbuf_str(&b), r->test_s, r->start_s);
}

/* Before the details: what they come to. */
static void add_verdict(struct document *out, const struct test_report *r)
{
	struct test_counts c;
	char *danger AUTO_FREE = report_test_danger(r);
	char verdict[256];
	bool well;

	test_count(r->result, &c);
	well = c.pairs && c.right == c.pairs && !c.arms_wrong && !c.arms_incomplete &&
	       !c.locals_wrong && !c.locals_not_tested;
	document_blank(out);
	document_paragraph(out,
			   well                      ? STYLE_GOOD
			   : c.wrong || c.arms_wrong ? STYLE_BAD
						     : STYLE_WARN,
			   0, "%s", report_test_verdict(r, verdict, sizeof(verdict)));
	if (danger)
		document_paragraph(out, STYLE_BAD, 0, "%s", danger);
	if (r->result && r->result->stopped)
		document_paragraph(out, STYLE_WARN, 0,
				   "Stopped by a signal. To test the rest, repeat the command with "
				   "--resume.");
}

static void add_end(struct document *out, const struct test_report *r)
{
	struct test_counts c;

	test_count(r->result, &c);
	document_blank(out);
	if (r->log_unread)
		document_paragraph(out, STYLE_DIM, 0, "The kernel log was not read: %s",
				   r->log_unread);
	if (r->result)
		add_duration(out, r->result, &c);
}

struct test_report test_report_of(const struct test_session *s, bool verbose)
{
	bool simulated = devices_are_simulated(&s->devices);

	return (struct test_report){
		.device = s->identity.device,
		.inject = s->o->inject,
		.result = s->figures ? &s->result : NULL,
		.names = s->devices.chosen.names,
		.gpus = simulated ? NULL : s->devices.chosen.numbers,
		.diagnosis = s->diagnosis,
		.skips = s->devices.chosen.skips,
		.skip_n = s->devices.chosen.skip_n,
		.log = s->log.lines,
		.log_n = s->log.line_n,
		.log_unread = s->log.tail.unread,
		.note = s->note,
		.figures = s->figures,
		.verbose = verbose,
	};
}

void report_test(struct document *out, const struct test_report *r)
{
	if (r->diagnosis)
		add_machine_head(out, r->diagnosis->topology->machine, "Test of peer access");
	else
		document_title(out, "Test of peer access");
	add_head(out, r);
	add_verdict(out, r);
	if (r->result) {
		add_pairs(out, r);
		add_matrices(out, r);
		add_informs(out, r);
		add_all_reduce(out, r);
	}
	add_end(out, r);
}
