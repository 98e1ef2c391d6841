// SPDX-License-Identifier: Apache-2.0
/*
 * The host back end's streams: a thread and a queue each; events, and graphs that replay
 * operations.
 */
#include "base/clock.h"
#include "base/err.h"
#include "device/host_impl.h"
#include "kernels/native.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void host_queue_clear(struct host_queue *q)
{
	while (q->first) {
		struct host_op *op = q->first;

		q->first = op->next;
		free(op);
	}
	q->last = NULL;
}

static void queue_add(struct host_queue *q, struct host_op *op)
{
	op->next = NULL;
	if (q->last)
		q->last->next = op;
	else
		q->first = op;
	q->last = op;
}

/* NULL: the stream ends. With the lock held. */
static struct host_op *next_op(struct host_stream *s)
{
	struct host_op *op;

	while (!s->queue.first && !s->ending && !host_closing(s->h))
		pthread_cond_wait(&s->h->changed, &s->h->lock);
	if (!s->queue.first || host_closing(s->h))
		return NULL;
	op = s->queue.first;
	s->queue.first = op->next;
	if (!op->next)
		s->queue.last = NULL;
	return op;
}

static void *serve(void *argument)
{
	struct host_stream *s = argument;
	struct host_op *op;

	pthread_mutex_lock(&s->h->lock);
	while ((op = next_op(s))) {
		pthread_mutex_unlock(&s->h->lock);
		host_run_op(s, op);
		free(op);
		pthread_mutex_lock(&s->h->lock);
		s->done++;
		pthread_cond_broadcast(&s->h->changed);
	}
	s->ended = true;
	pthread_mutex_unlock(&s->h->lock);
	return NULL;
}

static struct host_stream *stream_of(struct host_set *h, struct stream stream)
{
	struct host_stream *s = host_table_get(&h->handles, stream.id);

	if (!s)
		err_set(EINVAL, "stream %lu does not (or no longer) belong to this set", stream.id);
	return s;
}

/* Events that the operation names get their turn. With the lock held. */
static void number_event(struct host_set *h, struct host_op *op)
{
	struct host_event *e;

	if (op->kind != HOST_RECORD && op->kind != HOST_AWAIT)
		return;
	e = host_table_get(&h->events, op->event.id);
	if (e)
		op->event.nth = op->kind == HOST_RECORD ? ++e->asked : e->asked;
}

static int enqueue(struct host_stream *s, const struct host_op *like)
{
	struct host_op *op = malloc(sizeof(*op));

	if (!op)
		return err_set(ENOMEM, "no memory for an operation");
	*op = *like;
	pthread_mutex_lock(&s->h->lock);
	if (s->capturing) {
		queue_add(&s->captured, op);
	} else {
		number_event(s->h, op);
		queue_add(&s->queue, op);
		s->asked++;
		pthread_cond_broadcast(&s->h->changed);
	}
	pthread_mutex_unlock(&s->h->lock);
	return 0;
}

static int native_call(struct host_native *stream, void (*work)(void *context), void *context)
{
	const struct host_op op = {.kind = HOST_CALL, .call = {work, context}};

	return enqueue((struct host_stream *)stream, &op);
}

static void unlink_stream(struct host_stream *s)
{
	struct host_stream **at = &s->h->streams;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
}

/* Joins its thread, which must be about to end. */
static void stream_delete(struct host_stream *s)
{
	pthread_join(s->thread, NULL);
	host_queue_clear(&s->queue);
	host_queue_clear(&s->captured);
	free(s);
}

