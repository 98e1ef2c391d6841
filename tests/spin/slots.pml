/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of kernels/collective_piped.c and collective_chain.c, for one block of each rank: four slots for each sender that take turns for what
 * is sent, two for what was reduced, and a flag for each sender that holds the number of its last step. A chunk is sent before
 * the others have done the last step. A rank that only sends waits for one step less.
 *
 * -DN: ranks. -DOPS: operations, one after the other, each with one or two steps and up to -DCHUNKS chunks. -DROOTS: also
 * those with a root; -DONLY_ROOTS: those alone; -DCHAINS: also those from rank to rank; -DONLY_CHAINS: those alone. Any of
 * the names in tests/spin/check removes one part of the protocol.
 */
#define LANDS
#include "steps.pml"

byte chosen = 0; /* operations: the same for all ranks */
#define RECENT 4 /* older choices are forgotten */
byte chunks_of[RECENT];
bit two_steps[RECENT];

/* Who sends in the first step: all, or rank 0, or all to rank 0 (in one step); the others pass on what rank 0 has sent. */
#define ALL       0
#define FROM_ROOT 1
#define TO_ROOT   2
/* From rank to rank: from rank 0 a chunk in each step, or from all ranks one in every (N - 1)th, round to the one before. */
#define CHAIN     3
#define RING      4
byte kind[RECENT];
#define KIND kind[op % RECENT]

#define SENDS(area, from, to) \
	(KIND == ALL || (KIND == FROM_ROOT && ((area) -> from != 0 && to != 0 : from == 0)) || \
	 (KIND == TO_ROOT && to == 0))
#define ONLY_SENDS ((KIND == FROM_ROOT && me == 0) || (KIND == TO_ROOT && me != 0))
#define CHUNKS_OF  chunks_of[op % RECENT]
#define STEPS                                                                                      \
	(KIND == RING -> CHUNKS_OF * (N - 1) + 1 :                                                 \
	 (KIND == CHAIN -> CHUNKS_OF + N - 1 : CHUNKS_OF + 1 + two_steps[op % RECENT]))
#define BEFORE ((me + N - 1) % N)
#define NEXT   ((me + 1) % N)
#define STARTS                                                                                     \
	((KIND == CHAIN && me == 0 && chunk < CHUNKS_OF) ||                                        \
	 (KIND == RING && chunk % (N - 1) == 0 && chunk / (N - 1) < CHUNKS_OF))
#define ARRIVES                                                                                    \
	((KIND == CHAIN && me > 0 && chunk >= me && chunk - me < CHUNKS_OF) ||                     \
	 (KIND == RING && chunk > 0))
#define PASSES_ON (ARRIVES && (KIND == CHAIN -> me < N - 1 : chunk % (N - 1) != 0))
#ifdef TWO_AHEAD
#define AHEAD (ONLY_SENDS -> 2 : 0)
#else
#define AHEAD (ONLY_SENDS -> 1 : 0)
#endif

inline choose()
{
	if
	:: chosen >= op
	:: else ->
		chosen++;
		select (i : 1 .. CHUNKS);
		chunks_of[op % RECENT] = i;
		if
#if !defined(ONLY_ROOTS) && !defined(ONLY_CHAINS)
		:: two_steps[op % RECENT] = 0; KIND = ALL
		:: two_steps[op % RECENT] = 1; KIND = ALL
#endif
#if defined(ROOTS) || defined(ONLY_ROOTS)
		:: two_steps[op % RECENT] = 0; KIND = TO_ROOT
		:: two_steps[op % RECENT] = 0; KIND = FROM_ROOT
		:: two_steps[op % RECENT] = 1; KIND = FROM_ROOT
#endif
#if defined(CHAINS) || defined(ONLY_CHAINS)
		:: two_steps[op % RECENT] = 0; KIND = CHAIN
		:: two_steps[op % RECENT] = 0; KIND = RING
#endif
		fi;
		kind[(op + 2) % RECENT] = 0;
		chunks_of[(op + 2) % RECENT] = 0;
		two_steps[(op + 2) % RECENT] = 0
	fi
}

/* One flag after the other, as far as they have come: waiting in another order changes nothing. */
inline wait_for_step()
{
#ifdef NO_WAIT
	skip
#else
	atomic {
		r = 0;
		do
		:: r < N && r != me -> REACHED(flag[r * N + me], step + NUMBERS - AHEAD); r++
		:: r < N && r == me -> r++
		:: else -> break
		od;
		r = 0
	}
#endif
}

/* The stores of a step, in any order: they land later. */
inline send(area)
{
	atomic {
		r = 0;
		do
		:: r < N ->
			if
			:: r != me && SENDS(area, me, r) ->
				pending[PLACE(area, SLOT_OF(area, step), me, r)] = DATA(step, area)
			:: else
			fi;
			r++
		:: else -> break
		od;
		r = 0
	}
}

/* What was written in the step before. The loads of different senders are separate. */
inline take(area)
{
	r = 0;
	do
	:: atomic { r < N && r != me ->
		assert(!SENDS(area, r, me) ||
		       memory[PLACE(area, SLOT_OF(area, step - 1), r, me)] == DATA(step - 1, area));
		r++ }
	:: atomic { r < N && r == me -> r++ }
	:: atomic { r == N -> r = 0; break }
	od
}

/* To the next rank alone, in the slots of the first step. */
inline pass_on()
{
	pending[PLACE(0, SLOT_OF(0, step), me, NEXT)] = DATA(step, 0)
}

inline take_from_before()
{
	assert(memory[PLACE(0, SLOT_OF(0, step - 1), BEFORE, me)] == DATA(step - 1, 0))
}

inline tell_step()
{
	atomic {
		r = 0;
		do
		:: r < N ->
			if
#ifdef NO_TELL
			:: r != me && chunk < chunks_of[op % RECENT] -> next_flag[me * N + r] = step + 1
#else
			:: r != me -> next_flag[me * N + r] = step + 1
#endif
			:: else
			fi;
			r++
		:: else -> break
		od;
		r = 0
	}
}

proctype rank(byte me)
{
	byte step = FIRST, op = 0, chunk = 0, r = 0, i = 0;

	do
	:: op < OPS ->
		atomic {
			op++;
			choose();
			i = 0;
			chunk = 0
		}
		do
		:: chunk < STEPS ->
			if
			:: KIND < CHAIN && chunk < CHUNKS_OF -> send(0)
			:: STARTS -> pass_on()
			:: else
			fi;
			wait_for_step();
#ifdef TELL_EARLY
			step++;
			tell_step();
			step--;
#endif
			if
			:: KIND < CHAIN && chunk >= 1 && chunk - 1 < CHUNKS_OF ->
				take(0);
				if
				:: two_steps[op % RECENT] -> send(1)
				:: else
				fi
			:: ARRIVES ->
				take_from_before();
				if
				:: PASSES_ON -> pass_on()
				:: else
				fi
			:: else
			fi;
			if
			:: chunk >= 2 && chunk - 2 < CHUNKS_OF && two_steps[op % RECENT] -> take(1)
			:: else
			fi;
			step++;
#ifndef TELL_EARLY
			tell_step();
#endif
			chunk++
		:: else -> break
		od
	:: else -> break
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
