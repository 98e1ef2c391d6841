/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/document.h"
#include "report/report_rdma.h"
#include "session/rdma_hosts.h"

/* A table for each rail, kind and measurement. */
void format_perftest_hosts(const struct rdma_hosts *h, enum perftest_release release,
			   struct strbuf *out);
void report_rdma_hosts(struct document *out, const struct rdma_hosts *h, bool verbose);
