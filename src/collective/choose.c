// SPDX-License-Identifier: Apache-2.0
/* Chooses the cheapest possible algorithm, by measured times or by a table of costs. */
#include "collective/choose.h"

/*
 * A power of two divides the units of a block, as the kernels need it. Or twice as many, which any
 * kernel can have: a thread has at most 255 registers.
 */
#define FLAGGED_THREADS 128u
#define FLAGGED_UNITS   256u /* a block, rank and set */
#define FLAGGED_ROUNDS  4u   /* with more, chunks are faster between H100 */
#define PAIR_UNITS      128u /* a block and set */
#define PIPED_THREADS   512u
#define DIRECT_THREADS                                                                             \
	256u /* of 3 ranks or more: up to 4 % faster with 4, but up to 1 % slower with 2 */
#define CHUNK_MIN      2048u
#define CHAIN_CHUNKS   16u /* wanted of a block: the last rank begins some chunks late */
#define HOST_CHUNK_MIN 4096u
#define HOST_CHUNK     (16u << 10)
/*
 * See most_of_chunk. Between two ranks, slots of that size take 80 MiB, of which an operation that
 * goes one way uses a fifth: more than HOST_SLOT_BYTES, but not at once.
 */
#define ONE_WAY_CHUNK (64u << 10)
#define ONE_WAY_PIECE (16u << 20)

/*
 * A GPU's memory; and what stays in the host's last-level cache, of all ranks together, with more
 * than two.
 */
#define DIRECT_SLOT_BYTES (32u << 20)
#define HOST_SLOT_BYTES   (40u << 20)
#define DIRECT_PAIR_BYTES (16u << 20)
#define HOST_PAIR_BYTES   (32u << 20)

/*
 * Stores into another GPU's memory. Measured on 2 and 4 H100 (docs/performance.md), which fixes the
 * rates; slower links change all of them alike, so the order of the algorithms changes little.
 */
static const struct path_costs direct_paths = {{
	[FLAGGED_ONE] = {2.5, 5, 240},
	[FLAGGED_TWO] = {5, 1.5, 320, 3},
	[PIPED_ONE] = {3.2, 3, 340},
	[PIPED_TWO] = {3.2, 3, 358, 15},
	[PIPED_LEVELS] = {3.2, 3, 358},
	[PIPED_CHAIN] = {3.2, 3, 231},
}};

/*
 * The same over PCIe, which no run of the library has timed: the rates are those above, as much
 * less as a pair of RTX 4090 (25 GB/s one way) is slower than one of H100 (358). A step waits for a
 * small write and for a load, 1.2 us each.
 */
static const struct path_costs pcie_paths = {{
	[FLAGGED_ONE] = {2.5, 6.5, 16},
	[FLAGGED_TWO] = {5, 2, 21, 3},
	[PIPED_ONE] = {3.2, 3.9, 23},
	[PIPED_TWO] = {3.2, 3.9, 24},
	[PIPED_LEVELS] = {3.2, 3.9, 24},
	/*
	 * Taken to be as fast as one step: there a chunk's way is long next to the waits between
	 * ranks.
	 */
	[PIPED_CHAIN] = {3.2, 3.9, 23},
}};

/*
 * Stores into and loads from pinned host memory, on the same GPUs. What a step takes by itself was
 * not separated from the data, and a further round was not timed. With four chunks a block few
 * sizes are slower than with fewer or more.
 */
#define HOST_CHUNKS 4u
static const struct path_costs host_paths = {{
	[FLAGGED_ONE] = {3, 5, 25},
	[FLAGGED_TWO] = {8, 9, 40, 9},
	[PIPED_ONE] = {20, 0, 35},
	[PIPED_TWO] = {22, 0, 40},
	/* Only what goes between groups; not measured: as much more as two steps take than one. */
	[PIPED_LEVELS] = {27, 0, 40},
}};

/*
 * Of PCIe as pcie_paths has it, to that of the H200 whose memory of the host was measured (one way,
 * GB/s).
 */
#define PCIE_SHARE (25 / 55.4)

static const char *const words[ALGORITHM_N] = {
	[FLAGGED_ONE] = "flagged-1", [FLAGGED_TWO] = "flagged-2", [PIPED_ONE] = "piped-1",
	[PIPED_TWO] = "piped-2",     [PIPED_LEVELS] = "levels",   [PIPED_CHAIN] = "chain",
};

