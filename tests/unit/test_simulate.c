/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/simulate: the model's times next to measured ones (docs/performance.md, "The model"),
 * properties that hold on every machine, and what it refuses.
 */
#include "session/simulate_session.h"

#include "base/array.h"
#include "base/err.h"
#include "base/source.h"
#include "build_machine.h"
#include "ingest/observe.h"
#include "kernels/typed.h"
#include "recording/recording.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB 1024ul
#define MIB (1024 * KIB)

#define CASE "tests/figures/rtx4090x8/"

/* ---- machines ---- */

static struct machine *read_recording(const char *path)
{
	struct machine_request request = {.parts = MACHINE_ALL};
	struct source *s = NULL;
	struct machine *m;

	if (recording_open(path, &s) < 0)
		fail_msg("%s", err_msg());
	m = machine_read(s, &request);
	source_free(s);
	return m;
}

static struct machine *read_machine(const char *name, const char *observed)
{
	struct machine *m;
	char path[256];

	snprintf(path, sizeof(path), "tests/machines/%s", name);
	m = read_recording(path);
	if (observed && observe_files((const char *const *)&observed, 1, m) < 0)
		fail_msg("%s", err_msg());
	return m;
}

static void run(struct simulate_session *s, const struct machine *m,
		const struct collective_choice *o)
{
	struct collective_choice choice = *o;

	choice.engine = ENGINE_ONEHOP;
	choice.one_place = choice.simulate = true;
	if (simulate_session_run(s, m, &choice) < 0)
		fail_msg("%s", err_msg());
}

static bool is_direct_arm(const struct simulated_arm *arm)
{
	return simulated_paths(&arm->simulation).direct;
}

static const struct simulated_row *row_of(const struct simulated_arm *arm, uint64_t bytes)
{
	for (size_t i = 0; i < arm->row_n; i++)
		if (arm->rows[i].bytes == bytes)
			return &arm->rows[i];
	fail_msg("no row of %llu bytes", (unsigned long long)bytes);
	return NULL;
}

/* ---- next to measured times ---- */

#define BOUND 0.20

/*
 * `known`: the error that docs/performance.md states, where it is above the bound; 0: the bound
 * holds.
 */
static void compare(const char *what, uint64_t bytes, double model, double measured, double known)
{
	const double error = model / measured - 1;

	if (getenv("SIMULATE_PRINT"))
		print_message("# %-28s %10llu %10.2f %10.2f %+5.0f %%\n", what,
			      (unsigned long long)bytes, measured, model, 100 * error);
	if (known == 0 ? fabs(error) > BOUND : fabs(error - known) > 0.01)
		if (!getenv("SIMULATE_PRINT"))
			fail_msg("%s, %llu bytes: %.2f us in the model, %.2f measured: %+.1f %%",
				 what, (unsigned long long)bytes, model, measured, 100 * error);
}

struct measured {
	unsigned n;
	bool direct;
	enum algorithm a;
	uint64_t bytes;
	double us;
	double known;
};

/* Where the times are from. */
struct source {
	const char *what;
	unsigned data_bytes; /* in a unit of 16 bytes; 12 now */
	double less_us;      /* that an empty kernel took than in the model, 0.67 us */
};

static void compare_h200(const struct source *from, const struct measured *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct measured *row = &rows[i];
		const uint64_t bytes =
			is_piped(row->a) ? row->bytes : row->bytes * 12 / from->data_bytes;
		char size[32];
		const struct collective_choice o = {.graph = 1,
						    .min = size,
						    .max = size,
						    .p2p_off = true};
		struct machine *m = read_machine(row->n == 2 ? "h200x2" : "h200x4", NULL);
		struct simulate_session s;
		char name[64];

		snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
		run(&s, m, &o);
		assert_true(is_direct_arm(&s.arms[0]) && !is_direct_arm(&s.arms[1]));
		snprintf(name, sizeof(name), "%s, n=%u%s, %s", from->what, row->n,
			 row->direct ? "" : ", host", algorithm_word(row->a));
		compare(name, row->bytes,
			row_of(&s.arms[!row->direct], bytes)->us[row->a] - from->less_us, row->us,
			row->known);
		simulate_session_done(&s);
		machine_free(m);
	}
}

