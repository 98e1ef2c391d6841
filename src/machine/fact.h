/* SPDX-License-Identifier: Apache-2.0 */
/* A fact: a value that is known, known to be absent, or unknown with the reason. Unknown is never
 * zero. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum fact_state { FACT_UNKNOWN, FACT_KNOWN, FACT_ABSENT };

/*
 * `from` says where a known or absent fact was read, so that the reader can verify it (a path, a
 * register, a library call); for an unknown one it gives the reason ("needs root: ..."). NULL only
 * in a fact that was not collected (state FACT_UNKNOWN, all zero).
 */
struct fact_int {
	int64_t value;
	enum fact_state state;
	const char *from;
};

struct fact_str {
	const char *value; /* NULL unless known */
	enum fact_state state;
	const char *from;
};

static inline struct fact_int fact_int(int64_t value, const char *from)
{
	return (struct fact_int){value, FACT_KNOWN, from};
}

static inline struct fact_int fact_int_absent(const char *from)
{
	return (struct fact_int){0, FACT_ABSENT, from};
}

static inline struct fact_int fact_int_unknown(const char *why)
{
	return (struct fact_int){0, FACT_UNKNOWN, why};
}

static inline struct fact_str fact_str(const char *value, const char *from)
{
	return (struct fact_str){value, FACT_KNOWN, from};
}

static inline struct fact_str fact_str_absent(const char *from)
{
	return (struct fact_str){0, FACT_ABSENT, from};
}

static inline struct fact_str fact_str_unknown(const char *why)
{
	return (struct fact_str){0, FACT_UNKNOWN, why};
}

/* For facts of either type. */
#define fact_known(f)   ((f).state == FACT_KNOWN)
#define fact_absent(f)  ((f).state == FACT_ABSENT)
#define fact_unknown(f) ((f).state == FACT_UNKNOWN)

/* The reason starts with this if root could read the fact. */
#define FACT_NEEDS_ROOT "needs root"

static inline bool fact_why_needs_root(const char *why)
{
	return why && strncmp(why, FACT_NEEDS_ROOT, strlen(FACT_NEEDS_ROOT)) == 0;
}

/* The reason starts with this if a text ends, or has lines left out, where the fact would be. */
#define FACT_CUT "cut off at "

static inline bool fact_why_cut(const char *why)
{
	return why && strncmp(why, FACT_CUT, strlen(FACT_CUT)) == 0;
}

/*
 * Where a fact may be read from two places, the reason that says more: that one of them was cut
 * off.
 */
static inline bool fact_why_says_more(const char *why, const char *than)
{
	return !than || (fact_why_cut(why) && !fact_why_cut(than));
}

/* Why a fact is unknown. */
#define FACT_WHY(f) ((f).from ? (f).from : "not collected")

/* Known, and equal to v. */
static inline bool fact_is(struct fact_int f, int64_t v)
{
	return fact_known(f) && f.value == v;
}

/* Known, and different from v. */
static inline bool fact_is_not(struct fact_int f, int64_t v)
{
	return fact_known(f) && f.value != v;
}

/* The value, or `otherwise` if it is unknown. */
static inline int64_t fact_or(struct fact_int f, int64_t otherwise)
{
	return fact_known(f) ? f.value : otherwise;
}

static inline const char *fact_str_or(struct fact_str f, const char *otherwise)
{
	return fact_known(f) ? f.value : otherwise;
}

/* Known, and equal to this text. */
static inline bool fact_str_is(struct fact_str f, const char *text)
{
	return fact_known(f) && strcmp(f.value, text) == 0;
}
