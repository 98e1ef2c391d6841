/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA back end share. */
#pragma once

#include "device/cuda.h"
#include "device/cuda_api.h"

#include "base/err.h"

#define CUDA_TRANSFER_MAX (64u << 10) /* bytes of one read or write */

struct cuda_set;

struct cuda_memory {
	struct memory m;
	int (*release)(struct cuda_set *c, struct cuda_memory *mem);
	uint64_t address; /* of byte 0 */
	uint64_t base;    /* imported by IPC: what was opened */
	uint64_t handle;  /* mapped ones: of the allocation */
	uint64_t mapped;  /* mapped ones: bytes, a multiple of the granularity; else 0 */
	int fd;           /* shared ones: of the host's memory */
};

/* A stream, event or graph. */
struct cuda_object {
	void *native;
	int device;
	bool own;                  /* made here, not the caller's */
	bool late;                 /* a stream that did not end in time */
	struct cu_graph *captured; /* of a graph that has not been launched: native is made then */
};

/* What ids stand for: id is the index plus one. */
struct cuda_table {
	void **items;
	size_t n;
};

/* What the driver compiles at a time. */
enum cuda_module { CUDA_MODULE_COMMON, CUDA_MODULE_COLLECTIVE, CUDA_MODULE_N };

struct cuda_device {
	int handle; /* CUdevice */
	struct cu_context *context;
	bool callers; /* the context, so that it is not released */
	struct cu_module *modules[CUDA_MODULE_N];
	struct cu_function *functions[KERNEL_N];
	unsigned max_threads[KERNEL_N];
	uint64_t io_stream; /* for read and write */
	void *bounce;       /* pinned, CUDA_TRANSFER_MAX bytes */
	/* 0: it cannot */
	unsigned maps, exports_fd, maps_for_rdma, exports_dmabuf, compresses, reads_pageable;
	int node; /* whose memory is near to it; -1: none is known */
};

struct cuda_set {
	struct device_set set;
	struct cuda_api api;
	struct cuda_device *devices; /* set.n */
	bool *access;                /* [initiator * n + target]: turned on here */
	struct cuda_table memories, streams, events, graphs;
	double enqueue_us; /* of the last copy */
};

/* ---- errors (cuda_error.c) ---- */

/* The sentence "CALL on WHERE: reason" and its negative errno. where: NULL for none. */
int cuda_error(const struct cuda_api *api, int result, const char *call, const char *where);
/* 0 for CU_SUCCESS, else cuda_error for that device of the set. */
int cuda_result(const struct cuda_set *c, int device, int result, const char *call);
/* "GPU 0000:41:00.0" */
const char *cuda_where(const struct cuda_set *c, int device, char *buf, size_t size);

/*
 * The errno of a call that was to let `device` at another's memory and failed with r. The driver
 * has many words for a refusal (invalid device, not supported, map failed, unknown): -EACCES,
 * unless memory ran out or the device is of no more use. Leaves the sentence.
 */
int cuda_refusal(const struct cuda_set *c, int device, int r);

/* The device's context becomes the thread's until cuda_leave, which brings the caller's back. */
int cuda_enter(const struct cuda_set *c, int device);
void cuda_leave(const struct cuda_set *c);

