/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of NCCL. */
#pragma once

#include <stdint.h>

/*
 * The version in a text that starts with one, "2.28.9" or "2.28.9+cuda13.0", as NCCL counts it:
 * 22809, and 2804 for 2.8.4. -1: none.
 */
int64_t nccl_version_of(const char *text);
/* The same of a library's file name, "libnccl.so.2.28.9"; -1: the name contains no version. */
int64_t nccl_version_of_file(const char *name);
