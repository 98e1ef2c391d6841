/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of GPUs and pinned host memory, and which GPU may reach whose. */
#include "device/cuda_impl.h"

#include "base/err.h"
#include "device/numa.h"

#include <errno.h>

static struct cuda_set *set_of(struct device_set *s)
{
	return (struct cuda_set *)s;
}

static bool *access_of(const struct cuda_set *c, int initiator, int target)
{
	return &c->access[(size_t)initiator * c->set.n + (size_t)target];
}

static bool same_gpu(const struct cuda_set *c, int a, int b)
{
	return c->devices[a].handle == c->devices[b].handle;
}

bool cuda_reaches(const struct cuda_set *c, int initiator, int target)
{
	return same_gpu(c, initiator, target) || *access_of(c, initiator, target);
}

struct cuda_memory *cuda_memory_range(const struct cuda_set *c, const struct memory *m,
				      uint64_t offset, uint64_t bytes)
{
	struct cuda_memory *mem = cuda_table_get(&c->memories, m->id, "memory");

	if (!mem || (offset <= mem->m.size && bytes <= mem->m.size - offset))
		return mem;
	err_set(EINVAL, "bytes %llu to %llu are outside memory of %llu bytes",
		(unsigned long long)offset, (unsigned long long)(offset + bytes),
		(unsigned long long)mem->m.size);
	return NULL;
}

/* ---- plain ---- */

static int release_nothing(struct cuda_set *c, struct cuda_memory *mem)
{
	(void)c;
	(void)mem;
	return 0;
}

static int release_plain(struct cuda_set *c, struct cuda_memory *mem)
{
	return CUDA(c, mem->m.device, cuMemFree, mem->address);
}

static int alloc_plain(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	mem->release = release_plain;
	return CUDA(c, device, cuMemAlloc, &mem->address, mem->m.size);
}

/* ---- pinned: at one address for the host and all GPUs, since addresses are unified ---- */

static int release_pinned(struct cuda_set *c, struct cuda_memory *mem)
{
	return CUDA(c, 0, cuMemFreeHost, (void *)(uintptr_t)mem->address);
}

int cuda_alloc_host(struct cuda_set *c, int device, size_t size, unsigned flags, void **ret)
{
	bool preferred = numa_prefer(c->devices[device].node);
	int r = CUDA(c, device, cuMemHostAlloc, ret, size, flags);

	if (preferred)
		numa_prefer_none();
	return r;
}

static int alloc_pinned(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	void *p = NULL;
	int r = cuda_alloc_host(c, device < 0 ? 0 : device, mem->m.size,
				CU_HOST_PORTABLE | CU_HOST_MAPPED, &p);

	mem->release = release_pinned;
	mem->address = (uintptr_t)p;
	mem->m.device = mem->m.owner = -1;
	return r;
}

/* ---- shared: pinned pages of a file, as NCCL has them in /dev/shm ---- */

static int alloc_shared(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	mem->m.device = mem->m.owner = -1;
	return cuda_map_shared(c, device < 0 ? 0 : device, -1, mem);
}

/* ---- mapped: allocations that have a handle ---- */

static int set_access(struct cuda_set *c, int device, const struct cuda_memory *mem,
		      enum cu_access access)
{
	struct cu_access_desc desc = {{CU_LOCATION_DEVICE, c->devices[device].handle}, access};

	return CUDA(c, device, cuMemSetAccess, mem->address, mem->mapped, &desc, 1);
}

static int refused(const struct cuda_set *c, int initiator, int target, int r)
{
	char from[48], to[48];

	return err_wrap(cuda_refusal(c, initiator, r), "peer access from %s to %s",
			cuda_where(c, initiator, from, sizeof(from)),
			cuda_where(c, target, to, sizeof(to)));
}

static int share_with_peers(struct cuda_set *c, int owner, const struct cuda_memory *mem)
{
	for (int i = 0; i < (int)c->set.n; i++) {
		int r = !same_gpu(c, i, owner) && *access_of(c, i, owner)
				? set_access(c, i, mem, CU_ACCESS_READ_WRITE)
				: 0;
		if (r < 0)
			return refused(c, i, owner, r);
	}
	return 0;
}

