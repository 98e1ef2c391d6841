/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA back end on a stand-in for the driver: all that it does, and every way to fail. */
#include "base/alloc.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cuda_standin.h"
#include "device/cuda.h"
#include "device/cuda_api.h"
#include "kernels/ptx.h"
#include "skip.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1ul << 20)

/* ---- the stand-in, and a root with what the driver's presence is told by ---- */

static struct cuda_standin *standin;
static char root[] = "/tmp/onehop-cuda-XXXXXX";
static char library[512];
static const struct cuda_place place = {.library = library, .root = root, .kernels = ".version"};

static const char *const nodes[] = {"/proc/driver/nvidia/version", "/dev/nvidiactl",
				    "/dev/nvidia-uvm"};

static void write_file(const char *path, const char *text)
{
	AUTO_FREE char *whole = xprintf("%s%s", root, path);
	AUTO_CLOSE int fd = -1;

	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(whole, 0700);
		*slash = '/';
	}
	fd = open(whole, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void make_file(const char *path)
{
	write_file(path, "");
}

static void remove_file(const char *path)
{
	AUTO_FREE char *whole = xprintf("%s%s", root, path);

	assert_int_equal(remove(whole), 0);
}

static const char *folder(void)
{
	const char *f = getenv("NVML_STANDIN_DIR");

	return f ? f : ".";
}

static struct cuda_standin *load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct cuda_standin *s = lib ? dlsym(lib, "cuda_standin") : NULL;

	if (!s) {
		fprintf(stderr, "%s: %s\n", path, dlerror());
		abort();
	}
	return s;
}

static int prepare(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < 3; i++)
		make_file(nodes[i]);
	snprintf(library, sizeof(library), "%s/cuda_standin.so", folder());
	standin = load(library);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		remove_file(nodes[i]);
	remove_file("/proc/driver/nvidia");
	remove_file("/proc/driver");
	remove_file("/proc");
	remove_file("/dev");
	return rmdir(root);
}

static int reset(void **state)
{
	(void)state;
	*standin = (struct cuda_standin){.devices = 3, .memory_bytes = 64 * MIB, .desktop = -1};
	return 0;
}

/* Nothing is left of a set, and the thread's context is as before. */
static void assert_all_freed(void)
{
	const struct cuda_standin *s = standin;

	assert_int_equal(s->depth, 0);
	assert_int_equal(s->contexts, 0);
	assert_int_equal(s->modules, 0);
	assert_int_equal(s->allocations, 0);
	assert_int_equal(s->pinned, 0);
	assert_int_equal(s->registered, 0);
	assert_int_equal(s->handles, 0);
	assert_int_equal(s->ranges, 0);
	assert_int_equal(s->mappings, 0);
	assert_int_equal(s->opened, 0);
	assert_int_equal(s->streams, 0);
	assert_int_equal(s->events, 0);
	assert_int_equal(s->graphs, 0);
	assert_int_equal(s->instances, 0);
}

static int no_leak(void **state)
{
	(void)state;
	assert_all_freed();
	return 0;
}

static const struct device_request two = {.kind = DEVICE_CUDA,
					  .n = 2,
					  .ordinal = {2, 0},
					  .number = {7, 5}};

static struct device_set *open_two(void)
{
	struct device_set *s = NULL;
	int r = cuda_open(&two, &place, &s);

	if (r < 0)
		fail_msg("%d: %s", r, err_msg());
	return s;
}

static void fail_at(const char *function, unsigned nth, int result)
{
	standin->fail = function;
	standin->fail_nth = nth;
	standin->fail_result = result;
	standin->calls = 0;
}

#define assert_says(expected) assert_non_null(strstr(err_msg(), expected))
#define assert_ok(call)                                                                            \
	do {                                                                                       \
		int ok_ = (call);                                                                  \
		if (ok_ != 0)                                                                      \
			fail_msg("%s: %d: %s", #call, ok_, err_msg());                             \
	} while (0)

/* ---- opening ---- */

static void test_stays_closed(void **state)
{
	static const char *const says[] = {"the nvidia module is not loaded",
					   "/dev/nvidiactl is missing",
					   "/dev/nvidia-uvm is missing"};
	struct device_set *s;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		remove_file(nodes[i]);
		assert_int_equal(cuda_open(&two, &place, &s), -ENODEV);
		assert_says(says[i]);
		make_file(nodes[i]);
	}
	assert_int_equal(standin->inits, 0);
}

static void test_no_library(void **state)
{
	AUTO_FREE char *other = xprintf("%s/nvml_standin.so", folder());
	struct cuda_place p = {.library = "/nonexistent/libcuda.so.1", .root = root};
	struct device_set *s;

	(void)state;
	assert_int_equal(cuda_open(&two, &p, &s), -ENODEV);
	assert_says("no GPU for CUDA: /nonexistent/libcuda.so.1");
	p.library = other;
	assert_int_equal(cuda_open(&two, &p, &s), -ENODEV);
	assert_says("has no symbol cuInit");
}

static void test_start_fails(void **state)
{
	struct device_set *s;
	struct device_request r = two;

	(void)state;
	fail_at("cuInit", 1, CU_SYSTEM_NOT_READY);
	assert_int_equal(cuda_open(&two, &place, &s), -ENODEV);
	assert_string_equal(
		err_msg(),
		"cuInit: system not yet initialized (CUDA_ERROR_SYSTEM_NOT_READY): a machine with "
		"NVSwitch needs nvidia-fabricmanager running");
	fail_at("cuDevicePrimaryCtxRetain", 2, CU_DEVICE_UNAVAILABLE);
	assert_int_equal(cuda_open(&two, &place, &s), -EBUSY);
	assert_says("cuDevicePrimaryCtxRetain on GPU 0000:4a:00.0: ");
	r.ordinal[1] = 3;
	assert_int_equal(cuda_open(&r, &place, &s), -ENODEV);
	assert_says("cuDeviceGet on CUDA device 3: invalid device ordinal");
	r.n = 0;
	assert_int_equal(cuda_open(&r, &place, &s), -EINVAL);
}

