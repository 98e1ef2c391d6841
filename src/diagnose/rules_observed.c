/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what tests and benchmarks showed: `onehop test`, and files given with --observed. */
#include "base/alloc.h"
#include "base/rate.h"
#include "base/text.h"
#include "diagnose/rules.h"
#include "diagnose/run_failure.h"
#include "machine/observed.h"

#include <inttypes.h>
#include <string.h>

#define LINES_SHOWN    4
#define FAILURES_SHOWN 16

static const struct path *pair_path(struct rule_run *run, size_t i, size_t j)
{
	return topology_path(run->t, i, j);
}

static bool any_observed(struct rule_run *run, enum observed_kind kind)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == kind)
			return true;
	}
	return false;
}

/* ---- what failed ---- */

/* What is bad besides: then a failure is expected. */
static bool is_explained(const struct path *p)
{
	for (enum chain_step s = 0; s < CHAIN_OBSERVED; s++)
		if (s != CHAIN_NCCL && p->chain[s].state == CHAIN_BAD)
			return true;
	return false;
}

/* Where pairs of the set were seen, a line of a file once. */
static void evidence_failures(struct rule_run *run, struct finding *f, enum observed_kind kind,
			      const struct pair_set *pairs)
{
	const char *last = "";

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		bool one = o->initiator >= 0 && o->target >= 0;

		if (o->kind != kind || o->ok || strcmp(o->from, last) == 0 ||
		    (one && !pair_set_in(pairs, (size_t)o->initiator, (size_t)o->target)))
			continue;
		last = o->from;
		if (one)
			evidence_text(run, f, o->from,
				      run_text(run, "GPU%d->GPU%d", o->initiator, o->target));
		else
			evidence_text(run, f, NULL, run_text(run, "seen in %s", o->from));
	}
}

/* -1 stands for all. */
static void add_pairs(struct rule_run *run, const struct observed *o, bool explained,
		      struct pair_set *ret)
{
	size_t n = run->m->gpu_n;
	size_t i = o->initiator < 0 ? 0 : (size_t)o->initiator;
	size_t i_end = o->initiator < 0 ? n : i + 1;
	size_t j_first = o->target < 0 ? 0 : (size_t)o->target;
	size_t j_end = o->target < 0 ? n : j_first + 1;

	for (; i < i_end; i++)
		for (size_t j = j_first; j < j_end; j++)
			if (i != j && is_explained(pair_path(run, i, j)) == explained)
				pair_set_add(ret, i, j);
}

static void report_failures(struct rule_run *run, enum observed_kind kind, const char *what,
			    bool explained)
{
	struct pair_set failed = pair_set_new(run);
	const char *from = NULL;
	struct finding *f;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == kind && !o->ok)
			add_pairs(run, o, explained, &failed);
		if (!from && failed.n)
			from = o->from;
	}
	if (!failed.n)
		return;
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(RESULT, "tests"),
			"%s: %s%s (first seen in %s)", what, pair_set_text(run, &failed),
			explained ? "; other findings show the cause" : "", from);
	finding_names_pairs(run, f, &failed);
	if (explained) {
		f->severity = SEVERITY_INFO;
		finding_needs_nothing(f);
	}
	evidence_failures(run, f, kind, &failed);
}

static bool pair_observed(struct rule_run *run, enum observed_kind kind, size_t i, size_t j)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == kind && (o->initiator < 0 || (size_t)o->initiator == i) &&
		    (o->target < 0 || (size_t)o->target == j))
			return true;
	}
	return false;
}

/* A list that has lost a line shows no pair for it. */
static enum verdict judge_observed(struct rule_run *run, enum observed_kind kind)
{
	FOR_EACH_GPU_PAIR (i, j, run)
		if (!pair_observed(run, kind, i, j))
			return rule_unknown(run, "the result does not name the pair",
					    "GPU%zu->GPU%zu", i, j);
	return VERDICT_OK;
}

/* A matrix of a text may have lost a row. */
static enum verdict of_every_pair(struct rule_run *run)
{
	return run->m->text_part_n ? judge_observed(run, OBSERVED_BANDWIDTH) : VERDICT_OK;
}

/* number: enum observed_kind; text: what was seen. */
static enum verdict probe_failures(struct rule_run *run)
{
	enum observed_kind kind = (enum observed_kind)run->rule->number;

	if (!any_observed(run, kind))
		return VERDICT_NA;
	for (int explained = 0; explained < 2; explained++)
		report_failures(run, kind, run->rule->text, explained);
	return judge_observed(run, kind);
}

