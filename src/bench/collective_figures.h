/* SPDX-License-Identifier: Apache-2.0 */
/* What `bench nccl` measured as figures. */
#pragma once

#include "bench/collective_bench.h"

struct figures;

/* The placement of a size that counts. */
const struct collective_cell *nccl_faster(const struct collective_row *row);
/* Wrong elements of all rows. */
int64_t nccl_wrong(const struct collective_result *r);
/* Results whose data was checked: none of a size that holds no element. */
size_t nccl_checked(const struct collective_result *r);
/*
 * Of the faster placement of each size; `off` (NULL: none) as the staged figures. `device` says
 * what the ranks ran on: "CUDA". figures_free.
 */
struct figures *collective_figures(const struct collective_result *on,
				   const struct collective_result *off, const char *device);
