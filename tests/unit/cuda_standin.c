/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libcuda.so.1 on the host's memory: GPUs at 0000:<41 + ordinal>:00.0, work is done
 * when it is enqueued. It checks what the real one checks without saying so: contexts that are not
 * current, memory that is out of reach. Calls that give something back do so even where they are
 * told to fail. With STANDIN_OLD it lacks what old drivers lack.
 */
#include "cuda_standin.h"

#include "device/cuda_api.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern struct cuda_standin cuda_standin;
EXPORT struct cuda_standin cuda_standin;

#define MAX_DEVICES 8
#define MAX_BLOCKS  64
#define MAX_STEPS   8
#define MAX_ARGS    256
#define GRANULARITY 0x200000
#define FD_BASE     1000000 /* handles are file descriptors plus this */

struct cu_context {
	int device;
	int uses;
	bool peers[MAX_DEVICES]; /* that it may reach */
};

struct cu_module {
	int device;
};

struct cu_function {
	char name[32];
};

struct step {
	bool is_launch;
	struct cu_function *function;
	unsigned blocks, threads;
	unsigned char args[MAX_ARGS];
	uint64_t target, origin;
	size_t n;
};

struct cu_graph {
	struct step steps[MAX_STEPS];
	size_t n;
};

struct cu_graph_exec {
	struct cu_graph graph;
};

struct cu_stream {
	struct cu_context *context;
	bool busy;
	struct cu_graph *capture;
};

struct cu_event {
	unsigned when;
};

/* Memory of a device. Reserved ranges: device -1 until mapped. */
struct block {
	uint64_t address;
	size_t size;
	int device;
	bool is_range;
	bool access[MAX_DEVICES];
};

static struct cu_context contexts[MAX_DEVICES];
static struct cu_context *stack[16];
static struct cu_function functions[32];
static struct block blocks[MAX_BLOCKS];
static struct cu_stream *streams[MAX_BLOCKS];
static struct cu_stream legacy[MAX_DEVICES]; /* the stream NULL of each context */
static unsigned clock_ticks;
static void *kept[MAX_BLOCKS]; /* modules and pinned memory */

/* ---- the common beginning ---- */

static int begin(const char *name)
{
	struct cuda_standin *s = &cuda_standin;

	if (s->fault)
		return s->fault;
	if (!s->fail || (strcmp(s->fail, "*") != 0 && strcmp(s->fail, name) != 0))
		return CU_SUCCESS;
	return ++s->calls == s->fail_nth ? s->fail_result : CU_SUCCESS;
}

#define BEGIN                                                                                      \
	do {                                                                                       \
		int begun_ = begin(__func__);                                                      \
		if (begun_ != CU_SUCCESS)                                                          \
			return begun_;                                                             \
	} while (0)

static struct cu_context *current(void)
{
	return cuda_standin.depth > 0 ? stack[cuda_standin.depth - 1] : NULL;
}

#define NEED_CONTEXT                                                                               \
	do {                                                                                       \
		if (!current())                                                                    \
			return CU_INVALID_CONTEXT;                                                 \
	} while (0)

static bool anything_runs(void)
{
	for (size_t i = 0; i < MAX_BLOCKS; i++)
		if (streams[i] && streams[i]->busy && cuda_standin.running)
			return true;
	return false;
}

static void would_wait(void)
{
	if (anything_runs())
		cuda_standin.hangs++;
}

static struct cu_stream *stream_of(struct cu_stream *s)
{
	return s ? s : &legacy[current()->device];
}

static void *keep(size_t size)
{
	for (size_t i = 0; i < MAX_BLOCKS; i++)
		if (!kept[i])
			return kept[i] = calloc(1, size);
	abort();
}

static void drop(void *p)
{
	for (size_t i = 0; i < MAX_BLOCKS; i++)
		if (kept[i] == p)
			kept[i] = NULL;
	free(p);
}

/* clang-format off */
#define CALL(name, params) EXPORT int name params; EXPORT int name params
/* clang-format on */

