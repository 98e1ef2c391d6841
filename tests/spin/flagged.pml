/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of kernels/collective_flagged.c and collective_small.c, for one block of each rank: units of two
 * halves that each carry a flag, two sets of slots that take turns, and clearing when numbers wrap.
 *
 * Spin's memory is sequentially consistent, the real one is not: a store only becomes pending, and a process of
 * its own lets it land at any later time, each half by itself and in any order. Only stores to the same place by the
 * same thread keep their order.
 *
 * A round of a launch is an operation here: the barrier between two rounds of a block is what the end of a launch is.
 *
 * -DN: ranks. -DOPS: operations, one after the other, each of any kind and size up to -DUNITS. -DLAST: the largest
 * number of a launch; 1 to LAST, then from 2 again (65,535 in the code). -DCLEAN: launches from 2 to CLEAN clear
 * all slots (2 and 3 in the code), and so do -DMID, even, and the next (in the code those at 2^14, 2^15 and 2^15 + 2^14):
 * at the beginning a rank may still see the old number where another one is about to clear. -DREACH_NONE: all goes
 * through the host's memory; -DREACH_TWO: but between ranks 0 and 1. Any of the names in tests/spin/check removes one part
 * of the protocol.
 */
#ifndef HALVES
#define HALVES 2
#endif
#ifndef LAST
#define LAST 250
#endif
#ifndef CLEAN
#define CLEAN 3
#endif
#ifndef MID
#define MID 0
#endif
#ifdef ONE_STEP
#define AREAS 1
#else
#define AREAS 2 /* slots of the first step, and of the second */
#endif
#define SETS  2

#define PLACE(area, set, from, to, u, h) \
	((((((area) * SETS + (set)) * N + (from)) * N + (to)) * UNITS + (u)) * HALVES + (h))
#define PLACES (AREAS * SETS * N * N * UNITS * HALVES)

/*
 * Through the host's memory a sender has a row for each reader, and one of its own for what all of them read: what it
 * sends in one step, and what it has reduced (src/collective/slots.c). Direct ones have a row for each step.
 */
#if defined(REACH_NONE)
#define DIRECT(from, to) false
#elif defined(REACH_TWO)
#define DIRECT(from, to) ((from) < 2 && (to) < 2 && (from) != (to))
#else
#define DIRECT(from, to) true
#endif
#define FOR_ALL(area)        ((area) == 1 || kind_of[op % RECENT] != TWO_STEPS)
#define ROW(area, from, to)  (DIRECT(from, to) || !FOR_ALL(area) -> (to) : (from))
#define AREA(area, from, to) (DIRECT(from, to) -> (area) : 0)
#define AT(area, from, to, u, h)                                                                   \
	PLACE(AREA(area, from, to), set, from, ROW(area, from, to), u, h)

#ifdef ONE_SET
#define SET_OF(epoch) 0
#else
#define SET_OF(epoch) ((epoch) & 1)
#endif
#ifdef WRAP_TO_ONE
#define AFTER_LAST 1
#else
#define AFTER_LAST 2
#endif
#ifdef NO_CLEAN
#define MUST_CLEAN(epoch) false
#elif defined(CLEAN_ONE_SET)
#define MUST_CLEAN(epoch) ((epoch) == 2)
#else
#define MUST_CLEAN(epoch) (((epoch) >= 2 && (epoch) <= CLEAN) || (MID && ((epoch) | 1) == MID + 1))
#endif

/*
 * In memory, and pending: the number of the operation, which stands for its data and determines its flag; 0: nothing
 * was written yet, and nothing is pending.
 */
byte memory[PLACES], pending[PLACES];
bit clean_pending[PLACES]; /* by another thread of the block */

#define FLAG(op) ((op) <= LAST -> (op) : AFTER_LAST + ((op) - LAST - 1) % (LAST - AFTER_LAST + 1))

/* ALL: every rank sends to all. ROOT: rank 0 does. TWO_STEPS: all send, then all send what they reduced. */
mtype = { ALL, ROOT, TWO_STEPS };
byte chosen = 0; /* operations: the same for all ranks */
/* Ranks are at most one operation apart, or two if the protocol is broken: older choices are forgotten. */
#define RECENT 4
byte units_of[RECENT];
mtype kind_of[RECENT];

#define LAND(i) \
	:: atomic { (i) < PLACES && pending[(i) % PLACES] -> \
		memory[(i) % PLACES] = pending[(i) % PLACES]; pending[(i) % PLACES] = 0 } \
	:: atomic { (i) < PLACES && clean_pending[(i) % PLACES] -> \
		memory[(i) % PLACES] = 0; clean_pending[(i) % PLACES] = 0 }
#define LAND4(i)  LAND(i) LAND((i) + 1) LAND((i) + 2) LAND((i) + 3)
#define LAND16(i) LAND4(i) LAND4((i) + 4) LAND4((i) + 8) LAND4((i) + 12)

#if PLACES > 80
#error the stores to some places would never land
#endif

active proctype land()
{
end:	do
	LAND16(0) LAND16(16) LAND16(32) LAND16(48) LAND16(64)
	od
}