static void test_hidden(void **state)
{
	struct device_set *s;

	(void)state;
	standin->devices = 0;
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	assert_int_equal(cuda_open(&two, &place, &s), -ENODEV);
	assert_says("CUDA_VISIBLE_DEVICES is set and may hide them");
	unsetenv("CUDA_VISIBLE_DEVICES");
	assert_int_equal(cuda_open(&two, &place, &s), -ENODEV);
	assert_string_equal(err_msg(),
			    "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)");
}

static void test_info(void **state)
{
	struct device_set *s = open_two();

	(void)state;
	assert_string_equal(s->ops->name, "cuda");
	assert_int_equal(s->n, 2);
	assert_string_equal(s->info[0].pci, "0000:4c:00.0");
	assert_string_equal(s->info[1].pci, "0000:4a:00.0");
	assert_int_equal(s->info[0].ordinal, 2);
	assert_int_equal(s->info[0].number, 7);
	assert_int_equal(s->info[0].sm, 90);
	assert_int_equal(s->info[0].blocks, 132);
	assert_int_equal(s->info[0].threads, 1024);
	assert_int_equal(s->info[0].resident_threads, 0); /* no kernels of collectives */
	assert_int_equal(s->info[0].copy_engines, 3);
	assert_int_equal(s->info[0].ends_kernels, 0);
	assert_int_equal(s->info[0].memory_bytes, 64 * MIB);
	assert_int_equal(s->info[0].free_bytes, 64 * MIB);
	assert_int_equal(s->caps, DEVICE_EXPORT_FD | DEVICE_EXPORT_IPC | DEVICE_EXPORT_DMABUF |
					  DEVICE_PEER_SWITCH | DEVICE_GRAPHS | DEVICE_NATIVE |
					  DEVICE_COPY_ENGINES);
	/*
	 * Nothing is left for later; those of collective operations come last, and only if asked
	 * for.
	 */
	assert_int_equal(standin->loaded_functions, 2 * KERNEL_collective_flagged);
	device_close(s);
}

static void test_collectives(void **state)
{
	struct device_request r = two;
	struct device_set *s;

	(void)state;
	if (!collectives_ptx[0])
		SKIP("built without clang: no kernels");
	r.collectives = true;
	assert_int_equal(cuda_open(&r, &place, &s), 0);
	assert_int_equal(standin->modules, 4);
	assert_int_equal(standin->loaded_functions, 2 * KERNEL_N);
	for (int i = 0; i < 2; i++)
		assert_int_equal(s->info[i].resident_threads, 768);
	device_close(s);
}

static void test_desktop(void **state)
{
	struct device_set *s;

	(void)state;
	standin->desktop = 2;
	s = open_two();
	assert_int_equal(device_kernel_limit_us(&s->info[0], 5000000), DEVICE_KERNEL_LIMIT_US);
	assert_int_equal(device_kernel_limit_us(&s->info[0], 300000), 300000);
	assert_int_equal(device_kernel_limit_us(&s->info[1], 5000000), 5000000);
	device_close(s);
}

static void test_compile_error(void **state)
{
	struct device_set *s;

	(void)state;
	fail_at("cuModuleLoadDataEx", 2, CU_INVALID_PTX);
	standin->jit_log = "ptxas application ptx input, line 9; fatal: Parsing error\nsecond line";
	assert_int_equal(cuda_open(&two, &place, &s), -ENOTSUP);
	assert_string_equal(
		err_msg(),
		"the GPU kernels do not compile (ptxas application ptx input, line 9; fatal: "
		"Parsing error): cuModuleLoadDataEx on GPU 0000:4a:00.0: a PTX JIT compilation "
		"failed (CUDA_ERROR_INVALID_PTX)");
	fail_at("cuModuleGetFunction", 3, CU_NOT_FOUND);
	assert_int_equal(cuda_open(&two, &place, &s), -EIO);
	assert_says("kernel fill: cuModuleGetFunction on GPU 0000:4c:00.0: error 500");
}

static void test_old_driver(void **state)
{
	AUTO_FREE char *path = xprintf("%s/cuda_standin_old.so", folder());
	struct cuda_place p = {.library = path, .root = root, .kernels = ""};
	struct cuda_standin *old = load(path);
	struct device_set *s;
	struct stream stream;
	struct memory m;

	(void)state;
	*old = (struct cuda_standin){.devices = 3};
	assert_ok(cuda_open(&two, &p, &s));
	assert_int_equal(s->caps, DEVICE_EXPORT_IPC | DEVICE_PEER_SWITCH | DEVICE_NATIVE |
					  DEVICE_COPY_ENGINES);
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, 1, &m), -ENOTSUP);
	assert_says("this driver has no cuMemGetAllocationGranularity: it is too old");
	assert_ok(s->ops->stream_new(s, 0, &stream));
	assert_int_equal(s->ops->capture_begin(s, stream), -ENOTSUP);
	assert_says("this driver has no cuStreamBeginCapture: it is too old");
	device_close(s);
	assert_int_equal(old->contexts + old->streams + old->pinned + old->depth, 0);
}

/* ---- errors ---- */

static void test_errnos(void **state)
{
	static const struct {
		int result, err;
	} rows[] = {
		{CU_INVALID_VALUE, EINVAL},
		{CU_OUT_OF_MEMORY, ENOMEM},
		{CU_STUB_LIBRARY, ENODEV},
		{CU_DEVICE_UNAVAILABLE, EBUSY},
		{CU_NO_DEVICE, ENODEV},
		{CU_INVALID_DEVICE, ENODEV},
		{CU_INVALID_CONTEXT, EINVAL},
		{CU_MAP_FAILED, EACCES},
		{CU_NO_BINARY_FOR_GPU, ENOTSUP},
		{CU_PEER_ACCESS_UNSUPPORTED, EACCES},
		{CU_INVALID_PTX, ENOTSUP},
		{CU_JIT_COMPILER_NOT_FOUND, ENOTSUP},
		{CU_UNSUPPORTED_PTX_VERSION, ENOTSUP},
		{CU_INVALID_HANDLE, EINVAL},
		{CU_ILLEGAL_ADDRESS, EIO},
		{CU_LAUNCH_OUT_OF_RESOURCES, EINVAL},
		{CU_LAUNCH_TIMEOUT, ETIMEDOUT},
		{CU_TOO_MANY_PEERS, EACCES},
		{CU_LAUNCH_FAILED, EIO},
		{CU_NOT_PERMITTED, EPERM},
		{CU_NOT_SUPPORTED, ENOTSUP},
		{CU_SYSTEM_NOT_READY, ENODEV},
		{CU_SYSTEM_DRIVER_MISMATCH, ENODEV},
		{CU_COMPAT_NOT_SUPPORTED_ON_DEVICE, ENODEV},
		{CU_STREAM_CAPTURE_UNSUPPORTED, EINVAL},
		{CU_STREAM_CAPTURE_WRONG_THREAD, EINVAL},
		{999, EIO},
	};
	struct device_set *s = open_two();
	struct memory m;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fail_at("cuMemAlloc_v2", 1, rows[i].result);
		assert_int_equal(s->ops->alloc(s, 1, MEMORY_DEVICE, 8, &m), -rows[i].err);
		assert_says("cuMemAlloc on GPU 0000:4a:00.0: ");
	}
	assert_string_equal(err_msg(), "cuMemAlloc on GPU 0000:4a:00.0: error 999");
	device_close(s);
}