const char *algorithm_word(enum algorithm a)
{
	return words[a];
}

static unsigned at_most(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* ---- facts ---- */

static uint32_t all_but(unsigned n, unsigned rank)
{
	return ((1u << n) - 1) & ~(1u << rank);
}

/* Of those before rank `end`. A rank has a place for itself too, where all others read the same. */
static unsigned host_places(const struct comm_facts *f, unsigned from, unsigned end)
{
	unsigned n = 0;

	for (unsigned to = 0; to < end; to++)
		n += !is_direct(f, from, to);
	return n;
}

unsigned host_row(const struct comm_facts *f, unsigned from, unsigned to)
{
	unsigned row = host_places(f, from, to);

	for (unsigned i = 0; i < from; i++)
		row += host_places(f, i, f->n);
	return row;
}

static void set_reach(struct comm_facts *f, const uint32_t *reach)
{
	bool any = false;

	f->direct = true;
	for (unsigned i = 0; i < f->n; i++) {
		f->reach[i] = reach[i] & all_but(f->n, i);
		f->direct &= f->reach[i] == all_but(f->n, i);
		any |= f->reach[i] != 0;
	}
	f->mixed = any && !f->direct;
}

/*
 * Of a pair: bytes of its slots for pieces and for sends and receives, as far as there is room for
 * all pairs.
 */
static void size_slots(struct comm_facts *f)
{
	const uint64_t host = host_row(f, f->n, 0), direct = has_direct(f) ? f->n - 1 : 0;
	const uint64_t inbox_slots = (PIPED_FIRST_SLOTS + PIPED_SECOND_SLOTS) * direct;
	const uint64_t host_slots = PIPED_FIRST_SLOTS * host + PIPED_SECOND_SLOTS * f->n;

	f->slot_bytes = (f->direct ? 32u << 10 : HOST_CHUNK) / (f->n > 2 ? 2 : 1);
	while (f->slot_bytes > CHUNK_MIN &&
	       (inbox_slots * f->piped_blocks * f->slot_bytes > DIRECT_SLOT_BYTES ||
		host_slots * f->piped_blocks * f->slot_bytes > HOST_SLOT_BYTES))
		f->slot_bytes -= CHUNK_MIN;
	if (f->n == 2 && !has_direct(f))
		f->slot_bytes = ONE_WAY_CHUNK; /* see there */
	f->pair_slot_bytes = f->direct ? 32u << 10 : 64u << 10;
	while (f->pair_blocks > 1 &&
	       (direct * PAIR_SLOTS * f->pair_blocks * f->pair_slot_bytes > DIRECT_PAIR_BYTES ||
		host * PAIR_SLOTS * f->pair_blocks * f->pair_slot_bytes > HOST_PAIR_BYTES))
		f->pair_blocks /= 2;
}

/* ---- costs ---- */

/* Every step waits for the slower paths, and small sums have no kernel of their own. */
static void mix_costs(struct comm_facts *f, const struct path_costs *direct, double host_share)
{
	f->costs = host_paths;
	for (int a = 0; a < ALGORITHM_N; a++) {
		struct path_cost *c = &f->costs.of[a];

		c->host_gbps = c->gbps * host_share;
		c->gbps = direct->of[a].gbps;
		c->start_us += c->reduce_us;
		c->reduce_us = 0;
	}
}

void comm_facts_mix(unsigned n, const uint32_t *reach, unsigned blocks, unsigned threads,
		    struct comm_facts *ret)
{
	*ret = (struct comm_facts){.n = n, .blocks = blocks, .threads = threads};
	set_reach(ret, reach);
	ret->chunks = ret->direct ? 1 : HOST_CHUNKS;
	for (ret->flagged_threads = FLAGGED_THREADS; ret->flagged_threads > threads;)
		ret->flagged_threads /= 2;
	ret->flagged_units = FLAGGED_UNITS * (ret->direct && n == 2 ? 2 : 1);
	ret->piped_threads =
		at_most(ret->direct && n > 2 ? DIRECT_THREADS : PIPED_THREADS, threads);
	ret->flagged_blocks = at_most(2 * blocks, !ret->direct ? 64 : n > 4 ? 128 : 256);
	ret->piped_blocks = at_most(blocks, ret->direct ? 128 : 64);
	ret->pair_blocks = at_most(blocks, !ret->direct ? 32 : n > 4 ? 32 : n > 2 ? 64 : 128);
	ret->pair_units = PAIR_UNITS * (n == 2 ? 2 : 1) / (ret->direct && n > 4 ? 2 : 1);
	size_slots(ret);
	ret->chunk_min = at_most(ret->direct ? CHUNK_MIN : HOST_CHUNK_MIN, ret->slot_bytes);
	ret->costs = ret->direct ? direct_paths : host_paths;
	if (ret->mixed)
		mix_costs(ret, &direct_paths, 1);
}

void comm_facts_fit(struct comm_facts *f, unsigned resident)
{
	const unsigned threads =
		f->piped_threads > f->pair_units ? f->piped_threads : f->pair_units;
	const unsigned each = at_most(threads, f->threads);
	const unsigned at_once = f->blocks * (resident > each ? resident / each : 1);
	const unsigned lanes = f->n > 1 ? f->n - 1 : 1;

	f->pair_blocks = at_most(f->pair_blocks, at_once > lanes ? at_once / lanes : 1);
}

void comm_facts_make(unsigned n, bool direct, unsigned blocks, unsigned threads,
		     struct comm_facts *ret)
{
	uint32_t reach[GROUPS_RANKS_MAX] = {0};

	for (unsigned i = 0; direct && i < n; i++)
		reach[i] = ~0u;
	comm_facts_mix(n, reach, blocks, threads, ret);
}

/* ---- where ranks are ---- */

static bool both_direct(const struct comm_facts *f, unsigned a, unsigned b)
{
	return a == b || (is_direct(f, a, b) && is_direct(f, b, a));
}

/* Whether only PCIe joins some of those that are direct. */
static bool is_pcie(const struct comm_facts *f, const enum nearness *near)
{
	enum nearness least = NEAR_NVLINK;

	for (unsigned i = 0; i < f->n; i++)
		for (unsigned j = 0; j < f->n; j++)
			if (is_direct(f, i, j) && near[i * f->n + j] < least)
				least = near[i * f->n + j];
	return least > NEAR_UNKNOWN && least < NEAR_NVLINK;
}

/*
 * Ranks of a group all reach each other, because only one place of the host's memory is written for
 * all.
 */
static bool can_be(const struct comm_facts *f, const struct groups *g)
{
	for (unsigned i = 0; i < f->n; i++)
		for (unsigned j = 0; j < f->n; j++)
			if (g->of[i] == g->of[j] && !both_direct(f, i, j))
				return false;
	return true;
}

struct search {
	const struct comm_facts *f;
	const enum nearness *near;
	enum nearness least; /* of ranks of a group */
};

static bool fits(const struct search *x, const struct groups *g, unsigned group, unsigned rank)
{
	unsigned members = 0;

	for (unsigned i = 0; i < rank; i++) {
		if (g->of[i] != group)
			continue;
		if (!both_direct(x->f, i, rank) || x->near[i * x->f->n + rank] < x->least)
			return false;
		members++;
	}
	return members < g->size;
}

/*
 * Ranks from `rank` on, in groups of g->size; false: there are none of which all ranks reach each
 * other.
 */
static bool divide_direct(const struct search *x, unsigned rank, struct groups *g)
{
	const struct groups before = *g;

	for (unsigned i = 0; rank < x->f->n && i <= before.n && i < x->f->n / g->size; i++) {
		if (!fits(x, g, i, rank))
			continue;
		g->of[rank] = (uint8_t)i;
		g->n += i == g->n;
		if (divide_direct(x, rank + 1, g))
			return true;
		*g = before;
	}
	return rank == x->f->n;
}

/*
 * Where a pair that is not direct divides those that are near: the largest parts of them without
 * such a pair.
 */
static bool find_direct(struct comm_facts *f, const enum nearness *near)
{
	for (int far = 0; far < 2; far++)
		for (unsigned size = f->n / 2; size > 1; size--) {
			const struct search x = {f, near, far ? NEAR_UNKNOWN : NEAR_SOCKET};

			f->groups = (struct groups){.size = size};
			if (f->n % size == 0 && divide_direct(&x, 0, &f->groups))
				return true;
		}
	return false;
}

/* As large as they can be: traffic through the host's memory is slower than on any direct path. */
static void group_direct(struct comm_facts *f, const enum nearness *near)
{
	enum nearness seen[GROUPS_RANKS_MAX * GROUPS_RANKS_MAX] = {0};

	for (unsigned i = 0; i < f->n * f->n; i++)
		seen[i] = both_direct(f, i / f->n, i % f->n) ? NEAR_SOCKET : NEAR_FAR;
	groups_make(f->n, seen, &f->groups);
	if (f->groups.n && can_be(f, &f->groups))
		return;
	for (unsigned i = 0; i < f->n * f->n; i++)
		seen[i] = seen[i] == NEAR_SOCKET ? near[i] : NEAR_FAR;
	groups_make(f->n, seen, &f->groups);
	if (f->groups.n && can_be(f, &f->groups))
		return;
	if (!find_direct(f, near))
		f->groups = (struct groups){0};
}

void comm_facts_place(struct comm_facts *f, const enum nearness *near, const struct groups *groups)
{
	const bool pcie = is_pcie(f, near);

	if (!has_direct(f))
		return;
	if (groups && (f->direct || can_be(f, groups)))
		f->groups = *groups;
	else if (f->mixed)
		group_direct(f, near);
	else
		groups_make(f->n, near, &f->groups);
	groups_share(f->n, near, &f->shared);
	if (f->mixed)
		mix_costs(f, pcie ? &pcie_paths : &direct_paths, pcie ? PCIE_SHARE : 1);
	else if (pcie)
		f->costs = pcie_paths;
}

/* ---- grids and costs ---- */

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
	const uint64_t most = (uint64_t)FLAGGED_ROUNDS * f->flagged_blocks * f->flagged_units *
			      FLAGGED_DATA_BYTES(q->wide);

	if (steps_of(a) != STEPS_ONE && !piece_of(q, a))
		return false;
	return is_piped(a) || piece_of(q, a) <= most;
}

