/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which algorithm an operation gets, and the time estimated for it, next to times measured on GPUs
 * (docs/performance.md).
 */
#include "collective/operation.h"
#include "collective/tuned.h"

#include "base/array.h"
#include "collective/faster.h"
#include "collective/slots.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

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
					 .crossing = {{n - 1}, {2 * (n - 1)}}};
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
		{2, true, 1 * MIB, FLAGGED_ONE},
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

/*
 * The library on 2 and 4 H100, 2026-11-27 and, what goes in flagged rounds, 2026-11-28. Sizes of a
 * reduce-scatter: of all pieces.
 */
static void estimates_are_near_what_was_measured(void **state)
{
	static const struct {
		unsigned n;
		bool direct;
		enum operation o;
		uint64_t bytes;
		enum algorithm a;
		double us;
	} rows[] = {
		{2, true, OPERATION_ALL_REDUCE, 256 * KIB, FLAGGED_ONE, 4.2},
		{2, true, OPERATION_ALL_REDUCE, 1 * MIB, FLAGGED_ONE, 8.1},
		{2, true, OPERATION_ALL_REDUCE, 2 * MIB, FLAGGED_TWO, 13.7},
		{2, true, OPERATION_ALL_REDUCE, 2 * MIB, PIPED_TWO, 15.4},
		{2, true, OPERATION_ALL_REDUCE, 8 * MIB, PIPED_TWO, 35.8},
		{2, true, OPERATION_ALL_REDUCE, 32 * MIB, PIPED_TWO, 103},
		{2, true, OPERATION_ALL_REDUCE, 256 * MIB, PIPED_TWO, 757},
		{2, true, OPERATION_REDUCE_SCATTER, 4 * MIB, PIPED_ONE, 15.4},
		{2, true, OPERATION_REDUCE_SCATTER, 32 * MIB, PIPED_ONE, 63.2},
		{2, true, OPERATION_REDUCE_SCATTER, 256 * MIB, PIPED_ONE, 392},
		{4, true, OPERATION_ALL_REDUCE, 64 * KIB, FLAGGED_ONE, 3.9},
		{4, true, OPERATION_ALL_REDUCE, 256 * KIB, FLAGGED_TWO, 6.5},
		{4, true, OPERATION_ALL_REDUCE, 1 * MIB, FLAGGED_TWO, 12.2},
		{4, true, OPERATION_ALL_REDUCE, 2 * MIB, FLAGGED_TWO, 20.8},
		{4, true, OPERATION_ALL_REDUCE, 4 * MIB, PIPED_TWO, 33.1},
		{4, true, OPERATION_ALL_REDUCE, 16 * MIB, PIPED_TWO, 84.5},
		{4, true, OPERATION_ALL_REDUCE, 256 * MIB, PIPED_TWO, 1161},
		{4, true, OPERATION_ALL_REDUCE, 4 * MIB, FLAGGED_TWO, 34.5},
		{4, true, OPERATION_REDUCE, 4 * MIB, FLAGGED_TWO, 28},
		{4, true, OPERATION_REDUCE, 4 * MIB, PIPED_TWO, 40.2},
		{4, true, OPERATION_REDUCE, 8 * MIB, FLAGGED_TWO, 48.7},
		{4, true, OPERATION_REDUCE, 8 * MIB, PIPED_TWO, 57.4},
		{4, true, OPERATION_REDUCE, 16 * MIB, PIPED_TWO, 85.3},
		{4, true, OPERATION_BROADCAST, 4 * MIB, FLAGGED_TWO, 26.4},
		{4, true, OPERATION_BROADCAST, 4 * MIB, PIPED_TWO, 25.9},
		{4, true, OPERATION_BROADCAST, 8 * MIB, FLAGGED_TWO, 45.2},
		{4, true, OPERATION_BROADCAST, 8 * MIB, PIPED_TWO, 45.1},
		{4, true, OPERATION_REDUCE_SCATTER, 4 * MIB, PIPED_ONE, 19},
		{4, true, OPERATION_REDUCE_SCATTER, 32 * MIB, PIPED_ONE, 90.6},
		{4, true, OPERATION_REDUCE_SCATTER, 256 * MIB, PIPED_ONE, 600},
		{2, false, OPERATION_ALL_REDUCE, 2 * MIB, PIPED_TWO, 78.6},
		{2, false, OPERATION_ALL_REDUCE, 32 * MIB, PIPED_TWO, 856},
		{2, false, OPERATION_REDUCE_SCATTER, 32 * MIB, PIPED_ONE, 474},
		{4, false, OPERATION_ALL_REDUCE, 2 * MIB, PIPED_TWO, 114},
		{4, false, OPERATION_ALL_REDUCE, 32 * MIB, PIPED_TWO, 1350},

	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const bool scatters = rows[i].o == OPERATION_REDUCE_SCATTER;
		const uint64_t bytes = scatters ? rows[i].bytes / rows[i].n : rows[i].bytes;
		struct comm_facts f;
		struct choice p;

		comm_facts_make(rows[i].n, rows[i].direct, BLOCKS, THREADS, &f);
		operation_count(&f);
		operation_choose(&f, rows[i].o, bytes / 4, ELEMENT_FLOAT32, rows[i].a, &p);
		if (fabs(p.us / rows[i].us - 1) > 0.2)
			fail_msg(
				"%u ranks%s, %lu bytes of operation %d by algorithm %d: %.1f us estimated, %.1f measured",
				rows[i].n, rows[i].direct ? "" : " through the host", rows[i].bytes,
				(int)rows[i].o, (int)p.algorithm, p.us, rows[i].us);
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
								 .crossing = {{n - 1},
									      {2 * (n - 1)}}};
				struct comm_facts f;
				struct choice p;

				comm_facts_make(n, g % 2, blocks[g], THREADS, &f);
				choose(&f, &q, ALGORITHM_N, &p);
				assert_in_range(p.blocks, 1,
						is_piped(p.algorithm) ? f.piped_blocks
								      : f.flagged_blocks);
				assert_in_range(p.chunk, 1,
						is_piped(p.algorithm)
							? f.slot_bytes
							: f.flagged_units * FLAGGED_DATA_BYTES(0));
				assert_true(p.chunk * p.chunks * p.blocks >=
					    q.piece[steps_of(p.algorithm)]);
			}
}