void host_streams_close(struct host_set *h)
{
	pthread_mutex_lock(&h->lock);
	__atomic_store_n(&h->closing, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
	while (h->streams) {
		struct host_stream *s = h->streams;

		h->streams = s->next;
		stream_delete(s);
	}
}

int host_stream_new(struct device_set *set, int device, struct stream *ret)
{
	struct host_set *h = host_of(set);
	int r = host_check_device(h, device);
	struct host_stream *s;
	uint64_t id;

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(ENOMEM, "no memory for a stream");
	*s = (struct host_stream){.native = {native_call}, .h = h, .device = device};
	if ((r = host_table_add(&h->handles, s, &id)) < 0) {
		free(s);
		return r;
	}
	s->id = id;
	if ((r = pthread_create(&s->thread, NULL, serve, s)) != 0) {
		host_table_drop(&h->handles, id);
		free(s);
		return err_sys(r, "a thread for a stream of host device %d", device);
	}
	s->next = h->streams;
	h->streams = s;
	*ret = (struct stream){.id = id, .device = device};
	return 0;
}

/* NULL stands for the device's default stream, which exists from its first use on. */
static int find_stream(struct host_set *h, int device, const void *native, struct host_stream **ret)
{
	struct host_stream *s = h->streams;
	struct stream made = {0};
	int r;

	while (s && (s->device != device || (native ? s != native : !s->standard)))
		s = s->next;
	if (!s && native)
		return err_set(EINVAL, "not a stream of host device %d of the set", device);
	if (!s) {
		r = host_stream_new(&h->set, device, &made);
		if (r < 0)
			return r;
		s = stream_of(h, made);
		s->standard = true;
	}
	*ret = s;
	return 0;
}

int host_stream_wrap(struct device_set *set, int device, void *native, struct stream *ret)
{
	struct host_set *h = host_of(set);
	struct host_stream *s = NULL;
	uint64_t id;
	int r = find_stream(h, device, native, &s);

	if (r < 0)
		return r;
	r = host_table_add(&h->handles, s, &id);
	if (r == 0)
		*ret = (struct stream){.id = id, .device = device};
	return r;
}

/* What it holds is still done; a thread that hangs is ended with the set. */
int host_stream_free(struct device_set *set, struct stream stream)
{
	struct host_set *h = host_of(set);
	struct host_stream *s = stream_of(h, stream);
	bool idle;

	if (!s)
		return -EINVAL;
	host_table_drop(&h->handles, stream.id);
	if (stream.id != s->id)
		return 0; /* a wrapped one: its maker's */
	pthread_mutex_lock(&h->lock);
	s->ending = true;
	idle = s->done == s->asked;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
	if (idle) {
		unlink_stream(s);
		stream_delete(s);
	}
	return 0;
}

int host_stream_native(struct device_set *set, struct stream stream, void **ret)
{
	struct host_stream *s = stream_of(host_of(set), stream);

	if (!s)
		return -EINVAL;
	*ret = &s->native;
	return 0;
}

static struct timespec deadline(uint64_t limit_us)
{
	const uint64_t limit_max = 1ull << 50, now = clock_ns();
	const uint64_t at = now + (limit_us < limit_max / 1000 ? limit_us * 1000 : limit_max);

	return (struct timespec){(time_t)(at / 1000000000), (long)(at % 1000000000)};
}

int host_wait(struct device_set *set, struct stream stream, uint64_t limit_us)
{
	struct host_set *h = host_of(set);
	struct host_stream *s = stream_of(h, stream);
	const struct timespec until = deadline(limit_us);
	uint64_t asked;
	int late = 0;

	if (!s)
		return -EINVAL;
	if (s->capturing)
		return err_set(EBUSY, "cannot wait for a stream of %s during capture",
			       set->info[s->device].name);
	pthread_mutex_lock(&h->lock);
	asked = s->asked;
	while (s->done < asked && !late)
		late = pthread_cond_timedwait(&h->changed, &h->lock, &until);
	late = s->done < asked;
	pthread_mutex_unlock(&h->lock);
	if (!late)
		host_flaw_refresh(h);
	if (late)
		return err_set(ETIMEDOUT, "%s did not finish within %.3g s",
			       set->info[s->device].name, (double)limit_us / 1e6);
	return 0;
}

int host_event_new(struct device_set *set, int device, struct event *ret)
{
	struct host_set *h = host_of(set);
	int r = host_check_device(h, device);
	struct host_event *e;
	uint64_t id;

	if (r < 0)
		return r;
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(ENOMEM, "no memory for an event");
	pthread_mutex_lock(&h->lock);
	r = host_table_add(&h->events, e, &id);
	pthread_mutex_unlock(&h->lock);
	if (r < 0)
		free(e);
	else
		*ret = (struct event){.id = id, .device = device};
	return r;
}

static struct host_event *event_of(struct host_set *h, struct event event)
{
	struct host_event *e = host_table_get(&h->events, event.id);

	if (!e)
		err_set(EINVAL, "event %lu does not (or no longer) belong to this set", event.id);
	return e;
}

int host_event_free(struct device_set *set, struct event event)
{
	struct host_set *h = host_of(set);
	struct host_event *e = event_of(h, event);

	if (!e)
		return -EINVAL;
	pthread_mutex_lock(&h->lock);
	host_table_drop(&h->events, event.id);
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
	free(e);
	return 0;
}

static int enqueue_event(struct device_set *set, struct stream stream, struct event event,
			 enum host_op_kind kind)
{
	const struct host_op op = {.kind = kind, .event = {.id = event.id}};
	struct host_stream *s = stream_of(host_of(set), stream);

	return s && event_of(host_of(set), event) ? enqueue(s, &op) : -EINVAL;
}

int host_event_record(struct device_set *set, struct stream stream, struct event event)
{
	return enqueue_event(set, stream, event, HOST_RECORD);
}

int host_event_wait(struct device_set *set, struct stream stream, struct event event)
{
	return enqueue_event(set, stream, event, HOST_AWAIT);
}

int host_event_elapsed(struct device_set *set, struct event from, struct event to, double *ret_us)
{
	struct host_set *h = host_of(set);
	const struct host_event *a = event_of(h, from), *b = event_of(h, to);
	bool done;
	double us;

	if (!a || !b)
		return -EINVAL;
	pthread_mutex_lock(&h->lock);
	done = a->asked && b->asked && a->done == a->asked && b->done == b->asked;
	us = ((double)b->time_ns - (double)a->time_ns) / 1e3;
	pthread_mutex_unlock(&h->lock);
	if (!done)
		return err_set(EBUSY, "cannot time events that have not been recorded");
	*ret_us = us;
	return 0;
}

/* One end of a copy by `device`: byte 0 of m, *staged where it has no access. */
static int resolve(struct host_set *h, const struct memory *m, uint64_t offset, uint64_t bytes,
		   int device, char **ret, bool *staged)
{
	const struct host_block *b = host_block_of(h, m);
	int r;
	char *at;

	if (!b)
		return -EINVAL;
	r = host_check_range(&b->m, offset, bytes);
	if (r < 0)
		return r;
	at = host_seen(h, b, device);
	*staged |= !at;
	*ret = (at ? at : host_real(h, b)) + offset;
	return 0;
}

int host_copy(struct device_set *set, struct stream stream, const struct memory *target,
	      uint64_t target_offset, const struct memory *origin, uint64_t origin_offset,
	      uint64_t bytes)
{
	struct host_set *h = host_of(set);
	struct host_stream *s = stream_of(h, stream);
	struct host_op op = {.kind = HOST_COPY, .copy = {.bytes = bytes}};
	uint64_t start = clock_ns();
	char *from;
	int r;

	if (!s)
		return -EINVAL;
	r = resolve(h, target, target_offset, bytes, s->device, &op.copy.to, &op.copy.staged);
	if (r == 0)
		r = resolve(h, origin, origin_offset, bytes, s->device, &from, &op.copy.staged);
	if (r < 0)
		return r;
	op.copy.from = from;
	if (op.copy.staged)
		/* One of them is the device's own. Data passes twice. */
		op.copy.staged_gbps = host_gbps(h, target->owner, origin->owner) / 2;
	r = enqueue(s, &op);
	h->enqueue_us = (double)(clock_ns() - start) / 1e3;
	return r;
}

int host_enqueue_time(struct device_set *set, double *ret_us)
{
	*ret_us = host_of(set)->enqueue_us;
	return 0;
}

int host_launch(struct device_set *set, struct stream stream, const struct launch *l)
{
	struct host_stream *s = stream_of(host_of(set), stream);
	struct host_op op = {.kind = HOST_KERNEL,
			     .kernel = {.kernel = l->kernel, .blocks = l->blocks}};
	unsigned most;

	if (!s)
		return -EINVAL;
	most = s->h->set.info[s->device].threads;
	op.kernel.threads = l->threads < most ? l->threads : most;
	op.kernel.at_once = l->together ? l->blocks : s->h->set.info[s->device].blocks;
	if (l->kernel >= KERNEL_N || l->blocks == 0 || l->threads == 0 ||
	    l->args_size != native_args_size(l->kernel))
		return err_set(EINVAL,
			       "kernel %d: invalid launch, %u of %u blocks, arguments of %zu bytes",
			       (int)l->kernel, l->blocks, l->threads, l->args_size);
	memcpy(op.kernel.args, l->args, l->args_size);
	return enqueue(s, &op);
}

int host_capturing(struct device_set *set, struct stream stream, bool *ret)
{
	const struct host_stream *s = stream_of(host_of(set), stream);

	if (!s)
		return -EINVAL;
	*ret = s->capturing;
	return 0;
}

int host_capture_begin(struct device_set *set, struct stream stream)
{
	struct host_stream *s = stream_of(host_of(set), stream);

	if (!s)
		return -EINVAL;
	if (s->capturing)
		return err_set(EBUSY, "a stream of %s is already being captured",
			       set->info[s->device].name);
	pthread_mutex_lock(&s->h->lock);
	s->capturing = true;
	pthread_mutex_unlock(&s->h->lock);
	return 0;
}

int host_capture_end(struct device_set *set, struct stream stream, struct graph *ret)
{
	struct host_set *h = host_of(set);
	struct host_stream *s = stream_of(h, stream);
	struct host_queue *g;
	uint64_t id;
	int r;

	if (!s)
		return -EINVAL;
	if (!s->capturing)
		return err_set(EINVAL, "no stream of %s is being captured",
			       set->info[s->device].name);
	g = malloc(sizeof(*g));
	if (!g)
		return err_set(ENOMEM, "no memory for a graph");
	if ((r = host_table_add(&h->graphs, g, &id)) < 0) {
		free(g);
		return r;
	}
	pthread_mutex_lock(&h->lock);
	*g = s->captured;
	s->captured = (struct host_queue){0};
	s->capturing = false;
	pthread_mutex_unlock(&h->lock);
	*ret = (struct graph){.id = id, .device = s->device};
	return 0;
}

static struct host_queue *graph_of(struct host_set *h, struct graph graph)
{
	struct host_queue *g = host_table_get(&h->graphs, graph.id);

	if (!g)
		err_set(EINVAL, "graph %lu does not (or no longer) belong to this set", graph.id);
	return g;
}

int host_graph_launch(struct device_set *set, struct stream stream, struct graph graph)
{
	struct host_set *h = host_of(set);
	struct host_stream *s = stream_of(h, stream);
	struct host_queue *g = graph_of(h, graph);
	int r = 0;

	if (!s || !g)
		return -EINVAL;
	for (const struct host_op *op = g->first; r == 0 && op; op = op->next) {
		struct host_op again = *op;

		again.replayed = g->launched;
		r = enqueue(s, &again);
	}
	g->launched = true;
	return r;
}

int host_graph_free(struct device_set *set, struct graph graph)
{
	struct host_set *h = host_of(set);
	struct host_queue *g = graph_of(h, graph);

	if (!g)
		return -EINVAL;
	host_table_drop(&h->graphs, graph.id);
	host_queue_clear(g);
	free(g);
	return 0;
}
