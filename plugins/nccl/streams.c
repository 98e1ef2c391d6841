// SPDX-License-Identifier: Apache-2.0
#include "nccl/streams.h"

#include "base/dl.h"
#include "base/err.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PER_THREAD ((void *)2) /* another stream in each thread */

/*
 * CU_EVENT_DISABLE_TIMING, CU_STREAM_CAPTURE_STATUS_ACTIVE, CU_STREAM_ADD_CAPTURE_DEPENDENCIES,
 * CUDA_ERROR_NOT_READY
 */
enum { NO_TIMING = 2, CAPTURE_ACTIVE = 1, ADD_DEPENDENCIES = 0, NOT_READY = 600 };

/*
 * Captures of one communicator that are under way at the same time; with more, the oldest one is
 * forgotten.
 */
enum { CAPTURES = 8 };

#define SYMBOLS(X)                                                                                 \
	X(cuDeviceGet, "cuDeviceGet", (int *, int))                                                \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))                    \
	X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int))                        \
	X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (void *))                                       \
	X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (void **))                                        \
	X(cuEventCreate, "cuEventCreate", (void **, unsigned))                                     \
	X(cuEventDestroy, "cuEventDestroy_v2", (void *))                                           \
	X(cuEventRecord, "cuEventRecord", (void *, void *))                                        \
	X(cuEventQuery, "cuEventQuery", (void *))                                                  \
	X(cuStreamWaitEvent, "cuStreamWaitEvent", (void *, void *, unsigned))                      \
	X(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2",                                     \
	  (void *, int *, uint64_t *, void **, void ***, size_t *))                                \
	X(cuStreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies",                  \
	  (void *, void **, size_t, unsigned))                                                     \
	X(cuGraphAddEventWaitNode, "cuGraphAddEventWaitNode",                                      \
	  (void **, void *, void *const *, size_t, void *))                                        \
	X(cuGraphAddEventRecordNode, "cuGraphAddEventRecordNode",                                  \
	  (void **, void *, void *const *, size_t, void *))

struct driver {
#define MEMBER(member, name, parameters) int(*member) parameters;
	SYMBOLS(MEMBER)
#undef MEMBER
};

static const struct dl_symbol symbols[] = {
#define ROW(member, name, parameters) {name, offsetof(struct driver, member), true},
	SYMBOLS(ROW)
#undef ROW
};

/* Operations that are captured into one graph. */
struct capture {
	uint64_t id;  /* CUDA's, never used twice; 0: none */
	void *stream; /* of the last operation */
	bool any;     /* there was one */
	void *last; /* its node; before the first one, that of the wait for what was enqueued before the graph */
	void *record; /* the node that records the event behind it */
};

struct streams {
	struct driver driver;
	int device;
	void *context;
	/*
	 * Behind the last operation that was enqueued: by a record in its stream or, when a graph
	 * is launched, by a node of it.
	 */
	void *event;
	void *stream; /* of the last operation outside of graphs */
	bool any;     /* there was one */
	bool graphs;  /* some were captured: any graph may have been launched since */
	bool mixed; /* graphs may run at the same time as other operations, and are put in order */
	struct capture captures[CAPTURES];
	unsigned next; /* which of them is forgotten next */
};

static int failed(const char *call, int result)
{
	return err_set(EIO, "%s: CUDA error %d", call, result);
}

static int open_device(struct streams *s, int number)
{
	int r = s->driver.cuDeviceGet(&s->device, number);

	if (r == 0)
		r = s->driver.cuDevicePrimaryCtxRetain(&s->context, s->device);
	if (r == 0)
		r = s->driver.cuCtxPushCurrent(s->context);
	if (r)
		return failed("cuDevicePrimaryCtxRetain", r);
	r = s->driver.cuEventCreate(&s->event, NO_TIMING);
	s->driver.cuCtxPopCurrent(&(void *){NULL});
	return r ? failed("cuEventCreate", r) : 0;
}

