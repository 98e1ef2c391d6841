/* SPDX-License-Identifier: Apache-2.0 */
/* Making, checking and freeing a struct paths. */
#include "bench/paths.h"

#include "base/err.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int link_list_add(struct link_list *l, unsigned id)
{
	unsigned *ids;

	for (size_t i = 0; i < l->n; i++)
		if (l->ids[i] == id)
			return 0;
	ids = realloc(l->ids, (l->n + 1) * sizeof(*ids));
	if (!ids)
		return err_set(ENOMEM, "no memory for a path of %zu links", l->n + 1);
	l->ids = ids;
	l->ids[l->n++] = id;
	return 0;
}

int paths_new(unsigned device_n, struct paths **ret)
{
	struct paths *p;

	if (device_n > PATHS_DEVICES_MAX)
		return err_set(EINVAL, "too many devices to measure together: %u, at most %d",
			       device_n, PATHS_DEVICES_MAX);
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(ENOMEM, "no memory for the paths of %u devices", device_n);
	p->device_n = device_n;
	p->pairs = calloc((size_t)device_n * device_n + 1, sizeof(*p->pairs));
	p->hosts = calloc((size_t)device_n + 1, sizeof(*p->hosts));
	if (!p->pairs || !p->hosts) {
		paths_free(p);
		return err_set(ENOMEM, "no memory for the paths of %u devices", device_n);
	}
	for (size_t i = 0; i < (size_t)device_n * device_n; i++)
		p->pairs[i].class[0] = '?';
	*ret = p;
	return 0;
}

void paths_free(struct paths *p)
{
	if (!p)
		return;
	for (size_t i = 0; p->pairs && i < (size_t)p->device_n * p->device_n; i++)
		free(p->pairs[i].links.ids);
	for (size_t i = 0; p->hosts && i < p->device_n; i++) {
		free(p->hosts[i].to_host.ids);
		free(p->hosts[i].from_host.ids);
	}
	free(p->pairs);
	free(p->hosts);
	free(p);
}

struct pair_path *paths_pair(const struct paths *p, unsigned initiator, unsigned target)
{
	return &p->pairs[(size_t)initiator * p->device_n + target];
}

static int check_links(const struct link_list *l, const char *what, unsigned i, unsigned j)
{
	for (size_t k = 0; k < l->n; k++) {
		if (l->ids[k] >= PATHS_LINKS_MAX)
			return err_set(EINVAL, "%s %u, %u: link %u is not below %d", what, i, j,
				       l->ids[k], PATHS_LINKS_MAX);
		for (size_t q = 0; q < k; q++)
			if (l->ids[q] == l->ids[k])
				return err_set(EINVAL, "%s %u, %u: link %u is listed twice", what,
					       i, j, l->ids[k]);
	}
	return 0;
}

static int check_rate(double gbps, const char *what, unsigned i, unsigned j)
{
	if (isfinite(gbps) && gbps >= 0)
		return 0;
	return err_set(EINVAL, "%s %u, %u: invalid expected rate, %g GB/s", what, i, j, gbps);
}

static int check_pair(const struct paths *p, unsigned i, unsigned j)
{
	const struct pair_path *pp = paths_pair(p, i, j);
	int r = check_links(&pp->links, "pair", i, j);

	if (r == 0 && i == j && pp->links.n)
		return err_set(EINVAL, "pair %u, %u: a device has no path to itself", i, j);
	return r < 0 ? r : check_rate(pp->expected_gbps, "pair", i, j);
}

static int check_host(const struct host_path *h, unsigned i)
{
	int r = check_links(&h->to_host, "host path", i, i);

	if (r == 0)
		r = check_links(&h->from_host, "host path", i, i);
	return r < 0 ? r : check_rate(h->expected_gbps, "host path", i, i);
}

int paths_check(const struct paths *p)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < p->device_n; i++) {
		r = check_host(&p->hosts[i], i);
		for (unsigned j = 0; r == 0 && j < p->device_n; j++)
			r = check_pair(p, i, j);
	}
	return r;
}
