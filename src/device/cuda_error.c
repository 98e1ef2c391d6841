/* SPDX-License-Identifier: Apache-2.0 */
/* One sentence for each error of the CUDA driver: which call, which GPU, why. */
#include "device/cuda_impl.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What is not listed is -EIO. */
static const struct {
	int first, last; /* enum cu_result */
	int err;
	const char *hint; /* NULL: none */
} meanings[] = {
	{CU_INVALID_VALUE, CU_INVALID_VALUE, EINVAL, NULL},
	{CU_OUT_OF_MEMORY, CU_OUT_OF_MEMORY, ENOMEM, NULL},
	{CU_STUB_LIBRARY, CU_STUB_LIBRARY, ENODEV, "the loaded libcuda is a stub for linking"},
	{CU_DEVICE_UNAVAILABLE, CU_DEVICE_UNAVAILABLE, EBUSY,
	 "another process uses it exclusively, or its compute mode forbids use"},
	{CU_NO_DEVICE, CU_INVALID_DEVICE, ENODEV, NULL},
	{CU_INVALID_CONTEXT, CU_INVALID_CONTEXT, EINVAL, NULL},
	{CU_MAP_FAILED, CU_MAP_FAILED, EACCES,
	 "the other's memory cannot be mapped; see the size of BAR1 (Resizable BAR) and the IOMMU"},
	{CU_NO_BINARY_FOR_GPU, CU_NO_BINARY_FOR_GPU, ENOTSUP, NULL},
	{CU_PEER_ACCESS_UNSUPPORTED, CU_PEER_ACCESS_UNSUPPORTED, EACCES, NULL},
	{CU_INVALID_PTX, CU_INVALID_PTX, ENOTSUP, NULL},
	{CU_JIT_COMPILER_NOT_FOUND, CU_JIT_COMPILER_NOT_FOUND, ENOTSUP,
	 "the driver's libnvidia-ptxjitcompiler.so.1 is not installed"},
	{CU_UNSUPPORTED_PTX_VERSION, CU_UNSUPPORTED_PTX_VERSION, ENOTSUP, "the driver is too old"},
	{CU_INVALID_HANDLE, CU_INVALID_HANDLE, EINVAL, NULL},
	{CU_LAUNCH_OUT_OF_RESOURCES, CU_LAUNCH_OUT_OF_RESOURCES, EINVAL, NULL},
	{CU_LAUNCH_TIMEOUT, CU_LAUNCH_TIMEOUT, ETIMEDOUT,
	 "the driver ends long kernels on a GPU with a monitor"},
	{CU_TOO_MANY_PEERS, CU_TOO_MANY_PEERS, EACCES, NULL},
	{CU_NOT_PERMITTED, CU_NOT_PERMITTED, EPERM, NULL},
	{CU_NOT_SUPPORTED, CU_NOT_SUPPORTED, ENOTSUP, NULL},
	{CU_SYSTEM_NOT_READY, CU_SYSTEM_NOT_READY, ENODEV,
	 "a machine with NVSwitch needs nvidia-fabricmanager running"},
	{CU_SYSTEM_DRIVER_MISMATCH, CU_SYSTEM_DRIVER_MISMATCH, ENODEV,
	 "the loaded module and the library are of different driver versions"},
	{CU_COMPAT_NOT_SUPPORTED_ON_DEVICE, CU_COMPAT_NOT_SUPPORTED_ON_DEVICE, ENODEV,
	 "a forward compatibility library of CUDA is in the way"},
	{CU_STREAM_CAPTURE_UNSUPPORTED, CU_STREAM_CAPTURE_WRONG_THREAD, EINVAL, NULL},
};

int cuda_error(const struct cuda_api *api, int result, const char *call, const char *where)
{
	const char *name = NULL, *text = NULL, *hint = NULL;
	int err = EIO;

	for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
		if (result >= meanings[i].first && result <= meanings[i].last) {
			err = meanings[i].err;
			hint = meanings[i].hint;
		}
	api->cuGetErrorName(result, &name);
	api->cuGetErrorString(result, &text);
	if (result == CU_NO_DEVICE && getenv("CUDA_VISIBLE_DEVICES"))
		hint = "CUDA_VISIBLE_DEVICES is set and may hide them";
	if (!name)
		return err_set(err, "%s%s%s: error %d", call, where ? " on " : "",
			       where ? where : "", result);
	return err_set(err, "%s%s%s: %s (%s)%s%s", call, where ? " on " : "", where ? where : "",
		       text ? text : "an error", name, hint ? ": " : "", hint ? hint : "");
}

const char *cuda_where(const struct cuda_set *c, int device, char *buf, size_t size)
{
	const struct device_info *info = &c->set.info[device];

	if (info->pci[0])
		snprintf(buf, size, "GPU %s", info->pci);
	else
		snprintf(buf, size, "CUDA device %d", info->ordinal);
	return buf;
}

int cuda_result(const struct cuda_set *c, int device, int result, const char *call)
{
	char where[48];

	if (result == CU_SUCCESS)
		return 0;
	return cuda_error(&c->api, result, call, cuda_where(c, device, where, sizeof(where)));
}

int cuda_enter(const struct cuda_set *c, int device)
{
	return cuda_result(c, device, c->api.cuCtxPushCurrent(c->devices[device].context),
			   "cuCtxPushCurrent");
}

void cuda_leave(const struct cuda_set *c)
{
	struct cu_context *was;

	c->api.cuCtxPopCurrent(&was);
}

/* A fault stays: from then on every call answers it. */
static bool is_faulty(const struct cuda_set *c, int device)
{
	size_t available, total;
	int result = c->api.cuCtxPushCurrent(c->devices[device].context);

	if (result != CU_SUCCESS)
		return true;
	result = c->api.cuMemGetInfo(&available, &total);
	cuda_leave(c);
	return result != CU_SUCCESS;
}

int cuda_refusal(const struct cuda_set *c, int device, int r)
{
	return r == -ENOMEM || is_faulty(c, device) ? r : -EACCES;
}
