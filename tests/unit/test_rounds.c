/* SPDX-License-Identifier: Apache-2.0 */
/* bench/rounds.h and bench/paths.h: what must hold of every plan, and how many rounds known shapes
 * of machines take. */
#include "bench/rounds.h"

#include "base/cleanup.h"
#include "base/err.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

static struct paths *new_paths(unsigned n)
{
	struct paths *p = NULL;

	assert_int_equal(paths_new(n, &p), 0);
	return p;
}

static void add_link(struct paths *p, unsigned i, unsigned j, unsigned id)
{
	assert_int_equal(link_list_add(&paths_pair(p, i, j)->links, id), 0);
}

/*
 * Groups of devices below an uplink of their own, both ways: id `first` + group up, + n + group
 * down.
 */
static void add_uplinks(struct paths *p, unsigned group, unsigned first)
{
	for (unsigned i = 0; i < p->device_n; i++) {
		for (unsigned j = 0; j < p->device_n; j++) {
			if (i / group == j / group)
				continue;
			add_link(p, i, j, first + i / group);
			add_link(p, i, j, first + p->device_n + j / group);
		}
	}
}

/* ---- what must hold ---- */

static bool share_link(const struct paths *p, const struct pair *a, const struct pair *b)
{
	const struct link_list *x = &paths_pair(p, a->initiator, a->target)->links;
	const struct link_list *y = &paths_pair(p, b->initiator, b->target)->links;

	for (size_t i = 0; i < x->n; i++)
		for (size_t k = 0; k < y->n; k++)
			if (x->ids[i] == y->ids[k])
				return true;
	return false;
}

static bool share_device(const struct pair *a, const struct pair *b)
{
	return a->initiator == b->initiator || a->initiator == b->target ||
	       a->target == b->initiator || a->target == b->target;
}

static void assert_apart(const struct paths *p, const struct round *r)
{
	assert_true(r->pair_n > 0);
	for (size_t i = 0; i < r->pair_n; i++) {
		for (size_t k = 0; k < i; k++) {
			assert_false(share_device(&r->pairs[i], &r->pairs[k]));
			assert_false(share_link(p, &r->pairs[i], &r->pairs[k]));
		}
	}
}

static void assert_each_once(const struct rounds *r, unsigned device_n, const struct pair *pairs,
			     size_t pair_n)
{
	AUTO_FREE unsigned *seen = calloc((size_t)device_n * device_n + 1, sizeof(*seen));
	size_t n = 0;

	assert_non_null(seen);
	for (size_t i = 0; i < r->round_n; i++) {
		for (size_t k = 0; k < r->rounds[i].pair_n; k++, n++) {
			const struct pair *pr = &r->rounds[i].pairs[k];

			assert_int_equal(seen[pr->initiator * device_n + pr->target]++, 0);
		}
	}
	assert_int_equal(n, pair_n);
	assert_int_equal(r->pair_n, pair_n);
	for (size_t i = 0; i < pair_n; i++)
		assert_int_equal(seen[pairs[i].initiator * device_n + pairs[i].target], 1);
}

static void assert_plan(const struct paths *p, const struct pair *pairs, size_t pair_n,
			const struct rounds *r)
{
	for (size_t i = 0; i < r->round_n; i++)
		assert_apart(p, &r->rounds[i]);
	assert_each_once(r, p->device_n, pairs, pair_n);
	assert_true(r->round_n >= r->least);
	assert_true(r->round_n <= pair_n);
}

static size_t list_all(unsigned device_n, struct pair *ret)
{
	size_t n = 0;

	for (unsigned i = 0; i < device_n; i++)
		for (unsigned j = 0; j < device_n; j++)
			if (i != j)
				ret[n++] = (struct pair){i, j};
	return n;
}

/* Plans all pairs, checks the plan, frees `p`. */
static void assert_rounds(struct paths *p, size_t rounds, size_t least)
{
	static struct pair all[64 * 63];
	size_t n = list_all(p->device_n, all);
	struct rounds r;

	assert_int_equal(rounds_plan(p, all, n, &r), 0);
	assert_plan(p, all, n, &r);
	assert_int_equal(r.least, least);
	assert_int_equal(r.round_n, rounds);
	rounds_done(&r);
	paths_free(p);
}

/* ---- known shapes ---- */

static void crossbar(void **state)
{
	static const unsigned sizes[][2] = {{0, 0},   {1, 0},   {2, 2},    {3, 6},
					    {4, 6},   {5, 10},  {7, 14},   {8, 14},
					    {16, 30}, {17, 34}, {63, 126}, {64, 126}};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_rounds(new_paths(sizes[i][0]), sizes[i][1], sizes[i][1]);
}

