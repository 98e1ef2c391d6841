/* SPDX-License-Identifier: Apache-2.0 */
/* What `env --json` prints; docs/json.md describes it. */
#include "diagnose/advice.h"
#include "ingest/shell_script.h"
#include "report/report_env.h"
#include "report/report_json_impl.h"

static json_t *reason_json(const struct finding *f)
{
	return json_pack("{s:s, s:o, s:o, s:s}", "rule", f->rule->id, "subject",
			 json_text(f->subject), "sentence", json_text(f->sentence), "confidence",
			 confidence_word(f->confidence));
}

static json_t *measured_json(const struct observed *o)
{
	if (!o)
		return json_null();
	return json_pack("{s:i, s:i, s:f, s:f, s:o}", "initiator", o->initiator, "target",
			 o->target, "gbps", o->value, "gbps_p2p_off", o->off, "from",
			 json_text(o->from));
}

static json_t *variable_json(const struct advice_variable *v)
{
	json_t *reasons = json_array();

	for (size_t i = 0; i < v->finding_n; i++)
		json_array_append_new(reasons, reason_json(v->findings[i]));
	return json_pack("{s:s, s:s, s:o, s:b, s:b, s:o, s:o}", "library",
			 library_name(library_of_variable(v->variable->name)), "name",
			 v->variable->name, "value", json_text(v->value), "sure", (int)v->sure,
			 "set", v->set != NULL, "reasons", reasons, "measured",
			 measured_json(v->measured));
}

static json_t *setting_json(const struct finding *f)
{
	return json_pack("{s:o, s:o, s:o, s:s, s:s, s:s, s:o, s:o}", "name",
			 json_text(f->setting->name), "value", json_text(f->setting->value), "from",
			 json_text(f->setting->from), "rule", f->rule->id, "severity",
			 severity_word(f->severity), "confidence", confidence_word(f->confidence),
			 "sentence", json_text(f->sentence), "remedy", json_text(f->remedy));
}

static json_t *way_json(const struct chain_link *l)
{
	char sentence[512];

	return json_pack("{s:s, s:s, s:o}", "state", chain_state_word(l->state), "reason",
			 chain_reason_word(l->reason), "sentence",
			 json_text(chain_explain(NULL, l, sentence, sizeof(sentence))));
}

static json_t *nic_json(const struct advice_nic *n)
{
	json_t *o = json_pack("{s:o, s:o, s:o}", "gpu", json_pci_name(n->gpu->pci), "cuda_ordinal",
			      json_known_int(n->gpu->cuda_ordinal), "nic",
			      json_text(n->nic ? n->nic->name : NULL));

	if (!n->nic)
		return o;
	json_object_set_new(o, "port", json_integer(n->port));
	json_object_set_new(o, "path", json_string(path_class_word(n->class)));
	json_object_set_new(o, "near", json_integer((json_int_t)n->equal));
	json_object_set_new(o, "dma_buf", way_json(&n->preflight.dma_buf));
	json_object_set_new(o, "peermem", way_json(&n->preflight.peermem));
	json_object_set_new(o, "direct", json_pci_name(n->preflight.direct));
	json_object_set_new(o, "address", json_string(port_address_word(n->preflight.address)));
	return o;
}

static json_t *unread_json(const struct env_unread *u)
{
	json_t *list = json_array();

	for (size_t i = 0; i < u->n; i++)
		if (!u->settings[i].value)
			json_array_append_new(list, json_pack("{s:o, s:i}", "name",
							      json_text(u->settings[i].name),
							      "line", (int)u->settings[i].line));
	return list;
}

json_t *report_env_json(const struct diagnosis *d, const struct advice *a,
			const struct env_unread *unread)
{
	const struct machine *m = d->topology->machine;
	json_t *o = json_head("env"), *variables = json_array(), *settings = json_array();
	json_t *nics = json_array();
	char buf[32];

	for (size_t i = 0; i < a->variable_n; i++)
		json_array_append_new(variables, variable_json(&a->variables[i]));
	for (size_t i = 0; i < a->setting_n; i++)
		json_array_append_new(settings, setting_json(a->settings[i]));
	for (size_t i = 0; a->nics && i < d->topology->gpu_n; i++)
		json_array_append_new(nics, nic_json(&a->nics[i]));
	json_object_set_new(o, "nccl_version",
			    fact_known(m->nccl.version)
				    ? json_string(nccl_version_format(
					      nccl_version_number(m->nccl.version.value), buf,
					      sizeof(buf)))
				    : json_null());
	json_object_set_new(o, "variables", variables);
	json_object_set_new(o, "settings", settings);
	json_object_set_new(o, "unread", unread_json(unread));
	json_object_set_new(o, "nics", nics);
	return o;
}