/* ---- the library and its devices ---- */

CALL(cuInit, (unsigned flags))
{
	cuda_standin.inits++;
	BEGIN;
	return flags ? CU_INVALID_VALUE : cuda_standin.devices ? CU_SUCCESS : CU_NO_DEVICE;
}

static const struct {
	int result;
	const char *name, *text;
} errors[] = {
	{CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{CU_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
	 "CUDA-capable device(s) is/are busy or unavailable"},
	{CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{CU_MAP_FAILED, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
	{CU_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	{CU_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
	 "peer access is not supported between these two devices"},
	{CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{CU_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
	{CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
	 "an illegal memory access was encountered"},
	{CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{CU_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	 "operation not permitted when stream is capturing"},
};

CALL(cuGetErrorName, (int result, const char **ret))
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].result == result) {
			*ret = errors[i].name;
			return CU_SUCCESS;
		}
	*ret = NULL;
	return CU_INVALID_VALUE;
}

CALL(cuGetErrorString, (int result, const char **ret))
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].result == result) {
			*ret = errors[i].text;
			return CU_SUCCESS;
		}
	*ret = NULL;
	return CU_INVALID_VALUE;
}

CALL(cuDeviceGet, (int *ret, int ordinal))
{
	BEGIN;
	if (ordinal < 0 || ordinal >= cuda_standin.devices)
		return CU_INVALID_DEVICE;
	*ret = ordinal;
	return CU_SUCCESS;
}

CALL(cuDeviceGetName, (char *ret, int size, int device))
{
	(void)device;
	BEGIN;
	snprintf(ret, (size_t)size, "NVIDIA H200");
	return CU_SUCCESS;
}

CALL(cuDeviceGetPCIBusId, (char *ret, int size, int device))
{
	BEGIN;
	snprintf(ret, (size_t)size, "0000:%02X:00.0", 0x4A + device);
	return CU_SUCCESS;
}

CALL(cuDeviceGetAttribute, (int *ret, int attribute, int device))
{
	const struct {
		int attribute, value;
	} values[] = {{CU_MAX_THREADS_PER_BLOCK, 1024},
		      {CU_MULTIPROCESSOR_COUNT, 132},
		      {CU_KERNEL_EXEC_TIMEOUT, device == cuda_standin.desktop},
		      {CU_ASYNC_ENGINE_COUNT, 3},
		      {CU_COMPUTE_CAPABILITY_MAJOR, 9},
		      {CU_COMPUTE_CAPABILITY_MINOR, 0},
		      {CU_VIRTUAL_MEMORY_MANAGEMENT, 1},
		      {CU_HANDLE_TYPE_POSIX_FD, 1},
		      {CU_GENERIC_COMPRESSION, !cuda_standin.no_compression},
		      {CU_RDMA_WITH_VIRTUAL_MEMORY, 1},
		      {CU_DMA_BUF, 1},
		      {CU_PAGEABLE_MEMORY_ACCESS, cuda_standin.reads_pageable}};

	BEGIN;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (values[i].attribute == attribute) {
			*ret = values[i].value;
			return CU_SUCCESS;
		}
	return CU_INVALID_VALUE;
}

CALL(cuDeviceTotalMem_v2, (size_t * ret, int device))
{
	(void)device;
	BEGIN;
	*ret = cuda_standin.memory_bytes;
	return CU_SUCCESS;
}

CALL(cuDeviceCanAccessPeer, (int *ret, int device, int peer))
{
	BEGIN;
	*ret = !cuda_standin.no_peers && device != peer;
	return CU_SUCCESS;
}

CALL(cuDeviceGetByPCIBusId, (int *ret, const char *pci))
{
	char text[32];

	BEGIN;
	for (int i = 0; i < cuda_standin.devices; i++) {
		snprintf(text, sizeof(text), "0000:%02X:00.0", 0x4A + i);
		if (strcasecmp(text, pci) == 0) {
			*ret = i;
			return CU_SUCCESS;
		}
	}
	return CU_INVALID_DEVICE;
}

CALL(cuDeviceGetP2PAttribute, (int *ret, int attribute, int device, int peer))
{
	BEGIN;
	*ret = attribute == CU_P2P_NATIVE_ATOMICS && cuda_standin.nvlink && device != peer;
	return CU_SUCCESS;
}

/* ---- contexts ---- */

CALL(cuDevicePrimaryCtxRetain, (struct cu_context * *ret, int device))
{
	BEGIN;
	contexts[device].device = device;
	contexts[device].uses++;
	cuda_standin.contexts++;
	*ret = &contexts[device];
	return CU_SUCCESS;
}

CALL(cuDevicePrimaryCtxRelease_v2, (int device))
{
	would_wait();
	if (--contexts[device].uses == 0)
		memset(contexts[device].peers, 0, sizeof(contexts[device].peers));
	cuda_standin.contexts--;
	return begin(__func__);
}

CALL(cuCtxPushCurrent_v2, (struct cu_context * c))
{
	if (!c || !c->uses)
		return CU_INVALID_CONTEXT;
	stack[cuda_standin.depth++] = c;
	return CU_SUCCESS;
}

CALL(cuCtxPopCurrent_v2, (struct cu_context * *ret))
{
	*ret = stack[--cuda_standin.depth];
	return CU_SUCCESS;
}

CALL(cuCtxSetCurrent, (struct cu_context * c))
{
	BEGIN;
	cuda_standin.depth = c ? 1 : 0;
	stack[0] = c;
	return CU_SUCCESS;
}

CALL(cuCtxEnablePeerAccess, (struct cu_context * peer, unsigned flags))
{
	BEGIN;
	NEED_CONTEXT;
	if (cuda_standin.no_peers || flags)
		return CU_PEER_ACCESS_UNSUPPORTED;
	if (current()->peers[peer->device])
		return CU_PEER_ACCESS_ALREADY_ENABLED;
	current()->peers[peer->device] = true;
	return CU_SUCCESS;
}

CALL(cuCtxDisablePeerAccess, (struct cu_context * peer))
{
	BEGIN;
	NEED_CONTEXT;
	if (!current()->peers[peer->device])
		return CU_PEER_ACCESS_NOT_ENABLED;
	current()->peers[peer->device] = false;
	return CU_SUCCESS;
}

/* ---- kernels ---- */

CALL(cuModuleLoadDataEx,
     (struct cu_module * *ret, const void *image, unsigned n, int *options, void **values))
{
	int r = begin(__func__);

	NEED_CONTEXT;
	for (unsigned i = 0; r != CU_SUCCESS && i < n; i++)
		if (options[i] == CU_JIT_ERROR_LOG && cuda_standin.jit_log)
			snprintf(values[i], (size_t)(uintptr_t)values[1], "%s",
				 cuda_standin.jit_log);
	if (r != CU_SUCCESS)
		return r;
	if (!*(const char *)image)
		return CU_INVALID_PTX;
	*ret = keep(sizeof(**ret));
	cuda_standin.modules++;
	return CU_SUCCESS;
}

CALL(cuModuleUnload, (struct cu_module * m))
{
	would_wait();
	drop(m);
	cuda_standin.modules--;
	return begin(__func__);
}

CALL(cuModuleGetFunction, (struct cu_function * *ret, struct cu_module *m, const char *name))
{
	(void)m;
	BEGIN;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (!functions[i].name[0] || strcmp(functions[i].name, name) == 0) {
			snprintf(functions[i].name, sizeof(functions[i].name), "%s", name);
			*ret = &functions[i];
			return CU_SUCCESS;
		}
	return CU_NOT_FOUND;
}

CALL(cuFuncGetAttribute, (int *ret, int attribute, struct cu_function *f))
{
	(void)f;
	BEGIN;
	if (attribute != CU_FUNCTION_MAX_THREADS)
		return CU_INVALID_VALUE;
	*ret = 256;
	return CU_SUCCESS;
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *ret, struct cu_function *f, int threads, size_t shared_bytes))
{
	(void)f;
	(void)shared_bytes;
	BEGIN;
	*ret = 768 / threads;
	return CU_SUCCESS;
}

