// SPDX-License-Identifier: Apache-2.0
/* Sends and receives: many under way, sets of units that are used again, numbers that wrap. */
#include "base/array.h"
#include "collective/pairs.h"
#include "collective/slots.h"
#include "comm_rig.h"

#include <sched.h>
#include <stdio.h>

#define ROOM  (1ul << 19)
#define RANKS 3
#define COUNT 16 /* messages from each rank to each other one */
#define SPACE (ROOM / COUNT / RANKS / 16 * 16)

static void fill_all(struct rig *g)
{
	for (size_t r = 0; r < g->n; r++) {
		for (u64 i = 0; i < ROOM; i++)
			g->sent[r][i] = (unsigned char)next_random(256);
		assert_ok(g->set->ops->write(g->set, &g->in[r], 0, g->sent[r], ROOM));
	}
}

static struct pair_call call_of(struct rig *g, size_t rank, bool takes, size_t peer, u64 at,
				u64 bytes)
{
	struct memory *m = takes ? &g->out[rank] : &g->in[rank];

	return (struct pair_call){takes, (int)peer, rig_address(g->set, m, (int)rank) + at, bytes};
}

static void post(struct rig *g, size_t rank, const struct pair_call *calls, size_t n)
{
	assert_ok(pairs_enqueue(g->comms[rank], g->native[rank], calls, n));
}

static void check_arrived(struct rig *g, size_t from, u64 from_at, size_t to, u64 to_at, u64 bytes)
{
	assert_ok(g->set->ops->read(g->set, &g->out[to], to_at, g->got[to], bytes));
	assert_memory_equal(g->got[to], g->sent[from] + from_at, bytes);
}

/* ---- many under way ---- */

/* Mostly such as come in units; nothing, too. */
static u64 some_bytes(void)
{
	static const u64 below[] = {1, 2, 40, 3000, 3100, SPACE - 8};

	return next_random(below[next_random(ARRAY_LEN(below))]);
}

static u64 place(size_t peer, size_t k)
{
	return (peer * COUNT + k) * SPACE + k % 5;
}

/*
 * Each rank has to and from all others some messages in each launch: one each way, or up to three.
 */
static void send_many(struct rig *g)
{
	u64 bytes[RANKS][RANKS][COUNT];
	const size_t most = 1 + next_random(3);

	fill_all(g);
	for (size_t i = 0; i < RANKS * RANKS * COUNT; i++)
		bytes[i / COUNT / RANKS][i / COUNT % RANKS][i % COUNT] = some_bytes();
	for (size_t r = 0; r < g->n; r++)
		for (size_t k = 0; k < COUNT; k += most) {
			struct pair_call calls[2 * RANKS * 3];
			size_t n = 0;

			for (size_t i = k; i < k + most && i < COUNT; i++)
				for (size_t p = 0; p < g->n; p++) {
					calls[n++] = call_of(g, r, false, p, place(p, i),
							     bytes[r][p][i]);
					calls[n++] =
						call_of(g, r, true, p, place(p, i), bytes[p][r][i]);
				}
			post(g, r, calls, n);
		}
	rig_wait_all(g);
	for (size_t r = 0; r < g->n; r++)
		for (size_t p = 0; p < g->n; p++)
			for (size_t k = 0; k < COUNT; k++)
				check_arrived(g, p, place(r, k), r, place(p, k), bytes[p][r][k]);
}

static void sends_in_several_threads(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rig_grids); i++) {
		const struct comm_options o = options_of(ALGORITHM_N, i % 2);
		struct rig g;

		rig_grid = rig_grids[i / 2];
		rig_start(&g, RANKS, ROOM, &o);
		for (int round = 0; round < 4; round++)
			send_many(&g);
		rig_stop(&g);
	}
	rig_grid = (struct rig_grid){0};
}

/* On host devices addresses are this process's own. */
static void set_numbers(struct rig *g, u32 number)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct onehop_comm *c = g->comms[i];
		struct pair_progress *states = (struct pair_progress *)c->pairs_state;

		for (size_t r = 0; r < g->n; r++)
			for (unsigned b = 0; b < c->facts.pair_blocks; b++) {
				struct pair_flags *f =
					(struct pair_flags *)c->routes.pairs.flags.from[r] + b;

				states[r * c->facts.pair_blocks + b] = (struct pair_progress){
					.sent = number,
					.taken = number,
					.freed = number,
					.chunks_sent = number,
					.chunks_taken = number,
					.chunks_freed = number,
				};
				if (r != i)
					*f = (struct pair_flags){.arrived = number,
								 .freed = number,
								 .taken = number};
			}
	}
}

/* Of 2^14 laps of the sets, and of all. */
static const u32 clearing = (1u << 14) * PAIR_SETS, again = (2u << 14) * PAIR_SETS;

static void numbers_wrap(void **state)
{
	const u32 begins[] = {0, ~0u - 20, (1u << 31) - 20, clearing - 20, again - 19};

	(void)state;
	for (size_t k = 0; k < 2 * ARRAY_LEN(begins); k++) {
		const struct comm_options o = options_of(ALGORITHM_N, k % 2);
		struct rig g;

		rig_start(&g, RANKS, ROOM, &o);
		set_numbers(&g, begins[k / 2]);
		for (int round = 0; round < 4; round++)
			send_many(&g);
		rig_stop(&g);
	}
}

