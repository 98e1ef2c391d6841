/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that are threads and shared memory of this host: real copies, real concurrency, no GPU.
 */
#pragma once

#include "device/device.h"

int host_open(const struct device_request *r, struct device_set **ret);

/*
 * What stream_native gives: how another library in this process enqueues work of its own. call()
 * answers a negative errno; `work` runs in the stream's order, in the stream's thread.
 */
struct host_native {
	int (*call)(struct host_native *stream, void (*work)(void *context), void *context);
};
