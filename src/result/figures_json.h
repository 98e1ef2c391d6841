/* SPDX-License-Identifier: Apache-2.0 */
/* struct figures as JSON and back (docs/json.md): the one file of this layer that knows jansson. */
#pragma once

#include "result/figures.h"

#include <jansson.h>

#define FIGURES_SCHEMA         "onehop-figures"
#define FIGURES_SCHEMA_VERSION 2

/* A new reference. */
json_t *figures_to_json(const struct figures *f);
/*
 * Also what the first release wrote: figures, test --json, observed.json. -EINVAL with a sentence when it
 * is something else, or a member has the wrong type.
 */
int figures_from_json(const json_t *json, const char *name, struct figures **ret);
/* Whether the JSON says that it holds a result of onehop. */
bool figures_json_recognise(const json_t *json);
