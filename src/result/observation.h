/* SPDX-License-Identifier: Apache-2.0 */
/* Observations: what tests, NCCL and other tools showed about a machine. */
#pragma once

#include "result/run_failure.h"

#include <stdbool.h>

enum observed_kind {
	OBSERVED_NOTHING,     /* a metric that check does not use */
	OBSERVED_PEER_COPY,   /* ok 0/1: data checked at the owner */
	OBSERVED_PEER_ACCESS, /* ok 0/1: CUDA says it can */
	OBSERVED_BANDWIDTH,   /* value: GB/s one way */
	OBSERVED_BOTH_WAYS,   /* value: GB/s, both directions at once; only where none is of one */
	OBSERVED_RATE,        /* the pair's copies were far too slow for a test; ok is false */
	OBSERVED_LATENCY,     /* value: us */
	OBSERVED_NCCL_TRANSPORT, /* text: "P2P/CUMEM", "SHM/direct" */
	OBSERVED_RUN_FAILURE,    /* failure; initiator: the rank's GPU */
	OBSERVED_NCCL_WARNING,   /* text: the line */
	OBSERVED_NCCL_GDR_OFF,   /* text: the line that says that NCCL uses no GPUDirect RDMA */
	OBSERVED_NCCL_GDR_HALF,  /* only one end of connections does; text: "node1", where not */
	OBSERVED_MESSAGE,        /* message; initiator: the GPU that it names; text: the line */
	OBSERVED_KIND_N
};

/* What a tool's line reports. */
enum tool_message {
	MESSAGE_NONE,
	MESSAGE_MODULE_BUSY,       /* one of the driver's modules could not be unloaded */
	MESSAGE_MODULE_NOT_LISTED, /* text: a module that lsmod did not show when asked for it */
	MESSAGE_MODULE_UNSIGNED,   /* a module was not loaded because of its signature */
	MESSAGE_MODULE_MISFIT,     /* ... because it is built for another kernel or module */
	MESSAGE_NO_NVSWITCH,       /* the fabric manager found no NVSwitch */
	MESSAGE_FABRIC_FAILED,     /* it did not start */
	MESSAGE_FABRIC_VERSION,    /* ... because it has another version than the driver */
	MESSAGE_FABRIC_MISSING,    /* systemd knows no such service */
	MESSAGE_FABRIC_STALE,      /* it does not know GPUs that ask for multicast */
	MESSAGE_SWITCH_FATAL,      /* the fabric manager saw an NVSwitch fail */
	MESSAGE_SWITCH_ERROR,      /* ... report an error that it recovers from */
	MESSAGE_NVLINK_DOWN,       /* a health check found a link down */
	/* Of one GPU; text: the link that counted most. */
	MESSAGE_NVLINK_RETRAINED, /* links lost their training */
	MESSAGE_NVLINK_REPEATED,  /* ... sent data again */
	MESSAGE_NVLINK_NO_P2P,    /* ... offer no P2P */
	MESSAGE_COPY_WRONG,       /* a test of copies between two GPUs read back wrong data */
	MESSAGE_ENGINE_PCIE_ONLY, /* vLLM uses its own all-reduce over PCIe for two GPUs only */
	MESSAGE_ENGINE_NO_P2P, /* ... not at all: CUDA offers no P2P, or vLLM's test of it failed */
	MESSAGE_NIC_RATE_GPU, /* perftest moved memory of the GPU; text: the NIC, value: GB/s one way */
	MESSAGE_NIC_RATE_HOST, /* ... of the host */
	MESSAGE_NIC_TIME_GPU,  /* the same with the time of one message; value: microseconds */
	MESSAGE_NIC_TIME_HOST,
	/* nvidia-smi did not work: */
	MESSAGE_NVML_MISMATCH,  /* the libraries have another version than the module */
	MESSAGE_NVML_NO_DRIVER, /* it does not reach the module */
	MESSAGE_NVML_NO_ACCESS, /* "Unknown Error" before it knows a GPU: it may not use them */
	MESSAGE_NO_GPU_LISTED,  /* the driver has no GPU */
	MESSAGE_GPU_NOT_OPENED, /* a GPU does not answer */
	MESSAGE_CHOSEN_GPUS,    /* a container is given some GPUs */
	MESSAGE_BOOT_DIFFERS,   /* text: what differs between two boots of a kernel log */
	MESSAGE_LINK_GUESSED,   /* NCCL knows no speed of a PCIe link, and assumes one */
	MESSAGE_LINK_PLANNED,   /* value: GB/s that NCCL plans with for a PCIe link, too few */
};

/* The conditions of a result. A result of the store is stale if one of them differs. */
enum run_condition {
	CONDITION_DRIVER,   /* release */
	CONDITION_REGISTRY, /* the driver's RegistryDwords; "none" */
	CONDITION_KERNEL,   /* release */
	CONDITION_BIOS,
	CONDITION_BOOT,                  /* boot ID: this start of the machine */
	CONDITION_TEXTS,                 /* those are texts of struct figures; of each GPU: */
	CONDITION_GPU = CONDITION_TEXTS, /* its model */
	CONDITION_WIRING,                /* the ports above it, and what they redirect */
	CONDITION_N
};

struct changed {
	enum run_condition what; /* CONDITION_N: nothing */
	const char *was, *is;    /* "": unknown. CONDITION_WIRING: the port; the GPU below it */
};
#define CHANGED_NOTHING ((struct changed){CONDITION_N, "", ""})

/* A copy with P2P on compared with the same copy with P2P off. */
enum observed_gain {
	OBSERVED_GAIN_UNKNOWN, /* not measured both ways */
	OBSERVED_GAINS,        /* P2P is faster, or as fast and tiny transfers are faster */
	OBSERVED_GAINS_NOTHING,
};

/* The run that it comes from; "": unknown. */
struct observed_run {
	const char *tool; /* "onehop test", "NCCL" */
	const char *when; /* "2026-01-31T10:20:30Z" */
};

struct observed {
	enum observed_kind kind;
	int initiator, target; /* GPU indexes, -1: all */
	bool ok;
	bool pulled; /* the initiator read, so the data came from the target */
	double value;
	double low, high;        /* its interval, as in struct figure; equal to it: unknown */
	unsigned samples;        /* 0: unknown */
	uint64_t bytes;          /* of a message; 0: none, or unknown */
	enum observed_gain gain; /* bandwidth only */
	enum tool_message message;
	double off; /* value with P2P off, 0: unknown */
	const char *text;
	const char *from; /* "p2pBandwidthLatencyTest-before.txt:41" */
	struct observed_run run;
	struct run_failure failure;
};
