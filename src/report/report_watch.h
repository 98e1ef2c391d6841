/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `check --watch` prints: a line with the time for each thing that is new, or an object a
 * line.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct strbuf;

/* Of the first look: its verdict. `now` and `last`: as report_check_json. */
void report_watch_begin(struct strbuf *out, const json_t *now, bool json);
/* Facts that changed since the last look, and lines of the kernel log that came. */
void report_watch_changes(struct strbuf *out, const json_t *last, const json_t *now, bool json);
/* Why the machine cannot be read; NULL: it can be read again. */
void report_watch_error(struct strbuf *out, const char *error, bool json);
