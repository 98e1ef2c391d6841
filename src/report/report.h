/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a diagnosis or a topology into a document for people or into JSON (docs/json.md). */
#pragma once

#include "diagnose/diagnose.h"
#include "ingest/nccl_log.h"
#include "report/document.h"
#include "result/comparison.h"

#include <jansson.h>

struct plan;
struct requirements;

#define JSON_SCHEMA_VERSION 3
/* The number as a string literal, for help texts. */
#define JSON_SCHEMA_TEXT       JSON_SCHEMA_TEXT_OF(JSON_SCHEMA_VERSION)
#define JSON_SCHEMA_TEXT_OF(n) JSON_SCHEMA_LITERAL(n)
#define JSON_SCHEMA_LITERAL(n) #n

/* What `onehop fix` would do about a diagnosis. */
struct check_fixes {
	const struct plan *plan;
	const struct change_set *changes;
	bool observed; /* it weighs results of --observed, so that fix has to be given them too */
	bool no_store; /* --no-observed, likewise */
};

/* "LnkSta of 0000:41:00.0: x8, expected x16 (FILE)". Here for tests. */
void report_evidence(struct strbuf *out, const struct evidence *e);

/* What `onehop check` prints: machine, pair matrix, verdict, findings, what could not be seen.
 * `fixes` NULL: of fixes nothing is said. */
void report_check(struct document *out, const struct diagnosis *d, const struct check_fixes *fixes,
		  bool verbose);
/* `check -q`: the verdict alone. */
void report_verdict(struct document *out, const struct diagnosis *d);
/*
 * The commands whose output would decide, one a line, each with what it tells as a shell comment.
 */
void report_questions(struct document *out, const struct diagnosis *d);
/* What could cause a symptom (enum symptom), of the pair of GPUs a and b, -1: of any. */
void report_symptom(struct document *out, const struct diagnosis *d, int symptom, int a, int b);
/* "Required: ...", for each that was asked for. */
void report_requirements(struct document *out, const struct requirements *all);
/* Lines on the results of earlier runs that were weighed, and those that no longer hold. */
void report_weighed(struct document *out, const struct machine *m);
/* What `onehop topo` prints: devices, matrix with verdicts, why each pair is not direct. */
void report_topology(struct document *out, const struct diagnosis *d);
/*
 * The drawing of `topo --svg`, with each finding at its device; in a page marks and findings link
 * to each other.
 */
void report_drawing(const struct diagnosis *d, bool in_page, struct strbuf *out);
/*
 * What `onehop report` prints: the machine as check does (NULL: none), then every result, and of
 * one tool what changed from the oldest to the newest. `results`: of one tool together, the oldest
 * first. `left_out`: why the machine is not judged by some of them.
 */
void report_all(struct document *out, const struct diagnosis *d, const struct check_fixes *fixes,
		struct figures *const *results, size_t n, const struct texts *left_out);
/* Every metric of a result, with what was expected of it. */
void report_figures(struct document *out, const struct figures *f);
/* The same for pages alone; NULL does nothing. */
void add_page_figures(struct document *out, const struct figures *f);
/* What `onehop compare` prints; `pair`: two indexes of GPUs of `before`, NULL for those that changed
   most. */
void report_compare(struct document *out, const struct comparison *c, const int *pair,
		    bool verbose);
/* What `onehop log` prints: the way of each pair, why not P2P, what to do. */
void report_log(struct document *out, const struct nccl_log *l, bool verbose);
/* `onehop --formats`, and the table of docs/texts.md. */
void report_formats(struct document *out);
void report_formats_markdown(struct strbuf *out);
/* `check --explain ID` and `check --list`. */
void report_rule(struct document *out, const struct rule *rule);
void report_rule_list(struct document *out);
/* docs/rules.md and the source of onehop-rules(7), whole. */
void report_rules_markdown(struct strbuf *out);
void report_rules_scdoc(struct strbuf *out);

/* --format csv (docs/csv.md): a row for each figure, and for each ordered pair. */
void report_figures_csv(struct strbuf *out, const struct figures *f);
void report_compare_csv(struct strbuf *out, const struct comparison *all);
void report_topology_csv(struct strbuf *out, const struct topology *t);

/* New references; the caller decrefs. */
/* `check --list --json`, and with one rule `--explain ID --json`. */
json_t *report_rules_json(const struct rule *only);
json_t *report_check_json(const struct diagnosis *d);
/* "requirements" of `check --require --json`. */
json_t *report_requirements_json(const struct requirements *all);
/* "symptom" of `check --symptom --json`. */
json_t *report_symptom_json(const struct diagnosis *d, int symptom, int a, int b);
json_t *report_topology_json(const struct topology *t);
json_t *report_compare_json(const struct comparison *c);
json_t *report_log_json(const struct nccl_log *l);