/* Through the host, between two ranks: large chunks where data goes one way. */
static void what_goes_one_way_has_large_chunks(void **state)
{
	static const struct {
		enum operation operation;
		uint64_t bytes, chunk; /* of 64 blocks; 0: at most 16 KiB */
	} rows[] = {
		{OPERATION_BROADCAST, 2 * MIB, 32 * KIB},  {OPERATION_BROADCAST, 4 * MIB, 64 * KIB},
		{OPERATION_BROADCAST, 8 * MIB, 32 * KIB}, /* at least four, or one */
		{OPERATION_BROADCAST, 16 * MIB, 64 * KIB}, {OPERATION_BROADCAST, 16 * MIB + 64, 0},
		{OPERATION_BROADCAST, 256 * MIB, 0},       {OPERATION_REDUCE, 4 * MIB, 64 * KIB},
		{OPERATION_REDUCE, 256 * MIB, 64 * KIB},   {OPERATION_ALL_REDUCE, 4 * MIB, 0},
		{OPERATION_ALL_GATHER, 256 * MIB, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct choice_request q = {.operation = rows[i].operation,
						 .piece = {rows[i].bytes},
						 .crossing = {{1}}};
		struct comm_facts f;
		struct choice p;

		comm_facts_make(2, false, BLOCKS, THREADS, &f);
		choose(&f, &q, PIPED_ONE, &p);
		assert_int_equal(p.algorithm, PIPED_ONE);
		if (rows[i].chunk)
			assert_int_equal(p.chunk, rows[i].chunk);
		else
			assert_in_range(p.chunk, 1, 16 * KIB);
	}
}

/* What runs is the cheapest of the estimates that a user is shown; one that cannot run has none. */
static void the_cheapest_estimate_is_chosen(void **state)
{
	struct choice_request q = {.crossing = {{3}, {6}}};
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
			assert_true(can || (!is_piped((enum algorithm)a) && bytes > 1 * MIB) ||
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
	comm_facts_place(&f, of, NULL);
	operation_count(&f);
	assert_int_equal(f.groups.size, size < 8 ? size : 0);
	operation_choose(&f, o, bytes / 4, ELEMENT_FLOAT32, ALGORITHM_N, ret);
}

/*
 * Where groups share a link, large all-reduces cross it once; nothing is done in levels where no
 * link is shared.
 */
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
	}
	choose_in_groups(4, NEAR_SOCKET, OPERATION_ALL_REDUCE, 8, &p);
	assert_int_equal(p.algorithm, FLAGGED_ONE);
}

