/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for the GPU, as the driver compiles them. */
#pragma once

/* PTX for sm_70 and later, which the driver translates for the GPU at hand; "": built without. */
extern const char kernels_ptx[];     /* COMMON_KERNELS (kernels/args.h) */
extern const char collectives_ptx[]; /* COLLECTIVE_KERNELS */
