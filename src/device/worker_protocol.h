/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What parent and worker say to each other: one message a call, one an answer, over a
 * SOCK_SEQPACKET socket. Both are this very program, so structs travel as they are.
 */
#pragma once

#include "device/device.h"

#define WORKER_PAYLOAD_MAX ((size_t)64 * 1024) /* of device_ops.read and write */
#define WORKER_LAUNCH_MAX  256                 /* bytes of a kernel's arguments */

/*
 * X(name, bytes behind the call at most, how)
 *	ANSWERS   the parent waits for a struct worker_answer
 *	MAKES     the same; is not done when an enqueued call before it failed, because its caller, who
 *	          gets that failure, would not know what was made
 *	ENQUEUES  no answer; a failure is kept for the next call that has one
 */
#define WORKER_OPS(X)                                                                              \
	X(open, sizeof(struct device_request), ANSWERS)                                            \
	X(can_access, 0, ANSWERS)                                                                  \
	X(peer_access, 0, ANSWERS)                                                                 \
	X(alloc, 0, MAKES)                                                                         \
	X(free, 0, ANSWERS)                                                                        \
	X(address, 0, ANSWERS)                                                                     \
	X(export, 0, MAKES)                                                                        \
	X(import, 0, MAKES)                                                                        \
	X(read, 0, ANSWERS)                                                                        \
	X(write, WORKER_PAYLOAD_MAX, ANSWERS)                                                      \
	X(stream_new, 0, MAKES)                                                                    \
	X(stream_free, 0, ANSWERS)                                                                 \
	X(wait, 0, ANSWERS)                                                                        \
	X(event_new, 0, MAKES)                                                                     \
	X(event_free, 0, ANSWERS)                                                                  \
	X(event_record, 0, ENQUEUES)                                                               \
	X(event_wait, 0, ENQUEUES)                                                                 \
	X(event_elapsed, 0, ANSWERS)                                                               \
	X(copy, 0, ENQUEUES)                                                                       \
	X(launch, WORKER_LAUNCH_MAX, ENQUEUES)                                                     \
	X(capture_begin, 0, ANSWERS)                                                               \
	X(capture_end, 0, ANSWERS)                                                                 \
	X(graph_launch, 0, ENQUEUES)                                                               \
	X(graph_free, 0, ANSWERS)                                                                  \
	X(enqueue_time, 0, ANSWERS)

enum worker_op {
#define WORKER_OP_ID(name, payload, how) WORKER_##name,
	WORKER_OPS(WORKER_OP_ID)
#undef WORKER_OP_ID
		WORKER_OP_N
};

enum worker_how { WORKER_ANSWERS, WORKER_MAKES, WORKER_ENQUEUES };

struct worker_op_rule {
	const char *name;
	size_t payload_max;
	enum worker_how how;
};

extern const struct worker_op_rule worker_op_rules[WORKER_OP_N];

struct worker_call {
	uint32_t op;      /* enum worker_op */
	uint32_t number;  /* of the call, from 1; its answer bears the same */
	uint64_t payload; /* bytes behind this struct */
	union {
		struct {
			int32_t initiator, target;
			uint32_t on;
		} pair;
		struct {
			uint64_t size;
			int32_t device;
			uint32_t kind; /* enum memory_kind */
		} alloc;
		struct {
			struct memory memory;
			uint64_t offset, size;
			int32_t device; /* address */
			uint32_t kind;  /* export: enum export_kind */
		} memory;
		struct {
			struct memory_export export;
			int32_t device;
		} import;
		struct {
			int32_t device;
		} device;
		struct {
			struct stream stream;
			struct event event;
			struct graph graph;
			uint64_t limit_us;
		} stream;
		struct {
			struct event from, to;
		} events;
		struct {
			struct stream stream;
			struct memory target, origin;
			uint64_t target_offset, origin_offset, bytes;
		} copy;
		struct {
			struct stream stream;
			uint32_t kernel, blocks, threads;
		} launch;
	} u;
};

struct worker_answer {
	uint32_t number;
	int32_t result;   /* negative errno: the payload is the sentence */
	uint64_t payload; /* bytes behind this struct */
	union {
		struct {
			uint64_t n; /* the payload is as many struct device_info */
			uint32_t caps;
		} open;
		uint32_t can;
		uint64_t address;
		double us;
		struct memory memory;
		struct memory_export export;
		struct stream stream;
		struct event event;
		struct graph graph;
	} u;
};

_Static_assert(sizeof(struct worker_call) % 8 == 0 && sizeof(struct worker_answer) % 8 == 0,
	       "what follows is aligned");
_Static_assert(sizeof(struct device_request) <= WORKER_PAYLOAD_MAX &&
		       DEVICE_MAX * sizeof(struct device_info) <= WORKER_PAYLOAD_MAX,
	       "opening fits");

/*
 * The loop of worker_serve alone: `set` NULL is opened by the first call. Owns `set`. For tests and
 * fuzzers.
 */
int worker_serve_calls(int fd, struct device_set *set);