static void run(struct cu_stream *s, const struct step *step)
{
	if (!step->is_launch) {
		memmove((void *)(uintptr_t)step->target, (void *)(uintptr_t)step->origin, step->n);
		return;
	}
	if (cuda_standin.launch)
		s->busy |= cuda_standin.launch(step->function->name, step->args, step->blocks,
					       step->threads);
}

static int enqueue(struct cu_stream *s, const struct step *step)
{
	s = stream_of(s);
	if (!s->capture)
		run(s, step);
	else if (s->capture->n < MAX_STEPS)
		s->capture->steps[s->capture->n++] = *step;
	else
		return CU_STREAM_CAPTURE_UNSUPPORTED;
	return CU_SUCCESS;
}

CALL(cuLaunchKernel,
     (struct cu_function * f, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
      unsigned tz, unsigned shared_bytes, struct cu_stream *s, void **params, void **extra))
{
	struct step step = {.is_launch = true, .function = f, .blocks = bx, .threads = tx};

	BEGIN;
	NEED_CONTEXT;
	if (by != 1 || bz != 1 || ty != 1 || tz != 1 || shared_bytes || extra || tx > 256)
		return CU_INVALID_VALUE;
	/* No kernel takes less; which one takes more is not known here. */
	memcpy(step.args, params[0], 24);
	return enqueue(s, &step);
}