static void test_fault(void **state)
{
	struct device_set *s = open_two();
	struct stream stream;

	(void)state;
	assert_ok(s->ops->stream_new(s, 0, &stream));
	standin->fault = CU_ILLEGAL_ADDRESS;
	assert_int_equal(s->ops->wait(s, stream, 1000), -EIO);
	assert_string_equal(
		err_msg(),
		"cuStreamQuery on GPU 0000:4c:00.0: an illegal memory access was encountered "
		"(CUDA_ERROR_ILLEGAL_ADDRESS)");
	device_close(s);
}

static void test_wrong_ids(void **state)
{
	struct device_set *s = open_two();
	const struct device_ops *o = s->ops;
	struct memory none = {.id = 99}, m;
	struct stream stream = {.id = 99};
	struct event e = {.id = 99};
	struct graph g = {.id = 0};
	struct memory_export export = {.kind = 9};
	uint64_t address;
	double us;
	char byte = 0;

	(void)state;
	assert_int_equal(o->free(s, &none), -EINVAL);
	assert_says("no memory 99 in this set of GPUs");
	assert_int_equal(o->address(s, &none, 0, &address), -EINVAL);
	assert_int_equal(o->read(s, &none, 0, &byte, 1), -EINVAL);
	assert_int_equal(o->write(s, &none, 0, &byte, 1), -EINVAL);
	assert_int_equal(o->export(s, &none, EXPORT_FD, &export), -EINVAL);
	assert_int_equal(o->import(s, 0, &export, &m), -EINVAL);
	assert_int_equal(o->wait(s, stream, 0), -EINVAL);
	assert_int_equal(o->stream_free(s, stream), -EINVAL);
	assert_int_equal(o->event_elapsed(s, e, e, &us), -EINVAL);
	assert_int_equal(o->graph_free(s, g), -EINVAL);
	assert_int_equal(o->alloc(s, 0, MEMORY_DEVICE, 0, &m), -EINVAL);
	assert_int_equal(o->alloc(s, 0, MEMORY_IMPORTED, 8, &m), -EINVAL);
	assert_ok(o->alloc(s, 0, MEMORY_DEVICE, 8, &m));
	assert_int_equal(o->read(s, &m, 8, &byte, 1), -EINVAL);
	assert_says("bytes 8 to 9 are outside memory of 8 bytes");
	assert_int_equal(o->read(s, &m, UINT64_MAX, &byte, 2), -EINVAL);
	device_close(s);
}

/* ---- memory ---- */

static void test_memory_kinds(void **state)
{
	static const enum memory_kind kinds[] = {MEMORY_DEVICE, MEMORY_EXPORTABLE, MEMORY_PINNED};
	struct device_set *s = open_two();
	AUTO_FREE char *in = xcalloc(1, 200000), *out = xcalloc(1, 200000);

	(void)state;
	for (size_t i = 0; i < 200000; i++)
		in[i] = (char)(i * 7);
	for (size_t k = 0; k < 3; k++) {
		struct memory m;
		uint64_t address;
		uint32_t flag = 0xabcd, got = 0;

		assert_ok(s->ops->alloc(s, 1, kinds[k], 200001, &m));
		assert_int_equal(m.size, 200001);
		assert_int_equal(m.kind, kinds[k]);
		assert_int_equal(m.device, kinds[k] == MEMORY_PINNED ? -1 : 1);
		assert_int_equal(m.owner, kinds[k] == MEMORY_PINNED ? -1 : 5);
		assert_ok(s->ops->write(s, &m, 1, in, 200000));
		assert_ok(s->ops->read(s, &m, 1, out, 200000));
		assert_memory_equal(in, out, 200000);
		assert_ok(s->ops->write(s, &m, 64, &flag, 4));
		assert_ok(s->ops->read(s, &m, 64, &got, 4));
		assert_int_equal(got, flag);
		assert_ok(s->ops->address(s, &m, 1, &address));
		assert_memory_equal((char *)(uintptr_t)address + 1, in, 63);
		assert_ok(s->ops->free(s, &m));
		assert_int_equal(s->ops->free(s, &m), -EINVAL);
	}
	device_close(s);
}

/* A device's pinned memory is taken from its node, and the thread's policy is then as before. */
static void test_pinned_is_near(void **state)
{
	static const char file[] = "/sys/bus/pci/devices/0000:4c:00.0/numa_node";
	struct device_set *s;
	struct memory m;
	int before;

	(void)state;
	if (syscall(SYS_get_mempolicy, &before, NULL, 0ul, NULL, 0ul) < 0 ||
	    syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul) < 0)
		SKIP("the kernel, or the container, has no memory policies");
	write_file(file, "0\n");
	s = open_two();
	assert_ok(s->ops->alloc(s, 0, MEMORY_PINNED, 64, &m));
	assert_int_equal(standin->policy, MPOL_PREFERRED);
	assert_ok(s->ops->alloc(s, 1, MEMORY_PINNED, 64, &m)); /* of which nothing is known */
	assert_int_equal(standin->policy, MPOL_DEFAULT);
	/* Who has chosen keeps the choice. */
	assert_int_equal(syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &(unsigned long){1}, 64ul), 0);
	assert_ok(s->ops->alloc(s, 0, MEMORY_PINNED, 64, &m));
	assert_int_equal(standin->policy, MPOL_INTERLEAVE);
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul);
	device_close(s);
	remove_file(file);
	remove_file("/sys/bus/pci/devices/0000:4c:00.0");
	remove_file("/sys/bus/pci/devices");
	remove_file("/sys/bus/pci");
	remove_file("/sys/bus");
	remove_file("/sys");
}

