/* SPDX-License-Identifier: Apache-2.0 */
/* Host devices and short ways to use them, for tests. */
#pragma once

#include "base/err.h"
#include "device/device.h"
#include "kernels/pattern.h"

#include <cmocka.h>
#include <string.h>

#define RIG_LIMIT_US 60000000ull /* until a test gives up on something that should end at once */
#define RIG_LIMIT_NS (1000 * RIG_LIMIT_US)

#define assert_ok(call)                                                                            \
	do {                                                                                       \
		const int r_ = (call);                                                             \
		if (r_ < 0)                                                                        \
			fail_msg("%s: %d, %s", #call, r_, err_msg());                              \
	} while (0)

static inline struct device_set *rig_open(size_t n, enum fault_kind fault)
{
	struct device_request r = {.kind = DEVICE_HOST, .n = n, .host.memory_bytes = 8 << 20};
	struct device_set *s;

	for (size_t i = 0; i < n; i++)
		r.number[i] = (int)i;
	r.host.fault = (struct fault){fault, -1, -1};
	assert_ok(device_open(&r, &s));
	return s;
}

static inline void rig_peers(struct device_set *s)
{
	for (int i = 0; i < (int)s->n; i++)
		for (int j = 0; j < (int)s->n; j++)
			if (i != j)
				assert_ok(s->ops->peer_access(s, i, j, true));
}

static inline struct memory rig_alloc(struct device_set *s, int device, uint64_t size)
{
	struct memory m;

	assert_ok(s->ops->alloc(s, device, device < 0 ? MEMORY_PINNED : MEMORY_DEVICE, size, &m));
	return m;
}

static inline uint64_t rig_address(struct device_set *s, const struct memory *m, int device)
{
	uint64_t a;

	assert_ok(s->ops->address(s, m, device, &a));
	return a;
}

static inline struct stream rig_stream(struct device_set *s, int device)
{
	struct stream stream;

	assert_ok(s->ops->stream_new(s, device, &stream));
	return stream;
}

static inline void rig_launch(struct device_set *s, struct stream stream, enum device_kernel kernel,
			      unsigned blocks, const void *args, size_t size)
{
	const struct launch l = {kernel, blocks, 256, args, size};

	assert_ok(s->ops->launch(s, stream, &l));
}

#define RIG_LAUNCH(s, stream, name, blocks, ...)                                                   \
	rig_launch(s, stream, KERNEL_##name, blocks, &(struct name##_args){__VA_ARGS__},           \
		   sizeof(struct name##_args))

static inline void rig_wait(struct device_set *s, struct stream stream)
{
	assert_ok(s->ops->wait(s, stream, RIG_LIMIT_US));
}

static inline u32 rig_u32(struct device_set *s, const struct memory *m, uint64_t index)
{
	u32 v;

	assert_ok(s->ops->read(s, m, 4 * index, &v, sizeof(v)));
	return v;
}

static inline void rig_set(struct device_set *s, const struct memory *m, const void *from, size_t n)
{
	assert_ok(s->ops->write(s, m, 0, from, n));
}

/* Fills m with the pattern of `tag`, by its own device. */
static inline void rig_fill(struct device_set *s, const struct memory *m, u64 tag)
{
	struct stream stream = rig_stream(s, m->device);

	RIG_LAUNCH(s, stream, fill, 3, .target = rig_address(s, m, m->device), .words = m->size / 8,
		   .tag = tag);
	rig_wait(s, stream);
	assert_ok(s->ops->stream_free(s, stream));
}

/* Checks m for the pattern of `tag`, by its own device. */
static inline struct check_report rig_check(struct device_set *s, const struct memory *m, u64 tag)
{
	struct check_report report = {.first_wrong = CHECK_NONE};
	struct memory there = rig_alloc(s, m->device, sizeof(report));
	struct stream stream = rig_stream(s, m->device);

	rig_set(s, &there, &report, sizeof(report));
	RIG_LAUNCH(s, stream, check, 3, .origin = rig_address(s, m, m->device),
		   .words = m->size / 8, .tag = tag, .report = rig_address(s, &there, m->device));
	rig_wait(s, stream);
	assert_ok(s->ops->read(s, &there, 0, &report, sizeof(report)));
	assert_ok(s->ops->free(s, &there));
	assert_ok(s->ops->stream_free(s, stream));
	return report;
}
