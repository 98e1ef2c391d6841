/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the code that reads and evaluates a NCCL log; for nccl_log*.c only. */
#pragma once

#include "ingest/nccl_log.h"

struct text_line;

/*
 * Fills devices, pairs, settings and notes from the lines; 0 or a negative errno with a sentence.
 */
int nccl_log_read(struct nccl_log *l, struct text_line *lines, size_t n);
/*
 * Where a text occurs in a log: after "NCCL INFO", after "NCCL WARN", or in a line of another
 * program.
 */
enum nccl_line { NCCL_LINE_INFO = 1 << 0, NCCL_LINE_WARN = 1 << 1, NCCL_LINE_OTHER = 1 << 2 };

/* Whether the text shows how a run failed. */
bool nccl_failure_read(struct arena *a, const char *text, enum nccl_line line,
		       struct run_failure *ret);
/* Whether the line below "Last error:" is a sentence of NCCL's. */
bool nccl_line_is_reason(const char *text);
/* The sentence as the reason, which no mark knows. */
void nccl_failure_say(struct arena *a, const char *text, struct run_failure *ret);
bool nccl_failure_is_in(const char *text, enum nccl_line line);
/* Whether a text without NCCL lines shows how a run with NCCL failed. */
bool nccl_failure_recognise(const char *text, size_t size);
