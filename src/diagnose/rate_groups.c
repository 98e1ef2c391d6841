/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/rate_groups.h"

#include "base/alloc.h"
#include "base/order.h"

#include <string.h>

/*
 * A link that is shared or crosses sockets costs some 15 % or more. Where copies within a group are
 * twice as fast, NVLink may join them.
 */
static const double least_step = 1.15, most_step = 2.0;

struct rates {
	const struct machine *m;
	enum observed_kind kind;
	const struct observed **of; /* gpu_n squared, row initiator; NULL: not measured */
	double *sorted;
	size_t n;
};

static bool collect(const struct machine *m, struct arena *a, enum observed_kind kind,
		    struct rates *ret)
{
	const size_t n = m->gpu_n;

	*ret = (struct rates){.m = m, .kind = kind};
	ret->of = arena_alloc(a, n * n, sizeof(*ret->of));
	ret->sorted = arena_alloc(a, m->observed_n + 1, sizeof(*ret->sorted));
	for (size_t i = 0; i < m->observed_n; i++) {
		const struct observed *o = &m->observed[i];

		if (o->kind != kind || o->initiator < 0 || o->target < 0 || o->value <= 0)
			continue;
		ret->of[(size_t)o->initiator * n + (size_t)o->target] = o;
		ret->sorted[ret->n++] = o->value;
	}
	sort_doubles(ret->sorted, ret->n);
	return ret->n;
}

/* The rate of a pair in either direction; 0: neither was measured. */
static double rate(const struct rates *r, size_t i, size_t j)
{
	const struct observed *to = r->of[i * r->m->gpu_n + j], *back = r->of[j * r->m->gpu_n + i];

	return to ? to->value : back ? back->value : 0;
}

static void add(struct rate_groups *g, const struct observed *o, bool between)
{
	if (!o)
		return;
	if (!between) {
		g->within = g->within > 0 && g->within < o->value ? g->within : o->value;
		return;
	}
	g->first = g->first ? g->first : o;
	g->least = g->least > 0 && g->least < o->value ? g->least : o->value;
	g->most = o->value > g->most ? o->value : g->most;
}

/* The first group: GPU0 and all that it reaches at `fast` or more. */
static bool split(const struct rates *r, double fast, struct rate_groups *ret)
{
	const size_t n = r->m->gpu_n;
	size_t second = 0;

	for (size_t j = 0; j < n; j++) {
		if (j && !(rate(r, 0, j) > 0))
			return false;
		ret->second[j] = j && rate(r, 0, j) < fast;
		second += ret->second[j];
	}
	return second >= 2 && n - second >= 2;
}

/* All that was measured fits the groups. */
static bool fits(const struct rates *r, double fast, struct rate_groups *ret)
{
	const size_t n = r->m->gpu_n;

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			const struct observed *o = r->of[i * n + j];
			bool between = ret->second[i] != ret->second[j];

			if (o && (o->value < fast) != between)
				return false;
			add(ret, o, between);
		}
	return ret->first && ret->within > 0;
}

bool rate_groups_find(const struct machine *m, struct arena *a, struct rate_groups *ret)
{
	struct rates r;

	if (m->gpu_n < 4 ||
	    (!collect(m, a, OBSERVED_BANDWIDTH, &r) && !collect(m, a, OBSERVED_BOTH_WAYS, &r)))
		return false;
	for (size_t i = 1; i < r.n; i++) {
		double step = r.sorted[i] / r.sorted[i - 1];
		struct rate_groups g = {.both_ways = r.kind == OBSERVED_BOTH_WAYS};

		if (step < least_step || step > most_step)
			continue;
		g.second = arena_alloc(a, m->gpu_n, sizeof(*g.second));
		if (!split(&r, r.sorted[i], &g) || !fits(&r, r.sorted[i], &g))
			continue;
		*ret = g;
		return true;
	}
	return false;
}
