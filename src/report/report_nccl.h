/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench nccl` prints: nccl-tests' table, and what it means. */
#pragma once

#include "report/report_collective.h"

/*
 * The lines of nccl-tests 2.19; then whether the data was right, how NCCL's ranks reach each other,
 * what did not settle, and what P2P gains.
 */
extern const struct collective_layout nccl_layout;
/* Size by size: with P2P, without, and the ratio. */
void report_nccl_p2p(struct document *out, const struct collective_result *on,
		     const struct collective_arm *off);
