/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a test run share. */
#pragma once

#include "bench/rounds.h"
#include "bench/test_run.h"

#include <pthread.h>

/* A device of the run; used by one thread at a time, because a round has it once. */
struct slot {
	struct device_request *request; /* for this one device */
	struct device_set *set;
	struct bench_device device;
	bool open;
};

struct test_job {
	const struct test_request *request;
	const struct test_hooks *hooks;
	struct test_result *result;
	struct slot *slots;
	pthread_mutex_t lock; /* of the hooks */
	size_t left;
	size_t rounds;               /* of the phase */
	struct memory_export *flags; /* while patterns run: of each device, fd -1: none */
};

/* ---- one step ---- */

bool test_stopped(struct test_job *j);
/* False: one of both is not open, and the result says so. */
bool test_can_run(struct test_job *j, size_t a, size_t b, struct pair_result *result);
int test_begin(struct test_job *j, struct test_step *step);
void test_end(struct test_job *j, struct test_step *step, const struct pair_result *result);
/* After a hang or a death. */
void test_restart_both(struct test_job *j, size_t a, size_t b);

/* ---- all pairs of a phase ---- */

typedef bool wants_fn(const struct test_job *, size_t a, size_t b);
typedef void pair_fn(struct test_job *, struct test_step);

bool test_is_right(const struct test_job *j, size_t a, size_t b);
/* Those that share no link and no device run at the same time. */
int test_run_rounds(struct test_job *j, const struct paths *paths, enum test_phase phase,
		    wants_fn *wants, pair_fn *run);

/* The phase of the patterns (test_patterns.c). */
int test_patterns(struct test_job *j, const struct paths *paths);