int streams_open(int device, bool mixed, struct streams **ret)
{
	struct streams *s = calloc(1, sizeof(*s));
	int r = s ? dl_load("libcuda.so.1", symbols, sizeof(symbols) / sizeof(*symbols), &s->driver)
		  : err_set(ENOMEM, "no memory for a communicator");

	if (r < 0) {
		free(s);
		return r;
	}
	s->mixed = mixed;
	r = open_device(s, device);
	if (r < 0) {
		streams_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void streams_close(struct streams *s)
{
	if (!s)
		return;
	if (s->event)
		s->driver.cuEventDestroy(s->event);
	if (s->context)
		s->driver.cuDevicePrimaryCtxRelease(s->device);
	free(s);
}

/* What a stream that is being captured is at. */
struct place {
	uint64_t id; /* 0: it is not being captured */
	void *graph;
	void **nodes; /* that the next one comes after; n of them */
	size_t n;
};

static struct place place_of(struct streams *s, void *stream)
{
	struct place p = {0};
	int status = 0;

	if (s->driver.cuStreamGetCaptureInfo(stream, &status, &p.id, &p.graph, &p.nodes, &p.n) ||
	    status != CAPTURE_ACTIVE)
		return (struct place){0};
	return p;
}

/* NULL: nothing of it was captured so far. */
static struct capture *find_capture(struct streams *s, uint64_t id)
{
	for (size_t i = 0; i < CAPTURES; i++)
		if (s->captures[i].id == id)
			return &s->captures[i];
	return NULL;
}

/* The graph begins with a wait for what was enqueued before it was launched. */
static int begin_capture(struct streams *s, const struct place *p, struct capture **ret)
{
	struct capture *c = &s->captures[s->next++ % CAPTURES];

	*c = (struct capture){.id = p->id};
	*ret = c;
	s->graphs = true;
	return s->mixed ? s->driver.cuGraphAddEventWaitNode(&c->last, p->graph, NULL, 0, s->event)
			: 0;
}

static int wait_in_graph(struct streams *s, void *stream, const struct place *p)
{
	struct capture *c = find_capture(s, p->id);
	int r = c ? 0 : begin_capture(s, p, &c);

	if (r || !c->last || (c->any && c->stream == stream && stream != PER_THREAD))
		return r;
	return s->driver.cuStreamUpdateCaptureDependencies(stream, &c->last, 1, ADD_DEPENDENCIES);
}

/* The record is a leaf, so that what comes next in the graph does not wait for it. */
static int note_in_graph(struct streams *s, void *stream, const struct place *p)
{
	struct capture *c = find_capture(s, p->id);
	void *behind[2];

	if (p->n != 1) /* an operation of no elements */
		return 0;
	c->last = p->nodes[0];
	c->stream = stream;
	c->any = true;
	if (!s->mixed)
		return 0;
	behind[0] = c->last;
	behind[1] = c->record;
	return s->driver.cuGraphAddEventRecordNode(&c->record, p->graph, behind, c->record ? 2 : 1,
						   s->event);
}

static int wait_behind(struct streams *s, void *stream)
{
	const struct place p = place_of(s, stream);

	if (p.id)
		return wait_in_graph(s, stream, &p);
	if (!s->graphs && (!s->any || (s->stream == stream && stream != PER_THREAD)))
		return 0;
	return s->driver.cuStreamWaitEvent(stream, s->event, 0);
}

static int note_behind(struct streams *s, void *stream)
{
	const struct place p = place_of(s, stream);

	if (p.id)
		return note_in_graph(s, stream, &p);
	s->stream = stream;
	s->any = true;
	return s->driver.cuEventRecord(s->event, stream);
}

/* The default stream is that of the current context. */
static int in_context(struct streams *s, int (*what)(struct streams *s, void *stream), void *stream)
{
	int r = s->driver.cuCtxPushCurrent(s->context);

	if (r)
		return failed("cuCtxPushCurrent", r);
	r = what(s, stream);
	s->driver.cuCtxPopCurrent(&(void *){NULL});
	return r ? failed("an event between two streams", r) : 0;
}

int streams_before(struct streams *s, void *stream)
{
	return in_context(s, wait_behind, stream);
}

int streams_after(struct streams *s, void *stream)
{
	return in_context(s, note_behind, stream);
}

bool streams_are_done(struct streams *s)
{
	return s->driver.cuEventQuery(s->event) != NOT_READY;
}