/* So do all other large operations but all-to-all, where nothing is saved: in a chain. */
static void what_is_large_goes_in_a_chain_across_a_shared_link(void **state)
{
	static const struct {
		enum operation o;
		enum steps otherwise;
	} rows[] = {
		{OPERATION_BROADCAST, STEPS_TWO},
		{OPERATION_REDUCE, STEPS_TWO},
		{OPERATION_ALL_GATHER, STEPS_ONE},
		{OPERATION_REDUCE_SCATTER, STEPS_ONE},
	};
	struct choice p;

	(void)state;
	for (uint64_t bytes = 4 * MIB; bytes <= 1024 * MIB; bytes *= 4) {
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			choose_in_groups(4, NEAR_SOCKET, rows[i].o, bytes, &p);
			assert_int_equal(p.algorithm, PIPED_CHAIN);
			choose_in_groups(8, NEAR_SOCKET, rows[i].o, bytes, &p);
			assert_int_equal(steps_of(p.algorithm), rows[i].otherwise);
			choose_in_groups(8, NEAR_NVLINK, rows[i].o, bytes, &p);
			assert_int_equal(steps_of(p.algorithm), rows[i].otherwise);
		}
		choose_in_groups(4, NEAR_SOCKET, OPERATION_ALL_TO_ALL, bytes, &p);
		assert_int_equal(steps_of(p.algorithm), STEPS_ONE);
	}
}

/* Of 4 ranks, of which the first `size` are nearer to each other, as are the rest; 4: all are. */
static void place_four(unsigned size, enum nearness near, enum nearness far, struct comm_facts *ret)
{
	enum nearness of[4 * 4];

	for (unsigned i = 0; i < 16; i++)
		of[i] = (i / 4 < size) == (i % 4 < size) ? near : far;
	comm_facts_make(4, true, BLOCKS, THREADS, ret);
	comm_facts_place(ret, of, NULL);
	operation_count(ret);
}

/*
 * What is smaller than float would be rounded after each rank. Only where groups of ranks, also of
 * different sizes, share a link may they be added up in another order than theirs.
 */
static void sums_in_a_chain(void **state)
{
	(void)state;
	for (unsigned size = 1; size <= 4; size++)
		for (unsigned type = 0; type < ELEMENT_TYPE_N; type++) {
			const bool small = type == ELEMENT_FLOAT16 || type == ELEMENT_BFLOAT16 ||
					   type == ELEMENT_FLOAT8_E4M3 ||
					   type == ELEMENT_FLOAT8_E5M2;
			struct choice each[ALGORITHM_N];
			struct comm_facts f;

			if (size % 2)
				place_four(size, NEAR_SOCKET, NEAR_FAR, &f);
			else
				place_four(size, NEAR_SWITCH, NEAR_SOCKET, &f);
			operation_estimate(&f, OPERATION_REDUCE, MIB, type, each);
			assert_int_equal(each[PIPED_CHAIN].algorithm,
					 small || size == 4 ? ALGORITHM_N : PIPED_CHAIN);
			operation_estimate(&f, OPERATION_BROADCAST, MIB, type, each);
			assert_int_equal(each[PIPED_CHAIN].algorithm, PIPED_CHAIN);
		}
}

/* Below switches of one socket too. */
static void groups_of_different_sizes_share_links(void **state)
{
	struct comm_facts f;

	(void)state;
	for (int far = 0; far < 2; far++) {
		place_four(3, far ? NEAR_SOCKET : NEAR_SWITCH, far ? NEAR_FAR : NEAR_SOCKET, &f);
		assert_int_equal(f.groups.n, 0);
		assert_int_equal(f.shared.n, 2);
		f.times.ns[OPERATION_BROADCAST][PIPED_TWO][0] = 1;
		assert_true(tuned_is_older(&f.times, &f));
		f.times.ns[OPERATION_BROADCAST][PIPED_CHAIN][0] = 1;
		assert_false(tuned_is_older(&f.times, &f));
	}
	place_four(4, NEAR_SWITCH, NEAR_SOCKET, &f);
	assert_int_equal(f.shared.n, 0);
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
					 .crossing = {{3}, {6}}};
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

