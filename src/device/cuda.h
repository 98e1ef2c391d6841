/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs through the CUDA driver library, opened at run time. */
#pragma once

#include "device/device.h"

/* Where things are; NULL: where they are on every machine. */
struct cuda_place {
	const char *library; /* NULL: libcuda.so.1 */
	const char *root;    /* NULL: "" */
	const char *kernels; /* PTX, "" none; NULL: those built in */
};

/*
 * The GPUs of r->ordinal in this process, kernels loaded. `place` may be NULL. Opens nothing where
 * the driver is not loaded or a device node is missing, because the library would load and make
 * them. -ENODEV (no driver, no library, no such GPU), -EBUSY (another process has it for itself) or
 * what device.h lists.
 * Without kernels built in, launches answer -ENOTSUP and the rest works.
 */
int cuda_open(const struct device_request *r, const struct cuda_place *place,
	      struct device_set **ret);
