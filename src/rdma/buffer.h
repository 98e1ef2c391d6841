/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a NIC reads and writes, and whose owner, a GPU or the host, fills and checks it. */
#pragma once

#include "bench/verify.h"
#include "device/device.h"
#include "rdma/failure.h"

/* Lies before and behind the range that is used, poisoned and watched. */
#define BUFFER_GUARD (64ull << 10)

struct buffer {
	struct device_set *set; /* the caller's, of one device */
	struct stream stream;
	struct memory memory, reports;
	uint64_t at; /* of the range, as its device and a NIC see it */
	uint64_t reports_at;
	uint64_t bytes;    /* of the range */
	uint64_t limit_us; /* of what its device does */
};

/* 0 or -EIO, and what failed; buffer_close whatever the answer. */
int buffer_open(struct device_set *set, uint64_t bytes, uint64_t limit_us, struct buffer *ret,
		struct rdma_failure *f);
void buffer_close(struct buffer *b);

/* The owner writes: the range as data to send, or all of it as what must not be left. Both wait. */
int buffer_fill(const struct buffer *b, u64 tag, struct rdma_failure *f);
int buffer_poison(const struct buffer *b, u64 tag, struct rdma_failure *f);
/* The owner looks: whether the range holds that data, and the guards their poison. */
int buffer_check(const struct buffer *b, u64 tag, u64 poison, struct wrong *ret,
		 struct rdma_failure *f);
