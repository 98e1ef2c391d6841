/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver's interface as onehop uses it: own declarations. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Opaque: what CUcontext, CUmodule, CUfunction, CUstream, CUevent and the like point at. */
struct cu_context;
struct cu_module;
struct cu_function;
struct cu_stream;
struct cu_event;
struct cu_graph;
struct cu_graph_exec;

/* CUresult: those that mean something here. */
enum cu_result {
	CU_SUCCESS = 0,
	CU_INVALID_VALUE = 1,
	CU_OUT_OF_MEMORY = 2,
	CU_STUB_LIBRARY = 34,
	CU_DEVICE_UNAVAILABLE = 46,
	CU_NO_DEVICE = 100,
	CU_INVALID_DEVICE = 101,
	CU_INVALID_CONTEXT = 201,
	CU_MAP_FAILED = 205,
	CU_NO_BINARY_FOR_GPU = 209,
	CU_PEER_ACCESS_UNSUPPORTED = 217,
	CU_INVALID_PTX = 218,
	CU_JIT_COMPILER_NOT_FOUND = 221,
	CU_UNSUPPORTED_PTX_VERSION = 222,
	CU_INVALID_HANDLE = 400,
	CU_NOT_FOUND = 500,
	CU_NOT_READY = 600,
	CU_ILLEGAL_ADDRESS = 700,
	CU_LAUNCH_OUT_OF_RESOURCES = 701,
	CU_LAUNCH_TIMEOUT = 702,
	CU_PEER_ACCESS_ALREADY_ENABLED = 704,
	CU_PEER_ACCESS_NOT_ENABLED = 705,
	CU_TOO_MANY_PEERS = 711,
	CU_LAUNCH_FAILED = 719,
	CU_NOT_PERMITTED = 800,
	CU_NOT_SUPPORTED = 801,
	CU_SYSTEM_NOT_READY = 802,
	CU_SYSTEM_DRIVER_MISMATCH = 803,
	CU_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
	CU_STREAM_CAPTURE_UNSUPPORTED = 900, /* and what else goes wrong with captures, to 908 */
	CU_STREAM_CAPTURE_WRONG_THREAD = 908,
};

/* CUdevice_attribute */
enum cu_device_attribute {
	CU_MAX_THREADS_PER_BLOCK = 1,
	CU_MULTIPROCESSOR_COUNT = 16,
	CU_KERNEL_EXEC_TIMEOUT = 17,
	CU_ASYNC_ENGINE_COUNT = 40,
	CU_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_COMPUTE_CAPABILITY_MINOR = 76,
	CU_PAGEABLE_MEMORY_ACCESS = 88,
	CU_VIRTUAL_MEMORY_MANAGEMENT = 102,
	CU_HANDLE_TYPE_POSIX_FD = 103,
	CU_GENERIC_COMPRESSION = 107,
	CU_RDMA_WITH_VIRTUAL_MEMORY = 110,
	CU_DMA_BUF = 124,
};

enum cu_function_attribute { CU_FUNCTION_MAX_THREADS = 0 };             /* CUfunction_attribute */
enum cu_jit_option { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_SIZE = 6 }; /* CUjit_option */
enum { CU_HOST_PORTABLE = 1, CU_HOST_MAPPED = 2 };                      /* CU_MEMHOSTALLOC_ */
enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_CAPTURE_THREAD_LOCAL = 1 }; /* CUstreamCaptureMode */
enum { CU_IPC_LAZY_PEER_ACCESS = 1 };
enum { CU_RANGE_DMA_BUF = 1 }; /* CUmemRangeHandleType */
enum { CU_ALLOCATION_PINNED = 1, CU_COMPRESSION_GENERIC = 1, CU_HANDLE_POSIX_FD = 1 };
enum { CU_LOCATION_DEVICE = 1, CU_LOCATION_HOST_NUMA = 3 }; /* CUmemLocationType */
enum { CU_P2P_NATIVE_ATOMICS = 3 };                         /* CUdevice_P2PAttribute */
enum { CU_GRANULARITY_MINIMUM = 0 };
enum cu_access { CU_ACCESS_NONE = 0, CU_ACCESS_READ_WRITE = 3 }; /* CUmemAccess_flags */

/* CUpointer_attribute; the type of memory that CUDA does not know is 0 */
enum cu_pointer_attribute {
	CU_POINTER_MEMORY_TYPE = 2,
	CU_POINTER_RANGE_START = 11,
	CU_POINTER_RANGE_SIZE = 12,
};

