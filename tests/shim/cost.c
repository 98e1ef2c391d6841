/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost STANDIN [ROUNDS [comm]]: what the shim adds to a call that it passes on: calls to a stand-in
 * for NCCL through the preloaded shim and past it, in turn. Prints the medians and the median of
 * the differences. comm: of a communicator that the shim takes over, with a stand-in that has
 * communicators; it refuses calls of that size at once.
 */
#include "base/order.h"
#include "nccl_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS   20000
#define ROUNDS  2001
#define REFUSED ((size_t)1 << 40) /* elements */

typedef int all_reduce(const void *, void *, size_t, int, int, struct ncclComm *, void *);

static struct ncclComm *comm;

static double time_calls(all_reduce *f)
{
	const size_t count = comm ? REFUSED : 2;
	const int type = comm ? 8 : 7;

	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < CALLS; i++)
		f(NULL, NULL, count, type, 0, comm, NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / CALLS;
}

static double median(double *values, int n)
{
	sort_doubles(values, (size_t)n);
	return median_of_sorted(values, (size_t)n);
}

static int open_comm(void)
{
	static struct ncclComm *comms[2];
	int (*init)(struct ncclComm **, int, const int *) =
		(int (*)(struct ncclComm **, int, const int *))dlsym(RTLD_DEFAULT,
								     "ncclCommInitAll");

	if (!init || init(comms, 2, NULL) != 0)
		return -1;
	comm = comms[0];
	return 0;
}

int main(int argc, char **argv)
{
	static double with[ROUNDS], without[ROUNDS], extra[ROUNDS];
	void *standin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	all_reduce *past = standin ? (all_reduce *)dlsym(standin, "ncclAllReduce") : NULL;
	all_reduce *through = (all_reduce *)dlsym(RTLD_DEFAULT, "ncclAllReduce");
	int n = argc > 2 ? atoi(argv[2]) : ROUNDS;

	if (!past || !through || past == through || n < 1 || n > ROUNDS) {
		fprintf(stderr, "cost: usage: LD_PRELOAD=SHIM cost STANDIN [1 to %d [comm]]\n",
			ROUNDS);
		return 2;
	}
	if (argc > 3 && open_comm() < 0)
		return 1;
	for (int i = 0; i < n; i++) {
		without[i] = time_calls(past);
		with[i] = time_calls(through);
		extra[i] = with[i] - without[i];
	}
	printf("past the shim %.2f ns, through it %.2f ns, difference %.2f ns (medians of %d pairs)\n",
	       median(without, n), median(with, n), median(extra, n), n);
	return 0;
}
