/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the CUDA driver and sets of its GPUs. */
#include "device/cuda.h"

#include "base/cleanup.h"
#include "base/dl.h"
#include "base/err.h"
#include "device/cuda_impl.h"
#include "device/numa.h"
#include "kernels/ptx.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY        "libcuda.so.1"
#define CLOSE_LIMIT_US 1000000

/* ---- the library ---- */

/*
 * cuInit loads the modules and makes the nodes (through nvidia-modprobe) where they are missing:
 * that is for the machine's owner to do.
 */
static int may_open(const char *root)
{
	static const char *const needed[] = {"/proc/driver/nvidia/version", "/dev/nvidiactl",
					     "/dev/nvidia-uvm"};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s%s", root, needed[i]);
		if (access(path, F_OK) == 0)
			continue;
		if (i == 0)
			return err_set(ENODEV, "no GPU for CUDA: the nvidia module is not loaded");
		return err_set(
			ENODEV,
			"no GPU for CUDA: %s is missing, and onehop does not create it: nvidia-modprobe -u -c 0 does",
			needed[i]);
	}
	return 0;
}

static int start(const struct cuda_place *place, struct cuda_api *ret)
{
	/* clang-format off */
#define ROW(member, symbol, required, params) {symbol, offsetof(struct cuda_api, member), required},
	/* clang-format on */
	static const struct dl_symbol symbols[] = {CUDA_SYMBOLS(ROW)};
	int r = may_open(place && place->root ? place->root : "");

	if (r < 0)
		return r;
	r = dl_load(place && place->library ? place->library : LIBRARY, symbols,
		    sizeof(symbols) / sizeof(*symbols), ret);
	if (r < 0)
		return err_wrap(-ENODEV, "no GPU for CUDA");
	r = ret->cuInit(0);
	return r == CU_SUCCESS ? 0 : cuda_error(ret, r, "cuInit", NULL);
}

/* "0000:41:00.0", as sysfs writes it; "" if it is not a PCI address. */
static void read_address(const struct cuda_api *api, int handle, char *ret, size_t size)
{
	unsigned domain, bus, device, function = 0;
	char text[32] = "";

	ret[0] = '\0';
	if (api->cuDeviceGetPCIBusId(text, sizeof(text), handle) != CU_SUCCESS)
		return;
	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) >= 3)
		snprintf(ret, size, "%04x:%02x:%02x.%x", domain, bus & 0xff, device & 0x1f,
			 function & 7);
}

/* ---- closing ---- */

/* Whether all ended, so that nothing below can wait for what never ends. */
static bool is_idle(struct cuda_set *c)
{
	for (size_t i = 0; i < c->streams.n; i++) {
		struct cuda_object *o = c->streams.items[i];

		if (o && o->own &&
		    cuda_wait(&c->set, (struct stream){i + 1, o->device},
			      o->late ? 0 : CLOSE_LIMIT_US) == -ETIMEDOUT)
			return false;
	}
	return cuda_check_stuck(c) == 0;
}

static void free_made(struct cuda_set *c)
{
	for (size_t i = 0; i < c->graphs.n; i++)
		if (c->graphs.items[i])
			cuda_graph_free(&c->set, (struct graph){.id = i + 1});
	for (size_t i = 0; i < c->events.n; i++)
		if (c->events.items[i])
			cuda_event_free(&c->set, (struct event){.id = i + 1});
	for (size_t i = 0; i < c->streams.n; i++)
		if (c->streams.items[i])
			cuda_stream_free(&c->set, (struct stream){.id = i + 1});
	for (size_t i = 0; i < c->memories.n; i++)
		if (c->memories.items[i])
			cuda_free(&c->set, &(struct memory){.id = i + 1});
}

static void close_device(struct cuda_set *c, int device)
{
	struct cuda_device *d = &c->devices[device];

	if (!d->context)
		return;
	if (d->bounce)
		CUDA(c, device, cuMemFreeHost, d->bounce);
	for (int m = 0; m < CUDA_MODULE_N; m++)
		if (d->modules[m])
			CUDA(c, device, cuModuleUnload, d->modules[m]);
	if (!d->callers)
		c->api.cuDevicePrimaryCtxRelease(d->handle);
}

static void close_all(struct cuda_set *c)
{
	free_made(c);
	for (size_t i = 0; i < c->set.n; i++)
		close_device(c, (int)i);
}

/*
 * Freeing memory and contexts waits for what runs. Where that does not end, they are left to the
 * end of the process: only this side's tables are freed. Peer access that was turned on stays, as
 * others who use the same primary contexts may have come to rely on it. The sentence stays too: a
 * set is often closed because of it.
 */