/*
 * What was not measured at a size does not compete there; nor does what cannot run, whatever the
 * table says.
 */
static void only_what_was_measured_and_can_run_competes(void **state)
{
	const struct choice_request odd = {.operation = OPERATION_ALL_REDUCE,
					   .piece = {8},
					   .crossing = {{3}, {6}}};
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
					      .crossing = {{3}, {3}}},
	       ALGORITHM_N, &p);
	assert_false(p.measured);
}

/*
 * Measured on 4 H100: a reduce in two flagged steps takes 13 us for 256 KiB, in one step 9 us;
 * through the host 21 and 14 us for 64 KiB.
 */
static void a_reduce_goes_in_one_step_for_longer(void **state)
{
	(void)state;
	for (unsigned direct = 0; direct < 2; direct++) {
		const uint64_t bytes = direct ? 256 * KIB : 64 * KIB;
		struct comm_facts f;
		struct choice p;

		comm_facts_make(4, direct, BLOCKS, THREADS, &f);
		operation_count(&f);
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
	assert_true(!s.inbox.size || !s.host.size);
	return s.inbox.size + s.host.size;
}

/*
 * Nearly everything that a rank allocates on its GPU, or all ranks on the host, as onehop.h and
 * docs/collectives.md say.
 */
static void slots_have_their_limit(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= COLLECTIVE_RANKS_MAX; n++) {
		assert_true(slots_size(n, true) < 64 * MIB);
		assert_true(slots_size(n, false) < 103 * MIB);
	}
	assert_int_equal(slots_size(2, true) / MIB, 52);
	assert_int_equal(slots_size(4, true) / MIB, 62);
	assert_int_equal(slots_size(8, true) / MIB, 63);
	assert_int_equal(slots_size(2, false) / MIB, 102);
	assert_int_equal(slots_size(4, false) / MIB, 80);
	assert_int_equal(slots_size(8, false) / MIB, 102);
}

static uint32_t random_mask(void)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (uint32_t)(seed >> 32);
}

/*
 * Where only some pairs are direct there are both, neither larger than where the other one does not
 * exist.
 */
static void slots_of_some_pairs_have_their_limit(void **state)
{
	(void)state;
	for (unsigned n = 2; n <= COLLECTIVE_RANKS_MAX; n++)
		for (unsigned i = 0; i < 200; i++) {
			uint32_t reach[COLLECTIVE_RANKS_MAX];
			struct comm_facts f;
			struct slots s;

			for (unsigned r = 0; r < n; r++)
				reach[r] = i % 2 ? random_mask() : random_mask() & random_mask();
			comm_facts_mix(n, reach, 132, 1024, &f);
			slots_make(&f, &s);
			assert_true(s.inbox.size < 64 * MIB && s.host.size < 103 * MIB);
			assert_true(f.pair_blocks >= 1 && f.slot_bytes >= 2048);
		}
}

/* ---- where slots are ---- */

/*
 * What one rank writes for another is what that one reads, in its own inbox or in the host's
 * memory.
 */
static void check_meeting(const struct comm_facts *f, const struct slots *s, enum slots_area area,
			  unsigned from, unsigned to, const struct slots_seen seen[2])
{
	struct collective_ways ways[2];
	const u64 row = s->row[area];
	u64 at;

	for (unsigned shared = 0; shared < 2; shared++) {
		slots_ways(f, s, area, shared, from, &seen[0], &ways[0]);
		slots_ways(f, s, area, shared, to, &seen[1], &ways[1]);
		at = ways[1].from[from];
		assert_int_equal(ways[0].to[to], at);
		if (is_direct(f, from, to))
			assert_in_range(at, seen[1].inbox[to] + s->inbox.offset[area],
					seen[1].inbox[to] + s->inbox.size - row);
		else
			assert_in_range(at, seen[1].host + s->host.offset[area],
					seen[1].host + s->host.size - row);
		if (shared && !is_direct(f, from, to))
			assert_int_equal(ways[0].to[from], at);
	}
}