/* Writes `flag` into all units from each other rank, or expects that none has it. */
static void stale_units(const struct onehop_comm *c, size_t from, u32 flag, bool write)
{
	const u64 sets = (u64)c->facts.pair_blocks * PAIR_SETS;
	u32 *unit = (u32 *)c->routes.pairs.sets.from[from];

	for (u64 k = 0; k < sets * c->facts.pair_units; k++, unit += 4)
		if (write)
			unit[1] = unit[3] = flag << 16;
		else if (unit[1] >> 16 == flag || unit[3] >> 16 == flag)
			fail_msg("unit %lu still has a flag of later", k);
}

/*
 * What was left 2^15 laps ago would look like a later lap's own, were it not cleared: also where a
 * message needs one unit.
 */
static void stale_units_are_cleared(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		const struct comm_options o = options_of(ALGORITHM_N, way);
		struct rig g;
		u64 bytes;

		rig_start(&g, 2, ROOM, &o);
		bytes = g.comms[0]->facts.pair_blocks * (g.comms[0]->facts.pair_units - 1) * 12ul;
		stale_units(g.comms[1], 0, 1 + (1u << 14) + 7, true);
		set_numbers(&g, clearing);
		for (unsigned k = 0; k < PAIR_SETS; k++) {
			/* A message that all blocks have a part of, most of them a small one. */
			const u64 size = bytes - (u64)(g.comms[0]->facts.pair_units - 2) * 12;
			const struct pair_call out = call_of(&g, 0, false, 1, 0, size),
					       in = call_of(&g, 1, true, 0, 0, size);

			post(&g, 0, &out, 1);
			post(&g, 1, &in, 1);
		}
		rig_wait_all(&g);
		stale_units(g.comms[1], 0, 1 + (1u << 14) + 7, false);
		rig_stop(&g);
	}
}

/* ---- sets that are all in use ---- */

/* Until rank 1 knows that rank 0 has taken so many of its messages. */
static void await_taken(const struct rig *g, u32 taken)
{
	const struct pair_flags *f =
		(const struct pair_flags *)g->comms[1]->routes.pairs.flags.from[0];

	while (__atomic_load_n(&f->taken, __ATOMIC_ACQUIRE) != taken)
		sched_yield();
}

/* From rank 1 to rank 0. */
static void send_back(struct rig *g, u64 bytes)
{
	const struct pair_call out = call_of(g, 1, false, 0, 0, bytes),
			       in = call_of(g, 0, true, 1, 0, bytes);

	post(g, 1, &out, 1);
	post(g, 0, &in, 1);
}

/*
 * Rank 0 can send no more until rank 1 takes something, and rank 1 does so only when rank 0 has
 * taken what it sent. more: sends in one launch, of which the general kernel does more than one.
 */
static void send_when_full(bool no_p2p, size_t more, u64 bytes)
{
	const struct comm_options o = options_of(ALGORITHM_N, no_p2p);
	struct pair_call calls[3], back;
	struct rig g;

	rig_start(&g, 2, ROOM, &o);
	fill_all(&g);
	for (size_t k = 0; k < PAIR_SETS / 2 - 1;
	     k++) /* rank 0 tells that it has taken the next one */
		send_back(&g, bytes);
	for (size_t k = 0; k < PAIR_SETS; k++) {
		calls[0] = call_of(&g, 0, false, 1, k * SPACE, bytes);
		post(&g, 0, calls, 1);
	}
	rig_wait(g.set, g.streams[0]);
	for (size_t k = 0; k < more; k++)
		calls[k] = call_of(&g, 0, false, 1, (PAIR_SETS + k) * SPACE, bytes);
	calls[more] = call_of(&g, 0, true, 1, 0, bytes);
	back = call_of(&g, 1, false, 0, 0, bytes);
	post(&g, 0, calls, more + 1);
	post(&g, 1, &back, 1);
	await_taken(&g, PAIR_SETS / 2);
	for (size_t k = 0; k < PAIR_SETS + more; k++) {
		back = call_of(&g, 1, true, 0, k * SPACE, bytes);
		post(&g, 1, &back, 1);
	}
	rig_wait_all(&g);
	check_arrived(&g, 1, 0, 0, 0, bytes);
	for (size_t k = 0; k < PAIR_SETS + more; k++)
		check_arrived(&g, 0, k * SPACE, 1, k * SPACE, bytes);
	rig_stop(&g);
}

static void neither_direction_waits_for_the_other(void **state)
{
	(void)state;
	for (int way = 0; way < 8; way++)
		send_when_full(way & 1, 1 + (way >> 1 & 1), way & 4 ? 1400 : 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_in_several_threads),
		cmocka_unit_test(numbers_wrap),
		cmocka_unit_test(stale_units_are_cleared),
		cmocka_unit_test(neither_direction_waits_for_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
