/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of native_flaw.c for native.c. */
#pragma once

#include "kernels/native.h"

/* NULL: none requested, or out of memory. */
struct native_block_flaw *native_flaw_new(const struct native_flaw *flaw);
/* Stores everything that was held back. NULL is allowed. */
void native_flaw_free(struct native_block_flaw *f);