/* ---- memory ---- */

static struct block *find(uint64_t address)
{
	for (size_t i = 0; i < MAX_BLOCKS; i++)
		if (blocks[i].size && address >= blocks[i].address &&
		    address < blocks[i].address + blocks[i].size)
			return &blocks[i];
	return NULL;
}

static struct block *add_block(uint64_t address, size_t size, int device)
{
	for (size_t i = 0; i < MAX_BLOCKS; i++)
		if (!blocks[i].size) {
			blocks[i] =
				(struct block){.address = address, .size = size, .device = device};
			return &blocks[i];
		}
	abort();
}

static size_t used(int device)
{
	size_t n = 0;

	for (size_t i = 0; i < MAX_BLOCKS; i++)
		if (blocks[i].size && blocks[i].device == device)
			n += blocks[i].size;
	return n;
}

static bool fits(size_t size, int device)
{
	size_t all = cuda_standin.memory_bytes;

	return !all || (size <= all && used(device) <= all - size);
}

CALL(cuMemGetInfo_v2, (size_t * ret_free, size_t *ret_total))
{
	BEGIN;
	NEED_CONTEXT;
	*ret_total = cuda_standin.memory_bytes;
	*ret_free = cuda_standin.memory_bytes - used(current()->device);
	return CU_SUCCESS;
}

CALL(cuMemAlloc_v2, (uint64_t * ret, size_t size))
{
	void *p;

	BEGIN;
	NEED_CONTEXT;
	if (!fits(size, current()->device))
		return CU_OUT_OF_MEMORY;
	p = calloc(1, size);
	add_block((uintptr_t)p, size, current()->device);
	cuda_standin.allocations++;
	*ret = (uintptr_t)p;
	return CU_SUCCESS;
}

CALL(cuMemFree_v2, (uint64_t address))
{
	struct block *b = find(address);

	would_wait();
	if (!b || b->address != address)
		return CU_INVALID_VALUE;
	b->size = 0;
	free((void *)(uintptr_t)address);
	cuda_standin.allocations--;
	return begin(__func__);
}

CALL(cuMemGetAddressRange_v2, (uint64_t * ret_base, size_t *ret_size, uint64_t address))
{
	struct block *b = find(address);

	BEGIN;
	if (!b)
		return CU_INVALID_VALUE;
	*ret_base = b->address;
	*ret_size = b->size;
	return CU_SUCCESS;
}

