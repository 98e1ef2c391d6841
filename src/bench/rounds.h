/* SPDX-License-Identifier: Apache-2.0 */
/* Which pairs of devices are measured at the same time, and in which order. Pure. */
#pragma once

#include "bench/paths.h"
#include "result/metric.h"

struct pair {
	unsigned initiator, target;
};

/* Pairs that run at the same time. */
struct round {
	const struct pair *pairs;
	size_t pair_n;
};

struct rounds {
	struct round *rounds;
	size_t round_n;
	size_t least;       /* no plan has fewer rounds than this */
	struct pair *pairs; /* of all rounds, one after the other */
	size_t pair_n;
};

/*
 * Rounds for figures that nothing disturbs: each pair is in one round, and in a round no two pairs
 * share a link or a device. The same input gives the same rounds. The rounds are as few as a fast
 * search finds; `least` is the greatest number of pairs that need one link or device, or what the
 * number of devices allows. 0, -EINVAL (a device that does not exist, a pair with itself or twice,
 * paths that paths_check refuses) or -ENOMEM.
 */
int rounds_plan(const struct paths *p, const struct pair *pairs, size_t pair_n, struct rounds *ret);
/* All ordered pairs of so many devices; the caller frees. 0 or -ENOMEM. */
int pairs_all(unsigned device_n, struct pair **ret, size_t *ret_n);

/*
 * Traffic that is meant to meet, whatever links it shares.
 * 0, -EINVAL (more than PATHS_DEVICES_MAX devices) or -ENOMEM. Below two devices: no round.
 */
int rounds_of_traffic(enum traffic t, unsigned device_n, struct rounds *ret);

void rounds_done(struct rounds *r);
