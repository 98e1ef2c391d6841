/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to and from memory of GPUs: small ones at once, large ones by the copy engines. */
#include "device/cuda_impl.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <string.h>

#define TRANSFER_LIMIT_US 10000000

/* ---- the host's memory: flags in it are shared with what runs on GPUs ---- */

static bool is_word(const void *p, const void *q, size_t n, size_t word)
{
	return n == word && (uintptr_t)p % word == 0 && (uintptr_t)q % word == 0;
}

static void host_read(const void *from, void *to, size_t n)
{
	if (is_word(from, to, n, 4))
		*(uint32_t *)to = __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);
	else if (is_word(from, to, n, 8))
		*(uint64_t *)to = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
	else
		memcpy(to, from, n);
}

static void host_write(void *to, const void *from, size_t n)
{
	if (is_word(from, to, n, 4))
		__atomic_store_n((uint32_t *)to, *(const uint32_t *)from, __ATOMIC_RELEASE);
	else if (is_word(from, to, n, 8))
		__atomic_store_n((uint64_t *)to, *(const uint64_t *)from, __ATOMIC_RELEASE);
	else
		memcpy(to, from, n);
}

/* ---- a GPU's memory: through a stream of our own, because the caller's may be held back ---- */

static int io_wait(struct cuda_set *c, int device)
{
	struct stream io = {c->devices[device].io_stream, device};

	return cuda_wait(&c->set, io, TRANSFER_LIMIT_US);
}

/* A transfer that did not end in time still owns the bounce buffer. */
static int io_begin(struct cuda_set *c, int device, struct cu_stream **ret)
{
	struct stream io = {c->devices[device].io_stream, device};
	struct cuda_object *o = cuda_stream_get(c, io);
	int r;

	if (!o)
		return -EINVAL;
	r = o->late ? cuda_wait(&c->set, io, 0) : 0;
	*ret = o->native;
	return r;
}

static int read_part(struct cuda_set *c, int device, uint64_t from, void *to, size_t n)
{
	void *bounce = c->devices[device].bounce;
	struct cu_stream *io;
	int r = io_begin(c, device, &io);

	if (r == 0)
		r = CUDA(c, device, cuMemcpyDtoHAsync, bounce, from, n, io);
	if (r == 0)
		r = io_wait(c, device);
	if (r == 0)
		memcpy(to, bounce, n);
	return r;
}

static int write_part(struct cuda_set *c, int device, uint64_t to, const void *from, size_t n)
{
	void *bounce = c->devices[device].bounce;
	struct cu_stream *io;
	int r = io_begin(c, device, &io);

	if (r < 0)
		return r;
	memcpy(bounce, from, n);
	r = CUDA(c, device, cuMemcpyHtoDAsync, to, bounce, n, io);
	return r < 0 ? r : io_wait(c, device);
}

static size_t part(size_t left)
{
	return left < CUDA_TRANSFER_MAX ? left : CUDA_TRANSFER_MAX;
}

int cuda_read(struct device_set *s, const struct memory *m, uint64_t offset, void *to, size_t n)
{
	struct cuda_set *c = (struct cuda_set *)s;
	struct cuda_memory *mem = cuda_memory_range(c, m, offset, n);
	int r = 0;

	if (!mem)
		return -EINVAL;
	if (mem->m.device < 0) {
		host_read((void *)(uintptr_t)(mem->address + offset), to, n);
		return 0;
	}
	for (size_t at = 0; r == 0 && at < n; at += part(n - at))
		r = read_part(c, mem->m.device, mem->address + offset + at, (char *)to + at,
			      part(n - at));
	return r;
}

int cuda_write(struct device_set *s, const struct memory *m, uint64_t offset, const void *from,
	       size_t n)
{
	struct cuda_set *c = (struct cuda_set *)s;
	struct cuda_memory *mem = cuda_memory_range(c, m, offset, n);
	int r = 0;

	if (!mem)
		return -EINVAL;
	if (mem->m.device < 0) {
		host_write((void *)(uintptr_t)(mem->address + offset), from, n);
		return 0;
	}
	for (size_t at = 0; r == 0 && at < n; at += part(n - at))
		r = write_part(c, mem->m.device, mem->address + offset + at,
			       (const char *)from + at, part(n - at));
	return r;
}

/* ---- copies ---- */

/* Times the driver's call alone: what a program pays that has made the context its own. */
static int enqueue_copy(struct cuda_set *c, const struct cuda_object *o,
			const struct cuda_memory *t, uint64_t to, const struct cuda_memory *f,
			uint64_t from, uint64_t bytes)
{
	bool direct = t->m.device < 0 || f->m.device < 0 ||
		      (cuda_reaches(c, o->device, t->m.device) &&
		       cuda_reaches(c, o->device, f->m.device));
	int r = cuda_enter(c, o->device);
	uint64_t start = clock_ns();

	if (r < 0)
		return r;
	r = direct ? c->api.cuMemcpyAsync(to, from, bytes, o->native)
		   : c->api.cuMemcpyPeerAsync(to, c->devices[t->m.device].context, from,
					      c->devices[f->m.device].context, bytes, o->native);
	c->enqueue_us = (double)(clock_ns() - start) / 1e3;
	r = cuda_result(c, o->device, r, direct ? "cuMemcpyAsync" : "cuMemcpyPeerAsync");
	cuda_leave(c);
	return r;
}

int cuda_copy(struct device_set *s, struct stream stream, const struct memory *target,
	      uint64_t target_offset, const struct memory *origin, uint64_t origin_offset,
	      uint64_t bytes)
{
	struct cuda_set *c = (struct cuda_set *)s;
	struct cuda_object *o = cuda_stream_get(c, stream);
	struct cuda_memory *t = cuda_memory_range(c, target, target_offset, bytes);
	struct cuda_memory *f = cuda_memory_range(c, origin, origin_offset, bytes);

	if (!o || !t || !f)
		return -EINVAL;
	return enqueue_copy(c, o, t, t->address + target_offset, f, f->address + origin_offset,
			    bytes);
}

int cuda_enqueue_time(struct device_set *s, double *ret_us)
{
	*ret_us = ((struct cuda_set *)s)->enqueue_us;
	return 0;
}
