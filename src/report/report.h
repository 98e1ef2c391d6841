/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a diagnosis or a topology into a document for people or into JSON (docs/json.md). */
#pragma once

#include "diagnose/diagnose.h"
#include "report/document.h"

#include <jansson.h>

#define JSON_SCHEMA_VERSION 1

/* What `onehop check` prints: machine, pair matrix, findings, verdict, what could not be seen. */
void report_check(struct document *out, const struct diagnosis *d, bool verbose);
/* What `onehop topo` prints: devices, matrix with verdicts, why each pair is not direct. */
void report_topology(struct document *out, const struct topology *t);
/* `check --explain ID` and `check --list`. */
void report_rule(struct document *out, const struct rule *rule);
void report_rule_list(struct document *out);
/* docs/rules.md and the source of onehop-rules(7), whole. */
void report_rules_markdown(struct strbuf *out);
void report_rules_scdoc(struct strbuf *out);

/* New references; the caller decrefs. */
json_t *report_check_json(const struct diagnosis *d);
json_t *report_topology_json(const struct topology *t);
json_t *
report_machine_json(const struct machine *m); /* the facts, each with value, state and from */
