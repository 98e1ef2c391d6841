/* SPDX-License-Identifier: Apache-2.0 */
#include "topology/nearest.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "machine/usable.h"

static bool counts(const struct topology *t, size_t nic, bool active)
{
	return !active || !fact_is(nic_active(&t->machine->rdma[t->endpoints[nic].index]), 0);
}

enum path_class topology_nearest_class(const struct topology *t, size_t gpu, bool active)
{
	enum path_class best = PATH_UNKNOWN;

	for (size_t nic = t->gpu_n; nic < t->endpoint_n; nic++) {
		enum path_class class = topology_path(t, gpu, nic)->class;

		if (class < best && counts(t, nic, active))
			best = class;
	}
	return best;
}

bool topology_is_nearest(const struct topology *t, size_t gpu, size_t nic, enum path_class class,
			 bool active)
{
	return class != PATH_UNKNOWN && topology_path(t, gpu, nic)->class == class &&
	       counts(t, nic, active);
}

size_t topology_count_nearest(const struct topology *t, size_t gpu, enum path_class class,
			      bool active)
{
	size_t n = 0;

	for (size_t nic = t->gpu_n; nic < t->endpoint_n; nic++)
		n += topology_is_nearest(t, gpu, nic, class, active);
	return n;
}

void topology_assign_nics(const struct topology *t, size_t *ret)
{
	AUTO_FREE unsigned *users = xcalloc(t->endpoint_n + 1, sizeof(*users));

	for (size_t g = 0; g < t->gpu_n; g++) {
		enum path_class class = topology_nearest_class(t, g, true);

		ret[g] = NO_NIC;
		for (size_t nic = t->gpu_n; nic < t->endpoint_n; nic++)
			if (topology_is_nearest(t, g, nic, class, true) &&
			    (ret[g] == NO_NIC || users[nic] < users[ret[g]]))
				ret[g] = nic;
		if (ret[g] != NO_NIC)
			users[ret[g]]++;
	}
}