/* ---- what gained nothing ---- */

static enum chain_reason seen_of(struct rule_run *run, const struct observed *o)
{
	return pair_path(run, (size_t)o->initiator, (size_t)o->target)
		->chain[CHAIN_OBSERVED]
		.reason;
}

static bool another_gains(struct rule_run *run, const struct observed *o)
{
	FOR_EACH_IN(struct observed, x, run->m->observed, run->m->observed_n)
	{
		if (x->gain == OBSERVED_GAINS && x->initiator == o->initiator &&
		    x->target == o->target)
			return true;
	}
	return false;
}

static bool gains_nothing(struct rule_run *run, const struct observed *o, bool checked)
{
	return o->kind == OBSERVED_BANDWIDTH && o->gain == OBSERVED_GAINS_NOTHING &&
	       o->initiator >= 0 && o->target >= 0 && !another_gains(run, o) &&
	       seen_of(run, o) == (checked ? REASON_OBSERVED_WORKS : REASON_OBSERVED_NO_GAIN);
}

/*
 * Which of what was observed a finding is about; `checked`: of pairs whose data a test saw arrive.
 */
typedef bool observed_filter(struct rule_run *run, const struct observed *o, bool checked);

static struct pair_set pairs_where(struct rule_run *run, observed_filter *is, bool checked)
{
	struct pair_set pairs = pair_set_new(run);

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (is(run, o, checked))
			pair_set_add(&pairs, (size_t)o->initiator, (size_t)o->target);
	}
	return pairs;
}

/* A finding of pairs that work is only good to know; NULL: there are none. */
static struct finding *report_copies(struct rule_run *run, observed_filter *is, bool checked,
				     const char *what)
{
	struct pair_set pairs = pairs_where(run, is, checked);
	struct finding *f;

	if (!pairs.n)
		return NULL;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(RESULT, "copies"), ABOUT " %s%s: %s", what,
			checked ? ", though their data arrives" : "", pair_set_text(run, &pairs));
	finding_names_pairs(run, f, &pairs);
	if (checked)
		f->severity = SEVERITY_INFO;
	return f;
}

static void report_no_gain(struct rule_run *run, bool checked)
{
	struct finding *f = report_copies(run, gains_nothing, checked,
					  "with P2P on are no faster than with P2P off");
	size_t shown = 0;

	if (f && checked)
		finding_needs_nothing(f);
	FOR_EACH_IN(struct observed, o, run->m->observed, f ? run->m->observed_n : 0)
	{
		if (gains_nothing(run, o, checked) && shown++ < LINES_SHOWN)
			evidence_observed(run, f, o, "%.3g GB/s, with P2P off %.3g", o->value,
					  o->off);
	}
}

static enum verdict probe_no_gain(struct rule_run *run)
{
	report_no_gain(run, false);
	report_no_gain(run, true);
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->gain != OBSERVED_GAIN_UNKNOWN)
			return of_every_pair(run);
	}
	return VERDICT_NA;
}

/* ---- what was slow ---- */

/* Of a pair that was measured and may use its path. */
static bool tells_rate(struct rule_run *run, const struct observed *o)
{
	return o->kind == OBSERVED_BANDWIDTH && o->initiator >= 0 && o->target >= 0 &&
	       !path_is_refused(pair_path(run, (size_t)o->initiator, (size_t)o->target));
}

static double median_rate(struct rule_run *run)
{
	double *rates = arena_alloc(run->d->arena, run->m->observed_n + 1, sizeof(*rates));
	size_t n = 0;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (tells_rate(run, o))
			rates[n++] = o->value;
	}
	return rate_median(rates, n);
}

/*
 * How to group what is slow: where the path tells what to expect by its class, else PATH_CLASS_N.
 */
static bool is_slow(struct rule_run *run, const struct observed *o, double median,
		    struct rate_yardstick *ret, enum path_class *ret_class)
{
	const struct path *p;

	if (!tells_rate(run, o))
		return false;
	p = topology_data_path(run->t, o);
	*ret = rate_yardstick(p->expected_gbps, median, 0);
	*ret_class = ret->by == RATE_BY_PATH ? p->class : PATH_CLASS_N;
	return rate_is_slow(o->value, *ret);
}

struct slow {
	enum path_class class; /* PATH_CLASS_N: against the other pairs */
	struct pair_set pairs;
	double least, most, expected; /* GB/s; expected: the most of the pairs */
};

static struct slow collect_slow(struct rule_run *run, enum path_class class, double median)
{
	struct slow s = {.class = class, .pairs = pair_set_new(run)};

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		struct rate_yardstick y;
		enum path_class c;

