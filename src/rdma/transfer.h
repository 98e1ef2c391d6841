/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of writes and reads through queue pairs, posted and polled by one thread. */
#pragma once

#include "rdma/region.h"

/* A side of a stream: registered memory, in which messages take consecutive places. */
struct place {
	uint64_t at;
	uint32_t key;
};

/* Messages of one queue pair. Message i is at place i % places of both sides. */
struct stream_work {
	const struct queue_pair *queue;
	bool read;                  /* fetched from `remote`; else written to it */
	struct place local, remote; /* lkey, rkey */
	uint64_t bytes;             /* of a message */
	uint64_t places;
	uint64_t messages;
	unsigned depth; /* outstanding messages, at most: the size of the queue */
};

#define STREAMS_MAX 32

/*
 * All streams at once, until every message has completed; *ret_us from the first post to the last
 * completion. limit_us: without any completion. 0 or -EIO, and the first failure.
 */
int transfer_run(const struct nic *n, struct verbs_cq *cq, const struct stream_work *works,
		 size_t k, uint64_t limit_us, double *ret_us, struct rdma_failure *f);

/* Posts one message; does not wait. */
int transfer_post_one(const struct nic *n, const struct stream_work *w, struct rdma_failure *f);
/* The wr_id of receive requests: no stream's. */
#define TRANSFER_RECEIVE UINT64_MAX
/*
 * What completions there are, at most `room`: how many, or -EIO and the failure of the first that
 * has one. Receive requests that an error flushed are left out, because they say nothing of its
 * cause.
 */
int transfer_poll(const struct nic *n, struct verbs_cq *cq, struct verbs_wc *wcs, int room,
		  struct rdma_failure *f);
/* Waits for one completion. */
int transfer_wait_one(const struct nic *n, struct verbs_cq *cq, uint64_t limit_us,
		      struct rdma_failure *f);
