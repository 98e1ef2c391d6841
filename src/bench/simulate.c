// SPDX-License-Identifier: Apache-2.0
#include "bench/simulate.h"

#include "base/err.h"
#include "bench/collective_impl.h"
#include "bench/simulate_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The GPU that is modelled: as many blocks as plans ever use, so that every GPU with at least 128
 * multiprocessors has these plans.
 */
#define BLOCKS  128
#define THREADS 1024

/*
 * An empty kernel in a graph: 0.64 on 1 H200, 0.66 to 0.68 on 2 with driver 580 (0.55 to 0.60 on
 * H200 of another machine). Launched singly: 2.0 to 2.5 us of the host's time.
 */
#define START_US  0.67
#define LAUNCH_US 2.25

/*
 * A GPU by itself, measured on H200 with kernels that only copy there (tests/gpu/collective 1 tune
 * 64): what a kernel of 128 blocks takes longer than one of a single block, and a copy of 64 MiB to
 * another place of the same memory. Other GPUs' memory is slower, but so are their links.
 */
#define BLOCKS_US 0.18
#define OWN_GBPS  1840.0

/*
 * Not from times of collectives. NVLink: half of a flag's round trip between two H200 (2.69 us), a
 * load from the other's memory (0.83 us), and 354 GB/s by stores of four GPUs at once, of 370.8
 * expected. PCIe: a small write between two RTX 4090 (1.2 us; taken for a load too), and copies
 * both ways at once, which reach 0.94 to 0.97 of the rate of one way there. Host: 8 bytes between
 * two ranks on one H200 through the host's memory (3.5 us, less 1.0 us: an empty kernel, and 0.34 us
 * that kernels of then executed more than those of now), a load of that memory (1.15 us), and copies
 * up and down at once on 4 H200 in slots that stay in the processor's cache, 47 of 55.4 GB/s.
 */
static const struct {
	double flag_us; /* from a store until another rank sees it */
	double load_us; /* until stores are known to have arrived */
	double share;   /* of the expected rate, with all ranks at once */
} parameters[MODEL_PATH_N] = {
	[MODEL_NVLINK] = {1.345, 0.83, 0.955},
	[MODEL_PCIE] = {1.2, 1.2, 0.96},
	[MODEL_HOST] = {2.5, 1.15, 0.85},
};

bool simulated_direct(const struct simulation *s, unsigned from, unsigned to)
{
	return s->reach[from] >> to & 1;
}

struct simulated_paths simulated_paths(const struct simulation *s)
{
	struct comm_facts f;

	comm_facts_mix(s->paths->device_n, s->reach, BLOCKS, THREADS, &f);
	return (struct simulated_paths){f.direct, f.mixed};
}

static enum model_path model_path_of(const struct simulation *s, unsigned from, unsigned to)
{
	if (!simulated_direct(s, from, to))
		return MODEL_HOST;
	return strncmp(paths_pair(s->paths, from, to)->class, "NV", 2) == 0 ? MODEL_NVLINK
									    : MODEL_PCIE;
}

enum model_path model_path(const struct simulation *s)
{
	enum model_path slowest = MODEL_NVLINK;

	for (unsigned i = 0; i < s->paths->device_n; i++)
		for (unsigned j = 0; j < s->paths->device_n; j++)
			if (i != j && model_path_of(s, i, j) > slowest)
				slowest = model_path_of(s, i, j);
	return slowest;
}

/* ---- a step of a plan ---- */

/* A plan while it is run: what each rank's kernel was given. */
struct run {
	const struct simulation *s;
	const struct comm_facts *facts;
	struct traffic traffic;
	enum model_path slowest;
	const struct choice *choice;
	struct operation_shape shapes[SIMULATED_RANKS_MAX];
	double inflation; /* bytes on the link for a byte of data */
	/* The step that is counted: */
	uint64_t step;
	bool sends; /* its own data too */
	unsigned me;
	double own; /* bytes that arrived, and are loaded and stored by `me` */
};

/* How long its transfers take together, and how long the rank that got most takes for that, us. */
struct step {
	double links, own;
};

/* Of every piece. */
struct part {
	uint64_t offset, most;
};

static double part_bytes(const struct operation_move *m, const struct part *p)
{
	const uint64_t left = p->offset < m->bytes ? m->bytes - p->offset : 0;

	return (double)(left < p->most ? left : p->most) / m->shares;
}

/*
 * A store takes the link to the other rank; traffic through the host's memory takes the rank's own,
 * both ways. Loads of a rank's own memory take none.
 */
