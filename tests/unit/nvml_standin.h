/* SPDX-License-Identifier: Apache-2.0 */
/* What a test tells the stand-in for NVML to be, and what it then counts. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct nvml_standin {
	unsigned devices;
	int init_result;
	int broken;        /* index of a device that cannot be opened, -1: none */
	unsigned links;    /* NVLinks of each device */
	bool on_switch;    /* they end in NVSwitches, else each device's in the next one */
	bool hide_remotes; /* as in a virtual machine: no other end has a type or an address */
	bool refuse_fields, refuse_state;

	/* Counted by several threads. */
	atomic_uint calls, ancestor_calls, p2p_calls, remote_calls, inits;
};

/* Exported by the stand-in as "nvml_standin". */
