/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of one message of any size, filled and checked by the CPU: of latencies, whose messages
 * are few and may be odd.
 */
#pragma once

#include "kernels/args.h"
#include "rdma/measure.h"

void message_fill(uint8_t *at, uint64_t bytes, u64 tag);
/* What came, compared with what should have; `poison` is the tag of what was there before. */
struct wrong message_check(const uint8_t *got, uint64_t bytes, u64 tag, u64 poison);
/* Adds to a cell what message_check found: 0, or -EIO and the failure. */
int message_judge(struct rdma_cell *cell, uint64_t bytes, struct rdma_failure *f);
