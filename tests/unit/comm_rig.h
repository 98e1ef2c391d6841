/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators on host devices, in this process and in several, and short ways to use them, for
 * tests.
 */
#pragma once

#include "base/array.h"
#include "collective/operation.h"
#include "device_rig.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The same numbers in each run. */
static u64 rig_seed = 1;

static inline u64 next_random(u64 below)
{
	rig_seed = rig_seed * 6364136223846793005ul + 1442695040888963407ul;
	return (rig_seed ^ rig_seed >> 29) % below;
}

/* The call failed as it should, and its sentence has this part. */
static inline void expect_error(int r, int wanted, const char *part)
{
	if (r != wanted || !strstr(err_msg(), part))
		fail_msg("%d, '%s': not %d, '%s'", r, err_msg(), wanted, part);
}

/* ---- all ranks in one process ---- */

/* How devices run kernels. */
struct rig_grid {
	unsigned blocks, threads; /* as in struct host_options */
};

static struct rig_grid rig_grid;

/* As on GPUs, where some threads of a block wait, others tell what is done, and all move data. */
static const struct rig_grid rig_grids[] = {{1, 2}, {2, 4}, {3, 1}, {1, 8}};

/* A communicator with a stream and two buffers for each rank. */
struct rig {
	size_t n;
	struct onehop_comm *comms[COLLECTIVE_RANKS_MAX];
	struct device_set *set;
	struct stream streams[COLLECTIVE_RANKS_MAX];
	void *native[COLLECTIVE_RANKS_MAX];
	struct memory in[COLLECTIVE_RANKS_MAX], out[COLLECTIVE_RANKS_MAX];
	/* of the host, as large as in and out, for tests that compare */
	unsigned char *sent[COLLECTIVE_RANKS_MAX], *got[COLLECTIVE_RANKS_MAX];
};

static inline struct device_request request_of(size_t n)
{
	struct device_request q = {.kind = DEVICE_HOST,
				   .n = n,
				   .host = {.memory_bytes = 64 << 20,
					    .blocks = rig_grid.blocks,
					    .threads = rig_grid.threads}};

	for (size_t i = 0; i < n; i++)
		q.number[i] = (int)i;
	return q;
}

static inline struct comm_options options_of(enum algorithm forced, bool no_p2p)
{
	return (struct comm_options){.limit_us = RIG_LIMIT_US, .no_p2p = no_p2p, .forced = forced};
}

/* `room`: bytes of a buffer. */
static inline void rig_start(struct rig *g, size_t n, size_t room, const struct comm_options *o)
{
	const struct device_request q = request_of(n);

	*g = (struct rig){.n = n};
	assert_ok(comm_open_all(&q, o, g->comms));
	g->set = g->comms[0]->shared->set;
	for (size_t i = 0; i < n; i++) {
		g->streams[i] = rig_stream(g->set, (int)i);
		assert_ok(g->set->ops->stream_native(g->set, g->streams[i], &g->native[i]));
		g->in[i] = rig_alloc(g->set, (int)i, room);
		g->out[i] = rig_alloc(g->set, (int)i, room);
		g->sent[i] = malloc(room);
		g->got[i] = malloc(room);
		assert_true(g->sent[i] && g->got[i]);
	}
}

static inline void rig_stop(struct rig *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->sent[i]);
		free(g->got[i]);
		comm_close(g->comms[i]);
	}
}

static inline void rig_wait_all(struct rig *g)
{
	for (size_t i = 0; i < g->n; i++)
		rig_wait(g->set, g->streams[i]);
	for (size_t i = 0; i < g->n; i++)
		assert_ok(comm_check(g->comms[i]));
}

/* From the rank's buffer `in` to its buffer `out`, in its stream; `what`: all else. */
static inline int rig_enqueue(struct rig *g, size_t rank, enum operation o,
			      struct operation_call what)
{
	what.in = (const void *)rig_address(g->set, &g->in[rank], (int)rank);
	what.out = (void *)rig_address(g->set, &g->out[rank], (int)rank);
	what.stream = g->native[rank];
	return operation_enqueue(g->comms[rank], o, &what);
}

/* ---- ranks that are processes ---- */

/* `member` returns 0 or a negative errno. */
static inline pid_t rig_fork(int (*member)(const void *party, int rank), const void *party,
			     int rank)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(-member(party, rank));
	return pid;
}

/* What the process ended with: an errno, or 255 for a signal. */
static inline int rig_end_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}