/* There an empty kernel took 0.55 (2 GPUs) and 0.60 us (4). */
static const struct source trials = {"trial", 8, 0.09}, library = {"library", 12, 0};

/*
 * Trial kernels between H200 with the same plans as libonehop's, in graphs; at 1 MiB and above
 * their chunks differ.
 */
static void trials_between_h200(void **state)
{
	static const struct measured rows[] = {
		{2, true, FLAGGED_ONE, 8, 1.8, 0},
		{2, true, FLAGGED_ONE, 256, 1.8, 0},
		{2, true, FLAGGED_ONE, 1 * KIB, 2.0, 0},
		{2, true, FLAGGED_ONE, 8 * KIB, 2.2, 0},
		{2, true, FLAGGED_ONE, 32 * KIB, 2.4, 0},
		{2, true, FLAGGED_ONE, 64 * KIB, 2.5, 0},
		{2, true, FLAGGED_ONE, 128 * KIB, 2.9, 0},
		{2, true, FLAGGED_ONE, 256 * KIB, 3.8, 0},
		{2, true, FLAGGED_ONE, 512 * KIB, 5.5, 0},
		{2, true, FLAGGED_TWO, 8 * KIB, 3.0, 0},
		{2, true, FLAGGED_TWO, 32 * KIB, 3.2, 0},
		{2, true, FLAGGED_TWO, 64 * KIB, 3.3, 0},
		{2, true, FLAGGED_TWO, 128 * KIB, 3.6, 0},
		{2, true, FLAGGED_TWO, 256 * KIB, 4.3, 0.21},
		{2, true, FLAGGED_TWO, 512 * KIB, 6.2, 0},
		{2, true, FLAGGED_TWO, 1 * MIB, 9.2, 0},
		{4, true, FLAGGED_ONE, 8, 2.0, 0},
		{4, true, FLAGGED_ONE, 256, 2.05, 0},
		{4, true, FLAGGED_ONE, 1 * KIB, 2.15, 0},
		{4, true, FLAGGED_ONE, 8 * KIB, 2.5, 0},
		{4, true, FLAGGED_ONE, 32 * KIB, 2.9, 0},
		{4, true, FLAGGED_ONE, 64 * KIB, 3.5, 0},
		{4, true, FLAGGED_ONE, 128 * KIB, 4.6, 0},
		{4, true, FLAGGED_ONE, 256 * KIB, 6.9, 0},
		{4, true, FLAGGED_ONE, 512 * KIB, 11.6, 0},
		{4, true, FLAGGED_TWO, 8 * KIB, 3.8, 0},
		{4, true, FLAGGED_TWO, 32 * KIB, 3.9, 0},
		{4, true, FLAGGED_TWO, 64 * KIB, 4.0, 0},
		{4, true, FLAGGED_TWO, 128 * KIB, 4.2, 0},
		{4, true, FLAGGED_TWO, 256 * KIB, 5.1, 0},
		{4, true, FLAGGED_TWO, 512 * KIB, 7.2, 0.21},
		{4, true, FLAGGED_TWO, 1 * MIB, 12.2, 0},
		{2, true, PIPED_TWO, 1 * MIB, 10.8, 0},
		{2, true, PIPED_TWO, 4 * MIB, 19.4, 0},
		{2, true, PIPED_TWO, 16 * MIB, 55.8, 0},
		{2, true, PIPED_TWO, 64 * MIB, 197, 0},
		{2, true, PIPED_TWO, 256 * MIB, 757, 0},
		{2, true, PIPED_TWO, 512 * MIB, 1499, 0},
		{4, true, PIPED_TWO, 1 * MIB, 13.7, -0.24},
		{4, true, PIPED_TWO, 4 * MIB, 26.5, 0},
		{4, true, PIPED_TWO, 16 * MIB, 79.7, 0},
		{4, true, PIPED_TWO, 64 * MIB, 298, 0},
		{4, true, PIPED_TWO, 256 * MIB, 1171, 0},
		{4, true, PIPED_TWO, 512 * MIB, 2314, 0},
	};

	(void)state;
	compare_h200(&trials, rows, ARRAY_LEN(rows));
}