/* After a failure, whose sentence must stay. */
static void unmap(struct cuda_set *c, const struct cuda_memory *mem)
{
	c->api.cuMemUnmap(mem->address, mem->mapped);
	c->api.cuMemAddressFree(mem->address, mem->mapped);
}

int cuda_map(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	int r = CUDA(c, device, cuMemAddressReserve, &mem->address, mem->mapped, 0, 0, 0);

	if (r < 0)
		return r;
	r = CUDA(c, device, cuMemMap, mem->address, mem->mapped, 0, mem->handle, 0);
	if (r < 0) {
		c->api.cuMemAddressFree(mem->address, mem->mapped);
		return r;
	}
	r = set_access(c, device, mem, CU_ACCESS_READ_WRITE);
	if (r < 0)
		unmap(c, mem);
	return r;
}

int cuda_release_mapped(struct cuda_set *c, struct cuda_memory *mem)
{
	int device = mem->m.device;
	int unmapped = CUDA(c, device, cuMemUnmap, mem->address, mem->mapped);
	int released = CUDA(c, device, cuMemRelease, mem->handle);
	int freed = CUDA(c, device, cuMemAddressFree, mem->address, mem->mapped);

	return unmapped < 0 ? unmapped : released < 0 ? released : freed;
}

static struct cu_allocation allocation_of(const struct cuda_device *d, enum memory_kind kind)
{
	struct cu_allocation a = {.type = CU_ALLOCATION_PINNED,
				  .handle_types = CU_HANDLE_POSIX_FD,
				  .location = {CU_LOCATION_DEVICE, d->handle}};

	if (kind == MEMORY_COMPRESSIBLE)
		a.compression = CU_COMPRESSION_GENERIC;
	else if (kind == MEMORY_HOST)
		a.location = (struct cu_location){CU_LOCATION_HOST_NUMA, d->node < 0 ? 0 : d->node};
	else
		a.rdma_capable = d->maps_for_rdma != 0;
	return a;
}

static int cannot(const struct cuda_set *c, int device, const char *what)
{
	char where[48];

	return err_set(ENOTSUP, "%s cannot %s", cuda_where(c, device, where, sizeof(where)), what);
}

/* Of mem->m.kind. */
static int create(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	struct cu_allocation a = allocation_of(&c->devices[device], mem->m.kind);
	size_t granularity;
	int r;

	if (!c->devices[device].maps || !c->devices[device].exports_fd)
		return cannot(c, device, "share memory as file descriptors");
	r = CUDA(c, device, cuMemGetAllocationGranularity, &granularity, &a,
		 CU_GRANULARITY_MINIMUM);
	if (r < 0)
		return r;
	if (mem->m.size > UINT64_MAX - granularity)
		return err_set(EINVAL, "the size is too large");
	mem->mapped = (mem->m.size + granularity - 1) / granularity * granularity;
	return CUDA(c, device, cuMemCreate, &mem->handle, mem->mapped, &a, 0);
}

/* What was created; let go of after an error. */
static int map_created(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	int r = cuda_map(c, device, mem);

	mem->release = cuda_release_mapped;
	if (r == 0) {
		r = share_with_peers(c, device, mem);
		if (r < 0)
			unmap(c, mem);
	}
	if (r < 0)
		c->api.cuMemRelease(mem->handle);
	return r;
}

static int alloc_mapped(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	int r = create(c, device, mem);

	return r < 0 ? r : map_created(c, device, mem);
}

/* The driver may give other memory than was asked for. */
static int check_compressible(struct cuda_set *c, int device, const struct cuda_memory *mem)
{
	struct cu_allocation got = {0};
	int r = CUDA(c, device, cuMemGetAllocationPropertiesFromHandle, &got, mem->handle);

	if (r == 0 && got.compression != CU_COMPRESSION_GENERIC)
		r = cannot(c, device, "compress the memory that was asked for");
	return r;
}

static int alloc_compressible(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	int r;

	if (!c->devices[device].compresses)
		return cannot(c, device, "compress memory");
	r = create(c, device, mem);
	if (r < 0)
		return r;
	r = check_compressible(c, device, mem);
	if (r == 0)
		return map_created(c, device, mem);
	c->api.cuMemRelease(mem->handle);
	return r;
}

