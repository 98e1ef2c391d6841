/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of kernels/collective_levels.c, for one block of each rank, with operations of collective_piped.c between
 * that use the same slots and flags: who stores what for whom in which step (src/collective/operation.c), and where
 * (src/collective/slots.c): in the receiver's memory, in the host's for one reader, or there once for all readers.
 *
 * Ranks are in groups. A chunk is sent to the ranks of the own group, the mates, reduced there, and goes to the ranks
 * with the same place in the other groups, the counterparts. Of two groups each one's reduces it again and sends it to
 * its mates. Of more the chunk has an owner among the counterparts, which alone does that, for the others to pass on.
 *
 * With -DLANDS each store lands by itself (steps.pml). That takes too many states for many ranks, so otherwise a store is
 * certain for who loads the place once it has seen a flag that the same rank stored behind it. Before that it may get this
 * or what was there before; so a load is right only if it is certain, and nobody has stored there again. Flags are seen as
 * late as a wait allows. That leaves out no wrong load: an earlier flag would only make more stores certain. What a step
 * loads is checked at its beginning, where the least is certain, and at its end, where the most has been overwritten.
 *
 * -DGROUPS, -DSIZE: groups, and the ranks in each. -DOPS: operations, one after the other, of any kind and up to
 * -DCHUNKS chunks; -DONE_KIND: all in levels. -DREACH_MATES: a rank stores into its mates' memory alone;
 * -DREACH_UPWARDS: into that of groups with a higher number too; otherwise into all. Any of the names in tests/spin/check
 * removes one part of the protocol.
 */
#define N (GROUPS * SIZE)
#include "steps.pml"

#define GROUP(rank)       ((rank) / SIZE)
#define MATE(a, b)        ((a) != (b) && GROUP(a) == GROUP(b))
#define COUNTERPART(a, b) (GROUP(a) != GROUP(b) && (a) % SIZE == (b) % SIZE)
#if GROUPS > 2
#define STAGES 3
#else
#define STAGES 2
#endif
#define OWNS(rank, chunk) (GROUP(rank) == (chunk) % GROUPS) /* of more than two groups */

/* A sender's row in an area: one for each reader, or its own one, which all read whose memory it does not reach. */
#if defined(REACH_NONE)
#define DIRECT(from, to) false
#elif defined(REACH_MATES)
#define DIRECT(from, to) MATE(from, to)
#elif defined(REACH_UPWARDS)
#define DIRECT(from, to) (MATE(from, to) || GROUP(from) < GROUP(to))
#else
#define DIRECT(from, to) true
#endif
#define PAIR false
#define ALL  true
#define ROW(all, from, to) (DIRECT(from, to) || !(all) -> (to) : (from))
#ifdef ONE_OWN_ROW
#define AREA(area, all, from, to) (!DIRECT(from, to) && (all) -> 0 : (area))
#else
#define AREA(area, all, from, to) (area)
#endif
#define AT(area, all, step, from, to)                                                              \
	PLACE(AREA(area, all, from, to), SLOT_OF(area, step), from, ROW(all, from, to))

/* What is stored in a step. */
#define SENT     0
#define STAGE(k) (1 + (k))

#ifndef LANDS
byte told[N] = FIRST;     /* the step in each rank's flags, when all have landed */
byte seen[N * N] = FIRST; /* of rank `from` by rank `to`: from * N + to */
#endif

mtype = { LEVELS, TWO_STEPS, TO_EACH, TO_ALL };
byte chosen = 0; /* operations: the same for all ranks */
#define RECENT 4 /* older choices are forgotten */
byte chunks_of[RECENT];
mtype kind_of[RECENT];
#define KIND      kind_of[op % RECENT]
#define CHUNKS_OF chunks_of[op % RECENT]
#define STEPS     (CHUNKS_OF + 1 + (KIND == LEVELS -> STAGES : KIND == TWO_STEPS))

inline choose()
{
	if
	:: chosen >= op
	:: else ->
		chosen++;
		select (i : 1 .. CHUNKS);
		chunks_of[op % RECENT] = i;
		if
		:: kind_of[op % RECENT] = LEVELS
#ifndef ONE_KIND
		:: kind_of[op % RECENT] = TWO_STEPS
		:: kind_of[op % RECENT] = TO_EACH
		:: kind_of[op % RECENT] = TO_ALL
#endif
		fi;
		chunks_of[(op + 2) % RECENT] = 0;
		kind_of[(op + 2) % RECENT] = 0
	fi
}

#define OTHERS (r != me)
#ifdef LANDS
#define STORED        pending
#define CERTAIN(from) true
#else
#define STORED memory
#ifdef NO_RELEASE
#define CERTAIN(from) false
#else
#define CERTAIN(from) (seen[(from) * N + me] >= step)
#endif
#endif

/* Stores for all ranks r for which `to` holds. */
inline store(area, all, what, to)
{
	r = 0;
	do
	:: r < N ->
		if
		:: to -> STORED[AT(area, all, step, me, r)] = DATA(step, what)
		:: else
		fi;
		r++
	:: else -> break
	od;
	r = 0
}

/* Loads what each rank r for which `from` holds has stored in the step before. */
inline load(area, all, what, from)
{
	r = 0;
	do
	:: r < N ->
		if
		:: from ->
			assert(memory[AT(area, all, step - 1, r, me)] == DATA(step - 1, what));
			assert(CERTAIN(r))
		:: else
		fi;
		r++
	:: else -> break
	od;
	r = 0
}

