/* SPDX-License-Identifier: Apache-2.0 */
/* What native.c has of native_flaw.c. */
#pragma once

#include "kernels/native.h"

/* NULL: none is wanted, or there is no memory. */
struct native_block_flaw *native_flaw_new(const struct native_flaw *flaw);
/* What was held back is stored. NULL is well. */
void native_flaw_free(struct native_block_flaw *f);