/*
 * The better of one and two steps was recorded for the small sizes. Flagged trials above 256 KiB (2
 * ranks) and 512 KiB (4)
 * used more blocks than libonehop has slots for, so they are no plan of its. 16 and 128 MiB from their bus bandwidth: 128 MiB from 39.0 and 39.1 GB/s of bus bandwidth. */
static void trials_through_the_host(void **state)
{
	static const struct measured rows[] = {
		{2, false, FLAGGED_ONE, 8, 2.7, 0},
		{2, false, FLAGGED_ONE, 256, 2.8, 0},
		{2, false, FLAGGED_ONE, 1 * KIB, 2.95, 0},
		{2, false, FLAGGED_ONE, 8 * KIB, 3.5, 0},
		{2, false, FLAGGED_ONE, 32 * KIB, 5.4, 0},
		{2, false, FLAGGED_ONE, 64 * KIB, 7.3, 0},
		{2, false, FLAGGED_ONE, 128 * KIB, 11.5, 0},
		{2, false, FLAGGED_TWO, 256 * KIB, 18.2, 0},
		{4, false, FLAGGED_ONE, 8, 3.2, 0},
		{4, false, FLAGGED_ONE, 256, 3.2, 0},
		{4, false, FLAGGED_ONE, 1 * KIB, 3.4, 0},
		{4, false, FLAGGED_ONE, 8 * KIB, 5.3, 0},
		{4, false, FLAGGED_TWO, 32 * KIB, 9.3, 0},
		{4, false, FLAGGED_TWO, 64 * KIB, 11.2, 0},
		{4, false, FLAGGED_TWO, 128 * KIB, 16.5, 0},
		{4, false, FLAGGED_TWO, 256 * KIB, 27.3, 0},
		{4, false, FLAGGED_TWO, 512 * KIB, 48.7, 0},
		{2, false, PIPED_TWO, 1 * MIB, 54, 0},
		{2, false, PIPED_TWO, 16 * MIB, 534, 0},
		{2, false, PIPED_TWO, 128 * MIB, 3441, 0},
		{4, false, PIPED_TWO, 1 * MIB, 66, 0},
		{4, false, PIPED_TWO, 16 * MIB, 736, 0},
		{4, false, PIPED_TWO, 128 * MIB, 5149, 0},
	};

	(void)state;
	compare_h200(&trials, rows, ARRAY_LEN(rows));
}

/*
 * libonehop on 2 and 4 H200, 2026-11-28, directly and through the host's memory: the table of
 * docs/performance.md.
 */
