/* SPDX-License-Identifier: Apache-2.0 */
/* What `test --json` prints; docs/json.md describes it. */
#include "report/report_test.h"

#include "report/report_json_impl.h"

#include "base/cleanup.h"
#include "bench/pattern.h"
#include "result/figures_json.h"

static json_t *kind_json(enum wrong_kind k)
{
	return k == WRONG_NOTHING ? json_null() : json_string(wrong_word(k));
}

/* 0 stands for not measured in the model. */
static json_t *figure_json(double value)
{
	return value > 0 ? json_real(value) : json_null();
}

static json_t *number_json(struct fact_int f)
{
	return fact_known(f) ? json_integer(f.value) : json_null();
}

static void set_gpu(json_t *o, const struct gpu *g)
{
	json_object_set_new(o, "gpu", g ? json_integer((json_int_t)g->index) : json_null());
	json_object_set_new(o, "pci", g ? json_pci_name(g->pci) : json_null());
	json_object_set_new(o, "nvml_index", g ? number_json(g->nvml_index) : json_null());
	json_object_set_new(o, "cuda_ordinal", g ? number_json(g->cuda_ordinal) : json_null());
}

static json_t *ways_json(const struct pair_result *p)
{
	json_t *ways = json_array();

	for (int w = 0; w < WAY_N; w++) {
		const struct way_result *x = &p->ways[w];
		bool failed = x->kind != WRONG_NOTHING && x->checks;

		if (!x->checks && x->kind == WRONG_NOTHING)
			continue;
		json_array_append_new(
			ways,
			json_pack("{s:s, s:o, s:i, s:I, s:I, s:I, s:b, s:I, s:I}", "way",
				  way_word((enum way)w), "kind", kind_json(x->kind), "checks",
				  (int)x->checks, "bytes", (json_int_t)x->bytes, "failed_bytes",
				  (json_int_t)(failed ? x->case_bytes : 0), "failed_offset",
				  (json_int_t)(failed ? x->offset : 0), "high_address",
				  (int)x->high, "shift_bytes", (json_int_t)x->wrong.shift_bytes,
				  "first_wrong_byte", (json_int_t)x->wrong.from_bytes));
	}
	return ways;
}

static json_t *round_trip_json(const struct round_trip *t)
{
	if (!t->n)
		return json_null();
	return json_pack("{s:I, s:f, s:f, s:f}", "n", (json_int_t)t->n, "median_ns", t->median_ns,
			 "p99_ns", t->p99_ns, "max_ns", t->max_ns);
}

static void set_result(json_t *o, const struct pair_result *p)
{
	json_object_set_new(o, "state", json_string(pair_state_word(p->state)));
	json_object_set_new(o, "kind", kind_json(p->kind));
	json_object_set_new(o, "sentence", json_known_text(p->sentence));
	json_object_set_new(o, "ways", ways_json(p));
}

static json_t *pattern_json(enum pattern k, const struct pattern_result *x)
{
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:b, s:f}", "pattern", pattern_rows[k].name,
			 "state", x->kind == WRONG_NOTHING ? pattern_result_word(x) : "failed",
			 "kind", kind_json(x->kind), "rounds", (json_int_t)x->rounds, "lost",
			 (json_int_t)x->lost, "by_ipc", (int)x->by_ipc, "ms", x->ms);
}

/* Those that have begun, and those that were asked for. */
static json_t *patterns_json(const struct pair_result *p, unsigned asked)
{
	json_t *all = json_array();

	for (int k = PATTERN_NONE + 1; k < PATTERN_N; k++) {
		const struct pattern_result *x = &p->patterns[k];

		if (x->done || x->not_offered || x->kind != WRONG_NOTHING || asked & PATTERN_BIT(k))
			json_array_append_new(all, pattern_json((enum pattern)k, x));
	}
	return all;
}

static json_t *device_json(const struct test_report *r, size_t i)
{
	const struct test_device *d = &r->result->devices[i];
	const struct machine *m = r->diagnosis ? r->diagnosis->topology->machine : NULL;
	json_t *local = json_object(), *o = json_object();

	json_object_set_new(o, "name", json_text(r->names[i]));
	set_gpu(o, m && r->gpus ? &m->gpus[r->gpus[i]] : NULL);
	set_result(local, &d->local);
	json_object_set_new(o, "own_memory", local);
	json_object_set_new(o, "trouble", json_known_text(d->sentence));
	json_object_set_new(o, "restarts", json_integer((json_int_t)d->restarts));
	return o;
}