static void add_bytes(struct run *x, const struct operation_move *m, double bytes)
{
	const bool stores = m->what == MOVE_SEND || m->what == MOVE_SPREAD;

	if (!stores)
		x->own += bytes * x->inflation;
	if (!m->direct)
		traffic_to_host(&x->traffic, x->me, stores, bytes * x->inflation,
				parameters[MODEL_HOST].share);
	else if (stores)
		traffic_to_peer(&x->traffic, x->me, m->other, bytes * x->inflation,
				parameters[model_path_of(x->s, x->me, m->other)].share);
}

/* What all kernels do in one step. */
static struct step run_step(struct run *x,
			    void (*each)(void *context, const struct operation_move *m))
{
	double most = 0;

	for (x->me = 0; x->me < x->s->paths->device_n; x->me++) {
		x->own = 0;
		operation_moves(x->facts, x->me, &x->shapes[x->me], each, x);
		most = fmax(most, x->own);
	}
	return (struct step){traffic_end(&x->traffic), most / (OWN_GBPS * 1e3)};
}

static double start_us(const struct choice *c)
{
	return START_US + BLOCKS_US * log2(c->blocks) / log2(BLOCKS);
}

/* ---- plans ---- */

/* Chunk i of all blocks. */
static struct part chunk_at(const struct choice *c, uint64_t i)
{
	const uint64_t bytes = c->chunk * c->blocks;

	return (struct part){i * bytes, bytes};
}

/* In each round data is sent and taken in one step, and spread and placed in the next. */
static void add_flagged(void *context, const struct operation_move *m)
{
	struct run *x = context;
	const uint64_t steps = steps_of(x->choice->algorithm) + 1u;
	const struct part part = chunk_at(x->choice, x->step / steps);

	if ((m->what == MOVE_SPREAD || m->what == MOVE_PLACE) == (x->step % steps > 0))
		add_bytes(x, m, part_bytes(m, &part));
}

/*
 * Data is in units with flags, which go over the link together. What has arrived is loaded and
 * stored after that, because most threads have one unit.
 */
static double flagged_us(struct run *x)
{
	const double flag = parameters[x->slowest].flag_us;
	double us = start_us(x->choice);

	x->inflation =
		(double)FLAGGED_UNIT_BYTES /
		FLAGGED_DATA_BYTES(collective_is_wide(x->shapes[0].s.type, x->shapes[0].s.op));
	for (x->step = 0; x->step < (steps_of(x->choice->algorithm) + 1u) * x->choice->chunks;
	     x->step++) {
		const struct step step = run_step(x, add_flagged);

		us += flag + step.links + step.own;
	}
	return us;
}

/*
 * As in collective_piped.c, collective_levels.c and collective_chain.c: in step i a stage has the
 * chunk that was sent as many steps before.
 */
static void add_piped(void *context, const struct operation_move *m)
{
	struct run *x = context;
	const struct choice *c = x->choice;
	const uint64_t since = x->step - m->stage, period = x->shapes[x->me].period;
	const uint64_t chunk = since / period;
	const struct part part = chunk_at(c, chunk);

	if (x->step >= m->stage && since % period == 0 && chunk < c->chunks &&
	    (m->what != MOVE_SEND || x->sends))
		add_bytes(x, m, part_bytes(m, &part));
}

static struct step piped_step(struct run *x, bool sends)
{
	x->sends = sends;
	return run_step(x, add_piped);
}

static uint64_t piped_steps(const struct run *x)
{
	const struct choice *c = x->choice;

	if (c->algorithm == PIPED_CHAIN)
		return chain_steps(c->chunks, x->shapes[0].period, x->s->paths->device_n);
	return c->chunks + 1 +
	       (c->algorithm == PIPED_LEVELS ? x->shapes[0].stages
					     : (unsigned)steps_of(c->algorithm));
}

/*
 * Step i sends chunk i, and waits for what others have done in the last step before it takes
 * earlier chunks.
 */
static double piped_us(struct run *x)
{
	const uint64_t steps = piped_steps(x);
	const double wait = parameters[x->slowest].flag_us + parameters[x->slowest].load_us;
	double us = start_us(x->choice);

	x->inflation = 1;
	for (x->step = 0; x->step < steps; x->step++) {
		const struct step all = piped_step(x, true), rest = piped_step(x, false);

		us += fmax(all.links, rest.links + rest.own + (x->step ? wait : 0));
	}
	return us;
}

static double plan_us(struct run *x, const struct comm_facts *f, const struct choice *c,
		      const struct operation_call *call)
{
	const unsigned n = x->s->paths->device_n;
	const double launches = x->s->plan.graph ? 0 : n * LAUNCH_US;
	double us;

	x->choice = c;
	x->facts = f;
	for (unsigned me = 0; me < n; me++)
		operation_shape(f, me, nccl_op_ours(x->s->plan.op), call, c->algorithm,
				&x->shapes[me]);
	us = is_piped(c->algorithm) ? piped_us(x) : flagged_us(x);
	return us > launches ? us : launches;
}