static void test_out_of_memory(void **state)
{
	struct device_set *s = open_two();
	struct memory m;

	(void)state;
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, 65 * MIB, &m), -ENOMEM);
	assert_string_equal(
		err_msg(),
		"65.0 MiB: cuMemAlloc on GPU 0000:4c:00.0: out of memory (CUDA_ERROR_OUT_OF_MEMORY)");
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, 65 * MIB, &m), -ENOMEM);
	assert_says("cuMemCreate on GPU 0000:4c:00.0: out of memory");
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, UINT64_MAX, &m), -EINVAL);
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 63 * MIB, &m));
	device_close(s);
}

static void test_wrap(void **state)
{
	struct device_set *s = open_two();
	uint64_t host[2] = {1, 2}, got = 0, address;
	struct memory whole, part, mine;
	struct memory_export e;

	(void)state;
	assert_ok(s->ops->wrap(s, -1, (uintptr_t)host, sizeof(host), &mine));
	assert_int_equal(mine.kind, MEMORY_CALLER);
	assert_ok(s->ops->read(s, &mine, 8, &got, 8));
	assert_int_equal(got, 2);
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, MIB, &whole));
	assert_ok(s->ops->address(s, &whole, 0, &address));
	assert_ok(s->ops->wrap(s, 0, address + 4096 + 40, 64, &part));
	assert_ok(s->ops->write(s, &part, 0, host, 16));
	assert_ok(s->ops->read(s, &whole, 4096 + 48, &got, 8));
	assert_int_equal(got, 2);
	assert_ok(s->ops->export(s, &part, EXPORT_IPC, &e));
	assert_int_equal(e.offset, 4096 + 40); /* from the base, which is what can be exported */
	assert_int_equal(e.size, 64);
	assert_ok(s->ops->export(s, &part, EXPORT_DMABUF, &e));
	assert_int_equal(e.offset, (address + 4096 + 40) % 4096); /* from the page */
	assert_true(fcntl(e.fd, F_GETFD) & FD_CLOEXEC);
	close(e.fd);
	assert_ok(s->ops->free(s, &part));
	assert_ok(s->ops->free(s, &mine));
	device_close(s);
}

/* Plain memory of the host is refused, but by GPUs that read it. */
static void test_memory_of_the_caller(void **state)
{
	struct device_set *s = open_two();
	static char plain[64];
	struct memory m;
	uint64_t at, begin, end;

	(void)state;
	assert_ok(s->ops->alloc(s, 1, MEMORY_DEVICE, 4096, &m));
	assert_ok(s->ops->address(s, &m, 1, &at));
	assert_ok(s->ops->memory_at(s, 1, at + 100, &begin, &end));
	assert_true(begin == at && end == at + 4096);
	assert_int_equal(s->ops->memory_at(s, 1, (uintptr_t)plain, &begin, &end), -EFAULT);
	assert_says("it is the host's, and not pinned");
	device_close(s);
	standin->reads_pageable = true;
	s = open_two();
	assert_ok(s->ops->memory_at(s, 1, (uintptr_t)plain, &begin, &end));
	assert_true(begin == 0 && end == UINT64_MAX);
	device_close(s);
}

static void test_export_fd(void **state)
{
	struct device_set *s = open_two(), *other = open_two();
	struct memory m, seen;
	struct memory_export e;
	uint64_t in = 0x1122334455667788, out = 0;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, 3 * MIB, &m));
	assert_ok(s->ops->export(s, &m, EXPORT_FD, &e));
	assert_int_equal(e.size, 3 * MIB);
	assert_int_equal(e.owner, 7);
	assert_true(fcntl(e.fd, F_GETFD) & FD_CLOEXEC);
	assert_ok(other->ops->import(other, 1, &e, &seen));
	close(e.fd);
	assert_int_equal(seen.kind, MEMORY_IMPORTED);
	assert_int_equal(seen.owner, 7);
	assert_int_equal(seen.device, 1);
	assert_ok(s->ops->write(s, &m, 3 * MIB - 8, &in, 8));
	assert_ok(other->ops->read(other, &seen, 3 * MIB - 8, &out, 8));
	assert_int_equal(out, in);
	assert_int_equal(s->ops->export(s, &m, EXPORT_IPC, &e), -EINVAL);
	assert_ok(s->ops->free(s, &m));
	assert_ok(other->ops->read(other, &seen, 3 * MIB - 8, &out, 8)); /* lives on there */
	assert_int_equal(out, in);
	device_close(other);
	device_close(s);
}

/* The host's memory, seen by the GPUs of two processes. */
static void test_export_shared(void **state)
{
	struct device_set *s = open_two(), *other = open_two();
	struct memory m, seen;
	struct memory_export e;
	uint64_t address;
	uint32_t flag = 0xabcd;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_SHARED, 512, &m));
	assert_int_equal(m.device, -1);
	assert_int_equal(m.owner, -1);
	assert_ok(s->ops->export(s, &m, EXPORT_FD, &e));
	assert_true(fcntl(e.fd, F_GETFD) & FD_CLOEXEC);
	assert_ok(other->ops->import(other, 1, &e, &seen));
	close(e.fd);
	assert_int_equal(seen.device, 1);
	assert_ok(s->ops->write(s, &m, 64, &flag, 4));
	assert_ok(other->ops->address(other, &seen, 1, &address));
	assert_int_equal(*(uint32_t *)(uintptr_t)(address + 64), flag);
	assert_int_equal(standin->registered, 2);
	assert_int_equal(s->ops->export(s, &m, EXPORT_IPC, &e), -EINVAL);
	assert_ok(s->ops->free(s, &m));
	assert_int_equal(*(uint32_t *)(uintptr_t)(address + 64), flag); /* lives on there */
	device_close(other);
	device_close(s);
}

