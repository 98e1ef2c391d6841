/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the three runs of bench rdma share: on one host, between two, and with a host that has only
 * perftest.
 */
#pragma once

#include "cli/command.h"
#include "cli/progress.h"
#include "report/report_rdma.h"

struct bench_rdma_options {
	struct common_options common;
	struct rdma_request request;
	int as;
};

#define FORMAT_PERFTEST     "perftest"
#define FORMAT_PERFTEST_606 "perftest-6.06"
/* Whether it is a layout of perftest, and which. */
bool perftest_layout(const struct common_options *o, enum perftest_release *ret);

/*
 * The exit code of a host that was not met: 1, or 2 where it was not tried: wrong usage, a signal,
 * a listener that is busy.
 */
enum exit_code bench_rdma_unmet(int r);

/*
 * These return the exit code. With the ports listed, at least one; `address`: of the other host, or
 * where to listen; NULL: the default.
 */
int bench_rdma_host(struct rdma_session *s, struct progress *progress,
		    const struct common_options *o);
int bench_rdma_hosts(struct rdma_session *s, struct progress *progress,
		     const struct common_options *o, const char *address);
int bench_rdma_perftest(struct rdma_session *s, struct progress *progress,
			const struct common_options *o, const char *address);
