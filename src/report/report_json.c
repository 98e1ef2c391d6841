/* SPDX-License-Identifier: Apache-2.0 */
/* What `check --json` and `topo --json` print; docs/json.md describes it. */
#include "report/report_json_impl.h"

#include <stdio.h>

#ifndef ONEHOP_VERSION
#define ONEHOP_VERSION "unknown"
#endif

json_t *json_head(const char *command)
{
	return json_pack("{s:{s:s, s:i}, s:s}", "onehop", "version", ONEHOP_VERSION, "schema",
			 JSON_SCHEMA_VERSION, "command", command);
}

/* ---- endpoints and pairs ---- */

static json_t *endpoint_json(const struct endpoint *e)
{
	return json_pack("{s:o, s:s, s:I, s:o}", "name", json_text(e->name), "kind",
			 e->kind == ENDPOINT_GPU ? "gpu" : "nic", "index", (json_int_t)e->index,
			 "pci", json_pci_name(e->pci));
}

static json_t *link_json(const struct path *p, enum chain_step step)
{
	const struct chain_link *l = &p->chain[step];
	char sentence[512];

	return json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:o}", "step", chain_step_word(step),
			 "state", chain_state_word(l->state), "reason",
			 chain_reason_word(l->reason), "at", json_pci_name(l->at), "value",
			 (json_int_t)l->value, "value2", (json_int_t)l->value2, "sentence",
			 json_text(chain_explain(p, l, sentence, sizeof(sentence))));
}

static json_t *chain_json(const struct path *p)
{
	json_t *chain = json_array();

	for (int s = 0; s < CHAIN_STEP_N; s++) {
		if (p->chain[s].state != CHAIN_NA)
			json_array_append_new(chain, link_json(p, (enum chain_step)s));
	}
	return chain;
}

static json_t *bottleneck_json(const struct path *p)
{
	if (!p->bottleneck)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "at", json_pci_name(p->bottleneck), "speed_mtps",
			 json_fact_int(p->bottleneck_speed), "width",
			 json_fact_int(p->bottleneck_width));
}

/* 0 stands for unknown in the model; JSON says null. */
static json_t *gbps_json(double gbps)
{
	return gbps > 0 ? json_real(gbps) : json_null();
}

static json_t *pair_json(const struct topology *t, size_t i, size_t j)
{
	const struct path *p = topology_path(t, i, j);
	char name[16];
	bool judged = i < t->gpu_n || j < t->gpu_n;
	json_t *o =
		json_pack("{s:o, s:o, s:o, s:s, s:s, s:s, s:o}", "initiator",
			  json_text(t->endpoints[i].name), "target",
			  json_text(t->endpoints[j].name), "class",
			  json_text(path_class_name(p, name, sizeof(name))), "path",
			  path_class_word(p->class), "pci_path", path_class_word(p->pci_class),
			  "tree_path", path_class_word(p->tree_class), "nvlinks",
			  fact_known(p->nvlinks) ? json_integer(p->nvlinks.value) : json_null());

	json_object_set_new(o, "common_bridge", json_pci_name(p->common));
	json_object_set_new(o, "initiator_port", json_pci_name(p->initiator_port));
	json_object_set_new(o, "target_port", json_pci_name(p->target_port));
	json_object_set_new(o, "bottleneck", bottleneck_json(p));
	json_object_set_new(o, "link_gbps", gbps_json(p->link_gbps));
	json_object_set_new(o, "expected_gbps", gbps_json(p->expected_gbps));
	json_object_set_new(o, "verdict",
			    judged ? json_text(pair_verdict_word(p->verdict)) : json_null());
	json_object_set_new(o, "first_bad",
			    p->first_bad < CHAIN_STEP_N ? json_text(chain_step_word(p->first_bad))
							: json_null());
	json_object_set_new(o, "chain", judged ? chain_json(p) : json_array());
	return o;
}

static void set_pairs(json_t *o, const struct topology *t)
{
	json_t *endpoints = json_array(), *pairs = json_array();

	for (size_t i = 0; i < t->endpoint_n; i++) {
		json_array_append_new(endpoints, endpoint_json(&t->endpoints[i]));
		for (size_t j = 0; j < t->endpoint_n; j++) {
			if (i != j)
				json_array_append_new(pairs, pair_json(t, i, j));
		}
	}
	json_object_set_new(o, "endpoints", endpoints);
	json_object_set_new(o, "pairs", pairs);
}

/* ---- findings, rules, verdict ---- */

/* All that it is about; `pci`, if there is one, comes first. */
static json_t *devices_json(const struct finding *f)
{
	json_t *devices = json_array();

	if (f->pci)
		json_array_append_new(devices, json_pci_name(f->pci));
	for (size_t i = 0; i < f->named_n; i++)
		json_array_append_new(devices, json_pci_name(f->named[i]));
	return devices;
}

static json_t *finding_json(const struct finding *f)
{
	json_t *evidence = json_array();

	for (size_t i = 0; i < f->evidence_n; i++)
		json_array_append_new(evidence, json_text(f->evidence[i]));
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "rule",
			 f->rule->id, "severity", severity_word(f->severity), "confidence",
			 confidence_word(f->confidence), "subject", json_text(f->subject),
			 "sentence", json_text(f->sentence), "why", json_text(f->rule->why),
			 "remedy", json_text(f->remedy), "evidence", evidence, "pairs",
			 (json_int_t)f->pairs, "pci", json_pci_name(f->pci), "devices",
			 devices_json(f));
}

static json_t *outcome_json(const struct outcome *o)
{
	bool open = o->verdict == VERDICT_UNKNOWN;

	return json_pack("{s:s, s:s, s:s, s:o, s:b}", "id", o->rule->id, "title", o->rule->title,
			 "outcome", verdict_word(o->verdict), "why",
			 open ? json_text(o->why) : json_null(), "root_would_tell",
			 (int)(open && o->root_would_tell));
}

static json_t *verdict_json(const struct diagnosis *d)
{
	struct pair_counts c;
	char sentence[512];

	topology_count(d->topology, &c);
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "sentence",
			 json_text(diagnosis_verdict(d, sentence, sizeof(sentence))), "pairs",
			 (json_int_t)c.pairs, "direct", (json_int_t)c.by_verdict[PAIR_DIRECT],
			 "suspect", (json_int_t)c.by_verdict[PAIR_SUSPECT], "blocked",
			 (json_int_t)c.by_verdict[PAIR_BLOCKED], "undecided",
			 (json_int_t)c.by_verdict[PAIR_UNDECIDED]);
}

json_t *report_check_json(const struct diagnosis *d)
{
	json_t *o = json_head("check"), *findings = json_array(), *outcomes = json_array();

	json_object_set_new(o, "machine", report_machine_json(d->topology->machine));
	set_pairs(o, d->topology);
	for (size_t i = 0; i < d->finding_n; i++)
		json_array_append_new(findings, finding_json(&d->findings[i]));
	for (size_t i = 0; i < d->outcome_n; i++)
		json_array_append_new(outcomes, outcome_json(&d->outcomes[i]));
	json_object_set_new(o, "findings", findings);
	json_object_set_new(o, "rules", outcomes);
	json_object_set_new(o, "verdict", verdict_json(d));
	return o;
}

json_t *report_topology_json(const struct topology *t)
{
	json_t *o = json_head("topo");

	json_object_set_new(o, "machine", report_machine_json(t->machine));
	set_pairs(o, t);
	return o;
}