		if (!is_slow(run, o, median, &y, &c) || c != class)
			continue;
		s.least = !s.pairs.n || o->value < s.least ? o->value : s.least;
		s.most = o->value > s.most ? o->value : s.most;
		s.expected = y.gbps > s.expected ? y.gbps : s.expected;
		pair_set_add(&s.pairs, (size_t)o->initiator, (size_t)o->target);
	}
	return s;
}

/* Steps that may slow a copy down without blocking it. */
static const enum chain_step suspects[] = {CHAIN_SWITCH, CHAIN_IOMMU, CHAIN_HOST_BRIDGE};

/* What may slow the pairs down, each reason once. Returns how many. */
static size_t evidence_causes(struct rule_run *run, struct finding *f, const struct slow *s)
{
	bool told[REASON_N] = {false};
	char sentence[512];
	size_t n = 0;

	FOR_EACH_GPU_PAIR (i, j, run) {
		const struct path *p = pair_path(run, i, j);

		for (size_t k = 0; k < sizeof(suspects) / sizeof(*suspects); k++) {
			const struct chain_link *l = &p->chain[suspects[k]];

			if (!pair_set_in(&s->pairs, i, j) || l->state < CHAIN_POSSIBLE ||
			    told[l->reason])
				continue;
			told[l->reason] = true;
			n += l->state != CHAIN_UNKNOWN;
			finding_evidence(run, f, NULL,
					 run_text(run, "%s, GPU%zu->GPU%zu",
						  chain_step_word(suspects[k]), i, j),
					 "%s", chain_explain(p, l, sentence, sizeof(sentence)));
		}
	}
	return n;
}

static const char *slow_text(struct rule_run *run, const struct slow *s)
{
	const char *reached = s->least < s->most ? run_text(run, "%.3g to %.3g", s->least, s->most)
						 : run_text(run, "%.3g", s->least);

	if (s->class == PATH_CLASS_N)
		return run_text(run, "copies reached %s GB/s where other pairs reach %.3g", reached,
				s->expected);
	return run_text(run, "copies reached %s GB/s, but the path (%s) should give %.3g", reached,
			path_class_word(s->class), s->expected);
}

static void report_slow(struct rule_run *run, const struct slow *s, double median)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_LIKELY,
			    SUBJECT(RESULT,
				    s->class < PATH_CLASS_N ? path_class_word(s->class) : "copies"),
			    "%s: %s", slow_text(run, s), pair_set_text(run, &s->pairs));
	size_t shown = 0;
	finding_names_pairs(run, f, &s->pairs);
	if (evidence_causes(run, f, s))
		finding_remedy(
			run, f,
			"fix what may slow these pairs down (the evidence names it), then measure again on an "
			"idle machine");
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		struct rate_yardstick y;
		enum path_class c;

		if (is_slow(run, o, median, &y, &c) && c == s->class && shown++ < LINES_SHOWN)
			evidence_observed(run, f, o, "%.3g GB/s", o->value);
	}
}

/* Pairs that a test called far too slow, or whose rate was too low for a figure. */
static void report_no_rate(struct rule_run *run)
{
	struct pair_set pairs = pair_set_new(run);
	struct finding *f;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	if (o->kind == OBSERVED_RATE && !o->ok && o->initiator >= 0 && o->target >= 0)
		pair_set_add(&pairs, (size_t)o->initiator, (size_t)o->target);
	if (!pairs.n)
		return;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(RESULT, "copies"),
			ABOUT " were much slower than expected: %s", pair_set_text(run, &pairs));
	finding_names_pairs(run, f, &pairs);
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	if (o->kind == OBSERVED_RATE && !o->ok && o->initiator >= 0 && o->target >= 0 &&
	    f->evidence_n < LINES_SHOWN)
		evidence_observed(run, f, o, "far too slow");
}

/* A pair whose path does not tell what to expect is held against the others, which tells less. */
static enum verdict judge_measured(struct rule_run *run)
{
	enum verdict v = VERDICT_NA;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (!tells_rate(run, o))
			continue;
		if (topology_data_path(run->t, o)->expected_gbps <= 0)
			return rule_unknown(run, NULL,
					    "what a copy from GPU%d to GPU%d should reach",
					    o->initiator, o->target);
		v = VERDICT_OK;
	}
	return v;
}

static enum verdict probe_slow(struct rule_run *run)
{
	double median = median_rate(run);
	enum verdict v;

