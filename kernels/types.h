/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of one size on GPU and host. */
#pragma once

/*
 * Read by clang as OpenCL C for the GPU and by the C compiler for the host. Addresses are passed as
 * numbers, as seen by the device that runs the kernel (device_ops.address).
 */
typedef unsigned long u64;
typedef unsigned int u32;
typedef long i64;
