/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `onehop bench collective` prints: a table as nccl-tests has it, and what it means. And what
 * `onehop tune` prints.
 */
#pragma once

#include "session/collective_session.h"
#include "session/simulate_session.h"
#include "session/tune_session.h"

#include <jansson.h>

struct document;
struct strbuf;

/* How a run is printed: lines of a table as they come, then what they mean. */
struct collective_layout {
	void (*head)(struct strbuf *out, const struct collective_arm *arm);
	void (*row)(struct strbuf *out, const struct collective_arm *arm,
		    const struct collective_row *row, bool verbose);
	void (*foot)(struct strbuf *out,
		     const struct collective_arm *arm); /* NULL: there is none */
	void (*verdict)(struct document *out, const struct collective_session *s, bool verbose);
};

/* A line above a table: that the n devices are not GPUs. */
void report_simulated_devices(struct strbuf *out, int n);

/*
 * libonehop's, alone or in turn with NCCL. verbose: the time of each algorithm, measured or
 * estimated.
 */
extern const struct collective_layout collective_layout;

/* The table of a model (--simulate); verbose: the time of each algorithm in it. */
void report_simulated_table(struct strbuf *out, const struct simulate_session *s,
			    const struct simulated_arm *arm, bool verbose);
/* Its gain by P2P, size by size; or that no pair has P2P. */
void report_simulated_p2p(struct document *out, const struct simulate_session *s);
/* What the model rests on, and what it says of the choice. */
void report_simulated_basis(struct document *out, const struct simulate_session *s);

/* Of a run that ended well: which algorithm is the fastest where. verbose: all times. */
void report_tune(struct document *out, const struct tune_session *s, bool verbose);
json_t *report_tune_json(const struct tune_session *s);
