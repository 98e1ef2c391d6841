/* SPDX-License-Identifier: Apache-2.0 */
/* What `check --json` and `topo --json` print; docs/json.md describes it. */
#include "report/report_json_impl.h"

#include "base/strbuf.h"

#include <inttypes.h>
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

/* What pairs refer to: many have a link or a way in common. */
struct shared_paths {
	struct json_shared links, ways;
};

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

static json_t *link_number(const struct path *p, enum chain_step step, struct json_shared *links)
{
	const struct chain_link *l = &p->chain[step];
	AUTO_STRBUF struct strbuf key = {0};
	json_t *number;

	strbuf_printf(&key, "%d %d %d %p %" PRId64 " %" PRId64 " %s %s", (int)step, (int)l->state,
		      (int)l->reason, (const void *)l->at, l->value, l->value2,
		      l->from ? l->from : "", l->text ? l->text : "");
	number = json_shared_number(links, strbuf_str(&key));
	return number ? number : json_shared_add(links, strbuf_str(&key), link_json(p, step));
}

static json_t *chain_json(const struct path *p, struct json_shared *links)
{
	json_t *chain = json_array();

	for (int s = 0; s < CHAIN_STEP_N; s++) {
		if (p->chain[s].state != CHAIN_NA)
			json_array_append_new(chain, link_number(p, (enum chain_step)s, links));
	}
	return chain;
}

static json_t *bottleneck_json(const struct path *p)
{
	if (!p->bottleneck)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "at", json_pci_name(p->bottleneck), "speed_mtps",
			 json_known_int(p->bottleneck_speed), "width",
			 json_known_int(p->bottleneck_width));
}

/* 0 stands for unknown in the model; JSON says null. */
static json_t *gbps_json(double gbps)
{
	return gbps > 0 ? json_real(gbps) : json_null();
}

static json_t *way_json(const struct path *p)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
			 path_class_word(p->class), "pci_path", path_class_word(p->pci_class),
			 "tree_path", path_class_word(p->tree_class), "nvlinks",
			 json_known_int(p->nvlinks), "common_bridge", json_pci_name(p->common),
			 "initiator_port", json_pci_name(p->initiator_port), "target_port",
			 json_pci_name(p->target_port), "bottleneck", bottleneck_json(p),
			 "link_gbps", gbps_json(p->link_gbps), "expected_gbps",
			 gbps_json(p->expected_gbps));
}

static json_t *way_number(const struct path *p, struct json_shared *ways)
{
	json_t *number;
	char key[256];

	snprintf(key, sizeof(key), "%d %d %d %" PRId64 " %p %p %p %p %" PRId64 " %" PRId64 " %a %a",
		 (int)p->class, (int)p->pci_class, (int)p->tree_class, fact_or(p->nvlinks, -1),
		 (const void *)p->common, (const void *)p->initiator_port,
		 (const void *)p->target_port, (const void *)p->bottleneck,
		 fact_or(p->bottleneck_speed, -1), fact_or(p->bottleneck_width, -1), p->link_gbps,
		 p->expected_gbps);
	number = json_shared_number(ways, key);
	return number ? number : json_shared_add(ways, key, way_json(p));
}

static json_t *pair_json(const struct topology *t, size_t i, size_t j, struct shared_paths *shared)
{
	const struct path *p = topology_path(t, i, j);
	bool judged = i < t->gpu_n || j < t->gpu_n;
	char name[16];

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "initiator",
			 json_text(t->endpoints[i].name), "target", json_text(t->endpoints[j].name),
			 "class", json_text(path_class_name(p, name, sizeof(name))), "verdict",
			 judged ? json_text(pair_verdict_word(p->verdict)) : json_null(),
			 "first_bad",
			 p->first_bad < CHAIN_STEP_N ? json_text(chain_step_word(p->first_bad))
						     : json_null(),
			 "way", way_number(p, &shared->ways), "chain",
			 judged ? chain_json(p, &shared->links) : json_array());
}

static void set_pairs(json_t *o, const struct topology *t)
{
	json_t *endpoints = json_array(), *pairs = json_array();
	struct shared_paths shared;

	json_shared_start(&shared.links);
	json_shared_start(&shared.ways);
	for (size_t i = 0; i < t->endpoint_n; i++) {
		json_array_append_new(endpoints, endpoint_json(&t->endpoints[i]));
		for (size_t j = 0; j < t->endpoint_n; j++) {
			if (i != j)
				json_array_append_new(pairs, pair_json(t, i, j, &shared));
		}
	}
	json_object_set_new(o, "endpoints", endpoints);
	json_object_set_new(o, "ways", json_shared_finish(&shared.ways));
	json_object_set_new(o, "links", json_shared_finish(&shared.links));
	json_object_set_new(o, "pairs", pairs);
}

static void set_machine(json_t *o, const struct machine *m)
{
	struct json_origins origins;

	json_origins_start(&origins);
	json_object_set_new(o, "machine", machine_json(m, &origins));
	json_origins_finish(&origins, o);
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

static json_t *evidence_json(const struct evidence *e)
{
	json_t *o = json_pack("{s:o}", "what", json_text(e->what));

	if (e->value)
		json_object_set_new(o, "value", json_text(e->value));
	if (e->expected)
		json_object_set_new(o, "expected", json_text(e->expected));
	if (e->from)
		json_object_set_new(o, "from", json_text(e->from));
	return o;
}

static json_t *finding_json(const struct finding *f)
{
	json_t *evidence = json_array();

	for (size_t i = 0; i < f->evidence_n; i++)
		json_array_append_new(evidence, evidence_json(&f->evidence[i]));
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "rule",
			 f->rule->id, "severity", severity_word(f->severity), "confidence",
			 confidence_word(f->confidence), "about", subject_word(f->about.kind),
			 "subject", json_text(f->subject), "sentence", json_text(f->sentence),
			 "remedy", json_text(f->remedy), "evidence", evidence, "pairs",
			 (json_int_t)f->pairs, "pci", json_pci_name(f->pci), "devices",
			 devices_json(f));
}

static json_t *outcome_json(const struct outcome *o)
{
	json_t *outcome =
		json_pack("{s:s, s:s}", "id", o->rule->id, "outcome", verdict_word(o->verdict));

	if (o->verdict == VERDICT_UNKNOWN) {
		json_object_set_new(outcome, "why", json_text(o->why));
		json_object_set_new(outcome, "root_would_tell", json_boolean(o->root_would_tell));
		json_object_set_new(outcome, "cut_off", json_boolean(o->cut_off));
	}
	return outcome;
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

	set_machine(o, d->topology->machine);
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

	set_machine(o, t->machine);
	set_pairs(o, t);
	return o;
}
