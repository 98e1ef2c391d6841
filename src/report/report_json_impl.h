/* SPDX-License-Identifier: Apache-2.0 */
/* How values become JSON; for report_json*.c only. */
#pragma once

#include "report/report.h"
#include "report/report_json_facts.h"

/* An object with what every command's JSON starts with. */
json_t *json_head(const char *command);
/* A string, cleaned of what JSON cannot hold; null for NULL. */
json_t *json_text(const char *s);
json_t *json_known_text(const char *s); /* the same; null for "" */
/* {"value": ..., "state": "known|absent|unknown", "from": ...}; the value is null unless known. */
json_t *json_fact_int(struct fact_int f);
json_t *json_known_int(struct fact_int f); /* the value, null unless known */
/* The facts; where they were read goes to the list. */
json_t *machine_json(const struct machine *m, struct json_origins *origins);
/* How a run failed, and what that means. */
json_t *run_failure_json(const struct run_failure *f);
json_t *json_pci_name(const struct pci_function *f); /* its address, null for NULL */