/*
 * Memory that the driver creates in other ways, seen by the GPU of another process; nothing is left
 * of a failure.
 */
static void test_export_created(void **state)
{
	static const struct {
		enum memory_kind kind;
		int owner;
	} rows[] = {{MEMORY_COMPRESSIBLE, 7}, {MEMORY_HOST, -1}};
	struct device_set *s = open_two(), *other = open_two();

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
		uint64_t in = 0x1122334455667788 + k, out = 0, address;
		struct memory m, seen;
		struct memory_export e;

		assert_ok(s->ops->alloc(s, 0, rows[k].kind, 3 * MIB, &m));
		assert_int_equal(m.device, 0);
		assert_int_equal(m.owner, rows[k].owner);
		assert_ok(s->ops->export(s, &m, EXPORT_FD, &e));
		assert_ok(other->ops->import(other, 1, &e, &seen));
		close(e.fd);
		assert_int_equal(seen.owner, rows[k].owner);
		assert_ok(s->ops->write(s, &m, 3 * MIB - 8, &in, 8));
		assert_ok(other->ops->address(other, &seen, 1, &address));
		assert_ok(other->ops->read(other, &seen, 3 * MIB - 8, &out, 8));
		assert_int_equal(out, in);
		assert_int_equal(s->ops->export(s, &m, EXPORT_IPC, &e), -EINVAL);
	}
	assert_int_equal(standin->registered, 0);
	device_close(other);
	device_close(s);
}

static void test_not_offered(void **state)
{
	struct device_set *s;
	struct memory m;

	(void)state;
	standin->not_compressed = standin->no_created_host = true;
	s = open_two();
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_COMPRESSIBLE, 64, &m), -ENOTSUP);
	assert_says("cannot compress the memory that was asked for");
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_HOST, 64, &m), -ENOTSUP);
	assert_says(
		"this driver cannot create host memory: cuMemCreate on GPU 0000:4c:00.0: invalid");
	device_close(s);
	standin->no_compression = true;
	s = open_two();
	assert_int_equal(s->ops->alloc(s, 1, MEMORY_COMPRESSIBLE, 64, &m), -ENOTSUP);
	assert_says("GPU 0000:4a:00.0 cannot compress memory");
	device_close(s);
}

static void test_export_ipc(void **state)
{
	struct device_set *s = open_two(), *other = open_two();
	struct memory m, seen;
	struct memory_export e;
	uint64_t address;
	uint32_t in = 77, out = 0;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 5000, &m));
	assert_ok(s->ops->export(s, &m, EXPORT_IPC, &e));
	assert_int_equal(e.fd, -1);
	assert_ok(other->ops->import(other, 1, &e, &seen));
	assert_ok(s->ops->write(s, &m, 4000, &in, 4));
	assert_ok(other->ops->read(other, &seen, 4000, &out, 4));
	assert_int_equal(out, in);
	assert_int_equal(other->ops->address(other, &seen, 0, &address), -EACCES);
	assert_int_equal(s->ops->export(s, &m, EXPORT_FD, &e), -EINVAL);
	assert_says("only exportable memory");
	device_close(other);
	device_close(s);
}

static void test_import_refused(void **state)
{
	struct device_set *s = open_two();
	struct memory plain, mapped, seen;
	struct memory_export e, bad;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 5000, &plain));
	assert_ok(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, 5000, &mapped));
	standin->no_peers = true;
	assert_ok(s->ops->export(s, &plain, EXPORT_IPC, &e));
	assert_int_equal(s->ops->import(s, 1, &e, &seen), -EACCES);
	assert_says("GPU 0000:4a:00.0 cannot use that memory of device 7 of another process: "
		    "cuIpcOpenMemHandle on GPU 0000:4a:00.0: peer access is not supported");
	assert_ok(s->ops->export(s, &mapped, EXPORT_FD, &e));
	assert_int_equal(s->ops->import(s, 1, &e, &seen), -EACCES);
	assert_says("cuMemSetAccess");
	bad = e;
	memset(bad.blob, 0, sizeof(bad.blob));
	assert_int_equal(s->ops->import(s, 0, &bad, &seen), -EINVAL);
	close(e.fd);
	e.kind = EXPORT_DMABUF;
	assert_int_equal(s->ops->import(s, 0, &e, &seen), -ENOTSUP);
	device_close(s);
}

/* ---- peers ---- */

/* NVLink has atomic operations, PCIe has none. */
static void test_atomics_tell_nvlink(void **state)
{
	struct device_set *s = open_two();
	bool can = true;

	(void)state;
	assert_ok(s->ops->atomics(s, 0, s->info[1].pci, &can));
	assert_false(can);
	standin->nvlink = true;
	assert_ok(s->ops->atomics(s, 0, s->info[1].pci, &can));
	assert_true(can);
	assert_true(s->ops->atomics(s, 0, "0000:01:00.0", &can) < 0);
	device_close(s);
}

static void test_peers_refused(void **state)
{
	struct device_set *s = open_two();
	bool can = true;

	(void)state;
	standin->no_peers = true;
	assert_ok(s->ops->can_access(s, 0, 1, &can));
	assert_false(can);
	assert_ok(s->ops->can_access(s, 1, 1, &can));
	assert_true(can);
	assert_int_equal(s->ops->peer_access(s, 0, 1, true), -EACCES);
	assert_string_equal(
		err_msg(),
		"peer access from GPU 0000:4c:00.0 to GPU 0000:4a:00.0: cuCtxEnablePeerAccess on "
		"GPU 0000:4c:00.0: peer access is not supported between these two devices "
		"(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)");
	device_close(s);
}