static void the_library_on_h200(void **state)
{
	static const struct measured rows[] = {
		{2, true, FLAGGED_ONE, 8, 1.98, 0},
		{2, true, FLAGGED_ONE, 256, 2.04, 0},
		{2, true, FLAGGED_ONE, 1 * KIB, 2.05, 0},
		{2, true, FLAGGED_ONE, 8 * KIB, 2.29, 0},
		{2, true, FLAGGED_ONE, 32 * KIB, 2.45, 0},
		{2, true, FLAGGED_ONE, 64 * KIB, 2.55, 0},
		{2, true, FLAGGED_ONE, 128 * KIB, 2.80, 0},
		{2, true, FLAGGED_ONE, 256 * KIB, 3.29, 0},
		{2, true, FLAGGED_ONE, 512 * KIB, 4.28, 0},
		{2, true, FLAGGED_ONE, 1 * MIB, 6.59, 0},
		{2, true, FLAGGED_TWO, 2 * MIB, 11.03, 0},
		{2, true, PIPED_ONE, 4 * MIB, 19.45, 0},
		{2, true, PIPED_TWO, 8 * MIB, 33.70, 0},
		{2, true, PIPED_TWO, 16 * MIB, 55.24, 0},
		{2, true, PIPED_TWO, 32 * MIB, 101.17, 0},
		{2, true, PIPED_TWO, 64 * MIB, 194.12, 0},
		{2, true, PIPED_TWO, 128 * MIB, 379.02, 0},
		{2, true, PIPED_TWO, 256 * MIB, 748.05, 0},
		{4, true, FLAGGED_ONE, 8, 2.30, 0},
		{4, true, FLAGGED_ONE, 256, 2.38, 0},
		{4, true, FLAGGED_ONE, 1 * KIB, 2.43, 0},
		{4, true, FLAGGED_ONE, 8 * KIB, 2.68, 0},
		{4, true, FLAGGED_ONE, 32 * KIB, 3.08, 0},
		{4, true, FLAGGED_ONE, 64 * KIB, 3.52, 0},
		{4, true, FLAGGED_ONE, 128 * KIB, 4.45, 0},
		{4, true, FLAGGED_TWO, 256 * KIB, 5.35, 0},
		{4, true, FLAGGED_TWO, 512 * KIB, 6.92, 0},
		{4, true, FLAGGED_TWO, 1 * MIB, 10.79, 0},
		{4, true, FLAGGED_TWO, 2 * MIB, 19.11, 0},
		{4, true, PIPED_TWO, 4 * MIB, 29.98, 0},
		{4, true, PIPED_TWO, 8 * MIB, 48.10, 0},
		{4, true, PIPED_TWO, 16 * MIB, 83.70, 0},
		{4, true, PIPED_TWO, 32 * MIB, 157.26, 0},
		{4, true, PIPED_TWO, 64 * MIB, 304.92, 0},
		{4, true, PIPED_TWO, 128 * MIB, 596.72, 0},
		{4, true, PIPED_TWO, 256 * MIB, 1176.47, 0},
		{2, false, FLAGGED_ONE, 8, 2.89, 0},
		{2, false, FLAGGED_ONE, 256, 3.14, 0},
		{2, false, FLAGGED_ONE, 1 * KIB, 3.19, 0},
		{2, false, FLAGGED_ONE, 8 * KIB, 3.07, 0},
		{2, false, FLAGGED_ONE, 32 * KIB, 4.75, 0},
		{2, false, FLAGGED_ONE, 64 * KIB, 6.12, 0},
		{2, false, FLAGGED_ONE, 128 * KIB, 8.75, 0},
		{2, false, FLAGGED_TWO, 256 * KIB, 13.63, 0},
		{2, false, PIPED_ONE, 512 * KIB, 29.68, 0},
		{2, false, PIPED_TWO, 1 * MIB, 45.53, 0},
		{2, false, PIPED_TWO, 2 * MIB, 77.38, 0},
		{2, false, PIPED_TWO, 4 * MIB, 137.58, 0},
		{2, false, PIPED_TWO, 8 * MIB, 247.69, 0},
		{2, false, PIPED_TWO, 16 * MIB, 453.50, 0},
		{2, false, PIPED_TWO, 32 * MIB, 862.16, 0},
		{2, false, PIPED_TWO, 64 * MIB, 1674.76, 0},
		{2, false, PIPED_TWO, 128 * MIB, 3298.00, 0},
		{2, false, PIPED_TWO, 256 * MIB, 6541.83, 0},
		{4, false, FLAGGED_ONE, 8, 3.53, 0},
		{4, false, FLAGGED_ONE, 256, 3.65, 0},
		{4, false, FLAGGED_ONE, 1 * KIB, 3.71, 0},
		{4, false, FLAGGED_ONE, 8 * KIB, 4.40, 0},
		{4, false, FLAGGED_ONE, 32 * KIB, 6.39, 0},
		{4, false, FLAGGED_TWO, 64 * KIB, 9.53, 0},
		{4, false, FLAGGED_TWO, 128 * KIB, 12.69, 0},
		{4, false, FLAGGED_TWO, 256 * KIB, 21.22, 0},
		{4, false, FLAGGED_TWO, 512 * KIB, 41.41, -0.27},
		{4, false, PIPED_TWO, 1 * MIB, 62.09, 0},
	};

	(void)state;
	compare_h200(&library, rows, ARRAY_LEN(rows));
}