/* Of this thread: where the driver would get its pages from. */
static int policy(void)
{
	int mode;

	return syscall(SYS_get_mempolicy, &mode, NULL, 0ul, NULL, 0ul) < 0 ? -1 : mode;
}

CALL(cuMemHostAlloc, (void **ret, size_t size, unsigned flags))
{
	BEGIN;
	NEED_CONTEXT;
	if (!(flags & CU_HOST_PORTABLE))
		return CU_INVALID_VALUE;
	*ret = keep(size);
	cuda_standin.policy = policy();
	cuda_standin.pinned++;
	return CU_SUCCESS;
}

CALL(cuMemFreeHost, (void *p))
{
	would_wait();
	drop(p);
	cuda_standin.pinned--;
	return begin(__func__);
}

CALL(cuMemHostRegister_v2, (void *p, size_t size, unsigned flags))
{
	BEGIN;
	NEED_CONTEXT;
	if (!p || !size || (uintptr_t)p % 4096 || !(flags & CU_HOST_PORTABLE))
		return CU_INVALID_VALUE;
	cuda_standin.registered++;
	return CU_SUCCESS;
}

CALL(cuMemHostUnregister, (void *p))
{
	(void)p;
	would_wait();
	cuda_standin.registered--;
	return begin(__func__);
}

/* ---- copies ---- */

static bool in_reach(uint64_t address)
{
	const struct block *b = find(address);
	int me = current()->device;

	if (!b || b->device == me)
		return true;
	return b->is_range ? b->access[me] : current()->peers[b->device];
}

static int copy(uint64_t target, uint64_t origin, size_t n, struct cu_stream *s)
{
	struct step step = {.target = target, .origin = origin, .n = n};

	return enqueue(s, &step);
}

CALL(cuMemcpyAsync, (uint64_t target, uint64_t origin, size_t n, struct cu_stream *s))
{
	BEGIN;
	NEED_CONTEXT;
	if (!in_reach(target) || !in_reach(origin))
		return CU_INVALID_VALUE;
	cuda_standin.direct_copies++;
	return copy(target, origin, n, s);
}

CALL(cuMemcpyPeerAsync, (uint64_t target, struct cu_context *tc, uint64_t origin,
			 struct cu_context *oc, size_t n, struct cu_stream *s))
{
	BEGIN;
	NEED_CONTEXT;
	if (find(target)->device != tc->device || find(origin)->device != oc->device)
		return CU_INVALID_VALUE;
	cuda_standin.staged_copies++;
	return copy(target, origin, n, s);
}

CALL(cuMemcpyDtoHAsync_v2, (void *target, uint64_t origin, size_t n, struct cu_stream *s))
{
	BEGIN;
	NEED_CONTEXT;
	return in_reach(origin) ? copy((uintptr_t)target, origin, n, s) : CU_INVALID_VALUE;
}

CALL(cuMemcpyHtoDAsync_v2, (uint64_t target, const void *origin, size_t n, struct cu_stream *s))
{
	BEGIN;
	NEED_CONTEXT;
	return in_reach(target) ? copy(target, (uintptr_t)origin, n, s) : CU_INVALID_VALUE;
}

/* ---- IPC: an address of this very process ---- */

CALL(cuIpcGetMemHandle, (struct cu_ipc_handle * ret, uint64_t address))
{
	struct block *b = find(address);

	BEGIN;
	if (!b || b->address != address)
		return CU_INVALID_VALUE;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &address, sizeof(address));
	return CU_SUCCESS;
}

CALL(cuIpcOpenMemHandle_v2, (uint64_t * ret, struct cu_ipc_handle handle, unsigned flags))
{
	BEGIN;
	NEED_CONTEXT;
	if (flags != CU_IPC_LAZY_PEER_ACCESS)
		return CU_INVALID_VALUE;
	memcpy(ret, &handle, sizeof(*ret));
	if (find(*ret)->device != current()->device) {
		if (cuda_standin.no_peers)
			return CU_PEER_ACCESS_UNSUPPORTED;
		current()->peers[find(*ret)->device] = true;
	}
	cuda_standin.opened++;
	return CU_SUCCESS;
}