/* Calls the driver in the device's context: 0 or a negative errno with its sentence. */
#define CUDA(c, device, call, ...)                                                                 \
	({                                                                                         \
		__typeof__((c)->api.call) call_ = (c)->api.call;                                   \
		int r_ = call_ ? cuda_enter(c, device)                                             \
			       : err_set(ENOTSUP, "this driver has no " #call ": it is too old");  \
		if (r_ >= 0) {                                                                     \
			r_ = cuda_result(c, device, call_(__VA_ARGS__), #call);                    \
			cuda_leave(c);                                                             \
		}                                                                                  \
		r_;                                                                                \
	})

/* ---- tables (cuda_table.c) ---- */

/* A zeroed item of that size and its id. */
int cuda_table_add(struct cuda_table *t, size_t size, uint64_t *ret_id, void *ret_item);
/* NULL with a sentence: no such id. */
void *cuda_table_get(const struct cuda_table *t, uint64_t id, const char *what);
void cuda_table_remove(struct cuda_table *t, uint64_t id);
void cuda_table_done(struct cuda_table *t);

/* ---- memory (cuda_memory.c, cuda_share.c) ---- */

/* Whether kernels and copies of `initiator` reach the memory of `target` directly. */
bool cuda_reaches(const struct cuda_set *c, int initiator, int target);
int cuda_can_access(struct device_set *s, int initiator, int target, bool *ret);
int cuda_atomics(struct device_set *s, int device, const char *pci, bool *ret);
int cuda_peer_access(struct device_set *s, int initiator, int target, bool on);
int cuda_alloc(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
	       struct memory *ret);
int cuda_wrap(struct device_set *s, int device, uint64_t address, uint64_t size,
	      struct memory *ret);
int cuda_free(struct device_set *s, const struct memory *m);
int cuda_address(struct device_set *s, const struct memory *m, int device, uint64_t *ret);
int cuda_memory_at(struct device_set *s, int device, uint64_t address, uint64_t *ret_begin,
		   uint64_t *ret_end);
int cuda_export(struct device_set *s, const struct memory *m, enum export_kind kind,
		struct memory_export *ret);
int cuda_import(struct device_set *s, int device, const struct memory_export *e,
		struct memory *ret);
/* Gives the mapped memory of mem->handle an address, for use by `device`. */
int cuda_map(struct cuda_set *c, int device, struct cuda_memory *mem);
int cuda_release_mapped(struct cuda_set *c, struct cuda_memory *mem);
/*
 * Pinned memory that a file descriptor stands for: a new one, or (fd not -1, the caller's)
 * another's.
 */
int cuda_map_shared(struct cuda_set *c, int device, int fd, struct cuda_memory *mem);
/* Pinned memory, of the node near to the device. */
int cuda_alloc_host(struct cuda_set *c, int device, size_t size, unsigned flags, void **ret);
/* mem, found by id, with [offset, offset + bytes) inside it. NULL with a sentence. */
struct cuda_memory *cuda_memory_range(const struct cuda_set *c, const struct memory *m,
				      uint64_t offset, uint64_t bytes);

/* ---- transfers (cuda_transfer.c) ---- */

int cuda_read(struct device_set *s, const struct memory *m, uint64_t offset, void *to, size_t n);
int cuda_write(struct device_set *s, const struct memory *m, uint64_t offset, const void *from,
	       size_t n);
int cuda_copy(struct device_set *s, struct stream stream, const struct memory *target,
	      uint64_t target_offset, const struct memory *origin, uint64_t origin_offset,
	      uint64_t bytes);
int cuda_enqueue_time(struct device_set *s, double *ret_us);

/* ---- streams, events, graphs, launches (cuda_stream.c, cuda_kernel.c) ---- */

struct cuda_object *cuda_stream_get(const struct cuda_set *c, struct stream stream);
/* -ETIMEDOUT: a stream that timed out still runs, so that freeing memory would wait for it. */
int cuda_check_stuck(struct cuda_set *c);
int cuda_stream_new(struct device_set *s, int device, struct stream *ret);
int cuda_stream_wrap(struct device_set *s, int device, void *native, struct stream *ret);
int cuda_stream_free(struct device_set *s, struct stream stream);
int cuda_wait(struct device_set *s, struct stream stream, uint64_t limit_us);
int cuda_event_new(struct device_set *s, int device, struct event *ret);
int cuda_event_free(struct device_set *s, struct event e);
int cuda_event_record(struct device_set *s, struct stream stream, struct event e);
int cuda_event_wait(struct device_set *s, struct stream stream, struct event e);
int cuda_event_elapsed(struct device_set *s, struct event from, struct event to, double *ret_us);
int cuda_capturing(struct device_set *s, struct stream stream, bool *ret);
int cuda_capture_begin(struct device_set *s, struct stream stream);
int cuda_capture_end(struct device_set *s, struct stream stream, struct graph *ret);
int cuda_graph_launch(struct device_set *s, struct stream stream, struct graph g);
int cuda_graph_free(struct device_set *s, struct graph g);
int cuda_stream_native(struct device_set *s, struct stream stream, void **ret);

/* Compiles the PTX of a module for a device and finds every kernel in it. */
int cuda_load_kernels(struct cuda_set *c, int device, enum cuda_module module, const char *ptx);
/* Sets device_info.resident_threads; the kernels of collectives are loaded. */
int cuda_find_resident(struct cuda_set *c, int device);
int cuda_launch(struct device_set *s, struct stream stream, const struct launch *l);
