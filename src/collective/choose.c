// SPDX-License-Identifier: Apache-2.0
/* The cheapest of the algorithms that can do it, by a table of costs. */
#include "collective/choose.h"

#define FLAGGED_THREADS 128u
#define PIPED_THREADS   512u
#define CHUNK_MIN       2048u
#define CHUNKS_WANTED   4u

/* A GPU's memory; and what stays in the host's last-level cache, of all ranks together. */
#define DIRECT_SLOT_BYTES (32u << 20)
#define HOST_SLOT_BYTES   (40u << 20)
#define SLOT_MAX          (32u << 10)

/* Stores into another GPU's memory. */
static const struct path_costs direct_paths = {{
	[FLAGGED_ONE] = {2.0, 330},
	[FLAGGED_TWO] = {3.6, 380},
	[PIPED_ONE] = {6.0, 350},
	[PIPED_TWO] = {8.0, 350},
}};

/* Stores into and loads from pinned host memory. */
static const struct path_costs host_paths = {{
	[FLAGGED_ONE] = {3.0, 40},
	[FLAGGED_TWO] = {6.0, 36},
	[PIPED_ONE] = {20, 40},
	[PIPED_TWO] = {27, 40},
}};

static unsigned at_most(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

void comm_facts_make(unsigned n, bool direct, unsigned blocks, unsigned threads,
		     struct comm_facts *ret)
{
	const uint64_t most = direct ? DIRECT_SLOT_BYTES : HOST_SLOT_BYTES;
	uint32_t slot = SLOT_MAX;
	uint64_t slots;

	*ret = (struct comm_facts){.n = n,
				   .direct = direct,
				   .blocks = blocks,
				   .threads = threads,
				   .chunks = CHUNKS_WANTED,
				   .costs = direct ? direct_paths : host_paths};
	ret->flagged_blocks = at_most(2 * blocks, direct ? 256 : 64);
	ret->piped_blocks = at_most(blocks, direct ? 128 : 64);
	slots = (direct ? 4ul * n : 2ul * n * n) * ret->piped_blocks;
	while (slot > CHUNK_MIN && slot * slots > most)
		slot /= 2;
	ret->slot_bytes = slot;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

static uint64_t piece_of(const struct choice_request *q, enum algorithm a)
{
	return has_two_steps(a) ? q->piece2 : q->piece;
}

static bool can(const struct comm_facts *f, const struct choice_request *q, enum algorithm a)
{
	const uint64_t most = (uint64_t)f->flagged_blocks * FLAGGED_UNITS * FLAGGED_DATA_BYTES;

	if (has_two_steps(a) && !q->piece2)
		return false;
	return is_piped(a) || piece_of(q, a) <= most;
}

/* Units carry as many bytes of flags as of data. In two steps a rank sends n - 1 pieces twice. */
static double cost_us(const struct comm_facts *f, const struct choice_request *q, enum algorithm a)
{
	const struct path_cost *c = &f->costs.of[a];
	const double pieces = has_two_steps(a) ? 2. * (f->n - 1) : q->to;
	const double bytes = (double)piece_of(q, a) * pieces * (is_piped(a) ? 1 : 2);

	return c->start_us + bytes / c->gbps / 1e3;
}

static void flagged_grid(const struct comm_facts *f, uint64_t piece, struct choice *p)
{
	uint64_t blocks;

	p->threads = at_most(FLAGGED_THREADS, f->threads);
	blocks = ceil_div(piece, (uint64_t)p->threads * FLAGGED_DATA_BYTES);
	p->blocks = blocks < f->flagged_blocks ? (unsigned)blocks : f->flagged_blocks;
	if (!p->blocks)
		p->blocks = 1;
}

static void piped_grid(const struct comm_facts *f, uint64_t piece, struct choice *p)
{
	uint64_t chunk = ceil_div(piece, (uint64_t)f->piped_blocks * f->chunks * 16) * 16, blocks;

	if (chunk < CHUNK_MIN)
		chunk = CHUNK_MIN;
	if (chunk > f->slot_bytes)
		chunk = f->slot_bytes;
	blocks = ceil_div(piece, chunk);
	p->threads = at_most(PIPED_THREADS, f->threads);
	p->blocks = blocks < f->piped_blocks ? (unsigned)blocks : f->piped_blocks;
	if (!p->blocks)
		p->blocks = 1;
	p->chunk = chunk;
	p->chunks = ceil_div(piece, chunk * p->blocks);
}

void choose(const struct comm_facts *f, const struct choice_request *q, enum algorithm forced,
	    struct choice *ret)
{
	enum algorithm best = PIPED_ONE;

	for (int a = 0; a < ALGORITHM_N; a++)
		if (can(f, q, (enum algorithm)a) &&
		    cost_us(f, q, (enum algorithm)a) < cost_us(f, q, best))
			best = (enum algorithm)a;
	if (forced < ALGORITHM_N && can(f, q, forced))
		best = forced;
	*ret = (struct choice){.algorithm = best};
	(is_piped(best) ? piped_grid : flagged_grid)(f, piece_of(q, best), ret);
}
