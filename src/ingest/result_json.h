/* SPDX-License-Identifier: Apache-2.0 */
/* Measured results as JSON: onehop's own, nccl-tests -J, nvbandwidth -j. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct figures;

/* An object in curly brackets; the parser determines which tool wrote it. */
bool result_json_recognise(const char *text, size_t size);
/* -EINVAL with a sentence if no known tool wrote it. */
int result_json_parse(const char *text, size_t size, const char *file, struct figures **ret);
