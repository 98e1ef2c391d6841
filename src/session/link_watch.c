/* SPDX-License-Identifier: Apache-2.0 */
#include "session/link_watch.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "machine/machine.h"

#include <stdio.h>
#include <stdlib.h>

/* MT/s, 0: unknown. */
static int read_speed(const char *pci)
{
	AUTO_FREE char *path = xprintf("/sys/bus/pci/devices/%s/current_link_speed", pci);
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	char line[64];

	if (!f || !fgets(line, sizeof(line), f))
		return 0;
	return (int)(strtod(line, NULL) * 1000 + 0.5);
}

/* NVLink traffic does not wake PCIe. */
static bool is_nvlink(const struct paths *p, struct pair pair)
{
	return pair.initiator != pair.target &&
	       text_starts_with(paths_pair(p, pair.initiator, pair.target)->class, "NV");
}

void link_watch_limit(struct link_seen *l, const struct gpu *g)
{
	l->speed_max_mtps = (int)fact_or(g->pci->link_speed_max, 0);
}

void link_watch_look(struct link_seen *links, const struct device_info *info,
		     const struct paths *paths, const struct round *round)
{
	for (size_t i = 0; i < round->pair_n; i++) {
		const unsigned ends[] = {round->pairs[i].initiator, round->pairs[i].target};

		for (size_t e = 0; e < 2 && !is_nvlink(paths, round->pairs[i]); e++) {
			struct link_seen *l = &links[ends[e]];
			int speed = read_speed(info[ends[e]].pci);

			l->speed_mtps = speed > l->speed_mtps ? speed : l->speed_mtps;
		}
	}
}
