/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels as functions of this process, for the host back end. */
#pragma once

#include "kernels/args.h"

#include <stddef.h>

/* Simulated flaws of a kernel's plain loads and stores to other devices' memory. */
enum native_flaw_kind {
	NATIVE_FLAW_NONE,
	NATIVE_CACHED,   /* a value that a kernel has loaded stays the same until the kernel ends */
	NATIVE_OVERTAKE, /* stores become visible with the next flag that goes the same way */
	NATIVE_ASTRAY,   /* loads are a page off */
	NATIVE_LOSSY,    /* every sixteenth atomic addition is lost */
};

struct native_flaw {
	enum native_flaw_kind kind;
	u64 from, to; /* the addresses that are affected */
};

struct native_block_flaw;
struct native_team;

/* Which block a thread is running, and as which of its threads. */
struct native_block {
	u32 id, count;
	u32 thread;
	struct native_team *team;       /* NULL: the block is this thread alone */
	const u32 *closing;             /* not 0: kernels that wait give up */
	struct native_block_flaw *flaw; /* NULL: none */
};

extern _Thread_local struct native_block native_block;

/* ---- for kernels/device.h ---- */

/* Where a load of 16 bytes is served from. */
u64 native_flaw_load(struct native_block_flaw *f, u64 address);
/* Whether it took the 16 bytes, to store them later. */
int native_flaw_store(struct native_block_flaw *f, u64 address, const void *bytes);
int native_flaw_loses_add(struct native_block_flaw *f, u64 address);
/* Before a flag is stored. */
void native_flaw_release(struct native_block_flaw *f, u64 address);

u32 native_team_size(const struct native_team *t);
/* A barrier; the other two are barriers as well. */
void native_team_meet(struct native_team *t);
u32 native_team_first(struct native_team *t, u32 mine); /* thread 0's value */
u32 native_team_any(struct native_team *t, u32 mine);   /* whether any thread's is not 0 */

/* ---- for the host back end ---- */

#define NATIVE_THREADS_MAX 32u /* of a block */

/* Of kernel number k in KERNELS. */
size_t native_args_size(unsigned k);
/*
 * Runs one block in this thread and threads - 1 more, or in this one alone where there is a flaw or
 * so many cannot be started. Without memory for the flaw, none is simulated.
 */
void native_run(unsigned k, const struct native_block *block, u32 threads,
		const struct native_flaw *flaw, const void *args);
