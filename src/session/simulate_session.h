/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench collective --simulate: collectives on a machine that is only described, with P2P and
 * without.
 */
#pragma once

#include "bench/simulate.h"
#include "session/collective_session.h"

/* With P2P where pairs have it, or without. */
struct simulated_arm {
	struct simulation simulation;
	struct simulated_row *rows;
	size_t row_n;
};

/* Ordered pairs: how many, and the first one. */
struct simulated_pairs {
	unsigned n;
	size_t from, to; /* of the first: indexes in machine.gpus */
	enum pair_verdict verdict;
};

struct simulate_session {
	const struct machine *machine;
	struct topology *topology;
	struct paths *paths;
	size_t gpus[SIMULATED_RANKS_MAX]; /* of rank k: index in machine.gpus */
	enum nearness near[SIMULATED_RANKS_MAX * SIMULATED_RANKS_MAX]; /* of ranks */
	unsigned measured; /* ordered pairs whose rate was measured */
	/* Those without P2P, and those whose P2P is doubtful or unknown. */
	struct simulated_pairs blocked, unsure;
	uint32_t reach[SIMULATED_RANKS_MAX]; /* of ranks: without those whose P2P is blocked */
	struct simulated_arm arms[2]; /* the second only with p2p_off, and if the first has P2P */
	struct figures *figures;
};

/*
 * The machine must outlive it. 0 or a negative errno with a sentence; simulate_session_done
 * whatever the answer.
 */
int simulate_session_run(struct simulate_session *s, const struct machine *m,
			 const struct collective_choice *o);
void simulate_session_done(struct simulate_session *s);

/* Whether the links' rates were measured: "as expected of the links". */
#define SIMULATED_RATES_SIZE 96
const char *simulate_session_rates(const struct simulate_session *s,
				   char buf[static SIMULATED_RATES_SIZE]);