/* Whatever word the driver has for it: a refusal of one pair leaves the set of use. */
static void test_refusals(void **state)
{
	static const int words[] = {CU_INVALID_VALUE,  CU_INVALID_DEVICE, CU_MAP_FAILED,    304,
				    CU_TOO_MANY_PEERS, CU_LAUNCH_FAILED,  CU_NOT_SUPPORTED, 999};
	struct device_set *s = open_two();
	struct memory_export e;
	struct memory m, seen;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, 8, &m));
	assert_ok(s->ops->export(s, &m, EXPORT_FD, &e));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		fail_at("cuCtxEnablePeerAccess", 1, words[i]);
		assert_int_equal(s->ops->peer_access(s, 0, 1, true), -EACCES);
		assert_says("peer access from GPU 0000:4c:00.0 to GPU 0000:4a:00.0: cuCtx");
		fail_at("cuMemSetAccess", 1, words[i]);
		assert_int_equal(s->ops->import(s, 1, &e, &seen),
				 words[i] == CU_NOT_SUPPORTED ? -ENOTSUP : -EACCES);
	}
	fail_at("cuCtxEnablePeerAccess", 1, CU_MAP_FAILED);
	assert_int_equal(s->ops->peer_access(s, 0, 1, true), -EACCES);
	assert_says("(Resizable BAR)");
	fail_at("cuCtxEnablePeerAccess", 1, CU_OUT_OF_MEMORY);
	assert_int_equal(s->ops->peer_access(s, 0, 1, true), -ENOMEM);
	assert_ok(s->ops->peer_access(s, 0, 1, true));
	close(e.fd);
	device_close(s);
}

/* A GPU that has a fault is not refused anything: it is of no more use. */
static void test_fault_is_no_refusal(void **state)
{
	struct device_set *s = open_two();
	struct memory_export e;
	struct memory m, seen;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, 8, &m));
	assert_ok(s->ops->export(s, &m, EXPORT_FD, &e));
	standin->fault = CU_ILLEGAL_ADDRESS;
	assert_int_equal(s->ops->peer_access(s, 0, 1, true), -EIO);
	assert_int_equal(s->ops->import(s, 1, &e, &seen), -EIO);
	assert_says("cuMemImportFromShareableHandle on GPU 0000:4a:00.0: an illegal memory");
	standin->fault = 0;
	close(e.fd);
	device_close(s);
}

static void test_peers_refused_late(void **state)
{
	struct device_set *s = open_two();
	struct memory m;
	uint64_t address;

	(void)state;
	assert_ok(s->ops->alloc(s, 1, MEMORY_EXPORTABLE, 8, &m));
	fail_at("cuMemSetAccess", 1, CU_INVALID_DEVICE);
	assert_int_equal(s->ops->peer_access(s, 0, 1, true), -EACCES);
	assert_says("cuMemSetAccess on GPU 0000:4c:00.0: invalid device ordinal");
	assert_int_equal(s->ops->address(s, &m, 0, &address), -EACCES);
	assert_ok(s->ops->peer_access(s, 0, 1, true));
	fail_at("cuMemSetAccess", 2, CU_INVALID_DEVICE); /* the owner's first, then the peer's */
	assert_int_equal(s->ops->alloc(s, 1, MEMORY_EXPORTABLE, 8, &m), -EACCES);
	device_close(s);
}

/* Copies both kinds of memory of both devices and tells how many were direct. */
static unsigned direct_copies(struct device_set *s, struct stream stream, const struct memory *mine,
			      const struct memory *theirs)
{
	unsigned before = standin->direct_copies, staged = standin->staged_copies;

	for (unsigned i = 0; i < 2; i++) {
		uint32_t in = (uint32_t)rand(), out = 0;

		assert_ok(s->ops->write(s, &mine[i], 12, &in, 4));
		assert_ok(s->ops->copy(s, stream, &theirs[i], 4, &mine[i], 12, 4));
		assert_ok(s->ops->wait(s, stream, 1000000));
		assert_ok(s->ops->read(s, &theirs[i], 4, &out, 4));
		assert_int_equal(out, in);
	}
	assert_int_equal(standin->direct_copies - before + standin->staged_copies - staged, 2);
	return standin->direct_copies - before;
}

static void test_copies(void **state)
{
	struct device_set *s = open_two();
	struct memory mine[2], theirs[2], pinned;
	struct stream stream;
	uint64_t address;
	double us;

	(void)state;
	assert_ok(s->ops->enqueue_time(s, &us));
	assert_true(us == 0);
	assert_ok(s->ops->stream_new(s, 0, &stream));
	for (int i = 0; i < 2; i++) {
		enum memory_kind kind = i ? MEMORY_EXPORTABLE : MEMORY_DEVICE;

		assert_ok(s->ops->alloc(s, 0, kind, 64, &mine[i]));
		assert_ok(s->ops->alloc(s, 1, kind, 64, &theirs[i]));
	}
	assert_int_equal(direct_copies(s, stream, mine, theirs), 0);
	assert_int_equal(s->ops->address(s, &theirs[0], 0, &address), -EACCES);
	assert_says("GPU 0000:4c:00.0 has no access to that memory of GPU 0000:4a:00.0");
	for (int again = 0; again < 2; again++) {
		assert_ok(s->ops->peer_access(s, 0, 1, true));
		assert_ok(s->ops->peer_access(s, 0, 1, true));
		assert_int_equal(direct_copies(s, stream, mine, theirs), 2);
		assert_ok(s->ops->address(s, &theirs[0], 0, &address));
		assert_int_equal(s->ops->address(s, &mine[0], 1, &address), -EACCES);
		assert_ok(s->ops->peer_access(s, 0, 1, false));
		assert_ok(s->ops->peer_access(s, 0, 1, false));
		assert_int_equal(direct_copies(s, stream, mine, theirs), 0);
	}
	assert_ok(s->ops->peer_access(s, 0, 1, true));
	assert_ok(s->ops->free(s, &theirs[1])); /* one that is made while access is on */
	assert_ok(s->ops->alloc(s, 1, MEMORY_EXPORTABLE, 64, &theirs[1]));
	assert_int_equal(direct_copies(s, stream, mine, theirs), 2);
	assert_ok(s->ops->alloc(s, 0, MEMORY_PINNED, 64, &pinned));
	assert_ok(s->ops->copy(s, stream, &pinned, 0, &mine[0], 0, 64));
	assert_ok(s->ops->enqueue_time(s, &us));
	assert_true(us > 0);
	assert_int_equal(s->ops->copy(s, stream, &pinned, 1, &mine[0], 0, 64), -EINVAL);
	device_close(s);
}

/* ---- streams ---- */

static char launched[64];

