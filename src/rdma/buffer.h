/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a NIC reads and writes, and that its owner, a GPU or the host, fills and checks. */
#pragma once

#include "bench/verify.h"
#include "device/device.h"
#include "rdma/failure.h"

/* Size of each of the two guards around the used range; they are poisoned and checked. */
#define BUFFER_GUARD (64ull << 10)

struct buffer {
	struct device_set *set; /* owned by the caller, for one device */
	struct stream stream;
	struct memory memory, reports;
	uint64_t at; /* of the range, as its device and a NIC see it */
	uint64_t reports_at;
	uint64_t bytes;    /* of the range */
	uint64_t limit_us; /* of what its device does */
};

/* 0 or -EIO, and what failed. Call buffer_close in either case. */
int buffer_open(struct device_set *set, uint64_t bytes, uint64_t limit_us, struct buffer *ret,
		struct rdma_failure *f);
void buffer_close(struct buffer *b);

/* The owner writes the data to send, or poisons the whole buffer. Both wait. */
int buffer_fill(const struct buffer *b, u64 tag, struct rdma_failure *f);
int buffer_poison(const struct buffer *b, u64 tag, struct rdma_failure *f);
/* The owner checks that the range holds that data, and the guards their poison. */
int buffer_check(const struct buffer *b, u64 tag, u64 poison, struct wrong *ret,
		 struct rdma_failure *f);
