/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the GPU reader; for gpu.c, the files named below and their tests only. */
#pragma once

#include "machine/read.h"

#include <jansson.h>

/* gpu_document.c: a JSON document with the answers of NVML or the resource manager. */
struct gpu_document {
	const char *name; /* "rm.json" */
	unsigned parts;   /* enum machine_part: any of them asks for it */
	struct fact_str (*read)(struct reader *r);
	const char *whom, *speaker; /* for sentences: "the resource manager", "resource manager" */
	const char *missing;        /* the reason given if the document is missing */
};

/* The caller drops it; NULL if there is none. *ret_why: why a fact that it lacks is unknown. */
json_t *gpu_document(struct reader *r, const struct gpu_document *d, const char **ret_why);

/* nvidia_driver.c: m->driver from the driver's files; needs m->gpus. */
void nvidia_driver_read(struct reader *r);
/* The value of a line "KEY: value" of the driver's files in /proc, without blanks and quotes around
 * it. False: no such line. */
bool nvidia_driver_value(const char *text, const char *key, char *buf, size_t size);

/* nvml_decode.c: what nvml.json says of m->gpus, m->pairs and m->driver. */
void nvml_decode(struct reader *r);
/*
 * On a live machine NVML is asked about pairs only if the resource manager gave no answer; this
 * does that.
 */
void nvml_decode_missing_p2p(struct reader *r);

/* rm_decode.c: what rm.json says of m->pairs, after NVML. */
void rm_decode(struct reader *r);

/* nvidia_driver.c: whether the module has P2P through BAR1; needs m->pairs. */
void bar1_p2p_read(struct reader *r);

/* cuda_order.c: each GPU's ordinal in a CUDA program that has this process's environment. */
void cuda_order(struct reader *r);
