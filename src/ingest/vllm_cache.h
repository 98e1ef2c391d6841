/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vLLM keeps of its test of peer access (gpu_p2p_access_cache_for_0,1.json): whether bytes
 * that one GPU wrote arrived, for each ordered pair.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct figures;

bool vllm_cache_recognise(const char *text, size_t size);
/* Of a text with a NUL after its size bytes. 0, or a negative errno with one sentence. */
int vllm_cache_parse(const char *text, size_t size, const char *file, struct figures **ret);
/* Whether an answer for a pair begins here: `"0->1": true`. */
bool vllm_cache_begins(const char *s);
