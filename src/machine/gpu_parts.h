/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces that the GPU reader is made of; for gpu.c, its neighbours and their tests only. */
#pragma once

#include "machine/read.h"

/* nvidia_driver.c: m->driver from the driver's files; needs m->gpus. */
void nvidia_driver_read(struct reader *r);
/* The value of a line "KEY: value" of the driver's files in /proc, without blanks and quotes around
 * it. False: no such line. */
bool nvidia_driver_value(const char *text, const char *key, char *buf, size_t size);

/* nvml_decode.c: what nvml.json says of m->gpus, m->pairs and m->driver. */
void nvml_decode(struct reader *r);

/* rm_decode.c: what rm.json says of m->pairs. */
void rm_decode(struct reader *r);

/* nvidia_driver.c: whether the module has P2P through BAR1; needs m->pairs. */
void bar1_p2p_read(struct reader *r);

/* cuda_order.c: each GPU's ordinal in a CUDA program that has this process's environment. */
void cuda_order(struct reader *r);