	for (enum path_class c = 0; c <= PATH_CLASS_N; c++) {
		struct slow s = collect_slow(run, c, median);

		if (s.pairs.n)
			report_slow(run, &s, median);
	}
	report_no_rate(run);
	v = judge_measured(run);
	return rule_verdict(run, v == VERDICT_OK ? of_every_pair(run) : v);
}

/* ---- rates of NICs ---- */

#define SLOW_NIC 0.6 /* of the port's rate; 0.9 and more is usual */

static bool is_nic_rate(const struct observed *o)
{
	return o->kind == OBSERVED_MESSAGE &&
	       (o->message == MESSAGE_NIC_RATE_GPU || o->message == MESSAGE_NIC_RATE_HOST);
}

/* GB/s of the NIC's fastest port; 0: unknown. */
static double port_gbps(const struct rule_run *run, const char *nic)
{
	int64_t mbps = 0;

	FOR_EACH_RDMA (d, run)
		for (size_t i = 0; strcmp(d->name, nic) == 0 && i < d->port_n; i++)
			if (fact_or(d->ports[i].rate_mbps, 0) > mbps)
				mbps = d->ports[i].rate_mbps.value;
	return (double)mbps / 8e3;
}

/* The fastest that was seen of the NIC with host memory; NULL: none. */
static const struct observed *host_rate(const struct rule_run *run, const char *nic)
{
	const struct observed *best = NULL;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	if (o->kind == OBSERVED_MESSAGE && o->message == MESSAGE_NIC_RATE_HOST &&
	    strcmp(o->text, nic) == 0 && (!best || o->value > best->value))
		best = o;
	return best;
}

static void report_slow_nic(struct rule_run *run, const struct observed *o, const char *than,
			    double gbps)
{
	const bool of_gpu = o->message == MESSAGE_NIC_RATE_GPU;
	const char *memory = !of_gpu             ? "host memory"
			     : o->initiator >= 0 ? run_text(run, "memory of GPU%d", o->initiator)
						 : "GPU memory";
	struct finding *f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(RESULT, o->text),
					"perftest moved %s with " ABOUT
					" at %.3g GB/s: %.0f %% of the %.3g GB/s of %s",
					memory, o->value, 100 * o->value / gbps, gbps, than);

	finding_remedy(
		run, f,
		of_gpu ? "use the NIC that is nearest to the GPU (`nvidia-smi topo -m`: PIX or PXB), "
			 "and check ACS and the IOMMU between them (rules nic-far, acs-redirect, "
			 "iommu-translating); measure with host memory too, which tells the path "
			 "from the network"
		       : "check the link of the NIC's slot (rule rdma-slot-slow), and measure with "
			 "larger messages, several queue pairs (-q 4) and a CPU of the NIC's socket "
			 "(numactl -N)");
	evidence_text(run, f, o->from,
		      run_text(run, "%.4g GB/s, messages of %" PRIu64 " bytes", o->value,
			       o->bytes));
}

/*
 * Memory of a GPU next to the NIC costs it a microsecond or two more than that of the host: a
 * longer way, through a CPU or a translating IOMMU, costs more.
 */
#define SLOW_US 5

/*
 * The fastest that was seen of the NIC with host memory, by the same kind of operation and size;
 * NULL: none.
 */
static const struct observed *host_time(const struct rule_run *run, const struct observed *of_gpu)
{
	const struct observed *best = NULL;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	if (o->kind == OBSERVED_MESSAGE && o->message == MESSAGE_NIC_TIME_HOST &&
	    strcmp(o->text, of_gpu->text) == 0 && o->pulled == of_gpu->pulled &&
	    o->bytes == of_gpu->bytes && (!best || o->value < best->value))
		best = o;
	return best;
}

static void report_slow_message(struct rule_run *run, const struct observed *o,
				const struct observed *host)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_POSSIBLE, SUBJECT(RESULT, o->text),
			    "perftest needed %.3g us with %s and " ABOUT
			    ", and %.3g us with host memory",
			    o->value,
			    o->initiator >= 0 ? run_text(run, "memory of GPU%d", o->initiator)
					      : "GPU memory",
			    host->value);

	finding_remedy(
		run, f,
		"use the NIC that is nearest to the GPU (`nvidia-smi topo -m`: PIX or PXB), and check "
		"ACS and the IOMMU between them (rules nic-far, acs-redirect, iommu-translating)");
	for (size_t i = 0; i < 2; i++) {
		const struct observed *x = i ? host : o;

		evidence_text(run, f, x->from,
			      run_text(run, "%.4g us, messages of %" PRIu64 " bytes", x->value,
				       x->bytes));
	}
}

