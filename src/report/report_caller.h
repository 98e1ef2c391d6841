/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `check --for CALLER` answers to programs that run it: their exit codes, one line, metrics.
 */
#pragma once

#include "session/require.h"

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/* What a caller wants. Its row is all that onehop knows of it. */
struct caller {
	const char *name;
	/* Exit codes by what check finds. `unrequired`: unknown, and nothing was required. */
	int ok, finding, unknown, unrequired;
	size_t line_max; /* bytes of a line, without its end */
	size_t lines;    /* findings that are named, one a line */
	bool metrics;    /* it reads metrics, whatever was found */
};

/* In the order of caller_words, which is the choices of --for. */
extern const struct caller callers[];
extern const char *const caller_words[];

/* The exit code for a verdict. */
int caller_code(const struct caller *c, enum verdict v, bool required);
/*
 * Nothing if all is well. Else lines of plain ASCII that begin with the cause. `threshold`:
 * findings count from this severity on.
 */
void report_caller(struct strbuf *out, const struct caller *c, const struct diagnosis *d,
		   const struct requirements *r, enum verdict v, int threshold);
/*
 * A line of that length at most, without anything but printable ASCII; a longer text ends in "...".
 */
void caller_line(struct strbuf *out, const struct caller *c, const char *text);

/* Metrics in the text format of Prometheus. `now`: seconds since 1970. */
void report_metrics(struct strbuf *out, const struct diagnosis *d, long long now);