static void cuda_close(struct device_set *s)
{
	struct cuda_set *c = (struct cuda_set *)s;
	AUTO_FREE char *why = strdup(err_msg());

	if (is_idle(c))
		close_all(c);
	cuda_table_done(&c->graphs);
	cuda_table_done(&c->events);
	cuda_table_done(&c->streams);
	cuda_table_done(&c->memories);
	free(c->access);
	free(c->devices);
	free(s->info);
	free(c);
	err_set(0, "%s", why ? why : "");
}

/* ---- opening ---- */

static int make_current(struct device_set *s, int device)
{
	struct cuda_set *c = (struct cuda_set *)s;

	return cuda_result(c, device, c->api.cuCtxSetCurrent(c->devices[device].context),
			   "cuCtxSetCurrent");
}

static const struct device_ops ops = {
	.name = "cuda",
	.close = cuda_close,
	.can_access = cuda_can_access,
	.atomics = cuda_atomics,
	.peer_access = cuda_peer_access,
	.alloc = cuda_alloc,
	.wrap = cuda_wrap,
	.free = cuda_free,
	.address = cuda_address,
	.memory_at = cuda_memory_at,
	.export = cuda_export,
	.import = cuda_import,
	.read = cuda_read,
	.write = cuda_write,
	.stream_new = cuda_stream_new,
	.stream_wrap = cuda_stream_wrap,
	.stream_free = cuda_stream_free,
	.wait = cuda_wait,
	.event_new = cuda_event_new,
	.event_free = cuda_event_free,
	.event_record = cuda_event_record,
	.event_wait = cuda_event_wait,
	.event_elapsed = cuda_event_elapsed,
	.copy = cuda_copy,
	.enqueue_time = cuda_enqueue_time,
	.launch = cuda_launch,
	.capturing = cuda_capturing,
	.capture_begin = cuda_capture_begin,
	.capture_end = cuda_capture_end,
	.graph_launch = cuda_graph_launch,
	.graph_free = cuda_graph_free,
	.make_current = make_current,
	.stream_native = cuda_stream_native,
};

/* 0 for what this driver does not know. */
static int attribute(const struct cuda_set *c, int device, enum cu_device_attribute a,
		     unsigned *ret)
{
	int value = 0;
	int result = c->api.cuDeviceGetAttribute(&value, a, c->devices[device].handle);

	*ret = (unsigned)value;
	return result == CU_INVALID_VALUE ? 0
					  : cuda_result(c, device, result, "cuDeviceGetAttribute");
}

static int read_attributes(struct cuda_set *c, int device)
{
	struct cuda_device *d = &c->devices[device];
	struct device_info *info = &c->set.info[device];
	unsigned major = 0, minor = 0;
	const struct {
		enum cu_device_attribute attribute;
		unsigned *ret;
	} rows[] = {
		{CU_COMPUTE_CAPABILITY_MAJOR, &major},
		{CU_COMPUTE_CAPABILITY_MINOR, &minor},
		{CU_MULTIPROCESSOR_COUNT, &info->blocks},
		{CU_MAX_THREADS_PER_BLOCK, &info->threads},
		{CU_ASYNC_ENGINE_COUNT, &info->copy_engines},
		{CU_KERNEL_EXEC_TIMEOUT, &info->ends_kernels},
		{CU_VIRTUAL_MEMORY_MANAGEMENT, &d->maps},
		{CU_HANDLE_TYPE_POSIX_FD, &d->exports_fd},
		{CU_RDMA_WITH_VIRTUAL_MEMORY, &d->maps_for_rdma},
		{CU_GENERIC_COMPRESSION, &d->compresses},
		{CU_DMA_BUF, &d->exports_dmabuf},
		{CU_PAGEABLE_MEMORY_ACCESS, &d->reads_pageable},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int r = attribute(c, device, rows[i].attribute, rows[i].ret);

		if (r < 0)
			return r;
	}
	info->sm = major * 10 + minor;
	return 0;
}

static int read_info(struct cuda_set *c, int device)
{
	struct device_info *info = &c->set.info[device];
	int handle = c->devices[device].handle;
	size_t total = 0;
	int r;

	read_address(&c->api, handle, info->pci, sizeof(info->pci));
	r = cuda_result(c, device, c->api.cuDeviceGetName(info->name, sizeof(info->name), handle),
			"cuDeviceGetName");
	if (r == 0)
		r = cuda_result(c, device, c->api.cuDeviceTotalMem(&total, handle),
				"cuDeviceTotalMem");
	if (r < 0)
		return r;
	info->memory_bytes = total;
	return read_attributes(c, device);
}