/*
 * Two ranks never write to the same place, and one only to two if all read the same there: so they
 * do of what is reduced, which has one place a rank in the host's memory.
 */
static void check_apart(const struct comm_facts *f, const struct slots *s, enum slots_area area,
			const struct slots_seen *seen)
{
	u64 places[COLLECTIVE_RANKS_MAX * COLLECTIVE_RANKS_MAX];
	struct collective_ways ways;
	unsigned n = 0;

	for (unsigned from = 0; from < f->n; from++) {
		slots_ways(f, s, area, false, from, seen, &ways);
		for (unsigned to = 0; to < f->n; to++)
			if (is_direct(f, from, to) ? from != to : area != AREA_SECOND || from == to)
				places[n++] = ways.to[to];
	}
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			assert_true(places[i] + s->row[area] <= places[j] ||
				    places[j] + s->row[area] <= places[i]);
}

static void check_slots(const struct comm_facts *f)
{
	struct slots_seen seen = {.host = 1ul << 40}, two[2];
	struct slots s;

	slots_make(f, &s);
	for (unsigned r = 0; r < f->n; r++)
		seen.inbox[r] = (r + 1ul) << 30;
	two[0] = two[1] = seen;
	for (unsigned area = 0; area < AREA_N; area++) {
		for (unsigned i = 0; i < f->n * f->n; i++)
			if (i / f->n != i % f->n)
				check_meeting(f, &s, (enum slots_area)area, i / f->n, i % f->n,
					      two);
		check_apart(f, &s, (enum slots_area)area, &seen);
	}
}

static void rows_of_ranks_are_apart(void **state)
{
	struct comm_facts f;

	(void)state;
	for (unsigned n = 2; n <= COLLECTIVE_RANKS_MAX; n++) {
		uint32_t reach[COLLECTIVE_RANKS_MAX];

		for (unsigned direct = 0; direct < 2; direct++) {
			comm_facts_make(n, direct, 132, 1024, &f);
			check_slots(&f);
		}
		for (unsigned i = 0; i < 40; i++) {
			for (unsigned r = 0; r < n; r++)
				reach[r] = random_mask();
			comm_facts_mix(n, reach, 132, 1024, &f);
			check_slots(&f);
		}
	}
}

/* ---- where only some pairs are direct ---- */

/* Two groups of n / 2 ranks that reach each other over paths that are that near, and no others. */
static void make_halves(unsigned n, enum nearness near, struct comm_facts *ret)
{
	enum nearness of[COLLECTIVE_RANKS_MAX * COLLECTIVE_RANKS_MAX];
	uint32_t reach[COLLECTIVE_RANKS_MAX] = {0};

	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < n; j++) {
			const bool both = i / (n / 2) == j / (n / 2);

			reach[i] |= (uint32_t)both << j;
			of[i * n + j] = both ? near : NEAR_FAR;
		}
	comm_facts_mix(n, reach, BLOCKS, THREADS, ret);
	comm_facts_place(ret, of, NULL);
	operation_count(ret);
}

static double us_of(const struct comm_facts *f, enum operation o, uint64_t bytes, enum algorithm a)
{
	struct choice p;

	operation_choose(f, o, bytes / 4, ELEMENT_FLOAT32, a, &p);
	assert_int_equal(p.algorithm, a);
	return p.us;
}

static void check_crossing(const struct comm_facts *f, enum operation o, enum steps how,
			   double direct, double host)
{
	const struct crossing *c = &f->crossing[o][how];

	if (fabs(c->direct - direct) > 1e-9 || fabs(c->host - host) > 1e-9)
		fail_msg("operation %d in way %d: %g pieces directly and %g through the host, not "
			 "%g and %g",
			 (int)o, (int)how, c->direct, c->host, direct, host);
}

/*
 * Of two ranks of four, the pieces for each other go through the host's memory; a root with few
 * direct ranks is the slowest.
 */
