/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_comm cuda|host NCCL [PAIRS [CALLS]]: what the preloaded shim adds to calls of a communicator
 * that it passes on: all-reduces of one float64 between two devices, through the shim and past it,
 * on the same communicators, in turn. ONEHOP_SHIM=on does not take them over, but does those of
 * float32, of which some are called first. Prints both times, and their ratio with its 95 %
 * interval.
 */
#include "base/clock.h"
#include "bench/statistics.h"
#include "device/device.h"
#include "nccl/functions.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS     2
#define CALLS    100 /* of a batch */
#define PAIRS    1001
#define ROOM     4096 /* bytes */
#define LIMIT_US 20000000u
#define FLOAT32  7
#define FLOAT64  8
#define SUM      0

/* Where calls go. */
struct way {
	GroupStart_function *start;
	GroupEnd_function *end;
	AllReduce_function *reduce;
};

struct bench {
	struct device_set *set;
	struct ncclComm *comms[GPUS];
	struct stream streams[GPUS];
	void *native[GPUS];
	void *data[GPUS];
	int calls; /* of a batch */
};

static int fail(const char *what)
{
	fprintf(stderr, "cost_comm: %s\n", what);
	return 1;
}

static bool find(void *library, struct way *ret)
{
	ret->start = (GroupStart_function *)dlsym(library, "ncclGroupStart");
	ret->end = (GroupEnd_function *)dlsym(library, "ncclGroupEnd");
	ret->reduce = (AllReduce_function *)dlsym(library, "ncclAllReduce");
	return ret->start && ret->end && ret->reduce;
}

static bool open_device(struct bench *b, int i)
{
	const struct device_ops *ops = b->set->ops;
	struct memory m;
	uint64_t address;

	if (ops->make_current(b->set, i) < 0 || ops->stream_new(b->set, i, &b->streams[i]) < 0 ||
	    ops->stream_native(b->set, b->streams[i], &b->native[i]) < 0 ||
	    ops->alloc(b->set, i, MEMORY_DEVICE, ROOM, &m) < 0 ||
	    ops->address(b->set, &m, i, &address) < 0)
		return false;
	b->data[i] = (void *)(uintptr_t)address;
	return true;
}

static bool wait_for_all(const struct bench *b)
{
	bool done = true;

	for (int i = 0; i < GPUS; i++)
		done &= b->set->ops->wait(b->set, b->streams[i], LIMIT_US) == 0;
	return done;
}

static bool run(const struct bench *b, const struct way *w, int calls, int type)
{
	for (int k = 0; k < calls; k++) {
		w->start();
		for (int i = 0; i < GPUS; i++)
			if (w->reduce(b->data[i], b->data[i], 1, type, SUM, b->comms[i],
				      b->native[i]) != NCCL_SUCCESS)
				return false;
		if (w->end() != NCCL_SUCCESS)
			return false;
	}
	return wait_for_all(b);
}

/* Microseconds of a call; less than 0: it failed. */
static double time_of(const struct bench *b, const struct way *w)
{
	const uint64_t start = clock_ns();

	return run(b, w, b->calls, FLOAT64) ? (double)(clock_ns() - start) / b->calls / 1000 : -1;
}

static int compare(const struct bench *b, const struct way *through, const struct way *past, int n)
{
	struct samples with = {0}, without = {0}, ratios = {0};
	struct summary ratio;
	int failed = 0;

	for (int i = 0; i < n && !failed; i++) {
		const double first = time_of(b, i & 1 ? past : through);
		const double second = time_of(b, i & 1 ? through : past);
		const double t = i & 1 ? second : first, p = i & 1 ? first : second;

		failed = t <= 0 || p <= 0 || samples_add(&with, t) < 0 ||
			 samples_add(&without, p) < 0 || samples_add(&ratios, t / p) < 0;
	}
	if (!failed) {
		samples_summary(&ratios, &ratio);
		printf("past the shim %.3f us, through it %.3f us, ratio %.4f, %.4f to %.4f (medians of %d pairs of %d calls)\n",
		       samples_median(&without), samples_median(&with), ratio.median, ratio.low,
		       ratio.high, n, b->calls);
	}
	samples_done(&with);
	samples_done(&without);
	samples_done(&ratios);
	return failed ? fail("a call failed") : 0;
}

int main(int argc, char **argv)
{
	struct device_request q = {.n = GPUS, .ordinal = {0, 1}, .number = {0, 1}};
	void *real = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
	CommInitAll_function *init = (CommInitAll_function *)dlsym(RTLD_DEFAULT, "ncclCommInitAll");
	CommDestroy_function *destroy =
		(CommDestroy_function *)dlsym(RTLD_DEFAULT, "ncclCommDestroy");
	const int n = argc > 3 ? atoi(argv[3]) : PAIRS;
	struct way through, past;
	struct bench b = {.calls = argc > 4 ? atoi(argv[4]) : CALLS};
	int r;

	if (!real || !init || !destroy || n < 1 || b.calls < 1 || !find(RTLD_DEFAULT, &through) ||
	    !find(real, &past) || through.reduce == past.reduce)
		return fail("usage: LD_PRELOAD=SHIM cost_comm cuda|host NCCL [PAIRS [CALLS]]");
	q.kind = strcmp(argv[1], "host") == 0 ? DEVICE_HOST : DEVICE_CUDA;
	if (device_open(&q, &b.set) < 0)
		return fail("no two devices");
	for (int i = 0; i < GPUS; i++)
		if (!open_device(&b, i))
			return fail("no memory or stream");
	if (init(b.comms, GPUS, NULL) != NCCL_SUCCESS)
		return fail("ncclCommInitAll failed");
	if (!run(&b, &through, 3, FLOAT32) || !run(&b, &past, 3, FLOAT64) ||
	    !run(&b, &through, 3, FLOAT64))
		return fail("a first call failed");
	r = compare(&b, &through, &past, n);
	for (int i = 0; i < GPUS; i++)
		destroy(b.comms[i]);
	device_close(b.set);
	return r;
}