/* Lines of nccl-tests' table: size, and the time out of place. */
static void compare_nccl(const char *file, const char *what, const struct simulated_arm *arm,
			 const double *known)
{
	FILE *f = fopen(file, "re");
	char line[512];
	size_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long bytes;
		double us;

		if (sscanf(line, " %lu %*u float sum -1 %lf", &bytes, &us) != 2)
			continue;
		compare(what, bytes, row_of(arm, bytes)->nccl.time_us, us, known[n]);
		n++;
	}
	fclose(f);
	assert_int_equal(n, 25);
}

/* The published times of NCCL on 8 RTX 4090, before and after P2P was enabled. */
static void nccl_on_8_rtx_4090(void **state)
{
	/* Largest at 512 KiB: -20.1 % after, -19.9 % before. */
	static const double none[25], at_512k[25] = {[16] = -0.201};
	const struct collective_choice o = {.against = 1};
	struct machine *before = read_machine("rtx4090x8-before", NULL);
	struct machine *after =
		read_machine("rtx4090x8-after", CASE "p2pBandwidthLatencyTest-after.txt");
	struct simulate_session s;

	(void)state;
	run(&s, after, &o);
	assert_true(is_direct_arm(&s.arms[0]));
	assert_int_equal(s.measured, 56);
	compare_nccl(CASE "nccl-all_reduce-after.txt", "NCCL, after", &s.arms[0], at_512k);
	simulate_session_done(&s);
	run(&s, before, &o);
	assert_false(is_direct_arm(&s.arms[0]));
	assert_true(s.blocked.n);
	compare_nccl(CASE "nccl-all_reduce-before.txt", "NCCL, before", &s.arms[0], none);
	simulate_session_done(&s);
	machine_free(before);
	machine_free(after);
}

/* ---- on any machine ---- */

static uint64_t seed = 7;

static unsigned next_random(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed ^ seed >> 29) % below);
}

static double random_rate(void)
{
	return 1 + next_random(400);
}

/*
 * Links of their own for each device, both ways, and between any two; `shared`: also one that all
 * use.
 */
static struct paths *make_paths(unsigned n, bool shared)
{
	struct paths *p;

	assert_int_equal(paths_new(n, &p), 0);
	for (unsigned i = 0; i < n; i++) {
		p->hosts[i].expected_gbps = random_rate();
		assert_int_equal(link_list_add(&p->hosts[i].to_host, 2 * i), 0);
		assert_int_equal(link_list_add(&p->hosts[i].from_host, 2 * i + 1), 0);
		for (unsigned j = 0; j < n; j++) {
			struct pair_path *pair = paths_pair(p, i, j);

			if (i == j)
				continue;
			pair->expected_gbps = random_rate();
			snprintf(pair->class, sizeof(pair->class), "PIX");
			assert_int_equal(link_list_add(&pair->links, 2 * i), 0);
			assert_int_equal(link_list_add(&pair->links, 2 * j + 1), 0);
			if (shared)
				assert_int_equal(link_list_add(&pair->links, 1000), 0);
		}
	}
	return p;
}

/* All pairs, none, or any. */
static void reach_random(struct simulation *s)
{
	const unsigned kind = next_random(3);

	for (unsigned i = 0; i < SIMULATED_RANKS_MAX; i++)
		s->reach[i] = kind == 0 ? 0 : kind == 1 ? ~0u : next_random(1u << 16);
}