static void heard_nic_times(struct rule_run *run)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		const struct observed *host;

		if (o->kind != OBSERVED_MESSAGE || o->message != MESSAGE_NIC_TIME_GPU)
			continue;
		host = host_time(run, o);
		if (host && o->value > host->value + SLOW_US)
			report_slow_message(run, o, host);
	}
}

/* perftest by itself shows no fault: what the port, or host memory, reaches does. */
static void heard_nics(struct rule_run *run)
{
	heard_nic_times(run);

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		const struct observed *host;
		double port;

		if (!is_nic_rate(o))
			continue;
		port = port_gbps(run, o->text);
		host = o->message == MESSAGE_NIC_RATE_GPU ? host_rate(run, o->text) : NULL;
		if (port > 0 && o->value < SLOW_NIC * port)
			report_slow_nic(run, o, "its port", port);
		else if (port <= 0 && host && o->value < SLOW_NIC * host->value)
			report_slow_nic(run, o, "host memory", host->value);
	}
}

/* ---- what was too fast ---- */

static bool is_implausible(struct rule_run *run, const struct observed *o, bool checked)
{
	double expected = tells_rate(run, o) ? topology_data_path(run->t, o)->expected_gbps : 0;

	return expected > 0 && rate_is_implausible(o->value, expected) &&
	       (seen_of(run, o) == REASON_OBSERVED_WORKS) == checked;
}

/* Where the data arrived, the rate or what is known of the path is wrong, not the transfer. */
static void report_implausible(struct rule_run *run, bool checked)
{
	double most = 0;
	struct finding *f;
	size_t shown = 0;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (is_implausible(run, o, checked) && o->value > most)
			most = o->value;
	}
	f = report_copies(run, is_implausible, checked,
			  run_text(run, "reached up to %.3g GB/s, more than their path can carry",
				   most));
	if (f && checked)
		finding_remedy(
			run, f,
			"measure again with onehop bench p2p: the file is wrong or from another "
			"machine, or the path is not the one that onehop found");
	FOR_EACH_IN(struct observed, o, run->m->observed, f ? run->m->observed_n : 0)
	{
		if (is_implausible(run, o, checked) && shown++ < LINES_SHOWN)
			evidence_observed(run, f, o, "%.3g GB/s, %.3g expected", o->value,
					  topology_data_path(run->t, o)->expected_gbps);
	}
}

static enum verdict probe_implausible(struct rule_run *run)
{
	if (!any_observed(run, OBSERVED_BANDWIDTH))
		return VERDICT_NA;
	report_implausible(run, false);
	report_implausible(run, true);
	return of_every_pair(run);
}

/* ---- how a run ended ---- */

static bool any_of_nccl(struct rule_run *run)
{
	return any_observed(run, OBSERVED_NCCL_TRANSPORT) ||
	       any_observed(run, OBSERVED_RUN_FAILURE) || any_observed(run, OBSERVED_NCCL_WARNING);
}

/* "CUDA error 700, an illegal memory access was encountered, on rank 3 (GPU3)" */
static const char *failure_text(struct rule_run *run, const struct observed *o)
{
	char text[512];
	const char *s = run_text(run, "%s", run_failure_text(&o->failure, text, sizeof(text)));

	if (o->failure.rank >= 0)
		s = run_text(run, "%s, on rank %d", s, o->failure.rank);
	return o->initiator >= 0 ? run_text(run, "%s (GPU%d)", s, o->initiator) : s;
}

static bool any_failure_of_nccl(struct rule_run *run)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == OBSERVED_NCCL_WARNING ||
		    (o->kind == OBSERVED_RUN_FAILURE && !observed_is_failed_test(o)))
			return true;
	}
	return false;
}

static void evidence_connections(struct rule_run *run, struct finding *f)
{
	if (any_failure_of_nccl(run) && !any_observed(run, OBSERVED_NCCL_TRANSPORT))
		evidence_text(run, f, NULL, "the log names no connection between GPUs");
}

static void evidence_failed_runs(struct rule_run *run, struct finding *f)
{
	const char *last = "";
	size_t n = 0;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind != OBSERVED_RUN_FAILURE || strcmp(o->from, last) == 0)
			continue;
		last = o->from;
		if (n++ < FAILURES_SHOWN)
			evidence_text(run, f, o->from, failure_text(run, o));
	}
	if (n > FAILURES_SHOWN)
		evidence_text(run, f, NULL,
			      run_text(run, "%zu more (onehop log)", n - FAILURES_SHOWN));
}

