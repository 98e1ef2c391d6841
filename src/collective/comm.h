/* SPDX-License-Identifier: Apache-2.0 */
/* A rank of a communicator: its device, its slots and those of the others. */
#pragma once

#include "collective/agree.h"
#include "collective/tuned.h"
#include "device/device.h"

#include <pthread.h>

struct comm_options {
	uint64_t limit_us; /* of waiting for another rank */
	bool no_p2p;
	enum algorithm forced; /* ALGORITHM_N: the cheapest */
	/*
	 * Used while opening, if it is of these devices; NULL: none. Where ranks are processes,
	 * that of rank 0 is used by all of them.
	 */
	const struct tuned *tuned;
	const struct groups *groups; /* NULL: those of the machine */
	const uint32_t
		*reach; /* by rank: a bit for each one whose memory it may store into; NULL: all */
};

/* Shared by the ranks of one process. */
struct comm_set {
	pthread_mutex_t lock; /* a set is used by one thread at a time */
	struct device_set *set;
	struct agree_board *board; /* of the communicator */
	unsigned open;             /* ranks */
};

/* Of one rank, in memory that all ranks and their kernels reach. */
struct comm_words {
	struct collective_report report;
	u32 abort; /* not 0: its kernels give up */
	u32 unused[11];
};

/*
 * The routes of flagged operations: separate data to each rank, or the same to all; and those of
 * the second step.
 */
struct comm_ways {
	struct collective_ways pair, all, second;
	u64 host_rows; /* of this rank, see slots_host_rows() */
	u32 hosts;
};

/* Of sends and receives: counters, units and chunks. */
struct pair_routes {
	struct collective_ways flags, sets, slots;
};

/*
 * Those of large operations: separate data to each rank, the same to all; and of sends and
 * receives.
 */
struct comm_routes {
	struct collective_routes pair, all;
	struct pair_routes pairs;
};

#define COMM_STREAMS 16
#define COMM_RECENT  64
#define COMM_PAIRS   OPERATION_N /* sends and receives */
#define COMM_BARRIER (OPERATION_N + 1)
#define COMM_RANGES  8
#define COMM_CHOSEN  16

struct onehop_comm {
	struct comm_set *shared;
	int device; /* in the set */
	u32 me;
	struct comm_facts facts;
	struct comm_options options;
	/* Addresses as seen by its device. */
	struct comm_ways flagged;
	struct comm_routes routes;
	u64 flagged_state, piped_state, pairs_state;
	u64 words; /* struct comm_words of all ranks; where its own parts are: */
	u64 report, abort;
	struct agree agree;
	u64 device_bytes, host_bytes; /* allocated by this rank */
	struct {
		void *native; /* the caller's */
		struct stream stream;
	} streams[COMM_STREAMS]; /* those seen last, in a ring */
	unsigned streams_n;      /* seen so far */
	/* Of the caller's memory, that its device can use; those looked up last, in a ring. */
	struct {
		u64 begin, end;
	} ranges[COMM_RANGES];
	unsigned ranges_n;
	/*
	 * Ways to run what was called lately, each at a place that its operation, type and count
	 * give. Facts do not change.
	 */
	struct comm_chosen {
		unsigned what, type;
		enum algorithm forced;
		u64 count;
		struct choice choice; /* no blocks: nothing is there yet */
	} chosen[COMM_CHOSEN];
	u32 number; /* operations enqueued so far */
	struct comm_recent {
		unsigned char what,
			order;  /* an operation's number, or one of the above; enum agree_order */
		u32 call;       /* its number in that order; not of COMM_PAIRS */
	} recent[COMM_RECENT];  /* what they were, in a ring */
	enum agree_order order; /* of the last */
	enum algorithm last;    /* chosen last */
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
/* Nothing, if it is not open. */
void comm_close(struct onehop_comm *c);
/* -EINVAL: NULL, or it was closed. */
int comm_check_open(const struct onehop_comm *c, const char *function);

/* How long its kernels wait for another rank. */
uint64_t comm_limit_us(const struct onehop_comm *c);
/*
 * 0, or a negative errno and the reason why an operation gave up, of this rank or of another one.
 * For any thread.
 */
int comm_check(const struct onehop_comm *c);
/* What waits in a kernel gives up, and nothing is enqueued any more. For any thread. */
void comm_abort(struct onehop_comm *c);
/* What the other ranks are shown of a launch: a call, or else messages. */
struct comm_shown {
	const char *name; /* of what this rank calls, for its own errors */
	const struct agree_call *call;
	const struct agree_message *messages;
	size_t n;
};

/* -EPROTO: another rank calls something else, and nothing was enqueued. */
int comm_launch(struct onehop_comm *c, void *native, const struct launch *l,
		const struct comm_shown *shown);
/* -EINVAL: its device cannot use that memory of the caller's. */
int comm_usable(struct onehop_comm *c, u64 address);
/* What was enqueued: an operation, or COMM_PAIRS or COMM_BARRIER. */
void comm_count(struct onehop_comm *c, unsigned what);
/* Until all is done that was enqueued there, at most limit_us. */
int comm_wait(struct onehop_comm *c, void *native, uint64_t limit_us);
/* Pinned memory, until the set of devices is closed. */
int comm_alloc(struct onehop_comm *c, uint64_t size, void **ret);