CALL(cuIpcCloseMemHandle, (uint64_t address))
{
	(void)address;
	cuda_standin.opened--;
	return begin(__func__);
}

/* ---- streams and events ---- */

CALL(cuStreamCreate, (struct cu_stream * *ret, unsigned flags))
{
	BEGIN;
	NEED_CONTEXT;
	if (flags != CU_STREAM_NON_BLOCKING)
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < MAX_BLOCKS; i++)
		if (!streams[i]) {
			streams[i] = calloc(1, sizeof(*streams[i]));
			streams[i]->context = current();
			*ret = streams[i];
			cuda_standin.streams++;
			return CU_SUCCESS;
		}
	abort();
}

CALL(cuStreamDestroy_v2, (struct cu_stream * s))
{
	for (size_t i = 0; i < MAX_BLOCKS; i++)
		if (streams[i] == s)
			streams[i] = NULL;
	free(s->capture);
	free(s);
	cuda_standin.streams--;
	return begin(__func__);
}

CALL(cuStreamGetCtx, (struct cu_stream * s, struct cu_context **ret))
{
	BEGIN;
	NEED_CONTEXT;
	*ret = s ? s->context : current();
	return CU_SUCCESS;
}

CALL(cuStreamQuery, (struct cu_stream * s))
{
	BEGIN;
	NEED_CONTEXT;
	s = stream_of(s);
	s->busy &= cuda_standin.running;
	if (s->capture)
		return CU_STREAM_CAPTURE_UNSUPPORTED;
	return s->busy ? CU_NOT_READY : CU_SUCCESS;
}

CALL(cuStreamWaitEvent, (struct cu_stream * s, struct cu_event *e, unsigned flags))
{
	(void)s;
	BEGIN;
	NEED_CONTEXT;
	return e && !flags ? CU_SUCCESS : CU_INVALID_VALUE;
}

CALL(cuEventCreate, (struct cu_event * *ret, unsigned flags))
{
	BEGIN;
	NEED_CONTEXT;
	if (flags)
		return CU_INVALID_VALUE;
	*ret = calloc(1, sizeof(**ret));
	cuda_standin.events++;
	return CU_SUCCESS;
}

CALL(cuEventDestroy_v2, (struct cu_event * e))
{
	free(e);
	cuda_standin.events--;
	return begin(__func__);
}

CALL(cuEventRecord, (struct cu_event * e, struct cu_stream *s))
{
	(void)s;
	BEGIN;
	NEED_CONTEXT;
	e->when = ++clock_ticks;
	return CU_SUCCESS;
}

/* Half a millisecond from one record to the next. */
CALL(cuEventElapsedTime, (float *ret_ms, struct cu_event *from, struct cu_event *to))
{
	BEGIN;
	if (!from->when || !to->when)
		return CU_INVALID_HANDLE;
	*ret_ms = (float)(to->when - from->when) * 0.5f;
	return CU_SUCCESS;
}

#ifndef STANDIN_OLD

CALL(cuFuncLoad, (struct cu_function * f))
{
	(void)f;
	BEGIN;
	cuda_standin.loaded_functions++;
	return CU_SUCCESS;
}

/* ---- mapped memory: allocations are memory files ---- */

CALL(cuMemGetAllocationGranularity, (size_t * ret, const struct cu_allocation *a, int option))
{
	BEGIN;
	if (option != CU_GRANULARITY_MINIMUM || a->handle_types != CU_HANDLE_POSIX_FD)
		return CU_INVALID_VALUE;
	*ret = GRANULARITY;
	return CU_SUCCESS;
}

/*
 * The name of the file that is the memory: "gpu1", "packed1" if compressible, "node0" of the host.
 */
