/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of pairs: colours of a graph in which pairs that share a link or a device are joined. */
#include "bench/rounds.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "bench/colouring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(size_t pairs)
{
	return err_set(ENOMEM, "no memory for the rounds of %zu pairs", pairs);
}

/* ---- a finished plan from the round of each pair ---- */

void rounds_done(struct rounds *r)
{
	free(r->rounds);
	free(r->pairs);
	*r = (struct rounds){0};
}

/* Rounds in ascending order, in each the pairs in the caller's order. */
static int rounds_of(const struct pair *pairs, const unsigned *round, size_t n, size_t round_n,
		     struct rounds *ret)
{
	struct rounds r = {.round_n = round_n, .least = round_n, .pair_n = n};
	AUTO_FREE size_t *at = calloc(round_n + 1, sizeof(*at)); /* where the next pair goes */

	r.rounds = calloc(round_n + 1, sizeof(*r.rounds));
	r.pairs = calloc(n + 1, sizeof(*r.pairs));
	if (!at || !r.rounds || !r.pairs) {
		rounds_done(&r);
		return no_memory(n);
	}
	for (size_t i = 0; i < n; i++)
		r.rounds[round[i]].pair_n++;
	for (size_t k = 0; k < round_n; k++) {
		r.rounds[k].pairs = r.pairs + at[k];
		at[k + 1] = at[k] + r.rounds[k].pair_n;
	}
	for (size_t i = 0; i < n; i++)
		r.pairs[at[round[i]]++] = pairs[i];
	*ret = r;
	return 0;
}

/* ---- all ordered pairs ---- */

int pairs_all(unsigned device_n, struct pair **ret, size_t *ret_n)
{
	struct pair *pairs = calloc((size_t)device_n * device_n + 1, sizeof(*pairs));
	size_t n = 0;

	if (!pairs)
		return err_set(ENOMEM, "no memory for the pairs of %u devices", device_n);
	for (unsigned i = 0; i < device_n; i++)
		for (unsigned j = 0; j < device_n; j++)
			if (i != j)
				pairs[n++] = (struct pair){i, j};
	*ret = pairs;
	*ret_n = n;
	return 0;
}

/* ---- traffic ---- */

/* Days of a tournament by the circle method: an odd one out plays against nobody. */
static unsigned tournament_days(unsigned n)
{
	return n + n % 2 - 1;
}

/*
 * The last of an even number stays in place while the others turn. Each day is played twice, once
 * in each direction, so there are twice as many rounds as days.
 */
static unsigned tournament_round(unsigned n, unsigned i, unsigned j)
{
	unsigned days = tournament_days(n), low = i < j ? i : j, high = i < j ? j : i;
	unsigned day = high == days ? 2 * low % days : (low + high) % days;

	return 2 * day + (i > j);
}

static unsigned by_match(unsigned n, struct pair p)
{
	return tournament_round(n, p.initiator, p.target);
}

static unsigned at_once(unsigned n, struct pair p)
{
	(void)n, (void)p;
	return 0;
}

static unsigned by_target(unsigned n, struct pair p)
{
	(void)n;
	return p.target;
}

static unsigned by_initiator(unsigned n, struct pair p)
{
	(void)n;
	return p.initiator;
}

static unsigned (*const traffics[TRAFFIC_N])(unsigned device_n, struct pair p) = {
	[TRAFFIC_PAIRS] = by_match,
	[TRAFFIC_ALL_TO_ALL] = at_once,
	[TRAFFIC_N_TO_1] = by_target,
	[TRAFFIC_1_TO_N] = by_initiator,
};

int rounds_of_traffic(enum traffic t, unsigned device_n, struct rounds *ret)
{
	AUTO_FREE struct pair *pairs = NULL;
	AUTO_FREE unsigned *round = NULL;
	size_t n = 0, round_n = 0;
	int r;

	if (device_n > PATHS_DEVICES_MAX)
		return err_set(EINVAL, "too many devices to measure together: %u, at most %d",
			       device_n, PATHS_DEVICES_MAX);
	r = pairs_all(device_n, &pairs, &n);
	if (r < 0)
		return r;
	round = calloc(n + 1, sizeof(*round));
	if (!round)
		return no_memory(n);
	for (size_t i = 0; i < n; i++) {
		round[i] = traffics[t](device_n, pairs[i]);
		round_n = round[i] >= round_n ? round[i] + 1 : round_n;
	}
	return rounds_of(pairs, round, n, round_n, ret);
}

/* ---- what each pair needs ---- */

static void needs_done(struct needs *n)
{
	free(n->ids);
	free(n->start);
}

#define AUTO_NEEDS CLEANUP(needs_done)

