/* SPDX-License-Identifier: Apache-2.0 */
/* NVML as onehop uses it: own declarations of the library's interface, and the names under which
 * nvml.json keeps its answers. */
#pragma once

#include <stddef.h>

/*
 * The document of NVML's answers. Of a machine that texts describe, that an answer was cut off
 * (source_gap) is kept below its name: "nvml.json/0000:41:00.0" of a GPU,
 * "nvml.json/common_ancestor/0/1", "nvml.json/p2p/read/0/1" of a pair.
 */
#define NVML_DOCUMENT "nvml.json"

struct source;
struct nvml_device; /* opaque: nvmlDevice_t points at it */

/* nvmlReturn_t: those that onehop uses. */
enum nvml_return {
	NVML_SUCCESS = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
};

/* nvmlPciInfo_t. Before _v3 it ended behind pci_subsystem_id in 16 reserved bytes. */
struct nvml_pci {
	char legacy_bus_id[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

/* nvmlMemory_t, and nvmlBAR1Memory_t with total, free, used in the same order. */
struct nvml_memory {
	unsigned long long total, free, used;
};

/* nvmlProcessInfo_v2_t. That of _v3 is the same, but for a few 535 releases with 8 bytes more. */
struct nvml_process {
	unsigned pid;
	unsigned long long used_memory;
	unsigned gpu_instance, compute_instance;
};

/* nvmlGpuFabricInfo_t */
struct nvml_fabric {
	unsigned char cluster_uuid[16];
	int status;
	unsigned clique;
	unsigned char state;
};

/* nvmlGpuFabricInfo_v2_t */
struct nvml_fabric_v2 {
	unsigned version;
	unsigned char cluster_uuid[16];
	int status;
	unsigned clique;
	unsigned char state;
	unsigned health_mask;
};

/* NVML_STRUCT_VERSION */
#define NVML_VERSIONED(type, version) ((unsigned)(sizeof(type) | (version) << 24))

/* nvmlValueType_t and the members of nvmlValue_t that the fields below come in. */
enum nvml_value_type {
	NVML_VALUE_DOUBLE,
	NVML_VALUE_UINT,
	NVML_VALUE_ULONG,
	NVML_VALUE_ULONGLONG,
	NVML_VALUE_LONGLONG,
	NVML_VALUE_INT,
	NVML_VALUE_USHORT,
};

/* nvmlFieldValue_t */
struct nvml_field {
	unsigned id, scope;
	long long timestamp, latency_us;
	int type; /* enum nvml_value_type */
	int result;
	union {
		double d;
		int i;
		unsigned u;
		unsigned long ul;
		unsigned long long ull;
		long long ll;
		unsigned short us;
	} value;
};

enum nvml_field_id {
	NVML_FIELD_LINK_COUNT = 91,
	NVML_FIELD_SWITCH_LINK_COUNT = 147, /* links that end in an NVSwitch */
	NVML_FIELD_LINK_STATE = 165,        /* scope: link. 0 inactive, 1 active, 2 sleeping */
	NVML_FIELD_LINK_VERSION = 166,      /* scope: link */
};

/* X(member, symbol, its older name with the same interface or the symbol again, parameters) */
/* clang-format off */
#define NVML_SYMBOLS(X) \
	X(init, "nvmlInit_v2", "nvmlInit", (void)) \
	X(driver_version, "nvmlSystemGetDriverVersion", "nvmlSystemGetDriverVersion", (char *, unsigned)) \
	X(library_version, "nvmlSystemGetNVMLVersion", "nvmlSystemGetNVMLVersion", (char *, unsigned)) \
	X(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion", (int *)) \
	X(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", (unsigned *)) \
	X(by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", \
		(unsigned, struct nvml_device **)) \
	X(pci, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", (struct nvml_device *, struct nvml_pci *)) \
	X(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetTopologyCommonAncestor", \
		(struct nvml_device *, struct nvml_device *, int *)) \
	X(p2p_status, "nvmlDeviceGetP2PStatus", "nvmlDeviceGetP2PStatus", \
		(struct nvml_device *, struct nvml_device *, int, int *)) \
	X(fields, "nvmlDeviceGetFieldValues", "nvmlDeviceGetFieldValues", \
		(struct nvml_device *, int, struct nvml_field *)) \
	X(link_state, "nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkState", \
		(struct nvml_device *, unsigned, unsigned *)) \
	X(link_version, "nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetNvLinkVersion", \
		(struct nvml_device *, unsigned, unsigned *)) \
	X(link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemoteDeviceType", \
		(struct nvml_device *, unsigned, unsigned *)) \
	X(link_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo", \
		(struct nvml_device *, unsigned, struct nvml_pci *)) \
	X(memory, "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo", \
		(struct nvml_device *, struct nvml_memory *)) \
	X(bar1, "nvmlDeviceGetBAR1MemoryInfo", "nvmlDeviceGetBAR1MemoryInfo", \
		(struct nvml_device *, struct nvml_memory *)) \
	X(fabric_v2, "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfoV", \
		(struct nvml_device *, struct nvml_fabric_v2 *)) \
	X(fabric, "nvmlDeviceGetGpuFabricInfo", "nvmlDeviceGetGpuFabricInfo", \
		(struct nvml_device *, struct nvml_fabric *)) \
	X(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v2", \
		"nvmlDeviceGetComputeRunningProcesses_v3", \
		(struct nvml_device *, unsigned *, struct nvml_process *)) \
	X(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v2", \
		"nvmlDeviceGetGraphicsRunningProcesses_v3", \
		(struct nvml_device *, unsigned *, struct nvml_process *)) \
	NVML_TEXTS(NVML_TEXT_SYMBOL, X) \
	NVML_NUMBERS(NVML_NUMBER_SYMBOL, X) \
	NVML_DETAILS(NVML_NUMBER_SYMBOL, X) \
	NVML_LINK_DETAILS(NVML_NUMBER_SYMBOL, X) \
	NVML_TWO_NUMBERS(NVML_TWO_NUMBERS_SYMBOL, X)

/*
 * The queries for each GPU, one call per row: X(Y, member of struct gpu and key in nvml.json,
 * symbol, what "Not Supported" means: ABSENT or UNKNOWN).
 */
#define NVML_TEXTS(X, Y) \
	X(Y, model, "nvmlDeviceGetName", UNKNOWN) \
	X(Y, uuid, "nvmlDeviceGetUUID", UNKNOWN) \
	X(Y, vbios, "nvmlDeviceGetVbiosVersion", UNKNOWN)

#define NVML_NUMBERS(X, Y) \
	X(Y, minor, "nvmlDeviceGetMinorNumber", UNKNOWN) \
	X(Y, compute_mode, "nvmlDeviceGetComputeMode", UNKNOWN) \
	X(Y, display_active, "nvmlDeviceGetDisplayActive", ABSENT) \
	X(Y, persistence, "nvmlDeviceGetPersistenceMode", UNKNOWN) \
	X(Y, numa_id, "nvmlDeviceGetNumaNodeId", ABSENT)

/* For recordings: 9 ms a GPU one after the other, and sysfs shows the link too. */
#define NVML_DETAILS(X, Y) \
	X(Y, display_attached, "nvmlDeviceGetDisplayMode", ABSENT) \
	X(Y, pcie_gen, "nvmlDeviceGetCurrPcieLinkGeneration", UNKNOWN) \
	X(Y, pcie_gen_max, "nvmlDeviceGetMaxPcieLinkGeneration", UNKNOWN) \
	X(Y, pcie_gen_device_max, "nvmlDeviceGetGpuMaxPcieLinkGeneration", UNKNOWN) \
	X(Y, pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", UNKNOWN) \
	X(Y, pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth", UNKNOWN) \
	X(Y, pcie_replays, "nvmlDeviceGetPcieReplayCounter", UNKNOWN)

/*
 * For recordings, and of a GPU whose link is slower than it can be: 2.3 ms a GPU, one after the
 * other.
 */
#define NVML_LINK_DETAILS(X, Y) \
	X(Y, performance_state, "nvmlDeviceGetPerformanceState", UNKNOWN)

/* The first of the two is the fact; of the compute capability both are (major, minor). */
#define NVML_TWO_NUMBERS(X, Y) \
	X(Y, compute_capability, "nvmlDeviceGetCudaComputeCapability", UNKNOWN) \
	X(Y, mig_enabled, "nvmlDeviceGetMigMode", ABSENT) \
	X(Y, gsp_firmware, "nvmlDeviceGetGspFirmwareMode", ABSENT)

/* Queries that need more than a plain call: key in nvml.json, call to name, as above. */
#define NVML_OTHERS(X, Y) \
	X(Y, vram_bytes, "nvmlDeviceGetMemoryInfo", UNKNOWN) \
	X(Y, bar1_bytes, "nvmlDeviceGetBAR1MemoryInfo", UNKNOWN) \
	X(Y, process_n, "nvmlDeviceGetComputeRunningProcesses", UNKNOWN) \
	X(Y, fabric_state, "nvmlDeviceGetGpuFabricInfo", ABSENT) \
	X(Y, fabric_status, "nvmlDeviceGetGpuFabricInfo", ABSENT) \
	X(Y, fabric_health, "nvmlDeviceGetGpuFabricInfoV", ABSENT)

#define NVML_TEXT_SYMBOL(X, member, symbol, none) \
	X(member, symbol, symbol, (struct nvml_device *, char *, unsigned))
#define NVML_NUMBER_SYMBOL(X, member, symbol, none) \
	X(member, symbol, symbol, (struct nvml_device *, unsigned *))
#define NVML_TWO_NUMBERS_SYMBOL(X, member, symbol, none) \
	X(member, symbol, symbol, (struct nvml_device *, unsigned *, unsigned *))
/* clang-format on */

struct nvml_api {
	/* NOLINTNEXTLINE(bugprone-macro-parentheses): a member and its parameters */
#define NVML_MEMBER(member, symbol, older, params) int(*member) params;
	NVML_SYMBOLS(NVML_MEMBER)
#undef NVML_MEMBER
	const char *(*error_string)(int); /* last: the only one that gives no result code */
};

/* Keys of nvml.json's "p2p" object, by enum p2p_cap; each holds rows of initiators. */
#define NVML_P2P_KEYS                                                                              \
	{                                                                                          \
		"read", "write", "nvlink", "atomics", "pci"                                        \
	}