/*
 * A log that does not report something proves that it did not happen only if it is whole; in a text
 * lines of it may be left out.
 */
static enum verdict nothing_reported(struct rule_run *run, const char *what)
{
	struct fact_int ended = run->m->nccl.ended;

	if (!ended.from)
		return VERDICT_NA;
	if (run->m->text_part_n && fact_is(ended, 1))
		return rule_unknown(run, "not in the text", "%s", what);
	return fact_is(ended, 1) ? VERDICT_OK : rule_unknown(run, FACT_WHY(ended), "%s", what);
}

/*
 * A log's causes come before their consequences, but its first line may be one that says nothing of
 * the cause.
 */
static bool tells_more(const struct observed *o, const struct observed *than)
{
	if (!than || o->failure.kind != than->failure.kind)
		return !than || o->failure.kind < than->failure.kind;
	return run_failure_is_vague(&than->failure) && !run_failure_is_vague(&o->failure);
}

static enum verdict probe_run(struct rule_run *run)
{
	const struct run_failure_facts known = {
		.p2p_off = nccl_p2p_disabled(run->m),
		.peermem = fact_is(run->m->peermem.loaded, 1) ||
			   fact_is(run->m->peermem.legacy_loaded, 1),
	};
	const struct observed *first = NULL;
	struct finding *f;

	if (!any_of_nccl(run))
		return VERDICT_NA;
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == OBSERVED_RUN_FAILURE && tells_more(o, first))
			first = o;
	}
	if (!first)
		return nothing_reported(run, "how the run ended");
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(RESULT, "run"),
			"the " ABOUT " failed: %s (seen in %s): %s", failure_text(run, first),
			first->from, run_failure_find(&first->failure)->meaning);
	f->follows = run_failure_follows(&first->failure);
	finding_remedy(run, f, "%s", run_failure_todo(run_failure_find(&first->failure), known));
	evidence_failed_runs(run, f);
	evidence_connections(run, f);
	return VERDICT_OK;
}

static enum verdict probe_warned(struct rule_run *run)
{
	const struct observed *first = NULL;
	struct finding *f;
	size_t n = 0;

	if (!any_of_nccl(run))
		return VERDICT_NA;
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == OBSERVED_NCCL_WARNING) {
			first = first ? first : o;
			n++;
		}
	}
	if (!first)
		return nothing_reported(run, "whether NCCL warned");
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(NCCL, "NCCL"),
			ABOUT " warned: %s (seen in %s)%s", first->text, first->from,
			n > 1 ? run_text(run, ", and %zu more", n - 1) : "");
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == OBSERVED_NCCL_WARNING)
			evidence_text(run, f, o->from, o->text);
	}
	evidence_connections(run, f);
	return VERDICT_OK;
}

/* Through host memory, although NVLinks join the two. */
static bool leaves_nvlink(struct rule_run *run, const struct observed *o)
{
	return o->kind == OBSERVED_NCCL_TRANSPORT && strncmp(o->text, "SHM", 3) == 0 &&
	       o->initiator >= 0 && o->target >= 0 &&
	       path_is_nvlink(pair_path(run, (size_t)o->initiator, (size_t)o->target));
}

static bool any_nvlink_of_nccl(struct rule_run *run)
{
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == OBSERVED_NCCL_TRANSPORT && o->initiator >= 0 && o->target >= 0 &&
		    path_is_nvlink(pair_path(run, (size_t)o->initiator, (size_t)o->target)))
			return true;
	}
	return false;
}

static enum verdict probe_nvlink_unused(struct rule_run *run)
{
	struct pair_set pairs = pair_set_new(run);
	struct finding *f;

	if (!any_nvlink_of_nccl(run))
		return VERDICT_NA;
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (leaves_nvlink(run, o))
			pair_set_add(&pairs, (size_t)o->initiator, (size_t)o->target);
	}
	if (!pairs.n)
		return run->m->text_part_n
			       ? nothing_reported(run, "how NCCL connects the other pairs")
			       : VERDICT_OK;
	f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(NCCL, "NCCL"),
			ABOUT " connected GPUs that NVLink joins through host memory: %s",
			pair_set_text(run, &pairs));
	finding_names_pairs(run, f, &pairs);
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (leaves_nvlink(run, o) && f->evidence_n < LINES_SHOWN)
			evidence_text(run, f, o->from,
				      run_text(run, "GPU%d->GPU%d via %s", o->initiator, o->target,
					       o->text));
	}
	return VERDICT_OK;
}

