/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two groups of GPUs, as measured rates show them: copies between the groups are slower than within
 * each.
 */
#pragma once

#include "machine/machine.h"

struct rate_groups {
	bool *second; /* of each GPU: it is in the second group */
	/* GB/s: of copies between the groups, and the least within them */
	double least, most, within;
	bool both_ways;               /* rates are of both directions at once */
	const struct observed *first; /* a copy between them */
};

/* False: there are no such groups, or not all rates that would show them were measured. */
bool rate_groups_find(const struct machine *m, struct arena *a, struct rate_groups *ret);