/*
 * A unit for each thread: in more blocks first, then in larger ones. What has no room in the slots
 * goes in rounds.
 */
static void flagged_grid(const struct comm_facts *f, const struct choice_request *q,
			 struct choice *p)
{
	const uint64_t units = ceil_div(piece_of(q, p->algorithm), FLAGGED_DATA_BYTES(q->wide));
	uint64_t blocks;

	p->threads = f->flagged_threads;
	if (units > (uint64_t)p->threads * f->flagged_blocks && 2 * p->threads <= f->threads)
		p->threads *= 2;
	blocks = ceil_div(units, p->threads);
	p->blocks = blocks < f->flagged_blocks ? (unsigned)blocks : f->flagged_blocks;
	if (!p->blocks)
		p->blocks = 1;
	p->chunk = (uint64_t)f->flagged_units * FLAGGED_DATA_BYTES(q->wide);
	p->chunks = ceil_div(piece_of(q, p->algorithm), p->chunk * p->blocks);
	if (!p->chunks)
		p->chunks = 1;
}

static bool goes_one_way(const struct comm_facts *f, const struct choice_request *q)
{
	return q->operation == OPERATION_BROADCAST ||
	       (q->operation == OPERATION_REDUCE && f->n == 2);
}

/*
 * Through the host fewer threads are faster, up to 12 % where data goes one way and by 1 to 4 % else
 * (2 and 4 H200; of 64 MB with 4 up to 2 % slower).
 */
