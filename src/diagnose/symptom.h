/* SPDX-License-Identifier: Apache-2.0 */
/* What could cause a symptom that a user states, by the facts of the machine. Pure. */
#pragma once

#include "diagnose/ask.h"

enum symptom {
	SYMPTOM_HANG,
	SYMPTOM_WRONG_DATA,
	SYMPTOM_SLOW,
	SYMPTOM_CRASH,
	SYMPTOM_REFUSED,
	SYMPTOM_N,
};

/* "hang", "wrong-data", ... as the option takes them; ends with a NULL. */
extern const char *const symptom_words[];

/* A cause that the facts do not exclude. */
struct suspect {
	const char *id;    /* stable: "iommu" */
	const char *cause; /* a clause: "an IOMMU blocks or redirects peer traffic" */
	const struct finding
		*finding;           /* that shows it; NULL: nothing does, and nothing excludes it */
	const struct outcome *open; /* the first rule that lacks a fact; NULL: none does */
	struct question decide;     /* the step that decides */
};

enum { SUSPECTS_MAX = 20 };

/*
 * The causes, the most likely first: those that a finding shows, by confidence and severity, then
 * the others, as often as they are the cause. A cause all of whose rules are fine is left out. `a`
 * and `b`: the GPUs of the pair that shows the symptom; -1: not stated. Returns how many.
 */
size_t diagnosis_suspects(const struct diagnosis *d, enum symptom s, int a, int b,
			  struct suspect ret[static SUSPECTS_MAX]);
/* The rules that causes name, in no order; NULL behind the last. Exported for tests. */
const char *symptom_rule(size_t index);
