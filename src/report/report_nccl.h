/* SPDX-License-Identifier: Apache-2.0 */
/* What `onehop bench nccl` prints: nccl-tests' table, and what it means. */
#pragma once

#include "session/collective_session.h"

struct document;
struct machine;
struct strbuf;

/* The lines of nccl-tests 2.19; head needs start and all ranks. */
void report_nccl_head(struct strbuf *out, const struct collective_arm *arm);
void report_nccl_row(struct strbuf *out, const struct collective_plan *plan,
		     const struct collective_row *row);
void report_nccl_foot(struct strbuf *out, const struct collective_result *r);

/* Whether the data was right, how NCCL's ranks reach each other, what did not settle. */
void report_nccl_verdict(struct document *out, const struct collective_arm *arm, bool verbose);
/* Size by size: with P2P, without, and the ratio. */
void report_nccl_p2p(struct document *out, const struct collective_result *on,
		     const struct collective_arm *off);
