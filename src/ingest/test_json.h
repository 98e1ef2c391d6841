/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop test --json` prints, as figures. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct figures;

bool test_json_recognise(const json_t *json);
/*
 * For each pair that was tested whether the data were right, whether access was refused, and the
 * median round trip. -EINVAL with a sentence when no pair was.
 */
int test_json_parse(const json_t *json, const char *file, struct figures **ret);
