/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of a communicator: its device, its slots and those of the others. */
#pragma once

#include "collective/tuned.h"
#include "device/device.h"

#include <pthread.h>

struct comm_options {
	uint64_t limit_us; /* of waiting for another rank */
	bool no_p2p;
	enum algorithm forced; /* ALGORITHM_N: the cheapest */
	/*
	 * Used while opening, if it is of these devices; NULL: none. Where ranks are processes, that of rank 0 is used by
	 * all of them.
	 */
	const struct tuned *tuned;
};

/* Shared by the ranks of one process. */
struct comm_set {
	pthread_mutex_t lock; /* a set is used by one thread at a time */
	struct device_set *set;
	unsigned open; /* ranks */
};

/*
 * The routes of flagged operations: separate data to each rank, or the same to all; and those of
 * the second step.
 */
struct comm_ways {
	struct collective_ways pair, all, second;
};

#define COMM_STREAMS 16

struct onehop_comm {
	struct comm_set *shared;
	int device; /* in the set */
	u32 me;
	struct comm_facts facts;
	struct comm_options options;
	/* Addresses as seen by its device. */
	struct comm_ways flagged;
	u64 flagged_state, piped_state;
	u64 pair_routes, all_routes; /* struct collective_routes */
	u64 report, abort;
	struct memory words; /* report and abort, in the host's memory */
	struct {
		void *native; /* the caller's */
		struct stream stream;
	} streams[COMM_STREAMS]; /* those seen last, in a ring */
	unsigned streams_n;      /* seen so far */
	u32 number;              /* operations enqueued so far */
	enum algorithm last;     /* chosen last */
};

/* All ranks in this process, on the devices of q, in its order. ret: q->n of them. */
int comm_open_all(const struct device_request *q, const struct comm_options *o,
		  struct onehop_comm **ret);
/* The same on a given set, for tests too. Takes ownership of the set, even on failure. */
int comm_open_set(struct device_set *set, const struct comm_options *o, struct onehop_comm **ret);
/* One rank, on the only device of q; the others are other processes. */
int comm_open_rank(const struct device_request *q, const char *key, int rank, int n,
		   const struct comm_options *o, struct onehop_comm **ret);
/* The same on a given set of one device. Takes ownership of the set, even on failure. */
int comm_open_rank_set(struct device_set *set, const char *key, int rank, int n,
		       const struct comm_options *o, struct onehop_comm **ret);
void comm_close(struct onehop_comm *c);

/* How long its kernels wait for another rank. */
uint64_t comm_limit_us(const struct onehop_comm *c);
/* 0, or a negative errno and the reason why an operation gave up. */
int comm_check(struct onehop_comm *c);
int comm_launch(struct onehop_comm *c, void *native, const struct launch *l);
