/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which algorithm an operation gets, and the time estimated for it, next to times measured on GPUs
 * (docs/performance.md).
 */
#include "collective/choose.h"

#include "base/array.h"

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
	const struct choice_request q = {.piece = bytes,
					 .piece2 = (bytes + 16 * n - 1) / (16 * n) * 16,
					 .to = n - 1};
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
				const struct choice_request q = {bytes, bytes / n + 16, n - 1};
				struct comm_facts f;
				struct choice p;

				comm_facts_make(n, g % 2, blocks[g], THREADS, &f);
				choose(&f, &q, ALGORITHM_N, &p);
				assert_in_range(p.blocks, 1,
						is_piped(p.algorithm) ? f.piped_blocks
								      : f.flagged_blocks);
				assert_in_range(p.chunk, 0, f.slot_bytes);
				if (is_piped(p.algorithm))
					assert_true(
						p.chunk * p.chunks * p.blocks >=
						(has_two_steps(p.algorithm) ? q.piece2 : q.piece));
			}
}

/* What runs is the cheapest of the estimates that a user is shown; one that cannot run has none. */
static void the_cheapest_estimate_is_chosen(void **state)
{
	struct choice_request q = {.to = 3};
	struct choice each[ALGORITHM_N], p;
	struct comm_facts f;

	(void)state;
	comm_facts_make(4, true, BLOCKS, THREADS, &f);
	for (q.piece = 8; q.piece < 256 * MIB; q.piece *= 2) {
		q.piece2 = q.piece % 64 ? 0 : q.piece / 4;
		choose_each(&f, &q, each);
		choose(&f, &q, ALGORITHM_N, &p);
		assert_int_equal(each[p.algorithm].algorithm, p.algorithm);
		assert_true(each[p.algorithm].us == p.us);
		for (int a = 0; a < ALGORITHM_N; a++) {
			const bool can = each[a].algorithm == (enum algorithm)a;

			assert_true(can || each[a].algorithm == ALGORITHM_N);
			assert_true(!can || each[a].us >= p.us);
			assert_true(can || (!is_piped((enum algorithm)a) && q.piece > 256 * KIB) ||
				    (has_two_steps((enum algorithm)a) && !q.piece2));
			choose(&f, &q, (enum algorithm)a, &p);
			assert_int_equal(p.algorithm == (enum algorithm)a, can);
			choose(&f, &q, ALGORITHM_N, &p);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