/* The choice of each end is its own host's: its module, and its distance of GPU and NIC. */
static enum verdict probe_gdr_ends(struct rule_run *run)
{
	if (!any_of_nccl(run) && !any_observed(run, OBSERVED_NCCL_GDR_HALF))
		return VERDICT_NA;
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		const char *where = *o->text ? o->text : "one host";
		struct finding *f;

		if (o->kind != OBSERVED_NCCL_GDR_HALF)
			continue;
		f = finding_add(run, CONFIDENCE_LIKELY, SUBJECT(NCCL, "NCCL"),
				ABOUT
				" uses GPUDirect RDMA at one end of connections between hosts "
				"and copies in host memory at the other, on %s: nvidia-peermem "
				"is probably not loaded there",
				where);
		evidence_text(run, f, o->from, "a connection without GDRDMA");
	}
	return run->found ? VERDICT_OK
			  : nothing_reported(run, "both ends of each connection between hosts");
}

static size_t count_without_gdr(struct rule_run *run)
{
	size_t n = 0;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		n += o->kind == OBSERVED_NCCL_GDR_OFF;
	}
	return n;
}

/*
 * NCCL asks for the module's file, and for dma-buf of CUDA and the kernel: its line says that it
 * found neither.
 */
static enum verdict probe_gdr_off(struct rule_run *run)
{
	const struct fact_int module = run->m->peermem.loaded;
	const size_t n = count_without_gdr(run);
	struct finding *f;

	if (!any_of_nccl(run) && !n)
		return VERDICT_NA;
	if (!n)
		return nothing_reported(run, "whether NCCL uses GPUDirect RDMA");
	f = finding_add(run, CONFIDENCE_CERTAIN, SUBJECT(NCCL, "NCCL"),
			ABOUT
			" uses no GPUDirect RDMA on %zu %s: it found neither a peer-memory module "
			"that it knows nor dma-buf%s",
			n, text_plural(n, "NIC", "NICs"),
			fact_is(module, 1) ? ", though nvidia_peermem is loaded" : "");
	if (fact_is(module, 1))
		finding_remedy(
			run, f,
			"update NCCL to 2.23.4 or later, which looks for nvidia_peermem itself; "
			"before that it looks only for /sys/kernel/mm/memory_peers/nv_mem/version, "
			"which `ls /sys/kernel/mm/memory_peers` shows; in a container check that "
			"/sys shows it too");
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (o->kind == OBSERVED_NCCL_GDR_OFF && f->evidence_n < LINES_SHOWN)
			evidence_text(run, f, o->from, o->text);
	}
	return VERDICT_OK;
}

