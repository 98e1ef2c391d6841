/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of use in which paths fail that pass all copies, a row each. */
#pragma once

#include "bench/verify.h"

/* Two devices whose copies are right in both directions. */
struct pattern_pair {
	const struct bench_device *ends[2];
	struct pair_result *results[2]; /* of ends[0] -> ends[1], and of the opposite direction */
	const struct memory_export *third; /* flags of another device; NULL: there is none */
	uint64_t third_at;                 /* in it: PATTERN_THIRD_BYTES that no other pair uses */
	unsigned wanted;                   /* PATTERN_BIT of each pattern to run */
	double long_s;                     /* how long to load */
};

#define PATTERN_BIT(pattern) (1u << (pattern))

enum pattern_when { PATTERN_ALWAYS, PATTERN_LONG, PATTERN_INFORMATION };

#define PATTERN_THIRD_BYTES 512

struct pattern_row {
	const char *name;       /* "pull" */
	const char *title;      /* in sentences */
	enum pattern_when when; /* INFORMATION: what goes wrong is not a failure */
	bool one_way;           /* run once a direction: from ends[from]; else once, for both */
	const char *option;     /* of `onehop test`, that requests it; NULL: always run */
	int (*run)(const struct pattern_pair *p, unsigned from);
};

extern const struct pattern_row pattern_rows[PATTERN_N];

/* Those that are run then. */
unsigned pattern_bits(enum pattern_when when);
/* Those of a run: `informs` are requested for information. */
unsigned pattern_wanted(bool with_long, unsigned informs);
/* The first that finds the fault; PATTERN_NONE: copies and round trips do. */
enum pattern pattern_finding(enum fault_kind fault);
/* PATTERN_N: no such name. */
enum pattern pattern_parse(const char *name);

/*
 * Runs those that are wanted, up to the first that fails: it gives the results their kind and
 * sentence.
 */
void pattern_run(const struct pattern_pair *p);
/* Whether those that are wanted have been run, as far as they are offered. */
bool pattern_all_done(const struct pair_result *r, unsigned wanted);
/* "ok", "not-offered", "not-run", or the word of what is wrong. */
const char *pattern_result_word(const struct pattern_result *r);
