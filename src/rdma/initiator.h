/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side of a connection that posts the work: what it knows of both sides, and how it measures.
 */
#pragma once

#include "rdma/end.h"

struct initiator {
	const struct nic *nic;
	struct verbs_cq *cq;
	const struct end *near;
	struct place far_out, far_in; /* of the other side */
	const struct rdma_load *load;
	uint64_t places; /* of each side's window */
	struct rdma_failure *failure;
};

/* 0 or -EIO, and `failure`. */

/* Every place of the window once, for checking; of the latency of reads one message. */
int initiator_move(const struct initiator *i, enum rdma_measure m);
/*
 * A completion says that the other end has acknowledged, not that a GPU sees the data. A read after
 * the writes, on the same queue pair, flushes them.
 */
int initiator_flush(const struct initiator *i);
int initiator_time_bandwidth(const struct initiator *i, enum rdma_measure m,
			     struct rdma_cell *cell);
/*
 * Latencies: `one` adds nothing to what it times; n counts from 1. What a reading of the clock
 * takes is taken off: 20 ns where the kernel trusts the processor's counter, 10 us where it asks a
 * device (some virtual machines).
 */
typedef int initiator_one_fn(void *context, unsigned n, struct timed *ret);
int initiator_time_latency(const struct initiator *i, initiator_one_fn *one, void *context,
			   struct rdma_cell *cell);
/* One small read, from post to completion. */
int initiator_one_read(const struct initiator *i, struct timed *ret);
