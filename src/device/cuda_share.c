/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory handed to other processes and to NICs, and taken from them. */
#include "device/cuda_impl.h"

#include "base/err.h"
#include "base/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * What the blob of an export holds: by IPC the driver's 64 bytes; as a file descriptor how many
 * bytes to map, which the receiver cannot ask for.
 */
union blob {
	struct cu_ipc_handle ipc;
	uint64_t mapped;
};

_Static_assert(sizeof(union blob) == sizeof(((struct memory_export *)0)->blob), "memory_export");

/* ---- the host's memory as a file ---- */

static void close_shared(const struct cuda_memory *mem)
{
	munmap((void *)(uintptr_t)mem->address, mem->m.size);
	close(mem->fd);
}

static int release_shared(struct cuda_set *c, struct cuda_memory *mem)
{
	int r = CUDA(c, 0, cuMemHostUnregister, (void *)(uintptr_t)mem->address);

	close_shared(mem);
	return r;
}

static int open_shared(int fd, uint64_t size)
{
	int own = fd < 0 ? memory_file(size) : fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own >= 0)
		return own;
	return err_sys(fd < 0 ? -own : errno, "shared memory of %llu bytes",
		       (unsigned long long)size);
}

int cuda_map_shared(struct cuda_set *c, int device, int fd, struct cuda_memory *mem)
{
	void *p;
	int r = open_shared(fd, mem->m.size);

	if (r < 0)
		return r;
	mem->fd = r;
	mem->release = release_shared;
	p = mmap(NULL, mem->m.size, PROT_READ | PROT_WRITE, MAP_SHARED, mem->fd, 0);
	if (p == MAP_FAILED) {
		r = err_sys(errno, "mapping shared memory");
		close(mem->fd);
		return r;
	}
	mem->address = (uintptr_t)p;
	r = CUDA(c, device, cuMemHostRegister, p, mem->m.size, CU_HOST_PORTABLE | CU_HOST_MAPPED);
	if (r < 0)
		close_shared(mem);
	return r;
}

static int export_shared(const struct cuda_memory *mem, struct memory_export *e)
{
	e->fd = fcntl(mem->fd, F_DUPFD_CLOEXEC, 0);
	return e->fd < 0 ? err_sys(errno, "exporting shared memory") : 0;
}

/* ---- out ---- */

static void close_on_exec(int fd)
{
	int flags = fcntl(fd, F_GETFD);

	if (flags >= 0)
		fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

static int export_fd(struct cuda_set *c, const struct cuda_memory *mem, struct memory_export *e,
		     union blob *blob)
{
	int r;

	if (mem->m.kind == MEMORY_SHARED)
		return export_shared(mem, e);
	if (!mem->mapped)
		return err_set(EINVAL, "only exportable memory can be shared as a file descriptor");
	r = CUDA(c, mem->m.device, cuMemExportToShareableHandle, &e->fd, mem->handle,
		 CU_HANDLE_POSIX_FD, 0);
	if (r < 0)
		return r;
	close_on_exec(e->fd);
	blob->mapped = mem->mapped;
	return 0;
}

static int export_ipc(struct cuda_set *c, const struct cuda_memory *mem, struct memory_export *e,
		      union blob *blob)
{
	uint64_t base;
	size_t size;
	int r;

	if (mem->m.kind != MEMORY_DEVICE && mem->m.kind != MEMORY_CALLER)
		return err_set(EINVAL, "only plain memory of a GPU itself can be shared by IPC");
	r = CUDA(c, mem->m.device, cuMemGetAddressRange, &base, &size, mem->address);
	if (r < 0)
		return r;
	e->offset = mem->address - base;
	return CUDA(c, mem->m.device, cuIpcGetMemHandle, &blob->ipc, base);
}

/* Whole pages of the host's size around it, which the allocation's own granularity covers. */
static int export_dmabuf(struct cuda_set *c, const struct cuda_memory *mem, struct memory_export *e,
			 union blob *blob)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t from = mem->address / page * page;
	uint64_t to = (mem->address + mem->m.size + page - 1) / page * page;
	int r;

	(void)blob;
	r = CUDA(c, mem->m.device, cuMemGetHandleForAddressRange, &e->fd, from, to - from,
		 CU_RANGE_DMA_BUF, 0);
	if (r < 0)
		return r;
	close_on_exec(e->fd);
	e->offset = mem->address - from;
	return 0;
}

