/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for libnvidia-ml.so.1: H200-like devices at 0000:<41 + index>:00.0. With STANDIN_OLD
 * it exports older names only and lacks what old drivers lack.
 */
#include "nvml_standin.h"

#include "machine/machine.h"
#include "machine/nvml_api.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef STANDIN_OLD
#define NEWEST(name, version) name
#else
#define NEWEST(name, version) name##version
#endif

extern struct nvml_standin nvml_standin;
EXPORT struct nvml_standin nvml_standin = {.broken = -1};

enum { INVALID_ARGUMENT = 2, GPU_IS_LOST = 15, NO_PERMISSION = 4 };

static char handles[64];

static struct nvml_device *handle(unsigned i)
{
	return (struct nvml_device *)&handles[i];
}

static unsigned index_of(const struct nvml_device *d)
{
	return (unsigned)((const char *)d - handles);
}

static int answer(void)
{
	nvml_standin.calls++;
	return NVML_SUCCESS;
}

static void set_address(struct nvml_pci *p, unsigned i)
{
	*p = (struct nvml_pci){.bus = 0x41 + i, .domain = 0};
	snprintf(p->legacy_bus_id, sizeof(p->legacy_bus_id), "0000:%02X:00.0", p->bus);
}

/* clang-format off */
#define CALL(name, params) EXPORT int name params; EXPORT int name params
/* clang-format on */

CALL(NEWEST(nvmlInit, _v2), (void))
{
	nvml_standin.inits++;
	answer();
	return nvml_standin.init_result;
}

EXPORT const char *nvmlErrorString(int result);
EXPORT const char *nvmlErrorString(int result)
{
	switch (result) {
	case NVML_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_FUNCTION_NOT_FOUND:
		return "Function Not Found";
	case GPU_IS_LOST:
		return "GPU is lost";
	case 18:
		return "Driver/library version mismatch";
	default:
		return "Unknown Error";
	}
}

CALL(nvmlSystemGetDriverVersion, (char *buf, unsigned size))
{
	snprintf(buf, size, "580.159.04");
	return answer();
}

CALL(nvmlSystemGetNVMLVersion, (char *buf, unsigned size))
{
	snprintf(buf, size, "13.580.159.04");
	return answer();
}

CALL(NEWEST(nvmlSystemGetCudaDriverVersion, _v2), (int *ret))
{
	*ret = 13000;
	return answer();
}

CALL(NEWEST(nvmlDeviceGetCount, _v2), (unsigned *ret))
{
	*ret = nvml_standin.devices;
	return answer();
}

CALL(NEWEST(nvmlDeviceGetHandleByIndex, _v2), (unsigned i, struct nvml_device **ret))
{
	answer();
	if ((int)i == nvml_standin.broken)
		return GPU_IS_LOST;
	*ret = handle(i);
	return NVML_SUCCESS;
}

#ifdef STANDIN_OLD
#define PCI_INFO nvmlDeviceGetPciInfo_v2
#else
#define PCI_INFO nvmlDeviceGetPciInfo_v3
#endif
CALL(PCI_INFO, (struct nvml_device * d, struct nvml_pci *ret))
{
	set_address(ret, index_of(d));
	return answer();
}

CALL(nvmlDeviceGetTopologyCommonAncestor, (struct nvml_device * a, struct nvml_device *b, int *ret))
{
	nvml_standin.ancestor_calls++;
	*ret = index_of(a) / 2 == index_of(b) / 2 ? NVML_LEVEL_MULTIPLE : NVML_LEVEL_SYSTEM;
	return answer();
}

/* Reads from device 0 are not supported by the chipset, so that directions can be told apart. */
CALL(nvmlDeviceGetP2PStatus, (struct nvml_device * a, struct nvml_device *b, int cap, int *ret))
{
	(void)b;
	nvml_standin.p2p_calls++;
	*ret = cap == P2P_READ && index_of(a) == 0 ? P2P_CHIPSET_NOT_SUPPORTED : P2P_OK;
	return answer();
}

#ifndef STANDIN_OLD
static void set_field(struct nvml_field *f)
{
	f->type = NVML_VALUE_UINT;
	f->result = NVML_SUCCESS;
	f->value.ull = 0;
	if (f->id == NVML_FIELD_LINK_COUNT)
		f->value.u = nvml_standin.links;
	else if (f->id == NVML_FIELD_SWITCH_LINK_COUNT && nvml_standin.on_switch &&
		 !nvml_standin.hide_remotes)
		f->value.u = nvml_standin.links;
	else if (f->id == NVML_FIELD_LINK_STATE && f->scope < nvml_standin.links)
		f->value.u = 1;
	else if (f->id == NVML_FIELD_LINK_VERSION && f->scope < nvml_standin.links)
		f->value.u = 6;
	else
		f->result = NVML_NOT_SUPPORTED;
}

CALL(nvmlDeviceGetFieldValues, (struct nvml_device * d, int n, struct nvml_field *f))
{
	(void)d;
	answer();
	if (nvml_standin.refuse_fields)
		return INVALID_ARGUMENT;
	for (int i = 0; i < n; i++)
		set_field(&f[i]);
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetGpuFabricInfoV, (struct nvml_device * d, struct nvml_fabric_v2 *ret))
{
	(void)d;
	answer();
	if (ret->version != NVML_VERSIONED(struct nvml_fabric_v2, 2))
		return 25;
	ret->state = FABRIC_COMPLETED;
	ret->status = NVML_SUCCESS;
	ret->health_mask = 0x155;
	return nvml_standin.on_switch ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}