static bool note_launch(const char *name, const void *args, unsigned blocks, unsigned threads)
{
	struct copy_args a;

	snprintf(launched, sizeof(launched), "%s %u %u", name, blocks, threads);
	if (strcmp(name, "gate") == 0)
		return true;
	memcpy(&a, args, sizeof(a));
	memcpy((void *)a.target, (void *)a.origin, a.bytes);
	return false;
}

static void test_launch(void **state)
{
	struct device_set *s = open_two();
	char from[8] = "onehop", to[8] = "";
	struct copy_args args = {(uintptr_t)to, (uintptr_t)from, 7};
	struct launch l = {KERNEL_copy, 3, 128, &args, sizeof(args)};
	struct stream stream;

	(void)state;
	standin->launch = note_launch;
	assert_ok(s->ops->stream_new(s, 1, &stream));
	assert_ok(s->ops->launch(s, stream, &l));
	assert_string_equal(to, "onehop");
	assert_string_equal(launched, "copy 3 128");
	l.threads = 1024; /* more than this kernel's registers allow */
	assert_ok(s->ops->launch(s, stream, &l));
	assert_string_equal(launched, "copy 3 256");
	l.args_size = 8;
	assert_int_equal(s->ops->launch(s, stream, &l), -EINVAL);
	device_close(s);
}

static void test_no_kernels(void **state)
{
	struct cuda_place p = place;
	struct gate_args args = {0};
	struct launch l = {KERNEL_gate, 1, 1, &args, sizeof(args)};
	struct device_set *s;
	struct stream stream;

	(void)state;
	p.kernels = "";
	assert_ok(cuda_open(&two, &p, &s));
	assert_ok(s->ops->stream_new(s, 1, &stream));
	assert_int_equal(s->ops->launch(s, stream, &l), -ENOTSUP);
	assert_string_equal(err_msg(), "built without GPU kernels");
	device_close(s);
}

static struct stream hold(struct device_set *s)
{
	struct gate_args args = {0};
	struct launch l = {KERNEL_gate, 1, 1, &args, sizeof(args)};
	struct stream stream;

	standin->launch = note_launch;
	standin->running = true;
	assert_ok(s->ops->stream_new(s, 0, &stream));
	assert_ok(s->ops->launch(s, stream, &l));
	return stream;
}

static void test_time_out(void **state)
{
	struct device_set *s = open_two();
	uint32_t word = 5;
	struct stream stream;
	struct memory m;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 64, &m));
	stream = hold(s);
	assert_ok(s->ops->write(s, &m, 0, &word, 4)); /* waits for no stream of the caller's */
	assert_ok(s->ops->read(s, &m, 0, &word, 4));
	assert_int_equal(s->ops->wait(s, stream, 2000), -ETIMEDOUT);
	assert_string_equal(err_msg(),
			    "what was enqueued on GPU 0000:4c:00.0 did not end within 0.002 s");
	assert_int_equal(s->ops->free(s, &m), -ETIMEDOUT);
	assert_says("GPU 0000:4c:00.0 still runs what did not end in time");
	assert_int_equal(s->ops->stream_free(s, stream), -ETIMEDOUT);
	standin->running = false;
	assert_ok(s->ops->free(s, &m));
	assert_ok(s->ops->stream_free(s, stream));
	assert_int_equal(standin->hangs, 0);
	device_close(s);
}

/* Closing leaves to the end of the process what would wait for ever. */
static void test_close_stuck(void **state)
{
	struct device_set *s = open_two();
	struct stream stream = hold(s);
	struct memory m;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_EXPORTABLE, 64, &m));
	assert_int_equal(s->ops->wait(s, stream, 0), -ETIMEDOUT);
	device_close(s);
	assert_int_equal(standin->hangs, 0);
	assert_int_equal(standin->contexts, 2);
	assert_int_equal(standin->mappings, 1);
}

static void test_events_and_graphs(void **state)
{
	struct device_set *s = open_two();
	char from[8] = "onehop", to[8] = "";
	struct copy_args args = {(uintptr_t)to, (uintptr_t)from, 7};
	struct launch l = {KERNEL_copy, 1, 32, &args, sizeof(args)};
	struct stream stream;
	struct event e[2];
	struct graph g;
	bool captured;
	double us;

	(void)state;
	standin->launch = note_launch;
	assert_ok(s->ops->stream_new(s, 0, &stream));
	assert_ok(s->ops->event_new(s, 0, &e[0]));
	assert_ok(s->ops->event_new(s, 0, &e[1]));
	assert_int_equal(s->ops->event_elapsed(s, e[0], e[1], &us), -EINVAL);
	assert_ok(s->ops->event_record(s, stream, e[0]));
	assert_ok(s->ops->event_record(s, stream, e[1]));
	assert_ok(s->ops->event_wait(s, stream, e[1]));
	assert_ok(s->ops->event_elapsed(s, e[0], e[1], &us));
	assert_true(us == 500);
	assert_ok(s->ops->capturing(s, stream, &captured));
	assert_false(captured);
	assert_ok(s->ops->capture_begin(s, stream));
	assert_ok(s->ops->capturing(s, stream, &captured));
	assert_true(captured);
	assert_ok(s->ops->launch(s, stream, &l));
	memset(&args, 0, sizeof(args)); /* what was captured is a copy */
	assert_ok(s->ops->capture_end(s, stream, &g));
	assert_ok(s->ops->capturing(s, stream, &captured));
	assert_false(captured);
	assert_string_equal(to, "");
	assert_ok(s->ops->graph_launch(s, stream, g));
	assert_string_equal(to, "onehop");
	assert_ok(s->ops->graph_free(s, g));
	assert_ok(s->ops->event_free(s, e[0]));
	device_close(s);
}

/* A context of the caller's is used instead of the primary one, and is still there afterwards. */
static void test_context_of_the_caller(void **state)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*retain)(void **, int) = dlsym(lib, "cuDevicePrimaryCtxRetain");
	int (*release)(int) = dlsym(lib, "cuDevicePrimaryCtxRelease_v2");
	struct device_request r = two;
	struct device_set *s;
	void *context;

	(void)state;
	assert_true(retain && release);
	assert_int_equal(retain(&context, 2), 0);
	r.context[0] = (uintptr_t)context;
	assert_ok(cuda_open(&r, &place, &s));
	assert_int_equal(standin->contexts, 2); /* the caller's, and the primary one of the other */
	device_close(s);
	assert_int_equal(standin->contexts, 1);
	assert_int_equal(release(2), 0);
	dlclose(lib);
}

