// SPDX-License-Identifier: Apache-2.0
/* Chooses the cheapest possible algorithm, by measured times or by a table of costs. */
#include "collective/choose.h"

#define FLAGGED_THREADS 128u
#define PIPED_THREADS   512u
#define DIRECT_THREADS                                                                             \
	256u /* of 3 ranks or more: up to 4 % faster with 4, but up to 1 % slower with 2 */
#define CHUNK_MIN   2048u
#define CHUNKS_MOST 16u /* threads of a block, if one would do */

/* A GPU's memory; and what stays in the host's last-level cache, of all ranks together. */
#define DIRECT_SLOT_BYTES (32u << 20)
#define HOST_SLOT_BYTES   (40u << 20)
#define HOST_PAIR_BYTES   (32u << 20)

/*
 * Stores into another GPU's memory. Measured on H200 (docs/collectives.md), which fixes the rates;
 * slower links change all of them alike, so the order of the algorithms changes little.
 */
static const struct path_costs direct_paths = {{
	[FLAGGED_ONE] = {2.0, 0, 330},
	[FLAGGED_TWO] = {3.2, 0, 350, 6},
	[PIPED_ONE] = {4.5, 1.5, 315},
	[PIPED_TWO] = {5.8, 1.5, 380},
	/* Not measured: as much more as two steps take than one. */
	[PIPED_LEVELS] = {7.1, 1.5, 380},
}};

/*
 * The same over PCIe, which no run of the library has timed: the rates are those above, as much less as a pair of RTX 4090 (25 GB/s one
 * way) is slower than one of H200 (380). A step waits for a small write and for a load, 1.2 us each.
 */
static const struct path_costs pcie_paths = {{
	[FLAGGED_ONE] = {2.0, 0, 22},
	[FLAGGED_TWO] = {3.2, 0, 23, 6},
	[PIPED_ONE] = {4.5, 2.4, 21},
	[PIPED_TWO] = {5.8, 2.4, 25},
	[PIPED_LEVELS] = {7.1, 2.4, 25},
}};

/*
 * Stores into and loads from pinned host memory. One step is from a run of the library that is
 * taken to have used one step, the rest from trial kernels with four chunks a block; what a step
 * takes by itself was not separated from the data.
 */
#define HOST_CHUNKS 4u
static const struct path_costs host_paths = {{
	[FLAGGED_ONE] = {3.0, 0, 40},
	[FLAGGED_TWO] = {6.0, 0, 36, 9},
	[PIPED_ONE] = {20, 0, 30},
	[PIPED_TWO] = {24, 0, 39},
}};

static const char *const words[ALGORITHM_N] = {
	[FLAGGED_ONE] = "flagged-1", [FLAGGED_TWO] = "flagged-2", [PIPED_ONE] = "piped-1",
	[PIPED_TWO] = "piped-2",     [PIPED_LEVELS] = "levels",
};

const char *algorithm_word(enum algorithm a)
{
	return words[a];
}