static void what_crosses_links_is_counted(void **state)
{
	uint32_t reach[4] = {0xc, 0xc, 0xf, 0xf};
	struct comm_facts f;

	(void)state;
	for (unsigned direct = 0; direct < 2; direct++) {
		comm_facts_make(4, direct, BLOCKS, THREADS, &f);
		operation_count(&f);
		check_crossing(&f, OPERATION_ALL_REDUCE, STEPS_ONE, direct ? 3 : 0, direct ? 0 : 3);
		check_crossing(&f, OPERATION_ALL_REDUCE, STEPS_TWO, direct ? 6 : 0, direct ? 0 : 6);
		check_crossing(&f, OPERATION_BROADCAST, STEPS_ONE, direct ? 3 : 0, direct ? 0 : 1);
		check_crossing(&f, OPERATION_REDUCE, STEPS_TWO, direct ? 3 : 0, direct ? 0 : 3);
		check_crossing(&f, OPERATION_ALL_TO_ALL, STEPS_ONE, direct ? 3 : 0, direct ? 0 : 3);
	}
	comm_facts_mix(4, reach, BLOCKS, THREADS, &f);
	operation_count(&f);
	check_crossing(&f, OPERATION_ALL_REDUCE, STEPS_TWO, 4, 2);
	check_crossing(&f, OPERATION_ALL_GATHER, STEPS_ONE, 2, 1);
	check_crossing(&f, OPERATION_BROADCAST, STEPS_ONE, 2, 1);
}

/*
 * Large sums cross the host's memory once; all else takes as long as through it, or somewhat less.
 */
static void some_direct_pairs_are_used_in_levels(void **state)
{
	static const enum nearness near[] = {NEAR_NVLINK, NEAR_SWITCH, NEAR_SOCKET, NEAR_UNKNOWN};

	(void)state;
	for (unsigned n = 4; n <= 8; n += 2)
		for (size_t k = 0; k < ARRAY_LEN(near); k++) {
			struct comm_facts f, host;
			struct choice p;

			make_halves(n, near[k], &f);
			comm_facts_make(n, false, BLOCKS, THREADS, &host);
			operation_count(&host);
			assert_true(f.mixed && !f.direct);
			assert_int_equal(f.groups.size, n / 2);
			operation_choose(&f, OPERATION_ALL_REDUCE, 16 * MIB, ELEMENT_FLOAT32,
					 ALGORITHM_N, &p);
			assert_int_equal(p.algorithm, PIPED_LEVELS);
			operation_choose(&f, OPERATION_ALL_REDUCE, 2, ELEMENT_FLOAT32, ALGORITHM_N,
					 &p);
			assert_int_equal(p.algorithm, FLAGGED_ONE);
			operation_choose(&f, OPERATION_ALL_GATHER, 16 * MIB, ELEMENT_FLOAT32,
					 ALGORITHM_N, &p);
			assert_int_equal(p.algorithm, PIPED_ONE);
			if (near[k] == NEAR_NVLINK) {
				const double part = us_of(&f, OPERATION_ALL_REDUCE, 64 * MIB,
							  PIPED_TWO),
					     none = us_of(&host, OPERATION_ALL_REDUCE, 64 * MIB,
							  PIPED_TWO);

				assert_true(part < none && part > none / 2);
			}
		}
}

/* Every rank of a group reaches all others of it: a refused pair within a group leaves none. */
static void groups_are_direct_within(void **state)
{
	enum nearness of[16];
	uint32_t reach[4] = {2, 1, 8, 0};
	const struct groups given = {2, 2, {0, 0, 1, 1}};
	struct comm_facts f;

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		of[i] = i / 8 == i % 4 / 2 ? NEAR_NVLINK : NEAR_SOCKET;
	comm_facts_mix(4, reach, BLOCKS, THREADS, &f);
	assert_true(f.mixed);
	comm_facts_place(&f, of, &given);
	assert_int_equal(f.groups.n, 0);
	reach[3] = 4;
	comm_facts_mix(4, reach, BLOCKS, THREADS, &f);
	comm_facts_place(&f, of, &given);
	assert_int_equal(f.groups.n, 2);
}

/*
 * The nearest ranks of which each reaches all others of its group, in the largest groups that there
 * are.
 */
