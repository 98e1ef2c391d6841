/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth and latency between devices, and between a device and the host: the metrics
 * that are measured for pairs in rounds. */
#pragma once

#include "bench/rounds.h"
#include "bench/statistics.h"
#include "device/device.h"
#include "result/metric.h"

/*
 * The metrics with a heading, in the order in which they are measured: by shape, what is staged
 * last. `ret` has room for metric_n of them; how many there are.
 */
size_t p2p_metrics(const struct metric **ret);
/* NULL: no metric of that name, or none that is measured here. */
const struct metric *p2p_metric_find(const char *name);

enum p2p_data { P2P_NOT_CHECKED, P2P_RIGHT, P2P_WRONG };

/* One figure. */
struct p2p_cell {
	const struct metric *metric;
	int initiator, target; /* index in the set; -1: the host */
	uint64_t bytes;        /* of one copy, 0: none */
	struct summary value;  /* in metric->unit; n 0: not measured, `why` says why */
	enum stop stop;        /* why sampling ended */
	enum p2p_data data;
	/* of 8 bytes; of the host's memory a sample is checked */
	uint64_t wrong_words, checked_words;
	double share; /* metric->both_ways: of the value, what the initiator moved, on average */
	unsigned gate_timeouts; /* samples thrown away because the host was slower than the gate */
	/* SHAPE_TINY: median time to enqueue a copy, in the process that does; else 0 */
	double enqueue_us;
	char why[192];
};

struct p2p_plan {
	const struct metric *metric;
	uint64_t bytes;       /* as in the cells */
	size_t rounds, least; /* as in struct rounds */
	double seconds;
};

struct p2p_result {
	struct p2p_cell *cells;
	size_t cell_n;
	struct p2p_plan *plans; /* one per metric and size */
	size_t plan_n;
	bool stopped; /* by the hook: the cells are what was done until then */
};

struct p2p_hooks {
	void *context;
	/* Before each round; `left` counts the rounds still to come. */
	void (*progress)(void *context, const struct metric *m, uint64_t bytes, size_t round,
			 size_t rounds, size_t left);
	/* Before each round and between samples; true ends the run. */
	bool (*stopped)(void *context);
	/* Once a round, while its copies run. Each of these may be NULL. */
	void (*under_load)(void *context, const struct round *round);
};

#define P2P_SIZE_MIN 32

struct p2p_options {
	const struct metric *const *metrics;
	size_t metric_n;
	const uint64_t *sizes; /* bytes of a copy: P2P_SIZE_MIN or more, multiples of 16 */
	size_t size_n;
	/* NULL: all ordered pairs; SHAPE_TRAFFIC always has all devices */
	const struct pair *pairs;
	size_t pair_n;
	const struct paths *paths;
	struct stopping stopping; /* budget_s: of one round */
	double sample_us;         /* how long one sample of a copy engine should take */
	double kernel_us;         /* of a kernel, which takes longer to start */
	uint64_t staged_bytes;    /* of a copy through the host, at most; 0: as of others */
	uint64_t limit_us;        /* after which a sample counts as hung */
	bool verify;
	bool diagonal;                 /* SHAPE_PAIR and SHAPE_TINY within each device too */
	const struct p2p_hooks *hooks; /* may be NULL */
};

/* What a person would want who says nothing. */
void p2p_options_default(struct p2p_options *o);

/*
 * A figure that is not available has the reason in its cell, and the rest goes on; what ends the
 * run is a set that is of no more use. 0 or a negative errno; *ret holds what was measured either
 * way.
 */
int p2p_run(struct device_set *s, const struct p2p_options *o, struct p2p_result *ret);
void p2p_result_done(struct p2p_result *r);
