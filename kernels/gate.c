// SPDX-License-Identifier: Apache-2.0
/* A gate that holds a stream back until the host opens it. */
#include "kernels/device.h"

KERNEL(gate)
{
	struct patience p = patience_of(a.limit_ns, 0);
	u32 end = WAIT_RUNNING;

	if (grid_id())
		return;
	for (u32 polls = 0; end == WAIT_RUNNING; relax(polls++))
		end = load_acquire(a.open) ? WAIT_DONE : patience_look(&p);
	store_release(a.report, end);
}