static const char *file_name(int fd, char buf[static 64])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, buf, 63);
	buf[n > 0 ? n : 0] = '\0';
	return buf + strcspn(buf, ":") + 1;
}

/* -1: the host's. */
static int device_of_file(int fd)
{
	char buf[64];
	const char *name = file_name(fd, buf);
	int device = -1;

	if (sscanf(name, "gpu%d", &device) != 1)
		sscanf(name, "packed%d", &device);
	return device;
}

static bool is_valid(const struct cu_allocation *a)
{
	if (a->location.type == CU_LOCATION_HOST_NUMA)
		return !cuda_standin.no_created_host && !a->compression;
	return a->location.type == CU_LOCATION_DEVICE && a->rdma_capable != a->compression;
}

CALL(cuMemCreate,
     (uint64_t * ret, size_t size, const struct cu_allocation *a, unsigned long long flags))
{
	bool on_host = a->location.type == CU_LOCATION_HOST_NUMA;
	char name[32];
	int fd;

	BEGIN;
	if (flags || size % GRANULARITY || !is_valid(a) || a->type != CU_ALLOCATION_PINNED)
		return CU_INVALID_VALUE;
	if (!on_host && !fits(size, a->location.id))
		return CU_OUT_OF_MEMORY;
	snprintf(name, sizeof(name), "%s%d",
		 on_host                                          ? "node"
		 : a->compression && !cuda_standin.not_compressed ? "packed"
								  : "gpu",
		 a->location.id);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		abort();
	cuda_standin.handles++;
	*ret = (uint64_t)fd + FD_BASE;
	return CU_SUCCESS;
}

CALL(cuMemGetAllocationPropertiesFromHandle, (struct cu_allocation * ret, uint64_t handle))
{
	char buf[64];

	BEGIN;
	*ret = (struct cu_allocation){.type = CU_ALLOCATION_PINNED};
	ret->compression = strncmp(file_name((int)(handle - FD_BASE), buf), "packed", 6) == 0;
	return CU_SUCCESS;
}

CALL(cuMemRelease, (uint64_t handle))
{
	close((int)(handle - FD_BASE));
	cuda_standin.handles--;
	return begin(__func__);
}

CALL(cuMemAddressReserve,
     (uint64_t * ret, size_t size, size_t alignment, uint64_t wish, unsigned long long flags))
{
	void *p;

	BEGIN;
	if (alignment || wish || flags)
		return CU_INVALID_VALUE;
	p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	add_block((uintptr_t)p, size, -1)->is_range = true;
	cuda_standin.ranges++;
	*ret = (uintptr_t)p;
	return CU_SUCCESS;
}

CALL(cuMemAddressFree, (uint64_t address, size_t size))
{
	find(address)->size = 0;
	munmap((void *)(uintptr_t)address, size);
	cuda_standin.ranges--;
	return begin(__func__);
}

CALL(cuMemMap,
     (uint64_t address, size_t size, size_t offset, uint64_t handle, unsigned long long flags))
{
	BEGIN;
	if (offset || flags)
		return CU_INVALID_VALUE;
	mmap((void *)(uintptr_t)address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
	     (int)(handle - FD_BASE), 0);
	find(address)->device = device_of_file((int)(handle - FD_BASE));
	cuda_standin.mappings++;
	return CU_SUCCESS;
}

CALL(cuMemUnmap, (uint64_t address, size_t size))
{
	would_wait();
	mmap((void *)(uintptr_t)address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
	     -1, 0);
	find(address)->device = -1;
	cuda_standin.mappings--;
	return begin(__func__);
}

CALL(cuMemSetAccess, (uint64_t address, size_t size, const struct cu_access_desc *a, size_t n))
{
	struct block *b = find(address);

	BEGIN;
	if (n != 1 || size != b->size)
		return CU_INVALID_VALUE;
	if (cuda_standin.no_peers && b->device >= 0 && a->location.id != b->device)
		return CU_INVALID_DEVICE;
	b->access[a->location.id] = a->flags == CU_ACCESS_READ_WRITE;
	return CU_SUCCESS;
}