/* Two switches of four below one root complex: 16 pairs go up from either. */
static void two_switches(void **state)
{
	struct paths *p = new_paths(8);

	(void)state;
	add_uplinks(p, 4, 0);
	assert_rounds(p, 16, 16);
}

static void four_switches_of_two(void **state)
{
	struct paths *p = new_paths(8);

	(void)state;
	add_uplinks(p, 2, 0);
	assert_rounds(p, 14, 14);
}

/* The sockets' interconnect carries one pair in either direction. */
static void two_sockets(void **state)
{
	struct paths *p = new_paths(8);

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < 8; j++)
			if (i / 4 != j / 4)
				add_link(p, i, j, i / 4);
	assert_rounds(p, 16, 16);
}

static void switches_on_two_sockets(void **state)
{
	struct paths *p = new_paths(16);

	(void)state;
	add_uplinks(p, 4, 0);
	add_uplinks(p, 8, 100);
	assert_rounds(p, 64, 64);
}

/* A bus: everything takes its turn. */
static void one_link(void **state)
{
	struct paths *p = new_paths(6);

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		for (unsigned j = 0; j < 6; j++)
			if (i != j)
				add_link(p, i, j, 7);
	assert_rounds(p, 30, 30);
}

/* Two to a switch, four to a root port: 4 * 60 pairs go up from each root port. */
static void two_levels_of_64(void **state)
{
	struct paths *p = new_paths(64);

	(void)state;
	add_uplinks(p, 2, 0);
	add_uplinks(p, 4, 1000);
	assert_rounds(p, 244, 240);
}

/* ---- any shape ---- */

static unsigned next_random(uint64_t *state, unsigned below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*state >> 33) % below;
}

static size_t select_some(uint64_t *random, unsigned device_n, struct pair *ret)
{
	size_t n = list_all(device_n, ret), kept = 0;

	for (size_t i = 0; i < n; i++)
		if (next_random(random, 3))
			ret[kept++] = ret[i];
	return kept;
}

static void assert_same(const struct rounds *a, const struct rounds *b)
{
	assert_int_equal(a->round_n, b->round_n);
	for (size_t i = 0; i < a->round_n; i++)
		assert_int_equal(a->rounds[i].pair_n, b->rounds[i].pair_n);
	assert_memory_equal(a->pairs, b->pairs, a->pair_n * sizeof(*a->pairs));
}

static void random_links(void **state)
{
	static struct pair pairs[20 * 19];
	uint64_t random = 42;

	(void)state;
	for (int trial = 0; trial < 200; trial++) {
		unsigned n = 2 + next_random(&random, 19), links = 1 + next_random(&random, 60);
		struct paths *p = new_paths(n);
		size_t pair_n = select_some(&random, n, pairs);
		struct rounds r, again;

		for (size_t i = 0; i < pair_n; i++)
			for (unsigned k = next_random(&random, 4); k > 0; k--)
				add_link(p, pairs[i].initiator, pairs[i].target,
					 next_random(&random, links) * 1000);
		assert_int_equal(rounds_plan(p, pairs, pair_n, &r), 0);
		assert_plan(p, pairs, pair_n, &r);
		assert_int_equal(rounds_plan(p, pairs, pair_n, &again), 0);
		assert_same(&r, &again);
		rounds_done(&r);
		rounds_done(&again);
		paths_free(p);
	}
}

/* ---- selections ---- */

/* Few pairs of many devices: the tournament is of those in use alone. */
static void some_pairs(void **state)
{
	static const struct pair ring[] = {{9, 20}, {20, 31}, {31, 42}, {42, 9}};
	static const struct pair back[] = {{5, 60}, {60, 5}};
	struct paths *p = new_paths(64);
	struct rounds r;

	(void)state;
	assert_int_equal(rounds_plan(p, ring, 4, &r), 0);
	assert_plan(p, ring, 4, &r);
	assert_int_equal(r.round_n, 2);
	assert_int_equal(r.least, 2);
	rounds_done(&r);
	assert_int_equal(rounds_plan(p, back, 2, &r), 0);
	assert_int_equal(r.round_n, 2);
	rounds_done(&r);
	assert_int_equal(rounds_plan(p, NULL, 0, &r), 0);
	assert_int_equal(r.round_n, 0);
	assert_int_equal(r.least, 0);
	rounds_done(&r);
	paths_free(p);
}

