/* SPDX-License-Identifier: Apache-2.0 */
/* libonehop's communicator behind one of NCCL's. */
#pragma once

#include <onehop/onehop.h>
#include <stdbool.h>
#include <stdint.h>

struct engine;

struct engine_call {
	enum onehop_operation operation;
	const void *in;
	void *out;
	size_t count;
	int type, op, root; /* NCCL's numbers; op: 0 where nothing is reduced */
	void *stream;
};

/*
 * No rank leaves the call that makes a communicator before all have entered it. So each is
 * announced before that call, and behind it those that are not announced will never come
 * (device/presence.h).
 */
struct engine_presence {
	int announced; /* a descriptor, closed by who opened it; or a negative errno */
	int places; /* ranks 0 .. places-1 may be announced: of the communicator, or of its parent; 0: all ranks are in this process */
};

struct engine_request {
	const char *key;    /* that ranks meet under */
	const void *handle; /* for messages */
	struct engine_presence presence;
	int rank, n, device;
	bool all; /* take over all that is possible */
};

/*
 * Meets the other ranks, tries out that data goes right, and agrees with them: all ranks get an
 * engine, or none. Says in NCCL's log what comes of it. NULL: none.
 */
struct engine *engine_open(const struct engine_request *q);
/* What runs still gives up, so drain it first. NULL does nothing. */
void engine_close(struct engine *e);

/* What decides of most calls. It does not change. */
struct engine_facts {
	bool all;
	bool direct, mixed; /* as struct comm_facts has them */
	unsigned char n;    /* ranks */
};

struct engine_facts engine_facts(const struct engine *e);
/* Whether the call is certainly not taken: a comparison or two, for those that are in a hurry. */
bool engine_leaves(struct engine_facts f, enum onehop_operation operation, size_t count, int type,
		   int op, int root);
/* By what all ranks know alike: nothing else may be looked at. */
bool engine_takes(const struct engine *e, const struct engine_call *c);
/* Counts calls that it did not take. */
void engine_passed(struct engine *e, unsigned long n);
/*
 * NCCL's status. A failure cannot be passed on to NCCL, because other ranks have begun: it stays.
 */
int engine_run(struct engine *e, const struct engine_call *c);

/* NCCL's status of what ran so far. */
int engine_check(struct engine *e);
/*
 * The reason, while engine_check is not NCCL_SUCCESS; else NULL. Valid until the engine is closed.
 */
const char *engine_reason(struct engine *e);
/* From any thread; waits for nothing. */
void engine_abort(struct engine *e);
/* Until what was enqueued is done, or has given up. */
void engine_drain(struct engine *e);
