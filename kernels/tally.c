// SPDX-License-Identifier: Apache-2.0
/* Atomic operations that several devices do on one word. */
#include "kernels/device.h"

KERNEL(tally)
{
	for (u64 i = grid_id(); i < a.adds; i += grid_count())
		add_system(a.counter, 1);
}
