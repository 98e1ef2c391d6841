/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost STANDIN [ROUNDS]: what the shim adds to a call that it passes on: calls to a stand-in for NCCL through the
 * preloaded shim and past it, in turn. Prints the medians and the median of the differences.
 */
#include "base/order.h"
#include "nccl_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS  20000
#define ROUNDS 2001

typedef int all_reduce(const void *, void *, size_t, int, int, struct ncclComm *, void *);

static double time_calls(all_reduce *f)
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < CALLS; i++)
		f(NULL, NULL, 2, 7, 0, NULL, NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / CALLS;
}

static double median(double *values, int n)
{
	sort_doubles(values, (size_t)n);
	return median_of_sorted(values, (size_t)n);
}

int main(int argc, char **argv)
{
	static double with[ROUNDS], without[ROUNDS], extra[ROUNDS];
	void *standin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	all_reduce *past = standin ? (all_reduce *)dlsym(standin, "ncclAllReduce") : NULL;
	all_reduce *through = (all_reduce *)dlsym(RTLD_DEFAULT, "ncclAllReduce");
	int n = argc > 2 ? atoi(argv[2]) : ROUNDS;

	if (!past || !through || past == through || n < 1 || n > ROUNDS) {
		fprintf(stderr, "cost: usage: LD_PRELOAD=SHIM cost STANDIN [1 to %d]\n", ROUNDS);
		return 2;
	}
	for (int i = 0; i < n; i++) {
		without[i] = time_calls(past);
		with[i] = time_calls(through);
		extra[i] = with[i] - without[i];
	}
	printf("past the shim %.2f ns, through it %.2f ns, difference %.2f ns (medians of %d pairs)\n",
	       median(without, n), median(with, n), median(extra, n), n);
	return 0;
}
