/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for the end of the outermost group, of one thread: struct shim_thread says whether
 * there is something.
 */
#pragma once

#include "nccl/comms.h"

/* A communicator whose handle NCCL writes by the end of the group at the latest. */
struct group_birth {
	struct ncclComm **handle; /* NULL: it is left to NCCL */
	struct comms_key key;
	struct engine_presence presence; /* of this rank, from before NCCL's call on */
};

/* Keeps a reference to the communicator until the call is run or dropped. false: no memory. */
bool group_queue(struct comm *c, const struct engine_call *call);
bool group_born(const struct group_birth *b);
/* This rank is not announced any more. */
void birth_forget(const struct group_birth *b);

/* In the order of issue. The first failure, or NCCL_SUCCESS. */
int group_run(void);
void group_drop(void);
/*
 * Opens the engines of the communicators that the group made: ranks of one thread meet each other,
 * so all at once.
 */
void group_raise(void);
/* The same for communicators outside of a group; forgets the births. */
void births_raise(const struct group_birth *births, size_t n);
