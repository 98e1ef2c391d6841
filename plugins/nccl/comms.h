/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about communicators of the application, next to NCCL's own handles. */
#pragma once

#include "nccl/engine.h"

#include <pthread.h>
#include <stdatomic.h>

#define COMMS_KEY 40

struct ncclComm;

/* A name that all ranks of a communicator make alike, and no other communicator has. */
struct comms_key {
	char text[COMMS_KEY];
};

struct comm {
	struct comm *next;
	struct ncclComm *handle;
	atomic_uint refs; /* the table's, and that of each caller */
	struct comms_key key;
	unsigned splits;       /* so far: ranks split alike */
	struct engine *engine; /* NULL: everything is passed on */
	atomic_bool finalized; /* what comes now is an error, which is NCCL's */
};

/* Of bytes that all ranks know alike. */
struct comms_key comms_key(const struct comms_key *parent, const void *bytes, size_t n);

/* NULL: no memory. With the table's reference. */
struct comm *comms_new(struct ncclComm *handle, const struct comms_key *key);
/*
 * Adds it, in place of one with the same handle. Cannot fail: other ranks may rely on its engine.
 */
void comms_add(struct comm *c);
/* NULL: not known. Else to be given back. */
struct comm *comms_get(const struct ncclComm *handle);
void comms_put(struct comm *c);
/* NULL: not known. The caller has the table's reference then. */
struct comm *comms_remove(const struct ncclComm *handle);
/* The key of the next child of a communicator; false: it is not known. */
bool comms_child_key(const struct ncclComm *handle, int color, struct comms_key *ret);

/*
 * The same of a communicator without some of its ranks. The ranks that are excluded do not make it.
 */
bool comms_shrunk_key(const struct ncclComm *handle, const int *excluded, int n,
		      struct comms_key *ret);

/*
 * Whether the call is certainly passed on; it is counted then. Waits for nobody and writes nothing
 * that other threads read: a communicator is used by one thread at a time, except to abort it.
 */
bool comms_leave(const struct ncclComm *handle, enum onehop_operation operation, size_t count,
		 int type, int op, int root);

/* How many have an engine: with none, no call needs to be looked at. */
extern atomic_uint comms_engines;