const struct rule rules_observed[] = {
	{
		.id = "observed-gdr-off",
		.title = "NCCL uses GPUDirect RDMA on its NICs",
		.why = "Without it all traffic between hosts is copied in host memory first: often half the "
		       "rate, and load on the CPUs.",
		.remedy =
			"load the module: `modprobe nvidia-peermem` (rules peermem-*), or use dma-buf: open "
			"modules, kernel 5.12 or later, NCCL 2.13 or later (rule dma-buf); GeForce cards "
			"have neither (rule gdr-geforce)",
		.reference =
			"NVIDIA/nccl src/transport/net_ib.cc (ncclIbGdrSupport, ncclIbDmaBufSupport), "
			"src/transport/net.cc; NVIDIA/nccl#1537",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.probe = probe_gdr_off,
	},
	{
		.id = "observed-gdr-one-end",
		.title = "Both ends of NCCL's connections between hosts use GPUDirect RDMA",
		.why = "The end without it copies everything through host memory, and limits the "
		       "whole ring. Each host decides for itself, by its own modules and by the "
		       "distance of its GPU and its NIC.",
		.remedy =
			"on that host, load the module: `modprobe nvidia-peermem` (nv_peer_mem with "
			"drivers before 470), and at each boot: `echo nvidia-peermem > "
			"/etc/modules-load.d/nvidia-peermem.conf`; if it is loaded, compare "
			"`nvidia-smi topo -m` of both hosts",
		.reference = "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckGdr); NVIDIA/nccl#897, "
			     "NVIDIA/nccl-tests#152",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.probe = probe_gdr_ends,
	},
	{
		.id = "observed-run",
		.title = "The recorded run or test ended without an error",
		.why = "What ended a job comes before everything that makes it slow. One rank gets "
		       "CUDA's error; the others wait for it, time out and abort, so most lines of "
		       "such a log show consequences.",
		.remedy = "fix what the finding names first, and check the logs of all ranks",
		.reference =
			"onehop-log(1); NCCL src/include/checks.h; PyTorch ProcessGroupNCCL.cpp",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_RUN,
		.probe = probe_run,
	},
	{
		.id = "observed-warned",
		.title = "NCCL's log has no warnings",
		.why = "NCCL continues after these warnings, often on a slower path.",
		.remedy = "read them: each names what NCCL could not use",
		.reference = "onehop-log(1)",
		.severity = SEVERITY_INFO,
		.blocks = BLOCKS_NOTHING,
		.probe = probe_warned,
	},
	{
		.id = "observed-nvlink-unused",
		.title = "NCCL uses P2P between GPUs that NVLink joins",
		.why = "Through host memory the pair has less than a tenth of its NVLinks' rate. "
		       "NCCL takes that path if a variable excludes P2P, if the driver refuses P2P "
		       "and NCCL_IGNORE_DISABLED_P2P=1 is set, or if CUDA cannot share memory "
		       "between the two processes.",
		.remedy =
			"unset NCCL_P2P_DISABLE, NCCL_P2P_LEVEL and NCCL_IGNORE_DISABLED_P2P in the "
			"job's environment and in nccl.conf; then check `nvidia-smi topo -p2p r` and "
			"`nvidia-smi nvlink -s`, and run the job with NCCL_DEBUG=INFO "
			"NCCL_DEBUG_SUBSYS=INIT,GRAPH,P2P, whose lines say why P2P is not used",
		.reference = "NVIDIA/nccl src/graph/paths.cc (ncclTopoCheckP2p), "
			     "src/transport/p2p.cc (p2pCanConnect)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_nvlink_unused,
	},
	{
		.id = "observed-fails",
		.title = "Every tested transfer succeeded",
		.why = "A transfer that failed once will fail again, whatever the registers say. "
		       "Programs that do not check their data continue with wrong values, and one "
		       "that waits for a transfer may wait forever.",
		.remedy =
			"keep jobs off these pairs (NCCL_P2P_DISABLE=1), check the other findings "
			"and the kernel log, and run onehop test, which shows what goes wrong",
		.reference = "onehop-test(1)",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_failures,
		.number = OBSERVED_PEER_COPY,
		.text = "transfers failed",
	},
	{
		.id = "observed-refused",
		.title = "CUDA granted peer access to every tested pair",
		.why = "No data is lost: CUDA reports the refusal and copies through host memory "
		       "instead, which is slower. Kernels cannot access the other GPU at all.",
		.remedy =
			"check the other findings; if none shows the cause, check the environment of "
			"the program: CUDA_VISIBLE_DEVICES, a container, MIG",
		.reference = "CUDA driver API, cuDeviceCanAccessPeer",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_failures,
		.number = OBSERVED_PEER_ACCESS,
		.text = "CUDA refused peer access",
	},
	{
		.id = "observed-no-gain",
		.title = "Copies with P2P on are faster than with P2P off",
		.why = "CUDA may grant access while copies still go through host memory, or P2P "
		       "uses a slower path: then P2P gains nothing. Only figures of one result are "
		       "compared; where the rates are equal, tiny transfers decide.",
		.remedy =
			"run onehop test and onehop bench p2p: they show whether the data arrives "
			"and how fast each path is; if P2P still gains nothing, leave it off for "
			"these pairs",
		.reference = "onehop-compare(1)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_no_gain,
	},
	{
		.id = "observed-slow",
		.title =
			"Measured copies reach at least 60 % of what their path should give, in each "
			"direction",
		.why = "Slow peer traffic takes a longer path, shares it, or loses packets; "
		       "collectives run at the pace of the slowest pair. Healthy pairs reach 85 % "
		       "or more, between sockets 85 % of what the CPUs forward.",
		.remedy =
			"measure again on an idle machine (onehop bench p2p); if it is still slow, "
			"check link errors (rule aer-corrected), link speed under load, and the "
			"payload size",
		.reference =
			"PCIe 6.0, 2.2 and 3.6 (overhead of packets and links); onehop-bench-p2p(1); "
			"linux-rdma/perftest#241",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_slow,
		.heard = heard_nics,
	},
	{
		.id = "observed-implausible",
		.title = "No copy was faster than its path",
		.why = "A copy faster than the links went another way, or nowhere: copies into "
		       "mappings that lead nowhere report success at such rates.",
		.remedy = "run onehop test, which checks whether the data arrives",
		.reference = "PCIe 6.0, 2.2 and 3.6 (overhead of packets and links)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_implausible,
	},
	{0},
};
