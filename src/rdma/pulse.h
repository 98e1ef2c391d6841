/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's signs of life. The process that waits for an answer kills a worker that has been
 * silent for longer than its last sign said that it might be.
 */
#pragma once

#include <stdint.h>

#define PULSE_QUIET_S 8  /* without a sign: then it hangs in a driver */
#define PULSE_GPU_S   60 /* opening a GPU: CUDA, and the memory of many GPUs */

struct pulse {
	int fd;           /* of the waiting process */
	uint64_t next_us; /* when the next sign is due */
};

/* At most once a second. Also NULL: nobody waits. */
void pulse_beat(struct pulse *p);
/* What comes next may take so long. */
void pulse_warn(struct pulse *p, uint8_t seconds);