CALL(cuMemExportToShareableHandle, (void *ret, uint64_t handle, int type, unsigned long long flags))
{
	BEGIN;
	if (type != CU_HANDLE_POSIX_FD || flags)
		return CU_INVALID_VALUE;
	*(int *)ret = dup((int)(handle - FD_BASE));
	return CU_SUCCESS;
}

CALL(cuMemImportFromShareableHandle, (uint64_t * ret, void *handle, int type))
{
	int fd;

	BEGIN;
	fd = dup((int)(intptr_t)handle);
	if (type != CU_HANDLE_POSIX_FD || fd < 0)
		return CU_INVALID_VALUE;
	cuda_standin.handles++;
	*ret = (uint64_t)fd + FD_BASE;
	return CU_SUCCESS;
}

CALL(cuMemGetHandleForAddressRange,
     (void *ret, uint64_t address, size_t size, int type, unsigned long long flags))
{
	BEGIN;
	if (type != CU_RANGE_DMA_BUF || flags || address % 4096 || size % 4096)
		return CU_INVALID_VALUE;
	*(int *)ret = memfd_create("dma-buf", 0);
	return CU_SUCCESS;
}

/* Answers for what is not known, too. */
CALL(cuPointerGetAttributes, (unsigned n, int *attributes, void **ret, uint64_t address))
{
	const struct block *b = find(address);

	BEGIN;
	NEED_CONTEXT;
	if (n != 3 || attributes[0] != CU_POINTER_MEMORY_TYPE ||
	    attributes[1] != CU_POINTER_RANGE_START || attributes[2] != CU_POINTER_RANGE_SIZE)
		return CU_INVALID_VALUE;
	*(unsigned *)ret[0] = b ? 2 : 0;
	*(uint64_t *)ret[1] = b ? b->address : 0;
	*(size_t *)ret[2] = b ? b->size : 0;
	return CU_SUCCESS;
}

/* ---- graphs ---- */

CALL(cuStreamIsCapturing, (struct cu_stream * s, int *ret))
{
	BEGIN;
	NEED_CONTEXT;
	*ret = stream_of(s)->capture != NULL;
	return CU_SUCCESS;
}

CALL(cuStreamBeginCapture_v2, (struct cu_stream * s, int mode))
{
	BEGIN;
	NEED_CONTEXT;
	if (mode != CU_CAPTURE_THREAD_LOCAL || stream_of(s)->capture)
		return CU_INVALID_VALUE;
	stream_of(s)->capture = calloc(1, sizeof(struct cu_graph));
	return CU_SUCCESS;
}

CALL(cuStreamEndCapture, (struct cu_stream * s, struct cu_graph **ret))
{
	BEGIN;
	NEED_CONTEXT;
	*ret = stream_of(s)->capture;
	stream_of(s)->capture = NULL;
	cuda_standin.graphs++;
	return *ret ? CU_SUCCESS : CU_INVALID_VALUE;
}

CALL(cuGraphInstantiateWithFlags,
     (struct cu_graph_exec * *ret, struct cu_graph *g, unsigned long long flags))
{
	BEGIN;
	if (flags)
		return CU_INVALID_VALUE;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->graph = *g;
	cuda_standin.instances++;
	return CU_SUCCESS;
}

CALL(cuGraphLaunch, (struct cu_graph_exec * g, struct cu_stream *s))
{
	BEGIN;
	NEED_CONTEXT;
	for (size_t i = 0; i < g->graph.n; i++)
		run(stream_of(s), &g->graph.steps[i]);
	return CU_SUCCESS;
}

CALL(cuGraphDestroy, (struct cu_graph * g))
{
	free(g);
	cuda_standin.graphs--;
	return begin(__func__);
}

CALL(cuGraphExecDestroy, (struct cu_graph_exec * g))
{
	free(g);
	cuda_standin.instances--;
	return begin(__func__);
}

#endif
