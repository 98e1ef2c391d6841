/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of GPUs and how they are waited for, events, and graphs captured from streams. */
#include "device/cuda_impl.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <time.h>

/*
 * Asking without a pause, for callers that measure by the host's clock; later a pause is no matter.
 */
#define SPIN_US  100000
#define SLEEP_US 50

static struct cuda_set *set_of(struct device_set *s)
{
	return (struct cuda_set *)s;
}

struct cuda_object *cuda_stream_get(const struct cuda_set *c, struct stream stream)
{
	return cuda_table_get(&c->streams, stream.id, "stream");
}

/* ---- waiting ---- */

/* 1: not done yet. */
static int query(const struct cuda_set *c, const struct cuda_object *o)
{
	int r = cuda_enter(c, o->device), result;

	if (r < 0)
		return r;
	result = c->api.cuStreamQuery(o->native);
	cuda_leave(c);
	return result == CU_NOT_READY ? 1 : cuda_result(c, o->device, result, "cuStreamQuery");
}

int cuda_wait(struct device_set *s, struct stream stream, uint64_t limit_us)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_stream_get(c, stream);
	uint64_t start = clock_us(), waited;
	char where[48];
	int r;

	if (!o)
		return -EINVAL;
	while ((r = query(c, o)) == 1 && (waited = clock_us() - start) < limit_us)
		if (waited > SPIN_US)
			nanosleep(&(struct timespec){.tv_nsec = 1000L * SLEEP_US}, NULL);
	o->late = r == 1;
	if (r != 1)
		return r;
	return err_set(ETIMEDOUT, "what was enqueued on %s did not end within %.3g s",
		       cuda_where(c, o->device, where, sizeof(where)), (double)limit_us / 1e6);
}

int cuda_check_stuck(struct cuda_set *c)
{
	for (size_t i = 0; i < c->streams.n; i++) {
		struct cuda_object *o = c->streams.items[i];
		char where[48];

		if (!o || !o->late)
			continue;
		o->late = query(c, o) == 1;
		if (o->late)
			return err_set(ETIMEDOUT, "%s still runs what did not end in time",
				       cuda_where(c, o->device, where, sizeof(where)));
	}
	return 0;
}

/* ---- streams ---- */

/* Takes over nothing: the caller destroys native when there is no room for it. */
static int add(struct cuda_table *t, int device, void *native, bool own, uint64_t *ret_id)
{
	struct cuda_object *o;
	int r = cuda_table_add(t, sizeof(*o), ret_id, &o);

	if (r == 0)
		*o = (struct cuda_object){.native = native, .device = device, .own = own};
	return r;
}

int cuda_stream_new(struct device_set *s, int device, struct stream *ret)
{
	struct cuda_set *c = set_of(s);
	struct cu_stream *native;
	uint64_t id;
	int r = CUDA(c, device, cuStreamCreate, &native, CU_STREAM_NON_BLOCKING);

	if (r < 0)
		return r;
	r = add(&c->streams, device, native, true, &id);
	if (r < 0) {
		c->api.cuStreamDestroy(native);
		return r;
	}
	*ret = (struct stream){id, device};
	return 0;
}

int cuda_stream_wrap(struct device_set *s, int device, void *native, struct stream *ret)
{
	struct cuda_set *c = set_of(s);
	struct cu_context *context;
	char where[48];
	uint64_t id;
	int r = CUDA(c, device, cuStreamGetCtx, native, &context);

	if (r < 0)
		return r;
	if (context != c->devices[device].context)
		return err_set(EINVAL, "that stream is not one of %s's context",
			       cuda_where(c, device, where, sizeof(where)));
	r = add(&c->streams, device, native, false, &id);
	if (r == 0)
		*ret = (struct stream){id, device};
	return r;
}

int cuda_stream_free(struct device_set *s, struct stream stream)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_stream_get(c, stream);
	int r = 0;

	if (!o)
		return -EINVAL;
	if (o->late) { /* has to stay known as long as it runs */
		r = cuda_check_stuck(c);
		if (r < 0)
			return r;
	}
	if (o->own)
		r = CUDA(c, o->device, cuStreamDestroy, o->native);
	cuda_table_remove(&c->streams, stream.id);
	return r;
}

int cuda_stream_native(struct device_set *s, struct stream stream, void **ret)
{
	struct cuda_object *o = cuda_stream_get(set_of(s), stream);

	if (!o)
		return -EINVAL;
	*ret = o->native;
	return 0;
}

/* ---- events, with times ---- */

