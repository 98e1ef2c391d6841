/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: a thread's calls between onehop_group_start and onehop_group_end, which are enqueued at
 * the end.
 */
#pragma once

#include "collective/operation.h"

enum group_kind { GROUP_OPERATION, GROUP_SEND, GROUP_RECV };

struct group_call {
	struct onehop_comm *comm;
	enum group_kind kind;
	enum operation o; /* GROUP_OPERATION */
	/* Sends use `in`, receives `out`; root is the peer. */
	struct operation_call call;
	bool done;
};

/* Checks it. Outside of a group it is enqueued at once. */
int comm_group_add(const struct group_call *call);
void comm_group_start(void);
/*
 * At the end of the outermost group all operations are enqueued in the order of the calls, then
 * sends and receives, those of one communicator and stream together. After an error nothing more is
 * enqueued.
 */
int comm_group_end(void);
/* Calls of a communicator that is about to be closed. */
void comm_group_forget(const struct onehop_comm *c);