static struct simulation random_simulation(const struct paths *p)
{
	struct simulation s = {
		.paths = p,
		.nccl = true,
		.plan = {.engine = ENGINE_ONEHOP,
			 .op = (enum nccl_op)next_random(NCCL_SEND_RECV),
			 .type = (enum element_type)next_random(ELEMENT_TYPE_N),
			 .root = (int)next_random(p->device_n),
			 .min_bytes = 1 + next_random(4096),
			 .max_bytes = 1ul << 30,
			 .factor = 2 + next_random(9),
			 .graph = 1},
	};

	reach_random(&s);
	return s;
}

static void run_rows(const struct simulation *s, struct simulated_row **rows, size_t *n)
{
	if (simulate(s, rows, n) < 0)
		fail_msg("%s", err_msg());
}

/* No plan is faster than the fastest link with the least data that the operation can move. */
static void nothing_beats_the_links(const struct simulation *s, const struct simulated_row *row)
{
	double best = 0;

	for (unsigned i = 0; i < s->paths->device_n; i++) {
		if (s->paths->hosts[i].expected_gbps > best)
			best = s->paths->hosts[i].expected_gbps;
		for (unsigned j = 0; j < s->paths->device_n; j++)
			if (paths_pair(s->paths, i, j)->expected_gbps > best)
				best = paths_pair(s->paths, i, j)->expected_gbps;
	}
	/* Through the host, a rank of n sends its data up once, and not n - 1 times. */
	if (row->own.busbw_gbps > best * (simulated_paths(s).direct ? 1 : 2))
		fail_msg("%s, %u ranks, %llu bytes: %.1f GB/s over links of at most %.1f",
			 nccl_op_words[s->plan.op], s->paths->device_n,
			 (unsigned long long)row->bytes, row->own.busbw_gbps, best);
}

static void every_plan_takes_time(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		struct paths *p = make_paths(2 + next_random(15), next_random(2));
		const struct simulation s = random_simulation(p);
		struct simulated_row *rows;
		size_t n;

		run_rows(&s, &rows, &n);
		assert_int_equal(n, collective_plan_sizes(&s.plan, s.plan.max_bytes));
		for (size_t k = 0; k < n; k++) {
			assert_true(isfinite(rows[k].own.time_us) && rows[k].own.time_us > 0);
			assert_true(rows[k].own.time_us == rows[k].us[rows[k].choice.algorithm]);
			nothing_beats_the_links(&s, &rows[k]);
			assert_true((rows[k].nccl.time_us > 0) ==
				    (s.plan.op != NCCL_ALL_TO_ALL && !simulated_paths(&s).mixed));
		}
		free(rows);
		paths_free(p);
	}
}

/*
 * The same with every link slower, with one link that all paths share, or started by the host:
 * never faster.
 */
static void less_is_never_faster(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct paths *p = make_paths(2 + next_random(15), false);
		struct simulation s = random_simulation(p);
		struct simulated_row *rows, *worse;
		const int how = i % 3;
		size_t n;

		run_rows(&s, &rows, &n);
		s.plan.graph = how != 2;
		for (unsigned k = 0; k < p->device_n * p->device_n; k++) {
			if (how == 0)
				p->pairs[k].expected_gbps /= 2;
			if (how == 1 && k % (p->device_n + 1))
				assert_int_equal(link_list_add(&p->pairs[k].links, 1000), 0);
		}
		for (unsigned k = 0; how == 0 && k < p->device_n; k++)
			p->hosts[k].expected_gbps /= 2;
		run_rows(&s, &worse, &n);
		for (size_t k = 0; k < n; k++) {
			assert_true(worse[k].own.time_us >= rows[k].own.time_us);
			assert_true(worse[k].nccl.time_us >= rows[k].nccl.time_us);
		}
		free(rows);
		free(worse);
		paths_free(p);
	}
}

/* ---- more than two groups ---- */

/*
 * Where four groups share their links, a group's sum does not go to all others: large sums take no
 * longer than NCCL's ring.
 */