#ifdef NO_WAIT
#define WAITS_FOR(rank) false
#elif defined(WAITS_FOR_MATES)
#define WAITS_FOR(rank) (KIND != LEVELS || MATE(me, rank))
#elif defined(WAITS_FOR_COUNTERPARTS)
#define WAITS_FOR(rank) (KIND != LEVELS || COUNTERPART(me, rank))
#else
#define WAITS_FOR(rank) ((rank) != me)
#endif

/* One flag after the other, as far as they have come: waiting in another order changes nothing. */
inline wait_for_step()
{
	r = 0;
	do
	:: r < N && WAITS_FOR(r) ->
#ifdef LANDS
		REACHED(flag[r * N + me], step);
#else
		do
		:: REACHED(seen[r * N + me] % NUMBERS, step) -> break
		:: else -> seen[r * N + me] < told[r]; seen[r * N + me]++
		od;
		assert(REACHED(told[r] % NUMBERS, step)); /* so would be any later one */
#endif
		r++
	:: r < N && !WAITS_FOR(r) -> r++
	:: else -> break
	od;
	r = 0
}

#define BEGUN(k) (i > (k) && i - 1 - (k) < CHUNKS_OF)
#define CHUNK(k) (i - 1 - (k))

inline send()
{
	if
	:: i >= CHUNKS_OF
	:: i < CHUNKS_OF && KIND == LEVELS -> store(0, PAIR, SENT, MATE(me, r))
	:: i < CHUNKS_OF && KIND == TO_ALL -> store(0, ALL, SENT, OTHERS)
	:: i < CHUNKS_OF && KIND != LEVELS && KIND != TO_ALL -> store(0, PAIR, SENT, OTHERS)
	fi
}

inline load_stages()
{
	if
	:: BEGUN(0) -> load(0, PAIR, SENT, MATE(me, r))
	:: else
	fi;
#if STAGES == 2
	if
	:: BEGUN(1) -> load(1, ALL, STAGE(0), COUNTERPART(me, r))
	:: else
	fi;
#else
	if
	:: BEGUN(1) && OWNS(me, CHUNK(1)) -> load(0, PAIR, STAGE(0), COUNTERPART(me, r))
	:: else
	fi;
	if
	:: BEGUN(2) && !OWNS(me, CHUNK(2)) ->
		load(1, ALL, STAGE(1), COUNTERPART(me, r) && OWNS(r, CHUNK(2)))
	:: else
	fi;
#endif
	if
	:: i > STAGES -> load(1, ALL, STAGE(STAGES - 1), MATE(me, r))
	:: else
	fi
}

inline store_stages()
{
#if STAGES == 2
	if
	:: BEGUN(0) -> store(1, ALL, STAGE(0), COUNTERPART(me, r))
	:: else
	fi;
#else
	if
	:: BEGUN(0) -> store(0, PAIR, STAGE(0), COUNTERPART(me, r) && OWNS(r, CHUNK(0)))
	:: else
	fi;
	if
	:: BEGUN(1) && OWNS(me, CHUNK(1)) -> store(1, ALL, STAGE(1), COUNTERPART(me, r))
	:: else
	fi;
#endif
	if
	:: BEGUN(STAGES - 1) -> store(1, ALL, STAGE(STAGES - 1), MATE(me, r))
	:: else
	fi
}

/* Everything that a step loads. */
inline load_all()
{
	if
	:: KIND == LEVELS -> load_stages()
	:: KIND != LEVELS ->
		if
		:: BEGUN(0) && KIND == TO_ALL -> load(0, ALL, SENT, OTHERS)
		:: BEGUN(0) && KIND != TO_ALL -> load(0, PAIR, SENT, OTHERS)
		:: else
		fi;
		if
		:: BEGUN(1) && KIND == TWO_STEPS -> load(1, ALL, STAGE(0), OTHERS)
		:: else
		fi
	fi
}

inline store_all()
{
	if
	:: KIND == LEVELS -> store_stages()
	:: KIND == TWO_STEPS && BEGUN(0) -> store(1, ALL, STAGE(0), OTHERS)
	:: else
	fi
}

inline tell(number)
{
#ifdef LANDS
	r = 0;
	do
	:: r < N ->
		if
		:: r != me -> next_flag[me * N + r] = number + 1
		:: else
		fi;
		r++
	:: else -> break
	od;
	r = 0
#else
	told[me] = number
#endif
}

#ifdef NO_TELL
#define TELLS (i < CHUNKS_OF)
#else
#define TELLS true
#endif

inline begin()
{
	op++;
	choose();
#ifdef FORGETS
	step = FIRST;
#endif
	i = 0
}

/* Stores are made as early as they can be: when they are certain is up to the flag behind them. */
proctype rank(byte me)
{
	byte step = FIRST, op = 0, i = 0, r = 0;

	atomic {
		begin();
		d_step { send() }
	}
	do
	:: atomic {
		wait_for_step();
#ifdef TELL_EARLY
		tell(step + 1)
		}
		atomic {
#endif
		d_step {
			load_all();
			store_all()
		} }
		atomic {
			d_step {
				load_all();
				step++;
				if
				:: TELLS -> tell(step)
				:: else
				fi;
				i++
			}
			if
			:: i < STEPS
			:: i == STEPS && op < OPS -> begin()
			:: i == STEPS && op == OPS -> break
			fi;
			d_step { send() }
		}
	od
}

init
{
	atomic {
		byte k;

		for (k : 0 .. N - 1) {
			run rank(k)
		}
	}
}
