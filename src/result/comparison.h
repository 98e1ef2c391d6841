/* SPDX-License-Identifier: Apache-2.0 */
/* Two sets of figures side by side: what got better, what got worse, and what is noise. */
#pragma once

#include "result/figures.h"
#include "result/observation.h"

enum trend { TREND_SAME, TREND_BETTER, TREND_WORSE, TREND_N };

/* One measurement that both have. Indexes of GPUs are those of `before`. */
struct compared_cell {
	const struct figure *before, *after;
	enum trend change;
	double gain; /* by which factor it is better; below 1: worse. 0 or infinite: from or to 0 */
	double noise; /* relative difference that counts as noise */
	/*
	 * Counts as the same only because its own values scatter so much: it differs by 10 % and
	 * more than usual.
	 */
	bool hidden;
};

/* All cells of one metric. */
struct compared {
	const struct metric *metric; /* never NULL */
	struct compared_cell *cells; /* in the order of `before` */
	size_t cell_n;
	size_t counts[TREND_N];
	/* median over the cells; of measurements that are yes or no the sum */
	double before, after;
	const struct compared_cell *best, *worst; /* by gain; never NULL */
};

/* A figure that only one side has: `before` or `after` is NULL. */
struct lone_figure {
	const struct metric *metric;
	const struct figure *before, *after;
};

/* Ordered pairs that use P2P, going by the figures. */
struct p2p_use {
	size_t yes, no; /* P2P on is faster than P2P off, or the same within noise */
	size_t open;    /* the figures do not show it */
};

/* One-way copies between GPUs of one side, by the rule of base/rate.h. */
struct slow_pairs {
	size_t rows, slow;
	double least, most; /* GB/s of those that are slow */
};

struct comparison {
	struct arena *arena; /* owns everything below, not the figures */
	const struct figures *before, *after;
	bool by_pci;    /* GPUs were matched by address, else by index */
	int *gpu_after; /* for each GPU of `before` its index in `after`, -1: it is missing */
	size_t gpus_gone, gpus_new;
	struct compared *kinds; /* in the order of metrics[] */
	size_t kind_n;
	size_t counts[TREND_N];         /* over all cells */
	size_t only_before, only_after; /* figures without a counterpart */
	struct lone_figure *alone; /* those of a known metric, by metric, those of `before` first */
	size_t alone_n;
	struct p2p_use use_before, use_after;
	struct slow_pairs slow_before, slow_after;
	size_t failed_before, failed_after; /* checks of data that failed: figure_is_failure */
	const struct compared_cell
		*most_hidden; /* with the largest difference; NULL: none is hidden */
	size_t hidden_n;
	bool same_run; /* every figure is the same to the last digit: one result, twice */
};

/* Keeps both by pointer; in an arena, as figures_new_in says. comparison_free. */
struct comparison *comparison_new_in(struct arena *arena, const struct figures *before,
				     const struct figures *after);
struct comparison *comparison_new(const struct figures *before, const struct figures *after);
void comparison_free(struct comparison *c); /* NULL does nothing */

const char *change_word(enum trend change); /* "better" */

/* ---- P2P on against P2P off, of one pair in one result ---- */

struct figure_index;

/* In the arena; keeps the figures by pointer. */
struct figure_index *figure_index_new(struct arena *a, const struct figures *f);

/* Copies and tiny transfers; TREND_N: one of both was not measured. */
struct p2p_gain {
	enum trend rate, latency;
	const struct figure *off; /* the copy with P2P off; NULL: none */
};

/* `on`: a row of write-ce, read-ce or both-ce between two GPUs; it need not be one of the index. */
struct p2p_gain p2p_gain_of(const struct figure_index *x, const struct figure *on);
enum observed_gain p2p_gain_verdict(struct p2p_gain g);
