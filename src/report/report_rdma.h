/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench rdma` prints: for people, and in perftest's layout. */
#pragma once

#include "report/report.h"
#include "session/rdma_session.h"

/* Of a session that ran. */
void report_rdma(struct document *out, const struct rdma_session *s, bool verbose);
/* Of one that has only looked: ports, addresses and why these, pairs and what is foreseen. */
void report_rdma_list(struct document *out, const struct rdma_session *s);

enum perftest_release { PERFTEST_6_06, PERFTEST_6_29 };

/* A table for each pair and measurement, byte for byte as ib_write_bw and its like end theirs. */
void format_perftest(const struct rdma_session *s, enum perftest_release release,
		     struct strbuf *out);