static void assert_refused(const struct paths *p, const struct pair *pairs, size_t n,
			   const char *sentence)
{
	struct rounds r;

	assert_int_equal(rounds_plan(p, pairs, n, &r), -EINVAL);
	assert_string_equal(err_msg(), sentence);
}

static void refused(void **state)
{
	static const struct pair twice[] = {{0, 1}, {1, 0}, {0, 1}}, self[] = {{1, 1}};
	static const struct pair beyond[] = {{0, 3}};
	struct paths *p = new_paths(3), *q = NULL;
	struct link_list *l = &paths_pair(p, 0, 1)->links;

	(void)state;
	assert_refused(p, twice, 3, "pair 0, 1 is chosen twice");
	assert_refused(p, self, 1, "pair 1, 1: a device with itself");
	assert_refused(p, beyond, 1, "pair 0, 3: no such device (of 3)");
	add_link(p, 0, 1, PATHS_LINKS_MAX);
	assert_refused(p, twice, 2, "pair 0, 1: link 65536 is not below 65536");
	l->ids[0] = 4;
	assert_int_equal(link_list_add(l, 4), 0);
	assert_int_equal(l->n, 1);
	add_link(p, 0, 1, 5);
	l->ids[1] = 4;
	assert_refused(p, twice, 2, "pair 0, 1: link 4 is listed twice");
	l->ids[1] = 5;
	paths_pair(p, 2, 0)->expected_gbps = NAN;
	assert_refused(p, twice, 2, "pair 2, 0: invalid expected rate, nan GB/s");
	paths_pair(p, 2, 0)->expected_gbps = 0;
	p->hosts[1].expected_gbps = -1;
	assert_refused(p, twice, 2, "host path 1, 1: invalid expected rate, -1 GB/s");
	p->hosts[1].expected_gbps = 0;
	add_link(p, 2, 2, 0);
	assert_refused(p, twice, 2, "pair 2, 2: a device has no path to itself");
	paths_free(p);
	assert_int_equal(paths_new(PATHS_DEVICES_MAX + 1, &q), -EINVAL);
	assert_null(q);
	paths_free(NULL);
}

/* ---- traffic ---- */

static void assert_traffic(enum traffic t, unsigned device_n, size_t rounds, size_t in_round)
{
	static struct pair all[64 * 63];
	size_t n = list_all(device_n, all);
	struct rounds r;

	assert_int_equal(rounds_of_traffic(t, device_n, &r), 0);
	assert_each_once(&r, device_n, all, n);
	assert_int_equal(r.round_n, rounds);
	assert_int_equal(r.least, rounds);
	for (size_t i = 0; i < r.round_n; i++) {
		const struct round *one = &r.rounds[i];

		assert_int_equal(one->pair_n, in_round);
		for (size_t k = 0; k < one->pair_n; k++) {
			if (t == TRAFFIC_N_TO_1)
				assert_int_equal(one->pairs[k].target, i);
			if (t == TRAFFIC_1_TO_N)
				assert_int_equal(one->pairs[k].initiator, i);
			if (t == TRAFFIC_PAIRS)
				for (size_t q = 0; q < k; q++)
					assert_false(share_device(&one->pairs[k], &one->pairs[q]));
		}
	}
	rounds_done(&r);
}

static void traffic(void **state)
{
	struct rounds r;

	(void)state;
	assert_traffic(TRAFFIC_PAIRS, 2, 2, 1);
	assert_traffic(TRAFFIC_PAIRS, 8, 14, 4);
	assert_traffic(TRAFFIC_PAIRS, 7, 14, 3);
	assert_traffic(TRAFFIC_PAIRS, 64, 126, 32);
	assert_traffic(TRAFFIC_ALL_TO_ALL, 8, 1, 56);
	assert_traffic(TRAFFIC_N_TO_1, 8, 8, 7);
	assert_traffic(TRAFFIC_1_TO_N, 5, 5, 4);
	for (int t = 0; t < TRAFFIC_N; t++) {
		assert_traffic((enum traffic)t, 0, 0, 0);
		assert_traffic((enum traffic)t, 1, 0, 0);
	}
	assert_int_equal(rounds_of_traffic(TRAFFIC_PAIRS, PATHS_DEVICES_MAX + 1, &r), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crossbar),
		cmocka_unit_test(two_switches),
		cmocka_unit_test(four_switches_of_two),
		cmocka_unit_test(two_sockets),
		cmocka_unit_test(switches_on_two_sockets),
		cmocka_unit_test(one_link),
		cmocka_unit_test(two_levels_of_64),
		cmocka_unit_test(random_links),
		cmocka_unit_test(some_pairs),
		cmocka_unit_test(refused),
		cmocka_unit_test(traffic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
