/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the PCIe links of GPUs run while they copy; an idle link may be slower. */
#pragma once

#include "bench/rounds.h"
#include "device/device.h"

struct gpu;

/* MT/s per lane; 0: not seen. */
struct link_seen {
	int speed_mtps, speed_max_mtps;
};

void link_watch_limit(struct link_seen *l, const struct gpu *g);
/*
 * Reads the links of the round's devices, whose copies run now. `links` and `info`: one per device.
 */
void link_watch_look(struct link_seen *links, const struct device_info *info,
		     const struct paths *paths, const struct round *round);