static void test_native(void **state)
{
	struct device_set *s = open_two();
	struct stream own, wrapped;
	void *native, *again;

	(void)state;
	assert_ok(s->ops->stream_new(s, 0, &own));
	assert_ok(s->ops->stream_native(s, own, &native));
	assert_ok(s->ops->stream_wrap(s, 0, native, &wrapped));
	assert_ok(s->ops->stream_native(s, wrapped, &again));
	assert_ptr_equal(native, again);
	assert_ok(s->ops->stream_free(s, wrapped));
	assert_int_equal(standin->streams, 3); /* it, and one of each GPU for reads and writes */
	assert_int_equal(s->ops->stream_wrap(s, 1, native, &wrapped), -EINVAL);
	assert_says("that stream is not one of GPU 0000:4a:00.0's context");
	assert_ok(s->ops->stream_wrap(s, 1, NULL, &wrapped)); /* the legacy stream */
	assert_ok(s->ops->make_current(s, 1));
	assert_int_equal(standin->depth, 1);
	standin->depth = 0;
	device_close(s);
}

/* ---- every call fails once ---- */

#define TRY(call)                                                                                  \
	do {                                                                                       \
		int try_ = (call);                                                                 \
		if (try_ < 0)                                                                      \
			return try_;                                                               \
	} while (0)

static int use_memory(struct device_set *s, struct stream stream)
{
	const struct device_ops *o = s->ops;
	struct memory_export e = {.fd = -1};
	struct memory m[3], seen;
	uint64_t word = 1;
	int r;

	TRY(o->alloc(s, 0, MEMORY_COMPRESSIBLE, 64, &m[2]));
	TRY(o->alloc(s, 1, MEMORY_HOST, 64, &m[2]));
	TRY(o->alloc(s, 0, MEMORY_DEVICE, 64, &m[0]));
	TRY(o->alloc(s, 1, MEMORY_EXPORTABLE, 64, &m[1]));
	TRY(o->alloc(s, 0, MEMORY_PINNED, 64, &m[2]));
	TRY(o->alloc(s, 0, MEMORY_SHARED, 64, &m[2]));
	TRY(o->write(s, &m[0], 0, &word, 8));
	TRY(o->copy(s, stream, &m[1], 0, &m[0], 0, 64));
	TRY(o->peer_access(s, 0, 1, true));
	TRY(o->copy(s, stream, &m[1], 0, &m[0], 0, 64));
	TRY(o->export(s, &m[0], EXPORT_IPC, &e));
	TRY(o->import(s, 1, &e, &seen));
	TRY(o->free(s, &seen));
	TRY(o->export(s, &m[1], EXPORT_FD, &e));
	r = o->import(s, 0, &e, &seen);
	close(e.fd);
	TRY(r);
	TRY(o->read(s, &seen, 0, &word, 8));
	TRY(o->free(s, &m[1]));
	return o->peer_access(s, 0, 1, false);
}

static int use_streams(struct device_set *s, struct stream stream)
{
	const struct device_ops *o = s->ops;
	struct gate_args args = {0};
	struct launch l = {KERNEL_gate, 1, 1, &args, sizeof(args)};
	struct event e;
	struct graph g;

	TRY(o->event_new(s, 0, &e));
	TRY(o->event_record(s, stream, e));
	TRY(o->event_wait(s, stream, e));
	TRY(o->capture_begin(s, stream));
	TRY(o->launch(s, stream, &l));
	TRY(o->capture_end(s, stream, &g));
	TRY(o->graph_launch(s, stream, g));
	TRY(o->wait(s, stream, 1000000));
	TRY(o->graph_free(s, g));
	TRY(o->event_free(s, e));
	return o->stream_free(s, stream);
}

static int use_all(void)
{
	struct device_set *s;
	struct stream stream;
	int r;

	TRY(cuda_open(&two, &place, &s));
	r = s->ops->stream_new(s, 0, &stream);
	if (r == 0)
		r = use_memory(s, stream);
	if (r == 0)
		r = use_streams(s, stream);
	device_close(s);
	return r;
}

static void test_every_failure(void **state)
{
	unsigned failures = 0;

	(void)state;
	for (unsigned nth = 1;; nth++) {
		int r;

		fail_at("*", nth, CU_LAUNCH_FAILED);
		r = use_all();
		assert_all_freed();
		if (standin->calls < nth)
			break; /* the call before was the last */
		if (r < 0) {
			assert_true(r == -EIO || r == -EACCES);
			assert_says("(CUDA_ERROR_LAUNCH_FAILED)"); /* closing leaves it */
			failures++;
		}
	}
	assert_true(failures > 50);
	standin->fail = NULL;
	assert_ok(use_all());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, no_leak)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stays_closed),
		TEST(test_no_library),
		TEST(test_start_fails),
		TEST(test_hidden),
		TEST(test_info),
		TEST(test_collectives),
		TEST(test_desktop),
		TEST(test_compile_error),
		TEST(test_old_driver),
		TEST(test_errnos),
		TEST(test_fault),
		TEST(test_wrong_ids),
		TEST(test_memory_kinds),
		TEST(test_pinned_is_near),
		TEST(test_out_of_memory),
		TEST(test_wrap),
		TEST(test_memory_of_the_caller),
		TEST(test_export_fd),
		TEST(test_export_shared),
		TEST(test_export_created),
		TEST(test_not_offered),
		TEST(test_export_ipc),
		TEST(test_import_refused),
		TEST(test_atomics_tell_nvlink),
		TEST(test_peers_refused),
		TEST(test_refusals),
		TEST(test_fault_is_no_refusal),
		TEST(test_peers_refused_late),
		TEST(test_copies),
		TEST(test_launch),
		TEST(test_no_kernels),
		TEST(test_time_out),
		TEST(test_events_and_graphs),
		TEST(test_context_of_the_caller),
		TEST(test_native),
		TEST(test_every_failure),
		cmocka_unit_test_setup(test_close_stuck, reset), /* last: it leaves things */
	};

	return cmocka_run_group_tests(tests, prepare, clean);
}
