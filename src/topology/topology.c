/* SPDX-License-Identifier: Apache-2.0 */
/* The topology of a machine: its endpoints and a path for every ordered pair of them. */
#include "topology/topology_impl.h"

#include "base/alloc.h"

const struct gpu *endpoint_gpu(const struct machine *m, const struct endpoint *e)
{
	return e->kind == ENDPOINT_GPU ? &m->gpus[e->index] : NULL;
}

static void add_endpoint(struct topology *t, enum endpoint_kind kind, size_t index,
			 const struct pci_function *pci)
{
	const char *prefix = kind == ENDPOINT_GPU ? "GPU" : "NIC";

	t->endpoints[t->endpoint_n++] =
		(struct endpoint){kind, index, pci, arena_printf(t->arena, "%s%zu", prefix, index)};
}

static void add_endpoints(struct topology *t)
{
	const struct machine *m = t->machine;

	t->endpoints = arena_alloc(t->arena, m->gpu_n + m->rdma_n + 1, sizeof(*t->endpoints));
	for (size_t i = 0; i < m->gpu_n; i++)
		add_endpoint(t, ENDPOINT_GPU, i, m->gpus[i].pci);
	t->gpu_n = t->endpoint_n;
	for (size_t i = 0; i < m->rdma_n; i++)
		if (m->rdma[i].pci)
			add_endpoint(t, ENDPOINT_NIC, i, m->rdma[i].pci);
}

static void fill_self(struct path *p)
{
	p->class = p->pci_class = p->tree_class = PATH_SELF;
	p->verdict = PAIR_DIRECT;
	p->first_bad = CHAIN_STEP_N;
}

static void fill_path(const struct path_facts *s, const struct endpoint *a,
		      const struct endpoint *b, bool judged, struct path *p)
{
	if (a == b) {
		fill_self(p);
		return;
	}
	path_classify(s, a, b, p);
	if (!judged)
		return;
	path_rate(s, a, b, p);
	path_chain(s, a, b, p);
}

static struct topology *make(const struct machine *m, bool judged)
{
	struct arena *arena = arena_new();
	struct topology *t = arena_alloc(arena, 1, sizeof(*t));
	struct path_facts s;
	size_t n;

	t->machine = m;
	t->arena = arena;
	add_endpoints(t);
	n = t->endpoint_n;
	t->paths = arena_alloc(arena, n * n + 1, sizeof(*t->paths));
	path_facts_collect(arena, m, &s);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			fill_path(&s, &t->endpoints[i], &t->endpoints[j], judged,
				  &t->paths[i * n + j]);
	return t;
}

struct topology *topology_new(const struct machine *m)
{
	return make(m, true);
}

struct topology *topology_classes(const struct machine *m)
{
	return make(m, false);
}

void topology_free(struct topology *t)
{
	if (t)
		arena_free(t->arena);
}

const struct path *topology_path(const struct topology *t, size_t initiator, size_t target)
{
	return &t->paths[initiator * t->endpoint_n + target];
}

const struct path *topology_data_path(const struct topology *t, const struct observed *o)
{
	size_t i = (size_t)o->initiator, j = (size_t)o->target;

	return o->pulled ? topology_path(t, j, i) : topology_path(t, i, j);
}

void topology_count(const struct topology *t, struct pair_counts *ret)
{
	struct pair_counts c = {0};

	for (size_t i = 0; i < t->gpu_n; i++) {
		for (size_t j = 0; j < t->gpu_n; j++) {
			const struct path *p = topology_path(t, i, j);

			if (i == j)
				continue;
			c.pairs++;
			c.by_verdict[p->verdict]++;
			for (int k = 0; k < CHAIN_STEP_N; k++)
				c.bad_at[k] += p->chain[k].state == CHAIN_BAD;
		}
	}
	*ret = c;
}
