/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by engines on GPUs and the simulated ones of tests. */
#pragma once

#include "nccl/engine.h"
#include "nccl/streams.h"

#include <pthread.h>
#include <stdatomic.h>

struct engine {
	const void *handle;
	int rank, n;
	bool all;
	struct onehop_comm *comm;
	struct streams *streams; /* simulated: NULL */
	pthread_mutex_t lock;    /* ranks enqueue in the same order */
	atomic_int status;       /* NCCL's; the first failure stays */
	atomic_bool aborted;
	char reason[512];
	bool said[ONEHOP_OPERATION_N];
	bool opened; /* with all other ranks */
	unsigned long taken;
	atomic_ulong passed;
	/* Simulated: numbers of calls, which run in this order. */
	pthread_cond_t changed;
	unsigned long issued, turn;
};

/* In libonehop's own terms: 0 or a negative errno. */
int engine_enqueue(struct engine *e, const struct engine_call *c, void *stream);
void engine_failed(struct engine *e, int r);

/*
 * Only builds for tests have devices that are threads of this process (ONEHOP_SHIM_DEVICES=host).
 * Streams are then those of the host back end (device/host.h).
 */
#ifdef ONEHOP_SHIM_TEST
bool engine_simulated(void);
/* With the engine's lock held. */
int engine_simulate(struct engine *e, const struct engine_call *c);
/* How long ranks wait for each other: ONEHOP_SHIM_MEET_MS, so that tests need not. */
uint64_t engine_meet_us(uint64_t usual);
#else
static inline uint64_t engine_meet_us(uint64_t usual)
{
	return usual;
}

static inline bool engine_simulated(void)
{
	return false;
}

static inline int engine_simulate(struct engine *e, const struct engine_call *c)
{
	(void)e;
	(void)c;
	return -1;
}
#endif
