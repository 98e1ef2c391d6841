// SPDX-License-Identifier: Apache-2.0
#include "nccl/streams.h"

#include "base/dl.h"
#include "base/err.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define PER_THREAD ((void *)2) /* another stream in each thread */

enum { NO_TIMING = 2, CAPTURE_ACTIVE = 1, NOT_READY = 600 };

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
	  (void *, int *, uint64_t *, void **, void **, size_t *))

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

/* An event behind the last operation, and its stream. */
struct behind {
	void *event, *stream;
	bool any;
};

struct streams {
	struct driver driver;
	int device;
	void *context;
	struct behind eager, captured;
	uint64_t capture; /* what `captured` is of */
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
	r = s->driver.cuEventCreate(&s->eager.event, NO_TIMING);
	if (r == 0)
		r = s->driver.cuEventCreate(&s->captured.event, NO_TIMING);
	s->driver.cuCtxPopCurrent(&(void *){NULL});
	return r ? failed("cuEventCreate", r) : 0;
}

int streams_open(int device, struct streams **ret)
{
	struct streams *s = calloc(1, sizeof(*s));
	int r = s ? dl_load("libcuda.so.1", symbols, sizeof(symbols) / sizeof(*symbols), &s->driver)
		  : err_set(ENOMEM, "no memory for a communicator");

	if (r < 0) {
		free(s);
		return r;
	}
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
	if (s->eager.event)
		s->driver.cuEventDestroy(s->eager.event);
	if (s->captured.event)
		s->driver.cuEventDestroy(s->captured.event);
	if (s->context)
		s->driver.cuDevicePrimaryCtxRelease(s->device);
	free(s);
}

/* 0: the stream is not being captured; else which capture it is. */
static uint64_t capture_of(struct streams *s, void *stream)
{
	int status = 0;
	uint64_t id = 0;

	if (s->driver.cuStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL) ||
	    status != CAPTURE_ACTIVE)
		return 0;
	return id;
}

/* Events of a capture and events outside of it cannot wait for each other: those pass here as two orders. */
static int wait_behind(struct streams *s, void *stream)
{
	const uint64_t capture = capture_of(s, stream);
	struct behind *b = capture ? &s->captured : &s->eager;

	if (!b->any || (capture && capture != s->capture) ||
	    (b->stream == stream && stream != PER_THREAD))
		return 0;
	return s->driver.cuStreamWaitEvent(stream, b->event, 0);
}

static int note_behind(struct streams *s, void *stream)
{
	const uint64_t capture = capture_of(s, stream);
	struct behind *b = capture ? &s->captured : &s->eager;
	int r = s->driver.cuEventRecord(b->event, stream);

	if (r == 0) {
		b->stream = stream;
		b->any = true;
		s->capture = capture ? capture : s->capture;
	}
	return r;
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
	return !s->eager.any || s->driver.cuEventQuery(s->eager.event) != NOT_READY;
}
