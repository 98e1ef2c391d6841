/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop fleet` prints. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct document;
struct fleet;
struct fleet_change;
struct strbuf;

/* Groups, who differs and how, the most important first; `verbose`: all of it. */
void report_fleet(struct document *out, const struct fleet *f, bool verbose);
/* New reference; it can be an argument of `onehop fleet` again. */
json_t *report_fleet_json(const struct fleet *f);
/* --format csv: a row for each host and difference. */
void report_fleet_csv(struct strbuf *out, const struct fleet *f);
/*
 * A line of check --watch: "ACSCtl of 0000:41:01.0 (bridge 1 above GPU3): 0000, now 001d"; and as
 * JSON, a new reference.
 */
void report_change(struct strbuf *out, const struct fleet_change *c);
json_t *report_change_json(const struct fleet_change *c);
