/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up a vector over all GPUs of this process: all_reduce RANKS [simulated]. Build it with
 *	cc all_reduce.c $(pkg-config --cflags --libs libonehop)
 */
#include <onehop/onehop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1000

static void must(int r)
{
	if (r < 0) {
		fprintf(stderr, "%s\n", onehop_error());
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const struct onehop_options options = {.simulated =
						       argc > 2 && !strcmp(argv[2], "simulated")};
	const int n = argc > 1 ? atoi(argv[1]) : 2;
	struct onehop_comm *comms[ONEHOP_RANKS_MAX];
	float *data[ONEHOP_RANKS_MAX];

	must(onehop_open_all(n, NULL, &options, comms));
	for (int i = 0; i < n; i++) {
		must(onehop_alloc(comms[i], COUNT * sizeof(float), (void **)&data[i]));
		for (int k = 0; k < COUNT; k++)
			data[i][k] = (float)(i + k);
	}
	for (int i = 0; i < n; i++) /* only enqueues: the ranks wait for each other on the GPUs */
		must(onehop_all_reduce(comms[i], data[i], data[i], COUNT, ONEHOP_FLOAT32,
				       ONEHOP_SUM, NULL));
	for (int i = 0; i < n; i++)
		must(onehop_wait(comms[i], NULL));
	printf("the sums over %d ranks are %g, %g, ... %g\n", n, data[0][0], data[0][1],
	       data[0][COUNT - 1]);
	for (int i = 0; i < n; i++)
		onehop_close(comms[i]);
	return 0;
}
