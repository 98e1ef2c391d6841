// SPDX-License-Identifier: Apache-2.0
#include "bench/link_model.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- links ---- */

static void count_links(const struct link_list *l, size_t *n)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->ids[i] >= *n)
			*n = l->ids[i] + 1u;
}

static void raise_rates(const struct link_list *l, double expected, double *gbps)
{
	for (size_t i = 0; i < l->n; i++)
		if (expected > gbps[l->ids[i]])
			gbps[l->ids[i]] = expected;
}

int link_model_make(const struct paths *p, struct link_model *ret)
{
	const size_t pairs = (size_t)p->device_n * p->device_n;

	*ret = (struct link_model){.paths = p};
	for (size_t i = 0; i < pairs; i++)
		count_links(&p->pairs[i].links, &ret->link_n);
	for (unsigned i = 0; i < p->device_n; i++) {
		count_links(&p->hosts[i].to_host, &ret->link_n);
		count_links(&p->hosts[i].from_host, &ret->link_n);
	}
	ret->gbps = calloc(ret->link_n + 1, sizeof(*ret->gbps));
	if (!ret->gbps)
		return err_set(ENOMEM, "no memory for a model of %zu links", ret->link_n);
	for (size_t i = 0; i < pairs; i++)
		raise_rates(&p->pairs[i].links, p->pairs[i].expected_gbps, ret->gbps);
	for (unsigned i = 0; i < p->device_n; i++) {
		raise_rates(&p->hosts[i].to_host, p->hosts[i].expected_gbps, ret->gbps);
		raise_rates(&p->hosts[i].from_host, p->hosts[i].expected_gbps, ret->gbps);
	}
	return 0;
}

void link_model_done(struct link_model *m)
{
	free(m->gbps);
	*m = (struct link_model){0};
}

/* ---- transfers ---- */

int traffic_make(const struct link_model *m, struct traffic *ret)
{
	*ret = (struct traffic){.model = m, .us = calloc(m->link_n + 1, sizeof(*ret->us))};
	return ret->us ? 0 : err_set(ENOMEM, "no memory for a model of %zu links", m->link_n);
}

void traffic_done(struct traffic *t)
{
	free(t->us);
	*t = (struct traffic){0};
}

static double time_us(double bytes, double gbps)
{
	return bytes > 0 ? bytes / gbps / 1e3 : 0;
}

static void add(struct traffic *t, const struct link_list *l, double expected, double bytes)
{
	const double alone = time_us(bytes, expected);

	if (alone > t->longest)
		t->longest = alone;
	for (size_t i = 0; i < l->n; i++)
		t->us[l->ids[i]] += time_us(bytes, t->model->gbps[l->ids[i]]);
}

void traffic_to_peer(struct traffic *t, unsigned from, unsigned to, double bytes, double share)
{
	const struct pair_path *p = paths_pair(t->model->paths, from, to);

	add(t, &p->links, p->expected_gbps, bytes / share);
}

void traffic_to_host(struct traffic *t, unsigned device, bool up, double bytes, double share)
{
	const struct host_path *p = &t->model->paths->hosts[device];

	add(t, up ? &p->to_host : &p->from_host, p->expected_gbps, bytes / share);
}

double traffic_end(struct traffic *t)
{
	double us = t->longest;

	for (size_t i = 0; i < t->model->link_n; i++)
		if (t->us[i] > us)
			us = t->us[i];
	memset(t->us, 0, t->model->link_n * sizeof(*t->us));
	t->longest = 0;
	return us;
}
