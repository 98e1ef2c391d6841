/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/document.h"
#include "session/rdma_hosts.h"

void report_rdma_hosts(struct document *out, const struct rdma_hosts *h, bool verbose);
