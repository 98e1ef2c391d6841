/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of p2pBandwidthLatencyTest (CUDA samples), whole or the matrices only, and what
 * simpleP2P and TensorRT-LLM say about the access of pairs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct figures;

bool p2p_test_recognise(const char *text, size_t size);
/* An engine's line about a pair without peer access. */
bool p2p_test_is_refusal(const char *line);
/*
 * Matrices become rows, each from its line; what the host needs to issue copies ("CPU") is left
 * out. -EINVAL if no matrix can be read; an incomplete matrix is a trouble.
 */
int p2p_test_parse(const char *text, size_t size, const char *file, struct figures **ret);
