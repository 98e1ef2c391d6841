/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One port to itself: does data between this host's memory and a GPU's arrive through the NIC, and
 * how fast?
 */
#pragma once

#include "rdma/measure.h"
#include "rdma/transfer.h"

/*
 * Plain data: it is sent to the worker process. The host's memory is the near side, the GPU's the
 * far one.
 */
struct loopback_job {
	char device[64];
	unsigned port;
	struct gid_choice gid;     /* without a reason: the port's own choice */
	struct device_request gpu; /* one device; n 0: host memory on both sides */
	enum region_way way;       /* of the GPU's memory, or the host's on both sides */
	unsigned measures;         /* 1 << enum rdma_measure */
	bool relaxed;
	uint64_t window; /* that messages cycle through, at most */
	struct rdma_load load;
	uint64_t gpu_limit_us; /* for the GPU's own work */
};

struct loopback_result {
	struct rdma_failure failure; /* before anything was measured */
	struct nic_port port;        /* as it was */
	uint64_t window;             /* of each buffer, which may be smaller than requested */
	int gpu_ordinal;             /* of the GPU that was opened; -1: none */
	char gpu_pci[16];
	struct rdma_cell cells[RDMA_MEASURE_N];
};

/* Runs in this process. The call never fails: failures are in the result. */
void loopback_run(const struct verbs *v, struct pulse *pulse, const struct loopback_job *job,
		  struct loopback_result *ret);