static json_t *log_json(const struct test_report *r, int a, int b)
{
	json_t *lines = json_array();

	for (size_t i = 0; i < r->log_n; i++)
		if (r->log[i].initiator == a && r->log[i].target == b)
			json_array_append_new(lines, json_text(r->log[i].text));
	return lines;
}

static json_t *offered_json(const struct test_report *r, size_t a, size_t b)
{
	int offered = report_test_offers_atomics(r, a, b);

	return offered < 0 ? json_null() : json_boolean(offered);
}

static json_t *pair_json(const struct test_report *r, size_t a, size_t b)
{
	const struct pair_result *p = test_pair(r->result, a, b);
	json_t *o = json_object(), *rules = json_array();
	size_t n;
	const struct rule **explain AUTO_FREE = report_test_explanations(r, a, b, &n);

	for (size_t i = 0; p->state == PAIR_WRONG && i < n; i++)
		json_array_append_new(rules, json_string(explain[i]->id));
	json_object_set_new(o, "initiator", json_text(r->names[a]));
	json_object_set_new(o, "target", json_text(r->names[b]));
	set_result(o, p);
	json_object_set_new(o, "pattern",
			    p->pattern ? json_string(pattern_rows[p->pattern].name) : json_null());
	json_object_set_new(o, "patterns", patterns_json(p, r->result->informs));
	json_object_set_new(o, "atomics_offered", offered_json(r, a, b));
	json_object_set_new(o, "copy_gbps", figure_json(p->copy_gbps));
	json_object_set_new(o, "round_trip", round_trip_json(&p->round_trip));
	json_object_set_new(o, "rules", rules);
	json_object_set_new(o, "kernel_log", log_json(r, (int)a, (int)b));
	return o;
}

static json_t *arm_json(const struct test_report *r, enum arm arm)
{
	const struct arm_result *a = &r->result->arms[arm];

	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:o}", "arm", arm_word(arm), "state",
			 pair_state_word(a->state), "kind", kind_json(a->kind), "values",
			 (json_int_t)a->values, "wrong", (json_int_t)a->wrong, "sentence",
			 json_known_text(a->sentence));
}

static json_t *verdict_json(const struct test_report *r)
{
	char *danger AUTO_FREE = report_test_danger(r);
	struct test_counts c;
	char sentence[256];

	test_count(r->result, &c);
	return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "danger", json_text(danger),
			 "sentence", json_text(report_test_verdict(r, sentence, sizeof(sentence))),
			 "pairs", (json_int_t)c.pairs, "ok", (json_int_t)c.right, "failed",
			 (json_int_t)c.wrong, "incomplete", (json_int_t)c.incomplete, "not_tested",
			 (json_int_t)c.not_tested);
}

static void set_results(json_t *o, const struct test_report *r)
{
	json_t *devices = json_array(), *pairs = json_array(), *arms = json_array();
	size_t n = r->result ? r->result->n : 0;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(devices, device_json(r, i));
	for (size_t i = 0; i < n * n; i++)
		if (i / n != i % n)
			json_array_append_new(pairs, pair_json(r, i / n, i % n));
	for (int a = 0; r->result && a < ARM_N; a++)
		json_array_append_new(arms, arm_json(r, (enum arm)a));
	json_object_set_new(o, "devices", devices);
	json_object_set_new(o, "pairs", pairs);
	json_object_set_new(o, "all_reduce", arms);
	json_object_set_new(o, "rounds", json_integer(n ? (json_int_t)r->result->rounds : 0));
	json_object_set_new(o, "start_s", n ? json_real(r->result->start_s) : json_null());
	json_object_set_new(o, "test_s", n ? json_real(r->result->test_s) : json_null());
	json_object_set_new(o, "stopped", json_boolean(n && r->result->stopped));
}

json_t *report_test_json(const struct test_report *r)
{
	json_t *o = json_head("test"), *skips = json_array();

	json_object_set_new(o, "device", json_string(r->device));
	json_object_set_new(o, "injected", json_text(r->inject));
	for (size_t i = 0; i < r->skip_n; i++)
		json_array_append_new(skips,
				      json_pack("{s:o, s:o}", "name", json_text(r->skips[i].name),
						"reason", json_text(r->skips[i].reason)));
	json_object_set_new(o, "skipped", skips);
	json_object_set_new(o, "note", json_text(r->note));
	json_object_set_new(o, "kernel_log_unread", json_text(r->log_unread));
	set_results(o, r);
	json_object_set_new(o, "verdict", verdict_json(r));
	if (r->figures)
		json_object_set_new(o, "result", figures_to_json(r->figures));
	return o;
}