/* ---- rows ---- */

static void set_time(const struct simulation *s, const struct nccl_shape *shape, double us,
		     struct collective_cell *ret)
{
	*ret = (struct collective_cell){
		.time_us = us, .low_us = NAN, .high_us = NAN, .wrong = -1, .wrong_rank = -1};
	if (us > 0)
		nccl_rates(s->plan.op, shape, nccl_type_size(s->plan.type), (int)s->paths->device_n,
			   us, ret);
}

static void make_row(struct run *x, const struct comm_facts *f, uint64_t bytes,
		     struct simulated_row *ret)
{
	const struct simulation *s = x->s;
	const enum operation o = nccl_op_ours(s->plan.op);
	struct choice each[ALGORITHM_N];
	struct nccl_shape shape;

	nccl_shape(s->plan.op, nccl_type_size(s->plan.type), (int)f->n, bytes, &shape);
	*ret = (struct simulated_row){.bytes = shape.bytes, .count = shape.count};
	const struct operation_call call = {.count = shape.count,
					    .type = s->plan.type,
					    .op = s->plan.redop,
					    .root = s->plan.root};
	operation_estimate(f, o, shape.count, s->plan.type, each);
	operation_choose(f, o, shape.count, s->plan.type, ALGORITHM_N, &ret->choice);
	for (int a = 0; a < ALGORITHM_N; a++)
		ret->us[a] =
			each[a].algorithm == ALGORITHM_N ? NAN : plan_us(x, f, &each[a], &call);
	set_time(s, &shape, ret->us[ret->choice.algorithm], &ret->own);
	set_time(s, &shape, s->nccl ? simulate_ring_us(s, &x->traffic, (double)shape.bytes) : 0,
		 &ret->nccl);
}

/* In both directions. */
static bool reaches_all(const struct simulation *s, unsigned rank)
{
	for (unsigned r = 0; r < s->paths->device_n; r++)
		if (r != rank && !(simulated_direct(s, rank, r) && simulated_direct(s, r, rank)))
			return false;
	return true;
}

static int check_rates(const struct simulation *s)
{
	const unsigned n = s->paths->device_n;

	for (unsigned i = 0; i < n; i++) {
		if (!reaches_all(s, i) && !(s->paths->hosts[i].expected_gbps > 0))
			return err_set(EINVAL,
				       "the rate between rank %u's GPU and the host's memory is "
				       "unknown",
				       i);
		for (unsigned j = 0; j < n; j++)
			if (i != j && simulated_direct(s, i, j) &&
			    !(paths_pair(s->paths, i, j)->expected_gbps > 0))
				return err_set(EINVAL,
					       "the rate from rank %u's GPU to rank %u's is "
					       "unknown; --observed with the output of a "
					       "bandwidth test adds it",
					       i, j);
	}
	return 0;
}

static int check(const struct simulation *s)
{
	const unsigned n = s->paths->device_n;

	if (n < 2 || n > SIMULATED_RANKS_MAX)
		return err_set(EINVAL, "the number of GPUs to simulate must be 2 to %d, not %u",
			       SIMULATED_RANKS_MAX, n);
	if (s->plan.root < 0 || (unsigned)s->plan.root >= n)
		return err_set(EINVAL, "root %d is not a rank; ranks are 0 to %u", s->plan.root,
			       n - 1);
	return check_rates(s);
}

int simulate(const struct simulation *s, struct simulated_row **ret, size_t *ret_n)
{
	const size_t sizes = collective_plan_sizes(&s->plan, s->plan.max_bytes);
	struct run x = {.s = s};
	struct simulated_row *rows;
	struct link_model model;
	struct comm_facts facts;
	uint64_t bytes = s->plan.min_bytes;
	int r = check(s);

	if (r < 0)
		return r;
	rows = calloc(sizes + 1, sizeof(*rows));
	r = rows ? link_model_make(s->paths, &model)
		 : err_set(ENOMEM, "no memory for %zu sizes", sizes);
	if (r < 0) {
		free(rows);
		return r;
	}
	x.slowest = model_path(s);
	r = traffic_make(&model, &x.traffic);
	comm_facts_mix(s->paths->device_n, s->reach, BLOCKS, THREADS, &facts);
	if (s->near)
		comm_facts_place(&facts, s->near, NULL);
	operation_count(&facts);
	for (size_t i = 0; r == 0 && i < sizes; i++, bytes = collective_plan_next(&s->plan, bytes))
		make_row(&x, &facts, bytes, &rows[i]);
	traffic_done(&x.traffic);
	link_model_done(&model);
	if (r < 0) {
		free(rows);
		return r;
	}
	*ret = rows;
	*ret_n = sizes;
	return 0;
}
