/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct figures as JSON and back (docs/json.md). Only this file and figures_json_old.c use jansson
 * here.
 */
#pragma once

#include "result/figures.h"

#include <jansson.h>

#define FIGURES_SCHEMA         "onehop-figures"
#define FIGURES_SCHEMA_VERSION 2

/* Returns a new reference. */
json_t *figures_to_json(const struct figures *f);
/*
 * Also reads what release 0.1.0 wrote: figures, test --json, observed.json. -EINVAL with a sentence
 * if it is something else, or a member has the wrong type.
 */
int figures_from_json(const json_t *json, const char *name, struct figures **ret);
/* Whether the JSON claims to be a result of onehop. */
bool figures_json_recognise(const json_t *json);
