/* SPDX-License-Identifier: Apache-2.0 */
/* All ordered pairs of a run: who runs when, in which worker, and what happens when one hangs. */
#pragma once

#include "bench/all_reduce_check.h"
#include "bench/paths.h"

enum test_phase {
	TEST_LOCAL,      /* each device, its own memory */
	TEST_COPIES,     /* writes and reads, every ordered pair */
	TEST_ROUND_TRIP, /* flags between running kernels, every pair whose copies are right */
	TEST_PATTERNS,   /* uses in which paths with correct copies fail (bench/pattern.h) */
	TEST_ALL_REDUCE, /* all devices at once */
	TEST_PHASE_N,
};

const char *test_phase_word(enum test_phase p); /* "copies" */

/*
 * What is about to run, or has ended. Indexes of devices in the run; for TEST_ALL_REDUCE both -1.
 */
struct test_step {
	enum test_phase phase;
	int initiator, target;
	const struct pair_result *result; /* when it ended; NULL in TEST_ALL_REDUCE */
	size_t left;                      /* steps of the phase that have not begun */
};

/* Calls come one at a time, from any thread. NULL: not wanted. */
struct test_hooks {
	void *context;
	/* Before a step: an error keeps it from being run. This is where it is put on disk. */
	int (*begins)(void *context, const struct test_step *step);
	void (*ended)(void *context, const struct test_step *step);
	/* True: what runs may end, nothing new is begun. */
	bool (*stopped)(void *context);
};

struct test_request {
	struct device_request devices; /* all of them; numbers identify them, 0 to 255 */
	/* Expected addresses of the CUDA ordinals; another device is left out. "" or NULL: any. */
	const char *pci[DEVICE_MAX];
	/* Opens one device, of a request for that one. From any thread. */
	int (*open)(void *context, const struct device_request *one, struct device_set **ret);
	void *open_context;
	/* which pairs share links, and what to expect; NULL: nothing known */
	const struct paths *paths;
	/*
	 * n squared: what an earlier run found, on the diagonal of own memory; PAIR_NOT_RUN: to be
	 * tested. NULL: all.
	 */
	const struct pair_result *known;
	/* over P2P: the machine stopped during an earlier run's; not run */
	bool all_reduce_suspect;
	uint64_t memory_bytes; /* of each device, at most; 0: half of what is free */
	uint64_t limit_us;     /* of one transfer; 0: TEST_LIMIT_US */
	double long_s;         /* all of the last memory too, and load for so long; 0: no */
	unsigned informs;      /* PATTERN_BIT of those that are run for information */
};

#define TEST_LIMIT_US 5000000ul

struct test_device {
	struct device_info info; /* number is valid in any case */
	char sentence
		[BENCH_SENTENCE]; /* why it could not be opened, or opened again; "": it could */
	struct pair_result local;
	unsigned restarts; /* of its worker, after something hung or died */
};

struct test_result {
	size_t n;
	struct test_device *devices;
	struct pair_result *pairs; /* n squared, row initiator; the diagonal is not used */
	struct arm_result arms[ARM_N];
	unsigned informs;       /* the request's */
	size_t rounds;          /* of the copies: so many groups of pairs ran one after the other */
	double start_s, test_s; /* driver and workers; the tests themselves */
	bool stopped;
};

struct pair_result *test_pair(const struct test_result *r, size_t initiator, size_t target);

/*
 * Runs what there is to run; a device or a pair that fails does not keep the others from being
 * tested. 0, or a negative errno when nothing could be begun: no memory, or an invalid request.
 */
int test_run(const struct test_request *request, const struct test_hooks *hooks,
	     struct test_result *ret);
void test_result_done(struct test_result *r);