static unsigned at_most(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

void comm_facts_make(unsigned n, bool direct, unsigned blocks, unsigned threads,
		     struct comm_facts *ret)
{
	const uint64_t most = direct ? DIRECT_SLOT_BYTES : HOST_SLOT_BYTES;
	uint32_t slot = direct ? 64u << 10 : 32u << 10;
	uint64_t slots;

	*ret = (struct comm_facts){.n = n,
				   .direct = direct,
				   .blocks = blocks,
				   .threads = threads,
				   .chunks = direct ? 0 : HOST_CHUNKS,
				   .flagged_threads = at_most(FLAGGED_THREADS, threads),
				   .piped_threads =
					   at_most(direct && n > 2 ? DIRECT_THREADS : PIPED_THREADS,
						   threads),
				   .costs = direct ? direct_paths : host_paths};
	ret->flagged_blocks = at_most(2 * blocks, !direct ? 64 : n > 4 ? 128 : 256);
	ret->piped_blocks = at_most(blocks, direct ? 128 : 64);
	slots = (direct ? 4ul * (n - 1) : 2ul * n * n) * ret->piped_blocks;
	while (slot > CHUNK_MIN && slot * slots > most)
		slot /= 2;
	ret->slot_bytes = slot;
	ret->pair_blocks = at_most(blocks, !direct ? 32 : n > 4 ? 32 : n > 2 ? 64 : 128);
	ret->pair_slot_bytes = direct ? 32u << 10 : 64u << 10;
	while (!direct &&
	       n * n * PAIR_SLOTS * ret->pair_blocks * ret->pair_slot_bytes > HOST_PAIR_BYTES)
		ret->pair_blocks /= 2;
}

void comm_facts_place(struct comm_facts *f, const enum nearness *near)
{
	enum nearness least = NEAR_NVLINK;

	if (!f->direct)
		return;
	for (unsigned i = 0; i < f->n * f->n; i++)
		least = near[i] < least ? near[i] : least;
	if (least > NEAR_UNKNOWN && least < NEAR_NVLINK)
		f->costs = pcie_paths;
	groups_make(f->n, near, &f->groups);
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

static uint64_t piece_of(const struct choice_request *q, enum algorithm a)
{
	return q->piece[steps_of(a)];
}

static bool can(const struct comm_facts *f, const struct choice_request *q, enum algorithm a)
{
	const uint64_t most = (uint64_t)f->flagged_blocks * FLAGGED_UNITS * FLAGGED_DATA_BYTES;

	if (steps_of(a) != STEPS_ONE && !piece_of(q, a))
		return false;
	return is_piped(a) || piece_of(q, a) <= most;
}

static void flagged_grid(const struct comm_facts *f, uint64_t piece, struct choice *p)
{
	uint64_t blocks;

	p->threads = f->flagged_threads;
	blocks = ceil_div(piece, (uint64_t)p->threads * FLAGGED_DATA_BYTES);
	p->blocks = blocks < f->flagged_blocks ? (unsigned)blocks : f->flagged_blocks;
	if (!p->blocks)
		p->blocks = 1;
}

/* chunks: desired number per block. */
static void piped_grid(const struct comm_facts *f, uint64_t piece, unsigned chunks,
		       struct choice *p)
{
	uint64_t chunk = ceil_div(piece, (uint64_t)f->piped_blocks * chunks * 16) * 16, blocks;

	if (chunk < CHUNK_MIN)
		chunk = CHUNK_MIN;
	if (chunk > f->slot_bytes)
		chunk = f->slot_bytes;
	blocks = ceil_div(piece, chunk);
	p->threads = f->piped_threads;
	p->blocks = blocks < f->piped_blocks ? (unsigned)blocks : f->piped_blocks;
	if (!p->blocks)
		p->blocks = 1;
	p->chunk = chunk;
	p->chunks = ceil_div(piece, chunk * p->blocks);
}

/*
 * Units carry as many bytes of flags as of data. A pipeline is only full
 * between its first and its last chunks: meanwhile the link waits as long as one chunk of all blocks takes.
 */
static double cost_us(const struct comm_facts *f, const struct choice_request *q,
		      const struct choice *p)
{
	const struct path_cost *c = &f->costs.of[p->algorithm];
	const enum steps how = steps_of(p->algorithm);
	const double bytes = (double)piece_of(q, p->algorithm) * q->crossing[how];
	const unsigned receivers = (how == STEPS_LEVELS ? f->groups.size : f->n) - 1;
	const double fill = (double)(p->chunk * p->blocks) * receivers;
	const double steps = (double)p->chunks + 1 + how;
	const double start = c->start_us + (q->operation == OPERATION_REDUCE ? c->reduce_us : 0);

	if (!is_piped(p->algorithm))
		return start + 2 * bytes / c->gbps / 1e3;
	return start + c->step_us * steps + (bytes + fill) / c->gbps / 1e3;
}

static void keep_cheaper(const struct comm_facts *f, const struct choice_request *q,
			 struct choice *p, struct choice *best)
{
	p->us = cost_us(f, q, p);
	if (best->algorithm == ALGORITHM_N || p->us < best->us)
		*best = *p;
}

static void try_algorithm(const struct comm_facts *f, const struct choice_request *q,
			  enum algorithm a, struct choice *best)
{
	const unsigned least = f->chunks ? f->chunks : 1,
		       most = f->chunks ? f->chunks : CHUNKS_MOST;
	struct choice p = {.algorithm = a};

	if (!is_piped(a)) {
		flagged_grid(f, piece_of(q, a), &p);
		keep_cheaper(f, q, &p, best);
		return;
	}
	for (unsigned chunks = least; chunks <= most; chunks *= 2) {
		piped_grid(f, piece_of(q, a), chunks, &p);
		keep_cheaper(f, q, &p, best);
	}
}

/*
 * Between two measured sizes a time grows as straight as the data does; above the last one it grows with the data,
 * which is at least as much. 0: not measured there.
 */
static double measured_us(const uint32_t ns[TUNED_SIZES], uint64_t bytes)
{
	unsigned i = 0;
	double more;

	if (bytes <= tuned_size(0))
		return ns[0] / 1e3;
	while (i + 1 < TUNED_SIZES && tuned_size(i + 1) <= bytes)
		i++;
	more = (double)(bytes - tuned_size(i)) / (double)tuned_size(i);
	if (i + 1 == TUNED_SIZES || !ns[i + 1])
		return ns[i] / 1e3 * (1 + more);
	return ns[i] ? (ns[i] + ((double)ns[i + 1] - ns[i]) * more / 3) / 1e3 : 0;
}

static void take_measured(const struct comm_facts *f, const struct choice_request *q,
			  struct choice *p)
{
	const double us = measured_us(f->times.ns[q->operation][p->algorithm], q->piece[STEPS_ONE]);

	if (us > 0) {
		p->us = us;
		p->measured = true;
	}
}

void choose_each(const struct comm_facts *f, const struct choice_request *q,
		 struct choice ret[ALGORITHM_N])
{
	for (int a = 0; a < ALGORITHM_N; a++) {
		ret[a] = (struct choice){.algorithm = ALGORITHM_N};
		if (!can(f, q, (enum algorithm)a))
			continue;
		try_algorithm(f, q, (enum algorithm)a, &ret[a]);
		take_measured(f, q, &ret[a]);
	}
}

static bool is_better(const struct choice *p, const struct choice *best)
{
	if (p->algorithm == ALGORITHM_N || best->algorithm == ALGORITHM_N)
		return p->algorithm != ALGORITHM_N;
	return p->measured == best->measured ? p->us < best->us : p->measured;
}

void choose(const struct comm_facts *f, const struct choice_request *q, enum algorithm forced,
	    struct choice *ret)
{
	struct choice each[ALGORITHM_N];

	choose_each(f, q, each);
	*ret = each[0];
	for (int a = 1; a < ALGORITHM_N; a++)
		if (is_better(&each[a], ret))
			*ret = each[a];
	if (forced < ALGORITHM_N && each[forced].algorithm == forced)
		*ret = each[forced];
}