inline store_unit(area, to, u)
{
	h = 0;
	do
	:: h < HALVES ->
		pending[AT(area, me, to, u, h)] = op;
		h++
	:: else -> break
	od
}

/* 16 bytes are loaded at once and used when all flags are the wanted one; each half is whole. */
#define HALF(area, from, u, h) memory[AT(area, from, me, u, h)]
#define IS_NOW(half)           (half != 0 && FLAG(half) == epoch)
#ifdef ONE_FLAG
#define HAS_COME(area, from, u) IS_NOW(HALF(area, from, u, 0))
#else
#define HAS_COME(area, from, u) \
	(IS_NOW(HALF(area, from, u, 0)) && IS_NOW(HALF(area, from, u, HALVES - 1)))
#endif

inline take_unit(area, from, u)
{
	HAS_COME(area, from, u);
	assert(HALF(area, from, u, 0) == op);
	assert(HALF(area, from, u, HALVES - 1) == op)
}

/* The first unit is sent without data too: it says that the rank has come this far. */
#ifdef NO_TOKEN
#define SENDS(rank, u) (kind_of[op % RECENT] != ROOT || (rank) == 0)
#else
#define SENDS(rank, u) (kind_of[op % RECENT] != ROOT || (rank) == 0 || (u) == 0)
#endif
#ifdef NO_TOKEN_WAIT
#define WAITS_FOR(rank, u) (kind_of[op % RECENT] != ROOT || (rank) == 0)
#else
#define WAITS_FOR(rank, u) SENDS(rank, u)
#endif

inline choose()
{
	if
	:: chosen >= op
	:: else ->
		chosen++;
		units_of[(op + 2) % RECENT] = 0;
		kind_of[(op + 2) % RECENT] = 0;
		select (u : 1 .. UNITS);
		units_of[op % RECENT] = u;
		if
		:: kind_of[op % RECENT] = ALL
#ifndef ONE_KIND
		:: kind_of[op % RECENT] = ROOT
#endif
#ifndef ONE_STEP
		:: kind_of[op % RECENT] = TWO_STEPS
#endif
		fi
	fi
}

/* All slots that this rank ever writes, in both areas, also those that the present operation does not use. */
#if defined(CLEAN_ONE_AREA)
#define CLEANS(area, to) ((to) != me && (area) == 0)
#else
#define CLEANS(area, to) (DIRECT(me, to) -> (to) != me : (area) == 0)
#endif

inline clean_slots()
{
	atomic {
		r = 0;
		do
		:: r < AREAS * N ->
			u = 0;
			do
			:: CLEANS(r / N, r % N) && u < UNITS ->
				h = 0;
				do
				:: h < HALVES ->
					clean_pending[PLACE(r / N, set, me, r % N, u, h)] = 1;
					h++
				:: else -> break
				od;
				u++
			:: else -> break
			od;
			r++
		:: else -> break
		od;
		r = 0; u = 0; h = 0
	}
#ifndef NO_FENCE
	/* fence_system() and the barrier of the block */
	atomic {
		r = 0;
		do
		:: r < AREAS * N ->
			u = 0;
			do
			:: CLEANS(r / N, r % N) && u < UNITS ->
				!clean_pending[PLACE(r / N, set, me, r % N, u, 0)] &&
					!clean_pending[PLACE(r / N, set, me, r % N, u, HALVES - 1)];
				u++
			:: else -> break
			od;
			r++
		:: else -> break
		od;
		r = 0; u = 0
	}
#endif
}

inline send_all(area)
{
	atomic {
		r = 0;
		do
		:: r < N ->
			u = 0;
			do
			:: r != me && u < units_of[op % RECENT] ->
				if
				:: SENDS(me, u) -> store_unit(area, r, u)
				:: else
				fi;
				u++
			:: else -> break
			od;
			r++
		:: else -> break
		od;
		r = 0; u = 0; h = 0
	}
}

/*
 * What has come is read at once. Nothing is lost: what others do depends on what this rank has sent, so that whatever
 * can be overwritten between two reads can be overwritten before the first one.
 */
inline take_all(area)
{
	atomic {
		r = 0;
		do
		:: r < N && r != me ->
			u = 0;
			do
			:: u < units_of[op % RECENT] && WAITS_FOR(r, u) -> take_unit(area, r, u); u++
			:: u < units_of[op % RECENT] && !WAITS_FOR(r, u) -> u++
			:: else -> break
			od;
			r++
		:: r < N && r == me -> r++
		:: else -> break
		od;
		r = 0; u = 0
	}
}

proctype rank(byte me)
{
	byte epoch = 0, op = 0, set = 0, r = 0, u = 0, h = 0;

	do
	:: op < OPS ->
		atomic {
			op++;
			epoch = FLAG(op);
			set = SET_OF(epoch);
			choose();
			u = 0
		}
		if
		:: MUST_CLEAN(epoch) -> clean_slots()
		:: else
		fi;
		send_all(0);
		take_all(0);
		if
		:: kind_of[op % RECENT] == TWO_STEPS ->
			send_all(1);
			take_all(1)
		:: else
		fi
	:: else -> break
	od
}

init
{
	atomic {
		byte i;

		for (i : 0 .. N - 1) {
			run rank(i)
		}
	}
}
