/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which algorithm an operation gets, and the time estimated for it, next to times measured on GPUs
 * (docs/performance.md).
 */
#include "collective/operation.h"

#include "base/array.h"
#include "collective/slots.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define KIB 1024ul
#define MIB (1024 * KIB)

/* Of an H200. */
#define BLOCKS  132
#define THREADS 1024

static struct choice choose_all_reduce(unsigned n, bool direct, uint64_t bytes,
				       enum algorithm forced)
{
	const struct choice_request q = {.piece = {bytes, (bytes + 16 * n - 1) / (16 * n) * 16},
					 .crossing = {n - 1, 2 * (n - 1)}};
	struct comm_facts f;
	struct choice p;

	comm_facts_make(n, direct, BLOCKS, THREADS, &f);
	choose(&f, &q, forced, &p);
	return p;
}

/*
 * All-reduces on H200, in a graph: of the algorithms measured at a size the fastest has to be
 * chosen. At 8 MiB, and from
 *
 * 8 KiB up with 4 ranks or through the host's memory, it is an estimate from trial kernels.
 */
static void the_fastest_measured_is_chosen(void **state)
{
	static const struct {
		unsigned n;
		bool direct;
		uint64_t bytes;
		enum algorithm fastest;
	} rows[] = {
		{2, true, 8, FLAGGED_ONE},
		{2, true, 8 * KIB, FLAGGED_ONE},
		{2, true, 64 * KIB, FLAGGED_ONE},
		{2, true, 256 * KIB, FLAGGED_ONE},
		{2, true, 1 * MIB, FLAGGED_TWO},
		{2, true, 8 * MIB, PIPED_TWO},
		{2, true, 32 * MIB, PIPED_TWO},
		{2, true, 128 * MIB, PIPED_TWO},
		{2, true, 512 * MIB, PIPED_TWO},
		{4, true, 32 * KIB, FLAGGED_ONE},
		{4, true, 256 * KIB, FLAGGED_TWO},
		/* through the host's memory */
		{2, false, 8 * KIB, FLAGGED_ONE},
		{2, false, 1 * MIB, PIPED_TWO},
		{2, false, 128 * MIB, PIPED_TWO},
		{4, false, 512 * KIB, FLAGGED_TWO},
		{4, false, 1 * MIB, PIPED_TWO},
		{4, false, 128 * MIB, PIPED_TWO},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct choice p =
			choose_all_reduce(rows[i].n, rows[i].direct, rows[i].bytes, ALGORITHM_N);

		if (p.algorithm != rows[i].fastest)
			fail_msg("%u ranks%s, %lu bytes: algorithm %d, not %d", rows[i].n,
				 rows[i].direct ? "" : " through the host", rows[i].bytes,
				 (int)p.algorithm, (int)rows[i].fastest);
	}
}

/* Direct rows: the library on 2 H200. Rows through the host: trial kernels with the same three stages. */
static void estimates_are_near_what_was_measured(void **state)
{
	static const struct {
		unsigned n;
		bool direct;
		uint64_t bytes;
		enum algorithm a;
		double us;
	} rows[] = {
		{2, true, 512 * KIB, PIPED_TWO, 13},      {2, true, 32 * MIB, PIPED_TWO, 114},
		{2, true, 128 * MIB, PIPED_TWO, 401},     {2, true, 512 * MIB, PIPED_TWO, 1528},
		{2, true, 512 * MIB, PIPED_ONE, 1898},    {2, false, 1 * MIB, PIPED_TWO, 54},
		{4, false, 1 * MIB, PIPED_TWO, 66},       {2, false, 1 * MIB, FLAGGED_TWO, 63},
		{4, false, 512 * KIB, FLAGGED_TWO, 48.7},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct choice p =
			choose_all_reduce(rows[i].n, rows[i].direct, rows[i].bytes, rows[i].a);

		if (fabs(p.us / rows[i].us - 1) > 0.2)
			fail_msg(
				"%u ranks%s, %lu bytes by algorithm %d: %.1f us estimated, %.1f measured",
				rows[i].n, rows[i].direct ? "" : " through the host", rows[i].bytes,
				(int)p.algorithm, p.us, rows[i].us);
	}
}

