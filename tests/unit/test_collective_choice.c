/* SPDX-License-Identifier: Apache-2.0 */
/* Which algorithm an operation gets, and the time estimated for it, next to times measured on GPUs (docs/performance.md). */
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

/* All-reduces on 2 H200, in a graph: of the algorithms measured at a size the fastest has to be chosen. */
static void the_fastest_measured_is_chosen(void **state)
{
	static const struct {
		uint64_t bytes;
		enum algorithm fastest;
	} rows[] = {
		{8, FLAGGED_ONE},         {8 * KIB, FLAGGED_ONE}, {64 * KIB, FLAGGED_ONE},
		{256 * KIB, FLAGGED_ONE}, {1 * MIB, FLAGGED_TWO}, {8 * MIB, PIPED_TWO},
		{32 * MIB, PIPED_TWO},    {128 * MIB, PIPED_TWO}, {512 * MIB, PIPED_TWO},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct choice p = choose_all_reduce(2, true, rows[i].bytes, ALGORITHM_N);

		if (p.algorithm != rows[i].fastest)
			fail_msg("%lu bytes: algorithm %d, not %d", rows[i].bytes, (int)p.algorithm,
				 (int)rows[i].fastest);
	}
}

/* Two steps with one chunk per slot, 128 blocks; the one-step pipeline of the last row was measured too. */
static void estimates_are_near_what_was_measured(void **state)
{
	static const struct {
		uint64_t bytes;
		enum algorithm a;
		double us;
	} rows[] = {
		{512 * KIB, PIPED_TWO, 13},   {32 * MIB, PIPED_TWO, 114},
		{128 * MIB, PIPED_TWO, 401},  {512 * MIB, PIPED_TWO, 1528},
		{512 * MIB, PIPED_ONE, 1898},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct choice p = choose_all_reduce(2, true, rows[i].bytes, rows[i].a);

		if (fabs(p.us / rows[i].us - 1) > 0.2)
			fail_msg("%lu bytes by algorithm %d: %.1f us estimated, %.1f measured",
				 rows[i].bytes, (int)p.algorithm, p.us, rows[i].us);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fastest_measured_is_chosen),
		cmocka_unit_test(estimates_are_near_what_was_measured),
		cmocka_unit_test(every_size_has_a_grid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