/* CUipcMemHandle */
struct cu_ipc_handle {
	unsigned char bytes[64];
};

/* CUmemLocation */
struct cu_location {
	int type, id;
};

/* CUmemAllocationProp */
struct cu_allocation {
	int type, handle_types;
	struct cu_location location;
	void *win32_meta;
	unsigned char compression, rdma_capable;
	unsigned short usage;
	unsigned char reserved[4];
};

/* CUmemAccessDesc */
struct cu_access_desc {
	struct cu_location location;
	int flags;
};

_Static_assert(sizeof(struct cu_allocation) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(struct cu_access_desc) == 12, "CUmemAccessDesc");

/* X(member, symbol, required, params): required is what every driver since CUDA 11.0 (450) has. */
/* clang-format off */
#define CUDA_SYMBOLS(X) \
	X(cuInit, "cuInit", true, (unsigned flags)) \
	X(cuDeviceGet, "cuDeviceGet", true, (int *ret, int ordinal)) \
	X(cuDeviceGetName, "cuDeviceGetName", true, (char *ret, int size, int device)) \
	X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", true, (char *ret, int size, int device)) \
	X(cuDeviceGetAttribute, "cuDeviceGetAttribute", true, (int *ret, int attribute, int device)) \
	X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", true, (size_t *ret, int device)) \
	X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", true, (int *ret, int device, int peer)) \
	X(cuDeviceGetByPCIBusId, "cuDeviceGetByPCIBusId", true, (int *ret, const char *pci)) \
	X(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute", true, \
	  (int *ret, int attribute, int device, int peer)) \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", true, \
	  (struct cu_context **ret, int device)) \
	X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", true, (int device)) \
	X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", true, (struct cu_context *c)) \
	X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", true, (struct cu_context **ret)) \
	X(cuCtxSetCurrent, "cuCtxSetCurrent", true, (struct cu_context *c)) \
	X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", true, \
	  (struct cu_context *peer, unsigned flags)) \
	X(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", true, (struct cu_context *peer)) \
	X(cuModuleLoadDataEx, "cuModuleLoadDataEx", true, \
	  (struct cu_module **ret, const void *image, unsigned n, int *options, void **values)) \
	X(cuModuleGetFunction, "cuModuleGetFunction", true, \
	  (struct cu_function **ret, struct cu_module *m, const char *name)) \
	X(cuModuleUnload, "cuModuleUnload", true, (struct cu_module *m)) \
	X(cuFuncGetAttribute, "cuFuncGetAttribute", true, \
	  (int *ret, int attribute, struct cu_function *f)) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, \
	  "cuOccupancyMaxActiveBlocksPerMultiprocessor", true, \
	  (int *ret, struct cu_function *f, int threads, size_t shared_bytes)) \
	X(cuFuncLoad, "cuFuncLoad", false, (struct cu_function *f)) \
	X(cuLaunchKernel, "cuLaunchKernel", true, \
	  (struct cu_function *f, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, \
	   unsigned tz, unsigned shared_bytes, struct cu_stream *s, void **params, void **extra)) \
	X(cuMemGetInfo, "cuMemGetInfo_v2", true, (size_t *ret_free, size_t *ret_total)) \
	X(cuMemAlloc, "cuMemAlloc_v2", true, (uint64_t *ret, size_t size)) \
	X(cuMemFree, "cuMemFree_v2", true, (uint64_t address)) \
	X(cuMemGetAddressRange, "cuMemGetAddressRange_v2", true, \
	  (uint64_t *ret_base, size_t *ret_size, uint64_t address)) \
	X(cuPointerGetAttributes, "cuPointerGetAttributes", false, \
	  (unsigned n, int *attributes, void **ret, uint64_t address)) \
	X(cuMemHostAlloc, "cuMemHostAlloc", true, (void **ret, size_t size, unsigned flags)) \
	X(cuMemFreeHost, "cuMemFreeHost", true, (void *p)) \
	X(cuMemHostRegister, "cuMemHostRegister_v2", false, (void *p, size_t size, unsigned flags)) \
	X(cuMemHostUnregister, "cuMemHostUnregister", false, (void *p)) \
	X(cuMemcpyAsync, "cuMemcpyAsync", true, \
	  (uint64_t target, uint64_t origin, size_t n, struct cu_stream *s)) \
	X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", true, \
	  (uint64_t target, struct cu_context *tc, uint64_t origin, struct cu_context *oc, size_t n, \
	   struct cu_stream *s)) \
	X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", true, \
	  (void *target, uint64_t origin, size_t n, struct cu_stream *s)) \
	X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", true, \
	  (uint64_t target, const void *origin, size_t n, struct cu_stream *s)) \
	X(cuIpcGetMemHandle, "cuIpcGetMemHandle", true, (struct cu_ipc_handle *ret, uint64_t address)) \
	X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2", true, \
	  (uint64_t *ret, struct cu_ipc_handle handle, unsigned flags)) \
	X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", true, (uint64_t address)) \
	X(cuStreamCreate, "cuStreamCreate", true, (struct cu_stream **ret, unsigned flags)) \
	X(cuStreamDestroy, "cuStreamDestroy_v2", true, (struct cu_stream *s)) \
	X(cuStreamGetCtx, "cuStreamGetCtx", true, (struct cu_stream *s, struct cu_context **ret)) \
	X(cuStreamQuery, "cuStreamQuery", true, (struct cu_stream *s)) \
	X(cuStreamWaitEvent, "cuStreamWaitEvent", true, \
	  (struct cu_stream *s, struct cu_event *e, unsigned flags)) \
	X(cuEventCreate, "cuEventCreate", true, (struct cu_event **ret, unsigned flags)) \
	X(cuEventDestroy, "cuEventDestroy_v2", true, (struct cu_event *e)) \
	X(cuEventRecord, "cuEventRecord", true, (struct cu_event *e, struct cu_stream *s)) \
	X(cuEventElapsedTime, "cuEventElapsedTime", true, \
	  (float *ret_ms, struct cu_event *from, struct cu_event *to)) \
	X(cuMemCreate, "cuMemCreate", false, \
	  (uint64_t *ret, size_t size, const struct cu_allocation *a, unsigned long long flags)) \
	X(cuMemGetAllocationPropertiesFromHandle, "cuMemGetAllocationPropertiesFromHandle", false, \
	  (struct cu_allocation *ret, uint64_t handle)) \
	X(cuMemRelease, "cuMemRelease", false, (uint64_t handle)) \
	X(cuMemAddressReserve, "cuMemAddressReserve", false, \
	  (uint64_t *ret, size_t size, size_t alignment, uint64_t wish, unsigned long long flags)) \
	X(cuMemAddressFree, "cuMemAddressFree", false, (uint64_t address, size_t size)) \
	X(cuMemMap, "cuMemMap", false, \
	  (uint64_t address, size_t size, size_t offset, uint64_t handle, unsigned long long flags)) \
	X(cuMemUnmap, "cuMemUnmap", false, (uint64_t address, size_t size)) \
	X(cuMemSetAccess, "cuMemSetAccess", false, \
	  (uint64_t address, size_t size, const struct cu_access_desc *a, size_t n)) \
	X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", false, \
	  (size_t *ret, const struct cu_allocation *a, int option)) \
	X(cuMemExportToShareableHandle, "cuMemExportToShareableHandle", false, \
	  (void *ret, uint64_t handle, int type, unsigned long long flags)) \
	X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", false, \
	  (uint64_t *ret, void *handle, int type)) \
	X(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", false, \
	  (void *ret, uint64_t address, size_t size, int type, unsigned long long flags)) \
	X(cuStreamIsCapturing, "cuStreamIsCapturing", false, (struct cu_stream *s, int *ret)) \
	X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", false, (struct cu_stream *s, int mode)) \
	X(cuStreamEndCapture, "cuStreamEndCapture", false, (struct cu_stream *s, struct cu_graph **ret)) \
	X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", false, \
	  (struct cu_graph_exec **ret, struct cu_graph *g, unsigned long long flags)) \
	X(cuGraphLaunch, "cuGraphLaunch", false, (struct cu_graph_exec *g, struct cu_stream *s)) \
	X(cuGraphDestroy, "cuGraphDestroy", false, (struct cu_graph *g)) \
	X(cuGraphExecDestroy, "cuGraphExecDestroy", false, (struct cu_graph_exec *g)) \
	X(cuGetErrorName, "cuGetErrorName", true, (int result, const char **ret)) \
	X(cuGetErrorString, "cuGetErrorString", true, (int result, const char **ret))
/* clang-format on */

/* All return a CUresult. Devices are CUdevice, addresses CUdeviceptr. */
struct cuda_api {
#define CUDA_MEMBER(member, symbol, required, params) int(*member) params;
	CUDA_SYMBOLS(CUDA_MEMBER)
#undef CUDA_MEMBER
};
