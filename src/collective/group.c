// SPDX-License-Identifier: Apache-2.0
#include "collective/group.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "collective/pairs.h"
#include "kernels/typed.h"

#include <errno.h>

/* A thread's, as the sentence of its last error is. Empty outside of groups. */
static _Thread_local struct {
	unsigned depth;
	struct group_call *calls;
	size_t n, room;
	int error; /* of a call: the group is not enqueued */
} group;

static const char *const pair_words[] = {[GROUP_SEND] = "send", [GROUP_RECV] = "recv"};

/* ---- checks ---- */

static int check_pair(const struct group_call *c)
{
	const struct operation_call *q = &c->call;
	const char *name = pair_words[c->kind];
	const void *buffer = c->kind == GROUP_SEND ? q->in : q->out;
	int r;

	r = comm_check_open(c->comm, name);
	if (r < 0)
		return r;
	r = operation_check_elements(name, q->count, q->type);
	if (r == 0 && (q->root < 0 || (unsigned)q->root >= c->comm->facts.n))
		r = err_set(EINVAL, "%s: peer %d is not a rank; ranks are 0 to %u", name, q->root,
			    c->comm->facts.n - 1);
	if (r == 0 && q->count && !buffer)
		r = err_set(EINVAL, "%s: %s is NULL", name, c->kind == GROUP_SEND ? "in" : "out");
	if (r == 0 && q->count) {
		r = comm_usable(c->comm, (u64)buffer);
		if (r < 0)
			err_wrap(r, "%s: %s", name, c->kind == GROUP_SEND ? "in" : "out");
	}
	if (r == 0 && !group.depth && (u32)q->root == c->comm->me)
		r = err_set(EINVAL, "%s: with itself only in a group with the other half", name);
	return r < 0 ? err_wrap(r, "rank %u", c->comm->me) : 0;
}

static int check(const struct group_call *c)
{
	return c->kind == GROUP_OPERATION ? operation_verify(c->comm, c->o, &c->call)
					  : check_pair(c);
}

/* ---- the end ---- */

static struct pair_call pair_of(const struct group_call *c)
{
	return (struct pair_call){.takes = c->kind == GROUP_RECV,
				  .peer = c->call.root,
				  .address = c->kind == GROUP_RECV ? (u64)c->call.out
								   : (u64)c->call.in,
				  .bytes = c->call.count * typed_bytes(c->call.type)};
}

/* Those of the same communicator and stream as the first. */
static int run_pairs(struct group_call *calls, size_t n)
{
	AUTO_FREE struct pair_call *pairs = calloc(n, sizeof(*pairs));
	size_t count = 0;

	if (!pairs)
		return err_set(ENOMEM, "no memory for a group of sends and receives");
	for (size_t i = 0; i < n; i++) {
		struct group_call *c = &calls[i];

		if (c->done || c->kind == GROUP_OPERATION || c->comm != calls->comm ||
		    c->call.stream != calls->call.stream)
			continue;
		pairs[count++] = pair_of(c);
		c->done = true;
	}
	return pairs_enqueue(calls->comm, calls->call.stream, pairs, count);
}

/* Since the call another thread may have closed it, or the process forked. */
static int check_still_open(const struct group_call *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		if (calls[i].kind != GROUP_OPERATION) /* those are checked once more as a whole */
			r = comm_check_open(calls[i].comm, pair_words[calls[i].kind]);
	return r;
}

/* Sends and receives last: each rank has others, and operations may be anywhere among them. */
static int run(struct group_call *calls, size_t n)
{
	int r = check_still_open(calls, n);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (calls[i].kind == GROUP_OPERATION)
			r = operation_enqueue(calls[i].comm, calls[i].o, &calls[i].call);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (calls[i].kind != GROUP_OPERATION && !calls[i].done)
			r = run_pairs(&calls[i], n - i);
	return r;
}

/* ---- calls ---- */

static int keep(const struct group_call *call)
{
	const size_t room = group.room ? 2 * group.room : 16;
	struct group_call *more;

	if (group.n == group.room) {
		more = realloc(group.calls, room * sizeof(*more));
		if (!more)
			return err_set(ENOMEM, "no memory for a group of %zu operations", group.n);
		group.calls = more;
		group.room = room;
	}
	group.calls[group.n++] = *call;
	return 0;
}

int comm_group_add(const struct group_call *call)
{
	struct group_call copy;
	int r;

	if (!group.depth && call->kind == GROUP_OPERATION)
		return operation_enqueue(call->comm, call->o, &call->call); /* checks it too */
	copy = *call;
	r = check(call);
	if (!group.depth)
		return r < 0 ? r : run(&copy, 1);
	if (r == 0)
		r = keep(call);
	if (r < 0)
		group.error = r;
	return r;
}

void comm_group_start(void)
{
	group.depth++;
}

int comm_group_end(void)
{
	int r = 0;

	if (!group.depth)
		return err_set(EINVAL,
			       "onehop_group_end: there was no onehop_group_start in this thread");
	if (--group.depth)
		return 0;
	if (group.error)
		r = err_set(-group.error,
			    "onehop_group_end: a call in the group failed, so none is enqueued");
	else
		r = run(group.calls, group.n);
	free(group.calls);
	group.calls = NULL;
	group.n = group.room = 0;
	group.error = 0;
	return r;
}

void comm_group_forget(const struct onehop_comm *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < group.n; i++)
		if (group.calls[i].comm != c)
			group.calls[kept++] = group.calls[i];
	group.n = kept;
}
