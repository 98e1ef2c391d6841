/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "report/document.h"
#include "session/rdma_perftest.h"

void report_perftest(struct document *out, const struct rdma_perftest *p);
