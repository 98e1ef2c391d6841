/* SPDX-License-Identifier: Apache-2.0 */
/* What reading and judging a NCCL log share; for nccl_log*.c only. */
#pragma once

#include "ingest/nccl_log.h"

/* Fills devices, pairs, settings and notes from the lines; 0 or a negative errno with a sentence. */
int nccl_log_read(struct nccl_log *l, const char *text, size_t size);
/* Where a text stands in a log: behind "NCCL INFO", behind "NCCL WARN", or in a line of another's. */
enum nccl_line { NCCL_LINE_INFO = 1 << 0, NCCL_LINE_WARN = 1 << 1, NCCL_LINE_OTHER = 1 << 2 };

/* Whether the text says how a run failed. */
bool nccl_failure_read(struct arena *a, const char *text, enum nccl_line line,
		       struct run_failure *ret);
/* Whether a text without a line of NCCL's tells how a run of it failed. */
bool nccl_failure_recognise(const char *text, size_t size);