#else
CALL(nvmlDeviceGetGpuFabricInfo, (struct nvml_device * d, struct nvml_fabric *ret))
{
	(void)d;
	*ret = (struct nvml_fabric){.state = FABRIC_IN_PROGRESS};
	return answer();
}
#endif

CALL(nvmlDeviceGetNvLinkState, (struct nvml_device * d, unsigned link, unsigned *ret))
{
	(void)d;
	answer();
	if (link >= nvml_standin.links)
		return link ? INVALID_ARGUMENT : NVML_NOT_SUPPORTED;
	*ret = 1;
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetNvLinkVersion, (struct nvml_device * d, unsigned link, unsigned *ret))
{
	(void)d;
	(void)link;
	*ret = 6;
	return answer();
}

CALL(nvmlDeviceGetNvLinkRemoteDeviceType, (struct nvml_device * d, unsigned link, unsigned *ret))
{
	(void)d;
	(void)link;
	nvml_standin.remote_calls++;
	answer();
	if (nvml_standin.hide_remotes)
		return NVML_NOT_SUPPORTED;
	*ret = nvml_standin.on_switch ? NVLINK_REMOTE_SWITCH : NVLINK_REMOTE_GPU;
	return NVML_SUCCESS;
}

CALL(NEWEST(nvmlDeviceGetNvLinkRemotePciInfo, _v2),
     (struct nvml_device * d, unsigned link, struct nvml_pci *ret))
{
	(void)link;
	nvml_standin.remote_calls++;
	if (nvml_standin.hide_remotes)
		*ret = (struct nvml_pci){.domain = ~0u, .bus = 0xff, .device = 0xff};
	else
		set_address(ret, index_of(d) ^ 1);
	return answer();
}

CALL(nvmlDeviceGetMemoryInfo, (struct nvml_device * d, struct nvml_memory *ret))
{
	(void)d;
	ret->total = 150754820096;
	return answer();
}

CALL(nvmlDeviceGetBAR1MemoryInfo, (struct nvml_device * d, struct nvml_memory *ret))
{
	(void)d;
	ret->total = ~0ull; /* NVML_VALUE_NOT_AVAILABLE */
	return answer();
}

static const struct nvml_process processes[] = {{.pid = 100}, {.pid = 200}};

#ifdef STANDIN_OLD
#define COMPUTE  nvmlDeviceGetComputeRunningProcesses_v3
#define GRAPHICS nvmlDeviceGetGraphicsRunningProcesses_v3
#else
#define COMPUTE  nvmlDeviceGetComputeRunningProcesses_v2
#define GRAPHICS nvmlDeviceGetGraphicsRunningProcesses_v2
#endif

CALL(COMPUTE, (struct nvml_device * d, unsigned *n, struct nvml_process *ret))
{
	(void)d;
	memcpy(ret, processes, sizeof(processes));
	*n = 2;
	return answer();
}

CALL(GRAPHICS, (struct nvml_device * d, unsigned *n, struct nvml_process *ret))
{
	(void)d;
	ret[0] = processes[1];
	*n = 1;
	return answer();
}

#define TEXT(name, value)                                                                          \
	CALL(name, (struct nvml_device * d, char *buf, unsigned size))                             \
	{                                                                                          \
		(void)d;                                                                           \
		snprintf(buf, size, "%s", value);                                                  \
		return answer();                                                                   \
	}

TEXT(nvmlDeviceGetName, "NVIDIA H200")
TEXT(nvmlDeviceGetUUID, "GPU-11111111-2222-3333-4444-555555555555")
TEXT(nvmlDeviceGetVbiosVersion, "96.00.BC.00.01")

#define NUMBER(name, value)                                                                        \
	CALL(name, (struct nvml_device * d, unsigned *ret))                                        \
	{                                                                                          \
		(void)d;                                                                           \
		*ret = value;                                                                      \
		answer();                                                                          \
		return nvml_standin.refuse_state ? NVML_NOT_SUPPORTED : NVML_SUCCESS;              \
	}

NUMBER(nvmlDeviceGetMinorNumber, index_of(d))
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, 0)
NUMBER(nvmlDeviceGetPerformanceState, 32) /* NVML_PSTATE_UNKNOWN */
NUMBER(nvmlDeviceGetComputeMode, 3)
NUMBER(nvmlDeviceGetDisplayMode, 0)
NUMBER(nvmlDeviceGetDisplayActive, 0)
NUMBER(nvmlDeviceGetPersistenceMode, 1)
#ifndef STANDIN_OLD
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, 5)
#endif

#define TWO_NUMBERS(name, first, second)                                                           \
	CALL(name, (struct nvml_device * d, unsigned *a, unsigned *b))                             \
	{                                                                                          \
		(void)d;                                                                           \
		*a = first;                                                                        \
		*b = second;                                                                       \
		answer();                                                                          \
		return nvml_standin.refuse_state ? NVML_NOT_SUPPORTED : NVML_SUCCESS;              \
	}

TWO_NUMBERS(nvmlDeviceGetCudaComputeCapability, 9, 0)
TWO_NUMBERS(nvmlDeviceGetMigMode, 0, 1)
TWO_NUMBERS(nvmlDeviceGetGspFirmwareMode, 1, 1)
