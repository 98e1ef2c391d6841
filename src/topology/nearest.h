/* SPDX-License-Identifier: Apache-2.0 */
/* Which NICs are nearest to a GPU, and one for each GPU. */
#pragma once

#include "topology/topology.h"

#include <stdint.h>

#define NO_NIC SIZE_MAX

/*
 * GPUs and NICs are indexes of endpoints. `active`: NICs of which no port is active do not count.
 */

/* Of the nearest NICs; PATH_UNKNOWN: there is none, or no path to one is known. */
enum path_class topology_nearest_class(const struct topology *t, size_t gpu, bool active);
/* The NIC is one of those, where `class` is what topology_nearest_class returned. */
bool topology_is_nearest(const struct topology *t, size_t gpu, size_t nic, enum path_class class,
			 bool active);
/* How many are. */
size_t topology_count_nearest(const struct topology *t, size_t gpu, enum path_class class,
			      bool active);

/*
 * The NIC that each GPU would use: one of its nearest that are active, those that fewest GPUs use
 * first, in the machine's order. ret holds gpu_n indexes; NO_NIC: it has none.
 */
void topology_assign_nics(const struct topology *t, size_t *ret);
