/* SPDX-License-Identifier: Apache-2.0 */
/* Opens measured results of any supported tool. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct figures;

/* Whether figures_parse has a reader for this text. */
bool figures_recognise(const char *text, size_t size);
/*
 * The file's content decides: onehop's own JSON, p2pBandwidthLatencyTest, nccl-tests (table and
 * -J), nvbandwidth -j. What could not be read is listed in the troubles. Free with figures_free. 0,
 * or a negative errno with one sentence that names file and place.
 */
int figures_open(const char *path, struct figures **ret);
/*
 * The same for a text in memory, with a NUL after its size bytes. Exported for tests and fuzzers.
 */
int figures_parse(const char *text, size_t size, const char *name, struct figures **ret);
/* The same with separate results; the others merge several of one measurement. */
int figures_parse_each(const char *text, size_t size, const char *name, struct figures **ret);