static int check_selection(const struct paths *p, const struct pair *pairs, size_t n)
{
	AUTO_FREE bool *seen = calloc((size_t)p->device_n * p->device_n + 1, sizeof(*seen));

	if (!seen)
		return no_memory(n);
	for (size_t i = 0; i < n; i++) {
		unsigned a = pairs[i].initiator, b = pairs[i].target;

		if (a >= p->device_n || b >= p->device_n)
			return err_set(EINVAL, "pair %u, %u: no such device (of %u)", a, b,
				       p->device_n);
		if (a == b)
			return err_set(EINVAL, "pair %u, %u: a device with itself", a, b);
		if (seen[(size_t)a * p->device_n + b])
			return err_set(EINVAL, "pair %u, %u is chosen twice", a, b);
		seen[(size_t)a * p->device_n + b] = true;
	}
	return 0;
}

/* Devices come first, then the links in the order in which they are met. */
static void list_needs(const struct paths *p, const struct pair *pairs, unsigned *resource_of_link,
		       struct needs *n)
{
	size_t at = 0;

	n->resource_n = p->device_n;
	for (size_t i = 0; i < n->item_n; i++) {
		const struct link_list *l =
			&paths_pair(p, pairs[i].initiator, pairs[i].target)->links;

		n->start[i] = at;
		n->ids[at++] = pairs[i].initiator;
		n->ids[at++] = pairs[i].target;
		for (size_t k = 0; k < l->n; k++) {
			unsigned *r = &resource_of_link[l->ids[k]];

			if (!*r)
				*r = (unsigned)n->resource_n++;
			n->ids[at++] = *r;
		}
	}
	n->start[n->item_n] = at;
}

/* The greatest load of a resource, or what half of the devices in use, rounded down, can do. */
static int least_rounds(unsigned device_n, struct needs *n)
{
	AUTO_FREE size_t *load = calloc(n->resource_n + 1, sizeof(*load));
	size_t in_use = 0;

	if (!load)
		return no_memory(n->item_n);
	for (size_t i = 0; i < n->start[n->item_n]; i++)
		load[n->ids[i]]++;
	for (unsigned i = 0; i < device_n; i++)
		in_use += load[i] > 0;
	n->least = in_use < 2 ? 0 : (n->item_n + in_use / 2 - 1) / (in_use / 2);
	for (size_t i = 0; i < n->resource_n; i++)
		n->least = load[i] > n->least ? load[i] : n->least;
	return 0;
}

static int needs_of(const struct paths *p, const struct pair *pairs, size_t pair_n,
		    struct needs *ret)
{
	AUTO_FREE unsigned *resource_of_link = calloc(PATHS_LINKS_MAX, sizeof(unsigned));
	size_t id_n = 2 * pair_n;

	for (size_t i = 0; i < pair_n; i++)
		id_n += paths_pair(p, pairs[i].initiator, pairs[i].target)->links.n;
	ret->item_n = pair_n;
	ret->ids = calloc(id_n + 1, sizeof(*ret->ids));
	ret->start = calloc(pair_n + 1, sizeof(*ret->start));
	if (!resource_of_link || !ret->ids || !ret->start)
		return no_memory(pair_n);
	list_needs(p, pairs, resource_of_link, ret);
	return least_rounds(p->device_n, ret);
}

/* ---- rounds without a meeting ---- */

/* A tournament of the devices that are in some pair: the best plan where no links are shared. */
static int tournament_of(const struct needs *n, const struct pair *pairs, unsigned device_n,
			 unsigned *ret_round)
{
	AUTO_FREE unsigned *player = calloc((size_t)device_n + 1, sizeof(*player));
	unsigned players = 0;

	if (!player)
		return no_memory(n->item_n);
	for (size_t i = 0; i < n->item_n; i++)
		player[pairs[i].initiator] = player[pairs[i].target] = 1;
	for (unsigned i = 0; i < device_n; i++)
		if (player[i])
			player[i] = players++;
	for (size_t i = 0; i < n->item_n; i++)
		ret_round[i] = tournament_round(players, player[pairs[i].initiator],
						player[pairs[i].target]);
	return 0;
}

int rounds_plan(const struct paths *p, const struct pair *pairs, size_t pair_n, struct rounds *ret)
{
	AUTO_NEEDS struct needs n = {0};
	AUTO_FREE unsigned *first = NULL, *round = NULL;
	size_t round_n = 0;
	int r = paths_check(p);

	if (r == 0)
		r = check_selection(p, pairs, pair_n);
	if (r == 0)
		r = needs_of(p, pairs, pair_n, &n);
	if (r < 0)
		return r;
	first = calloc(pair_n + 1, sizeof(*first));
	round = calloc(pair_n + 1, sizeof(*round));
	if (!first || !round)
		return no_memory(pair_n);
	r = tournament_of(&n, pairs, p->device_n, first);
	if (r == 0)
		r = colour_items(&n, first, round, &round_n);
	if (r == 0)
		r = rounds_of(pairs, round, pair_n, round_n, ret);
	if (r == 0)
		ret->least = n.least;
	return r;
}
