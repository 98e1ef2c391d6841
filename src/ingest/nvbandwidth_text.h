/* SPDX-License-Identifier: Apache-2.0 */
/* What nvbandwidth prints without -j: a matrix for each test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct figures;

/* "Running device_to_device_memcpy_read_ce." of a test that it has. */
bool nvbandwidth_begins(const char *line);
/* Whether a line can follow in its output. */
bool nvbandwidth_goes_on(const char *line);
bool nvbandwidth_recognise(const char *text, size_t size);
/* -EINVAL if no test can be read; a matrix that is cut is a trouble. */
int nvbandwidth_parse(const char *text, size_t size, const char *file, struct figures **ret);