static unsigned piped_threads(const struct comm_facts *f, const struct choice_request *q)
{
	return has_direct(f) ? f->piped_threads
			     : at_most(goes_one_way(f, q) ? 64 : 128, f->threads);
}

/*
 * Bytes of a chunk, at most. Between two ranks through the host, all chunks under way should stay
 * in the processor's cache. Where data goes one way there are half as many, and from 2 MiB on larger
 * ones take 1 to 13 % less time, but in broadcasts above 16 MiB up to 2 % more (H200). Not tried with
 * more ranks.
 */
static uint64_t most_of_chunk(const struct comm_facts *f, const struct choice_request *q)
{
	if (has_direct(f) || f->n > 2)
		return f->slot_bytes;
	if (goes_one_way(f, q) &&
	    (q->operation == OPERATION_REDUCE || q->piece[STEPS_ONE] <= ONE_WAY_PIECE))
		return f->slot_bytes;
	return at_most(HOST_CHUNK, f->slot_bytes);
}

/*
 * Chunks of a block, at least. Through the host what can go as one does between two ranks: up to
 * 20 % faster between H200 where there is one step; not tried with more ranks.
 */
static uint64_t few_chunks(const struct comm_facts *f, const struct choice_request *q,
			   enum algorithm a, uint64_t each)
{
	if (a == PIPED_CHAIN && q->period == 1)
		return CHAIN_CHUNKS;
	return f->n == 2 && a == PIPED_ONE && each <= most_of_chunk(f, q) ? 1 : f->chunks;
}

