// SPDX-License-Identifier: Apache-2.0
/*
 * For tests: operations run in the threads of the host back end's streams, on memory of this
 * process.
 */
#include "device/host.h"
#include "nccl/engine_impl.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct work {
	struct engine *engine;
	struct engine_call call;
	unsigned long number;
};

bool engine_simulated(void)
{
	const char *value = getenv("ONEHOP_SHIM_DEVICES");

	return value && strcmp(value, "host") == 0;
}

uint64_t engine_meet_us(uint64_t usual)
{
	const char *ms = getenv("ONEHOP_SHIM_MEET_MS");

	return ms ? 1000 * strtoul(ms, NULL, 10) : usual;
}

/* In the stream's thread, when all before it in the stream is done. */
static void run(void *context)
{
	struct work *w = context;
	struct engine *e = w->engine;
	int r;

	pthread_mutex_lock(&e->lock);
	while (e->turn != w->number)
		pthread_cond_wait(&e->changed, &e->lock);
	pthread_mutex_unlock(&e->lock);
	r = engine_enqueue(e, &w->call, NULL);
	if (r == 0)
		r = onehop_wait(e->comm, NULL);
	if (r < 0)
		engine_failed(e, r);
	free(w);
	pthread_mutex_lock(&e->lock);
	e->turn++;
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

int engine_simulate(struct engine *e, const struct engine_call *c)
{
	struct host_native *stream = c->stream;
	struct work *w = malloc(sizeof(*w));
	int r;

	if (!w)
		return err_set(ENOMEM, "no memory for an operation");
	*w = (struct work){e, *c, e->issued};
	r = stream->call(stream, run, w);
	if (r < 0)
		free(w);
	else
		e->issued++;
	return r;
}
