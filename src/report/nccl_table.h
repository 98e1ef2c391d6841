/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables and reports of bench nccl and bench collective share (report_nccl.c). */
#pragma once

#include "session/collective_session.h"

struct document;
struct strbuf;

/*
 * nccl-tests' columns: size, count, type, redop, root; then time, algbw, busbw and wrong elements
 * of a cell.
 */
void nccl_table_row(struct strbuf *out, const struct collective_plan *p,
		    const struct collective_row *row);
void nccl_table_cell(struct strbuf *out, const struct collective_cell *c);
/* Without how many are wrong. */
void nccl_table_times(struct strbuf *out, const struct collective_cell *c);
/* "ring 12.3 us, direct 4.5 us": the time of each algorithm; NaN: it has none. */
void nccl_table_algorithms(struct strbuf *out, const double *us);

/* The most decimals, at most two, that fit the width. */
void nccl_table_number(double value, int width, char *buf, size_t size);

/* "What P2P gains": the heading and the columns of its table; then a row for each size. */
void nccl_p2p_head(struct document *out);
void nccl_p2p_row(struct document *out, uint64_t bytes, const struct collective_cell *on,
		  const struct collective_cell *off);

/* Whether what was checked was right, of all engines, and where it was not. */
void nccl_report_data(struct document *out, const struct collective_result *r, const char *key);
/* Its key: "data", or where a run without P2P follows, one that says of which of the two it is. */
#define NCCL_DATA_ON  "data, P2P"
#define NCCL_DATA_OFF "data, no P2P"
const char *nccl_data_key(const struct collective_session *s);
/* "spread": how many times are known well; verbose: the interval of each. */
void nccl_report_spread(struct document *out, const struct collective_result *r, bool verbose);
/* "sizes": if there was no memory for all of them. */
void nccl_report_sizes(struct document *out, const struct collective_result *r);