/* As few chunks as have room in the slots, of equal size: each one costs a step. */
static void piped_grid(const struct comm_facts *f, const struct choice_request *q, struct choice *p)
{
	const uint64_t piece = piece_of(q, p->algorithm);
	const uint64_t each = ceil_div(piece, f->piped_blocks),
		       least = ceil_div(each, most_of_chunk(f, q));
	const uint64_t few = few_chunks(f, q, p->algorithm, each);
	const uint64_t wanted = least > few ? least : few;
	uint64_t chunk = ceil_div(each, wanted * 16) * 16, blocks;

	if (chunk < f->chunk_min)
		chunk = f->chunk_min;
	blocks = ceil_div(piece, chunk);
	p->threads = piped_threads(f, q);
	p->blocks = blocks < f->piped_blocks ? (unsigned)blocks : f->piped_blocks;
	if (!p->blocks)
		p->blocks = 1;
	p->chunk = chunk;
	p->chunks = ceil_div(piece, chunk * p->blocks);
}

static double steps_us(double step_us, double steps)
{
	return steps <= STEPS_TOGETHER
		       ? steps * step_us
		       : (STEPS_TOGETHER + (steps - STEPS_TOGETHER) * STEP_SHOWS) * step_us;
}

/* Direct traffic and traffic through the host's memory share the rank's link. */
double crossing_us(const struct comm_facts *f, enum algorithm a, struct crossing c)
{
	const struct path_cost *cost = &f->costs.of[a];
	const double host = f->mixed ? cost->host_gbps : cost->gbps;

	return (c.direct / cost->gbps + c.host / host) / 1e3;
}

/* Only all-reduces of one round have a kernel for small sums. */
static bool is_slow_sum(const struct choice_request *q, const struct choice *p)
{
	const bool rounds = !is_piped(p->algorithm) && p->chunks > 1;

	return q->operation == OPERATION_REDUCE || (q->operation == OPERATION_ALL_REDUCE && rounds);
}

/* A chunk is sent in each step but the last, also by the rank that gets the first chunk last. */
static double chain_us(const struct comm_facts *f, const struct choice_request *q,
		       const struct choice *p, double data)
{
	const struct path_cost *c = &f->costs.of[PIPED_CHAIN];
	const double chunks = (double)p->chunks * q->period,
		     steps = (double)chain_steps(p->chunks, q->period, f->n);

	return c->start_us + steps_us(c->step_us, steps) + data * (steps - 1) / chunks;
}

static double cost_us(const struct comm_facts *f, const struct choice_request *q,
		      const struct choice *p)
{
	const struct path_cost *c = &f->costs.of[p->algorithm];
	const enum steps how = steps_of(p->algorithm);
	const unsigned stages = how == STEPS_LEVELS ? groups_stages(&f->groups) : how;
	const double data =
		(double)piece_of(q, p->algorithm) * crossing_us(f, p->algorithm, q->crossing[how]);
	const double start = c->start_us + (is_slow_sum(q, p) ? c->reduce_us : 0);

	if (how == STEPS_CHAIN)
		return chain_us(f, q, p, data);
	if (!is_piped(p->algorithm))
		return start + (double)(p->chunks - 1) * c->step_us +
		       data / FLAGGED_DATA_BYTES(q->wide) * FLAGGED_UNIT_BYTES;
	return start + steps_us(c->step_us, (double)p->chunks + 1 + stages) + data;
}

static void estimate(const struct comm_facts *f, const struct choice_request *q, enum algorithm a,
		     struct choice *ret)
{
	*ret = (struct choice){.algorithm = a};
	if (is_piped(a))
		piped_grid(f, q, ret);
	else
		flagged_grid(f, q, ret);
	ret->us = cost_us(f, q, ret);
}

/*
 * Between two measured sizes a time grows as straight as the data does; above the last one it grows
 * with the data, which is at least as much. 0: not measured there.
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
		estimate(f, q, (enum algorithm)a, &ret[a]);
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