/* Drivers before 12.2 know no such place, and call it invalid. */
static int alloc_host(struct cuda_set *c, int device, struct cuda_memory *mem)
{
	int r = create(c, device, mem);

	mem->m.owner = -1;
	if (r == -EINVAL || r == -ENODEV)
		return err_wrap(-ENOTSUP, "this driver cannot create host memory");
	return r < 0 ? r : map_created(c, device, mem);
}

/* ---- the slots ---- */

int cuda_alloc(struct device_set *s, int device, enum memory_kind kind, uint64_t size,
	       struct memory *ret)
{
	static int (*const allocs[])(struct cuda_set *, int, struct cuda_memory *) = {
		[MEMORY_DEVICE] = alloc_plain,
		[MEMORY_EXPORTABLE] = alloc_mapped,
		[MEMORY_PINNED] = alloc_pinned,
		[MEMORY_SHARED] = alloc_shared,
		[MEMORY_COMPRESSIBLE] = alloc_compressible,
		[MEMORY_HOST] = alloc_host,
	};
	struct cuda_set *c = set_of(s);
	struct cuda_memory *mem;
	uint64_t id;
	int r;

	if (kind >= sizeof(allocs) / sizeof(*allocs) || size == 0)
		return err_set(EINVAL, "cannot allocate %llu bytes of kind %d",
			       (unsigned long long)size, kind);
	r = cuda_table_add(&c->memories, sizeof(*mem), &id, &mem);
	if (r < 0)
		return r;
	mem->m = (struct memory){.id = id, .size = size, .device = device, .kind = kind};
	mem->m.owner = device < 0 ? -1 : s->info[device].number;
	r = allocs[kind](c, device, mem);
	if (r < 0) {
		cuda_table_remove(&c->memories, id);
		return r == -ENOMEM ? err_wrap(r, "%.1f MiB", (double)size / 0x100000) : r;
	}
	*ret = mem->m;
	return 0;
}

int cuda_wrap(struct device_set *s, int device, uint64_t address, uint64_t size, struct memory *ret)
{
	struct cuda_set *c = set_of(s);
	struct cuda_memory *mem;
	uint64_t id;
	int r = cuda_table_add(&c->memories, sizeof(*mem), &id, &mem);

	if (r < 0)
		return r;
	mem->m = (struct memory){.id = id, .size = size, .device = device, .kind = MEMORY_CALLER};
	mem->m.owner = device < 0 ? -1 : s->info[device].number;
	mem->address = address;
	mem->release = release_nothing;
	*ret = mem->m;
	return 0;
}

/* Freeing waits for all that runs on the GPU, so it is not tried while that does not end. */
int cuda_free(struct device_set *s, const struct memory *m)
{
	struct cuda_set *c = set_of(s);
	struct cuda_memory *mem = cuda_memory_range(c, m, 0, 0);
	int r;

	if (!mem)
		return -EINVAL;
	r = cuda_check_stuck(c);
	if (r < 0)
		return r;
	r = mem->release(c, mem);
	cuda_table_remove(&c->memories, m->id);
	return r;
}

int cuda_address(struct device_set *s, const struct memory *m, int device, uint64_t *ret)
{
	struct cuda_set *c = set_of(s);
	struct cuda_memory *mem = cuda_memory_range(c, m, 0, 0);
	char from[48], to[48];
	bool seen;

	if (!mem)
		return -EINVAL;
	seen = mem->m.device < 0 || mem->m.kind == MEMORY_CALLER ||
	       (mem->m.kind == MEMORY_IMPORTED ? same_gpu(c, device, mem->m.device)
					       : cuda_reaches(c, device, mem->m.device));
	if (!seen)
		return err_set(EACCES, "%s has no access to that memory of %s",
			       cuda_where(c, device, from, sizeof(from)),
			       cuda_where(c, mem->m.device, to, sizeof(to)));
	*ret = mem->address;
	return 0;
}

