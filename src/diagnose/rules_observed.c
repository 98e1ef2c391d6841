/* SPDX-License-Identifier: Apache-2.0 */
/* Rules about what tests and benchmarks showed: `onehop test`, and files given with --observed. */
#include "diagnose/rules.h"

#include <string.h>

#define LINES_SHOWN 4

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

/* What is bad besides: then a failure is no news. */
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
			finding_evidence(run, f, "GPU%d->GPU%d: seen in %s", o->initiator,
					 o->target, o->from);
		else
			finding_evidence(run, f, "seen in %s", o->from);
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

static void report_failures(struct rule_run *run, enum observed_kind kind, bool explained)
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
	f = finding_add(run, CONFIDENCE_CERTAIN, "tests", "%s: %s%s (first seen in %s)",
			kind == OBSERVED_PEER_COPY ? "copies were seen to fail"
						   : "CUDA was seen to refuse peer access",
			pair_set_text(run, &failed),
			explained ? ", for which other findings give the cause" : "", from);
	f->pairs = failed.n;
	if (explained) {
		f->severity = SEVERITY_INFO;
		finding_remedy(run, f, NOTHING_TO_DO);
	}
	evidence_failures(run, f, kind, &failed);
}

static enum verdict probe_fails(struct rule_run *run)
{
	if (!any_observed(run, OBSERVED_PEER_COPY) && !any_observed(run, OBSERVED_PEER_ACCESS))
		return VERDICT_NA;
	for (int explained = 0; explained < 2; explained++) {
		report_failures(run, OBSERVED_PEER_COPY, explained);
		report_failures(run, OBSERVED_PEER_ACCESS, explained);
	}
	return VERDICT_OK;
}

/* ---- what was slow ---- */

/*
 * p2pBandwidthLatencyTest reaches all of what is expected below one socket and four fifths of it
 * across two (AMD EPYC); what stays below this share has a cause.
 */
#define SLOW_SHARE 0.6

/* What is refused is copied through host memory: its rate says nothing of the path. */
static bool is_refused(const struct path *p)
{
	return p->chain[CHAIN_DRIVER].state == CHAIN_BAD ||
	       p->chain[CHAIN_OBSERVED].state == CHAIN_BAD;
}

static bool is_slow(struct rule_run *run, const struct observed *o, enum path_class class)
{
	const struct path *p;

	if (o->kind != OBSERVED_BANDWIDTH || o->initiator < 0 || o->target < 0)
		return false;
	p = pair_path(run, (size_t)o->initiator, (size_t)o->target);
	return p->class == class && !is_refused(p) && o->value < SLOW_SHARE * p->expected_gbps;
}

struct slow {
	struct pair_set pairs;
	double least, most, expected; /* GB/s; expected: the most of the pairs */
};

static struct slow collect_slow(struct rule_run *run, enum path_class class)
{
	struct slow s = {.pairs = pair_set_new(run)};

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		double expected;

		if (!is_slow(run, o, class))
			continue;
		expected = pair_path(run, (size_t)o->initiator, (size_t)o->target)->expected_gbps;
		s.least = !s.pairs.n || o->value < s.least ? o->value : s.least;
		s.most = o->value > s.most ? o->value : s.most;
		s.expected = expected > s.expected ? expected : s.expected;
		pair_set_add(&s.pairs, (size_t)o->initiator, (size_t)o->target);
	}
	return s;
}

/* Steps that may slow a copy down without blocking it. */
static const enum chain_step suspects[] = {CHAIN_SWITCH, CHAIN_IOMMU, CHAIN_HOST_BRIDGE};

/* What stands in the way of the slow pairs, each reason once. Returns how many. */
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
			finding_evidence(run, f, "%s, GPU%zu->GPU%zu: %s",
					 chain_step_word(suspects[k]), i, j,
					 chain_explain(p, l, sentence, sizeof(sentence)));
		}
	}
	return n;
}

static void report_slow(struct rule_run *run, enum path_class class, const struct slow *s)
{
	struct finding *f =
		finding_add(run, CONFIDENCE_LIKELY, path_class_word(class),
			    "copies reached %s GB/s where the path (%s) should give %.3g: %s",
			    s->least < s->most ? run_text(run, "%.3g to %.3g", s->least, s->most)
					       : run_text(run, "%.3g", s->least),
			    path_class_word(class), s->expected, pair_set_text(run, &s->pairs));
	size_t shown = 0;

	f->pairs = s->pairs.n;
	if (evidence_causes(run, f, s))
		finding_remedy(run, f,
			       "mend what may slow these pairs down, as read below, and "
			       "measure again on an idle machine");
	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		if (is_slow(run, o, class) && shown++ < LINES_SHOWN)
			finding_evidence(run, f, "GPU%d->GPU%d: %.3g GB/s (seen in %s)",
					 o->initiator, o->target, o->value, o->from);
	}
}

/* Of the pairs that were measured and may use their paths. */
static enum verdict judge_measured(struct rule_run *run)
{
	enum verdict v = VERDICT_NA;

	FOR_EACH_IN(struct observed, o, run->m->observed, run->m->observed_n)
	{
		const struct path *p;

		if (o->kind != OBSERVED_BANDWIDTH || o->initiator < 0 || o->target < 0)
			continue;
		p = pair_path(run, (size_t)o->initiator, (size_t)o->target);
		if (is_refused(p))
			continue;
		if (p->expected_gbps <= 0)
			return rule_unknown(run, "what a copy from GPU%d to GPU%d should reach",
					    o->initiator, o->target);
		v = VERDICT_OK;
	}
	return v;
}

static enum verdict probe_slow(struct rule_run *run)
{
	for (enum path_class c = 0; c < PATH_CLASS_N; c++) {
		struct slow s = collect_slow(run, c);

		if (s.pairs.n)
			report_slow(run, c, &s);
	}
	return rule_verdict(run, judge_measured(run));
}

const struct rule rules_observed[] = {
	{
		.id = "observed-fails",
		.title = "Every pair that was tested could copy, and the data were right",
		.why = "What failed once will fail again; no register outweighs it. Programs that "
		       "do not "
		       "check their data compute with what did not arrive.",
		.remedy = "keep jobs off these pairs (NCCL_P2P_DISABLE=1), look at the other "
			  "findings "
			  "and the kernel log, and run onehop test, which says how data went wrong",
		.reference = "onehop-test(1)",
		.severity = SEVERITY_ERROR,
		.blocks = BLOCKS_SOME,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_fails,
	},
	{
		.id = "observed-slow",
		.title = "Copies that were measured reach 60 % of what their path should give",
		.why = "Peer traffic then takes another way than the shortest, shares it, or loses "
		       "packets; "
		       "collectives go at the pace of the slowest pair.",
		.remedy =
			"measure again on an idle machine (onehop bench p2p); if it stays, look at "
			"link "
			"errors (rule aer-corrected), link speed under load, and the payload size",
		.reference = "PCIe 6.0, 2.2 and 3.6 (overhead of packets and links); "
			     "onehop-bench-p2p(1)",
		.severity = SEVERITY_WARNING,
		.blocks = BLOCKS_SPEED,
		.needs = NEEDS_TWO_GPUS,
		.probe = probe_slow,
	},
};
