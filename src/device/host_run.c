// SPDX-License-Identifier: Apache-2.0
/* How the host back end executes the operations of a stream. */
#include "base/clock.h"
#include "base/parallel.h"
#include "device/host_impl.h"
#include "kernels/native.h"

#include <string.h>

#define CHUNK  (1u << 20) /* of a copy, between two looks at the link's rate */
#define BOUNCE 4096u      /* bytes of a staged copy that are in host memory at a time */

/* By way of the host: twice the work. */
static void move_staged(char *to, const char *from, uint64_t bytes)
{
	char bounce[BOUNCE];

	for (uint64_t at = 0; at < bytes; at += BOUNCE) {
		const uint64_t n = bytes - at < BOUNCE ? bytes - at : BOUNCE;

		memcpy(bounce, from + at, n);
		memcpy(to + at, bounce, n);
	}
}

static void run_copy(struct host_stream *s, struct host_op *op)
{
	struct host_copy *c = &op->copy;
	struct host_passage p;

	if (!host_passage_begin(s->h, op, &p))
		return;
	if (c->staged && c->staged_gbps > 0) {
		p.begin_ns = clock_ns();
		p.end_ns = p.begin_ns + (uint64_t)((double)c->bytes / c->staged_gbps);
	}
	for (uint64_t at = 0; at < c->bytes; at += CHUNK) {
		const uint64_t n = c->bytes - at < CHUNK ? c->bytes - at : CHUNK;

		if (c->staged)
			move_staged(c->to + at, c->from + at, n);
		else
			memmove(c->to + at, c->from + at, n);
		if (!host_passage_pace(s->h, &p, at + n, c->bytes))
			return;
	}
	host_passage_end(&p);
}

struct grid {
	const struct host_kernel *kernel;
	const u32 *closing;
	const struct native_flaw *flaw;
};

static void run_block(void *context, size_t i)
{
	const struct grid *g = context;
	const struct native_block block = {.id = (u32)i,
					   .count = g->kernel->blocks,
					   .closing = g->closing};

	native_run(g->kernel->kernel, &block, g->kernel->threads, g->flaw, g->kernel->args);
}

/* Blocks start in ascending order: the lowest that has not ended is running on every device, so that
 * blocks may wait for those of the same index elsewhere. */
static void run_kernel(struct host_stream *s, struct host_op *op)
{
	struct host_passage p;
	const struct grid g = {&op->kernel, &s->h->closing, &p.flaw};

	if (!host_passage_begin(s->h, op, &p))
		return;
	parallel_for(op->kernel.blocks, op->kernel.at_once, run_block, (void *)&g);
	if (host_passage_pace(s->h, &p, 1, 1))
		host_passage_end(&p);
}

static void run_record(struct host_stream *s, struct host_op *op)
{
	struct host_event *e;

	pthread_mutex_lock(&s->h->lock);
	e = host_table_get(&s->h->events, op->event.id);
	if (e) {
		e->done = op->event.nth;
		e->time_ns = clock_ns();
		pthread_cond_broadcast(&s->h->changed);
	}
	pthread_mutex_unlock(&s->h->lock);
}

static void run_await(struct host_stream *s, struct host_op *op)
{
	const struct host_event *e;

	pthread_mutex_lock(&s->h->lock);
	while ((e = host_table_get(&s->h->events, op->event.id)) && e->done < op->event.nth &&
	       !host_closing(s->h))
		pthread_cond_wait(&s->h->changed, &s->h->lock);
	pthread_mutex_unlock(&s->h->lock);
}

static void run_call(struct host_stream *s, struct host_op *op)
{
	(void)s;
	op->call.work(op->call.context);
}

void host_run_op(struct host_stream *s, struct host_op *op)
{
	static void (*const runs[])(struct host_stream *, struct host_op *) = {
		[HOST_COPY] = run_copy,   [HOST_KERNEL] = run_kernel, [HOST_RECORD] = run_record,
		[HOST_AWAIT] = run_await, [HOST_CALL] = run_call,
	};

	runs[op->kind](s, op);
}
