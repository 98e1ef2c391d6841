/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#define MAX_THREADS 32

struct work {
	atomic_size_t next;
	size_t n;
	void (*job)(void *context, size_t i);
	void *context;
};

static void *run(void *argument)
{
	struct work *w = argument;
	size_t i;

	while ((i = atomic_fetch_add(&w->next, 1)) < w->n)
		w->job(w->context, i);
	return NULL;
}

void parallel_for(size_t n, unsigned threads, void (*job)(void *context, size_t i), void *context)
{
	struct work w = {.n = n, .job = job, .context = context};
	pthread_t ids[MAX_THREADS];
	unsigned started = 0;

	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	if (threads > n)
		threads = (unsigned)n;
	/* The caller is one of the threads. */
	while (started + 1 < threads && pthread_create(&ids[started], NULL, run, &w) == 0)
		started++;
	run(&w);
	while (started)
		pthread_join(ids[--started], NULL);
}