int cuda_export(struct device_set *s, const struct memory *m, enum export_kind kind,
		struct memory_export *ret)
{
	static int (*const exports[])(struct cuda_set *, const struct cuda_memory *,
				      struct memory_export *, union blob *) = {
		[EXPORT_FD] = export_fd,
		[EXPORT_IPC] = export_ipc,
		[EXPORT_DMABUF] = export_dmabuf,
	};
	struct cuda_set *c = (struct cuda_set *)s;
	struct cuda_memory *mem = cuda_memory_range(c, m, 0, 0);
	struct memory_export e = {.kind = kind, .fd = -1};
	union blob blob = {0};
	int r;

	if (!mem)
		return -EINVAL;
	if (kind >= sizeof(exports) / sizeof(*exports) ||
	    (mem->m.device < 0 && mem->m.kind != MEMORY_SHARED))
		return err_set(EINVAL, "only memory of a GPU can be exported");
	e.owner = mem->m.owner;
	e.size = mem->m.size;
	r = exports[kind](c, mem, &e, &blob);
	if (r < 0)
		return r;
	memcpy(e.blob, &blob, sizeof(blob));
	*ret = e;
	return 0;
}

/* ---- in ---- */

static int close_ipc(struct cuda_set *c, struct cuda_memory *mem)
{
	return CUDA(c, mem->m.device, cuIpcCloseMemHandle, mem->base);
}

static int import_ipc(struct cuda_set *c, const struct memory_export *e, const union blob *blob,
		      struct cuda_memory *mem)
{
	int r = CUDA(c, mem->m.device, cuIpcOpenMemHandle, &mem->base, blob->ipc,
		     CU_IPC_LAZY_PEER_ACCESS);

	mem->release = close_ipc;
	mem->address = mem->base + e->offset;
	return r;
}

static int import_fd(struct cuda_set *c, const struct memory_export *e, const union blob *blob,
		     struct cuda_memory *mem)
{
	int device = mem->m.device, r;

	if (e->fd >= 0 && e->owner < 0 && !blob->mapped)
		return cuda_map_shared(c, device, e->fd, mem);
	if (e->fd < 0 || blob->mapped < e->size)
		return err_set(EINVAL, "the exported memory is invalid");
	r = CUDA(c, device, cuMemImportFromShareableHandle, &mem->handle, (void *)(intptr_t)e->fd,
		 CU_HANDLE_POSIX_FD);
	if (r < 0)
		return r;
	mem->mapped = blob->mapped;
	mem->release = cuda_release_mapped;
	r = cuda_map(c, device, mem);
	if (r < 0)
		c->api.cuMemRelease(mem->handle);
	return r;
}

static int import_nothing(struct cuda_set *c, const struct memory_export *e, const union blob *blob,
			  struct cuda_memory *mem)
{
	(void)c;
	(void)e;
	(void)blob;
	(void)mem;
	return err_set(ENOTSUP, "a GPU cannot import a dma-buf");
}

static int refused(const struct cuda_set *c, int device, int32_t owner, int r)
{
	char where[48];

	if (owner < 0 || owner == c->set.info[device].number || r == -ENOTSUP)
		return r;
	r = cuda_refusal(c, device, r);
	if (r != -EACCES)
		return r;
	return err_wrap(-EACCES, "%s cannot use that memory of device %d of another process",
			cuda_where(c, device, where, sizeof(where)), owner);
}

int cuda_import(struct device_set *s, int device, const struct memory_export *e, struct memory *ret)
{
	static int (*const imports[])(struct cuda_set *, const struct memory_export *,
				      const union blob *, struct cuda_memory *) = {
		[EXPORT_FD] = import_fd,
		[EXPORT_IPC] = import_ipc,
		[EXPORT_DMABUF] = import_nothing,
	};
	struct cuda_set *c = (struct cuda_set *)s;
	struct cuda_memory *mem;
	union blob blob;
	uint64_t id;
	int r;

	if (e->kind >= sizeof(imports) / sizeof(*imports))
		return err_set(EINVAL, "unknown kind of export: %u", e->kind);
	r = cuda_table_add(&c->memories, sizeof(*mem), &id, &mem);
	if (r < 0)
		return r;
	mem->m = (struct memory){.id = id,
				 .size = e->size,
				 .device = device,
				 .owner = e->owner,
				 .kind = MEMORY_IMPORTED};
	memcpy(&blob, e->blob, sizeof(blob));
	r = imports[e->kind](c, e, &blob, mem);
	if (r < 0) {
		cuda_table_remove(&c->memories, id);
		return refused(c, device, e->owner, r);
	}
	*ret = mem->m;
	return 0;
}