static unsigned caps_of(const struct cuda_set *c, int device)
{
	const struct cuda_api *api = &c->api;
	const struct cuda_device *d = &c->devices[device];
	unsigned caps = DEVICE_EXPORT_IPC | DEVICE_PEER_SWITCH | DEVICE_NATIVE;

	if (api->cuMemExportToShareableHandle && d->maps && d->exports_fd)
		caps |= DEVICE_EXPORT_FD;
	if (api->cuMemGetHandleForAddressRange && d->exports_dmabuf)
		caps |= DEVICE_EXPORT_DMABUF;
	if (api->cuStreamBeginCapture && api->cuGraphInstantiateWithFlags && api->cuGraphLaunch &&
	    api->cuGraphDestroy)
		caps |= DEVICE_GRAPHS;
	if (c->set.info[device].copy_engines)
		caps |= DEVICE_COPY_ENGINES;
	return caps;
}

static int open_context(struct cuda_set *c, int device)
{
	struct cuda_device *d = &c->devices[device];
	struct device_info *info = &c->set.info[device];
	struct cu_context *context = d->context;
	size_t available, total;
	int r = 0;

	if (!d->callers)
		r = cuda_result(c, device, c->api.cuDevicePrimaryCtxRetain(&context, d->handle),
				"cuDevicePrimaryCtxRetain");
	if (r < 0)
		return r;
	d->context = context;
	r = CUDA(c, device, cuMemGetInfo, &available, &total);
	if (r < 0)
		return r;
	info->free_bytes = available;
	return cuda_alloc_host(c, device, CUDA_TRANSFER_MAX, CU_HOST_PORTABLE, &d->bounce);
}

static int load_collectives(struct cuda_set *c, int device)
{
	int r = cuda_load_kernels(c, device, CUDA_MODULE_COLLECTIVE, collectives_ptx);

	return r < 0 ? r : cuda_find_resident(c, device);
}

static int load_all(struct cuda_set *c, int device, const struct cuda_place *place,
		    bool collectives)
{
	const char *kernels = place && place->kernels ? place->kernels : kernels_ptx;
	int r = kernels[0] ? cuda_load_kernels(c, device, CUDA_MODULE_COMMON, kernels) : 0;

	if (r == 0 && collectives && collectives_ptx[0])
		r = load_collectives(c, device);
	return r;
}

static int open_device(struct cuda_set *c, int device, const struct cuda_place *place,
		       bool collectives)
{
	struct cuda_device *d = &c->devices[device];
	struct stream io;
	int r = cuda_result(c, device, c->api.cuDeviceGet(&d->handle, c->set.info[device].ordinal),
			    "cuDeviceGet");

	if (r == 0)
		r = read_info(c, device);
	if (r < 0)
		return r;
	d->node = numa_node(place && place->root ? place->root : "", c->set.info[device].pci);
	c->set.caps &= caps_of(c, device);
	r = open_context(c, device);
	if (r == 0)
		r = load_all(c, device, place, collectives);
	if (r == 0)
		r = cuda_stream_new(&c->set, device, &io);
	if (r == 0)
		d->io_stream = io.id;
	return r;
}

static struct cuda_set *set_new(const struct device_request *r)
{
	struct cuda_set *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->set = (struct device_set){.ops = &ops, .n = r->n, .caps = ~0u};
	c->set.info = calloc(r->n, sizeof(*c->set.info));
	c->devices = calloc(r->n, sizeof(*c->devices));
	c->access = calloc(r->n * r->n, sizeof(*c->access));
	if (!c->set.info || !c->devices || !c->access) {
		c->set.n = 0;
		cuda_close(&c->set);
		return NULL;
	}
	for (size_t i = 0; i < r->n; i++) {
		c->set.info[i].ordinal = r->ordinal[i];
		c->set.info[i].number = r->number[i];
		c->devices[i].context = (struct cu_context *)(uintptr_t)r->context[i];
		c->devices[i].callers = r->context[i] != 0;
	}
	return c;
}

int cuda_open(const struct device_request *r, const struct cuda_place *place,
	      struct device_set **ret)
{
	struct cuda_set *c;
	int e = 0;

	if (r->n == 0 || r->n > DEVICE_MAX)
		return err_set(EINVAL, "a set of %zu GPUs: 1 to %d can be opened", r->n,
			       DEVICE_MAX);
	c = set_new(r);
	if (!c)
		return err_set(ENOMEM, "no host memory for a set of %zu GPUs", r->n);
	e = start(place, &c->api);
	for (size_t i = 0; i < r->n && e == 0; i++)
		e = open_device(c, (int)i, place, r->collectives);
	if (e < 0) {
		cuda_close(&c->set);
		return e;
	}
	*ret = &c->set;
	return 0;
}
