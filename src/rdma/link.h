/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This host's end of a connection to a port of another host. Runs in a worker; what crosses the
 * hosts is the session's.
 */
#pragma once

#include "rdma/measure.h"
#include "rdma/transfer.h"

/* Plain data: it is sent to the worker process. */
struct link_job {
	char device[64];
	unsigned port;
	struct gid_choice gid; /* has an index from the port's table */
	uint64_t places;       /* of the window, at most; queues divides it */
	bool relaxed;
	enum region_way way;
	struct device_request gpu; /* one device, unless the memory is the host's */
	struct rdma_load load;
	uint64_t owner_limit_us; /* for filling and checking */
};

/* What the other end needs to know. */
struct link_address {
	struct queue_address queue; /* of all queue pairs, but for the number */
	uint32_t numbers[STREAMS_MAX];
	unsigned n;
	struct place out, in;
	uint64_t places;
};

/* "near" is the side that posts the work. */
enum link_action {
	LINK_OPEN,    /* memory and queue pairs */
	LINK_CONNECT, /* to the other end; memory shrinks to the other end's size */
	LINK_PREPARE, /* far: poison what will be written, fill what will be read */
	LINK_MOVE,    /* near: the same on this side, each message once; reads are checked */
	LINK_CHECK,   /* far: what was written */
	LINK_TIME,    /* near */
	LINK_PONG,    /* far: answers round trips until a flag of 0 */
	LINK_CLOSE,
	LINK_ACTION_N
};

struct link_order {
	enum link_action action;
	struct link_job job;      /* of LINK_OPEN */
	struct link_address peer; /* of LINK_CONNECT */
	enum rdma_measure measure;
	u64 round;
};

struct link_answer {
	struct rdma_failure failure;
	struct link_address address; /* of LINK_OPEN */
	struct rdma_cell cell;       /* of LINK_MOVE, LINK_CHECK and LINK_TIME */
};

struct link;

/*
 * Both never fail: what failed is in the answer. LINK_OPEN needs *l to be NULL, others need an open
 * one.
 */
void link_act(const struct verbs *v, struct pulse *pulse, struct link **l,
	      const struct link_order *o, struct link_answer *ret);
void link_close(struct link **l); /* also NULL */