int cuda_event_new(struct device_set *s, int device, struct event *ret)
{
	struct cuda_set *c = set_of(s);
	struct cu_event *native;
	uint64_t id;
	int r = CUDA(c, device, cuEventCreate, &native, 0);

	if (r < 0)
		return r;
	r = add(&c->events, device, native, true, &id);
	if (r < 0) {
		c->api.cuEventDestroy(native);
		return r;
	}
	*ret = (struct event){id, device};
	return 0;
}

int cuda_event_free(struct device_set *s, struct event e)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_table_get(&c->events, e.id, "event");
	int r;

	if (!o)
		return -EINVAL;
	r = CUDA(c, o->device, cuEventDestroy, o->native);
	cuda_table_remove(&c->events, e.id);
	return r;
}

int cuda_event_record(struct device_set *s, struct stream stream, struct event e)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_stream_get(c, stream);
	struct cuda_object *event = cuda_table_get(&c->events, e.id, "event");

	if (!o || !event)
		return -EINVAL;
	return CUDA(c, o->device, cuEventRecord, event->native, o->native);
}

int cuda_event_wait(struct device_set *s, struct stream stream, struct event e)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_stream_get(c, stream);
	struct cuda_object *event = cuda_table_get(&c->events, e.id, "event");

	if (!o || !event)
		return -EINVAL;
	return CUDA(c, o->device, cuStreamWaitEvent, o->native, event->native, 0);
}

int cuda_event_elapsed(struct device_set *s, struct event from, struct event to, double *ret_us)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *a = cuda_table_get(&c->events, from.id, "event");
	struct cuda_object *b = cuda_table_get(&c->events, to.id, "event");
	float ms;
	int r;

	if (!a || !b)
		return -EINVAL;
	r = CUDA(c, a->device, cuEventElapsedTime, &ms, a->native, b->native);
	if (r == 0)
		*ret_us = (double)ms * 1e3;
	return r;
}

/* ---- graphs ---- */

/*
 * The legacy stream (NULL) never is, and asking is an error while another one is. Drivers without
 * this function cannot capture.
 */
int cuda_capturing(struct device_set *s, struct stream stream, bool *ret)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_stream_get(c, stream);
	int status = 0, r = 0;

	if (!o)
		return -EINVAL;
	if (o->native && c->api.cuStreamIsCapturing)
		r = CUDA(c, o->device, cuStreamIsCapturing, o->native, &status);
	if (r == 0)
		*ret = status != 0;
	return r;
}

int cuda_capture_begin(struct device_set *s, struct stream stream)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_stream_get(c, stream);

	if (!o)
		return -EINVAL;
	return CUDA(c, o->device, cuStreamBeginCapture, o->native, CU_CAPTURE_THREAD_LOCAL);
}

/*
 * Made executable when it is first launched: that is not allowed while another stream is captured.
 */
int cuda_capture_end(struct device_set *s, struct stream stream, struct graph *ret)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_stream_get(c, stream), *graph;
	struct cu_graph *captured;
	uint64_t id;
	int r;

	if (!o)
		return -EINVAL;
	r = CUDA(c, o->device, cuStreamEndCapture, o->native, &captured);
	if (r < 0)
		return r;
	r = add(&c->graphs, o->device, NULL, true, &id);
	if (r < 0) {
		c->api.cuGraphDestroy(captured);
		return r;
	}
	graph = cuda_table_get(&c->graphs, id, "graph");
	graph->captured = captured;
	*ret = (struct graph){id, o->device};
	return 0;
}

static int make_executable(struct cuda_set *c, struct cuda_object *graph)
{
	struct cu_graph_exec *exec;
	int r = CUDA(c, graph->device, cuGraphInstantiateWithFlags, &exec, graph->captured, 0);

	if (r < 0)
		return r;
	c->api.cuGraphDestroy(graph->captured);
	graph->captured = NULL;
	graph->native = exec;
	return 0;
}

int cuda_graph_launch(struct device_set *s, struct stream stream, struct graph g)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_stream_get(c, stream);
	struct cuda_object *graph = cuda_table_get(&c->graphs, g.id, "graph");
	int r = 0;

	if (!o || !graph)
		return -EINVAL;
	if (graph->captured)
		r = make_executable(c, graph);
	return r < 0 ? r : CUDA(c, o->device, cuGraphLaunch, graph->native, o->native);
}

int cuda_graph_free(struct device_set *s, struct graph g)
{
	struct cuda_set *c = set_of(s);
	struct cuda_object *o = cuda_table_get(&c->graphs, g.id, "graph");
	int r;

	if (!o)
		return -EINVAL;
	r = o->captured ? CUDA(c, o->device, cuGraphDestroy, o->captured)
			: CUDA(c, o->device, cuGraphExecDestroy, o->native);
	cuda_table_remove(&c->graphs, g.id);
	return r;
}
