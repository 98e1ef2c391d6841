/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernel an operation uses, and with what grid: from times measured on these devices, or else
 * from the costs of the paths; never from device names.
 */
#pragma once

#include "collective/groups.h"
#include "kernels/args.h"

#include <stdbool.h>
#include <stdint.h>

enum operation {
	OPERATION_ALL_REDUCE,
	OPERATION_REDUCE,
	OPERATION_REDUCE_SCATTER,
	OPERATION_ALL_GATHER,
	OPERATION_BROADCAST,
	OPERATION_ALL_TO_ALL,
	OPERATION_N
};

enum algorithm {
	FLAGGED_ONE, /* flagged data, in one step */
	FLAGGED_TWO, /* the same in two steps: shards, then their reductions */
	PIPED_ONE,   /* chunks through slots, in one step */
	PIPED_TWO,
	PIPED_LEVELS, /* within each group of ranks, between the groups, and back */
	PIPED_CHAIN,  /* from rank to rank */
	ALGORITHM_N
};

/* How often data goes from rank to rank. */
enum steps { STEPS_ONE, STEPS_TWO, STEPS_LEVELS, STEPS_CHAIN, STEPS_N };

const char *algorithm_word(enum algorithm a); /* "flagged-1" */

/*
 * The cost of an operation: to start and end, per pipeline step or further round, and per byte that
 * a rank sends. Blocks of threads do not run in step with each other for long: after the first
 * STEPS_TOGETHER, a part of each further step's waits is hidden by what the others send.
 */
#define STEPS_TOGETHER 4
#define STEP_SHOWS     (1 / 6.)
struct path_cost {
	double start_us, step_us, gbps;
	double reduce_us; /* more for a reduce, and for an all-reduce of several flagged rounds */
	double host_gbps; /* of what crosses the host's memory, where only some pairs are direct */
};

struct path_costs {
	struct path_cost of[ALGORITHM_N];
};

/* Measured times, by the bytes of a piece in one step: 16, 64, ... 64 MiB. */
#define TUNED_SIZES 12u
struct tuned_times {
	uint32_t ns[OPERATION_N][ALGORITHM_N][TUNED_SIZES]; /* 0: not measured */
};

static inline uint64_t tuned_size(unsigned i)
{
	return 16ul << 2 * i;
}

/*
 * Pieces that cross the busiest link in one direction: of those to ranks that are direct, and of
 * those through the host's memory.
 */
struct crossing {
	double direct, host;
};

/* Facts agreed on by all ranks. Plans depend on nothing else, so all ranks make the same plan. */
struct comm_facts {
	unsigned n;
	bool direct; /* every rank stores into the memory of all others */
	bool mixed;  /* some pairs do, the others go through the host's memory; neither: all do */
	uint32_t reach
		[GROUPS_RANKS_MAX]; /* by rank: a bit for each other one whose memory it stores into */
	unsigned blocks;            /* that run at once on every device */
	unsigned threads;           /* a block, at most */
	struct groups groups;
	struct groups shared; /* ranks with a link to the others that they share, of any sizes */
	struct crossing crossing[OPERATION_N][STEPS_N]; /* operation_count() */
	struct path_costs costs;
	struct tuned_times times;                /* of paths of that kind on these devices */
	unsigned flagged_blocks, piped_blocks;   /* that have slots */
	unsigned flagged_units;                  /* of a block */
	unsigned flagged_threads, piped_threads; /* of a block, wanted */
	uint32_t slot_bytes;                     /* of a piped chunk, at most */
	unsigned pair_blocks;                    /* of a send or receive */
	unsigned pair_units;                     /* of a small one, a block */
	uint32_t pair_slot_bytes;                /* of its chunk, at most */
	unsigned chunks;                         /* wanted of a block, at least */
	unsigned chunk_min;                      /* bytes, but of the last ones */
};

/*
 * Costs are those measured on GPUs with paths of that kind (docs/collectives.md). No times, no
 * groups.
 */
void comm_facts_make(unsigned n, bool direct, unsigned blocks, unsigned threads,
		     struct comm_facts *ret);
/* The same of any pairs. reach: n, of which bits of the rank itself do not count. */
void comm_facts_mix(unsigned n, const uint32_t *reach, unsigned blocks, unsigned threads,
		    struct comm_facts *ret);

/*
 * resident: device_info.resident_threads, the least of all ranks. Sends and receives with all ranks
 * get so many blocks that they run at once: a rank's send may wait for one that the same rank makes
 * to another.
 */
void comm_facts_fit(struct comm_facts *f, unsigned resident);

/*
 * Where the ranks' GPUs are (groups_make): direct paths get the costs of the slowest kind, and
 * ranks groups. Where only some pairs are direct, all those of a group are; where none is, there
 * are no groups. groups: those to take, if they can be; NULL: those of the machine.
 */
void comm_facts_place(struct comm_facts *f, const enum nearness *near, const struct groups *groups);

/* One that has a memory of its own for what others write there. */
static inline bool has_direct(const struct comm_facts *f)
{
	return f->direct || f->mixed;
}

/*
 * Groups of ranks have a link to the others that they share: only there sums may be in another
 * order than that of ranks.
 */
static inline bool shares_links(const struct comm_facts *f)
{
	return f->groups.n || f->shared.n;
}

/* Whether what rank `from` writes for rank `to` is in that one's memory. */
static inline bool is_direct(const struct comm_facts *f, unsigned from, unsigned to)
{
	return from == to ? f->direct : f->reach[from] >> to & 1;
}

/*
 * How many ordered pairs have a place in the host's memory before this one: those that are not
 * direct. (n, 0): all of them.
 */
unsigned host_row(const struct comm_facts *f, unsigned from, unsigned to);

/* The data to send. */
struct choice_request {
	enum operation operation;
	bool wide;               /* collective_is_wide() */
	uint64_t piece[STEPS_N]; /* bytes; 0: not in that way, except in one step */
	struct crossing crossing[STEPS_N];
	unsigned period; /* of a chain (struct operation_shape) */
};

struct choice {
	enum algorithm algorithm;
	unsigned blocks, threads;
	uint64_t chunk, chunks; /* or rounds, if flagged: bytes, and how many a block */
	double us;              /* measured on these devices, or estimated */
	bool measured;
};

/*
 * The cheapest way to run each algorithm. One that cannot run the operation: algorithm is
 * ALGORITHM_N.
 */
void choose_each(const struct comm_facts *f, const struct choice_request *q,
		 struct choice ret[ALGORITHM_N]);
/*
 * forced: taken if it is possible; ALGORITHM_N: the cheapest. Where some algorithms have measured
 * times, only those are compared.
 */
void choose(const struct comm_facts *f, const struct choice_request *q, enum algorithm forced,
	    struct choice *ret);

/* How long they take on a link, for a byte of a piece, by the rates of an algorithm. */
double crossing_us(const struct comm_facts *f, enum algorithm a, struct crossing c);

static inline bool is_piped(enum algorithm a)
{
	return a >= PIPED_ONE;
}

static inline enum steps steps_of(enum algorithm a)
{
	return a == PIPED_LEVELS                    ? STEPS_LEVELS
	       : a == PIPED_CHAIN                   ? STEPS_CHAIN
	       : a == FLAGGED_TWO || a == PIPED_TWO ? STEPS_TWO
						    : STEPS_ONE;
}