static void sums_between_four_groups(void **state)
{
	const struct collective_choice o = {.graph = 1, .max = "256M", .against = 1};
	struct machine *m = read_recording("tests/simulated/gen5-four-switches");
	struct simulate_session s;

	(void)state;
	run(&s, m, &o);
	for (size_t i = 0; i < s.arms[0].row_n; i++) {
		const struct simulated_row *row = &s.arms[0].rows[i];

		assert_true(row->own.time_us < 1.02 * row->nccl.time_us);
		assert_true(row->bytes < MIB || row->choice.algorithm == PIPED_LEVELS);
	}
	simulate_session_done(&s);
	machine_free(m);
}

/*
 * On two sockets the link between them carries each byte of what is large once, not twice or more.
 */
static void chains_between_sockets(void **state)
{
	static const enum nccl_op ops[] = {NCCL_BROADCAST, NCCL_REDUCE, NCCL_ALL_GATHER,
					   NCCL_REDUCE_SCATTER};
	struct machine *m =
		read_machine("rtx4090x8-after", CASE "p2pBandwidthLatencyTest-after.txt");

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(ops); k++) {
		const struct collective_choice o = {.graph = 1,
						    .op = 1 + (int)ops[k],
						    .min = "4M",
						    .max = "256M"};
		struct simulate_session s;

		run(&s, m, &o);
		for (size_t i = 0; i < s.arms[0].row_n; i++) {
			const struct simulated_row *row = &s.arms[0].rows[i];
			const double two = row->us[PIPED_TWO];

			assert_int_equal(row->choice.algorithm, PIPED_CHAIN);
			assert_true(row->own.time_us < 0.7 * (two > 0 ? two : row->us[PIPED_ONE]));
		}
		simulate_session_done(&s);
	}
	machine_free(m);
}

/* ---- where only some pairs are direct ---- */

static void check_within(const struct simulated_row *row, const struct simulated_row *host,
			 const struct simulated_row *direct)
{
	if (getenv("SIMULATE_PRINT"))
		print_message("# %10llu %10.1f us %-9s, host %10.1f us %-9s, direct %10.1f us\n",
			      (unsigned long long)row->bytes, row->own.time_us,
			      algorithm_word(row->choice.algorithm), host->own.time_us,
			      algorithm_word(host->choice.algorithm), direct->own.time_us);
	assert_true(row->bytes < MIB || row->own.time_us < host->own.time_us);
	assert_true(row->bytes < 4 * MIB || row->choice.algorithm == PIPED_LEVELS);
}

/* RTX 4090 with P2P within each socket alone: large sums cross the host's memory once. */
static void within_sockets_alone(void **state)
{
	const struct collective_choice o = {.graph = 1, .max = "256M", .p2p_off = true};
	struct machine *m =
		read_machine("rtx4090x8-after", CASE "p2pBandwidthLatencyTest-after.txt");
	struct simulated_row *rows;
	struct simulate_session s;
	struct simulation within;
	size_t n;

	(void)state;
	run(&s, m, &o);
	within = s.arms[0].simulation;
	for (unsigned i = 0; i < 64; i++)
		if (s.near[i] == NEAR_FAR)
			within.reach[i / 8] &= ~(1u << i % 8);
	assert_true(simulated_paths(&within).mixed);
	run_rows(&within, &rows, &n);
	for (size_t i = 0; i < n; i++)
		check_within(&rows[i], row_of(&s.arms[1], rows[i].bytes),
			     row_of(&s.arms[0], rows[i].bytes));
	free(rows);
	simulate_session_done(&s);
	machine_free(m);
}

/*
 * RTX 4090 of which one pair on a socket is not direct: pairs of ranks are groups then, and large
 * sums take up to 1.17 times as long as through the host's memory (docs/collectives.md).
 */