/* Every size gets a grid that has slots, whatever the GPU and the number of ranks. */
static void every_size_has_a_grid(void **state)
{
	static const unsigned blocks[] = {1, 20, 84, 132, 188};

	(void)state;
	for (size_t g = 0; g < ARRAY_LEN(blocks); g++)
		for (unsigned n = 2; n <= COLLECTIVE_RANKS_MAX; n++)
			for (uint64_t bytes = 1; bytes < 4096 * MIB; bytes = bytes * 3 + 1) {
				const struct choice_request q = {.piece = {bytes, bytes / n + 16},
								 .crossing = {n - 1, 2 * (n - 1)}};
				struct comm_facts f;
				struct choice p;

				comm_facts_make(n, g % 2, blocks[g], THREADS, &f);
				choose(&f, &q, ALGORITHM_N, &p);
				assert_in_range(p.blocks, 1,
						is_piped(p.algorithm) ? f.piped_blocks
								      : f.flagged_blocks);
				assert_in_range(p.chunk, 0, f.slot_bytes);
				if (is_piped(p.algorithm))
					assert_true(p.chunk * p.chunks * p.blocks >=
						    q.piece[steps_of(p.algorithm)]);
			}
}

/* What runs is the cheapest of the estimates that a user is shown; one that cannot run has none. */
static void the_cheapest_estimate_is_chosen(void **state)
{
	struct choice_request q = {.crossing = {3, 6}};
	struct choice each[ALGORITHM_N], p;
	struct comm_facts f;

	(void)state;
	comm_facts_make(4, true, BLOCKS, THREADS, &f);
	for (uint64_t bytes = 8; bytes < 256 * MIB; bytes *= 2) {
		q.piece[STEPS_ONE] = bytes;
		q.piece[STEPS_TWO] = bytes % 64 ? 0 : bytes / 4;
		choose_each(&f, &q, each);
		choose(&f, &q, ALGORITHM_N, &p);
		assert_int_equal(each[p.algorithm].algorithm, p.algorithm);
		assert_true(each[p.algorithm].us == p.us);
		for (int a = 0; a < ALGORITHM_N; a++) {
			const bool can = each[a].algorithm == (enum algorithm)a;

			assert_true(can || each[a].algorithm == ALGORITHM_N);
			assert_true(!can || each[a].us >= p.us);
			assert_true(can || (!is_piped((enum algorithm)a) && bytes > 256 * KIB) ||
				    (steps_of((enum algorithm)a) != STEPS_ONE &&
				     !q.piece[steps_of((enum algorithm)a)]));
			choose(&f, &q, (enum algorithm)a, &p);
			assert_int_equal(p.algorithm == (enum algorithm)a, can);
			choose(&f, &q, ALGORITHM_N, &p);
		}
	}
}

/* ---- groups ---- */

/* Eight GPUs, `size` of which are near each other; the others are far. */
static void choose_in_groups(unsigned size, enum nearness near, enum operation o, uint64_t bytes,
			     struct choice *ret)
{
	enum nearness of[8 * 8];
	struct comm_facts f;

	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < 8; j++)
			of[i * 8 + j] = i / size == j / size ? near : NEAR_FAR;
	comm_facts_make(8, true, BLOCKS, THREADS, &f);
	comm_facts_place(&f, of);
	assert_int_equal(f.groups.size, size < 8 ? size : 0);
	operation_choose(&f, o, bytes / 4, ELEMENT_FLOAT32, ALGORITHM_N, ret);
}

/* Where groups share a link, large all-reduces cross it once; nothing else is done in levels, nor where no link is shared. */
static void large_sums_go_in_levels_between_groups(void **state)
{
	struct choice p;

	(void)state;
	for (uint64_t bytes = 1 * MIB; bytes <= 1024 * MIB; bytes *= 4) {
		choose_in_groups(4, NEAR_SOCKET, OPERATION_ALL_REDUCE, bytes, &p);
		assert_int_equal(p.algorithm, PIPED_LEVELS);
		choose_in_groups(8, NEAR_NVLINK, OPERATION_ALL_REDUCE, bytes, &p);
		assert_int_equal(steps_of(p.algorithm), STEPS_TWO);
		choose_in_groups(8, NEAR_SOCKET, OPERATION_ALL_REDUCE, bytes, &p);
		assert_int_equal(steps_of(p.algorithm), STEPS_TWO);
		choose_in_groups(4, NEAR_SOCKET, OPERATION_BROADCAST, bytes, &p);
		assert_int_equal(steps_of(p.algorithm), STEPS_TWO);
	}
	choose_in_groups(4, NEAR_SOCKET, OPERATION_ALL_REDUCE, 8, &p);
	assert_int_equal(p.algorithm, FLAGGED_ONE);
}

