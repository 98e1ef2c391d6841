/* SPDX-License-Identifier: Apache-2.0 */
/* Which bars of NVLinks a drawing has, and where. */
#include "topology/draw_impl.h"

#include "base/arena.h"

static size_t group_of(struct nvlinks *nv, size_t i)
{
	while (nv->group[i] != i)
		i = nv->group[i] = nv->group[nv->group[i]];
	return i;
}

static void join_groups(const struct topology *t, struct nvlinks *nv)
{
	for (size_t i = 0; i < t->gpu_n; i++)
		nv->group[i] = i;
	for (size_t i = 0; i < t->gpu_n; i++) {
		for (size_t j = 0; j < t->gpu_n; j++) {
			int n = (int)fact_or(topology_path(t, i, j)->nvlinks, 0);
			size_t a = group_of(nv, i), b = group_of(nv, j);

			if (!n)
				continue;
			nv->group[a > b ? a : b] = a < b ? a : b;
			if (n > nv->links[i])
				nv->links[i] = n;
		}
	}
}

static struct bar *bar_in(const struct nvlinks *nv, size_t group, unsigned stack)
{
	return &nv->bars[group * nv->stack_n + stack];
}

struct bar *nvlink_bar(const struct drawing *d, struct nvlinks *nv, size_t gpu)
{
	return bar_in(nv, group_of(nv, gpu), d->endpoints[gpu]->stack);
}

static void stretch_bars(const struct drawing *d, struct nvlinks *nv)
{
	for (size_t i = 0; i < d->t->gpu_n; i++) {
		struct bar *bar = nvlink_bar(d, nv, i);
		int y = box_middle(d->endpoints[i]);

		if (!nv->links[i])
			continue;
		if (bar->bottom == 0)
			*bar = (struct bar){.group = group_of(nv, i),
					    .stack = d->endpoints[i]->stack,
					    .top = y - 16,
					    .bottom = y + 16};
		if (y - 16 < bar->top)
			bar->top = y - 16;
		if (y + 16 > bar->bottom)
			bar->bottom = y + 16;
	}
}

bool nvlink_group_is_whole(const struct drawing *d, struct nvlinks *nv, size_t group)
{
	for (size_t i = 0; i < d->t->gpu_n; i++)
		for (size_t j = 0; j < i && group_of(nv, i) == group; j++)
			if (group_of(nv, j) == group && !path_is_nvlink(topology_path(d->t, i, j)))
				return false;
	return true;
}

static bool lane_is_free(const struct nvlinks *nv, size_t bar, unsigned lane)
{
	for (size_t i = 0; i < bar; i++)
		if (nv->bars[i].bottom && nv->bars[i].stack == nv->bars[bar].stack &&
		    nv->bars[i].lane == lane && nv->bars[i].top <= nv->bars[bar].bottom &&
		    nv->bars[bar].top <= nv->bars[i].bottom)
			return false;
	return true;
}

static void choose_lanes(struct nvlinks *nv)
{
	for (size_t i = 0; i < nv->bar_n; i++) {
		unsigned lane = 0, *lane_n = &nv->lane_n[nv->bars[i].stack];

		if (!nv->bars[i].bottom)
			continue;
		while (!lane_is_free(nv, i, lane))
			lane++;
		nv->bars[i].lane = lane;
		if (lane + 1 > *lane_n)
			*lane_n = lane + 1;
	}
}

void nvlinks_make(const struct drawing *d, struct nvlinks *nv)
{
	size_t n = d->t->gpu_n;

	*nv = (struct nvlinks){.stack_n = d->stack_n, .bar_n = n * d->stack_n};
	nv->group = arena_alloc(d->arena, n + 1, sizeof(*nv->group));
	nv->links = arena_alloc(d->arena, n + 1, sizeof(*nv->links));
	nv->bars = arena_alloc(d->arena, nv->bar_n + 1, sizeof(*nv->bars));
	nv->lane_n = arena_alloc(d->arena, d->stack_n, sizeof(*nv->lane_n));
	join_groups(d->t, nv);
	stretch_bars(d, nv);
	choose_lanes(nv);
}
