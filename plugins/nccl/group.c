// SPDX-License-Identifier: Apache-2.0
#include "nccl/group.h"

#include "nccl/functions.h"
#include "nccl/shim.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct queued {
	struct comm *comm;
	struct engine_call call;
};

struct group {
	struct queued *calls;
	struct group_birth *births;
	size_t calls_n, calls_room, births_n, births_room;
};

static _Thread_local struct group group;

/* Room for one more item. */
static bool make_room(void **items, size_t n, size_t *room, size_t size)
{
	const size_t more = *room ? 2 * *room : 16;
	void *bigger = n < *room ? *items : realloc(*items, more * size);

	if (!bigger)
		return false;
	*room = n < *room ? *room : more;
	*items = bigger;
	return true;
}

bool group_queue(struct comm *c, const struct engine_call *call)
{
	if (!make_room((void **)&group.calls, group.calls_n, &group.calls_room,
		       sizeof(*group.calls)))
		return false;
	atomic_fetch_add(&c->refs, 1);
	group.calls[group.calls_n++] = (struct queued){c, *call};
	shim_self()->queued = true;
	return true;
}

bool group_born(const struct group_birth *b)
{
	if (!make_room((void **)&group.births, group.births_n, &group.births_room,
		       sizeof(*group.births)))
		return false;
	group.births[group.births_n++] = *b;
	shim_self()->queued = true;
	return true;
}

void birth_forget(const struct group_birth *b)
{
	if (b->presence.announced >= 0)
		close(b->presence.announced);
}

/* ---- the end of a group ---- */

static void forget_calls(void)
{
	for (size_t i = 0; i < group.calls_n; i++)
		comms_put(group.calls[i].comm);
	free(group.calls);
	group.calls = NULL;
	group.calls_n = group.calls_room = 0;
}

/* Their list; what they announce may still be in use. */
static void leave_births(void)
{
	free(group.births);
	group.births = NULL;
	group.births_n = group.births_room = 0;
	shim_self()->queued = false;
}

void group_drop(void)
{
	forget_calls();
	for (size_t i = 0; i < group.births_n; i++)
		birth_forget(&group.births[i]);
	leave_births();
}

/*
 * A communicator that was destroyed within the group is closed with its last call, which is to end
 * first.
 */
static void end_calls(void)
{
	for (size_t i = 0; i < group.calls_n; i++)
		if (atomic_load(&group.calls[i].comm->refs) == 1)
			engine_drain(group.calls[i].comm->engine);
}

int group_run(void)
{
	int status = NCCL_SUCCESS;

	for (size_t i = 0; i < group.calls_n; i++) {
		int one = engine_run(group.calls[i].comm->engine, &group.calls[i].call);

		status = status == NCCL_SUCCESS ? one : status;
	}
	end_calls();
	forget_calls();
	return status;
}

void group_raise(void)
{
	if (group.births_n)
		births_raise(group.births, group.births_n);
	leave_births();
}

/* ---- engines of new communicators ---- */

struct raising {
	struct ncclComm *handle;
	struct comms_key key;
	struct engine_request request;
	pthread_t thread;
	bool threaded;
};

/* false: NCCL does not know it, or a single process has nothing to gain. */
static bool describe(struct raising *r)
{
	CommCount_function *count = real_CommCount();
	CommUserRank_function *rank = real_CommUserRank();
	CommCuDevice_function *device = real_CommCuDevice();
	struct engine_request *q = &r->request;

	q->key = r->key.text;
	q->handle = r->handle;
	q->all = shim_mode() == SHIM_ALL;
	return count && rank && device && count(r->handle, &q->n) == NCCL_SUCCESS &&
	       rank(r->handle, &q->rank) == NCCL_SUCCESS &&
	       device(r->handle, &q->device) == NCCL_SUCCESS;
}

static void *raise_one(void *argument)
{
	struct raising *r = argument;
	struct comm *c = comms_new(r->handle, &r->key);

	shim_self()->inside = true;
	if (!c)
		return NULL; /* the others do not meet it */
	if (describe(r) && r->request.n > 1)
		c->engine = engine_open(&r->request);
	comms_add(c);
	return NULL;
}

/* The application's signals are not for this thread. */
static bool start_thread(struct raising *r)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(&r->thread, NULL, raise_one, r) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

/* A thread for each, since each waits for the others; the last is this one's. */
static void raise_all(struct raising *r, size_t n)
{
	struct shim_thread *self = shim_self();
	const bool outer = self->inside;

	for (size_t i = 0; i + 1 < n; i++)
		r[i].threaded = start_thread(&r[i]);
	for (size_t i = 0; i < n; i++)
		if (!r[i].threaded)
			raise_one(&r[i]);
	for (size_t i = 0; i < n; i++)
		if (r[i].threaded)
			pthread_join(r[i].thread, NULL);
	self->inside = outer;
}

void births_raise(const struct group_birth *births, size_t n)
{
	struct raising *r = calloc(n, sizeof(*r));
	size_t made = 0;

	for (size_t i = 0; r && i < n; i++)
		if (*births[i].handle) /* a split may leave a rank without */
			r[made++] = (struct raising){.handle = *births[i].handle,
						     .key = births[i].key,
						     .request.presence = births[i].presence};
	if (r && made)
		raise_all(r, made);
	free(r);
	for (size_t i = 0; i < n; i++)
		birth_forget(&births[i]);
}