/*
 * Unlike cuPointerGetAttribute this does not fail where nothing is known. GPUs that read pageable
 * memory can use all memory of the process.
 */
int cuda_memory_at(struct device_set *s, int device, uint64_t address, uint64_t *ret_begin,
		   uint64_t *ret_end)
{
	static const int wanted[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_RANGE_START,
				     CU_POINTER_RANGE_SIZE};
	struct cuda_set *c = set_of(s);
	unsigned type = 0;
	uint64_t begin = 0;
	size_t size = 0;
	void *values[] = {&type, &begin, &size};
	char where[48];
	int r = 0;

	*ret_begin = 0;
	*ret_end = UINT64_MAX;
	if (c->devices[device].reads_pageable || !c->api.cuPointerGetAttributes)
		return 0;
	r = CUDA(c, device, cuPointerGetAttributes, 3, (int *)wanted, values, address);
	if (r < 0)
		return r;
	if (!type)
		return err_set(EFAULT,
			       "%s cannot use the memory at 0x%llx: it is the host's, and not "
			       "pinned (cudaMallocHost, cudaHostRegister)",
			       cuda_where(c, device, where, sizeof(where)),
			       (unsigned long long)address);
	*ret_begin = size ? begin : address;
	*ret_end = size ? begin + size : address + 1;
	return 0;
}

/* ---- peers ---- */

int cuda_can_access(struct device_set *s, int initiator, int target, bool *ret)
{
	struct cuda_set *c = set_of(s);
	int can = 1, r = 0;

	if (!same_gpu(c, initiator, target))
		r = CUDA(c, initiator, cuDeviceCanAccessPeer, &can, c->devices[initiator].handle,
			 c->devices[target].handle);
	if (r == 0)
		*ret = can != 0;
	return r;
}

int cuda_atomics(struct device_set *s, int device, const char *pci, bool *ret)
{
	struct cuda_set *c = set_of(s);
	int peer = 0, can = 0;
	int r = CUDA(c, device, cuDeviceGetByPCIBusId, &peer, pci);

	if (r == 0)
		r = CUDA(c, device, cuDeviceGetP2PAttribute, &can, CU_P2P_NATIVE_ATOMICS,
			 c->devices[device].handle, peer);
	if (r == 0)
		*ret = can != 0;
	return r;
}

static int switch_context(struct cuda_set *c, int initiator, int target, bool on)
{
	int r = cuda_enter(c, initiator), result;

	if (r < 0)
		return r;
	result = on ? c->api.cuCtxEnablePeerAccess(c->devices[target].context, 0)
		    : c->api.cuCtxDisablePeerAccess(c->devices[target].context);
	cuda_leave(c);
	if (result == CU_PEER_ACCESS_ALREADY_ENABLED || result == CU_PEER_ACCESS_NOT_ENABLED)
		return 0;
	return cuda_result(c, initiator, result,
			   on ? "cuCtxEnablePeerAccess" : "cuCtxDisablePeerAccess");
}

/* The mapped memory there is; what is made later gets its access when it is made. */
static int switch_mapped(struct cuda_set *c, int initiator, int target, enum cu_access access)
{
	for (size_t i = 0; i < c->memories.n; i++) {
		const struct cuda_memory *mem = c->memories.items[i];
		int r;

		if (!mem || !mem->mapped || mem->m.kind == MEMORY_IMPORTED ||
		    mem->m.device != target)
			continue;
		r = set_access(c, initiator, mem, access);
		if (r < 0)
			return r;
	}
	return 0;
}

int cuda_peer_access(struct device_set *s, int initiator, int target, bool on)
{
	struct cuda_set *c = set_of(s);
	int r;

	if (same_gpu(c, initiator, target))
		return 0;
	r = switch_context(c, initiator, target, on);
	if (r < 0)
		return refused(c, initiator, target, r);
	r = switch_mapped(c, initiator, target, on ? CU_ACCESS_READ_WRITE : CU_ACCESS_NONE);
	if (r < 0) {
		r = refused(c, initiator, target, r);
		if (on)
			switch_context(c, initiator, target, false);
		return r;
	}
	*access_of(c, initiator, target) = on;
	return 0;
}
