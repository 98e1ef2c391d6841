/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of results that the first release wrote besides figures; for figures_json.c only. */
#pragma once

#include "result/figures_json.h"

/*
 * test --json: for each pair that was tested whether the data was right, whether access was
 * refused, and the median round trip. -EINVAL with a sentence if no pair was tested.
 */
bool old_test_recognise(const json_t *json);
int old_test_read(const json_t *json, const char *file, struct figures **ret);
/* observed.json, which contains tests of several runs. */
bool old_kept_recognise(const json_t *json);
int old_kept_read(const json_t *json, const char *file, struct figures **ret);
