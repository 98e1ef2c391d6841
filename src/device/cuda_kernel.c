/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels on a GPU: compiled by the driver from the PTX when a set is opened, and launched. */
#include "device/cuda_impl.h"

#include "base/array.h"
#include "base/err.h"

#include <errno.h>
#include <string.h>

#define LOG_BYTES 2048

/* In the order of enum device_kernel. */
static const struct {
	const char *name;
	size_t args_size;
	enum cuda_module module;
} kernels[] = {
#define COMMON_ROW(name)     {#name, sizeof(struct name##_args), CUDA_MODULE_COMMON},
#define COLLECTIVE_ROW(name) {#name, sizeof(struct name##_args), CUDA_MODULE_COLLECTIVE},
	COMMON_KERNELS(COMMON_ROW) COLLECTIVE_KERNELS(COLLECTIVE_ROW)};

/* All at once: loading one later may wait for a kernel that is waiting for it. */
static int load_function(struct cuda_set *c, int device, enum device_kernel kernel)
{
	struct cuda_device *d = &c->devices[device];
	struct cu_function *f;
	int max = 0, r;

	r = CUDA(c, device, cuModuleGetFunction, &f, d->modules[kernels[kernel].module],
		 kernels[kernel].name);
	if (r == 0 && c->api.cuFuncLoad)
		r = CUDA(c, device, cuFuncLoad, f);
	if (r == 0)
		r = CUDA(c, device, cuFuncGetAttribute, &max, CU_FUNCTION_MAX_THREADS, f);
	if (r < 0)
		return err_wrap(r, "kernel %s", kernels[kernel].name);
	d->functions[kernel] = f;
	d->max_threads[kernel] = (unsigned)max;
	return 0;
}

#define SMALL_BLOCK 128 /* threads: a warp for each of a multiprocessor's four schedulers */

int cuda_find_resident(struct cuda_set *c, int device)
{
	static const enum device_kernel sends[] = {KERNEL_collective_pairs,
						   KERNEL_collective_messages};
	const struct cuda_device *d = &c->devices[device];
	unsigned least = ~0u;

	for (size_t i = 0; i < ARRAY_LEN(sends); i++) {
		int blocks = 0;
		const int r = CUDA(c, device, cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks,
				   d->functions[sends[i]], SMALL_BLOCK, 0);

		if (r < 0)
			return r;
		if ((unsigned)blocks * SMALL_BLOCK < least)
			least = (unsigned)blocks * SMALL_BLOCK;
	}
	c->set.info[device].resident_threads = least;
	return 0;
}

int cuda_load_kernels(struct cuda_set *c, int device, enum cuda_module module, const char *ptx)
{
	struct cu_module **ret = &c->devices[device].modules[module];
	char log[LOG_BYTES] = "";
	int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_SIZE};
	void *values[] = {log, (void *)(uintptr_t)(sizeof(log) - 1)};
	int r = CUDA(c, device, cuModuleLoadDataEx, ret, ptx, 2, options, values);

	if (r < 0) {
		*ret = NULL;
		log[strcspn(log, "\n")] = '\0';
		return log[0] ? err_wrap(r, "the GPU kernels do not compile (%s)", log) : r;
	}
	for (int k = 0; k < KERNEL_N && r == 0; k++)
		if (kernels[k].module == module)
			r = load_function(c, device, k);
	return r;
}

int cuda_launch(struct device_set *s, struct stream stream, const struct launch *l)
{
	struct cuda_set *c = (struct cuda_set *)s;
	struct cuda_object *o = cuda_stream_get(c, stream);
	void *params[] = {(void *)(uintptr_t)l->args};
	struct cuda_device *d;
	unsigned threads;

	if (!o)
		return -EINVAL;
	if (l->kernel >= KERNEL_N || l->args_size != kernels[l->kernel].args_size)
		return err_set(EINVAL, "kernel %d: %zu bytes of arguments do not match",
			       (int)l->kernel, l->args_size);
	d = &c->devices[o->device];
	if (!d->functions[l->kernel])
		return err_set(ENOTSUP, "built without GPU kernels");
	threads = l->threads < d->max_threads[l->kernel] ? l->threads : d->max_threads[l->kernel];
	return CUDA(c, o->device, cuLaunchKernel, d->functions[l->kernel], l->blocks, 1, 1, threads,
		    1, 1, 0, o->native, params, NULL);
}
