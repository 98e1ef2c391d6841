/* SPDX-License-Identifier: Apache-2.0 */
/* One device as the checks use it: its set, a stream, and the memory that all its pairs share. */
#pragma once

#include "device/device.h"

/* Memory, and where byte 0 of it is for the device that uses it. */
struct area {
	struct memory memory;
	uint64_t at;
	bool held; /* to be freed */
};

struct bench_device {
	struct device_set *set;
	int device; /* index in the set */
	struct stream stream;
	struct event from, to;
	uint64_t limit_us; /* of one wait; what takes longer counts as hung */

	struct area window; /* others write and read here */
	struct area high;   /* the same, at the end of what could be allocated; size 0: none */
	/*
	 * source and target of what this device moves; as large as the window, plain: others reach
	 * it by IPC
	 */
	struct area local;
	struct area flags;   /* others write here while kernels run */
	struct area scratch; /* reports, ticks: STATION_SCRATCH bytes */
	struct area abort;   /* u32, 0, in the host's memory */
};

#define STATION_SCRATCH 65536
#define STATION_FLAGS   65536
#define STATION_WINDOW  (72ul << 20) /* at most */

/* The share of a device's free memory that checks use where nobody says otherwise: a half. */
#define STATION_MEMORY_SHARE 2

/*
 * Allocates on one device of a set, which the caller keeps and closes. memory_bytes: use at most so
 * much, 0: half of what is free. To find high addresses, everything up to that limit is allocated
 * in pieces, the last piece is kept and the others are freed again. 0, or a negative errno as
 * device/device.h has it; nothing is held then.
 */
int bench_device_open(struct device_set *set, int device, uint64_t memory_bytes, uint64_t limit_us,
		      struct bench_device *ret);
/* Frees what it holds; of a set that hangs, closing the set does that. */
void bench_device_close(struct bench_device *s);

const struct device_info *bench_device_info(const struct bench_device *s);

/* Memory of this device, for itself. */
int bench_device_alloc(const struct bench_device *s, enum memory_kind kind, uint64_t size,
		       struct area *ret);
void bench_device_free(const struct bench_device *s, struct area *a);
/*
 * `of`, the owner's, as `s` can use it: imported, or through peer access where both are in one set,
 * or itself. -EACCES: refused. bench_device_free lets go of it.
 */
int bench_device_reach(const struct bench_device *s, const struct bench_device *owner,
		       const struct area *of, struct area *ret);
/* The same with memory handed over in a given way, and of an export that somebody made before. */
int bench_device_reach_by(const struct bench_device *s, const struct bench_device *owner,
			  const struct area *of, enum export_kind kind, struct area *ret);
int bench_device_take(const struct bench_device *s, const struct memory_export *e,
		      struct area *ret);
/* What kind of memory the window and the flags are handed over in. */
enum memory_kind bench_device_memory_kind(enum export_kind kind);

/* Enqueues a kernel over as many blocks as run at once; `args` is struct NAME_args. */
int bench_device_launch(const struct bench_device *s, enum device_kernel kernel, const void *args,
			size_t size, unsigned blocks);
#define BENCH_DEVICE_RUN(s, name, ...)                                                             \
	bench_device_launch((s), KERNEL_##name, &(const struct name##_args){__VA_ARGS__},          \
			    sizeof(struct name##_args), 0)
int bench_device_wait(const struct bench_device *s);

/* Into a place that errors are kept in: what err_msg() says. */
#define BENCH_SENTENCE 256
void bench_sentence(char to[static BENCH_SENTENCE]);
