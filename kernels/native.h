/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels as functions of this process, for the host back end. */
#pragma once

#include "kernels/args.h"

#include <stddef.h>

/* Which block a thread is running. */
struct native_block {
	u32 id, count;
	const u32 *closing; /* not 0: kernels that wait give up */
};

extern _Thread_local struct native_block native_block;

/* Of kernel number k in KERNELS. */
size_t native_args_size(unsigned k);
/* Runs one block in this thread. */
void native_run(unsigned k, const struct native_block *block, const void *args);
