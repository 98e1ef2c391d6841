/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop unlock` prints: about a tree of driver sources, and about a machine. */
#pragma once

#include "report/document.h"
#include "unlock/requirements.h"
#include "unlock/unlock.h"

#include <jansson.h>

/* What a run was asked for, which decides what is said. */
enum unlock_mode { UNLOCK_PLAN, UNLOCK_DIFF, UNLOCK_EXPLAIN, UNLOCK_APPLY, UNLOCK_REVERT };

void report_unlock(struct document *out, const struct unlock *u, enum unlock_mode mode);
json_t *report_unlock_json(const struct unlock *u, enum unlock_mode mode);

/*
 * report_unlock_requirements.c: without a tree, what the machine needs. by_hand: with the commands
 * for doing it without `onehop unlock --sources` or `--apply`; they are there in any case where
 * neither does it.
 */
void report_unlock_requirements(struct document *out, const struct machine *m,
				const struct unlock_requirements *n, bool by_hand);
json_t *report_unlock_requirements_json(const struct machine *m,
					const struct unlock_requirements *n);
