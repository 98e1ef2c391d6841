/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of several threads on the host: native_team.c for native.c. */
#pragma once

#include "kernels/native.h"

/*
 * Calls run(args) in each thread of a block, which meet at its barriers. The caller is thread 0.
 * Where so many cannot be started, in one thread alone.
 */
void native_team_run(const struct native_block *block, u32 threads, void (*run)(const void *args),
		     const void *args);
