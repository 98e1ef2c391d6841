/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench rdma` prints: for people, and in perftest's layout. */
#pragma once

#include "report/report.h"
#include "session/rdma_session.h"

/* The kernel log's lines that came while something failed. */
void report_rdma_log(struct document *out, const struct rdma_log *l);
/* The ports of this host that are left out, and why. */
void report_rdma_skips(struct document *out, const struct rdma_session *s);
/* A rate or a latency as a cell, of three digits where two decimals would be fewer. */
void report_rdma_value(struct document *out, enum style style, double value);
/* How many medians have a wide interval; nothing where none has. */
void report_rdma_wide(struct document *out, size_t wide, size_t all);
/*
 * How rates compare with what is expected, `told` or by what the paths say; nothing if that is
 * known of none.
 */
void report_rdma_rates(struct document *out, const char *told, size_t rated, size_t slow);
/* The rate that a person gave this host; NULL: none. */
#define RDMA_TOLD 64
const char *report_rdma_told(const struct rdma_session *s, char buf[static RDMA_TOLD]);
/* Of a session that ran. */
void report_rdma(struct document *out, const struct rdma_session *s, bool verbose);
/* Of one that has only looked: ports, addresses and why these, pairs and what is foreseen. */
void report_rdma_list(struct document *out, const struct rdma_session *s);

enum perftest_release { PERFTEST_6_06, PERFTEST_6_29 };

/*
 * A measurement as one of perftest's programs prints it; nothing is printed of one without a value.
 */
struct perftest_table {
	enum rdma_measure measure;
	const char *device;
	const char *memory; /* NULL: the host's */
	enum region_way way;
	uint64_t bytes; /* of a message */
	const struct rdma_cell *cell;
};
void format_perftest_table(const struct perftest_table *t, enum perftest_release release,
			   struct strbuf *out);
/* A table for each pair and measurement, byte for byte as ib_write_bw and its like end theirs. */
void format_perftest(const struct rdma_session *s, enum perftest_release release,
		     struct strbuf *out);