static void one_pair_less(void **state)
{
	const struct collective_choice o = {.graph = 1, .max = "256M", .p2p_off = true};
	struct machine *m =
		read_machine("rtx4090x8-after", CASE "p2pBandwidthLatencyTest-after.txt");
	struct simulated_row *rows;
	struct simulate_session s;
	struct simulation without;
	size_t n;

	(void)state;
	run(&s, m, &o);
	without = s.arms[0].simulation;
	without.reach[0] &= ~2u;
	without.reach[1] &= ~1u;
	assert_true(simulated_paths(&without).mixed);
	run_rows(&without, &rows, &n);
	for (size_t i = 0; i < n; i++) {
		const double us = rows[i].own.time_us;
		const double host = row_of(&s.arms[1], rows[i].bytes)->own.time_us;

		if (getenv("SIMULATE_PRINT"))
			print_message("# one pair less, %llu bytes: %.1f us, host %.1f us\n",
				      (unsigned long long)rows[i].bytes, us, host);
		if (rows[i].bytes < MIB)
			continue;
		assert_true(fabs(rows[i].choice.us / us - 1) < BOUND);
		for (int a = 0; a < ALGORITHM_N; a++)
			assert_false(rows[i].us[a] < us);
		assert_int_equal(rows[i].choice.algorithm, PIPED_LEVELS);
		assert_true(us < 1.17 * host);
	}
	free(rows);
	simulate_session_done(&s);
	machine_free(m);
}

/* ---- what is refused ---- */

static int try_simulation(const struct simulation *s)
{
	struct simulated_row *rows;
	size_t n;

	return simulate(s, &rows, &n);
}

static void bad_input_is_refused(void **state)
{
	struct paths *p = make_paths(4, false), *one = make_paths(1, false),
		     *many = make_paths(SIMULATED_RANKS_MAX + 1, false);
	struct simulation s = random_simulation(p);

	(void)state;
	memset(s.reach, 0xff, sizeof(s.reach));
	s.plan.root = 4;
	assert_int_equal(try_simulation(&s), -EINVAL);
	assert_string_equal(err_msg(), "root 4 is not a rank; ranks are 0 to 3");
	s.plan.root = 0;
	paths_pair(p, 1, 3)->expected_gbps = 0;
	assert_int_equal(try_simulation(&s), -EINVAL);
	assert_non_null(strstr(err_msg(), "from rank 1's GPU to rank 3's is unknown"));
	memset(s.reach, 0, sizeof(s.reach));
	p->hosts[2].expected_gbps = 0;
	assert_int_equal(try_simulation(&s), -EINVAL);
	assert_non_null(strstr(err_msg(), "between rank 2's GPU and the host's memory is unknown"));
	s.paths = one;
	assert_int_equal(try_simulation(&s), -EINVAL);
	s.paths = many;
	assert_int_equal(try_simulation(&s), -EINVAL);
	paths_free(p);
	paths_free(one);
	paths_free(many);
}

/* Only who has not given a recording is told that one can be. */
static void too_few_gpus(void **state)
{
	static const struct {
		const char *gpus;
		bool recorded;
		const char *says;
	} rows[] = {
		{NULL, false,
		 "this machine has only one NVIDIA GPU, and a collective needs 2 or more; --from FILE reads a recording of another machine"},
		{"0", true, "only one GPU is chosen, and a collective needs 2 or more"},
		{"0", false, "only one GPU is chosen, and a collective needs 2 or more"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct collective_choice o = {.simulate = true,
						    .engine = ENGINE_ONEHOP,
						    .devices.gpus = rows[i].gpus};
		struct machine *m = read_machine(rows[i].gpus ? "h200x4" : "h200x1", NULL);
		struct simulate_session s;

		m->recorded = rows[i].recorded;
		assert_int_equal(simulate_session_run(&s, m, &o), -ENODEV);
		assert_string_equal(err_msg(), rows[i].says);
		simulate_session_done(&s);
		machine_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trials_between_h200),
		cmocka_unit_test(trials_through_the_host),
		cmocka_unit_test(the_library_on_h200),
		cmocka_unit_test(nccl_on_8_rtx_4090),
		cmocka_unit_test(every_plan_takes_time),
		cmocka_unit_test(less_is_never_faster),
		cmocka_unit_test(sums_between_four_groups),
		cmocka_unit_test(chains_between_sockets),
		cmocka_unit_test(within_sockets_alone),
		cmocka_unit_test(one_pair_less),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(too_few_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