/* ---- with measured times ---- */

static uint32_t *time_of(struct comm_facts *f, enum algorithm a, unsigned size)
{
	return &f->times.ns[OPERATION_ALL_REDUCE][a][size];
}

static struct choice choose_of(const struct comm_facts *f, uint64_t bytes)
{
	const struct choice_request q = {.operation = OPERATION_ALL_REDUCE,
					 .piece = {bytes, (bytes + 63) / 64 * 16},
					 .crossing = {3, 6}};
	struct choice p;

	choose(f, &q, ALGORITHM_N, &p);
	return p;
}

/* At 4 KiB (size 4) and 16 KiB (size 5) the table says the opposite of the estimates. */
static void measured_times_are_preferred_to_estimates(void **state)
{
	struct comm_facts f;

	(void)state;
	comm_facts_make(4, true, BLOCKS, THREADS, &f);
	assert_int_equal(choose_of(&f, 4 * KIB).algorithm, FLAGGED_ONE);
	assert_false(choose_of(&f, 4 * KIB).measured);
	*time_of(&f, FLAGGED_ONE, 4) = 9000;
	*time_of(&f, PIPED_TWO, 4) = 5000;
	*time_of(&f, FLAGGED_ONE, 5) = 10000;
	*time_of(&f, PIPED_TWO, 5) = 17000;
	assert_int_equal(choose_of(&f, 4 * KIB).algorithm, PIPED_TWO);
	assert_true(choose_of(&f, 4 * KIB).measured);
	assert_true(choose_of(&f, 4 * KIB).us == 5);
	assert_int_equal(choose_of(&f, 16 * KIB).algorithm, FLAGGED_ONE);
	/* a third of the way: 9.33 and 9 us; two thirds: 9.67 and 13 us */
	assert_int_equal(choose_of(&f, 8 * KIB).algorithm, PIPED_TWO);
	assert_int_equal(choose_of(&f, 12 * KIB).algorithm, FLAGGED_ONE);
	assert_true(fabs(choose_of(&f, 12 * KIB).us - 9.667) < 0.001);
	/* above the last time the data counts, below the first there is none */
	assert_true(choose_of(&f, 32 * KIB).measured);
	assert_true(fabs(choose_of(&f, 32 * KIB).us - 20) < 0.001);
	assert_false(choose_of(&f, 3 * KIB).measured);
}

/* What was not measured at a size does not compete there; nor does what cannot run, whatever the table says. */
static void only_what_was_measured_and_can_run_competes(void **state)
{
	const struct choice_request odd = {.operation = OPERATION_ALL_REDUCE,
					   .piece = {8},
					   .crossing = {3, 6}};
	struct comm_facts f;
	struct choice p;

	(void)state;
	comm_facts_make(4, true, BLOCKS, THREADS, &f);
	*time_of(&f, PIPED_ONE, 0) = 1000000;
	assert_int_equal(choose_of(&f, 8).algorithm, PIPED_ONE);
	assert_int_equal(choose_of(&f, 1).algorithm, PIPED_ONE);
	*time_of(&f, FLAGGED_TWO, 0) = 1;
	assert_int_equal(choose_of(&f, 8).algorithm, FLAGGED_TWO);
	choose(&f, &odd, ALGORITHM_N, &p);
	assert_int_equal(p.algorithm, PIPED_ONE);
	*time_of(&f, FLAGGED_ONE, TUNED_SIZES - 1) = 1;
	assert_false(choose_of(&f, 256 * MIB).measured);
	/* of another operation: nothing */
	p = choose_of(&f, 8);
	assert_true(p.measured);
	choose(&f,
	       &(const struct choice_request){.operation = OPERATION_REDUCE,
					      .piece = {8},
					      .crossing = {3, 3}},
	       ALGORITHM_N, &p);
	assert_false(p.measured);
}

