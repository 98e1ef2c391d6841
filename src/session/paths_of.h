/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/ and rdma/ need to know of a machine's GPUs and NICs, from the machine's topology. */
#pragma once

#include "bench/paths.h"
#include "topology/topology.h"

#include <stdint.h>

#define PATHS_NOWHERE                                                                              \
	SIZE_MAX /* a device that the topology does not know: nothing is known of its pairs */

/*
 * Device k of the paths is endpoint endpoints[k] of the topology, which for a GPU is its index in
 * machine.gpus. Links are numbered from 0 in the order in which they are met. What the tree does
 * not show is one link that all pairs concerned share, so that an isolated figure is not disturbed
 * by links that could not be read. 0, -EINVAL (no such endpoint, or too many) or -ENOMEM; the
 * caller frees with paths_free.
 */
int paths_of(const struct topology *t, const size_t *endpoints, size_t n, struct paths **ret);
