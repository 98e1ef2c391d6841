/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One side of a connection: the memory that it sends from and receives into, and its queue pairs.
 */
#pragma once

#include "rdma/measure.h"
#include "rdma/region.h"
#include "rdma/transfer.h"

enum end_side { END_OUT, END_IN, END_SIDE_N };

struct end {
	struct device_set *set; /* the owner of the memory */
	struct buffer buffers[END_SIDE_N];
	struct region regions[END_SIDE_N];
	struct queue_pair queues[STREAMS_MAX]; /* of writes, then as many of reads */
};

/*
 * Places of a window for these messages: each queue has as many, at least one, and all are whole
 * words of the pattern.
 */
uint64_t end_places(uint64_t window, const struct rdma_load *load);
/* Less memory than requested may be available: locked pages, or the GPU's BAR1. */
bool end_can_halve(uint64_t places, const struct rdma_load *load);

/* These return 0 or -EIO and what failed; end_close whatever the answer. */
int end_open_host(struct end *e, uint64_t window, struct rdma_failure *f);
int end_open_gpu(struct end *e, const struct device_request *gpu, struct rdma_failure *f);
/* Both buffers, of so many bytes each. */
int end_open_memory(const struct nic *n, struct end *e, uint64_t bytes, enum region_way way,
		    bool relaxed, uint64_t owner_limit_us, struct rdma_failure *f);
void end_close_memory(const struct nic *n, struct end *e);
/* The same memory, registered again. */
int end_register(const struct nic *n, struct end *e, enum region_way way, bool relaxed,
		 struct rdma_failure *f);
void end_close_queues(const struct nic *n, struct end *e);
void end_close(const struct nic *n, struct end *e); /* also one that is all zeros */

/* Where a side's messages begin, for the other end's work requests or for its own. */
struct place end_place(const struct end *e, enum end_side side, bool remote);

/* The owner's part in checking data; `read`: data that the near side reads from the far one. */
struct end_round {
	unsigned pair;
	u64 round;
	bool read;
};
int end_fill(const struct end *e, const struct end_round *r, struct rdma_failure *f);
int end_poison(const struct end *e, const struct end_round *r, struct rdma_failure *f);
/*
 * Adds to a cell what the owner of a target found; wrong data is -EIO, a failure of its own step.
 */
int end_check(const struct end *e, const struct end_round *r, struct rdma_cell *cell,
	      struct rdma_failure *f);
/* The same of the first bytes alone, which are a message of any size. */
int end_check_message(const struct end *e, const struct end_round *r, uint64_t bytes,
		      struct rdma_cell *cell, struct rdma_failure *f);
/* The failure of the cell's data, as end_check has it. */
int end_say_wrong(const struct rdma_cell *cell, bool read, struct rdma_failure *f);
