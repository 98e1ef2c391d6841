/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tables of rules about NCCL and other libraries share; for rules_nccl*.c and
 * rules_libraries.c only.
 */
#pragma once

#include "diagnose/rules.h"
#include "diagnose/variables.h"

#define NCCL_ENV "NCCL user guide, environment variables"

/* clang-format off */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): s is declared */
#define FOR_EACH_SETTING(s, run) \
	FOR_EACH_IN (struct setting, s, (run)->m->nccl.settings, (run)->m->nccl.setting_n) \
		if (s->in_force)
/* clang-format on */

/* The number in force, or `otherwise`. */
int64_t setting_number(const struct machine *m, const char *name, int64_t otherwise);
bool setting_is(const struct setting *s, enum variable_kind kind);
/* "NCCL_P2P_LEVEL (environment)", and the value as evidence. */
struct subject subject_setting(struct rule_run *run, const struct setting *s);
void show_setting(struct rule_run *run, struct finding *f, const struct setting *s);

/* It repeats what the library does without it, in this release of NCCL; 0: not known. */
bool setting_is_default(const struct setting *s, int version);

/* The version in use in today's form; 0: not known. */
int nccl_version(struct rule_run *run);
const char *nccl_text(struct rule_run *run, int version); /* "NCCL 2.28.9" */
void evidence_nccl(struct rule_run *run, struct finding *f);
