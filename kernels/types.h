/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of one size on GPU and host. */
#pragma once

/*
 * Read by clang as OpenCL C for the GPU and by the C compiler for the host. Addresses travel as
 * numbers, as the device that runs the kernel sees them (device_ops.address).
 */
typedef unsigned long u64;
typedef unsigned int u32;
typedef long i64;