/* Measured on 4 H100: a reduce in two flagged steps takes 13 us for 256 KiB, in one step 9 us; through the host 21 and 14 us for 64 KiB. */
static void a_reduce_goes_in_one_step_for_longer(void **state)
{
	(void)state;
	for (unsigned direct = 0; direct < 2; direct++) {
		const uint64_t bytes = direct ? 256 * KIB : 64 * KIB;
		struct comm_facts f;
		struct choice p;

		comm_facts_make(4, direct, BLOCKS, THREADS, &f);
		operation_choose(&f, OPERATION_REDUCE, bytes / 4, ELEMENT_FLOAT32, ALGORITHM_N, &p);
		assert_int_equal(p.algorithm, FLAGGED_ONE);
		operation_choose(&f, OPERATION_ALL_REDUCE, bytes / 4, ELEMENT_FLOAT32, ALGORITHM_N,
				 &p);
		assert_int_equal(p.algorithm, FLAGGED_TWO);
	}
}

/* Sends and receives: of one GPU's memory, or of the host's for all. */
static void slots_of_pairs_have_their_limit(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= COLLECTIVE_RANKS_MAX; n++)
		for (unsigned direct = 0; direct < 2; direct++) {
			struct comm_facts f;

			comm_facts_make(n, direct, 132, 1024, &f);
			assert_true((uint64_t)(direct ? n - 1 : n * n) * f.pair_blocks *
					    PAIR_SLOTS * f.pair_slot_bytes <=
				    (direct ? 16 : 32) * MIB);
			assert_true(f.pair_blocks >= 4);
			assert_int_equal(f.pair_slot_bytes % 16, 0);
		}
}

static u64 slots_size(unsigned n, bool direct)
{
	struct comm_facts f;
	struct slots s;

	comm_facts_make(n, direct, 132, 1024, &f);
	slots_make(&f, &s);
	return s.size;
}

/* Nearly everything that a rank allocates on its GPU, or all ranks on the host, as onehop.h and docs/collectives.md say. */
static void slots_have_their_limit(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= COLLECTIVE_RANKS_MAX; n++) {
		assert_true(slots_size(n, true) < 59 * MIB);
		assert_true(slots_size(n, false) < 97 * MIB);
	}
	assert_int_equal(slots_size(2, true) / MIB, 48);
	assert_int_equal(slots_size(4, true) / MIB, 52);
	assert_int_equal(slots_size(8, true) / MIB, 58);
	assert_int_equal(slots_size(2, false) / MIB, 34);
	assert_int_equal(slots_size(4, false) / MIB, 72);
	assert_int_equal(slots_size(8, false) / MIB, 96);
}

/* Two ranks never write to the same place of a third one, and what is written is what is read there. */
static void rows_of_ranks_are_apart(void **state)
{
	(void)state;
	for (unsigned n = 2; n <= COLLECTIVE_RANKS_MAX; n++)
		for (unsigned area = 0; area < AREA_N; area++) {
			struct collective_ways ways[COLLECTIVE_RANKS_MAX];
			u64 seen[COLLECTIVE_RANKS_MAX];
			struct comm_facts f;
			struct slots s;

			comm_facts_make(n, true, 132, 1024, &f);
			slots_make(&f, &s);
			for (unsigned r = 0; r < n; r++)
				seen[r] = (r + 1) * s.size;
			for (unsigned r = 0; r < n; r++)
				slots_ways(&f, &s, (enum slots_area)area, false, r, seen, &ways[r]);
			for (unsigned to = 0; to < n; to++)
				for (unsigned from = 0; from < n; from++) {
					const u64 at = ways[to].from[from];

					if (from == to)
						continue;
					assert_int_equal(ways[from].to[to], at);
					assert_in_range(at, seen[to] + s.offset[area],
							seen[to] + s.size - s.row[area]);
					for (unsigned other = 0; other < from; other++)
						assert_true(other == to ||
							    ways[other].to[to] + s.row[area] <= at);
				}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fastest_measured_is_chosen),
		cmocka_unit_test(estimates_are_near_what_was_measured),
		cmocka_unit_test(every_size_has_a_grid),
		cmocka_unit_test(the_cheapest_estimate_is_chosen),
		cmocka_unit_test(measured_times_are_preferred_to_estimates),
		cmocka_unit_test(only_what_was_measured_and_can_run_competes),
		cmocka_unit_test(large_sums_go_in_levels_between_groups),
		cmocka_unit_test(a_reduce_goes_in_one_step_for_longer),
		cmocka_unit_test(slots_of_pairs_have_their_limit),
		cmocka_unit_test(slots_have_their_limit),
		cmocka_unit_test(rows_of_ranks_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
