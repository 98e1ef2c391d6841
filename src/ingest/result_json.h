/* SPDX-License-Identifier: Apache-2.0 */
/* Measured results as JSON: onehop's own, nccl-tests -J, nvbandwidth -j. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct figures;

/* An object in curly brackets; the parser determines which tool wrote it. */
bool result_json_recognise(const char *text, size_t size);
/* Whether it is a result that result_json_parse reads, as far as its start shows. */
bool result_json_is_result(const char *text, size_t size);
/* -EINVAL with a sentence if no known tool wrote it. */
int result_json_parse(const char *text, size_t size, const char *file, struct figures **ret);
/* Of an object that nvbandwidth -j writes. 0. */
int nvbandwidth_figures(const json_t *json, const char *file, struct figures **ret);
