/* SPDX-License-Identifier: Apache-2.0 */
/* What reading and judging a NCCL log share; for nccl_log*.c only. */
#pragma once

#include "ingest/nccl_log.h"

/* Fills devices, pairs, settings and notes from the lines; 0 or a negative errno with a sentence. */
int nccl_log_read(struct nccl_log *l, const char *text, size_t size);
/* Fills the reason of every pair. */
void nccl_log_judge(struct nccl_log *l);