static void groups_go_round_pairs_that_are_not_direct(void **state)
{
	static const uint8_t sockets[] = {0, 0, 0, 0, 1, 1, 1, 1};
	uint32_t reach[8];
	enum nearness of[64];
	struct comm_facts f;

	(void)state;
	memset(reach, 0xff, sizeof(reach));
	for (unsigned i = 0; i < 64; i++)
		of[i] = i / 32 == i % 8 / 4 ? NEAR_SOCKET : NEAR_FAR;
	reach[2] &= ~(1u << 7); /* one way, between the sockets, which are groups all the same */
	comm_facts_mix(8, reach, BLOCKS, THREADS, &f);
	comm_facts_place(&f, of, NULL);
	assert_memory_equal(f.groups.of, sockets, sizeof(sockets));
	reach[1] &= ~1u; /* one way, within a socket */
	comm_facts_mix(8, reach, BLOCKS, THREADS, &f);
	comm_facts_place(&f, of, NULL);
	assert_int_equal(f.groups.size, 2);
	assert_int_equal(f.groups.n, 4);
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < i; j++)
			if (f.groups.of[i] == f.groups.of[j]) {
				assert_int_equal(i / 4, j / 4);
				assert_true(i != 1 || j != 0);
			}
	/* What they share is the link between the sockets, whatever the groups. */
	assert_memory_equal(f.shared.of, sockets, sizeof(sockets));
}

/* What the shim takes over, and what is said of its gain, are of the same sizes. */
static void ranges_of_what_is_faster_are_its_sizes(void **state)
{
	const struct faster *f;

	(void)state;
	for (size_t i = 0; (f = faster_at(i)); i++) {
		uint64_t before = 0;

		for (unsigned k = 0; k < FASTER_RANGES; k++) {
			const struct faster_range *r = &f->ranges[k];

			assert_true(r->bytes > before);
			assert_true(r->least >= f->least && r->least <= r->most &&
				    r->most <= f->most && r->most < 1);
			before = r->bytes;
		}
		assert_int_equal(before, f->bytes);
		assert_ptr_equal(faster_find(f->operation, f->ranks, f->direct, f->bytes / 4,
					     ELEMENT_FLOAT32, REDUCE_SUM),
				 f);
		assert_null(faster_find(f->operation, f->ranks, f->direct, f->bytes / 4 + 1,
					ELEMENT_FLOAT32, REDUCE_SUM));
	}
}

/* Those of all lanes at once, unless even one of each has no room. */
static void blocks_of_sends_run_at_once(void **state)
{
	static const struct {
		unsigned n, blocks, resident, expected;
		bool direct;
	} rows[] = {
		{2, 132, 768, 128, true}, {4, 132, 768, 64, true},  {8, 132, 768, 32, true},
		{8, 24, 768, 10, true},   {4, 24, 768, 8, false},   {3, 1, 512, 1, false},
		{8, 2, 256, 1, true},     {1, 132, 768, 128, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct comm_facts f;

		comm_facts_make(rows[i].n, rows[i].direct, rows[i].blocks, 1024, &f);
		comm_facts_fit(&f, rows[i].resident);
		assert_int_equal(f.pair_blocks, rows[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_of_what_is_faster_are_its_sizes),
		cmocka_unit_test(the_fastest_measured_is_chosen),
		cmocka_unit_test(estimates_are_near_what_was_measured),
		cmocka_unit_test(every_size_has_a_grid),
		cmocka_unit_test(what_goes_one_way_has_large_chunks),
		cmocka_unit_test(the_cheapest_estimate_is_chosen),
		cmocka_unit_test(measured_times_are_preferred_to_estimates),
		cmocka_unit_test(only_what_was_measured_and_can_run_competes),
		cmocka_unit_test(large_sums_go_in_levels_between_groups),
		cmocka_unit_test(what_is_large_goes_in_a_chain_across_a_shared_link),
		cmocka_unit_test(sums_in_a_chain),
		cmocka_unit_test(groups_of_different_sizes_share_links),
		cmocka_unit_test(a_reduce_goes_in_one_step_for_longer),
		cmocka_unit_test(slots_of_pairs_have_their_limit),
		cmocka_unit_test(slots_have_their_limit),
		cmocka_unit_test(slots_of_some_pairs_have_their_limit),
		cmocka_unit_test(rows_of_ranks_are_apart),
		cmocka_unit_test(what_crosses_links_is_counted),
		cmocka_unit_test(some_direct_pairs_are_used_in_levels),
		cmocka_unit_test(groups_are_direct_within),
		cmocka_unit_test(groups_go_round_pairs_that_are_not_direct),
		cmocka_unit_test(blocks_of_sends_run_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
